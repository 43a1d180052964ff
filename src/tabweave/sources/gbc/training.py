"""The training of GBC, step by step: what held-out rows choose, then boosters of all labels.

Folds of the labeled rows give the number of rounds, the weights of sources and graphs, how
predictions lean on graphs, whether pseudo-labels help, and λ0 and λ1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
    start: np.ndarray  # the constant prediction
    strata: np.ndarray | None = None  # classes that folds share out evenly
    weights: np.ndarray | None = None  # of the labels, mean 1
    metric: str = "logloss"  # what held-out rows are judged by

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
        """The same with some of the labels; the constant stays."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(
            self, labeled=self.labeled[rows], targets=self.targets[rows], weights=weights
        )

    def held(self, predictions: np.ndarray) -> Held:
        """What predictions of the labeled rows are worth."""
        errors = self.smoother.errors(predictions, self.labels)
        losses = self.smoother.losses(predictions, self.labels)
        if self.metric == "error":  # equal errors are told apart by their loss
            losses = errors + 1e-3 * losses
        weights = 1.0 if self.weights is None else self.weights
        return Held(weights * losses, weights * errors)

    def judge(self, scores: np.ndarray) -> np.ndarray:
        """The loss of the prediction that fused scores of the labeled rows make."""
        return self.held(self.smoother.plain(scores)).losses

    def losses(self, scores: np.ndarray) -> np.ndarray:
        """The mean loss of each source on the labeled rows."""
        rows = row_losses(self.loss, self.start, scores, self.targets)
        return mean_losses(rows if self.weights is None else rows * self.weights)

    def team(self, watched: np.ndarray) -> Team:
        """Boosters that are to learn the labels, and keep the scores of the watched ids."""
        labels = self.labeled, self.targets
        return Team(self.binned, self.loss, *labels, watched, self.weights)


@dataclass(eq=False)
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
    search: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    self_trained: bool = False
    mixing: list[np.ndarray | None] | None = None
    committee: Sequence[list[Any]] = ()  # boosters of each fold, whose scores count as much


class Look(NamedTuple):
    """What held-out rows say after some rounds."""

    n_rounds: int
    scores: np.ndarray  # less the constant: (sources, labeled rows, outputs)
    fusion: Fusion
    losses: np.ndarray  # of the fused prediction, one for each labeled row


