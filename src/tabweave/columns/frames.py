"""Frames: any table-like object in, named columns, their kinds and their cells out.

:func:`columns_of` takes an object apart, :func:`infer_kind` guesses what a column is, and the
readers below turn it into codes and labels, numbers, or sets. Dictionary-encoded columns are read
by their codes; nothing that is already small integers is hashed again.
"""

from __future__ import annotations

import datetime as dt
import decimal
import io
import re
from collections.abc import Callable, Mapping, Sequence, Set
from importlib.util import find_spec
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from tabweave.columns.vocabulary import (
    BLOCK_CODES,
    Label,
    canonical,
    code_type,
    identity,
    slices,
    take,
)
from tabweave.gpu import arrays as gpu

_NUMBERS = (int, float, np.integer, np.floating, decimal.Decimal)

MAX_EXACT_INT = 2**53  # Up to this all whole numbers are floats.

_SETS = (list, tuple, set, frozenset, np.ndarray)

_ONE_COLUMN = "a list of sets is one column of a table: {'name': sets}"

_DATETIMES = (dt.date, np.datetime64)

ARROW_INTERVAL = "MonthDayNano"  # Arrow's type of durations in databases

_NO_VALUES = ("NoneType", "NaTType", "NAType")  # types of what stands for missing

_GAPS = (*_NO_VALUES, "float")  # among datetimes

Encoded = tuple[np.ndarray, Sequence[Any]]

Parts = tuple[list[str] | None, list[Any], int]


def named_columns(X: Any) -> tuple[dict[str, Any], int]:
    """The columns by name, ``x0``, ``x1``, ... if they have none, and the number of rows."""
    names, cells, n_rows = columns_of(X, strict=False)
    names = [f"x{i}" for i in range(len(cells))] if names is None else names
    return dict(zip(names, cells, strict=True)), n_rows


def columns_of(X: Any, *, strict: bool = True) -> Parts:
    """Names or None, columns and number of rows of whatever a user may pass as rows.

    Fields of records are columns; what holds no records throughout is refused if ``strict``.
    """
    if isinstance(X, str | bytes) or hasattr(X, "__fspath__"):
        raise TypeError(
            f"expected rows, got {X!r}; read the file into a frame, or use tabweave.count for paths"
        )
    if type(X).__module__.startswith("scipy.sparse"):  # first: some of these are mappings, too
        raise TypeError(
            "Sparse data was passed for X, but dense data is required. Use X.toarray()."
        )
    if isinstance(X, Mapping):
        parts = _from_mapping(X)
    elif holds_records(X):
        parts = _from_records(X)
    elif isinstance(X, list | tuple) and len(X) and isinstance(X[0], list | tuple):
        parts = _from_rows(X)
    elif isinstance(X, list | tuple) and len(X) and hasattr(X[0], "columns"):
        raise TypeError(
            f"expected rows, got a {type(X).__name__} of {len(X)} frames; join them, or call "
            "partial_fit with each"
        )
    elif isinstance(X, np.ndarray | list | tuple):
        parts = _from_array(X)
    elif X is not None and array_on_device(X) is X and len(X.shape) == 2:
        parts = None, gpu.device_columns(X), X.shape[0]
    else:
        parts = _from_frame(X)
    names, columns, n_rows = parts
    if not columns:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({n_rows}, 0)) while a minimum of 1 is required."
        )
    if names is None:
        return parts
    flat = [
        pair
        for name, column in zip(names, columns, strict=True)
        for pair in _flat(name, column, strict)
    ]
    return [name for name, _ in flat], [column for _, column in flat], n_rows


def holds_records(X: Any) -> bool:
    """Whether rows are a list of dicts, some of which may lack keys."""
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], Mapping)


def _flat(name: str, column: Any, strict: bool) -> list[tuple[str, Any]]:
    """A column, or those of the fields of its records, as ``record.field``."""
    try:
        fields = _fields(name, column)
    except TypeError:
        if strict:
            raise
        fields = None
    if fields is None or not (fields or strict):
        return [(name, column)]
    if not fields:  # the column would vanish without a word
        raise TypeError(
            f"column {name!r}: expected records that have fields, got only empty ones; drop it"
        )
    return [pair for field, cells in fields for pair in _flat(f"{name}.{field}", cells, strict)]


