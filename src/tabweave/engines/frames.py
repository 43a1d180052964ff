"""Frames: rows in memory, lazy frames, DuckDB relations, Arrow readers and iterators of frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from tabweave.engines.duck import relation_batches
from tabweave.engines.source import Source
from tabweave.io.files import sql_name
from tabweave.rows.frames import columns_of


class FrameSource(Source):
    """Rows in memory: one batch."""

    in_memory = True

    def __init__(self, frame: Any) -> None:
        names, cells, n_rows = columns_of(frame)
        names = [f"x{i}" for i in range(len(cells))] if names is None else names
        super().__init__("the rows", dict.fromkeys(names, ""), n_rows)
        self.frame = frame
        self.cells = dict(zip(names, cells, strict=True))

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        yield self.collect(columns)

    def collect(self, columns: Sequence[str]) -> Any:
        """Return the rows as they are if all columns are wanted: an array then stays one."""
        whole = list(columns) == list(self.types)
        return self.frame if whole else {name: self.cells[name] for name in columns}


class IteratorSource(Source):
    """An iterator of frames, to be read once."""

    repeats = False
    shared = True

    def __init__(self, frames: Iterator[Any]) -> None:
        first = next(frames, None)
        if first is None:
            raise ValueError("the iterator is empty; it must give frames of rows")
        super().__init__("the frames", FrameSource(first).types)
        self.frames = chain([first], frames)

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        for frame in self.frames:
            yield FrameSource(frame).collect(columns)


class LazySource(Source):
    """A polars lazy frame, collected in batches."""

    def __init__(self, frame: Any) -> None:
        super().__init__("polars lazy frame", dict.fromkeys(frame.collect_schema().names(), ""))
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

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        part = self.relation.project(", ".join(map(sql_name, columns)))
        return relation_batches(part, batch_rows)


class ReaderSource(Source):
    """An Arrow dataset, or a reader, to be read once."""

    def __init__(self, reader: Any) -> None:
        super().__init__("Arrow reader", {field.name: str(field.type) for field in reader.schema})
        self.reader = reader
        self.repeats = hasattr(reader, "to_batches")
        self.shared = not self.repeats

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        if self.repeats:
            yield from self.reader.to_batches(columns=list(columns), batch_size=batch_rows)
        else:
            yield from (batch.select(list(columns)) for batch in self.reader)
