"""Text of files and queries: the names in the first line of a CSV file, names and text in SQL."""

from __future__ import annotations

import csv
import glob
import gzip
import zlib
from pathlib import Path
from typing import Any

_DELIMITERS = (",", ";", "\t", "|")


def csv_header(
    path: Path, delimiter: str | None = None, *, longest: int | None = None
) -> tuple[list[str], str]:
    """Return the names in the first line of a CSV file, and what separates them.

    Parameters
    ----------
    path : Path
        The file, in UTF-8; compressed if its name ends in ``.gz``.
    delimiter : str, optional
        What separates the names; by default the one of ``, ; | TAB`` that is there most often.
    longest : int, optional
        Refuse a first line of more characters.
    """
    line = _first_record(path, longest)
    if not line.strip():
        raise ValueError(f"{path}: the first line is empty; it must hold the names of the columns")
    if delimiter is None:
        bare = "".join(line.split('"')[::2])  # what stands in quotes separates nothing
        delimiter = max(_DELIMITERS, key=bare.count)
    try:
        return next(csv.reader(line.splitlines(keepends=True), delimiter=delimiter)), delimiter
    except csv.Error as error:
        raise ValueError(f"{path}: the first line cannot be read: {error}") from None


def _first_record(path: Path, longest: int | None) -> str:
    opened: Any = gzip.open if path.suffix == ".gz" else open
    limit = -1 if longest is None else longest + 1
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            line = file.readline(limit)
            while line.count('"') % 2 and (more := file.readline(limit)):  # a name of several lines
                line += more
                if longest is not None and len(line) > longest:
                    break
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: expected UTF-8, got byte {error.object[error.start]:#04x}; write the file as "
            "UTF-8, e.g. by iconv -f latin1 -t utf-8"
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: expected a gzip file, got another or a part: {error}") from None
    if longest is not None and len(line) > longest:
        raise ValueError(f"{path}: the first line is longer than {longest:,} characters")
    if "\0" in line:
        raise ValueError(f"{path}: expected text in UTF-8, got NUL characters")
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
