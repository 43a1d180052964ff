"""Shares, information, coupling spaces and kernels against loops over rows and values."""

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_mutual_info_score, mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from tabweave import Counts, Table, _compat
from tabweave.columns.table import take_rows
from tabweave.counts import counting as _counting
from tabweave.counts import couplings
from tabweave.counts.couplings import (
    block_sums,
    chance_information,
    check_no_sets,
    context,
    copies,
    information,
    neighbor_information,
    partners,
    shares,
    symmetric_uncertainty,
    value_sums,
)


def rows_of(seed, n=50, sizes=(3, 4, 5)):
    rng = np.random.default_rng(seed)
    return {f"c{i}": [f"v{v}" for v in rng.integers(0, s, n)] for i, s in enumerate(sizes)}


def full(points):
    matrix = points.matrix.toarray() if sparse.issparse(points.matrix) else points.matrix
    return matrix + np.outer(points.left, points.right)


def test_the_watermelons_7_2_2(watermelons):
    counts = Counts.of(Table.of(watermelons))
    yellow = counts.labels[1].index("yellow")
    points = couplings.inter(counts, 1)
    others = [v for b in (0, 2) for v in counts.labels[b]]
    m = dict(zip(others, full(points)[yellow], strict=True))
    order = ["clear", "blurry", "straight", "curled", "slightly curled"]
    assert np.allclose([m[v] for v in order], [0, 2 / 3, 1 / 2, 1 / 2, 0], atol=1e-15)
    marks = np.arange(4)
    kernels = couplings.kernel_family((), (1,))
    (block,) = couplings.kernel_blocks({"inter": points}, kernels, marks)
    assert block.gram[yellow, yellow] == pytest.approx(float(Fraction(17, 18)), rel=1e-14)
    assert block.diagonal[yellow] == pytest.approx(17 / 18, rel=1e-14)


@pytest.mark.parametrize("s", [0.0, 5.0])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_smoothed_spaces_are_the_formulas(s, storage, monkeypatch):
    if storage == "sparse":
        monkeypatch.setattr(_counting, "DENSE_VALUES", 0)
    X = rows_of(0)
    y = ["p", "q"] * 25
    counts = Counts.of(Table.of(X), y)
    assert sparse.issparse(counts.pairs) == (storage == "sparse")
    n = len(y)
    for a, name in enumerate(counts.names):
        inter, reverse = full(couplings.inter(counts, a, s)), full(couplings.reverse(counts, a, s))
        by_class = full(couplings.by_class(counts, a, s))
        assert np.allclose(full(couplings.intra(counts, a))[:, 0], counts.frequencies[a])
        others = [(b, w) for b in counts.names if b != name for w in counts.labels[_at(counts, b)]]
        for i, v in enumerate(counts.labels[a]):
            has_v = [x == v for x in X[name]]
            f_v = sum(has_v) / n
            for j, (b, w) in enumerate(others):
                has_w = [x == w for x in X[b]]
                both, f_w = sum(p and q for p, q in zip(has_v, has_w, strict=True)), sum(has_w) / n
                assert inter[i, j] == pytest.approx((both + s * f_v) / (sum(has_w) + s))
                assert reverse[i, j] == pytest.approx((both + s * f_w) / (sum(has_v) + s))
            for j, c in enumerate(counts.classes):
                both = sum(p and q == c for p, q in zip(has_v, y, strict=True))
                assert by_class[i, j] == pytest.approx((both + s * f_v) / (y.count(c) + s))


def _at(counts, name):
    return counts.names.index(name)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_points_never_formed_have_the_right_products(storage):
    rng = np.random.default_rng(1)
    matrix = rng.random((6, 4)) * (rng.random((6, 4)) < 0.5)
    left, right = rng.random(6), rng.random(4)
    kept = sparse.csr_array(matrix) if storage == "sparse" else matrix
    points = couplings.Points(kept, left, right)
    whole, rows = matrix + np.outer(left, right), np.array([4, 1])
    assert np.allclose(points.inner(rows), whole @ whole[rows].T, atol=1e-14)
    assert np.allclose(points.norms(), (whole**2).sum(axis=1), atol=1e-14)


