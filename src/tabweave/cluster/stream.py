"""StreamClusterer: k-means or k-modes over a representation that moves, with ids that stay.

Windows of rows in, a cluster for each row out; cluster 3 of this window is what cluster 3 was in
the last one. The embedder learns from the window first, then its rows are clustered together with
the latest rows before them, starting from where the clusters were, among others, and the new
clusters take the ids of the old ones that their rows would have joined (Hungarian matching). The
stream clusterers of the literature are in :mod:`tabweave.papers.clusterers`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import linear_sum_assignment
from sklearn.base import ClusterMixin, clone
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import HasMethods, Interval, StrOptions, one_thread
from tabweave.base import Estimator, TabularInput
from tabweave.cluster.kmeans import fitted_kmeans
from tabweave.cluster.kmodes import KModes
from tabweave.columns.column import Schema
from tabweave.columns.inputs import check_categorical
from tabweave.columns.nominal import Codes
from tabweave.columns.table import Table, remember_names
from tabweave.columns.vocabulary import Vocabulary, positions, union
from tabweave.embed.base import ValueEmbedder
from tabweave.embed.unicorn import UNICORN
from tabweave.embed.windowed import Resumable, check_window_columns
from tabweave.engines.reading import by_parts, read_fitted, read_rows
from tabweave.io.register import storable
from tabweave.space.points import cdist_squared
from tabweave.space.value_tables import ValueTables


@storable
class StreamClusterer(TabularInput, Resumable, ClusterMixin, Estimator):
    """Cluster the windows of a stream, with stable ids.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    embedder : UNICORN, Windowed or ValueEmbedder, optional
        What represents rows; ``UNICORN(n_clusters)`` by default. It is cloned and learns from each
        window before its rows are clustered.
    method : {"kmeans", "kmodes"}, default="kmeans"
        How a window is clustered; ``"kmodes"`` needs an embedder whose distances add up over
        columns, such as ``UNICORN()`` without a number of clusters.
    recent : int, default=500
        How many rows from before a window, the latest ones, are clustered again along with it:
        a window alone is a small sample. 0 clusters each window alone.
    n_init : int, default=10
        Random starts per window, besides the one from the last clusters.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray
        Clusters of the last window's rows.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters, recent rows included, in the representation as it is now.
    embedder_ : object
        The embedder, fitted.
    n_windows_ : int
        Number of windows so far.
    inertia_ : float
        Sum of squared distances of the last window's rows to their centres.

    Notes
    -----
    What is kept of a cluster is its profile: how often each value occurs in it. The mean of its
    rows in any later representation follows from that, so old clusters can be compared with rows
    that are embedded anew. A cluster that finds no rows in a window keeps its profile and its id.

    Examples
    --------
    >>> from tabweave import OneHot, Windowed
    >>> from tabweave.cluster import StreamClusterer
    >>> rows = [["a", "x"]] * 6 + [["b", "y"]] * 5
    >>> stream = StreamClusterer(2, embedder=Windowed(OneHot()), random_state=0).fit(rows)
    >>> stream.labels_.tolist()
    [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    >>> stream.partial_fit(rows[4:]).labels_.tolist()
    [0, 0, 1, 1, 1, 1, 1]
    >>> stream.predict([["b", "x"], ["b", "y"]]).tolist()[1]
    1
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "embedder": [HasMethods(["fit", "partial_fit", "transform"]), None],
        "method": [StrOptions({"kmeans", "kmodes"})],
        "recent": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        embedder: Any = None,
        method: Literal["kmeans", "kmodes"] = "kmeans",
        recent: int = 500,
        n_init: int = 10,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.embedder = embedder
        self.method = method
        self.recent = recent
        self.n_init = n_init
        self.random_state = random_state

    _space: ProfileSpace
    _profiles: np.ndarray
    _rows: np.ndarray

    def fit(self, X: Any, y: Any = None) -> Self:
        """Start a stream with its first window."""
        self._validate_params()
        embedder = self._new_embedder()
        inner = embedder._new_embedder() if hasattr(embedder, "embedder") else embedder
        table = read_rows(inner, X)
        check_categorical(self, table.schema)
        space = ProfileSpace.of(table)
        embedder.fit(table)
        self.embedder_, self._space = embedder, space
        self.n_windows_ = 1
        remember_names(self, table.schema)
        self._random = check_random_state(self.random_state)
        self._profiles = np.zeros((self.n_clusters, int(space.starts[-1])))
        self._rows = np.zeros((0, len(space.vocabulary)), np.int32)
        self._cluster(table, None)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add a window; one without rows only moves the position."""
        if not hasattr(self, "embedder_"):
            return self.fit(X, y)
        self._validate_params()
        check_window_columns(X, self.embedder_.schema_)
        table = read_fitted(_fitted(self.embedder_), X)
        self.embedder_.partial_fit(table)
        self.n_windows_ += 1
        if not table.n_rows:
            self.labels_, self.inertia_ = np.zeros(0, np.intp), 0.0
            return self
        grown = self._space.grown(table)
        self._profiles = grown.reindex(self._profiles, self._space)
        self._space = grown
        self._cluster(table, self.cluster_centers_)
        return self

    @by_parts({"cluster": "int64"})
    def predict(self, X: Any) -> np.ndarray:
        """The cluster nearest to each row; learns nothing."""
        check_is_fitted(self, "embedder_")
        return self._nearest(self.embedder_.transform(X), self.cluster_centers_)

    @property
    def cluster_centers_(self) -> np.ndarray:
        """Means of the clusters in the representation as it is now; NaN where none was yet."""
        check_is_fitted(self, "embedder_")
        n_columns = len(self._space.vocabulary)
        sizes = self._profiles.sum(axis=1, keepdims=True) / n_columns
        vectors = self._space.vectors(_fitted(self.embedder_).learn().tables_)
        centers = self._profiles @ vectors / np.where(sizes > 0, sizes, 1)
        return np.where(sizes > 0, centers, np.nan)

    def _cluster(self, table: Table, carried: np.ndarray | None) -> None:
        """Cluster a window and the rows before it, name the clusters, keep their profiles."""
        n_before, codes = len(self._rows), self._space.codes(table)
        self._rows = np.vstack([self._rows, codes])
        pool = self._space.table(table.schema, self._rows)
        vectors = np.asarray(self.embedder_.transform(pool))
        _, first, inverse, weight = np.unique(  # by codes: the order of vectors is one of rounding
            self._rows, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        points, inverse = vectors[first], inverse.ravel()
        k = min(self.n_clusters, len(np.unique(points, axis=0)))
        if self.method == "kmeans":
            clusters = self._k_means(points, weight, k, carried)[inverse]
        else:
            clusters = self._k_modes(pool, k)
        old = None if carried is None else self._nearest(vectors, carried)
        labels = match(clusters, k, old, self.n_clusters)
        indices = self._rows + self._space.starts[:-1]
        new = profiles_of(indices, labels, self.n_clusters, self._profiles.shape[1])
        filled = np.bincount(labels, minlength=self.n_clusters) > 0
        self._profiles = np.where(filled[:, None], new, self._profiles)
        self.labels_ = labels[n_before:]
        offsets = vectors[n_before:] - self.cluster_centers_[self.labels_]
        self.inertia_ = float((offsets**2).sum())
        self._rows = self._rows[max(len(self._rows) - self.recent, 0) :]

    def _k_means(
        self, points: np.ndarray, weight: np.ndarray, k: int, carried: np.ndarray | None
    ) -> np.ndarray:
        if not points.shape[1]:
            return np.zeros(len(points), np.intp)
        starts: list[tuple[Any, int]] = [("k-means++", self.n_init)]
        if carried is not None and k == self.n_clusters and np.isfinite(carried).all():
            starts.append((carried, 1))
        with one_thread():
            fits = [
                fitted_kmeans(
                    KMeans(k, init=init, n_init=n, random_state=self._random), points, weight
                )
                for init, n in starts
            ]
        return min(fits, key=lambda fit: fit.inertia_).labels_.astype(np.intp)

    def _k_modes(self, table: Table, k: int) -> np.ndarray:
        metric = _fitted(self.embedder_).learn()
        model = KModes(k, metric=metric, n_init=self.n_init, random_state=self._random)
        return model.fit(table).labels_.astype(np.intp)

    def _nearest(self, vectors: np.ndarray, centers: np.ndarray) -> np.ndarray:
        filled = np.flatnonzero(np.isfinite(centers).all(axis=1))
        return filled[cdist_squared(vectors, centers[filled]).argmin(axis=1)]

    def _new_embedder(self) -> Any:
        if self.embedder is not None:
            return clone(self.embedder)
        projected = self.method == "kmeans" and self.n_clusters > 1
        return UNICORN(self.n_clusters if projected else None)


def match(clusters: np.ndarray, k: int, old: np.ndarray | None, n_ids: int) -> np.ndarray:
    """Give new clusters the ids of the old ones that share most of their rows.

    Without old clusters, ids go by size. What finds no partner takes the ids that are left.
    """
    if old is None:
        sizes = np.bincount(clusters, minlength=k)
        rank = np.empty(k, np.intp)
        rank[np.argsort(-sizes, kind="stable")] = np.arange(k)
        return rank[clusters]
    shared = np.zeros((k, n_ids))
    np.add.at(shared, (clusters, old), 1)
    rows, ids = linear_sum_assignment(shared, maximize=True)
    name = np.empty(k, np.intp)
    name[rows] = ids
    return name[clusters]


def _fitted(embedder: Any) -> ValueEmbedder:
    """The embedder inside a wrapper, or itself."""
    return getattr(embedder, "embedder_", embedder)


@storable
@dataclass(frozen=True, eq=False)
class ProfileSpace:
    """The entries of profiles: the values met so far, and in each column one for all others.

    A profile is how often each value occurs in a cluster. It outlives the representation it was
    found in: a row is a sum (or a concatenation) of its values' vectors, so the mean of a cluster
    in any later representation is its profile times the new value tables.
    """

    vocabulary: Vocabulary  # in order of arrival: an entry keeps its index when columns grow

    @classmethod
    def of(cls, table: Table) -> ProfileSpace:
        """The entries of a table's values; sets are an error."""
        for column in table.schema.columns:
            if column.is_set:
                raise ValueError(
                    f"column {column.name!r} holds sets, but stream clusterers compare single "
                    f"values: leave it out"
                )
        names = tuple(table.schema.names)
        return cls(Vocabulary(names, ((),) * len(names))).grown(table)

    @cached_property
    def starts(self) -> np.ndarray:
        """Index of each column's first entry; the number of entries comes last."""
        return self.vocabulary.offsets + np.arange(len(self.vocabulary) + 1)

    def grown(self, table: Table) -> ProfileSpace:
        """The entries of the values so far and those of a table."""
        pairs = zip(self.vocabulary.labels, table.columns, strict=True)
        labels = tuple(tuple(union(seen, cast(Codes, column).labels)) for seen, column in pairs)
        return ProfileSpace(replace(self.vocabulary, labels=labels))

    def codes(self, table: Table) -> np.ndarray:
        """The code of each cell's value in its column; it stays when columns grow."""
        out = np.empty((table.n_rows, len(self.vocabulary)), np.int32)
        for a, seen in enumerate(self.vocabulary.labels):
            column = cast(Codes, table.columns[a])
            out[:, a] = positions(seen, column.labels)[column.codes]
        return out

    def entries(self, table: Table) -> np.ndarray:
        """The entry of each cell, rows × columns."""
        return self.codes(table) + self.starts[:-1]

    def table(self, schema: Schema, codes: np.ndarray) -> Table:
        """Rows again from the codes of their values."""
        labels = self.vocabulary.labels
        columns = [Codes(codes[:, a], list(seen)) for a, seen in enumerate(labels)]
        return Table(schema, tuple(columns), len(codes))

    def reindex(self, profiles: np.ndarray, older: ProfileSpace) -> np.ndarray:
        """The profiles of an older space in this one, which has grown from it."""
        out = np.zeros((len(profiles), int(self.starts[-1])))
        pairs = zip(self.vocabulary.labels, older.vocabulary.labels, strict=True)
        for a, (new, old) in enumerate(pairs):
            where = self.starts[a] + positions(new, old)
            out[:, where] = profiles[:, older.starts[a] : older.starts[a] + len(old)]
        return out

    def vectors(self, tables: ValueTables) -> np.ndarray:
        """The vector of each entry in a representation, zero outside its own column."""
        parts = [
            rows[np.append(positions(fitted, labels), len(fitted))]
            for labels, fitted, rows in zip(
                self.vocabulary.labels, tables.labels, tables.tables, strict=True
            )
        ]
        if tables.combine == "sum":
            return np.vstack(parts)
        return np.asarray(block_diag(*parts))


def profiles_of(indices: np.ndarray, labels: np.ndarray, k: int, size: int) -> np.ndarray:
    """How often each value occurs in each cluster."""
    flat = (labels[:, None] * size + indices).ravel()
    return np.bincount(flat, minlength=k * size).reshape(k, size).astype(np.float64)
