"""Files: CSV, JSON, Parquet and Arrow, one or many, larger than memory if need be.

Parquet and Arrow are read by pyarrow, text columns as the dictionaries they are stored as; CSV and
JSON, and Parquet where pyarrow is absent, by DuckDB. A CSV file starts with its names. Its columns
are whole numbers, numbers or text as *all* of its cells allow, unless ``columns`` gives
them a type: nothing else is guessed, so a date stays the text it is, and yes and no stay words.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tabweave._compat import require
from tabweave.engines.duck import open_csv, open_query
from tabweave.engines.duck import text as duck_text
from tabweave.engines.source import BATCH_ROWS, Source, family, has_arrow, naming
from tabweave.rows.table import Table

_FORMATS = {
    ".parquet": "parquet", ".pq": "parquet",
    ".csv": "csv", ".tsv": "csv", ".txt": "csv",
    ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow",
}  # fmt: skip
_COMPRESSED = ".gz"


def open_files(
    source: Any,
    types: Mapping[str, str],
    columns: Sequence[str] | None = None,
    engine: str = "auto",
) -> Source:
    """Return a path, glob, folder or list of them as one source.

    Files must agree on ``columns`` (by default, on all): their names, and what they hold.
    """
    files = [_open(path, types, engine) for path in expand(source)]
    found = _agreed(files, columns)
    counts = [file.n_rows for file in files]

    def stream(columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        for file in files:
            with naming(file.place):
                yield from file.stream(columns, batch_rows)

    known = None if None in counts else sum(c for c in counts if c is not None)
    place = files[0].place if len(files) == 1 else f"{files[0].place} and {len(files) - 1} more"
    return Source(place, found, stream, known)


def expand(source: Any) -> list[Path]:
    """Return the files that a path, glob, folder or list of them means, in order of name."""
    given = source if isinstance(source, list | tuple) else [source]
    if not given:
        raise ValueError("the list of files is empty")
    paths: list[Path] = []
    for item in given:
        paths.extend(_expand_one(os.fspath(item)))
    return paths


def _expand_one(text: str) -> list[Path]:
    if "://" in text:
        scheme = text.partition("://")[0]
        raise ValueError(
            f"{scheme}://... is no file: for a database give (address, query); what lies on the "
            "web or in a bucket, fetch first, or read by SQL on a DuckDB connection of yours"
        )
    path = Path(text).expanduser()
    if path.is_dir():
        inside = sorted(p for p in path.iterdir() if not p.name.startswith((".", "_")))
        parted = [p for p in inside if p.is_dir()]
        if parted:
            raise ValueError(
                f"{path} has folders in it ({parted[0].name}); give a glob, or SQL: "
                f"\"SELECT * FROM read_parquet('{path}/**/*.parquet', hive_partitioning=true)\""
            )
        found = [p for p in inside if _format(p)]
        if not found:
            raise FileNotFoundError(f"{path} is a folder without a file that tabweave reads")
        return found
    if path.exists():
        return [path]
    if glob.has_magic(text):
        found = [Path(p) for p in sorted(glob.glob(str(path), recursive=True)) if Path(p).is_file()]
        if found:
            return found
        raise FileNotFoundError(f"no file matches {text!r} (from {Path.cwd()})")
    raise FileNotFoundError(f"there is no file {text!r} (from {Path.cwd()})")


def looks_like_file(item: Any) -> bool:
    """Tell a path in a list of them from a text that is something else."""
    if not isinstance(item, str | os.PathLike):
        return False
    path = Path(item)
    return isinstance(item, os.PathLike) or _format(path) is not None or path.exists()


def _format(path: Path) -> str | None:
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] == _COMPRESSED:
        suffixes.pop()
    return _FORMATS.get(suffixes[-1]) if suffixes else None


def _open(path: Path, types: Mapping[str, str], engine: str) -> Source:
    kind = _format(path)
    if kind is None:
        raise ValueError(
            f"{path}: its name does not say what it is; tabweave reads files that end in "
            f"{', '.join(_FORMATS)} (text also with .gz behind that)"
        )
    with naming(str(path)):
        with open(path, "rb"):
            pass  # an unreadable file is the system's own error, before any library's
        file = duck_text(str(path))
        if kind == "csv":
            return open_csv(path, types)
        if kind == "json":
            return open_query(path, f"read_json({file}, sample_size=-1)", types)
        if kind == "arrow" or (engine != "duckdb" and has_arrow() and not types):
            return open_arrow(path, kind, types)
        return open_query(path, f"read_parquet({file})", types)


def _agreed(files: Sequence[Source], columns: Sequence[str] | None) -> dict[str, str]:
    """Return the types that all files have; refuse files that differ in what they hold."""
    out = dict(files[0].types)
    for file in files[1:]:
        for name in columns or dict.fromkeys([*out, *file.types]):
            if name not in file.types or name not in out:
                has, lacks = (files[0], file) if name in out else (file, files[0])
                raise ValueError(
                    f"{lacks.place}: column {name!r} is missing, which {has.place} has; name the "
                    "columns that all files have"
                )
            if family(out[name]) == family(file.types[name]):
                continue
            if _is_empty(file, name):
                continue
            if not all(_is_empty(f, name) for f in files[: files.index(file)]):
                _refuse(name, file, next(f for f in files if f.types[name] == out[name]))
            out[name] = file.types[name]
    return out


def _is_empty(file: Source, name: str) -> bool:
    """Tell whether a column is missing throughout: then its type says nothing."""
    if family(file.types[name]) == "nothing":
        return True
    return all(set(Table.of(b)[name].labels) <= {None} for b in _words(file, name))


def _words(file: Source, name: str) -> Iterator[Any]:
    if family(file.types[name]) == "text":
        yield from file.stream([name], BATCH_ROWS)
    else:
        yield {name: ["something"]}


def _refuse(name: str, file: Source, other: Source) -> None:
    raise ValueError(
        f"{file.place}: column {name!r} is {file.types[name]}, but {other.types[name]} in "
        f"{other.place}; write it as one type in all files, or, in text files, say which: "
        f"columns={{{name!r}: 'VARCHAR', ...}}"
    )


# -- Parquet and Arrow files through pyarrow: text stays the dictionary it is stored as


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
