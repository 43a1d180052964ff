"""Maps, times and losses of the thesis: Figures 4.3, 4.4, 5.5, 6.7, 6.8, 6.10, 7.9, 7.10, 8.5.

``python benchmarks/drawings.py maps`` writes maps.md: the maps are to be looked at and have no
numbers, so here the silhouette of the classes on each map says how clear their boundaries are.
``python benchmarks/drawings.py costs`` writes costs.md: seconds, and losses of the published
optimiser, by step. Seconds are processor time of one thread, best of three.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.manifold import MDS, TSNE
from sklearn.metrics import euclidean_distances, silhouette_score
from threadpoolctl import threadpool_limits

from _methods_nonbend import autoencoder
from _report import FOLDER, Report
from tabweave import CDE, OneHot, ValueMetric, WeightedKNN, papers, plots
from tabweave.datasets import load
from tabweave.evaluate import macro_f
from tabweave.papers import monte_carlo_splits, stream_windows

Make = Callable[[int], Any]
MEASURES: dict[str, Make] = {
    "COS": lambda k: ValueMetric("cos", schema="nominal"),
    "Ahmad": lambda k: ValueMetric("ahmad", schema="nominal"),
    "DILCA": lambda k: ValueMetric("dilca", schema="nominal"),
    "Rough": lambda k: papers.ValueMetric("rough"),
}
VECTORS: dict[str, Make] = {
    "CDE": lambda k: CDE(random_state=0, schema="nominal"),
    "AE": autoencoder,
    "one-hot": lambda k: OneHot(schema="nominal"),
}
MAPS: dict[str, tuple[str, str, dict[str, Make]]] = {
    "4.3": (
        "wisconsin",
        "MDS",
        {
            "cKML": lambda k: papers.CKML(),
            **MEASURES,
            "Hamming": lambda k: OneHot(schema="nominal"),
        },
    ),
    "5.5": (
        "three_of_9",
        "t-SNE",
        {
            "Non-BEND": lambda k: papers.NonBEND("gibbs", random_state=0),
            "Non-BEND, shared out": lambda k: papers.NonBEND("vi", random_state=0),
            **VECTORS,
            **MEASURES,
        },
    ),
    "7.9": (
        "dermatology",
        "t-SNE",
        {
            "UNTIE": lambda k: papers.UNTIE(k, random_state=0),
            "CDE": VECTORS["CDE"],
            "one-hot": VECTORS["one-hot"],
        },
    ),
    "8.5": (
        "dna_nominal",
        "t-SNE",
        {
            "UNICORN": lambda k: papers.UNICORN(),
            **VECTORS,
            **{name: MEASURES[name] for name in ("COS", "DILCA")},
        },
    ),
}
STREAMED = "8.5"  # of the last of 12 windows; UNICORN has seen them all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["maps", "costs"])
    parser.add_argument("--figures", nargs="+", help="measure these again, keep the others")
    options = parser.parse_args()
    title = {"maps": "Maps of the thesis", "costs": "Times and losses of the thesis"}
    report = Report(title[options.what], f"python benchmarks/drawings.py {options.what}")
    report.line(MAPS_NOTE if options.what == "maps" else "Processor time of one thread.")
    for figure in MAPS if options.what == "maps" else COSTS:
        if options.figures is not None and figure not in options.figures:
            report.lines += kept(f"{options.what}.md", figure)
            continue
        with threadpool_limits(1):
            draw_map(report, figure) if options.what == "maps" else COSTS[figure](report)
    report.finish(f"{options.what}.md")


def kept(name: str, figure: str) -> list[str]:
    """The lines of a figure as they were measured last."""
    path = FOLDER / name
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = [part for part in text.split("\n## ") if part.startswith(f"Figure {figure}:")]
    return [f"\n## {part.rstrip()}" for part in found]


# -- maps ---------------------------------------------------------------------------------------


MAPS_NOTE = (
    "The silhouette of the classes on a map of two dimensions, by MDS (SMACOF from the classical "
    "solution) or t-SNE (perplexity 30, one seed); larger is clearer, and 0 stands for a map that "
    "collapses to one point. The thesis has its own method clearest on every map."
)


def draw_map(report: Report, figure: str) -> None:
    """Figures 4.3, 5.5, 7.9 and 8.5."""
    name, how, methods = MAPS[figure]
    data = load(name)
    windows: list[np.ndarray] = [np.arange(data.n_rows)]
    if figure == STREAMED:
        windows = stream_windows(data.y, 12, window_size=250, mix="plain", random_state=0)
    part = "" if len(windows) == 1 else ", the last of 12 windows of 250 rows"
    report.section(f"Figure {figure}: {name}, {how}{part}")
    report.line("| method | silhouette | points apart |")
    report.line("|---|---|---|")
    asked = windows[-1]
    drawing = Figure(figsize=(4 * len(methods), 4), layout="constrained")
    axes = np.atleast_1d(drawing.subplots(1, len(methods)))
    for ax, (method, make) in zip(axes, methods.items(), strict=True):
        points = laid_out(apart(make(len(set(data.y))), data.X, windows), how)
        n_apart = len(np.unique(points.round(9), axis=0))
        clear = silhouette_score(points, data.y[asked]) if n_apart > 1 else 0.0
        report.line(f"| {method} | {clear:.2f} | {n_apart} of {len(points)} |")
        plots.scatter_map(points, data.y[asked].astype(str), ax=ax)
        ax.set_title(f"{method}: {clear:.2f}")
    drawing.savefig(FOLDER / f"maps-{figure}.png", dpi=50)
    report.line(f"\n![Figure {figure}](maps-{figure}.png)")


def apart(model: Any, X: Any, windows: list[np.ndarray]) -> np.ndarray:
    """Distances of the rows of the last window; a stream has learned from all of them."""
    if hasattr(model, "partial_fit") and len(windows) > 1:
        for rows in windows:
            model.partial_fit(X[rows])
    else:
        model.fit(X[windows[-1]])
    if not hasattr(model, "pairwise_distances"):
        return euclidean_distances(model.transform(X[windows[-1]]))
    return np.maximum(model.pairwise_distances(X[windows[-1]]), 0.0)


def laid_out(distances: np.ndarray, how: str) -> np.ndarray:
    """Two coordinates of each row; of rows that are all at one place, that place."""
    symmetric = (distances + distances.T) / 2
    np.fill_diagonal(symmetric, 0.0)
    if not symmetric.any():
        return np.zeros((len(symmetric), 2))
    if how == "t-SNE":
        return TSNE(metric="precomputed", init="random", random_state=0).fit_transform(symmetric)
    model = MDS(2, metric="precomputed", n_init=1, init="classical_mds", random_state=0)
    return model.fit_transform(symmetric)


# -- costs --------------------------------------------------------------------------------------


def drawn_rows(n_rows: int, n_columns: int, n_values: int) -> np.ndarray:
    """Uniform categories, as the thesis draws them."""
    return np.random.default_rng(0).integers(n_values, size=(n_rows, n_columns)).astype(str)


def seconds(make: Callable[[], Any], *rows: Any) -> float:
    """Processor seconds of the fastest of three fits, compiled before."""
    out = []
    for _ in range(3):
        start = time.process_time()
        make().fit(*rows)
        out.append(time.process_time() - start)
    return min(out)


def by_size(
    report: Report, what: str, methods: Mapping[str, Any], sizes: Mapping[int, tuple]
) -> None:
    """A table of seconds: a method a column, a size a row."""
    report.line(f"\n| {what} | " + " | ".join(methods) + " |")
    report.line("|---" * (len(methods) + 1) + "|")
    for size, rows in sizes.items():
        shown = " | ".join(f"{seconds(make, *rows):.4f}" for make in methods.values())
        report.line(f"| {size} | {shown} |")


def growth_of_measures(report: Report) -> None:
    """Figure 4.4: cKML and measures by columns and by values, 100 rows."""
    report.section("Figure 4.4: time of cKML and of measures, 100 rows")
    report.line(
        "In print all but Rough grow with the columns and more with the values, cKML is the "
        "slowest and COS next to it."
    )
    methods = {"cKML": papers.CKML} | {
        name: (lambda make=make: make(2)) for name, make in MEASURES.items()
    }
    methods["Hamming"] = OneHot
    columns = {n: (drawn_rows(100, n, 2),) for n in (2, 10, 20, 40, 60, 80, 100)}
    by_size(report, "columns of 2 values", methods, columns)
    values = {n: (drawn_rows(100, 10, n),) for n in (2, 10, 20, 30, 40, 50)}
    by_size(report, "values of 10 columns", methods, values)


LOSS_SETS = ("dna_promoter", "audiology", "dermatology", "splice", "krvskp", "mushroom")


def losses(report: Report, figure: str) -> None:
    """The loss of the published optimiser by step, of HELIC or of UNTIE."""
    what, said, every = {
        "6.7": ("HELIC's loss (6.19), of all pairs of the sample", "within 200", 50),
        "7.10": ("UNTIE's loss (7.24), of all rows", "at around 1,000", 20),
    }[figure]
    report.section(f"Figure {figure}: {what}, by step of Adam")
    report.line(
        f"In print on six sets that are not named; it converges {said} steps. The last column is "
        "what is left then of the way to the smallest loss.\n"
    )
    report.line("| set | steps | first | half way | last | left |")
    report.line("|---|---|---|---|---|---|")
    for name in LOSS_SETS:
        data = load(name)
        if figure == "6.7":
            trace = papers.HELIC(random_state=0).fit(data.X, data.y).objective_
        else:
            model = papers.UNTIE(len(set(data.y)), batch_size=None, max_iter=100)
            trace = model.fit(data.X).objective_
        at = min((200 if figure == "6.7" else 1000) // every, len(trace) - 1)
        left = (trace[at] - min(trace)) / max(trace[0] - min(trace), 1e-12)
        cells = [f"{trace[i]:.3g}" for i in (0, len(trace) // 2, -1)]
        report.line(f"| {name} | {every * (len(trace) - 1)} | {' | '.join(cells)} | {left:.2f} |")


def growth_of_helic(report: Report) -> None:
    """Figure 6.8: HELIC by rows, columns and values."""
    report.section("Figure 6.8: time of HELIC")
    report.line(
        "1,000 rows, 10 columns, 3 values, two classes, where they do not vary. In print the time "
        "hardly grows with the rows (0.84 s to 3.47 s) and by the square of columns and of values."
    )
    methods = {"HELIC as published": lambda: papers.HELIC(random_state=0)}
    y = lambda n: np.random.default_rng(1).integers(2, size=n)  # noqa: E731
    rows = {n: (drawn_rows(n, 10, 3), y(n)) for n in (1_000, 3_000, 10_000, 30_000, 100_000)}
    by_size(report, "rows", methods, rows)
    columns = {n: (drawn_rows(1_000, n, 3), y(1_000)) for n in (10, 25, 50, 100, 200)}
    by_size(report, "columns", methods, columns)
    values = {n: (drawn_rows(1_000, 10, n), y(1_000)) for n in (10, 25, 50, 100)}
    by_size(report, "values", methods, values)


def sparsity(report: Report) -> None:
    """Figure 6.10: F of one neighbour under HELIC as published, by λ."""
    report.section("Figure 6.10: F on krvskp by λ of (6.19), HELIC as published")
    report.line("Five splits. In print F is level below λ = 1 and drops rapidly above 10.\n")
    data = load("krvskp")
    report.line("| λ | F |")
    report.line("|---|---|")
    for value in (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0):
        scores = []
        for train, test in monte_carlo_splits(data.y, 5, 0.1, random_state=0):
            metric = papers.HELIC(sparsity=value, random_state=0).fit(data.X[train], data.y[train])
            model = WeightedKNN(1, metric=metric).fit(data.X[train], data.y[train])
            scores.append(100 * macro_f(data.y[test], model.predict(data.X[test])))
        report.line(f"| {value:g} | {np.mean(scores):.1f} |")


COSTS: dict[str, Callable[[Report], None]] = {
    "4.4": growth_of_measures,
    "6.7": lambda report: losses(report, "6.7"),
    "6.8": growth_of_helic,
    "6.10": sparsity,
    "7.10": lambda report: losses(report, "7.10"),
}


if __name__ == "__main__":
    main()
