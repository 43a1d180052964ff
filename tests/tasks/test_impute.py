"""Imputer: rules of a table are found again, and what comes back is of the make that was given."""

import datetime as dt
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tabweave
from tabweave import Imputer, OutlierCells
from tabweave.columns.datetime import parse_date, parse_iso, write_datetime
from tabweave.columns.numeric import number_of
from tabweave.tasks.impute import ENGINES, written_like


@pytest.mark.parametrize("engine", ["all", *ENGINES])
def test_rules_are_found(engine, whole, holes):
    filled = Imputer(engine).fit(holes).transform(holes)
    assert filled.notna().all().all()
    given = holes.notna()
    pd.testing.assert_frame_equal(filled.where(given), whole.where(given), check_dtype=False)
    for name in ("city", "country", "sea"):
        gap = holes[name].isna()
        assert (filled[name] == whole[name])[gap].mean() > 0.9
    for name in ("x", "y"):
        gap = holes[name].isna()
        error = (filled[name] - whole[name])[gap]
        assert np.sqrt((error**2).mean()) < 0.35 * whole[name].std()


def test_whole_rows_stay_as_they_are(whole):
    pd.testing.assert_frame_equal(Imputer().fit(whole).transform(whole), whole, check_dtype=False)


def test_what_comes_back_is_what_was_given(holes):
    model = Imputer("counts").fit(holes)
    frame = model.transform(holes)
    columns = {name: holes[name].tolist() for name in holes}
    mapped = model.transform(columns)
    assert list(mapped) == list(holes)
    assert mapped["city"].tolist() == frame["city"].tolist()
    assert frame.index.equals(holes.index) and list(frame) == list(holes)
    polars = pytest.importorskip("polars")
    answer = model.transform(polars.DataFrame(columns, strict=False))
    assert answer["city"].to_list() == frame["city"].tolist()
    x = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 6.0], [4.0, 8.0]] * 5)
    out = Imputer("counts").fit_transform(x)
    assert out.dtype == float and not np.isnan(out).any()
    assert out[0].tolist() == [1.0, 2.0]


