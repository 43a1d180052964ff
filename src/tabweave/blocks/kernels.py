"""Compiled loops behind the blocks, each with a plain twin where rows are looked up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from tabweave._compat import njit
from tabweave.blocks.block import blocks_of_rows, in_threads
from tabweave.counts.counting import compiled, group_columns

_ROWS = 1 << 12


def _put_rows_plain(codes: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    out[:] = table[codes]


@njit(nogil=True, cache=True, plain=_put_rows_plain)
def put_rows(codes: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Set ``out[i] = table[codes[i]]``."""
    for i in range(len(codes)):
        code = codes[i]
        for j in range(table.shape[1]):
            out[i, j] = table[code, j]


def _add_rows_plain(codes: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    out += table[codes]


@njit(nogil=True, cache=True, plain=_add_rows_plain)
def add_rows(codes: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Add ``table[codes[i]]`` to ``out[i]``."""
    for i in range(len(codes)):
        code = codes[i]
        for j in range(table.shape[1]):
            out[i, j] += table[code, j]


@compiled
def add_means(
    starts: np.ndarray, codes: np.ndarray, table: np.ndarray, empty: np.ndarray, out: np.ndarray
) -> None:
    """Add the mean of each set's rows to ``out[i]``; ``empty`` stands for the empty set."""
    for i in range(len(starts) - 1):
        size = starts[i + 1] - starts[i]
        if size == 0:
            for j in range(len(empty)):
                out[i, j] += empty[j]
        for k in range(starts[i], starts[i + 1]):
            for j in range(table.shape[1]):
                out[i, j] += table[codes[k], j] / size


def _put_curves_plain(
    values: np.ndarray, mean: float, factor: float, lowest: float, rows: np.ndarray, out: np.ndarray
) -> None:
    z = (values - mean) * factor
    z[np.isnan(z)] = 0.0
    cell = np.minimum(np.maximum(np.floor(z - lowest), 0.0), len(rows) - 2.0).astype(np.int64)
    step = (z - lowest - cell)[:, None]
    out[:] = rows[cell] + step * (rows[cell + 1] - rows[cell])


@njit(nogil=True, cache=True, plain=_put_curves_plain)
def put_curves(
    values: np.ndarray,
    mean: float,
    factor: float,
    lowest: float,
    rows: np.ndarray,
    out: np.ndarray,
) -> None:
    """Set ``out[i]`` to the point of ``(values[i] - mean) * factor`` on curves; NaN is 0.

    ``rows`` are the points at whole numbers from ``lowest`` up; beyond them the last piece goes on.
    """
    last = len(rows) - 2.0
    for i in range(len(values)):
        z = (values[i] - mean) * factor
        if math.isnan(z):
            z = 0.0
        cell = int(min(max(math.floor(z - lowest), 0.0), last))
        step = z - lowest - cell
        for d in range(rows.shape[1]):
            out[i, d] = rows[cell, d] + step * (rows[cell + 1, d] - rows[cell, d])


def _put_pieces_plain(
    values: np.ndarray, knots: np.ndarray, rows: np.ndarray, missing: np.ndarray, out: np.ndarray
) -> None:
    low = np.maximum(np.searchsorted(knots[:-1], values, "right") - 1, 0)
    low = np.minimum(low, len(knots) - 2)  # NaN is sorted last
    step = ((values - knots[low]) / (knots[low + 1] - knots[low]))[:, None]
    out[:] = rows[low] + step * (rows[low + 1] - rows[low])
    out[np.isnan(values)] = missing


@njit(nogil=True, cache=True, plain=_put_pieces_plain)
def put_pieces(
    values: np.ndarray, knots: np.ndarray, rows: np.ndarray, missing: np.ndarray, out: np.ndarray
) -> None:
    """Set ``out[i]`` to the point of ``values[i]`` on curves that are straight between knots.

    ``rows`` are the points at the knots; beyond them the outer pieces go on. NaN is ``missing``.
    """
    last = len(knots) - 2
    for i in range(len(values)):
        x = values[i]
        if math.isnan(x):
            for d in range(rows.shape[1]):
                out[i, d] = missing[d]
            continue
        low, high = 0, last
        while low < high:
            middle = (low + high + 1) // 2
            if knots[middle] <= x:
                low = middle
            else:
                high = middle - 1
        step = (x - knots[low]) / (knots[low + 1] - knots[low])
        for d in range(rows.shape[1]):
            out[i, d] = rows[low, d] + step * (rows[low + 1, d] - rows[low, d])


@compiled
def _sum_lookups(
    left: np.ndarray,
    right: np.ndarray,
    starts: np.ndarray,
    widths: np.ndarray,
    tables: np.ndarray,
    joint: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add up, for each pair of rows, one table entry per group of columns."""
    n_groups = len(widths)
    lookup = np.empty(joint.max(), tables.dtype)
    for i in range(left.shape[1]):
        row = out[i]
        row[:] = 0
        for g in range(n_groups):
            # The entries that this left row can meet, over all joint codes of the group.
            width = widths[g]
            size = 1
            lookup[0] = 0
            for c in range(len(width)):
                if width[c] == 0:
                    break
                base = starts[g, c] + left[g * width.shape[0] + c, i] * width[c]
                for a in range(size - 1, -1, -1):
                    start = lookup[a]
                    for b in range(width[c]):
                        lookup[a * width[c] + b] = start + tables[base + b]
                size *= width[c]
            codes = right[g]
            for k in range(len(codes)):
                row[k] += lookup[codes[k]]


def sum_of_lookups(
    left: Sequence[np.ndarray],
    right: Sequence[np.ndarray],
    tables: Sequence[np.ndarray],
    out: np.ndarray,
) -> np.ndarray:
    """Set ``out[i, j]`` to the sum over columns a of ``tables[a][left[a][i], right[a][j]]``.

    Columns with few values are joined on the right side, so that one load serves several of them.
    The order of adding depends on the tables only, never on rows, blocks or threads.
    """
    sizes = [table.shape[1] for table in tables]
    groups = group_columns(sizes)
    longest = max(map(len, groups))
    widths = np.zeros((len(groups), longest), np.int64)
    starts = np.zeros((len(groups), longest), np.int64)
    flat = np.concatenate([np.ascontiguousarray(t).ravel() for t in tables])
    begin = np.concatenate([[0], np.cumsum([t.size for t in tables])])
    n_left, n_right = out.shape
    index = np.zeros((len(groups) * longest, n_left), np.uint32)
    joined = np.zeros((len(groups), n_right), np.uint32)
    for g, group in enumerate(groups):
        for c, column in enumerate(group):
            widths[g, c], starts[g, c] = sizes[column], begin[column]
            index[g * longest + c] = left[column]
            joined[g] = joined[g] * np.uint32(sizes[column]) + right[column]
    joint = np.where(widths > 0, widths, 1).prod(axis=1)

    def work(block: tuple[slice, slice]) -> None:
        rows, columns = block
        part = np.ascontiguousarray(joined[:, columns])
        _sum_lookups(index[:, rows], part, starts, widths, flat, joint, out[rows, columns])

    # Enough right rows at a time to repay building the joint tables, few enough for the cache.
    in_threads(work, list(product(blocks_of_rows(n_left, 256), blocks_of_rows(n_right, _ROWS))))
    return out
