"""Clusters: rows that belong together, described by the values they have more often than others."""

from __future__ import annotations

from typing import Any

import numpy as np

from tabweave._compat import one_thread
from tabweave.apps.report.html import rounded, shown
from tabweave.cluster.describe import value_counts_by_cluster
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets
from tabweave.columns.table import Table, take_rows

MAX_SCORED_ROWS = 1_000  # The silhouette and the tree are found from so many rows at most.


def how_many(features: Table, random_state: int) -> int:
    """Return how many clusters a table has, two to eight: what page and command line go by."""
    from tabweave.cluster.number import number_of_clusters

    rng = np.random.default_rng(random_state)
    if features.n_rows > MAX_SCORED_ROWS:
        features = take_rows(features, np.sort(rng.permutation(features.n_rows)[:MAX_SCORED_ROWS]))
    found = number_of_clusters(features, max_clusters=8, n_init=3, random_state=random_state)
    return max(2, found.best)


def find_centers(
    points: np.ndarray, weights: np.ndarray, n_clusters: int, random_state: int
) -> tuple[np.ndarray, float]:
    """Return the centres of clusters, largest first, and how well they separate.

    The second result is the silhouette: 1 if clusters are far apart, 0 if they touch.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    # Rounding must not make two points of one: k-means would look for more groups than there are.
    points = np.round(points, 9 - _magnitude(points))
    n_clusters = min(n_clusters, len(np.unique(points, axis=0)) - 1)
    if n_clusters < 2:
        return np.zeros((1, points.shape[1])), 0.0
    rng = np.random.default_rng(random_state)
    some = np.arange(len(points))
    if len(some) > MAX_SCORED_ROWS:
        some = np.sort(rng.choice(len(points), MAX_SCORED_ROWS, replace=False))
    with one_thread():
        model = KMeans(n_clusters, n_init=3, random_state=random_state)
        labels = model.fit(points, sample_weight=weights).labels_[some]
        apart = len(np.unique(labels)) > 1
        score = float(silhouette_score(points[some], labels)) if apart else 0.0
    centers = model.cluster_centers_
    size = np.bincount(assign(points, centers), weights, minlength=len(centers))
    return centers[np.argsort(-size, kind="stable")], score


def _magnitude(points: np.ndarray) -> int:
    largest = float(np.abs(points).max(initial=0.0))
    return int(np.floor(np.log10(largest))) if largest > 0 else 0


def assign(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the nearest centre of each point."""
    from scipy.spatial.distance import cdist

    return cdist(points, centers).argmin(axis=1)


def describe_clusters(
    values: Table, labels: np.ndarray, n_clusters: int, target: str | None
) -> list[dict[str, Any]]:
    """Return the size of each cluster and the values it has more often than the whole table.

    Parameters
    ----------
    values : Table
        All rows, a value in every cell.
    labels : ndarray
        Cluster of each row.
    n_clusters : int
        How many there are.
    target : str, optional
        The column whose values are listed beside those of the others.
    """
    sizes = np.bincount(labels, minlength=n_clusters)
    found: list[list[dict[str, Any]]] = [[] for _ in range(n_clusters)]
    classes: list[list[dict[str, Any]]] = [[] for _ in range(n_clusters)]
    for column, data in values:
        assert not isinstance(data, Numbers)
        counts = value_counts_by_cluster(data, labels, n_clusters)
        for k in range(n_clusters):
            out = classes if column.name == target else found
            out[k] += _frequent(column.name, data, counts, k, sizes)
    clusters = []
    for k in range(n_clusters):
        min_lift, min_share, min_deviations = 1.2, 0.05, 3
        worth = [
            value
            for value in found[k]
            if value["lift"] >= min_lift
            and value["share"] >= min_share
            and value["above"] > min_deviations
        ]
        worth.sort(key=lambda v: -v["share"] * np.log(v["lift"]))
        classes[k].sort(key=lambda v: -v["share"])
        clusters.append(
            {
                "size": int(sizes[k]),
                "share": rounded(sizes[k] / len(labels)),
                "values": worth[:8],
                "target": classes[k][:4],
            }
        )
    return clusters


def _frequent(
    column: str, data: Codes | Sets, counts: np.ndarray, k: int, sizes: np.ndarray
) -> list[dict[str, Any]]:
    """Return the values of a column that a cluster has, with their shares here and everywhere."""
    n, size = sizes.sum(), sizes[k]
    first = np.argsort(-counts[k], kind="stable")[:50]
    first = first[counts[k, first] > 0]
    count, everywhere = counts[k, first], counts[:, first].sum(axis=0) / n
    share = count / size
    # Standard deviations above what a random part of the rows of this size would have.
    chance = np.sqrt(size * everywhere * (1 - everywhere) * (1 - size / n))
    above = np.where(chance > 0, (count - size * everywhere) / np.where(chance > 0, chance, 1), 0)
    figures = {
        "count": count.tolist(),
        "share": rounded(share),
        "overall": rounded(everywhere),
        "lift": rounded(share / everywhere),
        "above": rounded(above, 3),
    }
    rows = (dict(zip(figures, own, strict=True)) for own in zip(*figures.values(), strict=True))
    return [
        {"column": column, "value": shown(data.labels[i])} | own
        for i, own in zip(first.tolist(), rows, strict=True)
    ]
