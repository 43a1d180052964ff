"""HeMap: labels from a table with other columns, if they honestly help [Shi 2013, ch. 5].

Target and source are projected into one space that keeps the structure of both; source rows that
lie among target rows become training rows. Everything rests on which source row is aligned with
which target row, so that is the first choice here; and a guard refuses sources that do not help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr, stdtrit
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import assert_all_finite, check_array, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from tabweave._compat import HasMethods, Interval, StrOptions, one_thread, seed_of
from tabweave.base import Estimator
from tabweave.columns.inputs import numbers_only
from tabweave.columns.targets import check_class_labels, target_array, target_numbers
from tabweave.columns.vocabulary import canonical
from tabweave.io.register import storable
from tabweave.sources.coca import cells, column_means
from tabweave.sources.container import Sources, check_form
from tabweave.sources.hemap.transfer import (
    Align,
    Options,
    SourceRows,
    TargetRows,
    Transfer,
    align,
    fold_numbers,
    probabilities,
)
from tabweave.sources.tables import (
    labels_of_rows,
    position_of_each,
    read_labels,
    without_attributes,
)

EMBED_FIRST = "HeMap reads numbers: embed categories first, e.g. with tabweave.Weave"
_HELD = {"pairs": "pairs", "source": "outputs"}  # of a source, by parameter of fit
# Without the source: the learner, the learner in the common space, the commonest class or mean. A
# bridge that says the same of every source class falls back to the last: nothing is transferred.
_RIVALS = ("target", "projected", "prior")


def _gives_probabilities(model: HeMap) -> bool:
    return hasattr(model._estimator(), "predict_proba")


@storable
class HeMap(Estimator):
    """Learn from the labels of a source table with other columns, if validation shows a gain.

    Parameters
    ----------
    estimator : classifier or regressor, optional
        The learner; 10 nearest neighbours if not given.
    alignment : {"auto", "pairs", "pc", "score", "cluster"}, default="auto"
        How source rows are aligned with target rows: by the ``pairs`` of fit; nearest in the first
        principal components, turned so that the means of shared classes meet ("pc"); nearest in
        what a learner of each table's own predicts ("score"); matched clusters ("cluster").
        "auto" is "pairs" if pairs are given, else "pc".
    n_components : int, default=20
        Dimensions of the common space, at most.
    similarity : float, default=1.0
        How much the two tables should agree there (β).
    linearity : float in (0, 1], default=1.0
        1 keeps the columns only, the linear HeMap; less keeps clusters too (θ; nonlinear at 0.5).
    scale : bool, default=True
        Whether columns are brought to variance 1; turn it off where all are in one unit.
    guard : int or None, default=5
        Folds of the cross-validation that must show a gain, by more than a standard error, over
        the learner on the target alone, in the original and in the common space, and over the
        commonest class (or mean). Then the source must do better than all of 19 copies of it whose
        outputs were shuffled, and, if there are pairs, than 19 whose pairs were: a source that has
        nothing to do with the target is let in with probability 0.05 at most, however few labels
        there are. None trusts the source untested.
    random_state : int, RandomState or None, default=None
        Decides folds and clusters.

    Attributes
    ----------
    refused_ : bool
        Whether predictions are those of the learner on the target alone.
    reason_ : str
        Why, with the figures.
    verdicts_ : dict of str to tuple
        Of each source: whether it is refused, why, and its losses. Of those let in, the one with
        the smallest loss is used, and it is what the other attributes are about.
    losses_ : dict
        Mean held-out loss with the source ("transfer"), without ("target"), without in the common
        space ("projected"), of the commonest class or mean ("prior"); and, as "target_error" and
        so on, standard errors of the differences. The loss is the squared error of numbers, or half
        that of probabilities: 0 if all are right for sure, 1 if all are wrong for sure.
    alignment_ : str or None
        The alignment used.
    target_estimator_ : estimator
        The learner on the target's labeled rows alone.
    transfer_ : object or None
        What was learned with the source, refused or not; it has ``predict`` as well.
    selected_ : ndarray or None
        The source rows that are used: those with a partner among the target rows, and those in
        clusters shared with the target, Eq. (5.17).
    eigenvalues_ : ndarray or None
        What each dimension of the common space weighs.
    classes_ : ndarray
        Of a classifier.
    n_features_in_, feature_names_in_
        The target's columns.

    Notes
    -----
    Erratum: the thesis says that the order of rows does not matter. It does: row i of the target
    is projected with row i of the source. Rows aligned at random carry nothing over; that is
    :class:`tabweave.papers.HeMap`.

    Classes of equal names are taken to mean the same; other classes, and numbers, are bridged
    (Eqs. 5.19 and 5.20). Rename classes to have them bridged.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave import HeMap
    >>> rng = np.random.default_rng(0)
    >>> things = rng.normal(size=(500, 2))          # what both tables are about
    >>> kind = np.where(things[:, 0] * things[:, 1] > 0, "even", "odd")
    >>> ours = things @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(500, 5))
    >>> theirs = things @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(500, 8))
    >>> labels = kind[:400].astype(object)
    >>> labels[40:] = None                          # 40 of our rows have a label
    >>> model = HeMap(random_state=0)
    >>> model = model.fit(
    ...     ours[:400], labels, source=(theirs[:400], kind[:400]), pairs=np.arange(400)
    ... )
    >>> model.refused_
    False
    >>> alone = model.target_estimator_.score(ours[400:], kind[400:])
    >>> model.score(ours[400:], kind[400:]) > alone + 0.1
    True

    A source about something else is refused, and the learner on the target alone answers.

    >>> noise = rng.normal(size=(400, 8))
    >>> model = model.fit(ours[:400], labels, source=(noise, kind[:400]))
    >>> model.refused_
    True
    >>> model.score(ours[400:], kind[400:]) == alone
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "alignment": [StrOptions({"auto", "pairs", "pc", "score", "cluster"})],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "similarity": [Interval(Real, 0, None, closed="left")],
        "linearity": [Interval(Real, 0, 1, closed="right")],
        "scale": ["boolean"],
        "guard": [Interval(Integral, 2, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        alignment: str = "auto",
        n_components: int = 20,
        similarity: float = 1.0,
        linearity: float = 1.0,
        scale: bool = True,
        guard: int | None = 5,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.alignment = alignment
        self.n_components = n_components
        self.similarity = similarity
        self.linearity = linearity
        self.scale = scale
        self.guard = guard
        self.random_state = random_state

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, source: Any = None, pairs: Any = None) -> Self:
        """Learn from target rows, and from the source if validation shows a gain.

        Parameters
        ----------
        X : array or frame of numbers, or Sources
            Target rows, with or without labels; a missing number stands at the mean of its column.
            Of `Sources` the first table is the target, every other one a source; ids that two
            tables share are pairs.
        y : array-like, pandas series by index, or mapping
            Classes or numbers of the rows (or ids); None or NaN where there is none.
        source : (rows, outputs), or mapping of name to such a pair, optional
            Rows of other columns, and a class or number for each. Without a source this is the
            learner on the target alone. For `Sources`: a mapping of table to its outputs by id;
            a table that is not in it has those of ``y``.
        pairs : array-like of int, or mapping of name to such, optional
            For each target row the number of the source row about the same thing, or -1.
        """
        self._validate_params()
        self._check_learner()
        numeric = self._is_regressor()
        X, y, tables_with_pairs = self._read_training(X, y, source, pairs, numeric)
        values, labeled = read_target(y, len(X), numeric)
        self.target_estimator_ = self._estimator(len(values)).fit(X[labeled], values)
        tried = {}
        for name, (others, partners) in tables_with_pairs.items():
            target = TargetRows(X, values, labeled, partners)
            tried[name] = self._try(target, others, len(tables_with_pairs))
        self.verdicts_ = {name: attempt.verdict for name, attempt in tried.items()}
        none = Attempt(SourceDecision(True, "no source was given", {}), None, None)
        best = min(tried.values(), key=Attempt.rank) if tried else none
        self.alignment_, self.transfer_ = best.alignment, best.transfer
        self.selected_ = getattr(best.transfer, "selected", None)
        self.eigenvalues_ = getattr(best.transfer, "eigenvalues", None)
        self.refused_, self.reason_, self.losses_ = best.verdict
        if not numeric:
            self.classes_ = self._model().classes_
        return self

    def _read_training(
        self, X: Any, y: Any, source: Any, pairs: Any, numeric: bool
    ) -> tuple[np.ndarray, Any, dict[str, tuple[SourceRows, np.ndarray | None]]]:
        """Target rows without gaps, their labels, and each source with its pairs."""
        without_attributes(self, "reference_")
        if isinstance(X, Sources):
            self.reference_ = X.select(X.ids[:0])
            X, y, source, pairs = of_sources(X, y, source)
        else:
            y = None if y is None else labels_of_rows(X, y)
        with numbers_only(X, EMBED_FIRST):
            X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        self._means = column_means(X)
        X = filled(X, self._means)
        if source is None:
            return X, y, {}
        if not isinstance(source, Mapping):
            source, pairs = {"source": source}, {"source": pairs}
        check_names("pairs", pairs, [*source])
        tables = {name: read_source(pair, numeric, name) for name, pair in source.items()}
        partners = {
            name: read_pairs((pairs or {}).get(name), len(X), len(others.X))
            for name, others in tables.items()
        }
        return X, y, {name: (others, partners[name]) for name, others in tables.items()}

    def _try(self, target: TargetRows, source: SourceRows, n_sources: int) -> Attempt:
        """Fit the transfer and have it judged."""
        how, align, rounds = self._alignment(target)
        options = self._options(align, rounds)
        paired = len(source.X) if target.pairs is None else np.sum(target.pairs >= 0)
        hindrance = ""
        if min(len(source.X), paired) < 2:
            hindrance = "the source has fewer than two rows to align"
        elif (source.X == source.X[0]).all() or (target.X == target.X[0]).all():
            hindrance = "all rows of a table are the same: nothing can be aligned"
        if hindrance:
            return Attempt(SourceDecision(True, hindrance, {}), how, None)
        transfer = Transfer(options, target, source)
        if self.guard is None:
            decision = SourceDecision(False, "the guard is off: the source is used untested", {})
            return Attempt(decision, how, transfer)
        # Section 5.5.2: hardly a row lies among the target's rows.
        if len(transfer.selected) < 0.05 * len(source.X):
            text = (
                f"{len(transfer.selected)} of {len(source.X)} source rows lie among the target rows"
            )
            return Attempt(SourceDecision(True, f"{text}: too risky", {}), how, transfer)
        with one_thread():  # hundreds of small fits: threads would wait for each other
            decision = judge(options, target, source, int(self.guard), n_sources)
        return Attempt(decision, how, transfer)

    def _alignment(self, target: TargetRows) -> tuple[str, Align, int]:
        """The alignment by name and as a function, and how often it is refined."""
        how = self.alignment
        if how == "auto":
            how = "pc" if target.pairs is None else "pairs"
        if how == "pairs" and target.pairs is None:
            raise ValueError(
                "alignment='pairs': expected pairs, the source row of each row, got none in fit"
            )
        return how, partial(align, how), 0 if how == "pairs" else 3

    def _options(self, align: Align, rounds: int) -> Options:
        return Options(
            make=self._estimator,
            numeric=self._is_regressor(),
            align=align,
            rounds=rounds,
            n_components=int(self.n_components),
            beta=float(self.similarity),
            theta=float(self.linearity),
            scale=bool(self.scale),
            seed=seed_of(self.random_state),
        )

    def _estimator(self, n_rows: int = 10) -> Any:
        if self.estimator is None:
            return KNeighborsClassifier(min(10, n_rows))
        return clone(self.estimator)

    def _is_regressor(self) -> bool:
        return self.estimator is not None and is_regressor(self.estimator)

    def _check_learner(self) -> None:
        learner = self.estimator
        if learner is not None and not (is_classifier(learner) or is_regressor(learner)):
            raise TypeError(f"estimator: expected a classifier or a regressor, got {learner!r}")

    # -- using -----------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """The class or number of each target row (of `Sources`, in the order of ids)."""
        return self._model().predict(self._read(X))

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class."""
        return self._model().predict_proba(self._read(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy, or R² of numbers, over the rows that ``y`` has labels for."""
        predictions = self.predict(X)
        of_rows = partial(labels_of_rows, X)
        if isinstance(X, Sources):
            of_rows = partial(of_ids, X, self._target_rows(X)[1])
        values, present = read_outputs(of_rows(y), "y")
        measure = r2_score if self._is_regressor() else accuracy_score
        weights = None if sample_weight is None else np.asarray(of_rows(sample_weight))[present]
        return float(measure(values, predictions[present], sample_weight=weights))

    def project(self, X: Any) -> np.ndarray:
        """Target rows in the common space, whether or not the source was refused."""
        X = self._read(X)
        if self.transfer_ is None:
            raise ValueError(f"expected a source that can be aligned, got none: {self.reason_}")
        return self.transfer_.side.project(X)

    def _model(self) -> Any:
        check_is_fitted(self, "refused_")
        return self.target_estimator_ if self.refused_ else self.transfer_

    def _read(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "refused_")
        if isinstance(X, Sources):
            check_form(X, hasattr(self, "reference_"))
            X = self._target_rows(X)[0]
        X = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
        return filled(X, self._means)

    def _target_rows(self, X: Sources) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the table that was the target in fit, and the index of their ids."""
        name = self.reference_.names[0]
        if name not in X.names:
            raise ValueError(f"expected the target of fit, table {name!r}, got {[*X.names]}")
        return target_rows(X.like(self.reference_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base_tags = get_tags(self._estimator())
        tags.estimator_type = base_tags.estimator_type
        tags.classifier_tags = base_tags.classifier_tags
        tags.regressor_tags = base_tags.regressor_tags
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        return tags


# -- what HeMap is given: outputs with gaps, a source, pairs ------------------------------------


def of_sources(X: Sources, y: Any, outputs: Any) -> tuple[np.ndarray, Any, Any, Any]:
    """The first table's rows with their labels, and the others as sources with pairs."""
    if y is None:
        raise ValueError("HeMap requires y to be passed, but the target y is None")
    if not X.names:
        raise ValueError("expected at least one table, got graphs only")
    check_names("source", outputs, X.names[1:])
    rows, ids = target_rows(X)
    tables, pairs, everyone = {}, {}, np.arange(len(X))
    labels = of_ids(X, everyone, y)
    for name in X.names[1:]:
        has_own = outputs is not None and name in outputs
        source_labels = of_ids(X, everyone, outputs[name]) if has_own else labels
        index = X.rows(name)
        has_label = np.array([source_labels[i] is not None for i in index], dtype=bool)
        if not has_label.any():
            continue  # a table without outputs has nothing to hand on
        row = position_of_each(index[has_label], len(X))
        tables[name] = _dense(cells(X, name))[has_label], source_labels[index[has_label]]
        pairs[name] = row[ids] if (row[ids] >= 0).any() else None
    return rows, labels[ids], tables or None, pairs


def check_names(what: str, by_name: Any, sources: Sequence[str]) -> None:
    """Raise for what is given by the name of a source, but is of none."""
    if by_name is not None and not isinstance(by_name, Mapping):
        raise TypeError(
            f"{what}: expected a mapping of source to its {_HELD[what]}, got {by_name!r}"
        )
    for name in by_name or ():
        if name not in sources:
            raise ValueError(f"{what}: expected names of sources, {[*sources]}, got {name!r}")


def target_rows(sources: Sources) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the first table in the order of ids, and the index of these."""
    index = sources.rows(sources.names[0])
    order = np.argsort(index)
    return _dense(cells(sources, sources.names[0]))[order], index[order]


def of_ids(sources: Sources, rows: np.ndarray, y: Any) -> np.ndarray:
    """The labels of some ids by index, None where there is none."""
    out = np.full(len(sources), None, dtype=object)
    index, labels = read_labels(sources.ids, y)
    out[index] = labels.tolist()
    return out[rows]


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else matrix


def filled(X: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Rows with gaps at the means of their columns."""
    return np.where(np.isnan(X), means, X)


def read_target(y: Any, n_rows: int, numeric: bool) -> tuple[np.ndarray, np.ndarray]:
    """The labels that are there, and which rows have one."""
    if y is None:
        raise ValueError("HeMap requires y to be passed, but the target y is None")
    values, present = read_outputs(y, "y")
    if len(present) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[n_rows, len(present)]}"
        )
    if not present.any():
        raise ValueError("y: expected a label for some of the rows, got None or NaN everywhere")
    if numeric:
        return target_numbers(values, "a classifier"), present
    if type_of_target(values) == "continuous":
        raise ValueError(
            "Unknown label type: expected classes for a classifier, got numbers; give a regressor, "
            "as in HeMap(Ridge())"
        )
    check_class_labels(values)
    return values, present


