"""From a fitted embedder to a file: one more step if need be, then batch by batch, all or nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tabweave.apps.cli.files import format_of, known_format, to_stdout
from tabweave.apps.cli.show import progress


class Then:
    """An embedder, then a step: what the engines need of an embedder, and no more."""

    def __init__(self, embedder: Any, step: Callable[[np.ndarray], np.ndarray], names: Any) -> None:
        self.embedder = embedder
        self.step = step
        self.names = names
        if "counts_" in vars(embedder):  # by which the engines read text as it was in fit
            self.counts_ = embedder.counts_

    def transform(self, X: Any) -> np.ndarray:
        """Return the step's result for each row."""
        return self.step(self.embedder.transform(X))

    def get_feature_names_out(self, _: Any = None) -> np.ndarray:
        """Return the names of the step's dimensions."""
        return np.asarray(self.names, dtype=object)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The columns that the embedder wants."""
        return self.embedder.feature_names_in_


class Laid:
    """A map of the rows of fit: they stay where they were laid out, and are not placed anew.

    Rows come all at once, or in parts from the first on.
    """

    def __init__(self, embedder: Any) -> None:
        self.embedder = embedder
        self.done = 0

    def transform(self, X: Any) -> np.ndarray:
        """Return the places of the next rows."""
        places = self.embedder.map_
        n_rows = X.n_rows if hasattr(X, "n_rows") else len(next(iter(X.values())))
        if n_rows == len(places):
            return places
        self.done += n_rows
        return places[self.done - n_rows : self.done]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.embedder, name)


def projected(embedder: Any, table: Any, dims: int, name: str) -> Then:
    """Return the embedder, then the first principal axes of the rows; fewer if fewer vary."""
    from tabweave.apps.report.rows import Axes

    vectors = embedder.transform(table)
    axes = Axes.of(vectors, np.ones(len(vectors)), dims)
    return Then(embedder, axes.project, [f"{name}{i}" for i in range(axes.axes.shape[1])])


def write_rows(
    embedder: Any,
    source: str,
    output: Path | None,
    *,
    keep: Sequence[str],
    form: str | None,
) -> int:
    """Transform a source into a file or, if there is none or it is -, standard output.

    Returns how many rows were written.
    """
    from tabweave import engines

    piped = output is None or str(output) == "-"
    kind = known_format(form or "csv") if piped else format_of(Path(str(output)), form)
    folder = None if piped else Path(str(output)).resolve().parent
    # A folder beside the target: the file appears there by one rename, when it is whole.
    with tempfile.TemporaryDirectory(prefix=".tabweave-", dir=folder) as room:
        part = Path(room, f"rows.{kind if kind in _direct() else _direct()[-1]}")
        with progress("embedding") as advance:
            n_rows = engines.transform(embedder, source, part, keep=list(keep), progress=advance)
        if kind not in _direct():
            part = _converted(part, kind)
        if piped:
            to_stdout(part)
        else:
            part.replace(Path(str(output)))
    return n_rows


def _direct() -> tuple[str, ...]:
    """Return the formats that the engines write themselves, the best one to convert from last."""
    from tabweave.engines import has_arrow

    return ("csv", "arrow", "parquet") if has_arrow() else ("arrow", "csv")


def _converted(path: Path, kind: str) -> Path:
    """Write a file anew in another format, through DuckDB."""
    import duckdb

    how = {
        "tsv": "FORMAT csv, DELIMITER '\t', HEADER",
        "json": "FORMAT json, ARRAY true",
        "jsonl": "FORMAT json",
        "parquet": "FORMAT parquet",
    }[kind]
    target = path.with_suffix(f".{kind}")
    names = [str(name).replace("'", "''") for name in (path, target)]
    with duckdb.connect() as connection:
        connection.execute(f"COPY (FROM '{names[0]}') TO '{names[1]}' ({how})")
    return target
