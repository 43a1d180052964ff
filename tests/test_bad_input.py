"""Malformed tables: each gives a defined result, or a ValueError or TypeError that says where.

A case is what is passed in, and either the cells that must come out (``Cells``) or the error and
the words it must contain (``Refused``): the column and the value, where there is one.
"""

import array
import collections
import datetime as dt
import fractions
import pathlib
import types
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tabweave import Column, Counts, OneHot, Schema, SetTfidf, Table
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers
from tabweave.engines import is_source

NAN, INF = float("nan"), float("inf")
NOMINAL = {"a": "nominal"}
NUMERIC = {"a": "numeric"}
SET = {"a": "set"}


@dataclass
class Refused:
    kind: type
    words: tuple[str, ...]


@dataclass
class Cells:
    columns: dict[str, list]


def no(kind, *words):
    return Refused(kind, words)


def yes(**columns):
    return Cells(columns)


def content(table):
    """Return the cells of a table as Python values; missing numbers as None, sets sorted."""
    out = {}
    for column, data in table:
        if isinstance(data, Numbers):
            out[column.name] = [None if np.isnan(v) else float(v) for v in data.values]
        elif isinstance(data, Codes):
            out[column.name] = [data.labels[c] for c in data.codes]
        else:
            spans = [data.codes[a:b] for a, b in zip(data.starts, data.starts[1:], strict=False)]
            out[column.name] = [sorted((data.labels[c] for c in s), key=repr) for s in spans]
    return out


def check(action, expected):
    """Run, and hold what comes out against what must."""
    if isinstance(expected, Refused):
        with pytest.raises((ValueError, TypeError, FileNotFoundError)) as caught:
            action()
        assert isinstance(caught.value, expected.kind), repr(caught.value)
        for word in expected.words:
            assert word in str(caught.value)
    else:
        found = content(action())
        assert {k: [*map(repr, v)] for k, v in found.items()} == {
            k: [*map(repr, v)] for k, v in expected.columns.items()
        }


def cases(table):
    return [pytest.param(*case, id=name) for name, case in table.items()]


def objects(*cells):
    out = np.empty(len(cells), object)
    out[:] = cells
    return out


def column(*cells):
    return {"a": list(cells)}


# -- what is no table ----------------------------------------------------------------------

NO_TABLE = {
    "none": (None, no(TypeError, "None")),
    "integer": (3, no(ValueError, "0D")),
    "float": (1.5, no(ValueError, "0D")),
    "text": ("a,b", no(TypeError, "'a,b'", "file")),
    "bytes": (b"ab", no(TypeError, "b'ab'")),
    "path": (pathlib.Path("x.csv"), no(TypeError, "x.csv", "tabweave.count")),
    "generator": ((i for i in range(3)), no(TypeError, "generator")),
    "iterator": (iter([1]), no(TypeError, "expected a frame or a 2-D array")),
    "set": ({1, 2}, no(TypeError, "{1, 2}")),
    "function": (len, no(TypeError, "len")),
    "class": (int, no(TypeError, "int")),
    "object": (object(), no(TypeError, "expected a frame or a 2-D array")),
    "ellipsis": (..., no(TypeError, "Ellipsis")),
    "complex number": (1j, no(ValueError, "Complex")),
    "date": (dt.date(2020, 1, 1), no(TypeError, "2020")),
    "range": (range(3), no(ValueError, "1D")),
    "empty list": ([], no(ValueError, "1D")),
    "empty tuple": ((), no(ValueError, "1D")),
    "empty dict": ({}, no(ValueError, "0 feature")),
    "list of numbers": ([1, 2], no(ValueError, "1D")),
    "list of texts": (["ab", "cd"], no(ValueError, "1D")),
    "list of none": ([None, None], no(ValueError, "1D")),
    "list of sets": ([{1}, {2}], no(ValueError, "1D")),
    "list of empty rows": ([[], []], no(ValueError, "0 feature")),
    "list of empty dicts": ([{}, {}], no(ValueError, "0 feature")),
    "0-d array": (np.array(1), no(ValueError, "0D")),
    "1-d array": (np.arange(3), no(ValueError, "1D")),
    "3-d array": (np.zeros((2, 2, 2)), no(ValueError, "3D")),
    "1-d object array": (objects("a", "b"), no(ValueError, "1D")),
    "array without columns": (np.zeros((3, 0)), no(ValueError, "0 feature")),
    "void array": (np.zeros((2, 2), "V3"), no(TypeError, "V3")),
    "complex array": (np.array([[1j]]), no(ValueError, "Complex")),
    "0-d structured array": (np.zeros((), [("a", int)]), no(ValueError, "1D")),
    "2-d structured array": (np.zeros((2, 2), [("a", int)]), no(ValueError, "1D")),
    "sparse matrix": (sparse.csr_matrix(np.eye(2)), no(TypeError, "toarray")),
    "sparse array": (sparse.coo_array(np.eye(2)), no(TypeError, "toarray")),
    "sparse dok": (sparse.dok_array((2, 2)), no(TypeError, "toarray")),
    "pandas series": (pd.Series(["a"]), no(ValueError, "1D")),
    "pandas index": (pd.Index(["a"]), no(ValueError, "1D")),
    "polars series": (pl.Series(["a"]), no(ValueError, "1D")),
    "arrow array": (pa.array(["a"]), no(ValueError, "1D")),
    "polars lazy": (pl.LazyFrame({"a": [1]}), no(TypeError, "lazy", "collect")),
    "empty pandas": (pd.DataFrame(), no(ValueError, "0 feature")),
    "pandas rows without columns": (pd.DataFrame(index=[0, 1]), no(ValueError, "(2, 0)")),
    "empty polars": (pl.DataFrame(), no(ValueError, "0 feature")),
    "empty arrow": (pa.table({}), no(ValueError, "0 feature")),
}


@pytest.mark.parametrize(("X", "expected"), cases(NO_TABLE))
def test_what_is_no_table(X, expected):
    check(lambda: Table.of(X), expected)
    if not isinstance(X, collections.abc.Iterator) and not is_source(X):
        check(lambda: OneHot().fit(X), expected)


# -- shape and names -----------------------------------------------------------------------

