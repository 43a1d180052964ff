"""Information measures against loops over rows, written from the published definitions."""

from math import log, log2

import numpy as np
import pytest

from tabweave import Counts, Schema, Table
from tabweave.embed.value_metric import ValueMetric
from tabweave.measures import information


def random_rows(seed, n_columns=3):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    values = ["p", "q", None, 7, "r", "s"]
    sizes = rng.integers(1, 6, n_columns)
    return [[values[int(k * rng.random() ** 2)] for k in sizes] for _ in range(n)]


def p(column, v):
    return sum(1 for cell in column if cell == v) / len(column)


def gambaryan(column, v, w):
    q = p(column, v)
    if v != w or q == 1:
        return 0.0
    return -(q * log2(q) + (1 - q) * log2(1 - q))


def burnaby(column, v, w):
    if v == w:
        return 1.0
    everything = sum(2 * log(1 - p(column, q)) for q in set(column))
    a, b = p(column, v), p(column, w)
    return everything / (log(a * b / ((1 - a) * (1 - b))) + everything)


def lin(columns, x, y):
    above = below = 0.0
    for column, v, w in zip(columns, x, y, strict=True):
        a, b = p(column, v), p(column, w)
        above += 2 * log(a) if v == w else 2 * log(min(a + b, 1))
        below += log(a) + log(b)
    return above / below if below else 1.0


def lin1(columns, x, y):
    above = below = 0.0
    for column, v, w in zip(columns, x, y, strict=True):
        low, high = sorted([p(column, v), p(column, w)])
        between = [p(column, q) for q in set(column) if low <= p(column, q) <= high]
        information = sum(log(share) for share in between)
        above += information if v == w else 2 * log(min(sum(between), 1))
        below += information
    return above / below if below else 1.0


def anderberg(columns, x, y):
    match = mismatch = 0.0
    for column, v, w in zip(columns, x, y, strict=True):
        k = len(set(column))
        a, b = p(column, v), p(column, w)
        if v == w:
            match += (1 / a) ** 2 * 2 / (k * (k + 1))
        else:
            mismatch += 1 / (2 * a * b) * 2 / (k * (k + 1))
    return match / (match + mismatch)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("reference", [gambaryan, burnaby], ids=lambda r: r.__name__)
def test_matches_the_published_similarity(reference, seed):
    rows = random_rows(seed)
    counts = Counts.of(Table.of(rows))
    name = reference.__name__
    similarities = getattr(information, f"{name}_similarity")(counts)
    distances = getattr(information, name)(counts)
    for a, (similarity, distance) in enumerate(zip(similarities, distances, strict=True)):
        column, values = [row[a] for row in rows], counts.labels[a]
        want = np.array([[reference(column, v, w) for w in values] for v in values])
        np.testing.assert_allclose(similarity, want, rtol=1e-9, atol=1e-12)
        worth = np.diag(want)
        np.testing.assert_allclose(
            distance, (worth[:, None] + worth) / 2 - want, rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("reference", [lin, lin1, anderberg], ids=lambda r: r.__name__)
def test_ratios_match_the_published_similarity(reference, seed):
    rows = random_rows(seed)
    columns = list(zip(*rows, strict=True))
    want = np.array([[reference(columns, x, y) for y in rows] for x in rows])
    assert want.max() <= 1 + 1e-12
    metric = ValueMetric(reference.__name__, schema=Schema(missing="value")).fit(rows)
    got = metric.pairwise_distances(rows)
    np.testing.assert_allclose(got, 1 - want, atol=1e-12)
    assert (np.diagonal(got) == 0).all()
    np.testing.assert_array_equal(got, got.T)


@pytest.mark.parametrize("name", ["lin", "lin1", "anderberg"])
@pytest.mark.parametrize("seed", range(10))
def test_numerators_never_exceed_denominators(name, seed):
    counts = Counts.of(Table.of(random_rows(seed)))
    for above, below in zip(*getattr(information, name)(counts), strict=True):
        assert (above <= below).all()
        assert (above >= 0).all()
        np.testing.assert_array_equal(np.diagonal(above), np.diagonal(below))


def test_lin_by_hand():
    """Two of three values of a column with frequencies 2, 1, 1 of 4, on their own."""
    counts = Counts.of(Table.of({"a": list("xxyz")}))
    (above,), (below,) = information.lin(counts)
    assert above[0, 1] / below[0, 1] == pytest.approx(2 * log(3 / 4) / (log(1 / 2) + log(1 / 4)))
    assert above[1, 2] / below[1, 2] == pytest.approx(2 * log(1 / 2) / (2 * log(1 / 4)))


def test_burnaby_of_rows_that_hardly_weigh_is_finite():
    """All weight but 1e-18 of it is one value's, and rounding takes them for the same."""
    counts = Counts.of({"a": list("xyz")}, sample_weight=[1, 1e-20, 1e-18])
    (found,) = information.burnaby(counts)
    assert np.isfinite(found).all() and (found[~np.eye(3, dtype=bool)] > 0).all()


def test_burnaby_sees_no_difference_in_a_binary_column():
    assert not information.burnaby(Counts.of(Table.of({"a": list("xxy")})))[0].any()


@pytest.mark.parametrize("n", [3, 4, 10])
def test_burnaby_reaches_its_published_lower_bound(n):
    """Values that all occur once are the least similar of n rows."""
    counts = Counts.of(Table.of({"a": [f"v{i}" for i in range(n)]}))
    (similarity,) = information.burnaby_similarity(counts)
    bound = n * log(1 - 1 / n) / (n * log(1 - 1 / n) - log(n - 1))
    assert similarity[0, 1] == pytest.approx(bound)
