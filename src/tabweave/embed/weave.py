"""Weave: couplings of all kinds and scales, woven with fixed, reasoned weights.

The default embedder, for any table. Two values of a column are close if they are about equally
frequent and occur with the same values of other columns, at all scales; two numbers are compared by
their absolute difference and their ranks. The more a column depends on the others, the more it
counts; its scale is that of a plain mismatch. There is no optimisation, so nothing can collapse.
Rows are seen once; learning costs O(V³), not O(n).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np

from tabweave._compat import Interval, warn_caller
from tabweave.base import BinnedEmbedder, ValueEmbedder
from tabweave.columns.column import Column, Schema
from tabweave.columns.decision import Finding
from tabweave.columns.numeric import Knots, step_from
from tabweave.columns.spelling import MANY, Spelling, spelling_of
from tabweave.columns.table import Table
from tabweave.columns.vocabulary import Label, positions
from tabweave.counts import couplings
from tabweave.counts.counting import divisor, most_paired
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import (
    Factors,
    chance_information,
    copies,
    corrected_uncertainty,
    gap_uncertainty,
    information,
)
from tabweave.counts.spectra import leading_axes, principal_axes
from tabweave.embed.register import embedder
from tabweave.space.block import Block, Blocks, Summed
from tabweave.space.numbers import Curves, Numbering, knots_of, moments_of
from tabweave.space.value_tables import ValueTables, along_values, coded

N_BINS = 16
MIN_ROWS_TO_WARN = 100  # Fewer rows are no surprise where nothing is learned.
MOST_COUPLED = 2048  # columns, of which all pairs are counted
_SPELLED = 0.5  # share of spelling in the mismatch of a column of many strings
_LEAST = 0.1  # √ΣSU⁺ of a column that depends on no other
_WEAK = 1 / 20  # largest SU⁺ of two columns, up to which no column is trusted,
_WEAK_SUM = 1 / 8  # unless one has a larger ΣSU⁺ than this
_ROUNDING = 1e-18  # variance of information below which it is none


@embedder(
    "weave",
    "couplings between columns; numbers by differences and ranks",
    "tabweave, from Zhu 2019, ch. 6 and 7",
    reads="mixed",
)
class Weave(BinnedEmbedder, ValueEmbedder):
    """Embed the rows of any table, without labels; the default embedder.

    Two values of a column are close if they are about equally frequent and occur with the same
    values of other columns; two numbers are compared by their difference and their ranks. Columns
    that depend on others count more. Nothing has to be encoded, scaled or imputed first.

    Parameters
    ----------
    n_clusters : int, optional
        Number k of clusters to look for, if known: vectors are projected on the 2k directions in
        which rows differ most (more if the last one is tied with others).
    n_components : int, optional
        Project on this many principal components of the rows, or on fewer if fewer vary. They are
        computed from counts, with numbers at the means of their bins, saved and exported with the
        model, and not changed by new rows. Takes precedence over ``n_clusters``.
    weights : mapping of column to number, optional
        Factors by which the learned weights are multiplied; 0 leaves a column out of distances,
        columns not named have 1.
    max_landmarks : int, default=512
        In a column with more values than this, couplings are computed through this many of its
        most frequent values.
    n_bins : int, default=16
        Number of quantile bins of a numeric column, by which it is coupled to other columns and
        its ranks are known. They follow from all rows that were counted, in whatever order and
        parts. For couplings they are made of at most 126 buckets of each numeric column, and of
        about 2,048 of all of them.
    schema : Schema or mapping of column to kind, optional
        The kinds of the columns that it names; the others are inferred from type, name and values,
        see :meth:`kinds`.
    unknown : {"centroid", "error"}, default="centroid"
        What to do with values not seen in fit: use the column's centroid, or raise an error.
    dtype : {"float64", "float32"}, default="float64"
        Type of the vectors.

    Attributes
    ----------
    weights_ : dict of str to float
        Weight of each column, mean 1.
    gaps_ : dict of str to str
        The columns in which missing counts as a value, since their gaps depend on another column,
        and that column.
    landmarks_ : dict of str to int
        The columns with more than ``max_landmarks`` values, and how many landmarks they have.
    tables_ : ValueTables
        The vectors of the values of the nominal and set columns.
    numbers_ : Curves or None
        The curves of the numeric and ordinal columns.
    level_ : str or None
        Why no couplings were learned, if none were: then all columns weigh alike, and values differ
        by mismatch. With 100 rows or more, :meth:`fit` warns of it.
    blocks_ : Block
        Both together, from which vectors, distances and explanations are computed.
    counts_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    Two values of column a have the squared distance
    ``w_a ((1 - t_a e_a/2) [v ≠ w] + t_a e_a/2 d_a(v, w))``, where e_a (:func:`evidence`) is near 1
    if values occur often, and 1/6 if once. d_a is the mean squared distance over kernels
    of f(v), [p(v|w)] and [p(w|v)], each centred and scaled to unit inertia, and then scaled so that
    its mean over pairs of rows is ``1 - Σf²``, the rate of mismatches. Two numbers have about
    ``w_a |g(x) - g(y)|``, where g is the mean of x in standard deviations and of its rank, each
    scaled to a mean difference of 1; its coordinates are three curves of the column and g itself.

    A missing cell is no value that agrees: it is at its expected distance from every cell, as if
    its value had been drawn at random, and so are two missing cells. Of squared distances that is
    exact: the cell is at the mean of the column, and on an axis that no other cell has. Vectors
    have the mean only: their inner products are those expected, their distances too small by the
    column's variance for each missing cell. A row is at distance 0 from itself in
    :meth:`pairwise_distances`; a row that is asked about is another one than a stored copy of it.
    Couplings of two columns are those of the rows that have values in both. Where gaps inform,
    missing is one more value: where the symmetric uncertainty of a column's gaps with another
    column is above 1/20 beyond chance (``gaps_``, :meth:`kinds`), unless the column says what
    missing is (``Column(..., missing="value")`` or ``"expected"``).

    The weights ``w_a`` are proportional to ``max(√(t_a s_a), 0.1)^¼ / (1 + c_a)``, with ``s_a = Σ_b
    SU⁺_ab``, numbers in bins. A column that says the same as others under other names, as a team
    and its code do, shares one weight with these ``c_a`` copies, and s_a counts what they all say
    once (see :func:`ties`). SU⁺ is the symmetric uncertainty less what chance brings, ``2 max(0, MI
    - E[MI]) / (H_a + H_b)``: E[MI] is the exact mean of the mutual information if one of the
    columns were shuffled, as in adjusted mutual information, so that a column of many values, of
    names or of noise, gains nothing by them. The trust ``t_a`` is 0 if chance explains how the
    column depends on others, or if all dependence is weak (SU⁺ up to 1/20, s up to 1/8), and
    otherwise rises to 1 (see :func:`ties`), so that a full grid of combinations is embedded as by
    one-hot.

    A column of 3 to 128 values takes one dimension per value: the symmetric root of its Gram
    matrix, of all vectors with these distances the nearest to one-hot; where t_a is 0, it is
    one-hot up to scale.

    A column of more than 129 values takes 128 dimensions: 64 in which rows differ most, and 64 for
    a code word of each value's own part. Distances, index and explanations use the own parts
    exactly; distances computed from vectors are off by at most a quarter of them between any two
    of 4,096 values, and exact between the 64 most frequent ones. If at least half of the values are
    strings with a letter, half of the mismatch is one of spelling, by character n-grams, and a
    string not seen in fit lies between those that are spelled like it (:class:`~tabweave.Column`
    has the switch, :mod:`tabweave.columns.spelling` the formulas).

    In tables of more than 2,048 columns pairs are not counted: values differ by mismatch (and
    spelling), numbers as above, and all columns have the same weight. ``n_clusters`` and
    ``n_components`` then raise an error.

    These choices were made on half of the tables of ``benchmarks/arena.py``; the report gives the
    figures of the other half, and what else was tried.

    Examples
    --------
    >>> from tabweave import Weave
    >>> rows = {"job": ["cook", "cook", "clerk", "judge"], "age": [25.0, 31.0, 44.0, None]}
    >>> weave = Weave().fit(rows)
    >>> weave.transform(rows).shape
    (4, 6)
    >>> shares = weave.explain({"job": "cook", "age": 25.0}, {"job": "judge", "age": 44.0})
    >>> {column: round(share, 1) for column, share in shares.items()}
    {'job': 1.0, 'age': 2.2}

    Columns that depend on others weigh more: here the segments of a digit, not the coin flips.

    >>> from tabweave.datasets import led24
    >>> digits = led24(500, random_state=0)
    >>> weave = Weave(n_clusters=10).fit(digits.X)
    >>> weave.transform(digits.X).shape
    (500, 20)
    >>> noise = [w for name, w in weave.weights_.items() if int(name[1:]) >= 7]
    >>> max(noise) < min(w for name, w in weave.weights_.items() if int(name[1:]) < 7)
    True
    """

    _numbers: ClassVar[Literal["numeric", "nominal"]] = "numeric"
    _rules = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "n_clusters": [Interval(Integral, 2, None, closed="left"), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "weights": [Mapping, None],
        "max_landmarks": [Interval(Integral, 2, None, closed="left")],
        "n_bins": [Interval(Integral, 2, 1000, closed="both")],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        n_components: int | None = None,
        weights: Any = None,
        max_landmarks: int = couplings.MAX_LANDMARKS,
        n_bins: int = N_BINS,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.weights = weights
        self.max_landmarks = max_landmarks
        self.n_bins = n_bins

    numbers_: Curves | None
    _smoothing: float = 5.0  # pseudo-counts of the marginal: else rare values ruin couplings
    _kernels: Mapping[str, couplings.Kernel] | None = None  # 11 Gaussians and 3 polynomials

    # -- counting --------------------------------------------------------------------------

    def _count(self, table: Table, y: Any, sample_weight: Any) -> Counts:
        return super()._count(countable(table), y, sample_weight)

    def _expand_rows(self, table: Table, y: Any) -> tuple[Table, Any]:
        """Return a table that can be counted, and its classes."""
        return countable(table), y

    def _reading_of_sources(self) -> dict[str, Any]:
        rules = "whole" if self._rules else None
        return {"numbers": self._numbers, "expand": self._expand_rows, "rules": rules}

    def _check_kinds(self, schema: Schema) -> None:
        """Every kind of column is read."""

    def _coupled(self) -> Counts:
        """Return the counts of values and bins, and of the cycles that datetimes show."""
        counts, parts = self._in_bins(), self._parts()
        named = {*self._valued(), *parts}
        return counts.select([name for name in counts.names if name in named])

    def _informative_gaps(self, coupled: Counts) -> dict[str, str]:
        """Return the columns whose gaps depend on another column, and the one they most do."""
        if not is_coupled(coupled) or len(coupled.names) < 2:
            return {}
        group, parts = np.array(self._groups(coupled)), self._parts()
        depends = gap_uncertainty(coupled)
        depends[group[:, None] == group] = 0
        out = {}
        for name, line in zip(coupled.names, depends, strict=True):
            column = self.schema_[parts[name]]
            if column.missing is None and line.max() > _WEAK:
                out[column.name] = str(group[line.argmax()])
        return out

    def _gap_columns(self) -> list[str]:
        """Return the columns in which missing is no value; where gaps inform, it is one."""
        informs, parts = vars(self).get("gaps_", {}), self._parts()
        return [n for n in super()._gap_columns() if parts.get(n) not in informs]

    def _finding(self, column: Column) -> Finding:
        """Return what a column was read as, and whether its gaps count as a value."""
        found, informs = super()._finding(column), vars(self).get("gaps_", {})
        if column.name not in informs:
            return found
        why = f"{found.why}; missing is a value: it depends on {informs[column.name]!r}"
        return found._replace(why=why)

    def _present(self, coupled: Counts) -> Counts:
        """Return the counts without missing cells, from which couplings are learned."""
        return coupled.present(self._gap_columns())

    def _numbered(self) -> list[str]:
        """Return the columns, or parts of them, that lie on curves."""
        valued = set(self._valued())
        return [name for name in self._parts() if name not in valued]

    def _coupling_line(self) -> str:
        if "counts_" not in vars(self) or self.counts_.schema is None:
            return ""
        if not self.counts_.schema.coupled:
            width = f"{len(self.schema_):,} columns, more than {MOST_COUPLED:,}"
            return f"not coupled: {width}; all weigh alike"
        n_columns = len(self.counts_.schema.numeric)
        most = most_paired(n_columns)
        fewer = most < int(self.n_bins)
        return f"coupled in at most {most} bins each: {n_columns:,} numbers" if fewer else ""

    def _by_part(self, counted: Sequence[str], weights: np.ndarray) -> dict[str, float]:
        """Return the weight of each column or part of one."""
        return dict(zip(counted, weights.tolist(), strict=True))

    def _split_weights(
        self, weights: dict[str, float]
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Return the weight of each column, and of each part: its share of the column.

        They are 1 in the mean, but for the factors that were asked for.
        """
        parts = self._parts()
        sizes = Counter(parts.values())
        asked = checked_weights(self.weights, self.schema_.given)
        shares = {part: weights[part] / sizes[column] for part, column in parts.items()}
        factor = 1.0 if len(parts) == len(sizes) else len(sizes) / max(sum(shares.values()), 1e-300)
        columns = dict.fromkeys(sizes, 0.0)
        for part, column in parts.items():
            shares[part] *= factor * asked.get(column, 1.0)
            columns[column] += shares[part]
        return columns, shares

    # -- learning --------------------------------------------------------------------------

    def _learn_all(self) -> None:
        check_clusters(self.n_clusters, self.counts_)
        if self.n_clusters is not None or self.n_components is not None:
            check_coupled(self.counts_)
        coupled = self._coupled()
        self.gaps_ = self._informative_gaps(coupled)
        tied, trusted, copied = ties(self._present(coupled), self._groups(coupled))
        self._say_what_is_level(coupled, trusted)
        by_part = self._by_part(coupled.names, tie_weights(tied, trusted, copied))
        self.weights_, weights = self._split_weights(by_part)
        self._weave(coupled, weights, self._by_part(coupled.names, trusted))

    def _say_what_is_level(self, coupled: Counts, trusted: np.ndarray) -> None:
        """Keep why no coupling was learned, if none was; warn if there are rows enough."""
        self.level_ = None
        if trusted.any():
            return
        if not is_coupled(coupled):
            self.level_ = f"of more than {MOST_COUPLED:,} columns pairs are not counted"
            return
        if len(self.schema_) < 2:
            self.level_ = "there is one column"
            return
        self.level_ = "no column tells another more than chance does, or only little"
        if coupled.n >= MIN_ROWS_TO_WARN:
            warn_caller(
                f"{type(self).__name__} learned no couplings from these rows: {self.level_}. All "
                f"columns weigh alike, and values differ by mismatch, as in one-hot; with "
                f"weights={{column: factor}} some count more"
            )

    def _groups(self, coupled: Counts) -> list[str]:
        """Return whose part each counted column is: those of one column are no news to another."""
        parts = self._parts()
        return [parts[part] for part in self._by_part(coupled.names, coupled.sizes)]

    def _weave(
        self, coupled: Counts, weights: Mapping[str, float], trusted: Mapping[str, float]
    ) -> None:
        """Learn the tables of values and the curves of numbers."""
        valued = self._valued()
        self.landmarks_: dict[str, int] = {}
        present, spelling = self._present(coupled), self._spelling(coupled)
        features = []
        for name in valued:
            factors = self._couplings(present, name, trusted[name] / 2, spelling.get(name))
            features.append(factors.scaled(weights[name]))
        curves = [self._curve(coupled, name, weights[name]) for name in self._numbered()]
        own = coupled.select(valued)
        if self.n_clusters is None and self.n_components is None:
            rows = [
                with_missing(along_values(factors), labels)
                for factors, labels in zip(features, own.labels, strict=True)
            ]
            plain = ValueTables.from_features(rows, own, compact=False, spelling=spelling)
            self.tables_ = plain.with_unknown_elements(own).with_gaps(own, self._gap_columns())
            self.numbers_ = join_curves(curves, self._numbering.levels)
            return
        tables = {}
        for name, factors, labels in zip(valued, features, own.labels, strict=True):
            f = present.frequencies[present.vocabulary.index(name)]
            tables[name] = with_missing(coded(factors, f), labels, f)
        self.tables_, self.numbers_ = project(
            coupled, tables, curves, self._numbering.levels, self._axes
        )
        spelled = replace(self.tables_, spelling=spelling)
        self.tables_ = spelled.with_unknown_elements(own).with_gaps(own, self._gap_columns())

    def _axes(self, coupled: Counts, tables: list[np.ndarray]) -> np.ndarray:
        """Return the directions that vectors are projected on."""
        if self.n_components is not None:
            return principal_directions(coupled, tables, int(self.n_components))
        return leading_axes(coupled, tables, 2 * int(self.n_clusters))  # type: ignore[arg-type]

    def _spelling(self, coupled: Counts) -> dict[str, Spelling]:
        """Return how the values of columns of many strings are spelled."""
        found: dict[str, Spelling] = {}
        for name in self._valued():
            labels, asked = coupled.labels[coupled.vocabulary.index(name)], self.schema_[name]
            if asked.spelling is not None or len(labels) > MANY:
                spelling = spelling_of(labels, asked.spelling)
                found |= {} if spelling is None else {name: spelling}
        return found

    def _couplings(
        self, coupled: Counts, name: str, share: float, spelling: Spelling | None
    ) -> Factors:
        """Return the factors of a column's values: a share of couplings, the rest mismatch.

        Half of the mismatch is one of spelling, where a column has one.
        """
        a = coupled.vocabulary.index(name)
        f = coupled.frequencies[a]
        landmark_ids = couplings.landmarks(coupled, a, self.max_landmarks)
        if len(landmark_ids) < coupled.sizes[a]:
            self.landmarks_[name] = len(landmark_ids)
        share *= evidence(coupled, a, self._smoothing)
        kernels = couplings.chosen_kernels(self._kernels)
        gram, diagonal = np.zeros((coupled.sizes[a], len(landmark_ids))), np.zeros(coupled.sizes[a])
        spelled = None
        if spelling is not None:
            labels = coupled.labels[a]
            spelled = spelled_factors(spelling, labels, f).scaled((1 - share) * _SPELLED)
        identity = (1 - share) / 2 * (1 if spelled is None else 1 - _SPELLED)
        if share > 0:
            gram, diagonal, mismatch = coupling_gram(
                coupled, a, landmark_ids, kernels, self._smoothing
            )
            gram, diagonal, identity = share * gram, share * diagonal, identity + share * mismatch
        factors = Factors.of(gram, diagonal, identity, landmark_ids).bounded(f)
        if spelled is None:
            return factors
        return replace(factors, own=factors.own + spelled.own).beside(spelled.common).bounded(f)

    def _curve(self, coupled: Counts, name: str, weight: float) -> Curve:
        curve = curve_of(coupled, name, self._numbering, self.counts_)
        return (curve if name in self._gap_columns() else curve.with_missing()).scaled(weight)

    @property
    def blocks_(self) -> Block:
        """Tables and curves, side by side or summed."""
        tables, numbers = self.tables_, vars(self).get("numbers_")
        if numbers is None or tables.combine == "sum":
            return sum_blocks(tables, numbers)
        return Blocks([tables, numbers] if tables.tables else [numbers])

    def lookups(self) -> tuple[list[np.ndarray], bool]:
        """Return what distances are made of: per column a table over its values, unknown last."""
        if self._numbered():
            raise ValueError(
                f"distances of {type(self).__name__} over numbers are not in a table of values; "
                f"use transform"
            )
        return super().lookups()

    def _codes(self, table: Table) -> list[np.ndarray]:
        if self._numbered():
            return self.tables_.codes(table, unknown=self._policy())
        return super()._codes(table)


