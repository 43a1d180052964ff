"""Non-BEND: a table untangled into independent parts [Zhu 2019, ch. 5].

Explains the table as a Dirichlet-process mixture of subspaces in which columns are independent,
and represents each value by how likely it is in each of them. The mixture is a model of the table
as well: it scores rows, draws new ones and gives back the table's distribution. Unlike most of
tabweave it needs rows more than once: distinct rows are kept, or batches are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from numbers import Integral, Real
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import betaln, digamma, gammaln
from sklearn.utils import check_random_state

from tabweave._compat import Interval, StrOptions, in_threads, njit, validate_parameter_constraints
from tabweave.columns.column import Schema
from tabweave.columns.inputs import check_categorical
from tabweave.columns.sets import check_offsets
from tabweave.columns.table import Table, append_rows, distinct_rows, remember_names, take_rows
from tabweave.columns.vocabulary import Vocabulary
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import check_table_size
from tabweave.embed.base import RowEmbedder, ValueEmbedder
from tabweave.embed.register import embedder
from tabweave.engines.progress import ProgressCallback, progress_reporter
from tabweave.engines.reading import by_parts, read_fitted, read_rows
from tabweave.io.register import storable
from tabweave.space.value_tables import ValueTables

# -- The model of Non-BEND, which both inferences share [Zhu 2019, 5.3.1] -------------------------
#
# Rows and a prior come in; a fit goes out, with what it says of values and how likely it is.


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
        if column.is_set:
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


# -- Collapsed Gibbs sampling for Non-BEND [Zhu 2019, 5.3.2.1, Algorithm 1] -----------------------
#
# Each row in turn leaves its subspace and draws one anew, given the value counts of all others,
# Eq. (5.11). All logarithms are looked up by count, and there is no limit to the subspaces.


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

    burn_in: float = 0.5
    assignment: str = "mode"
    n_init: int = 1
    truncation: int = 30
    max_iter: int = 100
    progress: ProgressCallback | None = None
    missing: str = "value"

    def run(self, rows: WeightedRows, prior: Prior, rng: np.random.Generator) -> Fit:
        """Best of ``n_init`` chains of ``max_iter`` sweeps."""
        cells = rows.copies()  # which may sit in different subspaces
        chains = [self._chain(cells, prior, rng) for _ in range(self.n_init)]
        return max(chains, key=lambda fit: fit.trace[-1])

    def _chain(self, cells: np.ndarray, prior: Prior, rng: np.random.Generator) -> Fit:
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
        pseudo_counts, kinds = np.unique(prior.pseudo_counts, return_inverse=True)
        logs = [
            np.log(sizes + x) if x else np.zeros(len(sizes)) for x in pseudo_counts
        ]  # gaps add nothing
        self.cells = cells
        if gappy.any():
            # Their columns have fewer values than rows: an entry of their own counts them and takes
            # that logarithm off; another, for rows with a gap, does nothing.
            totals, column_kinds = np.unique(prior.totals[gappy], return_inverse=True)
            nothing = np.full(len(column_kinds), len(logs) + len(totals))
            kinds = np.concatenate([kinds, len(logs) + column_kinds, nothing])
            logs += [-np.log(sizes + x) if x else np.zeros(len(sizes)) for x in totals]
            logs += [np.zeros(len(sizes))]
            self.cells = self._with_gaps(cells, np.flatnonzero(gappy))
        self._kinds, self._log_of_count = kinds, np.stack(logs)
        self._count(self.n_slots + 8)

    def _with_gaps(self, cells: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Add an entry a column with gaps to each row: its count of values, or none."""
        first = int(self.prior.offsets[-1])
        absent = np.isin(cells[:, columns], self.prior.gaps)
        entries = first + np.arange(len(columns)) + np.where(absent, len(columns), 0)
        return np.ascontiguousarray(np.hstack([cells, entries]), dtype=np.int32)

    def _count(self, capacity: int) -> None:
        self.counts = np.zeros((len(self._kinds), capacity), np.int64)
        self.sizes = np.zeros(capacity, np.int64)
        ones = np.ones(len(self.cells), np.int64)
        add_assigned(self.cells, ones, self.assignment, self.counts, self.sizes)
        self._logs = self._log_of_count[self._kinds[:, None], self.counts]

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw every row's subspace anew, in random order."""
        n = len(self.cells)
        draws = rng.permutation(n), rng.random(n)
        values = self._kinds, self._log_of_count
        subspaces = self._log_of_size, self._log_rest, np.log(self.prior.alpha)
        done = 0
        while done < n:
            state = self.counts, self._logs, self.sizes
            done, self.n_slots = sweep(
                done, draws, self.cells, self.assignment, state, values, subspaces, self.n_slots
            )
            if done < n:
                self._count(2 * len(self.sizes))

    def log_joint(self) -> float:
        """Log P(X, z): the Chinese restaurant process and the values' evidence."""
        used, n_values = self.sizes > 0, int(self.prior.offsets[-1])
        return log_joint(self.counts[:n_values, used], self.sizes[used], self.prior)


