"""Exact moments: sums of numbers that add, subtract and compare to the last bit.

A sum of floats depends on the order of adding. Here a sum is a row of integers, digits in base
2**32 of one long fixed-point number that covers the whole range of float64, so it does not: adding
chunks in any order, or taking one away again, gives the same digits. Weighted sums keep float
digits; they are linear in the same way, but rounded.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

DIGITS = 138  # 32 bits each: below the smallest square of a 53-bit mantissa, with room to carry
_LOWEST = -2272
_PIECE = 16  # bits of an integer weight that are added at a time


def add_up(values: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the digits of (how many, sum, sum of squares) of the numbers that are not NaN."""
    if weight is None or weight.dtype.kind == "f" or not len(weight):
        return _add_rows(values, weight, 1 << 24)
    out = np.zeros((3, DIGITS), np.int64)
    pieces = -(-int(weight.max()).bit_length() // _PIECE)
    for piece in reversed(range(pieces)):  # Horner's rule: no product may fill an int64
        part = (weight >> (piece * _PIECE)) & ((1 << _PIECE) - 1)
        block = min(1 << 24, (1 << 30) // max(int(part.max()), 1))
        out = carry((out << _PIECE) + _add_rows(values, part, block))
    return out


def _add_rows(values: np.ndarray, weight: np.ndarray | None, block: int) -> np.ndarray:
    """Add up in blocks: carry before 2**31 additions could fill an int64."""
    from tabweave.counts.counting import accumulate

    out = np.zeros((3, DIGITS), np.int64 if weight is None else weight.dtype)
    for start in range(0, len(values), block):
        rows = slice(start, start + block)
        part = None if weight is None else weight[rows]
        accumulate(values[rows], np.empty(0, out.dtype) if part is None else part, out)
        out = carry(out)
    return out


def carry(digits: np.ndarray) -> np.ndarray:
    """Bring integer digits below 2**32 (the top one keeps the sign): equal sums, equal digits."""
    if digits.dtype.kind == "f":
        return digits
    digits = digits.copy()
    for k in range(DIGITS - 1):
        digits[..., k + 1] += digits[..., k] >> 32
        digits[..., k] &= 0xFFFFFFFF
    return digits


def exact(digits: np.ndarray) -> Fraction:
    """Return the number that a row of digits stands for."""
    if digits.dtype.kind == "f":
        return sum(
            (
                Fraction(float(d)) * Fraction(2) ** (32 * k + _LOWEST)
                for k, d in enumerate(digits)
                if d
            ),
            Fraction(0),
        )
    total = sum(int(d) << (32 * k) for k, d in enumerate(digits) if d)
    return Fraction(total) * Fraction(2) ** _LOWEST


def mean_and_variance(digits: np.ndarray) -> tuple[float, float]:
    """Return mean and population variance, without cancellation; NaN if there is no number."""
    count, total, squares = (exact(row) for row in digits)
    if count <= 0:
        return float("nan"), float("nan")
    mean = total / count
    return float(mean), _rounded(max(squares / count - mean * mean, Fraction(0)))


def _rounded(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:  # a variance may exceed float64
        return float("inf")
