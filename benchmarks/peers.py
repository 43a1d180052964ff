"""tabweave and its peers on every data set: clusters, retrieval, kNN, linear and tree classifiers.

``python benchmarks/peers.py`` makes an environment of its own for the peers under
benchmarks/.peers, goes on inside it, measures what is not in the cache yet, and writes
benchmarks/reports/peers.md. ``--report`` writes from the cache only, ``--quick`` takes the twelve
smallest sets. Interrupt it at any time: what was measured is kept. A peer that fails is a result.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from _cells import Cells

HOME = Path(__file__).resolve().parent
PYTHON = HOME / ".peers" / "bin" / "python"
PACKAGES = (
    "category_encoders skrub prince kmodes gower stepmix umap-learn catboost lightgbm".split()
)
SPEED_ONLY = ("ksvd", "dictlearn", "pomegranate")  # of other reports; pomegranate brings torch
ROWS = 600  # larger sets are cut to so many random rows
SPLITS = 3
SEED = 0
SKIPPED = {
    "citeseer_content": "one set of words a row; no peer reads sets",
    "cora_content": "one set of words a row; no peer reads sets",
    "concrete_strength": "a number to predict, no classes",
    "concrete_slump": "a number to predict, no classes",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", nargs="+", help="only these data sets")
    parser.add_argument("--method", nargs="+", help="only these methods")
    parser.add_argument("--quick", action="store_true", help="the twelve smallest sets only")
    parser.add_argument("--report", action="store_true", help="write the report from the cache")
    parser.add_argument("--cache", default="peers", help="name of the cache file")
    options = parser.parse_args()
    if not options.report:
        enter_environment()
        measure(options)
    import _peer_report

    _peer_report.write(Cells(options.cache))


def enter_environment() -> None:
    """Go on inside the peers' environment, making it first if need be."""
    if Path(sys.prefix) == PYTHON.parents[1]:
        return
    make_environment()
    os.execv(str(PYTHON), [str(PYTHON), *sys.argv])


def make_environment() -> None:
    """Make the peers' environment unless it is there; what cannot be had is reported later."""
    if PYTHON.exists():
        return
    subprocess.run([sys.executable, "-m", "venv", str(PYTHON.parents[1])], check=True)
    install = [str(PYTHON), "-m", "pip", "install", "-q"]
    tabweave = f"{HOME.parent}[frames,files]"
    subprocess.run([*install, "setuptools<81", *PACKAGES, "-e", tabweave], check=True)
    for package in SPEED_ONLY:
        subprocess.run([*install, package], check=False)


def data_sets() -> list[str]:
    """Return the sets with classes, small ones first."""
    from tabweave.datasets import available, load

    sizes = {}
    for name in available():
        data = load(name)
        if data.y is not None and data.y.dtype == object and name not in SKIPPED:
            sizes[name] = data.n_rows
    return sorted(sizes, key=lambda name: (sizes[name], name))


def measure(options: Any) -> None:
    from _peer_methods import METHODS

    warnings.simplefilter("ignore")  # peers warn a lot; errors are recorded
    cells = Cells(options.cache)
    names = options.dataset or data_sets()[: 12 if options.quick else None]
    methods = options.method or list(METHODS)
    todo = [
        (group, name, method)
        for name in names
        for method in methods
        for group in groups(METHODS[method].tasks)
        if (group, name, method) not in cells.known
    ]
    start = time.perf_counter()
    for i, key in enumerate(todo):
        scores = cells.get(key, lambda k=key: run(*k))
        left = (time.perf_counter() - start) / (i + 1) * (len(todo) - i - 1) / 60
        shown = {k: round(v, 1) if isinstance(v, float) else v for k, v in scores.items()}
        print(f"[{i + 1}/{len(todo)}, {left:.0f} min left] {' '.join(key)}: {shown}", flush=True)


def groups(tasks: tuple[str, ...]) -> list[str]:
    """Return "alone" and "taught": tasks that share a fitted representation."""
    from _peer_methods import ALONE, TAUGHT

    return [
        group
        for group, members in (("alone", ALONE), ("taught", TAUGHT))
        if set(tasks) & set(members)
    ]


def read(name: str) -> tuple[Any, np.ndarray, dict[str, str]]:
    """Return a frame, classes (those with fewer than six rows left out) and kinds."""
    from tabweave.datasets import load

    data = load(name)
    if data.n_rows > ROWS:
        data = data.take(np.random.default_rng(SEED).permutation(data.n_rows)[:ROWS])
    values, counts = np.unique(data.y.astype(str), return_counts=True)
    data = data.select(np.isin(data.y.astype(str), values[counts >= 6]))
    frame = data.frame("pandas")
    varied = [c for c in frame.columns if frame[c].nunique(dropna=False) > 1]
    kinds = {c: "numeric" if data.kinds[c] == "numeric" else "nominal" for c in varied}
    return frame[varied].reset_index(drop=True), data.y.astype(str), kinds