# -- columns ------------------------------------------------------------------------------------


def with_missing(features: Any, labels: Sequence[Label], f: np.ndarray | None = None) -> Any:
    """Return rows or factors with one for missing, if it is among the labels, but has none yet.

    It is at the mean by frequency, or, without any, at 0.
    """
    rows = features.common if isinstance(features, Factors) else features
    if len(rows) == len(labels):
        return features
    at, mean = list(labels).index(None), 0.0 if f is None else f / f.sum() @ rows
    whole = np.insert(rows, at, mean, axis=0)
    if not isinstance(features, Factors):
        return whole
    return Factors(whole, np.insert(features.own, at, 0.0))


def countable(table: Table) -> Table:
    """Return a table whose values are not counted in pairs if it has too many columns for that."""
    if len(table.schema) <= MOST_COUPLED or not table.schema.coupled:
        return table
    return Table(replace(table.schema, coupled=False), table.columns, table.n_rows)


def ties(counts: Counts, groups: Sequence[str] = ()) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how far columns depend on others, the trust in that, and how many copies each has.

    Columns of one of the ``groups`` are parts of the same, and not compared.

    ``c_ab`` is 1 if two columns say the same under other names, such as a team and its code, and
    near 0 if they merely depend on each other (:func:`~tabweave.counts.couplings.copies`). A column
    has ``c_a = Σ_b c_ab`` copies. What one column says counts once, however many say it:
    ``s_a = Σ_b SU⁺_ab (1 - c_ab) / (1 + c_b)`` is how far it depends on the others.

    ``z_ab`` is how many standard deviations the mutual information of two columns is above its mean
    if one were shuffled (:func:`~tabweave.counts.couplings.chance_information`), and ``z_a`` the
    sum of a column's over the root of their number m. Trust is 0 up to ``z_a = 2`` and 1 from 4 on:
    where columns do not depend on each other, as in a grid of all combinations, conditional
    probabilities differ by chance alone, and a mismatch is all there is to know. So it is where the
    dependence is real but weak: trust is 0 if no ``SU⁺_ab`` is above 1/20 and no sum of them above
    1/8, and whole from 0.06 or 1/4 on. A column of cells that are unique has ``z_ab = 0`` with all
    others: it has no trust, and takes none from them.
    """
    if len(counts.names) < 2 or not is_coupled(counts):
        nothing = np.zeros(len(counts.names))
        return nothing, nothing, nothing
    mutual, marginal, _ = information(counts)
    expected, variance = chance_information(counts)
    _, group = np.unique(groups or counts.names, return_inverse=True)
    same = group[:, None] == group
    for moment in (mutual, expected, variance):
        moment[same] = 0
    alike = copies(counts, mutual, marginal, expected)
    copied = alike.sum(axis=1)
    shared = corrected_uncertainty(counts, mutual, marginal, expected)
    tied = (shared * (1 - alike)) @ (1 / (1 + copied))
    z = (mutual - expected) / np.sqrt(np.maximum(variance, _ROUNDING))
    above = z.sum(axis=1) / np.sqrt(np.maximum((~same).sum(axis=1), 1))
    trust = np.clip(above / 2 - 1, 0, 1)
    # From 0 to 1 between 1/20 and 0.06, or between 1/8 and 1/4.
    strong = max(5 * (shared.max() / _WEAK - 1), shared.sum(axis=1).max() / _WEAK_SUM - 1)
    return tied, trust * np.clip(strong, 0, 1), copied


def evidence(counts: Counts, column: int, smoothing: float) -> float:
    """Return ``e_a = Σ_v c_v/n · c_v / (c_v + 5)``: how far couplings of a column are known.

    What a value is coupled with is known from the rows that have it: of values that occur once,
    hardly anything is.
    """
    times = counts.value_counts[counts.span(counts.names[column])]
    return float((times**2 / (times + smoothing)).sum() / max(times.sum(), 1e-300))


def is_coupled(counts: Counts) -> bool:
    """Tell whether values were counted in pairs."""
    return counts.schema is None or counts.schema.coupled


def tie_weights(tied: np.ndarray, trusted: np.ndarray, copied: np.ndarray) -> np.ndarray:
    """Return ``w_a ∝ max(√(t_a s_a), 0.1)^¼ / (1 + c_a)``, mean 1.

    Columns count as they depend on others, and those that say the same count together as one.
    """
    return mean_one(np.maximum(np.sqrt(trusted * tied), _LEAST) ** 0.25 / (1 + copied))


def coupling_gram(
    counts: Counts,
    column: int,
    landmark_ids: np.ndarray,
    kernels: dict[str, couplings.Kernel],
    smoothing: float,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the mean kernel of a column, its diagonal, and how far a mismatch counts besides.

    Its mean squared distance is the rate of mismatches. Without a kernel that tells values apart,
    as in a full grid of all combinations, a mismatch is all that is known.
    """
    f = counts.frequencies[column]
    share = f / max(f.sum(), 1e-300)  # the elements of sets occur more than once a row
    total, diagonal, n_kernels = couplings.summed_kernels(
        counts, column, landmark_ids, kernels, smoothing
    )
    # Summed kernels have unit inertia by f; distances are those of two elements, drawn by share.
    scale = (1 - share @ share) / 2 * f.sum() / max(n_kernels, 1)
    return total * scale, diagonal * scale, 0.0 if n_kernels else 0.5


