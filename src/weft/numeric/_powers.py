"""Moments of powers: what correlations of ⟨a⟩¹ ... ⟨a⟩ᴸ need, in a form that adds up.

Every column is seen on its own interval, brought to [0, 1] (or to [-1, 1], the better choice when
powers of signed numbers are asked for), so no power can overflow. When another batch widens the
interval, the moments are moved there: powers of ``α + βu`` are sums of powers of u; on [0, 1] all
terms are non-negative, so nothing cancels. Two batches are then merged by their centred
co-moments. Missing numbers are left out pair by pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class PowerMoments:
    """Centred moments of the powers 1...L of m columns, each pair over the rows that have both.

    Attributes
    ----------
    low, high : ndarray of shape (m,)
        The interval of each column; infinity where no number was seen.
    n : ndarray of shape (m, m)
        Number of rows that have both columns.
    mean : ndarray of shape (m, m, L)
        Mean of the powers of column a over the rows that have b, too.
    own : ndarray of shape (m, m, L, L)
        Centred co-moments of the powers of a among themselves, over the rows that have b, too.
    cross : ndarray of shape (m, m, L, L)
        Centred co-moments of the powers of a with those of b.
    signed : bool
        Whether intervals were brought to [-1, 1] instead of [0, 1].
    """

    low: np.ndarray
    high: np.ndarray
    n: np.ndarray
    mean: np.ndarray
    own: np.ndarray
    cross: np.ndarray
    signed: bool = False

    @classmethod
    def of(cls, values: np.ndarray, max_power: int, *, signed: bool = False) -> PowerMoments:
        """Add up the rows of an array with NaN for missing."""
        low, high = _bounds(values)
        total: PowerMoments | None = None
        for start in range(0, max(len(values), 1), _BLOCK):
            part = _block_moments(values[start : start + _BLOCK], low, high, max_power, signed)
            total = part if total is None else total._merged(part)
        assert total is not None
        return total

    def __add__(self, other: PowerMoments) -> PowerMoments:
        if not isinstance(other, PowerMoments):
            return NotImplemented
        if self.mean.shape != other.mean.shape or self.signed != other.signed:
            raise ValueError("moments of other columns, powers or scales cannot be added")
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return self.moved(low, high)._merged(other.moved(low, high))

    def moved(self, low: np.ndarray, high: np.ndarray) -> PowerMoments:
        """Return the same moments on other, wider intervals."""
        if np.array_equal(low, self.low) and np.array_equal(high, self.high):
            return self
        origin, unit = frame(self.low, self.high, self.signed)
        new_origin, new_unit = frame(low, high, self.signed)
        safe = np.where(new_unit > 0, new_unit, 1)
        shift = np.where(np.isfinite(self.low), origin - new_origin, 0) / safe
        constant, T = affine_powers(shift, unit / safe, self.mean.shape[2])
        mean = constant[:, None] + np.einsum("apq,abq->abp", T, self.mean)
        return PowerMoments(
            low=low,
            high=high,
            n=self.n,
            mean=np.where(self.n[:, :, None] > 0, mean, 0),
            own=np.einsum("apq,abqr,asr->abps", T, self.own, T, optimize=True),
            cross=np.einsum("apq,abqr,bsr->abps", T, self.cross, T, optimize=True),
            signed=self.signed,
        )

    def _merged(self, other: PowerMoments) -> PowerMoments:
        """Merge centred moments on the same intervals: the parallel formula of Chan et al."""
        n = self.n + other.n
        share = other.n / np.where(n > 0, n, 1)
        apart = other.mean - self.mean
        weight = (self.n * share)[:, :, None, None]
        back = apart.transpose(1, 0, 2)
        return PowerMoments(
            low=self.low,
            high=self.high,
            n=n,
            mean=self.mean + share[:, :, None] * apart,
            own=self.own + other.own + weight * apart[:, :, :, None] * apart[:, :, None, :],
            cross=self.cross + other.cross + weight * apart[:, :, :, None] * back[:, :, None, :],
            signed=self.signed,
        )


def affine_powers(shift: np.ndarray, factor: np.ndarray, L: int) -> tuple[np.ndarray, np.ndarray]:
    """Return c and T with ``(shift + factor u)^p = c_p + Σ_q T_pq u^q``, p and q from 1 to L."""
    constant = shift[:, None] ** np.arange(1, L + 1)
    T = np.zeros((len(shift), L, L))
    for p in range(1, L + 1):
        for q in range(1, p + 1):
            T[:, p - 1, q - 1] = comb(p, q) * shift ** (p - q) * factor**q
    return constant, T


def powers(u: np.ndarray, L: int) -> np.ndarray:
    """Return ``⟨a⟩¹ ... ⟨a⟩ᴸ`` of every column: shape (rows, columns, L)."""
    out = np.empty((*u.shape, L))
    out[:, :, 0] = u
    for p in range(1, L):
        np.multiply(out[:, :, p - 1], u, out=out[:, :, p])
    return out


def frame(low: np.ndarray, high: np.ndarray, signed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return (origin, unit) of the intervals; unit 0 where a column does not vary."""
    seen = np.isfinite(low) & np.isfinite(high)
    start, stop = np.where(seen, low, 0), np.where(seen, high, 0)
    half = stop / 2 - start / 2
    return (start + half, half) if signed else (start, stop - start)


def _bounds(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    present = ~np.isnan(values)
    low = np.min(values, axis=0, initial=np.inf, where=present)
    return low, np.max(values, axis=0, initial=-np.inf, where=present)


def _block_moments(
    values: np.ndarray, low: np.ndarray, high: np.ndarray, L: int, signed: bool
) -> PowerMoments:
    """Return the moments of a few rows; two passes, so nothing cancels."""
    rows, m = values.shape
    present = (~np.isnan(values)).astype(np.float64)
    origin, unit = frame(low, high, signed)
    u = np.where(unit > 0, values - origin, 0) / np.where(unit > 0, unit, 1)
    P = np.nan_to_num(powers(u, L), nan=0.0)
    count = present.sum(axis=0)
    middle = P.sum(axis=0) / np.where(count > 0, count, 1)[:, None]
    P = (P - middle) * present[:, :, None]
    flat = P.reshape(rows, m * L)
    n = present.T @ present
    safe = np.where(n > 0, n, 1)
    # What is left of the mean of a over the rows that have b.
    rest = (flat.T @ present).reshape(m, L, m).transpose(0, 2, 1) / safe[:, :, None]
    cross = (flat.T @ flat).reshape(m, L, m, L).transpose(0, 2, 1, 3)
    cross = cross - n[:, :, None, None] * rest[:, :, :, None] * rest.transpose(1, 0, 2)[:, :, None]
    squares = (P[:, :, :, None] * P[:, :, None, :]).reshape(rows, m * L * L)
    if present.all():
        own = np.broadcast_to(squares.sum(axis=0).reshape(m, 1, L, L), (m, m, L, L)).copy()
    else:
        own = (squares.T @ present).reshape(m, L, L, m).transpose(0, 3, 1, 2)
    own = own - n[:, :, None, None] * rest[:, :, :, None] * rest[:, :, None, :]
    mean = np.where(n[:, :, None] > 0, middle[:, None, :] + rest, 0)
    return PowerMoments(low, high, n, mean, own, cross, signed)
