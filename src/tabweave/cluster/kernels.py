"""Compiled loops behind :class:`tabweave.cluster.KModes`.

The values of all columns (an unknown one last in each) are numbered in one sequence; a row is its
``indices`` in it. ``reach[v, c]`` is what a row pays for value v if it belongs to centre c, so a
row's distances to all centres are one vector sum per column.
"""

from __future__ import annotations

import numpy as np

from tabweave._compat import njit
from tabweave.blocks.block import in_threads

MODE, MEDOID, DISTRIBUTION, MODE_SHARE = 0, 1, 2, 3
_PATIENCE = 3  # steps without a lower cost; plateaus are common with categories
_LOOKUPS = 1 << 22  # of a block


@njit(nogil=True, cache=True)
def assign(indices, reach, labels, distances):
    """Set the nearest centre of each row (the first of equals) and the distance to it."""
    k = reach.shape[1]
    total = np.empty(k)
    for i in range(len(indices)):
        row = reach[indices[i, 0]]
        for c in range(k):
            total[c] = row[c]
        for a in range(1, indices.shape[1]):
            row = reach[indices[i, a]]
            for c in range(k):
                total[c] += row[c]
        best = 0
        for c in range(1, k):
            if total[c] < total[best]:
                best = c
        labels[i] = best
        distances[i] = total[best]


@njit(nogil=True, cache=True)
def sum_up(indices, reach, out):
    """Set ``out[i, c]`` to the distance of row i to centre c."""
    for i in range(len(indices)):
        for c in range(reach.shape[1]):
            out[i, c] = 0.0
        for a in range(indices.shape[1]):
            row = reach[indices[i, a]]
            for c in range(reach.shape[1]):
                out[i, c] += row[c]


@njit(nogil=True, cache=True)
def next_dense(indices, reach, density, near):
    """Lower each row's distance to its nearest centre by a new one; return the best next centre.

    ``near`` is negative for rows that are centres. Cao's score is density times distance.
    """
    best, best_score = -1, -1.0
    for i in range(len(indices)):
        if near[i] < 0:
            continue
        total = 0.0
        for a in range(indices.shape[1]):
            total += reach[indices[i, a]]
        near[i] = min(near[i], total)
        if near[i] * density[i] > best_score:
            best, best_score = i, near[i] * density[i]
    return best


@njit(nogil=True, cache=True)
def add_values(indices, weight, labels, histogram):
    """Add each row's values to the histogram (k × values) of its cluster."""
    for i in range(len(indices)):
        own = histogram[labels[i]]
        for a in range(indices.shape[1]):
            own[indices[i, a]] += weight[i]


@njit(nogil=True, cache=True)
def chosen_values(histogram, offsets, tables, starts, kind, out):
    """Set the value that stands for each cluster and column: the most frequent, or the nearest."""
    for c in range(len(histogram)):
        for a in range(len(offsets) - 1):
            first, size = offsets[a], offsets[a + 1] - offsets[a]
            best, best_score = 0, -np.inf
            for v in range(size):
                score = histogram[c, first + v]
                if kind == MEDOID:
                    score = 0.0
                    for u in range(size):
                        score -= histogram[c, first + u] * tables[starts[a] + v * size + u]
                if score > best_score:
                    best, best_score = v, score
            out[c, a] = best


@njit(nogil=True, cache=True)
def reach_of(histogram, offsets, tables, starts, kind, reach):
    """Derive what each value pays under each centre; tell whether anything changed."""
    k, m = len(histogram), len(offsets) - 1
    changed = False
    values = np.empty((k, m), np.int64)
    if kind != DISTRIBUTION:
        chosen_values(histogram, offsets, tables, starts, kind, values)
    for c in range(k):
        for a in range(m):
            first, size = offsets[a], offsets[a + 1] - offsets[a]
            entries = np.zeros(size)
            if kind == DISTRIBUTION:
                _mean_row(histogram[c, first : first + size], tables, starts[a], entries)
            else:
                row = starts[a] + values[c, a] * size
                entries[:] = tables[row : row + size]
            if kind == MODE_SHARE:
                members = histogram[c, first : first + size]
                absent = 1.0 - members[values[c, a]] / members.sum()
                entries[values[c, a]] = absent * entries.max()
            for u in range(size):
                changed |= reach[first + u, c] != entries[u]
                reach[first + u, c] = entries[u]
    return changed


