"""First centres of k-modes, as rows: random rows, Huang's draw, Cao's density."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Reach = Callable[[np.ndarray], np.ndarray]  # rows as centres to what each value pays under each


def random_rows(weight: np.ndarray, k: int, rng: Any) -> np.ndarray:
    """Return k different rows, drawn one after the other in proportion to their weights.

    The k largest of ``log(u) / weight`` are such a draw (Efraimidis and Spirakis 2006); it
    depends on distinct rows and their weights only, not on how often or where a row is stored.
    """
    keys = np.log(1.0 - rng.random_sample(len(weight))) / weight
    return np.argsort(-keys, kind="stable")[:k]


def huang(places: np.ndarray, weight: np.ndarray, k: int, rng: Any, reach: Reach) -> np.ndarray:
    """Return k different rows near to centres whose values are drawn by frequency [Huang 1998]."""
    from weft.cluster._kmodes_kernels import all_distances

    drawn = np.empty((k, places.shape[1]), places.dtype)
    for a in range(places.shape[1]):
        share = np.bincount(places[:, a], weights=weight)
        drawn[:, a] = rng.choice(len(share), size=k, p=share / share.sum())
    chosen: list[int] = []
    for column in all_distances(places, reach(drawn)).T:
        column = column.copy()
        column[chosen] = np.inf
        chosen.append(int(np.argmin(column)))
    return np.array(chosen)


def cao(places: np.ndarray, weight: np.ndarray, k: int, reach: Reach) -> np.ndarray:
    """Return k rows that are dense and far from each other [Cao, Liang, Bai 2009].

    The density of a row is the mean frequency of its values; the first centre is the densest row,
    each further one has the largest product of density and distance to its nearest centre.
    """
    from weft.cluster._kmodes_kernels import next_dense

    density = np.zeros(len(places))
    for a in range(places.shape[1]):
        density += np.bincount(places[:, a], weights=weight)[places[:, a]]
    chosen = [int(np.argmax(density))]
    near = np.full(len(places), np.inf)
    while len(chosen) < k:
        near[chosen[-1]] = -1.0
        chosen.append(next_dense(places, reach(places[chosen[-1:]])[:, 0].copy(), density, near))
    return np.array(chosen)
