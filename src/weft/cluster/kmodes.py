"""KModes: clusters of categories, under any measure of values. [Huang 1998; Zhu 2019, 4.4.1]

Rows go to the nearest of k centres, centres become what their rows have most of, until nothing
changes. Works on distinct rows with multiplicities and one lookup per row, column and centre.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from weft import _labels, _rows
from weft._base import ValueEmbedder
from weft.cluster import _starts
from weft.counts import _checked_weight
from weft.table import Table

_CENTERS = ("mode", "medoid", "distribution")
_UNKNOWN = "<unknown>"


class KModes(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Cluster rows of categories around k centres.

    Identical rows are collapsed first, so cost depends on the number of distinct rows, and results
    do not depend on the order of rows. Missing is a value of its own.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters; at most the number of distinct rows.
    metric : str or ValueEmbedder, default="hamming"
        Name of a measure (see :class:`~weft.ValueMetric`) or an embedder, fitted on X; an embedder
        that is fitted already is used as it is. Set-valued columns and measures without one table
        per column are refused.
    init : {"random", "huang", "cao"} or array-like of shape (n_clusters, n_features)
        First centres: random rows, rows near to values drawn by frequency, dense rows far from
        each other, or the given ones. The last two are deterministic: one start.
    n_init : int, default=10
        Number of starts; the one with the lowest cost is kept.
    max_iter : int, default=100
        Most steps of a start.
    centers : {"mode", "medoid", "distribution"}, default="mode"
        What stands for a cluster in each column: its most frequent value (as in the papers; the
        first of equals), the value nearest to its members', or all their values (a row's distance
        to the centre is then its mean distance to the members).
    feature_weights : array-like or dict of column to weight, optional
        Weights of the columns in the distance; columns absent from a dict weigh 1.
    random_state : int, RandomState or None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row.
    cluster_centers_ : ndarray of object, or list of dicts
        The values of each centre; with ``centers="distribution"``, per cluster and column the
        share of each value.
    cost_ : float
        Sum of the distances to the own centres; of their squares if the metric is Euclidean.
    n_iter_ : int
        Steps of the start that was kept; batches after :meth:`partial_fit`.
    metric_ : ValueEmbedder
        The fitted metric.
    n_features_in_, feature_names_in_ : int, ndarray
        Number and names of the columns.

    Examples
    --------
    >>> from weft.cluster import KModes
    >>> from weft import OneHot
    >>> rows = [["a", "x"], ["a", "y"], ["b", "z"], ["b", "z"]]
    >>> model = KModes(2, metric=OneHot(), random_state=0).fit(rows)
    >>> sorted(model.cluster_centers_.tolist())
    [['a', 'x'], ['b', 'z']]
    >>> model.predict([["b", "y"], ["b", "z"]]) == model.labels_[2]
    array([ True,  True])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: str | ValueEmbedder = "hamming",
        init: Any = "random",
        n_init: int = 10,
        max_iter: int = 100,
        centers: str = "mode",
        feature_weights: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.centers = centers
        self.feature_weights = feature_weights
        self.random_state = random_state

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find clusters.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows; every column is read as categories.
        y : array-like, optional
            Classes, for the measures that learn from them; ignored by all others.
        sample_weight : array-like, optional
            A weight for each row: 2 is the same as having the row twice, 0 as not having it.
        """
        from weft.cluster import _kmodes_kernels as kernels

        self._check_parameters()
        self.metric_ = _rows.fit_metric(self.metric, X, y, sample_weight)
        table = _rows.read_rows(self, X, reset=True)
        weight = _checked_weight(sample_weight, table.n_rows)
        self._take_lookups()
        places, weights, inverse = self._distinct(table, weight)
        firsts = self._first_histograms(places[weights > 0], weights[weights > 0])
        seen, heavy = np.ascontiguousarray(places[weights > 0]), weights[weights > 0]
        kind = _CENTERS.index(self.centers)

        def start(histogram: np.ndarray) -> tuple[float, int]:
            return kernels.run(seen, heavy, *self._layout, kind, self.max_iter, histogram)

        with ThreadPoolExecutor(kernels.n_threads()) as pool:
            results = list(pool.map(start, firsts))
        best = min(range(len(results)), key=lambda i: results[i][0])
        self.n_iter_ = max(1, results[best][1])
        self._place_centers(firsts[best])
        self._members = np.zeros_like(firsts[best])
        self._settle(places, weights, inverse)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on with a batch of rows.

        The first batch is clustered as by :meth:`fit`. Of later ones every row joins its nearest
        centre, its values are added to that cluster's value counts, and the centres are taken from
        the counts of all batches. A metric that was fitted here learns from the batch first; new
        values join the vocabulary. ``labels_`` and ``cost_`` are those of the batch.
        """
        if "_members" not in vars(self):
            return self.fit(X, y, sample_weight)
        self._check_parameters()
        table = _rows.read_rows(self, X, reset=False)
        weight = _checked_weight(sample_weight, table.n_rows)
        if self.metric_ is not self.metric:
            known = self.metric_.counts_.labels
            self.metric_.partial_fit(table, y, sample_weight)
            labels = self.metric_.counts_.labels
            self._members = _respread(self._members, known, labels)
            self._centers = _respread(self._centers, known, labels)
            self._take_lookups()
            self._place_centers(self._centers)
        self._settle(*self._distinct(table, weight))
        filled = self._members.any(axis=1, keepdims=True)
        self._place_centers(np.where(filled, self._members, self._centers))
        self.n_iter_ += 1
        return self

    def _check_parameters(self) -> None:
        for name in ("n_clusters", "n_init", "max_iter"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name}={value!r}: use a whole number >= 1")
        if self.centers not in _CENTERS:
            raise ValueError(f"centers={self.centers!r}: use one of {', '.join(_CENTERS)}")
        if isinstance(self.init, str) and self.init not in ("random", "huang", "cao"):
            raise ValueError(f"init={self.init!r}: use 'random', 'huang', 'cao' or an array")

    def _take_lookups(self) -> None:
        """Keep the tables of the metric, weighted, in one flat array; columns end to end."""
        try:
            tables, self._root = _rows.value_lookups(self.metric_)
        except (ValueError, NotImplementedError) as error:
            raise ValueError(
                f"k-modes needs a metric with one table of values per column: {error}"
            ) from error
        names = self.metric_.counts_.names
        weights = _starts.column_weights(self.feature_weights, names)
        sizes = [len(table) for table in tables]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        flat = np.concatenate([w * t.ravel() for w, t in zip(weights, tables, strict=True)])
        starts = np.concatenate([[0], np.cumsum([s * s for s in sizes])]).astype(np.int64)
        self._layout = (offsets, flat, starts)

    def _distinct(
        self, table: Table, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the places of the distinct rows, their weights, and the number of each row."""
        codes = _rows.value_codes(self.metric_, table)
        first, inverse = _rows.distinct_rows(codes)
        places = np.stack([c[first] for c in codes], axis=1) + self._layout[0][:-1]
        weights = np.bincount(inverse, weights=weight, minlength=len(first)).astype(np.float64)
        return np.ascontiguousarray(places, np.int32), weights, inverse

    def _first_histograms(self, places: np.ndarray, weight: np.ndarray) -> list[np.ndarray]:
        """Return, per start, the centres as histograms of one row each."""
        k, offsets = self.n_clusters, self._layout[0]
        if k > len(places):
            raise ValueError(
                f"n_clusters={k}, but there are {len(places)} distinct rows (n_samples="
                f"{int(weight.sum())}); ask for fewer clusters"
            )
        if not isinstance(self.init, str):
            return [self._as_histogram(self._given_centers() + offsets[:-1])]
        rng = check_random_state(self.random_state)
        if self.init == "random":
            rows = [_starts.random_rows(weight, k, rng) for _ in range(self.n_init)]
            return [self._as_histogram(places[chosen]) for chosen in rows]
        codes = places - offsets[:-1]

        def distances(centers: np.ndarray) -> np.ndarray:
            return self._distances(places, self._as_histogram(centers + offsets[:-1]))

        if self.init == "cao":
            rows = [_starts.cao(codes, weight, k, distances)]
        else:
            rows = [_starts.huang(codes, weight, k, rng, distances) for _ in range(self.n_init)]
        return [self._as_histogram(places[chosen]) for chosen in rows]

    def _given_centers(self) -> np.ndarray:
        table = self.metric_._read(self.init, self.metric_.schema_)
        if table.n_rows != self.n_clusters:
            raise ValueError(f"init has {table.n_rows} rows for n_clusters={self.n_clusters}")
        return np.stack(_rows.value_codes(self.metric_, table), axis=1).astype(np.int64)

    def _as_histogram(self, places: np.ndarray) -> np.ndarray:
        histogram = np.zeros((len(places), self._layout[0][-1]))
        np.put_along_axis(histogram, places.astype(np.int64), 1.0, axis=1)
        return histogram

    def _distances(self, places: np.ndarray, histogram: np.ndarray) -> np.ndarray:
        from weft.cluster import _kmodes_kernels as kernels

        return kernels.all_distances(places, self._reach_of(histogram))

    def _reach_of(self, histogram: np.ndarray) -> np.ndarray:
        from weft.cluster import _kmodes_kernels as kernels

        reach = np.empty(histogram.shape[::-1])
        kernels.reach_of(histogram, *self._layout, _CENTERS.index(self.centers), reach)
        return reach

    def _place_centers(self, histogram: np.ndarray) -> None:
        """Take the centres from one histogram of values per cluster."""
        from weft.cluster import _kmodes_kernels as kernels

        self._centers = histogram
        self._reach = self._reach_of(histogram)
        self._n_features_out = len(histogram)
        names, labels = self.metric_.counts_.names, self.metric_.counts_.labels
        if self.centers == "distribution":
            self.cluster_centers_: Any = _shares(histogram, self._layout[0], names, labels)
            return
        values = np.empty((len(histogram), len(names)), np.int64)
        kind = _CENTERS.index(self.centers)
        kernels.chosen_values(histogram, *self._layout, kind, values)
        self.cluster_centers_ = np.empty(values.shape, dtype=object)
        for a, column in enumerate(labels):
            self.cluster_centers_[:, a] = [(*column, _UNKNOWN)[v] for v in values[:, a]]

    def _settle(self, places: np.ndarray, weights: np.ndarray, inverse: np.ndarray) -> None:
        """Assign rows to the centres and count their values."""
        from weft.cluster import _kmodes_kernels as kernels

        labels, distances = kernels.nearest(places, self._reach)
        self.labels_ = labels[inverse]
        self.cost_ = float(weights @ distances)
        kernels.add_values(places, weights, labels, self._members)

    # -- using -----------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Return the nearest centre of each row; an unknown value is as far as the metric says."""
        from weft.cluster import _kmodes_kernels as kernels

        check_is_fitted(self, "cluster_centers_")
        places, _, inverse = self._distinct(_rows.read_rows(self, X, reset=False), None)
        return kernels.nearest(places, self._reach)[0][inverse]

    def transform(self, X: Any) -> np.ndarray:
        """Return the distance of each row to each centre."""
        from weft.cluster import _kmodes_kernels as kernels

        check_is_fitted(self, "cluster_centers_")
        places, _, inverse = self._distinct(_rows.read_rows(self, X, reset=False), None)
        distances = kernels.all_distances(places, self._reach)
        return (np.sqrt(np.maximum(distances, 0)) if self._root else distances)[inverse]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _respread(histogram: np.ndarray, known: Any, labels: Any) -> np.ndarray:
    """Carry value counts over to a larger vocabulary; unknown stays unknown."""
    parts, start = [], 0
    for old, new in zip(known, labels, strict=True):
        part = np.zeros((len(histogram), len(new) + 1))
        part[:, _labels.positions(new, old)] = histogram[:, start : start + len(old)]
        part[:, -1] += histogram[:, start + len(old)]
        start += len(old) + 1
        parts.append(part)
    return np.concatenate(parts, axis=1)


def _shares(histogram: np.ndarray, offsets: np.ndarray, names: Any, labels: Any) -> list[dict]:
    """Return, per cluster and column, the share of each value that occurs."""
    out = []
    for row in histogram:
        center = {}
        for a, name in enumerate(names):
            counts = row[offsets[a] : offsets[a + 1]] / row[offsets[a] : offsets[a + 1]].sum()
            values = zip((*labels[a], _UNKNOWN), counts.tolist(), strict=True)
            center[name] = {value: share for value, share in values if share > 0}
        out.append(center)
    return out
