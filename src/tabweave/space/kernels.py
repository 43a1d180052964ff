"""Compiled loops of the search.

Queries are compared with *nodes*, distinct rows that each stand for one row or more. A distance is
a sum over groups of columns, one lookup each, and over coordinates; the order of adding is the same
in every loop, so that all ways to search give the same distances. Every loop keeps the k nearest in
one kind of heap, and of nodes at the same distance those with the smaller row number.

In all of them ``queries`` is (values, points): ``values[i, offsets[a] + v]`` is the distance of
query i to value v of column a, ``points[i]`` its coordinates. ``nodes`` is (groups, offsets,
widths, starts, codes, line, power, root): ``codes[g]`` has each node's joint value in the columns
``groups[g]`` (padded with -1), ``line[c]`` the nodes' coordinates, and ``root`` says that sums are
compared by their roots, so that those that differ by less than a root can tell are equal.

What a few queries of some thousand rows need has a twin in NumPy, with the same answers to the last
bit (:func:`tabweave._compat.njit`); anything more is worth loading numba. Tests compare all loops
with brute force.
"""

from __future__ import annotations

import math

import numpy as np

from tabweave._compat import njit

# Nodes compared at a time: a hundred of their coordinates stay in the caches.
TILE_NODES = 1024
LANES = 64  # Queries that look up cells side by side: a line of two-byte numbers is 128 bytes.
CELLS = 256  # Joint cells of a group of columns: a byte tells them apart.
PAIRS = 1024  # Pairs of queries and nodes that are compared in full at a time.
NO_ROW = np.iinfo(np.int64).max  # where fewer than k nodes were found


# -- the heap: the k nearest so far, the farthest on top -----------------------------------------


@njit(nogil=True, cache=True)
def _clear(distances, rows):
    """Make an empty heap."""
    distances[:] = np.inf
    rows[:] = NO_ROW


