"""Non-BEND: a table untangled into independent parts [Zhu 2019, ch. 5]."""

from tabweave.embed.nonbend.gibbs import Gibbs
from tabweave.embed.nonbend.nonbend import NonBEND
from tabweave.embed.nonbend.variational import VI

__all__ = ["VI", "Gibbs", "NonBEND"]
