"""Questions about a finished job: why two rows are apart, which rows are near, what to download."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from weft.studio import _work
from weft.studio._jobs import Job

DOWNLOADS = {
    "vectors.csv": "text/csv",
    "vectors.parquet": "application/octet-stream",
    "model.weft": "application/octet-stream",
    "model.sql": "text/plain",
    "model.onnx": "application/octet-stream",
    "program.py": "text/plain",
    "report.html": "text/html",
}


def described(job: Job) -> dict[str, Any]:
    """Return what the job found, and the program that makes it."""
    found = json.loads((job.folder / "description.json").read_text(encoding="utf-8"))
    return found | {"program": _work.program(job.source.name, job.method, job.target)}


def page_of(job: Job) -> str:
    """Return the report of the job as a page."""
    from weft.report import page

    found = json.loads((job.folder / "description.json").read_text(encoding="utf-8"))
    return page(found, title=job.source.name)


@lru_cache(maxsize=4)
def _opened(path: str, folder: str, target: str | None) -> tuple[Any, Any]:
    import weft
    from weft.report import _reading

    return _reading.read(_work.read(path), target), weft.load(Path(folder) / "model.weft")


def _open(job: Job) -> tuple[Any, Any]:
    return _opened(str(job.source.path), str(job.folder), job.target)


def explained(job: Job, a: int, b: int) -> dict[str, Any]:
    """Return two rows side by side, and each column's share in their squared distance."""
    from weft.report._reading import take

    reading, model = _open(job)
    _check_row(a, reading.table.n_rows)
    _check_row(b, reading.table.n_rows)
    features = reading.features()
    left, right = (take(features, np.array([row])) for row in (a, b))
    shares = model.explain(left, right)
    cells = [row_of(reading, row) for row in (a, b)]
    total = float(sum(shares.values()))
    return {
        "a": a,
        "b": b,
        "distance": float(np.sqrt(max(total, 0.0))),
        "columns": [
            {"column": name, "a": cells[0].get(name), "b": cells[1].get(name), "share": float(s)}
            for name, s in shares.items()
        ],
    }


def row_of(reading: Any, row: int) -> dict[str, Any]:
    """Return the cells of a row as text."""
    from weft.report._text import cell

    return {
        column.name: None if (value := cell(data, row)) is None else str(value)
        for column, data in reading.table
    }


def near(job: Job, row: int, k: int = 8) -> dict[str, Any]:
    """Return the rows nearest to one, among those that differ from it or not."""
    reading, _ = _open(job)
    vectors = np.load(job.folder / "vectors.npy", mmap_mode="r")
    _check_row(row, len(vectors))
    apart = np.empty(len(vectors))
    for start in range(0, len(vectors), 65_536):
        block = np.asarray(vectors[start : start + 65_536]) - vectors[row]
        apart[start : start + 65_536] = np.einsum("ij,ij->i", block, block)
    apart[row] = np.inf
    k = min(k, len(apart) - 1)
    order = np.argsort(apart, kind="stable")[:k]
    return {
        "row": row,
        "cells": row_of(reading, row),
        "near": [
            {"row": int(i), "distance": float(np.sqrt(apart[i])), "cells": row_of(reading, int(i))}
            for i in order
        ],
    }


def _check_row(row: int, n: int) -> None:
    if not 0 <= row < n:
        raise ValueError(f"there is no row {row}; rows run from 0 to {n - 1}")


def made(job: Job, kind: str) -> bytes:
    """Return the bytes of a download, made when it is asked for."""
    if kind not in DOWNLOADS:
        raise ValueError(f"there is no download {kind!r}; use one of {', '.join(DOWNLOADS)}")
    if kind == "program.py":
        return _work.program(job.source.name, job.method, job.target).encode()
    if kind == "report.html":
        return page_of(job).encode()
    if kind in ("vectors.csv", "model.weft"):
        return (job.folder / kind).read_bytes()
    if kind == "vectors.parquet":
        return _parquet(job)
    from weft import export

    _, model = _open(job)
    if kind == "model.sql":
        return export.sql(model).encode()
    path = job.folder / kind
    export.onnx(model, path)
    return path.read_bytes()


def _parquet(job: Job) -> bytes:
    import duckdb

    source, target = job.folder / "vectors.csv", job.folder / "vectors.parquet"
    with duckdb.connect() as connection:
        relation = connection.read_csv(str(source), header=True)
        relation.write_parquet(str(target))
    return target.read_bytes()
