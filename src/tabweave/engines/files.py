"""Files: CSV, JSON, Parquet and Arrow, one or many, larger than memory if need be.

Parquet and Arrow are read by pyarrow, text columns as the dictionaries they are stored as; CSV and
JSON, and Parquet where pyarrow is absent, by DuckDB.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tabweave._compat import require, warn_caller
from tabweave.columns.table import Table
from tabweave.engines.duck import CsvSource, JsonSource, QuerySource
from tabweave.engines.frames import FrameSource
from tabweave.engines.source import Source, errors_naming, family, has_arrow, n_rows_of, with_fields
from tabweave.io.dialects import sql_path
from tabweave.io.files import (
    PACKED,
    as_utf8,
    encoding_of,
    other_format,
    packed_name,
    read_book,
    unpack,
)

_FORMATS = {
    ".parquet": "parquet", ".pq": "parquet",
    ".csv": "csv", ".tsv": "csv", ".txt": "csv",
    ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow",
}  # fmt: skip
_SHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
_DATABASES = {".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".duckdb": "duckdb"}
_ARCHIVES = (".7z", ".tar", ".tgz")
# What pandas reads, and tabweave does not.
_PANDAS_READERS = {
    ".dta": "read_stata", ".sav": "read_spss", ".sas7bdat": "read_sas", ".xpt": "read_sas",
    ".orc": "read_orc", ".pkl": "read_pickle", ".h5": "read_hdf", ".html": "read_html",
}  # fmt: skip
# What lies in the folder of a table whose log says which rows are still there.
_TABLE_FORMATS = {
    "_delta_log": ("Delta", "pass deltalake.DeltaTable(folder)"),
    "../metadata/*.metadata.json": ("Iceberg", "pass a table of pyiceberg, or its scan"),
    ".hoodie": ("Hudi", "read it by an engine that knows Hudi, such as Spark"),
}
_PARTITION_KEY = re.compile(r"[^=]+=.*")  # a folder of a partition
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_MISSING_KEY = "__HIVE_DEFAULT_PARTITION__"  # how a missing value is written


def open_files(
    source: Any,
    types: Mapping[str, str],
    columns: Sequence[str] | None = None,
    engine: str = "auto",
    encoding: str | None = None,
) -> Source:
    """A path, glob, folder or list of them as one source.

    Files must agree on ``columns`` (by default, on all): their names, and what they hold. The
    names of the folders of a partitioned one (``year=2013``) are columns, too.
    """
    paths = expand(source)
    opened = (with_fields(open_file(path, engine, encoding)) for path in paths)
    files = [
        PartitionSource(file, keys) if keys else file
        for file, keys in zip(opened, _partitions(paths, source), strict=True)
    ]
    if types:
        files = [file.retyped(types) for file in files]
    return files[0] if len(files) == 1 else FilesSource(files, columns)


def open_file(path: Path, engine: str = "auto", encoding: str | None = None) -> Source:
    """One file as a source; its text has an encoding, found by trial if none is given."""
    kind = _format(path)
    if path.suffix.lower() in _SHEETS:
        return BookSource(path)
    if database := _DATABASES.get(path.suffix.lower()):
        address = f"{database}:///{path.as_posix()}"
        shell = "sqlite3" if database == "sqlite" else database
        raise ValueError(
            f"{path}: expected a file of text, Parquet or Arrow, got a database; in Python pass "
            f"({address!r}, 'SELECT * FROM a_table'), in a shell write the table as CSV first, "
            f"e.g. by {shell} -csv -header {path.name} 'SELECT * FROM a_table'"
        )
    if kind is None:
        raise ValueError(
            f"{path}: expected a file that ends in "
            f"{', '.join(_FORMATS)} (text files also followed by {', '.join(PACKED)})"
            f"{_remedy(path)}"
        )
    with errors_naming(str(path)):
        with open(path, "rb"):
            pass  # an unreadable file is the system's own error, before any library's
        if kind in _TEXT_SOURCES:
            return _open_text(path, _TEXT_SOURCES[kind], encoding)
        if kind == "arrow":
            return IpcSource(path)
        if engine != "duckdb" and has_arrow():
            return ParquetSource(path)
        return _parquet_by_duckdb(path)


TextSource = type[CsvSource] | type[JsonSource]
_TEXT_SOURCES: dict[str, TextSource] = {"csv": CsvSource, "json": JsonSource}


def _open_text(path: Path, source: TextSource, encoding: str | None) -> Source:
    """Open a file of text, or a copy of it: unpacked, in UTF-8."""
    packed = path.suffix.lower() in PACKED
    failed = None
    if encoding is None and (not packed or path.suffix.lower() == ".gz"):
        try:
            opened = source.open(path)
            opened.encoding = "utf-8"
            return opened
        except ValueError as error:
            if not packed and (other_format(path) or encoding_of(path) == "utf-8"):
                raise
            failed = error
    folder = Path(tempfile.mkdtemp(prefix="tabweave-"))
    try:
        return _open_copy(path, source, encoding, folder, failed)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _open_copy(
    path: Path,
    source: TextSource,
    encoding: str | None,
    folder: Path,
    failed: Exception | None,
) -> Source:
    """Open a copy of a file in a folder, which goes when its source does."""
    copy, suffix = path, path.suffix
    if path.suffix.lower() in PACKED:
        suffix = Path(packed_name(path)).suffix
        copy = folder / f"packed{suffix}"
        unpack(path, copy)
    used = encoding or encoding_of(copy)
    if failed is not None and used == "utf-8":
        raise failed
    if used != "utf-8":
        text = folder / f"text{suffix}"
        as_utf8(copy, text, used)
        copy = text
    if encoding is None and used not in ("utf-8", "utf-16"):
        warn_caller(
            f"{path}: its text is not UTF-8 and was read as {used}; if letters look wrong, say "
            "what it is: open_source(path, encoding='cp1250'), --encoding cp1250 in a shell"
        )
    with _errors_called(path, copy):
        opened = source.open(copy)
    opened.name, opened.paths, opened.encoding = str(path), (copy, path), used
    weakref.finalize(opened.connection, shutil.rmtree, folder, ignore_errors=True)
    return opened


@contextmanager
def _errors_called(path: Path, copy: Path) -> Iterator[None]:
    """Let errors call a copy by the name of its file."""
    try:
        yield
    except Exception as error:
        error.args = tuple(
            arg.replace(str(copy), str(path)) if isinstance(arg, str) else arg for arg in error.args
        )
        raise


class BookSource(FrameSource):
    """The first sheet of a workbook; its cells have types."""

    def __init__(self, path: Path) -> None:
        super().__init__(read_book(path))
        self.name, self.paths = str(path), (path,)


def _remedy(path: Path) -> str:
    """What to do with a file of a format that is not read."""
    suffix = path.suffix.lower()
    if suffix in (*_ARCHIVES, *PACKED):
        return "; unpack it first"
    reader = _PANDAS_READERS.get(suffix)
    return f"; read it by pandas.{reader}({path.name!r}) and pass the frame" if reader else ""


class FilesSource(Source):
    """Many files, one after the other."""

    def __init__(self, files: Sequence[Source], columns: Sequence[str] | None = None) -> None:
        n_rows = [file.n_rows for file in files]
        total = None if None in n_rows else sum(n for n in n_rows if n is not None)
        super().__init__(
            f"{files[0].name} and {len(files) - 1} more", _agreed(files, columns), total
        )
        self.files = list(files)
        self.columns = columns
        self.paths = tuple(path for file in files for path in file.paths)
        self.is_text = all(file.is_text for file in files)
        self.guessed = all(file.guessed for file in files)
        self.mixed = any(file.mixed for file in files)

    def retyped(self, types: Mapping[str, str]) -> FilesSource:
        """The same files, some of their columns read as another type."""
        return FilesSource([file.retyped(types) for file in self.files], self.columns)

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        for file in self.files:
            yield from file.batches(columns, batch_rows)


class PartitionSource(Source):
    """A file of a partitioned folder, whose path holds columns: ``year=2013/rows.parquet``.

    Parameters
    ----------
    file : Source
        The file; what it says of the same columns itself does not count.
    keys : mapping of str to int, str or None
        The columns of its path, and the value that all of its rows have.
    """

    def __init__(self, file: Source, keys: Mapping[str, Any]) -> None:
        own = {name: kind for name, kind in file.types.items() if name not in keys}
        super().__init__(file.name, own | {n: _key_type(v) for n, v in keys.items()}, file.n_rows)
        self.file, self.keys, self.first = file, dict(keys), next(iter(own), None)
        self.paths, self.is_text, self.guessed = file.paths, file.is_text, file.guessed
        self.mixed = file.mixed

    def retyped(self, types: Mapping[str, str]) -> PartitionSource:
        """The same file, some of its columns read as another type."""
        others = {name: kind for name, kind in types.items() if name not in self.keys}
        keys = {n: _as_type(v, types[n]) if n in types else v for n, v in self.keys.items()}
        return PartitionSource(self.file.retyped(others) if others else self.file, keys)

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        read = [name for name in columns if name not in self.keys]
        if not read and self.first is None:
            raise ValueError(
                f"{self.name}: expected a column besides those from folder names, got none"
            )
        for batch in self.file.batches(read or [str(self.first)], batch_rows):
            n = n_rows_of(batch)
            parts = [_repeated(self.keys[c], n) if c in self.keys else batch[c] for c in columns]
            if isinstance(batch, dict):
                yield dict(zip(columns, parts, strict=True))
            else:
                yield type(batch).from_arrays(parts, names=list(columns))


def _key_type(value: Any) -> str:
    return "null" if value is None else "BIGINT" if isinstance(value, int) else "VARCHAR"


def _as_type(value: Any, kind: str) -> Any:
    """The value of a folder as text, or as the whole number that it must then be."""
    return value if value is None else int(value) if family(kind) == "number" else str(value)


def _repeated(value: Any, n: int) -> Any:
    """A column of one value."""
    if not has_arrow():
        return [value] * n
    arrow = require("pyarrow", "frames")
    if value is None:
        return arrow.nulls(n)
    if not isinstance(value, str):
        return arrow.repeat(arrow.scalar(value, arrow.int64()), n)
    codes = arrow.repeat(arrow.scalar(0, arrow.int32()), n)
    return arrow.DictionaryArray.from_arrays(codes, arrow.array([value]))


class ParquetSource(Source):
    """A Parquet file by pyarrow: text stays the dictionary it is stored as.

    Ordered categories stay so if the file has the list of them; one that was written without
    dictionaries has not, and they are in no order.
    """

    def __init__(self, path: Path) -> None:
        with require("pyarrow.parquet", "frames").ParquetFile(path) as file:
            types = _types_of(file.schema_arrow, path)
            super().__init__(str(path), types, file.metadata.num_rows)
            ordered = [name for name, kind in types.items() if kind.endswith("ordered=1>")]
            orderless = _without_dictionary(file.metadata, ordered)
        self.paths = (path,)
        self._categories = {n for n, kind in types.items() if kind.startswith("dictionary<")}
        self._categories -= orderless
        for name in sorted(orderless):
            warn_caller(
                f"{path}: column {name!r} holds ordered categories, but the file does not hold "
                f"their order; "
                "write it with dictionaries, or declare the column ordinal, with its levels"
            )

    def retyped(self, types: Mapping[str, str]) -> Source:
        """The same file by DuckDB, which casts."""
        return _parquet_by_duckdb(self.paths[0]).retyped(types)

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        texts = [name for name in columns if family(self.types[name]) == "text"]
        words = [name for name in texts if name not in self._categories]
        opened = require("pyarrow.parquet", "frames").ParquetFile
        # What is buffered ahead is kept until the file is closed: in the end, all of it.
        with opened(self.paths[0], read_dictionary=words, pre_buffer=False) as file:
            yield from file.iter_batches(batch_rows, columns=list(columns))


def _types_of(schema: Any, path: Path) -> dict[str, str]:
    """The types of the columns of a file, which must have different names."""
    types = {field.name: str(field.type) for field in schema}
    if len(types) < len(schema):
        twice = next(name for name in types if schema.names.count(name) > 1)
        raise ValueError(
            f"{path}: expected columns of different names, got {twice!r} twice; rename one"
        )
    return types


def _without_dictionary(metadata: Any, columns: Sequence[str]) -> set[str]:
    """Those columns of a Parquet file of which some part has no list of its values."""
    if not columns:
        return set()
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    parts = [group.column(i) for group in groups for i in range(group.num_columns)]
    lacking = {part.path_in_schema for part in parts if not part.has_dictionary_page}
    return lacking.intersection(columns)


def _parquet_by_duckdb(path: Path) -> QuerySource:
    source = QuerySource(str(path), f"read_parquet({sql_path(path)}, hive_partitioning=false)")
    source.paths = (path,)
    return source


class IpcSource(Source):
    """An Arrow IPC file by pyarrow."""

    def __init__(self, path: Path) -> None:
        arrow = require("pyarrow", "frames")
        with arrow.memory_map(str(path)) as file:
            schema = _ipc_reader(arrow, file).schema
        super().__init__(str(path), _types_of(schema, path))
        self.paths = (path,)

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        arrow = require("pyarrow", "frames")
        with arrow.memory_map(str(self.paths[0])) as file:
            reader = _ipc_reader(arrow, file)
            count = getattr(reader, "num_record_batches", None)
            batches = reader if count is None else map(reader.get_batch, range(count))
            for number, batch in enumerate(batches):
                selected = batch.select(list(columns))
                self._check(selected, number)
                for start in range(0, batch.num_rows, batch_rows):
                    yield selected.slice(start, batch_rows)

    def _check(self, batch: Any, number: int) -> None:
        """Raise for a batch whose offsets or codes point outside: compiled code trusts them."""
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.validate(full=True)
                if hasattr(column, "dictionary"):
                    column.dictionary.validate(full=True)
            except require("pyarrow", "frames").ArrowInvalid as error:
                raise ValueError(
                    f"{self.name} is damaged: column {name!r} of its batch {number}: {error}"
                ) from error


def _ipc_reader(arrow: Any, file: Any) -> Any:
    """Open the file format, or else the stream format."""
    try:
        return arrow.ipc.open_file(file)
    except arrow.ArrowInvalid:
        file.seek(0)
        return arrow.ipc.open_stream(file)


def expand(source: Any) -> list[Path]:
    """The files that a path, glob, folder or list of them means, in order of name."""
    items = source if isinstance(source, list | tuple) else [source]
    if not items:
        raise ValueError("expected at least one file, got an empty list")
    paths: list[Path] = []
    for item in items:
        paths.extend(_expand_one(os.fspath(item)))
    return paths


def _expand_one(text: str) -> list[Path]:
    if not text:
        raise ValueError("expected the name of a file, got an empty text")
    if "://" in text:
        scheme = text.partition("://")[0]
        raise ValueError(
            f"expected a file, got {scheme}://...: for a database give (address, query); "
            f"download files from the web or a bucket first, or read them by SQL on your own "
            f"DuckDB connection"
        )
    path = Path(text).expanduser()
    if path.is_dir():
        _check_no_log(path)
        return _expand_folder(path)
    if path.exists():
        _check_no_log(path.parent)
        return [path]
    if glob.has_magic(text):
        files = [Path(p) for p in sorted(glob.glob(str(path), recursive=True)) if Path(p).is_file()]
        for folder in {file.parent for file in files}:
            _check_no_log(folder)
        if files:
            return files
        raise FileNotFoundError(f"no file matches {text!r} (from {Path.cwd()})")
    raise FileNotFoundError(f"file not found: {text!r} (from {Path.cwd()})")


def _check_no_log(folder: Path) -> None:
    """Raise for files of a table format, some rows of which may have been deleted since."""
    folder = folder.absolute()
    for parent in (folder, *folder.parents):
        for pattern, (name, remedy) in _TABLE_FORMATS.items():
            if pattern.startswith("..") and parent.name != "data":
                continue
            if glob.glob(f"{glob.escape(str(parent))}/{pattern}"):
                raise ValueError(
                    f"{parent} belongs to a table of {name}: its files also hold rows that were "
                    f"deleted or replaced; {remedy}"
                )


def _expand_folder(path: Path) -> list[Path]:
    inside = sorted(p for p in path.iterdir() if not p.name.startswith((".", "_")))
    folders = [p for p in inside if p.is_dir()]
    files = [p for p in inside if not p.is_dir() and _format(p)]
    others = [p for p in folders if not _PARTITION_KEY.fullmatch(p.name)]
    if others or (folders and files):
        raise ValueError(
            f"{path} has folders in it ({(others or folders)[0].name}) that are not all partitions "
            "(name=value, without files beside them); give a glob, or a list of files"
        )
    files += [file for folder in folders for file in _expand_folder(folder)]
    if not files:
        raise FileNotFoundError(f"{path} is a folder without a file that tabweave reads")
    return files


def _partitions(paths: Sequence[Path], source: Any) -> list[dict[str, Any]]:
    """The columns that the folders between a given folder and each of its files name.

    Values are whole numbers where all of a column are, written as such (``01`` is text).
    """
    items = source if isinstance(source, list | tuple) else [source]
    roots = [root for item in items if (root := Path(os.fspath(item)).expanduser()).is_dir()]
    keys = [_keys_of(path, roots) for path in paths]
    unnamed = {path.parent for path, columns in zip(paths, keys, strict=True) if not columns}
    if len(unnamed) > 1 and all(_PARTITION_KEY.fullmatch(folder.name) for folder in unnamed):
        first = min(unnamed)
        above = next(
            parent for parent in first.parents if not _PARTITION_KEY.fullmatch(parent.name)
        )
        warn_caller(
            f"{first}: the names of such folders are columns only if the folder above them is "
            f"given, {str(above)!r}"
        )
    texts: dict[str, set[str]] = {}
    for name, value in (pair for columns in keys for pair in columns.items()):
        texts.setdefault(name, set()).update([] if value is None else [value])
    numbers = {name for name, values in texts.items() if all(map(_WHOLE_NUMBER.fullmatch, values))}
    return [
        {n: int(v) if v and n in numbers else v for n, v in columns.items()} for columns in keys
    ]


def _keys_of(path: Path, roots: Sequence[Path]) -> dict[str, str | None]:
    root = next((root for root in roots if root in path.parents), None)
    folders = path.relative_to(root).parts[:-1] if root else ()
    pairs = (map(unquote, name.split("=", 1)) for name in folders)
    return {name: None if value == _MISSING_KEY else value for name, value in pairs}


def looks_like_file(item: Any) -> bool:
    """Tell a path in a list of them from a text that is something else."""
    if not isinstance(item, str | os.PathLike):
        return False
    path = Path(item)
    return isinstance(item, os.PathLike) or _format(path) is not None or path.exists()


def _format(path: Path) -> str | None:
    suffix = path.suffix.lower()
    if suffix not in PACKED:
        return "book" if suffix in _SHEETS else _FORMATS.get(suffix)
    name = packed_name(path) if path.is_file() else path.stem
    form = _FORMATS.get(Path(name).suffix.lower())
    return form if form in _TEXT_SOURCES else None


def _agreed(files: Sequence[Source], columns: Sequence[str] | None) -> dict[str, str]:
    """The types that all files have; refuse files that differ in what they hold."""
    out = dict(files[0].types)
    for file in files[1:]:
        for name in columns or dict.fromkeys([*out, *file.types]):
            if name not in file.types or name not in out:
                has, lacks = (files[0], file) if name in out else (file, files[0])
                raise ValueError(
                    f"{lacks.name}: column {name!r} is missing, which {has.name} has; name the "
                    "columns that all files have"
                )
            if family(out[name]) == family(file.types[name]) or _is_empty(file, name):
                continue
            if not all(_is_empty(f, name) for f in files[: files.index(file)]):
                other = next(f for f in files if f.types[name] == out[name])
                raise ValueError(
                    f"{file.name}: column {name!r} is {file.types[name]}, but {other.types[name]} "
                    f"in {other.name}; write it as one type in all files, or, in text files, say "
                    f"which: columns={{{name!r}: 'VARCHAR', ...}}"
                )
            out[name] = file.types[name]
    return out


def _is_empty(file: Source, name: str) -> bool:
    """Whether a column is missing throughout: then its type says nothing."""
    if family(file.types[name]) == "null":
        return True
    if family(file.types[name]) != "text":
        return False
    return all(set(Table.of(batch)[name].labels) <= {None} for batch in file.batches([name]))
