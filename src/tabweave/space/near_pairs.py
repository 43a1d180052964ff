"""Near pairs: all pairs of rows within a distance of each other, without a matrix of all pairs.

A view of rows and a limit come in; pairs of nodes, then of rows, and what adds up between them go
out. Nodes are compared in full only where neither a column alone nor a lower bound by products of
rounded coordinates rules them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components

from tabweave.columns.table import distinct_rows, take_rows
from tabweave.columns.vocabulary import slices
from tabweave.gpu import arrays as gpu
from tabweave.space.points import summed_differences
from tabweave.space.scan import MAX_FLOAT32_COORDINATE, Copies, Hits, View, row_gaps
from tabweave.space.space import LabelPoints, Labels

# How far below zero rounding may bring a sum of distances that are not negative.
SUM_ROUNDING = 1e-9
RECTANGLE_ROWS = 256  # Nodes that are compared with those after them at a time.

Point = tuple[Sequence[np.ndarray], np.ndarray]  # the values of nodes in each column, and which


def row_pairs(view: View, threshold: float, allowed: np.ndarray | None, max_pairs: int) -> Hits:
    """Pairs of (allowed) rows, the earlier row first, and their distances, nearest first.

    They are copies of one node, or rows of two near ones; more than ``max_pairs`` are refused.
    """
    copies, limit = view.copies, view.space.limit(threshold)
    nodes = np.flatnonzero(copies.first(allowed) >= 0)
    low, high, summed = near_pairs(view, limit, nodes)
    between_copies = copy_distances(view, nodes)
    is_near = between_copies <= limit
    low, high = np.concatenate([nodes[is_near], low]), np.concatenate([nodes[is_near], high])
    summed = np.concatenate([between_copies[is_near], np.maximum(summed, 0)])
    sizes = copies.sizes(allowed)
    n_pairs = np.where(low == high, sizes[low] * (sizes[low] - 1) // 2, sizes[low] * sizes[high])
    if n_pairs.sum() > max_pairs:
        raise ValueError(
            f"{n_pairs.sum():,} pairs of rows are within {threshold:g}, more than "
            f"max_pairs={max_pairs:,}; lower the threshold, filter the rows with where, or raise "
            "max_pairs"
        )
    one, other, pair = _expanded_pairs(copies, low, high, allowed)
    distances = view.space.rooted(summed[pair])
    order = np.lexsort((other, one, distances))
    return one[order], other[order], distances[order]


def near_pairs(view: View, limit: float, nodes: np.ndarray) -> Hits:
    """Pairs of some nodes that are at most ``limit`` apart, exactly.

    Columns whose different values alone are farther apart cut the nodes into groups; within them
    those are compared that are near along the coordinate that varies most, and that rounded
    coordinates do not rule out.
    """
    groups, none_negative = _groups(view, limit, nodes)
    along = _widest(view.nodes.line[:, nodes])
    order = np.lexsort((along, groups))
    reach = _reach(groups[order], along[order], limit ** (1 / view.space.power))
    order = nodes[order]
    parts = [(nodes[:0], nodes[:0], np.zeros(0))]
    place = np.arange(len(order))
    n_columns = float((reach - place).mean()) if len(place) else 0.0  # of a mean rectangle
    is_large = RECTANGLE_ROWS * n_columns >= gpu.MIN_DEVICE_PAIRS
    device = gpu.device() if is_large else None  # small ones are sooner done than sent
    bound = LowerBound.of_view(view, device) if none_negative else None
    for rows, columns in _rectangles(reach):
        left, right = place[rows], place[columns]
        if bound is not None:
            one, other = ((view.codes(order[side]), order[side]) for side in (left, right))
            near = bound.near(one, other, limit)
            near &= bound.xp.asarray(left)[:, None] < bound.xp.asarray(right)
            rows_near, columns_near = (gpu.on_host(near.any(axis=axis)) for axis in (1, 0))
            left, right = left[rows_near], right[columns_near]
        summed = node_distances(view, order[left], order[right])
        i, j = np.nonzero((summed <= limit) & (left[:, None] < right))
        parts.append((order[left[i]], order[right[j]], summed[i, j]))
    low, high, summed = (np.concatenate(part) for part in zip(*parts, strict=True))
    return low, high, summed


def node_distances(view: View, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """What adds up between nodes and others, from the labels that they have."""
    line, power = view.nodes.line, view.space.power
    out = summed_differences(view.line_as_query(left).T, line[:, right].T, power)
    codes = zip(view.codes(left), view.codes(right), strict=True)
    for labels, both in zip(view.labels, codes, strict=True):
        (a, i), (b, j) = (np.unique(side, return_inverse=True) for side in both)
        one, other = labels.take(a), labels.take(b)
        out += (one.between(other) + one.gaps[:, None] + other.gaps)[i][:, j]
    return out


def copy_distances(view: View, nodes: np.ndarray) -> np.ndarray:
    """What adds up between each of some nodes and another row that is equal to it."""
    heads = take_rows(view.table, view.copies.heads[nodes])
    out = 2 * view.value_gaps()[nodes]
    for part in view.lines:
        out += 2 * row_gaps(part, heads)
    for labels, codes in zip(view.labels, view.codes(nodes), strict=True):
        used, index = np.unique(codes, return_inverse=True)
        out += labels.take(used).opposite(labels.take(used))[index]
    return out


def _groups(view: View, limit: float, nodes: np.ndarray) -> tuple[np.ndarray, bool]:
    """A number for each of some nodes: pairs that are near have the same.

    And whether no column brings two nodes nearer.
    """
    linked = [connected_labels(labels, limit) for labels in view.labels]
    numbers = [labels for labels in linked if labels is not None]
    none_negative = len(numbers) == len(linked)
    if not numbers or not none_negative or not len(nodes):
        return np.zeros(len(nodes), np.int64), none_negative
    groups = [labels[codes] for labels, codes in zip(numbers, view.codes(nodes), strict=True)]
    return distinct_rows(groups)[1], none_negative


def connected_labels(labels: Labels, limit: float) -> np.ndarray | None:
    """Numbers of labels: the same if chains of labels link them within ``limit``.

    Rows whose labels differ in it are farther apart, since nothing that adds up is negative;
    None where something is. Labels little farther apart may be linked, too.
    """
    if isinstance(labels, LabelPoints):
        return LowerBound([labels], np.zeros((0, len(labels))), labels.power).linked(limit)
    links = []
    for block in slices(len(labels), 1, 256):
        between = labels.take(block).between(labels)
        if (between < -SUM_ROUNDING).any():
            return None
        links.append(csr_array(between <= limit))
    return connected_components(vstack(links), directed=False)[1]


class LowerBound:
    """What adds up between nodes at least, by products of rounded coordinates.

    ``|x - y|² = |x|² + |y|² - 2 xy``, less what rounding may add, and what values have of their own
    where they differ. A coordinate that only one label has is its own. Sums of absolute
    differences are not below the root of the squared ones.

    Parameters
    ----------
    columns : sequence of Labels
        The labels of each column that is looked up; those that are no points are left out.
    line : ndarray of shape (coordinates, nodes)
        What is not looked up.
    power : {1, 2}
        What adds up.
    gaps : ndarray, optional
        What missing cells add to the squared distances of each node.
    device : Cuda, optional
        Where products are computed; if not given, on the CPU.
    """

    def __init__(
        self,
        columns: Sequence[Labels],
        line: np.ndarray,
        power: int,
        gaps: np.ndarray | None = None,
        device: Any = None,
    ) -> None:
        self.power = power
        self.gaps = gaps
        points = [(a, p) for a, p in enumerate(columns) if isinstance(p, LabelPoints)]
        parts = [(a, UniqueParts.of(p)) for a, p in points]
        self.n_left_out = len(columns) - len(parts)
        sources = [line, *(part.points for _, part in parts)]
        largest = max(max(x.max(initial=0.0), -x.min(initial=0.0)) for x in sources)
        self.dtype = np.float32 if largest < MAX_FLOAT32_COORDINATE else np.float64
        width = len(line) + sum(part.points.shape[1] for _, part in parts)
        self.share = 1 - (width + len(parts) + 8) * 2.0**-23  # twice what rounding may change
        self.xp: Any = np if device is None else device.xp
        self.line = self.xp.asarray(line)
        self.columns = [(a, p.moved(self.xp, self.dtype)) for a, p in parts]

    @classmethod
    def of_view(cls, view: View, device: Any = None) -> LowerBound:
        """Rule out pairs of nodes by the columns that are compared by coordinates."""
        return cls(view.labels, view.nodes.line, view.space.power, view.value_gaps(), device)

    def near(self, left: Point, right: Point, limit: float) -> np.ndarray:
        """Which pairs are perhaps within a limit: all that are, and few others."""
        left, right = (self._moved(point) for point in (left, right))
        x, y = self._coordinates(left), self._coordinates(right)
        out = x @ y.T
        out *= -2
        for points, shape in ((x, (-1, 1)), (y, (1, -1))):
            squares = self.share * self.xp.einsum("ij,ij->i", points, points)
            out += squares.astype(self.dtype).reshape(shape)
        for a, parts in self.columns:
            if bool(parts.own.any()):
                i, j = left[0][a], right[0][a]
                unique = (self.share * parts.own).astype(self.dtype)
                between = unique[i][:, None] + unique[j]
                between *= parts.which[i][:, None] != parts.which[j]
                out += between
        if self.gaps is not None and self.gaps.any():
            gaps = self.share * self.xp.asarray(self.gaps)
            out += gaps[left[1]][:, None].astype(self.dtype)
            out += gaps[right[1]].astype(self.dtype)
        farthest = self._squared_limit(limit) + self.n_left_out * SUM_ROUNDING
        return ~(out > farthest)  # so that what overflows is near

    def _squared_limit(self, limit: float) -> float:
        return float(limit ** (2 / self.power) * (1 + 1e-6))

    def _moved(self, point: Point) -> Point:
        codes, nodes = point
        return [self.xp.asarray(column) for column in codes], self.xp.asarray(nodes)

    def _coordinates(self, point: Point) -> np.ndarray:
        codes, nodes = point
        line = self.line[:, nodes].T.astype(self.dtype)
        return self.xp.hstack([line, *(parts.points[codes[a]] for a, parts in self.columns)])

    def linked(self, limit: float) -> np.ndarray:
        """A number for each label of the one column: the same if chains may link them."""
        ((_, parts),) = self.columns
        own, which, points = (gpu.on_host(x) for x in (parts.own, parts.which, parts.points))
        values, out = np.unique(which, return_inverse=True)
        farthest = self._squared_limit(limit)
        labels = np.flatnonzero(own + own.min(initial=np.inf) <= farthest)
        along = _widest(points[labels].T.astype(np.float64))
        order = np.argsort(along, kind="stable")
        labels, groups = labels[order], np.zeros(len(labels), np.int64)
        n_groups = len(values)
        for rows, columns in _rectangles(_reach(groups, along[order], np.sqrt(farthest))):
            left, right = labels[rows], labels[columns]
            if n_groups == 1:
                break
            near = gpu.on_host(self.near(([left], left), ([right], right), limit))
            near &= out[left][:, None] != out[right]
            i, j = np.nonzero(near)
            if len(i):
                ends = out[left[i]], out[right[j]]
                links = csr_array((np.ones(len(i), bool), ends), (n_groups,) * 2)
                n_groups, number = connected_components(links, directed=False)
                out = number[out]
        return out


@dataclass(frozen=True, eq=False)
class UniqueParts:
    """Labels as coordinates, the square of what each has of its own, and whose that is."""

    points: np.ndarray
    own: np.ndarray
    which: np.ndarray

    def moved(self, xp: Any, dtype: Any) -> UniqueParts:
        """The same as arrays of a library, coordinates of a type."""
        return UniqueParts(
            xp.asarray(self.points, dtype), xp.asarray(self.own), xp.asarray(self.which)
        )

    @classmethod
    def of(cls, labels: LabelPoints) -> UniqueParts:
        """Count coordinates that no other label has as a label's own."""
        points, squares, values = labels.points, np.zeros(len(labels)), np.arange(len(labels))
        if labels.lengths is not None and labels.values is not None:
            squares, values = labels.lengths**2, labels.values
        is_unique = np.count_nonzero(points, axis=0) == 1
        for block in slices(len(points), points.shape[1], 1 << 22) if is_unique.any() else ():
            squares[block] += np.square(points[block][:, is_unique]).sum(axis=1)
        return cls(points[:, ~is_unique] if is_unique.any() else points, squares, values)


