"""Which source row is aligned with which target row: the choice everything in HeMap rests on.

An alignment is a pair of index arrays of equal length. ``codes`` number what both outputs share
(classes of the same name, quantiles of numbers), -1 where a target row has no label; None if
nothing is shared.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, svd
from scipy.optimize import linear_sum_assignment
from scipy.stats import skew
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin

Codes = tuple[np.ndarray, np.ndarray] | None
Aligned = tuple[np.ndarray, np.ndarray]

_COMPONENTS = 9
_CLUSTERS = 8
_PRIOR = 0.05  # of the turn that class means ask for: what they leave open keeps its order


def nearest(A: np.ndarray, B: np.ndarray) -> Aligned:
    """Give every row of A its nearest row of B."""
    return np.arange(len(A)), pairwise_distances_argmin(A, B)


def by_components(T: np.ndarray, S: np.ndarray, codes: Codes) -> Aligned:
    """Match rows by their first principal components, turned so that shared classes meet."""
    p = min(_COMPONENTS, *T.shape, *S.shape)
    A, B = components(T, p), components(S, p)
    return nearest(A, B @ turn(A, B, codes))


def components(Z: np.ndarray, p: int) -> np.ndarray:
    """Return the scores on the first p principal components, skewed to the right."""
    n, m = Z.shape
    gram = Z.T @ Z if m <= n else Z @ Z.T
    squares, V = eigh(gram, subset_by_index=[len(gram) - p, len(gram) - 1])
    sizes, V = np.sqrt(np.maximum(squares[::-1], 0)), V[:, ::-1]
    scores = Z @ V if m <= n else V * sizes
    # A component that does not vary has no skewness (0/0); its sign does not matter.
    varies = sizes > 1e-6 * max(sizes[0], 1e-300)
    bend = np.zeros(p)
    bend[varies] = skew(scores[:, varies])
    return scores * np.where(bend < 0, -1.0, 1.0)


def turn(A: np.ndarray, B: np.ndarray, codes: Codes) -> np.ndarray:
    """Return the rotation of B whose class means are nearest to those of A (Procrustes)."""
    prior = np.diag(np.sqrt(np.mean(A * A, axis=0) * np.mean(B * B, axis=0)))
    means = None if codes is None else _class_means(A, B, *codes)
    if means is None:
        return np.eye(A.shape[1])
    cross = means[1].T @ means[0]
    weight = _PRIOR * np.linalg.norm(cross) / max(np.linalg.norm(prior), 1e-300)
    U, _, Vt = svd(cross + weight * prior)
    return U @ Vt


def _class_means(
    A: np.ndarray, B: np.ndarray, c_A: np.ndarray, c_B: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    shared = np.intersect1d(c_A[c_A >= 0], c_B)
    if len(shared) < 2:
        return None
    M_A = np.array([A[c_A == c].mean(axis=0) for c in shared])
    M_B = np.array([B[c_B == c].mean(axis=0) for c in shared])
    return M_A - M_A.mean(axis=0), M_B - M_B.mean(axis=0)


def by_clusters(T: np.ndarray, S: np.ndarray, codes: Codes, rng: np.random.RandomState) -> Aligned:
    """Match clusters by what they hold, then the rows of two clusters by principal component."""
    k = min(_CLUSTERS, len(T), len(S)) if codes is None else len(np.unique(codes[1]))
    k = min(k, len(np.unique(T, axis=0)), len(np.unique(S, axis=0)))
    seeds = rng.randint(2**31 - 1, size=2)
    in_T = KMeans(k, n_init=5, random_state=seeds[0]).fit_predict(T)
    in_S = KMeans(k, n_init=5, random_state=seeds[1]).fit_predict(S)
    own = (None, None) if codes is None else codes
    cost = _profiles(T, in_T, k, own[0], codes)[:, None] - _profiles(S, in_S, k, own[1], codes)
    pairs = zip(*linear_sum_assignment(np.sum(cost**2, axis=2)), strict=True)
    first_T, first_S = components(T, 1)[:, 0], components(S, 1)[:, 0]
    parts = []
    for a, b in pairs:
        rows, others = np.flatnonzero(in_T == a), np.flatnonzero(in_S == b)
        parts.append(by_rank(rows[first_T[rows].argsort()], others[first_S[others].argsort()]))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _profiles(
    Z: np.ndarray, cluster: np.ndarray, k: int, own: np.ndarray | None, codes: Codes
) -> np.ndarray:
    """Describe clusters: their classes if those are shared, else size, variance and centre."""
    if own is not None and codes is not None:
        n = int(max(codes[0].max(), codes[1].max())) + 1
        table = np.zeros((k, n))
        np.add.at(table, (cluster[own >= 0], own[own >= 0]), 1.0)
        return (table + 1 / n) / (table.sum(axis=1, keepdims=True) + 1)
    rows = [Z[cluster == c] for c in range(k)]
    out = [(len(r) / len(Z), np.mean(r.var(axis=0)), np.sum(r.mean(axis=0) ** 2)) for r in rows]
    return np.asarray(out) / np.maximum(np.mean(out, axis=0), 1e-300)


def by_rank(rows: np.ndarray, others: np.ndarray) -> Aligned:
    """Match two ordered lists rank by rank; the shorter one is repeated evenly."""
    n = max(len(rows), len(others))
    ranks = (np.arange(n) + 0.5) / n
    return rows[(ranks * len(rows)).astype(int)], others[(ranks * len(others)).astype(int)]
