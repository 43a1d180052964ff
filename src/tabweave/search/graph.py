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
from tabweave.blocks.block import summed_differences
from tabweave.io.register import storable
from tabweave.rows.table import Codes, Table, distinct_rows, ranks_of_cells
from tabweave.search.scan import (
    Copies,
    Found,
    Hits,
    Nodes,
    Queries,
    merge,
    nearest_nodes,
    rerank,
)
from tabweave.search.space import HIDDEN, Space, chunks

_WIDEST = 512  # dimensions a graph is built in
_NARROWEST = 64  # of them, where memory is short
_ROOM = 1 << 29  # coordinates of all nodes while it is built: 2 GB
_QUERIES = 64  # that one call walks for
_SAMPLE = 1 << 16  # nodes that say which dimensions matter
_SPARE = 16  # nodes looked at beyond those asked for, where float32 may err
_BLOCK, _ACROSS = 256, 1 << 14  # nodes compared at a time with as many that they may be near to
_TABLE = 1 << 23  # distances of values that are kept while rows are looked for: 64 MB a column
_EQUAL = 4  # rows for each value, from which on they are
_SMALL = 16  # nodes of a group that is compared whole
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

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Return the base level of a graph that was saved with the levels above it."""
        if "levels" not in state:
            return state
        offsets, width = state["offsets"], int(state["levels"][1])
        if not 0 < width <= np.diff(offsets).min(initial=width):
            raise ValueError("the links of the graph lead nowhere")
        return {"links": _base(state["links"], offsets, width), "order": state["order"]}


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
        from tabweave.search.kernels import walk

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


class Flat:
    """All vectors in faiss, compared one by one in float32, and the nearest ranked anew."""

    def __init__(self, vectors: Vectors, nodes: Nodes) -> None:
        self._faiss = faiss = require("faiss", "search")
        self.nodes = nodes
        self._index: Any = None
        for block in vectors(1):
            if self._index is None:
                self._index = faiss.IndexFlat(block.shape[1], _metric(faiss, nodes.power))
            self._index.add(block)

    def nearest(self, queries: Queries, k: int, first: np.ndarray, vectors: np.ndarray) -> Found:
        """Return the k nearest nodes of each query, of a few more that float32 finds nearest."""
        return rerank(self.nodes, queries, k, self._candidates(vectors, k, first >= 0), first)

    def _candidates(self, vectors: np.ndarray, k: int, allowed: np.ndarray) -> np.ndarray:
        """Return the allowed nodes that are nearest in float32; others may be among them."""
        wanted = min(k + _SPARE, int(np.count_nonzero(allowed)))
        if allowed.all():
            return self._index.search(vectors, wanted)[1]
        if self.nodes.power == 2:
            bits = np.packbits(allowed, bitorder="little")
            chosen = self._faiss.SearchParameters(sel=self._faiss.IDSelectorBitmap(bits))
            return self._index.search(vectors, wanted, params=chosen)[1]
        more = wanted  # in L1 not every faiss can leave nodes out: ask until enough are allowed
        while True:
            more = min(2 * more, len(allowed))
            nodes = self._index.search(vectors, more)[1]
            if more == len(allowed) or (allowed[nodes].sum(axis=1) >= wanted).all():
                return nodes


# -- rows in a space -----------------------------------------------------------------------------


class View:
    """The rows of a table as a search by some space sees them: nodes, and the rows of each.

    Parameters
    ----------
    table : Table
        The rows.
    space : Space
        What they are compared by.
    """

    def __init__(self, table: Table, space: Space) -> None:
        self.table, self.space = table, space
        self.copies = _distinct(table, space)
        heads = self.copies.heads
        columns = [table[block.names[0]] for block in space.values]
        self._located = [space.locate(b, c) for b, c in zip(space.values, columns, strict=True)]
        parts = [space.line(rows).T for rows in chunks(table, heads)] if space.lines else []
        line = np.ascontiguousarray(np.hstack(parts)) if parts else np.zeros((0, len(heads)))
        widths = [len(column.labels) for column in columns]
        self.nodes = Nodes.of(self.codes(), widths, line, power=space.power)

    def codes(self, nodes: Any = slice(None)) -> list[np.ndarray]:
        """Return the values of (some) nodes in each column that is looked up."""
        rows = self.copies.heads[nodes]
        return [self.table[block.names[0]].codes[rows] for block in self.space.values]

    def vectors(self, step: int = 1) -> Iterator[np.ndarray]:
        """Yield the coordinates of the nodes, or of every so many, some at a time."""
        for rows in chunks(self.table, self.copies.heads[::step]):
            yield self.space.vectors(rows)

    def near_pairs(self, limit: float, kept: np.ndarray) -> Hits:
        """Return the pairs of some nodes that are at most ``limit`` apart, exactly.

        Columns whose different values alone are farther apart cut the nodes into groups; within
        them those are compared that are near along the coordinate that varies most.
        """
        along = _widest(self.nodes.line[:, kept])
        groups = self._groups(limit, kept)
        order = np.lexsort((along, groups))
        reach = _reach(groups[order], along[order], limit ** (1 / self.space.power))
        order = kept[order]
        parts = [(kept[:0], kept[:0], np.zeros(0))]
        for begin in range(0, len(order), _BLOCK):
            block, end = order[begin : begin + _BLOCK], reach[begin : begin + _BLOCK].max()
            for start in range(begin, end, _ACROSS):
                others = order[start : min(start + _ACROSS, end)]
                summed = self._summed(block, others)
                i, j = np.nonzero(summed <= limit)
                later = begin + i < start + j
                i, j = i[later], j[later]
                parts.append((block[i], others[j], summed[i, j]))
        low, high, summed = (np.concatenate(part) for part in zip(*parts, strict=True))
        return low, high, summed

    def _groups(self, limit: float, kept: np.ndarray) -> np.ndarray:
        """Return a number for each of some nodes: pairs that are near have the same."""
        kin = [
            self.space.kin(block, located, limit)
            for block, located in zip(self.space.values, self._located, strict=True)
        ]
        known = [labels for labels in kin if labels is not None]
        if not known or len(known) < len(kin):
            return np.zeros(len(kept), np.int64)
        groups = [labels[own] for labels, own in zip(known, self.codes(kept), strict=True)]
        return distinct_rows(groups)[1] if len(kept) else np.zeros(0, np.int64)

    def _summed(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return what adds up between nodes and others, from the labels that they have."""
        line = self.nodes.line
        out = summed_differences(line[:, left].T, line[:, right].T, self.space.power)
        columns = zip(self.space.values, self._located, strict=True)
        codes = zip(self.codes(left), self.codes(right), strict=True)
        for (block, located), both in zip(columns, codes, strict=True):
            (a, i), (b, j) = (np.unique(own, return_inverse=True) for own in both)
            out += self.space.between(block, located[a], located[b])[i][:, j]
        return out

    def queries(self, table: Table) -> Queries:
        """Return the rows of another table as queries."""
        paid = [self._paid(a, table[block.names[0]]) for a, block in enumerate(self.space.values)]
        points = np.ascontiguousarray(self.space.line(table))

        def values(some: Any) -> np.ndarray:
            return np.hstack([np.zeros((len(points[some]), 0)), *(pay(some) for pay in paid)])

        return Queries(values, points)

    def _paid(self, a: int, column: Any) -> Callable[[Any], np.ndarray]:
        """Return what queries pay for the values of a column: looked up where many are equal."""
        space, block, stored = self.space, self.space.values[a], self._located[a]
        located, codes = space.locate(block, column), column.codes
        used = np.flatnonzero(np.bincount(codes, minlength=len(located)))
        if _EQUAL * len(used) > len(codes) or len(used) * len(stored) > _TABLE:
            return lambda some: space.between(block, located[codes[some]], stored)
        line, table = np.zeros(len(located), np.int64), space.between(block, located[used], stored)
        line[used] = np.arange(len(used))
        return lambda some: table[line[codes[some]]]


