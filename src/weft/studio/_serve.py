"""Start the server: one address, one token, one browser tab."""

from __future__ import annotations

import secrets
import socket
from os import PathLike
from pathlib import Path

from weft._optional import require
from weft.studio._app import create_app


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
    """
    uvicorn = require("uvicorn", "studio")
    start = Path(path).resolve()
    token = secrets.token_urlsafe(24)
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    port = listener.getsockname()[1]
    app = create_app(start, token=token, hosts=(host, "127.0.0.1", "localhost"))
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}/?token={token}"
    print(f"weft studio: {url}\nstop it with Ctrl-C", flush=True)
    if open_browser:
        import webbrowser

        webbrowser.open(url)
    config = uvicorn.Config(app, log_level="warning", server_header=False)
    uvicorn.Server(config).run(sockets=[listener])
