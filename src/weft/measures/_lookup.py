"""What stands between a measure's tables and a lookup: checks, the unknown value, distortion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from weft._squares import cdist_squared
from weft.counts import Counts
from weft.measures.registry import Measure
from weft.spaces import refuse_sets
from weft.tables import ValueTables

_ROUNDING = 1e-10  # relative size of an error that is none


def check_counts(chosen: Measure, counts: Counts) -> None:
    """Refuse what no table of values can compare, and classes that are not there."""
    refuse_sets(counts, "ValueMetric")
    if not chosen.needs_y:
        return
    if counts.classes is None:
        raise ValueError(f"measure {chosen.name!r} needs classes; count the rows with y")
    if len(counts.classes) < 2:
        raise ValueError(
            f"y has one class, {counts.classes[0]!r}; measure {chosen.name!r} needs at least two"
        )


def checked(result: Any, name: str, counts: Counts) -> list[np.ndarray]:
    """Return the dissimilarities if they are such; rounding is tidied away."""
    if not isinstance(result, Sequence) or len(result) != len(counts.names):
        raise ValueError(
            f"measure {name!r} must return a list of {len(counts.names)} arrays, one per column"
        )
    out = []
    for column, size, given in zip(counts.names, counts.sizes.tolist(), result, strict=True):
        d = np.array(given, dtype=np.float64)
        fault = _fault(d, size)
        if fault:
            raise ValueError(f"measure {name!r}, column {column!r}: its table has {fault}")
        d = np.maximum((d + d.T) / 2, 0)
        np.fill_diagonal(d, 0)
        out.append(d)
    return out


def _fault(d: np.ndarray, size: int) -> str:
    """Say what keeps a table from being one of dissimilarities; nothing if it is."""
    if d.shape != (size, size):
        return f"the shape {d.shape}, not {(size, size)}"
    if not np.isfinite(d).all():
        return "entries that are not finite"
    slack = _ROUNDING * np.abs(d).max(initial=0)
    if (np.abs(d - d.T) > slack).any():
        return "entries that are not symmetric"
    if (np.abs(np.diagonal(d)) > slack).any():
        return "a diagonal that is not zero"
    return "negative entries" if (d < -slack).any() else ""


def with_unknown(table: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Add an unknown value last: to each value what the fitted rows are on average.

    To another unknown value it is what a row is to itself on average: 0 in a dissimilarity, and
    the same in both halves of a ratio, which is then 1.
    """
    share = f / f.sum()
    mean = share @ table
    corner = share @ np.diagonal(table)
    return np.block([[table, mean[:, None]], [mean[None, :], np.full((1, 1), corner)]])


def one_minus(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return 1 − above / below, and 0 where there is nothing to compare."""
    ratio = np.divide(above, below, out=np.ones_like(below), where=below > 0)
    return np.maximum(1 - ratio, 0)


class Scaling:
    """Vectors of values, made when first asked for: comparing rows needs none of them."""

    def __init__(self, dissimilarities: list[np.ndarray], counts: Counts) -> None:
        self.dissimilarities = dissimilarities
        self.counts = counts

    @cached_property
    def tables(self) -> ValueTables:
        """The vectors, by classical scaling of each column."""
        return ValueTables.from_grams([d / -2 for d in self.dissimilarities], self.counts)

    @cached_property
    def distortion(self) -> tuple[np.ndarray, float]:
        """What :func:`distortion` says of them."""
        return distortion(self.dissimilarities, self.tables)


def distortion(dissimilarities: list[np.ndarray], tables: ValueTables) -> tuple[np.ndarray, float]:
    """Return the relative error of the vectors' squared distances, per column and in total."""
    errors, largest = np.zeros((2, len(dissimilarities)))
    for a, (d, rows) in enumerate(zip(dissimilarities, tables.tables, strict=True)):
        largest[a] = d.max(initial=0)
        error = np.abs(cdist_squared(rows[:-1], rows[:-1]) - d).max(initial=0)
        errors[a] = error if error > _ROUNDING * largest[a] else 0
    share = np.divide(errors, largest, out=np.zeros_like(errors), where=largest > 0)
    return share, float(errors.sum() / max(largest.sum(), np.finfo(float).tiny))
