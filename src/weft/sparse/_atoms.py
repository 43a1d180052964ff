"""The steps of K-SVD: choose first atoms, update each, replace those that nobody uses.

Signals X (n × d, dense or CSR), atoms D (K × d, unit rows) and codes Γ (n × K, CSR) in; new atoms
and codes out. The error matrix of Algorithm 4 is never stored: with I the users of atom k and g
their coefficients, ``E = X_I − Σ_{l≠k} γ_l d_l`` enters only through products with vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from weft.sparse._threads import one_blas_thread

_ALIKE = 0.99  # directions with a larger cosine are the same
_TRIES = 20  # signals looked at for each atom wanted
_DENSE_CELLS = 1 << 24  # of one atom's error matrix: beyond, it stays a product


def first_atoms(X: Any, n_atoms: int, rng: np.random.RandomState) -> np.ndarray:
    """Algorithm 1, step 6: random signals of length 1, no two of the same direction.

    Where there are fewer distinct signals than atoms, random directions fill the rest.
    """
    chosen = distinct_signals(X, rng.permutation(X.shape[0]), n_atoms)
    rest = rng.standard_normal((n_atoms - len(chosen), X.shape[1]))
    return np.vstack([chosen, rest / np.linalg.norm(rest, axis=1, keepdims=True)])


def distinct_signals(X: Any, order: np.ndarray, wanted: int) -> np.ndarray:
    """Return up to ``wanted`` signals, scaled to length 1, that point in different directions."""
    out = np.empty((wanted, X.shape[1]))
    found = 0
    for i in order[: _TRIES * wanted + 100]:
        if found == wanted:
            break
        signal = X[[i]].toarray()[0] if sparse.issparse(X) else X[i]
        length = np.linalg.norm(signal)
        if length > 0:
            signal = signal / length
            if not found or np.abs(out[:found] @ signal).max() < _ALIKE:
                out[found] = signal
                found += 1
    return out[:found]


def replaced(
    X: Any, atoms: np.ndarray, which: np.ndarray, errors: np.ndarray, energy: np.ndarray
) -> np.ndarray:
    """Put badly coded signals in the place of some atoms.

    If nobody uses those, no code changes and neither does the error.
    """
    worst = np.argsort(-errors, kind="stable")
    worst = worst[errors[worst] > 1e-12 * energy[worst]]
    if not len(which) or not len(worst):
        return atoms
    found = distinct_signals(X, worst, len(which))
    atoms = atoms.copy()
    atoms[which[: len(found)]] = found
    return atoms


def update_atoms(
    X: Any, atoms: np.ndarray, codes: sparse.csr_array, exact: bool
) -> tuple[np.ndarray, sparse.csr_array]:
    """Algorithm 4: give each atom, and its users' coefficients, the best rank-1 fit of E.

    Exact: the leading singular pair. Approximate: one step towards it from the coefficients g,
    ``d = Eᵀg / ‖Eᵀg‖``, then ``g = E d`` [Rubinstein et al. 2008]. Neither can raise the error.
    """
    atoms, codes = atoms.copy(), codes.copy()
    signal_of = np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr))
    by_atom = np.argsort(codes.indices, kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(codes.indices, minlength=len(atoms)))])
    with one_blas_thread():
        for k in np.flatnonzero(np.diff(edges)):
            entries = by_atom[edges[k] : edges[k + 1]]
            error = _Error(X, atoms, codes, k, signal_of[entries])
            g = codes.data[entries]
            atom = _leading(error, atoms[k]) if exact else error.transposed(g)
            length = np.linalg.norm(atom)
            if length > 0:
                atoms[k] = atom / length
                codes.data[entries] = error.times(atoms[k])
    return atoms, codes


class _Error:
    """The error matrix E of an atom's users without the atom, as an operator."""

    def __init__(
        self, X: Any, atoms: np.ndarray, codes: sparse.csr_array, k: int, rows: np.ndarray
    ) -> None:
        self.X, self.atoms, self.k, self.rows = X, atoms, k, rows
        self.codes = (codes.indptr, codes.indices, codes.data)
        self.shape = (len(rows), X.shape[1])

    def transposed(self, g: np.ndarray) -> np.ndarray:
        """``Eᵀg = X_Iᵀg − Σ_{l≠k} (γ_l·g) d_l``."""
        from weft.sparse import _ksvd_kernels as kernels

        shared = np.zeros(len(self.atoms))
        kernels.weigh_sparse(*self.codes, self.rows, g, shared)
        shared[self.k] = 0
        out = -(shared @ self.atoms)
        if sparse.issparse(self.X):
            kernels.weigh_sparse(*_parts(self.X), self.rows, g, out)
        else:
            kernels.weigh_dense(self.X, self.rows, g, out)
        return out

    def times(self, d: np.ndarray) -> np.ndarray:
        """``E d = X_I d − Σ_{l≠k} γ_l (d_l·d)``."""
        from weft.sparse import _ksvd_kernels as kernels

        along = self.atoms @ d
        along[self.k] = 0
        coded, out = np.empty(len(self.rows)), np.empty(len(self.rows))
        kernels.project_sparse(*self.codes, self.rows, along, coded)
        if sparse.issparse(self.X):
            kernels.project_sparse(*_parts(self.X), self.rows, d, out)
        else:
            kernels.project_dense(self.X, self.rows, d, out)
        return out - coded

    def dense(self) -> np.ndarray:
        """Return E itself."""
        starts, indices, data = self.codes
        codes = sparse.csr_array((data, indices, starts), (len(starts) - 1, len(self.atoms)))
        others = codes[self.rows].toarray()
        others[:, self.k] = 0
        own = self.X[self.rows]
        return (own.toarray() if sparse.issparse(own) else own) - others @ self.atoms


