"""How fast is Non-BEND? Against stepmix and pomegranate, growth, and a million rows.

python benchmarks/nonbend_speed.py --peer-python peers/bin/python   # writes reports/nonbend.md
python benchmarks/nonbend_speed.py --quick                               # small, prints only

The peers (stepmix, pomegranate) run in the interpreter named, on the same codes, one start, the
same number of iterations and no early stop.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from _report import Report, best_of
from tabweave import Counts, Table
from tabweave.embed.nonbend import VI, Fit, NonBEND, Prior, WeightedRows, first_fit, step

ITERATIONS = 50
_PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
codes, k, iterations, peer = np.load(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
seconds = []
for _ in range(int(sys.argv[5])):
    if peer == "stepmix":
        from stepmix import StepMix
        model = StepMix(k, measurement="categorical", n_init=1, max_iter=iterations, abs_tol=0.0,
                        rel_tol=0.0, progress_bar=0, random_state=0)
        start = time.perf_counter()
        model.fit(codes)
    else:
        import torch
        from pomegranate.distributions import Categorical, IndependentComponents
        from pomegranate.gmm import GeneralMixtureModel
        X = torch.tensor(codes)
        rng, widths = np.random.default_rng(0), codes.max(axis=0) + 1
        parts = [IndependentComponents([
            Categorical(rng.dirichlet(np.ones(w), 1).astype("float32")) for w in widths])
            for _ in range(k)]
        model = GeneralMixtureModel(parts, max_iter=iterations, tol=-1e30)
        start = time.perf_counter()
        model.fit(X)
    seconds.append(time.perf_counter() - start)
print(json.dumps(min(seconds)))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", help="interpreter with stepmix and pomegranate")
    parser.add_argument("--quick", action="store_true", help="fewer rows, no report file")
    options = parser.parse_args()
    command = "python benchmarks/nonbend_speed.py --peer-python PATH"
    report = Report("Speed of Non-BEND", command)
    against_peers(report, options.peer_python, 2_000 if options.quick else 20_000)
    growth(report, options.quick)
    a_million_rows(report, 100_000 if options.quick else 1_000_000)
    report.finish(None if options.quick else "nonbend.md")


def planted(n: int, d: int, n_values: int, k: int, seed: int = 0) -> np.ndarray:
    """Draw codes from k products of multinomials."""
    rng = np.random.default_rng(seed)
    below = np.cumsum(rng.dirichlet(np.full(n_values, 0.5), size=(k, d)), axis=2)
    codes = np.empty((n, d), np.int64)
    z = rng.integers(k, size=n)
    for j in range(d):
        edges = below[z, j]
        codes[:, j] = (rng.random((n, 1)) * edges[:, -1:] >= edges).sum(axis=1)
    return codes


def rows_of(codes: np.ndarray) -> WeightedRows:
    table = Table.of(codes, numbers="nominal")
    return WeightedRows.of(table, Counts.of(table), None)


def iterate(rows: WeightedRows, prior: Prior, first: Fit, n_steps: int) -> Fit:
    """Take a fixed number of steps, without early stop and with every subspace kept."""
    fit = first
    for _ in range(n_steps):
        fit = step(lambda: (rows,), fit, prior)
    return fit


def against_peers(report: Report, python: str | None, n: int) -> None:
    d, n_values, k = 10, 5, 8
    codes = planted(n, d, n_values, k)
    report.section(f"{n:,} × {d}, {n_values} values, {k} components, {ITERATIONS} iterations")

    def ours() -> None:
        rows = rows_of(codes)
        prior = Prior(1.0, 0.1, k, rows.offsets)
        first = first_fit(rows, prior, "random", np.random.default_rng(0))
        fit = iterate(rows, prior, first, ITERATIONS)
        assert len(fit.sizes) == k, "a subspace was dropped: the comparison would be unfair"

    ours()
    seconds = best_of(ours, 3)
    report.line(
        f"tabweave VI from codes, reading, distinct rows and start included: {seconds:.3f} s"
    )
    if python is None:
        report.line("peers: not measured (no --peer-python)")
        return
    for peer, bar, repeats in (("stepmix", 5, 2), ("pomegranate", 10, 1)):
        try:
            theirs = run_peer(python, peer, codes, k, repeats)
        except RuntimeError as error:  # a peer that fails is a result, too
            report.line(f"- {error}")
            continue
        report.ratio(f"against {peer}", theirs, seconds, bar)


def run_peer(python: str, peer: str, codes: np.ndarray, k: int, repeats: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codes.npy"
        np.save(path, codes)
        arguments = [str(path), str(k), str(ITERATIONS), peer, str(repeats)]
        done = subprocess.run(
            [python, "-c", _PEER, *arguments], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise RuntimeError(f"{peer} failed: {done.stderr.strip().splitlines()[-1]}")
    return float(json.loads(done.stdout.splitlines()[-1]))


def growth(report: Report, quick: bool) -> None:
    n = 4_000 if quick else 40_000
    report.section("Growth: CPU seconds of 10 steps, slope on log-log axes (bar: 0.9–1.15)")
    grid = {
        "rows": [(m, 10, 5, 16) for m in (n, 2 * n, 4 * n, 8 * n)],
        "columns": [(n // 4, d, 5, 16) for d in (160, 320, 640, 1_280)],
        "subspaces": [(n // 4, 20, 5, k) for k in (64, 128, 256, 512)],
    }
    for name, shapes in grid.items():
        report_slope(report, name, shapes)
    few = [(200, 4, m, 16) for m in (4_000, 8_000, 16_000, 32_000)]
    report_slope(report, "values (200 rows, so that values dominate)", few)
    few_columns = [(n, d, 5, 16) for d in (10, 20, 40, 80)]
    report_slope(report, "few columns (exponentials dominate)", few_columns, "free")
    few_parts = [(n, 20, 5, k) for k in (8, 16, 32, 64)]
    report_slope(report, "few subspaces (reading rows counts)", few_parts, "free")
    many = [(n, 10, m, 16) for m in (5, 10, 20, 40, 80)]
    report_slope(report, f"values ({n:,} rows: rows dominate)", many, "free")


def report_slope(
    report: Report,
    name: str,
    shapes: Sequence[tuple[int, int, int, int]],
    bar: str = "0.9–1.15",
) -> None:
    axis = next(i for i in range(4) if len({s[i] for s in shapes}) > 1)
    seconds = [time_steps(*shape) for shape in shapes]
    slope = np.polyfit(np.log([s[axis] for s in shapes]), np.log(seconds), 1)[0]
    verdict = "reported" if bar == "free" else "passed" if 0.9 <= slope <= 1.15 else "MISSED"
    points = ", ".join(f"{s[axis]:,}: {t:.3f} s" for s, t in zip(shapes, seconds, strict=True))
    report.line(f"- {name}: slope **{slope:.2f}** ({verdict}); {points}")


def time_steps(n: int, d: int, n_values: int, k: int) -> float:
    rng = np.random.default_rng(0)
    cells = rng.integers(n_values, size=(n, d)) + n_values * np.arange(d)
    rows = WeightedRows(cells.astype(np.int32), np.ones(n), n_values * np.arange(d + 1))
    prior = Prior(1.0, 0.1, k, rows.offsets)
    first = first_fit(rows, prior, "random", rng)
    iterate(rows, prior, first, 1)
    seconds = []
    for _ in range(5):
        start = time.process_time()  # of all threads: growth of work, whoever else is computing
        iterate(rows, prior, first, 10)
        seconds.append(time.process_time() - start)
    return min(seconds)


def a_million_rows(report: Report, n: int) -> None:
    codes = planted(n, 20, 10, 12).astype(np.uint8)
    report.section(f"{n:,} × 20, 10 values, 12 planted subspaces")
    for settings in ({"n_fits": 1}, {"n_fits": 1, "method": VI(merge=True)}):
        model = NonBEND(random_state=0, **settings, schema="nominal")
        start = time.perf_counter()
        model.fit(codes)
        seconds = time.perf_counter() - start
        major = int((model.weights_ > 0.01).sum())
        report.line(
            f"- {settings}: {seconds:.1f} s, {model.n_iter_} steps, {model.n_subspaces_} "
            f"subspaces, {major} of them with more than 1 % of the rows"
        )


if __name__ == "__main__":
    main()
