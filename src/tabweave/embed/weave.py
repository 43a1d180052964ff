"""Weave: couplings of all kinds and scales, woven with fixed, reasoned weights.

The default embedder, for any table. Two values of a column are close if they are about equally
frequent and occur with the same values of other columns, at all scales; two numbers are compared by
their absolute difference and their ranks. The more a column depends on the others, the more it
counts; its scale is that of a plain mismatch. There is no optimisation, so nothing can collapse.
Rows are seen once; learning costs O(V³), not O(n).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from tabweave._compat import Interval, in_threads, warn_caller
from tabweave.columns.column import Schema
from tabweave.columns.spelling import MAX_UNSPELLED_VALUES, Spelling, spelling_of
from tabweave.columns.table import Table
from tabweave.columns.vocabulary import Label, positions
from tabweave.counts import couplings
from tabweave.counts.counting import most_paired
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import (
    Factors,
    chance_information,
    copies,
    corrected_uncertainty,
    gap_uncertainty,
    information,
    neighbor_information,
)
from tabweave.counts.spectra import leading_axes
from tabweave.embed.base import N_BINS, ValueEmbedder
from tabweave.embed.register import embedder
from tabweave.space.curves import (
    Curve,
    column_curve,
    join_curves,
    principal_directions,
    project,
    summed_space,
    with_missing,
)
from tabweave.space.numbers import CountedColumns, Curves
from tabweave.space.space import Space
from tabweave.space.value_tables import ValueTables, along_values, coded

SMOOTHING = 5.0  # Pseudo-counts of the marginal, without which rare values ruin couplings.
MIN_ROWS_TO_WARN = 100  # Fewer rows are no surprise where nothing is learned.
MOST_COUPLED = 2048  # columns, of which all pairs are counted
SPELLED_SHARE = 0.5  # share of spelling in the mismatch of a column of many strings
_LEAST = 0.1  # √ΣSU⁺ of a column that depends on no other
MIN_DEPENDENCE = 1 / 20  # SU⁺ of two columns, or of gaps, that is no longer weak,
_WEAK_SUM = 1 / 8  # and ΣSU⁺ of a column
_ROUNDING = 1e-18  # variance of information below which it is none


@embedder(
    "weave",
    "couplings between columns; numbers by differences and ranks",
    "tabweave, from Zhu 2019, ch. 6 and 7",
    reads="mixed",
)
class Weave(ValueEmbedder):
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
    space_ : Space
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
    one-hot. For a column that is compared by spelling, what strings spelled alike tell of other
    columns is added to ``MI - E[MI]``, the string itself left out and corrected for chance: names
    that tell a group by a part of them count for that, though none occurs twice; random strings
    gain nothing.

    A column of 3 to 128 values takes one dimension per value: the symmetric root of its Gram
    matrix, of all vectors with these distances the nearest to one-hot; where t_a is 0, it is
    one-hot up to scale.

    A column of more than 129 values takes 128 dimensions: 64 in which rows differ most, and 64 for
    a code word of each value's own part. Distances, index and explanations use the own parts
    exactly; distances computed from vectors are off by at most a quarter of them between any two
    of 4,096 values, and exact between the 64 most frequent ones. If at least half of the values are
    text, with a letter or a digit, half of the mismatch is one of spelling, by character n-grams,
    and a string not seen in fit lies between those that are spelled like it
    (:class:`~tabweave.Column` has the switch, :mod:`tabweave.columns.spelling` the formulas).

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

    # -- learning --------------------------------------------------------------------------

    def _countable(self, table: Table, y: Any, sample_weight: Any = None) -> tuple[Table, Any]:
        return countable(table), None

    def _learn(self, counts: Counts) -> tuple[ValueTables, Curves | None]:
        check_clusters(self.n_clusters, self.counts_)
        if self.n_clusters is not None or self.n_components is not None:
            check_coupled(self.counts_)
        self.gaps_ = informative_gaps(counts, self._counted, self.schema_)
        self._counted = counted = self._counted.where_missing_is_a_value(self.gaps_)
        present = counts.present(counted.gaps)
        spelling = spellings(counts, counted.valued, self.schema_)
        tied, trusted, copied = ties(present, counted.groups(counts), spelling)
        self.level_ = why_level(counts, len(self.schema_), trusted)
        weights = tie_weights(tied, trusted, copied)
        factors = checked_weights(self.weights, self.schema_.given)
        self.weights_, part_weights = split_weights(counted, counts, weights, factors)
        learned = ColumnCouplings(present, int(self.max_landmarks), spelling)

        def factors_of(name: str) -> Factors:
            share = trusted[counts.names.index(name)] / 2
            return learned.factors(name, share).scaled(part_weights[name])

        values = dict(zip(counted.valued, in_threads(factors_of, counted.valued), strict=True))
        self.landmarks_ = learned.landmarks(counted.valued)
        curves = [
            column_curve(part, counts, self.counts_, counted).scaled(part_weights[part])
            for part in counted.numbered
        ]
        valued = counts.select(counted.valued)
        if self.n_clusters is None and self.n_components is None:
            rows = [
                with_missing(along_values(factors), labels)
                for factors, labels in zip(values.values(), valued.labels, strict=True)
            ]
            tables = ValueTables.from_features(rows, valued, compact=False, spelling=spelling)
            numbers = join_curves(curves, counted.numbering.levels)
        else:
            tables, numbers = self._projected(counts, values, curves)
            tables = replace(tables, spelling=spelling)
        return tables.with_unknown_elements(valued).with_gaps(valued, counted.gaps), numbers

    def _projected(
        self, counts: Counts, values: Mapping[str, Factors], curves: Sequence[Curve]
    ) -> tuple[ValueTables, Curves | None]:
        """Return tables and curves along the directions in which rows differ most."""
        present, tables = counts.present(self._counted.gaps), {}
        for name, factors in values.items():
            a = present.vocabulary.index(name)
            f = present.frequencies[a]
            labels = counts.labels[counts.vocabulary.index(name)]
            tables[name] = with_missing(coded(factors, f), labels, f)
        if self.n_components is not None:
            axes_of = partial(principal_directions, n_axes=int(self.n_components))
        else:
            axes_of = partial(leading_axes, n_axes=2 * int(self.n_clusters))  # type: ignore[arg-type]
        return project(counts, tables, curves, self._counted.numbering.levels, axes_of)

    @property
    def space_(self) -> Space:
        """Tables and curves, side by side or summed."""
        if self.tables_.combine == "sum":
            return summed_space(self.tables_, self.numbers_)
        return super().space_

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return "\n".join(filter(None, [super().__repr__(N_CHAR_MAX), coupling_line(self)]))


# -- columns ------------------------------------------------------------------------------------


def informative_gaps(coupled: Counts, counted: CountedColumns, schema: Schema) -> dict[str, str]:
    """Return the columns whose gaps depend on another column, and the one they most do."""
    if not is_coupled(coupled) or len(coupled.names) < 2:
        return {}
    group = np.array(counted.groups(coupled))
    depends = gap_uncertainty(coupled)
    depends[group[:, None] == group] = 0
    out = {}
    for owner, line in zip(group.tolist(), depends, strict=True):
        if schema[owner].missing is None and line.max() > MIN_DEPENDENCE:
            out[owner] = str(group[line.argmax()])
    return out


def why_level(coupled: Counts, n_columns: int, trusted: np.ndarray) -> str | None:
    """Return why no coupling was learned, if none was; warn if there are rows enough."""
    if trusted.any():
        return None
    if not is_coupled(coupled):
        return f"of more than {MOST_COUPLED:,} columns pairs are not counted"
    if n_columns < 2:
        return "there is one column"
    reason = "no column tells another more than chance does, or only little"
    if coupled.n >= MIN_ROWS_TO_WARN:
        warn_caller(
            f"Weave learned no couplings from these rows: {reason}. All columns weigh alike, and "
            f"values differ by mismatch, as in one-hot; with weights={{column: factor}} some "
            f"count more"
        )
    return reason


def split_weights(
    counted: CountedColumns, coupled: Counts, weights: np.ndarray, factors: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the weight of each column, and of each part: its share of the column.

    They are 1 in the mean, but for the factors that were asked for.
    """
    by_part, owners = dict(zip(coupled.names, weights.tolist(), strict=True)), counted.owners
    sizes = Counter(owners.values())
    shares = {part: by_part[part] / sizes[column] for part, column in owners.items()}
    scale = 1.0 if len(owners) == len(sizes) else len(sizes) / max(sum(shares.values()), 1e-300)
    columns = dict.fromkeys(sizes, 0.0)
    for part, column in owners.items():
        shares[part] *= scale * factors.get(column, 1.0)
        columns[column] += shares[part]
    return columns, shares


