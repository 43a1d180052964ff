"""HELIC as published: Eq. (6.19), its gradient, and what Adam makes of it."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.utils.estimator_checks import check_estimator

from tabweave import Counts
from tabweave.counts.couplings import kernel_family
from tabweave.embed.helic import LINEAR, RowPairs
from tabweave.papers.categories import (
    HELIC,
    batch_gradient,
    descend_helic,
    hinge,
    kernel_columns,
    solve_helic,
)


def small(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = np.stack([y + rng.integers(2, size=n), rng.integers(4, size=n), y > rng.random(n)], axis=1)
    return X.astype(int).astype(str), y


def test_the_gradient_is_that_of_finite_differences():
    X, y = small()
    counts = Counts.of(X, y)
    pairs = HELIC().fit(X, y).pairs_
    features = [kernel_columns(counts, a, LINEAR, with_classes=True).stack for a in range(3)]
    batch = np.arange(len(pairs.weight))
    even = RowPairs(pairs.left, pairs.right, pairs.relation, np.full(len(batch), 1 / len(batch)))
    point = np.append(np.random.default_rng(3).random(sum(f.shape[1] for f in features)), 0.4)

    def value(x):
        squares = np.hstack(
            [(f[pairs.left[:, a]] - f[pairs.right[:, a]]) ** 2 for a, f in enumerate(features)]
        )
        return hinge(squares @ x[:-1], x[-1], x[:-1], even, 0.2)

    numeric = approx_fprime(point, value, 1e-8)
    np.testing.assert_allclose(
        batch_gradient(features, even, batch, point, 0.2), numeric, atol=1e-5
    )


def test_it_lowers_its_objective_and_stops():
    X, y = small()
    model = HELIC(random_state=0).fit(X, y)
    assert model.objective_[-1] <= model.objective_[0]
    assert min(min(w.values()) for w in model.weights_.values()) >= 0
    short = HELIC(max_iter=100, random_state=0).fit(X, y)
    assert len(short.objective_) == 2
    features = [
        kernel_columns(model.counts_, a, model._kernels(), with_classes=True).stack
        for a in range(3)
    ]
    few, _, trace = descend_helic(features, model.pairs_, 0.0, 60, 0)
    assert [len(w) for w in few] == [f.shape[1] for f in features] and len(trace) == 2


def test_linear_programming_reaches_the_least_objective():
    """No point near the solution has a lower one, and Adam's is above it."""
    X, y = small(30)
    solved = HELIC("linear", max_iter=None, sparsity=0.05, random_state=0).fit(X, y)
    descended = HELIC("linear", max_iter=3000, sparsity=0.05, random_state=0).fit(X, y)
    assert solved.objective_[0] <= min(descended.objective_) + 1e-9
    pairs = solved.pairs_
    stacks = [kernel_columns(solved.counts_, a, LINEAR, with_classes=True).stack for a in range(3)]
    squares = np.hstack(
        [(s[pairs.left[:, a]] - s[pairs.right[:, a]]) ** 2 for a, s in enumerate(stacks)]
    )
    weights, b, trace = solve_helic(stacks, pairs, 0.05)
    point = np.append(np.concatenate(weights), b)

    def value(x):
        return hinge(squares @ x[:-1], x[-1], x[:-1], pairs, 0.05)

    assert value(point) == pytest.approx(trace[0])
    rng = np.random.default_rng(0)
    for _ in range(200):
        near = point + rng.normal(0, 0.05, len(point))
        near[:-1] = np.maximum(near[:-1], 0)
        assert value(near) >= trace[0] - 1e-9
    alone = HELIC("linear", max_iter=None).fit(X, np.zeros(len(X)))
    assert alone.objective_ == [] and np.isfinite(alone.transform(X)).all()


def test_one_class_leaves_weights_where_they_start():
    X, _ = small()
    model = HELIC().fit(X, np.zeros(len(X)))
    assert model.objective_ == [] and not model.pairs_.weight.any()
    assert np.isfinite(model.transform(X)).all()


