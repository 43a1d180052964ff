"""Frames: rows in memory, lazy frames, DuckDB relations, iterators, and all that speaks Arrow."""

from __future__ import annotations

import glob
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tabweave._compat import require
from tabweave.columns.frames import named_columns
from tabweave.columns.vocabulary import slices
from tabweave.engines.duck import relation_batches
from tabweave.engines.pushdown import NAME, SqlTable, temporary_table
from tabweave.engines.source import (
    BATCH_ROWS,
    Source,
    as_arrow,
    errors_naming,
    has_arrow,
    text_of_cells,
)
from tabweave.io.dialects import sql_name

# -- Vectors of one batch, beside the columns that are kept ---------------------------------------


def vector_batch(
    embedder: Any,
    batch: Any,
    keep: Sequence[str],
    names: Sequence[str],
    vector: str | None = None,
    texts: Sequence[str] = (),
) -> Any:
    """The kept columns and the vectors of a batch: as Arrow, or else as a mapping.

    Those of the kept columns that are in ``texts`` hold cells of several types, and become text.
    """
    by_name, _ = named_columns(batch)
    columns_read = fitted_names(embedder) or [n for n in by_name if n not in keep]
    vectors = np.asarray(embedder.transform({name: by_name[name] for name in columns_read}))
    out = {n: text_of_cells(by_name[n]) if n in texts else by_name[n] for n in keep}
    if vector is None:
        out |= dict(zip(names, _by_dimension(vectors), strict=True))
    else:
        arrow = require("pyarrow", "frames")
        flat = arrow.array(np.ascontiguousarray(vectors).reshape(-1))
        out[vector] = arrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    if not has_arrow():
        return out
    import pyarrow as pa

    columns = map(_arrow_column, out.values())
    return pa.Table.from_arrays(list(columns), names=list(out)).combine_chunks().to_batches()[0]


def _by_dimension(vectors: np.ndarray) -> np.ndarray:
    """Vectors with the numbers of each dimension side by side, as columns have them.

    Blocks of rows stay in the cache while they are turned.
    """
    out = np.empty(vectors.shape[::-1], vectors.dtype)
    for rows in slices(len(vectors), 1, 512):
        out[:, rows] = vectors[rows].T
    return out


def _arrow_column(column: Any) -> Any:
    """A column as Arrow has it, text spelled out: dictionaries differ between batches."""
    import pyarrow as pa

    if not type(column).__module__.startswith("pyarrow"):
        return as_arrow(column)
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def fitted_names(embedder: Any) -> list[str] | None:
    """The columns that an embedder reads, None if they have no names; none that was dropped."""
    names = getattr(embedder, "feature_names_in_", None)
    unused = {column.name for column in getattr(getattr(embedder, "schema_", None), "dropped", ())}
    return None if names is None else [str(name) for name in names if name not in unused]


# -- frames in memory -----------------------------------------------------------------------------

_PROTOCOLS = ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__")


class FrameSource(Source):
    """Rows in memory: one batch, unless fewer rows at a time are asked for."""

    in_memory = True

    def __init__(self, frame: Any) -> None:
        self.cells, n_rows = named_columns(frame)
        super().__init__("the rows", dict.fromkeys(self.cells, ""), n_rows)
        self.frame = frame

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        yield self.collect(columns)

    def collect(self, columns: Sequence[str]) -> Any:
        """The rows as they are if all columns are wanted: an array then stays one."""
        is_whole = list(columns) == list(self.types)
        return self.frame if is_whole else {name: self.cells[name] for name in columns}


class IteratorSource(Source):
    """An iterator of frames, to be read once."""

    repeats = False
    shared = True

    def __init__(self, frames: Iterator[Any]) -> None:
        first = next(frames, None)
        if first is None:
            raise ValueError("expected an iterator of frames, got an empty one")
        super().__init__("the frames", FrameSource(first).types)
        self.frames = chain([first], frames)

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        for frame in self.frames:
            yield FrameSource(frame).collect(columns)


class LazySource(Source):
    """A polars lazy frame, collected in batches."""

    def __init__(self, frame: Any) -> None:
        found = frame.collect_schema().items()
        nested = {name: "struct" * str(kind).startswith("Struct") for name, kind in found}
        super().__init__("polars lazy frame", nested)
        self.frame = frame

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        part = self.frame.select(list(columns))
        if hasattr(part, "collect_batches"):
            yield from part.collect_batches(chunk_size=batch_rows)
        else:
            yield part.collect()