def test_kernels_are_their_formulas():
    x = np.random.default_rng(0).normal(size=(5, 3))
    norms, inner = (x**2).sum(axis=1), x @ x.T
    kept = inner.copy()
    for width in (0.25, 2.0):
        k = couplings.gaussian(inner, norms[:, None], norms[None], width=width)
        for i, j in np.ndindex(5, 5):
            expected = np.exp(-((x[i] - x[j]) ** 2).sum() / (2 * width**2))
            assert k[i, j] == pytest.approx(expected, rel=1e-12)
    assert np.array_equal(inner, kept)  # nothing is overwritten
    assert np.allclose(couplings.polynomial(inner, norms, norms, degree=3), inner**3)


def test_the_family_of_section_6_2_3():
    family = couplings.kernel_family()
    assert len(family) == 14 and {"gauss0.03125", "gauss32", "poly1", "poly3"} <= set(family)
    assert list(couplings.kernel_family((), (1, 2))) == ["poly1", "poly2"]


def test_inertia_is_the_weighted_trace_of_the_centred_kernel():
    counts = Counts.of(Table.of(rows_of(3)))
    f, marks = counts.frequencies[2], np.arange(5)
    spaces = {"inter": couplings.inter(counts, 2, 5.0)}
    for block in couplings.kernel_blocks(spaces, couplings.kernel_family(), marks):
        centre = np.eye(5) - np.outer(np.ones(5), f)
        trace = np.diag(centre @ block.gram @ centre.T) @ f
        assert block.inertia(f, marks) == pytest.approx(trace, abs=1e-12)
        assert np.allclose(block.diagonal, np.diag(block.gram))


def test_landmarks_are_the_most_frequent_values():
    counts = Counts.of(Table.of({"a": list("aabbbccccd"), "b": list("xyxyxyxyxy")}))
    assert couplings.landmarks(counts, 0, 2).tolist() == [1, 2]  # b and c
    assert couplings.landmarks(counts, 0, 4).tolist() == [0, 1, 2, 3]


def test_factor_is_exact_with_all_landmarks_and_close_with_some():
    x = np.random.default_rng(5).normal(size=(40, 2))
    norms, inner = (x**2).sum(axis=1), x @ x.T
    gram = couplings.gaussian(inner, norms[:, None], norms[None], width=2.0)
    rows = couplings.factor(gram, np.arange(40))
    assert np.allclose(rows @ rows.T, gram, atol=1e-10)
    errors = []
    for n_marks in (4, 12, 25):
        marks = np.arange(n_marks)
        near = couplings.factor(gram[:, marks], marks)
        assert np.allclose((near @ near.T)[:, marks], gram[:, marks], atol=1e-3)
        errors.append(np.abs(near @ near.T - gram).max())
    assert errors[0] > errors[1] > errors[2] and errors[2] < 0.02


def test_no_values_have_no_factor():
    """As of a column of sets that are all empty."""
    none = np.zeros((0, 0))
    assert couplings.factor(none, np.zeros(0, np.intp)).shape == (0, 0)
    counts = Counts.of({"s": [[], [], []], "c": ["u", "u", "v"]})
    gram, diagonal, n_kernels = couplings.summed_kernels(
        counts, 0, np.zeros(0, np.intp), couplings.kernel_family(), 1.0
    )
    assert gram.shape == (0, 0) and diagonal.shape == (0,) and n_kernels == 0


def test_nystrom_of_a_low_rank_kernel_is_exact():
    x = np.random.default_rng(6).normal(size=(30, 3))
    marks = np.array([0, 7, 9, 20])
    rows = couplings.factor(x @ x[marks].T, marks)
    assert np.allclose(rows @ rows.T, x @ x.T, atol=1e-8)


def test_identity_keeps_values_apart():
    block = couplings.identity_block(3, np.arange(3))
    assert np.array_equal(block.gram, np.eye(3)) and block.inertia(np.full(3, 1 / 3), np.arange(3))


def test_the_class_space_needs_classes():
    with pytest.raises(ValueError, match="count the rows with y"):
        couplings.by_class(Counts.of(Table.of(rows_of(0))), 0)


# -- shares and information ------------------------------------------------------------------------


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
    return replace(counts, pairs=sparse.csr_array(counts.pairs))


@pytest.mark.parametrize("seed", range(3))
def test_frequencies_and_conditionals_are_shares_of_rows(seed):
    rows = random_rows(seed)
    counts = counted(rows)
    for a, labels in enumerate(counts.labels):
        for i, v in enumerate(labels):
            assert counts.frequencies[a][i] == sum(r[a] == v for r in rows) / len(rows)
            for b, others in enumerate(counts.labels):
                for j, w in enumerate(others):
                    having = [r for r in rows if r[b] == w]
                    expected = sum(r[a] == v for r in having) / len(having)
                    assert shares(counts.block(b, a))[j, i] == pytest.approx(expected)


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
    assert np.allclose(value_sums(thin, np.asarray), value_sums(counts, np.asarray))
    assert np.allclose(shares(thin.block(2, 0)), shares(counts.block(2, 0)))
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


