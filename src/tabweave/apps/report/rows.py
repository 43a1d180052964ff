"""Rows of a report: which are distinct, which are drawn, and where each lies on the map.

Comes in: a reading and a fitted embedder. Goes out: the sample that is drawn, its principal axes,
and one pass over all distinct rows in blocks, so that memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tabweave._compat import eigh, fix_signs
from tabweave.apps.report.columns import by_frequency
from tabweave.apps.report.html import cell, cluster_name, rounded, shown
from tabweave.apps.report.reading import Reading, as_values
from tabweave.columns.datetime import Datetimes
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets
from tabweave.columns.table import Table, distinct_rows, take_rows
from tabweave.columns.vocabulary import Label
from tabweave.space.scan import Nearest

_BLOCK = 1 << 22  # numbers held at a time: 32 MB
N_AXES = 12


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct rows, how often each occurs, and those that are drawn."""

    table: Table  # the columns the embedding sees
    first: np.ndarray  # where each distinct row first occurs
    copies: np.ndarray  # how many rows are equal to it
    of_row: np.ndarray  # number of each row among the distinct ones
    drawn: np.ndarray  # numbers of the distinct rows that axes and clusters are found from
    shown: np.ndarray  # numbers of the distinct rows on the map, those among them

    @classmethod
    def of(
        cls, reading: Reading, random_state: Any, most_columns: int, max_map_rows: int = 0
    ) -> Rows:
        """Find the distinct rows (the target counts, too) and draw some at random.

        As many as that are on the map, or up to ``max_map_rows``.
        """
        names = reading.kept + ([reading.target] if reading.target else [])
        first, of_row = distinct_rows([reading.codes[name] for name in names])
        max_cells = 120_000  # which bound the size of the page
        at_most = int(np.clip(max_cells // min(len(names), most_columns), 500, MOST_DRAWN))
        drawn = shown = np.arange(len(first))
        if len(first) > at_most:
            rng = np.random.default_rng(random_state)
            rows = rng.choice(reading.table.n_rows, at_most, replace=False)
            drawn = shown = np.unique(of_row[rows])
            if max_map_rows >= len(first):
                shown = np.arange(len(first))
            elif max_map_rows > at_most:
                more = rng.choice(reading.table.n_rows, max_map_rows - at_most, replace=False)
                shown = np.unique(np.append(drawn, of_row[more]))
        return cls(reading.features(), first, np.bincount(of_row), of_row, drawn, shown)

    def vectors(self, model: Any, numbers: np.ndarray) -> np.ndarray:
        """Return the vectors of some distinct rows."""
        return np.asarray(model.transform(take_rows(self.table, self.first[numbers])), dtype=float)

    def blocks(self, model: Any, width: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (numbers, vectors) of all distinct rows, block by block."""
        step = max(256, _BLOCK // max(width, 1))
        for start in range(0, len(self.first), step):
            numbers = np.arange(start, min(start + step, len(self.first)))
            yield numbers, self.vectors(model, numbers)


@dataclass(frozen=True, eq=False)
class Axes:
    """Principal axes of weighted vectors."""

    mean: np.ndarray
    axes: np.ndarray
    explained: np.ndarray  # share of the variance along each axis

    @classmethod
    def of(cls, vectors: np.ndarray, weights: np.ndarray, n_axes: int = N_AXES) -> Axes:
        """Find the directions in which weighted vectors vary most."""
        share = weights / weights.sum()
        mean = share @ vectors
        centred = vectors - mean
        centred *= np.sqrt(share)[:, None]  # in place: of a million rows one copy is large enough
        tall = centred.shape[0] >= centred.shape[1]
        product = centred.T @ centred if tall else centred @ centred.T
        total, size = float(np.trace(product)), len(product)
        n_axes = min(n_axes, size)
        if not n_axes or not total > 0:
            return cls(mean, np.zeros((vectors.shape[1], 0)), np.zeros(0))
        values, eigenvectors = eigh(product, n_axes)
        keep = values > 1e-10 * total
        values, eigenvectors = values[keep][::-1], eigenvectors[:, keep][:, ::-1]
        axes = eigenvectors if tall else centred.T @ eigenvectors / np.sqrt(values)
        return cls(mean, fix_signs(axes), values / total)

    def project(self, vectors: np.ndarray) -> np.ndarray:
        """Return the coordinates of vectors along the axes."""
        return (vectors - self.mean) @ self.axes


MOST_DRAWN = 2000  # rows that axes and clusters are found from
NEAR_NAME = "neighbourhoods (t-SNE)"


def axes_layout(points: np.ndarray, axes: Axes) -> dict[str, Any]:
    """Return the map along the first two axes."""
    flat = np.zeros((len(points), 2))
    flat[:, : min(2, points.shape[1])] = points[:, :2]
    share = [*rounded(axes.explained[:2]), 0.0, 0.0][:2]
    return {"name": "principal axes", "points": rounded(flat), "explained": share}


def near_layout(points: np.ndarray, random_state: Any) -> tuple[dict[str, Any] | None, str]:
    """Return the map by neighbourhoods, or None and why there is none.

    t-SNE lays out up to 1,000 of the points; each other one is set amid the nearest of them.
    """
    if len(points) < 30 or points.shape[1] < 2:
        return None, "Neighbourhoods (t-SNE) need 30 distinct rows and two axes"
    try:
        from openTSNE import TSNE
    except ImportError:  # an extra, and no reason to fail: the page does without, and says so
        return None, "Neighbourhoods (t-SNE) need tabweave[map]"
    max_laid_out = 1000
    every = max(1, -(-len(points) // max_laid_out))
    laid_out = points[::every]
    perplexity = min(30, (len(laid_out) - 1) // 3)
    start = laid_out[:, :2] / max(float(laid_out[:, 0].std()), 1e-12) * 1e-4
    seed = int(np.random.default_rng(random_state).integers(1 << 31))
    layout = TSNE(
        perplexity=perplexity, early_exaggeration_iter=50, n_iter=100, neighbors="exact",
        negative_gradient_method="bh", theta=0.9, initialization=start, n_jobs=1, random_state=seed,
    ).fit(laid_out)  # fmt: skip
    laid = np.array(layout)
    return {
        "name": NEAR_NAME,
        "points": rounded(_amid(laid_out, laid, points) if every > 1 else laid),
    }, ""


def _amid(points: np.ndarray, laid: np.ndarray, others: np.ndarray, k: int = 3) -> np.ndarray:
    """Return where others lie: a point at its own position, another amid its k nearest points."""
    from scipy.spatial import cKDTree

    distance, near = cKDTree(points).query(others, min(k, len(points)), workers=1)
    close = 1 / np.maximum(distance, 1e-9 * max(float(np.abs(points).max()), 1e-300)) ** 2
    return np.einsum("ij,ijk->ik", close / close.sum(axis=1, keepdims=True), laid[near])


# -- the map -------------------------------------------------------------------------------------

MAP_COLUMNS = 100
OTHERS = "other values"


def describe_map(
    reading: Reading,
    seen: Rows,
    layouts: tuple[list[dict[str, Any]], str],
    clusters: np.ndarray,
) -> dict[str, Any]:
    """Return the layouts of the rows on the map, and the cells they can be coloured by."""
    rows = seen.first[seen.shown]
    drawn = take_rows(reading.table, rows)
    names = reading.kept[:MAP_COLUMNS]
    names = ([reading.target] if reading.target else []) + names
    return {
        "layouts": layouts[0],
        "without": layouts[1],
        "rows": rows.tolist(),
        **reading.ids_of(rows),
        "copies": seen.copies[seen.shown].tolist(),
        "clusters": clusters[seen.shown].tolist(),
        "columns": [{"name": name} | map_cells(drawn, name) for name in names],
        "of": len(seen.first),
    }


def map_cells(drawn: Table, name: str) -> dict[str, Any]:
    """Return the cells of a column as the map takes them: numbers, or labels and their codes."""
    data = drawn[name]
    if isinstance(data, Datetimes):
        texts = [data.text(value) for value in data.values]
        return _labelled(as_values(data)) | {"texts": texts}
    if isinstance(data, Numbers):
        return {"numbers": rounded(data.values, 9)}
    if isinstance(data, Sets):
        data = joined(data, drawn.n_rows)
    return _labelled(data)


def _labelled(data: Any) -> dict[str, Any]:
    """Return labels, the most frequent first, and their codes; ``others`` if the last is many."""
    first = by_frequency(data)
    most_frequent = first[:20_000]
    index = np.full(len(data.labels), len(most_frequent))
    index[most_frequent] = np.arange(len(most_frequent))
    labels: list[Label] = [shown(data.labels[i]) for i in most_frequent]
    if len(first) > len(most_frequent):
        labels.append(OTHERS)
    if None in data.labels:
        index[data.labels.index(None)] = -1
    shown_column = {"labels": labels, "codes": index[data.codes].tolist()}
    return shown_column | {"others": True} if len(first) > len(most_frequent) else shown_column


def joined(data: Sets, n_rows: int) -> Codes:
    """Return sets as text, each different one a value."""
    texts = np.array([str(cell(data, row)) for row in range(n_rows)], dtype=object)
    labels, codes = np.unique(texts, return_inverse=True)
    return Codes(codes, labels.tolist())


# -- neighbours ----------------------------------------------------------------------------------


def choose_rows(
    rows: Rows, requested: Any, points: np.ndarray, labels: np.ndarray, centers: np.ndarray
) -> list[tuple[int, str]]:
    """Return the rows whose neighbours are shown, and why: those asked for, or typical ones.

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
    out = []
    for k in range(len(centers)):
        members = np.flatnonzero(labels == k)
        if len(members):
            typical = rows.drawn[members[distance[members].argmin()]]
            out.append((int(rows.first[typical]), f"typical of cluster {cluster_name(k)}"))
    farthest = int(rows.first[rows.drawn[distance.argmax()]])
    return (
        out if farthest in [row for row, _ in out] else [*out, (farthest, "far from every cluster")]
    )


def describe_neighbors(
    reading: Reading, model: Any, rows: Rows, chosen: list[tuple[int, str]], nearest: Nearest
) -> list[dict[str, Any]]:
    """Return the cells of each chosen row and of its neighbours, with each column's share."""
    names = reading.kept
    shares = _shares(model, rows, [row for row, _ in chosen], nearest)
    out = []
    for i, (row, why) in enumerate(chosen):
        near = []
        for number, distance in zip(nearest.rows[i], nearest.distances[i], strict=True):
            if not np.isfinite(distance):
                continue
            other = int(rows.first[number])
            parts = next(shares)
            near.append(
                {
                    **reading.row_and_id(other),
                    "copies": int(rows.copies[number]),
                    "distance": rounded(distance),
                    "cells": [cell(reading.table[name], other) for name in names],
                    "shares": rounded([parts.get(name, 0.0) for name in names], 3),
                    "target": _target(reading, other),
                }
            )
        out.append(
            {
                **reading.row_and_id(row),
                "why": why,
                "copies": int(rows.copies[rows.of_row[row]]),
                "cells": [cell(reading.table[name], row) for name in names],
                "target": _target(reading, row),
                "near": near,
            }
        )
    return out


def _target(reading: Reading, row: int) -> str | None:
    return cell(reading.table[reading.target], row) if reading.target else None


def _shares(
    model: Any, rows: Rows, rows_asked: list[int], nearest: Nearest
) -> Iterator[dict[str, float]]:
    """Yield each column's share in the distance of each neighbour; they add up to 1."""
    i, j = np.nonzero(np.isfinite(nearest.distances))
    pairs = np.array(rows_asked)[i], rows.first[nearest.rows[i, j]]
    parts = model._shares(*(model._read_asked(take_rows(rows.table, side)) for side in pairs))
    total = sum(parts.values())
    total = np.where(total == 0, 1.0, total)
    for k in range(len(i)):
        yield {name: float(side[k] / total[k]) for name, side in parts.items()}