MULTI = pd.DataFrame([["u", "v"]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]))
SHAPES = {
    "ragged rows": (
        [["u", "v"], ["w"]],
        no(ValueError, "row 1: expected 2 cells, as row 0 has, got 1"),
    ),
    "ragged tuples": (
        [("u",), ("v", "w")],
        no(ValueError, "row 1: expected 1 cells, as row 0 has, got 2"),
    ),
    "ragged arrays": ([np.array([1, 2]), np.array([1])], no(ValueError, "inhomogeneous")),
    "a row is text": ([["u", "v"], "xy"], no(TypeError, "row 1", "'xy'")),
    "a row is none": ([["u"], None], no(TypeError, "row 1", "None")),
    "a row is a dict": ([["u"], {"a": 1}], no(TypeError, "row 1", "{'a': 1}")),
    "a record is a list": ([{"a": 1}, ["u"]], no(TypeError, "row 1", "['u']")),
    "a record is none": ([{"a": 1}, None], no(TypeError, "row 1", "None")),
    "ragged columns": (
        {"a": [1, 2], "b": [1]},
        no(ValueError, "'b': expected 2 rows, as 'a' has, got 1"),
    ),
    "empty and full column": (
        {"a": [], "b": [1]},
        no(ValueError, "'b': expected 0 rows, as 'a' has, got 1"),
    ),
    "scalar column": ({"a": 1}, no(TypeError, "'a'", "got 1")),
    "text column": ({"a": "uvw"}, no(TypeError, "'a'", "'uvw'")),
    "bytes column": ({"a": b"uvw"}, no(TypeError, "'a'", "b'uvw'")),
    "none column": ({"a": None}, no(TypeError, "'a'", "None")),
    "generator column": ({"a": (i for i in "uv")}, no(TypeError, "'a'", "generator")),
    "set as column": ({"a": {"u", "v"}}, no(TypeError, "'a'", "sequence")),
    "dict as column": ({"a": {0: "u", 1: "v"}}, no(TypeError, "'a'", "{0: 'u', 1: 'v'}")),
    "dict keys as column": ({"a": {"u": 0}.keys()}, no(TypeError, "'a'", "u")),
    "frame as column": (
        {"a": pd.DataFrame({"u": [1]})},
        no(ValueError, "'a'", "one dimension, got 2"),
    ),
    "polars frame as column": (
        {"a": pl.DataFrame({"u": [1]})},
        no(ValueError, "'a'", "one dimension, got 2"),
    ),
    "arrow table as column": (
        {"a": pa.table({"u": [1]})},
        no(ValueError, "'a'", "one dimension, got 2"),
    ),
    "2-d column": ({"a": np.zeros((2, 2))}, no(ValueError, "'a'", "one dimension, got 2")),
    "0-d column": ({"a": np.array("u")}, no(ValueError, "'a'", "one dimension, got 0")),
    "pandas duplicates": (
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        no(ValueError, "got 'a' twice"),
    ),
    "arrow duplicates": (pa.table([[1], [2]], names=["a", "a"]), no(ValueError, "'a'")),
    "mixed names": (pd.DataFrame([[1, 2]], columns=["a", 1]), no(TypeError, "column 1 is int")),
    "mixed names in dict": ({"a": [1], None: [2]}, no(TypeError, "column None is NoneType")),
    "mixed names in records": ([{"a": 1}, {2: 1}], no(TypeError, "column 2 is int")),
    "subarray field": (
        np.zeros(2, [("a", int, (2,))]),
        no(ValueError, "'a'", "one dimension, got 2"),
    ),
    "integer names": (pd.DataFrame([["u", "v"]], columns=[7, 7]), yes(x0=["u"], x1=["v"])),
    "integer keys": ({3: ["u"], 1: ["v"]}, yes(x0=["u"], x1=["v"])),
    "none as name": ({None: ["u"]}, yes(x0=["u"])),
    "nan as name": (pd.DataFrame([["u"]], columns=[NAN]), yes(x0=["u"])),
    "tuples as names": (MULTI, yes(**{"a.b": ["u"], "a.c": ["v"]})),
    "empty text as name": ({"": ["u"]}, yes(**{"": ["u"]})),
    "records with gaps": ([{"a": "u"}, {"b": "v"}], yes(a=["u", None], b=[None, "v"])),
    "ordered dict": (collections.OrderedDict(b=["u"], a=["v"]), yes(b=["u"], a=["v"])),
    "mapping proxy": (types.MappingProxyType({"a": ["u"]}), yes(a=["u"])),
    "deque as column": ({"a": collections.deque(["u", "v"])}, yes(a=["u", "v"])),
    "python array as column": ({"a": array.array("i", [1, 2])}, yes(a=[1.0, 2.0])),
    "range as column": ({"a": range(2)}, yes(a=[0.0, 1.0])),
    "dict values as column": ({"a": {"k": "u"}.values()}, yes(a=["u"])),
    "index as column": ({"a": pd.Index(["u", "v"])}, yes(a=["u", "v"])),
    "categorical as column": ({"a": pd.Categorical(["u", None])}, yes(a=["u", None])),
    "extension array as column": ({"a": pd.array([1, None])}, yes(a=[1.0, None])),
    "structured array": (np.array([(1, "u")], [("n", int), ("a", "U1")]), yes(n=[1.0], a=["u"])),
    "record array": (np.rec.fromrecords([(1, "u")], names="n,a"), yes(n=[1.0], a=["u"])),
    "matrix": (np.array([["u", "v"]]).view(np.matrix), yes(x0=["u"], x1=["v"])),
    "list of arrays": ([np.array(["u", "v"])], yes(x0=["u"], x1=["v"])),
    "record batch": (pa.record_batch({"a": ["u"]}), yes(a=["u"])),
    "no rows, pandas": (pd.DataFrame({"a": pd.Series([], dtype=str)}), yes(a=[])),
    "no rows, polars": (pl.DataFrame({"a": []}, schema={"a": pl.String}), yes(a=[])),
    "no rows, arrow": (pa.table({"a": pa.array([], pa.string())}), yes(a=[])),
    "no chunks, arrow": (pa.table({"a": pa.chunked_array([], pa.string())}), yes(a=[])),
    "no rows, dict": ({"a": []}, yes(a=[])),
    "no rows, array": (np.zeros((0, 2)), yes(x0=[], x1=[])),
    "masked array": (np.ma.array([[1, 2]], mask=[[1, 0]]), yes(x0=[None], x1=[2.0])),
    "masked text": (np.ma.array([["u"], ["v"]], mask=[[0], [1]]), yes(x0=["u", None])),
    "masked dates": (
        np.ma.array(np.array([["1970-01-02"], ["2020-01-01"]], "M8[ns]"), mask=[[0], [1]]),
        yes(x0=[86400.0, None]),
    ),
    "masked column": ({"a": np.ma.array([1, 2], mask=[1, 0])}, yes(a=[None, 2.0])),
    "masked structured": (
        np.ma.array([(1, "u")], mask=[(1, 0)], dtype=[("n", int), ("a", "U1")]),
        yes(n=[None], a=["u"]),
    ),
    "array of sets": (np.array([[{1}, {2}]], dtype=object), yes(x0=[[1]], x1=[[2]])),
}


