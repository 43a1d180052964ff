"""How a command ends: exit codes, one-line errors, Ctrl-C. Everything passes through here.

0 is success, 1 is trouble with the data, 2 is a wrong command line, 130 is Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

FAILED, MISUSED, STOPPED = 1, 2, 130
_LONGEST = 600  # characters of an error message


class Misuse(Exception):
    """The command line asks for something that cannot be: exit code 2."""


class Group(TyperGroup):
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
                    words, "weft", complete_var, False, windows_expand_args, **extra
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
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        _say("stopped; nothing was written")
        return STOPPED
    if isinstance(error, BrokenPipeError):  # `weft ... | head`: the reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    if hasattr(error, "format_message"):  # Click's own: a wrong option, a missing argument
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "weft"
        _say(f"{_lower(error.format_message())} (see {command} --help)")
        return int(getattr(error, "exit_code", MISUSED))
    if isinstance(error, Misuse):
        _say(str(error))
        return MISUSED
    _say(_message(error))
    return FAILED


def _message(error: BaseException) -> str:
    """Return one line about an error; name its type where the text alone says little."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        text = f"there is no file {error.filename!r}"
    if isinstance(error, MemoryError):
        text = f"not enough memory {text}".rstrip()
    expected = isinstance(error, ValueError | TypeError | KeyError | OSError | ImportError)
    if not text or not (expected or isinstance(error, MemoryError) or _from_engine(error)):
        text = f"{type(error).__name__}: {text} (--debug shows where)"
    return text


def _from_engine(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb", "pyarrow", "polars")


def _say(text: str) -> None:
    line = " ".join(text.split())
    line = line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
    print(f"weft: {line}", file=sys.stderr)


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
