"""OMP and Batch-OMP: write signals as sums of few atoms [Menon et al. 2013, Algorithms 2 and 3].

Signals and a dictionary of unit atoms in, sparse codes out. Signals are coded independently, in
compiled code on all cores; a sparse matrix is read in blocks of rows and never made dense whole.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from tabweave._compat import njit, one_blas_thread
from tabweave.columns.vocabulary import slices
from tabweave.space.block import in_threads

CHUNK_ENTRIES = 1 << 22  # atoms and coefficients held before they are packed: 48 MB
# A share of the signal's or atom's length: what is below is rounding, and products this close tie.
ROUNDING = 1e-10
FAST_SUMS = {"nnan", "ninf", "nsz", "reassoc", "contract"}  # lets sums use vector registers


def omp(
    X: Any,
    atoms: Any,
    *,
    n_nonzero: int | None = None,
    error: float | None = None,
    relative: bool = True,
) -> sparse.csr_array:
    """Code signals by orthogonal matching pursuit.

    Eq. (4) by Algorithm 2: at each step the atom with the largest ``|d·r|`` joins, the signal is
    projected on the chosen atoms through a Cholesky factor that grows by one row, and the residual
    r is what is left. Prefer :func:`batch_omp`, which gives the same codes, unless signals are few.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_signals, n_features)
        The signals.
    atoms : array of shape (n_atoms, n_features)
        The dictionary, one atom of length 1 in each row.
    n_nonzero : int, optional
        Most atoms of a signal.
    error : float, optional
        A signal is done when its squared error is at most this share of its energy ``‖x‖²``.
        Without ``n_nonzero`` and ``error``, both are as in Algorithm 3: half the energy,
        and at most half of the atoms.
    relative : bool, default=True
        With False, ``error`` is the squared error itself, not a share.

    Returns
    -------
    codes : scipy.sparse.csr_array of shape (n_signals, n_atoms)
        ``codes @ atoms`` approximates X.

    Notes
    -----
    A zero signal has no atoms. A signal stops early when what is left is orthogonal to all atoms,
    or when the next atom depends linearly on those it has. Of atoms that fit equally well the
    first is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.embed.sets import omp
    >>> omp([[3.0, 0.1], [0.0, 2.0]], np.eye(2), n_nonzero=1).toarray()
    array([[3., 0.],
           [0., 2.]])
    """
    X, atoms = _signals(X, atoms)
    limit, share = stopping(n_nonzero, error, len(atoms))
    return pursue(X, atoms, limit, share, relative, "omp")[0]


def batch_omp(
    X: Any,
    atoms: Any,
    *,
    gram: Any = None,
    n_nonzero: int | None = None,
    error: float | None = None,
    relative: bool = True,
) -> sparse.csr_array:
    """Code many signals by orthogonal matching pursuit on the Gram matrix.

    Algorithm 3: with ``G = DDᵀ`` and ``α⁰ = Dx`` at hand, a step needs neither signal nor residual:
    ``α = α⁰ − G_I γ_I``, and the squared error falls by ``δ_m − δ_{m−1}``. Same codes as
    :func:`omp`.

    Parameters
    ----------
    X, atoms, n_nonzero, error, relative
        As in :func:`omp`, and so is what is returned. Errors below about 1e-14 of the energy
        cannot be distinguished from rounding here.
    gram : array of shape (n_atoms, n_atoms), optional
        ``atoms @ atoms.T``, if it was computed already.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.embed.sets import batch_omp
    >>> atoms = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> batch_omp([[1.6, 0.8], [0.0, 0.0]], atoms, n_nonzero=2).toarray().round(6)
    array([[1., 1.],
           [0., 0.]])
    """
    X, atoms = _signals(X, atoms)
    limit, share = stopping(n_nonzero, error, len(atoms))
    if gram is not None:
        gram = np.ascontiguousarray(check_array(gram, dtype=np.float64, input_name="gram"))
        if gram.shape != (len(atoms), len(atoms)):
            raise ValueError(
                f"gram: expected {len(atoms)} × {len(atoms)}, one row per atom, got {gram.shape}"
            )
        _check_lengths(gram.diagonal(), "the gram matrix says")
    return pursue(X, atoms, limit, share, relative, "batch", gram)[0]


def stopping(n_nonzero: Any, error: Any, n_atoms: int) -> tuple[int, float]:
    """(most atoms of a signal, error at which it is done), as published if neither is given.

    Algorithm 3, steps 2 and 5.
    """
    if n_nonzero is None and error is None:
        return max(1, n_atoms // 2), 0.5
    if n_nonzero is not None and (
        not isinstance(n_nonzero, Integral) or isinstance(n_nonzero, bool) or n_nonzero < 1
    ):
        raise ValueError(f"expected n_nonzero to be a whole number >= 1, got {n_nonzero!r}")
    if error is not None and (
        not isinstance(error, int | float | np.number) or not 0 <= error < np.inf
    ):
        raise ValueError(f"expected error to be a number >= 0, got {error!r}")
    limit = n_atoms if n_nonzero is None else min(int(n_nonzero), n_atoms)
    return limit, 0.0 if error is None else float(error)


def pursue(
    X: Any,
    atoms: np.ndarray,
    limit: int,
    error: float,
    relative: bool,
    pursuit: str,
    gram: np.ndarray | None = None,
) -> tuple[sparse.csr_array, np.ndarray]:
    """Codes of checked signals and the squared error of each."""
    if gram is None and pursuit == "batch":
        gram = _gram(atoms)
    with np.errstate(over="ignore"):
        energy = energies(X)
    if not np.isfinite(energy).all():
        row = int(np.argmin(np.isfinite(energy)))
        raise ValueError(f"expected signals of finite length, got row {row} beyond 1e154; scale X")
    target = error * energy if relative else np.full(len(energy), error)
    errors, parts = np.empty(len(energy)), [sparse.csr_array((0, len(atoms)))]
    # No signal needs more atoms than there are dimensions: the others would be dependent.
    limit = min(limit, atoms.shape[1])
    for chunk in slices(X.shape[0], limit, CHUNK_ENTRIES):
        shape = (chunk.stop - chunk.start, limit)
        support, coefficients = np.empty(shape, np.int32), np.empty(shape)
        size = np.empty(len(support), np.int64)

        def work(rows: slice, chunk=chunk, outputs=(support, coefficients, size)) -> None:
            signal_rows = slice(chunk.start + rows.start, chunk.start + rows.stop)
            outputs_here = (*(a[rows] for a in outputs), errors[signal_rows])
            signals = X[signal_rows]
            if pursuit == "batch":
                inputs = products(signals, atoms), energy[signal_rows], gram, target[signal_rows]
                batch_omp_rows(*inputs, *outputs_here)
            else:
                dense = signals.toarray() if sparse.issparse(signals) else signals
                omp_rows(dense, atoms, target[signal_rows], *outputs_here)

        share_rows(work, len(support))
        parts.append(_packed(support, coefficients, size, len(atoms)))
    return sparse.csr_array(sparse.vstack(parts, format="csr")), errors


def code_errors(X: Any, atoms: np.ndarray, codes: sparse.csr_array) -> np.ndarray:
    """Squared error ``‖x − γD‖²`` of each signal under given codes."""
    gram, energy = _gram(atoms), energies(X)
    out = np.empty(len(energy))

    def work(rows: slice) -> None:
        starts = codes.indptr[rows.start : rows.stop + 1]
        inputs = products(X[rows], atoms), energy[rows], gram
        errors_of(*inputs, starts, codes.indices, codes.data, out[rows])

    share_rows(work, len(out))
    return out


def _gram(atoms: np.ndarray) -> np.ndarray:
    """``DDᵀ``."""
    with one_blas_thread():
        return atoms @ atoms.T


def products(X: Any, atoms: np.ndarray) -> np.ndarray:
    """``XDᵀ``, dense."""
    return np.ascontiguousarray(X @ atoms.T)


def energies(X: Any) -> np.ndarray:
    """``‖x‖²`` of each row."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)