@njit(nogil=True, cache=True)
def _sift(distances, rows, size):
    """Let the first entry sink to where it belongs: by distance, then by row number."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            return
        if child + 1 < size and (
            distances[child + 1] > distances[child]
            or (distances[child + 1] == distances[child] and rows[child + 1] > rows[child])
        ):
            child += 1
        if distances[child] < distances[i] or (
            distances[child] == distances[i] and rows[child] < rows[i]
        ):
            return
        distances[i], distances[child] = distances[child], distances[i]
        rows[i], rows[child] = rows[child], rows[i]
        i = child


@njit(nogil=True, cache=True, inline="always")
def _offer(distances, rows, distance, row):
    """Enter a row, unless k nearer ones are there; -1 is none."""
    if row >= 0 and (distance < distances[0] or (distance == distances[0] and row < rows[0])):
        distances[0], rows[0] = distance, row
        _sift(distances, rows, len(distances))


@njit(nogil=True, cache=True)
def _sort(distances, rows):
    """Turn a heap into a list, nearest first."""
    for last in range(len(distances) - 1, 0, -1):
        distances[0], distances[last] = distances[last], distances[0]
        rows[0], rows[last] = rows[last], rows[0]
        _sift(distances, rows, last)


# -- the exact scan ------------------------------------------------------------------------------


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
                prefix = lookup[i]
                for v in range(widths[a]):
                    lookup[i * widths[a] + v] = prefix + values[base + v]
            size *= widths[a]


@njit(nogil=True, cache=True)
def _add_line(point, line, begin, power, total):
    """Add the differences of coordinates from some node on, |x - y| or (x - y)²."""
    end = begin + len(total)
    if power == 1:
        for c in range(len(point)):
            x, other = point[c], line[c, begin:end]
            for j in range(len(total)):
                total[j] += abs(x - other[j])
        return
    last_four = len(point) - len(point) % 4
    # Four at a time: sums are loaded and stored a quarter as often.
    for c in range(0, last_four, 4):
        a, b, d, e = point[c], point[c + 1], point[c + 2], point[c + 3]
        first, second = line[c, begin:end], line[c + 1, begin:end]
        third, fourth = line[c + 2, begin:end], line[c + 3, begin:end]
        for j in range(len(total)):
            summed = total[j] + (a - first[j]) * (a - first[j])
            summed += (b - second[j]) * (b - second[j])
            summed += (d - third[j]) * (d - third[j])
            total[j] = summed + (e - fourth[j]) * (e - fourth[j])
    for c in range(last_four, len(point)):
        x, other = point[c], line[c, begin:end]
        for j in range(len(total)):
            total[j] += (x - other[j]) * (x - other[j])


@njit(nogil=True, cache=True, inline="always")
def _fill_distances(joint, starts, codes, point, line, begin, power, root, out):
    """Set the distances of a query to as many nodes as there is room for, from some node on."""
    out[:] = 0
    end = begin + len(out)
    for g in range(0, len(codes) - 1, 2):  # two at a time: sums are loaded and stored half as often
        lookup, code = joint[starts[g] :], codes[g, begin:end]
        second, other = joint[starts[g + 1] :], codes[g + 1, begin:end]
        for j in range(len(out)):
            out[j] = out[j] + lookup[code[j]] + second[other[j]]
    if len(codes) % 2:
        lookup, code = joint[starts[len(codes) - 1] :], codes[-1, begin:end]
        for j in range(len(out)):
            out[j] += lookup[code[j]]
    _add_line(point, line, begin, power, out)
    if root:
        for j in range(len(out)):
            out[j] = math.sqrt(max(out[j], 0.0))


def _all_distances_plain(queries, nodes, out):
    (values, points), (groups, offsets, widths, _, codes, line, power, root) = queries, nodes
    out[:] = 0
    for i, total in enumerate(out):
        for group, code in zip(groups, codes, strict=True):
            joint = np.zeros(1)
            for a in group[group >= 0]:
                column = values[i, offsets[a] : offsets[a] + widths[a]]
                joint = np.add.outer(joint, column).ravel()
            total += joint[code]
        for x, other in zip(points[i], line, strict=True):
            total += np.abs(x - other) if power == 1 else np.square(x - other)
    if root:
        np.sqrt(np.maximum(out, 0), out=out)


def _n_compared(queries, nodes, *_):
    """How many numbers are compared."""
    return len(queries[1]) * nodes[5].shape[1] * (1 + len(nodes[4]) + len(nodes[5]))


@njit(nogil=True, cache=True, plain=_all_distances_plain, work=_n_compared)
def all_distances(queries, nodes, out):
    """Set the distance of each query to each node."""
    values, points = queries
    groups, offsets, widths, starts, codes, line, power, root = nodes
    joint = np.empty((len(out), starts[-1]))
    for i in range(len(out)):
        _fill_joint(values[i], groups, offsets, widths, starts, joint[i])
    for begin in range(0, out.shape[1], TILE_NODES):
        end = min(begin + TILE_NODES, out.shape[1])
        for i in range(len(out)):
            tile = out[i, begin:end]
            _fill_distances(joint[i], starts, codes, points[i], line, begin, power, root, tile)


def _scan_plain(queries, nodes, first, out, rows):
    candidates = np.flatnonzero(first >= 0)
    distances = np.empty((len(out), len(first)))
    _all_distances_plain(queries, nodes, distances)
    out[:], rows[:] = np.inf, NO_ROW
    for i in range(len(out)):
        _keep_nearest(distances[i, candidates], first[candidates], out[i], rows[i])


def _keep_nearest(distances, named, out, rows):
    """Set the k nearest: by distance, then by row number."""
    k = min(len(out), len(named))
    if k:
        near = np.flatnonzero(distances <= np.partition(distances, k - 1)[k - 1])
        near = near[np.lexsort((named[near], distances[near]))[:k]]
        out[:k], rows[:k] = distances[near], named[near]


@njit(nogil=True, cache=True, plain=_scan_plain, work=_n_compared)
def scan(queries, nodes, first, out, rows):
    """Find the k nearest nodes of each query; ``first`` is a node's row number, or -1.

    Distances and row numbers are left in ``out`` and ``rows``, nearest first.
    """
    values, points = queries
    groups, offsets, widths, starts, codes, line, power, root = nodes
    joint = np.empty((len(out), starts[-1]))
    for i in range(len(out)):
        _fill_joint(values[i], groups, offsets, widths, starts, joint[i])
        _clear(out[i], rows[i])
    buffer = np.empty(TILE_NODES)
    for begin in range(0, len(first), TILE_NODES):
        tile = buffer[: min(TILE_NODES, len(first) - begin)]
        for i in range(len(out)):
            _fill_distances(joint[i], starts, codes, points[i], line, begin, power, root, tile)
            _offer_tile(tile, first, begin, out[i], rows[i])
    for i in range(len(out)):
        _sort(out[i], rows[i])


@njit(nogil=True, cache=True)
def kth_distances(distances, copies, k, out):
    """Set the k-th smallest distance of each line, each counted as often as its node has copies."""
    nearest, nodes = np.empty(k), np.empty(k, np.int64)
    for i in range(len(out)):
        _clear(nearest, nodes)
        for u in range(distances.shape[1]):
            if distances[i, u] <= nearest[0]:
                _offer(nearest, nodes, distances[i, u], u)
        _sort(nearest, nodes)
        total, last = 0, 0
        for j in range(k):
            if nodes[j] == NO_ROW or total >= k:
                break
            total += copies[nodes[j]]
            last = j
        out[i] = nearest[last]


@njit(nogil=True, cache=True, inline="always")
def _offer_tile(tile, first, begin, distances, rows):
    """Enter the nodes of a tile, by the distances of a query to them."""
    for j in range(len(tile)):
        if tile[j] <= distances[0]:
            _offer(distances, rows, tile[j], first[begin + j])


@njit(nogil=True, cache=True)
def sketched_scan(queries, nodes, first, sketch, out, rows):
    """Do what :func:`scan` does, and compare in full only what a sketch does not rule out.

    ``sketch`` is (near, along, slack): coordinates of queries and of nodes (a line for each
    direction) in a few directions, as float32, and what rounding may take from the length of their
    difference. A distance is no less than that difference and the least that columns add.
    """
    values, points = queries
    groups, offsets, widths, starts, codes, line, power, root = nodes
    joint, least = np.empty((len(out), starts[-1])), np.zeros(len(out))
    for i in range(len(out)):
        _fill_joint(values[i], groups, offsets, widths, starts, joint[i])
        _clear(out[i], rows[i])
        for g in range(len(groups)):
            least[i] += joint[i, starts[g] : starts[g + 1]].min()
    buffers = np.empty(TILE_NODES), np.empty(TILE_NODES, np.float32), np.empty(TILE_NODES, np.int64)
    # What hardly rules anything out is tried again ever later.
    pause, wait = np.zeros(len(out), np.int64), np.zeros(len(out), np.int64)
    for begin in range(0, len(first), TILE_NODES):
        size = min(TILE_NODES, len(first) - begin)
        tile, numbers = buffers[0][:size], buffers[2]
        for i in range(len(out)):
            distances, n = out[i], size
            wait[i] -= 1
            if distances[0] < np.inf and wait[i] < 0:
                limit = distances[0] * distances[0] if root else distances[0]
                bound = limit, least[i], sketch[2][i]
                columns = joint[i], starts, codes
                n = _not_ruled_out(sketch[0][i], sketch[1], columns, bound, begin, size, buffers)
                pause[i] = 2 * pause[i] + 1 if n > size // 32 else 0
                wait[i] = pause[i]
            if n > size // 32:
                _fill_distances(joint[i], starts, codes, points[i], line, begin, power, root, tile)
                _offer_tile(tile, first, begin, distances, rows[i])
                continue
            picked = begin + numbers[:n]
            _add_picked_lines(points[i], line, picked, root, tile[:n])
            for m in range(n):
                if tile[m] <= distances[0]:
                    _offer(distances, rows[i], tile[m], first[picked[m]])
    for i in range(len(out)):
        _sort(out[i], rows[i])


@njit(nogil=True, cache=True)
def _not_ruled_out(near, along, columns, bound, begin, size, buffers):
    """List the nodes of a tile that a sketch, and then columns, do not rule out; return how many.

    Where these are few, what columns add to them is set, too.
    """
    limit, least, slack = bound
    tile, part, numbers = buffers
    edge = _ruled_out_from(limit, least, slack)
    n = _within_sketch(near, along, begin, edge, part[:size], numbers)
    if n <= size // 4:  # what columns add is a few loads
        n = _within_columns(columns, begin, limit, slack, part, numbers[:n], tile)
    return n


@njit(nogil=True, cache=True)
def _ruled_out_from(limit, least, slack):
    """Squared length in a sketch beyond which a sum is surely beyond the limit."""
    room = math.sqrt(max(limit - least, 0.0) + 1e-12 * abs(limit))
    return (room * (1 + 1e-5) + slack) ** 2


@njit(nogil=True, cache=True)
def _within_sketch(near, along, begin, limit, part, numbers):
    """List the nodes from some node on whose sketch is not beyond the limit; return how many."""
    part[:] = 0
    end = begin + len(part)
    for c in range(0, len(near), 4):  # directions come in fours
        a, b, d, e = near[c], near[c + 1], near[c + 2], near[c + 3]
        first, second = along[c, begin:end], along[c + 1, begin:end]
        third, fourth = along[c + 2, begin:end], along[c + 3, begin:end]
        for j in range(len(part)):
            x, y, z, w = a - first[j], b - second[j], d - third[j], e - fourth[j]
            part[j] += x * x + y * y + (z * z + w * w)
    n = 0
    for j in range(len(part)):
        numbers[n] = j
        n += not part[j] > limit
    return n


@njit(nogil=True, cache=True)
def _within_columns(columns, begin, limit, slack, part, numbers, summed):
    """Set what columns add to some nodes; keep those not beyond the limit, return how many."""
    joint, starts, codes = columns
    n = 0
    for j in numbers:
        total = 0.0
        for g in range(len(codes)):
            total += joint[starts[g] + codes[g, begin + j]]
        numbers[n], summed[n] = j, total
        n += not part[j] > _ruled_out_from(limit, total, slack)
    return n


@njit(nogil=True, cache=True)
def _add_picked_lines(point, line, picked, root, total):
    """Add the differences of coordinates of some nodes, each sum in the order of ``scan``."""
    for c in range(len(point)):
        x, other = point[c], line[c]
        for m in range(len(picked)):
            total[m] += (x - other[picked[m]]) * (x - other[picked[m]])
    if root:
        for m in range(len(picked)):
            total[m] = math.sqrt(max(total[m], 0.0))


# -- the scan by cells ---------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def find_boxes(points, axes, cuts, out):
    """Set the box of each point: what is below a cut goes left, down a tree of them."""
    for i in range(len(points)):
        b = 0
        while b < len(axes):
            b = 2 * b + (2 if points[i, axes[b]] >= cuts[b] else 1)
        out[i] = b - len(axes)


@njit(nogil=True, cache=True)
def widen_boxes(points, boxes, low, high):
    """Let each box hold its points."""
    for i in range(len(points)):
        for c in range(points.shape[1]):
            low[boxes[i], c] = min(low[boxes[i], c], points[i, c])
            high[boxes[i], c] = max(high[boxes[i], c], points[i, c])


@njit(nogil=True, cache=True)
def celled_scan(queries, near, nodes, cells, boxes, first, out, rows):
    """Do what :func:`scan` does for up to 64 queries, and compare in full what cells leave over.

    Nodes come in boxes of near ones. ``near`` is (along, slack, home): coordinates of queries in a
    few directions, what rounding may take from a difference to a node, and the box that each query
    lies in; ``boxes`` is (low, high, edges): the ends of each box in these directions, and where
    its nodes begin. ``nodes`` is (offsets, columns, last, codes, line, power, root): values of the
    nodes in some columns, in the order in which they are added, and which end a group; and their
    coordinates, a line for each node. ``cells`` is (codes, groups, sizes, value_cells, edges, low,
    high): the joint cells of each node in groups of columns (padded with -1), how many cells each
    column has, the cell of each value, and where coordinates of the others begin, with the ends of
    their cells.
    """
    low, high, edges = boxes
    root, middle = nodes[6], near[2][len(out) // 2]
    to_box, begun = np.empty((len(low), LANES)), np.empty((len(out), 2), np.int64)
    _square_to_boxes(near[0], near[1], low, high, to_box)
    _begin_at_home(queries, near[2], nodes, edges, first, out, rows, begun)
    tables = (
        np.zeros((len(cells[1]), CELLS, LANES)),
        np.zeros((cells[0].shape[1], CELLS, LANES), np.uint16),
    )
    room, limits = np.full(LANES, 65535, np.uint16), np.zeros((3, LANES))
    _join_cells(queries, nodes, cells, tables[0], limits[1])
    _tighten(out, root, tables, cells, limits, room, True)
    buffer, n_boxes_done = np.empty((TILE_NODES, LANES), np.uint16), 0
    for step in range(2 * len(low)):  # from the home of one of them on to both sides
        t = middle + (step + 1) // 2 * (1 if step % 2 else -1)
        if t < 0 or t >= len(low) or not _any_within(to_box[t], limits[0], len(out)):
            continue
        for begin in range(edges[t], edges[t + 1], TILE_NODES):
            summed = buffer[: min(TILE_NODES, edges[t + 1] - begin)]
            _add_cells(cells[0][begin : begin + len(summed)], tables[1], summed)
            _compare_left(queries, nodes, summed, room, begun, begin, first, out, rows)
            n_boxes_done += 1
            again = n_boxes_done & (n_boxes_done - 1) == 0
            _tighten(out, root, tables, cells, limits, room, again)
    for i in range(len(out)):
        _sort(out[i], rows[i])


@njit(nogil=True, cache=True)
def _square_to_boxes(along, slack, low, high, out):
    """Set the squared distance of each query to each box, less what rounding may add."""
    turned, rounding = np.zeros((along.shape[1], LANES)), np.zeros(LANES)
    turned[:, : len(along)], rounding[: len(along)] = along.T, slack
    for t in range(len(low)):
        total = out[t]
        total[:] = 0
        for c in range(len(turned)):
            x, begin, end = turned[c], low[t, c], high[t, c]
            for i in range(LANES):
                gap = max(max(begin - x[i], x[i] - end) - rounding[i], 0.0)
                total[i] += gap * gap


@njit(nogil=True, cache=True)
def _any_within(squared, limits, n):
    """Whether a box is near enough for one of the queries."""
    for i in range(n):
        if not squared[i] * (1 - 1e-9) > limits[i] * (1 + 1e-9):
            return True
    return False


@njit(nogil=True, cache=True)
def _begin_at_home(queries, home, nodes, edges, first, out, rows, begun):
    """Compare each query with the nodes of its box, and of more until k may be found."""
    who, which = np.empty(PAIRS, np.int64), np.empty(PAIRS, np.int64)
    distances = np.empty(PAIRS)
    for i in range(len(out)):
        _clear(out[i], rows[i])
        begin, end = edges[home[i]], edges[home[i] + 1]
        n = 0
        for u in range(begin, end):
            n += first[u] >= 0
        while n < out.shape[1] and end - begin < len(first):
            if begin > 0:
                begin -= 1
                n += first[begin] >= 0
            if end < len(first):
                n += first[end] >= 0
                end += 1
        begun[i] = begin, end
        for start in range(begin, end, PAIRS):
            n = min(PAIRS, end - start)
            for j in range(n):
                who[j], which[j] = i, start + j
            _pair_distances(queries, nodes, who[:n], which[:n], distances)
            _offer_tile(distances[:n], first, start, out[i], rows[i])


@njit(nogil=True, cache=True)
def _pair_distances(queries, nodes, who, which, out):
    """Set the distances of pairs, each sum in the order of ``scan``; four sums side by side."""
    (values, points), (offsets, columns, last, codes, line, power, root) = queries, nodes
    n = len(who)
    for p in range(0, n, 4):
        j, k, m = min(p + 1, n - 1), min(p + 2, n - 1), min(p + 3, n - 1)
        a = b = c = d = e = f = g = h = 0.0
        pay, pay_j, pay_k, pay_m = values[who[p]], values[who[j]], values[who[k]], values[who[m]]
        code, code_j = codes[which[p]], codes[which[j]]
        code_k, code_m = codes[which[k]], codes[which[m]]
        for s in range(len(columns)):
            v = offsets[columns[s]]
            e, f = e + pay[v + code[s]], f + pay_j[v + code_j[s]]
            g, h = g + pay_k[v + code_k[s]], h + pay_m[v + code_m[s]]
            if last[s]:
                a, b, c, d = a + e, b + f, c + g, d + h
                e = f = g = h = 0.0
        x, x_j, x_k, x_m = points[who[p]], points[who[j]], points[who[k]], points[who[m]]
        y, y_j, y_k, y_m = line[which[p]], line[which[j]], line[which[k]], line[which[m]]
        for s in range(len(x)):
            e, f, g, h = x[s] - y[s], x_j[s] - y_j[s], x_k[s] - y_k[s], x_m[s] - y_m[s]
            if power == 1:
                a, b, c, d = a + abs(e), b + abs(f), c + abs(g), d + abs(h)
            else:
                a, b, c, d = a + e * e, b + f * f, c + g * g, d + h * h
        out[p], out[j], out[k], out[m] = a, b, c, d
    for p in range(n if root else 0):
        out[p] = math.sqrt(max(out[p], 0.0))


@njit(nogil=True, cache=True)
def _join_cells(queries, nodes, cells, tables, least):
    """Set what each joint cell costs at least, beyond the least of its group; and these, summed."""
    (values, points), (offsets, power) = queries, (nodes[0], nodes[5])
    _, groups, sizes, value_cells, edges, low, high = cells
    n_values, costs = len(offsets) - 1, np.empty((CELLS, LANES))
    starts = np.zeros(len(edges), np.int64)
    for b in range(len(edges) - 1):
        starts[b + 1] = starts[b] + (edges[b + 1] - edges[b]) * sizes[n_values + b]
    least[:] = 0
    for g in range(len(groups)):
        table, n = tables[g], 1
        table[0] = 0
        for s in groups[g]:
            if s < 0:
                break
            if s < n_values:
                _value_costs(values, offsets[s], value_cells[offsets[s] : offsets[s + 1]], costs)
            else:
                b = s - n_values
                ends = low[starts[b] : starts[b + 1]], high[starts[b] : starts[b + 1]]
                _stretch_costs(points[:, edges[b] : edges[b + 1]], ends, sizes[s], power, costs)
            for j in range(n - 1, -1, -1):
                for v in range(sizes[s] - 1, -1, -1):
                    before, cost, total = table[j], costs[v], table[j * sizes[s] + v]
                    for i in range(LANES):
                        total[i] = before[i] + cost[i]
            n *= sizes[s]
        _take_least(table[:n], least)


@njit(nogil=True, cache=True)
def _value_costs(values, offset, cell_of, costs):
    """Set what queries pay for the nearest value of each cell."""
    costs[:] = np.inf
    for i in range(len(values)):  # of many values a line is read from end to end
        value = values[i, offset : offset + len(cell_of)]
        for v in range(len(value)):
            costs[cell_of[v], i] = min(costs[cell_of[v], i], value[v])


@njit(nogil=True, cache=True)
def _stretch_costs(points, ends, n_cells, power, costs):
    """Set what queries pay for the nearest point of each cell of coordinates."""
    width = points.shape[1]
    turned = np.zeros((width, LANES))
    turned[:, : len(points)] = points.T
    for v in range(n_cells):
        cost = costs[v]
        cost[:] = 0
        for c in range(width):
            x, begin, end = turned[c], ends[0][width * v + c], ends[1][width * v + c]
            for i in range(LANES):
                gap = max(max(begin - x[i], x[i] - end), 0.0)
                cost[i] += gap if power == 1 else gap * gap


@njit(nogil=True, cache=True)
def _take_least(table, least):
    """Take the least of each query's costs away from all of them, and add it up."""
    lowest = np.full(LANES, np.inf)
    for j in range(len(table)):
        cost = table[j]
        for i in range(LANES):
            lowest[i] = min(lowest[i], cost[i])
    for i in range(LANES):
        least[i] += lowest[i]
    for j in range(len(table)):
        cost = table[j]
        for i in range(LANES):
            cost[i] -= lowest[i]


