"""GBC: gradient boosting consensus over many sources [Shi 2013, ch. 3].

One LightGBM model for each source; rows may be missing from any of them. What several sources say
is fused by weights from held-out rows, and may lean on graphs between the rows. Terms that make
sources agree on unlabeled rows are turned on where validation gains by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, StrOptions, seed_of
from tabweave.base import Estimator, TabularInput
from tabweave.columns.column import Schema
from tabweave.columns.inputs import check_class_labels, check_target, target_array, target_numbers
from tabweave.columns.table import Table, check_feature_names, remember_names, require_rows
from tabweave.io.register import storable
from tabweave.sources.container import Sources, blend, check_form, positions_in
from tabweave.sources.tables import (
    SourceTable,
    as_floats,
    labels_of_rows,
    position_of_each,
    read_labels,
    without_attributes,
)
from tabweave.sources.team import (
    Binned,
    ClassSmoother,
    Fused,
    Fusion,
    Held,
    Logistic,
    Loss,
    NumberSmoother,
    Smoother,
    Smoothing,
    Squared,
    Team,
    all_scores,
    better,
    choose_fusion,
    choose_smoothing,
    contributions,
    equal_fusion,
    graph_weights,
    left_out,
    mean_losses,
    mean_scores,
    row_losses,
    source_weights,
)

# -- The training of GBC, step by step: what held-out rows choose, then boosters of all labels ----
#
# Folds of the labeled rows give the number of rounds, the weights of sources and graphs, how
# predictions lean on graphs, whether pseudo-labels help, and λ0 and λ1.

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

    def _best_look(
        self,
        teams: list[Team],
        patience: int,
        *,
        check_interval: int = 5,
        min_loss: float = 3.0,
    ) -> Look:
        """Train until the loss of held-out rows rises; ``patience`` looks without a better one.

        Each fold's rows are judged by the boosters that were trained without them. Rounds are left
        out only if all rows together lose ``min_loss`` by them: few labels choose rounds badly.
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
        least = looks[best].losses
        return [one for one in looks if not better(least, one.losses, at_least=min_loss)][-1]

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


# -- GBC: gradient boosting consensus over many sources [Shi 2013, ch. 3] -------------------------
#
# One LightGBM model for each source; rows may be missing from any of them. What several sources say
# is fused by weights from held-out rows, and may lean on graphs between the rows. Terms that make
# sources agree on unlabeled rows are turned on where validation gains by them.

PARAMS = {
    "learning_rate": 0.1,
    "num_leaves": 8,
    "min_data_in_leaf": 2,
    "min_sum_hessian_in_leaf": 0.01,
    "feature_fraction": 0.3,
    "max_bin": 63,
    # LightGBM's own, 100 and 10, see nothing in categories of a few hundred labeled rows.
    "min_data_per_group": 2,
    "cat_smooth": 2.0,
}
FIXED = {
    "objective": "none",
    "metric": "none",
    "verbosity": -1,
    # The same trees whatever the number of threads, and in every fold the same bins.
    "deterministic": True,
    "force_col_wise": True,
    "feature_pre_filter": False,
}
_NOT_TABLES = {"constant", "graphs", "other classes"}  # among the shares of a prediction
ONLY = "X"  # the name of the one table that plain rows make


class Explained(NamedTuple):
    """What is explained of a row: an output in some unit, and the shares of no column."""

    output: int
    unit: float
    constant: float
    graphs: float
    others: float | None  # of classes, if there are more than two


