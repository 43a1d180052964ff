"""Which files may be opened: inside the start folder or dropped here, tables only, of sane size.

Names and sizes are looked at by the server; a file itself is read in a child process, by
:func:`first_rows` and the jobs. A file has a stamp that changes when it is written, so that nothing
is answered from an older one.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tabweave._compat import require
from tabweave.apps.report.html import cell
from tabweave.apps.report.reading import MAX_REPORT_COLUMNS
from tabweave.columns.table import Table
from tabweave.engines.opening import open_source
from tabweave.engines.source import Source
from tabweave.io.files import hold, is_abandoned, unpack

FORMATS = (".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson", ".xlsx")
ENCODINGS = ("utf-8", "cp1252", "utf-16", "cp1250", "cp1251", "mac-roman", "shift_jis", "gb18030",
             "big5", "euc-kr")  # fmt: skip
MAX_FILE_BYTES = 500 * 2**20  # Bytes of an upload, and of what a compressed file unpacks to.
_PREFIX, _ALIVE = "tabweave-studio-", "alive"


class Refused(ValueError):
    """A file or a path that is not to be opened, with the reason."""


class TooLarge(Refused):
    """An upload above the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"uploads end at {size_of(limit)} here; put the file into the folder the studio was "
            "started in and open it by its path"
        )


class Changed(Refused):
    """A file that was written again since it was looked at."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} was written again since; look at it anew")


@dataclass(frozen=True)
class OpenFile:
    """A file that was let in, and what it is called on the page."""

    path: Path
    name: str
    stamp: tuple[int, ...]  # before it was read
    encoding: str | None = None  # of its text, as the user says; else as it looks

    @property
    def is_current(self) -> bool:
        """Whether the file is still the one that was let in."""
        return stamp_of(self.path) == self.stamp

    def check_current(self) -> None:
        """Raise Changed if the file was written again."""
        if not self.is_current:
            raise Changed(self.name)


def stamp_of(path: Path) -> tuple[int, ...]:
    """What changes whenever a file is written or replaced; empty if it is gone."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def size_of(n_bytes: int) -> str:
    """A number of bytes as people read it."""
    return f"{n_bytes / 2**20:,.0f} MB" if n_bytes >= 2**20 else f"{n_bytes:,} bytes"


def suffix_of(name: str) -> str:
    """The format of a file, whether compressed by gzip or not; Refused unless it is a table."""
    suffix = _suffix(name)
    if suffix not in FORMATS:
        raise Refused(
            f"expected a table that ends in {', '.join(FORMATS)} (text files also followed by "
            f".gz), got {name!r}"
        )
    return suffix


def _suffix(name: str) -> str:
    return Path(name.lower().removesuffix(".gz")).suffix


def inside(root: Path, path: str) -> Path:
    """A file of the start folder; links that lead out of it are followed and refused."""
    if "\x00" in path:
        raise Refused("expected a path without NUL characters")
    try:
        file = (root / path).resolve()
        exists = file.is_file()
    except (OSError, RuntimeError):  # a name too long, a circle of links
        file, exists = root, False
    if not file.is_relative_to(root):
        raise Refused(f"{path!r} lies outside the folder the studio was started in")
    if not exists:
        raise Refused(f"file not found in the folder the studio was started in: {path!r}")
    suffix_of(file.name)
    return file


def listed(root: Path, max_files: int = 500) -> list[dict[str, Any]]:
    """The tables of the start folder and of the folders in it, with their sizes."""
    paths = (path for pattern in ("*", "*/*") for path in sorted(root.glob(pattern)))
    files = (
        {"path": str(path.relative_to(root)), "size": path.stat().st_size}
        for path in paths
        if _suffix(path.name) in FORMATS
        and not any(part.startswith(".") for part in path.relative_to(root).parts)
        and path.is_file()
        and path.resolve().is_relative_to(root)
    )
    return list(islice(files, max_files))


