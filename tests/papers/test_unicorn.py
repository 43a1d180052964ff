"""UNICORN as published: Eq. (8.18) in count space against the n × n kernel, and streams."""

import numpy as np
import pytest
from scipy.linalg import block_diag
from sklearn.utils.estimator_checks import check_estimator

import tabweave
from tabweave import Counts, OneHot, Table
from tabweave.counts.couplings import kernel_family
from tabweave.datasets import led24
from tabweave.papers.categories import (
    UNICORN,
    Window,
    WindowBefore,
    descend_unicorn,
    family_of,
    kernel_columns,
    objective,
)

FEW = kernel_family([0.5, 2.0], [1])


def windows(n=4, size=150, seed=0):
    X = led24(n * size, random_state=seed).X
    return [X[i * size : (i + 1) * size] for i in range(n)]


def streamed(parts, **options):
    model = UNICORN(**options)
    for part in parts:
        model.partial_fit(part)
    model.learn()
    return model


@pytest.mark.parametrize("literal", [False, True])
def test_equation_8_18_is_exact_in_count_space(literal):
    X = windows(1, 60)[0]
    counts = Counts.of(Table.of(X, numbers="nominal"))
    columns = [kernel_columns(counts, a, FEW) for a in range(len(counts.names))]
    rng = np.random.default_rng(0)
    omegas = [rng.random(c.stack.shape[1]) for c in columns]
    one_hot = OneHot().fit(X)
    other = WindowBefore(counts, one_hot.tables_).gram(counts)
    window = Window.of(counts, None, 1.0, literal)
    value, gradient = objective(columns, omegas, window, other, 0.3)
    Z, H = (
        np.hstack([codes[:, None] == np.unique(codes) for codes in X.T]).astype(float),
        np.eye(60),
    )
    H = H - 1 if literal else H - 1 / 60
    G = block_diag(*(c.gram(w) for c, w in zip(columns, omegas, strict=True)))
    raw = Z @ G @ Z.T
    S, T = H @ raw @ H, H @ Z @ other @ Z.T @ H
    size, own = np.linalg.norm(S), np.linalg.norm(T)
    first = 60 * (1 - raw.sum() / 60) if literal else np.trace(S)
    expected = first / (size * np.sqrt(59)) - 0.3 * np.trace(H @ raw @ H @ T) / (size * own)
    assert value == pytest.approx(expected)
    step = 1e-6
    moved = [w.copy() for w in omegas]
    moved[3][-1] += step
    index = sum(map(len, omegas[:4])) - 1
    slope = (objective(columns, moved, window, other, 0.3)[0] - value) / step
    assert gradient[index] == pytest.approx(slope, rel=1e-3, abs=1e-10)


def test_polynomials_are_bounded_as_those_of_untie_are():
    X = windows(1, 60)[0]
    counts, names = Counts.of(Table.of(X, numbers="nominal")), family_of(None)
    bounded, raw = (kernel_columns(counts, 0, kernels) for kernels in (names, kernel_family()))
    assert bounded.names == raw.names and bounded.stack.max() == pytest.approx(1)
    assert raw.stack.max() > 100  # x·y of 23 columns, to the third power
    weights = UNICORN().fit(X).weights_["x0"]
    assert set(weights) == set(bounded.names)


def test_it_looks_at_the_objects_of_the_last_window():
    first, second = windows(2, 60)
    a, b = (Counts.of(Table.of(x, numbers="nominal")) for x in (first, second))
    prior = WindowBefore(a, OneHot().fit(first).tables_)
    window, alone = Window.of(a + b, prior, 1.0, False), Window.of(b, None, 1.0, False)
    assert window.n == 60
    np.testing.assert_allclose(window.scatter, alone.scatter)


def test_it_descends_and_resumes_to_the_bit(tmp_path):
    parts = windows(3, 60)
    options = {"delta": 0.5, "kernels": FEW}
    stream = streamed(parts[:2], **options)
    assert stream.objective_[-1] < stream.objective_[0]
    assert set(stream.weights_["x0"]) >= {"intra/gauss0.5", "inter/poly1"}
    stream.save(tmp_path / "u")
    again = UNICORN(**options).resume(tmp_path / "u")
    for model in (stream, again):
        model.partial_fit(parts[2])
    np.testing.assert_array_equal(stream.transform(parts[0]), again.transform(parts[0]))
    assert stream.objective_ == again.objective_


def test_delta_pulls_towards_the_last_representation():
    parts = windows(2, 80)
    free, held = (streamed(parts, kernels=FEW, delta=d) for d in (0, 50))
    assert free.objective_ != held.objective_


def test_it_is_not_the_other_unicorn(tmp_path):
    stream = streamed(windows(2, 60), kernels=FEW)
    stream.save(tmp_path / "u")
    assert type(tabweave.load(tmp_path / "u")) is UNICORN
    with pytest.raises(ValueError, match=r"expected a UNICORN, got a papers\.UNICORN"):
        tabweave.UNICORN().resume(tmp_path / "u")


@pytest.mark.parametrize(
    ("options", "name"),
    [({"delta": -1}, "delta"), ({"sigma": "large"}, "sigma"), ({"decay": 1.5}, "decay")],
)
def test_bad_parameters(options, name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of UNICORN"):
        UNICORN(**options).fit(windows(1)[0])


@pytest.mark.slow
def test_scikit_learn_accepts_it():
    check_estimator(UNICORN(kernels=FEW), on_skip=None)


def test_a_window_takes_the_steps_of_section_8_4_2():
    model = streamed(windows(2, 60), kernels=FEW)
    assert len(model.objective_) == 250
    counts = Counts.of(Table.of(windows(1, 60)[0], numbers="nominal"))
    columns = [kernel_columns(counts, a, FEW) for a in range(len(counts.names))]
    window = Window.of(counts, None, 1.0, False)
    omegas, trace = descend_unicorn(columns, window, None, 0.0, 0.5)
    assert len(trace) == 250 and trace[-1] < trace[0]
    moved = np.abs(np.concatenate(omegas) - 1)
    assert 0.2 < moved.max() <= 0.251  # at most 10⁻³ a step


def test_to_the_letter_it_learns_something_else():
    parts = windows(2, 60)
    plain, literal = (streamed(parts, kernels=FEW, literal=x) for x in (False, True))
    assert len(literal.objective_) == 250 and literal.objective_[-1] < literal.objective_[0]
    assert literal.objective_ != plain.objective_
    first = streamed(parts[:1], kernels=FEW, literal=True, sigma=0.0)
    assert first.objective_[-1] >= -60 / 59**2.5
