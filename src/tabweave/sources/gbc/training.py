"""The training of GBC, step by step: what held-out rows choose, then boosters of all labels.

Folds of the labeled rows give the number of rounds, the weights of sources and graphs, how
predictions lean on graphs, whether pseudo-labels help, and λ0 and λ1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tabweave.sources.gbc.prediction import (
    Fused,
    Fusion,
    Held,
    Smoother,
    Smoothing,
    better,
    choose_fusion,
    choose_smoothing,
    equal_fusion,
    left_out,
    mean_losses,
    row_losses,
)
from tabweave.sources.gbc.team import (
    Binned,
    Loss,
    Team,
    all_scores,
    graph_weights,
    mean_scores,
    source_weights,
)
from tabweave.sources.graphs import blend

JOINED = "all columns"  # the member of a team that sees every table
MANY_LABELS = 5_000  # labels from which on one part of them is held out, once, and λ is not tried
MAX_PSEUDO_LABELS = 20_000  # at most; with as many labels there is no need of them
PSEUDO_LABEL_ROUNDS = 2  # times the rounds where there are pseudo-labels, as there is more to learn


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be learned: tables, the index of the labeled ids, and their targets."""

    binned: Binned
    loss: Loss
    smoother: Smoother
    labeled: np.ndarray
    targets: np.ndarray
    strata: np.ndarray | None = None  # classes that folds share out evenly
    weights: np.ndarray | None = None  # of the labels, mean 1
    metric: str = "logloss"  # what held-out rows are judged by

    @cached_property
    def start(self) -> np.ndarray:
        """The constant prediction."""
        return self.loss.start(self.targets, self.weights)

    @cached_property
    def labels(self) -> np.ndarray:
        """The labels as predictions."""
        return self.smoother.labels(self.targets)

    @cached_property
    def graphs(self) -> list[sp.csr_array]:
        """The graphs, without direction."""
        sources = self.binned.sources
        return [sources.graph(name) for name in sources.graph_names]

    @cached_property
    def unlabeled(self) -> np.ndarray:
        """The index of the ids without a label."""
        return np.setdiff1d(np.arange(len(self.binned.sources)), self.labeled)

    def part(self, rows: np.ndarray) -> Problem:
        """Return the same with some of the labels; the constant stays."""
        weights = None if self.weights is None else self.weights[rows]
        out = replace(self, labeled=self.labeled[rows], targets=self.targets[rows], weights=weights)
        vars(out)["start"] = self.start
        return out

    def held(self, predictions: np.ndarray) -> Held:
        """Return what predictions of the labeled rows are worth."""
        errors = self.smoother.errors(predictions, self.labels)
        losses = self.smoother.losses(predictions, self.labels)
        if self.metric == "error":  # equal errors are told apart by their loss
            losses = errors + 1e-3 * losses
        weights = 1.0 if self.weights is None else self.weights
        return Held(weights * losses, weights * errors)

    def judge(self, scores: np.ndarray) -> np.ndarray:
        """Return the loss of the prediction that fused scores of the labeled rows make."""
        return self.held(self.smoother.plain(scores)).losses

    def losses(self, scores: np.ndarray) -> np.ndarray:
        """Return the mean loss of each source on the labeled rows."""
        rows = row_losses(self.loss, self.start, scores, self.targets)
        return mean_losses(rows if self.weights is None else rows * self.weights)

    def graph_weights(
        self, scores: np.ndarray, pairs: list[np.ndarray], weights: np.ndarray
    ) -> np.ndarray:
        """Eq. (3.11) of scores less the constant."""
        return graph_weights(self.loss, self.start + scores, pairs, weights)


