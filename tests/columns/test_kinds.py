"""Kinds: what the rules make of columns, and that they tell it."""

import datetime as dt
import json
from contextlib import nullcontext
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tabweave import (
    Column,
    Counts,
    Schema,
    SimilarityIndex,
    Table,
    Weave,
    WeaveClassifier,
    between,
    export,
    load,
)
from tabweave.columns.datetime import date_order, is_iso, parse_clock, parse_date
from tabweave.columns.decision import MIN_ROWS_TO_INFER, Finding
from tabweave.columns.kinds import Kinds, decide_kind, dropped_line
from tabweave.columns.nominal import is_one_word
from tabweave.columns.numeric import _look_like_codes
from tabweave.columns.ordinal import ranges_in_order
from tabweave.columns.sets import list_in_text
from tabweave.columns.texts import looks_missing

N = 60
RNG = np.random.default_rng(0)
WHEN = [dt.datetime(2023, 1, 1) + dt.timedelta(hours=211 * i) for i in range(N)]


def kind_of(cells, name="x", **declared):
    """Return kind, reason and whether a column of a table is kept, beside one that says nothing."""
    found = Table.of({"other": RNG.normal(size=len(cells)), name: cells}, declared or None)
    return found.kinds()[1]


class TestRules:
    @pytest.mark.parametrize(
        ("cells", "kind"),
        [
            (WHEN, "datetime"),
            ([when.date() for when in WHEN], "datetime"),
            (pd.Series(WHEN), "datetime"),
            (pd.Series(WHEN).dt.tz_localize("Europe/Berlin"), "datetime"),
            (pd.Series(WHEN).astype(object), "datetime"),
            ("of polars", "datetime"),
            (pa.array(WHEN), "datetime"),
            (np.array(WHEN, "M8[s]"), "datetime"),
            ([when.isoformat() for when in WHEN], "datetime"),
            ([when.isoformat(" ") + "+01:00" for when in WHEN], "datetime"),
            ([when.date().isoformat() for when in WHEN[:-1]] + ["NA"], "datetime"),
            ((np.arange(N) ** 2).astype("m8[s]"), "numeric"),
            (["12.5", " 4", "-3e2"] * 20, "numeric"),
            ([str(7 * i) for i in range(N)], "numeric"),
            (["1,200", "NA", "1,300,000.5"] * 20, "numeric"),
            (["12%", "7.5 %"] * 30, "numeric"),
            (["$1,200.50", "-$3", "$80"] * 20, "numeric"),
            (["1", "2", "3"] * 20, "nominal"),
            (["007", "012"] * 30, "nominal"),
            (["2023", "13-01-05"] * 30, "nominal"),
            ([0, 1] * 30, "nominal"),
            ([True, False] * 30, "nominal"),
            ([200, 301, 404] * 20, "nominal"),
            ([100, 200, 300] * 20, "numeric"),
            ([1, 2, 3, 5] * 15, "numeric"),
            ([1990 + i % 24 for i in range(N)], "numeric"),
            (RNG.normal(size=N), "numeric"),
            ([["a"], ["a", "b"]] * 30, "set"),
            (pd.Categorical(["S", "L"] * 30, ["S", "L"], ordered=True), "ordinal"),
            (pd.Categorical([str(i / 2) for i in range(N)]), "nominal"),
            (["2023-01-05", "2023-01-06T10:00Z"] * 30, "nominal"),
        ],
        ids=str,
    )
    def test_kept(self, cells, kind):
        found = kind_of(pl.Series(WHEN) if isinstance(cells, str) else cells)
        assert (found.kind, found.kept) == (kind, True), found

    @pytest.mark.parametrize(
        "name",
        "zip/postal_code/userId/store id/SKU/PRODID/pupilNR/card_number/InvoiceNo/customer".split(
            "/"
        ),
    )
    def test_a_name_says_that_numbers_are_codes(self, name):
        cells = [35, 40, 62, 75] * 15
        assert kind_of(cells, name).kind == kind_of(list(map(str, cells)), name).kind == "nominal"
        for other in ("paid", "BID", "grid", "orders", "casino", "number_of_orders", "user_count"):
            assert kind_of(cells, other).kind == "numeric"

    @pytest.mark.parametrize(
        ("name", "cells"),
        [
            ("x", [f"F{i:04}" for i in range(N)]),
            ("x", [f"{i:x}" * 8 for i in range(N - 2)] + [None, None]),
            ("x", range(N)),
            ("x", np.cumsum(RNG.integers(1, 9, N))),
            ("Unnamed: 0", range(N)),
            ("Unnamed: 0", RNG.permutation(2 * N)[:N]),
            ("__index_level_0__", RNG.integers(0, 9, N)),
            ("user_id", RNG.integers(0, 2**52, N)),
            ("x", ["same"] * N),
            ("x", np.full(N, 3.5)),
            ("x", [None] * N),
        ],
    )
    def test_dropped_and_keepable(self, name, cells):
        assert not kind_of(cells, name).kept
        rows = {name: cells, "size": RNG.choice(["S", "L"], N), "w": RNG.normal(size=N)}
        model = Weave().fit(rows)
        assert model.schema_.names == ["size", "w"] and model.n_features_in_ == 3
        assert f"dropped: {name}" in repr(model)
        np.testing.assert_array_equal(
            model.transform(rows), model.transform({n: rows[n] for n in ("size", "w")})
        )
        kept = Weave(schema={name: "nominal"}).fit(rows)
        assert name in kept.schema_.names and "dropped" not in repr(kept)
        assert kept.kinds()[0] == Finding(name, "nominal", "declared")

    @pytest.mark.parametrize(
        "cells",
        [
            RNG.normal(size=N),  # measurements, all distinct
            RNG.integers(0, 10**6, N),
            [f"note {i} on a flight" for i in range(N)],  # sentences are no identifiers
            [f"N{i % 50}" for i in range(N)],
            20 + RNG.permutation(N),  # ages, all distinct, in no order
            1 + RNG.permutation(N),  # ranks
        ],
        ids=["floats", "integers", "sentences", "repeated", "ages", "ranks"],
    )
    def test_not_dropped(self, cells):
        assert kind_of(cells).kept

    @pytest.mark.parametrize("name", ["t", "Year", "day_of_year", "age", "startTime", "Rank"])
    def test_numbers_that_rise_and_say_what_they_measure_are_kept(self, name):
        assert kind_of(range(N), name).kept
        assert not kind_of(range(N), "patient").kept

    @pytest.mark.parametrize(
        "make", [list, np.array, pd.Series, pl.Series, pa.array, "Int64", None]
    )
    def test_whole_numbers_that_one_float_would_hold_stay_apart(self, make):
        cells = [2**60 + i % 5 for i in range(N)]
        gap = [*cells[1:], None]
        given = pd.Series(gap, dtype="Int64") if make == "Int64" else gap if make is None else None
        found = Table.of({"x": make(cells) if given is None else given}, rules="whole")
        assert found.schema["x"].kind == "nominal"
        assert set(found["x"].labels) - {None} == set(cells)
        assert kind_of([2**60 + 3 * i for i in range(N)]).why.startswith("an identifier")
        assert (
            kind_of([1_700_000_000_000_000_000 + i**2 * 10**9 for i in range(N)]).kind == "numeric"
        )

    def test_years_of_old_are_years(self):
        assert kind_of(range(1565, 1565 + 4 * N, 4), "x").why == "years, or numbers like them"

    def test_small_tables_have_no_identifiers(self):
        rows = {"a": [f"v{i}" for i in range(19)], "b": range(19), "c": ["x"] * 19}
        assert Table.of(rows).kinds().dropped == {}
        assert Weave().fit(rows).schema_.names == ["a", "b", "c"]

    def test_the_first_rows_of_a_stream_prove_less(self):
        rows = {"tail": [f"N{i}" for i in range(50)], "year": [2013] * 50, "x": RNG.normal(size=50)}
        more = {"tail": ["N1"] * 50, "year": [2014] * 50, "x": RNG.normal(size=50)}
        model = Weave().partial_fit(rows).partial_fit(more)
        assert model.schema_.names == ["tail", "year", "x"] and model.kinds().dropped == {}
        assert set(model.learn().weights_) == {"tail", "year", "x"}
        flights = {"flight": [f"F{i}" for i in range(300)], "x": RNG.normal(size=300)}
        assert list(Weave().partial_fit(flights).kinds().dropped) == ["flight"]

    def test_batches_give_the_vectors_of_all(self):
        rows = {"day": pd.Series(WHEN), "c": RNG.choice(["u", "v"], N), "same": ["x"] * N}
        frame = pd.DataFrame(rows)
        whole, once = Weave().fit(frame), Weave().partial_fit(frame)
        assert whole.kinds().dropped == once.kinds().dropped == {"same": "constant"}
        np.testing.assert_array_equal(whole.transform(frame), once.transform(frame))

    def test_nothing_is_left_says_what_to_do(self):
        with pytest.raises(ValueError, match=r"every column would be dropped: 'id' .* schema="):
            Weave().fit({"id": [f"F{i}" for i in range(30)]})
        kept = Weave(schema={"id": "nominal"}).fit({"id": [f"F{i}" for i in range(30)]})
        assert kept.transform({"id": ["F1"]}).shape[1] > 0
        assert Weave().fit({"same": ["x"] * 30}).transform({"same": ["x"]}).shape == (1, 0)


