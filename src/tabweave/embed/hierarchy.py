"""DistanceHierarchy: mixed rows by the trees of their values (Huang and Hsu).

Every categorical column gets a tree, given by hand or grown from the classes (or, without labels,
from the other columns); numbers and grades lie on a line. Rows become vectors whose Manhattan
distance is the sum of the tree distances, exactly. Only the rows given to ``fit`` are looked at.

DRDH: a map of mixed rows, from distance hierarchies through t-SNE (Huang and Hsu).

Trees make rows comparable (:class:`DistanceHierarchy`), their nearest neighbours are found by
tree distance, openTSNE lays them out. The paper's n × n matrix is never formed, and new rows are
projected on a map that is already there. [Huang and Hsu]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, StrOptions, n_threads, one_blas_thread, require, seed_of
from tabweave.base import Estimator, TabularInput
from tabweave.columns.column import Column, Schema
from tabweave.columns.inputs import check_discrete
from tabweave.columns.nominal import Codes, check_codes
from tabweave.columns.table import Table, distinct_rows, remember_names, require_rows
from tabweave.columns.vocabulary import Label
from tabweave.counts.counts import Counts, counted_schema
from tabweave.counts.couplings import partners, shares
from tabweave.embed.base import Embedder, readable
from tabweave.embed.register import embedder
from tabweave.engines.reading import hold_counts, read_fitted, read_rows, start_counts
from tabweave.io.register import storable
from tabweave.io.store import CacheNotSaved
from tabweave.space.points import summed_differences
from tabweave.space.scan import Copies, Nodes, Queries, Ranking, nearest_rows, without_self
from tabweave.space.space import Joined, Space, label_column
from tabweave.space.trees import LevelSpace, LineSpace, Point, Tree, TreeSpace

__all__ = ["DRDH", "DistanceHierarchy", "Point", "Tree"]
LINKAGES = ("single", "average", "complete")


@embedder(
    "hierarchy",
    "distances on a tree of values per column, learned from classes if there is a target",
    "Huang & Hsu",
    reads="mixed",
    offered="shell",
    page="distance-hierarchy",
)
class DistanceHierarchy(Embedder):
    """Embed rows so that Manhattan distance is the sum of their columns' tree distances.

    Parameters
    ----------
    trees : mapping of column to tree, optional
        Trees made by hand, as :meth:`Tree.of` reads them; the other categorical columns get
        theirs from the data. To save the model, give ``Tree.of(...)`` in place of a frame or graph.
    linkage : {"average", "single", "complete"}, default="average"
        How trees are grown from the dissimilarities of values.
    schema : Schema or mapping of column to kind, optional
        What the columns are; numbers are numeric unless declared otherwise.
    unknown : {"centroid", "error"}, default="centroid"
        What becomes of a value that no tree has. A path ("A/B/new") goes to its nearest
        ancestor in the tree in any case.
    dtype : {"float64", "float32"}, default="float64"
        Type of the vectors.

    Attributes
    ----------
    trees_ : dict of str to Tree
        The tree of every categorical column.
    space_ : Joined
        A tree or a line for each column: what rows, distances and explanations are made of.
    counts_ : Counts
        What was seen; with classes if ``y`` was given.
    ranges_ : dict of str to (float, float)
        Lowest and highest number of every numeric column.
    schema_, n_features_in_, feature_names_in_
        The columns.

    Notes
    -----
    With classes P the dissimilarity of two values is Eq. (11), ``Σ_D |p(D|A) - p(D|B)|``. Without,
    the other categorical columns stand for P, averaged. A node lies as high above its leaves as the
    linkage says, so the distance of two leaves is twice the height at which they join.
    Numbers span 0 to 1 over the rows of fit; so do an ordinal column's levels, evenly. A missing
    number or grade counts as the mean. A missing value lies at the mean of the values seen, which
    is at the expected distance from each value of the tree, and at none from another missing one;
    with ``missing="value"`` it is a leaf of a grown tree.
    As in the paper, values that go with the classes in equal shares fall together.

    Examples
    --------
    >>> from tabweave.embed.hierarchy import DistanceHierarchy
    >>> rows = {"drink": ["latte", "mocha", "oolong", "latte"], "price": [3.0, 3.5, 2.0, 4.0]}
    >>> trees = {"drink": {"coffee": ["latte", "mocha"], "tea": ["oolong"]}}
    >>> model = DistanceHierarchy(trees).fit(rows)
    >>> model.explain({"drink": "latte", "price": 3.0}, {"drink": "oolong", "price": 2.0})
    {'drink': 4.0, 'price': 0.5}
    >>> grown = DistanceHierarchy().fit(rows, ["warm", "warm", "cold", "warm"])
    >>> grown.trees_["drink"].distance("latte", "mocha")
    0.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Embedder._parameter_constraints,
        "trees": [Mapping, None],
        "linkage": [StrOptions(set(LINKAGES))],
    }

    def __init__(
        self,
        trees: Any = None,
        *,
        linkage: str = "average",
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        self.trees = trees
        self.linkage = linkage
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)

    # -- learning --------------------------------------------------------------------------

    trees_: dict[str, Tree]
    ranges_: dict[str, tuple[float, float]]
    _spaces: list[Space]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows, and from their classes if they are given.

        Parameters
        ----------
        X, y
            As in :meth:`tabweave.Weave.fit`.
        """
        return self._add(X, y, first=True, whole=True).learn()

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to what was seen so far; same result as one ``fit`` on all of them.

        Nothing is learned yet: :meth:`learn` does, or the first method that needs it.
        """
        return self._add(X, y, first=not hasattr(self, "counts_"))

    def _add(self, X: Any, y: Any, *, first: bool, whole: bool = False) -> Self:
        self._validate_params()
        table = read_rows(self, X, whole=whole) if first else read_fitted(self, X)
        require_rows(table)
        y = readable(y)
        if y is not None:
            check_discrete(type(self).__name__, y)
        counts, ranges = Counts.of(table, y), number_ranges(table)
        self._check_trees(counts)
        if first:
            start_counts(self, counts, table.schema)
        else:
            if (y is None) != (self.counts_.classes is None):
                raise ValueError("y was given for some batches only; give it for all or for none")
            hold_counts(self, self.counts_ + counts)
            for name, (low, high) in self.ranges_.items():
                ranges[name] = min(low, ranges[name][0]), max(high, ranges[name][1])
        self.ranges_ = ranges
        return self

    def fit_counts(self, counts: Counts) -> Self:
        """Learn from counts of categories; counts of numbers do not hold their range."""
        self._validate_params()
        for column in counted_schema(counts).numeric:
            raise ValueError(
                f"column {column.name!r} is numeric, and counts do not hold its range; use fit, or "
                "leave the column out"
            )
        self._check_trees(counts)
        start_counts(self, counts)
        self.ranges_ = {}
        return self.learn()

    def _learn(self, counts: Counts) -> None:
        """Algorithm 1: a tree for each categorical column, from a hand or from the data."""
        schema = self.schema_
        present = self.counts_.present(
            c.name for c in schema.columns if (c.missing or schema.missing) != "value"
        )
        self.trees_ = {name: Tree.of(tree) for name, tree in (self.trees or {}).items()}
        for name in _treed(self.schema_):
            if name not in self.trees_:
                labels = present.labels[present.names.index(name)]
                self.trees_[name] = from_linkage(dissimilarity(present, name), labels, self.linkage)
        self._spaces = [self._column_space(column, present) for column in self.schema_.columns]

    def _column_space(self, column: Column, present: Counts) -> Space:
        if column.is_continuous:
            return line_space(self.counts_, column.name, *self.ranges_[column.name])
        if column.is_ordered:
            return level_space(self.counts_, column)
        return tree_space(present, column.name, self.trees_[column.name])

    @property
    def space_(self) -> Joined:
        """The tree or line of each column, side by side."""
        return Joined(self._spaces)

    def _check_trees(self, counts: Counts) -> None:
        """Raise for trees of columns that are not there, and for values that are not in theirs."""
        schema = counted_schema(counts)
        for column in schema.columns:
            if not (column.has_values or column.is_continuous):
                raise ValueError(
                    f"column {column.name!r}: expected values or numbers, got kind "
                    f"{column.kind!r}; declare it nominal, or leave it out"
                )
        nominal = _treed(schema)
        for name, tree in (self.trees or {}).items():
            if name not in nominal:
                kind = next((c.kind for c in schema.columns if c.name == name), "no column")
                remedy = "" if kind == "no column" else f"; declare schema={{{name!r}: 'nominal'}}"
                raise ValueError(
                    f"expected trees of nominal or set columns ({', '.join(map(repr, nominal))}), "
                    f"got one of {name!r}, which is {kind}{remedy}"
                )
            leaves = Tree.of(tree)
            for label in counts.labels[counts.names.index(name)]:
                if label is not None and leaves.nearest(label) is None:
                    raise ValueError(
                        f"column {name!r}: value {label!r} is not in its tree; add it, or write it "
                        f"as a path below a node of the tree (A{leaves.separator}{label!s})"
                    )


