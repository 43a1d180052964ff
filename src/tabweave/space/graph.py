"""The graph: links between nodes, built by faiss, walked by tabweave; and faiss's flat list.

A graph covers the nodes it was built from; nodes that came later are compared one by one until
there are enough of them to build anew. Only links are kept: no vectors, so a graph takes little
memory and is plain numbers in a file. A walk compares codes, so its distances are exact; what faiss
finds among vectors in float32 is ranked anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tabweave._compat import require
from tabweave.io.register import storable
from tabweave.space.scan import Found, Nodes, Queries, merge, nearest_nodes

_WIDEST = 512  # dimensions a graph is built in
_NARROWEST = 64  # of them, where memory is short
_ROOM = 1 << 29  # coordinates of all nodes while it is built: 2 GB
_QUERIES = 64  # that one call walks for
_SAMPLE = 1 << 16  # nodes that say which dimensions matter
_SEEDS = 1024  # nodes, evenly spread over the graph, of which the nearest begin a walk
_BUILD = 128  # breadth of the search for the links of a new node: with 80, walks find less
_LADDER = (  # breadths of a walk that are tried
    32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024,
)  # fmt: skip
WIDEST = _LADDER[-1]
_RECALL = 0.95  # what the breadth of a walk is chosen for, of so many neighbours
_NEIGHBOURS = 10
_MEASURED = 4096  # nodes that the choice is measured by

Vectors = Callable[[int], Iterator[np.ndarray]]  # those of every so many nodes, some at a time


@storable
@dataclass(frozen=True, eq=False)
class Graph:
    """Links of nodes, a line for each, -1 after the last; see :func:`.kernels.walk`.

    Nodes have other numbers here, so that neighbours lie close together in memory: the one that
    is number i here is ``order[i]`` elsewhere.
    """

    links: np.ndarray
    order: np.ndarray

    @property
    def n_nodes(self) -> int:
        """Number of nodes it covers."""
        return len(self.order)

    def _check_loaded(self) -> None:
        n, shape = self.n_nodes, self.links.shape
        fits = len(shape) == 2 and shape[0] == n and shape[1] > 0
        if not (fits and np.array_equal(np.sort(self.order), np.arange(n))):
            raise ValueError(f"the graph does not fit {n} nodes")
        if not (self.links.min(initial=0) >= -1 and self.links.max(initial=-1) < n):
            raise ValueError("the links of the graph lead nowhere")

    @classmethod
    def of(cls, vectors: Vectors, n_nodes: int, power: int, n_links: int) -> Graph:
        """Build the graph of some nodes.

        Where vectors are wide, or nodes so many that their vectors would take more than 2 GB, and
        distances are Euclidean, it is built along their principal axes: neighbours there are nearly
        those of the full vectors, and the walk compares in full. Of the levels that faiss builds
        the lowest is kept, which has all nodes: where a walk begins is found by a short scan.
        """
        faiss = require("faiss", "search")
        blocks, width = _reduced(vectors, n_nodes, power)
        index = faiss.IndexHNSWFlat(width, n_links, _metric(faiss, power))
        index.hnsw.efConstruction = max(_BUILD, 2 * n_links)
        threads = faiss.omp_get_max_threads()
        try:
            faiss.omp_set_num_threads(1)  # or the links would depend on timing
            for block in blocks:
                index.add(block)
        finally:
            faiss.omp_set_num_threads(threads)
        links, offsets, levels = (
            faiss.vector_to_array(getattr(index.hnsw, name))
            for name in ("neighbors", "offsets", "cum_nneighbor_per_level")
        )
        base = _base(links, offsets.astype(np.int64), int(levels[1]))
        return cls(base, np.arange(len(base)))._renumbered()

    def _renumbered(self) -> Graph:
        """Return the graph with nodes that link to each other close together."""
        order = _close_together(self.links)
        number = np.empty(len(order), np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        links = self.links[order]
        return Graph(np.where(links < 0, np.int32(-1), number[links]), order)


def _base(links: np.ndarray, offsets: np.ndarray, width: int) -> np.ndarray:
    """Return the links of the lowest of faiss's levels, a line for each node."""
    return links[offsets[:-1, None] + np.arange(width)]