def test_probabilities(whole, holes):
    model = Imputer().fit(holes)
    proba = model.predict_proba(whole, "country")
    assert proba.shape == (len(whole), 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert model.categories("country") == ["Italy", "Norway", "Peru"]
    found = np.array(model.categories("country"))[proba.argmax(axis=1)]
    assert (found == whole["country"]).mean() > 0.95
    luck = model.predict_proba(whole, "luck")
    assert luck.max(axis=1).mean() < 0.75  # it knows that it does not know
    with pytest.raises(ValueError, match="expected a column of categories"):
        model.predict_proba(whole, "x")


def test_several_imputations_differ_where_nothing_is_known(holes):
    model = Imputer().fit(holes)
    tables = model.sample(holes, 8, random_state=1)
    gap = holes["luck"].isna()
    luck = np.array([t["luck"][gap] for t in tables])
    assert 0.25 < (luck == "heads").mean() < 0.75
    assert {t["x"].notna().all() for t in tables} == {True}
    seen = set(holes["x"].dropna())
    assert set(tables[0]["x"][holes["x"].isna()]) <= seen
    again = model.sample(holes, 8, random_state=1)
    pd.testing.assert_frame_equal(tables[3], again[3])


def test_every_filled_cell_has_a_reason(whole, holes):
    model = Imputer().fit(holes)
    notes = model.explain(holes)
    assert len(notes) == holes.isna().sum().sum()
    note = next(n for n in notes if n.column == "country")
    filled = model.transform(holes)
    assert note.value == filled["country"][note.row]
    column, value, both, n = note.reasons[0]
    rows = holes[(holes[column] == value) & holes["country"].notna()]
    if column in ("city", "sea"):
        assert n == len(rows) and both == (rows["country"] == note.value).sum()
    assert f"row {note.row}: country=" in str(note)


def test_sets_are_filled():
    tags = [["wine", "cheese"] if i % 2 else ["beer"] for i in range(60)]
    land = ["France" if i % 2 else "Bavaria" for i in range(60)]
    model = Imputer().fit({"tags": tags, "land": land})
    filled = model.transform({"tags": [None, None, ["beer"]], "land": ["France", "Bavaria", None]})
    assert sorted(filled["tags"][0]) == ["cheese", "wine"] and filled["tags"][1] == ["beer"]
    assert filled["land"][2] == "Bavaria"
    proba = model.predict_proba({"tags": [["beer"]], "land": ["France"]}, "tags")
    assert dict(zip(model.categories("tags"), proba[0] > 0.5, strict=True)) == {
        "beer": False, "cheese": True, "wine": True,
    }  # fmt: skip


def test_files_and_new_values(holes, tmp_path):
    model = Imputer(max_rows=100).fit(holes)
    model.save(tmp_path / "model")
    loaded = tabweave.load(tmp_path / "model")
    pd.testing.assert_frame_equal(loaded.transform(holes), model.transform(holes))
    odd = pd.DataFrame({"city": ["Atlantis"], "country": [None], "sea": ["cold"], "x": [5.0]})
    odd = odd.assign(y=[11.0], luck=[None])
    filled = model.transform(odd)
    assert filled["city"][0] == "Atlantis" and filled["country"][0] == "Norway"


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_datetimes_are_filled(zone):
    day = pd.Series(pd.date_range("2026-01-01", periods=60, freq="D", tz=zone))
    rows = pd.DataFrame({"day": day, "x": np.arange(60.0), "c": ["a", "b"] * 30})
    rows.loc[30, "day"] = pd.NaT
    filled = Imputer().fit(rows).transform(rows)
    assert filled["day"].dtype == rows["day"].dtype and filled["day"].notna().all()
    expected = pd.Timestamp("2026-01-31", tz=zone)
    assert abs(filled["day"][30] - expected) < pd.Timedelta(days=2)
    assert (filled["day"].drop(30) == rows["day"].drop(30)).all()


def test_odd_tables():
    one = Imputer().fit({"a": ["x", None, "x", "y"]})
    assert one.transform({"a": [None, "y"]})["a"].tolist() == ["x", "y"]
    rows = {"id": list(map(str, range(300))), "b": ["p", "q"] * 150}
    wide = Imputer(schema={"id": "nominal"}).fit(rows)
    assert len(wide.categories("id")) == 200
    with pytest.raises(ValueError, match="engine"):
        Imputer("guess").fit({"a": ["x"]})


def test_a_column_without_cells_stays_empty_and_large_numbers_do_not_overflow():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"city": rng.choice(["Rome", "Oslo"], 60), "big": rng.normal(size=60) * 1e200}
    )
    rows["same"] = rows["big"] / 1e200
    rows.loc[3, ["big", "same"]] = np.nan
    rows["none"], rows["nan"] = None, np.nan
    filled = Imputer(random_state=0).fit(rows).transform(rows)
    assert filled[["city", "big", "same"]].notna().all(axis=None)
    assert filled[["none", "nan"]].isna().all(axis=None)
    np.testing.assert_allclose(filled["big"], filled["same"] * 1e200, rtol=1e-6)


def written(n=60):
    """Rows as people type them: an identifier, money, percents, dates and gaps, all of it text."""
    rng = np.random.default_rng(3)
    team = rng.choice(["red", "blue"], n)
    pay = np.where(team == "red", 1500.0, 900.0) + rng.integers(0, 50, n)
    frame = pd.DataFrame(
        {
            "id": [f"E{i:04d}" for i in range(n)],
            "team": team,
            "pay": [f"${x:,.2f}" for x in pay],
            "rate": [f"{x:.1f} %".replace(".", ",") for x in pay / 100],
            "since": [f"2020-{1 + int(x) % 12:02d}-03" for x in pay],
        }
    ).astype(object)
    frame.loc[0, ["id", "pay"]] = None
    frame.loc[1, ["rate", "since"]] = None
    return frame, pay


