"""The other commands: what they say is what the library computes, and files hold it."""

import csv
import io
import json
import re

import numpy as np
import pandas as pd
import pytest

import tabweave
from tabweave import WeaveClassifier
from tabweave.engines import read

from .conftest import called


def told(*words, cwd):
    done = called(*words, "--json", cwd=cwd)
    assert done.code == 0, done.err
    return json.loads(done.out)


def shop(folder):
    return read(str(folder / "shop.csv")).drop_columns(["sku"])


def test_neighbors_are_the_nearest_of_all_rows(folder):
    found = told("neighbors", "shop.csv", "--row", "17", "-k", "6", "--drop", "sku", cwd=folder)
    rows = shop(folder)
    distances = tabweave.Weave().fit(rows).pairwise_distances(rows)[17]
    distances[17] = np.inf
    nearest = [(n["row"], n["distance"]) for n in found["neighbors"]]
    each = np.repeat([d for _, d in nearest], [n["equal_rows"] for n in found["neighbors"]])
    assert len(each) > 6  # rows that are equal stand as one
    np.testing.assert_allclose(each, np.sort(distances)[: len(each)], rtol=1e-5)
    np.testing.assert_allclose([distances[r] for r, _ in nearest], [d for _, d in nearest], 1e-5)
    for near in found["neighbors"]:
        np.testing.assert_allclose(sum(near["why"].values()), near["distance"] ** 2, rtol=1e-4)
        assert near["values"]["sku"] == f"sku{near['row']:02d}"


def test_a_described_row_counts_by_the_columns_it_names(folder):
    words = ["shop.csv", "--drop", "sku", "--like", "drink=tea, price=2.0", "-k", "24"]
    found = told("neighbors", *words, cwd=folder)
    assert found["query"] == {"drink": "tea", "price": 2.0}
    assert set(found["neighbors"][0]["why"]) == {"drink", "price"}
    drinks = [(n["values"]["drink"], n["equal_rows"]) for n in found["neighbors"]]
    n_tea = sum(n for drink, n in drinks if drink == "tea")
    assert n_tea == shop(folder)["drink"].to_pylist().count("tea")
    only = told("neighbors", *words, "--where", "served=hot", cwd=folder)["neighbors"]
    assert {n["values"]["served"] for n in only} == {"hot"}
    n_hot = shop(folder)["served"].to_pylist().count("hot")
    assert sum(n["equal_rows"] for n in only) == n_hot
    for where in ("price=1000", "drink=tea,served=cold,price=9"):
        none = called("neighbors", *words, "--where", where, cwd=folder)
        assert (none.code, none.err.count("\n")) == (1, 1), none
        assert where in none.err


def test_shares_add_up_to_the_distance(folder):
    for method, power in (("auto", 2), ("hierarchy", 1), ("goodall3", 1)):
        drop = "sku" if power == 2 else "sku,price"
        words = ["shop.csv", "-a", "0", "-b", "1", "--drop", drop, "-m", method]
        found = told("explain", *words, cwd=folder)
        shares = [column["share"] for column in found["columns"].values()]
        np.testing.assert_allclose(sum(shares), found["distance"] ** power, rtol=1e-4)
    refused = called("explain", "shop.csv", "-a", "0", "-b", "1", "-m", "drdh", cwd=folder)
    assert refused.code == 1


def test_clusters_in_the_file_are_those_described(folder):
    words = ["titanic.csv", "-k", "4", "-t", "fate", "-o", "c.parquet"]
    found = told("cluster", *words, cwd=folder)
    table = read(str(folder / "c.parquet"))
    assert table.column_names == ["status", "age", "sex", "fate", "cluster"]
    labels = table["cluster"].to_numpy()
    sizes = np.bincount(labels).tolist()
    assert [c["size"] for c in found["clusters"]] == sizes == sorted(sizes, reverse=True)
    kinds = {tuple(row.values()) for row in table.drop_columns(["fate"]).to_pylist()}
    assert len({kind[:-1] for kind in kinds}) == len(kinds)  # equal rows lie together
    assert told("cluster", *words, "-f", cwd=folder) == found
    again = called("cluster", "c.parquet", "-k", "2", "-o", "-", "--drop", "cluster", cwd=folder)
    assert again.out.splitlines()[0].replace('"', "").endswith("fate,cluster,cluster_")


