"""Compiled walk through a neighbour graph. Importing this module loads numba.

The graph says where to look next; how far away a node is, is looked up in its codes as in
:mod:`weft._index_kernels`, with the same result to the last bit. A node's codes fill one line of
the cache, where its vector would fill twenty.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from weft._index_kernels import _fill_joint, _in_order
from weft.hierarchy._neighbor_kernels import _sift


@njit(nogil=True, cache=True, inline="always")
def _distance(joint, starts, code, asked, line, power):
    """Distance of a query to one node, added up in the order of ``scan``."""
    total = 0.0
    for g in range(len(code)):
        total += joint[starts[g] + code[g]]
    for c in range(len(asked)):
        apart = asked[c] - line[c]
        total += abs(apart) if power == 1 else apart * apart
    return total


@njit(nogil=True, cache=True)
def _descend(joint, starts, codes, asked, line, power, links, offsets, levels, entry, top):
    """Walk to the nearest node on each coarse level; return it and its distance."""
    best = entry
    nearest = _distance(joint, starts, codes[best], asked, line[best], power)
    for level in range(top, 0, -1):
        moved = True
        while moved:
            moved = False
            begin, end = offsets[best], offsets[best + 1]
            for p in range(begin + levels[level], min(begin + levels[level + 1], end)):
                j = links[p]
                if j < 0:
                    break
                apart = _distance(joint, starts, codes[j], asked, line[j], power)
                if apart < nearest or (apart == nearest and j < best):
                    best, nearest, moved = j, apart, True
    return best, nearest


@njit(nogil=True, cache=True)
def _keep(pool, nodes, open_, size, apart, j):
    """Insert a node into the sorted pool; return its place and the pool's new size."""
    place = size if size < len(pool) else size - 1
    while place > 0 and pool[place - 1] > apart:
        pool[place], nodes[place] = pool[place - 1], nodes[place - 1]
        open_[place] = open_[place - 1]
        place -= 1
    pool[place], nodes[place], open_[place] = apart, j, True
    return place, min(size + 1, len(pool))


@njit(nogil=True, cache=True)
def _note(found, row, apart, first, j):
    """Enter a node into the heap of results, if it is near enough and may be found."""
    if apart > found[0]:
        return
    mine = first[j]
    if mine >= 0 and (apart < found[0] or mine < row[0]):
        found[0], row[0] = apart, mine
        _sift(found, row, len(found))


@njit(nogil=True, cache=True)
def _unseen(links, begin, end, seen, near):
    """List the links that were not met before, and mark them as met; return their number."""
    n = 0
    for p in range(begin, end):
        j = links[p]
        if j < 0:
            break
        bit = np.uint64(1) << np.uint64(j & 63)
        if not seen[j >> 6] & bit:
            seen[j >> 6] |= bit
            near[n] = j
            n += 1
    return n


@njit(nogil=True, cache=True)
def _wander(
    joint, starts, codes, asked, line, power, first, graph, pool, nodes, open_, seen, found, row
):
    """Walk for one query: always on from the nearest node in sight that was not left yet."""
    links, begins, levels, entry, top, breadth = graph
    near, apart = np.empty(levels[1], np.int64), np.empty(levels[1])
    j, nearest = _descend(
        joint, starts, codes, asked, line, power, links, begins, levels, entry, top
    )
    seen[j >> 6] |= np.uint64(1) << np.uint64(j & 63)
    at, size = _keep(pool, nodes, open_, 0, nearest, j)
    _note(found, row, nearest, first, j)
    while at < size:
        if not open_[at]:
            at += 1
            continue
        open_[at] = False
        here, at = begins[nodes[at]], at + 1
        n = _unseen(links, here, here + levels[1], seen, near)
        for m in range(n):  # apart from what depends on them, so that memory is read ahead
            j = near[m]
            apart[m] = _distance(joint, starts, codes[j], asked, line[j], power)
        for m in range(n):
            if size < breadth or apart[m] < pool[size - 1]:
                place, size = _keep(pool, nodes, open_, size, apart[m], near[m])
                at = min(at, place)
            _note(found, row, apart[m], first, near[m])


@njit(nogil=True, cache=True)
def walk(
    values, asked, groups, offsets, widths, starts, codes, line, power, first, graph, out, rows
):
    """Find the k nearest nodes of each query as far as a walk of some breadth meets them.

    As ``scan``, but ``codes`` and ``line`` have a row per node, and ``graph`` holds (links,
    offsets, levels, entry, top, breadth): node i links to ``links[offsets[i] + levels[l] :
    offsets[i] + levels[l + 1]]`` on level l, -1 after the last.
    """
    breadth = graph[5]
    joint = np.empty(starts[-1])
    pool, nodes = np.empty(breadth), np.empty(breadth, np.int64)
    open_ = np.empty(breadth, np.bool_)
    seen = np.empty((len(first) >> 6) + 1, np.uint64)
    for i in range(len(out)):
        _fill_joint(values[i], groups, offsets, widths, starts, joint)
        seen[:] = 0
        out[i] = np.inf
        rows[i] = np.iinfo(np.int64).max
        space = joint, starts, codes, asked[i], line, power
        _wander(*space, first, graph, pool, nodes, open_, seen, out[i], rows[i])
        _in_order(out[i], rows[i])
