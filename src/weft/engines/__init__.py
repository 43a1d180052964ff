"""Engines: counts and vectors wherever the data is; files, queries, databases, clusters.

Rows are read once, in batches, and only their counts are kept, so a table may be far larger than
memory and lie in many places. Every engine gives the same counts, bit for bit, for the same typed
data.
"""

from weft.engines._count import count, count_for
from weft.engines._estimate import estimate
from weft.engines._open import (
    batches,
    in_memory,
    is_source,
    is_spread,
    known_columns,
    open_source,
    read,
)
from weft.engines._sizes import Estimate
from weft.engines._source import family, has_arrow
from weft.engines._transform import transform, vectors_of

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
