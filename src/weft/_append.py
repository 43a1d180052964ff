"""Appending: counts and a few more rows in, the counts of both out.

``append(counts, table) == counts + Counts.of(table)``, but plain rows of categories are counted
straight into a copy of the matrix: windows of a stream are small, and building a matrix for each
and merging two vocabularies costs more than the counting.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from weft import _labels, _merge
from weft._labels import Label
from weft.counts import Counts
from weft.table import Codes, Table


def append(counts: Counts, table: Table, y: Any = None, *, sample_weight: Any = None) -> Counts:
    """Return ``counts + Counts.of(table, y, sample_weight=sample_weight)``."""
    plain = y is None and sample_weight is None and table.n_rows > 0
    labels = _vocabulary(counts, table) if plain else None
    if labels is None:
        return counts + Counts.of(table, y, sample_weight=sample_weight)
    from weft._append_kernels import add_pairs

    grown = any(new is not old for new, old in zip(labels, counts.labels, strict=True))
    pairs = _merge.spread(counts, labels, None) if grown else counts.pairs.copy()
    if not isinstance(pairs, np.ndarray):  # grown too large for a dense matrix
        return counts + Counts.of(table)
    add_pairs(_places(labels, table), pairs)
    return replace(counts, n=counts.n + table.n_rows, labels=tuple(labels), pairs=pairs)


def _vocabulary(counts: Counts, table: Table) -> list[tuple[Label, ...]] | None:
    """Return the values of both, in order; None where only the general way will do."""
    simple = counts.classes is None and isinstance(counts.pairs, np.ndarray)
    if not simple or counts.schema is None or counts.schema != table.schema:
        return None
    out = []
    for known, column, spec in zip(
        counts.labels, table.columns, table.schema.categorical, strict=False
    ):
        if not isinstance(column, Codes) or len(table.columns) > len(counts.labels):
            return None
        absent = _labels.positions(known, column.labels) == len(known)
        if absent.any():
            absent &= np.bincount(column.codes, minlength=len(absent)) > 0
        if absent.any():
            if spec.levels is not None:  # maybe none of its levels: let the general way say so
                return None
            both = [*known, *(column.labels[i] for i in np.flatnonzero(absent))]
            known = tuple(both[i] for i in _labels.order(both))
        out.append(known)
    return out


def _places(labels: list[tuple[Label, ...]], table: Table) -> np.ndarray:
    """Return where the values of each column stand among the V."""
    out = np.empty((len(labels), table.n_rows), np.int32)
    start = 0
    for a, known in enumerate(labels):
        column = cast(Codes, table.columns[a])
        out[a] = (start + _labels.positions(known, column.labels))[column.codes]
        start += len(known)
    return out
