"""Nearest rows that answer: against plain numpy, under change, and as a new user meets them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import f1_score, log_loss, r2_score

import tabweave
from tabweave import SupervisedWeave, Weave, WeaveClassifier, WeaveRegressor, WeightedKNN
from tabweave.columns.table import take_rows
from tabweave.embed import supervised
from tabweave.engines.reading import read_queries
from tabweave.neighbors import local_weights, members
from tabweave.neighbors.local_weights import ColumnCoordinates
from tabweave.neighbors.members import (
    best_member,
    candidate_ks,
    fold_answers,
    learned_factors,
    n_reranked,
    reliability,
    smallest_entries,
    squared_distances,
)
from tabweave.neighbors.predictors import LOCAL_STRENGTHS
from tabweave.neighbors.votes import (
    Neighbors,
    Targets,
    TrainingTargets,
    calibrated,
    macro_f,
    nearest_and_ties,
    probabilities,
    vote_weights,
)
from tabweave.space.scan import Nodes, Queries, gap_axes
from tabweave.space.space import total_gaps


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


def grid(n=200):
    """Return a table of few different rows, and two classes that follow them loosely."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({name: rng.choice(list("pqr"), n) for name in ("one", "two")})
    likely = np.where(frame["one"] == "p", 0.8, 0.3)
    return frame, np.where(rng.random(n) < likely, "a", "b")


