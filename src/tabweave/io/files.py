"""Files: written whole or not at all; the names in the first line of CSV; names and text in SQL."""

from __future__ import annotations

import csv
import glob
import gzip
import os
import re
import shutil
import time
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

_DELIMITERS = (",", ";", "\t", "|")
_SEPARATOR = re.compile(r"(?i:sep)=(.)\s*").fullmatch  # the first line of some files of Excel
_STALE = 24 * 60 * 60  # seconds after which nobody writes to a temporary file any more


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[Path]:
    """Give a temporary name beside a file, which takes the file's name when the block ends well.

    Readers see the old file or the new one, never a part of it. What was written is on the disk
    before it is renamed; if the block fails, it is removed and the old file stays. A file that was
    there keeps its permissions; a link stays one, and what it leads to is replaced.
    """
    path = Path(os.path.realpath(path))
    remove_leftovers(path, older_than=_STALE)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        yield temporary
        _flush(temporary)
        if path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_leftovers(path: str | PathLike[str], older_than: float = 0.0) -> None:
    """Remove the temporary files of a target whose writer was killed.

    No other may be writing to it, or ``older_than`` says for how many seconds a file must have been
    left alone.
    """
    path = Path(path)
    for part in path.parent.glob(f"{glob.escape(path.name)}.*.part"):
        with suppress(OSError):  # another may have removed it
            if not older_than or time.time() - part.stat().st_mtime > older_than:
                part.unlink()


def _flush(path: Path) -> None:
    file = os.open(path, os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class CsvHeader(NamedTuple):
    """The names of the columns of a CSV file, what separates them, how many lines come before."""

    names: list[str]
    delimiter: str
    lines_before: int


def csv_header(
    path: Path, delimiter: str | None = None, *, longest: int | None = None
) -> CsvHeader:
    """Return the names of the columns of a CSV file, and how they stand in it.

    Parameters
    ----------
    path : Path
        The file, in UTF-8; compressed if its name ends in ``.gz``.
    delimiter : str, optional
        What separates the names; by default the one of ``, ; | TAB`` that is there most often, or
        that a line before them says, as Excel has it: ``sep=;``.
    longest : int, optional
        Refuse a first line of more characters.
    """
    with _opened_text(path) as file:
        line = _record(file, path, longest)
        said = _SEPARATOR(line)
        if said:
            line, delimiter = _record(file, path, longest), delimiter or said[1]
    if not line.strip():
        raise ValueError(
            f"{path}: expected the names of columns in the first line, got an empty line"
        )
    if line.startswith(('{"', '[{"')):
        raise ValueError(f"{path}: expected the names of columns, got JSON; name the file .jsonl")
    if delimiter is None:
        bare = "".join(line.split('"')[::2])  # what stands in quotes separates nothing
        delimiter = max(_DELIMITERS, key=bare.count)
    try:
        names = next(csv.reader(line.splitlines(keepends=True), delimiter=delimiter))
    except csv.Error as error:
        raise ValueError(f"{path}: the first line cannot be read: {error}") from None
    return CsvHeader(names, delimiter, int(said is not None))


_STARTS = {
    b"PAR1": "a Parquet file; let its name end in .parquet",
    b"ARROW1": "an Arrow file; let its name end in .arrow",
    b"\x1f\x8b": "a gzip file; let its name end in .gz",
    b"PK\x03\x04": "a zip file, as workbooks are; unpack it, or save the sheet as CSV",
    b"\x28\xb5\x2f\xfd": "a Zstandard file; unpack it",
    b"BZh": "a bzip2 file; unpack it",
    b"\xfd7zXZ": "an xz file; unpack it",
    b"SQLite format": "a SQLite database; write the table as CSV",
}


@contextmanager
def _opened_text(path: Path) -> Iterator[Any]:
    """Open a file of text, packed or not; raise, by its name, for what is no UTF-8 or no gzip."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        with path.open("rb") as file:
            start = file.read(16)
        for begins, what in _STARTS.items():
            if start.startswith(begins):
                raise ValueError(f"{path}: expected text in UTF-8, got {what}") from None
        raise ValueError(
            f"{path}: expected UTF-8, got byte {error.object[error.start]:#04x}; {in_utf8(start)}"
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: expected a complete gzip file: {error}") from None


def in_utf8(start: bytes = b"") -> str:
    """Return how a file becomes UTF-8, by its first bytes; most that are not are from Windows."""
    written = "cp1252"
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        written = "utf-16"
    elif b"\0" in start[:2]:
        written = "utf-16be" if start[:1] == b"\0" else "utf-16le"
    return f"write the file as UTF-8, e.g. by iconv -f {written} -t utf-8"


def _record(file: Any, path: Path, longest: int | None) -> str:
    """Return the next line of a CSV file, with those that a name in quotes goes on in."""
    limit = -1 if longest is None else longest + 1
    line = file.readline(limit)
    while line.count('"') % 2 and (more := file.readline(limit)):
        line += more
        if longest is not None and len(line) > longest:
            break
    if longest is not None and len(line) > longest:
        raise ValueError(f"{path}: the first line is longer than {longest:,} characters")
    if "\0" in line:
        start = line[:2].encode()
        raise ValueError(f"{path}: expected text in UTF-8, got NUL characters; {in_utf8(start)}")
    return line.rstrip("\r\n")


def sql_name(name: str, mark: str = '"') -> str:
    """Return a name as SQL writes it."""
    return mark + name.replace(mark, 2 * mark) + mark


def sql_path(path: Path) -> str:
    """Return a file's name for SQL: DuckDB takes ``*``, ``?`` and ``[`` in it for a pattern."""
    return sql_text(glob.escape(str(path)))


def sql_text(text: str) -> str:
    """Return text as SQL writes it."""
    return sql_name(text, "'")
