"""cKML: coupled kernel metric learning [Zhu 2019, ch. 4].

Two values are alike if they are about equally frequent and meet the values of other columns alike;
columns that tell rows apart count more. No labels, no parameters to tune, one pass over the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tabweave.base import ValueEmbedder, _one_row
from tabweave.blocks.block import cdist_squared
from tabweave.blocks.value_tables import ValueTables, lookup_sum
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import (
    frequencies,
    refuse_many_values,
    refuse_sets,
    symmetric_uncertainty,
)
from tabweave.embed.register import embedder
from tabweave.measures.coupled import (
    Variant,
    column_couplings,
    column_weights,
    object_kernels,
    squared_distance,
)


@embedder("ckml", "coupled kernel metric", "Zhu 2019, ch. 4")
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
    >>> from tabweave import CKML
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
        i = self.counts_.vocabulary.index(column)
        return self._labelled(i, np.sqrt(self.squares_[i][:-1, :-1]))

    def explain(self, a: Any, b: Any) -> dict[str, float]:
        """Say why two rows are apart: each column's share in their squared distance."""
        if self.repair:
            return super().explain(a, b)
        codes = [self.tables_.codes(self._read_fitted(_one_row(row))) for row in (a, b)]
        return {
            name: float(square[i[0], j[0]])
            for name, square, i, j in zip(self.tables_.names, self.squares_, *codes, strict=True)
        }

    def lookups(self) -> tuple[list[np.ndarray], bool]:
        """Return per column the squared distances of its values, unknown last, and True: a root."""
        return super().lookups() if self.repair else (list(self.squares_), True)


# -- 4.2.2, 4.2.3: couplings --------------------------------------------------------------------


# -- 4.2.4, 4.2.5: objects ----------------------------------------------------------------------


def _with_centroid(square: np.ndarray, frequency: np.ndarray) -> np.ndarray:
    """Add the squared distances of the frequency-weighted mean, which stands for unknown values."""
    f = frequency / max(frequency.sum(), 1e-300)
    mean = square @ f
    edge = np.append(np.maximum(mean - f @ mean / 2, 0.0), 0.0)
    return np.vstack([np.column_stack([square, edge[:-1]]), edge])
