"""``tabweave embed``: the vectors of the library, whatever the rows come from or go to."""

import csv
import gzip
import json
import stat
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.spatial.distance import pdist

import tabweave
from tabweave.apps.methods import embedders, learns_from_classes, offered
from tabweave.embed import EMBEDDERS
from tabweave.embed.base import ValueEmbedder
from tabweave.engines import read
from tabweave.measures import MEASURES

from .conftest import called, process

SOURCES = [f"titanic.{kind}" for kind in ("csv", "tsv", "parquet", "json", "jsonl", "arrow")]


def vectors(path, skip=()):
    found = read(str(path))
    names = [name for name in found.column_names if name not in skip]
    return np.column_stack([found[name].to_numpy() for name in names])


def expected(folder, columns=("status", "age", "sex"), embedder=None):
    rows = read(str(folder / "titanic.parquet")).select(list(columns))
    return (embedder or tabweave.Weave()).fit_transform(rows)


@pytest.mark.parametrize("source", SOURCES)
def test_every_format_in_gives_the_same_vectors(source, folder):
    done = called("embed", source, "-t", "fate", "-o", "v.parquet", cwd=folder)
    assert done.code == 0, done.err
    found = read(str(folder / "v.parquet"))
    assert found.column_names[0] == "fate"
    assert set(found["fate"].to_pylist()) == {"lost", "saved"}
    np.testing.assert_allclose(vectors(folder / "v.parquet", ["fate"]), expected(folder))


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl", "arrow", "parquet"])
def test_every_format_out_holds_the_same_vectors(kind, folder):
    done = called(
        "embed", "titanic.csv", "-t", "fate", "-m", "weave", "-o", f"v.{kind}", cwd=folder
    )
    assert done.code == 0, done.err
    np.testing.assert_allclose(
        vectors(folder / f"v.{kind}", ["fate"]), expected(folder, embedder=tabweave.Weave())
    )
    ordinary = folder / "ordinary"
    ordinary.touch()  # the file has the permissions of any other
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (folder / f"v.{kind}", ordinary)]
    assert modes[0] == modes[1]


def test_a_query_and_a_pipe(folder):
    query = "SELECT status, sex FROM 'titanic.parquet' WHERE age = 'child'"
    done = called("embed", query, "-o", "v.csv", "-m", "onehot", cwd=folder)
    assert done.code == 0, done.err
    assert vectors(folder / "v.csv").shape == (109, 5)
    for source, form in [
        ("titanic.tsv", "json"),
        ("titanic.json", "csv"),
        ("titanic.parquet", "tsv"),
    ]:
        text = (folder / source).read_bytes()
        done = called("embed", "-", "-t", "fate", "--format", form, cwd=folder, stdin=text)
        assert done.code == 0, done.err
        (folder / f"piped.{form}").write_text(done.out)
        np.testing.assert_allclose(vectors(folder / f"piped.{form}", ["fate"]), expected(folder))


@pytest.mark.slow
def test_a_pipe_between_shells(folder):
    rows = (folder / "titanic.csv").read_bytes()
    done = process("embed", "-", "-m", "onehot", "-c", "status", cwd=folder, stdin=rows)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0].split(",")[0].strip('"') == "status_crew"
    assert len(done.out.splitlines()) == 2202
    empty = process("embed", "-", cwd=folder, stdin=b"")
    assert (empty.code, empty.err) == (1, "tabweave: standard input is empty\n")


