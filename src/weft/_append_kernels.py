"""Compiled loops behind :mod:`weft._append`. Importing this module loads numba."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def add_pairs(places: np.ndarray, pairs: np.ndarray) -> None:
    """Count every pair of values of every row into the upper triangle, then mirror it.

    ``places`` holds one row per column, each column's places behind those of the one before.
    """
    n_columns, n_rows = places.shape
    one = pairs.dtype.type(1)
    for a in range(n_columns):
        for b in range(a, n_columns):
            for i in range(n_rows):
                pairs[places[a, i], places[b, i]] += one
    for v in range(len(pairs)):
        for w in range(v):
            pairs[v, w] = pairs[w, v]
