"""WeightedKNN: neighbours that vote, under any measure of values, any embedder, or plain distance.

Neighbours are exact, and found as those of a :class:`~tabweave.SimilarityIndex` are: distances add
up over columns, or come ready, in blocks that never grow with the number of rows squared. On
categories ties decide: by default everyone at the k-th distance votes. Weights are those of Table 2
of Huang and Hsu.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, StrOptions, in_threads, njit
from tabweave.base import Estimator, TabularInput
from tabweave.columns.column import Schema
from tabweave.columns.inputs import check_class_labels
from tabweave.columns.nominal import check_codes
from tabweave.columns.table import (
    Table,
    canonical_codes,
    check_feature_names,
    distinct_rows,
    remember_names,
    require_rows,
    take_rows,
)
from tabweave.columns.vocabulary import Unknown, slices
from tabweave.embed.base import Embedder
from tabweave.embed.hierarchy import DistanceHierarchy
from tabweave.embed.value_metric import fit_metric, read_asked
from tabweave.engines import class_types, probability_types, read_with_classes
from tabweave.engines.reading import by_parts
from tabweave.io.register import storable
from tabweave.io.store import CacheNotSaved
from tabweave.neighbors.stored import LARGEST_COORDINATE, check_whole_number
from tabweave.neighbors.votes import DISTANCE_ROUNDING, check_classes, check_length, checked_target
from tabweave.space.kernels import all_distances, kth_distances
from tabweave.space.scan import (
    Copies,
    Nodes,
    Queries,
    Ranking,
    View,
    check_comparable,
    nearest_rows,
    without_self,
)
from tabweave.space.space import Vectors

WEIGHTS = ("none", "exp", "log", "org", "pow", "sqrt")
NONE, EXP, LOG, ORG, POW, SQRT = range(len(WEIGHTS))
# Distances held at a time: 32 MB.
BLOCK_DISTANCES = 1 << 22


class KNNState(NamedTuple):
    """Training rows as a search sees them.

    Attributes
    ----------
    nodes, copies
        The distinct rows, and which rows each of them stands for.
    view : View or None
        The rows in the space of the metric, None where its distances do not add up over columns.
    class_rows : tuple of ndarray
        (starts, classes, numbers), as :func:`vote_within` reads them.
    """

    nodes: Nodes
    copies: Copies
    view: View | None
    class_rows: tuple[np.ndarray, ...]


@storable
class WeightedKNN(CacheNotSaved, TabularInput, ClassifierMixin, Estimator):
    """Classify rows by the weighted votes of their nearest neighbours.

    Identical rows are collapsed, in training and in queries, so cost depends on distinct rows.
    Equal votes go to the first class in sorted order.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours k.
    metric : str or embedder, default="auto"
        Name of a measure (see :class:`~tabweave.ValueMetric`) or any embedder, such as
        :class:`~tabweave.DistanceHierarchy`, fitted on the training rows and classes; one that is
        fitted already is used as it is. "euclidean" is the plain distance of rows of numbers, such
        as the coordinates of a map. "auto" is "euclidean" if all columns are numbers, "hamming" if
        all are categories, else a distance hierarchy.
    weights : {"none", "exp", "log", "org", "pow", "sqrt"}, default="none"
        Weight of a neighbour at distance d: 1, 1/e^d, or 1/(f(d) + 1) with f(d) one of ln(d + 1),
        d, d², √d.
    ties : {"all", "first"}, default="all"
        Who votes: everyone within the k-th smallest distance, so that results never depend on the
        order of rows; or exactly k rows, those that were stored first among equals.
    schema : Schema, mapping of column to kind, or kind, optional
        What the columns are, if the metric is a name; else give it to the metric.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    metric_ : embedder or PlainDistance
        The fitted metric.
    n_features_in_, feature_names_in_ : int, ndarray
        Number and names of the columns.

    Notes
    -----
    Huang and Hsu weigh by 1/f(d) with ``exp`` and by 1/(f(d) + 1) otherwise; their algorithm
    leaves ties open. Distances that differ by less than 1e-9 of their size count as equal.

    Examples
    --------
    >>> from tabweave.neighbors.knn import WeightedKNN
    >>> rows = [["a", "x"], ["a", "y"], ["b", "z"], ["b", "y"]]
    >>> model = WeightedKNN(1).fit(rows, ["no", "no", "yes", "yes"])
    >>> model.predict([["a", "z"], ["b", "x"], ["b", "z"]])
    array(['no', 'yes', 'yes'], dtype='<U3')
    >>> model.predict_proba([["a", "z"]])  # three rows are equally near
    array([[0.66666667, 0.33333333]])

    Categories and numbers together, nearer ones with more weight:

    >>> from tabweave import DistanceHierarchy
    >>> rows = {"fuel": ["gas", "oil", "gas", "coal"], "age": [1.5, 9.5, 2.5, 8.0]}
    >>> model = WeightedKNN(3, metric=DistanceHierarchy(), weights="exp")
    >>> model.fit(rows, ["new", "old", "new", "old"]).predict({"fuel": ["gas"], "age": [2.0]})
    array(['new'], dtype='<U3')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "metric": [str, Embedder],
        "weights": [StrOptions(set(WEIGHTS))],
        "ties": [StrOptions({"all", "first"})],
        "schema": [Schema, dict, str, None],
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        metric: str | Embedder = "auto",
        weights: str = "none",
        ties: str = "all",
        schema: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.weights = weights
        self.ties = ties
        self.schema = schema

    # -- learning --------------------------------------------------------------------------

    metric_: Any
    _train: Table  # the distinct rows, in canonical order
    _cache: KNNState | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the training rows and fit the metric.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows. Columns are read by their type, name and values, unless a schema says what
            they are: ``schema="nominal"`` takes all as categories.
        y : array-like
            A class for each row.
        """
        self._validate_params()
        X, y = read_with_classes(X, y)
        labels = checked_target(y, type(self).__name__)
        check_class_labels(labels)
        table = self._fit_metric(X, labels)
        check_length(labels, table.n_rows)
        self.classes_, self._labels = np.unique(labels, return_inverse=True)
        check_classes(self.classes_)
        self._check_k(self.n_neighbors, table.n_rows)
        first, self._distinct = distinct_rows(canonical_codes(table))
        self._train = take_rows(table, first)
        self._cache = None
        self._search_state()
        return self

    def _check_loaded(self) -> None:
        if not hasattr(self, "_train"):
            return
        check_codes(self._labels, len(self.classes_))
        check_codes(self._distinct, self._train.n_rows)
        if self._distinct.shape != self._labels.shape or self._labels.ndim != 1:
            raise ValueError(f"expected a class and a node for each of {len(self._labels)} rows")

    def _fit_metric(self, X: Any, labels: np.ndarray) -> Table:
        """Fit the metric, or the one that "auto" stands for; return the rows as it reads them."""
        metric = self.metric
        if metric == "auto":
            metric = chosen_metric(X, self.schema)
        if metric == "euclidean":
            if self.schema is not None:
                raise ValueError("expected no schema for rows of numbers, got one")
            self.metric_ = PlainDistance()
            return self.metric_.fit(self, X)
        is_resolved = self.metric == "auto" and not isinstance(metric, str)  # it has the schema
        return fit_metric(
            self, X, labels, schema=None if is_resolved else self.schema, metric=metric
        )

    @staticmethod
    def _check_k(k: int, n_rows: int) -> None:
        if k > n_rows:
            raise ValueError(
                f"n_neighbors={k}, but there are n_samples={n_rows} training rows; "
                "ask for fewer neighbours"
            )

    # -- using -----------------------------------------------------------------------------

    @by_parts(class_types)
    def predict(self, X: Any) -> np.ndarray:
        """Class of each row."""
        chosen = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[chosen]

    @by_parts(probability_types)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Each class's share of the votes."""
        queries, inverse = self._read(X)
        kind, k = WEIGHTS.index(self.weights), int(self.n_neighbors)
        votes = np.zeros((queries.n_rows, len(self.classes_)))
        if self.ties == "first":
            distances, rows = self._nearest(queries, k)
            vote_listed(distances, rows, self._labels, kind, votes)
        else:
            state = self._search_state()
            arrays, sizes = state.nodes.arrays(), state.copies.sizes(None)

            def work(block: Queries, block_votes: np.ndarray, run: slice) -> None:
                out = block_votes[run]
                distances, limits = np.empty((len(out), len(sizes))), np.empty(len(out))
                all_distances(block.arrays(run), arrays, distances)
                kth_distances(distances, sizes, k, limits)
                limits *= 1.0 + DISTANCE_ROUNDING
                vote_within(distances, limits, state.class_rows, kind, out)

            for start, block in self._queries(queries):
                runs = slices(len(block), 1, max(1, min(16, BLOCK_DISTANCES // len(sizes))))
                block_votes = votes[start : start + len(block)]
                in_threads(partial(work, block, block_votes), runs)
        return shared_votes(votes)[inverse]

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Nearest training rows of each row, by distance, then by index.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts, optional
            The rows; without it the training rows, each without itself.
        n_neighbors : int, optional
            How many; as in the constructor if not given.
        return_distance : bool, default=True
            Whether distances are returned, too.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Only if ``return_distance``.
        indices : ndarray of shape (n_queries, n_neighbors)
            Numbers of the training rows.
        """
        check_is_fitted(self, "classes_")
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        check_whole_number("n_neighbors", k)
        if X is None:
            self._check_k(k, len(self._labels) - 1)
            queries, inverse = self._train, self._distinct
        else:
            self._check_k(k, len(self._labels))
            queries, inverse = self._read(X)
        nearest = self._nearest(queries, int(k) + (X is None))
        distances, rows = (part[inverse] for part in nearest)
        if X is None:
            distances, rows = without_self((distances, rows))
        return (distances, rows) if return_distance else rows

    def _read(self, X: Any) -> tuple[Table, np.ndarray]:
        """Distinct rows of X and the number of each row among them."""
        check_is_fitted(self, "classes_")
        if isinstance(self.metric_, PlainDistance):
            table = self.metric_.read(self, X)
        else:
            table = read_asked(self, X)
        first, inverse = distinct_rows(canonical_codes(table))
        return take_rows(table, first), inverse

    def _search_state(self) -> KNNState:
        """Training rows as a search sees them."""
        if self._cache is None:
            view, n_classes = self._view(), len(self.classes_)
            if view is None:  # distances come ready: one column, a value for each node
                n_rows = self._train.n_rows
                nodes = Nodes.of([np.arange(n_rows)], [n_rows], np.zeros((0, n_rows)))
                node_of = self._distinct
            else:
                nodes, node_of = view.nodes, view.copies.node_of[self._distinct]
            counts = csr_array(
                (np.ones(len(self._labels)), (node_of, self._labels)), (len(nodes), n_classes)
            )
            counts.sum_duplicates()
            copies = Copies.of(node_of, np.unique(node_of, return_index=True)[1])
            class_rows = counts.indptr, counts.indices, counts.data
            self._cache = KNNState(nodes, copies, view, class_rows)
        return self._cache

    def _view(self) -> View | None:
        """Distinct training rows in the space of the metric; None if its distances do not add up.

        Roots are compared, so that distances that are equal but for rounding are equal.
        """
        metric = self.metric_
        if isinstance(metric, Embedder):
            metric.learn()
        try:
            space = metric.space_
            check_comparable(take_rows(self._train, np.arange(0)), space, metric.unknown)
        except ValueError:  # ratios, pairs of columns
            return None
        return View(self._train, space, metric.unknown, root=True)

    def _queries(self, table: Table) -> Iterator[tuple[int, Queries]]:
        """Yield (number of the first, queries), all at once where distances add up."""
        view = self._search_state().view
        if view is not None:
            yield 0, view.queries(table)
            return
        step = max(1, min(512, BLOCK_DISTANCES // self._train.n_rows))
        for start in range(0, table.n_rows, step):
            rows = np.arange(start, min(start + step, table.n_rows))
            distances = self.metric_.pairwise_distances(take_rows(table, rows), self._train)
            yield start, Queries.of([rows - start], [distances], np.zeros((len(rows), 0)))

    def _nearest(self, table: Table, k: int) -> Ranking:
        """Distances and rows of the k nearest training rows."""
        nodes, copies, *_ = self._search_state()
        parts = [nearest_rows(nodes, copies, queries, k) for _, queries in self._queries(table)]
        distances, rows = (np.vstack(part) for part in zip(*parts, strict=True))
        return distances, rows


@storable
class PlainDistance:
    """Euclidean distance of rows of numbers, none of them missing."""

    schema_: Schema
    unknown: Unknown = "error"

    @property
    def space_(self) -> Vectors:
        """The numbers as they are."""
        return Vectors(self.schema_.names)

    def fit(self, task: Any, X: Any) -> Table:
        """Take the columns of training rows."""
        table = self._numbers(Table.of(X))
        require_rows(table)
        self.schema_ = table.schema
        remember_names(task, table.schema)
        return table

    def read(self, task: Any, X: Any) -> Table:
        """Read rows with the columns of training, checked as scikit-learn does."""
        if not isinstance(X, Mapping | list | tuple | Table):
            check_feature_names(task, X, self.schema_)
        table = self._numbers(Table.of(X, self.schema_))
        require_rows(table)
        return table

    @staticmethod
    def _numbers(table: Table) -> Table:
        for column, cells in table:
            if not column.is_continuous:
                raise ValueError(
                    f"column {column.name!r}: expected numbers for the euclidean distance, got "
                    "categories; use metric=DistanceHierarchy()"
                )
            if not np.isfinite(cells.values).all():
                row = int(np.argmin(np.isfinite(cells.values)))
                raise ValueError(
                    f"column {column.name!r}: expected numbers, got NaN or infinity in row {row}; "
                    "fill it or drop the row"
                )
            if np.abs(cells.values).max(initial=0.0) > LARGEST_COORDINATE:
                largest = np.abs(cells.values).max()
                raise ValueError(
                    f"column {column.name!r}: expected numbers up to {LARGEST_COORDINATE:g}, whose "
                    f"squares are numbers, got {largest:.3g}; give it in another unit"
                )
        return table


def chosen_metric(X: Any, schema: Any) -> Any:
    """What "auto" stands for: categories alone, numbers alone, or both."""
    table = Table.of(X, schema, rules="whole")
    columns = table.schema.columns
    if not any(column.is_continuous for column in columns):
        return "hamming"
    plain = all(column.kind == "numeric" and column.format is None for column in columns)
    if plain and schema is None and not table.schema.dropped:
        return "euclidean"
    return DistanceHierarchy(schema=schema)


# -- votes ---------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def weight_of(distance, kind, nearest):
    """Weight of a neighbour: 1/e^d, 1/(f(d) + 1), or 1.

    With ``exp`` distances count from the nearest neighbour: votes keep their proportions, and far
    away from everything they do not all underflow to 0.
    """
    if kind == EXP:
        return math.exp(nearest - distance)
    if kind == LOG:
        return 1.0 / (math.log(distance + 1.0) + 1.0)
    if kind == ORG:
        return 1.0 / (distance + 1.0)
    if kind == POW:
        return 1.0 / (distance * distance + 1.0)
    if kind == SQRT:
        return 1.0 / (math.sqrt(distance) + 1.0)
    return 1.0


@njit(nogil=True, cache=True)
def vote_within(distances, limits, class_rows, kind, votes):
    """Add the votes of every row within a limit.

    ``class_rows`` is (starts, classes, numbers): node u stands for ``numbers[j]`` rows of class
    ``classes[j]``, j from ``starts[u]`` to ``starts[u + 1]``. Nodes vote in their order, which is
    canonical, so sums never depend on storage.
    """
    starts, classes, numbers = class_rows
    for i in range(len(votes)):
        row, nearest = distances[i], distances[i].min()
        last, weight = -1.0, 0.0
        for u in range(len(row)):
            if row[u] > limits[i]:
                continue
            if row[u] != last:
                last, weight = row[u], weight_of(row[u], kind, nearest)
            for j in range(starts[u], starts[u + 1]):
                votes[i, classes[j]] += weight * numbers[j]


@njit(nogil=True, cache=True)
def vote_listed(distances, rows, labels, kind, votes):
    """Add the votes of listed neighbours."""
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            weight = weight_of(distances[i, j], kind, distances[i, 0])
            votes[i, labels[rows[i, j]]] += weight


def shared_votes(votes: np.ndarray) -> np.ndarray:
    """Shares of votes, of which those that differ by rounding are made equal."""
    largest = votes.max(axis=1, keepdims=True)
    votes = np.where(votes >= largest * (1.0 - DISTANCE_ROUNDING), largest, votes)
    return votes / votes.cumsum(axis=1)[:, -1:]
