"""COS against its published definition, and what makes it a metric."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from tabweave import Counts, Table
from tabweave.measures.coupled import (
    ahmad,
    ckml,
    ckml_inter,
    ckml_intra,
    column_weights,
    cos,
    cos_inter,
    cos_intra,
    dilca,
    le_ho,
)
from tabweave.measures.register import MEASURES
from tabweave.papers import CKML

ALL = (cos, cos_intra, cos_inter, ckml, ckml_intra, ckml_inter)


def random_rows(seed, n=30, n_columns=4, n_values=4):
    rng = np.random.default_rng(seed)
    hidden, own = rng.integers(0, n_values, (n, 1)), rng.integers(0, n_values, (n, n_columns))
    codes = np.where(rng.random(own.shape) < 0.5, hidden, own)
    rows = [[f"v{code}" for code in row] for row in codes]
    rows[0][1] = rows[3][1] = rows[4][0] = None
    return rows


def counted(rows):
    columns = {f"c{a}": list(col) for a, col in enumerate(zip(*rows, strict=True))}
    return Counts.of(Table.of(columns))


def published_similarities(rows, a, v, w):
    """Eqs. (2.7), (2.11) with α = 1/(A - 1); 1 for equal values."""
    if v == w:
        return 1, 1
    having_v, having_w = ([r for r in rows if r[a] == u] for u in (v, w))
    x, y = len(having_v), len(having_w)
    others = [b for b in range(len(rows[0])) if b != a]
    inter = 0
    for b in others:
        for q in {r[b] for r in rows}:
            inter += min(sum(r[b] == q for r in having_v) / x, sum(r[b] == q for r in having_w) / y)
    return x * y / (x + y + x * y), inter / len(others)


@pytest.mark.parametrize("seed", range(3))
def test_cos_equals_the_published_definition(seed):
    rows = random_rows(seed)
    counts = counted(rows)
    found = zip(cos_intra(counts), cos_inter(counts), cos(counts), strict=True)
    for a, (intra, inter, both) in enumerate(found):
        for i, v in enumerate(counts.labels[a]):
            for j, w in enumerate(counts.labels[a]):
                s, t = published_similarities(rows, a, v, w)
                assert intra[i, j] == pytest.approx(1 - s)
                assert inter[i, j] == pytest.approx(1 - t)
                assert both[i, j] == pytest.approx((1 / s - 1) * (1 - t))


def test_inter_cos_is_ahmad():
    counts = counted(random_rows(1))
    for x, y in zip(cos_inter(counts), ahmad(counts), strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize("seed", range(4))
def test_is_a_dissimilarity_and_a_metric_where_claimed(function, seed):
    claims = MEASURES[function.__name__].metric
    assert claims == (function in (cos_intra, cos_inter))
    for d in function(counted(random_rows(seed, n_values=8, n=60))):
        assert np.allclose(d, d.T, rtol=0, atol=1e-15)
        assert (d.diagonal() == 0).all() and (d >= 0).all() and np.isfinite(d).all()
        assert not claims or (d[:, None] <= d[:, :, None] + d[None] + 1e-12).all()


@pytest.mark.parametrize("variant", ["object", "intra", "inter"])
def test_ckml_measures_are_the_published_squares(variant):
    rows = random_rows(2)
    name = "ckml" if variant == "object" else f"ckml_{variant}"
    model = CKML(variant).fit_counts(counted(rows))
    for d, square in zip(MEASURES[name].function(counted(rows)), model.squares_, strict=True):
        assert np.array_equal(d, square[:-1, :-1])


@pytest.mark.parametrize("function", [*ALL, ahmad, dilca, le_ho])
def test_sparse_counts_give_the_same(function):
    counts = counted(random_rows(3))
    thin = replace(counts, pairs=sparse.csr_array(counts.pairs))
    for d, e in zip(function(counts), function(thin), strict=True):
        assert np.allclose(d, e, rtol=0, atol=1e-12)


@pytest.mark.parametrize("function", ALL)
def test_row_order_does_not_matter(function):
    rows = random_rows(4)
    for d, e in zip(function(counted(rows)), function(counted(rows[::-1])), strict=True):
        assert np.array_equal(d, e)


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize("rows", [[["a"], ["b"]], [["a", "x"]], [["a", "x"], ["a", "y"]]])
def test_degenerate_tables(function, rows):
    assert all(np.isfinite(d).all() for d in function(counted(rows)))


def chance_to_differ(*columns):
    """Return the share of pairs of rows that differ in any of the columns, pair by pair."""
    rows = list(zip(*columns, strict=True))
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(rows)) if i != j]
    return sum(rows[i] != rows[j] for i, j in pairs) / len(pairs)


def test_weights_of_columns_are_the_chances_that_two_rows_differ():
    columns = {"a": list("uuvvwu"), "b": list("xyxyyy"), "c": list("pppppq")}
    alpha = np.array([[0, 0.75, 0.25], [1, 0, 0], [0.5, 0.5, 0]])
    own = np.array([chance_to_differ(column) for column in columns.values()])
    both = np.array([
        sum(alpha[i, j] * chance_to_differ(left, right) for j, right in enumerate(columns.values()))
        for i, left in enumerate(columns.values())
    ])  # fmt: skip
    wanted = np.maximum(own / own.sum(), both / both.sum())
    found = column_weights(Counts.of(Table.of(columns)), alpha)
    np.testing.assert_allclose(found, wanted / wanted.sum())


@pytest.mark.parametrize("rows", [{"a": ["u"], "b": ["x"]}, {"a": ["u", "u"], "b": ["x", "x"]}])
def test_columns_that_never_differ_weigh_the_same(rows):
    assert column_weights(Counts.of(Table.of(rows)), np.zeros((2, 2))).tolist() == [0.5, 0.5]


def test_two_rows_that_differ_do_so_always():
    found = column_weights(Counts.of(Table.of({"a": ["u", "v"], "b": ["x", "x"]})), np.eye(2) * 0)
    assert found.tolist() == [1, 0]


@pytest.mark.parametrize("rows", [["ux", "vy"], ["ux", "ux"], ["ux", "uy", "vx"], ["ux"]])
def test_weights_of_columns_are_chances_that_two_rows_differ(rows):
    """By hand, over pairs of rows: in a column, or in two columns; the larger share counts."""
    counts = Counts.of(Table.of({"a": [r[0] for r in rows], "b": [r[1] for r in rows]}))
    alpha = np.array([[0.0, 0.25], [1.0, 0.0]])
    pairs = [(p, q) for i, p in enumerate(rows) for q in rows[:i]]

    def differ(key):
        return sum(key(p) != key(q) for p, q in pairs) / max(len(pairs), 1)

    own = np.array([differ(lambda r: r[0]), differ(lambda r: r[1])])
    both = alpha.sum(axis=1) * differ(lambda r: r)
    scaled = [x / x.sum() if x.any() else x for x in (own, both)]
    weight = np.maximum(*scaled)
    wanted = weight / weight.sum() if weight.any() else np.full(2, 0.5)
    np.testing.assert_allclose(column_weights(counts, alpha), wanted)
