"""Frames: rows in memory, lazy frames, DuckDB relations, Arrow readers and iterators of frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from tabweave.engines.duck import (
    connect,
    described,
    query_batches,
    quoted,
    relation_batches,
    select,
)
from tabweave.engines.source import IN_MEMORY, Source, naming
from tabweave.rows.frames import columns_of


def open_relation(relation: Any) -> Source:
    """Return a DuckDB relation as a source."""
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))

    def stream(columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        wanted = ", ".join(map(quoted, columns))
        with naming("DuckDB relation"):
            yield from relation_batches(relation.project(wanted), batch_rows)

    return Source("DuckDB relation", types, stream, shared=True)


def open_sql(query: str) -> Source:
    """Return SQL text, run by DuckDB over files, as a source."""
    connection = connect()
    place = f"SQL {' '.join(query.split())!r}"
    inner = f"({query.strip().rstrip(';')})"
    with naming(place):
        types = described(connection, f"SELECT * FROM {inner}")

    def stream(columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        with naming(place):
            yield from query_batches(connection, select(columns, inner, {}), batch_rows)

    return Source(place, types, stream)


def open_lazy(frame: Any) -> Source:
    """Return a polars lazy frame as a source; it is collected in batches."""
    names = frame.collect_schema().names()

    def stream(columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        part = frame.select(list(columns))
        with naming("polars lazy frame"):
            if hasattr(part, "collect_batches"):
                yield from part.collect_batches(chunk_size=batch_rows)
            else:
                yield part.collect()

    return Source("polars lazy frame", dict.fromkeys(names, ""), stream)


def open_reader(reader: Any) -> Source:
    """Return an Arrow reader or dataset as a source."""
    types = {field.name: str(field.type) for field in reader.schema}
    repeats = hasattr(reader, "to_batches")

    def stream(columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        with naming("Arrow reader"):
            if repeats:
                yield from reader.to_batches(columns=list(columns), batch_size=batch_rows)
            else:
                yield from (batch.select(list(columns)) for batch in reader)

    return Source("Arrow reader", types, stream, repeats=repeats, shared=not repeats)


def open_frame(frame: Any) -> Source:
    """Return rows in memory as a source of one batch."""
    names, cells, n_rows = columns_of(frame)
    names = [f"x{i}" for i in range(len(cells))] if names is None else names
    by_name = dict(zip(names, cells, strict=True))

    def stream(columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        # As it is when it is whole: an array then stays without names.
        yield frame if list(columns) == names else {name: by_name[name] for name in columns}

    return Source(IN_MEMORY, dict.fromkeys(names, ""), stream, n_rows)


def open_iterator(frames: Iterator[Any]) -> Source:
    """Return an iterator of frames as a source, to be read once."""
    first = next(frames, None)
    if first is None:
        raise ValueError("the iterator is empty; it must give frames of rows")
    names, cells, _ = columns_of(first)
    names = [f"x{i}" for i in range(len(cells))] if names is None else names

    def stream(columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        for frame in chain([first], frames):
            yield from open_frame(frame).stream(columns, batch_rows)

    return Source("the frames", dict.fromkeys(names, ""), stream, repeats=False, shared=True)
