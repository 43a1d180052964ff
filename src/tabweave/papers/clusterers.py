"""Clusterers of the literature: kernel k-means, and CCDS-DC, CCTED and DCD for streams.

A kernel or windows of categories in, a cluster for each row out. The first window of a stream is
clustered by k-modes; each further one either continues the clusters, which are profiles of values,
or is clustered anew because the concept has drifted. The three differ in how they tell.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import xlogy
from sklearn.base import ClusterMixin, clone
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from tabweave._compat import HasMethods, Interval, StrOptions
from tabweave.base import Estimator, TabularInput
from tabweave.cluster.kmodes import KModes
from tabweave.cluster.stream import ProfileSpace, profiles_of
from tabweave.columns.column import Schema
from tabweave.columns.inputs import check_categorical, read_with_fitted_schema
from tabweave.columns.table import Table, remember_names, require_rows
from tabweave.embed.windowed import check_window_columns
from tabweave.io.register import storable


@storable
class KernelKMeans(ClusterMixin, Estimator):
    """Cluster rows by k-means in the space that a kernel spans.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : str or embedder, default="rbf"
        A kernel of numbers, as in :func:`sklearn.metrics.pairwise.pairwise_kernels`;
        ``"precomputed"`` if the kernel matrix is given in place of the rows; or any embedder, whose
        ``pairwise_kernel`` is taken once it is fitted to the rows.
    n_init : int, default=10
        Number of starts, each from random rows; that of the lowest objective counts.
    max_iter : int, default=300
        Most steps of a start.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,)
        The cluster of each row.
    inertia_ : float
        Eq. (7.18), ``Tr(K) - Tr(L^½ Zᵀ K Z L^½)``: the squared distances from the centres.
    n_iter_ : int
        Steps of the start that counts.

    Notes
    -----
    A kernel of vectors, which all embedders have, gives the clusters that k-means finds on
    ``transform``, for n² instead of n numbers: use it for kernels that have no vectors at hand.

    References
    ----------
    Zhu (2019), Eqs. (7.16) to (7.19); Dhillon, Guan and Kulis (2004).

    Examples
    --------
    >>> from tabweave import CKML
    >>> from tabweave.papers import KernelKMeans
    >>> rows = {"color": ["red", "red", "blue"] * 4, "size": ["S", "S", "L"] * 4}
    >>> labels = KernelKMeans(2, kernel=CKML(), random_state=0).fit_predict(rows)
    >>> bool((labels[::3] == labels[1::3]).all() and (labels[::3] != labels[2::3]).all())
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "kernel": [
            StrOptions({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}),
            HasMethods(["fit", "pairwise_kernel"]),
        ],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        n_init: int = 10,
        max_iter: int = 300,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the rows, or what a kernel matrix is of."""
        self._validate_params()
        gram = self._gram(X, y)
        if self.n_clusters > len(gram):
            raise ValueError(
                f"expected at least n_clusters={self.n_clusters} rows, got n_samples={len(gram)}"
            )
        rng, k = check_random_state(self.random_state), int(self.n_clusters)
        starts = [kernel_k_means(gram, k, int(self.max_iter), rng) for _ in range(self.n_init)]
        self.labels_, self.inertia_, self.n_iter_ = min(starts, key=lambda start: start[1])
        return self

    def _gram(self, X: Any, y: Any) -> np.ndarray:
        if not isinstance(self.kernel, str):
            return np.asarray(clone(self.kernel).fit(X, y).pairwise_kernel(X))
        rows = validate_data(self, X, dtype=np.float64)
        if self.kernel == "precomputed" and rows.shape[0] != rows.shape[1]:
            raise ValueError(f"expected a square kernel matrix, got shape {rows.shape}")
        return np.asarray(pairwise_kernels(rows, metric=self.kernel))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


def kernel_k_means(
    gram: np.ndarray, k: int, max_iter: int, rng: Any
) -> tuple[np.ndarray, float, int]:
    """Eq. (7.18): clusters, their objective and the steps taken, from k random rows as centres."""
    norms, n, n_steps = np.diagonal(gram), len(gram), 0
    shares, labels = np.zeros((n, k)), np.full(n, -1)
    shares[rng.choice(n, k, replace=False), np.arange(k)] = 1
    while n_steps < max_iter:
        n_steps += 1
        cross = gram @ shares
        square = norms[:, None] - 2 * cross + (shares * cross).sum(axis=0)
        square[:, ~shares.any(axis=0)] = np.inf  # a cluster that lost all its rows
        nearest = square.argmin(axis=1)
        if (nearest == labels).all():
            break
        labels = nearest
        shares = np.eye(k)[labels]
        shares /= np.maximum(shares.sum(axis=0), 1)
    return labels, float(square[np.arange(n), labels].sum()), n_steps


class ProfileClusterer(TabularInput, ClusterMixin, Estimator):
    """Base of CCDS-DC, CCTED and DCD: clusters are profiles of values, windows come one by one.

    A subclass implements ``_next(indices) -> labels`` for the windows after the first, and may
    set ``drifted_`` and have other ``_scores``. The indices of a row are those of its values in the
    vocabulary.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "schema": [Schema, dict, str, None],
    }

    n_clusters: int
    n_init: int
    random_state: Any
    schema: Any
    _space: ProfileSpace
    _profiles: np.ndarray

    def fit(self, X: Any, y: Any = None) -> Self:
        """Start a stream with its first window."""
        self._validate_params()
        table = Table.of(X, self.schema, rules="first")
        check_categorical(self, table.schema)
        require_rows(table)
        for name in ("_profiles", "index_", "difference_"):  # of the stream before
            self.__dict__.pop(name, None)
        self._space = ProfileSpace.of(table)
        self.schema_ = table.schema
        remember_names(self, table.schema)
        indices = self._space.entries(table)
        self.n_windows_ = 1
        self.drifted_ = False
        self._take(indices, self._cluster(indices))
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add a window; one without rows only moves the position."""
        if not hasattr(self, "_space"):
            return self.fit(X, y)
        self._validate_params()
        check_window_columns(X, self.schema_)
        table = read_with_fitted_schema(self, X)
        self.n_windows_ += 1
        if not table.n_rows:
            self.labels_ = np.zeros(0, np.intp)
            return self
        grown = self._space.grown(table)
        self._profiles = grown.reindex(self._profiles, self._space)
        self._space = grown
        indices = grown.entries(table)
        self._take(indices, self._next(indices))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Cluster of each row under the last model."""
        check_is_fitted(self, "schema_")
        indices = self._space.entries(read_with_fitted_schema(self, X))
        return self._scores(indices).argmax(axis=1)

    def _next(self, indices: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _scores(self, indices: np.ndarray) -> np.ndarray:
        """Mean share of a cluster's rows that have each of a row's values."""
        return scores(indices, shares(self._profiles, self._sizes))

    def _take(self, indices: np.ndarray, labels: np.ndarray) -> None:
        """Make a window's clusters the model."""
        k, size = self.n_clusters, int(self._space.starts[-1])
        self.labels_ = labels
        self._sizes = np.bincount(labels, minlength=k).astype(np.float64)
        self._profiles = profiles_of(indices, labels, k, size)

    def _cluster(self, indices: np.ndarray) -> np.ndarray:
        """Cluster a window on its own, by k-modes as the papers do."""
        k = min(self.n_clusters, len(np.unique(indices, axis=0)))
        codes = {f"x{a}": "nominal" for a in range(indices.shape[1])}  # no numbers to be warned of
        model = KModes(k, n_init=self.n_init, random_state=self.random_state)
        return model.fit(Table.of(indices, codes)).labels_.astype(np.intp)


@storable
class CCDSDC(ProfileClusterer):
    """Cluster a categorical stream with drifting concepts by optimisation; a baseline.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    continuity : float, default=1.0
        Weight of the last model against the window's own rows.
    threshold : float, default=0.1
        Relative gain of clustering anew above which the concept has drifted.
    n_init : int, default=10
        Starts of k-modes, wherever it clusters a window on its own.
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    schema : Schema or mapping, optional
        What the columns are.

    Attributes
    ----------
    labels_ : ndarray
        Clusters of the last window's rows.
    index_ : float
        The detection index of the last window, from the second on: what clustering anew would
        gain, relatively.
    drifted_ : bool
        Whether the last window was clustered anew.
    n_windows_ : int
        How many windows there were.
    schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    The paper's text was not available; the objective is as its abstract describes it, see
    :func:`uncertainty`.

    References
    ----------
    Bai, Cheng, Liang and Shen (2016), An optimization model for clustering categorical data
    streams with drifting concepts, IEEE TKDE 28(11).

    Examples
    --------
    >>> from tabweave.papers import CCDSDC
    >>> rows = [["a", "x"]] * 5 + [["b", "y"]] * 5
    >>> stream = CCDSDC(2, random_state=0).fit(rows)
    >>> first = stream.labels_
    >>> bool((stream.partial_fit(rows).labels_ == first).all()), stream.drifted_
    (True, False)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ProfileClusterer._parameter_constraints,
        "continuity": [Interval(Real, 0, None, closed="left")],
        "threshold": [Interval(Real, None, None, closed="neither")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        continuity: float = 1.0,
        threshold: float = 0.1,
        n_init: int = 10,
        random_state: Any = None,
        schema: Any = "nominal",
    ) -> None:
        self.n_clusters = n_clusters
        self.continuity = continuity
        self.threshold = threshold
        self.n_init = n_init
        self.random_state = random_state
        self.schema = schema

    def _next(self, indices: np.ndarray) -> np.ndarray:
        last = shares(self._profiles, self._sizes)
        continued = self._continued(indices, last)
        clustered = self._cluster(indices)
        size = last.shape[1]
        costs = [
            uncertainty(indices, labels, self.n_clusters, size) for labels in (continued, clustered)
        ]
        self.index_ = (costs[0] - costs[1]) / max(costs[0], 1e-300)
        self.drifted_ = self.index_ > self.threshold
        return clustered if self.drifted_ else continued

    def _continued(
        self, indices: np.ndarray, last: np.ndarray, *, max_iter: int = 50
    ) -> np.ndarray:
        """Assign rows and renew the clusters, each a mean of its rows and the last model."""
        k, size = last.shape
        model, labels = last, np.full(len(indices), -1)
        for _ in range(max_iter):
            nearest = scores(indices, model).argmax(axis=1)
            if (nearest == labels).all():
                break
            labels = nearest
            sizes = np.bincount(labels, minlength=k).astype(np.float64)
            cluster_shares = shares(profiles_of(indices, labels, k, size), sizes)
            mixed = (cluster_shares + self.continuity * last) / (1 + self.continuity)
            model = np.where(sizes[:, None] > 0, mixed, last)
        return labels


def uncertainty(indices: np.ndarray, labels: np.ndarray, k: int, size: int) -> float:
    """``Σ_clusters |c| Σ_columns (1 - Σ_v p(v|c)²)``: 0 if clusters are of one mind."""
    sizes = np.bincount(labels, minlength=k).astype(np.float64)
    p = shares(profiles_of(indices, labels, k, size), sizes)
    return float(sizes @ (indices.shape[1] - (p**2).sum(axis=1)))


@storable
class CCTED(ProfileClusterer):
    """Cluster a categorical stream that evolves; a baseline.

    Parameters
    ----------
    threshold : float, default=0.2
        Difference of two windows above which the concept has drifted.
    n_clusters, n_init, random_state, schema
        As in :class:`CCDSDC`.

    Attributes
    ----------
    labels_ : ndarray
        Clusters of the last window's rows.
    difference_ : float
        How far the last window differs from the one before.
    drifted_, n_windows_, schema_
        As in :class:`CCDSDC`.

    Notes
    -----
    The paper's text was not available; its three parts (detecting by rough membership, labelling by
    the last window's clusters, clustering anew) are as its abstract says, the formulas as read
    from it: see :func:`window_difference`.

    References
    ----------
    Cao, Liang, Bai, Zhao and Dang (2010), A framework for clustering categorical time-evolving
    data, IEEE Trans. Fuzzy Systems 18(5).

    Examples
    --------
    >>> from tabweave.papers import CCTED
    >>> rows = [["a", "x"]] * 5 + [["b", "y"]] * 5
    >>> stream = CCTED(2, random_state=0).fit(rows).partial_fit(rows)
    >>> stream.difference_, stream.partial_fit([["c", "z"], ["d", "z"]]).drifted_
    (0.0, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [Interval(Real, None, None, closed="neither")],
        **ProfileClusterer._parameter_constraints,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        threshold: float = 0.2,
        n_init: int = 10,
        random_state: Any = None,
        schema: Any = "nominal",
    ) -> None:
        self.n_clusters = n_clusters
        self.threshold = threshold
        self.n_init = n_init
        self.random_state = random_state
        self.schema = schema

    def _next(self, indices: np.ndarray) -> np.ndarray:
        now = np.bincount(indices.ravel(), minlength=self._profiles.shape[1])
        self.difference_ = window_difference(
            self._profiles.sum(axis=0), now, indices.shape[1], self._sizes.sum(), len(indices)
        )
        self.drifted_ = self.difference_ > self.threshold
        return self._cluster(indices) if self.drifted_ else self._scores(indices).argmax(axis=1)


def window_difference(
    before: np.ndarray, now: np.ndarray, n_columns: int, n_before: float, n_now: float
) -> float:
    """Mean over rows and columns of ``|μ_before - μ_now|``.

    ``μ_S(x) = |[x]_a ∩ S| / |[x]_a|`` is the rough membership of a row in a window, windows scaled
    to the same number of rows. It is 0 for windows with the same shares, 1 without common values.
    """
    f, g = before / n_before, now / n_now
    return float(np.abs(f - g).sum() / (2 * n_columns))


@storable
class DCD(ProfileClusterer):
    """Cluster a categorical stream with drifting concepts; a baseline.

    Parameters
    ----------
    outliers : float, default=0.1
        Share of rows that resemble no cluster above which the concept has drifted (θ).
    variation : float, default=0.1
        Change of a cluster's share of rows above which the cluster varies (ε).
    clusters_varying : float, default=0.5
        Share of varying clusters above which the concept has drifted (η).
    n_clusters, n_init, random_state, schema
        As in :class:`CCDSDC`.

    Attributes
    ----------
    labels_ : ndarray
        Clusters of the last window's rows; outliers are in the cluster they resemble most.
    drifted_, n_windows_, schema_
        As in :class:`CCDSDC`.

    References
    ----------
    Chen, Chen and Lin (2009), Catching the trend: a framework for clustering concept-drifting
    categorical data, IEEE TKDE 21(5).

    Examples
    --------
    >>> from tabweave.papers import DCD
    >>> rows = [["a", "x"]] * 5 + [["b", "y"]] * 5
    >>> stream = DCD(2, random_state=0).fit(rows).partial_fit(rows[3:7])
    >>> stream.drifted_, (stream.labels_[:2] != stream.labels_[2:]).all()
    (False, np.True_)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ProfileClusterer._parameter_constraints,
        "outliers": [Interval(Real, 0, 1, closed="both")],
        "variation": [Interval(Real, 0, 1, closed="both")],
        "clusters_varying": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        outliers: float = 0.1,
        variation: float = 0.1,
        clusters_varying: float = 0.5,
        n_init: int = 10,
        random_state: Any = None,
        schema: Any = "nominal",
    ) -> None:
        self.n_clusters = n_clusters
        self.outliers = outliers
        self.variation = variation
        self.clusters_varying = clusters_varying
        self.n_init = n_init
        self.random_state = random_state
        self.schema = schema

    def _next(self, indices: np.ndarray) -> np.ndarray:
        resemblance = self._scores(indices)
        labels = resemblance.argmax(axis=1)
        is_alike = resemblance[np.arange(len(labels)), labels] >= self._thresholds[labels]
        before = self._sizes / self._sizes.sum()
        now = np.bincount(labels[is_alike], minlength=self.n_clusters) / max(is_alike.sum(), 1)
        varying = (np.abs(now - before) > self.variation).mean()
        self.drifted_ = bool((~is_alike).mean() > self.outliers or varying > self.clusters_varying)
        return self._cluster(indices) if self.drifted_ else labels

    def _take(self, indices: np.ndarray, labels: np.ndarray) -> None:
        older = getattr(self, "_profiles", None)
        super()._take(indices, labels)
        if older is not None and older.shape == self._profiles.shape and not self.drifted_:
            self._profiles = self._profiles + older  # the concept goes on, and so do its counts
            first = self._profiles[:, : self._space.starts[1]]
            self._sizes = first.sum(axis=1)
        resemblance = self._scores(indices)
        to_own_cluster = resemblance[np.arange(len(labels)), labels]
        self._thresholds = np.full(self.n_clusters, np.inf)
        np.minimum.at(self._thresholds, labels, to_own_cluster)
        self._thresholds[np.isinf(self._thresholds)] = 0.0

    def _scores(self, indices: np.ndarray) -> np.ndarray:
        """Resemblance of rows to clusters: the importance of their values added up."""
        return scores(indices, importance(self._profiles, self._sizes))


def importance(profiles: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """``w(c, v) = |v in c| / |c| · (1 - H(clusters of v) / log k)``."""
    total = profiles.sum(axis=0)
    p = profiles / np.where(total > 0, total, 1)
    entropy = -xlogy(p, p).sum(axis=0) / np.log(max(len(profiles), 2))
    return shares(profiles, sizes) * (1 - entropy)


def shares(profiles: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Profiles as the share of a cluster's rows that have each value."""
    return profiles / np.where(sizes > 0, sizes, 1)[:, None]


def scores(indices: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Sum of each row's weights under each cluster, rows × clusters."""
    columns: Any = np.ascontiguousarray(weights.T)
    out = np.zeros((len(indices), len(weights)))
    for a in range(indices.shape[1]):
        out += columns[indices[:, a]]
    return out
