"""Coupled measures: how frequent values are and what they occur with, together. COS and cKML.

COS is Wang et al.'s coupled object similarity; cKML's equations are in
:mod:`tabweave.measures.ckml`.
"""

from __future__ import annotations

import numpy as np

from tabweave.counts.counts import Counts
from tabweave.measures.ckml import published_squares
from tabweave.measures.context import ahmad
from tabweave.measures.frequency import occurrences
from tabweave.measures.register import measure


@measure(
    "cos",
    "coupled: similar frequency and similar company, multiplied",
    "Wang, Dong, Zhou, Cao & Chi 2015; Zhu 2019, Eqs. (2.7), (2.11)",
    metric=True,
)
def cos(counts: Counts) -> list[np.ndarray]:
    """Eqs. (2.7), (2.11): ``d = 1 - s_Ia s_Ie`` for different values, 0 for equal ones.

    With a = 1 - s_Ia and b = 1 - s_Ie, d = a + b - ab; both are metrics of at most 1, so d is one.
    """
    pairs = zip(cos_intra(counts), cos_inter(counts), strict=True)
    return [a + b - a * b for a, b in pairs]


@measure(
    "cos_intra",
    "coupled: frequent values are alike",
    "Wang et al. 2011; Zhu 2019, Eq. (2.7)",
    metric=True,
)
def cos_intra(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.7): ``d = 1 - |O_v||O_w| / (|O_v| + |O_w| + |O_v||O_w|)``, and 0 for equal values.

    As published, a term of the denominator is missing. ``d = x / (1 + x)`` with ``x = 1/|O_v| +
    1/|O_w|``, which is the distance of two leaves of a star, and so a metric.
    """
    out = []
    for count in occurrences(counts):
        x = 1 / count[:, None] + 1 / count
        np.fill_diagonal(x, 0)
        out.append(x / (1 + x))
    return out


@measure(
    "cos_inter",
    "coupled: values that meet the same values are alike",
    "Wang et al. 2011; Zhu 2019, Eq. (2.11)",
    metric=True,
)
def cos_inter(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.11): ``d = 1 - Σ_l α_l Σ_q min(p(q|v), p(q|w))``, with α = 1/(A-1).

    ``1 - Σ min(p, p')`` is half the L1 distance, so this is the measure of Ahmad & Dey, Eq. (2.10);
    the thesis's results of the two agree in most cells, which settles the α it leaves open.
    """
    return ahmad(counts)


@measure("ckml", "coupled kernel metric: frequency and company", "Zhu 2019, Eqs. (4.1)-(4.5)")
def ckml(counts: Counts) -> list[np.ndarray]:
    """Eq. (4.5), squared: ``d² = 2 β_l (1 - k_Ia k_Ie)``; rows add it up over columns.

    The published numbers; :class:`tabweave.embed.ckml.CKML` makes them a metric.
    """
    return published_squares(counts, "object")


@measure("ckml_intra", "coupled kernel metric: frequency alone", "Zhu 2019, Eqs. (4.1), (4.5)")
def ckml_intra(counts: Counts) -> list[np.ndarray]:
    """Eq. (4.5) of (4.1), squared: ``d² = 2 β_l (1 - k_Ia)``."""
    return published_squares(counts, "intra")


@measure("ckml_inter", "coupled kernel metric: company alone", "Zhu 2019, Eqs. (4.2), (4.5)")
def ckml_inter(counts: Counts) -> list[np.ndarray]:
    """Eq. (4.5) of (4.2), squared: ``d² = 2 β_l (1 - k_Ie)``."""
    return published_squares(counts, "inter")
