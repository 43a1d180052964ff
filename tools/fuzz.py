"""Throw odd things at every door, for as long as you like; what breaks is kept.

Usage: python tools/fuzz.py [--minutes M] [--doors tables files text damaged requests] [--seed S]
                            [--formats arrow parquet sqlite xlsx csv json model] [--most N]

- tables: typed tables drawn by Hypothesis, through every engine that reads them: in memory, in
  chunks, as frames, from Parquet and JSON files, from SQL, and counted by DuckDB itself. Counts,
  labels and their types must be equal.
- files: saved models and indexes, changed as bytes and, sealed again, as values of their headers
  and arrays; a file is read, or refused by a ValueError.
- text: CSV and JSON text. It is read, or refused by a ValueError or TypeError; JSON says what its
  rows say in memory; cells of a CSV file that differ are labels that differ.
- damaged: files of each format with bytes changed, those of packed parts too, read in a forked
  process. It ends by itself, within 30 seconds and a gigabyte; the file is read, or refused by a
  ValueError, TypeError or OSError. A model that is read embeds rows.
- requests: questions to the studio, drawn by Schemathesis from its OpenAPI description, one in two
  about a file, a source and a job that are there; an answer below 500. Without Schemathesis they
  are put together from the routes.

An input that breaks a promise (made small, if Hypothesis drew it) is written to
tests/corpus/<door>, where the tests run it from then on, and the program ends with its traceback.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import copy
import csv
import importlib
import io
import json
import math
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
_ROUND = 100  # inputs between two looks at the clock
_WORDS = ["", "a", "A", "1", "01", " 1", "1.0", "0x1F", "1e3", "-0", "nan", "NULL", "true", "é",
          "2020-01-01", "12:30", "a,b", 'q"q', "a\nb", "\t", "9007199254740993",
          "12345678901234567890", "⟨other⟩", "ß", "\u200b"]  # fmt: skip
_JSON = [None, True, False, 0, 1, -1, 1.5, 1e300, 10**20, "x", "1", [], [1, "1"], ["a"]]


# -- tables ---------------------------------------------------------------------------------------

_TEXT = st.sampled_from(_WORDS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
_WHOLE = st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)
_FLOATS = st.floats(-10, 10, width=16) | st.floats(allow_nan=False, allow_infinity=False)
_DATES = st.dates(date(1678, 1, 1), date(2261, 12, 31)).map(str)
_TIMES = st.datetimes(datetime(1678, 1, 1), datetime(2261, 12, 31)).map(str)
_CELLS = {"text": _TEXT, "whole": _WHOLE, "float": _FLOATS, "bool": st.booleans(),
          "date": _DATES, "time": _TIMES}  # fmt: skip


@st.composite
def tables(draw: Any) -> bytes:
    """Draw a table: a type and as many cells for each column, some of them null."""
    n = draw(st.integers(1, 12))
    out = {}
    for j in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(sorted(_CELLS)))
        cell = _CELLS[kind] | st.none() if draw(st.booleans()) else _CELLS[kind]
        pool = draw(st.lists(cell, min_size=1, max_size=5))
        rest = draw(st.lists(st.sampled_from(pool), min_size=n - 1, max_size=n - 1))
        out[f"c{j}"] = {kind: [draw(_CELLS[kind]), *rest]}  # nulls alone are of no type in a list
    return json.dumps(out).encode()


def _typed(data: bytes) -> Any:
    """Return a drawn table as an Arrow table; a plain list is a column of text."""
    import pyarrow as pa

    kinds = {"text": pa.string(), "whole": pa.int64(), "float": pa.float64(), "bool": pa.bool_(),
             "date": pa.date32(), "time": pa.timestamp("us")}  # fmt: skip
    parse = {"date": date.fromisoformat, "time": datetime.fromisoformat}
    out = {}
    for name, column in json.loads(data).items():
        ((kind, cells),) = ({"text": column} if isinstance(column, list) else column).items()
        if kind in parse:
            cells = [None if cell is None else parse[kind](cell) for cell in cells]
        out[name] = pa.array(cells, kinds[kind])
    return pa.table(out)


def check_tables(data: bytes) -> None:
    """Rows give the same counts from every engine, as declared categories and as they come."""
    from tabweave import Counts, Table

    rows = _typed(data)
    for schema in (dict.fromkeys(rows.column_names, "nominal"), None):
        whole = Table.of(rows, schema)
        wanted = Counts.of(whole)
        parts = [Table.of(rows.slice(i, 5), whole.schema) for i in range(0, len(rows), 5)]
        _agree(sum((Counts.of(part) for part in parts), Counts()), wanted, "chunks")
        with tempfile.TemporaryDirectory() as folder:
            for name, counts in _counted(rows, schema, Path(folder)):
                _agree(counts, wanted, name)


def _agree(found: Any, wanted: Any, name: str) -> None:
    assert found == wanted, name
    assert found.schema == wanted.schema, name
    for a, b in zip(found.labels, wanted.labels, strict=True):
        assert [type(v) for v in a] == [type(v) for v in b], (name, a, b)


def _counted(rows: Any, schema: Any, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield a name and the counts of the same rows from every engine."""
    import duckdb
    import pandas
    import polars
    import pyarrow.parquet

    from tabweave import count

    frame = polars.from_arrow(rows)
    typed = rows.to_pandas(types_mapper=pandas.ArrowDtype)
    parquet = folder / "rows.parquet"
    pyarrow.parquet.write_table(rows, parquet)
    sources = {"pandas": typed, "polars": frame,
               "lazy": frame.lazy(), "reader": rows.to_reader(max_chunksize=3),
               "parquet": parquet, "sql": f"SELECT * FROM read_parquet('{parquet}')"}  # fmt: skip
    if schema is not None or not any(
        isinstance(cell, date) for cell in rows.to_pylist()[0].values()
    ):
        sources["columns"] = rows.to_pydict()  # lists have no types: dates in them are categories
    for name, source in sources.items():
        yield name, count(source, schema=schema)
    with duckdb.connect() as connection:
        relation = connection.sql(f"SELECT * FROM read_parquet('{parquet}')")
        yield "relation", count(relation, schema=schema)
        if schema is not None:
            yield "pushdown", count(relation, schema=schema, engine="pushdown")


