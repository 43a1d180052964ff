"""Clusters of rows, at rest and on streams."""

from weft.cluster.ccds import CCDSDC
from weft.cluster.ccted import CCTED
from weft.cluster.dcd import DCD
from weft.cluster.kmodes import KModes
from weft.cluster.stream import StreamClusterer

__all__ = ["CCDSDC", "CCTED", "DCD", "KModes", "StreamClusterer"]
