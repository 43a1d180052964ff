"""Collapsed Gibbs sampling for Non-BEND [Zhu 2019, 5.3.2.1, Algorithm 1].

Each row in turn leaves its subspace and draws one anew, given the value counts of all others,
Eq. (5.11). All logarithms are looked up by count, and there is no limit to the subspaces. Below it
what both inferences share: rows and prior in, the fit they leave, its evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import gammaln

from tabweave._compat import Interval, StrOptions
from tabweave.base import ValueEmbedder, require_rows
from tabweave.counts.counts import Counts, checked_weight
from tabweave.engines import read_with_classes
from tabweave.engines.progress import ProgressCallback
from tabweave.io.register import storable
from tabweave.rows.table import Codes, Schema, Table, check_offsets, distinct_rows
from tabweave.rows.vocabulary import Vocabulary

_SAMPLE_ROWS, _SAMPLE_SWEEPS = 5_000, 20


@storable
@dataclass(frozen=True)
class Gibbs:
    """Settings of collapsed Gibbs sampling.

    Parameters
    ----------
    burn_in : float, default=0.5
        Share of the sweeps that do not count.
    assignment : {"mode", "last"}, default="mode"
        Subspace of a row: the one it was in most often after burn-in, as Algorithm 1 has it, or
        the last one.
    n_init : int, default=1
        Chains of each fit; the one with the highest joint probability is kept.
    truncation : int, default=30
        Subspaces to start with, at least 2; there is no limit to them later.
    max_iter : int, default=100
        Sweeps of a chain.
    progress : callable, optional
        Called with a :class:`~tabweave.engines.Progress` after each fit; its note is the fit.
    missing : {"value", "marginal"}, default="value"
        Whether missing is a value of its own, or says nothing: the cell is summed out, and lies
        where its column does on average.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "burn_in": [Interval(Real, 0, 1, closed="left")],
        "assignment": [StrOptions({"mode", "last"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "truncation": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "progress": [callable, None],
        "missing": [StrOptions({"value", "marginal"})],
    }
    _former: ClassVar[dict[str, tuple[Any, ...]]] = {"verbose": ()}

    burn_in: float = 0.5
    assignment: str = "mode"
    n_init: int = 1
    truncation: int = 30
    max_iter: int = 100
    progress: ProgressCallback | None = None
    missing: str = "value"

    def run(self, rows: Rows, prior: Prior, rng: np.random.Generator) -> Fit:
        """Return the best of ``n_init`` chains of ``max_iter`` sweeps."""
        chains = [self._chain(expanded(rows), prior, rng) for _ in range(self.n_init)]
        return max(chains, key=lambda fit: fit.trace[-1])

    def _chain(self, cells: np.ndarray, prior: Prior, rng: np.random.Generator) -> Fit:
        from tabweave.embed.kernels import tally

        n_first = min(prior.truncation, len(cells))
        sampler = Sampler(cells, prior, rng.integers(n_first, size=len(cells)))
        votes = np.zeros((len(cells), 0), np.uint32)
        trace = []
        for number in range(self.max_iter):
            sampler.sweep(rng)
            trace.append(sampler.log_joint())
            if self.assignment == "mode" and number >= int(self.burn_in * self.max_iter):
                missing = len(sampler.sizes) - votes.shape[1]
                votes = np.pad(votes, ((0, 0), (0, missing))) if missing else votes
                tally(sampler.assignment, votes)
        chosen = votes.argmax(axis=1) if votes.shape[1] else sampler.assignment
        return fit_of(cells, chosen, prior, trace)


class Sampler:
    """The state of a chain: the rows' subspaces, and the counts and logarithms that follow."""

    def __init__(self, cells: np.ndarray, prior: Prior, assignment: np.ndarray) -> None:
        self.prior = prior
        self.assignment = np.asarray(assignment, np.int64).copy()
        self.n_slots = int(self.assignment.max()) + 1
        sizes = np.arange(len(cells) + 1.0)
        with np.errstate(divide="ignore"):
            self._log_of_size = np.log(sizes)
        gappy = prior.gappy
        self._log_rest = np.zeros(len(sizes))
        for total, number in zip(*np.unique(prior.totals[~gappy], return_counts=True), strict=True):
            self._log_rest += number * np.log(sizes + total)
        given, kinds = np.unique(prior.pseudo_counts, return_inverse=True)
        logs = [np.log(sizes + x) if x else np.zeros(len(sizes)) for x in given]  # gaps add nothing
        self.cells = cells
        if gappy.any():
            # Their columns have fewer values than rows: an entry of their own counts them and takes
            # that logarithm off; another, for rows with a gap, does nothing.
            rest, own = np.unique(prior.totals[gappy], return_inverse=True)
            nothing = np.full(len(own), len(logs) + len(rest))
            kinds = np.concatenate([kinds, len(logs) + own, nothing])
            logs += [-np.log(sizes + x) if x else np.zeros(len(sizes)) for x in rest]
            logs += [np.zeros(len(sizes))]
            self.cells = self._with_gaps(cells, np.flatnonzero(gappy))
        self._kinds, self._log_of_count = kinds, np.stack(logs)
        self._count(self.n_slots + 8)

    def _with_gaps(self, cells: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Add an entry a column with gaps to each row: its count of values, or none."""
        first = int(self.prior.offsets[-1])
        absent = np.isin(cells[:, columns], self.prior.gaps)
        more = first + np.arange(len(columns)) + np.where(absent, len(columns), 0)
        return np.ascontiguousarray(np.hstack([cells, more]), dtype=np.int32)

    def _count(self, capacity: int) -> None:
        from tabweave.embed.kernels import add_assigned

        self.counts = np.zeros((len(self._kinds), capacity), np.int64)
        self.sizes = np.zeros(capacity, np.int64)
        ones = np.ones(len(self.cells), np.int64)
        add_assigned(self.cells, ones, self.assignment, self.counts, self.sizes)
        self._logs = self._log_of_count[self._kinds[:, None], self.counts]

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw every row's subspace anew, in random order."""
        from tabweave.embed.kernels import sweep

        n = len(self.cells)
        order, uniforms = rng.permutation(n), rng.random(n)
        done = 0
        while done < n:
            done, self.n_slots = sweep(
                done, order, self.cells, uniforms, self.assignment, self.counts, self._logs,
                self.sizes, self._kinds, self._log_of_count, self._log_of_size, self._log_rest,
                np.log(self.prior.alpha), self.n_slots,
            )  # fmt: skip
            if done < n:
                self._count(2 * len(self.sizes))

    def log_joint(self) -> float:
        """Return log P(X, z): the Chinese restaurant process and the values' evidence."""
        used, n_values = self.sizes > 0, int(self.prior.offsets[-1])
        return log_joint(self.counts[:n_values, used], self.sizes[used], self.prior)


def log_joint(counts: np.ndarray, sizes: np.ndarray, prior: Prior) -> float:
    """Eqs. (5.8), (5.9): log probability of a partition of the rows and of their values."""
    alpha, n = prior.alpha, sizes.sum()
    partition = len(sizes) * np.log(alpha) + gammaln(sizes).sum()
    partition += gammaln(alpha) - gammaln(alpha + n)
    return float(partition + value_evidence(counts, sizes, prior).sum())


def fit_of(cells: np.ndarray, chosen: np.ndarray, prior: Prior, trace: list[float]) -> Fit:
    """Return the counts of assigned rows, largest subspace first."""
    from tabweave.embed.kernels import add_assigned

    _, chosen = np.unique(chosen, return_inverse=True)
    n_subspaces = int(chosen.max()) + 1
    counts, sizes = np.zeros((int(prior.offsets[-1]), n_subspaces)), np.zeros(n_subspaces)
    add_assigned(cells, np.ones(len(cells)), chosen, counts, sizes)
    return Fit(counts, sizes, tuple(trace)).chosen(np.argsort(-sizes, kind="stable"))


def is_whole(weight: np.ndarray) -> bool:
    """Return whether weights are numbers of copies."""
    return bool((np.abs(np.rint(weight) - weight) < 1e-9).all())


def expanded(rows: Rows) -> np.ndarray:
    """Return every row as often as it occurs: copies may sit in different subspaces."""
    if not is_whole(rows.weight):
        odd = rows.weight[rows.weight != np.rint(rows.weight)][0]
        raise ValueError(
            f"a row has weight {odd:g}; method='gibbs' samples whole rows: use whole numbers, or "
            "method='vi'"
        )
    return np.repeat(rows.cells, np.rint(rows.weight).astype(np.int64), axis=0)


def sampled_fit(rows: Rows, prior: Prior, rng: np.random.Generator) -> Fit:
    """Return a start for variational inference: a short chain over rows, or a sample of them.

    The largest ``truncation`` subspaces are kept, with their counts scaled up to all rows.
    """
    if rows.total <= _SAMPLE_ROWS and is_whole(rows.weight):
        cells = expanded(rows)
    else:
        share = rows.weight / rows.total
        cells = rows.cells[np.sort(rng.choice(len(share), _SAMPLE_ROWS, p=share))]
    first = rng.integers(min(prior.truncation, len(cells)), size=len(cells))
    sampler = Sampler(cells, prior, first)
    for _ in range(_SAMPLE_SWEEPS):
        sampler.sweep(rng)
    fit = fit_of(cells, sampler.assignment, prior, [])
    scale = rows.total / fit.sizes.sum()
    most = min(len(fit.sizes), prior.truncation, len(rows.cells))
    kept = fit.chosen(np.arange(most))
    return Fit(kept.counts * scale, kept.sizes * scale)


# -- what both inferences share: rows and prior in, the fit they leave, its evidence ------------


class RowKeeper(ValueEmbedder):
    """A value embedder that needs rows more than once: distinct rows are kept, with weights."""

    _needs_rows = True
    _distinct: Rows

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows; ``y`` is ignored, a weight of 2 is the same as having a row twice."""
        self._validate_params()
        return self._first_rows(X, y, sample_weight).learn()

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the distinct rows seen so far; same result as one ``fit`` on all of them."""
        self._validate_params()
        if "counts_" not in vars(self):
            return self._first_rows(X, y, sample_weight)
        if "_distinct" not in vars(self):
            raise ValueError("rows of fit_batches are not kept; call fit_batches with all of them")
        X, y = read_with_classes(X, y)
        table = self._read_fitted(X)
        more = Counts.of(table, sample_weight=sample_weight)
        counts = self.counts_ + more
        if more.schema is not None:
            rows = Rows.of(table, counts, checked_weight(sample_weight, table.n_rows))
            older = self._distinct.reindexed(self.counts_.vocabulary, counts.vocabulary)
            self._distinct = older.joined(rows)
        return self._hold(counts)

    def _first_rows(self, X: Any, y: Any, sample_weight: Any) -> Self:
        X, y = read_with_classes(X, y)
        table = self._read(X, Schema.of(self.schema))
        require_rows(table)
        counts = Counts.of(table, sample_weight=sample_weight)
        if counts.schema is not None:
            weight = checked_weight(sample_weight, table.n_rows)
            self._distinct = Rows.of(table, counts, weight)
        return self._start(counts)

    def fit_counts(self, counts: Counts) -> Self:
        """Raise: which values share a row, beyond pairs, cannot be read from counts."""
        raise TypeError(
            f"expected rows, got counts: {type(self).__name__} looks at whole rows; use fit(rows)"
        )


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
        """Return how many rows of each subspace have a value, columns × subspaces."""
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
                f"column {name!r} holds sets, expected one value a cell: give each element "
                "a column of its own (present or absent), or leave the column out"
            )
    starts = vocabulary.offsets[:-1] + shift * np.arange(len(vocabulary))
    columns = zip(vocabulary.codes(table), starts, strict=True)
    out = [(codes + start).astype(np.int32) for codes, start in columns]
    return np.stack(out, axis=1) if out else np.zeros((table.n_rows, 0), np.int32)


def log_prior_normaliser(prior: Prior) -> float:
    """Log C(α₀) of all columns together, C as below Eq. (5.9)."""
    pseudo, totals = prior.pseudo_counts, prior.totals
    return float(gammaln(pseudo[pseudo > 0]).sum() - gammaln(totals[totals > 0]).sum())


def value_evidence(counts: np.ndarray, sizes: np.ndarray, prior: Prior) -> np.ndarray:
    """Return per subspace what the values add to the bound at their best: log C(τ) − log C(α₀)."""
    pseudo, totals = prior.pseudo_counts, prior.totals
    told, held = pseudo > 0, totals > 0
    own = gammaln(counts[told] + pseudo[told, None]).sum(axis=0)
    both = gammaln(prior.seen(counts, sizes)[held] + totals[held, None]).sum(axis=0)
    return own - both - log_prior_normaliser(prior)


def total_inertia(grams: list[np.ndarray], counts: Counts) -> float:
    """Return the rows' mean squared distance to their centroid under Grams of columns."""
    inertia = 0.0
    for a, gram in enumerate(grams):
        share = counts.value_counts[counts.span(a)] / counts.n
        inertia += float(share @ gram.diagonal() - share @ gram @ share)
    return inertia
