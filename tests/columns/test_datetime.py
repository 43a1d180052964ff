"""Datetimes: near in a cycle is near in the space, and only the cycles that rows last."""

import datetime as dt
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tabweave import Counts, OneHot, SupervisedWeave, Table, Weave
from tabweave.columns.cells import Part
from tabweave.columns.datetime import CYCLES, cycle_of_clock, ring, ring_knots
from tabweave.engines.reading import read_fitted

RNG = np.random.default_rng(0)
YEARS = pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 10**8, 800), unit="s")


def distance(model, a, b):
    return model.pairwise_distances({"when": [a]}, {"when": [b]})[0, 0]


@pytest.mark.parametrize("clusters", [None, 2])
class TestNearness:
    @pytest.fixture
    def model(self, clusters):
        return Weave(clusters).fit({"when": YEARS})

    def test_round_midnight(self, model):
        night, after = "2021-05-03 23:50", "2021-05-04 00:10"
        assert distance(model, night, after) < 0.1 * distance(model, night, "2021-05-04 11:50")

    def test_round_the_week(self, model):
        sunday = distance(model, "2021-05-02 12:00", "2021-05-03 12:00")
        assert sunday < 0.7 * distance(model, "2021-05-02 12:00", "2021-05-05 12:00")

    def test_round_the_year(self, model):
        end = "2021-12-31"
        assert distance(model, end, "2022-01-01") < 0.7 * distance(model, end, "2022-07-01")


def features(cells):
    names = Weave().fit({"when": cells}).get_feature_names_out()
    return {name.partition("(")[2].partition(")")[0] for name in names} - {""}


@pytest.mark.parametrize(
    ("cells", "cycles"),
    [
        (YEARS, {"time of day", "weekday", "time of year"}),
        (YEARS.normalize(), {"weekday", "time of year"}),
        (pd.date_range("2024-03-01", periods=21), {"weekday"}),
        (pd.date_range("2024-03-01", periods=500, freq="h"), {"time of day", "weekday"}),
        (pd.date_range("2024-03-01", periods=48, freq="30min"), {"time of day"}),
        (pd.date_range("2024-03-01", periods=48, freq="s"), set()),
        (pd.date_range("1970-01-01", periods=48, freq="365D"), {"weekday", "time of year"}),
    ],
    ids=["all", "dates", "three weeks", "hours", "a day", "seconds", "yearly"],
)
def test_only_the_cycles_that_rows_last(cells, cycles):
    assert features(cells) == cycles


def test_a_column_counts_as_a_column():
    """Two rows are a weight apart, squared, on average: datetimes as numbers and as gaps."""
    when = pd.Series(YEARS).where(RNG.random(800) > 0.2)
    rows = pd.DataFrame({"when": when, "x": RNG.normal(size=800)})
    model = Weave().fit(rows)
    shares = model.space_.shares(*(read_fitted(model, part) for part in (rows[:400], rows[400:])))
    for name in rows:
        assert shares[name].mean() == pytest.approx(model.weights_[name], rel=0.15)
    gap = np.isnan(read_fitted(model, rows[:400])["when"].values)
    here = ~np.isnan(read_fitted(model, rows[400:])["when"].values)
    missing, present = (shares["when"][rows_ & here].mean() for rows_ in (gap, ~gap))
    assert missing == pytest.approx(present, rel=0.25)
    assert model.explain(rows[:1], rows[1:2]).keys() == {"when", "x"}


def test_parts_of_a_column_do_not_tie_it():
    """Its own weekday says nothing new of a date: alone among noise it weighs what noise does."""
    model = Weave().fit(
        {"when": YEARS, "x": RNG.normal(size=800), "c": RNG.choice(["u", "v"], 800)}
    )
    assert model.weights_["when"] == pytest.approx(1, abs=0.1)


def test_a_target_that_follows_the_hour_is_learned():
    y = np.where((YEARS.hour < 6) | (YEARS.hour >= 22), "night", "day")
    rows = pd.DataFrame({"when": YEARS, "x": RNG.normal(size=800)})
    model = SupervisedWeave().fit(rows, y)
    assert model.weights_["when"] > 1.5 > model.weights_["x"]
    asked = {"when": ["2022-01-01 23:00", "2022-01-02 03:00", "2022-01-02 12:00"], "x": [0.0] * 3}
    d = model.pairwise_distances(asked)
    assert d[0, 1] < d[0, 2]
    assert model.fit_transform(rows, y).shape == model.transform(rows).shape


