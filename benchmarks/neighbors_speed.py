"""WeaveClassifier at 100,000 rows: learning and answering 10,000 rows, beside what CatBoost trains.

Usage: python benchmarks/neighbors_speed.py [--rows N] [--iterations N] [--no-report]
       NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/neighbors_speed.py --one-core
CatBoost trains 1,000 iterations by default, over seven minutes here: the first 100 are timed.
Goes on inside the environment of the peers. ``--one-core`` prints instead what a prediction costs
on tables of several kinds, with a digest of the answers: with PYTHONPATH at the sources of another
commit it tells what changed.
"""

from __future__ import annotations

import argparse
import hashlib
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


def addresses(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw eleven columns, two of them of thousands of values; a fifth of the rows are copies."""
    random, m = np.random.default_rng(0), n * 4 // 5

    def values(size: int) -> np.ndarray:
        return np.minimum((random.pareto(1.0, m) * size / 50).astype(int), size - 1)

    state = values(49)
    city = state * 200 + values(200)
    latitude = 30 + state % 7 * 5 + city % 200 / 100 + random.normal(size=m) / 20
    sight = np.minimum(random.exponential(9, m).round(), 10)
    columns = {
        "state": state.astype(str),
        "city": city.astype(str),
        "street": values(20_000).astype(str),
        "latitude": latitude.round(3),
        "longitude": (state // 7 * 7 - 120 + random.normal(size=m) / 2).round(3),
        "warmth": random.normal(60 - latitude / 2, 12).round(),
        "humidity": random.integers(10, 100, m),
        "sight": sight,
        "wind": random.choice(list("CNESW"), m),
        "sky": np.char.add("sky ", random.integers(0, 60, m).astype(str)),
        "sun": random.choice(["day", "night"], m),
    }
    severity = (2 * random.random(m) + (sight < 5) + (city % 5 == 0)).astype(int)
    rows = random.permutation(np.concatenate([np.arange(m), random.integers(0, m, n - m)]))
    return pd.DataFrame(columns).iloc[rows].reset_index(drop=True), severity[rows]


def one_core() -> None:
    """Print what a prediction costs, by processor time."""
    from cores import mixed
    from tabweave import WeaveClassifier

    tables = {
        "100,000 × 18, a third numbers": lambda: mixed(100_000 + ASKED, 12, 6),
        "50,000 × 18, a third numbers": lambda: mixed(50_000 + ASKED, 12, 6),
        "100,000 × 18 categories": lambda: mixed(100_000 + ASKED, 18, 0),
        "100,000 × 18 numbers": lambda: mixed(100_000 + ASKED, 0, 18),
        "100,000 × 16 coupled": lambda: rows(100_000 + ASKED),
        "50,000 × 11, columns of thousands of values": lambda: addresses(50_000 + ASKED),
    }
    print("| training rows | ms a row, once cells are cut | the first time | answers |")
    print("| --- | ---: | ---: | --- |")
    for name, draw in tables.items():
        X, y = draw()
        cut = len(X) - ASKED
        model = WeaveClassifier().fit(X[:cut], y[:cut])
        model.predict_proba(X[cut : cut + 20])  # compiled loops are loaded
        seconds = []
        for _ in range(3):
            start = time.process_time()
            answers = model.predict_proba(X[cut:])
            seconds.append(time.process_time() - start)
        near = model.kneighbors(X[cut : cut + 2000]).positions
        digest = hashlib.sha256(answers.tobytes() + near.tobytes()).hexdigest()[:10]
        each = min(seconds) / ASKED, seconds[0] / ASKED
        print(f"| {name} | {1e3 * each[0]:.3f} | {1e3 * each[1]:.3f} | {digest} |", flush=True)


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
    parser.add_argument("--one-core", action="store_true", help="what a prediction costs")
    options = parser.parse_args()
    if options.one_core:
        one_core()
        return
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
