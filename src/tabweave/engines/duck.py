"""DuckDB: connections, query results as batches, and the files that it reads: CSV, JSON, Parquet.

A CSV file starts with its names. Its columns are whole numbers, numbers or text as *all* of its
cells allow, unless they are given a type: nothing else is guessed, so a date stays the text it is,
and yes and no stay words. ``NA``, ``null`` and the like, which pandas takes for missing, too, are
gaps beside numbers, and words beside words. Cells that only DuckDB takes for numbers (``0x1F``,
``0b1``, a blank before some), whole numbers that a float would round, and points that may separate
thousands (in a file whose delimiter is ``;``), leave a column text: two cells that differ are never
one label. In JSON text is text, numbers are numbers, as in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from tabweave._compat import require, warn_caller
from tabweave.columns.datetime import is_iso
from tabweave.columns.numeric import THOUSANDS
from tabweave.engines.pushdown import NAME, SqlTable, temporary_table
from tabweave.engines.source import BATCH_ROWS, Source, errors_naming, family, has_arrow
from tabweave.io.dialects import sql_name, sql_path, sql_text
from tabweave.io.files import csv_header

# Not BOOLEAN: DuckDB takes yes and no, t and f for bools, and a label must stay what it is.
_TYPES_TO_TRY = "['BIGINT', 'DOUBLE', 'VARCHAR']"
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:[+-]?(nan|inf(inity)?))"
# Words for missing beside numbers, as pandas has them.
_MISSING = "NA|N/A|n/a|#N/A|NULL|null|None|NaN|nan|<NA>"
_NUMBERED = re.compile(r"(.*)_\d+", re.DOTALL)  # A name that DuckDB numbered.
_LONG_NUMBER = r"[+-]?[0-9]{16,}"  # a whole number that a float may not hold
# Types that DuckDB sees in the text of JSON, which has none of them.
_TEXT_IN_JSON = re.compile(r"TIMESTAMP WITH TIME ZONE|TIMESTAMP\w*|DATE|TIME\b|UUID|INTERVAL")


class DuckSource(Source):
    """A table of DuckDB, on a connection of ours."""

    def __init__(self, name: str, connection: Any, types: Mapping[str, str]) -> None:
        super().__init__(name, types)
        self.connection = connection

    def _table(self) -> str:
        """The rows as SQL calls them, with the types that were declared."""
        raise NotImplementedError(f"{type(self).__name__} must implement _table")

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        query = f"SELECT {', '.join(map(sql_name, columns))} FROM {self._table()}"
        return own_batches(self.connection, query, batch_rows)

    def sql_table(self) -> SqlTable:
        """Where SQL can count the rows."""

        def run(query: str) -> Iterator[Any]:
            return own_batches(self.connection, query, BATCH_ROWS)

        # The connection is ours, and what it keeps is in memory; a cursor sees no temporary table.
        keep = partial(temporary_table, self.connection.execute, kind="TABLE")
        return SqlTable("duckdb", f"{self._table()} AS {NAME}", run, keep)


class CsvSource(DuckSource):
    """A CSV file: names first, types from all of its cells or as declared.

    Parameters
    ----------
    path : Path
        The file.
    connection : DuckDBPyConnection
        What reads it.
    layout : str
        How DuckDB is to read it, but for the types.
    types : mapping of str to str
        Its columns and their types.
    gapped : collection of str
        The columns in which words stand for missing, if they are read as numbers.
    """

    is_text = True
    guessed = True

    def __init__(
        self,
        path: Path,
        connection: Any,
        layout: str,
        types: Mapping[str, str],
        gapped: Collection[str] = (),
    ) -> None:
        super().__init__(str(path), connection, types)
        self.paths = (path,)
        self.layout = layout
        self.gapped = gapped

    @classmethod
    def open(cls, path: Path) -> CsvSource:
        """Open a file; this reads all of it, to see what its cells are."""
        header = csv_header(path)
        names = _distinct_names(path, header.names)
        connection = connect()
        layout = f"{sql_path(path)}, delim={sql_text(header.delimiter)}, header=true"
        layout += f", skip={header.lines_before}, hive_partitioning=false"
        layout += """, comment='', quote='"', escape='"'"""
        guess = f"read_csv({layout}, sample_size=-1, auto_type_candidates={_TYPES_TO_TRY}"
        guess += f", nullstr=['', {', '.join(map(sql_text, _MISSING.split('|')))}])"
        try:
            types_found = describe(connection, f"SELECT * FROM {guess}")
        except Exception:
            # DuckDB does not say where guessing failed; reading plain text does.
            as_text = cls(path, connection, layout, dict.fromkeys(names, "VARCHAR"))
            connection.cursor().execute(f"SELECT count(*) FROM {as_text._table()}").fetchall()
            raise
        types = dict(zip(names, types_found.values(), strict=True))
        numeric = [name for name, kind in types.items() if kind != "VARCHAR"]
        source = cls(path, connection, layout, types, numeric)._with_numbers_only()
        source._check_names_once()
        if doubt := doubtful_header(header.names, source._first_cells()):
            warn_caller(f"{path}: {doubt}")
        return source

    def _check_names_once(self) -> None:
        """Raise for rows that repeat the names, as in files that were pasted together."""
        if len(self.types) < 2 or set(self.types.values()) != {"VARCHAR"}:
            return
        same = [f"trim({sql_name(name)}) = {sql_text(name.strip())}" for name in self.types]
        counts = [f"count(*) FILTER ({one})" for one in (" AND ".join(same), *same)]
        times = self._answers(counts, self._table())
        if times[0] and len(set(times)) == 1:  # where names are values, they occur elsewhere, too
            raise ValueError(
                f"{self.name}: expected column names in the first line only, got them again "
                f"({times[0]} times); remove the repeated lines"
            )

    def _first_cells(self) -> list[list[Any]]:
        """The first cells of each column that are not missing."""
        query = f"SELECT * FROM {self._table()} LIMIT 1000"
        rows = self.connection.cursor().execute(query).fetchall()
        columns = zip(*rows, strict=True) if rows else ([] for _ in self.types)
        return [[cell for cell in cells if cell is not None] for cells in columns]

    def _with_numbers_only(self) -> CsvSource:
        """The file, as text the columns with a cell that is no number or would change.

        Blanks around cells are no matter where all of them have some.
        """
        if not self.gapped:
            return self
        checks = []
        for name in self.gapped:
            cell, bare = _present(name), f"trim({_present(name)})"
            blank = f"count(*) FILTER ({cell} <> {bare}) IN (0, count({cell}))"
            number = f"CAST(CAST({bare} AS BIGINT) AS VARCHAR) = {bare}"
            if self.types[name] == "DOUBLE":
                number = f"regexp_full_match({bare}, {sql_text(_NUMBER)})"
                number += f" AND NOT regexp_full_match({bare}, {sql_text(_LONG_NUMBER)})"
                if "delim=';'" in self.layout:  # where commas are decimal marks, points may not be
                    points = f"regexp_full_match({bare}, {sql_text(THOUSANDS.pattern)})"
                    blank += f" AND NOT bool_and({points})"
            checks.append(f"{blank} AND coalesce(bool_and({number}), true)")
            checks.append(f"count({cell}) < count({sql_name(name)})")
        as_text = self.retyped(dict.fromkeys(self.gapped, "VARCHAR"))._table()
        results = self._answers(checks, as_text)
        is_number = dict(zip(self.gapped, results[::2], strict=True))
        gapped = [name for name, words in zip(self.gapped, results[1::2], strict=True) if words]
        types = {n: kind if is_number.get(n) else "VARCHAR" for n, kind in self.types.items()}
        return self._with_types(types, gapped)

    def _answers(self, questions: Sequence[str], table: str) -> list[Any]:
        """What SQL answers about all rows of a table.

        To plan a query takes DuckDB time that grows with the square of what is asked, so that a
        wide file is read more than once, a large one as seldom as possible.
        """
        # A pass over a large file takes longer than to plan a query of many columns.
        step = 100 if self.paths[0].stat().st_size < 1 << 28 else 500
        parts = [questions[i : i + step] for i in range(0, len(questions), step)]
        ask = self.connection.cursor().execute
        return [
            answer
            for part in parts
            for answer in ask(f"SELECT {', '.join(part)} FROM {table}").fetchone()
        ]

    def retyped(self, types: Mapping[str, str]) -> CsvSource:
        """The same file, some of its columns read as another type."""
        return self._with_types(_replaced(self.types, types), self.gapped)

    def _with_types(self, types: Mapping[str, str], gapped: Collection[str]) -> CsvSource:
        out = copy(self)
        out.types, out.gapped = dict(types), gapped
        return out

    def about_rows(self) -> int | None:
        """About how many rows there are, from the length of the first lines."""
        path = self.paths[0]
        if path.suffix == ".gz":
            return None
        with path.open("rb") as file:
            start = file.read(1 << 20)
        lines = start.count(b"\n")
        return round(path.stat().st_size * lines / max(len(start), 1))

    def _table(self) -> str:
        words = {n: kind for n in self.gapped if family(kind := self.types[n]) == "number"}
        read_as = self.types | dict.fromkeys(words, "VARCHAR")
        columns = ", ".join(f"{sql_text(n)}: {sql_text(kind)}" for n, kind in read_as.items())
        table = f"read_csv({self.layout}, auto_detect=false, columns={{{columns}}})"
        if not words:
            return table
        casts = (f"CAST({_present(n)} AS {kind}) AS {sql_name(n)}" for n, kind in words.items())
        return f"(SELECT * REPLACE ({', '.join(casts)}) FROM {table})"


def _present(name: str) -> str:
    """A cell of text in SQL, NULL for a word for missing; IN would take minutes in wide files."""
    cell = sql_name(name)
    is_missing = f"regexp_full_match(trim({cell}), {sql_text(_MISSING)})"
    return f"CASE WHEN {is_missing} THEN NULL ELSE {cell} END"


def doubtful_header(header: Sequence[str], columns: Sequence[Sequence[Any]]) -> str:
    """Why the first line of a CSV file may hold no names; nothing if it may well."""
    if len(header) > 1 and header[0].strip() and not "".join(header[1:]).strip():
        return (
            f"its first line holds one name for {len(header)} columns, {header[0]!r}; if that is a "
            "title, remove the line"
        )
    if len(header) == 1:
        words = len(header[0].split())
        if words > 1 and all(len(str(cell).split()) == words for cell in columns[0]):
            return f"it has one column, {header[0]!r}; separate columns by a comma, ; | or a tab"
        return ""
    if _count_up(header):
        return ""
    signs = [_like_a_cell(n.strip(), cells) for n, cells in zip(header, columns, strict=True)]
    if "name" in signs or signs.count("number") + signs.count("value") / 2 < 1:
        return ""
    return (
        f"its first line ({', '.join(header[:4])}{', ...' * (len(header) > 4)}) looks like a row, "
        "and is taken for the names of the columns; if it is a row, write names above it, or pass "
        "pandas.read_csv(..., header=None)"
    )


def _count_up(names: Sequence[str]) -> bool:
    """Whether names are numbers at even steps, as those of columns without names are."""
    try:
        steps = {round(float(b) - float(a), 9) for a, b in pairwise(names)}
    except ValueError:
        return False
    return len(names) > 2 and len(steps) == 1 and steps != {0.0}


def _like_a_cell(name: str, cells: Sequence[Any]) -> str:
    """Whether what heads a column is a "number" or "value" like its cells, a "name", or ""."""
    if not name or not cells:
        return ""
    if not isinstance(cells[0], str):
        try:
            number = float(name)
        except ValueError:
            return "name"
        year = number.is_integer() and 1500 <= number <= 2100
        low, high = min(cells), max(cells)
        inside = 2 * low - high <= number <= 2 * high - low  # neither "nan" nor "inf" is
        return "name" if not inside else "" if year else "number"
    if is_iso([name]) and is_iso(cells):
        return "number"
    distinct = set(cells)
    if name in distinct:
        return "value"
    return "" if 2 * len(distinct) > len(cells) else "name"


class JsonSource(DuckSource):
    """A JSON file: text is text, and cells of several types stay what they are."""

    is_text = True

    def __init__(self, path: Path, connection: Any, types: Mapping[str, str]) -> None:
        super().__init__(str(path), connection, types)
        self.paths = (path,)
        self.mixed = "JSON" in types.values()

    @classmethod
    def open(cls, path: Path) -> JsonSource:
        """Open a file; this reads all of it, to see what its cells are."""
        connection = connect()
        # Whatever their number, and however few rows have one: fields are columns, no map.
        fields = "map_inference_threshold=-1, field_appearance_threshold=0"
        guess = f"read_json({sql_path(path)}, sample_size=-1, hive_partitioning=false, {fields})"
        types_found = describe(connection, f"SELECT * FROM {guess}")
        _check_records(path, connection, guess, types_found)
        names = _distinct_names(path, _keys(path, connection, list(types_found)))
        kinds = {
            name: "JSON" if "JSON" in kind else _TEXT_IN_JSON.sub("VARCHAR", kind)
            for name, kind in zip(names, types_found.values(), strict=True)
        }
        source = cls(path, connection, kinds)
        return source.retyped(dict.fromkeys(source._rounded(), "JSON"))

    def _rounded(self) -> list[str]:
        """The columns with whole numbers that a float would round."""
        floats = [name for name, kind in self.types.items() if kind.startswith(("DOUBLE", "HUGE"))]
        if not floats:
            return []
        raw = self.retyped(dict.fromkeys(floats, "JSON"))._table()
        longer = sql_text(rf"(^|[\[,]){_LONG_NUMBER}($|[\],])")
        checks = [f"regexp_matches(CAST({sql_name(name)} AS VARCHAR), {longer})" for name in floats]
        query = f"SELECT {', '.join(f'bool_or({check})' for check in checks)} FROM {raw}"
        is_rounded = self.connection.cursor().execute(query).fetchone()
        return [name for name, rounded in zip(floats, is_rounded, strict=True) if rounded]

    def retyped(self, types: Mapping[str, str]) -> JsonSource:
        """The same file, some of its columns read as another type."""
        out = copy(self)
        out.types = _replaced(self.types, types)
        out.mixed = "JSON" in out.types.values()
        return out

    def _table(self) -> str:
        columns = ", ".join(f"{sql_text(n)}: {sql_text(kind)}" for n, kind in self.types.items())
        path = sql_path(self.paths[0])
        return f"read_json({path}, columns={{{columns}}}, hive_partitioning=false)"

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        raw = [name for name in columns if self.types[name] == "JSON"]
        for batch in super()._stream(columns, batch_rows):
            yield _decoded(batch, columns, raw) if raw else batch

    def sql_table(self) -> SqlTable:
        """Where SQL can count the rows; to SQL cells of several types are JSON text."""
        for name in (name for name, kind in self.types.items() if kind == "JSON"):
            raise ValueError(
                f"{self.name}: column {name!r} holds values of several types, which SQL cannot "
                "tell apart as tabweave does; use engine='auto', or leave the column out"
            )
        return super().sql_table()


def _check_records(path: Path, connection: Any, guess: str, types: Mapping[str, str]) -> None:
    """Raise for one object of columns, as pandas writes a frame by default, in place of rows."""
    kinds = types.values()
    named = types.get("data", "").endswith("[]") or types.get("0", "").startswith("STRUCT")
    keyed = all(kind.startswith(('STRUCT("0"', "MAP(")) for kind in kinds)
    listed = len(types) > 1 and all(kind.endswith("[]") for kind in kinds)
    if not (named or keyed or listed):
        return
    lengths = ["2"] if named or keyed else [f"len({sql_name(name)})" for name in types]
    rows = connection.execute(f"SELECT {', '.join(lengths)} FROM {guess} LIMIT 2").fetchall()
    if len(rows) == 1 and len(set(rows[0])) == 1 and (rows[0][0] or 0) > 1:
        raise ValueError(
            f"{path}: expected a list of records, or one on each line, got a single object, of "
            f"{', '.join(map(repr, list(types)[:3]))}; write a frame by to_json({path.name!r}, "
            "orient='records')"
        )


def _decoded(batch: Any, columns: Sequence[str], raw: Sequence[str]) -> dict[str, list[Any]]:
    """A batch as lists, the text of some columns decoded, each text once."""
    cells = {n: c if isinstance(c := batch[n], list) else c.to_pylist() for n in columns}
    for name in raw:
        values = {text: None if text is None else _loaded(text) for text in set(cells[name])}
        cells[name] = [values[text] for text in cells[name]]
    return cells


def _loaded(text: str) -> Any:
    """What a text of JSON says; NaN, which Python writes and JSON does not know, is null."""
    return json.loads(text, parse_constant=lambda name: None if name == "NaN" else float(name))


class QuerySource(DuckSource):
    """A query, or a file by one of DuckDB's table functions; declared types are cast to."""

    def __init__(self, name: str, table: str) -> None:
        connection = connect()
        with errors_naming(name):
            super().__init__(name, connection, describe(connection, f"SELECT * FROM {table}"))
        self.table = table
        self.casts: dict[str, str] = {}

    def retyped(self, types: Mapping[str, str]) -> Source:
        """The same file, some of its columns cast to another type."""
        if not self.paths:
            return super().retyped(types)
        out = copy(self)
        out.types, out.casts = _replaced(self.types, types), self.casts | dict(types)
        return out

    def _table(self) -> str:
        casts = [
            f"CAST({sql_name(n)} AS {kind}) AS {sql_name(n)}" for n, kind in self.casts.items()
        ]
        return f"(SELECT * REPLACE ({', '.join(casts)}) FROM {self.table})" if casts else self.table


