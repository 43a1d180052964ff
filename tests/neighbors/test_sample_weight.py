"""Weights of rows: 2 is that of a row that is there twice, and a row of weight 0 is not there."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data

import tabweave
from tabweave import SupervisedWeave, WeaveClassifier, WeaveRegressor
from tabweave.neighbors.members import learned_factors, reliability
from tabweave.neighbors.votes import Targets, calibrated, macro_f

KINDS = {"job": "nominal", "city": "nominal", "age": "numeric", "pay": "numeric"}


def rows(n=240, seed=0):
    rng = np.random.default_rng(seed)
    job, city = rng.choice(list("abcd"), n), rng.choice(list("wxyz"), n)
    frame = pd.DataFrame({"job": job, "city": city, "age": rng.normal(40, 9, n).round(1)})
    frame["pay"] = (frame["age"] / 10 + (job == "a") + rng.normal(0, 0.5, n)).round(2)
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    score = frame["pay"] + (city == "w") * 2 + rng.normal(0, 0.7, n)
    return frame, score.to_numpy(), rng.integers(0, 4, n)


def target_of(model, score):
    return np.digitize(score, [4, 5.5]) if isinstance(model, WeaveClassifier) else score


def answers(model, X):
    votes = model.predict_proba(X) if isinstance(model, WeaveClassifier) else model.predict(X)
    return votes, model.kneighbors(X)


@pytest.mark.parametrize("cls", [WeaveClassifier, WeaveRegressor])
@pytest.mark.parametrize("k", [1, 5, 40])
def test_two_copies_are_one_row_of_weight_two(cls, k):
    """Where space and neighbours are given; folds that choose are dealt by rows, not weights."""
    X, score, weight = rows()
    y = target_of(cls(), score)
    space = SupervisedWeave(weight_power=0.5, schema=KINDS)
    times = np.repeat(np.arange(200), weight[:200])
    weighted = cls(k, embedder=space).fit(X[:200], y[:200], weight[:200])
    twice = cls(k, embedder=space).fit(X.iloc[times], y[times])
    if cls is WeaveClassifier:  # what makes votes probabilities is learned in folds
        twice.calibration_ = weighted.calibration_
    np.testing.assert_allclose(answers(weighted, X)[0], answers(twice, X)[0], atol=1e-9)
    assert weighted.embedder_.counts_.n == len(times)
    assert (weighted.kneighbors(X).distances.max(axis=1) >= 0).all()
    assert not np.isin(weighted.kneighbors(X).ids, np.flatnonzero(weight[:200] == 0)).any()


@pytest.mark.parametrize("cls", [WeaveClassifier, WeaveRegressor])
def test_a_row_of_weight_zero_is_not_there(cls, tmp_path):
    """Neither in choices nor in votes, whatever its target."""
    X, score, weight = rows()
    y = np.array(target_of(cls(), score), dtype=float if cls is WeaveRegressor else object)
    there = np.flatnonzero(weight)
    y[weight == 0] = 1e9 if cls is WeaveRegressor else "never"
    given = np.minimum(weight, 1)
    model = cls(schema=KINDS).fit(X, y, given)
    alone = cls(schema=KINDS).fit(
        X.iloc[there], y[there].astype(float if cls is WeaveRegressor else int)
    )
    if cls is WeaveClassifier:
        assert model.classes_.tolist() == alone.classes_.tolist()
    for one, other in ((model, alone), (model.forget(there[:9]), alone.forget(there[:9]))):
        assert one.n_neighbors_ == other.n_neighbors_
        (found, near), (expected, nearer) = (answers(m, X) for m in (one, other))
        np.testing.assert_allclose(found, expected, atol=1e-9)
        np.testing.assert_array_equal(near.ids, nearer.ids)
    model.save(tmp_path / "model")
    again = answers(tabweave.load(tmp_path / "model"), X)[0]
    np.testing.assert_array_equal(again, answers(model, X)[0])
    with pytest.raises(ValueError, match="some weight above 0, got zero"):
        cls().fit(X, y, np.zeros(len(X)))


@pytest.mark.parametrize("cls", [WeaveClassifier, WeaveRegressor])
def test_weights_of_one_change_nothing(cls):
    X, score, _ = rows()
    y = target_of(cls(), score)
    plain, ones = cls().fit(X, y), cls().fit(X, y, np.ones(len(X), int))
    np.testing.assert_allclose(answers(plain, X)[0], answers(ones, X)[0], atol=1e-9)
    assert plain.explain(X[:1]) == ones.explain(X[:1])


@pytest.mark.parametrize("cls", [WeaveClassifier, WeaveRegressor])
def test_heavy_rows_count_more_when_added_and_explained(cls):
    X, score, weight = rows()
    y = target_of(cls(), score)
    space = SupervisedWeave(schema=KINDS)
    model = cls(9, embedder=space).fit(X[:100], y[:100], weight[:100] + 1)
    if cls is WeaveClassifier:
        model.partial_fit(X[100:200], y[100:200], sample_weight=weight[100:200] + 1)
    else:
        model.partial_fit(X[100:200], y[100:200], weight[100:200] + 1)
    both = cls(9, embedder=space).fit(X[:200], y[:200], weight[:200] + 1)
    for found, expected in zip(
        answers(model.forget([]), X[200:])[0], answers(both, X[200:])[0], strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    said = both.explain(X.iloc[220], n_neighbors=200)
    assert sum(one["weight"] for one in said) == pytest.approx(1)
    assert [one["weight"] for one in said] == sorted((one["weight"] for one in said), reverse=True)
    if cls is WeaveRegressor:
        mean = sum(one["weight"] * one["prediction"] for one in said)
        assert mean == pytest.approx(both.predict(X.iloc[[220]])[0])


def test_what_is_measured_of_weighted_rows_is_that_of_copies():
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 4, 60)
    times = np.repeat(np.arange(60), weight)
    labels, guessed = rng.integers(0, 3, (2, 60))
    votes = rng.dirichlet(np.ones(3), 60)
    assert macro_f(labels, guessed, 3, weight) == pytest.approx(
        macro_f(labels[times], guessed[times], 3)
    )
    heavy = np.where(votes.argmax(axis=1) == labels, 60, 1)
    of_each = np.repeat(np.arange(60), heavy)
    found = calibrated(votes, Targets(labels, heavy))
    assert found == calibrated(votes[of_each], Targets(labels[of_each]))
    assert found != calibrated(votes, Targets(labels))
    x, y = rng.normal(size=(2, 60))
    y = y + x
    assert reliability(x, y, weight) == pytest.approx(reliability(x[times], y[times]))
    assert Targets(y, weight).mean() == pytest.approx(y[times].mean())
    assert Targets(y, weight).n == len(times)
    parts = rng.random((60, 9, 4)).astype(np.float32)
    sizes, values = rng.integers(1, 4, (60, 9)), rng.normal(size=(60, 9))
    arrays = parts, sizes, values, np.full(60, 4.0), y
    found = learned_factors(*arrays, weight)
    np.testing.assert_allclose(found, learned_factors(*(a[times] for a in arrays)), rtol=0.02)


@pytest.mark.parametrize("cls", [WeaveRegressor, WeaveClassifier])
def test_scikit_learns_check_where_nothing_is_chosen(cls, monkeypatch):
    model = cls(3, embedder=SupervisedWeave())
    monkeypatch.setattr(cls, "_is_validated", lambda self, n: False)  # folds are dealt by rows
    check_sample_weight_equivalence_on_dense_data(cls.__name__, model)
