"""SupervisedWeave: couplings, and what each value says about the target; from counts with y.

Two values of a column are close if they occur with the same values of other columns and with the
same classes. A column counts as much as it depends on the classes. Beside the columns, one block
holds the linear discriminant of the whole row, solved from pair counts. Rows are seen once. A
numeric target is cut into quantile bins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, helmert
from scipy.special import entr
from sklearn.utils.multiclass import type_of_target

from tabweave._compat import Interval, blas_threads, eigh, warn_caller
from tabweave.base import ValueEmbedder
from tabweave.columns.frames import in_memory, object_array
from tabweave.columns.identifiers import warn_of_predictive
from tabweave.columns.numeric import Knots, ladder
from tabweave.columns.spelling import Spelling
from tabweave.columns.table import Table, take_rows
from tabweave.columns.targets import check_target, check_unit, target_array
from tabweave.columns.vocabulary import positions
from tabweave.counts import couplings
from tabweave.counts.counts import Counts, checked_weight
from tabweave.counts.couplings import Factors
from tabweave.counts.spectra import centred_product, of_means, scatter
from tabweave.embed.register import embedder
from tabweave.embed.weave import (
    N_BINS,
    Curve,
    Weave,
    checked_weights,
    countable,
    is_coupled,
    join_curves,
    mean_one,
    ties,
    with_missing,
)
from tabweave.engines import is_distributed, read_with_classes
from tabweave.io.register import storable
from tabweave.io.store import CacheNotSaved
from tabweave.space.block import Block, Blocks, Summed
from tabweave.space.numbers import Curves, bin_knots, binned, knots_of, quantile_edges
from tabweave.space.value_tables import ValueTables, compacted

T = TypeVar("T")
FOLDS = 5
_MOST_CLASSES = 20  # whole numbers that are surely classes
_FLOOR = 0.01  # least tie of a column, of the largest
_COUPLED = 0.99  # most that couplings count beside a mismatch, lest values of one company coincide
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
class SupervisedWeave(CacheNotSaved, Weave):
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
    tables_, numbers_, landmarks_
        As in :class:`~tabweave.Weave`.
    discriminant_ : Summed
        The discriminant: what each column adds to it.
    counts_, blocks_, schema_
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

    _uses_classes = True
    _takes_numbers = True
    n_clusters = n_components = None
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "discriminant": [Interval(Real, 0, None, closed="left")],
        "weight_power": [Interval(Real, 0, None, closed="left")],
        **{n: Weave._parameter_constraints[n] for n in ("weights", "max_landmarks", "n_bins")},
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
        ValueEmbedder.__init__(self, schema=schema, unknown=unknown, dtype=dtype)
        self.discriminant = discriminant
        self.weight_power = weight_power
        self.weights = weights
        self.max_landmarks = max_landmarks
        self.n_bins = n_bins

    target_: Target
    penalty_: float
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
        self.__dict__.pop("target_", None)
        super().fit(X, y, sample_weight)
        if in_memory(X) and self.schema_.aside:
            warn_of_predictive(X, self.schema_, y)
        return self

    def fit_target(self, X: Any, y: Any, target: Target, sample_weight: Any = None) -> Self:
        """Fit to rows with a target that was read already; for use in ensembles and folds."""
        self.target_ = target
        return self._fit_shared(X, y, sample_weight)

    def fit_counts(self, counts: Counts) -> Self:
        """Learn from counts with classes, however and wherever they were counted."""
        if counts.schema is not None and counts.class_pairs is None:
            raise ValueError("expected counts of rows with y, got counts without classes")
        if "target_" not in vars(self):
            self.target_ = Target()
        return super().fit_counts(counts).release()

    def _count_rows(self, X: Any, y: Any, sample_weight: Any, *, whole: bool = False) -> Counts:
        self.__dict__.pop("_factors", None)  # found on other rows
        return super()._count_rows(X, y, sample_weight, whole=whole)

    def _fit_shared(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows, and keep what folds and other members will learn from, too."""
        self._validate_params()
        return self._start(self._count_rows(X, y, sample_weight, whole=True)).learn()

    def _count(self, table: Table, y: Any, sample_weight: Any) -> Counts:
        self._require_classes(y)
        weight = checked_weight(sample_weight, table.n_rows)
        return super()._count(table, self._classes(y, weight), sample_weight)

    def _expand_rows(self, table: Table, y: Any) -> tuple[Table, Any]:
        """Return a table that can be counted, and the classes that stand for its target."""
        self._require_classes(y)
        return countable(table), self._classes(y)

    def _classes(self, y: Any, weight: np.ndarray | None = None) -> Any:
        """Return the classes of a target; what kind it is, the first rows say."""
        y = y if isinstance(y, str) else target_array(y)
        if "target_" not in vars(self):
            self.target_ = Target.of(y, int(self.n_bins), weight)
        return self.target_.classes(y)

    # -- learning --------------------------------------------------------------------------

    def _learn_all(self) -> None:
        counts = self.counts_
        if counts.classes is None or len(counts.classes) < 2:
            found = counts.classes or ()
            raise ValueError(
                f"{type(self).__name__} expected two classes or more in y, got {len(found)} class: "
                f"{found}"
            )
        coupled, present = self._coupled(), self._present(self._coupled())
        tied = class_ties(present, _pairs(present))
        weights = np.maximum(tied, _FLOOR * tied.max()) ** self.weight_power
        by_part = self._by_part(coupled.names, mean_one(weights))
        self.weights_, self._part_weights = self._split_weights(by_part)
        self._tune()
        self._plain, self.landmarks_ = self._once("plain", partial(self._learn_couplings, coupled))
        taught = self._learn_target(coupled, _pairs(coupled), None)
        self._scales, self.penalty_ = taught.scales, taught.scales.penalty
        self.tables_, self.numbers_ = taught.tables, taught.numbers
        self._linear_tables, self._linear_numbers = taught.linear_tables, taught.linear_numbers

    def tuned_by(self, factors: Mapping[str | None, float]) -> Self:
        """Multiply the weights of columns, and the discriminant, by factors found elsewhere.

        Parameters
        ----------
        factors : mapping of str or None to float
            One for each of :meth:`part_names`. They stay as rows are added.
        """
        self._factors = dict(factors)
        return self._hold(self.counts_)

    def part_names(self) -> list[str | None]:
        """Return the columns, or parts of them, in the order of blocks; None: the discriminant."""
        names: list[str | None] = [*self._valued(), *self._numbered()]
        return [*names, None] if self.discriminant > 0 and self.discriminant_ is not None else names

    def _tune(self) -> None:
        """Multiply weights by the factors; their sum stays."""
        weights, columns = self._part_weights, self._parts()
        self._tuned = dict.fromkeys((*weights, None), 1.0)
        factors = vars(self).get("_factors")
        if factors is None:
            return
        tuned = {part: weight * factors[part] for part, weight in weights.items()}
        scale = sum(weights.values()) / sum(tuned.values())
        self._tuned = {part: scale * factors.get(part, 1.0) for part in self._tuned}
        self._part_weights = {part: scale * weight for part, weight in tuned.items()}
        self.weights_ = dict.fromkeys(self.weights_, 0.0)
        for part, weight in self._part_weights.items():
            self.weights_[columns[part]] += weight

    def _learn_couplings(self, coupled: Counts) -> tuple[dict[str, Factors], dict[str, int]]:
        """Return the couplings of each column's values, and the columns seen by landmarks."""
        self.landmarks_: dict[str, int] = {}
        present = self._present(coupled)
        trusted = self._by_part(coupled.names, ties(present, self._groups(coupled))[1])
        spelling = self._spelling(coupled)
        found = {}
        for name in self._valued():
            share, labels = (
                min(trusted[name], _COUPLED),
                coupled.labels[coupled.vocabulary.index(name)],
            )
            factors = plain(self._couplings(present, name, share, spelling.get(name)))
            found[name] = with_missing(factors, labels)
        return found, self.landmarks_

    # What counts say without the target: folds, and members that differ in weights, share it.

    def _once(self, what: str, find: Callable[[], T]) -> T:
        """Return what the counts say, found once."""
        if vars(self).get("_cache", (None,))[0] is not self.counts_:
            self._cache: tuple[Counts, dict[str, Any]] = self.counts_, {}
        known = self._cache[1]
        if what not in known:
            known[what] = find()
        found: T = known[what]
        return found

    def release(self) -> Self:
        """Drop what folds and other members would share: of many columns it is large."""
        self.__dict__.pop("_cache", None)
        return self

    def _coupled(self) -> Counts:
        return self._once("coupled", super()._coupled)

    def _present(self, coupled: Counts) -> Counts:
        return self._once("present", partial(super()._present, coupled))

    def _value_shares(self, coupled: Counts, counted: str) -> np.ndarray:
        """Return the share of each value of a column; 0 for missing where it is no value."""
        labels = coupled.labels[coupled.vocabulary.index(counted)]
        f = coupled.value_counts[coupled.span(counted)] / coupled.n
        if counted in self._gap_columns():
            f[[label is None for label in labels]] = 0
        return f

    def _own_counts(self, coupled: Counts) -> Counts:
        """Return the counts of the columns whose values have tables."""
        return self._once("valued", lambda: coupled.select(self._valued()))

    def _spelling(self, coupled: Counts) -> dict[str, Spelling]:
        return self._once("spelling", partial(super()._spelling, coupled))

    def _curves(self, coupled: Counts) -> dict[str, Curve]:
        """Return the curves of all numbers, at weight 1."""

        def find() -> dict[str, Curve]:
            return {name: self._curve(coupled, name, 1.0) for name in self._numbered()}

        return self._once("curves", find)

    def _learn_target(self, coupled: Counts, pairs: np.ndarray, scales: Scales | None) -> Taught:
        """Return everything that the target teaches; scales are learned, unless they are given."""
        points, lost = self._class_points(coupled, pairs)
        means = conditional_means(pairs, points, self._smoothing, class_shares(coupled, pairs))
        parts = self._part_scales(coupled, means) if scales is None else scales.parts
        features, curves = self._features_and_curves(coupled, means, parts)
        given = None if scales is None else scales.penalty
        linear, penalty = self._solve_discriminant(coupled, pairs, points, given, lost)
        linear = linear * self._requested_scales(coupled)
        if scales is None:
            factor = self._discriminant_scale(coupled, features, curves, linear)
            scales = Scales(parts, factor, penalty)
        own, spelling = self._own_counts(coupled), self._spelling(coupled)
        tables = ValueTables.from_features(
            list(features.values()), own, compact=False, spelling=spelling
        )
        tables = tables.with_unknown_elements(own).with_gaps(own, self._gap_columns())
        numbers = join_curves(list(curves.values()), self._numbering.levels)
        return Taught(
            tables, numbers, *self._tables_and_curves(coupled, scales.discriminant * linear), scales
        )

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

    def _part_scales(self, coupled: Counts, means: np.ndarray) -> dict[str, float]:
        """Return what the means of values are multiplied by: then they differ as mismatches do."""
        found = {}
        for name in self._parts():
            span, f = coupled.span(name), self._value_shares(coupled, name)
            share = f / max(f.sum(), 1e-300)
            size = 1 - share @ share if name in self._plain else 1.0
            found[name] = scale_to(means[span], f, size)
        return found

    def _features_and_curves(
        self, coupled: Counts, means: np.ndarray, scales: Mapping[str, float]
    ) -> tuple[dict[str, Factors], dict[str, Curve]]:
        """Return values and numbers by couplings and means of the target, as columns weigh."""
        features, curves = {}, {}
        plain_curves, known = self._curves(coupled), self._once("factors", self._compact_factors)
        weights = self._part_weights
        for name in self._parts():
            span = coupled.span(name)
            own = in_few_coordinates(means[span]) * scales[name]
            if name in self._plain:
                features[name] = known[name].beside(own).scaled(weights[name] / 2)
            else:
                f = coupled.value_counts[span] / coupled.n
                curve = plain_curves[name].beside(own, f @ own / f.sum())
                curves[name] = curve.scaled(weights[name] / 2)
        return features, curves

    def _discriminant_scale(
        self,
        coupled: Counts,
        features: Mapping[str, Factors],
        curves: Mapping[str, Curve],
        linear: np.ndarray,
    ) -> float:
        """Return what the discriminant is multiplied by to have its share of the distances."""
        size = mean_squared_rows(coupled, linear) if linear.any() else 0.0
        if not size > 0:
            return 0.0
        total = 0.0
        for name in self._parts():
            f = self._value_shares(coupled, name)
            if name in features:
                factors = features[name]
                mean = mean_squared(factors.common, f) + mean_mismatch(factors.own, f)
            else:
                mean = mean_squared(curves[name].at_values(coupled), f)
            total += mean / self._tuned[name]  # as before it was tuned
        return float(np.sqrt(self.discriminant * self._tuned[None] * total / size))

    def _compact_factors(self) -> dict[str, Factors]:
        """Return the couplings of each column's values in few coordinates."""
        return {name: plain(factors) for name, factors in self._plain.items()}

    def _requested_scales(self, coupled: Counts) -> np.ndarray:
        """Return what each value's lengths are multiplied by: the root of the weight asked for."""
        asked, parts = checked_weights(self.weights, self.schema_.given), self._parts()
        roots = [np.sqrt(asked.get(parts[name], 1.0)) for name in coupled.names]
        return np.repeat(roots, coupled.sizes)[:, None]

    def _tables_and_curves(
        self, coupled: Counts, linear: np.ndarray
    ) -> tuple[ValueTables, Curves | None]:
        """Return a row for each value as tables and curves to be summed."""
        own = self._own_counts(coupled)
        rows = [linear[coupled.span(name)] for name in own.names]
        spelling = self._spelling(coupled)
        summed = ValueTables.from_features(rows, own, combine="sum", spelling=spelling)
        nothing, curves = np.zeros(linear.shape[1]), []
        for name, curve in self._curves(coupled).items():
            values = linear[coupled.span(name)]
            curves.append(curve.without_coordinates().beside(values, nothing))
        return summed, join_curves(curves, self._numbering.levels)

    def _solve_discriminant(
        self,
        coupled: Counts,
        pairs: np.ndarray,
        points: np.ndarray,
        penalty: float | None,
        lost: Any = 0.0,
    ) -> tuple[np.ndarray, float]:
        """Return what each value adds to the discriminant, and the ridge penalty.

        ``lost`` is the squared length that the points of classes lack, for the penalty's choice.
        The bins of a number are steps, each from the bin before: shrunk, they change little.
        """
        if not is_coupled(coupled):  # without pairs there is no discriminant
            return np.zeros((len(pairs), points.shape[1])), 1.0
        bases, solver = self._once("solver", partial(self._solver, coupled))
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

    def _solver(self, coupled: Counts) -> tuple[list[Any], Ridge]:
        """Return the features of all values and what solves for their coefficients."""
        most = most_coefficients(self._own_counts(coupled).sizes)
        bases = [self._basis(coupled, name, most) for name in coupled.names]
        return bases, Ridge(scatter(coupled, bases))

    def _basis(self, coupled: Counts, name: str, most: int) -> Any:
        """Return the features of a column's values with coefficients; sparse if they choose."""
        a = coupled.vocabulary.index(name)
        size = int(coupled.sizes[a])
        if name in self._plain:
            chosen = couplings.landmarks(coupled, a, most)
            ones = np.ones(len(chosen)), (chosen, np.arange(len(chosen)))
            return sparse.csr_array(ones, shape=(size, len(chosen)))
        knots = knots_of(coupled, name, self._numbering)
        order = list(dict.fromkeys(knots.value.tolist()))
        basis = np.zeros((size, max(len(order) - 1, 0) + (knots.missing is not None)))
        for step, value in enumerate(order):
            basis[value, :step] = 1
        if knots.missing is not None:
            basis[knots.missing, -1] = 1
        return basis

    # -- using -----------------------------------------------------------------------------

    @property
    def discriminant_(self) -> Block | None:
        """The linear discriminant: what each column adds to it."""
        return self._summed(self._linear_tables, self._linear_numbers)

    @staticmethod
    def _summed(tables: ValueTables, numbers: Curves | None) -> Block | None:
        blocks = [*([tables] if tables.tables else []), *(numbers.parts() if numbers else [])]
        return Summed(blocks, "discriminant") if blocks else None

    @property
    def blocks_(self) -> Block:
        """Tables, curves and the discriminant, side by side."""
        return self._row(self.tables_, self.numbers_, self.discriminant_)

    def _row(self, tables: ValueTables, numbers: Curves | None, summed: Block | None) -> Blocks:
        blocks: list[Block | None] = [tables if tables.tables else None, numbers]
        blocks += [summed if self.discriminant > 0 else None]
        return Blocks([block for block in blocks if block is not None])

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
        given = self._read_whole(X)
        self._fit_shared(given, y, sample_weight)
        table = self._read_fitted(given)
        out = np.empty((table.n_rows, self.blocks_.width), np.dtype(self.dtype))
        for rows, pairs in self.left_out(table, y, sample_weight):
            block = self.taught_by(pairs)
            part = take_rows(table, rows)
            out[rows] = block.coordinates(part, dtype=out.dtype, unknown=self._policy())
        self.release()
        return out

    def left_out(
        self, table: Table, y: Any, sample_weight: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield parts of rows that were counted, and the counts with classes of all the others."""
        from sklearn.model_selection import KFold

        coupled = self._coupled()
        pairs = _pairs(coupled)
        if table.n_rows < 2:
            yield np.arange(table.n_rows), pairs
            return
        expanded = self._numbering.expand(table).select(coupled.schema.names)  # type: ignore[union-attr]
        alone = replace(expanded.schema, coupled=False)  # only what meets classes is counted
        expanded = Table(alone, expanded.columns, expanded.n_rows)
        classes, weight = self._classes(y), checked_weight(sample_weight, table.n_rows)
        if not hasattr(classes, "__array__"):
            classes = object_array(classes)  # NumPy would make text of 1 beside "a"
        classes = np.asarray(classes)
        parts = KFold(min(FOLDS, table.n_rows), shuffle=True, random_state=0)
        for _, rows in parts.split(classes):
            own_weight = None if weight is None else weight[rows]
            own = Counts.of(take_rows(expanded, rows), classes[rows], sample_weight=own_weight)
            yield rows, pairs - aligned(own, coupled)

    def taught_by(self, pairs: np.ndarray) -> Blocks:
        """Return the blocks that counts of values with classes teach, at the scales of fit."""
        taught = self._learn_target(self._coupled(), pairs, self._scales)
        summed = self._summed(taught.linear_tables, taught.linear_numbers)
        return self._row(taught.tables, taught.numbers, summed)

    def regression(self, pairs: np.ndarray, points: np.ndarray) -> Block | None:
        """Return ridge regression of points, one for each class, as a sum over columns.

        Coordinates are centred: the mean of the points over all rows is not in them.
        """
        coupled = self._coupled()
        rows, _ = self._solve_discriminant(coupled, pairs, points, None)
        count, spans = coupled.value_counts, map(coupled.span, coupled.names)
        means = (count[own] @ rows[own] / max(count[own].sum(), 1e-300) for own in spans)
        shift = sum(means) / len(coupled.names)
        return self._summed(*self._tables_and_curves(coupled, rows - shift))

    def lookups(self) -> tuple[list[np.ndarray], bool]:
        """Raise: the discriminant compares whole rows."""
        raise ValueError(
            f"distances of {type(self).__name__} are not those of single columns; use transform"
        )


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


def _pairs(counts: Counts) -> np.ndarray:
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


def class_ties(counts: Counts, pairs: np.ndarray) -> np.ndarray:
    """Return ``SU⁺ = 2 max(0, MI - E[MI]) / (H(values) + H(classes))`` of each column.

    E[MI] is what shuffled classes would seem to share with it, whatever the number of its values
    (:func:`~tabweave.counts.couplings.chance_information`).
    """
    ties, chance = np.zeros(len(counts.names)), couplings.chance_with_classes(counts, pairs)
    for a in range(len(ties)):
        joint = pairs[counts.span(a)]
        total = joint.sum()
        if not total:  # of sets that are all empty
            continue
        values, classes, both = (
            entr(part / total).sum() for part in (joint.sum(axis=1), joint.sum(axis=0), joint)
        )
        excess = max(values + classes - both - chance[a], 0)
        ties[a] = 2 * excess / max(values + classes, 1e-300)
    return ties


def class_shares(counts: Counts, pairs: np.ndarray) -> np.ndarray:
    """Return the share of each class, from a column with one value a row, if there is one."""
    kinds = [column.kind for column in counts.schema.columns]  # type: ignore[union-attr]
    single = next((a for a, kind in enumerate(kinds) if kind != "set"), 0)
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


def plain(factors: Factors | np.ndarray) -> Factors:
    """Return factors in as few coordinates as they need; files of before have rows."""
    if not isinstance(factors, Factors):
        return Factors(factors, np.zeros(len(factors)))
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
