"""Space: what a search compares rows by, read from the blocks of an embedder; and rows in it.

Comes in: any fitted embedder. Goes out: blocks whose distances (squared, or plain for L1 and
measures) add up. A block is of one column where the embedder allows it, so a search over some
columns is a space of fewer blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tabweave._compat import html_table, require
from tabweave.columns.column import Schema
from tabweave.columns.nominal import Codes
from tabweave.columns.table import Table, distinct_rows, take_rows
from tabweave.columns.vocabulary import Label, Unknown, slices
from tabweave.space.block import (
    Block,
    Step,
    ValueDistanceParts,
    Writer,
    added,
    summed_differences,
    total_gaps,
)
from tabweave.space.scan import Copies, Nodes, Queries

# -- Distances as notebooks show them: the share of each column, and a frame between values -------


class Explanation(dict[str, float]):
    """Each column's share in a distance: a dict, which notebooks show as bars.

    Examples
    --------
    >>> from tabweave import OneHot
    >>> found = OneHot().fit({"a": list("xy"), "b": list("pp")}).explain(["x", "p"], ["y", "p"])
    >>> found, "color-mix" in found._repr_html_()
    ({'a': 2.0, 'b': 0.0}, True)
    """

    def _repr_html_(self) -> str:
        total = sum(abs(share) for share in self.values()) or 1.0
        rows = sorted(self.items(), key=lambda item: -item[1])
        cells = [[name, share, f"{share / total:.0%}"] for name, share in rows]
        return html_table(
            f"What each column adds; together {sum(self.values()):.4g}",
            ["column", "adds", "share"],
            cells,
            lambda i, j: max(0.0, rows[i][1] / total) if j == 2 else None,
        )


def labelled(distances: np.ndarray, name: str, labels: Sequence[Label]) -> Any:
    """Distances between values as a pandas frame, shaded in notebooks."""
    pandas = require("pandas", "frames")
    index = pandas.Index(labels, dtype=object, name=name)
    frame = pandas.DataFrame(distances, index=index, columns=index)
    object.__setattr__(frame, "_repr_html_", partial(_shaded, frame))  # of this frame, not of parts
    return frame


def _shaded(frame: Any, most: int = 30) -> str:
    values = frame.to_numpy()[:most, :most]
    far = max(float(values.max(initial=0.0)), 1e-300)
    names = ["missing" if label is None else str(label) for label in frame.index[:most]]
    more = f", the first {most}" if len(frame) > most else ""
    return html_table(
        f"Distances between the values of {frame.index.name}{more}; dark is far",
        ["", *names],
        [[name, *map(float, row)] for name, row in zip(names, values, strict=True)],
        lambda i, j: values[i, j - 1] / far if j else None,
    )


# -- the space ------------------------------------------------------------------------------------

# How the names of columns begin that hold the vectors of other embedders.
HIDDEN = "\0"


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
    by_block : bool
        Whether values are compared as their blocks do, or by the power of their coordinates.
    unknown : {"centroid", "error"}
        What becomes of values that the embedder has not seen.
    """

    values: list[Block]
    lines: list[Block]
    power: int
    root: bool
    by_block: bool = True
    unknown: Unknown = "centroid"

    def only(self, names: Sequence[str]) -> Space:
        """Space of some columns."""
        values = [block for block in self.values if block.names[0] in names]
        lines = [part for block in self.lines if (part := block.only(names)) is not None]
        return replace(self, values=values, lines=lines)

    def check(self, table: Table) -> None:
        """Raise for values that the embedder refuses, and for distances that do not add up."""
        for block in self.values:
            located = self.locate(block, table[block.names[0]])
            self.between(block, located[:0], located[:0])
        for rows in chunks(table, np.arange(table.n_rows)) if self.lines else ():
            self.line(rows)

    def locate(self, block: Block, column: Any) -> np.ndarray:
        """What :meth:`between` compares, for each label of a column."""
        if self.by_block:
            return block.locate(column, self.unknown)
        return block.points(column, self.unknown)[:-1]

    def between(self, block: Block, located: np.ndarray, stored: np.ndarray) -> np.ndarray:
        """What adds up between located labels."""
        if self.by_block:
            return block.between(located, stored)
        return summed_differences(located, stored, self.power)

    def gaps(self, block: Block, table: Table) -> np.ndarray:
        """What the missing cells of each row add to its squared distances."""
        gaps = total_gaps(block, table) if self.by_block else None
        return np.zeros(table.n_rows) if gaps is None else gaps

    def line(self, table: Table) -> np.ndarray:
        """Coordinates of the blocks that are not looked up, row by row."""
        parts = [block.coordinates(table, unknown=self.unknown) for block in self.lines]
        return np.hstack([np.zeros((table.n_rows, 0)), *parts])

    def distances(self, summed: np.ndarray) -> np.ndarray:
        """Distances for what adds up between rows."""
        return np.sqrt(np.maximum(summed, 0)) if self.root else summed

    def limit(self, distance: float) -> float:
        """What may add up within a distance, with room for rounding."""
        return float(distance**2 if self.root else distance) * (1 + 1e-9) + 1e-18

    def vectors(self, table: Table) -> np.ndarray:
        """All coordinates as float32, and one at least."""
        parts = []
        for block in self.values:
            column = table[block.names[0]]
            points = block.points(column, self.unknown).astype(np.float32)
            parts.append(points[column.codes])
        out = np.hstack([*parts, self.line(table).astype(np.float32)])
        return np.ascontiguousarray(out) if out.shape[1] else np.zeros((len(out), 1), np.float32)

    def distance_parts(self, block: Block, located: np.ndarray) -> ValueDistanceParts | None:
        """What :meth:`between` is made of, if that is coordinates."""
        return (
            block.distance_parts(located) if self.by_block else Block.distance_parts(block, located)
        )

    def inertia(self, table: Table) -> float:
        """Mean of what adds up between rows and their mean, of Euclidean spaces."""
        total = float(self.line(table).var(axis=0).sum())
        for block in self.values:
            column = table[block.names[0]]
            located = self.locate(block, column)[column.codes]
            total += float(self.between(block, located, located).mean()) / 2
        return total

    def explain(self, a: Table, b: Table) -> dict[str, float]:
        """Each column's share in the distance of two rows (squared if it is a root)."""
        power = None if self.by_block else self.power
        blocks = (*self.values, *self.lines)
        shares = added(block.shares(a, b, power=power, unknown=self.unknown) for block in blocks)
        return {name: float(share[0]) for name, share in shares.items()}


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
    """

    def __init__(self, table: Table, space: Space) -> None:
        self.table, self.space = table, space
        self.copies = _distinct(table, space)
        heads = self.copies.heads
        columns = [table[block.names[0]] for block in space.values]
        pairs = list(zip(space.values, columns, strict=True))
        self.located = [space.locate(block, column) for block, column in pairs]
        self.label_gaps = [
            block.label_gaps(column) if space.by_block else np.zeros(len(column.labels))
            for block, column in pairs
        ]
        self._has_gaps = [bool(space.gaps(block, table).any()) for block in space.lines]
        parts = [self._line(rows).T for rows in chunks(table, heads)] if space.lines else []
        line = np.ascontiguousarray(np.hstack(parts)) if parts else np.zeros((0, len(heads)))
        widths = [len(column.labels) for column in columns]
        self.nodes = Nodes.of(self.codes(), widths, line, power=space.power)

    def codes(self, nodes: Any = slice(None)) -> list[np.ndarray]:
        """Values of (some) nodes in each column that is looked up."""
        rows = self.copies.heads[nodes]
        return [self.table[block.names[0]].codes[rows] for block in self.space.values]

    @property
    def line_widths(self) -> list[int]:
        """Number of coordinates of each block that is not looked up."""
        pairs = zip(self.space.lines, self._has_gaps, strict=True)
        return [block.width + 2 * has_gaps for block, has_gaps in pairs]

    def _line(self, table: Table, *, asks: bool = False) -> np.ndarray:
        """Coordinates of the blocks that are not looked up, row by row."""
        other_gaps, parts = np.zeros(table.n_rows), [np.zeros((table.n_rows, 0))]
        for block, has_gaps in zip(self.space.lines, self._has_gaps, strict=True):
            parts.append(block.coordinates(table, unknown=self.space.unknown))
            if has_gaps:
                parts.append(gap_axes(self.space.gaps(block, table), asks=asks))
            elif asks:
                other_gaps = other_gaps + self.space.gaps(block, table)
        if not self.space.values:  # else it is paid with a value
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
        pairs = zip(self.label_gaps, self.codes(), strict=True)
        return np.sum([np.zeros(len(self.nodes)), *(gaps[codes] for gaps, codes in pairs)], axis=0)

    def vectors(self, step: int = 1) -> Iterator[np.ndarray]:
        """Yield the coordinates of the nodes, or of every so many, some at a time."""
        for rows in chunks(self.table, self.copies.heads[::step]):
            yield self._row_vectors(rows)

    def _row_vectors(self, table: Table) -> np.ndarray:
        """Coordinates of rows as float32, with those of their missing cells."""
        vectors = self.space.vectors(table)
        if not (any(self._has_gaps) or any(gaps.any() for gaps in self.label_gaps)):
            return vectors
        blocks = (*self.space.values, *self.space.lines)
        gaps = np.sum([self.space.gaps(block, table) for block in blocks], axis=0)
        return np.hstack([vectors, gap_axes(gaps, asks=False).astype(np.float32)[:, :1]])

    def queries(self, table: Table) -> Queries:
        """Rows of another table as queries."""
        gaps = [self.space.gaps(block, table) for block in self.space.values]
        for block, has_gaps in zip(self.space.lines, self._has_gaps, strict=True):
            if gaps and not has_gaps:
                gaps[0] = gaps[0] + self.space.gaps(block, table)
        lookups = [self._lookup(a, table, column_gaps) for a, column_gaps in enumerate(gaps)]
        points = np.ascontiguousarray(self._line(table, asks=True))

        def values(rows: Any) -> np.ndarray:
            none = np.zeros((len(points[rows]), 0))
            return np.hstack([none, *(lookup(rows) for lookup in lookups)])

        return Queries(values, points)

    def _lookup(self, a: int, table: Table, gaps: np.ndarray) -> Callable[[Any], np.ndarray]:
        """What gives the distances of queries to the values of a column.

        They are looked up where many queries are equal, unless a table of them would take more
        than 64 MB. Missing cells are included.
        """
        space, block, stored = self.space, self.space.values[a], self.located[a]
        column = table[block.names[0]]
        located, codes, label_gaps = space.locate(block, column), column.codes, self.label_gaps[a]
        used = np.flatnonzero(np.bincount(codes, minlength=len(located)))

        is_tabled = 4 * len(used) <= len(codes) and len(used) * len(stored) <= 1 << 23
        distances = space.between(block, located[used], stored) if is_tabled else None
        index = np.zeros(len(located), np.int64)
        index[used] = np.arange(len(used))

        def between(rows: Any) -> np.ndarray:
            if distances is None:
                return space.between(block, located[codes[rows]], stored)
            return np.asarray(distances[index[codes[rows]]])

        if not (gaps.any() or label_gaps.any()):
            return between
        return lambda rows: between(rows) + gaps[rows][:, None] + label_gaps


def gap_axes(gaps: np.ndarray, *, asks: bool) -> np.ndarray:
    """Two coordinates: what missing cells add to those found, and to those who ask."""
    out = np.zeros((len(gaps), 2))
    out[:, int(asks)] = np.sqrt(gaps)
    return out


def _distinct(table: Table, space: Space) -> Copies:
    """Which rows are equal in a space; nodes are in the order of their first rows."""
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
        """The columns."""
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
        """All columns as one."""
        return {"(all columns)": self.coordinates(table, unknown=unknown)}


def given_names(schema: Schema) -> list[str]:
    """Columns as they were given, without those that hold vectors."""
    return [name for name in schema.names if not name.startswith(HIDDEN)]
