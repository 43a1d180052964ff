"""Speed and recall of SimilarityIndex at a million rows: graph against exact against faiss-flat.

Usage: python benchmarks/index_speed.py [--rows 1000000] [--no-report]
Needs the extra ``search`` (faiss).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from _report import Report, best_of
from weft import MixedEmbedder, SimilarityIndex, Weave
from weft._count_kernels import n_threads
from weft.datasets import make_coupled
from weft.datasets.synthetic import make_codes

K = 10
N_QUERIES = 1000
N_FLAT = 100
BREADTHS = (32, 64, 96, 192, 384)


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


def compare(report: Report, title: str, table: dict[str, Any], embedder: Any, bar: bool) -> None:
    report.section(title)
    n = len(next(iter(table.values()))) - N_QUERIES
    rows, asked = cut(table, slice(n)), cut(table, slice(n, None))
    few = cut(asked, slice(N_FLAT))
    embedder = embedder.fit(rows)
    index = SimilarityIndex(embedder).fit(rows)
    truth = index.query(asked, K)
    exact = best_of(lambda: index.query(asked, K), 3) / N_QUERIES
    one = cut(asked, slice(1))
    report.line(
        f"- {n:,} rows, {len(index._ready()._view().heads):,} distinct, {len(table)} columns, "
        f"vectors of {embedder.transform(one).shape[1]} dimensions"
    )
    report.line(f"- exact: **{exact * 1e3:.2f} ms** a query")
    report.line(
        f"- exact, one row asked alone: {best_of(lambda: index.query(one, K)) * 1e3:.2f} ms"
    )
    index.set_params(backend="faiss-flat").query(few, K)
    flat = best_of(lambda: index.query(few, K), 2) / N_FLAT
    agree = recall(index.query(few, K).distances, truth.distances[:N_FLAT])
    report.line(f"- faiss-flat: {flat * 1e3:.2f} ms a query, recall@{K} {agree:.4f}")
    index.set_params(backend="exact")._ready()._clear()
    start = time.perf_counter()
    index.set_params(backend="faiss-hnsw").query(few, K)
    report.line(f"- building the graph, one thread: {time.perf_counter() - start:.0f} s")
    report.line(f"\n| breadth | ms a query | times exact | times faiss-flat | recall@{K} |")
    report.line("|---|---|---|---|---|")
    for breadth in BREADTHS:
        index.set_params(breadth=breadth)
        seconds = best_of(lambda: index.query(asked, K), 5) / N_QUERIES
        share = recall(index.query(asked, K).distances, truth.distances)
        report.line(
            f"| {breadth} | {seconds * 1e3:.3f} | {exact / seconds:.0f} | {flat / seconds:.0f} "
            f"| {share:.4f} |"
        )
    default = SimilarityIndex().breadth
    index.set_params(breadth=default)
    seconds = best_of(lambda: index.query(asked, K), 5) / N_QUERIES
    share = recall(index.query(asked, K).distances, truth.distances)
    alone = best_of(lambda: index.query(one, K)) * 1e3
    report.line(f"\n- one row asked alone, default breadth {default}: {alone:.2f} ms")
    if bar:
        passed = "passed" if share >= 0.95 else "MISSED"
        report.line(f"- recall@{K}, default breadth: **{share:.4f}** (bar: 0.95; {passed})")
        report.ratio("faster than exact, default breadth", exact, seconds, 20)
    else:
        report.line(f"- default breadth: recall@{K} {share:.4f}, {exact / seconds:.0f}× exact")
    other_questions(report, index, asked)


def other_questions(report: Report, index: SimilarityIndex, asked: dict[str, Any]) -> None:
    """Time filters, partial rows, adding, removing and files."""
    first = next(iter(asked))
    common = max(set(asked[first].tolist()), key=asked[first].tolist().count)

    def timed(what: str, call: Any) -> None:
        start = time.perf_counter()
        call()
        report.line(f"- {what}: {time.perf_counter() - start:.2f} s")

    some = {name: asked[name] for name in list(asked)[:3]}
    timed(
        f"{N_QUERIES} queries with a filter that most rows pass",
        lambda: index.query(asked, K, where={first: lambda v: v != common}),
    )
    timed(f"{N_QUERIES} queries by 3 columns, the first time", lambda: index.query(some, K))
    timed(f"{N_QUERIES} queries by 3 columns, again", lambda: index.query(some, K))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.index"
        timed("saving", lambda: index.save(path))
        report.line(f"- file: {path.stat().st_size / 1e6:.0f} MB")
        timed("loading", lambda: SimilarityIndex.load(path))
    timed("removing 1,000 rows", lambda: index.remove(np.arange(1000)))
    timed("adding 1,000 rows", lambda: index.add(asked))
    timed("the first query after that", lambda: index.query(asked, K))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--no-report", action="store_true")
    options = parser.parse_args()
    n = options.rows + N_QUERIES
    report = Report("Search among a million rows", "python benchmarks/index_speed.py")
    report.line(
        f"faiss {version('faiss-cpu')}; {n_threads()} threads for every backend, load average "
        f"{os.getloadavg()[0]:.1f} at the start. {N_QUERIES:,} rows that are not stored are asked "
        f"about in one batch ({N_FLAT} for faiss-flat); best of several runs.\n"
    )
    report.line(
        "Categories have many ties, so recall goes by distance: an answer counts if it is no "
        "farther than the 10th true neighbour (up to 1e-9 of its size)."
    )
    compare(report, "Categories", coupled(n), Weave(), bar=True)
    compare(report, "Categories and numbers", mixed(n), MixedEmbedder(), bar=True)
    small = options.rows // 5 + N_QUERIES
    compare(report, "The hard case: no structure", random(small), Weave(), bar=False)
    report.finish(None if options.no_report else "index.md")


if __name__ == "__main__":
    main()
