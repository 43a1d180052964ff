"""What people see: calm tables, bars, JSON, and progress on a terminal only."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from typing import Any

from rich import box
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner
from rich.table import Table as TextTable
from rich.text import Text

import tabweave

WIDTH_WITHOUT_TERMINAL = 160  # Columns of text where nothing needs to be cut to fit a screen.
ACCENT = "#5490c0"  # The first colour of plots.style.SEQUENTIAL, which would load NumPy.


def emit(result: Any) -> None:
    """Print a result; where it is no terminal, wide and without blanks at the ends of lines."""
    out = Console(highlight=False)
    if out.is_terminal:
        out.print(result)
        return
    wide = Console(highlight=False, width=WIDTH_WITHOUT_TERMINAL)
    with wide.capture() as captured:
        wide.print(result)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    print("\n".join(lines))


def note(text: str, max_chars: int = 600) -> None:
    """Tell the user something that is not the result: one line on stderr."""
    print(f"tabweave: {shortened(' '.join(text.split()), max_chars)}", file=sys.stderr)


def shortened(text: str, max_chars: int) -> str:
    """A text, cut if it is too long."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def cell(value: Any, max_chars: int = 40) -> str:
    """A cell as one short line; nothing in it reaches the terminal as a command."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, list | set | frozenset):
        value = ", ".join(map(str, value))
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return shortened("".join(c if c.isprintable() else " " for c in text), max_chars)


def say(markup: str) -> None:
    """Print a line of markup; what comes from a table has to be escaped in it."""
    emit(markup)


def bold(value: Any) -> str:
    """A value as bold markup."""
    return f"[bold]{escape(str(value))}[/]"


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    right: Sequence[str] = (),
    title: str | None = None,
    long: bool = False,
) -> TextTable:
    """A table of cells; a Text is taken as it is, all else through `cell`.

    Parameters
    ----------
    heads, rows : sequence of str, sequence of sequences
        The names of the columns, and what is in them.
    right : sequence of str
        Columns that hold numbers: aligned to the right.
    title : str, optional
        A line above.
    long : bool
        Whether to show cells in full, over several lines if need be.
    """
    out = TextTable(
        box=box.SIMPLE_HEAD,
        title=None if title is None else Text(title, style="bold"),
        title_justify="left",
        header_style="bold",
        pad_edge=False,
    )
    as_text = partial(cell, max_chars=10_000) if long else cell
    for i, head in enumerate(heads):
        words = [*head.split(), *(row[i] for row in rows)]
        widest = max(map(len, words)) if head in right else None
        out.add_column(
            Text(cell(head)),
            justify="left" if widest is None else "right",
            overflow="fold",  # of a long word nothing is lost
            min_width=widest,
        )
    for row in rows:
        out.add_row(*(c if isinstance(c, Text) else Text(as_text(c)) for c in row))
    return out


def bar(share: float) -> Text:
    """A bar of a share between 0 and 1, shorter where lines are."""
    longest = 24 if width() >= 80 else 8
    length = round(longest * min(max(share, 0.0), 1.0))
    return Text("━" * length, style=ACCENT) if length else Text("·", style="dim")


def width() -> int:
    """How many characters a line has."""
    out = Console()
    return out.width if out.is_terminal else WIDTH_WITHOUT_TERMINAL


def fitting(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """How many columns of a table, from the left, fit on a line; one at least."""
    ends = accumulate(3 + max(map(len, column)) for column in zip(heads, *rows, strict=True))
    return max(1, sum(end <= width() for end in ends))


def plural(n: int, noun: str) -> str:
    """A number of things: 1 row, 2 rows."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def number(value: float) -> str:
    """A number as tables show it."""
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.4g}"


def as_json(result: Any) -> None:
    """Print a result for machines: floats rounded to what is meant, missing as null."""
    print(json.dumps(json_value(result), ensure_ascii=False, indent=2))


def json_value(value: Any) -> Any:
    """A value in terms of JSON."""
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, str | bool | int) or value is None:
        return value
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return json_value(value.item())
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, Sequence | set | frozenset) or hasattr(value, "tolist"):
        return [json_value(item) for item in value]
    return str(value)


@contextmanager
def progress() -> Iterator[Any]:
    """Give a function for ``progress`` that shows how far a task is, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with tabweave.engines.progress_bar() as show:
        yield show


@contextmanager
def working(step: str) -> Iterator[None]:
    """Show on a terminal what is being done by a task that does not say how far it is."""
    if not sys.stderr.isatty():
        yield
        return
    spinner = Spinner("dots", text=step)
    with Live(spinner, console=Console(stderr=True), transient=True, redirect_stdout=False):
        yield
