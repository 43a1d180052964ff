"""The equations of coupled numeric analysis [Wang 2013], from moments; and what they refuse."""

from __future__ import annotations

from math import factorial
from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from weft.numeric._powers import PowerMoments, affine_powers, frame

_LONGEST = 8e307  # of a number: differences of two must be finite
_LARGEST = 1e150  # of a power: products of two must stay below the end of float64


class CoupledModel(NamedTuple):
    """What is learned from moments."""

    correlations: np.ndarray
    p_values: np.ndarray
    map: np.ndarray  # powers to coordinates
    origin: np.ndarray
    unit: np.ndarray
    mean: np.ndarray  # of each power
    centre: np.ndarray  # of each coordinate
    spread: np.ndarray


def learn(moments: PowerMoments, names: list[str], scale: str | None, alpha: float) -> CoupledModel:
    """Eqs. (3.1)-(4.1) from moments: correlations, their significance, the linear map."""
    check_moments(moments, names, scale)
    m, L = len(names), moments.mean.shape[2]
    place = np.arange(m)
    origin, unit = scaling(moments, scale)
    start, width = frame(moments.low, moments.high, moments.signed)
    constant, T = affine_powers((start - origin) / unit, width / unit, L)
    cross = np.einsum("apq,abqr,bsr->abps", T, moments.cross, T, optimize=True)
    own = np.einsum("apq,abqr,apr->abp", T, moments.own, T, optimize=True)
    r = correlations(cross, own)
    p = p_values(r, moments.n[:, :, None, None])
    r = np.where(p < alpha, r, 0.0)
    r[place, place, np.arange(L)[:, None], np.arange(L)[:, None]] = 1.0
    R, P = (flat.transpose(0, 2, 1, 3).reshape(m * L, m * L) for flat in (r, p))
    w = np.tile([1 / factorial(q) for q in range(1, L + 1)], m)
    A = w[:, None] * R.T
    mean = constant + np.einsum("apq,aq->ap", T, moments.mean[place, place])
    covariance = cross / np.maximum(moments.n - 1, 1)[:, :, None, None]
    covariance = covariance.transpose(0, 2, 1, 3).reshape(m * L, m * L)
    variance = np.maximum(np.einsum("ki,kl,li->i", A, covariance, A, optimize=True), 0)
    spread = np.where(variance > 0, np.sqrt(variance), 1)
    return CoupledModel(R, P, A, origin, unit, mean, mean.ravel() @ A, spread)


def correlations(cross: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Eq. (3.1): Pearson's correlation of every pair of powers, 0 where one does not vary."""
    scale = np.sqrt(np.maximum(own, 0))
    scale = scale[:, :, :, None] * scale.transpose(1, 0, 2)[:, :, None, :]
    return np.clip(np.where(scale > 0, cross / np.where(scale > 0, scale, 1), 0.0), -1, 1)


def p_values(r: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Two-sided t-test of no correlation: ``I_{1-r²}((n - 2)/2, 1/2)``; 1 with fewer than 3 rows.

    With ``t = r √((n - 2)/(1 - r²))`` that is the tail of Student's distribution, all pairs at
    once.
    """
    freedom = np.maximum(n - 2, 1)
    return np.where(n > 2, betainc(freedom / 2, 0.5, 1 - r * r), 1.0)


def scaling(moments: PowerMoments, scale: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return (origin, unit) of every column: powers are taken of ``(x - origin) / unit``."""
    low, width = moments.low, moments.high - moments.low
    if scale is None:
        return np.zeros(len(low)), np.ones(len(low))
    if scale == "minmax":
        return low, width
    place = np.arange(len(low))
    rows = np.maximum(np.diagonal(moments.n) - 1, 1)
    deviation = np.sqrt(moments.own[place, place, 0, 0] / rows)
    origin, unit = frame(low, moments.high, moments.signed)
    return origin + unit * moments.mean[place, place, 0], unit * deviation


def check_moments(moments: PowerMoments, names: list[str], scale: str | None) -> None:
    """Refuse what has no correlations, by column."""
    seen = np.diagonal(moments.n)
    L = moments.mean.shape[2]
    for j, name in enumerate(names):
        if seen[j] < 3:
            raise ValueError(
                f"column {name!r} has n_samples={int(seen[j])} numbers; a correlation needs 3: "
                "add rows, or leave the column out"
            )
        low, high = moments.low[j], moments.high[j]
        if low == high:
            raise ValueError(
                f"column {name!r} is constant ({low:g} in all {int(seen[j])} rows) and has no "
                "correlation; leave it out"
            )
        largest = max(abs(low), abs(high))
        if scale is None and largest > 1 and L * np.log(largest) > np.log(_LARGEST):
            raise ValueError(
                f"column {name!r}: {largest:g} overflows at power {L}; use scale='minmax' or a "
                "lower max_power"
            )


def refuse_extremes(values: np.ndarray, names: list[str]) -> None:
    """Refuse numbers so large that the range of their column is no float64."""
    largest = np.max(np.abs(values), axis=0, initial=0, where=~np.isnan(values))
    for name, size in zip(names, largest, strict=True):
        if size > _LONGEST:
            raise ValueError(f"column {name!r} reaches {size:g}, near the end of float64; scale it")
