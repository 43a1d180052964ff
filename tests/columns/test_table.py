"""Tables: what is read, as what, and how columns are matched."""

import datetime as dt
import json
import pickle
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tabweave import Column, Counts, OneHot, Schema, Table, Weave
from tabweave.columns.datetime import Datetimes
from tabweave.columns.decision import MIN_ROWS_TO_INFER
from tabweave.columns.nominal import Codes, check_codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets, check_offsets
from tabweave.columns.table import (
    UNREADABLE,
    as_values_or_numbers,
    canonical_codes,
    datetime_as_numeric,
    distinct_rows,
    drop_columns,
    row_keys,
    sampled_rows,
    take_rows,
)
from tabweave.columns.texts import CellError


def cells(column):
    """Return the cells of a column of single values, as labels."""
    return [column.labels[code] for code in column.codes]


def sets(column):
    edges = column.starts
    return [
        {column.labels[c] for c in column.codes[a:b]}
        for a, b in zip(edges[:-1], edges[1:], strict=True)  # noqa: RUF007
    ]


def kinds(X):
    return [column.kind for column in Table.of(X).schema.columns]


class TestKinds:
    @pytest.mark.parametrize(
        ("column", "kind"),
        [
            ([1, 2], "numeric"),
            ([1.5, None], "numeric"),
            ([Decimal("1.5"), None], "numeric"),
            ([True, False], "nominal"),
            ([True, 1], "nominal"),
            (["1", "2"], "nominal"),
            ([None, None], "nominal"),
            ([b"x"], "nominal"),
            ([dt.date(2020, 1, 1)], "numeric"),
            ([["a"], None], "set"),
            ([{"a"}, frozenset()], "set"),
            ([("a", "b")], "set"),
            ([np.array(["a"])], "set"),
            (np.array(["2020"], "M8[D]"), "numeric"),
            (np.array([1], "m8[s]"), "numeric"),
            (np.array([True]), "nominal"),
            (np.array(["a"]), "nominal"),
            (pd.Series([1, None], dtype="Int64"), "numeric"),
            (pd.Series(["a"], dtype="category"), "nominal"),
            (pd.Series(pd.Categorical(["a"], ordered=True)), "ordinal"),
            (pd.Series([1.0], dtype=pd.SparseDtype(float)), "numeric"),
            (pl.Series([1, None]), "numeric"),
            (pl.Series(["a"], dtype=pl.Categorical), "nominal"),
            (pl.Series(["a"], dtype=pl.Enum(["a"])), "ordinal"),
            (pl.Series([["a"]]), "set"),
            (pl.Series([dt.date(2020, 1, 1)]), "numeric"),
            (pa.array([["a"]]), "set"),
            (pa.array([Decimal("1.5")]), "numeric"),
            (pa.array(["a"]).dictionary_encode(), "nominal"),
        ],
        ids=lambda v: v if isinstance(v, str) else type(v).__name__,
    )
    def test_inferred(self, column, kind):
        assert kinds({"a": column}) == [kind]

    def test_declared(self):
        table = Table.of({"a": ["1", "x;y"], "b": [1, 2]}, {"b": "nominal"})
        assert [c.kind for c in table.schema.columns] == ["nominal", "nominal"]
        assert cells(table["b"]) == [1, 2]

    def test_undeclared_numbers_as_asked(self):
        table = Table.of({"a": [1, 2], "b": ["u", "v"]}, numbers="nominal")
        assert [c.kind for c in table.schema.columns] == ["nominal", "nominal"]

    def test_arrays_by_number(self):
        table = Table.of(np.array([[1, 2], [3, 4]]), {0: "nominal"})
        assert [(c.name, c.kind) for c in table.schema.columns] == [
            ("x0", "nominal"),
            ("x1", "numeric"),
        ]


