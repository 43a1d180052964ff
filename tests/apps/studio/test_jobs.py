"""Jobs: what they find is what the library finds; they fail with a reason and can be cancelled."""

import csv
import io
import json
import os
import runpy
import time

import duckdb
import numpy as np
import pytest

import tabweave
from tabweave import (
    OneHot,
    Table,
    Weave,
    engines,
)
from tabweave.apps.studio import app
from tabweave.apps.studio import jobs as jobs_module

TABLE = "below/few.csv"


@pytest.fixture(scope="module")
def client(client_of, folder):
    return client_of(folder)


@pytest.fixture(scope="module")
def rows(folder):
    return Table.of(engines.read(str(folder / TABLE)))


def start(client, method="onehot", target="outcome", name=TABLE):
    source = client.post("/api/open", json={"path": name}).json()["source"]
    body = {"source": source, "method": method, "target": target}
    return client.post("/api/jobs", json=body)


def ended(client, job):
    """Wait for a job, however long it takes: its process ends, and then its state changes."""
    while job["state"] == "running":
        time.sleep(0.05)
        job = client.get(f"/api/jobs/{job['job']}").json()
    return job


def laid_out(client, job):
    """Wait for the map by neighbourhoods, which follows what is done."""
    while "layouts" not in client.get(f"/api/jobs/{job}").json()["parts"]:
        time.sleep(0.05)
    return client.get(f"/api/jobs/{job}/result", params={"part": "layouts"}).json()


@pytest.fixture(scope="module")
def done(client):
    """One finished job on all columns but the target."""
    job = ended(client, start(client).json())
    assert (job["state"], job["error"]) == ("done", "")
    return job["job"]


@pytest.fixture(scope="module")
def expected(rows):
    """The vectors that the library gives for the same."""
    features = rows.select([n for n in rows.schema.names if n != "outcome"])
    model = OneHot().fit(features)
    return model, features, model.transform(features)


def download(client, job, kind):
    answer = client.get(f"/api/jobs/{job}/download/{kind}")
    assert answer.status_code == 200, answer.text
    assert kind in answer.headers["content-disposition"]
    return answer.content


def test_vectors_are_those_of_the_library(client, done, expected):
    _, _, vectors = expected
    lines = list(csv.reader(io.StringIO(download(client, done, "vectors.csv").decode())))
    np.testing.assert_array_equal(np.array(lines[1:], dtype=float), vectors)


def test_parquet_holds_the_same(client, done, expected, tmp_path):
    path = tmp_path / "v.parquet"
    path.write_bytes(download(client, done, "vectors.parquet"))
    found = duckdb.sql(f"SELECT * FROM '{path}'").fetchall()
    np.testing.assert_array_equal(np.array(found), expected[2])


def test_the_model_can_be_loaded_and_used(client, done, expected, tmp_path):
    (tmp_path / "model.tabweave").write_bytes(download(client, done, "model.tabweave"))
    model = tabweave.load(tmp_path / "model.tabweave")
    np.testing.assert_array_equal(model.transform(expected[1]), expected[2])


def test_sql_gives_the_same_vectors(client, done, expected, folder):
    script = download(client, done, "model.sql").decode()
    with duckdb.connect() as connection:
        path = folder / TABLE
        connection.execute(f"CREATE TABLE rows AS SELECT * FROM read_csv('{path}')")
        found = np.array(connection.execute(script).fetchall(), dtype=float)
    order = np.lexsort(found.T), np.lexsort(expected[2].T)
    np.testing.assert_allclose(found[order[0]], expected[2][order[1]], atol=1e-6)


def test_onnx_is_a_graph(client, done):
    onnx = pytest.importorskip("onnx", reason="graphs need tabweave[export]")
    graph = onnx.load_from_string(download(client, done, "model.onnx"))
    onnx.checker.check_model(graph)


def test_the_report_is_a_page(client, done):
    assert download(client, done, "report.html").decode().startswith("<!doctype html>")
    shown = client.get(f"/report/{done}")
    assert shown.headers["content-type"].startswith("text/html")
    assert TABLE in shown.text


def test_explains_as_the_library_does(client, done, expected):
    from tabweave.columns.table import take_rows

    model, features, vectors = expected
    a, b = (take_rows(features, np.array([row])) for row in (3, 9))
    found = client.get(f"/api/jobs/{done}/explain", params={"a": 3, "b": 9}).json()
    shares = {c["column"]: c["adds"] for c in found["columns"]}
    assert shares == pytest.approx(model.explain(a, b))
    assert found["distance"] == pytest.approx(np.linalg.norm(vectors[3] - vectors[9]))
    assert sum(c["share"] for c in found["columns"]) == pytest.approx(1)


