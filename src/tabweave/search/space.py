"""What distances are made of: an embedder in, tables to look up and coordinates to subtract out.

Comes in: any fitted embedder. Goes out: a :class:`Space`, parts whose distances (squared, or plain
for L1 and measures) add up. A part belongs to one column where the embedder allows it, so a search
over some columns is a space of fewer parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from tabweave.base import ValueEmbedder
from tabweave.blocks.trees import gather
from tabweave.blocks.value_tables import ValueTables
from tabweave.embed.hierarchy import DistanceHierarchy
from tabweave.embed.mixed import MixedEmbedder, Transformed
from tabweave.rows.distinct import take_rows
from tabweave.rows.table import Column, Schema, Table
from tabweave.rows.vocabulary import check_seen, positions

NATIVE = (ValueEmbedder, MixedEmbedder, DistanceHierarchy)  # they read a Table
_CHUNK = 1 << 16  # rows whose coordinates are computed at a time
HIDDEN = "\0"  # how the names of columns begin that hold the vectors of other embedders


@dataclass(frozen=True, eq=False)
class Space:
    """Parts whose distances add up to the ``power`` of an L1 or L2 distance, or its root."""

    values: list[Values]
    lines: list[Lines]
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
            space.lines.append(MixedNumbers(embedder, tuple(embedder.numeric_.names)))
        elif embedder.numeric_ is not None:
            space.lines.extend(MixedNumber(embedder, (name,)) for name in embedder.numeric_.names)
        return space
    if isinstance(embedder, ValueEmbedder):
        space = _table_space(embedder.learn().tables_, schema, embedder._policy(), power)
        own = metric == "auto" and type(embedder).lookups is not ValueEmbedder.lookups
        return _measured(embedder, space) if own else space
    names = tuple(n for n in schema.names if n.startswith(HIDDEN))
    return Space([], [Vectors(names)], power, power == 2)


def _table_space(tables: ValueTables, schema: Schema, unknown: Any, power: int) -> Space:
    if tables.combine == "sum":
        return Space([], [SummedTables(tables, unknown, tuple(tables.names))], power, power == 2)
    space = Space([], [], power, power == 2)
    for name in tables.names:
        alone = tables.select([name])
        if schema[name].kind == "set":
            space.lines.append(SummedTables(alone, unknown, (name,)))
        else:
            space.values.append(TableValues(name, alone, unknown, power))
    return space


def _measured(embedder: ValueEmbedder, space: Space) -> Space:
    """Return a space whose distances are an embedder's own tables, not those of its vectors."""
    lookups, root = embedder.lookups()
    values: list[Values] = [
        MeasuredValues(part.name, table, part)  # type: ignore[arg-type]
        for part, table in zip(space.values, lookups, strict=True)
    ]
    return Space(values, [], 2, root)


def _hierarchy_space(embedder: DistanceHierarchy, power: int) -> Space:
    space = Space([], [], power, power == 2)
    for column, block in zip(embedder.schema_.columns, embedder._blocks, strict=True):
        if column.kind in ("numeric", "set"):
            space.lines.append(HierarchyLine(column, block, embedder.unknown, (column.name,)))
        else:
            space.values.append(HierarchyValues(column.name, block, embedder.unknown, power))
    return space


def chunks(table: Table, rows: np.ndarray) -> Iterator[Table]:
    """Yield some rows of a table, few at a time."""
    for begin in range(0, len(rows), _CHUNK):
        yield take_rows(table, rows[begin : begin + _CHUNK])


# -- Parts of a space: columns of single values with their tables, and coordinates


class Values(Protocol):
    """A column of single values."""

    @property
    def name(self) -> str:
        """The column."""

    def places(self, column: Any) -> np.ndarray:
        """Return what :meth:`apart` and :meth:`points` want to know of a column's labels."""

    def apart(self, asked: np.ndarray, stored: np.ndarray) -> np.ndarray:
        """Return the distances between places."""

    def points(self, places: np.ndarray) -> np.ndarray:
        """Return the coordinates of places."""


class Lines(Protocol):
    """Coordinates of one column, or of several that cannot be told apart."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns."""

    def only(self, names: Sequence[str]) -> Lines | None:
        """Return what is left if some columns count only."""

    def coordinates(self, table: Table) -> np.ndarray:
        """Return the coordinates of rows."""

    def split(self, table: Table) -> tuple[list[str], np.ndarray]:
        """Return what each column brings to them: (names, (columns, rows, dimensions))."""


# -- single values ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TableValues:
    """A column of a value table; places are points."""

    name: str
    tables: ValueTables
    unknown: Any
    power: int

    def numbers(self, column: Any) -> np.ndarray:
        """Return where the labels stand in the table; its last row if nowhere."""
        known = self.tables.labels[0]
        out = positions(known, column.labels)
        if self.unknown == "error":
            check_seen(self.name, out == len(known), column)
        return out

    def places(self, column: Any) -> np.ndarray:
        return self.tables.tables[0][self.numbers(column)]

    def apart(self, asked: np.ndarray, stored: np.ndarray) -> np.ndarray:
        return _between(asked, stored, self.power)

    def points(self, places: np.ndarray) -> np.ndarray:
        return places


