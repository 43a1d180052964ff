"""Space: what a search compares rows by, read from the blocks of an embedder; and rows in it.

Comes in: any fitted embedder. Goes out: blocks whose distances (squared, or plain for L1 and
measures) add up. A block is of one column where the embedder allows it, so a search over some
columns is a space of fewer blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components

from tabweave.columns.column import Schema
from tabweave.columns.nominal import Codes
from tabweave.columns.table import Table, distinct_rows, take_rows
from tabweave.columns.vocabulary import Unknown, slices
from tabweave.space.block import (
    Apart,
    Block,
    Step,
    Writer,
    added,
    summed_differences,
    total_gaps,
)
from tabweave.space.scan import Copies, Hits, Nodes, Queries

_CHUNK = 1 << 16  # rows whose coordinates are computed at a time
_LABELS = 256  # labels of a column compared with all others at a time
_BLOCK, _ACROSS = 256, 1 << 14  # nodes compared at a time with as many that they may be near to
_TABLE = 1 << 23  # distances of values that are kept while rows are looked for: 64 MB a column
_EQUAL = 4  # rows for each value, from which on they are
_SMALL = 16  # nodes of a group that is compared whole
_ENTRIES = 1 << 22  # coordinates of labels worked on at a time
_LARGE = 1e15  # coordinates whose squares are exact enough, and finite, as float32
_ROUNDING = 1e-9  # below zero that nothing counts as negative
HIDDEN = "\0"  # how the names of columns begin that hold the vectors of other embedders


@dataclass(frozen=True, eq=False)
class Space:
    """Blocks whose distances add up to the ``power`` of an L1 or L2 distance, or its root.

    Attributes
    ----------
    values : list of Block
        Blocks of one column of single values, which are compared by lookup.
    lines : list of Block
        The others, which are compared by their coordinates.
    power, root
        As in :class:`~tabweave.space.block.Block`.
    own : bool
        Whether values are compared as their blocks do, or by the power of their coordinates.
    unknown : {"centroid", "error"}
        What becomes of values that the embedder has not seen.
    """

    values: list[Block]
    lines: list[Block]
    power: int
    root: bool
    own: bool = True
    unknown: Unknown = "centroid"

    def only(self, names: Sequence[str]) -> Space:
        """Return the space of some columns."""
        values = [block for block in self.values if block.names[0] in names]
        lines = [kept for block in self.lines if (kept := block.only(names)) is not None]
        return replace(self, values=values, lines=lines)

    def check(self, table: Table) -> None:
        """Raise for values that the embedder refuses, and for distances that do not add up."""
        for block in self.values:
            found = self.locate(block, table[block.names[0]])
            self.between(block, found[:0], found[:0])
        for rows in chunks(table, np.arange(table.n_rows)) if self.lines else ():
            self.line(rows)

    def locate(self, block: Block, column: Any) -> np.ndarray:
        """Return what :meth:`between` compares, for each label of a column."""
        if self.own:
            return block.locate(column, self.unknown)
        return block.points(column, self.unknown)[:-1]

    def between(self, block: Block, asked: np.ndarray, stored: np.ndarray) -> np.ndarray:
        """Return what adds up between located labels."""
        if self.own:
            return block.between(asked, stored)
        return summed_differences(asked, stored, self.power)

    def gaps(self, block: Block, table: Table) -> np.ndarray:
        """Return what the missing cells of each row add to its squared distances."""
        found = total_gaps(block, table) if self.own else None
        return np.zeros(table.n_rows) if found is None else found

    def line(self, table: Table) -> np.ndarray:
        """Return the coordinates of the blocks that are not looked up, row by row."""
        found = [block.coordinates(table, unknown=self.unknown) for block in self.lines]
        return np.hstack([np.zeros((table.n_rows, 0)), *found])

    def distances(self, summed: np.ndarray) -> np.ndarray:
        """Return the distances for what adds up between rows."""
        return np.sqrt(np.maximum(summed, 0)) if self.root else summed

    def vectors(self, table: Table) -> np.ndarray:
        """Return all coordinates as float32, and one at least."""
        found = []
        for block in self.values:
            column = table[block.names[0]]
            points = block.points(column, self.unknown).astype(np.float32)
            found.append(points[column.codes])
        out = np.hstack([*found, self.line(table).astype(np.float32)])
        return np.ascontiguousarray(out) if out.shape[1] else np.zeros((len(out), 1), np.float32)

    def apart(self, block: Block, located: np.ndarray) -> Apart | None:
        """Return what :meth:`between` is made of, if that is coordinates."""
        return block.apart(located) if self.own else Block.apart(block, located)

    def kin(self, block: Block, located: np.ndarray, limit: float) -> np.ndarray | None:
        """Return a number for each label: the same if chains of labels link them within ``limit``.

        Rows whose labels differ in it are farther apart, since nothing that adds up is negative;
        None where something is. Labels little farther apart may be linked, too.
        """
        apart = self.apart(block, located)
        if apart is not None:
            return Bound([apart], np.zeros((0, len(located))), self.power).linked(limit)
        links = []
        for begin in range(0, len(located), _LABELS):
            between = self.between(block, located[begin : begin + _LABELS], located)
            if (between < -_ROUNDING).any():
                return None
            links.append(csr_array(between <= limit))
        return connected_components(vstack(links), directed=False)[1]

    def inertia(self, table: Table) -> float:
        """Return the mean of what adds up between rows and their mean, of Euclidean spaces."""
        total = float(self.line(table).var(axis=0).sum())
        for block in self.values:
            column = table[block.names[0]]
            own = self.locate(block, column)[column.codes]
            total += float(self.between(block, own, own).mean()) / 2
        return total

    def explain(self, a: Table, b: Table) -> dict[str, float]:
        """Return each column's share in the distance of two rows (squared if it is a root)."""
        power = None if self.own else self.power
        blocks = (*self.values, *self.lines)
        shares = added(block.shares(a, b, power=power, unknown=self.unknown) for block in blocks)
        return {name: float(share[0]) for name, share in shares.items()}


