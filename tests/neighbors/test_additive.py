"""Predictors of many rows: the additive model beside the votes, and its space."""

import numpy as np
import pytest

import tabweave
from tabweave import BoostedWeave, WeaveClassifier, WeaveRegressor
from tabweave.neighbors import members, predictors
from tabweave.neighbors.votes import additive_weight

RANDOM = np.random.default_rng(0)
N = 400
ROWS = {"job": RANDOM.choice(["cook", "clerk", "judge"], N).tolist(), "age": RANDOM.normal(size=N)}
SCORE = 2.0 * (np.array(ROWS["job"]) == "cook") + np.sin(3 * ROWS["age"])
CLASSES = np.where(SCORE + 0.5 * RANDOM.normal(size=N) > 1, "yes", "no")
NUMBERS = SCORE + 0.2 * RANDOM.normal(size=N)
ASKED = {"job": ["cook", "judge", "pilot"], "age": [0.3, -0.4, np.nan]}


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    monkeypatch.setattr(predictors, "MIN_ADDITIVE_ROWS", 100)


@pytest.fixture(params=["chosen", "boosted"])
def space(request, monkeypatch):
    """As it is chosen, or the boosted one in any case."""
    if request.param == "boosted":
        choose = members.best_member
        monkeypatch.setattr(
            members,
            "best_member",
            lambda scores: choose({k: v for k, v in scores.items() if k[:2] == members.BOOSTED}),
        )
    return request.param


def models(space):
    for model, y in ((WeaveClassifier(), CLASSES), (WeaveRegressor(), NUMBERS)):
        model.fit(ROWS, y)
        assert isinstance(model.embedder_, BoostedWeave) or space == "chosen"
        yield model, y


def test_weight_is_that_of_least_log_loss():
    labels = RANDOM.integers(0, 2, 200)
    good = np.where(np.eye(2)[labels] > 0, 0.8, 0.2)
    bad = np.full((200, 2), 0.5)
    assert additive_weight(bad, good, labels, None) == 1
    assert additive_weight(good, bad, labels, None) == 0
    mixed = np.where((np.arange(200) % 2 == 0)[:, None], good, good[:, ::-1])
    shares = np.arange(21) / 20
    losses = [-np.log((1 - s) * mixed[range(200), labels] + s * 0.5).mean() for s in shares]
    assert additive_weight(mixed, bad, labels, None) == shares[np.argmin(losses)]
    assert additive_weight(mixed, bad, labels, np.arange(200) % 2 == 0) == 0


def test_probabilities_are_a_mean_by_weight(space):
    model, _ = next(models(space))
    assert 0 <= model.additive_weight_ <= 1
    mixed = model.predict_proba(ASKED)
    np.testing.assert_allclose(mixed.sum(axis=1), 1)
    parts = {}
    weight = model.additive_weight_
    for share in (0.0, 1.0):
        model.additive_weight_ = share
        parts[share] = model.predict_proba(ASKED)
    np.testing.assert_allclose(mixed, (1 - weight) * parts[0.0] + weight * parts[1.0])
    scores = model.additive_.additive_score(ASKED)
    np.testing.assert_allclose(parts[1.0][:, 1:], 1 / (1 + np.exp(-scores)))


def test_explanations_add_up(space):
    for model, _ in models(space):
        entries = model.explain({"job": "cook", "age": 0.3})
        for entry in entries:
            assert sum(entry["shares"].values()) == pytest.approx(entry["distance"] ** 2, rel=1e-9)


def test_held_out_rows_are_foretold(space):
    cut = 300
    train, test = ({k: v[part] for k, v in ROWS.items()} for part in (slice(cut), slice(cut, N)))
    assert WeaveClassifier().fit(train, CLASSES[:cut]).score(test, CLASSES[cut:]) > 0.75
    regressor = WeaveRegressor().fit(train, NUMBERS[:cut])
    assert regressor.score(test, NUMBERS[cut:]) > 0.8
    assert regressor.additive_weight_ == regressor.linear_


def test_rows_can_be_added_forgotten_and_saved(space, tmp_path):
    for model, y in models(space):
        before = model.predict(ASKED)
        model.partial_fit(ROWS, y)
        assert len(model.kneighbors(ASKED).ids) == 3
        model.forget(np.arange(N, 2 * N))
        np.testing.assert_array_equal(model.predict(ASKED), before)
        tabweave.export.save(model, tmp_path / "model")
        np.testing.assert_array_equal(tabweave.load(tmp_path / "model").predict(ASKED), before)


def test_few_rows_have_no_additive_model(monkeypatch):
    monkeypatch.setattr(predictors, "MIN_ADDITIVE_ROWS", N + 1)
    model = WeaveClassifier().fit(ROWS, CLASSES)
    assert model.additive_ is None and model.additive_weight_ == 0