@njit(nogil=True, cache=True)
def _tighten(out, root, tables, cells, limits, room, may_round):
    """Set how much room cells have below the k-th distance so far, in whole numbers.

    ``limits`` are, for each query: the limit, what columns cost at least, and how many whole
    numbers a cost of 1 is. Costs are rounded down anew where these may be twice as many.
    """
    most, fell = (1 << 15) // len(cells[1]) - 1, False  # sums stay below 2^15
    for i in range(LANES if may_round else 0):
        if i < len(out):
            limits[0, i] = out[i, 0] * out[i, 0] if root else out[i, 0]
            left = _left(limits[0, i], limits[1, i])
            if left < np.inf and most / left > 2 * limits[2, i]:
                limits[2, i], fell = most / left, True
    if fell:
        _round_down(tables[0], limits[2], float(most + 1), tables[1])
    for i in range(len(out)):
        limits[0, i] = out[i, 0] * out[i, 0] if root else out[i, 0]
        left = _left(limits[0, i], limits[1, i])
        room[i] = min(left * limits[2, i], most) if left < np.inf else most


@njit(nogil=True, cache=True)
def _left(limit, least):
    """What columns may cost beyond the least, and what rounding may add."""
    size = abs(limit) + abs(least)
    return max(max(limit - least, 0.0) + 1e-9 * size, 1e-300) if size < np.inf else np.inf


