"""Protocols: one data set and one method in, scores (and what explains them) out.

Each protocol returns plain numbers, so that a cell can be cached as JSON and two runs with the
same seed can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tabweave.datasets import Dataset
from tabweave.evaluate import clustering_f, macro_f, monte_carlo_splits, nmi

Scores = dict[str, float]
LARGE = 10_000  # rows; above, --quick takes fewer repeats


def n_classes(data: Dataset) -> int:
    return len(set(data.y))


def thesis_k_modes(data: Dataset, metric: Any, *, n_starts: int = 100, seed: int = 0) -> Scores:
    """Thesis 4.4.1.1: k-modes from 100 random rows each, the start with the lowest objective counts.

    That start is a matter of luck, so it is drawn again and again: F and NMI are means over 20
    batches of starts (5 above 1,500 rows), low and high the extremes. An empty cluster keeps its
    centre, and a run ends when no row moves, as in textbooks; tabweave.KModes does better.
    """
    from tabweave import Table

    table = Table.of(data.X, numbers="nominal")
    fitted = metric.fit(table)
    lookups, _ = fitted.lookups()
    rows = np.stack(fitted._codes(table), axis=1).astype(np.int64)
    sizes = np.array([len(t) for t in lookups])
    square = np.zeros((len(lookups), sizes.max(), sizes.max()))
    for a, own in enumerate(lookups):
        square[a, : len(own), : len(own)] = own
    rng, found = np.random.default_rng(seed), []
    for _ in range(20 if data.n_rows <= 1500 else 5):
        starts = []
        for _ in range(n_starts):
            first = rows[rng.choice(len(rows), n_classes(data), replace=False)]
            labels, cost = _alternate()(rows, square, first, sizes)
            starts.append((cost, labels))
        found.append(_best_start(data, starts))
    every = [f["F"] for f in found]
    means = {name: float(np.mean([f[name] for f in found])) for name in ("F", "NMI", "cost")}
    return means | {"low": min(every), "high": max(every)}


@cache
def _alternate() -> Callable[..., tuple[np.ndarray, float]]:
    from numba import njit

    @njit
    def alternate(rows, square, centers, sizes):
        (n, m), k = rows.shape, len(centers)
        labels = np.full(n, -1)
        for _ in range(100):
            moved, cost = False, 0.0
            for i in range(n):
                nearest, best = 0, np.inf
                for c in range(k):
                    d = 0.0
                    for a in range(m):
                        d += square[a, rows[i, a], centers[c, a]]
                    if d < best:
                        nearest, best = c, d
                cost += best
                moved |= labels[i] != nearest
                labels[i] = nearest
            if not moved:
                break
            for c in range(k):
                for a in range(m):
                    counts = np.zeros(sizes[a])
                    for i in range(n):
                        if labels[i] == c:
                            counts[rows[i, a]] += 1
                    if counts.any():
                        centers[c, a] = np.argmax(counts)
        return labels, cost

    return alternate


def k_modes(
    data: Dataset, metric: Any, *, n_starts: int = 100, centers: str = "mode", seed: int = 0
) -> Scores:
    """Thesis 4.4.1.1: k-modes from random centres, the start with the lowest objective counts.

    The lowest and highest F of any start are kept: they say how much of a difference between two
    reports can be luck.
    """
    from tabweave import KModes, Table

    table = Table.of(data.X, numbers="nominal")
    fitted = metric.fit(table)
    starts = []
    for i in range(n_starts):
        model = KModes(
            n_classes(data), metric=fitted, n_init=1, centers=centers, random_state=seed + i
        )
        labels = model.fit(table).labels_
        starts.append((float(model.cost_), labels))
    return _best_start(data, starts)


def k_means(data: Dataset, embedder: Any, *, n_starts: int = 100, seed: int = 0) -> Scores:
    """Thesis 7.4: k-means on vectors, the start with the lowest inertia counts.

    Several embedders are scored one by one, and their mean is given.
    """
    from sklearn.cluster import KMeans

    if isinstance(embedder, list):
        n_starts = max(n_starts // len(embedder), 10)
        each = [k_means(data, e, n_starts=n_starts, seed=seed) for e in embedder]
        return {name: float(np.mean([scores[name] for scores in each])) for name in each[0]} | {
            "low": min(s["low"] for s in each),
            "high": max(s["high"] for s in each),
        }
    vectors = embedder.fit_transform(data.X)
    starts = []
    for i in range(n_starts):
        model = KMeans(n_classes(data), n_init=1, random_state=seed + i).fit(vectors)
        starts.append((float(model.inertia_), model.labels_))
    return _best_start(data, starts)


def k_nearest_cv(
    data: Dataset,
    make: Callable[[], list[Any]],
    *,
    n_repeats: int = 20,
    n_inner: int = 3,
    seed: int = 0,
) -> Scores:
    """Thesis 6.4: 90/10 splits, k from {1, 3, 5, 7} by inner splits that refit the metric.

    Of several candidates for the metric the first stays, unless another is better inside by one
    standard error. All neighbours at the k-th distance vote. Sets above 10,000 rows are cut to
    10,000 at random.
    """
    if data.n_rows > LARGE:
        data = data.take(np.random.default_rng(seed).permutation(data.n_rows)[:LARGE])
    found = []
    for train, test in monte_carlo_splits(data.y, n_repeats, 0.1, random_state=seed):
        X, y = data.X[train], data.y[train]
        folds = list(monte_carlo_splits(y, n_inner, 0.25, random_state=seed))
        candidates = make()
        inner = np.array([[_scores_by_k(m, X, y, a, b) for a, b in folds] for m in candidates])
        chosen, k = _choose(inner)
        found.append(_scores_by_k(candidates[chosen], data.X, data.y, train, test)[k])
    mean, std = float(np.mean(found)), float(np.std(found))
    return {"F": mean, "low": max(mean - 2 * std, 0), "high": min(mean + 2 * std, 100)}


def _choose(inner: np.ndarray) -> tuple[int, int]:
    """Return candidate and k, from scores (candidate, fold, k): the first unless beaten."""
    best = inner.mean(axis=1).argmax(axis=1)
    gains = inner[np.arange(len(inner)), :, best] - inner[0, :, best[0]]
    surplus = gains.mean(axis=1) - gains.std(axis=1, ddof=1) / np.sqrt(gains.shape[1])
    surplus[0] = 0
    chosen = int(surplus.argmax())
    return chosen, int(best[chosen])


NEIGHBORS = (1, 3, 5, 7)


def _scores_by_k(metric: Any, X: Any, y: Any, train: np.ndarray, test: np.ndarray) -> list[float]:
    """Return the macro F of each number of neighbours, from one matrix of distances."""
    metric.fit(X[train], y[train])
    distances = metric.pairwise_distances(X[test], X[train])
    classes, codes = np.unique(y[train].astype(str), return_inverse=True)
    votes_of = np.eye(len(classes))[codes]
    nearest = np.sort(np.partition(distances, max(NEIGHBORS), axis=1)[:, : max(NEIGHBORS)], axis=1)
    scores = []
    for k in NEIGHBORS:
        within = distances <= nearest[:, k - 1 : k] * (1 + 1e-9) + 1e-12
        predicted = classes[(within @ votes_of).argmax(axis=1)]
        scores.append(100 * macro_f(y[test].astype(str), predicted))
    return scores


def k_nearest_vectors(
    data: Dataset, make: Callable[[], Any], *, n_repeats: int = 20, seed: int = 0
) -> Scores:
    """As :func:`k_nearest`, for representations without a value table."""
    found = []
    for train, test in monte_carlo_splits(data.y, n_repeats, 0.1, random_state=seed):
        embedder = make().fit(data.X[train])
        known, asked = embedder.transform(data.X[train]), embedder.transform(data.X[test])
        classes, codes = np.unique(data.y[train].astype(str), return_inverse=True)
        votes = np.empty(len(asked), dtype=classes.dtype)
        for i, row in enumerate(asked):
            far = ((known - row) ** 2).sum(axis=1)
            nearest = far <= far.min() * (1 + 1e-9) + 1e-12
            votes[i] = classes[np.bincount(codes[nearest], minlength=len(classes)).argmax()]
        found.append(100 * macro_f(data.y[test].astype(str), votes))
    mean, std = float(np.mean(found)), float(np.std(found))
    return {"F": mean, "low": max(mean - 2 * std, 0), "high": min(mean + 2 * std, 100)}


def on_top(data: Dataset, make: Callable[[], Any], *, n_repeats: int = 20, seed: int = 0) -> Scores:
    """Thesis 7.4.5: four classifiers on vectors learned from the training rows, 90/10, 20 times."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    classifiers = {
        "SVM": SVC(),
        "KNN": KNeighborsClassifier(5),
        "RF": RandomForestClassifier(100, random_state=seed),
        "LR": LogisticRegression(max_iter=2000),
    }
    found: dict[str, list[float]] = {name: [] for name in classifiers}
    for train, test in monte_carlo_splits(data.y, n_repeats, 0.1, random_state=seed):
        embedder = make().fit(data.X[train], data.y[train])
        known, asked = embedder.transform(data.X[train]), embedder.transform(data.X[test])
        for name, model in classifiers.items():
            predicted = model.fit(known, data.y[train]).predict(asked)
            found[name].append(100 * macro_f(data.y[test], predicted))
    return {name: float(np.mean(scores)) for name, scores in found.items()}


