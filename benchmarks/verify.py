"""Two runs with the same seed give identical cells: measure some of them again and compare.

``python benchmarks/verify.py`` takes cells of the accuracy cache that were quick to measure, evenly
spread, and writes benchmarks/reports/verify.md.
"""

from __future__ import annotations

import argparse

from _cells import Cells
from _methods import TABLES
from _report import Report
from weft.datasets import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=60, help="how many to measure again")
    options = parser.parse_args()
    known = Cells("full").known
    plans = {
        (*plan.key(key[1]), key[1]): plan
        for key in known
        for spec in TABLES.values()
        for plan in spec.plans.values()
        if plan.key(key[1]) == key
    }
    quick = [(k, p) for k, p in plans.items() if known[k[:-1]].get("seconds", 99) < 3]
    step = max(1, len(quick) // options.cells)
    report = Report("The same cells again", f"python benchmarks/verify.py --cells {options.cells}")
    report.section(f"Every {step}th of {len(quick)} cells that took less than 3 s")
    differ = 0
    chosen = quick[::step][: options.cells]
    for key, plan in chosen:
        before = {n: v for n, v in known[key[:-1]].items() if n != "seconds"}
        try:
            after = dict(plan.run(load(key[-1]), quick=False))
        except Exception as error:
            after = {"error": f"{type(error).__name__}: {error}"[:200]}
        if before != after:
            differ += 1
            report.line(f"- {' '.join(key[:-1])}: {before} then, {after} now")
    verdict = "passed" if differ == 0 else "MISSED"
    report.line(f"- {len(chosen)} cells measured again, **{differ}** differ (bar: 0; {verdict})")
    report.finish("verify.md")


if __name__ == "__main__":
    main()
