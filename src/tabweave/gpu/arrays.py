"""Arrays on a device: the switch, what the kernels read, and the searches and counts they make.

``xp`` is CuPy on a device and NumPy in the tests, where twins of the kernels stand in for them:
everything here but the kernels themselves runs without a device.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import isqrt, prod
from typing import Any

import numpy as np

from tabweave._compat import require
from tabweave.gpu.kernels import ASSIGN, JOIN, MEMBERS, PAIRS, RANK, SCAN

# Shared memory of a block, by the generation of the device; 64 KB for those before.
SHARED_BYTES = {8: 96 << 10, 9: 220 << 10, 10: 220 << 10, 12: 96 << 10}
TILE_BYTES = 24 << 10  # of the nodes that a block of the scan reads at a time
CAPACITY = 4096  # nodes that are collected for a query before it is ranked
NO_ROW = np.iinfo(np.int64).max
# Comparisons of rows with rows or centres below which a device does not pay: 2 ms of two cores.
MIN_DEVICE_PAIRS = 1 << 21
COST_ROWS = 256  # Rows whose costs are summed up before these sums are, by a block of threads.

_default = {"device": os.environ.get("TABWEAVE_DEVICE", "cpu")}
_chosen: ContextVar[str | None] = ContextVar("device", default=None)


# -- the switch ----------------------------------------------------------------------------------


def get_config() -> dict[str, str]:
    """The settings of this library in the calling thread.

    Examples
    --------
    >>> import tabweave
    >>> tabweave.get_config()
    {'device': 'cpu'}
    """
    return {"device": _chosen.get() or _default["device"]}


def set_config(*, device: str) -> None:
    """Choose where loops over rows run, for all threads.

    Parameters
    ----------
    device : {"cpu", "gpu"}
        ``"gpu"`` counts pairs of values and searches for nearest rows on a CUDA device, where
        that is worth it, with the answers of the CPU. It needs CuPy and a device, and raises
        without. The environment variable ``TABWEAVE_DEVICE`` sets what holds at first.
    """
    _default["device"] = _checked(device)


@contextmanager
def config_context(*, device: str) -> Iterator[None]:
    """Choose where loops over rows run, within a ``with`` block.

    Parameters
    ----------
    device : {"cpu", "gpu"}
        As in :func:`tabweave.set_config`.

    Examples
    --------
    >>> import tabweave
    >>> with tabweave.config_context(device="cpu"):
    ...     tabweave.get_config()
    {'device': 'cpu'}
    """
    token = _chosen.set(_checked(device))
    try:
        yield
    finally:
        _chosen.reset(token)


def _checked(device: str) -> str:
    if device not in ("cpu", "gpu"):
        raise ValueError(f"expected device to be 'cpu' or 'gpu', got {device!r}")
    if device == "gpu":
        _cuda()  # raises where there is none
    return device


def device() -> Cuda | None:
    """The device that was chosen; None for the CPU."""
    name = get_config()["device"]
    if name == "cpu":
        return None
    if name != "gpu":
        raise ValueError(f"expected TABWEAVE_DEVICE to be 'cpu' or 'gpu', got {name!r}")
    return _cuda()


@cache
def _cuda() -> Cuda:
    """The CUDA device that CuPy works on."""
    cupy = require("cupy", "gpu")
    try:
        major = cupy.cuda.Device().compute_capability[:-1]
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(
            f"expected a CUDA device, got none ({error}); without one, choose "
            "tabweave.set_config(device='cpu') or unset TABWEAVE_DEVICE"
        ) from error
    return Cuda(cupy, SHARED_BYTES.get(int(major), 64 << 10))


class Cuda:
    """A device: its arrays, and the kernels, compiled when they are first launched."""

    def __init__(self, xp: Any, shared_bytes: int) -> None:
        self.xp, self.shared_bytes = xp, shared_bytes
        self._compiled: dict[tuple[Any, ...], Any] = {}

    def _kernel(self, source: str, name: str, **constants: int | str) -> Any:
        key = (name, *constants.items())
        if key not in self._compiled:
            options = [f"-D{constant}={value}" for constant, value in constants.items()]
            kernel = self.xp.RawKernel(source, name, ("-std=c++17", *options))
            kernel.max_dynamic_shared_size_bytes = self.shared_bytes
            self._compiled[key] = kernel
        return self._compiled[key]

    def join(self, columns: Sequence[Any], sizes: Sequence[int], out: Any) -> None:
        """Set joint codes of some columns, in one pass."""
        xp, n_rows = self.xp, len(out)
        if not columns:
            return
        bytes_ = [xp.ascontiguousarray(column.astype(np.uint8, copy=False)) for column in columns]
        aligned = [c if c.data.ptr % 16 == 0 else c.copy() for c in bytes_]
        kernel = self._kernel(JOIN, "join", COLUMNS=len(columns))
        pointers = xp.asarray([c.data.ptr for c in aligned], np.uint64)
        arguments = pointers, xp.asarray(sizes, np.int32), np.int64(n_rows), out
        kernel((-(-n_rows // 4096),), (256,), arguments)

    def count_pairs(
        self,
        codes: Any,
        n_rows: int,
        jobs: np.ndarray,
        joint: np.ndarray,
        starts: np.ndarray,
        totals: Any,
    ) -> None:
        """Add how often joint codes of two groups meet to ``totals``; see ``PAIRS``."""
        threads, sides = 512, jobs.shape[1] - 1
        kernel = self._kernel(PAIRS, "count_pairs", THREADS=threads, SIDES=sides)
        cells = [sum(int(joint[g] * joint[h]) for h in others if h >= 0) for g, *others in jobs]
        xp = self.xp
        n_blocks = max(1, min(-(-n_rows // (threads * 64)), -(-132 * 16 // len(jobs))))
        sizes = np.int64(codes.strides[0]), np.int64(n_rows)
        work = (xp.asarray(jobs, np.int32), xp.asarray(joint, np.int32), xp.asarray(starts))
        arguments = (codes, *sizes, *work, totals)
        kernel((n_blocks, len(jobs)), (threads,), arguments, shared_mem=4 * max(cells))

    def free_bytes(self) -> int:
        """How much memory of the device is free."""
        self.xp.get_default_memory_pool().free_all_blocks()
        return int(self.xp.cuda.Device().mem_info[0])

    def assign(self, rows: DeviceRows, reach: Any, labels: Any, distances: Any, costs: Any) -> None:
        """Set the nearest centre of each row; see ``ASSIGN``."""
        n_values, n_centers = reach.shape
        shared = 8 * (COST_ROWS + reach.size)
        in_shared = shared <= self.shared_bytes
        kernel = self._kernel(
            ASSIGN,
            "assign",
            THREADS=COST_ROWS,
            COLUMNS=len(rows.indices),
            CENTERS=n_centers,
            IN_SHARED=int(in_shared),
        )
        arguments = rows.indices, np.int64(len(rows)), reach, np.int32(n_values), rows.weight
        shared = shared if in_shared else 8 * COST_ROWS
        kernel(
            (len(costs),), (COST_ROWS,), (*arguments, labels, distances, costs), shared_mem=shared
        )

    def count_members(self, rows: DeviceRows, labels: Any, totals: Any) -> None:
        """Add up the values of each cluster's rows; see ``MEMBERS``."""
        n_clusters, n_values = totals.shape
        in_shared = totals.nbytes <= self.shared_bytes
        kernel = self._kernel(
            MEMBERS,
            "count_members",
            THREADS=512,
            COLUMNS=len(rows.indices),
            IN_SHARED=int(in_shared),
        )
        n_blocks = max(1, min(-(-len(rows) // 512), 132 * 4))
        sizes = np.int32(n_values), np.int32(n_clusters)
        arguments = rows.indices, np.int64(len(rows)), rows.weight, labels, *sizes, totals
        shared = totals.nbytes if in_shared else 0
        kernel((n_blocks,), (512,), arguments, shared_mem=shared)

    def scan(
        self, layout: ScanLayout, queries: DeviceQueries, limits: Any, names: Any, step: int
    ) -> tuple[Any, Any]:
        """Nodes within the limit of each query, and how many there are; see ``SCAN``."""
        xp, n_queries = self.xp, len(limits)
        n_nodes = -(-len(layout) // step)
        held = layout.per_lane * layout.line.shape[1]  # numbers that a lane keeps in registers
        threads = 1024 if held <= 24 else 512 if held <= 96 else 384 if held <= 128 else 256
        tile = layout.tile_nodes
        kernel = self._kernel(
            SCAN,
            "scan",
            THREADS=threads,
            TILE=tile,
            PER_LANE=layout.per_lane,
            GROUPS=len(layout.groups),
            GROUPS_PADDED=layout.codes.shape[1],
            SHARED_GROUPS=layout.n_shared,
            SHARED_ENTRIES=int(layout.first_entry[layout.n_shared]),
            COORDINATES=layout.line.shape[1],
            POWER=layout.power,
            PRODUCTS=int(layout.has_products),
            CAPACITY=CAPACITY,
        )
        found = xp.empty((n_queries, CAPACITY), np.int32)
        n_found = xp.zeros(n_queries, np.uint32)
        n_blocks = n_queries // (32 * layout.per_lane)
        n_slabs = max(1, min(-(-132 * 4 // n_blocks), -(-n_nodes // tile)))
        named = (0 if names is None else names, np.int64(n_nodes), np.int64(step))
        asked = queries.tables, queries.rounded, limits, np.int64(n_queries)
        first_entry = xp.asarray(layout.first_entry, np.int32)
        arguments = (*asked, layout.codes, layout.line, *named, first_entry, found, n_found)
        entries = 128 * layout.per_lane * int(layout.first_entry[layout.n_shared])
        shared = entries + 2 * tile * layout.node_bytes
        kernel((n_blocks, n_slabs), (threads,), arguments, shared_mem=shared)
        return found, n_found

    def rank(
        self,
        nodes: DeviceNodes,
        queries: DeviceQueries,
        found: Any,
        n_found: Any,
        names: Any,
        k: int,
    ) -> tuple[Any, Any]:
        """The k nearest of what was found for each query; see ``RANK``."""
        xp, n_queries = self.xp, len(n_found)
        kernel = self._kernel(
            RANK,
            "rank",
            THREADS=256,
            CODE={1: "unsigned char", 2: "unsigned short", 4: "unsigned int"}.get(
                nodes.codes.dtype.itemsize, "unsigned long long"
            ),
            GROUPS=len(nodes.groups),
            DEPTH=nodes.groups.shape[1],
            COORDINATES=nodes.line.shape[1],
            POWER=nodes.power,
            ROOT=int(nodes.root),
            CAPACITY=CAPACITY,
            NO_ROW=f"{NO_ROW}LL",
        )
        distances, rows = xp.empty((n_queries, k)), xp.empty((n_queries, k), np.int64)
        asked = queries.values, queries.points, np.int64(n_queries)
        compared = nodes.codes, nodes.line, np.int64(len(nodes))
        layout = nodes.groups, nodes.offsets, nodes.widths, 0 if names is None else names
        arguments = (*asked, *compared, *layout, found, n_found, np.int32(k), distances, rows)
        kernel((n_queries,), (256,), arguments, shared_mem=16 * CAPACITY)
        return distances, rows


# -- columns that lie on a device ------------------------------------------------------------------


def lies_on_device(array: Any) -> bool:
    """Whether an array of some library lies on a CUDA device."""
    if isinstance(array, DeviceColumn) or getattr(array, "__cuda_array_interface__", None):
        return True
    where = getattr(array, "__dlpack_device__", None) if hasattr(array, "ndim") else None
    cuda, managed = 2, 13  # as DLPack numbers them
    return where is not None and where()[0] in (cuda, managed)


def device_columns(array: Any) -> list[Any]:
    """The columns of an array on a device: whole numbers and truths stay there, others come.

    One column of an array of one dimension.
    """
    chosen = device()
    if chosen is None:
        raise TypeError(
            f"expected rows in memory, got a {type(array).__module__}.{type(array).__name__} on a "
            "CUDA device; choose tabweave.set_config(device='gpu'), or copy it to the host"
        )
    if isinstance(array, DeviceColumn):
        return [array]
    is_cuda = hasattr(array, "__cuda_array_interface__")
    array = chosen.xp.asarray(array) if is_cuda else chosen.xp.from_dlpack(array)
    if array.ndim > 2:
        raise ValueError(f"expected rows of one or two dimensions, got {array.ndim}")
    columns = [array] if array.ndim == 1 else [array[:, a] for a in range(array.shape[1])]
    if array.dtype.kind in "biu":
        return [DeviceColumn(column) for column in columns]
    return [on_host(column) for column in columns]


class DeviceColumn(np.lib.mixins.NDArrayOperatorsMixin):
    """A column that lies on a device; what only NumPy can do is done with a copy on the host.

    Parameters
    ----------
    array : array
        The cells.
    """

    __hash__ = None  # type: ignore[assignment]  # as of arrays

    def __init__(self, array: Any) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @property
    def dtype(self) -> np.dtype:
        """The type of the cells."""
        return np.dtype(self.array.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells."""
        return tuple(self.array.shape)

    @cached_property
    def copy_on_host(self) -> np.ndarray:
        """The cells in memory, copied when they are first asked for."""
        return on_host(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.copy_on_host, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        cells = [np.asarray(x) if isinstance(x, DeviceColumn) else x for x in inputs]
        return getattr(ufunc, method)(*cells, **options)

    def __getitem__(self, rows: Any) -> np.ndarray:
        return self.copy_on_host[rows]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("array", "copy_on_host"):
            raise AttributeError(name)
        return getattr(self.copy_on_host, name)

    def encoded(self) -> tuple[DeviceColumn, list[Any]] | None:
        """Codes of the distinct cells, on the device, and these; None where they spread far."""
        xp, cells = device_of(self), self.array
        if cells.dtype.kind == "b":
            return DeviceColumn(cells.view(xp.uint8)), [False, True]
        low, high = (int(end) for end in (cells.min(), cells.max())) if len(cells) else (0, -1)
        width = high - low + 1
        if not 0 < width <= 1 << 16:
            return None
        seen = xp.zeros(width, bool)
        shift = xp.uint64(low) if cells.dtype == np.uint64 else xp.int64(low)
        for block in _row_blocks(len(cells)):
            seen[(cells[block] - shift).astype(np.int64)] = True
        labels = [low + int(v) for v in np.flatnonzero(on_host(seen))]
        codes_type = np.min_scalar_type(len(labels) - 1)
        if low == 0 and len(labels) == width and cells.dtype == codes_type:
            return self, labels  # they are codes already
        table = (xp.cumsum(seen) - 1).astype(codes_type)
        codes = xp.empty(len(cells), codes_type)
        for block in _row_blocks(len(cells)):
            codes[block] = table[(cells[block] - shift).astype(np.int64)]
        return DeviceColumn(codes), labels


def device_of(column: DeviceColumn) -> Any:
    """What computes where a column lies: CuPy."""
    chosen = device()
    return np if chosen is None else chosen.xp


def bincount(codes: Any, n_codes: int) -> np.ndarray:
    """How often each code occurs, counted where codes lie."""
    if not isinstance(codes, DeviceColumn):
        return np.bincount(codes, minlength=n_codes)
    xp = device_of(codes)
    out = xp.zeros(n_codes, np.int64)
    for block in _row_blocks(len(codes)):
        out += xp.bincount(codes.array[block], minlength=n_codes)
    return on_host(out)


def pair_histogram(left: DeviceColumn, right: Any, shape: tuple[int, int]) -> np.ndarray:
    """How often each two codes of columns meet, counted where the first lies."""
    xp = device_of(left)
    other = right.array if isinstance(right, DeviceColumn) else xp.asarray(right)
    out = xp.zeros(shape[0] * shape[1], np.int64)
    for block in _row_blocks(len(left)):
        pairs = left.array[block].astype(np.int64) * shape[1] + other[block]
        out += xp.bincount(pairs, minlength=len(out))
    return on_host(out).reshape(shape)


def look_up(table: np.ndarray, codes: Any, out: Any) -> None:
    """Set each row of an array on a device to the row of a table that its code says."""
    chosen = device()
    assert chosen is not None
    rows = chosen.xp.asarray(table, out.dtype)
    codes = codes.array if isinstance(codes, DeviceColumn) else chosen.xp.asarray(codes)
    for block in _row_blocks(len(out)):
        out[block] = rows[codes[block]]


def as_caller_has(out: Any, array: Any) -> Any:
    """An array on a device as the library of another has it."""
    library = sys.modules[type(array).__module__.partition(".")[0]]
    from_dlpack = getattr(library, "from_dlpack", None)
    return out if from_dlpack is None or isinstance(out, type(array)) else from_dlpack(out)


# -- nearest nodes -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DeviceNodes:
    """Nodes on a device, as the CPU has them: joint codes, and coordinates node by node."""

    widths: Any
    offsets: Any
    groups: Any
    codes: Any
    line: Any
    power: int
    root: bool
    layout: ScanLayout

    @classmethod
    def of(cls, device: Any, nodes: Any) -> DeviceNodes | None:
        """Copy nodes to a device; None for too many columns, or if float32 does not hold them."""
        xp, (n_coordinates, n_nodes) = device.xp, nodes.line.shape
        largest = max(nodes.line.max(initial=0.0), -nodes.line.min(initial=0.0))
        if n_coordinates > 128 or not largest < 1e15 or n_nodes > np.iinfo(np.int32).max:
            return None
        if nodes.widths.max(initial=0) > 1 << 16:  # joint values are two bytes
            return None
        codes, line = xp.asarray(nodes.codes), xp.empty((n_nodes, n_coordinates))
        for block in _row_blocks(n_nodes):
            line[block] = xp.asarray(nodes.line[:, block]).T
        offsets = np.concatenate([[0], np.cumsum(nodes.widths)])
        layout = ScanLayout.of(device, nodes, codes, line)
        if 8 * layout.node_bytes > TILE_BYTES:
            return None
        widths, first = xp.asarray(nodes.widths, np.int32), xp.asarray(offsets, np.int32)
        groups = xp.asarray(nodes.groups, np.int32)
        return cls(widths, first, groups, codes, line, nodes.power, nodes.root, layout)

    def __len__(self) -> int:
        return len(self.line)


def node_blocks(device: Any, nodes: Any) -> list[slice]:
    """Nodes cut into runs, each of which fits the memory that is free on a device.

    Of a node it holds the codes, the coordinates in float64, and both as the scan reads them.
    """
    n_columns, n_coordinates = len(nodes.widths), len(nodes.line)
    node_bytes = nodes.codes.itemsize * len(nodes.codes) + 8 * n_coordinates
    node_bytes += 2 * (n_columns + 8) + 4 * (n_coordinates + 4)
    fitting = int(device.free_bytes() * 0.75) // node_bytes  # the rest is for queries
    n_blocks = max(1, -(-len(nodes) // max(1, min(fitting, np.iinfo(np.int32).max))))
    edges = [len(nodes) * i // n_blocks for i in range(n_blocks + 1)]
    return [slice(first, last) for first, last in pairwise(edges)]


def _row_blocks(n_rows: int, block_rows: int = 1 << 22) -> list[slice]:
    """Rows that are worked on at a time: few enough for columns of them beside what is kept."""
    return [slice(i, min(i + block_rows, n_rows)) for i in range(0, n_rows, block_rows)]


@dataclass(frozen=True, eq=False)
class ScanLayout:
    """Nodes as the scan reads them: columns joined to as few lookups as shared memory holds.

    Attributes
    ----------
    groups : list of lists of int
        Columns that are looked up together; the first ``n_shared`` in shared memory.
    first_entry : ndarray
        Where the joint values of each group begin.
    codes : array of shape (nodes, groups, padded to a multiple of eight)
        Joint values.
    line : array of shape (nodes, coordinates, padded to a multiple of four)
        Coordinates less ``centre``, as float32.
    largest : array
        The largest coordinate, in size, along each axis.
    has_products : bool
        Whether ``(x - y)²`` is added as ``-2xy``, half the work: the squares of ``y`` are the last
        coordinate, less what rounding may take, and those of ``x`` go into the limit.
    per_lane : {1, 2}
        Queries of a lane: two share what is read of a node.
    """

    groups: list[list[int]]
    n_shared: int
    first_entry: np.ndarray
    parts: np.ndarray
    codes: Any
    line: Any
    centre: Any
    largest: Any
    power: int
    has_products: bool
    per_lane: int

    @classmethod
    def of(cls, device: Any, nodes: Any, joint: Any, line: Any) -> ScanLayout:
        """Join columns, and round coordinates less their mean."""
        xp, (n_nodes, n_coordinates) = device.xp, line.shape
        per_lane = 2 if 0 < n_coordinates <= 64 else 1
        budget = (device.shared_bytes - 2 * TILE_BYTES) // (128 * per_lane)
        groups, n_shared = join_columns(nodes.widths.tolist(), budget)
        sizes = [prod(int(nodes.widths[a]) for a in group) for group in groups]
        first_entry = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        codes = xp.zeros((n_nodes, -(-len(groups) // 8) * 8), np.uint16)
        centre = line.mean(axis=0) if n_coordinates and n_nodes else xp.zeros(n_coordinates)
        has_products = nodes.power == 2 and n_coordinates >= 24  # fewer are as fast
        width = n_coordinates + has_products
        rounded = xp.zeros((n_nodes, -(-width // 4) * 4), np.float32)
        largest = xp.zeros(rounded.shape[1], np.float32)
        for block in _row_blocks(n_nodes):
            columns = _columns(nodes, joint[:, block])
            for g, group in enumerate(groups):
                code = xp.zeros(block.stop - block.start, np.int64)
                for a in group:
                    code = code * int(nodes.widths[a]) + columns[a]
                codes[block, g] = code
            centred = line[block] - centre
            rounded[block, :n_coordinates] = centred
            if has_products:
                error = rounding(len(groups) + n_coordinates)
                rounded[block, n_coordinates] = (centred * centred).sum(axis=1) * (1 - error)
            largest = xp.maximum(largest, xp.abs(rounded[block]).max(axis=0))
        parts = _parts(groups, nodes.widths, sizes)
        shape = groups, n_shared, first_entry, parts, codes, rounded
        return cls(*shape, centre, largest, nodes.power, has_products, per_lane)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def node_bytes(self) -> int:
        """What is read of a node."""
        return 2 * int(self.codes.shape[1]) + 4 * int(self.line.shape[1])

    @property
    def tile_nodes(self) -> int:
        """How many nodes a block reads at a time."""
        return max(8, min(1024, TILE_BYTES // max(1, self.node_bytes) // 32 * 32))


def rounding(n_terms: int) -> float:
    """Share of their sizes by which a float32 sum of so many products may be off, inputs rounded.

    One unit a term for adding it, and eight for what is rounded before and after.
    """
    return (n_terms + 8) * 2.0**-24 * 1.01


def join_columns(widths: Sequence[int], budget: int) -> tuple[list[list[int]], int]:
    """Groups of columns with at most ``budget`` joint values in all, and how many these are.

    The two smallest are joined while that fits: each lookup less is bought with the fewest values.
    Columns that do not fit even alone follow, each a group.

    Examples
    --------
    >>> join_columns([3, 2, 1000, 4], budget=20)
    ([[3], [1, 0], [2]], 2)
    """
    order = sorted(range(len(widths)), key=widths.__getitem__)
    fitting = np.cumsum([widths[a] for a in order]) <= budget
    heap = [(widths[a], [a]) for a, fits in zip(order, fitting, strict=True) if fits]
    heapify(heap)
    total = sum(size for size, _ in heap)
    while len(heap) > 1:
        (one, left), (other, right) = heappop(heap), heappop(heap)
        if total + one * other - one - other > budget or one * other > 1 << 16:
            heappush(heap, (one, left))
            heappush(heap, (other, right))
            break
        total += one * other - one - other
        heappush(heap, (one * other, left + right))
    groups = [group for _, group in sorted(heap)]
    return groups + [[a] for a, fits in zip(order, fitting, strict=True) if not fits], len(groups)


def _columns(nodes: Any, joint: Any) -> dict[int, Any]:
    """The values of each column, from joint codes."""
    out = {}
    for g, group in enumerate(nodes.groups.tolist()):
        code = joint[g].astype(np.int64)
        for a in reversed([a for a in group if a >= 0]):
            out[a] = code % int(nodes.widths[a])
            code = code // int(nodes.widths[a])
    return out


def _parts(groups: list[list[int]], widths: np.ndarray, sizes: list[int]) -> np.ndarray:
    """For each joint value, the values of columns that it is made of, padded with -1."""
    offsets = np.concatenate([[0], np.cumsum(widths)])
    out = np.full((sum(sizes), max(map(len, groups), default=0)), -1, np.int64)
    start = 0
    for group, size in zip(groups, sizes, strict=True):
        digits = np.unravel_index(np.arange(size), [int(widths[a]) for a in group])
        for c, (a, digit) in enumerate(zip(group, digits, strict=True)):
            out[start : start + size, c] = offsets[a] + digit
        start += size
    return out


@dataclass(frozen=True, eq=False)
class DeviceQueries:
    """Queries on a device, padded to full warps: exact, and as the scan reads them.

    Attributes
    ----------
    values, points : array of shape (values, queries) and (coordinates, queries)
        What queries pay for each value, and their coordinates.
    tables, rounded : the same for joint values, and less the centre, as float32
    norms, least : array of shape (queries,)
        The squared length of coordinates less the centre, and the least that columns add.
    slack, share : array of shape (queries,)
        What rounding may take from the root of what coordinates add (from the sum itself for
        ``power=1``), and what it may take from what columns add.
    """

    values: Any
    points: Any
    tables: Any
    rounded: Any
    norms: Any
    least: Any
    slack: Any
    share: Any

    @classmethod
    def of(
        cls, device: Any, nodes: DeviceNodes, values: np.ndarray, points: np.ndarray
    ) -> DeviceQueries:
        """Copy queries to a device, and find how far float32 may be off for each."""
        xp, layout = device.xp, nodes.layout
        n_queries = -(-len(points) // (32 * layout.per_lane)) * 32 * layout.per_lane
        values, points = (_padded(xp, rows, n_queries) for rows in (values, points))
        tables = xp.zeros((len(layout.parts), n_queries), np.float64)
        for part in layout.parts.T:
            known = part >= 0
            tables += values[xp.asarray(np.where(known, part, 0))] * xp.asarray(known)[:, None]
        least, share = xp.zeros(n_queries), xp.zeros(n_queries)
        for first, last in zip(layout.first_entry, layout.first_entry[1:], strict=False):
            least += tables[first:last].min(axis=0)
            share += xp.abs(tables[first:last]).max(axis=0)
        share *= rounding(len(layout.groups) + len(points))
        centred = points - layout.centre[:, None]
        norms = (centred * centred).sum(axis=0)
        rounded = xp.zeros((layout.line.shape[1], n_queries), np.float32)
        rounded[: len(points)] = -2 * centred if layout.has_products else centred
        if layout.has_products:
            rounded[len(points)] = 1
        error = 2.0**-22 * (xp.abs(rounded) + layout.largest[:, None]).astype(np.float64)
        slack = error.sum(axis=0) if nodes.power == 1 else xp.sqrt((error**2).sum(axis=0))
        return cls(values, points, tables.astype(np.float32), rounded, norms, least, slack, share)

    def limits(self, nodes: DeviceNodes, kth: Any, xp: Any) -> Any:
        """The most that the scan can make of a sum of at most ``kth``."""
        is_found = xp.isfinite(kth)
        total = xp.where(is_found, kth, 0)
        total = total**2 * (1 + 2.0**-50) if nodes.root else total
        error = rounding(len(nodes.layout.groups) + len(self.points))
        reach = xp.maximum(total - self.least, 0)
        if nodes.layout.has_products:
            add = (error - 1) * self.norms
        elif nodes.power == 1:
            add = self.slack
        else:
            add = (2 * xp.sqrt(reach) + self.slack) * self.slack
        limit = total + add + self.share + error * (xp.abs(total) + reach)
        limit = xp.nextafter(limit.astype(np.float32), np.float32(np.inf))
        return xp.where(is_found, limit, np.float32(np.inf))


def _padded(xp: Any, rows: np.ndarray, n_rows: int) -> Any:
    """Rows as columns of a device's array, zeros where there are no more."""
    out = xp.zeros((rows.shape[1], n_rows))
    out[:, : len(rows)] = xp.asarray(np.ascontiguousarray(rows)).T
    return out


def nearest(
    device: Any,
    nodes: DeviceNodes,
    values: Callable[[slice], np.ndarray],
    points: np.ndarray,
    k: int,
    names: np.ndarray | None,
    kth: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The k nearest nodes of each query, and which queries are left: too far, too many ties.

    The k-th distance among some nodes bounds that among all: of ever more nodes, those within the
    bound are collected in float32, rounding included, and ranked in float64.

    Parameters
    ----------
    device : Cuda
        Where.
    nodes : DeviceNodes
        Who is found.
    values, points
        As in :class:`tabweave.space.scan.Queries`.
    k : int
        How many, at most a quarter of ``CAPACITY``.
    names : ndarray, optional
        What each node is called in the answer, -1 where it may not be found.
    kth : ndarray, optional
        How far the k-th of other nodes is from each query: farther ones need not be found.
    """
    n_queries = len(points)
    out, rows = np.empty((n_queries, k)), np.empty((n_queries, k), np.int64)
    too_far = ~(np.abs(points).max(axis=1, initial=0) < 1e15)  # their squares are no float32
    points = np.where(too_far[:, None], 0.0, points)
    unfinished = np.zeros(n_queries, bool)
    called = None if names is None else device.xp.asarray(names)
    n_values = len(nodes.layout.parts) + int(nodes.layout.parts.max(initial=0))
    size = max(64, min(1 << 14, (1 << 28) // max(1, n_values)))
    for start in range(0, n_queries, size):
        block = slice(start, min(start + size, n_queries))
        queries = DeviceQueries.of(device, nodes, values(block), points[block])
        bounds = None if kth is None else kth[block]
        answer = _nearest(device, nodes, queries, block.stop - start, k, called, bounds)
        for array, part in zip((out, rows, unfinished), answer, strict=True):
            array[block] = on_host(part[: block.stop - start])
    return out, rows, unfinished | too_far


def _nearest(
    device: Any,
    nodes: DeviceNodes,
    queries: DeviceQueries,
    n_queries: int,
    k: int,
    names: Any,
    kth: np.ndarray | None = None,
) -> tuple[Any, Any, Any]:
    """Collect and rank among ever more nodes; among all at once where their k-th is bounded."""
    xp = device.xp
    ratio, step = max(2, min(32, CAPACITY // (4 * k))), 1
    while len(nodes) // step > CAPACITY // 2:
        step *= ratio
    limits = xp.full(queries.values.shape[1], np.inf, np.float32)
    if kth is not None and np.isfinite(kth).all():
        bounds, step = xp.zeros(len(limits)), 1
        bounds[:n_queries] = xp.asarray(kth)
        limits = queries.limits(nodes, bounds, xp)
    limits[n_queries:] = -np.inf  # those that fill a warp look for nothing
    tries = 0
    while True:
        found, n_found = device.scan(nodes.layout, queries, limits, names, step)
        distances, rows = device.rank(nodes, queries, found, n_found, names, k)
        too_many = n_found > CAPACITY
        if step == 1 and (tries == 2 or not bool(too_many.any())):
            return distances, rows, too_many
        tries += step == 1  # the k-th of those collected bounds it closer
        limits = xp.minimum(limits, queries.limits(nodes, distances[:, -1], xp))
        step = max(1, step // ratio)


def on_host(array: Any) -> np.ndarray:
    """An array of a device as one of NumPy."""
    return array if isinstance(array, np.ndarray) else array.get()


# -- clusters ------------------------------------------------------------------------------------


class DeviceRows:
    """Rows of categories on a device, their nearest centres, and what these have of each value.

    Parameters
    ----------
    device : Cuda
        Where.
    indices : ndarray of shape (rows, columns)
        The values of each row, all columns numbered in one sequence.
    weight : ndarray
        How often each row counts: whole numbers.
    """

    def __init__(self, device: Any, indices: np.ndarray, weight: np.ndarray) -> None:
        xp, n_rows = device.xp, len(indices)
        self.device, self.weight = device, xp.asarray(weight, np.float64)
        self.indices = xp.ascontiguousarray(xp.asarray(indices, np.int32).T)
        self._labels, self._distances = xp.zeros(n_rows, np.int32), xp.zeros(n_rows)

    def __len__(self) -> int:
        return len(self.weight)

    @staticmethod
    def holds(weight: np.ndarray) -> bool:
        """Whether sums of weights do not depend on the order in which they are added."""
        return bool((weight == np.floor(weight)).all() and weight.sum() < 2**53)

    def assign(self, reach: np.ndarray) -> float:
        """Let each row join its nearest centre; what they pay in all, weighted."""
        xp = self.device.xp
        costs = xp.zeros(-(-len(self) // COST_ROWS))
        self.device.assign(self, xp.asarray(reach), self._labels, self._distances, costs)
        return float(np.cumsum(on_host(costs))[-1])

    def assigned(self) -> tuple[np.ndarray, np.ndarray]:
        """The centre of each row, and how far it is."""
        return on_host(self._labels).astype(np.int64), on_host(self._distances).copy()

    def move(self, labels: np.ndarray) -> None:
        """Let rows join other centres."""
        self._labels[:] = self.device.xp.asarray(labels, np.int32)

    def histogram(self, n_clusters: int, n_values: int) -> np.ndarray:
        """How often each value occurs in each cluster."""
        totals = self.device.xp.zeros((n_clusters, n_values))
        self.device.count_members(self, self._labels, totals)
        return on_host(totals)


class DevicePoints:
    """Points on a device, as k-means reads them.

    Parameters
    ----------
    device : Cuda
        Where.
    points, weight : ndarray
        The points, and how often each counts.
    """

    def __init__(self, device: Any, points: np.ndarray, weight: np.ndarray) -> None:
        self.device, self.host_weight = device, np.asarray(weight, np.float64)
        self.points, self.weight = device.xp.asarray(points), device.xp.asarray(self.host_weight)
        self.norms = (self.points * self.points).sum(axis=1)
        self.variance = float(self.points.var(axis=0).mean())

    def first_centers(self, n_clusters: int, random_state: Any) -> Any:
        """Centres as scikit-learn draws them: greedy k-means++ [Arthur and Vassilvitskii 2007].

        Of some points, drawn by their squared distance to the nearest centre, that which lowers
        the sum of these most.
        """
        xp, points, weight = self.device.xp, self.points, self.weight
        share = self.host_weight / self.host_weight.sum()
        drawn = int(random_state.choice(len(points), p=share))
        centers, n_drawn = [points[drawn]], 2 + int(np.log(n_clusters))
        closest = self._squared(points[drawn : drawn + 1])[0]
        for _ in range(1, n_clusters):
            cumulative = xp.cumsum(weight * closest)
            targets = random_state.uniform(size=n_drawn) * float(closest @ weight)
            candidates = xp.searchsorted(cumulative, xp.asarray(targets))
            candidates = xp.minimum(candidates, len(points) - 1)
            distances = xp.minimum(closest, self._squared(points[candidates]))
            best = int((distances @ weight).argmin())
            centers.append(points[candidates[best]])
            closest = distances[best]
        return xp.stack(centers)

    def _squared(self, centers: Any) -> Any:
        """Squared distances of all points to some."""
        norms = (centers * centers).sum(axis=1)[:, None]
        return self.device.xp.maximum(norms + self.norms - 2 * (centers @ self.points.T), 0)

    def settled(self, centers: Any, max_steps: int, tolerance: float) -> np.ndarray:
        """Centres from which one more step moves them no more than a share of the variance.

        Or from which a cluster would lose all its rows: what then happens is up to the caller.
        """
        xp = self.device.xp
        for _ in range(max_steps):
            sums, sizes = xp.zeros_like(centers), xp.zeros(len(centers))
            norms = (centers * centers).sum(axis=1)
            for block in _row_blocks(len(self.points), 1 << 20):
                points = self.points[block]
                nearest_of = (norms - 2 * (points @ centers.T)).argmin(axis=1)
                members = (xp.arange(len(centers))[:, None] == nearest_of) * self.weight[block]
                sums += members @ points
                sizes += members.sum(axis=1)
            if not bool((sizes > 0).all()):
                break
            moved = sums / sizes[:, None]
            shift = float(((moved - centers) ** 2).sum())
            if shift <= tolerance * self.variance:
                break
            centers = moved
        return on_host(centers)


# -- pair counts ---------------------------------------------------------------------------------


def max_joint(device: Any) -> int:
    """Most joint codes of a group whose pairs with another as large fit shared memory."""
    return min(256, isqrt(device.shared_bytes // 4))


def packed_codes(
    device: Any, columns: Sequence[Any], groups: Sequence[Sequence[int]], sizes: Sequence[int]
) -> Any:
    """Joint codes of groups of columns, as bytes, rows padded to a multiple of 16.

    Columns that already lie on the device are not copied.
    """
    xp, n_rows = device.xp, len(columns[0])
    columns = [c.array if isinstance(c, DeviceColumn) else c for c in columns]
    out = xp.zeros((len(groups), -(-n_rows // 16) * 16), np.uint8)
    for g, group in enumerate(groups):
        device.join(
            [xp.asarray(columns[c]) for c in group], [sizes[c] for c in group], out[g, :n_rows]
        )
    return out


def pair_tables(
    device: Any, codes: Any, n_rows: int, joint: np.ndarray, pairs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How often joint codes of two groups meet, pair by pair, one after the other.

    Parameters
    ----------
    device : Cuda
        Where.
    codes : array of shape (groups, rows, padded to a multiple of 16)
        Joint codes, as bytes.
    n_rows : int
        How many rows there are.
    joint : ndarray
        How many joint codes each group has.
    pairs : ndarray of shape (pairs, 2)
        Pairs of groups, sorted by the first.

    Returns
    -------
    tables, starts : ndarray
        The counts, and where each pair's begin.
    """
    cells = joint[pairs[:, 0]] * joint[pairs[:, 1]]
    starts = np.concatenate([[0], np.cumsum(cells)])
    jobs, first = _jobs(pairs, cells, starts, device.shared_bytes // 4)
    totals = device.xp.zeros(int(starts[-1]), np.uint64)
    device.count_pairs(codes, n_rows, jobs, joint, first, totals)
    return on_host(totals).astype(np.int64), starts


def _jobs(
    pairs: np.ndarray, cells: np.ndarray, starts: np.ndarray, budget: int, sides: int = 4
) -> tuple[np.ndarray, np.ndarray]:
    """What a block counts: a group beside as many others as fit, and where their counts begin."""
    jobs: list[list[int]] = []
    first: list[list[int]] = []
    used = budget
    for (g, h), n_cells, start in zip(
        pairs.tolist(), cells.tolist(), starts.tolist(), strict=False
    ):
        if not jobs or jobs[-1][0] != g or len(jobs[-1]) > sides or used + n_cells > budget:
            jobs.append([g])
            first.append([])
            used = 0
        jobs[-1].append(h)
        first[-1].append(start)
        used += n_cells
    for job, begin in zip(jobs, first, strict=True):
        begin.extend([0] * (1 + sides - len(job)))
        job.extend([-1] * (1 + sides - len(job)))
    return np.array(jobs, np.int32), np.array(first, np.int64).ravel()
