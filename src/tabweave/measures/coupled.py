"""Coupled measures: how frequent values are and what they occur with, together. COS and cKML.

COS is the coupled object similarity of Wang et al. cKML is the coupled kernel metric of Zhu 2019,
ch. 4; its equations, which :class:`~tabweave.CKML` shares, stand below the measures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import chdtrc

from tabweave._compat import one_blas_thread
from tabweave.columns.vocabulary import slices
from tabweave.counts.counting import BLOCK_ENTRIES, divisor
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import (
    Order,
    block_sums,
    check_no_sets,
    context,
    information,
    partners,
    shares,
    symmetric_uncertainty,
)
from tabweave.measures.frequency import agreeing, occurrences, on_match
from tabweave.measures.register import measure

# -- Context measures: two values are alike if they meet the same values of other columns ---------
#
# Le & Ho, Ahmad & Dey, Jia et al., DILCA and Khorshidpour et al., of the thesis's sections
# 2.3.2 and 2.4.2. Counts in, dissimilarities of values out; Jia looks at two columns at a time
# and so compares rows.


@measure(
    "le_ho",
    "symmetric Kullback-Leibler divergence of the co-occurrence of two values",
    "Le & Ho 2005; Zhu 2019, Eq. (2.8)",
)
def le_ho(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.8): ``d = Σ_q p(q|v) log p(q|v)/p(q|w) + p(q|w) log p(q|w)/p(q|v)``.

    q runs over the values of all other columns. Where a value never meets q the published sum is
    infinite; every value therefore gets one extra row, shared out as q's column
    is: ``p(q|v) = (C_vq + f_q) / (c_v + 1)``. In (2.9) ``p(q|v)`` means joint over marginal count.
    """
    return divergences(counts, np.ones((len(counts.sizes),) * 2, dtype=bool))


@measure(
    "cbdl_prediction",
    "le_ho over the columns that best predict this one and are predicted by it",
    "Khorshidpour, Hashemi & Hamzeh 2011; Zhu 2019, section 2.4.2",
)
def cbdl_prediction(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.8) over the context that :func:`mutual_prediction` gives.

    A column is in the context where it predicts at least as well as the others do on average, and
    better than chance. The thesis names the idea and no threshold; the mean is that of Ienco et al.
    Without context all values are at 0 from each other.
    """
    score = mutual_prediction(counts)
    mean = score.sum(axis=1, keepdims=True) / max(len(score) - 1, 1)
    return divergences(counts, (score > 0) & (score >= mean - 1e-12))


@measure(
    "cbdl_chi2",
    "le_ho over the columns that depend on this one by a chi-square test",
    "Khorshidpour, Hashemi & Hamzeh 2011; Zhu 2019, section 2.4.2",
)
def cbdl_chi2(counts: Counts, *, level: float = 0.05) -> list[np.ndarray]:
    """Eq. (2.8) over the columns whose independence is rejected at 5 %, :func:`chi_square`.

    Without such a column all values are at 0 from each other.
    """
    return divergences(counts, chi_square(counts) < level)


def divergences(counts: Counts, chosen: np.ndarray) -> list[np.ndarray]:
    """Eq. (2.8) over the columns b with ``chosen[a, b]``, for each column a."""
    out = [np.zeros((size, size)) for size in counts.sizes]
    prior = _column_shares(counts)
    for a, table in enumerate(out):
        for b, block in partners(counts, a):
            if chosen[a, b]:
                table += jeffreys(shares(block + prior[b]))  # one pseudo-row
    return out


def mutual_prediction(counts: Counts) -> np.ndarray:
    """Return, for pairs of columns, by how much each lowers the errors of guessing the other.

    Goodman and Kruskal's λ of both directions together: the share of wrong guesses, by the most
    frequent value, that disappears when the other value is known. 0 on the diagonal.
    """

    def score(block: np.ndarray) -> float:
        guessed = block.max(axis=0, initial=0).sum() + block.max(axis=1, initial=0).sum()
        blind = block.sum(axis=0).max(initial=0) + block.sum(axis=1).max(initial=0)
        wrong = 2 * block.sum() - blind
        return float((guessed - blind) / wrong) if wrong > 0 else 0.0

    return _of_pairs(counts, score, 0.0)


def chi_square(counts: Counts) -> np.ndarray:
    """P-value of Pearson's test of independence of each pair of columns, 1 for none."""

    def p_value(block: np.ndarray) -> float:
        rows, columns = block.sum(axis=1), block.sum(axis=0)
        seen = block[rows > 0][:, columns > 0]
        freedom = (seen.shape[0] - 1) * (seen.shape[1] - 1)
        if freedom < 1:
            return 1.0
        expected = np.outer(rows[rows > 0], columns[columns > 0]) / block.sum()
        return float(chdtrc(freedom, ((seen - expected) ** 2 / expected).sum()))

    return _of_pairs(counts, p_value, 1.0)


