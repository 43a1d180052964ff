import copy
import datetime as dt
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import tabweave
from tabweave import (
    CKML,
    DRDH,
    HELIC,
    Column,
    DistanceHierarchy,
    OneHot,
    SimilarityIndex,
    Table,
    ValueMetric,
    Weave,
    between,
)
from tabweave.columns.table import take_rows
from tabweave.datasets import make_coupled
from tabweave.engines.reading import read_fitted
from tabweave.neighbors import index as index_module
from tabweave.space import graph as graph_module
from tabweave.space import near_pairs
from tabweave.space.graph import Walker
from tabweave.space.near_pairs import LowerBound
from tabweave.space.scan import nearest_nodes
from tabweave.space.space import LabelPoints, total_gaps


def categories(n=300, columns=4, values=5, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, values, (n, columns))
    codes[:, 1] = np.where(rng.random(n) < 0.6, codes[:, 0], codes[:, 1])
    return {f"c{j}": [f"v{v}" for v in codes[:, j]] for j in range(columns)}


def mixed(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "job": rng.choice(["cook", "clerk", "judge", None], n).tolist(),
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 70, n)).tolist(),
        "pay": rng.lognormal(size=n).tolist(),
        "grade": rng.choice(["low", "mid", "high"], n).tolist(),
        "tags": [set(rng.choice(["a", "b", "c", "d"], rng.integers(1, 3))) for _ in range(n)],
    }


MIXED = {"grade": Column("grade", "ordinal", levels=("low", "mid", "high")), "tags": "set"}


def part(rows, chosen):
    return {name: [cells[i] for i in chosen] for name, cells in rows.items()}


def row_of(rows, i):
    return {name: cells[i] for name, cells in rows.items()}


def brute(distances, k, allowed=None):
    """The k smallest entries of each row, by distance, then by place, in plain Python."""
    out = []
    for row in distances.tolist():
        places = range(len(row)) if allowed is None else np.flatnonzero(allowed).tolist()
        out.append(sorted(places, key=lambda j: (row[j], j))[:k])
    return np.array(out)


def assert_nearest(found, distances, k):
    """Ids and distances are those of the k smallest entries, up to rounding among ties."""
    expected = np.sort(distances, axis=1)[:, :k]
    np.testing.assert_allclose(found.distances, expected, rtol=1e-9, atol=1e-9)
    of_ids = np.take_along_axis(distances, found.ids, axis=1)
    np.testing.assert_allclose(of_ids, found.distances, rtol=1e-9, atol=1e-9)
    assert all(len(set(ids)) == k for ids in found.ids.tolist())


EMBEDDERS = {
    "onehot": (OneHot(), categories),
    "weave": (Weave(), categories),
    "weave, summed": (Weave(2), categories),
    "ckml": (CKML(), categories),
    "goodall3": (ValueMetric("goodall3"), categories),
    "mixed": (Weave(schema=MIXED), mixed),
    "mixed, one-hot": (OneHot(schema={**MIXED, "age": "numeric", "pay": "numeric"}), mixed),
    "mixed, summed": (Weave(2, schema=MIXED), mixed),
    "hierarchy": (DistanceHierarchy(schema=MIXED), mixed),
}


@pytest.mark.parametrize("name", EMBEDDERS)
def test_exact_neighbours_are_those_of_all_distances(name):
    embedder, draw = EMBEDDERS[name]
    rows, asked = draw(), draw(40, seed=1)
    index = SimilarityIndex(embedder).fit(rows)
    assert_nearest(index.query(asked, 7), index.embedder_.pairwise_distances(asked, rows), 7)
    assert not hasattr(embedder, "counts_")


@pytest.mark.parametrize("backend", ["exact", "graph"])
@pytest.mark.parametrize(("metric", "name"), [("l1", "cityblock"), ("l2", "euclidean")])
@pytest.mark.parametrize("embedder", ["weave", "mixed", "hierarchy"])
def test_metric_and_backend_of_the_vectors(backend, metric, name, embedder):
    embedder, draw = EMBEDDERS[embedder]
    rows, asked = draw(), draw(30, seed=1)
    index = SimilarityIndex(embedder, metric=metric, backend=backend).fit(rows)
    vectors = index.embedder_.transform(rows)
    assert_nearest(index.query(asked, 5), cdist(index.embedder_.transform(asked), vectors, name), 5)


def test_any_transformer_will_do():
    rng = np.random.default_rng(0)
    X, asked = rng.normal(size=(150, 6)), rng.normal(size=(9, 6))
    model = make_pipeline(StandardScaler(), PCA(3)).fit(X)
    index = SimilarityIndex(model).fit(X[:100]).add(X[100:])
    assert_nearest(index.query(asked, 4), cdist(model.transform(asked), model.transform(X)), 4)
    found = index.query(asked, 4, where={"x0": lambda x: x > 0})
    assert (X[found.ids, 0] > 0).all()
    share = index.explain(asked[0], found.ids[0, 0])
    assert share == {"(all columns)": pytest.approx(found.distances[0, 0] ** 2)}


def test_without_an_embedder_the_table_decides():
    assert isinstance(SimilarityIndex().fit(categories()).embedder_, Weave)
    assert isinstance(SimilarityIndex().fit(part(mixed(), range(50))).embedder_, Weave)


def test_classes_reach_the_embedder():
    rows = categories()
    index = SimilarityIndex(HELIC()).fit(rows, rows["c2"])
    assert index.embedder_.counts_.classes == ("v0", "v1", "v2", "v3", "v4")


# -- ties and order -----------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["hamming", "one-hot"])
def test_ties_are_ordered_by_arrival(metric):
    rows, asked = categories(values=3), categories(50, values=3, seed=1)
    embedder = OneHot() if metric == "one-hot" else ValueMetric("hamming")
    index = SimilarityIndex(embedder).fit(rows)
    distances = index.embedder_.pairwise_distances(asked, rows)
    for k in (1, 2, 10, 300):
        np.testing.assert_array_equal(index.query(asked, k).ids, brute(distances, k))
    keep = np.array([v != "v0" for v in rows["c0"]])
    found = index.query(asked, 20, where={"c0": ["v1", "v2"]})
    np.testing.assert_array_equal(found.ids, brute(distances, 20, keep))


def test_same_answer_however_rows_arrive_and_queries_are_cut():
    rows, asked = categories(), categories(70, seed=1)
    embedder = Weave().fit(rows)
    whole = SimilarityIndex(embedder).fit(rows)
    pieces = SimilarityIndex(embedder)
    for start in range(0, 300, 60):
        pieces.add(part(rows, range(start, start + 60)))
        pieces.query(row_of(asked, 0), 3)
    a, b = whole.query(asked, 12), pieces.query(asked, 12)
    np.testing.assert_array_equal(a.ids, b.ids)
    np.testing.assert_array_equal(a.distances, b.distances)
    for i in range(0, 70, 9):
        alone = whole.query(row_of(asked, i), 12)
        np.testing.assert_array_equal(alone.ids[0], a.ids[i])
        np.testing.assert_array_equal(alone.distances[0], a.distances[i])


def test_stored_rows_that_the_embedder_cannot_know_are_reported_as_those_of_transform():
    """They all lay at the average, and so near each other, without a word."""
    rows = pd.DataFrame({"a": ["x", "y", "z"] * 20, "code": [35, 40, 62] * 20})
    embedder = Weave().fit(rows)
    for store in (SimilarityIndex(embedder).fit, SimilarityIndex(embedder).fit(rows).add):
        with pytest.raises(ValueError, match="column 'code': expected numbers as in fit"):
            store(rows.assign(code=rows["code"].astype(str)))
        with pytest.raises(ValueError, match="column 'a': none of its 60 values was seen in fit"):
            store(rows.assign(a=["q", "r", "s"] * 20))
    with pytest.warns(UserWarning, match="column 'a': 20 of 60 values were not seen in fit"):
        SimilarityIndex(embedder).fit(rows.assign(a=["x", "y", "s"] * 20))