def _fields(name: str, column: Any) -> list[tuple[Any, Any]] | None:
    """The fields of a column of records; None if it holds something else."""
    library, dtype = type(column).__module__.partition(".")[0], getattr(column, "dtype", None)
    if library == "polars" and str(dtype).startswith("Struct"):
        return [(f, column.struct.field(f)) for f in column.struct.fields]
    if hasattr(getattr(dtype, "pyarrow_dtype", None), "names"):
        import pyarrow as pa

        column, library = pa.chunked_array([pa.array(column)]), "pyarrow"
    if library == "pyarrow":
        if not str(column.type).startswith("struct<"):
            return None
        names = [column.type.field(i).name for i in range(column.type.num_fields)]
        return list(zip(names, column.flatten(), strict=True))
    if not _is_object(dtype):
        return None
    cells = column.tolist()
    first = next((cell for cell in cells if not is_missing(cell)), None)
    if not isinstance(first, Mapping):
        return None
    for row, cell in enumerate(cells):
        if not isinstance(cell, Mapping) and not is_missing(cell):
            raise TypeError(f"column {name!r}: expected records, got {cell!r} in row {row}")
    records = [cell if isinstance(cell, Mapping) else {} for cell in cells]
    keys = dict.fromkeys(key for record in records for key in record)
    return [(key, as_column([record.get(key) for record in records], key)) for key in keys]


class RowLabels(NamedTuple):
    """The labels by which a frame calls its rows, and whether these are only 0, 1, 2, ..."""

    values: np.ndarray
    is_default: bool

    def id_of(self, row: int) -> Any:
        """The label of a row as Python has it."""
        return label_as_python(self.values[row])


def row_labels(X: Any) -> RowLabels | None:
    """The index of a pandas frame, or the name of a pandas row; None of other rows.

    Labels that are all whole numbers, or all text, are an array of these.
    """
    if not hasattr(X, "iloc"):
        return None
    if X.ndim == 2:
        return index_labels(X.index)
    import pandas as pd

    return None if X.name is None else RowLabels(label_array(pd.Index([X.name]).to_numpy()), False)


def index_labels(index: Any) -> RowLabels:
    """The labels of a pandas index."""
    steps = getattr(index, "start", None), getattr(index, "step", None)
    return RowLabels(label_array(index.to_numpy()), steps == (0, 1))


def label_as_python(label: Any) -> Any:
    """A label as Python has it; datetimes of NumPy, finer than those of Python, as are."""
    return label.item() if isinstance(label, np.generic) and label.dtype.kind not in "mM" else label


def label_array(labels: Any) -> np.ndarray:
    """Labels as an array: of whole numbers or text where all are, tuples as one label each.

    >>> label_array([("a", 1), ("b", 2)]).shape, label_array(["a", "b"]).dtype.kind
    ((2,), 'U')
    """
    out = labels if isinstance(labels, np.ndarray) else object_array(labels)
    if out.dtype.kind == "O":
        kinds = {type(label) for label in out.tolist()}
        if kinds and all(issubclass(kind, str) for kind in kinds):
            return out.astype(str)
        are_integers = kinds and all(
            issubclass(kind, Integral) and not issubclass(kind, bool) for kind in kinds
        )
        fits = are_integers and all(-(1 << 63) <= label < 1 << 63 for label in out.tolist())
        return out.astype(np.int64) if fits else out
    if out.dtype.kind not in "iu":
        return out
    large = out.dtype == np.uint64 and (out > np.iinfo(np.int64).max).any()
    return out.astype(object if large else np.int64)


def is_missing(cell: Any) -> bool:
    """Whether a cell is missing; what can be no category is not."""
    try:
        return canonical(cell) is None
    except (TypeError, ValueError):
        return False


