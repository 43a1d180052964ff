"""GBC against LightGBM on joined features and against averaged boosters, as in the thesis.

Run ``python benchmarks/sources_gbc.py``; cells already measured are kept in ``benchmarks/.cache``.
``--measure mfeat`` measures one task only, so that several can run side by side; ``--large`` trains
on 500,000 rows of 20 sources and notes time and memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from typing import Any

import numpy as np

from _cells import Cells
from _gbc_data import TASKS
from _gbc_report import write_report
from _gbc_runs import SPLITS, measure, measure_counts
from tabweave import GBCClassifier, Sources


def run_large(n: int = 500_000, p: int = 20, width: int = 10, threads: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    tables, ids = {}, np.arange(n)
    for i in range(p):
        known = np.flatnonzero(rng.random(n) < 0.7)
        signal = 0.0 if i >= p - 4 else 0.15 + 0.02 * i
        matrix = rng.normal(size=(len(known), width)) + signal * y[known, None]
        matrix[rng.random(matrix.shape) < 0.1] = np.nan
        tables[f"s{i}"] = (ids[known], matrix)
    edges = rng.integers(0, n, (2, 2_000_000))
    edges = edges[:, (y[edges[0]] == y[edges[1]]) | (rng.random(edges.shape[1]) < 0.3)]
    start = time.perf_counter()
    data = Sources(tables, {"calls": {"a": edges[0], "b": edges[1]}})
    built = time.perf_counter() - start
    train = rng.permutation(n)[: n // 2]
    model = GBCClassifier(30, params={"learning_rate": 0.2, "num_threads": threads}, random_state=0)
    start, worked = time.perf_counter(), time.process_time()
    model.fit(data, dict(zip(train.tolist(), y[train].tolist(), strict=True)))
    fitted, worked = time.perf_counter() - start, time.process_time() - worked
    start = time.perf_counter()
    predicted = model.predict(data)
    predict = time.perf_counter() - start
    test = np.ones(n, dtype=bool)
    test[train] = False
    wrong = float(100 * (predicted != y[data.ids])[test[data.ids]].mean())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    noise = [v for k, v in model.source_weights_.items() if int(k[1:]) >= p - 4]
    return {
        "text": (
            f"{n:,} ids, {p} tables of {width} columns (70 % of the ids each, 10 % of the cells "
            f"missing; four of them noise), one graph of {edges.shape[1]:,} edges, "
            f"{n // 2:,} labels, validation on, threads: {threads}. Container {built:.1f} s, "
            f"fit **{fitted:.0f} s** ({worked:.0f} s of CPU; "
            f"{model.n_rounds_} rounds, λ {model.lambdas_}), predict {predict:.0f} s, peak memory "
            f"of the process **{peak:.1f} GB**; error {wrong:.2f} %; largest noise weight "
            f"{max(noise):.4f}. Load of the machine: {os.getloadavg()[0]:.1f}."
        )
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", choices=list(TASKS), help="measure one task, write no report")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--splits", type=int, default=SPLITS)
    args = parser.parse_args()
    cells = Cells("sources-gbc")
    if args.large:
        Cells("sources-gbc-large").get(("large",), run_large)
    elif args.measure:
        measure(cells, args.measure, args.splits)
        if args.measure == "movies":
            measure_counts(cells, args.splits)
        return
    else:
        for name in TASKS:
            measure(cells, name, args.splits)
        measure_counts(cells, args.splits)
    write_report(Cells("sources-gbc"))


if __name__ == "__main__":
    main()
