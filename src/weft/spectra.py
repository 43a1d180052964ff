"""Spectra: what the n × n kernel of all objects would say, from V × V counts.

Objects are ``X = Z T``: one-hot rows Z times a value table T. With ``C₀ = C - ccᵀ/n`` (that is
``ZᵀHZ``, H the centring matrix), every trace and eigenvector of the centred object kernel HXXᵀH
that learning needs is a function of ``TᵀC₀T``, at a cost that does not depend on n. Exact for
single-valued columns; a set-valued cell enters with all its elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from weft.counts import Counts


def centred_product(counts: Counts, rows: np.ndarray) -> np.ndarray:
    """Return ``C₀ R`` for a matrix R with one row per value, without forming C₀."""
    c = counts.value_counts
    return np.asarray(counts.pairs @ rows) - np.outer(c, (c @ rows) / counts.n)


def scatter(counts: Counts, tables: Sequence[np.ndarray], *, centred: bool = True) -> np.ndarray:
    """Return ``TᵀC₀T`` (or ``TᵀCT``), the scatter of all objects under concatenated tables."""
    wide = sparse.block_diag([sparse.csr_array(t) for t in tables], format="csr")
    mean = wide.T @ (counts.value_counts / counts.n)
    product = wide.T @ (counts.pairs @ wide)
    product = product.toarray() if sparse.issparse(product) else product
    return product - counts.n * np.outer(mean, mean) if centred else product


def principal_axes(
    counts: Counts, tables: Sequence[np.ndarray], n_axes: int, *, centred: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of the object kernel and the axes that give them.

    The k-th object coordinate is ``Z T u_k``; its sum of squares over objects is the eigenvalue.
    """
    values, vectors = np.linalg.eigh(scatter(counts, tables, centred=centred))
    n_axes = min(n_axes, len(values))
    order = np.argsort(values)[::-1][:n_axes]
    axes = vectors[:, order]
    # An axis may point either way; make its largest entry positive, so that results repeat.
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(n_axes)])
    return values[order], axes * np.where(signs == 0, 1, signs)


def projected(tables: Sequence[np.ndarray], axes: np.ndarray) -> list[np.ndarray]:
    """Return the value tables of the projection: each column's rows on the axes, to be summed."""
    edges = np.cumsum([0] + [table.shape[1] for table in tables])
    return [
        table @ axes[start:stop]
        for table, start, stop in zip(tables, edges[:-1], edges[1:], strict=True)
    ]
