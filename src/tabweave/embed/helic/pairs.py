"""Pairs of rows to learn from: batches of rows in, a bounded, uniform sample of pairs out.

A pair is two independent draws, each kept by a reservoir of one row: a slot. When a slot is renewed
depends on its seed and on how much weight has come by, not on how the rows were cut into batches.
While the pairs of all distinct rows are few, they are all used and chance has no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from tabweave.counts.counts import Counts
from tabweave.io.register import storable
from tabweave.rows.table import Codes, Table, distinct_rows
from tabweave.rows.vocabulary import Label, positions, union


@storable
@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of rows, in the codes of some counts.

    Attributes
    ----------
    left, right : ndarray of shape (pairs, columns)
        The values of both rows, as numbers of ``counts.labels``.
    relation : ndarray of shape (pairs,)
        Eq. (6.20): 1 if both rows are of the same class, else -1.
    weight : ndarray of shape (pairs,)
        Weight of each pair in the loss: one half for all pairs of the same class together, one
        half for the others; zero where a relation is all there is.
    """

    left: np.ndarray
    right: np.ndarray
    relation: np.ndarray
    weight: np.ndarray


@storable
@dataclass(frozen=True, eq=False)
class PairSample:
    """What HELIC keeps of the rows it has seen: never more than two rows a pair.

    Rows are held as codes, the class last, of labels in order of first appearance.
    """

    seed: int
    seen: float
    labels: tuple[tuple[Label, ...], ...]
    held: np.ndarray  # (slots, columns + 1): the row in each slot
    due: np.ndarray  # (slots,): how much weight will have been seen when it is renewed
    draws: np.ndarray  # (slots,): how often it was
    few: tuple[np.ndarray, np.ndarray] | None  # distinct rows and weights, unless too many

    @classmethod
    def empty(cls, n_columns: int, n_pairs: int, seed: int) -> PairSample:
        """Return a sample that has seen no row."""
        n_slots = 2 * n_pairs
        return cls(
            seed=seed,
            seen=0.0,
            labels=((),) * (n_columns + 1),
            held=np.zeros((n_slots, n_columns + 1), np.int32),
            due=np.zeros(n_slots),
            draws=np.zeros(n_slots, np.int64),
            few=(np.zeros((0, n_columns + 1), np.int32), np.zeros(0)),
        )

    def add(self, table: Table, y: Any, weight: np.ndarray | None) -> PairSample:
        """Return the sample after more rows; weights as :class:`~tabweave.Counts` takes them."""
        row, due, draws = self._renewals(table.n_rows, weight)
        renewed = np.flatnonzero(row >= 0)
        present = np.arange(table.n_rows) if weight is None else np.flatnonzero(weight)
        # A look at the first rows mostly decides whether few are distinct.
        some = present[: 4 * most_distinct(len(self.held) // 2)]
        batch = Batch.of(table, y, np.concatenate([row[renewed], some]), self.labels)
        few = self._few_after(batch, some, weight)
        if few is not None and len(present) > len(some):
            batch = Batch.of(table, y, present, self.labels)
            few = self._few_after(batch, present, weight)
        held = self.held.copy()
        held[renewed] = batch.rows(row[renewed])
        return replace(
            self,
            seen=self.seen + float(table.n_rows if weight is None else weight.sum()),
            labels=batch.labels,
            held=held,
            due=due,
            draws=draws,
            few=few,
        )

    def _renewals(
        self, n_rows: int, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the row that each slot ends up with (-1: its old one), and its new state.

        Rows lie end to end on an axis of weight. A slot renewed by a row that ends at e is next
        renewed at e / U, with U uniform in (0, 1): no earlier than m with probability e / m.
        """
        due, draws = self.due.copy(), self.draws.copy()
        row = np.full(len(due), -1, np.int64)
        ends = None if weight is None else self.seen + np.cumsum(weight)
        last = self.seen + n_rows if ends is None else ends[-1]
        hit = np.flatnonzero(due < last)
        while len(hit):
            if ends is None:
                row[hit] = (due[hit] - self.seen).astype(np.int64)
                end = self.seen + row[hit] + 1
            else:
                row[hit] = np.searchsorted(ends, due[hit], side="right")
                end = ends[row[hit]]
            draws[hit] += 1
            due[hit] = end / uniform(self.seed, hit, draws[hit])
            hit = hit[due[hit] < last]
        return row, due, draws

    def _few_after(
        self, batch: Batch, rows: np.ndarray, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the distinct rows after some more, and their weights; None if too many."""
        if self.few is None:
            return None
        codes = np.vstack([self.few[0], batch.rows(rows)])
        first, inverse = distinct_rows(list(codes.T))
        if len(first) > most_distinct(len(self.held) // 2):
            return None
        own = np.ones(len(rows)) if weight is None else weight[rows]
        return codes[first], np.bincount(inverse, np.concatenate([self.few[1], own]), len(first))

    # -- reading ---------------------------------------------------------------------------

    def pairs(self, counts: Counts) -> Pairs:
        """Return the pairs in the codes of counts of the same rows."""
        classes = counts.classes or ()
        index = [
            positions(theirs, mine)
            for theirs, mine in zip((*counts.labels, classes), self.labels, strict=True)
        ]
        rows = self.held if self.few is None else self.few[0]
        codes = np.stack([own[rows[:, a]] for a, own in enumerate(index)], axis=1)
        if self.few is None:
            left, right = codes[0::2], codes[1::2]
            weight = np.ones(len(left))
        else:
            order = np.lexsort(codes.T[::-1])  # by values, not by arrival
            i, j = np.triu_indices(len(codes))
            left, right = codes[order][i], codes[order][j]
            share = self.few[1][order] / self.seen
            weight = share[i] * share[j] * np.where(i == j, 1, 2)
        relation = np.where(left[:, -1] == right[:, -1], 1.0, -1.0)
        return Pairs(left[:, :-1], right[:, :-1], relation, balanced(relation, weight))


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table, the class last, as codes of labels that only ever grow."""

    columns: list[Codes]
    index: list[np.ndarray]  # of each column's labels among ``labels``
    labels: tuple[tuple[Label, ...], ...]

    @classmethod
    def of(cls, table: Table, y: Any, rows: np.ndarray, labels: Sequence[Any]) -> Batch:
        """Read what ``rows`` needs: the classes of other rows stay unread where they can."""
        columns = [cast(Codes, column) for _, column in table]
        if isinstance(y, np.ndarray) and len(rows) < len(y):
            part = Table.of({"y": y[rows]}, {"y": "nominal"})["y"]
            codes = np.zeros(len(y), part.codes.dtype)
            codes[rows] = part.codes
            columns.append(Codes(codes, part.labels))
        else:
            columns.append(Table.of({"y": y}, {"y": "nominal"})["y"])
        every = tuple(
            tuple(union(old, column.labels)) for old, column in zip(labels, columns, strict=True)
        )
        index = [positions(own, column.labels) for own, column in zip(every, columns, strict=True)]
        return cls(columns, index, every)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Return some of the rows as codes of ``labels``."""
        columns = zip(self.index, self.columns, strict=True)
        return np.stack([i[c.codes[rows]] for i, c in columns], axis=1).astype(np.int32)


def balanced(relation: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return weights of sum one half over each relation; all zero if one of them is absent."""
    same = weight @ (relation > 0)
    other = weight @ (relation < 0)
    if not (same > 0 and other > 0):
        return np.zeros(len(weight))
    return weight / np.where(relation > 0, 2 * same, 2 * other)


def most_distinct(n_pairs: int) -> int:
    """Return the number of rows whose pairs, each with itself included, are at most so many."""
    return int((np.sqrt(8 * n_pairs + 1) - 1) // 2)


def uniform(seed: int, slot: np.ndarray, draw: np.ndarray) -> np.ndarray:
    """Return a number in (0, 1) that is a function of its arguments alone."""
    key = (slot.astype(np.uint64) << np.uint64(20)) + draw.astype(np.uint64)
    mixed = _mix(_mix(key) ^ _mix(np.full(1, seed, np.uint64)))
    return (mixed >> np.uint64(11)) * 2.0**-53 + 2.0**-54


def _mix(x: np.ndarray) -> np.ndarray:
    """Splitmix64: an integer in, one that looks random out."""
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