def _parts(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return X.indptr, X.indices, X.data


def _leading(error: _Error, atom: np.ndarray) -> np.ndarray:
    """Return the first right singular vector of E, pointing the same way as the atom did."""
    n, d = error.shape
    if n * d > _DENSE_CELLS:
        from scipy.sparse.linalg import LinearOperator, svds

        operator = LinearOperator(
            (n, d),
            lambda v: error.times(v.ravel()),
            lambda v: error.transposed(v.ravel()),
            dtype=np.float64,
        )
        start = atom if n >= d else error.times(atom)
        vector = svds(operator, k=1, v0=start if start.any() else None, rng=0)[2][0]
    else:
        from scipy.linalg import eigh

        E = error.dense()
        gram = E.T @ E if d <= n else E @ E.T
        last = len(gram) - 1
        vector = eigh(gram, subset_by_index=(last, last))[1][:, 0]
        vector = vector if d <= n else vector @ E
    return -vector if vector @ atom < 0 else vector


def fresh_codes(
    old: tuple[sparse.csr_array, np.ndarray],
    new: tuple[sparse.csr_array, np.ndarray],
    allowed: float,
) -> tuple[sparse.csr_array, np.ndarray]:
    """Return new (codes, errors) for all signals, or for as many as keep the total error allowed.

    A pursuit from scratch may code a signal worse than it was. Where that makes the total rise
    above ``allowed`` (the old one does not), signals with the largest rise keep their old code.
    """
    (codes, errors), (fresh, fresh_errors) = old, new
    excess = fresh_errors.sum() - allowed
    if excess <= 0:
        return new
    rise = np.maximum(fresh_errors - errors, 0)
    worst = np.argsort(-rise, kind="stable")
    n_back = np.searchsorted(np.cumsum(rise[worst]), excess * (1 + 1e-9)) + 1
    back = np.zeros(len(rise), dtype=bool)
    back[worst[:n_back]] = rise[worst[:n_back]] > 0
    chosen = np.where(back, errors, fresh_errors)
    if chosen.sum() > allowed:  # by rounding, when all went back
        back[:], chosen = rise > 0, np.minimum(errors, fresh_errors)
    both = sparse.vstack([codes, fresh], format="csr")
    return sparse.csr_array(both[np.arange(len(rise)) + len(rise) * ~back]), chosen


def refit(atoms: np.ndarray, overlaps: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Refit each atom to ``A = ΓᵀΓ`` and ``B = ΓᵀX``: the approximate update, coefficients fixed.

    ``Eᵀg = B_k − Σ_{l≠k} A_kl d_l`` [Mairal et al. 2009 for the sums over batches].
    """
    atoms = atoms.copy()
    for k in np.flatnonzero(overlaps.diagonal() > 0):
        along = overlaps[k].copy()
        along[k] = 0
        atom = sums[k] - along @ atoms
        length = np.linalg.norm(atom)
        if length > 0:
            atoms[k] = atom / length
    return atoms