RECORDS = {
    "records": (column({"k": 1}, {"k": 2}), yes(**{"a.k": [1.0, 2.0]})),
    "missing records": (
        column(pd.NA, {"k": 1}, None, NAN, {}),
        yes(**{"a.k": [None, 1.0, None, None, None]}),
    ),
    "records in records": (column({"k": {"l": "u"}}), yes(**{"a.k.l": ["u"]})),
    "fields without text names": (
        column({1: "u"}, {None: "v"}),
        yes(**{"a.1": ["u", None], "a.None": [None, "v"]}),
    ),
    "two fields of one name": (column({1: "u", "1": "v"}), no(ValueError, "got 'a.1' twice")),
    "field of a column's name": (
        {"a": [{"k": 1}], "a.k": [2]},
        no(ValueError, "got 'a.k' twice"),
    ),
    "empty records": (column({}, None), no(TypeError, "'a'", "empty")),
    "empty records in records": (column({"k": {}, "l": 1}), no(TypeError, "'a.k'", "empty")),
    "text among records": (column({"k": 1}, "u"), no(TypeError, "'a'", "'u'", "row 1")),
    "list among records": (column(None, {"k": 1}, ["u"]), no(TypeError, "'a'", "['u']", "row 2")),
    "arrays": (column(np.array(["u", "v"]), None), yes(a=[["u", "v"], [None]])),
}


@pytest.mark.parametrize(("X", "expected"), cases(RECORDS))
def test_records_in_cells(X, expected):
    check(lambda: Table.of(X), expected)


@pytest.mark.parametrize(("X", "expected"), cases(SHAPES))
def test_shape_and_names(X, expected):
    check(lambda: Table.of(X), expected)


# -- cells, by kind ------------------------------------------------------------------------

ODD_CELLS = {
    "dict": {"k": 1},
    "complex": 1j,
    "object": object(),
    "fraction": fractions.Fraction(1, 3),
    "bytearray": bytearray(b"x"),
    "class": int,
    "function": len,
    "frame": pd.DataFrame({"k": [1]}),
    "list": ["k"],
    "tuple": ("k",),
    "set": {"k"},
    "array": np.array(["k"]),
    "structured": np.zeros(1, [("k", int)])[0],
}
CONTAINERS = {
    "dict": lambda cell: {"a": objects("u", cell)},
    "records": lambda cell: [{"a": "u"}, {"a": cell}],
    "pandas": lambda cell: pd.DataFrame({"a": objects("u", cell)}),
    "polars": lambda cell: pl.DataFrame({"a": pl.Series(["u", cell], dtype=pl.Object)}),
}


@pytest.mark.parametrize("kind", ["nominal", "ordinal", "numeric"])
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("cell", ODD_CELLS)
def test_a_cell_that_is_no_value(cell, container, kind):
    X = CONTAINERS[container](ODD_CELLS[cell])
    with pytest.raises(TypeError, match="column 'a'") as caught:
        Table.of(X, {"a": kind})
    odd = (0,) if cell == "structured" else ODD_CELLS[cell]
    shown = "'u'" if kind == "numeric" else repr(odd)
    assert shown in str(caught.value)


