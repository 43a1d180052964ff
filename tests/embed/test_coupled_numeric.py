import numpy as np
import pytest
from scipy.stats import pearsonr
from sklearn.utils.estimator_checks import parametrize_with_checks

from tabweave.embed.coupled_numeric import CoupledNumeric, PowerMoments, affine_powers, powers

SCALES = ["minmax", "standard", None]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[:, 1] += X[:, 0] ** 2
    X[:100] *= 0.1
    return X


@parametrize_with_checks([CoupledNumeric()])
def test_sklearn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("gaps", [False, True])
def test_correlations_are_pearsons_over_rows_that_have_both(rows, gaps):
    if gaps:
        rows[np.random.default_rng(1).random(rows.shape) < 0.2] = np.nan
    model = CoupledNumeric(3, scale=None, alpha=1.0).fit(rows)
    P = powers(rows, 3).reshape(len(rows), -1)
    for i in range(P.shape[1]):
        for j in range(i):
            both = ~np.isnan(P[:, i]) & ~np.isnan(P[:, j])
            r, p = pearsonr(P[both, i], P[both, j])
            assert model.correlations_[i, j] == pytest.approx(r, abs=1e-12)
            assert model.p_values_[i, j] == pytest.approx(p, abs=1e-12)


def test_only_significant_correlations_are_kept(rows):
    model = CoupledNumeric(2, alpha=0.01).fit(rows)
    off = ~np.eye(8, dtype=bool)
    assert (model.correlations_[off & (model.p_values_ >= 0.01)] == 0).all()
    assert (model.correlations_[off & (model.p_values_ < 0.01)] != 0).all()
    assert (np.diagonal(model.correlations_) == 1).all()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("L", [1, 4, 10])
def test_chunked_and_merged_equal_whole(rows, scale, L):
    rows[np.random.default_rng(1).random(rows.shape) < 0.1] = np.nan
    whole = CoupledNumeric(L, scale=scale).fit(rows)
    chunked = CoupledNumeric(L, scale=scale)
    for start in range(0, 300, 37):
        chunked.partial_fit(rows[start : start + 37])
    parts = [CoupledNumeric(L, scale=scale).fit(part) for part in (rows[:120], rows[120:])]
    expected = whole.transform(rows)
    assert not hasattr(chunked, "correlations_")  # asking does not learn
    for other in (chunked, parts[0] + parts[1], parts[1] + parts[0]):
        other.learn()
        np.testing.assert_allclose(other.correlations_, whole.correlations_, atol=1e-11)
        np.testing.assert_allclose(other.transform(rows), expected, rtol=1e-9, atol=1e-9)


def test_a_batch_may_be_too_small_to_learn_from(rows):
    model = CoupledNumeric(2).partial_fit(rows[:1])
    with pytest.raises(
        ValueError, match="expected 3 numbers or more for a correlation, got n_samples=1"
    ):
        model.transform(rows)
    expected = CoupledNumeric(2).fit(rows).transform(rows)
    np.testing.assert_allclose(model.partial_fit(rows[1:]).transform(rows), expected)


def test_standardized_coordinates(rows):
    Z = CoupledNumeric(3, standardize=True).fit_transform(rows)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0, ddof=1), 1)


def test_parts_add_up(rows):
    rows[0, 0] = np.nan
    for standardize in (False, True):
        model = CoupledNumeric(3, standardize=standardize).fit(rows)
        a, b = rows[:5], rows[5:10]
        apart = (model.parts(a) - model.parts(b)).sum(axis=0)
        np.testing.assert_allclose(apart, model.transform(a) - model.transform(b), atol=1e-12)


def test_missing_takes_the_mean_of_each_power(rows):
    model = CoupledNumeric(2, scale=None).fit(rows)
    gap = np.full((1, 4), np.nan)
    np.testing.assert_allclose(model.transform(gap)[0], model.transform(rows).mean(axis=0))


