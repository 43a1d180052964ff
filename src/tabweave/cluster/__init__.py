"""Clusters of rows, of tables and of streams."""

from tabweave.cluster.describe import describe_clusters
from tabweave.cluster.kmodes import KModes
from tabweave.cluster.number import NumberOfClusters, number_of_clusters
from tabweave.cluster.stream import StreamClusterer

__all__ = [
    "KModes",
    "NumberOfClusters",
    "StreamClusterer",
    "describe_clusters",
    "number_of_clusters",
]