CELLS = {
    # nominal: everything with one canonical label is accepted
    "true, one and text one": (column(True, 1, 1.0, "1"), NOMINAL, yes(a=[True, 1, 1, "1"])),
    "every missing": (
        column(
            None, NAN, np.float32("nan"), pd.NA, pd.NaT, Decimal("NaN"), np.datetime64("NaT", "s")
        ),
        NOMINAL,
        yes(a=[None] * 7),
    ),
    "text that looks missing": (
        column("nan", "None", "", " "),
        NOMINAL,
        yes(a=["nan", "None", "", " "]),
    ),
    "minus zero": (column(-0.0, 0, 0.0), NOMINAL, yes(a=[0, 0, 0])),
    "minus zero array": ({"a": np.array([-0.0, 0.0])}, NOMINAL, yes(a=[0, 0])),
    "infinity as a category": (column(INF, -INF, 1), NOMINAL, yes(a=[INF, -INF, 1])),
    "huge integers": (
        column(2**64, 2**64 + 1, -(10**30)),
        NOMINAL,
        yes(a=[2**64, 2**64 + 1, -(10**30)]),
    ),
    "integers beside a float": (
        column(2**53 + 1, 2**53, 0.5),
        NOMINAL,
        yes(a=[2**53 + 1, 2**53, 0.5]),
    ),
    "unsigned integers": (
        {"a": np.array([2**60 + 1, 2**60], np.uint64)},
        NOMINAL,
        yes(a=[2**60 + 1, 2**60]),
    ),
    "long doubles": ({"a": np.array([1.5, 2], np.longdouble)}, NOMINAL, yes(a=[1.5, 2])),
    "decimals": (column(Decimal("1.0"), Decimal("2.5")), NOMINAL, yes(a=[1, 2.5])),
    "decimal too large": (column(Decimal("1E400")), NOMINAL, no(ValueError, "'a'", "1E+400")),
    "bytes and text": (column(b"u", "u"), NOMINAL, yes(a=[b"u", "u"])),
    "lone surrogate": (column("\ud800", "u"), NOMINAL, yes(a=["\ud800", "u"])),
    "null character": (column("u\0", "u"), NOMINAL, yes(a=["u\0", "u"])),
    "dates": (
        column(dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), None),
        NOMINAL,
        yes(a=["2020-01-01", "2020-01-01T00:00:00", None]),
    ),
    "nanoseconds": (
        {"a": np.array([0, 1], "M8[ns]")},
        NOMINAL,
        yes(a=["1970-01-01T00:00:00", "1970-01-01T00:00:00.000000001"]),
    ),
    "StringDType with missing": (
        {"a": np.array(["u", None], np.dtypes.StringDType(na_object=None))},
        NOMINAL,
        yes(a=["u", None]),
    ),
    "all missing": (column(None, None), None, yes(a=[None, None])),
    # numeric
    "text as number": (column("1.5", " 2 ", None), NUMERIC, yes(a=[1.5, 2.0, None])),
    "word as number": (column("1.5", "two"), NUMERIC, no(TypeError, "'a'", "'two'")),
    # Beside numbers in text, nothing, or a word such as NA, is a missing number.
    "empty text as number": (column("1.5", ""), NUMERIC, yes(a=[1.5, None])),
    "no number at all": (column("", "u"), NUMERIC, no(TypeError, "'a'", "''")),
    "money beside what is no value": (column("$1,200", 1j), NUMERIC, no(TypeError, "'a'", "1j")),
    "bytes as number": (column(b"x"), NUMERIC, no(TypeError, "'a'", "b'x'")),
    "text array as number": ({"a": np.array(["1", "x"])}, NUMERIC, no(TypeError, "'a'", "'x'")),
    "polars text as number": (pl.DataFrame({"a": ["x"]}), NUMERIC, no(TypeError, "'a'", "'x'")),
    "arrow text as number": (pa.table({"a": ["x"]}), NUMERIC, no(TypeError, "'a'", "'x'")),
    "category as number": (
        pd.DataFrame({"a": pd.Categorical(["x"])}),
        NUMERIC,
        no(TypeError, "'x'"),
    ),
    "infinite number": (column(1.0, INF), None, no(ValueError, "'a'", "row 1", "inf")),
    "infinite text": (column("-inf"), NUMERIC, no(ValueError, "'a'", "row 0", "-inf")),
    "infinite in pandas": (pd.DataFrame({"a": [INF]}), None, no(ValueError, "'a'", "inf")),
    "infinite in polars": (pl.DataFrame({"a": [-INF]}), None, no(ValueError, "'a'", "-inf")),
    "infinite in an array": (np.array([[1, -INF]]), None, no(ValueError, "'x1'", "-inf")),
    "integer beyond float64": (column(10**400, 1), None, no(ValueError, "'a'", "1000000")),
    "integer beyond int64": (column(2**70, 1), None, yes(a=[2.0**70, 1.0])),
    "wide polars integer": (
        pl.DataFrame({"a": pl.Series([2**70, None], dtype=pl.Int128)}),
        None,
        yes(a=[2.0**70, None]),
    ),
    "complex as number": ({"a": np.array([1j])}, NUMERIC, no(TypeError, "'a'", "1j")),
    "months as number": ({"a": np.array([1], "m8[M]")}, NUMERIC, no(TypeError, "'a'")),
    "truth as number": (column(True, False), NUMERIC, yes(a=[1.0, 0.0])),
    "NaN payloads": (
        {"a": np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(float)},
        None,
        yes(a=[None, None]),
    ),
    # sets
    "text in a set column": (column(["u"], "v"), SET, no(TypeError, "'a'", "'v'", "delimiter")),
    "number in a set column": (column(["u"], 3), SET, no(TypeError, "'a'", "3")),
    "dict in a set column": (column(["u"], {"k": 1}), SET, no(TypeError, "'a'", "{'k': 1}")),
    "nested lists": (column([["u"], "v"]), SET, no(TypeError, "'a'", "['u']")),
    "dict in a set": (column([{"k": 1}]), SET, no(TypeError, "'a'", "{'k': 1}")),
    "missing set and empty set": (column(None, [], [None]), SET, yes(a=[[None], [], [None]])),
    "repeated elements": (column(["u", "u", 1, True]), SET, yes(a=[["u", 1, True]])),
    "named tuple": (
        column(collections.namedtuple("P", "x y")(1, 2)),
        None,
        no(TypeError, "'a'", "P(x=1, y=2)"),
    ),
    "all sets empty": (column([], ()), None, yes(a=[[], []])),
    "equally long lists": (column([1, 2], [3, 4]), None, yes(a=[[1, 2], [3, 4]])),
    "bytes with delimiter": (
        column(b"u;v"),
        {"a": Column("a", "set", delimiter=";")},
        no(TypeError, "'a'", "b'u;v'"),
    ),
    "list with delimiter": (
        column(["u"]),
        {"a": Column("a", "set", delimiter=";")},
        no(TypeError, "'a'", "['u']"),
    ),
    "number with delimiter": (
        column(3, 1.5, None),
        {"a": Column("a", "set", delimiter=";")},
        yes(a=[["3"], ["1.5"], [None]]),
    ),
    # missing
    "missing refused": (column("u", None), Schema(missing="error"), no(ValueError, "'a'", "row 1")),
    "missing number refused": (
        column(1.5, NAN),
        Schema(missing="error"),
        no(ValueError, "'a'", "row 1"),
    ),
    "missing element refused": (
        column(["u", "v"], ["w", None]),
        Schema(missing="error"),
        no(ValueError, "'a'", "row 1"),
    ),
    "empty text refused": (
        column("u", ""),
        Schema(missing="error", empty_is_missing=True),
        no(ValueError, "'a'", "row 1"),
    ),
    "unused missing category": (
        pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0, 0]), ["u", None])}),
        Schema(missing="error"),
        yes(a=["u", "u"]),
    ),
    "empty element is missing once": (
        column(["", None, "u"]),
        Schema(SET, empty_is_missing=True),
        yes(a=[["u", None]]),
    ),
}


@pytest.mark.parametrize(("X", "schema", "expected"), cases(CELLS))
def test_cells(X, schema, expected):
    check(lambda: Table.of(X, schema), expected)


# -- types of other libraries --------------------------------------------------------------


def pandas(values, dtype):
    return pd.DataFrame({"a": pd.Series(values, dtype=dtype)})


def polars(values, dtype=None):
    return pl.DataFrame({"a": pl.Series(values, dtype=dtype)})


def arrow(values, dtype=None):
    return pa.table({"a": pa.array(values, dtype)})


