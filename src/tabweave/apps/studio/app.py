"""The server: a token before everything, a page, questions in JSON, and how it is started."""

from __future__ import annotations

import csv
import hmac
import ipaddress
import json
import secrets
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial, wraps
from importlib.resources import files
from os import PathLike
from pathlib import Path
from pprint import pformat
from typing import Any, Literal

import numpy as np
from sklearn import config_context
from sklearn.base import clone

from tabweave import datasets, export
from tabweave._compat import require
from tabweave.apps import methods
from tabweave.apps.methods import learns_from_classes
from tabweave.apps.report.html import cell, embedded, filled, page
from tabweave.apps.report.rows import column_shares
from tabweave.apps.studio import answers
from tabweave.apps.studio.answers import check_row, index_of, opened, rows_of_marks
from tabweave.apps.studio.files import (
    ENCODINGS,
    FORMATS,
    MAX_FILE_BYTES,
    Changed,
    Holding,
    OpenFile,
    Refused,
    TooLarge,
    first_rows,
    inside,
    listed,
    stamp_of,
    suffix_of,
)
from tabweave.apps.studio.jobs import (
    Jobs,
    Question,
    StudioJob,
    cache_folder,
    file_reader,
    job_key,
    keep_finished,
    restore_finished,
    table_reader,
)
from tabweave.apps.studio.rows import Rows, write_labelled, write_rows
from tabweave.columns.table import take_rows
from tabweave.io.files import replacing
from tabweave.io.register import KINDS
from tabweave.space.points import row_blocks

# -- What the server holds: the start folder, the files that were let in, and the jobs ------------

# Tables that come with the library, and what their classes are called.
BUILT_IN = {"titanic": "survived", "car": "rating", "nursery": "advice", "krkopt": "moves",
            "tictactoe": "x wins"}  # fmt: skip


