"""HeMap as published: heterogeneous transfer by projection [Shi 2013, ch. 5].

Rows are aligned at random, the common space has one dimension and the source is used untested. For
comparison: :class:`tabweave.HeMap` is the one to use, and the page on HeMap says why.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from tabweave.io.register import storable
from tabweave.sources.hemap import hemap
from tabweave.sources.hemap.hemap import Verdict
from tabweave.sources.hemap.transfer import (
    Align,
    Aligned,
    Options,
    Scaled,
    Source,
    Target,
    Transfer,
    by_rank,
)


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
    >>> from tabweave.published import HeMap
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

    def fit(self, X: Any, y: Any, source: Any = None) -> Self:  # type: ignore[override]
        """Learn as :meth:`tabweave.HeMap.fit` does, without pairs."""
        return super().fit(X, y, source)

    def _alignment(self, target: Target) -> tuple[str, Align, int]:
        return "random", at_random, 0

    def _judge(
        self, options: Options, target: Target, source: Source, transfer: Transfer, n_sources: int
    ) -> Verdict:
        return Verdict(False, "as published, the source is used untested", {})


def at_random(given: Scaled) -> Aligned:
    """Align rows at random, as the thesis does when it fills up the smaller table."""
    return by_rank(given.rng.permutation(len(given.T)), given.rng.permutation(len(given.S)))
