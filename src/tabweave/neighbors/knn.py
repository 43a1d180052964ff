"""WeightedKNN: neighbours that vote, under any measure of values, any embedder, or plain distance.

Neighbours are exact: every distance is a sum of lookups, in blocks that never grow with the number
of rows squared. On categories ties decide: by default everyone at the k-th distance votes. Weights
are those of Table 2 of Huang and Hsu.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, StrOptions
from tabweave.base import Embedder, Estimator, TabularInput, ValueEmbedder
from tabweave.columns.column import Column, Schema
from tabweave.columns.frames import DATETIMES
from tabweave.columns.nominal import check_codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import check_offsets
from tabweave.columns.table import (
    Table,
    canonical_codes,
    check_feature_names,
    distinct_rows,
    remember_names,
    require_rows,
    take_rows,
)
from tabweave.columns.targets import check_class_labels
from tabweave.columns.vocabulary import slices
from tabweave.embed.value_metric import fit_metric, read_asked, value_codes, value_lookups
from tabweave.io.register import storable
from tabweave.io.store import CacheNotSaved
from tabweave.neighbors.stored import LARGEST_COORDINATE
from tabweave.neighbors.votes import check_classes, check_length, checked_target
from tabweave.space.scan import Copies, Found, Nodes, Queries, nearest_rows, without_self

_WEIGHTS = ("none", "exp", "log", "org", "pow", "sqrt")
_BLOCK = 1 << 22  # distances held at a time: 32 MB


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
        as the coordinates of a map. "auto" is "euclidean" if all columns are numbers and none is
        whole, "hamming" if all are categories or whole numbers, else a distance hierarchy.
        Datetimes do not count as whole numbers.
    weights : {"none", "exp", "log", "org", "pow", "sqrt"}, default="none"
        Weight of a neighbour at distance d: 1, 1/e^d, or 1/(f(d) + 1) with f(d) one of ln(d + 1),
        d, d², √d.
    ties : {"all", "first"}, default="all"
        Who votes: everyone within the k-th smallest distance, so that results never depend on the
        order of rows; or exactly k rows, those that were stored first among equals.
    schema : Schema or mapping of column to kind, optional
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
        "weights": [StrOptions(set(_WEIGHTS))],
        "ties": [StrOptions({"all", "first"})],
        "schema": [Schema, dict, None],
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

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the training rows and fit the metric.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows. A measure of values reads every column as categories; what an embedder
            reads says its page.
        y : array-like
            A class for each row.
        """
        self._validate_params()
        labels = checked_target(y, type(self).__name__)
        check_class_labels(labels)
        table = self._fit_metric(X, labels)
        check_length(labels, table.n_rows)
        self.classes_, self._labels = np.unique(labels, return_inverse=True)
        check_classes(self.classes_)
        self._check_k(self.n_neighbors, table.n_rows)
        first, self._distinct = distinct_rows(canonical_codes(table))
        self._train = take_rows(table, first)
        self._copies = np.bincount(self._distinct)
        pairs = self._distinct * len(self.classes_) + self._labels
        present, self._numbers = np.unique(pairs, return_counts=True)
        owner, self._owned = np.divmod(present, len(self.classes_))
        self._starts = np.searchsorted(owner, np.arange(len(first) + 1))
        self._take_lookups()
        self.__dict__.pop("_cache", None)
        self._stored()
        return self

    def _check_loaded(self) -> None:
        if "_train" not in vars(self):
            return
        n_rows, n_classes, n_nodes = len(self._labels), len(self.classes_), self._train.n_rows
        check_codes(self._labels, n_classes)
        check_codes(self._distinct, n_nodes)
        check_codes(self._owned, n_classes)
        if self._distinct.shape != (n_rows,) or self._owned.shape != self._numbers.shape:
            raise ValueError(f"expected a class and a node for each of {n_rows} rows")
        if not np.array_equal(self._copies, np.bincount(self._distinct, minlength=n_nodes)):
            raise ValueError("expected the number of copies of each distinct row")
        check_offsets(self._starts, len(self._owned))
        if len(self._starts) != n_nodes + 1:
            raise ValueError(f"expected the classes of {n_nodes} distinct rows")
        if self._tables is not None:
            self._check_lookups(self._tables, n_nodes)

    def _check_lookups(self, tables: list[np.ndarray], n_nodes: int) -> None:
        if len(tables) != len(self._codes):
            raise ValueError(f"expected {len(tables)} columns of codes, got {len(self._codes)}")
        for codes, table in zip(self._codes, tables, strict=True):
            check_codes(codes, len(table))
            if codes.shape != (n_nodes,) or table.shape != (len(table), len(table)):
                raise ValueError(f"expected {n_nodes} codes and a square table of distances")

    def _fit_metric(self, X: Any, labels: np.ndarray) -> Table:
        """Fit the metric, or the one that "auto" stands for; return the rows as it reads them."""
        metric = self.metric
        if metric == "auto":
            metric, X = chosen_metric(X, self.schema)
        if metric == "euclidean":
            if self.schema is not None:
                raise ValueError("expected no schema for rows of numbers, got one")
            self.metric_ = PlainDistance()
            return self.metric_.fit(self, X)
        asked = copy(self)
        asked.metric = metric
        resolved = self.metric == "auto" and not isinstance(metric, str)  # it has the schema
        table = fit_metric(asked, X, labels, None, None if resolved else self.schema)
        for name in ("metric_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if name in vars(asked):
                setattr(self, name, vars(asked)[name])
        return table

    @staticmethod
    def _check_k(k: int, n_rows: int) -> None:
        if k > n_rows:
            raise ValueError(
                f"n_neighbors={k}, but there are n_samples={n_rows} training rows; "
                "ask for fewer neighbours"
            )

    def _take_lookups(self) -> None:
        """Keep the tables of the metric if distances are sums of lookups, else nothing."""
        self._tables: list[np.ndarray] | None = None
        if not isinstance(self.metric_, ValueEmbedder):
            return
        try:
            self._tables, self._root = value_lookups(self.metric_)
        except ValueError:
            return  # sets, sums of rows, ratios, pairs of columns: the metric knows how
        self._codes = value_codes(self.metric_, self._train)

    # -- using -----------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row."""
        chosen = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[chosen]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return each class's share of the votes."""
        from tabweave.space import kernels

        queries, inverse = self._read(X)
        kind = _WEIGHTS.index(self.weights)
        votes = np.zeros((queries.n_rows, len(self.classes_)))
        if self.ties == "first":
            distances, rows = self._nearest(queries, int(self.n_neighbors))
            kernels.vote_listed(distances, rows, self._labels, kind, votes)
        else:
            self._vote_all(queries, kind, votes)
        kernels.share_votes(votes)
        return votes[inverse]

    def _vote_all(self, table: Table, kind: int, votes: np.ndarray) -> None:
        """Let everyone within the k-th distance vote."""
        from tabweave.space.block import in_threads
        from tabweave.space.kernels import vote_all

        owned = (self._starts, self._owned, self._numbers, self._copies)
        k, arrays = int(self.n_neighbors), self._stored()[0].arrays()
        for start, queries in self._asked(table):
            target = votes[start : start + len(queries)]

            def work(block: slice, queries: Any = queries, target: Any = target) -> None:
                vote_all(queries.asked(block), arrays, owned, k, kind, target[block])

            size = max(1, min(16, _BLOCK // len(self._copies)))
            in_threads(work, slices(len(queries), 1, size))

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Return the nearest training rows of each row, by distance, then by index.

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
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
            raise ValueError(f"expected n_neighbors to be a whole number >= 1, got {k!r}")
        if X is None:
            self._check_k(k, len(self._labels) - 1)
            queries, inverse, more = self._train, self._distinct, 1
        else:
            self._check_k(k, len(self._labels))
            (queries, inverse), more = self._read(X), 0
        distances, rows = (part[inverse] for part in self._nearest(queries, int(k) + more))
        found = without_self((distances, rows)) if more else (distances, rows)
        return found if return_distance else found[1]

    def _read(self, X: Any) -> tuple[Table, np.ndarray]:
        """Return the distinct rows of X and the number of each row among them."""
        check_is_fitted(self, "classes_")
        plain = isinstance(self.metric_, PlainDistance)
        table = self.metric_.read(self, X) if plain else read_asked(self, X)
        first, inverse = distinct_rows(canonical_codes(table))
        return take_rows(table, first), inverse

    def _stored(self) -> tuple[Nodes, Copies]:
        """Return the training rows as a search sees them."""
        from tabweave.counts.counting import GROUP

        if "_cache" not in vars(self):
            n = self._train.n_rows
            none = np.zeros((0, n))
            if self._tables is None:  # distances come ready: one column, a value for each node
                nodes = Nodes.of([np.arange(n)], [n], none)
            else:  # joined as in pairwise_distances, so that sums are equal to the last bit
                widths = [len(table) for table in self._tables]
                nodes = Nodes.of(self._codes, widths, none, root=self._root, at_most=GROUP)
            heads = np.unique(self._distinct, return_index=True)[1]
            self._cache = nodes, Copies.of(self._distinct, heads)
        return self._cache

    def _asked(self, table: Table) -> Iterator[tuple[int, Queries]]:
        """Yield (number of the first, queries), all at once where distances are lookups."""
        if self._tables is not None:
            codes = value_codes(self.metric_, table)
            yield 0, Queries.of(codes, self._tables, np.zeros((table.n_rows, 0)))
            return
        step = max(1, min(512, _BLOCK // self._train.n_rows))
        for start in range(0, table.n_rows, step):
            rows = np.arange(start, min(start + step, table.n_rows))
            distances = self.metric_.pairwise_distances(take_rows(table, rows), self._train)
            yield start, Queries.of([rows - start], [distances], np.zeros((len(rows), 0)))

    def _nearest(self, table: Table, k: int) -> Found:
        """Return (distances, rows) of the k nearest training rows."""
        found = [nearest_rows(*self._stored(), queries, k) for _, queries in self._asked(table)]
        distances, rows = (np.vstack(parts) for parts in zip(*found, strict=True))
        return distances, rows


@storable
class PlainDistance:
    """Euclidean distance of rows of numbers, none of them missing."""

    schema_: Schema

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
            if not isinstance(cells, Numbers):
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

    def pairwise_distances(self, X: Table, Y: Table) -> np.ndarray:
        """Return the distances between the rows of two tables."""
        a, b = (_matrix(table) for table in (X, Y))
        return cdist(a, b)


def _matrix(table: Table) -> np.ndarray:
    return np.column_stack([cells.values for _, cells in table if isinstance(cells, Numbers)])


def chosen_metric(X: Any, schema: Any) -> tuple[Any, Any]:
    """Return what "auto" stands for, and the rows: numbers with fractions are no categories."""
    declared = Schema.of(schema)
    table = Table.of(X, declared)
    names = {column.name for column in declared.columns}
    dated = any(column.why == DATETIMES for column, _ in table)
    numbers = [
        column.name
        for column, cells in table
        if isinstance(cells, Numbers)
        and (column.name in names or column.why == DATETIMES or _has_fractions(cells.values))
    ]
    if not numbers:
        return "hamming", X
    if len(numbers) == len(table.columns) and schema is None and not dated:
        return "euclidean", X
    from tabweave.embed.hierarchy import DistanceHierarchy

    kinds = {column.name: column for column in declared.columns}
    for column, cells in table:
        numeric = column.name in numbers or not isinstance(cells, Numbers)
        kinds.setdefault(column.name, column if numeric else Column(column.name, "nominal"))
    return DistanceHierarchy(schema=Schema(tuple(kinds.values()))), X


def _has_fractions(values: np.ndarray) -> bool:
    return bool((np.nan_to_num(values) % 1 != 0).any())
