"""CoCA against PCA on joined features, as in section 4.5 of Shi (2013): Figures 11-13 and 15.

Run ``python benchmarks/sources_coca.py --large``; without ``--large`` the part on 50,000 rows is
left out. The data sets are read by ``tabweave.datasets.load``.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from _coca_data import draw, mfeat, sources_of
from _coca_graphs import report_graphs
from _coca_large import large
from _report import FOLDER, Report
from tabweave import CoCA, Sources, papers

DIMENSIONS = range(2, 31)
DRAWS, STARTS, LABELLED = 3, 10, 0.3
SETS = ("mfeat", "citeseer", "terrorist attacks")
FIGURES = {"mfeat": 11, "citeseer": 12, "terrorist attacks": 13}
METHODS = (
    "PCA, joined",
    "PCA, unit trace",
    "CoCA, equal",
    "CoCA, learned",
    "CoCA, published",
)

KINDS = {
    "equal": partial(CoCA, weights="equal"),
    "learned": CoCA,
    "published": papers.CoCA,
}


# -- methods -------------------------------------------------------------------------------------


def joined(tables: dict, graphs: dict, k: int, unit: bool) -> np.ndarray:
    """Eq. (4.20): all tables and adjacency matrices side by side, then scikit-learn's PCA."""
    parts = []
    for X in [*tables.values(), *graphs.values()]:
        X = sp.csr_array(X)
        variance = (X.multiply(X).mean(axis=0) - np.asarray(X.mean(axis=0)) ** 2).sum()
        parts.append(X / np.sqrt(variance) if unit else X)
    X = sp.csr_array(sp.hstack(parts))
    return PCA(k, svd_solver="arpack", random_state=0).fit_transform(X)


def embeddings(
    name: str, seed: int, k: int
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, dict]:
    tables, graphs, y = draw(name, seed)
    known = np.random.default_rng(seed).permutation(len(y))[: int(LABELLED * len(y))]
    labels = {int(i): y[i] for i in known}
    sources = sources_of(tables, graphs, len(y))
    out = {
        "PCA, joined": joined(tables, graphs, k, False),
        "PCA, unit trace": joined(tables, graphs, k, True),
    }
    weights: dict[str, float] = {}
    for kind, make in KINDS.items():
        model = make(k).fit(sources, labels)
        out[f"CoCA, {kind}"] = model.transform(sources)
        if kind == "learned":
            weights = {**model.weights_, **model.graph_weights_}
    hidden = np.setdiff1d(np.arange(len(y)), known)
    return out, y, hidden, weights


def scores(phi: np.ndarray, y: np.ndarray, rows: np.ndarray, dims: object) -> np.ndarray:
    """NMI of k-means by dimension, start, and (all rows, rows without labels)."""
    k = len(np.unique(y))
    out = []
    for d in dims:
        runs = []
        for seed in range(STARTS):
            found = KMeans(k, n_init=1, random_state=seed).fit_predict(phi[:, :d])
            runs.append(
                [normalized_mutual_info_score(y[at], found[at]) for at in (slice(None), rows)]
            )
        out.append(runs)
    return np.array(out)


# -- parts of the report -------------------------------------------------------------------------


def figures(report: Report) -> None:
    means: dict[str, dict[str, float]] = {}
    for name in SETS:
        dims = [*DIMENSIONS]
        cells: dict[str, list[np.ndarray]] = {method: [] for method in METHODS}
        for seed in range(DRAWS):
            phis, y, hidden, weights = embeddings(name, seed, max(dims))
            for method, phi in phis.items():
                cells[method].append(scores(phi, y, hidden, dims))
        means[name] = table(report, name, dims, {m: np.array(c) for m, c in cells.items()})
        report.line("\nLearned weights, last draw: " + weights_line(weights) + ".")
    bars(report, means)


def weights_line(weights: dict[str, float]) -> str:
    return ", ".join(f"{source} {w:.2f}" for source, w in weights.items())


