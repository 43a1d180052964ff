"""From the scores of the sources to predictions: fused (Eq. 3.6), then smoothed over graphs.

How much each source counts, and how much predictions lean on their neighbours, is chosen by the
losses of held-out rows.

Smoothing is ours: Eq. (3.6) never looks at neighbours, so the graph term of training is lost on a
row whose own columns say little. Here the evidence of the neighbours is added to the fused score:
of d neighbours their mean times the root of d, as they are not independent. Neighbours see a label
where there is one; the prediction of the labeled id itself does not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from tabweave.io.register import storable
from tabweave.sources.gbc.team import Loss, source_weights

Judge = Callable[[np.ndarray], np.ndarray]  # the loss of each row, from fused scores
SHARPNESS = (1.0, 0.3, 0.1)  # z of Eq. (3.10)
SCALES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # of the fused score
SHRUNK = (1.0, 0.5, 0.25)  # scores of a source that is too sure of itself
EVIDENCE = 2.0  # standard errors by which a source must beat the constant
STRENGTHS = (0.5, 1.0, 2.0, 3.0, 4.5)  # of smoothing
ROUNDS = 12  # of smoothing
BALANCING = 5  # steps; after them the mix of classes is right to a percent or so


# -- fusion -------------------------------------------------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class Fusion:
    """Weights of the sources (sum 1) and the scale of their weighted mean."""

    weights: np.ndarray
    scale: float = 1.0

    def __call__(self, start: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Eq. (3.6): fuse scores (sources, rows, outputs), NaN where a source has no row.

        The mean runs over the sources that have a row. The scale counts in so far as they carry
        the weight: one source alone is believed as it is. Without any, the constant remains.
        """
        shares = self.weights[:, None] * ~np.isnan(scores[:, :, 0])
        total = shares.sum(axis=0)
        factor = np.where(total > 0, 1 + (self.scale - 1) * total, 0) / np.maximum(total, 1e-12)
        mean = np.einsum("sr,sro->ro", shares * factor, np.nan_to_num(scores))
        return start + mean


def choose_fusion(
    loss: Loss, judge: Judge, start: np.ndarray, scores: np.ndarray, targets: np.ndarray
) -> Fusion:
    """Choose the scale and z of Eq. (3.10); ``judge`` gives the loss of each row's fused scores."""
    losses = mean_losses(row_losses(loss, start, scores, targets))
    useful = informative(loss, start, scores, targets)
    if not useful.any():
        return equal_fusion(scores)
    losses = np.where(useful, losses, np.nan)
    best, least = _scaled(judge, start, scores, useful / useful.sum())
    for z in SHARPNESS:
        candidate, found = _scaled(judge, start, scores, source_weights(losses, z))
        if better(found, least):
            best, least = candidate, found
    return best


def equal_fusion(scores: np.ndarray) -> Fusion:
    """Return the plain mean of all sources that have any row."""
    present = ~np.isnan(scores[:, :, 0]).all(axis=1)
    return Fusion(present / max(present.sum(), 1))


def _scaled(
    judge: Judge, start: np.ndarray, scores: np.ndarray, weights: np.ndarray
) -> tuple[Fusion, np.ndarray]:
    """Return the best scale for some weights, and the losses under it."""
    useful = int((weights > 0).sum())
    trials = [Fusion(weights, scale) for scale in SCALES if scale <= useful]
    losses = [judge(trial(start, scores)) for trial in trials]
    at = int(np.argmin([values.mean() for values in losses]))
    return trials[at], losses[at]


