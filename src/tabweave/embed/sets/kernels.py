"""Compiled loops behind the pursuits and K-SVD. Importing this module loads numba.

Both pursuits pick atoms in the same order and stop by the same rules; they differ in what they
keep. OMP keeps the residual and compares it with every atom at each step (K·d products); Batch-OMP
keeps the products of the residual with the atoms and never sees the signal again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_TIE = 1.0 - 1e-10  # products this close are equal: the first atom wins, however they were rounded
_NEGLIGIBLE = 1e-10  # a product below this share of the signal's length is rounding
_DEPENDENT = 1e-10  # squared distance of an atom from the span of those chosen before it
_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}  # lets sums use vector registers


@njit(nogil=True, cache=True, fastmath=_FAST)
def _first_of(products, largest):
    """Return the first atom whose product is as large as the largest."""
    k = 0
    while abs(products[k]) < largest * _TIE:
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


@njit(nogil=True, cache=True, fastmath=_FAST)
def batch_omp_rows(products, energy, gram, target, support, coefficients, size, error):
    """Algorithm 3: code signals from their products with the atoms.

    ``q[j]`` holds the products of all atoms with the j-th chosen atom made orthogonal to those
    before it. Row m of the Cholesky factor then needs no solving: it is ``q[:m, k]``.
    """
    limit, n_atoms = support.shape[1], gram.shape[0]
    alpha, row = np.empty(n_atoms), np.empty(n_atoms)
    q, L, steps = np.empty((limit, n_atoms)), np.empty((limit, limit)), np.empty(limit)
    for i in range(products.shape[0]):
        left, negligible, largest, m = energy[i], _NEGLIGIBLE * np.sqrt(energy[i]), 0.0, 0
        for t in range(n_atoms):
            alpha[t] = products[i, t]
            largest = max(largest, abs(alpha[t]))
        while m < limit and left > target[i] and largest > negligible:
            k = _first_of(alpha, largest)
            rest = 1.0
            for j in range(m):
                L[m, j] = q[j, k]
                rest -= L[m, j] * L[m, j]
            if rest <= _DEPENDENT:
                break
            L[m, m] = np.sqrt(rest)
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


@njit(nogil=True, cache=True, fastmath=_FAST)
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


@njit(nogil=True, cache=True, fastmath=_FAST)
def _append_row(L, atoms, chosen, m, k):
    """Grow the Cholesky factor of the chosen atoms' Gram by atom k; tell whether it could."""
    rest = 1.0
    for j in range(m):
        total = 0.0
        for t in range(atoms.shape[1]):
            total += atoms[chosen[j], t] * atoms[k, t]
        for s in range(j):
            total -= L[m, s] * L[j, s]
        L[m, j] = total / L[j, j]
        rest -= L[m, j] * L[m, j]
    L[m, m] = np.sqrt(max(rest, 0.0))
    return rest > _DEPENDENT


@njit(nogil=True, cache=True, fastmath=_FAST)
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
        negligible = _NEGLIGIBLE * np.sqrt(left)
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
            at = first + t
            while at > first and indices[at - 1] > atom:
                indices[at], data[at] = indices[at - 1], data[at - 1]
                at -= 1
            indices[at], data[at] = atom, value


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


# -- K-SVD: an atom's error matrix, times a vector ------------------------------------------------


@njit(nogil=True, cache=True, fastmath=_FAST)
def weigh_dense(X, rows, weights, out):
    """Add ``weights @ X[rows]`` to out."""
    for u in range(len(rows)):
        i, w = rows[u], weights[u]
        for t in range(X.shape[1]):
            out[t] += w * X[i, t]


@njit(nogil=True, cache=True, fastmath=_FAST)
def project_dense(X, rows, vector, out):
    """Set ``out = X[rows] @ vector``."""
    for u in range(len(rows)):
        i, total = rows[u], 0.0
        for t in range(X.shape[1]):
            total += X[i, t] * vector[t]
        out[u] = total


@njit(nogil=True, cache=True)
def weigh_sparse(starts, indices, data, rows, weights, out):
    """Add ``weights @ X[rows]`` to out."""
    for u in range(len(rows)):
        for t in range(starts[rows[u]], starts[rows[u] + 1]):
            out[indices[t]] += weights[u] * data[t]


@njit(nogil=True, cache=True)
def project_sparse(starts, indices, data, rows, vector, out):
    """Set ``out = X[rows] @ vector``."""
    for u in range(len(rows)):
        total = 0.0
        for t in range(starts[rows[u]], starts[rows[u] + 1]):
            total += data[t] * vector[indices[t]]
        out[u] = total