class TestCells:
    def test_sets(self):
        schema = {"s": Column("s", "set", delimiter=";")}
        table = Table.of({"s": ["b; a", "a;a", "", None, ";", 3]}, schema)
        assert sets(table["s"]) == [{"a", "b"}, {"a"}, set(), {None}, set(), {"3"}]

    def test_set_of_lists(self):
        table = Table.of({"s": [["a", "a", 1], [], None, ("b",), {1.0, 2}]})
        assert sets(table["s"]) == [{"a", 1}, set(), {None}, {"b"}, {1, 2}]
        assert np.diff(table["s"].starts).tolist() == [2, 0, 1, 1, 2]

    def test_empty_is_missing(self):
        schema = Schema(
            {"a": "nominal", "s": Column("s", "set", delimiter=";"), "x": "numeric"},
            empty_is_missing=True,
        )
        table = Table.of(
            {"a": ["", None, "u"], "s": ["", "p;q", None], "x": ["", "2", None]}, schema
        )
        assert cells(table["a"]) == [None, None, "u"]
        assert sets(table["s"]) == [{None}, {"p", "q"}, {None}]
        np.testing.assert_array_equal(table["x"].values, [np.nan, 2.0, np.nan])
        assert cells(Table.of({"a": [""]})["a"]) == [""]

    def test_numbers(self):
        moment = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
        columns = {
            "int": [1, None],
            "text": ["1.5", None],
            "bool": [True, None],
            "decimal": [Decimal("0.5"), None],
            "moment": [moment, None],
            "day": [dt.date(2020, 1, 1), None],
            "time": [dt.time(0, 1), None],
            "span": [dt.timedelta(minutes=2), pd.NaT],
            "ns": np.array(["2020-01-01", "NaT"], "M8[ns]"),
            "pandas": pd.Series([moment, None]),
            "polars": pl.Series([moment, None]),
            "arrow": pa.array([dt.time(0, 1), None]),
            "huge": pl.Series([2**70, None], dtype=pl.Int128),
        }
        table = Table.of(columns, dict.fromkeys(columns, "numeric"))
        found = {name: table[name].values for name in columns}
        second = moment.timestamp()
        assert {k: v[0] for k, v in found.items()} == {
            **{"int": 1, "text": 1.5, "bool": 1, "decimal": 0.5, "moment": second, "day": second},
            **{"time": 60, "span": 120, "ns": second, "pandas": second, "polars": second},
            **{"arrow": 60, "huge": 2.0**70},
        }
        assert all(np.isnan(v[1]) for v in found.values())

    @pytest.mark.parametrize(
        "values",
        [
            np.array([2**60, 2**60 + 1, 5], np.uint64),
            np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], np.uint64),
            np.array([-(2**63), 2**63 - 1, 0], np.int64),
            np.array([-128, 127, 0], np.int8),
            [2**53 + 1, 2**53, 0.5],
            [2**63 + 1, 2**63, -1],
            [2**70, 2**70 + 1, 1],
            [-(2**53) - 1, -(2**53), 0.25],
        ],
        ids=lambda v: str(v[:2]),
    )
    def test_integers_never_meet(self, values):
        table = Table.of({"a": values}, {"a": "nominal"})
        assert cells(table["a"]) == [v if isinstance(v, float) else int(v) for v in values]

    def test_text_of_any_length(self):
        values = [f"value {i}" for i in range(70_000)]
        table = Table.of({"a": np.array(values)})
        assert table["a"].codes.dtype == np.uint32
        assert cells(table["a"]) == values


class TestMatching:
    SCHEMA = Table.of({"a": ["u"], "b": ["p"]}).schema

    def test_by_name_ignoring_others(self):
        table = Table.of({"b": ["q"], "more": [[]], "a": ["v"]}, self.SCHEMA)
        assert table.schema.names == ["a", "b"]
        assert cells(table["a"]) == ["v"]
        assert cells(table["b"]) == ["q"]

    def test_by_position_without_names(self):
        assert cells(Table.of([["v", "q"]], self.SCHEMA)["b"]) == ["q"]
        with pytest.raises(ValueError, match="3 features, but tabweave is expecting 2"):
            Table.of([["v", "q", "r"]], self.SCHEMA)

    def test_absent_column(self):
        with pytest.raises(
            ValueError, match=r"column 'b' is missing \(1 of 2 are\); the columns are 'a'"
        ):
            Table.of({"a": ["v"]}, self.SCHEMA)

    def test_kinds_hold(self):
        schema = Table.of({"a": ["u"], "n": [1]}).schema
        with pytest.raises(TypeError, match="column 'n': expected a number, got 'x'"):
            Table.of({"a": ["u"], "n": ["x"]}, schema)

    def test_a_table_stays_itself(self):
        table = Table.of({"a": ["u"], "s": [["p"]], "n": [1]})
        assert Table.of(table) is table
        assert Table.of(table, table.schema) is table
        assert Table.of(table, {"a": "ordinal"}) is table  # read alike
        for kind in ("set", "numeric"):
            with pytest.raises(ValueError, match=f"'a': expected {kind}, got nominal"):
                Table.of(table, {"a": kind})
        with pytest.raises(ValueError, match="column 'z' is missing"):
            Table.of(table, {"z": "nominal"})


class TestSchema:
    def test_select_and_read(self):
        schema = Table.of({"a": ["u"], "n": [1], "s": [["p"]]}).schema
        assert [c.name for c in schema.categorical] == ["a", "s"]
        assert [c.name for c in schema.numeric] == ["n"]
        assert schema.select(["s", "a"]).names == ["s", "a"]
        assert len(schema) == 3
        with pytest.raises(KeyError, match="no column 'z'; there are 'a', 'n', 's'"):
            schema["z"]
        assert repr(Table.of({"a": ["u"]})) == "Table(1 rows; a: nominal)"

    def test_of(self):
        assert Schema.of(None) == Schema()
        schema = Schema({"a": Column("other", "set", delimiter=",")})
        assert schema.columns == (Column("a", "set", delimiter=","),)
        assert Schema.of(schema) is schema
        assert Schema(schema.columns) == schema

    @pytest.mark.parametrize("rules", [None, "whole", "first"])
    def test_one_kind_for_all_columns(self, rules):
        rows = {"id": range(40), "same": ["x"] * 40, "day": ["2024-03-01", "2024-03-02"] * 20}
        table = Table.of(rows, "nominal", rules=rules)
        assert [c.kind for c in table.schema.columns] == ["nominal"] * 3
        assert {found.why for found in table.kinds()} == {"declared", "constant"}
        assert not table.kinds().dropped
        mixed = Table.of(rows, Schema({"id": "numeric"}, undeclared="nominal"), rules=rules)
        assert [c.kind for c in mixed.schema.columns] == ["numeric", "nominal", "nominal"]
        declared = dict.fromkeys(rows, "nominal")
        assert Table.of(rows, declared).schema == table.schema
        with pytest.raises(ValueError, match=r"expected one of .*nominal.* as the kind of all"):
            Table.of(rows, "categories")

    def test_levels_are_labels(self):
        column = Column("a", "ordinal", levels=[np.int8(1), 2.0, True])
        assert [*map(repr, column.levels)] == ["1", "2", "True"]


