"""GBC: gradient boosting consensus over many sources [Shi 2013, chapter 3].

One LightGBM model for each source; rows may be missing from any of them. What several sources say
is fused by weights from held-out rows, and may lean on graphs between the rows. Terms that make
sources agree on unlabeled rows are turned on where validation gains by them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from weft.sources._gbc_base import GBC
from weft.sources._gbc_input import labels_by_id
from weft.sources._gbc_objective import Logistic, Squared
from weft.sources._gbc_smoothing import ClassSmoother, NumberSmoother
from weft.sources.container import Sources


class GBCClassifier(ClassifierMixin, GBC):
    """Classify what several tables and graphs know about, each of them in part.

    Parameters
    ----------
    n_rounds : int, default=100
        Rounds at most; validation stops earlier when the loss of held-out rows no longer falls.
        Boosters that are taught (see ``taught_``) take twice as many.
    consensus, connectivity : float or "auto", default="auto"
        λ0 and λ1 of Eq. (3.4): how much the sources should agree with each other, and with
        themselves along edges, on unlabeled rows; 1 weighs as much as all labels together.
        "auto" turns them on where held-out rows gain by more than two standard errors. A number
        for ``connectivity`` also means that nothing is taught.
    graph_smoothing : float or "auto", default="auto"
        How much predictions lean on those of their neighbours (ours); 0 not at all. "auto" chooses
        for each graph by held-out rows; a number is shared out by the graph weights.
    weights : {"learned", "equal"}, default="learned"
        Source weights by Eq. (3.10) from held-out rows, or the same for all.
    form : {"scaled", "printed"}, default="scaled"
        "printed" trains as the thesis has it: weights from the training loss, sums over unlabeled
        rows, their expected score itself as the target, both terms from the first round on;
        "auto" then means 1, or no smoothing.
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
    taught_ : bool
        Whether the boosters were trained again, on the labels and on the smoothed predictions of
        unlabeled rows (ours). Tried where predictions lean on a graph; kept if held-out rows gain
        by more than a standard error. λ0 and λ1 are then 0.
    lambdas_ : tuple of two floats
        λ0 and λ1 in use.
    n_rounds_ : int
        Rounds in use.
    history_ : list of dict
        After each round: training and held-out losses of the sources, the weights of sources and
        graphs that follow from them, and (every fifth round) the held-out loss of the fused
        prediction.
    search_ : dict of str to list of dict
        What was tried for λ0 and λ1, for smoothing, and for smoothing of what taught boosters say,
        and the held-out loss.
    boosters_ : dict of str to lightgbm.Booster or None
        The model of each source; None if it has fewer than two labeled rows.
    classes_ : ndarray
        The classes, sorted.

    Notes
    -----
    Needs LightGBM: ``pip install 'weft[boost]'``. Two classes make one logistic score, more of
    them one against the others each. A source no better than a constant on held-out rows has
    weight 0. See the page on GBC for the formulas and for what was measured.

    Examples
    --------
    >>> import numpy as np
    >>> from weft import GBCClassifier, Sources
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

    _loss = Logistic()
    _smoother = ClassSmoother()

    def _encode(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"y has one class only, {only!r}; a classifier needs two or more")
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
        places, labels = labels_by_id(X, y)
        return float((self.predict(X)[places] == labels).mean())


class GBCRegressor(RegressorMixin, GBC):
    """Predict a number from several tables and graphs, each of them incomplete.

    Parameters
    ----------
    n_rounds : int, default=100
        Rounds at most; validation stops earlier when the loss of held-out rows no longer falls.
        Boosters that are taught (see ``taught_``) take twice as many.
    consensus, connectivity : float or "auto", default="auto"
        λ0 and λ1 of Eq. (3.4): how much the sources should agree with each other, and with
        themselves along edges, on unlabeled rows; 1 weighs as much as all labels together.
        "auto" turns them on where held-out rows gain by more than two standard errors. A number
        for ``connectivity`` also means that nothing is taught.
    graph_smoothing : float or "auto", default="auto"
        How much predictions lean on those of their neighbours (ours); 0 not at all. "auto" chooses
        for each graph by held-out rows; a number is shared out by the graph weights.
    weights : {"learned", "equal"}, default="learned"
        Source weights by Eq. (3.10) from held-out rows, or the same for all.
    form : {"scaled", "printed"}, default="scaled"
        "printed" trains as the thesis has it: weights from the training loss, sums over unlabeled
        rows, their expected score itself as the target, both terms from the first round on;
        "auto" then means 1, or no smoothing.
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
    taught_ : bool
        Whether the boosters were trained again, on the labels and on the smoothed predictions of
        unlabeled rows (ours). Tried where predictions lean on a graph; kept if held-out rows gain
        by more than a standard error. λ0 and λ1 are then 0.
    lambdas_ : tuple of two floats
        λ0 and λ1 in use.
    n_rounds_ : int
        Rounds in use.
    history_ : list of dict
        After each round: training and held-out losses of the sources, the weights of sources and
        graphs that follow from them, and (every fifth round) the held-out loss of the fused
        prediction.
    search_ : dict of str to list of dict
        What was tried for λ0 and λ1, for smoothing, and for smoothing of what taught boosters say,
        and the held-out loss.
    boosters_ : dict of str to lightgbm.Booster or None
        The model of each source; None if it has fewer than two labeled rows.

    Notes
    -----
    Needs LightGBM: ``pip install 'weft[boost]'``. Numbers are learned at mean 0 and standard
    deviation 1, so that losses and weights do not depend on their unit.

    Examples
    --------
    >>> import numpy as np
    >>> from weft import GBCRegressor, Sources
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

    _loss = Squared()
    _smoother = NumberSmoother()

    def _encode(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        try:
            numbers = labels.astype(float)
        except (TypeError, ValueError):
            raise ValueError(
                f"y has {labels.tolist()[0]!r}, which is no number; use GBCClassifier"
            ) from None
        self._center, self._unit = float(numbers.mean()), float(numbers.std()) or 1.0
        return (numbers[:, None] - self._center) / self._unit, None

    def predict(self, X: Any, ids: Any = None) -> np.ndarray:
        """Return numbers.

        Parameters
        ----------
        X : Sources, or a frame or array of rows
            Some of the tables and graphs of training, about any ids. Numbers of training are used
            where their ids are among the neighbours.
        ids : sequence, optional
            The ids to predict, in this order; by default all of ``X.ids``.
        """
        scaled = self._predictions(X, ids)[:, 0]
        return self._center + self._unit * scaled

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² over the ids (or rows) that ``y`` has numbers of."""
        if not isinstance(X, Sources):
            return super().score(X, y, sample_weight)
        places, labels = labels_by_id(X, y)
        numbers = labels.astype(float)
        rest = ((self.predict(X)[places] - numbers) ** 2).sum()
        return float(1 - rest / ((numbers - numbers.mean()) ** 2).sum())
