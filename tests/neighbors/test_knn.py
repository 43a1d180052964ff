import math

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import tabweave
from tabweave import (
    DistanceHierarchy,
    KModes,
    OneHot,
    Schema,
    SimilarityIndex,
    SupervisedWeave,
    Weave,
    papers,
)
from tabweave.embed.value_metric import ValueMetric
from tabweave.neighbors.knn import WeightedKNN
from tabweave.neighbors.votes import checked_target

WEIGHTS = {
    "none": lambda d: 1.0,
    "exp": lambda d: 1 / math.e**d,
    "log": lambda d: 1 / (math.log(d + 1) + 1),
    "org": lambda d: 1 / (d + 1),
    "pow": lambda d: 1 / (d**2 + 1),
    "sqrt": lambda d: 1 / (d**0.5 + 1),
}


def draw(n=200, m=4, values=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, values, (n, m))
    y = (X[:, 0] + X[:, 1] + rng.integers(0, 2, n)) % 3
    return X, np.array(["u", "v", "w"])[y]


def brute_votes(D, y, classes, k, weight, ties):
    """Votes by explicit loops over the full distance matrix."""
    out = []
    for row in D.tolist():
        order = sorted(range(len(row)), key=lambda j: (row[j], j))
        edge = row[order[k - 1]] * (1 + 1e-9)
        chosen = [j for j in order if row[j] <= edge] if ties == "all" else order[:k]
        votes = [sum(weight(row[j]) for j in chosen if y[j] == c) for c in classes]
        out.append([v / sum(votes) for v in votes])
    return np.array(out)


@pytest.mark.parametrize("ties", ["all", "first"])
@pytest.mark.parametrize("weights", list(WEIGHTS))
def test_equals_explicit_loops(weights, ties):
    X, y = draw()
    for metric in ("hamming", "of", OneHot()):
        for k in (1, 5):
            model = WeightedKNN(k, metric=metric, weights=weights, ties=ties).fit(X[:150], y[:150])
            D = model.metric_.pairwise_distances(X[150:], X[:150])
            wanted = brute_votes(D, y, model.classes_, k, WEIGHTS[weights], ties)
            np.testing.assert_allclose(model.predict_proba(X[150:]), wanted, atol=1e-12)


def test_weights_of_table_2():
    from tabweave.neighbors.knn import weight_of

    for kind, f in enumerate(WEIGHTS.values()):
        for d in (0.0, 0.3, 1.0, 7.5):
            assert weight_of(d, kind, 0.0) == pytest.approx(f(d))


@pytest.mark.parametrize("metric", ["hamming", "goodall3", "vdm", "lin", OneHot()])
@pytest.mark.parametrize("weights", ["none", "exp"])
def test_row_order_never_matters(metric, weights):
    if metric == "vdm":
        pytest.importorskip("tabweave.measures.supervised")
    X, y = draw(n=300, m=7, values=5, seed=1)
    shuffle = np.random.default_rng(0).permutation(250)
    model = WeightedKNN(3, metric=metric, weights=weights).fit(X[:250], y[:250])
    other = WeightedKNN(3, metric=metric, weights=weights).fit(X[:250][shuffle], y[:250][shuffle])
    assert np.array_equal(model.predict_proba(X[250:]), other.predict_proba(X[250:]))
    assert np.array_equal(model.predict(X[250:]), other.predict(X[250:]))


@pytest.mark.parametrize("metric", ["hamming", "of", "lin", OneHot()])
def test_kneighbors_equals_sorting_all_distances(metric):
    X, y = draw(n=400, values=3, seed=2)
    model = WeightedKNN(7, metric=metric).fit(X[:300], y[:300])
    distances, indices = model.kneighbors(X[300:])
    D = model.metric_.pairwise_distances(X[300:], X[:300])
    wanted = np.argsort(D, axis=1, kind="stable")[:, :7]
    assert np.array_equal(indices, wanted)
    np.testing.assert_allclose(distances, np.take_along_axis(D, wanted, axis=1), atol=1e-12)
    assert np.array_equal(model.kneighbors(X[300:], 2, return_distance=False), wanted[:, :2])


@pytest.mark.parametrize("values", [2, 30])
def test_kneighbors_of_the_training_rows_leaves_them_out(values):
    X, y = draw(n=120, values=values, seed=3)
    model = WeightedKNN(4, schema="nominal").fit(X, y)
    distances, indices = model.kneighbors()
    D = model.metric_.pairwise_distances(X)
    np.fill_diagonal(D, np.inf)
    assert np.array_equal(indices, np.argsort(D, axis=1, kind="stable")[:, :4])
    np.testing.assert_array_equal(distances, np.take_along_axis(D, indices, axis=1))


