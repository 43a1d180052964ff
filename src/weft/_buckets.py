"""Buckets: a column of too many values keeps some of them; the others share one, or are hashed.

A bucket is a label of its own, ``⟨other⟩`` or ``⟨other 3/64⟩``, so counts carry it like any value,
and whoever reads rows under such counts puts the values that they do not name into it. Missing
stays missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np

from weft import _labels, _read
from weft._labels import Label
from weft.table import Codes, Sets, Table

OTHER = "⟨other⟩"
_HASHED = re.compile(r"⟨other \d+/(\d+)⟩")
Rule = frozenset | int  # the values that are kept, as identities, or a number of buckets


def rule_of(labels: Sequence[Label]) -> Rule | None:
    """Return how the values of a column were put into buckets, if they were."""
    if OTHER in labels:
        return frozenset(map(_labels.identity, labels))
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
        key = crc32(repr(_labels.identity(label)).encode("utf-8", "surrogatepass"))
        return f"⟨other {key % rule}/{rule}⟩"
    return label if _labels.identity(label) in rule else OTHER


def fold(table: Table, rules: Mapping[str, Rule]) -> Table:
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


def fold_known(table: Table, names: Sequence[str], labels: Sequence[Sequence[Label]]) -> Table:
    """Return a table with the values that a bucketed vocabulary does not name in its buckets."""
    return fold(table, rules_of(names, labels))


def _fold(column: Any, rule: Rule) -> Codes | Sets:
    names = [bucket(label, rule) for label in column.labels]
    distinct = _labels.union(names)
    codes = _read.take(
        _labels.positions(distinct, names).astype(_labels.code_type(len(distinct))), column.codes
    )
    if isinstance(column, Codes):
        return Codes(codes, distinct)
    # Two elements of a set may share a bucket, which then counts once.
    row = np.repeat(np.arange(len(column.starts) - 1), np.diff(column.starts))
    row, codes = np.divmod(np.unique(row * max(len(distinct), 1) + codes), max(len(distinct), 1))
    starts = np.searchsorted(row, np.arange(len(column.starts)))
    return Sets(starts, codes.astype(_labels.code_type(len(distinct))), distinct)
