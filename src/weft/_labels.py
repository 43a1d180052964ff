"""Labels: the values of a categorical column, in one canonical form and order.

A label is a ``str``, ``int``, ``float``, ``bool``, ``bytes`` or ``None`` (missing). The same value
gets the same label whatever library, dtype or chunk it came from: ``1``, ``np.int8(1)`` and ``1.0``
are one label, ``"1"`` and ``True`` are two others. Labels are ordered by type, then by value, and
missing comes last, so a vocabulary never depends on the order of arrival.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

Label = str | int | float | bool | bytes | None

_RANKS: dict[type, int] = {bool: 0, int: 1, float: 1, str: 2, bytes: 3, type(None): 9}


def canonical(value: Any) -> Label:
    """Return the label of one value; raise ``TypeError`` for what cannot be a category."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, np.datetime64 | np.timedelta64):
        if np.isnat(value):
            return None
        value = _as_python(value)
    if isinstance(value, np.longdouble):
        value = float(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool | bytes):
        return value
    if isinstance(value, decimal.Decimal):
        value = _from_decimal(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        number = float(value)
        if number != number:
            return None
        return int(number) if number.is_integer() else number
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas, without importing it
        return None
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return _duration(value)
    if isinstance(value, uuid.UUID) or type(value).__name__ in ("Period", "Interval"):
        return str(value)
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot be a category")


def _as_python(value: np.datetime64 | np.timedelta64) -> Any:
    """Return a moment or duration as Python has it, or as text where it has none so fine."""
    unit = np.datetime_data(value.dtype)[0]
    if unit in ("Y", "M"):  # of no fixed length, or no date
        return str(value)
    wanted = "D" if unit == "D" and isinstance(value, np.datetime64) else "us"
    moment = value.astype(f"{value.dtype.kind}8[{wanted}]")
    python = moment.item()
    return str(value) if moment != value or isinstance(python, int) else python


def _from_decimal(value: decimal.Decimal) -> int | float:
    """Return whole numbers exactly, others as float64; none may turn into infinity."""
    if value.is_nan():
        return float("nan")
    if value.is_finite() and abs(value.adjusted()) < 400 and value == value.to_integral_value():
        return int(value)
    number = float(value)
    if math.isinf(number) and value.is_finite():
        raise ValueError(f"{value} is beyond the range of float64")
    return number


def _duration(value: dt.timedelta) -> str:
    """Write a duration in one way, whichever library's subclass it is."""
    text = str(dt.timedelta(value.days, value.seconds, value.microseconds))
    nanoseconds = getattr(value, "nanoseconds", 0)
    return f"{text} + {nanoseconds} ns" if nanoseconds else text


def identity(label: Label) -> tuple[int, Label]:
    """Key under which labels are equal; ``True == 1`` in Python, so the type takes part."""
    return _RANKS[type(label)], label


def order(labels: Sequence[Label], levels: Sequence[Label] | None = None) -> np.ndarray:
    """Return the permutation that sorts labels: by level if given, else canonically."""
    keys: list[Any]
    if levels is not None:
        place = {identity(level): i for i, level in enumerate(levels)}
        # Missing is no level; it goes last, as everywhere.
        keys = [place.get(identity(v), len(place)) for v in labels]
    elif set(map(type, labels)) == {str}:
        keys = list(labels)
    else:
        keys = [identity(v) for v in labels]
    return np.array(sorted(range(len(labels)), key=keys.__getitem__), dtype=np.intp)


def positions(known: Sequence[Label], asked: Iterable[Label]) -> np.ndarray:
    """Return where each asked label stands among the known ones; ``len(known)`` if nowhere."""
    asked = list(asked)
    if not _is_text(known, asked):
        known, asked = list(map(identity, known)), list(map(identity, asked))  # type: ignore
    place = dict(zip(known, range(len(known)), strict=True))
    nowhere = repeat(len(place))
    return np.fromiter(map(place.get, asked, nowhere), np.intp, len(asked))


def union(*vocabularies: Sequence[Label]) -> list[Label]:
    """Return every label of several vocabularies once, in order of first appearance."""
    if _is_text(*vocabularies):
        return list(dict.fromkeys(chain.from_iterable(vocabularies)))
    return [
        label for _, label in dict.fromkeys(identity(v) for labels in vocabularies for v in labels)
    ]


def _is_text(*vocabularies: Sequence[Label]) -> bool:
    """Tell whether labels are text or missing only, which Python itself tells apart."""
    return set(map(type, chain.from_iterable(vocabularies))) <= {str, type(None)}


def code_type(n_labels: int) -> np.dtype:
    """Return the smallest unsigned integer type that can number ``n_labels`` labels."""
    for candidate in (np.uint8, np.uint16, np.uint32):
        if n_labels <= np.iinfo(candidate).max + 1:
            return np.dtype(candidate)
    return np.dtype(np.uint64)


def to_json(label: Label) -> Any:
    """Return a JSON value that :func:`from_json` turns back into the same label."""
    return {"bytes": label.hex()} if isinstance(label, bytes) else label


def from_json(value: Any) -> Label:
    """Undo :func:`to_json`."""
    return bytes.fromhex(value["bytes"]) if isinstance(value, dict) else value