def log_joint(counts: np.ndarray, sizes: np.ndarray, prior: Prior) -> float:
    """Eqs. (5.8), (5.9): log probability of a partition of the rows and of their values."""
    alpha, n = prior.alpha, sizes.sum()
    partition = len(sizes) * np.log(alpha) + gammaln(sizes).sum()
    partition += gammaln(alpha) - gammaln(alpha + n)
    return float(partition + value_evidence(counts, sizes, prior).sum())


def sampled_fit(
    rows: WeightedRows,
    prior: Prior,
    rng: np.random.Generator,
    *,
    max_rows: int = 5_000,
    n_sweeps: int = 20,
) -> Fit:
    """A start for variational inference: a short chain over rows, or a sample of them.

    The largest ``truncation`` subspaces are kept, with their counts scaled up to all rows.
    """
    if rows.total <= max_rows and rows.has_copies:
        cells = rows.copies()
    else:
        share = rows.weight / rows.total
        cells = rows.cells[np.sort(rng.choice(len(share), max_rows, p=share))]
    first = rng.integers(min(prior.truncation, len(cells)), size=len(cells))
    sampler = Sampler(cells, prior, first)
    for _ in range(n_sweeps):
        sampler.sweep(rng)
    fit = fit_of(cells, sampler.assignment, prior, [])
    scale = rows.total / fit.sizes.sum()
    n_subspaces = min(len(fit.sizes), prior.truncation, len(rows.cells))
    largest = fit.chosen(np.arange(n_subspaces))
    return Fit(largest.counts * scale, largest.sizes * scale)


def fit_of(cells: np.ndarray, chosen: np.ndarray, prior: Prior, trace: list[float]) -> Fit:
    """Counts of assigned rows, largest subspace first."""
    _, chosen = np.unique(chosen, return_inverse=True)
    n_subspaces = int(chosen.max()) + 1
    counts, sizes = np.zeros((int(prior.offsets[-1]), n_subspaces)), np.zeros(n_subspaces)
    add_assigned(cells, np.ones(len(cells)), chosen, counts, sizes)
    return Fit(counts, sizes, tuple(trace)).chosen(np.argsort(-sizes, kind="stable"))


# -- compiled loops -------------------------------------------------------------------------------
# Tables over values lie as (V, subspaces), so that the entries of one value for all subspaces are
# neighbours and the loop over subspaces runs in vector registers.


@njit(nogil=True, cache=True)
def move(row, t, step, state, values):
    """Add (``step=1``) or take (``-1``) a row to or from subspace t; logs follow the counts."""
    counts, logs, sizes = state
    kinds, log_of_count = values
    sizes[t] += step
    for a in range(len(row)):
        v = row[a]
        counts[v, t] += step
        logs[v, t] = log_of_count[kinds[v], counts[v, t]]


@njit(nogil=True, cache=True, error_model="numpy")
def _choose(scores, n_slots, uniform):
    """Draw a slot with probability proportional to the exponential of its score."""
    top = -np.inf
    for t in range(n_slots):
        top = max(top, scores[t])
    total = 0.0
    for t in range(n_slots):
        gap = scores[t] - top
        if gap > -38.0:  # below, exp is less than half a unit in the last place of 1
            total += np.exp(gap)
        scores[t] = total
    aim = uniform * total
    for t in range(n_slots):
        if scores[t] > aim:
            return t
    return n_slots - 1


@njit(nogil=True, cache=True, error_model="numpy")
def sweep(first, draws, cells, assignment, state, values, subspaces, n_slots):
    """Eq. (5.11) for every row from ``first`` on; return (next row, number of slots in use).

    ``draws`` is (order of the rows, a uniform number for each), ``state`` (counts, logs, sizes),
    ``values`` (kinds, log_of_count), where ``log_of_count[kinds[v], m]`` is what a value adds that
    m rows have, and ``subspaces`` (log_of_size, log_rest, log α), where ``log_rest[m]`` is the sum
    over columns of log(m + Σα₀). An empty slot holds the counts of a new subspace, all zero, so the
    case of a new subspace is the same sum with α for its size; only the first empty slot takes
    part. Returns early when every slot is taken, to be called again with more of them.
    """
    order, uniforms = draws
    _, logs, sizes = state
    log_of_size, log_rest, log_alpha = subspaces
    scores = np.empty(len(sizes))
    for k in range(first, len(order)):
        i = order[k]
        row = cells[i]
        move(row, assignment[i], -1, state, values)
        empty = -1
        for t in range(n_slots):
            scores[t] = log_of_size[sizes[t]] - log_rest[sizes[t]]
            if sizes[t] == 0:
                scores[t] = -np.inf if empty >= 0 else log_alpha - log_rest[0]
                empty = t if empty < 0 else empty
        if empty < 0:
            if n_slots == len(sizes):
                move(row, assignment[i], 1, state, values)
                return k, n_slots
            scores[n_slots] = log_alpha - log_rest[0]
            n_slots += 1
        for a in range(len(row)):
            entries = logs[row[a]]
            for t in range(n_slots):
                scores[t] += entries[t]
        assignment[i] = _choose(scores, n_slots, uniforms[k])
        move(row, assignment[i], 1, state, values)
    return len(order), n_slots


