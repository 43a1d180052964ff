"""CoupledNumeric: numeric rows through the correlations of their columns' powers [Wang 2013].

A number alone says nothing about the other columns; here each column becomes L coordinates, a
Taylor-like series in its own powers and in those of the columns it is correlated with. Rows are
seen once: everything comes from moments that add up, and a row is a fixed linear map of its powers.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from weft._input import remember_names, require_rows
from weft._store import Storable
from weft.numeric._couplings import CoupledModel, learn, refuse_extremes
from weft.numeric._powers import PowerMoments, powers
from weft.table import Schema, Table

_BLOCK = 1 << 15


class CoupledNumeric(Storable, TransformerMixin, BaseEstimator):
    """Represent numeric rows by the couplings within and between columns.

    Parameters
    ----------
    max_power : int, default=3
        The largest power L; 3 or 4 was enough in the paper.
    alpha : float, default=0.05
        A correlation counts where its p-value is below this.
    scale : {"minmax", "standard", None}, default="minmax"
        What is done to a column before its powers are taken; None keeps the numbers as they are,
        as printed, and refuses powers that overflow.
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
    >>> from weft.numeric import CoupledNumeric
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

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows of numbers.

        Parameters
        ----------
        X : frame, array, mapping of columns or list of dicts
            The rows.
        y : ignored
        """
        self.__dict__.pop("moments_", None)
        self.partial_fit(X)
        self._model()  # what cannot be learned is refused here, not later
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to what was seen so far; same result as one ``fit`` on all of them.

        Learning waits until it is needed, so a batch may be too small to learn from.
        """
        self._check_parameters()
        first = "moments_" not in vars(self)
        table = self._read(X, Schema.of(self.schema)) if first else self._known(X)
        require_rows(table)
        signed = self.scale != "minmax"
        values = stacked(table)
        refuse_extremes(values, table.schema.names)
        moments = PowerMoments.of(values, int(self.max_power), signed=signed)
        if first:
            self.schema_ = table.schema
            remember_names(self, table.schema)
            return self._hold(moments)
        return self._hold(self.moments_ + moments)

    def __add__(self, other: CoupledNumeric) -> CoupledNumeric:
        if not isinstance(other, CoupledNumeric):
            return NotImplemented
        check_is_fitted(self, "moments_")
        check_is_fitted(other, "moments_")
        if self.schema_.names != other.schema_.names:
            raise ValueError(f"columns {other.schema_.names} are not {self.schema_.names}")
        both = clone(self)
        for name in ("schema_", "n_features_in_", "feature_names_in_"):
            if name in vars(self):
                setattr(both, name, getattr(self, name))
        return both._hold(self.moments_ + other.moments_)

    def _hold(self, moments: PowerMoments) -> Self:
        self.__dict__.pop("_learned", None)
        self.moments_ = moments
        return self

    def _model(self) -> CoupledModel:
        check_is_fitted(self, "moments_")
        if "_learned" not in vars(self):
            names = self.schema_.names
            self._learned = learn(self.moments_, names, self.scale, float(self.alpha))
        return self._learned

    def _check_parameters(self) -> None:
        whole = isinstance(self.max_power, Integral) and not isinstance(self.max_power, bool)
        if not whole or not 1 <= self.max_power <= 20:
            raise ValueError(f"max_power={self.max_power!r}: use a whole number from 1 to 20")
        if not isinstance(self.alpha, Real) or not 0 < self.alpha <= 1:
            raise ValueError(f"alpha={self.alpha!r}: use a number above 0, at most 1")
        if self.scale not in ("minmax", "standard", None):
            raise ValueError(f"scale={self.scale!r}: use 'minmax', 'standard' or None")

    def _read(self, X: Any, schema: Schema) -> Table:
        try:
            table = Table.of(X, schema, numbers="numeric")
        except TypeError as error:
            raise TypeError(f"{error}; each argument must be no string but a number") from error
        for column in table.schema.categorical:
            raise TypeError(
                f"column {column.name!r} is {column.kind}; CoupledNumeric reads numbers, each "
                "argument must be no string but a number: leave the column out"
            )
        return table

    def _known(self, X: Any) -> Table:
        check_is_fitted(self, "moments_")
        if not isinstance(X, Mapping | list | tuple | Table):
            _check_feature_names(self, X, reset=False)
        table = self._read(X, self.schema_)
        if table.schema.names != self.schema_.names:
            raise ValueError(
                f"the table has columns {table.schema.names}, not {self.schema_.names}"
            )
        return table

    # -- using -----------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """Eqs. (4.1), (4.4): the coupled vector of each row; learns nothing."""
        table, model = self._known(X), self._model()
        out = np.empty((table.n_rows, model.map.shape[1]), np.dtype(self.dtype))
        factor = 1 / model.spread if self.standardize else np.ones(len(model.spread))
        for start in range(0, len(out), _BLOCK):
            rows = slice(start, start + _BLOCK)
            extended = self._extended(stacked(table, rows), model)
            part = extended @ (model.map * factor)
            out[rows] = part - model.centre * factor if self.standardize else part
        return out

    def parts(self, X: Any) -> np.ndarray:
        """Return what each column brings to the vector: shape (columns, rows, dimensions)."""
        table, model = self._known(X), self._model()
        extended = self._extended(stacked(table), model).reshape(table.n_rows, -1, self.max_power)
        factor = 1 / model.spread if self.standardize else np.ones(len(model.spread))
        step = int(self.max_power)
        weights = model.map * factor
        return np.stack(
            [
                extended[:, j] @ weights[j * step : (j + 1) * step]
                for j in range(self.n_features_in_)
            ]
        )

    def _extended(self, values: np.ndarray, model: CoupledModel) -> np.ndarray:
        """Return Table 2: the powers of every column, gaps filled with their means."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (values - model.origin) / model.unit
            P = powers(scaled, int(self.max_power))
        gaps = np.isnan(values)
        odd = np.argwhere(~np.isfinite(P[:, :, -1]) & ~gaps)
        if len(odd):
            row, column = odd[0]
            raise ValueError(
                f"column {self.schema_.names[column]!r}: {values[row, column]:g} overflows at "
                f"power {self.max_power}; lower max_power or mend the value"
            )
        if gaps.any():
            P = np.where(gaps[:, :, None], model.mean, P)
        return P.reshape(len(values), -1)

    @property
    def correlations_(self) -> np.ndarray:
        """Eq. (3.2): revised correlations of all powers, 0 where they are not significant."""
        return self._model().correlations

    @property
    def p_values_(self) -> np.ndarray:
        """The p-value of each correlation of powers."""
        return self._model().p_values

    def intra(self, column: str) -> np.ndarray:
        """Eq. (3.3): the correlations of a column's powers among themselves, L × L."""
        j, L = self._index(column), int(self.max_power)
        return self.correlations_[j * L : (j + 1) * L, j * L : (j + 1) * L]

    def inter(self, column: str) -> np.ndarray:
        """Eq. (3.4): those of a column's powers with the powers of the others, L × L (m - 1)."""
        j, L = self._index(column), int(self.max_power)
        rows = self.correlations_[j * L : (j + 1) * L]
        return np.delete(rows, slice(j * L, (j + 1) * L), axis=1)

    def _index(self, column: str) -> int:
        check_is_fitted(self, "moments_")
        if column not in self.schema_.names:
            raise KeyError(f"no column {column!r}; there are {self.schema_.names}")
        return self.schema_.names.index(column)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return ``column^power`` for each dimension, the plain name for the first power."""
        check_is_fitted(self, "moments_")
        names = list(self.schema_.names)
        if input_features is not None:
            given = list(input_features)
            if "feature_names_in_" in vars(self) and given != names:
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(given) != len(names):
                raise ValueError(
                    "input_features should have length equal to number of features "
                    f"({len(names)}), got {len(given)}"
                )
            names = given
        out = [n if p == 1 else f"{n}^{p}" for n in names for p in range(1, self.max_power + 1)]
        return np.asarray(out, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def stacked(table: Table, rows: slice = slice(None)) -> np.ndarray:
    """Return some rows of a table of numbers as an array."""
    columns: Any = table.columns
    return np.stack([column.values[rows] for column in columns], axis=1)
