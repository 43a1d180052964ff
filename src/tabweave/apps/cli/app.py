"""The group of all commands: how they end.

0 is success, 1 is trouble with the data, 2 is a wrong command line, 130 is Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

import tabweave
from tabweave.apps.cli.options import Misuse
from tabweave.apps.cli.show import note

FAILED, MISUSED, STOPPED = 1, 2, 130


def examples(*lines: str) -> str:
    """What stands below a help: example lines."""
    return "\n".join(["[bold]Examples[/]", *(f"  {escape(line)}" for line in lines)])


class FlagsWithoutValue:
    """What options that take no value share: their help shows none."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, also those that Typer and Click add."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(FlagsWithoutValue, TyperCommand):
    """A command of the group."""


class Group(FlagsWithoutValue, TyperGroup):
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
                code = _exit_code(KeyboardInterrupt(), False)
        except BaseException as error:
            code = _exit_code(error, debug)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


def _exit_code(error: BaseException, debug: bool) -> int:
    """The exit code of an error; says what went wrong, if anything did."""
    if isinstance(error, SystemExit):
        if isinstance(error.code, str):
            note(error.code)
            return FAILED
        return int(error.code or 0)
    if debug:
        traceback.print_exception(error)
    interrupted = str(error) == "Query interrupted"  # what DuckDB calls Ctrl-C
    if interrupted or isinstance(error, KeyboardInterrupt | typer.Abort):
        note("stopped; nothing was written")
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
        text = text[:1].lower() + text[1:] if text[1:2].islower() else text
        note(f"{text.rstrip('.')} (see {command} --help)")
        return int(getattr(error, "exit_code", MISUSED))
    note(_message(error))
    return MISUSED if isinstance(error, Misuse) else FAILED


def _message(error: BaseException) -> str:
    """One line about an error, with its type where the text alone says little."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        text = f"file not found: {error.filename!r}"
    if isinstance(error, MemoryError):
        text = f"not enough memory {text}".rstrip()
    expected = ValueError | TypeError | KeyError | OSError | ImportError | MemoryError
    engine = type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb", "pyarrow", "polars")
    if not text or not (isinstance(error, expected) or engine):
        text = f"{type(error).__name__}: {text} (--debug shows the traceback)"
    return text


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    note(f"warning: {message}")


def stop_on_terminate() -> None:
    """Let SIGTERM unwind the stack as Ctrl-C does, so that temporary files go away."""

    def unwind(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, unwind)


app = typer.Typer(
    cls=Group,
    epilog=examples(
        "tabweave report people.csv",
        "tabweave neighbors people.csv --row 17",
        "tabweave embed people.csv -o vectors.parquet",
    ),
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(tabweave.__version__)
        raise typer.Exit


@app.callback(help="Representation and similarity learning on complex tables.")
def _without_command(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error; accepted by every command."),
    ] = False,
) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(MISUSED)
