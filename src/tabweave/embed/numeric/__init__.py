"""Numbers: what numeric columns know about each other, from moments that add up."""

from tabweave.embed.numeric.coupled import CoupledNumeric

__all__ = ["CoupledNumeric"]
