"""Spectra: what the n × n kernel of all objects would say, from V × V counts.

Objects are ``X = Z T``: one-hot rows Z times a value table T. With ``C₀ = C - ccᵀ/n`` (that is
``ZᵀHZ``, H the centring matrix), every trace and eigenvector of the centred object kernel HXXᵀH
that learning needs is a function of ``TᵀC₀T``, at a cost that does not depend on n. A set-valued
cell is the mean of its elements, an empty one that of all, as in vectors: exactly so where the
others of its column have equally many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from tabweave._compat import blas_threads, eigh, fix_signs, njit, one_blas_thread
from tabweave.columns.table import Table
from tabweave.columns.vocabulary import Vocabulary
from tabweave.counts.counting import divisor, marginals, pack_columns
from tabweave.counts.counts import Counts
from tabweave.io.register import storable


def centred_product(counts: Counts, rows: np.ndarray) -> np.ndarray:
    """``C₀ R`` for a matrix R with one row per value, without forming C₀."""
    c, sets = counts.value_counts, set_columns(counts)
    rows = rows.copy() if sets else rows
    for a, (share, size) in sets.items():
        span = counts.span(a)
        rows[span] = (rows[span] - share @ rows[span]) / size
    return of_means(counts, np.asarray(counts.pairs @ rows) - np.outer(c, (c @ rows) / counts.n))


def of_means(counts: Counts, sums: np.ndarray) -> np.ndarray:
    """What ``ZᵀY`` is where set-valued cells are means, from that where they are sums."""
    sets = set_columns(counts)
    sums = sums.copy() if sets else sums
    for a, (share, size) in sets.items():
        span = counts.span(a)
        sums[span] = (sums[span] - np.outer(share, sums[span].sum(axis=0))) / size
    return sums


def set_columns(counts: Counts) -> dict[int, tuple[np.ndarray, float]]:
    """Of each column of sets the shares of elements, and how large the set of one is."""
    columns = [] if counts.schema is None else counts.schema.categorical
    moments = {}
    for a in (a for a, column in enumerate(columns) if column.is_set):
        span = counts.span(a)
        count = counts.value_counts[span]
        if (total := count.sum()) > 0:
            moments[a] = count / total, float(counts.pairs[span][:, span].sum() / total)
    return moments


def scatter(counts: Counts, tables: Sequence[Any], *, centred: bool = True) -> np.ndarray:
    """``TᵀC₀T`` (or ``TᵀCT``), the scatter of all objects under concatenated tables.

    A table that chooses values is quicker as a sparse array.
    """
    sets = set_columns(counts) if centred else {}
    wide = [_beside_ones(t) if a in sets else t for a, t in enumerate(tables)]
    product = _scatter(counts, wide, centred)
    ends = np.cumsum([table.shape[1] for table in wide])[:-1]
    for _ in range(2 if sets else 0):  # T less its mean, from T beside ones: rows, then columns
        strips = np.split(product, ends)
        for a, (share, size) in sets.items():
            strips[a] = (strips[a][:-1] - np.outer(share @ tables[a], strips[a][-1])) / size
        product = np.vstack(strips).T
    return product


def _beside_ones(table: Any) -> Any:
    ones = np.ones((table.shape[0], 1))
    stack = sparse.hstack if sparse.issparse(table) else np.hstack
    return stack([table, ones])


def _scatter(counts: Counts, tables: Sequence[Any], centred: bool) -> np.ndarray:
    """The scatter where cells of sets are the sums of their elements."""
    spans = [counts.span(a) for a in range(len(tables))]
    edges = np.cumsum([0, *(table.shape[1] for table in tables)]).tolist()
    coordinate_spans = [slice(i, j) for i, j in pairwise(edges)]
    if sparse.issparse(counts.pairs) and edges[-1] < counts.vocabulary.n_values / 2:
        wide = sparse.block_diag(tables, format="csr")
        product = (wide.T @ counts.pairs @ wide).toarray().astype(float)
    else:
        product = _dense_scatter(counts.pairs, tables, spans, coordinate_spans)
    if centred:
        c = counts.value_counts
        total = np.concatenate([c[span] @ t for span, t in zip(spans, tables, strict=True)])
        # Of many columns the product is the largest matrix there is.
        for coordinates in coordinate_spans:
            product[coordinates] -= np.outer(total[coordinates], total / counts.n)
    return product


def _dense_scatter(
    pairs: Any, tables: Sequence[Any], spans: Sequence[slice], coordinate_spans: Sequence[slice]
) -> np.ndarray:
    """``TᵀCT``: a column's values are in ``spans``, and its coordinates are its ``own``."""
    pairs = pairs.T  # the same: counts of pairs are symmetric, and columns are cut faster so
    width = coordinate_spans[-1].stop if coordinate_spans else 0
    half_product, product = np.empty((pairs.shape[0], width)), np.empty((width, width))
    with blas_threads(width * max((np.prod(table.shape) for table in tables), default=0)):
        for span, table, coordinates in zip(spans, tables, coordinate_spans, strict=True):
            block = pairs[:, span] @ table
            half_product[:, coordinates] = block.toarray() if sparse.issparse(block) else block
        for span, table, coordinates in zip(spans, tables, coordinate_spans, strict=True):
            product[coordinates] = table.T @ half_product[span]
    return product


