"""GBC, CoCA and HeMap as published: several sources [Shi 2013, ch. 3 to 5]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit

from tabweave._compat import Interval, StrOptions
from tabweave.io.register import storable
from tabweave.sources import coca, gbc, hemap
from tabweave.sources.container import Sources, averaging
from tabweave.sources.gbc import (
    Problem,
    Trained,
    by_name,
    folds_of,
    labeled_fusion,
    sampled_edges,
)
from tabweave.sources.hemap import Align, Aligned, Scaled, TargetRows, by_rank
from tabweave.sources.team import (
    Fusion,
    Logistic,
    Loss,
    Pair,
    Smoothing,
    Team,
    Terms,
    _scores,
    softplus,
)

# -- GBC as published: gradient boosting consensus [Shi 2013, ch. 3] ------------------------------
#
# Algorithm 1: in each round every source fits a tree to the gradient of Eq. (3.4) and takes the
# step that a line search finds (3.8); then come the weights of sources (3.10) and graphs
# (3.11), from sums over the training rows. Both terms are sums over unlabeled rows from the
# first round on, and an expected score is a target as if it were a label of -1 or 1. For
# comparison: :class:`tabweave.GBCClassifier` is the one to use, and the page on GBC says why.


class _Published(gbc.GBC):
    """What the published classifier and regressor share: parameters, and Algorithm 1."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{n: gbc.GBC._parameter_constraints[n] for n in ("n_rounds", "params", "random_state")},
        "consensus": [Interval(Real, 0, None, closed="left"), StrOptions({"cv"})],
        "connectivity": [Interval(Real, 0, None, closed="left"), StrOptions({"cv"})],
        "weights": [StrOptions({"learned", "equal"})],
    }
    _params: ClassVar[dict[str, Any]] = {**gbc.PARAMS, "learning_rate": 1.0}

    def __init__(
        self,
        n_rounds: int = 100,
        *,
        consensus: float | str = 1.0,
        connectivity: float | str = 1.0,
        weights: str = "learned",
        params: dict[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.consensus = consensus
        self.connectivity = connectivity
        self.weights = weights
        self.n_rounds = n_rounds
        self.params = params
        self.random_state = random_state

    def _joins(self) -> bool:
        return False

    def _train(self, problem: Problem, rng: np.random.Generator) -> Trained:
        learned, n_rounds = self.weights == "learned", self.n_rounds
        lambdas = (self.consensus, self.connectivity)
        if "cv" in lambdas:
            grid = [LAMBDAS if l == "cv" else (l,) for l in lambdas]
            if not problem.graphs and self.connectivity == "cv":
                grid[1] = (0.0,)
            n_rounds, lambdas = cross_validated(problem, n_rounds, grid, learned, rng)
        return boost(problem, n_rounds, (float(lambdas[0]), float(lambdas[1])), learned, rng)


class SignedLogistic(Logistic):
    """The logistic loss, against an expected score as if that were a label of -1 or 1."""

    def agreement(self, scores: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Section 3.4.2: log(1 + exp(-E f)) of each row."""
        return softplus(-expected * scores).sum(axis=-1)

    def agreement_gradient(self, scores: np.ndarray, expected: np.ndarray) -> Pair:
        """Derivatives of :meth:`agreement` in the scores."""
        share = expit(-expected * scores)
        return -expected * share, expected**2 * share * (1 - share)


@storable
class GBCClassifier(_Published, gbc.GBCClassifier):
    """Classify by gradient boosting consensus, as published.

    Parameters
    ----------
    n_rounds : int, default=100
        Rounds N, all of which are run unless a λ is chosen: then the most that are tried.
    consensus, connectivity : float or "cv", default=1.0
        λ0 and λ1 of Eq. (3.4), of sums over unlabeled rows. ``"cv"`` chooses 0, 0.1 or 1, and the
        number of rounds with it, by three folds of the labels, as the thesis does.
    weights : {"learned", "equal"}, default="learned"
        Weights by Eqs. (3.10) and (3.11), or the same for all in every round and prediction.
    params : dict, optional
        Parameters of LightGBM. Steps are those of the line search; a ``learning_rate`` below 1
        shortens them.
    random_state : int, RandomState or None, default=None
        LightGBM's seed.

    Attributes
    ----------
    source_weights_, graph_weights_ : dict of str to float
        Eqs. (3.10) and (3.11) after the last round.
    history_ : list of dict
        After each round: training losses, source weights (3.10) and graph weights (3.11).
    lambdas_, boosters_, classes_, n_rounds_, feature_importances_, reference_, schema_
        As in :class:`tabweave.GBCClassifier`.
    source_importances_, joined_weight_, prior_share_, graph_smoothing_, trust_
        Empty, 0 or NaN: nothing is validated or smoothed.
    refused_, self_trained_, search_
        Empty or False: nothing is refused, trained twice or searched.

    Notes
    -----
    Errata of chapter 3, kept here: weights from the training loss (3.10) reward overfitting, a
    source of noise learned by heart gets the largest one; sums over unlabeled rows in (3.4) drown
    the labels when these are few; in section 3.4.2 the expected score E enters log(1 + exp(-E f))
    as if it were a label, which makes sure predictions surer, and in (3.11) the score of a
    neighbour does; E (3.2) and Ẽ (3.3) are sums, smaller where a source or a graph does not have
    the row; the prediction (3.6) never looks at neighbours.

    *Deviations.* The constant z of (3.10), (3.11) stands below the loss, "to ensure that the
    weights sum up to one": it is the one z for which they do. Trees are LightGBM's, of least
    squares, and steps are searched from 0 to 100. (3.6) is divided by the weights of the sources
    that have the row, which changes no class, only numbers; numbers are standardised. A row without
    neighbours has no Ẽ. At most 5,000 labels and 2,000 edges of a graph give (3.10) and (3.11).
    Cross-validation, where asked for, has three folds and the values 0, 0.1 and 1 of λ0 and λ1;
    print says no more than that there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave import Sources
    >>> from tabweave.papers import GBCClassifier
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(0, 2, 200)
    >>> tables = {"good": (range(200), kind[:, None] + rng.normal(0, 0.4, (200, 2)))}
    >>> tables["noise"] = (range(200), rng.normal(size=(200, 5)))
    >>> model = GBCClassifier(20, consensus=0.1, connectivity=0, random_state=0)
    >>> model = model.fit(Sources(tables), dict(enumerate(kind[:80].tolist())))
    >>> model.source_weights_["noise"] > 0.1
    True
    """

    _loss: ClassVar[Loss] = SignedLogistic()


@storable
class GBCRegressor(_Published, gbc.GBCRegressor):
    """Predict numbers by gradient boosting consensus, as published.

    Errata and deviations are those of :class:`GBCClassifier`; the loss is squared.

    Parameters
    ----------
    n_rounds, consensus, connectivity, weights, params, random_state
        As in :class:`GBCClassifier`.

    Attributes
    ----------
    source_weights_, graph_weights_, history_, lambdas_, boosters_, n_rounds_
        As in :class:`GBCClassifier`.
    feature_importances_, reference_, schema_, source_importances_, joined_weight_, prior_share_
        As in :class:`GBCClassifier`.
    graph_smoothing_, refused_, trust_, self_trained_, search_
        As in :class:`GBCClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.papers import GBCRegressor
    >>> x = np.linspace(0, 1, 60)[:, None]
    >>> model = GBCRegressor(30, random_state=0).fit(x, 3 * x[:, 0])
    >>> bool(model.score(x, 3 * x[:, 0]) > 0.9)
    True
    """


class SummedTeam(Team):
    """Boosters that step by line search; terms are sums over unlabeled rows from round one."""

    warm_up: ClassVar[int] = 0
    shrinkage = 1.0

    def _factors(self, labeled: np.ndarray) -> tuple[float, float]:
        return self._lambdas

    def regard(self, graph: sp.csr_array | None) -> None:
        """Take other weights of the graphs for Ẽ."""
        if graph is not None and self._lambdas[1]:
            self._mean = graph

    def _means(self, scores: np.ndarray, i: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """E (3.2) and Ẽ (3.3) as sums: what a source or a graph does not have adds nothing."""
        rows = self._rows[i]
        known = np.nan_to_num(scores)
        mean = np.tensordot(self.weights, known[:, rows], 1) if self._lambdas[0] else None
        if self._mean is None:
            return mean, None
        linked = self._mean[rows].sum(axis=1) > 0  # without neighbours (3.3) is 0 / 0: no pull
        neighbors = self._mean[rows] @ known[i]
        return mean, np.where(linked[:, None], neighbors, known[i, rows])

    def step(self) -> None:
        """Algorithm 1, lines 4-9: fit a tree to the gradient, search the step, take it."""
        if not self.n_rounds:
            self._own, self._seen = self._gathered(False), self._gathered(True)
        scores = self._training_scores() if self.coupled else None
        for i, (booster, terms) in enumerate(zip(self.boosters, self._terms, strict=True)):
            if booster is None or terms is None:
                continue
            means = (None, None) if scores is None else self._means(scores, i)
            sums_before, grown = self._fitted(i), booster.num_trees()
            booster.update(fobj=self._gradient_of(i, terms, means))
            if booster.num_trees() > grown:
                trees = [new - old for new, old in zip(self._fitted(i), sums_before, strict=True)]
                rho = search_step(terms, self.start + self._own[i], trees[0], means)
                self._take(i, trees, self.shrinkage * rho)
            if scores is not None:
                scores[i, self._rows[i]] = self.start + self._own[i]
        self.n_rounds += 1

    def _gradient_of(self, i: int, terms: Terms, means: Any) -> Any:
        """Eq. (3.7), with second derivatives of 1: leaves are means of the gradient."""

        def objective(raw: np.ndarray, _: Any) -> Any:
            first = terms.gradient(self.start + self._own[i], means)[0]
            return first.reshape(raw.shape), np.ones(raw.shape)

        return objective

    def _fitted(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Sums of trees as they were fitted, on a source's rows and those watched."""
        booster = self.boosters[i]
        watched = _scores(booster, True) if len(self._seen[i]) else self._seen[i]
        return _scores(booster, False), watched

    def _take(self, i: int, trees: list[np.ndarray], rho: np.ndarray) -> None:
        """Eq. (3.9): lengthen the latest trees, in the model and in the scores."""
        booster, n = self.boosters[i], len(rho)
        grown = booster.dump_model(start_iteration=booster.num_trees() // n - 1)["tree_info"]
        for k, tree in enumerate(range(booster.num_trees() - n, booster.num_trees())):
            for leaf in range(int(grown[k]["num_leaves"])):
                value = booster.get_leaf_output(tree, leaf)
                booster.set_leaf_output(tree, leaf, float(rho[k] * value))
        self._own[i] = self._own[i] + rho * trees[0]
        if len(self._seen[i]):
            self._seen[i] = self._seen[i] + rho * trees[1]

    def _gathered(self, watched: bool) -> list[np.ndarray]:
        """Zeros for the rows of each source, or for those of them that are watched."""
        rows = [
            np.sort(row[self.watched][row[self.watched] >= 0]) if watched else self._rows[i]
            for i, row in enumerate(self.binned.rows)
        ]
        return [np.zeros((len(source_rows), self.binned.n_outputs)) for source_rows in rows]

    def _training_scores(self) -> np.ndarray:
        n, outputs = len(self.binned.sources), self.binned.n_outputs
        scores = np.full((len(self.boosters), n, outputs), np.nan)
        for i, booster in enumerate(self.boosters):
            if booster is not None:
                scores[i, self._rows[i]] = self.start + self._own[i]
        return scores

    def _watched_of(self, i: int) -> np.ndarray:
        return self._seen[i]


def search_step(
    terms: Terms, scores: np.ndarray, tree: np.ndarray, means: Any, *, max_step: float = 100.0
) -> np.ndarray:
    """Eq. (3.8): the step of smallest objective along a tree, for each output by itself."""
    out = np.zeros(scores.shape[1])
    for k in range(len(out)):

        def value(rho: float, k: int = k) -> float:
            moved = scores.copy()
            moved[:, k] += rho * tree[:, k]
            return terms.value(moved, means)

        if tree[:, k].any():
            step = minimize_scalar(value, bounds=(0.0, max_step), method="bounded")
            out[k] = step.x if step.fun < value(0.0) else 0.0
    return out


def normalized(losses: np.ndarray) -> np.ndarray:
    """Eqs. (3.10), (3.11): exp(-loss / z), z such that they sum up to 1; NaN weighs nothing."""
    has_loss = ~np.isnan(losses)
    out = np.zeros(len(losses))
    values = losses[has_loss]
    if len(values) < 2 or not values.max() > 0:
        out[has_loss] = 1 / max(len(values), 1)
        return out
    if (values <= 0).any():  # exp(0) is 1 already
        out[has_loss] = (values <= 0) / (values <= 0).sum()
        return out

    def excess(log_z: float) -> float:
        return float(np.exp(-values / np.exp(log_z)).sum()) - 1.0

    # At the lower end all weights vanish, at the upper end each is above 1 / 2.
    low, high = np.log(values.min() / 50), np.log(values.max() / np.log(2)) + 1e-9
    out[has_loss] = np.exp(-values / np.exp(brentq(excess, low, high)))
    return out / out.sum()


class Watch(NamedTuple):
    """The ids whose scores are wanted after each round, and who is who among them."""

    ids: np.ndarray
    some: np.ndarray  # of the labels
    labeled: np.ndarray
    pairs: list[np.ndarray]
    held: np.ndarray

    @classmethod
    def of(
        cls,
        problem: Problem,
        pairs: list[np.ndarray],
        held: np.ndarray,
        *,
        max_rows: int = 5_000,
    ) -> Watch:
        """Watch labeled ids (some of them, if there are many), ends of some edges, and others."""
        n = len(problem.labeled)
        sampled = np.linspace(0, n - 1, min(n, max_rows)).astype(np.intp)
        labeled = problem.labeled[sampled]
        ids = np.unique(np.concatenate([labeled, held, *(ends.ravel() for ends in pairs)]))
        ends_at = [np.searchsorted(ids, ends) for ends in pairs]
        labeled_at, held_at = (np.searchsorted(ids, rows) for rows in (labeled, held))
        return cls(ids, sampled, labeled_at, ends_at, held_at)


LAMBDAS = (0.0, 0.1, 1.0)


def cross_validated(
    problem: Problem,
    n_rounds: int,
    grid: Sequence[Sequence[Any]],
    learned: bool,
    rng: np.random.Generator,
    *,
    n_folds: int = 3,
) -> tuple[int, tuple[Any, Any]]:
    """Sections 3.4.2 and 3.6: N, λ0 and λ1 of the smallest error on held-out labels.

    Of equal ones the first stays: few rounds, small λ.
    """
    n = len(problem.labeled)
    folds = folds_of(problem.strata, n, min(n_folds, n), rng)
    best, chosen = np.inf, (n_rounds, (grid[0][0], grid[1][0]))
    for lambdas in product(*grid):
        errors = np.zeros(n_rounds)
        for k in range(folds.max() + 1 if n > 1 else 0):
            seen, out = problem.part(folds != k), problem.part(folds == k)
            history = boost(seen, n_rounds, lambdas, learned, rng, out).history
            errors += [entry["held_out_error"] * len(out.labeled) for entry in history]
        if errors.min() < best:
            best, chosen = errors.min(), (int(errors.argmin()) + 1, lambdas)
    return chosen


def boost(
    problem: Problem,
    n_rounds: int,
    lambdas: tuple[float, float],
    learned: bool,
    rng: np.random.Generator,
    held: Problem | None = None,
) -> Trained:
    """Algorithm 1: a tree for each source in turn, then weights (3.10) and (3.11), by rounds.

    The history has the errors on labels that are held out, if there are such.
    """
    p, sources = problem, problem.binned.sources
    graph_weights = np.full(len(p.graphs), 1 / max(len(p.graphs), 1))
    held_ids = p.labeled[:0] if held is None else held.labeled
    watch = Watch.of(p, sampled_edges(p.graphs, rng), held_ids)
    watched, share = p.part(watch.some), len(p.labeled) / len(watch.some)
    team = SummedTeam(p.binned, p.loss, p.labeled, p.targets, watch.ids, p.weights)
    team.shrinkage = float(p.binned.params["learning_rate"])
    weights = labeled_fusion(p).weights
    if any(lambdas):
        team.couple(p.unlabeled, lambdas, weights)
        team.regard(weighted_graphs(p.graphs, graph_weights))
    team.begin()
    team.weights = weights
    history = []
    for t in range(n_rounds):
        team.step()
        scores = team.watched_scores()
        losses = watched.losses(scores[:, watch.labeled])
        if learned:
            team.weights = weights = normalized(share * len(watch.some) * losses)
            graph_weights = weights_of_graphs(p, scores, watch.pairs, weights)
            team.regard(weighted_graphs(p.graphs, graph_weights))
        history.append(
            {
                "round": t + 1,
                "training_loss": by_name(sources.names, losses),
                "source_weights": by_name(sources.names, weights),
                "graph_weights": by_name(sources.graph_names, graph_weights),
            }
        )
        if held is not None:
            fused = Fusion(weights)(p.start, scores[:, watch.held])
            errors = held.held(held.smoother.plain(fused)).errors
            history[-1]["held_out_error"] = float(errors.mean())
    return Trained(
        team.finish(),
        n_rounds,
        Fusion(weights),
        lambdas,
        history,
        graph_weights,
        Smoothing((0.0,) * len(p.graphs)),
        np.full(len(sources.names), np.nan),
    )


def weighted_graphs(
    graphs: Sequence[sp.csr_array], weights: Sequence[float] | np.ndarray
) -> sp.csr_array | None:
    """Eq. (3.3): Σ ŵ_g / |N_g(x)| over the graphs as one matrix, None without a graph."""
    parts = [w * averaging(graph) for graph, w in zip(graphs, weights, strict=True)]
    return sp.csr_array(sum(parts[1:], start=parts[0])) if parts else None


def weights_of_graphs(
    problem: Problem, scores: np.ndarray, pairs: list[np.ndarray], weights: np.ndarray
) -> np.ndarray:
    """Eq. (3.11): the mean over edges of what their ends' scores lose, over all sources."""
    if not pairs:
        return np.zeros(0)
    losses = [
        [edge_loss(problem.loss, problem.start + one, ends) for one in scores] for ends in pairs
    ]
    return normalized(np.nan_to_num(np.array(losses)) @ weights)


def edge_loss(loss: Loss, scores: np.ndarray, pairs: np.ndarray) -> float:
    """Inner sum of Eq. (3.11): the mean of L(f(a), f(b)), where f(b) stands for a signed label."""
    rows = loss.agreement(scores[pairs[0]], scores[pairs[1]])
    present = ~np.isnan(rows)
    return float(rows[present].mean()) if present.any() else np.nan


# -- CoCA and HeMap as published: projections of several sources [Shi 2013, ch. 4 and 5] ----------
#
# CoCA: the learned weights stand on the diagonal blocks of Eq. (4.8). HeMap: rows are aligned at
# random, the common space has one dimension and the source is used untested. For comparison:
# :class:`tabweave.CoCA` and :class:`tabweave.HeMap` are the ones to use, and their pages say why.


@storable
class CoCA(coca.CoCA):
    """Embed the entities of several sources by collective component analysis, as published.

    Parameters
    ----------
    n_components : int, default=10
        Number of coordinates; fewer if the sources have fewer columns.
    alpha : float or "auto", default="auto"
        How much tables have to agree. ``"auto"`` is 1/p for p tables of unit trace; the 60 of the
        thesis is for unscaled data, ``literal=True``.
    solver : {"auto", "dense", "lanczos"}, default="auto"
        Write the matrix out, or only multiply by it.
    literal : bool, default=False
        Whether tables keep their units, graphs are adjacency matrices, and coordinates leave out
        neighbours: the eigenvectors of (4.8) and (4.14), and (4.2), to the letter.

    Attributes
    ----------
    weights_, graph_weights_ : dict of str to float
        ω and ω̃ of Eq. (4.19), equal ones without labels or links.
    eigenvalues_, components_, columns_, ids_, alpha_, n_components_
        As in :class:`tabweave.CoCA`.
    refused_
        As in :class:`tabweave.CoCA`.

    Notes
    -----
    Eq. (4.8) has ω_j X⁽ʲ⁾X⁽ʲ⁾ᵀ on the diagonal and α X⁽ʲ⁾X⁽ʰ⁾ᵀ beside it: weights touch the
    diagonal blocks only, so a large α drowns them, and a source of weight 0 still takes part.
    Errata: a single multiplier in (4.9) normalises the directions jointly, not in each source;
    (4.8) leaves out the α on the diagonal that (4.6) has, and Lemma 1 is false.

    *Deviations.* Without ``literal`` tables are scaled to unit trace and graphs to
    D^{-½} M D^{-½}, and a row's neighbours are added to its coordinates, as in
    :class:`tabweave.CoCA`. Always: Φ of (4.16) has ten components, and mean square 1; a row that
    some tables miss has 0 there while directions are found, and what those tables would add to its
    coordinates is predicted from the others; without tables the mean degree is added to each degree
    of a graph (not if ``literal``), and new ids are projected by their neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave import Sources
    >>> from tabweave.papers import CoCA
    >>> rng = np.random.default_rng(0)
    >>> tables = {name: (range(30), rng.normal(size=(30, 4))) for name in ("a", "b")}
    >>> model = CoCA(2, alpha=60, literal=True).fit(Sources(tables), {i: i % 2 for i in range(10)})
    >>> model.transform(Sources(tables)).shape
    (30, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{n: coca.CoCA._parameter_constraints[n] for n in ("n_components", "alpha", "solver")},
        "literal": ["boolean"],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        alpha: float | str = "auto",
        solver: str = "auto",
        literal: bool = False,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.solver = solver
        self.literal = literal

    weights = "learned"
    graph_share = 1.0
    _weighs_data: ClassVar[bool] = False  # Eq. (4.8): ω on the diagonal blocks

    def _view(self, sources: Sources, name: str) -> coca.CenteredTable:
        view = super()._view(sources, name)
        return replace(view, scale=float(view.scale > 0)) if self.literal else view

    def _blend(self, sources: Sources, alone: bool) -> sp.csr_array | None:
        if not self.literal:
            return super()._blend(sources, alone)
        parts = [w * sources.graph(name) for name, w in self.graph_weights_.items() if w > 0]
        return sp.csr_array(sum(parts[1:], start=parts[0])) if parts else None

    def _coordinates_of(self, sources: Sources) -> np.ndarray:
        alone = self.literal and self.components_
        return self._projected(sources) if alone else super()._coordinates_of(sources)


@storable
class HeMap(hemap.HeMap):
    """Learn from the labels of a source table with other columns, as published.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        The learner; 10 nearest neighbours if not given.
    n_components : int, default=1
        Dimensions of the common space, at most.
    similarity : float, default=1.0
        How much the two tables should agree there (β).
    linearity : float in (0, 1], default=1.0
        1 is the linear HeMap, Eq. (5.8); less keeps clusters too, Eq. (5.15) (θ; nonlinear at 0.5).
    scale : bool, default=True
        Whether columns are brought to variance 1.
    random_state : int, RandomState or None, default=None
        Decides the alignment and clusters.

    Attributes
    ----------
    transfer_ : object or None
        What was learned with the source.
    target_estimator_, selected_, eigenvalues_, classes_, alignment_, losses_, reason_, verdicts_
        As in :class:`tabweave.HeMap`.
    refused_ : bool
        False, unless there is no source that can be aligned at all.

    Notes
    -----
    Errata: section 5.3 says that the order of rows and the scale of the data do not affect the
    result. Both do, through TᵀS: row i of the target is projected with row i of the source, so
    rows in random order carry nothing over. Theorems 4 and 7 say that the eigenvectors minimise
    (5.4) and (5.11); they do not, as both halves of B would have to be orthonormal.

    *Deviations.* Tables are centred and their rows brought to mean square 1, with ``scale`` their
    columns to variance 1 before. The smaller table is filled up with its rows in turn, both in
    random order. Eigenvectors are weighted by √λ, and the rows of training projected like new ones,
    by a ridge regression on their own columns, which print does not have: Algorithms 3 and 4 alone
    are ``tabweave.sources.hemap.embed``. Source rows are selected by our own rule, in twenty
    clusters, each up to the target's share, nearest to the target's centre first, which brings
    (5.18), :func:`clustering_divergence`, near 0; the thesis refers to another paper for its rule.
    Classes of one name are pooled before (5.19) and (5.20); numbers are bridged by a line.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.papers import HeMap
    >>> rng = np.random.default_rng(0)
    >>> X, kind = rng.normal(size=(60, 3)), np.repeat(["a", "b"], 30)
    >>> model = HeMap(random_state=0).fit(X, kind, source=(X @ rng.normal(size=(3, 5)), kind))
    >>> model.project(X).shape
    (60, 1)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: hemap.HeMap._parameter_constraints[name]
        for name in (
            *("estimator", "n_components", "similarity", "linearity"),
            *("scale", "random_state"),
        )
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_components: int = 1,
        similarity: float = 1.0,
        linearity: float = 1.0,
        scale: bool = True,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_components = n_components
        self.similarity = similarity
        self.linearity = linearity
        self.scale = scale
        self.random_state = random_state

    guard = None

    def fit(self, X: Any, y: Any, source: Any = None) -> Self:  # type: ignore[override]
        """Learn as :meth:`tabweave.HeMap.fit` does, without pairs."""
        return super().fit(X, y, source)

    def _alignment(self, target: TargetRows) -> tuple[str, Align, int]:
        return "random", at_random, 0


def at_random(given: Scaled) -> Aligned:
    """Align rows at random, as the thesis does when it fills up the smaller table."""
    return by_rank(given.rng.permutation(len(given.T)), given.rng.permutation(len(given.S)))


def clustering_divergence(target: Any, source: Any) -> float:
    """The divergence KL_c of a projected target from a source, Eqs. (5.17) and (5.18).

    Rows of both are clustered together; the mean of the target in a cluster is to be that of the
    whole cluster.

    Parameters
    ----------
    target, source : array-like of shape (n_rows,)
        The cluster of each target row and of each source row.

    Returns
    -------
    float
        0 if every cluster holds as many rows of either; infinite if one holds target rows alone.

    Notes
    -----
    Erratum: it is no divergence where the two are of unequal size. Of tables with the same shares
    of all clusters it is 0 for as many rows, 0.23 if one has twice as many.

    Examples
    --------
    >>> from tabweave.papers import clustering_divergence
    >>> round(clustering_divergence([0, 0, 1, 1], [0, 0, 0, 1]), 3)
    0.3
    >>> clustering_divergence([0, 0, 1, 1], [0, 0, 1, 1])
    0.0
    """
    parts = [np.asarray(part) for part in (target, source)]
    if not all(len(part) for part in parts):
        raise ValueError("target, source: expected clusters of rows, got none; give one per row")
    names = np.unique(np.concatenate(parts))
    in_target, in_source = (np.searchsorted(names, part) for part in parts)
    of_target, of_source = (
        np.bincount(code, minlength=len(names)) for code in (in_target, in_source)
    )
    met = of_target > 0
    with np.errstate(divide="ignore"):
        logs = np.log(of_target[met] / of_source[met])
    within = (of_target[met] ** 2 / (of_target + of_source)[met]) @ logs
    sizes = [len(part) for part in parts]
    return float(2 / sizes[0] * within + np.log(sizes[1] / sizes[0]))
