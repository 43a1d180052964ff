"""Search: nearest neighbours of rows.

Two floors: arrays and blocks below (``scan`` compares with every row, ``graph`` walks, ``space``
says what is compared), the estimators :class:`WeightedKNN` and :class:`SimilarityIndex` above. The
estimators are imported when asked for, since embedders use the lower floor.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tabweave.search.filters import between
    from tabweave.search.index import Matches, Pairs, SimilarityIndex
    from tabweave.search.knn import WeightedKNN

__all__ = ["Matches", "Pairs", "SimilarityIndex", "WeightedKNN", "between"]
_HOMES = {
    "Matches": "index",
    "Pairs": "index",
    "SimilarityIndex": "index",
    "WeightedKNN": "knn",
    "between": "filters",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
