"""Fusion: how much each source counts, from scores of rows that its boosters did not see.

Eq. (3.10) with the loss of held-out rows; a source that is no better than a constant counts for
nothing. How far several sources together may go beyond their mean (the scale) and how sharply
weights follow the losses (z) are chosen by the loss of the fused prediction on the same rows;
weights stay equal unless that gains by more than a standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weft.sources._gbc_objective import Loss, source_weights

SHARPNESS = (1.0, 0.3, 0.1)  # z
SCALES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
Judge = Callable[[np.ndarray], np.ndarray]
SHRUNK = (1.0, 0.5, 0.25)
EVIDENCE = 2.0  # standard errors by which a source must beat the constant


@dataclass(frozen=True, eq=False)
class Fusion:
    """Weights of the sources (sum 1) and the scale of their weighted mean."""

    weights: np.ndarray
    scale: float = 1.0

    def __call__(self, start: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Eq. (3.6): fuse scores (sources, rows, outputs), NaN where a source has no row.

        The mean runs over the sources that know a row. The scale counts in so far as they carry
        the weight: one source alone is believed as it is. Without any, the constant remains.
        """
        known = ~np.isnan(scores[:, :, 0])
        shares = self.weights[:, None] * known
        total = shares.sum(axis=0)
        factor = np.where(total > 0, 1 + (self.scale - 1) * total, 0) / np.maximum(total, 1e-12)
        mean = np.einsum("sr,sro->ro", shares * factor, np.nan_to_num(scores))
        return start + mean


def bare(scores: np.ndarray) -> np.ndarray:
    """Say which rows no source has a score of."""
    return np.isnan(scores[:, :, 0]).all(axis=0)


def row_losses(
    loss: Loss, start: np.ndarray, scores: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Return the loss of each source on each row, NaN where it has none."""
    return np.array([loss.rows(start + own, targets) for own in scores])


def mean_losses(losses: np.ndarray) -> np.ndarray:
    """Return the mean loss of each source over its rows, NaN for a source without rows."""
    known = ~np.isnan(losses)
    count = known.sum(axis=1)
    total = np.where(known, losses, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def informative(
    loss: Loss, start: np.ndarray, scores: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Say which sources beat the constant on held-out rows by more than two standard errors.

    Scores may be shrunk for that: a source that is right but too sure of itself is informative.
    """
    constant = loss.rows(np.broadcast_to(start, targets.shape), targets)
    out = np.zeros(len(scores), dtype=bool)
    for shrink in SHRUNK:
        gain = constant - row_losses(loss, start, shrink * scores, targets)
        count = np.maximum((~np.isnan(gain)).sum(axis=1), 1)
        mean = np.nan_to_num(gain).sum(axis=1) / count
        spread = np.sqrt(np.nan_to_num((gain - mean[:, None]) ** 2).sum(axis=1)) / count
        out |= (mean > EVIDENCE * spread) & (count > 2)
    return out


def choose(
    loss: Loss, judge: Judge, start: np.ndarray, scores: np.ndarray, targets: np.ndarray
) -> Fusion:
    """Choose the scale and z; ``judge`` gives the loss of each row's fused scores."""
    losses = mean_losses(row_losses(loss, start, scores, targets))
    useful = informative(loss, start, scores, targets)
    if not useful.any():
        return equal(scores)
    losses = np.where(useful, losses, np.nan)
    best, least = _scaled(judge, start, scores, _equal(useful))
    for z in SHARPNESS:
        candidate, found = _scaled(judge, start, scores, source_weights(losses, z))
        if better(found, least):
            best, least = candidate, found
    return best


def _scaled(
    judge: Judge, start: np.ndarray, scores: np.ndarray, weights: np.ndarray
) -> tuple[Fusion, np.ndarray]:
    """Return the best scale for some weights, and the losses under it."""
    useful = int((weights > 0).sum())
    trials = [Fusion(weights, scale) for scale in SCALES if scale <= useful]
    losses = [judge(trial(start, scores)) for trial in trials]
    at = int(np.argmin([values.mean() for values in losses]))
    return trials[at], losses[at]


def better(new: np.ndarray, old: np.ndarray, errors: float = 1.0) -> bool:
    """Say whether losses of the same rows are lower by more than some standard errors."""
    gain = old - new
    return bool(gain.mean() > errors * gain.std() / np.sqrt(len(gain)))


def _equal(which: np.ndarray) -> np.ndarray:
    return which / max(which.sum(), 1)


def equal(scores: np.ndarray) -> Fusion:
    """Return the plain mean of all sources that have any row."""
    return Fusion(_equal(~np.isnan(scores[:, :, 0]).all(axis=1)))


def left_out(judge: Judge, fusion: Fusion, start: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return by how much the loss of the fused prediction grows when a source is left out."""
    full = judge(fusion(start, scores)).mean()
    out = np.zeros(len(scores))
    for i in np.flatnonzero(fusion.weights):
        rest = scores.copy()
        rest[i] = np.nan
        out[i] = judge(fusion(start, rest)).mean() - full
    return out
