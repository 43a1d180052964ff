"""Opening: what a source is, by looking at it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tabweave.counts.counts import Counts
from tabweave.engines.database import is_database, open_database
from tabweave.engines.files import looks_like_file, open_files
from tabweave.engines.frames import (
    open_frame,
    open_iterator,
    open_lazy,
    open_reader,
    open_relation,
    open_sql,
)
from tabweave.engines.source import BATCH_ROWS, Source, chosen, declared_types, family, has_arrow
from tabweave.rows.cells import objects
from tabweave.rows.frames import columns_of

ENGINES = ("auto", "memory", "arrow", "duckdb", "database", "dask", "spark")
_SQL = re.compile(r"\s*(\(|select|with|from|values|table|pivot|unpivot|describe)\s", re.I)


def is_source(X: Any) -> bool:
    """Tell whether rows lie elsewhere: in files, a query, a database, a lazy or spread frame."""
    return kind_of(X) not in ("memory", "iterator")


def is_spread(X: Any) -> bool:
    """Tell whether this is a frame on a cluster."""
    return kind_of(X) in ("dask", "spark")


def kind_of(X: Any) -> str:
    """Return what a source is: memory, files, sql, database, relation, lazy, dask, spark ..."""
    if isinstance(X, str):
        return "sql" if _SQL.match(X) and not os.path.exists(X) else "files"
    if isinstance(X, os.PathLike):
        return "files"
    if is_database(X):
        return "database"
    if isinstance(X, list | tuple):
        return "files" if X and all(map(looks_like_file, X)) else "memory"
    library, kind = type(X).__module__.partition(".")[0], type(X).__name__
    if library in ("dask", "dask_expr"):
        return "dask"
    if library == "pyspark":
        return "spark"
    if kind in ("DuckDBPyRelation", "LazyFrame"):
        return "lazy" if kind == "LazyFrame" else "relation"
    if library == "pyarrow" and (kind.endswith("Dataset") or kind.endswith("Reader")):
        return "reader"
    return "iterator" if isinstance(X, Iterator) else "memory"


def open_source(X: Any, columns: Any = None, engine: str = "auto") -> Source:
    """Return anything that holds rows, clusters apart, as a source."""
    types = declared_types(columns)
    kind = kind_of(X)
    refuse_engine(kind, engine)
    if kind == "files":
        names = None if columns is None else list(columns)
        return open_files(X, types, names, engine)
    if kind == "database":
        return open_database(X, types)
    if types:
        raise ValueError(
            f"columns gives {next(iter(types))!r} a type, which is for files of text; cast it "
            "in the query or in the frame"
        )
    if kind == "lazy" and type(X).__module__.startswith("narwhals"):
        return open_source(X.to_native(), columns, engine)
    openers: dict[str, Any] = {
        "sql": open_sql,
        "relation": open_relation,
        "lazy": open_lazy,
        "reader": open_reader,
        "iterator": open_iterator,
    }
    return openers.get(kind, open_frame)(X)


def known_columns(source: Any, counts: Counts, keep: Sequence[str] = ()) -> Any:
    """Return the columns that counts know, with the types their values have in files of text.

    Text that looks like numbers in one file and not in another must not change its type between
    them: what was text stays text, and what was numbers is refused where it is not.
    """
    if counts.schema is None or not counts.schema.named:
        return None
    names = [*counts.schema.names, *keep]
    if kind_of(source) != "files":
        return names
    found = open_source(source, names).types
    out: dict[str, str | None] = {}
    for name, labels in zip(counts.names, counts.labels, strict=True):
        kinds = {type(label) for label in labels} - {type(None)}
        here = family(found.get(name, ""))
        if kinds == {str} and here in ("number", "truth"):
            out[name] = "VARCHAR"
        elif here == "text" and kinds and kinds <= {int, float}:
            out[name] = "DOUBLE"
        elif here == "text" and kinds == {bool}:
            out[name] = "BOOLEAN"
    typed = found and all(kind.isupper() for kind in found.values())  # DuckDB's own: a text file
    return {name: out.get(name) for name in names} if out and typed else names


def refuse_engine(kind: str, engine: str) -> None:
    """Refuse an engine that does not read such a source."""
    if engine not in ENGINES:
        raise ValueError(f"engine={engine!r} is none of {', '.join(map(repr, ENGINES))}")
    fits = {
        "files": ("memory", "arrow", "duckdb"),
        "sql": ("memory", "duckdb"),
        "relation": ("memory", "duckdb"),
        "database": ("memory", "database"),
        "dask": ("dask", "memory"),
        "spark": ("spark", "memory"),
    }.get(kind, ("memory",))
    if engine not in ("auto", *fits):
        raise ValueError(
            f"engine={engine!r} does not read {kind}; use 'auto' or {', '.join(map(repr, fits))}"
        )


def batches(source: Any, *, columns: Any = None, batch_rows: int = BATCH_ROWS) -> Iterator[Any]:
    """Read a source in batches, in order.

    Parameters
    ----------
    source : path, glob, list of paths, SQL text, relation, (connection, query) or frame
        Where the rows are; see :func:`tabweave.count`.
    columns : list of names, or mapping of name to type, optional
        The columns to read; in files of text a DuckDB type says how to read one.
    batch_rows : int
        At most so many rows at a time.

    Yields
    ------
    batch : Arrow batch, or mapping of columns where pyarrow is absent
        Rows that :meth:`tabweave.Table.of` reads.

    Examples
    --------
    >>> from tabweave.engines import batches
    >>> [batch.num_rows for batch in batches("SELECT range AS x FROM range(5)", batch_rows=3)]
    [3, 2]
    """
    if batch_rows < 1:
        raise ValueError(f"batch_rows={batch_rows} must be at least 1")
    opened = open_source(source, columns)
    return opened.stream(chosen(opened, columns), batch_rows)


def read(source: Any, *, columns: Any = None) -> Any:
    """Read a whole source into memory.

    Parameters
    ----------
    source, columns
        As in :func:`batches`.

    Returns
    -------
    rows : pyarrow.Table, or a mapping of columns where pyarrow is absent
        What is in memory already is returned as it is, if all its columns are asked for.

    Examples
    --------
    >>> from tabweave.engines import read
    >>> read("SELECT 'a' AS x, 1 AS y").to_pylist()
    [{'x': 'a', 'y': 1}]
    """
    kind = kind_of(source)
    if kind == "dask":
        source = source.compute()
    elif kind == "spark":
        source = source.toArrow() if hasattr(source, "toArrow") else source.toPandas()
    opened = open_source(source, columns)
    names = chosen(opened, columns)
    parts = list(opened.stream(names, BATCH_ROWS))
    if not is_source(source) and kind != "iterator":
        return parts[0]
    if has_arrow():
        return _one_table(parts, names)
    return {name: [cell for part in parts for cell in part[name]] for name in names}


def _one_table(parts: list[Any], names: list[str]) -> Any:
    import pyarrow as pa

    if not parts:
        return pa.table({name: pa.array([], pa.string()) for name in names})
    tables = [part.to_arrow() if hasattr(part, "to_arrow") else pa.table(part) for part in parts]
    return pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()


def in_memory(X: Any, y: Any) -> tuple[Any, Any]:
    """Bring a source into memory, y too if it names a column; what is there stays as it is."""
    if not is_source(X):
        return X, y
    names, cells, _ = columns_of(read(X))
    columns = dict(zip(names or [], cells, strict=True))
    if isinstance(y, str):
        if y not in columns:
            raise ValueError(f"y={y!r} is none of the columns {', '.join(map(repr, columns))}")
        y = objects(columns.pop(y))
    return columns, y
