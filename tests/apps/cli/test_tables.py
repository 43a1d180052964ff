"""``tabweave associate``, ``fill``, ``odd``; clusters are as many as in reports."""

import json
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from tabweave.apps.report import describe

from .conftest import called as here

CITIES = {"Paris": "France", "Lyon": "France", "Santiago": "Chile", "Lima": "Peru"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("pyarrow", reason="the files are written with pyarrow")
    rng = np.random.default_rng(0)
    city = rng.choice(list(CITIES), 200)
    rows = pd.DataFrame({"city": city, "country": pd.Series(city).map(CITIES)})
    rows["luck"] = rng.choice(["heads", "tails"], 200)
    rows.loc[20, ["city", "country"]] = ["Paris", "Chile"]
    rows.loc[3, "country"] = None
    out = tmp_path_factory.mktemp("cities")
    rows.to_csv(out / "cities.csv", index=False)
    return out


def test_associate(folder):
    found = json.loads(here("associate", "cities.csv", "--json", cwd=folder).out)["pairs"]
    assert [found[0]["left"], found[0]["right"]] == ["city", "country"]
    shown = here("associate", "cities.csv", "--limit", "1", cwd=folder)
    assert shown.code == 0 and "1 of 3 pairs" in shown.out and "luck" not in shown.out


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl", "arrow"])
def test_fill(folder, form):
    done = here("fill", "cities.csv", "-o", f"filled.{form}", "--force", cwd=folder)
    assert done.code == 0 and "row 3: country=" in done.out and "1 cell of 200 rows" in done.out
    read = {
        "csv": pd.read_csv,
        "parquet": pd.read_parquet,
        "jsonl": lambda path: pd.read_json(path, lines=True),
        "arrow": pd.read_feather,
    }[form]
    filled, given = read(folder / f"filled.{form}"), pd.read_csv(folder / "cities.csv")
    assert filled["country"][3] == CITIES[given["city"][3]]
    assert (filled.drop(3) == given.drop(3)).all().all()


def test_what_fills_a_gap_is_said_as_it_is_written(tmp_path):
    lines = [f"€{1000 + i % 7}.25,{20 + i % 9},{i % 7}" for i in range(60)]
    lines[5], lines[6] = "€1005.25,,5", ",26,6"
    (tmp_path / "pay.csv").write_text("\n".join(["pay,age,grade", *lines]))
    done = here("fill", "pay.csv", "-o", "f.csv", cwd=tmp_path)
    filled = pd.read_csv(tmp_path / "f.csv")
    assert f"row 5: age={filled['age'][5]} (" in done.out and filled["age"].dtype == "int64"
    assert f"row 6: pay={filled['pay'][6]} (" in done.out and filled["pay"][6].startswith("€")
    lines = here("fill", "pay.csv", "-o", "-", "--format", "jsonl", cwd=tmp_path).out.splitlines()
    assert json.loads(lines[5])["age"] == filled["age"][5]


def test_odd(folder):
    done = here("odd", "cities.csv", "--limit", "1", cwd=folder)
    assert done.code == 0 and done.out.startswith("row 20: ")
    found = json.loads(here("odd", "cities.csv", "--json", cwd=folder).out)
    assert found["rows"] == 200 and found["cells"][0]["row"] == 20
    assert here("odd", "cities.csv", "--level", "2", cwd=folder).code == 2


def test_words_for_missing_are_values_unless_they_are_named(folder):
    rows = pd.read_csv(folder / "cities.csv")
    rows.loc[[5, 6], "country"] = "NA"
    rows.to_csv(folder / "words.csv", index=False)
    plain = here("fill", "words.csv", cwd=folder)
    assert "1 cell of 200 rows" in plain.out
    assert "column 'country' holds 'NA'" in plain.err and "--missing NA" in plain.err
    named = here("fill", "words.csv", "--missing", "NA", "-o", "w.csv", "--force", cwd=folder)
    assert "3 cells of 200 rows" in named.out and "--missing" not in named.err
    filled = pd.read_csv(folder / "w.csv", keep_default_na=False)
    assert [filled["country"][i] for i in (5, 6)] == [CITIES[rows["city"][i]] for i in (5, 6)]
    for command in ("odd", "associate", "kinds"):
        assert "--missing NA" in here(command, "words.csv", cwd=folder).err
        assert "--missing NA" not in here(command, "words.csv", "--missing", "NA", cwd=folder).err
    refused = here("odd", "words.csv", "--missing", "NA,?", cwd=folder)
    assert refused.code == 0 and "no cell of a categorical column holds '?'" in refused.err


def test_every_command_takes_words_for_missing(folder):
    """What it does then is what it does where the cells are empty."""
    rows = pd.read_csv(folder / "cities.csv").assign(grade=[str(i % 40) for i in range(200)])
    rows.loc[[5, 6], "country"], rows.loc[[7, 9], "grade"] = "NA", " ?"
    rows.to_csv(folder / "words.csv", index=False)
    empty = rows.replace({"NA": None, " ?": None})
    empty.to_csv(folder / "empty.csv", index=False)
    for words in (
        ("embed", "-o", "-"), ("cluster", "-k", "2", "-o", "-"), ("explain", "-a", "5", "-b", "7"),
        ("neighbors", "--row", "5", "-k", "3", "--json"), ("report", "-o", "-", "--json"),
        ("odd",), ("associate",), ("map", "-o", "m.csv", "--force"), ("embed", "-m", "onehot"),
    ):  # fmt: skip
        command, *options = words
        said = here(command, "words.csv", *options, "--missing", "NA,?", cwd=folder)
        plain = here(command, "empty.csv", *options, cwd=folder)
        assert (said.code, said.out) == (plain.code, plain.out), words
        assert "--missing" not in said.err
    noted = here("embed", "words.csv", "-o", "-", cwd=folder)
    assert "column 'country' holds 'NA'" in noted.err
    kept = here("explain", "words.csv", "--a", "7", "--b", "9", "--missing", "?", "--kind",
                "grade=nominal", "--json", cwd=folder)  # fmt: skip
    grade = json.loads(kept.out)["columns"]["grade"]
    assert (grade["a"], grade["b"]) == (None, None) and 0 < grade["share"] < 1  # no agreement


def test_clusters_are_as_many_as_in_the_report(folder):
    found = json.loads(here("cluster", "cities.csv", "--json", cwd=folder).out)["clusters"]
    groups = describe(pd.read_csv(folder / "cities.csv"))["clusters"]["groups"]
    assert len(found) == len(groups) == 3
    asked = json.loads(here("cluster", "cities.csv", "-k", "3", "--json", cwd=folder).out)
    assert len(asked["clusters"]) == 3
    for wrong in ("1", "many"):
        assert here("cluster", "cities.csv", "-k", wrong, cwd=folder).code == 2


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    """Rows as a shop writes them: keys, decimal commas, dates; and typed, with time zones."""
    pytest.importorskip("pyarrow", reason="the files are written with pyarrow")
    rng = np.random.default_rng(0)
    price = rng.lognormal(3, 1, 120)
    rows = pd.DataFrame({"key": range(501, 621), "price": price.round(2)})
    rows["tax"] = (price / 5 + rng.normal(size=120) / 9).round(2)
    rows["day"] = pd.date_range("2024-01-01", periods=120)
    rows["city"] = np.where(price > 20, "Rome", "Oslo")
    rows.loc[[5, 50], "city"] = None
    out = tmp_path_factory.mktemp("orders")
    rows.assign(day=rows.day.dt.tz_localize("UTC")).to_parquet(out / "orders.parquet")
    rows["day"] = rows.day.dt.strftime("%d.%m.%Y")
    rows.to_csv(out / "orders.csv", sep=";", decimal=",", index=False)
    return out


def test_numbers_with_decimal_commas_are_numbers(orders):
    done = here("associate", "orders.csv", "--json", cwd=orders)
    pairs = {(p["left"], p["right"]): p for p in json.loads(done.out)["pairs"]}
    assert pairs["price", "tax"]["spearman"] > 0.9
    assert "dropped: key" in done.err
    found = json.loads(here("cluster", "orders.csv", "-k", "2", "--json", cwd=orders).out)
    said = [v for c in found["clusters"] for v in c["values"] if v["column"] == "price"]
    assert any(" to " in v["value"] for v in said)  # a range of numbers, not one text


def test_fill_leaves_other_columns_as_they_are(orders):
    done = here("fill", "orders.parquet", "-o", "filled.parquet", "--force", cwd=orders)
    assert "2 cells of 120 rows" in done.out and "key=" not in done.out
    before, after = (pd.read_parquet(orders / f"{n}.parquet") for n in ("orders", "filled"))
    pd.testing.assert_frame_equal(
        before.drop(columns="city"), after.drop(columns="city"), check_dtype=False
    )
    assert str(after["key"].dtype) == "int64" and "UTC" in str(after["day"].dtype)
    assert after["city"].notna().all()
    here("fill", "orders.csv", "-o", "filled.csv", "--force", cwd=orders)
    head = (orders / "filled.csv").read_text().splitlines()[1]
    assert head.startswith("501,") and "01.01.2024" in head


def test_fill_leaves_cells_of_text_as_they_are_written(tmp_path):
    lines = ["a,1.50,1e3,007,NA", "b,2.50,2e3,008,3", "b,,2e3,008,4", "a,1.50,,007,5"] * 9
    (tmp_path / "rows.csv").write_text("\n".join(["g,x,big,code,luck", *lines]) + "\n")
    words = ("rows.csv", "-o", "f.csv", "--columns", "g,x,big,code")
    assert here("fill", *words, cwd=tmp_path).code == 0
    before, after = ((tmp_path / f).read_text().splitlines() for f in ("rows.csv", "f.csv"))
    cells = [c for rows in zip(before, after, strict=True) for c in _side_by_side(*rows)]
    assert {a for a, b in cells if a != b} == {""} and all(b for _, b in cells)


def _side_by_side(*lines):
    return zip(*(line.split(",") for line in lines), strict=True)


def test_fill_says_which_columns_it_cannot_fill(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b,c\n" + "x,,1\ny,,2\n,,1\n" * 9)
    done = here("fill", "rows.csv", cwd=tmp_path)
    assert "all cells are missing in 'b'; there is nothing to fill them from" in done.err
    assert "9 cells of 27 rows filled" in done.out


def test_fill_keeps_the_types_of_a_parquet_file(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    group = ["u", "v", None, "w"] * 20
    day = [datetime(2024, 1, 1 + i % 28) for i in range(80)]
    rows = pa.table(
        {
            "text": pa.array(group),
            "category": pa.array(group).dictionary_encode(),
            "zoned": pa.array(day, pa.timestamp("us", "Europe/Berlin")),
            "took": pa.array([timedelta(minutes=d.day) for d in day], pa.duration("ms")),
            "half": pa.array([d.day / 2 for d in day], pa.float32()),
        }
    )
    parquet.write_table(rows, tmp_path / "rows.parquet")
    assert here("fill", "rows.parquet", "-o", "filled.parquet", cwd=tmp_path).code == 0
    filled = parquet.read_table(tmp_path / "filled.parquet")
    assert filled.schema.types == rows.schema.types
    assert filled.drop_columns(["text", "category"]) == rows.drop_columns(["text", "category"])
    assert filled["text"].null_count == filled["category"].null_count == 0


def test_drift_and_odd_cells_of_dates_are_said_as_dates(orders):
    shown = here("drift", "orders.parquet", "orders.parquet", cwd=orders).out
    assert "2024-02-29" in shown and "days" in shown and "e+09" not in shown
    assert "e+09" not in here("odd", "orders.parquet", "--level", "0.4", cwd=orders).out


def test_what_is_no_workbook_is_refused_by_name(tmp_path):
    pytest.importorskip("python_calamine")
    (tmp_path / "book.xlsx").write_bytes(b"PK")
    done = here("embed", "book.xlsx", "-o", "v.csv", cwd=tmp_path)
    assert done.code == 1 and "book.xlsx" in done.err


def test_a_database_is_refused_with_what_to_do(tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("CREATE TABLE sold (what)")
    done = here("embed", "shop.db", "-o", "v.csv", cwd=tmp_path)
    assert done.code == 1
    assert (
        "got a database; in Python pass ('sqlite:///shop.db', 'SELECT * FROM a_table')" in done.err
    )
    assert "by sqlite3 -csv -header shop.db 'SELECT * FROM a_table'" in done.err


def test_json_that_holds_nan(tmp_path):
    (tmp_path / "rows.json").write_text('[{"a": "x"}, {"a": NaN}, {"a": "y"}, {"a": "x"}]')
    done = here("embed", "rows.json", "-o", "v.csv", cwd=tmp_path)
    assert done.code == 0 and "4 rows × 1 column" in done.out


def test_fill_keeps_the_columns_that_it_does_not_use(folder):
    words = ("fill", "cities.csv", "--drop", "luck", "-o", "f.csv", "--force")
    assert here(*words, cwd=folder).code == 0
    before, after = (pd.read_csv(folder / f"{name}.csv") for name in ("cities", "f"))
    assert list(after) == list(before) and (after["luck"] == before["luck"]).all()


def test_fill_says_of_each_column_how_much_it_guessed_and_how_surely(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.choice(list("xy"), 300), "b": rng.choice(list("pqr"), 300)})
    rows["c"] = rows["a"] * 2
    rows.loc[:149, "b"], rows.loc[7:8, "c"] = None, None
    rows.to_csv(tmp_path / "gaps.csv", index=False)
    done = here("fill", "gaps.csv", "--limit", "4", cwd=tmp_path)
    told = [line for line in done.out.splitlines() if line.startswith("row ")]
    assert ["b="] * 2 == [line.split()[2][:2] for line in told[:2]]
    assert ["c="] * 2 == [line.split()[2][:2] for line in told[2:]]  # not of the first column only
    found = json.loads(here("fill", "gaps.csv", "--json", cwd=tmp_path).out)["filled"]
    for column, filled, share in (("b", "150", "50.0%"), ("c", "2", "0.7%")):
        sure = np.mean([note["probability"] for note in found if note["column"] == column])
        line = next(
            line.split() for line in done.out.splitlines() if line.startswith(f" {column} ")
        )
        assert line[:3] == [column, filled, share] and line[3] == f"{sure:.0%}"


def test_fill_to_a_pipe_writes_rows_alone(folder):
    done = here("fill", "cities.csv", "-o", "-", cwd=folder)
    assert len(done.out.splitlines()) == 201 and "1 cell of 200 rows filled" in done.err


def test_kinds_says_how_every_column_is_read(orders):
    done = here("kinds", "orders.csv", cwd=orders)
    assert done.code == 0 and done.err == ""
    lines = {line.split()[0]: line.split(None, 2)[1:] for line in done.out.splitlines() if line}
    assert lines["key"] == ["dropped", "counts the rows"]
    assert lines["day"] == ["datetime", "dates as text, day first"]
    found = json.loads(
        here("kinds", "orders.csv", "--kind", "key=nominal", "--json", cwd=orders).out
    )
    assert found["rows"] == 120
    assert found["columns"][0]["column"] == "key" and found["columns"][0]["kept"]


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory):
    """Dates in two ways, days that may be months, two currencies, lists, a word among numbers."""
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 12, 120), unit="D")
    rows = pd.DataFrame(
        {"left": [d.strftime(["%Y-%m-%d", "%d/%m/%y"][i % 2]) for i, d in enumerate(day)]}
    )
    rows["back"] = [f"{1 + i % 12}/{1 + i % 7}/2024" for i in range(120)]
    rows["paid"] = [f"{'$€'[i % 2]}{p:.2f}" for i, p in enumerate(rng.lognormal(3, 1, 120))]
    rows["tags"] = [f"{a};{b}" for a, b in rng.choice(list("123456"), (120, 2))]
    rows["stars"] = ["none yet", *rng.integers(1, 90, 119).astype(str)]
    out = tmp_path_factory.mktemp("doubtful")
    rows.to_csv(out / "rows.csv", index=False)
    return out


