"""Names of tables and dimensions that a database takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, count


def table_names(prefix: str | Sequence[str], columns: Sequence[str]) -> list[list[str]]:
    """Return the names of the value tables: short, plain, and no two alike."""
    *schema, stem = [prefix] if isinstance(prefix, str) else list(prefix)
    taken: set[str] = set()
    plain = [re.sub(r"[^a-z0-9]+", "_", c.lower()).strip("_")[:30] or "column" for c in columns]
    return [[*schema, _free(f"{stem}_{name}", taken)] for name in plain]


def output_names(names: Sequence[str], keep: Sequence[str], dialect: str) -> list[str]:
    """Return a name for each dimension that the system takes; most do not tell case apart."""
    taken = {name.lower() for name in keep}
    names = [re.sub("[\0\ud800-\udfff]", "_", name) for name in names]  # of values, here
    if dialect == "bigquery":
        names = [re.sub(r"\W", "_", name)[:250] for name in names]
    elif dialect == "postgres":  # cuts names at 63 bytes, and two may then be one
        names = [name.encode()[:55].decode(errors="ignore") for name in names]
    return [_free(name, taken) for name in names]


def _free(name: str, taken: set[str]) -> str:
    """Return a name, or the first with a number behind it that is not taken; and take it."""
    found = next(
        n for n in chain([name], (f"{name}_{i}" for i in count(2))) if n.lower() not in taken
    )
    taken.add(found.lower())
    return found
