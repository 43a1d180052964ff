"""Validation: rounds, source weights, λ0, λ1 and the strength of smoothing, from held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tabweave.io.register import storable
from tabweave.sources.gbc.objective import Loss, source_weights
from tabweave.sources.gbc.smoothing import Lean, Smoother
from tabweave.sources.gbc.team import WARM_UP, Binned, Team

EVERY = 5  # rounds between two looks at the fused loss
PATIENCE = 3  # looks without a better one
STEP = 1.0  # λ that is tried
CAUTION = 2.0  # standard errors that λ must gain on the one fold it is tried on
STRENGTHS = (0.5, 1.0, 2.0, 3.0, 4.5)  # of smoothing
UNLABELED = 2  # unlabeled rows used in the search, per labeled row


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be learned: tables, labeled places, their targets, and the folds of these."""

    binned: Binned
    loss: Loss
    smoother: Smoother
    labeled: np.ndarray
    targets: np.ndarray
    folds: np.ndarray  # number of the fold of each labeled place
    weights: str  # "learned" or "equal"

    def fuse(self, scores: np.ndarray) -> Fusion:
        """Return the fusion that ``weights`` asks for."""
        if self.weights == "equal":
            return equal(scores)
        return choose(self.loss, self.judge, self.start, scores, self.targets)

    def judge(self, scores: np.ndarray) -> np.ndarray:
        """Return the loss of the prediction that fused scores of the labeled rows make."""
        return self.smoother.losses(self.smoother.plain(scores), self.known)

    @cached_property
    def known(self) -> np.ndarray:
        """The labels as predictions."""
        return self.smoother.known(self.targets)

    @cached_property
    def start(self) -> np.ndarray:
        """The constant prediction."""
        return self.loss.start(self.targets)


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
    """What teams are coupled by: unlabeled places, and the graph of Ẽ."""

    unlabeled: np.ndarray
    graph: sp.csr_array | None


