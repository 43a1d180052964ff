"""Variational inference for Non-BEND [Zhu 2019, 5.3.2.2].

Coordinate ascent on the evidence lower bound of a truncated stick-breaking mixture. A pass over
the rows leaves only expected counts (V × subspaces), so memory does not grow with rows and the
same code runs over batches that are read again for every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, digamma

from tabweave._compat import Interval, StrOptions, njit
from tabweave.columns.column import Schema
from tabweave.columns.table import Table, append_rows, remember_names, take_rows
from tabweave.counts.counts import Counts
from tabweave.embed.nonbend.gibbs import sampled_fit
from tabweave.embed.nonbend.model import Fit, Prior, WeightedRows, add_assigned, value_evidence
from tabweave.engines.progress import ProgressCallback, progress_reporter
from tabweave.engines.reading import read_rows
from tabweave.io.register import storable
from tabweave.space.block import in_threads

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
    n_rows: int, bytes_each: int, *, block_rows: int = 1 << 14, max_bytes: int = 1 << 28
) -> list[slice]:
    """At most 8 blocks of rows, whose tables of so many bytes each fit into memory."""
    n_blocks = max(1, min(8, max_bytes // max(bytes_each, 1), n_rows // block_rows))
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
            schema, sample = table.schema, take_rows(table, np.zeros(0, np.intp))
            remember_names(model, schema)
        counts = counts + Counts.of(table)
        keys = np.concatenate([keys, rng.random(table.n_rows)])
        order = np.sort(np.argsort(keys, kind="stable")[:sample_rows])
        sample, keys = take_rows(append_rows(sample, table), order), keys[order]
    if sample is None:
        raise ValueError("expected at least one row in the batches, got none")
    return counts, sample