def test_context_by_hand_in_the_order_of_columns():
    # 1 is told by 2, which stands after it and is more relevant; told by 1 alone, 3 stays.
    su = np.array([[1, 0.3, 0.4, 0.2], [0.3, 1, 0.5, 0.6], [0.4, 0.5, 1, 0.1], [0.2, 0.6, 0.1, 1]])
    assert np.flatnonzero(context(su, "column")[0]).tolist() == [2, 3]
    # 3 stands before 1 now and leaves first: what is told by a column that leaves later leaves too
    swapped = [0, 3, 2, 1]
    reordered = context(su[np.ix_(swapped, swapped)], "column")[0]
    assert np.flatnonzero(reordered).tolist() == [2]


@pytest.mark.parametrize("seed", range(20))
def test_columns_leave_one_by_one_as_they_stand(seed):
    """Section 4.2.3 to the letter, on those that have not left."""
    rng = np.random.default_rng(seed)
    su = rng.random((7, 7)).round(1)
    su = np.triu(su) + np.triu(su, 1).T
    for j, chosen in enumerate(context(su, "column")):
        left = [m for m in range(7) if m != j and su[j, m] > 0]
        for k in list(left):
            if any(su[j, k] <= su[j, q] and su[q, k] >= su[j, k] for q in left if q != k):
                left.remove(k)
        assert np.flatnonzero(chosen).tolist() == left


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
    for order in ("relevance", "column"):
        assert context(symmetric_uncertainty(counted(rows)), order)[0].sum() == 1


def test_sets_count_incidences():
    table = Table.of({"tags": [{"a", "b"}, {"a"}], "x": ["u", "w"]}, {"tags": "set"})
    counts = Counts.of(table)
    p = shares(counts.block("x", "tags")).T
    assert np.allclose(p.sum(axis=0), 1) and np.allclose(p[:, 0], [0.5, 0.5])
    assert (symmetric_uncertainty(counts) <= 1).all()
    with pytest.raises(ValueError, match="'tags' is set-valued"):
        check_no_sets(counts, "this")


def test_shares_of_an_empty_row_are_zero():
    assert np.array_equal(shares(np.array([[0, 0], [1, 3]])), [[0, 0], [0.25, 0.75]])


def test_polynomials_of_points():
    inner, left, right = np.array([[2.0, 0.0]]), np.array([[4.0]]), np.array([[4.0, 0.0]])
    assert couplings.polynomial(inner, left, right, degree=3).tolist() == [[8, 0]]
    assert couplings.bounded_polynomial(inner, left, right, degree=2).tolist() == [[0.25, 0]]


def test_tables_of_all_pairs_that_are_too_large_are_refused():
    counts = Counts.of(Table.of({"few": list("ab"), "many": list("xy")}))
    couplings.check_table_size(counts, "DILCA", largest=8)
    with pytest.raises(ValueError, match="column 'few' has 2 values, and DILCA needs a table"):
        couplings.check_table_size(counts, "DILCA", largest=7)


def test_they_are_refused_before_pairs_are_counted_by_the_values_that_occur():
    table = Table.of({"few": list("aab"), "many": list("xyz")})
    couplings.check_values(table, "OneHot", largest=13)
    with pytest.raises(ValueError, match="column 'many' has 3 values, and OneHot needs a table"):
        couplings.check_values(table, "OneHot", largest=12)
    couplings.check_values(take_rows(table, np.array([0, 2])), "OneHot", largest=8)


def test_blocks_are_scaled_whatever_their_storage():
    block, scale = np.array([[1.0, 0.0], [2.0, 3.0]]), np.array([2.0, 5.0])
    wanted = [[2, 0], [4, 15]]
    assert couplings._scaled(block, scale).tolist() == wanted
    assert couplings._scaled(sparse.csr_array(block), scale).toarray().tolist() == wanted


def test_a_column_alone_has_no_couplings_but_its_frequencies():
    kernels = {"linear": partial(couplings.polynomial, degree=1)}
    rows = {"a": list("uuvw"), "b": list("xyyy")}
    for names, n_blocks in ((["a"], 1), (["a", "b"], 3)):
        counts = Counts.of(Table.of({name: rows[name] for name in names}))
        found = list(couplings.column_blocks(counts, 0, np.arange(3), kernels, 5.0))
        assert len(found) == n_blocks and all(inertia > 0 for _, inertia in found)


