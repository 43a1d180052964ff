"""Compiled loops of the embedders.

Pursuits and K-SVD: both pursuits pick atoms in the same order and stop by the same rules; they
differ in what they keep. OMP keeps the residual and compares it with every atom at each step (K·d
products); Batch-OMP keeps the products of the residual with the atoms and never sees the signal
again.

Non-BEND: tables over values lie as (V, subspaces), so that the entries of one value for all
subspaces are neighbours and the loop over subspaces runs in vector registers. No loop stores the
rows × subspaces matrix of responsibilities.
"""

from __future__ import annotations

import numpy as np

from tabweave._compat import njit
from tabweave.blocks.block import in_threads

_TIE = 1.0 - 1e-10  # products this close are equal: the first atom wins, however they were rounded
_NEGLIGIBLE = 1e-10  # a product below this share of the signal's length is rounding
_DEPENDENT = 1e-10  # squared distance of an atom from the span of those chosen before it
_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}  # lets sums use vector registers
_LOWEST = -38.0  # exp of this is below half a unit in the last place of 1
_BLOCK_ROWS = 1 << 14
_MOST_BLOCKS = 8  # fixed, so that sums do not depend on the number of cores
_BLOCK_BYTES = 1 << 28


# -- pursuits and K-SVD ------------------------------------------------------------------------


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


# -- Non-BEND: variational inference ------------------------------------------------------------


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _responsibilities(row, base, values, scores):
    """Eq. (5.21): turn ``scores`` into a row's responsibilities; return their log normaliser."""
    n_subspaces = len(base)
    for t in range(n_subspaces):
        scores[t] = base[t]
    for a in range(len(row)):
        entries = values[row[a]]
        for t in range(n_subspaces):
            scores[t] += entries[t]
    top = scores[0]
    for t in range(1, n_subspaces):
        top = max(top, scores[t])
    total = 0.0
    for t in range(n_subspaces):
        gap = scores[t] - top
        scores[t] = np.exp(gap) if gap > _LOWEST else 0.0
        total += scores[t]
    for t in range(n_subspaces):
        scores[t] /= total
    return top + np.log(total)


@njit(nogil=True, cache=True, error_model="numpy")
def _expect(cells, weight, base, values, counts, sizes):
    """Add the rows' expected counts to ``counts`` and ``sizes``; return the sum of normalisers."""
    n_subspaces = len(base)
    scores = np.empty(n_subspaces)
    total = 0.0
    for i in range(len(cells)):
        row = cells[i]
        total += weight[i] * _responsibilities(row, base, values, scores)
        for t in range(n_subspaces):
            scores[t] *= weight[i]
            sizes[t] += scores[t]
        for a in range(len(row)):
            entries = counts[row[a]]
            for t in range(n_subspaces):
                entries[t] += scores[t]
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def _assign(cells, base, values, chosen, normaliser):
    scores = np.empty(len(base))
    for i in range(len(cells)):
        normaliser[i] = _responsibilities(cells[i], base, values, scores)
        best = 0
        for t in range(1, len(base)):
            if scores[t] > scores[best]:
                best = t
        chosen[i] = best


@njit(nogil=True, cache=True)
def add_assigned(cells, weight, chosen, counts, sizes):
    """Add rows to the counts of the subspaces they are assigned to."""
    for i in range(len(cells)):
        t = chosen[i]
        sizes[t] += weight[i]
        for a in range(cells.shape[1]):
            counts[cells[i, a], t] += weight[i]