def spelled_factors(spelling: Spelling, labels: Sequence[Label], f: np.ndarray) -> Factors:
    """Return the values of a column by spelling, at the mean squared distance of mismatches.

    A value without any n-gram is like no other.
    """
    rows, share = spelling.sketch(), f / max(f.sum(), 1e-300)
    rows = rows[positions(spelling.labels, labels)]
    squares = (rows**2).sum(axis=1)
    own = np.where(squares > 0, 0.0, 1.0)
    centre = share @ rows
    distance = 2 * float(share @ (squares + own) - share**2 @ own - centre @ centre)
    scale = (1 - share @ share) / distance if distance > 1e-12 else 0.0
    return Factors(rows, own).scaled(scale)


@dataclass(frozen=True, eq=False)
class Curve:
    """The curves of one column of numbers, at the knots of its bins.

    ``missing`` is where missing numbers are; None if they are no value: then they are at the mean,
    each on an axis of its own (see :meth:`~tabweave.space.value_tables.ValueTables.with_gaps`).
    """

    name: str
    knots: Knots
    rows: np.ndarray
    missing: np.ndarray | None

    def without_coordinates(self) -> Curve:
        """Return the knots without coordinates, where missing is a value."""
        return replace(self, rows=np.zeros((len(self.knots.x), 0)), missing=np.zeros(0))

    def with_missing(self) -> Curve:
        """Return curves on which missing is a value: an axis for missing numbers, if there are any.

        As the mean of the numbers lies half a mean squared distance from them, so does the axis:
        missing and present numbers are as far apart as two present ones.
        """
        if self.knots.missing is None:
            return self
        rows = np.column_stack([self.rows, np.zeros(len(self.rows))])
        missing = np.append(np.zeros(self.rows.shape[1]), np.sqrt(0.5))
        return replace(self, rows=rows, missing=missing)

    @property
    def gap(self) -> np.ndarray:
        """The coordinates of a missing number."""
        return self.knots.share @ self.rows if self.missing is None else self.missing

    @property
    def spread(self) -> float:
        """How far numbers lie from their mean, squared and on average; 0 if missing is a value."""
        if self.missing is not None:
            return 0.0
        return float(self.knots.share @ ((self.rows - self.gap) ** 2).sum(axis=1))

    def scaled(self, weight: float) -> Curve:
        """Return curves whose squared distances are multiplied."""
        return self._turned(lambda rows: np.sqrt(weight) * rows)

    def along(self, axes: np.ndarray) -> Curve:
        """Return curves along other axes."""
        return self._turned(lambda rows: rows @ axes)

    def _turned(self, turn: Callable[[np.ndarray], np.ndarray]) -> Curve:
        missing = None if self.missing is None else turn(self.missing)
        return replace(self, rows=turn(self.rows), missing=missing)

    def beside(self, rows: np.ndarray, missing: np.ndarray) -> Curve:
        """Return curves with more coordinates: of each of the column's values, and of none."""
        more = replace(self, rows=np.column_stack([self.rows, rows[self.knots.value]]))
        if self.missing is None:
            return more
        gap = missing if self.knots.missing is None else rows[self.knots.missing]
        return replace(more, missing=np.append(self.missing, gap))

    def at_values(self, counts: Counts) -> np.ndarray:
        """Return the coordinates of each bin, as counts have them."""
        column = counts.vocabulary.index(self.name)
        out = np.zeros((counts.sizes[column], self.width))
        value, share = self.knots.value, self.knots.share
        out[value] = self.rows  # of a bin without rows either knot will do
        mass = np.bincount(value, share, len(out))
        out[mass > 0] = 0
        np.add.at(out, value, self.rows * (share / divisor(mass)[value])[:, None])
        if self.knots.missing is not None:
            out[self.knots.missing] = self.gap
        return out

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return int(self.rows.shape[1])


