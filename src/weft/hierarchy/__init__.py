"""Hierarchies: values as leaves of trees, rows as points whose L1 distance is the tree's."""

from weft.hierarchy.drdh import DRDH
from weft.hierarchy.nodes import Point, Tree
from weft.hierarchy.tree import DistanceHierarchy

__all__ = ["DRDH", "DistanceHierarchy", "Point", "Tree"]
