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
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import Any
from zlib import crc32

import numpy as np

Label = str | int | float | bool | bytes | None
_BLOCK = 1 << 16  # codes looked up at a time

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


def take(table: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Look up ``table[codes]`` in blocks, so that only the result is as long as the column."""
    out = np.empty(len(codes), dtype=table.dtype)
    for start in range(0, len(codes), _BLOCK):
        np.take(table, codes[start : start + _BLOCK], out=out[start : start + _BLOCK], mode="clip")
    return out


def to_json(label: Label) -> Any:
    """Return a JSON value that :func:`from_json` turns back into the same label."""
    return {"bytes": label.hex()} if isinstance(label, bytes) else label


def from_json(value: Any) -> Label:
    """Undo :func:`to_json`."""
    return bytes.fromhex(value["bytes"]) if isinstance(value, dict) else value


# -- Buckets: a column of too many values keeps some of them; the others share one, or are hashed

OTHER = "⟨other⟩"
_HASHED = re.compile(r"⟨other \d+/(\d+)⟩")
Rule = frozenset | int  # the values that are kept, as identities, or a number of buckets


def rule_of(labels: Sequence[Label]) -> Rule | None:
    """Return how the values of a column were put into buckets, if they were."""
    if OTHER in labels:
        return frozenset(map(identity, labels))
    # Hashing leaves no value as it was, so one of them tells.
    first = next(iter(labels), None)
    found = _HASHED.fullmatch(first) if isinstance(first, str) else None
    return int(found[1]) if found else None


def bucket(label: Label, rule: Rule) -> Label:
    """Return the label itself, or that of its bucket."""
    if label is None:
        return None
    if isinstance(rule, int):
        if isinstance(label, str) and _HASHED.fullmatch(label):
            return label
        key = crc32(repr(identity(label)).encode("utf-8", "surrogatepass"))
        return f"⟨other {key % rule}/{rule}⟩"
    return label if identity(label) in rule else OTHER


def fold(table: Any, rules: Mapping[str, Rule]) -> Any:
    """Return a table with the values of some columns in buckets."""
    if not rules:
        return table
    columns = [
        _fold(data, rules[column.name]) if column.name in rules else data for column, data in table
    ]
    return replace(table, columns=tuple(columns))


def rules_of(names: Sequence[str], labels: Sequence[Sequence[Label]]) -> dict[str, Rule]:
    """Return the rules of a vocabulary, for the columns that have buckets."""
    found = {name: rule_of(known) for name, known in zip(names, labels, strict=True)}
    return {name: rule for name, rule in found.items() if rule is not None}


def fold_known(table: Any, names: Sequence[str], labels: Sequence[Sequence[Label]]) -> Any:
    """Return a table with the values that a bucketed vocabulary does not name in its buckets."""
    return fold(table, rules_of(names, labels))


def _fold(column: Any, rule: Rule) -> Any:
    names = [bucket(label, rule) for label in column.labels]
    distinct = union(names)
    codes = take(positions(distinct, names).astype(code_type(len(distinct))), column.codes)
    if not hasattr(column, "starts"):
        return replace(column, codes=codes, labels=distinct)
    # Two elements of a set may share a bucket, which then counts once.
    row = np.repeat(np.arange(len(column.starts) - 1), np.diff(column.starts))
    row, codes = np.divmod(np.unique(row * max(len(distinct), 1) + codes), max(len(distinct), 1))
    starts = np.searchsorted(row, np.arange(len(column.starts)))
    codes = codes.astype(code_type(len(distinct)))
    return replace(column, starts=starts, codes=codes, labels=distinct)