def test_values_that_arrive_later_are_unknown_to_the_embedder():
    rows = categories()
    embedder = Weave().fit(rows)
    index = SimilarityIndex(embedder).fit(rows)
    odd = {"c0": ["new", None], "c1": ["v1", "v2"], "c2": ["v1", "v2"], "c3": ["v0", "other"]}
    index.add(odd, ids=[1000, 1001])
    both = {name: rows[name] + odd[name] for name in rows}
    distances = embedder.pairwise_distances(odd, both)
    with pytest.warns(UserWarning) as said:
        found = index.query(odd, 5)
    assert [str(w.message).partition(";")[0] for w in said] == [
        "column 'c0': 'new' was not seen in fit and counts as average",
        "column 'c3': 'other' was not seen in fit and counts as average",
    ]
    assert said[0].filename == __file__
    np.testing.assert_allclose(found.distances, np.sort(distances, axis=1)[:, :5], atol=1e-9)
    assert found.ids[0, 0] == 1000
    strict = SimilarityIndex(Weave(unknown="error")).fit(rows)
    with pytest.raises(ValueError, match="'c0': value 'new' was not seen in fit"):
        strict.add(part(odd, [0]))
    with pytest.raises(ValueError, match="'c0': value 'new' was not seen in fit"):
        strict.query(row_of(odd, 0))
    assert len(strict) == 300
    with pytest.raises(ValueError, match="'c0': value 'new' was not seen in fit"):
        SimilarityIndex(strict.embedder_).fit(odd)


# -- some columns -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EMBEDDERS)
def test_a_partial_row_is_compared_by_its_columns(name):
    embedder, draw = EMBEDDERS[name]
    rows = draw(60)
    index = SimilarityIndex(embedder).fit(rows)
    names = ["c2", "c0"] if draw is categories else ["age", "pay", "grade", "tags"]
    asked = {name: row_of(draw(1, seed=5), 0)[name] for name in names}
    found = index.query(asked, 60)
    for id, distance in zip(found.ids[0][::7], found.distances[0][::7], strict=True):
        shares = index.explain(asked, id)
        assert set(shares) == set(names)
        root = 1 if name in ("goodall3", "hierarchy") else 2
        assert sum(shares.values()) == pytest.approx(distance**root, abs=1e-9)
        if "summed" in name or "coupled" in name:
            continue  # columns are mixed there: see the test below
        full = row_of(rows, id) | asked
        expected = index.embedder_.explain(full, row_of(rows, id))
        assert shares == pytest.approx({name: expected[name] for name in names}, abs=1e-9)
        rest = index.embedder_.explain(row_of(rows, id), row_of(rows, id))  # of missing cells
        apart = sum(share for name, share in rest.items() if name not in names)
        assert sum(expected.values()) == pytest.approx(sum(shares.values()) + apart, abs=1e-9)


def test_a_partial_row_of_summed_tables_sums_its_own_columns():
    rows = categories(50)
    index = SimilarityIndex(Weave(2)).fit(rows)
    tables = index.embedder_.tables_
    found = index.query({"c1": "v2", "c3": "v0"}, 50)
    for id, distance in zip(found.ids[0], found.distances[0], strict=True):
        apart = 0
        for name, value in (("c1", "v2"), ("c3", "v0")):
            a = tables.names.index(name)
            known = list(tables.labels[a])
            apart += tables.tables[a][known.index(value)]
            apart -= tables.tables[a][known.index(rows[name][id])]
        assert distance == pytest.approx(np.linalg.norm(apart), abs=1e-9)


def test_a_column_without_a_name_is_not_taken_for_all_columns():
    index = SimilarityIndex(OneHot()).fit({"": list("uvwuvw"), "b": list("ppqqrr")})
    assert index.query({"": "u"}, k=3).distances.round(2).tolist() == [[0, 0, 1.41]]
    assert index.share_nearer([0.5], columns=[""]).tolist() == [0.2]
    assert index.share_nearer([0.5]).tolist() == [0]
    assert index.query({"": "u", "b": "r"}, k=1).distances.round(2).tolist() == [[1.41]]


def test_partial_rows_that_make_no_sense():
    index = SimilarityIndex(OneHot()).fit(categories())
    with pytest.raises(
        ValueError, match="column 'colour' is not in the index; the columns are 'c0'"
    ):
        index.query({"c0": "v1", "colour": "red"})
    with pytest.raises(ValueError, match="row 1 has no 'c1'"):
        index.query([{"c0": "v1", "c1": "v1"}, {"c0": "v2"}])
    with pytest.raises(ValueError, match="expecting 4 features"):
        index.query(["v1", "v2"])
    extra = SimilarityIndex(OneHot().fit({"c0": categories()["c0"]})).fit(categories())
    with pytest.raises(ValueError, match="none of the columns 'c0'"):
        extra.query({"c1": "v1"})


# -- filters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["exact", "graph"])
@pytest.mark.parametrize(
    ("where", "passes"),
    [
        ({"job": "cook"}, lambda r: r["job"] == "cook"),
        (
            {"job": ["cook", "judge"], "pay": lambda x: x < 1},
            lambda r: r["pay"] < 1 and r["job"] in ("cook", "judge"),
        ),
        ({"job": None}, lambda r: r["job"] is None),
        ({"job": lambda v: v.startswith("c")}, lambda r: (r["job"] or "").startswith("c")),
        ({"age": [30, 40, None]}, lambda r: r["age"] in (30, 40) or r["age"] != r["age"]),
        ({"tags": ["a", "b"]}, lambda r: bool(r["tags"] & {"a", "b"})),
        ({"tags": lambda v: v > "c"}, lambda r: "d" in r["tags"]),
        ({"grade": "high"}, lambda r: r["grade"] == "high"),
    ],
)
def test_filters(backend, where, passes):
    rows, asked = mixed(), mixed(12, seed=1)
    index = SimilarityIndex(Weave(schema=MIXED), backend=backend).fit(rows)
    keep = np.flatnonzero([passes(row_of(rows, i)) for i in range(200)])
    assert 3 < len(keep) < 190
    k = min(8, len(keep))
    distances = index.embedder_.pairwise_distances(asked, part(rows, keep))
    found = index.query(asked, 8, where=where)
    np.testing.assert_array_equal(found.ids, keep[brute(distances, k)])
    everything = index.query(asked, 10**6, where=where).ids
    assert everything.shape == (12, len(keep))
    assert set(everything[0].tolist()) == set(keep.tolist())


def test_a_filter_may_leave_nothing():
    index = SimilarityIndex(OneHot()).fit(categories())
    with pytest.warns(UserWarning, match="no row has 'none' in column 'c0'; there are, e.g., 'v"):
        found = index.query(categories(3), where={"c0": "none"})
    assert found.ids.shape == found.distances.shape == (3, 0)


def test_a_misspelt_value_is_asked_back():
    rows = {"city": ["Rome", "Oslo", "Rome", None], "flag": [True, False, True, False]}
    index = SimilarityIndex().fit(rows)
    with pytest.warns(UserWarning, match="no row has 'Roma' in column 'city'; did you mean 'Rome'"):
        assert index.query({"flag": True}, where={"city": "Roma"}).ids.shape == (1, 0)
    with pytest.warns(UserWarning, match="'Roma' was not seen in fit and counts as average; did"):
        index.query({"city": "Roma"}, k=1)
    assert index.query({"flag": True}, where={"city": ["Roma", "Rome"]}).ids.shape == (1, 2)
    with pytest.raises(ValueError, match=r"'flag' has booleans, e.g. False, True; got text, 'y"):
        index.query({"flag": True}, where={"flag": "yes"})
    sizes = {"size": Column("size", "ordinal", levels=("S", "M", "L"))}
    index = SimilarityIndex(Weave(schema=sizes)).fit({"size": ["S", "M", "L", None]})
    with pytest.warns(UserWarning, match="'XL' was not seen in fit and counts as missing; did you"):
        assert index.query({"size": "XL"}, k=1).ids == 1  # the middle


