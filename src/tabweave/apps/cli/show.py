"""What people see: calm tables, bars, JSON, and progress on a terminal only."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as TextTable
from rich.text import Text

_WIDE = 160  # columns where the output is no terminal: nothing there needs to be cut
_CELL = 40  # characters of a cell that are shown
MISSING = "–"


def emit(what: Any) -> None:
    """Print a result; where it is no terminal, wide and without blanks at the ends of lines."""
    out = Console(highlight=False)
    if out.is_terminal:
        out.print(what)
        return
    wide = Console(highlight=False, width=_WIDE)
    with wide.capture() as captured:
        wide.print(what)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    print("\n".join(lines))


def cell(value: Any, most: int = _CELL) -> str:
    """Return a cell as one short line; nothing in it reaches the terminal as a command."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    if isinstance(value, list | set | frozenset):
        value = ", ".join(map(str, value))
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= most else text[: most - 1] + "…"


def say(template: str, **values: Any) -> None:
    """Print a line of markup; values are shown as they are."""
    safe = {k: escape(v) if isinstance(v, str) else v for k, v in values.items()}
    emit(template.format(**safe))


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    right: Sequence[str] = (),
    title: str | None = None,
    long: bool = False,
) -> TextTable:
    """Return a table of cells; a Text is taken as it is, all else through `cell`.

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
    most = 10_000 if long else _CELL
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
        out.add_row(*(c if isinstance(c, Text) else Text(cell(c, most)) for c in row))
    return out


def bar(share: float) -> Text:
    """Return a bar of a share between 0 and 1, shorter where lines are."""
    longest = 24 if width() >= 80 else 8
    length = round(longest * min(max(share, 0.0), 1.0))
    return Text("━" * length, style=accent()) if length else Text("·", style="dim")


def accent() -> str:
    """Return the colour that stands out: the first of the one palette, lighter for dark screens."""
    return "#5490c0"  # of plots.style.SEQUENTIAL, which would load NumPy


def width() -> int:
    """Return how many characters a line has."""
    out = Console()
    return out.width if out.is_terminal else _WIDE


def fitting(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return how many columns of a table, from the left, fit on a line; one at least."""
    ends = accumulate(3 + max(map(len, column)) for column in zip(heads, *rows, strict=True))
    return max(1, sum(end <= width() for end in ends))


def plural(n: int, one: str) -> str:
    """Return a number of things: 1 row, 2 rows."""
    return f"{n:,} {one}{'s' * (n != 1)}"


def number(value: float) -> str:
    """Return a number as tables show it."""
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.4g}"


def as_json(result: Any) -> None:
    """Print a result for machines: floats rounded to what is meant, missing as null."""
    print(json.dumps(plain(result), ensure_ascii=False, indent=2))


def plain(value: Any) -> Any:
    """Return a value in terms of JSON."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str | bool | int) or value is None:
        return value
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return plain(value.item())
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, Sequence | set | frozenset) or hasattr(value, "tolist"):
        return [plain(item) for item in value]
    return str(value)


@contextmanager
def progress() -> Iterator[Any]:
    """Give a function for ``progress`` that shows how far a task is, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from tabweave.engines import progress_bar

    with progress_bar() as show:
        yield show


@contextmanager
def working(step: str) -> Iterator[None]:
    """Show on a terminal what is being done by a task that does not say how far it is."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.live import Live
    from rich.spinner import Spinner

    spinner = Spinner("dots", text=step)
    with Live(spinner, console=Console(stderr=True), transient=True, redirect_stdout=False):
        yield
