"""Throw odd things at every door, for as long as you like; what breaks is kept.

Usage: python tools/fuzz.py [--minutes M] [--doors tables files text requests] [--seed S]

- tables: random tables by every engine that reads them; counts must be equal, and so must labels.
- files: saved models and indexes with bytes changed, cut, doubled; a file is read as it was written
  or refused by a ValueError, in little time.
- text: CSV and JSON text; it is read, or refused by a ValueError that names the file.
- requests: questions to the studio, of its own routes; an answer below 500.

An input that breaks a promise is written to tests/corpus/<door>, where the tests run it from then
on, and the program ends with its traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
_WORDS = ["", "a", "A", "1", "01", " 1", "1.0", "0x1F", "1e3", "-0", "nan", "NULL", "true", "é",
          "2020-01-01", "12:30", "a,b", 'q"q', "a\nb", "\t", "9007199254740993",
          "12345678901234567890", "⟨other⟩", "ß", "\u200b"]  # fmt: skip
_JSON = [None, True, False, 0, 1, -1, 1.5, 1e300, 10**20, "x", "1", [], [1, "1"], ["a"]]


def table_of(rng: random.Random) -> dict[str, list[str]]:
    """Return some rows of text."""
    n = rng.randint(1, 12)
    return {f"c{j}": [rng.choice(_WORDS) for _ in range(n)] for j in range(rng.randint(1, 4))}


def check_tables(data: bytes) -> None:
    """Rows give the same counts in memory, in chunks, from Arrow, Parquet and frames."""
    from tabweave import Counts, Table

    rows = json.loads(data)
    schema = dict.fromkeys(rows, "nominal")
    whole = Counts.of(Table.of(rows, schema))
    n = len(next(iter(rows.values())))
    parts = [{name: cells[i : i + 5] for name, cells in rows.items()} for i in range(0, n, 5)]
    assert sum((Counts.of(Table.of(p, schema)) for p in parts), Counts()) == whole
    for make in _frames():
        assert Counts.of(Table.of(make(rows), schema)) == whole, make


def _frames() -> list[Callable[[Any], Any]]:
    import duckdb
    import pandas
    import polars
    import pyarrow

    def from_duckdb(rows: Any) -> Any:
        arrow = pyarrow.table(rows)  # noqa: F841 (found by its name)
        return duckdb.sql("SELECT * FROM arrow").to_arrow_table()

    return [pandas.DataFrame, polars.DataFrame, pyarrow.table, from_duckdb]


def check_files(data: bytes) -> None:
    """Read a file: it is what was written, or refused by a ValueError."""
    import tabweave

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        path.write_bytes(data)
        with contextlib.suppress(ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tabweave.load(path)


def check_text(data: bytes) -> None:
    """Text is read so that cells that differ are labels that differ, or it is refused."""
    from tabweave import Table
    from tabweave.engines import read

    suffix, _, text = data.partition(b"\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"rows.{suffix.decode()}")
        path.write_bytes(text)
        with contextlib.suppress(ValueError, TypeError):
            Table.of(read(path))


def check_requests(data: bytes) -> None:
    """Every question gets an answer below 500."""
    client = _client()
    for method, path, body in json.loads(data):
        answer = client.request(method, path, json=body)
        assert answer.status_code < 500, (method, path, body, answer.status_code)


_clients: list[Any] = []


def _client() -> Any:
    if not _clients:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from fastapi.testclient import TestClient
        from tabweave.apps.studio import create_app

        held = tempfile.TemporaryDirectory(prefix="fuzz-")
        folder = Path(held.name)
        (folder / "rows.csv").write_text("a,b\n" + "x,1\ny,2\n" * 20)
        app = create_app(folder, token="fuzz")  # noqa: S106
        headers = {"X-Tabweave-Token": "fuzz"}
        client = TestClient(app, "http://127.0.0.1", headers=headers, raise_server_exceptions=False)
        _clients.extend([client.__enter__(), held])
    return _clients[0]


# -- what is thrown -----------------------------------------------------------------------------


def make_tables(rng: random.Random) -> bytes:
    """Return a table as JSON."""
    return json.dumps(table_of(rng)).encode()


def make_files(rng: random.Random) -> bytes:
    """Return a saved model, changed."""
    from tabweave import MixedEmbedder, OneHot, SimilarityIndex, Weave

    rows = table_of(rng)
    schema = dict.fromkeys(rows, "nominal")
    kind = rng.choice([Weave, OneHot, MixedEmbedder])
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "model")
        model = kind(schema=schema).fit(rows)
        rng.choice([model, SimilarityIndex(model).fit(rows)]).save(path)
        data = bytearray(path.read_bytes())
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


def make_text(rng: random.Random) -> bytes:
    """Return CSV or JSON text, its suffix in the first line."""
    suffix = rng.choice(["csv", "tsv", "json", "jsonl"])
    if "json" in suffix:
        rows = [{f"c{j}": rng.choice(_JSON + _WORDS) for j in range(rng.randint(0, 3))}
                for _ in range(rng.randint(0, 6))]  # fmt: skip
        lines = [json.dumps(row) for row in rows]
        text = "[" + ",".join(lines) + "]" if suffix == "json" else "\n".join(lines)
    else:
        mark = "," if suffix == "csv" else "\t"
        rows = [[rng.choice(_WORDS) for _ in range(rng.randint(1, 4))] for _ in range(6)]
        text = "\n".join(mark.join(row) for row in rows)
    data = bytearray(text.encode())
    if data and rng.random() < 0.3:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return f"{suffix}\n".encode() + bytes(data)


def make_requests(rng: random.Random) -> bytes:
    """Return questions to the routes that the studio has."""
    routes = [(m, r.path) for r in _client().app.routes for m in getattr(r, "methods", ())]
    asked = []
    for _ in range(rng.randint(1, 4)):
        method, path = rng.choice(routes)
        for name in ("name", "kind"):
            path = path.replace("{" + name + "}", rng.choice(["x", "..", "%00", "é", "a" * 300]))
        query = "&".join(f"{k}={rng.choice(['', '0', '-1', 'x', '9' * 40])}"
                         for k in rng.sample(["a", "b", "row", "jobs", "name"], 2))  # fmt: skip
        keys = rng.sample(["path", "source", "method", "target", "columns", "table"], 2)
        body = rng.choice([None, {k: rng.choice(_JSON + _WORDS) for k in keys}, [], "x"])
        asked.append([method, f"{path}?{query}", body])
    return json.dumps(asked).encode()


DOORS = {
    "tables": (make_tables, check_tables),
    "files": (make_files, check_files),
    "text": (make_text, check_text),
    "requests": (make_requests, check_requests),
}


def main() -> int:
    """Throw until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="for each door")
    parser.add_argument("--doors", nargs="+", choices=DOORS, default=list(DOORS))
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = time.time_ns() % 2**32 if options.seed is None else options.seed
    for door in options.doors:
        make, check = DOORS[door]
        rng, n, end = random.Random(seed), 0, time.monotonic() + 60 * options.minutes
        while time.monotonic() < end:
            data = make(rng)
            try:
                check(data)
            except Exception:
                traceback.print_exc()
                (CORPUS / door).mkdir(parents=True, exist_ok=True)
                path = CORPUS / door / f"{seed}-{n}"
                path.write_bytes(data)
                print(f"{door}: broken by {path} after {n} inputs (seed {seed})")
                return 1
            n += 1
        print(f"{door}: {n} inputs in {options.minutes:g} minutes (seed {seed}), nothing broke")
    return 0


if __name__ == "__main__":
    sys.exit(main())
