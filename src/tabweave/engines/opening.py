"""Opening: what a source is, by looking at it; and reading it, in batches or whole."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tabweave._compat import require
from tabweave.columns.frames import named_columns, objects
from tabweave.columns.vocabulary import Bucket
from tabweave.counts.counts import Counts
from tabweave.engines.distributed import DaskSource, SparkSource
from tabweave.engines.duck import describe, in_brackets, open_sql, query_batches, row_batches
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
from tabweave.engines.pushdown import SqlTable, temporary_table
from tabweave.engines.source import (
    BATCH_ROWS,
    Source,
    check_batch_rows,
    declared_types,
    errors_naming,
    family,
    has_arrow,
    join_batches,
    n_rows_of,
    with_fields,
)
from tabweave.io.dialects import DIALECTS

# -- Databases: the result of a query over ADBC, as Arrow batches; other connections row by row.
#
# What SQLAlchemy connects to is read through the connection of the driver beneath it.

_DRIVERS = {
    "sqlite": "adbc_driver_sqlite.dbapi",
    "postgresql": "adbc_driver_postgresql.dbapi",
    "postgres": "adbc_driver_postgresql.dbapi",
}


_DIALECT_OF_DRIVER = {  # how a driver's name begins, and the SQL that is spoken behind it
    **{name: name for name in DIALECTS},
    **dict.fromkeys(("psycopg", "pg8000", "asyncpg", "postgresql"), "postgres"),
    "chdb": "clickhouse",
    "google": "bigquery",
    **dict.fromkeys(("databricks", "pyhive.hive", "tcliservice"), "spark"),
}


class DatabaseSource(Source):
    """A query on a connection, or on the address of a database."""

    def __init__(self, source: tuple[Any, str]) -> None:
        self.where, self.query = source
        if _is_sqlalchemy(self.where) and hasattr(self.where, "render_as_string"):  # a URL
            self.where = self.where.render_as_string(hide_password=False)
        self.inner = f"{in_brackets(self.query)} AS tabweave_source"
        self.shared = not isinstance(self.where, str)
        name = f"{_without_password(self.where)}, {' '.join(self.query.split())!r}"
        with errors_naming(name), _connected(self.where) as connection:
            super().__init__(name, _described(connection, f"SELECT * FROM {self.inner}"))

    def sql_table(self) -> SqlTable:
        """Where SQL can count the rows."""
        with errors_naming(self.name), _connected(self.where) as connection:
            dialect = _dialect(connection)
            keeps = _may_make_tables(connection, dialect)
        connections: list[Any] = []  # the connection that has a temporary table

        def run(query: str) -> Iterator[Any]:
            connected = nullcontext(connections[0]) if connections else _connected(self.where)
            with errors_naming(self.name), connected as connected_to:
                yield from _batches(connected_to, query, BATCH_ROWS)

        @contextmanager
        def keep(query: str) -> Iterator[str]:
            with errors_naming(self.name), _connected(self.where) as connected_to:
                connections.append(connected_to)
                try:
                    with temporary_table(partial(_execute, connected_to), query) as table:
                        yield table
                finally:
                    connections.clear()

        return SqlTable(dialect, self.inner, run, keep if keeps else None)

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        done = 0
        try:
            with errors_naming(self.name), _connected(self.where) as connection:
                query = f"SELECT {_selected(connection, columns)} FROM {self.inner}"
                for batch in _batches(connection, query, batch_rows):
                    is_mapping = isinstance(batch, dict)
                    yield {n: batch[n] for n in columns} if is_mapping else batch.select(columns)
                    done += n_rows_of(batch)
        except ValueError as error:
            mixed = ""
            if "Type mismatch" in str(error):
                mixed = "; CAST it to one type, or pass (sqlite3.connect(file), query) instead"
            raise ValueError(f"{error}{mixed} (after {done} rows; nothing is kept)") from error


def _selected(connection: Any, columns: Sequence[str]) -> str:
    """The columns as the connection's SQL writes their names; all where it is not known.

    In MySQL and others a name in double quotes is a text, which would be read in its place.
    """
    dialect = DIALECTS.get(_known_dialect(connection) or "")
    return "*" if dialect is None else ", ".join(map(dialect.identifier, columns))


def is_database(source: Any) -> bool:
    """Whether this is a connection, or the address of one, with a query."""
    if not isinstance(source, tuple) or len(source) != 2 or not isinstance(source[1], str):
        return False
    if isinstance(source[0], str):  # a file in place of an address is refused when it is opened
        return "://" in source[0] or source[1].lower().startswith(("select ", "with "))
    return hasattr(source[0], "cursor") or _is_sqlalchemy(source[0]) or _is_context(source[0])


def _is_sqlalchemy(where: Any) -> bool:
    return any(kind.__module__.startswith("sqlalchemy.") for kind in type(where).__mro__)


def _without_password(where: Any) -> str:
    """The address without its password, which may hold an @ itself."""
    if _is_sqlalchemy(where) and hasattr(where, "engine"):
        return str(where.engine.url.render_as_string())
    if not isinstance(where, str):
        return f"{type(where).__module__.partition('.')[0]} connection"
    address = re.sub(r"(://[^:/@]*):.*@", r"\1:***@", where)
    return re.sub(r"(?i)(password=)[^&]*", r"\1***", address)


@contextmanager
def _connected(where: Any) -> Iterator[Any]:
    """Give a connection: the user's own, which stays open, or one for this while."""
    if _is_sqlalchemy(where):
        with _beneath(where) as connection:
            yield connection
        return
    if not isinstance(where, str):
        yield where
        return
    scheme, _, location = where.partition("://")
    if scheme == "duckdb":
        duckdb = require("duckdb", "files")
        connection = duckdb.connect(
            location.removeprefix("/") or ":memory:", read_only=bool(location)
        )
    elif scheme in _DRIVERS:
        if scheme == "sqlite":
            _check_sqlite(location.removeprefix("/"))
        driver = require(_DRIVERS[scheme], "db")
        connection = driver.connect(location.removeprefix("/") if scheme == "sqlite" else where)
    else:
        with _engine_of(where) as engine, _beneath(engine) as connection:
            yield connection
        return
    try:
        yield connection
    finally:
        connection.close()


