"""Counting, fitting and transforming more rows than fit in memory, beside DuckDB's own group-by.

    python benchmarks/scale.py [--rows 50000000] [--folder FOLDER]

The table has 20 columns of 10 text values, coupled through a hidden group, in Parquet files of
5,000,000 rows. It is made in the folder (a temporary one by default) and deleted afterwards. Every
step is a process of its own, so that its peak of memory is its own, too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np

from _report import Report

COLUMNS, VALUES, FILE_ROWS = 20, 10, 5_000_000
NAMES = [f"c{i}" for i in range(COLUMNS)]
PAIRS = list(combinations(NAMES, 2))


# -- steps, each in its own process -------------------------------------------------------------


def make(folder: str, rows: int) -> dict:
    """Write the table, a million rows at a time."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    words = [pa.array([f"{name} value {v}" for v in range(VALUES)]) for name in NAMES]
    schema = pa.schema([(name, pa.string()) for name in NAMES])
    written = 0
    while written < rows:
        stop = min(written + FILE_ROWS, rows)
        with parquet.ParquetWriter(f"{folder}/part-{written:010d}.parquet", schema) as file:
            for start in range(written, stop, 1_000_000):
                n = min(1_000_000, stop - start)
                group = rng.integers(0, 8, n)
                table = []
                for i in range(COLUMNS):
                    told = rng.random(n) < 0.5
                    codes = np.where(told, group * (i + 1) % VALUES, rng.integers(0, VALUES, n))
                    codes = pa.array(codes.astype(np.int32))
                    table.append(pa.DictionaryArray.from_arrays(codes, words[i]).cast(pa.string()))
                file.write_table(pa.table(table, schema=schema))
        written = stop
    size = sum(p.stat().st_size for p in Path(folder).glob("part-*.parquet"))
    return {"bytes": size}


def count(folder: str, rows: int) -> dict:
    """Count all pairs."""
    import tabweave

    tabweave.count({"a": ["x"] * 10, "b": ["y"] * 10})  # compiled loops are loaded
    start = time.perf_counter()
    counts = tabweave.count(f"{folder}/part-*.parquet")
    seconds = time.perf_counter() - start
    assert counts.n == rows
    counts.save(f"{folder}/counts.tabweave")
    return {"seconds": seconds}


def fit(folder: str, rows: int) -> dict:
    """Fit UNTIE on the files."""
    from tabweave import UNTIE

    UNTIE(n_clusters=2).fit({"a": ["x", "y"] * 10, "b": ["y"] * 20})
    start = time.perf_counter()
    untie = UNTIE(n_clusters=8).fit(f"{folder}/part-*.parquet")
    seconds = time.perf_counter() - start
    assert untie.counts_.n == rows
    return {"seconds": seconds, "dimensions": len(untie.get_feature_names_out())}


def group_by(folder: str, rows: int) -> dict:
    """Let DuckDB count the same pairs, one query each, and compare."""
    import duckdb

    from tabweave import Counts

    counts = Counts.load(f"{folder}/counts.tabweave")
    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order=false")
    seconds, differences = 0.0, 0
    for a, b in PAIRS:
        query = f"SELECT {a}, {b}, count(*) FROM '{folder}/part-*.parquet' GROUP BY {a}, {b}"
        start = time.perf_counter()
        found = connection.execute(query).fetchall()
        seconds += time.perf_counter() - start
        block = counts.block(a, b)
        left, right = counts.labels[NAMES.index(a)], counts.labels[NAMES.index(b)]
        differences += sum(block[left.index(v), right.index(w)] != n for v, w, n in found)
        differences += int(block.sum()) != sum(n for _, _, n in found)
    return {"seconds": seconds, "differences": int(differences)}


def grouping_sets(folder: str, rows: int) -> dict:
    """Let DuckDB count the same pairs in one query of grouping sets."""
    import duckdb

    sets = ", ".join(f"({a}, {b})" for a, b in PAIRS)
    connection = duckdb.connect()
    start = time.perf_counter()
    connection.execute(
        f"SELECT {', '.join(NAMES)}, count(*) FROM '{folder}/part-*.parquet' "
        f"GROUP BY GROUPING SETS ({sets})"
    ).fetchall()
    return {"seconds": time.perf_counter() - start}


