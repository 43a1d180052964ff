"""Bayesian matrix factorisation: its draws against closed forms, groups, errors, files."""

import numpy as np
import pytest
from sklearn import mixture
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from tabweave import OneHot
from tabweave.papers.recommend import (
    MatrixFactorization,
    RatedSide,
    Ratings,
    draw_factors,
    draw_prior,
    find_groups,
    load_movielens,
    make_ratings,
)


def split(data, share=0.8, seed=0):
    n = len(data.ratings)
    order = np.random.default_rng(seed).permutation(n)
    cut = int(share * n)
    return order[:cut], order[cut:]


# -- the conditionals --------------------------------------------------------------------------


def test_factors_follow_their_gaussian_conditional():
    rng = np.random.default_rng(0)
    d, n = 3, 100_000
    other = rng.normal(size=(4, d))
    partners, residuals = np.array([0, 2, 3]), np.array([1.0, -0.5, 2.0])
    mean, root = np.array([[0.3, -0.2, 0.1]]), rng.normal(size=(d, d))
    prior = (root @ root.T + np.eye(d))[None]
    beta = 1.7
    starts = 3 * np.arange(n + 1)
    own = Ratings(starts, np.tile(partners, n), np.tile(residuals, n))
    none = np.zeros(n, np.intp)
    side = RatedSide(np.arange(n), none, np.zeros((n, d)), mean, prior, [])
    drawn = draw_factors(own, other, beta, side, rng.normal(size=(n, d)))
    V = other[partners]
    precision = prior[0] + beta * V.T @ V
    expected = np.linalg.solve(precision, prior[0] @ mean[0] + beta * V.T @ residuals)
    np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.01)
    np.testing.assert_allclose(np.cov(drawn.T), np.linalg.inv(precision), atol=0.01)


def test_priors_follow_the_gaussian_wishart():
    rng = np.random.default_rng(1)
    members = rng.normal(size=(30, 2)) + np.array([1.0, -1.0])
    draws = [draw_prior(members, rng) for _ in range(5_000)]
    n, d, beta0 = 30, 2, 2.0
    centre = members.mean(axis=0)
    inverse = np.eye(d) + (members - centre).T @ (members - centre)
    inverse += beta0 * n / (beta0 + n) * np.outer(centre, centre)
    # the mean of a Wishart is ν W
    expected = (n + d) * np.linalg.inv(inverse)
    np.testing.assert_allclose(
        np.mean([p for _, p in draws], axis=0), expected, rtol=0.03, atol=0.02
    )
    means = np.array([m for m, _ in draws])
    np.testing.assert_allclose(means.mean(axis=0), n * centre / (n + beta0), atol=0.01)
    # and (μ−μ*)ᵀ β* Λ (μ−μ*) is chi-square with d degrees of freedom
    scores = [
        (n + beta0) * (m - n * centre / (n + beta0)) @ p @ (m - n * centre / (n + beta0))
        for m, p in draws
    ]
    assert np.mean(scores) == pytest.approx(d, rel=0.04)


# -- ratings -----------------------------------------------------------------------------------


def test_learns_ratings_and_only_the_seed_decides():
    data = make_ratings(200, 120, 6_000, noise=0.3, random_state=0)
    train, test = split(data)
    rows = data.users[train], data.items[train], data.ratings[train]
    a, b = (MatrixFactorization(5, n_iter=30, random_state=1).fit(*rows) for _ in range(2))
    predicted = a.predict(data.users[test], data.items[test])
    np.testing.assert_array_equal(predicted, b.predict(data.users[test], data.items[test]))
    truth = data.ratings[test]
    assert root_mean_squared_error(truth, predicted) < 0.75 * truth.std()
    assert mean_absolute_error(truth, predicted) < root_mean_squared_error(truth, predicted)
    assert a.rmse_[-1] < a.rmse_[0]
    assert predicted.min() >= 1
    assert predicted.max() <= 5


