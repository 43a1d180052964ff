"""Numbers: one numeric column of any library in, float64 with NaN for missing out."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np

from weft._labels import canonical
from weft._read import objects


def numbers(column: Any, *, empty_is_missing: bool = False) -> np.ndarray:
    """Return a column as float64 with NaN for missing; say which value is no number."""
    if type(column).__module__.startswith("pyarrow"):
        column = np.asarray(column) if _plain(column) else objects(column)
    elif hasattr(column, "to_numpy"):
        column = objects(column) if "128" in str(column.dtype) else column.to_numpy()
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return values.astype(np.float64, copy=False)
    if values.dtype.kind == "m" and np.datetime_data(values.dtype)[0] in ("Y", "M"):
        raise TypeError(f"{values.dtype} counts months or years, which have no fixed length")
    if values.dtype.kind in "Mm":
        micro = "datetime64[us]" if values.dtype.kind == "M" else "timedelta64[us]"
        seconds = values.astype(micro).astype(np.int64) / 1e6
        seconds[np.isnat(values)] = np.nan
        return seconds
    cells = values.tolist()
    if empty_is_missing:
        cells = [None if isinstance(cell, str) and cell == "" else cell for cell in cells]
    return np.fromiter(map(_number, cells), np.float64, len(cells))


def _plain(column: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_integer(column.type):
        return not column.null_count
    return pa.types.is_floating(column.type) or pa.types.is_temporal(column.type)


def _number(value: Any) -> float:
    label = canonical(value)
    if label is None:
        return float("nan")
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        return _seconds(value)
    try:
        return float(label)
    except ValueError:
        raise TypeError(f"{value!r} is not a number") from None
    except OverflowError:
        shown = f"{value:.3e}" if isinstance(value, decimal.Decimal) else f"{str(value)[:12]}..."
        raise ValueError(f"{shown} is beyond the range of float64") from None


def _seconds(value: dt.date | dt.time | dt.timedelta) -> float:
    """Return seconds since 1970 (without a zone: UTC) or midnight, as NumPy's columns count."""
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, dt.time):
        return (value.hour * 60 + value.minute) * 60 + value.second + value.microsecond / 1e6
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).timestamp()
