"""parquet: value tables as one table of a file, for anything that can join."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from tabweave._compat import require
from tabweave.columns.vocabulary import Label
from tabweave.export.plan import Plan, plan_of
from tabweave.io.dialects import check_text, sql_text
from tabweave.io.files import replacing
from tabweave.space.space import Line, Lookup, Sum


def parquet(embedder: Any, path: str | PathLike[str]) -> None:
    """Write the value tables of an embedder to a Parquet file, one row per value.

    The columns are ``column``, ``kind`` ("value", "missing" or "unknown"), ``type`` of the value
    ("str", "int", "float", "bool" or "bytes"), ``value`` as text (bytes in hexadecimal), and
    ``v0``, ``v1``, ... with NULL beyond the dimensions of the column.

    Parameters
    ----------
    embedder : Embedder or Windowed
        A fitted embedder; set-valued columns are welcome.
    path : str or path
        The file; one that is there is replaced.

    Notes
    -----
    Under the key ``tabweave`` the file says how rows are combined ("concat" or "sum"), how numbers
    are scaled (``z = (x - mean) * factor``), and what the dimensions are called. A column of
    numbers may have ``knots``, and ``curves`` instead of z: the dimensions at each knot, straight
    between two of them and beyond the outer ones. A missing number has z = 0, unless ``missing``
    names its column with other dimensions. Columns of numbers that are ``summed`` are added to the
    rows that are; others stand beside them. ``cycles`` are columns of numbers that are not in the
    rows: the column whose rest over so many seconds they are. Datetimes are seconds since 1970, by
    the clock of ``zones`` if their column has one.

    Examples
    --------
    >>> import os, tempfile, duckdb, tabweave
    >>> path = os.path.join(tempfile.mkdtemp(), "tables.parquet")
    >>> tabweave.export.parquet(tabweave.OneHot().fit({"color": ["red", "blue"]}), path)
    >>> duckdb.sql(f"SELECT * EXCLUDE type FROM '{path}'").fetchall()
    [('color', 'value', 'blue', 1.0, 0.0), ('color', 'value', 'red', 0.0, 1.0),
     ('color', 'unknown', None, 0.5, 0.5)]
    """
    duckdb = require("duckdb", "files")
    plan = plan_of(embedder, sets=True)
    _check_single(plan)
    for part in plan.lookups:
        for text in (part.column, *part.labels):
            check_text(text)
    rows = [row for part in plan.lookups for row in _rows(part)]
    width = max((part.width for part in plan.lookups), default=0)
    vectors = np.full((len(rows), width), np.nan)
    for i, row in enumerate(rows):
        vectors[i, : len(row.vector)] = row.vector
    named = ("column", "kind", "type", "value")
    cells = {n: np.array([getattr(row, n) for row in rows], dtype=object) for n in named}
    cells |= {f"v{i}": vectors[:, i] for i in range(width)}  # NaN, where there is none, is NULL
    texts = ", ".join(f'CAST("{name}" AS VARCHAR) AS "{name}"' for name in named)
    with replacing(path) as temporary, duckdb.connect() as connection:
        try:
            connection.execute(
                f"COPY (SELECT * REPLACE ({texts}) FROM cells) TO {sql_text(str(temporary))} "
                "(FORMAT parquet, USE_TMP_FILE false, "
                f"KV_METADATA {{tabweave: {sql_text(json.dumps(_about(plan)))}}})"
            )
        except duckdb.IOException as error:
            raise OSError(f"cannot write {path}: {error}") from error


def _about(plan: Plan) -> dict[str, Any]:
    """What the tables alone do not say."""
    name = plan.line_name
    out: dict[str, Any] = {
        "combine": "sum" if any(isinstance(step, Sum) for step in plan.steps) else "concat",
        "names": plan.names,
        "numbers": [[name(line), line.mean, line.factor] for line in plan.lines],
    }
    periods = {name(line): [line.column, plan.period(line)] for line in plan.lines}
    if cycles := {key: pair for key, pair in periods.items() if pair[1]}:
        out["cycles"] = cycles
    if zones := {c.name: c.zone for c in plan.columns.values() if c.zone is not None}:
        out["zones"] = zones
    for line in plan.lines:
        key = name(line)
        if line.knots is not None and line.rows is not None:
            out.setdefault("knots", {})[key] = line.knots.tolist()
            out.setdefault("curves", {})[key] = line.rows.tolist()
        if line.missing is not None and (line.rows is not None or line.missing[0] != 0):
            gap = line.missing.tolist() if line.rows is not None else float(line.missing[0])
            out.setdefault("missing", {})[key] = gap
    sums = [part for step in plan.steps if isinstance(step, Sum) for part in step.steps]
    if summed := [name(part) for part in sums if isinstance(part, Line)]:
        out["summed"] = summed
    return out


def _check_single(plan: Plan) -> None:
    """Raise where a value has two rows."""
    seen: set[str] = set()
    for column in (*(part.column for part in plan.lookups), *map(plan.line_name, plan.lines)):
        if column in seen:
            raise ValueError(
                f"column {column!r} has vectors of its own and a part in a discriminant, and "
                "the file holds one row per value; use tabweave.export.sql or "
                "tabweave.export.onnx, or fit SupervisedWeave(discriminant=0)"
            )
        seen.add(column)


class _Row(NamedTuple):
    """A row of the file: what a value, a missing or an unknown one adds to a vector."""

    column: str
    kind: str
    vector: np.ndarray
    type: str | None = None
    value: str | None = None


def _rows(part: Lookup) -> list[_Row]:
    out = [
        _Row(part.column, "value", row, type(label).__name__, _as_text(label))
        for label, row in zip(part.labels, part.rows, strict=True)
    ]
    if part.missing is not None and part.missing is not part.unknown:
        out.append(_Row(part.column, "missing", part.missing))
    if part.unknown is not None:
        out.append(_Row(part.column, "unknown", part.unknown))
    return out


def _as_text(label: Label) -> str:
    return label.hex() if isinstance(label, bytes) else str(label)