def test_blocks_do_not_change_results(monkeypatch):
    X, y = draw(n=300, m=6, values=5, seed=4)
    model = WeightedKNN(3, weights="org", metric="of").fit(X, y)
    whole, near = model.predict_proba(X), model.kneighbors(X)
    monkeypatch.setattr("tabweave.neighbors.knn.BLOCK_DISTANCES", 700)
    assert np.array_equal(model.predict_proba(X), whole)
    for a, b in zip(model.kneighbors(X), near, strict=True):
        assert np.array_equal(a, b)


def test_equal_votes_go_to_the_first_class():
    model = WeightedKNN(2).fit([["a"], ["b"], ["c"]], ["z", "y", "x"])
    assert model.predict([["a"], ["?"]]).tolist() == ["x", "x"]
    assert model.predict_proba([["?"]]).tolist() == [[1 / 3] * 3]


def test_exp_far_away_from_everything():
    X, y = draw()
    metric = ValueMetric(lambda counts: [1e4 * (1 - np.eye(n)) for n in counts.sizes])
    shares = WeightedKNN(3, metric=metric, weights="exp").fit(X, y).predict_proba([[99] * 4])
    assert np.isfinite(shares).all() and shares.sum() == pytest.approx(1)


def test_missing_and_unknown_values():
    rows = [["a", None], ["a", None], ["b", "x"], ["b", "y"]]
    model = WeightedKNN(1).fit(rows, [0, 0, 1, 1])
    assert model.predict([["b", None], ["a", "new"], ["a", None]]).tolist() == [1, 0, 0]
    strict = WeightedKNN(1, metric=ValueMetric(unknown="error")).fit(rows, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="column 'x0': value 'new' was not seen"):
        strict.predict([["new", "x"]])


def test_sets_go_through_the_metric():
    rows = {"tags": [["a", "b"], ["a"], ["c"], ["c", "d"], ["a", "b"]]}
    model = WeightedKNN(1, metric=OneHot()).fit(rows, [0, 0, 1, 1, 0])
    assert model.predict({"tags": [["b", "a"], ["d"], ["c", "c"]]}).tolist() == [0, 1, 1]
    D = model.metric_.pairwise_distances(rows)
    np.testing.assert_allclose(model.kneighbors(rows, 3)[0], np.sort(D, axis=1)[:, :3], atol=1e-12)


def test_neighbours_are_those_of_an_index():
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({"a": rng.choice(list("xyz"), 120), "b": rng.normal(size=120)})
    rows["constant"] = "same"  # no part of the space
    rows.loc[rng.choice(120, 15, replace=False), "a"] = None
    rows["c"] = rng.choice(list("pqrst"), 120)
    y = rng.choice(2, 120)
    columns = ["a", "b", "constant", "c"]
    for metric, names in (
        (Weave(), columns),
        (SupervisedWeave(), columns),
        (papers.CKML(), ["a", "c"]),
    ):
        train, asked = rows[names][:80], rows[names][80:]
        model = WeightedKNN(5, metric=metric).fit(train, y[:80])
        distances, near = model.kneighbors(asked)
        found = SimilarityIndex(model.metric_).fit(train).query(asked, 5)
        np.testing.assert_allclose(distances, found.distances, atol=1e-7)
        between = model.metric_.pairwise_distances(asked, train)
        np.testing.assert_allclose(np.take_along_axis(between, near, 1), distances, atol=1e-7)
        np.testing.assert_allclose(np.sort(between, axis=1)[:, :5], distances, atol=1e-7)


def test_schema_and_fitted_metrics():
    X, y = draw()
    metric = ValueMetric("of").fit(X)
    assert WeightedKNN(metric=metric).fit(X[:100], y[:100]).metric_ is metric
    frame = {"a": [1.5, 2.5, 1.5], "b": ["x", "y", "y"]}
    named = WeightedKNN(1, schema=Schema({"b": "nominal"})).fit(frame, [0, 1, 1])
    assert named.predict(frame).tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="pass the schema to the metric"):
        WeightedKNN(1, metric=OneHot(), schema={"a": "nominal"}).fit(frame, [0, 1, 1])