class GBC(TabularInput, Estimator):
    """Base of the classifier and the regressor, which say how labels become targets."""

    _loss: ClassVar[Loss]
    _smoother: ClassVar[Smoother]
    _params: ClassVar[dict[str, Any]] = PARAMS
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "consensus": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "connectivity": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "graph_smoothing": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "weights": [StrOptions({"learned", "equal"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "params": [dict, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_rounds: int = 100,
        *,
        consensus: float | str = "auto",
        connectivity: float | str = "auto",
        graph_smoothing: float | str = "auto",
        weights: str = "learned",
        cv: int = 3,
        params: dict[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.consensus = consensus
        self.connectivity = connectivity
        self.graph_smoothing = graph_smoothing
        self.weights = weights
        self.cv = cv
        self.params = params
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _encode(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets (rows, outputs), and classes that folds should share out evenly."""
        raise NotImplementedError

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from sources and the labels of some of their ids.

        Parameters
        ----------
        X : Sources, or a frame or array of rows
            The sources, best with the unlabeled ids that are to be predicted; or plain rows,
            which make one source.
        y : mapping or series of id to label, or array-like
            An id without an entry is unlabeled. An array has one label for each of
            ``sources.ids``, None where there is none; for plain rows one for each row.
        sample_weight : mapping, series or array-like, optional
            How much each label counts, by id or row as ``y`` has them; 1 where there is none. A
            label of weight 0 is none.
        """
        self._validate_params()
        sources, labeled, labels, weights = read_training(self, X, y, sample_weight)
        targets, strata = self._encode(labels)
        rng = np.random.default_rng(seed_of(self.random_state))
        booster_params = dict(self.params or {})
        metric = booster_params.pop("metric", "logloss")
        if metric not in ("logloss", "error"):
            raise ValueError(f"params: expected metric 'logloss' or 'error', got {metric!r}")
        params = {**self._params, **booster_params, **FIXED, "seed": int(rng.integers(2**31))}
        members = with_joined(sources, sources) if self._joins() else sources
        binned = Binned(members, params, targets.shape[1])
        loss, smoother = self._loss, self._smoother
        start = loss.start(targets, weights)
        problem = Problem(binned, loss, smoother, labeled, targets, start, strata, weights, metric)
        trained = self._train(problem, rng)
        self._keep(sources, problem, trained)
        return self

    def _joins(self) -> bool:
        """Tell whether a booster of all columns is a member of the team."""
        return self.weights == "learned"

    def _train(self, problem: Problem, rng: np.random.Generator) -> Trained:
        return Training(problem, self, rng).run()

    def _keep(self, sources: Sources, problem: Problem, trained: Trained) -> None:
        members = problem.binned.sources
        self.boosters_ = dict(zip(members.names, trained.boosters, strict=True))
        weights = by_name(members.names, trained.fusion.weights)
        importances = by_name(members.names, trained.source_importances)
        self.joined_weight_ = weights.pop(JOINED, 0.0)
        importances.pop(JOINED, None)
        self._fusion, self.prior_share_ = trained.fusion, trained.fusion.prior_share
        if JOINED in self.boosters_ and not self.joined_weight_:
            del self.boosters_[JOINED]
            self._fusion = replace(trained.fusion, weights=trained.fusion.weights[:-1])
        self.reference_ = sources.select(sources.ids[:0])
        self.n_rounds_, self.lambdas_ = trained.n_rounds, trained.lambdas
        self.history_, self.search_ = trained.history, trained.search
        self.source_weights_, self.source_importances_ = weights, importances
        folds = [dict(zip(members.names, team, strict=True)) for team in trained.committee]
        used = [name for name in self.boosters_ if self._weight(name)]
        self._committee = [{name: team[name] for name in used} for team in folds]
        self.graph_weights_ = by_name(sources.graph_names, trained.graph_weights)
        strengths = trained.smoothing.strengths
        self.graph_smoothing_ = dict(zip(sources.graph_names, strengths, strict=True))
        self.trust_, self.self_trained_ = trained.smoothing.trust, trained.self_trained
        self._mixing = dict(zip(sources.graph_names, trained.mixing or [], strict=False))
        self.refused_ = refused(self)
        self._start = problem.start
        self._labeled_ids, self._labels = sources.ids[problem.labeled], problem.labels

    # -- using -----------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> Any:
        """Gain of every column times the weight of its source, to sum 1.

        An array for plain rows, else a dict of source to dict of column to importance.
        """
        check_is_fitted(self, "boosters_")
        parts = {
            name: np.zeros(len(self.reference_.columns(name))) for name in self.source_weights_
        }
        for name in self.boosters_:
            models = self._models(name)
            gain = sum(m.feature_importance("gain", iteration=self.n_rounds_) for m in models)
            if models:
                parts[name] = self._weight(name) * gain / (np.sum(gain) or 1.0)
        parts = split_joined(parts, self.reference_)
        total = sum(gain.sum() for gain in parts.values()) or 1.0
        if hasattr(self, "schema_"):
            return parts[ONLY] / total
        return {n: by_name(self.reference_.columns(n), g / total) for n, g in parts.items()}

    def _teams(self) -> list[dict[str, Any]]:
        """The boosters of all labels, and those of each fold, if they count as well."""
        return [self.boosters_, *self._committee]

    def _models(self, name: str) -> list[Any]:
        """The boosters whose mean is what a source says."""
        return [booster for team in self._teams() if (booster := team.get(name)) is not None]

    def _weight(self, name: str) -> float:
        return self.joined_weight_ if name == JOINED else self.source_weights_[name]

    def source_scores(self, X: Any) -> dict[str, np.ndarray]:
        """What each source says of every id: its scores, NaN where it has no row."""
        sources = self._read(X)
        scores = self._start + self._scores(sources)
        by_source = dict(zip(self.boosters_, scores[:, positions_in(sources, X)], strict=True))
        by_source.pop(JOINED, None)
        return by_source

    def explain(self, X: Any, ids: Any = None) -> list[dict[str, Any]]:
        """The share of every source and column in each prediction.

        Parameters
        ----------
        X : Sources, or a frame or array of rows
            As in ``predict``.
        ids : sequence, optional
            The ids to explain; by default all of ``X.ids``. Of plain rows, row numbers.

        Returns
        -------
        list of dict
            For each id: the "constant", for each source that has it a dict of column to share
            (Shapley values of its trees times its weight), and "graphs", what the neighbours add.
            Of classes, shares are in log-odds of the class predicted, and "other classes" is what
            these take away; together they are the log-odds of its probability. Of numbers they
            sum up to the prediction.
        """
        sources = self._read(X)
        for name in _NOT_TABLES & {*self.reference_.names}:
            raise ValueError(
                f"expected no table of the name {name!r}, which is a share of no table: rename it"
            )
        index = positions_in(sources, X) if ids is None else sources._index_of_all(ids)
        final, _ = self._smoothed(sources)
        unsmoothed, fused = self._smoothed(sources, smooth=False)
        certainty, shares = self._column_shares(sources.select(sources.ids[index]))
        out = []
        for i, row in enumerate(index.tolist()):
            start = certainty[i] * self._start
            explained = self._explained(final[row], unsmoothed[row], fused[row], start)
            constant, parts_by_source = explained.constant, {}
            for name, (rows, values) in shares.items():
                if rows[i] >= 0:
                    parts = values[rows[i], explained.output] * explained.unit
                    parts_by_source[name] = parts[:-1]
                    constant += float(parts[-1])  # what the trees say of a row at large
            explanation: dict[str, Any] = {"constant": constant}
            for name, parts in split_joined(parts_by_source, self.reference_).items():
                explanation[name] = by_name(self.reference_.columns(name), parts)
            explanation["graphs"] = explained.graphs
            if explained.others is not None:
                explanation["other classes"] = explained.others
            out.append(explanation)
        return out

    def _column_shares(
        self, sources: Sources
    ) -> tuple[np.ndarray, dict[str, tuple[np.ndarray, np.ndarray]]]:
        """For each source the row of each id and its shares (rows, outputs, columns).

        Before it stands what the constant of each id is multiplied by.
        """
        out: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        present = np.zeros((len(self.boosters_), len(sources)), dtype=bool)
        for i, name in enumerate(self.boosters_):
            if name in sources.names and self.boosters_[name] is not None:
                present[i, sources.rows(name)] = True
        certainty, weights = self._fusion.factors(present)
        for i, name in enumerate(self.boosters_):
            index = sources.rows(name) if present[i].any() else np.zeros(0, np.intp)
            if not len(index):
                continue
            matrix, n_rounds = sources.matrix(name), self.n_rounds_
            models = self._models(name)
            raw = sum(contributions(booster, matrix, n_rounds) for booster in models) / len(models)
            raw = raw.reshape(len(index), len(self._start), -1) * weights[i, index, None, None]
            out[name] = position_of_each(index, len(sources)), raw
        return certainty, out

    def _explained(
        self, final: np.ndarray, unsmoothed: np.ndarray, fused: np.ndarray, start: np.ndarray
    ) -> Explained:
        """What is explained of a row.

        Given are its prediction with and without its neighbours, the fused scores it comes from,
        and the constant in them.
        """
        raise NotImplementedError

    def _score(self, measure: Any, X: Any, y: Any, sample_weight: Any) -> float:
        """A measure over the ids (or rows) that ``y`` has labels for."""
        labeled: Any = slice(None)
        if isinstance(X, Sources):
            labeled, labels = read_labels(X.ids, y)
            weights = _weights_of(X.ids, labeled, sample_weight)
        else:
            labels, weights = _in_order(X, y, sample_weight)
        return float(measure(labels, self.predict(X)[labeled], sample_weight=weights))

    def predict(self, X: Any, ids: Any = None) -> np.ndarray:
        """The class or number of every id, or of some."""
        raise NotImplementedError

    def _read(self, X: Any) -> Sources:
        check_is_fitted(self, "boosters_")
        return read_rows(self, X)

    def _scores(self, sources: Sources) -> np.ndarray:
        shape = (len(self.boosters_), len(sources), len(self._start))
        out = np.full(shape, np.nan)
        order = list(self.boosters_)
        positions = [order.index(name) for name in sources.names]
        teams = [[team.get(name) for name in sources.names] for team in self._teams()]
        if positions:
            out[positions] = mean_scores(teams, sources, len(self._start), self.n_rounds_)
        return out

    def _predictions(self, X: Any, ids: Any = None) -> np.ndarray:
        """Fused and smoothed predictions of every id, or of those asked for."""
        sources = self._read(X)
        out = self._smoothed(sources)[0]
        return out[positions_in(sources, X) if ids is None else sources._index_of_all(ids)]

    def _smoothed(self, sources: Sources, smooth: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Predictions of all ids, with or without what neighbours add, and fused scores."""
        labeled = sources.index(self._labeled_ids)
        is_known = labeled >= 0
        fused = Fused.of(self._fusion, self._start, self._scores(sources), labeled[is_known])
        graphs = [sources.graph(name) for name in sources.graph_names]
        strengths = tuple(smooth * self.graph_smoothing_[name] for name in sources.graph_names)
        mixing = [self._mixing.get(name) for name in sources.graph_names]
        smoothing, labels = Smoothing(strengths, self.trust_), self._labels
        fused = fused._replace(prior=self._smoother.prior(labels))
        return self._smoother(fused, graphs, smoothing, labels[is_known], mixing), fused.scores


@storable
class GBCClassifier(ClassifierMixin, GBC):
    """Classify entities that several tables and graphs describe, each of them incomplete.

    Parameters
    ----------
    n_rounds : int, default=100
        Rounds at most; validation stops earlier when the loss of held-out rows no longer falls.
        Boosters trained on pseudo-labels (see ``self_trained_``) take twice as many.
    consensus, connectivity : float or "auto", default="auto"
        λ0 and λ1 of Eq. (3.4): how much the sources should agree with each other, and with
        themselves along edges, on unlabeled rows; 1 weighs as much as all labels together.
        "auto" turns them on where held-out rows gain by more than two standard errors. A number
        for ``connectivity`` also means that there are no pseudo-labels.
    graph_smoothing : float or "auto", default="auto"
        How much predictions lean on those of their neighbours (ours); 0 not at all. "auto" chooses
        for each graph by held-out rows, and whether neighbours are alike or differ; a number is
        shared out by the graph weights.
    weights : {"learned", "equal"}, default="learned"
        Source weights from held-out rows: all alike, by Eq. (3.10), one source alone, or an average
        of these where the rows cannot tell which is best; or the same for all.
    cv : int, default=3
        Folds of the validation; of more than 5,000 labels a part is held out once. It runs unless
        nothing is left to choose.
    params : dict, optional
        Parameters of LightGBM, such as ``learning_rate``, ``num_leaves``, ``num_threads``; small
        tables have one thread by default. No number of threads changes the result. ``metric`` is
        what held-out rows are judged by, "logloss" (default) or "error".
    random_state : int, RandomState or None, default=None
        Folds, samples of unlabeled rows, and LightGBM's seed.

    Attributes
    ----------
    source_weights_, source_importances_ : dict of str to float
        Weight of each source, and by how much the loss of held-out rows grows without it.
    joined_weight_ : float
        Weight of one more booster that sees all columns side by side (ours); 0 if held-out rows
        do not gain by it. Together with the sources' weights it sums up to 1.
    prior_share_ : float
        How much of the weights is a prior, not what held-out rows say (ours): 10 / (n + 10) of n
        labels, nothing if that is below 0.05; 1 where no source beats a constant on these rows, 0
        for weights that are not learned. By the prior sources are alike, and the booster of all
        columns is worth as much as all of them.
    feature_importances_ : dict of str to dict, or ndarray
        Gain of each column times the weight of its source.
    graph_weights_, graph_smoothing_ : dict of str to float
        Weight of each graph by Eq. (3.11), and how much predictions lean on it; less than 0 where
        a neighbour speaks for the classes that were found to go together with its own, as it must
        where neighbours differ, and not just for its own.
    refused_ : dict of str to str
        The sources of weight 0 and the graphs that predictions do not lean on, and why. The
        columns of such a source may still count in the booster of all columns, if that has a
        weight.
    trust_ : float
        How much a row with neighbours still believes its own columns, if predictions lean on any
        graph; chosen with ``graph_smoothing_``.
    self_trained_ : bool
        Whether the boosters were trained again, on the labels and on pseudo-labels: the smoothed
        predictions of unlabeled rows (ours). Tried where predictions lean on a graph; kept if
        held-out rows gain by more than a standard error. λ0 and λ1 are then 0.
    lambdas_ : tuple of two floats
        λ0 and λ1 in use.
    n_rounds_ : int
        Rounds in use.
    history_ : list of dict
        After each round of the validation: held-out losses of the sources, the weights that follow
        from them, and (every fifth round) the held-out loss of the fused prediction.
    search_ : dict of str to list of dict
        What was tried for λ0 and λ1 ("lambdas"), for smoothing, and for smoothing after
        "self_training", and the held-out loss.
    boosters_ : dict of str to lightgbm.Booster or None
        The model of each source, None if it has fewer than two labeled rows; and that of "all
        columns" if it has a weight. Of at most 5,000 labels, what a source says is the mean of it
        and of the boosters that validation trained, each without one fold (ours), unless λ0 or λ1
        is on.
    classes_ : ndarray
        The classes, sorted.
    reference_ : Sources
        The sources of fit without rows: names and columns that new rows must have.
    schema_ : Schema
        How the columns were read, after fit on a plain table.

    Notes
    -----
    Needs LightGBM: ``pip install lightgbm``. Two classes make one logistic score, more of
    them one against the others each. A source no better than a constant on held-out rows has
    weight 0. See the page on GBC for the formulas and for what was measured, and
    :class:`tabweave.papers.GBCClassifier` for the algorithm as published.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave import GBCClassifier, Sources
    >>> rng = np.random.default_rng(0)
    >>> ids = np.arange(300)
    >>> kind = rng.integers(0, 2, 300)
    >>> sources = Sources({
    ...     "sensor": (ids[:250], kind[:250, None] + rng.normal(0, 0.5, (250, 3))),
    ...     "survey": (ids[50:], kind[50:, None] + rng.normal(0, 0.7, (250, 2))),
    ...     "noise": (ids, rng.normal(size=(300, 5))),
    ... })
    >>> model = GBCClassifier(30, random_state=0).fit(sources, dict(enumerate(kind[:150])))
    >>> bool(model.score(sources, dict(zip(ids[150:], kind[150:]))) > 0.85)
    True
    >>> model.source_weights_["noise"]
    0.0
    >>> model.refused_
    {'noise': 'no ...'}

    Parameters are searched as usual, with y in the order of ``sources.ids``:

    >>> from sklearn.model_selection import GridSearchCV
    >>> search = GridSearchCV(
    ...     GBCClassifier(10, random_state=0), {"weights": ["learned", "equal"]}, cv=2
    ... ).fit(sources, kind)
    >>> bool(search.best_score_ > 0.8)
    True
    """

    _loss: ClassVar[Loss] = Logistic()
    _smoother: ClassVar[Smoother] = ClassSmoother()

    def _encode(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        check_class_labels(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"y: expected two classes or more, got one class only, {only!r}")
        if len(self.classes_) == 2:
            return codes[:, None].astype(float), codes
        return np.eye(len(self.classes_))[codes], codes

    def predict_proba(self, X: Any, ids: Any = None) -> np.ndarray:
        """The probability of each class.

        Parameters
        ----------
        X : Sources, or a frame or array of rows
            Some of the tables and graphs of training, about any ids. Labels of training are used
            where their ids are among the neighbours.
        ids : sequence, optional
            The ids to predict, in this order; by default all of ``X.ids``.
        """
        return self._predictions(X, ids)

    def predict(self, X: Any, ids: Any = None) -> np.ndarray:
        """The most probable class; see :meth:`predict_proba`."""
        likely = self.predict_proba(X, ids).argmax(axis=1)
        return self.classes_[likely]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy over the ids (or rows) that ``y`` has labels for."""
        return self._score(accuracy_score, X, y, sample_weight)

    def _explained(
        self, final: np.ndarray, unsmoothed: np.ndarray, fused: np.ndarray, start: np.ndarray
    ) -> Explained:
        chosen, tiny = int(final.argmax()), 1e-300
        odds = [
            float(np.log((p[chosen] + tiny) / (1 - p[chosen] + tiny))) for p in (final, unsmoothed)
        ]
        if len(start) > 1:
            others = odds[1] - float(fused[chosen])
            return Explained(chosen, 1.0, float(start[chosen]), odds[0] - odds[1], others)
        sign = 1.0 if chosen else -1.0
        return Explained(0, sign, sign * float(start[0]), odds[0] - odds[1], None)


@storable
class GBCRegressor(RegressorMixin, GBC):
    """Predict a number from several tables and graphs, each of them incomplete.

    As :class:`GBCClassifier`, with numbers in place of classes.

    Parameters
    ----------
    n_rounds, consensus, connectivity, graph_smoothing, weights, cv, params, random_state
        As in :class:`GBCClassifier`.

    Attributes
    ----------
    source_weights_, source_importances_, joined_weight_, prior_share_, feature_importances_
        As in :class:`GBCClassifier`.
    graph_weights_, graph_smoothing_, refused_, trust_, self_trained_, lambdas_, n_rounds_
        As in :class:`GBCClassifier`.
    history_, search_, boosters_, reference_, schema_
        As in :class:`GBCClassifier`.

    Notes
    -----
    Numbers are learned at mean 0 and standard deviation 1, so that losses and weights do not
    depend on their unit.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave import GBCRegressor, Sources
    >>> rng = np.random.default_rng(0)
    >>> ids, size = np.arange(300), rng.normal(size=300)
    >>> sources = Sources({
    ...     "left": (ids, size[:, None] + rng.normal(0, 0.3, (300, 3))),
    ...     "right": (ids[100:], size[100:, None] + rng.normal(0, 0.3, (200, 3))),
    ... })
    >>> model = GBCRegressor(40, random_state=0).fit(sources, dict(enumerate(size[:150])))
    >>> bool(model.score(sources, dict(zip(ids[150:], size[150:]))) > 0.85)
    True
    """

    _loss: ClassVar[Loss] = Squared()
    _smoother: ClassVar[Smoother] = NumberSmoother()

    def _encode(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        numbers = target_numbers(labels, "GBCClassifier")
        self._center, self._unit = float(numbers.mean()), float(numbers.std()) or 1.0
        return (numbers[:, None] - self._center) / self._unit, None

    def predict(self, X: Any, ids: Any = None) -> np.ndarray:
        """The predicted number of every id, or of some; see `GBCClassifier`."""
        scaled = self._predictions(X, ids)[:, 0]
        return self._center + self._unit * scaled

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² over the ids (or rows) that ``y`` has numbers for."""
        return self._score(r2_score, X, y, sample_weight)

    def _explained(
        self, final: np.ndarray, unsmoothed: np.ndarray, fused: np.ndarray, start: np.ndarray
    ) -> Explained:
        constant = self._center + self._unit * float(start[0])
        graphs = self._unit * float(final[0] - unsmoothed[0])
        return Explained(0, self._unit, constant, graphs, None)


# -- what GBC takes: sources with labels by id, or plain rows with a label each -----------------


def read_training(
    model: Any, X: Any, y: Any, sample_weight: Any = None
) -> tuple[Sources, np.ndarray, np.ndarray, np.ndarray | None]:
    """The sources, the index of the labeled ids, their labels and weights."""
    if y is None:
        raise ValueError(
            f"{type(model).__name__} requires y to be passed, but the target y is None"
        )
    if isinstance(X, Sources):
        if not X.names:
            raise ValueError(
                "expected at least one table, got graphs only; turn one into a table with "
                "sources.with_features_of(graph)"
            )
        without_attributes(model, "feature_names_in_", "schema_")
        model.n_features_in_ = sum(len(X.columns(name)) for name in X.names)
        labeled, labels = read_labels(X.ids, y)
        if not len(labeled):
            raise ValueError("y: expected a label for some of the ids, got none")
        weights, surroundings = _weights_of(X.ids, labeled, sample_weight), X.surroundings
        return surroundings, *_counting(surroundings.index(X.ids)[labeled], labels, weights)
    sources = _read_rows(model, X, reset=True)
    labels, sample_weight = _in_order(X, y, sample_weight)
    if len(labels) != len(sources):
        raise ValueError(f"y: expected {len(sources)} labels, one per row, got {len(labels)}")
    check_target(labels)
    rows = np.arange(len(sources))
    return sources, *_counting(rows, labels, _weights_of(rows, rows, sample_weight))


def _in_order(X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, Any]:
    """Labels and weights in the order of plain rows."""
    weights: Any = None if sample_weight is None else labels_of_rows(X, sample_weight)
    if hasattr(weights, "iloc"):  # in the order of the rows by now, whatever its index
        weights = weights.to_numpy()
    return target_array(labels_of_rows(X, y)), weights


def _counting(
    labeled: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Labels that count, with weights of mean 1; a label of weight 0 is none."""
    if weights is None:
        return labeled, labels, None
    has_weight = weights > 0
    return labeled[has_weight], labels[has_weight], weights[has_weight] / weights[has_weight].mean()


def _weights_of(ids: np.ndarray, labeled: np.ndarray, sample_weight: Any) -> np.ndarray | None:
    """The weights of the labels; 1 for a label without one."""
    if sample_weight is None:
        return None
    if not isinstance(sample_weight, Mapping) and not hasattr(sample_weight, "iloc"):
        sample_weight = np.asarray(sample_weight)
        if sample_weight.ndim != 1:
            raise ValueError(
                f"Sample weights must be 1D array or scalar, got {sample_weight.ndim}D"
            )
    out = np.ones(len(ids))
    index, values = read_labels(ids, sample_weight, "sample_weight")
    out[index] = values.astype(float)
    out = out[labeled]
    if not (np.isfinite(out).all() and (out >= 0).all()):
        raise ValueError("sample_weight: expected finite numbers of at least 0, got others")
    if not out.any():
        raise ValueError("sample_weight: expected a weight above zero, got zero for every label")
    return out


def refused(model: Any) -> dict[str, str]:
    """Sources and graphs of no use, and why."""
    out = {n: "no gain on held-out rows" for n, s in model.graph_smoothing_.items() if not s}
    for name, weight in model.source_weights_.items():
        if model.boosters_[name] is None:
            out[name] = "fewer than two labeled rows"
        elif not weight:
            alone = "no better than a constant on held-out rows"
            no_gain = "no gain beside the booster of all columns, which sees its columns too"
            out[name] = no_gain if model.joined_weight_ else alone
    return out


def with_joined(sources: Sources, like: Sources) -> Sources:
    """Sources with one more table: all columns of ``like`` side by side."""
    names = like.names
    if JOINED in names:
        raise ValueError(
            f"expected tables of other names, got {JOINED!r}, which is the name for all of them "
            f"joined"
        )
    if len(names) < 2:
        return sources
    rows = np.flatnonzero(sources.present.any(axis=1))
    position = position_of_each(rows, len(sources))
    sparse = any(sp.issparse(like.matrix(name)) for name in names)
    blocks = [
        _expanded(sources, name, len(like.columns(name)), position, len(rows), sparse)
        for name in names
    ]
    matrix = sp.csr_array(sp.hstack(blocks)) if sparse else np.hstack(blocks)
    columns = tuple(f"{name}: {column}" for name in names for column in like.columns(name))
    labels = tuple(label for name in names for label in like.labels(name))
    tables = {name: sources._table(name) for name in sources.names}
    tables[JOINED] = SourceTable(rows, matrix, columns, labels)
    return Sources._of(sources.ids, tables, sources._links, sources._directed)


def _expanded(
    sources: Sources, name: str, width: int, position: np.ndarray, n: int, sparse: bool
) -> Any:
    """A table over more rows; missing ones are NaN, or empty where a table is sparse."""
    if name not in sources.names:
        return sp.csr_array((n, width)) if sparse else np.full((n, width), np.nan, np.float32)
    rows, matrix = position[sources.rows(name)], sources.matrix(name)
    if sparse:
        ones = np.ones(len(rows))
        lifted = sp.csr_array((ones, (rows, np.arange(len(rows)))), shape=(n, len(rows)))
        return lifted @ sp.csr_array(matrix)
    out = np.full((n, width), np.nan, np.float32)
    out[rows] = matrix
    return out


def split_joined(parts: dict[str, np.ndarray], like: Sources) -> dict[str, np.ndarray]:
    """The values of columns by source, those of all columns shared out among them."""
    out = {name: values for name, values in parts.items() if name != JOINED}
    if JOINED in parts:
        ends = np.cumsum([len(like.columns(name)) for name in like.names])
        for name, part in zip(like.names, np.split(parts[JOINED], ends[:-1]), strict=True):
            out[name] = out.get(name, 0.0) + part
    return out


def read_rows(model: Any, X: Any) -> Sources:
    """What to predict, as the model was trained to read it."""
    check_form(X, not hasattr(model, "schema_"))
    if not isinstance(X, Sources):
        return _read_rows(model, X, reset=False).like(model.reference_)
    sources = X.surroundings.like(model.reference_)
    return with_joined(sources, model.reference_) if model.joined_weight_ else sources


def _read_rows(model: Any, X: Any, *, reset: bool) -> Sources:
    if sp.issparse(X):
        return _read_sparse(model, X, reset=reset)
    if not reset and (hasattr(X, "columns") or isinstance(X, np.ndarray)):
        check_feature_names(model, X, model.schema_)
    table = Table.of(X, None if reset else model.schema_)
    require_rows(table)
    if reset:
        model.schema_ = table.schema
        remember_names(model, table.schema)
    ids = np.arange(len(table))
    return Sources._of(ids, {ONLY: SourceTable(ids, *as_floats(table, "X"))}, {}, {})


def _read_sparse(model: Any, X: Any, *, reset: bool) -> Sources:
    matrix = sp.csr_array(X, dtype=float)
    if reset:
        model.schema_ = Schema.of(dict.fromkeys(range(matrix.shape[1]), "numeric"))
        without_attributes(model, "feature_names_in_")
        model.n_features_in_ = matrix.shape[1]
    elif matrix.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {matrix.shape[1]} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input"
        )
    return Sources({ONLY: (np.arange(matrix.shape[0]), matrix)})