def smallest(apart, k):
    """Return the k smallest entries of each line, the first first, and where they are."""
    order = np.argsort(apart, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(apart, order, axis=1), order


def weighed(model, local):
    """Return a model that weighs columns around a row so far, whatever was best."""
    model.local_ = local
    model.__dict__.pop("_cache", None)
    return model


class TestVotes:
    def test_weights_by_hand(self):
        squared, ones = np.array([[0.0, 1.0, 2.0, 4.0]]), np.ones((1, 4))
        own = np.exp(-4 * squared[:, :3] / 2.0)
        expected = np.append(own / own.sum(), 0.0)
        np.testing.assert_allclose(vote_weights(squared, (3,), 4.0, ones)[0], expected)
        two = sum(vote_weights(squared, (k,), 4.0, ones) for k in (3, 4)) / 2
        np.testing.assert_allclose(vote_weights(squared, (3, 4), 4.0, ones), two)

    def test_equal_rows_share_the_vote(self):
        np.testing.assert_allclose(vote_weights(np.zeros((1, 4)), (4,), 4.0, np.ones((1, 4))), 0.25)

    def test_rows_at_the_last_distance_share_its_places(self):
        squared, sizes = np.array([[0.0, 1.0, 2.0, 2.0, 4.0]]), np.array([[1, 2, 3, 1, 1]])
        found = vote_weights(squared, (5,), 4.0, sizes)[0]  # two places are left for four rows
        own = np.exp(-4 * squared[0] / 2.0) * [1, 2, 1.5, 0.5, 0]
        np.testing.assert_allclose(found, own / own.sum())

    def test_fewer_rows_than_neighbors_all_vote(self):
        found = vote_weights(np.array([[1.0, 2.0]]), (9,), 4.0, np.array([[2, 1]]))[0]
        own = np.exp([-2.0, -4.0]) * [2, 1]
        np.testing.assert_allclose(found, own / own.sum())

    def test_all_as_far_as_the_last_are_found(self):
        apart = np.array([[0.0, 3.0, *[1.0] * 30, *[2.0] * 30]])
        nodes = Nodes.of([np.arange(62)], [62], np.zeros((0, 62)))
        queries = Queries.of([np.zeros(2, np.int64)], [apart], np.zeros((2, 0)))
        squared, found = nearest_and_ties(nodes, np.ones(62, np.int64), queries, 4)
        for line, which in zip(squared, found, strict=True):
            assert set(which[line <= 1]) == {0, *range(2, 32)}
        squared, found = nearest_and_ties(nodes, np.full(62, 5), queries, 4)  # one node is enough
        assert (
            squared[0, 0] == 0 and vote_weights(squared, (4,), 4.0, np.full((2, 5), 5))[0, 0] == 1
        )

    def test_rows_that_are_all_equally_far_take_no_room(self):
        n = 3000
        nodes = Nodes.of([np.arange(n)], [n], np.zeros((0, n)))
        queries = Queries.of([np.zeros(9, np.int64)], [np.ones((1, n))], np.zeros((9, 0)))
        squared, _ = nearest_and_ties(nodes, np.ones(n, np.int64), queries, 5)
        assert squared.shape == (9, 1024)
        np.testing.assert_allclose(vote_weights(squared, (5,), 4.0, np.ones((9, 1024))), 1 / 1024)

    def test_nearest_is_a_sort(self):
        apart = np.random.default_rng(0).integers(4, size=(20, 15)).astype(np.float32)
        apart[:, 0] = -0.0  # which is not less than 0
        for k in (1, 6, 15, 20):
            found, where = smallest_entries(apart, k)
            assert found.dtype == np.float32
            for one, other in zip((found, where), smallest(apart, k), strict=True):
                np.testing.assert_array_equal(one, other)

    def test_those_that_cannot_vote_are_left_out(self):
        rng = np.random.default_rng(0)
        squared = np.sort(rng.integers(0, 9, (30, 40)), axis=1).astype(float)
        nodes = np.argsort(rng.random((30, 40)), axis=1)
        targets = Targets(np.zeros(80, int))
        targets = TrainingTargets(targets, rng.permutation(np.arange(80) % 40), 40)
        near, ks = Neighbors(np.arange(30), squared, nodes), (1, 5, 200)
        for k, (weights, voting) in zip(ks, targets.ballots(near, ks, 4.0), strict=True):
            expected = targets.weights(near, (k,), 4.0)
            width = voting.shape[1]
            np.testing.assert_array_equal(voting, nodes[:, :width])
            np.testing.assert_allclose(weights, expected[:, :width])
            assert not expected[:, width:].any()

    def test_numbers_of_neighbors_end_with_all_rows(self):
        assert candidate_ks(30) == (3, 5, 9, 15, 25, 40)
        assert candidate_ks(100) == (3, 5, 9, 15, 25, 40, 80, 160)
        assert candidate_ks(10_000)[-1] == 320
        assert [n_reranked((k,)) for k in (3, 80, 320)] == [100, 160, 420]

    def test_factors_follow_what_foretells(self):
        """Rows are equal to those near in the first column; the second one is noise."""
        rng = np.random.default_rng(0)
        x, noise = rng.random((2, 200, 1)), rng.random((2, 60))
        parts = np.stack([(x[0] - noise[0]) ** 2, (x[1] - noise[1]) ** 2], axis=2)
        values, ones = np.broadcast_to(noise[0], (200, 60)), np.ones((200, 60))
        own = x[0, :, 0]
        found = learned_factors(parts.astype(np.float32), ones, values, np.full(200, 20.0), own)
        assert found[0] > 1.5 > 0.7 > found[1]
        again = learned_factors(parts.astype(np.float32), ones, values, np.full(200, 20.0), own)
        np.testing.assert_array_equal(found, again)

    def test_reliability_is_a_slope_from_0_to_1(self):
        rng = np.random.default_rng(0)
        guess = rng.normal(size=1000)
        for slope, expected in ((0.4, 0.4), (-1, 0), (3, 1)):
            truth = slope * guess + rng.normal(scale=0.01, size=1000)
            assert reliability(guess, truth) == pytest.approx(expected, abs=0.01)
        assert reliability(np.zeros(5), np.ones(5)) == 0

    def test_chosen_averages_three(self):
        scores = {
            (1.0, 0.0): {3: 0.5, 5: 0.9, 9: 0.5, 15: 0.5},
            (1.0, 1.0): {3: 0.7, 5: 0.7, 9: 0.7},
        }
        member, ks, said = best_member(scores)
        assert member == (1.0, 1.0) and ks == (3, 5, 9)
        assert [row["score"] for row in said] == pytest.approx([0.7, 1.9 / 3])

    def test_macro_f_is_that_of_others(self):
        rng = np.random.default_rng(0)
        for n_classes in (2, 5, 9):
            truth, guess = rng.integers(n_classes, size=(2, 12))
            expected = f1_score(truth, guess, average="macro")
            assert macro_f(truth, guess, n_classes) == pytest.approx(expected, abs=1e-15)

    def test_calibration_lowers_the_loss_and_keeps_the_winner(self):
        rng = np.random.default_rng(0)
        labels = rng.integers(3, size=500)
        votes = rng.dirichlet([0.2] * 3, 500)
        found = probabilities(votes, *calibrated(votes, Targets(labels)))
        assert log_loss(labels, found) < log_loss(labels, probabilities(votes, 0.001, 1.0))
        np.testing.assert_array_equal(found.argmax(axis=1), votes.argmax(axis=1))


class TestClassifier:
    def test_is_the_votes_of_the_nearest_vectors(self):
        X, y = table()
        model = weighed(WeaveClassifier().fit(X[:200], y[:200]), 0.0)
        space = model.embedder_
        apart = space.pairwise_distances(X[200:], X[:200]) ** 2
        squared, where = smallest(apart, max(model.n_neighbors_))
        weights = vote_weights(squared, model.n_neighbors_, 4.0, np.ones(squared.shape))
        votes = np.stack([(weights * (y[where] == c)).sum(axis=1) for c in model.classes_], axis=1)
        expected = probabilities(votes, *model.calibration_)
        np.testing.assert_allclose(model.predict_proba(X[200:]), expected, atol=1e-9)

    def test_no_order_of_rows_decides(self):
        X, y = table(200)
        order = np.random.default_rng(0).permutation(150)
        one = WeaveClassifier().fit(X[:150], y[:150])
        two = WeaveClassifier().fit(X.iloc[order], y[order])
        assert [m["score"] for m in one.validation_] == [m["score"] for m in two.validation_]
        found = two.predict_proba(X[150:])
        np.testing.assert_allclose(found, one.predict_proba(X[150:]), atol=1e-9)

    @pytest.mark.parametrize("local", LOCAL_STRENGTHS)
    @pytest.mark.parametrize("k", [1, 3, 40])
    def test_no_order_of_equal_rows_decides(self, k, local):
        X, y = grid()
        order = np.argsort(y, kind="stable")  # tables are often sorted by their classes
        one, two = (
            weighed(WeaveClassifier(k, embedder=SupervisedWeave()).fit(rows, own), local)
            for rows, own in ((X, y), (X.iloc[order], y[order]))
        )
        np.testing.assert_allclose(two.predict_proba(X), one.predict_proba(X), atol=1e-9)

    def test_ties_are_the_mean_over_orders(self):
        X, y = grid(60)
        model = WeaveClassifier(7, embedder=SupervisedWeave()).fit(X, y)
        apart = model.embedder_.pairwise_distances(X, X) ** 2
        votes, n_orders = np.zeros((len(X), 2)), 4000
        random = np.random.default_rng(0)
        for _ in range(n_orders):  # first come, first served, in every order
            order = random.permutation(len(X))
            found, where = smallest(np.round(apart[:, order], 9), 7)
            labels = y[order][where]
            weights = np.exp(-4 * found / np.where(found[:, -1:] > 0, found[:, -1:], 1))
            weights /= weights.sum(axis=1, keepdims=True)
            votes += np.stack([(weights * (labels == c)).sum(axis=1) for c in "ab"], axis=1)
        expected = probabilities(votes / n_orders, *model.calibration_)
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=0.02)

    @pytest.mark.parametrize("local", LOCAL_STRENGTHS)
    def test_answers_do_not_depend_on_what_is_asked_beside(self, monkeypatch, local):
        X, y = table()
        model = weighed(WeaveClassifier().fit(X[:200], y[:200]), local)
        whole = model.predict_proba(X)
        alone = np.vstack([model.predict_proba(X[i : i + 1]) for i in range(0, 300, 25)])
        np.testing.assert_allclose(alone, whole[::25], atol=1e-12)
        monkeypatch.setattr("tabweave.neighbors.predictors.QUERY_BLOCK_ROWS", 7)
        np.testing.assert_allclose(model.predict_proba(X), whole, atol=1e-12)
        found = []
        for n in (1, 3):
            monkeypatch.setattr("tabweave._compat.n_threads", lambda n=n: n)
            found.append(model.predict_proba(X))
        np.testing.assert_array_equal(*found)

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

    @pytest.mark.parametrize("local", LOCAL_STRENGTHS)
    def test_explains_by_rows_and_columns(self, local):
        X, y = table()
        model = weighed(WeaveClassifier().fit(X, y), local)
        row = X.iloc[[7]]
        said = model.explain(row, n_neighbors=10_000)
        assert sum(one["weight"] for one in said) == pytest.approx(1)
        for one in said[:5]:
            assert sum(one["shares"].values()) == pytest.approx(one["distance"] ** 2, abs=1e-9)
            assert set(one["shares"]) == set(X.columns)
            assert one["target"] == y[one["id"]]
        votes = {c: sum(o["weight"] for o in said if o["target"] == c) for c in "abc"}
        assert max(votes, key=votes.get) == model.predict(row)[0]
        distances, ids, _ = (part[0] for part in model.kneighbors(row))
        shown = {one["id"]: one["distance"] for one in said}
        assert (np.diff(distances) >= 0).all()
        np.testing.assert_allclose([shown[i] for i in ids], distances, atol=1e-9)

    @pytest.mark.parametrize(
        "form",
        [
            lambda row: row.iloc[0],
            lambda row: row.iloc[0].to_dict(),
            lambda row: row.iloc[0].to_list(),
            lambda row: row.to_dict("list"),
            lambda row: row.to_dict("records"),
        ],
        ids=["series", "dict", "list", "columns", "records"],
    )
    def test_explains_a_row_in_any_form(self, form):
        X, y = table(60)
        model = WeaveClassifier().fit(X, y)
        row = X.iloc[[7]]
        assert model.explain(form(row)) == model.explain(row)

    @pytest.mark.parametrize("local", LOCAL_STRENGTHS)
    def test_rows_added_and_forgotten_are_exact(self, local):
        X, y = table()
        model = weighed(WeaveClassifier().fit(X[:200], y[:200]), local).forget([])  # calibrated so
        before = model.predict_proba(X[250:])
        model.partial_fit(X[200:250], y[200:250])
        more = model.predict_proba(X[250:])
        assert not np.array_equal(before, more)
        model.forget(list(range(200, 250)))
        np.testing.assert_allclose(model.predict_proba(X[250:]), before, atol=1e-9)

    @pytest.mark.parametrize("kind", ["<U1", object, "category", "string", bool, int])
    def test_explains_classes_of_any_type(self, kind):
        X, y = table(60)
        y = pd.Series(y == "a" if kind in (bool, int) else y).astype(kind)
        model = WeaveClassifier().fit(X, y)
        (found,) = model.explain(X[:1], n_neighbors=1)
        assert found["target"] == y[found["id"]]
        assert type(found["target"]) is (kind if kind in (bool, int) else str)

    def test_is_calibrated_where_space_and_neighbors_are_given(self):
        X, y = table(900)
        rng = np.random.default_rng(5)
        y = np.where(rng.random(900) < 0.4, rng.choice(list("abc"), 900), y)
        given = WeaveClassifier(3, embedder=SupervisedWeave()).fit(X[:450], y[:450])
        assert given.n_neighbors_ == (3,) and given.local_ == 0 and len(given.validation_) == 1
        sure = given.predict_proba(X[450:]).max(axis=1).mean()
        assert sure == pytest.approx(given.score(X[450:], y[450:]), abs=0.1)

    def test_few_first_rows_decide_nothing(self):
        X, y = table(200)
        first = next(n for n in range(3, 10) if len(set(y[:n])) > 1)
        model = WeaveClassifier().partial_fit(X[:first], y[:first], classes=list("abc"))
        assert not model.validation_
        model.partial_fit(X[first:150], y[first:150])
        whole = WeaveClassifier().fit(X[:150], y[:150])
        assert model.validation_ == whole.validation_
        np.testing.assert_allclose(model.predict_proba(X[150:]), whole.predict_proba(X[150:]))

    def test_no_rows_have_no_neighbors(self):
        X, y = table(60)
        distances, ids, _ = WeaveClassifier(3).fit(X, y).kneighbors(X[:0])
        assert distances.shape == ids.shape == (0, 3)

    def test_what_cannot_be_learned_leaves_the_model(self):
        X, y = table(60)
        model = WeaveClassifier().fit(X, y)
        before = model.predict_proba(X)
        with pytest.raises(
            ValueError, match="expected two or more classes in y, got one class: 'a'"
        ):
            model.fit(X, ["a"] * 60)
        np.testing.assert_array_equal(model.predict_proba(X), before)

    def test_a_space_that_cannot_be_learned_leaves_the_model(self):
        X, y = table(60)
        model = WeaveClassifier(embedder=SupervisedWeave(weights={X.columns[0]: 2.0})).fit(X, y)
        before = model.predict_proba(X)
        with pytest.raises(ValueError, match="expected weights of columns"):
            model.fit(X.iloc[:40, 1:], ["p", "q"] * 20)
        np.testing.assert_array_equal(model.predict_proba(X), before)
        assert model.classes_.tolist() == sorted(set(y)) and model.n_features_in_ == X.shape[1]

    def test_two_classes_have_to_stay(self):
        X, y = table(60)
        model = WeaveClassifier().fit(X, y)
        before = model.predict_proba(X)
        with pytest.raises(
            ValueError, match=r"two classes or more to remain .*, got rows of \['a'\]"
        ):
            model.forget(np.flatnonzero(y != "a"))
        with pytest.raises(ValueError, match=r"got rows of \[\]"):
            model.forget(np.arange(60))
        np.testing.assert_array_equal(model.predict_proba(X), before)

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

    def test_a_space_that_was_given_stays_where_nothing_can_be_compared(self):
        given = SupervisedWeave(discriminant=0, weight_power=0.5)
        rows = {"job": ["cook", "clerk", "cook", "judge"], "age": [20.5, 30.5, 40.5, 50.5]}
        model = WeaveClassifier(embedder=given).fit(rows, ["no", "yes", "no", "yes"])
        assert model.embedder_.get_params() | {"schema": None} == given.get_params()

    def test_few_rows(self):
        model = WeaveClassifier().fit({"a": ["x", "y", "x"]}, [0, 1, 0])
        np.testing.assert_array_equal(model.predict({"a": ["x", "y"]}), [0, 1])

    @pytest.mark.parametrize("model", [WeaveClassifier, WeaveRegressor])
    def test_without_y_it_says_who_needs_it(self, model):
        for learn in (model().fit, model().partial_fit):
            with pytest.raises(ValueError, match=f"^{model.__name__} requires y to be passed"):
                learn(table(40)[0])

    def test_refuses(self):
        X, y = table(40)
        with pytest.raises(
            ValueError, match="expected two or more classes in y, got one class: 'a'"
        ):
            WeaveClassifier().fit(X, ["a"] * 40)
        with pytest.raises(ValueError, match="y of row 2 is missing"):  # not a class "nan"
            WeaveClassifier().fit(X[:3], ["a", "b", float("nan")])
        with pytest.raises(ValueError, match=r"expected classes of fit, \[.*, got 'z'"):
            WeaveClassifier().fit(X, y).partial_fit(X[:1], ["z"])
        with pytest.raises(ValueError, match="y of row 2 is missing"):
            WeaveClassifier().fit(X[:3], np.array(["a", "b", None], dtype=object))
        with pytest.raises(ValueError, match="labels in y"):
            WeaveClassifier().fit(X, y[:-1])
        with pytest.raises(ValueError, match="expected y to hold different numbers, got only 7"):
            WeaveRegressor().fit(X, [7] * 40)

    def test_clones(self):
        model = clone(WeaveClassifier(7, embedder=SupervisedWeave(0.5)))
        assert model.n_neighbors == 7 and model.embedder.discriminant == 0.5


