"""The turns of K-SVD: code, update, replace, and now and then try other atoms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from weft.sparse import _atoms
from weft.sparse.pursuit import code_errors, energies

_STALLED = 1e-6  # relative fall of the error below which learning stops
_SLOW = 1e-2  # ... below which it tries other atoms
_OTHERS = 3  # single atoms tried after all else was refused


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

    def run(self, atoms: np.ndarray, max_iter: int) -> Iterator[State]:
        """Yield the state with the first atoms and after each turn; the error never rises."""
        state = State(atoms, *self.pursue(self.X, atoms))
        yield state
        trials, slow = _trials(len(atoms)), False
        for _ in range(max_iter):
            before = state.error
            if slow and trials:
                better = self.swap(state, trials[0])
                state, trials = (better, trials) if better else (state, trials[1:])
                slow = False
                yield state
                continue
            state = self.turn(state)
            yield state
            fall = 1 - (state.error / before) ** 0.5 if before else 0.0
            slow = fall < _SLOW
            if fall < _STALLED and not trials:
                return

    def turn(self, state: State) -> State:
        """Algorithm 1, step 7: update every atom, replace the unused, code again."""
        X = self.X
        atoms, codes = _atoms.update_atoms(X, state.atoms, state.codes, self.exact)
        old = codes, code_errors(X, atoms, codes)
        unused = np.flatnonzero(np.bincount(codes.indices, minlength=len(atoms)) == 0)
        atoms = _atoms.replaced(X, atoms, unused, old[1], energies(X))
        new = self.pursue(X, atoms)
        return State(atoms, *_atoms.fresh_codes(old, new, state.error))

    def swap(self, state: State, ranks: slice) -> State | None:
        """Try signals in the place of the atoms that would be missed least.

        K-SVD gets stuck where two atoms share the work of one. Removing atom k costs ``‖g‖²``, g
        its coefficients. The trial counts only if a turn later the error is lower than before
        and, where signals stop at an error, codes have not grown.
        """
        missed = np.bincount(state.codes.indices, state.codes.data**2, len(state.atoms))
        weak = np.argsort(missed, kind="stable")[ranks]
        atoms = _atoms.replaced(self.X, state.atoms, weak, state.errors, energies(self.X))
        trial = self.turn(State(atoms, *self.pursue(self.X, atoms)))
        denser = self.by_error and trial.codes.nnz > state.codes.nnz
        return None if denser or trial.error >= state.error else trial


def _trials(n_atoms: int) -> list[slice]:
    """Return which of the least missed atoms to swap, refusal after refusal: fewer, then others."""
    many = max(1, n_atoms // 16)
    sizes = [many >> i for i in range(many.bit_length())]
    others = [slice(i, i + 1) for i in range(1, min(_OTHERS, n_atoms - 1) + 1)]
    return [slice(0, size) for size in sizes] + others