@dataclass
class Holding:
    """A folder of temporary files that lasts as long as the process that holds it.

    Folders whose holder was killed are removed when the next one is made.
    """

    folder: Path
    _alive: Any

    @classmethod
    def begin(cls) -> Holding:
        """Make a folder, after those that nobody holds any more were swept away."""
        for old in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            if is_abandoned(old / _ALIVE):
                shutil.rmtree(old, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        alive = (folder / _ALIVE).open("wb")
        hold(alive)
        return cls(folder, alive)

    def end(self) -> None:
        """Remove the folder."""
        self._alive.close()
        shutil.rmtree(self.folder, ignore_errors=True)


# -- in a child process --------------------------------------------------------------------------


def open_table(path: Path, encoding: str | None, folder: Path, max_bytes: int) -> Source:
    """A file as a source, after its size was checked; copies of it go into the folder."""
    if encoding is not None and encoding not in ENCODINGS:
        raise Refused(f"expected an encoding, one of {', '.join(ENCODINGS)}, got {encoding!r}")
    if not path.stat().st_size:
        raise Refused("it is empty")
    if path.suffix.lower() == ".gz":
        unpack(path, Path(os.devnull), max_bytes)
    elif path.suffix.lower() == ".parquet":
        _check_parquet(path)
    if suffix_of(path.name) in (".csv", ".tsv"):
        _check_first_line(path)
    tempfile.tempdir = str(folder)  # removed by the server if this process is killed
    source = open_source(path, encoding=encoding)
    _check_width(len(source.types))
    return source


def first_rows(path: Path, encoding: str | None, folder: Path, max_bytes: int) -> dict[str, Any]:
    """The columns of a table, its first rows as text, and the encoding of its text."""
    source = open_table(path, encoding, folder, max_bytes)
    n_rows, n_columns = 6, 40
    first = next(source.batches(list(source.types), n_rows), None)
    table = None if first is None else Table.of(first, rules="all")
    if table is None or not table.n_rows:
        raise Refused("it has columns but no rows")
    cells = [data for _, data in islice(table, n_columns)]
    return {
        "columns": list(table.schema.names),
        "kinds": [column.kind for column in table.schema.columns],
        "preview": [[cell(data, row) for data in cells] for row in range(table.n_rows)],
        "encoding": source.encoding,
    }


def _check_first_line(path: Path, max_bytes: int = 16 * 2**20) -> None:
    """Refuse text of very many columns, which takes minutes to open, whatever its encoding."""
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        line = file.readline(max_bytes + 1)
    if len(line) > max_bytes:
        raise Refused(f"the first line is longer than {size_of(max_bytes)}")
    _check_width(1 + max(map(line.count, (b",", b";", b"\t", b"|"))))


def _check_width(width: int) -> None:
    if width > MAX_REPORT_COLUMNS:
        raise Refused(
            f"it has {width:,} columns; the studio shows up to {MAX_REPORT_COLUMNS:,}: choose "
            "some, or use the library"
        )


def _check_parquet(path: Path, max_cells: int = 200_000_000) -> None:
    """Refuse a Parquet file, which may hold far more than its size tells, before it is read."""
    duckdb = require("duckdb", "files")
    query = (
        "SELECT num_columns, num_rows, total, cells FROM (SELECT count(DISTINCT path_in_schema) AS "
        "num_columns, coalesce(sum(total_uncompressed_size), 0) AS total, "
        "coalesce(sum(num_values), 0) AS cells FROM parquet_metadata($p))"
        ", (SELECT num_rows FROM parquet_file_metadata($p))"
    )
    with duckdb.connect() as connection:
        try:
            row: Any = connection.execute(query, {"p": str(path)}).fetchone()
        except duckdb.Error as error:
            raise Refused(f"expected a Parquet file: {str(error).splitlines()[0]}") from None
    width, n_rows, n_bytes, n_cells = row
    _check_width(width)
    n_cells = max(n_cells, n_rows * max(width, 1))
    max_cells = min(max_cells, 100_000 * max(n_rows, 1))  # a cell may be a list
    if n_bytes > 8 * MAX_FILE_BYTES or n_cells > max_cells:
        raise Refused(
            f"it decompresses to {n_rows:,} rows of {n_cells:,} values, {size_of(n_bytes)}: too "
            "much for a page; use the library"
        )
