"""Table 3.2 and the retrieval curves of the thesis: Figures 4.2, 6.3 and 7.3; and others.

``python benchmarks/figures.py`` writes benchmarks/reports/figures.md. The thesis prints curves and
no numbers; so the order of the methods is what can be compared. ``--more`` writes figures-more.md
instead: Figures 6.9, 8.4 and 8.6 and Table 5.3 of the thesis, Table IX and Figures 14 and 24 of
Shi (2013) on views of digits, which stand in for pictures that are not at hand.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from sklearn.neighbors import KNeighborsClassifier

from _report import FOLDER, Report
from tabweave import (
    CDE,
    CKML,
    HELIC,
    UNICORN,
    UNTIE,
    CoCA,
    OneHot,
    Sources,
    Table,
    ValueMetric,
    papers,
)
from tabweave.columns.table import take_rows
from tabweave.counts import couplings
from tabweave.datasets import load
from tabweave.evaluate import average_ranks, clustering_f, precision_at_k, recall_at_k
from tabweave.papers import PROTOCOLS, data_factors, stream_windows
from tabweave.papers.recommend import MatrixFactorization, find_groups, make_ratings

SIZES = (1, 5, 10, 20, 50)
# Table 3.2: objects, attributes, classes, mean and largest number of values, class imbalance
FACTORS = {
    "soybean_small": (47, 35, 4, 2.06, 7, 1.7),
    "zoo": (101, 16, 7, 2.25, 6, 10.25),
    "dna_promoter": (106, 57, 2, 4.0, 4, 1.0),
    "hayes_roth": (132, 4, 3, 3.75, 4, 1.7),
    "lymphography": (148, 18, 4, 3.28, 8, 40.5),
    "hepatitis": (155, 13, 2, 2.77, 3, 3.84),
    "audiology": (200, 69, 24, 2.23, 7, 48.0),
    "house_votes": (232, 16, 2, 2.0, 2, 1.15),
    "spect": (267, 22, 2, 2.0, 2, 3.85),
    "mofn_3_7_10": (300, 10, 2, 2.0, 2, 4.0),
    "soybean_large": (307, 35, 19, 3.77, 8, 40.0),
    "primary_tumor": (339, 17, 21, 2.47, 4, 84.0),
    "dermatology": (366, 33, 6, 3.91, 4, 5.6),
    "monks3": (432, 6, 2, 2.83, 4, 1.12),
    "three_of_9": (512, 9, 2, 2.0, 2, 1.15),
    "balance": (625, 4, 3, 5.0, 5, 5.88),
    "wisconsin": (683, 9, 2, 9.89, 10, 1.86),
    "crx": (690, 9, 2, 5.0, 15, 1.25),
    "breast_cancer_w": (699, 9, 2, 10.0, 11, 1.9),
    "mammographic": (830, 4, 2, 5.0, 7, 1.06),
    "tictactoe": (958, 9, 2, 3.0, 3, 1.89),
    "flare": (1066, 11, 6, 3.73, 8, 7.7),
    "titanic_class": (2201, 3, 4, 2.0, 2, 3.11),
    "dna_nominal": (3186, 60, 3, 4.0, 4, 2.16),
    "splice": (3190, 60, 3, 4.78, 6, 2.16),
    "krvskp": (3196, 36, 2, 2.03, 3, 1.09),
    "led24": (3200, 24, 10, 2.0, 2, 1.14),
    "mushroom": (5644, 22, 2, 4.45, 9, 1.62),
    "krkopt": (28056, 6, 18, 6.67, 8, 168.63),
    "adult_categorical": (30162, 8, 2, 12.25, 41, 3.02),
    "connect4": (67557, 42, 3, 3.0, 3, 6.9),
}
MEASURES: dict[str, Callable[[int], Any]] = {
    "COS": lambda k: ValueMetric("cos", schema="nominal"),
    "DILCA": lambda k: ValueMetric("dilca", schema="nominal"),
    "Ahmad": lambda k: ValueMetric("ahmad", schema="nominal"),
    "Rough": lambda k: papers.ValueMetric("rough"),
    "Hamming": lambda k: OneHot(schema="nominal"),
}
CURVES: dict[str, tuple[tuple[str, ...], dict[str, Callable[[int], Any]]]] = {
    "4.2": (
        ("dna_promoter", "dermatology", "breast_cancer_w"),
        {"cKML": lambda k: CKML(schema="nominal")},
    ),
    "6.3": (
        ("breast_cancer_w", "krvskp", "led24"),
        {"HELIC": lambda k: HELIC(random_state=0, schema="nominal")},
    ),
    "7.3": (
        ("dermatology", "dna_nominal", "splice"),
        {
            "UNTIE": lambda k: UNTIE(None, schema="nominal"),
            "CDE": lambda k: CDE(random_state=0, schema="nominal"),
        },
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=None, help="folder of the data sets")
    parser.add_argument("--more", action="store_true", help="the figures of figures-more.md")
    options = parser.parse_args()
    if options.more:
        report = Report("More figures of the papers", "python benchmarks/figures.py --more")
        kernels(report)
        streams(report, options.data)
        ratings(report)
        sources(report, options.data)
        report.finish("figures-more.md")
        return
    report = Report("Table 3.2 and retrieval curves", "python benchmarks/figures.py")
    factors(report, options.data)
    for figure, (names, first) in CURVES.items():
        report.section(f"Figure {figure}: retrieval")
        for name in names:
            curves(report, load(name, options.data), first | MEASURES, learned=figure == "6.3")
    report.finish("figures.md")


def factors(report: Report, data: str | None) -> None:
    """Compare the tables at hand with what Table 3.2 says of them."""
    report.section("Table 3.2: printed, and what the table at hand has where it differs")
    differ = []
    for name, printed in FACTORS.items():
        set_ = load(name, data)
        found = data_factors(set_.X, set_.y)
        off = [
            f"{factor} {there:g}, here {here:.4g}"
            for (factor, here), there in zip(found.items(), printed, strict=True)
            if abs(here - there) > 0.0051 * max(1, there)
        ]
        differ += [f"- {name}: {'; '.join(off)}"] if off else []
    report.line(f"{len(FACTORS) - len(differ)} of {len(FACTORS)} tables agree in all six factors.")
    for line in differ:
        report.line(line)


def curves(report: Report, data: Any, methods: dict, *, learned: bool) -> None:
    """Print precision@k and recall@k; a learned metric is asked about rows it has not seen."""
    ((train, test),) = PROTOCOLS["tabweave"].splits(data.y, 1, 0.3, random_state=0)
    known, asked = (train, test) if learned else (np.arange(data.n_rows),) * 2
    where = "30 % of the rows ask the others" if learned else "every row asks the others"
    report.line(f"\n{data.name}; {where}\n")
    header = [f"P@{k}" for k in SIZES] + [f"R@{k}" for k in SIZES]
    report.line("| method | " + " | ".join(header) + " |")
    report.line("|---" * (len(header) + 1) + "|")
    for name, make in methods.items():
        model = make(len(set(data.y))).fit(data.X[known], data.y[known])
        distances = model.pairwise_distances(data.X[asked], data.X[known])
        own = None if learned else np.arange(len(asked))
        row = [
            100 * value
            for score in (precision_at_k, recall_at_k)
            for value in np.atleast_1d(
                score(distances, data.y[asked], data.y[known], k=SIZES, own=own)
            )
        ]
        report.line(f"| {name} | " + " | ".join(f"{value:.1f}" for value in row) + " |")


# -- figures-more.md ----------------------------------------------------------------------------


def kernels(report: Report) -> None:
    """Figure 6.9: HELIC's time by its number of kernels; drawn rows as in 6.4.5."""
    report.section("Figure 6.9: HELIC's time by the number of kernels")
    report.line(
        "1,000 drawn rows, 10 columns of 3 values, two classes; processor seconds, best of three "
        "fits. Gaussians of widths from 2⁻⁵ to 2⁵. In print the line is straight and nearly flat.\n"
    )
    rng = np.random.default_rng(0)
    X, y = rng.integers(3, size=(1000, 10)).astype(str), rng.integers(2, size=1000)
    report.line("| kernels | seconds |")
    report.line("|---|---|")
    for n in (1, 5, 10, 20, 30, 40, 50):
        Given.family = couplings.kernel_family(2.0 ** np.linspace(-5, 5, n), ())
        seconds = []
        for _ in range(3):
            start = time.process_time()
            Given(random_state=0).fit(X, y)
            seconds.append(time.process_time() - start)
        report.line(f"| {n} | {min(seconds):.2f} |")


