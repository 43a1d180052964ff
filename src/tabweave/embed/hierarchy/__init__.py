"""Hierarchies: values as leaves of trees, rows as points whose L1 distance is the tree's."""

from tabweave.embed.hierarchy.drdh import DRDH
from tabweave.embed.hierarchy.tree import DistanceHierarchy
from tabweave.space.trees import Point, Tree

__all__ = ["DRDH", "DistanceHierarchy", "Point", "Tree"]
