"""Speed of the tasks against their peers: k-modes, k nearest neighbours, pairwise distances.

Run ``python benchmarks/tasks_speed.py --peer-python peers/bin/python``; the other interpreter
holds the peers (``pip install kmodes gower numpy pandas scikit-learn 'setuptools<81'``) and gets
the data as ``.npy`` files. Without it, peers are looked for in this interpreter. Each line says
seconds, ratio and whether results agree; tabweave's time is the best of seven, the peer runs once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_FACTS = "benchmark-facts:"


def clustered_rows(n: int, m: int, k: int, noise: float, seed: int = 0) -> Any:
    """Return integer categories (2 to 12 values a column) around k centres, and the clusters."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 13, m)
    centers = np.stack([rng.integers(0, s, k) for s in sizes], axis=1)
    clusters = rng.integers(0, k, n)
    drawn = np.stack([rng.integers(0, s, n) for s in sizes], axis=1)
    return np.where(rng.random((n, m)) < noise, drawn, centers[clusters]), clusters


def mixed_rows(n: int, seed: int = 0) -> np.ndarray:
    """Return ten columns of text with 2 to 200 values."""
    rng = np.random.default_rng(seed)
    sizes = [2, 3, 3, 5, 8, 12, 20, 40, 100, 200]
    return np.stack([np.char.add("v", rng.integers(0, s, n).astype(str)) for s in sizes], axis=1)


def best_of(work: Callable[[], Any], repeats: int = 7) -> tuple[float, Any]:
    """Return the shortest time and the last result, after one run that compiles."""
    result = work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


# -- peers, run in whichever interpreter has them ---------------------------------------------


def peer_kmodes(folder: Path, n_init: int, init: str) -> dict[str, float]:
    from kmodes.kmodes import KModes

    X = np.load(folder / "X.npy")
    start = time.perf_counter()
    model = KModes(10, init=init.title(), n_init=n_init, random_state=0).fit(X)
    return {"seconds": time.perf_counter() - start, "cost": float(model.cost_)}


def peer_knn(folder: Path, n_train: int) -> dict[str, float]:
    from sklearn.neighbors import KNeighborsClassifier

    X, y = np.load(folder / "X.npy").astype(float), np.load(folder / "y.npy")
    model = KNeighborsClassifier(5, metric=_mismatches, algorithm="brute")
    model.fit(X[:n_train], y[:n_train])
    start = time.perf_counter()
    predicted = model.predict(X[n_train:])
    seconds = time.perf_counter() - start
    np.save(folder / "predicted.npy", predicted)
    np.save(folder / "distances.npy", model.kneighbors(X[n_train:][:50])[0])
    return {"seconds": seconds}


def _mismatches(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.count_nonzero(a != b))


def peer_gower(folder: Path) -> dict[str, float]:
    import gower

    X = np.load(folder / "X.npy").astype(object)
    start = time.perf_counter()
    D = gower.gower_matrix(X, cat_features=[True] * X.shape[1])
    seconds = time.perf_counter() - start
    np.save(folder / "corner.npy", D[:50, :50])
    return {"seconds": seconds}


PEERS: dict[str, tuple[str, Callable[..., dict[str, float]]]] = {
    "kmodes": ("kmodes", peer_kmodes),
    "knn": ("sklearn", peer_knn),
    "gower": ("gower", peer_gower),
}


