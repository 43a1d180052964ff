"""From published similarities to dissimilarities: what the families of measures share.

Counts go in, frequencies of single columns come out; a V × V similarity goes in, a dissimilarity
that is symmetric, non-negative and zero on the diagonal comes out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.counts import Counts


def occurrences(counts: Counts) -> list[np.ndarray]:
    """Return, per column, in how many rows each value occurs."""
    count = counts.value_counts.astype(np.float64)
    return [count[counts.span(a)] for a in range(len(counts.names))]


def on_match(match: np.ndarray | float, mismatch: np.ndarray) -> np.ndarray:
    """Return the mismatch table with what a match is worth on its diagonal."""
    out = np.array(mismatch, dtype=np.float64)
    np.fill_diagonal(out, match)
    return out


def complements(similarities: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return 1 − S, for similarities that are at most 1 and 1 on every match."""
    return [1 - s for s in similarities]


def induced(similarities: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return d(v, w) = (S(v, v) + S(w, w)) / 2 − S(v, w), for matches of unequal worth.

    1 − S would set a row apart from itself. Here what a match is worth becomes what losing it
    costs, half for each of the two values; as with the distance that a kernel induces, d is 0 on
    the diagonal, and it is not negative whenever no mismatch is worth more than the mean of the
    two matches. Where every mismatch is worth 0 (or a sum of one term per value), d is a star:
    each value has an arm, and the distance of two values is the sum of their arms. Stars satisfy
    the triangle inequality and are squared Euclidean distances.
    """
    out = []
    for s in similarities:
        worth = np.diagonal(s)
        out.append(on_match(0.0, (worth[:, None] + worth) / 2 - s))
    return out
