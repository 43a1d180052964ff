"""Compiled loops behind :mod:`tabweave.tasks.recommend`. Importing this module loads numba."""

from __future__ import annotations

import numpy as np
from numba import njit

from tabweave.blocks.kernels import in_threads

_BLOCKS = 8


@njit(nogil=True, cache=True, error_model="numpy")
def _cholesky(a):
    """Turn the lower half of a positive definite matrix into its Cholesky factor, in place."""
    for j in range(len(a)):
        for k in range(j):
            a[j, j] -= a[j, k] * a[j, k]
        a[j, j] = np.sqrt(a[j, j])
        for i in range(j + 1, len(a)):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]


@njit(nogil=True, cache=True, error_model="numpy")
def _draw(precision, shift, normal, out):
    """Draw from N(Λ⁻¹ b, Λ⁻¹): with Λ = LLᵀ solve Lᵀ x = L⁻¹ b + z."""
    d = len(shift)
    _cholesky(precision)
    for i in range(d):
        value = shift[i]
        for k in range(i):
            value -= precision[i, k] * shift[k]
        shift[i] = value / precision[i, i]
    for i in range(d - 1, -1, -1):
        value = shift[i] + normal[i]
        for k in range(i + 1, d):
            value -= precision[k, i] * out[k]
        out[i] = value / precision[i, i]


@njit(nogil=True, cache=True, error_model="numpy")
def _draw_factors(
    first, last, starts, partners, residuals, other, beta, groups, means, precisions, normals, out
):  # fmt: skip
    d = other.shape[1]
    precision, shift = np.empty((d, d)), np.empty(d)
    for i in range(first, last):
        own = precisions[groups[i]]
        mean = means[groups[i]]
        for a in range(d):
            shift[a] = 0.0
            for b in range(d):
                precision[a, b] = own[a, b]
                shift[a] += own[a, b] * mean[b]
        for r in range(starts[i], starts[i + 1]):
            vector = other[partners[r]]
            for a in range(d):
                shift[a] += beta * residuals[r] * vector[a]
                for b in range(a + 1):
                    precision[a, b] += beta * vector[a] * vector[b]
        _draw(precision, shift, normals[i], out[i])


def draw_factors(starts, partners, residuals, other, beta, groups, means, precisions, normals):
    """Draw every user's (or item's) factors given its ratings and its group's prior."""
    n = len(starts) - 1
    out = np.empty((n, other.shape[1]))
    edges = np.linspace(0, n, min(_BLOCKS, max(1, n // 64)) + 1).astype(np.intp)

    def work(b: int) -> None:
        _draw_factors(
            edges[b], edges[b + 1], starts, partners, residuals, other, beta, groups, means,
            precisions, normals, out,
        )  # fmt: skip

    in_threads(work, range(len(edges) - 1))
    return out


@njit(nogil=True, cache=True)
def add_products(users, items, left, right, out):
    """Add ``left[users[i]] · right[items[i]]`` to ``out[i]``."""
    for i in range(len(users)):
        u, v = left[users[i]], right[items[i]]
        total = 0.0
        for k in range(len(u)):
            total += u[k] * v[k]
        out[i] += total