class Settings(NamedTuple):
    """What the estimator was asked for."""

    n_rounds: int
    consensus: float | str
    connectivity: float | str
    graph_smoothing: float | str
    weights: str
    cv: int


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training leaves to the estimator."""

    boosters: list[Any]
    n_rounds: int
    fusion: Fusion
    lambdas: tuple[float, float]
    history: list[dict[str, Any]]
    graph_weights: np.ndarray
    smoothing: Smoothing
    source_importances: np.ndarray
    search: dict[str, list[dict[str, Any]]]
    self_trained: bool = False
    mixing: list[np.ndarray | None] | None = None
    committee: Sequence[list[Any]] = ()  # boosters of each fold, whose scores count as much


class Training:
    """One training of GBC, validated; :meth:`run` gives what it found."""

    def __init__(self, problem: Problem, settings: Settings, rng: np.random.Generator) -> None:
        self.problem, self.settings, self.rng = problem, settings, rng
        n_folds = min(settings.cv, len(problem.labeled) // 2)
        self.folds = folds_of(problem.strata, len(problem.labeled), max(n_folds, 1), rng)
        # Of many labels a part is held out once: it says as much as folds of few.
        self.many = len(problem.labeled) > MANY_LABELS
        if self.many:
            k = max(5, -(-len(problem.labeled) // MANY_LABELS))
            folds = folds_of(problem.strata, len(problem.labeled), k, rng)
            self.folds = np.where(folds == 0, 0, -1)
        self.held = problem.part(self.folds >= 0)
        # Validation costs as much as its folds: it runs if there is something to choose.
        choices = (settings.consensus, settings.connectivity, settings.graph_smoothing)
        self.validated = n_folds >= 2 and (settings.weights == "learned" or "auto" in choices)
        self.pairs = sampled_edges(problem.graphs, rng)
        self.search: dict[str, list[dict[str, Any]]] = {
            "lambdas": [],
            "smoothing": [],
            "self_training": [],
        }
        self.n_rounds, self.self_trained = settings.n_rounds, False
        self.committee: list[list[Any]] = []

    def run(self) -> Trained:
        """Take all steps."""
        self._validate()
        self._choose_smoothing()
        self._choose_self_training()
        self._choose_lambdas()
        if any(self.lambdas):  # the folds' boosters were trained without these terms
            self.committee = []
        p = self.problem
        self._train(p.labeled, p.targets, p.weights)
        if self.self_trained:
            self._train_again()
        return Trained(
            self.boosters,
            self.n_rounds,
            self.fusion,
            self.lambdas,
            self.history,
            self.graph_weights,
            self.smoothing,
            self._source_importances(),
            self.search,
            self.self_trained,
            self._mixing(),
            self.committee,
        )

    # -- what held-out rows choose ---------------------------------------------------------

    def _validate(self, *, patience_rounds: int = 3) -> None:
        """Choose rounds and source weights from held-out rows; without any, take all as equal."""
        p = self.problem
        self.found: Validation | None = None
        self.fold_scores: list[np.ndarray] = []  # of all ids, by each fold's boosters
        if self.validated:
            patience = (
                patience_rounds if self.many else 2 * patience_rounds
            )  # few rows are told apart late
            self.found = validate(
                p, self.held, self.folds, self.settings.n_rounds, self._fuse, patience
            )
            self.fusion, self.n_rounds = self.found.fusion, self.found.n_rounds
            if p.graphs:  # nothing else asks for them
                self.fold_scores = [
                    self._all_scores(team.boosters, self.n_rounds) for team in self.found.teams
                ]
            if not self.many:
                self.committee = [team.finish() for team in self.found.teams]
            self.found = replace(self.found, teams=[])  # their rows need not be kept any longer
        else:
            self.fusion = labeled_fusion(p)
        weights = [
            p.graph_weights(fold_losses, self.pairs, self.fusion.weights)
            for fold_losses in self.fold_scores
        ]
        self.graph_weights = np.mean(weights, axis=0) if weights else np.full(len(p.graphs), 1.0)
        if p.graphs:
            self.graph_weights = self.graph_weights / self.graph_weights.sum()

    def _fuse(self, scores: np.ndarray) -> Fusion:
        """Return the fusion that ``weights`` asks for."""
        p = self.held
        if self.settings.weights == "equal":
            return equal_fusion(scores)
        joined = p.binned.sources.names[-1] == JOINED
        return choose_fusion(p.loss, p.judge, p.start, scores, p.targets, p.weights, joined=joined)

    def _choose_smoothing(self) -> None:
        """Choose how predictions lean on neighbours, by those of the folds' boosters."""
        parameter, n_graphs = self.settings.graph_smoothing, len(self.problem.graphs)
        self.smoothing = Smoothing((0.0,) * n_graphs)
        if parameter != "auto":
            shared = float(parameter) * n_graphs * self.graph_weights
            self.smoothing = Smoothing(tuple(shared.tolist()))
        elif self.fold_scores:
            self.smoothing, self.search["smoothing"] = self._search_smoothing(self.fold_scores)

    def _search_smoothing(
        self, fold_scores: list[np.ndarray]
    ) -> tuple[Smoothing, list[dict[str, Any]]]:
        p = self.problem
        judge = partial(self._judged, fold_scores)
        return choose_smoothing(judge, len(p.graphs), p.smoother.trusts, p.smoother.signs)

    def _judged(self, fold_scores: list[np.ndarray], smoothing: Smoothing) -> Held:
        """Return what held-out rows say, each predicted by the boosters that did not see it."""
        out = np.empty((len(self.problem.labeled), *self.problem.labels.shape[1:]))
        for k, scores in enumerate(fold_scores):
            out[self.folds == k] = self._fold_predictions(k, scores, smoothing)
        return self.held.held(out[self.folds >= 0])

    def _fold_predictions(self, fold: int, scores: np.ndarray, smoothing: Smoothing) -> np.ndarray:
        """Return predictions of a fold's rows, given its boosters' scores of all ids."""
        out = self.folds == fold
        return self._smoothed(scores, ~out, smoothing)[self.problem.labeled[out]]

    def _first_losses(self, scores: np.ndarray) -> np.ndarray:
        """Return the losses of the first fold's rows, given its boosters' scores of all ids."""
        made = self._fold_predictions(0, scores, self.smoothing)
        return self.problem.part(self.folds == 0).held(made).losses

    def _mixing(self) -> list[np.ndarray | None] | None:
        """Return what neighbours' classes say in graphs whose neighbours differ."""
        p = self.problem
        if not any(strength < 0 for strength in self.smoothing.strengths):
            return None
        fused = Fused.of(self.fusion, p.start, self._mean_scores(), p.labeled)
        return p.smoother.mixing(fused, p.graphs, p.labels)

    def _smoothed(self, scores: np.ndarray, seen: np.ndarray, smoothing: Smoothing) -> np.ndarray:
        """Return predictions of all ids, given scores and which of the labels may be looked at."""
        p = self.problem
        fused = Fused.of(self.fusion, p.start, scores, p.labeled[seen])
        return p.smoother(fused, p.graphs, smoothing, p.labels[seen])

    def _choose_self_training(self) -> None:
        """Choose whether to train again on what smoothing made of unlabeled rows (ours).

        E and Ẽ of Eqs. (3.2) and (3.3) in one: the fused and smoothed prediction, held fixed.
        """
        p, s = self.problem, self.settings
        is_auto = s.graph_smoothing == s.connectivity == "auto" and s.consensus in ("auto", 0)
        few = len(p.labeled) < MAX_PSEUDO_LABELS
        if not (is_auto and self.smoothing.any and len(p.unlabeled) and few):
            return
        self.extra = self.rng.permutation(p.unlabeled)[:MAX_PSEUDO_LABELS]
        again: list[np.ndarray] = []
        self.committee_after: list[list[Any]] = []
        for k, scores in enumerate(self.fold_scores):
            labels = self._pseudo_labels(scores, self.folds != k)
            team = Team(p.binned, p.loss, *labels[:2], p.labeled[:0], labels[2])
            team.begin(self.fusion.weights > 0)
            for _ in range(PSEUDO_LABEL_ROUNDS * self.n_rounds):
                team.step()
            again.append(self._all_scores(team.boosters, team.n_rounds))
            self.committee_after.append(team.finish())
        self.smoothing_after, self.search["self_training"] = self._search_smoothing(again)
        before = self._judged(self.fold_scores, self.smoothing)
        self.self_trained = self._judged(again, self.smoothing_after).improves(before)

    def _pseudo_labels(
        self, scores: np.ndarray, seen: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return ids to learn, their targets (labels that are seen, else predictions), weights."""
        p = self.problem
        free = np.concatenate([p.labeled[~seen], self.extra])
        made = self._smoothed(scores, seen, self.smoothing)[free]
        made = p.smoother.balanced(made, p.labels[seen])[:, -p.targets.shape[1] :]
        weights = None
        if p.weights is not None:
            weights = np.concatenate([p.weights[seen], np.ones(len(free))])
        ids, targets = np.concatenate([p.labeled[seen], free]), [p.targets[seen], made]
        return ids, np.concatenate(targets), weights

    def _choose_lambdas(self, *, unlabeled_ratio: int = 2) -> None:
        """Choose λ0 and λ1 on the first fold, unless they are given or pseudo-labels do better."""
        p, parameters = self.problem, (self.settings.consensus, self.settings.connectivity)
        self.graph = blend(p.graphs, self.graph_weights) if p.graphs else None
        if self.found is None or self.self_trained or self.many or "auto" not in parameters:
            first, second = (0.0 if value == "auto" else float(value) for value in parameters)
            self.lambdas = (first, second)
            return
        sampled = self.rng.permutation(p.unlabeled)[: unlabeled_ratio * len(p.labeled)]
        before = self.found.losses[self.folds == 0]
        if self.smoothing.any:
            before = self._first_losses(self.fold_scores[0])
        self.lambdas, self.search["lambdas"] = search_lambdas(
            p,
            self.folds,
            self.found,
            parameters,
            Coupling(sampled, self.graph),
            self._judge_first,
            before,
        )

    def _judge_first(self, team: Team) -> np.ndarray:
        """Return the losses of the first fold's rows by a team that did not see them."""
        if self.smoothing.any:
            return self._first_losses(self._all_scores(team.boosters, self.n_rounds))
        first = self.problem.part(self.folds == 0)
        return first.judge(self.fusion(first.start, team.watched_scores()))

    # -- boosters of all labels ------------------------------------------------------------

    def _train(self, labeled: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> None:
        """Train on all labels, or also on pseudo-labels; note the weights after each round."""
        p = self.problem
        watch = Watch.of(p, self.pairs)
        team = Team(p.binned, p.loss, labeled, targets, watch.ids, weights)
        watched = p.part(watch.some)
        if any(self.lambdas):
            team.couple(p.unlabeled, self.lambdas, self.fusion.weights, self.graph)
        names = p.binned.sources.names
        is_trained = np.array([name != JOINED for name in names]) | (self.fusion.weights > 0)
        team.begin(is_trained)
        self.history = []
        for t in range(self.n_rounds):
            team.step()
            scores = team.watched_scores()
            entry = self._entry(t, watched.losses(scores[:, watch.labeled]))
            if p.graphs:
                weights = p.graph_weights(scores, watch.pairs, self.fusion.weights)
                entry["graph_weights"] = by_name(p.binned.sources.graph_names, weights)
            self.history.append(entry)
        self.boosters = team.finish()

    def _train_again(self) -> None:
        """Train again, on labels and on what the boosters and their graphs say of other rows."""
        seen = np.full(len(self.problem.labeled), True)
        labels = self._pseudo_labels(self._mean_scores(), seen)
        self.n_rounds, self.smoothing = PSEUDO_LABEL_ROUNDS * self.n_rounds, self.smoothing_after
        self.committee = self.committee_after
        # Scores come less the constant of these labels; fusion adds that of the true ones, so that
        # classes keep their share.
        self._train(*labels)

    def _entry(self, t: int, losses: np.ndarray) -> dict[str, Any]:
        names = [name for name in self.problem.binned.sources.names if name != JOINED]
        n = len(names)
        entry: dict[str, Any] = {"round": t + 1, "training_loss": by_name(names, losses[:n])}
        if self.found is None or t >= len(self.found.history):
            return entry | {"source_weights": by_name(names, self.fusion.weights[:n])}
        validation = self.found.history[t]
        entry["validation_loss"] = by_name(names, validation["losses"][:n])
        entry["source_weights"] = by_name(names, source_weights(validation["losses"][:n]))
        return entry | ({"fused_loss": validation["loss"]} if "loss" in validation else {})

    def _source_importances(self) -> np.ndarray:
        p = self.problem
        if self.found is None:
            return np.full(len(p.binned.rows), np.nan)
        return left_out(self.held.judge, self.fusion, p.start, self.found.scores)

    def _mean_scores(self) -> np.ndarray:
        """Return the scores of all ids by the boosters of all labels and those of the folds."""
        teams, binned = [self.boosters, *self.committee], self.problem.binned
        return mean_scores(teams, binned.sources, binned.n_outputs, self.n_rounds)

    def _all_scores(self, boosters: list[Any], n_rounds: int) -> np.ndarray:
        binned = self.problem.binned
        return all_scores(boosters, binned.sources, binned.n_outputs, n_rounds)


class Watch(NamedTuple):
    """The ids whose scores are wanted after each round, and who is who among them."""

    ids: np.ndarray
    some: np.ndarray  # of the labels
    labeled: np.ndarray
    pairs: list[np.ndarray]

    @classmethod
    def of(cls, problem: Problem, pairs: list[np.ndarray], *, max_rows: int = 5_000) -> Watch:
        """Watch labeled ids (some of them, if there are many) and the ends of some edges."""
        n = len(problem.labeled)
        sampled = np.linspace(0, n - 1, min(n, max_rows)).astype(np.intp)
        labeled = problem.labeled[sampled]
        ids = np.unique(np.concatenate([labeled, *(ends.ravel() for ends in pairs)]))
        at = np.searchsorted(ids, labeled)
        return cls(ids, sampled, at, [np.searchsorted(ids, ends) for ends in pairs])


def labeled_fusion(problem: Problem) -> Fusion:
    """Return the plain mean of the sources that have more than one labeled row."""
    usable = np.array([(row[problem.labeled] >= 0).sum() > 1 for row in problem.binned.rows])
    usable &= np.array([name != JOINED for name in problem.binned.sources.names])
    return Fusion(usable / max(usable.sum(), 1))


def sampled_edges(
    graphs: Sequence[sp.csr_array], rng: np.random.Generator, *, max_edges: int = 2_000
) -> list[np.ndarray]:
    """Return the ends of some edges of each graph, an edge at most once."""
    out = []
    for graph in graphs:
        pairs = np.array(sp.triu(graph, format="coo").coords)
        out.append(pairs[:, np.sort(rng.permutation(pairs.shape[1])[:max_edges])])
    return out


def by_name(names: Sequence[str], values: np.ndarray) -> dict[str, float]:
    """Return the value of each name, as Python's floats."""
    return dict(zip(names, np.asarray(values, dtype=float).tolist(), strict=True))


# -- folds --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Validation:
    """What held-out rows say: scores less the constant, the best round, the history."""

    scores: np.ndarray  # (sources, labeled rows, outputs)
    n_rounds: int
    fusion: Fusion
    losses: np.ndarray  # of the fused prediction, one for each labeled row
    history: list[dict[str, Any]]
    teams: list[Team]


class Coupling(NamedTuple):
    """What teams are coupled by: unlabeled ids, and the graph of Ẽ."""

    unlabeled: np.ndarray
    graph: sp.csr_array | None


def folds_of(strata: np.ndarray | None, n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Deal rows out to k folds, the classes (if any) evenly."""
    order = rng.permutation(n)
    if strata is not None:
        order = order[np.argsort(strata[order], kind="stable")]
    folds = np.empty(n, dtype=np.intp)
    folds[order] = np.arange(n) % k
    return folds


def validate(
    problem: Problem,
    held: Problem,
    folds: np.ndarray,
    n_rounds: int,
    fuse: Callable[[np.ndarray], Fusion],
    patience: int,
    *,
    check_interval: int = 5,
) -> Validation:
    """Train on all rows but those of a fold, for each; stop when the loss of held-out rows rises.

    ``held`` are the labels in any fold; ``patience`` looks without a better one end the search.
    """
    p, fold_of = problem, folds[folds >= 0]
    teams = [_without_fold(p, folds == k).begin() for k in range(int(folds.max()) + 1)]
    history: list[dict[str, Any]] = []
    looks: list[Validation] = []
    best = 0
    for t in range(1, n_rounds + 1):
        for team in teams:
            team.step()
        scores = np.empty((len(p.binned.rows), *held.targets.shape))
        for k, team in enumerate(teams):
            scores[:, fold_of == k] = team.watched_scores()
        losses = held.losses(scores)
        history.append({"losses": losses})
        if t % check_interval and t < n_rounds:
            continue
        fusion = fuse(scores)
        fused = held.judge(fusion(p.start, scores))
        history[-1]["loss"] = float(fused.mean())
        looks.append(Validation(scores.astype(np.float32), t, fusion, fused, history, teams))
        if fused.mean() < looks[best].losses.mean() - 1e-4:
            best = len(looks) - 1
        elif len(looks) - 1 >= best + patience:
            break
    # Errors go on falling when probabilities are overdone already: the last look that is no
    # worse than the best one, as far as these rows can tell.
    return [look for look in looks if not better(looks[best].losses, look.losses)][-1]


def _without_fold(problem: Problem, out: np.ndarray) -> Team:
    rest = problem.part(~out)
    watched = problem.labeled[out]
    return Team(problem.binned, problem.loss, rest.labeled, rest.targets, watched, rest.weights)


def search_lambdas(
    problem: Problem,
    folds: np.ndarray,
    validation: Validation,
    parameters: tuple[Any, Any],
    coupling: Coupling,
    judge: Callable[[Team], np.ndarray],
    before: np.ndarray,
    *,
    strength: float = 1.0,
    min_standard_errors: float = 2.0,
) -> tuple[tuple[float, float], list[dict[str, Any]]]:
    """Turn λ0 and λ1 on where held-out rows gain by it; one that is given stays.

    One fold and some of the unlabeled rows must do: this is the costly part of the validation.
    ``judge`` gives the losses of the fold's rows, ``before`` are those without the terms.
    """
    lambdas = [0.0 if value == "auto" else float(value) for value in parameters]
    log: list[dict[str, Any]] = []
    useful = validation.fusion.weights > 0
    # Before the terms start there is nothing to see, and one source agrees with itself.
    hopeless = (useful.sum() < 2, coupling.graph is None)
    if not len(coupling.unlabeled) or validation.n_rounds <= Team.warm_up:
        return (lambdas[0], lambdas[1]), log
    free = np.union1d(coupling.unlabeled, problem.labeled[folds == 0])
    for i, value in enumerate(parameters):
        if value != "auto" or hopeless[i]:
            continue
        trial = lambdas.copy()
        trial[i] = strength
        team = _without_fold(problem, folds == 0)
        team.couple(free, (trial[0], trial[1]), validation.fusion.weights, coupling.graph)
        team.begin(useful)
        for _ in range(validation.n_rounds):
            team.step()
        losses = judge(team)
        log.append({"lambdas": tuple(trial), "loss": float(losses.mean())})
        log[-1]["loss_before"] = float(before.mean())
        if better(losses, before, min_standard_errors):
            lambdas, before = trial, losses
    return (lambdas[0], lambdas[1]), log