@pytest.mark.parametrize(
    "cities",
    [
        pd.Series(["Rome", "Lima"]),
        pd.Index(["Rome"]),
        pytest.importorskip("polars").Series(["Rome"]),
        {"Rome": 1}.keys(),
        (city for city in ["Rome"]),
    ],
)
def test_values_of_a_filter_come_in_anything_that_lists_them(cities):
    index = SimilarityIndex().fit({"city": ["Rome", "Oslo", "Rome"], "rooms": [1.5, 2.0, 3.0]})
    assert index.query({"rooms": 3}, where={"city": cities}).ids.tolist() == [[2, 0]]
    assert index.query({"rooms": 3}, where={"rooms": range(2, 9)}).ids.tolist() == [[2, 1]]


def test_what_is_missing_in_a_mask_does_not_pass():
    polars = pytest.importorskip("polars")
    index = SimilarityIndex().fit({"city": ["Rome", "Oslo", None]})
    for mask in (
        polars.Series(["Rome", "Oslo", None]) == "Rome",
        pd.array([True, False, pd.NA], "boolean"),
        [True, False, None],
    ):
        assert index.query({"city": "Oslo"}, where=mask).ids.tolist() == [[0]]
    with pytest.raises(TypeError, match="or 3 booleans"):
        index.query({"city": "Oslo"}, where=["yes", "no", None])


def test_filters_on_columns_that_the_embedder_does_not_know():
    rows = mixed()
    index = SimilarityIndex(OneHot().fit({"job": rows["job"]})).fit(rows)
    found = index.query({"job": "cook"}, 5, where={"pay": lambda x: x > 2})
    assert all(rows["pay"][i] > 2 for i in found.ids[0])
    assert index.query({"job": "cook", "pay": 3.0}, 5).ids.shape == (1, 5)  # known, and no matter
    with pytest.raises(ValueError, match="column 'age' is missing"):
        index.add({"job": ["cook"]})


def test_bad_filters():
    index = SimilarityIndex(Weave(schema=MIXED)).fit(mixed())
    row = row_of(mixed(), 0)
    with pytest.raises(ValueError, match="where: column not found: 'shade'"):
        index.query(row, where={"shade": "red"})
    with pytest.raises(TypeError, match="expected where to be a mapping"):
        index.query(row, where=["job"])
    with pytest.raises(TypeError, match="expected a number for column 'pay', got 'much'"):
        index.query(row, where={"pay": "much"})
    with pytest.raises(ValueError, match="condition on column 'job' failed at"):
        index.query(row, where={"job": lambda v: v < 3})
    with pytest.raises(
        ValueError, match="'pay': expected 200 booleans for as many numbers, got bool"
    ):
        index.query(row, where={"pay": lambda v: True})


# -- adding and removing ------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["exact", "graph"])
@pytest.mark.parametrize("few", [0, 10_000])
def test_removed_rows_are_never_found(backend, few, monkeypatch):
    monkeypatch.setattr(index_module, "FEW_CHANGES", few)  # 0: rebuilds happen
    rows, asked = categories(600, 6), categories(20, 6, seed=1)
    embedder = Weave().fit(rows)
    names = np.array([f"row {i}" for i in range(600)])
    index = SimilarityIndex(embedder, backend=backend, breadth=600)
    index.fit(part(rows, range(300)), ids=names[:300])
    rng = np.random.default_rng(0)
    alive = np.zeros(600, bool)
    alive[:300] = True
    distances = embedder.pairwise_distances(asked, rows)
    for start in (300, 400, 500):
        gone = rng.choice(np.flatnonzero(alive), 90, replace=False)
        index.remove(names[gone])
        alive[gone] = False
        index.add(part(rows, range(start, start + 100)), ids=names[start : start + 100])
        alive[start : start + 100] = True
        found = index.query(asked, 9)
        expected = np.sort(distances[:, alive], axis=1)[:, :9]
        np.testing.assert_allclose(found.distances, expected, atol=1e-9)
        assert np.isin(found.ids, names[alive]).all()
        assert set(index.ids_) == set(names[alive])
        assert len(index) == alive.sum()


def test_rows_with_records():
    frame = pytest.importorskip("pandas").DataFrame(
        {"who": [{"city": c} for c in ("Oslo", "Rome") * 9], "x": range(18)}
    )
    index = SimilarityIndex().fit(frame)
    assert index.query(frame.iloc[4], 1).ids[0, 0] == 4
    assert sum(index.explain(frame.iloc[4], 4).values()) == 0
    asked = [{"who": {"city": "Rome"}}, {"who": {"city": "Oslo"}}]
    np.testing.assert_array_equal(index.query(asked, 1).ids, [[1], [0]])
    with pytest.raises(ValueError, match=r"row 1 has no 'who\.city'"):
        index.query([{"who": {"city": "Rome"}, "x": 3}, {"x": 3}], 1)


def test_ids():
    rows = categories(5)
    index = SimilarityIndex(OneHot()).fit(rows)
    assert index.ids_.tolist() == [0, 1, 2, 3, 4]
    index.remove([1, 3]).add(part(rows, [1]))
    assert index.ids_.tolist() == [0, 2, 4, 5]
    index.add(part(rows, [3]), ids=[3]).add(part(rows, [0]), ids=np.array([40], np.uint8))
    index.add(part(rows, [0]))
    assert index.ids_.tolist() == [0, 2, 4, 5, 3, 40, 41]
    index.remove(40).remove({41, 0}).add(row_of(rows, 0), ids=50).remove(np.int64(50))
    assert index.ids_.tolist() == [2, 4, 5, 3]
    with pytest.raises(KeyError, match="id 40 was removed"):
        index.remove(40)
    with pytest.raises(KeyError, match="id 77 is not in the index"):
        index.remove([2, 77])
    assert 2 in index.ids_
    with pytest.raises(KeyError, match="id 'b' is not in the index"):
        index.remove("b")
    with pytest.raises(KeyError, match="id 0 was removed"):
        index.explain(row_of(rows, 0), 0)
    with pytest.raises(ValueError, match="given twice"):
        index.remove([2, 2])


def test_bad_ids():
    rows = categories(3)
    index = SimilarityIndex(OneHot())
    with pytest.raises(ValueError, match="expected ids that differ, got 'a' twice"):
        index.fit(rows, ids=["a", "b", "a"])
    with pytest.raises(ValueError, match="expected 3 ids, one per row, got 2"):
        index.fit(rows, ids=[1, 2])
    with pytest.raises(TypeError, match="whole numbers or text"):
        index.fit(rows, ids=[1.5, 2.5, 3.5])
    with pytest.raises(TypeError, match="all of one kind, got int, str"):
        index.fit(rows, ids=[1, "b", "c"])
    assert len(index) == 0
    index.fit(rows, ids=["a", "b", "c"])
    assert set(index.explain(row_of(rows, 0), index.ids_[1])) == set(rows)
    with pytest.raises(ValueError, match="id 'b' is in the index already"):
        index.add(part(rows, [0]), ids=["b"])
    with pytest.raises(ValueError, match="have text as ids"):
        index.add(part(rows, [0]))
    with pytest.raises(
        TypeError, match="expected ids to be text, as those in the index are, got whole numbers"
    ):
        index.add(part(rows, [0]), ids=[7])
    assert index.ids_.tolist() == ["a", "b", "c"]


def test_empty_and_too_small():
    rows = categories(3)
    index = SimilarityIndex(OneHot())
    with pytest.raises(Exception, match="not fitted"):
        index.query(rows)
    with pytest.raises(ValueError, match="minimum of 1"):
        index.fit({"c0": []})
    index.fit(rows)
    with pytest.raises(ValueError, match="expected k of at most 3, the rows of the index, got 4"):
        index.query(rows, 4)
    for k in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="expected k to be a whole number >= 1, got"):
            index.query(rows, k)
    index.remove([0, 1, 2])
    with pytest.raises(ValueError, match="the index is empty"):
        index.query(rows, 1)
    assert index.add(rows).query(rows, 1).ids.tolist() == [[3], [4], [5]]


