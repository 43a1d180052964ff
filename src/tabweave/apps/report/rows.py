"""Rows of a report: which are distinct, which are drawn, and where each lies on the map.

Comes in: a reading and a fitted embedder. Goes out: the sample that is drawn, its principal axes,
and one pass over all distinct rows in blocks, so that memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tabweave.apps.report.columns import by_frequency
from tabweave.apps.report.html import cell, cluster_name, rounded, shown
from tabweave.apps.report.reading import Reading, as_values, select, take
from tabweave.counts.spectra import fix_signs
from tabweave.rows.table import (
    Codes,
    Datetimes,
    Numbers,
    Sets,
    Table,
    canonical_codes,
    distinct_rows,
)
from tabweave.rows.vocabulary import Label
from tabweave.search.scan import Nearest

_BLOCK = 1 << 22  # numbers held at a time: 32 MB
_CELLS = 120_000  # cells of the rows drawn, which bound the size of the page
N_AXES = 12


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct rows, how often each occurs, and those that are drawn."""

    table: Table  # the columns the embedding sees
    first: np.ndarray  # where each distinct row first occurs
    copies: np.ndarray  # how many rows are equal to it
    of_row: np.ndarray  # number of each row among the distinct ones
    drawn: np.ndarray  # numbers of the distinct rows that are drawn

    @classmethod
    def of(cls, reading: Reading, random_state: Any, most_columns: int) -> Rows:
        """Find the distinct rows (the target counts, too) and draw some at random."""
        names = reading.kept + ([reading.target] if reading.target else [])
        codes = canonical_codes(select(reading.table, names))
        first, of_row = distinct_rows(codes)
        at_most = int(np.clip(_CELLS // min(len(names), most_columns), 500, 3000))
        drawn = np.arange(len(first))
        if len(first) > at_most:
            rng = np.random.default_rng(random_state)
            rows = rng.choice(reading.table.n_rows, at_most, replace=False)
            drawn = np.unique(of_row[rows])
        return cls(reading.features(), first, np.bincount(of_row), of_row, drawn)

    def vectors(self, model: Any, numbers: np.ndarray) -> np.ndarray:
        """Return the vectors of some distinct rows."""
        return np.asarray(model.transform(take(self.table, self.first[numbers])), dtype=float)

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
        from scipy.linalg import eigh

        share = weights / weights.sum()
        mean = share @ vectors
        centred = (vectors - mean) * np.sqrt(share)[:, None]
        tall = centred.shape[0] >= centred.shape[1]
        product = centred.T @ centred if tall else centred @ centred.T
        total, size = float(np.trace(product)), len(product)
        n_axes = min(n_axes, size)
        if not n_axes or not total > 0:
            return cls(mean, np.zeros((vectors.shape[1], 0)), np.zeros(0))
        values, found = eigh(product, subset_by_index=(size - n_axes, size - 1))
        keep = values > 1e-10 * total
        values, found = values[keep][::-1], found[:, keep][:, ::-1]
        axes = found if tall else centred.T @ found / np.sqrt(values)
        return cls(mean, fix_signs(axes), values / total)

    def project(self, vectors: np.ndarray) -> np.ndarray:
        """Return the coordinates of vectors along the axes."""
        return (vectors - self.mean) @ self.axes


def layouts(points: np.ndarray, axes: Axes, random_state: Any) -> list[dict[str, Any]]:
    """Return the maps: the first two axes, and t-SNE where openTSNE is there and rows are few."""
    flat = np.zeros((len(points), 2))
    flat[:, : min(2, points.shape[1])] = points[:, :2]
    share = [*rounded(axes.explained[:2]), 0.0, 0.0][:2]
    out = [{"name": "principal axes", "points": flat, "explained": share}]
    near = _tsne(points, random_state) if 30 <= len(points) <= MOST_NEAR else None
    if near is not None:
        out.append({"name": "neighbourhoods (t-SNE)", "points": near})
    return out


MOST_NEAR = 2000


def _tsne(points: np.ndarray, random_state: Any) -> np.ndarray | None:
    try:
        from openTSNE import TSNE
    except ImportError:  # an extra, and no reason to fail: the page does without
        return None
    perplexity = min(30, (len(points) - 1) // 3)
    start = points[:, :2] / max(float(points[:, 0].std()), 1e-12) * 1e-4
    if start.shape[1] < 2:
        return None
    seed = int(np.random.default_rng(random_state).integers(1 << 31))
    layout = TSNE(
        perplexity=perplexity, n_iter=250, neighbors="exact", negative_gradient_method="bh",
        initialization=start, n_jobs=1, random_state=seed,
    ).fit(points)  # fmt: skip
    return np.array(layout)


# -- the map -------------------------------------------------------------------------------------

MAP_COLUMNS = 100
MOST_LABELS = 200
OTHERS = "other values"


def describe_map(
    reading: Reading,
    seen: Rows,
    points: np.ndarray,
    axes: Axes,
    clusters: np.ndarray,
    random_state: int,
) -> dict[str, Any]:
    """Return the coordinates of the drawn rows, and the cells they can be coloured by."""
    rows = seen.first[seen.drawn]
    drawn = take(reading.table, rows)
    names = reading.kept[:MAP_COLUMNS]
    names = ([reading.target] if reading.target else []) + names
    return {
        "layouts": [
            layout | {"points": rounded(layout["points"])}
            for layout in layouts(points, axes, random_state)
        ],
        "rows": rows.tolist(),
        "copies": seen.copies[seen.drawn].tolist(),
        "clusters": clusters.tolist(),
        "columns": [{"name": name} | _cells(drawn, name) for name in names],
        "of": len(seen.first),
    }


def _cells(drawn: Table, name: str) -> dict[str, Any]:
    data = drawn[name]
    if isinstance(data, Datetimes):
        data = as_values(data)
    if isinstance(data, Numbers):
        return {"numbers": rounded(data.values, 6)}
    if isinstance(data, Sets):
        data = _joined(data, drawn.n_rows)
    first = by_frequency(data)
    kept = first[:MOST_LABELS]
    index = np.full(len(data.labels), len(kept))
    index[kept] = np.arange(len(kept))
    labels: list[Label] = [shown(data.labels[i]) for i in kept]
    if len(first) > len(kept):
        labels.append(OTHERS)
    if None in data.labels:
        index[data.labels.index(None)] = -1
    return {"labels": labels, "codes": index[data.codes].tolist()}


def _joined(data: Sets, n_rows: int) -> Codes:
    """Return sets as text, each different one a value."""
    texts = np.array([str(cell(data, row)) for row in range(n_rows)], dtype=object)
    labels, codes = np.unique(texts, return_inverse=True)
    return Codes(codes, labels.tolist())


# -- neighbours ----------------------------------------------------------------------------------


def choose_rows(
    rows: Rows, asked: Any, points: np.ndarray, labels: np.ndarray, centers: np.ndarray
) -> list[tuple[int, str]]:
    """Return the rows whose neighbours are shown, and why: those asked for, or typical ones.

    Without a wish: the most typical row of each cluster and the one farthest from all centres.
    """
    if asked is not None:
        n_rows = rows.table.n_rows
        wanted = np.atleast_1d(np.asarray(asked))
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
            raise TypeError(f"expected rows to be numbers of rows, counted from 0, got {asked!r}")
        for row in wanted:
            if not -n_rows <= row < n_rows:
                raise IndexError(f"expected a row from 0 to {n_rows - 1}, got {row}")
        return [(int(row) % n_rows, "chosen") for row in wanted]
    distance = np.linalg.norm(points - centers[labels], axis=1)
    out = []
    for k in range(len(centers)):
        own = np.flatnonzero(labels == k)
        if len(own):
            typical = rows.drawn[own[distance[own].argmin()]]
            out.append((int(rows.first[typical]), f"typical of cluster {cluster_name(k)}"))
    odd = int(rows.first[rows.drawn[distance.argmax()]])
    return out if odd in [row for row, _ in out] else [*out, (odd, "far from every cluster")]


def describe_neighbors(
    reading: Reading, model: Any, rows: Rows, chosen: list[tuple[int, str]], found: Nearest
) -> list[dict[str, Any]]:
    """Return the cells of each chosen row and of its neighbours, with each column's share."""
    names = reading.kept
    out = []
    for i, (row, why) in enumerate(chosen):
        near = []
        for number, distance in zip(found.rows[i], found.distances[i], strict=True):
            if not np.isfinite(distance):
                continue
            other = int(rows.first[number])
            near.append(
                {
                    "row": other,
                    "copies": int(rows.copies[number]),
                    "distance": rounded(distance),
                    "cells": [cell(reading.table[name], other) for name in names],
                    "shares": _shares(model, rows, row, other, names),
                    "target": _target(reading, other),
                }
            )
        out.append(
            {
                "row": row,
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


def _shares(model: Any, rows: Rows, a: int, b: int, names: list[str]) -> list[float]:
    """Return each column's share in the distance of two rows; they add up to 1."""
    parts = model.explain(*(take(rows.table, np.array([row])) for row in (a, b)))
    total = sum(parts.values()) or 1.0
    return [rounded(parts.get(name, 0.0) / total, 3) for name in names]
