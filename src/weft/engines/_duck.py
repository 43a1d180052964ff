"""DuckDB, in one place: connections, and query results as a stream of batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.engines._source import has_arrow


def connect() -> Any:
    """Return a fresh connection in memory: a query sees files, never the user's variables."""
    import duckdb

    return duckdb.connect(config={"python_enable_replacements": False})


def quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def described(connection: Any, query: str) -> dict[str, str]:
    """Return the columns of a query and their types."""
    cursor = connection.cursor()
    rows = cursor.execute(f"DESCRIBE ({query})").fetchall()
    return {row[0]: str(row[1]) for row in rows}


def stream(connection: Any, query: str, batch_rows: int) -> Iterator[Any]:
    """Yield the result of a query in batches, without ever holding all of it."""
    cursor = connection.cursor()
    try:
        if has_arrow():
            yield from relation_batches(cursor.sql(query), batch_rows)
        else:
            cursor.execute(query)
            yield from row_batches(cursor, batch_rows)
    finally:
        cursor.close()


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


def select(columns: Sequence[str], table: str, types: Mapping[str, str]) -> str:
    """Return the query for some columns of a table, cast to the types declared."""
    parts = [
        f"CAST({quoted(name)} AS {types[name]}) AS {quoted(name)}"
        if name in types
        else quoted(name)
        for name in columns
    ]
    return f"SELECT {', '.join(parts)} FROM {table}"