def in_memory(X: Any) -> bool:
    """Whether X is surely rows at hand; of anything else, engines say what it is."""
    if isinstance(X, list | tuple):
        return bool(X) and isinstance(X[0], list | tuple | Mapping | np.ndarray)
    if isinstance(X, np.ndarray | Mapping):
        return True
    kind = type(X)
    library = kind.__module__.partition(".")[0]
    frames = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table", "tabweave": "Table"}
    return kind.__name__ == frames.get(library) or array_on_device(X) is not None


def array_on_device(X: Any) -> Any:
    """The rows, or a column of a mapping, if they lie on a CUDA device; else None."""
    if isinstance(X, Mapping):
        return next((cells for cells in X.values() if array_on_device(cells) is not None), None)
    library = type(X).__module__.partition(".")[0]
    in_memory = library in ("builtins", "numpy", "pandas", "polars", "pyarrow", "scipy")
    return X if not in_memory and gpu.lies_on_device(X) else None


def _from_mapping(X: Mapping[Any, Any]) -> Parts:
    names = _names(list(X))
    columns = [as_column(cells, name) for name, cells in X.items()]
    lengths = [len(cells) for cells in columns]
    for name, length in zip(X, lengths, strict=True):
        if length != lengths[0]:
            first = next(iter(X))
            raise ValueError(
                f"column {name!r}: expected {lengths[0]} rows, as {first!r} has, got {length}"
            )
    return names, columns, lengths[0] if lengths else 0


def _from_records(X: Sequence[Any]) -> Parts:
    keys: dict[Any, None] = {}
    for i, record in enumerate(X):
        if not isinstance(record, Mapping):
            raise TypeError(f"row {i}: expected a dict, as row 0 is, got {record!r}")
        keys.update(dict.fromkeys(record))
    columns = [as_column([record.get(key) for record in X], key) for key in keys]
    return _names(list(keys)), columns, len(X)


def _from_rows(X: Sequence[Sequence[Any]]) -> Parts:
    width = len(X[0])
    for i, row in enumerate(X):
        if not isinstance(row, list | tuple) and getattr(row, "ndim", 0) != 1:
            raise TypeError(f"row {i}: expected a sequence of cells, as row 0 is, got {row!r}")
        if len(row) != width:
            raise ValueError(
                f"row {i}: expected {width} cells, as row 0 has, got {len(row)} (inhomogeneous); "
                f"{_ONE_COLUMN}"
            )
    columns = zip(*X, strict=True)
    return None, [as_column(list(cells), f"x{i}") for i, cells in enumerate(columns)], len(X)


def _from_array(X: Any) -> Parts:
    if getattr(X, "dtype", None) is not None and X.dtype.names is not None:
        if X.ndim != 1:
            raise ValueError(f"Expected a 1D structured array (one row each), got {X.ndim}D")
        return list(X.dtype.names), [as_column(X[name], name) for name in X.dtype.names], len(X)
    X = np.asarray(_unmasked(X))
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{X}\n")
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead:\narray={X}.\nReshape your data "
            "either using array.reshape(-1, 1) if your data has a single feature or "
            "array.reshape(1, -1) if it contains a single sample." + _column_alone(X)
        )
    if X.dtype.kind == "V":
        raise TypeError(f"X has dtype {X.dtype}, which has no values to read")
    return None, [typed(X[:, i]) for i in range(X.shape[1])], X.shape[0]


def _column_alone(X: np.ndarray) -> str:
    """How a list of sets, which is one column, becomes a table; empty for others."""
    if X.dtype == object and X.ndim == 1 and len(X) and is_set_type(type(X[0])):
        return f" {_ONE_COLUMN}."
    return ""