class TestColumnsAroundARow:
    """Columns weighed anew around each row that is asked."""

    def reference(self, model, X, y, asked):
        """Rank all rows by the formula, from n × n distances; return votes and weights."""
        view = model._search_state().view
        parts = [
            (block.coordinates(model._read(X)), block.distances(*map(model._read, (asked, X))) ** 2)
            for block in (*view.values, *view.lines)
        ]
        apart = sum(squared for _, squared in parts)
        votes, all_weights = np.zeros((len(asked), len(model.classes_))), []
        for i, d in enumerate(apart):
            order = np.argsort(d, kind="stable")
            near = order[d[order] <= d[order[49]] * (1 + 1e-12)]
            w = np.exp(-2 * d[near] / d[near].max())
            w /= w.sum()
            masses = {c: w[y[near] == c].sum() for c in np.unique(y[near])}
            chance = (len(masses) - 1) / (1 / (w**2).sum() - 1)
            weights = []
            for z, _ in parts:
                mean = w @ z[near]
                total = (w[:, None] * (z[near] - mean) ** 2).sum()
                between = sum(
                    p * (((w * (y[near] == c)) @ z[near] / p - mean) ** 2).sum()
                    for c, p in masses.items()
                )
                share = between / total if total > 1e-15 else 0
                weights.append(1 + model.local_ * max((share - chance) / (1 - chance), 0))
            weights = np.array(weights) / np.mean(weights)
            local = sum(v * squared[i] for v, (_, squared) in zip(weights, parts, strict=True))
            found = np.argsort(local, kind="stable")
            ones = np.ones((1, len(found)))
            own = vote_weights(local[found][None], model.n_neighbors_, 4.0, ones)[0]
            votes[i] = [(own * (y[found] == c)).sum() for c in model.classes_]
            all_weights.append(weights)
        return votes, np.array(all_weights)

    @pytest.mark.parametrize("rows", [table, lambda n: grid(n)])
    def test_is_the_formula(self, rows):
        X, y = rows(160)
        X, y, asked = X[:100], y[:100], X[100:]
        model = weighed(WeaveClassifier().fit(X, y), 10.0)
        votes, weights = self.reference(model, X, y, asked)
        np.testing.assert_allclose(
            model.predict_proba(asked), probabilities(votes, *model.calibration_), atol=1e-9
        )
        ((_, found),) = model._neighbors(model._read(asked))
        np.testing.assert_allclose(found, weights, atol=1e-9)

    @pytest.mark.parametrize("rows", [table, lambda n: grid(n)])
    def test_values_looked_up_weigh_as_their_vectors(self, rows):
        X, y = rows(160)
        model = WeaveClassifier().fit(X[:100], y[:100])
        _, view, targets, *_ = model._search_state()
        parts, asked = (*view.values, *view.lines), model._read(X[100:])
        gaps = [total_gaps(part, model._read(X)) is not None for part in parts]
        left, right = (
            np.hstack([self.vectors(*part, rows, asks) for part in zip(parts, gaps, strict=True)])
            for rows, asks in ((asked, True), (take_rows(view.table, view.copies.heads), False))
        )
        near = Neighbors(np.arange(60), *smallest(squared_distances(left, right), 40))
        widths = [part.width for part in parts]
        every = [width + 2 * gapped for width, gapped in zip(widths, gaps, strict=True)]
        plain = ColumnCoordinates.of_vectors(right, every, widths)
        expected, weights = plain.reranked(near, targets, Queries.of([], [], left), 10.0)
        columns = ColumnCoordinates.of_view(view)
        found, same = columns.reranked(near, targets, view.queries(asked), 10.0)
        np.testing.assert_allclose(same, weights, atol=1e-9)
        np.testing.assert_allclose(found.squared, expected.squared, atol=1e-9)

    def vectors(self, part, gapped, rows, asks):
        """Return coordinates, and behind them two axes of what missing cells add."""
        found = total_gaps(part, rows) if gapped else None
        gaps = np.zeros(rows.n_rows) if found is None else found
        inner = part.coordinates(rows)
        return np.hstack([inner, gap_axes(gaps, asks=asks)]) if gapped else inner

    def test_a_column_counts_where_it_matters(self):
        rng = np.random.default_rng(0)
        n = 1500
        X = pd.DataFrame({name: rng.normal(size=n) for name in ("one", "two", "place")})
        X["place"] = rng.uniform(-4, 4, n)
        y = np.where(X["place"] < 0, X["one"] > 0, X["two"] > 0).astype(int)
        model = WeaveClassifier().fit(X[:1000], y[:1000])
        assert model.local_ == 10.0
        scores = model.validation_[0]["local"]
        assert scores[10.0] > scores[0.0] + 0.01
        fresh, truth = X[1000:], y[1000:]
        ((_, weights),) = model._neighbors(
            model._read(pd.DataFrame({"one": 0.0, "two": 0.0, "place": [-3.0, 3.0]}))
        )
        names = [b.names[0] for b in model._search_state().view.lines]
        one, two = names.index("one"), names.index("two")
        left, right = weights[0, one] / weights[0, two], weights[1, two] / weights[1, one]
        assert min(left, right) > 1.3 and np.sqrt(left * right) > 1.5
        assert model.score(fresh, truth) > weighed(model, 0.0).score(fresh, truth) + 0.01

    @pytest.mark.parametrize("name", ["class_shares", "local_distances"])
    def test_one_compiled_loop_serves_fit_and_answers(self, name, monkeypatch):
        """For arrays of other types or layouts it would be compiled again: a second or two."""
        X, y = table()
        WeaveClassifier().fit(X, y)  # loads all loops: what is put in their place stays
        seen, loop = [], getattr(local_weights, name)

        def noted(*args):
            flat = [part for arg in args for part in (arg if isinstance(arg, tuple) else (arg,))]
            arrays = [part for part in flat if hasattr(part, "dtype")]
            seen.append([(part.dtype, part.flags.c_contiguous) for part in arrays])
            return loop(*args)

        monkeypatch.setattr(local_weights, name, noted)
        model = WeaveClassifier().fit(X, y)
        in_fit = len(seen)
        weighed(model, 10.0).predict(X)
        assert 0 < in_fit < len(seen)
        assert all(types == seen[0] for types in seen)

    def test_what_nobody_compared_is_as_everywhere(self):
        X, y = table()
        assert WeaveClassifier(5, embedder=SupervisedWeave()).fit(X, y).local_ == 0


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

    @pytest.mark.parametrize("linear", [0.0, 0.5])
    @pytest.mark.parametrize("believed", [0.0, 0.7])
    def test_the_answer_is_the_mean_of_what_rows_say_alone(self, linear, believed):
        X, y = self.rows()
        model = WeaveRegressor().fit(X[:300], y[:300])
        model.linear_, model.reliability_ = linear, believed
        del model._cache
        said = model.explain(X.iloc[[307]], n_neighbors=10_000)
        answer = sum(one["weight"] * one["prediction"] for one in said)
        assert answer == pytest.approx(model.predict(X.iloc[[307]])[0])

    def test_is_the_formula(self):
        X, y = self.rows()
        model = WeaveRegressor().fit(X[:300], y[:300])
        model.linear_ = 0.5
        del model._cache  # of the linear prediction, if it did not count
        apart = model.embedder_.pairwise_distances(X[300:], X[:300]) ** 2
        squared, where = smallest(apart, max(model.n_neighbors_))
        weights = vote_weights(squared, model.n_neighbors_, 4.0, np.ones(squared.shape))
        pairs = model.embedder_.target_free().coupled.class_pairs.astype(float)
        line = model._line(pairs)(model._read(X))
        left = (y - 0.5 * line)[where]
        mean = y[:300].mean()
        for believed in (1.0, 0.7):
            model.reliability_ = believed
            said = mean + believed * ((weights * left).sum(axis=1) - mean)
            expected = said + 0.5 * line[300:]
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

    def test_no_order_of_equal_rows_decides(self):
        X, _ = grid()
        y = np.random.default_rng(6).normal(size=len(X)) + (X["two"] == "q")
        order = np.argsort(y)
        one = WeaveRegressor(5, embedder=SupervisedWeave()).fit(X, y).predict(X)
        two = WeaveRegressor(5, embedder=SupervisedWeave()).fit(X.iloc[order], y[order])
        np.testing.assert_allclose(two.predict(X), one, atol=1e-9)

    def together(self, n=900, seed=0):
        """Return two columns that matter only together, four of noise, and a target."""
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.normal(size=(n, 6)), columns=list("abcdef"))
        return X, np.sign(X["a"] * X["b"]).to_numpy() + rng.normal(scale=0.3, size=n)

    def test_columns_that_matter_together_are_found(self):
        X, y = self.together(seed=1)
        model = WeaveRegressor().fit(X[:600], y[:600])
        first = model.validation_[0]
        assert first["tuned"] > first["score"] + 0.1
        weights = model.embedder_.weights_
        assert min(weights[name] for name in "ab") > 2 * max(weights[name] for name in "cdef")
        given = SupervisedWeave(first["discriminant"], weight_power=first["weight_power"])
        plain = WeaveRegressor(embedder=given).fit(X[:600], y[:600])
        assert plain.factors_ == {}
        assert model.score(X[600:], y[600:]) > plain.score(X[600:], y[600:]) + 0.1

    def test_columns_that_say_the_same_count_less(self):
        rng = np.random.default_rng(0)
        same, other = rng.normal(size=(2, 800))
        X = pd.DataFrame({f"same{i}": same + rng.normal(scale=0.02, size=800) for i in range(5)})
        X["other"] = other
        y = np.sin(2 * same) * np.sin(2 * other) + rng.normal(scale=0.3, size=800)
        factors = WeaveRegressor().fit(X, y).factors_
        assert factors["other"] > 1.5 * max(factors[f"same{i}"] for i in range(5))

    def test_the_space_is_the_one_that_was_compared(self):
        """Factors were learned from vectors, and are then multiplied into the weights."""
        X, y = self.rows()
        X["when"] = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(400) * 7, unit="h")
        model = WeaveRegressor().fit(X, y)
        first = model.validation_[0]
        bare = SupervisedWeave(first["discriminant"], weight_power=first["weight_power"])
        bare.fit(X, y)
        assert bare.part_names() == model.embedder_.part_names()
        ours, theirs = (one.space_.parts() for one in (model.embedder_, bare))
        rows, others = X[:50], X[50:120]
        ratios = []
        for name, one, two in zip(bare.part_names(), ours, theirs, strict=True):
            left, right = (read_queries(bare, part) for part in (rows, others))
            apart = two.summands(left, right)
            if apart.max() < 1e-9:
                continue
            ratio = one.summands(left, right)[apart > 1e-6] / apart[apart > 1e-6]
            np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)
            ratios.append(ratio[0] / model.factors_[name])
        np.testing.assert_allclose(ratios, ratios[0], rtol=1e-6)  # one scale for all
        assert np.mean(list(model.embedder_.weights_.values())) == pytest.approx(1)

    def test_what_columns_add_sums_to_the_distance(self):
        X, y = self.together(300)
        model = WeaveRegressor().fit(X, y)
        assert set(model.factors_.values()) != {1.0}
        for one in model.explain(X.iloc[[7]]):
            assert sum(one["shares"].values()) == pytest.approx(one["distance"] ** 2, abs=1e-9)

    def test_same_rows_same_factors(self):
        X, y = self.rows()
        one, two = (WeaveRegressor().fit(X, y) for _ in range(2))
        assert one.factors_ == two.factors_
        np.testing.assert_array_equal(one.predict(X), two.predict(X))

    def test_neighbors_of_noise_are_not_believed(self):
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.normal(size=(900, 4)), columns=list("abcd"))
        y = rng.normal(size=900)
        model = WeaveRegressor().fit(X[:600], y[:600])
        assert model.reliability_ < 0.5
        assert model.score(X[600:], y[600:]) > -0.02

    def test_saved_and_loaded(self, tmp_path):
        X, y = self.together(300)
        model = WeaveRegressor().fit(X, y)
        model.save(tmp_path / "model.tabweave")
        again = tabweave.load(tmp_path / "model.tabweave")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        for one in (again, model):
            one.partial_fit(X[:50], y[:50])
        np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-9)

    def test_many_columns_are_learned_from_fewer_rows(self, monkeypatch):
        X, y = self.together(300)
        seen = []
        monkeypatch.setattr(members, "MAX_FACTOR_DISTANCES", 2000)
        learn = members.learned_factors
        monkeypatch.setattr(
            members, "learned_factors", lambda *all_: seen.append(all_[0].shape) or learn(*all_)
        )
        WeaveRegressor().fit(X, y)
        ((rows, near, columns),) = seen
        assert near == 20 and rows * near * columns <= 2000 + 5 * near * columns

    def test_forgets(self):
        X, y = self.rows()
        model = WeaveRegressor().fit(X[:300], y[:300])
        before = model.predict(X[300:])
        model.partial_fit(X[300:350], y[300:350]).forget(range(300, 350))
        np.testing.assert_allclose(model.predict(X[300:]), before, atol=1e-9)


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[ns]"])
def test_a_target_of_times_is_asked_for_in_a_unit(kind):
    """Its numbers would be seconds or nanoseconds, as they happen to be stored."""
    rows, y = {"c": ["a", "b"] * 10}, np.arange(20).astype(kind)
    with pytest.raises(
        ValueError, match=r"expected y to be numbers, got .*\[n?s\]; convert them to a"
    ):
        WeaveRegressor().fit(rows, y)
    start = np.datetime64("1970-01-01") if "date" in kind else np.timedelta64(0)
    WeaveRegressor().fit(rows, (y - start) / np.timedelta64(1, "D"))