@njit(nogil=True, cache=True)
def tally(assignment, votes):
    """Add one vote for the subspace of each row."""
    for i in range(len(assignment)):
        votes[i, assignment[i]] += 1


# -- Variational inference for Non-BEND [Zhu 2019, 5.3.2.2] ---------------------------------------
#
# Coordinate ascent on the evidence lower bound of a truncated stick-breaking mixture. A pass over
# the rows leaves only expected counts (V × subspaces), so memory does not grow with rows and the
# same code runs over batches that are read again for every pass.

Passes = Callable[[], Iterable[WeightedRows]]


@storable
@dataclass(frozen=True)
class VI:
    """Settings of variational inference.

    Parameters
    ----------
    start : {"sweeps", "random", "rows"}, default="sweeps"
        First subspaces: a few sweeps of Gibbs sampling over at most 5,000 rows, rows assigned at
        random, or each row with the nearest of some rows.
    n_init : int, default=1
        Starts of each fit; the one with the highest bound is kept.
    tol : float, default=1e-6
        Stop when the bound gains less than this share of its size.
    merge : bool, default=False
        Try to unite subspaces at the end, and keep what raises the bound: fewer, cleaner ones.
    truncation : int, default=30
        Most subspaces, at least 2.
    max_iter : int, default=100
        Most steps of a fit.
    progress : callable, optional
        Called with a :class:`~tabweave.engines.Progress` after each fit; its note is the fit.
    missing : {"value", "marginal"}, default="value"
        As in :class:`Gibbs`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "start": [StrOptions({"sweeps", "random", "rows"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "tol": [Real],
        "merge": ["boolean"],
        "truncation": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "progress": [callable, None],
        "missing": [StrOptions({"value", "marginal"})],
    }

    start: str = "sweeps"
    n_init: int = 1
    tol: float = 1e-6
    merge: bool = False
    truncation: int = 30
    max_iter: int = 100
    progress: ProgressCallback | None = None
    missing: str = "value"

    def run(self, rows: WeightedRows, prior: Prior, rng: np.random.Generator) -> Fit:
        """Best of ``n_init`` fits."""
        fits = []
        for _ in range(self.n_init):
            first = first_fit(rows, prior, self.start, rng)
            fits.append(self.ascend(lambda: (rows,), first, prior))
        return max(fits, key=lambda fit: fit.trace[-1])

    def ascend(self, passes: Passes, first: Fit, prior: Prior) -> Fit:
        """Climb the bound from a first fit; ``passes()`` yields all rows, batch by batch."""
        fit = self._climb(passes, first, prior, self.max_iter)
        tried: set[tuple[int, int]] = set()
        while self.merge and len(fit.trace) < self.max_iter and len(tried) < 8:
            pair = best_merge(fit, prior, tried)
            if pair is None:
                break
            steps = min(5, self.max_iter - len(fit.trace))
            united = self._climb(passes, merged(fit, *pair), prior, steps)
            if united.trace[-1] > fit.trace[-1]:
                remaining = self.max_iter - len(united.trace)
                fit, tried = self._climb(passes, united, prior, remaining), set()
            else:
                tried.add(pair)
        return fit

    def _climb(self, passes: Passes, fit: Fit, prior: Prior, max_iter: int) -> Fit:
        for _ in range(max_iter):
            previous, fit = fit, step(passes, tidied(fit, prior), prior)
            if previous.trace and fit.trace[-1] - previous.trace[-1] < self.tol * abs(
                fit.trace[-1]
            ):
                break
        return tidied(fit, prior)


# -- starts ------------------------------------------------------------------------------------


def first_fit(
    rows: WeightedRows, prior: Prior, kind: str, rng: np.random.Generator, *, log_odds: float = 50.0
) -> Fit:
    """A first guess: rows in random subspaces, or with the nearest of some rows."""
    if kind == "sweeps":
        return sampled_fit(rows, prior, rng)
    n_subspaces = min(prior.truncation, len(rows.cells))
    counts, sizes = np.zeros((rows.n_values, n_subspaces)), np.zeros(n_subspaces)
    if kind == "random":
        cells = rows.copies() if rows.has_copies else rows.cells
        weight = np.ones(len(cells)) if rows.has_copies else rows.weight
        add_assigned(cells, weight, rng.integers(n_subspaces, size=len(cells)), counts, sizes)
        return Fit(counts, sizes)
    share = rows.weight / rows.weight.sum()
    seeds = rng.choice(len(rows.cells), n_subspaces, replace=False, p=share)
    for t, seed in enumerate(seeds):
        counts[rows.cells[seed], t] = log_odds
    counts[prior.gaps] = 0.0
    _, counts, sizes = expect(rows.cells, rows.weight, np.zeros(n_subspaces), counts)
    return Fit(counts, sizes)


# -- one step ----------------------------------------------------------------------------------


def step(passes: Passes, fit: Fit, prior: Prior) -> Fit:
    """Eqs. (5.18)–(5.25): update sticks and values, then the rows' subspaces, in one pass."""
    log_stick, stick_gap = stick_expectations(fit.sizes, prior.alpha)
    log_value, value_gap = value_expectations(fit.counts, fit.sizes, prior)
    counts, sizes = np.zeros_like(fit.counts), np.zeros_like(fit.sizes)
    bound = -stick_gap - value_gap
    for rows in passes():
        batch_bound, batch_counts, batch_sizes = expect(
            rows.cells, rows.weight, log_stick, log_value
        )
        bound += batch_bound
        counts += batch_counts
        sizes += batch_sizes
    return Fit(counts, sizes, (*fit.trace, bound))


