"""RowEmbedder: the second base, of methods that counts alone do not serve.

Rows are counted as by any other method, and a digest of them is kept beside the counts: HELIC keeps
a sample of pairs of rows, Non-BEND the distinct rows and how often each occurs.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tabweave.base import N_BINS, ValueEmbedder
from tabweave.columns.table import Table, require_rows
from tabweave.counts.counts import Counts, checked_weight, counted_schema
from tabweave.engines import read_with_classes
from tabweave.engines.reading import count_table, hold_counts, read_fitted, read_rows, start_counts
from tabweave.space.numbers import CountedColumns


class RowEmbedder(ValueEmbedder):
    """Base of the embedders that learn from counts and from a digest of the rows.

    A subclass says in ``_rows_needed_for`` what it needs rows for, adds rows to the digest in
    ``_digested``, and reads it as ``_row_digest`` in ``_learn(counts)``. Sources are read into
    memory.
    """

    _digest: Any = None

    def _rows_needed_for(self) -> str:
        """Say, as a predicate, what counts do not tell; empty if these parameters need no rows."""
        return "looks at whole rows"

    def _digested(self, digest: Any, table: Table, y: Any, weight: Any, counts: Counts) -> Any:
        """Add rows to the digest, which is None at first; ``counts`` are those of all rows."""
        raise NotImplementedError(f"{type(self).__name__} must say what it keeps of rows")

    @property
    def _row_digest(self) -> Any:
        if self._digest is None:
            raise ValueError(
                f"{type(self).__name__} {self._rows_needed_for()}, and rows so far were only "
                "counted (fit_counts, fit_batches); fit again with all of them"
            )
        return self._digest

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows; a weight of 2 is the same as having a row twice."""
        self._digest = None
        self.__dict__.pop("_row_columns", None)
        if not self._rows_needed_for():
            return super().fit(X, readable(y), sample_weight)
        self._validate_params()
        return self._add_rows(X, y, sample_weight, first=True, whole=True).learn()

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to what was seen so far; same result as one ``fit`` on all of them in order."""
        if not self._rows_needed_for():
            return super().partial_fit(X, readable(y), sample_weight)
        self._validate_params()
        return self._add_rows(X, y, sample_weight, first=not hasattr(self, "counts_"))

    def fit_counts(self, counts: Counts) -> Self:
        """Learn from counts alone, where the parameters ask for no more; else raise."""
        if need := self._rows_needed_for():
            raise TypeError(f"expected rows, got counts: {type(self).__name__} {need}; use fit")
        self._digest = None
        self.__dict__.pop("_row_columns", None)
        return super().fit_counts(counts)

    def _add_rows(
        self, X: Any, y: Any, sample_weight: Any, *, first: bool, whole: bool = False
    ) -> Self:
        X, y = read_with_classes(X, y)
        table = read_rows(self, X, whole=whole) if first else read_fitted(self, X)
        if first:
            require_rows(table)
        y = readable(y)
        batch = count_table(self, table, y, sample_weight)
        counts, digest = (batch, None) if first else (self.counts_ + batch, self._row_digest)
        if batch.schema is not None:
            weight = checked_weight(sample_weight, table.n_rows)
            if first:
                self._row_columns = CountedColumns.of(
                    counts,
                    counted_schema(counts),
                    N_BINS,
                    missing_is_value=self._missing_is_value,
                    constants=True,
                )
            columns = self._row_columns
            rows, coupled = columns.expanded(table), columns.coupled(counts)
            self._digest = self._digested(digest, rows, y, weight, coupled)
        return start_counts(self, counts) if first else hold_counts(self, counts)


def readable(y: Any) -> Any:
    """Targets that only NumPy can read as an array, and any others as they are."""
    return np.asarray(y) if hasattr(y, "__array__") and not hasattr(y, "__len__") else y


def learns_from_rows(embedder: Any) -> bool:
    """Whether an embedder needs rows; counts suffice for others."""
    return isinstance(embedder, RowEmbedder) and bool(embedder._rows_needed_for())