def test_a_column_of_many_values_is_an_error():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=4000)
    X = np.column_stack([rng.integers(600, size=4000) * 2 + y, rng.integers(3, size=4000)])
    with pytest.raises(ValueError, match=r"'x0': expected at most 512 values, got 1\d\d\d"):
        HELIC(n_pairs=1000).fit(X, y)


@pytest.mark.parametrize(
    "wrong", [{"kernels": "hc"}, {"sparsity": -1}, {"n_pairs": 0}, {"max_iter": 0}]
)
def test_wrong_parameters_are_named(wrong):
    X, y = small()
    with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter of HELIC"):
        HELIC(**wrong).fit(X, y)


def test_scikit_learn_s_checks():
    check_estimator(HELIC("linear", max_iter=51, n_pairs=200), on_skip=None)


def test_adam_by_hand():
    """Section 6.4.1 once more: steps of 10⁻³, 20 pairs each, β = (0.9, 0.999), ω ≥ 0, b free."""
    X, y = small()
    counts = Counts.of(X, y)
    pairs = HELIC().fit(X, y).pairs_
    features = [kernel_columns(counts, a, LINEAR, with_classes=True).stack for a in range(3)]
    squares = np.hstack(
        [(f[pairs.left[:, a]] - f[pairs.right[:, a]]) ** 2 for a, f in enumerate(features)]
    )
    point = np.append(np.ones(squares.shape[1]), pairs.weight @ squares.sum(axis=1))
    rng, mean, size = np.random.default_rng(5), 0.0, 0.0
    for step in range(1, 51):
        batch = rng.choice(len(pairs.weight), 20, p=pairs.weight)
        relation = pairs.relation[batch]
        active = 1 + relation * (squares[batch] @ point[:-1] - point[-1]) > 0
        gradient = np.append(
            (relation * active) @ squares[batch] / 20 + 0.3, -(relation * active).sum() / 20
        )
        mean, size = 0.9 * mean + 0.1 * gradient, 0.999 * size + 0.001 * gradient**2
        move = mean / (1 - 0.9**step) / (np.sqrt(size / (1 - 0.999**step)) + 1e-8)
        point = point - 1e-3 * move
        point[:-1] = np.maximum(point[:-1], 0)
    weights, b, trace = descend_helic(features, pairs, 0.3, 51, 5)
    assert trace[1] < trace[0]  # so the second look is what is returned
    np.testing.assert_allclose(np.concatenate(weights), point[:-1], rtol=1e-10)
    assert b == pytest.approx(point[-1])


def test_the_penalty_is_one_over_the_number_of_kernels():
    X, y = small()
    model = HELIC("linear", max_iter=1, random_state=0).fit(X, y)
    columns = [kernel_columns(model.counts_, a, LINEAR, with_classes=True) for a in range(3)]
    pairs = model.pairs_
    squares = np.hstack(
        [
            (c.stack[pairs.left[:, a]] - c.stack[pairs.right[:, a]]) ** 2
            for a, c in enumerate(columns)
        ]
    )
    d = squares.sum(axis=1)
    slack = np.maximum(1 + pairs.relation * (d - pairs.weight @ d), 0)
    n_kernels = sum(len(c.names) for c in columns)
    expected = pairs.weight @ slack + squares.shape[1] / n_kernels
    assert model.objective_[0] == pytest.approx(expected)
    stiff = HELIC("linear", sparsity=2.0, max_iter=1, random_state=0).fit(X, y)
    assert stiff.objective_[0] == pytest.approx(pairs.weight @ slack + 2 * squares.shape[1])


def test_kernels_are_1_at_most_unless_raw_ones_are_asked_for():
    """Polynomials of p(v|w), whose squares add up to more than 1, would own the distance."""
    X, y = small()
    model = HELIC(max_iter=1, random_state=0).fit(np.repeat(X, 3, axis=1), y)
    bounded, raw = (
        kernel_columns(model.counts_, 0, kernels, with_classes=True)
        for kernels in (model._kernels(), HELIC(kernel_family())._kernels())
    )
    assert bounded.names == raw.names and bounded.stack.max() == pytest.approx(1)
    assert raw.stack.max() > 1.5