@pytest.mark.parametrize("make", ["pandas", "mapping", "polars", "array"])
def test_text_is_filled_as_it_is_written(make):
    frame, pay = written()
    lists = {name: frame[name].tolist() for name in frame}
    polars = pytest.importorskip("polars")
    X = {
        "pandas": frame,
        "mapping": lists,
        "polars": polars.DataFrame(lists),
        "array": frame.to_numpy(object),
    }[make]
    filled = Imputer().fit(X).transform(X)
    if make == "array":
        filled = pd.DataFrame(filled, columns=frame.columns)
    found = {name: list(filled[name]) for name in frame}
    assert pd.isna(found["id"][0])  # nobody can know it
    assert found["pay"][0].startswith("$1,5" if frame["team"][0] == "red" else "$9")
    assert found["pay"][0][-3] == "."
    assert found["rate"][1].endswith(" %") and "," in found["rate"][1]
    assert abs(float(found["rate"][1].rstrip(" %").replace(",", ".")) - pay[1] / 100) < 1
    assert len(found["since"][1]) == 10 and found["since"][1].startswith("20")
    for name in frame:
        kept = frame[name].notna()
        assert [v for v, k in zip(found[name], kept, strict=True) if k] == list(frame[name][kept])


def test_codes_that_are_numbers_stay_numbers():
    frame = pd.DataFrame({"flag": [0.0, 1.0] * 30, "kind": ["a", "b"] * 30})
    frame.loc[4, "flag"] = np.nan
    filled = Imputer().fit(frame).transform(frame)
    assert filled["flag"].dtype == float
    assert filled.loc[4, "flag"] == 0.0
    array = np.column_stack([frame["flag"], np.linspace(0, 1, 60) ** 2])
    assert Imputer().fit_transform(array).dtype == float


def test_an_empty_column_stays_empty(holes):
    gaps = holes.assign(none=None, nan=np.nan)
    model = Imputer("counts").fit(gaps)
    filled = model.transform(gaps)
    assert filled[["none", "nan"]].isna().all().all()
    assert not filled.drop(columns=["none", "nan"]).isna().any().any()
    assert not {"none", "nan"} & {note.column for note in model.explain(gaps)}


def test_categories_and_bools_stay_what_they_are():
    rng = np.random.default_rng(2)
    grade = pd.Categorical(rng.choice(["low", "high"], 60), ["low", "high"], ordered=True)
    rows = pd.DataFrame({"grade": grade, "x": np.where(grade == "low", 1.0, 9.0)})
    rows["dear"] = pd.array(rows["x"] > 5, dtype="boolean")
    rows["span"] = pd.cut(rows["x"], [0, 5, 10])
    whole = rows.copy()
    rows.loc[3, ["grade", "dear", "span"]] = None
    filled = Imputer("counts").fit(rows).transform(rows)
    assert filled.dtypes[["grade", "dear"]].equals(rows.dtypes[["grade", "dear"]])
    assert (filled["grade"] == whole["grade"]).all() and (filled["dear"] == whole["dear"]).all()
    assert not filled.isna().any().any()


def shape(text):
    return re.sub(r"[A-Za-z]+", "x", re.sub(r"\d+", "0", text))


