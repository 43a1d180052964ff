"""Table: rows of any library in, small integer codes out.

The first room of the house. Whatever a user has (pandas, polars, pyarrow, NumPy, dicts of columns,
lists of dicts) becomes a :class:`Table`: per column the codes of its values, its numbers or its
sets, under a :class:`Schema` that says what each column is. Nothing is learned here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from weft import _read
from weft._frames import columns_of, infer_kind, levels_of
from weft._labels import Label, canonical, identity

Kind = Literal["nominal", "ordinal", "numeric", "set"]
KINDS = ("nominal", "ordinal", "numeric", "set")


@dataclass(frozen=True)
class Column:
    """What one column is.

    Parameters
    ----------
    name : str
        Its name; arrays have ``x0``, ``x1``, ...
    kind : {"nominal", "ordinal", "numeric", "set"}
        How its cells are read.
    levels : sequence, optional
        The order of an ordinal column's values, lowest first.
    delimiter : str, optional
        What separates the elements of a set written as text.
    """

    name: str
    kind: Kind = "nominal"
    levels: tuple[Label, ...] | None = None
    delimiter: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(
                f"column {self.name!r}: kind {self.kind!r} is none of {', '.join(KINDS)}"
            )
        if self.levels is not None:
            if self.kind != "ordinal":
                raise ValueError(f"column {self.name!r}: levels belong to the kind 'ordinal'")
            object.__setattr__(self, "levels", tuple(canonical(v) for v in self.levels))


@dataclass(frozen=True)
class Schema:
    """What the columns of a table are, and what counts as missing.

    A schema given by a user may name some columns only; the others are inferred. The schema of a
    :class:`Table` is complete.

    Parameters
    ----------
    columns : mapping of name to kind or Column, or sequence of Column
        The columns that are declared.
    missing : {"value", "error"}, default="value"
        Whether missing is a value of its own or refused.
    empty_is_missing : bool, default=False
        Whether empty text counts as missing.

    Examples
    --------
    >>> Schema({"size": Column("size", "ordinal", levels=("S", "M", "L"))}).columns[0].levels
    ('S', 'M', 'L')
    """

    columns: tuple[Column, ...] = ()
    missing: Literal["value", "error"] = "value"
    empty_is_missing: bool = False
    complete: bool = field(default=False, kw_only=True)
    named: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        given: Any = self.columns
        if isinstance(given, Mapping):
            given = [_declared(name, kind) for name, kind in given.items()]
        object.__setattr__(self, "columns", tuple(given))
        if self.missing not in ("value", "error"):
            raise ValueError(f"missing={self.missing!r}: use 'value' or 'error'")
        _refuse_duplicates(self.names)

    @classmethod
    def of(cls, schema: Schema | Mapping[Any, Any] | None) -> Schema:
        """Return a schema from what users write: nothing, a mapping, or a schema."""
        if schema is None:
            return cls()
        return schema if isinstance(schema, Schema) else cls(schema)  # type: ignore[arg-type]

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    @property
    def categorical(self) -> list[Column]:
        """The columns that have values: nominal, ordinal and set."""
        return [column for column in self.columns if column.kind != "numeric"]

    @property
    def numeric(self) -> list[Column]:
        """The columns that have numbers."""
        return [column for column in self.columns if column.kind == "numeric"]

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"no column {name!r}; there are {', '.join(map(repr, self.names))}")

    def select(self, names: Sequence[str]) -> Schema:
        """Return the schema of some columns, in the order given."""
        return replace(self, columns=tuple(self[name] for name in names))


def _declared(name: Any, kind: Any) -> Column:
    name = f"x{name}" if isinstance(name, int) else name
    return replace(kind, name=name) if isinstance(kind, Column) else Column(name, kind)


def _refuse_duplicates(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"column {name!r} appears twice; give every column its own name")
        seen.add(name)


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
        if isinstance(X, Table):
            return X
        schema = Schema.of(schema)
        names, cells, n_rows = columns_of(X)
        named = names is not None
        if names is None:
            names = [f"x{i}" for i in range(len(cells))]
        _refuse_duplicates(names)
        by_name = dict(zip(names, cells, strict=True))
        if schema.complete:
            by_name = _matched(by_name, schema, named)
            found = schema
        else:
            found = _completed(by_name, schema, numbers, named)
        columns = tuple(_column(by_name[c.name], c, found) for c in found.columns)
        return cls(found, columns, n_rows)

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
            column = replace(column, levels=levels_of(cells))
        columns.append(column)
    return replace(schema, columns=tuple(columns), complete=True, named=named)


def _column(cells: Any, column: Column, schema: Schema) -> Codes | Numbers | Sets:
    """Read one column as its kind says, and say which column it was if that fails."""
    try:
        if column.kind == "numeric":
            return _numbers(cells, schema)
        if column.kind == "set":
            starts, codes, labels = _read.sets(cells, column.delimiter)
            codes, labels = _apply_missing(codes, labels, schema)
            return Sets(starts, codes, labels)
        codes, labels = _read.categories(cells)
        return Codes(*_apply_missing(codes, labels, schema))
    except (TypeError, ValueError) as error:
        hint = ""
        if column.kind == "nominal" and "cannot be a category" in str(error):
            hint = "; turn it into text or a number, or declare the column as kind 'set'"
        raise type(error)(f"column {column.name!r}: {error}{hint}") from error


def _numbers(cells: Any, schema: Schema) -> Numbers:
    values = _read.numbers(cells)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise ValueError(
            f"row {infinite[0]} holds {values[infinite[0]]}; replace infinity by a number or NaN"
        )
    gaps = np.flatnonzero(np.isnan(values))
    if len(gaps) and schema.missing == "error":
        raise ValueError(f"row {gaps[0]} is missing; fill it or use Schema(missing='value')")
    return Numbers(values)


def _apply_missing(
    codes: np.ndarray, labels: list[Label], schema: Schema
) -> tuple[np.ndarray, list[Label]]:
    """Merge empty text into missing if asked, and refuse missing if asked."""
    if schema.empty_is_missing and "" in labels:
        merged = [None if label == "" else label for label in labels]
        distinct = list(dict.fromkeys(identity(label) for label in merged))
        place = {key: i for i, key in enumerate(distinct)}
        table = np.array([place[identity(label)] for label in merged], dtype=codes.dtype)
        codes, labels = _read.take(table, codes), [label for _, label in distinct]
    if schema.missing == "error" and None in labels:
        gaps = np.flatnonzero(codes == labels.index(None))
        if len(gaps):
            raise ValueError(f"entry {gaps[0]} is missing; fill it or use Schema(missing='value')")
    return codes, labels