class Studio:
    """The start folder, the files let in, and the jobs."""

    def __init__(self, start: Path, limit: int) -> None:
        self.root = start if start.is_dir() else start.parent
        self.first = None if start.is_dir() else start.name
        self.limit = limit
        self._holding = Holding.begin()
        self.folder = self._holding.folder
        self.jobs = Jobs(self.folder)
        self._files: dict[str, OpenFile] = {}
        self._previews: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._preview_lock = threading.Lock()
        self._uploaded_bytes = 0
        self._slow_threads: Any = None
        self._rows: dict[tuple[Any, ...], Future[Rows]] = {}
        self._row_threads = ThreadPoolExecutor(2, "rows")
        self._first_job: StudioJob | None = None
        self._start_lock = threading.Lock()
        self._is_asked = False

    def close(self) -> None:
        """End all jobs, and leave nothing behind."""
        self.jobs.close()
        self._row_threads.shutdown(cancel_futures=True)
        for rows in self._rows.values():
            if not rows.cancelled() and rows.exception() is None:
                rows.result().close()
        self._holding.end()

    async def run_slow(self, work: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Do what may take long in one of few threads; the others wait for short answers."""
        from anyio import CapacityLimiter, to_thread

        if self._slow_threads is None:
            self._slow_threads = CapacityLimiter(8)
        call = partial(work, *args, **named)
        return await to_thread.run_sync(call, limiter=self._slow_threads)

    def slow(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        """Mark an answer that may take long."""

        @wraps(answer)
        async def slow_answer(**named: Any) -> Any:
            return await self.run_slow(answer, **named)

        return slow_answer

    def let_in(
        self, path: Path, name: str, encoding: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Check a table, remember it, and return its columns and first rows."""
        stamp = stamp_of(path)
        try:
            preview = self._preview(path, stamp, encoding)
        except ValueError as error:
            text = str(error) if stamp else "it is no longer there; was it moved or deleted?"
            text = text.replace(str(path), name).strip().removeprefix(f"{name}: ")
            raise Refused(f"{name!r} cannot be opened: {text[:600]}") from None
        key = key or secrets.token_hex(8)
        self._files[key] = file = OpenFile(path, name, stamp, encoding)
        self._begin_rows(file)
        return preview | {"source": key, "name": name}

    def _begin_rows(self, file: OpenFile) -> Future[Rows]:
        """Begin to read all rows of a file as it is, once for all who open it."""
        key = file.path, file.stamp, file.encoding
        with self._preview_lock:
            if key not in self._rows or self._rows[key].cancelled():
                self._rows[key] = self._row_threads.submit(self._read_rows, file)
            return self._rows[key]

    def _read_rows(self, file: OpenFile) -> Rows:
        folder = self.folder / "rows" / secrets.token_hex(8)
        folder.mkdir(parents=True)
        key = job_key(file, "rows")
        if not restore_finished(folder, key, "rows.json"):
            with tempfile.TemporaryDirectory(dir=folder) as copies:
                table_reader().call(
                    write_rows, file.path, file.encoding, Path(copies), self.limit, folder
                )
            keep_finished(folder, cache_folder(), key)
        return Rows(folder, self._clusters_of)

    def rows_of(self, key: str) -> Rows:
        """All rows of a file that was let in, as soon as they are read."""
        file = self.file(key)
        file.check_current()
        try:
            return self._begin_rows(file).result()
        except ValueError as error:
            text = str(error).replace(str(file.path), file.name)
            raise Refused(f"{file.name!r} cannot be read: {text[:600]}") from None

    def warm_index(self, job: StudioJob) -> None:
        """Make ready what finds near rows, while the page shows the row that is looked at."""
        self._row_threads.submit(index_of, job)

    def job_and_rows(self, name: str) -> tuple[StudioJob, Rows]:
        """A job that has something to show, and all rows of its table."""
        job = self.finished(name)
        return job, self._begin_rows(job.source).result()

    def labelled(self, key: str, form: str, label: str) -> Path:
        """A file of all rows and columns of a table, and the group of each row."""
        if not 0 < len(label) <= 200:
            raise ValueError(
                f"expected a name of 1 to 200 characters for the column, got {label!r}"
            )
        rows = self.rows_of(key)
        codes, names = rows.labels()
        with rows.export_lock:
            np.save(rows.folder / "labels.npy", codes)
            target = rows.folder / f"labelled.{form}"
            table_reader().call(write_labelled, rows.folder, names, target, label)
        return target

    def _clusters_of(self, job: str) -> np.ndarray:
        return np.load(self.finished(job).folder / "row_clusters.npy", mmap_mode="r")

    def _preview(self, path: Path, stamp: tuple[int, ...], encoding: str | None) -> dict[str, Any]:
        """The first rows of a file as it is now, read once for all who open it."""
        key = path, stamp, encoding
        with self._preview_lock:
            if key not in self._previews:
                with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                    self._previews[key] = file_reader().call(
                        first_rows, path, encoding, Path(folder), self.limit
                    )
            return self._previews[key]

    def again(self, key: str, encoding: str | None = None) -> dict[str, Any]:
        """A table that was let in as its file is now, read in another encoding if asked."""
        file = self.file(key)
        return self.let_in(file.path, file.name, encoding or file.encoding, key)

    def built_in(self, name: str) -> dict[str, Any]:
        """Let in a table that comes with the library."""
        if name not in BUILT_IN:
            raise Refused(f"expected a table, one of {', '.join(BUILT_IN)}, got {name!r}")
        path = self.folder / f"{name}.csv"
        if not path.exists():
            data = getattr(datasets, name)()
            with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow([*data.columns, BUILT_IN[name]])
                writer.writerows(zip(*data.columns.values(), data.y, strict=True))
        return self.let_in(path, f"{name}.csv") | {"target": BUILT_IN[name]}

    async def take(self, request: Any, name: str) -> dict[str, Any]:
        """Write an upload to a separate file, and stop when it gets too large."""
        name = (Path(name.replace("\\", "/")).name or "upload")[-200:]
        suffix = suffix_of(name) + (".gz" if name.lower().endswith(".gz") else "")
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > self.limit:
            raise TooLarge(self.limit)
        if self._uploaded_bytes > 4 * self.limit:
            raise Refused("the limit of uploads is reached; stop the studio and start it again")
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir()
        path = folder / f"table{suffix}"
        try:
            await self._receive(request, path)
            return await self.run_slow(self.let_in, path, name)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    async def _receive(self, request: Any, path: Path) -> None:
        size = 0
        with path.open("wb") as file:
            async for block in request.stream():
                size += len(block)
                if size > self.limit:
                    raise TooLarge(self.limit)
                file.write(block)
        self._uploaded_bytes += size

    def file(self, key: str) -> OpenFile:
        """A file that was let in."""
        if key not in self._files:
            raise KeyError("this file is no longer open; open it again")
        return self._files[key]

    def warm(self) -> None:
        """Begin what the page will ask for first, while a browser starts to show it."""
        self.jobs.warm()
        if self.first is None:
            return
        with suppress(ValueError):  # the page will say why
            key = self.let_in(self.root / self.first, self.first)["source"]
            with self._start_lock:
                if not self._is_asked:
                    self._first_job = self.jobs.start(self.file(key), Question(), self.limit)

    def start(self, key: str, question: Question) -> StudioJob:
        """Start a job on a file as it is now."""
        self.again(key)
        file = self.file(key)
        with self._start_lock:
            first, self._first_job, self._is_asked = self._first_job, None, True
        if first is not None:
            first.look()
            if first.state in ("running", "done") and (first.source, first.question) == (
                file,
                question,
            ):
                return first
            first.cancel()
        return self.jobs.start(file, question, self.limit)

    def finished(self, name: str) -> StudioJob:
        """A job that has something to show."""
        job = self.jobs[name]
        job.look()
        if job.state != "done":
            raise Refused(f"this job is {job.state}; there is nothing to show")
        job.source.check_current()
        return job


# -- Questions about a finished job: why two rows differ, which rows are near, what to download.

DOWNLOADS = {
    "vectors.csv": "text/csv",
    "vectors.parquet": "application/octet-stream",
    "model.tabweave": "application/octet-stream",
    "model.sql": "text/plain",
    "model.onnx": "application/octet-stream",
    "program.py": "text/plain",
    "report.html": "text/html",
}


# Arrays of what the map draws, one entry a mark; and the mark of each row.
MapPart = Literal["rows", "copies", "clusters", "layout-0", "layout-1", "row_marks"]

# -- answers ------------------------------------------------------------------------------------


def described(job: StudioJob, part: str = "description") -> dict[str, Any]:
    """What the job found; or in a sample, or the map by neighbourhoods."""
    path = job.folder / f"{part}.json"
    if not path.exists():
        return {"layouts": [], "without": ""} if part == "layouts" else {}
    return json.loads(path.read_text(encoding="utf-8"))


def page_of(job: StudioJob) -> str:
    """The report of the job as a page."""
    description = described(job)
    by_neighborhood = described(job, "layouts")
    description["map"]["layouts"] += by_neighborhood["layouts"]
    description["map"]["without"] = by_neighborhood["without"]
    return page(description, title=job.source.name)


def explained(job: StudioJob, a: int, b: int) -> dict[str, Any]:
    """Two rows side by side, and each column's share in what keeps them apart."""
    reading, model = opened(job)
    for row in (a, b):
        check_row(row, reading.table.n_rows)
    left, right = (take_rows(reading.features(), np.array([row])) for row in (a, b))
    parts = model.explain(left, right)
    total = float(sum(parts.values()))
    cells_a, cells_b = (row_of(reading, row) for row in (a, b))
    columns = []
    for name, part in sorted(parts.items(), key=lambda item: -item[1]):
        share = float(part) / total if total > 0 else 0.0
        cells = {"a": cells_a.get(name), "b": cells_b.get(name)}
        columns.append({"column": name, **cells, "adds": float(part), "share": share})
    distance = float(model.pairwise_distances(left, right)[0, 0])
    ids = reading.ids_of(np.array([a, b]))
    return {"a": a, "b": b, **ids, "distance": distance, "columns": columns}


def row_of(reading: Any, row: int) -> dict[str, str | None]:
    """The cells of a row as text."""
    return {column.name: cell(data, row) for column, data in reading.table}


def nearest_rows(job: StudioJob, row: int, k: int = 8) -> dict[str, Any]:
    """The rows nearest to one, copies of it among them."""
    reading, model = opened(job)
    features, n_rows = reading.features(), reading.table.n_rows
    check_row(row, n_rows)
    # Copies come first in the order of rows, so the row itself may be beyond the first k.
    answer = index_of(job).query(take_rows(features, np.array([row])), min(k + 1, n_rows))
    others = np.flatnonzero(answer.positions[0] != row)[:k]
    positions, distances = answer.positions[0][others], answer.distances[0][others]
    shares = column_shares(model, features, np.full(len(positions), row), positions)
    cells, neighbors = row_of(reading, row), []
    for j, (position, distance) in enumerate(zip(positions.tolist(), distances, strict=True)):
        others_cells = row_of(reading, position)
        most_first = sorted((-share[j], name) for name, share in shares.items())
        differs = [name for _, name in most_first if others_cells.get(name) != cells.get(name)]
        measured = {"distance": float(distance), "cells": others_cells, "differs": differs}
        neighbors.append(reading.row_and_id(position) | measured)
    return {**reading.row_and_id(row), "cells": cells, "near": neighbors}


# -- downloads ----------------------------------------------------------------------------------


def made(job: StudioJob, kind: str) -> Path | bytes:
    """A download, made when it is asked for: a file, or its bytes."""
    if kind not in DOWNLOADS:
        raise ValueError(f"expected a download, one of {', '.join(DOWNLOADS)}, got {kind!r}")
    if kind == "program.py":
        return program_of([job]).encode()
    if kind == "report.html":
        return page_of(job).encode()
    path = job.folder / kind
    with job.download_lock:  # who asks for what another is waiting for waits, too
        if not path.exists():
            _make(job, path)
    return path


def _make(job: StudioJob, path: Path) -> None:
    reading, model = opened(job)
    names = [str(name) for name in model.get_feature_names_out()]
    with replacing(path) as part:
        if path.name == "model.sql":
            part.write_text(str(export.sql(model)), encoding="utf-8")
        elif path.name == "model.onnx":
            export.onnx(model, part)
        elif path.name == "vectors.csv":
            _write_csv(model, reading.features(), part, names)
        else:
            _write_parquet(made(job, "vectors.csv"), part, names)


def _write_csv(model: Any, features: Any, path: Path, names: list[str]) -> None:
    """Write the vectors block by block, so that they are never in memory at once."""
    n_rows, max_numbers = features.n_rows, 1 << 28  # 2 GB
    if n_rows * len(names) > max_numbers:
        raise ValueError(
            f"{n_rows:,} rows of {len(names):,} dimensions are too many to download; download the "
            f"model and use `tabweave embed`"
        )
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for block in row_blocks(n_rows, 8 * len(names)):
            rows = take_rows(features, np.arange(block.start, block.stop))
            writer.writerows(model.transform(rows).tolist())


def _write_parquet(source: Any, path: Path, names: list[str]) -> None:
    """Turn the CSV, which holds every digit, into Parquet; no other library is needed."""
    duckdb = require("duckdb", "files")
    with duckdb.connect() as connection:
        relation = connection.read_csv(
            str(source), header=True, dtype=dict.fromkeys(names, "DOUBLE")
        )
        relation.write_parquet(str(path))


# -- the program that makes what is shown -------------------------------------------------------


def program_of(jobs: list[StudioJob], rows: tuple[int, int] | None = None) -> str:
    """The Python that makes what one job shows, or two side by side."""
    shown = [(job.method, *opened(job)) for job in jobs]
    for row in rows or ():
        check_row(row, shown[0][1].table.n_rows)
    first = jobs[0]
    kinds = dict(first.question.kinds)
    return program(first.source.name, shown, rows, kinds, first.source.encoding)


def program(
    name: str,
    shown: list[tuple[str, Any, Any]],
    rows: tuple[int, int] | None = None,
    kinds: dict[str, str] | None = None,
    encoding: str | None = None,
) -> str:
    """A program.

    Parameters
    ----------
    name : str
        The file, as the program finds it.
    shown : list of (method, reading, model)
        What is on screen, left to right.
    rows : (int, int), optional
        Two rows that are explained.
    kinds : dict of str to str, optional
        Kinds of columns that were chosen.
    encoding : str, optional
        That of the file, if it was chosen.
    """
    reading = shown[0][1]
    target, needs_classes = reading.target, any(learns_from_classes(m) for m, _, _ in shown)
    declared = (kinds or {}) | ({target: "nominal"} if needs_classes and target else {})
    source = f"Path({name!r})"
    if encoding is not None:
        source = f"engines.open_source({source}, encoding={encoding!r})"
    used = {"Table", "engines"}.union(*(_classes_of(model) for _, _, model in shown))
    lines = [
        "from pathlib import Path",
        "",
        f"from tabweave import {', '.join(sorted(used))}",
        "from tabweave.apps.report import describe, page",
        "",
        f"table = Table.of(engines.read({source}), {declared or None!r}, rules='all')",
        f"columns = {pformat(reading.kept, width=88)}",
        "rows = table.select(columns)",
    ]
    if needs_classes:
        lines.append(f"classes = [table[{target!r}].labels[c] for c in table[{target!r}].codes]")
    for side, row in zip(("first", "other"), rows or (), strict=False):
        cells = {column: reading.table[column].cell(row) for column in reading.kept}
        lines += [f"# row {row}", f"{side} = {pformat(cells, width=88, sort_dicts=False)}"]
    for letter, (method, _, model) in zip("ab", shown, strict=False):
        suffix = f"_{letter}" if len(shown) > 1 else ""
        lines += ["", *_model_lines(suffix, method, model, target)]
        if rows is not None:
            lines.append(f"print(model{suffix}.explain(first, other))")
    return "\n".join([*lines, ""])


def _model_lines(suffix: str, method: str, model: Any, target: str | None) -> list[str]:
    with config_context(print_changed_only=True):
        constructor = " ".join(repr(clone(model)).split())
    classes = ", classes" if learns_from_classes(method) else ""
    options = "" if target is None else f"target={target!r}, "
    return [
        f"model{suffix} = {constructor}.fit(rows{classes})",
        f"vectors{suffix} = model{suffix}.transform(rows)",
        "# map, clusters, neighbours",
        f"description{suffix} = describe(table, {options}method=model{suffix})",
        f"html = page(description{suffix})",
        f"Path('report{suffix}.html').write_text(html, encoding='utf-8')",
    ]


def _classes_of(model: Any) -> set[str]:
    return {type(model).__name__}


# -- the server -----------------------------------------------------------------------------------

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def create_app(
    start: Path | str = ".",
    *,
    token: str,
    hosts: Sequence[str] = ("127.0.0.1", "localhost"),
    limit: int = MAX_FILE_BYTES,
) -> Any:
    """The studio as an ASGI application.

    Parameters
    ----------
    start : path, optional
        The folder whose files can be opened, or a file to open at once.
    token : str
        What every request must carry, in the URL of the page or in the header
        ``X-Tabweave-Token``.
    hosts : sequence of str, optional
        Names under which the server may be addressed; others are refused. ``0.0.0.0`` or ``::``
        stands for every address in numbers.
    limit : int, optional
        Most bytes of an upload.

    Examples
    --------
    >>> from tabweave.apps.studio import create_app
    >>> app = create_app(token="secret")  # for any ASGI server; ``serve`` brings one
    >>> app.state.studio.close()  # which the server does when it ends
    """
    fastapi = require("fastapi", "studio")
    if not token:
        raise ValueError("expected a token, got an empty string; use secrets.token_urlsafe()")
    studio = Studio(Path(start).resolve(), limit)

    @asynccontextmanager
    async def life(app: Any) -> Any:
        yield
        studio.close()

    app = fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=life)
    app.state.studio = studio
    app.middleware("http")(_guard(token, hosts))
    from fastapi.exceptions import RequestValidationError

    for kind in (RequestValidationError, ValueError, KeyError, TypeError, ImportError):
        app.add_exception_handler(kind, _error_response)
    _pages(app, studio, token)
    _tables(app, studio)
    _rows(app, studio)
    _groups(app, studio)
    _jobs(app, studio)
    return app


