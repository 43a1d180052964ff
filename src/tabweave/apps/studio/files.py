"""Which files may be opened: inside the start folder or dropped here, tables only, of sane size."""

from __future__ import annotations

import glob
import gzip
import secrets
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabweave._compat import require
from tabweave.io.text import csv_header

KINDS = (".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson")
MOST_COLUMNS = 1_000  # what a report shows
MOST_BYTES = 500 * 2**20  # of an upload, and of what a compressed file unpacks to
MOST_CELLS = 200_000_000  # of a Parquet file, which may hold far more than its size tells
_LONGEST = 16 * 2**20  # characters of a first line


class Refused(ValueError):
    """A file or a path that is not to be opened, with the reason."""


class TooLarge(Refused):
    """An upload above the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"uploads end at {size_of(limit)} here; put the file into the folder the studio was "
            "started in and open it by its path"
        )


@dataclass(frozen=True)
class Source:
    """A file that was let in, and what it is called on the page."""

    path: Path
    name: str


def size_of(n_bytes: int) -> str:
    """Return a number of bytes as people read it."""
    return f"{n_bytes / 2**20:,.0f} MB" if n_bytes >= 2**20 else f"{n_bytes:,} bytes"


def suffix_of(name: str) -> str:
    """Return the kind of a file, ``.gz`` set aside; refuse all but tables."""
    suffix = _suffix(name)
    if suffix not in KINDS:
        raise Refused(
            f"expected a table that ends in {', '.join(KINDS)}, or one of these with .gz behind "
            f"it, got {name!r}"
        )
    return suffix


def _suffix(name: str) -> str:
    return Path(name.lower().removesuffix(".gz")).suffix


def inside(root: Path, path: str) -> Path:
    """Return a file of the start folder; links that lead out of it are followed and refused."""
    if "\x00" in path:
        raise Refused("a path cannot hold a NUL character")
    try:
        found = (root / path).resolve()
        there = found.is_file()
    except (OSError, RuntimeError):  # a name too long, a circle of links
        found, there = root, False
    if not found.is_relative_to(root):
        raise Refused(f"{path!r} lies outside the folder the studio was started in")
    if not there:
        raise Refused(f"there is no file {path!r} in the folder the studio was started in")
    suffix_of(found.name)
    return found


def listed(root: Path, most: int = 500) -> list[dict[str, Any]]:
    """Return the tables of the start folder and of the folders in it, with their sizes."""
    found: list[dict[str, Any]] = []
    for pattern in ("*", "*/*"):
        for path in sorted(root.glob(pattern)):
            own = path.relative_to(root)
            if _suffix(path.name) not in KINDS or any(p.startswith(".") for p in own.parts):
                continue
            if path.is_file() and path.resolve().is_relative_to(root):
                found.append({"path": str(own), "size": path.stat().st_size})
            if len(found) >= most:
                return found
    return found


def own_copy(path: Path, folder: Path, most: int) -> Path:
    """Return a file that readers take for one table: unpacked, and no pattern by its name."""
    packed = path.name.lower().endswith(".gz")
    if not packed and not glob.has_magic(str(path)):
        return path
    own = folder / secrets.token_hex(8)
    own.mkdir()
    target = own / f"table{suffix_of(path.name)}"
    if not packed:
        return Path(shutil.copy(path, target))
    try:
        _unpack(path, target, most)
    except BaseException:
        shutil.rmtree(own, ignore_errors=True)
        raise
    return target


def _unpack(path: Path, target: Path, most: int) -> None:
    size = 0
    try:
        with gzip.open(path, "rb") as packed, target.open("wb") as out:
            while block := packed.read(2**20):
                size += len(block)
                if size > most:
                    raise Refused(f"it unpacks to more than {size_of(most)}")
                out.write(block)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Refused(f"expected a gzip file, got another or a part: {error}") from None


def check(path: Path) -> None:
    """Refuse a table that is empty, too wide, or unpacks to too much, before it is read."""
    suffix = suffix_of(path.name)
    if not path.stat().st_size:
        raise Refused("it is empty")
    if suffix == ".parquet":
        check_width(_parquet_width(path))
    elif suffix in (".csv", ".tsv"):
        check_width(len(csv_header(path, longest=_LONGEST)[0]))


def check_width(width: int) -> None:
    """Refuse more columns than can be shown."""
    if width > MOST_COLUMNS:
        raise Refused(
            f"it has {width:,} columns; the studio shows up to {MOST_COLUMNS:,}: choose some, or "
            "use the library"
        )


def _parquet_width(path: Path) -> int:
    duckdb = require("duckdb", "files")
    query = (
        "SELECT num_columns, num_rows, total FROM (SELECT count(DISTINCT path_in_schema) AS "
        "num_columns, coalesce(sum(total_uncompressed_size), 0) AS total FROM parquet_metadata($p))"
        ", (SELECT num_rows FROM parquet_file_metadata($p))"
    )
    with duckdb.connect() as connection:
        try:
            found: Any = connection.execute(query, {"p": str(path)}).fetchone()
        except duckdb.Error as error:
            raise Refused(f"expected a Parquet file: {str(error).splitlines()[0]}") from None
    width, rows, total = found
    if total > 8 * MOST_BYTES or rows * max(width, 1) > MOST_CELLS:
        raise Refused(
            f"it unpacks to {rows:,} rows, {size_of(total)}: too much for a page; use the library"
        )
    return int(width)