def counted_solvers(monkeypatch):
    """Return a list that grows by one whenever the scatter of all features is prepared."""
    made = []

    class Counted(supervised.Ridge):
        def __init__(self, gram):
            made.append(len(gram))
            super().__init__(gram)

    monkeypatch.setattr(supervised, "Ridge", Counted)
    return made


@pytest.mark.parametrize("widest", [1500, 3])
def test_folds_and_members_share_one_solver(widest, monkeypatch):
    """However many coefficients there are: above the widest, no spectrum is computed."""
    monkeypatch.setattr(supervised, "_WIDEST", widest)
    made = counted_solvers(monkeypatch)
    model = WeaveClassifier().fit(*table(80))
    assert len(made) == 1 and "_cache" not in vars(model.embedder_)


def test_the_line_of_a_regressor_is_solved_once(monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 3)), columns=list("abc"))
    model = WeaveRegressor().fit(X, X.sum(axis=1) + rng.normal(scale=0.1, size=80))
    assert model.linear_ > 0
    read, made = pickle.loads(pickle.dumps(model)), counted_solvers(monkeypatch)
    expected = model.predict(X)
    np.testing.assert_allclose(read.predict(X), expected)
    np.testing.assert_allclose(read.predict(X), expected)
    assert len(made) == 1


