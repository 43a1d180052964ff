"""What an index derives from its rows: nodes, a graph or vectors; made when first needed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from weft._distinct import take_rows
from weft._index_graph import Flat, Graph, Walker
from weft._index_rows import Stored
from weft._index_space import Space
from weft._index_view import View, everywhere
from weft._optional import require
from weft.table import Table

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
