"""RowModel: what the cells of a row say of each other, learned once, asked about any cell.

Two engines look at a cell: a regression on the other cells, from sums of products over all rows,
and a mixture of independent parts (:class:`~tabweave.NonBEND`), which needs nothing of the gaps of
the row. :class:`~tabweave.OutlierCells` asks about cells that are there;
:class:`~tabweave.tasks.impute.GapFiller` asks about gaps, and the nearest rows beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotrf
from scipy.sparse import coo_array, csr_array

from tabweave._compat import eigh, one_blas_thread, seed_of
from tabweave.columns.column import Column, Schema
from tabweave.columns.datetime import Datetimes
from tabweave.columns.inputs import read_with_fitted_schema
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets
from tabweave.columns.table import (
    Table,
    other_kinds_as_values,
    remember_names,
    require_rows,
    take_rows,
)
from tabweave.columns.vocabulary import Label, order, positions
from tabweave.counts.unknown import check_types
from tabweave.embed.nonbend import VI, NonBEND, subspace_weights, value_probabilities
from tabweave.engines.reading import read_sampled
from tabweave.io.register import storable
from tabweave.space.numbers import binned, quantile_bins

MAX_GUESSED_VALUES = 200  # Rarer values of a column are neither guessed nor looked at.
PRIOR_ROWS = 5.0  # The shares of a column count as so many rows in p(value | other value).


@storable
@dataclass(frozen=True, eq=False)
class NumberBins:
    """How numbers of a column are coded: by quantile bins, and in deviations from their mean.

    Attributes
    ----------
    edges : ndarray
        The inner edges of the bins.
    numbers : list of ndarray
        The numbers of each bin that has some, as fit has seen them, at most a thousand of each.
    mean, deviation : float
        Those of all numbers.
    is_dated : bool
        Whether they are seconds since 1970.
    """

    edges: np.ndarray
    numbers: list[np.ndarray]
    mean: float
    deviation: float
    is_dated: bool

    @classmethod
    def of(cls, data: Numbers, edges: np.ndarray) -> NumberBins:
        """Learn from a column."""
        present = np.sort(data.values[~np.isnan(data.values)])
        bins = np.searchsorted(edges, present, side="right")
        parts = [present[bins == b] for b in np.unique(bins)]
        few = [p[np.linspace(0, len(p) - 1, min(len(p), 1000)).astype(int)] for p in parts]
        return cls(edges, few, *mean_and_deviation(present), data.is_dated)

    @cached_property
    def means(self) -> np.ndarray:
        """The mean standardised number of each bin."""
        return np.array([self.standardised(part).mean() for part in self.numbers])

    def standardised(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers in deviations from the mean; their squares are finite."""
        with np.errstate(over="ignore"):
            return np.clip((numbers - self.mean) / self.deviation, -1e100, 1e100)

    def as_written(self, z: np.ndarray) -> np.ndarray:
        """Numbers within the range of the column, with as many decimals as it has.

        Dates are at its resolution: days, hours, minutes or seconds.
        """
        seen = np.concatenate(self.numbers)
        with np.errstate(over="ignore"):
            numbers = z * self.deviation + self.mean
        if self.is_dated:
            numbers = Datetimes(seen).nearest(numbers)
        elif (places := decimal_places(seen)) is not None:
            numbers = np.round(numbers, places) + 0.0  # no negative zero
        return np.clip(numbers, seen.min(), seen.max())  # no people of a negative age

    def bin_text(self, code: int) -> str:
        """A bin as people read it, from its lowest to its highest number."""
        part = self.numbers[code]
        show = Datetimes(part).text if self.is_dated else readable
        low, high = show(float(part.min())), show(float(part.max()))
        return str(low) if low == high else f"{low}…{high}"


