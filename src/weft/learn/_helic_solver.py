"""Weights for HELIC: pairs of rows and tables of pairs of values in, weights out.

A pair of rows is a handful of pairs of values, and few of those are distinct: a squared distance is
looked up, ``d = M T ω``, with M telling which pairs of values each pair of rows consists of and T
the squared distance of each pair of values in each block. The residuals of all pairs of rows are
first added up per pair of values, ``A = Mᵀ residual``, so that the gradient is ``TᵀA``. The matrix
of pairs × features, which the paper works on, is never formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from weft.learn._helic_pairs import Pairs


@dataclass(frozen=True, eq=False)
class ValuePairs:
    """The distinct pairs of unlike values of one column that a sample of pairs of rows holds."""

    first: np.ndarray
    second: np.ndarray
    met: Any  # csr_array (pairs of rows, pairs of values): which one each pair of rows has

    @classmethod
    def of(cls, pairs: Pairs, column: int, n_values: int) -> ValuePairs:
        """Collect the pairs of values of pairs of rows; equal values are at distance 0."""
        left, right = pairs.left[:, column], pairs.right[:, column]
        low, high = np.minimum(left, right), np.maximum(left, right)
        unlike = np.flatnonzero(low != high)
        keys, place = np.unique(
            low[unlike].astype(np.int64) * n_values + high[unlike], return_inverse=True
        )
        met = sparse.csr_array(
            (np.ones(len(unlike)), (unlike, place)), shape=(len(left), len(keys))
        )
        return cls(keys // max(n_values, 1), keys % max(n_values, 1), met)


@dataclass(frozen=True, eq=False)
class Distances:
    """Squared distances of pairs of rows as a linear function of weights, and its transpose."""

    met: Any  # (pairs of rows, pairs of values of all columns)
    tables: list[np.ndarray]  # per column (pairs of values, weights)

    @classmethod
    def of(cls, columns: Sequence[ValuePairs], tables: Sequence[np.ndarray]) -> Distances:
        """Join the columns."""
        return cls(sparse.hstack([c.met for c in columns], format="csr"), list(tables))

    def __call__(self, omega: np.ndarray) -> np.ndarray:
        """Eq. (6.17): ``d_ij = Σ ω_l k_ijl``, through the distances of values."""
        parts = np.split(omega, np.cumsum([t.shape[1] for t in self.tables])[:-1])
        looked_up = [t @ w for t, w in zip(self.tables, parts, strict=True)]
        return self.met @ np.concatenate(looked_up)

    def transposed(self, residual: np.ndarray) -> np.ndarray:
        """Return ``Σ_ij residual_ij k_ijl`` for each weight, through sums per pair of values."""
        mass = np.split(self.met.T @ residual, np.cumsum([len(t) for t in self.tables])[:-1])
        return np.concatenate([t.T @ m for t, m in zip(self.tables, mass, strict=True)])


@dataclass(frozen=True, eq=False)
class Objective:
    """``½ Σ p_ij [1 + r_ij (d_ij - b)]₊² + (μ/2) Σ s_l (ω_l - ω⁰_l)²``, convex in ω and b.

    Eq. (6.19) with the hinge squared, so that it is smooth, and with a pull towards the starting
    weights in place of λ‖ω‖₁, which pulls towards nothing at all. Called with (ω, b) it returns
    its value and gradient.
    """

    distances: Distances
    pairs: Pairs
    start: np.ndarray
    stiffness: np.ndarray
    pull: float

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value and the gradient at (ω, b)."""
        omega, b = point[:-1], point[-1]
        relation, weight = self.pairs.relation, self.pairs.weight
        slack = np.maximum(1 + relation * (self.distances(omega) - b), 0)
        residual = weight * slack * relation
        off = omega - self.start
        value = 0.5 * (weight @ slack**2) + 0.5 * self.pull * (self.stiffness @ off**2)
        by_omega = self.distances.transposed(residual) + self.pull * self.stiffness * off
        return float(value), np.append(by_omega, -residual.sum())