def stick_expectations(sizes: np.ndarray, alpha: float) -> tuple[np.ndarray, float]:
    """Eqs. (5.18), (5.19), (5.23), (5.24): E[log π_t], and KL(q(V) ‖ p(V)).

    Erratum: the sum of E[log(1−V_l)] in (5.22) stops at l = t−1. The last stick takes what is
    left: V = 1.
    """
    gamma1 = 1.0 + sizes[:-1]
    gamma2 = alpha + np.cumsum(sizes[::-1])[::-1][1:]
    digamma_of_sum = digamma(gamma1 + gamma2)
    log_v, log_rest = digamma(gamma1) - digamma_of_sum, digamma(gamma2) - digamma_of_sum
    gap = betaln(1.0, alpha) - betaln(gamma1, gamma2)
    gap = gap + (gamma1 - 1.0) * log_v + (gamma2 - alpha) * log_rest
    log_pi = np.append(log_v, 0.0) + np.concatenate([[0.0], np.cumsum(log_rest)])
    return log_pi, float(gap.sum())


def value_expectations(
    counts: np.ndarray, sizes: np.ndarray, prior: Prior
) -> tuple[np.ndarray, float]:
    """Eqs. (5.20), (5.25): E[log θ] as (V, subspaces), and KL(q(θ) ‖ p(θ)).

    Erratum: the digamma of the sum in (5.25) runs over the values of the column.
    """
    pseudo, widths = prior.pseudo_counts, np.diff(prior.offsets)
    present = pseudo > 0
    tau = counts[present] + pseudo[present, None]
    # a row has one value in each column, or a gap, so τ of a column sums to those and the prior
    tau_sum = np.repeat(prior.seen(counts, sizes) + prior.totals[:, None], widths, axis=0)[present]
    log_theta = np.zeros(counts.shape)  # what a gap says
    log_theta[present] = digamma(tau) - digamma(tau_sum)
    gap = -value_evidence(counts, sizes, prior).sum() + (counts * log_theta).sum()
    return log_theta, float(gap)


# -- passes over the rows -------------------------------------------------------------------------
# Tables over values lie as (V, subspaces), so that the loop over subspaces runs in vector
# registers. No loop stores the rows × subspaces matrix of responsibilities.


