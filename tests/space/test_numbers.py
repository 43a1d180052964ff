import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from tabweave import HELIC, Column, Counts, Schema, Table, Weave
from tabweave.columns.datetime import cycle_of
from tabweave.columns.numeric import MAX_RUNGS, Knots, smaller_share, step_from
from tabweave.columns.numeric import ladder as ladder_of
from tabweave.columns.table import take_rows
from tabweave.space import numbers as numbers_
from tabweave.space.curves import class_weights
from tabweave.space.numbers import (
    Curves,
    Numbering,
    bin_knots,
    moments_of,
    quantile_edges,
    quantiles,
)


@pytest.fixture
def numbers():
    rng = np.random.default_rng(0)
    return {f"x{i}": rng.normal(i, i + 1, 400) for i in range(4)}


# -- classes ------------------------------------------------------------------------------------


def test_numbers_tied_to_the_classes_count_more(numbers):
    y = np.where(numbers["x2"] > 2, "high", "low")
    ties = []
    for column in numbers.values():
        bins = np.searchsorted(np.quantile(column, np.arange(1, 16) / 16), column, side="right")
        entropies = mutual_info_score(bins, bins) + mutual_info_score(y, y)
        ties.append(2 * max(mutual_info_score(bins, y) - 15 / 800, 0) / entropies)
    expected = (1 + np.array(ties) / np.mean(ties)) / 2
    # Bins are made of whole buckets, and no quartiles to the last number.
    assert expected[2] > 1.5 and expected.min() >= 0.5
    auto = HELIC(random_state=0, schema=dict.fromkeys(numbers, "numeric")).fit(numbers, y)
    variance = auto.transform(numbers).var(axis=0).reshape(4, MAX_RUNGS + 1).sum(axis=1)
    np.testing.assert_allclose(variance, expected, rtol=0.3)  # numbers lie between knots


def test_without_ties_or_classes_columns_count_alike():
    table = Table.of({"a": list("xyxy"), "b": list("uuvv")}, Schema())
    assert class_weights(Counts.of(table), [["a"], ["b"]]).tolist() == [1, 1]
    assert class_weights(Counts.of(table, list("pppp")), [["a"], ["b"]]).tolist() == [1, 1]


# -- curves with knots of their own -------------------------------------------------------------


def two_curves():
    rng = np.random.default_rng(0)
    knots = [np.array([0.0, 1.0, 5.0, 6.0]), np.array([0.0, 1.0])]
    rows = [rng.normal(size=(4, 3)), rng.normal(size=(2, 2))]
    missing = [np.array([9.0, 8.0, 7.0]), np.zeros(2)]
    levels = {"grade": ("low", "high")}
    return Curves(curved=["x", "grade"], knots=knots, rows=rows, missing=missing, levels=levels)


def test_curves_are_straight_between_their_knots_and_go_on():
    block = two_curves()
    x = np.array([-2.0, 0.0, 0.3, 4.4, 6.0, 9.0, np.nan])
    table = Table.of({"x": x, "grade": ["low", "high", None, "odd"] + ["low"] * 3}, {})
    E = block.coordinates(table)
    knots, rows = block.knots[0], block.rows[0]
    inside = slice(1, 5)
    for d in range(3):
        np.testing.assert_allclose(E[inside, d], np.interp(x[inside], knots, rows[:, d]))
    np.testing.assert_allclose(E[0, :3], rows[0] - 2 * (rows[1] - rows[0]))
    np.testing.assert_allclose(E[5, :3], rows[3] + 3 * (rows[3] - rows[2]))
    np.testing.assert_array_equal(E[6, :3], block.missing[0])
    np.testing.assert_allclose(E[:2, 3:], block.rows[1])
    np.testing.assert_array_equal(E[2:4, 3:], 0)  # missing, and a grade that is none
    assert block.feature_names() == ["x_0", "x_1", "x_2", "grade_0", "grade_1"]
    with pytest.raises(ValueError, match=r"column 'grade': expected one of its levels .* 'odd'"):
        block.coordinates(table, unknown="error")


