"""The page: a description in, one HTML file out that loads nothing and sends nothing.

The description travels as JSON inside the page; the scripts beside this file draw it. They put
text into the page as text only, so nothing that a cell holds is ever read as HTML.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from tabweave.columns.cells import Cells
from tabweave.columns.vocabulary import Label

SCRIPTS = (
    "base.js", "columns.js", "couplings.js", "values.js", "map.js", "clusters.js", "odd.js",
    "page.js",
)  # fmt: skip
STYLES = ("style.css",)


def page(description: dict[str, Any], *, title: str | None = None) -> str:
    """A description as one HTML page that needs no network.

    Parameters
    ----------
    description : dict
        From :func:`describe`.
    title : str, optional
        What the page is called.

    Examples
    --------
    >>> from tabweave.apps.report import describe, page
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
    return filled(_read("page.html"), parts)


def filled(template: str, parts: Mapping[str, str]) -> str:
    """A template with its parts, which stand in it as ``@@NAME@@``."""
    pieces = template.split("@@")  # first of all: nothing that is filled in is looked at again
    return "".join(parts[p] if i % 2 else p for i, p in enumerate(pieces))


def widget_script() -> str:
    """The map as a module that notebooks load: in a tree of its own, with its own style."""
    style = json.dumps(_read("style.css"))
    return f"{_joined(('base.js', 'map.js'))}\nconst STYLE = {style};\n{_read('widget.js')}"


def embedded(description: dict[str, Any]) -> str:
    """JSON that no HTML parser takes for the end of the script it stands in."""
    text = json.dumps(description, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _joined(names: tuple[str, ...]) -> str:
    return "\n".join(_read(name) for name in names)


def _read(name: str) -> str:
    return (files("tabweave.apps.report") / "static" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


# -- values as people read them: short text, rounded numbers; missing stays None -----------------

MAX_CHARACTERS = 60  # Characters of a value on a page.
MIN_EXPONENT_NUMBER = 1e15  # From here on numbers are written with an exponent.


def shown(label: Label) -> str | None:
    """A label as short text; None if it is missing."""
    if label is None:
        return None
    text = repr(label) if isinstance(label, bytes) else str(label)
    text = " ".join(text.split()) if len(text.split()) > 1 or text.strip() else repr(text)
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…"


def quoted(label: Label) -> str:
    """A label in quotation marks, spaces at its ends and all."""
    if isinstance(label, str) and label.strip() != label and len(label) <= MAX_CHARACTERS:
        return f"“{label}”"
    return f"“{shown(label)}”"


def percent(share: float, digits: int = 0) -> str:
    """A share as the page writes it."""
    return f"{100 * share:.{digits}f} %"


def row_count(n: int) -> str:
    """A number of rows as the page writes it: 1 row, 2 rows."""
    return f"{n:,} row{'s' * (n != 1)}"


def cluster_name(number: int) -> str:
    """A letter: rows are numbered, clusters are not."""
    return chr(ord("A") + number)


def cell(column: Cells, row: int) -> str | None:
    """One cell as text."""
    value = column.cell(row)
    if isinstance(value, list):
        text = ", ".join(sorted(str(shown(label)) for label in value))
        return None if value == [None] else shown(text or "{}")
    is_number = column.is_continuous and isinstance(value, float)
    return written(value) if is_number else shown(value)


def written(value: float, digits: int | None = None) -> str:
    """A number to some significant digits, without an exponent where that is readable.

    By default six, and all before the decimal point: 12345678 may be a price, or a count.
    """
    if digits is None:
        if MIN_EXPONENT_NUMBER > abs(value) >= 1e6:
            return f"{value:.0f}"
        digits = 6
    near = float(f"{value:.{digits}g}")
    if near and not 1e-4 <= abs(near) < 1e9:
        return f"{near:.{digits}g}"
    return np.format_float_positional(near, trim="-")


def rounded(values: Any, digits: int = 4) -> Any:
    """Numbers to some significant digits, as plain Python; what is not finite is None.

    What stands before the decimal point is kept.
    """
    array = np.asarray(values, dtype=float)
    if array.ndim == 0:
        return _rounded(array.reshape(1), digits).tolist()[0]
    near = _rounded(array.ravel(), digits)
    return near.reshape(array.shape).tolist()


def _rounded(flat: np.ndarray, digits: int) -> np.ndarray:
    """Round in bulk: whole multiples of a power of ten, of which the nearest float is taken."""
    finite = np.isfinite(flat)
    size = np.abs(np.where(finite & (flat != 0), flat, 1.0))
    usual = (size >= 1e-12) & (size < MIN_EXPONENT_NUMBER)
    places = digits - 1 - np.floor(np.log10(np.where(usual, size, 1.0))).astype(int)
    up = 10.0 ** np.maximum(places, 0)
    near: np.ndarray = (np.rint(np.where(usual, flat, 0.0) * up) / up).astype(object)
    for i in np.flatnonzero(~usual):
        near[i] = float(f"{flat[i]:.{digits}g}")
    near[~finite] = None
    return near


def bin_names(edges: np.ndarray, whole: bool = False) -> list[str]:
    """A name for each bin: ``< 12``, ``12 to 30``, ``≥ 30``; of whole numbers ``12 to 29``.

    A number that is the end of two bins is in the upper one.
    """
    if not len(edges):
        return ["any number"]
    if whole and np.abs(edges).max() < 1e15 and len(set(first := np.ceil(edges))) == len(edges):
        starts = [str(int(edge)) for edge in first]
        return between(starts, [str(int(edge) - 1) for edge in first])
    return between(_close(edges))


def between(starts: Sequence[str], ends: Sequence[str] | None = None) -> list[str]:
    """A name for each part that starts, and what they end before, cut a line into."""
    inner = zip(starts, (ends or starts)[1:], strict=False)
    names = [low if low == high else f"{low} to {high}" for low, high in inner]
    return [f"< {starts[0]}", *names, f"≥ {starts[-1]}"]


def _close(edges: np.ndarray) -> list[str]:
    """Edges with as few digits, at least three, as tell where in a bin they are."""
    near = np.diff(edges).min() / 100 if len(edges) > 1 else abs(edges[0]) / 10_000
    for digits in range(3, 18):
        names = [written(edge, digits) for edge in edges]
        if np.abs(np.array(names, float) - edges).max() <= near:
            break
    return names
