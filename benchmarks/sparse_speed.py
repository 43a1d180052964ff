"""How fast, how exact and how useful are sparse codes? Pursuits, K-SVD, set-valued tables.

python benchmarks/sparse_speed.py --peers /path/to/python   # one with ksvd and dictlearn installed
python benchmarks/sparse_speed.py --quick                   # smaller, prints only
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, orthogonal_mp_gram
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from _report import Report, best_of
from tabweave import Column
from tabweave.embed.sets import KSVD, SetTfidf, batch_omp, first_atoms, omp

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
COMMAND = "python benchmarks/sparse_speed.py --peers peers/bin/python"
ATOMS, TURNS, NONZERO = 128, 5, 6
PEERS = """
import sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
name, path, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3])
X, D = (np.load(path)[key] for key in ("X", "D"))
K, turns, s = 128, 5, 6
def model():
    if name == "ksvd":
        from ksvd import ApproximateKSVD
        np.random.seed(12345)  # 0 would draw the planted atoms themselves
        return ApproximateKSVD(n_components=K, max_iter=turns, transform_n_nonzero_coefs=s)
    from dictlearn import DictionaryLearning
    return DictionaryLearning(n_components=K, n_nonzero_coefs=s, max_iter=turns, dict_init=D)
model()
best = np.inf
for _ in range(repeats):
    start = time.perf_counter()
    fitted = model().fit(X)
    best = min(best, time.perf_counter() - start)
np.savez(path, X=X, D=fitted.components_)
print(best)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, no report file")
    parser.add_argument("--peers", default=sys.executable, help="a Python with ksvd and dictlearn")
    options = parser.parse_args()
    report = Report("Sparse codes", COMMAND)
    same_answers(report)
    recovery(report)
    pursuit_speed(report, 2_000 if options.quick else 20_000)
    ksvd_speed(report, options.peers, 1_000 if options.quick else 5_000, 1 if options.quick else 2)
    dimensions(report, 1_000 if options.quick else 5_000)
    curves(report)
    usefulness(report)
    report.finish(None if options.quick else "sparse.md")