@njit(nogil=True, cache=True)
def _mean_row(members, tables, start, out):
    """Average the rows of a table over the members of a cluster; row by row, as memory lies."""
    total, size = members.sum(), len(members)
    for v in range(size):
        if members[v] > 0:
            share = members[v] / total
            for u in range(size):
                out[u] += share * tables[start + v * size + u]


@njit(nogil=True, cache=True)
def _fill_empty(labels, distances, k):
    """Give each empty cluster the row farthest from its centre, from a cluster that has others."""
    members = np.zeros(k, np.int64)
    for i in range(len(labels)):
        members[labels[i]] += 1
    for c in range(k):
        if members[c]:
            continue
        far = -1
        for i in range(len(labels)):
            if members[labels[i]] > 1 and distances[i] > 0:
                if far < 0 or distances[i] > distances[far]:
                    far = i
        if far >= 0:
            members[labels[far]] -= 1
            members[c] = 1
            labels[far] = c
            distances[far] = 0.0


@njit(nogil=True, cache=True)
def total_cost(weight, distances):
    """Sum up weighted distances, always in the same order."""
    total = 0.0
    for i in range(len(weight)):
        total += weight[i] * distances[i]
    return total


@njit(nogil=True, cache=True)
def run(indices, weight, offsets, tables, starts, kind, max_iter, histogram):
    """Alternate centres and assignments from a first histogram; keep the best centres seen.

    With modes and Hamming distance no step raises the cost. Other measures may, as the mode is not
    their best centre: the run then ends at the best step. Returns (cost, steps) and leaves
    the histogram that the best centres come from in ``histogram``.
    """
    n, k = len(indices), len(histogram)
    labels, distances = np.empty(n, np.int64), np.empty(n)
    reach = np.full((histogram.shape[1], k), np.nan)
    current = histogram.copy()
    reach_of(current, offsets, tables, starts, kind, reach)
    assign(indices, reach, labels, distances)
    # One row has no shares of a cluster: its cost is not comparable.
    best = np.inf if kind == DISTRIBUTION or kind == MODE_SHARE else total_cost(weight, distances)
    worse, steps = 0, 0
    for _ in range(max_iter):
        _fill_empty(labels, distances, k)
        current[:] = 0.0
        add_values(indices, weight, labels, current)
        for c in range(k):
            if not current[c].any():
                current[c] = histogram[c]
        if not reach_of(current, offsets, tables, starts, kind, reach):
            if best == np.inf:
                best = total_cost(weight, distances)
            break
        assign(indices, reach, labels, distances)
        cost = total_cost(weight, distances)
        steps += 1
        if cost < best:
            worse = 0
        else:
            worse += 1
        if cost <= best:
            best = cost
            histogram[:] = current
        if worse == _PATIENCE:
            break
    return best, steps


def row_blocks(indices: np.ndarray, reach: np.ndarray) -> list[slice]:
    """Cut rows into blocks for threads, large enough to repay starting one."""
    n_rows = len(indices)
    size = max(1, _LOOKUPS // (indices.shape[1] * reach.shape[1]))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def nearest(indices: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's nearest centre and its distance, on all cores."""
    labels, distances = np.empty(len(indices), np.int64), np.empty(len(indices))

    def work(rows: slice) -> None:
        assign(indices[rows], reach, labels[rows], distances[rows])

    in_threads(work, row_blocks(indices, reach))
    return labels, distances


def all_distances(indices: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Return the distance of each row to each centre, on all cores."""
    out = np.empty((len(indices), reach.shape[1]))

    def work(rows: slice) -> None:
        sum_up(indices[rows], reach, out[rows])

    in_threads(work, row_blocks(indices, reach))
    return out
