"""Rows of a report: which are distinct, which are drawn, and where each lies on the map.

Comes in: a reading and a fitted embedder. Goes out: the sample that is drawn, its principal axes,
and one pass over all distinct rows in blocks, so that memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from tabweave._compat import eigh, fix_signs
from tabweave.apps.report.columns import by_frequency
from tabweave.apps.report.html import cell, cluster_name, rounded, shown
from tabweave.apps.report.reading import Reading, as_values
from tabweave.columns.nominal import Codes
from tabweave.columns.sets import Sets
from tabweave.columns.table import Table, distinct_rows, take_rows
from tabweave.engines.reading import read_queries
from tabweave.space.points import row_blocks
from tabweave.space.scan import Nearest

MAX_MAP_COLUMNS = 100  # Columns that a map can be coloured by.
N_AXES = 12  # Principal axes that the map and the clusters are found along.
MAX_DRAWN_ROWS = 2_000  # Distinct rows that axes and clusters are found from.


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Distinct rows, how often each occurs, and those that are drawn."""

    table: Table  # the columns the embedding sees
    first: np.ndarray  # where each distinct row first occurs
    copies: np.ndarray  # how many rows are equal to it
    of_row: np.ndarray  # number of each row among the distinct ones
    drawn: np.ndarray  # numbers of the distinct rows that axes and clusters are found from
    shown: np.ndarray  # numbers of the distinct rows on the map, those among them

    @classmethod
    def of(cls, reading: Reading, random_state: Any, max_map_rows: int = 0) -> DistinctRows:
        """Find the distinct rows (the target counts, too) and draw some at random.

        As many as that are on the map, or up to ``max_map_rows``.
        """
        first, of_row = distinct_rows([reading.codes[name] for name in reading.compared])
        max_cells = 120_000  # which bound the size of the page
        n_columns = min(len(reading.compared), MAX_MAP_COLUMNS)
        n_drawn = int(np.clip(max_cells // n_columns, 500, MAX_DRAWN_ROWS))
        drawn = shown = np.arange(len(first))
        if len(first) > n_drawn:
            rng = np.random.default_rng(random_state)
            drawn = shown = np.unique(of_row[rng.choice(len(of_row), n_drawn, replace=False)])
            if max_map_rows >= len(first):
                shown = np.arange(len(first))
            elif max_map_rows > n_drawn:
                others = rng.choice(len(of_row), max_map_rows - n_drawn, replace=False)
                shown = np.unique(np.append(drawn, of_row[others]))
        return cls(reading.features(), first, np.bincount(of_row), of_row, drawn, shown)

    def vectors(self, model: Any, numbers: np.ndarray) -> np.ndarray:
        """The vectors of some distinct rows."""
        return np.asarray(model.transform(take_rows(self.table, self.first[numbers])), dtype=float)

    def blocks(self, model: Any, width: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (numbers, vectors) of all distinct rows, block by block."""
        for block in row_blocks(len(self.first), 8 * width):
            numbers = np.arange(block.start, block.stop)
            yield numbers, self.vectors(model, numbers)


@dataclass(frozen=True, eq=False)
class Axes:
    """Principal axes of weighted vectors."""

    mean: np.ndarray
    axes: np.ndarray
    explained: np.ndarray  # share of the variance along each axis

    @classmethod
    def of(cls, vectors: np.ndarray, weights: np.ndarray, n_axes: int = N_AXES) -> Axes:
        """The directions in which weighted vectors vary most."""
        share = weights / weights.sum()
        mean = share @ vectors
        centred = vectors - mean
        centred *= np.sqrt(share)[:, None]  # in place: of a million rows one copy is large enough
        is_tall = centred.shape[0] >= centred.shape[1]
        product = centred.T @ centred if is_tall else centred @ centred.T
        total, n_axes = float(np.trace(product)), min(n_axes, len(product))
        if not n_axes or not total > 0:
            return cls(mean, np.zeros((vectors.shape[1], 0)), np.zeros(0))
        values, eigenvectors = eigh(product, n_axes)
        keep = values > 1e-10 * total
        values, eigenvectors = values[keep][::-1], eigenvectors[:, keep][:, ::-1]
        axes = eigenvectors if is_tall else centred.T @ eigenvectors / np.sqrt(values)
        return cls(mean, fix_signs(axes), values / total)

    def project(self, vectors: np.ndarray) -> np.ndarray:
        """The coordinates of vectors along the axes."""
        return (vectors - self.mean) @ self.axes


def axes_layout(points: np.ndarray, axes: Axes) -> dict[str, Any]:
    """The map along the first two axes."""
    flat = np.zeros((len(points), 2))
    flat[:, : min(2, points.shape[1])] = points[:, :2]
    share = [*rounded(axes.explained[:2]), 0.0, 0.0][:2]
    return {"name": "principal axes", "points": rounded(flat), "explained": share}


def near_layout(points: np.ndarray, random_state: Any) -> tuple[dict[str, Any] | None, str]:
    """The map by neighbourhoods, or None and why there is none.

    t-SNE lays out up to 1,000 of the points; each other one is set amid the nearest of them.
    """
    if len(points) < 30 or points.shape[1] < 2:
        return None, "Neighbourhoods (t-SNE) need 30 distinct rows and two axes"
    try:
        from openTSNE import TSNE
    except ImportError:  # an extra, and no reason to fail: the page does without, and says so
        return None, "Neighbourhoods (t-SNE) need tabweave[map]"
    max_laid_out = 1000
    step = max(1, -(-len(points) // max_laid_out))
    laid_out = points[::step]
    start = laid_out[:, :2] / max(float(laid_out[:, 0].std()), 1e-12) * 1e-4
    layout = np.array(
        TSNE(
            perplexity=min(30, (len(laid_out) - 1) // 3),
            early_exaggeration_iter=50,
            n_iter=100,
            neighbors="exact",
            negative_gradient_method="bh",
            theta=0.9,
            initialization=start,
            n_jobs=1,
            random_state=int(np.random.default_rng(random_state).integers(1 << 31)),
        ).fit(laid_out)
    )
    if step > 1:
        layout = _amid_nearest(laid_out, layout, points)
    return {"name": "neighbourhoods (t-SNE)", "points": rounded(layout)}, ""


def _amid_nearest(points: np.ndarray, layout: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Where others lie: a point at its own position, another amid its three nearest points."""
    distance, near = cKDTree(points).query(others, min(3, len(points)), workers=1)
    weight = 1 / np.maximum(distance, 1e-9 * max(float(np.abs(points).max()), 1e-300)) ** 2
    return np.einsum("ij,ijk->ik", weight / weight.sum(axis=1, keepdims=True), layout[near])


# -- the map -------------------------------------------------------------------------------------

OTHERS = "other values"


def describe_map(
    reading: Reading,
    distinct: DistinctRows,
    layouts: tuple[list[dict[str, Any]], str],
    clusters: np.ndarray,
) -> dict[str, Any]:
    """The layouts of the rows on the map, and the cells they can be coloured by."""
    rows = distinct.first[distinct.shown]
    drawn = take_rows(reading.table, rows)
    names = ([reading.target] if reading.target else []) + reading.kept[:MAX_MAP_COLUMNS]
    return {
        "layouts": layouts[0],
        "without": layouts[1],
        "rows": rows.tolist(),
        **reading.ids_of(rows),
        "copies": distinct.copies[distinct.shown].tolist(),
        "clusters": clusters[distinct.shown].tolist(),
        "columns": [{"name": name} | map_cells(drawn, name) for name in names],
        "of": len(distinct.first),
    }


def map_cells(drawn: Table, name: str) -> dict[str, Any]:
    """The cells of a column as the map takes them: numbers, or labels and their codes."""
    data = drawn[name]
    if data.is_dated:
        return _labelled(as_values(data)) | {"texts": list(map(data.text, data.values))}
    if data.is_continuous:
        return {"numbers": rounded(data.values, 9)}
    return _labelled(joined(data) if data.is_set else as_values(data))


def _labelled(data: Any) -> dict[str, Any]:
    """Labels, the most frequent first, and their codes; ``others`` if the last is many."""
    values = by_frequency(data)
    labelled = values[:20_000]
    index = np.full(len(data.labels), len(labelled))
    index[labelled] = np.arange(len(labelled))
    if None in data.labels:
        index[data.labels.index(None)] = -1
    labels = [shown(data.labels[i]) for i in labelled]
    if len(values) == len(labelled):
        return {"labels": labels, "codes": index[data.codes].tolist()}
    return {"labels": [*labels, OTHERS], "codes": index[data.codes].tolist(), "others": True}


def joined(data: Sets) -> Codes:
    """Sets as text, each different one a value."""
    texts = np.array([str(cell(data, row)) for row in range(len(data))], dtype=object)
    labels, codes = np.unique(texts, return_inverse=True)
    return Codes(codes, labels.tolist())


# -- neighbours ----------------------------------------------------------------------------------


def choose_rows(
    rows: DistinctRows, requested: Any, points: np.ndarray, labels: np.ndarray, centers: np.ndarray
) -> list[tuple[int, str]]:
    """The rows whose neighbours are shown, and why: those asked for, or typical ones.

    Without a wish: the most typical row of each cluster and the one farthest from all centres.
    """
    if requested is not None:
        n_rows = rows.table.n_rows
        row_numbers = np.atleast_1d(np.asarray(requested))
        if row_numbers.ndim != 1 or row_numbers.dtype.kind not in "iu":
            raise TypeError(f"expected rows to be row numbers, counting from 0, got {requested!r}")
        for row in row_numbers:
            if not -n_rows <= row < n_rows:
                raise IndexError(f"expected a row from 0 to {n_rows - 1}, got {row}")
        return [(int(row) % n_rows, "chosen") for row in row_numbers]
    distance = np.linalg.norm(points - centers[labels], axis=1)
    positions = rows.first[rows.drawn]
    chosen: dict[int, str] = {}
    for k in range(len(centers)):
        members = np.flatnonzero(labels == k)
        if len(members):
            typical = int(positions[members[distance[members].argmin()]])
            chosen[typical] = f"typical of cluster {cluster_name(k)}"
    chosen.setdefault(int(positions[distance.argmax()]), "far from every cluster")
    return list(chosen.items())


def describe_neighbors(
    reading: Reading,
    model: Any,
    rows: DistinctRows,
    chosen: list[tuple[int, str]],
    nearest: Nearest,
) -> list[dict[str, Any]]:
    """The cells of each chosen row and of its neighbours, with each column's share."""
    i, j = np.nonzero(np.isfinite(nearest.distances))
    neighbors = rows.first[nearest.rows[i, j]]
    near: list[list[dict[str, Any]]] = [[] for _ in chosen]
    if len(i):
        chosen_rows = np.array([row for row, _ in chosen])
        parts = column_shares(model, rows.table, chosen_rows[i], neighbors)
        total = sum(parts.values())
        total = np.where(total == 0, 1.0, total)
        shares = [parts.get(name, np.zeros(len(i))) / total for name in reading.kept]
    for k, (query, row) in enumerate(zip(i, neighbors.tolist(), strict=True)):
        distance = rounded(nearest.distances[query, j[k]])
        measured = {"distance": distance, "shares": rounded([share[k] for share in shares], 3)}
        near[query].append(_described(reading, rows, row) | measured)
    return [
        _described(reading, rows, row) | {"why": why, "near": neighbors_of_row}
        for (row, why), neighbors_of_row in zip(chosen, near, strict=True)
    ]


def _described(reading: Reading, rows: DistinctRows, row: int) -> dict[str, Any]:
    """A row with its copies and cells."""
    table, target = reading.table, reading.target
    return {
        **reading.row_and_id(row),
        "copies": int(rows.copies[rows.of_row[row]]),
        "cells": [cell(table[name], row) for name in reading.kept],
        "target": cell(table[target], row) if target else None,
    }


def column_shares(
    model: Any, table: Table, left_rows: np.ndarray, right_rows: np.ndarray
) -> dict[str, np.ndarray]:
    """Each column's share in the distance of each pair of rows."""
    sides = (read_queries(model, take_rows(table, rows)) for rows in (left_rows, right_rows))
    shares: dict[str, np.ndarray] = model.learn().space_.shares(*sides, unknown=model.unknown)
    return shares
