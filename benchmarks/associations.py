"""All pairs of columns: associations beside skrub's column_associations, scipy and phik.

    python benchmarks/associations.py [--rows 1000000] [--columns 20]

Cramér's V of every pair is compared with scipy's, φ_K with phik's; then both packages get the same
drawn table of text (the one of factors.py), one after the other in one process.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import combinations

import pandas as pd
from scipy.stats.contingency import association

from factors import drawn


def equality() -> None:
    from phik.phik import phik_from_array

    from tabweave import associations

    frame = drawn(3000, 8)
    found = associations(frame)
    v, phi = [], []
    for (a, b), ours, own in zip(
        combinations(frame, 2), found.values["cramers_v"], found.values["phi_k"], strict=True
    ):
        table = pd.crosstab(frame[a], frame[b]).to_numpy()
        v.append(abs(association(table, method="cramer") - ours))
        phi.append(abs(phik_from_array(frame[a], frame[b]) - own))
    print(f"28 pairs of 3,000 rows: Cramér's V differs from scipy's by at most {max(v):.1e},")
    print(f"φ_K from phik's by at most {max(phi):.1e} (its solver stops at 1e-5).")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    from skrub import column_associations

    from tabweave import Counts, Table, associations

    equality()
    frame = drawn(given.rows, given.columns)
    associations(frame[:1000])  # compiled before
    start = time.perf_counter()
    table = Table.of(frame)
    reading = time.perf_counter() - start
    start = time.perf_counter()
    Counts.of(table)
    counting = time.perf_counter() - start
    start = time.perf_counter()
    found = associations(frame)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    peer = column_associations(frame)
    theirs = time.perf_counter() - start
    at = {frozenset(p): x for p, x in zip(found.pairs, found.values["cramers_v"], strict=True)}
    apart = max(
        abs(at[frozenset((r["left_column_name"], r["right_column_name"]))] - r["cramer_v"])
        for r in peer.to_dict("records")
    )
    print(f"\n{given.rows:,} × {given.columns}, {len(found)} pairs, text columns of 8 values\n")
    print("| | seconds |\n|---|---|")
    print(f"| reading text into codes | {reading:.2f} |\n| counting all pairs | {counting:.2f} |")
    print(f"| associations(frame), all of it | {ours:.2f} |")
    print(f"| skrub.column_associations(frame) | {theirs:.2f} |")
    print(f"| skrub over tabweave | {theirs / ours:.0f} × |")
    print(f"\nLargest difference of Cramér's V between the two: {apart:.1e}")


if __name__ == "__main__":
    main()
