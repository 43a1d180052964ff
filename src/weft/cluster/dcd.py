"""DCD: clusters of concept-drifting categories by node importance [Chen, Chen, Lin 2009].

A value matters to a cluster if it is frequent there and rare in the others. Rows of a new window
join the cluster they resemble most; if too many resemble none, or clusters change their sizes too
much, the concept has drifted and the window is clustered anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import xlogy

from weft.cluster import _profiles
from weft.cluster._stream_base import ProfileClusterer


class DCD(ProfileClusterer):
    """Cluster a categorical stream with drifting concepts; a baseline.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    outliers : float, default=0.1
        Share of rows that resemble no cluster above which the concept has drifted (θ).
    variation : float, default=0.1
        Change of a cluster's share of rows above which the cluster varies (ε).
    clusters_varying : float, default=0.5
        Share of varying clusters above which the concept has drifted (η).
    n_init : int, default=10
        Starts of k-modes, which clusters the first window and those after a drift.
    random_state : int, RandomState or None
        Seed of the starts.
    schema : Schema or mapping, optional
        What the columns are.

    Attributes
    ----------
    labels_ : ndarray
        Clusters of the last window's rows; outliers are in the cluster they resemble most.
    drifted_ : bool
        Whether the last window was clustered anew.

    References
    ----------
    Chen, Chen and Lin (2009), Catching the trend: a framework for clustering concept-drifting
    categorical data, IEEE TKDE 21(5).

    Examples
    --------
    >>> from weft.cluster import DCD
    >>> rows = [["a", "x"]] * 5 + [["b", "y"]] * 5
    >>> stream = DCD(2, random_state=0).fit(rows).partial_fit(rows[3:7])
    >>> stream.drifted_, (stream.labels_[:2] != stream.labels_[2:]).all()
    (False, np.True_)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        outliers: float = 0.1,
        variation: float = 0.1,
        clusters_varying: float = 0.5,
        n_init: int = 10,
        random_state: Any = None,
        schema: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.outliers = outliers
        self.variation = variation
        self.clusters_varying = clusters_varying
        self.n_init = n_init
        self.random_state = random_state
        self.schema = schema

    def _next(self, places: np.ndarray) -> np.ndarray:
        found = self._scores(places)
        labels = found.argmax(axis=1)
        alike = found[np.arange(len(labels)), labels] >= self._thresholds[labels]
        before = self._sizes / self._sizes.sum()
        now = np.bincount(labels[alike], minlength=self.n_clusters) / max(alike.sum(), 1)
        varying = (np.abs(now - before) > self.variation).mean()
        self.drifted_ = bool((~alike).mean() > self.outliers or varying > self.clusters_varying)
        return self._cluster(places) if self.drifted_ else labels

    def _take(self, places: np.ndarray, labels: np.ndarray) -> None:
        older = vars(self).get("_profiles")
        super()._take(places, labels)
        if older is not None and older.shape == self._profiles.shape and not self.drifted_:
            self._profiles = self._profiles + older  # the concept goes on, and so do its counts
            first = self._profiles[:, : self._vocabulary.sizes[0]]
            self._sizes = first.sum(axis=1)
        found = self._scores(places)
        own = found[np.arange(len(labels)), labels]
        self._thresholds = np.full(self.n_clusters, np.inf)
        np.minimum.at(self._thresholds, labels, own)
        self._thresholds[np.isinf(self._thresholds)] = 0.0

    def _scores(self, places: np.ndarray) -> np.ndarray:
        """Return the resemblance of rows to clusters: the importance of their values added up."""
        return _profiles.scores(places, importance(self._profiles, self._sizes))


def importance(profiles: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return ``w(c, v) = |v in c| / |c| · (1 - H(clusters of v) / log k)``."""
    total = profiles.sum(axis=0)
    spread = profiles / np.where(total > 0, total, 1)
    entropy = -xlogy(spread, spread).sum(axis=0) / np.log(max(len(profiles), 2))
    return _profiles.shares(profiles, sizes) * (1 - entropy)
