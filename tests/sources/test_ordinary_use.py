"""Sources as users have them: folds of scikit-learn, labels in any form, keys to other tables."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from tabweave import CoCA, GBCClassifier, GBCRegressor, Sources
from tabweave.sources.tables import read_labels

pandas = pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture
def noisy():
    """A table that knows the kinds, one of louder noise; ids in no order."""
    rng = np.random.default_rng(0)
    kind = np.arange(90) % 3
    ids = rng.permutation(90)
    good = np.eye(3)[kind[ids]] + 0.3 * rng.normal(size=(90, 3))
    return Sources({"good": (ids, good), "noise": (ids, 9 * rng.normal(size=(90, 3)))}), kind


def test_rows_are_taken_by_position_and_leave_the_others_around(noisy):
    sources, _ = noisy
    part = sources[10:20]
    assert part.ids.tolist() == sources.ids[10:20].tolist() and part.around is sources
    np.testing.assert_array_equal(part.matrix("good"), sources.matrix("good")[10:20])
    mask = np.arange(90) < 5
    assert len(sources[[]]) == 0
    assert sources[mask].ids.tolist() == sources[np.arange(5)].ids.tolist()
    assert part[[1, 0]].ids.tolist() == sources.ids[[11, 10]].tolist()
    assert part[[1, 0]].around is sources
    assert sources.shape == (90, 6) and part.shape == (10, 6)
    assert part.surroundings is part  # no graph links anything
    linked = Sources(graphs={"g": {"a": [1, 2], "b": [2, 3]}})
    assert linked[:1].surroundings is linked
    with pytest.raises(TypeError, match="expected rows of the sources"):
        sources[3]


def test_pipelines_of_sources_are_cross_validated(noisy):
    sources, kind = noisy
    model = make_pipeline(CoCA(2), KNeighborsClassifier(3))
    found = cross_val_score(model, sources, kind[sources.ids], cv=KFold(3))
    assert found.mean() > 0.8


@pytest.mark.parametrize("form", ["dict", "series", "frame", "array", "list", "scalars", "missing"])
def test_labels_in_any_form_give_the_same_weights(noisy, form):
    sources, kind = noisy
    by_id = {int(i): f"k{kind[i]}" for i in range(40)}
    expected = CoCA(2).fit(sources, by_id)
    assert expected.weights_["good"] > 0.9
    every = {int(i): by_id.get(int(i)) for i in sources.ids}
    shuffled = np.random.default_rng(1).permutation(list(by_id))
    given = {
        "dict": {np.int64(i): np.str_(v) for i, v in by_id.items()},
        "series": pandas.Series([by_id[int(i)] for i in shuffled], index=shuffled),
        "frame": pandas.DataFrame({"y": [by_id[int(i)] for i in shuffled]}, index=shuffled),
        "array": np.array(list(every.values()), dtype=object),
        "list": [float("nan") if v is None else v for v in every.values()],
        "scalars": pandas.array(list(every.values()), dtype="string"),
        "missing": pandas.Series(every).map(lambda v: pandas.NA if v is None else v),
    }[form]
    assert CoCA(2).fit(sources, given).weights_ == expected.weights_


def test_labels_of_plain_rows_go_by_the_index_of_the_frame_in_fit_and_in_score():
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    rng = np.random.default_rng(0)
    kind = pandas.Series(np.arange(120) % 2, index=[f"c{i}" for i in range(120)])
    rows = pandas.DataFrame({"x": kind + rng.normal(0, 0.1, 120)})
    shuffled = kind.sample(frac=1, random_state=0)
    for model in (GBCClassifier(5, random_state=0), GBCRegressor(20, random_state=0)):
        for y in (shuffled, shuffled.to_frame("y")):
            assert model.fit(rows, y).score(rows, y) > 0.9


def test_weights_of_plain_rows_go_with_the_rows_whatever_their_index():
    """Also those of a fold, and of rows that were shuffled: no index says which row is which."""
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    rng = np.random.default_rng(0)
    order = rng.permutation(90)
    kind = (order % 2).astype(float)
    rows = pandas.DataFrame({"x": kind + rng.normal(0, 1, 90)}, index=order)
    weights = pandas.Series(rng.random(90), index=order)
    model = GBCClassifier(5, random_state=0)
    expected = model.fit(rows, kind, sample_weight=weights.to_numpy()).predict_proba(rows)
    for given in (weights, weights.sample(frac=1, random_state=0)):
        found = model.fit(rows, kind, sample_weight=given).predict_proba(rows)
        np.testing.assert_array_equal(found, expected)
    cross_val_score(model, rows, kind, cv=3, params={"sample_weight": weights}, error_score="raise")


def test_labels_that_cannot_be_told_apart_are_refused():
    ids = np.arange(3)
    with pytest.raises(TypeError, match="expected ids that are"):
        read_labels(ids, {0: "a", 1: 1})
    with pytest.raises(ValueError, match=r"got 1 of other ids, 7 the first.*y\.reindex"):
        read_labels(ids, {7: "a"})
    with pytest.raises(ValueError, match="expected one label for each id, got two for 1"):
        read_labels(ids, pandas.Series(["a", "b"], index=[1, 1]))


def test_ids_from_a_column_of_another_name_or_the_index():
    people = pandas.DataFrame({"age": [1.0, 2.0]}, index=pandas.Index(["a", "b"], name="who"))
    orders = {"customer": ["b", "c"], "paid": [3.0, 4.0]}
    by_name = Sources(
        {"people": people, "orders": orders}, key={"people": "who", "orders": "customer"}
    )
    by_index = Sources(
        {"people": people, "orders": orders}, key={"people": None, "orders": "customer"}
    )
    told = Sources({"people": people, "orders": pandas.DataFrame(orders).set_index("customer")})
    for sources in (by_name, by_index, told):
        assert sources.ids.tolist() == ["a", "b", "c"]
        assert sources.columns("people") == ("age",)
    with pytest.raises(ValueError, match="pass key='<column>', or key=None for the index"):
        Sources({"people": people.reset_index(drop=True)})
    with pytest.raises(TypeError, match="expected a pandas frame"):
        Sources({"orders": orders}, key=None)


@pytest.mark.parametrize(
    ("tables", "graphs", "said"),
    [
        ([{"id": [1], "x": [2]}], None, "tables: expected a mapping of names, .* got list"),
        (pandas.DataFrame({"id": [1]}), None, "tables: expected a mapping .* got DataFrame"),
        (None, [(1, 2)], "graphs: expected a mapping of names, .* got list"),
        ({"a": {"id": [1], "x": [object()]}}, None, "table 'a', column 'x': expected a category"),
        ({"a": {"id": [object()], "x": [1]}}, None, "table 'a': expected a category"),
        ({"a": ([1], [["b"]])}, None, "table 'a': could not convert .*: 'b'; a pair is of ids"),
        ({"a": "a.csv"}, None, "table 'a': expected rows, got 'a.csv'"),
        (None, {"g": {0: [1, 2], 3: [4]}}, "graph 'g': column 3: expected 2 rows"),
        (None, {"g": [(0, 1, "far")]}, "graph 'g', weight: expected a number, got 'far'"),
    ],
)
def test_errors_name_the_table_or_the_graph(tables, graphs, said):
    with pytest.raises((TypeError, ValueError), match=said):
        Sources(tables, graphs)


def test_a_frame_of_numbered_columns_has_its_ids_in_the_index():
    frame = pandas.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=["a", "b"])
    sources = Sources({"t": frame}, key=None)
    assert sources.ids.tolist() == ["a", "b"] and sources.columns("t") == ("x0", "x1")


def test_rows_of_other_tables_are_looked_up_by_key():
    flights = {
        "id": [10, 11, 12, 13],
        "delay": [5.0, 0.0, 90.0, 1.0],
        "tailnum": ["N1", "N7", "N1", None],
        "origin": ["JFK", "LGA", "XXX", "JFK"],
        "dest": ["LGA", "JFK", "JFK", "LGA"],
    }
    planes = {"tailnum": ["N7", "N1"], "seats": [180.0, 90.0], "maker": [2, 1]}
    makers = {"id": [1, 2], "founded": [1916, 1970]}
    airports = {"id": ["JFK", "LGA"], "runways": [4.0, 2.0]}
    sources = Sources(
        {"flights": flights, "planes": planes, "makers": makers, "airports": airports},
        keys={
            "flights": {"tailnum": "planes", "origin": "airports", "dest": "airports"},
            "planes": {"maker": "makers"},
        },
    )
    assert sources.ids.tolist() == [10, 11, 12, 13]
    assert sources.columns("flights") == ("delay",)
    assert sources.names == (
        "flights",
        "planes",
        "airports by origin",
        "airports by dest",
        "makers",
    )
    found = dict(
        zip(sources.ids[sources.rows("planes")], sources.matrix("planes")[:, 0], strict=True)
    )
    assert found == {10: 90.0, 11: 180.0, 12: 90.0}
    assert sources.matrix("makers")[:, 0].tolist() == [1916, 1970, 1916]
    assert sources.ids[sources.rows("airports by origin")].tolist() == [10, 11, 13]
    assert sources.matrix("airports by dest")[:, 0].tolist() == [2, 4, 4, 2]


def test_a_column_without_any_cell_is_missing_whatever_its_kind():
    """One row to be predicted has gaps; what a column of None or NaN holds nobody can tell."""
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 2
    rows = {"id": range(60), "age": kind + rng.normal(0, 0.1, 60), "city": ["ab"[k] for k in kind]}
    model = CoCA(2).fit(Sources({"people": rows | {"empty": [None] * 60}}))
    known = {"id": [99], "age": [0.5], "city": ["a"], "empty": [None]}
    for gap in ({"age": [None]}, {"city": [None]}, {"city": [np.nan]}):
        (column,) = gap
        twice = {name: cells * 2 for name, cells in (known | gap).items()} | {"id": [98, 99]}
        twice[column] = [known[column][0], gap[column][0]]
        alone = model.transform(Sources({"people": known | gap}))
        np.testing.assert_allclose(alone, model.transform(Sources({"people": twice}))[1:])
    full = model.transform(Sources({"people": known | {"empty": [7.0]}}))
    np.testing.assert_array_equal(full, model.transform(Sources({"people": known})))
    with pytest.raises(TypeError, match="column 'age': expected numbers, got categories"):
        model.transform(Sources({"people": known | {"age": ["old"]}}))


def test_ids_whose_keys_lead_nowhere_stay():
    orders = {"id": [1, 2, 3], "customer": [20, None, 10]}
    customers = {"id": [10, 20], "age": [5.0, 6.0]}
    sources = Sources(
        {"orders": orders, "customers": customers}, keys={"orders": {"customer": "customers"}}
    )
    assert sources.ids.tolist() == [1, 2, 3] and sources.rows("customers").tolist() == [0, 2]


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"keys": {"a": "k"}}, TypeError, "keys: expected a mapping of table to mapping of"),
        ({"keys": {"a": {"k": "a"}}}, ValueError, "keys: expected no cycle, got a -> a"),
        ({"key": {"b": "id"}}, ValueError, r"key: expected names among \['a'\], got 'b'"),
        ({"directed": {"h": True}}, ValueError, r"directed: expected names among \['g'\], got 'h'"),
    ],
)
def test_options_of_no_table_or_graph_are_refused(given, error, said):
    table = {"id": [1, 2], "x": [1.0, 2.0], "k": [None, 1]}
    with pytest.raises(error, match=said):
        Sources({"a": table}, {"g": [(1, 2)]}, **given)


def test_keys_that_lead_nowhere_are_refused():
    a, b = {"id": [1], "x": [1.0], "k": ["u"]}, {"id": ["u"], "y": [2.0], "k": [1]}
    with pytest.raises(ValueError, match=r"keys: expected names of tables, .* got 'c'"):
        Sources({"a": a}, keys={"a": {"k": "c"}})
    with pytest.raises(ValueError, match="expected a key column 'z', got 'x', 'k'"):
        Sources({"a": a, "b": b}, keys={"a": {"z": "b"}})
    with pytest.raises(ValueError, match="expected a table that no key points to"):
        Sources(
            {"a": a, "b": b}, keys={"a": {"k": "b"}, "b": {"k": "a"}}, key={"a": "id", "b": "id"}
        )
    with pytest.raises(TypeError, match="expected ids that are text"):
        Sources({"a": {**a, "k": [7]}, "b": b}, keys={"a": {"k": "b"}}, key={"b": "id"})
    pair = (np.array([1]), np.ones((1, 1)))
    with pytest.raises(TypeError, match=r"expected a frame with column 'k', got \(ids, matrix\)"):
        Sources({"a": pair, "b": b}, keys={"a": {"k": "b"}}, key={"b": "id"})


def planted_graph(share, seed=0, n=300, per=3):
    """Three kinds, a table that knows them in part, a graph with so many edges within kinds."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    X = np.eye(3)[kind] + 0.5 * rng.normal(size=(n, 3))
    a, b = rng.integers(0, n, (2, 20 * n))
    same = kind[a] == kind[b]
    drawn = np.append(
        rng.permutation(np.flatnonzero(same))[: int(share * per * n)],
        rng.permutation(np.flatnonzero(~same))[: int((1 - share) * per * n)],
    )
    return Sources({"t": (np.arange(n), X)}, {"g": {"a": a[drawn], "b": b[drawn]}}), kind