def read_outputs(y: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The outputs that are not missing, and where they are."""
    values = target_array(y)
    if values.dtype.kind == "O":
        labels = [canonical(value) for value in values.tolist()]
        present = np.array([label is not None for label in labels], bool)
        return target_array([label for label in labels if label is not None]), present
    present = values == values if values.dtype.kind == "f" else np.ones(len(values), bool)
    values = values[present]
    if values.dtype.kind == "f":
        assert_all_finite(values, input_name=name)
    return values, present


def read_source(source: Any, target_numeric: bool, name: str = "source") -> SourceRows:
    """The rows and outputs of a source, gaps at the means of their columns.

    Fractions are numbers; whole numbers are, too, if the target's outputs are numbers.
    """
    try:
        X, v = source
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: expected a pair (rows, outputs), got {type(source).__name__}"
        ) from None
    v = labels_of_rows(X, v)
    with numbers_only(X, EMBED_FIRST, name):
        X = check_array(
            X,
            dtype=np.float64,
            input_name=name,
            ensure_min_samples=0,
            ensure_all_finite="allow-nan",
        )
    values, present = read_outputs(v, f"the outputs of {name}")
    if len(X) != len(present):
        raise ValueError(f"{name}: expected {len(X)} outputs, one per row, got {len(present)}")
    if not len(X):
        raise ValueError(f"{name}: expected rows, got none; leave it out")
    if not present.all():
        row = np.flatnonzero(~present)[0]
        raise ValueError(f"{name}: expected an output of row {row}, got null; leave such rows out")
    X = filled(X, column_means(X))
    numbers = values.dtype.kind in "iuf"
    numeric = numbers and (target_numeric or type_of_target(values) == "continuous")
    values = target_numbers(values, "a classifier", name) if numeric else values
    return SourceRows(X, values, numeric)


def read_pairs(pairs: Any, n_rows: int, n_source: int) -> np.ndarray | None:
    """The source row of each target row, -1 for none."""
    if pairs is None:
        return None
    pairs = np.asarray(pairs)
    if pairs.dtype.kind not in "iu":
        raise TypeError(
            f"pairs: expected row numbers of the source (-1 for none), got {pairs.dtype}; "
            "pandas.Index(source_ids).get_indexer(ids) turns ids into row numbers"
        )
    if pairs.shape != (n_rows,):
        raise ValueError(f"pairs: expected shape ({n_rows},), got {pairs.shape}")
    wrong = (pairs < -1) | (pairs >= n_source)
    if wrong.any():
        raise ValueError(
            f"pairs[{np.flatnonzero(wrong)[0]}]: expected a source row from 0 to {n_source - 1}, "
            f"or -1 for none, got {pairs[wrong][0]}"
        )
    return pairs.astype(np.int64)


# -- the guard: a source is used only if it helps rows whose labels were held back ---------------
#
# The thesis calls a transfer "too risky" when few source rows are selected; that says nothing of
# the labels. Here the labeled target rows are dealt into folds; each is predicted by a transfer
# that was aligned, projected and learned without it, and by three rivals without the source. A
# source of noise may beat these, too: its class means are turned towards the target's, which makes
# a good learner of few labels. But then so do copies of it whose outputs are shuffled; a source
# without anything to tell is one of them, and comes first with probability 1/20.
#
# Of classes the loss is the squared error of the probabilities (Brier 1950), not the share of wrong
# rows: ten or twenty rows are wrong or right in few ways, and copies then do as well by chance.


@storable
class SourceDecision(NamedTuple):
    """Whether the source is refused, why, and the mean held-out losses it rests on."""

    refused: bool
    reason: str
    losses: dict[str, float]


class Attempt(NamedTuple):
    """What became of one source: the verdict, how it was aligned, and the transfer."""

    verdict: SourceDecision
    alignment: str | None
    transfer: Transfer | None

    def rank(self) -> tuple[bool, float]:
        """Order attempts: those let in first, then by held-out loss."""
        return self.verdict.refused, self.verdict.losses.get("transfer", np.inf)


def judge(
    options: Options,
    target: TargetRows,
    source: SourceRows,
    n_folds: int,
    n_sources: int = 1,
    *,
    min_labels: int = 10,
    level: float = 0.05,
    max_rows: int = 1_000,
) -> SourceDecision:
    """Refuse unless the transfer beats every rival by a standard error, and all shuffled copies."""
    n = len(target.y)
    if n < max(min_labels, n_folds):
        return SourceDecision(True, f"{n} labeled rows are too few to judge the source", {})
    target, source = fewer(target, source, max_rows)
    folds = fold_numbers(target.y, n_folds, np.random.RandomState(options.seed))
    losses, transfers = held_out_losses(options, target, source, folds)
    gains = losses[1:] - losses[0]
    errors = standard_errors(gains)
    figures = dict(zip(("transfer", *_RIVALS), losses.mean(axis=1).tolist(), strict=True))
    figures |= {f"{rival}_error": float(e) for rival, e in zip(_RIVALS, errors, strict=True)}
    if not np.all(gains.mean(axis=1) > errors):
        return SourceDecision(True, f"no clear gain: {_reason(figures, options.numeric)}", figures)
    # One of many sources comes first more easily: each has to beat as many more copies.
    n_copies = int(np.ceil(n_sources / level)) - 1
    limit = float(losses[0].sum())
    for what, copy in shuffled(target, source, n_copies, options.seed):
        same_space = transfers if what == "outputs" and ignores_outputs(options) else None
        if _does_as_well(options, copy, folds, limit, same_space):
            text = f"no better than with {what} shuffled"
            return SourceDecision(True, f"{text}: {_reason(figures, options.numeric)}", figures)
    text = f"the source helps: {_reason(figures, options.numeric)}"
    return SourceDecision(False, f"{text}; better than all {n_copies} shuffled copies", figures)


def ignores_outputs(options: Options) -> bool:
    """Whether the common space is the same whatever the source's outputs are."""
    return options.theta == 1 and getattr(options.align, "args", None) == ("pairs",)


def shuffled(
    target: TargetRows, source: SourceRows, n_copies: int, seed: int
) -> Iterator[tuple[str, tuple[TargetRows, SourceRows]]]:
    """Yield copies that have nothing to tell: of shuffled outputs, and of shuffled pairs."""
    rng = np.random.RandomState(seed)
    for _ in range(n_copies):
        yield "outputs", (target, source._replace(v=rng.permutation(source.v)))
        if target.pairs is not None:
            yield "pairs", (target._replace(pairs=rng.permutation(target.pairs)), source)


def _does_as_well(
    options: Options,
    copy: tuple[TargetRows, SourceRows],
    folds: np.ndarray,
    limit: float,
    same_space: Sequence[Transfer] | None,
) -> bool:
    """Whether held-out losses with a source sum up to no more than a limit.

    ``same_space`` are transfers of each fold in the same common space, of which only the learner is
    to be trained again.
    """
    total = 0.0
    for fold in range(int(folds.max()) + 1):
        held = _Held.of(copy[0], copy[1], folds == fold)
        if same_space is None:
            transfer = Transfer(options, held.target, held.source)
        else:
            transfer = same_space[fold].relearned(options, held.target, held.source)
        total += _losses(_answer(options, transfer, held.asked), held.right).sum()
        if total > limit + 1e-9 * abs(limit):
            return False  # the other folds cannot make it better
    return True


def fewer(target: TargetRows, source: SourceRows, max_rows: int) -> tuple[TargetRows, SourceRows]:
    """Some of the rows, evenly, labeled ones first and pairs together: enough to judge."""
    if max(len(target.X), len(source.X)) <= max_rows:
        return target, source
    labeled, free = np.flatnonzero(target.labeled), np.flatnonzero(~target.labeled)
    labeled_rows = _evenly(len(labeled), max_rows // 2)
    rows = np.sort(
        np.append(labeled[labeled_rows], free[_evenly(len(free), max_rows - len(labeled_rows))])
    )
    others, pairs = _evenly(len(source.X), max_rows), None
    if target.pairs is not None:
        partners = np.setdiff1d(target.pairs[rows], [-1])
        unpaired = np.setdiff1d(np.arange(len(source.X)), partners)
        others = np.sort(
            np.append(partners, unpaired[_evenly(len(unpaired), max_rows - len(partners))])
        )
        pairs = _pairs_among(others, target.pairs[rows], len(source.X))
    smaller = TargetRows(target.X[rows], target.y[labeled_rows], target.labeled[rows], pairs)
    return smaller, SourceRows(source.X[others], source.v[others], source.numeric)


def _pairs_among(rows: np.ndarray, pairs: np.ndarray, n_source: int) -> np.ndarray:
    """Pairs with some of the source rows, -1 where the partner is none of them."""
    return position_of_each(rows, n_source + 1)[pairs]  # the last one answers -1, no partner


def _evenly(n: int, max_rows: int) -> np.ndarray:
    return np.linspace(0, n - 1, min(n, max(max_rows, 0))).astype(int) if n else np.zeros(0, int)


def standard_errors(gains: np.ndarray) -> np.ndarray:
    """The standard error of each mean gain over rows, wider the fewer they are.

    One standard error of so many rows is exceeded by chance as often as one of very many (Student
    1908): a single row that does better is not enough. Folds share training rows, which makes it a
    rule of thumb; the stated rate rests on the copies alone.
    """
    n = gains.shape[1]
    return gains.std(axis=1, ddof=1) / np.sqrt(n) * stdtrit(n - 1, ndtr(1.0))


def held_out_losses(
    options: Options, target: TargetRows, source: SourceRows, folds: np.ndarray
) -> tuple[np.ndarray, list[Transfer]]:
    """The losses of all labeled rows, by the transfer and its rivals, and the transfers."""
    losses = np.empty((1 + len(_RIVALS), len(folds)))
    transfers = []
    for fold in range(int(folds.max()) + 1):
        held = _Held.of(target, source, folds == fold)
        transfers.append(Transfer(options, held.target, held.source))
        losses[:, folds == fold] = _fold_losses(options, held, transfers[-1])
    return losses, transfers


def _fold_losses(options: Options, held: _Held, transfer: Transfer) -> np.ndarray:
    """The losses of held-out rows: by the transfer and by its rivals."""
    rows, y = held.target.X[held.target.labeled], held.target.y
    target_only = options.make(len(y)).fit(rows, y)
    answers = [
        _answer(options, transfer, held.asked),
        _answer(options, target_only, held.asked),
        _answer(options, transfer.target_learner, transfer.side.project(held.asked)),
    ]
    prior: Any = DummyRegressor()
    if not options.numeric:
        # The commonest class is as sure of itself as the learner: a tree always is.
        sure = np.isin(answers[0].values, (0, 1)).all()
        prior = DummyClassifier(strategy="most_frequent" if sure else "prior")
    answers.append(_answer(options, prior.fit(rows, y), held.asked))
    return np.array([_losses(answer, held.right) for answer in answers])


class _Answer(NamedTuple):
    """Numbers, or the probability of each class and what these classes are."""

    values: np.ndarray
    classes: np.ndarray | None


def _answer(options: Options, model: Any, X: np.ndarray) -> _Answer:
    """What a learner or a transfer says of rows."""
    if options.numeric:
        return _Answer(model.predict(X), None)
    return _Answer(probabilities(model, X), model.classes_)


def _losses(answer: _Answer, right: np.ndarray) -> np.ndarray:
    """The squared error of an answer for each row: of numbers, or half that of probabilities.

    Half of it is 1 for a row that is wrong for sure, as an error is.
    """
    values, classes = answer
    if classes is None:
        return (values - right) ** 2
    hits = right[:, None] == classes
    return (np.sum((values - hits) ** 2, axis=1) + ~hits.any(axis=1)) / 2


class _Held(NamedTuple):
    """Labeled rows that are held out, their labels, and what is left of target and source.

    Held-out rows leave the target altogether, and their partners the source: a row's own label
    must not come back to it through a pair.
    """

    asked: np.ndarray
    right: np.ndarray
    target: TargetRows
    source: SourceRows

    @classmethod
    def of(cls, target: TargetRows, source: SourceRows, held: np.ndarray) -> _Held:
        """Hold some of the labeled rows out."""
        rows, pairs = np.flatnonzero(target.labeled)[held], target.pairs
        stays = np.ones(len(target.X), bool)
        stays[rows] = False
        if pairs is not None:
            unpaired = np.setdiff1d(np.arange(len(source.X)), pairs[rows])
            pairs = _pairs_among(unpaired, pairs[stays], len(source.X))
            source = SourceRows(source.X[unpaired], source.v[unpaired], source.numeric)
        left = TargetRows(target.X[stays], target.y[~held], target.labeled[stays], pairs)
        return cls(target.X[rows], target.y[held], left, source)


def _reason(figures: dict[str, float], numeric: bool) -> str:
    what = "squared error" if numeric else "squared error of probabilities"
    return (
        f"held-out {what} {figures['transfer']:.3g} with the source; without it "
        f"{figures['target']:.3g} (standard error of the difference "
        f"{figures['target_error']:.2g}), "
        f"in the common space {figures['projected']:.3g} ({figures['projected_error']:.2g}), "
        f"by {'the mean' if numeric else 'shares of classes'} alone {figures['prior']:.3g} "
        f"({figures['prior_error']:.2g})"
    )
