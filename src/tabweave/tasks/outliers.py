"""OutlierCells: rows and cells that do not fit, and why.

A cell is odd if the rest of its row makes it unlikely, however frequent its value is elsewhere:
Paris is a common city and Chile a common country, but not in one row. The surprise of a cell is
``-log p(cell | rest of the row)``; its p-value is the share of cells of that column which are as
surprising among rows that took no part in learning, so that alarms are as rare as they claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, StrOptions
from tabweave.base import (
    Estimator,
    TabularInput,
    read_with_fitted_schema,
    seed_of,
)
from tabweave.io.register import storable
from tabweave.rows.frames import row_labels
from tabweave.rows.table import Datetimes, Numbers, Schema, Table, append_rows, take_rows
from tabweave.tasks.row_model import FLOOR, Cells, Reason, Round, RowModel, rows_to_learn, shown

_FOLDS = 4  # parts of the rows that p-values come from
_NUMBERS = 1 << 21  # held at a time while rows are judged
_RARE = 1e-6  # probability of a value that was never seen
_NEVER = float(-np.log(_RARE))
_DIGITS = 9  # of a surprise, after the point: what differs in later ones is level


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
    The score of a row is the sum over its cells of ``log (p(likeliest value) / p(cell))``: how much
    less likely each cell is than the value that fits the rest of the row best. P-values, and the
    results of ``fit_predict``, come from four parts of the rows, each judged by a model of the
    others. A missing cell is no surprise; a value not seen in fit is a great one, and so is a
    number or date that is farther from all of fit than those are from each other. Set-valued cells
    help to judge the others, but are not judged themselves.

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
        "schema": [Schema, dict, None],
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
        table, self._drawn = rows_to_learn(self, X)
        return self._learn(table)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows of a stream; the model is fitted to the latest ``max_rows``."""
        if "_rows" not in vars(self):
            return self.fit(X)
        self._validate_params()
        table = append_rows(self._rows, read_with_fitted_schema(self, X, numbers="numeric"))
        latest = np.arange(max(0, table.n_rows - int(self.max_rows)), table.n_rows)
        self._drawn = type(self)._drawn
        return self._learn(take_rows(table, latest))

    def _learn(self, table: Table) -> Self:
        seed = seed_of(self.random_state)
        self._rows = table
        self._model = self._taught_by(table, seed)
        fold = np.random.default_rng(seed).permutation(table.n_rows) % _FOLDS
        surprises = np.zeros((table.n_rows, len(self._model.names)))
        scores = np.zeros(table.n_rows)
        for part in range(_FOLDS):
            teaches, judged = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
            if len(teaches) and len(judged):
                model = self._taught_by(take_rows(table, teaches), seed)
                surprises[judged], scores[judged] = judge(model, take_rows(table, judged))
        self._own_surprises, self._own_scores = surprises, scores
        self._surprises, self._scores = np.sort(surprises, axis=0), np.sort(scores)
        most = int(np.floor(float(self.level) * (len(self._scores) + 1)))
        self.offset_ = -float(self._scores[max(len(self._scores) - most, 0) - (most == 0)])
        return self

    def _taught_by(self, table: Table, seed: int) -> RowModel:
        engines = ("counts", "mixture") if self.engine == "all" else (self.engine,)
        return RowModel.of(table, int(self.n_bins), seed, engines, 1)

    # -- rows ------------------------------------------------------------------------------

    def score_samples(self, X: Any) -> np.ndarray:
        """Return how well each row fits: minus the sum of ``log (p(likeliest) / p(cell))``."""
        return -self._judged(X)[1]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return :meth:`score_samples` minus ``offset_``: negative for odd rows."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return -1 for odd rows, 1 for the others."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Learn from rows and return -1 for odd ones; each row is scored by a model of the others.

        :meth:`predict` is for new rows: those of fit seem less odd to it than they are.
        """
        table = self.fit(X)._read(X)
        _, scores, _ = self._judged_apart(table)
        return np.where(-scores < self.offset_, -1, 1)

    def row_p_values(self, X: Any) -> np.ndarray:
        """Return the p-value of each row: the chance that a row of fit fits as badly."""
        return _p_values(self._scores, self._judged(X)[1])

    # -- cells -----------------------------------------------------------------------------

    def surprise(self, X: Any) -> np.ndarray:
        """Return ``-log p(cell | rest of the row)`` of each cell, rows × columns; 0 if missing."""
        return self._judged(X)[0]

    def cell_p_values(self, X: Any) -> np.ndarray:
        """Return the p-value of each cell: the chance of one as surprising in its column."""
        return self._cell_p_values(self._judged(X)[0])

    def _cell_p_values(self, found: np.ndarray, taught: Any = False) -> np.ndarray:
        out = np.ones(found.shape)
        for a in range(found.shape[1]):
            out[:, a] = _p_values(self._surprises[:, a], found[:, a], taught)
        return np.where(found > 0, out, 1.0)

    def cells(self, X: Any, n: int | None = 20) -> list[OutlierCell]:
        """Return the most unusual cells of new rows, ranked and explained.

        Parameters
        ----------
        X : what :meth:`predict` takes
            The rows. Those of fit seem less odd than they are: :meth:`fit_cells` is for them.
        n : int, optional
            How many at most, one of each row; by default 20, None is all that are odder than
            ``level``.
        """
        table = self._read(X)
        found, _ = judge(self._model, table)
        return named_by(X, self._oddest_cells(table, found, self._cell_p_values(found), n))

    def fit_cells(self, X: Any, n: int | None = 20) -> list[OutlierCell]:
        """Learn from rows and return their most unusual cells, scored by a model of the other rows.

        A value that occurs once is as odd to the others as it looks; the model has learned it.
        """
        table = self.fit(X)._read(X)
        found, _, taught = self._judged_apart(table)
        return named_by(X, self._oddest_cells(table, found, self._cell_p_values(found, taught), n))

    def _oddest_cells(
        self, table: Table, found: np.ndarray, p_values: np.ndarray, n: int | None
    ) -> list[OutlierCell]:
        worst = oddest(found, p_values)
        rows = np.arange(len(found))
        surprise = found[rows, worst].round(_DIGITS)
        order = np.lexsort((rows, -surprise, p_values[rows, worst]))
        if n is None:
            order = order[p_values[order, worst[order]] <= self.level]
        order = order[found[order, worst[order]] > 0][:n]
        cells = known_cells(self._model, take_rows(table, order))
        return [
            self._outlier_cell(table, cells, i, int(row), int(worst[row]), found, p_values)
            for i, row in enumerate(order)
        ]

    def _outlier_cell(
        self,
        table: Table,
        cells: Cells,
        at: int,
        row: int,
        column: int,
        found: np.ndarray,
        p_values: np.ndarray,
    ) -> OutlierCell:
        model = self._model
        name = model.names[column]
        if name in model.numbers:  # of rows of fit, those that judged it have not seen it
            far = far_out(model, name, table[name].values[row : row + 1], others=True)
            is_new = bool(found[row, column] >= _NEVER and far[0])
        else:
            is_new = bool(cells.unseen[column, at])
        against = None if is_new else contradiction(model, cells, at, column)
        value = _value(table, name, row)
        surprise, p_value = float(found[row, column]), float(p_values[row, column])
        return OutlierCell(row, name, value, surprise, p_value, against, is_new)

    def _judged_apart(
        self, table: Table, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Judge rows of fit, all or by their numbers there; those that taught, by what others do.

        Returns surprise and score, and which rows taught.
        """
        rows = np.arange(table.n_rows) if rows is None else rows
        surprise, score = judge(self._model, table)
        at = np.searchsorted(self._drawn, rows)
        taught = np.isin(rows, self._drawn)
        surprise[taught] = self._own_surprises[at[taught]]
        score[taught] = self._own_scores[at[taught]]
        return surprise, score, taught

    def _judged(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        table = self._read(X)
        return judge(self._model, table)

    def _read(self, X: Any) -> Table:
        check_is_fitted(self, "_rows")
        table = read_with_fitted_schema(self, X, numbers="numeric")
        self._model.check_types(table)
        return table


class OutlierCell(NamedTuple):
    """A cell that does not fit.

    Attributes
    ----------
    row, column, value : label, str, label or float
        The cell; the row by its label in the index of a pandas frame, else by its position.
    surprise, p_value : float
        ``-log p(cell | rest of the row)``, and how often cells of the column are as surprising.
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
        text = f"row {self.row}: {self.column}={shown(self.value)}"
        if self.against is not None:
            column, other, both, n = self.against
            return f"{text} with {column}={other}: {both:,} of {n:,} (p = {self.p_value:.2g})"
        why = "far from all" if isinstance(self.value, float) else "not"
        why = f"{why} seen before" if self.is_new else "no other cell speaks against it"
        return f"{text}: {why} (p = {self.p_value:.2g})"


def named_by(X: Any, cells: list[OutlierCell]) -> list[OutlierCell]:
    """Return cells whose rows are called as in a frame."""
    labels = row_labels(X)
    return [
        cell._replace(row=cell.row if labels is None else labels.id_of(cell.row), position=cell.row)
        for cell in cells
    ]


# -- what the rest of a row says ------------------------------------------------------------------


def judge(model: RowModel, table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the surprise of each cell, and the score of each row, the larger the odder."""
    step = max(1, _NUMBERS // max(len(model.share), 1))
    spans = (np.arange(a, min(a + step, table.n_rows)) for a in range(0, table.n_rows, step))
    parts = [_judge(model, known_cells(model, take_rows(table, rows))) for rows in spans]
    empty = np.zeros((0, len(model.names))), np.zeros(0)
    surprise, score = (np.concatenate(own) for own in zip(empty, *parts, strict=True))
    return surprise, score


def _judge(model: RowModel, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    rows = np.arange(cells.codes.shape[1])
    surprise = np.zeros((len(rows), len(model.names)))
    score = np.zeros(len(rows))
    for a, proba in enumerate(conditionals(model, cells)):
        if proba is None or not proba.shape[1]:  # no cell was known in fit
            continue
        codes = cells.codes[a]
        known = np.maximum(proba[rows, np.maximum(codes, 0)], _RARE)
        own = np.where(codes >= 0, -np.log(known), 0.0)
        own[cells.unseen[a]] = _NEVER
        surprise[:, a] = own
        here = (codes >= 0) | cells.unseen[a]
        score += np.where(here, own + np.log(np.maximum(proba.max(axis=1), _RARE)), 0.0)
    return surprise, score


def known_cells(model: RowModel, table: Table) -> Cells:
    """Return the cells of rows; a number far out is one that fit has not seen.

    It is farther from the numbers of fit than they are from each other. The rest of its row is
    judged without it.
    """
    cells = model.cells(table)
    for j, name in enumerate(model.numbers):
        data = table[name]
        if isinstance(data, Numbers):
            far, a = far_out(model, name, data.values), model.names.index(name)
            cells.codes[a, far], cells.z[j, far], cells.unseen[a, far] = -1, np.nan, True
    return cells


def far_out(model: RowModel, name: str, values: np.ndarray, *, others: bool = False) -> np.ndarray:
    """Tell which numbers are farther from those of fit, or others of fit, than these are apart."""
    seen = np.concatenate([np.zeros(0), *model.seen[name]])
    if others:
        seen = seen[~np.isin(seen, values)]
    if not len(seen):
        return np.zeros(len(values), bool)
    low, high = seen.min(), seen.max()
    with np.errstate(over="ignore"):  # no float is beyond infinity: none is far out
        return (values > high + (high - low)) | (values < low - (high - low))


def oddest(surprise: np.ndarray, p_values: np.ndarray) -> np.ndarray:
    """Return the column of each row's oddest cell.

    Where one cell is wrong all cells of its row look odd: the oddest stands for them, the first
    column of level ones.
    """
    if not surprise.size:
        return np.zeros(len(surprise), dtype=int)
    return np.lexsort((-surprise.round(_DIGITS), p_values), axis=1)[:, 0]


def conditionals(model: RowModel, cells: Cells) -> list[np.ndarray | None]:
    """Return, per column, the probability of its values given the other cells of each row."""
    rows = np.arange(cells.codes.shape[1])
    found: list[list[np.ndarray]] = [[] for _ in model.names]
    singles = [a for a, name in enumerate(model.names) if name not in model.sets]
    if "counts" in model.wanted and singles:
        for a, proba in zip(singles, regressions(model, cells, singles), strict=True):
            found[a].append(proba)
    for weights, logs in model.subspaces:
        joint = model._log_joint(cells, rows, weights, logs)
        for a in singles:
            own = np.vstack([logs[model.spans[a]], np.zeros(logs.shape[1])])[cells.codes[a]]
            rest = joint - own
            rest = np.exp(rest - rest.max(axis=1, keepdims=True))
            proba = rest @ np.exp(logs[model.spans[a]]).T
            found[a].append(proba / proba.sum(axis=1, keepdims=True))
    return [_mean(own, len(model.subspaces)) for own in found]


def regressions(model: RowModel, cells: Cells, columns: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield what the regression says of some columns, given the other cells of each row.

    A gap counts as the mixture guesses it, without one by its shares.
    """
    guesses, rows = model._first(cells), np.arange(cells.codes.shape[1])
    known = model.indicators(cells, guesses)
    before = Round(cells.codes, np.nan_to_num(cells.z), cells.elements, known)
    for a in columns:
        share, unit = model.share[model.spans[a]], model.unit[model.spans[a]]
        own = model.expected(model.names[a], rows, before)[:, : len(share)]
        proba = np.maximum(share + own / np.where(unit > 0, unit, 1), FLOOR)
        yield proba / proba.sum(axis=1, keepdims=True)


def _mean(found: Sequence[np.ndarray], n_fits: int) -> np.ndarray | None:
    """Return the mean of regression and mixture, the mixture being the mean of its fits."""
    if not found:
        return None
    if len(found) == 1:
        return found[0]
    if len(found) == n_fits or not n_fits:
        return np.mean(found, axis=0)
    return (found[0] + np.mean(found[1:], axis=0)) / 2


def contradiction(model: RowModel, cells: Cells, row: int, column: int) -> Reason | None:
    """Return the cell of a row that speaks against another one most."""
    code = int(cells.codes[column, row])
    if code < 0:
        return None
    share = model.share[model.spans[column]][code]

    def gain(other: Reason) -> float:
        both, n = other.both, other.n
        return float(np.log((both + share) / (n + 1) / max(share, 1e-12)) * np.sqrt(n + 1))

    return min(model.beside(cells, row, column, code), key=gain, default=None)


def _p_values(sorted_scores: np.ndarray, scores: np.ndarray, among: Any = False) -> np.ndarray:
    """Return the share of calibration scores that are as large, the score itself counted once.

    ``among`` says which of the scores are calibration scores.
    """
    n, new = len(sorted_scores), 1 - np.asarray(among, int)
    above = n - np.searchsorted(sorted_scores, scores, side="left")
    return (above + new) / (n + new)


def _value(table: Table, name: str, row: int) -> Any:
    data = table[name]
    if isinstance(data, Datetimes):
        return data.text(data.values[row])
    return float(data.values[row]) if hasattr(data, "values") else data.labels[data.codes[row]]