def test_score_and_classes():
    X, y = draw(seed=5)
    model = WeightedKNN(1).fit(X, y)
    assert model.classes_.tolist() == ["u", "v", "w"]
    assert model.score(X, y) == (model.predict(X) == y).mean() > 0.5


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"n_neighbors": 0}, "'n_neighbors' parameter of WeightedKNN must be an int in the range"),
        ({"n_neighbors": 5}, "n_neighbors=5, but there are n_samples=4 training rows"),
        ({"weights": "distance"}, "'weights' parameter of WeightedKNN must be a str among"),
        ({"ties": "random"}, "'ties' parameter of WeightedKNN must be a str among"),
        ({"metric": 3}, "'metric' parameter of WeightedKNN must be"),
        ({"metric": "euclid"}, "got 'euclid'"),
    ],
)
def test_bad_parameters(args, message):
    rows = [["a"], ["b"], ["c"], ["d"]]
    with pytest.raises(ValueError, match=message):
        WeightedKNN(**{"n_neighbors": 1} | args).fit(rows, [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 0, 0], "got one class"),
        ([0, 1], "expected 3 labels in y, one per row of X, got 2"),
        ([0, 1, np.nan], "Input y contains NaN or infinity: row 2"),
        (["a", None, "b"], "y of row 1 is missing"),
        (None, "requires y to be passed"),
        ([0.5, 1.7, 2.2], "continuous"),
    ],
)
def test_bad_classes(y, message):
    with pytest.raises(ValueError, match=message):
        WeightedKNN(1).fit([["a"], ["b"], ["c"]], y)


def test_bad_queries():
    model = WeightedKNN(1).fit([["a"], ["b"]], [0, 1])
    with pytest.raises(ValueError, match="n_neighbors=3, but there are n_samples=2"):
        model.kneighbors([["a"]], 3)
    with pytest.raises(ValueError, match="n_samples=1 training rows"):
        model.kneighbors(None, 2)
    with pytest.raises(ValueError, match="expected n_neighbors to be a whole number >= 1, got 0"):
        model.kneighbors(None, 0)
    with pytest.raises(ValueError, match="2 features"):
        model.predict([["a", "b"]])


@parametrize_with_checks([WeightedKNN(), WeightedKNN(3, weights="exp", ties="first", metric="of")])
def test_sklearn(estimator, check):
    check(estimator)


def test_structured_arrays_have_names():
    X = np.array([(1, "x"), (2, "y")], dtype=[("a", "i4"), ("b", "U1")])
    assert WeightedKNN(1).fit(X, [0, 1]).predict(X).tolist() == [0, 1]