def test_curves_fall_into_their_columns():
    block = two_curves()
    table = Table.of({"x": [0.2, 3.0], "grade": ["low", "high"]}, {})
    E, parts = block.coordinates(table), block.parts()
    np.testing.assert_array_equal(np.hstack([p.coordinates(table) for p in parts]), E)
    assert [part.by_value for part in parts] == [False, True]
    np.testing.assert_array_equal(block.only(["grade"]).coordinates(table), E[:, 3:])
    assert block.only(["none"]) is None
    split = block.split(table)
    np.testing.assert_array_equal(np.hstack([split["x"], split["grade"]]), E)
    shares = block.shares(take_rows(table, [0]), take_rows(table, [1]))
    squares = (E[0] - E[1]) ** 2
    np.testing.assert_allclose([*shares.values()], [[squares[:3].sum()], [squares[3:].sum()]])
    np.testing.assert_allclose(block.scaled(2.0).coordinates(table), 2 * E)


def test_curves_are_exported_by_their_knots():
    knots, rows = np.array([1.0, 2.0, 4.0]), np.random.default_rng(0).normal(size=(3, 2))
    (line,) = Curves(curved=["x"], knots=[knots], rows=[rows], missing=[np.ones(2)]).export()
    np.testing.assert_array_equal(line.knots, knots)
    np.testing.assert_array_equal(line.rows, rows)
    np.testing.assert_array_equal(line.missing, 1)


def test_bins_of_weighted_rows_are_those_of_repeated_ones():
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=200), rng.integers(0, 4, 200)
    x[::9] = np.nan
    repeated = np.repeat(x, weight)
    for n_bins in (2, 5, 16):
        edges = quantile_edges(x, n_bins, weight)
        np.testing.assert_array_equal(edges, quantile_edges(repeated, n_bins))
        knots = bin_knots(x, edges, weight)
        np.testing.assert_allclose(knots, bin_knots(repeated, edges), atol=1e-12)
    fraction = quantile_edges(x, 4, weight / 7)
    np.testing.assert_allclose(fraction, quantile_edges(repeated, 4), atol=0.1)


def test_no_numbers_have_no_edges():
    gone = np.full(3, np.nan)
    assert (
        quantile_edges(gone, 4).tolist() == [] and bin_knots(gone, np.zeros(0)).tolist() == [0] * 3
    )
    assert quantile_edges(np.arange(4.0), 2, np.zeros(4)).tolist() == []


def test_moments_of_grades_are_those_of_their_ranks():
    levels = {"grade": ("low", "mid", "high")}
    schema = {"grade": Column("grade", "ordinal", levels=levels["grade"])}
    cells = ["low", "high", "high", None, "mid", "high"]
    counts = Counts.of(Table.of({"grade": cells, "n": np.arange(6.0)}, schema))
    ranks = np.array([0, 2, 2, 1, 2])
    assert moments_of(counts, "grade", levels) == pytest.approx((5, ranks.mean(), ranks.var()))
    assert moments_of(counts, "n", levels) == pytest.approx((6, 2.5, np.arange(6).var()))
    empty = Counts.of(Table.of({"grade": [None, None]}, schema))
    assert moments_of(empty, "grade", levels) == (0, 0, 0)


def test_a_variance_beyond_float_leaves_the_ranks():
    knots = Knots(np.array([0.0, 1.0, 5.0]), np.arange(3), np.full(3, 1 / 3), None)
    plain = ladder_of(knots, 2.0, np.inf)
    np.testing.assert_array_equal(plain, ladder_of(knots, 2.0, 0.0))
    assert not np.allclose(plain, ladder_of(knots, 2.0, 14 / 3))


def test_a_bin_without_numbers_has_its_middle_for_a_mean():
    knots = bin_knots(np.array([0.0, 1.0, 9.0, 11.0]), np.array([2.0, 8.0]))
    assert knots.tolist() == [0, 0.5, 5, 10, 11]
    weighted = bin_knots(np.array([0.0, 1.0, 9.0]), np.array([2.0]), np.array([1.0, 3.0, 0.5]))
    assert weighted.tolist() == [0, 0.75, 9, 9]


