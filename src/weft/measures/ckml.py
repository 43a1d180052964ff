"""cKML: coupled kernel metric learning [Zhu 2019, ch. 4].

Two values are alike if they are about equally frequent and meet the values of other columns alike;
columns that tell rows apart count more. No labels, no parameters to tune, one pass over the rows.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from weft._base import ValueEmbedder, _one_row
from weft._squares import cdist_squared
from weft.counts import Counts
from weft.spaces import (
    block_sums,
    context,
    frequencies,
    partners,
    refuse_many_values,
    refuse_sets,
    shares,
    symmetric_uncertainty,
)
from weft.tables import ValueTables, lookup_sum

Variant = Literal["object", "intra", "inter"]


class CKML(ValueEmbedder):
    """Embed rows so that their distances are those of the coupled kernel metric.

    The kernel of two rows is ``k_O = Σ_l β_l k_Ia k_Ie`` over columns l: k_Ia compares how frequent
    two values are, k_Ie what they occur with, β is larger for columns that tell rows apart. Their
    distance is ``√(k(i,i) - 2k(i,j) + k(j,j))``.

    Parameters
    ----------
    variant : {"object", "intra", "inter"}, default="object"
        Which couplings count: both, k_Ia alone, or k_Ie alone; β is the same.
    repair : bool, default=True
        Whether distances are made Euclidean, and so a metric. False keeps the printed numbers in
        ``pairwise_distances``, ``value_distances``, ``explain`` and ``lookups``; ``transform`` and
        ``pairwise_kernel`` then give the nearest there is, see ``distortion_``.
    schema : Schema or mapping of column to kind, optional
        What the columns are; undeclared ones are inferred.
    unknown : {"centroid", "error"}, default="centroid"
        What becomes of values not seen in fit.
    dtype : {"float64", "float32"}, default="float64"
        Type of the vectors.

    Attributes
    ----------
    alpha_ : ndarray of shape (columns, columns)
        Row l: how much each other column counts for the values of column l; sums to 1, or to 0 if
        no column says anything about l.
    beta_ : ndarray of shape (columns,)
        How much each column counts; sums to 1.
    repair_ : ndarray of shape (columns,)
        How far each column's kernel is from one: minus the lowest eigenvalue of the centred Gram.
    squares_ : list of ndarray of shape (values + 1, values + 1)
        The printed squared distances between the values of each column; unknown last.
    distortion_ : ndarray of shape (columns,)
        Largest difference between printed and embedded squared distances of a column's values.
    counts_ : Counts
        What was seen.
    tables_ : ValueTables
        The representation.

    Notes
    -----
    Theorem 4.2 of the thesis does not hold: ``exp(-z²)`` with the L1-like z of k_Ie can have
    negative eigenvalues, and then (4.5) is no metric. They are set to 0 for the values of each
    column, which makes distances of values and of rows a metric, unless ``repair=False``.

    A set-valued cell is the mean of its elements; that needs ``repair=True``.

    Examples
    --------
    >>> from weft import CKML
    >>> rows = {
    ...     "texture": ["clear", "blurry", "blurry", "clear", "blurry", "clear"],
    ...     "color": ["white", "yellow", "yellow", "green", "green", "black"],
    ... }
    >>> embedder = CKML().fit(rows)
    >>> embedder.beta_.round(3)
    array([0.458, 0.542])
    >>> embedder.value_distances("color").loc["yellow", ["green", "black"]].round(2).tolist()
    [0.49, 0.83]
    """

    def __init__(
        self,
        variant: Variant = "object",
        repair: bool = True,
        *,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)
        self.variant = variant
        self.repair = repair

    def _learn(self, counts: Counts) -> ValueTables:
        if not self.repair:
            refuse_sets(counts, "CKML(repair=False)")
        refuse_many_values(counts, "CKML")
        self.alpha_ = column_couplings(symmetric_uncertainty(counts))
        self.beta_ = column_weights(counts, self.alpha_)
        grams = object_kernels(counts, self.variant, self.alpha_, self.beta_)
        tables = ValueTables.from_grams(grams, counts)
        self.repair_ = tables.repair
        self.squares_ = [
            _with_centroid(squared_distance(gram), f)
            for gram, f in zip(grams, frequencies(counts), strict=True)
        ]
        self.distortion_ = np.array(
            [
                np.abs(cdist_squared(rows[:-1], rows[:-1]) - square[:-1, :-1]).max(initial=0)
                for rows, square in zip(tables.tables, self.squares_, strict=True)
            ]
        )
        return tables

    # -- the printed numbers, where repair=False asks for them ---------------------------------

    def pairwise_distances(self, X: Any, Y: Any = None) -> np.ndarray:
        """Return the distances between the rows of X and of Y (or X)."""
        if self.repair:
            return super().pairwise_distances(X, Y)
        left, right = self._read_pair(X, Y)
        ours = self.tables_.codes(left)
        theirs = ours if right is None else self.tables_.codes(right)
        return np.sqrt(lookup_sum(ours, theirs, self.squares_))

    def value_distances(self, column: str) -> Any:
        """Return the distances between the values of a column, as a labelled pandas frame."""
        if self.repair:
            return super().value_distances(column)
        check_is_fitted(self, "counts_")
        i = self.counts_._index(column)
        return self._labelled(i, np.sqrt(self.squares_[i][:-1, :-1]))

    def explain(self, a: Any, b: Any) -> dict[str, float]:
        """Say why two rows are apart: each column's share in their squared distance."""
        if self.repair:
            return super().explain(a, b)
        codes = [self.tables_.codes(self._read_known(_one_row(row))) for row in (a, b)]
        return {
            name: float(square[i[0], j[0]])
            for name, square, i, j in zip(self.tables_.names, self.squares_, *codes, strict=True)
        }

    def lookups(self) -> tuple[list[np.ndarray], bool]:
        """Return per column the squared distances of its values, unknown last, and True: a root."""
        return super().lookups() if self.repair else (list(self.squares_), True)


