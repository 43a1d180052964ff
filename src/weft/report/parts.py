"""Parts of a report that are shown elsewhere, too: all that other rooms may take from this one."""

from weft.report._api import look_at
from weft.report._clusters import describe_clusters
from weft.report._page import embedded
from weft.report._reading import as_values, read
from weft.report._rows import Axes
from weft.report._text import cell

__all__ = ["Axes", "as_values", "cell", "describe_clusters", "embedded", "look_at", "read"]