def test_names_and_blocks():
    rows = {"sepal_width": [1.0, 2.0, 4.0, 3.0], "sepal_length": [2.0, 3.0, 4.0, 9.0]}
    model = CoupledNumeric(2).fit(rows)
    names = ["sepal_width", "sepal_width^2", "sepal_length", "sepal_length^2"]
    assert model.get_feature_names_out().tolist() == names
    R = model.correlations_
    assert np.array_equal(model.intra("sepal_length"), R[2:, 2:])
    assert np.array_equal(model.inter("sepal_length"), R[2:, :2])
    with pytest.raises(KeyError, match=r"expected a column of .*got 'petal'"):
        model.inter("petal")


def test_high_powers_do_not_overflow_unless_asked_to():
    X = np.random.default_rng(0).normal(size=(50, 2)) * 1e30
    assert np.isfinite(CoupledNumeric(10).fit_transform(X)).all()
    with pytest.raises(ValueError, match=r"column 'x0': .* overflows at power 10; use scale"):
        CoupledNumeric(10, scale=None).fit(X)
    model = CoupledNumeric(10).fit(X)
    X[3, 1] = 1e300
    with pytest.raises(ValueError, match=r"column .x1.: 1e.300 overflows at power 10"):
        model.transform(X)


def test_what_has_no_correlation_is_refused_by_name():
    with pytest.raises(
        ValueError, match="column 'b': expected different numbers, got 7 in all 5 rows"
    ):
        CoupledNumeric().fit({"a": [1, 2, 3, 4, 5], "b": [7, 7, 7, 7, 7]})
    with pytest.raises(ValueError, match="column 'a': row 1 holds inf"):
        CoupledNumeric().fit({"a": [1.0, np.inf, 2.0]})
    with pytest.raises(
        ValueError, match=r"column .a.: expected numbers up to 8e.307, got 1.7e.308; scale it"
    ):
        CoupledNumeric().fit({"a": [1.7e308, -1.7e308, 2.0]})
    with pytest.raises(TypeError, match="column 'a' is nominal; CoupledNumeric reads numbers"):
        CoupledNumeric().fit({"a": ["x", "y", "z"]})


@pytest.mark.parametrize(
    "bad",
    [{"max_power": 0}, {"max_power": 2.5}, {"alpha": 0}, {"alpha": "x"}, {"scale": "max"}],
)
def test_bad_parameters(bad, rows):
    (name,) = bad
    with pytest.raises(ValueError, match=f"{name}.* parameter of CoupledNumeric must be"):
        CoupledNumeric(**bad).fit(rows)


def test_other_columns_cannot_be_added(rows):
    a = CoupledNumeric(2).fit({"a": rows[:, 0], "b": rows[:, 1]})
    with pytest.raises(ValueError, match=r"expected columns .*'b'.* got .*'c'"):
        a + CoupledNumeric(2).fit({"a": rows[:, 0], "c": rows[:, 1]})
    with pytest.raises(ValueError, match="the same columns, powers and scale"):
        a + CoupledNumeric(3).fit({"a": rows[:, 0], "b": rows[:, 1]})


def test_affine_powers():
    u = np.random.default_rng(0).random((6, 2))
    shift, factor = np.array([0.5, -1.0]), np.array([2.0, 3.0])
    constant, T = affine_powers(shift, factor, 5)
    direct = powers(shift + factor * u, 5)
    np.testing.assert_allclose(constant + np.einsum("apq,naq->nap", T, powers(u, 5)), direct)


def test_moments_of_nothing_and_of_empty_columns(rows):
    rows[:, 2] = np.nan
    a = PowerMoments.of(rows[:100], 2)
    rows[100:, 2] = np.arange(200)
    b = PowerMoments.of(rows[100:], 2)
    assert (a + b).low[2] == 0 and (a + b).n[2, 2] == 200
    np.testing.assert_allclose((a + b).mean[2, 2], b.mean[2, 2])
