"""A team of boosters, one for each source, that grow one tree each (per output) in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from tabweave._compat import require
from tabweave.sources.container import Sources
from tabweave.sources.gbc.objective import Loss, Terms, expected, label_scale
from tabweave.sources.graphs import averaging

SMALL = 1_000_000  # cells of a table up to which threads cost more than they bring


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
    """

    warm_up: ClassVar[int] = 15  # rounds before predictions are good enough to agree about

    def __init__(
        self,
        binned: Binned,
        loss: Loss,
        labeled: np.ndarray,
        targets: np.ndarray,
        watched: np.ndarray,
    ) -> None:
        self.binned, self.loss = binned, loss
        self.start = loss.start(targets)
        self.watched = watched
        n = len(binned.sources)
        self._targets = np.zeros((n, targets.shape[1]))
        self._targets[labeled] = targets
        self._is_labeled = np.zeros(n, dtype=bool)
        self._is_labeled[labeled] = True
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

    def begin(self, wanted: np.ndarray | None = None) -> Self:
        """Make the boosters; a source that is not wanted or has no two labels gets none."""
        used = self._is_labeled.copy()
        used[self._extra] = True
        self._rows: list[np.ndarray] = []  # index of the ids each booster trains on
        self._terms: list[Terms | None] = []
        for i, row in enumerate(self.binned.rows):
            at = np.flatnonzero(row >= 0)[np.argsort(row[row >= 0])]  # ids in row order
            rows = at[used[at]]
            labels = self._is_labeled[rows]
            self._rows.append(rows)
            data = self.binned.datasets[i]
            if data is None or labels.sum() < 2 or (wanted is not None and not wanted[i]):
                self.boosters.append(None)
                self._terms.append(None)
                continue
            self.boosters.append(self._booster(data, row, rows))
            factors = self._factors(labels)
            self._terms.append(Terms(self.loss, self._targets[rows], labels, factors))
        return self

    def _booster(self, data: Any, row: np.ndarray, rows: np.ndarray) -> Any:
        """Return a new booster of some rows of a table; it keeps the scores of watched ones."""
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
        """Return E (3.2) and Ẽ (3.3) of the rows of a source, None for a term that is off."""
        rows = self._rows[i]
        mean, near = None, None
        if self._lambdas[0]:
            mean = expected(scores[:, rows], self.weights)
        if self._mean is not None:
            # The mean over the neighbours that this source has; without any, its own score.
            own = scores[i]
            present = ~np.isnan(own[:, 0])
            total = self._mean[rows] @ present.astype(float)
            near = self._mean[rows] @ np.where(present[:, None], own, 0.0)
            near = np.where(total[:, None] > 0, near / np.maximum(total, 1e-12)[:, None], own[rows])
        return mean, near

    def watched_scores(self) -> np.ndarray:
        """Return the scores of the watched ids less the constant, NaN where a source has none."""
        out = np.full((len(self.boosters), len(self.watched), self.binned.n_outputs), np.nan)
        for i, (booster, row) in enumerate(zip(self.boosters, self.binned.rows, strict=True)):
            at = row[self.watched]
            present = np.flatnonzero(at >= 0)
            if booster is not None and len(present):
                # The watched rows stand in row order of the table.
                out[i, present[np.argsort(at[present], kind="stable")]] = _scores(booster, True)
        return out


def _scores(booster: Any, valid: bool) -> np.ndarray:
    """Return raw scores of the training or of the watched rows, kept up to date by LightGBM."""
    caught: list[np.ndarray] = []

    def catch(raw: np.ndarray, _: Any) -> tuple[str, float, bool]:
        caught.append(np.array(raw.reshape(len(raw), -1)))
        return "caught", 0.0, True

    booster.eval_valid(catch) if valid else booster.eval_train(catch)
    return caught[0]


class Binned:
    """The tables of some sources as LightGBM has them: binned once, whatever is trained on them."""

    def __init__(self, sources: Sources, params: Mapping[str, Any], n_outputs: int) -> None:
        self.sources = sources
        cells = max(np.prod(sources.matrix(name).shape) for name in sources.names)
        threads = {"num_threads": 1} if cells <= SMALL else {}
        self.params = {**threads, **params, "num_class": n_outputs}
        self.n_outputs = n_outputs
        self.rows: list[np.ndarray] = []  # the row of every id in each table, -1 if it has none
        self.datasets: list[Any] = []  # None for a table without rows
        for name in sources.names:
            row = np.full(len(sources), -1, dtype=np.intp)
            row[sources.rows(name)] = np.arange(len(sources.rows(name)))
            self.rows.append(row)
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
    """Return a matrix in a form that LightGBM takes."""
    return sp.csr_matrix(matrix) if sp.issparse(matrix) else matrix


def all_scores(
    boosters: Sequence[Any], sources: Sources, n_outputs: int, n_rounds: int
) -> np.ndarray:
    """Return the scores of all ids less the constant, NaN where a source has no row or booster."""
    out = np.full((len(boosters), len(sources), n_outputs), np.nan)
    for i, (name, booster) in enumerate(zip(sources.names, boosters, strict=True)):
        rows = sources.rows(name)
        if booster is not None and len(rows):
            matrix = as_lightgbm(sources.matrix(name))
            raw = booster.predict(matrix, raw_score=True, num_iteration=n_rounds)
            out[i, rows] = raw.reshape(len(rows), -1)
    return out