@njit(nogil=True, cache=True)
def _round_down(costs, scale, cap, out):
    """Set costs in whole numbers, no more than a cap; where there is no scale, nothing."""
    for g in range(len(costs)):
        for j in range(CELLS):
            cost, rounded = costs[g, j], out[g, j]
            for i in range(LANES):
                x = cost[i] * scale[i] if scale[i] > 0 else 0.0
                rounded[i] = np.uint16(x if x < cap else cap)


@njit(nogil=True, cache=True)
def _add_cells(codes, tables, out):
    """Add up the costs of some nodes' cells; tables come in fours."""
    for g in range(0, codes.shape[1], 4):
        one, two, three, four = tables[g], tables[g + 1], tables[g + 2], tables[g + 3]
        for j in range(len(out)):
            a, b = one[codes[j, g]], two[codes[j, g + 1]]
            c, d, total = three[codes[j, g + 2]], four[codes[j, g + 3]], out[j]
            if g == 0:
                for i in range(LANES):
                    total[i] = np.uint16(a[i] + b[i] + c[i] + d[i])
            else:
                for i in range(LANES):
                    total[i] = np.uint16(total[i] + a[i] + b[i] + c[i] + d[i])


@njit(nogil=True, cache=True)
def _compare_left(queries, nodes, summed, room, begun, begin, first, out, rows):
    """Compare in full the pairs whose cells leave room, but those compared at the beginning."""
    who, which = np.empty(PAIRS, np.int64), np.empty(PAIRS, np.int64)
    distances, n = np.empty(PAIRS), 0
    for j in range(len(summed)):
        total, u, is_left = summed[j], begin + j, np.uint16(0)
        for i in range(LANES):  # the highest bit tells whether a sum is no more than its room
            beyond = np.uint16(total[i] - room[i] - np.uint16(1))
            is_left = np.uint16(is_left | np.uint16(beyond >> np.uint16(15)))
        for i in range(len(out) if is_left else 0):
            who[n], which[n] = i, u
            n += total[i] <= room[i] and not begun[i, 0] <= u < begun[i, 1]
        if n > PAIRS - LANES or (n and j == len(summed) - 1):
            _pair_distances(queries, nodes, who[:n], which[:n], distances)
            for p in range(n):
                i = who[p]
                if distances[p] <= out[i, 0]:
                    _offer(out[i], rows[i], distances[p], first[which[p]])
            n = 0