@pytest.mark.filterwarnings("default:column 'stars' holds:UserWarning")
@pytest.mark.parametrize("command", ["odd", "associate", "fill", "cluster"])
def test_what_only_the_user_knows_is_asked(doubtful, command):
    said = here(command, "rows.csv", cwd=doubtful).err
    assert "column 'left' holds dates written in several ways" in said
    assert (
        "day or month first? declare format 'dmy' or 'mdy', as in --kind back=datetime:dmy" in said
    )
    assert "column 'paid' holds money written as text, $, € taken as one currency" in said
    assert "delimiter ';', as in --kind 'tags=set:;'" in said
    assert "'stars' holds numbers written as text, except 'none yet' (1 cell), read as mis" in said
    assert "--drop left" not in said  # the dates are to be mended, not dropped


@pytest.mark.filterwarnings("default:column 'stars' holds:UserWarning")
def test_what_is_asked_can_be_answered(doubtful):
    words = ["--kind", "back=datetime:mdy", "--kind", "tags=set:;"]
    done = here("kinds", "rows.csv", *words, cwd=doubtful)
    assert done.code == 0, done.err
    told = dict(line.split()[:2] for line in done.out.splitlines() if len(line.split()) > 2)
    assert (told["back"], told["tags"]) == ("datetime", "set")
    assert here("explain", "rows.csv", "-a", "0", "-b", "1", *words, cwd=doubtful).code == 0


