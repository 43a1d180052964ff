"""Files in and out: sources by name, query or pipe; results whole or not at all."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tabweave._compat import require
from tabweave.apps.cli.app import FORMATS, Misuse
from tabweave.apps.cli.show import progress
from tabweave.io.dialects import sql_name, sql_text
from tabweave.io.files import replacing

STDIN = "standard input"
_QUERIES = ("select", "with", "from", "values", "pivot", "unpivot", "describe", "summarize")
_SUFFIXES = {".ndjson": "jsonl", ".feather": "arrow", ".ipc": "arrow", ".pq": "parquet"}


@contextmanager
def located(source: str, form: str | None = None) -> Iterator[str]:
    """Give the name by which the engines can open a source; standard input becomes a file."""
    if source != "-":
        yield _existing(source)
        return
    if sys.stdin.isatty():
        raise Misuse(
            "IN is - (standard input), but nothing is piped in; name a file, or use "
            "'cat FILE | tabweave ...'"
        )
    with tempfile.TemporaryDirectory(prefix="tabweave-") as folder:
        start = sys.stdin.buffer.read(65536)
        if not start:
            raise ValueError(f"{STDIN} is empty")
        packed = start.startswith(b"\x1f\x8b")  # gzip
        plain = zlib.decompressobj(31).decompress(start, 65536) if packed else start
        kind = known_format(form) if form else sniffed(plain)
        path = Path(folder, f"stdin.{kind}{'.gz' if packed else ''}")
        with path.open("wb") as spool:
            spool.write(start)
            shutil.copyfileobj(sys.stdin.buffer, spool)
        with _called(STDIN, str(path)):
            yield str(path)


@contextmanager
def _called(name: str, path: str) -> Iterator[None]:
    """Let errors and warnings call a temporary file by what the user knows it as."""

    def renamed(text: Any) -> Any:
        return text.replace(path, name) if isinstance(text, str) else text

    show = warnings.showwarning
    warnings.showwarning = lambda message, *rest: show(renamed(str(message)), *rest)
    try:
        yield
    except Exception as error:
        error.args = tuple(map(renamed, error.args))
        raise
    finally:
        warnings.showwarning = show


def _existing(source: str) -> str:
    """Return a source that is there, or say what lies near it."""
    words = source.split(None, 1)
    is_query = len(words) == 2 and words[0].lower() in _QUERIES
    if is_query or any(c in source for c in "*?["):
        return source
    path = Path(source)
    if "://" in source and not path.exists():
        raise ValueError(
            f"expected a file, got the address {source!r}; download it first, or pipe it in: "
            f"curl -s {shlex.quote(source)} | tabweave ... -"
        )
    if not path.exists():
        folder = path.parent
        names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        close = get_close_matches(path.name, names, 1, 0.7)
        hint = f"; did you mean {str(folder / close[0])!r}?" if close else ""
        raise ValueError(f"file not found: {source!r}{hint}")
    if path.is_file() and not path.stat().st_size:
        raise ValueError(f"the file {source!r} is empty")
    return source


def sniffed(start: bytes) -> str:
    """Guess the format of a stream from how it begins."""
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):  # a file, a stream
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
        raise Misuse(f"expected a format among {', '.join(FORMATS)}, got {form!r}")
    return form.lower()


def output_format(output: Path | None, form: str | None) -> str:
    """Return the format of a result: the one asked for, what its name says, or CSV for a pipe."""
    if form or is_stdout(output):
        return known_format(form or "csv")
    suffix = Path(str(output)).suffix.lower()
    guess = _SUFFIXES.get(suffix, suffix[1:])
    if guess not in FORMATS:
        raise Misuse(
            f"--output: expected an extension among {', '.join('.' + f for f in FORMATS)}, got "
            f"{Path(str(output)).name!r}; rename the file or add --format"
        )
    return guess


def is_stdout(output: Path | None) -> bool:
    """Tell whether a result goes to standard output."""
    return output is None or str(output) == "-"


def check_output(path: Path | None, force: bool) -> None:
    """Refuse, before any work is done, to write where a file is or where no folder is."""
    if path is None or is_stdout(path):
        return
    if path.is_dir():
        raise Misuse(f"expected a file to write, got the folder {str(path)!r}")
    if path.exists() and not force:
        raise Misuse(f"{str(path)!r} already exists; use --force to overwrite it")
    if not path.parent.is_dir():
        raise Misuse(f"folder not found: {str(path.parent)!r}; create it, or choose another one")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise Misuse(f"the folder {str(path.parent)!r} is not writable; choose another one")


def write_rows(
    embedder: Any,
    source: Any,
    output: Path | None,
    *,
    keep: Sequence[str],
    form: str | None,
    vector: str | None = None,
) -> int:
    """Transform a source into a file or, if there is none or it is -, standard output.

    Returns how many rows were written.
    """
    from tabweave.engines import has_arrow, transform

    kind = output_format(output, form)
    direct = ("csv", "arrow", "parquet") if has_arrow() else ("arrow", "csv")
    with _target(output) as path, progress() as show:
        options: dict[str, Any] = {"keep": list(keep), "vector": vector, "progress": show}
        if kind in direct:
            return transform(embedder, source, path, format=kind, **options)
        with tempfile.TemporaryDirectory(prefix=".tabweave-", dir=path.parent) as folder:
            rows = Path(folder, f"rows.{direct[-1]}")
            n_rows = transform(embedder, source, rows, **options)
            _copy(rows, path, kind)
    return n_rows


def write_columns(columns: Any, output: Path | None, kind: str, types: Mapping[str, str]) -> None:
    """Write columns in memory to a file, in a format.

    Text that was read as a dictionary is spelled out, unless the source, too, calls it one in its
    ``types``. Cells of several types stay what they are in JSON, and are text elsewhere.
    """
    from tabweave.engines.source import as_arrow, in_json

    arrow = require("pyarrow", "files")
    typed = (arrow.Array, arrow.ChunkedArray)
    mixed = [n for n, c in columns.items() if types.get(n) == "JSON" and not isinstance(c, typed)]
    if kind in ("json", "jsonl"):
        columns = columns | {name: list(map(in_json, columns[name])) for name in mixed}
    else:
        mixed = []
    rows = arrow.table(
        {n: c if isinstance(c, typed) else as_arrow(list(c)) for n, c in columns.items()}
    )
    for i, (name, kept) in enumerate(zip(rows.column_names, rows.schema.types, strict=True)):
        if arrow.types.is_dictionary(kept) and not types.get(name, "").startswith("dictionary"):
            rows = rows.set_column(i, name, rows[name].cast(kept.value_type))
    with _target(output) as path:
        if kind == "arrow":
            require("pyarrow.feather", "files").write_feather(rows, path, "uncompressed")
        elif kind == "parquet":
            require("pyarrow.parquet", "files").write_table(rows, path)
        else:
            _copy(rows, path, kind, mixed)


@contextmanager
def _target(output: Path | None) -> Iterator[Path]:
    """Give a name to write to; what is there becomes the result when all went well."""
    if output is not None and not is_stdout(output):
        with replacing(output) as path:
            yield path
        return
    with tempfile.TemporaryDirectory(prefix="tabweave-") as folder:
        path = Path(folder, "rows")
        yield path
        with path.open("rb") as content:
            shutil.copyfileobj(content, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _copy(rows: Any, path: Path, kind: str, in_json: Sequence[str] = ()) -> None:
    """Write a file, or a table of Arrow, in another format, through DuckDB.

    The text of the columns ``in_json`` is JSON, and written as what it says.
    """
    duckdb = require("duckdb", "files")
    how = {
        "csv": "FORMAT csv, HEADER",
        "tsv": "FORMAT csv, DELIMITER '\t', HEADER",
        "json": "FORMAT json, ARRAY true",
        "jsonl": "FORMAT json",
        "parquet": "FORMAT parquet",
    }[kind]
    with duckdb.connect() as connection:
        if isinstance(rows, Path):
            name = sql_text(str(rows))
        else:
            name = "rows"
            connection.register(name, rows)
        casts = ", ".join(f"CAST({sql_name(n)} AS JSON) AS {sql_name(n)}" for n in in_json)
        query = f"SELECT * REPLACE ({casts}) FROM {name}" if casts else f"FROM {name}"
        connection.execute(f"COPY ({query}) TO {sql_text(str(path))} ({how})")
