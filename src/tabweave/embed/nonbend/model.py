"""The model of Non-BEND, which both inferences share [Zhu 2019, 5.3.1].

Rows and a prior come in; a fit goes out, with what it says of values and how likely it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import gammaln

from tabweave._compat import njit
from tabweave.columns.nominal import Codes
from tabweave.columns.sets import check_offsets
from tabweave.columns.table import Table, distinct_rows
from tabweave.columns.vocabulary import Vocabulary
from tabweave.counts.counts import Counts
from tabweave.embed.row_embedder import RowEmbedder
from tabweave.io.register import storable


class DistinctRowEmbedder(RowEmbedder):
    """A row embedder whose digest is the distinct rows, with their weights."""

    def _digested(self, digest: Any, table: Table, y: Any, weight: Any, counts: Counts) -> Any:
        rows = WeightedRows.of(table, counts, weight)
        if digest is None:
            return rows
        before = self._row_columns.coupled(self.counts_).vocabulary
        return digest.reindexed(before, counts.vocabulary).joined(rows)


@storable
@dataclass(frozen=True, eq=False)
class WeightedRows:
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

    cells: np.ndarray
    weight: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, table: Table, counts: Counts, weight: np.ndarray | None) -> WeightedRows:
        """Distinct rows of a table in the vocabulary of its counts."""
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

    @property
    def has_copies(self) -> bool:
        """Whether all weights are numbers of copies."""
        off = np.abs(np.rint(self.weight) - self.weight)
        return bool((off <= 1e-9 * np.minimum(self.weight, 1)).all())  # next to nothing is no copy

    def copies(self) -> np.ndarray:
        """Cells of every row as often as it occurs, or raise for a weight in between."""
        if not self.has_copies:
            fraction = self.weight[self.weight != np.rint(self.weight)][0]
            raise ValueError(
                f"expected whole numbers as weights of rows, which method='gibbs' samples one by "
                f"one, got {fraction:g}; round them, or use method='vi'"
            )
        return np.repeat(self.cells, np.rint(self.weight).astype(np.int64), axis=0)

    def distinct(self) -> WeightedRows:
        """Every row once, ordered by its values."""
        codes = self.cells - self.offsets[:-1].astype(np.int32)
        first, inverse = distinct_rows(list(codes.T))
        weight = np.bincount(inverse, self.weight, minlength=len(first))
        return WeightedRows(np.ascontiguousarray(self.cells[first]), weight, self.offsets)

    def joined(self, other: WeightedRows) -> WeightedRows:
        """Rows of both, which share one vocabulary."""
        cells = np.concatenate([self.cells, other.cells])
        return WeightedRows(
            cells, np.concatenate([self.weight, other.weight]), self.offsets
        ).distinct()

    def reindexed(self, old: Vocabulary, new: Vocabulary) -> WeightedRows:
        """Same rows in a larger vocabulary."""
        lookup = old.reindex(new).astype(np.int32)
        return WeightedRows(lookup[self.cells], self.weight, new.offsets)


@storable
@dataclass(frozen=True)
class Prior:
    """What is assumed before any row is seen.

    Attributes
    ----------
    alpha : float
        The concentration of the subspaces.
    alpha0 : float or ndarray of shape (V,)
        The pseudo-count of each value in a subspace.
    truncation : int
        Most subspaces.
    offsets : ndarray of shape (columns + 1,)
        Where each column starts among the V values.
    gaps : ndarray of int
        The values that stand for a missing cell which says nothing, at most one a column.
    """

    alpha: float
    alpha0: float | np.ndarray
    truncation: int
    offsets: np.ndarray
    gaps: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def pseudo_counts(self) -> np.ndarray:
        """α₀ of each value, 0 for gaps."""
        out = np.broadcast_to(np.asarray(self.alpha0, float), int(self.offsets[-1])).copy()
        out[self.gaps] = 0.0
        return out

    @property
    def gappy(self) -> np.ndarray:
        """Which columns have a gap."""
        out = np.zeros(len(self.offsets) - 1, dtype=bool)
        out[np.searchsorted(self.offsets, self.gaps, side="right") - 1] = True
        return out

    @property
    def totals(self) -> np.ndarray:
        """Σ α₀ over the values of each column."""
        if np.ndim(self.alpha0) == 0:
            return float(self.alpha0) * (np.diff(self.offsets) - self.gappy)
        return np.diff(np.concatenate([[0.0], np.cumsum(self.pseudo_counts)])[self.offsets])

    def seen(self, counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """How many rows of each subspace have a value, columns × subspaces."""
        out = np.repeat(np.asarray(sizes, float)[None], len(self.offsets) - 1, axis=0)
        out[self.gappy] -= counts[self.gaps]
        return np.maximum(out, 0.0)


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
        """Some of the subspaces, in the order given."""
        return replace(self, counts=self.counts[:, which], sizes=self.sizes[which])

    def occupied(self) -> Fit:
        """Subspaces that hold at least half a row, or half as much as the largest."""
        return self.chosen(self.sizes >= 0.5 * min(1.0, self.sizes.max()))


def locate(table: Table, counts: Counts, shift: int = 0) -> np.ndarray:
    """Cells (rows × columns) of a table, as indices among the values counted.

    A value that was not counted stands behind the last of its column, where the next column
    begins; ``shift=1`` leaves room for it by moving column a on by a.
    """
    vocabulary = counts.vocabulary
    for name, column in zip(vocabulary.names, vocabulary.find(table), strict=True):
        if not isinstance(column, Codes):
            raise ValueError(
                f"column {name!r} holds sets, expected one value per cell: use one yes/no column "
                f"per element, or leave the column out"
            )
    starts = vocabulary.offsets[:-1] + shift * np.arange(len(vocabulary))
    columns = zip(vocabulary.codes(table), starts, strict=True)
    out = [(codes + start).astype(np.int32) for codes, start in columns]
    return np.stack(out, axis=1) if out else np.zeros((table.n_rows, 0), np.int32)


def value_evidence(counts: np.ndarray, sizes: np.ndarray, prior: Prior) -> np.ndarray:
    """Per subspace what the values add to the bound at their best: log C(τ) − log C(α₀).

    C is as below Eq. (5.9), of all columns together.
    """
    pseudo, totals = prior.pseudo_counts, prior.totals
    present, varies = pseudo > 0, totals > 0
    of_values = gammaln(counts[present] + pseudo[present, None]).sum(axis=0)
    of_columns = gammaln(prior.seen(counts, sizes)[varies] + totals[varies, None]).sum(axis=0)
    of_prior = float(gammaln(pseudo[present]).sum() - gammaln(totals[varies]).sum())
    return of_values - of_columns - of_prior


def total_inertia(grams: list[np.ndarray], counts: Counts) -> float:
    """Rows' mean squared distance to their centroid under Grams of columns."""
    inertia = 0.0
    for a, gram in enumerate(grams):
        share = counts.value_counts[counts.span(a)] / counts.n
        inertia += float(share @ gram.diagonal() - share @ gram @ share)
    return inertia


@njit(nogil=True, cache=True)
def add_assigned(cells, weight, chosen, counts, sizes):
    """Add rows to the counts of the subspaces they are assigned to."""
    for i in range(len(cells)):
        t = chosen[i]
        sizes[t] += weight[i]
        for a in range(cells.shape[1]):
            counts[cells[i, a], t] += weight[i]
