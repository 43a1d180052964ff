"""Neighbours: the rows nearest to a few chosen ones, and why they are no nearer."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.report._reading import Reading, take
from weft.report._rows import Rows
from weft.report._text import cell, cluster_name, rounded


class Nearest:
    """Keeps the nearest distinct rows of some queries while blocks of rows go by."""

    def __init__(self, queries: np.ndarray, vectors: np.ndarray, k: int) -> None:
        self.queries, self.vectors, self.k = queries, vectors, k
        self.distances = np.full((len(queries), 0), np.inf)
        self.numbers = np.zeros((len(queries), 0), int)

    def see(self, numbers: np.ndarray, vectors: np.ndarray) -> None:
        """Take a block of rows into account."""
        from scipy.spatial.distance import cdist

        if not len(self.queries):
            return
        apart = cdist(self.vectors, vectors)
        apart[self.queries[:, None] == numbers] = np.inf  # a row is no neighbour of itself
        distances = np.hstack([self.distances, apart])
        candidates = np.hstack([self.numbers, np.broadcast_to(numbers, apart.shape)])
        best = np.argsort(distances, axis=1, kind="stable")[:, : self.k]
        self.distances = np.take_along_axis(distances, best, axis=1)
        self.numbers = np.take_along_axis(candidates, best, axis=1)


def choose_rows(
    rows: Rows, asked: Any, places: np.ndarray, labels: np.ndarray, centers: np.ndarray
) -> list[tuple[int, str]]:
    """Return the rows whose neighbours are shown, and why: those asked for, or telling ones.

    Without a wish: the most typical row of each cluster and the one farthest from all centres.
    """
    if asked is not None:
        n_rows = rows.table.n_rows
        wanted = np.atleast_1d(np.asarray(asked))
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
            raise TypeError(f"rows={asked!r}: give numbers of rows, counted from 0")
        for row in wanted:
            if not -n_rows <= row < n_rows:
                raise IndexError(f"there is no row {row}; rows go from 0 to {n_rows - 1}")
        return [(int(row) % n_rows, "chosen") for row in wanted]
    apart = np.linalg.norm(places - centers[labels], axis=1)
    out = []
    for k in range(len(centers)):
        own = np.flatnonzero(labels == k)
        if len(own):
            typical = rows.drawn[own[apart[own].argmin()]]
            out.append((int(rows.first[typical]), f"typical of cluster {cluster_name(k)}"))
    odd = int(rows.first[rows.drawn[apart.argmax()]])
    return out if odd in [row for row, _ in out] else [*out, (odd, "far from every cluster")]


def describe_neighbors(
    reading: Reading, model: Any, rows: Rows, chosen: list[tuple[int, str]], found: Nearest
) -> list[dict[str, Any]]:
    """Return the cells of each chosen row and of its neighbours, with each column's share."""
    names = reading.kept
    out = []
    for i, (row, why) in enumerate(chosen):
        near = []
        for number, distance in zip(found.numbers[i], found.distances[i], strict=True):
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
