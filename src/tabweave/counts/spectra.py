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
from scipy.linalg import eigh

from tabweave.counts.counts import Counts


def centred_product(counts: Counts, rows: np.ndarray) -> np.ndarray:
    """Return ``C₀ R`` for a matrix R with one row per value, without forming C₀."""
    c = counts.value_counts
    return np.asarray(counts.pairs @ rows) - np.outer(c, (c @ rows) / counts.n)


def scatter(counts: Counts, tables: Sequence[np.ndarray], *, centred: bool = True) -> np.ndarray:
    """Return ``TᵀC₀T`` (or ``TᵀCT``), the scatter of all objects under concatenated tables."""
    pairs = counts.pairs.tocsc() if sparse.issparse(counts.pairs) else counts.pairs
    spans = [counts.span(a) for a in range(len(tables))]
    met = np.hstack([pairs[:, span] @ t for span, t in zip(spans, tables, strict=True)])
    product = np.vstack([t.T @ met[span] for span, t in zip(spans, tables, strict=True)])
    if not centred:
        return product
    c = counts.value_counts
    total = np.concatenate([c[span] @ t for span, t in zip(spans, tables, strict=True)])
    return product - np.outer(total, total / counts.n)


def principal_axes(
    counts: Counts, tables: Sequence[np.ndarray], n_axes: int, *, centred: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of the object kernel and the axes that give them.

    The k-th object coordinate is ``Z T u_k``; its sum of squares over objects is the eigenvalue.
    Columns that all have one value leave no axis.
    """
    product = scatter(counts, tables, centred=centred)
    size = len(product)
    n_axes = min(n_axes, size)
    if not n_axes:
        return np.zeros(0), np.zeros((size, 0))
    values, axes = eigh((product + product.T) / 2, subset_by_index=(size - n_axes, size - 1))
    return values[::-1], fix_signs(axes[:, ::-1])


def fix_signs(axes: np.ndarray) -> np.ndarray:
    """Return axes, one a column, turned so that the largest entry of each is positive.

    An eigenvector may point either way; so results repeat. Of entries equally large the first
    decides. A column of zeros stays.
    """
    if not axes.size:
        return axes
    deciding = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return axes * np.where(deciding < 0, -1.0, 1.0)


def leading_axes(counts: Counts, tables: Sequence[np.ndarray], n_axes: int) -> np.ndarray:
    """Return the axes of the largest eigenvalues; those as large as the last one stay together.

    A cut through equal eigenvalues would keep arbitrary directions. Where columns are independent
    and alike all are equal, and rows that differ would fall together.
    """
    values, axes = principal_axes(counts, tables, sum(t.shape[1] for t in tables))
    noise = 1e-9 * values.max(initial=0)
    last = values[n_axes - 1] if n_axes < len(values) else 0.0
    return axes[:, (values >= last - noise) & (values > noise)]


def responses(
    counts: Counts, tables: Sequence[np.ndarray], n_axes: int, *, centred: bool = True
) -> np.ndarray:
    """Return ``ZᵀH``, H the top eigenvectors of the object kernel: values on clusters.

    ``H = HZTU/√λ``, so ``ZᵀH = C₀TU/√λ`` and ``tr(HᵀSH) = tr((ZᵀH)ᵀ G ZᵀH)`` for any kernel
    ``S = ZGZᵀ``. Directions without inertia, of which no kernel in the sum has any, are 0.
    """
    values, axes = principal_axes(counts, tables, n_axes, centred=centred)
    rows = np.vstack(projected(tables, axes))
    response = centred_product(counts, rows) if centred else np.asarray(counts.pairs @ rows)
    flat = values <= 1e-12 * values.max(initial=0)
    return np.where(flat, 0, response / np.sqrt(np.where(flat, 1, values)))


def projected(tables: Sequence[np.ndarray], axes: np.ndarray) -> list[np.ndarray]:
    """Return the value tables of the projection: each column's rows on the axes, to be summed."""
    edges = np.cumsum([0] + [table.shape[1] for table in tables])
    return [
        table @ axes[start:stop]
        for table, start, stop in zip(tables, edges[:-1], edges[1:], strict=True)
    ]
