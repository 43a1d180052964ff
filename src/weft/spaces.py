"""Spaces: counts in, what is known about values and columns out.

Frequencies, conditional probabilities, information between columns, and the context of a column:
the small pure functions that value measures and coupling spaces are made of. They read blocks of
the pair counts, dense or sparse, one at a time, and never form a dense V × V matrix.

Pairs of columns are taken as joint distributions of incidences. For single-valued columns that is
the usual joint distribution of rows; a row with a set counts once for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from weft.counts import Counts

_NOISE = 1e-12  # information below this is rounding


# -- values -------------------------------------------------------------------------------------


def frequencies(counts: Counts) -> list[np.ndarray]:
    """Definition 3.3: ``f(v) = |g(v)| / n``, the share of rows with each value, per column."""
    return np.split(counts.value_counts / counts.n, counts.offsets[1:-1])


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
    total = block.sum(axis=1, keepdims=True)
    return block / np.where(total > 0, total, 1)


def conditional(counts: Counts, column: str | int, given: str | int) -> np.ndarray:
    """Definition 3.4: ``p(v|w)`` of the values v of ``column`` given each value w of ``given``.

    Returns
    -------
    ndarray of shape (values of ``column``, values of ``given``)
        Columns sum to 1.
    """
    return shares(counts.block(given, column)).T


# -- columns ------------------------------------------------------------------------------------


def block_sums(counts: Counts, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return, for each pair of columns, the sum of ``function(count)`` over the non-zero counts."""
    cells = sparse.coo_array(counts.pairs)
    a, b = (_column_of_value(counts)[where] for where in cells.coords)
    n_columns = len(counts.sizes)
    sums = np.bincount(a * n_columns + b, function(cells.data), n_columns**2)
    return sums.reshape(n_columns, n_columns)


def marginal_counts(counts: Counts) -> np.ndarray:
    """Return ``R[v, b]``: how often value v meets any value of column b."""
    cells = sparse.coo_array(counts.pairs)
    n_columns = len(counts.sizes)
    where = cells.coords[0].astype(np.int64) * n_columns
    where += _column_of_value(counts)[cells.coords[1]]
    n_values = int(counts.offsets[-1])
    return np.bincount(where, cells.data, n_values * n_columns).reshape(n_values, n_columns)


def information(counts: Counts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mutual information, marginal and joint entropy of every pair of columns, in nats.

    Returns
    -------
    mutual : ndarray of shape (columns, columns)
        ``I(a; b)``; exactly 0 where only rounding is left.
    marginal : ndarray of shape (columns, columns)
        ``H(a)`` in row a; the same in every column unless a column is set-valued.
    joint : ndarray of shape (columns, columns)
        ``H(a, b)``.
    """
    total = block_sums(counts, np.asarray)
    scale = np.where(total > 0, total, 1)
    joint = np.log(scale) - block_sums(counts, _xlogx) / scale
    n_columns = len(total)
    inner = np.zeros((n_columns, n_columns))
    np.add.at(inner, _column_of_value(counts), _xlogx(marginal_counts(counts)))
    marginal = np.log(scale) - inner / scale
    joint, marginal = _without_noise(joint), _without_noise(marginal)
    return _without_noise(marginal + marginal.T - joint), marginal, joint


def symmetric_uncertainty(counts: Counts) -> np.ndarray:
    """Eq. (2.19): ``SU_a(b) = 2 (H(a) - H(a|b)) / (H(a) + H(b))``, 0 where nothing varies."""
    mutual, marginal, _ = information(counts)
    entropy = marginal + marginal.T
    return np.minimum(2 * mutual / np.where(entropy > 0, entropy, 1), 1)


def corrected_uncertainty(counts: Counts, mutual: np.ndarray, marginal: np.ndarray) -> np.ndarray:
    """Return ``SU⁺ = 2 max(0, MI - (V_a - 1)(V_b - 1) / 2n) / (H_a + H_b)``, 0 on the diagonal.

    Takes from :func:`information` what independent columns would seem to share in n rows.
    """
    freedom = np.maximum(counts.sizes - 1, 0)
    corrected = np.maximum(mutual - np.outer(freedom, freedom) / (2 * counts.n), 0)
    entropies = marginal + marginal.T
    uncertainty = 2 * corrected / np.where(entropies > 0, entropies, 1)
    np.fill_diagonal(uncertainty, 0)
    return uncertainty


def context(uncertainty: np.ndarray) -> np.ndarray:
    """Eqs. (2.20), (2.21): which columns say something about each column and are not redundant.

    Column k leaves the context of j if a column m in it is more relevant, ``SU_j(k) <= SU_j(m)``,
    and says as much about k as j does, ``SU_m(k) >= SU_j(k)``. The printed rule leaves the order
    open; candidates are taken from the most relevant down and compared with those kept, so of two
    copies one stays. Ties go to the earlier column, and are judged on 12 digits, lest the order of
    summation decide. Columns with ``SU = 0`` say nothing and are never in.

    Returns
    -------
    ndarray of bool of shape (columns, columns)
        Row j marks the context of column j.
    """
    su = np.round(uncertainty, 12)
    chosen = np.zeros(su.shape, dtype=bool)
    for j in range(len(su)):
        kept: list[int] = []
        for k in np.argsort(-su[j], kind="stable"):
            if k != j and su[j, k] > 0 and not (su[kept, k] >= su[j, k]).any():
                kept.append(int(k))
        chosen[j, kept] = True
    return chosen


def refuse_sets(counts: Counts, who: str) -> None:
    """Raise an error that names the first set-valued column, if there is one."""
    for column in counts.schema.categorical if counts.schema else ():
        if column.kind == "set":
            raise ValueError(
                f"column {column.name!r} is set-valued; {who} compares single values: "
                "leave the column out, or use another measure"
            )


def refuse_many_values(counts: Counts, who: str, largest: int = 1 << 28) -> None:
    """Refuse columns whose tables of all pairs of values (2 GB by default) are too large."""
    sizes = counts.sizes.astype(np.int64)
    if (sizes**2).sum() > largest:
        worst = int(sizes.argmax())
        raise ValueError(
            f"column {counts.names[worst]!r} has {sizes[worst]} values, and {who} needs a table "
            f"of all pairs of them ({sizes[worst] ** 2 * 8 / 1e9:.0f} GB): leave the column out, "
            "group its values, or use Weave"
        )


def _column_of_value(counts: Counts) -> np.ndarray:
    return np.repeat(np.arange(len(counts.sizes)), counts.sizes)


def _xlogx(x: np.ndarray) -> np.ndarray:
    return xlogy(x, x)


def _without_noise(x: np.ndarray) -> np.ndarray:
    return np.where(x > _NOISE, x, 0.0)