def _guard(token: str, hosts: Sequence[str]) -> Callable[..., Any]:
    """The door: right host, own origin, right token; and headers that keep others out."""
    from fastapi.responses import PlainTextResponse

    def refusal(request: Any) -> str | None:
        address = request.headers.get("host", "")
        origin = request.headers.get("origin")
        key = request.headers.get("x-tabweave-token") or request.query_params.get("token", "")
        if not _is_own(address, hosts):
            return "this server has another name"
        if origin is not None and origin != f"http://{address}":
            return "requests from other pages are refused"
        if not hmac.compare_digest(key.encode(), token.encode()):
            return "open the address that `tabweave studio` printed"
        return None

    async def guard(request: Any, call_next: Any) -> Any:
        reason = refusal(request)
        response = PlainTextResponse(reason, 403) if reason else await call_next(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return guard


def _is_own(address: str, hosts: Sequence[str]) -> bool:
    """Whether a Host header names this server; a foreign name may have been made to lead here."""
    name, _, port = address.rpartition(":")
    name = (name if name and port.isdigit() else address).strip("[]")
    if name in hosts:
        return True
    if not {"0.0.0.0", "::"} & set(hosts):  # noqa: S104
        return False
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


async def _error_response(request: Any, error: Exception) -> Any:
    from fastapi.responses import JSONResponse

    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if hasattr(error, "errors"):  # a question that is not well formed
        text = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
    status = {TooLarge: 413, Changed: 409, KeyError: 404}.get(type(error), 400)
    return JSONResponse({"error": text}, status)


def _pages(app: Any, studio: Studio, token: str) -> None:
    from fastapi.responses import HTMLResponse

    @app.get("/")
    def home() -> Any:
        studio.jobs.warm()
        nonce = secrets.token_urlsafe(12)
        offered = methods.described("pages")
        facts = {
            "token": token,
            "first": studio.first,
            "limit": studio.limit,
            "folder": studio.root.name or "/",
            "formats": FORMATS,
            "kinds": list(KINDS),
            "tables": list(BUILT_IN),
            "encodings": ENCODINGS,
            "methods": offered,
            "supervised": [name for name in offered if methods.learns_from_classes(name)],
            "embedders": methods.embedders("pages"),
            "downloads": list(DOWNLOADS),
        }
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
            "img-src data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'"
        )
        return HTMLResponse(_page(nonce, facts), headers={"Content-Security-Policy": policy})

    @app.get("/report/{name}")
    def report(name: str) -> Any:
        return HTMLResponse(page_of(studio.finished(name)))