def _treed(schema: Schema) -> list[str]:
    return [c.name for c in schema.categorical if not c.is_ordered]


# -- spaces from counts --------------------------------------------------------------------------


def tree_space(counts: Counts, name: str, tree: Tree) -> TreeSpace:
    """Space of a tree; an unknown value counts as the mean of those seen."""
    edges = np.flatnonzero(tree.weights[1:] > 0)
    labels, share = _seen(counts, name)
    points = TreeSpace(tree, edges, np.zeros(len(edges)), name).points(labels)[:-1]
    return TreeSpace(tree, edges, share @ points / max(share.sum(), 1e-300), name)


def level_space(counts: Counts, column: Column) -> LevelSpace:
    """Space of grades; a missing or unknown one counts as the mean of those seen."""
    labels, share = _seen(counts, column.name)
    present = np.array([label is not None for label in labels.labels], bool)
    levels = column.levels or tuple(v for v in labels.labels if v is not None)
    space = LevelSpace(levels, np.full(1, 0.5), column=column.name)
    if not present.any():
        return space
    points = space.points(labels)[:-1, 0]
    return replace(
        space, centroid=np.atleast_1d(np.average(points[present], weights=share[present]))
    )


def line_space(counts: Counts, name: str, low: float, high: float) -> LineSpace:
    """Space of numbers; a missing one counts as the mean."""
    if low > high:  # no number was seen
        return LineSpace(0.0, 0.0, 0.0, column=name)
    if not np.isfinite(high - low):
        raise ValueError(f"column {name!r} spans {low:g} to {high:g}, beyond float64; scale it")
    return LineSpace(low, high, counts.moments(name)[1], column=name)


