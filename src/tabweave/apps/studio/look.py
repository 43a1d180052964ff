"""Questions about a finished job: why two rows differ, which rows are near, what to download."""

from __future__ import annotations

import csv
import json
from functools import lru_cache
from pathlib import Path
from pprint import pformat
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
    """Two rows side by side, and each column's share in what keeps them apart."""
    reading, model = opened(job)
    for row in (a, b):
        check_row(row, reading.table.n_rows)
    left, right = (take_rows(reading.features(), np.array([row])) for row in (a, b))
    parts = model.explain(left, right)
    total = float(sum(parts.values()))
    cells_a, cells_b = (row_of(reading, row) for row in (a, b))
    columns = []
    for name, part in sorted(parts.items(), key=lambda item: -item[1]):
        share = float(part) / total if total > 0 else 0.0
        cells = {"a": cells_a.get(name), "b": cells_b.get(name)}
        columns.append({"column": name, **cells, "adds": float(part), "share": share})
    distance = float(model.pairwise_distances(left, right)[0, 0])
    ids = reading.ids_of(np.array([a, b]))
    return {"a": a, "b": b, **ids, "distance": distance, "columns": columns}


def row_of(reading: Any, row: int) -> dict[str, str | None]:
    """The cells of a row as text."""
    return {column.name: cell(data, row) for column, data in reading.table}


def near(job: StudioJob, row: int, k: int = 8) -> dict[str, Any]:
    """The rows nearest to one, copies of it among them."""
    reading, model = opened(job)
    features, n_rows = reading.features(), reading.table.n_rows
    check_row(row, n_rows)
    # Copies come first in the order of rows, so the row itself may be beyond the first k.
    answer = _index(job.folder).query(take_rows(features, np.array([row])), min(k + 1, n_rows))
    others = np.flatnonzero(answer.positions[0] != row)[:k]
    positions, distances = answer.positions[0][others], answer.distances[0][others]
    shares = column_shares(model, features, np.full(len(positions), row), positions)
    cells, neighbors = row_of(reading, row), []
    for j, (position, distance) in enumerate(zip(positions.tolist(), distances, strict=True)):
        others_cells = row_of(reading, position)
        most_first = sorted((-share[j], name) for name, share in shares.items())
        differs = [name for _, name in most_first if others_cells.get(name) != cells.get(name)]
        measured = {"distance": float(distance), "cells": others_cells, "differs": differs}
        neighbors.append(reading.row_and_id(position) | measured)
    return {**reading.row_and_id(row), "cells": cells, "near": neighbors}


def check_row(row: int, n: int) -> None:
    """Refuse a row that is not there."""
    if not 0 <= row < n:
        raise ValueError(f"expected a row number from 0 to {n - 1:,}, got {row}")


# -- downloads ----------------------------------------------------------------------------------


def made(job: StudioJob, kind: str) -> Path | bytes:
    """A download, made when it is asked for: a file, or its bytes."""
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
    """The Python that makes what one job shows, or two side by side."""
    shown = [(job.method, *opened(job)) for job in jobs]
    for row in rows or ():
        check_row(row, shown[0][1].table.n_rows)
    first = jobs[0]
    kinds = dict(first.question.kinds)
    return program(first.source.name, shown, rows, kinds, first.source.encoding)


def program(
    name: str,
    shown: list[tuple[str, Any, Any]],
    rows: tuple[int, int] | None = None,
    kinds: dict[str, str] | None = None,
    encoding: str | None = None,
) -> str:
    """A program.

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
    encoding : str, optional
        That of the file, if it was chosen.
    """
    reading = shown[0][1]
    target, needs_classes = reading.target, any(learns_from_classes(m) for m, _, _ in shown)
    declared = (kinds or {}) | ({target: "nominal"} if needs_classes and target else {})
    source = f"Path({name!r})"
    if encoding is not None:
        source = f"engines.open_source({source}, encoding={encoding!r})"
    used = {"Table", "engines"}.union(*(_classes_of(model) for _, _, model in shown))
    lines = [
        "from pathlib import Path",
        "",
        f"from tabweave import {', '.join(sorted(used))}",
        "from tabweave.apps.report import describe, page",
        "",
        f"table = Table.of(engines.read({source}), {declared or None!r}, rules='all')",
        f"columns = {pformat(reading.kept, width=88)}",
        "rows = table.select(columns)",
    ]
    if needs_classes:
        lines.append(f"classes = [table[{target!r}].labels[c] for c in table[{target!r}].codes]")
    for side, row in zip(("first", "other"), rows or (), strict=False):
        cells = {column: reading.table[column].cell(row) for column in reading.kept}
        lines += [f"# row {row}", f"{side} = {pformat(cells, width=88, sort_dicts=False)}"]
    for letter, (method, _, model) in zip("ab", shown, strict=False):
        suffix = f"_{letter}" if len(shown) > 1 else ""
        lines += ["", *_model_lines(suffix, method, model, target)]
        if rows is not None:
            lines.append(f"print(model{suffix}.explain(first, other))")
    return "\n".join([*lines, ""])


def _model_lines(suffix: str, method: str, model: Any, target: str | None) -> list[str]:
    with config_context(print_changed_only=True):
        constructor = " ".join(repr(clone(model)).split())
    classes = ", classes" if learns_from_classes(method) else ""
    options = "" if target is None else f"target={target!r}, "
    return [
        f"model{suffix} = {constructor}.fit(rows{classes})",
        f"vectors{suffix} = model{suffix}.transform(rows)",
        "# map, clusters, neighbours",
        f"description{suffix} = describe(table, {options}method=model{suffix})",
        f"html = page(description{suffix})",
        f"Path('report{suffix}.html').write_text(html, encoding='utf-8')",
    ]


def _classes_of(model: Any) -> set[str]:
    return {type(model).__name__}