def principal_axes(
    counts: Counts, tables: Sequence[np.ndarray], n_axes: int, *, centred: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues of the object kernel and the axes that give them.

    The k-th object coordinate is ``Z T u_k``; its sum of squares over objects is the eigenvalue.
    Columns that all have one value leave no axis.
    """
    product = scatter(counts, tables, centred=centred)
    size = len(product)
    n_axes = min(n_axes, size)
    if not n_axes:
        return np.zeros(0), np.zeros((size, 0))
    values, axes = eigh(product, n_axes)
    return values[::-1], fix_signs(axes[:, ::-1])


def leading_axes(counts: Counts, tables: Sequence[np.ndarray], n_axes: int) -> np.ndarray:
    """The axes of the largest eigenvalues; those as large as the last one stay together.

    A cut through equal eigenvalues would keep arbitrary directions. Where columns are independent
    and alike all are equal, and rows that differ would fall together.
    """
    values, axes = principal_axes(counts, tables, sum(t.shape[1] for t in tables))
    noise = 1e-9 * values.max(initial=0)
    last = values[n_axes - 1] if n_axes < len(values) else 0.0
    return axes[:, (values >= last - noise) & (values > noise)]


def responses(
    counts: Counts, tables: Sequence[np.ndarray], n_axes: int, *, centred: bool = True
) -> np.ndarray:
    """``ZᵀH``, H the top eigenvectors of the object kernel: values on clusters.

    ``H = HZTU/√λ``, so ``ZᵀH = C₀TU/√λ`` and ``tr(HᵀSH) = tr((ZᵀH)ᵀ G ZᵀH)`` for any kernel
    ``S = ZGZᵀ``. Directions without inertia, of which no kernel in the sum has any, are 0.
    """
    values, axes = principal_axes(counts, tables, n_axes, centred=centred)
    rows = np.vstack(projected(tables, axes))
    response = centred_product(counts, rows) if centred else np.asarray(counts.pairs @ rows)
    flat = values <= 1e-12 * values.max(initial=0)
    return response / np.sqrt(np.where(flat, np.inf, values))


def projected(tables: Sequence[np.ndarray], axes: np.ndarray) -> list[np.ndarray]:
    """The value tables of the projection: each column's rows on the axes, to be summed."""
    edges = np.cumsum([0] + [table.shape[1] for table in tables])
    return [
        table @ axes[start:stop]
        for table, start, stop in zip(tables, edges[:-1], edges[1:], strict=True)
    ]


# -- numbers beside values ------------------------------------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class CrossMoments:
    """Sums of numbers, of their products, and of numbers over the rows of each value: they add up.

    Counts hold mean and variance of each numeric column; this holds what two columns have in
    common. Numbers are measured from ``origin`` in steps of ``unit``, those of the first rows, so
    that no digit is lost; a missing number counts nowhere.

    Attributes
    ----------
    vocabulary : Vocabulary
        The categorical columns and their values.
    names : tuple of str
        The numeric columns.
    origin, unit : ndarray of shape (numbers,)
        What numbers are measured from, and in.
    products : ndarray of shape (4, numbers, numbers)
        Over the rows that have both: sum of products, sum of the first, number of rows, sum of the
        first's squares.
    by_value : ndarray of shape (2, V, numbers)
        Over the rows that have a value and a number: sum of the numbers, number of rows.

    Examples
    --------
    >>> from tabweave import Table
    >>> moments = CrossMoments.of(Table.of({"job": ["a", "b", "a"], "age": [30.0, 50.0, 40.0]}))
    >>> moments.means()[0].tolist(), moments.value_means()[:, 0].tolist()
    ([40.0], [35.0, 50.0])
    """

    vocabulary: Vocabulary
    names: tuple[str, ...]
    origin: np.ndarray
    unit: np.ndarray
    products: np.ndarray
    by_value: np.ndarray

    @classmethod
    def of(cls, table: Table, like: CrossMoments | None = None) -> CrossMoments:
        """Add up the rows of a table, numbers measured as in ``like``."""
        numbers = [data.values for column, data in table if column.is_continuous]
        named = tuple(c.name for c in table.schema.columns if c.is_continuous)
        valued = [(c.name, data) for c, data in table if c.has_values and not c.is_set]
        words = Vocabulary(tuple(n for n, _ in valued), tuple(tuple(d.labels) for _, d in valued))
        origin, unit = _measure(numbers) if like is None else (like.origin, like.unit)
        p = len(named)
        products, by_value = np.zeros((4, p, p)), np.zeros((2, words.n_values, p))
        most = min(SUMMED_ROWS, table.n_rows)
        space = np.empty((2 * p + 1) * most), np.empty(len(valued) * most, np.int32)
        for start in range(0, table.n_rows if numbers else 0, SUMMED_ROWS):
            rows = slice(start, start + SUMMED_ROWS)
            parts = [values[rows] for values in numbers]
            features, present = _features(parts, origin, unit, space[0])
            with one_blas_thread():  # small products
                products += _products(features, present)
            codes = [data.codes[rows] for _, data in valued]
            sums = _sums_by_value(codes, words, features, space[1])
            by_value += np.stack([sums[:, :p], sums[:, present]])
        return cls(words, named, origin, unit, products, by_value)

    def __add__(self, other: CrossMoments) -> CrossMoments:
        return self._with(other, 1)

    def __sub__(self, other: CrossMoments) -> CrossMoments:
        return self._with(other, -1)

    def _with(self, other: CrossMoments, sign: int) -> CrossMoments:
        other = other.measured(self.origin, self.unit)
        words = self.vocabulary.union(other.vocabulary)
        by_value = np.zeros((2, words.n_values, len(self.names)))
        by_value[:, self.vocabulary.reindex(words)] += self.by_value
        by_value[:, other.vocabulary.reindex(words)] += sign * other.by_value
        products = self.products + sign * other.products
        return replace(self, vocabulary=words, products=products, by_value=by_value)

    def measured(self, origin: np.ndarray, unit: np.ndarray) -> CrossMoments:
        """The same sums of numbers that are measured otherwise."""
        if np.array_equal(origin, self.origin) and np.array_equal(unit, self.unit):
            return self
        a, b = self.unit / unit, (self.origin - origin) / unit  # x becomes a x + b
        product, total, n, square = self.products
        crossed = total * np.outer(a, b)
        products = [
            product * np.outer(a, a) + crossed + crossed.T + n * np.outer(b, b),
            total * a[:, None] + n * b[:, None],
            n,
            square * a[:, None] ** 2 + 2 * total * (a * b)[:, None] + n * b[:, None] ** 2,
        ]
        sums, times = self.by_value
        by_value = np.stack([sums * a + times * b, times])
        return replace(
            self, origin=origin, unit=unit, products=np.stack(products), by_value=by_value
        )

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean of each column's numbers, and how many there are."""
        n = np.diagonal(self.products[2])
        total = np.diagonal(self.products[1])
        return self.origin + self.unit * (total / divisor(n)), n

    def centred(self, factor: Any = 1.0) -> np.ndarray:
        """``Σ (x - x̄)(y - ȳ)`` over the rows that have both numbers, each times its factor.

        The squares of large numbers may exceed a float; in deviations they do not.
        """
        unit = self.unit * factor
        return self._centred_units() * np.outer(unit, unit)

    def _centred_units(self) -> np.ndarray:
        """``Σ (x - x̄)(y - ȳ)`` in units."""
        product, total, n, _ = self.products
        mean = np.diagonal(total) / divisor(np.diagonal(n))
        return product - total * mean - (total * mean).T + np.outer(mean, mean) * n

    def deviations(self, n: Any) -> np.ndarray:
        """``√(Σ (x - x̄)² / n)`` of each column."""
        squares = np.diagonal(self._centred_units())
        return self.unit * np.sqrt(np.maximum(squares, 0) / n)

    def correlations(self) -> np.ndarray:
        """Pearson's correlation of every two columns, over the rows that have both."""
        product, total, n, square = self.products
        n = divisor(n)
        squares = np.maximum(square - total**2 / n, 0)
        length = np.sqrt(squares * squares.T)
        out = np.full(product.shape, np.nan)
        np.divide(product - total * total.T / n, length, out=out, where=length > 0)
        return np.clip(out, -1, 1)

    def value_sums(self, factor: Any = 1.0) -> np.ndarray:
        """``Σ (x - x̄)`` over the rows of each value, x̄ the mean of the column.

        Sums are multiplied by ``factor``: those of large numbers may exceed a float, in deviations
        they do not.
        """
        n = np.diagonal(self.products[2])
        mean = np.diagonal(self.products[1]) / divisor(n)
        return (self.by_value[0] - self.by_value[1] * mean) * (self.unit * factor)

    def value_means(self) -> np.ndarray:
        """The mean of each column's numbers over the rows of each value."""
        total, n = self.by_value
        return self.origin + self.unit * (total / divisor(n))


# So many rows are summed at a time: sums do not depend on how many threads there are.
SUMMED_ROWS = 1 << 16


def _measure(numbers: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """A middle and a scale of each column: whole powers of two, which lose no digit."""
    origin, unit = np.zeros(len(numbers)), np.ones(len(numbers))
    for j, values in enumerate(numbers):
        present = values[:SUMMED_ROWS]
        if np.isnan(present).any():
            present = values[~np.isnan(values)][:SUMMED_ROWS]
        if len(present):
            high, low = float(present.max()), float(present.min())
            if high - low > 2.0**1023:  # or infinite: measured from 0
                unit[j] = 2.0**1023
                continue
            origin[j] = 2 * np.median(present / 2)  # a sum of two may be infinite
            largest = np.abs(present - origin[j]).max()
            unit[j] = 2.0 ** np.ceil(np.log2(largest)) if largest > 0 else 1.0
    return origin, unit


def _features(
    numbers: Sequence[np.ndarray], origin: np.ndarray, unit: np.ndarray, space: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (0 in a gap) and which are present, a row each, and where that stands.

    Most columns have no gaps: one row of ones speaks for all of those. They are written into
    ``space``: fresh memory for each block would cost more than the sums.
    """
    n, p = len(numbers[0]), len(numbers)
    gappy = np.flatnonzero([np.isnan(values.min()) for values in numbers])
    features, present = _shaped(space, p + 1 + len(gappy), n), np.full(p, p)
    for j, values in enumerate(numbers):
        np.subtract(values, origin[j], out=features[j])
        features[j] /= unit[j]
    features[p] = 1.0
    for k, j in enumerate(gappy, p + 1):
        missing = np.isnan(numbers[j])
        features[j, missing] = 0.0
        features[k], present[j] = ~missing, k
    return features, present


def _shaped(space: np.ndarray, n_rows: int, width: int) -> np.ndarray:
    return space[: n_rows * width].reshape(n_rows, width)


def _products(features: np.ndarray, present: np.ndarray) -> np.ndarray:
    """The four products of :class:`CrossMoments` of some rows."""
    p = len(present)
    gram = _row_products(features)
    if (present == p).all():
        squares = np.repeat(np.diagonal(gram)[:p, None], p, axis=1)
    else:
        squares = features[:p] ** 2 @ features[present].T
    return np.stack([gram[:p, :p], gram[:p, present], gram[np.ix_(present, present)], squares])


def _row_products(x: np.ndarray) -> np.ndarray:
    """``x xᵀ``; of few rows in pieces so short that BLAS multiplies them as they lie.

    The last row is left out of one factor: of two equal ones BLAS would make a slower product.
    """
    max_small_rows, width = 32, 1 << 11  # of a small product, and how long its pieces are
    if len(x) > max_small_rows:
        return x @ x.T
    n_in_pieces = x.shape[1] - x.shape[1] % width
    cut = x[:, :n_in_pieces].reshape(len(x), -1, width).transpose(1, 0, 2)
    rest = x[:, n_in_pieces:]
    above = (cut[:, :-1] @ cut.transpose(0, 2, 1)).sum(axis=0) + rest[:-1] @ rest.T
    return np.vstack([above, np.append(above[:, -1], x[-1] @ x[-1])])


def _sums_by_value(
    codes: Sequence[np.ndarray], words: Vocabulary, features: np.ndarray, space: np.ndarray
) -> np.ndarray:
    """The sums of features over the rows of each value; small columns share a pass."""
    sizes = np.diff(words.offsets).tolist()
    groups = pack_columns(sizes)
    widths = [[sizes[a] for a in group] for group in groups]
    starts = np.cumsum([0, *(int(np.prod(joint_codes)) for joint_codes in widths)])
    joint = _shaped(space, len(groups), features.shape[1])
    for joint_codes, group, start in zip(joint, groups, starts, strict=False):
        joint_codes[:] = 0
        for a in group:
            joint_codes *= sizes[a]
            part = codes[a].view(np.int32) if codes[a].itemsize == 4 else codes[a]
            np.add(joint_codes, part, out=joint_codes, casting="unsafe")
        joint_codes += np.int32(start)
    sums = np.zeros((starts[-1], -(-len(features) // 4) * 4))  # whole registers of four
    _add_by_value(joint, features, sums)
    out = np.zeros((words.n_values, len(features)))
    for g, group in enumerate(groups):
        index = np.concatenate([np.arange(*words.offsets[a : a + 2]) for a in group])
        table = sums[starts[g] : starts[g + 1], : len(features)]
        out[index] = marginals(table, widths[g])
    return out


def _add_by_value_plain(codes: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    for column_codes in codes:
        np.add.at(out[:, : len(x)], column_codes, x.T)


@njit(nogil=True, cache=True, plain=_add_by_value_plain)
def _add_by_value(codes: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """Add each column of x to the rows of the table that codes say, each row of codes to its own.

    Numbers lie column by column; a few rows at a time are laid side by side, to be added at once.
    """
    width, tile_rows = out.shape[1], 64  # rows that lie in the first cache, side by side
    tile = np.zeros((tile_rows, width))
    for start in range(0, codes.shape[1], tile_rows):
        n = min(tile_rows, codes.shape[1] - start)
        for j in range(len(x)):
            for i in range(n):
                tile[i, j] = x[j, start + i]
        for column_codes in codes:
            for i in range(n):
                v = column_codes[start + i]
                for j in range(width):
                    out[v, j] += tile[i, j]
