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
from tabweave.counts.counting import group_columns, pack_columns
from tabweave.gpu import arrays as gpu
from tabweave.space import kernels
from tabweave.space.space import HIDDEN, LabelPoints, Labels, Space, total_gaps

# Of a coordinate up to here float32 can hold the square, exactly enough.
MAX_FLOAT32_COORDINATE = 1e15
# Joint values of columns that are looked up together: their distances (16 KB) stay in the first
# cache. It decides in which order columns are added.
MAX_JOINT = 2048

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
    blocks : tuple of int, optional
        Where the coordinates of several numbers are one column's: how many each column has.
    points : tuple of ndarray, optional
        Points of the values of each column that is looked up, no farther from each other than what
        adds up.
    """

    widths: np.ndarray
    groups: np.ndarray
    codes: np.ndarray
    line: np.ndarray
    power: int = 2
    root: bool = False
    blocks: tuple[int, ...] | None = None
    points: Sequence[np.ndarray] | None = None

    @classmethod
    def of(
        cls,
        codes: Sequence[np.ndarray],
        widths: Sequence[int],
        line: np.ndarray,
        *,
        power: int = 2,
        root: bool = False,
        max_joint: int = MAX_JOINT,
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
            Joint values of a group, at most.
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
    def cells(self) -> Cells | None:
        """The nodes by the cells of each column that they are in; None where columns are many."""
        return Cells.of(self)

    @cached_property
    def on_device(self) -> gpu.DeviceNodes | None:
        """The nodes on the device that was chosen; None where the CPU has to search."""
        return gpu.DeviceNodes.of(gpu.device(), self)

    @cached_property
    def device_blocks(self) -> list[slice]:
        """Runs of nodes of which each fits the memory of the device."""
        return gpu.node_blocks(gpu.device(), self)

    def block(self, nodes: slice) -> Nodes:
        """A run of the nodes, without a copy."""
        return replace(self, codes=self.codes[:, nodes], line=self.line[:, nodes])

    def take(self, nodes: np.ndarray) -> Nodes:
        """Some of the nodes, close together in memory."""
        codes, line = (np.take(part, nodes, axis=1) for part in (self.codes, self.line))
        return replace(self, codes=codes, line=line)

    def column_codes(self) -> list[np.ndarray]:
        """The values of nodes, column by column."""
        out: list[Any] = [None] * len(self.widths)
        for group, joint in zip(self.groups, self.codes, strict=True):
            for a in group[group >= 0][::-1]:
                joint, out[a] = np.divmod(joint, joint.dtype.type(self.widths[a]))
        return out

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
class Boxes:
    """Points in boxes of near ones.

    Attributes
    ----------
    numbers : ndarray
        The box of each point.
    low, high : ndarray of shape (boxes, coordinates)
        The ends of each box.
    axes, cuts : ndarray
        The tree of cuts that leads to boxes: what is below a cut along an axis goes left.
    leaves : ndarray
        The box at each end of the tree.
    """

    numbers: np.ndarray
    low: np.ndarray
    high: np.ndarray
    axes: np.ndarray
    cuts: np.ndarray
    leaves: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray, n_boxes: int) -> Boxes:
        """Halve points along the coordinate in which they vary most, up to so many boxes."""
        depth = max(n_boxes, 1).bit_length() - 1
        n_sampled = max(1 << 12, 16 * n_boxes)
        axes, cuts = median_tree(points[:: max(1, len(points) // n_sampled)], depth)
        numbers = np.empty(len(points), np.int64)
        kernels.find_boxes(points, axes, cuts, numbers)
        is_used = np.bincount(numbers, minlength=1 << depth) > 0
        leaves = np.maximum(np.cumsum(is_used) - 1, 0)
        numbers = leaves[numbers]
        low = np.full((np.count_nonzero(is_used), points.shape[1]), np.inf)
        high = -low
        kernels.widen_boxes(points, numbers, low, high)
        return cls(numbers, low, high, axes, cuts, leaves)

    def __len__(self) -> int:
        return len(self.low)

    def find(self, points: np.ndarray) -> np.ndarray:
        """The boxes that the tree leads other points to."""
        out = np.empty(len(points), np.int64)
        kernels.find_boxes(points, self.axes, self.cuts, out)
        return self.leaves[out]


def median_tree(sample: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Axes and cuts that halve points again and again; the halves of i are 2i + 1 and 2i + 2."""
    axes, cuts = np.zeros((1 << depth) - 1, np.int64), np.full((1 << depth) - 1, np.inf)
    parts = [sample]
    for i in range(len(axes)):
        points, parts_below = parts[i], (parts[i], parts[i][:0])
        if len(points) > 1:
            with np.errstate(over="ignore", invalid="ignore"):
                axes[i] = np.argmax(points.var(axis=0))
            along = points[:, axes[i]]
            cuts[i] = np.partition(along, len(along) // 2)[len(along) // 2]
            if not (along < cuts[i]).any():  # half of them are the smallest
                cuts[i] = np.nextafter(cuts[i], np.inf)
            parts_below = points[along < cuts[i]], points[along >= cuts[i]]
        parts += parts_below
    return axes, cuts


@dataclass(frozen=True, eq=False)
class Directions:
    """The few directions in which nodes differ most.

    Attributes
    ----------
    centre, axes : ndarray of shape (coordinates,) and (coordinates, directions)
        Where directions begin, and where they lead; they are orthogonal, of length 1.
    along : ndarray of shape (nodes, directions)
        The nodes' coordinates along the axes.
    largest : float
        The largest coordinate of a node, in size.
    """

    centre: np.ndarray
    axes: np.ndarray
    along: np.ndarray
    largest: float

    @classmethod
    def of(cls, nodes: Nodes, codes: Sequence[np.ndarray]) -> Directions | None:
        """Principal axes of a sample, and all nodes along them.

        None where distances are not those of points, or these are too wide or far to be squared.
        """
        if nodes.power == 1 or nodes.points is None:
            return None
        max_width, n_directions = 512, 8
        parts, line = nodes.points, nodes.line
        width = sum(part.shape[1] for part in parts) + len(line)
        largest = max((float(np.abs(part).max(initial=0)) for part in (line, *parts)), default=0)
        if not (0 < width <= max_width and largest < MAX_FLOAT32_COORDINATE):
            return None
        step = max(1, len(nodes) >> 14)
        columns = [part[c[::step]] for part, c in zip(parts, codes, strict=True)]
        sample = np.hstack([line[:, ::step].T, *columns])
        centre = sample.mean(axis=0)
        sample -= centre
        axes = eigh(sample.T @ sample)[1][:, -n_directions:]
        along, begin = line.T @ axes[: len(line)] - centre @ axes, len(line)
        for part, c in zip(parts, codes, strict=True):
            along += (part @ axes[begin : begin + part.shape[1]])[c]
            begin += part.shape[1]
        return cls(centre, axes, along, largest)

    def near(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vectors along the axes, and what rounding may take from a difference to a node."""
        width, n_directions = self.axes.shape
        with np.errstate(over="ignore", invalid="ignore"):  # far from everything, all are compared
            along = vectors @ self.axes - self.centre @ self.axes
            size = np.abs(vectors).max(axis=1) + self.largest
            return along, 1e-13 * width * n_directions**0.5 * size


@dataclass(frozen=True, eq=False)
class Cells:
    """Nodes by the cells that they are in, near ones side by side.

    A cell is a value of a column or some near ones, or a stretch of a column's numbers. What a
    query pays for a column is no less than what it pays for the nearest point of the cell. So 64
    queries at a time look up, in whole numbers of two bytes, what each node costs at least, and
    compare in full only where that is not too much. Answers stay what they are.

    Attributes
    ----------
    order : ndarray
        The nodes, box by box.
    directions, tree : Directions and Boxes, or None
        Those in which the nodes differ most, and boxes in these; None where boxes are any nodes.
    nodes, cells, boxes : tuple
        What :func:`.kernels.celled_scan` reads.
    """

    order: np.ndarray
    directions: Directions | None
    tree: Boxes | None
    nodes: tuple[Any, ...]
    cells: tuple[Any, ...]
    boxes: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, nodes: Nodes, box_size: int = 128) -> Cells | None:
        """Cut columns into cells, and nodes into boxes.

        None for few nodes, and for so many columns that lookups of cells do not pay.
        """
        codes, n = nodes.column_codes(), len(nodes)
        if n < 1 << 13 or not 0 < len(codes) + len(nodes.line) <= 1 << 10:
            return None
        cut = cells_of(nodes, codes)
        if cut is None:
            return None
        directions = Directions.of(nodes, codes)
        if directions is None:
            order, tree = np.arange(n), None
            edges = np.append(np.arange(0, n, box_size), n)
            low = np.full((len(edges) - 1, 1), -np.inf)
            boxes = low, -low, edges
        else:
            tree = Boxes.of(directions.along, n // box_size)
            order = np.argsort(tree.numbers, kind="stable")
            edges = np.concatenate([[0], np.cumsum(np.bincount(tree.numbers))])
            boxes = tree.low, tree.high, edges
        joint, *cells = cut
        ends = np.cumsum((nodes.groups >= 0).sum(axis=1)) - 1
        columns = nodes.groups[nodes.groups >= 0]
        is_last = np.isin(np.arange(len(columns)), ends)
        wide = np.uint16 if nodes.widths.max(initial=0) <= 1 << 16 else np.uint32
        values = np.empty((n, len(columns)), wide)
        for j, a in enumerate(columns):
            values[:, j] = codes[a][order]
        offsets = np.concatenate([[0], np.cumsum(nodes.widths)]).astype(np.int64)
        line = np.ascontiguousarray(nodes.line.T[order])
        arrays = offsets, columns, is_last, values, line, nodes.power, nodes.root
        return cls(order, directions, tree, arrays, (joint[order], *cells), boxes)

    def search(self, queries: Queries, k: int, first: np.ndarray) -> Ranking:
        """The k nearest nodes of each query, as :func:`nearest_nodes` finds them."""
        named, n = first[self.order], len(queries)
        along, slack, home = np.zeros((n, 1)), np.zeros(n), np.zeros(n, np.int64)
        if self.directions is not None and self.tree is not None and queries.vectors is not None:
            along, slack = self.directions.near(queries.vectors(slice(None)))
            home = self.tree.find(along)
        order = np.argsort(home, kind="stable")  # near ones look up cells side by side
        distances, rows = np.empty((n, k)), np.empty((n, k), np.int64)

        def search(block: slice) -> None:
            part = order[block]
            near = along[part], slack[part], home[part]
            out = np.empty((len(part), k)), np.empty((len(part), k), np.int64)
            arrays = queries.values(part), queries.points[part]
            kernels.celled_scan(arrays, near, self.nodes, self.cells, self.boxes, named, *out)
            distances[part], rows[part] = out

        in_threads(search, slices(n, 1, kernels.LANES))
        return distances, rows


def cells_of(nodes: Nodes, codes: Sequence[np.ndarray]) -> tuple[Any, ...] | None:
    """What :func:`.kernels.celled_scan` reads of cells; None where columns are too many.

    Columns of up to 256 values have a cell for each, others one for some near ones, and numbers
    64; numbers of several coordinates that 64 cells tell badly apart are cut coordinate by
    coordinate.
    """
    max_groups, n_cells = 64, 64
    points = nodes.points or [None] * len(codes)
    value_cells = [cells_of_values(*pair) for pair in zip(nodes.widths, points, strict=True)]
    line = np.ascontiguousarray(nodes.line.T)
    edges = np.concatenate(
        [[0], np.cumsum((1,) * len(nodes.line) if nodes.blocks is None else nodes.blocks)]
    ).astype(np.int64)
    spans = [slice(*pair) for pair in pairwise(edges)]
    cut = in_threads(lambda span: Boxes.of(np.ascontiguousarray(line[:, span]), n_cells), spans)
    sizes = [int(cell.max(initial=0)) + 1 for cell in value_cells] + [len(boxes) for boxes in cut]
    groups = pack_columns(sizes, kernels.CELLS)
    if len(groups) > max_groups:
        return None
    numbers = [cell[c] for cell, c in zip(value_cells, codes, strict=True)]
    numbers += [boxes.numbers for boxes in cut]
    joint = np.zeros((len(nodes), -(-len(groups) // 4) * 4), np.uint8)  # added up in fours
    table = np.full((len(groups), max(map(len, groups))), -1, np.int64)
    for g, group in enumerate(groups):
        table[g, : len(group)] = group
        code = np.zeros(len(nodes), np.int64)
        for a in group:
            code = code * sizes[a] + numbers[a]
        joint[:, g] = code
    low, high = (
        np.concatenate([np.zeros(0), *(getattr(boxes, end).ravel() for boxes in cut)])
        for end in ("low", "high")
    )
    value_cells = np.concatenate([np.zeros(0, np.int64), *value_cells])
    return joint, table, np.array(sizes), value_cells, edges, low, high


def cells_of_values(n_values: int, points: np.ndarray | None) -> np.ndarray:
    """The cell of each value of a column: its own, or one for some near values."""
    if n_values <= kernels.CELLS:
        return np.arange(n_values)
    if points is None or not points.shape[1]:
        return np.arange(n_values) * kernels.CELLS // n_values
    return Boxes.of(points, kernels.CELLS).numbers


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
    is_large = len(queries) * len(nodes) >= gpu.MIN_DEVICE_PAIRS and k <= gpu.CAPACITY // 4
    if is_large and gpu.device() is not None:
        ranking = _nearest_on_device(nodes, queries, k, first)
        if ranking is not None:
            return ranking
    return _nearest_on_cpu(nodes, queries, k, first, is_part=is_part)


def _nearest_on_device(nodes: Nodes, queries: Queries, k: int, first: np.ndarray) -> Ranking | None:
    """The k nearest nodes, found on a device; None where the CPU has to search.

    Nodes that do not fit its memory go there in blocks. What ties fill is left to the CPU.
    """
    device, blocks = gpu.device(), nodes.device_blocks
    is_resident = len(blocks) == 1
    is_number = is_resident and (first == np.arange(len(first))).all()
    ranking: Ranking | None = None
    unfinished = np.zeros(len(queries), bool)
    for block in blocks:
        part = nodes.on_device if is_resident else gpu.DeviceNodes.of(device, nodes.block(block))
        if part is None:
            return None
        named = None if is_number else first[block]
        kth = None if ranking is None else ranking[0][:, -1]
        *nearest, left = gpu.nearest(device, part, queries.values, queries.points, k, named, kth)
        del part  # before the next one comes
        answer = nearest[0], nearest[1]
        ranking = answer if ranking is None else merge(ranking, answer, k)
        unfinished |= left
    assert ranking is not None
    left = np.flatnonzero(unfinished)
    if len(left):
        ranking[0][left], ranking[1][left] = _nearest_on_cpu(nodes, queries.take(left), k, first)
    return ranking


def _nearest_on_cpu(
    nodes: Nodes, queries: Queries, k: int, first: np.ndarray, *, is_part: bool = False
) -> Ranking:
    """The k nearest nodes, by a compiled loop over all of them."""
    arrays = nodes.arrays()
    # Cells and a sketch pay for many queries, or if they are there.
    if (
        not is_part
        and (len(queries) >= 256 or "cells" in nodes.__dict__)
        and nodes.cells is not None
    ):
        return nodes.cells.search(queries, k, first)
    is_sketched = not is_part and (len(queries) >= 64 or "sketch" in nodes.__dict__)
    sketch = nodes.sketch if is_sketched else None
    if sketch is None:
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
    copies : Copies, optional
        Which rows are equal, if that is known.

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
        self,
        table: Table,
        space: Space,
        unknown: Unknown = "centroid",
        *,
        root: bool = False,
        copies: Copies | None = None,
    ) -> None:
        self.table, self.space, self.unknown = table, space, unknown
        self.copies = _distinct(table, space) if copies is None else copies
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
        points = [points_of(labels) for labels in self.labels] if self._is_bounded else None
        blocks = [*self.line_widths, *[1] * (len(line) - sum(self.line_widths))]
        self.nodes = replace(nodes, blocks=tuple(blocks), points=points)

    def codes(self, nodes: Any = slice(None)) -> list[np.ndarray]:
        """Values of (some) nodes in each column that is looked up."""
        rows = self.copies.heads[nodes]
        return [self.table[part.names[0]].codes[rows] for part in self.values]

    @property
    def _is_bounded(self) -> bool:
        """Whether looked up distances are no less than those of points."""
        return all(isinstance(labels, LabelPoints) for labels in self.labels)

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

        Those of values that several queries have are looked up, of the most frequent ones where
        more would take over 64 MB. Missing cells are included.
        """
        counts = np.bincount(codes, minlength=len(labels))
        n_tabled = min(np.count_nonzero(counts > 1), (1 << 23) // max(len(stored), 1))
        tabled = np.sort(np.argsort(-counts, kind="stable")[:n_tabled])
        distances = labels.take(tabled).between(stored)
        index = np.full(len(labels), -1)
        index[tabled] = np.arange(n_tabled)

        def between(rows: Any) -> np.ndarray:
            line = index[codes[rows]]
            single = np.flatnonzero(line < 0)
            if not len(single):
                return np.asarray(distances[line])
            if len(single) == len(line):
                return labels.take(codes[rows]).between(stored)
            out = np.empty((len(line), len(stored)))
            out[line >= 0] = distances[line[line >= 0]]
            out[single] = labels.take(codes[rows][single]).between(stored)
            return out

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
