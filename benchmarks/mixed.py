"""Weave against Gower, FAMD (prince) and one-hot with standard scaling, in one run.

Run ``python benchmarks/mixed.py --peer-python peers/bin/python``; the other interpreter holds
prince (``pip install prince``) and gets the data as files. Everything is fitted on training rows.
``--models`` asks instead what LightGBM and logistic regression make of the vectors of Weave, beside
those of skrub's TableVectorizer; ``--site`` is the site-packages folder of an environment that has
skrub.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.model_selection import RepeatedStratifiedKFold

from _report import Report, best_of

SETS = ("adult_mixed", "australian", "german_credit", "heart_disease")
METHODS = ("Weave", "one-hot + scaling", "FAMD", "Gower")
ADULT_ROWS = 4000
NEIGHBORS = (1, 3, 5, 7, 11, 15, 21)
COMPONENTS = 5
SEEDS = 10  # of the clusterings: k-medoids of german credit is 0.9 or 1.9, as it starts


def read(name: str) -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, str]]:
    from tabweave.datasets import load

    data = load(name)
    if name == "adult_mixed":
        data = data.take(np.random.default_rng(0).permutation(data.n_rows)[:ADULT_ROWS])
    y = np.where(data.y == "0", "0", "1") if name == "heart_disease" else data.y
    return data.columns, y, data.kinds


def filled(columns: dict[str, np.ndarray], kinds: dict[str, str], train: np.ndarray) -> Any:
    """Return a frame without gaps, for the peers that cannot have any."""
    import pandas as pd

    out = {}
    for name, values in columns.items():
        if kinds[name] == "numeric":
            out[name] = np.where(np.isnan(values), np.nanmean(values[train]), values)
        else:
            out[name] = ["?" if v is None else str(v) for v in values]
    return pd.DataFrame(out)


# -- representations: each gives a function from (rows, rows) to distances -----------------------


def ours(columns: dict, kinds: dict, train: np.ndarray) -> np.ndarray:
    from tabweave import Weave

    part = {name: values[train] for name, values in columns.items()}
    return Weave(schema=kinds).fit(part).transform(columns)


def one_hot(columns: dict, kinds: dict, train: np.ndarray) -> np.ndarray:
    frame = filled(columns, kinds, train)
    return column_transformer(kinds).fit(frame.iloc[train]).transform(frame)


def column_transformer(kinds: dict, **options: Any) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numeric = [name for name, kind in kinds.items() if kind == "numeric"]
    other = [name for name in kinds if name not in numeric]
    options = options or {"sparse_threshold": 0.0}
    return ColumnTransformer(
        [("z", StandardScaler(), numeric), ("one", OneHotEncoder(handle_unknown="ignore"), other)],
        **options,
    )


def gower(columns: dict, kinds: dict, train: np.ndarray) -> np.ndarray:
    """Gower's distance of all rows: mean over the columns both have; ranges of training rows."""
    n = len(next(iter(columns.values())))
    total, weight = np.zeros((n, n)), np.zeros((n, n))
    for name, values in columns.items():
        if kinds[name] == "numeric":
            span = np.nanmax(values[train]) - np.nanmin(values[train])
            apart = np.abs(values[:, None] - values) / (span if span > 0 else 1)
            both = ~np.isnan(apart)
            total += np.where(both, apart, 0)
        else:
            text = np.array(["?" if v is None else str(v) for v in values])
            codes = np.unique(text, return_inverse=True)[1]
            both = (text != "?")[:, None] & (text != "?")
            total += (codes[:, None] != codes) & both
        weight += both
    return total / np.maximum(weight, 1)


def famd(folder: Path, python: str, name: str, columns: dict, kinds: dict, splits: list) -> list:
    """Return prince's coordinates of all rows, for every set of training rows."""
    for i, train in enumerate(splits):
        filled(columns, kinds, train).to_csv(folder / f"{i}.csv", index=False)
        np.save(folder / f"{i}.npy", train)
    numeric = [c for c, kind in kinds.items() if kind == "numeric"]
    (folder / "numeric.json").write_text(json.dumps(numeric))
    done = subprocess.run(
        [python, __file__, "--peer", str(folder), str(len(splits))], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"prince failed on {name}:\n{done.stderr[-2000:]}")
    return [np.load(folder / f"{i}.out.npy") for i in range(len(splits))]


