"""Databases: the result of a query over ADBC, as Arrow batches; other connections row by row.

What SQLAlchemy connects to is read through the connection of the driver beneath it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tabweave._compat import require
from tabweave.engines.duck import describe, in_brackets, query_batches, row_batches
from tabweave.engines.pushdown import SqlTable, temporary_table
from tabweave.engines.source import BATCH_ROWS, Source, errors_naming, n_rows_of
from tabweave.io.dialects import DIALECTS

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
