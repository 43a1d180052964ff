"""Columns: what each holds, how much is missing, and what it looks like."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft._labels import order
from weft.report._reading import Reading
from weft.report._text import rounded, shown
from weft.table import Codes, Numbers, Sets

TOP = 5
N_BARS = 24


def describe_columns(reading: Reading) -> list[dict[str, Any]]:
    """Return, per column, its kind, missing and distinct values, and the most frequent ones."""
    out = []
    for column, data in reading.table:
        role = "target" if column.name == reading.target else "column"
        entry = {"name": column.name, "kind": column.kind, "role": role}
        if column.name in reading.left_out:
            entry |= {"role": "left out", "why": reading.left_out[column.name]}
        look = _numbers(data) if isinstance(data, Numbers) else _values(data)
        out.append(entry | look)
    return out


def value_counts(data: Codes | Sets) -> np.ndarray:
    """Return in how many rows each label of a column occurs; a set counts an element once."""
    return np.bincount(data.codes, minlength=len(data.labels))


def by_frequency(data: Codes | Sets) -> np.ndarray:
    """Return the labels that occur, missing left out, most frequent first, ties in their order."""
    counts = value_counts(data)
    rank = np.empty(len(data.labels), int)
    rank[order(data.labels)] = np.arange(len(data.labels))
    sorted_ = np.lexsort((rank, -counts))
    return np.array([i for i in sorted_ if counts[i] and data.labels[i] is not None], int)


def missing_rows(data: Codes | Numbers | Sets) -> int:
    """Return how many cells of a column are missing."""
    if isinstance(data, Numbers):
        return int(np.isnan(data.values).sum())
    return int(value_counts(data)[data.labels.index(None)]) if None in data.labels else 0


def _values(data: Codes | Sets) -> dict[str, Any]:
    counts, first = value_counts(data), by_frequency(data)
    return {
        "missing": missing_rows(data),
        "distinct": len(first),
        "once": int((counts[first] == 1).sum()),
        "top": [[shown(data.labels[i]), int(counts[i])] for i in first[:TOP]],
        "rest": int(counts[first[TOP:]].sum()),
    }


def _numbers(data: Numbers) -> dict[str, Any]:
    present = data.values[~np.isnan(data.values)]
    out: dict[str, Any] = {
        "missing": missing_rows(data),
        "distinct": len(np.unique(present)),
    }
    if not len(present):
        return out
    names = ("min", "q1", "median", "q3", "max", "mean", "deviation")
    with np.errstate(over="ignore", invalid="ignore"):  # numbers may span all of float64
        figures = [*np.quantile(present, [0, 0.25, 0.5, 0.75, 1]), present.mean(), present.std()]
        span = np.ptp(present)
    out["summary"] = dict(zip(names, rounded(figures, 6), strict=True))
    if np.isfinite(span) and span > 0:
        out["bars"] = np.histogram(present, N_BARS)[0].tolist()
    return out
