"""Recommending: Bayesian matrix factorisation fed by a representation [Zhu 2019, 5.6.4].

Users and items are grouped by what is known of them (their categories, embedded), and those of a
group share the prior of their factors, so that someone with few ratings is rated like the group.
Comes in: triples (user, item, rating) and groups. Goes out: expected ratings.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from weft._recommend_data import (
    RatingData,
    checked_names,
    checked_ratings,
    find_groups,
    load_movielens,
    make_ratings,
)
from weft._store import Storable

__all__ = [
    "MatrixFactorization",
    "RatingData",
    "find_groups",
    "load_movielens",
    "mae",
    "make_ratings",
    "rmse",
]


class MatrixFactorization(Storable, BaseEstimator):
    """Bayesian probabilistic matrix factorisation with one prior per group.

    ``r_ij ~ N(m + u_i·v_j, 1/precision)``; ``u_i ~ N(μ_g, Λ_g⁻¹)`` with g the group of user i, and
    ``(μ_g, Λ_g)`` Gaussian–Wishart with μ₀ = 0, β₀ = 2, ν₀ = number of factors, W₀ = I; items
    likewise. Sampled by Gibbs; a rating is the mean over the samples after burn-in.

    Parameters
    ----------
    n_factors : int, default=10
        Length of the factors.
    precision : float, default=2.0
        Inverse variance of a rating around its expectation.
    n_iter : int, default=60
        Number of sweeps.
    burn_in : int, default=20
        Sweeps that do not count.
    clip : bool, default=True
        Whether predictions stay in the range of the ratings seen.
    random_state : int, RandomState or None
        Seed of the sampler.
    verbose : bool, default=False
        Whether to report every tenth sweep on standard error.

    Attributes
    ----------
    users_, items_ : Side
        The names, groups and sampled factors of the users and of the items.
    mean_ : float
        Mean rating.
    rmse_ : ndarray of shape (n_iter,)
        Training error of each sweep.

    References
    ----------
    Salakhutdinov, Mnih (2008), Bayesian probabilistic matrix factorization using MCMC.

    Examples
    --------
    >>> from weft.recommend import MatrixFactorization, make_ratings
    >>> data = make_ratings(60, 40, 1_200, random_state=0)
    >>> model = MatrixFactorization(n_factors=4, random_state=0)
    >>> model = model.fit(data.users, data.items, data.ratings, user_groups=data.user_groups)
    >>> model.predict(data.users[:3], data.items[:3]).shape
    (3,)
    """

    def __init__(
        self,
        n_factors: int = 10,
        *,
        precision: float = 2.0,
        n_iter: int = 60,
        burn_in: int = 20,
        clip: bool = True,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_factors = n_factors
        self.precision = precision
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.clip = clip
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        users: Any,
        items: Any,
        ratings: Any,
        *,
        user_groups: Mapping[Any, Any] | None = None,
        item_groups: Mapping[Any, Any] | None = None,
    ) -> Self:
        """Learn from ratings.

        Parameters
        ----------
        users, items : array-like of shape (n_ratings,)
            Names of who rated what.
        ratings : array-like of shape (n_ratings,)
            The ratings.
        user_groups, item_groups : mapping of name to group, optional
            Group of each user or item, those without ratings included; one group without it.
        """
        self._check_parameters()
        ratings = checked_ratings(users, items, ratings)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        self.mean_, self.range_ = float(ratings.mean()), (ratings.min(), ratings.max())
        self.users_ = Side.of(users, user_groups, "user", self.n_factors, rng)
        self.items_ = Side.of(items, item_groups, "item", self.n_factors, rng)
        u, v = self.users_.places(users), self.items_.places(items)
        rows = Ratings.of(u, v, ratings - self.mean_, len(self.users_.names))
        columns = Ratings.of(v, u, ratings - self.mean_, len(self.items_.names))
        errors = []
        for sweep in range(self.n_iter):
            for side, other, own in (
                (self.users_, self.items_, rows),
                (self.items_, self.users_, columns),
            ):
                side.sample_priors(rng)
                side.sample_factors(own, other.factors, self.precision, rng)
            errors.append(rmse(ratings - self.mean_, self._products(u, v)))
            if sweep >= self.burn_in:
                self.users_.keep()
                self.items_.keep()
            if self.verbose and (sweep + 1) % 10 == 0:
                print(f"sweep {sweep + 1} of {self.n_iter}: {errors[-1]:.4f}", file=sys.stderr)
        self.rmse_ = np.array(errors)
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return expected ratings; a name never heard of counts as average."""
        check_is_fitted(self, "mean_")
        u, v = self.users_.places(users), self.items_.places(items)
        if u.shape != v.shape:
            raise ValueError(f"{len(u)} users for {len(v)} items")
        total = np.zeros(len(u))
        for left, right in zip(self.users_.kept, self.items_.kept, strict=True):
            total += self._products(u, v, left, right)
        out = self.mean_ + total / len(self.users_.kept)
        return np.clip(out, *self.range_) if self.clip else out

    def _products(
        self,
        u: np.ndarray,
        v: np.ndarray,
        left: np.ndarray | None = None,
        right: np.ndarray | None = None,
    ) -> np.ndarray:
        from weft._recommend_kernels import add_products

        out = np.zeros(len(u))
        left = self.users_.factors if left is None else left
        right = self.items_.factors if right is None else right
        nothing = np.zeros((1, left.shape[1]), left.dtype)  # factors of an unknown name
        add_products(u, v, np.vstack([left, nothing]), np.vstack([right, nothing]), out)
        return out

    def _check_parameters(self) -> None:
        for name, least in (("n_factors", 1), ("n_iter", 1), ("burn_in", 0)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or int(value) < least:
                raise ValueError(f"{name}={value!r}: use a whole number of at least {least}")
        if self.burn_in >= self.n_iter:
            raise ValueError(f"burn_in={self.burn_in} leaves nothing of n_iter={self.n_iter}")
        if not isinstance(self.precision, Real) or not 0 < float(self.precision) < np.inf:
            raise ValueError(f"precision={self.precision!r}: use a number above 0")


@dataclass(eq=False)
class Side:
    """The users or the items: names, groups, factors and the priors of the groups."""

    names: np.ndarray
    groups: np.ndarray
    factors: np.ndarray
    means: np.ndarray
    precisions: np.ndarray
    kept: list[np.ndarray]

    @classmethod
    def of(cls, seen: Any, groups: Mapping[Any, Any] | None, what: str, d: int, rng: Any) -> Side:
        """Return a side with random factors, from the names that rated and those with a group."""
        names = np.unique(checked_names(seen, f"{what}s"))
        if groups is None:
            codes = np.zeros(len(names), np.intp)
        else:
            grouped = checked_names(list(groups), f"{what}_groups", like=names)
            names = np.unique(np.concatenate([names, grouped]))
            lost = [name for name in names.tolist() if name not in groups]
            if lost:
                raise ValueError(f"{what} {lost[0]!r} has no group; add it to {what}_groups")
            labels = [groups[name] for name in names.tolist()]
            codes = np.unique(np.asarray(labels), return_inverse=True)[1]
        k = int(codes.max()) + 1
        factors = rng.normal(scale=0.1, size=(len(names), d))
        return cls(names, codes, factors, np.zeros((k, d)), np.tile(np.eye(d), (k, 1, 1)), [])

    def places(self, asked: Any) -> np.ndarray:
        """Return where names stand; those never heard of stand behind the last."""
        asked = checked_names(asked, "the names asked for", like=self.names)
        found = np.minimum(np.searchsorted(self.names, asked), len(self.names) - 1)
        return np.where(self.names[found] == asked, found, len(self.names))

    def sample_priors(self, rng: np.random.Generator) -> None:
        """Draw (μ_g, Λ_g) of every group given its members' factors."""
        for g in range(len(self.means)):
            members = self.factors[self.groups == g]
            self.means[g], self.precisions[g] = draw_prior(members, rng)

    def sample_factors(
        self, own: Ratings, other: np.ndarray, precision: float, rng: np.random.Generator
    ) -> None:
        """Draw all factors given the ratings and the other side's factors."""
        from weft._recommend_kernels import draw_factors

        normals = rng.normal(size=self.factors.shape)
        self.factors = draw_factors(
            own.starts, own.partners, own.residuals, other, float(precision), self.groups,
            self.means, self.precisions, normals,
        )  # fmt: skip

    def keep(self) -> None:
        """Keep the factors of this sweep for predictions."""
        self.kept.append(self.factors.astype(np.float32))


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings by row: those of row i are ``starts[i]:starts[i + 1]``."""

    starts: np.ndarray
    partners: np.ndarray
    residuals: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, partners: np.ndarray, residuals: np.ndarray, n: int) -> Ratings:
        """Sort triples by row."""
        order = np.argsort(rows, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
        return cls(starts, partners[order], residuals[order])


def draw_prior(members: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian–Wishart posterior of a group [Salakhutdinov & Mnih 2008, Eq. (14)].

    ``β* = β₀+N``, ``ν* = ν₀+N``, ``μ* = N x̄/β*``, ``W*⁻¹ = I + N S + β₀N/β* x̄x̄ᵀ``;
    ``Λ ~ Wishart(W*, ν*)`` by Bartlett's decomposition and ``μ ~ N(μ*, (β*Λ)⁻¹)``.
    """
    n, d = members.shape
    beta0, nu = 2.0, d + n
    centre = members.mean(axis=0) if n else np.zeros(d)
    spread = members - centre
    inverse = np.eye(d) + spread.T @ spread + beta0 * n / (beta0 + n) * np.outer(centre, centre)
    bartlett = np.tril(rng.normal(size=(d, d)), -1)
    bartlett[np.diag_indices(d)] = np.sqrt(rng.chisquare(nu - np.arange(d)))
    root = np.linalg.cholesky(np.linalg.inv(inverse)) @ bartlett
    noise = np.linalg.solve(root.T, rng.normal(size=d)) / np.sqrt(beta0 + n)
    return n * centre / (beta0 + n) + noise, root @ root.T


def rmse(truth: Any, predicted: Any) -> float:
    """Return the root of the mean squared error."""
    return float(np.sqrt(np.mean((np.asarray(truth) - np.asarray(predicted)) ** 2)))


def mae(truth: Any, predicted: Any) -> float:
    """Return the mean absolute error."""
    return float(np.mean(np.abs(np.asarray(truth) - np.asarray(predicted))))
