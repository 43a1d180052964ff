"""Frames: take any table-like object apart into named columns, and guess what each column is."""

from __future__ import annotations

import decimal
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from tabweave.rows.cells import holds_sets
from tabweave.rows.vocabulary import Label, canonical

_NUMBERS = (int, float, np.integer, np.floating, decimal.Decimal)
Parts = tuple[list[str] | None, list[Any], int]


def columns_of(X: Any) -> Parts:
    """Return (names or None, columns, number of rows) of whatever a user may pass as rows."""
    if isinstance(X, str | bytes) or hasattr(X, "__fspath__"):
        raise TypeError(
            f"X is {X!r}; read the file into a frame first, or use tabweave.count for paths"
        )
    if type(X).__module__.startswith("scipy.sparse"):  # first: some of these are mappings, too
        raise TypeError(
            "Sparse data was passed for X, but dense data is required. Use X.toarray()."
        )
    if isinstance(X, Mapping):
        parts = _from_mapping(X)
    elif isinstance(X, list | tuple) and len(X) and isinstance(X[0], Mapping):
        parts = _from_records(X)
    elif isinstance(X, list | tuple) and len(X) and isinstance(X[0], list | tuple):
        parts = _from_rows(X)
    elif isinstance(X, np.ndarray | list | tuple):
        parts = _from_array(X)
    else:
        parts = _from_frame(X)
    _, columns, n_rows = parts
    if not columns:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is required."
        )
    return parts


def in_memory(X: Any) -> bool:
    """Tell whether X is surely rows at hand; of anything else, engines say what it is."""
    if isinstance(X, list | tuple):
        return bool(X) and isinstance(X[0], list | tuple | Mapping | np.ndarray)
    if isinstance(X, np.ndarray | Mapping):
        return True
    kind = type(X)
    library = kind.__module__.partition(".")[0]
    frames = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table", "tabweave": "Table"}
    return kind.__name__ == frames.get(library)


def _from_mapping(X: Mapping[Any, Any]) -> Parts:
    names = _names(list(X))
    columns = [_listed(cells, name) for name, cells in X.items()]
    lengths = [len(cells) for cells in columns]
    for name, length in zip(X, lengths, strict=True):
        if length != lengths[0]:
            first = next(iter(X))
            raise ValueError(f"column {name!r} has {length} rows, column {first!r} {lengths[0]}")
    return names, columns, lengths[0] if lengths else 0


def _from_records(X: Sequence[Any]) -> Parts:
    keys: dict[Any, None] = {}
    for i, record in enumerate(X):
        if not isinstance(record, Mapping):
            raise TypeError(f"row {i} is {record!r}, not a dict as row 0 is")
        keys.update(dict.fromkeys(record))
    columns = [_listed([record.get(key) for record in X], key) for key in keys]
    return _names(list(keys)), columns, len(X)


def _from_rows(X: Sequence[Sequence[Any]]) -> Parts:
    width = len(X[0])
    for i, row in enumerate(X):
        if not isinstance(row, list | tuple) and getattr(row, "ndim", 0) != 1:
            raise TypeError(f"row {i} is {row!r}, not a sequence of cells as row 0 is")
        if len(row) != width:
            raise ValueError(
                f"row {i} has {len(row)} cells, row 0 has {width}; inhomogeneous shape"
            )
    columns = zip(*X, strict=True)
    return None, [_listed(list(cells), f"x{i}") for i, cells in enumerate(columns)], len(X)


def _from_array(X: Any) -> Parts:
    if getattr(X, "dtype", None) is not None and X.dtype.names is not None:
        if X.ndim != 1:
            raise ValueError(f"Expected a 1D structured array (one row each), got {X.ndim}D")
        return list(X.dtype.names), [_listed(X[name], name) for name in X.dtype.names], len(X)
    X = np.asarray(_unmasked(X))
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{X}\n")
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead:\narray={X}.\nReshape your data "
            "either using array.reshape(-1, 1) if your data has a single feature or "
            "array.reshape(1, -1) if it contains a single sample."
        )
    if X.dtype.kind == "V":
        raise TypeError(f"X has dtype {X.dtype}, which has no values to read")
    return None, [_typed(X[:, i]) for i in range(X.shape[1])], X.shape[0]


