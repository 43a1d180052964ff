"""The two projections of HeMap [Shi 2013, section 5.4], solved in the space of columns.

Row i of the target and row i of the source are taken to belong together: that is all the two
tables share, and why the order of rows matters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, solve

_RIDGE = 1e-3  # of the mean square of a column: columns may outnumber rows
_RANK = 1e-10


class Frame(NamedTuple):
    """Where a table is centred, and the unit of each column; rows then have mean square 1."""

    mean: np.ndarray
    unit: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, scale: bool) -> Frame:
        """Measure a table; columns keep their units unless ``scale``."""
        mean = X.mean(axis=0)
        spread = X.std(axis=0)
        # A constant column has no spread but rounding; it says nothing and stays at 0.
        flat = spread <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
        unit = np.where(flat, np.inf, spread if scale else 1.0)
        size = np.sqrt(np.sum((spread / unit) ** 2))
        return cls(mean, unit * size if size > 0 else unit)

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Return the centred and scaled table."""
        return (X - self.mean) / self.unit


class Embedding(NamedTuple):
    """The projected rows and what they weigh: Algorithms 3 and 4."""

    B_T: np.ndarray
    B_S: np.ndarray
    eigenvalues: np.ndarray


class Factor(NamedTuple):
    """Eqs. (5.8) and (5.15): A = FFᵀ, where F = [Z·a; Z·b] weighs the columns Z twice.

    Z holds the columns of T, of S and of the two partitions, row by aligned row; a is how much
    each counts in a projected target row, b in a projected source row.
    """

    Z: np.ndarray
    a: np.ndarray
    b: np.ndarray

    @classmethod
    def of(
        cls,
        T: np.ndarray,
        S: np.ndarray,
        C_T: np.ndarray,
        C_S: np.ndarray,
        beta: float,
        theta: float,
    ) -> Factor:
        """Return F of aligned rows; θ = 1 is the linear case."""
        own, other = np.sqrt(2) * theta, beta / np.sqrt(2)
        kept = np.sqrt((1 - theta) * (beta + 2 * theta))
        widths = [M.shape[1] for M in (T, S, C_T, C_S)]
        return cls(
            np.hstack([T, S, C_T, C_S]),
            np.repeat([own, other, kept, 0.0], widths),
            np.repeat([other, own, 0.0, kept], widths),
        )

    def smaller_gram(self) -> np.ndarray:
        """Return FᵀF, or FFᵀ = A if there are more columns than rows to solve for."""
        Z, a, b = self
        if Z.shape[1] <= 2 * len(Z):
            return (np.outer(a, a) + np.outer(b, b)) * (Z.T @ Z)
        across = (Z * (a * b)) @ Z.T
        return np.block([[(Z * a**2) @ Z.T, across], [across, (Z * b**2) @ Z.T]])


def embed(F: Factor, n_components: int) -> Embedding:
    """Return the top eigenvectors of A = FFᵀ, through FᵀF when that is smaller.

    With FᵀF = VΛVᵀ the eigenvectors of A are FVΛ^(-1/2). Each is turned so that its largest
    entry is positive; directions without weight are left out.
    """
    gram = F.smaller_gram()
    size = len(gram)
    values, V = eigh(gram, subset_by_index=[max(size - n_components, 0), size - 1])
    values, V = values[::-1], V[:, ::-1]
    kept = values > _RANK * max(values[0], 1e-300)
    values, V = values[kept], V[:, kept]
    if size == F.Z.shape[1]:
        V = np.vstack([F.Z @ (F.a[:, None] * V), F.Z @ (F.b[:, None] * V)]) / np.sqrt(values)
    largest = np.abs(V).argmax(axis=0)
    V = V * np.where(V[largest, np.arange(V.shape[1])] < 0, -1.0, 1.0)
    return Embedding(V[: len(F.Z)], V[len(F.Z) :], values)


def linear_map(features: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return W with features @ W ≈ B (ridge): how a row alone, without its partner, is projected.

    A projected target row depends on the source row it is aligned with; a new row has none, so
    that part is replaced by what the target's own columns say about it.
    """
    n, m = features.shape
    gram = features @ features.T if m > n else features.T @ features
    gram[np.diag_indices_from(gram)] += max(_RIDGE * np.trace(gram) / m, 1e-300)
    if m > n:
        return features.T @ solve(gram, B, assume_a="pos")
    return solve(gram, features.T @ B, assume_a="pos")
