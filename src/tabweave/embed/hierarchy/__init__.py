"""Hierarchies: values as leaves of trees, rows as points whose L1 distance is the tree's."""

from tabweave.blocks.trees import Point, Tree
from tabweave.embed.hierarchy.drdh import DRDH
from tabweave.embed.hierarchy.tree import DistanceHierarchy

__all__ = ["DRDH", "DistanceHierarchy", "Point", "Tree"]