def test_bad_parameters():
    rows = categories(3)
    for bad in ({"backend": "annoy"}, {"metric": "cosine"}, {"links": 1}, {"breadth": 0}):
        with pytest.raises(ValueError, match=f"The '{next(iter(bad))}' parameter of Similarity"):
            SimilarityIndex(OneHot(), **bad).fit(rows)
    with pytest.raises(TypeError, match="an object implementing 'transform' or None"):
        SimilarityIndex("weave").fit(rows)
    with pytest.raises(ValueError, match="do not add up"):
        SimilarityIndex(ValueMetric("lin")).fit(rows)
    nearly = SimilarityIndex(ValueMetric("lin"), metric="l2").fit(rows)  # by its vectors
    assert nearly.query(rows, 1).distances.tolist() == [[0.0]] * 3


def test_rows_in_every_form():
    rows = categories()
    index = SimilarityIndex(OneHot()).fit(rows)
    expected = index.query(part(rows, [7, 8]), 5).ids
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame(part(rows, [7, 8]))
    forms = [
        frame,
        polars.DataFrame(part(rows, [7, 8])),
        [row_of(rows, 7), row_of(rows, 8)],
        [list(row_of(rows, 7).values()), list(row_of(rows, 8).values())],
        frame.to_numpy(),
        Table.of(frame),
    ]
    for form in forms:
        np.testing.assert_array_equal(index.query(form, 5).ids, expected)
    for one in (row_of(rows, 7), frame.iloc[0], list(row_of(rows, 7).values())):
        np.testing.assert_array_equal(index.query(one, 5).ids, expected[:1])


# -- the graph ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large():
    data = make_coupled(6100, 8, 8, 12, coupling=0.6, heterogeneity=0.5, random_state=0)
    return {name: cells.tolist() for name, cells in data.columns.items()}


def test_graph_finds_nearly_all_and_distances_are_exact(large):
    rows, asked = part(large, range(6000)), part(large, range(6000, 6100))
    embedder = Weave().fit(rows)
    exact = SimilarityIndex(embedder).fit(rows)
    graph = SimilarityIndex(embedder, backend="graph", breadth=48).fit(rows)
    a, b = exact.query(asked, 10), graph.query(asked, 10)
    assert (b.distances <= a.distances[:, -1:]).mean() > 0.97
    everything = exact.query(asked, 6000)
    for i in range(100):
        of_id = dict(zip(everything.ids[i].tolist(), everything.distances[i].tolist(), strict=True))
        assert b.distances[i].tolist() == [of_id[id] for id in b.ids[i].tolist()]
    again = SimilarityIndex(embedder, backend="graph", breadth=48).fit(rows).query(asked, 10)
    np.testing.assert_array_equal(again.ids, b.ids)
    wide = graph.set_params(breadth=600).query(asked, 10)
    np.testing.assert_array_equal(wide.distances, a.distances)
    np.testing.assert_array_equal(wide.ids, a.ids)


def test_graph_with_late_removed_and_filtered_rows(large):
    asked = part(large, range(6000, 6100))
    embedder = Weave().fit(large)
    both = []
    for backend in ("exact", "graph"):
        index = SimilarityIndex(embedder, backend=backend, breadth=400)
        index.fit(part(large, range(5000))).add(part(large, range(5000, 6000)))
        index.remove(range(0, 6000, 5))
        both.append(index)
    assert both[1]._graph.n_nodes < len(both[1]._ready().view().nodes)  # late nodes are outside
    broad, narrow = {"c0": lambda v: v != "v0"}, {"c0": "v1", "c1": "v1"}
    for where in (None, broad, narrow):
        a, b = (index.query(asked, 10, where=where) for index in both)
        np.testing.assert_array_equal(a.ids, b.ids)
        np.testing.assert_array_equal(a.distances, b.distances)


def test_graph_of_many_copies(large):
    few = part(large, list(range(40)) * 30)
    index = SimilarityIndex(OneHot(), backend="graph").fit(few)
    exact = SimilarityIndex(OneHot()).fit(few)
    a, b = index.query(few, 70), exact.query(few, 70)
    np.testing.assert_array_equal(a.ids, b.ids)


@pytest.mark.parametrize("backend", ["exact", "graph"])
@pytest.mark.parametrize("n", [1, 5])
def test_rows_that_are_all_the_same(backend, n):
    rows = {"a": ["x"] * n, "b": [None] * n}
    found = SimilarityIndex(Weave(), backend=backend).fit(rows).query(rows, n)
    assert found.ids.tolist() == [list(range(n))] * n
    assert not found.distances.any()


def test_auto_takes_a_graph_when_there_are_many_rows(large, monkeypatch):
    index = SimilarityIndex(OneHot(), backend="auto").fit(part(large, range(400)))
    assert index.backend_ == "exact"
    monkeypatch.setattr(index_module, "GRAPH_NODES", 300)
    assert index.backend_ == "graph"
    assert index.query(part(large, [0]), 1).distances[0, 0] == 0


# -- the breadth ---------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch):
    """Count how often a breadth is chosen; graphs are built anew for any growth."""
    calls, choose = [], Walker.choose_breadth
    monkeypatch.setattr(index_module, "FEW_CHANGES", 0)
    monkeypatch.setattr(Walker, "choose_breadth", lambda *args: calls.append(1) or choose(*args))
    return calls


def test_the_index_chooses_the_least_breadth_that_finds_enough(large, measured):
    rows, asked = part(large, range(6000)), part(large, range(6000, 6100))
    embedder = Weave().fit(rows)
    index = SimilarityIndex(embedder, backend="graph", links=4).fit(rows)
    ladder = graph_module.BREADTHS
    assert index.breadth_ in ladder[1:-1] and 0.95 < index.recall_ < 0.99
    exact = SimilarityIndex(embedder).fit(rows).query(asked, 10).distances[:, -1:]
    new = (index.query(asked, 10).distances <= exact * (1 + 1e-9)).mean()
    assert abs(new - index.recall_) < 0.03  # rows that are not there are found as often
    narrower = ladder[ladder.index(index.breadth_) - 1]
    walker = index._ready()._walker
    own, view = walker.sample(), index._ready().view()
    queries = view.queries(take_rows(view.table, view.copies.heads[own]))
    truth = nearest_nodes(view.nodes, queries, 11)[0][:, -1:]
    shares = (walker.nearest(queries, 10, view.copies.heads, narrower, own)[0] <= truth).mean(1)
    assert shares.mean() - 2 * shares.std() / np.sqrt(len(shares)) < 0.95
    again = SimilarityIndex(embedder, backend="graph", links=4).fit(rows)
    assert (again.breadth_, again.recall_) == (index.breadth_, index.recall_)
    assert len(measured) == 2


def test_a_row_is_looked_for_as_if_it_were_not_there(large):
    index = SimilarityIndex(Weave(), backend="graph").fit(part(large, range(900)))
    view, walker = index._ready().view(), index._ready()._walker
    nodes = np.arange(len(view.nodes))
    queries = view.queries(take_rows(view.table, view.copies.heads))
    found = walker.nearest(queries, 5, nodes, 1024, nodes)
    for own in nodes[:50]:
        alone = np.where(nodes == own, -1, nodes)
        expected = nearest_nodes(view.nodes, queries.take(nodes[own : own + 1]), 5, alone)
        np.testing.assert_array_equal(found[1][own], expected[1][0])
    assert not (found[1] == nodes[:, None]).any()


def test_a_walk_finds_what_a_scan_of_its_links_finds(large):
    index = SimilarityIndex(Weave(), backend="graph").fit(part(large, range(3000)))
    view, walker = index._ready().view(), index._ready()._walker
    nodes = np.arange(len(view.nodes))
    queries = view.queries(take_rows(view.table, view.copies.heads[:40]))
    apart = np.full((40, len(nodes)), np.inf)
    summed, found = nearest_nodes(view.nodes, queries, len(nodes))
    np.put_along_axis(apart, found, summed, axis=1)
    apart, links = apart[:, walker.graph.order], walker.graph.links  # as the graph numbers nodes
    for breadth in (4, 7, 30):
        _, got = walker.nearest(queries, 3, nodes, breadth)
        for i in range(40):
            met = _walked(apart[i], links, walker._seeds, breadth)
            wanted = sorted(met, key=lambda j: (apart[i, j], walker.graph.order[j]))[:3]
            assert got[i].tolist() == walker.graph.order[wanted].tolist()


