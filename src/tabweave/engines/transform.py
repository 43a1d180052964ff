"""Transforming from path to path: batch by batch, in bounded memory, all or nothing."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from tabweave._compat import require
from tabweave.columns.frames import named_columns
from tabweave.counts.unknown import UnknownTally, tallying
from tabweave.engines.opening import kind_of, open_fitted, open_source
from tabweave.engines.progress import ProgressCallback, progress_reporter
from tabweave.engines.source import (
    Source,
    as_arrow,
    check_batch_rows,
    has_arrow,
    n_rows_of,
    text_of_cells,
)
from tabweave.io.files import replacing

_ROWS = 1 << 17
_VECTOR_BYTES = 1 << 27  # of a batch: the one before, its vectors, and these by dimension at a time
_TURNED = 1 << 9  # rows
_LOOKED_AT = 1 << 12  # cells that tell whether a column repeats
_FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}


def transform(
    embedder: Any,
    source: Any,
    target: str | os.PathLike[str] | None = None,
    *,
    columns: Any = None,
    keep: Sequence[str] = (),
    batch_rows: int = _ROWS,
    overwrite: bool = False,
    format: str | None = None,
    vector: str | None = None,
    progress: ProgressCallback | None = None,
) -> Any:
    """Write the vectors of a source to a file, or give them as a stream of Arrow batches.

    Rows are read, looked up and written in batches, so memory does not grow with their number.
    The file appears under its name when it is complete.

    Parameters
    ----------
    embedder : fitted estimator
        What turns rows into vectors.
    source
        Where the rows are; see :func:`tabweave.count`.
    target : path, optional
        A file ending in ``.parquet``, ``.csv``, ``.arrow`` or ``.feather``. None gives an Arrow
        stream, to be read once, which any library takes that knows Arrow's protocol; of a Dask or
        Spark frame it gives another, of vectors, which stays where it is.
    columns : list of names, or mapping of name to type, optional
        The columns to read, if not all; in files of text also their types.
    keep : list of str, optional
        Columns to carry along, such as an id; they come first, and need not be columns of the
        embedder.
    batch_rows : int, default=131072
        At most so many rows at a time; fewer where their vectors would take more than 128 MB.
    overwrite : bool, default=False
        Whether a file of that name may be replaced.
    format : {"parquet", "csv", "arrow"}, optional
        Format of the file; by default what its name says.
    vector : str, optional
        Name of one column that holds whole vectors, lists of a fixed size, as LanceDB, pgvector
        and Embedding Atlas take them. By default each dimension is a column.
    progress : callable, optional
        As in :func:`tabweave.count`.

    Returns
    -------
    int, pyarrow.RecordBatchReader or frame
        How many rows were written, or the vectors.

    Examples
    --------
    >>> import os, tempfile
    >>> from tabweave import OneHot
    >>> from tabweave.engines import read, transform
    >>> rows = "SELECT range AS id, 'v' || (range % 2) AS letter FROM range(3)"
    >>> embedder = OneHot().fit({"letter": ["v0", "v1"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "vectors.csv")
    ...     n_rows = transform(embedder, rows, path, keep=["id"])
    ...     print(n_rows, read(path).column_names)
    3 ['id', 'letter_v0', 'letter_v1']
    >>> transform(embedder, rows, keep=["id"], vector="vector").read_all().to_pylist()[1]
    {'id': 1, 'vector': [0.0, 1.0]}
    """
    if isinstance(keep, str):
        raise TypeError(f"expected keep to be a list of names, as in [{keep!r}], got {keep!r}")
    if target is None and kind_of(source) in ("dask", "spark"):
        return vectors_of(embedder, source, keep, vector)
    check_batch_rows(batch_rows)
    path, form = (None, "arrow") if target is None else _target(Path(target), format, overwrite)
    if form == "csv" and vector is not None:
        raise ValueError(
            "a CSV file cannot hold a column of vectors; write .parquet, or leave vector out"
        )
    if columns is None and "counts_" in vars(embedder):
        opened, columns = open_fitted(source, embedder.counts_.select(embedder.schema_.names), keep)
    else:
        opened = open_source(source, columns)
    names = _names(embedder, keep, vector)
    wanted = _wanted(embedder, opened, columns, keep)
    affordable = max(_VECTOR_BYTES // (8 * max(len(names), 1)), 1)
    report = progress_reporter(progress, "rows", opened.n_rows)
    texts = [n for n in keep if opened.types.get(n) == "JSON"]  # in every batch alike

    def vectors() -> Iterator[Any]:
        done, unknown = 0, UnknownTally()
        for batch in opened.batches_ahead(wanted, min(batch_rows, affordable)):
            if n := n_rows_of(batch):
                with tallying(unknown):
                    part = vector_batch(embedder, batch, keep, names, vector, texts)
                yield part
                done += n
                report("transforming", done)
        unknown.report()
        if not done:
            raise ValueError(f"{opened.name}: expected at least one row, got none")

    return _stream(vectors()) if path is None else _written(vectors(), opened, path, form)


def _stream(batches: Iterator[Any]) -> Any:
    """Return batches as an Arrow reader, the first of them being made at once."""
    arrow = require("pyarrow", "frames")
    first = next(batches)
    return arrow.RecordBatchReader.from_batches(first.schema, chain([first], batches))


def _written(batches: Iterator[Any], source: Source, path: Path, form: str) -> int:
    """Write batches to a file and return their number of rows."""
    if path.resolve() in [read.resolve() for read in source.paths]:
        raise ValueError(f"{path} is one of the input files; write to another file")
    done = 0
    with replacing(path) as part, _Writer(part, form) as file:
        for batch in batches:
            file.write(batch)
            done += n_rows_of(batch)
    return done


def vectors_of(
    embedder: Any, frame: Any, keep: Sequence[str] = (), vector: str | None = None
) -> Any:
    """Return the vectors of a Dask or Spark frame as another; nothing is computed yet.

    A worker sees its own part of the rows only, so values that fit has not seen are not reported.
    """
    opened: Any = open_source(frame)
    _wanted(embedder, opened, None, keep)  # what is not there is refused here, not in a worker
    return opened.vectors(embedder, list(keep), _names(embedder, keep, vector), vector)


def vector_batch(
    embedder: Any,
    batch: Any,
    keep: Sequence[str],
    names: Sequence[str],
    vector: str | None = None,
    texts: Sequence[str] = (),
) -> Any:
    """Return the kept columns and the vectors of a batch: as Arrow, or else as a mapping.

    Those of the kept columns that are in ``texts`` hold cells of several types, and become text.
    """
    by_name, _ = named_columns(batch)
    wanted = fitted_names(embedder) or [n for n in by_name if n not in keep]
    vectors = np.asarray(embedder.transform({name: by_name[name] for name in wanted}))
    out = {n: text_of_cells(by_name[n]) if n in texts else by_name[n] for n in keep}
    if vector is None:
        out |= dict(zip(names, _by_dimension(vectors), strict=True))
    else:
        arrow = require("pyarrow", "frames")
        flat = arrow.array(np.ascontiguousarray(vectors).reshape(-1))
        out[vector] = arrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    if not has_arrow():
        return out
    import pyarrow as pa

    columns = map(_arrow_column, out.values())
    return pa.Table.from_arrays(list(columns), names=list(out)).combine_chunks().to_batches()[0]


def _by_dimension(vectors: np.ndarray) -> np.ndarray:
    """Return vectors with the numbers of each dimension side by side, as columns have them.

    Blocks of rows stay in the cache while they are turned.
    """
    out = np.empty(vectors.shape[::-1], vectors.dtype)
    for start in range(0, len(vectors), _TURNED):
        out[:, start : start + _TURNED] = vectors[start : start + _TURNED].T
    return out


def _arrow_column(column: Any) -> Any:
    """Return a column as Arrow has it, text spelled out: dictionaries differ between batches."""
    import pyarrow as pa

    if not type(column).__module__.startswith("pyarrow"):
        return as_arrow(column)
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def fitted_names(embedder: Any) -> list[str] | None:
    """Return the columns that an embedder reads, None if they have no names; none set aside."""
    names = getattr(embedder, "feature_names_in_", None)
    aside = {column.name for column in getattr(getattr(embedder, "schema_", None), "aside", ())}
    return None if names is None else [str(name) for name in names if name not in aside]


def _names(embedder: Any, keep: Sequence[str], vector: str | None) -> list[str]:
    names = [str(name) for name in embedder.get_feature_names_out()]
    for name in keep:
        if name in (names if vector is None else [vector]):
            raise ValueError(f"keep names {name!r}, which is also a dimension; rename the column")
    if not names and not keep:
        raise ValueError(
            "expected a column that varies, got none: the vectors would have no dimensions"
        )
    return names


def _wanted(embedder: Any, source: Source, columns: Any, keep: Sequence[str]) -> list[str]:
    """Return the columns to read: those of fit, and those to keep."""
    fitted = fitted_names(embedder)
    names = source.choose(columns) if fitted is None else fitted
    return source.choose(list(dict.fromkeys([*names, *keep])))


def _target(path: Path, format: str | None, overwrite: bool) -> tuple[Path, str]:
    """Return where to write, and in which format; refuse it before any work is done."""
    form = format or _FORMATS.get(path.suffix.lower())
    if form is None:
        raise ValueError(f"{path}: expected a name that ends in {', '.join(_FORMATS)}")
    if form not in _FORMATS.values():
        raise ValueError(f"format: expected 'parquet', 'csv' or 'arrow', got {format!r}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists; use overwrite=True to replace it")
    return path, form


class _Writer:
    """A file of batches; the first of them says which columns it has."""

    def __init__(self, path: Path, form: str) -> None:
        self.path = path
        self.form = form
        self.file: Any = None

    def write(self, batch: Any) -> None:
        if self.file is None:
            self.file = _opened(self.path, self.form, batch)
        self.file.write(batch)

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self.file is None:
            return
        if kind is None:
            self.file.close()
        else:
            with suppress(Exception):  # the first error is the one to show
                self.file.close()


def _opened(path: Path, form: str, batch: Any) -> Any:
    if form == "csv" and not has_arrow():
        return _PlainCsv(path)
    arrow = require("pyarrow", "frames")
    if form == "csv":
        nested = [field.name for field in batch.schema if arrow.types.is_nested(field.type)]
        if nested:
            raise TypeError(
                f"column {nested[0]!r} holds lists or records, which a CSV file cannot; write a "
                "file that ends in .parquet or .arrow, or leave the column out"
            )
        return require("pyarrow.csv", "frames").CSVWriter(path, batch.schema)
    if form == "arrow":
        return arrow.ipc.new_file(path, batch.schema)
    parquet = require("pyarrow.parquet", "frames")
    return _Parquet(parquet.ParquetWriter(path, batch.schema, use_dictionary=_repeating(batch)))


def _repeating(batch: Any) -> list[str]:
    """Return the columns of whose first cells a dictionary would save half.

    Vectors that are looked up repeat, and a dictionary keeps the file small; those that are sums
    do not, and to look for one takes longer than all else.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    out = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        cells, listed = column.slice(0, _LOOKED_AT), ""
        if pa.types.is_fixed_size_list(column.type):
            cells, listed = cells.flatten(), ".list.element"
        elif pa.types.is_nested(column.type):  # kept from the rows, and not counted by Arrow
            continue
        if 2 * pc.count_distinct(cells).as_py() <= len(cells):
            out.append(f"{name}{listed}")
    return out


@dataclass(frozen=True)
class _Parquet:
    """A Parquet file that takes batches."""

    file: Any

    def write(self, batch: Any) -> None:
        self.file.write_batch(batch)

    def close(self) -> None:
        self.file.close()


class _PlainCsv:
    """A CSV file written without pyarrow."""

    def __init__(self, path: Path) -> None:
        self.file = open(path, "x", newline="", encoding="utf-8")
        self.names: list[str] | None = None

    def write(self, batch: Any) -> None:
        rows = csv.writer(self.file)
        if self.names is None:
            self.names = list(batch)
            rows.writerow(self.names)
        rows.writerows(zip(*(np.asarray(c).tolist() for c in batch.values()), strict=True))

    def close(self) -> None:
        self.file.close()