# -- files ----------------------------------------------------------------------------------------


def make_files(rng: random.Random) -> bytes:
    """Return a saved model, changed."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "model")
        _model(rng).save(path)
        if rng.random() < 0.7:
            _change_values(path, rng)
            return path.read_bytes()
        return _changed_bytes(path.read_bytes(), rng)


def _model(rng: random.Random) -> Any:
    from tabweave import CKML, Counts, OneHot, SimilarityIndex, Table, Weave

    n = rng.randint(1, 12)
    rows = {f"c{j}": [rng.choice(_WORDS) for _ in range(n)] for j in range(rng.randint(1, 4))}
    schema = dict.fromkeys(rows, "nominal")
    if rng.random() < 0.2:
        return Counts.of(Table.of(rows, schema))
    model = rng.choice([Weave, OneHot, CKML])(schema=schema).fit(rows)
    return SimilarityIndex(model).fit(rows) if rng.random() < 0.4 else model


def _change_values(path: Path, rng: random.Random) -> None:
    """Change the header or an array of a file, and seal it again."""
    from tabweave.io import store

    header, arrays = store.read(path)
    for _ in range(rng.randint(1, 3)):
        if arrays and rng.random() < 0.4:
            name = rng.choice(sorted(arrays))
            arrays[name] = _changed_array(arrays[name], rng)
        elif arrays and rng.random() < 0.1:
            del arrays[rng.choice(sorted(arrays))]
        else:
            header = _changed_json(header, rng)
    store.write(path, header if isinstance(header, dict) else {"x": header}, arrays)


def _changed_array(array: Any, rng: random.Random) -> Any:
    import numpy as np

    flat = array.ravel().copy()
    how = rng.randrange(4)
    if how == 0 and flat.size:
        flat[rng.randrange(flat.size)] = rng.choice([0, 1, 100])
        return flat.reshape(array.shape)
    if how == 1:
        return flat[: rng.randint(0, flat.size)]
    if how == 2:
        return np.full(array.shape, rng.choice([0.5, -1, math.inf, math.nan]))
    return flat.reshape(1, *array.shape)


def _changed_json(value: Any, rng: random.Random) -> Any:
    """Change one value somewhere in a tree."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.9:
        keys = sorted(value) if isinstance(value, dict) else range(len(value))
        key = rng.choice(keys)
        if rng.random() < 0.1:
            del value[key]
        else:
            value[key] = _changed_json(value[key], rng)
        return value
    if type(value) is int and rng.random() < 0.5:
        return value + rng.choice([-1, 1, 2**40])
    return copy.deepcopy(rng.choice([*_JSON, {}, {"x": 1}]))


