"""The server: a token before everything, a page, and questions in JSON."""

from __future__ import annotations

import hmac
import json
import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from weft._optional import require
from weft.studio import _files, _look, _work
from weft.studio._files import Refused, Source
from weft.studio._jobs import Job, Jobs

METHODS = ("auto", "weave", "onehot", "untie", "helic", "ckml", "cde", "nonbend", "unicorn")
MEASURES = ("hamming", "of", "goodall1", "lin", "ahmad", "dilca", "cos", "vdm")


class Studio:
    """What the server knows: the start folder, the files let in, and the jobs."""

    def __init__(self, start: Path, token: str, hosts: Sequence[str], limit: int) -> None:
        self.root = start if start.is_dir() else start.parent
        self.first = None if start.is_dir() else start.name
        self.token, self.hosts, self.limit = token, set(hosts), limit
        self.folder = Path(tempfile.mkdtemp(prefix="weft-studio-"))
        self.jobs = Jobs(self.folder)
        self.sources: dict[str, Source] = {}

    def close(self) -> None:
        self.jobs.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def let_in(self, path: Path, name: str) -> dict[str, Any]:
        """Check a table and remember it; a file of the start folder is unpacked elsewhere."""
        if path.name.lower().endswith(".gz"):
            copy = self.folder / secrets.token_hex(8)
            copy.mkdir()
            path = _files.unpacked(Path(shutil.copy(path, copy / path.name)))
        _files.check(path)
        try:
            found = _work.columns_of(str(path))
        except Exception as error:
            raise Refused(f"{name!r} cannot be read: {error}") from None
        key = secrets.token_hex(8)
        self.sources[key] = Source(path, name)
        return found | {"source": key, "name": name}

    async def take(self, request: Any, name: str) -> dict[str, Any]:
        """Write an upload to a file of its own, and stop when it gets too large."""
        from fastapi.concurrency import run_in_threadpool

        name = Path(name.replace("\\", "/")).name or "upload"
        _files.suffix_of(name)
        told = request.headers.get("content-length", "0")
        if told.isdigit() and int(told) > self.limit:
            raise TooLarge(self.limit)
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir()
        path, size = folder / name, 0
        try:
            with path.open("wb") as file:
                async for block in request.stream():
                    size += len(block)
                    if size > self.limit:
                        raise TooLarge(self.limit)
                    file.write(block)
            return await run_in_threadpool(self.let_in, path, name)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def finished(self, name: str) -> Job:
        job = self.jobs[name]
        job.look()
        if job.state != "done":
            raise Refused(f"this job is {job.state}; there is nothing to show")
        return job