def _walked(apart, links, seeds, breadth):
    """Return what a walk meets: a pool of so many, always on from the nearest not left yet."""
    pool = sorted(seeds.tolist(), key=lambda j: apart[j])[:4]
    met, left = set(pool), set()
    while still := [j for j in pool if j not in left]:
        left.add(still[0])
        for j in links[still[0]].tolist():
            if j >= 0 and j not in met:
                met.add(j)
                pool.append(j)
        pool = sorted(pool, key=lambda j: apart[j])[:breadth]
    return met


def test_rows_without_structure_take_more_breadth(large):
    codes = np.random.default_rng(0).integers(0, 12, (6000, 12)).astype(str)
    hard = SimilarityIndex(OneHot(), backend="graph", links=8).fit(codes)
    easy = SimilarityIndex(OneHot(), backend="graph", links=8).fit(part(large, range(6000)))
    assert hard.breadth_ >= 2 * easy.breadth_


def test_a_breadth_is_kept_until_the_graph_is_built_anew(large, measured, tmp_path):
    index = SimilarityIndex(Weave(), backend="graph", links=4).fit(part(large, range(2000)))
    chosen = index.breadth_, index.recall_
    index.save(tmp_path / "rows.index")
    back = SimilarityIndex.load(tmp_path / "rows.index")
    asked = part(large, range(6000, 6100))
    back.add(part(large, range(2000, 2400))).query(asked, 3)
    assert (back.breadth_, back.recall_) == chosen and len(measured) == 1
    back.add(part(large, range(2400, 6000))).query(asked, 3)
    assert back.recall_ != chosen[1] and len(measured) == 2
    assert back.set_params(breadth=200).breadth_ == 200
    with pytest.raises(AttributeError, match="recall_ is only measured with"):
        _ = back.recall_


def test_an_index_of_before_keeps_its_breadth(large, tmp_path):
    index = SimilarityIndex(Weave(), backend="graph", breadth=144).fit(part(large, range(500)))
    del vars(index)["_measured"]  # as files were written before it was there
    index.save(tmp_path / "rows.index")
    back = SimilarityIndex.load(tmp_path / "rows.index")
    asked = part(large, range(3))
    assert back.breadth_ == 144 and not hasattr(back, "recall_")
    np.testing.assert_array_equal(back.query(asked, 5).ids, index.query(asked, 5).ids)
    assert not hasattr(SimilarityIndex().fit(asked), "breadth_")  # it has no graph
    for forged in ((10**12, 1.0), (96, 7.0), ("96", 1.0)):
        back._measured = forged
        back.save(tmp_path / "forged.index")
        with pytest.raises(ValueError, match="damaged"):
            SimilarityIndex.load(tmp_path / "forged.index")


# -- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["exact", "graph"])
@pytest.mark.parametrize("name", ["weave", "goodall3", "mixed", "hierarchy"])
def test_save_and_load(backend, name, tmp_path):
    embedder, draw = EMBEDDERS[name]
    rows, asked = draw(), draw(20, seed=1)
    ids = [f"№ {i}" for i in range(len(next(iter(rows.values()))))]
    index = SimilarityIndex(embedder, backend=backend).fit(rows, ids=ids).remove(ids[3:9])
    expected = index.query(asked, 6)
    index.save(tmp_path / "rows.index")
    assert [p.name for p in tmp_path.iterdir()] == ["rows.index"]
    loads = (SimilarityIndex.load, tabweave.load)
    for again in [load(tmp_path / "rows.index") for load in loads] + [
        pickle.loads(pickle.dumps(index)),
        copy.deepcopy(index),
    ]:
        found = again.query(asked, 6)
        np.testing.assert_array_equal(found.ids, expected.ids)
        np.testing.assert_array_equal(found.distances, expected.distances)
        again.add(part(rows, [3]), ids=["№ 3"]).remove("№ 0")
        assert len(again) == len(index)
    assert index.query(asked, 6).ids.tolist() == expected.ids.tolist()


