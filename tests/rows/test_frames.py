"""Frames: columns of any library as codes and labels."""

import numpy as np
import pandas as pd
import pytest

from tabweave import Column, Table, Weave
from tabweave.rows.frames import (
    _typed,
    _with_missing,
    categories,
    encode,
    infer_kind,
    numbers,
    zone_info,
)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_arrow_dictionaries_are_read_where_they_lie(kind):
    """Codes of one chunk are Arrow's own indices, of whatever width: nothing is copied."""
    pa = pytest.importorskip("pyarrow")
    indices = pa.array(np.arange(500) % 3, kind)
    column = pa.DictionaryArray.from_arrays(indices, ["a", "b", "c"])
    for cells in (column, pa.chunked_array([column])):
        codes, labels = categories(cells)
        assert labels == ["a", "b", "c"] and codes.dtype.kind == "u"
        assert np.shares_memory(codes, indices.to_numpy())
    np.testing.assert_array_equal(categories(column.slice(100))[0], np.arange(100, 500) % 3)


def test_gaps_in_arrow_dictionaries_are_a_value_even_where_codes_are_full():
    pa = pytest.importorskip("pyarrow")
    words = [f"w{i}" for i in range(128)]
    column = pa.DictionaryArray.from_arrays(pa.array([*range(128), None], pa.int8()), words)
    codes, labels = categories(column)
    assert [labels[c] for c in codes] == [*words, None]


def test_codes_have_at_most_four_bytes_whatever_numbered_them():
    """Of eight bytes, unsigned and signed numbers together would become floats."""
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    cells = ["x", "y", "x", "z"] * 10
    frame = pd.DataFrame({"text": cells, "object": np.array(cells, object)})
    frame["few"] = frame["text"].astype("category")
    for source in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        for column, data in Table.of(source):
            assert data.codes.dtype.kind == "u" and data.codes.itemsize <= 4, column.name


def test_names_of_several_levels_are_joined():
    frame = pd.DataFrame({"k": [0, 0, 1], "x": [1.0, 2.0, 4.0], "c": ["u", "v", "u"]})
    grouped = frame.groupby("k").agg({"x": ["mean", "max"], "c": ["first"]}).reset_index()
    assert Table.of(grouped).schema.names == ["k", "x.mean", "x.max", "c.first"]
    model = Weave().fit(grouped)
    assert list(model.feature_names_in_) == ["k", "x.mean", "x.max", "c.first"]
    assert model.transform(grouped).shape[0] == 2
    twice = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b.c"), ("a.b", "c")]))
    with pytest.raises(ValueError, match=r"column 'a.b.c' appears twice"):
        Table.of(twice)


def test_periods_are_dates():
    months = pd.DataFrame({"month": pd.period_range("2020-01", periods=40, freq="M")})
    months["pay"] = np.arange(40) ** 0.5
    kinds = {finding.column: finding.kind for finding in Weave().fit(months).kinds()}
    assert kinds == {"month": "datetime", "pay": "numeric"}
    stamps = months.assign(month=months["month"].dt.to_timestamp())
    np.testing.assert_array_equal(Weave().fit_transform(months), Weave().fit_transform(stamps))


# -- odd columns, each by itself ------------------------------------------------------------------


def test_time_zones_by_name_and_by_offset():
    import datetime as dt

    assert zone_info("+01:30").utcoffset(None) == dt.timedelta(hours=1.5)
    assert zone_info("-05:00").utcoffset(None) == dt.timedelta(hours=-5)
    assert str(zone_info("Europe/Rome")) == "Europe/Rome"
    for odd in ("Nowhere/Town", "../etc", ""):
        with pytest.raises(ValueError, match="expected the name of a time zone, got"):
            zone_info(odd)


def test_datetimes_of_arrow_in_pandas_are_those_of_pandas():
    pa = pytest.importorskip("pyarrow")
    moments = pd.Series(pd.to_datetime(["2020-03-29 00:30", None, "2020-03-29 01:30"], utc=True))
    kind = pd.ArrowDtype(pa.timestamp("us", "Europe/Rome"))
    there = moments.dt.tz_convert("Europe/Rome")
    found = Table.of({"t": there.astype(kind)}, {"t": "datetime"})
    wanted = Table.of({"t": there}, {"t": "datetime"})
    np.testing.assert_array_equal(found["t"].values, wanted["t"].values)
    assert found.schema["t"].zone == wanted.schema["t"].zone == "Europe/Rome"


