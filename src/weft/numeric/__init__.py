"""Numbers: what numeric columns know about each other, from moments that add up."""

from weft.numeric.coupled import CoupledNumeric

__all__ = ["CoupledNumeric"]
