"""What a CUDA device does: pair counts and exact neighbours, beside PyTorch and the cores.

``python benchmarks/gpu.py`` prints the tables of ``benchmarks/reports/gpu.md``. It needs a device
and CuPy; PyTorch, if it is there, is the peer. Each figure is the best of three runs.

``--rows`` and ``--large`` are the rows of the searches, ``--counted`` those of the counts.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

import tabweave
from tabweave._compat import in_threads
from tabweave.cluster.kmeans import fitted_kmeans
from tabweave.counts.counting import pack_columns
from tabweave.gpu import arrays
from tabweave.space.scan import Nodes, Queries, _nearest_on_cpu, nearest_nodes


def best_of(work: Callable[[], Any], repeats: int = 3) -> float:
    """Seconds of the fastest run, the device's work included; one run goes before."""
    xp = arrays.device().xp
    work()
    times = []
    for _ in range(repeats):
        xp.cuda.Device().synchronize()
        start = time.perf_counter()
        work()
        xp.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


def machine(xp: Any) -> None:
    """Print what this ran on."""
    properties = xp.cuda.runtime.getDeviceProperties(0)
    name = properties["name"].decode()
    print(f"{name}, {properties['multiProcessorCount']} multiprocessors,", end=" ")
    print(f"{properties['clockRate'] / 1e6:.2f} GHz, driver {xp.cuda.runtime.driverGetVersion()},")
    print(f"CuPy {xp.__version__}, {os.cpu_count()} cores")
    data, out = xp.zeros(1 << 28), xp.zeros(1 << 28)
    copy = best_of(lambda: xp.copyto(out, data))
    print(f"copy on the device: {2 * data.nbytes / copy / 1e12:.2f} TB/s\n")


def counted(n_rows: int, skew: str, n_columns: int = 20, n_values: int = 10) -> None:
    """Count all pairs of resident columns."""
    device = arrays.device()
    random, columns = device.xp.random, []
    for _ in range(n_columns):
        column = random.randint(0, n_values, n_rows, dtype=np.uint8)
        if skew == "skewed":
            column *= random.randint(0, 20, n_rows, dtype=np.uint8) == 0
        columns.append(column)
    sizes = [n_values] * n_columns
    groups = pack_columns(sizes, arrays.max_joint(device))
    joint = np.array([n_values ** len(group) for group in groups])
    pairs = np.stack(np.triu_indices(len(groups), 1), axis=1)

    def pack() -> Any:
        return arrays.packed_codes(device, columns, groups, sizes)

    packed = pack()
    tables = best_of(lambda: arrays.pair_tables(device, packed, n_rows, joint, pairs))
    seconds = best_of(lambda: arrays.pair_tables(device, pack(), n_rows, joint, pairs))
    print(f"| {n_rows:,} × {n_columns}, {skew} | {1e3 * tables:.1f} | {1e3 * seconds:.1f} |")


def searched(n_nodes: int, n_categories: int, n_numbers: int, n_queries: int, k: int = 10) -> None:
    """Search the nearest of distinct made rows, and compare with the CPU's answers."""
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 10, n_nodes, dtype=np.uint8) for _ in range(n_categories)]
    line = np.empty((4 * n_numbers, n_nodes))
    in_threads(lambda c: np.random.default_rng(c).standard_normal(out=line[c]), range(len(line)))
    nodes = Nodes.of(codes, [10] * n_categories, line)
    asked = rng.integers(0, n_nodes, n_queries)
    tables = []
    for _ in range(n_categories):
        table = rng.random((10, 10))
        tables.append((table + table.T) * (1 - np.eye(10)))
    points = line[:, asked].T + 0.01 * rng.normal(size=(n_queries, len(line)))
    queries = Queries.of([c[asked] for c in codes], tables, points)
    device = arrays.device()
    start = time.perf_counter()
    resident = arrays.DeviceNodes.of(device, nodes)
    copied = time.perf_counter() - start
    named = f"| {n_nodes:,} × ({n_categories} + {n_numbers}) | {n_queries:,}"

    def search() -> Any:
        return arrays.nearest(device, resident, queries.values, queries.points, k, None)

    seconds = best_of(search)
    on_device = arrays.DeviceQueries.of(
        device, resident, queries.values(slice(None)), queries.points
    )
    kernels = best_of(lambda: arrays._nearest(device, resident, on_device, n_queries, k, None))
    few = np.arange(32 if n_nodes * (n_numbers + 1) < 1 << 29 else 4)
    start = time.perf_counter()
    expected = _nearest_on_cpu(nodes, queries.take(few), k, np.arange(n_nodes))
    cpu = (time.perf_counter() - start) / len(few)
    distances, rows, unfinished = search()
    same = (rows[few] == expected[1]).all() and (distances[few] == expected[0]).all()
    per_query = [1e6 * s / n_queries for s in (kernels, seconds)]
    print(
        f"{named} | {per_query[0]:.2f} | {per_query[1]:.2f} | {1e6 * cpu:,.0f} | "
        f"{'equal' if same else 'DIFFERENT'}, {unfinished.sum()} left | {copied:.2f} |",
        flush=True,
    )