def minimise(objective: Objective, max_iter: int) -> tuple[np.ndarray, float, list[float]]:
    """Minimise over ω ≥ 0 and b by L-BFGS-B; return ω, b and the objective after each step.

    Weights are measured in units in which the pull is equally stiff everywhere. Without pairs of
    both relations, or with an infinite pull, weights stay where they start.
    """
    start, n = objective.start, len(objective.start)
    if not objective.pairs.weight.any() or np.isinf(objective.pull) or not n:
        return start, float(objective.pairs.weight @ objective.distances(start)), []
    unit = np.append(1 / np.sqrt(np.maximum(objective.stiffness, 1e-12)), 1.0)
    b = float(objective.pairs.weight @ objective.distances(start))
    first = np.append(start, b)
    trace = [objective(first)[0]]

    def scaled(point: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(point * unit)
        return value, gradient * unit

    def note(intermediate_result: Any) -> None:
        trace.append(float(intermediate_result.fun))

    result = minimize(
        scaled,
        first / unit,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * n + [(None, None)],
        callback=note,
        options={"maxiter": max_iter, "maxcor": 20, "ftol": 1e-9},
    )
    point = result.x * unit
    return np.maximum(point[:-1], 0), float(point[-1]), trace


# -- as printed ---------------------------------------------------------------------------------


def hinge(
    distances: np.ndarray, b: float, omega: np.ndarray, pairs: Pairs, sparsity: float
) -> float:
    """Eq. (6.19): ``Σ p_ij [1 + r_ij (d_ij - b)]₊ + λ‖ω‖₁``, over the sample of pairs."""
    slack = np.maximum(1 + pairs.relation * (distances - b), 0)
    return float(pairs.weight @ slack + sparsity * omega.sum())


def adam(
    features: Sequence[np.ndarray],
    pairs: Pairs,
    sparsity: float,
    max_iter: int,
    seed: int,
) -> tuple[list[np.ndarray], float, list[float]]:
    """Section 6.4.1: Adam on Eq. (6.19), steps of 10⁻³, batches of 20 pairs, from ω = 1.

    Stops early when the objective over all pairs of the sample, looked at every 50 steps, has not
    fallen three times in a row; the best weights seen are returned. Batches are drawn by the
    pairs' weights, so that both relations come up equally often.
    """
    rng = np.random.default_rng(seed)
    point = np.ones(sum(f.shape[1] for f in features) + 1)
    columns = [ValuePairs.of(pairs, a, len(f)) for a, f in enumerate(features)]
    point[-1] = pairs.weight @ _distances(features, columns, point[:-1])
    moments = np.zeros((2, len(point)))
    best, trace = point.copy(), []
    for step in range(1, max_iter + 1 if pairs.weight.any() else 0):
        if step % 50 == 1:
            omega, b = point[:-1], float(point[-1])
            trace.append(hinge(_distances(features, columns, omega), b, omega, pairs, sparsity))
            if trace[-1] <= min(trace):
                best = point.copy()
            if len(trace) - 1 - int(np.argmin(trace)) >= 3:
                break
        batch = rng.choice(len(pairs.weight), 20, p=pairs.weight)
        gradient = batch_gradient(features, pairs, batch, point, sparsity)
        moments[0] = 0.9 * moments[0] + 0.1 * gradient
        moments[1] = 0.999 * moments[1] + 0.001 * gradient**2
        size = np.sqrt(moments[1] / (1 - 0.999**step)) + 1e-8
        point = point - 1e-3 * moments[0] / (1 - 0.9**step) / size
        point[:-1] = np.maximum(point[:-1], 0)
    return _split(best[:-1], features), float(best[-1]), trace


def _split(omega: np.ndarray, features: Sequence[np.ndarray]) -> list[np.ndarray]:
    return np.split(omega, np.cumsum([f.shape[1] for f in features])[:-1])


def batch_gradient(
    features: Sequence[np.ndarray],
    pairs: Pairs,
    batch: np.ndarray,
    point: np.ndarray,
    sparsity: float,
) -> np.ndarray:
    """Return the gradient of Eq. (6.19) in (ω, b) over a batch of pairs."""
    squares = np.hstack(
        [(f[pairs.left[batch, a]] - f[pairs.right[batch, a]]) ** 2 for a, f in enumerate(features)]
    )
    relation = pairs.relation[batch]
    active = 1 + relation * (squares @ point[:-1] - point[-1]) > 0
    residual = relation * active / len(batch)
    return np.append(residual @ squares + sparsity, -residual.sum())


def _distances(
    features: Sequence[np.ndarray], columns: Sequence[ValuePairs], omega: np.ndarray
) -> np.ndarray:
    """Return the squared distances of all pairs of a sample, by Gram matrices of values."""
    out = np.zeros(columns[0].met.shape[0])
    for f, c, w in zip(features, columns, _split(omega, features), strict=True):
        gram = (f * w) @ f.T
        own = np.diagonal(gram)
        out += c.met @ (own[c.first] + own[c.second] - 2 * gram[c.first, c.second])
    return out