def _page(nonce: str, facts: dict[str, Any]) -> str:
    report, studio = (files(f"tabweave.apps.{app}") / "static" for app in ("report", "studio"))
    # The page draws maps and clusters as the report does, with the same parts.
    scripts = [report / f"{name}.js" for name in ("base", "map", "clusters", "couplings", "values")]
    scripts += [
        studio / f"{name}.js"
        for name in (
            "studio",
            "open",
            "compare",
            "charts",
            "grid",
            "like",
            "groups",
            "together",
            "take",
        )
    ]
    styles = (report / "style.css", studio / "studio.css")
    parts = {
        "NONCE": nonce,
        "STYLE": "\n".join(path.read_text("utf-8") for path in styles),
        "FACTS": embedded(facts),
        "SCRIPT": "\n".join(path.read_text("utf-8") for path in scripts),
    }
    return filled((studio / "studio.html").read_text("utf-8"), parts)


def _tables(app: Any, studio: Studio) -> None:
    from fastapi import Body, Request

    @app.get("/api/files")
    def listing() -> dict[str, Any]:
        return {"folder": studio.root.name, "files": listed(studio.root)}

    @app.post("/api/open")
    @studio.slow
    def opened(
        path: str | None = Body(None),
        table: str | None = Body(None),
        source: str | None = Body(None),
        encoding: str | None = Body(None),
    ) -> dict[str, Any]:
        """Open a file of the folder, a table of the library, or again what is open."""
        if source is not None:
            return studio.again(source, encoding)
        if table is not None:
            return studio.built_in(table)
        file = inside(studio.root, path or "")
        return studio.let_in(file, str(file.relative_to(studio.root)), encoding)

    async def upload(request: Any, name: str) -> dict[str, Any]:
        return await studio.take(request, name)

    upload.__annotations__["request"] = Request  # known here only, not when this file is loaded
    app.post("/api/upload")(upload)

    @app.post("/api/jobs")
    @studio.slow
    def start(
        source: str = Body(),
        method: str = Body("auto"),
        target: str | None = Body(None),
        columns: dict[str, dict[str, Any]] | None = Body(None),  # noqa: B008, as FastAPI has it
    ) -> dict[str, Any]:
        methods.check(method, target, "pages")
        question = Question.of(method, target or None, columns or {})
        return studio.start(source, question).summary()


