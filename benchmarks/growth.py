"""Does fit grow with the rows? At 10,000 and 1,000,000 rows, without and with classes; many values.

OMP_NUM_THREADS=1 python benchmarks/growth.py            # writes benchmarks/reports/growth.md
OMP_NUM_THREADS=1 python benchmarks/growth.py --quick    # smaller, prints only
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from _report import Report, best_of
from tabweave import HELIC, UNTIE, Counts, SupervisedWeave, Table, Weave
from tabweave.datasets import led24, make_codes, make_coupled

N_COLUMNS, N_VALUES, FEW = 20, 10, 10_000
CODES = {f"x{j}": "nominal" for j in range(N_COLUMNS)}  # whole numbers that are categories
METHODS = {
    "Weave()": Weave(schema=CODES),
    "Weave(n_clusters=8)": Weave(n_clusters=8, schema=CODES),
    "UNTIE(n_clusters=8)": UNTIE(n_clusters=8, schema="nominal"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, no report file")
    quick = parser.parse_args().quick
    report = Report(
        "Growth of the learned couplings", "OMP_NUM_THREADS=1 python benchmarks/growth.py"
    )
    many = 100_000 if quick else 1_000_000
    growing(report, "make_codes", coded(many), many)
    growing(report, "make_coupled", coupled(many), many)
    supervised(report, many)
    landmarks(report, 2_000 if quick else 20_000)
    report.finish(None if quick else "growth.md")


def coded(n: int) -> np.ndarray:
    return make_codes(n, N_COLUMNS, N_VALUES, random_state=0)


def coupled(n: int) -> np.ndarray:
    """Integer codes of coupled columns; reading text would hide what learning costs."""
    cells = make_coupled(n, N_COLUMNS, n_values=N_VALUES, coupling=0.4, random_state=0).X
    codes = np.empty(cells.shape, np.uint8, order="F")
    for j in range(cells.shape[1]):
        codes[:, j] = np.unique(cells[:, j].astype(str), return_inverse=True)[1]
    return codes


def growing(report: Report, name: str, big: np.ndarray, many: int) -> None:
    small = np.asfortranarray(big[:FEW])
    report.section(f"{name}: {FEW:,} and {many:,} rows × {N_COLUMNS} columns × {N_VALUES} values")
    report.line(
        "Bar: fit at many rows over (one counting pass + fit at few rows), at most 1.5. Best of 3."
    )
    counting = best_of(lambda: Counts.of(Table.of(big, numbers="nominal")), 3)
    report.line(f"One counting pass over {many:,} rows: {counting:.3f} s")
    for label, embedder in METHODS.items():
        few = best_of(lambda e=embedder: e.fit(small), 3)
        full = best_of(lambda e=embedder: e.fit(big), 3)
        report.line(f"{label}: {few:.3f} s at {FEW:,} rows, {full:.3f} s at {many:,} rows")
        report.at_most(f"{label}, ratio", full / (counting + few), 1.5)
    few, full = (best_of(lambda part=part: Weave().fit(part), 1) for part in (small, big))
    report.line(
        f"Weave(), the same as numbers: {few:.3f} s and {full:.3f} s (quantiles of all rows)"
    )


def supervised(report: Report, many: int) -> None:
    digits = led24(many, random_state=0)
    codes = np.asfortranarray(digits.X.astype(np.uint8))
    report.section(f"With classes, led24: {FEW:,} and {many:,} rows × 24 columns")
    few = best_of(
        lambda: HELIC(random_state=0, schema="nominal").fit(codes[:FEW], digits.y[:FEW]), 3
    )
    full = best_of(lambda: HELIC(random_state=0, schema="nominal").fit(codes, digits.y), 3)
    report.line(f"HELIC: {few:.3f} s at {FEW:,} rows, {full:.3f} s at {many:,} rows")
    report.at_most("HELIC, ratio of the two", full / few, 3)
    model = SupervisedWeave(schema={f"x{j}": "nominal" for j in range(codes.shape[1])})
    learning = []
    for n in (FEW, many):
        counts = model.fit(codes[:n], digits.y[:n]).counts_
        learning.append(best_of(lambda c=counts: model.fit_counts(c).learn(), 3))
    few, full = learning
    report.line(
        f"SupervisedWeave from counts: {few:.3f} s of {FEW:,} rows, {full:.3f} s of {many:,}"
    )
    report.at_most("SupervisedWeave from counts, ratio of the two", full / few, 1.5)


def landmarks(report: Report, n_values: int) -> None:
    rng = np.random.default_rng(0)
    n = 20 * n_values
    hidden = rng.integers(0, 8, n)
    # Every value occurs; frequent and rare ones, each leaning to one of 8 groups.
    rank = np.minimum(rng.zipf(1.1, n) - 1, rng.integers(0, n_values, n))
    rank[:n_values] = np.arange(n_values)
    groups = [np.where(rng.random(n) < 0.6, hidden, rng.integers(0, 8, n)) for _ in range(4)]
    X: dict[str, Any] = {"many": rank}
    X |= {f"c{i}": g for i, g in enumerate(groups)}
    counts = Counts.of(Table.of(X, numbers="nominal"))
    report.section(f"A column with {counts.sizes[0]:,} values, {n:,} rows, 4 columns × 8 values")
    report.line('Bar (ours for "seconds"): 60 s, and `landmarks_` names the column. One run.')
    for label, embedder in METHODS.items():
        seconds = best_of(lambda e=embedder: e.fit_counts(counts), 1)
        report.at_most(f"{label}: seconds to fit counts", seconds, 60)
        report.line(f"  {label}: landmarks_ = {embedder.landmarks_}")


if __name__ == "__main__":
    main()