class TestText:
    @pytest.mark.parametrize(
        "texts",
        [
            ["5-17", "18-24", "25-34", "65+"],
            ["0-5yrs", "5-10yrs", "10-20yrs", "20+ yrs"],
            ["<$20k", "$20k-$40k", "$40k–$60k", ">$60k"],
            ["Under $1,000", "$1,000 to $9,999", "$10,000 or more"],
            ["(-inf,18]", "(18,25]", "(25, 35]", "(35,Inf)"],
            ["18 and under", "19-30", "31 and over"],
            ["< 1 year", "1 year", "2 years", "10+ years"],
            ["0-10%", "10-20%", "20%+"],
            ["500-1K", "1K-10K", "1M+"],
            ["1.5-2.5", "2.5-3.5", "3.5-4"],
            ["9", "10", "11+"],
        ],
    )
    def test_ranges_are_ordered(self, texts):
        assert ranges_in_order(texts[::-1]) == texts
        table = Table.of({"x": texts[::-1] * 20, "c": ["u", "v"] * 10 * len(texts)}, rules="whole")
        assert table.schema["x"].kind == "ordinal" and table.schema["x"].levels == tuple(texts)
        first = Table.of({"x": texts * 80}, rules="first")  # others may follow
        assert first.schema["x"].kind == "nominal"

    def test_a_new_range_is_unknown_and_no_error(self):
        ages = ["5-17", "18-24", "25-34", "65+"]
        rows = {"age": ages * 15, "c": RNG.choice(["u", "v"], N)}
        model = Weave().fit(rows)
        assert model.kinds()[0][1:3] == ("ordinal", "ranges in order")
        near = model.value_distances("age")
        assert near.loc["5-17", "18-24"] < near.loc["5-17", "25-34"] < near.loc["5-17", "65+"]
        new = {"age": ["35-44", "5-17"], "c": ["u", "v"]}
        assert np.isfinite(model.transform(new)).all()
        parts = Weave().partial_fit({n: c[:2] for n, c in rows.items()}).partial_fit(rows)
        assert parts.transform(new).shape[0] == 2

    def test_several_currencies_are_told(self):
        kinds = Table.of({"a": ["$5.50", "7 €"] * 20, "b": ["$5.50", "$7"] * 20}).kinds()
        assert [k.why for k in kinds] == [
            "money written as text, $, € taken as one currency",
            "money written as text",
        ]

    @pytest.mark.parametrize(
        ("cells", "why"),
        [
            (["1/2/2023", "3/4/2023"] * 20, "dates, day or month first? declare format 'dmy'"),
            (["a", "1", "2"] * 20, "values"),
            (["1Fam", "2Fam", "3Story", "Foyer", "Split", "4Fam", "5Fam"] * 9, "values"),
        ],
    )
    def test_what_a_column_nearly_is_is_said(self, cells, why):
        assert kind_of(cells).why.startswith(why)
        found = Table.of({"x": cells, "c": RNG.choice(["u", "v"], len(cells))}, rules="whole")
        assert found.kinds()[0].why.startswith(why)

    @pytest.mark.parametrize("word", ["Refused", "NA"])
    def test_what_keeps_ranges_from_being_read_is_said(self, word):
        cells = ["18-24", "25-34", "35-44", "65+", word] * 9
        assert kind_of(cells).why == f"ranges, except {word!r}"
        with pytest.warns(UserWarning, match=f"column 'x' holds ranges, except {word!r}; it is"):
            found = Table.of({"x": cells, "c": RNG.choice(["u", "v"], 45)}, rules="whole")
        assert found.kinds()[0].why == f"ranges, except {word!r}"

    @pytest.mark.parametrize("mark", [";", "; ", "|", ",", ", "])
    def test_lists_joined_in_text_are_sets(self, mark):
        words = np.array(["Action", "Comedy", "Drama", "War"])
        lists = [list(words[RNG.random(4) < 0.6]) or ["War"] for _ in range(N)]
        texts = [mark.join(words) for words in lists]
        found = Table.of({"x": texts, "c": RNG.choice(["u", "v"], N)}, rules="whole")
        why = f"lists in text, parted at {mark.strip()!r}; declare 'nominal' to compare whole texts"
        assert found.kinds()[0].why == why and found.schema["x"].kind == "set"
        assert [set(found["x"].cell(i)) for i in range(N)] == list(map(set, lists))
        assert Table.of({"x": texts}, {"x": "nominal"})["x"].labels == list(dict.fromkeys(texts))

    def test_texts_in_which_a_position_means_something_are_asked_about(self):
        pairs = [f"{a}|{b}" for a in "abcdef" for b in "ghijkl"] * 3
        assert kind_of(pairs)[1:3] == ("nominal", "lists? declare kind 'set' with delimiter '|'")
        assert kind_of([f"[{i % 9}, {i % 7}]" for i in range(N)]).why == "lists? declare kind 'set'"

    def test_text_with_marks_or_in_brackets_is_no_list(self):
        assert kind_of([f"City {i % 9}, S{i % 8}" for i in range(9)] * 9).why == "values"
        assert kind_of([f"{{4F{i % 30}-A}}" for i in range(N)]).why == "values"
        assert kind_of([json.dumps({"a": i % 7}) for i in range(N)]).why == "values"
        prose = [f"well, the {i} dog; and {7 * i} cats, of all" for i in range(N)]
        assert kind_of(prose).kind == "nominal"

    def test_a_declared_set_is_parted_by_what_plainly_joins_it(self):
        words = np.array(["Action", "Comedy", "Drama", "War"])
        genres = [" | ".join(words[RNG.random(4) < 0.6]) or "War" for _ in range(N)]
        read = Table.of({"genre": genres}, {"genre": "set"})
        assert read.schema["genre"].delimiter == "|" and set(read["genre"].labels) == set(words)
        with pytest.raises(TypeError, match="declare what parts a text"):
            Table.of({"x": ["a-b", "b-c", "c"] * 9}, {"x": "set"})

    @pytest.mark.parametrize(
        ("text", "elements"),
        [
            ("{a,b}", ["a", "b"]),
            ('{"a b",c,NULL}', ["a b", "c", None]),
            (r'{"say \"hi\"",c}', ['say "hi"', "c"]),
            ("{}", []),
            ("('a', 'b')", ["a", "b"]),
            ("{'a'}", ["a"]),
            ("{'a': 1}", None),
            ("{{1,2},{3,4}}", None),
            ("[a, b]", None),
            ("{", None),
            ("", None),
        ],
    )
    def test_lists_as_python_and_postgresql_write_them(self, text, elements):
        assert list_in_text(text) == elements

    @pytest.mark.parametrize("write", [json.dumps, repr])
    def test_lists_in_brackets_are_read_as_written(self, write):
        """As JSON has them, or as Python prints a column of lists to CSV."""
        lists = [["a", "b, c"], ["b, c", "d"], ["a"], [], ["d", "it's"], [1, None]] * 9
        texts = [*map(write, lists), None, None]
        found = Table.of({"x": texts, "c": ["u", "v"] * 28}, rules="whole")
        why = "lists in text; declare 'nominal' to compare whole texts"
        assert found.kinds()[0] == ("x", "set", why, True, "lists", "", ())
        read = Table.of({"x": texts}, {"x": "set"})
        assert Counts.of(read) == Counts.of(found.select(["x"]))
        plain = Table.of({"x": [*lists, None, None]}, {"x": "set"})
        assert Counts.of(read) == Counts.of(plain)
        assert Table.of({"x": ['["z"]']}, read.schema)["x"].labels == ["z"]
        with pytest.raises(TypeError, match=r"column 'x': expected a set, got '\[a, b\]'"):
            Table.of({"x": ["[a, b]"]}, {"x": "set"})

    def test_durations_are_numbers_and_times_of_day_go_round(self):
        cells = [f"{i % 24}:{7 * i % 60:02}:05" for i in range(N)]
        assert kind_of(cells, "start")[1:3] == ("datetime", "times of day")
        assert kind_of(cells, "duration")[1:3] == ("numeric", "durations written as text")
        assert kind_of([*cells, "24:00:00"], "start").kind == "numeric"
        halves = [f"{1 + i % 12}:{7 * i % 60:02} {'ap'[i % 2]}m" for i in range(N)]
        assert kind_of(halves).why == "times of day"
        assert [parse_clock(t) for t in ("12:05 AM", "1:00pm", "12:00:01 PM", "9:30")] == [
            300, 46_800, 43_201, 34_200
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("written", "order"),
        [
            ("%m/%d/%Y", "mdy"),
            ("%d.%m.%Y %H:%M", "dmy"),
            ("%d-%b-%y", "dmy"),
            ("%B %d, %Y", "mdy"),
            ("%Y/%m/%d", "ymd"),
            ("%m/%d/%y %I:%M %p", "mdy"),
            ("%d/%b/%Y:%H:%M:%S +0100", "dmy"),
        ],
    )
    def test_dates_that_are_no_iso_text(self, written, order):
        days = pd.Series(WHEN).dt.floor("min" if ":" in written else "D")
        text = days.dt.strftime(written)
        assert date_order(list(text)) == order
        assert [parse_date(t, order) for t in text] == list(days)
        other = {"x": RNG.normal(size=N), "g": RNG.choice(["a", "b"], N)}
        gaps = text.where(np.arange(N) % 7 > 0, None)
        model = Weave().fit({"day": gaps, **other})
        assert model.kinds()[0].kind == "datetime"
        parsed = Weave().fit({"day": days.where(np.arange(N) % 7 > 0), **other})
        vectors = parsed.transform({"day": days, **other})
        for cells in (text, days, days.dt.strftime("%Y-%m-%d %H:%M")):
            np.testing.assert_array_equal(model.transform({"day": cells, **other}), vectors)

    def test_dates_in_doubt_stay_text(self):
        assert date_order(["1/2/2023", "3/4/2023"]) is None
        assert date_order(["1.2.3", "1.2.4"]) is None and date_order(["NA"]) is None
        declared = Schema({"day": Column("day", "datetime", format="dmy")})
        seconds = Table.of({"day": ["1/2/2023"]}, declared)["day"].values
        assert seconds[0] == dt.datetime(2023, 2, 1, tzinfo=dt.UTC).timestamp()
        with pytest.raises(
            ValueError, match=r"column 'day': expected a date, day first .* '1/32/20"
        ):
            Table.of({"day": ["1/32/2023"]}, declared)

    def test_sql_is_told_what_dates_in_text_are_there(self):
        rows = {
            "day": [f"{1 + i % 12}/{1 + i % 28}/2023" for i in range(N)],
            "x": RNG.normal(size=N),
        }
        model = Weave().fit(rows)
        with pytest.raises(ValueError, match=r"column 'day' .* types=\{'day': 'date'\}"):
            export.sql(model)
        assert "epoch_us" in export.sql(model, types={"day": "date"})

    def test_a_date_that_does_not_exist_is_missing_and_listed(self):
        days = [f"{1000 + i}-01-0{1 + i % 9}" for i in range(1200)] + ["2023-02-30"]
        rows = {"day": days, "x": RNG.normal(size=1201)}
        with pytest.warns(UserWarning, match=r"column 'day' holds ISO text, except '2023-02-30' "):
            table = Table.of(rows, rules="whole")
        assert table.kinds()[0].unreadable == (("2023-02-30", 1),)
        assert np.flatnonzero(np.isnan(table["day"].values)).tolist() == [1200]
        rows["day"][-1] = "2023-02-28"
        table = Table.of(rows, rules="whole")
        expected = (dt.datetime(2023, 2, 28) - dt.datetime(1970, 1, 1)).total_seconds()
        assert table.schema["day"].kind == "datetime" and table["day"].values[-1] == expected

    def test_iso_text_may_end_with_the_hour(self):
        hours = [f"2013-01-{1 + i % 28:02}T{i % 24:02}" for i in range(60)]
        typed = np.array(hours, "datetime64[h]").astype("datetime64[us]")
        table = Table.of({"t": hours, "c": ["u", "v"] * 30}, rules="whole")
        assert table.schema["t"].kind == "datetime"
        np.testing.assert_array_equal(table["t"].values, typed.astype(np.int64) / 1e6)
        assert not is_iso(["2013-01-01T05Z"])  # which no database reads

    def test_words_for_missing_beside_numbers(self):
        rows = {"x": [str(i / 4) for i in range(40)] + ["unknown", "Not available", "??"] * 2}
        table = Table.of({**rows, "c": ["u", "v"] * 23}, rules="whole")
        assert table.schema["x"].kind == "numeric" and np.isnan(table["x"].values[40:]).all()
        codes = Table.of({"x": ["1.5", "-99", "2.5", "-9"] * 10}, rules="whole")
        assert codes["x"].values.min() == -99  # a number is one, whatever it stands for
        assert looks_missing("-99") and looks_missing(" Unknown ") and not looks_missing("none of")

    def test_a_gap_beside_a_few_digits_makes_them_no_numbers(self):
        rows = {"grade": ["9", "10", "11", "?"] * 10, "c": ["u", "v"] * 20}
        (found, _) = Table.of(rows, rules="whole").kinds()
        assert (found.kind, found.why) == ("nominal", "digits that are codes")

    def test_a_bad_cell_is_named(self):
        prices = ["$1.50", "$20", "$3.25", "n/a"] * 10
        model = Weave().fit({"price": prices, "c": ["u", "v"] * 20})
        said = r"'price': expected a number, got '3 apples'; mend it"
        with pytest.raises(TypeError, match=said):
            model.transform({"price": ["3 apples"], "c": ["u"]})
        declared = Weave(schema={"day": "datetime"})
        dated = declared.fit({"day": ["2024-01-01", "2024-01-09"] * 10, "c": ["u", "v"] * 10})
        with pytest.raises(ValueError, match=r"column 'day': expected a date or time such as"):
            dated.transform({"day": ["soon"], "c": ["u"]})

    def test_a_word_among_numbers_that_were_found_is_missing_and_named(self):
        model = Weave().fit({"price": ["$1.50", "$20", "$3.25", "n/a"] * 10, "c": ["u", "v"] * 20})
        with pytest.warns(
            UserWarning, match=r"'price': expected numbers, got 'call us' \(1 cell\)"
        ):
            new = model.transform({"price": ["call us"], "c": ["u"]})
        np.testing.assert_array_equal(new, model.transform({"price": ["n/a"], "c": ["u"]}))

    def test_declared_numbers_may_be_text(self):
        table = Table.of({"x": ["1.200,50 €", "3 €", "n/a"]}, {"x": "numeric"})
        np.testing.assert_array_equal(table["x"].values, [1200.5, 3, np.nan])


