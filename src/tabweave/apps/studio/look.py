"""Questions about a finished job: why two rows differ, which rows are near, what to download."""

from __future__ import annotations

import csv
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone

from tabweave._compat import require
from tabweave.apps.methods import learns_from_classes
from tabweave.apps.studio.jobs import Job, read
from tabweave.embed.mixed import MixedEmbedder
from tabweave.io.atomic import replacing
from tabweave.rows.table import Codes, Numbers, take_rows
from tabweave.search.scan import Nearest

DOWNLOADS = {
    "vectors.csv": "text/csv",
    "vectors.parquet": "application/octet-stream",
    "model.tabweave": "application/octet-stream",
    "model.sql": "text/plain",
    "model.onnx": "application/octet-stream",
    "program.py": "text/plain",
    "report.html": "text/html",
}
_BLOCK = 65_536


# -- answers ------------------------------------------------------------------------------------


def described(job: Job) -> dict[str, Any]:
    """Return what the job found."""
    return json.loads((job.folder / "description.json").read_text(encoding="utf-8"))


def page_of(job: Job) -> str:
    """Return the report of the job as a page."""
    from tabweave.apps.report import page

    return page(described(job), title=job.source.name)


@lru_cache(maxsize=2)
def _reading(path: str, method: str, target: str | None) -> Any:
    return read(path, method, target)


@lru_cache(maxsize=4)
def _model(folder: str) -> Any:
    import tabweave

    return tabweave.load(Path(folder) / "model.tabweave")


def opened(job: Job) -> tuple[Any, Any]:
    """Return the rows of a job as they were read, and its model."""
    supervised = job.method if learns_from_classes(job.method) else ""
    return _reading(str(job.source.path), supervised, job.target), _model(str(job.folder))


def explained(job: Job, a: int, b: int) -> dict[str, Any]:
    """Return two rows side by side, and each column's share in what keeps them apart."""
    reading, model = opened(job)
    for row in (a, b):
        check_row(row, reading.table.n_rows)
    left, right = (take_rows(reading.features(), np.array([row])) for row in (a, b))
    parts = model.explain(left, right)
    total = float(sum(parts.values()))
    cells = [row_of(reading, row) for row in (a, b)]
    return {
        "a": a,
        "b": b,
        "distance": float(model.pairwise_distances(left, right)[0, 0]),
        "columns": [
            {
                "column": name,
                "a": cells[0].get(name),
                "b": cells[1].get(name),
                "adds": float(part),
                "share": float(part) / total if total > 0 else 0.0,
            }
            for name, part in sorted(parts.items(), key=lambda item: -item[1])
        ],
    }


def row_of(reading: Any, row: int) -> dict[str, str | None]:
    """Return the cells of a row as text."""
    from tabweave.apps.report.html import cell

    return {column.name: cell(data, row) for column, data in reading.table}


def near(job: Job, row: int, k: int = 8) -> dict[str, Any]:
    """Return the rows nearest to one, copies of it among them."""
    reading, _ = opened(job)
    vectors = np.load(job.folder / "vectors.npy", mmap_mode="r")
    check_row(row, len(vectors))
    found = Nearest(vectors[row : row + 1], [row], min(k, len(vectors) - 1))
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        found.see(np.arange(start, start + len(block)), block)
    return {
        "row": row,
        "cells": row_of(reading, row),
        "near": [
            {"row": int(i), "distance": float(distance), "cells": row_of(reading, int(i))}
            for i, distance in zip(found.rows[0], found.distances[0], strict=True)
        ],
    }


def check_row(row: int, n: int) -> None:
    """Refuse a row that is not there."""
    if not 0 <= row < n:
        raise ValueError(f"there is no row {row}; rows are counted from 0 to {n - 1:,}")


# -- downloads ----------------------------------------------------------------------------------


def made(job: Job, kind: str) -> Path | bytes:
    """Return a download, made when it is asked for: a file, or its bytes."""
    if kind not in DOWNLOADS:
        raise ValueError(f"there is no download {kind!r}; use one of {', '.join(DOWNLOADS)}")
    if kind == "program.py":
        return program_of([job]).encode()
    if kind == "report.html":
        return page_of(job).encode()
    path = job.folder / kind
    if not path.exists():
        _make(job, path)
    return path


def _make(job: Job, path: Path) -> None:
    from tabweave.io import export

    _, model = opened(job)
    names = [str(name) for name in model.get_feature_names_out()]
    with replacing(path) as part:
        if path.name == "model.sql":
            part.write_text(str(export.sql(model)), encoding="utf-8")
        elif path.name == "model.onnx":
            export.onnx(model, part)
        elif path.name == "vectors.csv":
            _write_csv(job.folder / "vectors.npy", part, names)
        else:
            _write_parquet(made(job, "vectors.csv"), part, names)


