"""Local weights: around each row a column counts as much as it tells the classes there apart.

The nodes near a row, by the coordinates of their columns, and the classes of the training rows come
in; the nodes ranked anew go out, with the weights of the columns (Hastie and Tibshirani 1996).

The loops read ``columns``, a :class:`ColumnCoordinates` as a tuple; columns that are looked up come
before those that have coordinates only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tabweave._compat import in_threads, njit
from tabweave.columns.vocabulary import slices
from tabweave.neighbors.votes import Neighbors, TrainingTargets
from tabweave.space.scan import Queries, View


class ColumnCoordinates(NamedTuple):
    """Nodes as their columns see them.

    Attributes
    ----------
    codes : ndarray of shape (nodes, columns)
        The values of nodes in the columns that are looked up.
    offsets, points, starts : ndarray
        Where the values of each column begin, and the coordinates of all values, one after the
        other, and where those of each column begin.
    line : ndarray of shape (nodes, coordinates)
        What is not looked up.
    edges : ndarray
        Where the coordinates of each such column begin, and where the last ones end.
    widths : ndarray
        How many of these tell where a node is: those of missing cells come after them.
    """

    codes: np.ndarray
    offsets: np.ndarray
    points: np.ndarray
    starts: np.ndarray
    line: np.ndarray
    edges: np.ndarray
    widths: np.ndarray

    @classmethod
    def of_vectors(
        cls, vectors: np.ndarray, widths: Sequence[int], inner_widths: Sequence[int]
    ) -> ColumnCoordinates:
        """Look nothing up; of each column's coordinates, the inner ones tell where a node is."""
        none = np.zeros(1, np.int64)
        codes = np.zeros((len(vectors), 0), np.uint16)
        inner = np.array(inner_widths, np.int64)
        return cls(codes, none, np.zeros(0), none, vectors, column_edges(widths), inner)

    @classmethod
    def of_view(cls, view: View) -> ColumnCoordinates:
        """Look up what a search looks up."""
        columns = [view.table[part.names[0]] for part in view.values]
        sizes = [len(column.labels) for column in columns]
        narrow = np.uint16 if max(sizes, default=0) <= 1 << 16 else np.uint32
        codes = np.empty((len(view.nodes), len(columns)), narrow)
        for a, column_codes in enumerate(view.codes()):
            codes[:, a] = column_codes
        points = [
            part.points(column, view.unknown)[:-1].ravel()
            for part, column in zip(view.values, columns, strict=True)
        ]
        return cls(
            codes,
            column_edges(sizes),
            np.concatenate([np.zeros(0), *points]),
            column_edges([len(part) for part in points]),
            np.ascontiguousarray(view.nodes.line.T),
            column_edges(view.line_widths),
            np.array([part.width for part in view.lines], np.int64),
        )

    def reranked(
        self,
        neighbors: Neighbors,
        targets: TrainingTargets,
        queries: Queries,
        strength: float,
        scales: Any = 1.0,
    ) -> tuple[Neighbors, np.ndarray]:
        """Nodes by the distances around each row, and the weights of its columns.

        Squared distances of columns are multiplied by their ``scales`` first.
        """
        columns, classes = tuple(self), targets.classes
        shares = classes.indptr, classes.indices, classes.data
        squared, nodes = np.empty(neighbors.nodes.shape), np.empty_like(neighbors.nodes)
        weights = np.empty((len(nodes), self.codes.shape[1] + len(self.edges) - 1))

        def work(block: slice) -> None:
            before, numbers, local = (
                neighbors.squared[block],
                neighbors.nodes[block],
                weights[block],
            )
            class_shares(before, numbers, targets.sizes, shares, columns, 50, local)
            local[:] = 1 + strength * local
            local /= local.mean(axis=1, keepdims=True)
            after = np.empty(numbers.shape)
            weighted = local * scales
            local_distances(queries.arrays(block), columns, before, numbers, weighted, after)
            sort_lines(after, numbers, squared[block], nodes[block])

        in_threads(work, slices(len(nodes), 1, 128))
        return Neighbors(neighbors.query_rows, squared, nodes), weights


