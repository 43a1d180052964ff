"""First centres of k-modes, as rows of codes: random rows, Huang's draw, Cao's density."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Distances = Callable[[np.ndarray], np.ndarray]  # codes of centres (k × columns) to rows × centres


def random_rows(weight: np.ndarray, k: int, rng: Any) -> np.ndarray:
    """Return k different rows, drawn one after the other in proportion to their weights.

    The k largest of ``log(u) / weight`` are such a draw (Efraimidis and Spirakis 2006); it
    depends on distinct rows and their weights only, not on how often or where a row is stored.
    """
    keys = np.log(1.0 - rng.random_sample(len(weight))) / weight
    return np.argsort(-keys, kind="stable")[:k]


def huang(
    codes: np.ndarray, weight: np.ndarray, k: int, rng: Any, distances: Distances
) -> np.ndarray:
    """Return k different rows near to centres whose values are drawn by frequency [Huang 1998]."""
    drawn = np.empty((k, codes.shape[1]), codes.dtype)
    for a in range(codes.shape[1]):
        share = np.bincount(codes[:, a], weights=weight)
        drawn[:, a] = rng.choice(len(share), size=k, p=share / share.sum())
    chosen: list[int] = []
    for column in distances(drawn).T:
        column = column.copy()
        column[chosen] = np.inf
        chosen.append(int(np.argmin(column)))
    return np.array(chosen)


def cao(codes: np.ndarray, weight: np.ndarray, k: int, distances: Distances) -> np.ndarray:
    """Return k rows that are dense and far from each other [Cao, Liang, Bai 2009].

    The density of a row is the mean frequency of its values; the first centre is the densest row,
    each further one has the largest product of density and distance to its nearest centre.
    """
    density = np.zeros(len(codes))
    for a in range(codes.shape[1]):
        density += np.bincount(codes[:, a], weights=weight)[codes[:, a]]
    chosen = [int(np.argmax(density))]
    near = np.full(len(codes), np.inf)
    while len(chosen) < k:
        np.minimum(near, distances(codes[chosen[-1:]])[:, 0], out=near)
        score = near * density
        score[chosen] = -1.0
        chosen.append(int(np.argmax(score)))
    return np.array(chosen)


def column_weights(given: Any, names: Sequence[str]) -> np.ndarray:
    """Return one weight per column from a mapping or a sequence."""
    if given is None:
        return np.ones(len(names))
    if isinstance(given, dict):
        odd = [name for name in given if name not in names]
        if odd:
            raise ValueError(
                f"feature_weights names column {odd[0]!r}, which is not there; "
                f"there are {', '.join(map(repr, names))}"
            )
        given = [given.get(name, 1.0) for name in names]
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (len(names),):
        raise ValueError(f"feature_weights has shape {weights.shape} for {len(names)} columns")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise ValueError(
            f"feature_weights of column {names[bad[0]]!r} is {weights[bad[0]]}; use a number >= 0"
        )
    if not weights.any():
        raise ValueError("feature_weights are all zero; give at least one column a weight")
    return weights