class Given(HELIC):
    """HELIC with kernels that are given."""

    family: ClassVar[dict[str, couplings.Kernel]] = {}

    def _kernels(self) -> dict[str, couplings.Kernel]:
        return self.family


STREAMED: dict[str, Callable[[int], Any]] = {
    "UNICORN": UNICORN,
    "CDE": lambda k: CDE(random_state=0, schema="nominal"),
    "COS": lambda k: ValueMetric("cos", schema="nominal"),
    "DILCA": lambda k: ValueMetric("dilca", schema="nominal"),
    "one-hot": lambda k: OneHot(schema="nominal"),
}
WINDOWS = {"dna_nominal": 250, "krvskp": 250, "led24": 250}  # of Table 8.1


def streams(report: Report, data: str | None) -> None:
    """Figures 8.4 and 8.6: retrieval in the last window, and ranks as windows go by."""
    report.section("Figure 8.4: precision@k in the last of 12 windows")
    report.line(
        "Windows are random mixes of clusters, one partition, every row of the window asks the "
        "others. UNICORN has seen all windows, the others know the last one.\n"
    )
    head = [f"P@{k}" for k in SIZES]
    report.line("| data set | method | " + " | ".join(head) + " |")
    report.line("|---" * (len(head) + 2) + "|")
    scores = np.zeros((len(WINDOWS), 12, len(STREAMED)))
    for i, (name, size) in enumerate(WINDOWS.items()):
        set_ = load(name, data)
        table, y, k = Table.of(set_.X, numbers="nominal"), set_.y, len(set(set_.y))
        windows = stream_windows(y, 12, window_size=size, mix="random", random_state=0)
        for j, (method, make) in enumerate(STREAMED.items()):
            model = make(k)
            for w, rows in enumerate(windows):
                part = take_rows(table, rows)
                learn = model.partial_fit if method == "UNICORN" else model.fit
                vectors = learn(part).transform(part)
                n = min(k, len(np.unique(vectors, axis=0)))
                found = KMeans(n, n_init=3, random_state=0).fit_predict(vectors)
                scores[i, w, j] = 100 * clustering_f(y[rows], found)
            if name in ("dna_nominal", "led24"):
                own = np.arange(len(rows))
                apart = model.pairwise_distances(part)
                values = precision_at_k(apart, y[rows], y[rows], k=SIZES, own=own)
                shown = " | ".join(f"{100 * v:.1f}" for v in values)
                report.line(f"| {name} | {method} | {shown} |")
    report.section("Figure 8.6: average rank over four windows each")
    report.line(
        f"k-means, F; {', '.join(WINDOWS)}; one partition. In print UNICORN is lowest throughout "
        "and does not rise.\n"
    )
    report.line("| windows | " + " | ".join(STREAMED) + " |")
    report.line("|---" * (len(STREAMED) + 1) + "|")
    for start in (0, 4, 8):
        part = scores[:, start : start + 4].reshape(-1, len(STREAMED))
        shown = " | ".join(f"{r:.2f}" for r in average_ranks(part.round(6)))
        report.line(f"| {start + 1} to {start + 4} | {shown} |")