def _reach(groups: np.ndarray, along: np.ndarray, width: float) -> np.ndarray:
    """Return where the nodes end that a sorted node may be near to."""
    starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    ends = np.append(starts[1:], len(groups))
    out = np.repeat(ends, ends - starts)
    slack = 1e-9 * (1 + np.abs(along).max(initial=0.0))  # of rounding
    for begin, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end - begin > _SMALL:  # a small group is compared whole
            own = along[begin:end]
            out[begin:end] = begin + np.searchsorted(own, own + width + slack, side="right")
    return out


def _widest(line: np.ndarray) -> np.ndarray:
    """Return the coordinate that varies most; zeros if there is none."""
    return line[np.argmax(line.var(axis=1))] if line.size else np.zeros(line.shape[1])


def _distinct(table: Table, space: Space) -> Copies:
    """Return which rows are equal in a space; nodes are in the order of their first rows."""
    everyone = np.arange(table.n_rows)
    names = [name for block in (*space.values, *space.lines) for name in block.names]
    if not names or any(name.startswith(HIDDEN) for name in names):
        return Copies.of(everyone, everyone)  # vectors hardly ever repeat
    columns = [table[name] for name in names]
    codes = [c.codes if isinstance(c, Codes) else ranks_of_cells(c) for c in columns]
    first, inverse = distinct_rows(codes)
    order = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    return Copies.of(number[inverse], first[order])


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