def chunks(table: Table, rows: np.ndarray) -> Iterator[Table]:
    """Yield some rows of a table, few at a time."""
    for begin in range(0, len(rows), _CHUNK):
        yield take_rows(table, rows[begin : begin + _CHUNK])


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
    """

    def __init__(self, table: Table, space: Space) -> None:
        self.table, self.space = table, space
        self.copies = _distinct(table, space)
        heads = self.copies.heads
        columns = [table[block.names[0]] for block in space.values]
        self._located = [space.locate(b, c) for b, c in zip(space.values, columns, strict=True)]
        self._gaps = [
            block.label_gaps(column) if space.own else np.zeros(len(column.labels))
            for block, column in zip(space.values, columns, strict=True)
        ]
        self._gapped = [bool(space.gaps(block, table).any()) for block in space.lines]
        parts = [self._line(rows).T for rows in chunks(table, heads)] if space.lines else []
        line = np.ascontiguousarray(np.hstack(parts)) if parts else np.zeros((0, len(heads)))
        widths = [len(column.labels) for column in columns]
        self.nodes = Nodes.of(self.codes(), widths, line, power=space.power)

    def codes(self, nodes: Any = slice(None)) -> list[np.ndarray]:
        """Return the values of (some) nodes in each column that is looked up."""
        rows = self.copies.heads[nodes]
        return [self.table[block.names[0]].codes[rows] for block in self.space.values]

    @property
    def line_widths(self) -> list[int]:
        """Number of coordinates of each block that is not looked up."""
        pairs = zip(self.space.lines, self._gapped, strict=True)
        return [block.width + 2 * gapped for block, gapped in pairs]

    def _line(self, table: Table, *, asks: bool = False) -> np.ndarray:
        """Return the coordinates of the blocks that are not looked up, row by row."""
        rest, parts = np.zeros(table.n_rows), []
        for block, gapped in zip(self.space.lines, self._gapped, strict=True):
            gaps = self.space.gaps(block, table) if asks or gapped else rest
            parts.append(block.coordinates(table, unknown=self.space.unknown))
            if gapped:
                parts.append(gap_axes(gaps, asks=asks))
            else:
                rest = rest + gaps
        if not self.space.values:  # else it is paid with a value
            parts.append(gap_axes(rest, asks=asks)[:, 1:])
        return np.hstack([np.zeros((table.n_rows, 0)), *parts])

    def _as_asking(self, nodes: np.ndarray) -> np.ndarray:
        """Return the coordinates of nodes as of rows that ask."""
        ends, order = np.cumsum(self.line_widths), np.arange(len(self.nodes.line))
        for end in ends[np.array(self._gapped, bool)]:
            order[[end - 2, end - 1]] = end - 1, end - 2
        return self.nodes.line[:, nodes][order]

    def _value_gaps(self) -> np.ndarray:
        """Return what missing cells of looked up columns add to the distances of each node."""
        pairs = zip(self._gaps, self.codes(), strict=True)
        return np.sum([np.zeros(len(self.nodes)), *(gaps[own] for gaps, own in pairs)], axis=0)

    def to_copies(self, nodes: np.ndarray) -> np.ndarray:
        """Return what adds up between each of some nodes and another row that is equal to it."""
        heads = take_rows(self.table, self.copies.heads[nodes])
        out = 2 * self._value_gaps()[nodes]
        for block in self.space.lines:
            out += 2 * self.space.gaps(block, heads)
        for block, located, own in zip(
            self.space.values, self._located, self.codes(nodes), strict=True
        ):
            labels, index = np.unique(own, return_inverse=True)
            each = [self.space.between(block, located[[i]], located[[i]])[0, 0] for i in labels]
            out += np.array(each)[index]
        return out

    def vectors(self, step: int = 1) -> Iterator[np.ndarray]:
        """Yield the coordinates of the nodes, or of every so many, some at a time."""
        for rows in chunks(self.table, self.copies.heads[::step]):
            yield self._row_vectors(rows)

    def _row_vectors(self, table: Table) -> np.ndarray:
        """Return the coordinates of rows as float32, with those of their missing cells."""
        vectors = self.space.vectors(table)
        if not (any(self._gapped) or any(gaps.any() for gaps in self._gaps)):
            return vectors
        blocks = (*self.space.values, *self.space.lines)
        gaps = np.sum([self.space.gaps(block, table) for block in blocks], axis=0)
        return np.hstack([vectors, gap_axes(gaps, asks=False).astype(np.float32)[:, :1]])

    def near_pairs(self, limit: float, kept: np.ndarray) -> Hits:
        """Return the pairs of some nodes that are at most ``limit`` apart, exactly.

        Columns whose different values alone are farther apart cut the nodes into groups; within
        them those are compared that are near along the coordinate that varies most, and that
        rounded coordinates do not rule out.
        """
        groups, whole = self._groups(limit, kept)
        along = _widest(self.nodes.line[:, kept])
        order = np.lexsort((along, groups))
        reach = _reach(groups[order], along[order], limit ** (1 / self.space.power))
        order = kept[order]
        parts = [(kept[:0], kept[:0], np.zeros(0))]
        bound = self._bound() if whole else None
        place = np.arange(len(order))
        for rows, columns in _rectangles(reach):
            left, right = place[rows], place[columns]
            if bound is not None:
                near = bound.near(self._point(order[left]), self._point(order[right]), limit)
                near &= left[:, None] < right
                left, right = left[near.any(axis=1)], right[near.any(axis=0)]
            summed = self._summed(order[left], order[right])
            i, j = np.nonzero((summed <= limit) & (left[:, None] < right))
            parts.append((order[left[i]], order[right[j]], summed[i, j]))
        low, high, summed = (np.concatenate(part) for part in zip(*parts, strict=True))
        return low, high, summed

    def _bound(self) -> Bound:
        """Return what rules out pairs of nodes by the columns that are compared by coordinates."""
        columns = zip(self.space.values, self._located, strict=True)
        apart = [self.space.apart(block, located) for block, located in columns]
        return Bound(apart, self.nodes.line, self.space.power, self._value_gaps())

    def _point(self, nodes: np.ndarray) -> Point:
        return self.codes(nodes), nodes

    def _groups(self, limit: float, kept: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return a number for each of some nodes: pairs that are near have the same.

        And whether no column brings two nodes nearer.
        """
        kin = [
            self.space.kin(block, located, limit)
            for block, located in zip(self.space.values, self._located, strict=True)
        ]
        known = [labels for labels in kin if labels is not None]
        whole = len(known) == len(kin)
        if not known or not whole or not len(kept):
            return np.zeros(len(kept), np.int64), whole
        groups = [labels[own] for labels, own in zip(known, self.codes(kept), strict=True)]
        return distinct_rows(groups)[1], whole

    def _summed(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return what adds up between nodes and others, from the labels that they have."""
        line = self.nodes.line
        out = summed_differences(self._as_asking(left).T, line[:, right].T, self.space.power)
        columns = zip(self.space.values, self._located, self._gaps, strict=True)
        codes = zip(self.codes(left), self.codes(right), strict=True)
        for (block, located, gaps), both in zip(columns, codes, strict=True):
            (a, i), (b, j) = (np.unique(own, return_inverse=True) for own in both)
            between = self.space.between(block, located[a], located[b])
            out += (between + gaps[a][:, None] + gaps[b])[i][:, j]
        return out

    def queries(self, table: Table) -> Queries:
        """Return the rows of another table as queries."""
        gaps = [self.space.gaps(block, table) for block in self.space.values]
        for block, gapped in zip(self.space.lines, self._gapped, strict=True):
            if gaps and not gapped:
                gaps[0] = gaps[0] + self.space.gaps(block, table)
        columns = [table[block.names[0]] for block in self.space.values]
        paid = [
            self._paid(a, column, own)
            for a, (column, own) in enumerate(zip(columns, gaps, strict=True))
        ]
        points = np.ascontiguousarray(self._line(table, asks=True))

        def values(some: Any) -> np.ndarray:
            return np.hstack([np.zeros((len(points[some]), 0)), *(pay(some) for pay in paid)])

        return Queries(values, points)

    def _paid(self, a: int, column: Any, gaps: np.ndarray) -> Callable[[Any], np.ndarray]:
        """Return what queries pay for the values of a column, missing cells included."""
        pay = self._between_paid(a, column)
        if not (gaps.any() or self._gaps[a].any()):
            return pay
        return lambda some: pay(some) + gaps[some][:, None] + self._gaps[a]

    def _between_paid(self, a: int, column: Any) -> Callable[[Any], np.ndarray]:
        """Return what lies between values: looked up where many are equal."""
        space, block, stored = self.space, self.space.values[a], self._located[a]
        located, codes = space.locate(block, column), column.codes
        used = np.flatnonzero(np.bincount(codes, minlength=len(located)))
        if _EQUAL * len(used) > len(codes) or len(used) * len(stored) > _TABLE:
            return lambda some: space.between(block, located[codes[some]], stored)
        line, table = np.zeros(len(located), np.int64), space.between(block, located[used], stored)
        line[used] = np.arange(len(used))
        return lambda some: table[line[codes[some]]]


Point = tuple[Sequence[np.ndarray], np.ndarray]  # the values of nodes in each column, and which


class Bound:
    """What adds up between nodes at least, by products of rounded coordinates.

    ``|x - y|² = |x|² + |y|² - 2 xy``, less what rounding may add, and what values have of their own
    where they differ. A coordinate that only one label has is its own. Sums of absolute
    differences are not below the root of the squared ones.

    Parameters
    ----------
    columns : sequence of Apart or None
        The labels of each column that is looked up; those of None are left out.
    line : ndarray of shape (coordinates, nodes)
        What is not looked up.
    power : {1, 2}
        What adds up.
    gaps : ndarray, optional
        What missing cells add to the squared distances of each node.
    """

    def __init__(
        self,
        columns: Sequence[Apart | None],
        line: np.ndarray,
        power: int,
        gaps: np.ndarray | None = None,
    ) -> None:
        self.power = power
        self.gaps = gaps
        self.left_out = sum(apart is None for apart in columns)
        kept = [(a, _own_apart(apart)) for a, apart in enumerate(columns) if apart is not None]
        sources = [line, *(apart.points for _, apart in kept)]
        largest = max(max(x.max(initial=0.0), -x.min(initial=0.0)) for x in sources)
        self.dtype = np.float32 if largest < _LARGE else np.float64
        width = len(line) + sum(apart.points.shape[1] for _, apart in kept)
        self.share = 1 - (width + len(kept) + 8) * 2.0**-23  # twice what rounding may change
        self.line = line
        self.columns = [
            (a, replace(apart, points=apart.points.astype(self.dtype))) for a, apart in kept
        ]

    def near(self, left: Point, right: Point, limit: float) -> np.ndarray:
        """Return which pairs are perhaps within a limit: all that are, and few others."""
        x, y = self._coordinates(left), self._coordinates(right)
        out = x @ y.T
        out *= -2
        for own, shape in ((x, (-1, 1)), (y, (1, -1))):
            out += (self.share * np.einsum("ij,ij->i", own, own)).astype(self.dtype).reshape(shape)
        for a, apart in self.columns:
            if apart.own.any():
                i, j = left[0][a], right[0][a]
                ours, theirs = ((self.share * apart.own[k]).astype(self.dtype) for k in (i, j))
                alone = ours[:, None] + theirs
                alone *= apart.which[i][:, None] != apart.which[j]
                out += alone
        if self.gaps is not None and self.gaps.any():
            ours, theirs = (self.share * self.gaps[nodes] for _, nodes in (left, right))
            out += ours[:, None].astype(self.dtype)
            out += theirs.astype(self.dtype)
        most = limit ** (2 / self.power) * (1 + 1e-6) + self.left_out * _ROUNDING
        return ~(out > most)  # so that what overflows is near

    def _coordinates(self, point: Point) -> np.ndarray:
        codes, nodes = point
        line = self.line[:, nodes].T.astype(self.dtype)
        return np.hstack([line, *(apart.points[codes[a]] for a, apart in self.columns)])

    def linked(self, limit: float) -> np.ndarray:
        """Return a number for each label of the one column: the same if chains may link them."""
        ((_, apart),) = self.columns
        count, out = np.unique(apart.which, return_inverse=True)
        most = limit ** (2 / self.power) * (1 + 1e-6)
        some = np.flatnonzero(apart.own + apart.own.min(initial=np.inf) <= most)
        along = _widest(apart.points[some].T.astype(np.float64))
        order = np.argsort(along, kind="stable")
        some, groups = some[order], np.zeros(len(some), np.int64)
        total = len(count)
        for rows, columns in _rectangles(_reach(groups, along[order], np.sqrt(most))):
            left, right = some[rows], some[columns]
            if total == 1:
                break
            near = self.near(([left], left), ([right], right), limit)
            near &= out[left][:, None] != out[right]
            i, j = np.nonzero(near)
            if len(i):
                links = csr_array(
                    (np.ones(len(i), bool), (out[left[i]], out[right[j]])), (total,) * 2
                )
                total, number = connected_components(links, directed=False)
                out = number[out]
        return out


def gap_axes(gaps: np.ndarray, *, asks: bool) -> np.ndarray:
    """Return two coordinates: what missing cells add to those found, and to those who ask."""
    out = np.zeros((len(gaps), 2))
    out[:, int(asks)] = np.sqrt(gaps)
    return out


def _own_apart(apart: Apart) -> Apart:
    """Return labels whose coordinates that no other label has are their own."""
    points = apart.points
    alone = np.count_nonzero(points, axis=0) == 1
    if not alone.any():
        return apart
    own = apart.own.copy()
    for some in slices(len(points), points.shape[1], _ENTRIES):
        own[some] += np.square(points[some][:, alone]).sum(axis=1)
    return Apart(points[:, ~alone], own, apart.which)


def _rectangles(reach: np.ndarray) -> Iterator[tuple[slice, slice]]:
    """Yield sorted nodes, few at a time, with the later ones that they may be near to."""
    for begin in range(0, len(reach), _BLOCK):
        rows = slice(begin, min(begin + _BLOCK, len(reach)))
        end = int(reach[rows].max())
        for start in range(begin, end, _ACROSS):
            yield rows, slice(start, min(start + _ACROSS, end))


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
    codes = [c.codes if isinstance(c, Codes) else c.ranks() for c in columns]
    first, inverse = distinct_rows(codes)
    order = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    return Copies.of(number[inverse], first[order])


# -- vectors of other embedders -------------------------------------------------------------------


class Vectors(Block):
    """What an embedder without blocks made of each row, kept as columns of numbers."""

    names: list[str]
    width: int

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.width = len(names)

    def writer(self, table: Table, dtype: np.dtype[Any], unknown: Unknown) -> Writer:
        """Read the columns."""
        vectors = np.stack([table[name].values for name in self.names], axis=1)

        def write(rows: slice, out: np.ndarray) -> None:
            out[:] = vectors[rows]

        return write

    def feature_names(self) -> list[str]:
        """Return the columns."""
        return self.names

    def export(self, unknown: Unknown = "centroid") -> list[Step]:
        """Raise: how they were computed is not recorded."""
        raise ValueError("expected an embedder of tabweave, got vectors of another")

    def only(self, names: Iterable[str]) -> Block | None:
        """Raise: which column brings what is not recorded."""
        raise ValueError(
            "the embedder does not say which column its coordinates come from, so a row needs all "
            "columns; index with an embedder of tabweave to search by some of them"
        )

    def split(self, table: Table, unknown: Unknown = "centroid") -> dict[str, np.ndarray]:
        """Return all of them as one."""
        return {"(all columns)": self.coordinates(table, unknown=unknown)}


def given_names(schema: Schema) -> list[str]:
    """Return the columns as they were given, without those that hold vectors."""
    return [name for name in schema.names if not name.startswith(HIDDEN)]