def informative(
    loss: Loss, start: np.ndarray, scores: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Return which sources beat the constant on held-out rows by more than two standard errors.

    Scores may be shrunk for that: a source that is right but too sure of itself is informative.
    """
    constant = loss.rows(np.broadcast_to(start, targets.shape), targets)
    out = np.zeros(len(scores), dtype=bool)
    for shrink in SHRUNK:
        gain = constant - row_losses(loss, start, shrink * scores, targets)
        count = np.maximum((~np.isnan(gain)).sum(axis=1), 1)
        mean = np.nan_to_num(gain).sum(axis=1) / count
        error = np.sqrt(np.nan_to_num((gain - mean[:, None]) ** 2).sum(axis=1)) / count
        out |= (mean > EVIDENCE * error) & (count > 2)
    return out


def row_losses(
    loss: Loss, start: np.ndarray, scores: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Return the loss of each source on each row, NaN where it has none."""
    return np.array([loss.rows(start + own, targets) for own in scores])


def mean_losses(losses: np.ndarray) -> np.ndarray:
    """Return the mean loss of each source over its rows, NaN for a source without rows."""
    present = ~np.isnan(losses)
    count = present.sum(axis=1)
    total = np.where(present, losses, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def left_out(judge: Judge, fusion: Fusion, start: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return by how much the loss of the fused prediction grows when a source is left out."""
    full = judge(fusion(start, scores)).mean()
    out = np.zeros(len(scores))
    for i in np.flatnonzero(fusion.weights):
        rest = scores.copy()
        rest[i] = np.nan
        out[i] = judge(fusion(start, rest)).mean() - full
    return out


def better(new: np.ndarray, old: np.ndarray, errors: float = 1.0) -> bool:
    """Return whether losses of the same rows are lower by more than some standard errors."""
    gain = old - new
    return bool(gain.mean() > errors * gain.std() / np.sqrt(len(gain)))


# -- smoothing ----------------------------------------------------------------------------------


class Fused(NamedTuple):
    """Fused scores of all ids, which of them no table has, and the index of the labeled ones."""

    scores: np.ndarray
    bare: np.ndarray
    labeled: np.ndarray

    @classmethod
    def of(
        cls, fusion: Fusion, start: np.ndarray, scores: np.ndarray, labeled: np.ndarray
    ) -> Fused:
        """Fuse the scores of the sources."""
        bare = np.isnan(scores[:, :, 0]).all(axis=0)
        return cls(fusion(start, scores), bare, labeled)


class Smoothing(NamedTuple):
    """How predictions lean on neighbours: the strength of each graph, and the trust in oneself."""

    strengths: tuple[float, ...]
    trust: float = 1.0

    @property
    def any(self) -> bool:
        """Whether any graph is used."""
        return any(self.strengths)

    def with_strength(self, graph: int, strength: float) -> Smoothing:
        """Return the same but for the strength of one graph."""
        values = list(self.strengths)
        values[graph] = strength
        return self._replace(strengths=tuple(values))


class Smoother(ABC):
    """Smoothing of one kind of prediction."""

    trusts: ClassVar[tuple[float, ...]] = (1.0,)  # that make sense

    @abstractmethod
    def labels(self, targets: np.ndarray) -> np.ndarray:
        """Return the predictions that labels stand for."""

    @abstractmethod
    def plain(self, scores: np.ndarray) -> np.ndarray:
        """Return predictions without any smoothing."""

    @abstractmethod
    def over(
        self, fused: Fused, graph: sp.csr_array, labels: np.ndarray, trust: float
    ) -> np.ndarray:
        """Return predictions smoothed over a graph; neighbours see the labels."""

    @abstractmethod
    def losses(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the loss of each row."""

    def balanced(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return predictions of unlabeled rows in the proportions of the labels."""
        return predictions

    def __call__(
        self,
        fused: Fused,
        graphs: Sequence[sp.csr_array],
        smoothing: Smoothing,
        labels: np.ndarray,
    ) -> np.ndarray:
        """Return predictions, smoothed if they lean on any graph."""
        if not smoothing.any:
            return self.plain(fused.scores)
        return self.over(fused, evidence(graphs, smoothing.strengths), labels, smoothing.trust)


class ClassSmoother(Smoother):
    """Mean-field beliefs: log-probabilities plus what neighbours of an unusual mix say.

    The trust multiplies the own log-probabilities of a row that has neighbours.
    """

    trusts: ClassVar[tuple[float, ...]] = (1.0, 0.5, 0.3)

    def labels(self, targets: np.ndarray) -> np.ndarray:
        """Return one column of 0 and 1 for each class."""
        return np.hstack([1 - targets, targets]) if targets.shape[1] == 1 else targets

    def plain(self, scores: np.ndarray) -> np.ndarray:
        """Return the probability of each class."""
        share = expit(scores)
        if scores.shape[1] == 1:
            return np.hstack([1 - share, share])
        return share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)

    def over(
        self, fused: Fused, graph: sp.csr_array, labels: np.ndarray, trust: float
    ) -> np.ndarray:
        """Return probabilities after some rounds of adding the neighbours' evidence."""
        out = self.plain(fused.scores)
        total = graph.sum(axis=1)[:, None]
        own = np.log(np.maximum(out, 1e-12)) * np.where(total > 0, trust, 1.0)
        offset = total * self._prior(labels)
        for _ in range(ROUNDS):
            seen = out.copy()
            seen[fused.labeled] = labels
            belief = own + graph @ seen - offset
            belief -= belief.max(axis=1, keepdims=True)
            out = np.exp(belief)
            out /= out.sum(axis=1, keepdims=True)
        return out

    def balanced(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Class mass normalisation: pseudo-labels must not let large classes grow."""
        out, prior = predictions, self._prior(labels)
        for _ in range(BALANCING):
            out = out * (prior / np.maximum(out.mean(axis=0), 1e-12))
            out = out / np.maximum(out.sum(axis=1, keepdims=True), 1e-300)
        return out

    @staticmethod
    def _prior(labels: np.ndarray) -> np.ndarray:
        return (labels.sum(axis=0) + 0.5) / (len(labels) + 0.5 * labels.shape[1])

    def losses(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return -log p of each row's class."""
        return -np.log(np.maximum((predictions * labels).sum(axis=1), 1e-12))


class NumberSmoother(Smoother):
    """What scores leave over is passed on: the residual of a row is the mean of its neighbours'.

    The row itself counts as one neighbour of residual 0. A row that no table has takes over the
    values of its neighbours instead.
    """

    def labels(self, targets: np.ndarray) -> np.ndarray:
        """Return the numbers themselves."""
        return targets

    def plain(self, scores: np.ndarray) -> np.ndarray:
        """Return the scores themselves."""
        return scores

    def over(
        self, fused: Fused, graph: sp.csr_array, labels: np.ndarray, trust: float
    ) -> np.ndarray:
        """Return numbers after some rounds of passing residuals on."""
        scores, bare = fused.scores, fused.bare
        total = 1 + graph.sum(axis=1)[:, None]
        rest = np.zeros_like(scores)
        for _ in range(ROUNDS):
            seen = rest.copy()
            seen[fused.labeled] = labels - scores[fused.labeled]
            rest = graph @ seen / total
            values = (graph[bare] @ (scores + seen) + scores[bare]) / total[bare]
            rest[bare] = values - scores[bare]
        return scores + rest

    def losses(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the squared error of each row."""
        return ((predictions - labels) ** 2).sum(axis=1)


def evidence(graphs: Sequence[sp.csr_array], strengths: Sequence[float]) -> sp.csr_array:
    """Return Σ strength · W / √degree over the graphs in use; there is at least one."""
    total = 0
    for graph, strength in zip(graphs, strengths, strict=True):
        if strength:
            degree = graph.sum(axis=1)
            root = sp.diags_array(strength / np.sqrt(np.where(degree > 0, degree, 1)))
            total = total + root @ graph
    return sp.csr_array(total)


def choose_smoothing(
    losses_of: Callable[[Smoothing], np.ndarray], n_graphs: int, trusts: tuple[float, ...]
) -> tuple[Smoothing, list[dict[str, Any]]]:
    """Choose the strength of each graph, and the trust, by the losses of held-out rows.

    A graph is used if they fall by more than a standard error.
    """
    tried: dict[Smoothing, np.ndarray] = {}

    def losses(smoothing: Smoothing) -> np.ndarray:
        if smoothing not in tried:
            tried[smoothing] = losses_of(smoothing)
        return tried[smoothing]

    best = Smoothing((0.0,) * n_graphs)
    for trust in trusts:
        if trust != trusts[0] and not best.any:
            break  # a graph of no use at full trust
        chosen = Smoothing((0.0,) * n_graphs, trust)
        # The graph that helps most alone comes first; the others must add to it.
        alone = [
            min(losses(chosen.with_strength(g, s)).mean() for s in STRENGTHS)
            for g in range(n_graphs)
        ]
        for g in np.argsort(alone).tolist():
            trials = [chosen.with_strength(g, s) for s in STRENGTHS]
            trial = min(trials, key=lambda one: losses(one).mean())
            reference = chosen if chosen.any else Smoothing(chosen.strengths)
            if better(losses(trial), losses(reference)):
                chosen = trial
        if better(losses(chosen), losses(best)):
            best = chosen
    log = [{**smoothing._asdict(), "loss": float(v.mean())} for smoothing, v in tried.items()]
    return best, log