@storable
@dataclass(frozen=True, eq=False)
class LearnedColumn:
    """How the cells of a column are coded: by its frequent values, or bins of its numbers.

    Attributes
    ----------
    name : str
        The column.
    labels : tuple
        Its values, of numbers the bins that have some; missing left out.
    is_set : bool
        Whether a cell has several of them.
    bins : NumberBins or None
        The bins of numbers.
    """

    name: str
    labels: tuple[Label, ...]
    is_set: bool
    bins: NumberBins | None

    @classmethod
    def of(cls, name: str, data: Any, edges: np.ndarray | None) -> LearnedColumn:
        """Learn from a column; ``edges`` are those of the bins of numbers."""
        if edges is None:
            return cls(name, frequent_labels(data), data.is_set, None)
        labels = frequent_labels(binned(data.values, edges))
        return cls(name, labels, False, NumberBins.of(data, edges))

    def readable(self, code: int) -> Any:
        """A value as people read it; of a number its bin."""
        return self.labels[code] if self.bins is None else self.bins.bin_text(code)


@storable
@dataclass(frozen=True, eq=False)
class RowModel:
    """What the cells of a row say of each other, from sums over rows and a mixture.

    A feature is a value of a column, a bin of a number, an element of a set, or a number itself;
    numbers come behind all values.

    Attributes
    ----------
    columns : list of LearnedColumn
        How the cells of each column are coded.
    products : ndarray of shape (features, features)
        Sums of products of two features over rows; of two values, how many rows have both.
    n_rows_of_both : ndarray of shape (columns, columns)
        In how many rows two columns have a cell each.
    subspaces : list of (ndarray, ndarray)
        The mixture, fit by fit: log weights of its parts, and log probabilities of values in them.
    engines : tuple of str
        The engines that were asked for.
    needs_evidence : bool
        Whether columns that tell nothing of another stay out of its regression.
    """

    columns: list[LearnedColumn]
    products: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    n_rows_of_both: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    subspaces: Sequence[tuple[np.ndarray, np.ndarray]] = ()
    engines: tuple[str, ...] = ()
    needs_evidence: bool = False

    @classmethod
    def coded(cls, table: Table, n_bins: int) -> RowModel:
        """How cells are coded, and nothing learned from them."""
        edges = quantile_bins(table, n_bins)
        return cls([LearnedColumn.of(c.name, data, edges.get(c.name)) for c, data in table])

    @classmethod
    def of(
        cls,
        table: Table,
        n_bins: int,
        seed: int,
        engines: Sequence[str],
        *,
        needs_evidence: bool = False,
    ) -> RowModel:
        """Learn from rows."""
        model = cls.coded(table, n_bins)
        cells = model.cells(table)
        values = model.indicators(cells)
        z = np.nan_to_num(cells.z[model.number_columns])
        z_sums = values.T @ z.T
        is_there = np.array([~data.missing for data in table.columns], float)
        with one_blas_thread():
            z_products, n_rows_of_both = z @ z.T, is_there @ is_there.T
        return replace(
            model,
            products=np.block([[(values.T @ values).toarray(), z_sums], [z_sums.T, z_products]]),
            n_rows_of_both=n_rows_of_both,
            subspaces=model._mixture(cells, seed) if "mixture" in engines else [],
            engines=tuple(engines),
            needs_evidence=needs_evidence,
        )

    # -- layout ----------------------------------------------------------------------------

    @cached_property
    def index(self) -> dict[str, int]:
        """Where each column stands."""
        return {column.name: a for a, column in enumerate(self.columns)}

    @cached_property
    def number_columns(self) -> list[int]:
        """The columns of numbers."""
        return [a for a, column in enumerate(self.columns) if column.bins is not None]

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of values of each column."""
        return np.array([len(column.labels) for column in self.columns])

    @cached_property
    def spans(self) -> list[slice]:
        """Where the values of each column lie among all."""
        edges = np.concatenate([[0], np.cumsum(self.sizes)])
        return [slice(a, b) for a, b in pairwise(edges.tolist())]

    @cached_property
    def column_of_feature(self) -> np.ndarray:
        """The column of each feature."""
        of_values = np.repeat(np.arange(len(self.columns)), self.sizes)
        return np.concatenate([of_values, self.number_columns]).astype(np.intp)

    @property
    def pairs(self) -> np.ndarray:
        """In how many rows two values meet."""
        return self.products[: self.sizes.sum(), : self.sizes.sum()]

    @cached_property
    def share(self) -> np.ndarray:
        """Of the rows that have the column, the share that has each value."""
        n_rows = np.repeat(np.diagonal(self.n_rows_of_both), self.sizes)
        return np.diagonal(self.pairs) / np.maximum(n_rows, 1)

    @cached_property
    def evidence(self) -> np.ndarray:
        """What each column tells of each other: the share of its variance that it explains.

        ``evidence[a, b]`` is what column b tells of column a, less what chance would.
        """
        return self.evidence_from(lambda span: self.pairs[:, span])

    def evidence_from(self, pairs_with: Callable[[slice], np.ndarray]) -> np.ndarray:
        """The evidence, given the pair counts of all values with those of a column."""
        filled = np.flatnonzero(self.sizes)
        out = np.zeros((len(self.columns), len(self.columns)))
        starts = np.array([self.spans[b].start for b in filled], np.intp)
        for a in filled:
            ranked = self.columns[a].bins is not None
            out[a, filled] = explained_variance(pairs_with(self.spans[a]), starts, ranked=ranked)
        np.fill_diagonal(out, 0)
        return out

    # -- rows ------------------------------------------------------------------------------

    def cells(self, table: Table) -> CodedRows:
        """Rows as this model sees them."""
        codes = np.full((len(self.columns), table.n_rows), -1, np.int32)
        z, unseen = np.full(codes.shape, np.nan), np.zeros(codes.shape, bool)
        elements: dict[int, np.ndarray] = {}
        for a, column in enumerate(self.columns):
            data = table[column.name]
            if column.is_set:
                elements[a] = _elements(data, column.labels)
                continue
            if column.bins is not None:
                z[a] = column.bins.standardised(data.values)
                data = binned(data.values, column.bins.edges)
            code = positions(column.labels, data.labels)
            is_new = (code == self.sizes[a]) & [label is not None for label in data.labels]
            codes[a] = np.where(code < self.sizes[a], code, -1)[data.codes]
            unseen[a] = is_new[data.codes]
        return CodedRows(codes, z, elements, unseen)

    def check_types(self, table: Table, names: Sequence[str]) -> None:
        """Raise for a column of rows that are asked about whose type is another than in fit."""
        for name in names:
            column = self.columns[self.index[name]]
            if column.bins is None:
                check_types(name, table[name], column.labels)

    def indicators(self, cells: CodedRows, guesses: Mapping[int, Guess] | None = None) -> csr_array:
        """Which values each row has; of guessed gaps, how likely each is."""
        entries = [(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0))]
        for a, (span, codes) in enumerate(zip(self.spans, cells.codes, strict=True)):
            if self.columns[a].is_set:
                has = np.nan_to_num(cells.elements[a])
                if guesses is not None:
                    has = np.where(np.isnan(cells.elements[a]), self.share[span], has)
                rows, columns = has.nonzero()
                entries.append((rows, span.start + columns, has[rows, columns]))
                continue
            rows = np.flatnonzero(codes >= 0)
            entries.append((rows, span.start + codes[rows], np.ones(len(rows))))
            if guesses and a in guesses:
                rows, proba = guesses[a].rows, guesses[a].proba
                columns = np.tile(np.arange(span.start, span.stop), len(rows))
                entries.append((np.repeat(rows, proba.shape[1]), columns, proba.ravel()))
        rows, columns, values = map(np.concatenate, zip(*entries, strict=True))
        shape = cells.codes.shape[1], int(self.sizes.sum())
        return coo_array((values, (rows, columns)), shape).tocsr()

    def first_guesses(self, cells: CodedRows) -> dict[int, Guess]:
        """What the mixture says of all gaps, or the shares of values."""
        out = {}
        has_gap = np.flatnonzero((cells.codes < 0).any(axis=0))
        joints = self.joints(cells, has_gap)
        for a, column in enumerate(self.columns):
            if column.is_set:
                rows = np.flatnonzero(np.isnan(cells.elements[a][:, :1]).any(axis=1))
            else:
                rows = np.flatnonzero(cells.codes[a] < 0)
            if not len(rows) or not self.sizes[a]:  # nothing can be said of an empty column
                continue
            proba = np.tile(self.share[self.spans[a]], (len(rows), 1))
            if joints and not column.is_set:
                at_rows = [joint[np.searchsorted(has_gap, rows)] for joint in joints]
                proba = self.from_mixture(a, cells.codes[a, rows], at_rows)
            number = None if column.bins is None else proba @ column.bins.means
            out[a] = Guess(rows, proba, number)
        return out

    def completed(self, cells: CodedRows, guesses: Mapping[int, Guess]) -> CompleteRows:
        """Rows with guesses in their gaps."""
        codes, z = cells.codes.copy(), np.nan_to_num(cells.z)
        for a, guess in guesses.items():
            if not self.columns[a].is_set:
                codes[a, guess.rows] = guess.proba.argmax(axis=1)
            if guess.number is not None:
                z[a, guess.rows] = guess.number
        return CompleteRows(codes, z, self.indicators(cells, guesses))

    # -- the regression --------------------------------------------------------------------

    @cached_property
    def unit(self) -> np.ndarray:
        """What a feature is multiplied by: a value by one over the root of its share, bins less."""
        bins = np.repeat([column.bins is not None for column in self.columns], self.sizes)
        root = np.sqrt(np.maximum(self.share, 1e-300))
        of_values = np.where(self.share > 0, np.where(bins, 0.15, 1.0) / root, 0.0)
        return np.concatenate([of_values, np.ones(len(self.number_columns))])

    def _covariance(self) -> np.ndarray:
        """The covariance of features, each pair over the rows that have both."""
        owner = self.column_of_feature
        n_rows = np.maximum(self.n_rows_of_both[np.ix_(owner, owner)], 1)
        mean = np.concatenate([self.share, np.zeros(len(self.number_columns))])
        return (self.products / n_rows - np.outer(mean, mean)) * np.outer(self.unit, self.unit)

    @cached_property
    def coefficients(self) -> list[np.ndarray]:
        """What each feature adds to the features of a column, per column.

        It is 0 for those of columns that do not predict it, and for its own.
        """
        n_rows = max(np.diagonal(self.n_rows_of_both).max(initial=0), 1)
        covariance = positive(self._covariance())
        owner = self.column_of_feature
        features = [np.flatnonzero(owner == a) for a in range(len(self.columns))]
        out = [np.zeros((len(covariance), len(own_features))) for own_features in features]
        for a, coefficients in enumerate(out):
            others = [features[b] for b in self.predictors(a)]
            index = np.concatenate([np.zeros(0, np.intp), *others])
            if len(index) and len(features[a]):
                ridge = 0.02 + 0.3 * (len(index) + len(features[a])) / n_rows
                system = covariance[np.ix_(index, index)]
                # above the rounding errors of the largest covariances
                ridge = max(ridge, 1e-10 * system.diagonal().max())
                system[np.diag_indices_from(system)] += ridge
                with one_blas_thread():
                    factor = cho_factor(system, lower=True)
                    coefficients[index] = cho_solve(factor, covariance[np.ix_(index, features[a])])
        return out

    def predictors(self, a: int) -> np.ndarray:
        """The columns that predict a column: sets and those that tell most of it.

        They are 40 at most and have at most 1,500 values, if there is more than one.
        """
        evidence = self.evidence[a] + [2.0 * column.is_set for column in self.columns]
        others = np.argsort(-evidence, kind="stable")
        others = others[others != a]
        others = (others[evidence[others] > 0] if self.needs_evidence else others)[:40]
        n_features = np.cumsum(self.sizes[others])
        return others[n_features <= max(1500, n_features[:1].sum())]

    def expected(self, a: int, rows: np.ndarray, complete: CompleteRows) -> np.ndarray:
        """What the other cells of rows add to the features of a column; its own add 0."""
        n_values = len(self.share)
        of_values = self.unit[:n_values, None] * self.coefficients[a][:n_values]
        z = complete.z[np.ix_(self.number_columns, rows)]
        of_numbers = z.T @ self.coefficients[a][n_values:]
        return complete.indicators[rows] @ of_values - self.share @ of_values + of_numbers

    def regressed(
        self, a: int, rows: np.ndarray, complete: CompleteRows
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Probabilities and number by regression on the other cells, gaps as guessed."""
        share, unit = self.share[self.spans[a]], self.unit[self.spans[a]]
        total = self.expected(a, rows, complete)
        proba = share + total[:, : len(share)] / np.where(unit > 0, unit, 1)
        if self.columns[a].is_set:
            return np.clip(proba, 0, 1), None
        proba = np.maximum(proba, 1e-3)  # what the regression rules out
        proba = proba / proba.sum(axis=1, keepdims=True)
        return proba, None if self.columns[a].bins is None else total[:, -1]

    # -- the mixture -----------------------------------------------------------------------

    def _mixture(self, cells: CodedRows, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Log weights of subspaces and log probabilities of values in them, fit by fit."""
        singles = {a: column for a, column in enumerate(self.columns) if not column.is_set}
        if len(singles) < 2:
            return []
        schema = Schema(
            tuple(Column(column.name) for column in singles.values()), undeclared="ignored"
        )
        columns = [
            Codes(np.where(cells.codes[a] < 0, self.sizes[a], cells.codes[a]),
                  [*column.labels, None])
            for a, column in singles.items()
        ]  # fmt: skip
        model = NonBEND(VI(), n_fits=4, random_state=seed)
        model.fit(Table(schema, tuple(columns), cells.codes.shape[1]))
        prior = model._prior(model.counts_)
        out = []
        for fit in model.fits_:
            theta = value_probabilities(fit, prior)
            logs = np.zeros((self.sizes.sum(), theta.shape[1]))
            for a, column in singles.items():
                span = model.counts_.span(column.name)
                learned = model.counts_.labels[model.counts_.vocabulary.index(column.name)]
                part = np.vstack([theta[span], np.full(theta.shape[1], 1e-9)])
                part = part[positions(learned, column.labels)]
                logs[self.spans[a]] = np.log(part / np.maximum(part.sum(axis=0), 1e-300))
            out.append((np.log(subspace_weights(fit)), logs))
        return out

    @cached_property
    def _parts(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The probability of each value in each subspace, and its inverse, fit by fit."""
        return [(np.exp(logs), np.exp(-logs)) for _, logs in self.subspaces]

    def joints(self, cells: CodedRows, rows: np.ndarray) -> list[np.ndarray]:
        """The probability of the cells of rows with each subspace, the likeliest 1, fit by fit."""
        out = []
        for weights, logs in self.subspaces:
            total = np.tile(weights, (len(rows), 1))
            for a, column in enumerate(self.columns):
                if column.labels and not column.is_set:
                    total += _with_gap(logs[self.spans[a]], 0.0)[cells.codes[a, rows]]
            total -= total.max(axis=1, keepdims=True)
            out.append(np.exp(total, out=total))
        return out

    def from_mixture(self, a: int, codes: np.ndarray, joints: Sequence[np.ndarray]) -> np.ndarray:
        """The probability of each value of a column given the other cells of rows.

        ``codes`` are the rows' own cells, ``joints`` their probabilities with each subspace.
        """
        span = self.spans[a]
        out = np.zeros((len(codes), span.stop - span.start))
        for (proba, inverse), joint in zip(self._parts, joints, strict=True):
            others = joint * _with_gap(inverse[span], 1.0)[codes]  # without the cell itself
            others /= others.sum(axis=1, keepdims=True)
            out += others @ proba[span].T
        return out / len(joints)

    # -- reasons ---------------------------------------------------------------------------

    def reasons(self, cells: CodedRows, row: int, a: int, value: int) -> Iterator[Reason]:
        """The other cells of a row, and how many rows have each of them with a value."""
        span = self.spans[a]
        for b, other in enumerate(self.columns):
            code = int(cells.codes[b, row])
            if b == a or other.is_set or code < 0:
                continue
            line = self.pairs[self.spans[b].start + code]
            both, n = int(line[span.start + value]), int(line[span].sum())
            yield Reason(other.name, other.readable(code), both, n)


class CodedRows(NamedTuple):
    """Rows as a model sees them: codes (-1 is a gap), standardised numbers, elements of sets."""

    codes: np.ndarray  # (columns, rows)
    z: np.ndarray  # (columns, rows), NaN of gaps and what is no number
    elements: dict[int, np.ndarray]  # (rows, elements), 0 or 1; NaN in a gap
    unseen: np.ndarray  # (columns, rows): there is a value, but fit has not seen it


class CompleteRows(NamedTuple):
    """Rows whose gaps are guessed."""

    codes: np.ndarray  # (columns, rows)
    z: np.ndarray  # (columns, rows)
    indicators: csr_array  # (rows, values)


class Guess(NamedTuple):
    """What is thought of the gaps of a column: which rows, probabilities, and of numbers a mean."""

    rows: np.ndarray
    proba: np.ndarray
    number: np.ndarray | None


class Reason(NamedTuple):
    """Another cell of the row: how many rows have both, of those that have it."""

    column: str
    value: Any
    both: int
    n: int


def readable(value: Any) -> str:
    """A cell as people read it."""
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.6g}"
    return str(value)


