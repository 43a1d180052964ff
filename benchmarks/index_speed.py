"""Speed and recall of SimilarityIndex at a million rows: graph against exact against faiss's own.

Usage: python benchmarks/index_speed.py [--rows N] [--tables ...] [--no-report]
Needs faiss (`pip install faiss-cpu`).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from _report import Report, best_of
from tabweave import SimilarityIndex, Weave
from tabweave._compat import n_threads
from tabweave.datasets import make_coupled
from tabweave.datasets.generated import make_codes

K = 10
N_QUERIES = 500
N_FLAT = 100
BREADTHS = (32, 64, 96, 144, 192, 384)
# Measured once, when it was decided who walks; the code that faiss walked by is not kept.
OTHER_WALKS = """
## Could faiss walk the graph?

faiss builds the graph; its own search could also walk it. Measured in processor time, 2 threads,
load 3 to 7 on 2 cores, against exact in the same run; `codes` lets faiss walk our codes as a
product quantizer, `64 axes` walks vectors along the principal axes and ranks what it finds exactly.

| table | walk | recall@10 | ms a query | times exact |
|---|---|---|---|---|
| categories | ours, breadth 144 | 0.961 | 0.231 | 26.7 |
| categories | faiss, codes | 0.961 | 0.257 | 24.0 |
| categories | faiss HNSW, 64 axes, efSearch 144 | 0.866 | 0.361 | 17.1 |
| categories | faiss HNSW, 64 axes, efSearch 384 (a calmer run) | 0.959 | | 7.5 |
| categories and numbers | ours, breadth 144 | 0.9764 | 0.271 | 19.7 |
| categories and numbers | faiss, codes | 0.9766 | 0.269 | 19.8 |
| categories and numbers | faiss HNSW, 64 axes, efSearch 144 | 0.940 | 0.417 | 12.8 |
| categories and numbers | faiss HNSW, 64 axes, efSearch 384 | 0.985 | | 5.7 |

Our walk stays. Vectors with re-ranking miss the bar of 20 times exact at a recall of 0.95 by far.
Codes in faiss are as good, but save no code of ours, hold at most 256 values a byte, and do not
check the bounds of what they read.
"""

# Measured once, when it was decided how the graph is built.
BUILDS = """
## How well is the graph built, and what does the index choose?

Measured once, on a machine that was busy with other work (load 5 to 23 on 2 cores), so by processor
time; exact in the same run. Distances are those of `Weave` since columns are scaled as mismatches
are: 64 principal axes hold 54 % of the inertia of its vectors. `build` is the breadth of the search
for the links of a new node.

| categories | axes | build | processor seconds | recall@10 at breadth 96 | at 144 | at 192 |
|---|---|---|---|---|---|---|
| 100,000 | 64 | 80 | 11 | 0.9476 | 0.9706 | 0.9822 |
| 100,000 | 64 | 160 | 18 | 0.9738 | 0.9908 | 0.9950 |
| 100,000 | all 394 | 80 | 25 | 0.9828 | 0.9932 | 0.9950 |
| 100,000 | all 394 | 160 | 45 | 0.9944 | 0.9972 | 0.9974 |
| 300,000 | 64 | 80 | 47 | 0.8710 | 0.9086 | 0.9458 |
| 300,000 | 128 | 80 | 69 | 0.8982 | 0.9392 | 0.9626 |
| 300,000 | 64 | 160 | 90 | 0.9248 | 0.9616 | 0.9756 |
| 300,000 | all 394 | 128 | 159 | 0.9664 | 0.987 | 0.9892 |

| a million, axes | build | processor s | recall@10 at 144 | at 192 | chosen, recall | times exact |
|---|---|---|---|---|---|---|
| 64 | 80 | 168 | 0.8318 | | 640, 0.9644 | 5.8 |
| 64 | 160 | 368 | 0.9032 | 0.9274 | 384, 0.9728 | 10.0 |
| all 394 | 96 | 527 | 0.9144 | 0.9308 | 320, 0.9562 | 11.3 |
| all 394 | 128 | 664 | 0.9358 | 0.9594 | 256, 0.9666 | 13.6 |

So links are searched with breadth 128, in up to 512 dimensions (fewer where vectors would take more
than 2 GB). Also tried: ending a walk when its ten nearest have not changed for a while (at equal
recall no faster), and 8-bit vectors (three times as slow to build).

## Whose graph?