def streamed(n_nodes: int, n_queries: int, n_blocks: int, k: int = 10) -> None:
    """Search nodes as if the device held one of so many blocks of them at a time."""
    rng = np.random.default_rng(0)
    nodes = Nodes.of([], [], rng.standard_normal((40, n_nodes)))
    queries = Queries.of([], [], np.ascontiguousarray(nodes.line[:, :n_queries].T))
    times, answers = [], []
    for blocks in (1, n_blocks):
        edges = [n_nodes * i // blocks for i in range(blocks + 1)]
        nodes.__dict__["device_blocks"] = [slice(*pair) for pair in pairwise(edges)]
        answers.append(nearest_nodes(nodes, queries, k))
        times.append(best_of(lambda: nearest_nodes(nodes, queries, k), 1))
        nodes.__dict__.pop("on_device", None)
    same = all(np.array_equal(*pair) for pair in zip(*answers, strict=True))
    print(
        f"| {n_nodes:,} x 40 coordinates | {n_queries:,} | {times[0]:.2f} | {n_blocks} | "
        f"{times[1]:.2f} | {'equal' if same else 'DIFFERENT'} |",
        flush=True,
    )


def clusters(n_rows: int) -> None:
    """k-modes and k-means on the cores and on the device."""
    rng = np.random.default_rng(2)
    group = rng.integers(0, 12, n_rows)
    names = np.array(list("abcdefghij"))
    frame = {
        f"c{i}": names[(group + (rng.random(n_rows) < 0.5) * rng.integers(0, 10, n_rows)) % 10]
        for i in range(20)
    }
    points = rng.normal(size=(n_rows, 64)) + rng.normal(size=(12, 64))[group]
    fits: dict[str, Callable[[], Any]] = {
        f"KModes(10), {n_rows:,} x 20": lambda: tabweave.KModes(10, random_state=0).fit(frame),
        f"k-means, 10 of 10 starts, {n_rows:,} x 64": lambda: fitted_kmeans(
            KMeans(10, n_init=10, random_state=0), points
        ),
    }
    for name, fit in fits.items():
        models, times = [], []
        for device in ("cpu", "gpu"):
            with tabweave.config_context(device=device):
                for _ in range(2):
                    start = time.perf_counter()
                    model = fit()
                    seconds = time.perf_counter() - start
            models.append(model)
            times.append(seconds)
        same = np.array_equal(models[0].labels_, models[1].labels_)
        print(
            f"| {name} | {times[0]:.2f} | {times[1]:.2f} | {'equal' if same else 'DIFFERENT'} |",
            flush=True,
        )


def torch_search(n_nodes: int, n_axes: int, n_queries: int, k: int = 10) -> None:
    """Nearest by PyTorch: a product and topk, queries in blocks."""
    try:
        import torch
    except ImportError:
        return
    rows = torch.randn(n_nodes, n_axes, device="cuda")
    asked = torch.randn(n_queries, n_axes, device="cuda")
    norms = (rows * rows).sum(1)

    def search() -> None:
        for block in asked.split(256):
            torch.topk(norms - 2 * block @ rows.T, k, largest=False)
        torch.cuda.synchronize()

    per_query = 1e6 * best_of(search) / n_queries
    print(f"| PyTorch, {n_nodes:,} × {n_axes} axes | {n_queries:,} | {per_query:.1f} |")


def faiss_search(n_nodes: int, n_axes: int, n_queries: int, k: int = 10) -> None:
    """Nearest by faiss's flat index on the device, if faiss is there."""
    try:
        import faiss

        index = faiss.GpuIndexFlatL2(faiss.StandardGpuResources(), n_axes)
    except (ImportError, AttributeError, OSError):
        return
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n_nodes, n_axes), np.float32)
    index.add(rows)
    asked = np.ascontiguousarray(rows[:n_queries])
    per_query = 1e6 * best_of(lambda: index.search(asked, k)) / n_queries
    named = f"faiss {faiss.__version__} (flat, float32)"
    print(f"| {named}, {n_nodes:,} × {n_axes} axes | {n_queries:,} | {per_query:.1f} |")


