"""``tabweave associate``, ``fill``, ``odd``; clusters are as many as in reports."""

import json

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


def test_odd(folder):
    done = here("odd", "cities.csv", "--most", "1", cwd=folder)
    assert done.code == 0 and done.out.startswith("row 20: ")
    found = json.loads(here("odd", "cities.csv", "--json", cwd=folder).out)
    assert found["rows"] == 200 and found["cells"][0]["row"] == 20
    assert here("odd", "cities.csv", "--level", "2", cwd=folder).code == 2


def test_clusters_are_as_many_as_in_the_report(folder):
    found = json.loads(here("cluster", "cities.csv", "--json", cwd=folder).out)["clusters"]
    groups = describe(pd.read_csv(folder / "cities.csv"))["clusters"]["groups"]
    assert len(found) == len(groups) == 3
    asked = json.loads(here("cluster", "cities.csv", "-k", "3", "--json", cwd=folder).out)
    assert len(asked["clusters"]) == 3
    for wrong in ("1", "many"):
        assert here("cluster", "cities.csv", "-k", wrong, cwd=folder).code == 2
