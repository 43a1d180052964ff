"""GBC: gradient boosting consensus over many sources [Shi 2013, ch. 3].

One LightGBM model for each source; rows may be missing from any of them. What several sources say
is fused by weights from held-out rows, and may lean on graphs between the rows. Terms that make
sources agree on unlabeled rows are turned on where validation gains by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, check_is_fitted, column_or_1d

from tabweave._compat import Interval, StrOptions
from tabweave.base import Estimator, TabularInput, remember_names, require_rows, seed_of
from tabweave.io.register import storable
from tabweave.rows.table import Schema, Table
from tabweave.rows.vocabulary import canonical
from tabweave.sources.container import Sources
from tabweave.sources.gbc.prediction import (
    ClassSmoother,
    Fused,
    NumberSmoother,
    Smoother,
    Smoothing,
)
from tabweave.sources.gbc.team import Binned, Logistic, Loss, Squared, all_scores
from tabweave.sources.gbc.training import Problem, Settings, Trained, Training, by_name
from tabweave.sources.tables import SourceTable, as_floats, plain, read_ids

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
ONLY = "X"  # the name of the one table that plain rows make


class GBC(TabularInput, Estimator):
    """Base of the classifier and the regressor, which say how labels become targets."""

    _loss: ClassVar[Loss]
    _smoother: ClassVar[Smoother]
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
    _renamed: ClassVar[dict[str, str]] = {"taught_": "self_trained_", "_known": "_labels"}
    _former: ClassVar[dict[str, tuple[Any, ...]]] = {"form": ("scaled",)}

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
        """Return targets (rows, outputs), and classes that folds should share out evenly."""
        raise NotImplementedError

    # -- learning --------------------------------------------------------------------------

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
        self._validate_params()
        sources, labeled, labels = read_training(self, X, y)
        targets, strata = self._encode(labels)
        rng = np.random.default_rng(seed_of(self.random_state))
        params = {**PARAMS, **(self.params or {}), **FIXED, "seed": int(rng.integers(2**31))}
        binned = Binned(sources, params, targets.shape[1])
        problem = Problem(binned, self._loss, self._smoother, labeled, targets, strata)
        self._keep(problem, self._train(problem, rng))
        return self

    def _train(self, problem: Problem, rng: np.random.Generator) -> Trained:
        terms = self.consensus, self.connectivity, self.graph_smoothing
        settings = Settings(self.n_rounds, *terms, self.weights, self.cv)
        return Training(problem, settings, rng).run()

    def _keep(self, problem: Problem, trained: Trained) -> None:
        sources = problem.binned.sources
        for booster in filter(None, trained.boosters):
            booster.free_dataset()
        self.reference_ = sources.select(sources.ids[:0])
        self.boosters_ = dict(zip(sources.names, trained.boosters, strict=True))
        self.n_rounds_, self.lambdas_ = trained.n_rounds, trained.lambdas
        self.history_, self.search_ = trained.history, trained.search
        self.source_weights_ = by_name(sources.names, trained.fusion.weights)
        self.source_importances_ = by_name(sources.names, trained.source_importances)
        self.graph_weights_ = by_name(sources.graph_names, trained.graph_weights)
        strengths = trained.smoothing.strengths
        self.graph_smoothing_ = dict(zip(sources.graph_names, strengths, strict=True))
        self.trust_, self.self_trained_ = trained.smoothing.trust, trained.self_trained
        self._start, self._fusion = problem.start, trained.fusion
        self._labeled_ids, self._labels = sources.ids[problem.labeled], problem.labels

    # -- using -----------------------------------------------------------------------------

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
            return gains[ONLY] / total
        return {n: by_name(self.reference_.columns(n), g / total) for n, g in gains.items()}

    def source_scores(self, X: Any) -> dict[str, np.ndarray]:
        """Return what each source says of every id: its scores, NaN where it has no row."""
        sources = self._read(X)
        return dict(zip(self.boosters_, self._start + self._scores(sources), strict=True))

    def _read(self, X: Any) -> Sources:
        check_is_fitted(self, "boosters_")
        return read_rows(self, X)

    def _scores(self, sources: Sources) -> np.ndarray:
        shape = (len(self.boosters_), len(sources), len(self._start))
        out = np.full(shape, np.nan)
        order = list(self.boosters_)
        here = [order.index(name) for name in sources.names]
        boosters = [self.boosters_[name] for name in sources.names]
        if here:
            out[here] = all_scores(boosters, sources, len(self._start), self.n_rounds_)
        return out

    def _predictions(self, X: Any, ids: Any = None) -> np.ndarray:
        """Return fused and smoothed predictions of every id, or of those asked for."""
        sources = self._read(X)
        labeled = sources.index(self._labeled_ids)
        here = labeled >= 0
        fused = Fused.of(self._fusion, self._start, self._scores(sources), labeled[here])
        graphs = [sources.graph(name) for name in sources.graph_names]
        strengths = tuple(self.graph_smoothing_[name] for name in sources.graph_names)
        smoothing = Smoothing(strengths, self.trust_)
        out = self._smoother(fused, graphs, smoothing, self._labels[here])
        return out if ids is None else out[sources._index_of_all(ids)]


@storable
class GBCClassifier(ClassifierMixin, GBC):
    """Classify what several tables and graphs describe, each of them in part.

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
        for each graph by held-out rows; a number is shared out by the graph weights.
    weights : {"learned", "equal"}, default="learned"
        Source weights by Eq. (3.10) from held-out rows, or the same for all.
    cv : int, default=3
        Folds of the validation. It runs unless nothing is left to choose.
    params : dict, optional
        Parameters of LightGBM, such as ``learning_rate``, ``num_leaves``, ``num_threads``; small
        tables have one thread by default. No number of threads changes the result.
    random_state : int, RandomState or None
        Folds, samples of unlabeled rows, and LightGBM's seed.

    Attributes
    ----------
    source_weights_, source_importances_ : dict of str to float
        Weight of each source, and by how much the loss of held-out rows grows without it.
    feature_importances_ : dict of str to dict, or ndarray
        Gain of each column times the weight of its source.
    graph_weights_, graph_smoothing_ : dict of str to float
        Weight of each graph by Eq. (3.11), and how much predictions lean on it.
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
        After each round: training and held-out losses of the sources, the weights of sources and
        graphs that follow from them, and (every fifth round) the held-out loss of the fused
        prediction.
    search_ : dict of str to list of dict
        What was tried for λ0 and λ1 ("lambdas"), for smoothing, and for smoothing after
        "self_training", and the held-out loss.
    boosters_ : dict of str to lightgbm.Booster or None
        The model of each source; None if it has fewer than two labeled rows.
    classes_ : ndarray
        The classes, sorted.

    Notes
    -----
    Needs LightGBM: ``pip install 'tabweave[boost]'``. Two classes make one logistic score, more of
    them one against the others each. A source no better than a constant on held-out rows has
    weight 0. See the page on GBC for the formulas and for what was measured, and
    :class:`tabweave.published.GBCClassifier` for the algorithm as published.

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
    """

    _loss: ClassVar[Loss] = Logistic()
    _smoother: ClassVar[Smoother] = ClassSmoother()

    def _encode(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"y: expected two classes or more, got one class only, {only!r}")
        if len(self.classes_) == 2:
            return codes[:, None].astype(float), codes
        return np.eye(len(self.classes_))[codes], codes

    def predict_proba(self, X: Any, ids: Any = None) -> np.ndarray:
        """Return the probability of each class.

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
        """Return the most probable class; see :meth:`predict_proba`."""
        likely = self.predict_proba(X, ids).argmax(axis=1)
        return self.classes_[likely]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right classes among the ids (or rows) that ``y`` has labels of."""
        if not isinstance(X, Sources):
            return super().score(X, y, sample_weight)
        labeled, labels = labels_by_id(X, y)
        return float((self.predict(X)[labeled] == labels).mean())


@storable
class GBCRegressor(RegressorMixin, GBC):
    """Predict a number from several tables and graphs, each of them incomplete.

    Parameters, attributes and what ``fit`` takes are those of :class:`GBCClassifier`; there are
    numbers in place of classes.

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
        try:
            numbers = labels.astype(float)
        except (TypeError, ValueError):
            raise ValueError(
                f"y: expected numbers, got {labels.tolist()[0]!r}; use GBCClassifier"
            ) from None
        self._center, self._unit = float(numbers.mean()), float(numbers.std()) or 1.0
        return (numbers[:, None] - self._center) / self._unit, None

    def predict(self, X: Any, ids: Any = None) -> np.ndarray:
        """Return the number of every id, or of those asked for; see `GBCClassifier`."""
        scaled = self._predictions(X, ids)[:, 0]
        return self._center + self._unit * scaled

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² over the ids (or rows) that ``y`` has numbers of."""
        if not isinstance(X, Sources):
            return super().score(X, y, sample_weight)
        labeled, labels = labels_by_id(X, y)
        numbers = labels.astype(float)
        rest = ((self.predict(X)[labeled] - numbers) ** 2).sum()
        return float(1 - rest / ((numbers - numbers.mean()) ** 2).sum())


# -- what GBC takes: sources with labels by id, or plain rows with a label each -----------------


def read_training(model: Any, X: Any, y: Any) -> tuple[Sources, np.ndarray, np.ndarray]:
    """Return the sources, the index of the labeled ids and their labels."""
    if y is None:
        raise ValueError(
            f"{type(model).__name__} requires y to be passed, but the target y is None"
        )
    if isinstance(X, Sources):
        if not X.names:
            raise ValueError(
                "expected at least one table, got graphs only; make a table of one by "
                "sources.with_features_of(graph)"
            )
        vars(model).pop("feature_names_in_", None)
        vars(model).pop("schema_", None)
        model.n_features_in_ = sum(len(X.columns(name)) for name in X.names)
        labeled, labels = labels_by_id(X, y)
        if not len(labeled):
            raise ValueError("y: expected a label for some of the ids, got none")
        return X, labeled, labels
    sources = _read_rows(model, X, reset=True)
    labels = column_or_1d(y, warn=True)
    if len(labels) != len(sources):
        raise ValueError(f"y: expected {len(sources)} labels, one a row, got {len(labels)}")
    _check_no_missing(labels)
    return sources, np.arange(len(sources)), labels


def read_rows(model: Any, X: Any) -> Sources:
    """Return what to predict, as the model was trained to read it."""
    if isinstance(X, Sources):
        if hasattr(model, "schema_"):
            raise TypeError("expected plain rows as in fit, got Sources")
        return X.like(model.reference_)
    if not hasattr(model, "schema_"):
        raise TypeError(
            f"expected Sources with some of the tables and graphs of fit, got {type(X).__name__}"
        )
    return _read_rows(model, X, reset=False).like(model.reference_)


def labels_by_id(sources: Sources, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return index and label of the ids that have one; a label of an unknown id is an error."""
    if hasattr(y, "iloc") and getattr(y, "ndim", 1) == 1:  # a pandas series: its index has the ids
        ids, values = read_ids(y.index.to_numpy(), "y"), y.to_numpy()
    elif isinstance(y, Mapping):
        ids, values = read_ids(list(y), "y") if y else np.zeros(0, np.int64), list(y.values())
    else:
        values = column_or_1d(y)
        if len(values) != len(sources):
            raise ValueError(
                f"y: expected {len(sources)} labels, one for each of sources.ids (or None), got "
                f"{len(values)}; or pass a mapping or a series from id to label"
            )
        ids = sources.ids
    labels = np.empty(len(values), dtype=object)
    labels[:] = [canonical(value) for value in values]
    given = np.array([label is not None for label in labels], dtype=bool)
    index = sources.index(ids[given]) if given.any() else np.zeros(0, np.intp)
    if (index < 0).any():
        unknown = ids[given][index < 0]
        raise ValueError(
            f"y: expected labels of ids of the sources, got {len(unknown)} of other ids, "
            f"{plain(unknown, 0)!r} the first; drop them, or check that both spell ids alike"
        )
    if len(np.unique(index)) < len(index):
        found, counts = np.unique(index, return_counts=True)
        twice = plain(sources.ids, int(found[counts > 1][0]))
        raise ValueError(f"y: expected one label for each id, got two for {twice!r}")
    return index, np.array(labels[given].tolist())


def _read_rows(model: Any, X: Any, *, reset: bool) -> Sources:
    if sp.issparse(X):
        return _read_sparse(model, X, reset=reset)
    if not reset and hasattr(X, "columns"):
        _check_feature_names(model, X, reset=False)
    table = Table.of(X, None if reset else model.schema_)
    if not reset and isinstance(X, np.ndarray):
        _check_feature_names(model, X, reset=False)
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
        vars(model).pop("feature_names_in_", None)
        model.n_features_in_ = matrix.shape[1]
    elif matrix.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {matrix.shape[1]} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input"
        )
    return Sources({ONLY: (np.arange(matrix.shape[0]), matrix)})


def _check_no_missing(labels: np.ndarray) -> None:
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels)))
        raise ValueError(f"Input y contains NaN or infinity: row {row} is {labels[row]}")
    if labels.dtype.kind == "O":
        for row, label in enumerate(labels):
            if canonical(label) is None:
                raise ValueError(f"Input y contains NaN: y of row {row} is missing")