def run_peer(name: str, folder: Path, python: str | None, **options: Any) -> dict[str, Any]:
    """Run a peer in the given interpreter, or in this one; {} if it is missing there."""
    python = python or sys.executable
    package = PEERS[name][0]
    if subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode:
        return {}
    command = [python, __file__, "--peer", name, "--folder", str(folder)]
    done = subprocess.run(
        [*command, "--options", json.dumps(options)], capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        if line.startswith(_FACTS):
            return json.loads(line.removeprefix(_FACTS))
    raise RuntimeError(f"peer {name} failed:\n{done.stderr[-2000:]}")


LINES: list[str] = []


def report(title: str, seconds: float, peer: dict[str, Any], goal: float, note: str = "") -> None:
    if peer:
        ratio = peer["seconds"] / seconds
        passed = "passed" if ratio >= goal else "MISSED"
        text = (
            f"- {title}: **{ratio:.0f}×** ({peer['seconds']:.2f} s / {seconds:.4f} s) "
            f"(bar: {goal:.0f}×; {passed}) {note}"
        )
    else:
        text = f"- {title}: {seconds:.4f} s; peer missing"
    print(text, flush=True)
    LINES.append(text.rstrip())


# -- benchmarks -------------------------------------------------------------------------------


def bench_kmodes(python: str | None = None, n_init: int = 5) -> None:
    from tabweave.cluster import KModes

    for noise, init in ((0.5, "random"), (0.5, "huang"), (0.5, "cao"), (0.7, "random")):
        X, _ = clustered_rows(20_000, 20, 10, noise)
        starts = 1 if init == "cao" else n_init
        model = KModes(10, init=init, n_init=starts, random_state=0)
        seconds, fitted = best_of(lambda model=model, X=X: model.fit(X))
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "X.npy", X)
            peer = run_peer("kmodes", Path(folder), python, n_init=starts, init=init)
        note = f"cost {fitted.cost_:.0f} against {peer.get('cost', float('nan')):.0f}"
        title = f"k-modes 20,000 x 20, k=10, {init}, noise {noise}, n_init={starts}"
        report(title, seconds, peer, 50, note)


def bench_knn(python: str | None = None, n_train: int = 5_000, n_queries: int = 400) -> None:
    from tabweave.neighbors.knn import WeightedKNN

    X, y = clustered_rows(n_train + n_queries, 20, 10, 0.75)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X)
        np.save(Path(folder) / "y.npy", y)
        peer = run_peer("knn", Path(folder), python, n_train=n_train)
        theirs = np.load(Path(folder) / "predicted.npy") if peer else None
        near = np.load(Path(folder) / "distances.npy") if peer else None
    for ties in ("all", "first"):
        model = WeightedKNN(5, ties=ties).fit(X[:n_train], y[:n_train])
        seconds, predicted = best_of(lambda model=model: model.predict(X[n_train:]))
        note = f"accuracy {(predicted == y[n_train:]).mean():.3f}"
        if theirs is not None:  # equal distances; predictions differ where ties decide
            same = np.array_equal(model.kneighbors(X[n_train:][:50])[0], near)
            note += f" against {(theirs == y[n_train:]).mean():.3f}, same distances: {same}"
        report(f"kNN {n_train} x {n_queries} rows, ties={ties}", seconds, peer, 20, note)


def bench_pairwise(python: str | None = None, n: int = 10_000) -> None:
    from tabweave import OneHot
    from tabweave.embed.value_metric import ValueMetric

    X = mixed_rows(n)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X)
        peer = run_peer("gower", Path(folder), python)
        corner = np.load(Path(folder) / "corner.npy") if peer else None
    for metric in (ValueMetric("hamming", schema="nominal"), OneHot(schema="nominal")):
        metric.fit(X)
        seconds, D = best_of(lambda metric=metric: metric.pairwise_distances(X))
        note = ""
        if corner is not None:
            ours = D[:50, :50] / D.max()
            ours = ours**2 if isinstance(metric, OneHot) else ours
            error = np.abs(ours - corner).max()
            note = f"largest difference {error:.1e}"
        report(f"pairwise {n} rows, {type(metric).__name__}", seconds, peer, 50, note)
        del D


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", help="interpreter that has the peers")
    parser.add_argument("--only", choices=["kmodes", "knn", "pairwise"])
    parser.add_argument("--peer", choices=list(PEERS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--options", default="{}", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peer:
        print(_FACTS + json.dumps(PEERS[given.peer][1](given.folder, **json.loads(given.options))))
        return
    for name, bench in (
        ("kmodes", bench_kmodes),
        ("knn", bench_knn),
        ("pairwise", bench_pairwise),
    ):
        if given.only in (None, name):
            bench(given.peer_python)
    if given.only is None:
        from _report import Report

        out = Report(
            "Speed of the tasks", "python benchmarks/tasks_speed.py --peer-python peers/bin/python"
        )
        out.section("Against kmodes, scikit-learn with a callable metric, and gower; 2 cores")
        out.lines += LINES
        out.finish("tasks.md")


if __name__ == "__main__":
    main()