def _packed(
    support: np.ndarray, coefficients: np.ndarray, size: np.ndarray, n_atoms: int
) -> sparse.csr_array:
    starts = np.concatenate([[0], np.cumsum(size)])
    indices, data = np.empty(starts[-1], np.int32), np.empty(starts[-1])
    pack(support, coefficients, starts, indices, data)
    if starts[-1] <= np.iinfo(np.int32).max:
        starts = starts.astype(np.int32)
    return sparse.csr_array((data, indices, starts), shape=(len(size), n_atoms))


def _signals(X: Any, atoms: Any) -> tuple[Any, np.ndarray]:
    """Check signals and atoms; bring both into the form the loops read."""
    X = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=0, order="C")
    atoms = np.ascontiguousarray(check_array(atoms, dtype=np.float64, input_name="atoms"))
    if X.shape[1] != atoms.shape[1]:
        raise ValueError(f"expected atoms of {X.shape[1]} features, as X has, got {atoms.shape[1]}")
    _check_lengths(energies(atoms), "its squared length is")
    return X, atoms


def _check_lengths(squared: np.ndarray, says: str, *, tolerance: float = 1e-6) -> None:
    wrong = np.flatnonzero(np.abs(squared - 1) > tolerance)
    if len(wrong):
        raise ValueError(
            f"expected atoms of length 1, got atom {wrong[0]}: {says} {squared[wrong[0]]:.6g}; "
            "divide each row of atoms by its length, and drop those that are zero"
        )


