"""Frames: columns of any library as codes and labels."""

import datetime as dt
import sqlite3
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from tabweave import FAMD, Column, SimilarityIndex, Table, Weave
from tabweave.columns import frames
from tabweave.columns.datetime import CLOCK, OWN_CLOCK, _plain_datetimes, datetimes, zone_info
from tabweave.columns.frames import (
    _with_missing,
    as_column,
    categories,
    columns_of,
    encode,
    in_memory,
    infer_kind,
    typed,
)
from tabweave.columns.numeric import numbers
from tabweave.columns.sets import sets


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
    with pytest.raises(ValueError, match=r"got 'a.b.c' twice"):
        Table.of(twice)


def test_periods_are_dates():
    months = pd.DataFrame({"month": pd.period_range("2020-01", periods=40, freq="M")})
    months["pay"] = np.arange(40) ** 0.5
    kinds = {finding.column: finding.kind for finding in Weave().fit(months).kinds()}
    assert kinds == {"month": "datetime", "pay": "numeric"}
    texts = months.assign(month=months["month"].astype(str))
    np.testing.assert_array_equal(Weave().fit_transform(months), Weave().fit_transform(texts))
    days = months.assign(month=pd.period_range("2020-01-01", periods=40, freq="D"))
    stamps = days.assign(month=days["month"].dt.to_timestamp())
    np.testing.assert_array_equal(Weave().fit_transform(days), Weave().fit_transform(stamps))


# -- odd columns, each by itself ------------------------------------------------------------------


def test_time_zones_by_name_and_by_offset():
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


def test_durations_of_python_are_seconds():
    cells = np.array([dt.timedelta(minutes=1, microseconds=500_000), None, 2], object)
    np.testing.assert_array_equal(numbers(cells), [60.5, np.nan, 2])


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
        assert typed(np.array(cells, object)).dtype == kind
    limit = 2**53
    for cells in ([1.5, limit + 1], [-limit - 1, 1.5], [2**63, 1], [True, 1], ["a", 1], []):
        assert typed(np.array(cells, object)).dtype == object
    for cells in ([1.5, limit], [-limit, 1.5], [2**63 - 1, 1], [1 - 2**63, 1]):
        assert typed(np.array(cells, object)).tolist() == cells


@pytest.mark.parametrize("largest", [2.0**52, 2.0**53, 1e19, 1e300])
def test_whole_floats_of_any_size_are_labels(largest):
    cells = np.array([largest, 1.0, np.nan, largest, -largest])
    codes, labels = categories(cells)
    assert [labels[c] for c in codes] == [int(largest), 1, None, int(largest), -int(largest)]


def test_what_is_surely_in_memory():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    frame = pd.DataFrame({"a": [1]})
    table = pa.table({"a": [1]})
    rows = [frame, table, pl.DataFrame({"a": [1]}), Table.of(frame), frame.to_numpy(), {"a": [1]},
            [[1]], ((1,),), [{"a": 1}], [np.ones(1)]]  # fmt: skip
    assert all(map(in_memory, rows))
    other = [frame["a"], pl.LazyFrame({"a": [1]}), table.to_reader(), [], [1], ["a"], "a.csv", 1]
    assert not any(map(in_memory, other))


