"""HeMap: labels from a table with other columns [Shi 2013, ch. 5]."""

from tabweave.sources.hemap.hemap import HeMap

__all__ = ["HeMap"]
