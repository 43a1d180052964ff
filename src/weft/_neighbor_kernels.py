"""Compiled loops behind :class:`weft.neighbors.WeightedKNN`. Importing this module loads numba.

They read blocks of distances from query rows to *distinct* training rows, each of which stands for
``copies`` rows, and never more than a block at a time.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

NONE, EXP, LOG, ORG, POW, SQRT = range(6)
_TIE = 1e-9  # relative difference of distances that counts as rounding


@njit(nogil=True, cache=True)
def weight_of(distance, kind, nearest):
    """Weight of a neighbour, Table 2 of 004: 1/e^d, 1/(f(d) + 1), or 1.

    With ``exp`` distances count from the nearest neighbour: votes keep their proportions, and far
    away from everything they do not all underflow to 0.
    """
    if kind == EXP:
        return math.exp(nearest - distance)
    if kind == LOG:
        return 1.0 / (math.log(distance + 1.0) + 1.0)
    if kind == ORG:
        return 1.0 / (distance + 1.0)
    if kind == POW:
        return 1.0 / (distance * distance + 1.0)
    if kind == SQRT:
        return 1.0 / (math.sqrt(distance) + 1.0)
    return 1.0


@njit(nogil=True, cache=True)
def _before(keys, ids, a, b):
    """Tell whether heap entry a is nearer than b: by distance, then by number."""
    return keys[a] < keys[b] or (keys[a] == keys[b] and ids[a] < ids[b])


@njit(nogil=True, cache=True)
def _swap(keys, ids, a, b):
    keys[a], keys[b] = keys[b], keys[a]
    ids[a], ids[b] = ids[b], ids[a]


@njit(nogil=True, cache=True)
def _push(keys, ids, size, key, number):
    """Add an entry to a heap whose top is the farthest."""
    i = size
    keys[i], ids[i] = key, number
    while i > 0:
        parent = (i - 1) // 2
        if not _before(keys, ids, parent, i):
            break
        _swap(keys, ids, i, parent)
        i = parent


@njit(nogil=True, cache=True)
def _pop(keys, ids, size):
    """Move the top of a heap to its end."""
    last = size - 1
    _swap(keys, ids, 0, last)
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        if child + 1 < last and _before(keys, ids, child, child + 1):
            child += 1
        if not _before(keys, ids, i, child):
            break
        _swap(keys, ids, i, child)
        i = child


@njit(nogil=True, cache=True)
def _reach(distances, copies, k, keys, ids):
    """Return the k-th smallest distance, each counted as often as it has copies."""
    size, total = 0, 0
    for u in range(len(distances)):
        if total >= k and distances[u] >= keys[0]:
            continue
        _push(keys, ids, size, distances[u], u)
        size += 1
        total += copies[u]
        while total - copies[ids[0]] >= k:
            total -= copies[ids[0]]
            _pop(keys, ids, size)
            size -= 1
    return keys[0]


@njit(nogil=True, cache=True)
def vote_all(distances, starts, classes, numbers, copies, k, kind, votes):
    """Add the votes of every row within the k-th distance, ties of it included.

    Distinct row u stands for ``numbers[j]`` rows of class ``classes[j]``, j from ``starts[u]`` to
    ``starts[u + 1]``. Rows vote in their canonical order, so sums never depend on storage.
    """
    keys, ids = np.empty(k + 1), np.empty(k + 1, np.int64)
    for i in range(len(distances)):
        row, vote = distances[i], votes[i]
        edge = _reach(row, copies, k, keys, ids) * (1.0 + _TIE)
        nearest = row.min()
        last, weight = -1.0, 0.0
        for u in range(len(row)):
            if row[u] > edge:
                continue
            if row[u] != last:
                last, weight = row[u], weight_of(row[u], kind, nearest)
            for j in range(starts[u], starts[u + 1]):
                vote[classes[j]] += weight * numbers[j]


@njit(nogil=True, cache=True)
def nearest_rows(distances, distinct, k, out, indices):
    """Set the k nearest rows in order of distance, then of index; row j is ``distinct[j]``."""
    for i in range(len(distances)):
        row, keys, ids = distances[i], out[i], indices[i]
        size = 0
        for j in range(len(distinct)):
            distance = row[distinct[j]]
            if size < k:
                _push(keys, ids, size, distance, j)
                size += 1
            elif distance < keys[0]:
                _pop(keys, ids, k)
                _push(keys, ids, k - 1, distance, j)
        for end in range(k, 1, -1):
            _pop(keys, ids, end)


@njit(nogil=True, cache=True)
def vote_listed(distances, indices, labels, kind, votes):
    """Add the votes of listed neighbours."""
    for i in range(len(indices)):
        for j in range(indices.shape[1]):
            weight = weight_of(distances[i, j], kind, distances[i, 0])
            votes[i, labels[indices[i, j]]] += weight


@njit(nogil=True, cache=True)
def settle_ties(votes):
    """Make votes that differ by rounding equal, and every row sum up to 1."""
    for i in range(len(votes)):
        top = votes[i].max()
        total = 0.0
        for c in range(votes.shape[1]):
            if votes[i, c] >= top * (1.0 - _TIE):
                votes[i, c] = top
            total += votes[i, c]
        for c in range(votes.shape[1]):
            votes[i, c] /= total
