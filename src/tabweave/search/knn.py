"""WeightedKNN: neighbours that vote, under any measure of values [004, section 3.3].

Neighbours are exact: every distance is a sum of lookups, in blocks that never grow with the number
of rows squared. On categories ties decide: by default everyone at the k-th distance votes.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from tabweave.base import ValueEmbedder
from tabweave.io.register import storable
from tabweave.io.store import Storable
from tabweave.rows.table import Table, canonical_codes, distinct_rows, take_rows
from tabweave.rows.vocabulary import canonical
from tabweave.search.metric import fit_metric, read_rows, value_codes, value_lookups

_WEIGHTS = ("none", "exp", "log", "org", "pow", "sqrt")
_BLOCK = 1 << 22  # distances held at a time: 32 MB


@storable
class WeightedKNN(Storable, ClassifierMixin, BaseEstimator):
    """Classify rows by the weighted votes of their nearest neighbours.

    Identical rows are collapsed, in training and in queries, so cost depends on distinct rows.
    Equal votes go to the first class in sorted order.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours k.
    metric : str or ValueEmbedder, default="hamming"
        Name of a measure (see :class:`~tabweave.ValueMetric`) or an embedder, fitted on the training
        rows and classes; an embedder that is fitted already is used as it is.
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
    metric_ : ValueEmbedder
        The fitted metric.
    n_features_in_, feature_names_in_ : int, ndarray
        Number and names of the columns.

    Notes
    -----
    As printed, 004 weighs by 1/f(d) with ``exp`` and 1/(f(d) + 1) otherwise; its algorithm leaves
    ties open. Distances that differ by less than 1e-9 of their size count as equal.

    Examples
    --------
    >>> from tabweave.search.knn import WeightedKNN
    >>> rows = [["a", "x"], ["a", "y"], ["b", "z"], ["b", "y"]]
    >>> model = WeightedKNN(1).fit(rows, ["no", "no", "yes", "yes"])
    >>> model.predict([["a", "z"], ["b", "x"], ["b", "z"]])
    array(['no', 'yes', 'yes'], dtype='<U3')
    >>> model.predict_proba([["a", "z"]])  # three rows are equally near
    array([[0.66666667, 0.33333333]])
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        metric: str | ValueEmbedder = "hamming",
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

    metric_: ValueEmbedder

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the training rows and fit the metric.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows; every column is read as categories.
        y : array-like
            A class for each row.
        """
        self._check_parameters()
        labels = _checked_classes(y)
        table = fit_metric(self, X, labels, None, self.schema)
        if len(labels) != table.n_rows:
            raise ValueError(f"y has {len(labels)} labels for {table.n_rows} rows of X")
        self.classes_, self._labels = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only, {self.classes_[0]!r}; a classifier needs two or more"
            )
        self._check_k(self.n_neighbors, table.n_rows)
        first, self._distinct = distinct_rows(canonical_codes(table))
        self._train = take_rows(table, first)
        self._copies = np.bincount(self._distinct)
        pairs = self._distinct * len(self.classes_) + self._labels
        present, self._numbers = np.unique(pairs, return_counts=True)
        owner, self._owned = np.divmod(present, len(self.classes_))
        self._starts = np.searchsorted(owner, np.arange(len(first) + 1))
        self._take_lookups()
        return self

    def _check_parameters(self) -> None:
        k = self.n_neighbors
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
            raise ValueError(f"n_neighbors={k!r}: use a whole number >= 1")
        if self.weights not in _WEIGHTS:
            raise ValueError(f"weights={self.weights!r}: use one of {', '.join(_WEIGHTS)}")
        if self.ties not in ("all", "first"):
            raise ValueError(f"ties={self.ties!r}: use 'all' or 'first'")

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
        """Return each class's share in the votes."""
        from tabweave.blocks.kernels import in_threads
        from tabweave.search import kernels

        queries, inverse = self._read(X)
        kind, k = _WEIGHTS.index(self.weights), int(self.n_neighbors)
        votes = np.zeros((queries.n_rows, len(self.classes_)))
        if self.ties == "first":
            distances, indices = self._nearest(queries, k)
            kernels.vote_listed(distances, indices, self._labels, kind, votes)
        else:
            owned = (self._starts, self._owned, self._numbers, self._copies)
            for start, block in self._distances(queries):
                target = votes[start : start + len(block)]

                def work(rows: slice, block: Any = block, target: Any = target) -> None:
                    kernels.vote_all(block[rows], *owned, k, kind, target[rows])

                in_threads(work, _slices(len(block)))
        kernels.settle_ties(votes)
        return votes[inverse]

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
            raise ValueError(f"n_neighbors={k!r}: use a whole number >= 1")
        if X is None:
            self._check_k(k, len(self._labels) - 1)
            distances, indices = self._others(int(k))
        else:
            self._check_k(k, len(self._labels))
            queries, inverse = self._read(X)
            distances, indices = (part[inverse] for part in self._nearest(queries, int(k)))
        return (distances, indices) if return_distance else indices

    def _read(self, X: Any) -> tuple[Table, np.ndarray]:
        """Return the distinct rows of X and the number of each row among them."""
        check_is_fitted(self, "classes_")
        table = read_rows(self, X)
        first, inverse = distinct_rows(canonical_codes(table))
        return take_rows(table, first), inverse

    def _distances(self, queries: Table) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first query, distances to the distinct training rows), block by block."""
        from tabweave.blocks.kernels import sum_of_lookups

        n_train = self._train.n_rows
        step = max(1, min(512, _BLOCK // n_train))
        codes = value_codes(self.metric_, queries) if self._tables else []
        buffer = np.empty((min(step, queries.n_rows), n_train))
        for start in range(0, queries.n_rows, step):
            rows = np.arange(start, min(start + step, queries.n_rows))
            if self._tables is None:
                part = take_rows(queries, rows)
                yield (
                    start,
                    np.ascontiguousarray(self.metric_.pairwise_distances(part, self._train)),
                )
                continue
            block = buffer[: len(rows)]
            sum_of_lookups([c[rows] for c in codes], self._codes, self._tables, block)
            if self._root:
                np.sqrt(np.maximum(block, 0, out=block), out=block)
            yield start, block

    def _nearest(self, queries: Table, k: int) -> tuple[np.ndarray, np.ndarray]:
        from tabweave.blocks.kernels import in_threads
        from tabweave.search import kernels

        distances = np.empty((queries.n_rows, k))
        indices = np.empty((queries.n_rows, k), np.int64)
        for start, block in self._distances(queries):

            def work(rows: slice, block: Any = block, start: int = start) -> None:
                to = slice(start + rows.start, start + rows.stop)
                kernels.nearest_rows(block[rows], self._distinct, k, distances[to], indices[to])

            in_threads(work, _slices(len(block)))
        return distances, indices

    def _others(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the neighbours of the training rows, each without itself."""
        distances, indices = (part[self._distinct] for part in self._nearest(self._train, k + 1))
        own = indices == np.arange(len(indices))[:, None]
        own[~own.any(axis=1), -1] = True  # more copies than neighbours: it is not among them
        shape = (len(indices), k)
        return distances[~own].reshape(shape), indices[~own].reshape(shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        # Numbers are read as categories: neighbours in value mean nothing.
        tags.classifier_tags.poor_score = True
        return tags


def _slices(n: int, size: int = 16) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _checked_classes(y: Any) -> np.ndarray:
    """Return the classes as an array; say which row has none."""
    if y is None:
        raise ValueError("WeightedKNN requires y to be passed, but the target y is None")
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise ValueError(
            f"Input y contains NaN or infinity: row {row} is {labels[row]}; drop the row or give "
            "it a class"
        )
    if labels.dtype.kind == "O":
        for row, label in enumerate(labels.tolist()):
            if canonical(label) is None:
                raise ValueError(f"y of row {row} is missing; drop the row or give it a class")
    check_classification_targets(labels)
    return labels