@dataclass(frozen=True, eq=False)
class MeasuredValues:
    """A column with a table of dissimilarities; places are numbers of values."""

    name: str
    table: np.ndarray
    embedded: TableValues

    def places(self, column: Any) -> np.ndarray:
        return self.embedded.numbers(column)

    def apart(self, asked: np.ndarray, stored: np.ndarray) -> np.ndarray:
        return self.table[np.ix_(asked, stored)]

    def points(self, places: np.ndarray) -> np.ndarray:
        return self.embedded.tables.tables[0][places]


@dataclass(frozen=True, eq=False)
class HierarchyValues:
    """A column of a distance hierarchy; places are points, one coordinate per edge."""

    name: str
    block: Any
    unknown: str
    power: int

    def places(self, column: Any) -> np.ndarray:
        return self.block.rows(column.labels, self.name, self.unknown)[:-1]

    def apart(self, asked: np.ndarray, stored: np.ndarray) -> np.ndarray:
        return _between(asked, stored, self.power)

    def points(self, places: np.ndarray) -> np.ndarray:
        return places


# -- coordinates --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SummedTables:
    """Columns whose rows are summed, or one column of sets."""

    tables: ValueTables
    unknown: Any
    columns: tuple[str, ...]

    def only(self, names: Sequence[str]) -> Lines | None:
        kept = tuple(name for name in self.columns if name in names)
        return SummedTables(self.tables, self.unknown, kept) if kept else None

    def coordinates(self, table: Table) -> np.ndarray:
        return self._of(self.columns).gather(table, unknown=self.unknown)

    def split(self, table: Table) -> tuple[list[str], np.ndarray]:
        parts = [self._of([name]).gather(table, unknown=self.unknown) for name in self.columns]
        return list(self.columns), np.stack(parts)

    def _of(self, names: Sequence[str]) -> ValueTables:
        return replace(self.tables.select(names), combine="sum")


@dataclass(frozen=True, eq=False)
class HierarchyLine:
    """Numbers or sets of a distance hierarchy."""

    column: Column
    block: Any
    unknown: str
    columns: tuple[str, ...]

    def only(self, names: Sequence[str]) -> Lines | None:
        return self if self.column.name in names else None

    def coordinates(self, table: Table) -> np.ndarray:
        return self.split(table)[1][0]

    def split(self, table: Table) -> tuple[list[str], np.ndarray]:
        name = self.column.name
        alone = Table(Schema((self.column,), complete=True), (table[name],), table.n_rows)
        return [name], gather(alone, [self.block], self.unknown, np.dtype("f8"))[None]


@dataclass(frozen=True, eq=False)
class MixedNumber:
    """A column of numbers, or of the ranks of grades, of a mixed embedder."""

    embedder: MixedEmbedder
    columns: tuple[str, ...]

    def only(self, names: Sequence[str]) -> Lines | None:
        return self if self.columns[0] in names else None

    def coordinates(self, table: Table) -> np.ndarray:
        return self.split(table)[1][0]

    def split(self, table: Table) -> tuple[list[str], np.ndarray]:
        name = self.columns[0]
        alone = table.schema.select([name]), (table[name],), table.n_rows
        numbers = self.embedder._numbers(Table(*alone))[name].values
        block = self.embedder.numeric_
        vectors = block.column(block.names.index(name), numbers)
        return [name], vectors[None] * self.embedder.numeric_scale_


@dataclass(frozen=True, eq=False)
class MixedNumbers:
    """Numbers that a transformer has mixed: all of them count, or none."""

    embedder: MixedEmbedder
    columns: tuple[str, ...]

    def only(self, names: Sequence[str]) -> Lines | None:
        absent = [name for name in self.columns if name not in names]
        if absent and len(absent) < len(self.columns):
            raise ValueError(
                f"column {absent[0]!r} is not given, but the numeric columns "
                f"({', '.join(map(repr, self.columns))}) go through one transformer: "
                "give all of them or none"
            )
        return None if absent else self

    def coordinates(self, table: Table) -> np.ndarray:
        numeric = self.embedder.numeric_
        out = np.empty((table.n_rows, len(numeric.feature_names())))
        numeric.put(self.embedder._numbers(table), out)
        return out * self.embedder.numeric_scale_

    def split(self, table: Table) -> tuple[list[str], np.ndarray]:
        names, parts = self.embedder.numeric_.parts(self.embedder._numbers(table))
        return names, parts * self.embedder.numeric_scale_


@dataclass(frozen=True, eq=False)
class Vectors:
    """What an embedder that tells nothing of its columns made of each row."""

    columns: tuple[str, ...]

    def only(self, names: Sequence[str]) -> Lines | None:
        raise ValueError(
            "the embedder does not say which column its coordinates come from, so a row needs all "
            "columns; index with an embedder of tabweave to search by some of them"
        )

    def coordinates(self, table: Table) -> np.ndarray:
        return self.split(table)[1][0]

    def split(self, table: Table) -> tuple[list[str], np.ndarray]:
        out = np.stack([table[name].values for name in self.columns], axis=1)
        return ["(all columns)"], out[None]


def _between(asked: np.ndarray, stored: np.ndarray, power: int) -> np.ndarray:
    from scipy.spatial.distance import cdist

    if not stored.shape[1]:
        return np.zeros((len(asked), len(stored)))
    return cdist(asked, stored, "cityblock" if power == 1 else "sqeuclidean")