class RelationSource(Source):
    """A DuckDB relation."""

    shared = True

    def __init__(self, relation: Any) -> None:
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        super().__init__("DuckDB relation", types)
        self.relation = relation

    def sql_table(self) -> SqlTable:
        """Where SQL can count the rows."""
        relation = self.relation
        run = lambda query: relation_batches(relation.query(NAME, query), BATCH_ROWS)  # noqa: E731
        return SqlTable(
            "duckdb", NAME, run, partial(temporary_table, partial(relation.query, NAME))
        )

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        part = self.relation.project(", ".join(map(sql_name, columns)))
        return relation_batches(part, batch_rows)


class ArrowSource(Source):
    """What speaks the Arrow stream protocol: its batches are taken as they lie, without a copy.

    Any object with ``__arrow_c_stream__``, ``__arrow_c_array__`` or ``__dataframe__`` will do. A
    library that can select columns, or give batches where the protocol gives all rows at once, is
    asked in its own words. What can be read only once is found out when it is read again.
    """

    def __init__(self, rows: Any) -> None:
        self.arrow = require("pyarrow", "frames")
        self.library = library_of(rows)
        name = f"{self.library} {type(rows).__name__}"
        if self.library in _READABLE_PART:
            with errors_naming(name):
                rows = _READABLE_PART[self.library](rows)
        self.rows = rows
        self.repeats = not hasattr(rows, "__next__")
        self.shared = self.library not in ("pyarrow", "datafusion", "daft") or not self.repeats
        self.first: Any = None
        with errors_naming(name):
            schema = self._schema()
            super().__init__(name, {field.name: str(field.type) for field in schema})
        self.seen: int | None = None

    def _schema(self) -> Any:
        """The columns, without reading a row where that can be helped."""
        if hasattr(self.rows, "__arrow_c_schema__"):
            return self.arrow.schema(self.rows)
        if self.library == "pyiceberg":
            return self.rows.projection().as_arrow()
        schema: Any = getattr(self.rows, "schema", None)
        schema = schema() if callable(schema) else schema
        schema = schema.to_pyarrow() if hasattr(schema, "to_pyarrow") else schema
        if isinstance(schema, self.arrow.Schema):
            return schema
        self.first = self._reader(None, BATCH_ROWS)
        return self.first.schema

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        first, self.first = self.first, None
        done = 0
        names = list(columns)
        for batch in gathered(first or self._reader(names, batch_rows), batch_rows):
            done += batch.num_rows
            yield batch.select(names)
        if self.seen not in (None, done):
            raise ValueError(
                f"{self.name}: the first pass gave {self.seen} rows, this one {done}: it can be "
                "read only once; pass the object that makes it, or its rows in memory"
            )
        self.seen = done

    def sql_table(self) -> SqlTable:
        """Where SQL can count the rows: the backend of Ibis, or DataFusion."""
        rows = self.rows
        if self.library == "ibis":
            named = rows.alias(NAME)
            return SqlTable("duckdb", NAME, lambda q: [named.sql(q, dialect="duckdb").to_pyarrow()])
        if self.library == "datafusion":
            context = require("datafusion", "frames").SessionContext()
            context.register_table(NAME, rows.into_view())
            return SqlTable("datafusion", NAME, lambda q: [context.sql(q).to_arrow_table()])
        return super().sql_table()

    def _reader(self, columns: list[str] | None, batch_rows: int) -> Any:
        """The batches, of some columns only if the library can select them."""
        rows, library = self.rows, self.library
        if columns is not None and library in ("ibis", "daft", "pyiceberg"):
            rows = rows.select(*columns)
        elif columns is not None and library == "datafusion":
            rows = rows.select(*map(sql_name, columns))
        if library == "ibis":
            return rows.to_pyarrow_batches(chunk_size=batch_rows)
        if library == "daft":
            return rows.to_arrow_iter()
        if library == "pyiceberg":
            return rows.to_arrow_batch_reader()
        if library == "lancedb":
            query = rows.search() if hasattr(rows, "search") else rows
            return (query if columns is None else query.select(columns)).to_batches(batch_rows)
        if hasattr(rows, "scanner"):
            return rows.scanner(columns=columns, batch_size=batch_rows).to_reader()
        if hasattr(rows, "__arrow_c_stream__"):
            return self.arrow.RecordBatchReader.from_stream(rows)
        if hasattr(rows, "__arrow_c_array__"):
            return self.arrow.table(self.arrow.record_batch(rows)).to_reader(batch_rows)
        exchange = require("pyarrow.interchange", "frames")
        return exchange.from_dataframe(rows).to_reader(batch_rows)