def _expand_plain(node_distances, first, node_of, starts, members, allowed, out, rows):
    out[:], rows[:] = np.inf, -1
    for i in range(len(out)):
        is_node = first[i] != NO_ROW
        nodes = node_of[first[i][is_node]]
        parts = [members[starts[u] : starts[u + 1]] for u in nodes]
        distances = np.repeat(node_distances[i][is_node], list(map(len, parts)))
        numbers = np.concatenate([members[:0], *parts])
        _keep_nearest(distances[allowed[numbers]], numbers[allowed[numbers]], out[i], rows[i])


def _expand_size(node_distances, first, node_of, *_):
    """What it takes to expand nodes, in elements."""
    return len(node_of) + 64 * first.size


@njit(nogil=True, cache=True, plain=_expand_plain, work=_expand_size)
def expand(node_distances, first, node_of, starts, members, allowed, out, rows):
    """Turn the k nearest nodes of each query into the k nearest rows: by distance, then number.

    Node u has the rows ``members[starts[u] : starts[u + 1]]``, in order; those that are not
    ``allowed`` are left out. Where the nodes have too few, the rest is infinity and -1.
    """
    n_queries, k = out.shape
    for i in range(n_queries):
        _clear(out[i], rows[i])
        for j in range(node_distances.shape[1]):
            if first[i, j] == NO_ROW or node_distances[i, j] > out[i, 0]:
                break
            node = node_of[first[i, j]]
            n_offered = 0
            for m in range(starts[node], starts[node + 1]):
                if allowed[members[m]]:
                    _offer(out[i], rows[i], node_distances[i, j], members[m])
                    n_offered += 1
                    if n_offered == k:
                        break
        _sort(out[i], rows[i])
        for j in range(k):
            if rows[i, j] == NO_ROW:
                rows[i, j] = -1