def _check_sqlite(file: str | None) -> None:
    """Raise if a database file is not there: SQLite would make an empty one."""
    name = (file or "").partition("?")[0]
    if name and name != ":memory:" and not name.startswith("file:") and not Path(name).exists():
        raise FileNotFoundError(
            f"SQLite file not found: {name!r} (from {Path.cwd()}); sqlite:///name is relative to "
            f"that folder, sqlite:////folder/name is absolute"
        )


@contextmanager
def _engine_of(address: str) -> Iterator[Any]:
    """Give an engine of SQLAlchemy, which knows what else an address can mean."""
    remedy = "install sqlalchemy"
    if find_spec("sqlalchemy") is not None:
        import sqlalchemy

        try:
            engine = sqlalchemy.create_engine(address)
            remedy = ""
        except (ImportError, sqlalchemy.exc.ArgumentError) as error:
            remedy = f"install the driver that SQLAlchemy asks for ({error})"
    if remedy:
        raise ValueError(
            f"{_without_password(address)}: expected sqlite://, postgresql:// or duckdb://; for "
            f"others, {remedy}, or pass your own connection instead"
        )
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _beneath(where: Any) -> Iterator[Any]:
    """Give the driver's connection beneath an engine, a connection or a session of SQLAlchemy."""
    if hasattr(where, "raw_connection"):
        if where.url.get_backend_name() == "sqlite":
            _check_sqlite(where.url.database)
        with closing(where.raw_connection()) as pooled:
            yield pooled.dbapi_connection
        return
    connection = where.connection() if callable(where.connection) else where
    yield connection.connection.dbapi_connection


def _described(connection: Any, query: str) -> dict[str, str]:
    if _is_duckdb(connection):
        return describe(connection, query)
    if _is_context(connection):
        return {field.name: str(field.type) for field in connection.sql(query).schema()}
    if _is_chdb(connection):
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"DESCRIBE TABLE ({query})")
            return {column[0]: "" for column in cursor.fetchall()}
    if not hasattr(connection, "adbc_get_info"):
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"{query} LIMIT 0")
            names = (column[0].removeprefix("tabweave_source.") for column in cursor.description)
            return dict.fromkeys(names, "")  # Hive names the table, too
    # SQLite knows types only by looking at rows; others know them without.
    limit = "" if _is_sqlite(connection) else " LIMIT 0"
    with _executed(connection, query + limit) as reader:
        numeric = _numeric(reader.schema)
        return {f.name: "double" if f.name in numeric else str(f.type) for f in reader.schema}


