"""Clusters: rows that belong together, described by the values they have more often than others."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from tabweave._compat import one_thread
from tabweave.apps.report.html import rounded, shown
from tabweave.apps.report.rows import Axes
from tabweave.cluster.describe import value_counts_by_cluster
from tabweave.cluster.kmeans import fitted_kmeans
from tabweave.cluster.number import number_of_clusters
from tabweave.columns.table import Table, take_rows

MAX_SCORED_ROWS = 1_000  # The silhouette and the tree are found from so many rows at most.


def how_many(features: Table, random_state: int) -> int:
    """How many clusters a table has, two to eight: what page and command line go by."""
    rng = np.random.default_rng(random_state)
    if features.n_rows > MAX_SCORED_ROWS:
        features = take_rows(features, np.sort(rng.permutation(features.n_rows)[:MAX_SCORED_ROWS]))
    best = number_of_clusters(features, max_clusters=8, n_init=3, random_state=random_state).best
    return max(2, best)


def group(
    vectors: np.ndarray, weights: np.ndarray, n_clusters: int, random_state: int
) -> tuple[Axes, np.ndarray, np.ndarray, float]:
    """The axes of drawn rows, where these lie on them, the centres, and how well they separate.

    Reports, the studio, ``tabweave cluster`` and ``tabweave map`` have their clusters from it.
    """
    axes = Axes.of(vectors, weights)
    points = axes.project(vectors)
    return axes, points, *find_centers(points, weights, n_clusters, random_state)


def find_centers(
    points: np.ndarray, weights: np.ndarray, n_clusters: int, random_state: int
) -> tuple[np.ndarray, float]:
    """The centres of clusters, largest first, and how well they separate.

    The second result is the silhouette: 1 if clusters are far apart, 0 if they touch.
    """
    # Rounding must not make two points of one: k-means would look for more groups than there are.
    points = np.round(points, 9 - _magnitude(points))
    n_clusters = min(n_clusters, len(np.unique(points, axis=0)) - 1)
    if n_clusters < 2:
        return np.zeros((1, points.shape[1])), 0.0
    rng = np.random.default_rng(random_state)
    scored = np.arange(len(points))
    if len(scored) > MAX_SCORED_ROWS:
        scored = np.sort(rng.choice(len(points), MAX_SCORED_ROWS, replace=False))
    with one_thread():
        model = KMeans(n_clusters, n_init=3, random_state=random_state)
        labels = fitted_kmeans(model, points, weights).labels_[scored]
        several = len(np.unique(labels)) > 1
        score = float(silhouette_score(points[scored], labels)) if several else 0.0
    centers = model.cluster_centers_
    size = np.bincount(assign(points, centers), weights, minlength=len(centers))
    return centers[np.argsort(-size, kind="stable")], score


def _magnitude(points: np.ndarray) -> int:
    largest = float(np.abs(points).max(initial=0.0))
    return int(np.floor(np.log10(largest))) if largest > 0 else 0


def assign(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The nearest centre of each point."""
    return cdist(points, centers).argmin(axis=1)


def describe_clusters(
    values: Table, labels: np.ndarray, n_clusters: int, target: str | None
) -> list[dict[str, Any]]:
    """The size of each cluster and the values it has more often than the whole table.

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
    by_column = {c.name: _values_of_clusters(c.name, data, labels, sizes) for c, data in values}
    classes = by_column.pop(target) if target in by_column else [[] for _ in sizes]
    clusters = []
    for k, size in enumerate(sizes.tolist()):
        frequent = [value for column in by_column.values() for value in column[k]]
        above_chance = [
            value
            for value in frequent
            if value["lift"] >= 1.2 and value["share"] >= 0.05 and value["above"] > 3
        ]
        above_chance.sort(key=lambda value: -value["share"] * np.log(value["lift"]))
        classes[k].sort(key=lambda value: -value["share"])
        share = rounded(size / len(labels))
        top, top_classes = above_chance[:8], classes[k][:4]
        clusters.append({"size": size, "share": share, "values": top, "target": top_classes})
    return clusters


def _values_of_clusters(
    column: str, data: Any, labels: np.ndarray, sizes: np.ndarray
) -> list[list[dict[str, Any]]]:
    """The most frequent values of a column in each cluster, with their shares there and overall."""
    counts, n = value_counts_by_cluster(data, labels, len(sizes)), sizes.sum()
    overall, out = counts.sum(axis=0) / n, []
    for in_cluster, size in zip(counts, sizes, strict=True):
        top = np.argsort(-in_cluster, kind="stable")[:50]
        top = top[in_cluster[top] > 0]
        count, p = in_cluster[top], overall[top]
        # Standard deviations above what a random part of the rows of this size would have.
        chance = np.sqrt(size * p * (1 - p) * (1 - size / n))
        above = np.where(chance > 0, (count - size * p) / np.where(chance > 0, chance, 1), 0)
        figures = {
            "value": [shown(data.labels[i]) for i in top],
            "count": count.tolist(),
            "share": rounded(count / size),
            "overall": rounded(p),
            "lift": rounded(count / size / p),
            "above": rounded(above, 3),
        }
        rows = zip(*figures.values(), strict=True)
        out.append([{"column": column} | dict(zip(figures, row, strict=True)) for row in rows])
    return out