def _from_frame(X: Any) -> Parts:
    import narwhals as nw

    if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:  # pandas: names need not be text
        columns = [_typed(X.iloc[:, i]) for i in range(X.shape[1])]
        return _names(list(X.columns)), columns, len(X)
    if type(X).__module__.startswith("pyarrow") and hasattr(X, "column_names"):
        import pyarrow as pa

        X = pa.table(X)  # a record batch, too, has names
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"X is a lazy {type(X).__module__} frame; call .collect() on it first")
    if isinstance(frame, nw.DataFrame):
        _names(list(frame.columns))
        columns = [frame.get_column(name).to_native() for name in frame.columns]
        return list(frame.columns), columns, len(frame)
    array = np.asarray(X)
    if array.dtype == object and array.ndim == 0:
        raise TypeError(f"X is {X!r}, which is no table; pass a frame or a 2-D array")
    return _from_array(array)


def _names(names: list[Any]) -> list[str] | None:
    """Keep text names; drop others, as scikit-learn does; refuse a mixture."""
    text = [isinstance(name, str) for name in names]
    if all(text):
        return names
    if any(text):
        odd = next(name for name in names if not isinstance(name, str))
        raise TypeError(
            "Feature names are only supported if all input features have string names, but "
            f"column {odd!r} is {type(odd).__name__}; use X.columns = X.columns.astype(str)"
        )
    return None


def _listed(cells: Any, name: Any) -> Any:
    """Return one column given as a sequence: arrays and series as they are, lists typed."""
    # Sets have no order, and the keys of a mapping are not its cells.
    unordered = isinstance(cells, str | bytes | Mapping | Set)
    if unordered or not hasattr(cells, "__len__"):
        raise TypeError(f"column {name!r} must be a sequence of cells, not {cells!r}")
    ndim = getattr(cells, "ndim", len(getattr(cells, "shape", (0,))))
    if ndim != 1:
        raise ValueError(f"column {name!r} must be one-dimensional, not {ndim}-dimensional")
    if type(cells).__module__.partition(".")[0] == "pandas" and not hasattr(cells, "iloc"):
        import pandas as pd

        return _typed(pd.Series(cells))  # an index, a categorical or another extension array
    if hasattr(cells, "type") and not hasattr(cells, "chunks"):
        import pyarrow as pa

        return pa.chunked_array([cells]) if isinstance(cells, pa.Array) else cells
    if hasattr(cells, "dtype") or hasattr(cells, "type"):
        return _typed(_unmasked(cells))
    column = np.empty(len(cells), dtype=object)
    column[:] = list(cells) if not isinstance(cells, list) else cells
    return _typed(column)


def _unmasked(array: Any) -> Any:
    """Turn what a masked array hides into missing."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if array.dtype.kind in "Mm":
        return array.filled(np.array("NaT", array.dtype))
    return np.where(np.ma.getmaskarray(array), None, array.data.astype(object))


def _typed(column: Any) -> Any:
    """Give Python objects that are all numbers the type they deserve, if it can hold them."""
    if str(getattr(column, "dtype", "")) != "object" or getattr(column, "ndim", 1) != 1:
        return column
    cells = column.tolist()
    types = set(map(type, cells))
    if types == {bool} or types == {float}:
        return np.array(cells)
    if types and types <= {int, float}:
        whole = [cell for cell in cells if type(cell) is int]
        low, high = min(whole), max(whole)
        # Two integers must not meet in one float: those beyond 2**53 stay as they are.
        limit = 2**53 if float in types else 2**63 - 1
        return np.array(cells) if -limit <= low and high <= limit else column
    return column


def infer_kind(column: Any) -> str:
    """Guess nominal, ordinal, numeric or set from the type of a column."""
    import narwhals as nw

    if isinstance(column, np.ndarray):
        return _infer_objects(column.tolist()) if column.dtype == object else _infer_array(column)
    series = nw.from_native(column, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return _infer_array(np.asarray(column))
    dtype = series.dtype
    if dtype == nw.Enum:
        return "ordinal"
    if dtype in (nw.List, nw.Array):
        return "set"
    if dtype.is_numeric() or dtype.is_temporal():
        return "numeric"
    if dtype in (nw.Object, nw.Unknown):
        return _infer_objects(series.to_list())
    return "nominal"


def _infer_array(column: np.ndarray) -> str:
    return "numeric" if column.dtype.kind in "iufMm" else "nominal"


def _infer_objects(cells: Sequence[Any]) -> str:
    if holds_sets(cells):
        return "set"
    types = set(map(type, cells)) - {type(None)}
    numbers = all(issubclass(t, _NUMBERS) and t is not bool for t in types)
    return "numeric" if types and numbers else "nominal"


def levels_of(column: Any) -> tuple[Label, ...] | None:
    """Return the order that an ordered categorical column carries itself, if it does."""
    import narwhals as nw

    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series) and series.dtype == nw.Enum:
        return tuple(canonical(v) for v in series.dtype.categories)  # type: ignore[attr-defined]
    return None