def test_neighbours_are_the_nearest(client, done, expected):
    _, _, vectors = expected
    found = client.get(f"/api/jobs/{done}/near", params={"row": 17}).json()["near"]
    apart = np.linalg.norm(vectors - vectors[17], axis=1)
    nearest = np.sort(np.delete(apart, 17))[:8]
    np.testing.assert_allclose([n["distance"] for n in found], nearest)
    for each in found:
        assert each["row"] != 17 and apart[each["row"]] == pytest.approx(each["distance"])


def test_the_result_is_a_description(client, done):
    from tabweave.apps.report import page

    found = client.get(f"/api/jobs/{done}/result").json()
    assert found["rows"] == 80 and found["target"] == "outcome"
    assert len(found["map"]["rows"]) == len(found["map"]["layouts"][0]["points"])
    assert page(found)


def test_the_map_of_all_rows_has_its_marks_in_arrays(client, done, expected):
    def part(name, dtype):
        answer = client.get(f"/api/jobs/{done}/map/{name}")
        assert answer.headers["content-type"] == "application/octet-stream"
        return np.frombuffer(answer.content, dtype)

    rows, copies = part("rows", np.int32), part("copies", np.uint32)
    marks = part("row_marks", np.int32)
    assert copies.sum() == len(marks) == 80
    np.testing.assert_array_equal(np.bincount(marks), copies)
    np.testing.assert_array_equal(marks[rows], np.arange(len(rows)))
    whole = client.get(f"/api/jobs/{done}/result").json()["map"]
    places = part("layout-0", np.float32).reshape(-1, 2)
    np.testing.assert_allclose(places[marks[whole["rows"]]], whole["layouts"][0]["points"], 1e-3)
    np.testing.assert_array_equal(
        part("clusters", np.uint8)[marks[whole["rows"]]], whole["clusters"]
    )
    assert client.get(f"/api/jobs/{done}/map/model.tabweave").status_code == 400


def test_what_was_finished_before_is_there_at_once(client_of, folder, tmp_path, monkeypatch):
    """Also for a studio that is started anew, wherever the file lies; a changed file is another."""
    monkeypatch.setenv("TABWEAVE_CACHE", str(tmp_path / "cache"))
    jobs = []
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "few.csv").write_bytes((folder / TABLE).read_bytes())
        client = client_of(tmp_path / place)
        source = client.post("/api/open", json={"path": "few.csv"}).json()["source"]
        question = {"source": source, "method": "onehot"}
        first = client.post("/api/jobs", json=question).json()
        laid_out(client, ended(client, first)["job"])
        assert client.post("/api/jobs", json=question).json()["job"] == first["job"]
        jobs.append((client, first))
        for _ in range(100):
            if list((tmp_path / "cache" / "studio").glob("[!.]*")):
                break
            time.sleep(0.1)
    assert [job["state"] for _, job in jobs] == ["running", "done"]
    parts = ("result", "map/layout-0", "near?row=3")
    one, other = (
        [c.get(f"/api/jobs/{job['job']}/{part}").content for part in parts] for c, job in jobs
    )
    assert one == other
    with (tmp_path / "b" / "few.csv").open("a") as file:
        file.write("basic,phone,card,north,30,12,left\r\n")
    answer = client.post("/api/jobs", json=question)
    assert answer.json().get("state") == "running", answer.text


@pytest.mark.parametrize("method", ["auto", "onehot"])
def test_what_the_page_asks_first_has_begun_before(client_of, folder, method):
    client = client_of(folder / TABLE)
    studio = client.app.state.studio
    studio.warm()
    (begun,) = studio.jobs._jobs
    source = client.post("/api/open", json={"path": "few.csv"}).json()["source"]
    job = client.post("/api/jobs", json={"source": source, "method": method}).json()
    assert (job["job"] == begun) == (method == "auto")
    assert ended(client, job)["state"] == "done"
    states = {name: studio.jobs[name].state for name in studio.jobs._jobs}
    assert states == {begun: "done"} | (
        {} if method == "auto" else {begun: "cancelled", job["job"]: "done"}
    )


