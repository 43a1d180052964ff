import tracemalloc

import numpy as np
import pytest
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import cdist, squareform
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from tabweave import Column, Counts, Table
from tabweave.datasets import car
from tabweave.embed.hierarchy import (
    DRDH,
    DistanceHierarchy,
    TreeIndex,
    TreeRows,
    dissimilarity,
    from_linkage,
)
from tabweave.engines.reading import read_fitted

DRINKS = {"coffee": ["latte", "mocha"], "tea": ["oolong"]}
ROWS = {
    "drink": ["latte", "mocha", "oolong", "latte"],
    "size": ["S", "M", "L", "M"],
    "price": [3.0, None, 2.0, 4.0],
    "tags": [["a"], ["a", "b"], [], ["b"]],
}
SCHEMA = {"size": Column("size", "ordinal", levels=("S", "M", "L"))}


@parametrize_with_checks([DistanceHierarchy()])
def test_sklearn(estimator, check):
    check(estimator)


def test_dissimilarity_is_equation_11():
    y = ["p", "p", "q", "q"]
    counts = Counts.of(Table.of({"x": ["a", "b", "b", "c"]}), y)
    np.testing.assert_array_equal(dissimilarity(counts, "x"), [[0, 1, 2], [1, 0, 1], [2, 1, 0]])


def test_without_labels_the_other_columns_are_the_probes():
    rows = {"x": ["a", "b", "b", "c"], "y": ["p", "p", "q", "q"], "z": ["u"] * 4}
    counts = Counts.of(Table.of(rows))
    np.testing.assert_array_equal(
        dissimilarity(counts, "x"), np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]]) / 2
    )
    alone = Counts.of(Table.of({"x": ["a", "b"]}))
    np.testing.assert_array_equal(dissimilarity(alone, "x"), [[0, 1], [1, 0]])


@pytest.mark.parametrize("method", ["single", "average", "complete"])
def test_leaves_are_twice_the_height_apart_they_join_at(method):
    points = np.random.default_rng(0).random((12, 3))
    D = cdist(points, points, "cityblock")
    tree = from_linkage(D, list("abcdefghijkl"), method)
    joined = squareform(cophenet(linkage(squareform(D, checks=False), method)))
    for i, a in enumerate("abcdefghijkl"):
        for j, b in enumerate("abcdefghijkl"):
            assert tree.distance(a, b) == pytest.approx(2 * joined[i, j], abs=1e-12)


@pytest.mark.parametrize("labelled", [True, False])
def test_rows_are_as_far_apart_as_their_trees_say(labelled):
    cars = car().take(range(0, 1728, 50))
    model = DistanceHierarchy().fit(cars.columns, cars.y if labelled else None)
    D = model.pairwise_distances(cars.columns)
    E = model.transform(cars.columns)
    np.testing.assert_allclose(cdist(E, E, "cityblock"), D)
    for i, j in ((0, 7), (3, 20), (11, 30)):
        a, b = ({k: v[r] for k, v in cars.columns.items()} for r in (i, j))
        parts = model.explain(a, b)
        expected = {k: model.trees_[k].distance(a[k], b[k]) for k in a}
        assert parts == pytest.approx(expected, abs=1e-12)
        assert sum(parts.values()) == pytest.approx(D[i, j])


def test_every_kind_of_column():
    model = DistanceHierarchy({"drink": DRINKS}, schema=SCHEMA).fit(ROWS)
    a = {"drink": "latte", "size": "S", "price": 2.0, "tags": ["a"]}
    b = {"drink": "oolong", "size": "L", "price": 4.0, "tags": ["a", "b"]}
    parts = model.explain(a, b)
    assert parts["drink"] == 4 and parts["size"] == 1 and parts["price"] == 1
    apart = model.trees_["tags"].distance("a", "b")
    assert parts["tags"] == pytest.approx(apart / 2)  # a set is the mean of its elements
    names = model.get_feature_names_out().tolist()
    assert "size" in names and "price" in names and "drink_0" in names
    assert model.value_distances("drink").loc["latte", "oolong"] == 4


