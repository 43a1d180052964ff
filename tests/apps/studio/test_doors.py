"""What must not get in: strangers, other pages, paths that lead out, files that are no tables."""

import contextlib
import gzip
import io
import os
import pickle
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from tabweave.apps.studio import files as _files
from tabweave.apps.studio.app import Studio, _is_own, allow_many_connections, http_server, listening
from tabweave.apps.studio.jobs import FileReader

ROUTES = [
    ("GET", "/"),
    ("GET", "/report/x"),
    ("GET", "/api/files"),
    ("POST", "/api/open"),
    ("POST", "/api/upload?name=a.csv"),
    ("POST", "/api/jobs"),
    ("GET", "/api/jobs/x"),
    ("DELETE", "/api/jobs/x"),
    ("GET", "/api/jobs/x/result"),
    ("GET", "/api/jobs/x/map/rows"),
    ("GET", "/api/jobs/x/explain?a=0&b=1"),
    ("GET", "/api/jobs/x/near?row=0"),
    ("GET", "/api/program?jobs=x"),
    ("GET", "/api/jobs/x/download/vectors.csv"),
    ("POST", "/api/jobs/x/marks"),
    ("GET", "/api/jobs/x/mark?row=0"),
    ("POST", "/api/jobs/x/names"),
    ("POST", "/api/jobs/x/colours"),
    ("POST", "/api/jobs/x/card"),
    ("POST", "/api/jobs/x/like"),
    ("POST", "/api/jobs/x/between"),
    ("POST", "/api/jobs/x/cross"),
    ("POST", "/api/jobs/x/alike"),
    ("GET", "/api/tables/x"),
    ("POST", "/api/tables/x/names"),
    ("POST", "/api/tables/x/rows"),
    ("POST", "/api/tables/x/charts"),
    ("POST", "/api/tables/x/counts"),
    ("POST", "/api/tables/x/find"),
    ("POST", "/api/tables/x/values"),
    ("POST", "/api/tables/x/sets"),
    ("POST", "/api/tables/x/differences"),
    ("GET", "/api/tables/x/groups"),
    ("GET", "/api/tables/x/groups/marks?job=x"),
    ("POST", "/api/tables/x/groups"),
    ("PATCH", "/api/tables/x/groups/g1"),
    ("DELETE", "/api/tables/x/groups/g1"),
    ("GET", "/api/tables/x/export"),
    ("GET", "/docs"),
    ("GET", "/openapi.json"),
]


@pytest.fixture(scope="module")
def client(client_of, folder):
    return client_of(folder)


@pytest.fixture(scope="module")
def stranger(client_of, folder):
    return client_of(folder, token=None)


def send(client, content, name, **headers):
    answer = client.post("/api/upload", params={"name": name}, content=content, headers=headers)
    return answer.status_code, answer.json().get("error", "")


def leftovers(client):
    """Files that the studio holds, besides all rows of tables."""
    held = client.app.state.studio.folder
    paths = [path for path in held.rglob("*") if path.is_file() and path.name != "alive"]
    return [path for path in paths if path.relative_to(held).parts[0] != "rows"]


def test_every_route_is_known_to_the_tests(client):
    known = {path.split("?")[0].replace("/x", "/{name}") for _, path in ROUTES}
    examples = {"{kind}": "vectors.csv", "{group}": "g1", "{part}": "rows"}
    paths = [route.path for route in client.app.routes]
    routes = {re.sub(r"{(kind|group|part)}", lambda m: examples[m[0]], path) for path in paths}
    assert routes <= known


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_nothing_without_the_token(stranger, method, path):
    assert stranger.request(method, path).status_code == 403
    for wrong in ("", "wrong", "the-toke", "the-token ", "thé-token"):
        given = {"X-Tabweave-Token": wrong.encode()}
        assert stranger.request(method, path, headers=given).status_code == 403
    joined = "&" if "?" in path else "?"
    assert stranger.request(method, f"{path}{joined}token=wrong").status_code == 403


