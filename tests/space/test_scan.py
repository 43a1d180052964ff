import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

from tabweave import ValueMetric, Weave
from tabweave.engines.reading import read_fitted
from tabweave.space import kernels, scan
from tabweave.space.kernels import NO_ROW, all_distances
from tabweave.space.scan import (
    Copies,
    Nearest,
    Nodes,
    Queries,
    View,
    merge,
    nearest_nodes,
    nearest_rows,
    without_self,
)


def sample(n=5000, m=30, seed=0):
    """Rows of three columns and two whole-numbered coordinates: exact sums, many ties."""
    rng = np.random.default_rng(seed)
    widths = [4, 3, 60]
    tables = [rng.integers(0, 6, (w, w)).astype(float) for w in widths]
    stored, asked = ([rng.integers(0, w, size) for w in widths] for size in (n, m))
    line, points = (rng.integers(0, 3, shape).astype(float) for shape in ((2, n), (m, 2)))
    nodes = Nodes.of(stored, widths, line, power=1)
    D = sum(t[np.ix_(a, s)] for t, a, s in zip(tables, asked, stored, strict=True))
    return nodes, Queries.of(asked, tables, points), D + cdist(points, line.T, "cityblock")


def sorted_rows(D, k, allowed=None):
    """The k nearest of each row, by distance, then by number."""
    D = D if allowed is None else np.where(allowed, D, np.inf)
    rows = np.argsort(D, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(D, rows, axis=1), rows


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("k", [1, 7, 400])
def test_the_scan_equals_sorting_all_distances(k):
    nodes, queries, D = sample()
    assert_same(nearest_nodes(nodes, queries, k), sorted_rows(D, k))


def wide(n=17_000, m=80, rank=5, unit=1.0, at=0.0, seed=0):
    """Rows of two columns and 70 coordinates that lie near a few directions; some are queries."""
    rng = np.random.default_rng(seed)
    axes = rng.normal(size=(rank, 70))
    line = rng.normal(size=(n, rank)) @ axes + 0.1 * rng.normal(size=(n, 70))
    line[1::5] = np.round(line[1::5])  # and many are nearly as far
    line[2::50] = line[3]
    tables = [rng.normal(size=(w, w)) for w in (3, 40)]  # less than 0, too
    stored, asked = ([rng.integers(0, w, size) for w in (3, 40)] for size in (n, m))
    line = unit * line + at
    points = line[rng.integers(0, n, m)] + np.where(rng.random((m, 1)) < 0.5, 0, unit)
    return stored, np.ascontiguousarray(line.T), Queries.of(asked, tables, points)


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("k", [1, 30, 2000])
@pytest.mark.parametrize(
    "given",
    [{}, {"at": 1e9}, {"unit": 1e-9}, {"unit": 1e9}, {"unit": 1e14}, {"unit": 1e200}, {"rank": 70}],
)
def test_a_sketch_changes_no_bit(monkeypatch, given, k, root):
    stored, line, queries = wide(**given)
    first = np.where(np.arange(line.shape[1]) % 3 > 0, np.arange(line.shape[1]), -1)
    nodes = Nodes.of(stored, (3, 40), line, root=root)
    assert nodes.sketch is None or given.get("unit") != 1e200
    found = [nearest_nodes(nodes, queries, k, own) for own in (None, first)]
    monkeypatch.setattr(scan.Sketch, "of", lambda _: None)
    plain = Nodes.of(stored, (3, 40), line, root=root)
    assert plain.sketch is None
    for own, one in zip((None, first), found, strict=True):
        assert_same(one, nearest_nodes(plain, queries, k, own))


def test_a_sketch_rules_most_nodes_out():
    stored, line, queries = wide(unit=30.0)
    sketch = Nodes.of(stored, (3, 40), line).sketch
    near, slack = sketch.near(queries.points)
    nearer = cdist(near.astype(float), sketch.along.T.astype(float), "sqeuclidean")
    true = cdist(queries.points, line.T, "sqeuclidean")
    assert (nearer <= (np.sqrt(true) + slack[:, None]) ** 2 * (1 + 1e-5)).all()
    assert (nearer <= np.sort(true, axis=1)[:, 20:21]).mean() < 0.02


def test_a_sketch_is_made_for_many_questions_alone():
    stored, line, queries = wide()
    nodes = Nodes.of(stored, (3, 40), line)
    nearest_nodes(nodes, queries.take(np.arange(3)), 5)
    assert "sketch" not in vars(nodes)
    nearest_nodes(nodes, queries, 5)
    assert "sketch" in vars(nodes)


NUMBERS = ("x", "y", "z")


def mixed(n=12_000, m=300, seed=0):
    """Rows of numbers and values that go together, some of them missing, or there twice."""
    rng = np.random.default_rng(seed)
    where = rng.integers(0, 40, n + m)
    rows = {c: where % (3 + i) + rng.normal(size=n + m).round(2) for i, c in enumerate(NUMBERS)}
    rows["c"] = np.where(rng.random(n + m) < 0.8, where % 3, rng.integers(0, 3, n + m)).astype(str)
    rows["d"] = (where // 10).astype(str).astype(object)
    for name in ("x", "d"):
        rows[name][rng.random(n + m) < 0.05] = None if name == "d" else np.nan
    frame = pd.DataFrame(rows)
    frame.iloc[100:200] = frame.iloc[:100].to_numpy()
    frame.loc[n : n + 1, "x"] = [1e9, -1e300]
    return frame[:n], frame[n:]


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("k", [1, 40])
def test_cells_change_no_bit(k, root):
    rows, asked = mixed()
    model = Weave().fit(rows)
    stored, queries = (read_fitted(model, part) for part in (rows, asked))
    view, plain = (View(stored, model.space_, root=root) for _ in range(2))
    plain.nodes.__dict__["cells"] = None
    first = view.copies.first(np.random.default_rng(1).random(len(rows)) < 0.6)
    for names in (None, first):
        both = (nearest_nodes(v.nodes, v.queries(queries), k, names) for v in (view, plain))
        assert_same(*both)
    assert isinstance(view.nodes.cells, scan.Cells) and len(view.nodes.cells.boxes[0]) > 50


def test_nodes_are_no_nearer_than_their_box_and_their_cells():
    rows, asked = mixed(m=256)
    model = Weave().fit(rows)
    view = View(read_fitted(model, rows), model.space_)
    queries, cells = view.queries(read_fitted(model, asked)), view.nodes.cells
    summed = np.empty((256, len(view.nodes)))
    all_distances(queries.arrays(slice(None)), view.nodes.arrays(), summed)
    summed = summed[:, cells.order]
    nearest = np.minimum.reduceat(summed, cells.boxes[2][:-1], axis=1)
    near, slack = cells.directions.near(queries.vectors(slice(None)))
    n, twentieth = kernels.LANES, np.sort(summed, axis=1)[:, 20]
    for block in (slice(begin, begin + n) for begin in range(0, 256, n)):
        bounds, costs = np.empty((len(cells.boxes[0]), n)), np.empty((len(cells.cells[1]), 256, n))
        kernels._square_to_boxes(near[block], slack[block], *cells.boxes[:2], bounds)
        assert (bounds.T <= nearest[block] * (1 + 1e-9)).all()
        assert (bounds.T <= twentieth[block, None]).mean() < 0.3  # what a query compares with
        least = np.zeros(n)
        kernels._join_cells(queries.arrays(block), cells.nodes, cells.cells, costs, least)
        groups = np.arange(len(costs))
        bounds = least + costs[groups, cells.cells[0][:, : len(groups)]].sum(axis=1)
        assert not (bounds.T > summed[block] * (1 + 1e-9)).any()  # both may be infinite
        assert (bounds.T <= twentieth[block, None]).mean() < 0.01


@pytest.mark.parametrize("k", [1, 40, 300])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"at": 1e9},
        {"unit": 1e-9},
        {"unit": 1e14},
        {"unit": 1e150},
        {"power": 1},
        {"n_values": 999},
    ],
)
def test_cells_of_any_numbers_change_no_bit(monkeypatch, given, k):
    """Also where costs are negative, many rows are equally far, or the first ones are far away."""
    rng = np.random.default_rng(0)
    n, m, unit, widths = 9000, 256, given.get("unit", 1.0), (3, given.get("n_values", 40))
    line = unit * rng.normal(size=(n, 5)) ** 3 + given.get("at", 0.0)
    line[1::5] = np.round(line[1::5])
    line[:200] += 1e6 * unit
    tables = [unit**2 * rng.normal(size=(w, w)) for w in widths]
    stored, asked = ([rng.integers(0, w, size) for w in widths] for size in (n, m))
    queries = Queries.of(asked, tables, line[rng.integers(0, n, m)] + unit)
    first = np.where(np.arange(n) % 3 > 0, np.arange(n), -1)
    line, power = np.ascontiguousarray(line.T), given.get("power", 2)
    nodes, plain = (Nodes.of(stored, widths, line, power=power) for _ in range(2))
    plain.__dict__["cells"] = None
    for names in (None, first):
        assert_same(*(nearest_nodes(some, queries, k, names) for some in (nodes, plain)))
    assert nodes.cells is not None


