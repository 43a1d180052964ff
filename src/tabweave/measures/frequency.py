"""Frequency: matches and mismatches weighted by how common their values are in their column.

Counts → one V × V dissimilarity per column. Each measure stands here twice: as the similarity that
was published, ``<name>_similarity``, and as the dissimilarity in use, which is either its
complement 1 − S (where a match is always worth 1) or the one it induces (where it is not):
``(S(v, v) + S(w, w)) / 2 − S(v, w)``. The weights 1/d and 1/Σ n_k, with which Boriah et al. sum
columns, scale all distances alike and are left out. Hamming, which asks for no frequency, is the
case of equal weights; Akusok et al. and Cheung & Jia weigh the columns in which rows match.

Notation: N rows, f(v) of them with value v, n_k values in a column, p² of Goodall below.

References: [B] S. Boriah, V. Chandola, V. Kumar, "Similarity measures for categorical data: a
comparative evaluation", SIAM Data Mining 2008, Table 2. [Z] C. Zhu, thesis, chapter 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import entr

from tabweave.counts.counting import divisor
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import check_no_sets
from tabweave.measures.register import measure

_BORIAH = "Boriah, Chandola & Kumar 2008, Table 2"


@measure(
    "hamming",
    "1 for every column in which two rows differ",
    "Zhu 2019, Eq. (2.1); 'overlap' in Boriah, Chandola & Kumar 2008, Table 2",
    metric=True,
)
def hamming(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.1): d(v, w) = 0 if v = w, else 1."""
    return [1 - np.eye(len(labels)) for labels in counts.labels]


@measure(
    "akusok",
    "extended Jaccard: matches among columns of high and of low entropy, each over their union",
    "Akusok, Miche, Hegedus, Nian & Lendasse 2014; Zhu 2019, Eq. (2.2)",
    form="pairwise",
)
def akusok(
    counts: Counts,
    left: Sequence[np.ndarray],
    right: Sequence[np.ndarray],
    groups: Sequence[Sequence[int]] | None = None,
) -> np.ndarray:
    """Eq. (2.2): ``1 - s``, ``s = 1/|K| Σ_k m_k / (2 |k| - m_k)``, m_k matches in k's columns.

    Every row has a value in each column, so that the two sets of a group k have |k| members each,
    and K all groups. A missing cell counts for as much of a match as two random values do.

    Parameters
    ----------
    counts : Counts
        What was seen.
    left, right : sequences of integer arrays
        Per column the codes of the rows in the vocabulary of the counts; one past it is unknown,
        two past it missing.
    groups : sequences of column numbers, optional
        The groups; by default those of :func:`contribution_groups`.

    Returns
    -------
    ndarray of shape (rows of left, rows of right)
        The distances.
    """
    check_no_sets(counts, "akusok")
    groups = contribution_groups(counts) if groups is None else groups
    similarity, occurring = np.zeros((len(left[0]), len(right[0]))), occurrences(counts)
    for group in groups:
        matches = np.zeros(similarity.shape)
        for a in group:
            matches += agreeing(np.asarray(left[a]), np.asarray(right[a]), occurring[a])
        similarity += matches / (2 * len(group) - matches)
    out = 1 - similarity / len(groups)
    return np.where(out < 1e-12, 0.0, out)  # a sum of thirds may miss 1


def contribution_groups(counts: Counts) -> list[list[int]]:
    """Divide columns by what they contribute: those of at least the mean entropy, and the others.

    The thesis says that groups follow "different contributions" and not how these are measured.
    """
    entropy = _entropies(counts)
    high = entropy >= entropy.mean() - 1e-12
    return [np.flatnonzero(part).tolist() for part in (high, ~high) if part.any()]


@measure(
    "cheung",
    "mismatches weighted by the entropy of their column divided by its number of values",
    "Cheung & Jia 2013; Zhu 2019, section 2.3.1",
    metric=True,
)
def cheung(counts: Counts) -> list[np.ndarray]:
    """d(v, w) = 0 if v = w, else the weight of the column in :func:`entropy_weights`."""
    pairs = zip(hamming(counts), entropy_weights(counts), strict=True)
    return [weight * d for d, weight in pairs]


def entropy_weights(counts: Counts) -> np.ndarray:
    """Cheung & Jia 2013: ``w_a ∝ -1/n_a Σ_v f(v) log f(v)``, n_a values; they sum to 1.

    The thesis names the weights, Ng's dissimilarity (2.3) takes them. Where no column varies they
    are equal.
    """
    worth = _entropies(counts) / divisor(counts.sizes)
    total = worth.sum()
    return worth / total if total > 0 else np.full(len(worth), 1 / max(len(worth), 1))


