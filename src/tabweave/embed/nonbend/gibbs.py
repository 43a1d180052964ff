"""Collapsed Gibbs sampling for Non-BEND [Zhu 2019, 5.3.2.1, Algorithm 1].

Each row in turn leaves its subspace and draws one anew, given the value counts of all others,
Eq. (5.11). All logarithms are looked up by count, and there is no limit to the subspaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln

from tabweave._compat import Interval, StrOptions, njit
from tabweave.embed.nonbend.model import Fit, Prior, WeightedRows, add_assigned, value_evidence
from tabweave.engines.progress import ProgressCallback
from tabweave.io.register import storable


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