class Training(Trained):
    """One training of GBC, validated, and what it leaves once :meth:`run` is done.

    ``parameters`` is the estimator, which says how it was asked to train.
    """

    def __init__(self, problem: Problem, parameters: Any, rng: np.random.Generator) -> None:
        self.problem, self.parameters, self.rng = problem, parameters, rng
        n_folds = min(parameters.cv, len(problem.labeled) // 2)
        self.folds = folds_of(problem.strata, len(problem.labeled), max(n_folds, 1), rng)
        # Of many labels a part is held out once: it says as much as folds of few.
        self.many = len(problem.labeled) > MANY_LABELS
        if self.many:
            k = max(5, -(-len(problem.labeled) // MANY_LABELS))
            folds = folds_of(problem.strata, len(problem.labeled), k, rng)
            self.folds = np.where(folds == 0, 0, -1)
        self.held = problem.part(self.folds >= 0)
        # Validation costs as much as its folds: it runs if there is something to choose.
        choices = (parameters.consensus, parameters.connectivity, parameters.graph_smoothing)
        self.validated = n_folds >= 2 and (parameters.weights == "learned" or "auto" in choices)
        self.search = {"lambdas": [], "smoothing": [], "self_training": []}
        self.n_rounds, self.history = parameters.n_rounds, []

    def run(self) -> Trained:
        """Take all steps."""
        pairs = sampled_edges(self.problem.graphs, self.rng)
        self._validate()
        self._weigh_graphs(pairs)
        self._choose_smoothing()
        self._choose_self_training()
        self._choose_lambdas()
        if any(self.lambdas):  # the folds' boosters were trained without these terms
            self.committee = []
        p = self.problem
        self._train(p.labeled, p.targets, p.weights)
        if self.self_trained:
            self._train_again()
        self.mixing = self._mixing()
        return self

    # -- what held-out rows choose ---------------------------------------------------------

    def _validate(self, *, patience_looks: int = 3) -> None:
        """Choose rounds and source weights from held-out rows; without any, take all as equal."""
        p = self.problem
        self.look: Look | None = None
        self.fold_scores: list[np.ndarray] = []  # of all ids, by each fold's boosters
        if not self.validated:
            self.fusion = labeled_fusion(p)
            self.source_importances = np.full(len(p.binned.rows), np.nan)
            return
        teams = [self._without_fold(k).begin() for k in range(int(self.folds.max()) + 1)]
        # Few rows are told apart late.
        self.look = self._best_look(teams, patience_looks if self.many else 2 * patience_looks)
        self.fusion, self.n_rounds = self.look.fusion, self.look.n_rounds
        self.history = self.history[: self.n_rounds]
        scores = self.look.scores
        self.source_importances = left_out(self.held.judge, self.fusion, p.start, scores)
        if p.graphs:  # nothing else asks for them
            self.fold_scores = [self._all_scores(team.boosters, self.n_rounds) for team in teams]
        if not self.many:
            self.committee = [team.finish() for team in teams]

    def _without_fold(self, fold: int) -> Team:
        """Boosters of the labels of all other folds, which watch the rows of this one."""
        out = self.folds == fold
        return self.problem.part(~out).team(self.problem.labeled[out])

    def _best_look(self, teams: list[Team], patience: int, *, check_interval: int = 5) -> Look:
        """Train until the loss of held-out rows rises; ``patience`` looks without a better one.

        Each fold's rows are judged by the boosters that were trained without them.
        """
        held, fold_of = self.held, self.folds[self.folds >= 0]
        looks: list[Look] = []
        best = 0
        for t in range(1, self.parameters.n_rounds + 1):
            scores = np.empty((len(held.binned.rows), *held.targets.shape))
            for k, team in enumerate(teams):
                team.step()
                scores[:, fold_of == k] = team.watched_scores()
            self._note(t, held.losses(scores))
            if t % check_interval and t < self.parameters.n_rounds:
                continue
            fusion = self._fuse(scores)
            fused = held.judge(fusion(held.start, scores))
            self.history[-1]["fused_loss"] = float(fused.mean())
            looks.append(Look(t, scores.astype(np.float32), fusion, fused))
            if fused.mean() < looks[best].losses.mean() - 1e-4:
                best = len(looks) - 1
            elif len(looks) - 1 >= best + patience:
                break
        # Errors go on falling when probabilities are overdone already: the last look that is no
        # worse than the best one, as far as these rows can tell.
        return [look for look in looks if not better(looks[best].losses, look.losses)][-1]

    def _note(self, n_rounds: int, losses: np.ndarray) -> None:
        """Note the sources' held-out losses, and the weights that follow from them."""
        names = [name for name in self.problem.binned.sources.names if name != JOINED]
        losses = losses[: len(names)]
        entry = {"round": n_rounds, "validation_loss": by_name(names, losses)}
        self.history.append(entry | {"source_weights": by_name(names, source_weights(losses))})

    def _fuse(self, scores: np.ndarray) -> Fusion:
        """The fusion that ``weights`` asks for."""
        p = self.held
        if self.parameters.weights == "equal":
            return equal_fusion(scores)
        joined = p.binned.sources.names[-1] == JOINED
        return choose_fusion(p.loss, p.judge, p.start, scores, p.targets, p.weights, joined=joined)

    def _weigh_graphs(self, pairs: list[np.ndarray]) -> None:
        """Eq. (3.11) of what each fold's boosters say, to sum 1."""
        p = self.problem
        weights = [
            graph_weights(p.loss, p.start + scores, pairs, self.fusion.weights)
            for scores in self.fold_scores
        ]
        self.graph_weights = np.mean(weights, axis=0) if weights else np.full(len(p.graphs), 1.0)
        if p.graphs:
            self.graph_weights = self.graph_weights / self.graph_weights.sum()

    def _choose_smoothing(self) -> None:
        """Choose how predictions lean on neighbours, by those of the folds' boosters."""
        parameter, n_graphs = self.parameters.graph_smoothing, len(self.problem.graphs)
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
        """What held-out rows say, each predicted by the boosters that did not see it."""
        out = np.empty((len(self.problem.labeled), *self.problem.labels.shape[1:]))
        for k, scores in enumerate(fold_scores):
            out[self.folds == k] = self._fold_predictions(k, scores, smoothing)
        return self.held.held(out[self.folds >= 0])

    def _fold_predictions(self, fold: int, scores: np.ndarray, smoothing: Smoothing) -> np.ndarray:
        """Predictions of a fold's rows, given its boosters' scores of all ids."""
        out = self.folds == fold
        return self._smoothed(scores, ~out, smoothing)[self.problem.labeled[out]]

    def _smoothed(self, scores: np.ndarray, seen: np.ndarray, smoothing: Smoothing) -> np.ndarray:
        """Predictions of all ids, given scores and which of the labels may be looked at."""
        p = self.problem
        fused = Fused.of(self.fusion, p.start, scores, p.labeled[seen])
        return p.smoother(fused, p.graphs, smoothing, p.labels[seen])

    def _mixing(self) -> list[np.ndarray | None] | None:
        """What neighbours' classes say in graphs whose neighbours differ."""
        p = self.problem
        if not any(strength < 0 for strength in self.smoothing.strengths):
            return None
        fused = Fused.of(self.fusion, p.start, self._mean_scores(), p.labeled)
        return p.smoother.mixing(fused, p.graphs, p.labels)

    def _choose_self_training(self) -> None:
        """Choose whether to train again on what smoothing made of unlabeled rows (ours).

        E and Ẽ of Eqs. (3.2) and (3.3) in one: the fused and smoothed prediction, held fixed.
        """
        p, parameters = self.problem, self.parameters
        is_auto = parameters.graph_smoothing == parameters.connectivity == "auto"
        is_auto &= parameters.consensus in ("auto", 0)
        few = len(p.labeled) < MAX_PSEUDO_LABELS
        if not (is_auto and self.smoothing.any and len(p.unlabeled) and few):
            return
        self.extra = self.rng.permutation(p.unlabeled)[:MAX_PSEUDO_LABELS]
        fold_scores: list[np.ndarray] = []
        self.committee_after: list[list[Any]] = []
        for k, scores in enumerate(self.fold_scores):
            ids, targets, weights = self._pseudo_labels(scores, self.folds != k)
            team = Team(p.binned, p.loss, ids, targets, p.labeled[:0], weights)
            team.train(PSEUDO_LABEL_ROUNDS * self.n_rounds, self.fusion.weights > 0)
            fold_scores.append(self._all_scores(team.boosters, team.n_rounds))
            self.committee_after.append(team.finish())
        searched = self._search_smoothing(fold_scores)
        self.smoothing_after, self.search["self_training"] = searched
        held_before = self._judged(self.fold_scores, self.smoothing)
        self.self_trained = self._judged(fold_scores, self.smoothing_after).improves(held_before)

    def _pseudo_labels(
        self, scores: np.ndarray, seen: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Ids to learn, their targets (labels that are seen, else predictions), weights."""
        p = self.problem
        free = np.concatenate([p.labeled[~seen], self.extra])
        predictions = self._smoothed(scores, seen, self.smoothing)[free]
        predictions = p.smoother.balanced(predictions, p.labels[seen])[:, -p.targets.shape[1] :]
        weights = None
        if p.weights is not None:
            weights = np.concatenate([p.weights[seen], np.ones(len(free))])
        ids, targets = np.concatenate([p.labeled[seen], free]), [p.targets[seen], predictions]
        return ids, np.concatenate(targets), weights

    def _choose_lambdas(
        self,
        *,
        unlabeled_ratio: int = 2,
        strength: float = 1.0,
        min_standard_errors: float = 2.0,
    ) -> None:
        """Turn λ0 and λ1 on where rows of the first fold gain by it; one that is given stays.

        One fold and some of the unlabeled rows must do: this is the costly part of the validation.
        Pseudo-labels that do better stand for both.
        """
        p, parameters = self.problem, (self.parameters.consensus, self.parameters.connectivity)
        self.graph = blend(p.graphs, self.graph_weights) if p.graphs else None
        lambdas = [0.0 if value == "auto" else float(value) for value in parameters]
        self.lambdas = (lambdas[0], lambdas[1])
        if self.look is None or self.self_trained or self.many or "auto" not in parameters:
            return
        sampled = self.rng.permutation(p.unlabeled)[: unlabeled_ratio * len(p.labeled)]
        if not len(sampled) or self.n_rounds <= Team.warm_up:
            return
        useful = self.fusion.weights > 0
        # Before the terms start there is nothing to see, and one source agrees with itself.
        hopeless = (useful.sum() < 2, self.graph is None)
        losses_before = self.look.losses[self.folds == 0]
        if self.smoothing.any:
            losses_before = self._first_losses(self.fold_scores[0])
        free = np.union1d(sampled, p.labeled[self.folds == 0])
        for i, value in enumerate(parameters):
            if value != "auto" or hopeless[i]:
                continue
            trial = [strength if i == k else self.lambdas[k] for k in range(2)]
            team = self._without_fold(0)
            team.couple(free, (trial[0], trial[1]), self.fusion.weights, self.graph)
            losses = self._judge_first(team.train(self.n_rounds, useful))
            means = {"loss": float(losses.mean()), "loss_before": float(losses_before.mean())}
            self.search["lambdas"].append({"lambdas": tuple(trial), **means})
            if better(losses, losses_before, min_standard_errors):
                self.lambdas, losses_before = (trial[0], trial[1]), losses

    def _judge_first(self, team: Team) -> np.ndarray:
        """The losses of the first fold's rows by a team that did not see them."""
        if self.smoothing.any:
            return self._first_losses(self._all_scores(team.boosters, self.n_rounds))
        first = self.problem.part(self.folds == 0)
        return first.judge(self.fusion(first.start, team.watched_scores()))

    def _first_losses(self, scores: np.ndarray) -> np.ndarray:
        """The losses of the first fold's rows, given its boosters' scores of all ids."""
        predictions = self._fold_predictions(0, scores, self.smoothing)
        return self.problem.part(self.folds == 0).held(predictions).losses

    # -- boosters of all labels ------------------------------------------------------------

    def _train(self, labeled: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> None:
        """Train on all labels, or also on pseudo-labels."""
        p = self.problem
        team = Team(p.binned, p.loss, labeled, targets, p.labeled[:0], weights)
        if any(self.lambdas):
            team.couple(p.unlabeled, self.lambdas, self.fusion.weights, self.graph)
        names = p.binned.sources.names
        is_trained = np.array([name != JOINED for name in names]) | (self.fusion.weights > 0)
        self.boosters = team.train(self.n_rounds, is_trained).finish()

    def _train_again(self) -> None:
        """Train again, on labels and on what the boosters and their graphs say of other rows."""
        seen = np.full(len(self.problem.labeled), True)
        labels = self._pseudo_labels(self._mean_scores(), seen)
        self.n_rounds, self.smoothing = PSEUDO_LABEL_ROUNDS * self.n_rounds, self.smoothing_after
        self.committee = self.committee_after
        # Scores come less the constant of these labels; fusion adds that of the true ones, so that
        # classes keep their share.
        self._train(*labels)

    def _mean_scores(self) -> np.ndarray:
        """The scores of all ids by the boosters of all labels and those of the folds."""
        teams, binned = [self.boosters, *self.committee], self.problem.binned
        return mean_scores(teams, binned.sources, binned.n_outputs, self.n_rounds)

    def _all_scores(self, boosters: list[Any], n_rounds: int) -> np.ndarray:
        binned = self.problem.binned
        return all_scores(boosters, binned.sources, binned.n_outputs, n_rounds)


def labeled_fusion(problem: Problem) -> Fusion:
    """The plain mean of the sources that have more than one labeled row."""
    usable = np.array([(row[problem.labeled] >= 0).sum() > 1 for row in problem.binned.rows])
    usable &= np.array([name != JOINED for name in problem.binned.sources.names])
    return Fusion(usable / max(usable.sum(), 1))


def sampled_edges(
    graphs: Sequence[sp.csr_array], rng: np.random.Generator, *, max_edges: int = 2_000
) -> list[np.ndarray]:
    """The ends of some edges of each graph, an edge at most once."""
    out = []
    for graph in graphs:
        pairs = np.array(sp.triu(graph, format="coo").coords)
        out.append(pairs[:, np.sort(rng.permutation(pairs.shape[1])[:max_edges])])
    return out


def by_name(names: Sequence[str], values: np.ndarray) -> dict[str, float]:
    """The value of each name, as Python's floats."""
    return dict(zip(names, np.asarray(values, dtype=float).tolist(), strict=True))


def folds_of(strata: np.ndarray | None, n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Deal rows out to k folds, the classes (if any) evenly."""
    order = rng.permutation(n)
    if strata is not None:
        order = order[np.argsort(strata[order], kind="stable")]
    folds = np.empty(n, dtype=np.intp)
    folds[order] = np.arange(n) % k
    return folds