def _columns():
    """Columns of every library, each with its cells as Python says them."""
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    words = ["b", "a", None, "b", "", "é"]
    whole = [3, -7, 3, 0, 12, -7]
    wide = [2**63 - 1, 5, -(2**63), 5, 0, 2**62]
    big = [2**64 - 1, 2**64 - 2, 2**63, 0, 1, 2**64 - 1]
    gaps = [3.0, None, -7.0, 3.0, None, 0.0]
    half = [0.5, None, -7.0, 0.5, None, 0.0]
    truth = [True, None, False, True, True, None]
    clock = [dt.time(8, 30), None, dt.time(23, 59, 59), dt.time(8, 30), None, dt.time(0)]
    days = [dt.date(2024, 1, 31), None, dt.date(1969, 1, 1), dt.date(2024, 1, 31), None, None]
    paid = [Decimal("1.50"), None, Decimal("2"), Decimal("1.50"), None, Decimal("2")]
    for cells in (words, whole, wide, big, gaps, half, truth, clock, days, paid, []):
        yield cells, np.array([*cells, None], object)[:-1]
        kind = pa.uint64() if cells is big else None
        arrow = pa.array(cells, kind)
        yield cells, arrow
        yield cells, pa.chunked_array([arrow[:2], arrow[2:2], arrow[2:]])
        yield cells, pa.chunked_array([arrow.dictionary_encode(), arrow.dictionary_encode()][:1])
        yield cells, pl.Series("x", cells, pl.UInt64 if cells is big else None)
        yield cells, pd.Series(cells, dtype=object)
        yield cells, pd.Series(arrow, dtype=pd.ArrowDtype(arrow.type))
    for cells in (whole, wide, big):
        yield cells, np.array(cells, "u8" if cells is big else "i8")
    for kind in ("i1", "i2", "i4", "f2", "f4", "f8"):
        yield whole, np.array(whole, kind)
    for kind in ("?", "i8", "f8", "U1", "O"):
        yield [], np.zeros(0, kind)
    for kind in ("category", "string", "str"):
        yield words, pd.Series(words, dtype=kind)
    yield gaps, pd.Series([3, None, -7, 3, None, 0], dtype="Int64")
    yield truth, pd.Series(truth, dtype="boolean")
    for kind in (pl.Categorical, pl.Enum(["é", "", "b", "a", "unused"])):
        yield words, pl.Series(words, dtype=kind)
        yield words[3:], pl.Series(words[3:], dtype=kind)
        yield [None, None], pl.Series([None, None], dtype=kind)
    yield [None, None], pa.nulls(2)
    twice = pa.chunked_array([pa.array(["a", None]).dictionary_encode(),
                              pa.array(["b", "a"]).dictionary_encode()])  # fmt: skip
    yield ["a", None, "b", "a"], twice
    yield [], pa.chunked_array([], pa.string())
    text = np.array(["b", "a", "b"])
    yield ["b", "a", "b"], text
    yield ["b", "a", "b"], text.astype(np.dtypes.StringDType())


def test_cells_of_every_library_are_those_of_python():
    """Codes and labels say what the cells say, each label once, codes as small as can be."""
    tried = 0
    for cells, column in _columns():
        codes, labels = categories(column)
        wanted, said = categories(np.array([*cells, None], object)[:-1])
        told = (type(column).__module__, getattr(column, "dtype", None), cells)
        assert [labels[c] for c in codes] == [said[c] for c in wanted], told
        assert [type(labels[c]) for c in codes] == [type(said[c]) for c in wanted], told
        assert len(labels) == len(set(labels)) and codes.dtype.kind == "u", told
        assert codes.itemsize == 1 or not codes.flags.owndata, told
        tried += 1
    assert tried > 90


def test_numbers_of_every_library_are_those_of_python():
    for cells, column in _columns():
        if not any(isinstance(cell, str | dt.date | dt.time) for cell in cells):
            wanted = [np.nan if cell is None else float(cell) for cell in cells]
            np.testing.assert_array_equal(numbers(column), wanted, str(type(column)))


def test_a_column_is_one_dimensional():
    for cells in (np.zeros((2, 1)), np.zeros(()).reshape(1, 1, 1), pd.DataFrame({"a": [1]})):
        with pytest.raises(ValueError, match=f"'a': expected one dimension, got {np.ndim(cells)}"):
            as_column(cells, "a")
    for cells in ("text", b"bytes", {"a": 1}, {1, 2}, (i for i in range(2)), 3):
        with pytest.raises(TypeError, match="column 'a': expected a sequence of cells, got"):
            as_column(cells, "a")
    assert as_column(range(3), "a").tolist() == as_column((0, 1, 2), "a").tolist() == [0, 1, 2]
    assert as_column(np.ma.array([1, 2], mask=[False, True]), "a").tolist() == [1, None]
    assert as_column(pd.Index([4, 5]), "a").tolist() == [4, 5]
    dates = np.ma.array(["2020-01-01", "2020-01-02"], "M8[D]", mask=[True, False])
    assert np.isnat(as_column(dates, "a")).tolist() == [True, False]
    with pytest.raises(ValueError, match=r"got 2; several tables go into tabweave.Sources"):
        as_column(pd.DataFrame({"a": [1]}), "a")


ISO = ["2024-02-29", "1969-12-31 23:59:59", "2024-02-29T12:30", "2000-01-01T00:00:00.123456"]


def _epoch_of(text, zone=dt.UTC):
    moment = dt.datetime.fromisoformat(text)
    return moment.replace(tzinfo=zone).timestamp()