STRUCT = pa.struct([("k", pa.int64())])
SECOND = dt.datetime(1970, 1, 1, 0, 0, 1)
TYPES = {
    "pandas sparse": (pandas([1, 0], pd.SparseDtype(int, 0)), None, yes(a=[1.0, 0.0])),
    "pandas sparse as category": (
        pandas([1.5, NAN], pd.SparseDtype(float)),
        NOMINAL,
        yes(a=[1.5, None]),
    ),
    "pandas nullable integer": (pandas([1, None], "Int64"), None, yes(a=[1.0, None])),
    "pandas nullable integer as category": (pandas([1, None], "Int64"), NOMINAL, yes(a=[1, None])),
    "pandas nullable truth": (pandas([True, None], "boolean"), None, yes(a=[True, None])),
    "pandas string": (pandas(["u", None], "string"), None, yes(a=["u", None])),
    "pandas complex": (pandas([1j], "complex128"), None, no(TypeError, "'a'", "1j")),
    "pandas period": (
        pd.DataFrame({"a": pd.period_range("2020", periods=2, freq="Y")}),
        None,
        yes(a=["2020", "2021"]),
    ),
    "pandas interval": (
        pd.DataFrame({"a": pd.interval_range(0, 2)}),
        None,
        yes(a=["(0, 1]", "(1, 2]"]),
    ),
    "pandas timedelta": (
        pd.DataFrame({"a": pd.to_timedelta([1, None], "s")}),
        None,
        yes(a=[1.0, None]),
    ),
    "pandas timedelta as category": (
        pd.DataFrame({"a": pd.to_timedelta([1, None], "s")}),
        NOMINAL,
        yes(a=["0:00:01", None]),
    ),
    "pandas datetime": (
        pd.DataFrame({"a": [pd.Timestamp(SECOND), pd.NaT]}),
        None,
        yes(a=[1.0, None]),
    ),
    "pandas datetime with zone": (
        pd.DataFrame({"a": pd.to_datetime([SECOND, None], utc=True)}),
        None,
        yes(a=[1.0, None]),
    ),
    "pandas object dates": (
        pd.DataFrame({"a": objects(dt.date(2020, 1, 1), None)}),
        None,
        yes(a=[1577836800.0, None]),  # as of a typed column of dates
    ),
    "pandas arrow struct": (
        pandas([{"k": 1}], pd.ArrowDtype(STRUCT)),
        None,
        yes(**{"a.k": [1.0]}),
    ),
    "pandas arrow list": (
        pandas([["u"], None], pd.ArrowDtype(pa.list_(pa.string()))),
        None,
        yes(a=[["u"], [None]]),
    ),
    "pandas arrow list as category": (
        pandas([["u"]], pd.ArrowDtype(pa.list_(pa.string()))),
        NOMINAL,
        no(TypeError, "'a'", "'u'"),
    ),
    "pandas arrow null": (pandas([None], pd.ArrowDtype(pa.null())), None, yes(a=[None])),
    "pandas arrow date": (pandas([SECOND.date()], pd.ArrowDtype(pa.date32())), None, yes(a=[0.0])),
    "polars struct": (polars([{"k": 1}]), None, yes(**{"a.k": [1.0]})),
    "polars struct without fields": (polars([{}], pl.Struct([])), None, no(TypeError, "'a'")),
    "polars nested list": (polars([[["u"]]]), None, no(TypeError, "'a'", "['u']")),
    "polars list as category": (polars([["u"]]), NOMINAL, no(TypeError, "'a'", "['u']")),
    "polars list as number": (polars([[1]]), NUMERIC, no(TypeError, "'a'")),
    "polars array": (polars([[1, 2]], pl.Array(pl.Int8, 2)), None, yes(a=[[1, 2]])),
    "polars object": (polars(["u", 1, None], pl.Object), None, yes(a=["u", 1, None])),
    "polars decimal": (polars([Decimal("1.5"), None]), None, yes(a=[1.5, None])),
    "polars decimal as category": (polars([Decimal("1.5"), None]), NOMINAL, yes(a=[1.5, None])),
    "polars binary": (polars([b"u", None]), None, yes(a=[b"u", None])),
    "polars null": (polars([None, None]), None, yes(a=[None, None])),
    "polars truth": (polars([True, None]), None, yes(a=[True, None])),
    "polars time": (polars([dt.time(0, 0, 1), None]), None, yes(a=[1.0, None])),
    "polars duration as category": (polars([dt.timedelta(seconds=1)]), NOMINAL, yes(a=["0:00:01"])),
    "polars NaN and null": (polars([1.5, NAN, None]), None, yes(a=[1.5, None, None])),
    "polars NaN and null as category": (
        polars([1.5, NAN, None]),
        NOMINAL,
        yes(a=[1.5, None, None]),
    ),
    "polars null categorical": (polars([None, None], pl.Categorical), None, yes(a=[None, None])),
    "arrow null": (arrow([None, None]), None, yes(a=[None, None])),
    "arrow struct": (arrow([{"k": 1}]), None, yes(**{"a.k": [1.0]})),
    "arrow struct without fields": (arrow([{}], pa.struct([])), None, no(TypeError, "'a'")),
    "arrow map": (
        arrow([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        None,
        no(TypeError, "'a'", "('k', 1)"),
    ),
    "arrow large list": (
        arrow([["u"], None], pa.large_list(pa.string())),
        None,
        yes(a=[["u"], [None]]),
    ),
    "arrow fixed list": (arrow([[1, 2]], pa.list_(pa.int8(), 2)), None, yes(a=[[1, 2]])),
    "arrow list view": (arrow([["u"]], pa.list_view(pa.string())), None, yes(a=[["u"]])),
    "arrow list as category": (arrow([["u"]]), NOMINAL, no(TypeError, "'a'", "['u']")),
    "arrow nested list": (arrow([[["u"]]]), None, no(TypeError, "'a'", "['u']")),
    "arrow decimal": (arrow([Decimal("1.5"), None]), None, yes(a=[1.5, None])),
    "arrow decimal as category": (arrow([Decimal("1.5"), None]), NOMINAL, yes(a=[1.5, None])),
    "arrow union": (
        pa.table(
            {
                "a": pa.UnionArray.from_sparse(
                    pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["u", "v"])]
                )
            }
        ),
        None,
        yes(a=[1, "v"]),
    ),
    "arrow run ends": (
        pa.table({"a": pa.RunEndEncodedArray.from_arrays([1, 3], ["u", "v"])}),
        None,
        yes(a=["u", "v", "v"]),
    ),
    "arrow binary": (arrow([b"u", None]), None, yes(a=[b"u", None])),
    "arrow time": (arrow([dt.time(0, 0, 1), None]), None, yes(a=[1.0, None])),
    "arrow nanoseconds of a day": (
        arrow([1], pa.time64("ns")),
        NOMINAL,
        no(ValueError, "'a'", "1"),
    ),
    "arrow month intervals": (
        arrow([(1, 2, 3)], pa.month_day_nano_interval()),
        None,
        no(TypeError, "'a'", "MonthDayNano"),
    ),
    "arrow half floats": (arrow(np.array([1.5], np.float16)), None, yes(a=[1.5])),
    "arrow dictionary of lists": (
        pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([["u"]]))}),
        None,
        no(TypeError, "'a'", "['u']"),
    ),
}
if hasattr(pa, "uuid"):  # pyarrow 18 and newer
    expected = yes(a=["00000000-0000-0000-0000-000000000000"])
    TYPES["arrow uuid"] = (arrow([b"\0" * 16], pa.uuid()), None, expected)


