"""Coupled measures: how frequent values are and what they occur with, together. COS and cKML.

COS is the coupled object similarity of Wang et al. cKML is the coupled kernel metric of Zhu 2019,
ch. 4; its equations, which :class:`~tabweave.CKML` shares, stand below the measures.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from tabweave.counts.counting import divisor
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import (
    block_sums,
    context,
    partners,
    shares,
    symmetric_uncertainty,
)
from tabweave.measures.context import ahmad
from tabweave.measures.frequency import occurrences, on_match
from tabweave.measures.register import measure

Variant = Literal["object", "intra", "inter"]


@measure(
    "cos",
    "coupled: similar frequency times similar co-occurrence",
    "Wang, Dong, Zhou, Cao & Chi 2015; Zhu 2019, Eqs. (2.7), (2.11)",
)
def cos(counts: Counts) -> list[np.ndarray]:
    """Eqs. (2.7), (2.11): ``d = (1/s_Ia - 1)(1 - s_Ie)``, as Wang et al. join the two.

    ``1/s_Ia - 1 = 1/|O_v| + 1/|O_w|``: co-occurrence counts more, the rarer the values. A product
    of metrics is none.
    """
    pairs = zip(cos_intra_similarity(counts), cos_inter(counts), strict=True)
    return [(1 / s - 1) * d for s, d in pairs]


def cos_intra_similarity(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.7): ``s = |O_v||O_w| / (|O_v| + |O_w| + |O_v||O_w|)``, for equal values too.

    As published, a term of the denominator is missing.
    """
    return [1 / (1 + 1 / c[:, None] + 1 / c) for c in occurrences(counts)]


@measure(
    "cos_intra",
    "coupled: similar frequency",
    "Wang et al. 2011; Zhu 2019, Eq. (2.7)",
    metric=True,
)
def cos_intra(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.7): ``d = 1 - s``, s as in :func:`cos_intra_similarity`, and 0 for equal values.

    ``d = x / (1 + x)`` with ``x = 1/|O_v| + 1/|O_w|``, which is the distance of two leaves of a
    star, and so a metric.
    """
    return [on_match(0.0, 1 - s) for s in cos_intra_similarity(counts)]


@measure(
    "cos_inter",
    "coupled: similar co-occurrence with the values of other columns",
    "Wang et al. 2011; Zhu 2019, Eq. (2.11)",
    metric=True,
)
def cos_inter(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.11): ``d = 1 - Σ_l α_l Σ_q min(p(q|v), p(q|w))``, with α = 1/(A-1).

    ``1 - Σ min(p, p')`` is half the L1 distance, so this is the measure of Ahmad & Dey, Eq. (2.10);
    the thesis's results of the two agree in most cells, which settles the α it leaves open.
    """
    return ahmad(counts)


@measure("ckml", "coupled kernel metric: frequency and co-occurrence", "Zhu 2019, Eqs. (4.1)-(4.5)")
def ckml(counts: Counts) -> list[np.ndarray]:
    """Eq. (4.5), squared: ``d² = 2 β_l (1 - k_Ia k_Ie)``; rows add it up over columns.

    The published numbers; :class:`tabweave.embed.ckml.CKML` makes them a metric.
    """
    return published_squares(counts, "object")


@measure("ckml_intra", "coupled kernel metric: frequency alone", "Zhu 2019, Eqs. (4.1), (4.5)")
def ckml_intra(counts: Counts) -> list[np.ndarray]:
    """Eq. (4.5) of (4.1), squared: ``d² = 2 β_l (1 - k_Ia)``."""
    return published_squares(counts, "intra")


@measure("ckml_inter", "coupled kernel metric: co-occurrence alone", "Zhu 2019, Eqs. (4.2), (4.5)")
def ckml_inter(counts: Counts) -> list[np.ndarray]:
    """Eq. (4.5) of (4.2), squared: ``d² = 2 β_l (1 - k_Ie)``."""
    return published_squares(counts, "inter")


# -- cKML ---------------------------------------------------------------------------------------


def intra_kernel(frequency: np.ndarray) -> np.ndarray:
    """Eq. (4.1): ``k_Ia(v, w) = exp(-(f(v) - f(w))²)``."""
    return np.exp(-((frequency[:, None] - frequency) ** 2))


