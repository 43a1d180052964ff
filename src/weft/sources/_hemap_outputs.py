"""What follows the projection in HeMap: which source rows to use, and how to read their outputs.

[Shi 2013, section 5.4.3]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

_CLUSTERS = 20
_BINS = 5


def selected_rows(B_T: np.ndarray, B_S: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Eq. (5.17): the source rows in clusters that the target fills alike.

    The two clouds are clustered together. Each cluster gives at most as many source rows as the
    target's share in it asks for, those nearest to the target's centre there first: then the
    logarithms in (5.18) are near 0 and the centres near each other, as the constraint asks.
    """
    both = np.vstack([B_T, B_S])
    k = min(_CLUSTERS, len(np.unique(both, axis=0)))
    cluster = KMeans(k, n_init=1, random_state=rng.randint(2**31 - 1)).fit_predict(both)
    in_T, in_S = cluster[: len(B_T)], cluster[len(B_T) :]
    chosen = []
    for c in np.unique(in_T):
        rows = np.flatnonzero(in_S == c)
        asked = int(np.ceil(np.mean(in_T == c) * len(B_S)))
        away = np.sum((B_S[rows] - B_T[in_T == c].mean(axis=0)) ** 2, axis=1)
        chosen.append(rows[np.argsort(away, kind="stable")[:asked]])
    return np.sort(np.concatenate(chosen))


def divergence(in_T: np.ndarray, in_S: np.ndarray) -> float:
    """Eqs. (5.17) and (5.18): KL divergence of target from source rows, from their clusters.

    Clusters without source rows would make it infinite; they count as holding half a row.
    """
    total = 0.0
    for c in np.unique(in_T):
        t, s = np.sum(in_T == c), np.sum(in_S == c)
        total += t**2 / (t + s) * np.log(t / max(s, 0.5))
    return float(2 / len(in_T) * total + np.log(len(in_S) / len(in_T)))


def class_bridge(p_y_s: np.ndarray, v: np.ndarray, n_v: int) -> np.ndarray:
    """Eq. (5.20): p(y|v), the mean of p(y|s) over the source rows s of class v."""
    totals = np.zeros((n_v, p_y_s.shape[1]))
    np.add.at(totals, v, p_y_s)
    return totals / np.maximum(np.bincount(v, minlength=n_v), 1)[:, None]


def number_bridge(y_s: np.ndarray, v: np.ndarray, classes: bool) -> np.ndarray:
    """Eq. (5.20) for numbers: E[y|v] of every source row, from predictions y_s of its y.

    The mean of y_s over the rows of the same class; the least-squares line if v is a number.
    """
    if classes:
        _, codes = np.unique(v, return_inverse=True)
        return class_bridge(y_s[:, None], codes, codes.max() + 1)[codes, 0]
    spread = v - v.mean()
    square = spread @ spread
    slope = spread @ (y_s - y_s.mean()) / square if square > 0 else 0.0
    return y_s.mean() + slope * spread


def quantile_codes(values: np.ndarray) -> np.ndarray:
    """Return which fifth of the numbers each one lies in."""
    edges = np.quantile(values, np.arange(1, _BINS) / _BINS)
    return np.searchsorted(edges, values, side="right")


def shared_codes(
    y: np.ndarray, labeled: np.ndarray, v: np.ndarray, y_numeric: bool, v_numeric: bool
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return codes of what both share: classes of the same name, or fifths of numbers."""
    codes = np.full(len(labeled), -1)
    if y_numeric and v_numeric:
        codes[labeled] = quantile_codes(y.astype(float))
        return codes, quantile_codes(v.astype(float))
    if y_numeric or v_numeric or not same_classes(y, v):
        return None
    names = {name: i for i, name in enumerate(sorted({*y.tolist(), *v.tolist()}))}
    codes[labeled] = [names[name] for name in y.tolist()]
    return codes, np.array([names[name] for name in v.tolist()])


def same_classes(y: np.ndarray, v: np.ndarray) -> bool:
    """Whether one output's classes are among the other's; then equal names mean the same."""
    ours, theirs = set(y.tolist()), set(v.tolist())
    return ours <= theirs or theirs <= ours


def fold_numbers(y: np.ndarray, n_folds: int, rng: np.random.RandomState) -> np.ndarray:
    """Deal rows out to folds at random, every class (or range of numbers) evenly."""
    dealt = np.lexsort([rng.permutation(len(y)), np.unique(y, return_inverse=True)[1]])
    folds = np.empty(len(y), int)
    folds[dealt] = np.arange(len(y)) % n_folds
    return folds


def probabilities(learner: Any, X: np.ndarray) -> np.ndarray:
    """Return p(class|x), or 1 for the predicted class of a learner that gives none."""
    if hasattr(learner, "predict_proba"):
        return np.asarray(learner.predict_proba(X))
    return (learner.predict(X)[:, None] == learner.classes_).astype(float)