def _batches(connection: Any, query: str, batch_rows: int) -> Iterator[Any]:
    if _is_duckdb(connection):
        yield from query_batches(connection, query, batch_rows)
    elif _is_context(connection):
        yield from require("pyarrow", "frames").RecordBatchReader.from_stream(connection.sql(query))
    elif _is_chdb(connection):
        result = connection.send_query(query, "Arrow")  # beside the DB-API
        yield from result.record_batch(rows_per_batch=batch_rows)
    elif not hasattr(connection, "adbc_get_info"):
        with closing(connection.cursor()) as cursor:
            cursor.execute(query)
            yield from row_batches(cursor, batch_rows)
    else:
        with _executed(connection, query) as reader:
            numeric = _numeric(reader.schema)
            for batch in reader:
                yield _cast(batch, numeric) if numeric else batch


def _execute(connection: Any, statement: str) -> None:
    """Run a statement that has no result."""
    if _is_duckdb(connection):
        connection.execute(statement)
        return
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement)


def _may_make_tables(connection: Any, dialect: str) -> bool:
    """Whether a connection may make temporary tables: to fail would end a transaction."""
    if dialect != "postgres":
        return True
    query = (
        "SELECT has_database_privilege(current_database(), 'TEMP') AND NOT pg_is_in_recovery() "
        "AND current_setting('transaction_read_only') = 'off'"
    )
    with closing(connection.cursor()) as cursor:
        cursor.execute(query)
        return bool(cursor.fetchone()[0])


@contextmanager
def _executed(connection: Any, query: str) -> Iterator[Any]:
    """Run a query over ADBC and give its Arrow reader."""
    require("pyarrow", "frames")
    with closing(connection.cursor()) as cursor:
        if _is_sqlite(connection):
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": "65536"})
        cursor.execute(query)
        yield cursor.fetch_record_batch()


def _numeric(schema: Any) -> list[str]:
    """The columns of PostgreSQL's numeric, which the driver hands over as text."""
    kinds = {f.name: (f.metadata or {}).get(b"ADBC:postgresql:typname") for f in schema}
    return [name for name, kind in kinds.items() if kind == b"numeric"]


def _cast(batch: Any, numeric: Sequence[str]) -> Any:
    import pyarrow as pa

    for name in numeric:
        i = batch.schema.get_field_index(name)
        batch = batch.set_column(i, name, batch.column(i).cast(pa.string()).cast(pa.float64()))
    return batch


def _library(connection: Any) -> str:
    """The database, or the package of its driver."""
    if hasattr(connection, "adbc_get_info"):
        return str(connection.adbc_get_info().get("vendor_name", ""))
    return type(connection).__module__


def _known_dialect(connection: Any) -> str | None:
    """Which SQL a connection speaks, if that is known."""
    library = _library(connection).lower().lstrip("_")
    return next((d for start, d in _DIALECT_OF_DRIVER.items() if library.startswith(start)), None)


def _dialect(connection: Any) -> str:
    """Which SQL a connection speaks."""
    if (dialect := _known_dialect(connection)) is not None:
        return dialect
    library = _library(connection).partition(".")[0]
    raise ValueError(
        f"{library}: expected a database whose SQL is known, one of {', '.join(DIALECTS)}; "
        "count by reading the rows: engine='auto'"
    )


def _is_context(connection: Any) -> bool:
    """Whether this is a session of DataFusion."""
    kind = type(connection)
    return kind.__name__ == "SessionContext" and kind.__module__.startswith("datafusion")


def _is_chdb(connection: Any) -> bool:
    return type(connection).__module__.startswith("chdb")


def _is_duckdb(connection: Any) -> bool:
    return type(connection).__module__.startswith(("duckdb", "_duckdb"))


def _is_sqlite(connection: Any) -> bool:
    return "sqlite" in str(connection.adbc_get_info().get("vendor_name", "")).lower()


# -- the estimator --------------------------------------------------------------------------------

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
        names = list(source.types)
        source = FrameSource(join_batches(list(source.batches(names)), names))
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
