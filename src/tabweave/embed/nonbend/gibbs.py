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

from tabweave._compat import Interval, StrOptions
from tabweave.embed.nonbend.model import Fit, Prior, Rows, value_evidence
from tabweave.engines.progress import ProgressCallback
from tabweave.io.register import storable

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
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "burn_in": [Interval(Real, 0, 1, closed="left")],
        "assignment": [StrOptions({"mode", "last"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "truncation": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "progress": [callable, None],
    }
    _former: ClassVar[dict[str, tuple[Any, ...]]] = {"verbose": ()}

    burn_in: float = 0.5
    assignment: str = "mode"
    n_init: int = 1
    truncation: int = 30
    max_iter: int = 100
    progress: ProgressCallback | None = None

    def run(self, rows: Rows, prior: Prior, rng: np.random.Generator) -> Fit:
        """Return the best of ``n_init`` chains of ``max_iter`` sweeps."""
        chains = [self._chain(expanded(rows), prior, rng) for _ in range(self.n_init)]
        return max(chains, key=lambda fit: fit.trace[-1])

    def _chain(self, cells: np.ndarray, prior: Prior, rng: np.random.Generator) -> Fit:
        from tabweave.embed.nonbend.kernels import tally

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
        self.cells, self.prior = cells, prior
        self.assignment = np.asarray(assignment, np.int64).copy()
        self.n_slots = int(self.assignment.max()) + 1
        n, widths = len(cells), np.diff(prior.offsets)
        sizes = np.arange(n + 1.0)
        self._log_of_count = np.log(sizes + prior.alpha0)
        with np.errstate(divide="ignore"):
            self._log_of_size = np.log(sizes)
        self._log_rest = np.zeros(n + 1)
        for width, number in zip(*np.unique(widths, return_counts=True), strict=True):
            self._log_rest += number * np.log(sizes + prior.alpha0 * width)
        self._count(self.n_slots + 8)

    def _count(self, capacity: int) -> None:
        from tabweave.embed.nonbend.kernels import add_assigned

        self.counts = np.zeros((int(self.prior.offsets[-1]), capacity), np.int64)
        self.sizes = np.zeros(capacity, np.int64)
        ones = np.ones(len(self.cells), np.int64)
        add_assigned(self.cells, ones, self.assignment, self.counts, self.sizes)
        self._logs = self._log_of_count[self.counts]

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw every row's subspace anew, in random order."""
        from tabweave.embed.nonbend.kernels import sweep

        n = len(self.cells)
        order, uniforms = rng.permutation(n), rng.random(n)
        done = 0
        while done < n:
            done, self.n_slots = sweep(
                done, order, self.cells, uniforms, self.assignment, self.counts, self._logs,
                self.sizes, self._log_of_count, self._log_of_size, self._log_rest,
                np.log(self.prior.alpha), self.n_slots,
            )  # fmt: skip
            if done < n:
                self._count(2 * len(self.sizes))

    def log_joint(self) -> float:
        """Return log P(X, z): the Chinese restaurant process and the values' evidence."""
        used = self.sizes > 0
        return log_joint(self.counts[:, used], self.sizes[used], self.prior)


def log_joint(counts: np.ndarray, sizes: np.ndarray, prior: Prior) -> float:
    """Eqs. (5.8), (5.9): log probability of a partition of the rows and of their values."""
    alpha, n = prior.alpha, sizes.sum()
    partition = len(sizes) * np.log(alpha) + gammaln(sizes).sum()
    partition += gammaln(alpha) - gammaln(alpha + n)
    return float(partition + value_evidence(counts, sizes, prior).sum())


def fit_of(cells: np.ndarray, chosen: np.ndarray, prior: Prior, trace: list[float]) -> Fit:
    """Return the counts of assigned rows, largest subspace first."""
    from tabweave.embed.nonbend.kernels import add_assigned

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
