"""CDE: coupled data embedding by clusters of values [Jian, Cao, Pang, Lu, Gao 2017].

Values of all columns that influence the others alike fall into the same clusters, at every
granularity from two clusters to many; a value is then the list of its clusters, with redundancy
taken out by PCA. Everything comes from counts: rows are seen once. Learning needs V × V matrices
and many runs of k-means over the V values, so it is for tables with up to two thousand values.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from tabweave._compat import Interval, fix_signs, one_thread
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import symmetric_uncertainty
from tabweave.embed.base import ValueEmbedder
from tabweave.embed.register import embedder
from tabweave.space.value_tables import ValueTables, compacted


@embedder("cde", "clusters of values at several resolutions", "Jian, Cao, Pang, Lu & Gao 2017")
class CDE(ValueEmbedder):
    """Embed categorical rows by the clusters that their values belong to.

    Parameters
    ----------
    max_singletons : float, default=0.5
        The number of value clusters grows until more than this share of them hold a single value.
    min_range : float, default=1e-10
        Principal components on which the values differ by less are dropped.
    max_clusters : int, default=40
        The number of value clusters never grows beyond this; ``n_value_clusters_`` says how far
        it came.
    max_values : int, default=2000
        More values in total are an error: memory grows with their square.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.
    random_state : int, RandomState or None, default=None
        Seed of the k-means runs.

    Attributes
    ----------
    n_value_clusters_ : dict of str to int
        The largest number of clusters tried on the influence by ``occurrence`` and by
        ``co-occurrence``.
    value_vectors_ : ndarray of shape (V, dimensions)
        The values of all columns in one space, in the order of ``counts_``.
    tables_ : ValueTables
        The representation: per column its part of ``value_vectors_``, compacted.
    counts_, numbers_, space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    An object is the concatenation of its values' vectors. With V values, K the largest number of
    clusters and r the rank of an influence matrix, learning takes O(V²) memory and O(K² V r) time.

    The paper's text was not available for every detail. Our reading: influence by co-occurrence is
    p(v|w), the clustering at which the number stops growing still counts (so there always is
    one), and clusters of one value keep their dimension. Of seven readings this one, with
    ``max_singletons=0.5``, came closest to the published figures: see ``docs/systems/cde.md``.

    Examples
    --------
    >>> from tabweave import CDE
    >>> from tabweave.datasets import make_coupled
    >>> rows = make_coupled(300, 5, coupling=0.9, random_state=0)
    >>> cde = CDE(random_state=0).fit(rows.X)
    >>> cde.transform(rows.X).shape[0]
    300
    >>> sorted(cde.n_value_clusters_)
    ['co-occurrence', 'occurrence']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "max_singletons": [Interval(Real, 0, 1, closed="both")],
        "min_range": [Interval(Real, 0, None, closed="left")],
        "max_clusters": [Interval(Integral, 2, None, closed="left")],
        "max_values": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        max_singletons: float = 0.5,
        *,
        min_range: float = 1e-10,
        max_clusters: int = 40,
        max_values: int = 2000,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
        random_state: Any = None,
    ) -> None:
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)
        self.max_singletons = max_singletons
        self.min_range = min_range
        self.max_clusters = max_clusters
        self.max_values = max_values
        self.random_state = random_state

    def _learn(self, counts: Counts) -> ValueTables:
        self._check_size(counts)
        rng = check_random_state(self.random_state)
        influences = {"occurrence": occurrence(counts), "co-occurrence": co_occurrence(counts)}
        self.n_value_clusters_: dict[str, int] = {}
        memberships = []
        for name, influence in influences.items():
            clusterings = value_clusters(influence, self.max_singletons, self.max_clusters, rng)
            self.n_value_clusters_[name] = max((m.shape[1] for m in clusterings), default=1)
            memberships += clusterings
        self.value_vectors_ = components(memberships, len(counts.value_counts), self.min_range)
        parts = [self.value_vectors_[counts.span(a)] for a in range(len(counts.names))]
        return ValueTables.from_features(parts, counts)

    def _check_size(self, counts: Counts) -> None:
        n_values = int(counts.offsets[-1])
        if n_values > self.max_values:
            widest = int(np.argmax(counts.sizes))
            raise ValueError(
                f"expected at most max_values={self.max_values} values, got {n_values}, of which "
                f"{counts.sizes[widest]} in column {counts.names[widest]!r}; CDE compares all with "
                "all: leave the column out, raise max_values, or use Weave"
            )


def occurrence(counts: Counts) -> np.ndarray:
    """``η_o(v, w) = NMI(a, b) f(w) / f(v)``, v of column a, w of column b.

    How much more frequent w is than v, as far as their columns depend on each other;
    ``NMI = 2 I / (H + H)``.
    """
    column = np.repeat(np.arange(len(counts.sizes)), counts.sizes)
    dependence = symmetric_uncertainty(counts)[np.ix_(column, column)]
    c = counts.value_counts.astype(np.float64)
    return dependence * (c[None, :] / c[:, None])


def co_occurrence(counts: Counts) -> np.ndarray:
    """``η_c(v, w) = p(v, w) / p(w) = p(v|w)``: how often w brings v along."""
    pairs = counts.pairs.toarray() if sparse.issparse(counts.pairs) else counts.pairs
    return pairs / counts.value_counts[None, :]


def value_clusters(
    influence: np.ndarray, max_singletons: float, max_clusters: int, rng: np.random.RandomState
) -> list[np.ndarray]:
    """Cluster the rows of an influence matrix at k = 2, 3, … until too many clusters hold one.

    Returns
    -------
    list of ndarray of shape (V, k)
        Memberships; empty if all rows are alike.
    """
    from sklearn.cluster import KMeans

    points = compacted(influence)  # same distances, at most V - 1 dimensions
    n_distinct = len(np.unique(points.round(9), axis=0))
    memberships: list[np.ndarray] = []
    for k in range(2, min(max_clusters, n_distinct) + 1):
        seed = rng.randint(np.iinfo(np.int32).max)
        with one_thread():
            labels = KMeans(k, n_init=3, random_state=seed).fit(points).labels_
        memberships.append(np.eye(k)[labels])
        singletons = int((np.bincount(labels, minlength=k) == 1).sum())
        if singletons > max_singletons * k:
            break
    return memberships


def components(memberships: list[np.ndarray], n_values: int, min_range: float) -> np.ndarray:
    """Principal components of all memberships side by side, without the flat ones."""
    if not memberships:
        return np.zeros((n_values, 0))
    wide = np.hstack(memberships)
    u, s, _ = np.linalg.svd(wide - wide.mean(axis=0), full_matrices=False)
    scores = fix_signs(u * s)
    return scores[:, np.ptp(scores, axis=0) > min_range]
