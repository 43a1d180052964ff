"""cKML: coupled kernel metric learning [Zhu 2019, ch. 4].

Two values are alike if they are about equally frequent and meet the values of other columns alike;
columns in which rows differ count more. No labels, no parameters to tune, one pass over the rows.
The equations are in :mod:`tabweave.measures.coupled`.
"""

from __future__ import annotations

from typing import Any, ClassVar, get_args

import numpy as np

from tabweave._compat import StrOptions
from tabweave.columns.table import Table
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import (
    Order,
    check_table_size,
    check_values,
    symmetric_uncertainty,
)
from tabweave.embed.base import ValueEmbedder
from tabweave.embed.register import embedder
from tabweave.measures.coupled import (
    KERNELS,
    Variant,
    column_couplings,
    column_weights,
    object_kernels,
    squared_distance,
)
from tabweave.space.points import cdist_squared
from tabweave.space.value_tables import ValueTables


@embedder("ckml", "coupled kernel metric: frequency and co-occurrence", "Zhu 2019, ch. 4")
class CKML(ValueEmbedder):
    """Embed categorical rows by how frequent values are and what they occur with, as a kernel.

    The kernel of two rows is ``k_O = Σ_l β_l k_Ia k_Ie`` over columns l: k_Ia compares how frequent
    two values are, k_Ie what they occur with, β is larger for columns in which rows differ. Their
    distance is ``√(k(i,i) - 2k(i,j) + k(j,j))``.

    Parameters
    ----------
    variant : {"object", "intra", "inter"}, default="object"
        Which couplings count: both, k_Ia alone, or k_Ie alone; β is the same.
    kernel : {"gaussian", "laplacian", "cauchy"}, default="gaussian"
        What k_Ia and k_Ie make of a difference z of frequencies: ``exp(-z²)`` as published,
        ``exp(-z)`` or ``1 / (1 + z²)``.
    context : {"relevance", "column"}, default="relevance"
        In which order columns that repeat others leave the context of a column, which the printed
        rule does not say: see :func:`tabweave.counts.couplings.context`.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.

    Attributes
    ----------
    alpha_ : ndarray of shape (columns, columns)
        Row l: how much each other column counts for the values of column l; sums to 1, or to 0 if
        no column says anything about l.
    beta_ : ndarray of shape (columns,)
        How much each column counts; sums to 1.
    psd_clip_ : ndarray of shape (columns,)
        How far each column's Gram is from positive semi-definite: minus its lowest eigenvalue, once
        centred.
    squares_ : list of ndarray of shape (values + 1, values + 1)
        The published squared distances between the values of each column, before clipping; unknown
        last.
    distortion_ : ndarray of shape (columns,)
        Largest difference between published and embedded squared distances of a column's values.
    counts_ : Counts
        What was seen.
    tables_ : ValueTables
        The representation.
    numbers_, space_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    *Erratum.* Theorem 4.2 of the thesis does not hold: ``exp(-z²)`` with the L1-like z of k_Ie can
    have negative eigenvalues, and then (4.5) is no metric. They are set to 0 for the values of each
    column, which makes distances of values and of rows a metric;
    :class:`tabweave.papers.CKML` keeps the published numbers.

    A set-valued cell is the mean of its elements.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "variant": [StrOptions(set(get_args(Variant)))],
        "kernel": [StrOptions(set(KERNELS))],
        "context": [StrOptions(set(get_args(Order)))],
    }

    def __init__(
        self,
        variant: Variant = "object",
        *,
        kernel: str = "gaussian",
        context: Order = "relevance",
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        self.variant = variant
        self.kernel = kernel
        self.context = context
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)

    def _countable(self, table: Table, y: Any, sample_weight: Any = None) -> tuple[Table, Any]:
        check_values(table, "CKML")
        return super()._countable(table, y, sample_weight)

    def _learn(self, counts: Counts) -> ValueTables:
        check_table_size(counts, "CKML")
        self.alpha_ = column_couplings(symmetric_uncertainty(counts), self.context)
        self.beta_ = column_weights(counts, self.alpha_)
        kernels = (self.variant, self.alpha_, self.beta_, self._uncoupled_match(), self.kernel)
        grams = object_kernels(counts, *kernels)
        tables = ValueTables.from_grams(grams, counts)
        self.psd_clip_ = tables.repair
        self.squares_ = [
            _with_centroid(squared_distance(gram), f)
            for gram, f in zip(grams, counts.frequencies, strict=True)
        ]
        self.distortion_ = np.array(
            [
                np.abs(cdist_squared(rows[:-1], rows[:-1]) - square[:-1, :-1]).max(initial=0)
                for rows, square in zip(tables.tables, self.squares_, strict=True)
            ]
        )
        return tables

    def _uncoupled_match(self) -> float:
        """k_Ie of a value with itself, in a column that is coupled to no other."""
        return 1.0


def _with_centroid(square: np.ndarray, frequency: np.ndarray) -> np.ndarray:
    """Add the squared distances of the frequency-weighted mean, which stands for unknown values."""
    f = frequency / max(frequency.sum(), 1e-300)
    mean = square @ f
    edge = np.append(np.maximum(mean - f @ mean / 2, 0.0), 0.0)
    return np.vstack([np.column_stack([square, edge[:-1]]), edge])
