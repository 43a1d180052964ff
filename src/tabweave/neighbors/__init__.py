"""Neighbors: rows that are like a row, and what they foretell.

:class:`SimilarityIndex` finds rows (``stored`` keeps them, ``filters`` says which of them a query
may find), :class:`WeightedKNN` lets the nearest vote, and the predictors learn which columns count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabweave.io.register import lazy

if TYPE_CHECKING:
    from tabweave.neighbors.filters import between
    from tabweave.neighbors.index import Matches, Pairs, SimilarityIndex
    from tabweave.neighbors.knn import WeightedKNN

__all__ = ["Matches", "Pairs", "SimilarityIndex", "WeightedKNN", "between"]
__getattr__ = lazy(
    __name__,
    {
        "Matches": "index",
        "Pairs": "index",
        "SimilarityIndex": "index",
        "WeightedKNN": "knn",
        "between": "filters",
    },
)