def run_prince(folder: Path, n_splits: int) -> None:
    import pandas as pd
    import prince

    numeric = json.loads((folder / "numeric.json").read_text())
    for i in range(n_splits):
        frame = pd.read_csv(folder / f"{i}.csv", dtype=str, keep_default_na=False)
        frame[numeric] = frame[numeric].astype(float)
        train = np.load(folder / f"{i}.npy")
        # A category that no training row has is unknown to it; give such rows the commonest one.
        for column in frame.columns.difference(numeric):
            seen = frame[column].iloc[train]
            frame[column] = frame[column].where(frame[column].isin(seen), seen.mode()[0])
        model = prince.FAMD(n_components=COMPONENTS, random_state=0).fit(frame.iloc[train])
        np.save(folder / f"{i}.out.npy", np.asarray(model.transform(frame), dtype=float))


# -- scores -------------------------------------------------------------------------------------


def predicted(D: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    near = np.argpartition(D, k - 1, axis=1)[:, :k]
    classes, codes = np.unique(labels, return_inverse=True)
    votes = np.stack([(codes[near] == c).sum(axis=1) for c in range(len(classes))], axis=1)
    return classes[votes.argmax(axis=1)]


def knn(inner: np.ndarray, outer: np.ndarray, known: np.ndarray, asked: np.ndarray) -> float:
    """Return the accuracy on test rows; k has the best leave-one-out accuracy in training."""
    inner = inner.copy()
    np.fill_diagonal(inner, np.inf)
    k = max(NEIGHBORS, key=lambda k: np.mean(predicted(inner, known, k) == known))
    return 100 * float(np.mean(predicted(outer, known, k) == asked))


def medoids(D: np.ndarray, k: int, seed: int, starts: int = 20) -> np.ndarray:
    """Return the best of several runs of alternating k-medoids."""
    rng = np.random.default_rng(seed)
    best: tuple[float, np.ndarray] = (np.inf, np.zeros(len(D), int))
    for _ in range(starts):
        centres = rng.choice(len(D), k, replace=False)
        for _ in range(50):
            near = D[:, centres].argmin(axis=1)
            new = centres.copy()
            for c in range(k):
                own = np.flatnonzero(near == c)
                if len(own):
                    new[c] = own[D[np.ix_(own, own)].sum(axis=1).argmin()]
            if np.array_equal(new, centres):
                break
            centres = new
        cost = D[:, centres].min(axis=1).sum()
        best = min(best, (cost, D[:, centres].argmin(axis=1)), key=lambda pair: pair[0])
    return best[1]


def evaluate(name: str, python: str, repeats: int) -> dict[str, tuple[float, float]]:
    from sklearn.metrics import normalized_mutual_info_score

    columns, y, kinds = read(name)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=repeats, random_state=0)
    splits = list(folds.split(y, y))
    everything = np.arange(len(y))
    trains = [train for train, _ in splits] + [everything]
    with tempfile.TemporaryDirectory() as folder:
        peers = famd(Path(folder), python, name, columns, kinds, trains)
    makers: dict[str, Any] = {
        "Weave": lambda i: ours(columns, kinds, trains[i]),
        "one-hot + scaling": lambda i: one_hot(columns, kinds, trains[i]),
        "FAMD": lambda i: peers[i],
    }
    out = {}
    for method in METHODS:
        accuracies = []
        for i, (train, test) in enumerate(splits):
            if method == "Gower":
                D = gower(columns, kinds, train)
                inner, outer = D[np.ix_(train, train)], D[np.ix_(test, train)]
            else:
                E = makers[method](i)
                inner, outer = cdist(E[train], E[train]), cdist(E[test], E[train])
            accuracies.append(knn(inner, outer, y[train], y[test]))
        k, seeds = len(set(y)), range(SEEDS)
        if method == "Gower":
            D = gower(columns, kinds, everything)
            clusters = [medoids(D, k, s) for s in seeds]
        else:
            E = makers[method](len(splits))
            clusters = [KMeans(k, n_init=20, random_state=s).fit_predict(E) for s in seeds]
        out[method] = (
            float(np.mean(accuracies)),
            float(np.mean([100 * normalized_mutual_info_score(y, c) for c in clusters])),
        )
    return out