def test_a_map_is_drawn_in_many_ways(folder):
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "html": b"<!doctype html>"}
    for kind, start in starts.items():
        done = called("map", "shop.csv", "--drop", "sku", "-o", f"m.{kind}", cwd=folder)
        assert done.code == 0, done.err
        assert (folder / f"m.{kind}").read_bytes().startswith(start)
    page = (folder / "m.html").read_text()
    assert "<title>shop.csv by Weave</title>" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    content = json.loads(page.split('id="data">')[1].split("</script>")[0])["map"]
    assert content["of"] == len(content["layouts"][0]["points"]) == 24
    assert [c["name"] for c in content["columns"]] == ["drink", "sku", "served", "made_of", "price"]
    drink = content["columns"][0]
    named = [drink["labels"][code] for code in drink["codes"]]
    assert named == shop(folder)["drink"].to_pylist()
    assert called("map", "shop.csv", "-o", "m.doc", cwd=folder).code == 2


def test_a_map_is_coloured_by_what_a_column_holds_not_by_how_it_is_written(tmp_path):
    lines = [f"€{1000 + 7 * i}.50,{1 + i % 28:02}.03.2024,{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "pay.csv").write_text("\n".join(["pay,day,kind", *lines]))
    done = called("map", "pay.csv", "--color", "pay", "-o", "m.html", cwd=tmp_path)
    assert done.code == 0, done.err
    page = (tmp_path / "m.html").read_text()
    content = json.loads(page.split('id="data">')[1].split("</script>")[0])["map"]
    pay, day, _ = content["columns"]
    assert pay["numbers"][:2] == [1000.5, 1007.5] and day["texts"][0] == "2024-03-01"
    done = called("map", "pay.csv", "--color", "pay", "-o", "m.svg", cwd=tmp_path)
    drawn = (tmp_path / "m.svg").read_text()
    ticks = [drawn.index(f"<!-- {pounds} -->") for pounds in (1100, 1200, 1300)]  # of a colour bar
    assert ticks == sorted(ticks) and "<!-- pay -->" in drawn and "others" not in drawn
    assert called("map", "pay.csv", "--color", "day", "-o", "d.svg", cwd=tmp_path).code == 0
    assert "<!-- 2024-Mar -->" in (tmp_path / "d.svg").read_text()


def test_report_cluster_and_map_have_the_same_clusters(folder):
    sizes = []
    for words in (
        ["cluster", "titanic.csv", "-t", "fate", "--json"],
        ["report", "titanic.csv", "-t", "fate", "--json"],
    ):
        found = json.loads(called(*words, cwd=folder).out)["clusters"]
        groups = found if isinstance(found, list) else found["groups"]
        sizes.append([(group["size"], group["values"][:2]) for group in groups])
    assert called("map", "titanic.csv", "-t", "fate", "-o", "same.html", cwd=folder).code == 0
    page = (folder / "same.html").read_text()
    groups = json.loads(page.split('id="data">')[1].split("</script>")[0])["clusters"]["groups"]
    sizes.append([(group["size"], group["values"][:2]) for group in groups])
    assert sizes[0] == sizes[1] == sizes[2]


def test_a_map_as_a_table_keeps_the_plane_of_most_variance(folder):
    done = called("map", "shop.csv", "--drop", "sku", "-o", "m.csv", cwd=folder)
    assert done.code == 0, done.err
    found = read(str(folder / "m.csv"))
    plane = np.column_stack([found["map0"].to_numpy(), found["map1"].to_numpy()])
    vectors = tabweave.Weave().fit_transform(shop(folder))
    values = np.linalg.eigvalsh(np.cov(vectors.T))[::-1]
    np.testing.assert_allclose(np.cov(plane.T), np.diag(values[:2]), atol=1e-9)


@pytest.mark.slow
def test_a_map_of_neighbourhoods(folder):
    pytest.importorskip("openTSNE", reason="t-SNE is the extra tabweave[map]")
    done = called("map", "titanic.csv", "--layout", "tsne", "-o", "m.html", cwd=folder)
    assert done.code == 0, done.err


def test_drift_says_which_table_lacks_a_column(tmp_path):
    (tmp_path / "old.csv").write_text("a,b\n" + "x,1\n" * 2)
    (tmp_path / "new.csv").write_text("a,c,d\n" + "x,1,2\n" * 2)
    done = called("drift", "old.csv", "new.csv", "--check", cwd=tmp_path)
    assert done.code == 3  # a column that is gone is a change
    assert "only OLD has 'b'; not compared" in done.err
    assert "only NEW has 'c', 'd'; not compared" in done.err
    found = told("drift", "old.csv", "new.csv", "--columns", "a", cwd=tmp_path)
    assert (found["gone"], found["new"]) == ([], [])
    found = told("drift", "old.csv", "new.csv", "--drop", "b", cwd=tmp_path)
    assert (found["gone"], found["new"]) == ([], ["c", "d"])
    (tmp_path / "other.csv").write_text("z\nx\n")
    done = called("drift", "old.csv", "other.csv", cwd=tmp_path)
    assert (done.code, "expected tables that share columns" in done.err) == (1, True)


def test_rows_that_do_not_differ_cannot_be_clustered(tmp_path):
    (tmp_path / "same.csv").write_text("a\nx\nx\nx\n")
    done = called("cluster", "same.csv", "-k", "2", cwd=tmp_path)
    assert (done.code, "got the same values in every row" in done.err) == (1, True)


def test_the_columns_of_a_map_are_named_as_no_other(tmp_path):
    (tmp_path / "rows.csv").write_text("map0,b\n" + "x,1\ny,2\nz,4\n" * 5)
    assert called("map", "rows.csv", "-o", "m.csv", cwd=tmp_path).code == 0
    assert list(read(tmp_path / "m.csv").column_names) == ["map0", "b", "map_0", "map_1"]


def test_more_clusters_than_different_rows_are_refused(tmp_path):
    (tmp_path / "few.csv").write_text("a\n" + "x\ny\nz\n" * 5)
    done = called("cluster", "few.csv", "-k", "4", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert done.err == ("tabweave: --clusters: expected fewer than the 3 different rows, got 4\n")


def test_names_and_values_may_be_typed_without_the_blanks_around_them(tmp_path):
    lines = [f"{'ab'[i % 2]}, {'xyz'[i % 3]}, {i * i}" for i in range(30)]
    (tmp_path / "adult.csv").write_text("\n".join(["class, work, hours", *lines]))
    words = ("adult.csv", "-c", "class,work", "--json")
    (near,) = told("neighbors", *words, "--like", "work=y", "-k", "1", cwd=tmp_path)["neighbors"]
    assert near["values"][" work"] == " y"
    found = told("neighbors", *words, "--row", "0", "--where", "work=z", cwd=tmp_path)["neighbors"]
    assert {n["values"][" work"] for n in found} == {" z"}
    kinds = told("kinds", "adult.csv", "--drop", "class", "--kind", "hours=nominal", cwd=tmp_path)
    assert [(c["column"], c["why"]) for c in kinds["columns"]] == [
        (" work", "values"),
        (" hours", "declared"),
    ]


def test_drift_names_what_changed(folder):
    found = told("drift", "even.csv", "odd.csv", cwd=folder)
    assert found["changed"] == ["sex"]
    assert {c["name"] for c in found["columns"]} == {"status", "age", "sex", "fate"}


def test_text_that_looks_like_numbers_in_one_file_only_still_compares(folder):
    (folder / "old.csv").write_text("code\n" + "1\n2\nx\n" * 20)
    (folder / "new.csv").write_text("code\n" + "1\n2\n" * 30)
    found = told("drift", "old.csv", "new.csv", cwd=folder)
    assert found["changed"] == ["code"]


def test_a_report_is_one_page(folder):
    words = ["report", "titanic.csv", "-t", "fate"]
    assert called(*words, "-o", "r.html", cwd=folder).code == 0
    assert (folder / "r.html").read_text().lower().startswith("<!doctype html>")
    assert called(*words, "-o", "r.html", cwd=folder).code == 2
    found = told(*words, cwd=folder)
    assert found["rows"] == 2201
    assert not (folder / "report.html").exists()


def test_a_report_and_a_map_are_named_after_their_table(folder):
    for command in ("report", "map"):
        assert called(command, folder / "shop.csv", "-o", "named.html", "-f", cwd=folder).code == 0
        assert "<h1>shop.csv" in (folder / "named.html").read_text(encoding="utf-8")
    piped = (folder / "shop.csv").read_text()
    page = called("report", "-", "-o", "-", cwd=folder, stdin=piped).out
    assert "<h1>standard input</h1>" in page


def test_a_description_that_cannot_be_read_is_refused_before_any_work(folder):
    for option in ("--like", "--where"):
        words = ["nowhere.csv", option, "served"] + (["--row", "0"] if option == "--where" else [])
        done = called("neighbors", *words, cwd=folder)
        assert (done.code, done.out) == (2, "")
        assert (
            done.err
            == f"tabweave: {option}: expected COLUMN=VALUE, such as color=red, got 'served'\n"
        )


def test_one_row_is_no_group_and_not_many(tmp_path):
    (tmp_path / "one.csv").write_text("a,b\n1,x\n")
    done = called("cluster", "one.csv", cwd=tmp_path)
    assert (done.code, done.err) == (
        1, "tabweave: 'one.csv': expected at least 2 rows to cluster, got 1\n"
    )  # fmt: skip
    assert called("fill", "one.csv", cwd=tmp_path).out == "0 cells of 1 row filled\n"
    assert called("odd", "one.csv", cwd=tmp_path).out == "Odd at level 0.01: 0 of 1 row\n"


def test_odd_says_how_many_rows_would_be_odd_by_chance(tmp_path):
    (tmp_path / "coins.csv").write_text("a,b\n" + "h,h\nh,t\nt,h\nt,t\n" * 50)
    last = called("odd", "coins.csv", "--level", "0.02", cwd=tmp_path).out.splitlines()[-1]
    assert re.fullmatch(
        r"Odd at level 0.02: \d+ of 200 rows; about 4 expected by chance alone", last
    )


def test_the_studio_is_not_started_for_what_is_no_table(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"x")
    done = called("studio", "model.bin", "--no-browser", cwd=tmp_path)
    assert done.code == 1
    assert done.err.startswith("tabweave: expected a table that ends in .csv")


def test_exports_embed_as_the_model_does(folder):
    duckdb = pytest.importorskip("duckdb")
    words = ["embed", "shop.csv", "--drop", "sku", "-o", "v.parquet", "--save", "m.tabweave"]
    assert called(*words, cwd=folder).code == 0
    done = called("export", "m.tabweave", "--sql", "--table", "shop", "-o", "m.sql", cwd=folder)
    assert done.code == 0, done.err
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE shop AS FROM '{folder}/shop.csv'")
    statements = (folder / "m.sql").read_text()
    found = connection.execute(statements).fetchall()
    vectors = np.array([list(row.values()) for row in read(str(folder / "v.parquet")).to_pylist()])
    order = np.lexsort(vectors.round(9).T), np.lexsort(np.array(found).round(9).T)
    np.testing.assert_allclose(np.array(found)[order[1]], vectors[order[0]], atol=1e-12)
    assert called("export", "m.tabweave", "-o", "t.parquet", cwd=folder).code == 0
    assert called("export", "m.tabweave", "--onnx", cwd=folder).code == 2  # to which file?


def test_an_onnx_export_runs(folder):
    runtime = pytest.importorskip("onnxruntime", reason="ONNX is the extra tabweave[export]")
    words = ["embed", "titanic.csv", "-t", "fate", "-o", "v.csv", "--save", "m.tabweave"]
    assert called(*words, cwd=folder).code == 0
    assert called("export", "m.tabweave", "-o", "m.onnx", cwd=folder).code == 0
    session = runtime.InferenceSession(folder / "m.onnx")
    assert [i.name for i in session.get_inputs()] == ["status", "age", "sex"]


def test_an_option_given_twice_adds_up(folder):
    words = ("neighbors", "shop.csv", "--drop", "sku", "-k", "24")
    once = told(
        *words, "--like", "drink=tea,price=2.0", "--where", "served=hot,price=1..3", cwd=folder
    )
    twice = told(
        *words, *("--like", "drink=tea", "--like", "price=2.0"),
        *("--where", "served=hot", "--where", "price=1..3"), cwd=folder,
    )  # fmt: skip
    assert once == twice and set(once["query"]) == {"drink", "price"}
    same = called(*words, "--like", "drink=tea", "--like", "drink=milk", cwd=folder)
    assert same.code == 2 and "expected each column once, got 'drink' twice" in same.err
    fewer = called("embed", "shop.csv", "--drop", "sku", "--drop", "price", "-o", "-", cwd=folder)
    assert fewer.code == 0 and "price" not in fewer.out.partition("\n")[0]
    kept = called("embed", "shop.csv", "--keep", "sku", "--keep", "price", "-o", "-", cwd=folder)
    assert kept.out.startswith('"sku","price",')


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_neighbors_in_a_range_of_days_and_of_money(folder, ending):
    days = [f"2024-01-{1 + i // 2:02} {12 * (i % 2):02}:00:00" for i in range(40)]
    lines = [f"{day},{5 * i} €,{i % 3}" for i, day in enumerate(days)]
    (folder / "sales.csv").write_text("\n".join(["when,price,shop", *lines]), encoding="utf-8")
    if ending == "parquet":
        import pandas as pd

        sales = pd.read_csv(folder / "sales.csv", parse_dates=["when"])
        sales.to_parquet(folder / "sales.parquet")
    words = ("neighbors", f"sales.{ending}", "--row", "0", "-k", "50")
    for where, rows in (
        ("when=2024-01-03..2024-01-04", [4, 5, 6, 7]),
        ("when=2024-01-03", [4, 5]),
        ("price=9..40", [2, 3, 4, 5, 6, 7, 8]),
        ("price=185 €..", [37, 38, 39]),
    ):
        found = told(*words, "--where", where, cwd=folder)["neighbors"]
        assert sorted(n["row"] for n in found) == rows, where


def test_neighbors_in_a_range_and_within_a_radius(folder):
    words = ("neighbors", "shop.csv", "--row", "17", "-k", "100", "--drop", "sku")
    everyone = told(*words, cwd=folder)["neighbors"]
    assert [n["nearer"] for n in everyone] == sorted(n["nearer"] for n in everyone)
    dear = told(*words, "--where", "price=3.5..", cwd=folder)["neighbors"]
    assert dear and {n["row"] for n in dear} == {
        n["row"] for n in everyone if (n["values"]["price"] or 0) >= 3.5
    }
    some = told(*words, "--where", "price=2..3,served=hot..hot", cwd=folder)["neighbors"]
    assert all(2 <= n["values"]["price"] <= 3 and n["values"]["served"] == "hot" for n in some)
    radius = everyone[2]["distance"]
    near = told(*words, "--radius", str(radius + 1e-6), cwd=folder)["neighbors"]  # it is rounded
    assert [n["row"] for n in near] == [n["row"] for n in everyone if n["distance"] <= radius]


def test_names_and_values_with_a_comma_go_in_double_quotes(tmp_path):
    rows = [f"{a},{b},{i}" for i, (a, b) in enumerate([("x", '"1,000"'), ("y", '"2,500"')] * 20)]
    (tmp_path / "rows.csv").write_text("\n".join(['"kind, of sorts",pay,n', *rows]))
    done = told("neighbors", "rows.csv", "--like", '"pay=1,000"', "-k", "1", cwd=tmp_path)
    assert done["query"] == {"pay": "1,000"}
    refused = called("neighbors", "rows.csv", "--like", "n=3,pay=1,000", cwd=tmp_path)
    assert refused.code == 2 and """as in --like '"pay=1,000"'""" in refused.err
    done = called(
        "explain", "rows.csv", "-a", "0", "-b", "1", "--drop", '"kind, of sorts",n', cwd=tmp_path
    )
    assert done.code == 0 and "of sorts" not in done.out and "pay" in done.out
    refused = called("kinds", "rows.csv", "--drop", "kind, of sorts", cwd=tmp_path)
    assert refused.code == 1 and "a name with a comma in double quotes" in refused.err


def test_rows_that_a_model_cannot_read_are_told_what_it_needs(folder):
    words = ("titanic.csv", "-t", "fate", "-o", "v.csv", "--save", "m.tabweave")
    assert called("embed", *words, cwd=folder).code == 0
    done = called("embed", "shop.csv", "--model", "m.tabweave", "-o", "w.csv", cwd=folder)
    assert (
        done.code == 1 and "shop.csv: expected the columns that 'm.tabweave' was fitted" in done.err
    )
    assert "'status', 'age', 'sex'; the columns are 'sku', 'drink'" in done.err


def test_lists_are_shown_as_people_write_them(tmp_path):
    rows = [{"tags": ["new", "red"] if i % 2 else ["old"], "n": i % 5} for i in range(20)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    shown = called("explain", "rows.json", "-a", "0", "-b", "1", cwd=tmp_path).out
    assert "new, red" in shown and "[" not in shown


def test_neighbors_of_a_set_are_asked_for_by_its_elements(tmp_path):
    marks = [";".join("abc"[: 1 + i % 3]) for i in range(30)]
    (tmp_path / "t.csv").write_text(
        "\n".join(["tags,n", *(f"{m},{i}" for i, m in enumerate(marks))])
    )
    words = ("neighbors", "t.csv", "--kind", "tags=set:;", "-k", "30")
    for written in ("a|b", "a;b"):
        found = told(*words, "--like", f"tags={written}", cwd=tmp_path)
        assert found["query"] == {"tags": "a;b"} and found["neighbors"][0]["distance"] == 0
    found = told(*words, "--row", "0", "--where", "tags=b|c", cwd=tmp_path)["neighbors"]
    assert [n["equal_rows"] for n in found] == [10, 10]
    assert all("b" in n["values"]["tags"] for n in found)
    rows = [{"tags": m.split(";"), "n": i} for i, m in enumerate(marks)]
    (tmp_path / "t.json").write_text(json.dumps(rows))
    found = told("neighbors", "t.json", "--like", "tags=b|a", cwd=tmp_path)
    assert found["query"] == {"tags": ["b", "a"]} and found["neighbors"][0]["distance"] == 0


def test_a_range_that_cannot_be_is_said(folder):
    words = ("neighbors", "shop.csv", "--row", "1", "--where")
    for where, code, why in (
        ("price=..", 2, "--where price=..: expected a lower or an upper bound, got neither"),
        ("price=4..3", 2, "--where price=4..3: expected the lower bound first"),
        ("price=x..3", 1, "column 'price': expected a number, got 'x'"),
    ):
        refused = called(*words, where, cwd=folder)
        assert refused.code == code and refused.err.endswith(f"tabweave: {why}\n")


def test_odd_says_that_it_learned_from_some_of_many_rows(tmp_path):
    rows = "\n".join(["a,b", *(f"{i % 7},{'xyz'[i % 3]}" for i in range(20_100))])
    (tmp_path / "many.csv").write_text(rows)
    done = called("odd", "many.csv", cwd=tmp_path)
    said = "learned from 20,000 of 20,100 rows, drawn evenly; all rows are judged"
    assert done.code == 0 and said in done.err


def test_no_cell_is_called_odd_that_is_not(tmp_path):
    (tmp_path / "few.csv").write_text("\n".join(["colour", *["red", "green", "blue"] * 10]))
    done = called("odd", "few.csv", cwd=tmp_path)
    assert done.out == "Odd at level 0.01: 0 of 30 rows\n"
    assert "30 rows are too few to find odd cells at level 0.01; try --level 0.05" in done.err


def test_rows_are_called_by_the_column_that_has_their_ids(folder):
    words = ("neighbors", "shop.csv", "-k", "6", "--id", "sku")
    rows = list(csv.DictReader((folder / "shop.csv").read_text("utf8").splitlines()))
    found = told(*words, "--row", rows[17]["sku"], cwd=folder)
    plain = told("neighbors", "shop.csv", "--row", "17", "-k", "6", "--drop", "sku", cwd=folder)
    assert "sku" not in found["query"] and found["query"] == plain["query"]
    for near, other in zip(found["neighbors"], plain["neighbors"], strict=True):
        assert near == {"id": rows[other["row"]]["sku"], **other}
    shown = called(*words, "--row", rows[17]["sku"], cwd=folder).out
    assert f"most similar to row {rows[17]['sku']}" in shown
    assert all(near["id"] in shown for near in found["neighbors"])
    ids = rows[3]["sku"], rows[8]["sku"]
    why = told("explain", "shop.csv", "-a", ids[0], "-b", ids[1], "--id", "sku", cwd=folder)
    numbered = told("explain", "shop.csv", "-a", "3", "-b", "8", "--drop", "sku", cwd=folder)
    assert tuple(why.pop("ids")) == ids and why == numbered
    done = called(*words, "--row", rows[17]["sku"] + "x", cwd=folder)
    assert done.code == 1 and "expected the id of one row" in done.err
    assert f"did you mean '{rows[17]['sku']}'" in done.err


def test_odd_cells_are_called_by_the_column_that_has_the_ids_of_rows(tmp_path):
    city, country = ["Paris", "Santiago"] * 100, ["France", "Chile"] * 100
    country[42] = "Chile"
    lines = [f"K{i:03},{a},{b}" for i, (a, b) in enumerate(zip(city, country, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(["key,city,country", *lines]), encoding="utf-8")
    found = told("odd", "t.csv", "--id", "key", cwd=tmp_path)["cells"][0]
    assert (found["row"], found["position"]) == ("K042", 42)
    assert "row K042:" in called("odd", "t.csv", "--id", "key", cwd=tmp_path).out


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Names, of which two are there twice, misspelled; whether someone is old, and pay."""
    first = "Anna Peter Marta Jonas Ingrid Paul Clara Otto Helga Erik Nina Karl".split()
    last = "Schmidt Larsen Moreau Rossi Novak Keller Weber Fischer Olsen Petit Kral".split()
    born = [*range(1950, 2016), *range(1950, 2016), 1950, 1966]
    rows = pd.DataFrame(
        {
            "name": [*(f"{a} {b}" for a in first for b in last), "Ana Schmidt", "OTTO KELER"],
            "city": [*["Oslo", "Bergen", "Rome", "Paris"] * 33, "Oslo", "Rome"],
            "born": born,
        }
    )
    out = tmp_path_factory.mktemp("people")
    rows.to_csv(out / "rows.csv", index=False)
    rows["old"] = np.where(rows["born"] < 1980, "yes", "no")
    rows["pay"] = 1.5 * rows["born"] + 0.25
    rows[:90].to_csv(out / "train.csv", index=False)
    rows[90:].drop(columns="old").to_csv(out / "test.csv", index=False)
    rows[90:].to_csv(out / "known.csv", index=False)
    return out


def test_planted_duplicates_come_first(people):
    words = ["duplicates", "rows.csv", "--json"]
    for more in ([], ["--radius", "0.8"]):
        done = called(*words, *more, cwd=people)
        assert done.code == 0, done.err
        pairs = json.loads(done.out)["pairs"]
        assert [(p["first"], p["second"]) for p in pairs[:2]] == [("0", "132"), ("82", "133")]
        assert max(pairs[0]["why"], key=pairs[0]["why"].get) == "name"
    assert len(pairs) == 2
    done = called("duplicates", "rows.csv", "--radius", "0.8", "-o", "pairs.csv", cwd=people)
    assert done.code == 0 and "2 of 2 pairs" in done.out, done.err
    written = pd.read_csv(people / "pairs.csv")
    assert written["second"].tolist() == [132, 133]
    assert written["differs in"].str.startswith("name").all()


def test_predictions_are_those_of_the_library(people):
    words = ["predict", "train.csv", "test.csv", "--target", "old", "--drop", "pay,name"]
    done = called(*words, "-o", "out.csv", cwd=people)
    assert (done.code, done.out) == (0, "44 rows predicted, written to out.csv\n"), done.err
    train, known, found = (pd.read_csv(people / f"{n}.csv") for n in ("train", "known", "out"))
    assert len(found) == len(known) and (found["born"] == known["born"]).all()
    assert (found["predicted old"] == known["old"]).mean() > 0.9
    model = WeaveClassifier(random_state=0).fit(train[["city", "born"]], train["old"])
    expected = model.predict_proba(known[["city", "born"]])
    for i, label in enumerate(model.classes_):
        np.testing.assert_allclose(found[f"probability of {label}"], expected[:, i], atol=1e-6)


def test_numbers_are_predicted_without_probabilities(people):
    words = [
        "predict",
        "train.csv",
        "known.csv",
        "--target",
        "pay",
        "--drop",
        "old,name",
        "-o",
        "-",
    ]
    done = called(*words, cwd=people)
    assert done.code == 0, done.err
    found = pd.read_csv(io.StringIO(done.out))
    assert list(found) == ["name", "city", "born", "old", "predicted pay"]
    known = pd.read_csv(people / "known.csv")
    assert np.corrcoef(found["predicted pay"], known["pay"])[0, 1] > 0.95


def test_what_cannot_be_predicted_is_said(people):
    assert "--target" in called("predict", "train.csv", "test.csv", cwd=people).err
    lacking = called("predict", "train.csv", "rows.csv", "--target", "old", cwd=people).err
    assert "column not found: 'pay'" in lacking


def test_words_for_missing_count_in_both_tables(people):
    train, test = (pd.read_csv(people / f"{n}.csv") for n in ("train", "test"))
    for rows, word, name in ((train, "?", "train"), (test, "none", "test")):
        words = rows.assign(born=rows["born"].astype(str))
        words.loc[[3, 7], "born"] = word
        words.loc[3, "city"] = word
        words.to_csv(people / f"{name}-words.csv", index=False)
        words.replace(word, None).to_csv(people / f"{name}-gaps.csv", index=False)
    options = ["--target", "old", "--drop", "pay,name", "-o", "-"]
    said = called("predict", "train-words.csv", "test-words.csv", *options, "--missing", "?,none",
                  cwd=people)  # fmt: skip
    plain = called("predict", "train-gaps.csv", "test-gaps.csv", *options, cwd=people)
    assert said.code == plain.code == 0, said.err
    columns = [pd.read_csv(io.StringIO(done.out)).filter(like="old") for done in (said, plain)]
    pd.testing.assert_frame_equal(*columns)
    wrong = called("drift", "train-words.csv", "test-words.csv", "--missing", "??", cwd=people)
    assert (
        wrong.code == 0
        and "test-words.csv: no cell of a categorical column holds '??'" in wrong.err
    )
    found = told("drift", "train-words.csv", "test-words.csv", "--missing", "?,none", cwd=people)
    assert found["kinds"] == {}


def test_both_tables_are_read_as_declared(tmp_path):
    codes = ["007", "7", "08", "9"] * 10
    rows = [f"{code},{'yes' if code == '007' else 'no'}" for code in codes]
    (tmp_path / "train.csv").write_text("\n".join(["code,y", *rows]))
    (tmp_path / "test.csv").write_text("code\n7\n9\n7\n")
    words = ["train.csv", "test.csv", "--target", "y", "--kind", "code=nominal", "--json"]
    done = called("predict", *words, cwd=tmp_path)
    assert done.code == 0 and done.err == "", done.err
    assert json.loads(done.out)["predictions"]["predicted y"] == ["no"] * 3


def test_like_takes_the_nearest_spelled_value(people):
    done = called("neighbors", "rows.csv", "--like", "name=otto kel", "--json", cwd=people)
    assert done.code == 0 and "taken for the nearest spelled, 'OTTO KELER'" in done.err, done.err
    assert json.loads(done.out)["query"] == {"name": "OTTO KELER"}
    nothing = called("neighbors", "rows.csv", "--like", "name=qqqq", cwd=people)
    assert nothing.code == 1 and "has no value 'qqqq'" in nothing.err


def test_like_takes_a_value_in_any_case(people):
    found = told("neighbors", "rows.csv", "--like", "city=oslo", cwd=people)
    assert found["query"] == {"city": "Oslo"}


def test_an_encoding_can_be_given(people):
    (people / "east.csv").write_bytes("a,b\nŁódź,x\nKraków,y\n".encode("cp1250"))
    words = ["embed", "east.csv", "--method", "onehot", "-o", "-"]
    done = called(*words, "--encoding", "cp1250", cwd=people)
    assert done.code == 0 and "a_Łódź" in done.out, done.err
