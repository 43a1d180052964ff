"""Neighbour graphs over nodes: built by faiss, walked by tabweave.

A graph covers the nodes it was built from; nodes that came later are compared one by one until
there are enough of them to build anew. Only links are kept: no vectors, so a graph takes little
memory and is plain numbers in a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from tabweave._compat import require
from tabweave.io.register import storable
from tabweave.rows.table import Table, take_rows
from tabweave.search.space import Space
from tabweave.search.stored import Stored, View, everywhere

_WIDEST = 64  # dimensions a graph is built in
_QUERIES = 64  # that one call walks for
_SAMPLE = 1 << 16  # nodes that say which dimensions matter
_SPARE = 16  # nodes looked at beyond those asked for, where float32 may err
_BUILD = 80  # breadth of the search for the links of a new node


@storable
@dataclass(frozen=True, eq=False)
class Graph:
    """Links of nodes, on levels; see :func:`tabweave.search.kernels.walk`.

    Nodes have other numbers here, so that neighbours lie close together in memory: the one that
    is number i here is ``order[i]`` in the view.
    """

    links: np.ndarray
    offsets: np.ndarray
    levels: np.ndarray
    entry: int
    top: int
    order: np.ndarray

    @property
    def n_nodes(self) -> int:
        """Number of nodes it covers."""
        return len(self.order)

    def check(self) -> None:
        """Refuse links, as read from a file, that lead nowhere."""
        n, ends = self.n_nodes, self.offsets
        if ends.shape != (n + 1,) or not np.array_equal(np.sort(self.order), np.arange(n)):
            raise ValueError(f"the graph does not fit {n} nodes")
        inside = self.links.size and -1 <= self.links.min() and self.links.max() < n
        fits = inside and 0 <= self.entry < n and 0 <= self.top < len(self.levels) - 1
        fits = fits and self.levels[0] == 0 and (np.diff(self.levels) >= 0).all()
        room = np.diff(ends)
        fits = (
            fits and ends[0] == 0 and ends[-1] == len(self.links) and (room >= self.levels[1]).all()
        )
        if not fits:
            raise ValueError("the links of the graph lead nowhere")

    @classmethod
    def of(cls, view: View, n_links: int) -> Graph:
        """Build the graph of all nodes of a view.

        Where vectors are wide and distances Euclidean it is built along their principal axes:
        neighbours there are nearly those of the full vectors, and the walk compares in full.
        """
        faiss = require("faiss", "search")
        blocks, width = _reduced(view)
        metric = faiss.METRIC_L1 if view.space.power == 1 else faiss.METRIC_L2
        index = faiss.IndexHNSWFlat(width, n_links, metric)
        index.hnsw.efConstruction = max(_BUILD, 2 * n_links)
        threads = faiss.omp_get_max_threads()
        try:
            faiss.omp_set_num_threads(1)  # or the links would depend on timing
            for block in blocks:
                index.add(block)
        finally:
            faiss.omp_set_num_threads(threads)
        hnsw = index.hnsw
        links, offsets, levels = (
            faiss.vector_to_array(getattr(hnsw, name))
            for name in ("neighbors", "offsets", "cum_nneighbor_per_level")
        )
        ends = offsets.astype(np.int64), levels.astype(np.int64)
        order = np.arange(len(offsets) - 1)
        return cls(links, *ends, hnsw.entry_point, hnsw.max_level, order)._renumbered()

    def _renumbered(self) -> Graph:
        """Return the graph with nodes that link to each other close together."""
        order = _close_together(self.links, self.offsets, int(self.levels[1]))
        number = np.empty(len(order), np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        lengths = np.diff(self.offsets)[order]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(ends[-1]) + np.repeat(self.offsets[:-1][order] - ends[:-1], lengths)
        links = self.links[places]
        links = np.where(links < 0, np.int32(-1), number[links])
        return Graph(links, ends, self.levels, int(number[self.entry]), self.top, order)


class Walker:
    """A graph and the codes of its nodes, a row for each."""

    def __init__(self, graph: Graph, view: View) -> None:
        self.graph = graph
        self.view = view
        narrow = np.uint16 if view.codes.max(initial=0) < 1 << 16 else np.uint32
        self._codes = np.ascontiguousarray(view.codes.T[graph.order], narrow)
        self._line = np.ascontiguousarray(view.line.T[graph.order])
        self._heads = view.heads[graph.order]

    def nearest(
        self, queries: Table, k: int, first: np.ndarray, breadth: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k nearest nodes of each query as :meth:`View.nearest` does, nearly."""
        from tabweave.search.kernels import walk

        graph, power = self.graph, self.view.space.power
        way = graph.links, graph.offsets, graph.levels, graph.entry, graph.top, breadth
        mine = self._heads if first is self.view.heads else first[graph.order]

        def search(lookup: Any, block: slice, out: np.ndarray, rows: np.ndarray) -> None:
            walk(*lookup, self._codes, self._line, power, mine, way, out, rows)

        found = self.view.nearest(queries, k, search, _QUERIES)
        if graph.n_nodes == len(first):
            return found
        late = self.view.nearest(queries, k, everywhere(self.view, first, graph.n_nodes))
        out, rows = (np.hstack(pair) for pair in zip(found, late, strict=True))
        order = np.lexsort((rows, out), axis=1)[:, :k]
        return np.take_along_axis(out, order, axis=1), np.take_along_axis(rows, order, axis=1)


