"""A team of boosters, one for each source, that grow one tree each (per output) in turn.

:class:`Team` grows them on tables that are binned once; below it are the losses that it may
minimise, and the terms of Eqs. (3.2)–(3.11): agreement of sources, and what each of them weighs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from tabweave._compat import require
from tabweave.sources.container import Sources
from tabweave.sources.graphs import averaging
from tabweave.sources.tables import position_of_each

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