def _from_frame(X: Any) -> Parts:
    import narwhals as nw

    library = type(X).__module__.partition(".")[0]
    if library in ("dask", "dask_expr", "pyspark"):
        raise TypeError(
            f"expected rows in memory, got a frame of {library}, whose rows are elsewhere; pass "
            "some of them, as in frame.head(1000)"
        )
    if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:  # pandas: names need not be text
        columns = [typed(column) for _, column in X.items()]
        return _names(list(X.columns)), columns, len(X)
    if hasattr(X, "__arrow_c_stream__") and not _has_frame(X):
        import pyarrow as pa

        X = pa.table(X)  # a record batch, or what any library hands over as Arrow
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            f"expected rows, got a lazy {type(X).__module__} frame; call .collect() on it"
        )
    if isinstance(frame, nw.DataFrame):
        _names(list(frame.columns))
        columns = [typed(frame.get_column(name).to_native()) for name in frame.columns]
        return list(frame.columns), columns, len(frame)
    array = np.asarray(X) if not isinstance(X, io.IOBase) else np.array(None)
    if array.dtype == object and array.ndim == 0:
        raise TypeError(f"expected a frame or a 2-D array, got {X!r}{_remedy(X)}")
    return _from_array(array)


def _remedy(X: Any) -> str:
    """What to do with an object that holds no rows at hand."""
    if isinstance(X, io.IOBase):
        return "; give the path of the file, or read it into a frame"
    if hasattr(X, "cursor"):
        return "; for a database give (connection, query)"
    return "; call partial_fit with each part of it" if hasattr(X, "__next__") else ""


def _has_frame(X: Any) -> bool:
    """Whether narwhals, which copies nothing, takes an object as it is."""
    import narwhals as nw

    frame = nw.from_native(X, pass_through=True, allow_series=True)
    return frame is not X or isinstance(X, nw.DataFrame | nw.LazyFrame)


def _names(names: list[Any]) -> list[str] | None:
    """Keep text names, join those of several levels; drop others, as scikit-learn does.

    A mixture is refused.
    """
    names = [joined_name(name) if isinstance(name, tuple) else name for name in names]
    text = [isinstance(name, str) for name in names]
    if all(text):
        return names
    if any(text):
        other = next(name for name in names if not isinstance(name, str))
        raise TypeError(
            "Feature names are only supported if all input features have string names, but "
            f"column {other!r} is {type(other).__name__}; use X.columns = X.columns.astype(str)"
        )
    return None


def joined_name(levels: tuple[Any, ...]) -> str:
    """``upper.lower`` of the name of a column below others, as of fields of records."""
    return ".".join(str(level) for level in levels if level != "")


def as_column(cells: Any, name: Any) -> Any:
    """One column given as a sequence: arrays and series as they are, lists typed."""
    # Sets have no order, and the keys of a mapping are not its cells.
    unordered = isinstance(cells, str | bytes | Mapping | Set)
    if unordered or not hasattr(cells, "__len__"):
        raise TypeError(f"column {name!r}: expected a sequence of cells, got {cells!r}")
    ndim = len(getattr(cells, "shape", (0,)))  # a 0-d array has no length
    if ndim != 1:
        tables = "; several tables go into tabweave.Sources({'name': table, ...}, key=...)"
        remedy = tables if hasattr(cells, "columns") else ""
        raise ValueError(f"column {name!r}: expected one dimension, got {ndim}{remedy}")
    if array_on_device(cells) is cells:
        (column,) = gpu.device_columns(cells)
        return column
    if type(cells).__module__.partition(".")[0] == "pandas" and not hasattr(cells, "iloc"):
        import pandas as pd

        return typed(pd.Series(cells))  # an index, a categorical or another extension array
    if hasattr(cells, "type") and not hasattr(cells, "chunks"):
        import pyarrow as pa

        return typed(pa.chunked_array([cells]) if isinstance(cells, pa.Array) else cells)
    if hasattr(cells, "dtype") or hasattr(cells, "type"):
        return typed(_unmasked(cells))
    return typed(object_array(list(cells)))


