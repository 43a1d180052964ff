"""``tabweave associate``, ``fill``, ``odd``; clusters are as many as in reports."""

import json
import re

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
    shown = here("associate", "cities.csv", "--most", "1", cwd=folder)
    assert shown.code == 0 and "1 of 3 pairs" in shown.out and "luck" not in shown.out


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl", "arrow"])
def test_fill(folder, form):
    done = here("fill", "cities.csv", "-o", f"filled.{form}", "--force", cwd=folder)
    assert done.code == 0 and "row 3: country=" in done.out and "1 cells of 200 rows" in done.out
    read = {
        "csv": pd.read_csv,
        "parquet": pd.read_parquet,
        "jsonl": lambda path: pd.read_json(path, lines=True),
        "arrow": pd.read_feather,
    }[form]
    filled, given = read(folder / f"filled.{form}"), pd.read_csv(folder / "cities.csv")
    assert filled["country"][3] == CITIES[given["city"][3]]
    assert (filled.drop(3) == given.drop(3)).all().all()


def test_odd(folder):
    done = here("odd", "cities.csv", "--most", "1", cwd=folder)
    assert done.code == 0 and done.out.startswith("row 20: ")
    found = json.loads(here("odd", "cities.csv", "--json", cwd=folder).out)
    assert found["rows"] == 200 and found["cells"][0]["row"] == 20
    assert here("odd", "cities.csv", "--level", "2", cwd=folder).code == 2


@pytest.fixture(scope="module")
def raw(folder):
    """A file as it comes: identifiers, dates, decimal commas, percents, "?" and an empty column."""
    rng = np.random.default_rng(1)
    n, city = 300, rng.choice(list(CITIES), 300)
    country = pd.Series(city).map(CITIES)
    price = country.map({"France": 20.0, "Chile": 8.0, "Peru": 90.0}) * rng.normal(1, 0.05, n)
    rows = pd.DataFrame(
        {
            "id": [f"A-{7 * i:05d}" for i in range(n)],
            "day": pd.Series(np.datetime64("2024-01-01") + rng.permutation(n)),
            "city": city,
            "country": country,
            "price": [f"{p:.2f}".replace(".", ",") for p in price],
            "off": rng.choice(["5 %", "10 %", "7,5 %"], n),
            "note": None,
        }
    )
    rows["day"] = rows["day"].dt.strftime("%d.%m.%Y")
    rows.loc[30, "country"] = "Chile" if rows["country"][30] != "Chile" else "Peru"
    rows.loc[4, "price"], rows.loc[5, "day"], rows.loc[6, "off"] = None, None, "NA"
    rows.loc[7:15, "country"] = "?"
    rows.to_csv(folder / "raw.csv", index=False, sep=";")
    return rows


def test_raw_files_are_read_by_what_their_cells_say(folder, raw):
    shown = here("associate", "raw.csv", "--json", cwd=folder)
    pairs = {(p["left"], p["right"]): p for p in json.loads(shown.out)["pairs"]}
    assert pairs["country", "price"]["correlation_ratio"] > 0.9
    assert not any("id" in pair for pair in pairs) and "set aside: id" in shown.err
    assert "taken for values: country (?)" in shown.err and "--missing '?'" in shown.err
    done = here("odd", "raw.csv", "--missing", "?", "--most", "3", cwd=folder)
    assert "row 30: country=" in done.out and "taken for values" not in done.err


def test_filled_cells_look_like_the_others(folder, raw):
    done = here("fill", "raw.csv", "-o", "whole.csv", "-f", "--missing", "?", cwd=folder)
    assert done.code == 0 and "12 cells of 300 rows filled" in done.out
    text = pd.read_csv(folder / "whole.csv", dtype=str, keep_default_na=False)
    assert list(text) == list(raw) and (text["note"] == "").all()
    assert text["country"][7:16].tolist() == [CITIES[c] for c in raw["city"][7:16]]
    assert re.fullmatch(r"\d+,\d\d", text["price"][4])
    assert re.fullmatch(r"\d\d\.\d\d\.2024", text["day"][5])
    assert re.fullmatch(r"\d+,\d %", text["off"][6])
    filled = {"price": 4, "day": 5, "off": 6}
    for name in ("id", "day", "city", "price", "off"):
        kept = [i for i in range(300) if i != filled.get(name)]
        assert text[name][kept].tolist() == raw[name][kept].tolist()


def test_clusters_are_as_many_as_in_the_report(folder):
    found = json.loads(here("cluster", "cities.csv", "--json", cwd=folder).out)["clusters"]
    groups = describe(pd.read_csv(folder / "cities.csv"))["clusters"]["groups"]
    assert len(found) == len(groups) == 3
    asked = json.loads(here("cluster", "cities.csv", "-k", "3", "--json", cwd=folder).out)
    assert len(asked["clusters"]) == 3
    for wrong in ("1", "many"):
        assert here("cluster", "cities.csv", "-k", wrong, cwd=folder).code == 2
