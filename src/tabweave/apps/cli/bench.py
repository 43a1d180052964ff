"""``tabweave bench``: how fast tabweave is on this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from tabweave.apps.cli.app import Json
from tabweave.apps.cli.show import as_json, emit
from tabweave.apps.cli.show import table as show_table


def bench(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the built-in check.")] = 200_000,
    builtin: Annotated[
        bool, typer.Option("--builtin", help="Run the built-in check even in a source checkout.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure speed: the quick benchmark of a source checkout, or else a built-in check."""
    script = Path(__file__).parents[4] / "benchmarks" / "speed.py"
    runs = script.is_file() and all(find_spec(name) for name in ("pandas", "pyarrow"))
    if runs and not builtin and not json:
        done = subprocess.run([sys.executable, str(script), "--quick"], check=False)
        raise typer.Exit(0 if done.returncode == 0 else 1)
    found = _timed(rows)
    if json:
        as_json({"rows": rows, "columns": 10, "seconds": found})
        return
    cells = [[name, f"{1000 * s:,.0f}", f"{rows / s / 1e6:.1f}"] for name, s in found.items()]
    heads = ["task", "ms", "million rows/s"]
    title = f"{rows:,} rows × 10 columns of 20 values"
    emit(show_table(heads, cells, right=heads[1:], title=title))


def _timed(rows: int) -> dict[str, float]:
    """Return the best time of three of each task; the first use compiles and does not count."""
    from tabweave import Counts, OneHot, Table, Weave
    from tabweave.datasets import make_codes

    table = Table.of(make_codes(rows, 10, 20, random_state=0), numbers="nominal")
    counts = Counts.of(table)
    weave, onehot = Weave().fit_counts(counts), OneHot().fit_counts(counts)
    tasks: dict[str, Callable[[], Any]] = {
        "count all pairs of values": lambda: Counts.of(table),
        "learn Weave from counts": lambda: Weave().fit_counts(counts),
        "look up Weave vectors": lambda: weave.transform(table),
        "look up one-hot vectors": lambda: onehot.transform(table),
    }
    return {name: min(_seconds(task) for _ in range(3)) for name, task in tasks.items()}


def _seconds(task: Callable[[], Any]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start