def spellings(coupled: Counts, valued: Sequence[str], schema: Schema) -> dict[str, Spelling]:
    """Return how the values of columns of many strings are spelled."""
    out: dict[str, Spelling] = {}
    for name in valued:
        labels, declared = coupled.labels[coupled.vocabulary.index(name)], schema[name].spelling
        if declared is not None or len(labels) > MAX_UNSPELLED_VALUES:
            spelling = spelling_of(labels, declared)
            out |= {} if spelling is None else {name: spelling}
    return out


class ColumnCouplings:
    """The factors of a column's values: a share of couplings, the rest mismatch and spelling.

    Half of the mismatch is one of spelling, where a column has one.

    Parameters
    ----------
    coupled : Counts
        What values occur with; a missing cell that is no value is not among them.
    max_landmarks : int
        The number of values through which the couplings of a column of more are computed.
    spelling : mapping
        How the values of some columns are spelled.

    """

    def __init__(
        self, coupled: Counts, max_landmarks: int, spelling: Mapping[str, Spelling]
    ) -> None:
        self.coupled = coupled
        self.max_landmarks = max_landmarks
        self.spelling = spelling

    def landmarks(self, names: Sequence[str]) -> dict[str, int]:
        """The columns that are seen through landmarks, and how many these are."""
        sizes = dict(zip(self.coupled.names, self.coupled.sizes.tolist(), strict=True))
        return {name: self.max_landmarks for name in names if sizes[name] > self.max_landmarks}

    def factors(self, name: str, share: float) -> Factors:
        """Return the factors of a column, a share of them couplings."""
        coupled, spelling = self.coupled, self.spelling.get(name)
        a = coupled.vocabulary.index(name)
        f, size = coupled.frequencies[a], coupled.sizes[a]
        landmark_ids = couplings.landmarks(coupled, a, self.max_landmarks)
        share *= evidence(coupled, a, SMOOTHING)
        gram, diagonal = np.zeros((size, len(landmark_ids))), np.zeros(size)
        spelled = None
        if spelling is not None:
            labels = coupled.labels[a]
            spelled = spelled_factors(spelling, labels, f).scaled((1 - share) * SPELLED_SHARE)
        identity = (1 - share) / 2 * (1 if spelled is None else 1 - SPELLED_SHARE)
        if share > 0:
            kernels = couplings.chosen_kernels(None)
            gram, diagonal, mismatch = coupling_gram(coupled, a, landmark_ids, kernels, SMOOTHING)
            gram, diagonal, identity = share * gram, share * diagonal, identity + share * mismatch
        factors = Factors.of(gram, diagonal, identity, landmark_ids).bounded(f)
        if spelled is None:
            return factors
        return replace(factors, own=factors.own + spelled.own).beside(spelled.common).bounded(f)