class Walker:
    """A graph and its nodes, a line for each."""

    def __init__(self, graph: Graph, nodes: Nodes) -> None:
        self.graph = graph
        self.nodes = nodes
        narrow = np.uint16 if nodes.codes.max(initial=0) < 1 << 16 else np.uint32
        codes = np.ascontiguousarray(nodes.codes.T[graph.order], narrow)
        line = np.ascontiguousarray(nodes.line.T[graph.order])
        self._arrays = replace(nodes, codes=codes, line=line).arrays()
        self._seeds = np.unique(np.linspace(0, graph.n_nodes - 1, _SEEDS).astype(np.int64))
        self._named = np.zeros(0), np.zeros(0)  # as in the last search: the same until rows change

    def nearest(
        self,
        queries: Queries,
        k: int,
        first: np.ndarray,
        breadth: int,
        own: np.ndarray | None = None,
    ) -> Found:
        """Return the k nearest nodes of each query as :func:`nearest_nodes` does, nearly.

        ``own`` says which node of the graph each query is: the walk goes as if it were not there.
        """
        from tabweave.space.kernels import walk

        graph, arrays = self.graph, self._arrays
        way = graph.links, self._seeds, breadth
        named = self._named
        if named[0] is not first:
            named = self._named = first, first[graph.order]
        mine = named[1]  # not self's: another thread may ask by another filter
        own = np.full(len(queries), -1) if own is None else np.argsort(graph.order)[own]
        found = queries.search(
            k, lambda some, asked, *to: walk(asked, arrays, mine, way, own[some], *to), _QUERIES
        )
        if graph.n_nodes == len(first):
            return found
        return merge(found, nearest_nodes(self.nodes, queries, k, first, graph.n_nodes), k)

    def sample(self) -> np.ndarray:
        """Return the nodes that :meth:`choose_breadth` asks about, always the same ones."""
        n = min(self.graph.n_nodes, _MEASURED)
        return np.sort(np.random.default_rng(0).choice(self.graph.n_nodes, n, replace=False))

    def choose_breadth(self, queries: Queries, own: np.ndarray) -> tuple[int, float]:
        """Return the smallest breadth whose walks find enough, and the recall they have.

        Nodes of the graph are looked for as if they were not in it: an answer counts if it is no
        farther than the 10th true neighbour. Recall is to be 0.95 by two standard errors; where no
        breadth of the ladder reaches that, the widest is returned. Costs a scan and at
        most six walks for each of at most 4,096 nodes.
        """
        k = min(_NEIGHBOURS, len(own))
        if not k:
            return _LADDER[0], 1.0
        inside = np.arange(len(self.nodes))
        inside[self.graph.n_nodes :] = -1  # those that came later are compared one by one
        summed, found = nearest_nodes(self.nodes, queries, k + 1, inside)
        summed[found == own[:, None]] = np.inf
        farthest = np.sort(summed, axis=1)[:, k - 1 : k] * (1 + 1e-9)

        def measure(breadth: int) -> tuple[bool, float]:
            hits = self.nearest(queries, k, inside, breadth, own)[0] <= farthest
            shares = hits.mean(axis=1)
            recall, error = float(shares.mean()), float(shares.std() / np.sqrt(len(shares)))
            return recall - 2 * error >= _RECALL, recall

        low, high, recalls = 0, len(_LADDER) - 1, {}  # the answer lies between low and high
        while low < high:
            middle = (low + high) // 2
            enough, recalls[middle] = measure(_LADDER[middle])
            low, high = (low, middle) if enough else (middle + 1, high)
        return _LADDER[low], recalls[low] if low in recalls else measure(_LADDER[low])[1]


# -- building ------------------------------------------------------------------------------------


def _metric(faiss: Any, power: int) -> Any:
    return faiss.METRIC_L1 if power == 1 else faiss.METRIC_L2


def _reduced(vectors: Vectors, n_nodes: int, power: int) -> tuple[Iterator[np.ndarray], int]:
    """Return the vectors, block by block, and their width, less than theirs if need be."""
    sample = np.vstack(list(vectors(max(1, n_nodes // _SAMPLE))))
    width, most = sample.shape[1], min(_WIDEST, max(_NARROWEST, _ROOM // n_nodes))
    if power == 1 or width <= most:
        return vectors(1), width
    centre = sample.mean(axis=0)
    sample -= centre
    _, axes = np.linalg.eigh(sample.T @ sample)
    chosen = np.ascontiguousarray(axes[:, -most:], np.float32)
    return ((block - centre) @ chosen for block in vectors(1)), most


def _close_together(links: np.ndarray) -> np.ndarray:
    """Return an order of the nodes in which those that link to each other are near."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    there = links >= 0
    ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    found = links[there]
    graph = csr_array((np.ones(len(found), np.int8), found, ends), shape=(len(links),) * 2)
    return reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64)
