"""GBC as published: gradient boosting consensus [Shi 2013, ch. 3].

The weights come from the training loss, both terms are sums over unlabeled rows that start in the
first round, and an expected score is a target as if it were a label of -1 or 1. For comparison:
:class:`tabweave.GBCClassifier` is the one to use, and the page on GBC says why.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from tabweave._compat import Interval
from tabweave.io.register import storable
from tabweave.sources.gbc import gbc
from tabweave.sources.gbc.prediction import Fusion, Smoothing
from tabweave.sources.gbc.team import Logistic, Loss, Pair, Team, softplus, source_weights
from tabweave.sources.gbc.training import (
    Problem,
    Trained,
    Watch,
    by_name,
    labeled_fusion,
    sampled_edges,
)
from tabweave.sources.graphs import blend


class _Published(gbc.GBC):
    """What the published classifier and regressor share: parameters, and Algorithm 1."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{n: gbc.GBC._parameter_constraints[n] for n in ("n_rounds", "params", "random_state")},
        "consensus": [Interval(Real, 0, None, closed="left")],
        "connectivity": [Interval(Real, 0, None, closed="left")],
    }

    _former: ClassVar[dict[str, tuple[Any, ...]]] = {
        "form": ("printed",),
        "graph_smoothing": (),
        "weights": (),
        "cv": (),
    }

    def __init__(
        self,
        n_rounds: int = 100,
        *,
        consensus: float = 1.0,
        connectivity: float = 1.0,
        params: dict[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.consensus = consensus
        self.connectivity = connectivity
        self.n_rounds = n_rounds
        self.params = params
        self.random_state = random_state

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> tuple[type, dict[str, Any]]:
        # "auto" meant that both terms are on, as there is no other way in print.
        terms = {n: 1.0 for n in ("consensus", "connectivity") if state.get(n) == "auto"}
        return super()._upgraded(state | terms)

    def _train(self, problem: Problem, rng: np.random.Generator) -> Trained:
        lambdas = float(self.consensus), float(self.connectivity)
        return boost(problem, self.n_rounds, lambdas, rng)


class SignedLogistic(Logistic):
    """The logistic loss, against an expected score as if that were a label of -1 or 1."""

    def agreement(self, scores: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Section 3.4.2: log(1 + exp(-E f)) of each row."""
        return softplus(-expected * scores).sum(axis=-1)

    def agreement_gradient(self, scores: np.ndarray, expected: np.ndarray) -> Pair:
        """Return the derivatives of :meth:`agreement` in the scores."""
        share = expit(-expected * scores)
        return -expected * share, expected**2 * share * (1 - share)


@storable
class GBCClassifier(_Published, gbc.GBCClassifier):
    """Classify by gradient boosting consensus, as published.

    Parameters
    ----------
    n_rounds : int, default=100
        Rounds, all of which are run.
    consensus, connectivity : float, default=1.0
        λ0 and λ1 of Eq. (3.4), of sums over unlabeled rows.
    params : dict, optional
        Parameters of LightGBM.
    random_state : int, RandomState or None
        LightGBM's seed.

    Attributes
    ----------
    source_weights_ : dict of str to float
        Eq. (3.10) with z = 1, from the training loss of the last round.
    history_ : list of dict
        After each round: training losses, source weights (3.10) and graph weights (3.11).
    lambdas_, boosters_, classes_
        As in :class:`tabweave.GBCClassifier`, and so are the others; nothing is validated,
        smoothed or trained twice, so they are empty, 0 or NaN.

    Notes
    -----
    Errata of chapter 3, kept here: weights from the training loss (3.10) reward overfitting, a
    source of noise learned by heart gets the largest one; sums over unlabeled rows in (3.4) drown
    the labels when these are few; in section 3.4.2 the expected score E enters log(1 + exp(-E f))
    as if it were a label, which makes sure predictions surer; the prediction (3.6) never looks at
    neighbours. Trees are LightGBM's, with Newton leaves instead of a line search, and Ẽ of (3.3)
    weighs all graphs alike.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave import Sources
    >>> from tabweave.published import GBCClassifier
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(0, 2, 200)
    >>> tables = {"good": (range(200), kind[:, None] + rng.normal(0, 0.4, (200, 2)))}
    >>> tables["noise"] = (range(200), rng.normal(size=(200, 5)))
    >>> model = GBCClassifier(20, consensus=0.1, random_state=0)
    >>> model = model.fit(Sources(tables), dict(enumerate(kind[:80].tolist())))
    >>> model.source_weights_["noise"] > 0.1
    True
    """

    _loss: ClassVar[Loss] = SignedLogistic()


@storable
class GBCRegressor(_Published, gbc.GBCRegressor):
    """Predict numbers by gradient boosting consensus, as published.

    Parameters, attributes and errata are those of :class:`GBCClassifier`; the loss is squared.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.published import GBCRegressor
    >>> x = np.linspace(0, 1, 60)[:, None]
    >>> model = GBCRegressor(30, random_state=0).fit(x, 3 * x[:, 0])
    >>> bool(model.score(x, 3 * x[:, 0]) > 0.9)
    True
    """


class SummedTeam(Team):
    """Boosters whose terms are sums over unlabeled rows, from the first round on."""

    warm_up: ClassVar[int] = 0

    def _factors(self, labeled: np.ndarray) -> tuple[float, float]:
        return self._lambdas


def boost(
    problem: Problem, n_rounds: int, lambdas: tuple[float, float], rng: np.random.Generator
) -> Trained:
    """Algorithm 1: a tree for each source in turn, then the weights (3.10), round by round."""
    p, sources = problem, problem.binned.sources
    equal = np.full(len(p.graphs), 1 / max(len(p.graphs), 1))
    watch = Watch.of(p, sampled_edges(p.graphs, rng))
    team = SummedTeam(p.binned, p.loss, p.labeled, p.targets, watch.ids)
    graph = blend(p.graphs, equal) if p.graphs else None
    if any(lambdas):
        team.couple(p.unlabeled, lambdas, labeled_fusion(p).weights, graph)
    team.begin()
    history = []
    for t in range(n_rounds):
        team.step()
        scores = team.watched_scores()
        losses = p.losses(scores[:, watch.labeled])
        team.weights = source_weights(losses)
        weights = p.graph_weights(scores, watch.pairs, team.weights)
        history.append(
            {
                "round": t + 1,
                "training_loss": by_name(sources.names, losses),
                "source_weights": by_name(sources.names, team.weights),
                "graph_weights": by_name(sources.graph_names, weights),
            }
        )
    return Trained(
        team.boosters,
        n_rounds,
        Fusion(team.weights),
        lambdas,
        history,
        equal,
        Smoothing((0.0,) * len(p.graphs)),
        np.full(len(sources.names), np.nan),
        {},
    )
