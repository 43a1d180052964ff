"""Scores, tests and protocols to evaluate representations: pure functions on arrays.

Nothing here knows how a representation was made. Each function's docstring names the equation it
computes.
"""

from tabweave.evaluate.indicators import (
    class_margins,
    data_factors,
    davies_bouldin,
    dunn,
    epsilon_gamma,
    inter_coupling_heterogeneity,
    intra_coupling_heterogeneity,
    relative_distance,
    sd_index,
)
from tabweave.evaluate.protocol import PROTOCOLS as PROTOCOLS
from tabweave.evaluate.protocol import (
    Protocol,
    best_of,
    monte_carlo_splits,
    stream_windows,
)
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
    adjusted_rand,
    clustering_accuracy,
    clustering_f,
    macro_f,
    matched_labels,
    neighbor_precision_at_k,
    neighbor_recall_at_k,
    nmi,
    precision_at_k,
    recall_at_k,
)

__all__ = [
    "FriedmanTest",
    "Protocol",
    "RankComparison",
    "adjusted_rand",
    "average_ranks",
    "best_of",
    "bonferroni_dunn",
    "class_margins",
    "clustering_accuracy",
    "clustering_f",
    "critical_difference",
    "data_factors",
    "davies_bouldin",
    "dunn",
    "epsilon_gamma",
    "friedman",
    "inter_coupling_heterogeneity",
    "intra_coupling_heterogeneity",
    "macro_f",
    "matched_labels",
    "monte_carlo_splits",
    "neighbor_precision_at_k",
    "neighbor_recall_at_k",
    "nemenyi",
    "nmi",
    "precision_at_k",
    "recall_at_k",
    "relative_distance",
    "sd_index",
    "stream_windows",
]
