"""Opening: what a source is, by looking at it; and reading it, in batches or whole."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tabweave.columns.frames import named_columns, objects
from tabweave.columns.vocabulary import Bucket
from tabweave.counts.counts import Counts
from tabweave.engines.database import DatabaseSource, is_database
from tabweave.engines.distributed import DaskSource, SparkSource
from tabweave.engines.duck import open_sql
from tabweave.engines.files import looks_like_file, open_file, open_files
from tabweave.engines.frames import (
    ArrowSource,
    FrameSource,
    IteratorSource,
    LazySource,
    RelationSource,
    library_of,
    scanned_file,
    speaks_arrow,
)
from tabweave.engines.source import (
    BATCH_ROWS,
    Source,
    check_batch_rows,
    declared_types,
    family,
    has_arrow,
    with_fields,
)

_EAGER = ("pandas", "polars", "modin", "cudf", "narwhals", "numpy", "tabweave")  # in memory
ENGINES = ("auto", "memory", "arrow", "duckdb", "database", "pushdown", "dask", "spark")
# Types of Arrow whose cells no library reads otherwise than another.
_READ_ALIKE = re.compile(
    r"(large_)?string|bool|u?int(8|16|32|64)|float|double|dictionary<values=(large_)?string.*"
)
_SQL = re.compile(r"\s*(\(|select|with|from|values|table|pivot|unpivot|describe)\s", re.I)


def is_source(X: Any) -> bool:
    """Whether X is a source of rows: files, a query, a database, a lazy frame, a cluster."""
    return kind_of(X) not in ("memory", "iterator")


def is_countable(X: Any) -> bool:
    """Whether X is a source of rows, or an iterator of frames that can be read once."""
    return kind_of(X) != "memory"


def is_distributed(X: Any) -> bool:
    """Whether this is a frame on a cluster."""
    return kind_of(X) in ("dask", "spark")


def kind_of(X: Any) -> str:
    """What a source is: memory, files, sql, database, relation, arrow, dask, spark ..."""
    if isinstance(X, Source):
        return "source"
    if isinstance(X, str):
        return "sql" if _SQL.match(X) and not os.path.exists(X) else "files"
    if isinstance(X, os.PathLike):
        return "files"
    if is_database(X):
        return "database"
    if isinstance(X, list | tuple):
        return "files" if X and all(map(looks_like_file, X)) else "memory"
    library, kind = library_of(X), type(X).__name__
    if library in ("dask", "dask_expr"):
        return "dask"
    if library == "pyspark":
        return "spark"
    if kind in ("DuckDBPyRelation", "LazyFrame"):
        return "lazy" if kind == "LazyFrame" else "relation"
    if library == "pyarrow":
        return "arrow" if kind.endswith(("Dataset", "Reader")) else "memory"
    if library not in _EAGER and speaks_arrow(X):
        return "arrow"
    return "iterator" if isinstance(X, Iterator) else "memory"


def open_source(
    X: Any, columns: Any = None, engine: str = "auto", encoding: str | None = None
) -> Source:
    """Open anything that holds rows; what is a :class:`Source` already is not opened again.

    Parameters
    ----------
    X : path, glob, list of paths, SQL text, relation, (connection, query), frame or Source
        Where the rows are; see :func:`tabweave.count`.
    columns : list of names, or mapping of name to type, optional
        The columns on which many files must agree; in files of text a DuckDB type says how to
        read one.
    engine : str, default="auto"
        As in :func:`tabweave.count`.
    encoding : str, optional
        That of files of text, such as "cp1250"; by default UTF-8, or what their first bytes say, or
        else that of Windows, with a warning.

    Examples
    --------
    >>> import tabweave
    >>> from tabweave.engines import open_source
    >>> source = open_source("SELECT range % 2 AS a, 'x' AS b FROM range(600)")
    >>> source.types
    {'a': 'BIGINT', 'b': 'VARCHAR'}
    >>> tabweave.count(source, columns=["b"])
    Counts(600 rows, 1 columns, 1 values)
    """
    types = declared_types(columns)
    kind = kind_of(X)
    check_engine(kind, engine)
    if kind == "files":
        engine = "duckdb" if engine == "pushdown" else engine
        return open_files(X, types, None if columns is None else list(columns), engine, encoding)
    source = X if kind == "source" else with_fields(_opened(X, kind, engine))
    if kind in ("dask", "spark") and engine == "memory":
        source = FrameSource(source.collect(list(source.types)))
    return source.retyped(types) if types else source


def _opened(X: Any, kind: str, engine: str) -> Source:
    if kind == "lazy" and type(X).__module__.startswith("narwhals"):
        return open_source(X.to_native(), engine=engine)
    if kind in ("lazy", "relation", "arrow") and engine == "auto":
        file = scanned(X)
        if file is not None:
            return file
    openers: dict[str, Any] = {
        "dask": DaskSource,
        "spark": SparkSource,
        "database": DatabaseSource,
        "sql": open_sql,
        "relation": RelationSource,
        "lazy": LazySource,
        "arrow": ArrowSource,
        "iterator": IteratorSource,
    }
    return openers.get(kind, FrameSource)(X)


def scanned(X: Any) -> Source | None:
    """The Parquet file that is all a plan reads, if every library reads its cells alike."""
    path = scanned_file(X) if has_arrow() else None
    file = None if path is None else open_file(path)
    same = file is not None and all(map(_READ_ALIKE.fullmatch, file.types.values()))
    return file if same else None


def open_fitted(source: Any, counts: Counts, keep: Sequence[str] = ()) -> tuple[Source, Any]:
    """Open a source once, its columns read with the types they had in fit.

    Returns the source and the columns to read: those of the counts and ``keep``, or None for all.
    """
    named = counts.schema is not None and counts.schema.named
    opened = open_source(source, [*counts.schema.names, *keep] if named else None)  # type: ignore[union-attr]
    columns = fitted_columns(opened, counts, keep)
    return open_source(opened, columns), columns


def fitted_columns(source: Any, counts: Counts, keep: Sequence[str] = ()) -> Any:
    """The columns of counts, with the types their values have in files of text.

    Text that looks like numbers in one file and not in another must not change its type between
    them: what was text stays text, and what was numbers is refused where it is not.
    """
    if counts.schema is None or not counts.schema.named:
        return None
    names = [*counts.schema.names, *keep]
    if kind_of(source) not in ("files", "source"):
        return names
    opened = open_source(source, names)
    types = _fitted_types(opened, counts) if opened.is_text else {}
    return {name: types.get(name) for name in names} if types else names


def _fitted_types(source: Source, counts: Counts) -> dict[str, str]:
    """The types of the columns whose cells look otherwise than they did in fit."""
    out = {}
    assert counts.schema is not None
    for name in (column.name for column in counts.schema.categorical):
        labels = counts.labels[counts.vocabulary.index(name)]
        fitted = {type(label) for label in labels} - {type(None), Bucket}
        kind = family(source.types.get(name, ""))
        if fitted == {str} and kind in ("number", "bool"):
            out[name] = "VARCHAR"
        elif kind == "text" and fitted and fitted <= {int, float}:
            out[name] = "DOUBLE"
        elif kind == "text" and fitted == {bool}:
            out[name] = "BOOLEAN"
    return out


def check_engine(kind: str, engine: str) -> None:
    """Refuse an engine that does not read such a source."""
    if engine not in ENGINES:
        raise ValueError(f"engine: expected one of {', '.join(map(repr, ENGINES))}, got {engine!r}")
    fits = {
        "files": ("memory", "arrow", "duckdb", "pushdown"),
        "sql": ("memory", "duckdb", "pushdown"),
        "relation": ("memory", "duckdb", "pushdown"),
        "database": ("memory", "database", "pushdown"),
        "arrow": ("memory", "arrow", "pushdown"),
        "source": ("memory", "pushdown"),
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
    batch_rows : int, default=524288
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
    check_batch_rows(batch_rows)
    opened = open_source(source, columns)
    return opened.batches(opened.choose(columns), batch_rows)


def read(source: Any, *, columns: Any = None, fitted: Counts | None = None) -> Any:
    """Read a whole source into memory.

    Parameters
    ----------
    source, columns
        As in :func:`batches`.
    fitted : Counts, optional
        What an embedder has counted: its columns are read, with the types they had then.

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
    if fitted is None:
        opened = open_source(source, columns)
    else:
        opened, columns = open_fitted(source, fitted)
    return opened.collect(opened.choose(columns))


def read_with_classes(X: Any, y: Any) -> tuple[Any, Any]:
    """Read a source into memory, y too if it names a column; rows in memory stay as they are."""
    if not is_source(X):
        return X, y
    columns, _ = named_columns(read(X))
    if isinstance(y, str):
        if y not in columns:
            raise ValueError(f"y: expected one of {', '.join(map(repr, columns))}, got {y!r}")
        y = objects(columns.pop(y))
    return columns, y