def test_other_transformers_are_saved_with_their_vectors(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    index = SimilarityIndex(StandardScaler()).fit(X)
    index.save(tmp_path / "i")
    again = SimilarityIndex.load(tmp_path / "i")
    np.testing.assert_array_equal(again.query(X, 3).distances, index.query(X, 3).distances)
    odd = SimilarityIndex(make_pipeline(Foreign())).fit(X)
    with pytest.raises(TypeError, match="Foreign"):
        odd.save(tmp_path / "j")
    assert not (tmp_path / "j").exists()


class Foreign(StandardScaler):
    pass


def test_damaged_and_foreign_files(tmp_path):
    index = SimilarityIndex(OneHot(), backend="graph").fit(categories())
    path = tmp_path / "i"
    index.save(path)
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[: len(whole) // 2], whole[:900] + b"x" + whole[901:], b""):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="i is damaged"):
            SimilarityIndex.load(path)
    OneHot().fit(categories()).save(path)
    with pytest.raises(ValueError, match=r"expected a SimilarityIndex in .*, got a OneHot"):
        SimilarityIndex.load(path)
    with pytest.raises(FileNotFoundError):
        SimilarityIndex.load(tmp_path / "nothing")


@pytest.mark.parametrize("what", ["links", "codes", "alive", "order", "shape"])
def test_files_whose_parts_do_not_fit_are_refused(what, tmp_path):
    index = SimilarityIndex(OneHot(), backend="graph").fit(categories())
    if what == "links":
        index._graph.links[5] = 10**6
    elif what == "order":
        index._graph.order[3] = 10**9
    elif what == "shape":
        object.__setattr__(index._graph, "links", index._graph.links.ravel())
    elif what == "codes":
        index._stored.parts[0].table.columns[0].codes[0] = 77
    else:
        object.__setattr__(index._stored.parts[0], "alive", np.ones(3, bool))
    index.save(tmp_path / "i")
    with pytest.raises(ValueError, match="i is damaged: "):
        SimilarityIndex.load(tmp_path / "i")


# -- ranges, masks, radius, pairs, several rows ---------------------------------------------------


def numbers_too(n=150, seed=0):
    rows = mixed(n, seed)
    return rows, SimilarityIndex(Weave(schema=MIXED)).fit(rows)


def test_a_range_filters_numbers_and_values():
    rows, index = numbers_too()
    row = row_of(rows, 3)
    ages = np.array(rows["age"])
    for condition, expected in (
        (between(30, 40), (ages >= 30) & (ages <= 40)),
        (between(low=60), ages >= 60),
        (between(high=20), ages <= 20),
    ):
        found = index.query(row, k=150, where={"age": condition}).ids[0]
        assert sorted(found) == np.flatnonzero(expected).tolist()
    named = index.query(row, k=150, where={"job": between("clerk", "cook")}).ids[0]
    assert {rows["job"][i] for i in named} == {"clerk", "cook"}
    with pytest.raises(ValueError, match=r"between\(2, 1\)"):
        between(2, 1)
    with pytest.raises(ValueError, match="neither"):
        between()
    with pytest.raises(ValueError, match="condition on column 'job' failed"):
        index.query(row, where={"job": between(1, 2)})


def written(n=60):
    """Return rows as people write them: levels, days before months, money."""
    rng = np.random.default_rng(4)
    days = [f"{1 + 7 * i // 24}/1/2024 {7 * i % 24}:00" for i in range(n)]
    return {
        "size": rng.choice(["S", "M", "L", "XL"], n).tolist(),
        "when": days,
        "price": [f"{p:.2f} €" for p in rng.uniform(1, 200, n)],
        "weight": rng.normal(size=n).tolist(),
    }


@pytest.mark.parametrize("counted", [True, False])
def test_a_range_means_what_the_column_means(counted):
    """As text, 9 € lies behind 40 €, the 28th of January behind the 1st of February, L before M."""
    rows = written()
    schema = {"size": Column("size", "ordinal", levels=("S", "M", "L", "XL"))}
    some = rows if counted else {name: rows[name] for name in ("size", "weight")}
    index = SimilarityIndex(Weave(schema=schema).fit(some)).fit(rows)

    def passing(**where):
        found = index.query({"weight": 0.0}, k=60, where=where).ids[0]
        return sorted(found.tolist())

    def expected(name, condition):
        return [i for i, cell in enumerate(rows[name]) if condition(cell)]

    amount = [float(text.removesuffix(" €")) for text in rows["price"]]
    assert passing(price=between("9 €", "40 €")) == expected(
        "price", lambda cell: 9 <= float(cell.removesuffix(" €")) <= 40
    )
    assert passing(price=between(100)) == [i for i, a in enumerate(amount) if a >= 100]
    assert passing(size=between("M", "L")) == expected("size", lambda cell: cell in "ML")
    assert passing(size=between(low="L")) == expected("size", lambda cell: cell in ("L", "XL"))
    assert passing(size=between(high="M")) == expected("size", lambda cell: cell in "SM")
    first = expected("when", lambda cell: cell.startswith(("8/1/", "9/1/", "10/1/")))
    assert first and passing(when=between("8/1/2024", "10/1/2024")) == first
    one = expected("when", lambda cell: cell.startswith("8/1/"))
    assert len(one) == 4 and passing(when="8/1/2024") == one  # a day is all of it
    assert passing(when=["8/1/2024", rows["when"][0]]) == [0, *one]
    for where in ({"size": between("L", "M")}, {"when": between("10/1/2024", "8/1/2024")}):
        with pytest.raises(ValueError, match="expected low <= high"):
            passing(**where)
    with pytest.raises(ValueError, match=r"levels of column 'size' \('S', .*, got 'huge'"):
        passing(size=between("M", "huge"))


def test_a_mask_filters_rows_that_are_there():
    rows, index = numbers_too()
    index.remove([0, 7])
    mask = index.ids_ % 3 == 0
    found = index.query(row_of(rows, 3), k=100, where=mask).ids[0]
    assert sorted(found) == [i for i in range(150) if i % 3 == 0 and i != 0]
    with pytest.raises(TypeError, match="148 booleans"):
        index.query(row_of(rows, 3), where=np.ones(150, bool))
    with pytest.raises(TypeError, match="'age'"):
        index.query(row_of(rows, 3), where="age")


@pytest.mark.parametrize("name", ["onehot", "weave", "weave, summed"])
def test_a_radius_finds_all_that_are_nearer(name):
    embedder, drawn = EMBEDDERS[name]
    rows = drawn()
    index = SimilarityIndex(embedder).fit(rows).remove([5])
    distances = index.embedder_.pairwise_distances(part(rows, range(10)), rows)
    radius = float(np.quantile(distances, 0.3))
    for i, (ids, found, _) in enumerate(index.query_radius(part(rows, range(10)), radius)):
        expected = np.flatnonzero(distances[i] <= radius * (1 + 1e-9))
        assert sorted(ids) == [j for j in expected if j != 5]
        np.testing.assert_allclose(found, np.sort(distances[i, ids]), atol=1e-9)
    assert len(index.query_radius(row_of(rows, 0), 0.0)[0].ids) >= 1
    with pytest.raises(ValueError, match="radius to be a distance >= 0, got -1"):
        index.query_radius(row_of(rows, 0), -1)


def test_a_radius_with_a_filter_and_some_columns():
    rows, index = numbers_too()
    found = index.query_radius({"job": "cook"}, 0.0, where={"age": between(30, 40)})[0]
    ages, jobs = np.array(rows["age"]), np.array(rows["job"], object)
    expected = np.flatnonzero((ages >= 30) & (ages <= 40) & (jobs == "cook"))
    assert found.ids.tolist() == expected.tolist()


@pytest.mark.parametrize("name", EMBEDDERS)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.4])
def test_duplicates_are_all_near_pairs(name, share):
    embedder, drawn = EMBEDDERS[name]
    rows = part(drawn(), range(120))
    index = SimilarityIndex(embedder).fit(rows).remove([5])
    if isinstance(index.embedder_, tabweave.embed.base.Embedder):
        distances = index.embedder_.pairwise_distances(rows)
    else:
        distances = cdist(*[np.asarray(index.embedder_.transform(rows))] * 2)
    a, b = np.triu_indices(120, 1)
    threshold = float(np.quantile(distances[a, b], share)) * (share > 0)
    kept = (distances[a, b] <= threshold * (1 + 1e-9) + 1e-9) & (a != 5) & (b != 5)
    found = index.duplicates(threshold)
    assert set(zip(found.first.tolist(), found.second.tolist(), strict=True)) == set(
        zip(a[kept].tolist(), b[kept].tolist(), strict=True)
    )
    np.testing.assert_allclose(found.distances, distances[found.first, found.second], atol=1e-6)
    assert (np.diff(found.distances) >= 0).all()


def test_duplicates_of_a_table_with_near_numbers_compare_few_rows(monkeypatch):
    rng = np.random.default_rng(0)
    n = 4000
    rows = {"name": [f"n{i % 500}" for i in range(n)], "x": rng.random(n), "y": rng.random(n)}
    rows["name"][7], rows["x"][7], rows["y"][7] = "n1", rows["x"][1] + 1e-5, rows["y"][1]
    index = SimilarityIndex(Weave(schema={"name": "nominal"})).fit(rows)
    compared = []
    whole = near_pairs.node_distances

    def counting(view, left, right):
        compared.append(len(left) * len(right))
        return whole(view, left, right)

    monkeypatch.setattr(near_pairs, "node_distances", counting)
    found = index.duplicates(1e-3)
    assert [1, 7] in np.column_stack(found[:2]).tolist()
    assert sum(compared) < n * n / 5


def many_names(n, seed=0):
    """Return different names, the last tenth of them misspelled others."""
    rng = np.random.default_rng(seed)
    letters = rng.choice(list("abcdefghiklmnoprstu"), (n, 16))
    names = [f"{''.join(a[:8])} {''.join(a[8:])}" for a in letters]
    return [*names[: n - n // 10], *(name[:2] + name[3:] for name in names[: n // 10])]


SPELLED = {"name": Column("name", spelling=True)}
NOMINAL = {"name": "nominal", "c": "nominal"}


@pytest.mark.parametrize("limit", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    ("embedder", "metric"),
    [
        (OneHot(schema=NOMINAL), "auto"),
        (Weave(schema=SPELLED), "auto"),
        (Weave(schema=SPELLED), "l1"),
        (Weave(schema=SPELLED), "l2"),
        (OneHot(schema=NOMINAL), "auto"),
    ],
)
def test_duplicates_among_many_values_are_all_near_pairs(embedder, metric, limit):
    rng = np.random.default_rng(1)
    names = many_names(400)
    rows = {"name": [names[i] for i in rng.integers(0, 400, 600)]}
    rows["c"] = rng.choice(list("abc"), 600).tolist()
    if not isinstance(embedder, OneHot):
        rows["x"] = rng.normal(size=600).round(1).tolist()
    known = part(rows, range(450))  # the others have new names, too
    index = SimilarityIndex(embedder, metric=metric).fit(known).add(part(rows, range(450, 600)))
    vectors = index.embedder_.transform(rows)
    distances = index.embedder_.pairwise_distances(rows)
    if metric != "auto":
        distances = cdist(vectors, vectors, {"l1": "cityblock", "l2": "euclidean"}[metric])
    a, b = np.triu_indices(600, 1)
    threshold = float(np.quantile(distances[a, b], limit))
    near = distances[a, b] <= threshold * (1 + 1e-9)
    first, second, found = index.duplicates(threshold)[:3]
    order = np.lexsort((second, first))
    np.testing.assert_array_equal(first[order], a[near])
    np.testing.assert_array_equal(second[order], b[near])
    np.testing.assert_allclose(found, distances[first, second], atol=1e-6)


def test_duplicates_among_many_values_take_no_table_of_their_pairs(monkeypatch):
    n = 20_000
    rows = {"name": many_names(n)}
    index = SimilarityIndex(Weave(schema=SPELLED)).fit(rows)
    last = n - n // 10  # the first name, misspelled
    threshold = 1.001 * index.embedder_.pairwise_distances(part(rows, [0, last]))[0, 1]
    compared, exact = [], []
    near, between = LowerBound.near, LabelPoints.between

    def counting(bound, left, right, limit):
        compared.append(len(left[1]) * len(right[1]))
        return near(bound, left, right, limit)

    def counting_exact(left, right):
        exact.append(len(left) * len(right))
        return between(left, right)

    monkeypatch.setattr(LowerBound, "near", counting)
    monkeypatch.setattr(LabelPoints, "between", counting_exact)
    first, second, _ = index.duplicates(float(threshold))[:3]
    assert [0, last] in np.column_stack([first, second]).tolist()
    assert max(compared) <= n * n / 50
    assert sum(exact) < n * n / 50


def test_a_coordinate_of_two_values_is_not_their_own():
    points = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.2]])
    bound = LowerBound([LabelPoints.of(points)], np.zeros((0, 4)), 2)
    assert bound.columns[0][1].points.shape == (4, 1)
    for limit, groups in ((0.5, [0, 0, 1, 2]), (2.1, [0, 0, 0, 1]), (2.5, [0, 0, 0, 0])):
        assert len(set(zip(bound.linked(limit).tolist(), groups, strict=True))) == max(groups) + 1