def test_a_ladder_needs_two_knots_that_differ():
    one = Knots(np.array([3.0]), np.arange(1), np.ones(1), None)
    assert ladder_of(one, 3.0, 1.0).tolist() == [[0]]
    gone = Knots(np.zeros(0), np.arange(0), np.zeros(0), None)
    assert ladder_of(gone, 0.0, 0.0).shape == (0, 1)
    two = Knots(np.array([3.0, 4.0]), np.arange(2), np.full(2, 0.5), None)
    found = ladder_of(two, 3.5, 0.25)
    assert found[1, 0] > found[0, 0]


def test_phases_have_a_mean_for_each_of_their_bins():
    days = np.datetime64("2020-01-01") + np.arange(800) * np.timedelta64(31, "h")
    table = Table.of({"t": days}, {"t": "datetime"})
    cycles = Numbering.of(Counts.of(table), 4).cycles
    assert cycles
    for name, at in cycles.items():
        assert len(at) == cycle_of(name).n_bins and (np.diff(at) > 0).all()


def test_a_column_of_numbers_that_was_not_there_before_is_turned_to_nothing():
    rng = np.random.default_rng(0)
    x, y, g = rng.normal(size=60), rng.random(60), rng.choice(list("abc"), 60)
    now, before = (Weave().fit(rows).numbers_ for rows in ({"x": x, "y": y, "g": g},
                                                           {"x": x, "g": g}))  # fmt: skip
    pieces = now.shared_points(before)
    assert [then.shape[1] > 0 for _, then, _ in pieces] == [True, False]
    np.testing.assert_allclose(pieces[0][1], before.rows[0])


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_quantiles_are_those_of_numpy(n):
    """Plain ones interpolate; whole weights repeat numbers, others count shares of the weight."""
    rng = np.random.default_rng(n)
    x, q = np.sort(rng.normal(size=n)), np.array([0, 0.1, 0.25, 0.5, 0.77, 1])
    np.testing.assert_allclose(quantiles(x, q), np.quantile(x, q))
    times = rng.integers(1, 5, n)
    np.testing.assert_allclose(quantiles(x, q, times), np.quantile(np.repeat(x, times), q))
    weight = rng.random(n) + 0.1
    wanted = np.quantile(x, q, weights=weight, method="inverted_cdf")
    np.testing.assert_allclose(quantiles(x, q, weight), wanted)


def test_quantiles_between_numbers_whose_difference_is_no_float():
    largest = np.finfo(float).max
    found = quantiles(np.array([-largest, largest]), np.array([0, 0.25, 0.5, 0.75, 1]))
    np.testing.assert_allclose(found / largest, [-1, -0.5, 0, 0.5, 1])


@pytest.mark.parametrize("n_bins", [1, 2, 5, 16])
def test_bins_hold_about_as_many_numbers_each_and_knots_are_their_means(n_bins):
    rng = np.random.default_rng(n_bins)
    x = rng.normal(size=300)
    edges = quantile_edges(x, n_bins)
    assert len(edges) == n_bins - 1
    size = np.bincount(np.searchsorted(edges, x, side="right"), minlength=n_bins)
    assert size.max() - size.min() <= 1 + (n_bins > 2)
    knots = bin_knots(x, edges)
    means = [x[np.searchsorted(edges, x, side="right") == i].mean() for i in range(n_bins)]
    np.testing.assert_allclose(knots, [x.min(), *means, x.max()])
    weight = rng.integers(1, 4, 300)
    np.testing.assert_allclose(
        quantile_edges(x, n_bins, weight), quantile_edges(np.repeat(x, weight), n_bins)
    )
    np.testing.assert_allclose(bin_knots(x, edges, weight), bin_knots(np.repeat(x, weight), edges))