def _first_allowed_plain(node_of, allowed, out):
    rows = np.flatnonzero(allowed)[::-1]
    out[node_of[rows]] = rows  # the first of a node comes last, and stays


@njit(nogil=True, cache=True, plain=_first_allowed_plain)
def first_allowed(node_of, allowed, out):
    """Set each node's first allowed row."""
    for row in range(len(node_of)):
        if allowed[row] and out[node_of[row]] < 0:
            out[node_of[row]] = row


# -- the links of a neighbour graph ---------------------------------------------------------------


@njit(nogil=True, cache=True)
def _between(one, other, power):
    """What adds up between two points, of float32."""
    total = np.float32(0)
    for c in range(len(one)):
        difference = one[c] - other[c]
        total += abs(difference) if power == 1 else difference * difference
    return total


@njit(nogil=True, cache=True)
def link_spread(points, begin, near, counts, power, links):
    """Link each node to the near ones that lie in different directions from it.

    Of ``near[i]``, the first ``counts[i]`` of them, node ``begin + i`` takes the nearest first, and
    none that is nearer to one that it took, by a fifth, than to itself. -1 comes after the last.
    """
    distances = np.empty(near.shape[1], np.float32)
    for i in range(len(near)):
        u, candidates, n = begin + i, near[i, : counts[i]], 0
        for m in range(len(candidates)):
            distances[m] = _between(points[u], points[candidates[m]], power)
        links[i] = -1
        for m in np.argsort(distances[: len(candidates)], kind="mergesort"):
            j, is_spread = candidates[m], candidates[m] != u and n < links.shape[1]
            for taken in links[i, :n]:
                if not is_spread:
                    break
                is_spread = taken != j and (
                    np.float32(1.2) * _between(points[j], points[taken], power) >= distances[m]
                )
            if is_spread:
                links[i, n] = j
                n += 1