def _rectangles(reach: np.ndarray) -> Iterator[tuple[slice, slice]]:
    """Yield sorted nodes, few at a time, with the later ones that they may be near to."""
    n_columns = 1 << 14
    for rows in slices(len(reach), 1, RECTANGLE_ROWS):
        for start in range(rows.start, int(reach[rows].max()), n_columns):
            yield rows, slice(start, min(start + n_columns, int(reach[rows].max())))


def _reach(groups: np.ndarray, along: np.ndarray, width: float) -> np.ndarray:
    """Where the nodes end that a sorted node may be near to."""
    starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    ends = np.append(starts[1:], len(groups))
    out = np.repeat(ends, ends - starts)
    slack = 1e-9 * (1 + np.abs(along).max(initial=0.0))  # of rounding
    for begin, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end - begin > 16:  # a small group is compared whole
            group = along[begin:end]
            out[begin:end] = begin + np.searchsorted(group, group + width + slack, side="right")
    return out


def _widest(line: np.ndarray) -> np.ndarray:
    """Coordinate that varies most; zeros if there is none."""
    return line[np.argmax(line.var(axis=1))] if line.size else np.zeros(line.shape[1])


def _expanded_pairs(
    copies: Copies, low: np.ndarray, high: np.ndarray, allowed: np.ndarray | None
) -> Hits:
    """Pairs of rows of pairs of nodes, the earlier row first, and whose pair each is."""
    sizes = copies.sizes(allowed)
    members, starts = copies.rows_of(np.arange(len(sizes)), allowed)[0], np.cumsum(sizes) - sizes
    grid = sizes[low] * sizes[high]
    pair = np.repeat(np.arange(len(low)), grid)
    inside = np.arange(len(pair)) - np.repeat(np.cumsum(grid) - grid, grid)
    i, j = np.divmod(inside, sizes[high][pair])
    is_first = (low != high)[pair] | (i < j)
    pair, i, j = pair[is_first], i[is_first], j[is_first]
    one, other = members[starts[low[pair]] + i], members[starts[high[pair]] + j]
    return np.minimum(one, other), np.maximum(one, other), pair
