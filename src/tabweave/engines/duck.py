"""DuckDB, in one place: connections, and query results as a stream of batches."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tabweave.engines.source import Source, has_arrow


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


def query_batches(connection: Any, query: str, batch_rows: int) -> Iterator[Any]:
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


# -- CSV and JSON through DuckDB: what the columns are, as all cells allow, and where a row is bad

_DELIMITERS = (",", ";", "\t", "|")
# Not BOOLEAN: DuckDB takes yes and no, t and f for truth, and a label must stay what it is.
_GUESSED = "['BIGINT', 'DOUBLE', 'VARCHAR']"


def open_csv(path: Path, types: Mapping[str, str]) -> Source:
    """Open a CSV file: names first, types from all of its cells or as declared."""
    names, delimiter = _header(path)
    connection = connect()
    layout = f"delim={text(delimiter)}, header=true, skip=0, comment=''"
    layout += """, quote='"', escape='"'"""
    file = text(str(path))
    try:
        guess = f"read_csv({file}, {layout}, sample_size=-1, auto_type_candidates={_GUESSED})"
        found = described(connection, f"SELECT * FROM {guess}")
    except Exception:
        # DuckDB does not say where guessing failed; reading plain text does.
        plain = _columns(dict.fromkeys(names, "VARCHAR"))
        query = f"SELECT count(*) FROM read_csv({file}, {layout}, auto_detect=false, {plain})"
        connection.cursor().execute(query).fetchall()
        raise
    wanted = dict(zip(names, found.values(), strict=True))
    wanted |= {name: kind for name, kind in types.items() if name in wanted}
    table = f"read_csv({file}, {layout}, auto_detect=false, {_columns(wanted)})"
    return _queried(path, connection, table, wanted)


def open_query(path: Path, table: str, types: Mapping[str, str]) -> Source:
    """Open a file that DuckDB reads as the table function given."""
    connection = connect()
    found = described(connection, f"SELECT * FROM {table}")
    return _queried(path, connection, table, found, types)


def _queried(
    path: Path,
    connection: Any,
    table: str,
    found: Mapping[str, str],
    types: Mapping[str, str] | None = None,
) -> Source:
    types = types or {}

    def stream(columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        yield from query_batches(connection, select(columns, table, types), batch_rows)

    return Source(str(path), {**found, **{k: v for k, v in types.items() if k in found}}, stream)


def _header(path: Path) -> tuple[list[str], str]:
    """Return the names in the first line, and what separates them."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        try:
            line = file.readline()
            while line.count('"') % 2 and (more := file.readline()):  # a name of several lines
                line += more
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}: byte {error.object[error.start]:#04x} is no UTF-8; write the file as "
                "UTF-8, e.g. by iconv -f latin1 -t utf-8"
            ) from None
    line = line.rstrip("\r\n")
    if not line.strip():
        raise ValueError(f"{path}: the first line is empty; it must hold the names of the columns")
    bare = "".join(line.split('"')[::2])  # what stands in quotes separates nothing
    delimiter = max(_DELIMITERS, key=bare.count)
    names = next(csv.reader(line.splitlines(keepends=True), delimiter=delimiter))
    return _told_apart(path, names), delimiter


def _told_apart(path: Path, names: list[str]) -> list[str]:
    """Name the columns that have no name, as DuckDB does; refuse two that it cannot tell apart."""
    names = [name or f"column{i}" for i, name in enumerate(names)]
    met: dict[str, int] = {}
    for i, name in enumerate(names):
        j = met.setdefault(name.lower(), i)
        if i != j:
            raise ValueError(
                f"{path}: columns {j} and {i} are named {names[j]!r} and {name!r}, which are one "
                "name to DuckDB; rename one"
            )
    return names


def _columns(types: Mapping[str, str]) -> str:
    inner = ", ".join(f"{text(name)}: {text(kind)}" for name, kind in types.items())
    return f"columns={{{inner}}}"
