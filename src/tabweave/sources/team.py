"""A team of trees over many sources: what each adds, and how predictions are fused.

Gradient boosting consensus [Shi 2013, ch. 3].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from tabweave._compat import require
from tabweave.io.register import storable
from tabweave.sources.container import Sources, averaging
from tabweave.sources.tables import position_of_each

# -- A team of boosters, one for each source, that grow one tree each (per output) in turn --------
#
# :class:`Team` grows them on tables that are binned once; below it are the losses that it may
# minimise, and the terms of Eqs. (3.2)–(3.11): agreement of sources, and what each of them weighs.

Pair = tuple[np.ndarray, np.ndarray]


class Team:
    """Boosters of one training run, in step.

    Parameters
    ----------
    binned : Binned
        The tables.
    loss : Loss
        What to minimise on labeled rows.
    labeled, targets : ndarray
        Index of the labeled ids, and their targets.
    watched : ndarray
        Index of the ids whose scores are wanted after each round.
    weights : ndarray, optional
        How much each label counts; all alike if not given.
    """

    warm_up: ClassVar[int] = 15  # rounds before predictions are good enough to agree about

    def __init__(
        self,
        binned: Binned,
        loss: Loss,
        labeled: np.ndarray,
        targets: np.ndarray,
        watched: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> None:
        self.binned, self.loss = binned, loss
        self.start = loss.start(targets, weights)
        self.watched = watched
        n = len(binned.sources)
        self._targets = np.zeros((n, targets.shape[1]))
        self._targets[labeled] = targets
        self._is_labeled = np.zeros(n, dtype=bool)
        self._is_labeled[labeled] = True
        self._sample: np.ndarray | None = None
        if weights is not None:
            self._sample = np.ones(n)
            self._sample[labeled] = weights
        self._extra = np.zeros(0, dtype=np.intp)
        self._lambdas = (0.0, 0.0)
        self._mean: sp.csr_array | None = None
        self.boosters: list[Any] = []
        self.weights = np.zeros(0)
        self.n_rounds = 0

    def couple(
        self,
        unlabeled: np.ndarray,
        lambdas: tuple[float, float],
        weights: np.ndarray,
        graph: sp.csr_array | None = None,
    ) -> Self:
        """Let the team agree on unlabeled ids: λ0, λ1, the source weights and Ẽ's graph."""
        self._extra, self._lambdas, self.weights = unlabeled, lambdas, weights
        if graph is not None and lambdas[1]:
            self._mean = averaging(graph)
        return self

    def begin(self, mask: np.ndarray | None = None) -> Self:
        """Make the boosters; a source outside the mask or has no two labels gets none."""
        used = self._is_labeled.copy()
        used[self._extra] = True
        self._rows: list[np.ndarray] = []  # index of the ids each booster trains on
        self._terms: list[Terms | None] = []
        for i, row in enumerate(self.binned.rows):
            ids_by_row = np.flatnonzero(row >= 0)[np.argsort(row[row >= 0])]  # ids in row order
            rows = ids_by_row[used[ids_by_row]]
            labels = self._is_labeled[rows]
            self._rows.append(rows)
            data = self.binned.datasets[i]
            if data is None or labels.sum() < 2 or (mask is not None and not mask[i]):
                self.boosters.append(None)
                self._terms.append(None)
                continue
            self.boosters.append(self._booster(data, row, rows))
            factors = self._factors(labels)
            weights = None if self._sample is None else self._sample[rows]
            self._terms.append(Terms(self.loss, self._targets[rows], labels, factors, weights))
        return self

    def _booster(self, data: Any, row: np.ndarray, rows: np.ndarray) -> Any:
        """A new booster of some rows of a table; it keeps the scores of watched ones."""
        lgb = require("lightgbm", "boost")
        booster = lgb.Booster(self.binned.params, data.subset(np.sort(row[rows])))
        watched = np.sort(row[self.watched])
        if (watched >= 0).any():
            booster.add_valid(data.subset(watched[watched >= 0]), "watched")
        return booster

    def _factors(self, labeled: np.ndarray) -> tuple[float, float]:
        """Return λ0 and λ1 of means over the unlabeled rows, on the scale of the labels."""
        scale = label_scale(labeled)
        return self._lambdas[0] * scale, self._lambdas[1] * scale

    @property
    def coupled(self) -> bool:
        """Whether the next round looks at unlabeled rows."""
        return any(self._lambdas) and len(self._extra) > 0 and self.n_rounds >= self.warm_up

    def step(self) -> None:
        """Grow one tree per output for every source, each on the latest scores of the others."""
        scores = self._training_scores() if self.coupled else None
        for i, (booster, terms) in enumerate(zip(self.boosters, self._terms, strict=True)):
            if booster is None or terms is None:
                continue
            means = (None, None) if scores is None else self._means(scores, i)
            booster.update(fobj=self._objective(terms, means))
            if scores is not None:
                scores[i, self._rows[i]] = self.start + _scores(booster, False)
        self.n_rounds += 1

    def train(self, n_rounds: int, mask: np.ndarray | None = None) -> Self:
        """Make the boosters and grow their trees, so many rounds."""
        self.begin(mask)
        for _ in range(n_rounds):
            self.step()
        return self

    def _objective(self, terms: Terms, means: Any) -> Any:
        def objective(raw: np.ndarray, _: Any) -> Any:
            scores = self.start + raw.reshape(len(raw), -1)
            first, second = terms.gradient(scores, means)
            return first.reshape(raw.shape), second.reshape(raw.shape)

        return objective

    def _training_scores(self) -> np.ndarray:
        n, outputs = len(self.binned.sources), self.binned.n_outputs
        scores = np.full((len(self.boosters), n, outputs), np.nan)
        for i, booster in enumerate(self.boosters):
            if booster is not None:
                scores[i, self._rows[i]] = self.start + _scores(booster, False)
        return scores

    def _means(self, scores: np.ndarray, i: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """E (3.2) and Ẽ (3.3) of the rows of a source, None for a term that is off."""
        rows = self._rows[i]
        mean, neighbors = None, None
        if self._lambdas[0]:
            mean = expected(scores[:, rows], self.weights)
        if self._mean is not None:
            # The mean over the neighbours that this source has; without any, its own score.
            source_scores = scores[i]
            present = ~np.isnan(source_scores[:, 0])
            total = self._mean[rows] @ present.astype(float)
            neighbors = self._mean[rows] @ np.where(present[:, None], source_scores, 0.0)
            neighbors = np.where(
                total[:, None] > 0,
                neighbors / np.maximum(total, 1e-12)[:, None],
                source_scores[rows],
            )
        return mean, neighbors

    def watched_scores(self) -> np.ndarray:
        """The scores of the watched ids less the constant, NaN where a source has none."""
        out = np.full((len(self.boosters), len(self.watched), self.binned.n_outputs), np.nan)
        for i, (booster, row) in enumerate(zip(self.boosters, self.binned.rows, strict=True)):
            rows = row[self.watched]
            present = np.flatnonzero(rows >= 0)
            if booster is not None and len(present):
                # The watched rows stand in row order of the table.
                out[i, present[np.argsort(rows[present], kind="stable")]] = self._watched_of(i)
        return out

    def finish(self) -> list[Any]:
        """Let the rows go; return the boosters, which can only predict from now on."""
        for booster in filter(None, self.boosters):
            booster.free_dataset()
        return self.boosters

    def _watched_of(self, i: int) -> np.ndarray:
        """The scores of a source's watched rows."""
        return _scores(self.boosters[i], True)


def _scores(booster: Any, valid: bool) -> np.ndarray:
    """Raw scores of the training or of the watched rows, kept up to date by LightGBM."""
    caught: list[np.ndarray] = []

    def catch(raw: np.ndarray, _: Any) -> tuple[str, float, bool]:
        caught.append(np.array(raw.reshape(len(raw), -1)))
        return "caught", 0.0, True

    booster.eval_valid(catch) if valid else booster.eval_train(catch)
    return caught[0]


class Binned:
    """The tables of some sources as LightGBM has them: binned once, whatever is trained on them."""

    def __init__(
        self,
        sources: Sources,
        params: Mapping[str, Any],
        n_outputs: int,
        *,
        max_single_thread_cells: int = 1_000_000,
    ) -> None:
        self.sources = sources
        cells = max(np.prod(sources.matrix(name).shape) for name in sources.names)
        threads = {"num_threads": 1} if cells <= max_single_thread_cells else {}
        self.params = {**threads, **params, "num_class": n_outputs}
        self.n_outputs = n_outputs
        self.rows: list[np.ndarray] = []  # the row of every id in each table, -1 if it has none
        self.datasets: list[Any] = []  # None for a table without rows
        for name in sources.names:
            self.rows.append(position_of_each(sources.rows(name), len(sources)))
            self.datasets.append(self._dataset(name) if len(sources.rows(name)) else None)

    def _dataset(self, name: str) -> Any:
        matrix = as_lightgbm(self.sources.matrix(name))
        return require("lightgbm", "boost").Dataset(
            matrix,
            label=np.zeros(matrix.shape[0]),
            categorical_feature=np.flatnonzero(self.sources.categorical(name)).tolist(),
            params=self.params,
            free_raw_data=False,
        )


def as_lightgbm(matrix: Any) -> Any:
    """A matrix in a form that LightGBM takes."""
    return sp.csr_matrix(matrix) if sp.issparse(matrix) else matrix


def all_scores(
    boosters: Sequence[Any], sources: Sources, n_outputs: int, n_rounds: int
) -> np.ndarray:
    """The scores of all ids less the constant, NaN where a source has no row or booster."""
    out = np.full((len(boosters), len(sources), n_outputs), np.nan)
    for i, (name, booster) in enumerate(zip(sources.names, boosters, strict=True)):
        rows = sources.rows(name)
        if booster is not None and len(rows):
            matrix = as_lightgbm(sources.matrix(name))
            raw = booster.predict(matrix, raw_score=True, num_iteration=n_rounds)
            out[i, rows] = raw.reshape(len(rows), -1)
    return out


def mean_scores(
    teams: Sequence[Sequence[Any]], sources: Sources, n_outputs: int, n_rounds: int
) -> np.ndarray:
    """The mean of what teams of boosters say, for each source over those that it has."""
    total, count = 0.0, 0
    for boosters in teams:
        scores = all_scores(boosters, sources, n_outputs, n_rounds)
        total, count = total + np.nan_to_num(scores), count + ~np.isnan(scores)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def contributions(booster: Any, matrix: Any, n_rounds: int) -> np.ndarray:
    """Shapley values of each row's scores by column; the last one is their expectation."""
    dense = matrix.toarray() if sp.issparse(matrix) else matrix
    return np.asarray(booster.predict(dense, pred_contrib=True, num_iteration=n_rounds))


# -- losses -------------------------------------------------------------------------------------


class Loss(ABC):
    """A loss L(f, t) of scores f; t is a label, or a target made of predictions."""

    @abstractmethod
    def start(self, targets: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """The constant of smallest loss, one for each output."""

    @abstractmethod
    def rows(self, scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The loss of each row, summed over outputs."""

    @abstractmethod
    def gradient(self, scores: np.ndarray, targets: np.ndarray) -> Pair:
        """First and second derivatives in the scores."""

    @abstractmethod
    def target(self, scores: np.ndarray) -> np.ndarray:
        """The target that an expected score stands for."""

    def agreement(self, scores: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """L(f, E) of each row, E an expected score."""
        return self.rows(scores, self.target(expected))

    def agreement_gradient(self, scores: np.ndarray, expected: np.ndarray) -> Pair:
        """The derivatives of :meth:`agreement` in the scores."""
        return self.gradient(scores, self.target(expected))


class Logistic(Loss):
    """log(1 + exp(f)) - t f: targets are 0, 1 or a probability between them."""

    def start(self, targets: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Log-odds, with half a row more on both sides: no class of a fold is impossible."""
        weights = np.ones(len(targets)) if weights is None else weights
        share = (weights @ targets + 0.5) / (weights.sum() + 1)
        return np.log(share / (1 - share))

    def rows(self, scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The loss of each row, summed over outputs."""
        return (softplus(scores) - targets * scores).sum(axis=-1)

    def gradient(self, scores: np.ndarray, targets: np.ndarray) -> Pair:
        """Return σ(f) - t and σ(f)(1 - σ(f))."""
        share = expit(scores)
        return share - targets, share * (1 - share)

    def target(self, scores: np.ndarray) -> np.ndarray:
        """The probability σ(E)."""
        return expit(scores)


class Squared(Loss):
    """(f - t)², numbers of mean 0 and standard deviation 1."""

    def start(self, targets: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """The mean."""
        return np.average(targets, axis=0, weights=weights)

    def rows(self, scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The loss of each row, summed over outputs."""
        return ((scores - targets) ** 2).sum(axis=-1)

    def gradient(self, scores: np.ndarray, targets: np.ndarray) -> Pair:
        """2(f - t) and 2."""
        return 2 * (scores - targets), np.full_like(scores, 2.0)

    def target(self, scores: np.ndarray) -> np.ndarray:
        """The expected number itself."""
        return scores


def softplus(values: np.ndarray) -> np.ndarray:
    """Softplus, log(1 + exp(v)), without overflow, and without complaint about NaN."""
    return np.maximum(values, 0) + np.log1p(np.exp(-np.abs(values)))


# -- terms and weights --------------------------------------------------------------------------


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
    weights : ndarray of shape (rows,), optional
        What the loss of a labeled row is multiplied by.
    """

    def __init__(
        self,
        loss: Loss,
        targets: np.ndarray,
        labeled: np.ndarray,
        factors: tuple[float, float] = (0.0, 0.0),
        weights: np.ndarray | None = None,
    ) -> None:
        self.loss, self.targets, self.labeled, self.factors = loss, targets, labeled, factors
        self.weights = np.ones(len(targets)) if weights is None else weights

    def value(self, scores: np.ndarray, expected: tuple[np.ndarray | None, ...]) -> float:
        """The objective at some scores; ``expected`` holds E (3.2) and Ẽ (3.3)."""
        out = (self.weights * self.loss.rows(scores, self.targets))[self.labeled].sum()
        free = ~self.labeled
        for factor, mean in zip(self.factors, expected, strict=True):
            if factor and mean is not None:
                out += factor * self.loss.agreement(scores[free], mean[free]).sum()
        return float(out)

    def gradient(self, scores: np.ndarray, expected: tuple[np.ndarray | None, ...]) -> Pair:
        """The derivatives of :meth:`value` in the scores."""
        first, second = self.loss.gradient(scores, self.targets)
        first *= self.weights[:, None]
        second *= self.weights[:, None]
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
    """Labeled over unlabeled rows: times this, λ = 1 weighs as much as all labels do."""
    return int(labeled.sum()) / max(int((~labeled).sum()), 1)


def source_weights(losses: np.ndarray, z: float = 1.0) -> np.ndarray:
    """Eq. (3.10): exp(-loss / z), to sum 1; a source without a loss (NaN) weighs nothing."""
    known_losses = losses[~np.isnan(losses)]
    weights = np.nan_to_num(np.exp(-(losses - known_losses.min(initial=np.inf)) / z))
    return weights / max(weights.sum(), 1e-300)


def graph_weights(
    loss: Loss, scores: np.ndarray, pairs: list[np.ndarray], weights: np.ndarray
) -> np.ndarray:
    """Eq. (3.11) with z = 1 and c the number of edges; pairs index the rows of the scores."""
    values = np.full(len(pairs), np.nan)
    for g, ends in enumerate(pairs):
        parts = np.array([edge_loss(loss, source_scores, ends) for source_scores in scores])
        used = ~np.isnan(parts) & (weights > 0)
        if used.any():
            values[g] = parts[used] @ weights[used] / weights[used].sum()
    if np.isnan(values).all():
        return np.full(len(values), 1 / max(len(values), 1))
    return source_weights(values)


def edge_loss(loss: Loss, scores: np.ndarray, pairs: np.ndarray) -> float:
    """Inner sum of Eq. (3.11): mean loss between the ends of edges that have scores."""
    a, b = scores[pairs[0]], scores[pairs[1]]
    rows = loss.rows(a, loss.target(b))
    present = ~np.isnan(rows)
    return float(rows[present].mean()) if present.any() else np.nan


# -- From the scores of the sources to predictions: fused (Eq. 3.6), then smoothed over graphs ----
#
# How much each source counts, and how much predictions lean on their neighbours, is chosen by the
# losses of held-out rows.
#
# Smoothing is ours: Eq. (3.6) never looks at neighbours, so the graph term of training is lost
# on a row whose own columns say little. Here the evidence of the neighbours is added to the
# fused score: of d neighbours their mean times the root of d, as they are not independent.
# Neighbours see a label where there is one; the prediction of the labeled id itself does not.

Judge = Callable[[np.ndarray], np.ndarray]  # the loss of each row, from fused scores
SHARPNESS = (1.0, 0.3, 0.1)  # z of Eq. (3.10)
SCALES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # of the fused score, at most the number of sources
SHRUNKEN = (0.7, 0.5, 0.35, 0.25)  # of one that is too sure of itself
SHRUNK = (1.0, 0.5, 0.25)  # scores of a source that is too sure of itself
STANDARD_ERRORS_TO_BEAT = 2.0  # standard errors by which a source must beat the constant
STRENGTHS = (0.5, 1.0, 2.0, 3.0, 4.5)  # of smoothing


# -- fusion -------------------------------------------------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class Fusion:
    """Weights of the sources (sum 1), the scale of their weighted mean, and how sure it is.

    A scale below 1 draws scores towards the constant, and so towards the commonest class. A
    ``certainty`` below 1 (temperature, Guo and others 2017) shrinks the constant as well: the order
    of the classes stays, which is what a source that is right but too sure of itself needs.
    ``prior_share`` says how much of the weights is not from held-out rows.
    """

    weights: np.ndarray
    scale: float = 1.0
    certainty: float = 1.0
    prior_share: float = 0.0

    def __call__(self, start: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Eq. (3.6): fuse scores (sources, rows, outputs), NaN where a source has no row.

        The mean runs over the sources that have a row. Scale and certainty count in so far as they
        carry the weight: one source alone is believed as it is. Without any, the constant remains.
        """
        return self.of_mean(start, *self.mean(scores))

    def mean(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weighted mean of each row's scores, and the weight of those who have it."""
        total, shares = self._shares(~np.isnan(scores[:, :, 0]))
        return np.einsum("sr,sro->ro", shares, np.nan_to_num(scores)), total

    def of_mean(self, start: np.ndarray, mean: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Fused scores, given what :meth:`mean` returned."""
        scaled = start + (1 + (self.scale - 1) * total)[:, None] * mean
        return (1 + (self.certainty - 1) * total)[:, None] * scaled

    def factors(self, present: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the constant and each source's score of each row are multiplied by.

        ``present`` says which source has the row.
        """
        total, shares = self._shares(present)
        certainty = 1 + (self.certainty - 1) * total
        return certainty, shares * (1 + (self.scale - 1) * total) * certainty

    def _shares(self, present: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shares = self.weights[:, None] * present
        total = shares.sum(axis=0)
        return total, shares / np.where(total > 0, total, 1.0)


def choose_fusion(
    loss: Loss,
    judge: Judge,
    start: np.ndarray,
    scores: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    joined: bool = False,
    prior_labels: int = 10,
    min_share: float = 0.05,
) -> Fusion:
    """Choose what to believe: one source, all alike, or all by their losses, Eq. (3.10).

    A prior counts as much as so many labels, unless that is less than ``min_share`` of all: each
    source says something, and the booster of all columns as much as all sources together. So the
    fewer labels, the less must a source gain to count, and the more alike are the weights.

    The last of the scores are of all columns if they are ``joined``: these may be believed alone,
    as one source more, or as much as all sources together. ``judge`` gives the loss of each row's
    fused scores. Ways to believe that held-out rows cannot tell from the best one, by a standard
    error, are averaged: few rows choose badly between them. Sources that do not beat a constant
    count only if the plain mean of all does better than anything else, by two standard errors.
    """
    rows = row_losses(loss, start, scores, targets)
    rows = rows if weights is None else rows * weights
    share = prior_labels / (len(targets) + prior_labels)
    share = share if share >= min_share else 0.0
    errors = STANDARD_ERRORS_TO_BEAT * (1 - share)
    losses, useful = mean_losses(rows), informative(loss, start, scores, targets, errors)
    is_source = np.arange(len(scores)) < len(scores) - joined
    every = equal_fusion(np.where(is_source[:, None, None], scores, np.nan)).weights
    if not useful.any():
        return Fusion(with_all_columns(every, joined and share > 0), prior_share=1.0)
    shares = beliefs(losses, useful, joined)
    trials = [_scaled(judge, start, scores, w)[1] for w in shares]
    least = min(trials, key=np.mean)
    as_good = [w for w, trial in zip(shares, trials, strict=True) if not better(least, trial)]
    of_useful = with_all_columns(useful & is_source, joined and useful[-1])
    chosen = (1 - share) * np.mean(as_good, axis=0) + share * of_useful
    best, least = _scaled(judge, start, scores, chosen)
    best = replace(best, prior_share=share)
    candidate, trial = _scaled(judge, start, scores, every)
    return candidate if better(trial, least, STANDARD_ERRORS_TO_BEAT) else best


def with_all_columns(counts: np.ndarray, joined: bool) -> np.ndarray:
    """Equal weights of sources that count; the last one has half, or all, if of all columns."""
    total = float(counts.sum())
    weights = counts / max(total, 1.0) * (0.5 if joined else 1.0)
    weights[-1] += joined * (0.5 if total else 1.0)
    return weights


def beliefs(losses: np.ndarray, useful: np.ndarray, joined: bool) -> list[np.ndarray]:
    """Weights worth a trial: each useful source alone, all alike, all by their losses.

    If the last one is of all columns, also all of them with it, and half of it beside the others.
    """
    alone = list(np.eye(len(useful))[useful])
    is_useful = useful.copy()
    is_useful[-1] &= not joined
    if not is_useful.any():
        return alone
    useful_losses = np.where(is_useful, losses, np.nan)
    together = [is_useful / is_useful.sum(), *(source_weights(useful_losses, z) for z in SHARPNESS)]
    if joined and useful[-1]:
        together += [0.5 * w + 0.5 * alone[-1] for w in together] + [useful / useful.sum()]
    return together + alone


def equal_fusion(scores: np.ndarray) -> Fusion:
    """The plain mean of all sources that have any row."""
    present = ~np.isnan(scores[:, :, 0]).all(axis=1)
    return Fusion(present / max(present.sum(), 1))


def _scaled(
    judge: Judge, start: np.ndarray, scores: np.ndarray, weights: np.ndarray
) -> tuple[Fusion, np.ndarray]:
    """The best scale or certainty for some weights, and the losses under it."""
    useful, means = int((weights > 0).sum()), Fusion(weights).mean(scores)
    trials = [Fusion(weights, scale) for scale in SCALES if scale <= useful]
    trials += [Fusion(weights, certainty=shrunken) for shrunken in SHRUNKEN]
    trials += [Fusion(weights, shrunken) for shrunken in SHRUNKEN]
    losses = [judge(trial.of_mean(start, *means)) for trial in trials]
    best = int(np.argmin([values.mean() for values in losses]))
    return trials[best], losses[best]


def informative(
    loss: Loss,
    start: np.ndarray,
    scores: np.ndarray,
    targets: np.ndarray,
    errors: float = STANDARD_ERRORS_TO_BEAT,
) -> np.ndarray:
    """Which sources beat the constant on held-out rows by more than some standard errors.

    Scores may be shrunk for that: a source that is right but too sure of itself is informative.
    """
    constant = loss.rows(np.broadcast_to(start, targets.shape), targets)
    out = np.zeros(len(scores), dtype=bool)
    for shrink in SHRUNK:
        gain = constant - row_losses(loss, start, shrink * scores, targets)
        count = np.maximum((~np.isnan(gain)).sum(axis=1), 1)
        mean = np.nan_to_num(gain).sum(axis=1) / count
        error = np.sqrt(np.nan_to_num((gain - mean[:, None]) ** 2).sum(axis=1)) / count
        out |= (mean > errors * error) & (count > 2)
    return out


def row_losses(
    loss: Loss, start: np.ndarray, scores: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """The loss of each source on each row, NaN where it has none."""
    return np.array([loss.rows(start + source_scores, targets) for source_scores in scores])


def mean_losses(losses: np.ndarray) -> np.ndarray:
    """The mean loss of each source over its rows, NaN for a source without rows."""
    present = ~np.isnan(losses)
    count = present.sum(axis=1)
    total = np.where(present, losses, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def left_out(judge: Judge, fusion: Fusion, start: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """By how much the loss of the fused prediction grows when a source is left out."""
    full = judge(fusion(start, scores)).mean()
    out = np.zeros(len(scores))
    for i in np.flatnonzero(fusion.weights):
        other_scores = scores.copy()
        other_scores[i] = np.nan
        out[i] = judge(fusion(start, other_scores)).mean() - full
    return out


def better(new: np.ndarray, old: np.ndarray, errors: float = 1.0, at_least: float = 0.0) -> bool:
    """Whether losses of the same rows are lower by some standard errors and, in sum, a constant."""
    gain = old - new
    return bool(gain.mean() > at_least / len(gain) + errors * gain.std() / np.sqrt(len(gain)))


# -- smoothing ----------------------------------------------------------------------------------


class Fused(NamedTuple):
    """Fused scores of all ids, which of them no table has, and the index of the labeled ones."""

    scores: np.ndarray
    bare: np.ndarray
    labeled: np.ndarray
    prior: np.ndarray | None = None  # of all labels of training, if only some are at hand

    @classmethod
    def of(
        cls, fusion: Fusion, start: np.ndarray, scores: np.ndarray, labeled: np.ndarray
    ) -> Fused:
        """Fuse the scores of the sources."""
        bare = np.isnan(scores[:, :, 0]).all(axis=0)
        return cls(fusion(start, scores), bare, labeled)


class Held(NamedTuple):
    """What held-out rows say of a way to predict: the loss of each, and whether it is wrong."""

    losses: np.ndarray
    errors: np.ndarray

    @property
    def loss(self) -> float:
        """The mean loss."""
        return float(self.losses.mean())

    def improves(self, other: Held, errors: float = 1.0) -> bool:
        """Whether losses are lower by some standard errors, and not for more wrong rows."""
        lower = better(self.losses, other.losses, errors)
        return lower and bool(self.errors.mean() <= other.errors.mean())


class Smoothing(NamedTuple):
    """How predictions lean on neighbours: the strength of each graph, and the trust in oneself.

    A negative strength is that of a graph whose neighbours speak for the classes that go together
    with theirs, as they must where neighbours differ.
    """

    strengths: tuple[float, ...]
    trust: float = 1.0

    @property
    def any(self) -> bool:
        """Whether any graph is used."""
        return any(self.strengths)

    def with_strength(self, graph: int, strength: float) -> Smoothing:
        """The same but for the strength of one graph."""
        values = list(self.strengths)
        values[graph] = strength
        return self._replace(strengths=tuple(values))


class Smoother(ABC):
    """Smoothing of one kind of prediction."""

    n_rounds: ClassVar[int] = 12
    trusts: ClassVar[tuple[float, ...]] = (1.0,)  # that make sense
    # Of strengths: 1 for neighbours alike, -1 if they differ.
    signs: ClassVar[tuple[int, ...]] = (1,)

    @abstractmethod
    def labels(self, targets: np.ndarray) -> np.ndarray:
        """The predictions that labels stand for."""

    @abstractmethod
    def plain(self, scores: np.ndarray) -> np.ndarray:
        """Predictions without any smoothing."""

    def prior(self, labels: np.ndarray) -> np.ndarray | None:
        """The share of each class; nothing of numbers."""
        return None

    @abstractmethod
    def over(
        self, fused: Fused, graphs: Sequence[Voice], labels: np.ndarray, trust: float
    ) -> np.ndarray:
        """Predictions smoothed over graphs; neighbours see the labels."""

    def mixing(
        self, fused: Fused, graphs: Sequence[sp.csr_array], labels: np.ndarray
    ) -> list[np.ndarray | None]:
        """What the class of a neighbour says of one's own, for each graph."""
        return [None] * len(graphs)

    @abstractmethod
    def losses(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The loss of each row."""

    def errors(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """How wrong each row is; its loss, unless there are classes."""
        return self.losses(predictions, labels)

    def balanced(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Predictions of unlabeled rows in the proportions of the labels."""
        return predictions

    def __call__(
        self,
        fused: Fused,
        graphs: Sequence[sp.csr_array],
        smoothing: Smoothing,
        labels: np.ndarray,
        mixing: Sequence[np.ndarray | None] | None = None,
    ) -> np.ndarray:
        """Predictions, smoothed if they lean on any graph."""
        if not smoothing.any:
            return self.plain(fused.scores)
        voices = []
        for g, strength in enumerate(smoothing.strengths):
            if strength < 0 and mixing is None:
                mixing = self.mixing(fused, graphs, labels)
            if strength:
                matrix = None if strength > 0 or mixing is None else mixing[g]
                voices.append(Voice(evidence(graphs[g], abs(strength)), matrix))
        return self.over(fused, voices, labels, smoothing.trust)


class ClassSmoother(Smoother):
    """Mean-field beliefs: log-probabilities plus what neighbours of an unusual mix say.

    The trust multiplies the own log-probabilities of a row that has neighbours.
    """

    trusts: ClassVar[tuple[float, ...]] = (1.0, 0.5, 0.3)
    signs: ClassVar[tuple[int, ...]] = (1, -1)

    def labels(self, targets: np.ndarray) -> np.ndarray:
        """One column of 0 and 1 for each class."""
        return np.hstack([1 - targets, targets]) if targets.shape[1] == 1 else targets

    def plain(self, scores: np.ndarray) -> np.ndarray:
        """The probability of each class."""
        share = expit(scores)
        if scores.shape[1] == 1:
            return np.hstack([1 - share, share])
        return share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)

    def over(
        self, fused: Fused, graphs: Sequence[Voice], labels: np.ndarray, trust: float
    ) -> np.ndarray:
        """Probabilities after some rounds of adding the neighbours' evidence."""
        out = self.plain(fused.scores)
        prior = self.prior(labels) if fused.prior is None else fused.prior
        total = sum(voice.graph.sum(axis=1) for voice in graphs)[:, None]
        log_belief = np.log(np.maximum(out, 1e-12)) * np.where(total > 0, trust, 1.0)
        for voice in graphs:
            log_belief -= voice.graph.sum(axis=1)[:, None] * voice.speaks_for(prior[None])
        for _ in range(self.n_rounds):
            seen = out.copy()
            seen[fused.labeled] = labels
            belief = log_belief + sum(voice.graph @ voice.speaks_for(seen) for voice in graphs)
            # Column by column: NumPy takes eight times as long for the maxima of short rows.
            belief -= reduce(np.maximum, belief.T)[:, None]
            out = np.exp(belief)
            out /= out.sum(axis=1, keepdims=True)
        return out

    def mixing(
        self, fused: Fused, graphs: Sequence[sp.csr_array], labels: np.ndarray
    ) -> list[np.ndarray | None]:
        """The logs of p(c'|neighbour of c) / p(c'), the largest at ±1, by what is now believed."""
        seen = self.plain(fused.scores)
        seen[fused.labeled] = labels
        out: list[np.ndarray | None] = []
        for graph in graphs:
            joint = seen.T @ (graph @ seen) + 1.0
            joint = joint / joint.sum()
            ratio = np.log(joint / np.outer(joint.sum(axis=1), joint.sum(axis=0)))
            out.append(ratio / max(np.abs(ratio).max(), 1e-12))
        return out

    def balanced(
        self, predictions: np.ndarray, labels: np.ndarray, *, n_steps: int = 5
    ) -> np.ndarray:
        """Class mass normalisation: pseudo-labels must not let large classes grow."""
        out, prior = predictions, self.prior(labels)
        for _ in range(n_steps):
            out = out * (prior / np.maximum(out.mean(axis=0), 1e-12))
            out = out / np.maximum(out.sum(axis=1, keepdims=True), 1e-300)
        return out

    def prior(self, labels: np.ndarray) -> np.ndarray:
        """The share of each class."""
        return (labels.sum(axis=0) + 0.5) / (len(labels) + 0.5 * labels.shape[1])

    def losses(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return -log p of each row's class."""
        return -np.log(np.maximum((predictions * labels).sum(axis=1), 1e-12))

    def errors(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """1 for a row whose most probable class is not its own."""
        return (predictions.argmax(axis=1) != labels.argmax(axis=1)).astype(float)


class NumberSmoother(Smoother):
    """What scores leave over is passed on: the residual of a row is the mean of its neighbours'.

    The row itself counts as one neighbour of residual 0. A row that no table has takes over the
    values of its neighbours instead.
    """

    def labels(self, targets: np.ndarray) -> np.ndarray:
        """The numbers themselves."""
        return targets

    def plain(self, scores: np.ndarray) -> np.ndarray:
        """The scores themselves."""
        return scores

    def over(
        self, fused: Fused, graphs: Sequence[Voice], labels: np.ndarray, trust: float
    ) -> np.ndarray:
        """Numbers after some rounds of passing residuals on."""
        scores, bare = fused.scores, fused.bare
        graph = sp.csr_array(sum((voice.graph for voice in graphs[1:]), start=graphs[0].graph))
        total = 1 + graph.sum(axis=1)[:, None]
        rest = np.zeros_like(scores)
        for _ in range(self.n_rounds):
            seen = rest.copy()
            seen[fused.labeled] = labels - scores[fused.labeled]
            rest = graph @ seen / total
            values = (graph[bare] @ (scores + seen) + scores[bare]) / total[bare]
            rest[bare] = values - scores[bare]
        return scores + rest

    def losses(self, predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The squared error of each row."""
        return ((predictions - labels) ** 2).sum(axis=1)


class Voice(NamedTuple):
    """A graph as evidence, and which classes a neighbour's class speaks for; None is its own."""

    graph: sp.csr_array
    mixing: np.ndarray | None

    def speaks_for(self, beliefs: np.ndarray) -> np.ndarray:
        """What beliefs of neighbours say of one's own class."""
        return beliefs if self.mixing is None else beliefs @ self.mixing.T


def evidence(graph: sp.csr_array, strength: float) -> sp.csr_array:
    """The matrix strength · W / √degree."""
    degree = graph.sum(axis=1)
    root = sp.diags_array(strength / np.sqrt(np.where(degree > 0, degree, 1)))
    return sp.csr_array(root @ graph)


def choose_smoothing(
    judge: Callable[[Smoothing], Held],
    n_graphs: int,
    trusts: tuple[float, ...],
    signs: tuple[int, ...] = (1, -1),
) -> tuple[Smoothing, list[dict[str, Any]]]:
    """Choose the strength of each graph, and the trust, by held-out rows.

    A graph is used if their loss falls by more than a standard error and no more of them are wrong;
    as one whose neighbours are alike (1) or differ (-1), whichever helps more.
    """
    tried: dict[Smoothing, Held] = {}

    def held(smoothing: Smoothing) -> Held:
        if smoothing not in tried:
            tried[smoothing] = judge(smoothing)
        return tried[smoothing]

    def strengthened(chosen: Smoothing, g: int) -> Smoothing:
        """The same with one more graph, if that helps."""
        reference = chosen if chosen.any else Smoothing(chosen.strengths)
        for sign in signs:
            trials = [chosen.with_strength(g, sign * s) for s in STRENGTHS]
            trial = min(trials, key=lambda one: held(one).loss)
            # There are many ways to differ: more evidence is asked for.
            if held(trial).improves(held(reference), 1.0 if sign > 0 else 2.0):
                reference = trial
        return reference if reference.strengths[g] else chosen

    best = Smoothing((0.0,) * n_graphs)
    for trust in trusts:
        if trust != trusts[0] and not best.any:
            break  # a graph of no use at full trust
        chosen = Smoothing((0.0,) * n_graphs, trust)
        # The graph that helps most alone comes first; the others must add to it.
        alone = [
            min(held(chosen.with_strength(g, s)).loss for s in STRENGTHS) for g in range(n_graphs)
        ]
        for g in np.argsort(alone).tolist():
            chosen = strengthened(chosen, g)
        if held(chosen).improves(held(best)):
            best = chosen
    log = [{**smoothing._asdict(), "loss": one.loss} for smoothing, one in tried.items()]
    return best, log