def test_cells_are_made_for_many_questions_alone():
    rows, asked = mixed()
    model = Weave().fit(rows)
    view = View(read_fitted(model, rows), model.space_)
    nearest_nodes(view.nodes, view.queries(read_fitted(model, asked[:20])), 3)
    assert "cells" not in view.nodes.__dict__
    measure = ValueMetric("goodall3").fit(rows[["c", "d"]])
    assert View(read_fitted(measure, rows[["c", "d"]]), measure.space_).nodes.cells is None


@pytest.mark.parametrize("share", [0.02, 0.6])
def test_nodes_that_may_not_be_found(share):
    nodes, queries, D = sample()
    allowed = np.random.default_rng(1).random(5000) < share
    first = np.where(allowed, np.arange(5000), -1)
    assert_same(nearest_nodes(nodes, queries, 9, first), sorted_rows(D, 9, allowed))
    later = allowed & (np.arange(5000) >= 4000)
    assert_same(nearest_nodes(nodes, queries, 9, first, 4000), sorted_rows(D, 9, later))


def test_where_there_are_too_few():
    nodes, queries, D = sample(5)
    distances, rows = nearest_nodes(nodes, queries, 8)
    assert_same((distances[:, :5], rows[:, :5]), sorted_rows(D, 5))
    assert np.isinf(distances[:, 5:]).all() and (rows[:, 5:] == NO_ROW).all()


