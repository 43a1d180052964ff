"""Parts of a report that are shown elsewhere, too: all that other rooms may take from this one."""

from tabweave.apps.report.clusters import describe_clusters
from tabweave.apps.report.describe import look_at
from tabweave.apps.report.html import cell, embedded
from tabweave.apps.report.reading import as_values, read
from tabweave.apps.report.rows import Axes

__all__ = ["Axes", "as_values", "cell", "describe_clusters", "embedded", "look_at", "read"]