def test_groups_help_where_ratings_are_few():
    gains = []
    for seed in range(3):
        data = make_ratings(400, 200, 3_000, noise=0.3, random_state=seed)
        train, test = split(data, 0.6, seed)
        rows = data.users[train], data.items[train], data.ratings[train]
        errors = []
        for groups in ({}, {"user_groups": data.user_groups, "item_groups": data.item_groups}):
            model = MatrixFactorization(4, n_iter=40, random_state=seed).fit(*rows, **groups)
            predicted = model.predict(data.users[test], data.items[test])
            errors.append(root_mean_squared_error(data.ratings[test], predicted))
        gains.append(errors[0] - errors[1])
    assert np.mean(gains) > 0.01, gains


def test_new_users_are_rated_like_their_group():
    data = make_ratings(300, 100, 9_000, noise=0.2, random_state=2)
    seen = data.users < 250
    model = MatrixFactorization(4, n_iter=40, random_state=0).fit(
        data.users[seen], data.items[seen], data.ratings[seen], user_groups=data.user_groups
    )
    truth = data.ratings[~seen]
    grouped = root_mean_squared_error(truth, model.predict(data.users[~seen], data.items[~seen]))
    assert grouped < 0.9 * np.sqrt(np.mean((truth - data.ratings[seen].mean()) ** 2))
    nobody = model.predict([10_000], [10_000])
    assert nobody == pytest.approx(data.ratings[seen].mean())


@pytest.mark.parametrize("embedder", [None, OneHot()])
def test_groups_are_found_from_attributes(embedder):
    from sklearn.metrics import adjusted_rand_score

    data = make_ratings(400, 50, 500, n_groups=3, random_state=0)
    groups = find_groups(data.user_ids, data.user_attributes, embedder, random_state=0)
    wanted = [data.user_groups[u] for u in data.user_ids.tolist()]
    assert adjusted_rand_score(wanted, [groups[u] for u in data.user_ids.tolist()]) > 0.15


def test_an_id_of_two_rows_has_no_group():
    with pytest.raises(ValueError, match="one row of attributes for each id, got several for 'b'"):
        find_groups(["a", "b", "b"], {"job": ["x", "y", "x"]}, OneHot())


def test_groups_may_be_a_series_by_name():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    data, groups = (["a", "b"] * 10, ["x", "y"] * 10, [1.0, 2.0] * 10), {"a": 0, "b": 1, "c": 1}
    found = [
        MatrixFactorization(2, n_iter=5, burn_in=2, random_state=0)
        .fit(*data, user_groups=given)
        .predict(["a", "c"], ["x", "x"])
        for given in (groups, pandas.Series(groups))
    ]
    np.testing.assert_array_equal(*found)


def test_one_group_when_nothing_differs():
    assert find_groups(["a", "b"], {"x": ["u", "u"]}) == {"a": 0, "b": 0}
    with pytest.raises(ValueError, match="expected 2 ids, one per row of attributes, got 3"):
        find_groups([1, 2, 3], {"x": ["u", "v"]})


# -- bad input and files -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"n_factors": 0}, "n_factors.* must be an int .*Got 0"),
        ({"n_iter": 5, "burn_in": 5}, "expected burn_in below n_iter=5, got 5"),
        ({"precision": 0}, "precision.* must be a float .*Got 0"),
    ],
)
def test_bad_parameters_are_named(settings, match):
    with pytest.raises(ValueError, match=match):
        MatrixFactorization(**settings).fit([0], [0], [3])