def test_float16_is_read_without_a_warning():
    table = Table.of(np.array([[1.5], [3], [np.nan]], np.float16), numbers="nominal")
    assert table["x0"].labels == [1.5, 3, None]
    whole = Table.of(np.array([[60000], [3]], np.float16), numbers="nominal")
    assert whole["x0"].labels == [3, 60000]


class TestShown:
    def test_datetimes_as_dates_times_or_both(self):
        def shown(cells):
            table = Table.of({"t": np.array(cells, "M8[s]")}, {"t": "datetime"})
            return [table["t"].text(seconds) for seconds in table["t"].values]

        assert shown(["2020-01-02", "NaT", "2021-05-06"]) == ["2020-01-02", None, "2021-05-06"]
        both = shown(["2020-01-02T03:04:05", "2021-05-06"])
        assert both == ["2020-01-02 03:04:05", "2021-05-06 00:00:00"]

    def test_a_page_shows_six_rows_of_every_kind(self):
        columns = {
            "word": ["<b>", None] * 4,
            "number": [1.5, None] * 4,
            "day": np.array(["2020-01-02", "NaT"] * 4, "M8[s]"),
            "tags": [["p", "q"], []] * 4,
        }
        page = Table.of(columns, {"day": "datetime"})._repr_html_()
        assert page.count("<tr") == 1 + 1 + 6  # names, kinds, rows
        assert "8 rows, 4 columns" in page and "shown" not in page
        for cell in ("&lt;b&gt;", "1.5", "2020-01-02", "p, q"):
            assert page.count(f">{cell}<") == 3, cell
        assert page.count(">–<") == 3 * 3
        wide = Table.of({f"c{i}": ["a"] for i in range(21)})._repr_html_()
        assert "1 rows, 21 columns, 20 of them shown" in wide and "c19" in wide
        assert "c20" not in wide

    def test_a_schema_lists_kinds_and_levels(self):
        schema = Schema({"size": Column("size", "ordinal", levels=["S", "L"]), "n": "numeric"})
        page = schema._repr_html_()
        assert "2 columns" in page and ">S, L<" in page and ">numeric<" in page


