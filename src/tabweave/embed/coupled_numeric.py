"""CoupledNumeric: numeric rows through the correlations of their columns' powers [Wang 2013].

A number alone says nothing about the other columns; here each column becomes L coordinates, a
Taylor-like series in its own powers and in those of the columns it is correlated with. Rows are
seen once: everything comes from moments that add up (:class:`PowerMoments`), and a row is a fixed
linear map of its powers (:func:`learn`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, factorial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import betainc
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, StrOptions
from tabweave.base import Estimator
from tabweave.columns.column import Schema
from tabweave.columns.inputs import check_input_features, read_with_fitted_schema
from tabweave.columns.table import Table, remember_names, require_rows
from tabweave.embed.register import embedder
from tabweave.engines import vector_types
from tabweave.engines.reading import by_parts
from tabweave.io.register import storable
from tabweave.updates import completing


@embedder(
    "coupled",
    "numbers, by correlations of their powers",
    "Wang, She & Cao 2013",
    reads="numbers",
    offered="python",
    page="coupled-numeric",
)
class CoupledNumeric(TransformerMixin, Estimator):
    """Embed numeric rows by the correlations between powers of their columns.

    Parameters
    ----------
    max_power : int, default=3
        The largest power L; 3 or 4 was enough in the paper.
    alpha : float, default=0.05
        A correlation counts where its p-value is below this.
    scale : {"minmax", "standard", None}, default="minmax"
        What is done to a column before its powers are taken; None keeps the numbers as they are,
        as published, and refuses powers that overflow.
    standardize : bool, default=False
        Whether the coordinates are brought to mean 0 and standard deviation 1 (n - 1).
    schema : Schema or mapping of column to kind, optional
        What the columns are; all must be numeric. ``Schema(missing="error")`` refuses gaps.
    dtype : {"float64", "float32"}, default="float64"
        Type of the vectors.

    Attributes
    ----------
    correlations_ : ndarray of shape (m L, m L)
        Revised correlations of all powers, 0 where they are not significant.
    p_values_ : ndarray of shape (m L, m L)
        The p-value of each correlation.
    moments_ : PowerMoments
        What was seen; it adds up.
    n_features_in_, feature_names_in_, schema_
        The columns.

    Notes
    -----
    A missing number takes the mean of each power, and correlations are over the rows that have
    both columns. A column that does not vary has no correlation and is refused.

    Examples
    --------
    >>> from tabweave.embed.coupled_numeric import CoupledNumeric
    >>> rows = {"length": [1.4, 1.5, 4.7, 4.5], "width": [0.2, 0.2, 1.4, 1.5]}
    >>> model = CoupledNumeric(2, scale=None).fit(rows)
    >>> model.intra("width").round(3)
    array([[1.   , 0.999],
           [0.999, 1.   ]])
    >>> model.get_feature_names_out().tolist()
    ['length', 'length^2', 'width', 'width^2']
    >>> model.transform(rows).shape
    (4, 4)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_power": [Interval(Integral, 1, 20, closed="both")],
        "alpha": [Interval(Real, 0, 1, closed="right")],
        "scale": [StrOptions({"minmax", "standard"}), None],
        "standardize": ["boolean"],
        "schema": [Schema, dict, str, None],
        "dtype": [StrOptions({"float32", "float64"}), type, np.dtype],
    }

    def __init__(
        self,
        max_power: int = 3,
        *,
        alpha: float = 0.05,
        scale: str | None = "minmax",
        standardize: bool = False,
        schema: Any = None,
        dtype: str = "float64",
    ) -> None:
        self.max_power = max_power
        self.alpha = alpha
        self.scale = scale
        self.standardize = standardize
        self.schema = schema
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows of numbers.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows, of numbers only.
        y : ignored
        """
        return self._add(X, first=True).learn()

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to what was seen so far; same result as one ``fit`` on all of them.

        Learning waits for :meth:`learn`, or for the first method that needs it, so a batch may be
        too small to learn from.
        """
        return self._add(X, first=not hasattr(self, "moments_"))

    def _add(self, X: Any, *, first: bool) -> Self:
        self._validate_params()
        table = self._read(X, fitted=not first)
        require_rows(table)
        values = stacked(table)
        check_extremes(values, table.schema.names)
        moments = PowerMoments.of(values, int(self.max_power), signed=self.scale != "minmax")
        if first:
            return self._hold(moments, table.schema)
        return self._hold(self.moments_ + moments, self.schema_)

    def __add__(self, other: CoupledNumeric) -> CoupledNumeric:
        if not isinstance(other, CoupledNumeric):
            return NotImplemented
        check_is_fitted(self, "moments_")
        check_is_fitted(other, "moments_")
        if self.schema_.names != other.schema_.names:
            raise ValueError(f"expected columns {self.schema_.names}, got {other.schema_.names}")
        return clone(self)._hold(self.moments_ + other.moments_, self.schema_)

    _learned: CoupledModel | None = None

    def _hold(self, moments: PowerMoments, schema: Schema) -> Self:
        """Keep moments and drop what was learned from older ones."""
        self._learned, self.moments_, self.schema_ = None, moments, schema
        remember_names(self, schema)
        return self

    @completing
    def learn(self) -> Self:
        """Fit to the rows seen so far, if there are new ones."""
        check_is_fitted(self, "moments_")
        if self._learned is None:
            names = self.schema_.names
            self._learned = learn(self.moments_, names, self.scale, float(self.alpha))
        return self

    @property
    def _model(self) -> CoupledModel:
        check_is_fitted(self, "moments_")
        if self._learned is None:
            raise AttributeError("rows were added after the last fit: call learn() first")
        return self._learned

    def _read(self, X: Any, *, fitted: bool) -> Table:
        try:
            if fitted:
                table = read_with_fitted_schema(self, X, numbers="numeric")
            else:
                table = Table.of(X, self.schema)
        except TypeError as error:
            raise TypeError(
                f"{error}; each argument must be converted from a string to a number"
            ) from error
        for column in table.schema.categorical:
            raise TypeError(
                f"column {column.name!r} is {column.kind}; CoupledNumeric reads numbers, each "
                f"argument must be converted from a string to a number: declare it numeric "
                "(schema='numeric'), or leave it out"
            )
        return table

    @by_parts(vector_types)
    def transform(self, X: Any) -> np.ndarray:
        """Eqs. (4.1), (4.4): coupled vector of each row."""
        check_is_fitted(self, "moments_")
        table, model = self._read(X, fitted=True), self.learn()._model
        weights, centre = self._weighted_map(model)
        out = np.empty((table.n_rows, len(centre)), np.dtype(self.dtype))
        block_rows = 1 << 15
        for start in range(0, len(out), block_rows):
            rows = slice(start, start + block_rows)
            out[rows] = self._extended(stacked(table, rows), model) @ weights - centre
        return out

    def _weighted_map(self, model: CoupledModel) -> tuple[np.ndarray, np.ndarray]:
        """Map of powers to coordinates, and what is taken off each coordinate."""
        if self.standardize:
            return model.map * (1 / model.deviation), model.centre * (1 / model.deviation)
        return model.map, np.zeros(len(model.centre))

    def parts(self, X: Any) -> np.ndarray:
        """What each column contributes to the vector: shape (columns, rows, dimensions)."""
        check_is_fitted(self, "moments_")
        table, model = self._read(X, fitted=True), self.learn()._model
        extended = self._extended(stacked(table), model).reshape(table.n_rows, -1, self.max_power)
        by_column = np.split(self._weighted_map(model)[0], self.n_features_in_)
        return np.stack([extended[:, j] @ weights for j, weights in enumerate(by_column)])

    def _extended(self, values: np.ndarray, model: CoupledModel) -> np.ndarray:
        """Table 2: the powers of every column, gaps filled with their means."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (values - model.origin) / model.unit
            P = powers(scaled, int(self.max_power))
        gaps = np.isnan(values)
        for row, column in np.argwhere(~np.isfinite(P[:, :, -1]) & ~gaps):
            raise ValueError(
                f"column {self.schema_.names[column]!r}: {values[row, column]:g} overflows at "
                f"power {self.max_power}; lower max_power or correct the value"
            )
        if gaps.any():
            P = np.where(gaps[:, :, None], model.mean, P)
        return P.reshape(len(values), -1)

    @property
    def correlations_(self) -> np.ndarray:
        """Eq. (3.2): revised correlations of all powers, 0 where they are not significant."""
        return self._model.correlations

    @property
    def p_values_(self) -> np.ndarray:
        """The p-value of each correlation of powers."""
        return self._model.p_values

    def intra(self, column: str) -> np.ndarray:
        """Eq. (3.3): the correlations of a column's powers among themselves, L × L."""
        j, L = self._index(column), int(self.max_power)
        return self.learn().correlations_[j * L : (j + 1) * L, j * L : (j + 1) * L]

    def inter(self, column: str) -> np.ndarray:
        """Eq. (3.4): those of a column's powers with the powers of the others, L × L (m - 1)."""
        j, L = self._index(column), int(self.max_power)
        rows = self.learn().correlations_[j * L : (j + 1) * L]
        return np.delete(rows, slice(j * L, (j + 1) * L), axis=1)

    def _index(self, column: str) -> int:
        check_is_fitted(self, "moments_")
        if column not in self.schema_.names:
            raise KeyError(f"expected a column of {self.schema_.names}, got {column!r}")
        return self.schema_.names.index(column)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """``column^power`` for each dimension, the plain name for the first power."""
        check_is_fitted(self, "moments_")
        check_input_features(self, input_features)
        names = list(self.schema_.names if input_features is None else input_features)
        out = [n if p == 1 else f"{n}^{p}" for n in names for p in range(1, self.max_power + 1)]
        return np.asarray(out, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def stacked(table: Table, rows: slice = slice(None)) -> np.ndarray:
    """Rows of a table of numbers as an array."""
    columns: Any = table.columns
    return np.stack([column.values[rows] for column in columns], axis=1)


@storable
@dataclass(frozen=True, eq=False)
class CoupledModel:
    """What is learned from moments."""

    correlations: np.ndarray
    p_values: np.ndarray
    map: np.ndarray  # powers to coordinates
    origin: np.ndarray
    unit: np.ndarray
    mean: np.ndarray  # of each power
    centre: np.ndarray  # of each coordinate
    deviation: np.ndarray  # of each coordinate, 1 where it does not vary


def learn(moments: PowerMoments, names: list[str], scale: str | None, alpha: float) -> CoupledModel:
    """Eqs. (3.1)-(4.1) from moments: correlations, their significance, the linear map."""
    check_moments(moments, names, scale)
    m, L = len(names), moments.mean.shape[2]
    columns = np.arange(m)
    origin, unit = scaling(moments, scale)
    start, width = frame(moments.low, moments.high, moments.signed)
    constant, T = affine_powers((start - origin) / unit, width / unit, L)
    cross = np.einsum("apq,abqr,bsr->abps", T, moments.cross, T, optimize=True)
    squares = np.einsum("apq,abqr,apr->abp", T, moments.own, T, optimize=True)
    r = correlations(cross, squares)
    p = p_values(r, moments.n[:, :, None, None])
    r = np.where(p < alpha, r, 0.0)
    r[columns, columns, np.arange(L)[:, None], np.arange(L)[:, None]] = 1.0
    R, P = (flat.transpose(0, 2, 1, 3).reshape(m * L, m * L) for flat in (r, p))
    w = np.tile([1 / factorial(q) for q in range(1, L + 1)], m)
    A = w[:, None] * R.T
    mean = constant + np.einsum("apq,aq->ap", T, moments.mean[columns, columns])
    covariance = cross / np.maximum(moments.n - 1, 1)[:, :, None, None]
    covariance = covariance.transpose(0, 2, 1, 3).reshape(m * L, m * L)
    variance = np.maximum(np.einsum("ki,kl,li->i", A, covariance, A, optimize=True), 0)
    deviation = np.where(variance > 0, np.sqrt(variance), 1)
    return CoupledModel(R, P, A, origin, unit, mean, mean.ravel() @ A, deviation)


def correlations(cross: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Eq. (3.1): Pearson's correlation of every pair of powers, 0 where one does not vary."""
    scale = np.sqrt(np.maximum(squares, 0))
    scale = scale[:, :, :, None] * scale.transpose(1, 0, 2)[:, :, None, :]
    return np.clip(np.where(scale > 0, cross / np.where(scale > 0, scale, 1), 0.0), -1, 1)


def p_values(r: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Two-sided t-test of no correlation: ``I_{1-r²}((n - 2)/2, 1/2)``; 1 with fewer than 3 rows.

    With ``t = r √((n - 2)/(1 - r²))`` that is the tail of Student's distribution, all pairs at
    once.
    """
    freedom = np.maximum(n - 2, 1)
    return np.where(n > 2, betainc(freedom / 2, 0.5, 1 - r * r), 1.0)


def scaling(moments: PowerMoments, scale: str | None) -> tuple[np.ndarray, np.ndarray]:
    """(origin, unit) of every column: powers are taken of ``(x - origin) / unit``."""
    low, width = moments.low, moments.high - moments.low
    if scale is None:
        return np.zeros(len(low)), np.ones(len(low))
    if scale == "minmax":
        return low, width
    columns = np.arange(len(low))
    rows = np.maximum(np.diagonal(moments.n) - 1, 1)
    deviation = np.sqrt(moments.own[columns, columns, 0, 0] / rows)
    origin, unit = frame(low, moments.high, moments.signed)
    return origin + unit * moments.mean[columns, columns, 0], unit * deviation


def check_moments(
    moments: PowerMoments, names: list[str], scale: str | None, *, max_power_size: float = 1e150
) -> None:
    """Raise for what has no correlations, by column."""
    seen = np.diagonal(moments.n)
    L = moments.mean.shape[2]
    for j, name in enumerate(names):
        if seen[j] < 3:
            raise ValueError(
                f"column {name!r}: expected 3 numbers or more for a correlation, got "
                f"n_samples={int(seen[j])}; add rows, or leave the column out"
            )
        low, high = moments.low[j], moments.high[j]
        if low == high:
            raise ValueError(
                f"column {name!r}: expected different numbers, got {low:g} in all "
                f"{int(seen[j])} rows; leave the column out"
            )
        largest = max(abs(low), abs(high))
        if scale is None and largest > 1 and L * np.log(largest) > np.log(max_power_size):
            raise ValueError(
                f"column {name!r}: {largest:g} overflows at power {L}; use scale='minmax' or a "
                "lower max_power"
            )


def check_extremes(values: np.ndarray, names: list[str]) -> None:
    """Raise for numbers so large that the range of their column is beyond float64."""
    max_number = 8e307
    largest = np.max(np.abs(values), axis=0, initial=0, where=~np.isnan(values))
    for name, size in zip(names, largest, strict=True):
        if size > max_number:
            raise ValueError(
                f"column {name!r}: expected numbers up to {max_number:g}, got {size:g}; scale it"
            )


@storable
@dataclass(frozen=True, eq=False)
class PowerMoments:
    """Centred moments of the powers 1...L of m columns, each pair over the rows that have both.

    Attributes
    ----------
    low, high : ndarray of shape (m,)
        The interval of each column; infinity where no number was seen.
    n : ndarray of shape (m, m)
        Number of rows that have both columns.
    mean : ndarray of shape (m, m, L)
        Mean of the powers of column a over the rows that have b, too.
    own : ndarray of shape (m, m, L, L)
        Centred co-moments of the powers of a among themselves, over the rows that have b, too.
    cross : ndarray of shape (m, m, L, L)
        Centred co-moments of the powers of a with those of b.
    signed : bool
        Whether intervals were brought to [-1, 1] instead of [0, 1].
    """

    low: np.ndarray
    high: np.ndarray
    n: np.ndarray
    mean: np.ndarray
    own: np.ndarray
    cross: np.ndarray
    signed: bool = False

    @classmethod
    def of(
        cls, values: np.ndarray, max_power: int, *, signed: bool = False, block_rows: int = 1 << 14
    ) -> PowerMoments:
        """Add up the rows of an array with NaN for missing."""
        present = ~np.isnan(values)
        low = np.min(values, axis=0, initial=np.inf, where=present)
        high = np.max(values, axis=0, initial=-np.inf, where=present)
        total: PowerMoments | None = None
        for start in range(0, max(len(values), 1), block_rows):
            part = _block_moments(values[start : start + block_rows], low, high, max_power, signed)
            total = part if total is None else total._merged(part)
        assert total is not None
        return total

    def __add__(self, other: PowerMoments) -> PowerMoments:
        if not isinstance(other, PowerMoments):
            return NotImplemented
        if self.mean.shape != other.mean.shape or self.signed != other.signed:
            raise ValueError("expected moments of the same columns, powers and scale, got others")
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return self.moved(low, high)._merged(other.moved(low, high))

    def moved(self, low: np.ndarray, high: np.ndarray) -> PowerMoments:
        """Same moments on other, wider intervals."""
        if np.array_equal(low, self.low) and np.array_equal(high, self.high):
            return self
        origin, unit = frame(self.low, self.high, self.signed)
        new_origin, new_unit = frame(low, high, self.signed)
        safe = np.where(new_unit > 0, new_unit, 1)
        shift = np.where(np.isfinite(self.low), origin - new_origin, 0) / safe
        constant, T = affine_powers(shift, unit / safe, self.mean.shape[2])
        mean = constant[:, None] + np.einsum("apq,abq->abp", T, self.mean)
        return PowerMoments(
            low=low,
            high=high,
            n=self.n,
            mean=np.where(self.n[:, :, None] > 0, mean, 0),
            own=np.einsum("apq,abqr,asr->abps", T, self.own, T, optimize=True),
            cross=np.einsum("apq,abqr,bsr->abps", T, self.cross, T, optimize=True),
            signed=self.signed,
        )

    def _merged(self, other: PowerMoments) -> PowerMoments:
        """Merge centred moments on the same intervals: the parallel formula of Chan et al."""
        n = self.n + other.n
        share = other.n / np.where(n > 0, n, 1)
        step = other.mean - self.mean
        weight = (self.n * share)[:, :, None, None]
        back = step.transpose(1, 0, 2)
        return PowerMoments(
            low=self.low,
            high=self.high,
            n=n,
            mean=self.mean + share[:, :, None] * step,
            own=self.own + other.own + weight * step[:, :, :, None] * step[:, :, None, :],
            cross=self.cross + other.cross + weight * step[:, :, :, None] * back[:, :, None, :],
            signed=self.signed,
        )


def affine_powers(shift: np.ndarray, factor: np.ndarray, L: int) -> tuple[np.ndarray, np.ndarray]:
    """``c`` and ``T`` of ``(shift + factor u)^p = c_p + Σ_q T_pq u^q``, p and q from 1 to L."""
    constant = shift[:, None] ** np.arange(1, L + 1)
    T = np.zeros((len(shift), L, L))
    for p in range(1, L + 1):
        for q in range(1, p + 1):
            T[:, p - 1, q - 1] = comb(p, q) * shift ** (p - q) * factor**q
    return constant, T


def powers(u: np.ndarray, L: int) -> np.ndarray:
    """``⟨a⟩¹ ... ⟨a⟩ᴸ`` of every column: shape (rows, columns, L)."""
    out = np.empty((*u.shape, L))
    out[:, :, 0] = u
    for p in range(1, L):
        np.multiply(out[:, :, p - 1], u, out=out[:, :, p])
    return out


def frame(low: np.ndarray, high: np.ndarray, signed: bool) -> tuple[np.ndarray, np.ndarray]:
    """(origin, unit) of the intervals; unit 0 where a column does not vary."""
    seen = np.isfinite(low) & np.isfinite(high)
    start, stop = np.where(seen, low, 0), np.where(seen, high, 0)
    half = stop / 2 - start / 2
    return (start + half, half) if signed else (start, stop - start)


def _block_moments(
    values: np.ndarray, low: np.ndarray, high: np.ndarray, L: int, signed: bool
) -> PowerMoments:
    """Moments of a few rows; two passes, so nothing cancels."""
    rows, m = values.shape
    present = (~np.isnan(values)).astype(np.float64)
    origin, unit = frame(low, high, signed)
    u = np.where(unit > 0, values - origin, 0) / np.where(unit > 0, unit, 1)
    P = np.nan_to_num(powers(u, L), nan=0.0)
    count = present.sum(axis=0)
    middle = P.sum(axis=0) / np.where(count > 0, count, 1)[:, None]
    P = (P - middle) * present[:, :, None]
    flat = P.reshape(rows, m * L)
    n = present.T @ present
    safe = np.where(n > 0, n, 1)
    # What is left of the mean of a over the rows that have b.
    shift = (flat.T @ present).reshape(m, L, m).transpose(0, 2, 1) / safe[:, :, None]
    cross = (flat.T @ flat).reshape(m, L, m, L).transpose(0, 2, 1, 3)
    cross = (
        cross - n[:, :, None, None] * shift[:, :, :, None] * shift.transpose(1, 0, 2)[:, :, None]
    )
    squares = (P[:, :, :, None] * P[:, :, None, :]).reshape(rows, m * L * L)
    if present.all():
        within = np.broadcast_to(squares.sum(axis=0).reshape(m, 1, L, L), (m, m, L, L)).copy()
    else:
        within = (squares.T @ present).reshape(m, L, L, m).transpose(0, 3, 1, 2)
    within = within - n[:, :, None, None] * shift[:, :, :, None] * shift[:, :, None, :]
    mean = np.where(n[:, :, None] > 0, middle[:, None, :] + shift, 0)
    return PowerMoments(low, high, n, mean, within, cross, signed)
