"""Space: what a search compares rows by, read from the blocks of an embedder.

Comes in: any fitted embedder. Goes out: blocks whose distances (squared, or plain for L1 and
measures) add up. A block is of one column where the embedder allows it, so a search over some
columns is a space of fewer blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components

from tabweave.base import Embedder
from tabweave.blocks.block import Block, Step, Writer, added, summed_differences
from tabweave.rows.table import Schema, Table, take_rows
from tabweave.rows.vocabulary import Unknown

_CHUNK = 1 << 16  # rows whose coordinates are computed at a time
_LABELS = 256  # labels of a column compared with all others at a time
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
        As in :class:`~tabweave.blocks.block.Block`.
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

    def kin(self, block: Block, located: np.ndarray, limit: float) -> np.ndarray | None:
        """Return a number for each label: the same if chains of labels link them within ``limit``.

        Rows whose labels differ in it are farther apart, since nothing that adds up is negative;
        None where something is.
        """
        links = []
        for begin in range(0, len(located), _LABELS):
            between = self.between(block, located[begin : begin + _LABELS], located)
            if (between < -1e-9).any():
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


def space_of(embedder: Any, schema: Schema, metric: str) -> Space:
    """Return the blocks of a fitted embedder; ``metric`` is "auto" (its own), "l2" or "l1"."""
    unknown: Unknown = "centroid"
    block: Block = Vectors([name for name in schema.names if name.startswith(HIDDEN)])
    if isinstance(embedder, Embedder):
        block, unknown = embedder.learn().blocks_, embedder._policy()
    own = metric == "auto"
    power = block.power if own else 1 if metric == "l1" else 2
    space = Space([], [], power, block.root if own else power == 2, own, unknown)
    for part in block.parts():
        single = part.by_value and schema[part.names[0]].kind != "set"
        (space.values if single else space.lines).append(part)
    return space


def chunks(table: Table, rows: np.ndarray) -> Iterator[Table]:
    """Yield some rows of a table, few at a time."""
    for begin in range(0, len(rows), _CHUNK):
        yield take_rows(table, rows[begin : begin + _CHUNK])


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
