"""The objective of GBC: losses, the consensus and the graph term, and the weights they give.

Every score is an array of shape (rows, outputs): one output for numbers and for two classes, one
for each class (one against the others) if there are more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import expit

Pair = tuple[np.ndarray, np.ndarray]


class Loss(ABC):
    """A loss L(f, t) of scores f; t is a label, or a target made of predictions."""

    @abstractmethod
    def start(self, targets: np.ndarray) -> np.ndarray:
        """Return the constant of smallest loss, one for each output."""

    @abstractmethod
    def rows(self, scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the loss of each row, summed over outputs."""

    @abstractmethod
    def gradient(self, scores: np.ndarray, targets: np.ndarray) -> Pair:
        """Return first and second derivatives in the scores."""

    @abstractmethod
    def target(self, scores: np.ndarray) -> np.ndarray:
        """Return the target that an expected score stands for."""

    def agreement(self, scores: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Return L(f, E) of each row, E an expected score."""
        return self.rows(scores, self.target(expected))

    def agreement_gradient(self, scores: np.ndarray, expected: np.ndarray) -> Pair:
        """Return the derivatives of :meth:`agreement` in the scores."""
        return self.gradient(scores, self.target(expected))


class Logistic(Loss):
    """log(1 + exp(f)) - t f: targets are 0, 1 or a probability between them."""

    def start(self, targets: np.ndarray) -> np.ndarray:
        """Return log-odds, with half a row more on both sides: no class of a fold is impossible."""
        share = (targets.sum(axis=0) + 0.5) / (len(targets) + 1)
        return np.log(share / (1 - share))

    def rows(self, scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the loss of each row, summed over outputs."""
        return (softplus(scores) - targets * scores).sum(axis=-1)

    def gradient(self, scores: np.ndarray, targets: np.ndarray) -> Pair:
        """Return σ(f) - t and σ(f)(1 - σ(f))."""
        share = expit(scores)
        return share - targets, share * (1 - share)

    def target(self, scores: np.ndarray) -> np.ndarray:
        """Return the probability σ(E)."""
        return expit(scores)


class Squared(Loss):
    """(f - t)², numbers of mean 0 and standard deviation 1."""

    def start(self, targets: np.ndarray) -> np.ndarray:
        """Return the mean."""
        return targets.mean(axis=0)

    def rows(self, scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the loss of each row, summed over outputs."""
        return ((scores - targets) ** 2).sum(axis=-1)

    def gradient(self, scores: np.ndarray, targets: np.ndarray) -> Pair:
        """Return 2(f - t) and 2."""
        return 2 * (scores - targets), np.full_like(scores, 2.0)

    def target(self, scores: np.ndarray) -> np.ndarray:
        """Return the expected number itself."""
        return scores


def softplus(values: np.ndarray) -> np.ndarray:
    """Return log(1 + exp(v)) without overflow, and without complaint about NaN."""
    return np.maximum(values, 0) + np.log1p(np.exp(-np.abs(values)))


def expected(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Eq. (3.2): mean score over the sources that have a row; scores are (sources, rows, outputs).

    NaN where a source has no row; a row that no source has stays NaN.
    """
    present = ~np.isnan(scores[:, :, 0])
    shares = weights[:, None] * present
    total = shares.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.where(total > 0, shares / total, np.where(present.any(axis=0), 0.0, np.nan))
    return np.einsum("sr,sro->ro", shares, np.where(present[:, :, None], scores, 0.0))


class Terms:
    """Eq. (3.4) for one source: its rows, their labels and how much each term counts.

    The weight of the source multiplies all of it and so drops out of a Newton step. The targets
    are held fixed while the source takes its step, as in the published gradients.

    Parameters
    ----------
    loss : Loss
        L.
    targets : ndarray of shape (rows, outputs)
        Labels; any value where there is none.
    labeled : ndarray of bool, shape (rows,)
        Which rows have a label.
    factors : tuple of two floats
        What the consensus and the graph term of an unlabeled row are multiplied by.
    """

    def __init__(
        self,
        loss: Loss,
        targets: np.ndarray,
        labeled: np.ndarray,
        factors: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.loss, self.targets, self.labeled, self.factors = loss, targets, labeled, factors

    def value(self, scores: np.ndarray, expected: tuple[np.ndarray | None, ...]) -> float:
        """Return the objective at some scores; ``expected`` holds E (3.2) and Ẽ (3.3)."""
        out = self.loss.rows(scores, self.targets)[self.labeled].sum()
        free = ~self.labeled
        for factor, mean in zip(self.factors, expected, strict=True):
            if factor and mean is not None:
                out += factor * self.loss.agreement(scores[free], mean[free]).sum()
        return float(out)

    def gradient(self, scores: np.ndarray, expected: tuple[np.ndarray | None, ...]) -> Pair:
        """Return the derivatives of :meth:`value` in the scores."""
        first, second = self.loss.gradient(scores, self.targets)
        if self.labeled.all():
            return first, second
        free = ~self.labeled
        first[free], second[free] = 0.0, 0.0
        for factor, mean in zip(self.factors, expected, strict=True):
            if factor and mean is not None:
                g, h = self.loss.agreement_gradient(scores[free], mean[free])
                first[free] += factor * g
                second[free] += factor * h
        return first, second


def label_scale(labeled: np.ndarray) -> float:
    """Return labeled over unlabeled rows: times this, λ = 1 weighs as much as all labels do."""
    return int(labeled.sum()) / max(int((~labeled).sum()), 1)


def source_weights(losses: np.ndarray, z: float = 1.0) -> np.ndarray:
    """Eq. (3.10): exp(-loss / z), to sum 1; a source without a loss (NaN) weighs nothing."""
    weights = np.exp(-(losses - np.nanmin(losses)) / z)
    weights = np.nan_to_num(weights)
    return weights / weights.sum()


def graph_weights(
    loss: Loss, scores: np.ndarray, pairs: list[np.ndarray], weights: np.ndarray
) -> np.ndarray:
    """Eq. (3.11) with z = 1 and c the number of edges; pairs index the rows of the scores."""
    values = np.full(len(pairs), np.nan)
    for g, ends in enumerate(pairs):
        parts = np.array([edge_loss(loss, own, ends) for own in scores])
        used = ~np.isnan(parts) & (weights > 0)
        if used.any():
            values[g] = parts[used] @ weights[used] / weights[used].sum()
    if np.isnan(values).all():
        return np.full(len(values), 1 / max(len(values), 1))
    return source_weights(values)


def edge_loss(loss: Loss, scores: np.ndarray, pairs: np.ndarray) -> float:
    """Inner sum of Eq. (3.11): mean loss between the ends of edges that have scores."""
    a, b = scores[pairs[0]], scores[pairs[1]]
    return float(np.nanmean(loss.rows(a, loss.target(b)))) if len(a) else np.nan