@pytest.mark.parametrize(("X", "schema", "expected"), cases(TYPES))
def test_types_of_other_libraries(X, schema, expected):
    check(lambda: Table.of(X, schema), expected)


# -- schemas -------------------------------------------------------------------------------

ROW = {"a": ["u"]}
SCHEMAS = {
    "unknown kind": (lambda: Schema({"a": "categorical"}), no(ValueError, "'a'", "'categorical'")),
    "kind none": (lambda: Schema({"a": None}), no(ValueError, "'a'", "None")),
    "kind list": (lambda: Schema({"a": ["nominal"]}), no(ValueError, "'a'", "['nominal']")),
    "kind class": (lambda: Schema({"a": str}), no(ValueError, "'a'")),
    "text schema": (lambda: Table.of(ROW, "category"), no(ValueError, "'category'")),
    "number schema": (lambda: Table.of(ROW, 5), no(TypeError, "5")),
    "names only": (lambda: Table.of(ROW, ["a"]), no(TypeError, "'a'", "kind")),
    "dict in a list": (lambda: Table.of(ROW, [{"a": "set"}]), no(TypeError, "{'a': 'set'}")),
    "absent column": (lambda: Table.of(ROW, {"b": "nominal"}), no(ValueError, "'b'", "'a'")),
    "absent number": (lambda: Table.of([["u"]], {3: "nominal"}), no(ValueError, "'x3'")),
    "twice": (lambda: Schema((Column("a"), Column("a"))), no(ValueError, "got 'a' twice")),
    "0 and x0": (lambda: Schema({0: "set", "x0": "set"}), no(ValueError, "got 'x0' twice")),
    "missing policy": (lambda: Schema(missing="drop"), no(ValueError, "'drop'")),
    "levels of nominal": (
        lambda: Column("a", "nominal", levels=("u",)),
        no(ValueError, "'a'", "ordinal"),
    ),
    "levels of numeric": (
        lambda: Column("a", "numeric", levels=(1,)),
        no(ValueError, "'a'", "ordinal"),
    ),
    "levels of set": (lambda: Column("a", "set", levels=("u",)), no(ValueError, "'a'", "ordinal")),
    "levels as text": (lambda: Column("a", "ordinal", levels="SML"), no(TypeError, "'a'", "'SML'")),
    "levels as a set": (lambda: Column("a", "ordinal", levels={"S"}), no(TypeError, "'a'", "'S'")),
    "levels as a number": (lambda: Column("a", "ordinal", levels=3), no(TypeError, "'a'", "3")),
    "level twice": (
        lambda: Column("a", "ordinal", levels=(1, 1.0)),
        no(ValueError, "'a'", "got 1 twice"),
    ),
    "level missing": (
        lambda: Column("a", "ordinal", levels=("S", None)),
        no(ValueError, "'a'", "missing"),
    ),
    "level list": (lambda: Column("a", "ordinal", levels=(["S"],)), no(TypeError, "'a'", "['S']")),
    "delimiter of nominal": (lambda: Column("a", delimiter=";"), no(ValueError, "'a'", "set")),
    "empty delimiter": (lambda: Column("a", "set", delimiter=""), no(ValueError, "'a'", "''")),
    "delimiter number": (lambda: Column("a", "set", delimiter=3), no(ValueError, "'a'", "3")),
    "set of texts": (lambda: Table.of(ROW, SET), no(TypeError, "'a'", "'u'")),
    "number of texts": (lambda: Table.of(ROW, NUMERIC), no(TypeError, "'a'", "'u'")),
    "category of lists": (
        lambda: Table.of({"a": [["u"]]}, NOMINAL),
        no(TypeError, "'a'", "['u']", "'set'"),
    ),
    "true is not one": (
        lambda: Table.of({"a": [True]}, {"a": Column("a", "ordinal", levels=(1,))}),
        yes(a=[True]),
    ),
}


@pytest.mark.parametrize(("action", "expected"), cases(SCHEMAS))
def test_schemas(action, expected):
    check(action, expected)


LEVELS = {"a": Column("a", "ordinal", levels=("S", "M", 3))}


@pytest.mark.parametrize("value", ["L", "s", "", 1, 3.5, True, b"S", "3"], ids=repr)
def test_values_outside_the_levels(value):
    with pytest.raises(ValueError, match=r"column 'a'.*expected one of \['S', 'M', 3\]") as caught:
        Counts.of(Table.of({"a": ["S", value]}, LEVELS))
    assert repr(value) in str(caught.value)


def test_missing_is_no_level_and_comes_last():
    table = Table.of({"a": [None, "M", 3.0, "S"]}, LEVELS)
    assert Counts.of(table).labels == (("S", "M", 3, None),)


# -- classes and weights -------------------------------------------------------------------

THREE = {"a": ["u", "v", "u"]}
CLASSES = {
    "too few": (["p", "q"], no(ValueError, "2", "3")),
    "too many": (["p"] * 4, no(ValueError, "4", "3")),
    "none at all": ([], no(ValueError, "0", "3")),
    "missing": (["p", None, "q"], no(ValueError, "row 1")),
    "NaN": ([1.0, 2.0, NAN], no(ValueError, "row 2")),
    "NA": (pd.Series([1, None, 2], dtype="Int64"), no(ValueError, "row 1")),
    "masked": (np.ma.array([1, 2, 3], mask=[0, 0, 1]), no(ValueError, "row 2")),
    "2-d": (np.zeros((3, 1)), no(ValueError, "y", "one dimension, got 2")),
    "frame": (pd.DataFrame({"y": [1, 2, 3]}), no(ValueError, "y", "one dimension, got 2")),
    "nested": ([["p"], ["q"], ["p"]], no(TypeError, "y", "['p']")),
    "tuples": ([("p", 1)] * 3, no(TypeError, "y", "('p', 1)")),
    "scalar": (1, no(TypeError, "y", "1")),
    "text": ("pqr", no(TypeError, "y", "'pqr'")),
    "generator": ((c for c in "pqr"), no(TypeError, "y", "generator")),
    "dict": ({0: "p", 1: "q", 2: "p"}, no(TypeError, "y")),
    "set": ({"p", "q", "r"}, no(TypeError, "y")),
    "objects": ([object()] * 3, no(TypeError, "y", "object")),
    "complex": ([1j, 2j, 3j], no(TypeError, "y", "1j")),
}