def _unmasked(array: Any) -> Any:
    """Turn what a masked array hides into missing."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if array.dtype.kind in "Mm":
        return array.filled(np.array("NaT", array.dtype))
    return np.where(np.ma.getmaskarray(array), None, array.data.astype(object))


def typed(column: Any) -> Any:
    """Give Python objects that are all numbers the type they deserve, if it can hold them.

    Categories that pandas keeps as Arrow has them are those of Arrow; periods and intervals that
    Arrow keeps for pandas are those of pandas.
    """
    if hasattr(column, "type") and "extension<pandas." in str(column.type):
        return _as_pandas(column)
    dtype = getattr(column, "dtype", None)
    if not isinstance(dtype, np.dtype) and str(dtype).startswith("dictionary<"):
        import pyarrow as pa

        return pa.chunked_array([pa.array(column)])
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf" and hasattr(column, "to_numpy"):
        return column.to_numpy()  # of pandas, with nothing more to say
    if not _is_object(dtype) or getattr(column, "ndim", 1) != 1:
        return column
    cells = column.tolist()
    types = set(map(type, cells))
    if types == {bool} or types == {float}:
        return np.array(cells)
    if types and types <= {int, float}:
        integers = [cell for cell in cells if type(cell) is int]
        low, high = min(integers), max(integers)
        # Two integers must not meet in one float: those beyond 2**53 stay as they are.
        limit = MAX_EXACT_INT if float in types else 2**63 - 1
        return np.array(cells) if -limit <= low and high <= limit else column
    return column


def _as_pandas(column: Any) -> Any:
    """Periods, intervals or categories of them that Arrow keeps for pandas."""
    if _dictionary_type(column) is None:
        return column.to_pandas()
    import pandas as pd

    combined = column.combine_chunks()
    codes, values = combined.indices.fill_null(-1), combined.dictionary.to_pandas()
    return pd.Series(pd.Categorical.from_codes(codes, values, ordered=column.type.ordered))


def _is_object(dtype: Any) -> bool:
    """Whether a type is that of Python objects; NumPy takes long to write its own names."""
    return dtype.kind == "O" if isinstance(dtype, np.dtype) else str(dtype) == "object"


def infer_kind(column: Any) -> str:
    """Nominal, ordinal, numeric or set, by the type of a column."""
    import narwhals as nw

    if isinstance(column, np.ndarray | gpu.DeviceColumn):
        if column.dtype == object:
            return _infer_objects(column.tolist())
        return "numeric" if column.dtype.kind in "iufMm" else "nominal"
    dtype: Any = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind == "O":  # narwhals looks at the first cells alone
        return _infer_objects(list(column))
    if _is_text(column) or (type(dtype).__name__ == "CategoricalDtype" and not dtype.ordered):
        return "nominal"
    series = nw.from_native(column, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return infer_kind(np.asarray(column))
    dtype = series.dtype
    if dtype == nw.Enum or (is_ordered(column) and levels_of(column) is not None):
        return "ordinal"
    if dtype in (nw.List, nw.Array):
        return "set"
    if dtype.is_numeric() or dtype.is_temporal():
        return "numeric"
    if dtype in (nw.Object, nw.Unknown):
        return _infer_objects(series.to_list())
    return "nominal"


def _infer_objects(cells: Sequence[Any]) -> str:
    types = set(map(type, cells))
    if any(map(is_set_type, types)):
        return "set"
    types = {t for t in types if t.__name__ not in _NO_VALUES}
    if all(issubclass(t, _NUMBERS) and t is not bool for t in types) or _are_durations(types):
        return "numeric" if types else "nominal"
    if float in types and not all(map(is_missing, (c for c in cells if type(c) is float))):
        return "nominal"
    typed = types - {float}  # as those of columns of a type of times
    dated = all(issubclass(t, _DATETIMES) for t in typed) or typed == {dt.time}
    return "numeric" if dated else "nominal"


def _are_durations(types: Set[type]) -> bool:
    present = {t for t in types if t.__name__ not in _GAPS}
    return bool(present) and all(
        t.__name__ == ARROW_INTERVAL or issubclass(t, dt.timedelta | np.timedelta64)
        for t in present
    )


DATETIMES = "datetimes"

CLOCK_TIMES = "times of day"

TIME_SPANS = "durations"


def times_held(column: Any) -> str:
    """Which times the type of a column, or of its cells, is one of; empty if of none.

    They are :data:`DATETIMES` (dates, too), :data:`CLOCK_TIMES` or :data:`TIME_SPANS`.
    """
    import narwhals as nw

    is_array = isinstance(column, np.ndarray | gpu.DeviceColumn)
    if is_array and column.dtype != object:
        return {"M": DATETIMES, "m": TIME_SPANS}.get(column.dtype.kind, "")
    if not is_array and _is_text(column):
        return ""
    if not is_array and is_period(column):
        return DATETIMES
    series = column if is_array else nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series) and series.dtype not in (nw.Object, nw.Unknown):
        if series.dtype in (nw.Datetime, nw.Date):
            return DATETIMES
        return {nw.Duration: TIME_SPANS, nw.Time: CLOCK_TIMES}.get(series.dtype.base_type(), "")
    types = {t for t in set(map(type, objects(column).tolist())) if t.__name__ not in _GAPS}
    if types and all(issubclass(t, _DATETIMES) for t in types):
        return DATETIMES
    if types == {dt.time}:
        return CLOCK_TIMES
    return TIME_SPANS if _are_durations(types) else ""


def _is_text(column: Any) -> bool:
    """Whether a column of pandas or polars is one of text by its type, without narwhals."""
    return type(getattr(column, "dtype", None)).__name__ in ("StringDtype", "String")


def is_period(column: Any) -> bool:
    """Whether a column of pandas holds months, quarters or other spans of time."""
    return str(getattr(column, "dtype", "")).startswith("period[")


def holds_long_periods(column: Any) -> bool:
    """Whether a column of pandas holds weeks, months, quarters or years."""
    return is_period(column) and bool(re.match(r"period\[\d*[WMQYA]", str(column.dtype)))


def is_declared_categorical(column: Any) -> bool:
    """Whether the type of a column says that its values are categories.

    Arrow also has dictionaries to store text in fewer bytes: those that it makes itself have codes
    of 32 bits, those of categories of pandas, polars and DuckDB the fewest that will do.
    """
    dictionary = _dictionary_type(column)
    if dictionary is not None:
        return bool(dictionary.ordered or str(dictionary.index_type) != "int32")
    dtype = type(getattr(column, "dtype", None)).__name__
    return dtype in ("CategoricalDtype", "Categorical", "Enum")


def is_ordered(column: Any) -> bool:
    """Whether the type of an Arrow column says that its categories have an order."""
    return bool(getattr(_dictionary_type(column), "ordered", False))


def _dictionary_type(column: Any) -> Any:
    """The type of an Arrow column that is stored as a dictionary; None of others."""
    arrow_type = getattr(column, "type", None)
    return arrow_type if type(arrow_type).__name__ == "DictionaryType" else None


def levels_of(column: Any) -> tuple[Label, ...] | None:
    """The order that an ordered categorical column carries itself, if it does.

    The parts of an Arrow column may have different categories: the longest list must hold all
    others in its order.
    """
    import narwhals as nw

    if is_ordered(column):
        parts = [part.dictionary.to_pylist() for part in column.chunks] or [[]]
        longest = max(parts, key=len)
        one_order = all(part == [v for v in longest if v in set(part)] for part in parts)
        return tuple(map(canonical, longest)) if one_order else None
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series) and series.dtype == nw.Enum:
        return tuple(canonical(v) for v in series.dtype.categories)  # type: ignore[attr-defined]
    return None


# -- cells: each reader returns (codes, raw values), and `categories` makes them canonical ---------


def categories(column: Any, *, empty_is_missing: bool = False) -> tuple[np.ndarray, list[Label]]:
    """Codes and distinct canonical labels of a column.

    Codes have the smallest unsigned type; those of at most four bytes that lie in another library's
    memory stay there.
    """
    on_device = column.encoded() if isinstance(column, gpu.DeviceColumn) else None
    if on_device is not None:
        return on_device
    codes, raw = encode(column)
    texts = set(map(type, raw)) == {str}  # which are labels already
    labels: list[Label] = list(raw) if texts else [canonical(value) for value in raw]
    if empty_is_missing:
        labels = [None if label == "" else label for label in labels]
        texts = texts and None not in labels
    distinct, table = labels, np.zeros(0, np.intp)
    if not texts or len(set(labels)) < len(labels):
        index: dict[Any, int] = {}
        table = np.array([index.setdefault(identity(v), len(index)) for v in labels], np.intp)
        distinct = [label for _, label in index]
    dtype = code_type(len(distinct))
    if len(distinct) == len(labels):  # nothing to merge: the codes stand as they are
        lent = codes.dtype.kind == "u" and codes.itemsize <= 4 and not codes.flags.owndata
        return codes if lent else codes.astype(dtype, copy=False), distinct
    return take(table.astype(dtype), codes), distinct


def encode(column: Any) -> Encoded:
    """Code the distinct raw values of a column, by the fastest way its library offers."""
    library = type(column).__module__.partition(".")[0]
    reader: Callable[[Any], Encoded] = {
        "pandas": _encode_pandas,
        "polars": _encode_polars,
        "pyarrow": _encode_arrow,
    }.get(library, _encode_numpy)
    try:
        return reader(column)
    except Exception as error:
        if library == "numpy" or isinstance(error, TypeError | ValueError | MemoryError):
            raise
        # The library cannot number values of this type (structs, extensions): look at each.
        return _encode_objects(objects(column))


def objects(column: Any) -> np.ndarray:
    """The cells of a library's column as Python objects."""
    if isinstance(column, np.ndarray):
        return column.astype(object, copy=False)
    return object_array(column.to_pylist() if hasattr(column, "to_pylist") else column.to_list())


