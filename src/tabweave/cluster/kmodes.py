"""KModes: clusters of categories under any measure of values [Huang 1998; Zhu 2019, 4.4.1].

Rows go to the nearest of k centres, centres become what their rows have most of, until nothing
changes. Works on distinct rows with multiplicities and one lookup per row, column and centre.
Centres are histograms of values (:class:`ValueLayout`); the first ones are rows, chosen at random,
by Huang's draw or by Cao's density.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, StrOptions, in_threads, njit, row_slabs, seed_of
from tabweave.base import Estimator, TabularInput
from tabweave.columns.column import Schema
from tabweave.columns.decision import MIN_ROWS_TO_INFER
from tabweave.columns.frames import in_memory
from tabweave.columns.table import (
    Table,
    as_values_or_numbers,
    datetime_as_numeric,
    distinct_rows,
    remember_names,
    take_rows,
)
from tabweave.columns.vocabulary import Label, positions, slices
from tabweave.counts.counts import Counts, checked_weight
from tabweave.counts.unknown import UnknownTally, tallying
from tabweave.embed.base import ValueEmbedder
from tabweave.embed.nonbend import Prior, WeightedRows, expect, first_fit
from tabweave.embed.value_metric import (
    fit_metric,
    new_metric,
    read_asked,
    read_categories,
    read_rows,
    value_codes,
    value_lookups,
)
from tabweave.engines import is_source, open_source
from tabweave.engines.reading import by_parts, read_sampled
from tabweave.engines.source import Work
from tabweave.gpu import arrays as gpu
from tabweave.io.register import storable
from tabweave.measures.frequency import entropy_weights
from tabweave.space.numbers import quantile_bins, with_bins

# -- How many latent classes a table has: mixtures of independent columns, one to many ------------
#
# Each number of classes is fitted by EM to the distinct rows, and fit is weighed against
# parameters. Below it, what every criterion of a number is looked up by.

OF_MIXTURES = ("bic", "aic", "aic3", "adjusted_bic")
_LARGER_IS_BETTER = ("bk", "silhouette", "gap", "stability")


def number_of_classes(table: Table, rng: np.random.Generator) -> int:
    """Number of latent classes by AIC3, for clusterers whose number is "auto"."""
    table, _ = without_texts(table, Schema.of(None))
    scores = mixture_scores(some_rows(table, rng), 15, rng)
    return chosen("aic3", scores["aic3"])


def some_rows(table: Table, rng: np.random.Generator, *, max_rows: int = 5_000) -> Table:
    """A table itself, or rows drawn from it if they are many."""
    if table.n_rows <= max_rows:
        return table
    return take_rows(table, np.sort(rng.permutation(table.n_rows)[:max_rows]))


def without_texts(table: Table, declared: Schema) -> tuple[Table, dict[str, str]]:
    """A table without undeclared columns whose values hardly repeat, and why each was dropped."""
    dropped = {}
    for column in table.schema.categorical:
        if not (column.is_ordered or column.is_set or declared.declares(column.name)):
            times = np.bincount(table[column.name].codes)
            if table.n_rows >= MIN_ROWS_TO_INFER and (times == 1).sum() > table.n_rows / 2:
                dropped[column.name] = "most of its values occur once"
    names = [name for name in table.schema.names if name not in dropped]
    return (table.select(names), dropped) if names else (table, {})


def mixture_scores(
    table: Table,
    max_clusters: int,
    rng: np.random.Generator,
    criterion: str = "aic3",
    n_init: int = 8,
    *,
    patience: int = 3,
) -> dict[str, dict[int, float]]:
    """The information criteria of latent classes, one to many.

    Numbers end three after the best by the criterion that decides.
    """
    coded = in_bins(table)
    counts = Counts.of(coded)
    rows = WeightedRows.of(coded, counts, None)
    n, free = rows.total, int((rows.sizes - 1).sum())
    out: dict[str, dict[int, float]] = {name: {} for name in OF_MIXTURES}
    for k in range(1, min(max_clusters, len(rows.cells)) + 1):
        fit = max(latent_classes(rows, k, rng) for _ in range(n_init if k > 1 else 1))
        n_parameters = k - 1 + k * free
        each = {"bic": np.log(n), "aic": 2.0, "aic3": 3.0, "adjusted_bic": np.log((n + 2) / 24)}
        for name, price in each.items():
            out[name][k] = float(-2 * fit + price * n_parameters)
        if k - chosen(criterion, out[criterion]) >= patience:
            break
    return out


def latent_classes(
    rows: WeightedRows,
    k: int,
    rng: np.random.Generator,
    *,
    max_iter: int = 200,
    pseudo_rows: float = 0.01,
) -> float:
    """Log likelihood of k latent classes, fitted by EM from one start.

    ``pseudo_rows`` are those that a class has of each value before it has any.
    """
    prior = Prior(1.0, pseudo_rows, max(k, 1), rows.offsets)
    first = first_fit(rows, prior, "rows", rng)
    counts, sizes, last_likelihood = first.counts, first.sizes, -np.inf
    widths = np.diff(rows.offsets)
    for _ in range(max_iter):
        total = np.repeat(sizes + pseudo_rows * widths[:, None], widths, axis=0)
        values = np.log((counts + pseudo_rows) / total)
        base = np.log((sizes + pseudo_rows) / (sizes.sum() + pseudo_rows * len(sizes)))
        likelihood, counts, sizes = expect(rows.cells, rows.weight, base, values)
        if likelihood - last_likelihood < 1e-6 * abs(likelihood):
            break
        last_likelihood = likelihood
    return likelihood


def in_bins(table: Table, *, n_bins: int = 6) -> Table:
    """A table of categories: numbers and grades as they are, or in bins.

    Datetimes are numbers here. Their cycles would be columns that depend on each other whatever
    the rows are, and classes of independent columns would multiply to explain that.
    """
    table = datetime_as_numeric(table)
    names = [c.name for c in table.schema.columns if not c.is_set]
    if not names:
        raise ValueError("expected columns of categories or numbers, got sets alone")
    expanded = with_bins(as_values_or_numbers(table).select(names), quantile_bins(table, n_bins))
    return expanded.select([column.name for column in expanded.schema.categorical])


# -- the number that a criterion takes ------------------------------------------------------------


def chosen(criterion: str, scores: dict[int, float]) -> int:
    """The number that a criterion takes; of equals the smallest."""
    if criterion == "gap":
        return _first_gap(scores)
    sign = -1 if criterion in _LARGER_IS_BETTER else 1
    return min(scores, key=lambda k: (sign * scores[k], k))


def _first_gap(scores: dict[int, float]) -> int:
    """The first number whose gap the next does not pass."""
    for k in sorted(scores):
        if k + 1 in scores and scores[k] >= scores[k + 1]:
            return k
    return max(scores)


# -- k-modes --------------------------------------------------------------------------------------

UNKNOWN = "<unknown>"
COST_ROWS = gpu.COST_ROWS
Reach = Callable[[np.ndarray], np.ndarray]  # rows as centres to what each value pays under each


class CenterKind(IntEnum):
    """What stands for a cluster in each column, by the names of the option ``centers``."""

    MODE = 0
    MEDOID = 1
    DISTRIBUTION = 2
    MODE_SHARE = 3


@storable
class KModes(
    TabularInput, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator
):
    """Cluster categorical rows by k-modes, with any measure of dissimilarity.

    Identical rows are collapsed first, so cost depends on the number of distinct rows, and results
    do not depend on the order of rows. Missing is a separate category.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters; at most the number of distinct rows. "auto" takes that of
        :func:`tabweave.cluster.number_of_clusters`.
    metric : str or ValueEmbedder, default="hamming"
        Name of a measure (see :class:`~tabweave.ValueMetric`) or an embedder, fitted on X; an
        embedder that is fitted already is used as it is. Set-valued columns and measures without
        one table per column are refused.
    init : {"random", "huang", "cao"} or array-like of rows, default="random"
        First centres: random rows, rows near to values drawn by frequency, dense rows far from
        each other, or the given ones. The last two are deterministic: one start.
    n_init : int, default=10
        Number of starts; the one with the lowest cost is kept.
    max_iter : int, default=100
        Most steps of a start.
    centers : {"mode", "medoid", "distribution", "mode_share"}, default="mode"
        What stands for a cluster in each column: its most frequent value (as in the papers; the
        first of equals), the value nearest to its members', or all their values (a row's distance
        to the centre is then its mean distance to the members). With "mode_share" a row that has
        the most frequent value still pays for the share of members without it [Ng et al. 2007;
        Zhu 2019, Eq. (2.3)].
    feature_weights : array-like, dict of column to weight or "entropy", optional
        Weights of the columns in the distance; columns absent from a dict weigh 1. "entropy" takes
        those of Cheung and Jia (2013): entropy of a column over its number of values, summing to 1.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row; not there if they were those of a source.
    cluster_centers_ : ndarray of object, or list of dicts
        The values of each centre; with ``centers="distribution"``, per cluster and column the
        share of each value.
    n_clusters_ : int
        The number of clusters.
    cost_ : float
        Sum of the distances to the own centres; of their squares if the metric is Euclidean.
    n_iter_ : int
        Steps of the start that was kept; batches after :meth:`partial_fit`.
    metric_ : ValueEmbedder
        The fitted metric.
    n_features_in_, feature_names_in_ : int, ndarray
        How many columns there are, and their names.

    Notes
    -----
    No step raises the cost under Hamming distance with modes, nor under any measure with medoids.
    Modes under other measures, their shares and distributions carry no such promise: a start then
    ends after three steps without gain, at the best centres seen. Empty clusters take the farthest
    row.

    Examples
    --------
    >>> from tabweave.cluster import KModes
    >>> from tabweave import OneHot
    >>> rows = [["a", "x"], ["a", "y"], ["b", "z"], ["b", "z"]]
    >>> model = KModes(2, metric=OneHot(), random_state=0).fit(rows)
    >>> sorted(model.cluster_centers_.tolist())
    [['a', 'x'], ['b', 'z']]
    >>> model.predict([["b", "y"], ["b", "z"]]) == model.labels_[2]
    array([ True,  True])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "metric": [str, ValueEmbedder],
        "init": [StrOptions({"random", "huang", "cao"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "centers": [StrOptions({kind.name.lower() for kind in CenterKind})],
        "feature_weights": ["array-like", StrOptions({"entropy"}), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        metric: str | ValueEmbedder = "hamming",
        init: Any = "random",
        n_init: int = 10,
        max_iter: int = 100,
        centers: str = "mode",
        feature_weights: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.centers = centers
        self.feature_weights = feature_weights
        self.random_state = random_state

    metric_: ValueEmbedder

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find clusters.

        Parameters
        ----------
        X : frame, array, mapping of columns, list of dicts, or source
            The rows. Columns are read by their type, name and values; one of numbers or dates is an
            error, unless it is read as categories: ``Table.of(X, "nominal")``. Those of a file, a
            query or a frame on a cluster stay where they are: first centres are drawn from 131,072
            of them, each step counts the values of the members of each cluster, and
            :meth:`predict` gives the labels.
        y : array-like, optional
            Classes, for the measures that learn from them; ignored by all others.
        sample_weight : array-like, optional
            A weight for each row: 2 is the same as having the row twice, 0 as not having it.
        """
        return self._fit(X, y, sample_weight, whole=True)

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, whole: bool) -> Self:
        self._validate_params()
        if not in_memory(X) and is_source(X):
            return self._fit_source(X, y, sample_weight)
        table = fit_metric(self, X, y, sample_weight, whole=whole)
        self._layout = ValueLayout.of(self.metric_, self.feature_weights, self.centers)
        weight = checked_weight(sample_weight, table.n_rows)
        indices, weights, inverse = self._layout.distinct(table, weight)
        seen, heavy = indices[weights > 0], weights[weights > 0]
        self.n_clusters_ = self._number(table)
        firsts = self._first_centers(seen, heavy)

        device = gpu.device() if gpu.DeviceRows.holds(heavy) else None
        if device is not None and len(seen) * self.n_clusters_ >= gpu.MIN_DEVICE_PAIRS:
            rows = gpu.DeviceRows(device, seen, heavy)
            results = [
                self._layout.run(lambda reach: step_on_device(rows, reach), first, self.max_iter)
                for first in firsts
            ]
        else:

            def start(histogram: np.ndarray) -> tuple[float, int]:
                members = np.empty_like(histogram)
                return self._layout.run(
                    lambda reach: step(seen, heavy, reach, members), histogram, self.max_iter
                )

            results = in_threads(start, firsts)
        best = min(range(len(results)), key=lambda i: results[i][0])
        self.n_iter_ = max(1, results[best][1])
        self._set_centers(firsts[best])
        self._members = np.zeros_like(firsts[best])
        self._assign(indices, weights, inverse)
        return self

    def _fit_source(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Find clusters of rows that stay where they are: they are only assigned."""
        if sample_weight is not None:
            raise ValueError("sample_weight needs rows in memory; read the source first")
        source = open_source(X)
        self.metric_ = new_metric(self.metric)
        if not hasattr(self.metric_, "counts_"):
            self.metric_.fit(source, y)
        remember_names(self, self.metric_.schema_)
        self._layout = ValueLayout.of(self.metric_, self.feature_weights, self.centers)
        sampled = read_sampled(source)
        table = read_categories(self.metric_, sampled, self.metric_.schema_)
        indices, weights, _ = self._layout.distinct(table)
        self.n_clusters_ = self._number(table)
        firsts = self._first_centers(indices, weights)
        names = source.choose(self.metric_.schema_.names)

        def assign_all(reaches: list[np.ndarray]) -> list[tuple[np.ndarray, float]]:
            assigned = source.run(AssignRows(self._layout, reaches), names)
            return [step.filled() for step in assigned]

        starts = [self._layout.steps(first, self.max_iter) for first in firsts]
        results = run_together(starts, assign_all)
        best = min(range(len(results)), key=lambda i: results[i][0])
        self.n_iter_ = max(1, results[best][1])
        self._set_centers(firsts[best])
        (last,) = source.run(AssignRows(self._layout, [self._reach]), names)
        self._members, self.cost_ = last.members, last.cost
        self.__dict__.pop("labels_", None)  # of other rows; predict has those of a source
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the clusters with a batch of rows.

        The first batch is clustered as by :meth:`fit`. Of later ones every row joins its nearest
        centre, its values are added to that cluster's value counts, and the centres are taken from
        the counts of all batches. A metric that was fitted here learns from the batch first; new
        values join the vocabulary. ``labels_`` and ``cost_`` are those of the batch.
        """
        if not hasattr(self, "_members"):
            return self._fit(X, y, sample_weight, whole=False)
        self._validate_params()
        table = read_rows(self, X)
        weight = checked_weight(sample_weight, table.n_rows)
        if self.metric_ is not self.metric:
            older = self._layout.labels
            self.metric_.partial_fit(table, y, sample_weight)
            self._layout = ValueLayout.of(self.metric_, self.feature_weights, self.centers)
            self._members = self._layout.reindex(self._members, older)
            self._set_centers(self._layout.reindex(self._centers, older))
        self._assign(*self._layout.distinct(table, weight))
        filled = self._members.any(axis=1, keepdims=True)
        self._set_centers(np.where(filled, self._members, self._centers))
        self.n_iter_ += 1
        return self

    def _number(self, table: Table) -> int:
        """The number of clusters, found out if it is not given."""
        if not isinstance(self.n_clusters, str):
            return int(self.n_clusters)
        return number_of_classes(table, np.random.default_rng(seed_of(self.random_state)))

    def _first_centers(self, indices: np.ndarray, weight: np.ndarray) -> list[np.ndarray]:
        """Return, per start, the centres as histograms of one row each."""
        k, layout = self.n_clusters_, self._layout
        if k > len(indices):
            raise ValueError(
                f"expected n_clusters of at most {len(indices)}, the number of distinct rows "
                f"(n_samples={weight.sum():g}), got {k}"
            )
        if not isinstance(self.init, str):
            first_rows = layout.indices(
                read_categories(self.metric_, self.init, self.metric_.schema_)
            )
            if len(first_rows) != k:
                raise ValueError(f"init: expected {k} rows, one per cluster, got {len(first_rows)}")
            return [layout.histogram(first_rows)]
        rng = check_random_state(self.random_state)

        def reach(centers: np.ndarray) -> np.ndarray:
            return layout.reach(layout.histogram(centers))

        if self.init == "cao":
            rows = [cao(indices, weight, k, reach)]
        elif self.init == "huang":
            rows = [huang(indices, weight, k, rng, reach) for _ in range(self.n_init)]
        else:
            rows = [random_rows(weight, k, rng) for _ in range(self.n_init)]
        return [layout.histogram(indices[chosen]) for chosen in rows]

    def _set_centers(self, histogram: np.ndarray) -> None:
        """Take the centres from one histogram of values per cluster."""
        self._centers = histogram
        self._reach = self._layout.reach(histogram)
        self._n_features_out = len(histogram)
        self.cluster_centers_: Any = self._layout.centers(histogram)

    def _assign(self, indices: np.ndarray, weights: np.ndarray, inverse: np.ndarray) -> None:
        """Assign rows to the centres and count their values."""
        labels, distances = nearest(indices, self._reach)
        self.labels_ = labels[inverse]
        self.cost_ = float(total_cost(weights, distances))
        self._members = self._members.copy()
        add_values(indices, weights, labels, self._members)

    @by_parts({"cluster": "int64"})
    def predict(self, X: Any) -> np.ndarray:
        """The nearest cluster of each row."""
        layout, reach = self._clusters()
        indices, _, inverse = layout.distinct(read_asked(self, X))
        return nearest(indices, reach)[0][inverse]

    @by_parts(lambda self, source: dict.fromkeys(self.get_feature_names_out(), "float64"))
    def transform(self, X: Any) -> np.ndarray:
        """The distance of each row to each centre."""
        layout, reach = self._clusters()
        indices, _, inverse = layout.distinct(read_asked(self, X))
        distances = all_distances(indices, reach)
        return (np.sqrt(np.maximum(distances, 0)) if layout.root else distances)[inverse]

    def _clusters(self) -> tuple[ValueLayout, np.ndarray]:
        """What rows are compared with, both of the same batch."""
        check_is_fitted(self, "cluster_centers_")
        return self._layout, self._reach


@storable
@dataclass(frozen=True, eq=False)
class ValueLayout:
    """The values of all columns end to end, an unknown one last in each, and their tables.

    A row is its indices in that sequence; a centre is a histogram over it.
    """

    metric: ValueEmbedder
    kind: int  # of CenterKind
    root: bool
    labels: tuple[tuple[Label, ...], ...]
    offsets: np.ndarray
    tables: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, metric: ValueEmbedder, feature_weights: Any, centers: str) -> ValueLayout:
        """Lay out the tables of a metric, weighted by column."""
        try:
            tables, root = value_lookups(metric)
        except ValueError as error:
            raise ValueError(
                f"k-modes needs a metric with one table of values per column: {error}"
            ) from error
        if isinstance(feature_weights, str):
            feature_weights = entropy_weights(metric.counts_)
        weights = column_weights(feature_weights, metric.counts_.names)
        sizes = np.array([len(table) for table in tables], np.int64)
        return cls(
            metric=metric,
            kind=int(CenterKind[centers.upper()]),
            root=root,
            labels=metric.counts_.labels,
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            tables=np.concatenate([w * t.ravel() for w, t in zip(weights, tables, strict=True)]),
            starts=np.concatenate([[0], np.cumsum(sizes**2)]),
        )

    def _check_loaded(self) -> None:
        sizes = np.array([len(labels) + 1 for labels in self.labels], np.int64)
        for stored, widths in ((self.offsets, sizes), (self.starts, sizes**2)):
            if not np.array_equal(stored, np.concatenate([[0], np.cumsum(widths)])):
                raise ValueError(f"expected tables of {sizes} values, got others")
        if self.tables.shape != (self.starts[-1],):
            raise ValueError(f"expected {self.starts[-1]} cells, got {self.tables.shape}")

    @property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """What compiled loops read of it, in their order."""
        return self.offsets, self.tables, self.starts, self.kind

    def indices(self, table: Table) -> np.ndarray:
        """The indices of the values of each row."""
        return self._shifted(value_codes(self.metric, table), slice(None))

    def distinct(
        self, table: Table, weight: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The indices of the distinct rows, their weights, and the number of each row."""
        codes = value_codes(self.metric, table)
        first, inverse = distinct_rows(codes)
        weights = np.bincount(inverse, weights=weight, minlength=len(first))
        return self._shifted(codes, first), weights.astype(np.float64), inverse

    def _shifted(self, codes: Sequence[np.ndarray], rows: Any) -> np.ndarray:
        numbers = np.arange(len(codes[0]))[rows]
        out = np.empty((len(numbers), len(codes)), np.int32)

        def write(some: slice) -> None:
            for a, column in enumerate(codes):
                out[some, a] = column[numbers[some]] + self.offsets[a]

        in_threads(write, slices(len(numbers), 1, 1 << 13))
        return out

    def histogram(self, indices: np.ndarray) -> np.ndarray:
        """Centres that are one row each."""
        out = np.zeros((len(indices), self.offsets[-1]))
        np.put_along_axis(out, indices.astype(np.int64), 1.0, axis=1)
        return out

    def run(
        self,
        assign_rows: Callable[[np.ndarray], tuple[np.ndarray, float]],
        histogram: np.ndarray,
        max_iter: int,
    ) -> tuple[float, int]:
        """Run k-modes from a first histogram, which becomes that of the best centres."""
        start = self.steps(histogram, max_iter)
        return run_together([start], lambda reaches: [assign_rows(reaches[0])])[0]

    def steps(self, histogram: np.ndarray, max_iter: int) -> Any:
        """The steps of k-modes, as :func:`steps_of`."""
        return steps_of(self._arrays, max_iter, histogram)

    def reach(self, histogram: np.ndarray) -> np.ndarray:
        """What each value pays under each centre, values × centres."""
        out = np.empty(histogram.shape[::-1])
        reach_of(histogram, *self._arrays, out)
        return out

    def centers(self, histogram: np.ndarray) -> Any:
        """The centres for a user: labels, or per column the share of each value."""
        if self.kind == CenterKind.DISTRIBUTION:
            return [self._shares(row) for row in histogram]
        values = np.empty((len(histogram), len(self.labels)), np.int64)
        chosen_values(histogram, *self._arrays, values)
        out = np.empty(values.shape, dtype=object)
        for a, labels in enumerate(self.labels):
            out[:, a] = [(*labels, UNKNOWN)[v] for v in values[:, a]]
        return out

    def _shares(self, row: np.ndarray) -> dict[str, dict[Label, float]]:
        out = {}
        for a, name in enumerate(self.metric.counts_.names):
            counts = row[self.offsets[a] : self.offsets[a + 1]]
            shares = zip((*self.labels[a], UNKNOWN), (counts / counts.sum()).tolist(), strict=True)
            out[name] = {value: share for value, share in shares if share > 0}
        return out

    def reindex(self, histogram: np.ndarray, older: Any) -> np.ndarray:
        """Carry histograms over from older labels; unknown stays unknown."""
        parts, start = [], 0
        for old, new in zip(older, self.labels, strict=True):
            part = np.zeros((len(histogram), len(new) + 1))
            part[:, positions(new, old)] = histogram[:, start : start + len(old)]
            part[:, -1] += histogram[:, start + len(old)]
            start += len(old) + 1
            parts.append(part)
        return np.concatenate(parts, axis=1)


def column_weights(feature_weights: Any, names: Sequence[str]) -> np.ndarray:
    """One weight per column from a mapping or a sequence."""
    if feature_weights is None:
        return np.ones(len(names))
    if isinstance(feature_weights, dict):
        unknown = [name for name in feature_weights if name not in names]
        if unknown:
            raise ValueError(
                f"feature_weights: expected columns {', '.join(map(repr, names))}, got "
                f"{unknown[0]!r}"
            )
        feature_weights = [feature_weights.get(name, 1.0) for name in names]
    weights = np.asarray(feature_weights, dtype=np.float64)
    if weights.shape != (len(names),):
        raise ValueError(
            f"feature_weights: expected one per column, {len(names)}, got shape {weights.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise ValueError(
            f"feature_weights: expected numbers >= 0, got {weights[bad[0]]} for column "
            f"{names[bad[0]]!r}"
        )
    if not weights.any():
        raise ValueError("feature_weights: expected at least one above 0, got zeros only")
    return weights


def random_rows(weight: np.ndarray, k: int, rng: Any) -> np.ndarray:
    """Different rows, k of them, drawn one after the other in proportion to their weights.

    The k largest of ``log(u) / weight`` are such a draw (Efraimidis and Spirakis 2006); it
    depends on distinct rows and their weights only, not on how often or where a row is stored.
    """
    draws = rng.random_sample(len(weight))

    def smallest(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        keys = -np.log(1.0 - draws[rows]) / weight[rows]
        few = np.flatnonzero(keys <= np.partition(keys, k - 1)[k - 1]) if k < len(keys) else ...
        return keys[few], np.arange(rows.start, rows.stop)[few]

    keys, chosen = map(
        np.concatenate, zip(*in_threads(smallest, row_slabs(len(weight))), strict=True)
    )
    return chosen[np.argsort(keys, kind="stable")[:k]]


def huang(indices: np.ndarray, weight: np.ndarray, k: int, rng: Any, reach: Reach) -> np.ndarray:
    """Different rows near to k centres whose values are drawn by frequency [Huang 1998]."""
    drawn = np.empty((k, indices.shape[1]), indices.dtype)
    for a in range(indices.shape[1]):
        share = np.bincount(indices[:, a], weights=weight)
        drawn[:, a] = rng.choice(len(share), size=k, p=share / share.sum())
    chosen: list[int] = []
    for column in all_distances(indices, reach(drawn)).T:
        column = column.copy()
        column[chosen] = np.inf
        chosen.append(int(np.argmin(column)))
    return np.array(chosen)


def cao(indices: np.ndarray, weight: np.ndarray, k: int, reach: Reach) -> np.ndarray:
    """Rows, k of them, that are dense and far from each other [Cao, Liang, Bai 2009].

    The density of a row is the mean frequency of its values; the first centre is the densest row,
    each further one has the largest product of density and distance to its nearest centre.
    """
    density = np.zeros(len(indices))
    for a in range(indices.shape[1]):
        density += np.bincount(indices[:, a], weights=weight)[indices[:, a]]
    chosen = [int(np.argmax(density))]
    nearest = np.full(len(indices), np.inf)
    while len(chosen) < k:
        nearest[chosen[-1]] = -1.0
        chosen.append(
            next_dense(indices, reach(indices[chosen[-1:]])[:, 0].copy(), density, nearest)
        )
    return np.array(chosen)


# -- compiled loops -------------------------------------------------------------------------------
# The values of all columns (an unknown one last in each) are numbered in one sequence; a row is its
# ``indices`` in it. ``reach[v, c]`` is what a row pays for value v if it belongs to centre c, so a
# row's distances to all centres are one vector sum per column.


@njit(nogil=True, cache=True)
def assign(indices, reach, labels, distances):
    """Set the nearest centre of each row (the first of equals) and the distance to it."""
    k = reach.shape[1]
    total = np.empty(k)
    for i in range(len(indices)):
        row = reach[indices[i, 0]]
        for c in range(k):
            total[c] = row[c]
        for a in range(1, indices.shape[1]):
            row = reach[indices[i, a]]
            for c in range(k):
                total[c] += row[c]
        best = 0
        for c in range(1, k):
            if total[c] < total[best]:
                best = c
        labels[i] = best
        distances[i] = total[best]


@njit(nogil=True, cache=True)
def sum_up(indices, reach, out):
    """Set ``out[i, c]`` to the distance of row i to centre c."""
    for i in range(len(indices)):
        for c in range(reach.shape[1]):
            out[i, c] = 0.0
        for a in range(indices.shape[1]):
            row = reach[indices[i, a]]
            for c in range(reach.shape[1]):
                out[i, c] += row[c]


@njit(nogil=True, cache=True)
def next_dense(indices, reach, density, nearest):
    """Lower each row's distance to its nearest centre by a new one; return the best next centre.

    ``near`` is negative for rows that are centres. Cao's score is density times distance.
    """
    best, best_score = -1, -1.0
    for i in range(len(indices)):
        if nearest[i] < 0:
            continue
        total = 0.0
        for a in range(indices.shape[1]):
            total += reach[indices[i, a]]
        nearest[i] = min(nearest[i], total)
        if nearest[i] * density[i] > best_score:
            best, best_score = i, nearest[i] * density[i]
    return best


@njit(nogil=True, cache=True)
def add_values(indices, weight, labels, histogram):
    """Add each row's values to the histogram (k × values) of its cluster."""
    for i in range(len(indices)):
        counts = histogram[labels[i]]
        for a in range(indices.shape[1]):
            counts[indices[i, a]] += weight[i]


@njit(nogil=True, cache=True)
def chosen_values(histogram, offsets, tables, starts, kind, out):
    """Set the value that stands for each cluster and column: the most frequent, or the nearest."""
    for c in range(len(histogram)):
        for a in range(len(offsets) - 1):
            first, size = offsets[a], offsets[a + 1] - offsets[a]
            best, best_score = 0, -np.inf
            for v in range(size):
                score = histogram[c, first + v]
                if tables[starts[a] + v * size + v] > 0:
                    score *= 1e-12  # missing, which is apart from itself: any value is better
                if kind == CenterKind.MEDOID:
                    score = 0.0
                    for u in range(size):
                        score -= histogram[c, first + u] * tables[starts[a] + v * size + u]
                if score > best_score:
                    best, best_score = v, score
            out[c, a] = best


@njit(nogil=True, cache=True)
def reach_of(histogram, offsets, tables, starts, kind, reach):
    """Derive what each value pays under each centre; tell whether anything changed."""
    k, m = len(histogram), len(offsets) - 1
    changed = False
    values = np.empty((k, m), np.int64)
    if kind != CenterKind.DISTRIBUTION:
        chosen_values(histogram, offsets, tables, starts, kind, values)
    for c in range(k):
        for a in range(m):
            first, size = offsets[a], offsets[a + 1] - offsets[a]
            entries = np.zeros(size)
            if kind == CenterKind.DISTRIBUTION:
                _mean_row(histogram[c, first : first + size], tables, starts[a], entries)
            else:
                row = starts[a] + values[c, a] * size
                for u in range(size):  # one by one: slices take numba seconds to compile
                    entries[u] = tables[row + u]
            if kind == CenterKind.MODE_SHARE:
                members, largest = 0.0, entries[0]
                for u in range(size):
                    members += histogram[c, first + u]
                    largest = max(largest, entries[u])
                absent = 1.0 - histogram[c, first + values[c, a]] / members
                entries[values[c, a]] = absent * largest
            for u in range(size):
                changed |= reach[first + u, c] != entries[u]
                reach[first + u, c] = entries[u]
    return changed


@njit(nogil=True, cache=True)
def _mean_row(members, tables, start, out):
    """Average the rows of a table over the members of a cluster; row by row, as memory lies."""
    total, size = 0.0, len(members)
    for v in range(size):
        total += members[v]
    for v in range(size):
        if members[v] > 0:
            share = members[v] / total
            for u in range(size):
                out[u] += share * tables[start + v * size + u]


@njit(nogil=True, cache=True)
def _fill_empty(labels, distances, k):
    """Give each empty cluster the row farthest from its centre, from a cluster that has others."""
    members = np.zeros(k, np.int64)
    for i in range(len(labels)):
        members[labels[i]] += 1
    for c in range(k):
        if members[c]:
            continue
        far = -1
        for i in range(len(labels)):
            if members[labels[i]] > 1 and distances[i] > 0:
                if far < 0 or distances[i] > distances[far]:
                    far = i
        if far >= 0:
            members[labels[far]] -= 1
            members[c] = 1
            labels[far] = c
            distances[far] = 0.0


@njit(nogil=True, cache=True)
def _keep_empty(current, histogram):
    """Give clusters without members the histogram of their best centre."""
    for c in range(len(current)):
        empty = True
        for v in range(current.shape[1]):
            empty &= current[c, v] == 0
        for v in range(current.shape[1] if empty else 0):
            current[c, v] = histogram[c, v]


@njit(nogil=True, cache=True)
def total_cost(weight, distances):
    """Sum up weighted distances, always in the same order: some rows, then the sums of these."""
    total = 0.0
    for begin in range(0, len(weight), COST_ROWS):
        part = 0.0
        for i in range(begin, min(begin + COST_ROWS, len(weight))):
            part += weight[i] * distances[i]
        total += part
    return total


def step(
    indices: np.ndarray, weight: np.ndarray, reach: np.ndarray, members: np.ndarray
) -> tuple[np.ndarray, float]:
    """Assign rows to their nearest centres: the values of members, and what rows pay in all."""
    labels, distances = nearest(indices, reach)
    cost = total_cost(weight, distances)
    count_members(indices, weight, labels, distances, members)
    return members, cost


def step_on_device(rows: gpu.DeviceRows, reach: np.ndarray) -> tuple[np.ndarray, float]:
    """The same of rows that lie on a device."""
    cost, (n_values, n_clusters) = rows.assign(reach), reach.shape
    members = rows.histogram(n_clusters, n_values)
    if not members.any(axis=1).all():
        labels, distances = rows.assigned()
        _fill_empty(labels, distances, n_clusters)
        rows.move(labels)
        members = rows.histogram(n_clusters, n_values)
    return members, cost


def steps_of(
    layout: tuple[np.ndarray, np.ndarray, np.ndarray, int], max_iter: int, histogram: np.ndarray
) -> Generator[np.ndarray, tuple[np.ndarray, float], tuple[float, int]]:
    """Alternate centres and assignments from a first histogram; keep the best centres seen.

    Yields what each value pays under each centre, and is sent the values of the members of each
    cluster and the cost: whoever has the rows assigns them. With modes and Hamming distance no step
    raises the cost. Other measures may, as the mode is not their best centre: the run then ends at
    the best step. Returns (cost, steps) and leaves the histogram that the best centres come from in
    ``histogram``.
    """
    reach = np.full(histogram.shape[::-1], np.nan)
    current = histogram.copy()
    reach_of(current, *layout, reach)
    members, cost = yield reach
    # One row has no shares of a cluster: its cost is not comparable where centres are shares.
    is_shared = layout[-1] in (CenterKind.DISTRIBUTION, CenterKind.MODE_SHARE)
    best = np.inf if is_shared else cost
    worse, steps = 0, 0
    patience = 3  # steps without a lower cost; plateaus are common with categories
    for _ in range(max_iter):
        current[:] = members
        _keep_empty(current, histogram)
        if not reach_of(current, *layout, reach):
            best = cost if best == np.inf else best
            break
        members, cost = yield reach
        steps += 1
        worse = 0 if cost < best else worse + 1
        if cost <= best:
            best = cost
            histogram[:] = current
        if worse == patience:
            break
    return best, steps


def run_together(
    starts: Sequence[Generator[np.ndarray, Any, tuple[float, int]]],
    assign_all: Callable[[list[np.ndarray]], Sequence[Any]],
) -> list[tuple[float, int]]:
    """Run several starts side by side: one pass over the rows is a step of each."""
    results: dict[int, tuple[float, int]] = {}
    reaches = {i: next(start) for i, start in enumerate(starts)}
    while reaches:
        answers = assign_all(list(reaches.values()))
        for i, answer in zip(list(reaches), answers, strict=True):
            try:
                reaches[i] = starts[i].send(answer)
            except StopIteration as end:
                results[i] = end.value
                del reaches[i]
    return [results[i] for i in range(len(starts))]


# -- rows that stay where they are ----------------------------------------------------------------


class Assigned(NamedTuple):
    """What parts of the rows add to a step of k-modes.

    Attributes
    ----------
    members : ndarray
        How often each value occurs in each cluster.
    cost : float
        Sum of the distances.
    far : list of tuple
        The distinct rows farthest from their centres, farthest first: minus the distance, the
        values, the cluster, and how many rows they are.
    """

    members: np.ndarray
    cost: float
    far: list[tuple[float, tuple[int, ...], int, float]]

    def filled(self) -> tuple[np.ndarray, float]:
        """Members and cost; an empty cluster has the farthest row of one that has others."""
        n_columns = len(self.far[0][1]) if self.far else 1
        weights = self.members.sum(axis=1) / n_columns
        for c in np.flatnonzero(weights == 0):
            for i, (distance, values, label, weight) in enumerate(self.far):
                if distance < 0 and weights[label] > weight:
                    self.members[label, list(values)] -= weight
                    self.members[c, list(values)] += weight
                    weights[label] -= weight
                    weights[c] = weight
                    self.far[i] = 0.0, values, int(c), weight
                    break
        return self.members, self.cost


@dataclass(frozen=True)
class AssignRows(Work):
    """Assign rows to the nearest centres of several starts, and count the values of members."""

    layout: ValueLayout
    reaches: list[np.ndarray]

    def __call__(self, batches: Iterable[Any]) -> list[Assigned]:
        """What the rows of a part add to a step of each start."""
        metric = self.layout.metric
        total = [Assigned(np.zeros(reach.shape[::-1]), 0.0, []) for reach in self.reaches]
        for batch in batches:
            with tallying(UnknownTally()):
                table = read_categories(metric, batch, metric.schema_)
            indices, weights, _ = self.layout.distinct(table)
            added = [self._assigned(indices, weights, reach) for reach in self.reaches]
            total = self.merge([total, added])
        return total

    @staticmethod
    def _assigned(indices: np.ndarray, weights: np.ndarray, reach: np.ndarray) -> Assigned:
        labels, distances = nearest(indices, reach)
        members = np.zeros(reach.shape[::-1])
        add_values(indices, weights, labels, members)
        farthest = np.argsort(-distances, kind="stable")[: 2 * reach.shape[1]]
        far = [
            (-float(distances[i]), tuple(indices[i].tolist()), int(labels[i]), float(weights[i]))
            for i in farthest
        ]
        return Assigned(members, float(total_cost(weights, distances)), far)

    def merge(self, results: Sequence[list[Assigned]]) -> list[Assigned]:
        """The same of all parts."""
        return [_added_up(parts) for parts in zip(*results, strict=True)]


def _added_up(parts: Sequence[Assigned]) -> Assigned:
    """What parts of the rows add to one step; equal rows of several parts are one."""
    weights: dict[tuple[float, tuple[int, ...], int], float] = {}
    for part in parts:
        for *row, weight in part.far:
            key = cast(tuple[float, tuple[int, ...], int], tuple(row))
            weights[key] = weights.get(key, 0.0) + weight
    far = [(*key, weights[key]) for key in sorted(weights)[: 2 * len(parts[0].members)]]
    members = np.sum([part.members for part in parts], axis=0)
    return Assigned(members, sum(part.cost for part in parts), far)


@njit(nogil=True, cache=True)
def count_members(indices, weight, labels, distances, histogram):
    """Give empty clusters a row, and count the values of all members into the histogram."""
    _fill_empty(labels, distances, len(histogram))
    histogram[:] = 0.0
    add_values(indices, weight, labels, histogram)


def row_blocks(
    indices: np.ndarray, reach: np.ndarray, *, block_lookups: int = 1 << 21
) -> list[slice]:
    """Cut rows into blocks for threads, large enough to repay starting one."""
    return slices(len(indices), indices.shape[1] * reach.shape[1], block_lookups)


def nearest(indices: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row's nearest centre and its distance, on all cores."""
    labels, distances = np.empty(len(indices), np.int64), np.empty(len(indices))

    def work(rows: slice) -> None:
        assign(indices[rows], reach, labels[rows], distances[rows])

    in_threads(work, row_blocks(indices, reach))
    return labels, distances


def all_distances(indices: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """The distance of each row to each centre, on all cores."""
    out = np.empty((len(indices), reach.shape[1]))

    def work(rows: slice) -> None:
        sum_up(indices[rows], reach, out[rows])

    in_threads(work, row_blocks(indices, reach))
    return out
