"""``weft studio``: the same things in a browser, on this machine."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer


def studio(
    path: Annotated[
        Path, typer.Argument(metavar="[PATH]", help="A file to open, or the folder to look in.")
    ] = Path(),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open a local page: look at a table, compare methods, download what you see."""
    if not path.exists():
        raise ValueError(f"there is no file or folder {str(path)!r}")
    from weft.studio import serve

    with suppress(KeyboardInterrupt):  # the way to end it
        serve(path, host=host, port=port, open_browser=browser)
