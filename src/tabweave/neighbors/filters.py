"""Filters: which rows a query may find, as ``where`` says it.

A table and conditions on its columns come in, a boolean for each row goes out. Conditions are
written as the columns are: text stands for the date or number that it is read as.
"""

from __future__ import annotations

import datetime as dt
import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np

from tabweave._compat import warn_caller
from tabweave.columns.column import Column, Schema
from tabweave.columns.datetime import DIGIT_FORMATS, PERIODS
from tabweave.columns.numeric import Numbers
from tabweave.columns.table import Table
from tabweave.columns.vocabulary import Label, canonical, positions, types_of
from tabweave.space.space import given_names


@dataclass(frozen=True)
class Between:
    """A condition on a column: from ``low`` to ``high``, both included; see :func:`between`."""

    low: Any = None
    high: Any = None

    def __call__(self, values: Any) -> Any:
        """Whether a value, or each of an array, lies between; missing ones never do."""
        above = values == values if self.low is None else values >= self.low
        return above if self.high is None else above & (values <= self.high)


def between(low: Any = None, high: Any = None) -> Between:
    """A condition for ``where``: values from ``low`` to ``high``, both included.

    Parameters
    ----------
    low, high : number, date or text, optional
        The ends, written as the column is; without one the range is open on that side. A day as
        the upper end lasts until its evening, a month (2024-02) or a year until its last day.
        Levels of an ordinal column go by their order.

    Examples
    --------
    >>> from tabweave import SimilarityIndex, between
    >>> rows = {"carrier": ["UA", "UA", "AA", "DL"], "delay": [5.5, 120.0, 150.0, 300.0]}
    >>> index = SimilarityIndex().fit(rows)
    >>> late = index.query({"carrier": "UA"}, k=2, where={"delay": between(100, 200)})
    >>> late.ids
    array([[1, 2]])
    """
    if low is None and high is None:
        raise ValueError("between() needs a lower or an upper bound, got neither")
    if not isinstance(low, str) and not isinstance(high, str):  # what text means, its column says
        with suppress(TypeError):  # so it does of a day and a time
            _check_ends(low, high, low, high)
    return Between(low, high)


def _check_ends(low: Any, high: Any, first: Any, last: Any) -> None:
    """Raise for a range from low to high that ends before it begins, as first and last say."""
    if first is not None and last is not None and first > last:
        raise ValueError(f"expected low <= high, got between({low!r}, {high!r})")


def matching(table: Table, where: Mapping[str, Any]) -> np.ndarray:
    """Which rows pass every condition: a value, several values, or a function."""
    out = np.ones(table.n_rows, bool)
    names = given_names(table.schema)
    for name, condition in where.items():
        if name not in names:
            raise ValueError(
                f"where: column not found: {name!r}; the columns are {', '.join(map(repr, names))}"
            )
        out &= _passes(name, table[name], _parse_condition(table.schema[name], condition))
    return out


def _parse_condition(column: Column, condition: Any) -> Any:
    """A condition in what a column holds: text as its numbers, a range as its levels."""
    if isinstance(condition, Between):
        return _parse_range(column, condition)
    if not column.is_read or callable(condition):
        return condition
    listed = _as_list(condition)
    days = [_parse_range(column, Between(v, v)) for v in listed if _spans_days(column, v)]
    others = [_cell_number(column, value) for value in listed if not _spans_days(column, value)]
    if not days:
        return others
    return lambda cells: np.any(
        [_passes(column.name, Numbers(cells), passing) for passing in (*days, others)], axis=0
    )


def _parse_range(column: Column, condition: Between) -> Any:
    """A range of levels as the levels in it, another with both ends in numbers."""
    low, high = _days_of(column, condition.low)[0], _days_of(column, condition.high)[1]
    lasting = _is_day(column, high)
    if column.levels is not None:
        return _levels_within(column.name, list(column.levels), low, high)
    if column.is_continuous:
        low, high = (_cell_number(column, end) for end in (low, high))
    _check_ends(condition.low, condition.high, low, high)
    return Between(low, high + 86_399.999999 if lasting else high)


def _levels_within(name: str, levels: list[Label], low: Any, high: Any) -> list[Label]:
    for end in (low, high):
        if end is not None and end not in levels:
            raise ValueError(
                f"where: expected a range of levels of column {name!r} "
                f"({', '.join(map(repr, levels))}), got {end!r}"
            )
    first = 0 if low is None else levels.index(low)
    last = len(levels) - 1 if high is None else levels.index(high)
    _check_ends(low, high, first, last)
    return levels[first : last + 1]


def _spans_days(column: Column, value: Any) -> bool:
    """Tell whether a value for a column of datetimes is a year, a month or a day."""
    return _is_day(column, value) or _days_of(column, value)[0] is not value