class TooLarge(Refused):
    """An upload above the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"uploads end at {limit // 2**20} MB here; put the file into the folder the studio was "
            "started in and open it by its path, or use the library"
        )


def create_app(
    start: Path | str = ".",
    *,
    token: str,
    hosts: Sequence[str] = ("127.0.0.1", "localhost"),
    limit: int = _files.MOST_BYTES,
) -> Any:
    """Return the studio as an ASGI application.

    Parameters
    ----------
    start : path
        The folder whose files can be opened, or a file to open at once.
    token : str
        What every request must carry, in the URL of the page or in the header ``X-Weft-Token``.
    hosts : sequence of str
        Names under which the server may be addressed; others are refused.
    limit : int
        Most bytes of an upload.
    """
    fastapi = require("fastapi", "studio")
    studio = Studio(Path(start).resolve(), token, hosts, limit)

    @asynccontextmanager
    async def life(app: Any) -> Any:
        yield
        studio.close()

    app = fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=life)
    app.state.studio = studio
    app.middleware("http")(_guard(studio))
    for kind in (Refused, ValueError, KeyError, TypeError, ImportError):
        app.add_exception_handler(kind, _told)
    _pages(app, studio)
    _questions(app, studio)
    return app


def _guard(studio: Studio) -> Callable[..., Any]:
    """Return the door: right host, own origin, right token; and headers that keep others out."""
    from fastapi.responses import PlainTextResponse

    async def guard(request: Any, call_next: Any) -> Any:
        host = request.headers.get("host", "").rsplit(":", 1)[0].strip("[]")
        origin = request.headers.get("origin")
        own = f"http://{request.headers.get('host', '')}"
        given = request.headers.get("x-weft-token") or request.query_params.get("token", "")
        if host not in studio.hosts:
            return PlainTextResponse(f"unknown host {host!r}", 403)
        if origin is not None and origin != own:
            return PlainTextResponse("requests from other pages are refused", 403)
        if not hmac.compare_digest(given.encode(), studio.token.encode()):
            return PlainTextResponse("open the address that `weft studio` printed", 403)
        response = await call_next(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return guard


_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


async def _told(request: Any, error: Exception) -> Any:
    from fastapi.responses import JSONResponse

    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    status = 413 if isinstance(error, TooLarge) else 404 if isinstance(error, KeyError) else 400
    return JSONResponse({"error": text}, status)


def _pages(app: Any, studio: Studio) -> None:
    from fastapi.responses import HTMLResponse

    @app.get("/")
    def home() -> HTMLResponse:
        nonce = secrets.token_urlsafe(12)
        static = files("weft.studio") / "static"
        parts = {
            n: (static / n).read_text("utf-8") for n in ("studio.html", "studio.css", "studio.js")
        }
        facts = {"token": studio.token, "methods": METHODS, "measures": MEASURES}
        facts |= {"first": studio.first, "limit": studio.limit}
        page = (
            parts["studio.html"]
            .replace("{{nonce}}", nonce)
            .replace("/*css*/", parts["studio.css"])
            .replace("/*facts*/", json.dumps(facts).replace("<", "\\u003c"))
            .replace("/*js*/", parts["studio.js"])
        )
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
            "img-src data: blob:; connect-src 'self'; frame-src 'self'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'"
        )
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    @app.get("/report/{name}")
    def report(name: str) -> HTMLResponse:
        return HTMLResponse(_look.page_of(studio.finished(name)))


def _questions(app: Any, studio: Studio) -> None:
    from fastapi import Body, Request, Response

    @app.get("/api/files")
    def listing() -> dict[str, Any]:
        return {"folder": studio.root.name, "files": _files.listed(studio.root)}

    @app.post("/api/open")
    def opened(path: str = Body(embed=True)) -> dict[str, Any]:
        return studio.let_in(_files.inside(studio.root, path), path)

    async def upload(request: Request, name: str) -> dict[str, Any]:
        return await studio.take(request, name)

    upload.__annotations__ |= {"request": Request}
    app.post("/api/upload")(upload)

    @app.post("/api/jobs")
    def start(
        source: str = Body(), method: str = Body("auto"), target: str | None = Body(None)
    ) -> dict[str, Any]:
        if source not in studio.sources:
            raise KeyError("open a file first")
        if method not in METHODS + MEASURES:
            raise ValueError(f"there is no method {method!r}")
        if method in _work.SUPERVISED and target is None:
            raise ValueError(f"{method} learns from classes: choose a target")
        return studio.jobs.start(studio.sources[source], method, target or None).shown()

    @app.get("/api/jobs/{name}")
    def state(name: str) -> dict[str, Any]:
        return studio.jobs[name].shown()

    @app.delete("/api/jobs/{name}")
    def cancel(name: str) -> dict[str, Any]:
        studio.jobs[name].cancel()
        return studio.jobs[name].shown()

    @app.get("/api/jobs/{name}/result")
    def result(name: str) -> dict[str, Any]:
        return _look.described(studio.finished(name))

    @app.get("/api/jobs/{name}/explain")
    def explain(name: str, a: int, b: int) -> dict[str, Any]:
        return _look.explained(studio.finished(name), a, b)

    @app.get("/api/jobs/{name}/near")
    def near(name: str, row: int) -> dict[str, Any]:
        return _look.near(studio.finished(name), row)

    @app.get("/api/jobs/{name}/download/{kind}")
    def download(name: str, kind: str) -> Any:
        content = _look.made(studio.finished(name), kind)
        there = {"Content-Disposition": f'attachment; filename="{kind}"'}
        return Response(content, media_type=_look.DOWNLOADS[kind], headers=there)
