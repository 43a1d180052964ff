"""Counting: coded columns in, the V×V matrix of pair counts out; numbers in, sums and buckets out.

Counting all pairs of columns is bound by increments, not by reading. So small columns are packed
into groups whose joint codes fit in a byte: one increment into the histogram of two groups then
counts every pair of their columns at once (ten columns of ten values in five groups of two need 10
increments a row, not 45), and the pairs are recovered by summing histograms.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations, combinations_with_replacement, pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from tabweave._compat import MIN_ROWS_FOR_THREADS, in_threads, njit, row_slabs
from tabweave.columns.nominal import Codes
from tabweave.columns.sets import Sets
from tabweave.columns.vocabulary import Label, Vocabulary, identity, order, slices, take
from tabweave.gpu import arrays as gpu
from tabweave.io.register import storable

# Up to so many values their pair counts are a dense matrix (32 MB), beyond a sparse one.
DENSE_VALUES = 2048
# So many entries of a matrix are worked on at a time: 32 MB of floats.
BLOCK_ENTRIES = 1 << 22
# Beyond so many columns a table is wide: what counting all pairs takes is checked before.
WIDE_TABLE_COLUMNS = 512
# So many joint codes are in a group of columns: a histogram of two (64 KB) stays in the caches.
GROUP_CODES = 128
# So many entries of histograms are counted in one pass over the rows: 64 MB.
HISTOGRAM_ENTRIES = 1 << 24

Block = tuple[np.ndarray, np.ndarray, Any]  # values, values, how often two meet
F = TypeVar("F", bound=Callable[..., Any])
compiled: Callable[[F], F] = njit(nogil=True, cache=True)  # for what has no plain twin


def count_pairs(columns: Sequence[Codes | Sets], weight: np.ndarray | None) -> Any:
    """The V×V pair counts of columns, values in the columns' own order; not :func:`tidy`."""
    sizes = np.array([len(column.labels) for column in columns], np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    dtype = np.dtype(np.int64 if weight is None else weight.dtype)
    size, n_rows = int(offsets[-1]), len(columns[0])
    if len(columns) > WIDE_TABLE_COLUMNS:
        check_wide(len(columns), size, wide_bytes(size, most_pairs(sizes, n_rows)))
    if _is_product_cheap(columns, sizes, weight):
        return _product(columns, offsets)
    dense = _is_dense(size, most_pairs(sizes, n_rows))
    blocks = _blocks(columns, offsets, weight, dense=dense)
    return (_assemble_dense if dense else _assemble_sparse)(blocks, size, dtype)


def count_alone(
    columns: Sequence[Codes | Sets], weight: np.ndarray | None, *, with_last: bool
) -> Any:
    """How often each value occurs, on the diagonal of what :func:`count_pairs` returns.

    Values of different columns are not paired, but with those of the last one, if it is one of
    classes.
    """
    dtype = np.dtype(np.int64 if weight is None else weight.dtype)
    times = np.concatenate([_times(column, weight) for column in columns]).astype(dtype)
    out = _on_diagonal(times)
    if with_last:
        *others, classes = columns
        class_counts = [_with_classes(column, classes, weight) for column in others]
        side = sparse.csr_array(np.vstack(class_counts).astype(dtype))
        corner = sparse.csr_array((len(classes.labels),) * 2, dtype=dtype)
        out = out + sparse.block_array([[None, side], [side.T, corner]], format="csr")
    return tidy(out.tocsr())


def most_pairs(sizes: np.ndarray, n_rows: int) -> int:
    """The most pairs of values that rows can have: per two columns, one a row or all."""
    kinds, times = np.unique(sizes, return_counts=True)
    most = np.minimum(np.outer(kinds, kinds), n_rows)
    pairs = np.outer(times, times) - np.diag(times)
    return int((most * pairs).sum() + sizes.sum())


def _is_dense(size: int, cells: int) -> bool:
    """Tell whether pairs are gathered in a matrix, because there are few or it is mostly full."""
    return size <= DENSE_VALUES or 3 * cells > size**2


def wide_bytes(size: int, cells: int) -> int:
    """What it takes to count so many pairs of so many values of many small columns."""
    return (8 * size**2 if _is_dense(size, cells) else 48 * cells) + 12 * cells


def check_wide(n_columns: int, n_values: int, n_bytes: int) -> None:
    """Raise MemoryError, before anything is counted, for columns too many to count all pairs of."""
    free = available_memory() if n_columns > WIDE_TABLE_COLUMNS else None
    if free is None or n_bytes <= free // 8:
        return
    raise MemoryError(
        f"counting all pairs of {n_columns:,} columns with {n_values:,} values would take about "
        f"{n_bytes / 1e9:,.1f} GB, more than an eighth of the {free / 1e9:,.1f} GB that are free, "
        "and learning from them several times as much; choose the columns that matter (a "
        f"thousand take {n_bytes / 1e9 * (1000 / n_columns) ** 2:,.2f} GB), or combine yes/no "
        f"columns into one set-valued column"
    )


def available_memory() -> int | None:
    """How many bytes are free, if the system says so."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def divisor(x: np.ndarray) -> np.ndarray:
    """What to divide by: numbers, and 1 where they are 0, so that 0 / 0 is 0."""
    return np.where(x > 0, x, 1)


def tidy(pairs: Any) -> Any:
    """A matrix in the one form that its size asks for: equal counts, equal storage."""
    if pairs.shape[0] <= DENSE_VALUES:
        dense = pairs.toarray() if sparse.issparse(pairs) else pairs
        return np.ascontiguousarray(dense)
    out = sparse.csr_array(pairs) if sparse.issparse(pairs) else _compressed(pairs)
    out.sum_duplicates()
    out.eliminate_zeros()
    kind = np.int32 if out.nnz <= np.iinfo(np.int32).max else np.int64
    out.indices, out.indptr = (
        index.astype(kind, copy=False) for index in (out.indices, out.indptr)
    )
    return out


def _compressed(dense: np.ndarray) -> Any:
    """A large dense matrix as a sparse one, a row at a time."""
    cells = int(np.count_nonzero(dense))
    kind = np.int64 if dense.dtype == np.float32 else dense.dtype  # of a product
    index = np.int32 if cells <= np.iinfo(np.int32).max else np.int64
    data, indices, ends = np.empty(cells, kind), np.empty(cells, index), np.zeros(len(dense), index)
    first = 0
    for i, row in enumerate(dense):  # several times as fast as some rows at a time
        columns = np.flatnonzero(row != 0)  # of booleans: twice as fast as of numbers
        span = slice(first, first + len(columns))
        data[span], indices[span] = row.take(columns), columns
        ends[i] = first = span.stop
    return sparse.csr_array((data, indices, np.append(index(0), ends)), shape=dense.shape)


def _is_product_cheap(
    columns: Sequence[Codes | Sets], sizes: np.ndarray, weight: np.ndarray | None
) -> bool:
    """Tell whether few rows of many columns are counted sooner as one product of matrices.

    Nanoseconds, roughly: of a product per row and cell, of histograms per pair of groups.
    """
    n = len(columns[0])
    single = not any(column.is_set for column in columns)
    is_small = 0 < n < 1 << 24 and 0 < sizes.max() <= GROUP_CODES
    if weight is not None or not single or not is_small:
        return False
    groups = group_columns(sizes.tolist())
    joint = np.array([math.prod(sizes[group].tolist()) for group in groups], np.int64)
    pairs = len(groups) * (len(groups) + 1) // 2
    histograms = pairs * (30_000 + n) + 2 * int(joint.sum()) ** 2
    return n * int(sizes.sum()) ** 2 // 50 < histograms


def _product(columns: Sequence[Codes | Sets], offsets: np.ndarray) -> np.ndarray:
    """``ZᵀZ`` of the one-hot rows Z; below 2**24 rows single precision is exact."""
    n, size = len(columns[0].codes), int(offsets[-1])
    out = np.zeros((size, size), np.float32)
    for part in slices(n, size, HISTOGRAM_ENTRIES):
        codes = [column.codes[part].astype(np.intp) for column in columns]
        onehot = np.zeros((len(codes[0]), size), np.float32)
        for column_codes, first in zip(codes, offsets, strict=False):
            onehot[np.arange(len(column_codes)), first + column_codes] = 1
        out += onehot.T @ onehot
    return out.astype(np.int64) if size <= DENSE_VALUES else out


def in_order(
    columns: Sequence[Codes | Sets], levels: Sequence[tuple[Label, ...] | None]
) -> Sequence[Codes | Sets]:
    """Columns with their values in order, where that is less work than to move counts."""
    if sum(len(column.labels) for column in columns) ** 2 <= sum(len(c.codes) for c in columns):
        return columns
    out = list(columns)
    for i, (column, column_levels) in enumerate(zip(columns, levels, strict=True)):
        if not column.is_set:
            permutation = order(column.labels, column_levels)
            if np.array_equal(permutation, np.arange(len(permutation))):
                continue
            code = np.empty(len(permutation), column.codes.dtype)
            code[permutation] = np.arange(len(permutation))
            labels = [column.labels[i] for i in permutation.tolist()]
            out[i] = Codes(take(code, column.codes), labels)
    return out


def canonical(
    vocabulary: Vocabulary,
    pairs: Any,
    levels: Sequence[tuple[Label, ...] | None],
    noise: float = 0.0,
) -> tuple[Vocabulary, Any]:
    """Drop values that do not occur and put the others in order, whatever order they came in."""
    present = np.asarray(pairs.diagonal()) > noise
    chosen = [np.zeros(0, np.intp)]
    labels: list[tuple[Label, ...]] = []
    edges = zip(vocabulary.names, vocabulary.offsets, vocabulary.labels, levels, strict=False)
    for name, start, column, own_levels in edges:
        index = np.flatnonzero(present[start : start + len(column)])
        column_labels = [column[i] for i in index.tolist()]
        if own_levels is not None:
            check_levels(name, column_labels, own_levels)
        permutation = order(column_labels, own_levels)
        chosen.append(start + index[permutation])
        labels.append(tuple(map(column_labels.__getitem__, permutation.tolist())))
    return Vocabulary(vocabulary.names, tuple(labels)), tidy(among(pairs, np.concatenate(chosen)))


def among(pairs: Any, values: np.ndarray) -> Any:
    """The pairs of some values, in their order; of all of them, what was given."""
    if np.array_equal(values, np.arange(pairs.shape[0])):
        return pairs
    return (
        pairs[values][:, values]
        if sparse.issparse(pairs)
        else pairs.take(values, 0).take(values, 1)
    )


def merged_values(pairs: Any, first: np.ndarray) -> Any:
    """Pairs in which neighbouring values are one: from one of ``first`` to the next."""
    if not len(first):
        return pairs
    if not sparse.issparse(pairs):
        return tidy(np.add.reduceat(np.add.reduceat(pairs, first, axis=0), first, axis=1))
    size, of = pairs.shape[0], np.zeros(pairs.shape[0], np.intp)
    of[first] = 1
    ones = np.ones(size, pairs.dtype)
    to = sparse.csr_array((ones, (np.cumsum(of) - 1, np.arange(size))), shape=(len(first), size))
    return tidy(to @ pairs @ to.T)


def check_levels(name: str, labels: Sequence[Label], levels: tuple[Label, ...]) -> None:
    """Raise for a value that is none of the levels declared for its column."""
    allowed = {identity(level) for level in levels} | {identity(None)}
    for label in labels:
        if identity(label) not in allowed:
            raise ValueError(f"column {name!r}: expected one of {list(levels)}, got {label!r}")


def _blocks(
    columns: Sequence[Codes | Sets],
    offsets: np.ndarray,
    weight: np.ndarray | None,
    *,
    dense: bool,
) -> Iterator[Block]:
    """Yield (values, values, table) until every pair of values was met once, in either order.

    With ``dense``, where a table of them all is of no concern, small columns come in one.
    """
    sizes = np.diff(offsets)
    index = [np.arange(a, b, dtype=np.int32) for a, b in pairwise(offsets)]  # of many pairs each
    single = [i for i, column in enumerate(columns) if not column.is_set]
    small = [i for i in single if 0 < sizes[i] <= GROUP_CODES]
    if len(small) > 1:
        chosen = [columns[i].codes for i in small]
        edges = [index[i] for i in small]
        yield from small_pairs(chosen, edges, weight, together=dense and weight is None)
    else:
        small = []
    for i in single:
        if i not in small:
            yield index[i], index[i], _diagonal(columns[i], weight)
    few = set(small)
    large = (
        [p for p in combinations(single, 2) if not {*p} <= few] if len(few) < len(single) else []
    )

    def count(pair: tuple[int, int]) -> Block:
        a, b = pair
        shape = (int(sizes[a]), int(sizes[b]))
        return index[a], index[b], _one_pair(columns[a].codes, columns[b].codes, shape, weight)

    yield from in_threads(count, large)
    has_sets = len(single) < len(columns)
    for a, b in combinations_with_replacement(range(len(columns)), 2) if has_sets else ():
        if columns[a].is_set or columns[b].is_set:
            table = _indicator(columns[a], weight).T @ _indicator(columns[b], None)
            yield index[a], index[b], table


def _one_pair(
    left: np.ndarray, right: np.ndarray, shape: tuple[int, int], weight: np.ndarray | None
) -> Any:
    if shape[0] * shape[1] <= max(BLOCK_ENTRIES, len(left)):
        if weight is None and isinstance(left, gpu.DeviceColumn):
            return gpu.pair_histogram(left, right, shape)
        left, right = np.asarray(left), np.asarray(right)
        return pair_histogram(left, right, shape, weight)
    ones = np.ones(len(left), np.int64) if weight is None else weight
    where = (left.astype(np.int32), right.astype(np.int32))
    return sparse.coo_array((ones, where), shape=shape).tocsr()


def _indicator(column: Codes | Sets, weight: np.ndarray | None) -> Any:
    """The rows × values matrix of a column, rows scaled by weight."""
    codes = column.codes.astype(np.int64)
    data = np.ones(len(codes), np.int64) if weight is None else column.by_code(weight)
    return sparse.csr_array((data, codes, column.starts), shape=(len(column), len(column.labels)))


def _diagonal(column: Codes | Sets, weight: np.ndarray | None) -> Any:
    """How often each value occurs, as a diagonal matrix."""
    return _on_diagonal(_times(column, weight))


def _on_diagonal(times: np.ndarray) -> Any:
    values = np.arange(len(times))
    return sparse.coo_array((times, (values, values)), shape=(len(times), len(times)))


def _times(column: Codes | Sets, weight: np.ndarray | None) -> np.ndarray:
    """How often each value occurs."""
    if weight is None and isinstance(column.codes, gpu.DeviceColumn):
        return gpu.bincount(column.codes, len(column.labels))
    nothing = np.zeros(len(column.codes), np.uint8)
    shape = (len(column.labels), 1)
    weight = None if weight is None else column.by_code(weight)
    return pair_histogram(column.codes, nothing, shape, weight)[:, 0]


def _with_classes(
    column: Codes | Sets, classes: Codes | Sets, weight: np.ndarray | None
) -> np.ndarray:
    """How often each value meets each class, of which a row has one."""
    shape = (len(column.labels), len(classes.labels))
    weight = None if weight is None else column.by_code(weight)
    return pair_histogram(column.codes, column.by_code(classes.codes), shape, weight)


def _assemble_dense(blocks: Iterator[Block], size: int, dtype: np.dtype) -> np.ndarray:
    out = np.zeros((size, size), dtype)
    for left, right, table in blocks:
        table = table.astype(dtype).toarray() if sparse.issparse(table) else table
        rows, columns = _span(left), _span(right)
        if left is right and isinstance(rows, slice) and rows == slice(0, size):
            out = table.astype(dtype, copy=False)
            continue
        out[_cells(rows, columns)] = table
        if left is not right:
            out[_cells(columns, rows)] = table.T
    return out


def _span(values: np.ndarray) -> Any:
    """Values that follow each other as a slice, through which cells are written faster."""
    follow = len(values) and (np.diff(values) == 1).all()
    return slice(int(values[0]), int(values[-1]) + 1) if follow else values


def _cells(rows: Any, columns: Any) -> Any:
    sliced = isinstance(rows, slice) or isinstance(columns, slice)
    return (rows, columns) if sliced else np.ix_(rows, columns)


def _assemble_sparse(blocks: Iterator[Block], size: int, dtype: np.dtype) -> Any:
    parts = []
    for left, right, table in blocks:
        if sparse.issparse(table):
            coo = table.tocoo()
            (row, col), data = coo.coords, coo.data
        else:
            row, col = table.nonzero()
            data = table[row, col]
        row, col = left[row], right[col]
        parts.append((data, row, col))
        if left is not right:
            parts.append((data, col, row))
    data, row, col = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return tidy(sparse.coo_array((data.astype(dtype), (row, col)), shape=(size, size)).tocsr())


# -- small columns, several at a time --------------------------------------------------------


def _pack_plain(codes: np.ndarray, radix: int, packed: np.ndarray) -> None:
    np.multiply(packed, radix, out=packed, casting="unsafe")
    np.add(packed, codes, out=packed, casting="unsafe")


@njit(nogil=True, cache=True, plain=_pack_plain)
def _pack(codes: np.ndarray, radix: int, packed: np.ndarray) -> None:
    for i in range(len(codes)):
        packed[i] = packed[i] * radix + codes[i]


def _count_plain(left: np.ndarray, right: np.ndarray, n_right: int, histogram: np.ndarray) -> None:
    where = left.astype(np.intp) * n_right + right.astype(np.intp)
    np.add(histogram, np.bincount(where, minlength=len(histogram)), histogram, casting="unsafe")


@njit(nogil=True, cache=True, plain=_count_plain)
def _count(left: np.ndarray, right: np.ndarray, n_right: int, histogram: np.ndarray) -> None:
    for i in range(len(left)):
        histogram[np.intp(left[i]) * n_right + right[i]] += np.uint32(1)


def _count_weighted_plain(
    left: np.ndarray, right: np.ndarray, n_right: int, weight: np.ndarray, histogram: np.ndarray
) -> None:
    # One after the other, as the loop adds: a sum of floats depends on the order.
    np.add.at(histogram, left.astype(np.intp) * n_right + right.astype(np.intp), weight)


@njit(nogil=True, cache=True, plain=_count_weighted_plain)
def _count_weighted(
    left: np.ndarray, right: np.ndarray, n_right: int, weight: np.ndarray, histogram: np.ndarray
) -> None:
    for i in range(len(left)):
        histogram[np.intp(left[i]) * n_right + right[i]] += weight[i]


def _count_groups_plain(
    packed: np.ndarray, sizes: np.ndarray, pairs: np.ndarray, starts: np.ndarray, out: np.ndarray
) -> None:
    for (a, b), start, stop in zip(pairs, starts, starts[1:], strict=False):
        _count_plain(packed[a], packed[b], int(sizes[b]), out[start:stop])


@njit(nogil=True, cache=True, plain=_count_groups_plain)
def _count_groups(
    packed: np.ndarray, sizes: np.ndarray, pairs: np.ndarray, starts: np.ndarray, out: np.ndarray
) -> None:
    """Count fewer than ``2**16`` rows: in 16 bits, of which a cache holds twice as many."""
    most = 0  # by loops, not by NumPy's functions, which take numba seconds to compile
    for p in range(len(pairs)):
        most = max(most, starts[p + 1] - starts[p])
    counted = np.empty(most, np.uint16)
    for p in range(len(pairs)):
        left, right = packed[pairs[p, 0]], packed[pairs[p, 1]]
        n_right, histogram = sizes[pairs[p, 1]], out[starts[p] : starts[p + 1]]
        few = counted[: len(histogram)]
        few[:] = 0
        for i in range(len(left)):
            few[np.intp(left[i]) * n_right + np.intp(right[i])] += np.uint16(1)
        for k in range(len(few)):
            histogram[k] += few[k]


def _count_groups_weighted_plain(
    packed: Any, sizes: Any, pairs: Any, starts: Any, weight: np.ndarray, out: np.ndarray
) -> None:
    for (a, b), start, stop in zip(pairs, starts, starts[1:], strict=False):
        _count_weighted_plain(packed[a], packed[b], int(sizes[b]), weight, out[start:stop])


@njit(nogil=True, cache=True, plain=_count_groups_weighted_plain)
def _count_groups_weighted(
    packed: np.ndarray,
    sizes: np.ndarray,
    pairs: np.ndarray,
    starts: np.ndarray,
    weight: np.ndarray,
    out: np.ndarray,
) -> None:
    for p in range(len(pairs)):
        left, right = packed[pairs[p, 0]], packed[pairs[p, 1]]
        n_right, histogram = sizes[pairs[p, 1]], out[starts[p] : starts[p + 1]]
        for i in range(len(left)):
            histogram[np.intp(left[i]) * n_right + right[i]] += weight[i]


def pair_histogram(
    left: np.ndarray, right: np.ndarray, shape: tuple[int, int], weight: np.ndarray | None
) -> np.ndarray:
    """Count one pair of columns into a dense table."""
    if weight is None:
        out = np.zeros(shape[0] * shape[1], np.uint32)
        _count(left, right, shape[1], out)
    else:
        out = np.zeros(shape[0] * shape[1], weight.dtype)
        _count_weighted(left, right, shape[1], weight, out)
    return out.reshape(shape)


def group_columns(sizes: Sequence[int], at_most: int = GROUP_CODES) -> list[list[int]]:
    """Gather columns, smallest first, into groups of at most so many joint codes."""
    groups: list[list[int]] = []
    joint: list[int] = []
    for column in np.argsort(sizes, kind="stable").tolist():
        if not groups or joint[-1] * sizes[column] > at_most:
            groups.append([])
            joint.append(1)
        groups[-1].append(column)
        joint[-1] *= sizes[column]
    return groups


def pack_columns(sizes: Sequence[int], at_most: int = 256) -> list[list[int]]:
    """Gather columns, largest first, each where it leaves the least room: few groups.

    Of at most a byte of joint codes, unless ``at_most`` says otherwise.
    """
    groups: list[list[int]] = []
    joint: list[int] = []
    for column in np.argsort(sizes, kind="stable")[::-1].tolist():
        size = sizes[column]
        fitting = [g for g, product in enumerate(joint) if product * size <= at_most]
        if not fitting:
            groups.append([])
            joint.append(1)
            fitting = [len(groups) - 1]
        best = max(fitting, key=joint.__getitem__)
        groups[best].append(column)
        joint[best] *= size
    return groups


def small_pairs(
    columns: Sequence[np.ndarray],
    index: Sequence[np.ndarray],
    weight: np.ndarray | None,
    *,
    together: bool = False,
) -> Iterator[Block]:
    """Yield (values, values, table) for all pairs of columns with few values, groups at a time.

    ``index`` are the numbers of each column's values. Each group comes with itself, too: values of
    one column never meet, so the diagonal says how often each occurs. With ``together`` one table
    of all columns comes before these; only integers may be added up in any order.
    """
    sizes = list(map(len, index))
    # How floats are grouped decides in which order they are added: that must not depend on rows.
    # Many rows are worth larger groups: a byte of joint codes, in as few groups as can be.
    many = _is_exact(weight) and len(columns[0]) >= MIN_ROWS_FOR_THREADS
    device = gpu.device() if many and weight is None else None
    most = 256 if device is None else gpu.max_joint(device)
    groups = pack_columns(sizes, most) if many else group_columns(sizes)
    if len(groups) == 1:  # one group alone: count it against a constant
        groups.append([])
    widths = [[sizes[c] for c in group] for group in groups]
    joint = np.array([int(np.prod(w)) for w in widths], dtype=np.int64)
    values = [np.concatenate([np.zeros(0, np.intp), *(index[c] for c in g)]) for g in groups]
    margins: dict[int, np.ndarray] = {}
    dtype = np.dtype(np.int64 if weight is None else weight.dtype)
    firsts = np.concatenate([[0], np.cumsum(sizes)])
    totals = np.zeros((firsts[-1],) * 2 if together else (0, 0), dtype)
    grid = _padded([[(firsts[c], sizes[c]) for c in group] for group in groups])
    packed = None if device is None else gpu.packed_codes(device, columns, groups, sizes)
    for pairs in _batches(np.stack(np.triu_indices(len(groups), 1), axis=1), joint):
        if packed is None:
            histograms, starts = _count_batch(columns, groups, widths, joint, pairs, weight)
        else:
            histograms, starts = gpu.pair_tables(device, packed, len(columns[0]), joint, pairs)
        if together:
            _add_up_groups(histograms, starts, pairs, joint, grid, totals)
        for (g, h), start, stop in zip(pairs.tolist(), starts, starts[1:], strict=False):
            if together and len(margins) == len(groups):
                break
            table = histograms[start:stop].reshape(joint[g], joint[h]).astype(dtype, copy=False)
            margins |= {g: table.sum(axis=1), h: table.sum(axis=0)}
            if not together:
                yield values[g], values[h], marginals(marginals(table, widths[g]).T, widths[h]).T
    if together:
        every = np.concatenate(index)
        yield every, every, totals
    for g, margin in margins.items():
        summed = marginals(np.diag(margin), widths[g])
        yield values[g], values[g], marginals(summed.T, widths[g]).T


def _padded(groups: list[list[tuple[int, int]]]) -> np.ndarray:
    """The first value and the number of values of each group's columns, 0 where none is."""
    out = np.zeros((len(groups), max(map(len, groups)), 2), np.int64)
    for g, group in enumerate(groups):
        out[g, : len(group)] = np.reshape(group, (-1, 2))
    return out


def _add_up_groups_plain(
    histograms: Any, starts: Any, pairs: Any, joint: Any, grid: np.ndarray, out: np.ndarray
) -> None:
    widths = [group[group > 0].tolist() for group in grid[:, :, 1]]
    values = [
        np.concatenate([np.zeros(0, np.intp), *(np.arange(a, a + w) for a, w in group)])
        for group in grid
    ]
    for (g, h), start, stop in zip(pairs, starts, starts[1:], strict=False):
        table = histograms[start:stop].reshape(joint[g], joint[h]).astype(out.dtype)
        table = marginals(marginals(table, widths[g]).T, widths[h]).T
        out[values[g][:, None], values[h]] = table
        out[values[h][:, None], values[g]] = table.T


@njit(nogil=True, cache=True, plain=_add_up_groups_plain)
def _add_up_groups(
    histograms: np.ndarray,
    starts: np.ndarray,
    pairs: np.ndarray,
    joint: np.ndarray,
    grid: np.ndarray,
    out: np.ndarray,
) -> None:
    """Sum histograms of two groups to one count a pair of values of their columns."""
    most = 0
    for p in range(len(pairs)):
        most = max(most, starts[p + 1] - starts[p])
    row_sums = np.empty(most, histograms.dtype)
    for p in range(len(pairs)):
        g, h = pairs[p, 0], pairs[p, 1]
        n_left, n_right, before = joint[g], joint[h], 1
        table = histograms[starts[p] : starts[p + 1]]
        for c in range(grid.shape[1]):
            first, width = grid[g, c, 0], grid[g, c, 1]
            if width == 0:
                break
            after = n_left // (before * width)
            for v in range(width):  # the rows with this value, in one
                row = row_sums[v * n_right : (v + 1) * n_right]
                row[:] = 0
                for i in range(before):
                    for j in range(after):
                        begin = ((i * width + v) * after + j) * n_right
                        line = table[begin : begin + n_right]
                        for y in range(n_right):
                            row[y] += line[y]
            before *= width
            inner = 1
            for d in range(grid.shape[1]):
                begin, size = grid[h, d, 0], grid[h, d, 1]
                if size == 0:
                    break
                reach = n_right // (inner * size)
                for v in range(width):
                    for w in range(size):
                        total = np.int64(0)
                        for i in range(inner):
                            y = v * n_right + (i * size + w) * reach
                            for k in range(reach):
                                total += row_sums[y + k]
                        out[first + v, begin + w] = total
                        out[begin + w, first + v] = total
                inner *= size


def marginals(table: np.ndarray, widths: Sequence[int]) -> np.ndarray:
    """Sum the rows, which are the joint codes of a group, to one a value of each of its columns."""
    n_cells = table.shape[1]
    before, parts = 1, [np.zeros((0, n_cells), table.dtype)]
    for width in widths:
        after = len(table) // (before * width)
        parts.append(table.reshape(before, width, after, n_cells).sum(axis=(0, 2)))
        before *= width
    return np.concatenate(parts)


def _is_exact(weight: np.ndarray | None) -> bool:
    return weight is None or weight.dtype.kind != "f"


def _batches(pairs: np.ndarray, joint: np.ndarray) -> Iterator[np.ndarray]:
    """Split the pairs so that the histograms counted in one pass stay small."""
    cells = np.cumsum(joint[pairs[:, 0]] * joint[pairs[:, 1]])
    first = 0
    while first < len(pairs):
        before = cells[first - 1] if first else 0
        last = int(np.searchsorted(cells, before + HISTOGRAM_ENTRIES, side="right"))
        yield pairs[first : max(last, first + 1)]
        first = max(last, first + 1)


def _count_batch(
    columns: Sequence[np.ndarray],
    groups: list[list[int]],
    widths: list[list[int]],
    joint: np.ndarray,
    pairs: np.ndarray,
    weight: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Pass over the rows once, in blocks that stay in the caches, on all cores.

    Returns the histograms of the pairs, one after the other, and where each begins.
    """
    n_rows = len(columns[0])
    starts = np.concatenate([[0], np.cumsum(joint[pairs[:, 0]] * joint[pairs[:, 1]])])
    packed_bytes, max_counted = 1 << 20, np.iinfo(np.uint16).max
    block = min(max_counted, max(1024, packed_bytes // len(groups)))

    def count(rows: range) -> np.ndarray:
        out = np.zeros(starts[-1], np.uint32 if weight is None else weight.dtype)
        packed = np.empty((len(groups), min(block, max(len(rows), 1))), np.uint8)
        for start in range(rows.start, rows.stop, block):
            stop = min(start + block, rows.stop)
            part = packed[:, : stop - start]
            part[:] = 0
            for g, group in enumerate(groups):
                for column, width in zip(group, widths[g], strict=True):
                    _pack(columns[column][start:stop], width, part[g])
            if weight is None:
                _count_groups(part, joint, pairs, starts, out)
            else:
                _count_groups_weighted(part, joint, pairs, starts, weight[start:stop], out)
        return out

    return _sum_of_slabs(count, n_rows, exact=_is_exact(weight)), starts


def _sum_of_slabs(count: Callable[[range], np.ndarray], n_rows: int, *, exact: bool) -> np.ndarray:
    """Sum ``count`` over slabs of rows; floats in one slab, so that threads never change a sum."""
    slabs = [range(n_rows)[rows] for rows in (row_slabs(n_rows) if exact else [slice(n_rows)])]
    if any(len(s) >= 1 << 32 for s in slabs):
        raise OverflowError(
            "expected at most 2**32 rows at once, got more; count them in chunks and add the counts"
        )
    total, *others = in_threads(count, slabs)

    def add(cells: slice) -> None:
        for other in others:
            total[cells] += other[cells]

    in_threads(add, row_slabs(len(total)))
    return total


def _add_pairs_plain(index: np.ndarray, pairs: np.ndarray) -> None:
    size = len(pairs)
    for a in range(len(index)):
        below = index[a].astype(np.intp) * size
        for later in index[a:]:
            pairs += np.bincount(below + later, minlength=size * size).reshape(size, size)
    lower = np.tril_indices(size, -1)
    pairs[lower] = pairs.T[lower]


@njit(nogil=True, cache=True, plain=_add_pairs_plain)
def add_pairs(index: np.ndarray, pairs: np.ndarray) -> None:
    """Count every pair of values of every row into the upper triangle, then mirror it.

    ``index`` holds one row per column: which of the V values each row of the table has.
    """
    n_columns, n_rows = index.shape
    one = pairs.dtype.type(1)
    for a in range(n_columns):
        for b in range(a, n_columns):
            for i in range(n_rows):
                pairs[index[a, i], index[b, i]] += one
    for v in range(len(pairs)):
        for w in range(v):
            pairs[v, w] = pairs[w, v]


# -- exact moments ------------------------------------------------------------------------------
#
# A sum of floats depends on the order of adding. Here a sum is a row of integers, digits in base
# 2**32 of one long fixed-point number that covers the whole range of float64, so it does not:
# adding chunks in any order, or taking one away again, gives the same digits. Weighted sums keep
# float digits; they are linear in the same way, but rounded.

# So many digits of 32 bits reach below the smallest square of a 53-bit mantissa, and can carry.
DIGITS = 138
# The lowest bit of the digits stands for 2 to this power.
LOWEST_BIT_EXPONENT = -2272
# These bits of an integer are a digit.
DIGIT_BITS = 0xFFFFFFFF
# The float next to 0 is 2 to this power.
LEAST_EXPONENT = -1074

UNIT_DIGIT = -LOWEST_BIT_EXPONENT // 32  # the digit of 1


def add_up_columns(columns: Sequence[np.ndarray], weight: np.ndarray | None) -> np.ndarray:
    """The digits of :func:`add_up` of each column."""
    out = np.zeros((len(columns), 3, DIGITS), np.int64 if weight is None else weight.dtype)
    for i, values in enumerate(columns):
        out[i] = _add_rows(values, None, 1 << 24) if weight is None else add_up(values, weight)
    return carry(out)  # of all columns at once


def add_up(values: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The digits of (how many, sum, sum of squares) of the numbers that are not NaN."""
    if weight is None or weight.dtype.kind == "f" or not len(weight):
        return carry(_add_rows(values, weight, 1 << 24))
    out = np.zeros((3, DIGITS), np.int64)
    piece_bits = 16  # of an integer weight that are added at a time
    pieces = -(-int(weight.max()).bit_length() // piece_bits)
    for piece in reversed(range(pieces)):  # Horner's rule: no product may fill an int64
        part = (weight >> (piece * piece_bits)) & ((1 << piece_bits) - 1)
        block = min(1 << 24, (1 << 30) // max(int(part.max()), 1))
        out = carry((out << piece_bits) + _add_rows(values, part, block))
    return out


def _add_rows(values: np.ndarray, weight: np.ndarray | None, block: int) -> np.ndarray:
    """Add up in blocks: carry before 2**31 additions could fill an int64, not after the last."""
    values = np.ascontiguousarray(values, np.float64)  # its bits are read
    dtype = np.dtype(np.int64 if weight is None else weight.dtype)

    def add(slab: slice) -> np.ndarray:
        out = np.zeros((3, DIGITS), dtype)
        for start in range(slab.start, slab.stop, block):
            rows = slice(start, min(start + block, slab.stop))
            out = carry(out) if start > slab.start else out
            accumulate(values[rows], np.empty(0, dtype) if weight is None else weight[rows], out)
        return out

    slabs = row_slabs(len(values)) if _is_exact(weight) else [slice(0, len(values))]
    parts = in_threads(add, slabs)
    many = len(parts) > 1 and len(values) > block
    return np.sum([carry(part) for part in parts] if many else parts, axis=0)


def carry(digits: np.ndarray) -> np.ndarray:
    """Bring integer digits below 2**32 (the top one keeps the sign): equal sums, equal digits."""
    if digits.dtype.kind == "f":
        return digits
    digits = digits.copy()
    for k in range(DIGITS - 1):
        digits[..., k + 1] += digits[..., k] >> 32
        digits[..., k] &= DIGIT_BITS
    return digits


def exact(digits: np.ndarray) -> Fraction:
    """The number that a row of digits stands for."""
    if digits.dtype.kind == "f":
        return sum(
            (
                Fraction(float(d)) * Fraction(2) ** (32 * k + LOWEST_BIT_EXPONENT)
                for k, d in enumerate(digits)
                if d
            ),
            Fraction(0),
        )
    total = sum(int(d) << (32 * k) for k, d in enumerate(digits) if d)
    return Fraction(total) * Fraction(2) ** LOWEST_BIT_EXPONENT


def moments_in(digits: np.ndarray) -> tuple[int | float, float, float]:
    """How many numbers digits are of, their mean and population variance; NaN of none.

    Without cancellation: they are rounded once, at the end.
    """
    count, total, squares = (exact(row) for row in digits)
    n = int(count) if digits.dtype.kind == "i" else float(count)
    if count <= 0:
        return n, float("nan"), float("nan")
    mean = total / count
    variance = max(squares / count - mean * mean, Fraction(0))
    try:  # a variance may be below float64, or exceed it
        return n, float(mean), float(variance) or (5e-324 if variance else 0.0)
    except OverflowError:
        return n, float(mean), float("inf")


# A float is ``± mantissa 2**exponent``, 53 bits at an exponent read from its own bits. Shifted, it
# covers three digits of 32 bits, its square five.


def _square_plain(mantissa: Any) -> tuple[Any, Any, Any, Any]:
    """The digits of a square: the upper half of the mantissa is worth ``2**27``."""
    low, high = mantissa & ((1 << 27) - 1), mantissa >> 27
    a, b, c = low * low, low * high, high * high  # of worth 1, 2**28 and 2**54
    first = (a & DIGIT_BITS) + ((b & 0xF) << 28)
    second = (first >> 32) + (a >> 32) + ((b >> 4) & DIGIT_BITS) + ((c & 0x3FF) << 22)
    third = (second >> 32) + (b >> 36) + ((c >> 10) & DIGIT_BITS)
    return first & DIGIT_BITS, second & DIGIT_BITS, third & DIGIT_BITS, (third >> 32) + (c >> 42)


_square = compiled(_square_plain)


def _accumulate_plain(values: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    bits = values.view(np.int64)
    present = (bits >> 52) & 0x7FF != 0x7FF  # all bits of the exponent are set in NaN
    bits = bits[present]
    w = weights[present] if len(weights) else np.ones(len(bits), out.dtype)
    np.add.at(out[0], np.full(len(bits), UNIT_DIGIT), w)
    exponent, mantissa = (bits >> 52) & 0x7FF, bits & ((1 << 52) - 1)
    mantissa = np.where(exponent > 0, mantissa | (1 << 52), mantissa)
    exponent = np.maximum(exponent, 1) - 1 + LEAST_EXPONENT
    sum_digits = [mantissa & DIGIT_BITS, mantissa >> 32]
    _add_plain(out[1], sum_digits, exponent, np.where(bits < 0, -1, 1) * w)
    _add_plain(out[2], _square_plain(mantissa), 2 * exponent, w)


def _add_plain(
    out: np.ndarray, digits: Sequence[np.ndarray], exponent: np.ndarray, weight: np.ndarray
) -> None:
    """Add ``weight * digits * 2**exponent`` of each, one after the other."""
    k, shift = np.divmod(exponent - LOWEST_BIT_EXPONENT, 32)
    none = np.zeros_like(shift)
    moved = [none, *(digit << shift for digit in digits), none]
    pieces = [(low >> 32) + (high & DIGIT_BITS) for low, high in pairwise(moved)]
    added = weight[:, None] * np.stack(pieces, axis=1)
    np.add.at(out, (k[:, None] + np.arange(len(pieces))).ravel(), added.ravel())


@njit(nogil=True, cache=True, plain=_accumulate_plain)
def accumulate(values: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Add count, sum and sum of squares of the values that are not NaN into three digit rows."""
    one = np.ones(1, out.dtype)[0]
    bits = values.view(np.int64)
    for i in range(len(bits)):
        exponent, mantissa = (bits[i] >> 52) & 0x7FF, bits[i] & ((1 << 52) - 1)
        if exponent == 0x7FF:  # NaN
            continue
        w = weights[i] if len(weights) else one
        out[0, UNIT_DIGIT] += w
        if exponent:
            mantissa |= 1 << 52
        exponent = max(exponent, 1) - 1 + LEAST_EXPONENT
        bit = exponent - LOWEST_BIT_EXPONENT
        k, shift = bit >> 5, bit & 31
        a, b = (mantissa & DIGIT_BITS) << shift, (mantissa >> 32) << shift
        signed = -w if bits[i] < 0 else w
        out[1, k] += signed * (a & DIGIT_BITS)
        out[1, k + 1] += signed * ((a >> 32) + (b & DIGIT_BITS))
        out[1, k + 2] += signed * (b >> 32)
        bit = 2 * exponent - LOWEST_BIT_EXPONENT
        k, shift = bit >> 5, bit & 31
        a, b, c, d = _square(mantissa)
        a, b, c, d = a << shift, b << shift, c << shift, d << shift
        out[2, k] += w * (a & DIGIT_BITS)
        out[2, k + 1] += w * ((a >> 32) + (b & DIGIT_BITS))
        out[2, k + 2] += w * ((b >> 32) + (c & DIGIT_BITS))
        out[2, k + 3] += w * ((c >> 32) + (d & DIGIT_BITS))
        out[2, k + 4] += w * (d >> 32)


# -- histograms that add ------------------------------------------------------------------------
#
# A bucket is what the leading bits of a float say. Buckets far from zero have all the same width, a
# power of two; nearer to zero their width is relative, a few to each power of two; next to zero is
# one bucket more. The width is the smallest that leaves few enough buckets with numbers in them.
# More numbers can only make buckets wider, and wider buckets are unions of narrower ones. So the
# buckets of a union are known from the buckets of its parts: histograms add up, exactly, however
# rows are cut and in any order. While there are few different numbers, each has its own.

# So many buckets of all columns together are counted in pairs, which take 34 MB.
MAX_PAIRED_BUCKETS = 2048


@storable
class Grid(NamedTuple):
    """How wide buckets are.

    Attributes
    ----------
    linear : int
        They are no wider than ``2**linear``,
    bits : int
        nor than a number's leading bit divided by ``2**bits``.
    floor : int
        Numbers between 0 and ``2**floor`` are in one.
    """

    linear: int = LEAST_EXPONENT
    bits: int = 52
    floor: int = LEAST_EXPONENT

    def coarser(self, other: Grid) -> Grid:
        """The grid whose buckets are unions of those of both."""
        return Grid(
            max(self.linear, other.linear), min(self.bits, other.bits), max(self.floor, other.floor)
        )


@storable
@dataclass(frozen=True, eq=False)
class Histogram:
    """How many numbers of a column lie in each bucket.

    Attributes
    ----------
    grid : Grid
        How wide the buckets are.
    starts : ndarray
        The end of each bucket that is nearest to 0, in increasing order.
    times : ndarray
        How many numbers lie in each.
    """

    grid: Grid
    starts: np.ndarray
    times: np.ndarray

    def _check_loaded(self) -> None:
        if len(self.times) != len(self.starts) or (np.diff(self.starts) <= 0).any():
            raise ValueError(f"expected a histogram of rising numbers, got {len(self.starts)}")

    @classmethod
    def of(cls, values: np.ndarray, weight: np.ndarray | None = None) -> Histogram:
        """The histogram of numbers, without those that are missing."""

        def of_slab(rows: slice) -> Histogram:
            x, times = distinct(values[rows], None if weight is None else weight[rows])
            return cls(Grid(), x, times).limited()

        slabs = row_slabs(len(values)) if _is_exact(weight) else [slice(None)]
        parts = in_threads(of_slab, slabs)
        return parts[0] if len(parts) == 1 else cls.merged(parts).limited()

    @classmethod
    def merged(cls, parts: Sequence[Histogram], sign: int = 1) -> Histogram:
        """The sum of histograms, or of the first and the negative of the others."""
        grid = reduce(Grid.coarser, (part.grid for part in parts))
        moved = [part.at(grid) for part in parts]
        starts, index = np.unique(np.concatenate([p.starts for p in moved]), return_inverse=True)
        times = np.zeros(len(starts), np.result_type(*(part.times for part in moved)))
        signed = [part.times if i == 0 else sign * part.times for i, part in enumerate(moved)]
        np.add.at(times, index, np.concatenate(signed))
        return cls(grid, starts, times).without(0)

    def at(self, grid: Grid) -> Histogram:
        """The histogram in buckets that are unions of these."""
        if grid == self.grid or not len(self.starts):
            return replace(self, grid=grid)
        first = first_of(starts_of(self.starts, grid))
        times = np.add.reduceat(self.times, first)
        return Histogram(grid, starts_of(self.starts[first], grid), times)

    def limited(self, most: int = 4096, bits: int = 6, octaves: int = 20) -> Histogram:
        """The histogram in the narrowest buckets of which there are few enough.

        Parameters
        ----------
        most : int
            How many may hold numbers.
        bits, octaves : int
            How many leading bits tell numbers apart where width is relative, and how many powers of
            two these are.
        """
        return self.at(self.grid.coarser(_finest(self.starts, most, bits, octaves)))

    def paired(self, n_columns: int) -> Histogram:
        """The same in the few buckets that are counted in pairs, with so many columns of numbers.

        They are fewer than 128 each, and of all columns together about 2,048.
        """
        most = most_paired(n_columns)
        bits = 2 if most >= 96 else 1 if most >= 40 else 0
        return self.limited(most, bits, max(bits, 1, 7 * most // (16 << bits)))

    def plus(self, other: Histogram, sign: int = 1) -> Histogram:
        """The sum, or the difference."""
        total = self.merged([self, other], sign)
        return total if sign < 0 else total.limited()

    def without(self, noise: float) -> Histogram:
        """The same without the buckets that hold nothing but noise."""
        present = np.abs(self.times) > noise
        if present.all():
            return self
        return replace(self, starts=self.starts[present], times=self.times[present])

    def scaled(self, factor: float) -> Histogram:
        """The same with every number counted so many times."""
        return replace(self, times=self.times * factor)

    @property
    def points(self) -> np.ndarray:
        """The middle of each bucket; where it holds one number, this number."""
        size = np.abs(self.starts)
        bits = size.view(np.int64)
        width = _widths(bits, self.grid)
        outer = (bits | ((np.int64(1) << np.minimum(width, 52)) - 1)).view(np.float64)
        outer = np.where(width > 52, np.ldexp(1.0, min(self.grid.floor, 1023)), outer)
        return np.where(width > 0, np.copysign(size / 2 + outer / 2, self.starts), self.starts)

    @property
    def edges(self) -> np.ndarray:
        """The lowest number of each bucket after the first, as far as numbers are known."""
        below = self.starts[:-1]
        return np.where(below < 0, np.nextafter(below, np.inf), self.starts[1:]) + 0.0


def most_paired(n_columns: int) -> int:
    """How many buckets a column has in pairs, at most, of so many columns of numbers."""
    most = 126  # with gaps, 7 bits
    return min(most, max(MAX_PAIRED_BUCKETS // max(n_columns, 1), 4))


def distinct(values: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The distinct numbers, in increasing order, and how often each occurs."""
    if weight is None:
        x = np.sort(values)
        x = x[: np.searchsorted(x, np.nan)]
        first = first_of(x)
        return x[first] + 0.0, np.diff(first, append=len(x))
    present = ~np.isnan(values) & (weight > 0)
    order = np.argsort(values[present], kind="stable")
    x = values[present][order]
    first = first_of(x)
    times = np.add.reduceat(weight[present][order], first) if len(x) else weight[:0]
    return x[first] + 0.0, times


def first_of(x: np.ndarray) -> np.ndarray:
    """Where each new number of an increasing sequence is met first."""
    if not len(x):
        return np.zeros(0, np.intp)
    return np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))


def _widths(bits: np.ndarray, grid: Grid) -> np.ndarray:
    """How many lower bits of floats do not tell buckets apart; 63 next to zero."""
    top = np.maximum(bits >> 52, 1) - 1023
    width = np.clip(np.minimum(grid.linear, top - grid.bits) - top + 52, 0, 52)
    return np.where(top < grid.floor, 63, width)


def starts_of(x: np.ndarray, grid: Grid) -> np.ndarray:
    """The start of the bucket that each number lies in."""
    bits = np.abs(x).view(np.int64)
    width = _widths(bits, grid)
    out = ((bits >> width) << width).view(np.float64)
    below_zero = -5e-324  # stands for the bucket that ends below 0
    return np.where(x < 0, np.where(out > 0, -out, below_zero), out)


def _finest(x: np.ndarray, most: int, bits: int, octaves: int) -> Grid:
    """The narrowest buckets of which increasing numbers fill few enough."""
    if len(x) <= most:
        return Grid()
    # Neighbours that a width of 2**i tells apart, and no larger.
    separated = np.zeros(2300, np.int64)
    tell_apart(np.ascontiguousarray(x), bits, octaves, separated)
    buckets = 1 + np.cumsum(separated[::-1])[::-1]
    linear = int(np.argmax(np.append(buckets[:-1], 0) <= most)) + LEAST_EXPONENT
    return Grid(linear, bits, linear + bits - octaves)


def _tell_apart_plain(x: np.ndarray, bits: int, octaves: int, separated: np.ndarray) -> None:
    floats = np.abs(x).view(np.int64)
    low, high = (f(floats[:-1], floats[1:]) for f in (np.minimum, np.maximum))
    below, top = (np.maximum(part >> 52, 1) - 1023 for part in (low, high))
    differ = np.where(below == top, low ^ high, 1) & ((np.int64(1) << 53) - 1)
    first = np.frexp(differ.astype(np.float64))[1] - 1 + top - 52
    near = (below == top) & (first < top - bits)
    width = np.where(near, np.minimum(top - bits + octaves, first), top - bits + octaves)
    width[(x[:-1] < 0) != (x[1:] < 0)] = len(separated) - 1 + LEAST_EXPONENT  # of any width
    separated += np.bincount(width - LEAST_EXPONENT, minlength=len(separated))


@njit(nogil=True, cache=True, plain=_tell_apart_plain)
def tell_apart(x: np.ndarray, bits: int, octaves: int, separated: np.ndarray) -> None:
    """Count, for each width of buckets, the neighbours that it just tells apart.

    Increasing numbers of different signs are told apart by any width: they are counted last.
    """
    floats = np.abs(x).view(np.int64)
    for i in range(1, len(x)):
        if (x[i - 1] < 0) != (x[i] < 0):
            separated[-1] += 1
            continue
        low, high = min(floats[i - 1], floats[i]), max(floats[i - 1], floats[i])
        below, top = max(low >> 52, 1) - 1023, max(high >> 52, 1) - 1023
        width = top - bits + octaves  # of which both are next to zero otherwise
        if below == top:
            differ, first = low ^ high, 0
            for step in (32, 16, 8, 4, 2, 1):
                if differ >> step:
                    differ >>= step
                    first += step
            first += top - 52  # the exponent of the first bit that differs
            if first < top - bits:
                width = min(width, first)
        separated[width - LEAST_EXPONENT] += 1


def _find_bins_plain(values: np.ndarray, edges: np.ndarray, missing: int, out: np.ndarray) -> None:
    out[:] = np.searchsorted(edges, values, side="right")
    out[np.isnan(values)] = missing


@njit(nogil=True, cache=True, plain=_find_bins_plain)
def _find_bins(values: np.ndarray, edges: np.ndarray, missing: int, out: np.ndarray) -> None:
    """How many edges are at most each number: by halves, 16 numbers at once, no branches."""
    size, n_edges = 1, len(edges)
    while size <= n_edges:
        size *= 2
    padded = np.full(size, np.inf)
    for e in range(n_edges):
        padded[e] = edges[e]
    below = np.zeros(16, np.int64)
    for start in range(0, len(values), 16):
        n = min(16, len(values) - start)
        below[:] = 0
        half = size >> 1
        while half > 0:
            for i in range(n):
                below[i] += half * np.int64(padded[below[i] + half - 1] <= values[start + i])
            half >>= 1
        for i in range(n):
            is_number = values[start + i] == values[start + i]
            out[start + i] = min(below[i], n_edges) if is_number else missing


def coded_bins(values: np.ndarray, edges: np.ndarray, labels: Sequence[Label]) -> Codes:
    """Which bin each number is in; a missing one has the label None, after the others."""
    codes, missing = np.empty(len(values), np.uint16), len(labels)

    def find(rows: slice) -> bool:
        _find_bins(values[rows], edges, missing, codes[rows])
        return bool((codes[rows] == missing).any())

    has_gaps = any(in_threads(find, row_slabs(len(values))))
    return Codes(codes, [*labels, None] if has_gaps else list(labels))