def _days_of(column: Column, value: Any) -> tuple[Any, Any]:
    """First and last day of a year (2024) or month (2024-02); else the value twice.

    A column of months, quarters or weeks has months of its own.
    """
    if not column.is_dated or column.is_clock or not isinstance(value, str | np.datetime64):
        return value, value
    match = _YEAR_OR_MONTH.fullmatch(str(value).strip())
    if match is None or (match[2] and column.date_order == PERIODS):
        return value, value
    first, last = (int(match[2]), int(match[2])) if match[2] else (1, 12)
    year = int(match[1])
    return dt.date(year, first, 1), dt.date(year, last, monthrange(year, last)[1])


_YEAR_OR_MONTH = re.compile(r"([1-9]\d{3})(?:-(0[1-9]|1[0-2]))?")


def _is_day(column: Column, value: Any) -> bool:
    """Tell whether a value for a column of datetimes is a day, without a time."""
    if not column.is_dated or not isinstance(value, str | dt.date | np.datetime64):
        return False
    text = value.isoformat() if isinstance(value, dt.date) else str(value)
    return bool(re.search(r"\d", text)) and not re.search(r":|\dT\d", text)


def _cell_number(column: Column, value: Any) -> float | None:
    """Number of a cell of a column; None and numbers stay what they are."""
    if value is None:
        return None
    if isinstance(value, Real) and column.date_order not in DIGIT_FORMATS:
        return float(value)
    schema = Schema((column,), undeclared="ignored")
    return float(Table.of({column.name: [value]}, schema)[column.name].values[0])


def _passes(name: str, column: Any, condition: Any) -> np.ndarray:
    if column.is_continuous:
        if callable(condition):
            return _test_numbers(name, condition, column.values)
        listed = np.array([_number(name, v) for v in _as_list(condition)], float)
        return np.isin(column.values, listed) | (np.isnan(column.values) & np.isnan(listed).any())
    column = column.as_values()
    if callable(condition):
        passing = np.array(
            [v is not None and _test_value(name, condition, v) for v in column.labels], bool
        )
    else:
        listed = [canonical(value) for value in _as_list(condition)]
        passing = np.zeros(len(column.labels) + 1, bool)
        passing[positions(column.labels, listed)] = True
        passing = passing[:-1]
        if listed and not passing.any():
            _report_absent(name, listed, column.labels)
    hits = passing[column.codes] if len(passing) else np.zeros(len(column.codes), bool)
    return column.any_element(hits)


def _report_absent(name: str, listed: Sequence[Label], labels: Sequence[Label]) -> None:
    """Refuse values of another type than a column has, warn of others that no row has."""
    if listed == [None]:
        return
    asked_types, held_types = types_of(listed), types_of(labels)
    if asked_types and held_types and not asked_types & held_types:
        raise ValueError(
            f"where: column {name!r} has {' and '.join(sorted(held_types))}, e.g. "
            f"{_some(labels)}; got "
            f"{' and '.join(sorted(asked_types))}, {_some(listed)}"
        )
    warn_caller(f"where: no row has {_some(listed)} in column {name!r}{hint(listed[0], labels)}")


def _some(labels: Sequence[Label]) -> str:
    return ", ".join(repr(label) for label in labels[:4] if label is not None)


def hint(value: Label, labels: Sequence[Label]) -> str:
    """Label that a misspelt value may stand for, as a question, or some of them."""
    texts = [label for label in labels if isinstance(label, str)]
    close = get_close_matches(value, texts, 1) if isinstance(value, str) else []
    return f"; did you mean {close[0]!r}?" if close else f"; there are, e.g., {_some(labels)}"


def _as_list(condition: Any) -> list[Any]:
    if isinstance(condition, Iterable) and not isinstance(condition, str | bytes):
        return list(condition)  # a series, a range, keys of a mapping
    return [condition]


def _number(name: str, value: Any) -> float:
    if value is None:
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"where: expected a number for column {name!r}, got {value!r}") from None


def _test_value(name: str, test: Callable[[Any], Any], value: Label) -> bool:
    try:
        return bool(test(value))
    except Exception as error:
        raise ValueError(
            f"the condition on column {name!r} failed at {value!r}: {error}"
        ) from error


def _test_numbers(name: str, test: Callable[[Any], Any], values: np.ndarray) -> np.ndarray:
    try:
        out = np.asarray(test(values))
    except Exception as error:
        raise ValueError(f"the condition on column {name!r} failed: {error}") from error
    if out.shape != values.shape or out.dtype != bool:
        raise ValueError(
            f"the condition on column {name!r}: expected {len(values)} booleans for as many "
            f"numbers, got {out.dtype} of shape {out.shape}"
        )
    return out
