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

from weft.engines import _arrow, _duck, _text_files
from weft.engines._source import BATCH_ROWS, Source, family, has_arrow, naming
from weft.table import Table

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
            raise FileNotFoundError(f"{path} is a folder without a file that weft reads")
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
            f"{path}: its name does not say what it is; weft reads files that end in "
            f"{', '.join(_FORMATS)} (text also with .gz behind that)"
        )
    with naming(str(path)):
        with open(path, "rb"):
            pass  # an unreadable file is the system's own error, before any library's
        file = _duck.text(str(path))
        if kind == "csv":
            return _text_files.open_csv(path, types)
        if kind == "json":
            return _text_files.open_query(path, f"read_json({file}, sample_size=-1)", types)
        if kind == "arrow" or (engine != "duckdb" and has_arrow() and not types):
            return _arrow.open_arrow(path, kind, types)
        return _text_files.open_query(path, f"read_parquet({file})", types)


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
