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

from tabweave import export
from tabweave._compat import require
from tabweave.apps.methods import learns_from_classes
from tabweave.apps.report.html import cell, page
from tabweave.apps.report.reading import Reading
from tabweave.apps.report.rows import column_shares
from tabweave.apps.studio.jobs import StudioJob
from tabweave.columns.table import take_rows
from tabweave.embed.mixed import MixedEmbedder
from tabweave.io.files import replacing
from tabweave.io.store import load
from tabweave.neighbors.index import SimilarityIndex
from tabweave.space.block import row_blocks

DOWNLOADS = {
    "vectors.csv": "text/csv",
    "vectors.parquet": "application/octet-stream",
    "model.tabweave": "application/octet-stream",
    "model.sql": "text/plain",
    "model.onnx": "application/octet-stream",
    "program.py": "text/plain",
    "report.html": "text/html",
}


# -- answers ------------------------------------------------------------------------------------


def described(job: StudioJob, part: str = "description") -> dict[str, Any]:
    """What the job found; or in a sample, or the map by neighbourhoods."""
    path = job.folder / f"{part}.json"
    if not path.exists():
        return {"layouts": [], "without": ""} if part == "layouts" else {}
    return json.loads(path.read_text(encoding="utf-8"))


def page_of(job: StudioJob) -> str:
    """The report of the job as a page, its map as small as reports have it."""
    description = described(job)
    by_neighborhood = described(job, "layouts")
    description["map"]["layouts"] += by_neighborhood["layouts"]
    description["map"]["without"] = by_neighborhood["without"]
    return page(thinned(description), title=job.source.name)


