"""The spectrum of CoCA: X + X̃ as an operator, its leading eigenvectors, graphs made comparable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from tabweave.counts.spectra import fix_signs
from tabweave.sources.coca.views import View

DENSE = 512  # up to this size the matrix is written out: cheaper than iterating
_CELLS = 1 << 24  # numbers held at once while it is written out


def collective(
    views: Sequence[View], weights: np.ndarray, alpha: float, graph: sp.csr_array | None
) -> LinearOperator:
    """Eqs. (4.8), (4.14): X + X̃ over n, as the map u ↦ (X + X̃)u / n; never a (Σd)² matrix.

    With T = [X⁽¹⁾ᵀu⁽¹⁾ … X⁽ᵖ⁾ᵀu⁽ᵖ⁾], block j of the result is
    ``X⁽ʲ⁾ ((ω_j − α) T_j + α Σ_h T_h + M T_j) / n``.
    """
    ends = np.cumsum([view.width for view in views])
    starts, size, n = ends - [view.width for view in views], int(ends[-1]), views[0].n

    def apply(u: np.ndarray) -> np.ndarray:
        u = u.reshape(size, -1)
        parts = [v.forward(u[a:b]) for v, a, b in zip(views, starts, ends, strict=True)]
        pull = alpha * np.sum(parts, axis=0)
        if graph is None:
            near = [0.0] * len(parts)
        else:  # all parts in one pass over the edges
            near = np.hsplit(graph @ np.hstack(parts), len(parts))
        out = np.empty_like(u)
        for j, view in enumerate(views):
            values = (weights[j] - alpha) * parts[j] + pull + near[j]
            out[starts[j] : ends[j]] = view.backward(values) / n
        return out

    return LinearOperator(
        (size, size), matvec=lambda u: apply(u).ravel(), matmat=apply, dtype=np.float64
    )


def within(graph: sp.csr_array) -> LinearOperator:
    """Eq. (4.11) for zero-mean Φ: HMH with H the centring matrix."""

    def apply(phi: np.ndarray) -> np.ndarray:
        out = graph @ (phi - phi.mean(axis=0))
        return out - out.mean(axis=0)

    return LinearOperator(graph.shape, matvec=apply, matmat=apply, dtype=np.float64)


def leading(operator: LinearOperator, k: int, rows: int, solver: str) -> tuple[np.ndarray, ...]:
    """Return the k largest eigenvalues and their eigenvectors; ``rows`` sizes the batches."""
    size = operator.shape[0]
    if solver == "dense" or k >= size - 1 or (solver == "auto" and size <= DENSE):
        step = max(1, _CELLS // max(rows, 1))
        unit = np.eye(size)
        matrix = np.hstack([operator.matmat(unit[:, i : i + step]) for i in range(0, size, step)])
        values, vectors = eigh((matrix + matrix.T) / 2, subset_by_index=[size - k, size - 1])
    else:
        values, vectors = _lanczos(operator, k)
    order = np.argsort(-values, kind="stable")
    return values[order], fix_signs(vectors[:, order])


def _lanczos(operator: LinearOperator, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return k leading eigenpairs, also where eigenvalues coincide: in graphs of many pieces, say.

    Lanczos from one start can miss copies of an eigenvalue. So the largest one without the vectors
    found is looked at, and as long as it belongs among them, what is left is searched as well.
    """
    # Fixed starts: the same sources give the same coordinates. New ones, for a start has but one
    # vector in common with the space of an eigenvalue, and that is found first.
    starts = np.random.default_rng(0)
    values, vectors = _search(operator, k, starts, 0.0)
    while True:
        rest = _without(operator, vectors)
        if _search(rest, 1, starts, 1e-6)[0][0] <= values.min() + 1e-9 * np.abs(values).max():
            return values, vectors
        more, others = _search(rest, k, starts, 0.0)
        best = np.argsort(-np.append(values, more), kind="stable")[:k]
        values, vectors = np.append(values, more)[best], np.hstack([vectors, others])[:, best]


def _search(
    operator: LinearOperator, k: int, starts: np.random.Generator, tol: float
) -> tuple[np.ndarray, np.ndarray]:
    size = operator.shape[0]
    start = starts.standard_normal(size)
    basis = min(size, max(2 * k + 20, 40))
    return eigsh(operator, k=k, which="LA", v0=start, ncv=basis, tol=tol)


def _without(operator: LinearOperator, vectors: np.ndarray) -> LinearOperator:
    """Return the operator on what is orthogonal to some eigenvectors, far below zero on them."""

    def apply(u: np.ndarray) -> np.ndarray:
        shares = vectors.T @ u
        u = u - vectors @ shares
        out = operator.matvec(u)
        return out - vectors @ (vectors.T @ out) - vectors @ shares

    return LinearOperator(operator.shape, matvec=apply, dtype=np.float64)


def normalised(graph: sp.csr_array, alone: bool) -> sp.csr_array:
    """Return D^{-½} M D^{-½}: spectrum within [−1, 1], whatever the weights and density.

    In a graph alone every piece would have eigenvalue 1, and the many small ones come first: there
    the mean degree is added to each, so that pieces count by their size.
    """
    degree = np.asarray(graph.sum(axis=1)).ravel()
    degree = degree + degree.mean() if alone else degree
    root = sp.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1.0)))
    return sp.csr_array(root @ graph @ root)


def blended(
    graphs: Sequence[sp.csr_array], weights: Sequence[float], *, alone: bool = False
) -> sp.csr_array | None:
    """Return Σ ω̃_t M⁽ᵗ⁾ of Eq. (4.14) over normalised graphs, None if there is none."""
    parts = [w * normalised(g, alone) for g, w in zip(graphs, weights, strict=True) if w > 0]
    return sp.csr_array(sum(parts[1:], start=parts[0])) if parts else None