def accuracy(report: Report, python: str, repeats: int) -> None:
    from tabweave.evaluate import average_ranks

    report.section("kNN accuracy and NMI of clusters")
    report.line(
        f"adult: {ADULT_ROWS:,} rows drawn at random; heart disease: classes 1-4 merged. kNN: 5 "
        f"folds, repeated {repeats} times, k from {NEIGHBORS} by leave-one-out on training rows. "
        f"Clusters: as many as classes, k-means (best of 20 starts, mean of {SEEDS} seeds), "
        f"k-medoids for Gower. FAMD: {COMPONENTS} components (its default is 2).\n"
    )
    found = {name: evaluate(name, python, repeats) for name in SETS}
    tables = {}
    for j, metric in enumerate(("accuracy", "NMI")):
        report.line(f"\n| {metric} | " + " | ".join(SETS) + " | mean | average rank |")
        report.line("|---|" + "---|" * (len(SETS) + 2))
        scores = np.array([[found[s][m][j] for m in METHODS] for s in SETS])
        tables[metric] = scores
        ranks = average_ranks(scores)
        for i, method in enumerate(METHODS):
            cells = " | ".join(f"{v:.1f}" for v in [*scores[:, i], scores[:, i].mean()])
            report.line(f"| {method} | {cells} | {ranks[i]:.2f} |")
    report.line("")
    for metric, scores in [*tables.items(), ("both", np.vstack(list(tables.values())))]:
        shown, ahead = [], True
        for what, values in (
            ("", scores),
            ("with equal scores as printed tied, ", scores.round(1)),
        ):
            ranks = average_ranks(values)
            ahead &= bool(ranks[0] < ranks[1:].min())
            shown.append(f"{what}average rank **{ranks[0]:.2f}**, best peer {ranks[1:].min():.2f}")
        report.line(f"- {metric}: {'; '.join(shown)} ({'passed' if ahead else 'MISSED'})")


def speed(report: Report, n_rows: int) -> None:
    from tabweave import Weave
    from tabweave.datasets import load

    report.section(f"transform of {n_rows:,} mixed rows (adult, drawn with replacement)")
    data = load("adult_mixed")
    rows = np.random.default_rng(0).integers(0, data.n_rows, n_rows)
    small, large = data.frame("pandas"), data.take(rows).frame("pandas")
    theirs = column_transformer(data.kinds, sparse_threshold=1.0).fit(small)
    peer = best_of(lambda: theirs.transform(large), 3)
    report.line(f"scikit-learn ColumnTransformer, sparse output: {peer:.2f} s")
    for dtype in ("float64", "float32"):
        model = Weave(schema=data.kinds, dtype=dtype).fit(small)
        model.transform(small)
        mine = best_of(lambda model=model: model.transform(large), 3)
        width = len(model.get_feature_names_out())
        report.line(f"Weave, dense {dtype}, {width} dimensions: {mine:.2f} s")
        report.at_most(f"time of {dtype} / ColumnTransformer", mine / peer, 3)
    start = time.perf_counter()
    Weave(schema=data.kinds).fit(small)
    report.line(f"fit of {data.n_rows:,} rows: {time.perf_counter() - start:.2f} s")


# -- models on top ------------------------------------------------------------------------------

MODEL_ROWS = 2000
N_TABLES = 6
MODELS = ("LightGBM", "logistic regression")
VECTORS = ("TableVectorizer", "Weave", "SupervisedWeave")


def mixed_tables(half: str) -> list[str]:
    """Return the general tables of a half that have numbers and categories; the six longest."""
    import _arena_sets as arena

    both = {}
    for name in arena.names("general"):
        if arena.half(name, "general") == half:
            task = arena.read(name, MODEL_ROWS)
            if {"numeric", "nominal"} <= set(task.kinds.values()):
                both[name] = len(task.X)
    return sorted(sorted(both), key=lambda name: -both[name])[:N_TABLES]


