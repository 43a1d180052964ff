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
def nearest(places, codes, groups, starts, widths, tables, query, line, first, distances, indices):
    """Find the k nearest training rows of each query, nearest first, ties by number.

    ``tables[starts[a] + places[a, i] * widths[a] + c]`` is the distance of query i in column a to a
    row with value c. ``codes[g]`` numbers the joint values of the columns ``groups[g]`` (padded
    with -1), so that one load serves several columns; ``query[i]`` and ``line[:, j]`` are
    coordinates. With ``first >= 0`` query i is training row ``first + i``, no neighbour of itself.
    """
    n_rows = max(codes.shape[1], line.shape[1])
    k = distances.shape[1]
    row = np.empty(n_rows)
    largest = 1
    for g in range(len(groups)):
        size = 1
        for a in groups[g]:
            if a >= 0:
                size *= widths[a]
        largest = max(largest, size)
    lookup = np.empty(largest)
    for i in range(len(distances)):
        row[:] = 0
        for g in range(len(groups)):
            size = 1
            lookup[0] = 0
            for a in groups[g]:  # the distances this query can have to the group's joint values
                if a < 0:
                    break
                base = starts[a] + places[a, i] * widths[a]
                for joint in range(size - 1, -1, -1):
                    begun = lookup[joint]
                    for c in range(widths[a]):
                        lookup[joint * widths[a] + c] = begun + tables[base + c]
                size *= widths[a]
            code = codes[g]
            for j in range(n_rows):
                row[j] += lookup[code[j]]
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
