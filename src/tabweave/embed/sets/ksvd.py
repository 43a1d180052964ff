"""K-SVD: learn the atoms that rows of a table are made of [Menon et al. 2013, Algorithms 1, 4].

Numbers per row in (TF-IDF weights of sets, or any others), a dictionary and sparse codes out: each
row becomes a sum of few atoms, which compress it, describe it, and feed classifiers and clusters.
:class:`Learner` takes the turns of learning; the functions below it are the steps of a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from tabweave._compat import Interval, StrOptions, eigh, njit, one_blas_thread
from tabweave.base import Estimator
from tabweave.columns.inputs import numbers_only
from tabweave.embed.register import embedder
from tabweave.embed.sets.pursuit import FAST_SUMS, code_errors, energies, pursue, stopping
from tabweave.engines.progress import ProgressCallback, progress_reporter


@embedder(
    "ksvd",
    "rows as sums of a few learned atoms",
    "Aharon, Elad & Bruckstein 2006; Menon, Nair, Srindhya & Kaimal 2013",
    reads="numbers",
    offered="python",
    page="sparse",
)
class KSVD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Learn a dictionary by K-SVD and code rows with few of its atoms.

    ``min ‖Y − ΓD‖²`` under Eq. (4), by turns: code every signal (:func:`~tabweave.batch_omp`), then
    refit each atom to the signals that use it (Algorithm 4). Cost of a turn: ``n·K·d`` for the
    products of signals and atoms (non-zeros times K if X is sparse), ``n·K·s²/2`` for the codes of
    s atoms.

    Parameters
    ----------
    n_atoms : int, default=64
        Size of the dictionary.
    n_nonzero : int, optional
        Most atoms of a signal.
    error : float, optional
        Share of a signal's energy that may stay uncoded. Without ``n_nonzero`` and ``error``, as
        in the paper: 0.5 and at most half of the atoms.
    pursuit : {"batch", "omp"}, default="batch"
        How signals are coded; the codes are the same.
    update : {"approx", "exact"}, default="approx"
        One step towards the leading singular pair of an atom's error matrix, or the pair itself.
    max_iter : int, default=30
        Most turns, trials included; fit stops before when nothing lowers the error any more.
    random_state : int, RandomState or None, default=None
        Seed of the first atoms, which are signals.
    progress : callable, optional
        Called with a :class:`~tabweave.engines.Progress` after each turn; its note is the error.

    Attributes
    ----------
    components_ : ndarray of shape (n_atoms, n_features_in_)
        The atoms, of length 1.
    error_trace_ : ndarray of shape (n_iter_ + 1,)
        Frobenius error ``‖Y − ΓD‖`` with the first atoms and after each turn; never increases.
    size_trace_ : ndarray of shape (n_iter_ + 1,)
        Mean number of atoms of a signal at the same times.
    n_iter_ : int
        Turns taken, or batches seen by :meth:`partial_fit`.
    n_features_in_, feature_names_in_ : int, ndarray
        Number and names of the columns.

    Notes
    -----
    A pursuit can code a signal worse than it was coded before, so plain K-SVD may lose ground.
    Where the total error would rise, the signals that lost most keep their codes. Unused atoms
    are replaced by badly coded signals. When the error falls by less than 1 %, a turn is spent on
    a trial: the least useful atoms are swapped for badly coded signals, and swapped back unless
    that lowers the error. ``transform`` codes from scratch.

    Examples
    --------
    >>> import numpy as np
    >>> from tabweave.embed.sets import KSVD
    >>> X = np.repeat([[2.0, 0.0, 0.0], [0.0, 3.0, 3.0]], 10, axis=0)
    >>> model = KSVD(2, n_nonzero=1, random_state=0).fit(X)
    >>> float(model.error_trace_[-1].round(6))
    0.0
    >>> sorted(model.describe_atoms(["red", "blue", "green"]))
    ['0.71 blue + 0.71 green', '1 red']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_atoms": [Interval(Integral, 1, None, closed="left")],
        "n_nonzero": [Interval(Integral, 1, None, closed="left"), None],
        "error": [Interval(Real, 0, None, closed="left"), None],
        "pursuit": [StrOptions({"batch", "omp"})],
        "update": [StrOptions({"approx", "exact"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "progress": [callable, None],
    }

    def __init__(
        self,
        n_atoms: int = 64,
        *,
        n_nonzero: int | None = None,
        error: float | None = None,
        pursuit: str = "batch",
        update: str = "approx",
        max_iter: int = 30,
        random_state: Any = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.n_nonzero = n_nonzero
        self.error = error
        self.pursuit = pursuit
        self.update = update
        self.max_iter = max_iter
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the atoms of signals.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_signals, n_features)
            The signals.
        y : ignored
        """
        self._validate_params()
        X = self._read(X, reset=True)
        by_error = stopping(self.n_nonzero, self.error, self.n_atoms)[1] > 0
        learner = Learner(X, self._pursue, by_error, self.update == "exact")
        atoms = first_atoms(X, self.n_atoms, check_random_state(self.random_state))
        report = progress_reporter(self.progress, "turns", self.max_iter)
        trace = []
        for turn, state in enumerate(learner.run(atoms, self.max_iter)):
            trace.append((state.error, state.codes.nnz))
            if turn:
                report("K-SVD", turn, f"error {state.error**0.5:.6g}")
        self.n_iter_ = turn
        self.error_trace_ = np.sqrt([error for error, _ in trace])
        self.size_trace_ = np.array([size for _, size in trace]) / X.shape[0]
        self._keep(state.atoms)
        self._remember(X, state.codes, 0.0)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the dictionary with a batch of signals; memory does not grow with their number.

        The batch is coded, ``ΓᵀΓ`` and ``ΓᵀX`` are added to those of earlier batches (which fade
        as ``(1 − 1/t)²``, for they belong to older atoms), and each atom is refitted to the sums.
        The first batch chooses the atoms as :meth:`fit` does. The traces get one entry a batch.
        """
        self._validate_params()
        first = not hasattr(self, "components_")
        X = self._read(X, reset=first)
        if first:
            rng = check_random_state(self.random_state)
            self._keep(first_atoms(X, self.n_atoms, rng))
            self.n_iter_, self.error_trace_, self.size_trace_ = 0, np.zeros(0), np.zeros(0)
        self.n_iter_ += 1
        codes, errors = self._pursue(X, self.components_)
        self.error_trace_ = np.append(self.error_trace_, np.sqrt(errors.sum()))
        self.size_trace_ = np.append(self.size_trace_, codes.nnz / X.shape[0])
        self._remember(X, codes, (1 - 1 / self.n_iter_) ** 2)
        unused = np.flatnonzero(self._overlaps.diagonal() == 0)
        atoms = refit(self.components_, self._overlaps, self._sums)
        self._keep(replaced(X, atoms, unused, errors, energies(X)))
        report = progress_reporter(self.progress, "batches")
        report("K-SVD", self.n_iter_, f"error {self.error_trace_[-1]:.6g}")
        return self

    def _read(self, X: Any, *, reset: bool) -> Any:
        with numbers_only(X, "KSVD reads numbers: make them of sets by tabweave.SetTfidf"):
            return validate_data(
                self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=reset
            )

    def _pursue(self, X: Any, atoms: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
        limit, share = stopping(self.n_nonzero, self.error, len(atoms))
        return pursue(X, atoms, limit, share, True, self.pursuit)

    def _keep(self, atoms: np.ndarray) -> None:
        self.components_ = atoms
        self._n_features_out = len(atoms)

    def _remember(self, X: Any, codes: sparse.csr_array, keep: float) -> None:
        """Add a batch to the sums that atoms can be refitted to without its signals."""
        overlaps, sums = (codes.T @ codes).toarray(), codes.T @ X
        sums = sums.toarray() if sparse.issparse(sums) else sums
        if keep:
            overlaps, sums = overlaps + keep * self._overlaps, sums + keep * self._sums
        self._overlaps: np.ndarray = overlaps
        self._sums: np.ndarray = sums

    def transform(self, X: Any) -> sparse.csr_array:
        """Codes of signals, one row each, as a sparse array."""
        check_is_fitted(self, "components_")
        self._validate_params()
        return self._pursue(self._read(X, reset=False), self.components_)[0]

    def inverse_transform(self, codes: Any) -> np.ndarray:
        """Signals that codes stand for: ``ΓD``."""
        check_is_fitted(self, "components_")
        codes = check_array(codes, accept_sparse="csr", dtype=np.float64, input_name="codes")
        if codes.shape[1] != len(self.components_):
            raise ValueError(
                f"expected codes of {len(self.components_)} atoms, got {codes.shape[1]}"
            )
        return codes @ self.components_

    def compression(self, X: Any) -> dict[str, float]:
        """How much coding compresses: stored numbers before and after, and the error.

        ``ratio`` compares the codes with X alone; ``ratio_with_atoms`` counts the dictionary, too.
        """
        check_is_fitted(self, "components_")
        X = self._read(X, reset=False)
        codes, errors = self._pursue(X, self.components_)
        stored = X.count_nonzero() if sparse.issparse(X) else np.count_nonzero(X)
        atoms = np.count_nonzero(self.components_)
        return {
            "nonzeros": int(stored),
            "code_nonzeros": int(codes.nnz),
            "atom_nonzeros": int(atoms),
            "ratio": stored / max(codes.nnz, 1),
            "ratio_with_atoms": stored / max(codes.nnz + atoms, 1),
            "relative_error": float(errors.sum() / max(energies(X).sum(), np.finfo(float).tiny)),
        }

    def describe_atoms(self, feature_names: Any = None, *, top: int = 3) -> list[str]:
        """Describe each atom by the features with the largest weights.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of the features, such as ``SetTfidf.get_feature_names_out()``.
        top : int, default=3
            Most features named.
        """
        check_is_fitted(self, "components_")
        names = _check_feature_names_in(self, feature_names)
        return [describe(atom, names, top) for atom in self.components_]

    def explain(
        self, row: Any, feature_names: Any = None, *, top: int = 3
    ) -> list[tuple[int, float, str]]:
        """Atoms of one signal, heaviest first: (atom, coefficient, what it is)."""
        check_is_fitted(self, "components_")
        if sparse.issparse(row):  # of a sparse array, codes[0] has one dimension
            row = row.reshape(1, -1) if row.ndim == 1 else row
        else:
            row = np.atleast_2d(row)
        if row.shape[0] != 1:
            raise ValueError(f"expected one signal, got {row.shape[0]}")
        code = self.transform(row)
        names = _check_feature_names_in(self, feature_names)
        heaviest = np.argsort(-np.abs(code.data), kind="stable")
        return [
            (int(k), float(weight), describe(self.components_[k], names, top))
            for k, weight in zip(code.indices[heaviest], code.data[heaviest], strict=True)
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def describe(atom: np.ndarray, names: Any, top: int) -> str:
    """Write an atom as a sum of its heaviest features."""
    order = np.argsort(-np.abs(atom), kind="stable")[:top]
    text = " + ".join(f"{atom[t]:.2g} {names[t]}" for t in order if abs(atom[t]) >= 0.005)
    return text.replace("+ -", "- ")


@dataclass(frozen=True, eq=False)
class State:
    """Where learning stands: atoms, codes, and the squared error of each signal."""

    atoms: np.ndarray
    codes: sparse.csr_array
    errors: np.ndarray

    @property
    def error(self) -> float:
        """The squared error of all signals."""
        return float(self.errors.sum())


@dataclass(frozen=True, eq=False)
class Learner:
    """Signals, how they are coded, whether up to an error, and how atoms are updated."""

    X: Any
    pursue: Callable[[Any, np.ndarray], tuple[sparse.csr_array, np.ndarray]]
    by_error: bool
    exact: bool

    def run(
        self, atoms: np.ndarray, max_iter: int, *, min_fall: float = 1e-6, slow_fall: float = 1e-2
    ) -> Iterator[State]:
        """Yield the state with the first atoms and after each turn; the error never rises."""
        state = State(atoms, *self.pursue(self.X, atoms))
        yield state
        trials, slow = _trials(len(atoms)), False
        for _ in range(max_iter):
            last_error = state.error
            if slow and trials:
                better = self.swap(state, trials[0])
                state, trials = (better, trials) if better else (state, trials[1:])
                slow = False
                yield state
                continue
            state = self.turn(state)
            yield state
            fall = 1 - (state.error / last_error) ** 0.5 if last_error else 0.0
            slow = fall < slow_fall
            if fall < min_fall and not trials:
                return

    def turn(self, state: State) -> State:
        """Algorithm 1, step 7: update every atom, replace the unused, code again."""
        X = self.X
        atoms, codes = update_atoms(X, state.atoms, state.codes, self.exact)
        old = codes, code_errors(X, atoms, codes)
        unused = np.flatnonzero(np.bincount(codes.indices, minlength=len(atoms)) == 0)
        atoms = replaced(X, atoms, unused, old[1], energies(X))
        new = self.pursue(X, atoms)
        return State(atoms, *fresh_codes(old, new, state.error))

    def swap(self, state: State, ranks: slice) -> State | None:
        """Try signals instead of the atoms that would be missed least.

        K-SVD gets stuck where two atoms share the work of one. Removing atom k costs ``‖g‖²``, g
        its coefficients. The trial counts only if a turn later the error is lower than before
        and, where signals stop at an error, codes have not grown.
        """
        missed = np.bincount(state.codes.indices, state.codes.data**2, len(state.atoms))
        weak = np.argsort(missed, kind="stable")[ranks]
        atoms = replaced(self.X, state.atoms, weak, state.errors, energies(self.X))
        trial = self.turn(State(atoms, *self.pursue(self.X, atoms)))
        denser = self.by_error and trial.codes.nnz > state.codes.nnz
        return None if denser or trial.error >= state.error else trial


def _trials(n_atoms: int, *, max_single_atoms: int = 3) -> list[slice]:
    """Which of the least missed atoms to swap, refusal after refusal: fewer, then others."""
    many = max(1, n_atoms // 16)
    sizes = [many >> i for i in range(many.bit_length())]
    single_atoms = [slice(i, i + 1) for i in range(1, min(max_single_atoms, n_atoms - 1) + 1)]
    return [slice(0, size) for size in sizes] + single_atoms


def first_atoms(X: Any, n_atoms: int, rng: np.random.RandomState) -> np.ndarray:
    """Algorithm 1, step 6: random signals of length 1, no two of the same direction.

    Where there are fewer distinct signals than atoms, random directions fill the rest.
    """
    chosen = distinct_signals(X, rng.permutation(X.shape[0]), n_atoms)
    random_atoms = rng.standard_normal((n_atoms - len(chosen), X.shape[1]))
    return np.vstack([chosen, random_atoms / np.linalg.norm(random_atoms, axis=1, keepdims=True)])


def distinct_signals(
    X: Any,
    order: np.ndarray,
    max_signals: int,
    *,
    max_cosine: float = 0.99,
    signals_per_atom: int = 20,
) -> np.ndarray:
    """Signals, scaled to length 1, that point in different directions."""
    out = np.empty((max_signals, X.shape[1]))
    n_found = 0
    for i in order[: signals_per_atom * max_signals + 100]:
        if n_found == max_signals:
            break
        signal = X[[i]].toarray()[0] if sparse.issparse(X) else X[i]
        length = np.linalg.norm(signal)
        if length > 0:
            signal = signal / length
            if not n_found or np.abs(out[:n_found] @ signal).max() < max_cosine:
                out[n_found] = signal
                n_found += 1
    return out[:n_found]


def replaced(
    X: Any, atoms: np.ndarray, which: np.ndarray, errors: np.ndarray, energy: np.ndarray
) -> np.ndarray:
    """Atoms of which some are now badly coded signals.

    If nobody uses those, no code changes and neither does the error.
    """
    worst = np.argsort(-errors, kind="stable")
    worst = worst[errors[worst] > 1e-12 * energy[worst]]
    if not len(which) or not len(worst):
        return atoms
    signals = distinct_signals(X, worst, len(which))
    atoms = atoms.copy()
    atoms[which[: len(signals)]] = signals
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
        shared = np.zeros(len(self.atoms))
        weigh_sparse(*self.codes, self.rows, g, shared)
        shared[self.k] = 0
        out = -(shared @ self.atoms)
        if sparse.issparse(self.X):
            weigh_sparse(*_parts(self.X), self.rows, g, out)
        else:
            weigh_dense(self.X, self.rows, g, out)
        return out

    def times(self, d: np.ndarray) -> np.ndarray:
        """``E d = X_I d − Σ_{l≠k} γ_l (d_l·d)``."""
        along = self.atoms @ d
        along[self.k] = 0
        coded, out = np.empty(len(self.rows)), np.empty(len(self.rows))
        project_sparse(*self.codes, self.rows, along, coded)
        if sparse.issparse(self.X):
            project_sparse(*_parts(self.X), self.rows, d, out)
        else:
            project_dense(self.X, self.rows, d, out)
        return out - coded

    def dense(self) -> np.ndarray:
        """E itself."""
        starts, indices, data = self.codes
        codes = sparse.csr_array((data, indices, starts), (len(starts) - 1, len(self.atoms)))
        other_codes = codes[self.rows].toarray()
        other_codes[:, self.k] = 0
        signals = self.X[self.rows]
        return (
            signals.toarray() if sparse.issparse(signals) else signals
        ) - other_codes @ self.atoms


def _parts(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return X.indptr, X.indices, X.data


def _leading(error: _Error, atom: np.ndarray, *, max_dense_entries: int = 1 << 24) -> np.ndarray:
    """First right singular vector of E, pointing the same way as the atom did."""
    n, d = error.shape
    if n * d > max_dense_entries:
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
        E = error.dense()
        gram = E.T @ E if d <= n else E @ E.T
        vector = eigh(gram, 1)[1][:, 0]
        vector = vector if d <= n else vector @ E
    return -vector if vector @ atom < 0 else vector


def fresh_codes(
    old: tuple[sparse.csr_array, np.ndarray],
    new: tuple[sparse.csr_array, np.ndarray],
    allowed: float,
) -> tuple[sparse.csr_array, np.ndarray]:
    """New (codes, errors) for all signals, or for as many as keep the total error allowed.

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
    stacked = sparse.vstack([codes, fresh], format="csr")
    return sparse.csr_array(stacked[np.arange(len(rise)) + len(rise) * ~back]), chosen


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


# -- compiled loops: an atom's error matrix, times a vector ---------------------------------------


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
def weigh_dense(X, rows, weights, out):
    """Add ``weights @ X[rows]`` to out."""
    for u in range(len(rows)):
        i, w = rows[u], weights[u]
        for t in range(X.shape[1]):
            out[t] += w * X[i, t]


@njit(nogil=True, cache=True, fastmath=FAST_SUMS)
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
