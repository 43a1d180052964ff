"""Smoothing: predictions lean on those of their neighbours; how much, validation says. Ours.

Eq. (3.6) never looks at neighbours, so the graph term of training is lost on a row whose own
columns say little. Here the evidence of the neighbours is added to the fused score: of d
neighbours their mean times the root of d, as they are not independent. Neighbours see a label
where it is known; the prediction of the labeled id itself does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

ROUNDS = 12
BALANCING = 5  # steps; after them the mix of classes is right to a percent or so


class Fused(NamedTuple):
    """Fused scores of all ids, which of them no table has, and the places of known labels."""

    scores: np.ndarray
    bare: np.ndarray
    places: np.ndarray


class Lean(NamedTuple):
    """How predictions lean on neighbours: the strength of each graph, and the trust in oneself."""

    strengths: tuple[float, ...]
    trust: float = 1.0

    @property
    def any(self) -> bool:
        """Whether any graph is used."""
        return any(self.strengths)


class Smoother(Protocol):
    """Smoothing of one kind of prediction."""

    def known(self, targets: np.ndarray) -> np.ndarray:
        """Return the predictions that labels stand for."""

    def plain(self, scores: np.ndarray) -> np.ndarray:
        """Return predictions without any smoothing."""

    trusts: tuple[float, ...]  # that make sense

    def __call__(
        self, fused: Fused, graph: sp.csr_array, known: np.ndarray, trust: float
    ) -> np.ndarray:
        """Return smoothed predictions; labels are known to the neighbours of their ids."""

    def losses(self, predictions: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return the loss of each row."""

    def balanced(self, predictions: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return predictions of unlabeled rows in the proportions of the known labels."""


class ClassSmoother:
    """Mean-field beliefs: log-probabilities plus what neighbours of an unusual mix say.

    The trust multiplies the own log-probabilities of a row that has neighbours.
    """

    trusts: tuple[float, ...] = (1.0, 0.5, 0.3)

    def known(self, targets: np.ndarray) -> np.ndarray:
        return np.hstack([1 - targets, targets]) if targets.shape[1] == 1 else targets

    def plain(self, scores: np.ndarray) -> np.ndarray:
        share = expit(scores)
        if scores.shape[1] == 1:
            return np.hstack([1 - share, share])
        return share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)

    def __call__(
        self, fused: Fused, graph: sp.csr_array, known: np.ndarray, trust: float
    ) -> np.ndarray:
        out = self.plain(fused.scores)
        total = graph.sum(axis=1)[:, None]
        own = np.log(np.maximum(out, 1e-12)) * np.where(total > 0, trust, 1.0)
        offset = total * self._prior(known)
        for _ in range(ROUNDS):
            seen = out.copy()
            seen[fused.places] = known
            belief = own + graph @ seen - offset
            belief -= belief.max(axis=1, keepdims=True)
            out = np.exp(belief)
            out /= out.sum(axis=1, keepdims=True)
        return out

    def balanced(self, predictions: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Class mass normalisation: what is taught must not let large classes grow."""
        out, prior = predictions, self._prior(known)
        for _ in range(BALANCING):
            out = out * (prior / np.maximum(out.mean(axis=0), 1e-12))
            out = out / np.maximum(out.sum(axis=1, keepdims=True), 1e-300)
        return out

    @staticmethod
    def _prior(known: np.ndarray) -> np.ndarray:
        return (known.sum(axis=0) + 0.5) / (len(known) + 0.5 * known.shape[1])

    def losses(self, predictions: np.ndarray, known: np.ndarray) -> np.ndarray:
        return -np.log(np.maximum((predictions * known).sum(axis=1), 1e-12))


class NumberSmoother:
    """What scores leave over is passed on: the residual of a row is the mean of its neighbours'.

    The row itself counts as one neighbour of residual 0. A row that no table has takes over the
    values of its neighbours instead.
    """

    trusts: tuple[float, ...] = (1.0,)

    def known(self, targets: np.ndarray) -> np.ndarray:
        return targets

    def plain(self, scores: np.ndarray) -> np.ndarray:
        return scores

    def __call__(
        self, fused: Fused, graph: sp.csr_array, known: np.ndarray, trust: float
    ) -> np.ndarray:
        scores, bare = fused.scores, fused.bare
        total = 1 + graph.sum(axis=1)[:, None]
        rest = np.zeros_like(scores)
        for _ in range(ROUNDS):
            seen = rest.copy()
            seen[fused.places] = known - scores[fused.places]
            rest = graph @ seen / total
            values = (graph[bare] @ (scores + seen) + scores[bare]) / total[bare]
            rest[bare] = values - scores[bare]
        return scores + rest

    def balanced(self, predictions: np.ndarray, known: np.ndarray) -> np.ndarray:
        return predictions

    def losses(self, predictions: np.ndarray, known: np.ndarray) -> np.ndarray:
        return ((predictions - known) ** 2).sum(axis=1)


def evidence(graphs: Sequence[sp.csr_array], strengths: Sequence[float]) -> sp.csr_array:
    """Return Σ strength · W / √degree over the graphs in use; there is at least one."""
    total = 0
    for graph, strength in zip(graphs, strengths, strict=True):
        if strength:
            degree = graph.sum(axis=1)
            root = sp.diags_array(strength / np.sqrt(np.where(degree > 0, degree, 1)))
            total = total + root @ graph
    return sp.csr_array(total)


def smooth(
    smoother: Smoother,
    fused: Fused,
    graphs: Sequence[sp.csr_array],
    lean: Lean,
    known: np.ndarray,
) -> np.ndarray:
    """Return predictions, smoothed if they lean on any graph."""
    if not lean.any:
        return smoother.plain(fused.scores)
    return smoother(fused, evidence(graphs, lean.strengths), known, lean.trust)