class TestZones:
    berlin = pd.Series(pd.date_range("2024-03-25", periods=N, freq="5h", tz="Europe/Berlin"))

    def seconds(self, cells, schema=None):
        return Table.of({"t": cells}, schema, rules="whole")["t"].values

    def test_the_clock_on_the_wall_counts(self):
        walls = self.berlin.dt.tz_localize(None)
        expected = self.seconds(walls)
        for cells in (self.berlin, self.berlin.astype(str), list(self.berlin.dt.to_pydatetime())):
            np.testing.assert_array_equal(self.seconds(cells), expected)

    def test_another_zone_is_moved_to_that_of_fit(self):
        table = Table.of({"t": self.berlin}, rules="whole")
        utc = self.berlin.dt.tz_convert("UTC")
        schema = table.schema
        for cells in (
            utc,
            pl.Series(utc.to_list()),
            pa.array(utc),
            utc.astype(str),
            self.berlin.dt.tz_localize(None),
        ):
            np.testing.assert_array_equal(self.seconds(cells, schema), table["t"].values)

    def test_a_zone_where_fit_had_none_is_refused(self):
        plain = Table.of({"t": self.berlin.dt.tz_localize(None)}, rules="whole")
        with pytest.raises(ValueError, match=r"column 't': expected datetimes without a time zone"):
            Table.of({"t": self.berlin}, plain.schema)
        with pytest.raises(ValueError, match="all have a time zone, or none; got both"):
            Table.of({"t": ["2024-01-01T00:00", "2024-01-01T00:00Z"]}, {"t": "datetime"})