def test_missing_and_unknown():
    model = DistanceHierarchy({"drink": DRINKS}, schema=SCHEMA).fit(ROWS)
    known = {"drink": "latte", "size": "S", "price": 3.0, "tags": ["a"]}

    def drink(value):
        return model.explain(known, {**known, "drink": value})["drink"]

    assert drink("coffee/flat white") == drink("coffee") == 1  # nearest known ancestor
    assert drink(None) == 1.5  # as far as the drinks seen are on average: 0, 2, 4, 0
    assert 0 < drink("water") < 4  # the centroid
    assert model.explain(known, {**known, "price": None})["price"] == 0  # 3 is the mean
    assert model.explain(known, {**known, "size": None})["size"] == 0.5
    strict = DistanceHierarchy({"drink": DRINKS}, schema=SCHEMA, unknown="error").fit(ROWS)
    for column, value in (("drink", "water"), ("size", "XL")):
        with pytest.raises(ValueError, match=f"column '{column}': value '{value}' is not in its"):
            strict.transform([{**known, column: value}])


def test_a_leaf_that_is_not_in_the_tree():
    with pytest.raises(ValueError, match="column 'drink': value 'water' is not in its tree; add"):
        DistanceHierarchy({"drink": DRINKS}).fit({"drink": ["latte", "water"]})
    with pytest.raises(ValueError, match=r"set columns \('drink'\), got one of 'food'"):
        DistanceHierarchy({"food": DRINKS}).fit({"drink": ["latte", "mocha"]})


def test_a_tree_of_a_column_of_numbers_asks_for_the_kind():
    trees = {"code": {"a": [1, 2], "b": [3]}}
    with pytest.raises(ValueError, match=r"is numeric; declare schema=\{'code': 'nominal'\}"):
        DistanceHierarchy(trees).fit({"code": [1, 2, 3]})
    with pytest.raises(ValueError, match=r"got one of 'code', which is no column$"):
        DistanceHierarchy(trees).fit({"other": ["x", "y"]})
    model = DistanceHierarchy(trees, schema={"code": "nominal"}).fit({"code": [1, 2, 3]})
    assert model.value_distances("code").loc[1, 3] == 4


def test_slashes_in_values_are_no_paths_unless_there_is_a_tree_by_hand():
    model = DistanceHierarchy().fit({"x": ["a", "b", "a"], "y": ["p", "q", "q"]})
    unknown = model.transform([{"x": "a/b", "y": "p"}])
    assert np.array_equal(unknown, model.transform([{"x": "zzz", "y": "p"}]))


def test_no_label_leaks_from_rows_that_were_not_fitted():
    cars = car()
    every_other = range(0, 1728, 2)
    half = DistanceHierarchy().fit(cars.take(every_other).columns, cars.y[::2])
    before = half.transform(cars.columns)
    assert np.array_equal(before, half.transform(cars.columns))
    assert half.counts_.n == 864


def test_batches_give_the_same_trees():
    cars = car()
    whole = DistanceHierarchy().fit(cars.columns, cars.y)
    parts = DistanceHierarchy()
    for start in range(0, 1728, 500):
        rows = range(start, min(start + 500, 1728))
        parts.partial_fit(cars.take(rows).columns, cars.y[start : start + 500])
    assert parts.counts_ == whole.counts_
    assert np.array_equal(parts.transform(cars.columns), whole.transform(cars.columns))
    with pytest.raises(ValueError, match="y was given for some batches only"):
        parts.partial_fit(cars.columns)


@pytest.mark.parametrize(
    "bad, error",
    [({"linkage": "ward"}, ValueError), ({"unknown": "x"}, ValueError), ({"trees": 3}, TypeError)],
)
def test_bad_parameters(bad, error):
    (name,) = bad
    with pytest.raises(error, match=f"The '{name}' parameter of DistanceHierarchy must be"):
        DistanceHierarchy(**bad).fit(ROWS)


def test_numbers():
    with pytest.raises(ValueError, match="column 'a': row 1 holds inf"):
        DistanceHierarchy().fit({"a": [1.0, np.inf]})
    constant = DistanceHierarchy().fit_transform({"a": [7.0, 7.0, 7.0]})
    assert np.array_equal(constant, np.zeros((3, 1)))  # nothing to tell apart
    empty = DistanceHierarchy(schema={"a": "numeric"}).fit_transform({"a": [None, None]})
    assert np.array_equal(empty, np.zeros((2, 1)))
    with pytest.raises(ValueError, match="beyond float64"):
        DistanceHierarchy().fit({"a": [1.7e308, -1.7e308]})