@pytest.mark.parametrize(("y", "expected"), cases(CLASSES))
def test_classes(y, expected):
    check(lambda: Counts.of(THREE, y), expected)


def test_classes_that_are_fine():
    assert Counts.of(THREE, [1, True, "1"]).classes == (True, 1, "1")
    assert Counts.of(THREE, pd.Categorical(["p", "q", "p"])).classes == ("p", "q")
    assert Counts.of(THREE, np.array([INF, 1, 2])).classes == (1, 2, INF)
    assert Counts.of(THREE, pd.Series(["p", "q", "p"], index=[9, 9, 9])).classes == ("p", "q")


WEIGHTS = {
    "NaN": ([1, NAN, 1], no(ValueError, "row 1", "nan")),
    "infinite": ([1, 1, INF], no(ValueError, "row 2", "inf")),
    "negative": ([-1, 1, 1], no(ValueError, "row 0", "-1")),
    "negative float": ([1, -1e-9, 1], no(ValueError, "row 1", "-1e-09")),
    "none": ([1, None, 1], no(ValueError, "row 1", "None")),
    "too few": ([1, 1], no(ValueError, "(2,)", "(3,)")),
    "too many": ([1] * 4, no(ValueError, "(4,)", "(3,)")),
    "2-d": ([[1], [1], [1]], no(ValueError, "(3, 1)")),
    "ragged": ([[1], 1, 1], no(ValueError)),
    "texts": (["1", "1", "1"], no(TypeError, "sample_weight")),
    "one text": ("abc", no(TypeError, "sample_weight")),
    "text among numbers": (objects(1, "x", 1), no(TypeError, "'x'")),
    "complex": ([1j, 1, 1], no(TypeError, "sample_weight")),
    "dates": (np.zeros(3, "M8[D]"), no(TypeError, "sample_weight")),
    "objects": (objects(object(), 1, 1), no(TypeError, "object")),
    "masked": (np.ma.array([1, 2, 3], mask=[0, 1, 0]), no(TypeError, "masked")),
    "dict": ({0: 1}, no((TypeError, ValueError))),
    "integers that overflow": ([2**62, 2**62, 2**62], no(ValueError, "adds up")),
    "unsigned that overflow": (np.array([2**64 - 1, 1, 1], np.uint64), no(ValueError, "adds up")),
    "floats that overflow": ([1e308, 1e308, 1], no(ValueError, "adds up")),
}


@pytest.mark.parametrize(("weight", "expected"), cases(WEIGHTS))
@pytest.mark.parametrize("rows", [THREE, {"a": [1.5, 2.5, None]}], ids=["nominal", "numeric"])
def test_weights(rows, weight, expected):
    check(lambda: Counts.of(rows, sample_weight=weight), expected)


@pytest.mark.parametrize(
    ("weight", "n"),
    [
        (2, 6),
        (0.5, 1.5),
        ([True, False, True], 2),
        (objects(1, 2.5, Decimal(1)), 4.5),
        (pd.Series([1, 2, 3], index=[5, 5, 5]), 6),
        (pl.Series([1, 2, 3]), 6),
        ([0, 0, 1], 1),
        (np.array([2**40, 1, 1]), 2**40 + 2),
    ],
    ids=str,
)
def test_weights_that_are_fine(weight, n):
    assert Counts.of(THREE, sample_weight=weight).n == n


# -- counts that do not go together --------------------------------------------------------

COUNTED = Counts.of({"a": ["u", "v"], "b": ["p", "q"]})
TOGETHER = {
    "other column": ({"a": ["u"], "c": ["p"]}, None, "'b'"),
    "fewer columns": ({"a": ["u"]}, None, "'b'"),
    "more columns": ({"a": ["u"], "b": ["p"], "c": ["r"]}, None, "'c'"),
    "other kind": ({"a": [["u"]], "b": ["p"]}, None, "'a' is nominal in one and set"),
    "numeric": ({"a": [1.5], "b": ["p"]}, None, "'a' is nominal in one and numeric"),
    "levels": (
        {"a": ["u"], "b": ["p"]},
        {"a": Column("a", "ordinal", levels=("u", "v"))},
        "'a' is nominal in one and ordinal",
    ),
}


@pytest.mark.parametrize(("rows", "schema", "word"), cases(TOGETHER))
@pytest.mark.parametrize("sign", ["+", "-"])
def test_counts_that_do_not_go_together(rows, schema, word, sign):
    other = Counts.of(Table.of(rows, schema))
    with pytest.raises(ValueError, match=word):
        COUNTED + other if sign == "+" else COUNTED - other


def test_counts_with_and_without_classes():
    with pytest.raises(ValueError, match="classes"):
        COUNTED + Counts.of({"a": ["u"], "b": ["p"]}, [1])


@pytest.mark.parametrize("other", [None, 0, "x", [], {}], ids=repr)
def test_counts_and_something_else(other):
    with pytest.raises(TypeError):
        COUNTED + other
    with pytest.raises(TypeError):
        COUNTED - other


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"a": ["w"], "b": ["p"]}, ("'a'", "'w'")),
        ({"a": ["u"], "b": [None]}, ("'b'", "None")),
        ({"a": ["u", "u"], "b": ["p", "p"]}, ("more rows",)),
        ({"a": ["u"], "b": ["q"]}, ("'u'", "'q'")),
    ],
    ids=["value", "missing", "rows", "pair"],
)
def test_more_than_was_counted(rows, words):
    with pytest.raises(ValueError, match="cannot subtract more rows") as caught:
        COUNTED - Counts.of(rows)
    assert all(word in str(caught.value) for word in words)


# -- estimators ----------------------------------------------------------------------------

