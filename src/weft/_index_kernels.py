"""Compiled loops behind :class:`weft.index.SimilarityIndex`. Importing this module loads numba.

They compare queries with *nodes*, the distinct stored rows, each of which stands for one row or
more. A distance is a sum over groups of columns, one lookup each, and over coordinates; the order
of adding is the same in every loop, so that all ways to search give the same distances.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from weft._neighbor_kernels import _pop, _push
from weft.hierarchy._neighbor_kernels import _sift

_TILE = 4096  # nodes compared at a time: their distances (32 KB) stay in the caches


@njit(nogil=True, cache=True)
def _fill_joint(values, groups, offsets, widths, starts, joint):
    """Set the distance of a query to every joint value of each group of columns."""
    for g in range(len(groups)):
        lookup = joint[starts[g] :]
        size = 1
        lookup[0] = 0
        for a in groups[g]:
            if a < 0:
                break
            base = offsets[a]
            for i in range(size - 1, -1, -1):
                begun = lookup[i]
                for v in range(widths[a]):
                    lookup[i * widths[a] + v] = begun + values[base + v]
            size *= widths[a]


@njit(nogil=True, cache=True)
def _add_line(asked, line, power, total):
    """Add the differences of coordinates, |x - y| or (x - y)²."""
    for c in range(len(asked)):
        x, other = asked[c], line[c]
        if power == 1:
            for j in range(len(total)):
                total[j] += abs(x - other[j])
        else:
            for j in range(len(total)):
                apart = x - other[j]
                total[j] += apart * apart


@njit(nogil=True, cache=True)
def scan(values, asked, groups, offsets, widths, starts, codes, line, power, first, out, rows):
    """Find the k nearest nodes of each query, ties in the order of ``first``.

    ``values[i, offsets[a] + v]`` is the distance of query i to value v of column a, ``codes[g]``
    the joint value of each node in the columns ``groups[g]`` (padded with -1), ``line[c]`` the
    nodes' coordinates. ``first`` is a node's first row that may be found, or -1. A heap of the k
    best (distance, first row) is left in ``out`` and ``rows``, nearest first.
    """
    n_queries, k = out.shape
    n_nodes = len(first)
    joint = np.empty((n_queries, starts[-1]))
    for i in range(n_queries):
        _fill_joint(values[i], groups, offsets, widths, starts, joint[i])
        out[i] = np.inf
        rows[i] = np.iinfo(np.int64).max
    total = np.empty(_TILE)
    for begin in range(0, n_nodes, _TILE):
        end = min(begin + _TILE, n_nodes)
        here = total[: end - begin]
        for i in range(n_queries):
            here[:] = 0
            for g in range(len(groups)):
                lookup, code = joint[i, starts[g] :], codes[g, begin:end]
                for j in range(len(here)):
                    here[j] += lookup[code[j]]
            _add_line(asked[i], line[:, begin:end], power, here)
            found, row = out[i], rows[i]
            for j in range(len(here)):
                if here[j] > found[0]:
                    continue
                mine = first[begin + j]
                if mine >= 0 and (here[j] < found[0] or mine < row[0]):
                    found[0], row[0] = here[j], mine
                    _sift(found, row, k)
    for i in range(n_queries):
        _in_order(out[i], rows[i])


@njit(nogil=True, cache=True)
def _in_order(found, row):
    """Turn a heap into a list, nearest first."""
    for last in range(len(found) - 1, 0, -1):
        found[0], found[last] = found[last], found[0]
        row[0], row[last] = row[last], row[0]
        _sift(found, row, last)


@njit(nogil=True, cache=True)
def rank(
    values, asked, groups, offsets, widths, starts, codes, line, power, nodes, first, out, rows
):
    """Do for a few listed nodes of each query what :func:`scan` does for all; -1 is no node."""
    total = np.empty(1)
    digits = np.empty(max(groups.shape[1], 1), np.int64)
    for i in range(len(nodes)):
        found, row = out[i], rows[i]
        found[:] = np.inf
        row[:] = np.iinfo(np.int64).max
        for j in nodes[i]:
            if j < 0 or first[j] < 0:
                continue
            total[0] = 0
            for g in range(len(groups)):
                code = codes[g, j]
                n = 0
                while n < groups.shape[1] and groups[g, n] >= 0:
                    n += 1
                for c in range(n - 1, -1, -1):
                    width = widths[groups[g, c]]
                    digits[c] = code % width
                    code //= width
                part = 0.0
                for c in range(n):
                    part += values[i, offsets[groups[g, c]] + digits[c]]
                total[0] += part
            _add_line(asked[i], line[:, j : j + 1], power, total)
            if total[0] < found[0] or (total[0] == found[0] and first[j] < row[0]):
                found[0], row[0] = total[0], first[j]
                _sift(found, row, len(found))
        _in_order(found, row)


@njit(nogil=True, cache=True)
def spread(found, rows, node_of, starts, members, allowed, out, numbers):
    """Turn the k nearest nodes of each query into the k nearest rows: by distance, then number.

    Node u has the rows ``members[starts[u] : starts[u + 1]]``, in order; those that are not
    ``allowed`` are left out. Each query must have at least k allowed rows among its nodes.
    """
    n_queries, k = out.shape
    for i in range(n_queries):
        size = 0
        for j in range(found.shape[1]):
            distance = found[i, j]
            if distance == np.inf or (size == k and distance > out[i, 0]):
                break
            node = node_of[rows[i, j]]
            taken = 0
            for m in range(starts[node], starts[node + 1]):
                row = members[m]
                if not allowed[row]:
                    continue
                if size < k:
                    _push(out[i], numbers[i], size, distance, row)
                    size += 1
                elif distance < out[i, 0] or (distance == out[i, 0] and row < numbers[i, 0]):
                    _pop(out[i], numbers[i], k)
                    _push(out[i], numbers[i], k - 1, distance, row)
                taken += 1
                if taken == k:
                    break
        for end in range(size, 1, -1):
            _pop(out[i], numbers[i], end)
        for j in range(size, k):  # an approximate search may come back with too few
            out[i, j], numbers[i, j] = np.inf, -1


@njit(nogil=True, cache=True)
def first_allowed(node_of, allowed, out):
    """Set each node's first allowed row."""
    for row in range(len(node_of)):
        if allowed[row] and out[node_of[row]] < 0:
            out[node_of[row]] = row
