"""Scores and tests to evaluate representations: pure functions on arrays.

Nothing here knows how a representation was made. Each function's docstring names the equation it
computes. NMI, the Rand index and the index of Davies and Bouldin are scikit-learn's.
"""

from tabweave.evaluate.ranks import (
    FriedmanTest,
    RankComparison,
    average_ranks,
    bonferroni_dunn,
    critical_difference,
    friedman,
    nemenyi,
)
from tabweave.evaluate.scores import (
    clustering_accuracy,
    clustering_f,
    macro_f,
    matched_labels,
    neighbor_precision_at_k,
    neighbor_recall_at_k,
    precision_at_k,
    recall_at_k,
)

__all__ = [
    "FriedmanTest",
    "RankComparison",
    "average_ranks",
    "bonferroni_dunn",
    "clustering_accuracy",
    "clustering_f",
    "critical_difference",
    "friedman",
    "macro_f",
    "matched_labels",
    "neighbor_precision_at_k",
    "neighbor_recall_at_k",
    "nemenyi",
    "precision_at_k",
    "recall_at_k",
]
