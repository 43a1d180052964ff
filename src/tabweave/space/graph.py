"""The graph: links between near nodes, and walks along them.

A graph covers the nodes it was built from; nodes that came later are compared one by one until
there are enough of them to build anew. Only links are kept: no vectors, so a graph takes little
memory and is plain numbers in a file. It is made of each node's nearest, which the exact scan finds
on all cores, or on a device. A walk compares codes, so its distances are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from tabweave._compat import in_threads
from tabweave.columns.vocabulary import slices
from tabweave.io.register import storable
from tabweave.space import kernels
from tabweave.space.scan import Nodes, Queries, Ranking, merge, nearest_nodes

# Breadths of a walk that are tried.
BREADTHS = (
    32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024,
)  # fmt: skip

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
    def of(cls, nodes: Nodes, queries: Queries, vectors: Vectors, n_links: int) -> Graph:
        """Build the graph of some nodes, which ask for their neighbors as ``queries``.

        Each node is linked to those of its nearest that lie in different directions from it, and to
        those that are linked to it, likewise, up to ``2 * n_links`` of them [Malkov and Yashunin
        2018, Subramanya et al. 2019]. Directions are those of their vectors; of wide ones, or of so
        many that they would take more than 2 GB, along their principal axes.
        """
        n, width = len(nodes), 2 * n_links
        blocks, n_coordinates = _reduced(vectors, n, nodes.power)
        points, begin = np.empty((n, n_coordinates), np.float32), 0
        for block in blocks:
            points[begin : begin + len(block)] = block
            begin += len(block)
        links = np.empty((n, width), np.int32)
        for block in slices(n, 1, 1 << 16):
            part = queries.take(np.arange(n)[block])
            near = nearest_nodes(nodes, part, min(width + 1, n))[1]
            counts = np.full(len(near), near.shape[1])
            _link(points, block.start, near, counts, nodes.power, links[block])
        near, counts = np.empty((n, 4 * width), np.int32), np.empty(n, np.int64)
        kernels.both_ways(links, 4 * width, near, counts)
        _link(points, 0, near, counts, nodes.power, links)
        order = _close_together(links)
        number = np.empty(n, np.int32)
        number[order] = np.arange(n, dtype=np.int32)
        return cls(np.where(links < 0, np.int32(-1), number[links])[order], order)


class Walker:
    """A graph and its nodes, a line for each."""

    def __init__(self, graph: Graph, nodes: Nodes) -> None:
        self.graph = graph
        self.nodes = nodes
        narrow = np.uint16 if nodes.codes.max(initial=0) < 1 << 16 else np.uint32
        codes = np.ascontiguousarray(nodes.codes.T[graph.order], narrow)
        line = np.ascontiguousarray(nodes.line.T[graph.order])
        self._arrays = replace(nodes, codes=codes, line=line).arrays()
        # Of 1,024 nodes, evenly spread over the graph, the nearest begin a walk.
        self._seeds = np.unique(np.linspace(0, graph.n_nodes - 1, 1024).astype(np.int64))
        self._named = np.zeros(0), np.zeros(0)  # as in the last search: the same until rows change

    def nearest(
        self,
        queries: Queries,
        k: int,
        first: np.ndarray,
        breadth: int,
        query_nodes: np.ndarray | None = None,
    ) -> Ranking:
        """The k nearest nodes of each query as :func:`nearest_nodes` does, nearly.

        ``query_nodes`` says which node of the graph each query is: the walk goes as if it were not
        there.
        """
        graph, arrays = self.graph, self._arrays
        way = graph.links, self._seeds, breadth
        pair = self._named  # not read again: another thread may ask by another filter
        if pair[0] is not first:
            pair = self._named = first, first[graph.order]
        left_out = np.full(len(queries), -1)
        if query_nodes is not None:
            left_out = np.argsort(graph.order)[query_nodes]

        def walk(block: slice, rows: Ranking, *out: np.ndarray) -> None:
            kernels.walk(rows, arrays, pair[1], way, left_out[block], *out)

        nearest = queries.search(k, walk, 64)
        if graph.n_nodes == len(first):
            return nearest
        return merge(nearest, nearest_nodes(self.nodes, queries, k, first, graph.n_nodes), k)

    def sample(self) -> np.ndarray:
        """Nodes that :meth:`choose_breadth` asks about, always the same ones."""
        n = min(self.graph.n_nodes, 4096)
        return np.sort(np.random.default_rng(0).choice(self.graph.n_nodes, n, replace=False))

    def choose_breadth(self, queries: Queries, query_nodes: np.ndarray) -> tuple[int, float]:
        """Smallest breadth whose walks find enough, and the recall they have.

        Nodes of the graph are looked for as if they were not in it: an answer counts if it is no
        farther than the 10th true neighbour. Recall is to be 0.95 by two standard errors; where no
        breadth of the ladder reaches that, the widest is returned. Costs a scan and at
        most six walks for each of at most 4,096 nodes.
        """
        k = min(10, len(query_nodes))
        if not k:
            return BREADTHS[0], 1.0
        inside = np.arange(len(self.nodes))
        inside[self.graph.n_nodes :] = -1  # those that came later are compared one by one
        summed, nodes = nearest_nodes(self.nodes, queries, k + 1, inside)
        summed[nodes == query_nodes[:, None]] = np.inf
        farthest = np.sort(summed, axis=1)[:, k - 1 : k] * (1 + 1e-9)

        def measure(breadth: int) -> tuple[bool, float]:
            hits = self.nearest(queries, k, inside, breadth, query_nodes)[0] <= farthest
            shares = hits.mean(axis=1)
            recall, error = float(shares.mean()), float(shares.std() / np.sqrt(len(shares)))
            return recall - 2 * error >= 0.95, recall

        low, high, recalls = 0, len(BREADTHS) - 1, {}  # the answer lies between low and high
        while low < high:
            middle = (low + high) // 2
            enough, recalls[middle] = measure(BREADTHS[middle])
            low, high = (low, middle) if enough else (middle + 1, high)
        return BREADTHS[low], recalls[low] if low in recalls else measure(BREADTHS[low])[1]


# -- building ------------------------------------------------------------------------------------


def _link(
    points: np.ndarray,
    begin: int,
    near: np.ndarray,
    counts: np.ndarray,
    power: int,
    links: np.ndarray,
) -> None:
    """Link the nodes from some one on, in threads."""

    def work(block: slice) -> None:
        kernels.link_spread(
            points, begin + block.start, near[block], counts[block], power, links[block]
        )

    in_threads(work, slices(len(near), 1, 1 << 10))


def _reduced(vectors: Vectors, n_nodes: int, power: int) -> tuple[Iterator[np.ndarray], int]:
    """Vectors, block by block, and their width: at most 512, or what 2 GB hold."""
    sample = np.vstack(list(vectors(max(1, n_nodes // (1 << 16)))))
    width, max_width = sample.shape[1], min(128, max(64, (1 << 29) // n_nodes))
    if power == 1 or width <= max_width:
        return vectors(1), width
    centre = sample.mean(axis=0)
    sample -= centre
    _, axes = np.linalg.eigh(sample.T @ sample)
    principal = np.ascontiguousarray(axes[:, -max_width:], np.float32)
    return ((block - centre) @ principal for block in vectors(1)), max_width


def _close_together(links: np.ndarray) -> np.ndarray:
    """An order of the nodes in which those that link to each other are near."""
    is_link = links >= 0
    ends = np.concatenate([[0], np.cumsum(is_link.sum(axis=1))]).astype(np.int32)
    targets = links[is_link]
    graph = csr_array((np.ones(len(targets), np.int8), targets, ends), shape=(len(links),) * 2)
    return reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64)