def test_too_many_duplicates_are_counted_not_returned():
    index = SimilarityIndex(OneHot()).fit({"a": ["x"] * 100 + ["y"] * 3})
    assert len(index.duplicates(0).first) == 4950 + 3
    with pytest.raises(ValueError, match="4,953 pairs of rows are within 0"):
        index.duplicates(0, max_pairs=1000)
    assert len(index.duplicates(0, where={"a": "y"}, max_pairs=1000).first) == 3
    with pytest.warns(UserWarning, match="no row has 'z'"):
        assert len(index.duplicates(0, where={"a": "z"}).first) == 0
    for wrong in ("many", 0, -1, True):
        with pytest.raises(ValueError, match="expected max_pairs to be a whole number >= 1"):
            index.duplicates(0, max_pairs=wrong)


def test_several_rows_are_one_question():
    rows, index = numbers_too()
    asked = part(rows, [3, 40, 77])
    vectors = index.embedder_.transform(rows)
    gaps = total_gaps(index.embedder_.space_, read_fitted(index.embedder_, rows))
    to_mean = ((vectors - vectors[[3, 40, 77]].mean(axis=0)) ** 2).sum(axis=1)
    to_mean = np.sqrt(to_mean + gaps + gaps[[3, 40, 77]].mean())
    found = index.query(asked, k=9, together="mean")
    np.testing.assert_allclose(found.distances[0], np.sort(to_mean)[:9], atol=1e-9)
    np.testing.assert_allclose(to_mean[found.ids[0]], found.distances[0], atol=1e-9)
    worst = index.embedder_.pairwise_distances(asked, rows).max(axis=0)
    found = index.query(asked, k=9, together="all", where={"age": between(20, 50)})
    ages = np.array(rows["age"])
    kept = np.flatnonzero((ages >= 20) & (ages <= 50))
    np.testing.assert_allclose(found.distances[0], np.sort(worst[kept])[:9], atol=1e-9)
    np.testing.assert_allclose(worst[found.ids[0]], found.distances[0], atol=1e-9)
    with pytest.raises(ValueError, match="together to be None, 'mean' or 'all', got 'sum'"):
        index.query(asked, together="sum")


@pytest.mark.parametrize("together", ["mean", "all"])
def test_rows_that_are_gone_are_not_near_to_several_either(together):
    """Of fewer distinct rows than k one that was removed took a place, and its row came twice."""
    rows = {"x": ["a", "b", "a", "c"], "y": ["u", "v", "u", "v"]}
    index = SimilarityIndex(OneHot()).fit(rows).remove([1])
    asked = {"x": ["b", "b"], "y": ["v", "v"]}
    found = index.query(asked, k=3, together=together)
    assert found.ids.tolist() == [[3, 0, 2]]
    np.testing.assert_allclose(found.distances, index.query(asked, k=3).distances[:1])
    assert index.query(asked, 9, {"x": "a"}, together=together).ids.tolist() == [[0, 2]]


def test_distances_can_be_read_as_shares_of_pairs():
    rows, index = numbers_too()
    distances = index.embedder_.pairwise_distances(rows)
    pairs = distances[np.triu_indices(150, 1)]
    asked = np.quantile(pairs, [0.0, 0.1, 0.5, 1.0])
    expected = [(pairs < d * (1 - 1e-9)).mean() for d in asked]
    np.testing.assert_allclose(index.share_nearer(asked), expected, atol=1e-6)
    again = SimilarityIndex(index.embedder_).fit(rows)
    np.testing.assert_array_equal(index.share_nearer(asked), again.share_nearer(asked))
    some = index.share_nearer([0.0, 1e9], columns=["job"])
    assert some.tolist() == [0.0, 1.0]
    index.remove(np.arange(149))
    with pytest.raises(ValueError, match="at least two rows"):
        index.share_nearer([1.0])


def test_a_list_may_be_a_row_of_its_own():
    """A set is a list: {"tags": ["a"]} is a row that has it, not a column of texts."""
    rows = {"tags": [["a", "b"], ["c"], [], ["a"]], "shop": ["x", "x", "y", "y"]}
    index = SimilarityIndex().fit(rows)
    assert index.query({"tags": ["a"]}, k=1).ids.tolist() == [[3]]
    assert index.query({"tags": ["b", "a"]}, k=1).ids.tolist() == [[0]]
    assert index.query({"tags": []}, k=1).ids.tolist() == [[2]]
    assert index.query({"tags": [["c"], ["a"]]}, k=1).ids.tolist() == [[1], [3]]
    assert index.query({"tags": [{"c"}, {"a"}]}, k=1).ids.tolist() == [[1], [3]]
    text = SimilarityIndex(Weave(schema={"tags": Column("tags", "set", delimiter=",")}))
    text.fit({"tags": ["a,b", "c", "a"], "shop": ["x", "x", "y"]})
    assert text.query({"tags": ["c", "b,a"]}, k=1).ids.tolist() == [[1], [0]]
    with pytest.raises(TypeError, match=r"'tags': expected a set, got 'a'.*Column\('tags', 'set'"):
        index.query({"tags": "a"}, k=1)


def test_a_set_of_unknown_elements_is_no_empty_set():
    rows = {"tags": [{"a"}, {"a", "b"}, set(), {"c"}], "size": ["S", "L", "S", "L"]}
    index = SimilarityIndex(Weave(schema={"tags": "set"})).fit(rows)
    assert index.query({"tags": set()}, k=1).ids.tolist() == [[2]]
    with pytest.raises(
        ValueError, match=r"'tags': no element of \['z'\] \(row 1\) was seen in fit"
    ):
        index.query([{"tags": {"a"}}, {"tags": {"z"}}], k=1)
    part_known = index.query({"tags": {"a", "z"}}, k=4)
    assert part_known.distances[0, 0] > 0


def test_a_query_of_another_type_is_refused():
    index = SimilarityIndex(Weave()).fit({"zip": ["10115", "80331"], "size": ["S", "L"]})
    with pytest.raises(ValueError, match="column 'zip': expected text as in fit"):
        index.query({"zip": 10115}, k=1)


