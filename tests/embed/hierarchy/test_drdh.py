import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from tabweave.datasets import car
from tabweave.embed.hierarchy import DRDH, DistanceHierarchy
from tabweave.embed.hierarchy.drdh import TreeIndex, TreeRows

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
def test_sklearn(estimator, check):
    check(estimator)


def search(rows, model=None):
    X, y = rows
    model = model or DistanceHierarchy().fit(X, y)
    return model, TreeRows.of(model._read_fitted(X), model.blocks_, "centroid")


def test_neighbours_are_exact(rows):
    model, found = search(rows)
    D = model.pairwise_distances(rows[0])
    indices, distances = TreeIndex(found, 15, approximate=False).query(found, 15)
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :15], atol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(D, indices, 1), distances, atol=1e-12)
    np.fill_diagonal(D, np.inf)
    indices, distances = TreeIndex(found, 15, approximate=False).build()
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :15], atol=1e-12)
    assert not (indices == np.arange(200)[:, None]).any()


def test_neighbours_through_faiss_are_nearly_exact(rows):
    pytest.importorskip("faiss", reason="needs the extra 'search'")
    _, found = search(rows)
    exact = TreeIndex(found, 15, approximate=False).build()[1]
    indices, distances = TreeIndex(found, 15, approximate=True).build()
    assert not (indices == np.arange(200)[:, None]).any()
    assert np.mean(distances - exact) < 0.01 * exact.mean()
    X, y = rows
    assert DRDH(neighbors="faiss", n_iter=5, perplexity=5).fit(X, y).neighbors_ == "faiss"


def test_neighbours_stay_neighbours_on_the_map(rows, fitted):
    near = TreeIndex(search(rows, fitted.hierarchy_)[1], 5, approximate=False).build()[0]
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
    [{"n_components": 0}, {"perplexity": 0.5}, {"perplexity": "x"}, {"neighbors": "x"},
     {"n_iter": -1}],
)  # fmt: skip
def test_bad_parameters(bad, rows):
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