def test_bad_ratings_are_named():
    model = MatrixFactorization(2, n_iter=2, burn_in=0)
    with pytest.raises(
        ValueError, match=r"users: expected one per rating, shape \(2,\), got \(1,\)"
    ):
        model.fit([0], [0, 1], [3, 4])
    with pytest.raises(ValueError, match="expected at least one rating"):
        model.fit([], [], [])
    with pytest.raises(ValueError, match="expected finite numbers, got nan in row 1"):
        model.fit([0, 1], [0, 1], [3, np.nan])
    with pytest.raises(ValueError, match="user_groups: expected a group of 'b'"):
        model.fit(["a", "b"], [0, 1], [3, 4], user_groups={"a": 0})
    with pytest.raises(ValueError, match="expected as many users as items, got 2 and 1"):
        model.fit(["a", "b"], [0, 1], [3, 4]).predict(["a", "b"], [0])
    with pytest.raises(ValueError, match="expected n_ratings of at most 4"):
        make_ratings(2, 2, 5)


def test_progress_of_every_sweep(capsys):
    seen = []
    model = MatrixFactorization(2, n_iter=3, burn_in=1, progress=seen.append)
    model.fit([0, 1], [0, 1], [3, 4])
    assert [(p.done, p.total, p.unit) for p in seen] == [(i, 3, "sweeps") for i in (1, 2, 3)]
    assert seen[-1].note == f"error {model.rmse_[-1]:.4f}"
    assert capsys.readouterr().err == ""


def test_movielens_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected .*ratings\.dat"):
        load_movielens(tmp_path)
    (tmp_path / "ratings.dat").write_text("1::10::5::978300760\n2::11::3::978302109\n")
    (tmp_path / "users.dat").write_text("1::F::1::10::48067\n2::M::56::16::70072\n")
    (tmp_path / "movies.dat").write_text("10::Toy (1995)::Animation|Comedy\n11::Heat::Action\n")
    data = load_movielens(tmp_path)
    assert data.ratings.tolist() == [5.0, 3.0]
    assert data.user_attributes["zip"].tolist() == ["4", "7"]
    assert data.item_attributes["Comedy"].tolist() == ["yes", "no"]
    assert data.user_groups is None


def test_names_that_would_never_meet():
    model = MatrixFactorization(2, n_iter=4, burn_in=2, random_state=0)
    fitted = model.fit([1, 2, 10], ["a", "b", "c"], [1, 5, 3])
    assert fitted.users_.index([1.0, 10, 7]).tolist() == [0, 2, 3]
    with pytest.raises(TypeError, match="expected text or numbers alone, got '1' and 1"):
        fitted.predict(["1", "2"], ["a", "b"])
    with pytest.raises(TypeError, match="users: expected text or numbers alone, got '1' and 1"):
        model.fit([1, "1"], ["a", "b"], [1, 2])
    with pytest.raises(ValueError, match="users: expected a name, got None in row 1"):
        model.fit(["x", None], ["a", "b"], [1, 2])
    with pytest.raises(ValueError, match="items: expected a name, got nan in row 0"):
        model.fit(["x", "y"], np.array([np.nan, 1.0]), [1, 2])
    with pytest.raises(TypeError, match="user_groups"):
        model.fit([1, 2], ["a", "b"], [1, 2], user_groups={"1": 0, "2": 1})
    with pytest.raises(ValueError, match="sequence of names, got 'x'"):
        fitted.predict("x", "a")


@pytest.mark.parametrize("alpha", [0.25, 50.0])
def test_the_concentration_reaches_the_mixture(monkeypatch, alpha):
    """On categories k-means, from which the mixture starts, decides; so look at the mixture."""
    fitted = []

    class Watched(mixture.BayesianGaussianMixture):
        def fit_predict(self, X, y=None):
            fitted.append(self)
            return super().fit_predict(X, y)

    monkeypatch.setattr(mixture, "BayesianGaussianMixture", Watched)
    rows = {"job": ["a", "b"] * 20, "town": ["x", "y"] * 20}
    options = {} if alpha == 50.0 else {"alpha": alpha}
    find_groups(range(40), rows, OneHot(), max_groups=4, random_state=0, **options)
    (model,) = fitted
    assert model.weight_concentration_prior_ == alpha
    assert model.weight_concentration_prior_type == "dirichlet_process"
