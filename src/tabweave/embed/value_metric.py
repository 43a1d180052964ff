"""ValueMetric: rows compared by any value measure of the register, or by one of your own.

A measure turns counts into a dissimilarity of the values of each column; rows differ by the sum
over columns, looked up and never approximated. For everything that wants vectors, each column is
also embedded by classical scaling, and ``distortion_`` says how well that went.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import warn_caller
from tabweave.columns.column import Schema
from tabweave.columns.table import Table, check_feature_names, remember_names, require_rows
from tabweave.columns.vocabulary import Unknown, Vocabulary
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import check_no_sets, check_table_size, check_values
from tabweave.counts.unknown import check_types, report_unknown, value_vocabulary
from tabweave.embed.base import Embedder, ValueEmbedder
from tabweave.embed.register import embedder
from tabweave.engines.reading import read_pair
from tabweave.engines.reading import read_rows as read_rows_of
from tabweave.io.register import storable
from tabweave.measures.frequency import occurrences
from tabweave.measures.register import MEASURES, Measure, find
from tabweave.space.curves import with_numbers
from tabweave.space.space import Space, labelled
from tabweave.space.value_tables import Dissimilarities, ValueTables, lookup_sum


@embedder(
    "value_metric",
    "rows compared by any measure of values",
    "Boriah, Chandola & Kumar 2008; Zhu 2019, ch. 2",
    offered="python",
    page="measures",
)
class ValueMetric(ValueEmbedder):
    """Embed and compare categorical rows by a published dissimilarity of their values.

    The distance of two rows is the sum over columns of the dissimilarity of their values; no root
    is taken. Every measure is symmetric, non-negative and 0 between equal values;
    ``tabweave.measures.MEASURES[name].metric`` says whether it satisfies the triangle inequality.

    Parameters
    ----------
    measure : str or callable, default="hamming"
        A name of ``tabweave.measures.list_measures()``, or a function from
        :class:`~tabweave.Counts` to a list with one V × V array of dissimilarities per column. A
        function sees the classes if ``y`` is given to ``fit``; of the named measures some need
        ``y`` and the others ignore it.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`. Set-valued columns are an error. Under ``"centroid"`` an
        unknown value is as far from a value as the values of the fitted rows are on average, and
        at 0 from another unknown value; its vector is the column's centroid.

    Attributes
    ----------
    counts_ : Counts
        What was seen.
    measure_ : Measure
        The measure in use: its function, reference and claims.
    dissimilarities_ : list of ndarray of shape (values, values)
        The dissimilarities of the values of each column.
    numerators_, denominators_ : list of ndarray of shape (values, values)
        For the measures that are a ratio of two sums over columns.
    tables_ : ValueTables
        The vector of each value, by classical scaling of its column.
    numbers_ : Curves or None
        The coordinates of numbers, grades and dates; None without any.
    distortion_ : ndarray of shape (columns,)
        How far squared distances of the vectors are from the dissimilarities: the largest error
        in a column over its largest dissimilarity; 0 where the vectors are exact.
    total_distortion_ : float
        The sum of the largest errors over the sum of the largest dissimilarities.
    space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    *Vectors.* Dissimilarities are read as **squared** Euclidean distances, since it is those that
    add up over columns: the Gram matrix of a column is −½ J d J, J centring, with negative
    eigenvalues set to 0. So vectors are exact when d is of negative type, as it is for
    ``hamming``, ``eskin``, ``goodall1`` to ``goodall4``, ``gambaryan``, ``rough``, ``smirnov``.
    `pairwise_distances`, `explain` and `value_distances` do not use the vectors;
    `pairwise_kernel` does.

    *Ratios.* ``lin``, ``lin1`` and ``anderberg`` divide two sums over columns; distances are one
    minus that. Their ``dissimilarities_``, and with them the vectors, are those of each column on
    its own: an approximation of the measure beyond one column.

    *Several columns.* ``jia`` looks at two columns at a time and ``akusok`` at groups of them, so
    values have no distance as such: only `pairwise_distances` exists.

    A column of V values takes memory for V² numbers; its vectors, made when first asked for, take
    time for V³.

    Examples
    --------
    >>> from tabweave import ValueMetric
    >>> rows = {"color": ["red", "blue", "red", "green"], "size": ["S", "S", "L", "S"]}
    >>> metric = ValueMetric("goodall3").fit(rows)
    >>> metric.pairwise_distances(rows).round(2)
    array([[0.  , 0.92, 0.75, 0.92],
           [0.92, 0.  , 1.67, 1.  ],
           [0.75, 1.67, 0.  , 1.67],
           [0.92, 1.  , 1.67, 0.  ]])
    >>> metric.explain({"color": "red", "size": "S"}, {"color": "blue", "size": "L"})
    {'color': 0.91..., 'size': 0.75}
    >>> metric.value_distances("size")
    size     L     S
    size
    L     0.00  0.75
    S     0.75  0.00
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "measure": [str, callable],
    }

    def __init__(
        self,
        measure: str | Callable[[Counts], Sequence[np.ndarray]] = "hamming",
        *,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)
        self.measure = measure

    # -- learning --------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = isinstance(self.measure, str) and (
            self.measure in MEASURES and MEASURES[self.measure].needs_y
        )
        return tags

    def _countable(self, table: Table, y: Any, sample_weight: Any = None) -> tuple[Table, Any]:
        chosen = self._chosen()
        if chosen.form != "pairwise":
            check_values(table, f"measure {chosen.name!r}")
        if chosen.needs_y and y is None:
            raise ValueError(
                f"measure {chosen.name!r} compares values by their classes: ValueMetric requires "
                "y to be passed, but the target y is None"
            )
        _, classes = super()._countable(table, y, sample_weight)
        return table, y if callable(self.measure) else classes

    def fit_counts(self, counts: Counts) -> Self:
        """Learn from counts, however and wherever they were counted."""
        self._validate_params()
        if counts.schema is not None:  # before they replace what was fitted
            check_counts(self._chosen(), counts)
        return super().fit_counts(counts)

    @property
    def has_vectors(self) -> bool:
        """Whether distances are those of vectors, at least nearly."""
        return self._chosen().form != "pairwise"

    def _chosen(self) -> Measure:
        if callable(self.measure):
            name = getattr(self.measure, "__name__", repr(self.measure))
            return Measure(name, self.measure, "given by the user", "")
        return find(self.measure)

    def _learn(self, counts: Counts) -> None:
        chosen, self.numbers_ = self._chosen(), None
        check_counts(chosen, counts)
        self.measure_ = chosen
        if chosen.form == "pairwise":
            self._check_values_only()
            return
        check_table_size(counts, f"measure {self.measure_.name!r}")
        present = counts.present(self._counted.gaps)
        result = self.measure_.function(present)
        if self.measure_.form == "ratio":
            halves = (self._with_missing(half, present) for half in result)
            self.numerators_, self.denominators_ = halves
            result = [one_minus(*pair) for pair in zip(*result, strict=True)]
        tables_of_present = checked(result, self.measure_.name, present)
        self.dissimilarities_ = self._with_missing(tables_of_present, present)
        if len(counts.names) == 1 and counts.sizes[0] > 1 and not self.dissimilarities_[0].any():
            warn_caller(
                f"measure {chosen.name!r} tells no two values of column {counts.names[0]!r} apart: "
                "it compares them by what other columns hold, and there is none; use 'hamming'"
            )
        self._scaling = Scaling(self.dissimilarities_, counts, self._counted.gaps)
        if self._counted.numbered:
            tables = self._scaling.tables
            self._beside, self.numbers_ = with_numbers(tables, counts, self.counts_, self._counted)

    @property
    def _compared(self) -> Counts:
        """What was counted of the columns that are compared."""
        return self._counted.coupled(self.counts_)

    def _with_missing(self, tables: Sequence[np.ndarray], present: Counts) -> list[np.ndarray]:
        """Tables with a line for missing where it is no value: of expected entries."""
        out = []
        for table, labels, f in zip(
            tables, self._compared.labels, occurrences(present), strict=True
        ):
            if len(table) < len(labels):
                order = np.insert(np.arange(len(table)), labels.index(None), len(table))
                table = with_unknown(table, f, again=True)[np.ix_(order, order)]
            out.append(table)
        return out

    @property
    def tables_(self) -> ValueTables:  # type: ignore[override]
        """The vector of each value."""
        if self.measure_.form == "pairwise":  # no vectors, just the vocabulary
            none = [np.zeros((size, 0)) for size in self._compared.sizes]
            return ValueTables.from_features(none, self._compared, compact=False)
        return self._scaling.tables if self.numbers_ is None else self._beside

    @property
    def space_(self) -> Space:
        """The dissimilarities, and the vectors beside them; the vectors, if there are numbers."""
        self._check_tabled()
        if self.numbers_ is not None:
            return super().space_
        options = self._compared.vocabulary, self._lookups, lambda: self.tables_
        if self.measure_.form == "ratio":
            halves = self.numerators_, self.denominators_
            return Ratios(*options, lambda: [self._with_unknown(half) for half in halves])
        return Dissimilarities(*options)

    @property
    def distortion_(self) -> np.ndarray:
        """The relative error of the vectors of each column."""
        return self._scaling.distortion[0]

    @property
    def total_distortion_(self) -> float:
        """The relative error of all vectors together."""
        return self._scaling.distortion[1]

    # -- using -----------------------------------------------------------------------------

    def pairwise_distances(self, X: Any, Y: Any = None) -> np.ndarray:
        """Sums of dissimilarities between the rows of X and of Y (or X), exactly."""
        if self.learn().measure_.form != "pairwise":
            return super().pairwise_distances(X, Y)
        left, right = read_pair(self, X, Y)
        vocabulary = self._compared.vocabulary
        codes = vocabulary.codes(left, self.unknown)
        other_codes = codes if right is None else vocabulary.codes(right, self.unknown)
        present, both = self._compared.present(self._counted.gaps), (codes, other_codes)
        out = self.measure_.function(present, *(self._without_gaps(side) for side in both))
        if right is None:
            np.fill_diagonal(out, 0)
        return out

    def _without_gaps(self, codes: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Codes among the values that are present: a missing one is two past them."""
        out, gaps = [], set(self._counted.gaps)
        for column, name, labels in zip(
            codes, self._compared.names, self._compared.labels, strict=True
        ):
            if name in gaps and None in labels and len(labels) > 1:
                gap = labels.index(None)
                column = np.where(column == gap, len(labels), column - (column > gap))
            out.append(column)
        return out

    def value_distances(self, column: str) -> Any:
        """Dissimilarities of the values of a column, as a labelled pandas frame."""
        self.learn()._check_tabled()
        i = self._compared.vocabulary.index(column)
        return labelled(self.dissimilarities_[i], column, self._compared.labels[i])

    def _lookups(self) -> list[np.ndarray]:
        """Dissimilarities of each column, unknown last."""
        if self.measure_.form == "ratio":
            raise ValueError(
                f"distances of measure {self.measure_.name!r} are ratios of two sums over columns "
                "and do not add up; use pairwise_distances, or transform for an approximation"
            )
        return self._with_unknown(self.dissimilarities_)

    def _with_unknown(self, tables: Sequence[np.ndarray]) -> list[np.ndarray]:
        gaps, out = set(self._counted.gaps), []
        columns = zip(self._compared.names, self._compared.labels, strict=True)
        for table, f, (name, labels) in zip(
            tables, occurrences(self._compared), columns, strict=True
        ):
            missing = [label is None and name in gaps for label in labels]
            f = np.where(missing, 0, f) if not all(missing) else f
            out.append(with_unknown(table, f))
        return out

    def _check_values_only(self) -> None:
        """Raise for a column whose cells are no values, which only a table of values stands for."""
        for part in self._counted.numbered:
            column = self.schema_[self._counted.owners[part]]
            raise ValueError(
                f"column {column.name!r} is {column.kind}; measure {self.measure_.name!r} compares "
                "values of several columns at a time: read it as categories (schema='nominal'), "
                "or leave it out"
            )

    def _check_tabled(self) -> None:
        if self.measure_.form == "pairwise":
            raise ValueError(
                f"expected a measure with a value table, got {self.measure_.name!r}, which looks "
                "at several columns at a time and has no value table; use pairwise_distances"
            )


class Ratios(Dissimilarities):
    """Columns compared by one minus a ratio of two sums of table entries.

    ``halves`` returns, per column, the tables of numerators and those of denominators.
    """

    def __init__(self, vocabulary: Vocabulary, tables: Any, vectors: Any, halves: Any) -> None:
        super().__init__(vocabulary, tables, vectors)
        self.halves = cache(halves)

    def summands(
        self, A: Table, B: Table | None = None, unknown: Unknown = "centroid"
    ) -> np.ndarray:
        """One minus the ratios between rows."""
        codes = self.vocabulary.codes(A, unknown)
        others = codes if B is None or B is A else self.vocabulary.codes(B, unknown)
        out = one_minus(*(lookup_sum(codes, others, half) for half in self.halves()))
        if others is codes:
            np.fill_diagonal(out, 0)
        return out

    def shares(self, A: Table, B: Table, unknown: Unknown = "centroid") -> dict[str, np.ndarray]:
        """Each column's share in one minus the ratio."""
        codes = (self.vocabulary.codes(rows, unknown) for rows in (A, B))
        pairs = list(zip(*codes, strict=True))
        above, below = (
            np.array([table[pair] for table, pair in zip(half, pairs, strict=True)])
            for half in self.halves()
        )
        shares = (below - above) / np.maximum(below.sum(axis=0), np.finfo(float).tiny)
        return dict(zip(self.names, shares, strict=True))


# -- between a measure's tables and a lookup: checks, the unknown value, distortion

ROUNDING = 1e-10  # Errors below this share of the largest entry are rounding.


def check_counts(chosen: Measure, counts: Counts) -> None:
    """Raise an error for columns that no table of values compares, and for missing classes."""
    check_no_sets(counts, "ValueMetric")
    if not chosen.needs_y:
        return
    if counts.classes is None:
        raise ValueError(
            f"measure {chosen.name!r} expected counts with classes, got none; count the rows with y"
        )
    if len(counts.classes) < 2:
        raise ValueError(
            f"measure {chosen.name!r} expected at least two classes in y, got one: "
            f"{counts.classes[0]!r}"
        )


def checked(result: Any, name: str, counts: Counts) -> list[np.ndarray]:
    """Dissimilarities, checked to be such; rounding is tidied away."""
    if not isinstance(result, Sequence) or len(result) != len(counts.names):
        raise ValueError(
            f"expected a list of {len(counts.names)} arrays, one per column, from measure "
            f"{name!r}, got {_described(result)}"
        )
    out = []
    for column, size, table in zip(counts.names, counts.sizes.tolist(), result, strict=True):
        d = np.array(table, dtype=np.float64)
        if fault := _fault(d, size):
            raise ValueError(
                f"expected a table of dissimilarities from measure {name!r} for column "
                f"{column!r}, got {fault}"
            )
        d = np.maximum((d + d.T) / 2, 0)
        np.fill_diagonal(d, 0)
        out.append(d)
    return out


def _described(result: Any) -> str:
    return f"{len(result)}" if isinstance(result, Sequence) else f"a {type(result).__name__}"


def _fault(d: np.ndarray, size: int) -> str:
    """What keeps a table from being one of dissimilarities; an empty text if it is one."""
    if d.shape != (size, size):
        return f"the shape {d.shape}, not {(size, size)}"
    if not np.isfinite(d).all():
        return "entries that are not finite"
    slack = ROUNDING * np.abs(d).max(initial=0)
    if (np.abs(d - d.T) > slack).any():
        return "entries that are not symmetric"
    if (np.abs(np.diagonal(d)) > slack).any():
        return "a diagonal that is not zero"
    return "negative entries" if (d < -slack).any() else ""


def with_unknown(table: np.ndarray, f: np.ndarray, *, again: bool = False) -> np.ndarray:
    """Add an unknown value last: to each value what the fitted rows are on average.

    To another unknown value it is what a row is to itself on average: 0 in a dissimilarity, and
    the same in both halves of a ratio, which is then 1. If values are drawn ``again``, as for two
    missing cells, it is what two rows are to each other.
    """
    share = f / f.sum()
    mean = share @ table
    corner = mean @ share if again else share @ np.diagonal(table)
    return np.block([[table, mean[:, None]], [mean[None, :], np.full((1, 1), corner)]])


def one_minus(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """1 − above / below, and 0 where there is nothing to compare."""
    ratio = np.divide(above, below, out=np.ones_like(below), where=below > 0)
    return np.maximum(1 - ratio, 0)


@storable
@dataclass(frozen=True, eq=False)
class Scaling:
    """Vectors of values, made when first asked for: comparing rows needs none of them."""

    squares: list[np.ndarray]
    counts: Counts
    gaps: list[str]

    @cached_property
    def tables(self) -> ValueTables:
        """The vectors whose squared distances come near, by classical scaling of each column."""
        grams = [d / -2 for d in self.squares]
        return ValueTables.from_grams(grams, self.counts).with_gaps(self.counts, self.gaps)

    @cached_property
    def distortion(self) -> tuple[np.ndarray, float]:
        """The relative error of the vectors' squared distances, per column and in total."""
        errors, largest = np.zeros((2, len(self.squares)))
        for a, (d, squares) in enumerate(zip(self.squares, self.tables.squares(), strict=True)):
            largest[a] = d.max(initial=0)
            error = np.abs(squares[:-1, :-1] - d).max(initial=0)
            errors[a] = error if error > ROUNDING * largest[a] else 0
        share = np.divide(errors, largest, out=np.zeros_like(errors), where=largest > 0)
        return share, float(errors.sum() / max(largest.sum(), np.finfo(float).tiny))


MAX_TABLE_ENTRIES = 1 << 27  # entries of all tables of pairs together: 1 GB


def new_metric(metric: Any, schema: Any = None) -> Any:
    """A metric to be fitted: from a measure's name, or an embedder; one that is fitted as it is."""
    if isinstance(metric, str):
        return ValueMetric(metric, schema=schema)
    if not isinstance(metric, Embedder):
        raise TypeError(
            f"expected metric to be the name of a measure or an embedder, got {metric!r}"
        )
    if schema is not None:
        raise ValueError(f"pass the schema to the metric: {type(metric).__name__}(schema=...)")
    return metric if hasattr(metric, "counts_") else clone(metric)


def fit_metric(
    task: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    schema: Any = None,
    metric: Any = None,
    *,
    whole: bool = True,
) -> Table:
    """Read rows and give a task its ``metric_``: from a measure's name, or from an embedder.

    Names and unfitted embedders are fitted on X (an embedder as a clone); a fitted one is used as
    it is. The metric is the parameter of the task, unless another is given that it stands for.
    ``whole`` says that no other rows will follow.
    """
    metric = new_metric(task.metric if metric is None else metric, schema)
    if hasattr(metric, "counts_"):
        table = read_categories(metric, X, metric.schema_)
    else:
        table = read_categories(metric, X, Schema.of(metric.schema), whole=whole)
        weighted = () if sample_weight is None else (sample_weight,)
        metric.fit(table, y, *weighted)
    task.metric_ = metric
    remember_names(task, metric.schema_)
    return table


def read_rows(task: Any, X: Any) -> Table:
    """Read rows under the schema of the task's metric, names checked as scikit-learn does."""
    structured = getattr(getattr(X, "dtype", None), "names", None) is not None
    if not structured and not isinstance(X, Mapping | list | tuple | Table):
        check_feature_names(task, X, task.metric_.schema_)
    table = read_categories(task.metric_, X, task.metric_.schema_)
    vocabulary = value_vocabulary(task.metric_)
    for name, labels in zip(vocabulary.names, vocabulary.labels, strict=True):
        if hasattr(table[name], "codes"):  # numbers are binned later
            check_types(name, table[name], labels)
    return table


def read_asked(task: Any, X: Any) -> Table:
    """Read rows that are asked about: what fit has not seen is reported, or refused."""
    table = read_rows(task, X)
    if task.metric_.unknown == "centroid":
        report_unknown(task.metric_, table)
    return table


def read_categories(metric: Embedder, X: Any, schema: Schema, *, whole: bool = False) -> Table:
    """Read rows as the metric reads them, under a schema."""
    table = read_rows_of(metric, X, schema, whole=whole)
    if schema.complete and table.schema.names != schema.names:
        raise ValueError(f"expected columns {schema.names}, got {table.schema.names}")
    require_rows(table)
    return table


def value_lookups(metric: ValueEmbedder) -> tuple[list[np.ndarray], bool]:
    """What distances are made of: per column a table over its values, unknown last.

    The distance of two rows is the sum over columns of the entries of their values, or its root if
    the second result is True. Raises ValueError where there are no such tables.
    """
    check_is_fitted(metric, "counts_")
    for column in metric.schema_.columns:
        if column.is_set:
            raise ValueError(f"column {column.name!r} holds sets, which have no table of values")
        if column.kind != "nominal":
            raise ValueError(
                f"column {column.name!r} is {column.kind} and has no table of values; read it as "
                "categories, as in Table.of(X, 'nominal'), or leave it out"
            )
    sizes = metric.counts_.sizes + 1
    if int((sizes.astype(np.int64) ** 2).sum()) > MAX_TABLE_ENTRIES:
        worst = int(np.argmax(sizes))
        raise ValueError(
            f"column {metric.counts_.names[worst]!r} has {sizes[worst] - 1} values, too many for a "
            "table of all pairs; leave it out or group its values"
        )
    space = metric.learn().space_
    if isinstance(space, Dissimilarities):
        tables, root = space.tables(), space.root
    elif isinstance(space, ValueTables) and space.combine != "sum":
        tables, root = space.squares(), True
    else:
        raise ValueError(
            f"distances of {type(metric).__name__} do not add up over tables of values, one a "
            "column: numbers, discriminants and projections have none; use transform"
        )
    by_name = dict(zip(space.names, tables, strict=True))
    columns = zip(metric.counts_.names, sizes.tolist(), strict=True)  # constant ones differ by 0
    tables = [by_name.get(name, np.zeros((size, size))) for name, size in columns]
    return [np.ascontiguousarray(table, np.float64) for table in tables], root


def value_codes(metric: ValueEmbedder, table: Table) -> list[np.ndarray]:
    """Return the codes of each column in the metric's vocabulary; unknown values come last."""
    return metric.counts_.vocabulary.codes(table, metric.unknown)
