"""Ratings to learn from: groups found from a representation, a generator, MovieLens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from weft._base import ValueEmbedder
from weft._labels import canonical
from weft.learn.nonbend import NonBEND


@dataclass(frozen=True, eq=False)
class RatingData:
    """Ratings, with what is known of users and items.

    Attributes
    ----------
    users, items, ratings : ndarray of shape (n_ratings,)
        Who rated what, and how.
    user_ids, item_ids : ndarray
        The rows of the attributes.
    user_attributes, item_attributes : dict of column to ndarray
        Categories of each user and item.
    user_groups, item_groups : dict or None
        True group of each user and item, where it is known.
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
    """Return names as an array; refuse a missing one, and text among numbers.

    They would never meet: 1 and "1" are two names.
    """
    names = np.asarray(column)
    if names.ndim != 1:
        raise ValueError(f"{what}: expected a sequence of names, not {column!r}")
    listed = isinstance(column, list | tuple) or names.dtype.kind == "O"
    cells = list(column) if listed else names[:1].tolist()
    if names.dtype.kind == "f" and np.isnan(names).any():
        cells = names.tolist()
    wanted = like.tolist()[:1] if like is not None else cells[:1]
    for row, cell in enumerate(cells):
        if canonical(cell) is None:
            raise ValueError(f"{what}: name {row} is missing; drop the row or give it a name")
        if wanted and isinstance(cell, str) != isinstance(wanted[0], str):
            raise TypeError(
                f"{what}: {cell!r} and {wanted[0]!r} are text and number and would never meet; "
                "convert one of them"
            )
    return names


def checked_ratings(users: Any, items: Any, ratings: Any) -> np.ndarray:
    """Return ratings as numbers, one for each user and item."""
    ratings = np.asarray(ratings, dtype=float)
    for name, column in (("users", users), ("items", items)):
        if np.shape(column) != ratings.shape or ratings.ndim != 1:
            raise ValueError(f"{name} has shape {np.shape(column)}, ratings {ratings.shape}")
    if not len(ratings):
        raise ValueError("there is no rating; fit needs at least one")
    odd = np.flatnonzero(~np.isfinite(ratings))
    if len(odd):
        raise ValueError(f"rating {odd[0]} is {ratings[odd[0]]}; drop it or give a number")
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
    >>> from weft import OneHot
    >>> from weft.recommend import find_groups
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
        raise ValueError(f"{len(names)} ids for {len(vectors)} rows of attributes")
    spread = np.sqrt(vectors.var(axis=0).sum())
    if not spread:
        return dict.fromkeys(names, 0)
    most = int(min(max_groups, len(np.unique(vectors, axis=0))))
    mixture = BayesianGaussianMixture(
        n_components=most,
        covariance_type="diag",
        weight_concentration_prior=alpha,
        random_state=rng,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # any grouping will do for a prior
        found = mixture.fit_predict(vectors / spread)
    _, groups = np.unique(found, return_inverse=True)
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
    """
    if n_ratings > n_users * n_items:
        raise ValueError(f"n_ratings={n_ratings}: there are only {n_users * n_items} pairs")
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
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
                f"{folder / name} is absent; unpack ml-1m.zip from grouplens.org, and name its "
                "folder"
            )
    ratings = np.array([line[:3] for line in _fields(folder / "ratings.dat")], dtype=np.int64)
    people = list(_fields(folder / "users.dat"))
    films = list(_fields(folder / "movies.dat"))
    names = ("gender", "age", "occupation")
    known = {c: np.array([p[i + 1] for p in people], object) for i, c in enumerate(names)}
    known["zip"] = np.array([p[4][:1] for p in people], object)
    genres = [set(film[2].split("|")) for film in films]
    traits: Mapping[str, np.ndarray] = {
        genre: np.array(["yes" if genre in own else "no" for own in genres], object)
        for genre in sorted(set().union(*genres))
    }
    user_ids = np.array([int(p[0]) for p in people])
    item_ids = np.array([int(f[0]) for f in films])
    users, items, stars = ratings.T
    return RatingData(users, items, stars.astype(float), user_ids, item_ids, known, dict(traits))


def _fields(path: Path) -> Any:
    with path.open(encoding="latin-1") as lines:
        for line in lines:
            if line.strip():
                yield line.rstrip("\n").split("::")