def column_edges(widths: Sequence[int]) -> np.ndarray:
    """Where the entries of each column begin, and where the last ones end."""
    return np.concatenate([[0], np.cumsum(widths, dtype=np.int64)]).astype(np.int64)


# -- distances ----------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def local_distances(queries, columns, squared, nodes, weights, out):
    """Set the squared distances of each query to some nodes, each column by its weight.

    Where ``squared`` is infinite there is no node.
    """
    values, points = queries
    codes, offsets, _, _, line, edges, _ = columns
    n_values = codes.shape[1]
    for i in range(len(nodes)):
        for m in range(nodes.shape[1]):
            out[i, m] = np.inf
            if squared[i, m] == np.inf:
                continue
            total, u = 0.0, nodes[i, m]
            for a in range(n_values):
                total += weights[i, a] * values[i, offsets[a] + codes[u, a]]
            for g in range(len(edges) - 1):
                part = _squared(points[i], line[u], edges[g], edges[g + 1])
                total += weights[i, n_values + g] * part
            out[i, m] = total


@njit(nogil=True, cache=True)
def sort_lines(distances, numbers, sorted_distances, sorted_numbers):
    """Sort each line by distance, equal ones as they stand: by insertion, as most are in order."""
    for i in range(len(distances)):
        for m in range(distances.shape[1]):
            distance, number, place = distances[i, m], numbers[i, m], m
            while place > 0 and sorted_distances[i, place - 1] > distance:
                sorted_distances[i, place] = sorted_distances[i, place - 1]
                sorted_numbers[i, place] = sorted_numbers[i, place - 1]
                place -= 1
            sorted_distances[i, place] = distance
            sorted_numbers[i, place] = number


@njit(nogil=True, cache=True)
def part_distances(points, line, nodes, edges, out):
    """Set the squared distances of each query to some nodes, column by column."""
    for i in range(len(nodes)):
        for m in range(nodes.shape[1]):
            for g in range(len(edges) - 1):
                out[i, m, g] = _squared(points[i], line[nodes[i, m]], edges[g], edges[g + 1])


@njit(nogil=True, cache=True, inline="always")
def _squared(one, other, begin, end):
    """Squared distance along some coordinates, by four sums at a time."""
    first = second = third = fourth = 0.0
    last_four = end - (end - begin) % 4
    for c in range(begin, last_four, 4):
        a, b = np.float64(one[c]) - other[c], np.float64(one[c + 1]) - other[c + 1]
        d, e = np.float64(one[c + 2]) - other[c + 2], np.float64(one[c + 3]) - other[c + 3]
        first += a * a
        second += b * b
        third += d * d
        fourth += e * e
    for c in range(last_four, end):
        a = np.float64(one[c]) - other[c]
        first += a * a
    return first + second + third + fourth


# -- what columns say of the classes --------------------------------------------------------------


