"""What both inferences of Non-BEND share: rows and prior in, the fit they leave, its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from tabweave.counts.counts import Counts
from tabweave.io.register import storable
from tabweave.rows.table import Codes, Table, check_offsets, distinct_rows
from tabweave.rows.vocabulary import Vocabulary


@storable
@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct rows with multiplicities.

    Attributes
    ----------
    cells : ndarray of shape (rows, columns), int32
        The value of each cell, as its index among the V values of all columns.
    weight : ndarray of shape (rows,)
        How often each row occurs.
    offsets : ndarray of shape (columns + 1,)
        Where each column starts among the V values; V comes last.
    """

    _renamed: ClassVar[dict[str, str]] = {"places": "cells"}

    cells: np.ndarray
    weight: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, table: Table, counts: Counts, weight: np.ndarray | None) -> Rows:
        """Return the distinct rows of a table in the vocabulary of its counts."""
        cells = locate(table, counts)
        if weight is None:
            weight = np.ones(len(cells))
        return cls(cells[weight > 0], weight[weight > 0].astype(float), counts.offsets).distinct()

    def _check_loaded(self) -> None:
        check_offsets(self.offsets, self.n_values)
        inside = (self.cells >= self.offsets[:-1]) & (self.cells < self.offsets[1:])
        if self.cells.dtype.kind != "i" or not inside.all():
            raise ValueError(f"expected cells of {self.n_values} values, got others")

    @property
    def sizes(self) -> np.ndarray:
        """Number of values of each column."""
        return np.diff(self.offsets)

    @property
    def n_values(self) -> int:
        """Number of values of all columns together."""
        return int(self.offsets[-1])

    @property
    def total(self) -> float:
        """Number of rows, repeated ones included."""
        return float(self.weight.sum())

    def distinct(self) -> Rows:
        """Return every row once, ordered by its values."""
        codes = self.cells - self.offsets[:-1].astype(np.int32)
        first, inverse = distinct_rows(list(codes.T))
        weight = np.bincount(inverse, self.weight, minlength=len(first))
        return Rows(np.ascontiguousarray(self.cells[first]), weight, self.offsets)

    def joined(self, other: Rows) -> Rows:
        """Return the rows of both, which share one vocabulary."""
        cells = np.concatenate([self.cells, other.cells])
        return Rows(cells, np.concatenate([self.weight, other.weight]), self.offsets).distinct()

    def reindexed(self, old: Vocabulary, new: Vocabulary) -> Rows:
        """Return the same rows in a larger vocabulary."""
        lookup = old.reindex(new).astype(np.int32)
        return Rows(lookup[self.cells], self.weight, new.offsets)


@storable
@dataclass(frozen=True)
class Prior:
    """The concentrations: α of the subspaces, α₀ of each value in a subspace; most subspaces."""

    alpha: float
    alpha0: float
    truncation: int
    offsets: np.ndarray


@storable
@dataclass(frozen=True, eq=False)
class Fit:
    """What inference leaves: how much of the table each subspace holds.

    Attributes
    ----------
    counts : ndarray of shape (V, subspaces)
        Expected number of rows of each subspace that have each value.
    sizes : ndarray of shape (subspaces,)
        Expected number of rows of each subspace, largest first.
    trace : tuple of float
        The objective after each step: the lower bound, or the log joint probability of Gibbs.
    """

    counts: np.ndarray
    sizes: np.ndarray
    trace: tuple[float, ...] = field(default=())

    def chosen(self, which: np.ndarray) -> Fit:
        """Return some of the subspaces, in the order given."""
        return replace(self, counts=self.counts[:, which], sizes=self.sizes[which])

    def occupied(self) -> Fit:
        """Return the subspaces that hold at least half a row, or half as much as the largest."""
        return self.chosen(self.sizes >= 0.5 * min(1.0, self.sizes.max()))


def locate(table: Table, counts: Counts, shift: int = 0) -> np.ndarray:
    """Return the cells (rows × columns) of a table, as indices among the values counted.

    A value that was not counted stands behind the last of its column, where the next column
    begins; ``shift=1`` leaves room for it by moving column a on by a.
    """
    vocabulary = counts.vocabulary
    for name, column in zip(vocabulary.names, vocabulary.find(table), strict=True):
        if not isinstance(column, Codes):
            raise ValueError(
                f"column {name!r} holds sets; NonBEND models one value a cell: give each element "
                "a column of its own (present or absent), or leave the column out"
            )
    starts = vocabulary.offsets[:-1] + shift * np.arange(len(vocabulary))
    columns = zip(vocabulary.codes(table), starts, strict=True)
    out = [(codes + start).astype(np.int32) for codes, start in columns]
    return np.stack(out, axis=1) if out else np.zeros((table.n_rows, 0), np.int32)


def log_prior_normaliser(prior: Prior) -> float:
    """Log C(α₀) of all columns together, C as below Eq. (5.9)."""
    widths = np.diff(prior.offsets)
    return float((widths * gammaln(prior.alpha0) - gammaln(widths * prior.alpha0)).sum())


def value_evidence(counts: np.ndarray, sizes: np.ndarray, prior: Prior) -> np.ndarray:
    """Return per subspace what the values add to the bound at their best: log C(τ) − log C(α₀)."""
    widths = np.diff(prior.offsets)
    own = gammaln(counts + prior.alpha0).sum(axis=0)
    both = gammaln(sizes + prior.alpha0 * widths[:, None]).sum(axis=0)
    return own - both - log_prior_normaliser(prior)


def total_inertia(grams: list[np.ndarray], counts: Counts) -> float:
    """Return the rows' mean squared distance to their centroid under Grams of columns."""
    inertia = 0.0
    for a, gram in enumerate(grams):
        share = counts.value_counts[counts.span(a)] / counts.n
        inertia += float(share @ gram.diagonal() - share @ gram @ share)
    return inertia