def _changed_bytes(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        how = rng.randrange(4)
        if how == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del data[at:]
        elif how == 2:
            data[at:at] = data[at : at + rng.randint(1, 64)]
        else:
            data[at : at + 4] = rng.randbytes(4)
        data = data or bytearray(b"P")
    return bytes(data)


def check_files(data: bytes) -> None:
    """Read a file: it is what was written, or refused by a ValueError."""
    import tabweave

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        path.write_bytes(data)
        with contextlib.suppress(ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tabweave.load(path)


# -- text -----------------------------------------------------------------------------------------


def make_text(rng: random.Random) -> bytes:
    """Return CSV or JSON text, its suffix in the first line."""
    suffix = rng.choice(["csv", "tsv", "json", "jsonl"])
    pool = rng.sample(_WORDS if suffix.endswith("sv") else _JSON + _WORDS, rng.randint(1, 8))
    n, width = rng.randint(0, 6), rng.randint(1, 4)
    if suffix.endswith("sv"):
        text = io.StringIO()
        mark = "," if suffix == "csv" else "\t"
        writer = csv.writer(text, delimiter=mark, lineterminator=rng.choice(["\n", "\r\n"]))
        writer.writerow(f"c{j}" for j in range(width))
        writer.writerows([rng.choice(pool) for _ in range(width)] for _ in range(n))
        data = bytearray(text.getvalue().encode())
    else:
        names = [f"c{j}" for j in range(width)]
        lines = [
            json.dumps({name: rng.choice(pool) for name in names if rng.random() < 0.95})
            for _ in range(n)
        ]
        whole = "[" + ",".join(lines) + "]" if suffix == "json" else "\n".join(lines)
        data = bytearray(whole.encode())
    if data and rng.random() < 0.3:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return f"{suffix}\n".encode() + bytes(data)


def check_text(data: bytes) -> None:
    """Text is read so that cells that differ are labels that differ, or it is refused."""
    from tabweave import Counts, Table
    from tabweave.engines import read

    suffix, _, text = data.partition(b"\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"rows.{suffix.decode()}")
        path.write_bytes(text)
        with contextlib.suppress(ValueError, TypeError), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of encodings that are guessed
            table = Table.of(read(path))
            if suffix.startswith(b"json"):
                _agree(Counts.of(table), Counts.of(Table.of(_json_rows(text))), "memory")
            else:
                _check_cells(path, text, "," if suffix == b"csv" else "\t")


def _json_rows(text: bytes) -> list[dict[str, Any]]:
    rows = json.loads(text) if text.startswith(b"[") else [
        json.loads(line) for line in text.splitlines() if line.strip()
    ]  # fmt: skip
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def _check_cells(path: Path, text: bytes, mark: str) -> None:
    """As categories, cells are as many labels as there are texts, but for those that are null."""
    from tabweave import Table
    from tabweave.engines import read

    rows = list(csv.reader(io.StringIO(text.decode(), newline=""), delimiter=mark, strict=True))
    names, cells = rows[0], [row for row in rows[1:] if row]
    table = Table.of(read(path), dict.fromkeys(names, "nominal"))
    for name, column in zip(names, zip(*cells, strict=True), strict=True):
        written = set(column) - {""}
        expected = {len(written), len({_number(cell) for cell in written - {"nan"}})}
        labels = [label for label in table[name].labels if label is not None]
        assert len(labels) in expected, (name, written, labels)


def _number(cell: str) -> Any:
    """Return the number that a cell is, if it is nothing else, else the cell."""
    try:
        return float(cell) if cell.strip(" 0123456789.e+-") == "" else cell
    except ValueError:
        return cell


# -- damaged files --------------------------------------------------------------------------------

FORMATS = ["arrow", "parquet", "sqlite", "xlsx", "csv", "json", "model"]
_ROWS = {
    "a": ["red", "blue", "blue", None, "é"] * 8,
    "b": [1, 2, 3, 2**40, -1] * 8,
    "c": [0.5, None, 1e300, -2.5, 3.0] * 8,
}
_SHEET = "".join(
    f'<row r="{i + 1}"><c r="A{i + 1}" t="str"><v>{a}</v></c><c r="B{i + 1}"><v>{b}</v></c></row>'
    for i, (a, b) in enumerate([("a", 7), *zip(_ROWS["a"], _ROWS["b"], strict=True)])
)


def make_damaged(rng: random.Random) -> bytes:
    """Return a damaged file, its format in the first line."""
    form = rng.choice(FORMATS)
    content = _sound(form)
    if form in ("xlsx", "model") and rng.random() < 0.7:
        content = _with_changed_member(content, rng)
    else:
        content = _changed_bytes(content, rng)
    return f"{form}\n".encode() + content


def _with_changed_member(content: bytes, rng: random.Random) -> bytes:
    """Change bytes of one member of an archive, whose check sums are right."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        changed = rng.choice(names)
        for name in names:
            part = old.read(name)
            new.writestr(name, _changed_bytes(part, rng) if part and name == changed else part)
    return out.getvalue()


@cache
def _sound(form: str) -> bytes:
    """Return a file without damage; written by another process, so that this one has no threads."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"rows.{form}")
        _forked(lambda: _write_sound(form, path))
        return path.read_bytes()


def _write_sound(form: str, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.table(_ROWS).append_column("d", pa.array(_ROWS["a"]).dictionary_encode())
    if form == "arrow":
        pyarrow.feather.write_feather(table, path, "uncompressed")
    elif form == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif form == "sqlite":
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE t (a TEXT, b INTEGER, c REAL)")
            cells = zip(*_ROWS.values(), strict=True)
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", cells)
    elif form == "xlsx":
        path.write_bytes(_workbook(_SHEET))
    elif form == "csv":
        pyarrow.csv.write_csv(table, path)
    elif form == "json":
        path.write_text("\n".join(map(json.dumps, table.to_pylist())))
    else:
        _some_model().save(path)


def _some_model() -> Any:
    from tabweave import SimilarityIndex, Weave

    return SimilarityIndex(Weave()).fit({"a": _ROWS["a"], "b": [str(b) for b in _ROWS["b"]]})


def _workbook(sheet: str) -> bytes:
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    about = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    parts = {
        "xl/workbook.xml": f'<workbook {space} xmlns:r="{office}"><sheets><sheet name="a" '
        'sheetId="1" r:id="r1"/></sheets></workbook>',
        "_rels/.rels": f'{about}<Relationship Id="r1" Type="{office}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/_rels/workbook.xml.rels": f'{about}<Relationship Id="r1" Type="{office}/worksheet" '
        'Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f"<worksheet {space}><sheetData>{sheet}</sheetData>"
        "</worksheet>",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(name, text)
    return out.getvalue()


def check_damaged(data: bytes) -> None:
    """A damaged file is read or refused, by a process that ends by itself."""
    form, _, content = data.partition(b"\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"rows.{form.decode()}")
        path.write_bytes(content)
        _forked(lambda: _read_damaged(form.decode(), path))


def _read_damaged(form: str, path: Path) -> None:
    import tabweave
    from tabweave.engines import read
    from tabweave.io.files import _read_book

    with contextlib.suppress(ValueError, TypeError, OSError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if form == "model":
            tabweave.load(path).query({"a": ["red"], "b": ["1"]}, 2)
            return
        if form == "xlsx":  # in this process, not in a further one
            rows = _unless_panic(lambda: _read_book(path, 1 << 28, 5_000_000))
        else:
            rows = read((f"sqlite:///{path}", "SELECT * FROM t") if form == "sqlite" else path)
        tabweave.Counts.of(tabweave.Table.of(rows))


def _unless_panic(work: Callable[[], Any]) -> Any:
    """Return what work returns; a panic of compiled code is a ValueError here."""
    try:
        return work()
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise ValueError(str(error)) from None
        raise


def _forked(work: Callable[[], None], seconds: int = 30, max_bytes: int = 1 << 30) -> None:
    """Work in a forked process; raise if it crashes, raises, takes longer or more memory.

    Seconds are those of a processor; it may wait ten times as long on a busy machine.
    """
    loaded = "pyarrow.csv pyarrow.feather pyarrow.parquet duckdb tabweave.engines"
    for module in (*loaded.split(), "tabweave.embed.weave", "tabweave.neighbors.index"):
        importlib.import_module(module)  # once, and not in each process
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if not child:
            code = 1
            try:
                signal.alarm(10 * seconds)
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
                os.dup2(said.fileno(), 2)
                work()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status, usage = os.wait4(child, 0)
        said.seek(0)
        assert status == 0, (os.waitstatus_to_exitcode(status), said.read()[-2000:])
        assert usage.ru_maxrss * 1024 - before < max_bytes, usage.ru_maxrss


# -- requests -------------------------------------------------------------------------------------


def requests() -> Any:
    """Return how questions are drawn: method, address, body; what is there goes by its name."""
    try:
        import schemathesis
    except ImportError:
        return make_requests
    description = schemathesis.openapi.from_dict(_client().app.openapi())
    asked = [found.ok().as_strategy() for found in description.get_all_operations()]
    one = st.tuples(st.one_of(asked), st.booleans(), st.sampled_from(_RESULTS))
    return st.lists(one.map(_question), min_size=1, max_size=4).map(
        lambda q: json.dumps(q).encode()
    )


_RESULTS = ["report.html", "vectors.csv", "vectors.parquet", "model.tabweave", "x"]


def _question(drawn: tuple[Any, bool, str]) -> list[Any]:
    case, is_there, kind = drawn
    path, body = case.path, case.body
    if is_there:
        path = path.replace("{name}", "JOB").replace("{kind}", kind)
        query = {**case.query, **({"jobs": "JOB"} if "jobs" in case.query else {})}
        if isinstance(body, dict) and "source" in body:
            body = {**body, "source": "SOURCE"}
    else:
        path, query = case.formatted_path, case.query
    json_body = isinstance(body, dict | list | str | int | float | None)
    return [
        case.method,
        f"{path}?{urlencode(query, errors='replace')}",
        body if json_body else None,
    ]


def make_requests(rng: random.Random) -> bytes:
    """Return questions to the routes that the studio has."""
    routes = [(m, r.path) for r in _client().app.routes for m in getattr(r, "methods", ())]
    asked = []
    for _ in range(rng.randint(1, 4)):
        method, path = rng.choice(routes)
        for name in ("name", "kind"):
            odd = rng.choice(["x", "..", "%00", "é", "a" * 300, "JOB", "JOB"])
            path = path.replace("{" + name + "}", odd)
        query = "&".join(f"{k}={rng.choice(['', '0', '-1', 'x', '9' * 40])}"
                         for k in rng.sample(["a", "b", "row", "jobs", "name"], 2))  # fmt: skip
        keys = rng.sample(["path", "source", "method", "target", "columns", "table"], 2)
        body = rng.choice([None, {k: rng.choice(_JSON + _WORDS) for k in keys}, [], "x"])
        asked.append([method, f"{path}?{query}", body])
    return json.dumps(asked).encode()


def check_requests(data: bytes) -> None:
    """Every question gets an answer below 500."""
    for method, path, body in json.loads(data):
        if method == "DELETE" and "JOB" in path:
            continue  # the job that the others ask about stays
        answer = _client().request(method, _named(path), json=json.loads(_named(json.dumps(body))))
        assert answer.status_code < 500, (method, path, body, answer.status_code)


def _named(text: str) -> str:
    """Put what is there for the words that stand for it."""
    for word in ("SOURCE", "JOB"):
        text = text.replace(word, _there()[word]) if word in text else text
    return text


@cache
def _client() -> Any:
    """Return a client of a studio."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fastapi.testclient import TestClient
    from tabweave.apps.studio import create_app

    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "rows.csv").write_text("a,b\n" + "x,1\ny,2\n" * 20)
    app = create_app(folder, token="fuzz")  # noqa: S106
    headers = {"X-Tabweave-Token": "fuzz"}
    client = TestClient(app, "http://127.0.0.1", headers=headers, raise_server_exceptions=False)
    client.__enter__()
    return client


@cache
def _there() -> dict[str, str]:
    """Return a source that is open and a job that has ended, by the words that stand for them."""
    client = _client()
    source = client.post("/api/open", json={"path": "rows.csv"}).json()["source"]
    job = client.post("/api/jobs", json={"source": source, "method": "onehot"}).json()["job"]
    while client.get(f"/api/jobs/{job}").json()["state"] not in ("done", "failed"):
        time.sleep(0.1)
    return {"SOURCE": source, "JOB": job}


# -- throwing -------------------------------------------------------------------------------------


DOORS: dict[str, tuple[Callable[[], Any], Callable[[bytes], None]]] = {
    "tables": (tables, check_tables),
    "files": (lambda: make_files, check_files),
    "text": (lambda: make_text, check_text),
    "damaged": (lambda: make_damaged, check_damaged),
    "requests": (requests, check_requests),
}


def thrower(door: str, most: int = _ROUND) -> tuple[Callable[[int], None], list[bytes]]:
    """Return what throws so many inputs at a door, from a seed, and the list of the last input."""
    source, check = DOORS[door]
    drawn, last = source(), [b""]
    options = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))

    def run(data: bytes) -> None:
        last[0] = data
        check(data)

    def throw(seed: int) -> None:
        if isinstance(drawn, st.SearchStrategy):
            seeded(seed)(settings(options, max_examples=most)(given(drawn)(run)))()
        else:
            rng = random.Random(seed)
            for _ in range(most):
                run(drawn(rng))

    return throw, last


def main() -> int:
    """Throw until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="for each door")
    parser.add_argument("--doors", nargs="+", choices=DOORS, default=list(DOORS))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--most", type=int, default=sys.maxsize, help="inputs for each door")
    options = parser.parse_args()
    seed = time.time_ns() % 2**32 if options.seed is None else options.seed
    FORMATS[:] = options.formats
    for door in options.doors:
        throw, last = thrower(door)
        rounds, end = 0, time.monotonic() + 60 * options.minutes
        while time.monotonic() < end and rounds * _ROUND < options.most:
            try:
                throw(seed + rounds)
            except Exception:
                traceback.print_exc()
                (CORPUS / door).mkdir(parents=True, exist_ok=True)
                path = CORPUS / door / str(seed + rounds)
                path.write_bytes(last[0])
                print(f"{door}: broken by {path} after {_ROUND * rounds} inputs (seed {seed})")
                return 1
            rounds += 1
        told = f"{_ROUND * rounds} inputs in {options.minutes:g} minutes (seed {seed})"
        print(f"{door}: {told}, nothing broke", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
