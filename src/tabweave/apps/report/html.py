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

from tabweave.columns.datetime import Datetimes
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets
from tabweave.columns.vocabulary import Label

SCRIPTS = (
    "base.js", "columns.js", "couplings.js", "values.js", "map.js", "clusters.js", "odd.js",
    "page.js",
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
    """Return a template with its parts, which stand in it as ``@@NAME@@``."""
    pieces = template.split("@@")  # first of all: nothing that is filled in is looked at again
    return "".join(parts[p] if i % 2 else p for i, p in enumerate(pieces))


def widget_script() -> str:
    """Return the map as a module that notebooks load: in a tree of its own, with its own style."""
    style = json.dumps(_read("style.css"))
    return f"{_joined(('base.js', 'map.js'))}\nconst STYLE = {style};\n{_read('widget.js')}"


def embedded(description: dict[str, Any]) -> str:
    """Return JSON that no HTML parser takes for the end of the script it stands in."""
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

LONGEST = 60
_HUGE = 1e15  # from here on numbers are written with an exponent


def shown(label: Label) -> str | None:
    """Return a label as short text; None if it is missing."""
    if label is None:
        return None
    text = repr(label) if isinstance(label, bytes) else str(label)
    text = " ".join(text.split()) if len(text.split()) > 1 or text.strip() else repr(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def quoted(label: Label) -> str:
    """Return a label in quotation marks, spaces at its ends and all."""
    if isinstance(label, str) and label.strip() != label and len(label) <= LONGEST:
        return f"“{label}”"
    return f"“{shown(label)}”"


def percent(share: float, digits: int = 0) -> str:
    """Return a share as the page writes it."""
    return f"{100 * share:.{digits}f} %"


def row_count(n: int) -> str:
    """Return a number of rows as the page writes it: 1 row, 2 rows."""
    return f"{n:,} row{'s' * (n != 1)}"


def cluster_name(number: int) -> str:
    """Return a letter: rows are numbered, clusters are not."""
    return chr(ord("A") + number)


def cell(column: Codes | Numbers | Sets, row: int) -> str | None:
    """Return one cell as text."""
    if isinstance(column, Datetimes):
        return column.text(column.values[row])
    if isinstance(column, Numbers):
        value = column.values[row]
        return None if np.isnan(value) else written(value)
    if isinstance(column, Codes):
        return shown(column.labels[column.codes[row]])
    met = [column.labels[c] for c in column.codes[column.starts[row] : column.starts[row + 1]]]
    if met == [None]:  # the whole cell is missing
        return None
    return shown(", ".join(sorted(str(shown(label)) for label in met)) or "{}")


def written(value: float, digits: int | None = None) -> str:
    """Return a number to some significant digits, without an exponent where that is readable.

    By default six, and all before the decimal point: 12345678 may be a price, or a count.
    """
    if digits is None:
        if _HUGE > abs(value) >= 1e6:
            return f"{value:.0f}"
        digits = 6
    near = float(f"{value:.{digits}g}")
    if near and not 1e-4 <= abs(near) < 1e9:
        return f"{near:.{digits}g}"
    return np.format_float_positional(near, trim="-")


def rounded(values: Any, digits: int = 4) -> Any:
    """Return numbers to some significant digits, as plain Python; what is not finite is None.

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
    usual = (size >= 1e-12) & (size < _HUGE)
    places = digits - 1 - np.floor(np.log10(np.where(usual, size, 1.0))).astype(int)
    up = 10.0 ** np.maximum(places, 0)
    near: np.ndarray = (np.rint(np.where(usual, flat, 0.0) * up) / up).astype(object)
    for i in np.flatnonzero(~usual):
        near[i] = float(f"{flat[i]:.{digits}g}")
    near[~finite] = None
    return near


def bin_names(edges: np.ndarray, whole: bool = False) -> list[str]:
    """Return a name for each bin: ``< 12``, ``12 to 30``, ``≥ 30``; of whole numbers ``12 to 29``.

    A number that is the end of two bins is in the upper one.
    """
    if not len(edges):
        return ["any number"]
    if whole and np.abs(edges).max() < 1e15 and len(set(first := np.ceil(edges))) == len(edges):
        starts = [str(int(edge)) for edge in first]
        return between(starts, [str(int(edge) - 1) for edge in first])
    return between(_close(edges))


def between(starts: Sequence[str], ends: Sequence[str] | None = None) -> list[str]:
    """Return a name for each part that starts, and what they end before, cut a line into."""
    inner = zip(starts, (ends or starts)[1:], strict=False)
    names = [low if low == high else f"{low} to {high}" for low, high in inner]
    return [f"< {starts[0]}", *names, f"≥ {starts[-1]}"]


def _close(edges: np.ndarray) -> list[str]:
    """Return edges with as few digits, at least three, as tell where in a bin they are."""
    near = np.diff(edges).min() / 100 if len(edges) > 1 else abs(edges[0]) / 10_000
    for digits in range(3, 18):
        names = [written(edge, digits) for edge in edges]
        if np.abs(np.array(names, float) - edges).max() <= near:
            break
    return names
