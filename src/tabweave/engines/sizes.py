"""Sizes: how much memory counts will take, before any are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tabweave.counts.counting import available_memory, most_pairs
from tabweave.counts.counts import Counts
from tabweave.counts.merging import DENSE_VALUES
from tabweave.rows.table import Codes, Sets, Table

_PAIR_BYTES = 120  # of a sparse pair while two sums of counts become one
_LABEL_BYTES = 400  # of a value: its text, and the dictionaries it is looked up in
_SAMPLE = 50_000
_MOST_SAMPLED = 512  # columns whose pairs are looked at


@dataclass(frozen=True)
class Estimate:
    """What counting will take.

    Attributes
    ----------
    rows : int or None
        Number of rows, if known.
    values : dict of str to int
        About how many values each column has.
    pairs : int
        About how many pairs of values occur.
    bytes : int
        About how much memory counting takes at its peak, beside the batches.
    available : int or None
        How much memory is free, if the system says so.
    """

    rows: int | None
    values: Mapping[str, int]
    pairs: int
    bytes: int
    available: int | None

    @property
    def fits(self) -> bool:
        """Whether it is less than what is free."""
        return self.available is None or self.bytes <= self.available

    def check(self) -> None:
        """Raise MemoryError, naming the columns with most values, if it does not fit."""
        if self.fits:
            return
        largest = sorted(self.values, key=self.values.__getitem__, reverse=True)[:3]
        named = ", ".join(f"{name!r} has about {self.values[name]:,} values" for name in largest)
        raise MemoryError(
            f"counting would take about {_shown(self.bytes)}, and "
            f"{_shown(self.available or 0)} are free: {named}; leave such columns out, or use "
            "max_values=1000"
        )


def estimated(
    table: Table, n_rows: int | None = None, limits: Mapping[str, int] | None = None
) -> Estimate:
    """Return the estimate for all rows, of which a table holds the first.

    ``limits`` are the most values that some columns will be allowed.

    A value met once among the first rows stands for as many as there are times the rows; one met
    again is taken to be seen. So an estimate tends to be too high, never far too low, unless the
    rows are sorted.
    """
    rows = table.n_rows if n_rows is None else n_rows
    growth = max(rows / max(table.n_rows, 1), 1.0)
    valued = [(c.name, d) for c, d in table if isinstance(d, Codes | Sets)]
    values = {name: _grown(np.bincount(d.codes), growth, rows) for name, d in valued}
    values = {name: min(v, (limits or {}).get(name, v)) for name, v in values.items()}
    free = available_memory()
    single = [v for (_, d), v in zip(valued, values.values(), strict=True) if isinstance(d, Codes)]
    total = sum(values.values())
    # Elements of sets may all meet in one row.
    pairs = most_pairs(np.array(single, np.int64), rows) + 2 * total * (total - sum(single))
    needed = _bytes(total, pairs)
    if free is not None and needed > free and len(values) <= _MOST_SAMPLED:
        pairs = _sampled_pairs(dict(valued), values, rows) + total
        needed = _bytes(total, pairs)
    return Estimate(n_rows, values, int(pairs), int(needed), free)


def _sampled_pairs(columns: dict[str, Any], values: Mapping[str, int], rows: int) -> int:
    """Return how many pairs to expect from those that few rows have."""
    total = 0
    for a, b in combinations(columns, 2):
        left, right, limit = columns[a], columns[b], values[a] * values[b]
        if isinstance(left, Sets) or isinstance(right, Sets):
            total += 2 * limit
            continue
        limit = min(limit, rows)
        keys = left.codes[:_SAMPLE].astype(np.int64) * len(right.labels) + right.codes[:_SAMPLE]
        _, seen = np.unique(keys, return_counts=True)
        total += 2 * min(limit, _grown(seen, max(rows / max(len(keys), 1), 1.0), rows))
    return total


def _grown(seen: np.ndarray, growth: float, rows: int) -> int:
    once = int((seen == 1).sum())
    return int((seen > 1).sum() + min(once * growth, rows))


def _bytes(n_values: int, pairs: int) -> int:
    dense = 4 * 8 * n_values**2
    sparse = _PAIR_BYTES * pairs
    return (dense if n_values <= DENSE_VALUES else sparse) + _LABEL_BYTES * n_values


def check_counts_fit(counts: Counts) -> None:
    """Raise MemoryError if adding more to these counts would not fit."""
    if counts.schema is None or isinstance(counts.pairs, np.ndarray):
        return
    sizes = dict(zip(counts.names, counts.sizes.tolist(), strict=True))
    needed = _bytes(int(counts.offsets[-1]), counts.pairs.nnz)
    Estimate(None, sizes, counts.pairs.nnz, needed, available_memory()).check()


def _shown(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:,.1f} MB"
