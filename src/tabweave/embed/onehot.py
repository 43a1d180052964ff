"""OneHot: every value its own dimension. The baseline that everything is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count

import numpy as np

from tabweave.base import ValueEmbedder
from tabweave.columns.table import Table
from tabweave.columns.vocabulary import Label
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import check_table_size, check_values
from tabweave.embed.register import embedder
from tabweave.space.value_tables import ValueTables


@embedder("onehot", "one dimension per value; the baseline", "one-hot encoding", page="baselines")
class OneHot(ValueEmbedder):
    """Embed rows by one-hot encoding: one indicator per value.

    All values of a column are equally distant. A set-valued cell gets the mean of its elements'
    indicators; an unknown value, or a missing cell, the column's value frequencies.

    Parameters
    ----------
    schema : Schema or mapping of column to kind, optional
        The kinds of the columns that it names; the others are inferred.
    unknown : {"centroid", "error"}, default="centroid"
        What to do with values not seen in fit: use the column's centroid, or raise an error.
    dtype : {"float64", "float32"}, default="float64"
        Type of the vectors.

    Attributes
    ----------
    counts_ : Counts
        What was seen.
    tables_ : ValueTables
        The representation.
    blocks_ : Block
        What each column contributes to a row: vectors, distances and explanations come from it.
    schema_ : Schema
        How each column was read.

    Examples
    --------
    >>> from tabweave import OneHot
    >>> rows = {"color": ["red", "blue", "red"], "size": ["S", "S", "L"]}
    >>> embedder = OneHot().fit(rows)
    >>> embedder.transform(rows)
    array([[0., 1., 0., 1.],
           [1., 0., 0., 1.],
           [0., 1., 1., 0.]])
    >>> embedder.explain({"color": "red", "size": "S"}, {"color": "blue", "size": "S"})
    {'color': 2.0, 'size': 0.0}
    """

    def _check_table(self, table: Table) -> None:
        check_values(table, "OneHot", 1 << 29)

    def _learn(self, counts: Counts) -> ValueTables:
        check_table_size(counts, "OneHot", 1 << 29)
        identities = [
            np.eye(len(labels))[:, self._has_axis(name, labels)]
            for name, labels in zip(counts.names, counts.labels, strict=True)
        ]
        return ValueTables.from_features(identities, counts, compact=False)

    def _has_axis(self, name: str, labels: Sequence[Label]) -> list[bool]:
        """Return which values of a column have a dimension: missing, only where it is a value."""
        is_gap = name in self._gap_columns() and len(labels) > 1
        return [label is not None or not is_gap for label in labels]

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return ``column_value`` for each dimension."""
        super().get_feature_names_out(input_features)
        names: dict[str, None] = {}
        for name, labels in zip(self.counts_.names, self.counts_.labels, strict=True):
            has_axis = self._has_axis(name, labels)
            for label in (label for label, is_one in zip(labels, has_axis, strict=True) if is_one):
                # 1 and "1", or columns whose names contain "_", may ask for the same name.
                candidates = (f"{name}_{_shown(label)}", f"{name}_{label!r}")
                numbered = (f"{candidates[1]}_{i}" for i in count(2))
                names[next(n for n in chain(candidates, numbered) if n not in names)] = None
        return np.asarray(list(names), dtype=object)


def _shown(label: Label) -> str:
    return "<missing>" if label is None else str(label)