def share_rows(work: Callable[[slice], None], n_rows: int, *, block_rows: int = 512) -> None:
    """Call ``work(rows)`` for blocks of rows, on all cores."""
    with one_blas_thread():
        in_threads(work, slices(n_rows, 1, block_rows))


# -- compiled loops -------------------------------------------------------------------------------
# Both pursuits pick atoms in the same order and stop by the same rules; they differ in what they
# keep. OMP keeps the residual and compares it with every atom at each step (K·d products);
# Batch-OMP keeps the products of the residual with the atoms and never sees the signal again.


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
def _first_of(products, largest):
    """First atom whose product is as large as the largest."""
    k = 0
    while abs(products[k]) < largest * (1.0 - ROUNDING):
        k += 1
    return k


@njit(nogil=True, cache=True)
def _solve_upper(L, b, m, x):
    """Solve Lᵀ x = b for the first m unknowns; b and x may be the same array."""
    for i in range(m - 1, -1, -1):
        total = b[i]
        for j in range(i + 1, m):
            total -= L[j, i] * x[j]
        x[i] = total / L[i, i]


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
def batch_omp_rows(products, energy, gram, target, support, coefficients, size, error):
    """Algorithm 3: code signals from their products with the atoms.

    ``q[j]`` holds the products of all atoms with the j-th chosen atom made orthogonal to those
    before it. Row m of the Cholesky factor then needs no solving: it is ``q[:m, k]``.
    """
    limit, n_atoms = support.shape[1], gram.shape[0]
    alpha, row = np.empty(n_atoms), np.empty(n_atoms)
    q, L, steps = np.empty((limit, n_atoms)), np.empty((limit, limit)), np.empty(limit)
    for i in range(products.shape[0]):
        left, negligible, largest, m = energy[i], ROUNDING * np.sqrt(energy[i]), 0.0, 0
        for t in range(n_atoms):
            alpha[t] = products[i, t]
            largest = max(largest, abs(alpha[t]))
        while m < limit and left > target[i] and largest > negligible:
            k = _first_of(alpha, largest)
            distance = 1.0
            for j in range(m):
                L[m, j] = q[j, k]
                distance -= L[m, j] * L[m, j]
            if distance <= ROUNDING:
                break
            L[m, m] = np.sqrt(distance)
            for t in range(n_atoms):
                row[t] = gram[k, t]
            for j in range(m):
                for t in range(n_atoms):
                    row[t] -= L[m, j] * q[j, t]
            steps[m] = alpha[k] / L[m, m]
            largest = 0.0
            for t in range(n_atoms):
                q[m, t] = row[t] / L[m, m]
                alpha[t] -= steps[m] * q[m, t]
                largest = max(largest, abs(alpha[t]))
            left -= steps[m] * steps[m]
            support[i, m] = k
            m += 1
        _solve_upper(L, steps, m, coefficients[i])
        size[i], error[i] = m, max(left, 0.0)


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
def _compare(atoms, residual, products):
    """Set the product of each atom with the residual; return the largest in size."""
    largest = 0.0
    for k in range(atoms.shape[0]):
        total = 0.0
        for t in range(atoms.shape[1]):
            total += atoms[k, t] * residual[t]
        products[k] = total
        largest = max(largest, abs(total))
    return largest


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
def _append_row(L, atoms, chosen, m, k):
    """Grow the Cholesky factor of the chosen atoms' Gram by atom k; tell whether it could."""
    distance = 1.0
    for j in range(m):
        total = 0.0
        for t in range(atoms.shape[1]):
            total += atoms[chosen[j], t] * atoms[k, t]
        for s in range(j):
            total -= L[m, s] * L[j, s]
        L[m, j] = total / L[j, j]
        distance -= L[m, j] * L[m, j]
    L[m, m] = np.sqrt(max(distance, 0.0))
    return distance > ROUNDING


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
def _leave(signal, atoms, chosen, x, m, residual):
    """Set the residual of a signal; return its squared length."""
    for t in range(atoms.shape[1]):
        residual[t] = signal[t]
    for j in range(m):
        for t in range(atoms.shape[1]):
            residual[t] -= x[j] * atoms[chosen[j], t]
    left = 0.0
    for t in range(atoms.shape[1]):
        left += residual[t] * residual[t]
    return left