def table(
    report: Report, name: str, dims: list[int], cells: dict[str, np.ndarray]
) -> dict[str, float]:
    """One figure: a line for each method, the plot, the means over dimensions 2-30."""
    number = FIGURES[name]
    report.section(f"Figure {number}: {name}")
    shown = [2, 4, 8, 15, 20, 30]
    heads = [*map(str, shown), "mean 2-30 ± starts and draws", "same, rows without labels"]
    report.line("| NMI by dimension | " + " | ".join(heads) + " |")
    report.line("| --- " * (len(heads) + 1) + "|")
    means, curves = {}, {}
    for method, values in cells.items():  # draws × dims × starts × 2
        curves[method] = values[..., 0].mean(axis=(0, 2))
        runs = values[:, : len(DIMENSIONS)].mean(axis=1)
        means[method] = float(runs[..., 0].mean())
        row = [f"{curves[method][dims.index(d)]:.3f}" for d in shown]
        row += [f"**{means[method]:.3f}** ± {runs[..., 0].std():.3f}", f"{runs[..., 1].mean():.3f}"]
        report.line(f"| {method} | " + " | ".join(row) + " |")
    plot(f"sources-coca-fig{number}.png", dims, curves, name, "dimensions", "NMI")
    report.line(f"\n![NMI by dimension](sources-coca-fig{number}.png)")
    return means


def plot(
    file: str, x: object, curves: dict[str, np.ndarray], title: str, xlabel: str, ylabel: str
) -> None:
    from tabweave.plots import precision_curve

    ax = precision_curve(x, curves, ylabel=ylabel)
    ax.set(title=title, xlabel=xlabel)
    if xlabel == "α":
        ax.set_xscale("symlog", linthresh=0.05)
    FOLDER.mkdir(exist_ok=True)
    ax.figure.savefig(FOLDER / file, dpi=110, bbox_inches="tight")


def bars(report: Report, means: dict[str, dict[str, float]]) -> None:
    report.section("Bars: mean NMI over dimensions 2-30")
    for name, mean in means.items():
        for ours, peer in (
            ("CoCA, learned", "PCA, joined"),
            ("CoCA, learned", "PCA, unit trace"),
            ("CoCA, learned", "CoCA, equal"),
        ):
            passed = "passed" if mean[ours] > mean[peer] else "MISSED"
            report.line(
                f"- {name}: {ours} **{mean[ours]:.3f}**, {peer} {mean[peer]:.3f} "
                f"(bar: above; {passed})"
            )
        for peer in ("PCA, joined", "PCA, unit trace"):
            gap = mean["CoCA, equal"] - mean[peer]
            report.line(f"- {name}: CoCA, equal minus {peer}: {gap:+.3f} (no bar)")
    report.line(
        "\nWithout a graph and with equal weights CoCA is PCA on unit-trace tables (α = 1/p), so "
        "on mfeat these two are one method."
    )


def classifiers(report: Report) -> None:
    """Figure 15(a): classifiers on the reduced data, equal weights, 10-fold cross-validation."""
    report.section("Figure 15(a): accuracy of classifiers on mfeat, equal weights, 10 folds")
    tables, graphs, y = mfeat()
    phis = {
        "PCA, joined": joined(tables, graphs, 8, False),
        "CoCA, equal": CoCA(8, weights="equal").fit_transform(sources_of(tables, graphs, len(y))),
    }
    models = {
        "SVM": SVC(),
        "decision tree": DecisionTreeClassifier(random_state=0),
        "naive Bayes": GaussianNB(),
        "nearest neighbour": KNeighborsClassifier(1),
        "logistic regression": LogisticRegression(max_iter=2000),
        "self-training SVM": SelfTrainingClassifier(CalibratedClassifierCV(SVC(), ensemble=False)),
    }
    report.line("| dimensions, method | " + " | ".join(models) + " |")
    report.line("| --- " * (len(models) + 1) + "|")
    for d in (2, 8):
        for method, phi in phis.items():
            row = [
                cross_val_score(make_pipeline(StandardScaler(), model), phi[:, :d], y, cv=10).mean()
                for name, model in models.items()
                if name != "self-training SVM"
            ]
            row.append(self_training(models["self-training SVM"], phi[:, :d], y))
            report.line(f"| {d}, {method} | " + " | ".join(f"{a:.3f}" for a in row) + " |")
    report.line(
        "\nThe semi-supervised SVM is self-training: of each training part, half the labels are "
        "hidden."
    )


