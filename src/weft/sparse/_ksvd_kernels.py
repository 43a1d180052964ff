"""Compiled loops behind :mod:`weft.sparse._atoms`. Importing this module loads numba.

``rows`` are the signals that use an atom. Each loop exists for dense and for CSR signals; the
latter come as ``(starts, indices, data)``.
"""

from __future__ import annotations

from numba import njit

_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}  # lets sums use vector registers


@njit(nogil=True, cache=True, fastmath=_FAST)
def weigh_dense(X, rows, weights, out):
    """Add ``weights @ X[rows]`` to out."""
    for u in range(len(rows)):
        i, w = rows[u], weights[u]
        for t in range(X.shape[1]):
            out[t] += w * X[i, t]


@njit(nogil=True, cache=True, fastmath=_FAST)
def project_dense(X, rows, vector, out):
    """Set ``out = X[rows] @ vector``."""
    for u in range(len(rows)):
        i, total = rows[u], 0.0
        for t in range(X.shape[1]):
            total += X[i, t] * vector[t]
        out[u] = total


@njit(nogil=True, cache=True)
def weigh_sparse(starts, indices, data, rows, weights, out):
    """Add ``weights @ X[rows]`` to out."""
    for u in range(len(rows)):
        for t in range(starts[rows[u]], starts[rows[u] + 1]):
            out[indices[t]] += weights[u] * data[t]


@njit(nogil=True, cache=True)
def project_sparse(starts, indices, data, rows, vector, out):
    """Set ``out = X[rows] @ vector``."""
    for u in range(len(rows)):
        total = 0.0
        for t in range(starts[rows[u]], starts[rows[u] + 1]):
            total += data[t] * vector[indices[t]]
        out[u] = total