def test_sums_are_the_same_a_value_at_a_time(monkeypatch):
    rows = {"a": list("xyzx"), "b": list("uvuu")}
    counts = Counts.of(Table.of(rows)) - Counts.of(Table.of({"a": ["z"], "b": ["u"]}))
    expected = couplings.block_sums(counts, np.square), value_sums(counts, np.asarray)
    monkeypatch.setattr(couplings, "BLOCK_ENTRIES", 1)
    np.testing.assert_array_equal(couplings.block_sums(counts, np.square), expected[0])
    np.testing.assert_array_equal(value_sums(counts, np.asarray), expected[1])
    assert (counts.value_counts > 0).all()


# -- at the edges ----------------------------------------------------------------------------------


def test_uncertainty_is_never_above_one():
    """A column by other names says all; rounding must not say more."""
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        column, other = rng.integers(0, 40, 90 + seed), rng.permutation(40)
        counts = Counts.of(Table.of({"a": column.astype(str), "b": other[column].astype(str)}))
        mutual, marginal, _ = information(counts)
        found.append((2 * mutual / (marginal + marginal.T)).max())
        assert symmetric_uncertainty(counts).max() <= 1
    assert max(found) > 1  # so there was something to cut


def test_columns_that_never_meet_share_nothing():
    """A column of empty sets has no value: nothing is divided by 0."""
    counts = Counts.of(Table.of({"s": [[], []], "a": ["u", "v"]}, {"s": "set"}))
    mutual, marginal, joint = information(counts)
    assert (
        not mutual[0].any() and not joint[0].any() and marginal[1, 1] == pytest.approx(math.log(2))
    )
    assert not symmetric_uncertainty(counts)[0].any()


def test_uncertainty_less_what_chance_gives_is_the_formula():
    """``SU⁺`` from scipy's entropies."""
    from scipy.stats import entropy
    from scipy.stats.contingency import crosstab

    X = rows_of(4, n=300, sizes=(2, 3, 6))
    X["c3"] = [a if i % 3 else b for i, (a, b) in enumerate(zip(X["c0"], X["c1"], strict=True))]
    X["c4"] = ["same"] * 300
    counts = Counts.of(Table.of(X))
    mutual, marginal, joint = information(counts)
    found = couplings.corrected_uncertainty(counts, mutual, marginal)
    for a, b in np.ndindex(5, 5):
        table = crosstab(X[f"c{a}"], X[f"c{b}"]).count
        h_a, h_b, both = entropy(table.sum(1)), entropy(table.sum(0)), entropy(table.ravel())
        chance = expected_mutual_information(table, 300)
        wanted = 2 * max(h_a + h_b - both - chance, 0) / (h_a + h_b) if h_a + h_b and a != b else 0
        assert found[a, b] == pytest.approx(wanted, abs=1e-12)
        assert joint[a, b] == pytest.approx(both, abs=1e-12)
    assert found[0, 3] > 0.05


def test_ties_of_a_context_are_judged_on_twelve_digits():
    near = 0.5 + 3e-13
    su = np.array([[1, 0.5, near], [0.5, 1, 0.9], [near, 0.9, 1]])
    assert context(su)[0].tolist() == [False, True, False]
    su[0, 2] = su[2, 0] = 0.5 + 3e-12
    assert context(su)[0].tolist() == [False, False, True]


@pytest.mark.parametrize(("share", "full"), [(1.0, True), (1.01, False)])
def test_blocks_that_are_full_enough_are_worked_on_with_their_zeros(share, full, monkeypatch):
    monkeypatch.setattr(_counting, "DENSE_VALUES", 0)
    monkeypatch.setattr(couplings, "MIN_DENSE_SHARE", share)
    counts = Counts.of(Table.of({"a": list("uvuv"), "b": list("xxyy")}))
    block, others = couplings._with_others(counts, 0)
    assert sparse.issparse(block) != full and others.tolist() == [2, 2]
    assert sparse.issparse(couplings._with_others(counts, 0, max_dense_entries=3)[0])


