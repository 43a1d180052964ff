"""Engines: counts and vectors wherever the data is; files, queries, databases, clusters.

Rows are read once, in batches, and only their counts are kept, so a table may be far larger than
memory and lie in many places. Every engine gives the same counts, bit for bit, for the same typed
data.
"""

from tabweave.engines.counting import count, count_for, estimate
from tabweave.engines.sizes import Estimate
from tabweave.engines.opening import (
    batches,
    in_memory,
    is_source,
    is_spread,
    known_columns,
    open_source,
    read,
)
from tabweave.engines.source import family, has_arrow
from tabweave.engines.transform import transform, vectors_of

__all__ = [
    "Estimate",
    "batches",
    "count",
    "count_for",
    "estimate",
    "family",
    "has_arrow",
    "in_memory",
    "is_source",
    "is_spread",
    "known_columns",
    "open_source",
    "read",
    "transform",
    "vectors_of",
]
