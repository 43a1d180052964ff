"""Appending: counts and a few more rows in, the counts of both out.

``append(counts, table) == counts + Counts.of(table)``, but where the rows bring no new value they
are counted straight into a copy of the matrix: windows of a stream are small, and building a
matrix for each and merging two vocabularies costs more than the counting.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from weft import _labels
from weft.counts import Counts
from weft.table import Codes, Table


def append(counts: Counts, table: Table, y: Any = None, *, sample_weight: Any = None) -> Counts:
    """Return ``counts + Counts.of(table, y, sample_weight=sample_weight)``."""
    plain = y is None and sample_weight is None and table.n_rows and counts.schema is not None
    places = _places(counts, table) if plain else None
    if places is None:
        return counts + Counts.of(table, y, sample_weight=sample_weight)
    from weft._append_kernels import add_pairs

    pairs = counts.pairs.copy()
    add_pairs(places, pairs)
    return replace(counts, n=counts.n + table.n_rows, pairs=pairs)


def _places(counts: Counts, table: Table) -> np.ndarray | None:
    """Return where the values of each column stand among the V; None if one stands nowhere."""
    simple = counts.classes is None and isinstance(counts.pairs, np.ndarray)
    if not simple or counts.schema != table.schema:
        return None
    out = np.empty((len(table.columns), table.n_rows), np.int32)
    starts = counts.offsets[:-1].tolist()
    for a, (known, start) in enumerate(zip(counts.labels, starts, strict=True)):
        column = table.columns[a]
        if not isinstance(column, Codes):
            return None
        where = _labels.positions(known, column.labels)
        out[a] = where[column.codes]
        if len(known) in where and (out[a] == len(known)).any():
            return None
        out[a] += start
    return out