def object_array(cells: Sequence[Any]) -> np.ndarray:
    """Cells as an array of Python objects; lists and tuples stay one cell each."""
    out = np.empty(len(cells), dtype=object)
    out[:] = cells
    return out


def _with_missing(codes: np.ndarray, raw: Sequence[Any]) -> Encoded:
    """Turn the code -1 (missing, in pandas) into a separate code."""
    if len(codes) and codes.min() < 0:
        raw = [*raw, None]
        small = code_type(len(raw))
        out = codes.astype(small)  # -1 wraps to the largest code
        out[codes < 0] = len(raw) - 1
        return out, raw
    if codes.dtype.kind == "i":  # same bits, no copy
        codes = codes.view(codes.dtype.str.replace("i", "u"))
    return codes, raw


def _encode_pandas(column: Any) -> Encoded:
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        categorical = column.array  # whose codes are lent, not copied
        return _with_missing(categorical.codes, categorical.categories.tolist())
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufO":
        return _encode_numpy(column.to_numpy())
    codes, raw = pd.factorize(column)
    return _with_missing(codes, raw.tolist())


def _encode_polars(column: Any) -> Encoded:
    import polars as pl

    if column.dtype in (pl.String, pl.Categorical) and find_spec("pyarrow") is not None:
        return _encode_arrow(column.to_arrow())  # numbers texts in two thirds of the time
    if column.dtype in (pl.Categorical, pl.Enum):
        # Physical codes may be shared by the whole process: number those present.
        distinct = column.unique()
        codes = column.to_physical()
        if column.null_count():
            spare = int(codes.max() or 0) + 1
            codes, keys = codes.fill_null(spare), distinct.to_physical().fill_null(spare)
        else:
            keys = distinct.to_physical()
        numbered, present_keys = _encode_numpy(codes.to_numpy())
        names = dict(zip(keys.to_list(), distinct.to_list(), strict=True))
        return numbered, [names[int(key)] for key in present_keys]
    if column.dtype.is_numeric() and not column.null_count():
        return _encode_numpy(column.to_numpy())
    if column.dtype == pl.Object:
        return _encode_objects(objects(column))
    distinct = column.unique(maintain_order=True)
    numbers = pl.Series(np.arange(len(distinct), dtype=np.uint32))
    codes = column.replace_strict(distinct, numbers, return_dtype=pl.UInt32)
    return codes.to_numpy(), distinct.to_list()