def vectorizer(name: str) -> Any:
    if name == "TableVectorizer":
        from skrub import TableVectorizer

        return TableVectorizer()
    import tabweave

    return getattr(tabweave, name)()


def model_of(name: str) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "LightGBM":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_jobs=1, verbose=-1, random_state=0)
    # As skrub's tabular_pipeline has it.
    last = LogisticRegression(max_iter=1000)
    return make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), last)


def model_scores(name: str, repeats: int) -> dict[tuple[str, str], list[float]]:
    """Return the accuracy of each model on each kind of vectors, fold by fold."""
    import _arena_sets as arena

    task = arena.read(name, MODEL_ROWS)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=repeats, random_state=0)
    out: dict[tuple[str, str], list[float]] = {}
    for train, test in folds.split(task.y, task.y):
        for vectors in VECTORS:
            maker = vectorizer(vectors)
            seen = np.asarray(maker.fit_transform(task.X.iloc[train], task.y[train]))
            asked = np.asarray(maker.transform(task.X.iloc[test]))
            for model in MODELS:
                fitted = model_of(model).fit(seen, task.y[train])
                score = 100 * float(np.mean(fitted.predict(asked) == task.y[test]))
                out.setdefault((model, vectors), []).append(score)
    return out


def models(half: str, repeats: int) -> None:
    warnings.simplefilter("ignore")
    command = "python benchmarks/mixed.py --models --site peers/lib/python3.11/site-packages"
    report = Report("Models on vectors of mixed tables", command)
    names = mixed_tables(half)
    report.section(f"Accuracy, 5 folds repeated {repeats} times")
    report.line(
        f"The {N_TABLES} tables with most rows (cut to {MODEL_ROWS:,}) among those of the arena's "
        f"general {half} half that have numbers and categories. LightGBM with its defaults; "
        "logistic regression (C=1) behind an imputer and a scaler, as skrub's tabular_pipeline has "
        "it. Vectors are fitted on training rows; those of SupervisedWeave are cross-fitted.\n"
    )
    found = {name: model_scores(name, repeats) for name in names}
    report.line("| | " + " | ".join(names) + " | mean |\n|---|" + "---|" * (len(names) + 1))
    for model in MODELS:
        for vectors in VECTORS:
            means = [float(np.mean(found[name][model, vectors])) for name in names]
            cells = " | ".join(f"{v:.1f}" for v in [*means, np.mean(means)])
            report.line(f"| {model}, {vectors} | {cells} |")
    report.line("")
    for model in MODELS:
        for vectors in VECTORS[1:]:
            ahead = np.array([_ahead(found[name], model, vectors) for name in names])
            error = np.sqrt((ahead[:, 1] ** 2).sum()) / len(names)
            passed = "passed" if ahead[:, 0].mean() >= 0 else "MISSED"
            report.line(
                f"- {model} on {vectors}: **{ahead[:, 0].mean():+.2f}** above TableVectorizer, "
                f"standard error over folds {error:.2f}; ahead or level on "
                f"{(ahead[:, 0] >= 0).sum()} of {len(names)} (bar: not below; {passed})"
            )
    report.finish("mixed-models.md" if half == "reporting" else None)


def _ahead(found: dict[tuple[str, str], list[float]], model: str, vectors: str) -> list[float]:
    apart = np.subtract(found[model, vectors], found[model, "TableVectorizer"])
    return [float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", action="store_true")
    parser.add_argument("--half", default="reporting", choices=["choosing", "reporting"])
    parser.add_argument("--site", help="site-packages that hold skrub")
    parser.add_argument("--peer-python", default="peers/bin/python")
    parser.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, fewer rows")
    options = parser.parse_args()
    if options.site:
        sys.path.append(options.site)
    if options.models:
        return models(options.half, 1 if options.quick else 10)
    if options.peer:
        return run_prince(Path(options.peer[0]), int(options.peer[1]))
    report = Report("Mixed tables", "python benchmarks/mixed.py --peer-python peers/bin/python")
    accuracy(report, options.peer_python, 1 if options.quick else 3)
    speed(report, 100_000 if options.quick else 1_000_000)
    report.finish(None if options.quick else "mixed.md")


if __name__ == "__main__":
    main()