def typed(n=60):
    """A column of every type, all of which follow from the first, and the same with gaps."""
    code = np.random.default_rng(5).integers(0, 4, n)
    days = pd.Timestamp("2026-03-01") + pd.to_timedelta(code, unit="D")
    rows = pd.DataFrame(
        {
            "team": np.array(["a", "b", "c", "d"])[code],
            "Int64": pd.array(code, dtype="Int64"),
            "UInt8": pd.array(code, dtype="UInt8"),
            "Float32": pd.array(code / 2, dtype="Float32"),
            "float32": (code / 2).astype("float32"),
            "string": pd.array([f"s{c}" for c in code], dtype="string"),
            "object": pd.Series([f"s{c}" for c in code], dtype=object),
            "day": days,
            "local": pd.Series(days).dt.tz_localize("Europe/Berlin"),
            "span": pd.to_timedelta(code, unit="h"),
            "date": pd.Series(list(days.date), dtype=object),
            "time": pd.Series([dt.time(8 + c, 30) for c in code], dtype=object),
            "whole": pd.Series(code.tolist(), dtype=object),
            "price": pd.Series([Decimal(f"{c}.50") for c in code], dtype=object),
        }
    )
    gaps = rows.copy()
    for j, name in enumerate(rows.columns[1:]):
        gaps.loc[[j, 20 + j, 40 + j], name] = None
    return rows, gaps


def test_every_column_keeps_its_type():
    rows, gaps = typed()
    filled = Imputer("counts").fit(gaps).transform(gaps)
    assert filled.dtypes.equals(gaps.dtypes) and filled.notna().all(axis=None)
    for name in rows.drop(columns=["Float32", "float32", "span", "time", "price"]):
        pd.testing.assert_series_equal(filled[name], rows[name])  # they follow, so they are found
    for name in rows:
        kept = gaps[name].notna()
        assert filled[name][kept].tolist() == gaps[name][kept].tolist()
        assert {type(v) for v in filled[name]} == {type(v) for v in rows[name]}
    assert {v.minute for v in filled["time"]} <= set(range(60))
    assert {v.as_tuple().exponent for v in filled["price"]} == {-2}


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries_keep_their_types(library):
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    rows, gaps = typed()
    given = polars.from_pandas(gaps.drop(columns=["whole", "price"])).with_columns(
        polars.col("string").cast(polars.Enum(["s0", "s1", "s2", "s3"])).alias("enum"),
        polars.col("object").cast(polars.Categorical).alias("categorical"),
    )
    given = given if library == "polars" else given.to_arrow()
    filled = Imputer("counts").fit(given).transform(given)
    assert filled.schema == given.schema
    frame = filled if library == "polars" else polars.from_arrow(filled)
    assert frame["Int64"].to_list() == rows["Int64"].tolist()
    assert frame["date"].to_list() == rows["date"].tolist()
    assert frame["enum"].cast(polars.String).to_list() == rows["string"].tolist()
    assert frame["local"].to_list() == [v.to_pydatetime() for v in rows["local"]]
    assert not sum(frame.null_count().row(0)) and arrow is not None


def test_whole_numbers_in_lists_stay_whole():
    _, gaps = typed()
    columns = {"team": gaps["team"].tolist(), "size": [3, 7, None, 7] * 15, "w": [1.5, None] * 30}
    filled = Imputer("counts").fit(columns).transform(columns)
    assert filled["size"].dtype.kind == "i" and filled["w"].dtype == float


@pytest.mark.parametrize(
    "written",
    [["12 km", "40 km", "75 km"], ["1h 20m", "36h", "5 min"], ["1,5 kg", "2,25 kg", "3,00 kg"]],
)
def test_quantities_are_written_as_the_others_are(written):
    rows = {"much": written * 20, "kind": [text[:2] for text in written] * 20}
    rows["much"][5] = None
    filled = Imputer("counts").fit(rows).transform(rows)["much"].tolist()
    assert filled[:5] == rows["much"][:5]
    assert re.fullmatch(r"[\d,]+ k[mg]|1h 20m|36h|5 min", filled[5])