def _close_together(links: np.ndarray, offsets: np.ndarray, width: int) -> np.ndarray:
    """Return an order of the nodes in which those that link to each other are near."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = len(offsets) - 1
    base = links[offsets[:-1, None] + np.arange(width)]
    there = base >= 0
    ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    found = base[there]
    graph = csr_array((np.ones(len(found), np.int8), found, ends), shape=(n, n))
    return reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64)


def _reduced(view: View) -> tuple[Iterator[np.ndarray], int]:
    """Return the vectors of a view, block by block, and their width, at most ``_WIDEST``."""
    step = max(1, len(view.heads) // _SAMPLE)
    sample = np.vstack(list(view.vectors(step)))
    width = sample.shape[1]
    if view.space.power == 1 or width <= _WIDEST:
        return view.vectors(), width
    centre = sample.mean(axis=0)
    sample -= centre
    _, axes = np.linalg.eigh(sample.T @ sample)
    chosen = np.ascontiguousarray(axes[:, -_WIDEST:], np.float32)
    return ((block - centre) @ chosen for block in view.vectors()), _WIDEST


class Flat:
    """All vectors of a view in faiss, compared one by one in float32."""

    def __init__(self, view: View) -> None:
        faiss = require("faiss", "search")
        self._faiss = faiss
        self.view = view
        self._index: Any = None
        metric = faiss.METRIC_L1 if view.space.power == 1 else faiss.METRIC_L2
        for block in view.vectors():
            if self._index is None:
                self._index = faiss.IndexFlat(block.shape[1], metric)
            self._index.add(block)

    def nearest(self, queries: Table, k: int, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the k nearest nodes of each query, of a few more that float32 finds nearest."""
        from tabweave.search.kernels import rank

        parameters = None
        if (first < 0).any():
            bits = np.packbits(first >= 0, bitorder="little")
            parameters = self._faiss.SearchParameters(sel=self._faiss.IDSelectorBitmap(bits))
        view, more = self.view, min(k + _SPARE, self._index.ntotal)
        nodes = self._index.search(view.space.vectors(queries), more, params=parameters)[1]

        def search(lookup: Any, block: slice, out: np.ndarray, rows: np.ndarray) -> None:
            place = view.codes, view.line, view.space.power
            rank(*lookup, *place, nodes[block], first, out, rows)

        return view.nearest(queries, k, search)


