"""Table 3.2 and the retrieval curves of the thesis: Figures 4.2, 6.3 and 7.3.

``python benchmarks/figures.py`` writes benchmarks/reports/figures.md. The thesis prints curves and
no numbers; so the order of the methods is what can be compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from _report import Report
from tabweave import CDE, CKML, HELIC, UNTIE, OneHot, ValueMetric, published
from tabweave.datasets import load
from tabweave.evaluate import PROTOCOLS, data_factors, precision_at_k, recall_at_k

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
    "COS": lambda k: ValueMetric("cos"),
    "DILCA": lambda k: ValueMetric("dilca"),
    "Ahmad": lambda k: ValueMetric("ahmad"),
    "Rough": lambda k: published.ValueMetric("rough"),
    "Hamming": lambda k: OneHot(),
}
CURVES: dict[str, tuple[tuple[str, ...], dict[str, Callable[[int], Any]]]] = {
    "4.2": (("dna_promoter", "dermatology", "breast_cancer_w"), {"cKML": lambda k: CKML()}),
    "6.3": (
        ("breast_cancer_w", "krvskp", "led24"),
        {"HELIC": lambda k: HELIC(random_state=0)},
    ),
    "7.3": (
        ("dermatology", "dna_nominal", "splice"),
        {"UNTIE": lambda k: UNTIE(None), "CDE": lambda k: CDE(random_state=0)},
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=None, help="folder of the data sets")
    options = parser.parse_args()
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


if __name__ == "__main__":
    main()