@pytest.mark.parametrize(("share", "kept"), [(0.0, False), (1 / 3, False), (0.9, True)])
@pytest.mark.parametrize("labels", [0, 90])
def test_coca_refuses_graphs_that_do_not_join_like_with_like(share, kept, labels):
    sources, kind = planted_graph(share)
    known = {i: int(kind[i]) for i in range(labels)} or None
    model = CoCA(2).fit(sources, known)
    assert (model.graph_weights_["g"] > 0) is kept
    assert ("g" not in model.refused_) is kept
    if not kept:
        without = CoCA(2, graph_share=0).fit(sources, known)
        np.testing.assert_allclose(model.transform(sources), without.transform(sources))


def test_coca_judges_a_graph_by_the_neighbours_of_labelled_rows():
    """More edges within kinds than by chance, but a table that knows better."""
    sources, kind = planted_graph(0.5, per=1)
    sharp = Sources(
        {
            "t": (
                np.arange(300),
                np.eye(3)[kind] + 0.2 * np.random.default_rng(0).normal(size=(300, 3)),
            )
        },
        {"g": (sources.ids, sources.graph("g"))},
    )
    model = CoCA(2).fit(sharp, dict(enumerate(kind[:150].tolist())))
    assert "neighbours of labelled rows err" in model.refused_["g"]


def test_coca_takes_the_share_of_graphs_as_asked():
    sources, _ = planted_graph(0.9)
    models = {share: CoCA(2, graph_share=share).fit(sources) for share in (0, 1, 2)}
    X = sources.matrix("t") - sources.matrix("t").mean(axis=0)
    degree = np.maximum(np.asarray(sources.graph("g").sum(axis=1)).ravel(), 1)
    M = sources.graph("g").toarray() / np.sqrt(np.outer(degree, degree))
    unit = X / np.sqrt((X**2).sum() / len(X))
    for factor, model in models.items():
        values = np.linalg.eigvalsh(unit.T @ unit + factor * unit.T @ M @ unit) / len(X)
        np.testing.assert_allclose(model.eigenvalues_, values[::-1][:2])