class TestEverySource:
    @pytest.fixture
    def frame(self):
        rng = np.random.default_rng(1)
        when = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 10**8, N), unit="s")
        return pd.DataFrame(
            {
                "row": np.arange(N),
                "when": pd.Series(when).where(np.arange(N) % 7 > 0),
                "carrier": rng.choice(["UA", "AA", "DL"], N),
                "fare": [f"${x:,.2f}" for x in rng.lognormal(6, 1, N)],
                "load": [f"{x}%" for x in rng.integers(40, 99, N)],
                "country": "US",
            }
        )

    def test_one_answer(self, frame, tmp_path):
        model = Weave().fit(frame)
        assert list(model.kinds().dropped) == ["row", "country"]
        csv, parquet = tmp_path / "x.csv", tmp_path / "x.parquet"
        frame.to_csv(csv, index=False)
        frame.to_parquet(parquet)
        expected = model.transform(frame)
        relation = duckdb.sql("SELECT * FROM frame")
        polars, arrow = pl.from_pandas(frame), pa.Table.from_pandas(frame)
        lists = {name: frame[name].astype(object).tolist() for name in frame}
        sources = [polars, arrow, polars.lazy(), relation, csv, parquet, lists, frame.to_numpy()]
        for source in sources:
            other = Weave().fit(source)
            np.testing.assert_allclose(other.transform(source), expected, atol=1e-12)
            if other.schema_.named:
                np.testing.assert_allclose(model.transform(source), expected, atol=1e-12)

    @pytest.mark.parametrize("sampled", [1 << 19, 40])
    def test_sorted_files_in_batches_are_read_as_in_memory(
        self, frame, tmp_path, monkeypatch, sampled
    ):
        """Kinds and bins were those of the first batch: of a sorted file, its first months."""
        frame = frame.sort_values("when").assign(
            row=range(N), note=["x"] * 50 + ["y"] * 10, one=1, late=0.5
        )
        frame["month"] = np.arange(N) // 5
        frame.loc[frame.index[-1], "late"] = 1.5
        for module in ("columns.table", "engines.counting"):
            monkeypatch.setattr(f"tabweave.{module}.MAX_SAMPLED_ROWS", sampled)
        monkeypatch.setattr("tabweave.engines.source.BATCH_ROWS", 7)
        frame.to_csv(tmp_path / "x.csv", index=False)
        frame.to_parquet(tmp_path / "x.parquet", index=False)
        reader = pa.Table.from_pandas(frame, preserve_index=False).to_reader(11)
        sources = [tmp_path / "x.csv", tmp_path / "x.parquet", pl.from_pandas(frame).lazy()]
        whole = Weave().fit(frame)
        assert list(whole.kinds().dropped) == ["row", "country", "one"]
        for source in sources if sampled < N else [*sources, reader]:
            found = Weave().fit(source)
            assert found.counts_ == whole.counts_
            assert found.kinds().dropped == whole.kinds().dropped
            assert list(found.schema_.given) == list(frame)
            np.testing.assert_array_equal(found.transform(frame), whole.transform(frame))

    def test_saved_and_loaded(self, frame, tmp_path):
        model = Weave().fit(frame)
        model.save(tmp_path / "m.tw")
        again = load(tmp_path / "m.tw")
        assert again.kinds() == model.kinds() and repr(again) == repr(model)
        np.testing.assert_array_equal(again.transform(frame), model.transform(frame))
        model.counts_.save(tmp_path / "c.tw")
        assert Counts.load(tmp_path / "c.tw") == model.counts_

    def test_neighbours_and_classes(self, frame):
        index = SimilarityIndex().fit(frame)
        day = {"when": between("2021-06-01", "2021-12-31"), "fare": between("$100", "$5,000")}
        found = index.query(frame[:1], 5, where=day).ids[0]
        chosen = frame.loc[found]
        assert chosen["when"].between("2021-06-01", "2022-01-01").all() and len(found)
        assert index.query({"when": frame["when"][1].isoformat()}, 1).ids[0, 0] == 1
        y = np.where(frame["carrier"] == "UA", "yes", "no")
        model = WeaveClassifier().fit(frame, y)
        assert model.score(frame, y) > 0.9
        assert (model.predict(frame.drop(columns=["row", "country"])) == model.predict(frame)).all()

    def test_names_are_checked_as_ever(self, frame):
        model = Weave().fit(frame)
        with pytest.raises(ValueError, match="feature names"):
            model.transform(frame.rename(columns={"carrier": "airline"}))
        assert list(model.feature_names_in_) == list(frame)


RECORDS = [
    {
        "who": {"name": ["ann", "bob", "cy"][i % 3], "home": {"city": "ab"[i % 2], "n": i / 8}},
        "tags": ["x", "y"][: i % 3],
    }
    for i in range(30)
]


