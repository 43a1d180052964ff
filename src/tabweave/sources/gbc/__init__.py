"""GBC: gradient boosting consensus over many sources [Shi 2013, ch. 3]."""

from tabweave.sources.gbc.gbc import GBCClassifier, GBCRegressor

__all__ = ["GBCClassifier", "GBCRegressor"]
