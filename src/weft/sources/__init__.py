"""Many sources: tables and graphs about the same things, learned from together."""

from weft.sources.coca import CoCA
from weft.sources.container import Sources
from weft.sources.gbc import GBCClassifier, GBCRegressor
from weft.sources.hemap import HeMap

__all__ = ["CoCA", "GBCClassifier", "GBCRegressor", "HeMap", "Sources"]
