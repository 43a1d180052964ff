"""Terms: how many rows hold each subset of a cell's elements, in a form that adds up.

A subset is a path: its elements in canonical order, each a child of the ones before. Level s holds
the subsets of s elements as (parent on level s - 1, last element), sorted, so that subsets of any
size are numbered, merged and found by sorting and searching integers, all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from math import comb
from typing import Any, cast

import numpy as np

from tabweave.io.register import storable
from tabweave.rows.table import Codes, Schema, Sets, Table
from tabweave.rows.vocabulary import Label, identity, order, positions
from tabweave.rows.vocabulary import union as label_union

_MOST_TERMS = 1 << 20  # of one cell
_BLOCK_TERMS = 1 << 22  # made at a time
Found = tuple[np.ndarray, np.ndarray]  # numbers of the terms found, and which candidates they were


@storable
@dataclass(frozen=True, eq=False)
class Level:
    """The subsets of one size: ``keys = parent · V + element``, sorted, and rows that hold them."""

    keys: np.ndarray
    df: np.ndarray


@storable
@dataclass(frozen=True, eq=False)
class ColumnTerms:
    """The subsets that occur in one column, over its V elements in canonical order."""

    labels: tuple[Label, ...]
    levels: tuple[Level, ...]

    def __add__(self, other: ColumnTerms) -> ColumnTerms:
        union = label_union(self.labels, other.labels)
        labels = [union[i] for i in order(union)]
        indices = [positions(labels, part.labels) for part in (self, other)]
        numbers = [np.zeros(1, np.int64), np.zeros(1, np.int64)]
        levels = []
        for pair in zip_longest(self.levels, other.levels, fillvalue=_NO_LEVEL):
            keys = []
            for own, level, index, parent in zip(
                (self, other), pair, indices, numbers, strict=True
            ):
                up, element = np.divmod(level.keys, max(len(own.labels), 1))
                keys.append(parent[up] * len(labels) + index[element])
            merged, number = np.unique(np.concatenate(keys), return_inverse=True)
            df = np.zeros(len(merged), np.int64)
            np.add.at(df, number, np.concatenate([level.df for level in pair]))
            levels.append(Level(merged, df))
            numbers = np.split(number, [len(keys[0])])
        return ColumnTerms(tuple(labels), tuple(levels))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ColumnTerms):
            return NotImplemented
        same = list(map(identity, self.labels)) == list(map(identity, other.labels))
        return (
            same
            and len(self.levels) == len(other.levels)
            and all(
                np.array_equal(a.keys, b.keys) and np.array_equal(a.df, b.df)
                for a, b in zip(self.levels, other.levels, strict=True)
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def elements(self) -> Iterator[np.ndarray]:
        """Yield, level by level, the elements of each term (terms × size)."""
        above = np.zeros((1, 0), np.int64)
        for level in self.levels:
            up, element = np.divmod(level.keys, max(len(self.labels), 1))
            above = np.column_stack([above[up], element])
            yield above


_NO_LEVEL = Level(np.zeros(0, np.int64), np.zeros(0, np.int64))


@storable
@dataclass(frozen=True, eq=False)
class TermCounts:
    """Document frequencies of the terms of all columns; an Abelian monoid, ``TermCounts()`` zero.

    Attributes
    ----------
    schema : Schema or None
        The columns; None for zero.
    n : int
        Number of rows.
    max_subset : int or None
        The largest subsets counted.
    columns : tuple of ColumnTerms
        The terms of each column.
    """

    schema: Schema | None = None
    n: int = 0
    max_subset: int | None = None
    columns: tuple[ColumnTerms, ...] = ()

    @classmethod
    def of(cls, table: Table, max_subset: int | None) -> TermCounts:
        """Count the rows of a table."""
        if not table.n_rows:
            return cls()
        columns = tuple(
            _count(c.name, cast(Codes | Sets, data), table.n_rows, max_subset) for c, data in table
        )
        return cls(table.schema, table.n_rows, max_subset, columns)

    def __add__(self, other: TermCounts) -> TermCounts:
        if not isinstance(other, TermCounts):
            return NotImplemented
        if self.schema is None or other.schema is None:
            return other if self.schema is None else self
        if self.max_subset != other.max_subset:
            raise ValueError(
                f"expected counts of the same max_subset, got {self.max_subset} and "
                f"{other.max_subset}"
            )
        ours, theirs = (
            [(c.name, c.kind == "set") for c in counts.schema.columns]  # type: ignore[union-attr]
            for counts in (self, other)
        )
        if ours != theirs:
            raise ValueError(f"expected columns {ours} (name, holds sets), got {theirs}")
        pairs = zip(self.columns, other.columns, strict=True)
        return TermCounts(
            self.schema, self.n + other.n, self.max_subset, tuple(a + b for a, b in pairs)
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TermCounts):
            return NotImplemented
        if self.schema is None or other.schema is None:
            return self.schema is other.schema
        return (self.schema.names, self.n, self.max_subset, self.columns) == (
            other.schema.names,
            other.n,
            other.max_subset,
            other.columns,
        )

    __hash__ = None  # type: ignore[assignment]


def cells_of(data: Codes | Sets, labels: Sequence[Label], n_rows: int) -> Found:
    """Return a column as (row starts, elements in ascending order within each row).

    Elements are numbered as in ``labels``; values that are not there are left out.
    """
    index = positions(labels, data.labels)
    rows, width = np.arange(n_rows), len(labels) + 1
    if isinstance(data, Sets):
        rows = np.repeat(rows, np.diff(data.starts))
    elements = index[data.codes]
    seen = elements < len(labels)
    rows, elements = rows[seen], elements[seen]
    if isinstance(data, Sets):
        rows, elements = np.divmod(np.sort(rows * width + elements), width)
    return np.searchsorted(rows, np.arange(n_rows + 1)), elements


def walk(
    starts: np.ndarray,
    elements: np.ndarray,
    depth: int,
    find: Callable[[int, np.ndarray, np.ndarray], Found],
) -> Iterator[Found]:
    """Yield, level by level, (row, number) of the terms that rows hold.

    A term of s elements grows by every later element of its cell. ``find(level, parent, element)``
    numbers the candidates and says which of them are terms; only those grow on.
    """
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    last = np.arange(len(elements)) + starts[0]
    number = np.zeros(len(rows), np.int64)
    for level in range(depth):
        number, kept = find(level, number, elements[last - starts[0]])
        rows, last = rows[kept], last[kept]
        yield rows, number
        room = starts[rows + 1] - last - 1
        if level + 1 == depth or not room.any():
            return
        first = np.repeat(np.cumsum(room) - room, room)
        step = np.arange(room.sum()) - first
        last = np.repeat(last, room) + 1 + step
        rows, number = np.repeat(rows, room), np.repeat(number, room)


def row_blocks(starts: np.ndarray, depth: int | None) -> Iterator[slice]:
    """Cut rows so that a block makes a bounded number of terms."""
    made = np.minimum(terms_made(np.diff(starts), depth), _MOST_TERMS)
    block = (np.cumsum(made) - made) // _BLOCK_TERMS
    edges = np.concatenate([[0], np.flatnonzero(np.diff(block)) + 1, [len(made)]])
    for a, b in pairwise(edges):
        yield slice(int(a), int(b))


def terms_made(sizes: np.ndarray, depth: int | None) -> Any:
    """Return how many subsets of up to ``depth`` elements sets of some sizes have."""
    distinct, inverse = np.unique(sizes, return_inverse=True)
    made = [n_subsets(int(size), depth) for size in distinct]
    return np.array([min(m, 1 << 62) for m in made], np.int64)[inverse]


def n_subsets(size: int, depth: int | None) -> int:
    """Return ``Σ_s C(size, s)`` for s = 1 … depth; 2ⁿ − 1 without a bound."""
    if depth is None or depth >= size:
        return 2**size - 1
    return sum(comb(size, s) for s in range(1, depth + 1))


def _count(name: str, data: Codes | Sets, n_rows: int, depth: int | None) -> ColumnTerms:
    present = np.flatnonzero(np.bincount(data.codes, minlength=len(data.labels)))
    own = [data.labels[i] for i in present]
    labels = tuple(own[i] for i in order(own))
    starts, elements = cells_of(data, labels, n_rows)
    sizes = np.diff(starts)
    _check_explosion(name, sizes, depth)
    total = ColumnTerms(labels, ())
    for rows in row_blocks(starts, depth):
        edges = starts[rows.start : rows.stop + 1]
        part = elements[edges[0] : edges[-1]]
        total = total + _count_block(labels, edges, part, depth)
    return total


def _count_block(
    labels: tuple[Label, ...], starts: np.ndarray, elements: np.ndarray, depth: int | None
) -> ColumnTerms:
    levels = []

    def number(_: int, parent: np.ndarray, element: np.ndarray) -> tuple[np.ndarray, Any]:
        keys, inverse, df = np.unique(
            parent * len(labels) + element, return_inverse=True, return_counts=True
        )
        levels.append(Level(keys, df.astype(np.int64)))
        return inverse, slice(None)

    largest = int(np.diff(starts).max(initial=0))
    for _ in walk(starts, elements, largest if depth is None else min(depth, largest), number):
        pass
    return ColumnTerms(labels, tuple(level for level in levels if len(level.keys)))


def _check_explosion(name: str, sizes: np.ndarray, depth: int | None) -> None:
    worst = int(np.argmax(sizes))
    size = int(sizes[worst])
    made = n_subsets(size, depth)
    if made > _MOST_TERMS:
        fits = 2 if n_subsets(size, 2) <= _MOST_TERMS else 1
        raise ValueError(
            f"column {name!r}: row {worst} has {size} elements, and max_subset={depth} makes "
            f"{made:,} terms of it; use max_subset={fits} ({n_subsets(size, fits):,} terms)"
        )