@pytest.mark.parametrize("values", ["a", "abc"])
def test_a_regressor_of_rows_with_many_twins_divides_by_nothing(values):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(list(values), 600), "b": rng.choice(list(values), 600)})
    y = X["a"].eq("b") + rng.normal(size=600)
    model = WeaveRegressor().fit(X, y)
    assert np.isfinite(list(model.factors_.values())).all()
    np.testing.assert_allclose(model.predict(X).mean(), y.mean(), atol=0.02)


@pytest.mark.parametrize("unit", [1e200, -1e160, 1e-160, 1e-200])
def test_a_target_whose_squares_are_no_floats_is_refused(unit):
    rows = {"a": [i * 7 % 40 / 4 for i in range(40)]}
    with pytest.raises(ValueError, match=r"expected y between .*, got .*; give it in another unit"):
        WeaveRegressor().fit(rows, np.arange(40) * unit)
    model = WeaveRegressor().fit(rows, np.arange(40) * 1e100)
    assert np.isfinite(model.predict(rows)).all()


@pytest.mark.parametrize("objective", ["f1", "accuracy", "log_loss"])
def test_the_objective_is_what_the_choice_maximises(objective, monkeypatch):
    """The scores are those of scikit-learn, and the best of them is chosen."""
    from sklearn.metrics import accuracy_score, f1_score, log_loss

    X, y = table(400)
    rng = np.random.default_rng(2)
    y = np.where(rng.random(400) < 0.3, rng.choice(list("abc"), 400, p=[0.9, 0.07, 0.03]), y)
    seen = []

    def watched(folds, member, *others):
        out = fold_answers(folds, member, *others)
        seen.append((member, out))
        return out

    monkeypatch.setattr(members, "fold_answers", watched)
    targets = []
    scores = WeaveClassifier._scores
    monkeypatch.setattr(
        WeaveClassifier,
        "_scores",
        lambda self, *all_: targets.append(all_[1]) or scores(self, *all_),
    )
    model = WeaveClassifier(objective=objective).fit(X, y)
    expected = {}
    for member, out in seen[:6]:
        best = []
        for rows, votes in out.values():
            labels, votes = targets[0].values[rows], votes.toarray()
            proba = probabilities(votes, *calibrated(votes, Targets(labels)))
            best.append(
                {
                    "f1": lambda p, t: f1_score(t, p.argmax(1), average="macro"),
                    "accuracy": lambda p, t: accuracy_score(t, p.argmax(1)),
                    "log_loss": lambda p, t: -log_loss(t, p, labels=range(3)),
                }[objective](proba, labels)
            )
        expected[member] = np.mean(sorted(best)[-3:])
    for found in model.validation_:
        member = found["weight_power"], found["discriminant"]
        assert found["score"] == pytest.approx(expected[member], abs=1e-9)
    assert model.validation_[0]["score"] == pytest.approx(max(expected.values()))


def test_an_objective_that_is_none_is_refused():
    with pytest.raises(ValueError, match="'objective' parameter of WeaveClassifier must be a str"):
        WeaveClassifier(objective="auc").fit(*table(40))
