"""Recommending: Bayesian matrix factorisation fed by a representation [Zhu 2019, 5.6.4].

Users and items are grouped by their categories, embedded, and those of a group share the prior of
their factors, so that someone with few ratings is rated like the group. Comes in: triples (user,
item, rating) and groups. Goes out: expected ratings. :func:`find_groups` makes the groups,
:func:`make_ratings` and :func:`load_movielens` give :class:`RatingData` to try it on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tabweave._compat import Interval, seed_of
from tabweave.base import Estimator
from tabweave.columns.vocabulary import canonical
from tabweave.embed.base import ValueEmbedder
from tabweave.embed.nonbend import NonBEND
from tabweave.engines.progress import ProgressCallback, progress_reporter
from tabweave.io.register import storable

__all__ = [
    "MatrixFactorization",
    "RatingData",
    "find_groups",
    "load_movielens",
    "make_ratings",
]

BLOCK_ROWS = 1 << 14  # Rows or ratings that are worked on at a time.


@storable
class MatrixFactorization(Estimator):
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
    random_state : int, RandomState or None, default=None
        Seed of the sampler.
    progress : callable, optional
        Called with a :class:`~tabweave.engines.Progress` after each sweep; its note is the error.

    Attributes
    ----------
    users_, items_ : RatedSide
        The names, groups and sampled factors of the users and of the items.
    mean_, range_ : float, tuple of float
        Mean rating, and the lowest and highest.
    rmse_ : ndarray of shape (n_iter,)
        Training error of each sweep.

    References
    ----------
    Salakhutdinov, Mnih (2008), Bayesian probabilistic matrix factorization using MCMC.

    Examples
    --------
    >>> from tabweave.papers.recommend import MatrixFactorization, make_ratings
    >>> data = make_ratings(60, 40, 1_200, random_state=0)
    >>> model = MatrixFactorization(n_factors=4, random_state=0)
    >>> model = model.fit(data.users, data.items, data.ratings, user_groups=data.user_groups)
    >>> model.predict(data.users[:3], data.items[:3]).shape
    (3,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_factors": [Interval(Integral, 1, None, closed="left")],
        "precision": [Interval(Real, 0, None, closed="neither")],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "clip": ["boolean"],
        "random_state": ["random_state"],
        "progress": [callable, None],
    }

    def __init__(
        self,
        n_factors: int = 10,
        *,
        precision: float = 2.0,
        n_iter: int = 60,
        burn_in: int = 20,
        clip: bool = True,
        random_state: Any = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.n_factors = n_factors
        self.precision = precision
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.clip = clip
        self.random_state = random_state
        self.progress = progress

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
        user_groups, item_groups : mapping or series of name to group, optional
            Group of each user or item, those without ratings included; one group without it.
        """
        from sklearn.metrics import root_mean_squared_error  # loads much

        self._validate_params()
        if self.burn_in >= self.n_iter:
            raise ValueError(f"expected burn_in below n_iter={self.n_iter}, got {self.burn_in}")
        ratings = checked_ratings(users, items, ratings)
        rng = np.random.default_rng(seed_of(self.random_state))
        self.mean_, self.range_ = float(ratings.mean()), (ratings.min(), ratings.max())
        self.users_ = RatedSide.of(users, user_groups, "user", self.n_factors, rng)
        self.items_ = RatedSide.of(items, item_groups, "item", self.n_factors, rng)
        u, v = self.users_.index(users), self.items_.index(items)
        residuals = ratings - self.mean_
        sides = (
            (self.users_, self.items_, Ratings.of(u, v, residuals, len(self.users_.names))),
            (self.items_, self.users_, Ratings.of(v, u, residuals, len(self.items_.names))),
        )
        report = progress_reporter(self.progress, "sweeps", self.n_iter)
        errors = []
        for sweep in range(self.n_iter):
            for side, other, ratings_of_side in sides:
                side.sample_priors(rng)
                normals = rng.normal(size=side.factors.shape)
                side.factors = draw_factors(
                    ratings_of_side, other.factors, self.precision, side, normals
                )
            expected = products(self.users_.factors, self.items_.factors, u, v)
            errors.append(root_mean_squared_error(residuals, expected))
            if sweep >= self.burn_in:
                for side in (self.users_, self.items_):
                    side.draws.append(side.factors.astype(np.float32))
            report("sampling", sweep + 1, f"error {errors[-1]:.4f}")
        self.rmse_ = np.array(errors)
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Expected ratings; an unknown name counts as average."""
        check_is_fitted(self, "mean_")
        u, v = self.users_.index(users), self.items_.index(items)
        if u.shape != v.shape:
            raise ValueError(f"expected as many users as items, got {len(u)} and {len(v)}")
        total = np.zeros(len(u))
        for left, right in zip(self.users_.draws, self.items_.draws, strict=True):
            total += products(left, right, u, v)
        out = self.mean_ + total / len(self.users_.draws)
        return np.clip(out, *self.range_) if self.clip else out


def products(left: np.ndarray, right: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Inner product of each pair of factors; those of an unknown name are 0."""
    unseen = np.zeros((1, left.shape[1]), left.dtype)
    left, right = np.vstack([left, unseen]), np.vstack([right, unseen])
    out = np.empty(len(u))
    for start in range(0, len(u), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        (left[u[part]] * right[v[part]]).sum(axis=1, dtype=np.float64, out=out[part])
    return out


@storable
@dataclass(eq=False)
class RatedSide:
    """The users or the items: names, groups, factors and the priors of the groups."""

    names: np.ndarray
    groups: np.ndarray
    factors: np.ndarray
    means: np.ndarray
    precisions: np.ndarray
    draws: list[np.ndarray]  # the factors of the sweeps that predictions average

    @classmethod
    def of(cls, seen: Any, groups: Any, what: str, d: int, rng: Any) -> RatedSide:
        """A side with random factors, from the names that rated and those with a group."""
        names = np.unique(checked_names(seen, f"{what}s"))
        groups = groups.to_dict() if hasattr(groups, "to_dict") else groups  # a series, say
        if groups is None:
            codes = np.zeros(len(names), np.intp)
        else:
            grouped = checked_names(list(groups), f"{what}_groups", like=names)
            names = np.unique(np.concatenate([names, grouped]))
            for name in names.tolist():
                if name not in groups:
                    raise ValueError(f"{what}_groups: expected a group of {name!r}, got none")
            labels = [groups[name] for name in names.tolist()]
            codes = np.unique(np.asarray(labels), return_inverse=True)[1]
        k = int(codes.max()) + 1
        factors = rng.normal(scale=0.1, size=(len(names), d))
        return cls(names, codes, factors, np.zeros((k, d)), np.tile(np.eye(d), (k, 1, 1)), [])

    def index(self, names: Any) -> np.ndarray:
        """Number of each name; an unknown one is numbered behind the last."""
        names = checked_names(names, "the names asked for", like=self.names)
        positions = np.minimum(np.searchsorted(self.names, names), len(self.names) - 1)
        return np.where(self.names[positions] == names, positions, len(self.names))

    def sample_priors(self, rng: np.random.Generator) -> None:
        """Draw (μ_g, Λ_g) of every group given its members' factors."""
        for g in range(len(self.means)):
            members = self.factors[self.groups == g]
            self.means[g], self.precisions[g] = draw_prior(members, rng)


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
    offsets = members - centre
    inverse = np.eye(d) + offsets.T @ offsets + beta0 * n / (beta0 + n) * np.outer(centre, centre)
    bartlett = np.tril(rng.normal(size=(d, d)), -1)
    bartlett[np.diag_indices(d)] = np.sqrt(rng.chisquare(nu - np.arange(d)))
    root = np.linalg.cholesky(np.linalg.inv(inverse)) @ bartlett
    noise = np.linalg.solve(root.T, rng.normal(size=d)) / np.sqrt(beta0 + n)
    return n * centre / (beta0 + n) + noise, root @ root.T


def draw_factors(
    ratings: Ratings, other: np.ndarray, beta: float, side: RatedSide, normals: np.ndarray
) -> np.ndarray:
    """Draw every user's (or item's) factors given its ratings and its group's prior.

    From N(Λ⁻¹b, Λ⁻¹), where ``Λ = Λ_g + β Σ vvᵀ`` and ``b = Λ_g μ_g + β Σ rv`` over the ratings r
    and the other side's factors v: with Λ = LLᵀ solve Lᵀx = L⁻¹b + z.
    """
    n, d = normals.shape
    shape = (n, len(other))
    rated = sparse.csr_array(
        (np.ones(len(ratings.partners)), ratings.partners, ratings.starts), shape
    )
    shifts = sparse.csr_array((ratings.residuals, ratings.partners, ratings.starts), shape) @ other
    squares = np.einsum("ia,ib->iab", other, other).reshape(-1, d * d)
    prior = np.einsum("gab,gb->ga", side.precisions, side.means)
    out = np.empty((n, d))
    for start in range(0, n, BLOCK_ROWS):  # a matrix for each row: not of all at once
        part = slice(start, start + BLOCK_ROWS)
        groups = side.groups[part]
        total = (rated[part] @ squares).reshape(-1, d, d)
        root = np.linalg.cholesky(side.precisions[groups] + beta * total)
        shift = (prior[groups] + beta * shifts[part])[..., None]
        drawn = np.linalg.solve(root, shift) + normals[part, :, None]
        out[part] = np.linalg.solve(root.transpose(0, 2, 1), drawn)[..., 0]
    return out


@dataclass(frozen=True, eq=False)
class RatingData:
    """Ratings, with the attributes of users and items.

    Attributes
    ----------
    users, items, ratings : ndarray of shape (n_ratings,)
        Who rated what, and how.
    user_ids, item_ids : ndarray
        The rows of the attributes.
    user_attributes, item_attributes : dict of column to ndarray
        Categories of each user and item.
    user_groups, item_groups : dict or None
        True group of each user and item, if there is one.
    """

    users: np.ndarray
    items: np.ndarray
    ratings: np.ndarray
    user_ids: np.ndarray
    item_ids: np.ndarray
    user_attributes: dict[str, np.ndarray]
    item_attributes: dict[str, np.ndarray]
    user_groups: dict[Any, int] | None = None
    item_groups: dict[Any, int] | None = None


def checked_names(column: Any, what: str, like: np.ndarray | None = None) -> np.ndarray:
    """Names as an array; raise for a missing one, and for text among numbers.

    They would never meet: 1 and "1" are two names.
    """
    names = np.asarray(column)
    if names.ndim != 1:
        raise ValueError(f"{what}: expected a sequence of names, got {column!r}")
    listed = isinstance(column, list | tuple) or names.dtype.kind == "O"
    cells = list(column) if listed else names[:1].tolist()
    if names.dtype.kind == "f" and np.isnan(names).any():
        cells = names.tolist()
    example = like.tolist()[:1] if like is not None else cells[:1]
    for row, cell in enumerate(cells):
        if canonical(cell) is None:
            raise ValueError(
                f"{what}: expected a name, got {cell!r} in row {row}; drop the row or name it"
            )
        if example and isinstance(cell, str) != isinstance(example[0], str):
            raise TypeError(
                f"{what}: expected text or numbers alone, got {cell!r} and {example[0]!r}, which "
                f"would never match; convert one of them"
            )
    return names


def checked_ratings(users: Any, items: Any, ratings: Any) -> np.ndarray:
    """Ratings as numbers, one for each user and item."""
    ratings = np.asarray(ratings, dtype=float)
    for name, column in (("users", users), ("items", items)):
        if np.shape(column) != ratings.shape or ratings.ndim != 1:
            raise ValueError(
                f"{name}: expected one per rating, shape {ratings.shape}, got {np.shape(column)}"
            )
    if not len(ratings):
        raise ValueError("expected at least one rating, got none")
    not_finite = np.flatnonzero(~np.isfinite(ratings))
    if len(not_finite):
        raise ValueError(
            f"ratings: expected finite numbers, got {ratings[not_finite[0]]} in row "
            f"{not_finite[0]}; drop the row"
        )
    return ratings


def find_groups(
    ids: Any,
    attributes: Any,
    embedder: ValueEmbedder | None = None,
    *,
    max_groups: int = 20,
    alpha: float = 50.0,
    random_state: Any = None,
) -> dict[Any, int]:
    """Group users or items by their categories: a Dirichlet-process Gaussian mixture (5.6.4).

    Parameters
    ----------
    ids : array-like
        The name of each row.
    attributes : frame, array or mapping of columns
        The categories of each row.
    embedder : ValueEmbedder, default=NonBEND
        What represents the rows; fitted on them as a clone.
    max_groups : int, default=20
        Most groups.
    alpha : float, default=50
        Concentration of the Dirichlet process.
    random_state : int, RandomState or None
        Seed of the representation (if none is given) and of the mixture.

    Returns
    -------
    dict of name to group

    Examples
    --------
    >>> from tabweave import OneHot
    >>> from tabweave.papers.recommend import find_groups
    >>> rows = {"job": ["a", "b"] * 20, "town": ["x", "y"] * 20}
    >>> groups = find_groups(range(40), rows, OneHot(), max_groups=4, random_state=0)
    >>> len(set(groups.values()))
    2
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    rng = check_random_state(random_state)
    seed = rng.randint(2**31 - 1)
    embedder = NonBEND(random_state=seed) if embedder is None else clone(embedder)
    vectors = np.asarray(embedder.fit(attributes).transform(attributes))
    names = np.asarray(ids).tolist()
    if len(names) != len(vectors):
        raise ValueError(
            f"expected {len(vectors)} ids, one per row of attributes, got {len(names)}"
        )
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise ValueError(f"expected one row of attributes for each id, got several for {twice!r}")
    scale = np.sqrt(vectors.var(axis=0).sum())
    if not scale:
        return dict.fromkeys(names, 0)
    mixture = BayesianGaussianMixture(
        n_components=int(min(max_groups, len(np.unique(vectors, axis=0)))),
        covariance_type="diag",
        weight_concentration_prior=alpha,
        random_state=rng,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # any grouping will do for a prior
        components = mixture.fit_predict(vectors / scale)
    _, groups = np.unique(components, return_inverse=True)
    return dict(zip(names, groups.tolist(), strict=True))


def make_ratings(
    n_users: int = 500,
    n_items: int = 300,
    n_ratings: int = 20_000,
    *,
    n_groups: int = 4,
    n_factors: int = 4,
    noise: float = 0.5,
    random_state: Any = None,
) -> RatingData:
    """Draw ratings of 1 to 5 by users and items whose groups show in their attributes.

    Each group has its own mean of factors; a member's factors scatter around it, and so do its
    four categorical attributes. No pair is rated twice.

    Parameters
    ----------
    n_users, n_items, n_ratings : int
        Size of the data.
    n_groups, n_factors : int, default=4
        Groups on either side, and length of the factors.
    noise : float, default=0.5
        Standard deviation of a rating around its expectation.
    random_state : int, RandomState or None
        Seed.
    """
    if n_ratings > n_users * n_items:
        raise ValueError(
            f"expected n_ratings of at most {n_users * n_items}, one per pair, got {n_ratings}"
        )
    rng = np.random.default_rng(seed_of(random_state))
    sides = [_make_side(n, n_groups, n_factors, rng) for n in (n_users, n_items)]
    pairs = rng.choice(n_users * n_items, n_ratings, replace=False)
    users, items = pairs // n_items, pairs % n_items
    expected = 3.0 + (sides[0][0][users] * sides[1][0][items]).sum(axis=1)
    ratings = np.clip(np.rint(expected + rng.normal(scale=noise, size=n_ratings)), 1, 5)
    groups = [dict(enumerate(side[1].tolist())) for side in sides]
    return RatingData(
        users, items, ratings, np.arange(n_users), np.arange(n_items), sides[0][2], sides[1][2],
        *groups,
    )  # fmt: skip


def _make_side(
    n: int, n_groups: int, d: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    groups = rng.integers(n_groups, size=n)
    scale = (1.0 / d) ** 0.25
    factors = rng.normal(scale=scale, size=(n_groups, d))[groups]
    factors = factors + rng.normal(scale=0.4 * scale, size=(n, d))
    attributes = {}
    for a in range(4):
        theta = rng.dirichlet(np.full(5, 0.3), size=n_groups)
        below = np.cumsum(theta, axis=1)[groups]
        code = (rng.random((n, 1)) * below[:, -1:] >= below).sum(axis=1)
        attributes[f"a{a}"] = np.array([f"v{c}" for c in range(5)], dtype=object)[code]
    return factors, groups, attributes


def load_movielens(directory: str | PathLike[str]) -> RatingData:
    """Read MovieLens 1M from its folder (``ratings.dat``, ``users.dat``, ``movies.dat``).

    Users have gender, age and occupation and the first digit of their zip code, movies one column
    per genre, present or absent.
    """
    folder = Path(directory)
    for name in ("ratings.dat", "users.dat", "movies.dat"):
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"expected {folder / name}, got no such file; unpack ml-1m.zip from "
                "grouplens.org, and name its folder"
            )
    ratings = np.array([line[:3] for line in _fields(folder / "ratings.dat")], dtype=np.int64)
    people = list(_fields(folder / "users.dat"))
    films = list(_fields(folder / "movies.dat"))
    names = ("gender", "age", "occupation")
    people_are = {c: np.array([p[i + 1] for p in people], object) for i, c in enumerate(names)}
    people_are["zip"] = np.array([p[4][:1] for p in people], object)
    genres = [set(film[2].split("|")) for film in films]
    films_are = {
        genre: np.array(
            ["yes" if genre in movie_genres else "no" for movie_genres in genres], object
        )
        for genre in sorted(set().union(*genres))
    }
    user_ids = np.array([int(p[0]) for p in people])
    item_ids = np.array([int(f[0]) for f in films])
    users, items, stars = ratings.T
    return RatingData(users, items, stars.astype(float), user_ids, item_ids, people_are, films_are)


def _fields(path: Path) -> Any:
    with path.open(encoding="latin-1") as lines:
        for line in lines:
            if line.strip():
                yield line.rstrip("\n").split("::")