def _write_csv(vectors: Path, path: Path, names: list[str]) -> None:
    loaded = np.load(vectors, mmap_mode="r")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for start in range(0, len(loaded), _BLOCK):
            writer.writerows(loaded[start : start + _BLOCK].tolist())


def _write_parquet(source: Any, path: Path, names: list[str]) -> None:
    """Turn the CSV, which holds every digit, into Parquet; no other library is needed."""
    duckdb = require("duckdb", "files")
    with duckdb.connect() as connection:
        relation = connection.read_csv(
            str(source), header=True, dtype=dict.fromkeys(names, "DOUBLE")
        )
        relation.write_parquet(str(path))


# -- the program that makes what is shown -------------------------------------------------------


def program_of(jobs: list[Job], rows: tuple[int, int] | None = None) -> str:
    """Return the Python that makes what one job shows, or two side by side."""
    shown = [(job.method, *opened(job)) for job in jobs]
    for row in rows or ():
        check_row(row, shown[0][1].table.n_rows)
    return program(jobs[0].source.name, shown, rows)


def program(
    name: str, shown: list[tuple[str, Any, Any]], rows: tuple[int, int] | None = None
) -> str:
    """Return a program.

    Parameters
    ----------
    name : str
        The file, as the program finds it.
    shown : list of (method, reading, model)
        What is on screen, left to right.
    rows : (int, int), optional
        Two rows that are explained.
    """
    reading = shown[0][1]
    target = reading.target
    classed = next((m for m, _, _ in shown if learns_from_classes(m)), None)
    kinds = f", {{{target!r}: 'nominal'}}" if classed else ""
    used = sorted({n for _, _, model in shown for n in _classes_of(model)} | {"Table", "engines"})
    lines = [
        "from pathlib import Path",
        "",
        f"from tabweave import {', '.join(sorted(used, key=_import_order))}",
        "from tabweave.apps.report import describe, page",
        "",
        f"table = Table.of(engines.read({name!r}){kinds})",
        *_list_of("columns", reading.kept),
        "rows = table.select(columns)",
    ]
    if classed:
        lines.append(f"classes = [table[{target!r}].labels[c] for c in table[{target!r}].codes]")
    if rows is not None:
        lines += _row_lines("first", reading, rows[0]) + _row_lines("other", reading, rows[1])
    for letter, (method, _, model) in zip("ab", shown, strict=False):
        lines += ["", *_of_model(f"_{letter}" if len(shown) > 1 else "", method, model, target)]
        if rows is not None:
            tail = f"_{letter}" if len(shown) > 1 else ""
            lines.append(f"print(model{tail}.explain(first, other))")
    return "\n".join([*lines, ""])


def _of_model(tail: str, method: str, model: Any, target: str | None) -> list[str]:
    with config_context(print_changed_only=True):
        written = " ".join(repr(clone(model)).split())
    classes = ", classes" if learns_from_classes(method) else ""
    given = "" if target is None else f"target={target!r}, "
    return [
        f"model{tail} = {written}.fit(rows{classes})",
        f"vectors{tail} = model{tail}.transform(rows)",
        f"found{tail} = describe(table, {given}method=model{tail})  # map, clusters, neighbours",
        f"Path('report{tail}.html').write_text(page(found{tail}), encoding='utf-8')",
    ]


def _classes_of(model: Any) -> list[str]:
    inner = model.categorical if isinstance(model, MixedEmbedder) else None
    named = [type(model).__name__]
    return named if inner is None or isinstance(inner, str) else [*named, type(inner).__name__]


def _import_order(name: str) -> tuple[int, str]:
    """Constants, classes, functions: as sorted imports stand."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _list_of(name: str, values: list[str]) -> list[str]:
    one = f"{name} = {values!r}"
    if len(one) <= 88:
        return [one]
    return [f"{name} = [", *(f"    {value!r}," for value in values), "]"]


def _row_lines(name: str, reading: Any, row: int) -> list[str]:
    cells = {column: _cell(reading.table[column], row) for column in reading.kept}
    one = f"{name} = {cells!r}  # row {row}"
    if len(one) <= 96:
        return [one]
    inner = (f"    {column!r}: {value!r}," for column, value in cells.items())
    return [f"{name} = {{  # row {row}", *inner, "}"]


def _cell(data: Any, row: int) -> Any:
    if isinstance(data, Numbers):
        value = float(data.values[row])
        return None if value != value else value
    if isinstance(data, Codes):
        return data.labels[data.codes[row]]
    return [data.labels[c] for c in data.codes[data.starts[row] : data.starts[row + 1]]]
