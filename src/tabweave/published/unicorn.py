"""UNICORN's objective, Eq. (8.18) with its errata corrected, for the record.

Counts of the stream and of its last window in, weights of raw kernel columns out. Every term is
exact over all objects of the window, from V × V matrices: with ``C₀`` of the window,
``tr(HSH) = tr(G C₀)``, ``‖HSH‖² = tr(G C₀ G C₀)`` and ``tr(HSH HS'H) = tr(G C₀ G' C₀)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from tabweave.blocks.value_tables import ValueTables
from tabweave.counts import couplings
from tabweave.counts.counts import Counts
from tabweave.counts.merging import expand
from tabweave.io.register import storable
from tabweave.published.untie import Features, printed_features
from tabweave.rows.vocabulary import positions

STEPS, RATE = 250, 1e-3  # Section 8.4.2


@storable
@dataclass(frozen=True, eq=False)
class Prior:
    """The model of the window before: what it had counted, and its value tables."""

    counts: Counts
    tables: ValueTables

    def gram(self, counts: Counts) -> np.ndarray:
        """Return ``G'`` over the values known now; a value unknown then is its centroid."""
        parts = []
        for known, rows, asked in zip(
            self.tables.labels, self.tables.tables, counts.labels, strict=True
        ):
            t = rows[positions(known, asked)]
            parts.append(t @ t.T)
        return _block_diagonal(parts)

    @classmethod
    def restored(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Prior:
        """Return what a checkpoint of format 1 kept of it."""
        counts = Counts._restored(
            header, {k.removeprefix("prior."): v for k, v in arrays.items() if "prior." in k}
        )
        rows = [arrays[f"table{i}"] for i in range(len(counts.names))]
        return cls(counts, ValueTables(counts.vocabulary, rows))


def learn(
    counts: Counts,
    prior: Prior | None,
    kernels: dict[str, couplings.Kernel],
    decay: float,
    delta: float,
    sigma: float | None,
) -> tuple[ValueTables, dict[str, dict[str, float]], list[float]]:
    """Algorithm 4, one time point: weights by Adam from 1, then Eq. (8.20) as value tables."""
    columns = [printed_features(counts, a, kernels) for a in range(len(counts.names))]
    n_kernels = sum(len(c.names) for c in columns)
    penalty = 1 / max(n_kernels, 1) if sigma is None else sigma
    scatter, n = window_scatter(counts, prior, decay)
    other, agreement = None, 0.0
    if prior is not None:
        from tabweave.embed.unicorn import change

        other, agreement = prior.gram(counts), 1 - change(prior.counts, counts, decay).overall
    omegas, trace = descend(columns, scatter, n, other, delta * agreement, penalty)
    grams = [(c.stack * w) @ c.stack.T for c, w in zip(columns, omegas, strict=True)]
    weights = {
        name: dict(zip(c.names, w.reshape(len(c.names), -1).sum(axis=1).tolist(), strict=True))
        for name, c, w in zip(counts.names, columns, omegas, strict=True)
    }
    return ValueTables.from_grams(grams, counts), weights, trace


def window_scatter(counts: Counts, prior: Prior | None, decay: float) -> tuple[np.ndarray, float]:
    """Return ``C₀ = C - ccᵀ/n`` of the last window, and its n: what came on top of the prior."""
    pairs, n = counts.pairs, float(counts.n)
    pairs = pairs.toarray() if sparse.issparse(pairs) else pairs.astype(np.float64)
    if prior is not None and decay:
        kept = prior.counts.scaled(decay)
        if all(set(a) <= set(b) for a, b in zip(kept.labels, counts.labels, strict=True)):
            older = expand(kept, counts.vocabulary)
            pairs = pairs - (older.toarray() if sparse.issparse(older) else older)
            n = n - float(kept.n)
    c = np.diagonal(pairs)
    return pairs - np.outer(c, c) / n, n


def descend(
    columns: list[Features],
    scatter: np.ndarray,
    n: float,
    other: np.ndarray | None,
    delta: float,
    sigma: float,
) -> tuple[list[np.ndarray], list[float]]:
    """Minimise (8.18) over ω ≥ 0 by Adam, with exact gradients over the whole window."""
    widths = [c.stack.shape[1] for c in columns]
    edges = np.cumsum(widths)[:-1]
    omega = np.ones(sum(widths))
    first, second = np.zeros_like(omega), np.zeros_like(omega)
    trace: list[float] = []
    for step in range(1, STEPS + 1):
        value, gradient = objective(columns, np.split(omega, edges), scatter, n, other, delta)
        trace.append(value + sigma * float(omega.sum()))
        gradient = gradient + sigma
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        move = (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        omega = np.maximum(omega - RATE * move, 0)
    return np.split(omega, edges), trace


def objective(
    columns: list[Features],
    omegas: list[np.ndarray],
    scatter: np.ndarray,
    n: float,
    other: np.ndarray | None,
    delta: float,
) -> tuple[float, np.ndarray]:
    """Eq. (8.18) without the penalty, and its gradient in ω."""
    parts = [(c.stack * w) @ c.stack.T for c, w in zip(columns, omegas, strict=True)]
    gram = _block_diagonal(parts)
    curved = scatter @ gram @ scatter
    trace, norm = float(np.vdot(gram, scatter)), np.sqrt(max(float(np.vdot(gram, curved)), 0.0))
    if not norm:
        return 0.0, np.zeros(sum(len(w) for w in omegas))
    by_trace, by_norm = (_quadratic(columns, m) for m in (scatter, curved / norm))
    root = np.sqrt(max(n - 1, 1))
    value = trace / (norm * root)
    gradient = (by_trace / norm - trace * by_norm / norm**2) / root
    if other is not None and delta:
        bridge = scatter @ other @ scatter
        own = np.sqrt(max(float(np.vdot(other, bridge)), 0.0))
        if own:
            shared = float(np.vdot(gram, bridge))
            value -= delta * shared / (norm * own)
            towards = _quadratic(columns, bridge) / norm - shared * by_norm / norm**2
            gradient = gradient - delta * towards / own
    return value, gradient


def _quadratic(columns: list[Features], matrix: np.ndarray) -> np.ndarray:
    """Return ``φᵀ M φ`` of every kernel column φ, M the block of its own column."""
    out, start = [], 0
    for c in columns:
        block = matrix[start : start + len(c.stack), start : start + len(c.stack)]
        out.append(np.einsum("vp,vp->p", c.stack, block @ c.stack))
        start += len(c.stack)
    return np.concatenate(out)


def _block_diagonal(parts: list[np.ndarray]) -> np.ndarray:
    from scipy.linalg import block_diag

    return block_diag(*parts)
