"""Moments against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabweave import Counts
from tabweave.counts import counting
from tabweave.counts import counting as _moments

finite = st.floats(allow_nan=False, allow_infinity=False)
extreme = st.sampled_from([5e-324, 1e-310, 2.0**-1033 * 1.7, 2.2250738585072014e-308, 1.7e308])
numbers = st.lists(st.one_of(finite, extreme, extreme.map(lambda v: -v)), max_size=12)


def by_hand(values, weights=None):
    """Return (count, sum, sum of squares) as fractions."""
    weights = [1] * len(values) if weights is None else weights
    pairs = [(Fraction(v), Fraction(w)) for v, w in zip(values, weights, strict=True)]
    return sum((w for _, w in pairs), Fraction(0)), *(
        sum((w * v**power for v, w in pairs), Fraction(0)) for power in (1, 2)
    )


@given(numbers)
def test_sums_are_exact(values):
    digits = _moments.add_up(np.array(values, dtype=float), None)
    assert tuple(map(_moments.exact, digits)) == by_hand(values)


@settings(max_examples=50)
@given(st.lists(st.tuples(finite, st.integers(0, 2**58)), max_size=8))
def test_integer_weights_are_exact(pairs):
    values, weights = [v for v, _ in pairs], [w for _, w in pairs]
    digits = _moments.add_up(np.array(values, float), np.array(weights, np.int64))
    assert tuple(map(_moments.exact, digits)) == by_hand(values, weights)


@given(numbers, numbers)
def test_digits_add_and_subtract(a, b):
    x, y, both = (_moments.add_up(np.array(v, float), None) for v in (a, b, a + b))
    np.testing.assert_array_equal(_moments.carry(x + y), both)
    np.testing.assert_array_equal(_moments.carry(both - y), x)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6)), min_size=1, max_size=9))
def test_float_weights_are_close(pairs):
    values, weights = [v for v, _ in pairs], [w for _, w in pairs]
    n, total, squares = by_hand(values, weights)
    found = Counts.of({"x": np.array(values)}, sample_weight=weights).moments("x")
    spread = float(squares / n)
    assert found[0] == pytest.approx(float(n))
    assert found[1] == pytest.approx(float(total / n), rel=1e-9, abs=1e-9 * (spread**0.5 + 1))
    assert found[2] == pytest.approx(
        float(squares / n - (total / n) ** 2), rel=1e-9, abs=1e-9 * (spread + 1)
    )


def test_many_heavy_rows_do_not_overflow():
    values = np.full(40_000, 1.7e308)
    weight = np.full(40_000, 2**40, np.int64)
    count, mean, variance = Counts.of({"x": values}, sample_weight=weight).moments("x")
    assert (count, mean, variance) == (40_000 * 2**40, 1.7e308, 0.0)


def test_variance_does_not_cancel():
    offset = 1e9
    _, mean, variance = Counts.of({"x": [offset + v for v in (4, 7, 13, 16)]}).moments("x")
    assert (mean, variance) == (offset + 10, 22.5)


def test_missing_numbers_do_not_count():
    counts = Counts.of({"x": [1.0, None, float("nan"), 4.0], "y": [None, None, None, 2.0]})
    assert counts.n == 4
    assert counts.moments("x") == (2, 2.5, 2.25)
    assert counts.moments("y") == (1, 2.0, 0.0)


def test_no_number_at_all():
    count, mean, variance = Counts.of({"x": np.array([np.nan, np.nan])}).moments("x")
    assert count == 0
    assert np.isnan([mean, variance]).all()


def test_a_variance_beyond_float64_is_infinite():
    assert Counts.of({"x": [1.7e308, -1.7e308]}).moments("x") == (2, 0.0, float("inf"))


def test_unknown_column():
    with pytest.raises(KeyError, match=r"expected a numeric column, .* got 'z'"):
        Counts.of({"x": [1.0]}).moments("z")


def test_a_variance_below_float64_is_not_none():
    """Or a column of tiny numbers would be dropped as constant."""
    tiny = {"x": [1e-300, 2e-300, 3e-300]}
    assert 0 < Counts.of(tiny).moments("x")[2] < 1e-300
    assert Counts.of({"x": [2e-300] * 3}).moments("x")[2] == 0


def test_digits_of_squares_are_those_of_python():
    """Of mantissas of 53 bits, full ones too, whose digits carry."""
    drawn = np.random.default_rng(0).integers(0, 1 << 53, 2000).tolist()
    edges = [(1 << 53) - 1, 1 << 52, (1 << 53) - (1 << 26), (1 << 53) - (1 << 27), 1, 0]
    # Upper halves whose squares end in ones, so that the third digit carries.
    full = (h for h in range((1 << 26) - 1, 0, -1) if (h * h >> 10) & 0xFFFFFFFF > 0xFFFFFF00)
    edges += [(next(full) << 27) + (1 << 27) - 1 for _ in range(2)]
    assert any(counting._square_plain(m)[2] < 1 << 20 for m in edges[-2:])
    for mantissa in [*edges, *drawn]:
        digits = counting._square_plain(mantissa)
        assert sum(digit << (32 * k) for k, digit in enumerate(digits)) == mantissa**2
        assert all(0 <= digit < 1 << 32 for digit in digits)
