"""Schema: what the columns of a table are. Public through :mod:`weft.table`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Literal

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
        if self.delimiter is not None:
            if self.kind != "set":
                raise ValueError(f"column {self.name!r}: a delimiter belongs to the kind 'set'")
            if not isinstance(self.delimiter, str) or not self.delimiter:
                raise ValueError(f"column {self.name!r}: delimiter {self.delimiter!r} is no text")
        if self.levels is not None:
            if self.kind != "ordinal":
                raise ValueError(f"column {self.name!r}: levels belong to the kind 'ordinal'")
            object.__setattr__(self, "levels", _checked_levels(self.name, self.levels))


def _checked_levels(name: str, levels: Any) -> tuple[Label, ...]:
    if isinstance(levels, str | bytes | Set | Mapping) or not isinstance(levels, Iterable):
        raise TypeError(f"column {name!r}: levels must be a sequence, lowest first, not {levels!r}")
    try:
        out = tuple(canonical(level) for level in levels)
    except TypeError as error:
        raise TypeError(f"column {name!r}: level {error}") from error
    seen: set[Any] = set()
    for level in out:
        if level is None:
            raise ValueError(f"column {name!r}: missing is no level; it comes last by itself")
        if identity(level) in seen:
            raise ValueError(f"column {name!r}: level {level!r} appears twice")
        seen.add(identity(level))
    return out


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
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise TypeError(f"schema {given!r}: give a mapping of column name to kind")
        object.__setattr__(self, "columns", tuple(given))
        for column in self.columns:
            if not isinstance(column, Column):
                raise TypeError(
                    f"schema names {column!r} without its kind; write {{{column!r}: kind}}"
                )
        if self.missing not in ("value", "error"):
            raise ValueError(f"missing={self.missing!r}: use 'value' or 'error'")
        refuse_duplicates(self.names)

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


def refuse_duplicates(names: Sequence[str]) -> None:
    """Refuse two columns of the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"column {name!r} appears twice; give every column its own name")
        seen.add(name)
