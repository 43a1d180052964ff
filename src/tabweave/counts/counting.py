"""Counting: coded columns in, the V×V matrix of pair counts out. Chooses the loop for each pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, combinations_with_replacement, pairwise
from typing import Any

import numpy as np
from scipy import sparse

from tabweave.rows.table import Codes, Sets

DENSE_VALUES = 2048  # a dense V×V matrix up to here (32 MB), a sparse one beyond
_DENSE_CELLS = 1 << 22
Block = tuple[int, int, Any]


def count_pairs(columns: Sequence[Codes | Sets], weight: np.ndarray | None) -> Any:
    """Return the V×V pair counts of columns, values in the columns' own order."""
    sizes = [len(column.labels) for column in columns]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    dtype = np.int64 if weight is None else weight.dtype
    blocks = _blocks(columns, sizes, weight)
    if offsets[-1] <= DENSE_VALUES:
        return _assemble_dense(blocks, columns, offsets, weight, dtype)
    return _assemble_sparse(blocks, columns, offsets, weight, dtype)


def tidy(pairs: Any) -> Any:
    """Return a matrix in the one form that its size asks for: equal counts, equal storage."""
    if pairs.shape[0] <= DENSE_VALUES:
        dense = pairs.toarray() if sparse.issparse(pairs) else pairs
        return np.ascontiguousarray(dense)
    out = sparse.csr_array(pairs)
    out.sum_duplicates()
    out.eliminate_zeros()
    return out


def _blocks(
    columns: Sequence[Codes | Sets], sizes: Sequence[int], weight: np.ndarray | None
) -> Iterator[Block]:
    """Yield (a, b, table) for every pair of columns, and for sets also with themselves."""
    from tabweave.counts.kernels import GROUP, n_threads, small_pairs

    single = [i for i, column in enumerate(columns) if isinstance(column, Codes)]
    small = [i for i in single if 0 < sizes[i] <= GROUP]
    if len(small) > 1:
        chosen = [columns[i].codes for i in small]
        for a, b, table in small_pairs(chosen, [sizes[i] for i in small], weight):
            yield small[a], small[b], table
    large = [p for p in combinations(single, 2) if not {*p} <= {*small}]

    def count(pair: tuple[int, int]) -> Block:
        a, b = pair
        return a, b, _one_pair(columns[a].codes, columns[b].codes, (sizes[a], sizes[b]), weight)

    with ThreadPoolExecutor(n_threads()) as pool:
        yield from pool.map(count, large)
    is_set = [isinstance(column, Sets) for column in columns]
    for a, b in combinations_with_replacement(range(len(columns)), 2):
        if is_set[a] or is_set[b]:
            yield a, b, _indicator(columns[a], weight).T @ _indicator(columns[b], None)


def _one_pair(
    left: np.ndarray, right: np.ndarray, shape: tuple[int, int], weight: np.ndarray | None
) -> Any:
    from tabweave.counts.kernels import pair_histogram

    if shape[0] * shape[1] <= max(_DENSE_CELLS, len(left)):
        return pair_histogram(left, right, shape, weight)
    ones = np.ones(len(left), np.int64) if weight is None else weight
    where = (left.astype(np.int32), right.astype(np.int32))
    return sparse.coo_array((ones, where), shape=shape).tocsr()


def _indicator(column: Codes | Sets, weight: np.ndarray | None) -> Any:
    """Return the rows × values matrix of a column, rows scaled by weight."""
    if isinstance(column, Sets):
        starts, codes = column.starts, column.codes
    else:
        starts, codes = np.arange(len(column.codes) + 1), column.codes
    data = np.ones(len(codes), np.int64) if weight is None else np.repeat(weight, np.diff(starts))
    shape = (len(starts) - 1, len(column.labels))
    return sparse.csr_array((data, codes.astype(np.int64), starts), shape=shape)


def _value_counts(column: Codes, weight: np.ndarray | None) -> np.ndarray:
    from tabweave.counts.kernels import pair_histogram

    nothing = np.zeros(len(column.codes), np.uint8)
    return pair_histogram(column.codes, nothing, (len(column.labels), 1), weight)[:, 0]


def _margins(a: int, b: int, table: np.ndarray, columns: Sequence[Codes | Sets]) -> dict:
    """Return the value counts that a table of two columns implies; rows with sets do not sum."""
    if isinstance(columns[a], Sets) or isinstance(columns[b], Sets):
        return {}
    return {a: table.sum(axis=1), b: table.sum(axis=0)}


def _assemble_dense(
    blocks: Iterator[Block],
    columns: Sequence[Codes | Sets],
    offsets: np.ndarray,
    weight: np.ndarray | None,
    dtype: Any,
) -> np.ndarray:
    out = np.zeros((offsets[-1], offsets[-1]), dtype)
    spans = [slice(a, b) for a, b in pairwise(offsets)]
    margins: dict[int, np.ndarray] = {}
    for a, b, table in blocks:
        table = table.toarray() if sparse.issparse(table) else table
        out[spans[a], spans[b]] = table
        out[spans[b], spans[a]] = table.T
        margins.update(_margins(a, b, table, columns))
    for i, column in enumerate(columns):
        if isinstance(column, Codes):
            counts = margins[i] if i in margins else _value_counts(column, weight)
            np.fill_diagonal(out[spans[i], spans[i]], counts)
    return out


def _assemble_sparse(
    blocks: Iterator[Block],
    columns: Sequence[Codes | Sets],
    offsets: np.ndarray,
    weight: np.ndarray | None,
    dtype: Any,
) -> Any:
    parts = []
    for a, b, table in blocks:
        coo = sparse.coo_array(table)
        row, col = coo.coords[0] + offsets[a], coo.coords[1] + offsets[b]
        parts.append((coo.data, row, col))
        if a != b:
            parts.append((coo.data, col, row))
    for i, column in enumerate(columns):
        if isinstance(column, Codes):
            values = np.arange(offsets[i], offsets[i + 1])
            parts.append((_value_counts(column, weight), values, values))
    data, row, col = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    shape = (offsets[-1], offsets[-1])
    return tidy(sparse.coo_array((data.astype(dtype), (row, col)), shape=shape).tocsr())
