"""Dataset: what every loader and generator returns.

Columns come as NumPy arrays under their names, the label beside them, each column with its kind.
From there it is one step to an array (`X`) or to a frame of any library (`frame`). The checks of
arguments that all generators share are here, too.
"""

from __future__ import annotations

import importlib
import numbers
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np

from tabweave.io.register import KINDS

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
DTYPES = {"numeric": np.dtype(float), "datetime": np.dtype("datetime64[us]")}
BACKENDS = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table with names, kinds and (usually) a label.

    Parameters
    ----------
    name : str
        Short name, under which `load` finds it.
    columns : dict of str to 1-D array
        Attribute columns. Numeric ones are float64 with NaN for missing, datetimes datetime64[us]
        with NaT; all others are object arrays of strings with None for missing.
    y : array or None
        Labels: strings (object array) for classes, floats for regression, None without a label.
    kinds : dict of str to str
        For each column "nominal", "ordinal", "numeric", "datetime" or "set".
    description : str, default=""
        Where the data comes from and by which rule.

    Examples
    --------
    >>> from tabweave.datasets import balance
    >>> balance()
    Dataset('balance': 625 rows x 4 columns (4 nominal), 3 classes)
    >>> balance().take([0, 624]).X
    array([['1', '1', '1', '1'],
           ['5', '5', '5', '5']], dtype=object)
    """

    name: str
    columns: dict[str, np.ndarray]
    y: np.ndarray | None
    kinds: dict[str, str]
    description: str = ""

    def __post_init__(self) -> None:
        if self.columns.keys() != self.kinds.keys():
            unmatched = sorted(self.columns.keys() ^ self.kinds.keys())
            raise ValueError(
                f"data set {self.name!r}: expected one kind for each column, check {unmatched}"
            )
        for column, values in self.columns.items():
            _check_column(self.name, column, values, self.kinds[column], self.n_rows)
        if self.y is not None and self.y.shape != (self.n_rows,):
            raise ValueError(
                f"data set {self.name!r}: expected y of shape ({self.n_rows},), got {self.y.shape}"
            )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        arrays = [*self.columns.values()] or [self.y if self.y is not None else ()]
        return len(arrays[0])

    @property
    def feature_names(self) -> list[str]:
        """Names of the attribute columns, in order."""
        return list(self.columns)

    @property
    def X(self) -> np.ndarray:
        """The columns side by side: float64 if all of them are numeric, else object."""
        numeric = {values.dtype for values in self.columns.values()} == {np.dtype(float)}
        X = np.empty((self.n_rows, len(self.columns)), dtype=np.float64 if numeric else object)
        for j, values in enumerate(self.columns.values()):
            X[:, j] = values
        return X

    def frame(self, backend: str = "pandas") -> Any:
        """The attribute columns as a data frame, without the label.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Library to build the frame with; it must be installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            Missing strings and datetimes are null. Missing numbers stay NaN, whatever the library.
        """
        if backend not in BACKENDS:
            raise ValueError(f"expected backend {', '.join(BACKENDS)}, got {backend!r}")
        try:
            importlib.import_module(backend)
        except ImportError as error:
            raise ImportError(
                f"frame(backend={backend!r}) needs {backend}: pip install {backend}; or "
                "use Dataset.columns or Dataset.X, which need NumPy only"
            ) from error
        import narwhals as nw

        types = {"f": nw.Float64, "M": nw.Datetime, "O": nw.String}
        # Lists, because polars would keep an object array as opaque Python objects.
        data = {c: v if v.dtype == float else v.tolist() for c, v in self.columns.items()}
        schema: Any = {c: types[v.dtype.kind] for c, v in self.columns.items()}
        if "set" in self.kinds.values():
            schema = None  # the element type of a set is not declared; let the library see it
        return nw.from_dict(data, schema, backend=cast(Any, backend)).to_native()

    def select(self, rows: np.ndarray | Sequence[bool] | slice) -> Dataset:
        """Keep the rows where a boolean mask is true, or those of a slice.

        Examples
        --------
        >>> from tabweave.datasets import titanic
        >>> t = titanic()
        >>> t.select(t.y == "yes").n_rows
        711
        """
        if isinstance(rows, slice):
            return self._rows(rows)
        mask = np.asarray(rows)
        if mask.dtype != bool or mask.shape != (self.n_rows,):
            raise ValueError(
                f"expected a slice or a boolean mask of {self.n_rows} rows, got {mask.dtype} of "
                f"shape {mask.shape}; use take for row numbers"
            )
        return self._rows(mask)

    def take(self, indices: np.ndarray | Sequence[int]) -> Dataset:
        """Pick rows by number, in the order given; repeats are allowed."""
        positions = np.asarray(indices)
        if positions.ndim != 1 or (positions.size and positions.dtype.kind not in "iu"):
            raise ValueError(
                f"expected a flat list of row numbers, got {positions.dtype} of shape "
                f"{positions.shape}; use select for a boolean mask"
            )
        return self._rows(positions.astype(np.intp))

    def _rows(self, rows: Any) -> Dataset:
        columns = {name: values[rows] for name, values in self.columns.items()}
        return replace(self, columns=columns, y=None if self.y is None else self.y[rows])

    def __repr__(self) -> str:
        kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(self.kinds.values()).items())
        if self.y is None:
            label = "no label"
        elif self.y.dtype == object:
            label = f"{len(set(self.y) - {None})} classes"
        else:
            label = "numeric target"
        size = f"{self.n_rows} rows x {len(self.columns)} columns"
        return f"Dataset({self.name!r}: {size}{f' ({kinds})' if kinds else ''}, {label})"


def _check_column(name: str, column: str, values: np.ndarray, kind: str, n_rows: int) -> None:
    where = f"data set {name!r}, column {column!r}"
    if kind not in KINDS:
        raise ValueError(f"{where}: expected a kind of {', '.join(KINDS)}, got {kind!r}")
    if values.shape != (n_rows,):
        raise ValueError(f"{where}: expected shape ({n_rows},), got {values.shape}")
    expected = dtype_of(kind)
    if values.dtype != expected:
        raise TypeError(f"{where}: expected {expected} for a {kind} column, got {values.dtype}")


def dtype_of(kind: str) -> np.dtype:
    """The type of the cells of a column."""
    return DTYPES.get(kind, np.dtype(object))


def as_generator(random_state: RandomState) -> np.random.Generator:
    """One kind of generator from whatever the caller has; the same seed gives the same one."""
    if isinstance(random_state, np.random.RandomState):
        # Drawing a seed advances the caller's stream, as any other use of it would.
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None or isinstance(random_state, numbers.Integral):
        return np.random.default_rng(None if random_state is None else int(random_state))
    raise TypeError(
        "expected random_state to be an int, a RandomState, a Generator or None, got "
        f"{random_state!r}"
    )


def check_count(name: str, value: int, minimum: int = 1) -> int:
    """The value as a whole number; any other is an error."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"expected {name} to be an integer of at least {minimum}, got {value!r}")
    if value < minimum:
        raise ValueError(f"expected {name} of at least {minimum}, got {value}")
    return int(value)


def check_share(name: str, value: float) -> float:
    """The value as a number from 0 to 1; any other is an error."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"expected {name} to be a number between 0 and 1, got {value!r}")
    if not 0.0 <= value <= 1.0:  # also refuses NaN
        raise ValueError(f"expected {name} between 0 and 1, got {value}")
    return float(value)
