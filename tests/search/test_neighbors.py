"""Nearest rows that answer: against plain numpy, under change, and as a new user meets them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss, r2_score

import tabweave
from tabweave import SupervisedWeave, Weave, WeaveClassifier, WeaveRegressor, WeightedKNN
from tabweave.search.neighbors import calibrated, chosen, nearest, probabilities, vote_weights


def table(n=300, seed=0):
    """Return a mixed table with gaps and three classes that follow two of its columns."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    noisy = np.where(rng.random(n) < 0.2, rng.integers(3, size=n), kind)
    x = kind + rng.normal(scale=0.7, size=n)
    x[rng.random(n) < 0.1] = np.nan
    frame = pd.DataFrame(
        {
            "job": np.array(["cook", "clerk", "judge"])[noisy],
            "age": x,
            "coin": rng.choice(["head", "tail"], n),
            "noise": rng.normal(size=n),
        }
    )
    return frame, np.array(["a", "b", "c"])[kind]


class TestVotes:
    def test_weights_by_hand(self):
        squared = np.array([[0.0, 1.0, 2.0, 4.0]])
        own = np.exp(-4 * squared[:, :3] / 2.0)
        expected = np.append(own / own.sum(), 0.0)
        np.testing.assert_allclose(vote_weights(squared, (3,), 4.0)[0], expected)
        two = (vote_weights(squared, (3,), 4.0) + vote_weights(squared, (4,), 4.0)) / 2
        np.testing.assert_allclose(vote_weights(squared, (3, 4), 4.0), two)

    def test_equal_rows_share_the_vote(self):
        np.testing.assert_allclose(vote_weights(np.zeros((1, 4)), (4,), 4.0), 0.25)

    def test_nearest_is_a_sort(self):
        apart = np.random.default_rng(0).integers(4, size=(20, 15)).astype(float)
        found, where = nearest(apart, 6)
        order = np.argsort(apart, axis=1, kind="stable")[:, :6]
        np.testing.assert_array_equal(found, np.take_along_axis(apart, order, axis=1))
        np.testing.assert_array_equal(np.take_along_axis(apart, where, axis=1), found)

    def test_chosen_averages_three(self):
        scores = {
            (1.0, 0.0): {3: 0.5, 5: 0.9, 9: 0.5, 15: 0.5},
            (1.0, 1.0): {3: 0.7, 5: 0.7, 9: 0.7},
        }
        member, ks, said = chosen(scores)
        assert member == (1.0, 1.0) and ks == (3, 5, 9)
        assert [row["score"] for row in said] == pytest.approx([0.7, 1.9 / 3])

    def test_calibration_lowers_the_loss_and_keeps_the_winner(self):
        rng = np.random.default_rng(0)
        labels = rng.integers(3, size=500)
        votes = rng.dirichlet([0.2] * 3, 500)
        found = probabilities(votes, *calibrated(votes, labels))
        assert log_loss(labels, found) < log_loss(labels, probabilities(votes, 0.001, 1.0))
        np.testing.assert_array_equal(found.argmax(axis=1), votes.argmax(axis=1))