@pytest.mark.parametrize("shared", [1 << 22, 0])
def test_every_kernel_of_every_space_is_its_formula(shared, monkeypatch):
    monkeypatch.setattr(couplings, "BLOCK_ENTRIES", shared)
    counts = Counts.of(Table.of(rows_of(2)))
    spaces = {"intra": couplings.intra(counts, 2), "inter": couplings.inter(counts, 2, 5.0)}
    marks = np.array([0, 3, 4])
    seen = 0
    for block in couplings.kernel_blocks(spaces, couplings.kernel_family(), marks):
        x = full(spaces[block.space])
        if block.kernel.startswith("gauss"):
            square = ((x[:, None] - x[None]) ** 2).sum(axis=2)
            gram = np.exp(-square / (2 * float(block.kernel[5:]) ** 2))
        else:
            gram = (x @ x.T) ** int(block.kernel[4:])
        np.testing.assert_allclose(block.gram, gram[:, marks], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(block.diagonal, np.diag(gram), rtol=1e-9)
        seen += 1
    assert seen == 28


def test_kernels_add_up_at_unit_inertia():
    counts = Counts.of(Table.of(rows_of(5)))
    f, marks, kernels = (
        counts.frequencies[1],
        np.arange(4),
        couplings.kernel_family((0.5, 2.0), (1,)),
    )
    total, diagonal, n_kernels = couplings.summed_kernels(counts, 1, marks, kernels, 5.0)
    blocks = list(couplings.column_blocks(counts, 1, marks, kernels, 5.0))
    assert n_kernels == len(blocks) == 9
    np.testing.assert_allclose(total, sum(b.gram / inertia for b, inertia in blocks))
    np.testing.assert_allclose(diagonal, np.diag(total))
    centre = np.eye(4) - np.outer(np.ones(4), f)
    assert np.diag(centre @ total @ centre.T) @ f == pytest.approx(9)
    a_value_at_a_time = couplings.summed_kernels(counts, 1, marks, kernels, 5.0, cached_entries=4)
    np.testing.assert_allclose(a_value_at_a_time[0], total, rtol=1e-12)


@pytest.mark.parametrize("cached", [1 << 15, 8])
def test_sums_of_kernels_keep_their_digits(cached):
    """Against 50 digits: wide Gaussians of frequencies are 1 up to 1e-8, which is all of them."""
    a = [v for v, times in {"p": 40, "q": 41, "r": 45, "s": 74}.items() for _ in range(times)]
    counts = Counts.of(Table.of({"a": a}))
    kernels, marks = couplings.kernel_family(), np.array([0, 2, 3])
    total, diagonal, n_kernels = couplings.summed_kernels(counts, 0, marks, kernels, 5.0, cached)
    with localcontext(prec=50):
        f = np.array([Decimal(int(c)) / len(a) for c in counts.value_counts])
        exact, own, seen = np.full((4, 3), Decimal(0)), np.full(4, Decimal(0)), 0
        for name in kernels:
            number = Decimal(name.removeprefix("gauss").removeprefix("poly"))
            if name.startswith("gauss"):
                gram = np.array([[(-((x - y) ** 2) / (2 * number**2)).exp() for y in f] for x in f])
            else:
                gram = np.outer(f, f) ** int(number)
            inertia = f @ np.diagonal(gram) - f @ gram[:, marks] @ f[marks] / f[marks].sum()
            if inertia > couplings.NEGLIGIBLE_INERTIA:
                exact, own = exact + gram[:, marks] / inertia, own + np.diagonal(gram) / inertia
                seen += 1
    assert n_kernels == seen
    np.testing.assert_allclose(total, exact.astype(float), rtol=1e-12)
    np.testing.assert_allclose(diagonal, own.astype(float), rtol=1e-12)


def test_values_alike_in_a_space_add_no_kernel():
    counts = Counts.of(Table.of({"a": list("uvuv"), "b": list("xxyy")}))
    found = list(couplings.column_blocks(counts, 0, np.arange(2), couplings.kernel_family(), 5.0))
    assert found == []  # equally frequent, and independent of the other


def test_a_factor_has_as_many_directions_as_the_kernel():
    assert couplings.factor(np.zeros((3, 3)), np.arange(3)).shape == (3, 0)
    for scale in (1e-20, 1.0, 1e20):
        assert couplings.factor(scale * np.eye(3), np.arange(3)).shape == (3, 3)
        assert couplings.factor(scale * np.ones((3, 3)), np.arange(3)).shape == (3, 1)
        some = couplings.factor(scale * np.ones((3, 2)), np.array([0, 2]))
        np.testing.assert_allclose(some @ some.T, scale * np.ones((3, 3)))
        assert some.shape == (3, 1)


def gaussian_kernel(n):
    x = np.random.default_rng(n).normal(size=(n, 3))
    return np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / 2)


