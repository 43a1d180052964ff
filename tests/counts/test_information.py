"""Spaces against loops over rows."""

import math

import numpy as np
import pytest
from scipy import sparse

from tabweave import Counts, Table
from tabweave.counts.couplings import (
    block_sums,
    conditional,
    context,
    frequencies,
    information,
    marginal_counts,
    partners,
    refuse_sets,
    shares,
    symmetric_uncertainty,
)


def random_rows(seed, n=40, n_columns=4):
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 3, n)
    rows = [[f"v{rng.integers(0, 3) if rng.random() < 0.5 else h}" for _ in range(n_columns)]
            for h in hidden]  # fmt: skip
    for row in rows:
        if rng.random() < 0.3:
            row[rng.integers(n_columns)] = None
    return rows


def counted(rows, y=None):
    return Counts.of(
        Table.of({f"c{a}": list(col) for a, col in enumerate(zip(*rows, strict=True))}), y
    )


def entropy(items):
    n = len(items)
    return -sum(items.count(v) / n * math.log(items.count(v) / n) for v in set(items))


def as_sparse(counts):
    from dataclasses import replace

    return replace(counts, pairs=sparse.csr_array(counts.pairs))


@pytest.mark.parametrize("seed", range(3))
def test_frequencies_and_conditionals_are_shares_of_rows(seed):
    rows = random_rows(seed)
    counts = counted(rows)
    for a, labels in enumerate(counts.labels):
        for i, v in enumerate(labels):
            assert frequencies(counts)[a][i] == sum(r[a] == v for r in rows) / len(rows)
            for b, others in enumerate(counts.labels):
                for j, w in enumerate(others):
                    having = [r for r in rows if r[b] == w]
                    expected = sum(r[a] == v for r in having) / len(having)
                    assert conditional(counts, a, b)[i, j] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_information_is_that_of_the_rows(seed):
    rows = random_rows(seed)
    mutual, marginal, joint = information(counted(rows))
    columns = [list(c) for c in zip(*rows, strict=True)]
    for a, x in enumerate(columns):
        for b, y in enumerate(columns):
            both = entropy(list(zip(x, y, strict=True)))
            assert marginal[a, b] == pytest.approx(entropy(x))
            assert joint[a, b] == pytest.approx(both)
            assert mutual[a, b] == pytest.approx(entropy(x) + entropy(y) - both, abs=1e-12)
            expected = 2 * (entropy(x) + entropy(y) - both) / (entropy(x) + entropy(y))
            assert symmetric_uncertainty(counted(rows))[a, b] == pytest.approx(expected)


def test_sparse_counts_give_the_same():
    counts = counted(random_rows(5))
    thin = as_sparse(counts)
    assert np.allclose(symmetric_uncertainty(thin), symmetric_uncertainty(counts))
    assert np.allclose(marginal_counts(thin), marginal_counts(counts))
    assert np.allclose(conditional(thin, 0, 2), conditional(counts, 0, 2))
    for (b, x), (c, y) in zip(partners(thin, 1), partners(counts, 1), strict=True):
        assert b == c and np.array_equal(x, y)


def test_block_sums_add_up_a_function_of_counts():
    counts = counted(random_rows(1))
    sums = block_sums(counts, lambda c: c**2)
    assert sums[0, 2] == (counts.block(0, 2) ** 2).sum()
    assert (block_sums(counts, np.asarray) == counts.n).all()


def test_a_column_with_one_value_says_nothing():
    su = symmetric_uncertainty(counted([["a", "x"], ["a", "y"], ["a", "x"]]))
    assert np.array_equal(su, [[0, 0], [0, 1]])
    assert not context(su).any()


def test_context_by_hand():
    # 1 is most relevant to 0; 2 is told by 1 as well as by 0, so it leaves; 3 stays.
    su = np.array([[1, 0.6, 0.4, 0.3], [0.6, 1, 0.5, 0.1], [0.4, 0.5, 1, 0.0], [0.3, 0.1, 0.0, 1]])
    assert np.flatnonzero(context(su)[0]).tolist() == [1, 3]
    # nothing is in its own context, and what says nothing is in none
    assert not context(su).diagonal().any() and not context(su)[2, 3]


@pytest.mark.parametrize("seed", range(5))
def test_context_cannot_shrink_or_grow(seed):
    """No kept column is redundant with another kept one; each dropped one is, or says nothing."""
    rng = np.random.default_rng(seed)
    su = rng.random((6, 6)).round(1)
    su = np.triu(su) + np.triu(su, 1).T
    for j, chosen in enumerate(context(su)):
        for k in set(range(6)) - {j}:
            rivals = [m for m in np.flatnonzero(chosen) if m != k and su[j, k] <= su[j, m]]
            redundant = any(su[m, k] >= su[j, k] for m in rivals)
            assert chosen[k] == (not redundant and su[j, k] > 0)


def test_of_two_copies_one_stays():
    rows = [[r[0], r[1], r[1]] for r in random_rows(2)]
    assert context(symmetric_uncertainty(counted(rows)))[0].sum() == 1


def test_sets_count_incidences():
    table = Table.of({"tags": [{"a", "b"}, {"a"}], "x": ["u", "w"]}, {"tags": "set"})
    counts = Counts.of(table)
    p = conditional(counts, "tags", "x")
    assert np.allclose(p.sum(axis=0), 1) and np.allclose(p[:, 0], [0.5, 0.5])
    assert (symmetric_uncertainty(counts) <= 1).all()
    with pytest.raises(ValueError, match="'tags' is set-valued"):
        refuse_sets(counts, "this")


def test_shares_of_an_empty_row_are_zero():
    assert np.array_equal(shares(np.array([[0, 0], [1, 3]])), [[0, 0], [0.25, 0.75]])
