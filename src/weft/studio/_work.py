"""The work of a job, in a process of its own: read, describe, learn, keep what can be downloaded."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

SUPERVISED = ("helic", "vdm", "mtdle")


def columns_of(path: str) -> dict[str, Any]:
    """Return names and number of rows of a table: enough to choose a target."""
    frame = read(path)
    names = list(frame.column_names) if hasattr(frame, "column_names") else list(frame)
    return {"columns": [str(name) for name in names], "rows": n_rows(frame)}


def read(path: str) -> Any:
    from weft import engines

    return engines.read(path)


def n_rows(frame: Any) -> int:
    return frame.num_rows if hasattr(frame, "num_rows") else len(next(iter(frame.values()), ()))


def run(pipe: Any, path: str, method: str, target: str | None, folder: str) -> None:
    """Do a job and tell how it goes: ("progress", step, share), then ("done",) or ("failed", why)."""
    try:
        _run(pipe, path, method, target, Path(folder))
        pipe.send(("done",))
    except Exception as error:
        pipe.send(("failed", f"{error}" or type(error).__name__))
    finally:
        pipe.close()
        sys.stdout.flush()


def _run(pipe: Any, path: str, method: str, target: str | None, folder: Path) -> None:
    from weft.report import _model, describe
    from weft.report import _reading as reading_of

    frame = read(path)
    if n_rows(frame) == 0:
        raise ValueError("there is no row in this table")

    def tell(step: str, share: float) -> None:
        pipe.send(("progress", step, 0.9 * share))

    description = describe(frame, target=target, method=method, progress=tell)
    pipe.send(("progress", "keeping the vectors", 0.92))
    reading = reading_of.read(frame, target)
    model = _model.fitted(reading, method, 0)
    features = reading.features()
    vectors = np.asarray(model.transform(features), dtype=np.float64)
    np.save(folder / "vectors.npy", vectors)
    model.save(folder / "model.weft")
    write_vectors(folder, vectors, [str(n) for n in model.get_feature_names_out()])
    (folder / "description.json").write_text(json.dumps(description), encoding="utf-8")


def write_vectors(folder: Path, vectors: np.ndarray, names: list[str]) -> None:
    import csv

    with (folder / "vectors.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(vectors.round(6).tolist())


def program(name: str, method: str, target: str | None) -> str:
    """Return the Python that makes what is on screen."""
    from weft.measures import MEASURES

    known = {"weave": "Weave", "onehot": "OneHot", "untie": "UNTIE", "helic": "HELIC"}
    known |= {"ckml": "CKML", "cde": "CDE", "nonbend": "NonBEND", "unicorn": "UNICORN"}
    cls = "ValueMetric" if method in MEASURES else known.get(method, "")
    inner = f"ValueMetric({method!r})" if method in MEASURES else f"{cls}()"
    names = "MixedEmbedder" if method == "auto" else f"{cls}, MixedEmbedder"
    embedder = "MixedEmbedder()" if method == "auto" else f"MixedEmbedder({inner})"
    lines = [
        f"from weft import {names}, engines",
        "from weft.report import report",
        "",
        f"rows = engines.read({name!r})  # a pyarrow table",
    ]
    classes = ""
    if target is not None:
        lines.append(
            f"rows, classes = rows.drop_columns([{target!r}]), rows[{target!r}].to_pylist()"
        )
        classes = ", classes" if method in SUPERVISED else ""
    lines += [
        f"model = {embedder}.fit(rows{classes})",
        "vectors = model.transform(rows)",
        "first, other = (rows.slice(i, 1).to_pylist()[0] for i in (0, 1))",
        "print(model.explain(first, other))",
        f"report(engines.read({name!r}), 'report.html', target={target!r}, method={method!r})",
        "",
    ]
    return "\n".join(lines)
