"""CONTRIBUTING, followed to the letter: a new measure, embedder and kind of column are found.

The files that it spells out are written into a copy of the project, and nothing else is touched.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r'^( *)```\w+ title="([^"]+)"\n(.*?)^\1```$', re.M | re.S)
PARTS = (
    "src",
    "tests",
    "docs",
    "tools",
    "benchmarks/reports",
    "changelog.d",
    "CONTRIBUTING.md",
    "pyproject.toml",
)
MADE = shutil.ignore_patterns("__pycache__", "gallery", "reports", "fixtures", "golden")
ROWS = "color,size\nred,S\nred,L\nblue,S\ngreen,L\nred,S\n"


def spelled_out():
    """Return the files that CONTRIBUTING spells out, by path."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return {path: textwrap.dedent(body) for _, path, body in BLOCK.findall(text)}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the project in which the steps were followed."""
    folder = tmp_path_factory.mktemp("project")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=MADE)
        else:
            shutil.copy(ROOT / part, folder / part)
    for path, body in spelled_out().items():
        assert not (folder / path).exists(), f"{path} would change a file"
        (folder / path).write_text(body, encoding="utf-8")
    (folder / "rows.csv").write_text(ROWS, encoding="utf-8")
    return folder


def run(copy, *words):
    env = os.environ | {"PYTHONPATH": str(copy / "src"), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *words], cwd=copy, env=env, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(copy, code):
    return run(copy, "-c", textwrap.dedent(code))


def tabweave(copy, *words):
    return run(copy, "-m", "tabweave.apps.cli", *words)


def test_a_measure_is_one_source_file_one_test_and_one_line():
    touched = [path for path in spelled_out() if "gap" in path]
    assert [path.split("/")[0] for path in touched] == ["src", "tests", "changelog.d"]


def test_an_embedder_is_the_same_and_its_page():
    touched = [path for path in spelled_out() if "rarity" in path]
    assert [path.split("/")[0] for path in touched] == ["src", "docs", "tests", "changelog.d"]
    assert len(spelled_out()) == 10


def test_a_kind_of_column_is_one_source_file_one_test_and_one_line():
    touched = [path for path in spelled_out() if "geographic" in path]
    assert [path.split("/")[0] for path in touched] == ["src", "tests", "changelog.d"]


def test_the_package_knows_both_before_anything_slow_loads(copy):
    out = python(
        copy,
        """
        import sys, tabweave
        from tabweave.embed import list_embedders
        from tabweave.measures import list_measures
        assert "Rarity" in tabweave.__all__ and "Rarity" in dir(tabweave)
        print(list_measures()["gap"]); print(list_embedders()["rarity"])
        assert "numpy" not in sys.modules
        from tabweave import Rarity
        print(Rarity())
        """,
    )
    assert out.splitlines() == [
        "values differ as their frequencies do",
        "one-hot, where rare values weigh more",
        "Rarity()",
    ]


@pytest.mark.slow
def test_the_command_line_lists_completes_and_uses_both(copy):
    listed = {m["name"]: m["kind"] for m in json.loads(tabweave(copy, "methods", "--json"))}
    assert (listed["gap"], listed["rarity"]) == ("measure", "embedder")
    found = python(
        copy,
        "from tabweave.apps.cli.options import complete_method as m; print(m('ga'), m('rar'))",
    )
    assert "('gap', " in found and "('rarity', " in found
    for method in ("gap", "rarity"):
        tabweave(copy, "embed", "rows.csv", "--method", method, "-o", f"{method}.csv")
        lines = (copy / f"{method}.csv").read_text(encoding="utf-8").splitlines()
        assert len(lines) == len(ROWS.splitlines())


@pytest.mark.slow
def test_reports_and_the_studio_offer_both(copy):
    pytest.importorskip("fastapi", reason="the studio is optional")
    python(
        copy,
        """
        from fastapi.testclient import TestClient
        from tabweave.apps.report import describe
        from tabweave.apps.studio import create_app
        with TestClient(create_app(token="t"), base_url="http://127.0.0.1") as client:
            page = client.get("/?token=t").text
        assert '"gap": "values differ' in page or '"gap":"values differ' in page
        assert '"rarity": "one-hot, where' in page or '"rarity":"one-hot, where' in page
        rows = {"color": list("aabbc") * 4, "size": list("xyxyx") * 4}
        assert describe(rows, method="rarity")["method"] == "Rarity"
        assert describe(rows, method="gap")["method"] == "ValueMetric('gap')"
        """,
    )


def test_files_hold_both(copy):
    python(
        copy,
        """
        import numpy as np, tabweave
        rows = [["a", "x"], ["a", "y"], ["b", "y"]]
        for model in (tabweave.Rarity(power=1), tabweave.ValueMetric("gap")):
            model.fit(rows).save("model.tabweave")
            again = tabweave.load("model.tabweave")
            assert type(again) is type(model)
            np.testing.assert_array_equal(again.transform(rows), model.transform(rows))
        """,
    )


def test_the_docs_show_both(copy):
    python(
        copy,
        """
        import sys; sys.path.insert(0, "docs")
        import _pages
        assert _pages.DOCS / "systems" / "rarity.md" in _pages.shown_pages()
        table = _pages.methods("")
        assert "[`Rarity`](systems/rarity.md), `rarity` | one-hot, where" in table
        assert '`ValueMetric("gap")` | values differ' in table
        assert "tabweave.Rarity" in _pages.public()
        """,
    )