FRAME = pd.DataFrame({"a": ["u", "v"], "b": ["p", "q"]})
FITTED = OneHot().fit(FRAME)
UNNAMED = OneHot().fit(FRAME.to_numpy())
STRICT = OneHot(unknown="error").fit(FRAME)
ESTIMATOR = {
    "before fit": (lambda: OneHot().transform(FRAME), no(ValueError, "not fitted")),
    "no rows": (lambda: OneHot().fit(FRAME[:0]), no(ValueError, "0 sample")),
    "reordered": (lambda: FITTED.transform(FRAME[["b", "a"]]), no(ValueError, "order")),
    "renamed": (
        lambda: FITTED.transform(FRAME.rename(columns={"b": "c"})),
        no(ValueError, "- c", "- b"),
    ),
    "fewer": (lambda: FITTED.transform(FRAME[["a"]]), no(ValueError, "- b")),
    "more": (lambda: FITTED.transform(FRAME.assign(c=1)), no(ValueError, "- c")),
    "fewer in dict": (lambda: FITTED.transform({"a": ["u"]}), no(ValueError, "'b' is missing")),
    "fewer in rows": (lambda: FITTED.transform([["u"]]), no(ValueError, "1 features")),
    "more in rows": (lambda: FITTED.transform([["u", "p", "?"]]), no(ValueError, "3 features")),
    "sets at transform": (
        lambda: FITTED.transform(pd.DataFrame({"a": [["u"]], "b": ["p"]})),
        no(TypeError, "'a'", "['u']"),
    ),
    "1-d at transform": (lambda: FITTED.transform(["u", "p"]), no(ValueError, "1D")),
    "text at transform": (lambda: UNNAMED.transform("u"), no(FileNotFoundError, "'u'")),
    "none at transform": (lambda: UNNAMED.transform(None), no(TypeError, "None")),
    "partial fit of other columns": (
        lambda: OneHot().fit(FRAME).partial_fit(FRAME[["a"]]),
        no(ValueError, "- b"),
    ),
    "numeric column": (
        lambda: SetTfidf(schema={"a": "numeric"}).fit({"a": [1, 2]}),
        no(ValueError, "'a'", "numeric"),
    ),
    "unknown value": (
        lambda: STRICT.transform(pd.DataFrame({"a": ["u"], "b": ["new"]})),
        no(ValueError, "'b'", "'new'"),
    ),
    "unknown missing": (
        lambda: STRICT.transform(pd.DataFrame({"a": [None], "b": ["p"]})),
        no(ValueError, "'a'", "None"),
    ),
    "unknown one for text one": (
        lambda: OneHot(unknown="error").fit({"a": ["1"]}).transform({"a": [1]}),
        no(ValueError, "'a'", "value 1 "),
    ),
    "unknown policy": (
        lambda: OneHot(unknown="drop").fit(FRAME).transform(FRAME),
        no(ValueError, "'drop'"),
    ),
    "policy none": (
        lambda: OneHot(unknown=None).fit(FRAME).transform(FRAME),
        no(ValueError, "None"),
    ),
    "dtype nonsense": (lambda: OneHot(dtype="wide").fit_transform(FRAME), no(TypeError, "wide")),
    "dtype integer": (lambda: OneHot(dtype="int8").fit_transform(FRAME), no(ValueError, "int8")),
    "dtype text": (lambda: OneHot(dtype="U3").fit_transform(FRAME), no(ValueError, "float32")),
    "dtype half": (lambda: OneHot(dtype="float16").fit_transform(FRAME), no(ValueError, "float16")),
    "schema nonsense": (lambda: OneHot(schema="category").fit(FRAME), no(ValueError, "'category'")),
    "schema of absent column": (
        lambda: OneHot(schema={"z": "set"}).fit(FRAME),
        no(ValueError, "'z'"),
    ),
    "weights of the wrong length": (
        lambda: OneHot().fit(FRAME, sample_weight=[1]),
        no(ValueError, "(1,)", "(2,)"),
    ),
    "zero counts": (
        lambda: OneHot().fit_counts(Counts()),
        no(ValueError, "expected counts of at least one row"),
    ),
    "two rows to explain": (lambda: FITTED.explain(FRAME, FRAME), no(ValueError, "one row, got 2")),
    "short row to explain": (
        lambda: FITTED.explain(["u"], ["v", "p"]),
        no(ValueError, "1 features"),
    ),
    "record without any column to explain": (
        lambda: FITTED.explain({"z": "u"}, {"a": "v", "b": "p"}),
        no(ValueError, "'a' is missing"),
    ),
    "number to explain": (lambda: FITTED.explain(3, 4), no(TypeError, "expected a row", "got 3")),
    "ragged at fit": (lambda: OneHot().fit([["u"], ["v", "w"]]), no(ValueError, "row 1")),
}


@pytest.mark.parametrize(("action", "expected"), cases(ESTIMATOR))
def test_estimators(action, expected):
    check(action, expected)


def test_a_refused_fit_changes_nothing():
    embedder = OneHot(schema="nominal").fit(FRAME)
    before = embedder.transform(FRAME)
    for X in (FRAME.assign(a=[{}, {}]), FRAME[:0], "x"):
        with pytest.raises((TypeError, ValueError, FileNotFoundError)):
            embedder.fit(X)
    with pytest.raises(ValueError, match="row 0"):
        embedder.partial_fit(FRAME, sample_weight=[NAN, 1])
    assert embedder.counts_.n == 2
    np.testing.assert_array_equal(embedder.transform(FRAME), before)


# -- anything ------------------------------------------------------------------------------

atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.decimals(),
    st.datetimes(),
    st.timedeltas(),
    st.fractions(),
    st.sampled_from([pd.NA, pd.NaT, np.float16(1.5), np.datetime64("NaT", "s"), ..., object()]),
)
anything = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(
            st.one_of(st.text(max_size=2), st.integers(), st.none()), inner, max_size=3
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(anything)
def test_anything_is_read_or_refused(X):
    try:
        counts = Counts.of(Table.of(X))
    except (TypeError, ValueError):
        return
    assert counts.n == len(X) if isinstance(X, list | tuple) else counts.n >= 0
    if counts.schema is not None:
        assert counts - counts == Counts()


@pytest.mark.filterwarnings("ignore:column .* is ordinal without levels")
@settings(max_examples=100)
@given(
    st.lists(atoms, min_size=1, max_size=4),
    st.sampled_from(["nominal", "numeric", "ordinal", "set"]),
)
def test_any_column_is_read_or_refused_by_name(cells, kind):
    try:
        table = Table.of({"col": cells}, {"col": kind})
    except (TypeError, ValueError) as error:
        assert "'col'" in str(error)
        return
    assert table.n_rows == len(cells)
    assert Counts.of(table).n == len(cells)


@pytest.mark.parametrize(
    ("y", "weight"), list(product([None, [1, 2, 1]], [None, [1, 2, 3], [0.5, 0.5, 1.0]])), ids=str
)
def test_good_input_still_works(y: Any, weight: Any):
    counts = Counts.of(THREE, y, sample_weight=weight)
    expected = sum(weight) if weight else 3
    assert counts.n == expected
    first = 2 if weight is None else weight[0] + weight[2]
    assert counts.value_counts.tolist() == [first, expected - first]
