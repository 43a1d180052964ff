"""A twin of the device in NumPy: what its kernels do, with loops that one can read."""

import numpy as np
import pytest

from tabweave.gpu.arrays import CAPACITY, NO_ROW


class CudaArray:
    """What another library calls an array on a device; NumPy may not read it by itself."""

    def __init__(self, cells):
        self.cells = np.asarray(cells)
        self.shape, self.ndim, self.dtype = self.cells.shape, self.cells.ndim, self.cells.dtype

    __cuda_array_interface__ = property(lambda self: self.cells.__array_interface__)

    def __len__(self):
        return len(self.cells)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("implicit conversion to a NumPy array is not allowed")


class DeviceArrays:
    """NumPy as the library of a device, which reads what lies on it."""

    def __getattr__(self, name):
        return getattr(np, name)

    def asarray(self, cells, dtype=None):
        return np.asarray(cells.cells if isinstance(cells, CudaArray) else cells, dtype)


class StandIn:
    """Takes the place of :class:`tabweave.gpu.arrays.Cuda`, and keeps what was launched."""

    xp, array = DeviceArrays(), CudaArray

    def __init__(self, shared_bytes=220 << 10):
        self.shared_bytes, self.memory = shared_bytes, 1 << 40
        self.launched = []

    def join(self, columns, sizes, out):
        joint = np.zeros(len(out), np.int64)
        for column, size in zip(columns, sizes, strict=True):
            joint = joint * size + column
        assert joint.max(initial=0) < 256
        out[:] = joint

    def count_pairs(self, codes, n_rows, jobs, joint, starts, totals):
        self.launched.append("count_pairs")
        sides = jobs.shape[1] - 1
        for number, (left, *others) in enumerate(jobs):
            assert sum(joint[left] * joint[h] for h in others if h >= 0) * 4 <= self.shared_bytes
            for side, right in enumerate(others):
                if right >= 0:
                    pair = codes[left, :n_rows].astype(np.int64) * joint[right]
                    start = starts[number * sides + side]
                    np.add.at(totals, start + pair + codes[right, :n_rows], np.uint64(1))

    def free_bytes(self):
        return self.memory

    def assign(self, rows, reach, labels, distances, costs):
        self.launched.append("assign")
        total = np.zeros((len(rows), reach.shape[1]))
        for column in rows.indices:
            total = total + reach[column]
        labels[:] = total.argmin(axis=1)
        distances[:] = total.min(axis=1)
        weighted = np.zeros((len(costs), 256))
        weighted.ravel()[: len(rows)] = rows.weight * distances
        costs[:] = weighted.cumsum(axis=1)[:, -1]

    def count_members(self, rows, labels, totals):
        for column in rows.indices:
            np.add.at(totals, (labels, column), rows.weight)

    def scan(self, layout, queries, limits, names, step):
        self.launched.append(("scan", step))
        assert len(limits) % (32 * layout.per_lane) == 0
        assert layout.first_entry[layout.n_shared] * 128 * layout.per_lane <= self.shared_bytes
        nodes = np.arange(0, len(layout), step)
        total = np.zeros((len(nodes), len(limits)), np.float32)
        for g, first in enumerate(layout.first_entry[:-1]):
            total += queries.tables[first + layout.codes[nodes, g]]
        for c in range(layout.line.shape[1]):
            if layout.has_products:
                total += queries.rounded[c] * layout.line[nodes, c][:, None]
                continue
            difference = queries.rounded[c] - layout.line[nodes, c][:, None]
            total += np.abs(difference) if layout.power == 1 else difference * difference
        found = np.zeros((len(limits), CAPACITY), np.int32)
        n_found = np.zeros(len(limits), np.uint32)
        for query, limit in enumerate(limits):
            near = nodes[total[:, query] <= limit]
            near = near if names is None else near[names[near] >= 0]
            n_found[query] = len(near)
            found[query, : min(len(near), CAPACITY)] = near[:CAPACITY]
        return found, n_found

    def rank(self, nodes, queries, found, n_found, names, k):
        self.launched.append("rank")
        distances = np.full((len(n_found), k), np.inf)
        rows = np.full((len(n_found), k), NO_ROW)
        for query in range(len(n_found)):
            near = found[query, : min(n_found[query], CAPACITY)]
            total = np.zeros(len(near))
            for g, group in enumerate(nodes.groups):
                code = nodes.codes[g, near].astype(np.int64)
                summed, digits = np.zeros(len(near)), []
                for a in group[group >= 0][::-1]:
                    digits.append((a, code % nodes.widths[a]))
                    code = code // nodes.widths[a]
                for a, digit in digits[::-1]:
                    summed = summed + queries.values[nodes.offsets[a] + digit, query]
                total = total + summed
            for c in range(nodes.line.shape[1]):
                difference = queries.points[c, query] - nodes.line[near, c]
                total = total + (np.abs(difference) if nodes.power == 1 else difference**2)
            total = np.sqrt(np.maximum(total, 0)) if nodes.root else total
            named = near.astype(np.int64) if names is None else names[near]
            order = np.lexsort((named, total))[:k]
            distances[query, : len(order)] = total[order]
            rows[query, : len(order)] = named[order]
        return distances, rows


@pytest.fixture
def stand_in():
    """A device without a device."""
    return StandIn()
