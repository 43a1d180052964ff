"""What distances are made of: an embedder in, tables to look up and coordinates to subtract out.

Comes in: any fitted embedder. Goes out: a :class:`Space`, parts whose distances (squared, or plain
for L1 and measures) add up. A part belongs to one column where the embedder allows it, so a search
over some columns is a space of fewer parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft import _index_parts as parts
from weft._base import ValueEmbedder
from weft._distinct import take_rows
from weft._mixed import Transformed
from weft.hierarchy import DistanceHierarchy
from weft.mixed import MixedEmbedder
from weft.table import Schema, Table
from weft.tables import ValueTables

NATIVE = (ValueEmbedder, MixedEmbedder, DistanceHierarchy)  # they read a Table
_CHUNK = 1 << 16  # rows whose coordinates are computed at a time
HIDDEN = "\0"  # how the names of columns begin that hold the vectors of other embedders


@dataclass(frozen=True, eq=False)
class Space:
    """Parts whose distances add up to the ``power`` of an L1 or L2 distance, or its root."""

    values: list[parts.Values]
    lines: list[parts.Lines]
    power: int
    root: bool

    def only(self, names: Sequence[str]) -> Space:
        """Return the space of some columns."""
        lines = [kept for line in self.lines if (kept := line.only(names)) is not None]
        return Space([v for v in self.values if v.name in names], lines, self.power, self.root)

    def check(self, table: Table) -> None:
        """Refuse values that the embedder refuses."""
        for part in self.values:
            part.places(table[part.name])
        for rows in chunks(table, np.arange(table.n_rows)) if self.lines else ():
            self.line(rows)

    def line(self, table: Table) -> np.ndarray:
        """Return the coordinates of the parts that have no table, row by row."""
        blocks = [line.coordinates(table) for line in self.lines]
        return np.hstack([np.zeros((table.n_rows, 0)), *blocks])

    def vectors(self, table: Table) -> np.ndarray:
        """Return all coordinates as float32, and one at least."""
        blocks = []
        for part in self.values:
            column = table[part.name]
            points = part.points(part.places(column)).astype(np.float32)
            blocks.append(points[column.codes])
        out = np.hstack([*blocks, self.line(table).astype(np.float32)])
        return np.ascontiguousarray(out) if out.shape[1] else np.zeros((len(out), 1), np.float32)

    def explain(self, a: Table, b: Table) -> dict[str, float]:
        """Return each column's share in the distance of two rows (squared if it is a root)."""
        out = {}
        for part in self.values:
            asked, stored = (part.places(t[part.name])[t[part.name].codes] for t in (a, b))
            out[part.name] = float(part.apart(asked, stored)[0, 0])
        for line in self.lines:
            names, ours = line.split(a)
            apart = (ours - line.split(b)[1])[:, 0]
            total = apart.sum(axis=0)
            shares = apart @ (total if self.power == 2 else np.sign(total))
            out |= dict(zip(names, shares.tolist(), strict=True))
        return out


def space_of(embedder: Any, schema: Schema, metric: str) -> Space:
    """Take a fitted embedder apart; ``metric`` is "auto" (its own), "l2" or "l1"."""
    power = 1 if metric == "l1" else 2
    if isinstance(embedder, DistanceHierarchy):
        power = 2 if metric == "l2" else 1
        return _hierarchy_space(embedder, power)
    if isinstance(embedder, MixedEmbedder):
        space = Space([], [], power, power == 2)
        if embedder.tables_ is not None:
            space = _table_space(embedder.tables_, schema, embedder.unknown, power)
        if isinstance(embedder.numeric_, Transformed):
            space.lines.append(parts.MixedNumbers(embedder, tuple(embedder.numeric_.names)))
        elif embedder.numeric_ is not None:
            space.lines.extend(
                parts.MixedNumber(embedder, (name,)) for name in embedder.numeric_.names
            )
        return space
    if isinstance(embedder, ValueEmbedder):
        space = _table_space(embedder.tables_, schema, embedder._policy(), power)
        own = metric == "auto" and type(embedder).lookups is not ValueEmbedder.lookups
        return _measured(embedder, space) if own else space
    names = tuple(n for n in schema.names if n.startswith(HIDDEN))
    return Space([], [parts.Vectors(names)], power, power == 2)


def _table_space(tables: ValueTables, schema: Schema, unknown: Any, power: int) -> Space:
    if tables.combine == "sum":
        return Space(
            [], [parts.SummedTables(tables, unknown, tuple(tables.names))], power, power == 2
        )
    space = Space([], [], power, power == 2)
    for a, name in enumerate(tables.names):
        alone = ValueTables([name], (tables.labels[a],), [tables.tables[a]], "concat")
        if schema[name].kind == "set":
            space.lines.append(parts.SummedTables(alone, unknown, (name,)))
        else:
            space.values.append(parts.TableValues(name, alone, unknown, power))
    return space


def _measured(embedder: ValueEmbedder, space: Space) -> Space:
    """Return a space whose distances are an embedder's own tables, not those of its vectors."""
    lookups, root = embedder.lookups()
    values: list[parts.Values] = [
        parts.MeasuredValues(part.name, table, part)  # type: ignore[arg-type]
        for part, table in zip(space.values, lookups, strict=True)
    ]
    return Space(values, [], 2, root)


def _hierarchy_space(embedder: DistanceHierarchy, power: int) -> Space:
    space = Space([], [], power, power == 2)
    for column, block in zip(embedder.schema_.columns, embedder._blocks, strict=True):
        if column.kind in ("numeric", "set"):
            space.lines.append(parts.HierarchyLine(column, block, embedder.unknown, (column.name,)))
        else:
            space.values.append(parts.HierarchyValues(column.name, block, embedder.unknown, power))
    return space


def chunks(table: Table, rows: np.ndarray) -> Iterator[Table]:
    """Yield some rows of a table, few at a time."""
    for begin in range(0, len(rows), _CHUNK):
        yield take_rows(table, rows[begin : begin + _CHUNK])