# -- 4.2.2, 4.2.3: couplings --------------------------------------------------------------------


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


# -- 4.2.4, 4.2.5: objects ----------------------------------------------------------------------


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
        raise ValueError(f"variant={variant!r}: use 'object', 'intra' or 'inter'")
    grams = [np.full((size, size), weight) for size, weight in zip(counts.sizes, beta, strict=True)]
    if variant != "inter":
        grams = [g * intra_kernel(f) for g, f in zip(grams, frequencies(counts), strict=True)]
    if variant != "intra":
        grams = [g * k for g, k in zip(grams, inter_kernels(counts, alpha), strict=True)]
    return grams


def squared_distance(gram: np.ndarray) -> np.ndarray:
    """Eq. (4.5), squared: ``d² = k(i,i) - 2k(i,j) + k(j,j)``."""
    own = gram.diagonal()
    return np.maximum(own[:, None] - 2 * gram + own, 0.0)


def printed_squares(counts: Counts, variant: Variant = "object") -> list[np.ndarray]:
    """Return the squared distances of (4.5) per column, unrepaired; they add up over columns."""
    alpha = column_couplings(symmetric_uncertainty(counts))
    grams = object_kernels(counts, variant, alpha, column_weights(counts, alpha))
    return [squared_distance(gram) for gram in grams]


def printed_roots(counts: Counts, variant: Variant = "object") -> list[np.ndarray]:
    """Return the distances of (4.5) per column, unrepaired: the other reading, a sum of roots.

    (4.5) takes the root of the sum over columns; k-modes of the thesis may have summed per-column
    roots, which matches some of its cells better.
    """
    return [np.sqrt(square) for square in printed_squares(counts, variant)]


def _differing(count: np.ndarray) -> float:
    total = count.sum()
    if total <= 1:
        return 0.0
    return float(1 - (count * np.maximum(count - 1.0, 0.0)).sum() / (total * (total - 1.0)))


def _scaled(x: np.ndarray) -> np.ndarray:
    total = x.sum()
    return x / total if total > 0 else np.zeros(len(x))


def _with_centroid(square: np.ndarray, frequency: np.ndarray) -> np.ndarray:
    """Add the squared distances of the frequency-weighted mean, which stands for unknown values."""
    f = frequency / max(frequency.sum(), 1e-300)
    mean = square @ f
    edge = np.append(np.maximum(mean - f @ mean / 2, 0.0), 0.0)
    return np.vstack([np.column_stack([square, edge[:-1]]), edge])