def coupling_line(embedder: Any) -> str:
    """Return what is to be said of a table too wide for all couplings; nothing of others."""
    counts, n_bins = embedder.__dict__.get("counts_"), getattr(embedder, "n_bins", None)
    if counts is None or counts.schema is None or n_bins is None:
        return ""
    if not counts.schema.coupled:
        width = f"{len(embedder.schema_):,} columns, more than {MOST_COUPLED:,}"
        return f"not coupled: {width}; all weigh alike"
    n_numbers = len(counts.schema.numeric)
    max_bins = most_paired(n_numbers)
    fewer = max_bins < int(n_bins)
    return f"coupled in at most {max_bins} bins each: {n_numbers:,} numbers" if fewer else ""


def countable(table: Table) -> Table:
    """Return a table whose values are not counted in pairs if it has too many columns for that."""
    if len(table.schema) <= MOST_COUPLED or not table.schema.coupled:
        return table
    return Table(replace(table.schema, coupled=False), table.columns, table.n_rows)


def ties(
    counts: Counts, groups: Sequence[str] = (), spelling: Mapping[str, Spelling] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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

    Where columns have a ``spelling``, ``MI - E[MI]`` and its variance have those of
    :func:`told_by_spelling` added: strings that hardly repeat are judged by those spelled alike.
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
    if spelling:
        told, uncertain = told_by_spelling(counts, spelling)
        least = np.minimum(marginal, marginal.T)
        mutual = np.where(same, 0, expected + np.minimum(mutual - expected + told, least))
        variance = np.where(same, 0, variance + uncertain)
    shared = corrected_uncertainty(counts, mutual, marginal, expected)
    tied = (shared * (1 - alike)) @ (1 / (1 + copied))
    z = (mutual - expected) / np.sqrt(np.maximum(variance, _ROUNDING))
    above = z.sum(axis=1) / np.sqrt(np.maximum((~same).sum(axis=1), 1))
    trust = np.clip(above / 2 - 1, 0, 1)
    # From 0 to 1 between 1/20 and 0.06, or between 1/8 and 1/4.
    strong = max(5 * (shared.max() / MIN_DEPENDENCE - 1), shared.sum(axis=1).max() / _WEAK_SUM - 1)
    return tied, trust * np.clip(strong, 0, 1), copied


def told_by_spelling(
    counts: Counts, spelling: Mapping[str, Spelling]
) -> tuple[np.ndarray, np.ndarray]:
    """Return what strings spelled alike tell of other columns, in nats, and its variance.

    At most 512 strings of a column are asked, at equal steps. For two columns of strings it is the
    mean of both directions; of sets nothing, since elements of a row would tell what it has.
    """
    told, variance = np.zeros((2, len(counts.names), len(counts.names)))
    directions = np.zeros_like(told)
    for name, spelled in spelling.items():
        a = counts.names.index(name)
        if counts.schema is not None and counts.schema.categorical[a].is_set:
            continue
        at = positions(spelled.labels, counts.labels[a])
        asked = np.unique(np.linspace(0, len(at) - 1, couplings.MAX_LANDMARKS).astype(np.intp))
        nearest = spelled.neighbors(at[asked])[:, at]
        told[a], variance[a] = neighbor_information(counts, a, asked, nearest)
        directions[a] += 1
        directions[:, a] += 1
    scale = np.maximum(directions, 1)
    return (told + told.T) / scale, (variance + variance.T) / scale


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
