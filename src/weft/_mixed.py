"""Parts of a mixed table: bins, ranks and numbers side by side, and the numeric block.

Comes in: a table of any kinds. Goes out: the same rows as values (nominal, sets, and bins of
numbers and grades, so that couplings see them) and as numbers (numbers, and ranks of grades).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr

from weft._labels import Label, positions
from weft.counts import Counts
from weft.numeric import CoupledNumeric
from weft.spectra import centred_product
from weft.table import Codes, Column, Numbers, Schema, Table
from weft.tables import ValueTables

BINNED = " (binned)"


@dataclass(frozen=True, eq=False)
class Numbering:
    """How each numeric and ordinal column becomes numbers and bins: learned from the first rows."""

    edges: dict[str, np.ndarray]
    levels: dict[str, tuple[Label, ...]]

    @classmethod
    def of(cls, table: Table, n_bins: int) -> Numbering:
        """Take quantiles of numbers as the edges of bins, and the levels of grades."""
        edges, levels = {}, {}
        for column, data in table:
            if isinstance(data, Numbers):
                edges[column.name] = quantile_edges(data.values, n_bins)
            elif column.kind == "ordinal" and isinstance(data, Codes):
                own = sorted((v for v in data.labels if v is not None), key=_sortable)
                levels[column.name] = column.levels or tuple(own)
        return cls(edges, levels)

    def spread(self, table: Table, unknown: str = "centroid") -> Table:
        """Return a table with values as they are, bins beside numbers, and ranks for grades."""
        columns: list[Column] = []
        parts: list[Any] = []
        for column, data in table:
            if isinstance(data, Numbers):
                columns += [column, Column(column.name + BINNED)]
                parts += [data, binned(data.values, self.edges[column.name])]
            elif column.kind == "ordinal":
                ranks = self._ranks(column.name, data, unknown)
                columns += [Column(column.name, "numeric"), Column(column.name + BINNED)]
                parts += [Numbers(ranks), data]
            else:
                columns.append(column)
                parts.append(data)
        schema = Schema(tuple(columns), complete=True, named=table.schema.named)
        return Table(schema, tuple(parts), table.n_rows)

    def numbers(self, table: Table, unknown: str) -> Table:
        """Return the numbers of a table, and the ranks of its grades."""
        columns: list[Column] = []
        parts: list[Any] = []
        for column, data in table:
            if isinstance(data, Numbers):
                columns.append(column)
                parts.append(data)
            elif column.kind == "ordinal":
                columns.append(Column(column.name, "numeric"))
                parts.append(Numbers(self._ranks(column.name, data, unknown)))
        schema = Schema(tuple(columns), complete=True, named=table.schema.named)
        return Table(schema, tuple(parts), table.n_rows)

    def _ranks(self, name: str, data: Any, unknown: str) -> np.ndarray:
        place = positions(self.levels[name], data.labels).astype(float)
        odd = place == len(self.levels[name])
        if unknown == "error":
            for i in np.flatnonzero(odd):
                if data.labels[i] is not None and (data.codes == i).any():
                    raise ValueError(
                        f"column {name!r}: value {data.labels[i]!r} is no level; add it to the "
                        "levels, or use unknown='centroid'"
                    )
        place[odd] = np.nan
        return place[data.codes]


def quantile_edges(values: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the inner edges of bins with about as many numbers each."""
    present = values[~np.isnan(values)]
    if not len(present):
        return np.zeros(0)
    edges = np.unique(np.quantile(present, np.arange(1, n_bins) / n_bins))
    low = present.min()
    edges = edges[edges > low]  # a bin below the lowest number would be empty
    above = present[present > low]
    if n_bins > 1 and not len(edges) and len(above):
        return above[above.argmin()][
            None
        ]  # most numbers are the lowest one: tell those from others
    return edges


def binned(values: np.ndarray, edges: np.ndarray) -> Codes:
    """Return the bin of each number; missing is a value of its own."""
    codes = np.searchsorted(edges, values, side="right")
    gaps = np.isnan(values)
    labels: list[Label] = list(range(len(edges) + 1))
    if gaps.any():
        codes[gaps] = len(labels)
        labels.append(None)
    return Codes(codes.astype(np.uint16), labels)


def _sortable(label: Label) -> tuple[str, Any]:
    return (type(label).__name__ if not isinstance(label, int | float) else "", label)


# -- numbers ------------------------------------------------------------------------------------