Filters = list[dict[str, Any]]


def _rows(app: Any, studio: Studio) -> None:
    """Questions about the rows of a table."""
    from fastapi import Body

    @app.get("/api/tables/{name}")
    @studio.slow
    def table(name: str) -> dict[str, Any]:
        return studio.rows_of(name).described()

    @app.post("/api/tables/{name}/names")
    def name_by(name: str, columns: list[str] = Body(embed=True)) -> dict[str, Any]:  # noqa: B008
        rows = studio.rows_of(name)
        rows.name_by(columns)
        return {"names": rows.names}

    @app.post("/api/tables/{name}/rows")
    def page_of_rows(
        name: str,
        filters: Filters = Body([]),  # noqa: B008
        sort: Filters = Body([]),  # noqa: B008
        offset: int = Body(0),
        limit: int = Body(100),
        columns: list[str] | None = Body(None),  # noqa: B008
        distinct: bool = Body(False),
    ) -> dict[str, Any]:
        return studio.rows_of(name).page(filters, sort, offset, limit, columns, distinct)

    @app.post("/api/tables/{name}/charts")
    def charts(
        name: str,
        filters: Filters = Body([]),  # noqa: B008
        columns: list[str] | None = Body(None),  # noqa: B008
    ) -> dict[str, Any]:
        return studio.rows_of(name).charts(filters, columns)

    @app.post("/api/tables/{name}/counts")
    def counts(name: str, filters: Filters = Body([], embed=True)) -> dict[str, Any]:  # noqa: B008
        rows = studio.rows_of(name)
        return {"rows": rows.n_rows, "passing": int(rows.mask(filters).sum())}

    @app.post("/api/tables/{name}/find")
    def find(name: str, text: str = Body(), limit: int = Body(20)) -> dict[str, Any]:
        return studio.rows_of(name).find(text[:200], limit)

    @app.post("/api/tables/{name}/values")
    def values(
        name: str,
        column: str = Body(),
        text: str = Body(""),
        filters: Filters = Body([]),  # noqa: B008
        limit: int = Body(50),
    ) -> dict[str, Any]:
        return studio.rows_of(name).values(column, text[:200], filters, limit)


