"""KModes: clusters of categories under any measure of values [Huang 1998; Zhu 2019, 4.4.1].

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

from weft import _rows
from weft._base import ValueEmbedder
from weft._input import TabularInput
from weft._store import Storable
from weft.cluster import _starts
from weft.cluster._centers import CENTERS, Layout
from weft.counts import _checked_weight


class KModes(
    Storable,
    TabularInput,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
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

    Notes
    -----
    No step raises the cost under Hamming distance with modes, nor under any measure with medoids.
    Modes under other measures and distributions carry no such promise: a start then ends after
    three steps without gain, at the best centres seen. Empty clusters take the farthest row.

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

    metric_: ValueEmbedder

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
        from weft._count_kernels import n_threads

        self._check_parameters()
        table = _rows.fit_metric(self, X, y, sample_weight)
        self._layout = Layout.of(self.metric_, self.feature_weights, self.centers)
        weight = _checked_weight(sample_weight, table.n_rows)
        places, weights, inverse = self._layout.distinct(table, weight)
        seen, heavy = places[weights > 0], weights[weights > 0]
        firsts = self._first_centers(seen, heavy)

        def start(histogram: np.ndarray) -> tuple[float, int]:
            return self._layout.run(seen, heavy, histogram, self.max_iter)

        with ThreadPoolExecutor(n_threads()) as pool:
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
        table = _rows.read_rows(self, X)
        weight = _checked_weight(sample_weight, table.n_rows)
        if self.metric_ is not self.metric:
            known = self._layout.labels
            self.metric_.partial_fit(table, y, sample_weight)
            self._layout = Layout.of(self.metric_, self.feature_weights, self.centers)
            self._members = self._layout.respread(self._members, known)
            self._place_centers(self._layout.respread(self._centers, known))
        self._settle(*self._layout.distinct(table, weight))
        filled = self._members.any(axis=1, keepdims=True)
        self._place_centers(np.where(filled, self._members, self._centers))
        self.n_iter_ += 1
        return self

    def _check_parameters(self) -> None:
        for name in ("n_clusters", "n_init", "max_iter"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name}={value!r}: use a whole number >= 1")
        if self.centers not in CENTERS:
            raise ValueError(f"centers={self.centers!r}: use one of {', '.join(CENTERS)}")
        if isinstance(self.init, str) and self.init not in ("random", "huang", "cao"):
            raise ValueError(f"init={self.init!r}: use 'random', 'huang', 'cao' or an array")

    def _first_centers(self, places: np.ndarray, weight: np.ndarray) -> list[np.ndarray]:
        """Return, per start, the centres as histograms of one row each."""
        k, layout = self.n_clusters, self._layout
        if k > len(places):
            raise ValueError(
                f"n_clusters={k}, but there are {len(places)} distinct rows (n_samples="
                f"{weight.sum():g}); ask for fewer clusters"
            )
        if not isinstance(self.init, str):
            given = layout.places(self.metric_._read(self.init, self.metric_.schema_))
            if len(given) != k:
                raise ValueError(f"init has {len(given)} rows for n_clusters={k}")
            return [layout.histogram(given)]
        rng = check_random_state(self.random_state)

        def reach(centers: np.ndarray) -> np.ndarray:
            return layout.reach(layout.histogram(centers))

        if self.init == "cao":
            rows = [_starts.cao(places, weight, k, reach)]
        elif self.init == "huang":
            rows = [_starts.huang(places, weight, k, rng, reach) for _ in range(self.n_init)]
        else:
            rows = [_starts.random_rows(weight, k, rng) for _ in range(self.n_init)]
        return [layout.histogram(places[chosen]) for chosen in rows]

    def _place_centers(self, histogram: np.ndarray) -> None:
        """Take the centres from one histogram of values per cluster."""
        self._centers = histogram
        self._reach = self._layout.reach(histogram)
        self._n_features_out = len(histogram)
        self.cluster_centers_: Any = self._layout.centers(histogram)

    def _settle(self, places: np.ndarray, weights: np.ndarray, inverse: np.ndarray) -> None:
        """Assign rows to the centres and count their values."""
        from weft.cluster import _kmodes_kernels as kernels

        labels, distances = kernels.nearest(places, self._reach)
        self.labels_ = labels[inverse]
        self.cost_ = float(kernels.total_cost(weights, distances))
        kernels.add_values(places, weights, labels, self._members)

    # -- using -----------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Return the nearest centre of each row; an unknown value is as far as the metric says."""
        from weft.cluster import _kmodes_kernels as kernels

        check_is_fitted(self, "cluster_centers_")
        places, _, inverse = self._layout.distinct(_rows.read_rows(self, X))
        return kernels.nearest(places, self._reach)[0][inverse]

    def transform(self, X: Any) -> np.ndarray:
        """Return the distance of each row to each centre."""
        from weft.cluster import _kmodes_kernels as kernels

        check_is_fitted(self, "cluster_centers_")
        places, _, inverse = self._layout.distinct(_rows.read_rows(self, X))
        distances = kernels.all_distances(places, self._reach)
        return (np.sqrt(np.maximum(distances, 0)) if self._layout.root else distances)[inverse]
