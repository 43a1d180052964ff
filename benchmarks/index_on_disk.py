"""An index that stays in its file: how soon it opens, what it takes, and what it answers.

    python benchmarks/index_on_disk.py make 10_000_000 rows.tabweave
    python benchmarks/index_on_disk.py ask rows.tabweave
    python benchmarks/index_on_disk.py ask rows.tabweave --in-memory

Eight columns of 4 to 200 values, of which some follow others. ``ask`` looks for the ten nearest of
100 rows, of which 50 are stored and 50 have new combinations, and prints a hash of the answers.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import time
from pathlib import Path

import numpy as np

from tabweave import SimilarityIndex, Weave

SIZES = (4, 8, 12, 20, 30, 50, 100, 200)
PART_ROWS = 1_000_000


def rows_of(n: int, seed: int) -> dict[str, np.ndarray]:
    """Rows whose columns follow the first one half of the time."""
    rng = np.random.default_rng(seed)
    group = rng.random(n)
    columns = {}
    for number, size in enumerate(SIZES):
        position = np.where(rng.random(n) < 0.5, group, rng.random(n))
        names = np.array([f"c{number}_{value}" for value in range(size)])
        columns[f"c{number}"] = names[(position**2 * size).astype(int)]
    return columns


def resident_megabytes(which: str = "VmRSS") -> float:
    """Memory of this process, now or at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(which))


class Timed:
    """Prints how long a step took, in seconds on the wall and of processors."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def __exit__(self, *error: object) -> None:
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        print(f"{self.name}: {wall:.3f} s, {cpu:.3f} s of processors", flush=True)


def make(n: int, path: str) -> None:
    """Write an index of n rows."""
    embedder = Weave(schema="nominal").fit(rows_of(200_000, 0))
    index = SimilarityIndex(embedder)
    with Timed("stored"):
        for seed in range(-(-n // PART_ROWS)):
            index.add(rows_of(min(PART_ROWS, n - seed * PART_ROWS), seed + 1))
    print(f"rows: {len(index):,}; peak {resident_megabytes('VmHWM'):,.0f} MB", flush=True)
    with Timed("saved"):
        index.save(path, compress=False)
    print(f"bytes a row: {os.path.getsize(path) / n:.1f}")


def ask(path: str, in_memory: bool) -> None:
    """Open an index, ask it, and add to it."""
    print(f"before: {resident_megabytes():,.0f} MB")
    with Timed("opened"):
        index = SimilarityIndex.load(path, mmap=not in_memory)
    print(f"rows: {len(index):,}; now {resident_megabytes():,.0f} MB")
    stored, other = rows_of(50, 1), rows_of(50, 10**6)
    queries = {name: np.concatenate([stored[name], other[name]]) for name in stored}
    with Timed("ten nearest of 100 rows"):
        found = index.query(queries, 10)
    answers = found.ids.tobytes() + found.distances.tobytes()
    print(f"answers: {hashlib.sha256(answers).hexdigest()[:16]}")
    for seed in range(3):
        more = rows_of(1000, 10**7 + seed)
        with Timed("1,000 rows added"):
            index.add(more)
    with Timed("one row asked about"):
        index.query({name: cells[:1] for name, cells in more.items()}, 10)
    print(f"peak: {resident_megabytes('VmHWM'):,.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["make", "ask"])
    parser.add_argument("args", nargs="+")
    parser.add_argument("--in-memory", action="store_true")
    options = parser.parse_args()
    if options.what == "make":
        make(int(options.args[0]), options.args[1])
    else:
        ask(options.args[0], options.in_memory)
