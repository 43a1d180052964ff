"""Compiled loops behind :class:`tabweave.search.index.SimilarityIndex`. Importing this module loads numba.

They compare queries with *nodes*, the distinct stored rows, each of which stands for one row or
more. A distance is a sum over groups of columns, one lookup each, and over coordinates; the order
of adding is the same in every loop, so that all ways to search give the same distances.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

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


# -- Compiled walk through a neighbour graph. Importing this module loads numba


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


# -- Compiled loops behind :class:`tabweave.search.knn.WeightedKNN`. Importing this module loads numba

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


# -- Compiled search for nearest rows by tree distance. Importing this module loads numba


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
