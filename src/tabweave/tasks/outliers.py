"""OutlierCells: rows and cells that do not fit, and why.

A cell is odd if the rest of its row makes it unlikely, however frequent its value is elsewhere:
Paris is a common city and Chile a common country, but not in one row. A number is odd against its
column, too. What is odd does not teach: rows are judged by models of other rows, and rows that are
odd beyond doubt are left out when the models are learned again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, StrOptions, in_threads, seed_of
from tabweave.base import Estimator, TabularInput
from tabweave.columns.column import Schema
from tabweave.columns.frames import row_labels
from tabweave.columns.numeric import Numbers
from tabweave.columns.table import Table, append_rows, datetime_as_numeric, take_rows
from tabweave.columns.vocabulary import slices
from tabweave.engines.progress import ProgressCallback, progress_reporter
from tabweave.engines.reading import by_parts
from tabweave.io.register import storable
from tabweave.tasks.row_model import (
    CodedRows,
    Reason,
    RowModel,
    read_to_ask,
    readable,
    rows_to_learn,
)

BLOCK_NUMBERS = 1 << 21  # Numbers that are held at a time while rows are judged.
MIN_PROBABILITY = 1e-6  # Of a category; a number as far out is far from all.
N_FOLDS = 4  # Parts of the rows, each of which is judged by a model of the others.
SLAB_ROWS = 1 << 15  # Rows that are judged between two reports of progress.
LEARNING_SHARE = 0.5  # Of the time that learning and judging take, about, for a progress bar.
BEYOND_DOUBT = 12.0  # The score from which on a row does not teach.
TAIL_SHARE = 0.2  # Of a column's numbers, on either side.
SURPRISE_DIGITS = 9  # Surprises that differ in later digits are level.

Tell = Callable[..., None]  # (step, share done), as of `progress_reporter`
SILENT = progress_reporter(None)


@storable
class OutlierCells(TabularInput, OutlierMixin, Estimator):
    """Find rows and cells that do not fit the rest of the table.

    Parameters
    ----------
    level : float, default=0.01
        The share of false alarms: of rows like those of fit, at most about this share is called
        odd.
    engine : {"all", "counts", "mixture"}, default="all"
        How the probability of a cell given the others is estimated: by a regression from counts
        and moments, the mixture of :class:`~tabweave.NonBEND`, or the mean of both.
    n_bins, max_rows, schema, random_state
        As in :class:`~tabweave.Imputer`, which uses the same model of rows; with ``partial_fit``
        the latest ``max_rows`` rows are used.

    Attributes
    ----------
    offset_ : float
        The score below which a row is odd.
    schema_, n_features_in_, feature_names_in_
        The columns.

    Notes
    -----
    The surprise of a category is ``-log p(category | rest of the row)``. That of a number is half
    the sum of three: of its bin given the rest of the row, of how far out it is in its column, and
    of how far it is from what the rest of the row predicts; the latter two by tails that one row
    in twenty may spoil. The score of a cell is its surprise less that of
    the category or bin that fits best; the score of a row is that of its oddest cell, and cells
    are ranked by their scores.

    Scores of the rows of ``fit``, and p-values, come from four parts of the rows, each judged by a
    model of the others. Rows whose score is 12 or more, at most a tenth of all, are left out
    when the models are learned once more. A cell far out in its column is a gap to the others of
    its row. A missing cell is no surprise; a value not seen in fit is a great one, unless many are
    new. Set-valued cells help to judge the others, but are not judged themselves.

    Examples
    --------
    >>> from tabweave import OutlierCells
    >>> rows = {"city": ["Paris", "Santiago"] * 60, "country": ["France", "Chile"] * 60}
    >>> model = OutlierCells(level=0.05).fit(rows)
    >>> new = {"city": ["Paris", "Paris"], "country": ["France", "Chile"]}
    >>> model.predict(new).tolist()
    [1, -1]
    >>> print(model.cells(new)[0])
    row 1: city=Paris with country=Chile: 0 of 60 (p = 0.0083)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "level": [Interval(Real, 0, 0.5, closed="neither")],
        "engine": [StrOptions({"all", "counts", "mixture"})],
        "n_bins": [Interval(Integral, 2, 200, closed="both")],
        "max_rows": [Interval(Integral, 10, None, closed="left")],
        "schema": [Schema, dict, str, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        level: float = 0.01,
        *,
        engine: str = "all",
        n_bins: int = 12,
        max_rows: int = 20_000,
        schema: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.level = level
        self.engine = engine
        self.n_bins = n_bins
        self.max_rows = max_rows
        self.schema = schema
        self.random_state = random_state

    _model: RowModel
    _rows: Table
    _drawn = np.zeros(0, np.intp)  # numbers of the rows that taught, among all rows of fit

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows, which may contain outliers; ``y`` is ignored."""
        return self._fit(X, SILENT)

    def _fit(self, X: Any, tell: Tell) -> Self:
        table, self._drawn = rows_to_learn(self, X)
        return self._learn(table, tell)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows of a stream; the model is fitted to the latest ``max_rows``."""
        if not hasattr(self, "_rows"):
            return self.fit(X)
        self._validate_params()
        table = append_rows(self._rows, read_to_ask(self, X))
        latest = np.arange(max(0, table.n_rows - int(self.max_rows)), table.n_rows)
        self._drawn = type(self)._drawn
        return self._learn(take_rows(table, latest), SILENT)

    def _learn(self, table: Table, tell: Tell) -> Self:
        self._rows = table
        numbers = [(c.name, d.values) for c, d in table if c.is_continuous]
        self._tails = {name: Tails.of(values) for name, values in numbers}
        scored = self._as_scores(table)
        teaches = np.ones(table.n_rows, bool)
        folds_done = count(1)

        def advance() -> None:
            share = min(next(folds_done) / (2 * N_FOLDS), 1.0)
            tell("learning which cells go together", LEARNING_SHARE * share)

        for _ in range(2):
            judged_by_others = self._cross_fitted(scored, teaches, advance)
            self._usual = UsualScores.of(judged_by_others)
            self._fit_surprises, self._fit_scores = self._usual.judge(judged_by_others)
            teaches = ~_beyond_doubt(row_scores(self._fit_scores))
            if teaches.all():
                break
        self._model = self._taught_by(take_rows(scored.table, np.flatnonzero(teaches)))
        scores = np.sort(row_scores(self._fit_scores))
        n_odd = int(np.floor(float(self.level) * (len(scores) + 1)))
        self.offset_ = -float(scores[max(len(scores) - n_odd, 0) - (n_odd == 0)])
        return self

    def _cross_fitted(
        self, scored: ScoredTable, teaches: np.ndarray, advance: Callable[[], None]
    ) -> Evidence:
        """What is found in each row by a model of others; those that teach may be fewer."""
        n_rows = scored.table.n_rows
        fold = np.random.default_rng(seed_of(self.random_state)).permutation(n_rows) % N_FOLDS
        if n_rows == 1:
            return evidence(self._taught_by(scored.table), scored)

        def judged_by_others(part: int) -> Evidence:
            others = np.flatnonzero((fold != part) & teaches)
            model = self._taught_by(take_rows(scored.table, others))
            judged = evidence(model, scored.take(np.flatnonzero(fold == part)))
            advance()
            return judged

        parts = in_threads(judged_by_others, np.unique(fold).tolist())
        return Evidence.joined(parts).take(np.argsort(np.argsort(fold, kind="stable")))

    def _taught_by(self, table: Table) -> RowModel:
        engines = ("counts", "mixture") if self.engine == "all" else (self.engine,)
        n_bins = max(2, min(int(self.n_bins), self._rows.n_rows // 20))  # rows of a bin
        return RowModel.of(table, n_bins, seed_of(self.random_state), engines)

    def _as_scores(self, table: Table) -> ScoredTable:
        """Rows with numbers as normal scores, and how far out each number is."""
        table = datetime_as_numeric(table)
        columns, surprises = [], np.zeros((len(table.columns), table.n_rows))
        for a, (column, data) in enumerate(table):
            if column.name in self._tails:
                tails = self._tails[column.name]
                surprises[a] = np.nan_to_num(tails.surprise(data.values))
                ordered = np.sort(self._rows[column.name].values)
                ordered = ordered[~np.isnan(ordered)]
                data = Numbers(tails.normal_scores(data.values, ordered))
            columns.append(data)
        return ScoredTable(replace(table, columns=tuple(columns)), surprises)

    # -- rows ------------------------------------------------------------------------------

    @by_parts({"score": "float64"})
    def score_samples(self, X: Any) -> np.ndarray:
        """How well each row fits: minus the score of its oddest cell."""
        return -row_scores(self._judged(self._read(X)).scores)

    @by_parts({"score": "float64"})
    def decision_function(self, X: Any) -> np.ndarray:
        """Return :meth:`score_samples` minus ``offset_``: negative for odd rows."""
        return self.score_samples(X) - self.offset_

    @by_parts({"prediction": "int64"})
    def predict(self, X: Any) -> np.ndarray:
        """Return -1 for odd rows, 1 for the others."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Learn from rows and return -1 for odd ones; each row is scored by a model of the others.

        :meth:`predict` is for new rows: those of fit seem less odd to it than they are.
        """
        scores = self.fit(X)._judged_of_fit(self._read(X)).scores
        return np.where(-row_scores(scores) < self.offset_, -1, 1)

    @by_parts({"p_value": "float64"})
    def row_p_values(self, X: Any) -> np.ndarray:
        """The p-value of each row: the chance that a row of fit fits as badly."""
        return _p_values(row_scores(self._fit_scores), -self.score_samples(X))

    # -- cells -----------------------------------------------------------------------------

    def surprise(self, X: Any) -> np.ndarray:
        """The surprise of each cell, rows × columns; 0 if missing.

        Of a category it is ``-log p(category | rest of the row)``.
        """
        return self._judged(self._read(X)).surprises

    def cell_p_values(self, X: Any) -> np.ndarray:
        """The p-value of each cell: the chance of one as odd in its column."""
        return self._judged(self._read(X)).p_values

    def cells(self, X: Any, n: int | None = 20) -> list[OutlierCell]:
        """The most unusual cells of new rows, ranked and explained.

        Parameters
        ----------
        X : what :meth:`predict` takes
            The rows. Those of fit seem less odd than they are: :meth:`fit_cells` is for them.
        n : int, optional
            How many at most, one of each row; by default 20, None is all that are odder than
            ``level``.
        """
        table = self._read(X)
        return named_by(X, self._oddest_cells(table, self._judged(table), n))

    def fit_cells(
        self, X: Any, n: int | None = 20, *, progress: ProgressCallback | None = None
    ) -> list[OutlierCell]:
        """Learn from rows and return their most unusual cells, scored by a model of the other rows.

        A value that occurs once is as odd to the others as it looks; the model has learned it.
        ``progress``, if given, is called with a :class:`tabweave.engines.Progress`.
        """
        return named_by(X, self._fit_and_judge(X, n, progress)[0])

    def _fit_and_judge(
        self, X: Any, n: int | None, progress: ProgressCallback | None
    ) -> tuple[list[OutlierCell], np.ndarray]:
        """The most unusual cells of rows to learn from, and which rows are odd."""
        tell = progress_reporter(progress, "", 1.0)
        return self._fit(X, tell)._cells_of_fit(self._read(X), n, tell=tell)

    def _cells_of_fit(
        self,
        table: Table,
        n: int | None,
        rows: np.ndarray | None = None,
        tell: Tell = SILENT,
    ) -> tuple[list[OutlierCell], np.ndarray]:
        """The most unusual cells of rows of fit, and which rows are odd.

        The rows are all, or ``rows`` by their numbers among those of fit.
        """
        judged = self._judged_of_fit(table, rows, tell)
        cells = self._oddest_cells(table, judged, n)
        if rows is not None:
            numbers = rows.tolist()
            cells = [c._replace(row=numbers[c.row], position=numbers[c.row]) for c in cells]
        return cells, -row_scores(judged.scores) < self.offset_

    def _oddest_cells(self, table: Table, judged: JudgedCells, n: int | None) -> list[OutlierCell]:
        columns = oddest(judged.scores)
        rows = np.arange(len(columns))
        surprises, scores, p_values = (part[rows, columns] for part in judged)
        order = np.lexsort((rows, -scores.round(SURPRISE_DIGITS)))
        if n is None:
            order = order[p_values[order] <= self.level]
        order = order[scores[order] > 0][:n]
        scored = self._as_scores(take_rows(table, order))
        model = self._model_to_show()
        cells = model.cells(scored.table)
        out = []
        for i, (row, column) in enumerate(zip(order, columns[order], strict=True)):
            is_new = self._is_new(cells, scored, i, int(column))
            against = None if is_new else contradiction(model, cells, i, int(column))
            name = model.columns[column].name
            figures = float(surprises[row]), float(p_values[row])
            value = table[name].cell(row)
            out.append(OutlierCell(int(row), name, value, *figures, against, is_new, int(row)))
        return out

    def _is_new(self, cells: CodedRows, scored: ScoredTable, row: int, column: int) -> bool:
        """Whether a value has not been seen, or a number is far from nearly all others."""
        if self._model.columns[column].bins is not None:
            return bool(scored.surprises[column, row] >= -np.log(MIN_PROBABILITY))
        return bool(cells.unseen[column, row])

    def _model_to_show(self) -> RowModel:
        """The model with the numbers of each bin as they are in the table."""
        codes = self._model.cells(self._as_scores(self._rows).table).codes
        columns = list(self._model.columns)
        for a, column in enumerate(columns):
            if column.bins is not None:
                data = self._rows[column.name]
                numbers = [data.values[codes[a] == b] for b in range(len(column.labels))]
                bins = replace(column.bins, numbers=numbers, is_dated=data.is_dated)
                columns[a] = replace(column, bins=bins)
        return replace(self._model, columns=columns)

    def _judged_of_fit(
        self, table: Table, rows: np.ndarray | None = None, tell: Tell = SILENT
    ) -> JudgedCells:
        """Judge rows of fit, all or by their numbers; those that taught by models of others."""
        rows = np.arange(table.n_rows) if rows is None else rows
        learned = np.isin(rows, self._drawn)
        index = np.searchsorted(self._drawn, rows[learned])
        out = JudgedCells(*np.zeros((3, len(rows), len(self._model.columns))))
        surprises, scores = self._fit_surprises[index], self._fit_scores[index]
        others = self._judged(take_rows(table, np.flatnonzero(~learned)), tell)
        of_fit = JudgedCells(surprises, scores, self._cell_p_values(scores, is_of_fit=True))
        for part, of_learned, new in zip(out, of_fit, others, strict=True):
            part[learned], part[~learned] = of_learned, new
        return out

    def _judged(self, table: Table, tell: Tell = SILENT) -> JudgedCells:
        """Judge the cells of new rows."""
        parts, n_rows = [], max(table.n_rows, 1)
        for start in range(0, n_rows, SLAB_ROWS):
            tell("judging rows", LEARNING_SHARE + (1 - LEARNING_SHARE) * start / n_rows)
            slab = take_rows(table, np.arange(start, min(start + SLAB_ROWS, table.n_rows)))
            parts.append(self._usual.judge(evidence(self._model, self._as_scores(slab))))
        surprises, scores = map(np.concatenate, zip(*parts, strict=True))
        return JudgedCells(surprises, scores, self._cell_p_values(scores))

    def _cell_p_values(self, scores: np.ndarray, *, is_of_fit: bool = False) -> np.ndarray:
        columns = zip(self._fit_scores.T, scores.T, strict=True)
        p_values = [_p_values(fit, column, is_of_fit=is_of_fit) for fit, column in columns]
        return np.where(scores > 0, np.array(p_values).reshape(scores.T.shape).T, 1.0)

    def _read(self, X: Any) -> Table:
        check_is_fitted(self, "_rows")
        table = read_to_ask(self, X)
        self._model.check_types(table, list(self._model.index))
        return table


class OutlierCell(NamedTuple):
    """A cell that does not fit.

    Attributes
    ----------
    row, column, value : label, str, label or float
        The cell; the row by its label in the index of a pandas frame, else by its position.
    surprise, p_value : float
        How unlikely the cell is, as :meth:`OutlierCells.surprise` has it, and how often cells of
        its column are as odd.
    against : tuple of (column, value, both, n) or None
        The cell of the row that speaks against it most: of n rows with this value of the column, so
        many have both. None for a value that fit has not seen, and
        where the row has no other cell to compare it with.
    is_new : bool
        Whether fit has not seen the value, or of a number none near it.
    position : int
        Where the row is, counted from 0.
    """

    row: Any
    column: str
    value: Any
    surprise: float
    p_value: float
    against: Reason | None
    is_new: bool = False
    position: int = 0

    def __str__(self) -> str:
        text = f"row {self.row}: {self.column}={readable(self.value)}"
        if self.against is not None:
            column, other, both, n = self.against
            return f"{text} with {column}={other}: {both:,} of {n:,} (p = {self.p_value:.2g})"
        reason = "far from all" if isinstance(self.value, float) else "not"
        reason = f"{reason} seen before" if self.is_new else "no other cell speaks against it"
        return f"{text}: {reason} (p = {self.p_value:.2g})"


class JudgedCells(NamedTuple):
    """What is thought of cells, rows × columns."""

    surprises: np.ndarray
    scores: np.ndarray
    p_values: np.ndarray


def named_by(X: Any, cells: list[OutlierCell]) -> list[OutlierCell]:
    """Cells whose rows are called as in a frame."""
    labels = row_labels(X)
    if labels is None:
        return cells
    return [cell._replace(row=labels.id_of(cell.position)) for cell in cells]


# -- how far out numbers are ----------------------------------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class Tails:
    """The two tails of a column of numbers, whatever a few wild ones say.

    Numbers beyond the largest (or smallest) fifth of a column are taken to follow a generalised
    Pareto distribution, whose scale and weight are read from the median and the upper quartile of
    that fifth [Pickands 1975]. So some of it may be wrong: the quantiles stay near where they are.

    Attributes
    ----------
    upper, lower : ndarray of shape (4,)
        Where a tail begins, the share of numbers beyond, its scale and its weight; the lower one is
        that of the negated numbers, or of their negated logarithms.
    floor : float
        A tenth of the smallest number, where the logarithm goes on as a line; 0 if a number is not
        above 0 or logarithms are more skewed: the lower tail is that of the numbers then.
    """

    upper: np.ndarray
    lower: np.ndarray
    floor: float

    @classmethod
    def of(cls, numbers: np.ndarray) -> Tails:
        """The tails of numbers; NaN is missing."""
        present = np.sort(numbers[~np.isnan(numbers)])
        floor = 0.0
        if len(present) and present[0] > 0 and _skewness(np.log(present)) < _skewness(present):
            floor = float(present[0]) / 10
        return cls(_upper_tail(present), _upper_tail(_downward(present[::-1], floor)), floor)

    def surprise(self, numbers: np.ndarray) -> np.ndarray:
        """Return ``-log P`` of a number as far out, on either side; 0 between the tails."""
        logs = np.maximum(*(logs for _, logs in self._sides(numbers)))
        return np.maximum(logs - np.log(2), 0.0)

    def normal_scores(self, numbers: np.ndarray, ordered: np.ndarray) -> np.ndarray:
        """Numbers as a normal column would hold them, NaN where missing.

        Between the tails by their ranks among the ``ordered`` numbers of the column.
        """
        n = max(len(ordered), 1)
        ranks = np.searchsorted(ordered, numbers) + np.searchsorted(ordered, numbers, "right")
        out = ndtri(np.clip(ranks / (2 * n), 0.5 / n, 1 - 0.5 / n))
        for side, logs in self._sides(numbers):
            out = np.where(logs > 0, -side * ndtri(np.exp(-logs)), out)
        return np.where(np.isnan(numbers), np.nan, np.clip(out, -5, 5))

    def _sides(self, numbers: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """A sign, and ``-log P`` of a number as far out on that side."""
        yield 1, _log_beyond(self.upper, numbers)
        yield -1, _log_beyond(self.lower, _downward(numbers, self.floor))


def _skewness(ordered: np.ndarray) -> float:
    """How unevenly the largest and the smallest fifth lie around the median, 0 to 1."""
    low, middle, high = np.quantile(ordered, [TAIL_SHARE, 0.5, 1 - TAIL_SHARE])
    return float(abs(high / 2 - middle + low / 2) / max(high / 2 - low / 2, 1e-300))


def _downward(numbers: np.ndarray, floor: float) -> np.ndarray:
    """Numbers, or above the floor their logarithms, negated."""
    if floor < np.finfo(float).tiny:
        return -numbers
    with np.errstate(over="ignore"):
        line = (floor - numbers) / floor
    return np.maximum(line, 0.0) - np.log(np.maximum(numbers, floor))


def _upper_tail(ordered: np.ndarray) -> np.ndarray:
    """Pickands' estimates, with the weight drawn to 0 where a tail has few rows."""
    if not len(ordered):
        return np.array([np.inf, 1.0, 1.0, 0.0])
    start = np.quantile(ordered, 1 - TAIL_SHARE, method="lower")
    beyond = ordered[ordered > start]
    if not len(beyond):  # the largest value is frequent: a step to it is one scale
        below = ordered[ordered < start]
        scale = start - below[-1] if len(below) else 0.0
        return np.array([start, 1 / len(ordered), max(scale, np.finfo(float).tiny), 0.0])
    with np.errstate(over="ignore"):
        median, quartile = np.minimum(np.quantile(beyond, [0.5, 0.75]) - start, 1e300)
    weight = np.log2(max(quartile / median - 1, 1e-9))
    # drawn to 0 as by 20 rows; from 1 on the mean of a tail is infinite
    weight = np.clip(weight * len(beyond) / (len(beyond) + 20), 0.0, 1.0)
    scale = median * weight / np.expm1(weight * np.log(2)) if weight else median / np.log(2)
    share = len(beyond) / len(ordered)
    return np.array([start, share, max(scale, np.finfo(float).tiny), weight])


def _log_beyond(tail: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return ``-log P(a number is as large)`` of numbers in the tail, 0 of the others."""
    start, share, scale, weight = tail
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.maximum(numbers - start, 0.0) / scale
        logs = np.log1p(weight * steps) / weight if weight else steps
        logs = np.minimum(logs - np.log(share), 700)  # exp(-700) is nearly the smallest float
    return np.where(numbers > start, logs, 0.0)


# -- what the rest of a row says ------------------------------------------------------------------


class ScoredTable(NamedTuple):
    """Rows whose numbers are normal scores, and the surprise of each number in its column."""

    table: Table
    surprises: np.ndarray  # (columns, rows), 0 of what is no number

    def take(self, rows: np.ndarray) -> ScoredTable:
        """Some of the rows."""
        return ScoredTable(take_rows(self.table, rows), self.surprises[:, rows])


class Evidence(NamedTuple):
    """What speaks against cells, rows × columns."""

    surprise: np.ndarray  # -log p of a category or bin given the rest of the row; 0 if missing
    smallest: np.ndarray  # -log p of the likeliest one
    is_unseen: np.ndarray
    far: np.ndarray  # surprise of a number in its column, NaN where no number is
    residual: np.ndarray  # a number less what the rest of its row predicts, NaN where no number is

    @classmethod
    def joined(cls, parts: Sequence[Evidence]) -> Evidence:
        """The rows of several parts."""
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def take(self, rows: np.ndarray) -> Evidence:
        """Some of the rows."""
        return Evidence(*(part[rows] for part in self))


@storable
class UsualScores:
    """What is usual in each column: tails of residuals, and the surprise of an unseen value."""

    def __init__(self, residuals: list[Tails], unseen: np.ndarray) -> None:
        self.residuals = residuals
        self.unseen = unseen

    @classmethod
    def of(cls, judged: Evidence) -> UsualScores:
        """What is usual of rows that were judged by models of others.

        An unseen value has the squared probability of one: a rarity if few are unseen, usual in a
        column of names.
        """
        share = np.maximum(judged.is_unseen.mean(axis=0), np.sqrt(MIN_PROBABILITY))
        return cls([Tails.of(column) for column in judged.residual.T], -2 * np.log(share))

    def judge(self, judged: Evidence) -> tuple[np.ndarray, np.ndarray]:
        """Surprises and scores of cells."""
        surprises = np.where(judged.is_unseen, self.unseen, judged.surprise)
        scores = np.where(surprises > 0, np.maximum(surprises - judged.smallest, 0.0), 0.0)
        for a in np.flatnonzero(~np.isnan(judged.far).all(axis=0)):
            residual = self.residuals[a].surprise(judged.residual[:, a])
            tails = np.nan_to_num(judged.far[:, a] + residual)
            surprises[:, a] = (surprises[:, a] + tails) / 2
            scores[:, a] = (scores[:, a] + tails) / 2
        return surprises, scores


def row_scores(scores: np.ndarray) -> np.ndarray:
    """The score of each row: that of its oddest cell."""
    return scores.max(axis=1, initial=0.0)


def _beyond_doubt(scores: np.ndarray) -> np.ndarray:
    """Which rows do not teach, a tenth of them at most."""
    out = scores >= BEYOND_DOUBT
    limit = int(0.1 * len(scores))
    if out.sum() > limit:
        out[np.argsort(-scores, kind="stable")[limit:]] = False
    return out


def evidence(model: RowModel, scored: ScoredTable) -> Evidence:
    """What speaks against the cells of rows, block by block."""
    rows = np.arange(scored.table.n_rows)
    blocks = slices(len(rows), len(model.share), BLOCK_NUMBERS) or [slice(0, 0)]
    return Evidence.joined(
        in_threads(lambda block: _evidence(model, scored.take(rows[block])), blocks)
    )


def _evidence(model: RowModel, scored: ScoredTable) -> Evidence:
    cells = model.cells(scored.table)
    rows, shape = np.arange(scored.table.n_rows), (scored.table.n_rows, len(model.columns))
    out = Evidence(
        np.zeros(shape), np.zeros(shape), np.zeros(shape, bool),
        np.full(shape, np.nan), np.full(shape, np.nan),
    )  # fmt: skip
    masked = without_far_numbers(cells, scored.surprises)
    for a, expected in enumerate(conditionals(model, masked)):
        if expected is None:
            continue
        (proba, number), codes = expected, cells.codes[a]
        if number is not None:
            out.far[:, a] = np.where(np.isnan(cells.z[a]), np.nan, scored.surprises[a])
            out.residual[:, a] = cells.z[a] - number
        else:
            out.is_unseen[:, a] = cells.unseen[a]
        if proba.shape[1]:  # else no cell was known in fit
            likely = np.maximum(proba[rows, np.maximum(codes, 0)], MIN_PROBABILITY)
            out.surprise[:, a] = np.where(codes >= 0, -np.log(likely), 0.0)
            out.smallest[:, a] = -np.log(np.maximum(proba.max(axis=1), MIN_PROBABILITY))
    return out


def without_far_numbers(cells: CodedRows, surprises: np.ndarray) -> CodedRows:
    """Cells in which numbers far out are gaps: the rest of a row is judged without them."""
    is_far = surprises >= BEYOND_DOUBT
    codes, z = np.where(is_far, -1, cells.codes), np.where(is_far, np.nan, cells.z)
    return cells._replace(codes=codes, z=z)


def oddest(scores: np.ndarray) -> np.ndarray:
    """The column of each row's oddest cell.

    Where one cell is wrong all cells of its row look odd: the oddest stands for them, the first
    column of level ones.
    """
    if not scores.size:
        return np.zeros(len(scores), dtype=int)
    return scores.round(SURPRISE_DIGITS).argmax(axis=1)


def conditionals(
    model: RowModel, cells: CodedRows
) -> Iterator[tuple[np.ndarray, np.ndarray | None] | None]:
    """What the other cells of each row say of each column, the mean of the engines.

    Probabilities of its values, and of numbers an expected one; None of sets. To the regression a
    gap counts as the mixture guesses it, without one by its shares.
    """
    rows = np.arange(cells.codes.shape[1])
    complete = model.completed(cells, model.first_guesses(cells))
    complete = complete._replace(z=np.nan_to_num(cells.z))  # a number that is a gap: its mean
    joints = model.joints(cells, rows)
    for a, column in enumerate(model.columns):
        if column.is_set:
            yield None
            continue
        proba, number = np.tile(model.share[model.spans[a]], (len(rows), 1)), None
        if "counts" in model.engines:
            proba, number = model.regressed(a, rows, complete)
        if joints:
            mixed = model.from_mixture(a, cells.codes[a], joints)
            proba = (proba + mixed) / 2 if "counts" in model.engines else mixed
        if number is None and column.bins is not None:
            number = proba @ column.bins.means
        yield proba, number


def contradiction(model: RowModel, cells: CodedRows, row: int, column: int) -> Reason | None:
    """The cell of a row that speaks against another one most."""
    code = int(cells.codes[column, row])
    if code < 0:
        return None
    share = model.share[model.spans[column]][code]

    def gain(other: Reason) -> float:
        both, n = other.both, other.n
        return float(np.log((both + share) / (n + 1) / max(share, 1e-12)) * np.sqrt(n + 1))

    return min(model.reasons(cells, row, column, code), key=gain, default=None)


def _p_values(fit_scores: np.ndarray, scores: np.ndarray, *, is_of_fit: bool = False) -> np.ndarray:
    """The share of scores of fit that are as large, the score itself counted once."""
    n, n_new = len(fit_scores), 0 if is_of_fit else 1
    above = n - np.searchsorted(np.sort(fit_scores), scores, side="left")
    return (above + n_new) / (n + n_new)