@njit(nogil=True, cache=True)
def both_ways(links, max_links, near, counts):
    """List for each node those that it links to, and those that link to it, up to a number."""
    counts[:] = 0
    for u in range(len(links)):
        for j in links[u]:
            if j >= 0:
                near[u, counts[u]] = j
                counts[u] += 1
    for u in range(len(links)):
        for j in links[u]:
            if j >= 0 and counts[j] < max_links:
                near[j, counts[j]] = u
                counts[j] += 1


# -- the walk through a neighbour graph ----------------------------------------------------------


@njit(nogil=True, cache=True, inline="always")
def _look_up(joint, starts, code):
    """What adds up to one node over groups of columns, in the order of ``scan``."""
    total = 0.0
    for g in range(len(code)):
        total += joint[starts[g] + code[g]]
    return total


@njit(nogil=True, cache=True, inline="always")
def _and_line(total, point, line, power):
    """That sum and the differences of coordinates, which come after columns."""
    for c in range(len(point)):
        difference = point[c] - line[c]
        total += abs(difference) if power == 1 else difference * difference
    return total


@njit(nogil=True, cache=True)
def _insert(pool, nodes, open_, size, distance, j):
    """Insert a node into the sorted pool; return its index there and the pool's new size."""
    index = size if size < len(pool) else size - 1
    while index > 0 and pool[index - 1] > distance:
        pool[index], nodes[index] = pool[index - 1], nodes[index - 1]
        open_[index] = open_[index - 1]
        index -= 1
    pool[index], nodes[index], open_[index] = distance, j, True
    return index, min(size + 1, len(pool))


@njit(nogil=True, cache=True, inline="always")
def _meet(seen, j):
    """Mark a node as met; return whether it was not before."""
    bit = np.uint64(1) << np.uint64(j & 63)
    new = not seen[j >> 6] & bit
    seen[j >> 6] |= bit
    return new


