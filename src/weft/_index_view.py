"""Stored rows as a search sees them: distinct rows as nodes, in the codes of a space.

Comes in: rows and a space (all columns of it, or some). Goes out: nodes that queries are compared
with, block by block, exactly. Nodes are numbered as their rows arrived, so that appending rows
never renumbers them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft import _distinct
from weft._index_space import HIDDEN, Space, chunks
from weft.hierarchy._search import _joined
from weft.table import Codes, Table

_QUERIES = 16  # compared at a time: codes are read from memory once for all of them


@dataclass(frozen=True, eq=False)
class View:
    """Nodes and their rows.

    Attributes
    ----------
    node_of : ndarray
        The node of each row.
    members, starts : ndarray
        Node u has the rows ``members[starts[u] : starts[u + 1]]``.
    heads : ndarray
        The first row of each node.
    places : list of ndarray
        What the space knows of the labels of each of its columns.
    groups, codes : ndarray
        Columns that are looked up together, and the nodes' joint values in them.
    line : ndarray of shape (dimensions, nodes)
        The other coordinates.
    """

    space: Space
    table: Table
    node_of: np.ndarray
    members: np.ndarray
    starts: np.ndarray
    heads: np.ndarray
    places: list[np.ndarray]
    groups: np.ndarray
    codes: np.ndarray
    line: np.ndarray

    @classmethod
    def of(cls, table: Table, space: Space) -> View:
        """Find the distinct rows of a table and take them apart."""
        node_of, heads = _nodes(table, space)
        members = np.argsort(node_of, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(node_of, minlength=len(heads)))])
        columns = [table[part.name] for part in space.values]
        places = [part.places(c) for part, c in zip(space.values, columns, strict=True)]
        sizes = [len(c.labels) for c in columns]
        groups, codes = _joined([c.codes[heads] for c in columns], sizes, len(heads))
        parts = [space.line(rows) for rows in chunks(table, heads)] if space.lines else []
        line = np.ascontiguousarray(np.vstack(parts).T) if parts else np.zeros((0, len(heads)))
        return cls(space, table, node_of, members, starts, heads, places, groups, codes, line)

    def vectors(self, step: int = 1) -> Iterator[np.ndarray]:
        """Yield the coordinates of the nodes, or of every so many, some at a time."""
        for rows in chunks(self.table, self.heads[::step]):
            yield self.space.vectors(rows)

    def first(self, allowed: np.ndarray | None) -> np.ndarray:
        """Return each node's first allowed row, or -1."""
        if allowed is None:
            return self.heads
        from weft._index_kernels import first_allowed

        out = np.full(len(self.heads), -1, np.int64)
        first_allowed(self.node_of, allowed, out)
        return out

    def nearest(
        self, queries: Table, k: int, search: Any, size: int = _QUERIES
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k nearest nodes of each query: (distances, first rows), nearest first.

        ``search(lookup, block, out, rows)`` fills in those of ``size`` queries; see
        :func:`everywhere`.
        """
        from weft._gather_kernels import in_threads

        asked = _Asked(self, queries)
        widths = np.array([len(p) for p in self.places], np.int64)
        offsets = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        sizes = [int(np.prod(widths[g[g >= 0]])) for g in self.groups]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        out = np.empty((queries.n_rows, k))
        rows = np.empty((queries.n_rows, k), np.int64)

        def work(block: slice) -> None:
            lookup = asked.values(block), asked.line[block], self.groups, offsets, widths, starts
            search(lookup, block, out[block], rows[block])

        n = queries.n_rows
        in_threads(work, [slice(i, min(i + size, n)) for i in range(0, n, size)])
        return out, rows

    def rows(
        self, found: np.ndarray, first: np.ndarray, k: int, allowed: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Turn nearest nodes into nearest rows: (distances, rows); inf and -1 where too few."""
        from weft._index_kernels import spread

        if allowed is None:
            allowed = np.ones(len(self.node_of), bool)
        distances, rows = np.empty((len(found), k)), np.empty((len(found), k), np.int64)
        spread(found, first, self.node_of, self.starts, self.members, allowed, distances, rows)
        if self.space.root:
            np.sqrt(np.maximum(distances, 0, out=distances), out=distances)
        return distances, rows


def everywhere(view: View, first: np.ndarray, begin: int = 0) -> Any:
    """Return a search that compares with every node from ``begin`` on."""
    from weft._index_kernels import scan

    codes, line = view.codes, view.line
    kept = begin + np.flatnonzero(first[begin:] >= 0)
    if begin or len(kept) < len(first) // 4:  # a part of the nodes, close together in memory
        codes, line = np.take(codes, kept, axis=1), np.take(line, kept, axis=1)
        first = first[kept]

    def search(lookup: Any, block: slice, out: np.ndarray, rows: np.ndarray) -> None:
        scan(*lookup, codes, line, view.space.power, first, out, rows)

    return search


class _Asked:
    """Queries as a view sees them."""

    def __init__(self, view: View, queries: Table) -> None:
        self.view = view
        columns = [queries[part.name] for part in view.space.values]
        self.codes = [column.codes for column in columns]
        pairs = zip(view.space.values, columns, strict=True)
        self.places = [part.places(column) for part, column in pairs]
        self.line = np.ascontiguousarray(view.space.line(queries))

    def values(self, block: slice) -> np.ndarray:
        """Return the distances of some queries to every value of every column, side by side."""
        parts = [np.zeros((block.stop - block.start, 0))]
        pairs = zip(self.view.space.values, self.view.places, strict=True)
        for a, (part, stored) in enumerate(pairs):
            parts.append(part.apart(self.places[a][self.codes[a][block]], stored))
        return np.hstack(parts)


def _nodes(table: Table, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Return the node of each row and the first row of each node, as they arrived."""
    everyone = np.arange(table.n_rows)
    names = [part.name for part in space.values]
    names += [name for line in space.lines for name in line.columns]
    if not names or any(name.startswith(HIDDEN) for name in names):
        return everyone, everyone  # vectors hardly ever repeat
    columns = [table[name] for name in names]
    codes = [c.codes if isinstance(c, Codes) else _distinct._ranks(c) for c in columns]
    first, inverse = _distinct.distinct_rows(codes)
    order = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    return number[inverse], first[order]