@pytest.mark.parametrize("n", [3, couplings.MAX_COORDINATES + 1, couplings.MAX_COORDINATES + 2])
def test_factors_have_the_inner_products_of_kernel_and_identity(n):
    gram, marks = gaussian_kernel(n), np.arange(n)
    found = couplings.Factors.of(gram, np.diag(gram), 0.5, marks)
    whole = found.common @ found.common.T + np.diag(found.own)
    np.testing.assert_allclose(whole, gram + 0.5 * np.eye(n), atol=1e-9)
    assert found.own.any() == (n > couplings.MAX_COORDINATES + 1)
    scaled = found.scaled(3.0)
    np.testing.assert_allclose(scaled.common @ scaled.common.T + np.diag(scaled.own), 3 * whole)
    alone = couplings.Factors.of(np.zeros((n, n)), np.zeros(n), 0.5, marks)
    assert alone.common.shape == ((n, 0) if alone.own.any() else (n, n))
    np.testing.assert_allclose(alone.common @ alone.common.T + np.diag(alone.own), 0.5 * np.eye(n))


def test_what_landmarks_do_not_explain_of_a_value_is_its_own():
    gram, marks = gaussian_kernel(20), np.array([1, 4, 11])
    found = couplings.Factors.of(gram[:, marks], np.diag(gram), 0.25, marks)
    whole = found.common @ found.common.T + np.diag(found.own)
    np.testing.assert_allclose(np.diag(whole), np.diag(gram) + 0.25)  # exact, as in FITC
    np.testing.assert_allclose(
        whole[:, marks] - 0.25 * np.eye(20)[:, marks], gram[:, marks], atol=1e-9
    )
    np.testing.assert_array_equal(found.own[marks], 0.25)


@pytest.mark.parametrize("n", [4, couplings.MAX_COORDINATES + 1, couplings.MAX_COORDINATES + 2])
def test_bounded_factors_keep_distances_of_few_values_and_lengths_of_many(n, monkeypatch):
    monkeypatch.setattr(couplings.Factors._leading, "__defaults__", (50,))
    rng = np.random.default_rng(n)
    f = rng.random(n)
    common, own = rng.normal(size=(n, 70)) * 0.9 ** np.arange(70), rng.random(n)
    own[1] = 0
    found = couplings.Factors(common, own).bounded(f)
    if n <= couplings.MAX_COORDINATES + 1:
        assert found.common.shape == (n, 70 + n - 1) and not found.own.any()
        whole = common @ common.T + np.diag(own)
        np.testing.assert_allclose(found.common @ found.common.T, whole, atol=1e-9)
        return
    share = f / f.sum()
    apart = common - share @ common
    s = np.linalg.svd(np.sqrt(share)[:, None] * apart, compute_uv=False)
    assert found.common.shape == (n, couplings.N_COMMON)
    leading = (np.sqrt(share)[:, None] * found.common).T @ (np.sqrt(share)[:, None] * found.common)
    np.testing.assert_allclose(leading, np.diag(s[: couplings.N_COMMON] ** 2), atol=1e-9)
    lengths = (found.common**2).sum(axis=1) + found.own
    np.testing.assert_allclose(lengths, (apart**2).sum(axis=1) + own)
    assert couplings.Factors(np.zeros((n, 0)), own).bounded(f).own is own
    few = couplings.Factors(common[:, :5], own).bounded(f)  # fewer directions than are kept
    assert few.common.shape == (n, couplings.N_COMMON) and not few.common[:, 5:].any()
    np.testing.assert_allclose(few.own, own, atol=1e-9)


def test_weights_of_kernels_by_name():
    counts = Counts.of(Table.of({"a": list("uv"), "b": list("xy")}))
    found = couplings.named_weights(counts, [["k", "l"], ["m"]], [np.array([1.0, 2.0]), np.ones(1)])
    assert found == {"a": {"k": 1.0, "l": 2.0}, "b": {"m": 1.0}}


def test_what_a_table_of_all_pairs_takes_is_told():
    counts = SimpleNamespace(sizes=np.array([3, 50_000]), names=["few", "many"])
    with pytest.raises(ValueError, match=r"column 'many' has 50000 values, .*\(20 GB\)"):
        couplings.check_table_size(counts, "DILCA")