class TestKindsSetAside:
    def test_constants_and_identifiers_stand_where_they_stood(self):
        n = 60
        columns = {"same": ["x"] * n, "group": list("abc") * (n // 3), "n": [1.5, 2.5] * (n // 2)}
        table = Table.of(columns, rules="whole")
        assert table.schema.names == ["group", "n"]
        assert [found.column for found in table.kinds()] == ["same", "group", "n"]
        assert table.kinds().dropped == {"same": "constant"}
        again = Table.of([list(row) for row in zip(*columns.values(), strict=True)], table.schema)
        np.testing.assert_array_equal(again["group"].codes, table["group"].codes)
        fewer = Table.of([[g, x] for g, x in zip(*list(columns.values())[1:], strict=True)],
                         table.schema)  # fmt: skip
        np.testing.assert_array_equal(fewer["n"].values, table["n"].values)

    def test_few_equal_rows_are_no_constant(self):
        assert Table.of({"a": ["x"] * 3, "b": list("uvw")}, rules="whole").schema.names == [
            "a",
            "b",
        ]

    @pytest.mark.parametrize(
        ("cells", "constant"),
        [
            ([1.0, 1.0], True),
            ([1.0, 2.0], False),
            ([np.nan, np.nan], True),
            ([1.0, np.nan], False),
            (["u", "u"], True),
            (["u", "v"], False),
            ([["p"], ["p"]], True),
            ([["p"], []], False),
            ([["p"], ["q"]], False),
            ([["p", "q"], ["q", "p"]], True),
            ([["p", "q"], ["p", "r"]], False),
            ([[], []], True),
        ],
    )
    def test_what_is_constant(self, cells, constant):
        assert Table.of({"a": cells})["a"].is_constant() is constant

    def test_all_columns_are_kept_where_all_are_asked_for(self):
        table = Table.of({"id": [f"u{i:04}" for i in range(80)], "b": list("xy") * 40}, rules="all")
        assert table.schema.names == ["id", "b"] and not table.schema.dropped

    def test_nothing_is_dropped_if_nothing_else_is_left(self):
        table = Table.of({"a": ["u", "v"], "b": ["x", "y"]})
        assert drop_columns(table, [], "odd") is table
        assert drop_columns(table, ["a", "b"], "odd") is table
        table = Table.of({"a": ["u"], "b": ["x"], "c": ["z"]})
        kept = drop_columns(drop_columns(table, ["b"], "odd"), ["a"], "odd")
        assert kept.schema.names == ["c"]
        assert [(c.name, c.why, c.position) for c in kept.schema.dropped] == [
            ("a", "odd", 0),
            ("b", "odd", 1),
        ]


class TestRowsOfTables:
    TABLE = Table.of({"a": ["u", "v", "u"], "n": [2.0, np.nan, 1.0], "s": [["q", "p"], [], ["p"]]})

    def test_ranks_follow_the_order_of_values(self):
        ranks = [codes.tolist() for codes in canonical_codes(self.TABLE)]
        assert ranks == [[0, 1, 0], [1, 2, 0], [2, 0, 1]]

    def test_rows_are_taken(self):
        some = take_rows(self.TABLE, np.array([2, 0, 0]))
        assert some.n_rows == 3
        assert cells(some["a"]) == ["u", "u", "u"]
        assert some["n"].values.tolist() == [1, 2, 2]
        assert sets(some["s"]) == [{"p"}, {"p", "q"}, {"p", "q"}]

    def test_columns_are_joined(self):
        more = Table.of({"a": ["w", "u"], "n": [5.0, 6.0], "s": [["r"], ["q", "r"]]})
        joined = {c.name: old.joined(more[c.name]) for c, old in self.TABLE}
        assert cells(joined["a"]) == ["u", "v", "u", "w", "u"]
        np.testing.assert_array_equal(joined["n"].values, [2, np.nan, 1, 5, 6])
        assert sets(joined["s"]) == [{"p", "q"}, set(), {"p"}, {"r"}, {"q", "r"}]

    @pytest.mark.parametrize("n_columns", [1, 3, 9])
    def test_distinct_rows_however_wide(self, n_columns):
        """Nine columns of 200 values have more rows than an integer of 64 bits can number."""
        rng = np.random.default_rng(0)
        rows = rng.integers(0, 200, (50, n_columns))[rng.integers(0, 50, 300)]
        rows[0] = 199
        first, inverse = distinct_rows(list(rows.T))
        wanted, first_wanted, inverse_wanted = np.unique(
            rows, axis=0, return_index=True, return_inverse=True
        )
        assert first.tolist() == first_wanted.tolist() and len(wanted) == len(first)
        assert inverse.tolist() == inverse_wanted.ravel().tolist()
        assert [a.tolist() for a in distinct_rows([np.zeros(0, np.int64)])] == [[], []]

    def test_codes_of_a_file_are_checked(self):
        check_codes(np.array([0, 1], np.uint8), 2)
        check_codes(np.zeros(0, np.uint8), 0)
        with pytest.raises(
            ValueError, match=r"expected a column of whole codes, got \(2,\) float64"
        ):
            check_codes(np.array([0.0, 1.0]), 2)
        with pytest.raises(ValueError, match="expected codes of 2 labels, got -1 to 1"):
            check_codes(np.array([-1, 1]), 2)
        with pytest.raises(ValueError, match="expected a column of whole codes"):
            check_codes(np.zeros((1, 1), np.uint8), 2)
        with pytest.raises(ValueError, match="expected codes of"):
            check_codes(np.array([0, 2], np.uint8), 2)


def test_levels_that_are_no_labels_name_their_column():
    odd = pd.Series(pd.Categorical([1j], categories=[1j], ordered=True))
    with pytest.raises(TypeError, match="column 'a': "):
        Table.of({"a": odd})


def test_declared_categories_are_not_judged():
    """Digits are taken for numbers or codes by rules, unless the frame says what they are."""
    digits = pd.Series([str(i % 40) for i in range(200)])
    frame = pd.DataFrame({"a": digits.astype("category"), "g": list("uv") * 100})
    assert Table.of(frame, rules="whole").schema["a"].why == "categories"
    frame["a"] = digits
    assert Table.of(frame, rules="whole").schema["a"].why != "categories"


class TestGuards:
    def test_levels_are_taken_from_the_column_only_if_none_are_declared(self):
        cells = pd.Series(pd.Categorical(["b", "a"], categories=["b", "a"], ordered=True))
        assert Table.of({"x": cells}).schema["x"].levels == ("b", "a")
        declared = Table.of({"x": cells}, {"x": Column("x", "ordinal", levels=["a", "b"])})
        assert declared.schema["x"].levels == ("a", "b")
        assert Table.of({"x": cells}, {"x": "ordinal"}).schema["x"].levels == ("b", "a")

    @pytest.mark.parametrize(
        ("cells", "row"),
        [(["u", None], 1), ([1.5, 2.5, np.nan], 2), ([["p", "q"], ["p", None]], 1)],
    )
    def test_gaps_are_refused_if_the_schema_says_so(self, cells, row):
        strict = Schema({}, missing="error")
        with pytest.raises(ValueError, match=f"column 'a': row {row} is missing; fill it"):
            Table.of({"a": cells}, strict)
        assert Table.of({"a": cells[:1]}, strict).n_rows == 1
        assert Table.of({"a": cells}).n_rows == len(cells)

    def test_offsets_of_a_file_are_checked(self):
        check_offsets(np.array([0]), 0)
        check_offsets(np.array([0, 2, 2, 5]), 5)
        for odd in ([], [1, 5], [0, 4], [0, 3, 2, 5], [0.0, 5.0], [[0, 5]]):
            with pytest.raises(ValueError, match="expected offsets that rise from 0 to 5"):
                check_offsets(np.array(odd), 5)

    def test_keys_of_rows_are_those_of_their_numbers(self):
        """The mixing function of SplitMix64, whose first outputs from seed 0 are published."""
        keys = row_keys(0, 1000)
        assert [hex(key) for key in keys[:3]] == [
            "0xe220a8397b1dcdaf",
            "0x6e789e6aa1b965f4",
            "0x6c45d188009454f",
        ]
        np.testing.assert_array_equal(row_keys(400, 1000), keys[400:])
        assert len(np.unique(keys)) == 1000

    def test_very_many_rows_are_sampled(self, monkeypatch):
        monkeypatch.setattr("tabweave.columns.table.MAX_SAMPLED_ROWS", 10)
        assert sampled_rows(10) is None
        some = sampled_rows(50)
        assert len(some) == 10 and (np.diff(some) > 0).all()
        keys = row_keys(0, 50)
        assert keys[some].max() < np.delete(keys, some).min()


@pytest.mark.parametrize(
    ("n", "constant"), [(MIN_ROWS_TO_INFER - 1, False), (MIN_ROWS_TO_INFER, True)]
)
def test_enough_equal_rows_are_a_constant(n, constant):
    columns = {"a": ["x"] * n, "b": [str(i % 3) for i in range(n)]}
    assert (Table.of(columns).kinds()[0].why == "constant") == constant
    assert (Table.of(columns, rules="whole").schema.names == ["b"]) == constant


class TestEdges:
    def test_a_day_has_24_hours(self):
        """What lies within the first day of 1970 is a time of day, and no more."""
        day = Datetimes(np.array([0.0, 86_400.0]))
        assert [day.text(v) for v in day.values] == ["1970-01-01", "1970-01-02"]
        clock = Datetimes(np.array([0.0, 86_399.0, np.nan]))
        assert [clock.text(v) for v in clock.values] == ["00:00", "23:59:59", None]
        before = Datetimes(np.array([-1.0, 5.0]))
        assert before.text(-1.0) == "1969-12-31 23:59:59"

    def test_moments_are_rounded_to_what_all_of_a_column_are(self):
        hour = 3600.0
        for step in (24 * hour, hour, 60.0, 1.0):
            own = Datetimes(np.array([1e6 * hour * 24, 1e6 * hour * 24 + 7 * step, np.nan]))
            found = own.nearest(np.array([1e6 * hour * 24 + 2.4 * step]))
            np.testing.assert_array_equal(found, [1e6 * hour * 24 + 2 * step])
        odd = Datetimes(np.array([0.5, 1e9]))
        np.testing.assert_array_equal(odd.nearest(np.array([2.4])), [2.4])
        empty = Datetimes(np.array([np.nan]))
        np.testing.assert_array_equal(empty.nearest(np.array([2.4])), [2.4])

    def test_one_row_is_constant(self):
        assert Codes(np.array([1], np.uint8), ["a", "b"]).is_constant()
        assert not Codes(np.array([1, 0], np.uint8), ["a", "b"]).is_constant()
        assert not Codes(np.zeros(0, np.uint8), ["a"]).is_constant()
        assert not Numbers(np.zeros(0)).is_constant()
        assert not Sets(np.zeros(1, np.int64), np.zeros(0, np.uint8), []).is_constant()

    def test_equal_sets_are_constant_in_whatever_order_their_codes_are(self):
        codes = np.array([0, 1, 1, 0], np.uint8)
        assert Sets(np.array([0, 2, 4]), codes, ["a", "b"]).is_constant()

    def test_what_rules_were_asked_of_stays_judged(self):
        """Dates of which one does not exist are text, and no rule is asked again."""
        cells = ["2024-02-28", "2024-02-29"] * 600 + ["2023-02-29"]
        x = np.random.default_rng(0).normal(size=len(cells))
        table = Table.of({"t": cells, "x": x}, rules="whole")
        assert table.schema["t"].kind == "nominal" and table.schema["t"].inferred
        gone = drop_columns(table, ["x"], "too long")
        assert [(c.name, c.why, c.inferred, c.position) for c in gone.schema.dropped] == [
            ("x", "too long", True, 1)
        ]

    def test_the_first_rows_of_a_stream_must_not_repeat_an_identifier(self):
        cells = [f"k{i}" for i in range(199)] + ["k0"]
        x = np.random.default_rng(1).normal(size=200)
        rows = {"k": cells, "x": x}
        assert Table.of(rows, rules="first").schema.names == ["k", "x"]
        assert Table.of(rows, rules="whole").schema.names == ["x"]
        alone = {"k": [f"k{i}" for i in range(200)], "x": x}
        assert Table.of(alone, rules="first").schema.names == ["x"]
        many = {"k": [f"k{i}" for i in range(9_999)] + ["k0"], "x": np.arange(1e4) ** 0.5}
        assert Table.of(many, rules="first").schema.names == ["x"]  # as good as all


def test_what_a_table_says_of_itself():
    rows = {f"c{i}": ["u"] for i in range(9)}
    assert repr(Table.of(rows)).endswith("c7: nominal, ...)")
    rows.pop("c8")
    assert repr(Table.of(rows)).endswith("c7: nominal)")


def test_rules_are_asked_once_of_a_column():
    n = 40
    rows = {
        "day": [f"2024-03-{1 + i % 28:02}" for i in range(n)],
        "key": [f"k{i}" for i in range(n)],
        "word": ["a", "b"] * (n // 2),
        "same": ["x"] * n,
    }
    schema = Table.of(
        {**rows, "said": ["1", "2"] * (n // 2)}, {"said": "nominal"}, rules="whole"
    ).schema
    assert {c.name: c.inferred for c in schema.columns} == {
        "day": True,
        "word": True,
        "said": False,
    }
    assert [(c.name, c.inferred, c.position) for c in schema.dropped] == [
        ("key", True, 1), ("same", True, 3)
    ]  # fmt: skip


def test_what_to_do_about_a_cell_depends_on_the_kind_of_its_column():
    odd = object()
    with pytest.raises(
        TypeError, match=r"column 'a': expected a category, got .*; turn it into text"
    ):
        Table.of({"a": ["u", odd]}, {"a": "nominal"})
    with pytest.raises(TypeError, match=r"turn it into text or a number$"):
        Table.of({"a": ["u", 1j]})
    with pytest.raises(TypeError, match=r"or a number, or declare the column as kind 'set'$"):
        Table.of({"a": ["u", ["v"]]}, {"a": "nominal"})
    with pytest.raises(TypeError, match=r"got {'k': 1} of type dict as an element; turn such"):
        Table.of({"a": [[{"k": 1}]]})
    for kind, cells in (("numeric", [1.5, odd]), ("ordinal", ["u", odd]), ("set", [["u"], [odd]])):
        with pytest.raises(TypeError, match="column 'a': ") as told:
            Table.of({"a": cells}, {"a": kind})
        assert "declare the column as kind 'set'" not in str(told.value)
    with pytest.raises(TypeError, match="expected a number, got 'x'; mend it, leave it empty, or"):
        Table.of({"a": ["1.5", "x"]}, {"a": "numeric"})
    with pytest.raises(TypeError, match="expected a number, got 'n/a; x'; mend it, leave it empty"):
        Table.of({"a": ["1.5", "n/a; x"]}, {"a": "numeric"})
    with pytest.raises(TypeError, match=r"turn it into text or a number$"):
        Table.of({"a": ["u", odd]}, {"a": "ordinal"})
    with pytest.raises(TypeError, match="expected a set, got ") as told:
        Table.of({"a": [["u"], 3]}, {"a": "set"})
    assert "mend it" not in str(told.value)


def test_what_to_do_about_a_cell_is_not_said_of_what_is_no_cell():
    for cells, column, asks in (
        (["3/4/2024"], "datetime", r"format='dmy'\)$"),
        (["2024-01-31T10:00Z"], Column("t", "datetime", format="Mars/Base"), "got 'Mars/Base'$"),
        ([dt.time(8)], Column("t", "datetime", format="UTC"), "add their dates, or fit again$"),
    ):
        with pytest.raises(ValueError, match=asks):
            Table.of({"t": cells}, {"t": column})


def test_an_error_of_a_cell_holds_it_also_beyond_a_process():
    with pytest.raises(CellError) as told:
        Table.of({"a": ["1.5", "x"]}, {"a": "numeric"})
    again = pickle.loads(pickle.dumps(told.value))
    assert (again.column, again.cell) == ("a", "x") and str(again) == str(told.value)


@pytest.mark.parametrize("cells", [Numbers(np.zeros(3)), Codes(np.zeros(2, np.uint8), ["x"])])
def test_columns_from_a_file_fit_their_kind_and_the_rows(cells):
    table = Table.of({"a": ["x", "y"], "b": [1.0, 2.0]})
    table._check_loaded()
    with pytest.raises(ValueError, match="column 'b': expected 2 numeric cells, got"):
        replace(table, columns=(table["a"], cells))._check_loaded()


def test_grades_alone_become_categories():
    kinds = {"g": Column("g", "ordinal", levels=("s", "m")), "x": "numeric", "t": "datetime"}
    table = Table.of({"g": ["m", "s"], "x": [1.0, 2.0], "t": np.array([3, 4], "M8[s]")}, kinds)
    found = as_values_or_numbers(table)
    assert [(c.kind, c.levels) for c in found.schema.columns] == [
        ("nominal", None), ("numeric", None), ("datetime", None)
    ]  # fmt: skip
    assert found.columns == table.columns


def test_datetimes_alone_become_numbers():
    kinds = {"g": Column("g", "ordinal", levels=("s", "m")), "t": "datetime"}
    found = datetime_as_numeric(Table.of({"g": ["m", "s"], "t": np.array([3, 4], "M8[s]")}, kinds))
    assert [c.kind for c in found.schema.columns] == ["ordinal", "numeric"]
    assert type(found["t"]) is Numbers and found["t"].values.tolist() == [3.0, 4.0]
    found._check_loaded()


def test_rows_with_an_element_that_passes():
    sets = Table.of({"tags": [[], ["a", "b"], None, ["b"], []]}, {"tags": "set"})["tags"]
    passing = np.array([sets.labels[code] == "a" for code in sets.codes])
    assert sets.any_element(passing).tolist() == [False, True, False, False, False]


def test_words_that_are_declared_ordinal_want_an_order():
    words = {"size": ["low", "mid", "high"] * 10}
    with pytest.warns(UserWarning, match=r"column 'size' is .*: 'high' < 'low' < 'mid'; declare"):
        Table.of(words, {"size": "ordinal"})
    with pytest.warns(UserWarning, match=r"'1' < '10' < '2' < '3' < \.\.\."):
        Table.of({"n": ["1", "2", "3", "4", "5", "10"]}, {"n": "ordinal"})
    for cells in (list("ABC"), [1, 2, 10], ["no", "yes"], pd.Categorical(["lo", "hi", "mid"])):
        if isinstance(cells, pd.Categorical):
            cells = cells.as_ordered()
        Table.of({"size": cells}, {"size": "ordinal"})


class TestOptionalKeys:
    """Records are a table in which a key that a record lacks is a missing cell."""

    rows = ({"a": "x", "b": "u", "n": 1.5}, {"a": "y"}, {"a": "x", "b": "v", "n": 2.5})

    @pytest.mark.parametrize("size", [1, 2, 3, 5])
    def test_chunks_are_the_whole(self, size):
        records = [*self.rows, *self.rows[::-1], {"a": "y"}]
        whole = Table.of(records)
        parts = [records[i : i + size] for i in range(0, len(records), size)]
        counts = sum((Counts.of(Table.of(part, whole.schema)) for part in parts), Counts())
        assert counts == Counts.of(whole)
        model = OneHot(schema={"n": "nominal"}).fit(records)
        vectors = np.vstack([model.transform(part) for part in parts])
        np.testing.assert_array_equal(vectors, model.transform(records))

    def test_fields_of_records_are_optional(self):
        records = [{"a": "x", "r": {"p": "1", "q": "z"}}, {"a": "y", "r": {"p": "2"}}, {"a": "x"}]
        schema = Table.of(records).schema
        for record in records:
            alone, whole = Table.of([record], schema), Table.of(records, schema)
            row = records.index(record)
            for name in schema.names:
                assert alone[name].cell(0) == whole[name].cell(row)

    def test_what_has_no_known_key_is_refused(self):
        schema = Table.of(list(self.rows)).schema
        with pytest.raises(ValueError, match="column 'a' is missing"):
            Table.of([{"z": 1}], schema)
        with pytest.raises(ValueError, match="column 'b' is missing"):  # a frame has all columns
            Table.of(pd.DataFrame({"a": ["x"]}), schema)

    def test_a_key_that_comes_late_is_refused_unless_declared(self):
        first, later = [{"a": "x"}, {"a": "y"}], [{"a": "x", "b": "u"}]
        with pytest.raises(ValueError, match=r"column 'b' is new: .* schema=\{'b': 'nominal'\}"):
            OneHot().partial_fit(first).partial_fit(later)
        counts = OneHot(schema={"b": "nominal"}).partial_fit(first).partial_fit(later).counts_
        assert counts == Counts.of([*later, *first])


UNREADABLE_CELLS = {
    "records": [[{"a": 1}], [{"a": 2}, {"b": 3}]] * 15,
    "nested": [[[0.5, 1.0], [2.5, 3.0]], [[1.5, 2.0]]] * 15,
    "objects": [object() for _ in range(30)],
    "some records": [{"a": 1}, "text"] * 15,
    "empty records": [{}, {}] * 15,
}


@pytest.mark.parametrize("name", UNREADABLE_CELLS)
def test_a_column_that_cannot_be_read_is_dropped_with_a_word(name):
    color = ["red", "blue", "green"] * 10
    rows = {"color": color, name: UNREADABLE_CELLS[name], "size": ["S", "L"] * 15}
    with pytest.warns(UserWarning, match=f"column '{name}': expected .*; the column is dropped"):
        table = Table.of(rows, rules="whole")
    assert table.schema.names == ["color", "size"] and table.schema.given == list(rows)
    assert table.kinds().dropped == {name: UNREADABLE}
    assert Table.of(rows, table.schema).schema == table.schema  # without another word
    with pytest.warns(UserWarning, match="the column is dropped"):
        model = Weave().fit(rows)
    alone = {"color": color, "size": rows["size"]}
    np.testing.assert_array_equal(model.transform(rows), Weave().fit(alone).transform(alone))
    with pytest.raises(TypeError, match=f"'{name}': expected"):
        Table.of({**rows}, {name: "nominal"}, rules="whole")
    with pytest.raises(TypeError, match=f"'{name}': expected"):
        Table.of({name: rows[name]}, rules="whole")


def test_geometry_of_geojson_keeps_what_can_be_read(tmp_path):
    point = {"type": "Point", "coordinates": [1.0, 2.5]}
    area = {"type": "Polygon", "coordinates": [[[0.0, 1.0], [2.0, 3.5]]]}
    rows = [{"name": "ab"[i % 2], "geometry": (point, area)[i % 2]} for i in range(30)]
    (tmp_path / "x.json").write_text(json.dumps(rows))
    for source in (rows, pd.DataFrame(rows), tmp_path / "x.json"):
        with pytest.warns(UserWarning, match=r"column 'geometry.coordinates': expected"):
            model = Weave().fit(source)
        assert model.schema_.names == ["name", "geometry.type"]


@pytest.mark.parametrize(
    ("dates", "shown"),
    [
        (pa.array([10**15, 10**6], pa.int64()).cast(pa.timestamp("s")), "124789-11-06"),
        (pa.array([10**7, 3], pa.int32()).cast(pa.date32()), "29349-01-26"),
    ],
)
def test_dates_beyond_pythons_name_their_column(dates, shown):
    with pytest.raises(ValueError, match=f"column 'd': expected dates .*, got {shown}.*; mend it"):
        Table.of(pa.table({"d": dates}), {"d": "nominal"})


class TestMissingWords:
    rows = pd.DataFrame(
        {"a": ["x", "NA", "y", "", None, "-", "n/a", "x"] * 5, "b": list("uvuv") * 10}
    )

    def test_those_of_pandas_are_what_pandas_reads_as_missing(self, tmp_path):
        self.rows.to_csv(tmp_path / "x.csv", index=False)
        read = pd.read_csv(tmp_path / "x.csv")
        table = Table.of(self.rows, Schema(missing_words="pandas"))
        assert cells(table["a"]) == [None if v != v else v for v in read["a"]]
        found = table.kinds()[0]
        assert (
            found.why == "values, except '' (5 cells), 'NA' (5 cells) and 1 more, read as missing"
        )
        assert dict(found.unreadable) == {"": 5, "NA": 5, "n/a": 5}
        again = Table.of({"a": ["n/a", "-"], "b": ["u", "u"]}, table.schema)
        assert cells(again["a"]) == [None, "-"]

    def test_all_words_of_pandas_are_known(self):
        parsers = pytest.importorskip("pandas._libs.parsers")
        assert set(Schema(missing_words="pandas").missing_words) == parsers.STR_NA_VALUES

    @pytest.mark.parametrize("tags", ["red;NA", ["red", "NA"], None])
    def test_they_are_no_elements_of_sets(self, tags):
        as_list = isinstance(tags, list)
        rows = [["blue"], ["NA"], ["n/a", "NA"], ["red", "blue"]] if as_list else []
        rows = rows or ["blue", "NA", "n/a;NA", "red;blue"]
        schema = {"tags": Column("tags", "set", delimiter=None if as_list else ";")}
        schema = Schema([*Schema.of(schema).columns], missing_words="pandas")
        table = Table.of({"tags": [*rows, tags, [] if as_list else ";"]}, schema)
        red = [None] if tags is None else ["red"]
        found = [table["tags"].cell(i) for i in range(6)]
        assert found == [["blue"], [None], [None], ["blue", "red"], red, []]
        words = dict(table.kinds()[0].unreadable)
        assert words == {"NA": 2 + (tags is not None), "n/a": 1}
        model = OneHot(schema=schema).fit(table)
        assert model.get_feature_names_out().tolist() == ["tags_blue", "tags_red"]

    def test_words_may_be_given(self):
        table = Table.of(self.rows, Schema(missing_words=["-", "x"]), rules="whole")
        assert set(table["a"].labels) == {"NA", "y", "", "n/a", None}
        assert dict(Weave(schema=table.schema).fit(self.rows).kinds()[0].unreadable) == {
            "x": 10,
            "-": 5,
        }
        with pytest.raises(ValueError, match="expected missing_words to be 'pandas' or a sequence"):
            Schema(missing_words="polars")


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_distinct_rows_are_the_same_for_any_number_of_threads(monkeypatch, n_threads):
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, width, 3000).astype(np.uint8) for width in (2, 5, 9)]
    wide = [rng.integers(0, 1 << 30, 3000) for _ in range(3)]  # more than fit in 62 bits
    monkeypatch.setattr("tabweave._compat.MIN_ROWS_FOR_THREADS", 40)
    monkeypatch.setattr("tabweave._compat.n_threads", lambda: n_threads)
    for columns in (codes, wide, [*codes, *wide], [np.zeros(0, np.uint8)]):
        first, number = distinct_rows(columns)
        _, first_row, number_of = np.unique(
            np.stack(columns), axis=1, return_index=True, return_inverse=True
        )
        np.testing.assert_array_equal(first, first_row)
        np.testing.assert_array_equal(number, number_of.ravel())
