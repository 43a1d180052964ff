"""Reports: lines that state a measured figure beside the bar it must pass."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).parent / "reports"
DATA = os.environ.get("TABWEAVE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
PRINTED = (
    Path(DATA).parent / "published" / "published.csv"
)  # figures of the papers, beside the data


def best_of(call: Callable[[], object], repeats: int = 5) -> float:
    """Return the seconds of the fastest of several calls."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


class Report:
    """Collects lines, prints them as they come, and writes them at the end."""

    def __init__(self, title: str, command: str) -> None:
        self.lines: list[str] = []
        packages = ("numpy", "scipy", "scikit-learn", "numba", "pandas", "pyarrow")
        self.line(f"# {title}\n")
        self.line(f"Command: `{command}`")
        self.line(
            f"Machine: {len(os.sched_getaffinity(0))} cores, {platform.machine()}; "
            f"Python {platform.python_version()}, "
            + ", ".join(f"{name} {version(name)}" for name in packages)
        )

    def line(self, text: str) -> None:
        print(text, flush=True)
        self.lines.append(text)

    def section(self, title: str) -> None:
        self.line(f"\n## {title}\n")

    def ratio(self, what: str, peer: float, ours: float, bar: float) -> None:
        """State how many times faster than a peer; at least ``bar`` is asked for."""
        factor = peer / ours
        passed = "passed" if factor >= bar else "MISSED"
        self.line(
            f"- {what}: **{factor:.1f}×** ({peer:.3f} s / {ours:.3f} s) (bar: {bar:g}×; {passed})"
        )

    def at_most(self, what: str, value: float, bar: float) -> None:
        """State a figure that may be at most ``bar``."""
        passed = "passed" if value <= bar else "MISSED"
        self.line(f"- {what}: **{value:.2f}** (bar: at most {bar:g}; {passed})")

    def finish(self, name: str | None) -> None:
        if name is not None:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / name).write_text("\n".join(self.lines) + "\n", encoding="utf-8")
            print(f"\nwritten to benchmarks/reports/{name}")