@pytest.mark.parametrize("write", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow_is_piped_in(folder, write):
    rows = pq.read_table(folder / "titanic.parquet")
    sink = pa.BufferOutputStream()
    with write(sink, rows.schema) as writer:
        writer.write_table(rows)
    piped = sink.getvalue().to_pybytes()
    words = ("-m", "onehot", "-c", "status", "--from", "arrow")
    done = called("embed", "-", *words, cwd=folder, stdin=piped)
    assert done.code == 0, done.err
    assert done.out == called("embed", "titanic.parquet", *words[:-2], cwd=folder).out


@pytest.mark.filterwarnings("default:standard input|.*stdin:UserWarning")
def test_what_is_piped_in_may_be_packed_and_is_named_as_people_call_it(folder):
    rows = (folder / "titanic.csv").read_bytes()
    words = ("embed", "-", "-m", "onehot", "-c", "status")
    plain = called(*words, cwd=folder, stdin=rows)
    assert called(*words, cwd=folder, stdin=gzip.compress(rows)).out == plain.out != ""
    assert called(*words, cwd=folder, stdin=rows.decode().encode("utf-16")).out == plain.out
    refused = called(*words, cwd=folder, stdin=rows.decode().encode("utf-16-le"))
    assert refused.code == 1 and refused.err.startswith("tabweave: standard input: expected")
    assert "iconv -f utf-16le -t utf-8" in refused.err
    other = called("kinds", "-", cwd=folder, stdin=b"gr\xfc,b\n1,2\n")
    assert "gr\xfc" in other.out and "read as cp1252" in other.err
    ragged = called(*words, cwd=folder, stdin=b"status,b\nx,1\ny\n")
    assert ragged.err.startswith("tabweave: standard input: expected 2 cells, as the first line")
    arrow = (folder / "titanic.arrow").read_bytes()
    assert called(*words, cwd=folder, stdin=arrow).out == plain.out
    packed = called(*words, cwd=folder, stdin=b"PK\x03\x04\x9d")
    assert packed.err.startswith("tabweave: standard input: expected text in UTF-8, got a zip file")
    packed = called(*words, cwd=folder, stdin=b"\x28\xb5\x2f\xfd\x9d")
    assert packed.err.endswith("expected text in UTF-8, got a Zstandard file; unpack it\n")
    doubted = called("embed", "-", "-o", "v.csv", cwd=folder, stdin=b"x,1.5\nx,1.25\ny,2\nx,1\n")
    assert doubted.err.startswith("tabweave: warning: standard input: its first line (x, 1.5)")


def test_nothing_is_overwritten_unless_forced(folder):
    path = folder / "v.csv"
    path.write_text("mine")
    for extra in ([], ["--save", "v.csv"]):
        out = "other.csv" if extra else "v.csv"
        done = called("embed", "titanic.csv", "-o", out, *extra, cwd=folder)
        assert done.code == 2
        assert "--force" in done.err
    assert path.read_text() == "mine"
    assert not (folder / "other.csv").exists()
    assert called("embed", "titanic.csv", "-o", "v.csv", "--force", cwd=folder).code == 0
    assert path.read_text() != "mine"
    failed = called("embed", "titanic.csv", "-o", "v.csv", "-f", "-t", "none", cwd=folder)
    assert failed.code == 1
    assert path.read_text().startswith('"status_0"')  # the old file stays if the new one fails


def test_a_saved_model_embeds_other_rows_alike(folder):
    done = called(
        "embed", "even.csv", "-t", "fate", "-o", "v.csv", "--save", "m.tabweave", cwd=folder
    )
    assert done.code == 0, done.err
    done = called("embed", "odd.csv", "--model", "m.tabweave", "-o", "w.csv", "--json", cwd=folder)
    assert json.loads(done.out)["rows"] == 1100
    names = ["status", "age", "sex"]
    rows = [read(str(folder / f)).select(names) for f in ("even.csv", "odd.csv")]
    model = tabweave.Weave().fit(rows[0])
    np.testing.assert_allclose(vectors(folder / "w.csv"), model.transform(rows[1]))
    for twice in (["-m", "weave"], ["--drop", "sex"]):
        assert called("embed", "odd.csv", "--model", "m.tabweave", *twice, cwd=folder).code == 2
    lacking = called("embed", "shop.csv", "--model", "m.tabweave", cwd=folder)
    assert lacking.code == 1
    assert "'status'" in lacking.err


def test_principal_axes_keep_what_varies_most(folder):
    done = called("embed", "titanic.csv", "--components", "2", "-o", "v.csv", cwd=folder)
    assert done.code == 0, done.err
    whole = expected(folder, ("status", "age", "sex", "fate"))
    values = np.linalg.eigvalsh(np.cov(whole.T))[::-1]
    found = vectors(folder / "v.csv")
    np.testing.assert_allclose(np.cov(found.T), np.diag(values[:2]), atol=1e-9)


@pytest.mark.parametrize("method", ["auto", "weave"])
def test_principal_axes_are_saved_with_the_model(folder, method):
    told = ("embed", "titanic.csv", "-m", method, "--components", "2", "--save", "m", "-o", "v.csv")
    assert called(*told, cwd=folder).code == 0
    few = called("embed", "even.csv", "--model", "m", "-o", "w.csv", "--keep", "fate", cwd=folder)
    assert few.code == 0, few.err
    assert tabweave.load(folder / "m").transform(read(str(folder / "even.csv"))).shape[1] == 2
    sql = called("export", "m", "--sql", cwd=folder)
    assert sql.code == 0 and sql.out.count(" AS ") >= 2
    assert called("embed", "odd.csv", "--model", "m", "--components", "2", cwd=folder).code == 2


def test_columns_are_read_as_declared(folder):
    (folder / "zip.csv").write_text(
        "zip,grade,tags,n\n007,low,a b,1\n7,high,b,2\n007,mid,a,3\n08,low,c a,4\n"
    )
    kinds = [
        "--kind",
        "zip=nominal",
        "--kind",
        "grade=ordinal:low<mid<high",
        "--kind",
        "tags=set: ",
    ]
    done = called("neighbors", "zip.csv", *kinds, "--row", "0", "-k", "3", "--json", cwd=folder)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["query"]["zip"] == "007"  # not the number 7
    first = next(n for n in found["neighbors"] if n["row"] == 2)
    assert first["why"]["zip"] == 0
    done = called("embed", "zip.csv", "--kind", "nominal", "-m", "onehot", cwd=folder)
    head = done.out.splitlines()[0].replace('"', "").split(",")
    assert sum(name.startswith("n_") for name in head) == 4
    assert sum(name.startswith("zip_") for name in head) == 4 - 1
    kinds = ["--kind", "n=numeric", "--kind", "nominal"]
    done = called("embed", "zip.csv", *kinds, "-m", "onehot", cwd=folder)
    n_is_numeric = done.out.splitlines()[0].replace('"', "").split(",")
    assert [name for name in n_is_numeric if name[0] != "n"] == [n for n in head if n[0] != "n"]
    assert "n_0" in n_is_numeric and "n_0" not in head
    done = called("embed", "zip.csv", "--kind", "nominl", cwd=folder)
    assert (
        done.code == 2 and "a kind for all other columns, such as nominal, got 'nominl'" in done.err
    )


def test_a_key_is_dropped_and_can_be_kept(folder):
    done = called("embed", "shop.csv", "-o", "v.csv", "--json", cwd=folder)
    assert done.code == 0
    assert (
        "dropped: sku (an identifier" in done.err
        and "to keep it, add --kind sku=nominal" in done.err
    )
    assert list(json.loads(done.out)["dropped"]) == ["sku"]
    assert not called("embed", "shop.csv", "-o", "w.csv", "--keep", "sku", cwd=folder).err
    kept = called("embed", "shop.csv", "-o", "x.csv", "--kind", "sku=nominal", "--json", cwd=folder)
    assert json.loads(kept.out)["columns"] == json.loads(done.out)["columns"] + 1
    assert "warning: column 'sku'" in kept.err and "--drop sku" in kept.err


def test_what_a_survey_holds_is_told(folder):
    rng = np.random.default_rng(0)
    words = "it works well and the price is fine but support was slow".split()
    ages = ["18-24", "25-34", "35-44", "65+", "Refused"]
    lines = [f"{ages[i % 5]},{' '.join(rng.choice(words, 9))}" for i in range(300)]
    (folder / "survey.csv").write_text("\n".join(["age,says", *lines, ""]))
    done = called("embed", "survey.csv", "-o", "v.csv", cwd=folder)
    assert "column 'age' holds ranges, except 'Refused'; it is read as categories" in done.err
    assert "noise" not in done.err  # sentences are compared by their spelling
    again = ("embed", "survey.csv", "-o", "v.csv", "-f")
    assert called(*again, "--missing", "Refused", cwd=folder).err == ""
    one_hot = (*again, "--missing", "Refused", "-m", "onehot")
    assert "'says' is free text" in called(*one_hot, cwd=folder).err


def embed_with(methods, folder):
    rows = [line.rsplit(",", 1)[0] for line in (folder / "shop.csv").read_text().splitlines()]
    (folder / "drinks.csv").write_text("\n".join(rows))
    for method in methods:
        words = ["drinks.csv", "--drop", "sku", "-t", "made_of", "-m", method]
        done = called("embed", *words, "-o", f"{method}.csv", cwd=folder)
        assert done.code == 0, (method, done.err)
        assert np.isfinite(vectors(folder / f"{method}.csv", ["made_of"])).all(), method


def test_methods_of_all_sorts_embed_a_table_of_categories(folder):
    embed_with(["auto", "helic", "hierarchy", "vdm"], folder)


@pytest.mark.slow
def test_every_method_embeds_a_table_of_categories(folder):
    embed_with(offered("shell"), folder)


def test_the_names_of_methods_are_those_of_the_library():
    named, pages = offered("shell"), offered("pages")
    assert next(iter(named)) == "auto"
    assert set(pages) < set(named)
    assert {n for n, m in named.items() if m.decorator == "measure"} == set(MEASURES) - {
        *(n for n, m in MEASURES.items() if m.form == "pairwise"),
        *embedders("shell"),  # an embedder stands for the measure of its name
    }
    for name, method in named.items():
        assert (
            learns_from_classes(name)
            == {**MEASURES, **EMBEDDERS, "auto": EMBEDDERS["weave"]}[name].needs_y
        )
        assert method.summary


def test_every_embedder_of_values_has_a_name_to_type():
    made = {e.name for e in EMBEDDERS.values() if issubclass(e.cls, ValueEmbedder)}
    assert made - {"value_metric"} <= set(embedders("pages"))


def test_methods_are_listed(folder):
    shown = called("methods", cwd=folder).out.splitlines()
    listed = json.loads(called("methods", "--json", cwd=folder).out)
    assert [(m["name"], m["kind"], m["summary"]) for m in listed] == [
        (n, m.decorator, m.summary) for n, m in offered("shell").items()
    ]
    for entry in listed:
        (line,) = (line for line in shown if line.split()[:1] == [entry["name"]])
        needs = "; needs --target" if learns_from_classes(entry["name"]) else ""
        assert line.split(maxsplit=1)[1] == entry["summary"] + needs


def test_numbers_join_whatever_the_method(folder):
    for method in ("weave", "dilca", "helic", "hierarchy", "nonbend"):
        words = ["shop.csv", "--keep", "sku", "-t", "drink", "-m", method, "-o", f"{method}.csv"]
        done = called("embed", *words, cwd=folder)
        assert done.code == 0, (method, done.err)
        names = read(str(folder / f"{method}.csv")).column_names
        assert any(name.startswith("price") for name in names), (method, names)


@pytest.mark.parametrize("command", ["embed", "report", "cluster"])
def test_a_measure_without_vectors_is_refused_and_not_listed(folder, command):
    refused = called(command, "shop.csv", "-m", "jia", cwd=folder)
    assert refused.code == 2
    assert "pairwise_distances" in refused.err
    assert "jia" not in called("methods", cwd=folder).out


def test_a_map_is_written_as_it_was_laid_out(folder):
    words = ["shop.csv", "--drop", "sku", "-t", "drink", "-m", "drdh"]
    assert called("embed", *words, "-o", "map.csv", cwd=folder).code == 0
    rows = read(str(folder / "shop.csv"))
    model = tabweave.DRDH(random_state=0)
    model.fit(rows.drop_columns(["sku", "drink"]), rows["drink"].to_pylist())
    np.testing.assert_allclose(vectors(folder / "map.csv", ["drink"]), model.map_, atol=1e-12)
    assert called("map", *words, "-o", "flat.csv", cwd=folder).code == 0
    flat = vectors(folder / "flat.csv", rows.column_names)
    np.testing.assert_allclose(pdist(flat), pdist(model.map_), atol=1e-6)


def test_levels_of_a_column_of_numbers_are_numbers():
    from tabweave.apps.cli.job import declared_column
    from tabweave.apps.cli.options import Misuse

    assert declared_column("n", "ordinal:1<2.5", [1, 2.5]).levels == (1.0, 2.5)
    with pytest.raises(Misuse, match=r"--kind n=ordinal:low<2: expected a number, got 'low'"):
        declared_column("n", "ordinal:low<2", [1, 2.5])


def test_vectors_of_training_rows_are_cross_fitted(folder):
    words = ("-m", "supervised", "-t", "drink", "-c", "served,price", "-o", "train.csv")
    assert called("embed", "shop.csv", *words, "--save", "model.tabweave", cwd=folder).code == 0
    again = ("--model", "model.tabweave", "-o", "again.csv")
    assert called("embed", "shop.csv", *again, cwd=folder).code == 0
    rows = read(str(folder / "shop.csv"))
    X, y = rows.select(["served", "price"]), rows["drink"].to_pylist()
    model = tabweave.SupervisedWeave()
    cross_fitted = model.fit_transform(X, y)
    assert not np.allclose(cross_fitted, model.transform(X))
    np.testing.assert_allclose(vectors(folder / "train.csv", ["drink"]), cross_fitted, atol=1e-12)
    np.testing.assert_allclose(vectors(folder / "again.csv", []), model.transform(X), atol=1e-12)


def test_dimensions_that_a_method_cannot_give_are_refused(folder):
    words = ("-m", "supervised", "-t", "drink", "--components", "2", "-o", "-")
    refused = called("embed", "shop.csv", *words, cwd=folder)
    assert refused.code == 1 and "got 'supervised'; leave the number of dimensions" in refused.err


def test_a_target_with_gaps_is_named(folder):
    for columns in ("drink,served", "drink,made_of,price"):
        words = ("-m", "supervised", "-t", "price", "-c", columns, "-o", "-")
        refused = called("embed", "shop.csv", *words, cwd=folder)
        assert refused.code == 1 and refused.err.startswith(
            "tabweave: target column 'price' is missing in row 5; drop such rows"
        )
    rows = "SELECT * FROM 'shop.csv' WHERE price IS NOT NULL"
    words = ("-m", "supervised", "-c", "drink,served", "-o", "-", "-t")
    plain = called("embed", rows, *words, "price", cwd=folder)
    paid = rows.replace("*", "*, '€' || price AS paid")
    money = called("embed", paid, *words, "paid", cwd=folder)
    assert [line.split(",")[1:] for line in plain.out.splitlines()] == [
        line.split(",")[1:] for line in money.out.splitlines()
    ]


def test_an_order_of_dates_that_does_not_exist_is_said(folder):
    refused = called("embed", "shop.csv", "--kind", "sku=datetime:dym", cwd=folder)
    assert refused.code == 2 and "--kind sku=datetime:dym: expected datetime:dmy" in refused.err


def test_lists_are_told_with_what_joins_them(tmp_path):
    genres = [
        "Action|War",
        "Drama",
        "War|Drama",
        "Action",
        "Drama|Action",
        "War",
        "War|Sea",
        "Sea|War",
    ]
    lines = [f"{genre},{i % 5}" for i, genre in enumerate(genres * 9)]
    (tmp_path / "films.csv").write_text("\n".join(["genre,stars", *lines]))
    done = called("embed", "films.csv", "-o", "v.csv", cwd=tmp_path)
    assert "genre' holds lists in text, parted at '|'" in done.err
    assert "as in --kind genre=nominal\n" in done.err
    listed = [{"genre": json.dumps(g.split("|")), "stars": i % 5} for i, g in enumerate(genres * 9)]
    with (tmp_path / "listed.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["genre", "stars"])
        writer.writeheader()
        writer.writerows(listed)
    done = called("embed", "listed.csv", "-o", "w.csv", cwd=tmp_path)
    assert "as in --kind genre=nominal\n" in done.err
    done = called("embed", "listed.csv", "-o", "x.csv", "--kind", "genre=set", cwd=tmp_path)
    assert done.code == 0 and "genre" not in done.err


def test_pairs_in_text_are_asked_about(tmp_path):
    lines = [f"{a}|{b},{i % 5}" for i, (a, b) in enumerate(product("abcdef", "ghijkl"))]
    (tmp_path / "pairs.csv").write_text("\n".join(["pair,stars", *lines, *lines]))
    done = called("embed", "pairs.csv", "-o", "v.csv", cwd=tmp_path)
    assert "as in --kind 'pair=set:|'" in done.err


def test_a_shell_is_told_of_options(tmp_path):
    rows = [f"{i % 7}.5,{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "x.csv").write_text("\n".join(["a size,b", "TBD,a", *rows]), encoding="utf-8")
    told = called("embed", "x.csv", "-o", "-", cwd=tmp_path)
    assert "keep all values by --kind 'a size=nominal'" in told.err and "schema=" not in told.err
    (tmp_path / "y.csv").write_text("\n".join(["id", *map(str, range(60))]), encoding="utf-8")
    refused = called("embed", "y.csv", "-o", "-", cwd=tmp_path)
    assert refused.code == 1 and "as in --kind id=numeric" in refused.err