def folds_of(keys: np.ndarray | None, n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Deal rows out to k folds, the classes (if any) evenly."""
    order = rng.permutation(n)
    if keys is not None:
        order = order[np.argsort(keys[order], kind="stable")]
    folds = np.empty(n, dtype=np.intp)
    folds[order] = np.arange(n) % k
    return folds


def validate(problem: Problem, n_rounds: int) -> Validation:
    """Train on all folds but one, for each; stop when the loss of held-out rows rises."""
    p = problem
    teams = [_team(p, k).begin() for k in range(int(p.folds.max()) + 1)]
    history: list[dict[str, Any]] = []
    looks: list[Validation] = []
    best = 0
    for t in range(1, n_rounds + 1):
        for team in teams:
            team.step()
        scores = np.empty((len(p.binned.places), *p.targets.shape))
        for k, team in enumerate(teams):
            scores[:, p.folds == k] = team.watched_scores()
        losses = mean_losses(row_losses(p.loss, p.start, scores, p.targets))
        history.append({"losses": losses, "weights": source_weights(losses)})
        if t % EVERY and t < n_rounds:
            continue
        fusion = p.fuse(scores)
        fused = p.judge(fusion(p.start, scores))
        history[-1]["loss"] = float(fused.mean())
        looks.append(Validation(scores.astype(np.float32), t, fusion, fused, history, teams))
        if fused.mean() < looks[best].losses.mean() - 1e-4:
            best = len(looks) - 1
        elif len(looks) - 1 >= best + PATIENCE:
            break
    # Errors go on falling when probabilities are overdone already: the last look that is no
    # worse than the best one, as far as these rows can tell.
    return [look for look in looks if not better(looks[best].losses, look.losses)][-1]


def _team(problem: Problem, fold: int) -> Team:
    out, rest = problem.folds == fold, problem.folds != fold
    labeled, targets = problem.labeled, problem.targets
    return Team(problem.binned, problem.loss, labeled[rest], targets[rest], labeled[out])


def search_lambdas(
    problem: Problem,
    found: Validation,
    given: tuple[Any, Any],
    coupling: Coupling,
    judge: Callable[[Team], np.ndarray],
    before: np.ndarray,
) -> tuple[tuple[float, float], list[dict[str, Any]]]:
    """Turn λ0 and λ1 on where held-out rows gain by it; one that is given stays.

    One fold and some of the unlabeled rows must do: this is the costly part of the validation.
    ``judge`` gives the losses of the fold's rows, ``before`` are those without the terms.
    """
    kept = [0.0 if value == "auto" else float(value) for value in given]
    log: list[dict[str, Any]] = []
    useful = found.fusion.weights > 0
    # Before the terms start there is nothing to see, and one source agrees with itself.
    hopeless = (useful.sum() < 2, coupling.graph is None)
    if not len(coupling.unlabeled) or found.n_rounds <= WARM_UP:
        return (kept[0], kept[1]), log
    free = np.union1d(coupling.unlabeled, problem.labeled[problem.folds == 0])
    for i, value in enumerate(given):
        if value != "auto" or hopeless[i]:
            continue
        trial = kept.copy()
        trial[i] = STEP
        team = _team(problem, 0)
        team.couple(free, (trial[0], trial[1]), found.fusion.weights, coupling.graph)
        team.begin(useful)
        for _ in range(found.n_rounds):
            team.step()
        losses = judge(team)
        log.append({"lambdas": tuple(trial), "loss": float(losses.mean())})
        log[-1]["loss_before"] = float(before.mean())
        if better(losses, before, CAUTION):
            kept, before = trial, losses
    return (kept[0], kept[1]), log


def search_lean(
    losses_of: Callable[[Lean], np.ndarray], n_graphs: int, trusts: tuple[float, ...]
) -> tuple[Lean, list[dict[str, Any]]]:
    """Choose the strength of each graph, and the trust, by the losses of held-out rows.

    A graph is used if they fall by more than a standard error.
    """
    known: dict[Lean, np.ndarray] = {}

    def losses(lean: Lean) -> np.ndarray:
        if lean not in known:
            known[lean] = losses_of(lean)
        return known[lean]

    best = Lean((0.0,) * n_graphs)
    for trust in trusts:
        if trust != trusts[0] and not best.any:
            break  # a graph of no use at full trust
        lean = Lean((0.0,) * n_graphs, trust)
        # The graph that helps most alone comes first; the others must add to it.
        alone = [
            min(losses(lean_to(lean, g, s)).mean() for s in STRENGTHS) for g in range(n_graphs)
        ]
        for g in np.argsort(alone).tolist():
            trial = min(
                (lean_to(lean, g, s) for s in STRENGTHS), key=lambda one: losses(one).mean()
            )
            reference = lean if lean.any else Lean(lean.strengths)
            if better(losses(trial), losses(reference)):
                lean = trial
        if better(losses(lean), losses(best)):
            best = lean
    log = [{**lean._asdict(), "loss": float(v.mean())} for lean, v in known.items()]
    return best, log


def lean_to(lean: Lean, graph: int, strength: float) -> Lean:
    """Return the same but for the strength of one graph."""
    values = list(lean.strengths)
    values[graph] = strength
    return lean._replace(strengths=tuple(values))


def pairs_of(graphs: Sequence[sp.csr_array]) -> list[np.ndarray]:
    """Return the ends of the edges of each graph, every edge once."""
    out = []
    for graph in graphs:
        upper = sp.triu(graph, format="coo")
        out.append(np.array(upper.coords))
    return out


# -- Fusion: how much each source counts, from scores of rows that its boosters did not see

SHARPNESS = (1.0, 0.3, 0.1)  # z
SCALES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
Judge = Callable[[np.ndarray], np.ndarray]
SHRUNK = (1.0, 0.5, 0.25)
EVIDENCE = 2.0  # standard errors by which a source must beat the constant


@storable
@dataclass(frozen=True, eq=False)
class Fusion:
    """Weights of the sources (sum 1) and the scale of their weighted mean."""

    weights: np.ndarray
    scale: float = 1.0

    def __call__(self, start: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Eq. (3.6): fuse scores (sources, rows, outputs), NaN where a source has no row.

        The mean runs over the sources that know a row. The scale counts in so far as they carry
        the weight: one source alone is believed as it is. Without any, the constant remains.
        """
        known = ~np.isnan(scores[:, :, 0])
        shares = self.weights[:, None] * known
        total = shares.sum(axis=0)
        factor = np.where(total > 0, 1 + (self.scale - 1) * total, 0) / np.maximum(total, 1e-12)
        mean = np.einsum("sr,sro->ro", shares * factor, np.nan_to_num(scores))
        return start + mean


def bare(scores: np.ndarray) -> np.ndarray:
    """Say which rows no source has a score of."""
    return np.isnan(scores[:, :, 0]).all(axis=0)


def row_losses(
    loss: Loss, start: np.ndarray, scores: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Return the loss of each source on each row, NaN where it has none."""
    return np.array([loss.rows(start + own, targets) for own in scores])


def mean_losses(losses: np.ndarray) -> np.ndarray:
    """Return the mean loss of each source over its rows, NaN for a source without rows."""
    known = ~np.isnan(losses)
    count = known.sum(axis=1)
    total = np.where(known, losses, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def informative(
    loss: Loss, start: np.ndarray, scores: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Say which sources beat the constant on held-out rows by more than two standard errors.

    Scores may be shrunk for that: a source that is right but too sure of itself is informative.
    """
    constant = loss.rows(np.broadcast_to(start, targets.shape), targets)
    out = np.zeros(len(scores), dtype=bool)
    for shrink in SHRUNK:
        gain = constant - row_losses(loss, start, shrink * scores, targets)
        count = np.maximum((~np.isnan(gain)).sum(axis=1), 1)
        mean = np.nan_to_num(gain).sum(axis=1) / count
        spread = np.sqrt(np.nan_to_num((gain - mean[:, None]) ** 2).sum(axis=1)) / count
        out |= (mean > EVIDENCE * spread) & (count > 2)
    return out


def choose(
    loss: Loss, judge: Judge, start: np.ndarray, scores: np.ndarray, targets: np.ndarray
) -> Fusion:
    """Choose the scale and z; ``judge`` gives the loss of each row's fused scores."""
    losses = mean_losses(row_losses(loss, start, scores, targets))
    useful = informative(loss, start, scores, targets)
    if not useful.any():
        return equal(scores)
    losses = np.where(useful, losses, np.nan)
    best, least = _scaled(judge, start, scores, _equal(useful))
    for z in SHARPNESS:
        candidate, found = _scaled(judge, start, scores, source_weights(losses, z))
        if better(found, least):
            best, least = candidate, found
    return best


def _scaled(
    judge: Judge, start: np.ndarray, scores: np.ndarray, weights: np.ndarray
) -> tuple[Fusion, np.ndarray]:
    """Return the best scale for some weights, and the losses under it."""
    useful = int((weights > 0).sum())
    trials = [Fusion(weights, scale) for scale in SCALES if scale <= useful]
    losses = [judge(trial(start, scores)) for trial in trials]
    at = int(np.argmin([values.mean() for values in losses]))
    return trials[at], losses[at]


def better(new: np.ndarray, old: np.ndarray, errors: float = 1.0) -> bool:
    """Say whether losses of the same rows are lower by more than some standard errors."""
    gain = old - new
    return bool(gain.mean() > errors * gain.std() / np.sqrt(len(gain)))


def _equal(which: np.ndarray) -> np.ndarray:
    return which / max(which.sum(), 1)


def equal(scores: np.ndarray) -> Fusion:
    """Return the plain mean of all sources that have any row."""
    return Fusion(_equal(~np.isnan(scores[:, :, 0]).all(axis=1)))


def left_out(judge: Judge, fusion: Fusion, start: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return by how much the loss of the fused prediction grows when a source is left out."""
    full = judge(fusion(start, scores)).mean()
    out = np.zeros(len(scores))
    for i in np.flatnonzero(fusion.weights):
        rest = scores.copy()
        rest[i] = np.nan
        out[i] = judge(fusion(start, rest)).mean() - full
    return out