# -- parts ----------------------------------------------------------------------------------------


def rows_to_learn(estimator: Any, X: Any) -> tuple[Table, np.ndarray]:
    """The rows that an estimator learns from and their numbers; tell it their columns.

    All rows, or ``max_rows`` of them, drawn at random; of a source those that stand for all.
    """
    estimator._validate_params()
    rows = read_sampled(X)
    table = Table.of(rows, Schema.of(estimator.schema), numbers="numeric", rules="texts")
    require_rows(table)
    remember_names(estimator, table.schema)
    estimator.schema_ = table.schema
    table = other_kinds_as_values(table)
    if table.n_rows <= estimator.max_rows:
        return table, np.arange(table.n_rows)
    random = np.random.default_rng(seed_of(estimator.random_state))
    drawn = np.sort(random.permutation(table.n_rows)[: int(estimator.max_rows)])
    return take_rows(table, drawn), drawn


def read_to_ask(estimator: Any, X: Any) -> Table:
    """Rows that an estimator is asked about, cells as it has learned them."""
    return other_kinds_as_values(read_with_fitted_schema(estimator, X, numbers="numeric"))


def frequent_labels(data: Codes | Sets) -> tuple[Label, ...]:
    """The values of a column that occur, sorted, the most frequent 200 at most."""
    times = np.bincount(data.codes, minlength=len(data.labels))
    index = [i for i in order(data.labels) if times[i] and data.labels[i] is not None]
    most = np.sort(np.argsort(-times[index], kind="stable")[:MAX_GUESSED_VALUES])
    return tuple(data.labels[index[i]] for i in most)


