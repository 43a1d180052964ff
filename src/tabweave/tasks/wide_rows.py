"""WideRowModel: a table of many columns as several of fewer, which tell of one another.

Every column is guessed in one block, beside the columns that tell most of it. Blocks are found from
counts of all pairs of columns, coarsely binned; memory grows with the number of columns, not with
its square.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tabweave.blocks.numbers import BINNED, Numbering
from tabweave.counts.counting import available_memory
from tabweave.io.register import storable
from tabweave.rows.table import Numbers, Sets, Table, ordinal_as_nominal, take_rows
from tabweave.rows.vocabulary import Label
from tabweave.tasks.row_model import (
    ENGINES,
    MAX_VALUES,
    Guess,
    Note,
    RowModel,
    explained_variance,
)

MAX_COLUMNS = 64  # Tables with more columns are learned block by block, and so large are blocks.
MAX_BLOCK_VALUES = 4000  # A block of several columns has so many values at most.
MAX_TARGETS = 32  # So many columns at most are guessed in one block; the others tell of them.
COARSE_BINS = 6  # Bins of a number where all pairs of columns are compared.
SAMPLE_ROWS = 1000  # Rows at most by which all pairs of columns are compared.


@storable
@dataclass(frozen=True, eq=False)
class WideRowModel:
    """Blocks of columns, and a model of the rows of each; it is asked as a RowModel is.

    Attributes
    ----------
    targets : list of list of str
        The columns that each block guesses.
    blocks : list of RowModel
        The models.
    wanted : tuple of str
        The engines that were asked for.
    """

    targets: list[list[str]]
    blocks: list[RowModel]
    wanted: tuple[str, ...]

    @classmethod
    def of(
        cls,
        table: Table,
        n_bins: int,
        seed: int,
        wanted: Sequence[str],
        n_neighbors: int,
        n_rounds: int,
    ) -> WideRowModel:
        """Learn from rows, block by block."""
        parts = blocks_of_columns(table, n_bins)
        check_memory(table, parts, n_bins)
        targets, blocks = [], []
        for names, n_targets in parts:
            part, own = select(table, names), names[:n_targets]
            numbers = {column.name for column in part.schema.numeric}
            some = tuple(e for e in wanted if e != "mixture" or not numbers.issuperset(names))
            model = RowModel.of(part, n_bins, seed, some or wanted, n_neighbors)
            model = model.changed(needs_evidence=True).with_reference(part, n_rounds)
            targets.append(own)
            blocks.append(model)
        return cls(targets, blocks, tuple(wanted))

    @cached_property
    def names(self) -> list[str]:
        """The columns."""
        return [name for own in self.targets for name in own]

    @cached_property
    def numbers(self) -> list[str]:
        """The columns of numbers."""
        return [name for name in self.names if name in self.block(name).numbers]

    @cached_property
    def sets(self) -> list[str]:
        """The columns of sets."""
        return [name for name in self.names if name in self.block(name).sets]

    @cached_property
    def labels(self) -> dict[str, tuple[Label, ...]]:
        """The values of each column."""
        return {name: self.block(name).labels[name] for name in self.names}

    @cached_property
    def seen(self) -> dict[str, list[np.ndarray]]:
        """The numbers of each bin."""
        return {name: self.block(name).seen[name] for name in self.numbers}

    def block(self, name: str) -> RowModel:
        """Return the model that guesses a column."""
        return self.blocks[self._places[name]]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: i for i, own in enumerate(self.targets) for name in own}

    def usable(self, name: str, engines: Sequence[str]) -> tuple[str, ...]:
        """Return the engines that can guess a column."""
        model = self.block(name)
        return model.usable(name, [e for e in engines if e in model.wanted] or engines)

    def changed(self, *, engines: Mapping[str, tuple[str, ...]]) -> WideRowModel:
        """Return the model with other engines; what only tells of others needs no neighbours."""
        blocks = []
        for own, model in zip(self.targets, self.blocks, strict=True):
            fast = [e for e in model.wanted if e != "neighbors"] or list(model.wanted)
            chosen = {name: model.usable(name, fast) for name in model.names}
            blocks.append(model.changed(engines=chosen | {name: engines[name] for name in own}))
        return replace(self, blocks=blocks)

    def check_types(self, table: Table) -> None:
        """Raise for a column of rows that are asked about whose type is another than in fit."""
        for own, model in zip(self.targets, self.blocks, strict=True):
            replace(model, labels={n: model.labels[n] for n in own}).check_types(table)

    def filled(self, table: Table, n_rounds: int) -> dict[str, Guess]:
        """Return a guess for every gap of a table, from the rows with gaps of each block."""
        out: dict[str, Guess] = {}
        gaps = {column.name: missing(data) for column, data in table}
        for own, model in zip(self.targets, self.blocks, strict=True):
            rows = np.flatnonzero(np.any([gaps[name] for name in own], axis=0))
            if len(rows):
                found = model.filled(take_rows(select(table, model.names), rows), n_rounds)
                for name in own:
                    if name in found:
                        out[name] = found[name]._replace(rows=rows[found[name].rows])
        return {name: out[name] for name in table.schema.names if name in out}

    def hidden_losses(self, table: Table, seed: int) -> dict[str, dict[str, np.ndarray]]:
        """Return, per column, the loss of each choice of engines on each hidden cell."""
        out = {}
        for own, model in zip(self.targets, self.blocks, strict=True):
            losses = model.hidden_losses(select(table, model.names), seed)
            out.update({name: losses[name] for name in own})
        return out

    def notes(self, table: Table, name: str, guess: Guess) -> Iterator[Note]:
        """Yield a note on each gap of a column."""
        model = self.block(name)
        return model.notes(select(table, model.names), name, guess)


# -- blocks ---------------------------------------------------------------------------------------


def is_wide(table: Table, n_bins: int) -> bool:
    """Tell whether a table has too many columns, or values, to be learned as one block."""
    return len(table.columns) > MAX_COLUMNS or n_values(table, n_bins).sum() > MAX_BLOCK_VALUES


def n_values(table: Table, n_bins: int) -> np.ndarray:
    """Return how many values of each column are learned."""
    return np.array(
        [n_bins + 1 if isinstance(data, Numbers) else min(len(data.labels), MAX_VALUES)
         for data in table.columns]
    )  # fmt: skip


def blocks_of_columns(table: Table, n_bins: int) -> list[tuple[list[str], int]]:
    """Return blocks of columns, and how many of the first ones each of them guesses.

    A block grows by the column that is closest to one in it; what tells most of its columns joins.
    """
    told, sizes, names = pairwise_evidence(table), n_values(table, n_bins), table.schema.names
    left, blocks = np.ones(len(names), bool), []
    for first in np.argsort(-told.sum(axis=1), kind="stable"):
        if left[first]:
            targets = _grown(int(first), told + told.T, left, sizes)
            left[targets] = False
            telling = told[targets].sum(axis=0)
            telling[targets] = 0
            order = np.argsort(-telling, kind="stable")
            others = order[telling[order] > 0][: MAX_COLUMNS - len(targets)]
            n_both = sizes[targets].sum() + np.cumsum(sizes[others])
            members = [*targets, *others[n_both <= MAX_BLOCK_VALUES]]
            blocks.append(([names[a] for a in members], len(targets)))
    return blocks


def _grown(first: int, near: np.ndarray, left: np.ndarray, sizes: np.ndarray) -> list[int]:
    """Return a column and those that are left and closest to it, or to one that was taken."""
    block, closest = [first], np.where(left, near[first], -1)
    closest[first] = -1
    while len(block) < MAX_TARGETS:
        best = int(closest.argmax())
        if closest[best] < 0 or sizes[[*block, best]].sum() > MAX_BLOCK_VALUES // 2:
            break
        block.append(best)
        closest = np.where(closest >= 0, np.maximum(closest, near[best]), -1)
        closest[best] = -1
    return block


def pairwise_evidence(table: Table) -> np.ndarray:
    """Return what each column tells of each other (see :func:`explained_variance`), by coarse bins.

    A set stands for its first element. Of very many rows some are drawn, evenly.
    """
    n = min(table.n_rows, SAMPLE_ROWS)
    table = take_rows(table, np.linspace(0, table.n_rows - 1, n).astype(int))
    plain = ordinal_as_nominal(table)
    expanded = Numbering(Numbering.of(plain, COARSE_BINS).edges, {}).expand(plain)
    numbers = {column.name for column in table.schema.numeric}
    codes = [_few_codes(expanded[n + BINNED if n in numbers else n]) for n in table.schema.names]
    sizes = np.array([own.max(initial=-1) + 1 for own in codes])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.concatenate([np.flatnonzero(own >= 0) for own in codes])
    columns = np.concatenate([a + own[own >= 0] for a, own in zip(starts, codes, strict=False)])
    has = csr_array((np.ones(len(rows)), (rows, columns)), (n, starts[-1]))
    turned, filled = has.T.tocsr(), np.flatnonzero(sizes)
    out = np.zeros((len(codes), len(codes)))
    for a in filled:
        met = turned @ has[:, starts[a] : starts[a + 1]].toarray()
        ranked = table.schema.names[a] in numbers
        out[a, filled] = explained_variance(met, starts[filled], ranked=ranked)
    np.fill_diagonal(out, 0)
    return out


def _few_codes(data: Any) -> np.ndarray:
    """Return the code of each cell, in the order of values; -1 of gaps and rare values."""
    codes = np.asarray(data.codes, np.intp)
    if isinstance(data, Sets):  # an empty one has the code behind all
        codes = np.append(codes, len(data.labels))
        codes = np.where(np.diff(data.starts) > 0, codes[data.starts[:-1]], len(data.labels))
    times = np.bincount(codes, minlength=len(data.labels) + 1)[:-1]
    times[[i for i, label in enumerate(data.labels) if label is None]] = 0
    order = np.sort(np.argsort(-times, kind="stable")[: min(MAX_VALUES, int((times > 0).sum()))])
    place = np.full(len(data.labels) + 1, -1)
    place[order] = np.arange(len(order))
    return place[codes]


def check_memory(table: Table, blocks: Sequence[tuple[list[str], int]], n_bins: int) -> None:
    """Raise MemoryError, before anything is learned, for blocks that would not fit."""
    sizes = dict(zip(table.schema.names, n_values(table, n_bins), strict=True))
    values = [sum(int(sizes[name]) for name in names) for names, _ in blocks]
    needed, free = sum(8 * len(ENGINES) * v**2 for v in values), available_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"learning {len(table.columns):,} columns with {sum(sizes.values()):,} values would "
            f"take about {needed / 1e9:,.1f} GB, more than the {free / 1e9:,.1f} GB that are free; "
            "choose the columns that matter, or pass fewer bins (n_bins=4)"
        )


def select(table: Table, names: Sequence[str]) -> Table:
    """Return some columns of a table."""
    at = [table.schema.names.index(name) for name in names]
    columns = tuple(table.schema.columns[i] for i in at)
    schema = replace(table.schema, columns=columns, aside=(), coupled=True)
    return Table(schema, tuple(table.columns[i] for i in at), table.n_rows)


def missing(data: Any) -> np.ndarray:
    """Return which cells of a column are missing."""
    if isinstance(data, Numbers):
        return np.isnan(data.values)
    gaps = np.array([label is None for label in data.labels], bool)
    if isinstance(data, Sets):
        first = np.append(gaps[data.codes], False)[data.starts[:-1]]
        return (np.diff(data.starts) > 0) & first
    return gaps[data.codes]
