"""CoCA: one space for things that several tables and graphs describe [Shi 2013, ch. 4]."""

from tabweave.sources.coca.coca import CoCA

__all__ = ["CoCA"]
