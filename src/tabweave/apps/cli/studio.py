"""``tabweave studio``: a local web page to explore a table."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tabweave.apps.studio import serve
from tabweave.apps.studio.files import suffix_of


def studio(path: Path, host: str, port: int, browser: bool) -> None:
    """Open a local web page to explore a table."""
    if not path.exists():
        raise ValueError(f"file or folder not found: {str(path)!r}")
    if path.is_file():
        suffix_of(path.name)
    with suppress(KeyboardInterrupt):  # the way to end it
        serve(path, host=host, port=port, open_browser=browser)