def test_finished_jobs_take_limited_room(tmp_path, monkeypatch):
    monkeypatch.setenv("TABWEAVE_CACHE", str(tmp_path))
    monkeypatch.setattr(jobs_module, "CACHE_BYTES", 2_500)
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "layouts.json").write_text(" " * 1_000)
    (tmp_path / "job" / "upload.csv").write_text("rows of others")
    for k, key in enumerate("abc"):
        jobs_module.keep_finished(tmp_path / "job", tmp_path / "studio", key)
        os.utime(tmp_path / "studio" / key, (k, k))
    jobs_module.keep_finished(tmp_path / "job", tmp_path / "studio", "d")
    assert {path.name for path in (tmp_path / "studio").iterdir()} == {"c", "d"}
    assert [path.name for path in (tmp_path / "studio" / "d").iterdir()] == ["layouts.json"]
    (tmp_path / "new").mkdir()
    assert jobs_module.restore_finished(tmp_path / "new", "d")
    assert not jobs_module.restore_finished(tmp_path / "new", "a")
    monkeypatch.setenv("TABWEAVE_CACHE", "")
    assert jobs_module.cache_folder() is None


@pytest.mark.parametrize("row", [-1, 80, 10**12])
def test_rows_that_are_not_there(client, done, row):
    answers = [
        client.get(f"/api/jobs/{done}/near", params={"row": row}),
        client.get(f"/api/jobs/{done}/explain", params={"a": 0, "b": row}),
        client.get("/api/program", params={"jobs": done, "a": 0, "b": row}),
    ]
    for answer in answers:
        assert answer.status_code == 400 and "expected a row number from 0 to 79" in answer.text


def test_downloads_that_are_not_there(client, done):
    for kind in ("vectors.npy", "description.json", "..%2fmodel.tabweave", "%2e%2e", "model.pkl"):
        assert client.get(f"/api/jobs/{done}/download/{kind}").status_code in (400, 404)
    assert client.get("/api/jobs/none/download/vectors.csv").status_code == 404


def run_program(text, folder, tmp_path, monkeypatch):
    """Run a program beside the table, as its reader would; return its variables."""
    (tmp_path / TABLE).parent.mkdir()
    (tmp_path / TABLE).write_bytes((folder / TABLE).read_bytes())
    (tmp_path / "program.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    return runpy.run_path("program.py")


def test_the_program_gives_the_same(client, done, expected, folder, tmp_path, monkeypatch, capsys):
    question = {"jobs": done, "a": 3, "b": 9}
    text = client.get("/api/program", params=question).json()["program"]
    found = run_program(text, folder, tmp_path, monkeypatch)
    np.testing.assert_array_equal(found["vectors"], expected[2])
    said = client.get(f"/api/jobs/{done}/explain", params={"a": 3, "b": 9}).json()
    shares = {c["column"]: c["adds"] for c in said["columns"]}
    assert eval(capsys.readouterr().out) == pytest.approx(shares)
    whole = client.get(f"/api/jobs/{done}/result").json()["map"]
    near = laid_out(client, done)
    whole["layouts"] += near["layouts"]
    assert found["description"]["map"] == whole | {"without": near["without"]}
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert report.startswith("<!doctype html>")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b"), [("auto", "untie"), ("helic", "weave"), ("goodall1", "vdm"), ("cde", "nonbend")]
)
def test_the_program_of_two_methods(client, folder, tmp_path, monkeypatch, a, b):
    jobs = [ended(client, start(client, method).json()) for method in (a, b)]
    assert [job["state"] for job in jobs] == ["done", "done"]
    joined = ",".join(job["job"] for job in jobs)
    text = client.get("/api/program", params={"jobs": joined}).json()["program"]
    found = run_program(text, folder, tmp_path, monkeypatch)
    for letter, job in zip("ab", jobs, strict=True):
        lines = list(csv.reader(io.StringIO(download(client, job["job"], "vectors.csv").decode())))
        vectors = np.array(lines[1:], dtype=float)
        np.testing.assert_allclose(found[f"vectors_{letter}"], vectors, atol=1e-12)


def test_what_cannot_be_started(client):
    assert "choose a target column" in start(client, "helic", None).json()["error"]
    assert "got 'magic'" in start(client, "magic").json()["error"]
    answer = client.post("/api/jobs", json={"source": "gone", "method": "auto"})
    assert answer.status_code == 404 and "open it again" in answer.json()["error"]