def test_text_without_a_zone_is_read_as_python_reads_it():
    wanted = [*map(_epoch_of, ISO), np.nan]
    assert _plain_datetimes([*ISO, None]) is not None
    np.testing.assert_array_equal(datetimes(np.array([*ISO, None], object), None, first=True)[0],
                                  wanted)  # fmt: skip
    other = ["2024-2-9", "2024-02-29T12:30Z", "2024-02-29 +01", "2024-02-29x", "today", 5,
             "2024-02-30", "2024-02-29T12:30+00"]  # fmt: skip
    for text in other:
        assert _plain_datetimes([ISO[0], text]) is None
    assert datetimes(np.array([], object), None, first=True)[0].tolist() == []


@pytest.mark.parametrize(
    ("written", "zone"), [("", None), ("Z", "UTC"), ("+00:00", "UTC"), ("+02:00", OWN_CLOCK)]
)
def test_datetimes_have_the_zone_that_they_are_written_in(written, zone):
    text = "2024-06-01T10:00:00" + written
    for cells in ([text], [dt.datetime.fromisoformat(text)]):
        seconds, found = datetimes(np.array(cells, object), None, first=True)
        assert found == zone and seconds.tolist() == [_epoch_of("2024-06-01T10:00:00")]


def test_datetimes_are_moved_to_the_clock_of_fit():
    utc = "2024-06-01T10:00:00Z"
    wanted = {"UTC": 10, "Europe/Rome": 12, "+05:00": 15, OWN_CLOCK: 10}
    for zone, hour in wanted.items():
        for cells in ([utc], [dt.datetime.fromisoformat(utc)]):
            seconds, _ = datetimes(np.array(cells, object), zone, first=False)
            assert seconds.tolist() == [_epoch_of(f"2024-06-01T{hour}:00:00")]
        for plain in (["2024-06-01T10:00:00"], np.array(["2024-06-01T10:00:00"], "M8[s]")):
            seconds, _ = datetimes(np.asarray(plain), zone, first=False)
            assert seconds.tolist() == [_epoch_of("2024-06-01T10:00:00")]
    with pytest.raises(ValueError, match=r"without a time zone, as in fit, got some with UTC"):
        datetimes(np.array([utc], object), None, first=False)


def test_times_of_day_are_seconds_since_midnight():
    for cells in (["08:30", "23:59:59", None], [dt.time(8, 30), dt.time(23, 59, 59), None]):
        seconds, zone = datetimes(np.array(cells, object), None, first=True)
        np.testing.assert_array_equal(seconds, [30_600, 86_399, np.nan])
        assert zone == CLOCK
        again, _ = datetimes(np.array(cells, object), CLOCK, first=False)
        np.testing.assert_array_equal(again, seconds)
        with pytest.raises(ValueError, match="got times of day without a date"):
            datetimes(np.array(cells, object), None, first=False)
    dated = np.array(["2024-02-29 08:30:00", "1960-01-01 23:59:59"], "M8[s]")
    assert datetimes(dated, CLOCK, first=False)[0].tolist() == [30_600, 86_399]


@pytest.mark.parametrize("delimiter", [None, ";"])
def test_sets_are_those_of_python(delimiter):
    cells = [["b", "a", "b"], [], ["c"], None, ["a", "b"], ["c", "c"]]
    given = cells if delimiter is None else [c if c is None else "; ".join(c) for c in cells]
    column = np.empty(len(given), object)
    column[:] = given
    starts, codes, labels = sets(column, delimiter)
    found = [{labels[c] for c in codes[a:b]} for a, b in pairwise(starts)]
    assert found == [{None} if cell is None else set(cell) for cell in cells]
    assert np.diff(starts).tolist() == [2, 0, 1, 1, 2, 1] and starts[0] == 0
    assert sets(np.array([], object), delimiter)[0].tolist() == [0]
    nothing = np.empty(2, object)
    nothing[:] = [[], []] if delimiter is None else ["", " ; "]
    assert [part.tolist() for part in sets(nothing, delimiter)[:2]] == [[0, 0, 0], []]


def test_codes_of_ours_have_the_smallest_type(monkeypatch):
    wide = np.array([0, 1, 0], np.uint32)  # made for this table: nobody else's memory
    monkeypatch.setattr(frames, "encode", lambda _: (wide, ["a", "b"]))
    assert frames.categories(None)[0].dtype == np.uint8
    lent = memoryview(wide)
    monkeypatch.setattr(frames, "encode", lambda _: (np.asarray(lent), ["a", "b"]))
    assert frames.categories(None)[0].dtype == np.uint32