# -- what every embedder can do -----------------------------------------------------------------


def test_counts_of_categories_suffice():
    cars = car()
    rows = {**cars.columns, "size": ["S", "M", "L"] * 576}
    table = Table.of(rows, SCHEMA)
    counted = DistanceHierarchy().fit_counts(Counts.of(table, cars.y))
    fitted = DistanceHierarchy(schema=SCHEMA).fit(rows, cars.y)
    np.testing.assert_array_equal(counted.transform(rows), fitted.transform(rows))
    counted.partial_fit(rows, cars.y)
    assert counted.counts_.n == 2 * 1728 and not hasattr(counted, "trees_")
    with pytest.raises(ValueError, match="'price' is numeric, and counts do not hold its range"):
        DistanceHierarchy().fit_counts(Counts.of({"price": [1.0, 2.0]}))


def test_a_batch_with_a_value_that_no_tree_has_changes_nothing():
    model = DistanceHierarchy({"drink": DRINKS}).fit({"drink": ["latte", "mocha"]})
    with pytest.raises(ValueError, match="value 'water' is not in its tree"):
        model.partial_fit({"drink": ["water"]})
    assert model.counts_.n == 2
    assert model.transform({"drink": ["latte"]}).shape == (1, 5)


def test_distances_of_values_are_those_of_trees_and_lines():
    model = DistanceHierarchy({"drink": DRINKS}, schema=SCHEMA).fit(ROWS)
    assert model.value_distances("size").loc["S", "M"] == 0.5
    with pytest.raises(KeyError, match="expected a categorical column"):
        model.value_distances("price")
    with pytest.raises(ValueError, match="which no inner product gives"):
        model.pairwise_kernel(ROWS)


def test_a_tree_of_many_edges_is_not_laid_out_row_by_row():
    """A code list of 900 leaves and 4,000 rows: distances of values, looked up."""
    codes = [f"{a}/{a}{b}/{a}{b}{c}" for a in "ABC" for b in range(30) for c in range(10)]
    rng = np.random.default_rng(0)
    rows = {"code": [codes[i] for i in rng.integers(900, size=4000)], "size": rng.random(4000)}
    model = DistanceHierarchy({"code": codes}).fit(rows)
    some = {name: column[:3] for name, column in rows.items()}
    tracemalloc.start()
    found = model.pairwise_distances(some, rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4000 * model.space_.width * 8 / 2
    vectors = model.transform(some), model.transform(rows)
    np.testing.assert_allclose(found, cdist(*vectors, "cityblock"), rtol=0, atol=1e-12)


def test_labels_that_no_row_has_are_not_refused():
    pandas = pytest.importorskip("pandas")
    strict = DistanceHierarchy({"drink": DRINKS}, unknown="error").fit({"drink": ["latte"]})
    drinks = pandas.Categorical(["latte"], ["latte", "water"])
    assert strict.transform(pandas.DataFrame({"drink": drinks})).shape == (1, 5)


def test_sets_that_are_all_empty_have_a_root_alone():
    rows = {"tags": [[]] * 6, "job": ["cook", "clerk"] * 3}
    model = DistanceHierarchy(schema={"tags": "set"}).fit(rows)
    far = model.explain({"tags": [], "job": "cook"}, {"tags": [], "job": "clerk"})
    assert far["tags"] == 0 and far["job"] > 0


def test_datetimes_lie_on_a_line():
    rows = {"when": ["2024-01-01", "2024-01-11", "2024-01-05"], "tea": ["a", "b", "a"]}
    model = DistanceHierarchy(schema={"when": "datetime"}).fit(rows)
    assert model.explain(["2024-01-01", "a"], ["2024-01-05", "a"]) == {"when": 0.4, "tea": 0.0}


@pytest.mark.parametrize("model", [DistanceHierarchy(), DRDH()])
def test_numbers_are_no_classes(model):
    rows = {"a": list("xyz") * 20, "b": list("pq") * 30}
    with pytest.raises(ValueError, match=r"expected classes in y, got numbers such as 0\.5; bin"):
        model.fit(rows, np.arange(60) + 0.5)


def test_half_stars_are_classes():
    rows, stars = {"a": list("xyz") * 20}, np.arange(60) % 6 / 2
    assert DistanceHierarchy().fit(rows, stars).counts_.classes == (0, 0.5, 1, 1.5, 2, 2.5)


# -- DRDH ---------------------------------------------------------------------------------------

pytest.importorskip("openTSNE", reason="needs the extra 'map'")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    cars = car().take(rng.permutation(1728)[:200])
    return {**cars.columns, "price": rng.random(200), "tags": [["a"], ["a", "b"]] * 100}, cars.y


@pytest.fixture(scope="module")
def fitted(rows):
    return DRDH(perplexity=10, n_iter=100, random_state=0).fit(*rows)


@parametrize_with_checks([DRDH(n_iter=20)])
def test_scikit_learn_checks_of_maps(estimator, check):
    check(estimator)


def search(rows, model=None):
    X, y = rows
    model = model or DistanceHierarchy().fit(X, y)
    return model, TreeRows.of(read_fitted(model, X), model.space_, "centroid")


def test_neighbours_are_exact(rows):
    model, found = search(rows)
    D = model.pairwise_distances(rows[0])
    indices, distances = TreeIndex(found, 15).query(found, 15)
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :15], atol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(D, indices, 1), distances, atol=1e-12)
    np.fill_diagonal(D, np.inf)
    indices, distances = TreeIndex(found, 15).build()
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :15], atol=1e-12)
    assert not (indices == np.arange(200)[:, None]).any()