def test_failure_cancelling_and_how_many_run_at_once(client_of, tmp_path):
    (tmp_path / "ids.csv").write_text("id\n" + "\n".join(f"row {i}" for i in range(50)))
    lines = np.random.default_rng(0).integers(0, 60, (20_000, 20)).astype(str)
    head = ",".join(f"c{i}" for i in range(20))
    (tmp_path / "long.csv").write_text("\n".join([head, *map(",".join, lines)]))
    client = client_of(tmp_path)
    started = [start(client, "nonbend", None, "long.csv").json() for _ in range(2)]
    crowd = start(client, "onehot", None, "ids.csv")
    assert crowd.status_code == 400 and "2 jobs are running" in crowd.json()["error"]
    for long in started:
        job = client.app.state.studio.jobs[long["job"]]
        assert client.get(f"/api/jobs/{long['job']}/result").status_code == 400  # not yet
        assert client.delete(f"/api/jobs/{long['job']}").json()["state"] == "cancelled"
        assert not job.child.process.is_alive() and not job.folder.exists()
        with pytest.raises(ProcessLookupError):
            os.kill(job.child.process.pid, 0)
    poor = ended(client, start(client, "onehot", None, "ids.csv").json())
    assert (
        poor["state"] == "failed"
        and "no column is left to compare rows by; dropped: id" in poor["error"]
    )


def test_nothing_is_left_behind(tmp_path):
    pytest.importorskip("fastapi", reason="the studio needs tabweave[studio]")
    from tabweave.apps.studio import create_app

    app = create_app(tmp_path, token="x")
    held = app.state.studio.folder
    assert held.is_dir() and held.stat().st_mode & 0o077 == 0  # for this user alone
    app.state.studio.close()
    assert not held.exists()


