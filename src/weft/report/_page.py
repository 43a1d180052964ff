"""The page: a description in, one HTML file out that loads nothing and sends nothing.

The description travels as JSON inside the page; the scripts beside this file draw it. They put
text into the page as text only, so nothing that a cell holds is ever read as HTML.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from typing import Any

SCRIPTS = (
    "base.js", "columns.js", "couplings.js", "values.js", "map.js", "clusters.js", "page.js",
)  # fmt: skip
STYLES = ("style.css",)


def page(description: dict[str, Any], *, title: str | None = None) -> str:
    """Return a description as one HTML page that needs no network.

    Parameters
    ----------
    description : dict
        From :func:`describe`.
    title : str, optional
        What the page is called.

    Examples
    --------
    >>> from weft.report import describe, page
    >>> text = page(describe({"tag": ["<script>alert(1)</script>", "b", "c"]}), title="tags")
    >>> "<title>tags</title>" in text, "<script>alert" in text
    (True, False)
    """
    style, script = (_joined(names) for names in (STYLES, SCRIPTS))
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "POLICY": policy,
        "TITLE": html.escape(title or "Table report"),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": embedded(description),
    }
    # Cut first, fill then: nothing that is filled in is looked at again.
    pieces = _read("page.html").split("@@")
    return "".join(parts[p] if i % 2 else p for i, p in enumerate(pieces))


def embedded(description: dict[str, Any]) -> str:
    """Return JSON that no HTML parser takes for the end of the script it stands in."""
    text = json.dumps(description, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _joined(names: tuple[str, ...]) -> str:
    return "\n".join(_read(name) for name in names)


def _read(name: str) -> str:
    return (files("weft.report") / "static" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