def test_fields_of_records_are_columns(tmp_path):
    model = Weave().fit(RECORDS)
    assert model.schema_.names == ["who.name", "who.home.city", "who.home.n", "tags"]
    expected = model.transform(RECORDS)
    arrow = pa.Table.from_pylist(RECORDS)
    pq.write_table(arrow, tmp_path / "x.parquet")
    (tmp_path / "x.jsonl").write_text("\n".join([*map(json.dumps, RECORDS), ""]))
    polars = pl.DataFrame(RECORDS)
    paths = [tmp_path / "x.parquet", tmp_path / "x.jsonl"]
    for source in (pd.DataFrame(RECORDS), polars, polars.lazy(), arrow, *paths):
        np.testing.assert_allclose(Weave().fit(source).transform(source), expected, atol=1e-12)
        np.testing.assert_allclose(model.transform(source), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("cells", "vectors"),
    [
        ([[i / 7, -i / 3] for i in range(40)], True),
        ([*([i / 7, -i / 3] for i in range(39)), None], True),
        ([np.array([i / 7, i]) for i in range(40)], True),
        ([[i, 100 + i] for i in range(40)], False),  # whole
        ([[i / 7] * (1 + i % 3) for i in range(40)], False),  # of different lengths
        ([[i // 9 / 7, -i // 9 / 3] for i in range(40)], False),  # repeat
        ([[f"v{i}", 0.5] for i in range(40)], False),
        ([[i / 7] for i in range(40)], False),
    ],
)
def test_vectors_are_no_sets(cells, vectors):
    """The numbers of [0.2, 0.7] are no elements that rows share: each counts by its position."""
    rows = {"x": cells, "g": ["u", "v"] * 20}
    dropped = {"x": "vectors, not sets: split them into columns of numbers"} if vectors else {}
    assert Table.of(rows).kinds().dropped == dropped
    assert Weave().fit(rows).kinds().dropped == dropped
    assert not Weave(schema={"x": "set"}).fit(rows).kinds().dropped
    assert not Table.of({"x": cells[:10]}).kinds().dropped


def test_a_model_says_what_is_compared_by_spelling():
    rows = {"name": [f"name {i % 150}" for i in range(300)], "g": ["u", "v", "w"] * 100}
    rows["said"] = [f"this is the line number {i % 140}" for i in range(300)]
    assert Weave().fit(rows).kinds() == Table.of(rows).kinds()
    assert [k.why for k in Weave().fit(rows).kinds()] == [
        "many strings: spelling counts", "values", "sentences: compared by spelling"
    ]  # fmt: skip


def test_declared_schemas_are_not_asked():
    rows = {"id": [f"F{i}" for i in range(30)], "day": ["2024-01-01", "2024-01-02"] * 15}
    declared = {"id": "nominal", "day": "nominal"}
    assert Table.of(rows, declared, rules="whole").schema.names == ["id", "day"]
    assert Table.of(rows).schema["day"].kind == "nominal"  # types alone
    complete = Schema((Column("day"),), undeclared="ignored")
    assert Table.of(rows, complete, rules="whole")["day"].labels == ["2024-01-01", "2024-01-02"]


def test_kinds_are_printed_as_a_table():
    found = Kinds([Finding("a", "nominal", "digits that are codes"),
                   Finding("number", "numeric", "constant", False)])  # fmt: skip
    assert repr(found).splitlines() == [
        "column  kind     kept  why",
        "a       nominal  yes   digits that are codes",
        "number  numeric  no    constant",
    ]
    assert found.dropped == {"number": "constant"}


@pytest.mark.parametrize(("low", "high", "years"), [(1500, 2100, True), (1499, 2100, False),
                                                    (1500, 2101, False)])  # fmt: skip
def test_whole_numbers_that_may_be_years(low, high, years):
    values = np.array([low, high, *np.arange(1600, 1680)], float)
    found = decide_kind("n", Table.of({"n": values})["n"], len(values), "whole")
    assert (found is not None and found.why == "years, or numbers like them") == years


def test_codes_are_far_apart_and_equally_long():
    looks = _look_like_codes
    assert looks(np.array([200.0, 301, 404]), 30)
    assert not looks(np.array([200.0, 301, 404]), 29)
    assert not looks(np.array([99.0, 301, 404]), 30)
    assert not looks(np.array([200.0, 301]), 30)
    assert not looks(np.array([200.0, 205, 410]), 30)
    assert not looks(np.array([200.0, 301, 1404]), 30)
    assert looks(np.array([101.0, 105, 113]), 30) and not looks(np.array([101.0, 105, 112]), 30)


@pytest.mark.parametrize(("repeated", "kept"), [(5, False), (6, True)])
def test_numbers_named_ids_are_dropped_if_95_of_100_are_distinct(repeated, kept):
    cells = [10_000 * i + 7 for i in range(100 - repeated)] + [7] * repeated
    found = kind_of(cells, "user_id")
    assert (found.kind, found.kept) == ("nominal" if kept else "numeric", kept), found


def test_six_columns_are_named_and_the_others_counted():
    dropped = {f"c{i}": "constant" for i in range(7)}
    line = dropped_line(dropped)
    assert line.startswith("dropped: c0 (constant), ") and line.endswith(
        "c5 (constant), and 1 more"
    )
    del dropped["c6"]
    assert dropped_line(dropped).endswith("c5 (constant)")
    assert dropped_line({}) == ""


def why_of(cells, name="x", rules="whole", n_rows=None):
    """Return what the rules say of a column, if they say anything."""
    data = Table.of({name: cells})[name]
    found = decide_kind(name, data, n_rows or len(cells), rules)
    return None if found is None else found.why


IDENTIFIER = "an identifier: its values hardly repeat"


CODES = "whole numbers whose name says that they are codes"
MONTHS = "months as text, taken as their first day"
RANGES = "ranges in order"
BOTH_ZONES = "datetimes, some with a time zone and some without: give all of them one, or none"
TERMS = "months, or parts of a year? write 2024-01 to have them read as months"
TWINS = "values, of which 'Yes' and 'yes ' differ only in case or blanks"
STAMPS = "numbers; seconds since 1970? give datetimes to have hours and weekdays count"
MIXED_DATES = "dates written in several ways: write all as 2024-01-31 to have them read as dates"
NO_YEAR = "dates without a year: add it to have them read as datetimes"


def words_with(distinct, n):
    return [f"w{i % distinct}" for i in range(n)]


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (words_with(95, 100), IDENTIFIER),
        (words_with(94, 100), None),
        (words_with(19, 19) + [None] * 21, IDENTIFIER),  # 19 of at least 20
        (words_with(18, 18) + [None] * 22, None),
        (words_with(38, 40) + [None] * 5, IDENTIFIER),  # gaps are not counted
        (words_with(37, 40) + [None] * 5, None),
        ([f"two words{i}" for i in range(15)] + words_with(15, 15), None),
        ([f"two words{i}" for i in range(14)] + words_with(16, 16), IDENTIFIER),
        ([str(i) for i in range(20)] * 2, "digits that are codes"),
        ([str(i) for i in range(21)] * 2, "numbers written as text"),
        ([f"0{i}" for i in range(30)] * 2, "digits that are codes"),
        (["1,5", "2,25", "NA"] * 10, "numbers written as text"),
        (["5%", "7 %"] * 10, "percents written as text"),
        (["$5", "7 €"] * 10, "money written as text, $, € taken as one currency"),
        (["08:30", "23:59"] * 10, "times of day"),
        (["24:30", "23:59"] * 10, "durations written as text"),
        (["8:30", "23:59"] * 10, "times of day"),
        (["12 km", "7 km"] * 10, "numbers in km written as text"),
        (["12 km", "7 mi"] * 10, None),
        (["31/12/2020", "1/2/2020"] * 10, "dates as text, day first"),
        (["12/31/2020", "1/2/2020"] * 10, "dates as text, month first"),
        (["2020/1/2", "2020/2/1"] * 10, "dates as text, year first"),
        (["2020-01-02", "NA"] * 10, "ISO text"),
        (["2020-01", "2020-02", "NA"] * 10, "months as text, taken as their first day"),
        (["2020Q1", "2020Q4"] * 10, "quarters as text, taken as their first day"),
        (["2020-01-02", "2/1/2020", "NA"] * 10, MIXED_DATES),
        (["2020-01-02", "2020-01", "2/1"] * 10, None),
        (["2020-01-02"] * 20 + ["2020-01", "soon"], None),
        (["120/80", "95 / 60", "n/a"] * 10, "two numbers in a cell? split them into two columns"),
        (["1920x1080", "800×600"] * 10, "two numbers in a cell? split them into two columns"),
        (["120/80", "low"] * 10, None),
        (["Mar  5 10:11:12", "Apr 15 00:00:00"] * 10, NO_YEAR),
    ],
)
def test_what_text_is_at_the_bounds_of_the_rules(cells, why):
    assert why_of(cells) == why


DAYS = [20240125, *range(20240201, 20240210)]


@pytest.mark.parametrize("kind", [int, float, str])
@pytest.mark.parametrize(
    ("cells", "name", "format"),
    [
        (DAYS, "x", "ymd"),
        (DAYS[:9], "x", None),
        (DAYS[:1], "Due date", "ymd"),
        (DAYS, "code", None),
        (DAYS[:5], "date_key", "ymd"),
        ([*DAYS, 20240230], "x", None),
        ([*DAYS, 99991231], "date", None),
        ([202401, 202402], "month", "period"),
        ([202401, 202413], "month", None),
        ([*range(202401, 202413)], "x", None),
    ],
)
def test_digits_that_are_dates(kind, cells, name, format):
    cells = [*map(kind, cells), None, *map(kind, cells[::-1])]
    [column] = Table.of({name: cells}, rules="whole").schema.columns
    assert (column.format if column.kind == "datetime" else None) == format
    if format:
        assert column.why.endswith("first day" if format == "period" else "such as 20240125")
        declared = Table.of({name: cells}, {name: "nominal"}, rules="whole").schema.columns[0]
        assert declared.kind == "nominal"


def test_digits_are_numbers_again_if_one_that_was_not_looked_at_is_no_date(monkeypatch):
    monkeypatch.setattr("tabweave.columns.table.sampled_rows", lambda _: np.arange(20))
    for kind, stays in ((int, "numeric"), (str, "nominal")):
        cells = [*map(kind, DAYS * 2), kind(20240231)]
        judged = Table.of({"date": cells[:-1]}, rules="whole").schema["date"]
        said = "column 'date' holds dates, but for one"
        with pytest.warns(UserWarning, match=said) if kind is int else nullcontext():
            table = Table.of({"date": np.array(cells)}, rules="whole")
        assert judged.kind == "datetime"
        assert table.schema["date"].kind == stays == table.kinds()[0].kind
        asks = r"'date': expected a date, year first as in fit, got '20240231'; mend it, leave it"
        gone = r"'date': expected .*, got '20240231' \(1 cell\), read as missing"
        is_text = kind is str
        with (
            pytest.warns(UserWarning, match=gone)
            if is_text
            else pytest.raises(ValueError, match=asks)
        ):
            Table.of({"date": cells}, Schema((judged,), undeclared="ignored"))


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        ([20240131, None], "2024-01-31"),
        (["20240131", "-"], "2024-01-31"),
        ([202401.0, np.nan], "2024-01-01"),
        (["Q3 2024"], "2024-07-01"),
        (["31.1.2024"], "2024-01-31"),
        (["2024-01-31T05"], "2024-01-31 05:00:00"),
        ([1706659200], "2024-01-31"),
    ],
)
def test_what_is_declared_datetime_is_read_as_it_is_written(cells, first):
    data = Table.of({"x": cells}, {"x": "datetime"})["x"]
    assert data.text(data.values[0]) == first


def test_a_declared_order_of_days_and_months_in_doubt_is_asked_for():
    with pytest.raises(ValueError, match=r"'day': expected dates that show whether day or month"):
        Table.of({"day": ["1/2/2024", "2/3/2024"]}, {"day": "datetime"})