@pytest.mark.parametrize("some", [None, 0.3])
def test_copies_are_found_in_the_order_of_rows(some):
    nodes, queries, D = sample(300)
    rng = np.random.default_rng(2)
    node_of = np.concatenate([rng.permutation(300), rng.integers(0, 300, 900)])
    heads = np.unique(node_of, return_index=True)[1]
    allowed = None if some is None else rng.random(1200) < some
    found = nearest_rows(nodes, Copies.of(node_of, heads), queries, 25, allowed)
    assert_same(found, sorted_rows(D[:, node_of], 25, allowed))


def test_where_a_search_finds_too_few_the_scan_is_asked():
    nodes, queries, D = sample(300)
    copies = Copies.of(np.arange(300), np.arange(300))

    def blind(queries, k, first):
        distances, rows = nearest_nodes(nodes, queries, k, first)
        distances[::2, 2:], rows[::2, 2:] = np.inf, NO_ROW
        return distances, rows

    assert_same(nearest_rows(nodes, copies, queries, 9, search=blind), sorted_rows(D, 9))


def test_roots_tie_where_sums_differ_by_rounding():
    line = np.array([[1 + 2**-52, 1.0]])
    queries = Queries.of([], [], np.zeros((1, 1)))
    roots = nearest_nodes(Nodes.of([], [], np.sqrt(line), root=True), queries, 2)
    assert roots[1].tolist() == [[0, 1]]
    assert nearest_nodes(Nodes.of([], [], line), queries, 2)[1].tolist() == [[1, 0]]


def test_two_answers_are_merged_by_distance_then_by_number():
    one = np.array([[0.0, 2.0]]), np.array([[3, 9]])
    other = np.array([[2.0, 2.0, np.inf]]), np.array([[4, 10, NO_ROW]])
    assert_same(merge(one, other, 3), (np.array([[0.0, 2.0, 2.0]]), np.array([[3, 4, 9]])))


def test_a_row_is_no_neighbour_of_itself_even_among_many_copies():
    found = np.zeros((4, 3)), np.array([[0, 1, 2]] * 4)
    assert without_self(found)[1].tolist() == [[1, 2], [0, 2], [0, 1], [0, 1]]


@pytest.mark.parametrize(("power", "name"), [(1, "cityblock"), (2, "euclidean")])
def test_blocks_that_go_by(power, name):
    rng = np.random.default_rng(0)
    vectors = rng.integers(0, 4, (200, 3)).astype(np.float32)
    own = np.array([5, 60, 199])
    near = Nearest(vectors[own], own, 12, power=power)
    for start in range(0, 200, 64):
        rows = np.arange(start, min(start + 64, 200))
        near.see(rows, vectors[rows])
    D = cdist(vectors[own], vectors, name)
    D[np.arange(3), own] = np.inf
    assert_same((near.distances, near.rows), sorted_rows(D, 12))


def test_the_lower_floor_imports_no_embedder():
    program = (
        "import sys, tabweave.space.scan, tabweave.space.graph;"
        "print([m for m in sys.modules if m.startswith(('tabweave.embed', 'numba'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("width", [2**16 - 1, 2**16, 2**16 + 1])
def test_columns_at_the_edge_of_a_narrow_type(width):
    nodes = Nodes.of([np.arange(width)], [width], np.zeros((0, width)))
    paid = np.ones((1, width))
    paid[0, -1] = 0
    queries = Queries.of([np.zeros(1, int)], [paid], np.zeros((1, 0)))
    assert nearest_nodes(nodes, queries, 1)[1].tolist() == [[width - 1]]
