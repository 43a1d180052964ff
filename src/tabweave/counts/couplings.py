"""Couplings: counts in, what they say of values and of columns out.

Conditional probabilities, information between columns, and the context of a column: the small pure
functions that value measures are made of. Below them the coupling spaces: the values of a column as
points, and one Gram matrix for each space and kernel. Blocks of the pair counts, dense or sparse,
are read one at a time; a dense V × V matrix is never formed.

Pairs of columns are taken as joint distributions of incidences. For single-valued columns that is
the usual joint distribution of rows; a row with a set counts once for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.special import entr, xlogy

from tabweave._compat import blas_threads, eigh, fix_signs, njit
from tabweave.columns.table import Table
from tabweave.columns.vocabulary import slices
from tabweave.counts.counting import BLOCK_ENTRIES, divisor
from tabweave.counts.counts import Counts
from tabweave.io.register import storable

Kernel = Callable[..., np.ndarray]
WIDTHS = tuple(2.0**e for e in range(-5, 6))
DEGREES = (1, 2, 3)
# A column is seen through so many of its values.
MAX_LANDMARKS = 512
# A column has at most so many coordinates, however many values it has.
MAX_COORDINATES = 128
# A kernel of less inertia tells no values apart.
NEGLIGIBLE_INERTIA = 1e-8
# Information in nats below this is rounding.
INFORMATION_ROUNDING = 1e-12
# Values that are expected to meet more often have the moments that a series gives.
MAX_SUMMED_MEETINGS = 256
# A block is worked on with its zeros if at least this share of its pairs meet.
MIN_DENSE_SHARE = 0.05

N_COMMON = MAX_COORDINATES // 2  # those that values share, if they do not fit otherwise


# -- values -------------------------------------------------------------------------------------


def partners(counts: Counts, column: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield, for every other column, its number and the table of joint counts with it.

    Rows are the values of ``column``, columns those of the other one.
    """
    edges = counts.offsets
    rows = counts.pairs[edges[column] : edges[column + 1]]
    if sparse.issparse(rows):
        rows = rows.tocsc()
    for other in range(len(edges) - 1):
        if other != column:
            block = rows[:, edges[other] : edges[other + 1]]
            yield other, block.toarray() if sparse.issparse(block) else block


def shares(block: np.ndarray) -> np.ndarray:
    """Definition 3.4: ``p(q|v) = |g(v) ∩ g(q)| / |g(v)|``, each row of a block scaled to sum 1."""
    return block / divisor(block.sum(axis=1, keepdims=True))


# -- columns ------------------------------------------------------------------------------------


