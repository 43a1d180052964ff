"""Non-BEND: a table untangled into independent parts [Zhu 2019, ch. 5].

Explains the table as a Dirichlet-process mixture of subspaces in which columns are independent,
and represents each value by how likely it is in each of them. The mixture is a model of the table
as well: it scores rows, draws new ones and gives back the table's distribution. Unlike most of
tabweave it needs rows more than once: distinct rows are kept, or batches are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from tabweave._compat import Interval, StrOptions, validate_parameter_constraints
from tabweave.base import ValueEmbedder
from tabweave.columns.inputs import check_categorical
from tabweave.columns.table import distinct_rows
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import check_table_size
from tabweave.embed.nonbend.gibbs import Gibbs
from tabweave.embed.nonbend.model import DistinctRowEmbedder, Fit, Prior, locate, total_inertia
from tabweave.embed.nonbend.variational import VI, Passes, assign, fit_batches
from tabweave.embed.register import embedder
from tabweave.engines import progress_reporter
from tabweave.engines.reading import read_fitted
from tabweave.space.value_tables import ValueTables


@embedder("nonbend", "mixture of subspaces with independent columns", "Zhu 2019, ch. 5")
class NonBEND(DistinctRowEmbedder):
    """Embed rows by a mixture of subspaces, in each of which the columns are independent.

    A Dirichlet-process mixture of products of multinomials is fitted several times, each fit
    gives every column a Gram matrix over its values, Eqs. (5.26)–(5.32), and their mean is the
    representation. Rows are needed more than once; identical rows share a posterior, so cost and
    memory grow with the number of distinct rows. Set-valued columns are an error.

    Parameters
    ----------
    method : {"vi", "gibbs"} or VI or Gibbs, default="vi"
        Variational inference (fast) or collapsed Gibbs sampling. An object of
        ``tabweave.embed.nonbend`` sets the number of subspaces and steps, starts, tolerance,
        burn-in, assignment, progress and what a missing cell means: ``VI(truncation=50)``,
        ``VI(missing="marginal")``.
    alpha : float or "auto", default="auto"
        Concentration of the subspaces: more of them when larger. ``"auto"`` is 1 for variational
        inference and 50 for Gibbs sampling, and becomes ``alpha_``.
    alpha0 : float, default=0.1
        Pseudo-count of every value in a subspace; from 5 on everything falls into one subspace.
    n_fits : int, default=8
        Number of fits whose Gram matrices are averaged, so that the result depends less on the
        seed; the thesis has 1.
    random_state : int, RandomState or None, default=None
        Seed of the fits.
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
    alpha_ : float
        The concentration in use.
    tables_ : ValueTables
        The representation.
    counts_, blocks_, schema_
        As in :class:`~tabweave.OneHot`.

    Notes
    -----
    *Errata.* In (5.22) the sum of E[log(1−V_l)] stops at l = t−1; in (5.25) the digamma of the sum
    runs over the values of the column. The column weights of (5.31), which
    :class:`tabweave.papers.NonBEND` has, are left out: they cost one to two points of F.

    Examples
    --------
    >>> from tabweave import NonBEND
    >>> rows = {"color": ["red", "blue"] * 20, "size": ["S", "L"] * 20, "shape": ["o"] * 40}
    >>> model = NonBEND(random_state=0).fit(rows)
    >>> model.n_subspaces_, model.weights_.tolist()
    (2, [0.5, 0.5])
    >>> odd = {"color": ["red", "red"], "size": ["S", "L"], "shape": ["o", "o"]}
    >>> model.score_samples(odd).round(1).tolist()
    [-0.7, -5.3]
    """

    weights_: np.ndarray
    theta_: list[np.ndarray]
    n_subspaces_: int
    _fits_of_batches: list[Fit] | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ValueEmbedder._parameter_constraints,
        "method": [StrOptions({"vi", "gibbs"}), VI, Gibbs],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "alpha0": [Interval(Real, 0, None, closed="neither")],
        "n_fits": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        method: str | VI | Gibbs = "vi",
        *,
        alpha: float | str = "auto",
        alpha0: float = 0.1,
        n_fits: int = 8,
        random_state: Any = None,
        schema: Any = None,
        unknown: str = "centroid",
        dtype: str = "float64",
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.alpha0 = alpha0
        self.n_fits = n_fits
        self.random_state = random_state
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)

    def _validate_params(self) -> None:
        super()._validate_params()
        engine = self._engine()
        allowed = engine._parameter_constraints
        settings = {name: getattr(engine, name) for name in allowed}
        validate_parameter_constraints(allowed, settings, type(engine).__name__)

    # -- learning --------------------------------------------------------------------------

    def fit_batches(self, batches: Iterable[Any] | Callable[[], Iterable[Any]]) -> Self:
        """Fit to batches that are read again for every step, and not kept in memory.

        The first pass counts and keeps a random sample, every fit is started on the sample, and
        further passes carry all fits on over all rows: exact variational inference.

        Parameters
        ----------
        batches : list of batches, or function that returns an iterator over them
            Each batch is anything :meth:`fit` reads.
        """
        self._validate_params()
        self._digest = None
        counts, self._fits_of_batches = fit_batches(self, batches)
        try:
            return ValueEmbedder.fit_counts(self, counts)
        finally:
            del self._fits_of_batches

    def _learn(self, counts: Counts) -> ValueTables:
        check_table_size(counts, "NonBEND")
        prior = self._prior(counts)
        self.alpha_ = prior.alpha
        fits = self._fits_of_batches or self._run_fits(prior)
        self.fits_ = [fit.occupied() for fit in fits]
        best = max(self.fits_, key=lambda fit: fit.trace[-1])
        self.trace_, self.n_iter_ = best.trace, len(best.trace)
        self.weights_ = subspace_weights(best)
        self.n_subspaces_ = len(self.weights_)
        theta = value_probabilities(best, prior)
        self.theta_ = [theta[counts.span(a)].T for a in range(len(counts.names))]
        grams = [self._grams(fit, prior) for fit in self.fits_]
        return ValueTables.from_grams(mean_grams(grams, counts), counts)

    def _grams(self, fit: Fit, prior: Prior) -> list[np.ndarray]:
        """What one fit gives to the representation, column by column."""
        return embedding_grams(fit, prior)

    def _run_fits(self, prior: Prior) -> list[Fit]:
        engine, rows, fits = self._engine(), self._row_digest, []
        report = progress_reporter(engine.progress, "fits", self.n_fits)
        for rng in self._generators():
            fit = engine.run(rows, prior, rng)
            fit = self._finished(fit, lambda: (rows,), prior)
            fits.append(fit)
            steps = f"{len(fit.sizes)} subspaces, {len(fit.trace)} steps, {fit.trace[-1]:.2f}"
            report("Non-BEND", len(fits), steps)
        return fits

    def _finished(self, fit: Fit, passes: Passes, prior: Prior) -> Fit:
        """What is kept of a fit to the rows that ``passes()`` yields: rows shared out."""
        return fit

    def _generators(self) -> list[np.random.Generator]:
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=int(self.n_fits))
        return [np.random.default_rng(seed) for seed in seeds]

    def _engine(self) -> VI | Gibbs:
        named: dict[str, VI | Gibbs] = {"vi": VI(), "gibbs": Gibbs()}
        return named[self.method] if isinstance(self.method, str) else self.method

    def _prior(self, counts: Counts) -> Prior:
        engine, alpha = self._engine(), self.alpha
        if alpha == "auto":
            alpha = 50.0 if isinstance(engine, Gibbs) else 1.0
        gaps = np.zeros(0, np.int64)
        if engine.missing == "marginal":
            columns = zip(counts.offsets[:-1], counts.labels, strict=True)
            gap_cells = [start + labels.index(None) for start, labels in columns if None in labels]
            gaps = np.array(gap_cells, np.int64)
        pseudo, offsets = self._pseudo_counts(counts), counts.offsets
        return Prior(float(alpha), pseudo, int(engine.truncation), offsets, gaps)

    def _pseudo_counts(self, counts: Counts) -> float | np.ndarray:
        """Pseudo-count α₀, of all values alike."""
        return float(self.alpha0)

    # -- the model of the table ------------------------------------------------------------

    def predict_subspace(self, X: Any) -> np.ndarray:
        """Index of the most likely subspace of each row."""
        return self._judge(X)[0]

    def score_samples(self, X: Any) -> np.ndarray:
        """Log density of each row, log Σ_h π_h Π_j θ_hj; low ones are anomalies.

        A value not seen in fit counts as one more value of its column that no row had; cells whose
        gaps say nothing are left out of the product.
        """
        return self._judge(X)[1]

    def _judge(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        check_categorical(self, self.schema_)
        table = read_fitted(self, X)
        self.learn()
        self.counts_.vocabulary.positions(table, self.unknown)
        sizes, prior = self.weights_ * float(self.counts_.n), self._prior(self.counts_)
        blocks, pseudo = [], prior.pseudo_counts
        for a, (theta, total) in enumerate(zip(self.theta_, prior.totals, strict=True)):
            present = pseudo[self.counts_.span(a)] > 0
            pseudo_count = total / max(present.sum(), 1)
            unseen = (
                pseudo_count / (sizes + total + pseudo_count)
                if pseudo_count
                else np.ones(len(sizes))
            )
            blocks += [np.where(present[:, None], theta.T, 1.0), unseen[None, :]]
        cells = locate(table, self.counts_, shift=1)
        return assign(cells, np.log(self.weights_), np.log(np.vstack(blocks)))

    def sample(self, n: int = 1, random_state: Any = None) -> dict[str, np.ndarray]:
        """Eqs. (5.14), (5.5): draw new rows, as a mapping of column to values."""
        check_categorical(self.learn(), self.schema_)
        if not isinstance(n, Integral) or n < 0:
            raise ValueError(f"expected n to be a whole number of rows, got {n!r}")
        rng = check_random_state(random_state)
        subspace = rng.choice(self.n_subspaces_, size=n, p=self.weights_)
        out = {}
        for name, labels, theta in zip(
            self.counts_.names, self.counts_.labels, self.theta_, strict=True
        ):
            below, chance = np.cumsum(theta, axis=1), rng.random_sample(n)
            code = np.zeros(n, np.intp)
            for h in np.unique(subspace):  # one subspace at a time: no table of rows × values
                inside = subspace == h
                code[inside] = np.searchsorted(
                    below[h], chance[inside] * below[h, -1], side="right"
                )
            out[name] = np.array([*labels, None], dtype=object)[:-1][code]
        return out

    def reconstruct(self, columns: Sequence[str] | None = None) -> np.ndarray:
        """Theorem 5.2: estimated distribution Σ_h π_h Θ_h of some columns (or all).

        An array with one axis per column, its values in the order of ``counts_.labels``.
        """
        check_categorical(self.learn(), self.schema_)
        chosen = [self.counts_.vocabulary.index(c) for c in columns or self.counts_.names]
        max_cells = 10_000_000
        if np.prod([self.theta_[a].shape[1] for a in chosen], dtype=float) > max_cells:
            raise ValueError(
                f"the distribution of {len(chosen)} columns has more than {max_cells:,} cells; "
                "name fewer columns, or use score_samples for given rows"
            )
        out = self.weights_[:, None]
        for a in chosen:
            out = (out[:, :, None] * self.theta_[a][:, None, :]).reshape(self.n_subspaces_, -1)
        return out.sum(axis=0).reshape([self.theta_[a].shape[1] for a in chosen])

    def divergence(self, X: Any) -> float:
        """Kullback–Leibler divergence of rows from :meth:`reconstruct`, in nats.

        From the empirical distribution of the rows to the estimated one; by Theorem 5.2 it falls
        to 0 as rows are added.
        """
        table = read_fitted(self, X)
        _, inverse = distinct_rows(list(locate(table, self.counts_, shift=1).T))
        share = np.bincount(inverse)[inverse] / table.n_rows
        return float(np.mean(np.log(share) - self.score_samples(table)))


# -- the equations -----------------------------------------------------------------------------


def value_probabilities(fit: Fit, prior: Prior) -> np.ndarray:
    """Eq. (5.26): θ*, the posterior mean of each value's probability, as (V, subspaces).

    A gap is no value: its probability is 0.
    """
    pseudo, widths = prior.pseudo_counts, np.diff(prior.offsets)
    total = np.repeat(prior.seen(fit.counts, fit.sizes) + prior.totals[:, None], widths, axis=0)
    out, present = np.zeros(fit.counts.shape), pseudo > 0
    out[present] = (fit.counts[present] + pseudo[present, None]) / total[present]
    return out


def subspace_weights(fit: Fit) -> np.ndarray:
    """Eq. (5.27): π*, the share of the rows in each subspace, in expectation."""
    return fit.sizes / fit.sizes.sum()


def embedding_grams(fit: Fit, prior: Prior) -> list[np.ndarray]:
    """Eqs. (5.28)–(5.30), (5.32): per column, the inner products of its values' vectors.

    The vector of value v holds, for every subspace h, ``π_h exp(−θ_hv)`` times the one-zero
    vector of v. Two one-zero vectors of V values share V−2 ones, or V−1 when they are the same,
    so the V × subspaces·V features are never formed. A gap is the mean of the values, each as often
    as it occurs.
    """
    pi, theta = subspace_weights(fit), value_probabilities(fit, prior)
    grams, pseudo = [], prior.pseudo_counts
    for start, stop in zip(prior.offsets[:-1], prior.offsets[1:], strict=True):
        present = pseudo[start:stop] > 0
        scaled = pi * np.exp(-theta[start:stop])
        gram = (scaled @ scaled.T) * (present.sum() - 2 + np.eye(len(present)))
        if not present.all():
            mix = np.diag(present.astype(float))
            often = fit.counts[start:stop].sum(axis=1) * present
            mix[~present] = often / max(often.sum(), np.finfo(float).tiny)
            gram = mix @ gram @ mix.T
        grams.append(gram)
    return grams


def mean_grams(grams: list[list[np.ndarray]], counts: Counts) -> list[np.ndarray]:
    """Mean of several representations' Grams, each scaled to their mean inertia."""
    inertia = np.array([total_inertia(column, counts) for column in grams])
    scale = np.ones(len(grams))
    if (inertia > 0).all():
        scale = inertia.mean() / inertia
    return [
        np.tensordot(scale, np.stack(column), axes=1) / len(grams)
        for column in zip(*grams, strict=True)
    ]
