"""Non-BEND as a model of the table: scores rows, draws new ones, gives back the distribution."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from weft._base import ValueEmbedder
from weft._distinct import distinct_rows
from weft.learn._nonbend_rows import locate

_MOST_CELLS = 10_000_000


class TableModel(ValueEmbedder):
    """What a fitted mixture says about rows; needs ``weights_``, ``theta_`` and ``alpha0``."""

    weights_: np.ndarray
    theta_: list[np.ndarray]
    n_subspaces_: int
    alpha0: float

    def predict_subspace(self, X: Any) -> np.ndarray:
        """Return the number of each row's likeliest subspace."""
        return self._judge(X)[0]

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log density of each row, log Σ_h π_h Π_j θ_hj; low ones are anomalies.

        A value not seen in fit counts as one more value of its column that no row had.
        """
        return self._judge(X)[1]

    def _judge(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        from weft.learn._nonbend_kernels import assign

        table = self._read_known(X)
        self.tables_._places(table, self._policy())
        sizes = self.weights_ * float(self.counts_.n)
        blocks = []
        for theta in self.theta_:
            unseen = self.alpha0 / (sizes + self.alpha0 * (theta.shape[1] + 1))
            blocks += [theta.T, unseen[None, :]]
        places = locate(table, self.counts_, shift=1)
        return assign(places, np.log(self.weights_), np.log(np.vstack(blocks)))

    def sample(self, n: int = 1, random_state: Any = None) -> dict[str, np.ndarray]:
        """Eqs. (5.14), (5.5): draw new rows, as a mapping of column to values."""
        check_is_fitted(self, "counts_")
        if not isinstance(n, Integral) or n < 0:
            raise ValueError(f"n={n!r}: use a whole number of rows")
        rng = check_random_state(random_state)
        subspace = rng.choice(self.n_subspaces_, size=n, p=self.weights_)
        out = {}
        for name, labels, theta in zip(
            self.counts_.names, self.counts_.labels, self.theta_, strict=True
        ):
            below, chance = np.cumsum(theta, axis=1), rng.random_sample(n)
            code = np.zeros(n, np.intp)
            for h in np.unique(subspace):  # one subspace at a time: no table of rows × values
                own = subspace == h
                code[own] = np.searchsorted(below[h], chance[own] * below[h, -1], side="right")
            out[name] = np.array([*labels, None], dtype=object)[:-1][code]
        return out

    def reconstruct(self, columns: Sequence[str] | None = None) -> np.ndarray:
        """Theorem 5.2: return the estimated distribution Σ_h π_h Θ_h of some columns (or all).

        An array with one axis per column, its values in the order of ``counts_.labels``.
        """
        check_is_fitted(self, "counts_")
        chosen = [self.counts_._index(c) for c in columns or self.counts_.names]
        if np.prod([self.theta_[a].shape[1] for a in chosen], dtype=float) > _MOST_CELLS:
            raise ValueError(
                f"the distribution of {len(chosen)} columns has more than {_MOST_CELLS:,} cells; "
                "name fewer columns, or use score_samples for the rows at hand"
            )
        out = self.weights_[:, None]
        for a in chosen:
            out = (out[:, :, None] * self.theta_[a][:, None, :]).reshape(self.n_subspaces_, -1)
        return out.sum(axis=0).reshape([self.theta_[a].shape[1] for a in chosen])

    def divergence(self, X: Any) -> float:
        """Return how far rows are from :meth:`reconstruct`: Kullback–Leibler, in nats.

        From the empirical distribution of the rows to the estimated one; by Theorem 5.2 it falls
        to 0 as rows are added.
        """
        table = self._read_known(X)
        _, inverse = distinct_rows(list(locate(table, self.counts_, shift=1).T))
        share = np.bincount(inverse)[inverse] / table.n_rows
        return float(np.mean(np.log(share) - self.score_samples(table)))