def block_sums(counts: Counts, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return, for each pair of columns, the sum of ``function(count)``, which is 0 for none."""
    return _by_column(counts, value_sums(counts, function)[0])


def value_sums(counts: Counts, *functions: Callable[[np.ndarray], np.ndarray]) -> list[np.ndarray]:
    """Return, for each function, its sum over the counts of a value with each column's values.

    Functions of counts are 0 for none. Arrays are of shape (values, columns).
    """
    pairs, n_columns = counts.pairs, len(counts.sizes)
    n_values, column = pairs.shape[0], counts.column_of_value
    sums = [np.zeros((n_values, n_columns)) for _ in functions]
    if not sparse.issparse(pairs) or pairs.nnz > MIN_DENSE_SHARE * n_values**2:
        filled = np.flatnonzero(counts.sizes)  # sets that are all empty have no values
        starts = counts.offsets[filled]
        for part in slices(n_values, n_values, BLOCK_ENTRIES):
            block = pairs[part].toarray() if sparse.issparse(pairs) else pairs[part]
            for out, function in zip(sums, functions, strict=True):
                out[part, filled] = np.add.reduceat(function(block), starts, axis=1)
        return sums
    edges = np.searchsorted(pairs.indptr, np.arange(0, pairs.nnz, BLOCK_ENTRIES))
    for first, last in pairwise(np.unique([*edges, n_values]).tolist()):
        cells = pairs[first:last].tocoo()
        where = cells.coords[0].astype(np.int64) * n_columns + column[cells.coords[1]]
        size = (last - first) * n_columns
        for out, function in zip(sums, functions, strict=True):
            out[first:last].flat = np.bincount(where, function(cells.data), size)
    return sums


def _by_column(counts: Counts, rows: np.ndarray) -> np.ndarray:
    """The sums of the rows of each column's values."""
    column = counts.column_of_value
    ones = (np.ones(len(column)), (column, np.arange(len(column))))
    return np.asarray(sparse.csr_array(ones, shape=(len(counts.sizes), len(column))) @ rows)


def entropies(n: float, *tables: np.ndarray) -> list[float]:
    """The entropy of each table of counts, which add up to n, in nats."""
    positive = (table[table > 0] for table in tables)
    return [float(np.log(n) - (x * np.log(x)).sum() / n) for x in positive]


def information(counts: Counts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mutual information, marginal and joint entropy of every pair of columns, in nats.

    Returns
    -------
    mutual : ndarray of shape (columns, columns)
        ``I(a; b)``; exactly 0 where only rounding is left.
    marginal : ndarray of shape (columns, columns)
        ``H(a)`` in row a; the same in every column unless a column is set-valued.
    joint : ndarray of shape (columns, columns)
        ``H(a, b)``.
    """
    totals, logs = value_sums(counts, np.asarray, _xlogx)
    scale = divisor(_by_column(counts, totals))
    joint = np.log(scale) - _by_column(counts, logs) / scale
    marginal = np.log(scale) - _by_column(counts, _xlogx(totals)) / scale
    joint, marginal = _without_noise(joint), _without_noise(marginal)
    return _without_noise(marginal + marginal.T - joint), marginal, joint


def symmetric_uncertainty(counts: Counts) -> np.ndarray:
    """Eq. (2.19): ``SU_a(b) = 2 (H(a) - H(a|b)) / (H(a) + H(b))``, 0 where nothing varies."""
    mutual, marginal, _ = information(counts)
    return np.minimum(2 * mutual / divisor(marginal + marginal.T), 1)


def corrected_uncertainty(
    counts: Counts,
    mutual: np.ndarray,
    marginal: np.ndarray,
    expected: np.ndarray | None = None,
) -> np.ndarray:
    """``SU⁺ = 2 max(0, MI - E[MI]) / (H_a + H_b)``, 0 on the diagonal.

    Takes from :func:`information` what shuffled columns would seem to share, see
    :func:`chance_information`, whose first result may be given.
    """
    if expected is None:
        expected = chance_information(counts)[0]
    uncertainty = 2 * _without_noise(mutual - expected) / divisor(marginal + marginal.T)
    np.fill_diagonal(uncertainty, 0)
    return uncertainty


def copies(
    counts: Counts, mutual: np.ndarray, marginal: np.ndarray, expected: np.ndarray
) -> np.ndarray:
    """How far each other column says what a column says, between 0 and 1.

    ``((MI - E[MI]) / (max(H_a, H_b) - E[MI]))¹⁶`` is 1 for a column and its copy, at any number of
    values, and small for columns that merely depend on each other: 0.003 if they share 70 % of what
    they say. Of cells that hardly repeat, chance would say the same, and nothing is known. It is
    multiplied by the share of a's cells that have one of b: few cells copy few.
    """
    room = np.maximum(marginal, marginal.T) - expected
    above = _without_noise(mutual - expected)
    pair_cells = _by_column(counts, value_sums(counts, np.asarray)[0])
    cells = _by_column(counts, counts.value_counts)
    shared = np.minimum(pair_cells / divisor(cells)[:, None], 1)
    min_room = 0.05  # nats that chance must leave for copies to be told
    copied = np.minimum(above / np.maximum(room, min_room), 1) ** 16 * shared
    np.fill_diagonal(copied, 0)
    return copied


def chance_information(counts: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the mutual information of all columns, were they shuffled.

    With a, b the counts of two values, n rows, and K hypergeometric with these margins, the mean is
    ``Σ E[K log(nK / ab)] / n`` over all pairs of values, exactly, whatever their number [Vinh, Epps
    and Bailey 2010]. The sum depends on how often each count occurs: pairs of different counts are
    what it costs, of which a column of n rows has at most √2n.

    The variance is ``Σ V(K log(nK / ab) | K) / n² (1 - a/n)(1 - b/n)``, where V is what a line in K
    leaves of the variance. That is ``(V_a - 1)(V_b - 1) / 2n²`` where values meet often, and 0 of a
    column whose values occur once. In simulations it was within a fourth of the variance.
    """
    sets, n_columns = _columns_of_sets(counts), len(counts.sizes)
    often = _whole(counts.value_counts)
    n = max(round(float(counts.n)), *_by_column(counts, often)[~sets].tolist(), 1.0)
    sizes, repeats = _repeats(counts, np.minimum(often, n))
    out = np.zeros((2, n_columns, n_columns))
    for part in slices(len(sizes), len(sizes), BLOCK_ENTRIES):
        left, right = repeats[:, part], repeats[:, part.start :]
        moments = _chance(sizes[part, None], sizes[None, part.start :], n)
        for moment, cells in zip(out, moments, strict=True):
            cells[:, : part.stop - part.start] /= 2  # what lies in it twice
            sums = left @ (right @ cells.T).T
            moment += sums + sums.T
    mean, variance = out[0] / n, out[1] / n**2
    if sets.any():
        _fill_in_sets(counts, np.flatnonzero(sets).tolist(), mean, variance)
    return mean, variance


def _columns_of_sets(counts: Counts) -> np.ndarray:
    """Which columns hold sets, or have gaps: their values meet others not once a row."""
    columns = () if counts.schema is None else counts.schema.categorical
    incomplete = set(counts.columns_with_gaps)
    return np.array([column.is_set or column.name in incomplete for column in columns], bool)


def _fill_in_sets(
    counts: Counts, sets: Sequence[int], mean: np.ndarray, variance: np.ndarray
) -> None:
    """Fill in moments of columns of sets, whose elements meet other values more often or less."""
    totals = value_sums(counts, np.asarray)[0]
    spans = [counts.span(b) for b in range(len(counts.sizes))]
    for a in sets:
        tables = [(totals[spans[a], b], totals[spans[b], a]) for b in range(len(spans))]
        mean[a], variance[a] = mean[:, a], variance[:, a] = chance_of_tables(tables)


def chance_of_tables(
    margins: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the mutual information of tables with these margins."""
    cells, times = [], []
    for rows, columns in margins:
        (x, x_times), (y, y_times) = (
            np.unique(_whole(margin[margin > 0]), return_counts=True) for margin in (rows, columns)
        )
        n = max(x @ x_times, y @ y_times, 1.0)
        cells.append(
            np.stack([np.repeat(x, len(y)), np.tile(y, len(x)), np.full(x.size * y.size, n)])
        )
        times.append(np.outer(x_times, y_times).ravel())
    table = np.repeat(np.arange(len(cells)), [len(table_times) for table_times in times])
    x, y, n = np.hstack(cells)
    mean, variance = (moment * np.hstack(times) for moment in _chance(x, y, n))
    return np.bincount(table, mean / n, len(cells)), np.bincount(table, variance / n**2, len(cells))


def chance_with_classes(counts: Counts, pairs: np.ndarray) -> np.ndarray:
    """The mean information of each column with classes, were these shuffled.

    ``pairs`` are the counts of values with classes.
    """
    out, sets = np.zeros(len(counts.sizes)), _columns_of_sets(counts)
    each = pairs.sum(axis=1)
    if sets.any():
        spans = map(counts.span, np.flatnonzero(sets).tolist())
        out[sets] = chance_of_tables([(each[span], pairs[span].sum(axis=0)) for span in spans])[0]
    if not sets.all():
        of_classes = _whole(pairs[counts.span(int(sets.argmin()))].sum(axis=0), 0)
        often = _whole(each)
        n = max(of_classes.sum(), *_by_column(counts, often)[~sets].tolist(), 1.0)
        sizes, repeats = _repeats(counts, np.minimum(often, n))
        classes, times = np.unique(of_classes[of_classes > 0], return_counts=True)
        mean, _ = _chance(sizes[:, None], classes[None], n)
        out[~sets] = (repeats @ (mean @ times))[~sets] / n
    return out


def _repeats(counts: Counts, often: np.ndarray) -> tuple[np.ndarray, Any]:
    """The different counts of values, and how often each occurs in each column."""
    column = counts.column_of_value
    sizes, index = np.unique(often, return_inverse=True)
    ones = (np.ones(len(column)), (column, index))
    return sizes, sparse.csr_array(ones, shape=(len(counts.sizes), len(sizes)))


def _whole(x: np.ndarray, least: int = 1) -> np.ndarray:
    """Counts as whole numbers; those of decayed or weighted rows are rounded."""
    return np.maximum(np.rint(x.astype(np.float64)), least)


def _chance(a: np.ndarray, b: np.ndarray, n: Any) -> tuple[np.ndarray, np.ndarray]:
    """Moments of ``K log(nK / ab)`` of two counts among n rows, elementwise."""
    a, b, n = np.broadcast_arrays(a, b, np.float64(n))
    mean, variance = np.zeros((2, *a.shape))
    often, alive = a * b > MAX_SUMMED_MEETINGS * n, (a < n) & (b < n)
    for chosen, moments in ((often, _chance_of_many), (~often, _chance_of_few)):
        chosen = chosen & alive
        if chosen.any():
            mean[chosen], variance[chosen] = moments(a[chosen], b[chosen], n[chosen])
    return mean, variance


def _chance_of_many(x: np.ndarray, y: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The moments of values that meet often, by the first terms of a series in 1/n."""
    expected, rest = x * y / n, (1 - x / n) * (1 - y / n)
    spread = expected * rest * n / (n - 1)
    skew = spread * (1 - 2 * x / n) * (1 - 2 * y / n)
    mean = spread / (2 * expected) - skew / (6 * expected**2)
    mean += (3 * spread + 1) * spread / (12 * expected**3)
    return mean, (spread / expected) ** 2 / (2 * rest)


def _chance_of_few(x: np.ndarray, y: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The moments of values that meet seldom, by the whole sum."""
    logs = np.log(np.maximum(np.arange(2 * MAX_SUMMED_MEETINGS), 1))
    moments = np.zeros((2, len(x)))
    _sum_meetings(np.stack([x, y, n, np.log(x * y / n)]), logs, moments)
    return moments


def _sum_meetings_plain(margins: np.ndarray, logs: np.ndarray, moments: np.ndarray) -> None:
    x, y, n, log_expected = margins
    mean, variance = moments
    expected, rest = x * y / n, (1 - x / n) * (1 - y / n)
    reach = 8 * np.sqrt(expected * rest) + 20
    k = np.maximum(np.maximum(0.0, x + y - n), np.floor(expected - reach))
    last = np.minimum(np.minimum(x, y), np.ceil(expected + reach))
    weight, sums = np.ones(len(x)), np.zeros((6, len(x)))
    live = np.arange(len(x))
    while len(live):
        a, b, rows, at, w = x[live], y[live], n[live], k[live], weight[live]
        deviation = at - expected[live]
        f = at * (logs[at.astype(np.int64)] - log_expected[live]) - deviation
        for total, term in zip(
            sums,
            (w, w * f, w * f * f, w * deviation, w * deviation * deviation, w * deviation * f),
            strict=True,
        ):
            total[live] += term
        weight[live] = w * ((a - at) * (b - at) / ((at + 1) * (rows - a - b + at + 1)))
        k[live] += 1
        live = live[k[live] <= last[live]]
    sums[1:] /= sums[0]
    mean[:] = sums[1]
    varies = sums[4] - sums[3] * sums[3]
    line = sums[5] - sums[3] * sums[1]
    line = line * line / np.where(varies > INFORMATION_ROUNDING, varies, 1.0)
    left = np.maximum(sums[2] - sums[1] * sums[1] - line, 0.0)
    variance[:] = np.where(varies > INFORMATION_ROUNDING, left / rest, 0.0)


@njit(nogil=True, cache=True, plain=_sum_meetings_plain, work=lambda margins, *_: 16 * margins.size)
def _sum_meetings(margins: np.ndarray, logs: np.ndarray, moments: np.ndarray) -> None:
    """Fill in the moments of ``K log(nK / xy) - (K - E[K])``, whose mean is the same in sum.

    Margins are x, y, n and the log of xy / n.
    """
    for i in range(margins.shape[1]):
        a, b, rows, log_expected = margins[:, i]
        expected, rest = a * b / rows, (1 - a / rows) * (1 - b / rows)
        reach = 8 * np.sqrt(expected * rest) + 20
        k = max(0.0, a + b - rows, np.floor(expected - reach))
        last = min(a, b, np.ceil(expected + reach))
        w, s0, s1, s2, t1, t2, both = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        while k <= last:
            deviation = k - expected
            f = k * (logs[int(k)] - log_expected) - deviation
            s0 += w
            s1 += w * f
            s2 += w * f * f
            t1 += w * deviation
            t2 += w * deviation * deviation
            both += w * deviation * f
            w = w * ((a - k) * (b - k) / ((k + 1) * (rows - a - b + k + 1)))
            k += 1
        s1, s2, t1, t2, both = s1 / s0, s2 / s0, t1 / s0, t2 / s0, both / s0
        moments[0, i] = s1
        varies, line = t2 - t1 * t1, both - t1 * s1
        moments[1, i] = 0.0
        if varies > INFORMATION_ROUNDING:
            moments[1, i] = max(s2 - s1 * s1 - line * line / varies, 0.0) / rest


def neighbor_information(
    counts: Counts, column: int, asked: np.ndarray, nearest: Any
) -> tuple[np.ndarray, np.ndarray]:
    """What values near a column's own tell of each other column, in nats, and its variance.

    A row with one of the values ``asked`` looks at the rows with those near its value, its own left
    out, by their nearness. They agree with it on another column b in a share A of cases, and in
    ``P = Σ c (c - 1) / n (n - 1)`` if b is shuffled, c the counts of its values. They tell
    ``H_b (A - P) / (1 - P)``: nothing in expectation if columns are independent, and all of b's
    entropy if they always agree. The variance is that of pairs of rows which are drawn alone.

    Parameters
    ----------
    counts : Counts
        The counts of pairs of values.
    column : int
        The number of the column.
    asked : array of int
        The values that look, by index in their column.
    nearest : sparse array of shape (asked, values)
        How near each value is to those asked, 0 for itself.
    """
    owner = counts.column_of_value
    in_column = sparse.csr_array(
        (np.ones(len(owner)), (np.arange(len(owner)), owner)), shape=(len(owner), len(counts.sizes))
    )
    rows = sparse.csr_array(counts.pairs[counts.span(counts.names[column])], dtype=np.float64)
    cells, looking = (rows @ in_column).toarray(), rows[asked]
    near = (nearest @ rows).multiply(looking).tocsr()
    reached = nearest @ cells
    scale = np.where(reached > 0, 1 / divisor(reached), 0)
    lookers = divisor((cells[asked] * (reached > 0)).sum(axis=0))
    agree = ((near @ in_column).toarray() * scale).sum(axis=0) / lookers
    spread = (cells[asked] * scale**2 * (nearest.power(2) @ cells)).sum(axis=0) / lookers**2
    n = cells.sum(axis=0)
    f = np.asarray(rows.sum(axis=0)).ravel() / divisor(n)[owner]
    entropy, twice, thrice = np.stack([entr(f), f**2, f**3]) @ in_column
    chance = np.maximum((n * twice - 1) / np.maximum(n - 1, 1), 0)
    unit = np.where(reached.any(axis=0), entropy / np.where(chance < 1, 1 - chance, 1), 0)
    return unit * (agree - chance), unit**2 * 2 * spread * (twice + twice**2 - 2 * thrice)


def gap_uncertainty(counts: Counts) -> np.ndarray:
    """The symmetric uncertainty of each column's gaps with the values of each other column.

    That is of whether the column's cell is missing, given that the other's is not, less what chance
    brings, ``(V - 1) / 2n``; 0 of columns without gaps, with themselves, and with columns whose
    values occur less than five times on average, of which chance brings more.
    """
    n_columns, total = len(counts.sizes), counts.value_counts.astype(np.float64)
    missing = np.concatenate([[v is None for v in labels] for labels in counts.labels] or [[]])
    column, out = counts.column_of_value, np.zeros((n_columns, n_columns))
    total[missing.astype(bool)] = 0
    n = np.bincount(column, total, n_columns)
    values = np.bincount(column, total > 0, n_columns)
    entropy = np.log(divisor(n)) - np.bincount(column, _xlogx(total), n_columns) / divisor(n)
    for at in np.flatnonzero(missing):
        a = column[at]
        row = counts.pairs[[at]] if sparse.issparse(counts.pairs) else counts.pairs[at : at + 1]
        gaps = np.ravel(row.toarray() if sparse.issparse(row) else row).astype(np.float64)
        gaps[missing.astype(bool)] = 0
        n_missing = np.bincount(column, gaps, n_columns)
        alone = _xlogx(n_missing) + _xlogx(n - n_missing)
        joint = np.bincount(column, _xlogx(gaps) + _xlogx(total - gaps), n_columns)
        gap_entropy = np.log(divisor(n)) - alone / divisor(n)
        mutual = entropy - np.log(divisor(n)) + joint / divisor(n) + gap_entropy
        above = mutual - (values - 1) / (2 * divisor(n))
        out[a] = np.where(n >= 5 * values, 2 * above / divisor(entropy + gap_entropy), 0)
        out[a, a] = 0
    return np.clip(out, 0, 1)


def class_gap_uncertainty(counts: Counts, pairs: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The symmetric uncertainty of each column's gaps with the classes, less what chance brings.

    That is of whether the column's cell is missing; 0 of columns without gaps.

    Parameters
    ----------
    counts : Counts
        The counts, with missing as a value.
    pairs : array of shape (values, classes)
        The counts of values with classes.
    prior : array of shape (classes,)
        The share of each class.
    """
    out, n = np.zeros(len(counts.sizes)), float(counts.n)
    entropy = entr(prior).sum()
    for a, labels in enumerate(counts.labels):
        if None not in labels:
            continue
        gaps = pairs[counts.span(counts.names[a])][labels.index(None)] / n
        joint = np.stack([gaps, np.maximum(prior - gaps, 0)])
        of_gaps = entr(joint.sum(axis=1)).sum()
        mutual = of_gaps + entropy - entr(joint).sum()
        excess = max(mutual - (np.count_nonzero(prior) - 1) / (2 * n), 0.0)
        out[a] = 2 * excess / max(of_gaps + entropy, 1e-300)
    return out


Order = Literal["relevance", "column"]


def context(uncertainty: np.ndarray, order: Order = "relevance") -> np.ndarray:
    """Eqs. (2.20), (2.21): which columns say something about each column and are not redundant.

    Column k leaves the context of j if a column m in it is more relevant, ``SU_j(k) <= SU_j(m)``,
    and says as much about k as j does, ``SU_m(k) >= SU_j(k)``. Ties are judged on 12 digits, lest
    the order of summation decide. Columns with ``SU = 0`` say nothing and are never in.

    Parameters
    ----------
    uncertainty : ndarray of shape (columns, columns)
        SU of each pair of columns.
    order : {"relevance", "column"}, default="relevance"
        The printed rule does not say which redundant column leaves first. By ``"relevance"``
        candidates are taken from the most relevant down and compared with those kept, ties to the
        earlier column; by ``"column"`` columns leave one after the other as they stand in the
        table, compared with all that have not left. Of two copies one stays either way.

    Returns
    -------
    ndarray of bool of shape (columns, columns)
        Row j marks the context of column j.
    """
    su = np.round(uncertainty, 12)
    chosen = su > 0
    np.fill_diagonal(chosen, False)
    for j, relevant in enumerate(chosen):
        if order == "relevance":
            candidates = np.argsort(-su[j], kind="stable")
            rivals = np.zeros_like(relevant)
        else:
            candidates, rivals = np.arange(len(su)), relevant.copy()
        for k in candidates[relevant[candidates]]:
            rivals[k] = False
            more_relevant = rivals & (su[j] >= su[j, k])
            rivals[k] = not (su[more_relevant, k] >= su[j, k]).any()
        relevant[:] = rivals
    return chosen


def _xlogx(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind in "iu" and x.size and 8 * x.max() < x.size:  # each integer once
        integers = np.arange(x.max() + 1)
        return xlogy(integers, integers)[x]
    return xlogy(x, x)


def _without_noise(x: np.ndarray) -> np.ndarray:
    return np.where(x > INFORMATION_ROUNDING, x, 0.0)


# -- checks -------------------------------------------------------------------------------------


def check_no_sets(counts: Counts, who: str) -> None:
    """Raise an error that names the first set-valued column, if there is one."""
    for column in counts.schema.categorical if counts.schema else ():
        if column.is_set:
            raise ValueError(
                f"column {column.name!r} is set-valued; {who} compares single values: "
                "leave the column out, or use another measure"
            )


def check_table_size(counts: Counts, who: str, largest: int = 1 << 28) -> None:
    """Refuse columns whose tables of all pairs of values (2 GB by default) are too large."""
    _check_sizes(counts.names, counts.sizes.astype(np.int64), who, largest)


def check_values(table: Table, who: str, largest: int = 1 << 28) -> None:
    """Refuse the same columns before their pairs are counted, which takes time and memory."""
    coded = {c.name: table[c.name] for c in table.schema.categorical if not c.is_set}
    if sum(len(data.labels) ** 2 for data in coded.values()) <= largest:
        return  # else a pass over the rows says which labels occur
    sizes = [np.count_nonzero(np.bincount(data.codes)) for data in coded.values()]
    _check_sizes(list(coded), np.array(sizes, dtype=np.int64), who, largest)


def _check_sizes(names: Sequence[str], sizes: np.ndarray, who: str, largest: int) -> None:
    if (sizes**2).sum() > largest:
        worst = int(sizes.argmax())
        raise ValueError(
            f"column {names[worst]!r} has {sizes[worst]} values, and {who} needs a table "
            f"of all pairs of them ({sizes[worst] ** 2 * 8 / 1e9:.0f} GB): leave the column out, "
            "group its values, or use Weave"
        )


# -- spaces -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Points:
    """The values of one column as points: ``matrix + outer(left, right)``.

    Smoothed probabilities are a sparse matrix plus a rank-one part; kept apart, a column with many
    values stays sparse.
    """

    matrix: Any
    left: np.ndarray
    right: np.ndarray

    def inner(self, rows: np.ndarray) -> np.ndarray:
        """The inner products of all points with those in ``rows``."""
        if not sparse.issparse(self.matrix):
            points = self._points()
            with blas_threads(points.size * len(rows)):
                return np.asarray(points @ points[rows].T)
        part = self.matrix[rows]
        product = (self.matrix @ part.T).toarray()
        projected, projected_rows = self.matrix @ self.right, part @ self.right
        left_rows = self.left[rows]
        return (
            product
            + np.outer(self.left, projected_rows)
            + np.outer(projected, left_rows)
            + (self.right @ self.right) * np.outer(self.left, left_rows)
        )

    def norms(self) -> np.ndarray:
        """The squared length of each point."""
        if not sparse.issparse(self.matrix):
            points = self._points()
            return np.einsum("ij,ij->i", points, points)
        squares = np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).ravel()
        cross = 2 * self.left * np.asarray(self.matrix @ self.right).ravel()
        return squares + cross + (self.right @ self.right) * self.left**2

    def _points(self) -> np.ndarray:
        return self.matrix + np.outer(self.left, self.right)


def intra(counts: Counts, column: int) -> Points:
    """Eqs. (6.2), (7.2): a value is its frequency f(v)."""
    f = counts.frequencies[column]
    return Points(f[:, None], np.zeros(len(f)), np.zeros(1))


def inter(counts: Counts, column: int, smoothing: float = 0.0) -> Points:
    """Eqs. (6.4), (7.5): a value is ``[p(v|w)]`` over the values w of the other columns.

    With s pseudo-counts of the marginal, ``p(v|w) = (C_vw + s f(v)) / (c_w + s)``.
    """
    block, others = _with_others(counts, column)
    scale = 1 / (others + smoothing)
    f = counts.frequencies[column]
    return Points(_scaled(block, scale), smoothing * f, scale)


def reverse(counts: Counts, column: int, smoothing: float = 0.0) -> Points:
    """Ours: a value is ``[p(w|v)]`` over the values w of the other columns.

    With s pseudo-counts of the marginal, ``p(w|v) = (C_vw + s f(w)) / (c_v + s)``.
    """
    block, others = _with_others(counts, column)
    times = counts.value_counts[counts.span(column)]
    scale = 1 / (times + smoothing)
    return Points(_scaled(block.T, scale).T, smoothing * scale, others / counts.n)


def by_class(counts: Counts, column: int, smoothing: float = 0.0) -> Points:
    """Eq. (6.6): a value is ``[p(v|class)]`` over the classes."""
    if counts.class_pairs is None or counts.class_n is None:
        raise ValueError("the class space needs classes; count the rows with y")
    scale = 1 / (counts.class_n + smoothing)
    f = counts.frequencies[column]
    return Points(counts.class_pairs[counts.span(column)] * scale, smoothing * f, scale)


def _with_others(
    counts: Counts, column: int, max_dense_entries: int = 1 << 25
) -> tuple[Any, np.ndarray]:
    """The pair counts of a column with all other columns, and those values' counts."""
    span = counts.span(column)
    keep = np.delete(np.arange(counts.pairs.shape[0]), np.arange(span.start, span.stop))
    block = counts.pairs[span][:, keep]
    cells = block.shape[0] * block.shape[1]
    if sparse.issparse(block) and cells <= min(block.nnz / MIN_DENSE_SHARE, max_dense_entries):
        block = block.toarray()  # products of such blocks are faster with their zeros
    return block, counts.value_counts[keep].astype(np.float64)


def _scaled(block: Any, scale: np.ndarray) -> Any:
    if sparse.issparse(block):
        return sparse.csr_array(block @ sparse.diags_array(scale))
    return block * scale


# -- kernels ------------------------------------------------------------------------------------


@storable
def gaussian(inner: np.ndarray, left: np.ndarray, right: np.ndarray, *, width: float) -> Any:
    """``exp(-|x - y|² / 2σ²)`` from x·y, |x|² and |y|², elementwise."""
    near = gaussian_exponent(inner, left, right)
    near *= 1 / width**2
    return np.exp(near, out=near)


def gaussian_exponent(inner: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``-|x - y|² / 2``, which a Gaussian divides by σ²."""
    exponent = np.multiply(inner, -2)
    # In place from here: with many values this is where time goes.
    exponent += left
    exponent += right
    np.maximum(exponent, 0, out=exponent)
    exponent *= -0.5
    return exponent


def gaussian_width(kernel: Kernel) -> float | None:
    """The width of a Gaussian; None of another kernel."""
    if isinstance(kernel, partial) and kernel.func is gaussian:
        return float(kernel.keywords["width"])
    return None


@storable
def polynomial(inner: np.ndarray, left: np.ndarray, right: np.ndarray, *, degree: int) -> Any:
    """``(x·y)^p`` from x·y, elementwise."""
    power = np.array(inner, dtype=np.float64)
    for _ in range(degree - 1):  # several times as fast as a power
        power *= inner
    return power


@storable
def bounded_polynomial(
    inner: np.ndarray, left: np.ndarray, right: np.ndarray, *, degree: int
) -> Any:
    """``(x·y / |x||y|)^p`` from x·y, |x|² and |y|²: a polynomial that is 1 at most."""
    size = np.sqrt(np.multiply(left, right))
    return np.divide(inner, size, out=np.zeros_like(inner), where=size > 0) ** degree


def kernel_family(
    widths: Sequence[float] = WIDTHS, degrees: Sequence[int] = DEGREES
) -> dict[str, Kernel]:
    """The kernels of Section 6.2.3: Gaussians of several widths, and polynomials."""
    family: dict[str, Kernel] = {f"gauss{w:g}": partial(gaussian, width=w) for w in widths}
    return family | {f"poly{d}": partial(polynomial, degree=d) for d in degrees}


def chosen_kernels(kernels: Mapping[str, Kernel] | None) -> dict[str, Kernel]:
    """The kernels that were given, or the family of Section 6.2.3."""
    for name, kernel in (kernels or {}).items():
        _check_kernel(name, kernel)
    return kernel_family() if kernels is None else dict(kernels)


def _check_kernel(name: str, kernel: Kernel) -> None:
    """Raise for what is no function of the products and squares of two vectors."""
    what = f"kernels[{name!r}]: expected a function of x·y, |x|² and |y|² that broadcasts, such as "
    what += "those of kernel_family(), got "
    products, squares = np.array([[1.0, 0.5], [0.5, 1.0]]), np.ones(2)
    try:
        gram = np.asarray(kernel(products, squares[:, None], squares[None]), np.float64)
    except TypeError as error:
        raise TypeError(f"{what}{kernel!r} ({error})") from error
    if gram.shape != (2, 2) or not np.isfinite(gram).all():
        raise ValueError(f"{what}one that gives {gram.tolist()} for 2 × 2 products")


def landmarks(counts: Counts, column: int, at_most: int) -> np.ndarray:
    """The values a column is seen through: all, or the most frequent ones."""
    count = counts.value_counts[counts.span(column)]
    if len(count) <= at_most:
        return np.arange(len(count))
    return np.sort(np.argsort(-count, kind="stable")[:at_most])


@dataclass(frozen=True)
class KernelBlock:
    """One kernel of one space of a column: all values against the landmarks."""

    space: str
    kernel: str
    gram: np.ndarray
    diagonal: np.ndarray

    def inertia(self, weights: np.ndarray, landmark_ids: np.ndarray) -> float:
        """The variance of the values in this kernel, weighted; exact if all are landmarks.

        The weighted trace of the centred Gram: what the column adds to the spread of objects.
        """
        share = weights[landmark_ids] / weights[landmark_ids].sum()
        return float(weights @ self.diagonal - weights @ self.gram @ share)


def kernel_blocks(
    spaces: dict[str, Points], kernels: dict[str, Kernel], landmark_ids: np.ndarray
) -> Iterator[KernelBlock]:
    """Yield every kernel of every space of a column."""
    for space, points in spaces.items():
        norms, inner = points.norms(), points.inner(landmark_ids)
        near: np.ndarray | None = None
        for name, kernel in kernels.items():
            width = gaussian_width(kernel)
            if width is not None and inner.size <= BLOCK_ENTRIES:
                if near is None:  # what Gaussians of all widths begin with
                    near = gaussian_exponent(inner, norms[:, None], norms[None, landmark_ids])
                gram = near * (1 / width**2)
                np.exp(gram, out=gram)
            else:
                gram = kernel(inner, norms[:, None], norms[None, landmark_ids])
            yield KernelBlock(space, name, gram, kernel(norms, norms, norms))


def _spaces(counts: Counts, column: int, smoothing: float) -> dict[str, Points]:
    """The values of a column as points: f(v), [p(v|w)] and [p(w|v)]."""
    spaces = {"intra": intra(counts, column)}
    if len(counts.names) > 1:
        spaces["inter"] = inter(counts, column, smoothing)
        spaces["reverse"] = reverse(counts, column, smoothing)
    return spaces


def identity_block(n_values: int, landmark_ids: np.ndarray) -> KernelBlock:
    """Ours: every value on its own axis, so that no two values fall together."""
    gram = np.zeros((n_values, len(landmark_ids)))
    gram[landmark_ids, np.arange(len(landmark_ids))] = 1
    return KernelBlock("identity", "match", gram, np.ones(n_values))


def column_blocks(
    counts: Counts,
    column: int,
    landmark_ids: np.ndarray,
    kernels: dict[str, Kernel],
    smoothing: float,
) -> Iterator[tuple[KernelBlock, float]]:
    """Yield the kernels of f(v), [p(v|w)] and [p(w|v)] in which values differ, and how much."""
    f = counts.frequencies[column]
    for block in kernel_blocks(_spaces(counts, column, smoothing), kernels, landmark_ids):
        inertia = block.inertia(f, landmark_ids)
        if inertia > NEGLIGIBLE_INERTIA:
            yield block, inertia


def summed_kernels(
    counts: Counts,
    column: int,
    landmark_ids: np.ndarray,
    kernels: dict[str, Kernel],
    smoothing: float,
    cached_entries: int = 1 << 15,
) -> tuple[np.ndarray, np.ndarray, int]:
    """The sum of a column's kernels at unit inertia, its diagonal, and how many they are.

    The kernels of a few values at a time, which the caches hold, are computed twice: first for
    their inertia, then to be summed. That takes less time than to keep them.
    """
    f = counts.frequencies[column]
    share = f[landmark_ids] / f[landmark_ids].sum()
    total, diagonal, n_kernels = np.zeros((len(f), len(landmark_ids))), np.zeros(len(f)), 0
    parts = slices(len(total), len(landmark_ids), cached_entries)
    family = _Family.of(kernels)
    for points in _spaces(counts, column, smoothing).values():
        norms, inner = points.norms(), points.inner(landmark_ids)
        there = norms[None, landmark_ids]
        diagonals = np.array([gram.copy() for gram in family.grams(norms, norms, norms)])
        inertia = diagonals @ f
        for part in parts:
            grams = family.grams(inner[part], norms[part, None], there)
            inertia -= [f[part] @ gram @ share for gram in grams]
        differ = inertia > NEGLIGIBLE_INERTIA
        scale = np.divide(1, inertia, out=np.zeros_like(inertia), where=differ)
        for part in parts:
            scaled = np.empty_like(total[part])
            grams = family.grams(inner[part], norms[part, None], there)
            for gram, weight in zip(grams, scale, strict=True):
                if weight:
                    total[part] += np.multiply(gram, weight, out=scaled)
        at_least = scale @ family.offsets
        total += at_least
        diagonal += scale @ diagonals + at_least
        n_kernels += int(differ.sum())
    return total, diagonal, n_kernels


@dataclass(frozen=True)
class _Family:
    """Kernels to be summed: Gaussians, from wide to narrow, and others."""

    widths: list[float]
    others: list[Kernel]

    @classmethod
    def of(cls, kernels: Mapping[str, Kernel]) -> _Family:
        """Tell Gaussians from other kernels."""
        widths = [w for kernel in kernels.values() if (w := gaussian_width(kernel)) is not None]
        others = [kernel for kernel in kernels.values() if gaussian_width(kernel) is None]
        return cls(sorted(widths, reverse=True), others)

    @property
    def offsets(self) -> np.ndarray:
        """What each of `grams` lacks of its kernel."""
        return np.repeat([0.0, 1.0], [len(self.others), len(self.widths)])

    def grams(self, inner: np.ndarray, left: np.ndarray, right: np.ndarray) -> Iterator[np.ndarray]:
        """Yield each kernel from x·y, |x|² and |y|², until the next; Gaussians less 1.

        Where values hardly differ, these keep their digits. With ``g = exp(-x) - 1``, half the
        width is ``exp(-4x) - 1``: twice ``g (2 + g)``.
        """
        for kernel in self.others:
            yield kernel(inner, left, right)
        exponent = gaussian_exponent(inner, left, right) if self.widths else inner
        less, more, last = np.empty_like(exponent), np.empty_like(exponent), 0.0
        for width in self.widths:
            if last == 2 * width:
                for _ in range(2):
                    less *= np.add(less, 2, out=more)
            else:
                np.expm1(np.multiply(exponent, 1 / width**2, out=less), out=less)
            yield less
            last = width


def factor(gram: np.ndarray, landmark_ids: np.ndarray) -> np.ndarray:
    """Rows whose inner products are (or by Nyström approximate) a kernel of all values."""
    if not len(gram):  # sets that are all empty have no values
        return np.zeros((0, 0))
    if len(landmark_ids) == len(gram):
        values, vectors = eigh(gram)
        keep = values > len(values) * np.finfo(float).eps * values.max(initial=0)
        return vectors[:, keep] * np.sqrt(values[keep])
    values, vectors = eigh(gram[landmark_ids])
    keep = values > 1e-10 * values[-1]
    return gram @ (vectors[:, keep] / np.sqrt(values[keep]))


# -- factors ------------------------------------------------------------------------------------


@storable
@dataclass(frozen=True, eq=False)
class Factors:
    """The values of a column: what each has in common with others, and what it has of its own.

    Inner products are ``common commonᵀ + diag(own)``, the model of factor analysis [Spearman 1904].
    So a mismatch counts in full between any two values, however many there are, at a cost that is
    linear in their number.

    Attributes
    ----------
    common : ndarray of shape (values, directions)
        Coordinates of the values.
    own : ndarray of shape (values,)
        Squared length of what a value shares with no other.
    """

    common: np.ndarray
    own: np.ndarray

    @classmethod
    def of(
        cls, gram: np.ndarray, diagonal: np.ndarray, identity: float, landmark_ids: np.ndarray
    ) -> Factors:
        """The factors of a kernel of all values against landmarks, and of the identity.

        What the landmarks do not explain of a value is its own, as in FITC [Snelson and Ghahramani
        2006]: the kernel of a value with itself is exact.
        """
        if len(landmark_ids) == len(gram) <= MAX_COORDINATES + 1:
            with_identity = gram.copy()
            with_identity[landmark_ids, landmark_ids] += identity
            return cls(factor(with_identity, landmark_ids), np.zeros(len(gram)))
        if not gram.any():
            return cls(np.zeros((len(gram), 0)), diagonal + identity)
        common = factor(gram, landmark_ids)
        unique = np.maximum(diagonal - np.einsum("ij,ij->i", common, common), 0)
        unique[landmark_ids] = 0
        return cls(common, unique + identity)

    def scaled(self, weight: float) -> Factors:
        """Factors whose squared distances are multiplied."""
        return Factors(np.sqrt(weight) * self.common, weight * self.own)

    def beside(self, rows: np.ndarray) -> Factors:
        """Factors with more coordinates that values share."""
        return Factors(np.hstack([self.common, rows]), self.own)

    def bounded(self, f: np.ndarray) -> Factors:
        """Factors of which a column's vectors take at most ``MAX_COORDINATES`` coordinates.

        Up to one value more all distances stay as they are. Beyond, the directions are kept in
        which rows differ most; what is left of a value becomes its own.
        """
        if len(self.own) <= MAX_COORDINATES + 1:
            alone = np.diag(np.sqrt(self.own))[:, self.own > 0]
            return Factors(np.hstack([self.common, alone]), np.zeros(len(self.own)))
        if not self.common.shape[1]:
            return self
        with blas_threads(self.common.size * self.common.shape[1] / 2):
            return self._leading(f / max(f.sum(), 1e-300))

    def _leading(self, share: np.ndarray, block_rows: int = 1 << 13) -> Factors:
        """The directions in which rows differ most, all others as own."""
        centre, width = share @ self.common, self.common.shape[1]
        parts = slices(len(share), 1, block_rows)
        scatter = np.zeros((width, width))
        for part in parts:  # with many values a copy of them all would be the largest array
            centred = (self.common[part] - centre) * np.sqrt(share[part, None])
            scatter += centred.T @ centred  # one array with itself: BLAS computes half
        axes = fix_signs(eigh(scatter)[1][:, ::-1][:, :N_COMMON])
        leading, unique = np.zeros((len(share), N_COMMON)), self.own.copy()
        for part in parts:
            centred = self.common[part] - centre
            coordinates = leading[part, : axes.shape[1]] = centred @ axes
            unexplained = np.einsum("ij,ij->i", centred, centred)
            unexplained -= np.einsum("ij,ij->i", coordinates, coordinates)
            unique[part] += unexplained.clip(0)
        return Factors(leading, unique)


def named_weights(
    counts: Counts, names: Sequence[Sequence[str]], weights: Sequence[np.ndarray]
) -> dict[str, dict[str, float]]:
    """The weights of each column's kernels by name."""
    return {
        column: dict(zip(kernel_names, w.tolist(), strict=True))
        for column, kernel_names, w in zip(counts.names, names, weights, strict=True)
    }


def class_ties(counts: Counts, pairs: np.ndarray) -> np.ndarray:
    """``SU⁺ = 2 max(0, MI - E[MI]) / (H(values) + H(classes))`` of each column.

    E[MI] is what shuffled classes would seem to share with it, whatever the number of its values
    (:func:`~tabweave.counts.couplings.chance_information`).
    """
    ties, chance = np.zeros(len(counts.names)), chance_with_classes(counts, pairs)
    for a in range(len(ties)):
        joint = pairs[counts.span(a)]
        total = joint.sum()
        if not total:  # of sets that are all empty
            continue
        values, classes, both = (
            entr(part / total).sum() for part in (joint.sum(axis=1), joint.sum(axis=0), joint)
        )
        excess = max(values + classes - both - chance[a], 0)
        ties[a] = 2 * excess / max(values + classes, 1e-300)
    return ties
