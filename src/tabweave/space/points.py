"""Points: coordinates written row by row, distances between them, and turning them.

Arrays only: which columns they are of is known to :mod:`tabweave.space.space`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tabweave._compat import njit
from tabweave.columns.nominal import Codes
from tabweave.columns.sets import Sets
from tabweave.columns.vocabulary import slices
from tabweave.counts.counting import BLOCK_ENTRIES, compiled

Writer = Callable[[slice, np.ndarray], None]  # writes the coordinates of some rows into an array


def value_writer(column: Codes | Sets, points: np.ndarray, dtype: np.dtype) -> Writer:
    """What writes the point of each cell's value, or the mean of the points of a set.

    ``points`` are those of the column's labels, and the point of an empty set last.
    """
    typed = np.ascontiguousarray(points, dtype)

    def write(rows: slice, out: np.ndarray) -> None:
        if not column.is_set:
            put_rows(column.codes[rows], typed, out)
            return
        out[:] = 0
        edges = column.starts[rows.start : rows.stop + 1]
        add_means(edges, column.codes, typed[:-1], typed[-1], out)

    return write


def row_writer(writers: Sequence[Writer], widths: Sequence[int]) -> Writer:
    """What lets several writers write side by side."""
    ends = np.cumsum(widths).tolist()
    spans = [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]

    def write(rows: slice, out: np.ndarray) -> None:
        for one, span in zip(writers, spans, strict=True):
            one(rows, out[:, span])

    return write


def sum_writer(
    columns: Sequence[Codes | Sets], points: Sequence[np.ndarray], dtype: np.dtype
) -> Writer:
    """What adds up the points of the cells of several columns."""
    typed = [np.ascontiguousarray(rows_of_labels, dtype) for rows_of_labels in points]

    def write(rows: slice, out: np.ndarray) -> None:
        out[:] = 0
        for column, rows_of_labels in zip(columns, typed, strict=True):
            if column.is_set:
                edges = column.starts[rows.start : rows.stop + 1]
                add_means(edges, column.codes, rows_of_labels[:-1], rows_of_labels[-1], out)
            else:
                add_rows(column.codes[rows], rows_of_labels, out)

    return write


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


def checked_type(dtype: Any) -> np.dtype:
    """The type of vectors; raise unless it is float32 or float64."""
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"expected vectors to be float32 or float64, got {kind}")
    return kind


# -- rows at a time -------------------------------------------------------------------------------


def row_blocks(n_rows: int, row_bytes: int) -> list[slice]:
    """Cut rows into blocks of some megabytes of output: long runs, yet work for every core."""
    block_bytes = 1 << 23
    return slices(n_rows, 1, max(1024, block_bytes // max(row_bytes, 1)))


# -- distances of points --------------------------------------------------------------------------


def cdist_squared(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances; exactly 0 for equal rows.

    Narrow rows are compared by differences. Wide ones go through their inner products, ten to
    fifty times faster, and the few pairs so near that this loses precision by differences again;
    far from the origin that is all of them.
    """
    from scipy.spatial.distance import cdist

    if not x.shape[1]:
        return np.zeros((len(x), len(y)))
    max_narrow = 128  # dimensions up to which differences are faster than products
    if x.shape[1] <= max_narrow or not len(x) or not len(y):
        return cdist(x, y, "sqeuclidean")
    out = x @ y.T
    out *= -2
    left_squares, right_squares = (np.einsum("ij,ij->i", rows, rows) for rows in (x, y))
    for part in slices(len(x), len(y), BLOCK_ENTRIES):
        lengths = left_squares[part, None] + right_squares
        out[part] += lengths
        near = np.argwhere(out[part] <= 1e-6 * lengths)  # where a product loses precision
        _by_differences(out[part], near, x[part], y)
    return out


def summed_differences(x: np.ndarray, y: np.ndarray, power: int) -> np.ndarray:
    """The sums of ``|x - y| ** power`` (1 or 2): each pair alone, whatever is beside it."""
    from scipy.spatial.distance import cdist

    if not x.shape[1]:
        return np.zeros((len(x), len(y)))
    return cdist(x, y, "cityblock" if power == 1 else "sqeuclidean")


def inner_products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The inner products of rows."""
    return x @ y.T


def _by_differences(
    out: np.ndarray, pairs: np.ndarray, left: np.ndarray, right: np.ndarray
) -> None:
    for part in slices(len(pairs), left.shape[1], BLOCK_ENTRIES):
        i, j = pairs[part].T
        out[i, j] = ((left[i] - right[j]) ** 2).sum(axis=1)


# -- comparing what was learned at different times ------------------------------------------------


@dataclass(frozen=True, eq=False)
class Turn:
    """A rotation, or reflection, that brings coordinates near to earlier ones; distances stay."""

    start: np.ndarray
    axes: np.ndarray
    end: np.ndarray

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Rows in the earlier coordinates, of which there may be more."""
        return (wider(rows, len(self.start)) - self.start) @ self.axes + self.end


Piece = tuple[np.ndarray, np.ndarray, np.ndarray]  # points now, the same ones then, weights


def turns(pieces: Sequence[Piece], *, together: bool) -> list[Turn]:
    """For each piece the orthogonal map that brings its points nearest to those before.

    Orthogonal Procrustes, weighted, each piece about its mean: with ``M = Σ w (x - x̄)(y - ȳ)ᵀ``
    and its singular vectors U and V the map is ``UVᵀ``. ``together`` gives all pieces one map, as
    rows that are summed need. Where there are fewer coordinates than before, zeros stand in.
    """
    widths = [max(now.shape[1], then.shape[1]) for now, then, _ in pieces]
    if together:
        widths = [max(widths, default=0)] * len(widths)
    means, products = [], []
    for (now, then, weight), width in zip(pieces, widths, strict=True):
        now, then = wider(now, width), wider(then, width)
        share = weight / max(weight.sum(), 1e-300)
        start, end = share @ now, share @ then
        means.append((start, end))
        products.append(((now - start) * share[:, None]).T @ (then - end))
    if together and products:
        products = [np.sum(products, axis=0)] * len(products)
    return [Turn(a, _nearest_rotation(m), b) for (a, b), m in zip(means, products, strict=True)]


def _nearest_rotation(product: np.ndarray) -> np.ndarray:
    left, _, right = np.linalg.svd(product)
    return np.asarray(left @ right)


def wider(rows: np.ndarray, width: int) -> np.ndarray:
    """Rows with zeros after their coordinates, up to a number of these."""
    return np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, width - rows.shape[-1])])
