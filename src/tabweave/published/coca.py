"""CoCA as published: collective component analysis [Shi 2013, ch. 4].

The learned weights stand on the diagonal blocks of Eq. (4.8). For comparison:
:class:`tabweave.CoCA` is the one to use, and the page on CoCA says why.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tabweave.io.register import storable
from tabweave.sources import coca


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
    >>> from tabweave.published import CoCA
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

    unit_trace = True
    normalized_graphs = True

    def _learns_weights(self) -> bool:
        return True

    def _graph_share(self) -> float | str:
        return 1.0

    def _root_weight(self, name: str, n_tables: int) -> float:
        return 1.0

    def _block_weights(self) -> np.ndarray:
        """Eq. (4.8): ω on the diagonal blocks."""
        return np.array([self.weights_[name] for name in self._means])
