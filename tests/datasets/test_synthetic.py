"""Drawn tables: the knobs do what they say, the rules hold in every row, the seed decides."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from tabweave.datasets import led24, make_codes, make_coupled, mofn_3_7_10, waveform


def information(data):
    """Mutual information of every column with the labels, in nats."""
    return np.array([mutual_info_score(data.y, column) for column in data.columns.values()])


def shares(data, column, values=5):
    cells = data.columns[column]
    return np.array([np.mean(cells == f"v{i}") for i in range(values)])


def test_coupling_raises_information():
    levels = [
        information(make_coupled(4000, 4, coupling=c, random_state=0)).mean()
        for c in (0.0, 0.3, 0.6, 0.9, 1.0)
    ]
    assert levels == sorted(levels)
    assert levels[0] < 0.01
    assert levels[-1] > 1.09  # log 3: the column tells the cluster


def test_uncoupled_columns_are_independent_of_each_other():
    data = make_coupled(20_000, 3, coupling=0.0, random_state=1)
    a, b, _ = data.columns.values()
    assert mutual_info_score(a, b) < 0.003
    np.testing.assert_allclose(shares(data, "c0"), 0.2, atol=0.015)


def test_coupling_is_the_share_of_favourites():
    data = make_coupled(20_000, 1, coupling=0.5, random_state=2)
    top = max(shares(data.select(data.y == "0"), "c0"))
    assert top == pytest.approx(0.5 + 0.5 / 5, abs=0.03)


def test_heterogeneity_makes_columns_differ():
    alike = make_coupled(5000, 30, coupling=0.6, random_state=3)
    unlike = make_coupled(5000, 30, coupling=0.6, heterogeneity=1.0, random_state=3)
    assert information(unlike).std() > 3 * information(alike).std()
    sizes = {len(set(column)) for column in unlike.columns.values()}
    assert len(sizes) > 3 and max(sizes) <= 10 and min(sizes) >= 2
    assert {len(set(column)) for column in alike.columns.values()} == {5}
    # Some columns follow another partition: nothing about the labels, much about each other.
    aside = [c for c, i in zip(unlike.columns, information(unlike), strict=True) if i < 0.01]
    assert 3 <= len(aside) <= 27
    pairs = [
        mutual_info_score(unlike.columns[a], unlike.columns[b])
        for i, a in enumerate(aside)
        for b in aside[:i]
    ]
    assert max(pairs) > 0.05


@pytest.mark.parametrize("coupling", [0.0, 0.8])
def test_drift_moves_the_distribution_linearly(coupling):
    data = make_coupled(60_000, 6, coupling=coupling, drift=1.0, random_state=4)
    parts = [data.select(slice(s, s + 10_000)) for s in (0, 25_000, 50_000)]
    for column in data.columns:
        first, middle, last = (shares(part.select(part.y == "0"), column) for part in parts)
        assert abs(first - last).sum() > 0.1
        np.testing.assert_allclose(middle, (first + last) / 2, atol=0.04)


def test_no_drift_no_move():
    data = make_coupled(40_000, 3, random_state=5)
    first, last = data.select(slice(0, 20_000)), data.select(slice(20_000, None))
    for column in data.columns:
        np.testing.assert_allclose(shares(first, column), shares(last, column), atol=0.02)


def test_missing_rate():
    data = make_coupled(20_000, 3, missing=0.25, random_state=6)
    rates = [np.mean([cell is None for cell in column]) for column in data.columns.values()]
    np.testing.assert_allclose(rates, 0.25, atol=0.015)


@given(
    n=st.integers(1, 30),
    columns=st.integers(1, 5),
    values=st.integers(2, 9),
    clusters=st.integers(1, 12),
    knobs=st.tuples(*[st.floats(0, 1)] * 4),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=50)
def test_any_knobs_give_a_valid_table(n, columns, values, clusters, knobs, seed):
    names = ("coupling", "heterogeneity", "drift", "missing")
    kwargs = dict(zip(names, knobs, strict=True))
    one = make_coupled(n, columns, values, clusters, **kwargs, random_state=seed)
    same = make_coupled(n, columns, values, clusters, **kwargs, random_state=seed)
    assert one.X.shape == (n, columns)
    assert np.array_equal(one.X, same.X) and np.array_equal(one.y, same.y)


def test_kinds_of_random_state():
    int_seed = make_coupled(20, random_state=7).X
    assert np.array_equal(int_seed, make_coupled(20, random_state=np.random.default_rng(7)).X)
    old = [make_coupled(20, random_state=np.random.RandomState(7)).X for _ in range(2)]
    assert np.array_equal(*old)
    shared = np.random.default_rng(7)
    tables = [make_coupled(20, random_state=shared).X for _ in range(2)]
    assert not np.array_equal(*tables)
    assert make_coupled(20).n_rows == 20
    with pytest.raises(TypeError, match=r"expected random_state .* got 'seven'"):
        make_coupled(20, random_state="seven")


@pytest.mark.parametrize("knob", ["coupling", "heterogeneity", "drift", "missing"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_fractions_are_checked(knob, value):
    with pytest.raises(ValueError, match=knob):
        make_coupled(10, **{knob: value})


def test_sizes_are_checked():
    with pytest.raises(ValueError, match="expected n_values of at least 2, got 1"):
        make_coupled(10, n_values=1)
    with pytest.raises(TypeError, match=r"expected n_columns to be an integer .* got True"):
        make_coupled(10, True)
    with pytest.raises(TypeError, match=r"expected coupling to be a number .* got 'much'"):
        make_coupled(10, coupling="much")


@pytest.mark.parametrize(
    ("n_values", "dtype"), [(2, "uint8"), (256, "uint8"), (257, "uint16"), (70_000, "uint32")]
)
def test_codes_layout(n_values, dtype):
    codes = make_codes(2000, 4, n_values, random_state=0)
    assert codes.shape == (2000, 4)
    assert codes.dtype == dtype
    assert codes.flags.f_contiguous
    assert codes.max() < n_values
    assert np.array_equal(codes, make_codes(2000, 4, n_values, random_state=0))


def test_codes_neighbours_depend_mildly():
    codes = make_codes(50_000, 3, 10, random_state=1)
    same = [np.mean(codes[:, 0] == codes[:, j]) for j in (1, 2)]
    assert same[0] == pytest.approx(0.3 + 0.7 / 10, abs=0.02)
    assert same[1] < same[0]
    np.testing.assert_allclose(np.bincount(codes[:, 2]) / 50_000, 0.1, atol=0.01)


def test_codes_refuse_too_many_values():
    with pytest.raises(ValueError, match=r"expected n_values of at most 2\*\*32"):
        make_codes(1, 1, 2**33)


# -- classic rules ------------------------------------------------------------------------------

SEGMENTS = {"1": "0010010", "7": "1010010", "8": "1111111"}
GENERATORS = [mofn_3_7_10, led24, waveform]
# Of the published files: names and kind of the columns; rows, means and variances of each class.
PUBLISHED = json.loads((Path(__file__).parent / "published.json").read_text())


def test_mofn_rule():
    data = mofn_3_7_10(2000, random_state=1)
    bits = data.X == "1"
    assert np.array_equal(data.y == "1", bits[:, 2:9].sum(axis=1) >= 3)
    assert abs(bits.mean() - 0.5) < 0.02
    assert abs(np.mean(data.y == "1") - 99 / 128) < 0.04


def test_led_without_noise_shows_digits():
    data = led24(500, noise=0.0, random_state=2)
    for label, shape in SEGMENTS.items():
        shown = data.select(data.y == label).X[:, :7]
        assert {"".join(row) for row in shown} == {shape}
    shapes = {(label, *row[:7]) for label, row in zip(data.y, data.X, strict=True)}
    assert len(shapes) == len({shape[1:] for shape in shapes}) == 10


def test_led_noise_rate_and_irrelevant_bits():
    data = led24(8000, noise=0.1, random_state=3)
    eights = data.select(data.y == "8").X == "1"
    assert abs(eights[:, :7].mean() - 0.9) < 0.02
    assert abs((data.X[:, 7:] == "1").mean() - 0.5) < 0.01


def test_waveform_means():
    data = waveform(9000, random_state=4)
    assert data.X.dtype == np.float64
    points = np.arange(1, 22)
    peaks = {"0": (7, 15), "1": (7, 11), "2": (11, 15)}
    for label, (first, second) in peaks.items():
        waves = [np.maximum(6 - abs(points - peak), 0) for peak in (first, second)]
        found = data.select(data.y == label).X.mean(axis=0)
        np.testing.assert_allclose(found, np.mean(waves, axis=0), atol=0.2)
    assert abs(data.columns["x1"].std() - 1) < 0.05  # no wave reaches the first point


@pytest.mark.parametrize("generator", GENERATORS)
def test_same_names_and_like_frequencies_as_the_published_file(generator):
    drawn, published = generator(5000, random_state=0), PUBLISHED[generator.__name__]
    assert drawn.feature_names == published["columns"]
    assert set(drawn.kinds.values()) == {published["kind"]}
    assert set(drawn.y) == published["classes"].keys()
    for label, theirs in published["classes"].items():
        ours = drawn.select(drawn.y == label).X.astype(float)
        noise = np.sqrt(ours.var(0) / len(ours) + np.array(theirs["var"]) / theirs["n"])
        assert np.all(abs(ours.mean(0) - theirs["mean"]) < 5 * noise + 1e-6)


@pytest.mark.parametrize("generator", GENERATORS)
def test_seed_decides(generator):
    one, same, other = (generator(50, random_state=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.X, same.X) and np.array_equal(one.y, same.y)
    assert not np.array_equal(one.X, other.X)


@pytest.mark.parametrize("generator", GENERATORS)
def test_bad_sizes(generator):
    with pytest.raises(ValueError, match="expected n of at least 1, got 0"):
        generator(0)
    with pytest.raises(TypeError, match=r"expected n to be an integer .* got 2\.5"):
        generator(2.5)


def test_bad_noise():
    with pytest.raises(ValueError, match=r"expected noise between 0 and 1, got 1\.5"):
        led24(10, noise=1.5)
