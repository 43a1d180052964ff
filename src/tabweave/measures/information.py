"""Information: how much two values share, by the probabilities of what they say.

Counts → one V × V table per column (gambaryan, burnaby), or two (lin, lin1, anderberg): those are
ratios of sums over columns, S(x, y) = Σ numerators / Σ denominators, so that no single table holds
them. In all three a numerator never exceeds its denominator and equals it on a match: 1 − S is not
negative and exactly 0 between equal rows. Logarithms of shares are taken with the sign changed,
which cancels in the ratio.

Notation: N rows, f(v) of them with value v, p(v) = f(v)/N, n_k values in a column.

References: [B] S. Boriah, V. Chandola, V. Kumar, "Similarity measures for categorical data: a
comparative evaluation", SIAM Data Mining 2008, Table 2.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from tabweave.counts.counts import Counts
from tabweave.measures.frequency import (
    complements,
    induced,
    occurrences,
    on_match,
    others_than,
)
from tabweave.measures.register import measure

_BORIAH = "Boriah, Chandola & Kumar 2008, Table 2"
Ratio = tuple[list[np.ndarray], list[np.ndarray]]


# -- one table per column ----------------------------------------------------------------------


def gambaryan_similarity(counts: Counts) -> list[np.ndarray]:
    """S(v, v) = −p log₂ p − (1 − p) log₂(1 − p), p = p(v); 0 for v ≠ w [B 12]."""
    return [
        np.diag(np.maximum(-(xlogy(p, p) + xlogy(1 - p, 1 - p)) / np.log(2), 0))
        for p in counts.frequencies
    ]


@measure(
    "gambaryan",
    "matches on values that half of the rows have count most",
    _BORIAH,
    metric=True,
)
def gambaryan(counts: Counts) -> list[np.ndarray]:
    """(S(v, v) + S(w, w)) / 2 for v ≠ w, S as in :func:`gambaryan_similarity` [B 12]."""
    return induced(gambaryan_similarity(counts))


def burnaby_similarity(counts: Counts) -> list[np.ndarray]:
    """S(v, w) = L / (L + o(v) + o(w)) for v ≠ w, 1 for v = w [B 13].

    L = −Σ_q 2 log(1 − p(q)) over all values q of the column, o(v) = log((1 − p(v)) / p(v)).
    As p(v) + p(w) ≤ 1, o(v) + o(w) is not negative; it is 0 when there are just two values, and
    so the measure sees no difference between the values of a binary column.
    """
    out = []
    for f in occurrences(counts):
        if len(f) < 2:
            out.append(np.ones((len(f), len(f))))
            continue
        remaining = others_than(f)
        L = 2 * np.log(counts.n / remaining).sum()
        odds = np.log(remaining / f)
        out.append(on_match(1.0, L / (L + np.maximum(odds[:, None] + odds, 0))))
    return out


@measure("burnaby", "mismatches on rare values count more, by their information", _BORIAH)
def burnaby(counts: Counts) -> list[np.ndarray]:
    """1 − S, S as in :func:`burnaby_similarity` [B 13]."""
    return complements(burnaby_similarity(counts))


# -- ratios of sums over columns ---------------------------------------------------------------


@measure("lin", "ratio of shared to total information (Lin 1998)", _BORIAH, form="ratio")
def lin(counts: Counts) -> Ratio:
    """S = Σ s(v, w) / Σ (log p(v) + log p(w)), sums over columns [B 5; Lin 1998].

    s(v, v) = 2 log p(v), and s(v, w) = 2 log(p(v) + p(w)) for v ≠ w.
    """
    numerators, denominators = [], []
    for f in occurrences(counts):
        surprise = np.log(counts.n / f)
        joined = np.minimum(f[:, None] + f, counts.n)  # rounding, with weighted rows
        numerators.append(on_match(2 * surprise, 2 * np.log(counts.n / joined)))
        denominators.append(surprise[:, None] + surprise)
    return numerators, denominators


@measure("lin1", "as lin, over all values with frequencies between the two", _BORIAH, form="ratio")
def lin1(counts: Counts) -> Ratio:
    """S = Σ s(v, w) / Σ Σ_{q ∈ Q} log p(q), first sums over columns [B 6].

    s(v, v) = Σ_{q ∈ Q} log p(q), and s(v, w) = 2 log Σ_{q ∈ Q} p(q) for v ≠ w. Q holds the values
    of the column whose frequency lies between those of v and w, both included.
    """
    numerators, denominators = [], []
    for f in occurrences(counts):
        ranked = np.sort(f)
        first = np.searchsorted(ranked, np.minimum(f[:, None], f), side="left")
        last = np.searchsorted(ranked, np.maximum(f[:, None], f), side="right")
        size = np.append(0, np.cumsum(ranked))
        surprise = np.append(0, np.cumsum(np.log(counts.n / ranked)))
        joined = np.minimum(size[last] - size[first], counts.n)
        total = surprise[last] - surprise[first]
        numerators.append(on_match(np.diagonal(total), 2 * np.log(counts.n / joined)))
        denominators.append(total)
    return numerators, denominators


@measure(
    "anderberg", "matches relative to mismatches; rare values count more", _BORIAH, form="ratio"
)
def anderberg(counts: Counts) -> Ratio:
    """S = M / (M + U), sums over the columns that match and those that do not [B 14].

    M = Σ 1/p(v)² · 2/(n_k(n_k + 1)), and U = Σ 1/(2 p(v) p(w)) · 2/(n_k(n_k + 1)).
    """
    numerators, denominators = [], []
    for p in counts.frequencies:
        share = 2 / (len(p) * (len(p) + 1))
        match = share / p**2
        numerators.append(np.diag(match))
        denominators.append(on_match(match, share / (2 * np.outer(p, p))))
    return numerators, denominators
