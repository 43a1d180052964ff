"""How good is a similarity, and how unlike are the couplings? Thesis 6.4.3 and 7.4.3.

``python benchmarks/goodness.py`` writes benchmarks/reports/goodness.md and three pictures: the
curves of Figures 6.4 and 7.8, and heterogeneity with its levels, Figures 7.4 to 7.7. Ranks by level
are taken from the report of Table 7.1.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from _report import FOLDER, Report
from tabweave import CDE, HELIC, UNTIE, Counts, OneHot, Table, ValueMetric, papers
from tabweave.counts import couplings
from tabweave.counts.couplings import context, partners, shares, symmetric_uncertainty
from tabweave.datasets import load
from tabweave.embed.cde import co_occurrence, occurrence, value_clusters
from tabweave.embed.value_metric import value_codes
from tabweave.evaluate import average_ranks
from tabweave.measures.coupled import ahmad, cos_intra_similarity
from tabweave.papers import (
    epsilon_gamma,
    inter_coupling_heterogeneity,
    intra_coupling_heterogeneity,
)
from tabweave.papers.categories import BOUNDED, descend_in_batches, kernel_columns
from tabweave.plots import epsilon_gamma_curve
from tabweave.space.value_tables import cdist_squared

LEARNED = ("dna_promoter", "audiology", "spect")  # Figure 6.4
SETS = ("mofn_3_7_10", "dermatology", "crx", "breast_cancer_w")  # Figure 7.8
EPSILONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
Similarity = Callable[[Any], np.ndarray]
COUPLED = ("UNTIE", "Couplings", "CDE", "COS", "DILCA")  # the methods of Figures 7.6 and 7.7
LEVELS = 5


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    report = Report("Goodness of similarities", "python benchmarks/goodness.py")
    report.line(
        "γ is the margin that all but a share ε of the rows keep, similarities brought to 0 … 1; "
        "larger is better. In print the curves have no numbers."
    )
    curves_of(report, "6.4", LEARNED, by_distance, "goodness-6.4.png")
    curves_of(report, "7.8", SETS, by_similarity, "goodness.png")
    heterogeneity(report)
    report.finish("goodness.md")


def curves_of(
    report: Report, number: str, names: tuple[str, ...], make: Callable, picture: str
) -> None:
    report.section(f"Figure {number}")
    report.line(" ".join((make.__doc__ or "").split()) + f" Curves in {picture}.\n")
    report.line("| data set | method | " + " | ".join(f"ε = {e}" for e in EPSILONS) + " |")
    report.line("|---|---" + "|---" * len(EPSILONS) + "|")
    figure = Figure(figsize=(6 * ((len(names) + 1) // 2), 9), layout="constrained")
    for axes, name in zip(figure.subplots(2, (len(names) + 1) // 2).ravel(), names, strict=False):
        curves = {}
        similarities, y = make(name)
        for method, S in similarities.items():
            S = (S - S.min()) / max(np.ptp(S), 1e-300)
            curves[method] = epsilon_gamma(S, y)
            _, margins = epsilon_gamma(S, y, epsilon=np.array(EPSILONS))
            shown = " | ".join(f"{m:.3f}" for m in margins)
            report.line(f"| {name} | {method} | {shown} |")
        epsilon_gamma_curve(curves, nonnegative=True, ax=axes).set_title(name)
    figure.savefig(FOLDER / picture, dpi=80)


def by_distance(name: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Eq. (6.40): s = 1 − d.

    HELIC learns from half of the rows; the curves are of the other half, for every method.
    """
    data = load(name)
    order = np.random.default_rng(0).permutation(data.n_rows)
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    models = {
        "HELIC": HELIC(random_state=0, schema="nominal"),
        "HELIC as printed": papers.HELIC(random_state=0),
        "MTDLE": ValueMetric("mtdle", schema="nominal"),
        **{
            m: ValueMetric(m.lower(), schema="nominal")
            for m in ("COS", "DILCA", "Ahmad", "Hamming")
        },
        "Rough": papers.ValueMetric("rough"),
    }
    out = {}
    for method, model in models.items():
        fitted = model.fit(data.X[train], data.y[train])
        out[method] = -fitted.pairwise_distances(data.X[test])
    return out, data.y[test]