def number_ranges(table: Table) -> dict[str, tuple[float, float]]:
    """Lowest and highest number of each numeric column; (inf, -inf) if it has none."""
    out = {}
    for column, data in table:
        if column.is_continuous:
            present = data.values[~np.isnan(data.values)]
            lowest, highest = present.min(initial=np.inf), present.max(initial=-np.inf)
            out[column.name] = float(lowest), float(highest)
    return out


def _seen(counts: Counts, name: str) -> tuple[Codes, np.ndarray]:
    """A column's values as a column without rows, and how often each was seen."""
    labels = counts.labels[counts.names.index(name)]
    share = counts.value_counts[counts.span(name)].astype(float)
    return label_column(labels), share


# -- trees from counts ---------------------------------------------------------------------------


def dissimilarity(counts: Counts, column: str, *, max_values: int = 10_000) -> np.ndarray:
    """Eq. (11): ``d(A, B) = Σ_D |p(D|A) - p(D|B)|`` over the classes D.

    Without classes the values of each other categorical column are the probes, and the columns
    are averaged; without other columns all values are equally distant.
    """
    from scipy.spatial.distance import cdist

    a = counts.names.index(column)
    n_values = int(counts.sizes[a])
    if n_values > max_values:
        raise ValueError(
            f"column {column!r} has {n_values} values, too many to learn a tree from; pass a "
            f"tree, or group its values"
        )
    if counts.class_pairs is not None:
        probes = [counts.class_pairs[counts.span(a)]]
    else:
        probes = [block for _, block in partners(counts, a) if block.shape[1]]
    if not probes:
        return 1 - np.eye(n_values)
    total = np.zeros((n_values, n_values))
    for block in probes:
        confidence = shares(block)
        total += cdist(confidence, confidence, "cityblock")
    np.fill_diagonal(total, 0)
    return total / len(probes)


