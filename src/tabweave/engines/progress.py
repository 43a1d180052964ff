"""Progress: one way for long runs to say how far they are, whoever listens.

Functions that may take long have a parameter ``progress``: None, or a function that is called with
a :class:`Progress` now and then. The library itself prints nothing; :func:`progress_bar` gives a
function that draws.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tabweave._compat import require


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    step : str
        What is being done, such as "counting".
    done : float
        How much is done.
    total : float or None
        How much there is to do, if that is known.
    unit : str
        What is counted, such as "rows"; "" if ``done`` is a share of 1.
    seconds : float
        Time since the run began.
    note : str
        More to say, such as the error so far.
    """

    step: str
    done: float
    total: float | None = None
    unit: str = "rows"
    seconds: float = 0.0
    note: str = ""


ProgressCallback = Callable[[Progress], object]


def progress_reporter(
    progress: ProgressCallback | None, unit: str = "rows", total: float | None = None
) -> Callable[..., None]:
    """Return ``report(step, done, note="")``, which calls ``progress`` if there is one."""
    start = time.perf_counter()

    def report(step: str, done: float, note: str = "") -> None:
        if progress is not None:
            progress(Progress(step, done, total, unit, time.perf_counter() - start, note))

    return report


@contextmanager
def progress_bar() -> Iterator[ProgressCallback]:
    """Give a function for ``progress`` that draws on standard error; what it drew goes at the end.

    Examples
    --------
    >>> import tabweave
    >>> from tabweave.engines import progress_bar
    >>> with progress_bar() as progress:
    ...     tabweave.count("SELECT range % 2 AS a FROM range(600)", progress=progress)
    Counts(600 rows, 1 columns, 0 values)
    """
    bars, console = require("rich.progress", "cli"), require("rich.console", "cli")
    columns = (
        bars.SpinnerColumn(),
        bars.TextColumn("{task.description}"),
        bars.BarColumn(30),
        bars.TaskProgressColumn(),
        bars.TextColumn("{task.fields[amount]}"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, amount="")

        def show(now: Progress) -> None:
            amount = f"{now.done:,.0f} {now.unit} {now.note}".rstrip() if now.unit else now.note
            bar.update(
                task, description=now.step, completed=now.done, total=now.total, amount=amount
            )

        yield show
