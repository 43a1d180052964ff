"""CSV and JSON through DuckDB: what the columns are, as all cells allow, and where a row is bad."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.engines import _duck
from weft.engines._source import Source

_DELIMITERS = (",", ";", "\t", "|")
# Not BOOLEAN: DuckDB takes yes and no, t and f for truth, and a label must stay what it is.
_GUESSED = "['BIGINT', 'DOUBLE', 'VARCHAR']"


def open_csv(path: Path, types: Mapping[str, str]) -> Source:
    """Open a CSV file: names first, types from all of its cells or as declared."""
    names, delimiter = _header(path)
    connection = _duck.connect()
    layout = f"delim={_duck.text(delimiter)}, header=true, skip=0, comment=''"
    layout += """, quote='"', escape='"'"""
    file = _duck.text(str(path))
    try:
        guess = f"read_csv({file}, {layout}, sample_size=-1, auto_type_candidates={_GUESSED})"
        found = _duck.described(connection, f"SELECT * FROM {guess}")
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
    connection = _duck.connect()
    found = _duck.described(connection, f"SELECT * FROM {table}")
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
        yield from _duck.stream(connection, _duck.select(columns, table, types), batch_rows)

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
    inner = ", ".join(f"{_duck.text(name)}: {_duck.text(kind)}" for name, kind in types.items())
    return f"columns={{{inner}}}"
