"""Profiles: what clusters are made of on a stream, in a vocabulary that grows.

A profile is how often each value occurs in a cluster. It outlives the representation it was found
in: a row is a sum (or a concatenation) of its values' vectors, so the mean of a cluster in any
later representation is its profile times the new value tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from tabweave.blocks.value_tables import ValueTables
from tabweave.io.register import storable
from tabweave.rows.table import Codes, Schema, Table
from tabweave.rows.vocabulary import Label, positions, union


@storable
@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The values of each column met so far, in order of arrival; one place more for all others."""

    labels: tuple[tuple[Label, ...], ...]

    @property
    def sizes(self) -> np.ndarray:
        """Places of each column, that of unknown values included."""
        return np.array([len(column) + 1 for column in self.labels], np.intp)

    @property
    def starts(self) -> np.ndarray:
        """Where each column starts; the number of places comes last."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def grown(self, table: Table) -> Vocabulary:
        """Return the vocabulary with the values of a table."""
        return Vocabulary(
            tuple(
                tuple(union(known, cast(Codes, column).labels))
                for known, column in zip(self.labels, table.columns, strict=True)
            )
        )

    def codes(self, table: Table) -> np.ndarray:
        """Return the number of each cell's value in its column; it stays when columns grow."""
        out = np.empty((table.n_rows, len(self.labels)), np.int32)
        for a, known in enumerate(self.labels):
            column = cast(Codes, table.columns[a])
            out[:, a] = positions(known, column.labels)[column.codes]
        return out

    def places(self, table: Table) -> np.ndarray:
        """Return the place of each cell, rows × columns."""
        return self.codes(table) + self.starts[:-1]

    def table(self, schema: Schema, codes: np.ndarray) -> Table:
        """Return rows again from the numbers of their values."""
        columns = [Codes(codes[:, a], list(known)) for a, known in enumerate(self.labels)]
        return Table(schema, tuple(columns), len(codes))

    def spread(self, profiles: np.ndarray, older: Vocabulary) -> np.ndarray:
        """Carry profiles over from an older vocabulary."""
        out = np.zeros((len(profiles), int(self.starts[-1])))
        for a, (new, old) in enumerate(zip(self.labels, older.labels, strict=True)):
            where = self.starts[a] + positions(new, old)
            out[:, where] = profiles[:, older.starts[a] : older.starts[a] + len(old)]
        return out

    def vectors(self, tables: ValueTables) -> np.ndarray:
        """Return the vector of each place in a representation, zero outside its own column."""
        parts = [
            rows[np.append(positions(known, own), len(known))]
            for own, known, rows in zip(self.labels, tables.labels, tables.tables, strict=True)
        ]
        if tables.combine == "sum":
            return np.vstack(parts)
        from scipy.linalg import block_diag

        return block_diag(*parts)


def empty(table: Table) -> Vocabulary:
    """Return a vocabulary without values for the columns of a table; refuse sets by name."""
    for column in table.schema.columns:
        if column.kind == "set":
            raise ValueError(
                f"column {column.name!r} holds sets; stream clusterers compare single values: "
                "leave it out"
            )
    return Vocabulary(tuple(() for _ in table.columns))


def profiles_of(places: np.ndarray, labels: np.ndarray, k: int, size: int) -> np.ndarray:
    """Return how often each value occurs in each cluster."""
    flat = (labels[:, None] * size + places).ravel()
    return np.bincount(flat, minlength=k * size).reshape(k, size).astype(np.float64)


def shares(profiles: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return profiles as the share of a cluster's rows that have each value."""
    return profiles / np.where(sizes > 0, sizes, 1)[:, None]


def scores(places: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the sum of each row's weights under each cluster, rows × clusters."""
    columns: Any = np.ascontiguousarray(weights.T)
    out = np.zeros((len(places), len(weights)))
    for a in range(places.shape[1]):
        out += columns[places[:, a]]
    return out