def _encode_arrow(column: Any) -> Encoded:
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        column = pa.chunked_array([column])
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if column.num_chunks == 0:
        return np.zeros(0, np.uint8), []
    # One chunk is read where it lies: to combine it would be to copy it.
    one = column.num_chunks == 1
    encoded = column.chunk(0) if one else column.unify_dictionaries().combine_chunks()
    dictionary = encoded.dictionary
    if pa.types.is_time64(dictionary.type):
        dictionary = dictionary.cast(pa.time64("us"))  # all that Python holds; refuses to lose any
    raw, indices = dictionary.to_pylist(), encoded.indices
    if indices.null_count:
        if len(raw) > np.iinfo(indices.type.to_pandas_dtype()).max:
            indices = indices.cast(pa.int64())
        indices = indices.fill_null(len(raw))
        raw = [*raw, None]
    codes = indices.to_numpy(zero_copy_only=False)
    return codes.view(codes.dtype.str.replace("i", "u")), raw


def _encode_numpy(column: Any) -> Encoded:
    column = np.asarray(column)
    if column.dtype.kind == "b":
        return column.view(np.uint8), [False, True]
    if column.dtype.kind in "iu":
        return _encode_integers(column)
    if column.dtype.kind == "f":
        return _encode_floats(column)
    if column.dtype.kind == "T":  # may hold missing, which does not sort
        return _encode_objects(column.astype(object))
    if column.dtype.kind in "USMm":
        raw, codes = np.unique(column, return_inverse=True)
        return codes, list(raw)
    return _encode_objects(column)


