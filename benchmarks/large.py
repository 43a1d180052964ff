"""The arena of large tables: our defaults beside boosted trees, forests, neighbours and networks.

    python benchmarks/large.py --half choosing --rows 10000      # measure what is not known yet
    python benchmarks/large.py --rows 100000 --method tabweave LightGBM CatBoost
    python benchmarks/large.py --rows 10000 --draws 20 --method LightGBM     # random search
    python benchmarks/large.py --table bank --method tabweave --cache mine   # one cell, own cache
    python benchmarks/large.py --report     # write reports/large.md from known cells

Tables of 10,000 rows and more lie inside packages of the index, are downloaded once into a cache
outside of the repository (``_large_sets.py``: halves, targets, licences) and are never committed.
Peers come with ``pip install --group bench`` (pytabkit, torch and bencheval apart: see the report).
A fifth of the rows, at most 10,000, is the test. Every cell runs in a process of its own, on one
thread, with a limit of time; seconds are of the processor. ``--rows 0`` takes all rows.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from _cells import THREADS, Key, measure_cells

FLOOR = 1e-4  # Probabilities below count as this in log-loss, as in the other arena.
FIRST = "tabweave LightGBM CatBoost".split()  # Who is measured by default.
Scores = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", nargs="+", help="only these tables")
    parser.add_argument("--method", nargs="+", default=FIRST, help="only these methods")
    parser.add_argument("--half", choices=("choosing", "reporting", "all"), default="all")
    parser.add_argument("--task", choices=("classes", "numbers", "all"), default="all")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000], help="0 for all")
    parser.add_argument("--draws", type=int, default=0, help="of random search; 0: defaults")
    parser.add_argument("--limit", type=int, default=600, help="seconds a cell may take")
    parser.add_argument("--workers", type=int, default=1, help="processes, a thread each")
    parser.add_argument("--cache", default="large", help="name of the file of cells")
    parser.add_argument("--again", action="store_true", help="measure what is known once more")
    parser.add_argument("--report", action="store_true", help="write large.md from known cells")
    parser.add_argument("--publish", action="store_true", help="write the cells beside the report")
    options = parser.parse_args()
    if options.report or options.publish:
        import _large_report

        _large_report.write(options.cache, options.publish)
    else:
        os.environ.update(dict.fromkeys(THREADS, "1"))
        run = in_child(options.limit)
        measure_cells(options.cache, plan(options), run, options, options.limit + 60)


def plan(options: Any) -> list[Key]:
    """Return all cells that are asked for, method by method."""
    from _large_sets import TABLES, half

    tables = [
        name
        for name, origin in TABLES.items()
        if name in (options.table or TABLES)
        and options.half in (half(name), "all")
        and options.task in ("numbers" if origin.is_number else "classes", "all")
    ]
    search = f"draws {options.draws}" if options.draws else "defaults"
    return [
        (name, method, f"rows {rows}", search)
        for rows in options.rows
        for method in options.method
        for name in tables
    ]


# -- one cell, in a process of its own -------------------------------------------------------------


def in_child(limit: int) -> Callable[[Key], Scores]:
    """Return what measures a key in a child process, which finds all packages imported."""

    def run(key: Key) -> Scores:
        import_packages()
        source, target = os.pipe()
        pid = os.fork()
        if pid == 0:
            answer_and_exit(key, limit, target)
        os.close(target)
        try:
            with os.fdopen(source) as pipe:
                is_ready = bool(select.select([pipe], [], [], limit)[0])
                answer = pipe.read() if is_ready else ""
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        if not is_ready:
            raise TimeoutError(f"took longer than {limit} s")
        scores: Scores = json.loads(answer) if answer else {"error": "the process was killed"}
        if "error" in scores:
            raise RuntimeError(scores["error"])
        return scores

    return run


def answer_and_exit(key: Key, limit: int, target: int) -> None:
    """Write the scores of a key, or what went wrong, and end the process."""
    try:
        scores = measured(key, limit)
    except BaseException as error:
        scores = {"error": f"{type(error).__name__}: {error}"}
    with os.fdopen(target, "w") as pipe:
        pipe.write(json.dumps(scores))
    os._exit(0)


def import_packages() -> None:
    """Import what most methods need, so that children need not."""
    for name in (
        "sklearn.ensemble",
        "lightgbm",
        "xgboost",
        "catboost",
        "tabweave.embed.supervised",
    ):
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"left out: {error}", file=sys.stderr)


def measured(key: Key, limit: int) -> Scores:
    """Return scores, processor seconds and peak memory of one cell."""
    from _large_methods import fitted
    from _large_sets import columns_of, read, split

    warnings.simplefilter("ignore")
    name, method, rows, search = key
    table = read(name, int(rows.split()[1]))
    X, kinds = (table.X, {}) if method == "tabweave" else columns_of(table)
    y = table.y if table.is_number else np.unique(table.y, return_inverse=True)[1]
    k = 0 if table.is_number else len(set(table.y))
    train, test = split(table)
    train_X, test_X = (X.iloc[rows].reset_index(drop=True) for rows in (train, test))
    n_draws = int(search.split()[1]) if search != "defaults" else 0
    warm_up(method, kinds, k, train_X, y[train])
    if n_draws:
        seconds = limit / 3  # The last draw and the last fit take their time, too.
        with Cost() as fit:
            model, draw, tried = fitted(method, kinds, k, train_X, y[train], n_draws, seconds)
        extra = {"draw": draw, "draws": tried}
    else:
        with Cost() as fit:
            model = default(method, kinds, k).fit(train_X, y[train])
        extra = {}
    with Cost() as predict:
        values = model.predict_proba(test_X) if k else model.predict(test_X)
    scores = of_classes(values, y[test], k, model) if k else of_numbers(values, y[test])
    size = {"train": len(train), "test": len(test), "columns": X.shape[1], "classes": k}
    said = {what: getattr(model, what) for what in SAID if hasattr(model, what)}
    return size | scores | fit.named("fit") | predict.named("predict") | extra | said


SAID = ("score_weight_", "n_neighbors_")  # Fitted attributes of ours that the cells keep.


def default(method: str, kinds: dict[str, str], k: int) -> Any:
    from _large_methods import METHODS

    return METHODS[method].make(kinds, k, {})


def warm_up(method: str, kinds: dict[str, str], k: int, X: Any, y: np.ndarray) -> None:
    """Import and compile what a method needs, on 300 rows."""
    few = np.sort(np.random.default_rng(2).permutation(len(y))[:300])
    codes = np.unique(y[few], return_inverse=True)[1] if k else y[few]
    rows = X.iloc[few].reset_index(drop=True)
    try:
        if method == "tabweave":  # Of few rows the predictors boost nothing.
            from tabweave import BoostedWeave

            BoostedWeave(max_cycles=2).fit(rows, codes)
        default(method, kinds, len(set(codes)) if k else 0).fit(rows, codes).predict(X.iloc[:50])
    except Exception as error:  # Too few rows of a class, say; the cell itself decides.
        print(f"warm-up: {error}", file=sys.stderr)


class Cost:
    """Processor seconds, seconds, and the memory added at the peak of a block of code."""

    def __enter__(self) -> Cost:
        forget_peak()
        self.before = memory("VmRSS")
        self.seconds, self.wall = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: Any) -> None:
        self.seconds = time.process_time() - self.seconds
        self.wall = time.perf_counter() - self.wall
        self.megabytes = max(memory("VmHWM") - self.before, 0) / 1024

    def named(self, what: str) -> Scores:
        """Return the three under names that begin with what was done."""
        return {
            f"{what} seconds": round(self.seconds, 3),
            f"{what} wall": round(self.wall, 3),
            f"{what} MB": round(self.megabytes, 1),
        }


def forget_peak() -> None:
    """Let the peak of this process's memory begin anew (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def memory(what: str) -> int:
    """Return a figure of this process's memory, in KiB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what))


# -- scores ----------------------------------------------------------------------------------------


def of_classes(shares: np.ndarray, truth: np.ndarray, k: int, model: Any) -> Scores:
    """Return accuracy, macro F, AUC (of several classes the mean one against rest), log-loss."""
    from sklearn.metrics import roc_auc_score

    from tabweave.evaluate import macro_f

    classes = np.asarray(getattr(model, "classes_", range(shares.shape[1])), dtype=int)
    full = np.zeros((len(truth), k))
    full[:, classes] = shares
    full /= np.maximum(full.sum(axis=1, keepdims=True), 1e-12)
    answers = full.argmax(axis=1)
    there = [c for c in range(k) if 0 < (truth == c).sum() < len(truth)]
    auc = [roc_auc_score(truth == c, full[:, c]) for c in (there[-1:] if k == 2 else there)]
    right = np.clip(full[np.arange(len(truth)), truth], FLOOR, 1)
    return {
        "accuracy": float(np.mean(answers == truth)),
        "F": float(macro_f(truth, answers)),
        "AUC": float(np.mean(auc)),
        "log-loss": float(-np.log(right).mean()),
    }


def of_numbers(values: np.ndarray, truth: np.ndarray) -> Scores:
    from sklearn.metrics import r2_score

    return {"R2": float(r2_score(truth, np.asarray(values, dtype=float).ravel()))}


if __name__ == "__main__":
    main()
