"""Source: whatever rows come from, in one form: columns, their types, and a stream of batches.

Each engine of this room is a subclass; counting and transforming see nothing else. A source is
opened once and passed around: opening a file of text means to look at all of it. A batch is
anything :meth:`tabweave.Table.of` reads: an Arrow batch where pyarrow is installed, else a mapping
of columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tabweave._compat import prefetched, require
from tabweave.columns.frames import is_missing, is_ordered, named_columns
from tabweave.columns.vocabulary import slices
from tabweave.engines.progress import progress_reporter
from tabweave.io.files import in_utf8

BATCH_ROWS = 1 << 19
_LIBRARIES = {"duckdb", "_duckdb", "pyarrow", "polars", "adbc_driver_manager", "sqlite3"}
_LIBRARIES |= {"sqlalchemy", "chdb", "datafusion", "ibis", "daft"}
_FAMILIES = {
    "text": ("string", "large_string", "varchar", "utf8", "large_utf8", "enum", "dictionary"),
    "number": (
        *("int", "uint", "float", "double", "halffloat", "decimal", "real", "hugeint", "uhugeint"),
        *("bigint", "ubigint", "smallint", "usmallint", "tinyint", "utinyint", "uinteger"),
    ),
    "bool": ("bool",),
    "datetime": ("date", "time", "duration", "interval"),
    "null": ("null", '"null"'),
}
_ARROW_TIME = re.compile(r"(time|duration|date)\w*\[[a-z].*\]")  # as timestamp[us]; no DATE[3]
_CSV_ERROR = re.compile(
    r"CSV Error on Line: (\d+)\nOriginal Line:(.*)\n(?:Expected Number of Columns: (\d+) "
    r"Found: (\d+)|(Value with unterminated quote)|Invalid unicode)",
    re.DOTALL,
)


class RereadError(ValueError):
    """Rows are to be read in another way, which whoever reads them knows."""


class Work:
    """What is done to rows, part by part; the results of parts add up."""

    def __call__(self, batches: Iterable[Any]) -> Any:
        """The result of the batches of one part."""
        raise NotImplementedError(f"{type(self).__name__} must work on batches")

    def merge(self, results: Any) -> Any:
        """The results of parts, in their order, as one."""
        raise NotImplementedError(f"{type(self).__name__} must merge results")

    def at(self, part: int) -> Work:
        """The same for the part of that number."""
        return self


class Source:
    """Rows that can be streamed; a subclass implements ``_stream``.

    Parameters
    ----------
    name : str
        What errors call it: a file, a query, a kind of frame.
    types : mapping of str to str
        Its columns and what their types are called; "" where that is not known.
    n_rows : int, optional
        How many rows there are, if that is known before reading.

    Attributes
    ----------
    repeats : bool
        Whether it can be streamed more than once.
    shared : bool
        Whether it lives on a connection or iterator of the user's, which stays in its thread.
    in_memory : bool
        Whether its rows are in memory already.
    is_text : bool
        Whether it is of files of text, whose types may be declared.
    guessed : bool
        Whether its types were guessed from how cells look.
    mixed : bool
        Whether a column holds cells of several types, which Arrow cannot.
    paths : tuple of Path
        The files it reads.
    encoding : str
        That of a file of text, as it was read; "" of others.
    """

    repeats: bool = True
    shared: bool = False
    in_memory: bool = False
    is_text: bool = False
    guessed: bool = False
    mixed: bool = False
    paths: tuple[Path, ...] = ()
    encoding: str = ""

    def __init__(self, name: str, types: Mapping[str, str], n_rows: int | None = None) -> None:
        self.name = name
        self.types = dict(types)
        self.n_rows = n_rows

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {len(self.types)} columns)"

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} must implement _stream")

    def batches(self, columns: Sequence[str], batch_rows: int | None = None) -> Iterator[Any]:
        """The rows of some columns in batches, in order, of at most so many rows if given."""
        with errors_naming(self.name):
            for batch in self._stream(columns, batch_rows or BATCH_ROWS):
                yield from (batch,) if batch_rows is None else cut(batch, batch_rows)

    def batches_ahead(self, columns: Sequence[str], batch_rows: int | None = None) -> Iterator[Any]:
        """The same, the next batch being read meanwhile where another thread may."""
        stream = self.batches(columns, batch_rows)
        return stream if self.shared else prefetched(stream)

    def run(
        self, work: Work, columns: Sequence[str], progress: Any = None, step: str = "counting"
    ) -> Any:
        """Do work on all rows, where they are, and return its merged result.

        Here they are one part, whose batches come in order, the next being read meanwhile.
        """
        report = progress_reporter(progress, "rows", self.n_rows)

        def reported() -> Iterator[Any]:
            done = 0
            for batch in self.batches_ahead(columns):
                yield batch
                done += n_rows_of(batch)
                report(step, done)

        return work.at(0)(reported())

    def collect(self, columns: Sequence[str]) -> Any:
        """All rows of some columns: an Arrow table, or a mapping where pyarrow is absent."""
        parts = list(self.batches(columns))
        return one_mapping(parts, columns) if self.mixed else _joined(parts, columns)

    def retyped(self, types: Mapping[str, str]) -> Source:
        """The same source with the types of some columns declared; it is not opened anew."""
        raise ValueError(
            f"columns gives {next(iter(types))!r} a type, which works for text files only; cast "
            f"it in the query or in the frame"
        )

    def known_types(self, names: Sequence[str]) -> dict[str, str]:
        """The types of columns; "" where only their cells could tell."""
        return {name: self.types[name] for name in names}

    def part_sizes(self) -> list[int]:
        """How many rows each part has in which the rows lie; nothing if all are in one."""
        return []

    def about_rows(self) -> int | None:
        """About how many rows there are, if that is known before reading."""
        return self.n_rows

    def sql_table(self) -> Any:
        """Where SQL can count the rows, as :class:`tabweave.engines.pushdown.SqlTable`."""
        raise ValueError(
            f"{self.name}: its rows can only be read; engine='pushdown' is for databases, SQL, "
            "DuckDB relations, single files, and tables of Ibis and DataFusion"
        )

    def choose(self, columns: Any = None, y: str | None = None) -> list[str]:
        """The columns to read, all by default, y last; refuse names that are not there."""
        if isinstance(columns, str):
            raise TypeError(
                f"expected columns to be a list of names, as in [{columns!r}], got {columns!r}"
            )
        names = list(self.types if columns is None else columns)
        if y is not None:
            names = [*(name for name in names if name != y), y]
        for name in names:
            if name not in self.types:
                raise ValueError(
                    f"{self.name}: column not found: {name!r}; the columns are "
                    f"{', '.join(map(repr, self.types))}"
                )
        return names


class RecordSource(Source):
    """A source some of whose columns hold records, which become columns ``record.field``.

    Parameters
    ----------
    source : Source
        The source; its first row says which fields there are, or its first batch where cells
        are of several types.
    """

    def __init__(self, source: Source) -> None:
        first = next(source.batches(list(source.types), None if source.mixed else 1), None)
        names = source.types if first is None else named_columns(first)[0]
        super().__init__(source.name, {n: source.types.get(n, "") for n in names}, source.n_rows)
        self.source = source
        for name in ("repeats", "shared", "in_memory", "is_text", "guessed", "mixed", "paths"):
            setattr(self, name, getattr(source, name))

    def retyped(self, types: Mapping[str, str]) -> RecordSource:
        """The same source, some of its columns read as another type; fields are typed."""
        columns = {name: kind for name, kind in types.items() if name in self.source.types}
        return RecordSource(self.source.retyped(columns)) if columns else self

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        types = self.source.types
        # The longest that fits: a column may be named as a field of another would be.
        owners = (
            max((n for n in types if f"{name}.".startswith(f"{n}.")), key=len) for name in columns
        )
        for batch in self.source.batches(list(dict.fromkeys(owners)), batch_rows):
            batch = batch.to_arrow() if hasattr(batch, "to_arrow") else batch
            fields, _ = named_columns(batch)
            part = {name: fields.get(name, [None] * n_rows_of(batch)) for name in columns}
            if self.mixed or not has_arrow():
                yield one_mapping([part], columns)
            else:
                yield require("pyarrow", "frames").table(part).combine_chunks().to_batches()[0]


def with_fields(source: Source) -> Source:
    """A source, the fields of whose records are columns."""
    nested = any(kind.lower().startswith("struct") for kind in source.types.values())
    if not (nested or source.mixed) or not source.repeats:
        return source
    records = RecordSource(source)
    return source if records.types.keys() == source.types.keys() else records  # JSON without any


def as_arrow(cells: Any) -> Any:
    """The cells of a column as an Arrow array, as text if they are of several types."""
    import pyarrow as pa

    try:
        return pa.array(cells)
    except (TypeError, ValueError):  # as Arrow's own errors are
        return pa.array(text_of_cells(cells))


def text_of_cells(cells: Any) -> list[str | None]:
    """Cells of several types as text: text as it is, others as JSON writes them."""
    return [None if is_missing(c) else c if isinstance(c, str) else in_json(c) for c in cells]


def in_json(cell: Any) -> str | None:
    """A cell as JSON writes it; what JSON does not know as text."""
    return None if is_missing(cell) else json.dumps(cell, default=str, ensure_ascii=False)


def check_batch_rows(batch_rows: int) -> None:
    """Raise for a number of rows that no batch has."""
    if batch_rows < 1:
        raise ValueError(f"batch_rows: expected at least 1, got {batch_rows}")


def has_arrow() -> bool:
    """Whether pyarrow is installed."""
    return find_spec("pyarrow") is not None


def n_rows_of(batch: Any) -> int:
    """The number of rows of a batch."""
    return len(next(iter(batch.values()), ())) if isinstance(batch, Mapping) else len(batch)


def cut(batch: Any, max_rows: int) -> Iterator[Any]:
    """A batch in as few equal parts as make at most so many rows each."""
    n = n_rows_of(batch)
    parts = -(-n // max_rows)
    for rows in slices(n, 1, -(-n // parts)) if n > max_rows else ():
        if isinstance(batch, Mapping):
            yield {k: (v.iloc if hasattr(v, "iloc") else v)[rows] for k, v in batch.items()}
        elif hasattr(batch, "slice"):
            yield batch.slice(rows.start, rows.stop - rows.start)
        else:
            yield (batch.iloc if hasattr(batch, "iloc") else batch)[rows]
    if n <= max_rows:
        yield batch


def some_rows(batch: Any, index: np.ndarray) -> Any:
    """Some rows of a batch."""
    if isinstance(batch, dict):
        return {name: [cells[i] for i in index] for name, cells in batch.items()}
    if hasattr(batch, "iloc"):
        return batch.iloc[index]
    return (batch.to_arrow() if hasattr(batch, "to_arrow") else batch).take(index)


def join_batches(parts: Sequence[Any], names: Sequence[str]) -> Any:
    """Batches as one."""
    if len(parts) == 1:
        return parts[0]
    if parts and hasattr(parts[0], "iloc"):
        return require("pandas", "frames").concat(parts)
    return _joined(parts, names)


def _joined(parts: Sequence[Any], names: Sequence[str]) -> Any:
    """Batches as one Arrow table, or as a mapping where cells are of several types."""
    if not has_arrow():
        return one_mapping(parts, names)
    try:
        return _one_table(parts, names)
    except (TypeError, ValueError):  # as Arrow's own errors are
        if not any(isinstance(part, Mapping) for part in parts):
            raise
        return one_mapping(parts, names)


def one_mapping(parts: Sequence[Any], names: Sequence[str]) -> dict[str, list[Any]]:
    """Batches as a mapping of columns, their cells as Python has them."""
    return {name: [cell for part in parts for cell in as_list(part[name])] for name in names}


def as_list(cells: Any) -> list[Any]:
    """The cells of a column as Python has them."""
    listed = getattr(cells, "to_pylist", None) or getattr(cells, "tolist", None)
    return listed() if listed else list(cells)


def _one_table(parts: Sequence[Any], names: Sequence[str]) -> Any:
    import pyarrow as pa

    if not parts:
        return pa.table({name: pa.array([], pa.string()) for name in names})
    tables = [part.to_arrow() if hasattr(part, "to_arrow") else pa.table(part) for part in parts]
    for name in names:
        if len({is_ordered(table[name]) for table in tables}) > 1:  # which Arrow refuses to join
            tables = [_without_order(table, name) for table in tables]
    table = pa.concat_tables(tables, promote_options="permissive")
    if any(map(is_ordered, table.columns)):  # to unify them would be to make up an order
        return table
    return table.unify_dictionaries()


def _without_order(table: Any, name: str) -> Any:
    """A table in which ordered categories of one column are plain ones."""
    import pyarrow as pa

    if not is_ordered(table[name]):
        return table
    parts = [pa.DictionaryArray.from_arrays(p.indices, p.dictionary) for p in table[name].chunks]
    column = pa.chunked_array(parts, parts[0].type)
    return table.set_column(table.column_names.index(name), name, column)


def family(kind: str) -> str:
    """What a type of any library holds: number, text, bool, datetime, set ..."""
    kind = kind.lower()
    if kind.endswith("]") or kind.startswith(("list", "large_list", "fixed_size_list")):
        return "datetime" if _ARROW_TIME.fullmatch(kind) else "set"
    if kind.startswith("dictionary<values="):
        return family(kind.removeprefix("dictionary<values=").partition(",")[0])
    for name, starts in _FAMILIES.items():
        if kind.startswith(starts):
            return name
    return kind


def declared_types(columns: Any) -> dict[str, str]:
    """The types that ``columns`` declares, if it is a mapping of name to type."""
    if not isinstance(columns, Mapping):
        return {}
    return {name: kind for name, kind in columns.items() if kind is not None}


@contextmanager
def errors_naming(name: str) -> Iterator[None]:
    """Let an error of a library say which file, query or database it speaks of."""
    try:
        yield
    except Exception as error:
        foreign = type(error).__module__.partition(".")[0] in _LIBRARIES
        nameless = isinstance(error, OSError) and error.filename is None
        if isinstance(error, FileNotFoundError | PermissionError) or not (foreign or nameless):
            raise
        raise ValueError(f"{name}: {_message_of(str(error))}") from error


def _message_of(text: str) -> str:
    """What went wrong without DuckDB's list of options."""
    if match := _CSV_ERROR.search(text):
        line, written, names, cells, quote = match.groups()
        where = f"line {line}: {' '.join(written.split())[:80]!r}"
        if quote:
            return (
                f"expected a quote at the end of a cell that begins with one, and two for one "
                f"inside it, got {where}; mend the line"
            )
        if names is None:
            return f"expected UTF-8, got other bytes in line {line}; {in_utf8()}"
        got = cells if int(cells) < int(names) else "more"
        return (
            f"expected {names} cell{'s' * (names != '1')}, as the first line has, got {got} in "
            f"{where}; mend the line, and remove notes above the names or below the rows"
        )
    if "Error when sniffing" in text:
        return "its lines cannot be cut into cells; does a quote in the first line lack its end?"
    for advice in ("Possible fixes", "Possible solutions", "\n\n", "LINE 1:"):
        text = text.partition(advice)[0]
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())