def test_a_column_of_many_values_is_bounded_in_one_thread(monkeypatch):
    """Products of a few thousand rows: threads of BLAS would wait for each other."""
    inside = []
    signs = couplings.fix_signs
    monkeypatch.setattr(
        couplings, "fix_signs", lambda axes: inside.append(len(_compat._limited)) or signs(axes)
    )
    common = np.random.default_rng(0).normal(size=(500, 80))
    couplings.Factors(common, np.ones(500)).bounded(np.ones(500))
    assert inside == [1]


# -- what chance brings ----------------------------------------------------------------------------


def of_sizes(sizes, n, seed=0, skew=0.0):
    rng = np.random.default_rng(seed)
    columns = {}
    for size in sizes:
        p = 1.0 / np.arange(1, size + 1) ** skew
        columns[f"c{size}"] = rng.choice(size, n, p=p / p.sum()).astype(str)
    return columns


def nominal(columns):
    return Counts.of(Table.of(columns, dict.fromkeys(columns, "nominal")))


@pytest.mark.parametrize("n", [2, 7, 60, 1500])
@pytest.mark.parametrize("skew", [0.0, 1.2])
def test_information_of_shuffled_columns_is_that_of_scikit_learn(n, skew):
    """For any number of values: one, few, many, unique."""
    columns = of_sizes((1, 2, 3, 40, 900, 4000), n, skew=skew)
    columns["key"] = np.arange(n).astype(str)
    mean, variance = chance_information(nominal(columns))
    for a, x in enumerate(columns.values()):
        for b, y in enumerate(columns.values()):
            table = contingency_matrix(x, y, sparse=True)
            wanted = expected_mutual_information(table, n) if min(table.shape) > 1 else 0.0
            assert mean[a, b] == pytest.approx(wanted, rel=1e-4, abs=1e-9)
    assert (variance >= 0).all() and variance[-1].max() < 1e-12 and variance[0].max() == 0


def test_copies_are_adjusted_information_to_a_high_power():
    columns = of_sizes((2, 3, 40), 500)
    columns["copy"] = np.array([f"name {value}" for value in columns["c40"]])
    columns["near"] = np.where(np.arange(500) % 10 > 0, columns["c3"], "x")
    columns["key"] = np.arange(500).astype(str)
    counts = nominal(columns)
    mutual, marginal, _ = information(counts)
    alike = copies(counts, mutual, marginal, chance_information(counts)[0])
    for a, x in enumerate(columns.values()):
        for b, y in enumerate(columns.values()):
            adjusted = max(adjusted_mutual_info_score(x, y, average_method="max"), 0)
            assert alike[a, b] == pytest.approx(0 if a == b else adjusted**16, abs=1e-6)
    assert alike[2, 3] == pytest.approx(1) and alike[-1].max() < 1e-6


def test_information_of_all_orders_of_a_small_column():
    """The mean by going through them all."""
    from itertools import permutations

    x, y = list("aabbc"), list("uuvvv")
    by_hand = np.mean([mutual_info_score(order, y) for order in permutations(x)])
    mean, _ = chance_information(nominal({"x": x, "y": y}))
    assert mean[0, 1] == mean[1, 0] == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize(
    ("n", "sizes", "skew"),
    [(200, (2, 3), 0), (400, (2, 250), 0), (300, (16, 16), 0), (800, (400, 800), 0),
     (1000, (10, 30), 1.5), (1000, (16, 700), 0)],
)  # fmt: skip
def test_the_spread_of_information_is_that_of_shuffled_columns(n, sizes, skew):
    x, y = (of_sizes((size,), n, seed, skew)[f"c{size}"] for seed, size in enumerate(sizes))
    rng = np.random.default_rng(1)
    found = [mutual_info_score(rng.permutation(x), y) for _ in range(300)]
    mean, variance = (moment[0, 1] for moment in chance_information(nominal({"x": x, "y": y})))
    assert mean == pytest.approx(np.mean(found), abs=5 * np.std(found) / np.sqrt(300))
    assert np.sqrt(variance) == pytest.approx(np.std(found), rel=0.25)


def test_the_series_goes_on_where_the_sum_ends(monkeypatch):
    counts = nominal(of_sizes((2, 3, 4, 9), 20_000, skew=0.5))
    series = chance_information(counts)
    monkeypatch.setattr(couplings, "MAX_SUMMED_MEETINGS", 1 << 14)
    for ours, exact in zip(series, chance_information(counts), strict=True):
        np.testing.assert_allclose(ours, exact, rtol=2e-3)
    np.testing.assert_allclose(series[0], chance_information(counts)[0], rtol=1e-4)