def test_a_number_that_counts_the_rows_is_not_called_dropped_where_it_is_used(orders):
    from tabweave import OutlierCells, Table

    used = OutlierCells(random_state=0).fit(
        Table.of(pd.read_parquet(orders / "orders.parquet"), rules="texts")
    )
    assert "key" in used.schema_.names
    assert "dropped" not in here("odd", "orders.parquet", cwd=orders).err


def test_a_p_value_below_all_floats_is_not_nought(folder):
    shown = here("associate", "big.csv", cwd=_with_twins(folder)).out
    assert "< 1e-300" in shown


def _with_twins(folder):
    values = np.arange(4000) % 40
    pd.DataFrame(
        {"a": np.char.add("a", values.astype(str)), "b": np.char.add("b", values.astype(str))}
    ).to_csv(folder / "big.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Cells of several types in one column, and gaps in others; records in half of the files."""
    out = tmp_path_factory.mktemp("mixed")
    rows = [
        {"name": "abcd"[i % 4], "mix": [1, "two", 3.5, "x", None][i % 5], "n": i % 7}
        for i in range(60)
    ]
    rows[7]["n"] = rows[9]["name"] = None
    (out / "flat.json").write_text(json.dumps(rows))
    fields = [
        row | {"at": {"city": "uv"[i % 2], "code": [7, "K8"][i % 2]}} for i, row in enumerate(rows)
    ]
    (out / "records.json").write_text(json.dumps(fields))
    return out


@pytest.mark.parametrize("source", ["flat.json", "records.json"])
class TestCellsOfSeveralTypes:
    @pytest.mark.parametrize("command", ["kinds", "cluster", "fill", "associate", "odd", "report"])
    def test_every_command_reads_them(self, mixed, source, command):
        words = ["-o", f"{source}.html", "--force"] if command == "report" else []
        done = here(command, source, *words, cwd=mixed)
        assert done.code == 0, done.err

    def test_filled_json_keeps_their_types(self, mixed, source):
        done = here("fill", source, "-o", "filled.json", "--force", cwd=mixed)
        assert done.code == 0, done.err
        before = json.loads((mixed / source).read_text())
        after = json.loads((mixed / "filled.json").read_text())
        told = [row["mix"] for row in before]
        assert [new["mix"] for old, new in zip(told, after, strict=True) if old is not None] == [
            old for old in told if old is not None
        ]
        assert all(row["mix"] is not None for row in after)

    @pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
    def test_kept_ones_are_written(self, mixed, source, form):
        done = here("embed", source, "--keep", "mix", "-o", f"v.{form}", "--force", cwd=mixed)
        assert done.code == 0, done.err
        read = {"csv": pd.read_csv, "parquet": pd.read_parquet}
        rows = read.get(form, lambda p: pd.read_json(p, lines=True, dtype=False))(
            mixed / f"v.{form}"
        )
        texts = [None if v != v or v is None else str(v) for v in rows["mix"]]
        assert texts[:5] == ["1", "two", "3.5", "x", None] and len(rows) == 60

    def test_words_for_missing_beside_them(self, mixed, source):
        done = here("kinds", source, "--missing", "two", cwd=mixed)
        assert done.code == 0, done.err


def test_words_for_missing_are_no_elements_of_sets(tmp_path):
    frame = pd.DataFrame({"tags": ["a;b", "NA", "c; NA", "a"] * 10, "b": ["u", "v"] * 20})
    frame.to_csv(tmp_path / "x.csv", index=False)
    asked = ("--kind", "tags=set:;", "--missing", "pandas,zz", "--method", "onehot")
    done = here("embed", "x.csv", *asked, "-o", "y.csv", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "no cell of a categorical column holds 'zz'" in done.err
    names = pd.read_csv(tmp_path / "y.csv").columns
    assert [name for name in names if name.startswith("tags")] == ["tags_a", "tags_b", "tags_c"]
    undeclared = here("kinds", "x.csv", "--kind", "tags=set", cwd=tmp_path)
    assert undeclared.code and "--kind 'tags=set:;' in a shell" in undeclared.err


def test_the_words_of_pandas_may_be_missing(tmp_path):
    values = ["x", "NA", "y", "n/a"] * 10
    pd.DataFrame({"a": values, "b": ["u", "v"] * 20}).to_csv(tmp_path / "x.csv", index=False)
    done = here("fill", "x.csv", "--missing", "pandas", "-o", "y.csv", cwd=tmp_path)
    assert done.code == 0, done.err
    assert set(pd.read_csv(tmp_path / "y.csv")["a"]) == {"x", "y"}