def test_dates_of_all_ways_are_the_same_from_every_door(tmp_path):
    days = pd.date_range("2023-11-05", periods=240, freq="3D")
    rows = pd.DataFrame(
        {
            "day": days.strftime("%Y%m%d").astype(int),
            "gap": days.strftime("%Y%m%d").astype("Int64").to_series(index=range(240)),
            "text": days.strftime("%Y%m%d").where(days.day > 3, "n/a"),
            "month": days.strftime("%Y-%m"),
            "quarter": [f"Q{day.quarter} {day.year}" for day in days],
            "mail": days.strftime("%a, %d %b %Y 08:00:00 GMT"),
        }
    )
    rows.loc[5, "gap"] = None
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_parquet(tmp_path / "rows.parquet")
    model = Weave().fit(rows)
    formats = ["ymd", "ymd", "ymd", "period", "period", "dmy"]
    assert [column.format for column in model.schema_.columns] == formats
    names = " ".join(model.get_feature_names_out())
    assert "day (weekday)" in names and "month (time of year)" in names
    assert "month (weekday)" not in names
    expected = model.transform(rows)
    doors = [tmp_path / "rows.csv", tmp_path / "rows.parquet", rows.to_dict("records")]
    for door in (*doors, pl.from_pandas(rows), pa.Table.from_pandas(rows)):
        np.testing.assert_allclose(Weave().fit(door).transform(rows), expected, atol=1e-9)
    parts = Weave().partial_fit(rows[:120]).partial_fit(rows[120:])
    assert parts.schema_ == model.schema_


def rising(last, n=30):
    return [*range(n - 1), last]


@pytest.mark.parametrize(
    ("cells", "name", "why"),
    [
        (rising(299), "x", "counts the rows"),  # a span below ten times the rows
        (rising(300), "x", None),
        (rising(299)[::-1], "x", None),
        (rising(299)[::-1], "index", "the index of pandas"),
        (rising(300)[::-1], "index", None),
        ([0.0, *rising(299)[1:], np.nan], "x", None),
        (range(MIN_ROWS_TO_INFER), "x", "counts the rows"),
        (range(MIN_ROWS_TO_INFER - 1), "x", None),
        ([*range(MIN_ROWS_TO_INFER - 1), np.nan], "x", None),
        ([7, 9] * 15, "x", "two whole numbers only"),
        ([7, 9, 11] * 15, "x", None),
        ([7.5, 9, 9] * 15, "x", None),
        ([7, 9, 11] * 15, "code", "whole numbers whose name says that they are codes"),
        ([1500, 2100, 1501] * 15, "code", "whole numbers whose name says that they are codes"),
        ([1500, 2100, 1501] * 15, "x", "years, or numbers like them"),
        ([5] * 30, "__index_level_0__", "the index of pandas"),
        ([5, 7, 8] * 10, "index", None),
        ([36.6, 38.1, -999] * 10, "x", "numbers; -999 for missing? leave such cells empty"),
        ([36.6, 38.1, 99.9] * 10, "x", "numbers; 99.9 for missing? leave such cells empty"),
        ([*range(20, 50), 99], "age", "numbers; 99 for missing? leave such cells empty"),
        ([*range(20, 61), 99], "age", None),
        ([0, 1, 2, -9] * 10, "x", "numbers; -9 for missing? leave such cells empty"),
        ([0, 1, 2, 9] * 10, "x", None),
        ([0.5, 0.5, -999] * 10, "x", None),
    ],
)
def test_what_numbers_are_at_the_bounds_of_the_rules(cells, name, why):
    assert why_of(np.asarray(cells), name) == why


@pytest.mark.parametrize(
    ("n_rows", "rules", "distinct", "why"),
    [
        (19, "whole", 19, None),
        (20, "whole", 20, IDENTIFIER),
        (199, "first", 199, None),
        (200, "first", 200, IDENTIFIER),
        (9_999, "first", 9_998, None),
        (10_000, "first", 9_999, IDENTIFIER),
        (200, "sample", 199, IDENTIFIER),
    ],
)
def test_how_many_rows_prove_an_identifier(n_rows, rules, distinct, why):
    assert why_of(words_with(distinct, n_rows), rules=rules) == why
    codes = [10**6 + 10_007 * (i % distinct) for i in range(n_rows)]
    name = None if why is None and n_rows in (19, 199) else "whole numbers whose name says"
    found = why_of(np.array(codes), "id", rules)
    assert found == why if why or name is None else found.startswith(name)


def test_labels_that_no_row_has_are_no_identifiers():
    cells = pd.Categorical(["a", "b"] * 20, [*"ab", *words_with(90, 90)])
    data = Table.of({"x": cells})["x"]
    assert len(data.labels) > 40 and decide_kind("x", data, 40, "whole") is None


def test_half_of_the_labels_may_have_blanks():
    assert is_one_word(["a b", "c", "d"]) and not is_one_word(["a b", "c"])
    assert is_one_word([" a", "c "])


COLUMNS = {
    "two": [0, 1] * 20,
    "two and a gap": [0, 1, None, 1] * 10,
    "three": [0, 1, 2, 1] * 10,
    "rise": range(40),
    "all but one": [*range(39), 38],
    "codes": [200, 301, 404, 301] * 10,
    "small codes": [20, 31, 44, 31] * 10,
    "user id": [20, 31, 44, 31] * 10,
    "halves": [0.5, 1, 2, 1] * 10,
    "late half": [1.0] * 39 + [0.5],
    "years": [1990, 1991, 2001, 1990] * 10,
    "nines": [*range(39), -999],
    "late nines": [*np.linspace(0.5, 9, 39), -999],
    "__index_level_0__": [1, 2, 2, 3] * 10,
    "words": ["u", "v", "w", "u"] * 10,
    "keys": [f"k{i}" for i in range(40)],
    "half keys": [f"k{i // 2}" for i in range(40)],
    "late keys": [f"k{max(i, 20)}" for i in range(40)],
    "more keys": [f"k{max(i, 21)}" for i in range(40)],
    "dates": ["2024-01-01", "2024-01-02", "NA", "?"] * 10,
    "months": ["Jan 5, 2020", "Feb 5, 2020"] * 20,
    "money": ["USD 5", "EUR 7.50"] * 20,
    "blanks": ["NA ", " ", "5.5", "7.5"] * 10,
    "gaps": ["NA", "5.5", "7.5", "none"] * 10,
    "digits": ["7", "x", "5", "7"] * 10,
    "clock": ["10:00", "11:30"] * 20,
    "lists": [["u", "v"], ["u"]] * 20,
    "sizes": [[7.5, 8], [8, 9.5]] * 20,
    "vectors": [[i + 0.5, i / 7] for i in range(40)],
    "same": ["a"] * 40,
    "nothing": [None] * 40,
}


@pytest.mark.parametrize("rules", ["whole", "sample", "first", "texts", "all"])
def test_what_is_not_asked_would_not_have_been_answered(rules, monkeypatch):
    """Most columns are told from a glance: with all rules asked of all of them it is the same."""
    found = Table.of(COLUMNS, rules=rules)
    monkeypatch.setattr("tabweave.columns.table._is_plain", lambda *_: False)
    asked = Table.of(COLUMNS, rules=rules)
    assert [(c.name, c.kind, c.question) for c in found.schema.columns] == [
        (c.name, c.kind, c.question) for c in asked.schema.columns
    ]
    assert [c.name for c in found.schema.dropped] == [c.name for c in asked.schema.dropped]
    if rules == "whole":
        dropped = ["rise", "__index_level_0__", "keys", "vectors", "same", "nothing"]
        assert [c.name for c in found.schema.dropped] == dropped


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1.5, "2.5", 3, "n/a"], "numeric"),
        ([1.5, "two", 3, "n/a"], "nominal"),
        ([*range(30), "n/a"], "numeric"),
        ([True, 2.5, "n/a"], "nominal"),
        ([*DAYS, "n/a"], "datetime"),
    ],
)
def test_numbers_among_text_are_what_they_would_be_as_text(cells, kind):
    [column] = Table.of({"x": cells * 10}, rules="whole").schema.columns
    [as_text] = Table.of({"x": [*map(str, cells)] * 10}, rules="whole").schema.columns
    assert column.kind == as_text.kind == kind