def _of_pairs(counts: Counts, score: Callable[[np.ndarray], float], diagonal: float) -> np.ndarray:
    """What a function says of the joint counts of each pair of columns."""
    out = np.full((len(counts.sizes),) * 2, diagonal)
    for a in range(len(out)):
        for b, block in partners(counts, a):
            if b > a:
                out[a, b] = out[b, a] = score(block)
    return out


def jeffreys(p: np.ndarray) -> np.ndarray:
    """``Σ_q (p_vq - p_wq)(log p_vq - log p_wq)`` for all pairs of rows of p > 0."""
    cross = p @ np.log(p).T
    self_terms = cross.diagonal()
    out = np.maximum(self_terms[:, None] + self_terms - cross - cross.T, 0)
    np.fill_diagonal(out, 0)
    return out


@measure(
    "ahmad",
    "distance of the distributions of the other columns given two values, on average",
    "Ahmad & Dey 2007; Zhu 2019, Eq. (2.10)",
    metric=True,
)
def ahmad(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.10): ``d = 1/(A-1) Σ_l max_W (p(W|v) + p(~W|w) - 1)``, over the A - 1 other columns.

    The best subset W holds the values q with ``p(q|v) > p(q|w)``, so the maximum is half the L1
    distance of the two conditional distributions.
    """
    out = [np.zeros((size, size)) for size in counts.sizes]
    for a, table in enumerate(out):
        for _, block in partners(counts, a):
            p = shares(block)
            table += cdist(p, p, "cityblock") / (2 * (len(out) - 1))
    return out


@measure(
    "dilca",
    "distance of the distributions of two values given the columns related to theirs",
    "Ienco, Pensa & Meo 2012; Zhu 2019, Eqs. (2.19)-(2.22)",
    metric=True,
)
def dilca(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.22): ``d² = Σ_{k∈context} Σ_{q∈V_k} (p(v|q) - p(w|q))² / Σ_{k∈context} |V_k|``.

    The context is that of the column, chosen by symmetric uncertainty
    (:func:`tabweave.counts.couplings.context`) once, not per value; redundant columns leave in the
    order of the table. Erratum: (2.22) conditions on
    the compared value, p(q|v); the mean over context values that it takes is one of p(v|q), as
    Ienco et al. have it, and is then blind to a context value that is split in two. A column
    without context has distance 0.
    """
    chosen = context(symmetric_uncertainty(counts), "column")
    out = []
    for a, size in enumerate(counts.sizes):
        square = np.zeros((size, size))
        for b, block in partners(counts, a):
            if chosen[a, b]:
                p = shares(block.T).T
                square += cdist(p, p, "sqeuclidean")
        out.append(np.sqrt(square / max(counts.sizes[chosen[a]].sum(), 1)))
    return out


