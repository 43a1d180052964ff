"""Engines: counts and vectors wherever the data is; files, queries, databases, clusters.

Rows are read once, in batches, and only their counts are kept, so a table may be far larger than
memory and lie in many places. Every engine gives the same counts, bit for bit, for the same typed
data.
"""

from tabweave.engines.counting import count, estimate
from tabweave.engines.counting import count_for as count_for  # "as": for other rooms, not for users
from tabweave.engines.counting import count_with as count_with
from tabweave.engines.distributed import SAME_TYPE as SAME_TYPE
from tabweave.engines.opening import batches, open_source, read
from tabweave.engines.opening import fitted_columns as fitted_columns
from tabweave.engines.opening import is_countable as is_countable
from tabweave.engines.opening import is_distributed as is_distributed
from tabweave.engines.opening import is_source as is_source
from tabweave.engines.opening import open_fitted as open_fitted
from tabweave.engines.opening import read_with_classes as read_with_classes
from tabweave.engines.progress import Estimate, Progress, ProgressCallback, progress_bar
from tabweave.engines.progress import progress_reporter as progress_reporter
from tabweave.engines.source import Source
from tabweave.engines.source import as_arrow as as_arrow
from tabweave.engines.source import family as family
from tabweave.engines.source import has_arrow as has_arrow
from tabweave.engines.source import in_json as in_json
from tabweave.engines.streams import StreamCounts
from tabweave.engines.transform import class_types as class_types
from tabweave.engines.transform import kind_of_result as kind_of_result
from tabweave.engines.transform import probability_types as probability_types
from tabweave.engines.transform import transform
from tabweave.engines.transform import vector_types as vector_types

__all__ = [
    "Estimate",
    "Progress",
    "ProgressCallback",
    "Source",
    "StreamCounts",
    "batches",
    "count",
    "estimate",
    "open_source",
    "progress_bar",
    "read",
    "transform",
]