def test_the_token_opens_the_page_and_nothing_lists_the_routes(client, stranger):
    page = stranger.get("/?token=the-token")
    assert page.status_code == 200 and "tabweave studio" in page.text
    assert "@@" not in page.text
    assert client.get("/docs").status_code == client.get("/openapi.json").status_code == 404


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil", ""])
def test_other_names_of_this_server_are_refused(client, host):
    assert client.get("/api/files", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:1"])
def test_own_names_are_fine(client, host):
    assert client.get("/api/files", headers={"Host": host}).status_code == 200


def test_all_addresses_means_numbers_only():
    assert _is_own("192.168.1.7:8000", ["0.0.0.0"]) and _is_own("[fe80::1]:80", ["::"])
    assert not _is_own("evil.example:8000", ["0.0.0.0"])
    assert not _is_own("192.168.1.7:8000", ["127.0.0.1"])


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "file://"])
def test_other_pages_are_refused(client, origin):
    for method, path in (("GET", "/api/files"), ("POST", "/api/open"), ("OPTIONS", "/api/open")):
        answer = client.request(method, path, headers={"Origin": origin})
        assert answer.status_code == 403
    assert client.get("/api/files", headers={"Origin": "http://127.0.0.1"}).status_code == 200


def test_no_answer_invites_other_pages(client, stranger):
    for answer in (
        client.get("/"),
        client.get("/api/files", headers={"Origin": "http://127.0.0.1"}),
        client.options("/api/open", headers={"Access-Control-Request-Method": "POST"}),
        stranger.get("/"),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    first, second = (client.get("/").headers["content-security-policy"] for _ in "ab")
    assert first != second  # a nonce is used once


@pytest.mark.parametrize(
    "path",
    [
        "../secret.csv", "below/../../secret.csv", "..", "", ".", "/etc/passwd", "//etc/passwd",
        "~/secret.csv", "link.csv", "links/secret.csv", "round.csv", "customers.csv\x00.txt",
        "x" * 5000 + ".csv", "file:///etc/passwd", "http://127.0.0.1/a.csv", "*.csv",
        "SELECT 1 AS x", "..\\secret.csv", "below",
    ],
)  # fmt: skip
def test_paths_stay_in_the_start_folder(client_of, tmp_path, path):
    start = tmp_path / "start"
    (start / "below").mkdir(parents=True)
    (start / "customers.csv").write_text("a,b\n1,2\n")
    (tmp_path / "secret.csv").write_text("secret\n1\n")
    (start / "link.csv").symlink_to(tmp_path / "secret.csv")
    (start / "links").symlink_to(tmp_path)
    (start / "round.csv").symlink_to(start / "round.csv")
    client = client_of(start)
    answer = client.post("/api/open", json={"path": path})
    assert answer.status_code == 400 and answer.json()["error"]
    assert str(tmp_path) not in answer.text  # nor is said where it lies
    assert [file["path"] for file in client.get("/api/files").json()["files"]] == ["customers.csv"]


def test_absolute_paths_inside_and_links_inside_are_fine(client_of, tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    client = client_of(tmp_path)
    for path in ("a.csv", str(tmp_path / "a.csv"), "link.csv"):
        assert client.post("/api/open", json={"path": path}).json()["name"] == "a.csv"


def test_a_name_that_looks_like_a_pattern_is_one_file(client_of, tmp_path):
    (tmp_path / "outside.csv").write_text("a\nsecret\n")
    start = tmp_path / "start"
    start.mkdir()
    (start / "x.csv").symlink_to(tmp_path / "outside.csv")
    (start / "*.csv").write_text("a\nown\n")
    found = client_of(start).post("/api/open", json={"path": "*.csv"}).json()
    assert found["preview"] == [["own"]]


def test_an_upload_of_five_gigabytes_is_refused_at_once(client):
    before = leftovers(client)
    length = str(5 * 2**30)
    status, error = send(client, b"a,b\n", "big.csv", **{"Content-Length": length})
    assert status == 413 and "uploads end at 500 MB" in error
    assert leftovers(client) == before


def test_an_upload_that_does_not_tell_its_size_is_stopped(client_of, folder):
    client = client_of(folder, limit=100_000)
    sent = []

    def endless():
        for _ in range(10_000):
            sent.append(10_000)
            yield b"a,b\n" * 2_500

    status, error = send(client, endless(), "endless.csv")
    assert status == 413 and "uploads end at" in error
    assert leftovers(client) == []
    assert client.app.state.studio._uploaded_bytes == 0


def test_uploads_together_have_an_end(client_of, folder):
    client = client_of(folder, limit=1_000)
    told = {send(client, b"a,b\n" + b"1,2\n" * 200, "a.csv") for _ in range(9)}
    assert (200, "") in told
    assert any(status == 400 and "limit of uploads" in error for status, error in told)


def test_a_gzip_bomb_is_not_unpacked(client_of, folder):
    client = client_of(folder, limit=2**20)
    bomb = gzip.compress(b"a,b\n" + b"0" * 2**25)
    assert len(bomb) < 2**16
    status, error = send(client, bomb, "bomb.csv.gz")
    assert status == 400 and "expected at most 1 MB when unpacked" in error
    assert leftovers(client) == []


def test_a_gzip_bomb_of_the_start_folder_is_not_unpacked_either(client_of, tmp_path):
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"0" * 2**23))
    client = client_of(tmp_path, limit=2**20)
    answer = client.post("/api/open", json={"path": "bomb.csv.gz"})
    assert (
        answer.status_code == 400
        and "expected at most 1 MB when unpacked" in answer.json()["error"]
    )
    assert leftovers(client) == []


