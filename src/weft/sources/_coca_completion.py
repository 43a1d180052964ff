"""Rows known to some sources only: what the absent ones would add to a coordinate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def shares(parts: Sequence[np.ndarray], present: np.ndarray) -> np.ndarray:
    """Return the mean products of two sources' projections, d × p × p, over the rows of both."""
    p, d = len(parts), parts[0].shape[1]
    known = present.astype(float)
    together = np.maximum(known.T @ known, 1.0)
    out = np.empty((d, p, p))
    for j in range(p):
        for h in range(j, p):
            out[:, j, h] = (parts[j] * parts[h]).sum(axis=0) / together[j, h]
            out[:, h, j] = out[:, j, h]
    return out


def factors(products: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Return by how much the sum over present sources is multiplied to estimate that over all.

    The regression of the full sum on the sum at hand, through zero, each coordinate by itself: 1
    for a complete row, 1 where sources have nothing in common, more where they agree.
    """
    patterns, which = np.unique(present, axis=0, return_inverse=True)
    mask = patterns.astype(float)
    with_all = mask @ products.sum(axis=2).T  # patterns × d
    among = np.einsum("mj,djh,mh->md", mask, products, mask)
    total = np.maximum(products.sum(axis=(1, 2)), 0.0)
    usable = among > 1e-20 * total
    out = np.where(usable, with_all / np.where(usable, among, 1.0), 1.0)
    out[patterns.all(axis=1)] = 1.0
    return out[which.ravel()]
