"""Non-BEND as published: one fit, features and column weights as printed."""

import numpy as np
import pytest
from scipy.special import digamma
from sklearn.utils.estimator_checks import parametrize_with_checks

import tabweave
from tabweave.embed.nonbend import VI, Gibbs
from tabweave.papers.categories import NonBEND, column_weight, pseudo_counts


def planted(seed=5, n=200, n_columns=4, n_values=4, k=3):
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(n_values, 0.2), size=(k, n_columns))
    below = np.cumsum(theta[rng.integers(k, size=n)], axis=2)
    return (rng.random((n, n_columns, 1)) * below[..., -1:] >= below).sum(axis=2)


@pytest.mark.parametrize("method", [VI(), Gibbs(max_iter=20)])
def test_distances_are_those_of_the_published_features(method):
    model = NonBEND(method, random_state=0).fit(planted())
    assert len(model.fits_) == 1
    for theta, name in zip(model.theta_, model.counts_.names, strict=True):
        n_values = theta.shape[1]
        w = np.mean([np.std(theta[:, v], ddof=1) for v in range(n_values)])  # (5.31)
        assert column_weight(theta.T) == pytest.approx(w)
        features = np.stack(
            [
                np.concatenate(
                    [
                        w * pi * np.exp(-theta[h, v]) * (1 - np.eye(n_values)[v])
                        for h, pi in enumerate(model.weights_)
                    ]
                )
                for v in range(n_values)
            ]
        )
        expected = np.linalg.norm(features[:, None] - features[None], axis=2)
        np.testing.assert_allclose(model.value_distances(name), expected, atol=1e-9)


def test_it_is_a_single_fit_with_weights():
    X = planted()
    engine = Gibbs(max_iter=20)  # which puts rows in one subspace each, as Algorithm 1 does
    weighted = NonBEND(engine, random_state=0).fit(X)
    plain = tabweave.NonBEND(engine, n_fits=1, schema="nominal", random_state=0).fit(X)
    assert weighted.trace_ == plain.trace_
    for theta, name in zip(plain.theta_, plain.counts_.names, strict=True):
        a, b = (model.value_distances(name).to_numpy() for model in (plain, weighted))
        np.testing.assert_allclose(b, a * column_weight(theta.T))


def test_theta_on_an_axis_of_each_value():
    model = NonBEND(Gibbs(max_iter=20), embedding="theta", random_state=0).fit(planted())
    for theta, name in zip(model.theta_, model.counts_.names, strict=True):
        features = np.hstack([np.diag(probabilities) for probabilities in theta])
        expected = np.linalg.norm(features[:, None] - features[None], axis=2)
        np.testing.assert_allclose(model.value_distances(name), expected, atol=1e-9)


def test_one_subspace_alone_leaves_columns_alike():
    assert column_weight(np.array([[0.25], [0.75]])) == 1.0


@parametrize_with_checks([NonBEND(VI(max_iter=20))])
def test_sklearn(estimator, check):
    check(estimator)


def test_rows_are_in_one_subspace_each():
    """Algorithm 2, (5.26), (5.27): counts of the likeliest subspaces, written out row by row."""
    X = planted(n=120)
    soft = tabweave.NonBEND(n_fits=1, schema="nominal", random_state=0).fit(X)
    hard = NonBEND(random_state=0).fit(X)
    fit, (found,) = soft.fits_[0], hard.fits_
    n, alpha, alpha0 = fit.sizes, 1.0, 0.1
    rest = np.append(np.cumsum(n[::-1])[::-1][1:], 0.0)
    log_v = digamma(1 + n) - digamma(1 + n + alpha + rest)
    log_v[-1] = 0.0
    log_rest = digamma(alpha + rest) - digamma(1 + n + alpha + rest)
    log_pi = log_v + np.append(0, np.cumsum(log_rest)[:-1])
    offsets = soft.counts_.offsets
    expected = {}
    for row in X:
        score = log_pi.copy()
        for a, v in enumerate(row):
            size = offsets[a + 1] - offsets[a]
            label = soft.counts_.labels[a].index(v)
            score += digamma(fit.counts[offsets[a] + label] + alpha0)
            score -= digamma(n + alpha0 * size)
        t = int(score.argmax())
        expected[t] = expected.get(t, 0) + 1
    assert sorted(found.sizes, reverse=True) == sorted(expected.values(), reverse=True)
    assert (found.counts == np.rint(found.counts)).all()
    np.testing.assert_allclose(hard.weights_, found.sizes / 120)


THREE = np.random.default_rng(0).integers(3, size=(60, 2))


def test_pseudo_counts_of_single_values():
    """Eq. (5.26) with a vector α₀, from the counts of the fit."""
    X = THREE
    alpha0 = {"x0": {0: 2.0, 2: 0.5}, "x1": 0.7}
    model = NonBEND(alpha0=alpha0, random_state=0).fit(X)
    (fit,) = model.fits_
    expected = {"x0": [2.0, 0.1, 0.5], "x1": [0.7] * 3}
    for a, name in enumerate(model.counts_.names):
        m = fit.counts[model.counts_.span(a)].T
        prior = np.array(expected[name])
        np.testing.assert_allclose(model.theta_[a], (prior + m) / (prior.sum() + m.sum(1))[:, None])


@pytest.mark.parametrize("method", ["vi", "gibbs"])
def test_equal_pseudo_counts_are_the_number(method):
    X = planted(n=80)
    one = NonBEND(method, alpha0=0.3, random_state=0).fit(X)
    many = NonBEND(method, alpha0=dict.fromkeys(one.counts_.names, 0.3), random_state=0).fit(X)
    np.testing.assert_allclose(one.transform(X), many.transform(X))


@pytest.mark.parametrize(
    ("alpha0", "told"),
    [
        ({"colour": 1.0}, "expected columns x0, x1, got 'colour'"),
        ({"x0": {9: 1.0}}, "alpha0 of column 'x0': expected its values, got 9"),
        ({"x1": {1: 0.0}}, "alpha0 of 1 in column 'x1': expected a number above 0, got 0.0"),
        ({"x1": "much"}, "expected a number above 0, got 'much'"),
    ],
)
def test_bad_pseudo_counts_are_named(alpha0, told):
    with pytest.raises(ValueError, match=told):
        NonBEND(alpha0=alpha0).fit(THREE)


def test_rows_of_batches_are_in_one_subspace_each():
    X = planted(n=240)
    (fit,) = NonBEND(random_state=0).fit_batches([X[:90], X[90:]]).fits_
    np.testing.assert_array_equal(fit.counts, np.rint(fit.counts))
    assert fit.sizes.sum() == 240


def test_true_and_1_have_pseudo_counts_of_their_own():
    counts = tabweave.Counts.of({"a": [True, 1, True, 2]})
    assert counts.labels == ((True, 1, 2),)
    assert pseudo_counts({"a": {1: 5.0, 2: 7.0}}, counts).tolist() == [0.1, 5.0, 7.0]