def unit_atoms(n_atoms: int, d: int, rng: np.random.RandomState) -> np.ndarray:
    atoms = rng.standard_normal((n_atoms, d))
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def planted(
    n: int, d: int, n_atoms: int, nonzero: int, decibel: float, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return a dictionary and signals of few of its atoms, with noise."""
    rng = np.random.RandomState(seed)
    atoms = unit_atoms(n_atoms, d, rng)
    codes = np.zeros((n, n_atoms))
    chosen = rng.random((n, n_atoms)).argsort(axis=1)[:, :nonzero]
    np.put_along_axis(codes, chosen, rng.standard_normal((n, nonzero)), axis=1)
    X = codes @ atoms
    noise = rng.standard_normal(X.shape)
    return atoms, X + noise * np.linalg.norm(X) / np.linalg.norm(noise) * 10 ** (-decibel / 20)


def passed(good: bool) -> str:
    return "passed" if good else "MISSED"


def same_answers(report: Report) -> None:
    report.section("Same answers")
    atoms, X = planted(500, 40, 80, 6, 20)
    gram, products = atoms @ atoms.T, atoms @ X.T
    for nonzero in (1, 6, 15):
        ours, theirs = omp(X, atoms, n_nonzero=nonzero), batch_omp(X, atoms, n_nonzero=nonzero)
        peer = orthogonal_mp_gram(gram, products, n_nonzero_coefs=nonzero).T
        supports = (ours.toarray() != 0) != (theirs.toarray() != 0)
        gap = max(abs(ours - theirs).max(), np.abs(peer - theirs.toarray()).max())
        report.line(
            f"- {nonzero} atoms, 500 signals: OMP, Batch-OMP and orthogonal_mp_gram differ in "
            f"{int(supports.sum())} supports and by at most **{gap:.1e}** "
            f"(bar: 1e-8; {passed(gap < 1e-8 and not supports.any())})"
        )


def recovery(report: Report) -> None:
    report.section("Planted dictionaries: 2,000 signals at 30 dB, 100 turns")
    for d, n_atoms, nonzero in ((20, 50, 3), (30, 50, 3), (64, 100, 4), (64, 128, 4)):
        shares, rises = [], []
        for seed in range(3):
            atoms, X = planted(2_000, d, n_atoms, nonzero, 30, seed)
            model = KSVD(n_atoms, n_nonzero=nonzero, max_iter=100, random_state=seed).fit(X)
            shares.append((np.abs(atoms @ model.components_.T).max(axis=1) > 0.99).mean())
            rises.append(np.diff(model.error_trace_).max())
        report.line(
            f"- {n_atoms} atoms in {d} dimensions, {nonzero} a signal, seeds 0, 1, 2: recovered "
            f"**{', '.join(f'{share:.0%}' for share in shares)}** (bar: 95 %; "
            f"{passed(min(shares) >= 0.95)}); largest rise of the error {max(rises):.1e} "
            f"(bar: 0; {passed(max(rises) <= 0)})"
        )


def pursuit_speed(report: Report, n: int) -> None:
    report.section(f"Batch-OMP: {n:,} signals × 64, {ATOMS} atoms, {NONZERO} a signal")
    atoms, X = planted(n, 64, ATOMS, NONZERO, 20)
    gram, products = atoms @ atoms.T, atoms @ X.T
    batch_omp(X[:10], atoms, n_nonzero=NONZERO)
    ours = best_of(lambda: batch_omp(X, atoms, n_nonzero=NONZERO), 7)
    peer = best_of(lambda: orthogonal_mp_gram(gram, products, n_nonzero_coefs=NONZERO), 2)
    report.ratio("than scikit-learn's orthogonal_mp_gram, whose products are given", peer, ours, 5)


def ksvd_speed(report: Report, python: str, n: int, repeats: int) -> None:
    report.section(f"K-SVD: {n:,} × 64, {ATOMS} atoms, {NONZERO} a signal, {TURNS} turns")
    _, X = planted(n, 64, ATOMS, NONZERO, 20)

    def model(update: str = "approx") -> KSVD:
        return KSVD(ATOMS, n_nonzero=NONZERO, max_iter=TURNS, update=update, random_state=0).fit(X)

    ours = best_of(model, 5)
    error = relative_error(X, model().components_)
    exact = best_of(lambda: model("exact"), 2)
    report.line(f"- tabweave: {ours:.3f} s, error {error:.4f}; exact update: {exact:.3f} s")
    first = first_atoms(X, ATOMS, np.random.RandomState(0))
    for peer, bar in (("ksvd", 10), ("dictlearn", 3)):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/data.npz"
            np.savez(path, X=X, D=first)
            command = [python, "-c", PEERS, peer, path, str(repeats)]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode:
                report.line(f"- {peer}: failed: {run.stderr.strip().splitlines()[-1]}")
                continue
            peer_error = relative_error(X, np.load(path)["D"])
        note = " (same first atoms)" if peer == "dictlearn" else ""
        report.ratio(f"than {peer}{note}", float(run.stdout), ours, bar)
        report.line(
            f"  error ‖X − ΓD‖/‖X‖ {error:.4f} against {peer_error:.4f} of {peer} "
            f"(bar: equal or lower; {passed(error <= peer_error * (1 + 1e-9))})"
        )


def relative_error(X: np.ndarray, atoms: np.ndarray) -> float:
    """Judge a dictionary by the same pursuit, whoever learned it."""
    atoms = atoms / np.linalg.norm(atoms, axis=1, keepdims=True)
    codes = batch_omp(X, atoms, n_nonzero=NONZERO)
    return float(np.linalg.norm(X - codes @ atoms) / np.linalg.norm(X))


def dimensions(report: Report, n: int) -> None:
    report.section(f"Table III: seconds with Batch-OMP (T1) and OMP-Cholesky (T2), {n:,} signals")
    report.line(f"{ATOMS} atoms, {NONZERO} a signal; dictionary learning takes {TURNS} turns.\n")
    report.line("| dimensions | learning T1 | learning T2 | coding T1 | coding T2 | coding T2/T1 |")
    report.line("| ---: | ---: | ---: | ---: | ---: | ---: |")
    good = True
    for d in (5, 10, 25, 50, 75, 100, 200, 300):
        nonzero = min(NONZERO, d)
        _, X = planted(n, d, ATOMS, nonzero, 20)
        atoms = first_atoms(X, ATOMS, np.random.RandomState(0))
        seconds = []
        for pursuit in ("batch", "omp"):
            model = KSVD(ATOMS, n_nonzero=nonzero, max_iter=TURNS, pursuit=pursuit, random_state=0)
            seconds.append(best_of(lambda model=model, X=X: model.fit(X), 3))
        for code in (batch_omp, omp):
            call = partial(code, X, atoms, n_nonzero=nonzero)
            seconds.append(best_of(call, 5))
        report.line(
            f"| {d} | " + " | ".join(f"{s:.3f}" for s in seconds) + f" | "
            f"{seconds[3] / seconds[2]:.1f} |"
        )
        good &= d < 50 or (seconds[0] < seconds[1] and seconds[2] < seconds[3])
    report.line(f"\n- Batch-OMP faster from 50 dimensions up, learning and coding: {passed(good)}")


def curves(report: Report) -> None:
    report.section("Fig. 6: reconstruction error by turn, TF-IDF of a table with set columns")
    X = SetTfidf(min_df=5).fit_transform(topics()[0])
    n, d = X.shape
    report.line(f"{n:,} rows, {d:,} terms of up to 2 elements; 64 atoms, 8 a row.\n")
    report.line("| pursuit, update | first atoms | 1 | 2 | 5 | 10 | 20 |")
    report.line("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for pursuit in ("batch", "omp"):
        for update in ("approx", "exact"):
            model = KSVD(
                64, n_nonzero=8, max_iter=20, pursuit=pursuit, update=update, random_state=0
            )
            trace = model.fit(X).error_trace_
            trace = np.append(trace, np.repeat(trace[-1], 21))[[0, 1, 2, 5, 10, 20]]
            cells = " | ".join(f"{error:.2f}" for error in trace)
            report.line(f"| {pursuit}, {update} | {cells} |")
    report.line("\nBoth pursuits choose the same atoms, so their curves are one: the gap in the")
    report.line("paper's Fig. 6 cannot come from the pursuit.")


def topics(n: int = 2_000, n_topics: int = 10, seed: int = 0) -> tuple[dict, np.ndarray]:
    """Return a table of two set columns and one value column, rows drawn around latent topics.

    Half of the elements come from the row's topic (15 elements a column), half from all 300.
    """
    rng = np.random.RandomState(seed)
    y = rng.randint(n_topics, size=n)
    columns: dict[str, list] = {}
    for name in ("tags", "codes"):
        own = np.array([rng.choice(300, 15, replace=False) for _ in range(n_topics)])
        cells = []
        for topic in y:
            size = rng.randint(4, 13)
            noise = rng.randint(300, size=size)
            drawn = np.where(rng.random(size) < 0.5, own[topic][rng.randint(15, size=size)], noise)
            cells.append([f"{name[0]}{v}" for v in drawn])
        columns[name] = cells
    columns["site"] = [f"s{v}" for v in rng.randint(5, size=n)]
    return columns, y


def usefulness(report: Report) -> None:
    report.section("Sparse codes against multi-hot, at a quarter of the stored non-zeros")
    report.line(
        "Atoms: 2, 3 and 4 times the number of classes; atoms a row: as many as keep the codes at "
        "a quarter of multi-hot's non-zeros. Clusters: k-means, mean NMI of 5 seeds. Classes: "
        "logistic regression, 5 folds, representation learned on the training part.\n"
    )
    report.line("| data | representation | non-zeros a row | NMI | accuracy |")
    report.line("| --- | --- | ---: | ---: | ---: |")
    rows, y = topics()
    beaten = {"topics": compare(report, "topics", pd.DataFrame(rows), y, None)}
    for name in ("cora", "citeseer"):
        path = DATA / f"{name}_content.csv.gz"
        if path.exists():
            frame = pd.read_csv(path, dtype=str)
            schema = {"words": Column("words", "set", delimiter=" ")}
            y = frame["class"].to_numpy()
            beaten[name] = compare(report, name, frame[["words"]], y, schema)
    report.line("")
    for name, (clusters, classes) in beaten.items():
        report.line(
            f"- {name}, 2 atoms a class: clusters {passed(clusters)}, classes {passed(classes)} "
            "(bar: above multi-hot in one of them)"
        )


def compare(
    report: Report, name: str, frame: pd.DataFrame, y: np.ndarray, schema: object
) -> tuple[bool, bool]:
    k = len(np.unique(y))
    multi_hot = SetTfidf(1, weighting="binary", schema=schema)
    weighted = make_pipeline(SetTfidf(1, schema=schema), Normalizer())
    before = score(report, name, "multi-hot", multi_hot, frame, y)
    score(report, name, "TF-IDF, unit length", weighted, frame, y)
    nonzero = multi_hot.fit_transform(frame).nnz // len(frame) // 4
    results = []
    for factor in (2, 3, 4):
        model = make_pipeline(
            SetTfidf(1, schema=schema),
            Normalizer(),
            KSVD(factor * k, n_nonzero=nonzero, random_state=0),
        )
        results.append(score(report, name, f"codes, {factor * k} atoms", model, frame, y))
    return results[0][0] > before[0], results[0][1] > before[1]


def score(report: Report, name: str, what: str, model, frame, y) -> tuple[float, float]:
    Z = model.fit_transform(frame)
    k = len(np.unique(y))
    labels = [KMeans(k, n_init=5, random_state=seed).fit_predict(Z) for seed in range(5)]
    nmi = float(np.mean([normalized_mutual_info_score(y, found) for found in labels]))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    judge = make_pipeline(model, LogisticRegression(max_iter=1000))
    accuracy = float(cross_val_score(judge, frame, y, cv=folds).mean())
    size = Z.nnz / Z.shape[0]
    report.line(f"| {name} | {what} | {size:.2f} | {nmi:.3f} | {accuracy:.3f} |")
    return nmi, accuracy


if __name__ == "__main__":
    main()