def _groups(app: Any, studio: Studio) -> None:
    """Selections, groups of rows, how they differ, and the table with their names."""
    from fastapi import Body
    from fastapi.responses import FileResponse, Response

    @app.post("/api/tables/{name}/sets")
    def make_set(
        name: str,
        filters: Filters | None = Body(None),  # noqa: B008
        job: str | None = Body(None),
        marks: list[int] | None = Body(None),  # noqa: B008
    ) -> dict[str, Any]:
        rows = studio.rows_of(name)
        if marks is None or job is None:
            return rows.add_set(rows.mask(filters or []))
        return rows.add_set(rows_of_marks(studio.finished(job), marks))

    @app.post("/api/tables/{name}/differences")
    def differences(
        name: str,
        a: Filters = Body(),  # noqa: B008
        b: Filters | None = Body(None),  # noqa: B008
    ) -> dict[str, Any]:
        rows = studio.rows_of(name)
        mask = rows.mask(a)
        return rows.differences(mask, ~mask if b is None else rows.mask(b))

    @app.get("/api/tables/{name}/groups")
    def groups(name: str) -> list[dict[str, Any]]:
        return [group.described() for group in studio.rows_of(name).groups.values()]

    @app.get("/api/tables/{name}/groups/marks")
    def groups_of_marks(name: str, job: str) -> Any:
        marks = answers.groups_of_marks(studio.finished(job), studio.rows_of(name))
        return Response(marks.tobytes(), media_type="application/octet-stream")

    @app.post("/api/tables/{name}/groups")
    def make_group(
        name: str,
        title: str = Body(alias="name"),
        colour: int = Body(0),
        filters: Filters = Body([]),  # noqa: B008
    ) -> dict[str, Any]:
        return studio.rows_of(name).add_group(title, colour, filters)

    @app.patch("/api/tables/{name}/groups/{group}")
    def change_group(
        name: str,
        group: str,
        title: str | None = Body(None, alias="name"),
        colour: int | None = Body(None),
    ) -> dict[str, Any]:
        return studio.rows_of(name).change_group(group, title, colour)

    @app.delete("/api/tables/{name}/groups/{group}")
    def remove_group(name: str, group: str) -> list[dict[str, Any]]:
        rows = studio.rows_of(name)
        rows.group(group)
        del rows.groups[group]
        return groups(name)

    @app.get("/api/tables/{name}/export")
    @studio.slow
    def export(name: str, format: Literal["csv", "parquet"] = "csv", labels: str = "label") -> Any:
        path = studio.labelled(name, format, labels)
        stem = Path(studio.file(name).name.removesuffix(".gz")).stem
        return FileResponse(path, filename=f"{stem}-labelled.{format}")


