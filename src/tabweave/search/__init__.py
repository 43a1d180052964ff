"""Search: nearest neighbours of rows.

Two floors: arrays and blocks below (``scan`` compares with every row, ``graph`` walks, ``space``
says what is compared), the estimators :class:`WeightedKNN` and :class:`SimilarityIndex` above, with
the rows they keep (``stored``) and which of them a query may find (``filters``). The estimators are
imported when asked for, since embedders use the lower floor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabweave.io.register import lazy

if TYPE_CHECKING:
    from tabweave.search.filters import between
    from tabweave.search.index import Matches, Pairs, SimilarityIndex
    from tabweave.search.knn import WeightedKNN

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