def transform(folder: str, rows: int) -> dict:
    """Write the vectors of all rows, and note the memory on the way."""
    from tabweave import UNTIE, Counts
    from tabweave.engines import transform as transform_files
    from tabweave.engines.progress import Progress

    untie = UNTIE(n_clusters=8, dtype="float32").fit_counts(
        Counts.load(f"{folder}/counts.tabweave")
    )
    samples: list[tuple[int, float]] = []

    def note(progress: Progress) -> None:
        if progress.done >= (len(samples) + 1) * rows / 20:
            samples.append((progress.done, resident()))

    start = time.perf_counter()
    target = f"{folder}/vectors.parquet"
    n = transform_files(untie, f"{folder}/part-*.parquet", target, progress=note)
    assert n == rows
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "samples": samples, "bytes": os.path.getsize(target)}


def resident() -> float:
    """Return the memory this process holds, in GB."""
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1e6


STEPS = {f.__name__: f for f in (make, count, fit, group_by, grouping_sets, transform)}


def run(step: str, folder: str, rows: int) -> dict:
    """Run a step in a process of its own and return what it found, with its peak of memory."""
    command = [sys.executable, __file__, "--step", step, "--folder", folder, "--rows", str(rows)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{step}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


# -- the report ---------------------------------------------------------------------------------


def main(rows: int, folder: str, name: str | None) -> None:
    title = f"Scale: {rows:,} rows × {COLUMNS} columns in Parquet"
    report = Report(title, f"python benchmarks/scale.py --rows {rows}")
    load = os.getloadavg()[0]
    report.line(f"Load of the machine when it started: {load:.1f}; see it beside the times.")
    made = run("make", folder, rows)
    counted, fitted = run("count", folder, rows), run("fit", folder, rows)
    by_pair, at_once = run("group_by", folder, rows), run("grouping_sets", folder, rows)
    moved = run("transform", folder, rows)

    report.section("Counting and fitting")
    report.line(
        f"{len(PAIRS)} pairs of columns, {VALUES} values each; {made['bytes'] / 1e9:.1f} GB of "
        "files. Both use all cores.\n"
    )
    report.line("| step | seconds | rows/s | peak GB |")
    report.line("|---|---|---|---|")
    lines = {
        "tabweave.count": counted,
        "UNTIE().fit, counting included": fitted,
        "DuckDB, one GROUP BY a pair": by_pair,
        "DuckDB, one query of grouping sets": at_once,
    }
    for what, found in lines.items():
        speed = rows / found["seconds"]
        report.line(f"| {what} | {found['seconds']:.1f} | {speed:,.0f} | {found['peak']:.2f} |")
    report.line("")
    report.line(f"- Pairs on which tabweave and DuckDB differ: {by_pair['differences']}")
    best = min(by_pair["seconds"], at_once["seconds"])
    report.at_most("Time of counting / DuckDB's better time", counted["seconds"] / best, 4)
    report.at_most("Time of fitting / DuckDB's better time", fitted["seconds"] / best, 4)
    report.at_most("Peak memory of counting and fitting, GB", fitted["peak"], 3)

    report.section("From path to path")
    report.line(
        f"{fitted['dimensions']} dimensions in float32, {moved['bytes'] / 1e9:.1f} GB of Parquet, "
        f"{moved['seconds']:.0f} s ({rows / moved['seconds']:,.0f} rows/s), peak "
        f"{moved['peak']:.2f} GB.\n"
    )
    report.line("| rows done | memory held, GB |")
    report.line("|---|---|")
    for done, held in moved["samples"]:
        report.line(f"| {done:,} | {held:.2f} |")
    held = [h for _, h in moved["samples"]]
    half = len(held) // 2
    report.line("")
    growth = max(held[half:]) / max(held[:half])
    report.at_most("Most memory in the second half / in the first", growth, 1.1)
    report.finish(name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--no-report", action="store_true")
    given = parser.parse_args()
    if given.step:
        found = STEPS[given.step](given.folder, given.rows)
        found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(json.dumps(found))
    else:
        with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
            main(given.rows, scratch, None if given.no_report else "scale.md")