def test_whole_numbers_beyond_floats_in_a_frame_of_objects_are_not_merged():
    """They were one and the same float, and the column was dropped as constant."""
    cells = [10**20 + i % 3 for i in range(30)] + [None]
    for column in (pd.Series(cells, dtype=object), cells):
        table = Table.of({"a": column, "b": ["x", "y", "z"] * 10 + ["x"]}, rules="whole")
        assert table.schema["a"].kind == "nominal" and len(table["a"].labels) == 4


def test_records_of_which_none_is_there_are_missing_in_all_fields():
    rows = pd.DataFrame(
        {"at": [{"x": i, "to": {"y": "uv"[i % 2]}} if i % 5 else None for i in range(30)]}
    )
    rows["c"] = ["a", "b"] * 15
    table = Table.of(rows)
    assert table.schema.names == ["at.x", "at.to.y", "c"]
    gap = Table.of(rows[:1], table.schema)
    assert np.isnan(gap["at.x"].values).all() and gap["at.to.y"].labels == [None]
    model = Weave().fit(rows)
    np.testing.assert_array_equal(model.transform(rows[:1]), model.transform(rows)[:1])
    assert set(model.explain(rows.iloc[0], rows.iloc[1])) == {"at.x", "at.to.y", "c"}
    assert SimilarityIndex(model).fit(rows).query(rows[1:2], k=1).ids.tolist() == [[1]]
    with pytest.raises(ValueError, match="missing"):
        Table.of({"at": ["x"], "c": ["a"]}, table.schema)


@pytest.mark.parametrize(
    ("second", "kind", "why"),
    [
        (["S", "L"], "ordinal", "ordered categories"),
        (["L", "S"], "nominal", "categories whose order differs from part to part"),
        (["S", "XL"], "nominal", "categories whose order differs from part to part"),
    ],
)
def test_parts_of_an_arrow_column_must_have_one_order(second, kind, why):
    pa = pytest.importorskip("pyarrow")
    parts = [
        pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), levels, ordered=True)
        for levels in (pa.array(["S", "M", "L"]), pa.array(second))
    ]
    (found,) = Table.of(pa.table({"size": pa.chunked_array(parts)})).kinds()
    assert found.kind == kind and found.why.startswith(why)


@pytest.mark.parametrize(("freq", "cycle"), [("M", False), ("Q", False), ("W", False), ("D", True)])
def test_periods_longer_than_a_day_have_no_weekday(freq, cycle):
    typed = pd.Series(pd.period_range("2020-01-01", periods=60, freq=freq))
    model = Weave().fit({"t": typed, "g": ["u", "v", "w"] * 20})
    assert any("weekday" in name for name in model.get_feature_names_out()) == cycle


def test_durations_are_numbers_from_every_library():
    cells = [dt.timedelta(minutes=7 * i % 90) for i in range(40)] + [None]
    seconds = [7.0 * i % 90 * 60 for i in range(40)] + [np.nan]
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    frame = pd.DataFrame({"d": cells})
    gapped = pd.DataFrame({"d": [*cells[:40], pd.NaT]}, dtype=object)
    intervals = duckdb.sql("SELECT d::INTERVAL AS d FROM frame").to_arrow_table()
    for rows in ({"d": cells}, frame, gapped, pl.DataFrame({"d": cells}), intervals):
        table = Table.of(rows, rules="whole")
        assert table.schema["d"].kind == "numeric"
        np.testing.assert_array_equal(table["d"].values, seconds)
    months = duckdb.sql("SELECT INTERVAL 2 MONTH AS d").to_arrow_table()
    with pytest.raises(TypeError, match=r"column 'd': .* months have no fixed length"):
        Table.of(months)


def test_categories_that_pandas_keeps_in_arrow():
    pa = pytest.importorskip("pyarrow")
    sizes = pd.Series(pd.Categorical(["M", "S"] * 10, ["S", "M", "L"], ordered=True))
    kept = pa.table({"size": pa.array(sizes)}).to_pandas(types_mapper=pd.ArrowDtype)
    assert Table.of(kept).schema["size"].levels == ("S", "M", "L")


