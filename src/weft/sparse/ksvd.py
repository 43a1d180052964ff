"""K-SVD: learn the atoms that rows of a table are made of [Menon et al. 2013, Algorithms 1, 4].

Numbers per row in (TF-IDF weights of sets, or any others), a dictionary and sparse codes out: each
row becomes a sum of few atoms, which compress it, describe it, and feed classifiers and clusters.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from weft._store import Storable
from weft.sparse import _atoms
from weft.sparse._learning import Learner
from weft.sparse.pursuit import energies, pursue, stopping

_FORGET = 2.0  # how fast partial_fit lets go of what older dictionaries coded


class KSVD(Storable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn a dictionary by K-SVD and code rows with few of its atoms.

    ``min ‖Y − ΓD‖²`` under Eq. (4), by turns: code every signal (:func:`~weft.sparse.batch_omp`),
    then refit each atom to the signals that use it (Algorithm 4). Cost of a turn: ``n·K·d`` for
    the products of signals and atoms (non-zeros times K if X is sparse), ``n·K·s²/2`` for the
    codes of s atoms.

    Parameters
    ----------
    n_atoms : int, default=64
        Size of the dictionary.
    n_nonzero : int, optional
        Most atoms of a signal.
    error : float, optional
        Share of a signal's energy that may stay uncoded. Without ``n_nonzero`` and ``error``, as
        printed: 0.5 and at most half of the atoms.
    pursuit : {"batch", "omp"}, default="batch"
        How signals are coded; the codes are the same.
    update : {"approx", "exact"}, default="approx"
        One step towards the leading singular pair of an atom's error matrix, or the pair itself.
    max_iter : int, default=30
        Most turns, trials included; fit stops before when nothing lowers the error any more.
    random_state : int, RandomState or None
        Seed of the first atoms, which are signals.
    progress : bool or callable, default=False
        True prints a line per turn; a callable gets (turn, error).

    Attributes
    ----------
    components_ : ndarray of shape (n_atoms, n_features_in_)
        The atoms, of length 1.
    error_trace_ : ndarray of shape (n_iter_ + 1,)
        Frobenius error ``‖Y − ΓD‖`` with the first atoms and after each turn; never increases.
    size_trace_ : ndarray of shape (n_iter_ + 1,)
        Mean number of atoms of a signal at the same moments.
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
    >>> from weft.sparse import KSVD
    >>> X = np.repeat([[2.0, 0.0, 0.0], [0.0, 3.0, 3.0]], 10, axis=0)
    >>> model = KSVD(2, n_nonzero=1, random_state=0).fit(X)
    >>> float(model.error_trace_[-1].round(6))
    0.0
    >>> sorted(model.describe_atoms(["red", "blue", "green"]))
    ['0.71 blue + 0.71 green', '1 red']
    """

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
        progress: bool | Callable[[int, float], object] = False,
    ) -> None:
        self.n_atoms = n_atoms
        self.n_nonzero = n_nonzero
        self.error = error
        self.pursuit = pursuit
        self.update = update
        self.max_iter = max_iter
        self.random_state = random_state
        self.progress = progress

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the atoms of signals.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_signals, n_features)
            The signals.
        y : ignored
        """
        self._check_parameters()
        X = self._read(X, reset=True)
        by_error = stopping(self.n_nonzero, self.error, self.n_atoms)[1] > 0
        learner = Learner(X, self._pursue, by_error, self.update == "exact")
        atoms = _atoms.first_atoms(X, self.n_atoms, check_random_state(self.random_state))
        trace = []
        for turn, state in enumerate(learner.run(atoms, self.max_iter)):
            trace.append((state.error, state.codes.nnz))
            if turn:
                self._tell(turn, state.error**0.5)
        self.n_iter_ = turn
        self.error_trace_ = np.sqrt([error for error, _ in trace])
        self.size_trace_ = np.array([size for _, size in trace]) / X.shape[0]
        self._place(state.atoms)
        self._remember(X, state.codes, 0.0)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on with a batch of signals; memory does not grow with the number of batches.

        The batch is coded, ``ΓᵀΓ`` and ``ΓᵀX`` are added to those of earlier batches (which fade
        as ``(1 − 1/t)²``, for they belong to older atoms), and each atom is refitted to the sums.
        The first batch chooses the atoms as :meth:`fit` does. The traces get one entry a batch.
        """
        self._check_parameters()
        first = "components_" not in vars(self)
        X = self._read(X, reset=first)
        if first:
            rng = check_random_state(self.random_state)
            self._place(_atoms.first_atoms(X, self.n_atoms, rng))
            self.n_iter_, self.error_trace_, self.size_trace_ = 0, np.zeros(0), np.zeros(0)
        self.n_iter_ += 1
        codes, errors = self._pursue(X, self.components_)
        self.error_trace_ = np.append(self.error_trace_, np.sqrt(errors.sum()))
        self.size_trace_ = np.append(self.size_trace_, codes.nnz / X.shape[0])
        self._remember(X, codes, (1 - 1 / self.n_iter_) ** _FORGET)
        unused = np.flatnonzero(self._overlaps.diagonal() == 0)
        atoms = _atoms.refit(self.components_, self._overlaps, self._sums)
        self._place(_atoms.replaced(X, atoms, unused, errors, energies(X)))
        self._tell(self.n_iter_, float(self.error_trace_[-1]))
        return self

    def _check_parameters(self) -> None:
        for name in ("n_atoms", "max_iter"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name}={value!r}: use a whole number >= 1")
        for name, known in (("pursuit", ("batch", "omp")), ("update", ("approx", "exact"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r}: use {' or '.join(known)}")
        stopping(self.n_nonzero, self.error, self.n_atoms)

    def _read(self, X: Any, *, reset: bool) -> Any:
        return validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=reset)

    def _pursue(self, X: Any, atoms: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
        limit, share = stopping(self.n_nonzero, self.error, len(atoms))
        return pursue(X, atoms, limit, share, True, self.pursuit)

    def _place(self, atoms: np.ndarray) -> None:
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

    def _tell(self, turn: int, error: float) -> None:
        if callable(self.progress):
            self.progress(turn, error)
        elif self.progress:
            print(f"K-SVD, turn {turn}: error {error:.6g}", file=sys.stderr, flush=True)

    # -- using -----------------------------------------------------------------------------

    def transform(self, X: Any) -> sparse.csr_array:
        """Return the codes of signals, one row each, as a sparse array."""
        check_is_fitted(self, "components_")
        self._check_parameters()
        return self._pursue(self._read(X, reset=False), self.components_)[0]

    def inverse_transform(self, codes: Any) -> np.ndarray:
        """Return the signals that codes stand for: ``ΓD``."""
        check_is_fitted(self, "components_")
        codes = check_array(codes, accept_sparse="csr", dtype=np.float64, input_name="codes")
        if codes.shape[1] != len(self.components_):
            raise ValueError(f"codes of {codes.shape[1]} atoms, not {len(self.components_)}")
        return codes @ self.components_

    def compression(self, X: Any) -> dict[str, float]:
        """Say what coding saves: stored numbers before and after, and what it costs in accuracy.

        ``ratio`` compares the codes with X alone; ``ratio_with_atoms`` counts the dictionary, too.
        """
        check_is_fitted(self, "components_")
        X = self._read(X, reset=False)
        codes, errors = self._pursue(X, self.components_)
        before = X.count_nonzero() if sparse.issparse(X) else np.count_nonzero(X)
        atoms = np.count_nonzero(self.components_)
        return {
            "nonzeros": int(before),
            "code_nonzeros": int(codes.nnz),
            "atom_nonzeros": int(atoms),
            "ratio": before / max(codes.nnz, 1),
            "ratio_with_atoms": before / max(codes.nnz + atoms, 1),
            "relative_error": float(errors.sum() / max(energies(X).sum(), np.finfo(float).tiny)),
        }

    def describe_atoms(self, feature_names: Any = None, *, top: int = 3) -> list[str]:
        """Say what each atom is made of: its heaviest features, signs and weights included.

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
        """Return the atoms of one signal, heaviest first: (atom, coefficient, what it is)."""
        check_is_fitted(self, "components_")
        row = row if sparse.issparse(row) else np.atleast_2d(row)
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