Until here the graph was faiss's (HNSW), built on one thread, so that links do not depend on timing.
Three ways to build it, 50,000 rows of the categories above, 16 links, processor seconds on one
core, recall@10 at breadth 64 and 96 and what these cost:

| way | processor seconds | recall at 64 | at 96 | ms a query |
|---|---|---|---|---|
| faiss, all 414 dimensions | 10.9 | 0.9928 | 0.9960 | 0.051, 0.065 |
| 33 exact nearest, spread by all 414 dimensions | 5.9 to 8.9 | 0.9954 | 0.9970 | 0.048, 0.063 |
| the same, spread along 128 axes | **4.9** | **0.9952** | **0.9974** | 0.049, 0.062 |

usearch with a compiled metric over codes had taken 4.1 s, recall 0.997, when it was tried; it is
another dependency, and its links depend on timing. Exact neighbours are found on all cores (or on a
device), and are the same every time: the third way stays, faiss goes. A node takes its nearest in
turn, but none that is nearer to one it took (squared, by a fifth) than to the node itself, then
those that took it, likewise. With 1 instead of 1.2 there, recall at 32 is 0.959 instead of 0.987;
with 1.4 it is level, with a quarter more links.

300,000 rows × 20 categories on 16 cores: **14.1 s**; recall@10 0.9518, 0.9766 and 0.9920 at breadth
64, 96 and 144 (faiss: 159 s of processor time on one thread, 0.9664 and 0.987 at 96 and 144 on a
table alike). The search is of all pairs, so that time goes up with the square of the rows: a
million rows were not built, and should take about eleven times as long. Far beyond that a device is
what it takes.

Batches of 256 queries and more among 8,192 rows and more now look up cells (see [neighbors-
speed](neighbors-speed.md)), so exact answers to batches take a fraction of what the tables above
say, and the graph is worth less than it was.

## Where a walk begins, and what it reads ahead

The tables above are of walks that came down faiss's levels, one node at a time. A million rows of
categories, the graph of the last line, walks alone, ms of processor time a query and recall@10. A:
down the levels; B: the same, reading memory ahead; C: from the nearest of 1,024 nodes instead; D:
from the four nearest of them.

| breadth | A | B | C | D |
|---|---|---|---|---|
| 64 | 0.128, 0.8586 | 0.072, 0.8586 | 0.080, 0.9208 | 0.084, 0.9260 |
| 96 | 0.186, 0.9000 | 0.101, 0.9000 | 0.106, 0.9512 | 0.107, 0.9548 |
| 144 | 0.273, 0.9358 | 0.131, 0.9358 | 0.151, 0.9702 | 0.152, 0.9740 |

