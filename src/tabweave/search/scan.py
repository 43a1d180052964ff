"""Neighbours by tree distance: exact by lookups in blocks, or approximate through faiss.

Comes in: rows as codes with their coordinates. Goes out: indices and distances of the k nearest
training rows. The n × n matrix is never formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tabweave._compat import require
from tabweave.blocks.block import Block
from tabweave.io.register import storable
from tabweave.rows.table import Codes, Table

_JOINT = 2048  # joint values of a group: their distances (16 KB) stay in the first cache
_BLOCK = 64  # queries a thread takes at a time


@storable
@dataclass(frozen=True, eq=False)
class Rows:
    """Rows by column: single values as codes with coordinates, numbers and sets as coordinates."""

    codes: list[np.ndarray]
    values: list[np.ndarray]
    line: np.ndarray

    @classmethod
    def of(cls, table: Table, block: Block, unknown: Any) -> Rows:
        """Look up the coordinates of a table's values."""
        codes, values, lines = [], [], [np.zeros((table.n_rows, 0))]
        for part in block.parts():
            data = table[part.names[0]]
            if part.by_value and isinstance(data, Codes):
                codes.append(data.codes)
                values.append(part.points(data, unknown))
            else:
                lines.append(part.coordinates(table, unknown=unknown))
        return cls(codes, values, np.hstack(lines))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns, as openTSNE asks for them."""
        return len(self.line), len(self.codes) + self.line.shape[1]

    def coordinates(self) -> np.ndarray:
        """Return the rows as vectors of float32."""
        parts = [v[c].astype(np.float32) for c, v in zip(self.codes, self.values, strict=True)]
        return np.ascontiguousarray(np.hstack([*parts, self.line.astype(np.float32)]))


@storable
class TreeIndex:
    """What openTSNE calls a KNNIndex, by tree distance."""

    def __init__(self, rows: Rows, k: int, *, approximate: bool) -> None:
        self.rows = rows
        self.k = k
        self.n_samples = rows.shape[0]
        self.approximate = approximate
        self._faiss: Any = None

    def build(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (indices, distances) of the training rows' neighbours, without themselves."""
        if not self.approximate:
            return exact_neighbors(self.rows, None, self.k)
        distances, indices = self._approximate(self.rows, self.k + 1)
        own = indices == np.arange(self.n_samples)[:, None]
        own[~own.any(axis=1), -1] = True  # more copies than neighbours: it is not among them
        shape = (self.n_samples, self.k)
        return indices[~own].reshape(shape), distances[~own].reshape(shape)

    def query(self, query: Rows, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (indices, distances) of the training rows nearest to other rows."""
        if not self.approximate:
            return exact_neighbors(self.rows, query, k)
        distances, indices = self._approximate(query, k)
        return indices, distances

    def _approximate(self, query: Rows, k: int) -> tuple[np.ndarray, np.ndarray]:
        faiss = require("faiss", "search")
        if self._faiss is None:
            data = self.rows.coordinates()
            self._faiss = faiss.IndexHNSWFlat(data.shape[1], 16, faiss.METRIC_L1)
            self._faiss.hnsw.efConstruction = 80
            self._faiss.add(data)
        self._faiss.hnsw.efSearch = max(2 * k, 64)
        distances, indices = self._faiss.search(query.coordinates(), k)
        if (indices < 0).any():  # the graph did not reach k rows: rare, and then found exactly
            odd = np.flatnonzero((indices < 0).any(axis=1))
            part = Rows([c[odd] for c in query.codes], query.values, query.line[odd])
            indices[odd], distances[odd] = exact_neighbors(self.rows, part, k)
        return distances.astype(np.float64), indices


def jobs(n_rows: int) -> int:
    """Return the threads for a layout; in a small one they only wait for each other."""
    from tabweave.counts.counting import n_threads

    return n_threads() if n_rows > 10_000 else 1


def placed(positions: np.ndarray, index: TreeIndex) -> Any:
    """Return a finished layout as openTSNE has it: all that new rows need to find their place.

    Made anew for every use, since openTSNE moves it when it places rows.
    """
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PerplexityBasedNN
    from scipy.sparse import csr_matrix

    near = PerplexityBasedNN.__new__(PerplexityBasedNN)  # its constructor would search again
    near.P = csr_matrix((index.n_samples, index.n_samples))
    near.knn_index, near.verbose, near.n_jobs = index, False, jobs(index.n_samples)
    return TSNEEmbedding(
        positions,
        near,
        learning_rate="auto",
        theta=0.5,
        max_step_norm=5,
        n_jobs=near.n_jobs,
        verbose=False,
        callbacks=None,
        callbacks_every_iters=50,
    )


def exact_neighbors(rows: Rows, query: Rows | None, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices, distances) of the k nearest rows of each query, or of each other row."""
    from scipy.spatial.distance import cdist

    from tabweave.blocks.kernels import in_threads
    from tabweave.search.kernels import nearest

    asked = rows if query is None else query
    tables = [
        cdist(mine, theirs, "cityblock") if mine.shape[1] else np.zeros((len(mine), len(theirs)))
        for mine, theirs in zip(asked.values, rows.values, strict=True)
    ]
    widths = np.array([t.shape[1] for t in tables], np.int64)
    starts = np.concatenate([[0], np.cumsum([t.size for t in tables])]).astype(np.int64)
    flat = np.concatenate([np.zeros(0), *(t.ravel() for t in tables)])
    groups, codes = _joined(rows.codes, widths.tolist(), rows.shape[0])
    places = _stacked(asked.codes, asked.shape[0])
    line = np.ascontiguousarray(rows.line.T)
    distances = np.empty((asked.shape[0], k))
    indices = np.empty((asked.shape[0], k), np.int64)

    def work(block: slice) -> None:
        first = block.start if query is None else -1
        where = places[:, block], codes, groups, starts[:-1], widths, flat
        nearest(*where, asked.line[block], line, first, distances[block], indices[block])

    n = asked.shape[0]
    in_threads(work, [slice(i, min(i + _BLOCK, n)) for i in range(0, n, _BLOCK)])
    return indices, distances


def _joined(
    codes: Sequence[np.ndarray], sizes: list[int], n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return columns in groups of few joint values, and each row's joint value in every group."""
    groups: list[list[int]] = []
    product = _JOINT + 1
    for a in np.argsort(sizes, kind="stable").tolist():
        if product * sizes[a] > _JOINT:
            groups.append([])
            product = 1
        groups[-1].append(a)
        product *= sizes[a]
    table = np.full((len(groups), max(map(len, groups), default=0)), -1, np.int64)
    joint = np.zeros((len(groups), n_rows), np.int32)
    for g, group in enumerate(groups):
        table[g, : len(group)] = group
        for a in group:
            joint[g] = joint[g] * sizes[a] + codes[a]
    return table, joint


def _stacked(codes: Sequence[np.ndarray], n_rows: int) -> np.ndarray:
    if not codes:
        return np.zeros((0, n_rows), np.int32)
    return np.stack([np.asarray(c, np.int32) for c in codes])