def _jobs(app: Any, studio: Studio) -> None:
    from fastapi import Body
    from fastapi.responses import FileResponse, JSONResponse, Response

    def _binary(values: np.ndarray) -> Any:
        return Response(values.tobytes(), media_type="application/octet-stream")

    @app.get("/api/jobs/{name}")
    def state(name: str) -> dict[str, Any]:
        return studio.jobs[name].summary()

    @app.delete("/api/jobs/{name}")
    def cancel(name: str) -> dict[str, Any]:
        studio.jobs[name].cancel()
        return studio.jobs[name].summary()

    @app.get("/api/jobs/{name}/result")
    def result(name: str, part: Literal["description", "sample", "layouts"] = "description") -> Any:
        job = studio.jobs[name] if part == "sample" else studio.finished(name)
        return JSONResponse(described(job, part))

    @app.get("/api/jobs/{name}/map/{part}")
    def map_part(name: str, part: MapPart) -> Any:
        array = np.load(studio.finished(name).folder / f"{part}.npy", mmap_mode="r")
        return Response(array.tobytes(), media_type="application/octet-stream")

    @app.get("/api/jobs/{name}/explain")
    def explain(name: str, a: int, b: int) -> dict[str, Any]:
        return explained(studio.finished(name), a, b)

    @app.get("/api/jobs/{name}/near")
    def near(name: str, row: int) -> dict[str, Any]:
        return nearest_rows(studio.finished(name), row)

    @app.post("/api/jobs/{name}/marks")
    def marks(name: str, filters: Filters = Body([], embed=True)) -> Any:  # noqa: B008
        job, rows = studio.job_and_rows(name)
        return _binary(answers.rows_by_mark(job, rows.mask(filters)))

    @app.get("/api/jobs/{name}/mark")
    def mark(name: str, row: int) -> dict[str, Any]:
        return {"mark": answers.mark_of_row(studio.finished(name), row)}

    @app.post("/api/jobs/{name}/names")
    def names(name: str, marks: list[int] = Body(embed=True)) -> dict[str, Any]:  # noqa: B008
        return answers.names_of_marks(*studio.job_and_rows(name), marks)

    @app.post("/api/jobs/{name}/colours")
    @studio.slow
    def colours(name: str, column: str = Body(embed=True)) -> dict[str, Any]:
        return answers.colours(studio.finished(name), column)

    @app.post("/api/jobs/{name}/card")
    def card(name: str, row: int = Body(embed=True)) -> dict[str, Any]:
        job, rows = studio.job_and_rows(name)
        studio.warm_index(job)
        return answers.card(job, rows, row)

    @app.post("/api/jobs/{name}/like")
    @studio.slow
    def like(
        name: str,
        row: int | None = Body(None),
        cells: dict[str, dict[str, Any]] = Body({}),  # noqa: B008
        k: int = Body(20),
        filters: Filters = Body([]),  # noqa: B008
    ) -> dict[str, Any]:
        return answers.rows_like(*studio.job_and_rows(name), row, cells, k, filters)

    @app.post("/api/jobs/{name}/between")
    @studio.slow
    def between(
        name: str,
        a: Filters = Body(),  # noqa: B008
        b: Filters | None = Body(None),  # noqa: B008
    ) -> dict[str, Any]:
        job, rows = studio.job_and_rows(name)
        mask = rows.mask(a)
        return answers.between_groups(job, mask, ~mask if b is None else rows.mask(b))

    @app.post("/api/jobs/{name}/cross")
    @studio.slow
    def cross(
        name: str,
        a: str = Body(),
        b: str = Body(),
        filters: Filters = Body([]),  # noqa: B008
    ) -> dict[str, Any]:
        job, rows = studio.job_and_rows(name)
        return answers.crossed(job, a, b, rows.mask(filters))

    @app.post("/api/jobs/{name}/alike")
    @studio.slow
    def alike(name: str, column: str = Body(), a: str = Body(), b: str = Body()) -> dict[str, Any]:
        return answers.values_alike(studio.finished(name), column, a, b)

    @app.get("/api/program")
    def program(jobs: str, a: int | None = None, b: int | None = None) -> dict[str, Any]:
        shown = [studio.finished(name) for name in jobs.split(",")[:2]]
        rows = None if a is None or b is None else (a, b)
        return {"program": program_of(shown, rows)}

    @app.get("/api/jobs/{name}/download/{kind}")
    @studio.slow
    def download(name: str, kind: str) -> Any:
        content = made(studio.finished(name), kind)
        media = DOWNLOADS[kind]
        if isinstance(content, Path):
            return FileResponse(content, media_type=media, filename=kind)
        headers = {"Content-Disposition": f'attachment; filename="{kind}"'}
        return Response(content, media_type=media, headers=headers)