def test_many_who_ask_first_for_the_same_download_get_it(client, done):
    from concurrent.futures import ThreadPoolExecutor

    job = ended(client, start(client).json())["job"]
    laid_out(client, job)  # until then the report lacks a map
    kinds = [k for k in app.DOWNLOADS if k != "model.onnx"] * 4
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda kind: download(client, job, kind), kinds))
    assert {(kind, len(set(answers[kinds.index(kind) :: len(kinds) // 4]))) for kind in kinds} == {
        (kind, 1) for kind in kinds
    }
    made = [p.name for p in client.app.state.studio.jobs[job].folder.iterdir()]
    assert not [name for name in made if name.endswith(".part")]


# -- a file that is written again ----------------------------------------------------------------


def written(path, sizes):
    """Rows that differ from one version to the next in every cell, but not in length."""
    names = ["size", "colour"]
    lines = [f"{size},{colour}" for size, colour in zip(sizes, "rgb" * 20, strict=False)]
    path.write_text("\n".join([",".join(names), *lines]) + "\n")


def test_nothing_is_answered_from_an_older_file(client_of, tmp_path):
    path = tmp_path / "rows.csv"
    written(path, [f"s{i % 5}" for i in range(60)])
    client = client_of(tmp_path)
    opened = client.post("/api/open", json={"path": "rows.csv"}).json()
    body = {"source": opened["source"], "method": "onehot"}
    old = ended(client, client.post("/api/jobs", json=body).json())["job"]
    assert client.get(f"/api/jobs/{old}/near", params={"row": 0}).json()["cells"]["size"] == "s0"
    written(path, [f"t{i % 5}" for i in range(60)])
    for question in ("near?row=0", "explain?a=0&b=1", "result", "download/vectors.csv"):
        answer = client.get(f"/api/jobs/{old}/{question}")
        assert answer.status_code == 409 and "was written again" in answer.text, question
    new = ended(client, client.post("/api/jobs", json=body).json())["job"]
    near = client.get(f"/api/jobs/{new}/near", params={"row": 0}).json()
    explained = client.get(f"/api/jobs/{new}/explain", params={"a": 0, "b": 1}).json()
    assert near["cells"]["size"] == "t0"
    assert all(each["cells"]["size"].startswith("t") for each in near["near"])
    sizes = next(c for c in explained["columns"] if c["column"] == "size")
    assert (sizes["a"], sizes["b"]) == ("t0", "t1") and explained["distance"] > 0


def test_another_file_under_the_same_name_has_its_own_columns(client_of, tmp_path):
    path = tmp_path / "rows.csv"
    written(path, [f"s{i % 5}" for i in range(60)])
    client = client_of(tmp_path)
    source = client.post("/api/open", json={"path": "rows.csv"}).json()["source"]
    path.write_text("other\n" + "x\ny\n" * 30)
    assert client.post("/api/open", json={"source": source}).json()["columns"] == ["other"]
    path.unlink()
    answer = client.post("/api/jobs", json={"source": source})
    assert answer.status_code == 400 and "cannot be opened" in answer.text


# -- tables as they come -------------------------------------------------------------------------


def test_dates_in_text_are_dates_and_identifiers_are_no_difference(
    client_of, tmp_path, monkeypatch, capsys
):
    rng = np.random.default_rng(0)
    with (tmp_path / "orders.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["order", "at", "plan", "spend"])
        for i in range(90):
            day = np.datetime64("2024-01-01T08:30") + np.timedelta64(int(rng.integers(0, 300)), "D")
            at = "" if i % 20 == 3 else str(day).replace("T", " ")
            plan = rng.choice(["basic", "plus"])
            writer.writerow([f"O-{i:05d}", at, plan, round(float(rng.normal(9, 2)), 2)])
    client = client_of(tmp_path)
    job = ended(client, start(client, "auto", None, "orders.csv").json())
    assert job["error"] == ""
    columns = client.get(f"/api/jobs/{job['job']}/result").json()["columns"]
    assert [c["kind"] for c in columns] == ["nominal", "datetime", "nominal", "numeric"]
    assert columns[0]["role"] == "left out"
    answer = client.get(f"/api/jobs/{job['job']}/near", params={"row": 5}).json()
    assert answer["id"] == "O-00005"  # beside the position
    near = answer["near"]
    assert [each["id"] for each in near] == [f"O-{each['row']:05d}" for each in near]
    said = client.get(f"/api/jobs/{job['job']}/explain", params={"a": 5, "b": near[0]["row"]})
    shares = {c["column"]: c["adds"] for c in said.json()["columns"]}
    assert near[0]["differs"] == [n for n, share in shares.items() if share > 0]  # most first
    question = {"jobs": job["job"], "a": 5, "b": near[0]["row"]}
    program = client.get("/api/program", params=question).json()["program"]
    (tmp_path / "program.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("program.py")
    assert eval(capsys.readouterr().out) == pytest.approx(shares)


# -- choices of columns --------------------------------------------------------------------------


def test_columns_can_be_left_out_weighed_and_declared(client, folder):
    source = client.post("/api/open", json={"path": TABLE}).json()["source"]
    columns = {"region": {"keep": False}, "age": {"kind": "nominal"}, "plan": {"weight": 3}}
    body = {"source": source, "target": "outcome", "columns": columns}
    job = ended(client, client.post("/api/jobs", json=body).json())
    assert job["error"] == ""
    found = client.get(f"/api/jobs/{job['job']}/result").json()
    kinds = {c["name"]: (c["kind"], c["role"]) for c in found["columns"]}
    assert kinds["region"][1] == "left out" and kinds["age"][0] == "nominal"
    table = Table.of(engines.read(str(folder / TABLE)), {"age": "nominal"})
    features = table.select([n for n in table.schema.names if n not in ("region", "outcome")])
    model = Weave(weights={"plan": 3.0}).fit(features)
    lines = list(csv.reader(io.StringIO(download(client, job["job"], "vectors.csv").decode())))
    np.testing.assert_array_equal(np.array(lines[1:], dtype=float), model.transform(features))


@pytest.mark.parametrize("columns", [{"age": {"kind": "odd"}}, {"age": {"weight": -1}}])
def test_choices_that_make_no_sense_are_named(client, columns):
    source = client.post("/api/open", json={"path": TABLE}).json()["source"]
    answer = client.post("/api/jobs", json={"source": source, "columns": columns})
    assert answer.status_code == 400 and "column 'age': expected a" in answer.text


def test_a_column_can_be_declared_of_any_kind(client):
    from tabweave.columns.cells import KINDS

    rows = "".join(f"{1 + i % 28:02}.{1 + i % 12:02}.2024,{'xyz'[i % 3]}\n" for i in range(40))
    found = client.post("/api/upload", params={"name": "d.csv"}, content="day,k\n" + rows).json()
    body = {"source": found["source"], "method": "auto", "columns": {"day": {"kind": "datetime"}}}
    job = ended(client, client.post("/api/jobs", json=body).json())
    assert job["error"] == ""
    columns = client.get(f"/api/jobs/{job['job']}/result").json()["columns"]
    assert columns[0]["kind"] == "datetime"
    assert f'"kinds":{json.dumps(list(KINDS), separators=(",", ":"))}' in client.get("/").text


# -- more kinds of files -------------------------------------------------------------------------


def test_tables_of_the_library_can_be_opened(client):
    found = client.post("/api/open", json={"table": "titanic"}).json()
    assert found["columns"] == ["status", "age", "sex", "survived"]
    assert found["target"] == "survived"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_text_in_common_encodings_is_read(client, encoding):
    content = "Stadt,n\nMünchen,1\nZürich,2\nKöln,3\n".encode(encoding)
    found = client.post("/api/upload", params={"name": "a.csv"}, content=content).json()
    assert found["columns"] == ["Stadt", "n"] and found["preview"][0][0] == "München"


def test_an_encoding_can_be_chosen(client):
    content = "город,n\nМосква,1\nКазань,2\n".encode("cp1251")
    found = client.post("/api/upload", params={"name": "a.csv"}, content=content).json()
    again = {"source": found["source"], "encoding": "cp1251"}
    assert client.post("/api/open", json=again).json()["preview"][0][0] == "Москва"
    again["encoding"] = "rot13"
    answer = client.post("/api/open", json=again)
    assert answer.status_code == 400 and "expected an encoding" in answer.text


@pytest.mark.parametrize(("since", "day"), [("0", "2020-03-01"), ("1", "2024-03-02")])
def test_a_workbook_says_when_its_days_begin(client, workbook, since, day):
    sheet = (
        '<row><c r="A1" t="inlineStr"><is><t>day</t></is></c>'
        '<c r="B1" t="inlineStr"><is><t>hour</t></is></c></row><row><c r="A2" s="1"><v>43891</v>'
        '</c><c r="B2" s="3"><v>0.5625</v></c></row>'
    )
    content = workbook(sheet, dates_since=since)
    answer = client.post("/api/upload", params={"name": "a.xlsx"}, content=content)
    assert answer.json()["preview"] == [[day, "13:30"]]


def test_a_sheet_is_read(client, workbook):
    sheet = (
        '<row><c r="A1" t="s"><v>0</v></c><c r="C1" t="inlineStr"><is><t>n</t></is></c></row>'
        '<row><c r="A2" t="s"><v>1</v></c><c r="B2" s="1"><v>43891</v></c><c r="C2"><v>1.5</v></c>'
        '</row><row><c r="B3" s="2"><v>43891.5625</v></c><c r="C3"><v>2</v></c></row>'
    )
    texts = "<si><t>who</t></si><si><r><t>A</t></r><r><t>nn</t></r></si>"
    content = workbook(sheet, texts)
    opened = client.post("/api/upload", params={"name": "a.xlsx"}, content=content).json()
    assert opened["preview"][0][0] == "Ann" and len(opened["columns"]) == 3
    assert "2020-03-01" in opened["preview"][0][1] and opened["encoding"] == ""
    job = client.post("/api/jobs", json={"source": opened["source"], "method": "onehot"}).json()
    job = ended(client, job)
    assert job["error"] == ""
    assert (
        client.get(f"/api/jobs/{job['job']}/near", params={"row": 0}).json()["cells"]["n"] == "1.5"
    )


def test_the_program_reads_a_file_whatever_it_is_called(tmp_path, monkeypatch):
    from types import SimpleNamespace

    from tabweave.apps.studio.app import program

    name = "SELECT 1 AS a.csv"
    (tmp_path / name).write_text("a,b\nx,u\ny,v\n")
    monkeypatch.chdir(tmp_path)
    reading = SimpleNamespace(target=None, kept=["a", "b"])
    lines = program(name, [("onehot", reading, tabweave.OneHot())]).splitlines()
    found: dict = {}
    exec("\n".join(lines[: lines.index("rows = table.select(columns)") + 1]), found)
    assert found["table"]["a"].labels == ["x", "y"]


def test_the_program_reads_a_file_in_the_encoding_that_was_chosen(tmp_path, monkeypatch):
    from types import SimpleNamespace

    (tmp_path / "a.csv").write_bytes("город\nМосква\n".encode("cp1251"))
    monkeypatch.chdir(tmp_path)
    reading = SimpleNamespace(target=None, kept=["город"])
    shown = [("onehot", reading, tabweave.OneHot())]
    lines = app.program("a.csv", shown, encoding="cp1251").splitlines()
    variables: dict = {}
    exec("\n".join(lines[: lines.index("rows = table.select(columns)") + 1]), variables)
    assert variables["table"]["город"].labels == ["Москва"]