def test_bins_of_numbers_most_of_which_are_the_lowest():
    assert quantile_edges(np.array([0.0] * 90 + [1, 2, 3]), 4).tolist() == [1]
    assert quantile_edges(np.zeros(9), 4).tolist() == [] == quantile_edges(np.zeros(0), 4).tolist()
    assert quantile_edges(np.array([0.0, 1.0]), 1).tolist() == []
    assert bin_knots(np.zeros(0), np.array([1.0])).tolist() == [0] * 4


@pytest.mark.parametrize("x", [0.0, -3.5, 2.0**53, -1e17, 1.7e18, 1e300])
def test_a_step_leads_to_another_number(x):
    assert x + step_from(x) > x and x + step_from(x, 1e-30) > x
    assert step_from(x, 1e305) == 1e305
    assert abs(x) > 1e15 or step_from(x) == 1


@pytest.mark.parametrize("size", [30, 126, 127, 400, 6000])
@pytest.mark.parametrize("draw", ["normal", "standard_cauchy", "exponential", "poisson"])
def test_bins_of_counts_are_those_of_rows(size, draw):
    """Counts of buckets, merged to bins, are counts of the rows in these bins."""
    rng = np.random.default_rng(size)
    x = getattr(rng, draw)(size=size) if draw != "poisson" else rng.poisson(9, size).astype(float)
    x[::7] = np.nan
    rows = {"x": x, "g": rng.choice(list("abc"), size), "h": x + rng.normal(size=size)}
    table = Table.of(rows)
    counts = Counts.of(table)
    numbering = Numbering.of(counts, 8)
    assert numbering.binned(counts) == Counts.of(numbering.expand(table))
    for name in ("x", "h"):
        edges = quantile_edges(rows[name], 8)
        present = rows[name][~np.isnan(rows[name])]
        bins, mass = numbering.masses[name]
        shares = np.bincount(np.searchsorted(edges, present, side="right"), minlength=len(mass))
        np.testing.assert_allclose(mass, shares, atol=0.01 * size)  # quantile bins of all rows
        np.testing.assert_allclose(
            numbering.knots[name], bin_knots(rows[name], edges), atol=0.02 * present.std()
        )
        assert set(bins.tolist()) == set(range(len(numbering.edges[name]) + 1))
        if len(np.unique(present)) <= 126:  # each has a bucket of its own
            np.testing.assert_array_equal(
                np.searchsorted(numbering.edges[name], present, side="right"),
                np.unique(np.searchsorted(edges, present, side="right"), return_inverse=True)[1],
            )


def test_the_share_of_smaller_numbers_by_hand():
    """Half of a bin's numbers are below its mean; its end is as far in F as it is in x."""
    knots = Knots(
        np.array([0.5, 1, 3, 6, 6.5]), np.arange(5), np.array([0, 0.25, 0.5, 0.25, 0]), None
    )
    wanted = [0.125 - 0.25 * 0.5 / 1.5, 0.125, 0.5, 0.875, 0.875 + 0.25 * 0.5 / 2]
    np.testing.assert_allclose(smaller_share(knots), wanted)
    far = knots._replace(x=np.array([-9.0, 1, 3, 6, 90]))
    np.testing.assert_allclose(smaller_share(far)[[0, -1]], [0, 1])  # no share is below 0
    full = knots._replace(share=np.full(5, 0.2))
    np.testing.assert_allclose(smaller_share(full), [0.1, 0.3, 0.5, 0.7, 0.9])