@njit(nogil=True, cache=True)
def class_shares(squared, nodes, sizes, classes, columns, n_rows, out):
    """Set the share of each column's variance that lies between classes, less what chance gives.

    Looked at are the nearest nodes that hold ``n_rows`` rows; a row at squared distance d counts
    ``exp(-2 d / d_last)``. ``classes`` is (starts, numbers, shares): which classes a node's rows
    have. Of m classes and n rows, as weights leave them, chance gives ``(m - 1) / (n - 1)``.
    """
    codes, offsets, points, starts, line, edges, widths = columns
    n_values, n_lines, flat = codes.shape[1], line.shape[1], line.reshape(-1)
    # By loops: NumPy's functions and indices take numba as long to compile as all the rest.
    for i in range(len(nodes)):
        weight, repeat_rate = _node_weights(squared[i], nodes[i], sizes, n_rows)
        member, group, share, group_weight = _entries(nodes[i], weight, classes)
        chance = (len(group_weight) - 1) * repeat_rate / max(1 - repeat_rate, 1e-300)
        point = np.empty(len(member), np.int64)
        for a in range(out.shape[1]):
            out[i, a] = 0.0
            if len(group_weight) < 2 or chance >= 1:
                continue
            if a < n_values:
                width = (starts[a + 1] - starts[a]) // (offsets[a + 1] - offsets[a])
                for e in range(len(point)):
                    point[e] = starts[a] + width * codes[nodes[i, member[e]], a]
            else:
                width = widths[a - n_values]
                for e in range(len(point)):
                    point[e] = n_lines * nodes[i, member[e]] + edges[a - n_values]
            coordinates = points if a < n_values else flat
            between = _share_between(coordinates, point, width, group, share, group_weight)
            out[i, a] = max((between - chance) / (1 - chance), 0.0)


@njit(nogil=True, cache=True)
def _node_weights(squared, nodes, sizes, n_rows):
    """Weights of the nearest nodes, and how likely two draws by them are the same row."""
    weight = np.empty(_holding(squared, nodes, sizes, n_rows))
    farthest, total, repeat_rate = squared[len(weight) - 1], 0.0, 0.0
    for m in range(len(weight)):
        falls = math.exp(-2 * squared[m] / farthest) if farthest > 0 else 1.0
        weight[m] = sizes[nodes[m]] * falls
        total += weight[m]
    for m in range(len(weight)):
        weight[m] /= total
        repeat_rate += weight[m] * weight[m] / sizes[nodes[m]]
    return weight, repeat_rate


@njit(nogil=True, cache=True)
def _holding(squared, nodes, sizes, n_rows):
    """Count the nearest nodes that hold so many rows, with those as far as the last."""
    held, m = 0, 0
    while m < len(nodes) and squared[m] < np.inf:
        if held >= n_rows and squared[m] > squared[m - 1]:
            break
        held += sizes[nodes[m]]
        m += 1
    return m


@njit(nogil=True, cache=True)
def _entries(nodes, weight, classes):
    """List what each node gives to each class of its rows: node, class, weight; and their sums."""
    begin, number, share = classes
    n = 0
    for m in range(len(weight)):
        n += begin[nodes[m] + 1] - begin[nodes[m]]
    member, group, share_weight = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    group_class, group_weight = np.empty(n, np.int64), np.zeros(n)
    n = n_groups = 0
    for m in range(len(weight)):
        for e in range(begin[nodes[m]], begin[nodes[m] + 1]):
            g = 0
            while g < n_groups and group_class[g] != number[e]:
                g += 1
            group_class[g] = number[e]
            n_groups = max(n_groups, g + 1)
            member[n], group[n], share_weight[n] = m, g, weight[m] * share[e]
            group_weight[g] += share_weight[n]
            n += 1
    return member, group, share_weight, group_weight[:n_groups]


@njit(nogil=True, cache=True)
def _share_between(coordinates, point, width, group, share, group_weight):
    """Share of the variance of points that lies between their groups."""
    sums, squares = np.zeros((len(group_weight), width)), np.zeros(width)
    for m in range(1, len(point)):
        if point[m] == point[0]:
            continue
        for c in range(width):
            z = coordinates[point[m] + c] - coordinates[point[0] + c]  # so equal points are at 0
            sums[group[m], c] += share[m] * z
            squares[c] += share[m] * z * z
    between = variance = total = 0.0
    for c in range(width):
        mean = 0.0
        for g in range(len(group_weight)):
            mean += sums[g, c]
            between += sums[g, c] ** 2 / group_weight[g]
        between -= mean * mean
        variance += squares[c] - mean * mean
        total += squares[c]
    return min(between / variance, 1.0) if variance > 1e-12 * total else 0.0
