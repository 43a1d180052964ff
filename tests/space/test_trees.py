import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from tabweave import Column, Table
from tabweave.columns.nominal import Codes
from tabweave.embed.hierarchy import Tree
from tabweave.space.trees import LevelSpace, LineSpace

DRINKS = {"Coffee": ["Latte", "Black coffee"], "Tea": {"Oolong": 0.5, "Black tea": None}}


@st.composite
def trees(draw):
    n = draw(st.integers(2, 25))
    parents = [-1] + [draw(st.integers(0, i - 1)) for i in range(1, n)]
    weight = st.floats(0, 100, allow_subnormal=False)
    weights = [0.0] + [draw(weight) for _ in range(1, n)]
    return Tree(np.array(parents), np.array(weights), tuple(f"n{i}" for i in range(n)))


@st.composite
def trees_with_points(draw):
    tree = draw(trees())
    share = st.floats(0, 1)
    node = st.integers(0, len(tree) - 1)
    pairs = draw(st.lists(st.tuples(node, share), min_size=4, max_size=8))
    return tree, [(i, float(s * tree.depths[i])) for i, s in pairs]


@given(trees_with_points())
def test_l1_distance_is_tree_distance(case):
    tree, points = case
    E = tree.embed(points)
    direct = [[tree.distance((f"n{a}", d), (f"n{b}", e)) for b, e in points] for a, d in points]
    scale = max(tree.depths.max(), 1)
    np.testing.assert_allclose(cdist(E, E, "cityblock"), direct, rtol=0, atol=1e-12 * scale)


@given(trees_with_points())
def test_four_point_condition(case):
    tree, points = case
    E = tree.embed(points[:4])
    D = cdist(E, E, "cityblock")
    sums = sorted([D[0, 1] + D[2, 3], D[0, 2] + D[1, 3], D[0, 3] + D[1, 2]])
    assert sums[2] - sums[1] <= 1e-11 * max(tree.depths.max(), 1)


def test_distance_is_a_path_length():
    """Against the plain walk over the edges."""
    tree = Tree.of(DRINKS)
    assert tree.distance("Latte", "Oolong") == 3.5
    assert tree.distance("Latte", "Coffee") == 1
    assert tree.distance("Any", "Black tea") == 2


def test_all_ways_to_write_a_tree_agree():
    expected = Tree.of(["a/x", "a/y", "b"]).newick()
    assert expected == "((x:1,y:1)a:1,b:1)Any;"
    assert Tree.of({"a": ["x", "y"], "b": None}).newick() == expected
    assert Tree.of({"a": (1, ["x", "y"]), "b": 1}).newick() == expected
    assert Tree.of({"Any": {"a": {"x": 1, "y": 1}, "b": 1}}).newick() == expected
    rows = {"a": "Any", "b": "Any", "x": "a", "y": ("a", 1.0), "Any": None}
    assert Tree.of(rows).newick() == expected
    assert Tree.of([("a", "Any"), ("b", "Any", 1), ("x", "a"), ("y", "a")]).newick() == expected


def test_a_graph_of_networkx_is_read_by_its_edges():
    """As a mere sequence of nodes it was a star."""
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    graph = networkx.DiGraph([("Any", "a"), ("Any", "b"), ("a", "x")])
    graph.add_edge("a", "y", weight=0.5)
    assert Tree.of(graph).newick() == "((x:1,y:0.5)a:1,b:1)Any;"
    with pytest.raises(TypeError, match="expected a directed graph, from parents to children"):
        Tree.of(graph.to_undirected())


def test_newick_quotes_what_it_must():
    tree = Tree.of({"it's": 1, "a b": 2, "x,y": 3})
    assert tree.newick() == "('it''s':1,a_b:2,'x,y':3)Any;"


def test_finds_by_name_by_path_and_by_ancestor():
    tree = Tree.of(["A/B/C", "A/B/D", "E/B/C"])
    assert tree.find("A") == tree.find("Any/A")
    assert tree.path(tree.find("A/B/C")) == "A/B/C"
    assert tree.find("nowhere") is None
    assert tree.nearest("A/B/new/newer") == tree.find("A/B")
    assert tree.nearest("new/newer") is None
    with pytest.raises(ValueError, match="'C' names 2 nodes of the tree; write its path"):
        tree.find("C")


def test_lowest_common_points():
    tree = Tree.of(DRINKS)
    assert tree.lca("Latte", "Black coffee") == "Coffee"
    assert tree.lcp("Latte", "Coffee") == ("Coffee", 1.0)
    assert tree.lcp(("Latte", 0.5), ("Black coffee", 2)) == ("Latte", 0.5)
    assert tree.lcp("Latte", "Oolong") == ("Any", 0.0)


@pytest.mark.parametrize(
    "tree, error, message",
    [
        ({"a": "b", "b": "c", "c": "a"}, ValueError, "cycle: a -> b -> c -> a"),
        ({"a": "a"}, ValueError, "cycle: a -> a"),
        ([("a", "r"), ("b", "c"), ("c", "b")], ValueError, "cycle: b -> c -> b"),
        ([("a", "b"), ("c", "d"), ("e", None)], ValueError, "3 roots, 'b', 'd', 'e'"),
        ([("a", "b"), ("c", "d")], ValueError, "2 roots, 'b', 'd'"),
        (
            [("a", "b", -2)],
            ValueError,
            "node 'a': expected the weight of its edge to be >= 0, got -2",
        ),
        (
            {"a": -1.0, "b": 1},
            ValueError,
            "node 'a': expected the weight of its edge to be >= 0, got -1",
        ),
        ({"a": (float("nan"), ["x"]), "b": 1}, TypeError, "node 'a': expected a number as weight"),
        ([("a", "b"), ("a", "c")], ValueError, "node 'a' has two parents, 'b' and 'c'"),
        ([("a",)], TypeError, "expected .child, parent."),
        ({"a": ["x", "x"], "b": None}, ValueError, "'x' is listed twice below 'a'"),
        (["A//B"], ValueError, "path 'A//B' has an empty part"),
        ({}, ValueError, "has no edge"),
        ("A/B", TypeError, "expected a nested mapping"),
        (7, TypeError, "expected a nested mapping"),
    ],
)
def test_bad_trees(tree, error, message):
    with pytest.raises(error, match=message):
        Tree.of(tree)


