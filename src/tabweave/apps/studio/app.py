"""The server: a token before everything, a page, questions in JSON, and how it is started."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from tabweave._compat import require
from tabweave.apps import methods
from tabweave.apps.report.html import embedded, filled
from tabweave.apps.studio.files import (
    ENCODINGS,
    FORMATS,
    MAX_FILE_BYTES,
    Changed,
    TooLarge,
    inside,
    listed,
    suffix_of,
)
from tabweave.apps.studio.jobs import Question
from tabweave.apps.studio.look import DOWNLOADS, described, explained, made, page_of, program_of
from tabweave.apps.studio.look import near as look_near
from tabweave.apps.studio.studio import BUILT_IN, Studio
from tabweave.columns.cells import KINDS

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
    scripts = [report / f"{name}.js" for name in ("base", "map", "clusters")]
    scripts += [studio / f"{name}.js" for name in ("studio", "open", "compare", "take")]
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


def _jobs(app: Any, studio: Studio) -> None:
    from fastapi.responses import FileResponse, JSONResponse, Response

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

    @app.get("/api/jobs/{name}/explain")
    def explain(name: str, a: int, b: int) -> dict[str, Any]:
        return explained(studio.finished(name), a, b)

    @app.get("/api/jobs/{name}/near")
    def near(name: str, row: int) -> dict[str, Any]:
        return look_near(studio.finished(name), row)

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
        print(f"tabweave studio: {url}\nstop it with Ctrl-C", flush=True)
        if host not in ("127.0.0.1", "localhost", "::1"):
            print("whoever has this address can open the files of this folder", flush=True)
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