def test_a_small_gzip_file_is_read(client):
    name = "few.csv.gz"
    packed = gzip.compress(b"a,b\n1,x\n2,y\n")
    found = client.post("/api/upload", params={"name": name}, content=packed).json()
    assert found["columns"] == ["a", "b"] and found["preview"] == [["1", "x"], ["2", "y"]]


def test_a_parquet_file_of_very_many_rows_is_refused(client, tmp_path):
    import duckdb

    path = tmp_path / "tall.parquet"
    duckdb.sql("SELECT 1 AS a, 2 AS b FROM range(110_000_000)").write_parquet(str(path))
    assert path.stat().st_size < 2**19  # it does not look it
    status, error = send(client, path.read_bytes(), "tall.parquet")
    assert status == 400 and "too much for a page" in error


def test_a_parquet_file_of_one_endless_cell_is_refused(client, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "long.parquet"
    zeros = arrow.array(np.zeros(3_000_000, np.int8))
    cell = arrow.ListArray.from_arrays([0, 3_000_000], zeros)
    parquet.write_table(arrow.table({"a": cell}), path, compression="zstd")
    assert path.stat().st_size < 2**14
    status, error = send(client, path.read_bytes(), "long.parquet")
    assert status == 400 and "1 rows of 3,000,000 values" in error


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_first_rows_are_read_in_little_memory():
    reader = FileReader(max_bytes=1 << 29)
    with pytest.raises(_files.Refused, match="too much memory"):
        reader.call(eval, "[bytearray(1 << 30), __import__('time').sleep(30)]")
    assert reader.call(len, "abc") == 3  # the next file is read as ever
    with pytest.raises(_files.Refused, match="too much memory"):
        reader.call(os._exit, 1)  # as the system ends what it has no memory for
    assert reader.call(len, "abc") == 3


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_memory_that_is_reserved_and_not_used_does_not_count():
    """Arrow reserves a gigabyte as it is loaded; small tables were refused for that."""
    reader = FileReader(max_bytes=1 << 29)
    assert reader.call(eval, "__import__('numpy').empty(1 << 31, 'u1').nbytes") == 1 << 31


def _damaged(content):
    """Workbooks with one part of the file overwritten, cut short, or told to be larger."""
    for start in range(0, len(content), max(1, len(content) // 12)):
        yield content[:start] + b"\xff" * 8 + content[start + 8 :]
    yield content[: len(content) // 2]
    yield b"PK\x03\x04" + b"\x00" * 100


def test_forged_workbooks_are_refused_with_a_sentence_and_the_server_stays_up(client, workbook):
    row = '<row><c r="A1" t="inlineStr"><is><t>a</t></is></c></row>'
    cells = '<row><c r="A2"><v>1</v></c></row>'
    good = workbook(row + cells)
    with zipfile.ZipFile(bomb := io.BytesIO(good), "a", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/more.xml", bytes(600 * 2**20))
    status, error = send(client, bomb.getvalue(), "bomb.xlsx")
    assert status == 400 and "when unpacked, got more" in error
    # A sheet whose last cell claims to lie at the end of all: its rows would be filled up to there.
    wide = workbook(row + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')
    status, error = send(client, wide, "wide.xlsx")
    assert status == 400 and "cannot be opened" in error
    for content in _damaged(good):
        status, error = send(client, content, "damaged.xlsx")
        assert status == 200 or error.startswith("'damaged.xlsx' cannot be opened: ")
        assert "Traceback" not in error
    assert send(client, good, "good.xlsx") == (200, "")


def test_a_file_takes_no_longer_than_it_may():
    reader = FileReader()
    assert reader.call(len, "abc") == 3
    reader.max_seconds = 0.5
    with pytest.raises(_files.Refused, match="too long"):
        reader.call(time.sleep, 30)
    reader.max_seconds = 60.0
    assert reader.call(len, "abc") == 3


def test_copies_of_a_file_in_another_encoding_go_with_the_process_that_made_them(
    client_of, tmp_path
):
    path = tmp_path / "few.csv.gz"
    path.write_bytes(gzip.compress("a,b\n1,é\n2,y\n".encode("cp1252")))
    client = client_of(tmp_path)

    def opened(_=None):
        return client.post("/api/open", json={"path": path.name}).json()

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(opened, range(4)))
    assert [answer["preview"] for answer in answers] == [[["1", "é"], ["2", "y"]]] * 4
    assert answers[0]["encoding"] == "cp1252"
    assert leftovers(client) == []
    client.get(f"/api/tables/{answers[0]['source']}")  # which waits for all rows
    rows = [path.name for path in (client.app.state.studio.folder / "rows").glob("*/*")]
    assert sorted(rows) == ["bars.npz", "rows.duckdb", "rows.json"]
    path.write_bytes(gzip.compress(b"a,b\n3,z\n4,zz\n"))
    assert opened()["preview"] == [["3", "z"], ["4", "zz"]]


def test_what_a_killed_studio_left_is_swept_away():
    code = (
        "from tabweave.apps.studio.files import Holding; h = Holding.begin(); "
        "print(h.folder, flush=True); input()"
    )
    killed, alive = (
        subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True)
        for _ in range(2)
    )
    folders = [_files.Path(p.stdout.readline().strip()) for p in (killed, alive)]
    killed.kill()
    killed.wait()
    assert all(folder.is_dir() for folder in folders)
    ours = _files.Holding.begin()
    assert not folders[0].exists() and folders[1].is_dir() and ours.folder.is_dir()
    ours.end()
    assert not ours.folder.exists()
    alive.communicate("")
    shutil.rmtree(folders[1])
    for process in (killed, alive):
        for pipe in (process.stdin, process.stdout):
            pipe.close()


def test_a_hundred_thousand_columns_are_refused(client):
    names = ",".join(f"c{i}" for i in range(100_000))
    values = ",".join("1" for _ in range(100_000))
    status, error = send(client, f"{names}\n{values}\n", "wide.csv")
    assert status == 400 and "100,000 columns" in error
    long = b"c" * (17 * 2**20)
    status, error = send(client, long, "line.csv")
    assert status == 400 and "the first line is longer" in error


class Boom:
    def __reduce__(self):
        return os.mkdir, ("boom-was-run",)


@pytest.mark.parametrize(
    "name", ["a.pkl", "a.py", "a.tabweave", "a.npy", "a.zip", "a.csv.zip", "a.joblib", "a.exe", "a",
             ".csv", "a.sql", "a.duckdb", "a.xls", "a.arrow", "a.csv.gz.gz", "a.html"],
)  # fmt: skip
def test_what_is_no_table_is_refused_by_its_name(client, name):
    status, error = send(client, b"a,b\n1,2\n", name)
    assert status == 400 and "expected a table that ends in" in error


def test_no_code_is_loaded_whatever_it_calls_itself(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(Boom())
    with zipfile.ZipFile(tmp_path / "z.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.csv", b"0" * 2**24)
    np.save(tmp_path / "o.npy", np.array([Boom()], dtype=object), allow_pickle=True)
    for content in (pickled, (tmp_path / "z.zip").read_bytes(), (tmp_path / "o.npy").read_bytes()):
        for kind in ("csv", "parquet", "json", "jsonl", "csv.gz", "parquet.gz"):
            status, error = send(client, content, f"a.{kind}")
            assert status == 400 and "cannot be opened" in error
    assert not (tmp_path / "boom-was-run").exists()


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.json", "a.jsonl", "a.csv.gz"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe\x01" * 500, b"\n\n\n"])
def test_garbage_is_said_to_be_garbage(client, name, content):
    before = len(leftovers(client))
    status, error = send(client, content, name)
    assert status == 400 and error.startswith(f"'{name}' cannot be opened: ")
    assert "tabweave-studio-" not in error  # nor does it tell where uploads lie
    assert len(leftovers(client)) == before


def test_a_header_alone_is_no_table(client):
    assert "no rows" in send(client, b"a,b\n", "a.csv")[1]


def test_names_are_not_paths(client):
    for name in ("../../evil.csv", "C:\\windows\\evil.csv", "/etc/evil.csv"):
        answer = client.post("/api/upload", params={"name": name}, content=b"a,b\n1,2\n")
        assert answer.json()["name"] == "evil.csv"
    assert all(path.name.startswith("table.") for path in leftovers(client))


def test_markup_in_cells_travels_as_text(client):
    nasty = "<script>alert(1)</script>"
    found = client.post(
        "/api/upload", params={"name": f"{nasty}.csv"}, content=f"a,{nasty}\n{nasty},1\n"
    )
    assert found.headers["content-type"] == "application/json"
    assert found.json()["columns"] == ["a", nasty] and found.json()["preview"][0][0] == nasty


def test_a_start_file_with_markup_in_its_name_stays_text(client_of, tmp_path):
    path = tmp_path / "<script>alert(1)<&sol;script>@@.csv"
    path.write_text("a\n1\n")
    page = client_of(path).get("/").text
    assert "<script>alert" not in page and "\\u003cscript\\u003ealert(1)" in page


@pytest.mark.parametrize(
    ("path", "body"),
    [("/api/open", {}), ("/api/open", {"path": 3}), ("/api/jobs", {"source": "x"}),
     ("/api/jobs", []), ("/api/open", "text")],
)  # fmt: skip
def test_questions_that_make_no_sense_get_a_reason(client, path, body):
    answer = client.post(path, json=body)
    assert answer.status_code in (400, 404) and answer.json()["error"]


def test_listens_on_this_machine_only(served):
    assert served.startswith("http://127.0.0.1:")
    port = int(served.split(":")[2].split("/")[0])
    socket.create_connection(("127.0.0.1", port), 5).close()
    with pytest.raises(OSError):  # another address of this machine: whoever listens on all has it
        socket.create_connection(("127.0.0.2", port), 5)


def test_a_port_that_is_taken_is_said_so():
    with listening("127.0.0.1", 0) as first:
        first.setsockopt(1, 2, 0)  # no sharing
        port = first.getsockname()[1]
        with pytest.raises(ValueError, match=f"cannot listen on 127.0.0.1 port {port}"):
            listening("127.0.0.1", port)


def test_a_token_is_needed_to_start(folder):
    pytest.importorskip("fastapi", reason="the studio needs tabweave[studio]")
    from tabweave.apps.studio import create_app

    with pytest.raises(ValueError, match="expected a token, got an empty string"):
        create_app(folder, token="")


# -- connections ---------------------------------------------------------------------------------


@pytest.fixture
def knocking(folder, request):
    """A server, and its port; a test may say after how many seconds it hangs up."""
    pytest.importorskip("uvicorn", reason="the studio needs tabweave[studio]")
    from tabweave.apps.studio import create_app

    app = create_app(folder, token="the-token")
    with listening("127.0.0.1", 0) as listener:
        server = http_server(app, getattr(request, "param", 10.0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join()


def ask(port, head=b"GET /api/files HTTP/1.1\r\n", rest=b"", close=b"close"):
    """Return the first line of what the server answers, empty if it hangs up."""
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        end = b"Host: 127.0.0.1\r\nX-Tabweave-Token: the-token\r\nConnection: %b\r\n" % close
        connection.sendall(head + end + b"\r\n" + rest)
        try:
            return connection.recv(100).split(b"\r\n")[0]
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize("knocking", [0.5], indirect=True)
def test_connections_that_keep_the_server_waiting_are_ended(knocking):
    for sent in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "):
        with socket.create_connection(("127.0.0.1", knocking), 60) as half:
            half.sendall(sent)
            try:
                assert half.recv(1) == b""  # it hangs up
            except ConnectionResetError:
                pass
    upload = b"POST /api/upload?name=a.csv HTTP/1.1\r\nContent-Length: 99\r\n"
    assert ask(knocking, upload, b"a,b\n") == b""  # a body that does not come
    assert ask(knocking) == b"HTTP/1.1 200 OK"


def test_half_open_connections_do_not_keep_others_out(knocking):
    """More of them than a process may have open files are beside honest clients."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3000:
        pytest.skip("the system does not let a process have 3,000 connections")
    allow_many_connections()
    halves = []
    try:
        for i in range(1100):
            half = socket.create_connection(("127.0.0.1", knocking), 60)
            half.sendall(b"GET / HTTP/1.1\r\nHost: 127.0")
            halves.append(half)
            if i % 100 == 99:
                assert ask(knocking) == b"HTTP/1.1 200 OK"
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: ask(knocking), range(40)))
        assert set(answers) == {b"HTTP/1.1 200 OK"}
        for half in halves:
            half.setblocking(False)
        end = time.monotonic() + 60
        while (kept := [half for half in halves if not _is_ended(half)]) and time.monotonic() < end:
            assert ask(knocking) == b"HTTP/1.1 200 OK"
            time.sleep(0.1)
        assert not kept
    finally:
        for half in halves:
            half.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _is_ended(connection):
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_a_burst_of_connections_does_not_hang_up_on_those_whose_request_is_not_read_yet(knocking):
    """Hundreds that are let in at once come before the server reads what the first has sent."""
    request = b"GET /api/files HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    request += b"X-Tabweave-Token: the-token\r\n\r\n"
    with contextlib.ExitStack() as open_ones:
        first = open_ones.enter_context(socket.create_connection(("127.0.0.1", knocking), 60))
        for _ in range(500):
            open_ones.enter_context(socket.create_connection(("127.0.0.1", knocking), 60))
        first.sendall(request)
        assert first.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_slow_answers_leave_threads_for_short_ones(knocking, folder, monkeypatch):
    go_on = threading.Event()

    def slow(self, path, name, *_):
        assert go_on.wait(60)
        return {"source": "x", "name": name}

    monkeypatch.setattr(Studio, "let_in", slow)
    (folder / "slow.csv").write_text("a\nx\n")
    body = b'{"path": "slow.csv"}'
    head = b"POST /api/open HTTP/1.1\r\nContent-Type: application/json\r\n"
    head += b"Content-Length: %d\r\n" % len(body)
    with ThreadPoolExecutor(60) as pool:
        opened = [pool.submit(ask, knocking, head, body) for _ in range(60)]
        try:
            assert ask(knocking) == b"HTTP/1.1 200 OK"
            assert not any(answer.done() for answer in opened)
        finally:
            go_on.set()
        assert {answer.result() for answer in opened} == {b"HTTP/1.1 200 OK"}


def test_the_first_rows_of_a_file_are_read_once_for_all_who_open_it(folder, monkeypatch):
    calls = []

    def call(work, path, *_):
        calls.append(path)
        if path.read_text().startswith("bad"):
            raise ValueError("bad")
        return {"columns": []}

    monkeypatch.setattr("tabweave.apps.studio.app.file_reader", lambda: SimpleNamespace(call=call))
    studio, path = Studio(folder, 1000), folder / "once.csv"
    try:
        path.write_text("a\nx\n")
        keys = {studio.let_in(path, "once.csv")["source"] for _ in range(3)}
        assert len(keys) == 3 and len(calls) == 1
        path.write_text("bad\nxy\n")
        for n in (2, 3):  # what failed is tried again
            with pytest.raises(ValueError, match=r"'once\.csv' cannot be opened: bad"):
                studio.let_in(path, "once.csv")
            assert len(calls) == n
    finally:
        studio.close()