def test_ids_that_do_not_fit_are_refused():
    ids = np.array([7, 2**63 + 5], np.uint64)
    with pytest.raises(ValueError, match=r"expected ids below 2\*\*63, got 9223372036854775813"):
        SimilarityIndex(OneHot()).fit({"a": ["x", "y"]}, ids=ids)
    assert SimilarityIndex(OneHot()).fit({"a": ["x", "y"]}, ids=ids // 2).ids_.dtype == np.int64


def test_nothing_is_near_where_every_row_was_removed(monkeypatch):
    monkeypatch.setattr(index_module, "FEW_CHANGES", 2)  # tombstones are swept at once
    index = SimilarityIndex(OneHot()).fit({"a": list("xyzxyz")})
    index.remove(index.ids_)
    (found,) = index.query_radius({"a": "x"}, 1.0)
    assert len(found.ids) == len(found.distances) == len(index.duplicates(1.0).first) == 0
    assert index.add({"a": ["x"]}).query({"a": "x"}, k=1).ids.tolist() == [[6]]


def test_filters_on_dates_of_digits_and_periods_are_written_as_the_cells_are():
    days = pd.date_range("2023-01-01", periods=100)
    rows = pd.DataFrame(
        {"day": days.strftime("%Y%m%d").astype(int), "month": days.strftime("%Y-%m")}
    )
    index = SimilarityIndex().fit(rows)

    def found(**where):
        return rows.loc[index.query(rows[:1], k=100, where=where).ids[0]]

    assert (
        found(day=20230105)["day"].tolist() == found(day="20230105")["day"].tolist() == [20230105]
    )
    assert set(found(day=between(20230102, 20230104))["day"]) == {20230102, 20230103, 20230104}
    assert set(found(month="2023-02")["month"]) == {"2023-02"}
    assert set(found(month=between("2023-02", "2023-03"))["month"]) == {"2023-02", "2023-03"}
    with pytest.raises(ValueError, match="'day': expected a date, year first as in fit, got '7'"):
        found(day=7)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y%m%d", "%d.%m.%Y", "%Y-%m-%d 12:30"])
def test_a_month_or_a_year_is_a_filter_on_days(form):
    days = pd.date_range("2023-11-20", periods=120)
    texts = days.strftime(form)
    index = SimilarityIndex().fit({"day": texts, "g": ["u", "v", "w", "u"] * 30})

    def found(where):
        ids = index.query({"g": "u"}, k=120, where={"day": where}).ids[0]
        return set(days[ids].strftime("%Y-%m"))

    assert found("2024-02") == {"2024-02"}
    assert found(np.datetime64("2024-02")) == {"2024-02"}
    assert found("2023") == {"2023-11", "2023-12"}
    assert found(["2023-12", "2024-03"]) == {"2023-12", "2024-03"}
    assert found(between("2024-01", "2024-02")) == {"2024-01", "2024-02"}
    assert found(between(high="2023")) == {"2023-11", "2023-12"}
    mixed = between(dt.date(2024, 1, 1), pd.Timestamp("2024-02-10"))  # Python compares them not
    assert found(mixed) == found(between("2024-01", "2024-02"))
    with pytest.raises(ValueError, match="expected low <= high"):
        found(between(pd.Timestamp("2024-02-10"), dt.date(2024, 1, 1)))
    n = len(index.query({"g": "u"}, k=120, where={"day": "2024-02"}).ids[0])
    assert n == 29  # the last day is one of them


def test_a_year_is_a_filter_on_months():
    months = pd.period_range("2023-01", periods=24, freq="M").astype(str)
    index = SimilarityIndex().fit({"month": months, "g": ["u", "v"] * 12})
    found = index.query({"g": "u"}, k=24, where={"month": "2024"}).ids[0]
    assert set(months[found]) == set(months[12:])


def test_share_nearer_is_of_columns_that_are_there():
    index = SimilarityIndex().fit({**categories(), "key": [f"k{i}" for i in range(300)]})
    np.testing.assert_array_equal(
        index.share_nearer([0.5, 1], columns="c0"), index.share_nearer([0.5, 1], columns=["c0"])
    )
    with pytest.raises(ValueError, match="column 'colour' is not in the index"):
        index.share_nearer([1], columns=["colour"])
    for none in (["key"], []):
        with pytest.raises(ValueError, match="none of the columns 'c0', 'c1'"):
            index.share_nearer([1], columns=none)
    with pytest.raises(ValueError, match="expected distances, got"):
        index.share_nearer([1, float("nan")])


def test_one_id_is_explained_at_a_time():
    index = SimilarityIndex().fit(categories())
    with pytest.raises(ValueError, match=r"expected one id, got \[1, 2\]"):
        index.explain(row_of(categories(), 0), [1, 2])


def test_a_row_of_a_map_need_not_have_the_columns_that_were_dropped():
    rows = {"id": list(range(40)), "a": list("xyz") * 13 + ["x"], "b": list("uuvv") * 10}
    index = SimilarityIndex(DRDH(random_state=0).fit(Table.of(rows, rules="whole"))).fit(rows)
    assert index.embedder_.schema_.names == ["a", "b"]
    with_id, without = (index.query(one, k=3) for one in ({"id": 3, "a": "x", "b": "v"},
                                                          {"a": "x", "b": "v"}))  # fmt: skip
    np.testing.assert_array_equal(with_id.distances, without.distances)


def test_rows_of_other_transformers_may_be_dicts():
    rows = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 9.0]})
    index = SimilarityIndex(StandardScaler()).fit(rows)
    for one in ({"a": 2, "b": 1}, {"b": 1, "a": 2}, rows.iloc[1], [2, 1], {"a": [2], "b": [1]}):
        found = index.query(one, k=1)
        assert found.ids == 1 and found.distances < 1e-9
    assert index.add({"a": 7, "b": 7}).query({"a": 7, "b": 7}, k=1).ids == 3
    with pytest.raises(ValueError, match="column 'b' is not given; StandardScaler does not say"):
        index.query({"a": 2}, k=1)
    with pytest.raises(ValueError, match="expected 2 cells per row, got 3"):
        index.query([1, 2, 3], k=1)


def test_sparse_vectors_are_refused():
    with pytest.raises(TypeError, match=r"OneHotEncoder.transform: expected dense vectors"):
        SimilarityIndex(OneHotEncoder()).fit(pd.DataFrame({"a": ["x", "y"]}))


def test_columns_of_arrays_are_asked_for_by_number():
    rows = np.array([["a", "x"], ["b", "x"], ["b", "y"]], dtype=object)
    index = SimilarityIndex(OneHot()).fit(rows)
    assert index.query({"x1": "y"}, k=1).ids == 2
    assert index.query({"x1": "x", "x0": "b"}, k=1).ids == 1
    assert index.query(Table.of(rows[:2]), k=1).ids.tolist() == [[0], [1]]
    with pytest.raises(ValueError, match="X has 1 features"):
        index.query({"color": "a"}, k=1)


def test_vectors_whose_squares_are_infinite_are_refused():
    from sklearn.preprocessing import FunctionTransformer

    rows = np.random.default_rng(0).random((12, 2))
    with pytest.raises(ValueError, match=r"expected coordinates up to 1e\+150"):
        SimilarityIndex(FunctionTransformer()).fit(rows * 1e200)
    index = SimilarityIndex(FunctionTransformer()).fit(rows)
    with pytest.raises(ValueError, match="scale the columns first"):
        index.query(rows * 1e200, 2)


@pytest.mark.parametrize("written", ["13/02/2024", "02/13/2024", "20240213"])
def test_a_condition_is_read_as_its_column_is_written(written):
    """Not as its own digits would be: a day of another form is refused, as in rows it would be."""
    days = [f"2024-{month:02}-{day:02}" for month in (1, 2, 3) for day in range(1, 28)]
    index = SimilarityIndex().fit({"day": days, "g": ["u", "v", "w"] * 27})
    assert index.query({"g": "u"}, 5, where={"day": "2024-02-13"}).ids.tolist() == [[39]]
    for where in (written, between(written, None)):
        with pytest.raises(ValueError, match=r"column 'day': expected a date .*, got"):
            index.query({"g": "u"}, 5, where={"day": where})


@pytest.mark.filterwarnings("ignore:column 'born'")
def test_a_word_among_dates_is_missing_in_the_index_too():
    dates = [f"1980-01-{day:02d}" for day in range(1, 25)]
    rows = {"born": ["TBD", *dates], "city": ["Rome", "Oslo", "Paris", "Rome", "Oslo"] * 5}
    index = SimilarityIndex().fit(rows)
    asked = {"born": ["TBD"], "city": ["Rome"]}
    missing = {"born": [None], "city": ["Rome"]}
    np.testing.assert_array_equal(
        index.query(asked, 9).distances, index.query(missing, 9).distances
    )