def expect(
    cells: np.ndarray, weight: np.ndarray, base: np.ndarray, values: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Eqs. (5.18)–(5.22): one pass over the rows.

    Returns the weighted sum of log normalisers, the expected value counts (V, subspaces) and the
    expected sizes (subspaces).
    """
    n_blocks = _number_of_blocks(len(cells), values.nbytes)
    edges = np.linspace(0, len(cells), n_blocks + 1).astype(np.intp)
    counts = np.zeros((n_blocks, *values.shape))
    sizes = np.zeros((n_blocks, len(base)))
    totals = np.zeros(n_blocks)

    def work(b: int) -> None:
        part = slice(edges[b], edges[b + 1])
        totals[b] = _expect(cells[part], weight[part], base, values, counts[b], sizes[b])

    in_threads(work, range(n_blocks))
    return float(totals.sum()), counts.sum(axis=0), sizes.sum(axis=0)


def assign(
    cells: np.ndarray, base: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the likeliest subspace of each row and its log normaliser (log density)."""
    chosen = np.empty(len(cells), np.intp)
    normaliser = np.empty(len(cells))
    n_blocks = _number_of_blocks(len(cells), 1)
    edges = np.linspace(0, len(cells), n_blocks + 1).astype(np.intp)

    def work(b: int) -> None:
        part = slice(edges[b], edges[b + 1])
        _assign(cells[part], base, values, chosen[part], normaliser[part])

    in_threads(work, range(n_blocks))
    return chosen, normaliser


def _number_of_blocks(n_rows: int, bytes_each: int) -> int:
    room = max(1, _BLOCK_BYTES // max(bytes_each, 1))
    return int(min(_MOST_BLOCKS, room, max(1, n_rows // _BLOCK_ROWS)))


# -- collapsed Gibbs ---------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def move(row, t, step, counts, logs, sizes, kinds, log_of_count):
    """Add (``step=1``) or take (``-1``) a row to or from subspace t; logs follow the counts."""
    sizes[t] += step
    for a in range(len(row)):
        v = row[a]
        counts[v, t] += step
        logs[v, t] = log_of_count[kinds[v], counts[v, t]]


@njit(nogil=True, cache=True, error_model="numpy")
def _choose(scores, n_slots, uniform):
    """Draw a slot with probability proportional to the exponential of its score."""
    top = -np.inf
    for t in range(n_slots):
        top = max(top, scores[t])
    total = 0.0
    for t in range(n_slots):
        gap = scores[t] - top
        if gap > _LOWEST:
            total += np.exp(gap)
        scores[t] = total
    aim = uniform * total
    for t in range(n_slots):
        if scores[t] > aim:
            return t
    return n_slots - 1


@njit(nogil=True, cache=True, error_model="numpy")
def sweep(
    first, order, cells, uniforms, assignment, counts, logs, sizes, kinds, log_of_count,
    log_of_size, log_rest, log_alpha, n_slots
):  # fmt: skip
    """Eq. (5.11) for every row from ``first`` on; return (next row, number of slots in use).

    ``log_rest[m]`` is the sum over columns of log(m + Σα₀), ``log_of_count[kinds[v], m]`` what a
    value adds that m rows have. An empty slot holds the counts of a
    new subspace, all zero, so the case of a new subspace is the same sum with α for its size; only
    the first empty slot takes part. Returns early when every slot is taken, to be called again
    with more of them.
    """
    scores = np.empty(len(sizes))
    for k in range(first, len(order)):
        i = order[k]
        row = cells[i]
        move(row, assignment[i], -1, counts, logs, sizes, kinds, log_of_count)
        empty = -1
        for t in range(n_slots):
            scores[t] = log_of_size[sizes[t]] - log_rest[sizes[t]]
            if sizes[t] == 0:
                scores[t] = -np.inf if empty >= 0 else log_alpha - log_rest[0]
                empty = t if empty < 0 else empty
        if empty < 0:
            if n_slots == len(sizes):
                move(row, assignment[i], 1, counts, logs, sizes, kinds, log_of_count)
                return k, n_slots
            scores[n_slots] = log_alpha - log_rest[0]
            n_slots += 1
        for a in range(len(row)):
            entries = logs[row[a]]
            for t in range(n_slots):
                scores[t] += entries[t]
        assignment[i] = _choose(scores, n_slots, uniforms[k])
        move(row, assignment[i], 1, counts, logs, sizes, kinds, log_of_count)
    return len(order), n_slots


@njit(nogil=True, cache=True)
def tally(assignment, votes):
    """Add one vote for the subspace of each row."""
    for i in range(len(assignment)):
        votes[i, assignment[i]] += 1
