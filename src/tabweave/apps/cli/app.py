"""What all commands share: how they end, how words are completed, and the options they take.

0 is success, 1 is trouble with the data, 2 is a wrong command line, 130 is Ctrl-C.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from tabweave.apps.methods import described
from tabweave.io.files import csv_header

FAILED, MISUSED, STOPPED = 1, 2, 130
_LONGEST = 600  # characters of an error message
_INTERRUPTED = "Query interrupted"  # what Ctrl-C is called by DuckDB


class Misuse(ValueError):
    """The command line is not valid: exit code 2."""


class Plain:
    """What options that take no value share: their help shows none."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments, also those that Typer and Click add."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(Plain, TyperCommand):
    """A command of the group."""


class Group(Plain, TyperGroup):
    """The group of all commands: turns whatever happens into one line and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and leave with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in words
        words = [word for word in words if word != "--debug"]
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                code = super().main(
                    words, "tabweave", complete_var, False, windows_expand_args, **extra
                )
            sys.stdout.flush()
            if code == STOPPED:
                code = _ended(KeyboardInterrupt(), False)
        except BaseException as error:
            code = _ended(error, debug)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


def _ended(error: BaseException, debug: bool) -> int:
    """Say what went wrong, if anything did, and return the exit code."""
    if isinstance(error, SystemExit):
        if isinstance(error.code, str):
            _say(error.code)
            return FAILED
        return int(error.code or 0)
    if debug:
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt | typer.Abort) or str(error) == _INTERRUPTED:
        _say("stopped; nothing was written")
        return STOPPED
    if isinstance(error, BrokenPipeError):  # `tabweave ... | head`: the reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    if hasattr(error, "format_message"):  # Click's own: a wrong option, a missing argument
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "tabweave"
        text = error.format_message()
        if text.startswith("Got unexpected extra argument") and command != "tabweave drift":
            text += "; to read several files, quote a glob pattern such as '2026-*.csv'"
        _say(f"{_lower(text)} (see {command} --help)")
        return int(getattr(error, "exit_code", MISUSED))
    _say(_message(error))
    return MISUSED if isinstance(error, Misuse) else FAILED


def _message(error: BaseException) -> str:
    """Return one line about an error; name its type where the text alone says little."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        text = f"file not found: {error.filename!r}"
    if isinstance(error, MemoryError):
        text = f"not enough memory {text}".rstrip()
    expected = isinstance(error, ValueError | TypeError | KeyError | OSError | ImportError)
    if not text or not (expected or isinstance(error, MemoryError) or _from_engine(error)):
        text = f"{type(error).__name__}: {text} (--debug shows the traceback)"
    return text


def _from_engine(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb", "pyarrow", "polars")


def _say(text: str) -> None:
    line = " ".join(text.split())
    line = line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
    print(f"tabweave: {line}", file=sys.stderr)


def note(text: str) -> None:
    """Tell the user something that is not the result: one line on stderr."""
    _say(text)


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    _say(f"warning: {message}")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".") if text[1:2].islower() else text.rstrip(".")


def stop_on_terminate() -> None:
    """Let SIGTERM unwind the stack as Ctrl-C does, so that temporary files go away."""

    def unwind(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, unwind)


# -- Completion: methods, formats, and the column names of the file on the command line

FORMATS = ("csv", "tsv", "parquet", "json", "jsonl", "arrow")
KINDS = ("nominal", "ordinal", "numeric", "datetime", "set")


def methods(incomplete: str) -> list[tuple[str, str]]:
    """Return the methods that begin so, each with a line of help."""
    known = described("shell").items()
    return [(name, text) for name, text in known if name.startswith(incomplete)]


def formats(incomplete: str) -> list[str]:
    """Return the formats that begin so."""
    return [name for name in FORMATS if name.startswith(incomplete)]


