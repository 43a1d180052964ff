"""Engines: counts and vectors wherever the data is; files, queries, databases, clusters.

Rows are read once, in batches, and only their counts are kept, so a table may be far larger than
memory and lie in many places. Every engine gives the same counts, bit for bit, for the same typed
data.
"""

from tabweave.engines.counting import count, count_for, count_with, estimate
from tabweave.engines.opening import (
    batches,
    fitted_columns,
    is_distributed,
    is_source,
    open_fitted,
    open_source,
    read,
    read_with_classes,
)
from tabweave.engines.progress import (
    Estimate,
    Progress,
    ProgressCallback,
    progress_bar,
    progress_reporter,
)
from tabweave.engines.source import Source, family, has_arrow
from tabweave.engines.transform import transform, vectors_of

__all__ = [
    "Estimate",
    "Progress",
    "ProgressCallback",
    "Source",
    "batches",
    "count",
    "count_for",
    "count_with",
    "estimate",
    "family",
    "fitted_columns",
    "has_arrow",
    "is_distributed",
    "is_source",
    "open_fitted",
    "open_source",
    "progress_bar",
    "progress_reporter",
    "read",
    "read_with_classes",
    "transform",
    "vectors_of",
]
