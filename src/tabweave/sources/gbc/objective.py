"""The objective of GBC: losses, their gradients, the consensus and the graph term.

Every score is an array of shape (rows, outputs): one output for numbers and for two classes, one
for each class (one against the others) if there are more.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import expit

Pair = tuple[np.ndarray, np.ndarray]


class Loss(Protocol):
    """What GBC needs to know of a loss L(f, t), t a label or a target made of predictions."""

    def start(self, targets: np.ndarray) -> np.ndarray:
        """Return the constant of smallest loss, one for each output."""

    def rows(self, scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the loss of each row, summed over outputs."""

    def gradient(self, scores: np.ndarray, targets: np.ndarray) -> Pair:
        """Return first and second derivatives in the scores."""

    def target(self, scores: np.ndarray) -> np.ndarray:
        """Return the target that an expected score stands for."""

    def printed(self, scores: np.ndarray, expected: np.ndarray) -> Pair:
        """Return the derivatives of the printed L(f, E)."""


class Logistic:
    """log(1 + exp(f)) - t f: targets are 0, 1 or a probability between them."""

    def start(self, targets: np.ndarray) -> np.ndarray:
        # Half a row more on both sides: a class of no row in a fold has odds, too.
        share = (targets.sum(axis=0) + 0.5) / (len(targets) + 1)
        return np.log(share / (1 - share))

    def rows(self, scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return (_softplus(scores) - targets * scores).sum(axis=-1)

    def gradient(self, scores: np.ndarray, targets: np.ndarray) -> Pair:
        share = expit(scores)
        return share - targets, share * (1 - share)

    def target(self, scores: np.ndarray) -> np.ndarray:
        return expit(scores)

    def printed(self, scores: np.ndarray, expected: np.ndarray) -> Pair:
        """Section 3.4.2: of log(1 + exp(-E f)), E being any number as if it were -1 or 1."""
        share = expit(-expected * scores)
        return -expected * share, expected**2 * share * (1 - share)


def _softplus(values: np.ndarray) -> np.ndarray:
    """Return log(1 + exp(v)) without overflow, and without complaint about NaN."""
    return np.maximum(values, 0) + np.log1p(np.exp(-np.abs(values)))


class Squared:
    """(f - t)², numbers of mean 0 and standard deviation 1."""

    def start(self, targets: np.ndarray) -> np.ndarray:
        return targets.mean(axis=0)

    def rows(self, scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return ((scores - targets) ** 2).sum(axis=-1)

    def gradient(self, scores: np.ndarray, targets: np.ndarray) -> Pair:
        return 2 * (scores - targets), np.full_like(scores, 2.0)

    def target(self, scores: np.ndarray) -> np.ndarray:
        return scores

    def printed(self, scores: np.ndarray, expected: np.ndarray) -> Pair:
        return self.gradient(scores, expected)


class Terms:
    """Eq. (3.4) for one source: its rows, what is known of them and how much each term counts.

    The weight of the source multiplies all of it and so drops out of a Newton step. The targets
    are held fixed while the source takes its step, as in the printed gradients.

    Parameters
    ----------
    loss : Loss
        L.
    targets : ndarray of shape (rows, outputs)
        Labels; any value where there is none.
    labeled : ndarray of bool, shape (rows,)
        Which rows have a label.
    consensus, connectivity : float
        λ0 and λ1. Both terms are means over the unlabeled rows, on the scale of the labeled ones:
        at 1 they weigh as much as the labels do. As printed they are sums.
    printed : bool
        Whether to use the printed sums and targets.
    """

    def __init__(
        self,
        loss: Loss,
        targets: np.ndarray,
        labeled: np.ndarray,
        consensus: float = 0.0,
        connectivity: float = 0.0,
        printed: bool = False,
    ) -> None:
        self.loss, self.targets, self.labeled, self.printed = loss, targets, labeled, printed
        n_unlabeled = max(int((~labeled).sum()), 1)
        scale = 1.0 if printed else int(labeled.sum()) / n_unlabeled
        self.factors = (consensus * scale, connectivity * scale)

    def value(self, scores: np.ndarray, expected: tuple[np.ndarray | None, ...]) -> float:
        """Return the objective at some scores; ``expected`` holds E (3.2) and Ẽ (3.3)."""
        out = self.loss.rows(scores, self.targets)[self.labeled].sum()
        for factor, mean in zip(self.factors, expected, strict=True):
            if factor and mean is not None:
                free, means = scores[~self.labeled], mean[~self.labeled]
                if self.printed and isinstance(self.loss, Logistic):
                    out += factor * _softplus(-means * free).sum()
                else:
                    out += factor * self.loss.rows(free, self.loss.target(means)).sum()
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
                if self.printed:
                    g, h = self.loss.printed(scores[free], mean[free])
                else:
                    g, h = self.loss.gradient(scores[free], self.loss.target(mean[free]))
                first[free] += factor * g
                second[free] += factor * h
        return first, second


def source_weights(losses: np.ndarray, z: float = 1.0) -> np.ndarray:
    """Eq. (3.10): exp(-loss / z), to sum 1; a source without a loss (NaN) weighs nothing."""
    weights = np.exp(-(losses - np.nanmin(losses)) / z)
    weights = np.nan_to_num(weights)
    return weights / weights.sum()


def edge_loss(loss: Loss, scores: np.ndarray, pairs: np.ndarray) -> float:
    """Inner sum of Eq. (3.11): mean loss between the ends of edges whose scores are known."""
    a, b = scores[pairs[0]], scores[pairs[1]]
    return float(np.nanmean(loss.rows(a, loss.target(b)))) if len(a) else np.nan


def expected(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Eq. (3.2): mean score over the sources that have a row; scores are (sources, rows, outputs).

    NaN where a source has no row; a row that no source has stays NaN.
    """
    known = ~np.isnan(scores[:, :, 0])
    shares = weights[:, None] * known
    total = shares.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.where(total > 0, shares / total, np.where(known.any(axis=0), 0.0, np.nan))
    return np.einsum("sr,sro->ro", shares, np.where(known[:, :, None], scores, 0.0))
