"""The work of a job, in a process of its own: read, describe, learn, keep what can be asked for."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np

from weft.studio import _methods

MOST_NUMBERS = 1 << 28  # in all vectors: 2 GB
_BLOCK = 1 << 22


def read(path: str, method: str, target: str | None) -> Any:
    """Return the rows of a file as a report sees them; classes to learn from are values."""
    from weft import Table, engines
    from weft.report.parts import read as read_rows

    classes = {target: "nominal"} if method in _methods.SUPERVISED and target else None
    return read_rows(Table.of(engines.read(path), classes), target)


def run(pipe: Any, path: str, method: str, target: str | None, folder: str) -> None:
    """Do a job and tell how it goes: ("progress", step, share), then ("done",) or ("failed", why).

    Ctrl-C reaches every process of the terminal; this one ends when the server says so.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _run(pipe, path, method, target, Path(folder))
        said: tuple[str, ...] = ("done",)
    except MemoryError:
        said = ("failed", "there is too little memory for this; try fewer columns or rows")
    except Exception as error:
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        said = ("failed", str(text) or type(error).__name__)
    try:
        pipe.send(said)
    except OSError:  # the server is gone; nobody listens
        pass


def _run(pipe: Any, path: str, method: str, target: str | None, folder: Path) -> None:
    from weft.report.parts import look_at

    def tell(step: str, share: float) -> None:
        pipe.send(("progress", step, 0.9 * share))

    tell("reading", 0.0)
    reading = read(path, method, target)
    if method in _methods.SUPERVISED and reading.target:
        _check_classes(reading.table[reading.target], reading.target)
    description, model = look_at(reading, method, (5, None, 0), tell)
    if model is None:
        raise ValueError(
            "no column is left to compare rows by: "
            + "; ".join(f"{name!r} {why}" for name, why in reading.left_out.items())
        )
    pipe.send(("progress", "keeping the vectors", 0.92))
    _keep_vectors(model, reading.features(), folder)
    model.save(folder / "model.weft")
    text = json.dumps(description, allow_nan=False)
    (folder / "description.json").write_text(text, encoding="utf-8")


def _check_classes(data: Any, target: str) -> None:
    n_classes, n_rows = len(data.labels), len(data.codes)
    if n_classes > 100 and n_classes > n_rows / 10:
        raise ValueError(f"{target!r} has {n_classes:,} values in {n_rows:,} rows; it is no class")


def _keep_vectors(model: Any, features: Any, folder: Path) -> None:
    """Write the vectors block by block, so that they are never in memory at once."""
    from weft._distinct import take_rows

    n, width = features.n_rows, len(model.get_feature_names_out())
    if n * width > MOST_NUMBERS:
        raise ValueError(
            f"{n:,} rows of {width:,} dimensions are too many for a page; use the library"
        )
    out = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float64, (n, width))
    step = max(1024, _BLOCK // max(width, 1))
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        out[rows] = model.transform(take_rows(features, rows))
    out.flush()
