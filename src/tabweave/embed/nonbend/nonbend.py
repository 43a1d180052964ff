"""Non-BEND: a table untangled into independent parts [Zhu 2019, ch. 5].

Explains the table as a Dirichlet-process mixture of subspaces in which columns are independent,
and represents each value by how likely it is in each of them. The mixture is a model of the table
as well: it scores rows, draws new ones and gives back the table's distribution. Unlike most of
tabweave it needs rows more than once: distinct rows are kept, or batches are read again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any, NoReturn, Self

import numpy as np
from sklearn.utils import check_random_state

from tabweave.base import ValueEmbedder, remember_names, require_rows
from tabweave.blocks.value_tables import ValueTables
from tabweave.counts.counts import Counts, _checked_weight
from tabweave.counts.couplings import refuse_many_values
from tabweave.embed.nonbend.gibbs import Gibbs
from tabweave.embed.nonbend.model import Fit, Prior, Rows, locate, total_inertia
from tabweave.embed.nonbend.variational import VI, fit_batches
from tabweave.embed.register import embedder
from tabweave.engines import read_with_classes
from tabweave.rows.table import Schema, distinct_rows

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
        from tabweave.embed.nonbend.kernels import assign

        table = self._read_fitted(X)
        self.learn()
        self.counts_.vocabulary.positions(table, self._policy())
        sizes = self.weights_ * float(self.counts_.n)
        blocks = []
        for theta in self.theta_:
            unseen = self.alpha0 / (sizes + self.alpha0 * (theta.shape[1] + 1))
            blocks += [theta.T, unseen[None, :]]
        places = locate(table, self.counts_, shift=1)
        return assign(places, np.log(self.weights_), np.log(np.vstack(blocks)))

    def sample(self, n: int = 1, random_state: Any = None) -> dict[str, np.ndarray]:
        """Eqs. (5.14), (5.5): draw new rows, as a mapping of column to values."""
        self.learn()
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
        self.learn()
        chosen = [self.counts_.vocabulary.index(c) for c in columns or self.counts_.names]
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
        table = self._read_fitted(X)
        _, inverse = distinct_rows(list(locate(table, self.counts_, shift=1).T))
        share = np.bincount(inverse)[inverse] / table.n_rows
        return float(np.mean(np.log(share) - self.score_samples(table)))


# -- Non-BEND as a model of the table: scores rows, draws new ones, gives back the distribution


@embedder("nonbend", "a table untangled into independent parts", "Zhu 2019, ch. 5")
class NonBEND(TableModel):
    """Embed rows by the independent subspaces they come from.

    A Dirichlet-process mixture of products of multinomials is fitted several times, each fit
    gives every column a Gram matrix over its values, Eqs. (5.26)–(5.32), and their mean is the
    representation. Rows are needed more than once; identical rows share a posterior, so cost and
    memory grow with the number of distinct rows. Set-valued columns are refused.

    Parameters
    ----------
    method : {"vi", "gibbs"} or VI or Gibbs, default="vi"
        Variational inference (fast) or collapsed Gibbs sampling; an object of
        ``tabweave.embed.nonbend.nonbend`` sets starts, restarts, tolerance, burn-in and assignment.
    alpha : float or "auto", default="auto"
        Concentration of the subspaces: more of them when larger. ``"auto"`` is 1 for variational
        inference and 50 for Gibbs sampling, and becomes ``alpha_``.
    alpha0 : float, default=0.1
        Pseudo-count of every value in a subspace; from 5 on everything falls into one subspace.
    truncation : int, default=30
        Most subspaces of ``"vi"``, subspaces that ``"gibbs"`` starts with; at least 2.
    n_fits : int, default=8
        Fits whose Grams are averaged: the result hangs less on the seed; 1 is the thesis.
    max_iter : int, default=100
        Most steps of a fit (``"vi"``) or its sweeps (``"gibbs"``).
    column_weights : {"none", "printed", "shrunk"}, default="none"
        Weights of the columns: Eq. (5.31) as printed, none, or halfway (ours): the mean of both
        representations at equal inertia.
    random_state : int, RandomState or None
        Seed of the fits.
    verbose : bool, default=False
        Whether to report each fit on standard error.
    schema, unknown, dtype
        As in :class:`~tabweave.OneHot`.

    Attributes
    ----------
    n_subspaces_ : int
        Number of subspaces of the best fit; the following are those of the best fit too.
    weights_ : ndarray of shape (n_subspaces_,)
        Share of the rows in each subspace, Eq. (5.27), largest first.
    theta_ : list of ndarray of shape (n_subspaces_, values)
        Per column, the probability of each value in each subspace, Eq. (5.26).
    trace_ : tuple of float
        The evidence lower bound after each step, or the log joint probability after each sweep.
    n_iter_ : int
        Its number of steps or sweeps.
    fits_ : list
        All fits.

    Notes
    -----
    Errata: in (5.22) the sum of E[log(1−V_l)] stops at l = t−1; in (5.25) the digamma of the sum
    runs over the values of the column; (5.31) averages over all k subspaces with k−1 in the
    denominator. With one subspace alone every column weighs 1.

    Examples
    --------
    >>> from tabweave.embed.nonbend.nonbend import NonBEND
    >>> rows = {"color": ["red", "blue"] * 20, "size": ["S", "L"] * 20, "shape": ["o"] * 40}
    >>> model = NonBEND(random_state=0).fit(rows)
    >>> model.n_subspaces_, model.weights_.tolist()
    (2, [0.5, 0.5])
    >>> odd = {"color": ["red", "red"], "size": ["S", "L"], "shape": ["o", "o"]}
    >>> model.score_samples(odd).round(1).tolist()
    [-0.7, -5.3]
    """

    _needs_rows = True

    def __init__(
        self,
        method: str | VI | Gibbs = "vi",
        *,
        alpha: float | str = "auto",
        alpha0: float = 0.1,
        truncation: int = 30,
        n_fits: int = 8,
        max_iter: int = 100,
        column_weights: str = "none",
        random_state: Any = None,
        verbose: bool = False,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)
        self.method = method
        self.alpha = alpha
        self.alpha0 = alpha0
        self.truncation = truncation
        self.n_fits = n_fits
        self.max_iter = max_iter
        self.column_weights = column_weights
        self.random_state = random_state
        self.verbose = verbose

    # -- learning --------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows; ``y`` is ignored, a weight of 2 is the same as having a row twice."""
        X, y = read_with_classes(X, y)
        table = self._read(X, Schema.of(self.schema))
        require_rows(table)
        counts = Counts.of(table, sample_weight=sample_weight)
        remember_names(self, table.schema)
        if counts.schema is not None:
            weight = _checked_weight(sample_weight, table.n_rows)
            self._distinct = Rows.of(table, counts, weight)
        return super().fit_counts(counts)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the distinct rows seen so far; same result as one ``fit`` on all of them."""
        if "counts_" not in vars(self):
            return self.fit(X, y, sample_weight)
        if "_distinct" not in vars(self):
            raise ValueError("rows of fit_batches are not kept; call fit_batches with all of them")
        X, y = read_with_classes(X, y)
        table = self._read_fitted(X)
        more = Counts.of(table, sample_weight=sample_weight)
        counts = self.counts_ + more
        if more.schema is not None:
            rows = Rows.of(table, counts, _checked_weight(sample_weight, table.n_rows))
            self._distinct = self._distinct.moved(self.counts_.labels, counts).joined(rows)
        return self._hold(counts)

    def fit_batches(self, batches: Iterable[Any] | Callable[[], Iterable[Any]]) -> Self:
        """Learn from batches that are read again for every step, keeping none of them.

        The first pass counts and keeps a random sample, every fit is started on the sample, and
        further passes carry all fits on over all rows: exact variational inference.

        Parameters
        ----------
        batches : list of batches, or function that returns an iterator over them
            Each batch is anything :meth:`fit` reads.
        """
        self._check_parameters()
        counts, self._given_fits = fit_batches(self, batches)
        self.__dict__.pop("_distinct", None)
        super().fit_counts(counts)
        del self._given_fits
        return self

    def fit_counts(self, counts: Counts) -> NoReturn:
        """Refuse: which values share a row, beyond pairs, cannot be read from counts."""
        raise TypeError(
            "NonBEND assigns whole rows to subspaces, and counts hold only pairs of values: "
            "use fit(rows), or fit_batches(batches) when they do not fit in memory"
        )

    def _learn(self, counts: Counts) -> ValueTables:
        self._check_parameters()
        refuse_many_values(counts, "NonBEND")
        prior = self._prior(counts)
        self.alpha_ = prior.alpha
        fits = vars(self).get("_given_fits") or self._run_fits(prior)
        self.fits_ = [fit.occupied() for fit in fits]
        best = max(self.fits_, key=lambda fit: fit.trace[-1])
        self.trace_, self.n_iter_ = best.trace, len(best.trace)
        self.weights_ = subspace_weights(best)
        self.n_subspaces_ = len(self.weights_)
        theta = value_probabilities(best, prior)
        self.theta_ = [theta[counts.span(a)].T for a in range(len(counts.names))]
        kinds = {"printed": (True,), "none": (False,), "shrunk": (True, False)}
        grams = [
            embedding_grams(fit, prior, weighted)
            for fit in self.fits_
            for weighted in kinds[self.column_weights]
        ]
        return ValueTables.from_grams(mean_grams(grams, counts), counts)

    def _run_fits(self, prior: Prior) -> list[Fit]:
        fits = []
        for number, rng in enumerate(self._generators()):
            fit = self._engine().run(self._distinct, prior, int(self.max_iter), rng)
            fits.append(fit)
            if self.verbose:
                print(
                    f"NonBEND: fit {number + 1} of {self.n_fits}: {len(fit.sizes)} subspaces, "
                    f"{len(fit.trace)} steps, {fit.trace[-1]:.2f}",
                    file=sys.stderr,
                )
        return fits

    def _generators(self) -> list[np.random.Generator]:
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=int(self.n_fits))
        return [np.random.default_rng(seed) for seed in seeds]

    def _engine(self) -> VI | Gibbs:
        named: dict[str, VI | Gibbs] = {"vi": VI(), "gibbs": Gibbs()}
        return named[self.method] if isinstance(self.method, str) else self.method

    def _prior(self, counts: Counts) -> Prior:
        alpha = self.alpha
        if alpha == "auto":
            alpha = 50.0 if isinstance(self._engine(), Gibbs) else 1.0
        return Prior(float(alpha), float(self.alpha0), int(self.truncation), counts.offsets)

    def _check_parameters(self) -> None:
        if not isinstance(self.method, VI | Gibbs) and self.method not in ("vi", "gibbs"):
            raise ValueError(f"method={self.method!r}: use 'vi', 'gibbs', VI(...) or Gibbs(...)")
        if self.column_weights not in ("shrunk", "printed", "none"):
            raise ValueError(
                f"column_weights={self.column_weights!r}: use 'shrunk', 'printed' or 'none'"
            )
        for name in ("alpha", "alpha0"):
            value = getattr(self, name)
            if name == "alpha" and value == "auto":
                continue
            if not isinstance(value, Real) or not 0 < float(value) < np.inf:
                raise ValueError(f"{name}={value!r}: a concentration is a number above 0")
        for name, least in (("truncation", 2), ("n_fits", 1), ("max_iter", 1)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or int(value) < least:
                raise ValueError(f"{name}={value!r}: use a whole number of at least {least}")


# -- the equations -----------------------------------------------------------------------------


def value_probabilities(fit: Fit, prior: Prior) -> np.ndarray:
    """Eq. (5.26): θ*, the posterior mean of each value's probability, as (V, subspaces)."""
    widths = np.diff(prior.offsets)
    total = fit.sizes + prior.alpha0 * widths[:, None]
    return (fit.counts + prior.alpha0) / np.repeat(total, widths, axis=0)


