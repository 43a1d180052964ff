"""What the cores of a machine are worth: learning and asking with 1, 2, 4, 8 and 16 of them.

    python benchmarks/cores.py                      # all steps, as many cores as there are
    python benchmarks/cores.py --threads 1 8 --only count fit
    python benchmarks/cores.py --scale 0.1          # a tenth of the rows
    taskset -c 0 python benchmarks/cores.py --bound 8  # what one core tells of eight

Each number of cores is a process of its own that may use that many and no more. Tables are the
same everywhere; what was learned is compared to the bit. The table on standard output is what
``benchmarks/reports/cores.md`` shows.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

N_VALUES = 10
Step = tuple[Callable[[], Any], Callable[[Any], Any]]  # the work, and what of its result must agree


def mixed(rows: int, categories: int, numbers: int, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Return columns that follow a hidden group, half of the time, and the group."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 8, rows)
    names = [f"value {v}" for v in range(N_VALUES)]
    columns: dict[str, Any] = {}
    for i in range(categories):
        told = rng.random(rows) < 0.5
        codes = np.where(told, group * (i + 1) % N_VALUES, rng.integers(0, N_VALUES, rows))
        columns[f"c{i}"] = pd.Categorical.from_codes(codes, names)
    for i in range(numbers):
        columns[f"x{i}"] = rng.normal(size=rows) + (group - 4) * (i % 3)
    return pd.DataFrame(columns), np.array(list("abcdefgh"))[group]


# -- steps --------------------------------------------------------------------------------------


def count(scale: float) -> Step:
    """Count 2,000,000 rows × 20 categories."""
    from tabweave import Counts

    frame, _ = mixed(int(2_000_000 * scale), 20, 0)
    return lambda: Counts.of(frame), lambda counts: counts.pairs


def fit(scale: float) -> Step:
    """Weave.fit, 1,000,000 rows × 18, a third of them numbers."""
    from tabweave import Weave

    frame, _ = mixed(int(1_000_000 * scale), 12, 6)
    return lambda: Weave().fit(frame), lambda model: model.transform(frame[:1000])


def kmodes(scale: float) -> Step:
    """KModes, 200,000 rows × 20 categories, 10 clusters."""
    from tabweave.cluster import KModes

    frame, _ = mixed(int(200_000 * scale), 20, 0)
    return lambda: KModes(10, random_state=0).fit(frame), lambda model: model.labels_


def classifier(scale: float) -> Step:
    """WeaveClassifier.fit, 100,000 rows × 18."""
    from tabweave import WeaveClassifier

    frame, y = mixed(int(100_000 * scale), 12, 6)
    return lambda: WeaveClassifier().fit(frame, y), lambda model: model.predict_proba(frame[:100])


def imputer(scale: float) -> Step:
    """Imputer.fit, 100,000 rows × 18, a tenth of the cells missing."""
    from tabweave import Imputer

    frame, _ = mixed(int(100_000 * scale), 12, 6)
    rng = np.random.default_rng(1)
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    return lambda: Imputer().fit(frame), lambda model: model.predict_proba(frame[:100], "c0")


def transform(scale: float) -> Step:
    """Weave.transform, 1,000,000 rows × 18, float32."""
    from tabweave import Weave

    frame, _ = mixed(int(1_000_000 * scale), 12, 6)
    model = Weave(dtype="float32").fit(frame[: len(frame) // 10])
    return lambda: model.transform(frame), lambda vectors: vectors[:: max(len(vectors) // 1000, 1)]


def queries(scale: float) -> Step:
    """500 exact queries among 1,000,000 rows × 20 categories."""
    from tabweave import OneHot, SimilarityIndex

    frame, _ = mixed(int(1_000_000 * scale), 20, 0)
    asked, _ = mixed(500, 20, 0, seed=1)
    index = SimilarityIndex(OneHot()).fit(frame)
    return lambda: index.query(asked, 10), lambda answer: answer[1]


def predict(scale: float) -> Step:
    """WeaveClassifier.predict, 10,000 rows after 100,000 × 18."""
    from tabweave import WeaveClassifier

    frame, y = mixed(int(100_000 * scale), 12, 6)
    asked, _ = mixed(int(10_000 * scale), 12, 6, seed=1)
    model = WeaveClassifier().fit(frame, y)
    return lambda: model.predict_proba(asked), lambda proba: proba


STEPS = (count, fit, kmodes, classifier, imputer, transform, queries, predict)


# -- what one core tells ---------------------------------------------------------------------------


class Shares:
    """Stands in for the pool: pieces of work one after the other, and how long each took.

    ``shared`` are processor seconds in pieces of work, ``critical`` those that they take at best
    on so many threads: their mean, or the longest piece if that is longer.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.within: list[list[float]] = []  # what pieces that are not done yet have shared out
        self.shared = self.critical = 0.0

    def in_threads(self, work: Callable[[Any], Any], items: Any) -> list[Any]:
        """Do the work here, and note what it took."""
        results, seconds, longest = [], 0.0, 0.0
        for item in items:
            self.within.append([0.0, 0.0])
            start = time.process_time()
            results.append(work(item))
            taken = time.process_time() - start
            shared, critical = self.within.pop()
            seconds, longest = seconds + taken, max(longest, taken - shared + critical)
        critical = max(seconds / self.threads, longest)
        if self.within:
            self.within[-1][0] += seconds
            self.within[-1][1] += critical
        else:
            self.shared, self.critical = self.shared + seconds, self.critical + critical
        return results