@pytest.mark.slow
def test_the_suite_finds_both_and_is_green(copy):
    def tested(*words):
        return run(copy, "-m", "pytest", "-vv", "--color=no", "-p", "no:cacheprovider", *words)

    every = ("tests/measures/test_register.py", "tests/test_common.py", "tests/io/test_store.py")
    found = tested(*every, "-k", "gap or rarity or Rarity")
    assert found.count("[gap") > 20
    assert found.count("test_sklearn[Rarity()-check_") > 30
    assert "test_fitted[Rarity]" in found
    own = ("tests/measures/test_gap.py", "tests/embed/test_rarity.py", "docs/systems/rarity.md")
    lists = ("tests/test_import.py", "tests/test_docs.py", "tests/test_house.py")
    where = ("tests/io/test_register.py", "tests/apps/cli/test_complete.py")
    tested(*own, "src/tabweave/embed/rarity.py", *lists, *where)


PLACES = """
        import numpy as np, tabweave as tw
        rng = np.random.default_rng(0)
        towns = rng.integers(0, 3, 200)
        centres = np.array([[48.9, 2.4], [52.5, 13.4], [-33.9, 151.2]])
        points = centres[towns] + rng.normal(0, 1, (200, 2))
        place = [f"{lat:.4f}, {lon:.4f}" for lat, lon in points.tolist()]
        rows = {"place": [None, *place[1:]], "food": np.array(["baguette", "wurst", "pie"])[towns]}
        rows["price"] = rng.normal(10 + towns, 1)
        schema = {"place": "geographic"}
        model = tw.Weave(schema=schema).fit(rows)
"""


def test_a_kind_is_counted_embedded_explained_searched_and_saved(copy):
    python(
        copy,
        PLACES
        + """
        table = tw.Table.of(rows, schema)
        assert table.kinds()[0].kind == "geographic"
        counts = tw.Counts.of(table)
        halves = [{n: c[i::2] for n, c in rows.items()} for i in (0, 1)]
        first, second = (tw.Counts.of(tw.Table.of(half, schema)) for half in halves)
        assert first + second == counts and len(counts.names) == 5
        vectors = model.transform(rows)
        assert np.isfinite(vectors).all()
        shares = model.explain(*({n: c[i] for n, c in rows.items()} for i in (1, 2)))
        assert list(shares) == ["place", "food", "price"]
        model.save("model.tabweave")
        np.testing.assert_array_equal(tw.load("model.tabweave").transform(rows), vectors)
        index = tw.SimilarityIndex(tw.Weave(schema=schema)).fit(rows)
        nearest = index.query(rows, 1)[0][:, 0]
        assert np.array_equal(nearest, np.arange(200))
        index.save("index.tabweave")
        assert np.array_equal(tw.load("index.tabweave").query(rows, 1)[0][:, 0], nearest)
        alone = {n: rows[n] for n in ("place", "price")}
        classifier = tw.WeaveClassifier(schema=schema).fit(alone, rows["food"])
        assert classifier.score(alone, rows["food"]) > 0.9
        """,
    )


def test_a_kind_is_filled_judged_and_compared(copy):
    python(
        copy,
        PLACES
        + """
        names = np.array(["49, 2", "53, 13", "-34, 151"])
        rows["place"] = [None, *names[towns].tolist()[1:]]
        imputer = tw.Imputer(schema=schema).fit(rows)
        assert imputer.transform(rows)["place"][0] == names[towns[0]]
        assert set(imputer.categories("place")) == set(names)
        odd = {name: list(cells) for name, cells in rows.items()}
        odd["place"][5] = names[towns[5] - 1]
        assert tw.OutlierCells(schema=schema).fit_cells(odd)[0].row == 5
        assert tw.associations(rows, schema=schema).matrix().loc["place", "food"] > 0.9
        moved = rows | {"place": rows["place"][:100] + ["49, 2"] * 100}
        assert "place" in tw.tasks.drift_report(tw.Table.of(rows, schema), moved).changed
        """,
    )


def test_a_kind_is_exported_to_sql(copy):
    pytest.importorskip("duckdb", reason="SQL is run by DuckDB")
    pytest.importorskip("pyarrow", reason="rows come to DuckDB as Arrow")
    python(
        copy,
        PLACES
        + """
        import duckdb, pyarrow
        script, database = tw.export.sql(model, "duckdb"), duckdb.connect()
        database.register("frame", pyarrow.table({n: list(c) for n, c in rows.items()}))
        database.execute("CREATE TABLE rows AS SELECT * FROM frame")
        for statement in script.statements:
            database.execute(statement)
        found = np.array(database.execute(script.select).fetchall(), float)
        np.testing.assert_allclose(found, model.transform(rows), atol=1e-9)
        """,
    )


def test_a_kind_is_shown_by_reports_and_the_command_line(copy):
    python(
        copy,
        PLACES
        + """
        import csv
        from tabweave.apps.report import describe
        described = describe(tw.Table.of(rows, schema))
        assert [c["kind"] for c in described["columns"]] == ["geographic", "nominal", "numeric"]
        with open("places.csv", "w", newline="") as file:
            csv.writer(file).writerows([rows, *zip(*rows.values(), strict=True)])
        """,
    )
    kind = ("--kind", "place=geographic")
    assert "geographic" in tabweave(copy, "kinds", "places.csv", *kind)
    assert "place" in tabweave(copy, "neighbors", "places.csv", *kind, "--row", "3")
    tabweave(copy, "embed", "places.csv", *kind, "-o", "places-vectors.csv")
