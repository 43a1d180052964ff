"""UNTIE's objective as printed, for the record: Eq. (7.22), whose minimum is ω = 0.

Counts and raw kernel columns in, their weights and the falling objective out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tabweave.counts import couplings
from tabweave.counts.counts import Counts
from tabweave.counts.spectra import responses


@dataclass(frozen=True)
class Features:
    """Names of a column's kernels, and their columns side by side: one row per value."""

    names: list[str]
    stack: np.ndarray


def printed_features(counts: Counts, column: int, kernels: dict[str, couplings.Kernel]) -> Features:
    """Eqs. (7.9), (7.23): raw kernel columns of the intra and inter spaces, one weight each."""
    n_values = int(counts.sizes[column])
    if n_values > couplings.MAX_LANDMARKS:
        raise ValueError(
            f"column {counts.names[column]!r} has {n_values} values; objective='paper' takes at "
            f"most {couplings.MAX_LANDMARKS}: use objective='entropic', or leave the column out"
        )
    spaces = {"intra": couplings.intra(counts, column)}
    if len(counts.names) > 1:
        spaces["inter"] = couplings.inter(counts, column)
    blocks = list(couplings.kernel_blocks(spaces, kernels, np.arange(n_values)))
    names = [f"{b.space}/{b.kernel}" for b in blocks]
    return Features(names, np.hstack([b.gram for b in blocks]))


def as_printed(
    counts: Counts, columns: list[Features], n_clusters: int, max_iter: int
) -> tuple[list[np.ndarray], list[float]]:
    """Eq. (7.22) by Algorithm 3: Adam from ω = 1 at 10⁻³, H renewed every 20 steps.

    Exact gradients over all objects stand in for the paper's batches of 20.
    """
    omega = np.ones(sum(c.stack.shape[1] for c in columns))
    edges = np.cumsum([0] + [c.stack.shape[1] for c in columns])
    first, second = np.zeros_like(omega), np.zeros_like(omega)
    trace: list[float] = []
    step = 0
    for _ in range(max_iter):
        gradient = printed_gradient(counts, columns, omega, edges, n_clusters)
        trace.append(float(omega @ gradient))
        for _ in range(20):
            step += 1
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            move = (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
            omega = np.maximum(omega - 1e-3 * move, 0)
    return np.split(omega, edges[1:-1]), trace


def printed_gradient(
    counts: Counts, columns: list[Features], omega: np.ndarray, edges: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Eq. (7.24): for each feature, the inertia (not centred) that H leaves unexplained."""
    tables = []
    for c, start, stop in zip(columns, edges[:-1], edges[1:], strict=True):
        gram = (c.stack * omega[start:stop]) @ c.stack.T
        tables.append(couplings.factor(gram, np.arange(len(gram))))
    response = responses(counts, tables, n_clusters, centred=False)
    gradient = []
    for a, c in enumerate(columns):
        span = counts.span(a)
        inertia = counts.value_counts[span] @ c.stack**2
        gradient.append(inertia - ((response[span].T @ c.stack) ** 2).sum(axis=0))
    return np.maximum(np.concatenate(gradient), 0)
