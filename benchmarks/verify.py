"""Two runs with the same seed give identical cells: measure some of them twice and compare.

``python benchmarks/verify.py`` takes cells of the accuracy cache that were quick to measure, evenly
spread, measures them in three processes, the third with two threads, and writes
benchmarks/reports/verify.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

from _cells import Cells
from _methods import TABLES, Plan
from _report import Report
from tabweave.datasets import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=60, help="how many to measure")
    parser.add_argument("--measure", action="store_true", help="measure and print, no report")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps([[*key, scores] for key, scores in measured(options.cells)]))
        return
    report = Report("The same cells twice", f"python benchmarks/verify.py --cells {options.cells}")
    first, again, threaded = (in_process(options.cells, threads) for threads in (1, 1, 2))
    report.section("Cells that took less than 3 s, evenly spread")
    compare(report, "the same run again", first, again)
    report.line(
        "\nWith two threads, F and NMI; the objective of scikit-learn's k-means is a sum over "
        "threads, and its last digits move.\n"
    )
    compare(report, "two threads instead of one", *map(without_cost, (first, threaded)))
    report.finish("verify.md")


def compare(report: Report, what: str, first: list, other: list) -> None:
    differ = [(a, b) for a, b in zip(first, other, strict=True) if a != b]
    for a, b in differ:
        report.line(f"- {' '.join(a[:-1])}: {a[-1]} and {b[-1]}")
    verdict = "MISSED" if differ else "passed"
    report.line(f"- {what}: {len(first)} cells, **{len(differ)}** differ (bar: 0; {verdict})")


def without_cost(run: list) -> list:
    return [[*key, {n: v for n, v in scores.items() if n != "cost"}] for *key, scores in run]


def in_process(cells: int, threads: int) -> list:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--measure", "--cells", str(cells)],
        env=os.environ | dict.fromkeys(names, str(threads)),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def measured(cells: int) -> list[tuple[tuple[str, ...], dict]]:
    known = Cells("full").known
    quick = [key for key, scores in known.items() if scores.get("seconds", 99) < 3]
    chosen = quick[:: max(1, len(quick) // cells)]
    found = []
    for key in chosen:
        plan = plan_of(key)
        if plan is not None and len(found) < cells:
            try:
                scores = dict(plan.run(load(key[1]), quick=False))
            except Exception as error:
                scores = {"error": f"{type(error).__name__}: {error}"}
            found.append((key, scores))
    return found


def plan_of(key: tuple[str, ...]) -> Plan | None:
    plans = (plan for spec in TABLES.values() for plan in spec.plans.values())
    return next((plan for plan in plans if plan.key(key[1]) == key), None)


if __name__ == "__main__":
    main()
