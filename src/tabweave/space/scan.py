"""The exact scan: the k nearest rows of each query, from lookups and coordinates.

Comes in: rows as codes of values and as coordinates, and what queries pay for each value; a
:class:`View` makes them of a table and a space. Goes out: (distances, rows), nearest first, equally
near ones by row number. This is how every task of the package asks for neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from tabweave._compat import eigh, in_threads
from tabweave.columns.table import Table, distinct_rows, take_rows
from tabweave.columns.vocabulary import Unknown, slices
from tabweave.counts.counting import group_columns
from tabweave.gpu import arrays as gpu
from tabweave.space import kernels
from tabweave.space.space import HIDDEN, LabelPoints, Labels, Space, total_gaps

# Of a coordinate up to here float32 can hold the square, exactly enough.
MAX_FLOAT32_COORDINATE = 1e15
# Comparisons below which a device does not pay: about what two cores do in 2 ms.
MIN_DEVICE_PAIRS = 1 << 21

Ranking = tuple[np.ndarray, np.ndarray]  # distances and row numbers, a line for each query
Hits = tuple[np.ndarray, np.ndarray, np.ndarray]  # who asks, who is found, what adds up between
Vectors = Callable[[Any], np.ndarray]  # of some nodes or queries, a line for each


@dataclass(frozen=True, eq=False)
class Nodes:
    """Distinct rows that queries are compared with.

    Attributes
    ----------
    widths : ndarray of shape (columns,)
        Number of values of each column that is looked up.
    groups, codes : ndarray of shape (groups, columns) and (groups, nodes)
        Columns that are looked up together, padded with -1, and the nodes' joint values in them.
    line : ndarray of shape (coordinates, nodes)
        What is not looked up.
    power : {1, 2}
        What adds up over coordinates: ``|x - y|`` or ``(x - y)²``.
    root : bool
        Whether the roots of the sums are compared, and returned.
    vectors : callable, optional
        Points of some nodes that are no farther from each other than what adds up.
    """

    widths: np.ndarray
    groups: np.ndarray
    codes: np.ndarray
    line: np.ndarray
    power: int = 2
    root: bool = False
    vectors: Vectors | None = None

    @classmethod
    def of(
        cls,
        codes: Sequence[np.ndarray],
        widths: Sequence[int],
        line: np.ndarray,
        *,
        power: int = 2,
        root: bool = False,
        max_joint: int = 2048,
    ) -> Nodes:
        """Join columns of few values, so that one load serves several of them.

        Parameters
        ----------
        codes : sequence of ndarray
            The value of each node, column by column.
        widths : sequence of int
            Number of values of each column.
        line : ndarray of shape (coordinates, nodes)
            The nodes' coordinates.
        power, root
            As in the attributes.
        max_joint : int
            Joint values of a group, whose distances (16 KB) stay in the first cache. It decides in
            which order columns are added.
        """
        groups = group_columns(widths, max_joint)
        table = np.full((len(groups), max(map(len, groups), default=0)), -1, np.int64)
        largest = max((int(np.prod([widths[a] for a in group])) for group in groups), default=0)
        # Unsigned and narrow: looked up without a test for negative ones, and half the memory.
        joint = np.zeros((len(groups), line.shape[1]), np.min_scalar_type(max(largest, 256)))
        for g, group in enumerate(groups):
            table[g, : len(group)] = group
            for a in group:
                joint[g] = joint[g] * joint.dtype.type(widths[a]) + codes[a].astype(joint.dtype)
        return cls(np.array(widths, np.int64), table, joint, line, power, root)

    def __len__(self) -> int:
        return self.line.shape[1]

    @cached_property
    def sketch(self) -> Sketch | None:
        """The nodes in a few directions; None where that rules nothing out."""
        return Sketch.of(self.line) if self.power == 2 else None

    @cached_property
    def tiles(self) -> Tiles | None:
        """The nodes in boxes of near ones; None where there is no point in it."""
        return Tiles.of(self) if self.power == 2 else None

    @cached_property
    def on_device(self) -> gpu.DeviceNodes | None:
        """The nodes on the device that was chosen; None where the CPU has to search."""
        return gpu.DeviceNodes.of(gpu.device(), self)

    def take(self, nodes: np.ndarray) -> Nodes:
        """Some of the nodes, close together in memory."""
        codes, line = (np.take(part, nodes, axis=1) for part in (self.codes, self.line))
        return replace(self, codes=codes, line=line, vectors=None)

    def arrays(self) -> tuple[Any, ...]:
        """What the kernels read."""
        offsets = np.concatenate([[0], np.cumsum(self.widths)]).astype(np.int64)
        sizes = [int(np.prod(self.widths[g[g >= 0]])) for g in self.groups]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        shape = self.groups, offsets, self.widths, starts
        return *shape, self.codes, self.line, self.power, self.root


@dataclass(frozen=True, eq=False)
class Sketch:
    """Nodes in the few directions in which they differ most, as float32.

    Distances in some directions are no larger than those in all: most nodes are ruled out by a
    fraction of their coordinates. What is left is compared in full, so answers stay what they are.

    Attributes
    ----------
    centre, axes : ndarray of shape (coordinates,) and (coordinates, directions)
        Where directions begin, and where they lead; they are orthogonal, of length 1.
    along : ndarray of shape (directions, nodes)
        The nodes' coordinates along the axes.
    largest, farthest : float
        The largest coordinate of a node, in size, and the largest along the axes.
    """

    centre: np.ndarray
    axes: np.ndarray
    along: np.ndarray
    largest: float
    farthest: float

    @classmethod
    def of(cls, line: np.ndarray, n_directions: int = 32) -> Sketch | None:
        """Find the principal axes of some nodes, and all along them.

        None if squares overflow, or for so few nodes or coordinates that it is not worth it.
        """
        if len(line) < 2 * n_directions or line.shape[1] < 1 << 14:
            return None
        largest = max(float(line.max()), -float(line.min()))
        if not largest < MAX_FLOAT32_COORDINATE:
            return None
        sample = line[:, :: max(1, line.shape[1] // (1 << 14))]
        centre = sample.mean(axis=1)
        centred = sample - centre[:, None]
        axes = eigh(centred @ centred.T)[1][:, -n_directions:]
        along = axes.T @ line
        along -= (axes.T @ centre)[:, None]
        farthest = max(float(along.max()), -float(along.min()))
        return cls(centre, axes, along.astype(np.float32), largest, farthest)

    def near(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points along the axes, and what rounding may take from a difference to a node.

        It is infinite, so that nothing is ruled out, where squares overflow.
        """
        along = points @ self.axes - self.centre @ self.axes
        width, n_directions = self.axes.shape
        size = np.abs(points).max(axis=1) + self.largest
        slack = 2.0**-21 * (np.abs(along).max(axis=1) + self.farthest)  # of float32,
        slack = n_directions**0.5 * (slack + 1e-13 * width * size)  # and of the products
        slack = np.where(size < MAX_FLOAT32_COORDINATE, slack, np.inf)
        along = np.clip(along, -MAX_FLOAT32_COORDINATE, MAX_FLOAT32_COORDINATE)
        return along.astype(np.float32), slack


