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
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

import tabweave
from tabweave._compat import require
from tabweave.apps.cli.options import FORMATS, Force, Misuse, complete_format
from tabweave.apps.cli.show import progress
from tabweave.io.dialects import sql_name, sql_text
from tabweave.io.files import replacing

STDIN = "standard input"
_QUERIES = ("select", "with", "from", "values", "pivot", "unpivot", "describe", "summarize")
_SUFFIXES = {".ndjson": "jsonl", ".feather": "arrow", ".ipc": "arrow", ".pq": "parquet"}
_COPY_OPTIONS = {
    "csv": "FORMAT csv, HEADER",
    "tsv": "FORMAT csv, DELIMITER '\t', HEADER",
    "json": "FORMAT json, ARRAY true",
    "jsonl": "FORMAT json",
    "parquet": "FORMAT parquet",
}


# -- In


@contextmanager
def located(source: str, form: str | None = None) -> Iterator[str]:
    """Give the name by which the engines can open a source; standard input becomes a file."""
    if source != "-":
        _check_exists(source)
        yield source
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
        is_gzip = start.startswith(b"\x1f\x8b")
        text = zlib.decompressobj(31).decompress(start, 65536) if is_gzip else start
        kind = known_format(form) if form else guessed_format(text)
        path = Path(folder, f"stdin.{kind}{'.gz' if is_gzip else ''}")
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
    warnings.showwarning = lambda message, *details: show(renamed(str(message)), *details)
    try:
        yield
    except Exception as error:
        error.args = tuple(map(renamed, error.args))
        raise
    finally:
        warnings.showwarning = show


def _check_exists(source: str) -> None:
    """Refuse a source that is not there, and say what lies near it."""
    words = source.split(None, 1)
    is_query = len(words) == 2 and words[0].lower() in _QUERIES
    if is_query or any(c in source for c in "*?["):
        return
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


def guessed_format(start: bytes) -> str:
    """The format of a stream, by how it begins."""
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
    """The name of a format, in lower case; refuses one that is not known."""
    if form.lower() not in FORMATS:
        raise Misuse(f"expected a format among {', '.join(FORMATS)}, got {form!r}")
    return form.lower()


# -- Out


@dataclass(frozen=True)
class Output:
    """Where rows go, and in which format: the options of commands that write rows.

    What cannot be written is refused before any work is done.

    Parameters
    ----------
    path
        File to write; - is standard output.
    form
        Output format (csv, tsv, parquet, json, jsonl or arrow); by default from the file extension,
        or CSV on standard output.
    force
        Overwrite existing files.
    json
        Print the result as JSON.
    """

    path: Annotated[Path | None, typer.Option("--output", "-o")] = None
    form: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", autocompletion=complete_format)
    ] = None
    force: Force = False
    json: bool = False

    def __post_init__(self) -> None:
        if self.kind not in FORMATS:
            endings = ", ".join(f".{form}" for form in FORMATS)
            raise Misuse(
                f"--output: expected an extension among {endings}, got "
                f"{Path(str(self.path)).name!r}; rename the file or add --format"
            )
        check_output(self.path, self.force)
        if self.json and self.is_piped:
            raise Misuse("--json prints a summary instead of rows; add --output FILE for the rows")

    @property
    def kind(self) -> str:
        """The format that is asked for, that the name of the file says, or CSV for a pipe."""
        if self.form or self.is_stdout:
            return known_format(self.form or "csv")
        suffix = Path(str(self.path)).suffix.lower()
        return _SUFFIXES.get(suffix, suffix[1:])

    @property
    def is_stdout(self) -> bool:
        """Whether rows go to standard output, if they are written."""
        return is_stdout(self.path)

    @property
    def is_piped(self) -> bool:
        """Whether standard output is named."""
        return self.path is not None and self.is_stdout

    def write_vectors(
        self, embedder: Any, source: Any, keep: Sequence[str], vector: str | None = None
    ) -> int:
        """Write the vectors of a source beside some of its columns; the number of rows."""
        direct = ("csv", "arrow", "parquet") if tabweave.engines.has_arrow() else ("arrow", "csv")
        with self._target() as path, progress() as show:
            options: dict[str, Any] = {"keep": list(keep), "vector": vector, "progress": show}
            if self.kind in direct:
                return tabweave.engines.transform(
                    embedder, source, path, format=self.kind, overwrite=True, **options
                )
            with tempfile.TemporaryDirectory(prefix=".tabweave-", dir=path.parent) as folder:
                rows = Path(folder, f"rows.{direct[-1]}")
                n_rows = tabweave.engines.transform(embedder, source, rows, **options)
                self._copy(rows, path)
        return int(n_rows)

    def write_columns(self, columns: Any, types: Mapping[str, str]) -> None:
        """Write columns in memory.

        Text that was read as a dictionary is spelled out, unless the source, too, calls it one in
        its ``types``. Cells of several types stay what they are in JSON, and are text elsewhere.
        """
        arrow = require("pyarrow", "files")
        typed = (arrow.Array, arrow.ChunkedArray)
        mixed = [n for n in columns if types.get(n) == "JSON" and self.kind in ("json", "jsonl")]
        mixed = [n for n in mixed if not isinstance(columns[n], typed)]
        columns = columns | {n: list(map(tabweave.engines.in_json, columns[n])) for n in mixed}
        rows = arrow.table(
            {
                n: c if isinstance(c, typed) else tabweave.engines.as_arrow(list(c))
                for n, c in columns.items()
            }
        )
        for i, (name, kind) in enumerate(zip(rows.column_names, rows.schema.types, strict=True)):
            if arrow.types.is_dictionary(kind) and not types.get(name, "").startswith("dictionary"):
                rows = rows.set_column(i, name, rows[name].cast(kind.value_type))
        with self._target() as path:
            if self.kind == "arrow":
                require("pyarrow.feather", "files").write_feather(rows, path, "uncompressed")
            elif self.kind == "parquet":
                require("pyarrow.parquet", "files").write_table(rows, path)
            else:
                self._copy(rows, path, mixed)

    @contextmanager
    def _target(self) -> Iterator[Path]:
        """Give a name to write to; what is there becomes the result when all went well."""
        if self.path is not None and not self.is_stdout:
            with replacing(self.path) as path:
                yield path
            return
        with tempfile.TemporaryDirectory(prefix="tabweave-") as folder:
            path = Path(folder, "rows")
            yield path
            with path.open("rb") as content:
                shutil.copyfileobj(content, sys.stdout.buffer)
            sys.stdout.buffer.flush()

    def _copy(self, rows: Any, path: Path, in_json: Sequence[str] = ()) -> None:
        """Write a file, or a table of Arrow, in this format, through DuckDB.

        The text of the columns ``in_json`` is JSON, and written as what it says.
        """
        with require("duckdb", "files").connect() as connection:
            name = sql_text(str(rows)) if isinstance(rows, Path) else "rows"
            if not isinstance(rows, Path):
                connection.register(name, rows)
            casts = ", ".join(f"CAST({sql_name(n)} AS JSON) AS {sql_name(n)}" for n in in_json)
            query = f"SELECT * REPLACE ({casts}) FROM {name}" if casts else f"FROM {name}"
            options = _COPY_OPTIONS[self.kind]
            connection.execute(
                f"COPY ({query}) TO {sql_text(str(path))} (USE_TMP_FILE false, {options})"
            )


def is_stdout(path: Path | None) -> bool:
    """Whether a result goes to standard output."""
    return path is None or str(path) == "-"


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