BACKENDS = ("exact", "faiss-hnsw", "faiss-flat")


_AUTO = 100_000  # distinct rows from which "auto" takes a graph


_DEAD = 1 / 3  # tombstones, of all rows, that make it worth rebuilding


_LATE = 1 / 4  # nodes that are not in the graph, of those that are, likewise


_FEW = 10_000  # as many of either are no burden


_NARROW = 0.1  # rows a filter leaves, below which a walk meets too few of them


_VIEWS = 8  # sets of columns whose views are kept


class Cache:
    """Views of the rows of an index, and what its backend needs."""

    def __init__(self, index: Any, space: Space, stored: Stored) -> None:
        self.index = index
        self.space = space
        self.stored = stored
        self._clear()

    def _clear(self) -> None:
        self._views: dict[tuple[str, ...], View] = {}
        self._walker: Walker | None = None
        self._flat: Flat | None = None

    def replace(self, stored: Stored) -> None:
        """Take note of rows that were added or removed."""
        if stored.table is not self.stored.table:
            self._clear()
        self.stored = stored

    def prepare(self) -> Stored:
        """Bring everything up to date and return the rows, without too many tombstones."""
        dead = len(self.stored.alive) - np.count_nonzero(self.stored.alive)
        if dead > max(_FEW, _DEAD * len(self.stored.alive)):
            self.stored = self.index._stored = self.stored.compacted()
            self.index._graph = None
            self._clear()
        backend = self.backend
        if backend != "exact":
            require("faiss", "search")
        if backend == "faiss-flat" and self._flat is None:
            self._flat = Flat(self._view())
        if backend == "faiss-hnsw" and self._walker is None:
            self._walker = Walker(self._current_graph(), self._view())
        return self.stored

    def _current_graph(self) -> Graph:
        graph: Graph | None = self.index._graph
        late = 0 if graph is None else len(self._view().heads) - graph.n_nodes
        if graph is None or late > max(_FEW, _LATE * graph.n_nodes):
            graph = self.index._graph = Graph.of(self._view(), int(self.index.links))
        return graph

    @property
    def backend(self) -> str:
        """The backend in use, "auto" resolved."""
        if self.index.backend != "auto":
            return self.index.backend
        large = len(self.stored.alive) >= _AUTO and len(self._view().heads) >= _AUTO
        return "faiss-hnsw" if large and find_spec("faiss") else "exact"

    def _view(self, names: list[str] | None = None) -> View:
        """Return the rows as a search over some columns sees them."""
        key = ("",) if names is None else tuple(names)
        if key not in self._views:
            if len(self._views) >= _VIEWS:
                del self._views[next(k for k in self._views if k != ("",))]
            space = self.space if names is None else self.space.only(names)
            self._views[key] = View.of(self.stored.table, space)
        return self._views[key]

    def nearest(
        self, asked: Table, names: list[str] | None, k: int, allowed: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (distances, rows) of the k nearest allowed rows of each query."""
        view = self._view(names)
        if k == 0:
            return np.zeros((asked.n_rows, 0)), np.zeros((asked.n_rows, 0), np.int64)
        first = view.first(allowed)
        share = 1.0 if allowed is None else np.count_nonzero(first >= 0) / len(first)
        if self.backend == "exact" or names is not None or share < _NARROW:
            found = view.nearest(asked, k, everywhere(view, first))
        elif self._walker is not None:
            breadth = int(max(self.index.breadth, k) / share)
            found = self._walker.nearest(asked, k, first, breadth)
        else:
            assert self._flat is not None
            found = self._flat.nearest(asked, k, first)
        distances, rows = view.rows(*found, k, allowed)
        odd = np.flatnonzero((rows < 0).any(axis=1))
        if len(odd):  # the walk met too few: rare, and then found exactly
            found = view.nearest(take_rows(asked, odd), k, everywhere(view, first))
            distances[odd], rows[odd] = view.rows(*found, k, allowed)
        return distances, rows
