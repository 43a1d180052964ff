"""Compiled loop behind :mod:`weft._moments`. Importing this module loads numba."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_LOWEST = -2272
_HALF = 27  # bits of a mantissa's lower half


@njit(nogil=True, cache=True)
def _add(digits, part, exponent, sign, weight):
    """Add ``sign * weight * part * 2**exponent``; part has at most 54 bits."""
    position = exponent - _LOWEST
    k, shift = position // 32, position % 32
    low = part & 0xFFFFFFFF
    high = part >> 32
    low <<= shift
    high <<= shift
    digits[k] += sign * weight * (low & 0xFFFFFFFF)
    digits[k + 1] += sign * weight * ((low >> 32) + (high & 0xFFFFFFFF))
    digits[k + 2] += sign * weight * (high >> 32)


@njit(nogil=True, cache=True)
def accumulate(values, weights, out):
    """Add count, sum and sum of squares of the values that are not NaN into three digit rows."""
    one = np.ones(1, out.dtype)[0]
    for i in range(len(values)):
        x = values[i]
        if math.isnan(x):
            continue
        w = weights[i] if len(weights) else one
        _add(out[0], np.int64(1), 0, 1, w)
        fraction, exponent = math.frexp(abs(x))
        mantissa = np.int64(fraction * 9007199254740992.0)  # 2**53: exact
        if mantissa == 0:
            continue
        exponent -= 53
        _add(out[1], mantissa, exponent, 1 if x > 0 else -1, w)
        low = mantissa & ((1 << _HALF) - 1)
        high = mantissa >> _HALF
        _add(out[2], low * low, 2 * exponent, 1, w)
        _add(out[2], low * high, 2 * exponent + _HALF + 1, 1, w)
        _add(out[2], high * high, 2 * exponent + 2 * _HALF, 1, w)