class TestClassifier:
    def test_is_the_votes_of_the_nearest_vectors(self):
        X, y = table()
        model = WeaveClassifier().fit(X[:200], y[:200])
        space = model.embedder_
        apart = space.pairwise_distances(X[200:], X[:200]) ** 2
        squared, where = nearest(apart, max(model.n_neighbors_))
        weights = vote_weights(squared, model.n_neighbors_, 4.0)
        votes = np.stack([(weights * (y[where] == c)).sum(axis=1) for c in model.classes_], axis=1)
        expected = probabilities(votes, *model.calibration_)
        np.testing.assert_allclose(model.predict_proba(X[200:]), expected, atol=1e-9)

    def test_columns_that_say_nothing_do_not_disturb(self):
        X, y = table(600)
        rng = np.random.default_rng(5)
        for i in range(20):
            X[f"coin{i}"] = rng.choice(["head", "tail"], len(X))
        plain = WeightedKNN(5, metric=Weave()).fit(X[:400], y[:400])
        model = WeaveClassifier().fit(X[:400], y[:400])
        assert model.score(X[400:], y[400:]) > plain.score(X[400:], y[400:]) + 0.1

    def test_nothing_to_learn_is_not_learned(self):
        X, _ = table(400)
        y = np.random.default_rng(1).choice(["a", "b"], 400)
        best = WeaveClassifier().fit(X, y).validation_[0]["score"]
        assert best < 0.6  # its own classes would have given far more

    def test_says_what_it_compared(self):
        X, y = table()
        model = WeaveClassifier().fit(X, y)
        assert len(model.validation_) == 6
        first = model.validation_[0]
        assert model.embedder_.weight_power == first["weight_power"]
        assert model.embedder_.discriminant == first["discriminant"]
        assert model.n_neighbors_ == first["n_neighbors"]

    def test_explains_by_rows_and_columns(self):
        X, y = table()
        model = WeaveClassifier().fit(X, y)
        row = X.iloc[[7]]
        said = model.explain(row, n_neighbors=10_000)
        assert sum(one["weight"] for one in said) == pytest.approx(1)
        for one in said[:5]:
            assert sum(one["shares"].values()) == pytest.approx(one["distance"] ** 2, abs=1e-9)
            assert set(one["shares"]) == set(X.columns)
            assert one["target"] == y[one["id"]]
        votes = {c: sum(o["weight"] for o in said if o["target"] == c) for c in "abc"}
        assert max(votes, key=votes.get) == model.predict(row)[0]

    def test_rows_added_and_forgotten_are_exact(self):
        X, y = table()
        model = WeaveClassifier().fit(X[:200], y[:200])
        before = model.predict_proba(X[250:])
        model.partial_fit(X[200:250], y[200:250])
        more = model.predict_proba(X[250:])
        assert not np.array_equal(before, more)
        model.forget(list(range(200, 250)))
        np.testing.assert_allclose(model.predict_proba(X[250:]), before, atol=1e-9)

    def test_saved_and_loaded(self, tmp_path):
        X, y = table()
        model = WeaveClassifier().fit(X, y)
        model.save(tmp_path / "model.tabweave")
        again = tabweave.load(tmp_path / "model.tabweave")
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))

    def test_same_rows_same_answer(self):
        X, y = table()
        one, two = (WeaveClassifier().fit(X, y).predict_proba(X) for _ in range(2))
        np.testing.assert_array_equal(one, two)

    def test_few_rows(self):
        model = WeaveClassifier().fit({"a": ["x", "y", "x"]}, [0, 1, 0])
        np.testing.assert_array_equal(model.predict({"a": ["x", "y"]}), [0, 1])

    def test_refuses(self):
        X, y = table(40)
        with pytest.raises(ValueError, match="one class only, 'a';"):
            WeaveClassifier().fit(X, ["a"] * 40)
        with pytest.raises(ValueError, match="y of row 2 is missing"):  # not a class "nan"
            WeaveClassifier().fit(X[:3], ["a", "b", float("nan")])
        with pytest.raises(ValueError, match=r"expected classes of fit, \[.*, got 'z'"):
            WeaveClassifier().fit(X, y).partial_fit(X[:1], ["z"])
        with pytest.raises(ValueError, match="y of row 2 is missing"):
            WeaveClassifier().fit(X[:3], np.array(["a", "b", None], dtype=object))
        with pytest.raises(ValueError, match="labels in y"):
            WeaveClassifier().fit(X, y[:-1])

    def test_clones(self):
        model = clone(WeaveClassifier(7, embedder=SupervisedWeave(0.5)))
        assert model.n_neighbors == 7 and model.embedder.discriminant == 0.5


class TestRegressor:
    def rows(self, n=400):
        X, _ = table(n, seed=3)
        rng = np.random.default_rng(4)
        jobs = X["job"].map({"cook": 0.0, "clerk": 5.0, "judge": 12.0}).to_numpy()
        return X, jobs + 3 * X["noise"].to_numpy() + rng.normal(scale=0.5, size=n)

    def test_predicts(self):
        X, y = self.rows()
        model = WeaveRegressor().fit(X[:300], y[:300])
        assert r2_score(y[300:], model.predict(X[300:])) > 0.9
        assert model.validation_[0]["score"] > 0.9

    def test_is_the_formula(self):
        X, y = self.rows()
        model = WeaveRegressor().fit(X[:300], y[:300])
        model.linear_ = 0.5
        apart = model.embedder_.pairwise_distances(X[300:], X[:300]) ** 2
        squared, where = nearest(apart, max(model.n_neighbors_))
        weights = vote_weights(squared, model.n_neighbors_, 4.0)
        pairs = model.embedder_._coupled().class_pairs.astype(float)
        line = model._line(model.embedder_, pairs)(model._read(X))
        left = (y - 0.5 * line)[where]
        expected = (weights * left).sum(axis=1) + 0.5 * line[300:]
        np.testing.assert_allclose(model.predict(X[300:]), expected, atol=1e-9)

    def test_whole_numbers_are_numbers(self):
        X, y = self.rows()
        model = WeaveRegressor().fit(X, np.round(y))
        assert model.embedder_.target_.numeric
        assert model.score(X, np.round(y)) > 0.9

    def test_refuses_words(self):
        X, _ = self.rows(20)
        with pytest.raises(ValueError, match="use WeaveClassifier"):
            WeaveRegressor().fit(X, ["a", "b"] * 10)

    def test_forgets(self):
        X, y = self.rows()
        model = WeaveRegressor().fit(X[:300], y[:300])
        before = model.predict(X[300:])
        model.partial_fit(X[300:350], y[300:350]).forget(range(300, 350))
        np.testing.assert_allclose(model.predict(X[300:]), before, atol=1e-9)
