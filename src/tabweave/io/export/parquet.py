"""parquet: value tables as one table of a file, for anything that can join."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

import numpy as np

from tabweave.blocks.numbers import BENDS
from tabweave.io.atomic import replacing
from tabweave.io.export.plan import Lookup, plan_of
from tabweave.io.export.sql import check_text
from tabweave.io.text import sql_text
from tabweave.rows.vocabulary import Label


def parquet(embedder: Any, path: str | PathLike[str]) -> None:
    """Write the value tables of an embedder to a Parquet file, one row per value.

    The columns are ``column``, ``kind`` ("value", "missing" or "unknown"), ``type`` of the value
    ("str", "int", "float", "bool" or "bytes"), ``value`` as text (bytes in hexadecimal), and
    ``v0``, ``v1``, ... with NULL beyond the dimensions of the column.

    Parameters
    ----------
    embedder : ValueEmbedder, Windowed or MixedEmbedder
        A fitted embedder; set-valued columns are welcome.
    path : str or path
        The file; one that is there is replaced.

    Notes
    -----
    Under the key ``tabweave`` the file says how rows are combined ("concat" or "sum"), how numbers of
    a mixed table are scaled (``z = (x - mean) * factor``), and what the dimensions are called. With
    ``numeric="absolute"`` each column of numbers has ``curves``: how often each dimension takes
    ``|z - bend|`` for each of the ``bends``, ``z``, and 1.

    Examples
    --------
    >>> import os, tempfile, duckdb, tabweave
    >>> path = os.path.join(tempfile.mkdtemp(), "tables.parquet")
    >>> tabweave.export.parquet(tabweave.OneHot().fit({"color": ["red", "blue"]}), path)
    >>> duckdb.sql(f"SELECT * EXCLUDE type FROM '{path}'").fetchall()
    [('color', 'value', 'blue', 1.0, 0.0), ('color', 'value', 'red', 0.0, 1.0),
     ('color', 'unknown', None, 0.5, 0.5)]
    """
    import duckdb

    plan = plan_of(embedder, sets=True)
    lookups = [p for p in (*plan.values, *plan.numbers) if isinstance(p, Lookup)]
    for part in lookups:
        for text in (part.column, *part.labels):
            check_text(text)
    lines = [p for p in plan.numbers if not isinstance(p, Lookup)]
    rows = [row for part in lookups for row in _rows(part)]
    width = max((part.width for part in lookups), default=0)
    vectors = np.full((len(rows), width), np.nan)
    for i, row in enumerate(rows):
        vectors[i, : len(row[4])] = row[4]
    about: dict[str, Any] = {
        "combine": plan.combine,
        "names": plan.names,
        "numbers": [[p.column, p.mean, p.factor] for p in lines],
    }
    curved = {p.column: p.curves.tolist() for p in lines if p.curves is not None}
    if curved:
        about |= {"bends": BENDS.tolist(), "curves": curved}
    named = ("column", "kind", "type", "value")
    cells = {n: np.array([row[i] for row in rows], dtype=object) for i, n in enumerate(named)}
    cells |= {f"v{i}": vectors[:, i] for i in range(width)}  # NaN, where there is none, is NULL
    texts = ", ".join(f'CAST("{name}" AS VARCHAR) AS "{name}"' for name in named)
    with replacing(path) as temporary, duckdb.connect() as connection:
        try:
            connection.execute(
                f"COPY (SELECT * REPLACE ({texts}) FROM cells) TO {sql_text(str(temporary))} "
                f"(FORMAT parquet, KV_METADATA {{tabweave: {sql_text(json.dumps(about))}}})"
            )
        except duckdb.IOException as error:
            raise OSError(f"cannot write {path}: {error}") from error


def _rows(part: Lookup) -> list[tuple[str, str, str | None, str | None, np.ndarray]]:
    out: list[Any] = [
        (part.column, "value", type(label).__name__, _shown(label), row)
        for label, row in zip(part.labels, part.rows, strict=True)
    ]
    if part.missing is not None and part.missing is not part.unknown:
        out.append((part.column, "missing", None, None, part.missing))
    if part.unknown is not None:
        out.append((part.column, "unknown", None, None, part.unknown))
    return out


def _shown(label: Label) -> str:
    return label.hex() if isinstance(label, bytes) else str(label)