def test_neighbours_stay_neighbours_on_the_map(rows, fitted):
    near = TreeIndex(search(rows, fitted.hierarchy_)[1], 5).build()[0]
    D = cdist(fitted.map_, fitted.map_)
    beside = np.take_along_axis(D, near, 1).mean()
    assert beside < 0.3 * D.mean()


def test_new_rows_find_their_place(rows, fitted):
    X, _ = rows
    before = fitted.map_.copy()
    placed = fitted.transform(X)
    apart = np.linalg.norm(placed - fitted.map_, axis=1)
    assert np.median(apart) < 0.1 * cdist(fitted.map_, fitted.map_).mean()
    assert np.array_equal(before, fitted.map_)
    alone = fitted.transform({name: column[:7] for name, column in X.items()})
    np.testing.assert_allclose(alone, placed[:7], atol=1e-9)


def test_repeats_with_a_seed(rows, fitted):
    again = DRDH(perplexity=10, n_iter=100, random_state=0).fit_transform(*rows)
    assert np.array_equal(again, fitted.map_)
    assert fitted.get_feature_names_out().tolist() == ["map0", "map1"]


def test_three_dimensions(rows):
    assert DRDH(3, n_iter=5, random_state=0).fit_transform(*rows).shape == (200, 3)


def test_perplexity(rows):
    X, y = rows
    few = {name: column[:10] for name, column in X.items()}
    with pytest.raises(ValueError, match="perplexity=30 needs 91 rows, but there are 10; use at"):
        DRDH(perplexity=30).fit(few, y[:10])
    assert DRDH(n_iter=5).fit(few, y[:10]).perplexity_ == 3
    with pytest.raises(ValueError, match="expected at least 4 rows"):
        DRDH().fit({"x": ["a", "b"]})


@pytest.mark.parametrize(
    "bad",
    [{"n_components": 0}, {"perplexity": 0.5}, {"perplexity": "x"},
     {"n_iter": -1}],
)  # fmt: skip
def test_bad_parameters_of_maps(bad, rows):
    (name,) = bad
    with pytest.raises(ValueError, match=f"The '{name}' parameter of DRDH must be"):
        DRDH(**bad).fit(*rows)


def test_all_rows_alike():
    assert DRDH(n_iter=5).fit_transform({"x": ["a"] * 20}).shape == (20, 2)


def test_the_map_does_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    rows = {f"x{i}": rng.integers(0, 60, 1500).astype(str) for i in range(4)}
    maps = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            maps.append(DRDH(n_iter=20, random_state=0).fit(rows).map_)
    np.testing.assert_array_equal(*maps)
