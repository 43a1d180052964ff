"""What GBCClassifier and GBCRegressor share: parameters, fit, and fused scores of new rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state

from weft._input import TabularInput
from weft._store import Storable
from weft.sources import _gbc_input as reading
from weft.sources._gbc_fusion import bare
from weft.sources._gbc_objective import Loss
from weft.sources._gbc_search import Problem, folds_of
from weft.sources._gbc_smoothing import Fused, Lean, Smoother, smooth
from weft.sources._gbc_team import Binned, all_scores
from weft.sources._gbc_training import Settings, Training
from weft.sources.container import Sources

PARAMS = {
    "learning_rate": 0.1,
    "num_leaves": 8,
    "min_data_in_leaf": 2,
    "min_sum_hessian_in_leaf": 0.01,
    "feature_fraction": 0.3,
    "max_bin": 63,
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


class GBC(Storable, TabularInput, BaseEstimator):
    """Base of the classifier and the regressor, which say how labels become targets."""

    _loss: Loss
    _smoother: Smoother

    def __init__(
        self,
        n_rounds: int = 100,
        *,
        consensus: float | str = "auto",
        connectivity: float | str = "auto",
        graph_smoothing: float | str = "auto",
        weights: str = "learned",
        form: str = "scaled",
        cv: int = 3,
        params: dict[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.consensus = consensus
        self.connectivity = connectivity
        self.graph_smoothing = graph_smoothing
        self.weights = weights
        self.form = form
        self.cv = cv
        self.params = params
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _encode(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return targets (rows, outputs), and classes that folds should share out evenly."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from sources and the labels of some of their ids.

        Parameters
        ----------
        X : Sources, or a frame or array of rows
            The sources, best with the unlabeled ids that are to be predicted; or plain rows,
            which make one source.
        y : mapping or series of id to label, or array-like
            An id without an entry is unlabeled. An array has one label for each of
            ``sources.ids``, None where there is none; for plain rows one for each row.
        """
        self._check_parameters()
        sources, places, labels = reading.read_training(self, X, y)
        targets, classes = self._encode(labels)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        params = {**PARAMS, **(self.params or {}), **FIXED, "seed": int(rng.integers(2**31))}
        n_folds = min(self.cv, len(places) // 2)
        folds = folds_of(classes, len(places), max(n_folds, 1), rng)
        binned = Binned(sources, params, targets.shape[1])
        problem = Problem(binned, self._loss, self._smoother, places, targets, folds, self.weights)
        training = Training(problem, self._settings(n_folds), rng).run()
        self._keep(training)
        return self

    def _check_parameters(self) -> None:
        for name in ("consensus", "connectivity", "graph_smoothing"):
            value = getattr(self, name)
            if value != "auto" and not (isinstance(value, int | float) and value >= 0):
                raise ValueError(f"{name}={value!r}: use 'auto' or a number of at least 0")
        for name, known in (("weights", ("learned", "equal")), ("form", ("scaled", "printed"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r}: use one of {known}")
        if self.n_rounds < 1 or self.cv < 2:
            raise ValueError(
                f"n_rounds={self.n_rounds}, cv={self.cv}: at least 1 round and 2 folds"
            )

    def _settings(self, n_folds: int) -> Settings:
        asked = (self.consensus, self.connectivity, self.graph_smoothing)
        printed = self.form == "printed"
        # Validation costs as much as its folds: it runs if there is something to choose.
        choose = not printed and (self.weights == "learned" or "auto" in asked)
        return Settings(self.n_rounds, *asked, printed, choose and n_folds >= 2)

    def _keep(self, training: Training) -> None:
        problem = training.problem
        sources = problem.binned.sources
        for booster in filter(None, training.boosters):
            booster.free_dataset()
        self.reference_ = sources.select(sources.ids[:0])
        self.boosters_ = dict(zip(sources.names, training.boosters, strict=True))
        self.n_rounds_, self.lambdas_ = training.n_rounds, training.lambdas
        self.history_, self.search_ = training.history, training.log
        self._start, self._fusion = problem.start, training.fusion
        self._labeled_ids = sources.ids[problem.labeled]
        self._known = problem.known
        weights, graphs = training.fusion.weights.tolist(), sources.graph_names
        self.source_weights_ = dict(zip(sources.names, weights, strict=True))
        self.source_importances_ = dict(
            zip(sources.names, training.source_importances.tolist(), strict=True)
        )
        self.graph_weights_ = dict(zip(graphs, training.graph_weights.tolist(), strict=True))
        self.graph_smoothing_ = dict(zip(graphs, training.lean.strengths, strict=True))
        self.trust_, self.taught_ = training.lean.trust, training.taught

    @property
    def feature_importances_(self) -> Any:
        """Gain of every column times the weight of its source, to sum 1.

        An array for plain rows, else a dict of source to dict of column to importance.
        """
        check_is_fitted(self, "boosters_")
        gains = {}
        for name, booster in self.boosters_.items():
            width = len(self.reference_.columns(name))
            gain = np.zeros(width) if booster is None else booster.feature_importance("gain")
            gains[name] = self.source_weights_[name] * gain / (gain.sum() or 1.0)
        total = sum(gain.sum() for gain in gains.values()) or 1.0
        if hasattr(self, "schema_"):
            return gains[reading.ONLY] / total
        return {
            name: dict(zip(self.reference_.columns(name), (gain / total).tolist(), strict=True))
            for name, gain in gains.items()
        }

    def source_scores(self, X: Any) -> dict[str, np.ndarray]:
        """Return what each source says of every id: its scores, NaN where it has no row."""
        sources = self._read(X)
        return dict(zip(self.boosters_, self._start + self._scores(sources), strict=True))

    def _read(self, X: Any) -> Sources:
        check_is_fitted(self, "boosters_")
        return reading.read_rows(self, X)

    def _scores(self, sources: Sources) -> np.ndarray:
        shape = (len(self.boosters_), len(sources), len(self._start))
        out = np.full(shape, np.nan)
        place = {name: i for i, name in enumerate(self.boosters_)}
        here = [place[name] for name in sources.names]
        boosters = [self.boosters_[name] for name in sources.names]
        if here:
            out[here] = all_scores(boosters, sources, len(self._start), self.n_rounds_)
        return out

    def _predictions(self, X: Any, ids: Any = None) -> np.ndarray:
        """Return fused and smoothed predictions of every id, or of those asked for."""
        sources = self._read(X)
        scores = self._scores(sources)
        places = sources.places(self._labeled_ids)
        here = places >= 0
        fused = Fused(self._fusion(self._start, scores), bare(scores), places[here])
        graphs = [sources.graph(name) for name in sources.graph_names]
        strengths = tuple(self.graph_smoothing_[name] for name in sources.graph_names)
        out = smooth(self._smoother, fused, graphs, Lean(strengths, self.trust_), self._known[here])
        return out if ids is None else out[reading.asked_places(sources, ids)]