@dataclass(frozen=True, eq=False)
class Tiles:
    """Nodes in boxes along the few directions in which they differ most.

    A query compares with the nodes of the nearest box first, and with none whose box is farther
    than the k-th node so far. So answers stay what they are.

    Attributes
    ----------
    centre, axes : ndarray of shape (coordinates,) and (coordinates, directions)
        Where directions begin, and where they lead; they are orthogonal, of length 1.
    low, high : ndarray of shape (boxes, directions)
        The ends of each box.
    edges : ndarray of shape (boxes + 1,)
        Where the nodes of each box begin, and where the last ones end.
    order : ndarray
        The nodes, box by box.
    arrays : tuple
        Those of the nodes in that order, the coordinates of each box after those of the one before.
    largest : float
        The largest coordinate of a node, in size.
    """

    centre: np.ndarray
    axes: np.ndarray
    low: np.ndarray
    high: np.ndarray
    edges: np.ndarray
    order: np.ndarray
    arrays: tuple[Any, ...]
    largest: float

    @classmethod
    def of(cls, nodes: Nodes, n_directions: int = 8, max_nodes: int = 128) -> Tiles | None:
        """Halve the nodes along the direction in which they differ most, again and again.

        None if their vectors are unknown, wide, too large to be squared, or few, or differ in other
        directions, too: then a query would meet most boxes.
        """
        n, max_width = len(nodes), 512
        if nodes.vectors is None or n < 1 << 13:
            return None
        sample = nodes.vectors(slice(None, None, max(1, n >> 14)))
        if not 0 < sample.shape[1] <= max_width or np.abs(sample).max() >= MAX_FLOAT32_COORDINATE:
            return None
        centre = sample.mean(axis=0)
        sample -= centre
        values, axes = eigh(sample.T @ sample)
        if values[-n_directions:].sum() < 0.7 * values.sum():
            return None
        axes = axes[:, -n_directions:]
        along, largest = np.empty((n, axes.shape[1])), 0.0
        for block in slices(n, 1, 1 << 16):
            vectors = nodes.vectors(block)
            along[block] = vectors @ axes - centre @ axes
            largest = max(largest, float(np.abs(vectors).max()))
        order, edges = halved(along, max_nodes)
        low, high = (end.reduceat(along[order], edges[:-1]) for end in (np.minimum, np.maximum))
        line = np.concatenate([nodes.line[:, order[a:b]].ravel() for a, b in pairwise(edges)])
        shape, rules = nodes.arrays()[:4], nodes.arrays()[6:]
        arrays = *shape, np.take(nodes.codes, order, axis=1), line, *rules
        return cls(centre, axes, low, high, edges, order, arrays, largest)

    def search(self, queries: Queries, k: int, first: np.ndarray) -> Ranking:
        """The k nearest nodes of each query, as :func:`nearest_nodes` finds them."""
        named, vectors_of = first[self.order], queries.vectors
        assert vectors_of is not None

        def search(block: slice, rows: Ranking, *out: np.ndarray) -> None:
            boxes = *self.near(vectors_of(block)), self.low, self.high, self.edges
            kernels.tiled_scan(rows, self.arrays, named, boxes, *out)

        return queries.search(k, search)

    def near(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vectors along the axes, and what rounding may take from a difference to a node."""
        width, n_directions = self.axes.shape
        with np.errstate(over="ignore", invalid="ignore"):  # far from everything, all are compared
            along = vectors @ self.axes - self.centre @ self.axes
            size = np.abs(vectors).max(axis=1) + self.largest
            return along, 1e-13 * width * n_directions**0.5 * size


def halved(along: np.ndarray, max_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """An order of points in which near ones stand together, and where each group begins."""
    order, edges, pending = np.arange(len(along)), [len(along)], [(0, len(along))]
    while pending:
        begin, end = pending.pop()
        if end - begin <= max_nodes:
            edges.append(begin)
            continue
        rows = order[begin:end]
        points, middle = along[rows], (end - begin) // 2
        widest = points[:, np.argmax(points.var(axis=0))]
        order[begin:end] = rows[np.argpartition(widest, middle)]
        pending += [(begin, begin + middle), (begin + middle, end)]
    return order, np.sort(edges)


@dataclass(frozen=True, eq=False)
class Queries:
    """Rows to look for.

    Attributes
    ----------
    values : callable
        What some queries (a slice, or their numbers) pay for every value of every column, side by
        side.
    points : ndarray of shape (queries, coordinates)
        Their coordinates.
    vectors : callable, optional
        As those of nodes.
    """

    values: Callable[[Any], np.ndarray]
    points: np.ndarray
    vectors: Vectors | None = None

    @classmethod
    def of(
        cls, codes: Sequence[np.ndarray], tables: Sequence[np.ndarray], points: np.ndarray
    ) -> Queries:
        """Look up what queries pay: line ``codes[a][i]`` of ``tables[a]`` for query i."""

        def values(block: Any) -> np.ndarray:
            columns = zip(codes, tables, strict=True)
            parts = [table[column_codes[block]] for column_codes, table in columns]
            return np.hstack([np.zeros((len(points[block]), 0)), *parts])

        return cls(values, np.ascontiguousarray(points))

    def __len__(self) -> int:
        return len(self.points)

    def take(self, numbers: np.ndarray) -> Queries:
        """Some of the queries."""
        vectors = self.vectors
        taken = None if vectors is None else lambda block: vectors(numbers[block])
        return Queries(lambda block: self.values(numbers[block]), self.points[numbers], taken)

    def arrays(self, block: slice) -> tuple[np.ndarray, np.ndarray]:
        """What the kernels read of a block."""
        return self.values(block), self.points[block]

    def search(self, k: int, kernel: Any, size: int = 16) -> Ranking:
        """Let a kernel fill in the k nearest of each query, ``size`` queries at a time.

        Codes are read from memory once for all of them.
        """
        out, rows = np.empty((len(self), k)), np.empty((len(self), k), np.int64)

        def work(block: slice) -> None:
            kernel(block, self.arrays(block), out[block], rows[block])

        in_threads(work, slices(len(self), 1, size))
        return out, rows


@dataclass(frozen=True, eq=False)
class Copies:
    """Which rows each node stands for.

    Attributes
    ----------
    node_of : ndarray
        The node of each row.
    heads : ndarray
        The first row of each node.
    members, starts : ndarray
        Node u has the rows ``members[starts[u] : starts[u + 1]]``.
    """

    node_of: np.ndarray
    heads: np.ndarray
    members: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, node_of: np.ndarray, heads: np.ndarray) -> Copies:
        """Gather the rows of each node."""
        ends = np.cumsum(np.bincount(node_of, minlength=len(heads)))
        members = np.argsort(node_of, kind="stable")
        return cls(node_of, heads, members, np.concatenate([[0], ends]))

    def first(self, allowed: np.ndarray | None) -> np.ndarray:
        """Each node's first allowed row, or -1."""
        if allowed is None:
            return self.heads
        out = np.full(len(self.heads), -1, np.int64)
        kernels.first_allowed(self.node_of, allowed, out)
        return out

    def sizes(self, allowed: np.ndarray | None) -> np.ndarray:
        """How many (allowed) rows each node has."""
        nodes = self.node_of if allowed is None else self.node_of[allowed]
        return np.bincount(nodes, minlength=len(self.heads))

    def rows_of(
        self, nodes: np.ndarray, allowed: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows of some nodes, the allowed ones, one after the other, and how many each has."""
        begin, lengths = self.starts[nodes], self.starts[nodes + 1] - self.starts[nodes]
        owner = np.repeat(np.arange(len(nodes)), lengths)
        ends = np.cumsum(lengths)
        rows = self.members[np.arange(len(owner)) + np.repeat(begin - ends + lengths, lengths)]
        if allowed is not None:
            rows, owner = rows[allowed[rows]], owner[allowed[rows]]
        return rows, np.bincount(owner, minlength=len(nodes))

    def expand(self, ranking: Ranking, k: int, allowed: np.ndarray | None) -> Ranking:
        """Turn nearest nodes into nearest rows; infinity and -1 where there are too few."""
        if allowed is None:
            allowed = np.ones(len(self.node_of), bool)
        out, rows = np.empty((len(ranking[0]), k)), np.empty((len(ranking[0]), k), np.int64)
        kernels.expand(*ranking, self.node_of, self.starts, self.members, allowed, out, rows)
        return out, rows


# -- searching -----------------------------------------------------------------------------------


def nearest_nodes(
    nodes: Nodes, queries: Queries, k: int, first: np.ndarray | None = None, begin: int = 0
) -> Ranking:
    """The k nearest nodes of each query, by comparing with every one from ``begin`` on.

    Parameters
    ----------
    nodes, queries
        Who is compared.
    k : int
        How many. Where there are fewer, the rest is infinity and the largest of all row numbers.
    first : ndarray, optional
        What each node is called in the answer, -1 where it may not be found; its number if not
        given.
    begin : int
        The first node that counts.
    """
    if first is None:
        first = np.arange(len(nodes))
    candidates = begin + np.flatnonzero(first[begin:] >= 0)
    is_part = bool(begin) or len(candidates) < len(first) // 4
    if is_part:
        nodes, first = nodes.take(candidates), first[candidates]
    is_large = len(queries) * len(nodes) >= MIN_DEVICE_PAIRS and k <= gpu.CAPACITY // 4
    if is_large and gpu.device() is not None and nodes.on_device is not None:
        return _nearest_on_device(nodes, queries, k, first)
    return _nearest_on_cpu(nodes, queries, k, first, is_part=is_part)


def _nearest_on_device(nodes: Nodes, queries: Queries, k: int, first: np.ndarray) -> Ranking:
    """The k nearest nodes, found on a device; what ties fill there is left to the CPU."""
    assert nodes.on_device is not None
    is_number = (first == np.arange(len(first))).all()
    *ranking, unfinished = gpu.nearest(
        gpu.device(),
        nodes.on_device,
        queries.values,
        queries.points,
        k,
        None if is_number else first,
    )
    distances, rows = ranking
    left = np.flatnonzero(unfinished)
    if len(left):
        distances[left], rows[left] = _nearest_on_cpu(nodes, queries.take(left), k, first)
    return distances, rows


def _nearest_on_cpu(
    nodes: Nodes, queries: Queries, k: int, first: np.ndarray, *, is_part: bool = False
) -> Ranking:
    """The k nearest nodes, by a compiled loop over all of them."""
    arrays = nodes.arrays()
    # A sketch pays for many queries, or if it is there; of fewer coordinates, boxes do.
    is_sketched = not is_part and (len(queries) >= 64 or "sketch" in nodes.__dict__)
    sketch = nodes.sketch if is_sketched else None
    if sketch is None:
        is_tiled = not is_part and (len(queries) >= 256 or "tiles" in nodes.__dict__)
        if is_tiled and queries.vectors is not None and nodes.tiles is not None:
            return nodes.tiles.search(queries, k, first)
        return queries.search(k, lambda _, rows, *out: kernels.scan(rows, arrays, first, *out))
    near, slack = sketch.near(queries.points)

    def search(block: slice, rows: Ranking, *out: np.ndarray) -> None:
        rounded = near[block], sketch.along, slack[block]
        kernels.sketched_scan(rows, arrays, first, rounded, *out)

    return queries.search(k, search)


def nearest_rows(
    nodes: Nodes,
    copies: Copies,
    queries: Queries,
    k: int,
    allowed: np.ndarray | None = None,
    search: Callable[[Queries, int, np.ndarray], Ranking] | None = None,
) -> Ranking:
    """The k nearest rows of each query.

    Parameters
    ----------
    nodes, copies, queries
        Who is compared, and the rows that nodes stand for.
    k : int
        How many; at most as many as there are (allowed) rows.
    allowed : ndarray of bool, optional
        Which rows may be found.
    search : callable, optional
        Another way to find nodes than the scan. It may miss some; where it comes back with fewer
        than k, the scan is asked.
    """
    first = copies.first(allowed)
    if search is None:
        return copies.expand(nearest_nodes(nodes, queries, k, first), k, allowed)
    distances, rows = copies.expand(search(queries, k, first), k, allowed)
    short = np.flatnonzero((rows < 0).any(axis=1))
    if len(short):
        nearest = nearest_nodes(nodes, queries.take(short), k, first)
        distances[short], rows[short] = copies.expand(nearest, k, allowed)
    return distances, rows


def within(nodes: Nodes, queries: Queries, limit: float, first: np.ndarray | None = None) -> Hits:
    """Every node that is at most ``limit`` from a query, query by query, nearest first.

    The scan is asked for more neighbours until the last one is too far, so memory is what is found.
    """
    pending, k, parts = np.arange(len(queries)), 16, []
    if not len(nodes):
        return pending[:0], pending[:0], np.zeros(0)
    while len(pending):
        k = min(k, len(nodes))
        distances, numbers = nearest_nodes(nodes, queries.take(pending), k, first)
        done = (distances[:, -1] > limit) | (k == len(nodes))
        near = (distances <= limit) & done[:, None]
        parts.append((pending[np.nonzero(near)[0]], numbers[near], distances[near]))
        pending, k = pending[~done], 4 * k
    query, named, summed = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(query, kind="stable")
    return query[order], named[order], summed[order]


def merge(one: Ranking, other: Ranking, k: int) -> Ranking:
    """The k nearest of two answers to the same queries."""
    out, rows = (np.hstack(pair) for pair in zip(one, other, strict=True))
    order = np.lexsort((rows, out), axis=1)[:, :k]
    return np.take_along_axis(out, order, axis=1), np.take_along_axis(rows, order, axis=1)


def without_self(ranking: Ranking) -> Ranking:
    """The k nearest other rows, from the k + 1 nearest of every row."""
    distances, rows = ranking
    is_self = rows == np.arange(len(rows))[:, None]
    is_self[~is_self.any(axis=1), -1] = True  # more copies than neighbours: it is not among them
    shape = (len(rows), rows.shape[1] - 1)
    return distances[~is_self].reshape(shape), rows[~is_self].reshape(shape)


class Nearest:
    """Keeps the nearest rows of some vectors while blocks of rows go by.

    Parameters
    ----------
    vectors : ndarray of shape (queries, coordinates)
        The queries.
    query_rows : ndarray of int
        The row number of each query, which is no neighbour of itself.
    k : int
        How many to keep.
    power : {1, 2}
        Manhattan or Euclidean distance.

    Attributes
    ----------
    distances, rows : ndarray of shape (queries, k)
        What was found so far, nearest first; infinite where rows were too few.
    """

    def __init__(
        self, vectors: np.ndarray, query_rows: np.ndarray, k: int, *, power: int = 2
    ) -> None:
        self.query_rows, self.k, self.power = np.asarray(query_rows), k, power
        self._queries = Queries.of([], [], np.asarray(vectors, np.float64))
        self.distances = np.zeros((len(vectors), 0))
        self.rows = np.zeros((len(vectors), 0), np.int64)

    def see(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        """Take a block of rows into account: their numbers, which go up, and their vectors."""
        line = np.ascontiguousarray(np.asarray(vectors, np.float64).T)
        nodes = Nodes.of([], [], line, power=self.power, root=self.power == 2)
        distances, found_rows = nearest_nodes(nodes, self._queries, self.k + 1, rows)
        distances[found_rows == self.query_rows[:, None]] = np.inf
        self.distances, self.rows = merge(
            (self.distances, self.rows), (distances, found_rows), self.k
        )


# -- rows of a table as a search sees them --------------------------------------------------------


def chunks(table: Table, rows: np.ndarray) -> Iterator[Table]:
    """Yield some rows of a table, few at a time."""
    for block in slices(len(rows), 1, 1 << 16):
        yield take_rows(table, rows[block])


class View:
    """The rows of a table as a search by some space sees them: nodes, and the rows of each.

    What missing cells add to squared distances is paid with the values of looked up columns. To
    the coordinates of other blocks it adds two axes: one for those who are found, one for those who
    ask, so that between them it adds up.

    Parameters
    ----------
    table : Table
        The rows.
    space : Space
        What they are compared by.
    unknown : {"centroid", "error"}
        What becomes of values that were not seen in fit.
    root : bool
        Whether the roots of sums are compared: those that differ by less are then equal.

    Attributes
    ----------
    values, lines : list of Space
        The parts whose values are looked up, and those that are compared by their coordinates.
    labels : list of Labels
        The values of the former.
    nodes, copies : Nodes and Copies
        The distinct rows, and which rows each stands for.
    """

    def __init__(
        self, table: Table, space: Space, unknown: Unknown = "centroid", *, root: bool = False
    ) -> None:
        self.table, self.space, self.unknown = table, space, unknown
        self.copies = _distinct(table, space)
        heads = self.copies.heads
        parts = space.parts()
        self.values = [part for part in parts if part.is_looked_up(table)]
        self.lines = [part for part in parts if not part.is_looked_up(table)]
        self.labels = [part.locate(table[part.names[0]], unknown) for part in self.values]
        self._has_gaps = [bool(row_gaps(part, table).any()) for part in self.lines]
        blocks = [self._line(rows).T for rows in chunks(table, heads)] if self.lines else []
        line = np.ascontiguousarray(np.hstack(blocks)) if blocks else np.zeros((0, len(heads)))
        widths = [len(labels) for labels in self.labels]
        root = root and space.root
        nodes = Nodes.of(self.codes(), widths, line, power=space.power, root=root)
        self.nodes = replace(nodes, vectors=self._bounding) if self._is_bounded else nodes

    def codes(self, nodes: Any = slice(None)) -> list[np.ndarray]:
        """Values of (some) nodes in each column that is looked up."""
        rows = self.copies.heads[nodes]
        return [self.table[part.names[0]].codes[rows] for part in self.values]

    @property
    def _is_bounded(self) -> bool:
        """Whether looked up distances are no less than those of points."""
        return all(isinstance(labels, LabelPoints) for labels in self.labels)

    def _bounding(self, nodes: Any) -> np.ndarray:
        """Points of nodes: what lies along no axis of a value or a missing cell."""
        pairs = zip(self.labels, self.codes(nodes), strict=True)
        parts = [points_of(labels)[codes] for labels, codes in pairs]
        return np.hstack([self.nodes.line[:, nodes].T, *parts])

    @property
    def line_widths(self) -> list[int]:
        """Number of coordinates of each block that is not looked up."""
        pairs = zip(self.lines, self._has_gaps, strict=True)
        return [part.width + 2 * has_gaps for part, has_gaps in pairs]

    def _line(self, table: Table, *, asks: bool = False) -> np.ndarray:
        """Coordinates of the blocks that are not looked up, row by row."""
        other_gaps, parts = np.zeros(table.n_rows), [np.zeros((table.n_rows, 0))]
        for part, has_gaps in zip(self.lines, self._has_gaps, strict=True):
            parts.append(part.coordinates(table, unknown=self.unknown))
            if has_gaps:
                parts.append(gap_axes(row_gaps(part, table), asks=asks))
            elif asks:
                other_gaps = other_gaps + row_gaps(part, table)
        if not self.values:  # else it is paid with a value
            parts.append(gap_axes(other_gaps, asks=asks)[:, 1:])
        return np.hstack(parts)

    def line_as_query(self, nodes: np.ndarray) -> np.ndarray:
        """Coordinates of nodes as of rows that ask."""
        ends, order = np.cumsum(self.line_widths), np.arange(len(self.nodes.line))
        for end in ends[np.array(self._has_gaps, bool)]:
            order[[end - 2, end - 1]] = end - 1, end - 2
        return self.nodes.line[:, nodes][order]

    def value_gaps(self) -> np.ndarray:
        """What missing cells of looked up columns add to the distances of each node."""
        pairs = zip(self.labels, self.codes(), strict=True)
        gaps = (labels.gaps[codes] for labels, codes in pairs)
        return np.sum([np.zeros(len(self.nodes)), *gaps], axis=0)

    def vectors(self, step: int = 1) -> Iterator[np.ndarray]:
        """Yield the coordinates of the nodes, or of every so many, some at a time."""
        for rows in chunks(self.table, self.copies.heads[::step]):
            yield self._row_vectors(rows)

    def _row_vectors(self, table: Table) -> np.ndarray:
        """Coordinates of rows as float32, and one at least, with those of their missing cells."""
        parts = []
        for part in self.values:
            column = table[part.names[0]]
            parts.append(part.points(column, self.unknown).astype(np.float32)[column.codes])
        for part in self.lines:
            parts.append(part.coordinates(table, unknown=self.unknown).astype(np.float32))
        vectors = np.hstack([np.zeros((table.n_rows, 0), np.float32), *parts])
        if not vectors.shape[1]:
            vectors = np.zeros((len(vectors), 1), np.float32)
        if not (any(self._has_gaps) or any(labels.gaps.any() for labels in self.labels)):
            return np.ascontiguousarray(vectors)
        gaps = np.sum([row_gaps(part, table) for part in (*self.values, *self.lines)], axis=0)
        return np.hstack([vectors, gap_axes(gaps, asks=False).astype(np.float32)[:, :1]])

    def queries(self, table: Table) -> Queries:
        """Rows of another table as queries."""
        gaps = [row_gaps(part, table) for part in self.values]
        for part, has_gaps in zip(self.lines, self._has_gaps, strict=True):
            if gaps and not has_gaps:
                gaps[0] = gaps[0] + row_gaps(part, table)
        columns = [table[part.names[0]] for part in self.values]
        pairs = zip(self.values, columns, strict=True)
        located = [part.locate(column, self.unknown) for part, column in pairs]
        codes = [column.codes for column in columns]
        lookups = [
            self._lookup(*args) for args in zip(located, codes, self.labels, gaps, strict=True)
        ]
        points = np.ascontiguousarray(self._line(table, asks=True))

        def values(rows: Any) -> np.ndarray:
            none = np.zeros((len(points[rows]), 0))
            return np.hstack([none, *(lookup(rows) for lookup in lookups)])

        def vectors(rows: Any) -> np.ndarray:
            pairs = zip(located, codes, strict=True)
            return np.hstack([points[rows], *(points_of(labels)[c[rows]] for labels, c in pairs)])

        return Queries(values, points, vectors if self._is_bounded else None)

    @staticmethod
    def _lookup(labels: Any, codes: np.ndarray, stored: Labels, gaps: np.ndarray) -> Vectors:
        """What gives the distances of queries to the values of a column.

        They are looked up where many queries are equal, unless a table of them would take more
        than 64 MB. Missing cells are included.
        """
        used = np.flatnonzero(np.bincount(codes, minlength=len(labels)))

        is_tabled = 4 * len(used) <= len(codes) and len(used) * len(stored) <= 1 << 23
        distances = labels.take(used).between(stored) if is_tabled else None
        index = np.zeros(len(labels), np.int64)
        index[used] = np.arange(len(used))

        def between(rows: Any) -> np.ndarray:
            if distances is None:
                return labels.take(codes[rows]).between(stored)
            return np.asarray(distances[index[codes[rows]]])

        if not (gaps.any() or stored.gaps.any()):
            return between
        return lambda rows: between(rows) + gaps[rows][:, None] + stored.gaps


def check_comparable(table: Table, space: Space, unknown: Unknown) -> None:
    """Raise for values that are refused, and for distances that do not add up."""
    for part in space.parts():
        if part.is_looked_up(table):
            none = part.locate(table[part.names[0]], unknown).take(slice(0))
            none.between(none)
            continue
        for rows in chunks(table, np.arange(table.n_rows)):
            part.coordinates(rows, unknown=unknown)


def row_gaps(part: Space, table: Table) -> np.ndarray:
    """What the missing cells of each row add to its squared distances."""
    gaps = total_gaps(part, table)
    return np.zeros(table.n_rows) if gaps is None else gaps


def points_of(labels: Labels) -> np.ndarray:
    """The points of labels that are points."""
    assert isinstance(labels, LabelPoints)
    return labels.points


def gap_axes(gaps: np.ndarray, *, asks: bool) -> np.ndarray:
    """Two coordinates: what missing cells add to those found, and to those who ask."""
    out = np.zeros((len(gaps), 2))
    out[:, int(asks)] = np.sqrt(gaps)
    return out


def _distinct(table: Table, space: Space) -> Copies:
    """Which rows are equal in a space; nodes are in the order of their first rows."""
    everyone, names = np.arange(table.n_rows), list(space.names)
    if not names or any(name.startswith(HIDDEN) for name in names):
        return Copies.of(everyone, everyone)  # vectors hardly ever repeat
    cells = [(table.schema[name], table[name]) for name in names]
    codes = [data.codes if c.has_values and not c.is_set else data.ranks() for c, data in cells]
    first, inverse = distinct_rows(codes)
    order = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    return Copies.of(number[inverse], first[order])