def test_blocks_of_chance_change_nothing(monkeypatch):
    counts = nominal(of_sizes((2, 3, 40, 900), 1500, skew=1.0))
    whole = chance_information(counts)
    monkeypatch.setattr(couplings, "BLOCK_ENTRIES", 1)
    for moment, other in zip(whole, chance_information(counts), strict=True):
        np.testing.assert_allclose(moment, other, rtol=1e-12, atol=1e-18)


def test_chance_compiled_and_not_is_the_same_to_the_last_bit():
    rng = np.random.default_rng(0)
    n, (x, y) = np.full(500, 900.0), rng.integers(1, 480, (2, 500)).astype(float)
    x[:9], y[:5] = 1, 899
    logs = np.log(np.maximum(np.arange(1024), 1))
    margins = np.stack([x, y, n, np.log(x * y / n)])
    found = np.zeros((2, 2, 500))
    compiled = _compat.njit()(getattr(couplings._sum_meetings, "function", None)
                              or couplings._sum_meetings.py_func)  # fmt: skip
    for out, function in zip(found, (couplings._sum_meetings_plain, compiled), strict=True):
        function(margins, logs, out)
    np.testing.assert_array_equal(*found)


def test_decayed_counts_have_chances_of_as_many_whole_rows():
    columns = of_sizes((2, 5, 30), 600)
    counts = nominal(columns)
    half, same = counts.scaled(0.5), counts.scaled(1.0)
    np.testing.assert_array_equal(chance_information(same), chance_information(counts))
    mean, _ = chance_information(half)
    every_other = nominal({name: column[::2] for name, column in columns.items()})
    np.testing.assert_allclose(mean, chance_information(every_other)[0], rtol=0.15)
    tiny = counts.scaled(1e-6)  # nothing is known of columns that were hardly met
    mutual, marginal, _ = information(tiny)
    assert (couplings.corrected_uncertainty(tiny, mutual, marginal) < 0.02).all()


def test_sets_share_nothing_with_shuffled_columns():
    """In expectation: their elements meet other values as often as they are many."""
    rng = np.random.default_rng(0)
    sets = [sorted(set(rng.integers(0, 8, rng.integers(0, 4)).tolist())) for _ in range(400)]
    left = []
    for _ in range(40):
        table = Table.of({"s": sets, "a": rng.integers(0, 5, 400).astype(str)}, {"s": "set"})
        counts = Counts.of(table)
        mutual, _, _ = information(counts)
        mean, variance = chance_information(counts)
        left.append((mutual - mean)[0, 1] / np.sqrt(variance[0, 1]))
    assert abs(np.mean(left)) < 0.5 and 0.6 < np.std(left) < 1.6


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_what_near_values_tell_is_how_often_their_rows_agree(storage):
    """Against loops over pairs of rows."""
    rng = np.random.default_rng(0)
    rows = rows_of(3, n=40, sizes=(6, 3, 4))
    for i in (2, 5, 11):
        rows["c1"][i] = None
    counts = Counts.of(Table.of(rows)).present({"c1"})
    if storage == "sparse":
        counts = replace(counts, pairs=sparse.csr_array(counts.pairs))
    nearness = rng.random((6, 6)) * (rng.random((6, 6)) < 0.7)
    np.fill_diagonal(nearness, 0)
    nearness[4] = 0  # near to nothing: does not look
    asked = np.array([0, 2, 4, 5])
    told, variance = neighbor_information(counts, 0, asked, sparse.csr_array(nearness[asked]))
    code = [counts.labels[0].index(v) for v in rows["c0"]]
    for b in (1, 2):
        cells = rows[f"c{b}"]
        given = [i for i in range(40) if cells[i] is not None]
        shares, squares, lookers = 0.0, 0.0, 0
        for i in given:
            if code[i] not in asked:
                continue
            near = {j: nearness[code[i], code[j]] for j in given}
            total = sum(near.values())
            if total:
                lookers += 1
                shares += sum(w for j, w in near.items() if cells[j] == cells[i]) / total
                squares += sum(w * w for w in near.values()) / total**2
        f = np.unique([cells[i] for i in given], return_counts=True)[1] / len(given)
        n = len(given)
        chance = sum(c * n * (c * n - 1) for c in f) / (n * (n - 1))
        unit = -(f * np.log(f)).sum() / (1 - chance)
        assert told[b] == pytest.approx(unit * (shares / lookers - chance))
        pair = sum(f**2) + sum(f**2) ** 2 - 2 * sum(f**3)
        assert variance[b] == pytest.approx(unit**2 * 2 * squares / lookers**2 * pair)