def thinned(description: dict[str, Any], max_marks: int = 2_000) -> dict[str, Any]:
    """A description whose map has few marks, so that the page is small."""
    map_data = dict(description["map"])
    step = -(-len(map_data["rows"]) // max_marks)
    if step > 1:
        if "odd" in map_data:
            map_data["odd"] = map_data["odd"] | {"codes": map_data["odd"]["codes"][::step]}
        each = ("rows", "ids", "copies", "clusters")
        map_data |= {k: map_data[k][::step] for k in each if k in map_data}
        map_data["layouts"] = [m | {"points": m["points"][::step]} for m in map_data["layouts"]]
        map_data["columns"] = [
            c | {k: c[k][::step] for k in ("codes", "numbers", "texts") if k in c}
            for c in map_data["columns"]
        ]
    return description | {"map": map_data}


@lru_cache(maxsize=2)
def _reading(folder: Path) -> Reading:
    choices = json.loads((folder / "reading.json").read_text(encoding="utf-8"))
    return Reading(load(folder / "rows.tabweave"), choices["target"], choices["left_out"])


@lru_cache(maxsize=4)
def _model(folder: Path) -> Any:
    return load(folder / "model.tabweave")


@lru_cache(maxsize=2)
def _index(folder: Path) -> SimilarityIndex:
    return SimilarityIndex(_model(folder), backend="exact").fit(_reading(folder).features())


def opened(job: StudioJob) -> tuple[Reading, Any]:
    """The rows of a job as they were read, and its model, unless the file was written again."""
    job.source.check_current()
    return _reading(job.folder), _model(job.folder)


def explained(job: StudioJob, a: int, b: int) -> dict[str, Any]:
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
        **reading.ids_of(np.array([a, b])),
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
    """The cells of a row as text."""
    return {column.name: cell(data, row) for column, data in reading.table}


def near(job: StudioJob, row: int, k: int = 8) -> dict[str, Any]:
    """Return the rows nearest to one, copies of it among them."""
    reading, model = opened(job)
    n_rows = reading.table.n_rows
    check_row(row, n_rows)
    index = _index(job.folder)
    query = take_rows(reading.features(), np.array([row]))
    # Copies come first in the order of rows, so the row itself may be beyond the first k.
    answer = index.query(query, min(k + 1, n_rows))
    pairs = zip(answer.positions[0], answer.distances[0], strict=True)
    nearest = [(int(i), float(d)) for i, d in pairs if i != row]
    nearest = nearest[:k]
    sides = np.full(len(nearest), row), np.array([i for i, _ in nearest], dtype=int)
    shares = column_shares(model, reading.features(), *sides)
    cells = row_of(reading, row)
    out: dict[str, Any] = {**reading.row_and_id(row), "cells": cells, "near": []}
    for j, (i, distance) in enumerate(nearest):
        other = row_of(reading, i)
        most_first = sorted((-share[j], name) for name, share in shares.items())
        differs = [name for _, name in most_first if other.get(name) != cells.get(name)]
        found = {"distance": distance, "cells": other, "differs": differs}
        out["near"].append(reading.row_and_id(i) | found)
    return out


def check_row(row: int, n: int) -> None:
    """Refuse a row that is not there."""
    if not 0 <= row < n:
        raise ValueError(f"expected a row number from 0 to {n - 1:,}, got {row}")


# -- downloads ----------------------------------------------------------------------------------


def made(job: StudioJob, kind: str) -> Path | bytes:
    """Return a download, made when it is asked for: a file, or its bytes."""
    if kind not in DOWNLOADS:
        raise ValueError(f"expected a download, one of {', '.join(DOWNLOADS)}, got {kind!r}")
    if kind == "program.py":
        return program_of([job]).encode()
    if kind == "report.html":
        return page_of(job).encode()
    path = job.folder / kind
    with job.download_lock:  # who asks for what another is waiting for waits, too
        if not path.exists():
            _make(job, path)
    return path


def _make(job: StudioJob, path: Path) -> None:
    reading, model = opened(job)
    names = [str(name) for name in model.get_feature_names_out()]
    with replacing(path) as part:
        if path.name == "model.sql":
            part.write_text(str(export.sql(model)), encoding="utf-8")
        elif path.name == "model.onnx":
            export.onnx(model, part)
        elif path.name == "vectors.csv":
            _write_csv(model, reading.features(), part, names)
        else:
            _write_parquet(made(job, "vectors.csv"), part, names)


def _write_csv(model: Any, features: Any, path: Path, names: list[str]) -> None:
    """Write the vectors block by block, so that they are never in memory at once."""
    n_rows, max_numbers = features.n_rows, 1 << 28  # 2 GB
    if n_rows * len(names) > max_numbers:
        raise ValueError(
            f"{n_rows:,} rows of {len(names):,} dimensions are too many to download; download the "
            f"model and use `tabweave embed`"
        )
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for block in row_blocks(n_rows, 8 * len(names)):
            rows = take_rows(features, np.arange(block.start, block.stop))
            writer.writerows(model.transform(rows).tolist())


def _write_parquet(source: Any, path: Path, names: list[str]) -> None:
    """Turn the CSV, which holds every digit, into Parquet; no other library is needed."""
    duckdb = require("duckdb", "files")
    with duckdb.connect() as connection:
        relation = connection.read_csv(
            str(source), header=True, dtype=dict.fromkeys(names, "DOUBLE")
        )
        relation.write_parquet(str(path))


# -- the program that makes what is shown -------------------------------------------------------


def program_of(jobs: list[StudioJob], rows: tuple[int, int] | None = None) -> str:
    """Return the Python that makes what one job shows, or two side by side."""
    shown = [(job.method, *opened(job)) for job in jobs]
    for row in rows or ():
        check_row(row, shown[0][1].table.n_rows)
    return program(jobs[0].source.name, shown, rows, dict(jobs[0].question.kinds))


def program(
    name: str,
    shown: list[tuple[str, Any, Any]],
    rows: tuple[int, int] | None = None,
    kinds: dict[str, str] | None = None,
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
    kinds : dict of str to str, optional
        Kinds of columns that were chosen.
    """
    reading = shown[0][1]
    target = reading.target
    classed = next((m for m, _, _ in shown if learns_from_classes(m)), None)
    declared = (kinds or {}) | ({target: "nominal"} if classed and target else {})
    kinds_argument = f", {declared!r}" if declared else ""
    used = sorted({n for _, _, model in shown for n in _classes_of(model)} | {"Table", "engines"})
    lines = [
        "from pathlib import Path",
        "",
        f"from tabweave import {', '.join(sorted(used, key=_import_order))}",
        "from tabweave.apps.report import describe, page",
        "",
        f"table = Table.of(engines.read(Path({name!r})){kinds_argument}, rules='all')",
        *_list_of("columns", reading.kept),
        "rows = table.select(columns)",
    ]
    if classed:
        lines.append(f"classes = [table[{target!r}].labels[c] for c in table[{target!r}].codes]")
    if rows is not None:
        lines += _row_lines("first", reading, rows[0]) + _row_lines("other", reading, rows[1])
    for letter, (method, _, model) in zip("ab", shown, strict=False):
        tail = f"_{letter}" if len(shown) > 1 else ""
        lines += ["", *_of_model(tail, method, model, target)]
        if rows is not None:
            lines.append(f"print(model{tail}.explain(first, other))")
    return "\n".join([*lines, ""])


def _of_model(tail: str, method: str, model: Any, target: str | None) -> list[str]:
    with config_context(print_changed_only=True):
        written = " ".join(repr(clone(model)).split())
    classes = ", classes" if learns_from_classes(method) else ""
    named = "" if target is None else f"target={target!r}, "
    return [
        f"model{tail} = {written}.fit(rows{classes})",
        f"vectors{tail} = model{tail}.transform(rows)",
        f"found{tail} = describe(table, {named}method=model{tail})  # map, clusters, neighbours",
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
    cells = {column: reading.table[column].cell(row) for column in reading.kept}
    one = f"{name} = {cells!r}  # row {row}"
    if len(one) <= 96:
        return [one]
    inner = (f"    {column!r}: {value!r}," for column, value in cells.items())
    return [f"{name} = {{  # row {row}", *inner, "}"]