def open_sql(query: str) -> QuerySource:
    """Open SQL text, run by DuckDB over files."""
    name = f"SQL {' '.join(query.split())!r}"
    return QuerySource(name, in_brackets(query))


def in_brackets(query: str) -> str:
    """A query as a table; a comment at its end ends before the bracket."""
    return f"({query.strip().rstrip(';')}\n)"


def connect() -> Any:
    """A fresh connection in memory: a query sees files, never the user's variables."""
    duckdb = require("duckdb", "files")
    return duckdb.connect(config={"python_enable_replacements": False})


def describe(connection: Any, query: str) -> dict[str, str]:
    """The columns of a query and their types, as this very connection sees them."""
    relation = connection.sql(query)
    return dict(zip(relation.columns, map(str, relation.types), strict=True))


def query_batches(connection: Any, query: str, batch_rows: int) -> Iterator[Any]:
    """The result of a query in batches, run by this very connection.

    A cursor would be a session of its own, which sees neither what is not yet committed nor
    temporary tables nor frames that were registered.
    """
    if has_arrow():
        return relation_batches(connection.sql(query), batch_rows)
    return row_batches(connection.execute(query), batch_rows)


def own_batches(connection: Any, query: str, batch_rows: int) -> Iterator[Any]:
    """The result of a query on a connection of ours, which several threads may share."""
    with closing(connection.cursor()) as cursor:
        yield from query_batches(cursor, query, batch_rows)