@pytest.mark.parametrize(
    "written, order",
    [
        (["7/21/2016", "12/3/2016", "1/30/2016"], "mdy"),
        (["21.07.2016", "03.12.2016", "30.01.2016"], "dmy"),
        (["21-JUL-16", "03-DEC-16", "30-JAN-16"], "dmy"),
        (["July 21, 2016", "December 3, 2016", "January 30, 2016"], "mdy"),
        (["2016/7/21", "2016/12/3", "2016/1/30"], "ymd"),
        (["7/21/2016 9:30 AM", "12/3/2016 1:05 PM", "1/30/2016 12:00 AM"], "mdy"),
        (["2016-07-21T09:30:00Z", "2016-12-03T10:00:00Z"], None),
        (["2016-07-21 09:30+01:00", "2016-12-03 10:00+01:00"], None),
        (["2016-07-21 09:30:00.250", "2016-12-03 10:00:00.125"], None),
        (["08:30", "17:45", "23:59"], "clock"),
        (["8:30", "7:45", "3:59"], "clock"),
    ],
)
def test_dates_are_written_as_the_others_are(written, order):
    rows = {"when": written * 20, "kind": [text[:4] for text in written] * 20}
    rows["when"][5] = None
    filled = Imputer("counts").fit(rows).transform(rows)["when"]
    assert {shape(filled[5])} == {shape(text) for text in written}
    assert filled.tolist()[:5] == rows["when"][:5]
    for text in written:
        if order == "clock":
            moment = dt.datetime.strptime(text, "%H:%M")
        else:
            moment = parse_iso(text) if order is None else parse_date(text, order)
        again = write_datetime(moment, written, None if order == "clock" else order)
        assert again == text


def test_no_number_leaves_the_range_of_fit():
    rng = np.random.default_rng(0)
    size = rng.lognormal(0, 2, 300)
    rows = pd.DataFrame({"size": size, "log": np.log(size), "noise": rng.normal(size=300)})
    gaps = rows.mask(rng.random(rows.shape) < 0.2)
    filled = Imputer("counts").fit(gaps).transform(gaps)
    assert filled.min().ge(gaps.min()).all() and filled.max().le(gaps.max()).all()


@pytest.mark.parametrize(
    ("minus", "plus"),
    [("-{} €", "{} €"), ("(${})", "${}"), ("−{}%", "{}%"), ("$-{}", "${}")],
)
def test_filled_numbers_in_text_keep_their_own_sign(minus, plus):
    """The minus of the first text is that of one number, and no part of the unit."""
    sizes = np.random.default_rng(0).uniform(5, 6, 120)
    side = ["loss"] * 60 + ["gain"] * 60
    known = [minus.format(f"{x:.2f}") for x in sizes[:60]]
    known += [plus.format(f"{x:.2f}") for x in sizes[60:]]
    text = [None if i in (3, 100) else cell for i, cell in enumerate(known)]
    filled = Imputer().fit_transform({"side": side, "amount": text})["amount"]
    assert -6 <= number_of(filled[3]) <= -5 and 5 <= number_of(filled[100]) <= 6
    assert np.delete(filled, [3, 100]).tolist() == np.delete(known, [3, 100]).tolist()


def test_no_minus_is_written_before_a_zero():
    assert written_like(["-5.00", "3.00"], [-0.001, -0.01], ".") == ["0.00", "-0.01"]


def test_no_rows_have_no_probabilities_of_every_value():
    rows = {"city": ["Lima", "Oslo"] * 9, "sea": ["warm", "cold"] * 9}
    assert Imputer().fit(rows).predict_proba({"city": [], "sea": []}, "city").shape == (0, 2)


@pytest.mark.parametrize("kind", ["Int64", "float64", "object"])
def test_dates_of_digits_and_periods_stay_so(kind):
    days = pd.date_range("2023-01-01", periods=120)
    rows = pd.DataFrame({"day": days.strftime("%Y%m%d"), "month": days.strftime("%Y-%m")})
    rows["day"] = rows["day"].astype(int).astype(kind)
    rows.loc[::9, "day"] = None
    rows.loc[4::9, "month"] = None
    out = Imputer().fit_transform(rows)
    assert out["day"].dtype == rows["day"].dtype
    read = pd.to_datetime(out["day"].astype(float).map("{:.0f}".format))
    assert (read - days).abs().max().days < 31
    assert out["month"].str.fullmatch(r"2023-0[1-5]").all()