@njit(nogil=True, cache=True)
def omp_rows(signals, atoms, target, support, coefficients, size, error):
    """Algorithm 2: code signals by comparing each residual with every atom."""
    limit, n_atoms = support.shape[1], atoms.shape[0]
    products, residual = np.empty(n_atoms), np.empty(atoms.shape[1])
    L, half, x = np.empty((limit, limit)), np.empty(limit), np.empty(limit)
    for i in range(signals.shape[0]):
        signal, chosen, m = signals[i], support[i], 0
        left = _leave(signal, atoms, chosen, x, 0, residual)
        negligible = ROUNDING * np.sqrt(left)
        while m < limit and left > target[i]:
            largest = _compare(atoms, residual, products)
            if largest <= negligible:
                break
            k = _first_of(products, largest)
            if not _append_row(L, atoms, chosen, m, k):
                break
            # The forward substitution of L Lᵀ x = D_I y grows by one entry, too: the product of
            # the residual with the new atom, over the diagonal.
            half[m] = products[k] / L[m, m]
            chosen[m] = k
            m += 1
            _solve_upper(L, half, m, x)
            left = _leave(signal, atoms, chosen, x, m, residual)
        coefficients[i, :m] = x[:m]
        size[i], error[i] = m, left


@njit(nogil=True, cache=True)
def pack(support, coefficients, starts, indices, data):
    """Write each row's atoms, in ascending order, where CSR wants them."""
    for i in range(len(support)):
        first = starts[i]
        for t in range(starts[i + 1] - first):
            atom, value = support[i, t], coefficients[i, t]
            position = first + t
            while position > first and indices[position - 1] > atom:
                indices[position], data[position] = indices[position - 1], data[position - 1]
                position -= 1
            indices[position], data[position] = atom, value


@njit(nogil=True, cache=True)
def errors_of(products, energy, gram, starts, indices, data, error):
    """Set ``‖x − γD‖²`` of each row from products only: ``xxᵀ − 2γ(Dx) + γGγᵀ``."""
    for i in range(len(products)):
        total = energy[i]
        for s in range(starts[i], starts[i + 1]):
            inner = 0.0
            for t in range(starts[i], starts[i + 1]):
                inner += data[t] * gram[indices[s], indices[t]]
            total += data[s] * (inner - 2.0 * products[i, indices[s]])
        error[i] = max(total, 0.0)