def test_batches_give_what_all_dates_give():
    first, second = pd.DataFrame({"when": YEARS[:500]}), pd.DataFrame({"when": YEARS[500:]})
    parts = Weave().partial_fit(first).partial_fit(second)
    whole = Weave().fit(pd.DataFrame({"when": YEARS}))
    counted = Weave().fit_counts(parts.counts_)
    for model in (counted, whole):
        np.testing.assert_array_equal(model.transform(second), parts.transform(second))
    assert parts.counts_.n == 800 and features(YEARS) == {
        name.partition("(")[2].partition(")")[0] for name in parts.get_feature_names_out()
    } - {""}


def test_numbers_are_seconds_and_other_embedders_take_them():
    seconds = np.array([dt.datetime(2024, 1, 1, h).timestamp() for h in range(24)] * 3)
    model = OneHot(schema={"when": "datetime"}).fit({"when": seconds})
    assert model.transform({"when": seconds[:2]}).shape == (2, 6)


class TestTimesOfDay:
    """Times without a date were numbers that end at midnight, or values that share nothing."""

    minutes = RNG.integers(0, 1440, 300)
    times: ClassVar = [dt.time(int(m) // 60, int(m) % 60) for m in minutes]
    times[7] = None
    text: ClassVar = ["" if t is None else t.strftime("%H:%M") for t in times]

    def test_one_answer(self, tmp_path):
        other = np.where((self.minutes > 360) & (self.minutes < 1080), "day", "night")
        frame = pd.DataFrame({"t": self.times, "o": other})
        polars = pl.DataFrame({"t": self.times, "o": other.tolist()})
        polars.write_parquet(tmp_path / "x.parquet")
        polars.write_csv(tmp_path / "x.csv")
        text = pd.DataFrame({"t": self.text, "o": other})
        model = Weave().fit(frame)
        assert model.kinds()[0][:4] == ("t", "datetime", "times of day", True)
        assert list(model.get_feature_names_out()) == [
            "o_0", *(f"t (time of day)_{i}" for i in range(2))
        ]  # fmt: skip
        for rows in (text, polars, polars.to_arrow(), tmp_path / "x.csv", tmp_path / "x.parquet"):
            found = Weave().fit(rows)
            np.testing.assert_allclose(found.transform(rows), model.transform(frame), atol=1e-12)
            np.testing.assert_allclose(model.transform(rows), model.transform(frame), atol=1e-12)

    @pytest.mark.parametrize("embedder", [Weave(), Weave(2), OneHot()])
    def test_midnight_is_no_border(self, embedder):
        model = embedder.fit({"when": self.text})
        assert distance(model, "23:50", "00:10") < 0.1 * distance(model, "23:50", "12:00")
        assert distance(model, "23:50", dt.datetime(2024, 3, 1, 23, 50)) == pytest.approx(0)

    def test_a_time_is_no_date(self):
        with pytest.raises(ValueError, match="column 'when': expected dates or datetimes"):
            Weave().fit({"when": YEARS}).transform({"when": ["08:30"]})

    @pytest.mark.parametrize(
        ("cells", "kind"),
        [
            (["8:30", "9:15"], "datetime"),
            (["24:10", "08:30"], "numeric"),  # durations
            (["01:02:03:04"] * 2, "nominal"),
        ],
    )
    def test_what_is_a_time(self, cells, kind):
        assert Table.of({"x": cells * 20}, rules="all").schema["x"].kind == kind

    def test_shown_as_times(self):
        data = Table.of({"t": self.times}, rules="whole")["t"]
        assert [data.text(x) for x in (30_600.0, 5.0, np.nan)] == ["08:30", "00:00:05", None]


def test_bins_that_were_never_met_make_no_ring():
    cycle = CYCLES[0]
    name = Part("t", cycle.title)
    counts = Counts.of(Table.of({name: [None, None], "b": ["x", "y"]}, {name: "nominal"}))
    knots = ring_knots(counts, name, np.zeros(cycle.n_bins), cycle)
    assert len(knots.x) == len(knots.value) == len(knots.share) == 0 and knots.missing == 0
    assert cycle_of_clock(counts, "t") == [] == cycle_of_clock(counts, "absent")
    some = Counts.of(Table.of({name: [0, 3, 3]}, {name: "nominal"}))
    assert cycle_of_clock(some, "t") == [cycle]


def test_a_ring_closes_and_two_rows_are_one_apart_on_average():
    cycle = CYCLES[0]
    name = Part("t", cycle.title)
    bins = [0, 0, 3, cycle.n_bins - 1, 5, 5, 5, cycle.n_bins - 1]
    counts = Counts.of(Table.of({name: bins}, {name: "nominal"}))
    at = (np.arange(cycle.n_bins) + 0.5) * cycle.seconds / cycle.n_bins
    knots = ring_knots(counts, name, at, cycle)
    assert len(knots.x) == len(knots.value) == cycle.n_bins + 2 and knots.missing is None
    labels = counts.labels[0]
    assert [labels[knots.value[i]] for i in (0, 1, -2, -1)] == [bins[3], 0, bins[3], 0]
    assert knots.x[0] == at[-1] - cycle.seconds and knots.x[-1] == at[0] + cycle.seconds
    assert knots.share[[0, -1]].tolist() == [0, 0]
    rows = ring(knots, cycle)
    np.testing.assert_allclose(rows[[0, -1]], rows[[-2, 1]], atol=1e-12)  # the same place again
    points = rows[1:-1][bins]
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    np.testing.assert_allclose(squares.mean(), 1)
    gone = ring_knots(Counts.of(Table.of({name: [None]}, {name: "nominal"})), name, at, cycle)
    assert ring(gone, cycle).shape == (0, 2)


@pytest.mark.parametrize("met", [[0], [1, 22], [3, 9, 10, 23], list(range(24))])
def test_bins_not_met_stand_for_the_nearest_round_the_clock(met):
    cycle = CYCLES[0]
    name = Part("t", cycle.title)
    counts = Counts.of(Table.of({name: met + met[:1]}, {name: "nominal"}))
    at = (np.arange(24) + 0.25) * 3600
    knots = ring_knots(counts, name, at, cycle)
    np.testing.assert_allclose(knots.x, [at[-1] - 86_400, *at, at[0] + 86_400])
    bins = [23, *range(24), 0]
    for i, knot in enumerate(bins):
        away = {bin: min((knot - bin) % 24, (bin - knot) % 24) for bin in met}
        assert away[counts.labels[0][knots.value[i]]] == min(away.values())
    shares = [2 if bin == met[0] else bin in met for bin in range(24)]
    np.testing.assert_allclose(knots.share[1:-1], np.array(shares) / (len(met) + 1))


def test_dates_have_a_trend_beside_their_cycles_and_clocks_have_none():
    rng = np.random.default_rng(0)
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 3 * 365 * 86_400, 400), "s")
    rows = {"when": when, "clock": [t.time() for t in when], "noon": [dt.time(12)] * 400}
    rows["x"] = rng.normal(size=400)
    model = Weave(schema={"noon": "datetime"}).fit(rows)
    names = [name.rpartition(" ")[0] or name for name in model.get_feature_names_out()]
    parts = model._counted.owners
    cycles = [Part("when", cycle.title) for cycle in CYCLES]
    assert [part for part, column in parts.items() if column == "when"] == ["when", *cycles]
    clock = [part for part, column in parts.items() if column == "clock"]
    assert clock == [Part("clock", "time of day")]
    assert [part for part, column in parts.items() if column == "noon"] == ["noon"]
    assert names


def test_hours_without_rows_keep_the_order_of_the_clock():
    """The knots of a ring rise, wherever the rows lie; a search among others finds anything."""
    hours = [f"{8 + i % 10}:{7 * i % 60:02}" for i in range(60)]
    rows = {"opened": hours, "g": ["u", "v", "w"] * 20}
    model = Weave().fit(rows)
    assert (np.diff(model.numbers_.knots[0]) > 0).all()
    shuffled = np.random.default_rng(0).permutation(60)
    mixed = {name: [cells[i] for i in shuffled] for name, cells in rows.items()}
    np.testing.assert_array_equal(model.transform(mixed), model.transform(rows)[shuffled])
