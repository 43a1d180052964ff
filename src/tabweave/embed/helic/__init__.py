"""HELIC: metric learning on couplings [Zhu 2019, ch. 6]."""

from tabweave.embed.helic.helic import HELIC

__all__ = ["HELIC"]
