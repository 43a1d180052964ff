"""GBC against LightGBM on joined features and against averaged boosters, as in the thesis.

Run ``python benchmarks/sources_gbc.py``; cells already measured are kept in ``benchmarks/.cache``.
``--measure mfeat`` measures one task only, so that several can run side by side; ``--large`` trains
on 500,000 rows of 20 sources and notes time and memory. ``--graphs drawn`` (or a task, or
``report``) compares GBC with every member of its team on graphs it was not tuned to, and
``--speed`` its time with that of joined LightGBM. ``--choice 20`` compares rules of fusion,
``--small 3`` priors for few labels.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from typing import Any

import numpy as np

from _cells import Cells
from _gbc_choice import write_choice
from _gbc_data import TASKS
from _gbc_graphs import measure_drawn, measure_real, report_members, version
from _gbc_report import write_published, write_report
from _gbc_runs import ABLATION_SPLITS, SHARES, SPLITS, measure, measure_counts
from _gbc_small import write_small
from _report import Report
from tabweave import GBCClassifier, Sources
from tabweave.sources import gbc


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
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # GB
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
        ),
        "peak": peak,
        "version": version(),
    }


def run_speed(n: int, n_tables: int = 4) -> dict[str, Any]:
    """Time joined LightGBM, GBC without validation and GBC: the same trees, rounds and threads."""
    import lightgbm as lgb

    rng = np.random.default_rng(0)
    y, ids = rng.integers(0, 2, n), np.arange(n)
    tables = {
        f"s{i}": (ids, rng.normal(size=(n, 10)) + (0.1 + 0.1 * i) * y[:, None])
        for i in range(n_tables)
    }
    data, X = Sources(tables), np.hstack([matrix for _, matrix in tables.values()])
    trees = {**gbc.PARAMS, "num_threads": 1}
    off = {"consensus": 0, "connectivity": 0, "graph_smoothing": 0, "weights": "equal"}
    runs = {
        "joined": lambda: lgb.train(
            {**trees, "objective": "binary", "verbosity": -1}, lgb.Dataset(X, y), 100
        ),
        "averaged": lambda: GBCClassifier(100, params=trees, random_state=0, **off).fit(data, y),
        "GBC": lambda: GBCClassifier(100, params=trees, random_state=0).fit(data, y),
    }
    out: dict[str, Any] = {"load": os.getloadavg()[0], "version": version()}
    for name, run in runs.items():
        start, worked = time.perf_counter(), time.process_time()
        run()
        out[name] = [time.perf_counter() - start, time.process_time() - worked]
    return out


def since(found: dict[str, Any]) -> str:
    """Say so if a cell is not of today's GBC."""
    return "" if found.get("version") == version() else " (version before)"


def write_members() -> None:
    """Write what `--graphs` and `--speed` measured."""
    command = "python benchmarks/sources_gbc.py --graphs <drawn or a task>; --graphs report"
    report = Report("GBC against every member of its team", command)
    report.line(
        "Error in %. The same trees and rounds for all; standard errors are of the paired "
        "difference of GBC and the best member over seeds. Drawn families: 500 ids, four classes, "
        "two tables, a graph of four edges an id, of which a share follows the classes (neighbours "
        "alike, or of the partner class), 20 % labels. A setting of cora, citeseer, mfeat or "
        "terrorist that is not in the first table was not measured with this version."
    )
    for title, name in (("Drawn graphs", "gbc-drawn"), ("Real sources", "gbc-real")):
        report.line(f"\n## {title}\n")
        for line in report_members(Cells(name)):
            report.line(line)
        report.line("\nNot measured again, of the version before (one booster a source):\n")
        for line in report_members(Cells(name), former=True):
            report.line(line)
    report.line(
        "\n## Time\n\nOne thread, 100 rounds, four tables of ten columns; seconds of CPU.\n"
    )
    report.line("| rows | joined LightGBM | averaged, no validation | GBC | GBC / joined |")
    report.line("| --- | --- | --- | --- | --- |")
    for key, found in sorted(Cells("gbc-speed").known.items(), key=lambda pair: int(pair[0][0])):
        joined, mean, ours = (found[name][1] for name in ("joined", "averaged", "GBC"))
        cells = f"{joined:.2f} | {mean:.2f} | {ours:.2f} | {ours / joined:.1f}"
        report.line(f"| {int(key[0]):,}{since(found)} | {cells} |")
    for found in Cells("sources-gbc-large").known.values():
        report.section(f"500,000 rows of 20 sources{since(found)}")
        report.line(found["text"] + "\n")
        if "peak" in found:
            passed = "passed" if found["peak"] <= 5 else "MISSED"
            report.line(f"- peak memory: **{found['peak']:.1f} GB** (bar: 5; {passed})")
    report.finish("sources-gbc-members.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", choices=list(TASKS), help="measure one task, write no report")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--graphs", choices=["drawn", "report", *TASKS])
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--speed", type=int, help="number of rows")
    parser.add_argument("--choice", type=int, help="number of seeds for each family")
    parser.add_argument("--small", type=int, help="number of seeds for each set")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--ablations", type=int, default=ABLATION_SPLITS, help="of so many splits")
    parser.add_argument("--published", action="store_true", help="as published: report, of cells")
    args = parser.parse_args()
    cells = Cells("sources-gbc")
    if args.choice:
        write_choice(args.choice)
        return
    if args.small:
        write_small(args.small)
        return
    if args.speed:
        Cells("gbc-speed").get((str(args.speed),), lambda: run_speed(args.speed))
        return
    if args.graphs == "drawn":
        measure_drawn(Cells("gbc-drawn"), args.splits)
        return
    if args.graphs == "report":
        write_members()
        return
    if args.graphs:
        measure_real(Cells("gbc-real"), args.graphs, args.splits, tuple(args.shares))
        return
    if args.large:
        Cells("sources-gbc-large").get(("large",), run_large)
    elif args.measure:
        measure(cells, args.measure, args.splits, args.ablations)
        if args.measure == "movies":
            measure_counts(cells, args.splits)
        return
    elif args.published:
        write_published(cells)
        return
    else:
        for name in TASKS:
            measure(cells, name, args.splits, args.ablations)
        measure_counts(cells, args.splits)
    write_report(Cells("sources-gbc"))


if __name__ == "__main__":
    main()
