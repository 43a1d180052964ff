"""cKML, equation by equation: distances of values by frequency and company [Zhu 2019, 4.2]."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from tabweave.counts.counts import Counts
from tabweave.counts.couplings import (
    block_sums,
    context,
    partners,
    shares,
    symmetric_uncertainty,
)

Variant = Literal["object", "intra", "inter"]


def intra_kernel(frequency: np.ndarray) -> np.ndarray:
    """Eq. (4.1): ``k_Ia(v, w) = exp(-(f(v) - f(w))²)``."""
    return np.exp(-((frequency[:, None] - frequency) ** 2))


def inter_kernel(block: np.ndarray) -> np.ndarray:
    """Section 4.2.3: ``k_Ie^(l,m)(v, w) = exp(-z²)``, ``z = Σ_q p_q |p(q|v) - p(q|w)|``.

    p_q is the share of q among the rows that have v or w, as in both worked examples, so
    ``z = (c_v Σ_q p(q|v) |…| + c_w Σ_q p(q|w) |…|) / (c_v + c_w)``.
    """
    p, total = shares(block), block.sum(axis=1)
    half = np.empty((len(p), len(p)))
    step = max(1, 2**20 // max(1, p.size))
    for start in range(0, len(p), step):
        rows = p[start : start + step]
        half[start : start + step] = np.einsum("vwq,vq->vw", np.abs(rows[:, None] - p), rows)
    half *= total[:, None]
    both = total[:, None] + total
    return np.exp(-(((half + half.T) / np.where(both > 0, both, 1)) ** 2))


def inter_kernels(counts: Counts, alpha: np.ndarray) -> list[np.ndarray]:
    """Eq. (4.2): ``k_Ie^(l) = Σ_m α_m k_Ie^(l,m)``.

    Without any coupling (all α 0) it is 1/e for different values; for equal ones it stays 1, as it
    is wherever z = 0.
    """
    out = []
    for l, size in enumerate(counts.sizes):
        if not alpha[l].any():
            out.append(np.where(np.eye(size, dtype=bool), 1.0, np.exp(-1)))
            continue
        kernel = np.zeros((size, size))
        for m, block in partners(counts, l):
            if alpha[l, m]:
                kernel += alpha[l, m] * inter_kernel(block)
        out.append(kernel)
    return out


def column_couplings(uncertainty: np.ndarray) -> np.ndarray:
    """Section 4.2.3: ``α_m = SU_l(m)``, 0 outside the context of l, scaled to sum 1 or all 0."""
    alpha = np.where(context(uncertainty), uncertainty, 0.0)
    total = alpha.sum(axis=1, keepdims=True)
    return alpha / np.where(total > 0, total, 1)


def column_weights(counts: Counts, alpha: np.ndarray) -> np.ndarray:
    """Eq. (4.4) and around it: β, the larger of the shares in p_Ia and in p_Ie, scaled to sum 1.

    ``p = 1 - Σ_q f_q f_q⁻``, ``f⁻ = (count - 1)/(n - 1)``, is the chance that two rows differ: in
    the value of l (p_Ia), or in the pair of values of l and m (p_Ie^(l,m), summed with α).
    """
    own = np.array([_differing(c) for c in np.split(counts.value_counts, counts.offsets[1:-1])])
    n = block_sums(counts, np.asarray)
    twice = block_sums(counts, lambda c: c * np.maximum(c - 1.0, 0.0))
    pairs = np.where(n > 1, 1 - twice / np.where(n > 1, n * (n - 1), 1), 0.0)
    weight = np.maximum(_scaled(own), _scaled((alpha * pairs).sum(axis=1)))
    return _scaled(weight) if weight.any() else np.full(len(weight), 1 / max(len(weight), 1))


def object_kernels(
    counts: Counts, variant: Variant, alpha: np.ndarray, beta: np.ndarray
) -> list[np.ndarray]:
    """Eq. (4.3): the Gram ``β_l k_Ia^(l) k_Ie^(l)`` of each column; k_O is their sum over columns.

    The variants leave one kernel out and keep β.
    """
    if variant not in get_args(Variant):
        raise ValueError(f"expected variant 'object', 'intra' or 'inter', got {variant!r}")
    grams = [np.full((size, size), weight) for size, weight in zip(counts.sizes, beta, strict=True)]
    if variant != "inter":
        grams = [g * intra_kernel(f) for g, f in zip(grams, counts.frequencies, strict=True)]
    if variant != "intra":
        grams = [g * k for g, k in zip(grams, inter_kernels(counts, alpha), strict=True)]
    return grams


def squared_distance(gram: np.ndarray) -> np.ndarray:
    """Eq. (4.5), squared: ``d² = k(i,i) - 2k(i,j) + k(j,j)``."""
    own = gram.diagonal()
    return np.maximum(own[:, None] - 2 * gram + own, 0.0)


def published_squares(counts: Counts, variant: Variant = "object") -> list[np.ndarray]:
    """Return the squared distances of (4.5) per column, as published; they add up over columns."""
    alpha = column_couplings(symmetric_uncertainty(counts))
    grams = object_kernels(counts, variant, alpha, column_weights(counts, alpha))
    return [squared_distance(gram) for gram in grams]


def published_roots(counts: Counts, variant: Variant = "object") -> list[np.ndarray]:
    """Return the distances of (4.5) per column, as published: the other reading, a sum of roots.

    (4.5) takes the root of the sum over columns; k-modes of the thesis may have summed per-column
    roots, which matches some of its cells better.
    """
    return [np.sqrt(square) for square in published_squares(counts, variant)]


def _differing(count: np.ndarray) -> float:
    total = count.sum()
    if total <= 1:
        return 0.0
    return float(1 - (count * np.maximum(count - 1.0, 0.0)).sum() / (total * (total - 1.0)))


def _scaled(x: np.ndarray) -> np.ndarray:
    total = x.sum()
    return x / total if total > 0 else np.zeros(len(x))
