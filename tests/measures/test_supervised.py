"""VDM and MTDLE against their definitions, with loops over rows."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from tabweave import Counts, Table
from tabweave.measures import supervised
from tabweave.measures.register import MEASURES
from tabweave.measures.supervised import mtdle, transitive, vdm


def random_rows(seed, n=24, n_columns=3, n_values=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    rows = [
        [f"v{h if rng.random() < 0.5 else rng.integers(n_values)}" for _ in range(n_columns)]
        for h in y
    ]
    rows[0][1] = rows[3][1] = rows[4][0] = None
    return rows, y.tolist()


def counted(rows, y=None):
    columns = {f"c{a}": list(col) for a, col in enumerate(zip(*rows, strict=True))}
    return Counts.of(Table.of(columns), y)


@pytest.mark.parametrize("seed", range(3))
def test_vdm_equals_the_published_definition(seed):
    rows, y = random_rows(seed)
    counts = counted(rows, y)

    def p(c, a, v):
        having = [label for r, label in zip(rows, y, strict=True) if r[a] == v]
        return having.count(c) / len(having)

    for a, d in enumerate(vdm(counts)):
        for i, v in enumerate(counts.labels[a]):
            for j, w in enumerate(counts.labels[a]):
                expected = sum((p(c, a, v) - p(c, a, w)) ** 2 for c in set(y))
                assert d[i, j] == pytest.approx(expected, abs=1e-12)


def slow_bases(rows, counts):
    """The three transitive distances by Floyd and Warshall, scaled to mean 1 over pairs of rows."""
    nodes = [(a, v) for a, labels in enumerate(counts.labels) for v in labels]
    having = [{i for i, r in enumerate(rows) if r[a] == v} for a, v in nodes]
    bases = []
    for length in (lambda s: 1 - s, lambda s: -math.log(s), lambda s: 1 / s - 1):
        d = np.full((len(nodes), len(nodes)), np.inf)
        for i, (a, _) in enumerate(nodes):
            for j, (b, _) in enumerate(nodes):
                if i == j:
                    d[i, j] = 0
                elif a != b and having[i] & having[j]:
                    d[i, j] = length(len(having[i] & having[j]) / len(having[i] | having[j]))
        for k in range(len(nodes)):
            d = np.minimum(d, d[:, [k]] + d[[k], :])
        where = [[nodes.index((a, v)) for a, v in enumerate(r)] for r in rows]
        total = sum(d[np.ix_(column, column)] for column in zip(*where, strict=True))
        bases.append((d / total.mean(), total / total.mean()))
    return nodes, bases


@pytest.mark.parametrize("seed", range(6))
def test_mtdle_mixes_shortest_paths_to_agree_with_the_classes(seed):
    rows, y = random_rows(seed)
    counts = counted(rows, y)
    nodes, bases = slow_bases(rows, counts)
    n = len(rows)
    centring = np.eye(n) - 1 / n
    differ = np.array([[a != b for b in y] for a in y], float)

    def alignment(weights):
        d = centring @ sum(w * t for w, (_, t) in zip(weights, bases, strict=True)) @ centring
        return (d * (centring @ differ @ centring)).sum() / np.linalg.norm(d)

    found = mtdle(counts)
    stacked = [np.concatenate([d.ravel() for d in found])]
    columns = [np.concatenate([t[np.ix_(s, s)].ravel() for s in blocks(nodes)]) for t, _ in bases]
    weights, *_ = np.linalg.lstsq(np.stack(columns, 1), stacked[0])
    assert np.allclose(np.stack(columns, 1) @ weights, stacked[0])
    assert weights.sum() == pytest.approx(1) and (weights > -1e-9).all()
    starts = [*np.eye(3), np.ones(3) / 3]
    best = max(
        -minimize(lambda w: -alignment(np.abs(w) + 1e-12), s, method="Nelder-Mead").fun
        for s in starts
    )
    assert alignment(weights) >= best - 1e-6


def blocks(nodes):
    return [[i for i, (b, _) in enumerate(nodes) if b == a] for a in sorted({a for a, _ in nodes})]


@pytest.mark.parametrize("function", [vdm, mtdle])
@pytest.mark.parametrize("seed", range(3))
def test_is_a_dissimilarity_and_a_metric_where_claimed(function, seed):
    rows, y = random_rows(seed, n=60, n_values=7)
    for d in function(counted(rows, y)):
        assert np.allclose(d, d.T, rtol=0, atol=1e-12) and (d.diagonal() == 0).all()
        assert (d >= 0).all() and np.isfinite(d).all()
        if MEASURES[function.__name__].metric:
            assert (d[:, None] <= d[:, :, None] + d[None] + 1e-12).all()
            assert (d + np.eye(len(d)) > 0).all()


@pytest.mark.parametrize("function", [vdm, mtdle])
def test_row_order_and_names_do_not_matter(function):
    rows, y = random_rows(1)
    renamed = [[v and f"w{9 - int(v[1])}" for v in r] for r in rows]
    counts, other = counted(rows, y), counted(renamed[::-1], [f"k{c}" for c in y][::-1])
    for a, (d, e) in enumerate(zip(function(counts), function(other), strict=True)):
        order = [other.labels[a].index(v and f"w{9 - int(v[1])}") for v in counts.labels[a]]
        assert np.allclose(d, e[np.ix_(order, order)])


def test_values_that_never_meet_a_common_one_are_far_but_not_infinitely():
    rows, y = [["a", "x"], ["a", "z"], ["b", "y"], ["c", "y"]], [0, 0, 1, 1]
    d = mtdle(counted(rows, y))[0]
    assert d[0, 1] == d[0, 2] > d[1, 2] > 0


def test_shortest_paths_by_hand():
    far = np.inf
    d = transitive(
        np.array([[far, 1, far, 9], [1, far, 0, far], [far, 0, far, 2], [9, far, 2, far]])
    )
    assert np.array_equal(d, [[0, 1, 1, 3], [1, 0, 0, 2], [1, 0, 0, 2], [3, 2, 2, 0]])


@pytest.mark.parametrize("function", [vdm, mtdle])
@pytest.mark.parametrize(
    ("rows", "y"),
    [([["a"], ["b"]], [0, 1]), ([["a", "x"]], [0]), ([["a", "x"], ["a", "y"]], [1, 1])],
)
def test_degenerate_tables(function, rows, y):
    assert all(np.isfinite(d).all() for d in function(counted(rows, y)))


@pytest.mark.parametrize("name", ["vdm", "mtdle"])
def test_classes_are_asked_for(name):
    assert MEASURES[name].needs_y
    with pytest.raises(ValueError, match=f"'{name}' expected counts with classes, got none"):
        MEASURES[name].function(counted([["a"], ["b"]]))


def test_too_many_values_are_refused(monkeypatch):
    monkeypatch.setattr(supervised, "MAX_PATH_VALUES", 3)
    with pytest.raises(ValueError, match="column 'c1' has 3: group its rare values"):
        mtdle(counted([["a", "x"], ["b", "y"], ["a", "z"]], [0, 1, 1]))


def test_as_many_values_as_are_allowed(monkeypatch):
    counts = Counts.of(Table.of({"a": list("uv"), "b": list("xy")}), list("pq"))
    monkeypatch.setattr(supervised, "MAX_PATH_VALUES", 4)
    assert len(mtdle(counts)) == 2
    monkeypatch.setattr(supervised, "MAX_PATH_VALUES", 3)
    with pytest.raises(ValueError, match="expected at most 3 values, got 4"):
        mtdle(counts)


def test_bases_that_say_nothing_of_the_classes_weigh_alike():
    counts = Counts.of(Table.of({"a": list("uuvv"), "b": list("xyxy")}), list("pppp"))
    tables = [np.array([[0.0, 1.0], [1.0, 0.0]])] * 2
    found = supervised.class_alignment([tables] * 3, counts.pairs, counts.class_pairs, counts)
    np.testing.assert_allclose(found, [1 / 3] * 3)


def test_unreachable_values_are_twice_as_far_as_the_farthest():
    counts = Counts.of(Table.of({"a": list("uv"), "b": list("xx")}))
    distances = np.array([[0, 0.25, 0.5], [0.25, 0, np.inf], [0.5, np.inf, 0]])
    assert supervised._blocks(distances, counts)[0].tolist() == [[0, 0.25], [0.25, 0]]
    distances[0, 1] = distances[1, 0] = np.inf
    assert supervised._blocks(distances, counts)[0].tolist() == [[0, 1], [1, 0]]  # none is reached
    more = Counts.of(Table.of({"a": list("uvw"), "b": list("xxx")}))
    far = np.full((4, 4), np.inf)
    np.fill_diagonal(far, 0)
    far[0, 1] = far[1, 0] = 0.25
    wanted = [[0, 0.25, 0.5], [0.25, 0, 0.5], [0.5, 0.5, 0]]
    assert supervised._blocks(far, more)[0].tolist() == wanted
