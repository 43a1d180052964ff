"""Dependence that chance explains, at any number of values: weights and clusters of planted tables.

    python benchmarks/chance.py [--seeds 50]

Two tables. Groups: an island and two measurements depend on one of three groups, six coin flips do
not, and a column of 250 names in 400 rows is added or not. LED: seven segments of a digit, 17
coins, and a column of noise. Compared: the default, and the correction (V-1)(W-1)/2n with its
variance (V-1)(W-1)/2n², which takes the place of the exact mean of shuffled columns.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from _report import Report
from tabweave import Weave
from tabweave.datasets import led24
from tabweave.embed import weave as module

NOISES = (50, 100, 200, 500, 1000, 2000)
LED_ROWS = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--report", default="chance.md", help="name of the report")
    options = parser.parse_args()
    report = Report(
        "Dependence that chance explains", f"python benchmarks/chance.py --seeds {options.seeds}"
    )
    seeds = range(options.seeds)
    report.section("A column of names")
    report.line(
        "Means of the seeds: adjusted Rand index of three clusters of k-means, and weights.\n"
    )
    report.line("| correction | ARI without | ARI with | island | length | mass | coins | names |")
    report.line("|---|---|---|---|---|---|---|---|")
    for name, scores in ((what, names_beside_groups(seeds, what)) for what in CORRECTIONS):
        report.line(f"| {name} | {' | '.join(f'{x:.3f}' for x in scores)} |")
    report.section("A column of noise beside the segments of a digit")
    report.line(
        "Over the seeds: the least weight of a segment, the largest of a coin and of the noise, "
    )
    report.line("and in how many tables the noise weighs more than a segment.\n")
    report.line("| values | correction | segment | coin | noise | tables |")
    report.line("|---|---|---|---|---|---|")
    for n_values in NOISES:
        for name in CORRECTIONS:
            with corrected(name):
                found = np.array([noise_beside_segments(n_values, seed) for seed in seeds])
            segment, coin, noise = found.T
            wrong = int((noise > segment).sum())
            report.line(
                f"| {n_values} | {name} | {segment.min():.3f} | {coin.max():.3f} | "
                f"{noise.max():.3f} | {wrong} |"
            )
    report.finish(options.report)


def by_freedom(counts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return what Pearson's approximation says of shuffled columns."""
    freedom = np.maximum(counts.sizes - 1, 0).astype(float)
    mean = np.outer(freedom, freedom) / (2 * counts.n)
    return mean, mean / counts.n


CORRECTIONS = {"exact": module.chance_information, "(V-1)(W-1)/2n": by_freedom}


@contextmanager
def corrected(name: str) -> Iterator[None]:
    """Let Weave use a correction."""
    module.chance_information = CORRECTIONS[name]
    try:
        yield
    finally:
        module.chance_information = CORRECTIONS["exact"]


def names_beside_groups(seeds: range, name: str) -> np.ndarray:
    """Return agreement without and with names, and the weights with them, in the mean."""
    out = []
    for seed in seeds:
        rows, group, names = groups(seed)
        scores = []
        for X in (rows, rows | {"name": names}):
            with corrected(name):
                weave = Weave().fit(X)
            clusters = KMeans(3, n_init=5, random_state=seed).fit_predict(weave.transform(X))
            scores.append(adjusted_rand_score(group, clusters))
        w = weave.weights_
        coins = np.mean([w[c] for c in w if c.startswith("coin")])
        out.append([*scores, w["island"], w["length"], w["mass"], coins, w["name"]])
    return np.mean(out, axis=0)


def groups(seed: int, n: int = 400) -> tuple[dict[str, Any], np.ndarray, list[str]]:
    """Return columns that depend on a group, the group of each row, and a name of each row."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    rows = {
        "island": np.where(rng.random(n) < 0.8, group, rng.integers(0, 3, n)).astype(str),
        "length": 2.0 * group + rng.normal(size=n),
        "mass": 2.5 * (group == 1) + rng.normal(size=n),
        **{f"coin{i}": rng.choice(["heads", "tails"], n) for i in range(6)},
    }
    return rows, group, [f"name {i}" for i in rng.integers(0, 250, n)]


def noise_beside_segments(n_values: int, seed: int) -> tuple[float, float, float]:
    """Return the least weight of a segment, the largest of a coin, and that of the noise."""
    X = np.asarray(led24(LED_ROWS, random_state=seed).X).astype(str)
    rows = {f"x{i}": X[:, i] for i in range(24)}
    noise = np.random.default_rng(1000 + seed).integers(0, n_values, LED_ROWS)
    rows["noise"] = noise.astype(str)
    weights = Weave(schema=dict.fromkeys(rows, "nominal")).fit(rows).weights_
    values = [weights[f"x{i}"] for i in range(24)]
    return min(values[:7]), max(values[7:]), weights["noise"]


if __name__ == "__main__":
    main()