def self_training(model: SelfTrainingClassifier, X: np.ndarray, y: np.ndarray) -> float:
    from sklearn.model_selection import StratifiedKFold

    code = np.unique(y, return_inverse=True)[1]
    X, right = StandardScaler().fit_transform(X), []
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, code):
        part = code[train].copy()
        part[np.random.default_rng(0).random(len(part)) < 0.5] = -1
        right.append((model.fit(X[train], part).predict(X[test]) == code[test]).mean())
    return float(np.mean(right))


def sensitivity(report: Report) -> None:
    """Figure 15(b): NMI on the terrorist attacks against α, here of unit-trace sources."""
    report.section("Figure 15(b): α on terrorist attacks, 15 dimensions")
    tables, graphs, y = draw("terrorist attacks", 0)
    sources = sources_of(tables, graphs, len(y))
    known = np.random.default_rng(0).permutation(len(y))[: int(LABELLED * len(y))]
    labels = {int(i): y[i] for i in known}
    alphas = (0.0, 0.02, 0.05, 1 / 6, 0.5, 1.0, 5.0, 60.0)
    curves = {}
    for kind, make in KINDS.items():
        curves[f"CoCA, {kind}"] = np.array(
            [
                scores(
                    make(15, alpha=a).fit(sources, labels).transform(sources),
                    y,
                    known,
                    [15],
                )[..., 0].mean()
                for a in alphas
            ]
        )
    report.line("| α | " + " | ".join(f"{a:.3g}" for a in alphas) + " |")
    report.line("| --- " * (len(alphas) + 1) + "|")
    for method, values in curves.items():
        report.line(f"| {method} | " + " | ".join(f"{v:.3f}" for v in values) + " |")
    plot("sources-coca-fig15b.png", alphas, curves, "terrorist attacks", "α", "NMI")
    report.line("\n![NMI by α](sources-coca-fig15b.png)")


def incomplete(report: Report) -> None:
    """Rows taken out of each table of mfeat; PCA gets the column means instead."""
    report.section("Incomplete rows: mfeat, 30 % of the rows of each table taken out")
    tables, _, y = mfeat()
    n, found = len(y), {"PCA, unit trace, means": [], "CoCA, equal": [], "CoCA, learned": []}
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        kept = {name: np.sort(rng.permutation(n)[: int(0.7 * n)]) for name in tables}
        part = Sources({name: (kept[name], X[kept[name]]) for name, X in tables.items()})
        at = part.ids.astype(int)
        filled = {}
        for name, X in tables.items():
            filled[name] = np.tile(X[kept[name]].mean(axis=0), (n, 1))
            filled[name][kept[name]] = X[kept[name]]
        labels = {int(i): y[i] for i in rng.choice(at, int(LABELLED * n), replace=False)}
        phis = {"PCA, unit trace, means": joined(filled, {}, 30, True)[at]}
        for kind in ("equal", "learned"):
            phis[f"CoCA, {kind}"] = KINDS[kind](30).fit(part, labels).transform(part)
        for method, phi in phis.items():
            found[method].append(scores(phi, y[at], slice(None), range(2, 31, 4))[..., 0].mean())
    report.line("| mean NMI, dimensions 2, 6, …, 30 | mean | of each draw |")
    report.line("| --- | --- | --- |")
    for method, values in found.items():
        each = ", ".join(f"{v:.3f}" for v in values)
        report.line(f"| {method} | {np.mean(values):.3f} | {each} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, help="graphs only: number of seeds")
    parser.add_argument("--large", action="store_true", help="also 50,000 rows")
    options = parser.parse_args()
    if options.graphs:
        report_graphs(options.graphs, ("cora", "citeseer"))
        return
    flag = " --large" if options.large else ""
    report = Report("CoCA: many sources in one space", f"python benchmarks/sources_coca.py{flag}")
    report.line(
        f"\nNMI (arithmetic) of k-means, mean of {STARTS} single starts and {DRAWS} draws of noise "
        f"and labels; {LABELLED:.0%} of the rows labelled for the learned weights. Figures 11-13 "
        "and 15 of Shi (2013), up to 30 dimensions; published are curves only. Times are of a busy "
        "machine."
    )
    figures(report)
    classifiers(report)
    sensitivity(report)
    incomplete(report)
    if options.large:
        large(report)
    report.finish("sources-coca.md")


if __name__ == "__main__":
    main()
