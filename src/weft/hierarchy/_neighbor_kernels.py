"""Compiled search for nearest rows by tree distance. Importing this module loads numba."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _sift(distances, indices, k):
    """Let the first entry of a heap (the farthest on top) sink to its place."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= k:
            return
        if child + 1 < k and (
            distances[child + 1] > distances[child]
            or (distances[child + 1] == distances[child] and indices[child + 1] > indices[child])
        ):
            child += 1
        if distances[child] < distances[i] or (
            distances[child] == distances[i] and indices[child] < indices[i]
        ):
            return
        distances[i], distances[child] = distances[child], distances[i]
        indices[i], indices[child] = indices[child], indices[i]
        i = child


@njit(nogil=True, cache=True)
def nearest(places, codes, starts, widths, tables, query, line, first, distances, indices):
    """Find the k nearest training rows of each query, nearest first, ties by number.

    ``tables[starts[a] + places[a, i] * widths[a] + codes[a, j]]`` is the distance of query i and
    row j in column a; ``query[i]`` and ``line[:, j]`` are coordinates. With ``first >= 0`` query i
    is training row ``first + i`` and is not its own neighbour.
    """
    n_rows = max(codes.shape[1], line.shape[1])
    k = distances.shape[1]
    row = np.empty(n_rows)
    for i in range(len(distances)):
        row[:] = 0
        for a in range(len(starts)):
            base = starts[a] + places[a, i] * widths[a]
            own = tables[base : base + widths[a]]
            code = codes[a]
            for j in range(n_rows):
                row[j] += own[code[j]]
        for c in range(query.shape[1]):
            x = query[i, c]
            other = line[c]
            for j in range(n_rows):
                row[j] += abs(x - other[j])
        if first >= 0:
            row[first + i] = np.inf
        found, number = distances[i], indices[i]
        found[:] = np.inf
        number[:] = n_rows
        for j in range(n_rows):
            if row[j] < found[0]:
                found[0], number[0] = row[j], j
                _sift(found, number, k)
        for last in range(k - 1, 0, -1):  # take the farthest away, one by one
            found[0], found[last] = found[last], found[0]
            number[0], number[last] = number[last], number[0]
            _sift(found, number, last)
