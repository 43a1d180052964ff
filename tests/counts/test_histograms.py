"""Histograms that add: buckets against brute force, and laws."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabweave import Counts, Table, Weave
from tabweave.counts.counting import (
    Grid,
    Histogram,
    _tell_apart_plain,
    distinct,
    most_paired,
    starts_of,
    tell_apart,
)

RNG = np.random.default_rng(0)
DRAWS = {
    "normal": RNG.normal(size=20_000),
    "lognormal": np.exp(2 * RNG.normal(size=20_000)),
    "below zero": -np.exp(RNG.normal(size=9_000)),
    "heavy tails": RNG.standard_t(0.7, 20_000),
    "years": RNG.integers(1500, 2026, 9_000).astype(float),
    "seconds since 1970": 1.7e9 + 5e6 * RNG.random(20_000),
    "tiny": RNG.random(9_000) * 1e-310,
    "huge": (RNG.random(9_000) - 0.5) * 1.7e308,
    "both zeros": np.array([0.0, -0.0, 5e-324, -5e-324] * 9),
    "few": RNG.integers(0, 50, 9_000) / 8,
    "one": np.full(9, -3.5),
    "none": np.full(9, np.nan),
}


def same(a, b):
    return (
        a.grid == b.grid and np.array_equal(a.starts, b.starts) and np.array_equal(a.times, b.times)
    )


@pytest.mark.parametrize("name", DRAWS)
def test_a_bucket_is_an_interval_of_numbers_of_one_sign(name):
    x = np.sort(DRAWS[name][~np.isnan(DRAWS[name])]) + 0.0
    for own in (Histogram.of(x), Histogram.of(x).paired(5), Histogram.of(x).paired(500)):
        starts = starts_of(x, own.grid)
        assert (np.diff(starts) >= 0).all()  # in the order of the numbers
        assert ((starts < 0) == (x < 0)).all()
        assert (np.abs(starts) <= np.maximum(np.abs(x), 5e-324)).all()
        np.testing.assert_array_equal(np.unique(starts), own.starts)
        np.testing.assert_array_equal(np.unique(starts, return_counts=True)[1], own.times)
        codes = np.searchsorted(own.edges, x, side="right")
        np.testing.assert_array_equal(own.starts[codes] if len(x) else x, starts)
        np.testing.assert_array_equal(starts_of(own.starts, own.grid), own.starts)
        assert (np.diff(own.points) > 0).all()
        np.testing.assert_array_equal(starts_of(own.points, own.grid), own.starts)


@pytest.mark.parametrize("name", DRAWS)
def test_there_are_few_buckets_and_no_narrower_ones_would_be_few_enough(name):
    x, _ = distinct(DRAWS[name], None)
    for own, most in ((Histogram.of(x), 4096), (Histogram.of(x).paired(3), 126)):
        assert len(own.starts) <= most
        if len(x) <= most:
            np.testing.assert_array_equal(own.starts, x)  # each has a bucket of its own
            np.testing.assert_array_equal(own.points, x)
        else:
            linear, bits, floor = own.grid
            assert len(np.unique(starts_of(x, Grid(linear - 1, bits, floor - 1)))) > most


@pytest.mark.parametrize("name", DRAWS)
def test_parts_add_up_to_the_whole_in_any_order_and_can_be_taken_away(name):
    x = DRAWS[name]
    whole = Histogram.of(x)
    parts = [Histogram.of(part) for part in np.split(RNG.permutation(x), [1, 3, len(x) // 3 + 2])]
    for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
        assert same(reduce(Histogram.plus, [parts[i] for i in order]), whole)
    assert same((parts[0].plus(parts[1])).plus(parts[2].plus(parts[3])), whole)
    left = whole.plus(parts[3], -1)
    assert same(left, reduce(Histogram.plus, parts[:3]).at(left.grid))
    for n_columns in (1, 40, 900):  # buckets of a part are as narrow as those of the whole
        few = [own.paired(n_columns).grid for own in parts]
        grid = whole.paired(n_columns).grid
        assert reduce(Grid.coarser, few).coarser(grid) == grid
        assert len(whole.paired(n_columns).starts) <= most_paired(n_columns)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.data())
def test_any_numbers_add_up(values, data):
    x = np.array(values)
    cut = data.draw(st.integers(0, len(x)))
    for most, bits, octaves in ((2, 0, 1), (4, 1, 2), (9, 2, 3)):
        whole = Histogram(Grid(), *distinct(x, None)).limited(most, bits, octaves)
        a, b = (
            Histogram(Grid(), *distinct(part, None)).limited(most, bits, octaves)
            for part in (x[:cut], x[cut:])
        )
        both = a.plus(b).limited(most, bits, octaves)
        assert same(both, whole) and len(whole.starts) <= max(most, 2)


@pytest.mark.parametrize("name", DRAWS)
def test_the_compiled_loop_and_the_plain_one_are_alike(name):
    x, _ = distinct(DRAWS[name], None)
    one, other = np.zeros((2, 2300), np.int64)
    tell_apart(x, 2, 14, one)
    _tell_apart_plain(x, 2, 14, other)
    np.testing.assert_array_equal(one, other)
    assert one.sum() == max(len(x) - 1, 0)


def test_ranks_and_means_of_two_hundred_thousand_numbers():
    x = RNG.normal(size=200_000)
    own = Histogram.of(x)
    assert own.times.max() / own.times.sum() < 0.004
    assert own.points @ own.times / len(x) == pytest.approx(x.mean(), abs=1e-4)


def mixed(n, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, n)
    return {
        "group": np.array(list("abcd"))[group],
        "pay": np.exp(rng.normal(group, 1)),
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 90, n)),
        "when": np.datetime64("2026-01-01", "s") + rng.integers(0, 5_000_000, n),
    }


KINDS = {"when": "datetime"}


def test_months_of_mixed_tables_add_up_and_are_fitted():
    rows, classes = mixed(3000), np.array(list("pqr") * 1000)
    order = RNG.permutation(3000)
    months = [{n: c[part] for n, c in rows.items()} for part in np.array_split(order, 3)]
    counts = Counts.of(Table.of(rows, KINDS), classes)
    parts = [
        Counts.of(Table.of(month, KINDS), classes[part])
        for month, part in zip(months, np.array_split(order, 3), strict=True)
    ]
    total = parts[2] + (parts[0] + parts[1])
    assert (
        total == counts
        and total.numbers.grids == counts.numbers.grids
        and total.labels == counts.labels
    )
    np.testing.assert_array_equal(total.pairs, counts.pairs)
    np.testing.assert_array_equal(total.class_pairs, counts.class_pairs)
    assert total - parts[0] == parts[1] + parts[2]
    fitted = Weave(schema=KINDS).fit(rows)
    summed = Weave().fit_counts(sum((Counts.of(Table.of(m, KINDS)) for m in months), Counts()))
    streamed = Weave(schema=KINDS)
    for month in months:
        streamed.partial_fit(month)
    for model in (summed, streamed):
        np.testing.assert_array_equal(model.transform(rows), fitted.transform(rows))


def test_counts_with_numbers_are_saved(tmp_path):
    counts = Counts.of(Table.of(mixed(5000), KINDS))
    counts.save(tmp_path / "counts.tw")
    found = Counts.load(tmp_path / "counts.tw")
    assert found == counts and found.numbers.grids == counts.numbers.grids
    assert found + counts == counts + counts


def test_buckets_that_were_widened_by_rows_that_are_gone():
    """Wider buckets are equal to narrower ones as far as they tell numbers apart."""
    near, far = (
        {"x": RNG.random(500), "g": ["a"] * 500},
        {"x": 1e6 * RNG.random(500), "g": ["b"] * 500},
    )
    one, other = Counts.of(near), Counts.of(far)
    left = (one + other) - other
    assert left.is_widened and not one.is_widened
    assert (
        left == one
        and left.numbers.grids != one.numbers.grids
        and len(left.labels[0]) < len(one.labels[0])
    )
    assert left != Counts.of({"x": RNG.random(500), "g": ["a"] * 500})


def test_numbers_that_were_not_counted_cannot_be_subtracted():
    with pytest.raises(ValueError, match="cannot subtract"):
        Counts.of({"x": [1.0, 2.0, 3.0]}) - Counts.of({"x": [2.5]})
