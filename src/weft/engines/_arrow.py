"""Parquet and Arrow files through pyarrow: text stays the dictionary it is stored as."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft._optional import require
from weft.engines._source import Source, family


def open_arrow(path: Path, kind: str, types: Mapping[str, str]) -> Source:
    """Open a Parquet or Arrow IPC file."""
    if types:
        raise ValueError(
            f"{path}: its columns have types already; leave {next(iter(types))!r} as it is, or "
            "cast it in SQL"
        )
    return _parquet(path) if kind == "parquet" else _ipc(path)


def _parquet(path: Path) -> Source:
    parquet = require("pyarrow.parquet", "frames")
    with parquet.ParquetFile(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    types = {field.name: str(field.type) for field in schema}
    words = [name for name, kind in types.items() if family(kind) == "text"]

    def stream(columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        wanted = [name for name in words if name in columns]
        with parquet.ParquetFile(path, read_dictionary=wanted) as file:
            yield from file.iter_batches(batch_rows, columns=list(columns))

    return Source(str(path), types, stream, n_rows)


def _ipc(path: Path) -> Source:
    arrow = require("pyarrow", "frames")
    with arrow.memory_map(str(path)) as file:
        schema = _reader(arrow, file).schema

    def stream(columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        with arrow.memory_map(str(path)) as file:
            reader = _reader(arrow, file)
            count = getattr(reader, "num_record_batches", None)
            found = reader if count is None else map(reader.get_batch, range(count))
            for batch in found:
                yield from sliced(batch.select(list(columns)), batch_rows)

    return Source(str(path), {field.name: str(field.type) for field in schema}, stream)


def _reader(arrow: Any, file: Any) -> Any:
    """Open the file format, or else the stream format."""
    try:
        return arrow.ipc.open_file(file)
    except arrow.ArrowInvalid:
        file.seek(0)
        return arrow.ipc.open_stream(file)


def sliced(batch: Any, batch_rows: int) -> Iterator[Any]:
    """Yield a batch, or a table, in parts of at most so many rows."""
    for start in range(0, batch.num_rows, batch_rows):
        yield batch.slice(start, batch_rows)