def from_linkage(dissimilarity: np.ndarray, labels: Sequence[Label], method: str) -> Tree:
    """Dendrogram of values: a node is as far above its leaves as its height.

    An edge is the difference of the heights of its ends, so the distance of two leaves is twice
    the height at which they join.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    n = len(labels)
    if n < 2:  # a lone leaf, or, of sets that are all empty, a root alone
        return Tree(np.array([-1]), np.zeros(1), (*labels,) or ("",), "")
    steps = linkage(squareform(dissimilarity, checks=False), method)
    total = 2 * n - 1
    height = np.concatenate([np.zeros(n), np.maximum.accumulate(steps[:, 2])])
    above = np.full(total, -1)
    for i, (left, right) in enumerate(steps[:, :2].astype(int)):
        above[left] = above[right] = n + i
    # From the root down: scipy numbers the last merge highest, the tree wants parents first.
    number = total - 1 - np.arange(total)
    parents, weights = np.full(total, -1), np.zeros(total)
    parents[number[:-1]] = number[above[:-1]]
    weights[number[:-1]] = height[above[:-1]] - height[:-1]
    mark = "#"
    while any(isinstance(label, str) and label.startswith(mark) for label in labels):
        mark += "#"  # the names of inner nodes are nobody's value
    names = (*labels, *(f"{mark}{i}" for i in number[n:]))[::-1]
    return Tree(parents, weights, names, "")


# -- DRDH: a map by tree distances ----------------------------------------------------------------


@embedder(
    "drdh",
    "two-dimensional map by t-SNE from distances on trees of values",
    "Huang & Hsu",
    reads="mixed",
    offered="shell",
    page="distance-hierarchy",
)
class DRDH(TabularInput, TransformerMixin, Estimator):
    """Map the rows of a mixed table in two dimensions, by t-SNE on tree distances.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map.
    perplexity : float or "auto", default="auto"
        Roughly the number of neighbours that count for a row; three times as many are searched.
        "auto" is 30, or a third of the other rows if there are fewer.
    trees, linkage, schema
        As in :class:`DistanceHierarchy`.
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
    schema_
        As in :class:`~tabweave.OneHot`.

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
        n_iter: int = 500,
        schema: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.trees = trees
        self.linkage = linkage
        self.n_iter = n_iter
        self.schema = schema
        self.random_state = random_state

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the trees and compute the map of the rows.

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

        rows = TreeRows.of(read_fitted(hierarchy, X), hierarchy.space_, hierarchy.unknown)
        perplexity = self._resolved_perplexity(rows.shape[0])
        index = TreeIndex(rows, int(3 * perplexity))
        n_jobs = _jobs(rows.shape[0])
        affinities = affinity.PerplexityBasedNN(
            perplexity=perplexity, knn_index=index, n_jobs=n_jobs
        )
        seed = seed_of(self.random_state)
        start = _start(rows.coordinates(), int(self.n_components), seed, initialization)
        tsne = TSNE(
            n_components=int(self.n_components),
            n_iter=int(self.n_iter),
            negative_gradient_method="auto" if self.n_components <= 2 else "bh",
            n_jobs=n_jobs,
            random_state=seed,
        )
        self.map_ = np.array(tsne.fit(affinities=affinities, initialization=start))
        self._index = index
        self.hierarchy_, self.perplexity_ = hierarchy, perplexity
        self.schema_ = hierarchy.schema_
        remember_names(self, self.schema_)
        return self

    def _resolved_perplexity(self, n_rows: int) -> float:
        max_perplexity = (n_rows - 1) / 3
        if max_perplexity < 1:
            raise ValueError(f"expected at least 4 rows for a map, got n_samples={n_rows}")
        if isinstance(self.perplexity, str):
            return min(30.0, max_perplexity)
        if self.perplexity > max_perplexity:
            raise ValueError(
                f"perplexity={self.perplexity} needs {int(3 * self.perplexity) + 1} rows, but "
                f"there are {n_rows}; use at most {max_perplexity:.4g}, or 'auto'"
            )
        return float(self.perplexity)

    def _check_loaded(self) -> None:
        rows = getattr(self, "map_", np.zeros((0, 0)))
        if rows.ndim != 2 or rows.dtype.kind != "f" or not np.isfinite(rows).all():
            raise ValueError(f"expected a finite map, got {rows.dtype} of shape {rows.shape}")

    # -- using -----------------------------------------------------------------------------

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return the map of the rows."""
        return self.fit(X, y).map_.copy()

    def transform(self, X: Any) -> np.ndarray:
        """Project new rows on the map of the rows of fit."""
        check_is_fitted(self, "map_")
        hierarchy = self.hierarchy_
        rows = TreeRows.of(read_fitted(hierarchy, X), hierarchy.space_, hierarchy.unknown)
        if not rows.shape[0]:
            raise ValueError("expected at least one row to project, got none")
        n_neighbors = min(25, len(self.map_))
        perplexity = min(5.0, self.perplexity_)
        layout = _finished(self.map_, self._index)
        # Forces by interpolation depend on the whole batch; a few rows are projected one by one.
        max_single_rows = 5_000
        few = rows.shape[0] <= max_single_rows or self.n_components > 2
        partial = layout.prepare_partial(rows, k=n_neighbors, perplexity=perplexity)
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
        """``map0``, ``map1``, ... for the dimensions of the map."""
        check_is_fitted(self, "map_")
        self.hierarchy_.get_feature_names_out(input_features)
        return np.asarray([f"map{i}" for i in range(self.n_components)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags


# -- neighbours by tree distance -----------------------------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class TreeRows:
    """Rows by column: single values as codes with coordinates, numbers and sets as coordinates."""

    codes: list[np.ndarray]
    values: list[np.ndarray]
    line: np.ndarray

    @classmethod
    def of(cls, table: Table, space: Space, unknown: Any) -> TreeRows:
        """Look up the coordinates of a table's values."""
        codes, values, lines = [], [], [np.zeros((table.n_rows, 0))]
        for part in space.parts():
            if part.is_looked_up(table):
                data = table[part.names[0]]
                codes.append(data.codes)
                values.append(part.points(data, unknown))
            else:
                lines.append(part.coordinates(table, unknown=unknown))
        return cls(codes, values, np.hstack(lines))

    def _check_loaded(self) -> None:
        for codes, values in zip(self.codes, self.values, strict=True):
            check_codes(codes, len(values))
            if len(codes) != len(self.line):
                raise ValueError(f"expected {len(self.line)} codes, got {len(codes)}")

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns, as openTSNE asks for them."""
        return len(self.line), len(self.codes) + self.line.shape[1]

    def coordinates(self) -> np.ndarray:
        """Rows as vectors of float32."""
        parts = [v[c].astype(np.float32) for c, v in zip(self.codes, self.values, strict=True)]
        return np.ascontiguousarray(np.hstack([*parts, self.line.astype(np.float32)]))

    def copies(self) -> Copies:
        """Which rows are equal."""
        numbers = [np.unique(x, return_inverse=True)[1] for x in self.line.T]
        first, inverse = distinct_rows([*self.codes, *numbers])
        return Copies.of(inverse, first)

    def nodes(self, rows: np.ndarray) -> Nodes:
        """Some rows as a search sees them."""
        codes, widths = [c[rows] for c in self.codes], [len(v) for v in self.values]
        return Nodes.of(codes, widths, np.ascontiguousarray(self.line[rows].T), power=1)

    def queries(self, stored: TreeRows) -> Queries:
        """Rows as queries among stored ones."""
        pairs = zip(self.values, stored.values, strict=True)
        tables = [summed_differences(queried, found_in, 1) for queried, found_in in pairs]
        return Queries.of(self.codes, tables, self.line)


@storable
class TreeIndex(CacheNotSaved):
    """What openTSNE calls a KNNIndex, by tree distance.

    Parameters
    ----------
    rows : TreeRows
        The rows that are found.
    k : int
        Neighbours of each of them.
    """

    _cache: Any = None

    def __init__(self, rows: TreeRows, k: int) -> None:
        self.rows = rows
        self.k = k
        self.n_samples = rows.shape[0]

    def build(self) -> tuple[np.ndarray, np.ndarray]:
        """(indices, distances) of the rows' neighbours, without themselves."""
        distances, indices = without_self(self._nearest(self.rows, self.k + 1))
        return indices, distances

    def query(self, query: TreeRows, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(indices, distances) of the rows nearest to other rows."""
        distances, indices = self._nearest(query, k)
        return indices, distances

    def _nearest(self, asked: TreeRows, k: int) -> Ranking:
        if self._cache is None:
            copies = self.rows.copies()
            nodes = self.rows.nodes(copies.heads)
            self._cache = nodes, copies
        nodes, copies = self._cache
        return nearest_rows(nodes, copies, asked.queries(self.rows), k)


# -- openTSNE ------------------------------------------------------------------------------------


def _jobs(n_rows: int) -> int:
    """Threads for a layout; in a small one they only wait for each other."""
    return n_threads() if n_rows > 10_000 else 1


def _finished(positions: np.ndarray, index: TreeIndex) -> Any:
    """A finished layout as openTSNE has it: all that new rows need to be projected.

    Made anew for every use, since openTSNE moves it when it projects rows.
    """
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PerplexityBasedNN
    from scipy.sparse import csr_matrix

    affinities = PerplexityBasedNN.__new__(PerplexityBasedNN)  # its constructor would search again
    affinities.P = csr_matrix((index.n_samples, index.n_samples))
    affinities.knn_index, affinities.verbose, affinities.n_jobs = (
        index,
        False,
        _jobs(index.n_samples),
    )
    return TSNEEmbedding(
        positions,
        affinities,
        learning_rate="auto",
        theta=0.5,
        max_step_norm=5,
        n_jobs=affinities.n_jobs,
        verbose=False,
        callbacks=None,
        callbacks_every_iters=50,
    )


def _start(rows: np.ndarray, n_components: int, seed: int, initialization: Any) -> np.ndarray:
    """Where the layout starts: principal axes, or chance where there are none."""
    if min(rows.shape) > n_components and np.ptp(rows, axis=0).any():
        with one_blas_thread():  # the layout makes much of the last bit, which threads change
            return initialization.pca(rows, n_components=n_components, random_state=seed)
    return initialization.random(len(rows), n_components=n_components, random_state=seed)
