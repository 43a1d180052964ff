"""Progress: what a run will take, before it starts, and how far it is, whoever listens.

Functions that may take long have a parameter ``progress``: None, or a function that is called with
a :class:`Progress` now and then. The library itself prints nothing; :func:`progress_bar` gives a
function that draws. An :class:`Estimate` says beforehand how much memory counts will take.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tabweave._compat import require
from tabweave.columns.table import Table
from tabweave.counts.counting import (
    DENSE_VALUES,
    WIDE_TABLE_COLUMNS,
    available_memory,
    check_wide,
    most_pairs,
    wide_bytes,
)
from tabweave.counts.counts import Counts
from tabweave.gpu import arrays as gpu


@dataclass(frozen=True)
class Progress:
    """Progress of a run.

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

    Examples
    --------
    >>> import tabweave
    >>> seen = []
    >>> counts = tabweave.count({"color": ["red", "blue"]}, progress=seen.append)
    >>> seen[-1].step, seen[-1].done, seen[-1].total, seen[-1].unit
    ('counting', 2, 2, 'rows')
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
    """``report(step, done, note="")``, which calls ``progress`` if there is one."""
    start = time.perf_counter()

    def report(step: str, done: float, note: str = "") -> None:
        if progress is not None:
            progress(Progress(step, done, total, unit, time.perf_counter() - start, note))

    return report


@contextmanager
def progress_bar() -> Iterator[ProgressCallback]:
    """Give a function for ``progress`` that draws a bar on standard error, removed at the end.

    Examples
    --------
    >>> import tabweave
    >>> from tabweave.engines import progress_bar
    >>> with progress_bar() as progress:
    ...     tabweave.count("SELECT range % 2 AS a FROM range(600)", progress=progress)
    Counts(600 rows, 1 columns, 2 values)
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


@dataclass(frozen=True)
class Estimate:
    """The time and memory that counting will take.

    Attributes
    ----------
    rows : int or None
        Number of rows, if known; of a CSV file about how many, from the length of the first ones.
    values : dict of str to int
        About how many values each column has.
    pairs : int
        About how many pairs of values occur.
    bytes : int
        About how much memory counting takes at its peak, beside the batches.
    available : int or None
        How much memory is free, if the system says so.
    seconds : float or None
        About how long it takes to read the rows, from the first batch; counting adds little.
    rows_bytes : int or None
        About how much memory all rows take at a time, where they must be held.
    """

    rows: int | None
    values: Mapping[str, int]
    pairs: int
    bytes: int
    available: int | None
    seconds: float | None = None
    rows_bytes: int | None = None

    def __str__(self) -> str:
        rows = "rows" if self.rows is None else f"about {self.rows:,} rows"
        time = "" if self.seconds is None else f", {self.seconds:,.0f} s"
        return f"{rows}, {_in_bytes(self.bytes)} of counts{time}"

    @property
    def fits(self) -> bool:
        """Whether it is less than what is free."""
        return self.available is None or self.bytes <= self.available

    def check(self) -> None:
        """Raise MemoryError, naming the columns with most values, if it does not fit."""
        check_wide(len(self.values), sum(self.values.values()), self.bytes)
        if self.fits:
            return
        largest = sorted(self.values, key=self.values.__getitem__, reverse=True)[:3]
        named = ", ".join(f"{name!r} has about {self.values[name]:,} values" for name in largest)
        raise MemoryError(
            f"counting would take about {_in_bytes(self.bytes)}, and "
            f"{_in_bytes(self.available or 0)} are free: {named}; leave such columns out, or use "
            "max_values=1000"
        )


def estimated(
    table: Table, n_rows: int | None = None, limits: Mapping[str, int] | None = None
) -> Estimate:
    """The estimate for all rows, of which a table holds the first.

    ``limits`` are the most values that some columns will be allowed.

    A value met once among the first rows stands for as many as there are times the rows; one met
    again is taken to be seen. So an estimate tends to be too high, never far too low, unless the
    rows are sorted.
    """
    rows = table.n_rows if n_rows is None else n_rows
    growth = max(rows / max(table.n_rows, 1), 1.0)
    valued = [(c.name, table[c.name]) for c in table.schema.categorical]
    values = {
        name: _grown(gpu.bincount(d.codes, len(d.labels)), growth, rows) for name, d in valued
    }
    values = {name: min(v, (limits or {}).get(name, v)) for name, v in values.items()}
    free = available_memory()
    single = [v for (_, d), v in zip(valued, values.values(), strict=True) if not d.is_set]
    total = sum(values.values())
    # Elements of sets may all meet in one row.
    pairs = most_pairs(np.array(single, np.int64), rows) + 2 * total * (total - sum(single))
    needed = _bytes(len(values), total, int(pairs))
    has_few_columns = len(values) <= 512  # whose pairs can be looked at one by one
    if free is not None and needed > free and has_few_columns:
        pairs = _sampled_pairs(dict(valued), values, rows) + total
        needed = _bytes(len(values), total, int(pairs))
    return Estimate(n_rows, values, int(pairs), int(needed), free)


def _sampled_pairs(columns: dict[str, Any], values: Mapping[str, int], n_rows: int) -> int:
    """How many pairs to expect from those that few rows have."""
    total = 0
    for a, b in combinations(columns, 2):
        left, right, limit = columns[a], columns[b], values[a] * values[b]
        if left.is_set or right.is_set:
            total += 2 * limit
            continue
        limit = min(limit, n_rows)
        rows = slice(0, 50_000)
        keys = left.codes[rows].astype(np.int64) * len(right.labels) + right.codes[rows]
        _, seen = np.unique(keys, return_counts=True)
        total += 2 * min(limit, _grown(seen, max(n_rows / max(len(keys), 1), 1.0), n_rows))
    return total


def _grown(seen: np.ndarray, growth: float, rows: int) -> int:
    n_singles = int((seen == 1).sum())
    return int((seen > 1).sum() + min(n_singles * growth, rows))


def _bytes(n_columns: int, n_values: int, pairs: int) -> int:
    if n_columns > WIDE_TABLE_COLUMNS:
        return wide_bytes(n_values, pairs)
    dense = 4 * 8 * n_values**2
    sparse = 120 * pairs  # while two sums of counts become one
    labels = 400 * n_values  # texts, and the dictionaries they are looked up in
    return (dense if n_values <= DENSE_VALUES else sparse) + labels


def check_counts_fit(counts: Counts) -> None:
    """Raise MemoryError if adding more to these counts would not fit."""
    if counts.schema is None or isinstance(counts.pairs, np.ndarray):
        return
    sizes = dict(zip(counts.names, counts.sizes.tolist(), strict=True))
    needed = _bytes(len(sizes), int(counts.offsets[-1]), counts.pairs.nnz)
    Estimate(None, sizes, counts.pairs.nnz, needed, available_memory()).check()


def _in_bytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:,.1f} MB"
