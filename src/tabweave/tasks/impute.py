"""Imputer: fills missing categories, numbers and sets from what the rest of the row says.

Three engines look at a gap: a regression on the other cells, which needs counts and moments only; a
mixture of independent parts (:class:`~tabweave.NonBEND`), which needs nothing of the other gaps of
the row; and the nearest rows under a metric learned for the column with the gap. The default
takes the mean of what they say. Each filled cell has a probability and a reason.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from functools import cached_property
from itertools import islice
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, StrOptions, in_threads, require, seed_of
from tabweave.base import Estimator, TabularInput
from tabweave.columns.column import Schema
from tabweave.columns.datetime import DIGIT_FORMATS, Datetimes, stamps, write_datetime
from tabweave.columns.frames import (
    DATETIMES,
    columns_of,
    is_missing,
    joined_name,
    object_array,
    typed,
)
from tabweave.columns.inputs import check_input_features
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import DURATIONS, nearest_written, written_like
from tabweave.columns.table import Table, take_rows
from tabweave.columns.texts import present_texts
from tabweave.columns.vocabulary import Label, canonical, slices
from tabweave.counts.counting import available_memory
from tabweave.engines import SAME_TYPE
from tabweave.engines.reading import by_parts, read_sampled
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
    read_to_ask,
    readable,
    rows_to_learn,
)

# -- GapFiller: guesses of missing cells, the mean of what several engines say --------------------
#
# Beside the regression and the mixture of a :class:`~tabweave.tasks.row_model.RowModel` there
# are the nearest rows under a metric learned for the column with the gap. A table of many
# columns is learned block by block.

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
            jobs = [(a, first[a], rows, nearest) for a in first]
            guesses = dict(zip(first, in_threads(self._guessed, jobs), strict=True))
        return guesses

    def _guessed(self, job: tuple[int, Guess, CompleteRows, dict[int, NearestRows]]) -> Guess:
        return self._guess(*job)

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
            if len(parts) > 1 and all(data.is_continuous for data in part.columns):
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

    def notes(self, table: Table, name: str, guess: Guess) -> Iterator[Note]:
        """A note on each gap of a column."""
        block = self.block[name]
        return block.notes(table.select(list(block.model.index)), name, guess)


def n_values(table: Table, n_bins: int) -> np.ndarray:
    """How many values of each column are learned."""
    return np.array(
        [n_bins + 1 if data.is_continuous else min(len(data.labels), MAX_GUESSED_VALUES)
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


# -- the estimator --------------------------------------------------------------------------------


@storable
class Imputer(TabularInput, TransformerMixin, Estimator):
    """Fill the missing cells of a table: categories, numbers, dates, ordinal levels and sets.

    Parameters
    ----------
    engine : {"all", "counts", "mixture", "neighbors"}, default="all"
        How a cell is predicted from the rest of its row: "counts" is a regression from counts and
        moments, "mixture" that of :class:`~tabweave.NonBEND`, "neighbors" uses the nearest rows,
        "all" averages the three (for numbers, "counts" and "neighbors").
    n_neighbors : int, default=20
        Number of nearest rows.
    n_bins : int, default=12
        Quantile bins of numbers in the mixture and among neighbours.
    n_rounds : int, default=2
        Number of passes over rows with several missing cells; each pass uses the last guesses.
    max_rows : int, default=20000
        Largest number of rows to learn from, drawn at random if there are more.
    schema : Schema or mapping of column to kind, optional
        The kinds of the columns that it names; the others are inferred by the rules of
        :mod:`tabweave.columns.kinds`. Identifiers are dropped: their missing cells stay missing.
    random_state : int, RandomState or None, default=0
        Seed of the mixture, and of the rows that are drawn.

    Attributes
    ----------
    engines_ : dict of str to tuple of str
        The engines whose mean fills each column.
    schema_, n_features_in_, feature_names_in_
        The columns.

    Notes
    -----
    A number is filled with its expectation, between the 20th and the 80th percentile of the nearest
    rows where they are asked, a category with the likeliest value, a set with the elements that are
    likelier than not (or the likeliest one). A column that tells no more than chance, such as one
    whose values hardly repeat, says nothing of the others. Sets
    are guessed by counts alone. Columns keep their types and decimals: a column of whole numbers
    gets whole numbers, one of tenths gets tenths, dates stay dates, and text (``$1,200``,
    ``7/21/2016``) is written as the others are, or as in fit where rows have none. (pandas turns
    integers with missing values into floats unless they are ``Int64``.) A column that is entirely
    missing stays so. No reason rests on fewer than five rows.
    In a column with more than 200 values, only the most frequent 200 are guessed. Choosing engines
    column by column is hardly better than their mean (``benchmarks/reports/impute.md``).

    Examples
    --------
    >>> from tabweave import Imputer
    >>> rows = {"city": ["Lima", "Oslo", "Lima", "Oslo"] * 9, "sea": ["warm", "cold"] * 18,
    ...         "mean": [22.0, 6.0, 21.0, 5.0] * 9}
    >>> gaps = {"city": ["Lima", None], "sea": [None, "cold"], "mean": [None, 5.5]}
    >>> model = Imputer().fit(rows)
    >>> filled = model.transform(gaps)
    >>> filled["city"].tolist(), filled["sea"].tolist(), filled["mean"].round().tolist()
    (['Lima', 'Oslo'], ['warm', 'cold'], [21.0, 6.0])
    >>> print(model.explain(gaps)[0])
    row 1: city=Oslo (9... %), because sea=cold: 18 of 18 rows; mean=5: 9 of 9 rows
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "engine": [StrOptions({"all", *ENGINES})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_bins": [Interval(Integral, 2, 200, closed="both")],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "max_rows": [Interval(Integral, 10, None, closed="left")],
        "schema": [Schema, dict, str, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        engine: str = "all",
        *,
        n_neighbors: int = 20,
        n_bins: int = 12,
        n_rounds: int = 2,
        max_rows: int = 20_000,
        schema: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.engine = engine
        self.n_neighbors = n_neighbors
        self.n_bins = n_bins
        self.n_rounds = n_rounds
        self.max_rows = max_rows
        self.schema = schema
        self.random_state = random_state

    _filler: BlockFiller
    _typical: Mapping[str, list[Any]] = MappingProxyType({})  # how cells were written in fit

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows, which may have missing cells; ``y`` is ignored."""
        X = read_sampled(X)
        (table, _), seed = rows_to_learn(self, X), seed_of(self.random_state)
        filler, engines = self._learned(table, seed), self._engines()
        self.engines_ = {name: filler.usable(name, engines) for name in table.schema.names}
        self._filler = filler.with_engines(self.engines_)
        cells = {} if isinstance(X, Table) else self._cells_as_given(X)
        typical = {name: typical_cells(column) for name, column in cells.items()}
        self._typical = {name: column for name, column in typical.items() if column}
        return self

    def _engines(self) -> tuple[str, ...]:
        return ENGINES if self.engine == "all" else (self.engine,)

    def _learned(self, table: Table, seed: int) -> BlockFiller:
        return BlockFiller.of(
            table,
            self._engines(),
            n_bins=int(self.n_bins),
            n_neighbors=int(self.n_neighbors),
            n_rounds=int(self.n_rounds),
            seed=seed,
        )

    @by_parts(lambda self, source: dict.fromkeys(self.schema_.given, SAME_TYPE))
    def transform(self, X: Any) -> Any:
        """The rows with missing cells filled, in the type given: frame, dict, list ..."""
        return self._returned(X, self._filled(X))

    @by_parts(None)
    def predict_proba(self, X: Any, column: str | None = None) -> np.ndarray:
        """The probability of each value of a column, as if the column were missing.

        Parameters
        ----------
        X : what :meth:`transform` takes
            The rows.
        column : str, optional
            A column of categories, or of sets: then each element's own probability. Without it all
            of them, side by side.

        Returns
        -------
        ndarray of shape (rows, values)
            In the order of ``categories(column)``.
        """
        table = self._read(X)
        parts = [np.zeros((table.n_rows, 0))]
        for name in self._valued() if column is None else [column]:
            parts.append(np.zeros((table.n_rows, len(self.categories(name)))))
            guesses = self._filler.filled(self._without(table, name), int(self.n_rounds))
            if name in guesses:
                parts[-1] = guesses[name].proba
        return np.hstack(parts)

    def categories(self, column: str) -> list[Label]:
        """The values that a column can be filled with."""
        self._check_valued(column)
        model = self._filler.block[column].model
        return list(model.columns[model.index[column]].labels)

    def sample(self, X: Any, n: int = 5, random_state: Any = 0) -> list[Any]:
        """Several filled tables, drawn from predicted distributions (multiple imputation).

        Parameters
        ----------
        X : what :meth:`transform` takes
            The rows.
        n : int, default=5
            How many tables.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draws.

        Notes
        -----
        A category is drawn by its probability; a number is one of those seen in the bin that was
        drawn; an element is in a set by its own probability.
        """
        if n < 1:
            raise ValueError(f"expected n of at least 1, got {n}")
        rng = np.random.default_rng(seed_of(random_state))
        guesses = self._guesses(X)

        def drawn() -> dict[str, tuple[np.ndarray, np.ndarray]]:
            return {
                name: (guess.rows, self._filler.block[name].drawn(name, guess, rng))
                for name, guess in guesses.items()
            }

        return [self._returned(X, drawn()) for _ in range(n)]

    def explain(self, X: Any) -> list[Note]:
        """Explain each filled cell: its value, its probability, and why."""
        table = self._read(X)
        return [
            note
            for name, guess in self._guesses(X).items()
            for note in self._filler.notes(table, name, guess)
        ]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns, which do not change."""
        check_is_fitted(self, "_filler")
        check_input_features(self, input_features)
        return np.asarray(self.schema_.given, dtype=object)

    # -- rows in and out -------------------------------------------------------------------

    def _read(self, X: Any) -> Table:
        check_is_fitted(self, "_filler")
        table = read_to_ask(self, X)
        self._filler.check_types(table)
        return table

    def _guesses(self, X: Any) -> dict[str, Guess]:
        return self._filler.filled(self._read(X), int(self.n_rounds))

    def _filled(self, X: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        return {
            name: (guess.rows, self._filler.block[name].best(name, guess))
            for name, guess in self._guesses(X).items()
        }

    def _check_valued(self, column: str) -> None:
        check_is_fitted(self, "_filler")
        if column not in self._valued():
            raise ValueError(
                f"expected a column of categories, one of {self._valued()}, got {column!r}"
            )

    def _valued(self) -> list[str]:
        return [column.name for column in self.schema_.columns if not column.is_continuous]

    @staticmethod
    def _without(table: Table, column: str) -> Table:
        """The table with one column missing."""
        columns = list(table.columns)
        columns[table.schema.names.index(column)] = Codes(np.zeros(table.n_rows, np.uint8), [None])
        return replace(table, columns=tuple(columns))

    def _returned(self, X: Any, filled: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Any:
        """X with its gaps filled: ``filled`` has rows and values of each column."""
        if hasattr(X, "iloc") and hasattr(X, "columns"):
            X = _flattened(X)
            out = X.copy()
            for name, gaps in filled.items():
                j = self._position(X, name)
                out.isetitem(j, self._column(X.iloc[:, j], name, *gaps))
            return out
        table = self._read(X)
        cells_of = {} if isinstance(X, Table) else self._cells_as_given(X)
        no_gaps = np.zeros(0, np.intp), np.zeros(0)
        columns = {
            name: self._column(cells_of.get(name), name, *filled.get(name, no_gaps), table)
            for name in (self.schema_.given if cells_of else self.schema_.names)
        }
        library = type(X).__module__.partition(".")[0]
        if library == "polars":
            return require("polars", "frames").DataFrame(columns)
        if library == "pyarrow":
            return require("pyarrow", "frames").table(columns)
        if isinstance(X, Mapping):
            return columns
        if isinstance(X, list | tuple) and len(X) and isinstance(X[0], Mapping):
            lines = zip(*(cells.tolist() for cells in columns.values()), strict=True)
            return [dict(zip(columns, line, strict=True)) for line in lines]
        numeric = all(cells.dtype.kind in "iuf" for cells in columns.values())
        out = np.empty((table.n_rows, len(columns)), float if numeric else object)
        for j, cells in enumerate(columns.values()):
            out[:, j] = cells
        return out

    def _cells_as_given(self, X: Any) -> dict[str, Any]:
        """The cells of the columns as they were given, those dropped among them."""
        names, cells, _ = columns_of(X)
        return dict(zip(names or self.schema_.given, cells, strict=True))

    def _column(
        self, cells: Any, name: str, rows: np.ndarray, values: np.ndarray, table: Any = None
    ) -> Any:
        """A column with some cells filled, of the make and the type that it was given in."""
        library = type(cells).__module__.partition(".")[0]
        if name not in self.schema_.names or (cells is not None and not len(rows)):
            return np.asarray(cells) if library == "numpy" else cells
        example = None if cells is None else _example(cells)
        typical = self._typical.get(name, [])
        if example is None or (type(example) is float and typical and type(typical[0]) is int):
            example = next(iter(typical), example)  # rows with a gap show less than those of fit
        if isinstance(example, str) and self.schema_[name].is_continuous:
            values = self._written(cells, name, values)
        elif isinstance(example, int | float) and self.schema_[name].date_order in DIGIT_FORMATS:
            values = self._digits(example, name, values)
        elif isinstance(example, int | Decimal) and values.dtype.kind == "f":
            values = _whole_like(example, values)
        fills = self._as_cells(name, values, example)
        if library in _FILLED:
            return _FILLED[library](cells, rows, fills)
        is_coded = getattr(getattr(cells, "dtype", None), "kind", "") in ("i", "u", "f")
        as_is = int | str | Decimal | dt.date | dt.time | dt.timedelta
        if cells is None or not (is_coded or isinstance(example, as_is)):
            cells = table[name].to_numpy()
        out = _put(np.asarray(cells), rows, fills)
        return _as_integers(out) if type(example) is int else out

    def _as_cells(self, name: str, values: Any, example: Any) -> Any:
        """Seconds as the datetimes, dates, times of day or durations that cells are."""
        if getattr(getattr(values, "dtype", None), "kind", "") != "f":
            return values
        if isinstance(example, dt.timedelta | np.timedelta64):
            return [dt.timedelta(seconds=round(value, 6)) for value in values.tolist()]
        if not self._is_dated(name):
            return values
        moments = stamps(values)
        if isinstance(example, dt.time):
            return [stamp.time() for stamp in moments.tolist()]
        if isinstance(example, dt.date) and not isinstance(example, dt.datetime):
            return [stamp.date() for stamp in moments.tolist()]
        zone = getattr(example, "tzinfo", None)
        if zone is None:
            return moments
        from_ = zone if self.schema_[name].is_dated else dt.UTC  # whose clock it is
        return [stamp.replace(tzinfo=from_).astimezone(zone) for stamp in moments.tolist()]

    def _written(self, cells: Any, name: str, values: np.ndarray) -> np.ndarray:
        """Numbers or datetimes as the texts of their column are written."""
        column = self.schema_[name]
        texts = present_texts([c for c in _python_cells(cells[:1000]) if isinstance(c, str)])
        texts = texts or present_texts([_example(cells) or ""])
        texts = [text for text in texts if text] or self._typical[name]
        if column.decimal == DURATIONS:
            return nearest_written(texts, values)
        if not column.is_dated:
            return object_array(written_like(texts, values, column.decimal or "."))
        return object_array(
            [write_datetime(m, texts, column.date_order) for m in stamps(values).tolist()]
        )

    def _digits(self, example: float, name: str, values: np.ndarray) -> np.ndarray:
        """Datetimes as whole numbers such as 20240131."""
        texts, order = [f"{example:.0f}"], self.schema_[name].date_order
        written = [write_datetime(m, texts, order) for m in stamps(values).tolist()]
        return object_array([type(example)(digits) for digits in written])

    def _is_dated(self, name: str) -> bool:
        column = self.schema_[name]
        return column.is_dated or (column.is_continuous and column.why == DATETIMES)

    def _position(self, X: Any, name: str) -> int:
        """Which column of a pandas frame is meant; they may be numbered, not named."""
        if not self.schema_.named:
            return self.schema_.given.index(name)
        names = [joined_name(c) if isinstance(c, tuple) else str(c) for c in X.columns]
        return names.index(name)


# -- filled columns, of the make they were given in -----------------------------------------------


def _flattened(X: Any) -> Any:
    """A pandas frame whose records, if it has some, are columns of their fields."""
    names, cells, _ = columns_of(X)
    if names is None or len(names) == X.shape[1]:
        return X
    columns = dict(zip(names, cells, strict=True))
    return require("pandas", "frames").DataFrame(columns, index=X.index)


def _example(cells: Any) -> Any:
    """The first cell that is not missing, as Python has it; None if there is none."""
    for rows in (slice(0, 8), *slices(len(cells), 1, 1000)):
        for cell in _python_cells(cells[rows]):
            if is_missing(cell) or (isinstance(cell, str) and not present_texts([cell])):
                continue
            return cell
    return None


def typical_cells(cells: Any) -> list[Any]:
    """Some cells that show how a column is written: texts, or one cell of another type.

    They are 100 texts at most, of the first thousand cells.
    """
    example = _example(cells)
    if isinstance(example, str):
        distinct = dict.fromkeys([*_python_cells(cells[:1000]), example])
        texts = present_texts([cell for cell in distinct if isinstance(cell, str)])
        return list(islice(dict.fromkeys(texts), 100))
    if isinstance(example, dt.timedelta):
        return [np.timedelta64(example)]
    return [example] if type(example) in (int, Decimal, dt.date, dt.time) else []


def _whole_like(example: int | Decimal, values: np.ndarray) -> np.ndarray:
    """Numbers as whole ones, or as decimals of as many places as an example has."""
    if isinstance(example, Decimal):
        places = Decimal(1).scaleb(min(int(example.as_tuple().exponent), 0))
        digits = Context(prec=400)  # all that a float may have, and the places
        return object_array([Decimal(v).quantize(places, context=digits) for v in values.tolist()])
    return object_array([round(value) for value in values.tolist()])


def _as_integers(cells: np.ndarray) -> np.ndarray:
    """Numbers as integers if all of them are whole, and there."""
    numbers = typed(cells)
    is_whole = numbers.dtype == float and (numbers == np.rint(numbers)).all()
    return numbers.astype(np.int64) if is_whole and (np.abs(numbers) <= 2**53).all() else numbers


def _in_pandas(cells: Any, rows: np.ndarray, values: Any) -> Any:
    """A pandas column with some cells replaced; its type stays what it is."""
    pandas = require("pandas", "frames")
    out = cells.copy()
    try:
        if str(cells.dtype) == "category":  # labels only stand for some, such as intervals
            category_of = {canonical(value): value for value in cells.cat.categories}
            out.iloc[rows] = [category_of.get(value, value) for value in values]
        elif str(cells.dtype) == "boolean":
            out.iloc[rows] = values
        else:
            zone = getattr(cells.dtype, "tz", None)
            fills = pandas.Series(values, dtype=None if zone is None else "datetime64[us, UTC]")
            out.iloc[rows] = fills.astype(cells.dtype).array
    except (TypeError, ValueError):  # what no cell of the column may be
        return _put(cells.to_numpy(object), rows, values)
    return out


def _in_polars(cells: Any, rows: np.ndarray, values: Any) -> Any:
    """A polars column with some cells replaced."""
    if not len(rows):
        return cells
    polars = require("polars", "frames")
    fills = polars.Series(_python_cells(values), dtype=cells.dtype)
    index = np.full(len(cells), -1)
    index[rows] = np.arange(len(rows))
    return cells.zip_with(polars.Series(index < 0), fills.gather(np.maximum(index, 0)))


def _in_arrow(cells: Any, rows: np.ndarray, values: Any) -> Any:
    """An Arrow column with some cells replaced."""
    if not len(rows):
        return cells
    arrow = require("pyarrow", "frames")
    filling = _python_cells(values)
    if arrow.types.is_floating(cells.type):
        filling = list(map(float, filling))  # codes are whole numbers, of any size
    kind = cells.type
    if arrow.types.is_dictionary(kind):  # pyarrow 17 makes none of large strings from objects
        coded = arrow.array(filling, kind.value_type).dictionary_encode()
        fills = arrow.DictionaryArray.from_arrays(
            coded.indices.cast(kind.index_type), coded.dictionary, ordered=kind.ordered
        )
        both = arrow.chunked_array([*cells.chunks, fills]).unify_dictionaries()
    else:
        fills = arrow.array(filling, kind)
        both = arrow.chunked_array([*cells.chunks, fills])
    index = np.arange(len(cells))
    index[rows] = len(cells) + np.arange(len(fills))
    return both.take(arrow.array(index))


_FILLED = {"pandas": _in_pandas, "polars": _in_polars, "pyarrow": _in_arrow}


def _put(cells: np.ndarray, rows: Any, values: Any) -> np.ndarray:
    """A copy of a column with some cells replaced."""
    if cells.dtype.kind in "Mm":
        out = cells.copy()
    else:
        out = np.array(cells, dtype=float if _is_float(cells, values) else object)
    if len(rows):
        out[rows] = values
    return out


def _is_float(cells: np.ndarray, values: Any) -> bool:
    """Whether a column holds numbers, and so does what fills it: measured, or codes."""
    numeric = cells.dtype.kind in "iuf"
    return numeric and np.asarray(list(values) or [0.0]).dtype.kind in "iuf"


def _python_cells(cells: Any) -> list[Any]:
    """The cells of a column of any make as Python has them."""
    for name in ("to_pylist", "tolist", "to_list"):
        if hasattr(cells, name):
            return list(getattr(cells, name)())
    return list(cells)
