"""SupervisedWeave: couplings, and what each value says about the target; from counts with y.

Two values of a column are close if they occur with the same values of other columns and with the
same classes. A column counts as much as it depends on the classes. Beside the columns, one part
holds the linear discriminant of the whole row, solved from pair counts. Rows are seen once. A
numeric target is cut into quantile bins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, helmert
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, blas_threads, eigh, in_threads, warn_caller
from tabweave.columns.column import Schema
from tabweave.columns.frames import object_array
from tabweave.columns.inputs import check_target, check_unit, target_array
from tabweave.columns.numeric import Knots, ladder
from tabweave.columns.spelling import Spelling
from tabweave.columns.table import Table, take_rows
from tabweave.columns.vocabulary import positions
from tabweave.counts import couplings
from tabweave.counts.counts import Counts, checked_weight
from tabweave.counts.couplings import Factors, class_gap_uncertainty, class_ties
from tabweave.counts.spectra import centred_product, of_means, scatter
from tabweave.embed.base import N_BINS, ValueEmbedder
from tabweave.embed.register import embedder
from tabweave.embed.weave import (
    MIN_DEPENDENCE,
    SMOOTHING,
    ColumnCouplings,
    checked_weights,
    countable,
    coupling_line,
    is_coupled,
    mean_one,
    spellings,
    split_weights,
    ties,
)
from tabweave.engines import is_distributed, read_with_classes
from tabweave.engines.reading import (
    count_first,
    hold_counts,
    read_fitted,
    read_whole,
    require_classes,
    start_counts,
    warn_of_predictive_in,
)
from tabweave.io.register import storable
from tabweave.io.store import CacheNotSaved
from tabweave.space.curves import Curve, column_curve, join_curves, turned_towards, with_missing
from tabweave.space.numbers import (
    CountedColumns,
    Curves,
    bin_knots,
    binned,
    knots_of,
    quantile_edges,
)
from tabweave.space.space import Joined, Space, Summed
from tabweave.space.value_tables import ValueTables, compacted
from tabweave.updates import complete

FOLDS = 5
_MOST_CLASSES = 20  # whole numbers that are surely classes
MIN_TIE = 0.01  # least tie of a column, of the largest
MAX_COUPLED_SHARE = (
    0.99  # most that couplings count beside a mismatch, lest values of one company coincide
)
_PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
MANY_CLASSES = 256  # beyond which what they teach is written in as few coordinates as it needs
_WIDEST = 1500  # coefficients up to which the penalty is chosen; beyond, it is 30
_FREQUENT = (256, 128, 64, 32, 16)  # values of a column that have a coefficient of their own
_COEFFICIENTS = 8192  # of values in all, if 16 of each column are not more: solving is cubic


@embedder(
    "supervised",
    "couplings between columns and with the target",
    "tabweave",
    reads="mixed",
    needs_y=True,
    cross_fits=True,
    page="weave",
)
class SupervisedWeave(CacheNotSaved, ValueEmbedder):
    """Embed the rows of any table, using a target: couplings between columns and with the target.

    For vectors that another model is trained on: use :meth:`fit_transform`, which is cross-fitted,
    or a pipeline, which calls it. To predict directly, see :class:`~tabweave.WeaveClassifier` and
    :class:`~tabweave.WeaveRegressor`.

    Parameters
    ----------
    discriminant : float, default=0.3
        How much the linear discriminant counts: its mean squared distance relative to that of all
        columns together.
    weight_power : float, default=1.0
        The weight of a column is its dependence on the target to this power: 0 gives all columns
        the same weight, 1 gives little to columns that say nothing about the target.
    weights : mapping of column to number, optional
        Factors by which the learned weights are multiplied, in the column's own distance and in
        what it adds to the discriminant; 0 leaves a column out, columns not named have 1.
    max_landmarks, n_bins, schema, unknown, dtype
        As in :class:`~tabweave.Weave`.

    Attributes
    ----------
    weights_ : dict of str to float
        Weight of each column, mean 1.
    target_ : Target
        Whether the target is of classes or numbers, and how numbers are binned.
    penalty_ : float
        The ridge penalty of the discriminant, chosen by generalised cross-validation.
    gaps_ : list of str
        The columns in which missing counts as a value, since their gaps depend on the target.
    tables_, numbers_, landmarks_
        As in :class:`~tabweave.Weave`.
    discriminant_ : Summed
        The discriminant: what each column adds to it.
    counts_, space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    Two values of column a have the squared distance
    ``w_a (½ d_a(v, w) + ½ ‖p(y|v) - p(y|w)‖²)``. d_a is the coupling distance of
    :class:`~tabweave.Weave` (a mismatch where couplings are not trusted, and 1 % of a mismatch
    everywhere, so that no two values coincide), p(y|v) has 5 pseudo-counts of the prior; both are
    scaled to the column's rate of mismatches ``1 - Σf²``. For numbers p(y|v) is that of their bins,
    interpolated linearly between the means of two bins; both parts are scaled to a mean of 1. The
    weights ``w_a`` are powers of the symmetric uncertainty with the classes less what chance
    brings (see :func:`class_ties`), at least 1 % of the largest. The discriminant is ridge
    regression of the classes on the values of all columns, ``B = (C₀ + λI)⁻¹ Zᵀ(Y - Ȳ)``, exact
    from counts of pairs. For a numeric target the classes are its bins, and points on a ladder (see
    :func:`tabweave.space.numbers.ladder`) stand for their indicators.

    A missing cell is at its expected distance from every cell, as in :class:`~tabweave.Weave`. It
    is one more value where the symmetric uncertainty of a column's gaps with the classes is above
    1/20 beyond chance (``gaps_``, :meth:`kinds`), unless the column says what missing is. To the
    discriminant it is one in any case.

    ``fit_transform`` is cross-fitted, like that of scikit-learn's TargetEncoder: the vector of a
    row is computed without its own target, so that the target does not leak into another model (the
    column weights and a few scales come from all rows). ``fit(X, y).transform(X)`` is not.

    Examples
    --------
    >>> from tabweave import SupervisedWeave
    >>> rows = {"job": ["cook", "clerk"] * 20, "age": [20.0, 30.0, 40.0, 50.0] * 10}
    >>> y = ["no", "yes", "no", "no"] * 10
    >>> model = SupervisedWeave().fit(rows, y)
    >>> model.weights_["age"] > model.weights_["job"]
    True
    >>> model.fit_transform(rows, y).shape == model.transform(rows).shape
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "discriminant": [Interval(Real, 0, None, closed="left")],
        "weight_power": [Interval(Real, 0, None, closed="left")],
        "weights": [Mapping, None],
        "max_landmarks": [Interval(Integral, 2, None, closed="left")],
        "n_bins": [Interval(Integral, 2, 1000, closed="both")],
    }

    def __init__(
        self,
        discriminant: float = 0.3,
        *,
        weight_power: float = 1.0,
        weights: Any = None,
        n_bins: int = N_BINS,
        max_landmarks: int = couplings.MAX_LANDMARKS,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)
        self.discriminant = discriminant
        self.weight_power = weight_power
        self.weights = weights
        self.max_landmarks = max_landmarks
        self.n_bins = n_bins

    target_: Target
    penalty_: float
    _cache: TargetFree
    weights_: dict[str, float]
    _part_weights: dict[str, float]
    _tuned: dict[str | None, float]

    # -- counting --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows and their target; see :class:`~tabweave.Weave` for the rows.

        Parameters
        ----------
        X : frame, array, mapping of columns, list of dicts, or any source of :func:`tabweave.count`
            The rows.
        y : array-like, or the name of a column of a source, optional
            Classes, or numbers for a numeric target: floats, not all whole or more than 20 of them.
        sample_weight : array-like, optional
            A weight for each row.
        """
        for name in ("target_", "_factors"):  # of other rows
            self.__dict__.pop(name, None)
        super().fit(X, y, sample_weight)
        warn_of_predictive_in(X, self.schema_, y)
        return self

    def fit_target(self, X: Any, y: Any, target: Target, sample_weight: Any = None) -> Self:
        """Fit to rows with a target that was read already; for use in ensembles and folds.

        What folds and other members will learn from, too, is kept until :meth:`release`.
        """
        self.target_ = target
        return self._fit_shared(X, y, sample_weight)

    def _fit_shared(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._validate_params()
        self.__dict__.pop("_factors", None)
        return start_counts(self, count_first(self, X, y, sample_weight, whole=True)).learn()

    def fit_counts(self, counts: Counts) -> Self:
        """Learn from counts with classes, however and wherever they were counted."""
        if counts.schema is not None and counts.class_pairs is None:
            raise ValueError("expected counts of rows with y, got counts without classes")
        if not hasattr(self, "target_"):
            self.target_ = Target()
        return super().fit_counts(counts).release()

    def _countable(self, table: Table, y: Any, sample_weight: Any = None) -> tuple[Table, Any]:
        """Return a table that can be counted, and the classes that stand for its target."""
        require_classes(self, y)
        weight = checked_weight(sample_weight, table.n_rows)
        return countable(table), self._classes(y, weight)

    def _classes(self, y: Any, weight: np.ndarray | None = None) -> Any:
        """Return the classes of a target; what kind it is, the first rows say."""
        y = y if isinstance(y, str) else target_array(y)
        if not hasattr(self, "target_"):
            self.target_ = Target.of(y, int(self.n_bins), weight)
        return self.target_.classes(y)

    # -- learning --------------------------------------------------------------------------

    def learn(self) -> Self:
        """Fit to the rows seen so far, if there are new ones; see :class:`~tabweave.Weave`."""
        check_is_fitted(self, "counts_")
        complete(self, _learn_supervised)
        return self

    def tuned_by(self, factors: Mapping[str | None, float]) -> Self:
        """Multiply the weights of columns, and the discriminant, by factors found elsewhere.

        Parameters
        ----------
        factors : mapping of str or None to float
            One for each of :meth:`part_names`. They stay as rows are added.
        """
        self._factors = dict(factors)
        return hold_counts(self, self.counts_)

    def part_names(self) -> list[str | None]:
        """Return the columns, or parts of them, in the space's order; None: the discriminant."""
        names: list[str | None] = [*self._counted.valued, *self._counted.numbered]
        return [*names, None] if self.discriminant > 0 and self.discriminant_ is not None else names

    def _tune(self) -> None:
        """Multiply weights by the factors; their sum stays."""
        weights = self._part_weights
        self._tuned = dict.fromkeys((*weights, None), 1.0)
        factors = self.__dict__.get("_factors")
        if factors is None:
            return
        tuned = {part: weight * factors[part] for part, weight in weights.items()}
        scale = sum(weights.values()) / sum(tuned.values())
        self._tuned = {part: scale * factors.get(part, 1.0) for part in self._tuned}
        self._part_weights = {part: scale * weight for part, weight in tuned.items()}
        self.weights_ = dict.fromkeys(self.weights_, 0.0)
        for part, weight in self._part_weights.items():
            self.weights_[self._counted.owners[part]] += weight

    def target_free(self) -> TargetFree:
        """Return what the counts say without the target, found once."""
        shared = self.__dict__.get("_cache")
        if shared is None or shared.counts is not self.counts_:
            shared = self._cache = TargetFree.of(self)
        return shared

    def release(self) -> Self:
        """Drop what folds and other members would share: of many columns it is large."""
        self.__dict__.pop("_cache", None)
        return self

    def _learn_target(self, pairs: np.ndarray, scales: Scales | None) -> Taught:
        """Return everything that the target teaches; scales are learned, unless they are given."""
        shared = self.target_free()
        coupled, valued = shared.coupled, shared.valued
        points, lost = self._class_points(coupled, pairs)
        means = conditional_means(pairs, points, SMOOTHING, class_shares(coupled, pairs))
        parts = part_scales(shared, means) if scales is None else scales.parts
        features, curves = self._features_and_curves(shared, means, parts)
        penalty = None if scales is None else scales.penalty
        linear, penalty = shared.solve_discriminant(pairs, points, penalty, lost)
        linear = linear * self._requested_scales(shared)
        if scales is None:
            factor = self._discriminant_scale(shared, features, curves, linear)
            scales = Scales(parts, factor, penalty)
        tables = ValueTables.from_features(
            list(features.values()), valued, compact=False, spelling=shared.spelling
        )
        tables = tables.with_unknown_elements(valued).with_gaps(valued, shared.counted.gaps)
        numbers = join_curves(list(curves.values()), shared.counted.numbering.levels)
        linear_parts = shared.tables_and_curves(scales.discriminant * linear)
        return Taught(tables, numbers, *linear_parts, scales)

    def _class_points(self, coupled: Counts, pairs: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return a point for each class, and the squared length that it lacks.

        Of more classes than values only the space counts that the values span: differences of
        their distributions have the same lengths there, and a point for each class need not be
        orthogonal to all others.
        """
        n_values, n_classes = pairs.shape
        if self.target_.numeric or n_classes <= max(MANY_CLASSES, n_values + 1):
            return self.target_.points(coupled), 0.0
        axes = np.linalg.qr((pairs - pairs.mean(axis=1, keepdims=True)).T)[0]
        axes -= axes.mean(axis=0)
        return axes, 1 - 1 / n_classes - (axes**2).sum(axis=1)

    def _features_and_curves(
        self, shared: TargetFree, means: np.ndarray, scales: Mapping[str, float]
    ) -> tuple[dict[str, Factors], dict[str, Curve]]:
        """Return values and numbers by couplings and means of the target, as columns weigh."""
        features, curves = {}, {}
        for name, weight in self._part_weights.items():
            span = shared.coupled.span(name)
            taught = in_few_coordinates(means[span]) * scales[name]
            if name in shared.factors:
                features[name] = shared.factors[name].beside(taught).scaled(weight / 2)
            else:
                f = shared.coupled.value_counts[span] / shared.coupled.n
                curve = shared.curves[name].beside(taught, f @ taught / f.sum())
                curves[name] = curve.scaled(weight / 2)
        return features, curves

    def _discriminant_scale(
        self,
        shared: TargetFree,
        features: Mapping[str, Factors],
        curves: Mapping[str, Curve],
        linear: np.ndarray,
    ) -> float:
        """Return what the discriminant is multiplied by to have its share of the distances."""
        size = mean_squared_rows(shared.coupled, linear) if linear.any() else 0.0
        if not size > 0:
            return 0.0
        total = 0.0
        for name in shared.counted.owners:
            f = shared.value_shares(name)
            if name in features:
                factors = features[name]
                mean = mean_squared(factors.common, f) + mean_mismatch(factors.own, f)
            else:
                mean = mean_squared(curves[name].at_values(shared.coupled), f)
            total += mean / self._tuned[name]  # as before it was tuned
        return float(np.sqrt(self.discriminant * self._tuned[None] * total / size))

    def _requested_scales(self, shared: TargetFree) -> np.ndarray:
        """Return what each value's lengths are multiplied by: the root of the weight asked for."""
        weights, coupled = checked_weights(self.weights, self.schema_.given), shared.coupled
        roots = [np.sqrt(weights.get(owner, 1.0)) for owner in shared.counted.groups(coupled)]
        return np.repeat(roots, coupled.sizes)[:, None]

    # -- using -----------------------------------------------------------------------------

    @property
    def discriminant_(self) -> Space | None:
        """The linear discriminant: what each column adds to it."""
        return discriminant_space(self._linear_tables, self._linear_numbers)

    @property
    def space_(self) -> Space:
        """Tables, curves and the discriminant, side by side."""
        counts_for = self.discriminant > 0
        return side_by_side(self.tables_, self.numbers_, self.discriminant_ if counts_for else None)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return "\n".join(filter(None, [super().__repr__(N_CHAR_MAX), coupling_line(self)]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit_transform(  # type: ignore[override]  # and no other parameters
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> np.ndarray:
        """Return cross-fitted vectors: each is learned without the target of its own row.

        Rows are cut into five parts at random, always in the same way; what the target teaches is
        taken from the four others. Couplings, weights and scales are those of all rows. A file or
        the result of a query is read into memory, as its vectors are; Dask and Spark frames are
        refused.
        """
        if is_distributed(X):
            raise TypeError(
                f"{type(self).__name__}.fit_transform: expected rows that fit in memory, got a "
                "frame on a cluster; collect it, or use fit, and transform on rows that fit has "
                "not seen: of its own rows, transform would give away the target"
            )
        self.__dict__.pop("target_", None)
        X, y = read_with_classes(X, y)
        rows_to_fit = read_whole(self, X)
        self._fit_shared(rows_to_fit, y, sample_weight)
        table = read_fitted(self, rows_to_fit)
        out = np.empty((table.n_rows, self.space_.width), np.dtype(self.dtype))
        for rows, pairs in self.left_out(table, y, sample_weight):
            space = self.taught_by(pairs)
            part = take_rows(table, rows)
            out[rows] = space.coordinates(part, dtype=out.dtype, unknown=self.unknown)
        self.release()
        return out

    def left_out(
        self, table: Table, y: Any, sample_weight: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield parts of rows that were counted, and the counts with classes of all the others."""
        from sklearn.model_selection import KFold

        shared = self.target_free()
        coupled, pairs = shared.coupled, shared.pairs
        if table.n_rows < 2:
            yield np.arange(table.n_rows), pairs
            return
        expanded = shared.counted.numbering.expand(table).select(coupled.schema.names)  # type: ignore[union-attr]
        alone = replace(expanded.schema, coupled=False)  # only what meets classes is counted
        expanded = Table(alone, expanded.columns, expanded.n_rows)
        classes, weight = self._classes(y), checked_weight(sample_weight, table.n_rows)
        if not hasattr(classes, "__array__"):
            classes = object_array(classes)  # NumPy would make text of 1 beside "a"
        classes = np.asarray(classes)
        parts = KFold(min(FOLDS, table.n_rows), shuffle=True, random_state=0)

        def counted(rows: np.ndarray) -> np.ndarray:
            own_weight = None if weight is None else weight[rows]
            own = Counts.of(take_rows(expanded, rows), classes[rows], sample_weight=own_weight)
            return aligned(own, coupled)

        all_rows = [rows for _, rows in parts.split(classes)]
        for rows, own_pairs in zip(all_rows, in_threads(counted, all_rows), strict=True):
            yield rows, pairs - own_pairs

    def taught_by(self, pairs: np.ndarray) -> Joined:
        """Return the space that counts of values with classes teach, at the scales of fit."""
        taught = self._learn_target(pairs, self._scales)
        discriminant = discriminant_space(taught.linear_tables, taught.linear_numbers)
        counts_for = self.discriminant > 0
        return side_by_side(taught.tables, taught.numbers, discriminant if counts_for else None)

    def regression(self, pairs: np.ndarray, points: np.ndarray) -> Space | None:
        """Return ridge regression of points, one for each class, as a sum over columns.

        Coordinates are centred: the mean of the points over all rows is not in them.
        """
        shared = self.target_free()
        coupled = shared.coupled
        rows, _ = shared.solve_discriminant(pairs, points, None)
        count, spans = coupled.value_counts, map(coupled.span, coupled.names)
        means = (count[span] @ rows[span] / max(count[span].sum(), 1e-300) for span in spans)
        shift = sum(means) / len(coupled.names)
        return discriminant_space(*shared.tables_and_curves(rows - shift))


class TargetFree:
    """What counts say without the target: folds, and members that differ in weights, share it.

    Parameters
    ----------
    counts : Counts
        The counts it is found from.
    counted : CountedColumns
        What is counted of each column.
    schema : Schema
        The columns.
    max_landmarks : int
        As in :class:`~tabweave.Weave`.
    """

    def __init__(
        self, counts: Counts, counted: CountedColumns, schema: Schema, max_landmarks: int
    ) -> None:
        self.counts = counts
        self.counted = counted
        self.schema = schema
        self.max_landmarks = max_landmarks

    @classmethod
    def of(cls, embedder: SupervisedWeave) -> TargetFree:
        """Take the counts of an embedder."""
        counts, schema = embedder.counts_, embedder.schema_
        counted = CountedColumns.of(counts, schema, int(embedder.n_bins))
        counted = counted.where_missing_is_a_value(
            gaps_with_classes(counted.coupled(counts), counted, schema)
        )
        return cls(counts, counted, schema, int(embedder.max_landmarks))

    @cached_property
    def coupled(self) -> Counts:
        """The counts of values and bins."""
        return self.counted.coupled(self.counts)

    @cached_property
    def present(self) -> Counts:
        """The same without missing cells, from which couplings are learned."""
        return self.coupled.present(self.counted.gaps)

    @cached_property
    def valued(self) -> Counts:
        """The counts of the columns whose values have tables."""
        return self.coupled.select(self.counted.valued)

    @cached_property
    def pairs(self) -> np.ndarray:
        """The counts of values and bins with classes."""
        return class_pairs(self.coupled)

    @cached_property
    def spelling(self) -> dict[str, Spelling]:
        """How the values of columns of many strings are spelled."""
        return spellings(self.coupled, self.counted.valued, self.schema)

    @cached_property
    def couplings(self) -> tuple[dict[str, Factors], dict[str, int]]:
        """The couplings of each column's values, and the columns seen through landmarks."""
        coupled, valued = self.coupled, self.counted.valued
        trusted = ties(self.present, self.counted.groups(coupled))[1]
        learned = ColumnCouplings(self.present, self.max_landmarks, self.spelling)

        def factors_of(name: str) -> Any:
            a = coupled.vocabulary.index(name)
            share = min(float(trusted[a]), MAX_COUPLED_SHARE)
            return with_missing(compact_factors(learned.factors(name, share)), coupled.labels[a])

        out = dict(zip(valued, in_threads(factors_of, valued), strict=True))
        return out, learned.landmarks(valued)

    @cached_property
    def factors(self) -> dict[str, Factors]:
        """The couplings of each column's values in few coordinates."""
        return {name: compact_factors(factors) for name, factors in self.couplings[0].items()}

    @cached_property
    def curves(self) -> dict[str, Curve]:
        """The curves of all numbers, at weight 1."""
        return {
            part: column_curve(part, self.coupled, self.counts, self.counted)
            for part in self.counted.numbered
        }

    @cached_property
    def _solver(self) -> tuple[list[Any], Ridge]:
        """The features of all values and what solves for their coefficients."""
        most = most_coefficients(self.valued.sizes)
        bases = [self._basis(name, most) for name in self.coupled.names]
        return bases, Ridge(scatter(self.coupled, bases))

    def _basis(self, name: str, most: int) -> Any:
        """Return the features of a column's values with coefficients; sparse if they choose."""
        coupled = self.coupled
        a = coupled.vocabulary.index(name)
        size = int(coupled.sizes[a])
        if name in self.counted.valued:
            chosen = couplings.landmarks(coupled, a, most)
            ones = np.ones(len(chosen)), (chosen, np.arange(len(chosen)))
            return sparse.csr_array(ones, shape=(size, len(chosen)))
        knots = knots_of(coupled, name, self.counted.numbering)
        order = list(dict.fromkeys(knots.value.tolist()))
        basis = np.zeros((size, max(len(order) - 1, 0) + (knots.missing is not None)))
        for step, value in enumerate(order):
            basis[value, :step] = 1
        if knots.missing is not None:
            basis[knots.missing, -1] = 1
        return basis

    def value_shares(self, part: str) -> np.ndarray:
        """Return the share of each value of a column; 0 for missing where it is no value."""
        labels = self.coupled.labels[self.coupled.vocabulary.index(part)]
        f = self.coupled.value_counts[self.coupled.span(part)] / self.coupled.n
        if part in self.counted.gaps:
            f[[label is None for label in labels]] = 0
        return f

    def tables_and_curves(self, linear: np.ndarray) -> tuple[ValueTables, Curves | None]:
        """Return a row for each value as tables and curves to be summed."""
        coupled, valued = self.coupled, self.valued
        rows = [linear[coupled.span(name)] for name in valued.names]
        summed = ValueTables.from_features(rows, valued, combine="sum", spelling=self.spelling)
        nothing, curves = np.zeros(linear.shape[1]), []
        for name, curve in self.curves.items():
            values = linear[coupled.span(name)]
            curves.append(curve.without_coordinates().beside(values, nothing))
        return summed, join_curves(curves, self.counted.numbering.levels)

    def solve_discriminant(
        self,
        pairs: np.ndarray,
        points: np.ndarray,
        penalty: float | None,
        lost: Any = 0.0,
    ) -> tuple[np.ndarray, float]:
        """Return what each value adds to the discriminant, and the ridge penalty.

        ``lost`` is the squared length that the points of classes lack, for the penalty's choice.
        The bins of a number are steps, each from the bin before: shrunk, they change little.
        """
        coupled = self.coupled
        if not is_coupled(coupled):  # without pairs there is no discriminant
            return np.zeros((len(pairs), points.shape[1])), 1.0
        bases, solver = self._solver
        n = coupled.n
        prior = class_shares(coupled, pairs)
        centred = of_means(coupled, pairs @ points - np.outer(pairs.sum(axis=1), prior @ points))
        response = np.vstack([b.T @ centred[coupled.span(a)] for a, b in enumerate(bases)])
        squares = prior @ (points - prior @ points) ** 2 @ np.ones(points.shape[1])
        total_squares = n * float(squares + (prior * lost).sum())
        found, penalty = solver.solve(response, total_squares, n, penalty)
        edges = np.cumsum([0, *(basis.shape[1] for basis in bases)])
        rows = [b @ found[i:j] for b, i, j in zip(bases, edges[:-1], edges[1:], strict=True)]
        return np.vstack(rows), penalty


def _learn_supervised(model: SupervisedWeave) -> None:
    counts = model.counts_
    if counts.classes is None or len(counts.classes) < 2:
        classes = counts.classes or ()
        raise ValueError(
            f"{type(model).__name__} expected two classes or more in y, got {len(classes)} class: "
            f"{classes}"
        )
    shared = model.target_free()
    model._counted = shared.counted
    model.gaps_ = gaps_with_classes(shared.coupled, shared.counted, model.schema_)
    tied = class_ties(shared.present, class_pairs(shared.present))
    weights = mean_one(np.maximum(tied, MIN_TIE * tied.max()) ** model.weight_power)
    factors = checked_weights(model.weights, model.schema_.given)
    model.weights_, model._part_weights = split_weights(
        shared.counted, shared.coupled, weights, factors
    )
    model._tune()
    model.landmarks_ = shared.couplings[1]
    taught = model._learn_target(shared.pairs, None)
    model._scales, model.penalty_ = taught.scales, taught.scales.penalty
    model.tables_, model.numbers_ = taught.tables, taught.numbers
    model._linear_tables, model._linear_numbers = taught.linear_tables, taught.linear_numbers
    if (earlier := model.__dict__.get("_earlier")) is not None:
        learned = turned_towards((model.tables_, model.numbers_), earlier, counts)
        model.tables_, model.numbers_ = learned


def part_scales(shared: TargetFree, means: np.ndarray) -> dict[str, float]:
    """Return what the means of values are multiplied by: then they differ as mismatches do."""
    out = {}
    for name in shared.counted.owners:
        f = shared.value_shares(name)
        share = f / max(f.sum(), 1e-300)
        size = 1 - share @ share if name in shared.counted.valued else 1.0
        out[name] = scale_to(means[shared.coupled.span(name)], f, size)
    return out


def side_by_side(tables: ValueTables, numbers: Curves | None, discriminant: Space | None) -> Joined:
    """Return tables, curves and the discriminant as one space."""
    spaces: list[Space | None] = [tables if tables.tables else None, numbers, discriminant]
    return Joined([space for space in spaces if space is not None])


def discriminant_space(tables: ValueTables, numbers: Curves | None) -> Space | None:
    """Return what tables and curves add up to."""
    spaces = [*([tables] if tables.tables else []), *(numbers.parts() if numbers else [])]
    return Summed(spaces, "discriminant") if spaces else None


# -- the target ---------------------------------------------------------------------------------


@storable
class Scales(NamedTuple):
    """What parts of the space are multiplied by, as learned from all rows."""

    parts: dict[str, float]  # what values say of the target, by column or part of one
    discriminant: float
    penalty: float  # of the ridge regression that is the discriminant


class Taught(NamedTuple):
    """What the target teaches: tables, curves, and both of the discriminant."""

    tables: ValueTables
    numbers: Curves | None
    linear_tables: ValueTables
    linear_numbers: Curves | None
    scales: Scales


@storable
@dataclass(frozen=True, eq=False)
class Target:
    """Classes as they are, or numbers by the bins they fall in.

    Attributes
    ----------
    numeric : bool
        Whether the target is a number.
    edges, knots : ndarray
        Of a number: the inner edges of its bins; the lowest one, the mean of each bin, the highest.
    """

    numeric: bool = False
    edges: np.ndarray = field(default_factory=lambda: np.zeros(0))
    knots: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, y: Any, n_bins: int, weight: np.ndarray | None = None) -> Target:
        """Tell numbers, which are floats that are not whole or more than 20, from classes."""
        if isinstance(y, str):  # the name of a column
            return cls()
        given = np.asarray(y)
        check_target(given)
        many = given.dtype.kind in "iufMm" and len(distinct := np.unique(given)) > _MOST_CLASSES
        if many:
            check_unit(given)
        if type_of_target(y).startswith("continuous") or (many and given.dtype.kind == "f"):
            return cls.of_numbers(y, n_bins, weight)
        if many:
            warn_caller(
                f"y has {len(distinct)} different whole numbers, which are read as classes; for "
                f"regression, pass floats"
            )
        return cls()

    @classmethod
    def of_numbers(cls, y: Any, n_bins: int, weight: np.ndarray | None = None) -> Target:
        """Cut numbers into quantile bins."""
        values = np.asarray(y, dtype=float).ravel()
        edges = quantile_edges(values, n_bins, weight)
        return cls(True, edges, bin_knots(values, edges, weight))

    def classes(self, y: Any) -> Any:
        """Return classes as they are, and of numbers the bin of each."""
        if not self.numeric:
            return y
        found = binned(np.asarray(y, dtype=float).ravel(), self.edges)
        return np.asarray(found.labels, dtype=object)[found.codes].astype(int)

    def centres(self, classes: Sequence[Any]) -> np.ndarray:
        """Return the mean of the numbers in each bin."""
        return self.knots[1 + np.asarray(classes, dtype=int)]

    def points(self, counts: Counts) -> np.ndarray:
        """Return a point for each class that was counted.

        Classes lie on separate axes, of which all but their common one are kept: so squared
        distances of two distributions are those of their means. Bins lie on a ladder.
        """
        assert counts.classes is not None
        if not self.numeric:
            return np.asarray(helmert(len(counts.classes))).T
        assert counts.class_n is not None
        x = self.centres(counts.classes)
        share = counts.class_n / counts.class_n.sum()
        mean = float(share @ x)
        knots = Knots(x, np.arange(len(x)), share, None)
        return ladder(knots, mean, float(share @ (x - mean) ** 2))


def class_pairs(counts: Counts) -> np.ndarray:
    """Return how often each value occurs with each class."""
    assert counts.class_pairs is not None
    return counts.class_pairs.astype(np.float64)


def aligned(counts: Counts, known: Counts) -> np.ndarray:
    """Return the counts of values with classes in the order of other counts that hold them all."""
    assert known.classes is not None
    out = np.zeros((known.vocabulary.n_values, len(known.classes)))
    if counts.classes is not None:  # rows of weight 0 are counted as none
        rows = counts.vocabulary.reindex(known.vocabulary)
        columns = positions(known.classes, counts.classes)
        out[np.ix_(rows, columns)] = counts.class_pairs
    return out


def gaps_with_classes(coupled: Counts, counted: CountedColumns, schema: Schema) -> list[str]:
    """Return the columns whose gaps depend on the classes."""
    if schema.missing == "value":
        return []
    pairs = class_pairs(coupled)
    depends = class_gap_uncertainty(coupled, pairs, class_shares(coupled, pairs))
    informative = {
        owner
        for owner, uncertainty in zip(counted.groups(coupled), depends, strict=True)
        if uncertainty > MIN_DEPENDENCE
    }
    return [c.name for c in schema.columns if c.missing is None and c.name in informative]


def class_shares(counts: Counts, pairs: np.ndarray) -> np.ndarray:
    """Return the share of each class, from a column with one value a row, if there is one."""
    columns = counts.schema.columns  # type: ignore[union-attr]
    single = next((a for a, column in enumerate(columns) if not column.is_set), 0)
    total = pairs[counts.span(single)].sum(axis=0)
    return np.asarray(total / max(total.sum(), 1e-300))


def conditional_means(
    pairs: np.ndarray, points: np.ndarray, smoothing: float, prior: np.ndarray
) -> np.ndarray:
    """Return ``E[point | value]``, with pseudo-counts of the prior."""
    own = pairs.sum(axis=1, keepdims=True)
    scale = np.where(own + smoothing > 0, own + smoothing, 1)
    return (pairs + smoothing * prior) / scale @ points


def in_few_coordinates(rows: np.ndarray) -> np.ndarray:
    """Return rows in as many coordinates as there are rows, if they have many: lengths stay."""
    few = rows.shape[1] <= max(MANY_CLASSES, len(rows))
    return rows if few else np.linalg.qr(rows.T, mode="r").T


def mean_squared(rows: np.ndarray, f: np.ndarray) -> float:
    """Return the mean squared distance of two rows of a table, drawn by frequency."""
    share = f / max(f.sum(), 1e-300)
    centred = rows - share @ rows
    return 2 * float(share @ (centred**2).sum(axis=1))


def mean_mismatch(own: np.ndarray, f: np.ndarray) -> float:
    """Return what values have of their own between two rows, on average."""
    share = f / max(f.sum(), 1e-300)
    return 2 * float(share @ own - share**2 @ own)


def compact_factors(factors: Factors) -> Factors:
    """Return factors in as few coordinates as they need."""
    return factors if factors.own.any() else Factors(compacted(factors.common), factors.own)


def scale_to(rows: np.ndarray, f: np.ndarray, size: float) -> float:
    """Return what rows are multiplied by to have a mean squared distance."""
    found = mean_squared(rows, f)
    return float(np.sqrt(size / found)) if found > 1e-12 else 0.0


def mean_squared_rows(counts: Counts, rows: np.ndarray) -> float:
    """Return the mean squared distance of two objects that are the sums of their values' rows."""
    return 2 * float((rows * centred_product(counts, rows)).sum()) / counts.n


def most_coefficients(sizes: np.ndarray) -> int:
    """Return how many values of a column have coefficients: 256, or fewer if many columns do."""
    few = (most for most in _FREQUENT if np.minimum(sizes, most).sum() <= _COEFFICIENTS)
    return next(few, _FREQUENT[-1])


class Ridge:
    """Ridge regressions on the same features: what they share is computed once.

    Parameters
    ----------
    gram : ndarray
        The scatter G of the features.
    """

    def __init__(self, gram: np.ndarray) -> None:
        self.n_features = len(gram)
        self._gram: np.ndarray | None = gram
        self._factors: dict[float, Any] = {}

    @cached_property
    def _spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        assert self._gram is not None
        values, axes = eigh(self._gram)
        self._gram = None
        return np.maximum(values, 0)[:, None], axes

    def solve(
        self, response: np.ndarray, total_squares: float, n: float, penalty: float | None = None
    ) -> tuple[np.ndarray, float]:
        """Return ``(G + λI)⁻¹ R`` and λ, by generalised cross-validation unless it is given.

        GCV is ``RSS(λ) / (1 - df(λ)/n)²``, and both follow from the eigenvalues of G and R. Where
        there are many features, λ is 30 and no eigenvalues are computed.
        """
        if not self.n_features:
            return response, 1.0
        if self.n_features > _WIDEST:
            penalty = 30.0 if penalty is None else penalty
            return cho_solve(self._factor(penalty), response), penalty
        values, axes = self._spectrum
        along = axes.T @ response
        if penalty is None:
            scores = {}
            for given in _PENALTIES:
                left = (
                    total_squares - (along**2 * (values + 2 * given) / (values + given) ** 2).sum()
                )
                freedom = (values / (values + given)).sum() + 1
                scores[given] = max(left, 0) / max(1 - freedom / n, 1e-3) ** 2
            penalty = min(scores, key=scores.__getitem__)
        return axes @ (along / (values + penalty)), penalty

    def _factor(self, penalty: float) -> Any:
        """Return what Cholesky makes of the scatter and its penalty: half the time of LU."""
        assert self._gram is not None
        if penalty not in self._factors:
            shifted = self._gram.copy()
            shifted.flat[:: self.n_features + 1] += penalty
            with blas_threads(self.n_features**3 / 6):
                # Transposed, it is in the order of LAPACK, which then works in its memory.
                self._factors[penalty] = cho_factor(shifted.T, lower=True, overwrite_a=True)
        return self._factors[penalty]