@measure(
    "jia",
    "how common the pairs of values are in which two rows differ, in dependent columns",
    "Jia, Cheung & Liu 2016; Zhu 2019, Eqs. (2.12)-(2.17)",
    form="pairwise",
)
def jia(counts: Counts, left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> np.ndarray:
    """Eq. (2.12): ``d(i,j) = Σ_m Σ_{l∈S_m} r(m,l) (g_i + g_j) [(v_i^m, v_i^l) ≠ (v_j^m, v_j^l)]``.

    Both cases of (2.12) are this one sum: it takes the pairs of values in which two rows differ.
    ``g = C/n · (C-1)/(n-1)``, Eqs. (2.16), (2.17), is the chance to draw a row's pair of values
    twice (the second term as published stands for the other row, j); unknown values have none. A
    missing cell counts as its column's values do on average, each drawn on its own.

    Parameters
    ----------
    counts : Counts
        What was seen.
    left, right : sequences of integer arrays
        Per column the codes of the rows, as in :func:`~tabweave.measures.frequency.akusok`.

    Returns
    -------
    ndarray of shape (rows of left, rows of right)
        The distances; memory beyond it is (rows of right) × (columns), and where a row of left has
        gaps, times the columns once more.
    """
    check_no_sets(counts, "jia")
    tables, f = _weighted_coincidences(counts), _column_shares(counts)
    lookups = _extended(tables, f)
    matched = _extended(tables, [share**2 / max(share @ share, 1e-300) for share in f])
    left_codes, right_codes = (
        np.stack([np.asarray(c) for c in side], axis=1) for side in (left, right)
    )
    out = np.empty((len(left_codes), len(right_codes)))
    total = np.empty(len(right_codes))
    for part in slices(len(right_codes), len(lookups) ** 2, BLOCK_ENTRIES):
        total[part] = _pair_weights(lookups, right_codes[part]).sum((1, 2))
    with one_blas_thread():  # many small products
        for part in slices(len(left_codes), len(lookups) ** 2, BLOCK_ENTRIES):
            for i, pairs in enumerate(_pair_weights(lookups, left_codes[part]), part.start):
                pair_total = pairs.sum() + total
                out[i] = pair_total - 2 * _in_common(left_codes[i], right_codes, pairs, matched, f)
                out[i, out[i] < 1e-12 * pair_total] = 0  # rounding
    return out


def _in_common(
    row: np.ndarray,
    others: np.ndarray,
    pairs: np.ndarray,
    matched: list[dict[int, np.ndarray]],
    f: list[np.ndarray],
) -> np.ndarray:
    """``r(m,l) g`` of the pairs of values that a row shares with others, summed; or its mean.

    A value that is missing in one row agrees with that of the other; what is missing in both may
    agree in any value.
    """
    missing = np.array([len(share) + 1 for share in f])
    if not ((row == missing).any() or (others == missing).any()):
        same = (others == row).astype(float)
        return np.asarray(((same @ pairs) * same).sum(axis=1))
    columns = zip(row[:, None], others.T, f, strict=True)
    same = np.column_stack([agreeing(*column)[0] for column in columns])
    if (row == missing).any():
        pairs = _pair_weights(matched, np.where(row == missing, others, row))
    common = (np.matmul(same[:, None], pairs)[:, 0] * same).sum(axis=1)
    own = np.diagonal(pairs, axis1=-2, axis2=-1)  # a column agrees with itself once
    return np.asarray(common + ((same - same**2) * own).sum(axis=1))


def jia_weights(counts: Counts) -> np.ndarray:
    """Eqs. (2.13), (2.14): ``r(m,l) = I(m;l) / H(m,l)`` where l is in S_m, else 0.

    S_m holds the columns with ``r(m,l) > β``; β is the mean of r over all pairs, as in Jia et al.
    A column depends on itself entirely and is always in its own S_m, also where no r exceeds β.
    """
    mutual, _, joint = information(counts)
    r = mutual / divisor(joint)
    chosen = r > r.mean() + 1e-12
    np.fill_diagonal(chosen, True)
    return np.where(chosen, r, 0.0)


def _weighted_coincidences(counts: Counts) -> list[dict[int, np.ndarray]]:
    """Return, per column m and column l of S_m, ``r(m,l) g`` over pairs of values."""
    r = jia_weights(counts)
    n_pairs = max(counts.n * (counts.n - 1), 0) or 1
    out: list[dict[int, np.ndarray]] = []
    for m, counted in enumerate(np.split(counts.value_counts, counts.offsets[1:-1])):
        blocks = [
            (m, np.diag(counted)),
            *(part for part in partners(counts, m) if r[m, part[0]]),
        ]
        out.append({l: r[m, l] * joint * np.maximum(joint - 1, 0) / n_pairs for l, joint in blocks})
    return out


def _extended(
    tables: list[dict[int, np.ndarray]], shares: Sequence[np.ndarray]
) -> list[dict[int, np.ndarray]]:
    """The tables with 0 for unknown values, and the mean over a column's values for missing."""
    out = []
    for m, of_column in enumerate(tables):
        extended = {}
        for l, table in of_column.items():
            padded = np.pad(table, ((0, 2), (0, 2)))
            padded[-1, :-2], padded[:-2, -1] = shares[m] @ table, table @ shares[l]
            both = np.diagonal(table) if l == m else table @ shares[l]
            padded[-1, -1] = shares[m] @ both
            extended[l] = padded
        out.append(extended)
    return out


def _pair_weights(lookups: list[dict[int, np.ndarray]], codes: np.ndarray) -> np.ndarray:
    """``r(m,l) g`` of each row's pair of values, of shape (rows, columns, columns)."""
    out = np.zeros((len(codes), len(lookups), len(lookups)))
    for m, tables in enumerate(lookups):
        for l, table in tables.items():
            out[:, m, l] = table[codes[:, m], codes[:, l]]
    return out


def _column_shares(counts: Counts) -> list[np.ndarray]:
    parts = np.split(counts.value_counts, counts.offsets[1:-1])
    return [part / max(part.sum(), 1e-300) for part in parts]


# -- the estimator --------------------------------------------------------------------------------

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


# Of a difference z: the Gaussian of (4.1) and (4.2), and others that are 1 at 0 and fall with z.
KERNELS: dict[str, Callable[[Any], Any]] = {
    "gaussian": lambda z: np.exp(-(z**2)),
    "laplacian": lambda z: np.exp(-np.abs(z)),
    "cauchy": lambda z: 1 / (1 + z**2),
}


def intra_kernel(frequency: np.ndarray, kernel: str = "gaussian") -> np.ndarray:
    """Eq. (4.1): ``k_Ia(v, w) = exp(-(f(v) - f(w))²)``."""
    return KERNELS[kernel](frequency[:, None] - frequency)


def inter_kernel(block: np.ndarray, kernel: str = "gaussian") -> np.ndarray:
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
    return KERNELS[kernel]((half + half.T) / divisor(pair_totals))


def inter_kernels(
    counts: Counts, alpha: np.ndarray, uncoupled_match: float = 1.0, kernel: str = "gaussian"
) -> list[np.ndarray]:
    """Eq. (4.2): ``k_Ie^(l) = Σ_m α_m k_Ie^(l,m)``.

    Without any coupling (all α 0) it is that of z = 1, 1/e, for different values, and
    ``uncoupled_match`` for equal ones: 1, as it is wherever z = 0, or, in print, 1/e too.
    """
    out = []
    for l, size in enumerate(counts.sizes):
        if not alpha[l].any():
            out.append(on_match(uncoupled_match, np.full((size, size), KERNELS[kernel](1.0))))
            continue
        gram = np.zeros((size, size))
        for m, block in partners(counts, l):
            if alpha[l, m]:
                gram += alpha[l, m] * inter_kernel(block, kernel)
        out.append(gram)
    return out


def column_couplings(uncertainty: np.ndarray, order: Order = "relevance") -> np.ndarray:
    """Section 4.2.3: ``α_m = SU_l(m)``, 0 outside the context of l, scaled to sum 1 or all 0."""
    alpha = np.where(context(uncertainty, order), uncertainty, 0.0)
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
    kernel: str = "gaussian",
) -> list[np.ndarray]:
    """Eq. (4.3): the Gram ``β_l k_Ia^(l) k_Ie^(l)`` of each column; k_O is their sum over columns.

    The variants leave one kernel out and keep β.
    """
    if variant not in get_args(Variant):
        raise ValueError(f"expected variant 'object', 'intra' or 'inter', got {variant!r}")
    grams = [np.full((size, size), weight) for size, weight in zip(counts.sizes, beta, strict=True)]
    if variant != "inter":
        intra = (intra_kernel(f, kernel) for f in counts.frequencies)
        grams = [g * k for g, k in zip(grams, intra, strict=True)]
    if variant != "intra":
        inter = inter_kernels(counts, alpha, uncoupled_match, kernel)
        grams = [g * k for g, k in zip(grams, inter, strict=True)]
    return grams


