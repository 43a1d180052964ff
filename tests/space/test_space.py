"""What every space promises, whatever it is made of: the laws of the interface."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import cdist

from tabweave import (
    Column,
    DistanceHierarchy,
    OneHot,
    SupervisedWeave,
    Table,
    ValueMetric,
    Weave,
)
from tabweave.columns.nominal import Codes
from tabweave.columns.table import take_rows
from tabweave.space.points import (
    cdist_squared,
    row_blocks,
    sum_writer,
    summed_differences,
    turns,
    value_writer,
    wider,
)
from tabweave.space.space import Joined, Line, Lookup, Sum, Summed, added, label_column

LEVELS = ("low", "mid", "high")
SCHEMA = {"grade": Column("grade", "ordinal", levels=LEVELS), "tags": "set"}


def draw(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "job": rng.choice(["cook", "clerk", "judge", None], n).tolist(),
        "town": rng.choice(list("uvw"), n).tolist(),
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 9, n)).tolist(),
        "pay": rng.lognormal(size=n).tolist(),
        "grade": rng.choice([*LEVELS, None], n).tolist(),
        "tags": [set(rng.choice(list("abcd"), rng.integers(1, 3))) for _ in range(n)],
    }


def some(names):
    return {name: cells for name, cells in draw().items() if name in names}


MIXED = {
    "mixed": Weave(schema=SCHEMA),
    "mixed, summed": Weave(2, schema=SCHEMA),
    "mixed, one-hot": OneHot(schema={**SCHEMA, "age": "numeric", "pay": "numeric"}),
    "hierarchy": DistanceHierarchy(schema=SCHEMA),
}
VALUES = {
    "one-hot": OneHot(),
    "weave": Weave(),
    "weave, summed": Weave(2),
    "measure": ValueMetric("goodall3"),
}
FITTED = {name: model.fit(draw()) for name, model in MIXED.items()}
FITTED |= {name: model.fit(some(["job", "town"])) for name, model in VALUES.items()}
FITTED |= {"supervised": SupervisedWeave(schema=SCHEMA).fit(draw(), draw(seed=2)["town"])}
FITTED |= {"woven, summed": Weave(2, schema=SCHEMA).fit(draw())}


def block_and_rows(name):
    model = FITTED[name]
    asked = draw(25, seed=1)
    asked["job"][3] = "pilot"  # unknown
    rows = {column: asked[column] for column in model.schema_.names}
    return model.space_, Table.of(rows, model.schema_)


@pytest.fixture(params=FITTED)
def block(request):
    return block_and_rows(request.param)


def test_coordinates(block):
    block, table = block
    E = block.coordinates(table)
    assert E.shape == (25, block.width) and np.isfinite(E).all()
    assert len(block.feature_names()) == block.width
    out = np.full((25, block.width), np.nan, np.float32)
    assert block.coordinates(table, out=out) is out
    np.testing.assert_allclose(out, E, rtol=1e-6, atol=1e-6)
    with pytest.raises(ValueError, match="expected out to have shape"):
        block.coordinates(table, out=np.empty((2, 2)))
    with pytest.raises(ValueError, match="expected vectors to be float32 or float64, got int64"):
        block.coordinates(table, dtype="int64")


@pytest.mark.parametrize("name", [name for name in FITTED if name != "measure"])
def test_what_adds_up_is_that_of_the_coordinates(name):
    block, table = block_and_rows(name)
    other = take_rows(table, np.arange(7))
    E, F = block.coordinates(table), block.coordinates(other)
    metric = {1: "cityblock", 2: "sqeuclidean"}[block.power]
    gaps, some = (np.zeros(rows.n_rows) + sum(block.gaps(rows).values()) for rows in (table, other))
    expected = cdist(E, F, metric) + gaps[:, None] + some
    np.testing.assert_allclose(block.summands(table, other), expected, atol=1e-12)
    expected = cdist(E, E, metric) + gaps[:, None] + gaps
    np.fill_diagonal(expected, 0)  # a row and itself
    expected = np.sqrt(expected) if block.root else expected
    np.testing.assert_allclose(block.distances(table), expected, atol=1e-7)
    if block.power == 2:
        np.testing.assert_allclose(block.kernel(table, other), E @ F.T, atol=1e-12)
        np.testing.assert_allclose(block.kernel(table), E @ E.T + np.diag(gaps), atol=1e-12)
    else:
        with pytest.raises(ValueError, match="which no inner product gives"):
            block.kernel(table)


def test_shares_add_up(block):
    block, table = block
    order = np.random.default_rng(0).permutation(25)
    other = take_rows(table, order)
    shares = block.shares(table, other)
    total = np.diagonal(block.summands(table, other))
    np.testing.assert_allclose(sum(shares.values()), total, atol=1e-12)


@pytest.mark.parametrize("name", FITTED)
def test_shares_name_the_columns(name):
    block, table = block_and_rows(name)
    assert sorted(block.shares(table, table)) == sorted(table.schema.names)


def test_parts_add_up_to_the_whole(block):
    block, table = block
    parts = block.parts()
    assert {n for part in parts for n in part.names} == set(block.names)
    single = [n for part in parts if not isinstance(part, Summed) for n in part.names]
    assert len(single) == len(set(single))  # only a sum may hold a column once more
    found = sum(part.summands(table) for part in parts)
    np.testing.assert_allclose(found, block.summands(table), atol=1e-12)
    hstack = np.hstack([part.coordinates(table) for part in parts])
    np.testing.assert_allclose(hstack, block.coordinates(table), atol=1e-12)


def test_some_columns(block):
    block, table = block
    assert block.only([]) is None and block.only(["nobody"]) is None
    whole = block.only([*block.names, "nobody"])
    np.testing.assert_allclose(whole.summands(table), block.summands(table), atol=1e-12)
    job = block.only(["job"])
    assert list(job.names) == ["job"]
    assert job.coordinates(table).shape == (25, job.width)


def test_points_of_values_are_the_coordinates_of_cells(block):
    block, table = block
    met = 0
    for part in block.parts():
        column = table[part.names[0]]
        if part.by_value and isinstance(column, Codes):
            met += 1
            points = part.points(column)
            np.testing.assert_array_equal(points[column.codes], part.coordinates(table))
            labels = part.locate(column)
            two = labels.take([0, 1])
            between = two.between(labels) + two.gaps[:, None] + labels.gaps
            np.testing.assert_allclose(between, part.pairs(column)[:2], atol=1e-12)
            opposite = labels.take([0, 0, 1]).opposite(labels.take([0, 1, 1]))
            np.testing.assert_allclose(opposite, labels.between(labels)[[0, 0, 1], [0, 1, 1]])
            new = part.points(label_column(["never seen"]))
            np.testing.assert_array_equal(new[0], new[1])  # the unknown point is last
    assert met or len(block.parts()) == 1  # all are mixed


def test_unknown_values_may_be_refused(block):
    block, table = block
    for ask in (block.coordinates, block.summands, block.kernel):
        if ask != block.kernel or block.power == 2:
            with pytest.raises(ValueError, match="column 'job': value 'pilot'"):
                ask(table, unknown="error")
    with pytest.raises(ValueError, match="column 'job': value 'pilot'"):
        block.shares(table, table, unknown="error")


def carried_out(step, table):
    """Do what a step says, as another system would."""
    if isinstance(step, Sum):
        return sum(carried_out(part, table) for part in step.steps)
    data = table[step.column]
    if isinstance(step, Lookup):
        rows = dict(zip(step.labels, step.rows, strict=True)) | {None: step.missing}
        cells = [
            [data.labels[c] for c in own]
            for own in (
                [[c] for c in data.codes]
                if isinstance(data, Codes)
                else np.split(data.codes, data.starts[1:-1])
            )
        ]
        return np.array([np.mean([rows.get(v, step.unknown) for v in cell], 0) for cell in cells])
    assert isinstance(step, Line)
    z = (data.values - step.mean) * step.factor
    found = z[:, None]
    if step.rows is not None:
        inside = np.clip(
            np.searchsorted(step.knots, data.values, "right") - 1, 0, len(step.knots) - 2
        )
        slopes = np.diff(step.rows, axis=0) / np.diff(step.knots)[:, None]
        found = step.rows[inside] + (data.values - step.knots[inside])[:, None] * slopes[inside]
    return np.where(np.isnan(z)[:, None], step.missing, found)


@pytest.mark.parametrize("name", FITTED)
def test_steps_say_how_to_compute_the_coordinates(name):
    block, table = block_and_rows(name)
    steps = block.export()
    assert sum(step.width for step in steps) == block.width
    found = np.hstack([carried_out(step, table) for step in steps])
    np.testing.assert_allclose(found, block.coordinates(table), atol=1e-12)


def test_blocks_of_two_powers_do_not_add_up():
    trees, tables = (block_and_rows(name)[0] for name in ("hierarchy", "weave"))
    with pytest.raises(ValueError, match="expected spaces of one power"):
        Joined([trees, tables])


def test_a_measure_compares_by_its_tables():
    model = FITTED["measure"]
    block, table = block_and_rows("measure")
    np.testing.assert_array_equal(block.distances(table), model.pairwise_distances(table))
    lin = ValueMetric("lin").fit(some(["job", "town"]))
    ratio = lin.space_
    assert ratio.coordinates(table).shape == (25, ratio.width)  # near enough for a map
    np.testing.assert_array_equal(ratio.distances(table), lin.pairwise_distances(table))


# -- distances of points --------------------------------------------------------------------------


@pytest.mark.parametrize("width", [0, 3, 128, 129, 500])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_wide_points_are_compared_as_exactly_as_differences(width, shift):
    rng = np.random.default_rng(width)
    x = rng.normal(size=(40, width)) + shift
    y = np.vstack([rng.normal(size=(30, width)) + shift, x[:5]])
    y[0] = x[0] + 1e-9  # so near that inner products see rounding only
    for left, right in ((x, y), (x, x)):
        expected = ((left[:, None] - right) ** 2).sum(axis=2)
        np.testing.assert_allclose(cdist_squared(left, right), expected, rtol=1e-9)
    assert (np.diagonal(cdist_squared(x, y)[:5, 30:]) == 0).all()
    own = cdist_squared(x, x)
    assert np.array_equal(own, own.T) and not own.diagonal().any()


def test_points_that_are_all_equal():
    assert not cdist_squared(np.full((50, 300), 0.1), np.full((60, 300), 0.1)).any()


def test_without_points():
    assert cdist_squared(np.zeros((0, 300)), np.zeros((4, 300))).shape == (0, 4)
    assert cdist_squared(np.zeros((4, 300)), np.zeros((0, 300))).shape == (4, 0)


def test_identity_points_of_many_values():
    expected = cdist(np.eye(400), np.eye(400), "sqeuclidean")
    assert np.array_equal(cdist_squared(np.eye(400), np.eye(400)), expected)


def test_summed_blocks_add_their_coordinates():
    summed, table = block_and_rows("woven, summed")
    assert isinstance(summed, Summed) and set(summed.names) == set(table.schema.names)
    alone = [block.coordinates(table) for block in summed.spaces]
    np.testing.assert_allclose(summed.coordinates(table), np.sum(alone, axis=0), atol=1e-12)
    np.testing.assert_allclose(
        np.sum(list(summed.split(table).values()), axis=0), summed.coordinates(table), atol=1e-12
    )
    assert summed.feature_names() == ["dim0", "dim1", "dim2", "dim3"]
    one = summed.only(["age"])
    assert list(one.names) == ["age"] and summed.only(["none"]) is None
    np.testing.assert_array_equal(one.coordinates(table), summed.split(table)["age"])
    (step,) = summed.export()
    assert isinstance(step, Sum) and {type(part) for part in step.steps} == {Line, Lookup}


def test_blocks_of_other_widths_are_not_summed():
    wide, narrow = (FITTED[name].space_ for name in ("one-hot", "weave, summed"))
    with pytest.raises(ValueError, match="expected spaces of one width, got"):
        Summed([wide, narrow])


def test_shares_of_a_column_with_several_blocks_add_up():
    assert added([{"a": 1.0, "b": 2.0}, {"b": 3.0, "c": 4.0}]) == {"a": 1.0, "b": 5.0, "c": 4.0}


def test_rows_without_coordinates_are_at_no_distance():
    assert summed_differences(np.zeros((2, 0)), np.zeros((3, 0)), 1).tolist() == [[0] * 3] * 2
    x, y = np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])
    assert summed_differences(x, y, 1).tolist() == [[5]]
    assert summed_differences(x, y, 2).tolist() == [[13]]


def test_labels_are_asked_of_blocks_of_values_only():
    model = Weave().fit({"n": np.arange(30) + 0.5})
    with pytest.raises(TypeError, match="expected a space of one column of values, got"):
        model.space_.points(Codes(np.zeros(1, np.uint8), ["u"]))


def test_coordinates_are_filled_up_with_zeros():
    rows = np.ones((2, 3))
    assert wider(rows, 5).tolist() == [[1, 1, 1, 0, 0]] * 2
    assert wider(rows, 3).tolist() == rows.tolist()
    assert wider(np.ones(2), 3).tolist() == [1, 1, 0]
    assert wider(np.ones((2, 1, 1)), 2).tolist() == [[[1, 0]]] * 2


@pytest.mark.parametrize("parts", [[slice(0, 7)], [slice(0, 1), slice(1, 5), slice(5, 7)]])
def test_sums_are_the_same_in_slices(parts):
    rng = np.random.default_rng(0)
    table = Table.of({"a": list("uvwuvwu"), "s": [["p"], [], ["p", "q"], ["q"], [], ["r"], ["p"]]})
    points = [rng.normal(size=(len(data.labels) + 1, 2)) for _, data in table]
    sets = table["s"]
    wanted = points[0][table["a"].codes].copy()
    for row, (a, b) in enumerate(pairwise(sets.starts)):
        wanted[row] += points[1][sets.codes[a:b]].mean(axis=0) if b > a else points[1][-1]
    out = np.full((7, 2), np.nan)
    write = sum_writer([data for _, data in table], points, np.dtype(float))
    for part in parts:
        write(part, out[part])
    np.testing.assert_allclose(out, wanted)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("widths", [(3, 3), (2, 4), (4, 2)])
def test_a_turn_brings_points_nearest_to_those_before(widths, together):
    """Against scipy's Procrustes of weighted points about their means."""
    rng = np.random.default_rng(sum(widths))
    pieces = [
        (rng.normal(size=(9, widths[0])) + 3, rng.normal(size=(9, widths[1])) - 2, rng.random(9))
        for _ in range(2)
    ]
    products, wide = [], max(widths)
    for now, then, weight in pieces:
        a, b = (np.pad(rows, ((0, 0), (0, wide - rows.shape[1]))) for rows in (now, then))
        share = weight / weight.sum()
        root = np.sqrt(share)[:, None]
        products.append((root * (a - share @ a), root * (b - share @ b), share @ a, share @ b))
    both = [np.vstack(rows) for rows in zip(*(p[:2] for p in products), strict=True)]
    found = turns(pieces, together=together)
    for turn, (now, _, _), (a, b, start, end) in zip(found, pieces, products, strict=True):
        axes = orthogonal_procrustes(*(both if together else (a, b)))[0]
        wanted = (np.pad(now, ((0, 0), (0, wide - now.shape[1]))) - start) @ axes + end
        if widths == (3, 3):  # else a direction without points may be turned at will
            np.testing.assert_allclose(turn(now), wanted, atol=1e-9)
        distances = cdist(turn(now), turn(now))
        np.testing.assert_allclose(distances, cdist(now, now), atol=1e-9)
        np.testing.assert_allclose(turn(wider(start[None], wide)[:, : now.shape[1]])[0], end)
    assert turns([], together=together) == []


