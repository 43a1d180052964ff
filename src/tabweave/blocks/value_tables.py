"""ValueTables: a representation as a lookup.

What every method of tabweave ends in: per column a table with one row per value. An object is the
concatenation of its values' rows (squared distances then add up over columns) or their sum. Grams
and wide features are compacted without changing a distance: a column of V values needs at most
V - 1 dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tabweave.blocks.distances import cdist_squared, inner_products
from tabweave.counts.counts import Counts
from tabweave.rows.table import Codes, Sets, Table
from tabweave.rows.vocabulary import Label, Unknown, Vocabulary, buckets_from_text


@dataclass(frozen=True, eq=False)
class ValueTables:
    """One table of rows per categorical column.

    Attributes
    ----------
    vocabulary : Vocabulary
        The columns and their values.
    tables : list of ndarray of shape (values + 1, dimensions)
        The row of each value; the last row is that of an unknown value, the column's centroid.
    combine : {"concat", "sum"}
        Whether an object is the concatenation or the sum of its rows.
    repair : ndarray
        How far each column's Gram was from a Gram: minus its lowest eigenvalue, centred, or 0.
    """

    vocabulary: Vocabulary
    tables: list[np.ndarray]
    combine: Literal["concat", "sum"] = "concat"
    repair: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if self.combine not in ("concat", "sum"):
            raise ValueError(f"combine={self.combine!r}: use 'concat' or 'sum'")
        if self.combine == "sum" and len(set(self.widths)) > 1:
            raise ValueError(f"rows of {self.widths} dimensions cannot be summed")

    # -- building --------------------------------------------------------------------------

    @classmethod
    def from_features(
        cls,
        features: Sequence[np.ndarray],
        counts: Counts,
        *,
        combine: Literal["concat", "sum"] = "concat",
        compact: bool = True,
    ) -> ValueTables:
        """Build from one row of features per value; compacted, distances stay the same."""
        if len(features) != len(counts.names):
            raise ValueError(f"{len(features)} tables for {len(counts.names)} columns")
        if compact and combine == "concat":
            features = [compacted(f) for f in features]
        tables = []
        for a, feature in enumerate(features):
            count = counts.value_counts[counts.span(a)]
            if len(feature) != len(count):
                raise ValueError(
                    f"column {counts.names[a]!r}: {len(feature)} rows for {len(count)} values"
                )
            centroid = count @ feature / max(count.sum(), 1e-300)
            tables.append(np.vstack([feature, centroid]))
        return cls(counts.vocabulary, tables, combine, np.zeros(len(tables)))

    @classmethod
    def from_grams(cls, grams: Sequence[np.ndarray], counts: Counts) -> ValueTables:
        """Build from one Gram matrix per column; an indefinite one is repaired, and said so."""
        factored = [gram_factor(gram) for gram in grams]
        out = cls.from_features([rows for rows, _ in factored], counts, compact=False)
        out.repair[:] = [excess for _, excess in factored]
        return out

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Return the state of an older file in today's fields."""
        if "labels" in state:
            names, labels = state.pop("names"), state.pop("labels")
            state["vocabulary"] = Vocabulary(tuple(names), tuple(map(buckets_from_text, labels)))
        return state

    # -- shape -----------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.vocabulary.names)

    @property
    def labels(self) -> tuple[tuple[Label, ...], ...]:
        """The values of each column."""
        return self.vocabulary.labels

    @property
    def widths(self) -> list[int]:
        """Number of dimensions of each column."""
        return [table.shape[1] for table in self.tables]

    @property
    def n_features(self) -> int:
        """Number of dimensions of an object."""
        return max(self.widths, default=0) if self.combine == "sum" else sum(self.widths)

    def feature_names(self) -> list[str]:
        """Return a name for each dimension of an object."""
        if self.combine == "sum":
            return [f"dim{i}" for i in range(self.n_features)]
        return [
            f"{name}_{i}"
            for name, width in zip(self.names, self.widths, strict=True)
            for i in range(width)
        ]

    def select(self, names: Sequence[str]) -> ValueTables:
        """Return the tables of some columns, in the order given."""
        chosen = [self.vocabulary.index(name) for name in names]
        repair = self.repair[chosen] if len(self.repair) else self.repair
        tables = [self.tables[a] for a in chosen]
        return ValueTables(self.vocabulary.select(names), tables, self.combine, repair)

    # -- looking up ------------------------------------------------------------------------

    def gather(
        self,
        table: Table,
        *,
        dtype: Any = np.float64,
        out: np.ndarray | None = None,
        unknown: Unknown = "centroid",
    ) -> np.ndarray:
        """Return the vector of each row of a table, optionally into a given array."""
        from tabweave.blocks import kernels

        dtype = np.dtype(dtype if out is None else out.dtype)
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"vectors are float32 or float64, not {dtype}")
        if out is None:
            out = np.empty((table.n_rows, self.n_features), dtype)
        elif out.shape != (table.n_rows, self.n_features):
            raise ValueError(f"out has shape {out.shape}, not {(table.n_rows, self.n_features)}")
        sources = [
            (column, rows.astype(out.dtype))
            for column, rows in zip(
                self.vocabulary.find(table), self._rows(table, unknown), strict=True
            )
        ]
        starts = [0] * len(sources)
        if self.combine == "concat":
            starts = [0, *np.cumsum(self.widths)[:-1].tolist()]
        put = kernels.put_rows if self.combine == "concat" else kernels.add_rows

        def fill(block: slice) -> None:
            if self.combine == "sum" or any(isinstance(c, Sets) for c, _ in sources):
                out[block] = 0
            for (column, rows), start in zip(sources, starts, strict=True):
                target = out[block, start : start + rows.shape[1]]
                if isinstance(column, Codes):
                    put(column.codes[block], rows, target)
                else:
                    edges = column.starts[block.start : block.stop + 1]
                    kernels.add_means(edges, column.codes, rows[:-1], rows[-1], target)

        kernels.in_threads(fill, kernels.row_blocks(len(out), out.shape[1] * out.itemsize))
        return out

    def distances(self, A: Table, B: Table | None = None, *, squared: bool = False) -> np.ndarray:
        """Return the Euclidean distances between rows, by lookup where columns allow it."""
        out = self._pairwise(A, B, cdist_squared)
        np.maximum(out, 0, out=out)
        return out if squared else np.sqrt(out, out=out)

    def kernel(self, A: Table, B: Table | None = None) -> np.ndarray:
        """Return the inner products between rows."""
        return self._pairwise(A, B, inner_products)

    def _pairwise(self, A: Table, B: Table | None, entry: Any) -> np.ndarray:
        B = A if B is None else B
        found = (*self.vocabulary.find(A), *self.vocabulary.find(B))
        sets = any(isinstance(column, Sets) for column in found)
        if self.combine == "sum" or sets:
            left = self.gather(A)
            return entry(left, left if B is A else self.gather(B))
        left_codes = self.codes(A)
        right_codes = left_codes if B is A else self.codes(B)
        tables: list[tuple[int, np.ndarray]] = []
        vectors: list[tuple[int, np.ndarray]] = []
        for a, rows in enumerate(self.tables):
            (tables if len(rows) <= _LOOKUP_VALUES else vectors).append((a, rows))
        lookups = [entry(rows, rows) for _, rows in tables]
        chosen = [a for a, _ in tables]
        out = np.zeros((A.n_rows, B.n_rows))
        if chosen:
            out = lookup_sum(
                [left_codes[a] for a in chosen], [right_codes[a] for a in chosen], lookups
            )
        for a, rows in vectors:  # too many values for a table of pairs
            for block in range(0, len(out), 512):
                part = slice(block, block + 512)
                out[part] += entry(rows[left_codes[a][part]], rows[right_codes[a]])
        return out

    def contributions(self, A: Table, B: Table) -> np.ndarray:
        """Return each column's share in the squared distance of row i of A and row i of B.

        The shares of a row add up to the squared distance. Under ``sum`` a share may be negative:
        the column's difference points against the total one.
        """
        parts = []
        for name, rows in zip(self.names, self.tables, strict=True):
            alone = ValueTables(self.vocabulary.select([name]), [rows], "concat")
            parts.append(alone.gather(A) - alone.gather(B))
        if self.combine == "concat":
            return np.stack([(part**2).sum(axis=1) for part in parts], axis=1)
        total = np.sum(parts, axis=0)
        return np.stack([(part * total).sum(axis=1) for part in parts], axis=1)

    def codes(self, table: Table, *, unknown: Unknown = "centroid") -> list[np.ndarray]:
        """Return the codes of a table's single-valued columns in this vocabulary."""
        return self.vocabulary.codes(table, unknown)

    def _rows(self, table: Table, unknown: Unknown) -> list[np.ndarray]:
        """Return, per column, the rows of the table's own labels, and the unknown row last."""
        return [
            rows[np.append(index, len(rows) - 1)]
            for rows, index in zip(
                self.tables, self.vocabulary.positions(table, unknown), strict=True
            )
        ]