def ratings(report: Report) -> None:
    """Table 5.3 on drawn ratings of MovieLens's shape, a tenth of its sides."""
    report.section("Table 5.3: matrix factorisation with groups, drawn ratings")
    report.line(
        "MovieLens 1M is not at hand (6,040 users, 3,952 films, 1,000,209 ratings): 604 users, 395 "
        "items, 10,002 ratings are drawn, whose groups show in four attributes, as dense as the "
        "set; a tenth held out; one draw. N-BMF groups by Non-BEND, D-BMF by one-hot, "
        "BMF not at all. Published RMSE 0.8413 / 0.8423 / 0.8424, MAE 0.6589 / 0.6599 / 0.6597, "
        "groups of users 6 and 56, of items 11 and 42.\n"
    )
    report.line("| method | RMSE | MAE | groups of users | groups of items |")
    report.line("|---|---|---|---|---|")
    found: dict[str, list[list[float]]] = {}
    for seed in range(1):
        data = make_ratings(604, 395, 10_002, random_state=seed)
        held = np.random.default_rng(seed).random(len(data.ratings)) < 0.1
        sides = {"N-BMF": None, "D-BMF": OneHot(schema="nominal"), "BMF": False}
        for method, embedder in sides.items():
            groups: list[Any] = [None, None]
            if embedder is not False:
                groups = [
                    find_groups(ids, attributes, embedder, max_groups=60, random_state=seed)
                    for ids, attributes in (
                        (data.user_ids, data.user_attributes),
                        (data.item_ids, data.item_attributes),
                    )
                ]
            model = MatrixFactorization(random_state=seed).fit(
                data.users[~held],
                data.items[~held],
                data.ratings[~held],
                user_groups=groups[0],
                item_groups=groups[1],
            )
            said, truth = model.predict(data.users[held], data.items[held]), data.ratings[held]
            numbers = [len(set(g.values())) if g else 1 for g in groups]
            found.setdefault(method, []).append(
                [root_mean_squared_error(truth, said), mean_absolute_error(truth, said), *numbers]
            )
    for method, rows in found.items():
        a, b, users, items = np.mean(rows, axis=0)
        report.line(f"| {method} | {a:.4f} | {b:.4f} | {users:.0f} | {items:.0f} |")


PAIRS = {  # target 3 against 5, seen by Zernike moments; sources by Karhunen-Loève coefficients
    "3 and 5 (the same digits)": ("3", "5"),
    "8 and 5 (one of them, one alike)": ("8", "5"),
    "0 and 1 (others)": ("0", "1"),
}