def test_what_holds_no_rows_at_hand_is_refused_with_a_remedy(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]})
    for many in ([frame, frame], (frame,)):
        with pytest.raises(TypeError, match=r"of \d frames; join them, or call partial_fit"):
            columns_of(many)
    with pytest.raises(TypeError, match=r"got <list_iterator.*; call partial_fit with each part"):
        columns_of(iter([frame]))
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    with path.open() as file, pytest.raises(TypeError, match="; give the path of the file"):
        columns_of(file)
    connection = sqlite3.connect(":memory:")
    with pytest.raises(TypeError, match=r"; for a database give \(connection, query\)"):
        columns_of(connection)
    connection.close()
    with pytest.raises(TypeError, match=r"got <object object at \w+>$"):
        columns_of(object())


def test_periods_and_intervals_of_arrow_are_those_of_pandas(tmp_path):
    pa = pytest.importorskip("pyarrow")
    rows = pd.DataFrame(
        {
            "month": pd.period_range("2020-01", periods=40, freq="M"),
            "span": pd.arrays.IntervalArray.from_breaks(range(5)).take(np.arange(40) % 4),
            "letter": list("abcd") * 10,
        }
    )
    rows.to_parquet(tmp_path / "rows.parquet")
    rows.to_feather(tmp_path / "rows.feather")
    ranges = rows.assign(range=pd.cut(np.arange(40) % 8, 4))
    for given, expected in (
        (pa.Table.from_pandas(rows), rows),
        ({name: pa.array(column) for name, column in rows.items()}, rows),
        (tmp_path / "rows.parquet", rows),
        (tmp_path / "rows.feather", rows),
        (pa.Table.from_pandas(ranges), ranges),
    ):
        model, like = Weave().fit(given), Weave().fit(expected)
        assert repr(model.kinds()) == repr(like.kinds())
        np.testing.assert_allclose(model.transform(given), like.transform(expected), atol=1e-12)


@pytest.mark.parametrize(
    "column",
    [
        pd.date_range("2024-01-01", periods=30, freq="31h"),
        pd.date_range("2024-03-20", periods=30, freq="31h", tz="Europe/Berlin"),
        pd.date_range("2024-01-01", periods=30).where(np.arange(30) != 3),
        np.arange(30).astype("M8[D]"),
        [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(30)],
        [dt.time(i % 24, i) for i in range(30)],
    ],
)
def test_dates_are_the_same_numbers_as_objects_and_as_a_type(column):
    """Of those who read columns by their type alone, such as FAMD."""
    pa = pytest.importorskip("pyarrow")
    letters = list("abc") * 10
    objects = np.empty(30, object)
    objects[:] = list(column)
    plain = Table.of({"t": objects, "a": letters})
    assert plain.schema["t"].kind == "numeric"
    typed_table = pa.table({"t": pa.array(column, from_pandas=True), "a": letters})
    for given in ({"t": list(objects), "a": letters}, typed_table):
        found = Table.of(given)
        assert found.schema["t"].kind == "numeric"
        np.testing.assert_allclose(found["t"].values, plain["t"].values)
        as_numbers = FAMD(schema={"t": "numeric"}).fit(given)
        np.testing.assert_allclose(
            as_numbers.pairwise_distances(given),
            FAMD().fit(plain).pairwise_distances(plain),
            atol=1e-9,
        )


def test_dates_beside_numbers_or_text_are_values():
    for odd in (1.5, "2024-01-03", 7):
        assert infer_kind(np.array([dt.date(2024, 1, 1), odd], object)) == "nominal"


def test_numbers_of_smaller_units_are_no_seconds():
    days = np.arange(40).astype("M8[D]") + np.datetime64("2024-01-01").astype(int)
    rows = {"t": days.astype("M8[ms]"), "a": list("ab") * 20}
    seconds = {**rows, "t": days.astype("M8[s]").astype(np.int64)}
    model = Weave().fit(rows)
    np.testing.assert_allclose(model.transform(seconds), model.transform(rows))
    smaller = {**rows, "t": rows["t"].astype(np.int64)}
    for read in (model.transform, Weave(schema={"t": "datetime"}).fit):
        with pytest.raises(
            ValueError, match=r"column 't': expected seconds since 1970, got 17\d+,"
        ):
            read(smaller)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [([1, 2], "numeric"), ([["a"], ["b", "c"]], "set"), (["x", "y"], "nominal")],
)
def test_objects_are_told_by_all_of_their_cells(cells, kind):
    pandas = pytest.importorskip("pandas", reason="the frame is one of pandas")
    column = pandas.Series([None] * 200 + cells * 50, dtype=object)
    assert infer_kind(column) == kind