def bounds(options: argparse.Namespace) -> None:
    """Print, for each step, which share of it threads do, and how much faster it can be at best."""
    from tabweave import _compat

    print(f"| processor ms on one core | all | in the pool | at best on {options.bound} | times |")
    print("| --- | ---: | ---: | ---: | ---: |")
    pool = _compat.in_threads
    for step in STEPS:
        if step.__name__ not in options.only:
            continue
        work, _ = step(options.scale)
        work()  # compiled loops are loaded
        found = []
        _compat.n_threads = lambda: options.bound
        for _ in range(options.repeats):
            shares = Shares(options.bound)
            modules = [m for m in sys.modules.values() if vars(m).get("in_threads") is pool]
            for module in modules:
                module.in_threads = shares.in_threads
            start = time.process_time()
            work()
            whole = time.process_time() - start
            for module in modules:
                module.in_threads = pool
            found.append((whole, shares.shared, whole - shares.shared + shares.critical))
        whole, shared, best = min(found)
        print(
            f"| {(step.__doc__ or '').rstrip('.')} | {1e3 * whole:.0f} | {shared / whole:.0%} | "
            f"{1e3 * best:.0f} | {whole / best:.1f} |",
            flush=True,
        )


# -- a process for each number of cores ------------------------------------------------------------


def measured(names: list[str], scale: float, repeats: int) -> dict[str, Any]:
    """Return, for each step, the seconds of its fastest run and a digest of its result."""
    out = {}
    for step in STEPS:
        if step.__name__ in names:
            work, result_of = step(scale)
            result = work()  # compiled loops are loaded
            seconds = []
            for _ in range(repeats):
                start = time.perf_counter()
                result = work()
                seconds.append(time.perf_counter() - start)
            data = np.ascontiguousarray(result_of(result)).tobytes()
            out[step.__name__] = (min(seconds), hashlib.sha256(data).hexdigest()[:12])
    return out


def in_process(threads: int, options: argparse.Namespace) -> dict[str, Any]:
    """Run the steps in a process that may use so many cores."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    command = [sys.executable, "-W", "ignore", __file__, "--child", "--only", *options.only]
    result = subprocess.run(
        [*command, "--scale", str(options.scale), "--repeats", str(options.repeats)],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),  # before NumPy counts them
    )
    return json.loads(result.stdout.splitlines()[-1])


def processor() -> str:
    """Return what the machine calls its processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":")[1].strip() for line in file if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor()


def table(results: dict[int, dict[str, Any]], options: argparse.Namespace) -> list[str]:
    """Return the lines of the table, and what the machine is."""
    packages = ("numpy", "scipy", "scikit-learn", "numba", "pandas")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    lines = [
        f"{processor()}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}; "
        f"Python {platform.python_version()}, {versions}; scale {options.scale:g}, "
        f"fastest of {options.repeats}.",
        "",
        "| seconds with so many cores | " + " | ".join(map(str, results)) + " | times | equal |",
        "| --- |" + " ---: |" * (len(results) + 1) + " --- |",
    ]
    first = next(iter(results.values()))
    for step in STEPS:
        if step.__name__ in first:
            seconds = [result[step.__name__][0] for result in results.values()]
            equal = len({result[step.__name__][1] for result in results.values()}) == 1
            figures = " | ".join(f"{s:.3f}" for s in seconds)
            times = " ".join(f"{seconds[0] / s:.1f}" for s in seconds[1:])
            what = (step.__doc__ or "").rstrip(".")
            lines.append(f"| {what} | {figures} | {times} | {'yes' if equal else 'NO'} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--only", nargs="+", default=[step.__name__ for step in STEPS])
    parser.add_argument("--scale", type=float, default=1.0, help="of the rows")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--bound", type=int, help="on one core: what so many could do at best")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bound:
        bounds(options)
        return
    if options.child:
        print(json.dumps(measured(options.only, options.scale, options.repeats)))
        return
    most = len(os.sched_getaffinity(0))
    results = {n: in_process(n, options) for n in options.threads if n <= most}
    print("\n".join(table(results, options)))


if __name__ == "__main__":
    main()
