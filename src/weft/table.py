"""Table: rows of any library in, small integer codes out.

The first room of the house. Whatever a user has (pandas, polars, pyarrow, NumPy, dicts of columns,
lists of dicts) becomes a :class:`Table`: per column the codes of its values, its numbers or its
sets, under a :class:`Schema` that says what each column is. Nothing is learned here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from weft import _numbers, _read
from weft._frames import columns_of, infer_kind, levels_of
from weft._labels import Label
from weft._schema import KINDS, Column, Kind, Schema, refuse_duplicates

__all__ = ["KINDS", "Codes", "Column", "Kind", "Numbers", "Schema", "Sets", "Table"]


@dataclass(frozen=True, eq=False)
class Codes:
    """A nominal or ordinal column: one code a row, and the label of each code."""

    codes: np.ndarray
    labels: list[Label]


@dataclass(frozen=True, eq=False)
class Numbers:
    """A numeric column: float64, NaN where missing."""

    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Sets:
    """A set-valued column: row i has the elements ``codes[starts[i]:starts[i + 1]]``."""

    starts: np.ndarray
    codes: np.ndarray
    labels: list[Label]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as codes, numbers and sets.

    Build one with :meth:`Table.of`. Codes refer to the table's own labels, which need not be
    sorted and may include values that no row has; :class:`~weft.Counts` makes them canonical.

    Examples
    --------
    >>> table = Table.of({"color": ["red", "blue", "red"], "weight": [1.5, 2.0, None]})
    >>> table.schema.columns[1].kind
    'numeric'
    >>> table["color"].codes.dtype
    dtype('uint8')
    """

    schema: Schema
    columns: tuple[Codes | Numbers | Sets, ...]
    n_rows: int

    @classmethod
    def of(
        cls,
        X: Any,
        schema: Schema | Mapping[Any, Any] | None = None,
        *,
        numbers: Literal["numeric", "nominal"] = "numeric",
    ) -> Table:
        """Read rows.

        Parameters
        ----------
        X : frame, array, mapping of columns, list of dicts, or Table
            The rows.
        schema : Schema or mapping, optional
            Kinds of some or all columns. A complete schema (that of another table) is matched by
            name: other columns are ignored, a missing one is an error.
        numbers : {"numeric", "nominal"}
            What an undeclared column of numbers is.
        """
        schema = Schema.of(schema)
        if isinstance(X, Table):
            return _conforming(X, schema)
        names, cells, n_rows = columns_of(X)
        named = names is not None
        if names is None:
            names = [f"x{i}" for i in range(len(cells))]
        refuse_duplicates(names)
        by_name = dict(zip(names, cells, strict=True))
        if schema.complete:
            by_name = _matched(by_name, schema, named)
            found = schema
        else:
            found = _completed(by_name, schema, numbers, named)
        columns = tuple(_column(by_name[c.name], c, found) for c in found.columns)
        return cls(found, columns, n_rows)

    def select(self, columns: Sequence[str]) -> Table:
        """Return the table of some columns, in the order given."""
        parts = tuple(self[name] for name in columns)
        return Table(self.schema.select(columns), parts, self.n_rows)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: str) -> Any:
        return self.columns[self.schema.names.index(self.schema[name].name)]

    def __iter__(self) -> Iterator[tuple[Column, Codes | Numbers | Sets]]:
        return iter(zip(self.schema.columns, self.columns, strict=True))

    def __repr__(self) -> str:
        kinds = ", ".join(f"{c.name}: {c.kind}" for c in self.schema.columns[:8])
        more = ", ..." if len(self.schema) > 8 else ""
        return f"Table({self.n_rows} rows; {kinds}{more})"


def _conforming(table: Table, schema: Schema) -> Table:
    """Return a table that was read before, if it was read as a schema now asks."""
    for column in schema.columns:
        if column.name not in table.schema.names:
            raise ValueError(
                f"column {column.name!r} is missing; there are "
                f"{', '.join(map(repr, table.schema.names))}"
            )
        found = table.schema[column.name].kind
        if found != column.kind and {found, column.kind} & {"numeric", "set"}:
            raise ValueError(
                f"column {column.name!r} was read as {found}, not {column.kind}; "
                "give the schema to Table.of"
            )
    return table


