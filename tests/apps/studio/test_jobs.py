"""Jobs: what they find is what the library finds; they fail with a reason and can be cancelled."""

import csv
import io
import os
import runpy
import time

import duckdb
import numpy as np
import pytest

import tabweave
from tabweave import MixedEmbedder, OneHot, Table, engines
from tabweave.apps.studio import look

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
    model = MixedEmbedder(OneHot()).fit(features)
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
    from tabweave.rows.table import take_rows

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


@pytest.mark.parametrize("row", [-1, 80, 10**12])
def test_rows_that_are_not_there(client, done, row):
    answers = [
        client.get(f"/api/jobs/{done}/near", params={"row": row}),
        client.get(f"/api/jobs/{done}/explain", params={"a": 0, "b": row}),
        client.get("/api/program", params={"jobs": done, "a": 0, "b": row}),
    ]
    for answer in answers:
        assert answer.status_code == 400 and "rows are counted from 0 to 79" in answer.text


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
    assert found["found"]["map"] == client.get(f"/api/jobs/{done}/result").json()["map"]
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
    assert "as the target" in start(client, "helic", None).json()["error"]
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
        assert not job.process.is_alive() and not job.folder.exists()
        with pytest.raises(ProcessLookupError):
            os.kill(job.process.pid, 0)
    poor = ended(client, start(client, "onehot", None, "ids.csv").json())
    assert (
        poor["state"] == "failed" and "no column is left to compare rows by: 'id'" in poor["error"]
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
    kinds = [k for k in look.DOWNLOADS if k != "model.onnx"] * 4
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda kind: download(client, job, kind), kinds))
    assert {(kind, len(set(answers[kinds.index(kind) :: len(kinds) // 4]))) for kind in kinds} == {
        (kind, 1) for kind in kinds
    }
    made = [p.name for p in client.app.state.studio.jobs[job].folder.iterdir()]
    assert not [name for name in made if name.endswith(".part")]