def serve(
    path: str | PathLike[str] = ".",
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
    table: str | None = None,
) -> None:
    """Serve the studio until interrupted.

    Parameters
    ----------
    path : path, default="."
        The folder whose files can be opened, or a file to open at once.
    host : str, default="127.0.0.1"
        Address to listen on. Any other address than this machine's own lets others in who know
        the token.
    port : int, default=0
        Port to listen on; 0 takes a free one.
    open_browser : bool, default=True
        Whether to open the page.
    table : str, optional
        A table that comes with the library, to open at once: "titanic", "car", ...

    Examples
    --------
    >>> from tabweave.apps.studio import serve
    >>> serve("customers.csv")  # doctest: +SKIP
    tabweave studio: http://127.0.0.1:43127/?token=...
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"file or folder not found: {str(path)!r}")
    if path.is_file():
        suffix_of(path.name)
    token = secrets.token_urlsafe(24)
    app = create_app(path, token=token, hosts=(host, "127.0.0.1", "localhost"))
    with listening(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listener.getsockname()[1]}/?token={token}"
        url += f"#table={table}" if table else ""
        print(f"tabweave studio: {url}\nstop it with Ctrl-C", flush=True)
        if host not in ("127.0.0.1", "localhost", "::1"):
            print("whoever has this address can open the files of this folder", flush=True)
        threading.Thread(target=app.state.studio.warm, daemon=True).start()
        if open_browser:
            import webbrowser

            webbrowser.open(url)
        allow_many_connections()
        with suppress(KeyboardInterrupt):  # how it is meant to end
            http_server(app).run(sockets=[listener])


def http_server(app: Any, request_seconds: float = 10.0) -> Any:
    """uvicorn, which also ends connections whose request does not arrive.

    Its own setting ends connections that are idle after an answer, not those that never send a
    request, or a part of one; here the same clock runs while any part is waited for.
    """
    uvicorn = require("uvicorn", "studio")
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class DeadlineProtocol(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._await_request()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
                self._await_request()

        def _await_request(self) -> None:
            self._unset_keepalive_if_required()
            end = self.loop.call_later(self.timeout_keep_alive, self.transport.abort)
            self.timeout_keep_alive_task = end

    config = uvicorn.Config(
        app,
        http=DeadlineProtocol,
        timeout_keep_alive=request_seconds,
        log_level="warning",
        server_header=False,
    )
    return uvicorn.Server(config)


def allow_many_connections() -> None:
    """Raise the limit of open files, and so of connections, as far as the system lets a process."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    at_most = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
    resource.setrlimit(resource.RLIMIT_NOFILE, (at_most, hard))


def listening(host: str, port: int) -> socket.socket:
    """A socket on which a browser may knock before the server has started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise ValueError(f"cannot listen on {host} port {port}: {error}") from None