def test_records_and_columns_of_several_levels_are_filled():
    records = [{"x": i % 3, "y": "uv"[i % 2]} if i % 5 else None for i in range(60)]
    rows = pd.DataFrame({"at": records, "c": ["a", "b", None] * 20}, index=range(5, 65))
    filled = Imputer().fit_transform(rows)
    assert list(filled) == ["at.x", "at.y", "c"] and filled.notna().all().all()
    assert filled.index.equals(rows.index)
    levels = filled[["at.x", "c"]].set_axis(
        pd.MultiIndex.from_tuples([("a", "x"), ("a", "c")]), axis=1
    )
    levels.iloc[3, 1] = None
    out = Imputer().fit_transform(levels)
    assert out.columns.equals(levels.columns) and out.notna().all().all()


def test_a_list_of_dicts_comes_back_as_one():
    rows = [{"city": "Lima", "sea": "warm"}, {"city": "Oslo", "sea": "cold"}] * 20
    filled = Imputer().fit(rows).transform([{"city": "Oslo", "sea": None}, rows[0]])
    assert filled == [{"city": "Oslo", "sea": "cold"}, rows[0]]


ROW_TYPES = {
    "grade": ["a", "b", "c"] * 20,
    "count": [1, 5, 9] * 20,
    "day": [dt.date(2024, 1, 1 + i % 3) for i in range(60)],
    "text": [f"2024-01-0{1 + i % 3}" for i in range(60)],
    "money": ["$1,200.50", "$3.00", "$10.25"] * 20,
    "lasts": [dt.timedelta(hours=1 + i % 3) for i in range(60)],
    "clock": [dt.time(1 + i % 3) for i in range(60)],
    "price": [Decimal("1.50"), Decimal("2.25"), Decimal("3.00")] * 20,
}


@pytest.mark.parametrize("column", [name for name in ROW_TYPES if name != "grade"])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "mapping", "loaded"])
def test_one_row_with_a_gap_is_filled_as_fit_was_written(column, library, tmp_path):
    rows, first = ROW_TYPES[column], [cells[0] for cells in ROW_TYPES.values()]
    row = {**dict(zip(ROW_TYPES, first, strict=True)), column: None}
    one = {name: [cell] for name, cell in row.items()}
    if library in ("polars", "pyarrow"):
        frames = pytest.importorskip(library)
        whole = (frames.DataFrame if library == "polars" else frames.table)(ROW_TYPES)
        gap = (
            frames.DataFrame(one, schema=whole.schema)
            if library == "polars"
            else frames.table(one, schema=whole.schema)
        )
    else:
        make = pd.DataFrame if library == "pandas" else dict
        whole, gap = make(ROW_TYPES), make(one)
    model = Imputer().fit(whole)
    if library == "loaded":
        model.save(tmp_path / "imputer")
        model = tabweave.load(tmp_path / "imputer")
    (cell,) = list(model.transform(gap)[column])
    cell = cell.as_py() if hasattr(cell, "as_py") else cell
    if column == "money":
        assert re.fullmatch(r"\$1,(1\d\d|200)\.\d\d", cell)
    elif column == "lasts":
        assert dt.timedelta(minutes=59) < cell < dt.timedelta(minutes=63)
    elif column == "price":
        assert Decimal("1.49") < cell < Decimal("1.60") and cell.as_tuple().exponent == -2
    else:
        assert cell == rows[0] and str(cell) == str(rows[0])


def test_identifiers_are_among_the_columns_that_come_out(holes):
    rows = holes.assign(key=[f"k{i:04}" for i in range(len(holes))])
    for library in ("pandas", "polars"):
        pytest.importorskip(library)
        model = Imputer().set_output(transform=library).fit(rows)
        assert list(model.transform(rows).columns) == list(rows.columns)
    assert model.get_feature_names_out().tolist() == list(rows.columns)