def _matched(by_name: dict[str, Any], schema: Schema, named: bool) -> dict[str, Any]:
    """Find the columns of a complete schema: by name if both have names, else by position."""
    if named and schema.named:
        absent = [name for name in schema.names if name not in by_name]
        if absent:
            raise ValueError(
                f"column {absent[0]!r} is missing ({len(absent)} of {len(schema)} are); "
                f"there are {', '.join(map(repr, by_name))}"
            )
        return by_name
    if len(by_name) != len(schema):
        raise ValueError(
            f"X has {len(by_name)} features, but weft is expecting {len(schema)} features as input"
        )
    return dict(zip(schema.names, by_name.values(), strict=True))


def _completed(by_name: dict[str, Any], schema: Schema, numbers: str, named: bool) -> Schema:
    """Infer the columns that a schema leaves open."""
    for name in schema.names:
        if name not in by_name:
            raise ValueError(
                f"schema names column {name!r}, which is not there; "
                f"there are {', '.join(map(repr, by_name))}"
            )
    declared = {column.name: column for column in schema.columns}
    columns = []
    for name, cells in by_name.items():
        column = declared.get(name)
        if column is None:
            kind = infer_kind(cells)
            column = Column(name, numbers if kind == "numeric" else kind)  # type: ignore[arg-type]
        if column.kind == "ordinal" and column.levels is None:
            column = replace(column, levels=_own_levels(name, cells))
        columns.append(column)
    return replace(schema, columns=tuple(columns), complete=True, named=named)


def _own_levels(name: str, cells: Any) -> tuple[Label, ...] | None:
    try:
        return levels_of(cells)
    except TypeError as error:
        raise TypeError(f"column {name!r}: {error}") from error


def _column(cells: Any, column: Column, schema: Schema) -> Codes | Numbers | Sets:
    """Read one column as its kind says, and say which column it was if that fails."""
    empty = schema.empty_is_missing
    try:
        if column.kind == "numeric":
            return _finite(cells, schema)
        if column.kind == "set":
            starts, codes, labels = _read.sets(cells, column.delimiter, empty_is_missing=empty)
            _refuse_missing(codes, labels, schema, starts)
            return Sets(starts, codes, labels)
        codes, labels = _read.categories(cells, empty_is_missing=empty)
        _refuse_missing(codes, labels, schema)
        return Codes(codes, labels)
    except (TypeError, ValueError) as error:
        hint = ""
        if column.kind == "nominal" and "cannot be a category" in str(error):
            hint = "; turn it into text or a number, or declare the column as kind 'set'"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"column {column.name!r}: {error}{hint}") from error


def _finite(cells: Any, schema: Schema) -> Numbers:
    values = _numbers.numbers(cells, empty_is_missing=schema.empty_is_missing)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise ValueError(
            f"row {infinite[0]} holds {values[infinite[0]]}; replace infinity by a number or NaN"
        )
    gaps = np.flatnonzero(np.isnan(values))
    if len(gaps) and schema.missing == "error":
        raise ValueError(f"row {gaps[0]} is missing; fill it or use Schema(missing='value')")
    return Numbers(values)


def _refuse_missing(
    codes: np.ndarray, labels: list[Label], schema: Schema, starts: np.ndarray | None = None
) -> None:
    """Refuse missing if the schema asks for that; ``starts`` are those of a set-valued column."""
    if schema.missing == "error" and None in labels:
        gaps = np.flatnonzero(codes == labels.index(None))
        if len(gaps):
            row = gaps[0] if starts is None else np.searchsorted(starts, gaps[0], "right") - 1
            raise ValueError(f"row {row} is missing; fill it or use Schema(missing='value')")