def test_points_turned_and_moved_come_back():
    rng = np.random.default_rng(0)
    then = rng.normal(size=(8, 3))
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    now = then @ axes + [5, -3, 1]
    (turn,) = turns([(now, then, np.ones(8))], together=False)
    np.testing.assert_allclose(turn(now), then, atol=1e-12)


def test_blocks_of_rows_hold_some_megabytes_and_a_thousand_rows_at_least():
    parts = row_blocks(5000, 1 << 30)
    assert [part.stop - part.start for part in parts] == [1024] * 4 + [904]
    assert row_blocks(10_000, 0) == [slice(0, 10_000)]
    assert row_blocks(10_000, 4096)[0] == slice(0, 2048)


def test_sums_of_sets_are_sums_of_means_by_hand():
    """An empty set has the last point; every other the mean of its elements'."""
    sets = Table.of({"s": [["p"], ["q", "p"], [], ["q"]]}, {"s": "set"})["s"]
    single = Table.of({"a": ["u", "v", "u", "v"]})["a"]
    points = [np.array([[1.0, 0], [2, 8], [5, 5]]), np.array([[10.0, 0], [0, 10], [7, 7]])]
    by_label = dict(zip(sets.labels, points[0], strict=False))
    p, q = by_label["p"], by_label["q"]
    out = np.empty((4, 2))
    sum_writer([sets, single], points, np.dtype(float))(slice(0, 4), out)
    others = points[1][single.codes]
    np.testing.assert_allclose(out, np.array([p, (p + q) / 2, points[0][2], q]) + others)
    value_writer(sets, points[0], np.dtype(float))(slice(1, 4), out[1:])
    np.testing.assert_allclose(out[1:], [(p + q) / 2, points[0][2], q])


def test_no_blocks_are_a_row_without_coordinates():
    none, table = Joined([]), Table.of({"a": ["x", "y"]})
    assert (none.names, none.width, none.power, none.root) == ([], 0, 2, True)
    assert none.distances(table).tolist() == none.kernel(table).tolist() == [[0, 0], [0, 0]]
    assert none.only(["a"]) is None and none.parts() == none.export() == none.feature_names() == []
