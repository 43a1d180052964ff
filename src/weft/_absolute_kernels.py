"""Compiled loop behind :mod:`weft._absolute`. Importing this module loads numba."""

from __future__ import annotations

import math

from numba import njit


@njit(nogil=True, cache=True)
def put_curves(values, mean, factor, lowest, rows, out):
    """Set ``out[i]`` to the point of ``(values[i] - mean) * factor`` on curves; NaN is 0.

    ``rows`` are the points at whole numbers from ``lowest`` up; beyond them the last piece goes on.
    """
    last = len(rows) - 2.0
    for i in range(len(values)):
        z = (values[i] - mean) * factor
        if math.isnan(z):
            z = 0.0
        cell = int(min(max(math.floor(z - lowest), 0.0), last))
        step = z - lowest - cell
        for d in range(rows.shape[1]):
            out[i, d] = rows[cell, d] + step * (rows[cell + 1, d] - rows[cell, d])
