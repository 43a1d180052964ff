"""CCTED: clusters of time-evolving categories by rough membership [Cao et al. 2010].

Two windows differ as far as knowing a row's values tells which of the two it comes from. If they
differ little, rows join the cluster of the last window whose values they share most; if much, the
concept has drifted and the window is clustered anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.cluster import _profiles
from weft.cluster._stream_base import ProfileClusterer


class CCTED(ProfileClusterer):
    """Cluster a categorical stream that evolves; a baseline.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    threshold : float, default=0.2
        Difference of two windows above which the concept has drifted.
    n_init : int, default=10
        Starts of k-modes, which clusters the first window and those after a drift.
    random_state : int, RandomState or None
        Seed of the starts.
    schema : Schema or mapping, optional
        What the columns are.

    Attributes
    ----------
    labels_ : ndarray
        Clusters of the last window's rows.
    difference_ : float
        How far the last window differs from the one before.
    drifted_ : bool
        Whether the last window was clustered anew.

    Notes
    -----
    The paper's text was not at hand; its three parts (detecting by rough membership, labelling by
    the last window's clusters, clustering anew) are as its abstract says, the formulas as read
    from it: see :func:`window_difference`.

    References
    ----------
    Cao, Liang, Bai, Zhao and Dang (2010), A framework for clustering categorical time-evolving
    data, IEEE Trans. Fuzzy Systems 18(5).

    Examples
    --------
    >>> from weft.cluster import CCTED
    >>> rows = [["a", "x"]] * 5 + [["b", "y"]] * 5
    >>> stream = CCTED(2, random_state=0).fit(rows).partial_fit(rows)
    >>> stream.difference_, stream.partial_fit([["c", "z"], ["d", "z"]]).drifted_
    (0.0, True)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        threshold: float = 0.2,
        n_init: int = 10,
        random_state: Any = None,
        schema: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.threshold = threshold
        self.n_init = n_init
        self.random_state = random_state
        self.schema = schema

    def _next(self, places: np.ndarray) -> np.ndarray:
        now = np.bincount(places.ravel(), minlength=self._profiles.shape[1])
        self.difference_ = window_difference(
            self._profiles.sum(axis=0), now, places.shape[1], self._sizes.sum(), len(places)
        )
        self.drifted_ = self.difference_ > self.threshold
        return self._cluster(places) if self.drifted_ else self._scores(places).argmax(axis=1)

    def _scores(self, places: np.ndarray) -> np.ndarray:
        """Return the mean share of a cluster's rows that have each of a row's values."""
        return _profiles.scores(places, _profiles.shares(self._profiles, self._sizes))


def window_difference(
    before: np.ndarray, now: np.ndarray, n_columns: int, n_before: float, n_now: float
) -> float:
    """Return the mean over rows and columns of ``|μ_before - μ_now|``.

    ``μ_S(x) = |[x]_a ∩ S| / |[x]_a|`` is the rough membership of a row in a window, windows scaled
    to the same number of rows. It is 0 for windows with the same shares, 1 without common values.
    """
    f, g = before / n_before, now / n_now
    return float(np.abs(f - g).sum() / (2 * n_columns))