@pytest.mark.parametrize("gap", ["n/a", "-", "", None, float("nan"), pd.NA, pd.NaT])
@pytest.mark.parametrize(
    ("name", "numbers", "kind"),
    [
        ("x", [1, 2, 3, 4], "numeric"),  # numbers by their type, unlike a few digits in text
        ("x", [1.0, 2.0, 3.0, 4.0], "numeric"),
        ("x", [0, 1, 1, 0], "nominal"),
        ("zip", [10115, 20095, 80331, 10117], "nominal"),
        ("x", [Decimal("1.5"), Decimal("2"), Decimal("3"), Decimal("4")], "numeric"),
    ],
)
def test_numbers_stay_numbers_beside_every_gap(name, numbers, kind, gap):
    [column] = Table.of({name: [*numbers * 6, gap]}, rules="whole").schema.columns
    assert column.kind == kind and column.why != "values"


def test_words_among_numbers_are_named():
    cells = [*range(12)] * 5 + ["kg"]
    why = "numbers, except 'kg' (1 cell), read as missing"
    assert Table.of({"x": cells}).kinds()[0].why == why
    with pytest.warns(UserWarning, match=r"column '[xy]' holds numbers, except 'kg' \(1 cell\)"):
        found = Weave().fit({"x": cells, "y": cells}).kinds()[0]
    assert found[:3] == ("x", "numeric", why) and found.unreadable == (("kg", 1),)


def with_words(readable, n=400):
    """Return cells of a column, three of which hold words."""
    cells = [readable[i % len(readable)] for i in range(n)]
    for row, word in ((7, "TBD"), (111, "TBD"), (350, "ask Ann")):
        cells[row] = word
    return cells


@pytest.mark.parametrize(
    ("readable", "kind"),
    [
        ([f"2024-{m:02}-{d:02}" for m in (1, 2, 3) for d in range(1, 29)], "datetime"),
        ([f"{d}.{m}.2024" for m in (1, 2, 3) for d in range(1, 29)], "datetime"),
        (
            [f"2024-{m:02}" for m in range(1, 13)] + [f"2023-{m:02}" for m in range(1, 13)],
            "datetime",
        ),
        ([f"{i / 4}" for i in range(90)], "numeric"),
        ([f"{i} km" for i in range(90)], "numeric"),
        ([f"${i}.50" for i in range(90)], "numeric"),
        ([i / 4 for i in range(90)], "numeric"),
        ([7 * i for i in range(90)], "numeric"),
    ],
)
def test_a_few_words_make_no_categories_of_dates_or_numbers(readable, kind, tmp_path):
    """The other cells are what they would be had these been empty, however the rows arrive."""
    cells = with_words(readable)
    gone = [None if cell in ("TBD", "ask Ann") else cell for cell in cells]
    other = [f"{i % 3}" for i in range(400)]
    expected = Table.of({"x": gone, "c": other}, rules="whole")["x"].values
    frames = [{"x": cells, "c": other}, pl.DataFrame({"x": map(str, cells), "c": other})]
    pd.DataFrame({"x": cells, "c": other}).to_csv(tmp_path / "x.csv", index=False)
    for rows in frames:
        with pytest.warns(
            UserWarning, match=r"column 'x' holds .*, except 'TBD' \(2 cells\), 'ask"
        ):
            table = Table.of(rows, rules="whole")
        assert table.schema["x"].kind == kind
        np.testing.assert_array_equal(table["x"].values, expected)
        assert table.kinds()[0].unreadable == (("TBD", 2), ("ask Ann", 1))
    query = f"SELECT * FROM '{tmp_path / 'x.csv'}'"
    for source in (tmp_path / "x.csv", query):
        with pytest.warns(
            UserWarning, match=r"column 'x' holds .*, except 'TBD' \(2 cells\), 'ask"
        ):
            model = Weave().fit(source)
        assert model.schema_["x"].kind == kind
        assert model.kinds()[0].unreadable == (("TBD", 2), ("ask Ann", 1))
    parts = Weave().partial_fit({"x": gone[:100], "c": other[:100]})
    with pytest.warns(
        UserWarning, match=r"column 'x': expected .*, got 'TBD' \(1 cell\), 'ask Ann'"
    ):
        parts.partial_fit({"x": cells[100:], "c": other[100:]})
    assert parts.schema_["x"].kind == kind


def test_digits_that_name_no_day_are_missing_where_the_name_says_dates(tmp_path):
    """A birthday 19551192 made numbers of all others."""
    days = [f"{1950 + i % 40}0{1 + i % 9}{10 + i % 18}" for i in range(90)]
    cells = [*days, "19551192", "19990230", "TBD"]
    rows = {"birth_date": cells, "c": [f"{i % 3}" for i in range(93)]}
    pd.DataFrame(rows).to_csv(tmp_path / "x.csv", index=False)
    said = r"'birth_date' holds dates as text, .*, except '19551192' \(1 cell\), '19990230'"
    for source in (rows, tmp_path / "x.csv"):
        with pytest.warns(UserWarning, match=said):
            model = Weave().fit(source)
        assert model.schema_["birth_date"].kind == "datetime"
        listed = model.kinds()[0].unreadable
        assert listed == (("19551192", 1), ("19990230", 1), ("TBD", 1))
    with pytest.warns(
        UserWarning, match=r"expected .*, got '19990231' \(1 cell\), read as missing"
    ):
        model.transform({"birth_date": ["19990231", "19990228"], "c": ["0", "1"]})
    assert Table.of({"number": cells[:92]}, rules="whole").schema["number"].kind == "numeric"
    many = [*days, *(f"19550{i}31" for i in (2, 4, 6, 9)), *(f"1955{i}01" for i in range(13, 60))]
    assert Table.of({"birth_date": many}, rules="whole").schema["birth_date"].kind != "datetime"


def test_whole_numbers_named_as_dates_are_numbers_with_a_word_if_one_names_no_day():
    days = [int(f"{1950 + i % 40}0{1 + i % 9}{10 + i % 18}") for i in range(90)]
    said = "'birth_date' holds dates, but for one: .* got '19551192'; it is read as numbers"
    for cells in ([*days, 19551192], [*map(float, days), 19551192.0, None]):
        with pytest.warns(UserWarning, match=said):
            table = Table.of({"birth_date": cells}, rules="whole")
        assert table.schema["birth_date"].kind == "numeric"
    assert kind_of([*days, 19551192]).why == "numbers"  # no name says that they are dates


def test_many_words_or_codes_are_no_exceptions():
    numbers = [f"{i / 4}" for i in range(90)]
    for cells in (
        [*numbers, *["free"] * 30],  # a quarter of the cells
        [*numbers, *(f"free {'abcdefghijklmnopqrstuvwxyz'[i]}" for i in range(26))],
        [f"0{i}" for i in range(90)] + ["TBD"],  # codes
        [f"{d}.{m}.2024" for m in (1, 2) for d in range(1, 29)] + ["1.13.2024"],  # another order
    ):
        assert kind_of(cells).kind == "nominal"


def test_numbers_some_of_which_are_text_are_numbers():
    kinds = Table.of({"x": [*range(10), "12"] * 5}, rules="whole").kinds()
    assert kinds[0][1:3] == ("numeric", "numbers, some written as text")


def test_long_numbers_beside_words_do_not_meet_in_a_float():
    cells = [10**17 + 1, 10**17 + 2, "NA"] * 10
    table = Table.of({"x": cells}, rules="whole")
    assert table.schema["x"].kind == "nominal" and len(table["x"].labels) == 3
    huge = Table.of({"x": [10**400, 7, "NA"] * 10}, rules="whole")
    assert huge.schema["x"].kind == "nominal"


def test_bytes_that_hardly_repeat_are_an_identifier():
    rows = {"key": [bytes([i, 7]) for i in range(40)], "b": ["x", "y"] * 20}
    assert Table.of(rows).kinds().dropped == {"key": "an identifier: its values hardly repeat"}


def test_names_of_several_lines_take_one_line():
    rows = {"a\nb": ["x", "y"] * 20, "": [1.5, 2.5, 3.5, 4.5] * 10, "same\n": [1] * 40}
    kinds = Table.of(rows, rules="whole").kinds()
    assert [line.split("  ")[0] for line in repr(kinds).splitlines()[1:]] == [
        r"'a\nb'",
        "''",
        r"'same\n'",
    ]
    assert dropped_line(kinds.dropped) == r"dropped: 'same\n' (constant)"


