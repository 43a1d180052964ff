"""Many sources: tables and graphs about the same things, learned from together."""

from tabweave.sources.coca import CoCA
from tabweave.sources.container import Sources
from tabweave.sources.gbc import GBCClassifier, GBCRegressor
from tabweave.sources.hemap import HeMap

__all__ = ["CoCA", "GBCClassifier", "GBCRegressor", "HeMap", "Sources"]
