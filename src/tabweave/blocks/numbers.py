"""Numbers by their absolute difference, as vectors: three coordinates a column.

|z - y| is a squared Euclidean distance: that of a ladder with one coordinate per rung, 1 below the
number and 0 above. With a rung per standard deviation and normal weights, three directions of the
ladder hold nine tenths of its inertia; they are curves of z, straight between whole deviations and
beyond the third. Near numbers are told apart as squares tell them, far ones as absolute values do,
and outliers do not rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from tabweave.counts.counts import Counts
from tabweave.io.register import storable
from tabweave.rows.table import Table

KNOTS = np.arange(-3.0, 4.0)  # in standard deviations
BENDS = KNOTS[1:-1]
WIDTH = 3
_NORMAL = 10_000  # quantiles that stand for a normal column


@storable
class Absolute:
    """Numbers in curves of their standardised value; a missing one lies at the mean."""

    def __init__(self, counts: Counts, names: Sequence[str], weights: np.ndarray) -> None:
        self.names = list(names)
        self.mean, self.factor = standardised(counts, names)
        self.rows = curves()
        self.height = np.where(self.factor > 0, np.sqrt(weights), 0)
        self.inertia = float((self.height**2).sum())  # of normal numbers

    def feature_names(self) -> list[str]:
        return [f"{name}_{i}" for name in self.names for i in range(WIDTH)]

    def put(self, table: Table, out: np.ndarray) -> None:
        for j, name in enumerate(self.names):
            self._put(j, table[name].values, out[:, j * WIDTH : (j + 1) * WIDTH])

    def column(self, j: int, values: np.ndarray) -> np.ndarray:
        """Return the coordinates of one column's numbers."""
        out = np.empty((len(values), WIDTH))
        self._put(j, values, out)
        return out

    def _put(self, j: int, values: np.ndarray, out: np.ndarray) -> None:
        from tabweave.blocks.kernels import put_curves

        rows = self.rows * self.height[j]
        put_curves(values, self.mean[j], self.factor[j], KNOTS[0], rows, out)

    def parts(self, table: Table) -> tuple[list[str], np.ndarray]:
        """Return what each column brings to the vector: (names, (columns, rows, dimensions))."""
        out = np.zeros((len(self.names), table.n_rows, len(self.names) * WIDTH))
        for j, name in enumerate(self.names):
            self._put(j, table[name].values, out[j, :, j * WIDTH : (j + 1) * WIDTH])
        return self.names, out


def curves() -> np.ndarray:
    """Return the coordinates at the knots; in them normal numbers have mean 0 and inertia 1."""
    edges = np.concatenate([[-np.inf], (KNOTS[1:] + KNOTS[:-1]) / 2, [np.inf]])
    share = np.diff(ndtr(edges))
    centre = np.eye(len(KNOTS)) - share
    gram = centre @ (-np.abs(KNOTS[:, None] - KNOTS) / 2) @ centre.T
    root = np.sqrt(share)
    values, vectors = np.linalg.eigh(root[:, None] * gram * root)
    values, vectors = values[: -WIDTH - 1 : -1], vectors[:, : -WIDTH - 1 : -1]
    vectors = vectors * np.sign(vectors[-1])  # an eigenvector has no sign of its own
    rows = vectors * np.sqrt(values) / root[:, None]
    seen = along(rows, ndtri((np.arange(_NORMAL) + 0.5) / _NORMAL))
    return (rows - seen.mean(axis=0)) / np.sqrt(seen.var(axis=0).sum())


def along(rows: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the points of curves, straight between the knots and beyond the outer ones."""
    from tabweave.blocks.kernels import put_curves

    out = np.empty((len(z), rows.shape[1]))
    put_curves(z, 0.0, 1.0, KNOTS[0], rows, out)
    return out


def bent(rows: np.ndarray) -> np.ndarray:
    """Return the same curves as sums, for systems that have no cells: see :func:`terms`."""
    return np.linalg.solve(terms(KNOTS), rows)


def terms(z: np.ndarray) -> np.ndarray:
    """Return ``|z - bend|`` for each inner knot, ``z`` and 1: any curve is a sum of them."""
    return np.column_stack([np.abs(z[:, None] - BENDS), z, np.ones(len(z))])


def standardised(counts: Counts, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and one over the deviation, 0 for a column that does not vary."""
    moments = [counts.moments(name) for name in names]
    mean = np.array([mean if n else 0.0 for n, mean, _ in moments])
    variance = np.array([v if n else 0.0 for n, _, v in moments])
    return mean, np.where(variance > 0, 1 / np.sqrt(np.where(variance > 0, variance, 1)), 0)


@storable
class Standard:
    """Numbers with mean 0 and variance 1, times a weight; a missing one lies at the mean."""

    def __init__(self, counts: Counts, names: Sequence[str], weights: np.ndarray) -> None:
        self.names = list(names)
        self.mean, scale = standardised(counts, names)
        self.factor = scale * np.sqrt(weights)
        self.inertia = float(weights[scale > 0].sum())  # a column that does not vary says nothing

    def feature_names(self) -> list[str]:
        return self.names

    def put(self, table: Table, out: np.ndarray) -> None:
        for j, name in enumerate(self.names):
            out[:, j : j + 1] = self.column(j, table[name].values)

    def column(self, j: int, values: np.ndarray) -> np.ndarray:
        """Return the coordinate of one column's numbers."""
        scaled = (values - self.mean[j]) * self.factor[j]
        return np.where(np.isnan(scaled), 0, scaled)[:, None]

    def parts(self, table: Table) -> tuple[list[str], np.ndarray]:
        """Return what each column brings to the vector: (names, (columns, rows, dimensions))."""
        vectors = np.zeros((table.n_rows, len(self.names)))
        self.put(table, vectors)
        return self.names, vectors.T[:, :, None] * np.eye(len(self.names))[:, None, :]
