"""Parts of a space: columns of single values with their tables, and coordinates.

Comes in: what an embedder has learned of a column. Goes out: distances between its values, or the
coordinates of rows; either way something that adds up over parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from weft import _labels
from weft.hierarchy import _blocks
from weft.mixed import MixedEmbedder
from weft.table import Column, Schema, Table
from weft.tables import ValueTables, _refuse_unknown


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
        out = _labels.positions(known, column.labels)
        if self.unknown == "error":
            _refuse_unknown(self.name, out == len(known), column)
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
        chosen = [self.tables.names.index(name) for name in names]
        rows = [self.tables.tables[a] for a in chosen]
        return ValueTables(list(names), tuple(self.tables.labels[a] for a in chosen), rows, "sum")


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
        return [name], _blocks.gather(alone, [self.block], self.unknown, np.dtype("f8"))[None]


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
            "columns; index with an embedder of weft to search by some of them"
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