@njit(nogil=True, cache=True)
def _begin(space, seeds, query_node, pool, nodes, open_):
    """Fill a pool with the nearest of the seeds but ``query_node``; return its size."""
    joint, starts, codes, point, line, power = space
    size = 0
    for j in seeds:
        distance = _and_line(_look_up(joint, starts, codes[j]), point, line[j], power)
        if j != query_node and (size < len(pool) or distance < pool[size - 1]):
            _, size = _insert(pool, nodes, open_, size, distance, j)
    return size


@njit(nogil=True, cache=True)
def _next(open_, index, size):
    """Nearest node of a pool that was not left yet, or the size of the pool."""
    while index < size and not open_[index]:
        index += 1
    return index


@njit(nogil=True, cache=True)
def _meet_linked(links, seen, near):
    """List the nodes that links lead to and that were not met before; return how many."""
    n = 0
    for j in links:
        if j < 0:
            break
        if _meet(seen, j):
            near[n] = j
            n += 1
    return n


@njit(nogil=True, cache=True)
def _compare(space, near, limit, distance):
    """Set the distances to some nodes; beyond the limit, what columns add up to is enough."""
    joint, starts, codes, point, line, power = space
    touched = 0.0
    for m in range(len(near)):
        distance[m] = _look_up(joint, starts, codes[near[m]])
    if line.shape[1]:
        for m in range(len(near)):
            for c in range(0, line.shape[1] if distance[m] <= limit else 0, 8):
                touched += line[near[m], c]
        for m in range(len(near)):
            if distance[m] <= limit:
                distance[m] = _and_line(distance[m], point, line[near[m]], power)
    return touched


@njit(nogil=True, cache=True)
def _wander(space, first, graph, query_node, pools, seen, nearest, rows):
    """Walk for one query: always on from the nearest node in the pool that was not left yet.

    ``space`` is (joint, starts, codes, point, line, power), ``pools`` the nearest nodes
    so far: (distances, nodes, whether each is still to be left). What is compared next is touched
    before it is needed: memory then answers for all of it at once. The sum of what was touched
    means nothing, but without it compilers leave loads out.
    """
    links, seeds, breadth = graph
    pool, nodes, open_ = pools
    codes = space[2]
    near, distance = np.empty(links.shape[1], np.int64), np.empty(links.shape[1])
    touched = 0.0
    if query_node >= 0:
        _meet(seen, query_node)
    # It begins at the nearest four of the seeds.
    size = _begin(space, seeds, query_node, pool[:4], nodes, open_)
    for m in range(size):
        _meet(seen, nodes[m])
        _offer(nearest, rows, pool[m], first[nodes[m]])
    index = 0
    while index < size:
        open_[index] = False
        n = _meet_linked(links[nodes[index]], seen, near)
        index = _next(open_, index, size)
        if codes.shape[1]:
            for m in range(n):
                touched += codes[near[m], 0]
        if index < size:
            touched += links[nodes[index], 0] + links[nodes[index], links.shape[1] // 2]
        limit = pool[size - 1] if size == breadth else np.inf
        touched += _compare(space, near[:n], limit, distance)
        for m in range(n):
            if size < breadth or distance[m] < pool[size - 1]:
                new, size = _insert(pool, nodes, open_, size, distance[m], near[m])
                index = min(index, new)
            if distance[m] <= nearest[0]:
                _offer(nearest, rows, distance[m], first[near[m]])
        index = _next(open_, index, size)
    return touched


@njit(nogil=True, cache=True)
def walk(queries, nodes, first, graph, query_node, out, rows):
    """Find the k nearest nodes of each query as far as a walk of some breadth meets them.

    As :func:`scan`, but ``codes`` and ``line`` have a row for each node, and sums are compared.
    ``graph`` is (links, seeds, breadth): node i links to ``links[i]``, -1 after the last, and a
    walk begins at the nearest of the seeds. ``query_node`` is the node that each query is,
    neither found nor passed, as if it were not there; -1 if it is none. What is returned means
    nothing.
    """
    values, points = queries
    groups, offsets, widths, starts, codes, line, power, _ = nodes
    breadth = graph[2]
    joint = np.empty(starts[-1])
    pools = np.empty(breadth), np.empty(breadth, np.int64), np.empty(breadth, np.bool_)
    seen = np.empty((len(first) >> 6) + 1, np.uint64)
    touched = 0.0
    for i in range(len(out)):
        _fill_joint(values[i], groups, offsets, widths, starts, joint)
        seen[:] = 0
        _clear(out[i], rows[i])
        space = joint, starts, codes, points[i], line, power
        touched += _wander(space, first, graph, query_node[i], pools, seen, out[i], rows[i])
        _sort(out[i], rows[i])
    return touched