def test_cells_that_are_no_dates_are_named():
    with pytest.raises((TypeError, ValueError), match="column 't'"):
        Table.of({"t": ["2020-01-01", 5]}, {"t": "datetime"})
    assert np.isnan(Table.of({"t": [None, None]}, {"t": "datetime"})["t"].values).all()


def test_empty_text_among_numbers_may_be_missing():
    cells = np.array(["1.5", "", 2], object)
    np.testing.assert_array_equal(numbers(cells[[0, 2]].astype(float)), [1.5, 2])
    np.testing.assert_array_equal(numbers(np.array([1.5, "", 2], object), empty_is_missing=True),
                                  [1.5, np.nan, 2])  # fmt: skip
    with pytest.raises((TypeError, ValueError)):
        numbers(np.array([1.5, "", 2], object))


def test_no_rows_of_numbers_as_text():
    frame = pd.DataFrame({"a": ["1,5", "2,25"]})
    schema = Table.of(frame, {"a": Column("a", "numeric", format=",")}).schema
    assert Table.of(frame.iloc[:0], schema)["a"].values.tolist() == []
    assert Table.of(frame, schema)["a"].values.tolist() == [1.5, 2.25]


def test_codes_that_are_unsigned_stay_themselves():
    codes = np.array([1, 0], np.uint8)
    assert _with_missing(codes, ["a", "b"])[0] is codes
    signed = np.array([1, 0], np.int8)
    found = _with_missing(signed, ["a", "b"])[0]
    assert found.dtype == np.uint8 and np.shares_memory(found, signed)
    found, raw = _with_missing(np.array([1, -1], np.int8), ["a", "b"])
    assert found.tolist() == [1, 2] and raw == ["a", "b", None]


def test_kinds_of_what_is_no_column_of_a_library():
    assert infer_kind([1, 2]) == "numeric"
    assert infer_kind(["a"]) == "nominal"


def test_months_and_years_have_no_length():
    for unit in ("Y", "M"):
        with pytest.raises(TypeError, match="counts months or years, which have no fixed length"):
            numbers(np.array([1], f"m8[{unit}]"))
    assert numbers(np.array([1, "NaT"], "m8[m]"))[0] == 60
    assert numbers(np.array(["1970-01", "NaT"], "M8[M]"))[0] == 0


def test_integers_that_are_codes_stay_where_they_are():
    codes = np.array([2, 0, 1, 2], np.uint8)
    assert encode(codes)[0] is codes
    for other in (codes.astype(np.int64), codes + 1, codes * 2, codes.astype(np.int16) - 5):
        found, raw = encode(other)
        assert [raw[c] for c in found] == other.tolist() and raw == sorted(set(other.tolist()))
        assert found.dtype == np.uint8
    wide = np.array([0, 10**15, 5, 0])
    found, raw = encode(wide)
    assert [raw[c] for c in found] == wide.tolist()


def test_python_numbers_get_the_type_they_deserve():
    for cells, kind in (([1, 2.5], "f8"), ([1, 2], "i8"), ([True, False], "?"), ([0.5], "f8")):
        assert _typed(np.array(cells, object)).dtype == kind
    limit = 2**53
    for cells in ([1.5, limit + 1], [-limit - 1, 1.5], [2**63, 1], [True, 1], ["a", 1], []):
        assert _typed(np.array(cells, object)).dtype == object
    for cells in ([1.5, limit], [-limit, 1.5], [2**63 - 1, 1], [1 - 2**63, 1]):
        assert _typed(np.array(cells, object)).tolist() == cells


@pytest.mark.parametrize("largest", [2.0**52, 2.0**53, 1e19, 1e300])
def test_whole_floats_of_any_size_are_labels(largest):
    cells = np.array([largest, 1.0, np.nan, largest, -largest])
    codes, labels = categories(cells)
    assert [labels[c] for c in codes] == [int(largest), 1, None, int(largest), -int(largest)]
