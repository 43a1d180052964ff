"""Tables: what is read, as what, and how columns are matched."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tabweave import Column, Schema, Table


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
            ([dt.date(2020, 1, 1)], "nominal"),
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
            ValueError, match=r"column 'b' is missing \(1 of 2 are\); there are 'a'"
        ):
            Table.of({"a": ["v"]}, self.SCHEMA)

    def test_kinds_hold(self):
        schema = Table.of({"a": ["u"], "n": [1]}).schema
        with pytest.raises(TypeError, match="column 'n': 'x' is not a number"):
            Table.of({"a": ["u"], "n": ["x"]}, schema)

    def test_a_table_stays_itself(self):
        table = Table.of({"a": ["u"], "s": [["p"]], "n": [1]})
        assert Table.of(table) is table
        assert Table.of(table, table.schema) is table
        assert Table.of(table, {"a": "ordinal"}) is table  # read alike
        for kind in ("set", "numeric"):
            with pytest.raises(ValueError, match=f"'a' was read as nominal, not {kind}"):
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

    def test_levels_are_labels(self):
        column = Column("a", "ordinal", levels=[np.int8(1), 2.0, True])
        assert [*map(repr, column.levels)] == ["1", "2", "True"]


def test_float16_is_read_without_a_warning():
    table = Table.of(np.array([[1.5], [3], [np.nan]], np.float16), numbers="nominal")
    assert table["x0"].labels == [1.5, 3, None]
    whole = Table.of(np.array([[60000], [3]], np.float16), numbers="nominal")
    assert whole["x0"].labels == [3, 60000]
