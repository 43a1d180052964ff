"""Sources: ids, alignment, graphs, and what is refused; against plain dictionaries."""

import numpy as np
import pytest
import scipy.sparse as sp

from tabweave import Sources

PEOPLE = {"id": ["ann", "bob", "eve"], "age": [41.0, None, 30.0], "town": ["Rome", "Oslo", None]}
ORDERS = {"id": ["bob", "joe"], "paid": [3.5, 1.0]}
FRIENDS = {"a": ["ann", "zoe", "bob"], "b": ["bob", "ann", "ann"], "weight": [2.0, 1.0, 5.0]}


@pytest.fixture
def sources():
    return Sources({"people": PEOPLE, "orders": ORDERS}, {"friends": FRIENDS})


def test_every_id_once_in_order_of_first_appearance(sources):
    assert sources.ids.tolist() == ["ann", "bob", "eve", "joe", "zoe"]
    assert len(sources) == 5
    assert sources.names == ("people", "orders") and sources.graph_names == ("friends",)


def test_rows_and_cells_are_those_given(sources):
    for name, given in (("people", PEOPLE), ("orders", ORDERS)):
        assert sources.ids[sources.rows(name)].tolist() == given["id"]
    np.testing.assert_array_equal(
        sources.matrix("people"), [[41, 0], [np.nan, 1], [30, np.nan]], strict=True
    )
    assert sources.categorical("people").tolist() == [False, True]
    assert sources.labels("people") == (None, ["Rome", "Oslo"])
    expected = [[True, False], [True, True], [True, False], [False, True], [False, False]]
    assert sources.present.tolist() == expected


def test_a_graph_is_symmetric_without_direction(sources):
    expected = np.zeros((5, 5))
    expected[0, 1] = expected[1, 0] = 5  # listed both ways: the larger weight
    expected[0, 4] = expected[4, 0] = 1
    assert (sources.graph("friends").toarray() == expected).all()
    assert (sources.links("friends").toarray() == expected).all()


def test_a_directed_graph_keeps_its_links():
    graph = Sources(graphs={"g": {"a": [1, 1, 2], "b": [2, 2, 2]}}, directed=True)
    assert (graph.links("g").toarray() == [[0, 2], [0, 0]]).all()  # added up, no self loop
    assert (graph.graph("g").toarray() == [[0, 2], [2, 0]]).all()
    assert "1 directed edge" in repr(graph)


def test_all_forms_of_a_graph_agree():
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    frame = {"a": [3, 1], "b": [1, 2]}
    matrix = sp.coo_array(([1.0, 1.0], ([0, 1], [1, 2])), shape=(3, 3))
    forms = [frame, networkx.Graph([(3, 1), (1, 2)]), ([3, 1, 2], matrix)]
    found = [Sources(graphs={"g": form}) for form in forms]
    for one in found:
        assert one.ids.tolist() == [3, 1, 2]
        assert (one.graph("g").toarray() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]).all()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_every_library(library):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    make = module.table if library == "pyarrow" else module.DataFrame
    found = Sources({"people": make(PEOPLE), "orders": make(ORDERS)})
    plain = Sources({"people": PEOPLE, "orders": ORDERS})
    assert found.ids.tolist() == plain.ids.tolist()
    np.testing.assert_array_equal(found.matrix("people"), plain.matrix("people"))
    assert found.labels("people") == plain.labels("people")


def test_sparse_matrices_stay_sparse():
    matrix = sp.random_array((4, 6), density=0.4, rng=np.random.default_rng(0))
    found = Sources({"s": ([7, 5, 3, 1], matrix)})
    assert sp.issparse(found.matrix("s"))
    part = found.select([3, 7])
    assert (part.matrix("s").toarray() == matrix.toarray()[[2, 0]]).all()


def test_select_keeps_rows_and_edges_of_some_ids(sources):
    part = sources.select(["joe", "ann", "bob"])
    assert part.ids.tolist() == ["joe", "ann", "bob"]
    assert part.ids[part.rows("people")].tolist() == ["ann", "bob"]
    np.testing.assert_array_equal(part.matrix("people")[:, 0], [41, np.nan])
    assert part.graph("friends")[1, 2] == 5 and part.graph("friends").nnz == 2
    with pytest.raises(KeyError, match="expected ids of the sources, got 'moe'"):
        sources.select(["moe"])
    assert len(sources.select([])) == 0


def test_like_reads_new_rows_with_old_codes(sources):
    new = Sources({"people": {"town": ["Oslo", "Bonn"], "age": [1, 2], "id": ["x", "y"]}})
    seen = new.like(sources)
    np.testing.assert_array_equal(seen.matrix("people"), [[1, 1], [2, np.nan]])
    assert seen.names == ("people",) and seen.graph_names == ()
    with pytest.raises(ValueError, match="table 'people': expected column 'age'"):
        Sources({"people": {"id": ["x"], "town": ["Oslo"]}}).like(sources)
    with pytest.raises(TypeError, match="column 'age': expected numbers, got categories"):
        Sources({"people": {"id": ["x"], "town": ["Oslo"], "age": ["old"]}}).like(sources)


