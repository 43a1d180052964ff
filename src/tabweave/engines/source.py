"""Sources: whatever rows come from, in one form: columns, and a stream of batches.

The engines of this room turn a path, a query or a frame into a :class:`Source`; counting and
transforming see nothing else. A batch is anything :meth:`tabweave.Table.of` reads: an Arrow batch
where pyarrow is installed, else a mapping of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

BATCH_ROWS = 1 << 19
IN_MEMORY = "the rows"
_LIBRARIES = {"duckdb", "_duckdb", "pyarrow", "polars", "adbc_driver_manager", "sqlite3"}
_FAMILIES = {
    "text": ("string", "large_string", "varchar", "utf8", "large_utf8", "enum", "dictionary"),
    "number": (
        *("int", "uint", "float", "double", "halffloat", "decimal", "real", "hugeint", "uhugeint"),
        *("bigint", "ubigint", "smallint", "usmallint", "tinyint", "utinyint", "uinteger"),
    ),
    "truth": ("bool",),
    "moment": ("date", "time", "duration", "interval"),
    "nothing": ("null", '"null"'),
}


@dataclass(frozen=True)
class Source:
    """Rows that can be streamed.

    Attributes
    ----------
    place : str
        What errors call it: a file, a query, a kind of frame.
    types : mapping of str to str
        Its columns and what their types are called; "" where that is not known.
    stream : callable
        ``stream(columns, batch_rows)`` yields the batches of some columns, in order.
    n_rows : int, optional
        How many rows there are, if that is known before reading.
    repeats : bool
        Whether it can be streamed more than once.
    shared : bool
        Whether it lives on a connection or iterator of the user's, which stays in its thread.
    """

    place: str
    types: Mapping[str, str]
    stream: Callable[[Sequence[str], int], Iterator[Any]]
    n_rows: int | None = None
    repeats: bool = True
    shared: bool = False


def has_arrow() -> bool:
    """Tell whether pyarrow is installed."""
    return find_spec("pyarrow") is not None


def family(kind: str) -> str:
    """Return what a type holds, whatever library names it: numbers, text, moments ..."""
    kind = kind.lower()
    if kind.endswith("]") or kind.startswith(("list", "large_list", "fixed_size_list")):
        return "set" if not kind.startswith(("timestamp", "time", "duration", "date")) else "moment"
    if kind.startswith("dictionary<values="):
        return family(kind.removeprefix("dictionary<values=").partition(",")[0])
    for name, starts in _FAMILIES.items():
        if kind.startswith(starts):
            return name
    return kind


def chosen(source: Source, columns: Any, y: str | None = None) -> list[str]:
    """Return the columns to read, y last; refuse names that are not there."""
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r}: give a list of names, as in columns=[{columns!r}]")
    names = list(source.types if columns is None else columns)
    if y is not None:
        names = [*(name for name in names if name != y), y]
    for name in names:
        if name not in source.types:
            raise ValueError(
                f"{source.place}: there is no column {name!r}; there are "
                f"{', '.join(map(repr, source.types))}"
            )
    return names


def declared_types(columns: Any) -> dict[str, str]:
    """Return the types that ``columns`` declares, if it is a mapping of name to type."""
    if not isinstance(columns, Mapping):
        return {}
    return {name: kind for name, kind in columns.items() if kind is not None}


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Let an error of a library say which file, query or database it speaks of."""
    try:
        yield
    except Exception as error:
        foreign = type(error).__module__.partition(".")[0] in _LIBRARIES
        nameless = isinstance(error, OSError) and error.filename is None
        if isinstance(error, FileNotFoundError | PermissionError) or not (foreign or nameless):
            raise
        raise ValueError(f"{place}: {_essence(str(error))}") from error


def _essence(text: str) -> str:
    """Return what went wrong without DuckDB's list of options."""
    for advice in ("Possible fixes", "Possible solutions", "\n\n", "LINE 1:"):
        text = text.partition(advice)[0]
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())
