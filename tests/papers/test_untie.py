"""UNTIE as published: its gradient, its representation, and where it leads."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from tabweave import Counts, OneHot, Table, papers
from tabweave.counts import counting, couplings
from tabweave.datasets import make_coupled
from tabweave.embed.nonbend import WeightedRows
from tabweave.papers.categories import (
    BOUNDED,
    UNTIE,
    descend_in_batches,
    descend_untie,
    gradient,
    kernel_columns,
    solve_untie,
)

SMALL = couplings.kernel_family((0.25, 1.0, 4.0), (1, 2))


def table(seed=0, n=50, columns=3):
    return make_coupled(n, columns, n_values=4, coupling=0.6, random_state=seed).X


def prepared(seed, kernels=SMALL):
    X = table(seed)
    counts = Counts.of(Table.of(X))
    Z = OneHot().fit_transform(X)
    columns = [kernel_columns(counts, a, kernels) for a in range(len(counts.names))]
    edges = np.cumsum([0] + [c.stack.shape[1] for c in columns])
    wide = np.hstack([Z[:, counts.span(a)] @ c.stack for a, c in enumerate(columns)])
    return counts, columns, edges, wide


@pytest.mark.parametrize("seed", range(2))
def test_the_gradient_is_that_of_the_dense_objective(seed):
    counts, columns, edges, X = prepared(seed)
    k = 3
    omega = np.random.default_rng(seed).uniform(0.5, 1.5, X.shape[1])
    S = (X * omega) @ X.T
    H = np.linalg.eigh(S)[1][:, ::-1][:, :k]

    def objective(w):  # H fixed
        return np.trace((X * w) @ X.T @ (np.eye(len(X)) - H @ H.T))

    slopes = gradient(counts, columns, omega, edges, k)
    scale = max(1.0, np.abs(slopes).max())
    for p in range(0, len(omega), 7):
        step = np.zeros_like(omega)
        step[p] = 1e-3
        slope = (objective(omega + step) - objective(omega - step)) / 2e-3
        assert slopes[p] == pytest.approx(slope, abs=1e-8 * scale)
    exact = (X**2).sum(axis=0) - ((H.T @ X) ** 2).sum(axis=0)
    assert np.allclose(slopes, exact, atol=1e-8 * scale)
    assert omega @ slopes == pytest.approx(objective(omega), rel=1e-9)


def test_erratum_the_gradient_is_never_negative_and_zero_is_the_minimum():
    counts, columns, edges, X = prepared(3)
    rng = np.random.default_rng(0)
    for _ in range(5):
        omega = rng.exponential(size=X.shape[1])
        slopes = gradient(counts, columns, omega, edges, 2)
        assert (slopes >= 0).all()
        value = omega @ slopes
        smaller = gradient(counts, columns, omega / 2, edges, 2) @ (omega / 2)
        assert smaller == pytest.approx(value / 2) and value > 0  # it scales: 0 is the least
    omegas, trace = descend_untie(counts, columns, 2, 10)
    assert all((w < 1).all() for w in omegas)  # Adam walks towards 0
    ones = np.ones(X.shape[1])
    assert trace[0] == pytest.approx(ones @ gradient(counts, columns, ones, edges, 2))


def test_the_representation_is_7_23():
    X = table(2)
    untie = UNTIE(3, batch_size=None, kernels=SMALL, max_iter=2).fit(X)
    counts, columns, _, wide = prepared(2)
    omegas, _ = descend_untie(counts, columns, 3, 2)
    x = wide * np.sqrt(np.concatenate(omegas))
    expected = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    assert np.allclose(untie.pairwise_distances(X) ** 2, expected, atol=1e-8)


def test_more_clusters_than_the_kernel_has_directions():
    X = {"a": list("uvuvuvuv"), "b": list("xxyyxxyx")}
    untie = UNTIE(8, kernels=SMALL, max_iter=3).fit(X)
    assert np.allclose(untie.objective_, 0, atol=1e-9)  # H explains everything
    assert np.isfinite(untie.transform(X)).all()


def test_a_column_of_many_values_is_an_error():
    X = {"id": [str(i) for i in range(600)], "a": ["x", "y"] * 300}
    with pytest.raises(ValueError, match=r"'id': expected at most 512 values, got 600.*Weave"):
        UNTIE(2).fit(X)


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_never_rises(seed):
    untie = UNTIE(3, batch_size=None, max_iter=15).fit(table(seed, n=120, columns=6))
    assert (np.diff(untie.objective_) <= 1e-9 * np.abs(untie.objective_[0])).all()
    assert untie.n_iter_ == len(untie.objective_) > 1


def test_the_kernels_are_those_given():
    X = table(1, n=80)
    untie = papers.UNTIE(3, kernels=SMALL, max_iter=3).fit(X)
    assert np.isfinite(untie.transform(X)).all()
    used = {key.split("/")[1] for column in untie.weights_.values() for key in column}
    assert used == set(SMALL)


def test_a_column_with_one_value_is_kept_and_adds_nothing():
    X = {"same": ["x"] * 6, "a": list("uvuvww"), "b": list("ppqqpp")}
    untie = UNTIE(2, max_iter=3).fit(X)
    assert list(untie.weights_) == ["same", "a", "b"]
    assert not np.abs(untie.tables_.tables[0]).max(initial=0) > 1e-7
    assert UNTIE(2).fit_transform({"same": ["x"] * 6}).shape == (6, 0)


def test_one_column_and_two_rows():
    lone = UNTIE(2, max_iter=3).fit_transform({"a": list("uvvwww")})
    assert len(np.unique(lone.round(8), axis=0)) == 3
    two = UNTIE(2, max_iter=3).fit_transform({"a": list("uv"), "b": list("xy")})
    assert len(two) == 2 and np.isfinite(two).all()


def test_sparse_counts_give_the_same(monkeypatch):
    X = table(2)
    dense = UNTIE(3, batch_size=None, max_iter=5).fit(X)
    monkeypatch.setattr(counting, "DENSE_VALUES", 0)
    thin = UNTIE(3, batch_size=None, max_iter=5).fit(X)
    assert not isinstance(thin.counts_.pairs, np.ndarray)
    assert np.allclose(thin.objective_, dense.objective_, atol=1e-8)
    assert np.allclose(thin.pairwise_distances(X), dense.pairwise_distances(X), atol=1e-7)


def test_scikit_learn_accepts_it():
    why = "the check sets n_clusters to 1, which is an error"
    names = (
        "check_dont_overwrite_parameters",
        "check_methods_subset_invariance",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
    )
    check_estimator(
        UNTIE(n_clusters=2, kernels=SMALL, max_iter=2),
        expected_failed_checks=dict.fromkeys(names, why),
        on_skip=None,
    )


def test_adam_moves_a_weight_by_a_thousandth_a_step():
    """While the gradient stays the same, Adam's step is its rate, whatever the gradient's size."""
    counts, columns, edges, _ = prepared(1)
    slopes = gradient(counts, columns, np.ones(edges[-1]), edges, 2)
    omegas, _ = descend_untie(counts, columns, 2, 1)
    moved = 1 - np.concatenate(omegas)
    np.testing.assert_allclose(moved[slopes > 1e-3], 20 * 1e-3, rtol=1e-4)


@pytest.mark.parametrize("size", [2, 20])
def test_a_batch_is_a_small_table_of_its_own(size):
    """(7.24) of some rows, their own eigenvectors in H; Adam by hand."""
    counts, columns, _, wide = prepared(0)
    codes = np.stack(counts.vocabulary.codes(Table.of(table(0))), axis=1)
    rows = WeightedRows.of(Table.of(table(0)), counts, None)
    omegas, trace = descend_in_batches(rows, columns, 2, 2, size, np.random.default_rng(4))
    of_row = {tuple(code): x for code, x in zip(codes.tolist(), wide, strict=True)}
    cells = (rows.cells - counts.offsets[:-1]).tolist()
    rng, omega, mean, square, losses = np.random.default_rng(4), np.ones(wide.shape[1]), 0, 0, []
    for step in range(1, 41):
        drawn = rng.choice(len(cells), size, p=rows.weight / rows.weight.sum())
        X = np.array([of_row[tuple(cells[i])] for i in drawn])
        H = np.linalg.eigh((X * omega) @ X.T)[1][:, -2:]
        slope = np.maximum(np.diag(X.T @ (np.eye(size) - H @ H.T) @ X), 0)
        losses.append(omega @ slope)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        move = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        omega = np.maximum(omega - 1e-3 * move, 0)
    np.testing.assert_allclose(np.concatenate(omegas), omega, atol=2e-4 if size == 2 else 1e-9)
    np.testing.assert_allclose(trace, np.reshape(losses, (2, 20)).mean(axis=1), atol=1e-6)


def test_batches_stop_when_the_loss_does():
    counts, columns, _, _ = prepared(0)
    rows = WeightedRows.of(Table.of(table(0)), counts, None)
    _, trace = descend_in_batches(rows, columns, 2, 500, 20, np.random.default_rng(0))
    change = np.abs(np.diff(trace)) / trace[:-1]
    assert len(trace) < 500 and change[-1] <= 0.01 and (change[:-1] > 0.01).all()


def test_polynomials_are_bounded():
    counts = Counts.of(Table.of(table(0)))
    for a in range(3):
        stack = kernel_columns(counts, a, BOUNDED).stack
        assert np.abs(stack).max() <= 1 + 1e-12
    x, y = np.array([3.0, 4.0]), np.array([4.0, 3.0])
    found = couplings.bounded_polynomial(
        np.array(x @ y), np.array(x @ x), np.array(y @ y), degree=2
    )
    assert found == pytest.approx((24 / 25) ** 2)


def test_batches_need_rows_and_exact_gradients_do_not():
    X = table(0)
    with pytest.raises(TypeError, match="expected rows, got counts: UNTIE"):
        UNTIE(3).fit_counts(Counts.of(Table.of(X)))
    assert UNTIE(3, batch_size=None, max_iter=2).fit_counts(Counts.of(Table.of(X))).n_iter_ == 2
    whole = UNTIE(3, kernels=SMALL, max_iter=2, random_state=0).fit(X)
    parts = UNTIE(3, kernels=SMALL, max_iter=2, random_state=0)
    parts.partial_fit(X[:20]).partial_fit(X[20:]).learn()
    np.testing.assert_allclose(parts.pairwise_distances(X), whole.pairwise_distances(X), atol=1e-9)


def test_linear_programming_of_equation_7_24_ends_at_nothing():
    """The gradient is never below 0, so ω = 0 solves what is printed; a sum goes to one column."""
    counts, columns, edges, _ = prepared(0)
    slope = gradient(counts, columns, np.ones(edges[-1]), edges, 3)
    assert (slope >= 0).all() and not solve_untie(slope).any()
    fixed = solve_untie(slope, total=3.0)
    assert fixed.sum() == pytest.approx(3) and slope @ fixed == pytest.approx(3 * slope.min())
