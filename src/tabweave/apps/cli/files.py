"""Files in and out: sources by name, query or pipe; results whole or not at all."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from tabweave.apps.cli.app import FORMATS, Misuse

_QUERIES = ("select", "with", "from", "values", "pivot", "unpivot", "describe", "summarize")
_SUFFIXES = {".ndjson": "jsonl", ".feather": "arrow", ".ipc": "arrow", ".pq": "parquet"}


def is_query(source: str) -> bool:
    """Say whether a source is SQL."""
    words = source.split(None, 1)
    return len(words) == 2 and words[0].lower() in _QUERIES


@contextmanager
def opened(source: str, form: str | None = None) -> Iterator[str]:
    """Give the name by which the engines can read a source; standard input becomes a file."""
    if source != "-":
        yield _found(source)
        return
    if sys.stdin.isatty():
        raise Misuse(
            "IN is - but nothing is piped in; name a file, or use 'cat FILE | tabweave ...'"
        )
    with tempfile.TemporaryDirectory(prefix="tabweave-") as folder:
        start = sys.stdin.buffer.read(65536)
        if not start:
            raise ValueError("standard input is empty")
        path = Path(folder, f"stdin.{known_format(form) if form else sniffed(start)}")
        with path.open("wb") as spool:
            spool.write(start)
            shutil.copyfileobj(sys.stdin.buffer, spool)
        yield str(path)


def _found(source: str) -> str:
    """Return a source that is there, or say what lies near it."""
    if is_query(source) or any(c in source for c in "*?["):
        return source
    path = Path(source)
    if not path.exists():
        folder = path.parent
        names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        close = get_close_matches(path.name, names, 1, 0.7)
        hint = f"; did you mean {str(folder / close[0])!r}?" if close else ""
        raise ValueError(f"there is no file {source!r}{hint}")
    if path.is_file() and not path.stat().st_size:
        raise ValueError(f"the file {source!r} is empty")
    return source


def sniffed(start: bytes) -> str:
    """Guess the format of a stream from how it begins."""
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"ARROW1"):
        return "arrow"
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"["):
        return "json"
    if text.startswith(b"{"):
        return "jsonl"
    return "tsv" if b"\t" in start.split(b"\n", 1)[0] else "csv"


def known_format(form: str) -> str:
    """Return the name of a format, or say which there are."""
    if form.lower() not in FORMATS:
        raise Misuse(f"there is no format {form!r}; use one of {', '.join(FORMATS)}")
    return form.lower()


def format_of(path: Path, form: str | None) -> str:
    """Return the format a file is to have: the one asked for, or what its name says."""
    if form:
        return known_format(form)
    suffix = path.suffix.lower()
    guess = _SUFFIXES.get(suffix, suffix[1:])
    if guess not in FORMATS:
        said = f"ends in {suffix!r}" if suffix else "has no ending"
        raise Misuse(
            f"{path.name!r} {said}; name it .csv, .parquet, ..., or say --format "
            f"{'|'.join(FORMATS)}"
        )
    return guess


def check_output(path: Path | None, force: bool) -> None:
    """Refuse, before any work is done, to write where a file is or where no folder is."""
    if path is None or str(path) == "-":
        return
    if path.is_dir():
        raise Misuse(f"{str(path)!r} is a folder; name a file in it")
    if path.exists() and not force:
        raise Misuse(f"{str(path)!r} exists; use --force to overwrite it")
    if not path.parent.is_dir():
        raise Misuse(f"there is no folder {str(path.parent)!r}; make it, or choose another name")


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Give a temporary name beside a file, and rename it when all is written."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def to_stdout(path: Path) -> None:
    """Copy a file to standard output."""
    with path.open("rb") as content:
        shutil.copyfileobj(content, sys.stdout.buffer)
    sys.stdout.buffer.flush()