def mean_and_deviation(numbers: np.ndarray) -> tuple[float, float]:
    """Mean and deviation of numbers; a deviation whose inverse is infinite counts as 1."""
    if not len(numbers):
        return 0.0, 1.0
    largest = np.abs(numbers).max() or 1.0  # sums and squares of large numbers may exceed a float
    mean, deviation = largest * (numbers / largest).mean(), largest * (numbers / largest).std()
    return float(mean), float(deviation if deviation >= np.finfo(float).tiny else 1.0)


def decimal_places(numbers: np.ndarray) -> int | None:
    """How many decimals numbers are written with at most; None for unrounded ones.

    >>> decimal_places(np.array([40.3, 39.0])), decimal_places(np.array([np.pi]))
    (1, None)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        is_single = (numbers.astype(np.float32) == numbers).all()
        precision = np.finfo(np.float32 if is_single else float).eps
        for places in range(13):  # numbers with more of them are measurements
            if (np.abs(np.round(numbers, places) - numbers) <= precision * np.abs(numbers)).all():
                return places
    return None


def _elements(data: Any, labels: Sequence[Label]) -> np.ndarray:
    """Which elements the set of each row has; NaN where the set is missing."""
    out = np.zeros((len(data), len(labels) + 1))
    out[data.by_code(np.arange(len(data))), positions(labels, data.labels)[data.codes]] = 1
    out[data.missing] = np.nan
    return out[:, :-1]


def _with_gap(of_values: np.ndarray, of_gap: float) -> np.ndarray:
    """What is said of each value, with a last line, which -1 finds: a gap says nothing."""
    return np.vstack([of_values, np.full(of_values.shape[1], of_gap)])


def positive(symmetric: np.ndarray) -> np.ndarray:
    """A symmetric matrix whose negative eigenvalues, if it has some, are set to 0."""
    with one_blas_thread():
        # those of -1e-11 are rounding errors of 0
        if not dpotrf(symmetric + 1e-11 * np.eye(len(symmetric)), lower=1)[1]:
            return symmetric
        values, vectors = eigh((symmetric + symmetric.T) / 2)  # but for rounding it is so already
        return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


def explained_variance(met: np.ndarray, starts: np.ndarray, *, ranked: bool) -> np.ndarray:
    """The share of the variance of a column that others explain, less what chance would.

    ``met`` has the counts of the values of others, which begin at ``starts``, with its values. Of
    categories it is Goodman and Kruskal's tau, of ``ranked`` bins the correlation ratio of their
    ranks, adjusted as R squared is: what is expected of a column of as many values that says
    nothing is 0, and a column all of whose values differ explains nothing. So does one that chance
    explains as well once in twenty times.
    """
    each, totals = met.sum(axis=1), np.add.reduceat(met, starts, axis=0)
    n, safe_each = totals.sum(axis=1), np.maximum(each, 1)
    shares = totals / np.maximum(n, 1)[:, None]
    n_values = np.add.reduceat((each > 0).astype(float), starts)
    if ranked:
        ranks = np.cumsum(shares, axis=1) - shares / 2
        ranks -= (shares * ranks).sum(axis=1, keepdims=True)
        owner = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(met))))
        total, degrees = n * (shares * ranks**2).sum(axis=1), np.ones(len(starts))
        between = np.add.reduceat((met * ranks[owner]).sum(axis=1) ** 2 / safe_each, starts)
    else:
        agreement = n * (shares**2).sum(axis=1)
        total, degrees = n - agreement, np.maximum((totals > 0).sum(axis=1) - 1.0, 1)
        between = np.add.reduceat((met**2).sum(axis=1) / safe_each, starts) - agreement
    ratio = np.where(total > 1e-9, between / np.maximum(total, 1e-9), 0)
    left = np.maximum(n - n_values, 0)
    expected = (n_values - 1) / np.maximum(n - 1, 1)
    deviation = np.sqrt(2 * expected * left / (np.maximum(n - 1, 1) * (n + 1) * degrees))
    sure = (ratio - expected > 1.64 * deviation) & (left > 0)
    return np.where(sure, (ratio - expected) / np.maximum(1 - expected, 1e-9), 0.0)
