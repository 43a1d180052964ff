"""CCDS-DC: clusters of categorical streams as an optimisation [Bai, Cheng, Liang, Shen 2016].

Each window's clusters should be certain (their rows share values) and continue those of the window
before. Assigning rows and renewing clusters in turn lowers one objective for both; if the window
alone could be clustered much better than the past allows, the concept has drifted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.cluster import _profiles
from weft.cluster._stream_base import ProfileClusterer

MAX_ITER = 50  # alternations per window


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
        Starts of k-modes, which clusters the first window and is the alternative for the others.
    random_state : int, RandomState or None
        Seed of the starts.
    schema : Schema or mapping, optional
        What the columns are.

    Attributes
    ----------
    labels_ : ndarray
        Clusters of the last window's rows.
    index_ : float
        The detection index of the last window: what clustering anew would gain, relatively.
    drifted_ : bool
        Whether the last window was clustered anew.

    Notes
    -----
    The paper's text was not at hand; the objective is as its abstract describes it, see
    :func:`uncertainty`.

    References
    ----------
    Bai, Cheng, Liang and Shen (2016), An optimization model for clustering categorical data
    streams with drifting concepts, IEEE TKDE 28(11).

    Examples
    --------
    >>> from weft.cluster import CCDSDC
    >>> rows = [["a", "x"]] * 5 + [["b", "y"]] * 5
    >>> stream = CCDSDC(2, random_state=0).fit(rows)
    >>> first = stream.labels_
    >>> bool((stream.partial_fit(rows).labels_ == first).all()), stream.drifted_
    (True, False)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        continuity: float = 1.0,
        threshold: float = 0.1,
        n_init: int = 10,
        random_state: Any = None,
        schema: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.continuity = continuity
        self.threshold = threshold
        self.n_init = n_init
        self.random_state = random_state
        self.schema = schema

    def _next(self, places: np.ndarray) -> np.ndarray:
        last = _profiles.shares(self._profiles, self._sizes)
        kept = self._continued(places, last)
        anew = self._cluster(places)
        size = last.shape[1]
        costs = [uncertainty(places, labels, self.n_clusters, size) for labels in (kept, anew)]
        self.index_ = (costs[0] - costs[1]) / max(costs[0], 1e-300)
        self.drifted_ = self.index_ > self.threshold
        return anew if self.drifted_ else kept

    def _continued(self, places: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Assign rows and renew the clusters, each a mean of its rows and the last model."""
        k, size = last.shape
        model, labels = last, np.full(len(places), -1)
        for _ in range(MAX_ITER):
            found = _profiles.scores(places, model).argmax(axis=1)
            if (found == labels).all():
                break
            labels = found
            sizes = np.bincount(labels, minlength=k).astype(np.float64)
            own = _profiles.shares(_profiles.profiles_of(places, labels, k, size), sizes)
            mixed = (own + self.continuity * last) / (1 + self.continuity)
            model = np.where(sizes[:, None] > 0, mixed, last)
        return labels

    def _scores(self, places: np.ndarray) -> np.ndarray:
        return _profiles.scores(places, _profiles.shares(self._profiles, self._sizes))


def uncertainty(places: np.ndarray, labels: np.ndarray, k: int, size: int) -> float:
    """Return ``Σ_clusters |c| Σ_columns (1 - Σ_v p(v|c)²)``: 0 if clusters are of one mind."""
    sizes = np.bincount(labels, minlength=k).astype(np.float64)
    p = _profiles.shares(_profiles.profiles_of(places, labels, k, size), sizes)
    return float(sizes @ (places.shape[1] - (p**2).sum(axis=1)))