def by_similarity(name: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Eq. (7.20): UNTIE's S, as printed and as it is here.

    CDE by the reversed Euclidean distance, measures by 1 − d. All rows.
    """
    data = load(name)
    models = {
        **{
            m: ValueMetric(m.lower(), schema="nominal")
            for m in ("COS", "DILCA", "Ahmad", "Hamming")
        },
        "CDE": CDE(random_state=0, schema="nominal"),
        "one-hot": OneHot(schema="nominal"),
    }
    out = {
        "UNTIE": UNTIE(None, schema="nominal").fit(data.X).pairwise_kernel(data.X),
        "UNTIE as printed": S(data),
    }
    for method, model in models.items():
        out[method] = -model.fit(data.X).pairwise_distances(data.X)
    return out, data.y


def S(data: Any) -> np.ndarray:
    """Eqs. (7.14), (7.20): the wrapper kernel under the weights of Algorithm 3, not centred."""
    k = len(set(data.y))
    model = papers.UNTIE(k, random_state=0).fit(data.X)
    counts, rows = model.counts_, model._digest
    columns = [kernel_columns(counts, a, BOUNDED) for a in range(len(counts.names))]
    rng = np.random.default_rng(0)
    omegas, _ = descend_in_batches(rows, columns, k, 50, 20, rng)
    codes = value_codes(model, Table.of(data.X, model.schema_))
    out = np.zeros((data.n_rows, data.n_rows))
    for own, column, omega in zip(codes, columns, omegas, strict=True):
        out += column.gram(omega)[np.ix_(own, own)]
    return out


# -- how unlike couplings are -----------------------------------------------------------------


def heterogeneity(report: Report) -> None:
    """Figures 7.4 to 7.7."""
    scores = table_7_1()
    names = list(scores)
    found = {name: indicators(name) for name in names}
    report.section("Figures 7.4 and 7.5: heterogeneity of couplings, (7.25)-(7.27)")
    report.line("I_intra as a mean over values, and as the printed sum (7.25).\n")
    columns = list(found[names[0]])
    report.line("| data set | " + " | ".join(columns) + " |")
    report.line("|---" * (len(columns) + 1) + "|")
    for name, own in found.items():
        report.line(f"| {name} | " + " | ".join(f"{own[c]:.3f}" for c in columns) + " |")
    figure = Figure(figsize=(12, 9), layout="constrained")
    panels = figure.subplots(2, 2)
    densities(panels[0, 0], {"I_intra": [own["I_intra"] for own in found.values()]}, "I_intra")
    inter = [c for c in columns if c.startswith("I_inter")]
    densities(panels[0, 1], {c: [own[c] for own in found.values()] for c in inter}, "I_inter")
    means = {c: np.mean([own[c] for own in found.values()]) for c in inter}
    report.line(
        "\nMean I_inter: "
        + ", ".join(f"{c.removeprefix('I_inter ')} {v:.2f}" for c, v in means.items())
        + " (published: UNTIE and CDE above DILCA and COS). Densities in goodness-levels.png."
    )
    levels(report, scores, {n: found[n]["I_intra"] for n in names}, "7.6", panels[1, 0])
    levels(report, scores, {n: found[n]["I_inter UNTIE"] for n in names}, "7.7", panels[1, 1])
    figure.savefig(FOLDER / "goodness-levels.png", dpi=80)


def indicators(name: str) -> dict[str, float]:
    """Return I_intra in both readings, and I_inter of each method's coupling matrices."""
    data = load(name)
    counts = Counts.of(Table.of(data.X, numbers="nominal"), data.y)
    by_class = [counts.class_pairs[counts.span(a)] for a in range(len(counts.names))]
    matrices = {"UNTIE": untie_matrices, "CDE": cde_matrices, "COS": cos_matrices}
    out = {
        "I_intra": intra_coupling_heterogeneity(by_class),
        "I_intra, sum": intra_coupling_heterogeneity(by_class, published=True),
    }
    for method, make in (matrices | {"DILCA": dilca_matrices}).items():
        each = [own for own in make(counts) if len(own) > 1]
        out[f"I_inter {method}"] = inter_coupling_heterogeneity(each) if each else 0.0
    return out


def untie_matrices(counts: Counts) -> list[list[np.ndarray]]:
    """Euclidean distances of values by frequency, and by the company they keep."""
    out = []
    for a in range(len(counts.names)):
        points = [space(counts, a).matrix for space in (couplings.intra, couplings.inter)]
        out.append([np.sqrt(cdist_squared(p, p)) for p in points])
    return out


def cde_matrices(counts: Counts) -> list[list[np.ndarray]]:
    """Euclidean distances of values by their clusters, under both influences."""
    rng = np.random.RandomState(0)
    spaces = []
    for influence in (occurrence(counts), co_occurrence(counts)):
        found = value_clusters(influence, 0.5, 10, rng)
        if found:
            spaces.append(np.hstack(found))
    spans = [counts.span(a) for a in range(len(counts.names))]
    return [[np.sqrt(cdist_squared(s[own], s[own])) for s in spaces] for own in spans]


def cos_matrices(counts: Counts) -> list[list[np.ndarray]]:
    """Similarities of values by frequency (2.7), and by company (2.11)."""
    pairs = zip(cos_intra_similarity(counts), ahmad(counts), strict=True)
    return [[intra, 1 - inter] for intra, inter in pairs]


def dilca_matrices(counts: Counts) -> list[list[np.ndarray]]:
    """Distances of values by each column of the context (2.22), before they are joined."""
    chosen = context(symmetric_uncertainty(counts), "column")
    out = []
    for a in range(len(counts.names)):
        own = []
        for b, block in partners(counts, a):
            if chosen[a, b]:
                p = shares(block.T).T
                own.append(np.sqrt(cdist_squared(p, p) / block.shape[1]))
        out.append(own)
    return out


def densities(axes: Any, values: dict[str, list[float]], label: str) -> None:
    for name, own in values.items():
        if np.ptp(own) > 0:
            at = np.linspace(0, max(own) * 1.1, 200)
            axes.plot(at, gaussian_kde(own)(at), label=name)
    axes.set(xlabel=label, ylabel="density")
    axes.legend()


def table_7_1() -> dict[str, dict[str, tuple[float, float]]]:
    """Return published and measured F of the methods that learn couplings, from the report."""
    text = (FOLDER / "table-7.1.md").read_text(encoding="utf-8")
    header, _, *rows = text.split("## Published")[1].split("\n\n")[1].splitlines()
    methods = [cell.strip() for cell in header.split("|")[2:-1]]
    out = {}
    for row in rows:
        name, *cells = (cell.strip() for cell in row.split("|")[1:-1])
        found = {}
        for method, text in zip(methods, cells, strict=True):
            pair = re.match(r"([\d.]+) → ([\d.]+) ", text)
            if method in COUPLED and pair:
                found[method] = (float(pair.group(1)), float(pair.group(2)))
        if len(found) == len(COUPLED):
            out[name] = found
    return out


def levels(report: Report, scores: dict, level: dict[str, float], number: str, axes: Any) -> None:
    """Print average ranks at five levels of as many sets each, published → measured."""
    report.section(f"Figure {number}: average rank by level, published → measured; 1 is best")
    report.line(f"{len(level)} sets in {LEVELS} levels, smallest indicator first.\n")
    report.line("| level | sets | " + " | ".join(COUPLED) + " |")
    report.line("|---" * (len(COUPLED) + 2) + "|")
    parts = np.array_split(sorted(level, key=lambda name: level[name]), LEVELS)
    lines: dict[str, list[float]] = {}
    for i, names in enumerate(parts, 1):
        both = np.array([[scores[n][m] for m in COUPLED] for n in names])
        theirs, ours = (average_ranks(both[:, :, j]) for j in (0, 1))
        cells = " | ".join(f"{p:.2f} → {q:.2f}" for p, q in zip(theirs, ours, strict=True))
        report.line(f"| {i} | {len(names)} | {cells} |")
        for m, q in zip(COUPLED, ours, strict=True):
            lines.setdefault(m, []).append(float(q))
    for m, ranks in lines.items():
        axes.plot(range(1, LEVELS + 1), ranks, marker="o", label=m)
    axes.set(xlabel="level", ylabel=f"average rank, measured (Figure {number})")
    axes.legend()


if __name__ == "__main__":
    main()