def _encode_integers(column: np.ndarray) -> Encoded:
    """Code integers through a table over their range, or by sorting if that is too wide."""
    if not len(column):
        return np.zeros(0, np.uint8), []
    low, high = int(column.min()), int(column.max())
    width = high - low + 1
    if width > max(1 << 20, 2 * len(column)):
        raw, codes = np.unique(column, return_inverse=True)
        return codes, raw.tolist()
    seen = np.zeros(width, dtype=bool)
    blocks = slices(len(column), 1, BLOCK_CODES)
    # In 64 bits, so that neither a small type nor a negative low overflows; uint64 less an int64
    # would be a float.
    shift = np.uint64(low) if column.dtype == np.uint64 else np.int64(low)
    for rows in blocks:
        seen[(column[rows] - shift).astype(np.intp)] = True
    raw = [low + int(v) for v in np.flatnonzero(seen)]
    if len(raw) == width and low == 0 and column.dtype == code_type(width):
        return column, raw  # they are codes already
    table = (np.cumsum(seen) - 1).astype(code_type(len(raw)))
    codes = np.empty(len(column), dtype=table.dtype)
    for rows in blocks:
        codes[rows] = table[(column[rows] - shift).astype(np.intp)]
    return codes, raw


def _encode_floats(column: np.ndarray) -> Encoded:
    """Code floats; whole numbers with gaps (integers that met a NaN) take the integer way."""
    gaps = np.isnan(column)
    present = column[~gaps]
    largest = float(np.abs(present).max(initial=0))  # 2**53 is beyond float16
    if largest < 2**53 and (present == np.rint(present)).all():
        codes, raw = _encode_integers(present.astype(np.int64))
    else:
        distinct, codes = np.unique(present, return_inverse=True)
        raw = distinct.tolist()
    if not gaps.any():
        return codes, raw
    out = np.full(len(column), len(raw), dtype=code_type(len(raw) + 1))
    out[~gaps] = codes
    return out, [*raw, None]


def _encode_objects(column: np.ndarray) -> Encoded:
    """Code Python objects with one dictionary look-up each."""
    cells = column.tolist()
    types = set(map(type, cells))
    rare_types = types - {str, int, float, type(None)}
    if rare_types:
        # Rarer types may hide equal labels (True == 1) or be no labels at all: look at each.
        cells = [identity(canonical(cell)) for cell in cells]
    index = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
    codes = np.fromiter(map(index.__getitem__, cells), code_type(len(index)), len(cells))
    return codes, [cell[1] for cell in index] if rare_types else list(index)


def is_set_type(kind: type) -> bool:
    """Whether cells of a type are sets."""
    # A named tuple is a record, not a set.
    return issubclass(kind, _SETS) and (not issubclass(kind, tuple) or kind is tuple)
