"""Start the server: one address, one token, one browser tab."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
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

    Examples
    --------
    >>> from weft.studio import serve
    >>> serve("customers.csv")  # doctest: +SKIP
    weft studio: http://127.0.0.1:43127/?token=...
    """
    uvicorn = require("uvicorn", "studio")
    token = secrets.token_urlsafe(24)
    app = create_app(Path(path), token=token, hosts=(host, "127.0.0.1", "localhost"))
    with listening(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listener.getsockname()[1]}/?token={token}"
        print(f"weft studio: {url}\nstop it with Ctrl-C", flush=True)
        if host not in ("127.0.0.1", "localhost", "::1"):
            print("whoever has this address can open the files of this folder", flush=True)
        if open_browser:
            import webbrowser

            webbrowser.open(url)
        config = uvicorn.Config(app, log_level="warning", server_header=False)
        with suppress(KeyboardInterrupt):  # how it is meant to end
            uvicorn.Server(config).run(sockets=[listener])


def listening(host: str, port: int) -> socket.socket:
    """Return a socket on which a browser may knock before the server has started."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ValueError(f"cannot listen on {host} port {port}: {error}") from None
    return listener