def standardised(counts: Counts, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and one over the deviation, 0 for a column that does not vary."""
    moments = [counts.moments(name) for name in names]
    mean = np.array([mean if n else 0.0 for n, mean, _ in moments])
    variance = np.array([v if n else 0.0 for n, _, v in moments])
    return mean, np.where(variance > 0, 1 / np.sqrt(np.where(variance > 0, variance, 1)), 0)


def class_weights(counts: Counts, names: Sequence[str]) -> np.ndarray:
    """Return how much each column counts, mean 1: half alike, half as it is tied to the classes.

    The tie is ``SU⁺ = 2 max(0, MI - (bins - 1)(classes - 1) / 2n) / (H(bins) + H(classes))``. All
    weights are 1 where classes are not known, or depend on no column.
    """
    ties = np.zeros(len(names))
    for j, name in enumerate(names if counts.class_pairs is not None else ()):
        joint = counts.class_pairs[counts.span(name + BINNED)]  # type: ignore[index]
        joint = joint[joint.sum(axis=1) > 0][:, joint.sum(axis=0) > 0]
        total = joint.sum()
        bins, classes, both = (
            entr(share / total).sum() for share in (joint.sum(axis=1), joint.sum(axis=0), joint)
        )
        chance = (joint.shape[0] - 1) * (joint.shape[1] - 1) / (2 * total)
        ties[j] = 2 * max(bins + classes - both - chance, 0) / max(bins + classes, 1e-300)
    return (1 + ties / ties.mean()) / 2 if ties.sum() > 0 else np.ones(len(names))


class Standard:
    """Numbers with mean 0 and variance 1, times a weight; a missing one lies at the mean."""

    def __init__(self, counts: Counts, names: Sequence[str], weights: np.ndarray) -> None:
        self.names = list(names)
        self.mean, scale = standardised(counts, names)
        self.factor = scale * np.sqrt(weights)
        self.inertia = float(weights[scale > 0].sum())  # a column that does not vary says nothing

    def feature_names(self) -> list[str]:
        return self.names

    def put(self, table: Table, out: np.ndarray) -> None:
        for j, name in enumerate(self.names):
            out[:, j : j + 1] = self.column(j, table[name].values)

    def column(self, j: int, values: np.ndarray) -> np.ndarray:
        """Return the coordinate of one column's numbers."""
        scaled = (values - self.mean[j]) * self.factor[j]
        return np.where(np.isnan(scaled), 0, scaled)[:, None]

    def parts(self, table: Table) -> tuple[list[str], np.ndarray]:
        """Return what each column brings to the vector: (names, (columns, rows, dimensions))."""
        vectors = np.zeros((table.n_rows, len(self.names)))
        self.put(table, vectors)
        return self.names, vectors.T[:, :, None] * np.eye(len(self.names))[:, None, :]


class Transformed:
    """Numbers through a transformer that was fitted on them; gaps are filled with the mean."""

    def __init__(self, transformer: Any, counts: Counts, table: Table) -> None:
        self.names = [c.name for c in table.schema.numeric]
        moments = (counts.moments(name) for name in self.names)
        self.mean = np.array([mean if n else 0.0 for n, mean, _ in moments])
        self.transformer = transformer
        rows = self._rows(table)
        transformer.fit(rows)
        vectors = np.asarray(transformer.transform(rows), dtype=float)
        self.width = vectors.shape[1]
        self.inertia = float(vectors.var(axis=0).sum())

    def _rows(self, table: Table) -> np.ndarray:
        rows = np.stack([table[name].values for name in self.names], axis=1)
        if isinstance(self.transformer, CoupledNumeric):
            return rows  # it knows what to do with gaps
        return np.where(np.isnan(rows), self.mean, rows)

    def feature_names(self) -> list[str]:
        try:
            names = self.transformer.get_feature_names_out(self.names)
        except (AttributeError, ValueError):
            return [f"numeric{i}" for i in range(self.width)]
        return [str(name) for name in names]

    def put(self, table: Table, out: np.ndarray) -> None:
        out[:] = self.transformer.transform(self._rows(table))

    def parts(self, table: Table) -> tuple[list[str], np.ndarray]:
        """Return what each column brings, where the transformer can tell; else all in one."""
        if isinstance(self.transformer, CoupledNumeric):
            return self.names, self.transformer.parts(self._rows(table))
        return ["(numeric)"], np.asarray(self.transformer.transform(self._rows(table)))[None]


# -- values -------------------------------------------------------------------------------------


def own_tables(tables: ValueTables, names: list[str]) -> ValueTables:
    """Return the tables of some columns: bins shape couplings, the numbers themselves stand in."""
    chosen = [tables.names.index(name) for name in names]
    return ValueTables(
        names,
        tuple(tables.labels[a] for a in chosen),
        [tables.tables[a] for a in chosen],
        tables.combine,
        np.array([tables.repair[a] for a in chosen]),
    )


def table_inertia(tables: ValueTables, counts: Counts) -> float:
    """Return the variance of the objects that tables make, from counts."""
    rows = [table[:-1] for table in tables.tables]
    if tables.combine == "sum":
        stacked = np.vstack(rows)
        return float((stacked * centred_product(counts, stacked)).sum() / counts.n)
    total = 0.0
    for a, table in enumerate(rows):
        share = counts.value_counts[counts.span(a)]
        share = share / share.sum()
        total += float(share @ (table - share @ table) ** 2 @ np.ones(table.shape[1]))
    return total