def test_bad_points():
    tree = Tree.of(DRINKS)
    with pytest.raises(ValueError, match="'Cocoa' is not in the tree; it has 'Any', 'Coffee'"):
        tree.distance("Cocoa", "Latte")
    with pytest.raises(ValueError, match="offset of 'Latte': expected 0 to 2, its depth, got 3"):
        tree.distance(("Latte", 3), "Latte")


@pytest.mark.parametrize(("n", "shown"), [(8, "7: add it"), (9, "7, ...: add it")])
def test_eight_nodes_are_named_where_one_is_not_found(n, shown):
    """The root and those below it; of more it is said that there are."""
    tree = Tree.of([(i, 0) for i in range(1, n)])
    with pytest.raises(ValueError, match=f"99 is not in the tree; it has 0, 1, .*, {shown}"):
        tree.distance(99, 0)


def test_deep_trees_need_no_recursion():
    tree = Tree.of([(i + 1, i) for i in range(3000)])
    assert tree.newick().startswith("((((")
    assert tree.distance(0, 3000) == 3000


def test_a_tree_says_how_large_it_is():
    assert repr(Tree.of({"x": ["a", "b"], "y": ["c"]})) == "Tree(6 nodes, 3 leaves)"


def test_a_single_leaf_with_a_weight_hangs_from_the_root():
    assert len(Tree.of({"a": 0.5})) == 2
    assert Tree.of({"root": ["a", "b"]}).leaves == Tree.of({"root": {"a": None, "b": None}}).leaves


def test_levels_that_a_column_does_not_have_are_refused_if_asked():
    block = LevelSpace(("low", "mid", "high"), np.array([0.4]), column="grade")
    schema = {"grade": Column("grade", "ordinal", levels=("low", "mid", "high", "top"))}
    column = Table.of({"grade": ["low", "high", None]}, schema)["grade"]
    points = dict(
        zip([*column.labels, "unknown"], block.points(column, "error")[:, 0], strict=True)
    )
    assert points["low"] == 0 and points["high"] == 1 and points[None] == points["unknown"] == 0.4
    odd = Table.of({"grade": ["low", "top"]}, schema)["grade"]
    assert block.points(odd)[:, 0].tolist()[-1] == 0.4
    with pytest.raises(ValueError, match="column 'grade': value 'top' is not in its tree"):
        block.points(odd, "error")
    unused = Codes(np.array([0], np.uint8), ["low", "top"])
    assert block.points(unused, "error")[0, 0] == 0


def test_a_name_of_two_nodes_is_refused_with_a_path():
    tree = Tree.of({"Hot": ["Black", "Latte"], "Cold": ["Black"]})
    with pytest.raises(ValueError, match=r"'Black' names 2 nodes of the tree; .* 'Hot/Black'"):
        tree.find("Black")
    assert tree.path(tree.find("Cold/Black")).endswith("Cold/Black")
    assert tree.find("nowhere") is None and tree.find(5) is None


def test_tables_of_parents_with_weights():
    tree = Tree.of({"b": ("a", 2.0), "c": ("a", 1.5), "d": ("b", 0.25)})
    assert tree.distance("d", "c") == 3.75 and tree.distance("a", "d") == 2.25
    assert tree.lca("d", "c") == "a"


def test_a_single_path_is_a_tree():
    tree = Tree.of(["A/B/C"])
    assert tree.distance("A", "C") == 2 and tree.lca("B", "C") == "B"
    assert Tree.of(["A"]).distance("A", "A") == 0


def test_a_line_without_a_range_is_exported_as_nothing():
    made = [LineSpace(2.0, high, 3.0, column="x") for high in (2.0, 6.0)]
    (flat,), (line,) = (block.export() for block in made)
    assert (flat.factor, line.factor) == (0, 0.25) and flat.mean == line.mean == 2
    assert line.missing.tolist() == [0.25] and flat.missing.tolist() == [0]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_trees_from_frames_of_parents(frame):
    rows = {"child": ["Latte", "Tea", "Coffee"], "parent": ["Coffee", None, "Tea"]}
    expected = Tree.of([("Latte", "Coffee"), ("Coffee", "Tea")]).newick()
    assert Tree.of(frame(rows)).newick() == expected
    assert Tree.of(frame(dict(reversed(rows.items())))).newick() == expected  # by name
    assert Tree.of(frame({"a": rows["child"], "b": rows["parent"]})).newick() == expected
    weighted = Tree.of(frame({**rows, "weight": [2.0, 0.0, 0.5]}))
    assert weighted.newick() == "((Latte:2)Coffee:0.5)Tea;"
    with pytest.raises(ValueError, match="expected a frame with columns 'child', 'parent'"):
        Tree.of(frame({"child": rows["child"]}))