def squared_distance(gram: np.ndarray) -> np.ndarray:
    """Eq. (4.5), squared: ``d² = k(i,i) - 2k(i,j) + k(j,j)``."""
    norms = gram.diagonal()
    return np.maximum(norms[:, None] - 2 * gram + norms, 0.0)


def published_squares(
    counts: Counts, variant: Variant = "object", order: Order = "relevance"
) -> list[np.ndarray]:
    """Squared distances of (4.5) per column, as published; they add up over columns."""
    alpha = column_couplings(symmetric_uncertainty(counts), order)
    grams = object_kernels(counts, variant, alpha, column_weights(counts, alpha))
    return [squared_distance(gram) for gram in grams]


def published_roots(
    counts: Counts, variant: Variant = "object", order: Order = "relevance"
) -> list[np.ndarray]:
    """Distances of (4.5) per column, as published: the other reading, a sum of roots.

    (4.5) takes the root of the sum over columns. Its k-modes tables are met best by a sum of roots,
    those of frequency alone without β.
    """
    if variant == "intra":
        kernels = [intra_kernel(f) for f in counts.frequencies]
        return [np.sqrt(squared_distance(kernel)) for kernel in kernels]
    return [np.sqrt(square) for square in published_squares(counts, variant, order)]


def _differing(count: np.ndarray) -> float:
    total = count.sum()
    if total <= 1:
        return 0.0
    return float(1 - (count * np.maximum(count - 1.0, 0.0)).sum() / (total * (total - 1.0)))


def _scaled(x: np.ndarray) -> np.ndarray:
    total = x.sum()
    return x / total if total > 0 else np.zeros(len(x))