def run(group: str, name: str, method_name: str) -> dict[str, Any]:
    from _peer_methods import METHODS

    X, y, kinds = read(name)
    return (alone if group == "alone" else taught)(METHODS[method_name], X, y, kinds)


def alone(method: Any, X: Any, y: np.ndarray, kinds: dict[str, str]) -> dict[str, float]:
    """Clusters (k-means on vectors, average linkage on distances) and the ten nearest rows."""
    from scipy.spatial.distance import cdist
    from sklearn.cluster import AgglomerativeClustering, KMeans
    from sklearn.metrics import normalized_mutual_info_score

    from tabweave.evaluate import clustering_f, precision_at_k

    k = len(set(y))
    model = method.make(kinds, k)
    start = time.perf_counter()
    D = None
    if method.gives == "clusters":
        labels = model.clusters(X)
        spent = time.perf_counter() - start
    elif method.gives == "distances":
        D = model.distances(X)
        spent = time.perf_counter() - start
        linked = AgglomerativeClustering(k, metric="precomputed", linkage="average")
        labels = linked.fit_predict(D)
    else:
        vectors = model.fit(X).transform(X)
        spent = time.perf_counter() - start
        labels = KMeans(k, n_init=20, random_state=SEED).fit_predict(vectors)
        D = cdist(vectors, vectors)
    found = {
        "clustering": 100 * clustering_f(y, labels),
        "NMI": 100 * normalized_mutual_info_score(y, labels),
    }
    if "retrieval" in method.tasks:  # ties in expectation
        found["retrieval"] = 100 * float(precision_at_k(D, y, k=10))
    return found | {"fit": spent}


def taught(method: Any, X: Any, y: np.ndarray, kinds: dict[str, str]) -> dict[str, float]:
    """Macro F over three random splits 80/20 that keep the shares of the classes."""
    from sklearn.model_selection import StratifiedShuffleSplit

    from tabweave.evaluate import macro_f

    found: dict[str, list[float]] = {}
    splits = StratifiedShuffleSplit(SPLITS, test_size=0.2, random_state=SEED)
    for train, test in splits.split(X, y):
        known, asked = X.iloc[train].reset_index(drop=True), X.iloc[test].reset_index(drop=True)
        model = method.make(kinds, len(set(y)))
        if method.gives == "classes":
            predicted = {"tree": model.fit(known, y[train]).predict(asked)}
        elif method.gives == "distances":
            inner, outer = model.distances(known), model.distances(asked, known)
            predicted = {"kNN": nearest(inner, outer, y[train])}
        else:
            model.fit(known, y[train]) if method.supervised else model.fit(known)
            predicted = on_top(model.transform(known), model.transform(asked), y[train])
        for task, labels in predicted.items():
            found.setdefault(task, []).append(100 * macro_f(y[test], labels))
    return {task: float(np.mean(scores)) for task, scores in found.items()}


def on_top(known: np.ndarray, asked: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return what three classifiers on the vectors say."""
    from scipy.spatial.distance import cdist
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    linear = LogisticRegression(max_iter=200).fit(known, y)
    forest = RandomForestClassifier(50, random_state=SEED).fit(known, y)
    return {
        "kNN": nearest(cdist(known, known), cdist(asked, known), y),
        "linear": linear.predict(asked),
        "tree": forest.predict(asked),
    }


def nearest(inner: np.ndarray, outer: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Let the k nearest vote, ties at the k-th place included; k by leave-one-out."""
    classes, codes = np.unique(y, return_inverse=True)
    votes_of = np.eye(len(classes))[codes]
    inner = inner.copy()
    np.fill_diagonal(inner, np.inf)
    sizes = [k for k in (1, 3, 5, 7, 11) if k < len(y)]

    def vote(D: np.ndarray, k: int) -> np.ndarray:
        reach = np.partition(D, k - 1, axis=1)[:, k - 1 : k]
        return ((reach * (1 + 1e-9) + 1e-12 >= D) @ votes_of).argmax(axis=1)

    best = max(sizes, key=lambda k: np.mean(vote(inner, k) == codes))
    return classes[vote(outer, best)]


if __name__ == "__main__":
    main()
