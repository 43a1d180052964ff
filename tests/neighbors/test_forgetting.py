"""What is forgotten was never there: the model is a refit of the rows that are left.

The refit makes the choices of the first fit; all else it learns itself.
"""

import numpy as np
import pandas as pd
import pytest

from tabweave import SupervisedWeave, WeaveClassifier, WeaveRegressor
from tabweave.neighbors import members

KINDS = {"job": "nominal", "city": "nominal", "age": "numeric", "pay": "numeric"}


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    job, city = rng.choice(list("abcd"), n), rng.choice(list("wxyz"), n)
    frame = pd.DataFrame({"job": job, "city": city, "age": rng.normal(40, 9, n)})
    frame["pay"] = frame["age"] / 10 + (job == "a") + rng.normal(0, 0.5, n)
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    score = frame["pay"] + (city == "w") * 2 + rng.normal(0, 0.7, n)
    return frame, score.to_numpy()


def target_of(model, score):
    return np.digitize(score, [4, 5.5]) if isinstance(model, WeaveClassifier) else score


def pinned(monkeypatch, model):
    """Let every fit choose what a model has chosen."""
    member = (model.embedder_.weight_power, model.embedder_.discriminant)
    if isinstance(model, WeaveRegressor):
        member = (*member, model.linear_)
        factors = np.array(list(model.factors_.values()))
        monkeypatch.setattr(members, "learned_factors", lambda *_: factors)
    else:
        monkeypatch.setattr(WeaveClassifier, "_local_strengths", (model.local_,))
    ks = model.n_neighbors_
    monkeypatch.setattr(members, "best_member", lambda _: (member, ks, [{"score": 0.0}]))


def answers(model, X):
    out = model.predict_proba(X) if isinstance(model, WeaveClassifier) else model.predict(X)
    return out, model.kneighbors(X).distances


MODELS = [WeaveClassifier(schema=KINDS), WeaveRegressor(schema=KINDS)]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_forgetting_is_a_refit_with_the_choices_fixed(model, monkeypatch):
    X, score = rows()
    y = target_of(model, score)
    gone = np.flatnonzero(score > np.quantile(score, 0.75))[::2]  # no fair sample
    stay = np.setdiff1d(np.arange(300), gone)
    model.fit(X[:300], y[:300])
    before, _ = answers(model, X[300:])
    model.forget(gone[gone < 300])
    pinned(monkeypatch, model)
    again = type(model)(schema=KINDS).fit(X.iloc[stay], y[stay])
    assert again.n_neighbors_ == model.n_neighbors_
    for found, expected in zip(answers(model, X[300:]), answers(again, X[300:]), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    assert np.abs(answers(model, X[300:])[0] - before).max() > 1e-3


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_forgetting_is_a_refit_where_everything_is_given(model):
    X, score = rows()
    y = target_of(model, score)
    given = {"n_neighbors": 9, "embedder": SupervisedWeave(weight_power=0.5, schema=KINDS)}
    model = type(model)(**given).fit(X[:300], y[:300])
    model.forget(np.arange(0, 300, 3))
    stay = np.flatnonzero(np.arange(300) % 3)
    again = type(model)(**given).fit(X.iloc[stay], y[stay])
    for found, expected in zip(answers(model, X[300:]), answers(again, X[300:]), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_rows_that_are_added_are_counted_and_calibration_waits(model, monkeypatch):
    """``partial_fit`` keeps the choices, the calibration and how numbers are cut.

    Categories are counted exactly: who is near, and how far, is as in a fit of all rows that makes
    the same choices. ``forget([])`` learns the rest.
    """
    X, score = rows()
    y = target_of(model, score)
    words = X[["job", "city"]]
    few = type(model)(schema={"job": "nominal", "city": "nominal"}).fit(words[:200], y[:200])
    few.partial_fit(words[200:300], y[200:300])
    model.fit(X[:200], y[:200]).partial_fit(X[200:300], y[200:300])
    pinned(monkeypatch, few)
    whole = type(model)(schema=few.schema).fit(words[:300], y[:300])
    if isinstance(model, WeaveClassifier):  # of a numeric target the bins stay, too
        np.testing.assert_allclose(answers(few, words)[1], answers(whole, words)[1], atol=1e-9)
    for found, expected in zip(answers(few.forget([]), words), answers(whole, words), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    pinned(monkeypatch, model)
    whole = type(model)(schema=KINDS).fit(X[:300], y[:300])
    assert np.abs(answers(model, X)[0] - answers(whole, X)[0]).max() > 1e-6
    for found, expected in zip(answers(model.forget([]), X), answers(whole, X), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_calibration_follows_the_rows_that_stay():
    X, score = rows(900)
    y = np.digitize(score, [4, 5.5])
    rng = np.random.default_rng(1)
    y = np.where(np.arange(900) < 450, rng.permutation(y), y)  # the first half knows nothing
    model = WeaveClassifier(schema=KINDS).fit(X[:800], y[:800])
    unsure = model.predict_proba(X[800:]).max(axis=1).mean()
    model.forget(np.arange(450))
    assert model.predict_proba(X[800:]).max(axis=1).mean() > unsure + 0.02
