"""WeaveClassifier at 100,000 rows: learning and answering 10,000 rows, beside what CatBoost trains.

Usage: python benchmarks/neighbors_speed.py [--rows N] [--iterations N] [--no-report]
CatBoost trains 1,000 iterations by default, over seven minutes here: the first 100 are timed.
Goes on inside the environment of the peers.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pandas as pd

from _report import Report
from peers import enter_environment

ASKED = 10_000


def rows(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw ten coupled columns of about 12 values and six numbers, from eight hidden classes."""
    from tabweave.datasets import make_coupled

    data = make_coupled(n, 10, 12, 8, coupling=0.5, heterogeneity=0.5, random_state=0)
    frame = pd.DataFrame({name: np.asarray(v).astype(str) for name, v in data.columns.items()})
    classes = np.unique(data.y, return_inverse=True)[1]
    random = np.random.default_rng(0)
    for i in range(6):
        frame[f"x{i}"] = 0.3 * classes * (i < 3) + random.normal(size=n)
    return frame, classes


def timed(call: Any) -> tuple[float, Any]:
    """Return seconds, and what the call returned."""
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--iterations", type=int, default=100, help="of CatBoost's training")
    parser.add_argument("--no-report", action="store_true")
    options = parser.parse_args()
    enter_environment()
    from catboost import CatBoostClassifier

    from tabweave import WeaveClassifier

    report = Report("Neighbours that answer", "python benchmarks/neighbors_speed.py")
    X, y = rows(options.rows + ASKED)
    known, asked = X[: options.rows], X[options.rows :]
    ours, theirs = y[: options.rows], y[options.rows :]
    WeaveClassifier().fit(known[:500], ours[:500]).predict(asked[:10])  # compiled once
    report.section(f"{options.rows:,} rows of {X.shape[1]} columns, {ASKED:,} asked")
    fitting, model = timed(lambda: WeaveClassifier().fit(known, ours))
    answering, guess = timed(lambda: model.predict(asked))
    right = 100 * (guess == theirs).mean()
    report.line(
        f"- WeaveClassifier: fit {fitting:.1f} s, predict {answering:.1f} s, accuracy {right:.2f} %"
    )
    n = options.iterations
    cat = CatBoostClassifier(n, verbose=0, random_seed=0, allow_writing_files=False)
    named = [name for name in X if X[name].dtype.kind not in "fi"]
    training, _ = timed(lambda: cat.fit(known, ours, cat_features=named))
    theirs_right = 100 * (cat.predict(asked).ravel().astype(int) == theirs).mean()
    what = f"{n:,} of its 1,000 iterations"
    report.line(f"- CatBoost, {what}: fit {training:.1f} s, accuracy {theirs_right:.2f} %")
    report.ratio(f"both against CatBoost's training, {what}", training, fitting + answering, 1)
    report.finish(None if options.no_report else "neighbors-speed.md")


if __name__ == "__main__":
    main()
