"""CoCA and HeMap as published: projections of several sources [Shi 2013, ch. 4 and 5].

CoCA: the learned weights stand on the diagonal blocks of Eq. (4.8). HeMap: rows are aligned at
random, the common space has one dimension and the source is used untested. For comparison:
:class:`tabweave.CoCA` and :class:`tabweave.HeMap` are the ones to use, and their pages say why.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from tabweave.io.register import storable
from tabweave.sources import coca, hemap
from tabweave.sources.hemap import Align, Aligned, Scaled, TargetRows, by_rank


@storable
class CoCA(coca.CoCA):
    """Embed the entities of several sources by collective component analysis, as published.

    Parameters
    ----------
    n_components : int, default=10
        Number of coordinates; fewer if the sources have fewer columns.
    alpha : float or "auto", default="auto"
        How much tables have to agree. ``"auto"`` is 1/p for p tables of unit trace; the 60 of the
        thesis is for unscaled data.
    solver : {"auto", "dense", "lanczos"}, default="auto"
        Write the matrix out, or only multiply by it.

    Attributes
    ----------
    weights_, graph_weights_ : dict of str to float
        ω and ω̃ of Eq. (4.19), equal ones without labels or links.
    eigenvalues_, components_, columns_, ids_, alpha_, n_components_
        As in :class:`tabweave.CoCA`.
    refused_
        As in :class:`tabweave.CoCA`.

    Notes
    -----
    Eq. (4.8) has ω_j X⁽ʲ⁾X⁽ʲ⁾ᵀ on the diagonal and α X⁽ʲ⁾X⁽ʰ⁾ᵀ beside it: weights touch the
    diagonal blocks only, so a large α drowns them, and a source of weight 0 still takes part.
    Erratum: a single multiplier in (4.9) normalises the directions jointly, not in each source.
    Tables are scaled to unit trace and graphs to D^{-½} M D^{-½}, as in :class:`tabweave.CoCA`.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave import Sources
    >>> from tabweave.papers import CoCA
    >>> rng = np.random.default_rng(0)
    >>> tables = {name: (range(30), rng.normal(size=(30, 4))) for name in ("a", "b")}
    >>> model = CoCA(2).fit(Sources(tables), {i: i % 2 for i in range(10)})
    >>> model.transform(Sources(tables)).shape
    (30, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: coca.CoCA._parameter_constraints[name] for name in ("n_components", "alpha", "solver")
    }

    def __init__(
        self, n_components: int = 10, *, alpha: float | str = "auto", solver: str = "auto"
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.solver = solver

    weights = "learned"
    graph_share = 1.0
    _weighs_data: ClassVar[bool] = False  # Eq. (4.8): ω on the diagonal blocks


@storable
class HeMap(hemap.HeMap):
    """Learn from the labels of a source table with other columns, as published.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        The learner; 10 nearest neighbours if not given.
    n_components : int, default=1
        Dimensions of the common space, at most.
    similarity : float, default=1.0
        How much the two tables should agree there (β).
    linearity : float in (0, 1], default=1.0
        1 is the linear HeMap, Eq. (5.8); less keeps clusters too, Eq. (5.15) (θ; nonlinear at 0.5).
    scale : bool, default=True
        Whether columns are brought to variance 1.
    random_state : int, RandomState or None, default=None
        Decides the alignment and clusters.

    Attributes
    ----------
    transfer_ : object or None
        What was learned with the source.
    target_estimator_, selected_, eigenvalues_, classes_, alignment_, losses_, reason_, verdicts_
        As in :class:`tabweave.HeMap`.
    refused_ : bool
        False, unless there is no source that can be aligned at all.

    Notes
    -----
    Erratum: section 5.3 says that the order of rows and the scale of the data do not affect the
    result. Both do, through TᵀS: row i of the target is projected with row i of the source, so
    rows in random order carry nothing over. Source rows are selected by Eq. (5.17), outputs
    bridged by Eqs. (5.19) and (5.20). New rows are projected by a ridge regression, as in
    :class:`tabweave.HeMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.papers import HeMap
    >>> rng = np.random.default_rng(0)
    >>> X, kind = rng.normal(size=(60, 3)), np.repeat(["a", "b"], 30)
    >>> model = HeMap(random_state=0).fit(X, kind, source=(X @ rng.normal(size=(3, 5)), kind))
    >>> model.project(X).shape
    (60, 1)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: hemap.HeMap._parameter_constraints[name]
        for name in (
            *("estimator", "n_components", "similarity", "linearity"),
            *("scale", "random_state"),
        )
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_components: int = 1,
        similarity: float = 1.0,
        linearity: float = 1.0,
        scale: bool = True,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_components = n_components
        self.similarity = similarity
        self.linearity = linearity
        self.scale = scale
        self.random_state = random_state

    guard = None

    def fit(self, X: Any, y: Any, source: Any = None) -> Self:  # type: ignore[override]
        """Learn as :meth:`tabweave.HeMap.fit` does, without pairs."""
        return super().fit(X, y, source)

    def _alignment(self, target: TargetRows) -> tuple[str, Align, int]:
        return "random", at_random, 0


def at_random(given: Scaled) -> Aligned:
    """Align rows at random, as the thesis does when it fills up the smaller table."""
    return by_rank(given.rng.permutation(len(given.T)), given.rng.permutation(len(given.S)))