def column(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the columns that begin so."""
    return [name for name in header(ctx) if name.startswith(incomplete)]


def columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the last name of a list with commas, leaving out those that are there."""
    done, comma, last = incomplete.rpartition(",")
    taken = done.split(",")
    return [done + comma + c for c in header(ctx) if c.startswith(last) and c not in taken]


def settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the last column of a list such as color=red,size=big."""
    done, comma, last = incomplete.rpartition(",")
    return [f"{done}{comma}{c}=" for c in header(ctx) if c.startswith(last)]


def kinds(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete COLUMN=KIND."""
    name, equals, kind = incomplete.partition("=")
    if equals:
        return [f"{name}={k}" for k in KINDS if k.startswith(kind)]
    return [f"{c}=" for c in header(ctx) if c.startswith(name)]


def header(ctx: typer.Context) -> list[str]:
    """Return the column names of the file that was named; nothing if it cannot be read."""
    # An option that still waits for its value keeps arguments from being told apart.
    words = [ctx.params.get("source"), ctx.params.get("old"), *ctx.args]
    try:
        path = next(Path(word) for word in words if word and Path(word).is_file())
        return list(_names(path))
    except Exception:  # completion is silent: the command itself will say what is wrong
        return []


def _names(path: Path) -> Iterator[str]:
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        yield from csv_header(path).names
    elif kind in (".jsonl", ".ndjson"):
        with path.open(encoding="utf-8-sig") as lines:
            yield from json.loads(next(lines))
    else:
        from tabweave.engines import open_source

        yield from open_source(path).types


# -- Help, and options that commands share, each described once


def examples(*lines: str) -> str:
    """Return what stands below the help of a command: example lines."""
    return "\n".join(["[bold]Examples[/]", *(f"  tabweave {escape(line)}" for line in lines)])


ROWS = "Input options"
LEARN = "Method options"

Source = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        help="A file (CSV, TSV, Parquet, JSON, JSONL, Arrow), a folder or glob pattern of files "
        "('2026-*.csv'), a SQL query (\"SELECT ... FROM 'x.csv'\"), or - for standard input.",
        show_default=False,
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help="Format of standard input (csv, tsv, parquet, json, jsonl or arrow); detected by "
        "default.",
        autocompletion=formats,
        rich_help_panel=ROWS,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="Target column, such as class labels: not embedded. Only supervised methods learn "
        "from it.",
        autocompletion=column,
        rich_help_panel=ROWS,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        "-c",
        metavar="A,B,...",
        help="Use these columns only.",
        autocompletion=columns,
        rich_help_panel=ROWS,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="A,B,...",
        help="Ignore these columns.",
        autocompletion=columns,
        rich_help_panel=ROWS,
    ),
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="COLUMN=KIND",
        help="Read a column as nominal, numeric, datetime[:dmy|:mdy], ordinal[:LOW<...<HIGH] or "
        "set[:DELIMITER]; by default the kind is inferred. '*' means all columns. Can be repeated.",
        autocompletion=kinds,
        rich_help_panel=ROWS,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="A,B,...",
        help="Values to treat as missing in categorical columns, such as '?,NA', or 'pandas' for "
        "those of pandas; in numeric and date columns such words are always missing.",
        rich_help_panel=ROWS,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of text files, such as cp1252 or utf-16; by default UTF-8, or found by "
        "trial.",
        rich_help_panel=ROWS,
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        help="Method that embeds the rows; 'tabweave methods' lists them.",
        autocompletion=methods,
        rich_help_panel=LEARN,
    ),
]
Model = Annotated[
    Path | None,
    typer.Option(
        "--model",
        help="Use a model saved by 'tabweave embed --save' instead of fitting one.",
        rich_help_panel=LEARN,
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Random seed.", rich_help_panel=LEARN)]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite existing files.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Output format (csv, tsv, parquet, json, jsonl or arrow); by default from the file "
        "extension, or CSV on standard output.",
        autocompletion=formats,
    ),
]
