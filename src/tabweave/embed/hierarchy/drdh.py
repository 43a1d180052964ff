"""DRDH: a map of mixed rows, from distance hierarchies through t-SNE (Huang and Hsu).

Trees make rows comparable (:class:`DistanceHierarchy`), their nearest neighbours are found by
tree distance, openTSNE lays them out. The paper's n × n matrix is never formed, and new rows are
projected on a map that is already there.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from tabweave._compat import Interval, StrOptions, require
from tabweave.base import Estimator, TabularInput, remember_names, seed_of
from tabweave.embed.hierarchy.tree import DistanceHierarchy
from tabweave.embed.register import embedder
from tabweave.search.scan import Rows, TreeIndex, jobs, placed

_MANY = 60_000  # rows from which neighbours are found through faiss, where it is installed
_FEW = 5_000  # new rows up to which each is projected alone, whatever else is in the batch


@embedder(
    "drdh",
    "values on trees, laid out in two dimensions",
    "Huang & Hsu",
    reads="mixed",
    offered="shell",
    page="distance-hierarchy",
)
class DRDH(TabularInput, TransformerMixin, Estimator):
    """Draw mixed rows on a map, so that rows near in their trees are near on it.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map.
    perplexity : float or "auto", default="auto"
        About how many neighbours each row minds; three times as many are looked up. "auto" is 30,
        or a third of the other rows if there are fewer.
    trees, linkage, schema
        As in :class:`DistanceHierarchy`.
    neighbors : {"auto", "exact", "faiss"}, default="auto"
        How neighbours are found: exactly by lookups, or by faiss's graph in L1, approximately.
        "auto" is exact up to 60,000 rows.
    n_iter : int, default=500
        Steps of the layout, after 250 of early exaggeration.
    random_state : int, RandomState or None, default=None
        Where chance enters: the start of the layout.

    Attributes
    ----------
    map_ : ndarray of shape (n_rows, n_components)
        The location of each row of fit.
    hierarchy_ : DistanceHierarchy
        The trees.
    perplexity_ : float
        The perplexity used.
    neighbors_ : {"exact", "faiss"}
        How neighbours were found.

    Notes
    -----
    Classes given to ``fit`` shape the trees, by Eq. (11); give those of training rows only.
    ``transform`` projects rows among those of fit, which stay where they are; a row of fit given
    again is projected anew, near where it was. Erratum: the gradient (10) has p - q, not p + q.
    Draw it with ``tabweave.plots.scatter_map(model.map_, labels)``, coloured by class or by a
    column.

    Examples
    --------
    >>> from tabweave.embed.hierarchy import DRDH
    >>> from tabweave.datasets import balance
    >>> rows = balance().take(range(0, 625, 5))
    >>> model = DRDH(perplexity=10, n_iter=50, random_state=0).fit(rows.columns, rows.y)
    >>> model.map_.shape
    (125, 2)
    >>> model.transform(rows.take([7]).columns).shape
    (1, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "perplexity": [Interval(Real, 1, None, closed="left"), StrOptions({"auto"})],
        "trees": DistanceHierarchy._parameter_constraints["trees"],
        "linkage": DistanceHierarchy._parameter_constraints["linkage"],
        "neighbors": [StrOptions({"auto", "exact", "faiss"})],
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "schema": DistanceHierarchy._parameter_constraints["schema"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float | str = "auto",
        trees: Any = None,
        linkage: str = "average",
        neighbors: str = "auto",
        n_iter: int = 500,
        schema: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.trees = trees
        self.linkage = linkage
        self.neighbors = neighbors
        self.n_iter = n_iter
        self.schema = schema
        self.random_state = random_state

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Grow the trees and lay out the rows.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows.
        y : array-like, optional
            A class for each row, from which trees are grown.
        """
        self._validate_params()
        require("openTSNE", "map")
        hierarchy = DistanceHierarchy(self.trees, linkage=self.linkage, schema=self.schema)
        hierarchy.fit(X, y)
        return self._lay_out(X, hierarchy)

    def _lay_out(self, X: Any, hierarchy: DistanceHierarchy) -> Self:
        """Algorithm 2: rows to trees, trees to neighbours, neighbours to a map."""
        from openTSNE import TSNE, affinity, initialization

        rows = Rows.of(hierarchy._read_fitted(X), hierarchy.blocks_, hierarchy.unknown)
        perplexity = self._resolved_perplexity(rows.shape[0])
        approximate = self._approximate(rows.shape[0])
        index = TreeIndex(rows, int(3 * perplexity), approximate=approximate)
        n_jobs = jobs(rows.shape[0])
        near = affinity.PerplexityBasedNN(perplexity=perplexity, knn_index=index, n_jobs=n_jobs)
        seed = seed_of(self.random_state)
        start = _start(rows.coordinates(), int(self.n_components), seed, initialization)
        tsne = TSNE(
            n_components=int(self.n_components),
            n_iter=int(self.n_iter),
            negative_gradient_method="auto" if self.n_components <= 2 else "bh",
            n_jobs=n_jobs,
            random_state=seed,
        )
        self.map_ = np.array(tsne.fit(affinities=near, initialization=start))
        self._index = index
        self.hierarchy_, self.perplexity_ = hierarchy, perplexity
        self.neighbors_ = "faiss" if approximate else "exact"
        self.schema_ = hierarchy.schema_
        remember_names(self, self.schema_)
        return self

    def _resolved_perplexity(self, n_rows: int) -> float:
        most = (n_rows - 1) / 3
        if most < 1:
            raise ValueError(f"a map needs 4 rows or more, but there is n_samples={n_rows}")
        if isinstance(self.perplexity, str):
            return min(30.0, most)
        if self.perplexity > most:
            raise ValueError(
                f"perplexity={self.perplexity} needs {int(3 * self.perplexity) + 1} rows, but "
                f"there are {n_rows}; use at most {most:.4g}, or 'auto'"
            )
        return float(self.perplexity)

    def _approximate(self, n_rows: int) -> bool:
        if self.neighbors == "auto":
            from importlib.util import find_spec

            return n_rows > _MANY and find_spec("faiss") is not None
        if self.neighbors == "faiss":
            require("faiss", "search")
        return self.neighbors == "faiss"

    # -- using -----------------------------------------------------------------------------

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return the map of the rows."""
        return self.fit(X, y).map_.copy()

    def transform(self, X: Any) -> np.ndarray:
        """Project rows on the map, among the rows of fit; learns nothing."""
        check_is_fitted(self, "map_")
        hierarchy = self.hierarchy_
        rows = Rows.of(hierarchy._read_fitted(X), hierarchy.blocks_, hierarchy.unknown)
        if not rows.shape[0]:
            raise ValueError("expected at least one row to project, got none")
        near = min(25, len(self.map_))
        perplexity = min(5.0, self.perplexity_)
        layout = placed(self.map_, self._index)
        # Forces by interpolation depend on the whole batch; a few rows are projected one by one.
        few = rows.shape[0] <= _FEW or self.n_components > 2
        partial = layout.prepare_partial(rows, k=near, perplexity=perplexity)
        partial.optimize(
            n_iter=100,
            learning_rate=0.1,
            exaggeration=1.5,
            momentum=0.8,
            inplace=True,
            max_grad_norm=0.25,
            negative_gradient_method="bh" if few else "fft",
        )
        return np.array(partial)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return ``map0``, ``map1``, ... for the dimensions of the map."""
        check_is_fitted(self, "map_")
        self.hierarchy_.get_feature_names_out(input_features)
        return np.asarray([f"map{i}" for i in range(self.n_components)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags


def _start(rows: np.ndarray, n_components: int, seed: int, initialization: Any) -> np.ndarray:
    """Return where the layout starts: principal axes, or chance where there are none."""
    if min(rows.shape) > n_components and np.ptp(rows, axis=0).any():
        with threadpool_limits(1):  # the layout makes much of the last bit, which threads change
            return initialization.pca(rows, n_components=n_components, random_state=seed)
    return initialization.random(len(rows), n_components=n_components, random_state=seed)
