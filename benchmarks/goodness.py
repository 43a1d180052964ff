"""How good is a similarity, and how unlike are the couplings? Thesis 7.4.2 and 7.4.3, as tables.

``python benchmarks/goodness.py`` writes benchmarks/reports/goodness.md and a picture of the curves.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from _report import FOLDER, Report
from tabweave import CDE, UNTIE, Counts, OneHot, Table, Weave
from tabweave.blocks.value_tables import cdist_squared
from tabweave.counts import couplings
from tabweave.datasets import load
from tabweave.evaluate import (
    epsilon_gamma,
    inter_coupling_heterogeneity,
    intra_coupling_heterogeneity,
)
from tabweave.plots import epsilon_gamma_curve

SETS = ("mofn_3_7_10", "dermatology", "crx", "breast_cancer_w")
EPSILONS = (0.05, 0.1, 0.2, 0.3)


def main() -> None:
    report = Report("Goodness of similarities", "python benchmarks/goodness.py")
    report.section("(ε, γ): the margin γ that all but a share ε of the rows keep; larger is better")
    report.line("Similarity is the cosine of centred vectors. Curves in goodness.png.\n")
    report.line("| data set | representation | " + " | ".join(f"ε = {e}" for e in EPSILONS) + " |")
    report.line("|---|---" + "|---" * len(EPSILONS) + "|")
    figure = Figure(figsize=(12, 9), layout="constrained")
    for axes, name in zip(figure.subplots(2, 2).ravel(), SETS, strict=True):
        curves = goodness(report, name)
        epsilon_gamma_curve(curves, nonnegative=False, ax=axes).set_title(name)
    figure.savefig(FOLDER / "goodness.png", dpi=80)
    report.section("Heterogeneity of couplings (7.25)-(7.27)")
    report.line("| data set | I_intra | I_inter (intra, inter and reverse spaces) |")
    report.line("|---|---|---|")
    for name in SETS:
        intra, inter = heterogeneity(name)
        report.line(f"| {name} | {intra:.3f} | {inter:.3f} |")
    report.finish("goodness.md")


def goodness(report: Report, name: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    data = load(name)
    k = len(set(data.y))
    embedders = {
        "one-hot": OneHot(),
        "Weave": Weave(k),
        "UNTIE": UNTIE(k),
        "CDE": CDE(random_state=0),
    }
    curves = {}
    for method, embedder in embedders.items():
        vectors = embedder.fit_transform(data.X)
        vectors = vectors - vectors.mean(axis=0)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        similarity = vectors @ vectors.T
        curves[method] = epsilon_gamma(similarity, data.y)
        _, margins = epsilon_gamma(similarity, data.y, epsilon=np.array(EPSILONS))
        shown = " | ".join(f"{m:.3f}" for m in margins)
        report.line(f"| {name} | {method} | {shown} |")
    return curves


def heterogeneity(name: str) -> tuple[float, float]:
    data = load(name)
    counts = Counts.of(Table.of(data.X, numbers="nominal"), data.y)
    by_class = [counts.class_pairs[counts.span(a)] for a in range(len(counts.names))]
    matrices = []
    for a in range(len(counts.names)):
        spaces = (couplings.intra, couplings.inter, couplings.reverse)
        points = [space(counts, a).matrix for space in spaces]
        matrices.append([np.sqrt(cdist_squared(p, p)) for p in points])
    return intra_coupling_heterogeneity(by_class), inter_coupling_heterogeneity(matrices)


if __name__ == "__main__":
    main()