def test_columns_that_are_numbered_are_filled(holes):
    rows = holes[["city", "country"]]
    numbered = rows.set_axis(range(2), axis=1)
    filled = Imputer().fit(numbered).transform(numbered)
    assert filled.columns.tolist() == [0, 1] and filled.notna().all().all()
    pd.testing.assert_frame_equal(
        filled.set_axis(rows.columns, axis=1), Imputer().fit(rows).transform(rows)
    )


def test_a_note_has_the_date_that_is_filled():
    rng = np.random.default_rng(0)
    group = np.arange(90) % 3
    days = np.datetime64("2024-01-01") + 30 * group + rng.integers(0, 5, 90)
    rows = pd.DataFrame({"group": np.array(["a", "b", "c"])[group], "day": days})
    rows.loc[::10, "day"] = pd.NaT
    model = Imputer().fit(rows)
    filled = model.transform(rows)["day"]
    notes = {note.row: note.value for note in model.explain(rows)}
    assert notes == {i: str(filled[i].date()) for i in range(0, 90, 10)}


def _as_records(rows):
    return [dict(zip(rows, line, strict=True)) for line in zip(*rows.values(), strict=True)]


def test_long_whole_numbers_keep_their_digits():
    rng = np.random.default_rng(0)
    rows = {
        "key": [2**60 + 1 + 1000 * int(i) for i in rng.integers(0, 10**9, 40)],
        "unsigned": [2**63 + 2048 * (i + 1) for i in range(40)],
        "holed": [None if i == 3 else 2**60 + 1 + 1001 * i * i for i in range(40)],
        "letter": [None if i == 5 else "xyz"[i % 3] for i in range(40)],
    }
    for given, lines in ((rows, _as_records), (_as_records(rows), list)):
        filled = lines(Imputer().fit(given).transform(given))
        for before, after in zip(_as_records(rows), filled, strict=True):
            kept = {name: value for name, value in before.items() if value is not None}
            assert {name: after[name] for name in kept} == kept


def test_decimals_of_many_places_are_filled():
    rows = pl.DataFrame({"x": [Decimal(i % 17) / 3 for i in range(40)], "y": ["a", "b"] * 20})
    rows = rows.with_columns(x=pl.when(pl.int_range(40) == 3).then(None).otherwise("x"))
    rows = pl.from_arrow(rows.to_arrow())  # with a precision, which old polars leaves open
    for given in (rows, rows.to_arrow()):
        assert rows.schema == pl.DataFrame(Imputer().fit(given).transform(given)).schema


def test_intervals_are_filled_by_intervals():
    rows = pd.DataFrame({"range": pd.cut(np.arange(40) % 8, 4), "y": list("abcd") * 10})
    rows.loc[3, "range"] = None
    filled = Imputer().fit(rows).transform(rows)["range"]
    assert filled.dtype == rows["range"].dtype and filled.notna().all()


def test_what_is_missing_everywhere_stays_so():
    rows = pl.DataFrame({"a": ["x", None] * 20, "b": list("pq") * 20}).with_columns(
        day=pl.lit(None, pl.Datetime)
    )
    for given in (rows[:1], rows, rows.to_arrow()):
        filled = pl.DataFrame(Imputer().fit(given).transform(given))
        assert filled["day"].is_null().all() and filled.schema == rows.schema


def test_large_codes_fill_a_column_of_floats():
    rows = pa.table({"x": [-1e20, 1e20, 1e20, -1e20] * 10, "y": list("abba") * 10})
    holed = rows.set_column(0, "x", pa.array([None, *rows["x"].to_pylist()[1:]]))
    assert Imputer().fit(holed).transform(holed)["x"].to_pylist()[0] in (-1e20, 1e20)


@pytest.mark.parametrize("make", [Imputer, OutlierCells])
def test_a_column_of_another_type_is_no_evidence_and_refused(make):
    """It was unknown in every row, and the guesses were made without it, without a word."""
    rows = pd.DataFrame({"code": [35, 40, 62] * 20, "b": ["u", "v", "w"] * 20})
    model = make(schema={"code": "nominal"}).fit(rows)
    ask = model.transform if make is Imputer else model.predict
    gaps = rows.mask(pd.DataFrame({"code": [False] * 60, "b": [True] + [False] * 59}))
    ask(gaps)
    with pytest.raises(ValueError, match="column 'code': expected numbers as in fit"):
        ask(gaps.assign(code=gaps["code"].astype(str)))