def sources(report: Report, data: str | None) -> None:
    """Table IX and Figures 14 and 24 of Shi (2013), digits in the place of pictures."""
    report.section("Table IX and Figure 24 of Shi (2013): sources that are more and less alike")
    report.line(
        "Target: digits 3 and 5 by their Zernike moments, 15 % labelled; sources: other writers' "
        "digits by Karhunen-Loève coefficients. Share of the source rows that are selected, and "
        "error in %, mean ± deviation of ten draws; HeMap as published. In print the share falls "
        "with kinship (30, 13 and 7 % nonlinear), and so does the gain. Projections in "
        "figures-hemap.png.\n"
    )
    views = {v: load(f"mfeat_{v}", data) for v in ("zer", "kar")}
    digit = views["zer"].y.astype(str)
    X, other = (views[v].X.astype(float) for v in ("zer", "kar"))
    report.line("| source | linear: selected, error | nonlinear: selected, error | target only |")
    report.line("|---|---|---|---|")
    figure = Figure(figsize=(12, 4), layout="constrained")
    for axes, (name, pair) in zip(figure.subplots(1, 3), PAIRS.items(), strict=True):
        cells, alone = [], []
        for linearity in (1.0, 0.5):
            shares, errors = [], []
            for seed in range(10):
                rng = np.random.default_rng(seed)
                ours = np.concatenate([_some(digit, d, rng, 0) for d in ("3", "5")])
                theirs = np.concatenate([_some(digit, d, rng, 100) for d in pair])
                y = digit[ours].astype(object)
                hidden = rng.random(len(ours)) > 0.15
                y[hidden] = None
                names = np.where(digit[theirs] == pair[0], "3", "5")  # what is alike is called so
                model = papers.HeMap(linearity=linearity, random_state=seed)
                model.fit(X[ours], y, source=(other[theirs], names))
                truth = digit[ours][hidden]
                errors.append(100 * np.mean(model.predict(X[ours][hidden]) != truth))
                shares.append(100 * len(model.selected_) / len(theirs))
                learner = KNeighborsClassifier(min(10, int((~hidden).sum())))
                learner.fit(X[ours][~hidden], digit[ours][~hidden])
                alone.append(100 * np.mean(learner.predict(X[ours][hidden]) != truth))
            cells.append(
                f"{np.mean(shares):.0f} %: {np.mean(errors):.1f} ± {np.std(errors, ddof=1):.1f}"
            )
        drawn = papers.HeMap(linearity=0.5, n_components=2, random_state=0)
        points = drawn.fit(X[ours], y, source=(other[theirs], names)).project(X[ours])
        for d in ("3", "5"):
            mine = digit[ours] == d
            axes.scatter(*points[mine].T, s=12, label=f"target {d}")
        axes.set_title(name)
        shown = " | ".join([*cells, f"{np.mean(alone):.1f} ± {np.std(alone, ddof=1):.1f}"])
        report.line(f"| {name} | {shown} |")
    axes.legend()
    figure.savefig(FOLDER / "figures-hemap.png", dpi=80)
    projected(report, {v: views[v].X.astype(float) for v in views}, digit)


def _some(digit: np.ndarray, d: str, rng: np.random.Generator, start: int) -> np.ndarray:
    """Return 60 rows of a digit, from another hundred for the sources than for the target."""
    return rng.choice(np.flatnonzero(digit == d)[start : start + 100], 60, replace=False)


def projected(report: Report, views: dict[str, np.ndarray], digit: np.ndarray) -> None:
    """Figure 14: two classes in two dimensions, joined columns against CoCA."""
    report.section("Figure 14 of Shi (2013): two classes, projected")
    rows = np.flatnonzero(np.isin(digit, ["3", "5"]))
    ids = [str(i) for i in rows]
    frames = {
        name: {"id": ids} | {f"{name}{j}": X[rows, j] for j in range(X.shape[1])}
        for name, X in views.items()
    }
    joined = np.hstack([X[rows] for X in views.values()])
    _, _, axes_of = np.linalg.svd(joined - joined.mean(axis=0), full_matrices=False)
    both = {
        "joined columns, PCA": (joined - joined.mean(axis=0)) @ axes_of[:2].T,
        "CoCA": CoCA(2).fit_transform(Sources(frames, key="id")),
    }
    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, (name, Z) in zip(figure.subplots(1, 2), both.items(), strict=True):
        for d in ("3", "5"):
            axes.scatter(*Z[digit[rows] == d].T, s=8, label=d)
        axes.set_title(name)
        labels = KMeans(2, n_init=10, random_state=0).fit_predict(Z)
        report.line(f"- {name}: F of two clusters {100 * clustering_f(digit[rows], labels):.1f}")
    axes.legend()
    figure.savefig(FOLDER / "figures-coca.png", dpi=80)
    report.line("\nDigits 3 and 5 of mfeat, two views; picture in figures-coca.png.")


if __name__ == "__main__":
    main()