_READABLE_PART = {  # tables whose log says which rows are there, as what gives their batches
    "deltalake": lambda table: table.to_pyarrow_dataset(),
    "pyiceberg": lambda table: table.scan() if hasattr(table, "scan") else table,
}


def speaks_arrow(X: Any) -> bool:
    """Whether rows can be had from an object as a stream of Arrow batches."""
    if library_of(X) in _READABLE_PART:
        return True
    if library_of(X) == "lancedb":  # tables and queries
        return hasattr(X, "search") or hasattr(X, "to_batches")
    return any(hasattr(type(X), name) for name in _PROTOCOLS)


def library_of(X: Any) -> str:
    """The package that an object comes from."""
    return type(X).__module__.partition(".")[0]


class Scan(NamedTuple):
    """How a library's plan to read rows is looked at.

    Attributes
    ----------
    text : callable
        From rows to a text that names the file they are read from.
    file : str
        A pattern for that name.
    plan : callable
        From rows to all that is asked of the library, to be compared.
    read : callable
        From a path to the rows of a Parquet file, with nothing else asked for.
    """

    text: Callable[[Any], str]
    file: str
    plan: Callable[[Any], Any]
    read: Callable[[str], Any]


def scanned_file(rows: Any) -> Path | None:
    """The Parquet file that a lazy frame or a relation reads, if that is all it does.

    Its plan must be, to the last byte, that of reading the file with nothing else asked for. Such
    a file is better read here: the library would spell out the dictionaries that it holds.
    """
    library = library_of(rows).lstrip("_")
    if library not in _SCANS:
        return None
    scan = _SCANS[library]
    try:
        named = re.match(scan.file, scan.text(rows), re.DOTALL)
        path = named.group(1) if named else ""
        if not path or glob.has_magic(path) or not Path(path).is_file():
            return None
        same = scan.plan(rows) == scan.plan(scan.read(path))
    except Exception:  # a plan that cannot be looked at is carried out by its library
        return None
    return Path(path) if same else None


def _daft_plan(rows: Any) -> str:
    text = io.StringIO()
    rows.explain(file=text)
    return text.getvalue()


def _relation_plan(relation: Any) -> tuple[str, Any, list[str]]:
    query = re.sub(r' AS "unnamed_relation_\w+"$', "", relation.sql_query())
    return query, relation.columns, list(map(str, relation.types))


_SCANS = {
    "polars": Scan(
        lambda frame: frame.explain(optimized=False),
        r"Parquet SCAN \[([^\n]+)\]\n",
        lambda frame: frame.serialize(),
        lambda path: require("polars", "frames").scan_parquet(path),
    ),
    "duckdb": Scan(
        lambda relation: relation.sql_query(),
        r"SELECT \* FROM parquet_scan\(\['([^']+)'\], ",
        _relation_plan,
        lambda path: require("duckdb", "files").connect().read_parquet(path),
    ),
    "daft": Scan(
        _daft_plan,
        r".*\* GlobScanOperator\n\|   Glob paths = \[([^\n]+)\]\n",
        _daft_plan,
        lambda path: require("daft", "frames").read_parquet(path),
    ),
}


def gathered(batches: Iterable[Any], batch_rows: int = BATCH_ROWS) -> Iterator[Any]:
    """Put small Arrow batches together, without a copy, to such as are worth counting."""
    import pyarrow as pa

    small: list[Any] = []
    total = 0
    for batch in batches:
        small.append(batch)
        total += len(batch)
        if total >= batch_rows:
            yield pa.Table.from_batches(small)
            small, total = [], 0
    if small:
        yield pa.Table.from_batches(small)
