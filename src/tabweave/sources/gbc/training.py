"""The training of GBC, step by step; reads like its algorithm."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tabweave.sources.gbc.objective import edge_loss, source_weights
from tabweave.sources.gbc.smoothing import Fused, Lean, smooth
from tabweave.sources.gbc.team import Team, all_scores
from tabweave.sources.gbc.validation import (
    UNLABELED,
    Coupling,
    Fusion,
    Problem,
    bare,
    better,
    left_out,
    mean_losses,
    pairs_of,
    row_losses,
    search_lambdas,
    search_lean,
)
from tabweave.sources.gbc.validation import validate as validation_validate
from tabweave.sources.graphs import blend

EDGES = 2_000  # edges looked at for the weight of a graph
LESSON = 20_000  # unlabeled rows to learn from at most; with as many labels there is no need
LONGER = 2  # times the rounds, as there is more to learn


class Settings(NamedTuple):
    """What the estimator was asked for."""

    n_rounds: int
    consensus: float | str
    connectivity: float | str
    graph_smoothing: float | str
    printed: bool
    validate: bool


class Training:
    """One training of GBC; what it found is left in its attributes."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self.settings, self.rng = problem, settings, rng
        sources = problem.binned.sources
        self.graphs = [sources.graph(name) for name in sources.graph_names]
        self.pairs = [
            pairs[:, np.sort(rng.permutation(pairs.shape[1])[:EDGES])]
            for pairs in pairs_of(self.graphs)
        ]
        self.unlabeled = np.setdiff1d(np.arange(len(sources)), problem.labeled)
        self.history: list[dict[str, Any]] = []
        self.log: dict[str, list[dict[str, Any]]] = {"lambdas": [], "smoothing": [], "taught": []}
        self.n_rounds, self.taught = settings.n_rounds, False
        self.boosters: list[Any] = []

    def run(self) -> Training:
        """Take all steps."""
        self._validate()
        self._choose_lean()
        self._choose_lesson()
        self._choose_lambdas()
        self._train(self.problem.labeled, self.problem.targets)
        if self.taught:
            self._teach()
        self._rate_sources()
        return self

    def _validate(self) -> None:
        """Choose rounds and source weights from held-out rows; without any, take all as equal."""
        p = self.problem
        self.found = (
            validation_validate(p, self.settings.n_rounds) if self.settings.validate else None
        )
        if self.found is not None:
            self.fusion, self.n_rounds = self.found.fusion, self.found.n_rounds
        else:
            known = np.array([(place[p.labeled] >= 0).sum() > 1 for place in p.binned.places])
            self.fusion = Fusion(known / max(known.sum(), 1))
        # What each fold's boosters say of all ids; only graphs ask for it.
        self.every = []
        if self.found is not None and self.graphs:
            self.every = [self._all_scores(t.boosters, self.n_rounds) for t in self.found.teams]
        weights = [self._graph_weights(scores, self.pairs) for scores in self.every]
        n_graphs = len(self.graphs)
        self.graph_weights = np.mean(weights, axis=0) if weights else np.full(n_graphs, 1.0)
        if n_graphs:
            self.graph_weights = self.graph_weights / self.graph_weights.sum()

    def _graph_weights(self, scores: np.ndarray, pairs: list[np.ndarray]) -> np.ndarray:
        """Eq. (3.11) with z = 1 and c the number of edges; pairs are places in the scores."""
        loss, start = self.problem.loss, self.problem.start
        values = np.zeros(len(pairs))
        for g, ends in enumerate(pairs):
            parts = np.array([edge_loss(loss, start + own, ends) for own in scores])
            used = ~np.isnan(parts) & (self.fusion.weights > 0)
            share = self.fusion.weights[used]
            values[g] = parts[used] @ share / share.sum() if used.any() else np.nan
        if np.isnan(values).all():
            return np.full(len(values), 1 / max(len(values), 1))
        return source_weights(values)

    def _choose_lean(self) -> None:
        """Choose how predictions lean on neighbours, by those of the folds' boosters."""
        asked, n_graphs = self.settings.graph_smoothing, len(self.graphs)
        self.lean = Lean((0.0,) * n_graphs)
        if asked != "auto":
            self.lean = Lean(tuple((float(asked) * n_graphs * self.graph_weights).tolist()))
        elif self.every:
            self.lean, self.log["smoothing"] = self._search_lean(self.every)

    def _search_lean(self, every: list[np.ndarray]) -> tuple[Lean, list[dict[str, Any]]]:
        trusts = self.problem.smoother.trusts
        return search_lean(lambda lean: self._losses(every, lean), len(self.graphs), trusts)

    def _losses(self, every: list[np.ndarray], lean: Lean) -> np.ndarray:
        """Return the losses of all labeled rows, each by the boosters that did not see it."""
        out = np.empty(len(self.problem.labeled))
        for k, scores in enumerate(every):
            out[self.problem.folds == k] = self._fold_losses(k, scores, lean)
        return out

    def _fold_losses(self, fold: int, scores: np.ndarray, lean: Lean) -> np.ndarray:
        """Return the losses of a fold's rows, given its boosters' scores of all ids."""
        p, out = self.problem, self.problem.folds == fold
        made = self._smoothed(scores, ~out, lean)
        return p.smoother.losses(made[p.labeled[out]], p.known[out])

    def _smoothed(self, scores: np.ndarray, seen: np.ndarray, lean: Lean) -> np.ndarray:
        """Return predictions of all ids, given scores and which of the labels may be looked at."""
        p = self.problem
        fused = Fused(self.fusion(p.start, scores), bare(scores), p.labeled[seen])
        return smooth(p.smoother, fused, self.graphs, lean, p.known[seen])

    def _choose_lesson(self) -> None:
        """Choose whether to train again on what smoothing made of unlabeled rows (ours).

        E and Ẽ of Eqs. (3.2) and (3.3) in one: the fused and smoothed prediction, held fixed.
        """
        p, s = self.problem, self.settings
        asked = s.graph_smoothing == s.connectivity == "auto" and s.consensus in ("auto", 0)
        if not (asked and self.lean.any and len(self.unlabeled) and len(p.labeled) < LESSON):
            return
        self.extra = self.rng.permutation(self.unlabeled)[:LESSON]
        every = []
        for k, scores in enumerate(self.every):
            team = Team(p.binned, p.loss, *self._lesson(scores, p.folds != k), p.labeled[:0])
            team.begin(self.fusion.weights > 0)
            for _ in range(LONGER * self.n_rounds):
                team.step()
            every.append(self._all_scores(team.boosters, team.n_rounds))
        self.lean_after, self.log["taught"] = self._search_lean(every)
        before, after = self._losses(self.every, self.lean), self._losses(every, self.lean_after)
        self.taught = better(after, before)

    def _lesson(self, scores: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return places to learn and their targets: labels that are seen, else predictions."""
        p = self.problem
        free = np.concatenate([p.labeled[~seen], self.extra])
        made = self._smoothed(scores, seen, self.lean)[free]
        made = p.smoother.balanced(made, p.known[seen])[:, -p.targets.shape[1] :]
        return np.concatenate([p.labeled[seen], free]), np.concatenate([p.targets[seen], made])

    def _choose_lambdas(self) -> None:
        s, p = self.settings, self.problem
        self.graph = blend(self.graphs, self.graph_weights) if self.graphs else None
        asked = (s.consensus, s.connectivity)
        if self.found is None or self.taught or "auto" not in asked:
            default = 1.0 if s.printed else 0.0  # the paper always has both terms
            first, second = (default if value == "auto" else float(value) for value in asked)
            self.lambdas = (first, second)
            return
        limit = UNLABELED * len(p.labeled)
        some = self.rng.permutation(self.unlabeled)[:limit]
        out = p.folds == 0
        before = self.found.losses[out]
        if self.lean.any:
            before = self._fold_losses(0, self.every[0], self.lean)

        def judge(team: Team) -> np.ndarray:
            if self.lean.any:
                scores = self._all_scores(team.boosters, self.n_rounds)
                return self._fold_losses(0, scores, self.lean)
            fused = np.zeros_like(p.targets)
            fused[out] = self.fusion(p.start, team.watched_scores())
            return p.judge(fused)[out]

        coupling = Coupling(some, self.graph)
        self.lambdas, self.log["lambdas"] = search_lambdas(
            p, self.found, asked, coupling, judge, before
        )

    def _all_scores(self, boosters: list[Any], n_rounds: int) -> np.ndarray:
        binned = self.problem.binned
        return all_scores(boosters, binned.sources, binned.n_outputs, n_rounds)

    def _train(self, places: np.ndarray, targets: np.ndarray) -> None:
        """Train on all labels, or what is taught; note the weights after each round."""
        p = self.problem
        self.history = []
        ends = [pairs.ravel() for pairs in self.pairs]
        watched = np.unique(np.concatenate([p.labeled, *ends]))
        team = Team(p.binned, p.loss, places, targets, watched)
        if any(self.lambdas):
            team.couple(
                self.unlabeled, self.lambdas, self.fusion.weights, self.graph, self.settings.printed
            )
        team.begin()
        own_rows = np.searchsorted(watched, p.labeled)
        pairs = [np.searchsorted(watched, ends) for ends in self.pairs]
        for t in range(self.n_rounds):
            team.step()
            scores = team.watched_scores()
            own = scores[:, own_rows]
            losses = mean_losses(row_losses(p.loss, p.start, own, p.targets))
            if self.settings.printed:  # Eq. (3.10) of the training loss, each round
                team.weights = source_weights(losses)
                self.fusion = Fusion(team.weights)
            self.history.append(self._entry(t, losses))
            if self.graphs:
                weights = _named(p.binned.sources.graph_names, self._graph_weights(scores, pairs))
                self.history[-1]["graph_weights"] = weights
        self.boosters = team.boosters

    def _teach(self) -> None:
        """Train again, on labels and on what the boosters and their graphs say of other rows."""
        scores = self._all_scores(self.boosters, self.n_rounds)
        lesson = self._lesson(scores, np.full(len(self.problem.labeled), True))
        self.n_rounds, self.lean = LONGER * self.n_rounds, self.lean_after
        # Scores are told less the constant of the lesson; fusion adds that of the labels, so that
        # classes keep their share.
        self._train(*lesson)

    def _entry(self, t: int, losses: np.ndarray) -> dict[str, Any]:
        names = self.problem.binned.sources.names
        entry: dict[str, Any] = {"round": t + 1, "training_loss": _named(names, losses)}
        if self.found is not None and t < len(self.found.history):
            entry |= {
                "validation_loss": _named(names, self.found.history[t]["losses"]),
                "source_weights": _named(names, self.found.history[t]["weights"]),
            }
            if "loss" in self.found.history[t]:
                entry["fused_loss"] = self.found.history[t]["loss"]
        else:
            entry["source_weights"] = _named(names, self.fusion.weights)
        return entry

    def _rate_sources(self) -> None:
        p = self.problem
        self.source_importances = np.full(len(p.binned.places), np.nan)
        if self.found is not None:
            self.source_importances = left_out(p.judge, self.fusion, p.start, self.found.scores)


def _named(names: tuple[str, ...], values: np.ndarray) -> dict[str, float]:
    return dict(zip(names, np.asarray(values, dtype=float).tolist(), strict=True))


# -- A team of boosters, one for each source, that grow one tree each (per output) in turn