def _best_start(data: Dataset, starts: list[tuple[float, np.ndarray]]) -> Scores:
    all_f = [100 * clustering_f(data.y, labels) for _, labels in starts]
    cost, labels = min(starts, key=lambda start: start[0])
    return {
        "F": 100 * clustering_f(data.y, labels),
        "NMI": 100 * nmi(data.y, labels),
        "low": min(all_f),
        "high": max(all_f),
        "cost": cost,
    }


def k_nearest(
    data: Dataset,
    metric: Callable[[], Any],
    *,
    n_repeats: int = 20,
    n_neighbors: int = 1,
    seed: int = 0,
) -> Scores:
    """Thesis 4.4.1.2: 90 % of the rows vote on the others, 20 times; all neighbours at a tie vote.

    The same splits with first-come neighbours are scored too, since ties decide on such data.
    """
    from tabweave import WeightedKNN

    scores: dict[str, list[float]] = {"all": [], "first": []}
    for train, test in monte_carlo_splits(data.y, n_repeats, 0.1, random_state=seed):
        fitted = metric().fit(data.X[train], data.y[train])
        for ties, found in scores.items():
            model = WeightedKNN(n_neighbors, metric=fitted, ties=ties)
            model.fit(data.X[train], data.y[train])
            found.append(100 * macro_f(data.y[test], model.predict(data.X[test])))
    every, first = np.array(scores["all"]), np.array(scores["first"])
    return {
        "F": float(every.mean()),
        "low": float(max(every.mean() - 2 * every.std(), 0)),
        "high": float(min(every.mean() + 2 * every.std(), 100)),
        "first": float(first.mean()),
    }