TEXTS = ("group", "key")


def measured(n=90):
    """Numbers written with one decimal, whole ones and unrounded ones, that depend on a group."""
    rng = np.random.default_rng(7)
    group = np.arange(n) % 3
    rows = pd.DataFrame(
        {
            "group": np.array(["a", "b", "c"])[group],
            "tenths": (30 + 5 * group + rng.normal(0, 1, n)).round(1),
            "single": (group + rng.normal(0, 0.1, n)).round(2).astype(np.float32),
            "whole": (10 * group + rng.integers(0, 5, n)).astype(float),
            "exact": group + rng.normal(0, 0.1, n),
            "key": [f"K{i // 2}" for i in range(n)],
        }
    )
    gaps = rows.copy()
    for j, name in enumerate(["tenths", "single", "whole", "exact"]):
        gaps.loc[j::10, name] = np.nan
    return gaps


def test_numbers_are_filled_with_as_many_decimals_as_their_column_has():
    gaps = measured()
    model = Imputer().fit(gaps)
    for given in (gaps, pl.from_pandas(gaps), gaps.to_dict("list")):
        out = model.transform(given)
        filled = {name: np.asarray(out[name], float) for name in gaps if name not in TEXTS}
        tenths, whole = filled["tenths"], filled["whole"]
        assert (np.round(tenths, 1) == tenths).all() and (np.rint(whole) == whole).all()
        single = filled["single"].astype(np.float32)
        assert (np.round(single.astype(float), 2).astype(np.float32) == single).all()
        assert (np.round(filled["exact"], 3) != filled["exact"]).all()
    frame = model.transform(gaps)
    assert frame.dtypes.equals(gaps.dtypes)
    notes = [note for note in model.explain(gaps) if note.column in ("tenths", "whole", "exact")]
    assert [note.value for note in notes] == [frame.loc[n.row, n.column] for n in notes]


def test_no_reason_rests_on_fewer_than_five_rows():
    gaps = measured()
    reasons = [r for note in Imputer().fit(gaps).explain(gaps) for r in note.reasons]
    assert reasons and min(reason.n for reason in reasons) >= 5
    assert "key" not in {reason.column for reason in reasons}


@pytest.mark.parametrize("as_text", [False, True])
def test_dates_are_filled_near_those_of_similar_rows_whatever_else_hardly_repeats(as_text):
    """Eggs of three Novembers: no fill lies between the years, and none in another season."""
    rng = np.random.default_rng(0)
    year, n = np.repeat([2007, 2008, 2009], 110), 330
    days = [np.datetime64(f"{y}-11-09") + rng.integers(0, 20) for y in year]
    rows = pd.DataFrame(
        {
            "study": [f"S{y}" for y in year],
            "number": np.tile(np.arange(110), 3).astype(str),
            "bird": [f"N{i}A{j}" for i, j in rng.integers([0, 1], [90, 3], (n, 2))],
            "egg": pd.to_datetime(days),
            "mass": rng.normal(4000, 500, n).round(),
            "remark": np.where(rng.random(n) < 0.1, [f"remark {i}" for i in range(n)], None),
        }
    )
    truth, hidden = rows["egg"].copy(), rng.random(n) < 0.2
    rows.loc[hidden, "egg"] = None
    if as_text:
        rows["egg"] = rows["egg"].dt.strftime("%Y-%m-%d")
    filled = pd.to_datetime(Imputer().fit(rows).transform(rows)["egg"])[hidden]
    assert (filled.dt.month == 11).all() and (filled.dt.year == year[hidden]).all()
    assert (filled - truth[hidden]).abs().median().days <= 6
