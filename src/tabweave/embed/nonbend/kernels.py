"""Compiled loops behind Non-BEND. Importing this module loads numba.

Tables over values lie as (V, subspaces): the entries of one value for all subspaces are
neighbours, so the loop over subspaces runs in vector registers. No loop stores the rows ×
subspaces matrix of responsibilities.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tabweave.blocks.block import in_threads

_NEGLIGIBLE = -38.0  # exp of this is below half a unit in the last place of 1
_BLOCK_ROWS = 1 << 14
_MOST_BLOCKS = 8  # fixed, so that sums do not depend on the number of cores
_BLOCK_BYTES = 1 << 28


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _responsibilities(row, base, values, scores):
    """Eq. (5.21): turn ``scores`` into a row's responsibilities; return their log normaliser."""
    n_subspaces = len(base)
    for t in range(n_subspaces):
        scores[t] = base[t]
    for a in range(len(row)):
        entries = values[row[a]]
        for t in range(n_subspaces):
            scores[t] += entries[t]
    top = scores[0]
    for t in range(1, n_subspaces):
        top = max(top, scores[t])
    total = 0.0
    for t in range(n_subspaces):
        gap = scores[t] - top
        scores[t] = np.exp(gap) if gap > _NEGLIGIBLE else 0.0
        total += scores[t]
    for t in range(n_subspaces):
        scores[t] /= total
    return top + np.log(total)


@njit(nogil=True, cache=True, error_model="numpy")
def _expect(cells, weight, base, values, counts, sizes):
    """Add the rows' expected counts to ``counts`` and ``sizes``; return the sum of normalisers."""
    n_subspaces = len(base)
    scores = np.empty(n_subspaces)
    total = 0.0
    for i in range(len(cells)):
        row = cells[i]
        total += weight[i] * _responsibilities(row, base, values, scores)
        for t in range(n_subspaces):
            scores[t] *= weight[i]
            sizes[t] += scores[t]
        for a in range(len(row)):
            entries = counts[row[a]]
            for t in range(n_subspaces):
                entries[t] += scores[t]
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def _assign(cells, base, values, chosen, normaliser):
    scores = np.empty(len(base))
    for i in range(len(cells)):
        normaliser[i] = _responsibilities(cells[i], base, values, scores)
        best = 0
        for t in range(1, len(base)):
            if scores[t] > scores[best]:
                best = t
        chosen[i] = best


@njit(nogil=True, cache=True)
def add_assigned(cells, weight, chosen, counts, sizes):
    """Add rows to the counts of the subspaces they are assigned to."""
    for i in range(len(cells)):
        t = chosen[i]
        sizes[t] += weight[i]
        for a in range(cells.shape[1]):
            counts[cells[i, a], t] += weight[i]


def expect(
    cells: np.ndarray, weight: np.ndarray, base: np.ndarray, values: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Eqs. (5.18)–(5.22): one pass over the rows.

    Returns the weighted sum of log normalisers, the expected value counts (V, subspaces) and the
    expected sizes (subspaces).
    """
    n_blocks = _number_of_blocks(len(cells), values.nbytes)
    edges = np.linspace(0, len(cells), n_blocks + 1).astype(np.intp)
    counts = np.zeros((n_blocks, *values.shape))
    sizes = np.zeros((n_blocks, len(base)))
    totals = np.zeros(n_blocks)

    def work(b: int) -> None:
        part = slice(edges[b], edges[b + 1])
        totals[b] = _expect(cells[part], weight[part], base, values, counts[b], sizes[b])

    in_threads(work, range(n_blocks))
    return float(totals.sum()), counts.sum(axis=0), sizes.sum(axis=0)


def assign(
    cells: np.ndarray, base: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the likeliest subspace of each row and its log normaliser (log density)."""
    chosen = np.empty(len(cells), np.intp)
    normaliser = np.empty(len(cells))
    n_blocks = _number_of_blocks(len(cells), 1)
    edges = np.linspace(0, len(cells), n_blocks + 1).astype(np.intp)

    def work(b: int) -> None:
        part = slice(edges[b], edges[b + 1])
        _assign(cells[part], base, values, chosen[part], normaliser[part])

    in_threads(work, range(n_blocks))
    return chosen, normaliser


def _number_of_blocks(n_rows: int, bytes_each: int) -> int:
    room = max(1, _BLOCK_BYTES // max(bytes_each, 1))
    return int(min(_MOST_BLOCKS, room, max(1, n_rows // _BLOCK_ROWS)))


# -- collapsed Gibbs ---------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def move(row, t, step, counts, logs, sizes, log_of_count):
    """Add (``step=1``) or take (``-1``) a row to or from subspace t; logs follow the counts."""
    sizes[t] += step
    for a in range(len(row)):
        v = row[a]
        counts[v, t] += step
        logs[v, t] = log_of_count[counts[v, t]]


@njit(nogil=True, cache=True, error_model="numpy")
def _choose(scores, n_slots, uniform):
    """Draw a slot with probability proportional to the exponential of its score."""
    top = -np.inf
    for t in range(n_slots):
        top = max(top, scores[t])
    total = 0.0
    for t in range(n_slots):
        gap = scores[t] - top
        if gap > _NEGLIGIBLE:
            total += np.exp(gap)
        scores[t] = total
    aim = uniform * total
    for t in range(n_slots):
        if scores[t] > aim:
            return t
    return n_slots - 1


@njit(nogil=True, cache=True, error_model="numpy")
def sweep(
    first, order, cells, uniforms, assignment, counts, logs, sizes, log_of_count, log_of_size,
    log_rest, log_alpha, n_slots
):  # fmt: skip
    """Eq. (5.11) for every row from ``first`` on; return (next row, number of slots in use).

    ``log_rest[m]`` is the sum over columns of log(m + α₀V_a). An empty slot holds the counts of a
    new subspace, all zero, so the case of a new subspace is the same sum with α for its size; only
    the first empty slot takes part. Returns early when every slot is taken, to be called again
    with more of them.
    """
    scores = np.empty(len(sizes))
    for k in range(first, len(order)):
        i = order[k]
        row = cells[i]
        move(row, assignment[i], -1, counts, logs, sizes, log_of_count)
        empty = -1
        for t in range(n_slots):
            scores[t] = log_of_size[sizes[t]] - log_rest[sizes[t]]
            if sizes[t] == 0:
                scores[t] = -np.inf if empty >= 0 else log_alpha - log_rest[0]
                empty = t if empty < 0 else empty
        if empty < 0:
            if n_slots == len(sizes):
                move(row, assignment[i], 1, counts, logs, sizes, log_of_count)
                return k, n_slots
            scores[n_slots] = log_alpha - log_rest[0]
            n_slots += 1
        for a in range(len(row)):
            entries = logs[row[a]]
            for t in range(n_slots):
                scores[t] += entries[t]
        assignment[i] = _choose(scores, n_slots, uniforms[k])
        move(row, assignment[i], 1, counts, logs, sizes, log_of_count)
    return len(order), n_slots


@njit(nogil=True, cache=True)
def tally(assignment, votes):
    """Add one vote for the subspace of each row."""
    for i in range(len(assignment)):
        votes[i, assignment[i]] += 1
