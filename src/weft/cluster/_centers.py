"""Centres of k-modes as histograms of values, and the tables that distances to them come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft import _distinct, _labels, _rows
from weft._base import ValueEmbedder
from weft._labels import Label
from weft.table import Table

CENTERS = ("mode", "medoid", "distribution")
UNKNOWN = "<unknown>"


@dataclass(frozen=True, eq=False)
class Layout:
    """The values of all columns end to end, an unknown one last in each, and their tables.

    A row is its places in that sequence; a centre is a histogram over it.
    """

    metric: ValueEmbedder
    kind: int  # of CENTERS
    root: bool
    labels: tuple[tuple[Label, ...], ...]
    offsets: np.ndarray
    tables: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, metric: ValueEmbedder, feature_weights: Any, centers: str) -> Layout:
        """Lay out the tables of a metric, weighted by column."""
        try:
            tables, root = _rows.value_lookups(metric)
        except ValueError as error:
            raise ValueError(
                f"k-modes needs a metric with one table of values per column: {error}"
            ) from error
        weights = column_weights(feature_weights, metric.counts_.names)
        sizes = np.array([len(table) for table in tables], np.int64)
        return cls(
            metric=metric,
            kind=CENTERS.index(centers),
            root=root,
            labels=metric.counts_.labels,
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            tables=np.concatenate([w * t.ravel() for w, t in zip(weights, tables, strict=True)]),
            starts=np.concatenate([[0], np.cumsum(sizes**2)]),
        )

    def places(self, table: Table) -> np.ndarray:
        """Return the places of the values of each row."""
        codes = _rows.value_codes(self.metric, table)
        return self._placed(codes, slice(None))

    def distinct(
        self, table: Table, weight: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the places of the distinct rows, their weights, and the number of each row."""
        codes = _rows.value_codes(self.metric, table)
        first, inverse = _distinct.distinct_rows(codes)
        weights = np.bincount(inverse, weights=weight, minlength=len(first))
        return self._placed(codes, first), weights.astype(np.float64), inverse

    def _placed(self, codes: Sequence[np.ndarray], rows: Any) -> np.ndarray:
        out = np.empty((len(codes[0][rows]), len(codes)), np.int32)
        for a, column in enumerate(codes):
            out[:, a] = column[rows] + self.offsets[a]
        return out

    def histogram(self, places: np.ndarray) -> np.ndarray:
        """Return centres that are one row each."""
        out = np.zeros((len(places), self.offsets[-1]))
        np.put_along_axis(out, places.astype(np.int64), 1.0, axis=1)
        return out

    def run(
        self, places: np.ndarray, weight: np.ndarray, histogram: np.ndarray, max_iter: int
    ) -> tuple[float, int]:
        """Run k-modes from a first histogram, which becomes that of the best centres."""
        from weft.cluster import _kmodes_kernels as kernels

        layout = (self.offsets, self.tables, self.starts, self.kind)
        return kernels.run(places, weight, *layout, max_iter, histogram)

    def reach(self, histogram: np.ndarray) -> np.ndarray:
        """Return what each value pays under each centre, values × centres."""
        from weft.cluster import _kmodes_kernels as kernels

        out = np.empty(histogram.shape[::-1])
        kernels.reach_of(histogram, self.offsets, self.tables, self.starts, self.kind, out)
        return out

    def centers(self, histogram: np.ndarray) -> Any:
        """Return the centres for a user: labels, or per column the share of each value."""
        from weft.cluster import _kmodes_kernels as kernels

        if CENTERS[self.kind] == "distribution":
            return [self._shares(row) for row in histogram]
        values = np.empty((len(histogram), len(self.labels)), np.int64)
        layout = (self.offsets, self.tables, self.starts, self.kind)
        kernels.chosen_values(histogram, *layout, values)
        out = np.empty(values.shape, dtype=object)
        for a, labels in enumerate(self.labels):
            out[:, a] = [(*labels, UNKNOWN)[v] for v in values[:, a]]
        return out

    def _shares(self, row: np.ndarray) -> dict[str, dict[Label, float]]:
        out = {}
        for a, name in enumerate(self.metric.counts_.names):
            counts = row[self.offsets[a] : self.offsets[a + 1]]
            shares = zip((*self.labels[a], UNKNOWN), (counts / counts.sum()).tolist(), strict=True)
            out[name] = {value: share for value, share in shares if share > 0}
        return out

    def respread(self, histogram: np.ndarray, known: Any) -> np.ndarray:
        """Carry histograms over from an older vocabulary; unknown stays unknown."""
        parts, start = [], 0
        for old, new in zip(known, self.labels, strict=True):
            part = np.zeros((len(histogram), len(new) + 1))
            part[:, _labels.positions(new, old)] = histogram[:, start : start + len(old)]
            part[:, -1] += histogram[:, start + len(old)]
            start += len(old) + 1
            parts.append(part)
        return np.concatenate(parts, axis=1)


def column_weights(given: Any, names: Sequence[str]) -> np.ndarray:
    """Return one weight per column from a mapping or a sequence."""
    if given is None:
        return np.ones(len(names))
    if isinstance(given, dict):
        odd = [name for name in given if name not in names]
        if odd:
            raise ValueError(
                f"feature_weights names column {odd[0]!r}, which is not there; "
                f"there are {', '.join(map(repr, names))}"
            )
        given = [given.get(name, 1.0) for name in names]
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (len(names),):
        raise ValueError(f"feature_weights has shape {weights.shape} for {len(names)} columns")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise ValueError(
            f"feature_weights of column {names[bad[0]]!r} is {weights[bad[0]]}; use a number >= 0"
        )
    if not weights.any():
        raise ValueError("feature_weights are all zero; give at least one column a weight")
    return weights