_LOOKUP_VALUES = 1024


def lookup_sum(
    left: Sequence[np.ndarray], right: Sequence[np.ndarray], tables: Sequence[np.ndarray]
) -> np.ndarray:
    """Return the matrix with entries ``sum_a tables[a][left[a][i], right[a][j]]``."""
    from tabweave.blocks.kernels import sum_of_lookups

    out = np.empty((len(left[0]), len(right[0])))
    return sum_of_lookups(left, right, [np.asarray(t, np.float64) for t in tables], out)


def compacted(features: np.ndarray) -> np.ndarray:
    """Return rows with the same pairwise distances in at most V - 1 dimensions.

    The singular vectors of the centred features: rotating and shifting changes no distance, and
    centred rows of V values span at most V - 1 dimensions.
    """
    if not features.size:
        return np.zeros((len(features), 0))
    centred = features - features.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    keep = s > max(centred.shape) * np.finfo(float).eps * s[0]
    keep[len(features) - 1 :] = False
    return u[:, keep] * s[keep]


def gram_factor(gram: np.ndarray) -> tuple[np.ndarray, float]:
    """Return rows whose inner products are the centred Gram, and how much had to be repaired.

    Negative eigenvalues, which no set of vectors can have, are set to 0; the second result is the
    size of the lowest one. It is taken on the centred Gram because the constant direction, which
    no distance sees, would hide it.
    """
    gram = np.asarray(gram, dtype=np.float64)
    if not len(gram):
        return np.zeros((0, 0)), 0.0
    centred = gram - gram.mean(axis=0)
    centred = centred - centred.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh((centred + centred.T) / 2)
    noise = len(values) * np.finfo(float).eps * np.abs(values).max()
    keep = values > noise
    keep[: max(0, keep.sum() - (len(values) - 1))] = False
    excess = float(max(0.0, -values[0])) if values[0] < -10 * noise else 0.0
    return vectors[:, keep] * np.sqrt(values[keep]), excess
