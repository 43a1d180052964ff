"""Parameter studies, convergence and scalability: one figure each, numbers beside it.

``python benchmarks/studies.py`` writes benchmarks/reports/studies.md and its pictures; figures come
from generated data and, where they are found, from the data sets. ``--quick`` takes smaller sizes
and writes nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from _report import FOLDER, Report
from tabweave import (
    CDE,
    HELIC,
    UNICORN,
    UNTIE,
    CoupledNumeric,
    NonBEND,
    OneHot,
    ValueMetric,
    Weave,
    WeightedKNN,
    papers,
    plots,
)
from tabweave.counts import couplings
from tabweave.datasets import led24, make_codes, make_coupled, waveform
from tabweave.embed.nonbend import VI
from tabweave.evaluate import clustering_f, macro_f
from tabweave.papers import monte_carlo_splits, stream_windows

SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, no report file")
    quick = parser.parse_args().quick
    report = Report("Parameters, convergence, scale", "python benchmarks/studies.py")
    n = 600 if quick else 2000
    parameters(report, n)
    convergence(report, n, None if quick else "studies-convergence.png")
    scalability(report, 1 if quick else 4, None if quick else "studies-scale.png")
    report.finish(None if quick else "studies.md")


# -- parameters ---------------------------------------------------------------------------------


def parameters(report: Report, n: int) -> None:
    digits = led24(n, random_state=SEED)
    waves = waveform(n, random_state=SEED)
    woven = make_coupled(n, 10, 8, 6, coupling=0.35, heterogeneity=0.5, random_state=SEED)
    report.section("Parameters: F (%) on drawn tables")
    report.line(
        "LED digits (24 binary columns) for HELIC, UNICORN and Non-BEND; ten coupled columns of "
        "4 to 16 values for UNTIE and Weave, whose kernels tell nothing apart in binary columns; "
        "waveforms for L.\n"
    )
    study(
        report,
        "HELIC, pull (λ's place; Figure 6.10)",
        (1e-4, 1e-3, 1e-2, 0.1, 1.0, np.inf),
        lambda pull: nearest_f(digits, HELIC(pull=pull, random_state=SEED, schema="nominal")),
    )
    study(
        report,
        "UNICORN, δ, as printed (Figure 8.7)",
        (0.0, 0.01, 0.1, 1.0),
        lambda delta: stream_f(digits, papers.UNICORN(delta)),
    )
    study(
        report,
        "UNICORN, decay",
        (0.0, 0.5, 0.8, 1.0),
        lambda decay: stream_f(digits, UNICORN(10, decay=decay, schema="nominal")),
    )
    study(
        report,
        "UNTIE, temperature",
        (0.03, 0.1, 0.3, 1.0, 3.0),
        lambda t: cluster_f(woven, UNTIE(6, temperature=t, schema="nominal")),
    )
    study(
        report,
        "Weave, smoothing s",
        (0.0, 1.0, 5.0, 20.0),
        lambda s: cluster_f(woven, smoothed(s)),
    )
    study(
        report,
        "UNTIE, kernels (Figure 7.12)",
        list(KERNELS),
        lambda name: cluster_f(woven, UNTIE(6, kernels=KERNELS[name], schema="nominal")),
    )
    study(
        report,
        "Non-BEND, α₀",
        (0.01, 0.1, 1.0, 5.0),
        lambda a: cluster_f(
            digits, NonBEND(alpha0=a, n_fits=3, random_state=SEED, schema="nominal")
        ),
    )
    study(
        report,
        "Non-BEND, α",
        (0.1, 1.0, 10.0, 50.0),
        lambda a: cluster_f(
            digits, NonBEND(alpha=a, n_fits=3, random_state=SEED, schema="nominal")
        ),
    )
    study(
        report, "CoupledNumeric, L", (1, 2, 3, 5, 10), lambda L: cluster_f(waves, CoupledNumeric(L))
    )


KERNELS = {
    "Gaussians": couplings.kernel_family([2.0**e for e in range(-5, 6)], ()),
    "polynomials": couplings.kernel_family([], (1, 2, 3)),
    "linear": couplings.kernel_family([], (1,)),
    "all 14": couplings.kernel_family([2.0**e for e in range(-5, 6)], (1, 2, 3)),
}


def study(report: Report, title: str, values: Sequence[Any], score: Callable[[Any], float]) -> None:
    shown = [f"{value}: {score(value):.1f}" for value in values]
    report.line(f"- {title}: {', '.join(shown)}")


def cluster_f(data: Any, embedder: Any) -> float:
    vectors = embedder.fit_transform(data.X)
    k = len(set(data.y))
    labels = KMeans(k, n_init=20, random_state=SEED).fit_predict(vectors)
    return 100 * clustering_f(data.y, labels)


def smoothed(pseudo_counts: float) -> Weave:
    """Return a Weave with other pseudo-counts."""
    model = Weave(6)
    model._smoothing = pseudo_counts
    return model


def nearest_f(data: Any, metric: Any) -> float:
    found = []
    for train, test in monte_carlo_splits(data.y, 5, 0.1, random_state=SEED):
        metric.fit(data.X[train], data.y[train])
        model = WeightedKNN(5, metric=metric).fit(data.X[train], data.y[train])
        found.append(100 * macro_f(data.y[test], model.predict(data.X[test])))
    return float(np.mean(found))


def stream_f(data: Any, embedder: Any) -> float:
    found = []
    for rows in stream_windows(data.y, 6, mix="plain", random_state=SEED):
        vectors = embedder.partial_fit(data.X[rows]).transform(data.X[rows])
        labels = KMeans(10, n_init=10, random_state=SEED).fit_predict(vectors)
        found.append(100 * clustering_f(data.y[rows], labels))
    return float(np.mean(found))


# -- convergence --------------------------------------------------------------------------------


def convergence(report: Report, n: int, picture: str | None) -> None:
    digits = led24(n, random_state=SEED)
    report.section("Convergence")
    helic = HELIC(random_state=SEED, schema="nominal").fit(digits.X, digits.y)
    model = NonBEND(n_fits=1, random_state=SEED, schema="nominal").fit(digits.X)
    traces = {
        "UNTIE (objective)": UNTIE(10, schema="nominal").fit(digits.X).objective_,
        "HELIC (loss)": np.atleast_1d(helic.objective_),
        "Non-BEND (−ELBO)": -np.array(model.trace_),
    }
    falling = {}
    for name, trace in traces.items():
        trace = np.asarray(trace, float)
        monotone = bool((np.diff(trace) <= 1e-9 * np.abs(trace[:-1])).all())
        report.line(f"- {name}: {len(trace)} steps, {'never rises' if monotone else 'rises'}")
        if len(trace) > 1:
            falling[name] = ((trace - trace.min()) / (np.ptp(trace) or 1)).tolist()
    if picture:
        save(plots.convergence(falling), picture)
        report.line(f"\n![share of the way left]({picture})")


# -- scalability --------------------------------------------------------------------------------

METHODS = {
    "one-hot": lambda: OneHot(schema="nominal"),
    "DILCA": lambda: ValueMetric("dilca", schema="nominal"),
    "Weave": lambda: Weave(),
    "UNTIE": lambda: UNTIE(8, schema="nominal"),
    "CDE": lambda: CDE(random_state=SEED, schema="nominal"),
    "Non-BEND": lambda: NonBEND(VI(max_iter=20), n_fits=1, random_state=SEED, schema="nominal"),
}


def scalability(report: Report, factor: int, picture: str | None) -> None:
    """Seconds to fit, one thing growing at a time (Figures 5.6, 6.9, 7.9)."""
    axes = {
        "rows": [(factor * n, 10, 10) for n in (12_500, 25_000, 50_000, 100_000)],
        "columns": [(10_000, factor * d, 10) for d in (5, 10, 20)],
        "values": [(20_000, 10, v) for v in (10, 20, 40, 40 * factor)],
    }
    report.section("Scale: seconds to fit")
    found: dict[str, dict[str, tuple[list, list]]] = {}
    for axis, sizes in axes.items():
        place = list(axes).index(axis)
        report.line(f"\n| {axis} | " + " | ".join(METHODS) + " |")
        report.line("|---" * (len(METHODS) + 1) + "|")
        for size in sizes:
            codes = make_codes(size[0], size[1], size[2], random_state=SEED)
            row = []
            for name, make in METHODS.items():
                row.append(seconds(make, codes))
                xs, ys = found.setdefault(axis, {}).setdefault(name, ([], []))
                xs.append(size[place])
                ys.append(row[-1])
            report.line(f"| {size[place]:,} | " + " | ".join(f"{s:.3f}" for s in row) + " |")
    report.line("\nOne thread a fit where BLAS allows; Non-BEND: one fit of 20 steps.")
    kernels(report)
    if picture:
        draw(found, picture)
        report.line(f"\n![seconds against size]({picture})")


def kernels(report: Report) -> None:
    codes = make_codes(20_000, 10, 10, random_state=SEED)
    shown = []
    for n in (1, 4, 14, 28):
        family = couplings.kernel_family([2.0 ** (e / 2 - 5) for e in range(n)], ())
        shown.append(
            f"{n}: {seconds(lambda f=family: UNTIE(8, kernels=f, schema='nominal'), codes):.3f} s"
        )
    report.line(f"\nUNTIE by number of kernels: {', '.join(shown)}")


def seconds(make: Callable[[], Any], codes: np.ndarray) -> float:
    make().fit(codes[:500])  # compiled before the clock starts
    start = time.perf_counter()
    make().fit(codes)
    return time.perf_counter() - start


def draw(found: dict, picture: str) -> None:
    import matplotlib.pyplot as plt

    _, panels = plt.subplots(1, len(found), figsize=(12, 3.6), sharey=True)
    for ax, (axis, series) in zip(panels, found.items(), strict=True):
        for name, (xs, ys) in series.items():
            ax.loglog(xs, ys, marker="o", label=name)
        ax.set_xlabel(axis)
    panels[0].set_ylabel("seconds")
    panels[-1].legend(fontsize=8)
    save(panels[0], picture)


def save(ax: Any, picture: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    ax.figure.savefig(FOLDER / picture, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    main()