def test_a_column_of_many_values_is_not_decomposed(calls):
    """Distances come from tables of pairs: V² entries. Vectors would take V³ steps."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 400, 3000), rng.integers(0, 4, (3000, 3))])
    with calls() as work:
        model = WeightedKNN(1, schema="nominal").fit(X, rng.integers(0, 2, 3000))
        distances, _ = model.kneighbors(X[:50], 1)
    assert not distances.any()
    assert not any(map(work.of, ("eigh", "svd", "cdist", "cdist_squared")))


# -- hierarchies and numbers -------------------------------------------------------------------


def mixed_rows(n=90, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    fuel = np.where(rng.random(n) < 0.8, np.array(["gas", "oil"])[y], "coal")
    return {"fuel": fuel.tolist(), "age": (3.0 * y + rng.normal(size=n)).tolist()}, y


@pytest.mark.parametrize("weights", WEIGHTS)
def test_votes_under_a_hierarchy_are_those_of_table_2(weights):
    rows, y = mixed_rows()
    asked = mixed_rows(20, seed=1)[0]
    model = WeightedKNN(7, metric=DistanceHierarchy(), weights=weights).fit(rows, y)
    distances = DistanceHierarchy().fit(rows, y).pairwise_distances(asked, rows)
    for d, found in zip(distances, model.predict_proba(asked), strict=True):
        near = d <= np.sort(d)[6] * (1 + 1e-9)
        votes = np.bincount(y[near], np.vectorize(WEIGHTS[weights])(d[near]), minlength=2)
        np.testing.assert_allclose(found, votes / votes.sum())


@pytest.mark.parametrize("weights", WEIGHTS)
def test_coordinates_of_a_map_are_numbers(weights):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 80)
    points, asked = y[:, None] + rng.normal(size=(80, 2)), rng.normal(1, 1, (15, 2))
    model = WeightedKNN(5, weights=weights).fit(points, y)
    reference = KNeighborsClassifier(5, weights=np.vectorize(WEIGHTS[weights], otypes=[float])).fit(
        points, y
    )
    np.testing.assert_allclose(model.predict_proba(asked), reference.predict_proba(asked))
    distances, rows = model.kneighbors(asked)
    expected = reference.kneighbors(asked)
    np.testing.assert_allclose(distances, expected[0])
    np.testing.assert_array_equal(rows, expected[1])
    again = WeightedKNN(5, metric="euclidean", weights=weights).fit(points, y)
    np.testing.assert_array_equal(model.predict_proba(asked), again.predict_proba(asked))


def test_what_auto_stands_for(tmp_path):
    rows, y = mixed_rows()
    assert isinstance(WeightedKNN().fit(rows, y).metric_, DistanceHierarchy)
    whole = WeightedKNN().fit({"fuel": rows["fuel"], "doors": (y + 2).tolist()}, y)
    assert whole.metric_.measure == "hamming"
    numbers = WeightedKNN().fit({"age": rows["age"]}, y)
    assert type(numbers.metric_).__name__ == "PlainDistance"
    numbers.save(tmp_path / "knn.tabweave")
    asked = {"age": [0.5, 2.5]}
    np.testing.assert_array_equal(
        tabweave.load(tmp_path / "knn.tabweave").predict(asked), numbers.predict(asked)
    )
    with pytest.raises(ValueError, match="column 'fuel': expected numbers for the euclidean"):
        WeightedKNN(metric="euclidean").fit(rows, y)
    with pytest.raises(ValueError, match=r"column 'age': expected numbers, got NaN .* in row 1"):
        WeightedKNN(metric="euclidean").fit({"age": [0.5, None, 1.5]}, [0, 1, 0])


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "int64[pyarrow]", "bool[pyarrow]"])
def test_classes_of_pandas_own_types_stay_what_they_are(dtype):
    y = pd.Series([0, 1] * 20, dtype="Int64").astype(dtype)
    expected = [False, True] if "bool" in dtype else [0, 1]
    for target in (y, y.array):
        found = checked_target(target, "KNN")
        assert [type(label) for label in np.unique(found).tolist()] == [type(expected[0])] * 2
        assert np.unique(found).tolist() == expected
    y[3] = pd.NA
    with pytest.raises(ValueError, match=r"row 3 .*drop the row or give it a target"):
        checked_target(y, "KNN")


def test_datetimes_are_numbers_to_the_metric_that_is_chosen():
    rng = np.random.default_rng(0)
    when = np.datetime64("2024-01-01", "s") + np.sort(rng.choice(10**7, 60, replace=False))
    y = np.repeat(["early", "late"], 30)
    for rows in (
        {"when": when, "fuel": rng.choice(["gas", "oil"], 60)},
        {"when": when, "load": rng.normal(size=60)},
    ):
        model = WeightedKNN(3).fit({name: cells[::2] for name, cells in rows.items()}, y[::2])
        assert isinstance(model.metric_, DistanceHierarchy)
        assert model.metric_.schema_["when"].kind == "datetime"
        assert model.score({name: cells[1::2] for name, cells in rows.items()}, y[1::2]) > 0.7


@pytest.mark.parametrize("task", [WeightedKNN(3), WeightedKNN(3, metric="dilca"), KModes(2)])
def test_a_column_of_another_type_is_refused_and_not_far_from_every_row(task):
    rows = pd.DataFrame({"code": [35, 40, 62] * 20, "b": ["u", "v", "w"] * 20})
    task.fit(rows, rows["b"])
    assert len(task.predict(rows)) == 60
    with pytest.raises(ValueError, match="column 'b': expected text as in fit"):
        task.predict(rows.assign(b=[1, 2, 3] * 20))


def test_values_that_fit_has_not_seen_are_reported():
    rows = {"a": list("pqr") * 20, "b": list("uvw") * 20}
    model = WeightedKNN().fit(rows, rows["a"])
    with pytest.raises(ValueError, match="column 'a': none of its 60 values was seen in fit"):
        model.predict(rows | {"a": ["new"] * 60})
    with pytest.warns(UserWarning, match="column 'a': 30 of 60 values were not seen in fit"):
        model.predict(rows | {"a": ["new", "p"] * 30})


def test_numbers_whose_squares_are_infinite_are_refused():
    rows = np.random.default_rng(0).random((12, 2)) * 1e200
    with pytest.raises(ValueError, match="column 'x0': expected numbers up to 1e\\+150"):
        WeightedKNN(2, metric="euclidean").fit(rows, ["a", "b"] * 6)
    model = WeightedKNN(2).fit(rows / 1e200, ["a", "b"] * 6)
    with pytest.raises(ValueError, match="in another unit"):
        model.predict(rows)