def inter_kernel(block: np.ndarray) -> np.ndarray:
    """Section 4.2.3: ``k_Ie^(l,m)(v, w) = exp(-z²)``, ``z = Σ_q p_q |p(q|v) - p(q|w)|``.

    p_q is the share of q among the rows that have v or w, as in both worked examples, so
    ``z = (c_v Σ_q p(q|v) |…| + c_w Σ_q p(q|w) |…|) / (c_v + c_w)``.
    """
    p, total = shares(block), block.sum(axis=1)
    half = np.repeat((p**2).sum(axis=1, keepdims=True), len(p), axis=1)  # if v and w share no q
    for q in p.T:
        (is_met,) = q.nonzero()
        shared = q[is_met, None]
        half[is_met[:, None], is_met] += shared * (np.abs(shared - q[is_met]) - shared)
    half *= total[:, None]
    pair_totals = total[:, None] + total
    return np.exp(-(((half + half.T) / divisor(pair_totals)) ** 2))


def inter_kernels(
    counts: Counts, alpha: np.ndarray, uncoupled_match: float = 1.0
) -> list[np.ndarray]:
    """Eq. (4.2): ``k_Ie^(l) = Σ_m α_m k_Ie^(l,m)``.

    Without any coupling (all α 0) it is 1/e for different values, and ``uncoupled_match`` for equal
    ones: 1, as it is wherever z = 0, or, in print, 1/e too.
    """
    out = []
    for l, size in enumerate(counts.sizes):
        if not alpha[l].any():
            out.append(on_match(uncoupled_match, np.full((size, size), np.exp(-1))))
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
    return alpha / divisor(alpha.sum(axis=1, keepdims=True))


def column_weights(counts: Counts, alpha: np.ndarray) -> np.ndarray:
    """Eq. (4.4) and around it: β, the larger of the shares in p_Ia and in p_Ie, scaled to sum 1.

    ``p = 1 - Σ_q f_q f_q⁻``, ``f⁻ = (count - 1)/(n - 1)``, is the chance that two rows differ: in
    the value of l (p_Ia), or in the pair of values of l and m (p_Ie^(l,m), summed with α).
    """
    information = np.array(
        [_differing(c) for c in np.split(counts.value_counts, counts.offsets[1:-1])]
    )
    n = block_sums(counts, np.asarray)
    twice = block_sums(counts, lambda c: c * np.maximum(c - 1.0, 0.0))
    pairs = np.where(n > 1, 1 - twice / divisor(n * (n - 1)), 0.0)
    weight = np.maximum(_scaled(information), _scaled((alpha * pairs).sum(axis=1)))
    return _scaled(weight) if weight.any() else np.full(len(weight), 1 / max(len(weight), 1))


def object_kernels(
    counts: Counts,
    variant: Variant,
    alpha: np.ndarray,
    beta: np.ndarray,
    uncoupled_match: float = 1.0,
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
        inter = inter_kernels(counts, alpha, uncoupled_match)
        grams = [g * k for g, k in zip(grams, inter, strict=True)]
    return grams


def squared_distance(gram: np.ndarray) -> np.ndarray:
    """Eq. (4.5), squared: ``d² = k(i,i) - 2k(i,j) + k(j,j)``."""
    norms = gram.diagonal()
    return np.maximum(norms[:, None] - 2 * gram + norms, 0.0)


def published_squares(counts: Counts, variant: Variant = "object") -> list[np.ndarray]:
    """Squared distances of (4.5) per column, as published; they add up over columns."""
    alpha = column_couplings(symmetric_uncertainty(counts))
    grams = object_kernels(counts, variant, alpha, column_weights(counts, alpha))
    return [squared_distance(gram) for gram in grams]


def published_roots(counts: Counts, variant: Variant = "object") -> list[np.ndarray]:
    """Distances of (4.5) per column, as published: the other reading, a sum of roots.

    (4.5) takes the root of the sum over columns. Its k-modes tables are met best by a sum of roots,
    those of frequency alone without β.
    """
    if variant == "intra":
        kernels = [intra_kernel(f) for f in counts.frequencies]
        return [np.sqrt(squared_distance(kernel)) for kernel in kernels]
    return [np.sqrt(square) for square in published_squares(counts, variant)]


def _differing(count: np.ndarray) -> float:
    total = count.sum()
    if total <= 1:
        return 0.0
    return float(1 - (count * np.maximum(count - 1.0, 0.0)).sum() / (total * (total - 1.0)))


def _scaled(x: np.ndarray) -> np.ndarray:
    total = x.sum()
    return x / total if total > 0 else np.zeros(len(x))
