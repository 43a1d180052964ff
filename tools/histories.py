"""Read every estimator while it is updated, for as long as one likes, and count torn answers.

Usage: python tools/histories.py [--minutes M] [--processes P]

First an update is published at each line that each reader runs (at some, if learning is slow),
then threads read and update at random until the time is over; both as in
``tests/test_updates.py``, whose tests do less of it. An answer that belongs to no state of the
estimator is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import sys
import time
import warnings
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1] / "tests" / "test_updates.py"
LINES_SECONDS = 150  # about, for an estimator: fewer lines of those that learn slowly
READS = 200  # of each reader, between two looks at the clock


def histories() -> Any:
    """The module of the tests."""
    spec = importlib.util.spec_from_file_location("test_updates", TESTS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["test_updates"] = module
    spec.loader.exec_module(module)
    return module


def read_at_lines(number: int) -> tuple[str, int, list[Any]]:
    """Name of an estimator, reads with an update at a line, torn answers."""
    tests = histories()
    warnings.simplefilter("ignore")
    cls = tests.UPDATED[number]
    history, model, start = tests.History(cls), tests.small(cls), time.process_time()
    tests.bring_to(history, model, 1)
    n_lines = int(LINES_SECONDS / 50 / (time.process_time() - start))  # five readers and two copies
    return f"{cls.__module__}.{cls.__name__}", *tests.answers_torn_at_a_line(cls, max(1, n_lines))


def read_at_random(job: tuple[int, float]) -> tuple[str, int, list[Any]]:
    """Name of an estimator, reads beside updates of another thread, torn answers."""
    tests = histories()
    warnings.simplefilter("ignore")
    sys.setswitchinterval(1e-6)
    cls, end = tests.UPDATED[job[0]], time.monotonic() + job[1]
    n_reads, torn = 0, []
    while time.monotonic() < end:
        torn += tests.torn_answers(cls, READS)
        n_reads += READS * len(tests.History(cls).readers())
    return f"{cls.__module__}.{cls.__name__}", n_reads, torn


def main() -> int:
    """Read all estimators, and print what was torn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="of reads at random, in all")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    options = parser.parse_args()
    numbers = range(len(histories().UPDATED))
    seconds = 60 * options.minutes * options.processes / len(numbers)
    n_torn = 0
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for title, work, jobs in (
            ("updates at each line", read_at_lines, numbers),
            ("updates at random", read_at_random, [(number, seconds) for number in numbers]),
        ):
            total = 0
            for name, n_reads, torn in pool.imap_unordered(work, jobs, chunksize=1):
                print(f"{title}: {name}: {n_reads} reads, {len(torn)} torn {torn[:2]}", flush=True)
                n_torn, total = n_torn + len(torn), total + n_reads
            print(f"{title}: {total} reads of {len(numbers)} estimators", flush=True)
    return int(n_torn > 0)


if __name__ == "__main__":
    sys.exit(main())