def expect(
    cells: np.ndarray, weight: np.ndarray, base: np.ndarray, values: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Eqs. (5.18)–(5.22): one pass over the rows.

    Returns the weighted sum of log normalisers, the expected value counts (V, subspaces) and the
    expected sizes (subspaces).
    """
    parts = _blocks(len(cells), values.nbytes)
    counts = np.zeros((len(parts), *values.shape))
    sizes = np.zeros((len(parts), len(base)))
    totals = np.zeros(len(parts))

    def work(b: int) -> None:
        rows = parts[b]
        totals[b] = _expect(cells[rows], weight[rows], base, values, counts[b], sizes[b])

    in_threads(work, range(len(parts)))
    return float(totals.sum()), counts.sum(axis=0), sizes.sum(axis=0)


def assign(
    cells: np.ndarray, base: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Likeliest subspace of each row and its log normaliser (log density)."""
    chosen = np.empty(len(cells), np.intp)
    normaliser = np.empty(len(cells))

    def work(rows: slice) -> None:
        _assign(cells[rows], base, values, chosen[rows], normaliser[rows])

    in_threads(work, _blocks(len(cells), 1))
    return chosen, normaliser


def _blocks(
    n_rows: int, bytes_each: int, *, block_rows: int = 1 << 12, max_bytes: int = 1 << 28
) -> list[slice]:
    """At most 16 blocks of rows, whose tables of so many bytes each fit into memory."""
    n_blocks = max(1, min(16, max_bytes // max(bytes_each, 1), n_rows // block_rows))
    edges = np.linspace(0, n_rows, n_blocks + 1).astype(np.intp)
    return [slice(a, b) for a, b in pairwise(edges.tolist())]


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _responsibilities(row, base, values, scores):
    """Eq. (5.21): turn ``scores`` into a row's responsibilities; return their log normaliser."""
    n_subspaces = len(base)
    for t in range(n_subspaces):
        scores[t] = base[t]
    for a in range(len(row)):
        entries = values[row[a]]
        for t in range(n_subspaces):
            scores[t] += entries[t]
    top = scores[0]
    for t in range(1, n_subspaces):
        top = max(top, scores[t])
    total = 0.0
    for t in range(n_subspaces):
        gap = scores[t] - top
        # Below -38, exp is less than half a unit in the last place of 1.
        scores[t] = np.exp(gap) if gap > -38.0 else 0.0
        total += scores[t]
    for t in range(n_subspaces):
        scores[t] /= total
    return top + np.log(total)


@njit(nogil=True, cache=True, error_model="numpy")
def _expect(cells, weight, base, values, counts, sizes):
    """Add the rows' expected counts to ``counts`` and ``sizes``; return the sum of normalisers."""
    n_subspaces = len(base)
    scores = np.empty(n_subspaces)
    total = 0.0
    for i in range(len(cells)):
        row = cells[i]
        total += weight[i] * _responsibilities(row, base, values, scores)
        for t in range(n_subspaces):
            scores[t] *= weight[i]
            sizes[t] += scores[t]
        for a in range(len(row)):
            entries = counts[row[a]]
            for t in range(n_subspaces):
                entries[t] += scores[t]
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def _assign(cells, base, values, chosen, normaliser):
    scores = np.empty(len(base))
    for i in range(len(cells)):
        normaliser[i] = _responsibilities(cells[i], base, values, scores)
        best = 0
        for t in range(1, len(base)):
            if scores[t] > scores[best]:
                best = t
        chosen[i] = best


# -- order and number of subspaces ----------------------------------------------------------------


def stick_evidence(sizes: np.ndarray, alpha: float) -> float:
    """What the best sticks add to the bound: Σ log B(1+n_t, α+n_>t) − log B(1, α)."""
    later = np.cumsum(sizes[::-1])[::-1][1:]
    return float((betaln(1.0 + sizes[:-1], alpha + later) - betaln(1.0, alpha)).sum())


def tidied(fit: Fit, prior: Prior, *, min_share: float = 1e-12) -> Fit:
    """Drop empty subspaces and put the others by size, unless that lowers the bound."""
    sizes = fit.sizes
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > min_share * sizes.sum()]
    if len(order) == len(sizes):
        gain = stick_evidence(sizes[order], prior.alpha) - stick_evidence(sizes, prior.alpha)
        if gain <= 0:
            return fit
    return fit.chosen(order)


def best_merge(fit: Fit, prior: Prior, tried: set[tuple[int, int]]) -> tuple[int, int] | None:
    """Two subspaces whose union promises most, if any promises to raise the bound.

    Exact but for the entropy of the rows' choice between the two, so the bound has the last word.
    """
    alone = value_evidence(fit.counts, fit.sizes, prior)
    sticks = stick_evidence(fit.sizes, prior.alpha)
    best, pair = 0.0, None
    for a in range(len(fit.sizes) - 1):
        counts = fit.counts[:, a, None] + fit.counts[:, a + 1 :]
        united = value_evidence(counts, fit.sizes[a] + fit.sizes[a + 1 :], prior)
        gains = united - alone[a] - alone[a + 1 :]
        for shift in np.argsort(-gains):
            b = a + 1 + int(shift)
            if (a, b) in tried:
                continue
            sizes = np.delete(fit.sizes, b)
            sizes[a] += fit.sizes[b]
            gain = gains[shift] + stick_evidence(np.sort(sizes)[::-1], prior.alpha) - sticks
            if gain > best:
                best, pair = float(gain), (a, b)
            break
    return pair


def merged(fit: Fit, a: int, b: int) -> Fit:
    """Fit with subspace b poured into a."""
    counts, sizes = fit.counts.copy(), fit.sizes.copy()
    counts[:, a] += counts[:, b]
    sizes[a] += sizes[b]
    return Fit(np.delete(counts, b, axis=1), np.delete(sizes, b), fit.trace)


# -- out of core: batches that are read again for every pass --------------------------------------


def fit_batches(
    model: Any, batches: Iterable[Any] | Callable[[], Iterable[Any]]
) -> tuple[Counts, list[Fit]]:
    """Counts of all batches and the model's fits over them."""
    engine = model._engine()
    if not isinstance(engine, VI):
        raise ValueError(
            "expected method='vi' for batches, got Gibbs sampling, which keeps the state of every "
            "row"
        )
    again = batches if callable(batches) else lambda: batches
    if not callable(batches) and isinstance(batches, Iterator):
        raise TypeError(
            "an iterator can be read only once; give a list, or a function that returns a new "
            "iterator for every pass"
        )
    generators = model._generators()
    counts, sample = _first_pass(model, again(), generators[0])
    prior = model._prior(counts)
    rows = WeightedRows.of(sample, counts, None)
    total = float(counts.n)

    def passes() -> Iterator[WeightedRows]:
        for batch in again():
            table = read_rows(model, batch, counts.schema)
            if table.n_rows:
                yield WeightedRows.of(table, counts, None)

    report, fits = progress_reporter(engine.progress, "fits", len(generators)), []
    for rng in generators:
        first = engine.run(rows, prior, rng)
        scaled = Fit(first.counts * (total / rows.total), first.sizes * (total / rows.total))
        fits.append(model._finished(engine.ascend(passes, scaled, prior), passes, prior))
        report("Non-BEND", len(fits), f"{len(fits[-1].trace)} passes")
    return counts, fits


def _first_pass(
    model: Any, batches: Iterable[Any], rng: np.random.Generator, *, sample_rows: int = 20_000
) -> tuple[Counts, Table]:
    """Count all batches, and sample the rows with the smallest of one random number each."""
    counts, schema = Counts(), Schema.of(model.schema)
    sample: Table | None = None
    keys = np.zeros(0)
    for batch in batches:
        table = read_rows(model, batch, schema)
        if not table.n_rows:
            continue
        if sample is None:
            check_categorical(model, table.schema)
            schema, sample = table.schema, take_rows(table, np.zeros(0, np.intp))
            remember_names(model, schema)
        counts = counts + Counts.of(table)
        keys = np.concatenate([keys, rng.random(table.n_rows)])
        order = np.sort(np.argsort(keys, kind="stable")[:sample_rows])
        sample, keys = take_rows(append_rows(sample, table), order), keys[order]
    if sample is None:
        raise ValueError("expected at least one row in the batches, got none")
    return counts, sample


# -- the estimator ------------------------------------------------------------------------------


@embedder("nonbend", "mixture of subspaces with independent columns", "Zhu 2019, ch. 5")
class NonBEND(DistinctRowEmbedder):
    """Embed rows by a mixture of subspaces, in each of which the columns are independent.

    A Dirichlet-process mixture of products of multinomials is fitted several times, each fit
    gives every column a Gram matrix over its values, Eqs. (5.26)–(5.32), and their mean is the
    representation. Rows are needed more than once; identical rows share a posterior, so cost and
    memory grow with the number of distinct rows. Set-valued columns are an error.

    Parameters
    ----------
    method : {"vi", "gibbs"} or VI or Gibbs, default="vi"
        Variational inference (fast) or collapsed Gibbs sampling. An object of
        ``tabweave.embed.nonbend`` sets the number of subspaces and steps, starts, tolerance,
        burn-in, assignment, progress and what a missing cell means: ``VI(truncation=50)``,
        ``VI(missing="marginal")``.
    alpha : float or "auto", default="auto"
        Concentration of the subspaces: more of them when larger. ``"auto"`` is 1 for variational
        inference and 50 for Gibbs sampling, and becomes ``alpha_``.
    alpha0 : float, default=0.1
        Pseudo-count of every value in a subspace; from 5 on everything falls into one subspace.
    n_fits : int, default=8
        Number of fits whose Gram matrices are averaged, so that the result depends less on the
        seed; the thesis has 1.
    random_state : int, RandomState or None, default=None
        Seed of the fits.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.

    Attributes
    ----------
    n_subspaces_ : int
        Number of subspaces of the best fit; the following are those of the best fit too.
    weights_ : ndarray of shape (n_subspaces_,)
        Share of the rows in each subspace, Eq. (5.27), largest first.
    theta_ : list of ndarray of shape (n_subspaces_, values)
        Per column, the probability of each value in each subspace, Eq. (5.26).
    trace_ : tuple of float
        The evidence lower bound after each step, or the log joint probability after each sweep.
    n_iter_ : int
        Its number of steps or sweeps.
    fits_ : list
        All fits.
    alpha_ : float
        The concentration in use.
    tables_ : ValueTables
        The representation.
    counts_, numbers_, space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    *Errata.* In (5.22) the sum of E[log(1−V_l)] stops at l = t−1; in (5.25) the digamma of the sum
    runs over the values of the column. The column weights of (5.31), which
    :class:`tabweave.papers.NonBEND` has, are left out: they cost one to two points of F.

    Examples
    --------
    >>> from tabweave import NonBEND
    >>> rows = {"color": ["red", "blue"] * 20, "size": ["S", "L"] * 20, "shape": ["o"] * 40}
    >>> model = NonBEND(random_state=0).fit(rows)
    >>> model.n_subspaces_, model.weights_.tolist()
    (2, [0.5, 0.5])
    >>> odd = {"color": ["red", "red"], "size": ["S", "L"], "shape": ["o", "o"]}
    >>> model.score_samples(odd).round(1).tolist()
    [-0.7, -5.3]
    """

    weights_: np.ndarray
    theta_: list[np.ndarray]
    n_subspaces_: int
    _fits_of_batches: list[Fit] | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "method": [StrOptions({"vi", "gibbs"}), VI, Gibbs],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "alpha0": [Interval(Real, 0, None, closed="neither")],
        "n_fits": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        method: str | VI | Gibbs = "vi",
        *,
        alpha: float | str = "auto",
        alpha0: float = 0.1,
        n_fits: int = 8,
        random_state: Any = None,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.alpha0 = alpha0
        self.n_fits = n_fits
        self.random_state = random_state
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)

    def _validate_params(self) -> None:
        super()._validate_params()
        engine = self._engine()
        allowed = engine._parameter_constraints
        settings = {name: getattr(engine, name) for name in allowed}
        validate_parameter_constraints(allowed, settings, type(engine).__name__)

    # -- learning --------------------------------------------------------------------------

    def fit_batches(self, batches: Iterable[Any] | Callable[[], Iterable[Any]]) -> Self:
        """Fit to batches that are read again for every step, and not kept in memory.

        The first pass counts and keeps a random sample, every fit is started on the sample, and
        further passes carry all fits on over all rows: exact variational inference.

        Parameters
        ----------
        batches : list of batches, or function that returns an iterator over them
            Each batch is anything :meth:`fit` reads.
        """
        self._validate_params()
        self._digest = None
        counts, self._fits_of_batches = fit_batches(self, batches)
        try:
            return ValueEmbedder.fit_counts(self, counts)
        finally:
            del self._fits_of_batches

    def _learn(self, counts: Counts) -> ValueTables:
        check_table_size(counts, "NonBEND")
        prior = self._prior(counts)
        self.alpha_ = prior.alpha
        fits = self._fits_of_batches or self._run_fits(prior)
        self.fits_ = [fit.occupied() for fit in fits]
        best = max(self.fits_, key=lambda fit: fit.trace[-1])
        self.trace_, self.n_iter_ = best.trace, len(best.trace)
        self.weights_ = subspace_weights(best)
        self.n_subspaces_ = len(self.weights_)
        theta = value_probabilities(best, prior)
        self.theta_ = [theta[counts.span(a)].T for a in range(len(counts.names))]
        grams = [self._grams(fit, prior) for fit in self.fits_]
        return ValueTables.from_grams(mean_grams(grams, counts), counts)

    def _grams(self, fit: Fit, prior: Prior) -> list[np.ndarray]:
        """What one fit gives to the representation, column by column."""
        return embedding_grams(fit, prior)

    def _run_fits(self, prior: Prior) -> list[Fit]:
        engine, rows = self._engine(), self._row_digest
        finished, reporting = count(1), Lock()
        report = progress_reporter(engine.progress, "fits", self.n_fits)

        def run(rng: np.random.Generator) -> Fit:
            fit = self._finished(engine.run(rows, prior, rng), lambda: (rows,), prior)
            steps = f"{len(fit.sizes)} subspaces, {len(fit.trace)} steps, {fit.trace[-1]:.2f}"
            with reporting:
                report("Non-BEND", next(finished), steps)
            return fit

        return in_threads(run, self._generators())

    def _finished(self, fit: Fit, passes: Passes, prior: Prior) -> Fit:
        """What is kept of a fit to the rows that ``passes()`` yields: rows shared out."""
        return fit

    def _generators(self) -> list[np.random.Generator]:
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=int(self.n_fits))
        return [np.random.default_rng(seed) for seed in seeds]

    def _engine(self) -> VI | Gibbs:
        named: dict[str, VI | Gibbs] = {"vi": VI(), "gibbs": Gibbs()}
        return named[self.method] if isinstance(self.method, str) else self.method

    def _prior(self, counts: Counts) -> Prior:
        engine, alpha = self._engine(), self.alpha
        if alpha == "auto":
            alpha = 50.0 if isinstance(engine, Gibbs) else 1.0
        gaps = np.zeros(0, np.int64)
        if engine.missing == "marginal":
            columns = zip(counts.offsets[:-1], counts.labels, strict=True)
            gap_cells = [start + labels.index(None) for start, labels in columns if None in labels]
            gaps = np.array(gap_cells, np.int64)
        pseudo, offsets = self._pseudo_counts(counts), counts.offsets
        return Prior(float(alpha), pseudo, int(engine.truncation), offsets, gaps)

    def _pseudo_counts(self, counts: Counts) -> float | np.ndarray:
        """Pseudo-count α₀, of all values alike."""
        return float(self.alpha0)

    # -- the model of the table ------------------------------------------------------------

    @by_parts({"subspace": "int64"})
    def predict_subspace(self, X: Any) -> np.ndarray:
        """Index of the most likely subspace of each row."""
        return self._judge(X)[0]

    @by_parts({"score": "float64"})
    def score_samples(self, X: Any) -> np.ndarray:
        """Log density of each row, log Σ_h π_h Π_j θ_hj; low ones are anomalies.

        A value not seen in fit counts as one more value of its column that no row had; cells whose
        gaps say nothing are left out of the product.
        """
        return self._judge(X)[1]

    def _judge(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        check_categorical(self, self.schema_)
        table = read_fitted(self, X)
        self.learn()
        self.counts_.vocabulary.positions(table, self.unknown)
        sizes, prior = self.weights_ * float(self.counts_.n), self._prior(self.counts_)
        blocks, pseudo = [], prior.pseudo_counts
        for a, (theta, total) in enumerate(zip(self.theta_, prior.totals, strict=True)):
            present = pseudo[self.counts_.span(a)] > 0
            pseudo_count = total / max(present.sum(), 1)
            unseen = (
                pseudo_count / (sizes + total + pseudo_count)
                if pseudo_count
                else np.ones(len(sizes))
            )
            blocks += [np.where(present[:, None], theta.T, 1.0), unseen[None, :]]
        cells = locate(table, self.counts_, shift=1)
        return assign(cells, np.log(self.weights_), np.log(np.vstack(blocks)))

    def sample(self, n: int = 1, random_state: Any = None) -> dict[str, np.ndarray]:
        """Eqs. (5.14), (5.5): draw new rows, as a mapping of column to values."""
        check_categorical(self.learn(), self.schema_)
        if not isinstance(n, Integral) or n < 0:
            raise ValueError(f"expected n to be a whole number of rows, got {n!r}")
        rng = check_random_state(random_state)
        subspace = rng.choice(self.n_subspaces_, size=n, p=self.weights_)
        out = {}
        for name, labels, theta in zip(
            self.counts_.names, self.counts_.labels, self.theta_, strict=True
        ):
            below, chance = np.cumsum(theta, axis=1), rng.random_sample(n)
            code = np.zeros(n, np.intp)
            for h in np.unique(subspace):  # one subspace at a time: no table of rows × values
                inside = subspace == h
                code[inside] = np.searchsorted(
                    below[h], chance[inside] * below[h, -1], side="right"
                )
            out[name] = np.array([*labels, None], dtype=object)[:-1][code]
        return out

    def reconstruct(self, columns: Sequence[str] | None = None) -> np.ndarray:
        """Theorem 5.2: estimated distribution Σ_h π_h Θ_h of some columns (or all).

        An array with one axis per column, its values in the order of ``counts_.labels``.
        """
        check_categorical(self.learn(), self.schema_)
        chosen = [self.counts_.vocabulary.index(c) for c in columns or self.counts_.names]
        max_cells = 10_000_000
        if np.prod([self.theta_[a].shape[1] for a in chosen], dtype=float) > max_cells:
            raise ValueError(
                f"the distribution of {len(chosen)} columns has more than {max_cells:,} cells; "
                "name fewer columns, or use score_samples for given rows"
            )
        out = self.weights_[:, None]
        for a in chosen:
            out = (out[:, :, None] * self.theta_[a][:, None, :]).reshape(self.n_subspaces_, -1)
        return out.sum(axis=0).reshape([self.theta_[a].shape[1] for a in chosen])

    def divergence(self, X: Any) -> float:
        """Kullback–Leibler divergence of rows from :meth:`reconstruct`, in nats.

        From the empirical distribution of the rows to the estimated one; by Theorem 5.2 it falls
        to 0 as rows are added.
        """
        table = read_fitted(self, X)
        _, inverse = distinct_rows(list(locate(table, self.counts_, shift=1).T))
        share = np.bincount(inverse)[inverse] / table.n_rows
        return float(np.mean(np.log(share) - self.score_samples(table)))


# -- the equations -----------------------------------------------------------------------------


def value_probabilities(fit: Fit, prior: Prior) -> np.ndarray:
    """Eq. (5.26): θ*, the posterior mean of each value's probability, as (V, subspaces).

    A gap is no value: its probability is 0.
    """
    pseudo, widths = prior.pseudo_counts, np.diff(prior.offsets)
    total = np.repeat(prior.seen(fit.counts, fit.sizes) + prior.totals[:, None], widths, axis=0)
    out, present = np.zeros(fit.counts.shape), pseudo > 0
    out[present] = (fit.counts[present] + pseudo[present, None]) / total[present]
    return out


def subspace_weights(fit: Fit) -> np.ndarray:
    """Eq. (5.27): π*, the share of the rows in each subspace, in expectation."""
    return fit.sizes / fit.sizes.sum()


def embedding_grams(fit: Fit, prior: Prior) -> list[np.ndarray]:
    """Eqs. (5.28)–(5.30), (5.32): per column, the inner products of its values' vectors.

    The vector of value v holds, for every subspace h, ``π_h exp(−θ_hv)`` times the one-zero
    vector of v. Two one-zero vectors of V values share V−2 ones, or V−1 when they are the same,
    so the V × subspaces·V features are never formed. A gap is the mean of the values, each as often
    as it occurs.
    """
    pi, theta = subspace_weights(fit), value_probabilities(fit, prior)
    grams, pseudo = [], prior.pseudo_counts
    for start, stop in zip(prior.offsets[:-1], prior.offsets[1:], strict=True):
        present = pseudo[start:stop] > 0
        scaled = pi * np.exp(-theta[start:stop])
        gram = (scaled @ scaled.T) * (present.sum() - 2 + np.eye(len(present)))
        if not present.all():
            mix = np.diag(present.astype(float))
            often = fit.counts[start:stop].sum(axis=1) * present
            mix[~present] = often / max(often.sum(), np.finfo(float).tiny)
            gram = mix @ gram @ mix.T
        grams.append(gram)
    return grams


def mean_grams(grams: list[list[np.ndarray]], counts: Counts) -> list[np.ndarray]:
    """Mean of several representations' Grams, each scaled to their mean inertia."""
    inertia = np.array([total_inertia(column, counts) for column in grams])
    scale = np.ones(len(grams))
    if (inertia > 0).all():
        scale = inertia.mean() / inertia
    return [
        np.tensordot(scale, np.stack(column), axes=1) / len(grams)
        for column in zip(*grams, strict=True)
    ]