def _entropies(counts: Counts) -> np.ndarray:
    return np.array([entr(f / max(f.sum(), 1e-300)).sum() for f in occurrences(counts)])


# -- a match is worth 1, a mismatch something between 0 and 1 ----------------------------------


def eskin_similarity(counts: Counts) -> list[np.ndarray]:
    """S(v, w) = n_k² / (n_k² + 2) for v ≠ w, 1 for v = w [B 2]."""
    return [on_match(1.0, np.full((k, k), k**2 / (k**2 + 2))) for k in counts.sizes.tolist()]


@measure("eskin", "mismatches count less in columns with many values", _BORIAH, metric=True)
def eskin(counts: Counts) -> list[np.ndarray]:
    """1 − S = 2 / (n_k² + 2) for v ≠ w, S as in :func:`eskin_similarity` [B 2]."""
    return complements(eskin_similarity(counts))


def iof_similarity(counts: Counts) -> list[np.ndarray]:
    """S(v, w) = 1 / (1 + log f(v) · log f(w)) for v ≠ w, 1 for v = w; natural log [B 3]."""
    logs = [np.log(np.maximum(f, 1)) for f in occurrences(counts)]  # weights may be below 1
    return [on_match(1.0, 1 / (1 + np.outer(log, log))) for log in logs]


@measure("iof", "inverse occurrence frequency: mismatches on common values count more", _BORIAH)
def iof(counts: Counts) -> list[np.ndarray]:
    """1 − S, S as in :func:`iof_similarity` [B 3]. A value that occurs once is at 0 from all."""
    return complements(iof_similarity(counts))


def of_similarity(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.4): S(v, w) = 1 / (1 + log(N/f(v)) · log(N/f(w))) for v ≠ w, else 1 [B 4]."""
    logs = [np.log(counts.n / f) for f in occurrences(counts)]
    return [on_match(1.0, 1 / (1 + np.outer(log, log))) for log in logs]


@measure(
    "of",
    "occurrence frequency: mismatches on rare values count more",
    f"Zhu 2019, Eq. (2.4); {_BORIAH}",
)
def of(counts: Counts) -> list[np.ndarray]:
    """1 − S, S as in :func:`of_similarity`, natural log, Eq. (2.4) [B 4]."""
    return complements(of_similarity(counts))


# -- a mismatch is worth 0, a match something that depends on its value ------------------------


def _pair_shares(counts: Counts) -> list[np.ndarray]:
    """p²(v) = f(v)(f(v) − 1) / (N(N − 1)): the chance that two different rows both have v.

    There are no two rows when N = 1 (or less, with weights): then p(v)², its limit for large N.
    """
    n = counts.n
    if n <= 1:
        return [(f / n) ** 2 for f in occurrences(counts)]
    return [f / n * np.maximum(f - 1, 0) / (n - 1) for f in occurrences(counts)]


def goodall1_similarity(counts: Counts) -> list[np.ndarray]:
    """S(v, v) = 1 − Σ p²(q) over the values q no more frequent than v; 0 for v ≠ w [B 7]."""
    pairs = zip(occurrences(counts), _pair_shares(counts), strict=True)
    return [np.diag(np.maximum(1 - (f <= f[:, None]) @ share, 0)) for f, share in pairs]


@measure("goodall1", "matches on rare values count more", _BORIAH, metric=True)
def goodall1(counts: Counts) -> list[np.ndarray]:
    """(S(v, v) + S(w, w)) / 2 for v ≠ w, S as in :func:`goodall1_similarity` [B 7]."""
    return induced(goodall1_similarity(counts))


def goodall2_similarity(counts: Counts) -> list[np.ndarray]:
    """S(v, v) = 1 − Σ p²(q) over the values q no less frequent than v; 0 for v ≠ w [B 8]."""
    pairs = zip(occurrences(counts), _pair_shares(counts), strict=True)
    return [np.diag(np.maximum(1 - (f >= f[:, None]) @ share, 0)) for f, share in pairs]


@measure("goodall2", "matches on the most common value count most", _BORIAH, metric=True)
def goodall2(counts: Counts) -> list[np.ndarray]:
    """(S(v, v) + S(w, w)) / 2 for v ≠ w, S as in :func:`goodall2_similarity` [B 8]."""
    return induced(goodall2_similarity(counts))


def goodall3_similarity(counts: Counts) -> list[np.ndarray]:
    """S(v, v) = 1 − p²(v); 0 for v ≠ w [B 9]."""
    return [np.diag(1 - share) for share in _pair_shares(counts)]


@measure(
    "goodall3",
    "matches on rare values count more, by their own frequency alone",
    _BORIAH,
    metric=True,
)
def goodall3(counts: Counts) -> list[np.ndarray]:
    """(S(v, v) + S(w, w)) / 2 for v ≠ w, S as in :func:`goodall3_similarity` [B 9]."""
    return induced(goodall3_similarity(counts))


def goodall4_similarity(counts: Counts) -> list[np.ndarray]:
    """S(v, v) = p²(v); 0 for v ≠ w [B 10]."""
    return [np.diag(share) for share in _pair_shares(counts)]


@measure("goodall4", "matches on common values count more", _BORIAH, metric=True)
def goodall4(counts: Counts) -> list[np.ndarray]:
    """(S(v, v) + S(w, w)) / 2 for v ≠ w, S as in :func:`goodall4_similarity` [B 10].

    Two values that occur once each are at 0 from each other.
    """
    return induced(goodall4_similarity(counts))


def rough_similarity(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.5): S(v, v) = 1 / f(v); 0 for v ≠ w [Cao, Liang, Li, Bai, Dang 2012]."""
    return [np.diag(1 / f) for f in occurrences(counts)]


