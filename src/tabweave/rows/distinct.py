"""Distinct rows: tables of categories repeat themselves.

Working on distinct rows is exact, faster, and makes results independent of the order of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tabweave.rows.table import Codes, Numbers, Sets, Table
from tabweave.rows.vocabulary import code_type, order, positions


def canonical_codes(table: Table) -> list[np.ndarray]:
    """Return, per column, codes that follow the canonical order of values, not that of arrival."""
    return [_ranks(column) for _, column in table]


def _ranks(column: Any) -> np.ndarray:
    if isinstance(column, Numbers):  # missing numbers are equal, and come last
        return np.unique(column.values, return_inverse=True)[1]
    rank = np.empty(len(column.labels), np.int64)
    rank[order(column.labels)] = np.arange(len(column.labels))
    if isinstance(column, Codes):
        return rank[column.codes]
    cells = rank[column.codes]
    edges = zip(column.starts[:-1], column.starts[1:], strict=True)
    keys = [tuple(np.sort(cells[a:b]).tolist()) for a, b in edges]
    place = {key: i for i, key in enumerate(sorted(set(keys)))}
    return np.array([place[key] for key in keys], np.int64)


def distinct_rows(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return where each distinct row first occurs, in the order of codes, and each row's number.

    Codes are folded into one integer per row; when that would overflow, it is replaced by its
    rank, which keeps the order.
    """
    key = np.zeros(len(columns[0]), np.int64)
    size = 1
    for codes in columns:
        width = int(codes.max()) + 1 if len(codes) else 1
        if size * width >= 1 << 62:
            present, key = np.unique(key, return_inverse=True)
            size = len(present)
        key = key * width + codes
        size *= width
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return first, inverse


def take_rows(table: Table, index: np.ndarray) -> Table:
    """Return some rows of a table."""
    columns: list[Any] = []
    for _, column in table:
        if isinstance(column, Codes):
            columns.append(Codes(column.codes[index], column.labels))
        elif isinstance(column, Sets):
            lengths = np.diff(column.starts)[index]
            starts = np.concatenate([[0], np.cumsum(lengths)])
            shift = np.repeat(column.starts[:-1][index] - starts[:-1], lengths)
            codes = column.codes[np.arange(starts[-1]) + shift]
            columns.append(Sets(starts, codes, column.labels))
        else:
            columns.append(Numbers(column.values[index]))
    return Table(table.schema, tuple(columns), len(index))


def joined_column(old: Any, new: Any) -> Codes | Numbers | Sets:
    """Return two columns as one; codes of the old one stay what they are."""
    if isinstance(old, Numbers):
        return Numbers(np.concatenate([old.values, new.values]))
    place = positions(old.labels, new.labels)
    absent = np.flatnonzero(place == len(old.labels))
    place[absent] = len(old.labels) + np.arange(len(absent))
    labels = [*old.labels, *(new.labels[i] for i in absent)]
    kind = code_type(len(labels))
    codes = np.concatenate([old.codes.astype(kind), place.astype(kind)[new.codes]])
    if isinstance(old, Codes):
        return Codes(codes, labels)
    starts = np.concatenate([old.starts, new.starts[1:] + old.starts[-1]])
    return Sets(starts, codes, labels)