def curve_of(coupled: Counts, part: str, numbering: Numbering, counts: Counts) -> Curve:
    """The curves of numbers, ranks or a cycle: two rows are 1 apart, squared, on average."""
    knots = knots_of(coupled, part, numbering)
    assert counts.schema is not None
    kind = counts.schema.parts[part].cells_type
    rows = kind.curve(part, knots, lambda name: moments_of(counts, name, numbering.levels))
    return Curve(part, knots, rows, None)


def join_curves(curves: Sequence[Curve], levels: Mapping[str, tuple[Label, ...]]) -> Curves | None:
    """Return the curves of all columns as one block; None if there are none."""
    if not curves:
        return None
    kept = [two_knots(curve) for curve in curves]
    return Curves(
        curved=[curve.name for curve in curves],
        knots=[x for x, _ in kept],
        rows=[np.ascontiguousarray(rows) for _, rows in kept],
        missing=[curve.gap for curve in curves],
        spread=[curve.spread for curve in curves],
        levels=dict(levels),
    )


def two_knots(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    """Return knots and rows, at least two: a column of one number lies on a flat line."""
    x, rows = curve.knots.x, curve.rows
    if len(x) >= 2:
        return x, rows
    start = x[0] if len(x) else 0.0
    row = rows[0] if len(rows) else np.zeros(curve.width)
    return np.array([start, start + step_from(start)]), np.stack([row, row])


def project(
    coupled: Counts,
    tables: dict[str, np.ndarray],
    curves: Sequence[Curve],
    levels: Mapping[str, tuple[Label, ...]],
    axes_of: Callable[[Counts, list[np.ndarray]], np.ndarray],
) -> tuple[ValueTables, Curves | None]:
    """Return tables and curves along the axes that counts give, to be summed.

    Parameters
    ----------
    coupled : Counts
        Of the columns that have tables, and of the bins of those that have curves.
    tables : dict
        The vectors of the values of each column.
    curves : sequence of Curve
        The curves of the numbers.
    levels : mapping
        The order of the values of ordinal columns.
    axes_of : callable
        Gives the axes of counts and the vectors of their values.
    """
    own = coupled.select(list(tables))
    vectors = tables | {c.name: c.at_values(coupled) for c in curves}
    order = [name for name in coupled.names if name in vectors]
    axes = axes_of(coupled.select(order), [vectors[name] for name in order])
    edges = np.cumsum([0, *(vectors[name].shape[1] for name in order)])
    along = {n: axes[i:j] for n, i, j in zip(order, edges[:-1], edges[1:], strict=True)}
    turned = [c.along(along[c.name]) for c in curves]
    flat = [rows @ along[name] for name, rows in tables.items()]
    return ValueTables.from_features(flat, own, combine="sum"), join_curves(turned, levels)


def sum_blocks(tables: ValueTables, numbers: Curves | None) -> Block:
    """Return projected tables and curves as one block."""
    if numbers is None:
        return tables
    return Summed([tables, *numbers.parts()] if tables.tables else numbers.parts())


def principal_directions(counts: Counts, tables: list[np.ndarray], n_axes: int) -> np.ndarray:
    """Return the axes of the largest eigenvalues, without those along which nothing varies."""
    values, axes = principal_axes(counts, tables, n_axes)
    return axes[:, values > 1e-9 * values.max(initial=0)]


def checked_weights(weights: Any, names: Sequence[str]) -> dict[str, float]:
    """Return the weights that were given to columns; raise for other columns and other weights."""
    for name, weight in (weights or {}).items():
        if name not in names:
            raise ValueError(f"expected weights of columns {list(names)}, got one of {name!r}")
        if not isinstance(weight, Real) or not 0 <= float(weight) < np.inf:
            raise ValueError(f"expected weights to be numbers >= 0, got {name!r}: {weight!r}")
    return {name: float(weight) for name, weight in (weights or {}).items()}


def check_clusters(n_clusters: int | None, counts: Counts) -> None:
    """Raise for more clusters than rows were counted."""
    # Weights may add up to anything: only whole counts tell the number of rows.
    if n_clusters is not None and isinstance(counts.n, Integral) and n_clusters > counts.n:
        raise ValueError(
            f"expected n_clusters of at most n_samples={counts.n}, got {n_clusters}: look for "
            "fewer clusters"
        )


def check_coupled(counts: Counts) -> None:
    """Raise where values were not counted in pairs, from which directions follow."""
    if not is_coupled(counts):
        raise ValueError(
            f"expected at most {MOST_COUPLED:,} columns with n_clusters or n_components, got "
            f"{len(counts.names):,}: choose columns, or apply scikit-learn's PCA after this "
            f"embedder"
        )


def mean_one(weights: np.ndarray) -> np.ndarray:
    """Return weights scaled to mean 1; all alike if there are none."""
    return weights / weights.mean() if weights.any() else np.ones(len(weights))
