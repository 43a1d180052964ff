"""Which files may be opened: inside the start folder or dropped here, tables only, of sane size."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = (".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson", ".arrow", ".feather")
MOST_COLUMNS = 2_000
MOST_BYTES = 500 * 2**20  # of an upload, and of what a compressed file unpacks to
_HEAD = 16 * 2**20


class Refused(ValueError):
    """A file or a path that is not to be opened, with the reason."""


@dataclass(frozen=True)
class Source:
    """A file that was let in."""

    path: Path
    name: str


def suffix_of(name: str) -> str:
    """Return the kind of a file, ``.gz`` set aside; refuse what is no table."""
    plain = name.lower().removesuffix(".gz")
    suffix = Path(plain).suffix
    if suffix not in KINDS:
        raise Refused(
            f"{name!r} is no table that can be opened here; use one of {', '.join(KINDS)}"
        )
    return suffix


def inside(root: Path, path: str) -> Path:
    """Return a path inside the start folder; links that lead out of it are followed and refused."""
    if "\x00" in path:
        raise Refused("a path cannot hold a NUL character")
    found = (root / path).resolve()
    if not found.is_relative_to(root):
        raise Refused(f"{path!r} lies outside the folder the studio was started in")
    if not found.is_file():
        raise Refused(f"there is no file {path!r} in the folder the studio was started in")
    suffix_of(found.name)
    return found


def listed(root: Path, most: int = 500) -> list[str]:
    """Return the tables of the start folder and the folders in it, two levels deep."""
    found = []
    for pattern in ("*", "*/*"):
        for path in sorted(root.glob(pattern)):
            plain = path.name.lower().removesuffix(".gz")
            if Path(plain).suffix in KINDS and path.is_file() and not path.name.startswith("."):
                if path.resolve().is_relative_to(root):
                    found.append(str(path.relative_to(root)))
            if len(found) >= most:
                return found
    return found


def unpacked(path: Path, most: int | None = None) -> Path:
    """Return the file itself, unpacked beside it if it is compressed, up to a size."""
    if not path.name.lower().endswith(".gz"):
        return path
    most = MOST_BYTES if most is None else most
    target = path.with_name(path.name[:-3])
    size = 0
    try:
        with gzip.open(path, "rb") as packed, target.open("wb") as out:
            while block := packed.read(2**20):
                size += len(block)
                if size > most:
                    raise Refused(f"{path.name!r} unpacks to more than {most // 2**20} MB")
                out.write(block)
    except (OSError, EOFError) as error:
        target.unlink(missing_ok=True)
        raise Refused(f"{path.name!r} is no gzip file: {error}") from None
    except Refused:
        target.unlink(missing_ok=True)
        raise
    return target


def check(path: Path) -> None:
    """Refuse a table that is too wide, or unpacks to too much, before it is read."""
    suffix = suffix_of(path.name)
    width = 0
    if suffix == ".parquet":
        width = _parquet_width(path)
    elif suffix in (".csv", ".tsv"):
        width = _text_width(path)
    if width > MOST_COLUMNS:
        raise Refused(
            f"{path.name!r} has {width:,} columns; the studio shows up to {MOST_COLUMNS:,}: "
            "choose some, or use the library"
        )


def _text_width(path: Path) -> int:
    with path.open("rb") as file:
        head = file.readline(_HEAD)
    if len(head) >= _HEAD:
        raise Refused(f"the first line of {path.name!r} is longer than {_HEAD // 2**20} MB")
    line = head.decode("utf-8", "replace")
    separator = max("\t,;|", key=line.count)
    csv.field_size_limit(_HEAD)
    return len(next(csv.reader(io.StringIO(line), delimiter=separator), []))


def _parquet_width(path: Path) -> int:
    import duckdb

    query = (
        "SELECT count(DISTINCT path_in_schema), coalesce(sum(total_uncompressed_size), 0) "
        "FROM parquet_metadata(?)"
    )
    with duckdb.connect() as connection:
        try:
            found: Any = connection.execute(query, [str(path)]).fetchone()
        except duckdb.Error as error:
            raise Refused(f"{path.name!r} cannot be read as Parquet: {error}") from None
    if found[1] > 8 * MOST_BYTES:
        raise Refused(f"{path.name!r} unpacks to {found[1] / 2**30:.1f} GB; use the library for it")
    return int(found[0])
