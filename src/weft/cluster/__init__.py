"""Clusters of rows."""

from weft.cluster.kmodes import KModes

__all__ = ["KModes"]