512 and 2,048 nodes are level; 8, 16 and 48 nearest find no more. So walks begin at the four nearest
of 1,024 nodes, evenly spread, and the levels above the lowest are no longer kept. With that,
cheaper graphs find (breadth 160 and 192): 64 axes, build 80, 169 s: 0.9428 and 0.9550; 64, 128,
283 s: 0.9470 and 0.9606; 128, 96, 313 s: 0.9560 and 0.9664. Also tried: links of our own, pruned by
exact distances after walks (as Vamana's are; 100,000 rows, breadth 64): 0.977 to 0.984 where
faiss's have 0.986.

Coordinates are added only where columns alone are not too far already (categories and numbers,
breadth 96: 0.255 ms without that, 0.198 with it). That, and an exact scan that adds four
coordinates at a time, came after the tables on top; the same two graphs again, load 8: categories,
breadth 112 as chosen, exact 3.98 ms and 0.139 ms of processor time a query, **28.6 times exact**,
recall 0.9622; categories and numbers, breadth 96, 4.41 and 0.197 ms, **22.4 times exact**, recall
0.9574.

What the index measured on its own rows is what new rows get (100,000 rows, build 80, A):

| table | breadth chosen | recall@10 of its own rows | of 500 new rows |
|---|---|---|---|
| categories | 128 | 0.9655 | 0.9658 |
| categories and numbers | 80 | 0.9604 | 0.9666 |
| no structure | 1024 | 0.9614 | 0.9630 |
"""


def coupled(n: int) -> dict[str, Any]:
    """Draw 20 columns of about 20 values (10 to 40, skewed) from 50 hidden clusters."""
    data = make_coupled(n, 20, 20, 50, coupling=0.6, heterogeneity=0.5, random_state=0)
    return dict(data.columns)


def mixed(n: int) -> dict[str, Any]:
    """Draw 12 such columns and 4 numbers that follow the same clusters."""
    data = make_coupled(n, 12, 20, 50, coupling=0.6, heterogeneity=0.5, random_state=0)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(50, 4))
    clusters = data.y.astype(int)
    numbers = centres[clusters] + rng.normal(scale=0.7, size=(n, 4))
    return dict(data.columns) | {f"n{j}": numbers[:, j] for j in range(4)}


def random(n: int) -> dict[str, Any]:
    """Draw 20 columns of 20 equally likely values, nearly independent: nothing to hold on to."""
    codes = make_codes(n, 20, 20, random_state=0)
    return {f"c{j}": codes[:, j].astype(str) for j in range(20)}


def cut(table: dict[str, Any], rows: slice) -> dict[str, Any]:
    return {name: cells[rows] for name, cells in table.items()}


def recall(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the share of answers that are no farther than the k-th true neighbour."""
    return float((found <= exact[:, -1:] * (1 + 1e-9)).mean())


def timed(call: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Return the shortest wall time and the shortest processor time of several calls."""
    wall, cpu = [], []
    for _ in range(repeats):
        starts = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - starts[0])
        cpu.append(time.process_time() - starts[1])
    return min(wall), min(cpu)


def compare(report: Report, title: str, table: dict[str, Any], embedder: Any, bar: bool) -> None:
    report.section(title)
    n = len(next(iter(table.values()))) - N_QUERIES
    rows, asked = cut(table, slice(n)), cut(table, slice(n, None))
    few, one = cut(asked, slice(N_FLAT)), cut(asked, slice(1))
    index = SimilarityIndex(embedder.fit(rows)).fit(rows)
    truth = index.query(asked, K).distances
    report.line(
        f"- {n:,} rows, {len(index._ready().view().nodes):,} distinct, {len(table)} columns, "
        f"vectors of {embedder.transform(one).shape[1]} dimensions"
    )
    exact = timed(lambda: index.query(asked, K), 2)
    alone = best_of(lambda: index.query(one, K)) * 1e3
    report.line(f"- exact: **{_each(exact, N_QUERIES)}**; one row asked alone {alone:.2f} ms")
    vectors = faiss.IndexFlatL2(embedder.transform(one).shape[1])
    vectors.add(embedder.transform(rows).astype(np.float32))

    def nearest_vectors() -> np.ndarray:
        return vectors.search(embedder.transform(few).astype(np.float32), K)[0]

    flat, nearest = timed(nearest_vectors, 2), nearest_vectors()
    farthest = truth[:N_FLAT, -1:] * (1 + 1e-4)  # float32 rounds
    agree = float((np.sqrt(np.maximum(nearest, 0)) <= farthest).mean())
    report.line(f"- faiss-flat: {_each(flat, N_FLAT)}, recall@{K} {agree:.4f}")
    vectors.reset()  # room for the graph
    start = time.perf_counter(), time.process_time()
    index.set_params(backend="graph", breadth=BREADTHS[0]).query(few, K)
    report.line(
        f"- building the graph: {time.perf_counter() - start[0]:.0f} s, "
        f"{time.process_time() - start[1]:.0f} s of processor time"
    )
    sweep(report, index, asked, truth, exact, flat)
    verdict(report, index, asked, truth, bar)
    other_questions(report, index, asked)


def _each(seconds: tuple[float, float], n: int) -> str:
    wall, cpu = (1e3 * s / n for s in seconds)
    return f"{wall:.2f} ms a query ({cpu:.2f} ms of processor time)"


def sweep(report: Report, index: Any, asked: Any, truth: np.ndarray, exact: Any, flat: Any) -> None:
    """Show what breadth buys."""
    report.line(
        f"\n| breadth | ms a query | its processor time | times exact, by processor time "
        f"| times faiss-flat, likewise | recall@{K} |"
    )
    report.line("|---|---|---|---|---|---|")
    for breadth in BREADTHS:
        index.set_params(breadth=breadth)
        wall, cpu = timed(lambda: index.query(asked, K), 5)
        share = recall(index.query(asked, K).distances, truth)
        against = exact[1] / cpu, flat[1] / N_FLAT * N_QUERIES / cpu
        report.line(
            f"| {breadth} | {1e3 * wall / N_QUERIES:.3f} | {1e3 * cpu / N_QUERIES:.3f} "
            f"| {against[0]:.0f} | {against[1]:.0f} | {share:.4f} |"
        )


def verdict(report: Report, index: Any, asked: Any, truth: np.ndarray, bar: bool) -> None:
    """Measure exact and graph, at the breadth it chooses, in turns: both meet the same load."""
    one = cut(asked, slice(1))
    start = time.perf_counter(), time.process_time()
    index.set_params(breadth="auto").query(one, K)
    took = time.perf_counter() - start[0], time.process_time() - start[1]
    report.line(
        f"\nThe index chose breadth {index.breadth_} by its own rows (recall@{K} there "
        f"{index.recall_:.4f}), in {took[0]:.1f} s ({took[1]:.1f} s of processor time):\n"
    )
    share = recall(index.query(asked, K).distances, truth)
    alone = best_of(lambda: index.query(one, K)) * 1e3
    report.line(f"- one row asked alone: {alone:.2f} ms")
    exact, graph = [], []
    for _ in range(5):
        exact.append(timed(lambda: index.set_params(backend="exact").query(asked, K), 1))
        graph.append(timed(lambda: index.set_params(backend="graph").query(asked, K), 3))
    (wall, cpu), (faster, fewer) = np.min(exact, axis=0), np.min(graph, axis=0)
    if not bar:
        report.line(f"- recall@{K} {share:.4f}, {wall / faster:.1f}× exact")
        return
    passed = "passed" if share >= 0.95 else "MISSED"
    report.line(f"- recall@{K}: **{share:.4f}** (bar: 0.95; {passed})")
    report.ratio(f"{N_QUERIES} queries against exact", wall, faster, 20)
    report.ratio("the same in processor time", cpu, fewer, 20)


def other_questions(report: Report, index: SimilarityIndex, asked: dict[str, Any]) -> None:
    """Time filters, partial rows, adding, removing and files."""
    first = next(iter(asked))
    common = max(set(asked[first].tolist()), key=asked[first].tolist().count)

    def tell(what: str, call: Any) -> None:
        start = time.perf_counter()
        call()
        report.line(f"- {what}: {time.perf_counter() - start:.2f} s")

    some = {name: asked[name] for name in list(asked)[:3]}
    tell(
        f"{N_QUERIES} queries with a filter that most rows pass",
        lambda: index.query(asked, K, where={first: lambda v: v != common}),
    )
    tell(f"{N_QUERIES} queries by 3 columns, the first time", lambda: index.query(some, K))
    tell(f"{N_QUERIES} queries by 3 columns, again", lambda: index.query(some, K))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.index"
        tell("saving", lambda: index.save(path))
        report.line(f"- file: {path.stat().st_size / 1e6:.0f} MB")
        tell("loading", lambda: SimilarityIndex.load(path))
    tell("removing 1,000 rows", lambda: index.remove(np.arange(1000)))
    tell(f"adding {N_QUERIES} rows", lambda: index.add(asked))
    tell("the first query after that", lambda: index.query(asked, K))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    faiss.omp_set_num_threads(n_threads())
    names = ("categories", "mixed", "random")
    parser.add_argument("--tables", nargs="+", choices=names, default=names)
    parser.add_argument("--no-report", action="store_true")
    options = parser.parse_args()
    n = options.rows + N_QUERIES
    command = " ".join(["python benchmarks/index_speed.py", *sys.argv[1:]])
    report = Report("Search among a million rows", command)
    report.line(
        f"faiss {version('faiss-cpu')}; {n_threads()} threads for every backend, load average "
        f"{os.getloadavg()[0]:.1f} at the start. {N_QUERIES:,} rows that are not stored are asked "
        f"about in one batch ({N_FLAT} for faiss-flat); best of several runs. Processor time is "
        "what is left of a figure when other work shares the machine.\n"
    )
    report.line(
        "Categories have many ties, so recall goes by distance: an answer counts if it is no "
        "farther than the 10th true neighbour (up to 1e-9 of its size)."
    )
    small = options.rows // 5 + N_QUERIES
    if "categories" in options.tables:
        compare(report, "Categories", coupled(n), Weave(), bar=True)
    if "mixed" in options.tables:
        compare(report, "Categories and numbers", mixed(n), Weave(), bar=True)
    if "random" in options.tables:
        compare(report, "The hard case: no structure", random(small), Weave(), bar=False)
    report.line(BUILDS.rstrip())
    report.line(OTHER_WALKS.rstrip())
    report.finish(None if options.no_report else "index.md")


if __name__ == "__main__":
    main()