@measure(
    "rough",
    "rough membership: a match counts the inverse of its frequency",
    "Zhu 2019, Eq. (2.5); Cao, Liang, Li, Bai, Dang 2012",
    metric=True,
)
def rough(counts: Counts) -> list[np.ndarray]:
    """(1/f(v) + 1/f(w)) / 2 for v ≠ w, from S of Eq. (2.5) in :func:`rough_similarity`."""
    return induced(rough_similarity(counts))


# -- matches and mismatches both weighted ------------------------------------------------------


def smirnov_similarity(counts: Counts) -> list[np.ndarray]:
    """S(v, v) = 2 + (N − f(v)) / f(v) + Σ_{q ≠ v} f(q) / (N − f(q)) [B 11].

    S(v, w) = Σ_{q ∉ {v, w}} f(q) / (N − f(q)) for v ≠ w.
    """
    out = []
    for f in occurrences(counts):
        remaining = others_than(f)
        odds = f / remaining if len(f) > 1 else np.zeros(1)  # a single value never enters the sum
        odds_of_others = odds.sum() - odds
        out.append(on_match(2 + remaining / f + odds_of_others, odds_of_others[:, None] - odds))
    return [np.tril(s) + np.tril(s, -1).T for s in out]  # symmetric to the last bit


@measure("smirnov", "matches on rare values count more, by their odds", _BORIAH, metric=True)
def smirnov(counts: Counts) -> list[np.ndarray]:
    """(S(v, v) + S(w, w)) / 2 − S(v, w), S as in :func:`smirnov_similarity` [B 11].

    With o(v) = f(v) / (N − f(v)) this is 1 + (N/f(v) + N/f(w) + o(v) + o(w)) / 2 for v ≠ w: the
    sum over the other values cancels, nothing is negative.
    """
    return induced(smirnov_similarity(counts))


# -- from published similarities to dissimilarities ----------------------------------------------


def occurrences(counts: Counts) -> list[np.ndarray]:
    """Return, per column, in how many rows each value occurs."""
    count = counts.value_counts.astype(np.float64)
    return [count[counts.span(a)] for a in range(len(counts.names))]


def agreeing(left: np.ndarray, right: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Whether the cells of rows agree; of missing ones, the chance that random values do.

    Codes are those of a column's values, which occur f times; one past them is unknown, two
    missing.
    """
    share = np.append(f / max(f.sum(), 1e-300), [0.0, 0.0])
    missing = len(f) + 1
    out = (left[:, None] == right).astype(np.float64)
    out[left == missing] = share[right]
    out[:, right == missing] = share[left][:, None]
    out[np.ix_(left == missing, right == missing)] = share @ share
    return out


def others_than(f: np.ndarray) -> np.ndarray:
    """``N − f(v)`` as a sum over the column's other values, which rounding never makes 0."""
    upto, after = np.cumsum(f), np.cumsum(f[::-1])[::-1]
    return np.append(0, upto[:-1]) + np.append(after[1:], 0)


def on_match(match: np.ndarray | float, mismatch: np.ndarray) -> np.ndarray:
    """Mismatch table with what a match is worth on its diagonal."""
    out = np.array(mismatch, dtype=np.float64)
    np.fill_diagonal(out, match)
    return out


def complements(similarities: Sequence[np.ndarray]) -> list[np.ndarray]:
    """1 − S, for similarities that are at most 1 and 1 on every match."""
    return [1 - s for s in similarities]


def induced(similarities: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Distances d(v, w) = (S(v, v) + S(w, w)) / 2 − S(v, w), for matches of unequal worth.

    With 1 − S a row would differ from itself. Here what a match is worth becomes what losing it
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