def test_features_of_a_graph(sources):
    near = sources.with_features_of("friends")
    assert near.names[-1] == "friends adjacency"
    rows = near.rows("friends adjacency")
    assert (
        near.matrix("friends adjacency").toarray() == sources.graph("friends").toarray()[rows]
    ).all()
    few = sources.with_features_of("friends", among=["zoe", "nobody"])
    assert few.columns("friends adjacency") == ("zoe", "nobody")
    assert few.matrix("friends adjacency").toarray().tolist() == [[1, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize("size", [12, 200])
def test_spectral_features_tell_components_apart(size):
    half = size // 2
    edges = [(i, (i + 1) % half) for i in range(half)]
    edges += [(half + i, half + (i + 1) % half) for i in range(half)]
    a, b = np.array(edges).T
    made = Sources(graphs={"g": {"a": a, "b": b}}).with_features_of("g", "spectral", n_components=2)
    points = made.matrix("g spectral")
    left = made.ids[made.rows("g spectral")] < half
    # Eigenvalue 1 has one vector for each component: constant on it, so two points in all.
    assert np.allclose(points[left], points[left][0], atol=1e-6)
    assert np.allclose(points[~left], points[~left][0], atol=1e-6)
    assert np.linalg.norm(points[left][0] - points[~left][0]) > 0.5


def test_numbers_are_compared_by_value():
    found = Sources({"a": {"id": [1, 2], "x": [0, 0]}, "b": {"id": [2.0, 3.0], "x": [0, 0]}})
    assert found.ids.tolist() == [1, 2, 3]


def test_an_empty_and_a_short_table_are_sources():
    found = Sources({"none": ([], np.zeros((0, 3))), "one": ([5], [[1.0]])})
    assert found.rows("none").tolist() == [] and found.rows("one").tolist() == [0]
    assert "0 rows (0 %) x 3 columns" in repr(found)


@pytest.mark.parametrize(
    ("tables", "graphs", "error", "match"),
    [
        (
            {"t": ([1, 1], [[0], [1]])},
            {},
            ValueError,
            "table 't': expected one row for each id, got several for 1",
        ),
        ({"t": (["a", "a"], [[0], [1]])}, {}, ValueError, "got several for 'a'"),
        (
            {"t": ([1], [[0]]), "u": (["1"], [[0]])},
            {},
            TypeError,
            r"table 'u': expected ids that are numbers as in table 't' \(1\), got text \('1'\)",
        ),
        (
            {"t": ([1], [[0]])},
            {"g": {"a": ["1"], "b": ["2"]}},
            TypeError,
            "graph 'g': expected ids that are numbers",
        ),
        ({"t": (["a", 1], [[0], [1]])}, {}, TypeError, "table 't': expected ids that are"),
        ({"t": (["a", None], [[0], [1]])}, {}, ValueError, "expected an id in row 1, got null"),
        (
            {"t": {"key": [1], "x": [1]}},
            {},
            ValueError,
            "expected an id column 'id', got 'key', 'x'",
        ),
        ({"t": {"id": [1]}}, {}, ValueError, "no column besides the id"),
        ({"t": {"id": [1], "x": [np.inf]}}, {}, ValueError, "table 't', column 'x'.*inf"),
        ({"t": ([1], [[np.inf]])}, {}, ValueError, "infinity"),
        (
            {"t": ([1, 2], [[0]])},
            {},
            ValueError,
            r"expected a matrix of 2 rows, one for each id, got \(1, 1\)",
        ),
        ({"t": np.zeros((2, 2))}, {}, TypeError, r"expected \(ids, matrix\)"),
        ({"t": {"id": [1], "x": [[1, 2]]}}, {}, TypeError, "column 'x': expected .*, got sets"),
        ({"t": ([1], [[0]])}, {"t": {"a": [1], "b": [1]}}, ValueError, "a table and a graph"),
        ({}, {}, ValueError, "expected at least one table or one graph"),
        ({}, {"g": {"a": [1]}}, ValueError, "expected two columns"),
        ({}, {"g": {"a": [1], "b": [2], "c": [1]}}, ValueError, "name the one with the weights"),
        (
            {},
            {"g": {"a": [1], "b": [2], "weight": [-1]}},
            ValueError,
            "got -1.0 for the edge 1 - 2",
        ),
        ({}, {"g": sp.eye_array(2)}, TypeError, r"expected \(ids, matrix\)"),
        ({}, {"g": ([1], sp.eye_array(2))}, ValueError, r"shape \(1, 1\), got \(2, 2\)"),
    ],
)
def test_what_is_refused(tables, graphs, error, match):
    with pytest.raises(error, match=match):
        Sources(tables, graphs)


def test_names_that_are_not_there(sources):
    with pytest.raises(KeyError, match=r"tables \['people', 'orders'\], got 'friends'"):
        sources.matrix("friends")
    with pytest.raises(KeyError, match=r"graphs \['friends'\], got 'people'"):
        sources.graph("people")


def test_overlap_counts_shared_ids(sources):
    from tabweave.plots import overlap

    ax = overlap(sources)
    assert [text.get_text() for text in ax.texts] == ["3", "1", "2", "1", "2", "1", "2", "1", "3"]


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="table 'a': expected real numbers, got complex ones"):
        Sources({"a": (range(3), np.eye(3) * 1j)})
