"""Couplings: counts in, one Gram matrix per column, coupling space and kernel out.

A coupling space places the values of a column as points: by their frequency (intra), by their
conditional probabilities with the values of other columns (inter), with the classes (class), or
each on its own axis (identity). Kernels then see those points at many scales. A column with more
than ``max_landmarks`` values is seen through its most frequent values (Nyström), so that cost
stays linear in the number of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from weft.counts import Counts
from weft.spaces import frequencies

Kernel = Callable[..., np.ndarray]
WIDTHS = tuple(2.0**e for e in range(-5, 6))
DEGREES = (1, 2, 3)
MAX_LANDMARKS = 512
NEGLIGIBLE = 1e-8  # inertia of a kernel that tells no values apart


# -- points -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Points:
    """The values of one column as points: ``matrix + outer(left, right)``, never formed.

    Smoothed probabilities are a sparse matrix plus a rank-one part; kept apart, a column with many
    values stays sparse.
    """

    matrix: Any
    left: np.ndarray
    right: np.ndarray

    def inner(self, rows: np.ndarray) -> np.ndarray:
        """Return the inner products of all points with those in ``rows``."""
        part = self.matrix[rows]
        product = self.matrix @ part.T
        product = product.toarray() if sparse.issparse(product) else product
        mine, theirs = self.matrix @ self.right, part @ self.right
        some = self.left[rows]
        return (
            product
            + np.outer(self.left, theirs)
            + np.outer(mine, some)
            + (self.right @ self.right) * np.outer(self.left, some)
        )

    def norms(self) -> np.ndarray:
        """Return the squared length of each point."""
        squares = self.matrix.multiply(self.matrix) if sparse.issparse(self.matrix) else None
        own = np.asarray(squares.sum(axis=1)).ravel() if squares is not None else None
        if own is None:
            own = np.einsum("ij,ij->i", self.matrix, self.matrix)
        cross = 2 * self.left * np.asarray(self.matrix @ self.right).ravel()
        return own + cross + (self.right @ self.right) * self.left**2


def intra(counts: Counts, column: int) -> Points:
    """Eqs. (6.2), (7.2): a value is its frequency f(v)."""
    f = frequencies(counts)[column]
    return Points(f[:, None], np.zeros(len(f)), np.zeros(1))


def inter(counts: Counts, column: int, smoothing: float = 0.0) -> Points:
    """Eqs. (6.4), (7.5): a value is ``[p(v|w)]`` over the values w of the other columns.

    With s pseudo-counts of the marginal, ``p(v|w) = (C_vw + s f(v)) / (c_w + s)``.
    """
    block, others = _with_others(counts, column)
    scale = 1 / (others + smoothing)
    f = frequencies(counts)[column]
    return Points(_scaled(block, scale), smoothing * f, scale)


def reverse(counts: Counts, column: int, smoothing: float = 0.0) -> Points:
    """Ours: a value is ``[p(w|v)]`` over the values w of the other columns.

    With s pseudo-counts of the marginal, ``p(w|v) = (C_vw + s f(w)) / (c_v + s)``.
    """
    block, others = _with_others(counts, column)
    own = counts.value_counts[counts.span(column)]
    scale = 1 / (own + smoothing)
    return Points(_scaled(block.T, scale).T, smoothing * scale, others / counts.n)


def by_class(counts: Counts, column: int, smoothing: float = 0.0) -> Points:
    """Eq. (6.6): a value is ``[p(v|class)]`` over the classes."""
    if counts.class_pairs is None or counts.class_n is None:
        raise ValueError("the class space needs classes; count the rows with y")
    scale = 1 / (counts.class_n + smoothing)
    f = frequencies(counts)[column]
    return Points(counts.class_pairs[counts.span(column)] * scale, smoothing * f, scale)


def _with_others(counts: Counts, column: int) -> tuple[Any, np.ndarray]:
    """Return the pair counts of a column with all other columns, and those values' counts."""
    span = counts.span(column)
    keep = np.delete(np.arange(counts.pairs.shape[0]), np.arange(span.start, span.stop))
    return counts.pairs[span][:, keep], counts.value_counts[keep].astype(np.float64)


def _scaled(block: Any, scale: np.ndarray) -> Any:
    if sparse.issparse(block):
        return sparse.csr_array(block @ sparse.diags_array(scale))
    return block * scale


# -- kernels ------------------------------------------------------------------------------------


def gaussian(inner: np.ndarray, left: np.ndarray, right: np.ndarray, *, width: float) -> Any:
    """Return ``exp(-|x - y|² / 2σ²)`` from x·y, |x|² and |y|², elementwise."""
    apart = np.multiply(inner, -2)  # in place from here: with many values this is where time goes
    apart += left
    apart += right
    np.maximum(apart, 0, out=apart)
    apart *= -0.5 / (width * width)
    return np.exp(apart, out=apart)


def polynomial(inner: np.ndarray, left: np.ndarray, right: np.ndarray, *, degree: int) -> Any:
    """Return ``(x·y)^p`` from x·y, elementwise."""
    return inner**degree


def kernel_family(
    widths: Sequence[float] = WIDTHS, degrees: Sequence[int] = DEGREES
) -> dict[str, Kernel]:
    """Return the kernels of Section 6.2.3: Gaussians of several widths, and polynomials."""
    family: dict[str, Kernel] = {f"gauss{w:g}": partial(gaussian, width=w) for w in widths}
    return family | {f"poly{d}": partial(polynomial, degree=d) for d in degrees}


def landmarks(counts: Counts, column: int, at_most: int) -> np.ndarray:
    """Return the values a column is seen through: all, or the most frequent ones."""
    count = counts.value_counts[counts.span(column)]
    if len(count) <= at_most:
        return np.arange(len(count))
    return np.sort(np.argsort(-count, kind="stable")[:at_most])


@dataclass(frozen=True)
class KernelBlock:
    """One kernel of one space of a column: all values against the landmarks."""

    space: str
    kernel: str
    gram: np.ndarray
    diagonal: np.ndarray

    def inertia(self, weights: np.ndarray, marks: np.ndarray) -> float:
        """Return the variance of the values in this kernel, weighted; exact if all are landmarks.

        The weighted trace of the centred Gram: what the column adds to the spread of objects.
        """
        share = weights[marks] / weights[marks].sum()
        return float(weights @ self.diagonal - weights @ self.gram @ share)


def kernel_blocks(
    spaces: dict[str, Points], kernels: dict[str, Kernel], marks: np.ndarray
) -> Iterator[KernelBlock]:
    """Yield every kernel of every space of a column."""
    for space, points in spaces.items():
        norms, inner = points.norms(), points.inner(marks)
        for name, kernel in kernels.items():
            gram = kernel(inner, norms[:, None], norms[None, marks])
            yield KernelBlock(space, name, gram, kernel(norms, norms, norms))


def identity_block(n_values: int, marks: np.ndarray) -> KernelBlock:
    """Ours: every value on its own axis, so that no two values fall together."""
    gram = np.zeros((n_values, len(marks)))
    gram[marks, np.arange(len(marks))] = 1
    return KernelBlock("identity", "match", gram, np.ones(n_values))


def factor(gram: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Return rows whose inner products are (or by Nyström approximate) a kernel of all values."""
    if len(marks) == len(gram):
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        keep = values > len(values) * np.finfo(float).eps * max(values[-1], 0)
        return vectors[:, keep] * np.sqrt(values[keep])
    core = gram[marks]
    values, vectors = np.linalg.eigh((core + core.T) / 2)
    keep = values > 1e-10 * values[-1]
    return gram @ (vectors[:, keep] / np.sqrt(values[keep]))
