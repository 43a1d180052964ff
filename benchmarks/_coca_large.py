"""CoCA on many sparse rows: time, and memory of a process that does nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from _report import Report
from tabweave import CoCA, Sources


def large_sources(n: int, p: int, d: int) -> tuple[Sources, np.ndarray]:
    """Ten topics; in each source a row has 20 of d words, half of them its topic's; one graph."""
    rng = np.random.default_rng(0)
    topic = rng.integers(0, 10, n)
    tables = {}
    for j in range(p):
        own = topic[:, None] * (d // 10) + rng.integers(0, d // 10, (n, 10))
        words = np.hstack([own, rng.integers(0, d, (n, 10))])
        X = sp.csr_array((np.ones(words.size), words.ravel(), np.arange(0, 20 * n + 1, 20)), (n, d))
        X.sum_duplicates()
        tables[f"s{j}"] = (np.arange(n), X)
    order, at = np.argsort(topic, kind="stable"), rng.integers(0, n, 4 * n)
    left, right = order[at], order[(at + rng.integers(1, 100, 4 * n)) % n]  # mostly of one topic
    edges = sp.csr_array((np.ones(4 * n), (left, right)), (n, n))
    return Sources(tables, {"g": (np.arange(n), edges)}), topic


def peak_while(call: Callable[[], object]) -> tuple[float, float]:
    """Return seconds, and by how many bytes the resident memory rose at most."""
    import psutil

    process, stop, peak = psutil.Process(), threading.Event(), [0]
    before = process.memory_info().rss

    def watch() -> None:
        while not stop.wait(0.01):
            peak[0] = max(peak[0], process.memory_info().rss - before)

    thread = threading.Thread(target=watch)
    thread.start()
    start = time.perf_counter()
    call()
    seconds = time.perf_counter() - start
    stop.set()
    thread.join()
    return seconds, float(peak[0])


def measure_large() -> dict[str, float]:
    CoCA(2).fit(np.random.default_rng(0).normal(size=(600, 600)))  # whatever loads once
    sources, topic = large_sources(50_000, 6, 2_000)
    labels = {int(i): int(topic[i]) for i in range(0, 50_000, 50)}
    model = CoCA(10)
    seconds, peak = peak_while(lambda: model.fit(sources, labels))
    start = time.perf_counter()
    phi = model.transform(sources)
    out = {"fit": seconds, "peak": peak, "transform": time.perf_counter() - start}
    found = KMeans(10, n_init=3, random_state=0).fit_predict(phi)
    return {**out, "nmi": float(normalized_mutual_info_score(topic, found))}


def large(report: Report) -> None:
    report.section("50,000 rows × 6 sources × 2,000 sparse columns, one graph of 200,000 edges")
    command = [sys.executable, __file__]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = json.loads(text.splitlines()[-1])
    matrix = 12_000**2 * 8
    report.line(f"- fit {found['fit']:.1f} s, transform {found['transform']:.1f} s, 10 components")
    report.line(f"- NMI of k-means with the ten topics: {found['nmi']:.3f}")
    passed = "passed" if found["peak"] < matrix else "MISSED"
    report.line(
        f"- memory added by fit at its peak: **{found['peak'] / 1e6:.0f} MB** (bar: below the "
        f"{matrix / 1e6:.0f} MB of a dense (Σd)² matrix; {passed})"
    )


if __name__ == "__main__":
    print(json.dumps(measure_large()))
