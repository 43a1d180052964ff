"""DuckDB: connections, query results as batches, and the files that it reads: CSV, JSON, Parquet.

A CSV file starts with its names. Its columns are whole numbers, numbers or text as *all* of its
cells allow, unless they are given a type: nothing else is guessed, so a date stays the text it is,
and yes and no stay words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tabweave._compat import require
from tabweave.engines.pushdown import NAME, Place
from tabweave.engines.source import BATCH_ROWS, Source, errors_naming, has_arrow
from tabweave.io.text import csv_header, sql_name, sql_path, sql_text

# Not BOOLEAN: DuckDB takes yes and no, t and f for bools, and a label must stay what it is.
_GUESSED = "['BIGINT', 'DOUBLE', 'VARCHAR']"


class CsvSource(Source):
    """A CSV file: names first, types from all of its cells or as declared."""

    is_text = True
    guessed = True

    def __init__(self, path: Path, connection: Any, layout: str, types: Mapping[str, str]) -> None:
        super().__init__(str(path), types)
        self.paths = (path,)
        self.connection = connection
        self.layout = layout

    @classmethod
    def open(cls, path: Path) -> CsvSource:
        """Open a file; this reads all of it, to see what its cells are."""
        header, delimiter = csv_header(path)
        names = _distinct_names(path, header)
        connection = connect()
        layout = f"{sql_path(path)}, delim={sql_text(delimiter)}, header=true, skip=0"
        layout += ", hive_partitioning=false"
        layout += """, comment='', quote='"', escape='"'"""
        guess = f"read_csv({layout}, sample_size=-1, auto_type_candidates={_GUESSED})"
        try:
            found = describe(connection, f"SELECT * FROM {guess}")
        except Exception:
            # DuckDB does not say where guessing failed; reading plain text does.
            plain = cls(path, connection, layout, dict.fromkeys(names, "VARCHAR"))
            connection.cursor().execute(f"SELECT count(*) FROM {plain._table()}").fetchall()
            raise
        return cls(path, connection, layout, dict(zip(names, found.values(), strict=True)))

    def retyped(self, types: Mapping[str, str]) -> CsvSource:
        """Return the same file, some of its columns read as another type."""
        return CsvSource(self.paths[0], self.connection, self.layout, _replaced(self.types, types))

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        query = f"SELECT {', '.join(map(sql_name, columns))} FROM {self._table()}"
        return own_batches(self.connection, query, batch_rows)

    def place(self) -> Place:
        """Return where SQL can count the rows."""
        return _place(self.connection, self._table())

    def _table(self) -> str:
        columns = ", ".join(f"{sql_text(n)}: {sql_text(kind)}" for n, kind in self.types.items())
        return f"read_csv({self.layout}, auto_detect=false, columns={{{columns}}})"


class DuckSource(Source):
    """A query, or a file by one of DuckDB's table functions; declared types are cast to."""

    def __init__(
        self, name: str, table: str, connection: Any, found: Mapping[str, str], casts: Any = ()
    ) -> None:
        super().__init__(name, _replaced(found, dict(casts)))
        self.table = table
        self.connection = connection
        self.casts = dict(casts)

    @classmethod
    def open(cls, name: str, table: str) -> DuckSource:
        """Open what a table function or a query in brackets gives."""
        connection = connect()
        with errors_naming(name):
            return cls(name, table, connection, describe(connection, f"SELECT * FROM {table}"))

    @classmethod
    def of_file(cls, path: Path, function: str, *, is_text: bool) -> DuckSource:
        """Open a file by a table function such as ``read_json({}, sample_size=-1)``."""
        source = cls.open(str(path), function.format(sql_path(path)))
        source.paths, source.is_text = (path,), is_text
        return source

    def retyped(self, types: Mapping[str, str]) -> Source:
        """Return the same file, some of its columns cast to another type."""
        if not self.paths:
            return super().retyped(types)
        casts = self.casts | dict(types)
        out = DuckSource(self.name, self.table, self.connection, self.types, casts)
        out.paths, out.is_text = self.paths, self.is_text
        return out

    def place(self) -> Place:
        """Return where SQL can count the rows."""
        return _place(self.connection, f"({self._query(list(self.types))})")

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        return own_batches(self.connection, self._query(columns), batch_rows)

    def _query(self, columns: Sequence[str]) -> str:
        parts = [
            f"CAST({sql_name(name)} AS {self.casts[name]}) AS {sql_name(name)}"
            if name in self.casts
            else sql_name(name)
            for name in columns
        ]
        return f"SELECT {', '.join(parts)} FROM {self.table}"


def _place(connection: Any, table: str) -> Place:
    def run(query: str) -> Iterator[Any]:
        return own_batches(connection, query, BATCH_ROWS)

    return Place("duckdb", f"{table} AS {NAME}", run)


def open_sql(query: str) -> DuckSource:
    """Open SQL text, run by DuckDB over files."""
    name = f"SQL {' '.join(query.split())!r}"
    return DuckSource.open(name, in_brackets(query))


def in_brackets(query: str) -> str:
    """Return a query as a table; a comment at its end ends before the bracket."""
    return f"({query.strip().rstrip(';')}\n)"


def connect() -> Any:
    """Return a fresh connection in memory: a query sees files, never the user's variables."""
    duckdb = require("duckdb", "files")
    return duckdb.connect(config={"python_enable_replacements": False})


def describe(connection: Any, query: str) -> dict[str, str]:
    """Return the columns of a query and their types, as this very connection sees them."""
    relation = connection.sql(query)
    return dict(zip(relation.columns, map(str, relation.types), strict=True))


def query_batches(connection: Any, query: str, batch_rows: int) -> Iterator[Any]:
    """Yield the result of a query in batches, run by this very connection.

    A cursor would be a session of its own, which sees neither what is not yet committed nor
    temporary tables nor frames that were registered.
    """
    if has_arrow():
        return relation_batches(connection.sql(query), batch_rows)
    return row_batches(connection.execute(query), batch_rows)


def own_batches(connection: Any, query: str, batch_rows: int) -> Iterator[Any]:
    """Yield the result of a query on a connection of ours, which several threads may share."""
    with closing(connection.cursor()) as cursor:
        yield from query_batches(cursor, query, batch_rows)


def relation_batches(relation: Any, batch_rows: int) -> Iterator[Any]:
    """Yield a relation in Arrow batches, or whole, as a mapping, where pyarrow is absent."""
    if has_arrow():
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        yield from reader(batch_rows)
    elif rows := relation.fetchall():
        yield dict(zip(relation.columns, map(list, zip(*rows, strict=True)), strict=True))


def row_batches(result: Any, batch_rows: int) -> Iterator[dict[str, list[Any]]]:
    """Yield mappings of columns: slower than Arrow, but needs no other package."""
    names = [column[0] for column in result.description]
    while rows := result.fetchmany(batch_rows):
        yield dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _replaced(found: Mapping[str, str], types: Mapping[str, str]) -> dict[str, str]:
    return {name: types.get(name, kind) for name, kind in found.items()}


def _distinct_names(path: Path, names: Sequence[str]) -> list[str]:
    """Name the columns that have no name, as DuckDB does; refuse two that are one name to it."""
    names = [name or f"column{i}" for i, name in enumerate(names)]
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        j = seen.setdefault(name.lower(), i)
        if i != j:
            raise ValueError(
                f"{path}: columns {j} and {i} are named {names[j]!r} and {name!r}, which are one "
                "name to DuckDB; rename one"
            )
    return list(names)