def relation_batches(relation: Any, batch_rows: int) -> Iterator[Any]:
    """A relation in Arrow batches, or whole, as a mapping, where pyarrow is absent."""
    if has_arrow():
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        yield from reader(batch_rows)
    elif rows := relation.fetchall():
        yield dict(zip(relation.columns, map(list, zip(*rows, strict=True)), strict=True))


def row_batches(result: Any, batch_rows: int) -> Iterator[dict[str, list[Any]]]:
    """Mappings of columns: slower than Arrow, but needs no other package."""
    names = [column[0] for column in result.description]
    while rows := result.fetchmany(batch_rows):
        yield dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _replaced(found: Mapping[str, str], types: Mapping[str, str]) -> dict[str, str]:
    return {name: types.get(name, kind) for name, kind in found.items()}


def _keys(path: Path, connection: Any, names: list[str]) -> list[str]:
    """The names of columns, or the keys of a JSON file if two are equal but for case.

    Of those DuckDB numbers all but one, and then finds nothing under the name with the number.
    """
    folded = {name.casefold() for name in names}
    matches = (_NUMBERED.fullmatch(name) for name in names)
    if not any(match is not None and match[1].casefold() in folded for match in matches):
        return names
    objects = f"read_json_objects({sql_path(path)}, hive_partitioning=false)"
    query = f"SELECT DISTINCT unnest(json_keys(json)) FROM {objects}"
    keys = sorted(key for (key,) in connection.cursor().execute(query).fetchall())
    return keys if len({key.lower() for key in keys}) < len(keys) else names


def _distinct_names(path: Path, names: Sequence[str]) -> list[str]:
    """Name the columns that have no name, as DuckDB does; refuse two that are one name to it."""
    names = [name or f"column{i}" for i, name in enumerate(names)]
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        j = seen.setdefault(name.lower(), i)
        if i != j:
            row = (
                ""
                if any(map(str.isalpha, "".join(names)))
                else (
                    "; if the first line is a row, write names above it, or pass "
                    "pandas.read_csv(..., header=None)"
                )
            )
            raise ValueError(
                f"{path}: columns {j} and {i} are named {names[j]!r} and {name!r}, which DuckDB "
                f"reads as the same name; rename one{row}"
            )
    return list(names)