def test_reasons_that_ask_the_user_are_told_from_those_that_do_not():
    days = [f"2024-03-{day:02}" for day in range(1, 29)]
    mixed = [day if i % 2 else "/".join(reversed(day.split("-"))) for i, day in enumerate(days)]
    rows = {
        "mixed": mixed * 2,
        "order": [f"{1 + i % 9}/{1 + i % 7}/2024" for i in range(56)],
        "money": [f"{'$€'[i % 2]}{i % 30}.50" for i in range(56)],
        "lists": [f"{i % 5};{i % 7}" for i in range(56)],
        "but": ["3 or so", *(str(i % 30) for i in range(55))],
        "zones": [f"{day}T10:00" + "Z" * (i % 2) for i, day in enumerate(days * 2)],
        "twins": ["Yes", "yes ", "no", "No"] * 14,
        "key": [f"k{i}" for i in range(56)],
        "spelt": [f"w{i % 50} v" for i in range(56)],
        "day": days * 2,
        "number": [0.5 + i % 11 for i in range(56)],
        "nines": [*(0.5 + i % 11 for i in range(55)), -999],
    }
    asked = dict.fromkeys(("mixed", "money", "zones", "nines"), "meaning")
    asked |= {"order": "order", "lists": "lists", "but": "exceptions", "twins": "spelling"}
    with pytest.warns(UserWarning, match="column 'but' holds numbers, except '3 or so'; it is"):
        whole, fitted = Table.of(rows, rules="whole").kinds(), Weave().fit(rows).kinds()
    for found in (Table.of(rows).kinds(), whole, fitted):
        assert {f.column: f.question for f in found if f.question} == asked
        assert {f.column: f.delimiter for f in found if f.delimiter} == {"lists": ";"}


def cycled(*cells, n=60):
    return [cells[i % len(cells)] for i in range(n)]


@pytest.mark.parametrize(
    ("cells", "name", "kind", "why", "kept"),
    [
        # names of rows, in any order and of any words
        ([7, 3, 500_000, *range(20, 77)], "rownames", "numeric", "names of rows", False),
        ([f"Mazda RX {i}" for i in range(60)], "row.names", "nominal", "names of rows", False),
        ([f"Mazda RX {i}" for i in range(60)], "Unnamed: 0", "nominal", "names of rows", False),
        ([f"{i}" for i in range(60)], "rownames", "nominal", "names of rows", False),
        (cycled("Mazda RX", "Fiat 500", "Audi 80"), "rownames", "nominal", "values", True),
        ([7, 3, 3, *range(20, 77)], "rownames", "numeric", "numbers", True),
        # things without an order, if the whole name says so
        (cycled(*range(1, 51)), "state", "nominal", CODES, True),
        (cycled(1, 2, 3), "Race", "nominal", CODES, True),
        (cycled(1, 2, 3), "subject", "nominal", CODES, True),
        (cycled(1, 2, 3), "state_income", "numeric", "numbers", True),
        (cycled(1, 2, 3), "mpg.city", "numeric", "numbers", True),
        (cycled(0, 1), "sex", "nominal", "two whole numbers only", True),
        (RNG.permutation(75_000)[:60], "district", "numeric", IDENTIFIER, False),
        (RNG.permutation(75_000)[:60], "docno", "numeric", IDENTIFIER, False),
        (RNG.permutation(75_000)[:60], "PID", "numeric", IDENTIFIER, False),
        # measurements, if the name says so
        (cycled(152, 174, 201, 258), "Time", "numeric", "numbers", True),
        (cycled(152, 174, 201, 258), "x", "nominal", "whole numbers that look like codes", True),
        (list(range(60)), "monthsSinceY2K", "numeric", "numbers", True),
        # periods and ranges as R writes them
        (cycled("2002 Jan", "2002 Feb", "2003 Mar"), "x", "datetime", MONTHS, True),
        (cycled("1960-64", "1965-69", "1970-74"), "x", "ordinal", "ranges in order", True),
        (cycled("15-24", "25-39", "40-"), "x", "ordinal", "ranges in order", True),
        (cycled("4 or less hours", "5 hours", "6 or more hours"), "x", "ordinal", RANGES, True),
    ],
)
def test_what_real_tables_hold(cells, name, kind, why, kept):
    assert kind_of(cells, name) == Finding(name, kind, why, kept)


WINTER = [f"2024-{month:02}-{day:02}" for month in (1, 2) for day in range(1, 29)]


@pytest.mark.parametrize(
    ("cells", "name", "why"),
    [
        ([*WINTER, "2024-02-30"], "x", "ISO text, except '2024-02-30' (1 cell), read as missing"),
        ([*WINTER, "0000-00-00"], "x", "ISO text, except '0000-00-00' (1 cell), read as missing"),
        ([f"{day}T10:00" + "Z" * (i % 2) for i, day in enumerate(WINTER)], "x", BOTH_ZONES),
        (
            [f"7/{i}/2016" for i in range(1, 32)] * 2 + ["6/31/2016"],
            "x",
            "dates as text, month first, except '6/31/2016' (1 cell), read as missing",
        ),
        (
            ["13:30", "9.12", *(f"{i}:05" for i in range(10, 24))] * 3,
            "x",
            "times of day, except '9.12'",
        ),
        (
            [f"{i}.5" for i in range(40)] * 2 + ["a", "b", "c"],
            "x",
            "numbers written as text, except 'a' (1 cell), 'b' (1 cell) and 1 more, "
            "read as missing",
        ),
        ([f"{i}5" for i in range(1, 41)] * 2 + ["a", "b", "c"], "subject", "values"),
        (["a", "b", "c"] * 20 + [f"{i}.5" for i in range(11)], "x", "values"),
        (cycled("8/29", "8/30", "9/1", "9/2"), "MidDate", NO_YEAR),
        (cycled("2000-1", "2000-2", "2001-1"), "x", TERMS),
        (cycled("2000-1", "2000-2", "2000-3"), "x", MONTHS),
        (cycled("Yes", "yes ", "no"), "x", TWINS),
        (cycled(1, "1", "b"), "x", "values, of which '1' and 1 differ only in type"),
        ([1_700_000_000 + 997 * i * i for i in range(60)][::-1], "created_at", STAMPS),
        ([1_700_000_000 + 997 * i * i for i in range(60)][::-1], "revenue", "numbers"),
        ([dt.timedelta(hours=1 + i % 2) for i in range(60)], "x", "durations"),
        (np.array([1, 2] * 30, "m8[h]"), "x", "durations"),
    ],
)
def test_what_is_said_of_columns_that_are_not_what_they_might_be(cells, name, why):
    rows = {"other": RNG.normal(size=len(cells)), name: cells}
    assert Table.of(rows).kinds()[1].why == why
    warned = (
        pytest.warns(UserWarning, match="column 'x' holds") if "except" in why else nullcontext()
    )
    with warned:
        assert Weave().fit(rows).kinds()[1].why == why


def test_a_date_that_does_not_exist_is_named_however_late_it_comes():
    days = pd.date_range("2001-01-01", periods=3000).strftime("%Y-%m-%d")
    with pytest.warns(UserWarning, match="column 'day' holds ISO text, except '2024-02-30'"):
        (found,) = Weave().fit({"day": [*days, "2024-02-30"]}).kinds()
    assert found.kind == "datetime" and found.unreadable == (("2024-02-30", 1),)


def test_two_durations_are_numbers_of_which_a_third_is_between():
    hours = [dt.timedelta(hours=1 + 2 * (i % 2)) for i in range(60)]
    asked = {"took": [dt.timedelta(hours=h) for h in (1, 1.2, 3)]}
    short, third, long = Weave().fit({"took": hours}).transform(asked)
    assert 2 * np.linalg.norm(short - third) < np.linalg.norm(third - long)


def test_if_all_would_be_dropped_the_column_to_keep_is_not_that_of_row_names():
    rows = {"rownames": range(30), "key": [f"k{i}" for i in range(30)]}
    with pytest.raises(ValueError, match=r"as in schema=\{'key': 'nominal'\}"):
        Weave().fit(rows)


def test_a_cell_that_is_no_time_of_day_is_named_and_not_one_that_is():
    model = Weave().fit({"at": cycled("8:30", "12:05", "23:59"), "x": cycled("a", "b")})
    for odd in ("25:10", "2024-01-01 08:30"):
        with pytest.raises(
            ValueError,
            match=f"column 'at': expected times of day, such as '8:30', got '{odd}'; mend it",
        ):
            model.transform({"at": ["8:30", "NA", odd], "x": ["a", "b", "a"]})
    day = Weave().fit({"at": WINTER, "x": cycled("a", "b", n=len(WINTER))})
    said = r"column 'at': expected a date .*, got 'in 3 days'; mend it, "
    with pytest.raises(ValueError, match=said):
        day.transform({"at": ["2024-01-01", "in 3 days"], "x": ["a", "b"]})