@pytest.mark.parametrize("n", [3, 4, 5, 9])
@pytest.mark.parametrize("variance", [0.0, 4.0])
def test_a_ladder_is_that_of_classical_scaling(n, variance):
    """Its leading directions by an eigen-decomposition of all differences; g for the others."""
    rng = np.random.default_rng(n)
    x, share = np.cumsum(rng.uniform(0.1, 2, n)), rng.dirichlet(np.ones(n))
    knots = Knots(x, np.arange(n), share, None)
    g = 3 * (np.cumsum(share) - share / 2) / 2
    if variance:
        g = g + (x - 1.5) / np.sqrt(variance) * np.sqrt(np.pi) / 2 / 2
    apart = np.abs(g[:, None] - g)
    centre, root = np.eye(n) - share, np.sqrt(share)
    gram = -centre @ apart @ centre.T / 2
    values, vectors = np.linalg.eigh(root[:, None] * gram * root)
    leading = vectors[:, -MAX_RUNGS:] * np.sqrt(np.maximum(values[-MAX_RUNGS:], 0)) / root[:, None]
    rest = max(values[:-MAX_RUNGS].sum(), 0.0) if n > MAX_RUNGS + 1 else 0.0
    straight = g - share @ g
    straight *= np.sqrt(rest / (share @ straight**2))
    wanted = leading @ leading.T + np.outer(straight, straight)
    found = ladder_of(knots, 1.5, variance)
    np.testing.assert_allclose(found @ found.T, wanted / (share @ apart @ share), atol=1e-9)
    assert share @ (found**2).sum(axis=1) == pytest.approx(0.5)  # two numbers are 1 apart
    np.testing.assert_allclose(share @ found, 0, atol=1e-9)
    assert (found[-1, : min(n - 1, MAX_RUNGS)] > 0).all()


@pytest.mark.parametrize("n_edges", [0, 1, 15, 40])
def test_the_bin_of_a_number_is_that_of_a_binary_search(n_edges):
    values = np.random.default_rng(n_edges).normal(size=20_000).round(1)
    edges = np.unique(values)[:: max(1, 60 // max(n_edges, 1))][:n_edges]
    values[::9] = np.nan
    table = np.stack([values, -values], axis=1)
    for column in (values, table[:, 1][::-1]):  # one that does not lie in one piece, too
        found = numbers_.binned(column, edges)
        present = ~np.isnan(column)
        searched = np.searchsorted(edges, column[present], side="right")
        np.testing.assert_array_equal(found.codes[present], searched)
        assert (found.codes[~present] == len(edges) + 1).all() and found.labels[-1] is None


# -- streams whose numbers move ------------------------------------------------------------------

N_STREAM, BATCH = 2000, 100


def streams():
    draw = np.random.default_rng(0).normal(size=N_STREAM)
    steps = np.arange(N_STREAM, dtype=float)
    return {
        "trend": steps + draw,
        "downwards": -steps,
        "walk": draw.cumsum(),
        "sorted": np.sort(draw),
        "growth": np.exp(steps / 200),
        "wider": draw * (1 + steps),
        "hours": np.datetime64("2026-01-01", "ns") + steps.astype("timedelta64[h]"),
    }


@pytest.mark.parametrize("name", streams())
def test_a_stream_that_moves_gives_what_all_rows_at_once_give(name):
    rows = {"x": streams()[name], "job": np.array(list("abcd") * (N_STREAM // 4))}
    stream = Weave()
    for start in range(0, N_STREAM, BATCH):
        stream.partial_fit({n: column[start : start + BATCH] for n, column in rows.items()})
    some = {n: column[::20] for n, column in rows.items()}
    whole = Weave().fit(rows)
    assert stream.counts_ == whole.counts_
    np.testing.assert_array_equal(stream.transform(some), whole.transform(some))


def test_distances_of_grades_are_those_of_rows_that_differ_in_them():
    grades = ["low", "mid", "high"]
    rng = np.random.default_rng(0)
    cells = [grades[i] for i in rng.integers(0, 3, 90)]
    rows = {"g": cells, "h": [("u", "v")[(c == "low") ^ (rng.random() < 0.1)] for c in cells]}
    model = Weave(schema={"g": Column("g", "ordinal", levels=tuple(grades))}).fit(rows)
    found = model.value_distances("g").loc[grades, grades].to_numpy()
    apart = model.pairwise_distances({"g": grades, "h": ["u"] * 3})
    np.testing.assert_allclose(found, apart, atol=1e-9)
    assert (found[np.triu_indices(3, 1)] > 0.1).all()