def resident(n_rows: int, n_columns: int = 20) -> None:
    """Count columns that lie on the device, and look up their vectors there."""
    random = arrays.device().xp.random
    rows = {f"c{i}": random.randint(0, 10, n_rows, dtype=np.uint8) for i in range(n_columns)}
    seconds = best_of(lambda: tabweave.count(rows, schema="nominal"), 2)
    print(f"| count | {n_rows:,} × {n_columns} | {seconds:.3f} |", flush=True)
    few = {name: cells[: n_rows // 10] for name, cells in rows.items()}
    model = tabweave.OneHot(schema="nominal", dtype="float32").fit(few)
    seconds = best_of(lambda: model.transform(few), 2)
    shape = model.transform(few).shape
    print(f"| transform to {shape[1]} axes, float32 | {shape[0]:,} × {n_columns} | {seconds:.3f} |")
    host = {name: arrays.on_host(cells) for name, cells in few.items()}
    with tabweave.config_context(device="cpu"):
        start = time.perf_counter()
        vectors = model.transform(host)
        seconds = time.perf_counter() - start
    same = np.array_equal(arrays.on_host(model.transform(few)), vectors)
    print(f"| the same on the cores ({'equal' if same else 'DIFFERENT'}) | | {seconds:.3f} |")


def duplicates(n_rows: int) -> None:
    """Find near pairs on the cores and on the device."""
    rng = np.random.default_rng(3)
    frame = {f"c{i}": rng.choice(list("abcdefgh"), n_rows) for i in range(6)}
    frame |= {f"x{i}": np.round(rng.normal(size=n_rows), 3) for i in range(6)}
    row = np.minimum(np.arange(n_rows), rng.integers(0, n_rows, n_rows))
    frame = {name: cells[row] for name, cells in frame.items()}
    frame["x0"] = frame["x0"] + rng.choice([0.0, 0.001], n_rows)
    times, pairs = [], []
    for device in ("cpu", "gpu"):
        with tabweave.config_context(device=device):
            index = tabweave.SimilarityIndex(tabweave.OneHot()).fit(frame)
            start = time.perf_counter()
            pairs.append(index.duplicates(0.5, max_pairs=10**8))
            times.append(time.perf_counter() - start)
    same = all(np.array_equal(*part) for part in zip(*pairs, strict=True))
    print(
        f"| {n_rows:,} × 12 | {len(pairs[0][0]):,} | {times[0]:.2f} | {times[1]:.2f} | "
        f"{'equal' if same else 'DIFFERENT'} |",
        flush=True,
    )


def estimators(n_rows: int, n_asked: int) -> None:
    """The same through the estimators: an index, all neighbours, a classifier."""
    rng = np.random.default_rng(1)
    group = rng.integers(0, 8, n_rows)
    frame: dict[str, Any] = {
        f"c{i}": (group * (rng.random(n_rows) < 0.6) + rng.integers(0, 6, n_rows))
        for i in range(10)
    }
    schema = dict.fromkeys(frame, "nominal")
    frame |= {f"x{i}": group * 0.5 + rng.normal(size=n_rows) for i in range(8)}
    y = np.array([f"class {g}" for g in group % 3])
    part = {name: cells[:n_asked] for name, cells in frame.items()}
    for name in ("cpu", "gpu"):
        with tabweave.config_context(device=name):
            start = time.perf_counter()
            index = tabweave.SimilarityIndex(tabweave.Weave(schema=schema)).fit(frame)
            fitted = time.perf_counter()
            n = n_asked if name == "gpu" else min(n_asked, 2000)
            few = {column: cells[:n] for column, cells in part.items()}
            index.query(few, k=10)
            first = time.perf_counter()
            answer = index.query(few, k=10)
            done = time.perf_counter()
            print(
                f"| {name} | index: fit {fitted - start:.1f} s | first query of {n:,} rows "
                f"{first - fitted:.2f} s | again {done - first:.2f} s |",
                flush=True,
            )
            if name == "cpu":
                expected = answer
            else:
                same = np.array_equal(answer.ids[: len(expected.ids)], expected.ids)
                print(f"| | neighbours of both | {'equal' if same else 'DIFFERENT'} | |")
                start = time.perf_counter()
                index.query(frame, k=10)
                seconds = time.perf_counter() - start
                print(f"| gpu | ten nearest of each of {n_rows:,} rows | {seconds:.2f} s | |")
            start = time.perf_counter()
            model = tabweave.WeaveClassifier(schema=schema, random_state=0).fit(frame, y)
            fitted = time.perf_counter()
            probabilities = model.predict_proba(few)
            first = time.perf_counter()
            model.predict_proba(few)
            done = time.perf_counter()
            print(
                f"| {name} | classifier: fit {fitted - start:.1f} s | first prediction of {n:,} "
                f"rows {first - fitted:.2f} s | again {done - first:.2f} s |",
                flush=True,
            )
            if name == "cpu":
                wanted = probabilities
            else:
                off = np.abs(probabilities[: len(wanted)] - wanted).max()
                print(f"| | largest difference of probabilities | {off:.1e} | |")


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=100_000_000)
    parser.add_argument("--counted", type=int, default=1_000_000_000)
    parser.add_argument("--queries", type=int, default=10_000)
    every = "machine counts search large streamed torch resident clusters duplicates estimators"
    parser.add_argument("--only", default=every)
    options = parser.parse_args()
    parts = options.only.split()
    tabweave.set_config(device="gpu")
    if "machine" in parts:
        machine(arrays.device().xp)
    if "counts" in parts:
        print("| rows × columns | ms, joint codes resident | ms, columns resident |\n|---|---|---|")
        for skew in ("uniform", "skewed"):
            counted(options.counted, skew)
        print()
    head = "| rows × (categories + numbers) | queries | µs, resident | µs, from the host | "
    head += "µs on the cores | answers | s to copy |\n|---|---|---|---|---|---|---|"
    if "search" in parts:
        print(head)
        for n_queries in (64, options.queries):
            for shape in ((20, 0), (10, 10), (0, 16)):
                searched(options.rows, *shape, n_queries)
        print()
    if "large" in parts:
        print(head)
        searched(options.large, 20, 0, 1024)
        searched(options.large, 10, 10, 1024)
        print()
    if "streamed" in parts:
        print("| rows | queries | s, resident | blocks | s, in blocks | answers |")
        print("|---|---|---|---|---|---|")
        streamed(10 * options.rows, options.queries, 4)
        print()
    if "clusters" in parts:
        print("| fit | s, cores | s, device | labels |\n|---|---|---|---|")
        clusters(options.rows)
        print()
    if "torch" in parts:
        print("| peer | queries | µs a query |\n|---|---|---|")
        torch_search(options.rows, 64, options.queries)
        faiss_search(options.rows, 64, options.queries)
        print()
    if "resident" in parts:
        print("| rows that lie on the device | | s |\n|---|---|---|")
        resident(options.large)
        print()
    if "duplicates" in parts:
        print("| rows | near pairs | s, cores | s, device | pairs |\n|---|---|---|---|---|")
        duplicates(options.rows // 20)
        print()
    if "estimators" in parts:
        print("| device | | | |\n|---|---|---|---|")
        estimators(options.rows, 100_000)


if __name__ == "__main__":
    main()
