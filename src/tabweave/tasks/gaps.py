"""GapFiller: guesses of missing cells, the mean of what several engines say.

Beside the regression and the mixture of a :class:`~tabweave.tasks.row_model.RowModel` there are the
nearest rows under a metric learned for the column with the gap. A table of many columns is learned
block by block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from tabweave.columns.datetime import Datetimes
from tabweave.columns.frames import object_array
from tabweave.columns.numeric import Numbers
from tabweave.columns.table import Table, take_rows
from tabweave.counts.counting import available_memory
from tabweave.io.register import storable
from tabweave.space.scan import Nodes, Queries, nearest_nodes
from tabweave.tasks.row_model import (
    MAX_GUESSED_VALUES,
    PRIOR_ROWS,
    CodedRows,
    CompleteRows,
    Guess,
    Reason,
    RowModel,
    readable,
)

ENGINES = ("counts", "mixture", "neighbors")
BLOCK_ROWS = 1 << 14  # Rows that are filled at a time.
MAX_BLOCK_COLUMNS = 64  # Tables with more columns are learned in blocks of so many at most.
MAX_BLOCK_VALUES = 4000  # A block of several columns has so many values at most.


@storable
@dataclass(frozen=True, eq=False)
class GapFiller:
    """A model of rows, the rows among which neighbours are looked for, and who guesses what.

    Attributes
    ----------
    targets : list of str
        The columns that are guessed; the others of the model tell of them.
    model : RowModel
        What the cells of a row say of each other.
    n_neighbors : int
        How many of the nearest rows say something.
    engines : dict of str to tuple of str
        The engines that guess each column.
    reference_codes, reference_z, observed : ndarray
        The rows among which neighbours are looked for, their gaps filled: codes, standardised
        numbers, and which cells are there.
    """

    targets: list[str]
    model: RowModel
    n_neighbors: int
    engines: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reference_codes: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    reference_z: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    observed: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), bool))

    def with_reference(self, table: Table, n_rounds: int) -> GapFiller:
        """The filler with rows to look for neighbours in, their gaps filled."""
        if "neighbors" not in self.model.engines:
            return self
        cells = self.model.cells(take_rows(table, np.arange(min(table.n_rows, 4096))))
        fast = tuple(e for e in self.model.engines if e != "neighbors") or ("counts",)
        simple = replace(self, engines={name: self.usable(name, fast) for name in self.model.index})
        rows = self.model.completed(cells, simple.guesses(cells, n_rounds))
        return replace(
            self, reference_codes=rows.codes, reference_z=rows.z, observed=cells.codes >= 0
        )

    def usable(self, name: str, engines: Sequence[str]) -> tuple[str, ...]:
        """The engines that can guess a column."""
        column = self.model.columns[self.model.index[name]]
        if column.is_set or sum(not c.is_set for c in self.model.columns) < 2:
            return ("counts",)
        usable = tuple(e for e in engines if e != "mixture" or self.model.subspaces)
        if column.bins is not None and len(usable) > 1:
            usable = tuple(e for e in usable if e != "mixture")
        return usable

    def filled(self, table: Table, n_rounds: int) -> dict[str, Guess]:
        """A guess for every gap of a table, block by block of its rows."""
        blocks: list[dict[int, Guess]] = []
        for start in range(0, table.n_rows, BLOCK_ROWS):
            rows = np.arange(start, min(start + BLOCK_ROWS, table.n_rows))
            cells = self.model.cells(take_rows(table, rows))
            guesses = self.guesses(cells, n_rounds)
            blocks.append(
                {a: _of_gaps(guess, cells.unseen[a], start) for a, guess in guesses.items()}
            )
        out = {}
        for a, column in enumerate(self.model.columns):
            parts = [block[a] for block in blocks if a in block]
            if parts:
                rows, proba = (np.concatenate([p[i] for p in parts]) for i in (0, 1))
                number = None
                if column.bins is not None:
                    number = column.bins.as_written(np.concatenate([p.number for p in parts]))
                out[column.name] = Guess(rows, proba, number)
        return out

    def guesses(self, cells: CodedRows, n_rounds: int) -> dict[int, Guess]:
        """Guess all gaps, and again with the guesses; numbers are standardised."""
        first = self.model.first_guesses(cells)
        guesses = first
        nearest: dict[int, NearestRows] = {}
        for _ in range(n_rounds):
            rows = self.model.completed(cells, guesses)
            guesses = {a: self._guess(a, first[a], rows, nearest) for a in first}
        return guesses

    def _guess(
        self, a: int, first: Guess, complete: CompleteRows, nearest: dict[int, NearestRows]
    ) -> Guess:
        """The mean of what the engines of a column say, given the other cells."""
        answers: list[tuple[np.ndarray, np.ndarray | None]] = []
        for engine in self.engines[self.model.columns[a].name]:
            if engine == "mixture":
                answers.append((first.proba, first.number))
            elif engine == "counts":
                answers.append(self.model.regressed(a, first.rows, complete))
            else:
                answers.append(self._voted(a, first.rows, complete.codes, nearest))
        proba = np.mean([p for p, _ in answers], axis=0)
        if first.number is None:
            return Guess(first.rows, proba, None)
        number = np.mean([x for _, x in answers], axis=0)
        if a in nearest:  # nothing is invented between or beyond the rows that speak for it
            z = self.reference_z[a, self.observed[a]][nearest[a].rows]
            number = np.clip(number, *weighted_quantiles(z, nearest[a].votes, (0.2, 0.8)))
        return Guess(first.rows, proba, number)

    # -- the neighbours --------------------------------------------------------------------

    def _voted(
        self, a: int, rows: np.ndarray, codes: np.ndarray, nearest: dict[int, NearestRows]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """The votes of the nearest rows that have the column."""
        share = self.model.share[self.model.spans[a]]
        others = self._others(a)
        is_number = self.model.columns[a].bins is not None
        if not self.observed[a].any() or not others:
            mean = np.zeros(len(rows)) if is_number else None
            return np.tile(share, (len(rows), 1)), mean
        query_codes = np.maximum(codes[others][:, rows], 0)
        near = nearest[a] = self._nearest(a, query_codes, nearest.get(a))
        values = self.reference_codes[a, self.observed[a]][near.rows]
        proba = np.tile(0.5 * share, (len(rows), 1))
        np.add.at(proba, (np.arange(len(rows))[:, None], values), near.votes)
        proba /= proba.sum(axis=1, keepdims=True)
        if not is_number:
            return proba, None
        z = self.reference_z[a, self.observed[a]][near.rows]
        return proba, (near.votes * z).sum(axis=1) / near.votes.sum(axis=1)

    def _others(self, a: int) -> list[int]:
        """The columns by which the neighbours of a column are found."""
        columns = enumerate(self.model.columns)
        return [b for b, other in columns if b != a and other.labels and not other.is_set]

    def _nearest(self, a: int, codes: np.ndarray, last: NearestRows | None) -> NearestRows:
        """The nearest rows by the metric of a column; unchanged rows keep theirs."""
        if a not in self._metrics:
            others, n = self._others(a), int(self.observed[a].sum())
            stored = self.reference_codes[others][:, self.observed[a]]
            nodes = Nodes.of(stored, self.model.sizes[others], np.zeros((0, n)))
            self._metrics[a] = nodes, self._metric(a)
        nodes, tables = self._metrics[a]
        changed = slice(None) if last is None else (codes != last.codes).any(axis=0)
        queries = Queries.of(codes[:, changed], tables, np.zeros((codes[:, changed].shape[1], 0)))
        squared, rows = nearest_nodes(nodes, queries, min(self.n_neighbors, len(nodes)))
        if last is not None:
            all_squared, all_rows = last.squared.copy(), last.rows.copy()
            all_squared[changed], all_rows[changed] = squared, rows
            squared, rows = all_squared, all_rows
        return NearestRows(codes, squared, rows)

    @cached_property
    def _metrics(self) -> dict[int, tuple[Nodes, list[np.ndarray]]]:
        return {}

    def _metric(self, a: int) -> list[np.ndarray]:
        """The tables of distances of values, as a column teaches them.

        Half of a distance is a mismatch, or the difference of two numbers; half is how differently
        two values speak of the column, scaled to the same mean. Columns weigh by the root of what
        they tell of it, at least .01.
        """
        model, tables = self.model, []
        share, pairs = model.share[model.spans[a]], model.pairs[:, model.spans[a]]
        conditional = (pairs + PRIOR_ROWS * share) / (pairs.sum(axis=1, keepdims=True) + PRIOR_ROWS)
        weights = np.sqrt(np.maximum(model.evidence[a], 0.01))
        for b in self._others(a):
            proba, frequency = conditional[model.spans[b]], model.share[model.spans[b]]
            learned = ((proba[:, None] - proba[None]) ** 2).sum(axis=2)
            mean, gini = frequency @ learned @ frequency, 1 - frequency @ frequency
            learned = learned * (gini / mean) if mean > 1e-15 else np.zeros_like(learned)
            if (bins := model.columns[b].bins) is not None:
                x = np.clip(bins.means, -3, 3)
                mismatch = (x[:, None] - x) ** 2 / 2
            else:
                mismatch = 1 - np.eye(len(frequency))
            tables.append(weights[b] * (learned + mismatch) / 2)
        return tables

    # -- which engines ---------------------------------------------------------------------

    def hidden_losses(self, table: Table, seed: int) -> dict[str, dict[str, np.ndarray]]:
        """Return, per column, the loss of each engine and mean of engines on each hidden cell.

        A fifth of the cells is hidden, of rows that should have had no part in teaching: a row that
        was learned is its own nearest one.
        """
        model, rng = self.model, np.random.default_rng(seed)
        cells = model.cells(table)
        hidden = (rng.random(cells.codes.shape) < 0.2) & (cells.codes >= 0)
        z = np.where(hidden, np.nan, cells.z)
        masked = cells._replace(codes=np.where(hidden, -1, cells.codes), z=z)
        alone = {}
        for engine in model.engines:
            engines = {name: self.usable(name, (engine,)) for name in model.index}
            alone[engine] = replace(self, engines=engines).guesses(masked, 1)
        out: dict[str, dict[str, np.ndarray]] = {name: {} for name in model.index}
        for name, a in model.index.items():
            rows = np.flatnonzero(hidden[a])
            if model.columns[a].is_set or not len(rows):
                continue
            for size in range(1, len(model.engines) + 1):
                for key in combinations(model.engines, size):
                    guesses = [alone[engine][a] for engine in key]
                    out[name]["+".join(key)] = _losses(guesses, rows, cells.codes[a], cells.z[a])
        return out

    # -- what fills a gap, and why ---------------------------------------------------------

    def best(self, name: str, guess: Guess) -> np.ndarray:
        """What fills the gaps of a column."""
        column = self.model.columns[self.model.index[name]]
        if guess.number is not None:
            return guess.number
        labels = object_array(column.labels)
        if column.is_set:
            likely = np.minimum(0.5, guess.proba.max(axis=1, keepdims=True) - 1e-12)
            return object_array([labels[is_in].tolist() for is_in in guess.proba > likely])
        return labels[guess.proba.argmax(axis=1)]

    def drawn(self, name: str, guess: Guess, rng: np.random.Generator) -> np.ndarray:
        """A draw of what may fill the gaps of a column."""
        column = self.model.columns[self.model.index[name]]
        labels = object_array(column.labels)
        if column.is_set:
            draws = rng.random(guess.proba.shape) < guess.proba
            return object_array([labels[is_in].tolist() for is_in in draws])
        upto = np.cumsum(guess.proba, axis=1)
        code = (rng.random((len(upto), 1)) * upto[:, -1:] > upto).sum(axis=1)
        code = np.minimum(code, upto.shape[1] - 1)
        if column.bins is None:
            return labels[code]
        values = np.empty(len(code))
        for b in np.unique(code):
            values[code == b] = rng.choice(column.bins.numbers[b], (code == b).sum())
        return values

    def notes(self, table: Table, name: str, guess: Guess) -> Iterator[Note]:
        """A note on each gap of a column."""
        values = self.best(name, guess)
        cells = self.model.cells(take_rows(table, guess.rows))
        a = self.model.index[name]
        bins = self.model.columns[a].bins
        best = guess.proba.argmax(axis=1)
        for i, row in enumerate(guess.rows.tolist()):
            value = values[i].item() if isinstance(values[i], np.generic) else values[i]
            if bins is not None and bins.is_dated:
                value = Datetimes(np.concatenate(bins.numbers)).text(float(value))
            reasons = self._best_reasons(cells, i, a, int(best[i]))
            yield Note(row, name, value, float(guess.proba[i, best[i]]), reasons)

    def _best_reasons(self, cells: CodedRows, row: int, a: int, value: int) -> tuple[Reason, ...]:
        """The two cells that raise the odds of a value most, each in several rows."""
        share = self.model.share[self.model.spans[a]][value]

        def gain(reason: Reason) -> float:  # one row of one must not look like a rule
            smoothed = (reason.both + PRIOR_ROWS * share) / (reason.n + PRIOR_ROWS)
            return float(np.log(smoothed / max(share, 1e-12)))

        reasons = [r for r in self.model.reasons(cells, row, a, value) if r.n >= 5]
        return tuple(r for r in sorted(reasons, key=gain, reverse=True)[:2] if gain(r) > 0.05)


def _of_gaps(guess: Guess, is_unseen: np.ndarray, start: int) -> Guess:
    """What is guessed of gaps: a value that fit has not seen is a cell all the same."""
    is_gap = ~is_unseen[guess.rows]
    number = None if guess.number is None else guess.number[is_gap]
    return Guess(guess.rows[is_gap] + start, guess.proba[is_gap], number)


def _losses(
    guesses: Sequence[Guess], rows: np.ndarray, codes: np.ndarray, z: np.ndarray
) -> np.ndarray:
    """Squared errors of numbers, -log p of values, of the mean of guesses."""
    index = np.searchsorted(guesses[0].rows, rows)
    if guesses[0].number is not None:
        number = np.mean([guess.number for guess in guesses], axis=0)[index]
        return np.asarray((number - z[rows]) ** 2)
    proba = np.mean([guess.proba for guess in guesses], axis=0)[index]
    return np.asarray(-np.log(np.maximum(proba[np.arange(len(rows)), codes[rows]], 1e-12)))


class NearestRows(NamedTuple):
    """The rows nearest to others, which are given by their codes, and how far they are."""

    codes: np.ndarray  # (columns, rows)
    squared: np.ndarray  # (rows, neighbours)
    rows: np.ndarray

    @property
    def votes(self) -> np.ndarray:
        """How much each neighbour says: the less, the farther it is."""
        return np.exp(-4 * self.squared / np.maximum(self.squared[:, -1:], 1e-12))


class Note(NamedTuple):
    """Why a cell was filled as it was.

    Attributes
    ----------
    row, column : int, str
        The cell.
    value : label or float
        What it was filled with.
    probability : float
        How likely that is; of a number, that it lies in the same bin.
    reasons : tuple of (column, value, both, n)
        The cells of the row that speak for it most: of n rows with this value of the column, so
        many have both.
    """

    row: int
    column: str
    value: Any
    probability: float
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        because = "; ".join(f"{c}={readable(v)}: {m} of {n} rows" for c, v, m, n in self.reasons)
        text = f"row {self.row}: {self.column}={readable(self.value)} ({self.probability:.0%}"
        text = text.replace("%", " %") + ")"
        return f"{text}, because {because}" if because else f"{text}, as in most rows"


def weighted_quantiles(
    values: np.ndarray, weights: np.ndarray, levels: Sequence[float]
) -> list[np.ndarray]:
    """Return, for each level, the value of each row below which so much of the weight lies.

    >>> weighted_quantiles(np.array([[3.0, 1.0, 2.0]]), np.array([[1.0, 1.0, 8.0]]), [0.05, 0.5])
    [array([1.]), array([2.])]
    """
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    upto = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    rows, last = np.arange(len(values)), values.shape[1] - 1
    index = [np.minimum((upto < level * upto[:, -1:]).sum(axis=1), last) for level in levels]
    return [ordered[rows, which] for which in index]


# -- blocks of columns ----------------------------------------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class BlockFiller:
    """Blocks of columns, and what fills the gaps of each; a table of few columns is one block.

    Every column is guessed in one block, beside the columns that tell most of it. Blocks are found
    from counts of all pairs of columns, coarsely binned; memory grows with the number of columns,
    not with its square.

    Attributes
    ----------
    blocks : list of GapFiller
        What guesses the columns, each column in one of them.
    """

    blocks: list[GapFiller]

    @classmethod
    def of(
        cls,
        table: Table,
        engines: Sequence[str],
        *,
        n_bins: int,
        n_neighbors: int,
        n_rounds: int,
        seed: int,
    ) -> BlockFiller:
        """Learn from rows, block by block."""
        blocks = []
        parts = blocks_of_columns(table, n_bins)
        for names, n_targets in parts:
            part = table if len(parts) == 1 else table.select(names)
            learned = tuple(engines)
            if len(parts) > 1 and all(isinstance(data, Numbers) for data in part.columns):
                learned = tuple(e for e in engines if e != "mixture") or learned
            model = RowModel.of(part, n_bins, seed, learned, needs_evidence=True)
            block = GapFiller(names[:n_targets], model, n_neighbors)
            blocks.append(block.with_reference(part, n_rounds))
        return cls(blocks)

    @cached_property
    def block(self) -> dict[str, GapFiller]:
        """What guesses each column."""
        return {name: block for block in self.blocks for name in block.targets}

    def usable(self, name: str, engines: Sequence[str]) -> tuple[str, ...]:
        """The engines that can guess a column."""
        block = self.block[name]
        return block.usable(name, [e for e in engines if e in block.model.engines] or engines)

    def with_engines(self, engines: Mapping[str, tuple[str, ...]]) -> BlockFiller:
        """The same with engines; what only tells of others needs no neighbours."""
        blocks = []
        for block in self.blocks:
            fast = [e for e in block.model.engines if e != "neighbors"] or block.model.engines
            of_block = {name: block.usable(name, fast) for name in block.model.index}
            of_block |= {name: engines[name] for name in block.targets}
            blocks.append(replace(block, engines=of_block))
        return replace(self, blocks=blocks)

    def check_types(self, table: Table) -> None:
        """Raise for a column of rows that are asked about whose type is another than in fit."""
        for block in self.blocks:
            block.model.check_types(table, block.targets)

    def filled(self, table: Table, n_rounds: int) -> dict[str, Guess]:
        """A guess for every gap of a table, from the rows with gaps of each block."""
        out: dict[str, Guess] = {}
        gaps = {column.name: data.missing for column, data in table}
        for block in self.blocks:
            rows = np.flatnonzero(np.any([gaps[name] for name in block.targets], axis=0))
            if len(rows):
                part = take_rows(table.select(list(block.model.index)), rows)
                guesses = block.filled(part, n_rounds)
                for name in block.targets:
                    if name in guesses:
                        out[name] = guesses[name]._replace(rows=rows[guesses[name].rows])
        return {name: out[name] for name in table.schema.names if name in out}

    def hidden_losses(self, table: Table, seed: int) -> dict[str, dict[str, np.ndarray]]:
        """Return, per column, the loss of each choice of engines on each hidden cell."""
        out = {}
        for block in self.blocks:
            losses = block.hidden_losses(table.select(list(block.model.index)), seed)
            out.update({name: losses[name] for name in block.targets})
        return out

    def notes(self, table: Table, name: str, guess: Guess) -> Iterator[Note]:
        """A note on each gap of a column."""
        block = self.block[name]
        return block.notes(table.select(list(block.model.index)), name, guess)


def n_values(table: Table, n_bins: int) -> np.ndarray:
    """How many values of each column are learned."""
    return np.array(
        [n_bins + 1 if isinstance(data, Numbers) else min(len(data.labels), MAX_GUESSED_VALUES)
         for data in table.columns]
    )  # fmt: skip


def blocks_of_columns(table: Table, n_bins: int) -> list[tuple[list[str], int]]:
    """Blocks of columns, and how many of the first ones each of them guesses.

    A block grows by the column that is closest to one in it; what tells most of its columns joins.
    """
    sizes, names = n_values(table, n_bins), table.schema.names
    if len(names) <= MAX_BLOCK_COLUMNS and sizes.sum() <= MAX_BLOCK_VALUES:
        return [(names, len(names))]
    evidence = pairwise_evidence(table)
    is_left, blocks = np.ones(len(names), bool), []
    for first in np.argsort(-evidence.sum(axis=1), kind="stable"):
        if is_left[first]:
            targets = _grown(int(first), evidence + evidence.T, is_left, sizes)
            is_left[targets] = False
            telling = evidence[targets].sum(axis=0)
            telling[targets] = 0
            order = np.argsort(-telling, kind="stable")
            others = order[telling[order] > 0][: MAX_BLOCK_COLUMNS - len(targets)]
            n_both = sizes[targets].sum() + np.cumsum(sizes[others])
            members = [*targets, *others[n_both <= MAX_BLOCK_VALUES]]
            blocks.append(([names[a] for a in members], len(targets)))
    _check_memory(sizes, [sizes[[names.index(n) for n in members]].sum() for members, _ in blocks])
    return blocks


def _check_memory(sizes: np.ndarray, sizes_of_blocks: Sequence[int]) -> None:
    """Raise MemoryError, before anything is learned, for blocks that would not fit."""
    needed = sum(8 * len(ENGINES) * int(size) ** 2 for size in sizes_of_blocks)
    free = available_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"learning {len(sizes):,} columns with {sizes.sum():,} values would "
            f"take about {needed / 1e9:,.1f} GB, more than the {free / 1e9:,.1f} GB that are free; "
            "choose the columns that matter, or pass fewer bins (n_bins=4)"
        )


def _grown(first: int, near: np.ndarray, is_left: np.ndarray, sizes: np.ndarray) -> list[int]:
    """A column and those that are left and closest to it, or to one that was taken."""
    block, closest = [first], np.where(is_left, near[first], -1)
    closest[first] = -1
    while len(block) < MAX_BLOCK_COLUMNS // 2:
        best = int(closest.argmax())
        if closest[best] < 0 or sizes[[*block, best]].sum() > MAX_BLOCK_VALUES // 2:
            break
        block.append(best)
        closest = np.where(closest >= 0, np.maximum(closest, near[best]), -1)
        closest[best] = -1
    return block


def pairwise_evidence(table: Table, *, n_bins: int = 6, n_rows: int = 1000) -> np.ndarray:
    """What each column tells of each other, by coarse bins and evenly drawn rows."""
    n = min(table.n_rows, n_rows)
    table = take_rows(table, np.linspace(0, table.n_rows - 1, n).astype(int))
    model = RowModel.coded(table, n_bins)
    values = model.indicators(model.cells(table))
    return model.evidence_from(lambda span: values.T @ values[:, span].toarray())