def subspace_weights(fit: Fit) -> np.ndarray:
    """Eq. (5.27): π*, the share of the rows in each subspace, in expectation."""
    return fit.sizes / fit.sizes.sum()


def embedding_grams(fit: Fit, prior: Prior, weighted: bool = True) -> list[np.ndarray]:
    """Eqs. (5.28)–(5.32): per column, the inner products of its values' vectors.

    The vector of value v holds, for every subspace h, ``w_j π_h exp(−θ_hv)`` times the one-zero
    vector of v. Two one-zero vectors of V values share V−2 ones, or V−1 when they are the same,
    so the V × subspaces·V features are never formed.
    """
    pi, theta = subspace_weights(fit), value_probabilities(fit, prior)
    grams = []
    for start, stop in zip(prior.offsets[:-1], prior.offsets[1:], strict=True):
        own = theta[start:stop]
        scaled = pi * np.exp(-own) * (column_weight(own) if weighted else 1.0)
        n_values = int(stop - start)
        grams.append((scaled @ scaled.T) * (n_values - 2 + np.eye(n_values)))
    return grams


def column_weight(theta: np.ndarray) -> float:
    """Eq. (5.31): mean over a column's values of the spread of θ across subspaces.

    Erratum: the sum runs over all k subspaces, with k−1 in the denominator.
    """
    return float(theta.std(axis=1, ddof=1).mean()) if theta.shape[1] > 1 else 1.0


def mean_grams(grams: list[list[np.ndarray]], counts: Counts) -> list[np.ndarray]:
    """Return the mean of several representations' Grams, each scaled to their mean inertia."""
    inertia = np.array([total_inertia(own, counts) for own in grams])
    scale = np.ones(len(grams))
    if (inertia > 0).all():
        scale = inertia.mean() / inertia
    return [
        np.tensordot(scale, np.stack(own), axes=1) / len(grams) for own in zip(*grams, strict=True)
    ]
