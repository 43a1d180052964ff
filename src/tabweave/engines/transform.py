"""Transforming from path to path: batch by batch, in bounded memory, all or nothing."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tabweave._compat import require
from tabweave.counts.unknown import UnknownTally, tallying
from tabweave.engines.frames import fitted_names, vector_batch
from tabweave.engines.opening import is_distributed, open_fitted, open_source
from tabweave.engines.progress import ProgressCallback, progress_reporter
from tabweave.engines.source import (
    Source,
    check_batch_rows,
    has_arrow,
    join_batches,
    n_rows_of,
)
from tabweave.io.files import replacing

MAX_VECTOR_BYTES = 1 << 27  # Vectors of a batch; three times as many while the next is made.
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
    batch_rows: int = 1 << 17,
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
        Spark frame it gives another, of vectors, which stays where it is. Its workers
        write Parquet, as a folder of files.
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
    if target is None and is_distributed(source):
        return vectors_of(embedder, source, keep, vector)
    check_batch_rows(batch_rows)
    path, form = (None, "arrow") if target is None else _target(Path(target), format, overwrite)
    if form == "parquet" and is_distributed(source):
        opened = open_source(source)
        frame = vectors_of(embedder, opened, keep, vector)
        return opened.write(frame, str(path), overwrite=overwrite)  # type: ignore[attr-defined]
    if form == "csv" and vector is not None:
        raise ValueError(
            "a CSV file cannot hold a column of vectors; write .parquet, or leave vector out"
        )
    if columns is None and hasattr(embedder, "counts_"):
        opened, columns = open_fitted(source, embedder.counts_.select(embedder.schema_.names), keep)
    else:
        opened = open_source(source, columns)
    names = _names(embedder, keep, vector)
    read_columns = _wanted(embedder, opened, columns, keep)
    affordable = max(MAX_VECTOR_BYTES // (8 * max(len(names), 1)), 1)
    report = progress_reporter(progress, "rows", opened.n_rows)
    texts = [n for n in keep if opened.types.get(n) == "JSON"]  # in every batch alike

    def vectors() -> Iterator[Any]:
        done, unknown = 0, UnknownTally()
        for batch in opened.batches_ahead(read_columns, min(batch_rows, affordable)):
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
    """Batches as an Arrow reader, the first of them being made at once."""
    arrow = require("pyarrow", "frames")
    first = next(batches)
    return arrow.RecordBatchReader.from_batches(first.schema, chain([first], batches))


def _written(batches: Iterator[Any], source: Source, path: Path, form: str) -> int:
    """Write batches to a file and return their number of rows."""
    if path.resolve() in [read.resolve() for read in source.paths]:
        raise ValueError(f"{path} is one of the input files; write to another file")
    first, n_rows = next(batches), 0
    with replacing(path) as part:
        file = _opened(part, form, first)
        try:
            for batch in chain([first], batches):
                file.write(batch)
                n_rows += n_rows_of(batch)
        except BaseException:
            with suppress(Exception):  # the first error is the one to show
                file.close()
            raise
        file.close()
    return n_rows


def vectors_of(
    embedder: Any, frame: Any, keep: Sequence[str] = (), vector: str | None = None
) -> Any:
    """The vectors of a Dask or Spark frame as another; nothing is computed yet.

    A worker sees its own part of the rows only, so values that fit has not seen are not reported.
    """
    opened: Any = open_source(frame)
    names, columns = _names(embedder, keep, vector), _wanted(embedder, opened, None, ())
    opened.choose(keep)  # what is not there is refused here, not in a worker
    dtype = str(np.dtype(embedder.dtype))
    types = dict.fromkeys(names, dtype) if vector is None else {vector: f"{dtype}[]"}
    work = MethodOfBatch(embedder, "transform", tuple(types))
    return opened.mapped(work, columns, list(keep), types)


@dataclass(frozen=True)
class MethodOfBatch:
    """A method of an estimator, from the columns of a batch to named columns of results."""

    estimator: Any
    method: str
    names: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """The results of a batch; a matrix is a column for each name, if there are several."""
        with tallying(UnknownTally()):
            results = getattr(self.estimator, self.method)(cells, **self.options)
        if isinstance(results, Mapping):
            return {name: results[name] for name in self.names}
        if isinstance(results, tuple):
            return dict(zip(self.names, results, strict=True))
        if len(self.names) == 1:
            return {self.names[0]: results}
        return dict(zip(self.names, np.asarray(results).T, strict=True))


Types = Callable[[Any, Source], Mapping[str, str]]


def results_of_source(
    method: Callable[..., Any],
    estimator: Any,
    X: Any,
    types: Types | Mapping[str, str] | None,
    *args: Any,
    **options: Any,
) -> Any:
    """The results of a method of a fitted estimator for rows that are not in memory.

    Rows of a file, a query or a database come in batches, whose results are put together; of a Dask
    or Spark frame, workers make another frame of results, to which the model is sent. ``types``
    says what the columns of results are called, and hold.
    """
    from sklearn.utils.validation import check_is_fitted  # commands that only read need none

    check_is_fitted(estimator)
    estimator.learn() if hasattr(estimator, "learn") else None
    source = open_for(estimator, X)
    columns = _wanted(estimator, source, None, ())
    if not is_distributed(X):
        return _together(partial(method, estimator), source, columns, args, options)
    if types is None:
        raise TypeError(
            f"{type(estimator).__name__}.{method.__name__}: expected rows in memory or in "
            f"files, got a {source.name}; pass its parts one by one, or some of its rows"
        )
    named = signature(method).bind(estimator, X, *args, **options).arguments
    options = dict(list(named.items())[2:])
    made = types(estimator, source) if callable(types) else types
    work = MethodOfBatch(estimator, method.__name__, tuple(made), options)
    return source.mapped(work, columns, [], made)  # type: ignore[attr-defined]


def vector_types(embedder: Any, source: Source) -> dict[str, str]:
    """What vectors are as columns."""
    return dict.fromkeys(_names(embedder, (), None), str(np.dtype(embedder.dtype)))


def class_types(classifier: Any, source: Source) -> dict[str, str]:
    """What a predicted class is as a column."""
    return {"prediction": kind_of_result(classifier.classes_)}


def probability_types(classifier: Any, source: Source) -> dict[str, str]:
    """What the probabilities of classes are as columns."""
    return {f"probability_{label}": "float64" for label in classifier.classes_.tolist()}


def kind_of_result(values: np.ndarray) -> str:
    """What a column holds that holds such values."""
    return {"f": "float64", "i": "int64", "u": "int64", "b": "bool"}.get(values.dtype.kind, "text")


def open_for(estimator: Any, X: Any) -> Source:
    """Open rows for a fitted estimator, text that looked like numbers in fit with its types."""
    counts = getattr(getattr(estimator, "embedder_", estimator), "counts_", None)
    return open_source(X) if counts is None else open_fitted(X, counts)[0]


def _together(
    method: Callable[..., Any], source: Source, columns: list[str], args: Any, options: Any
) -> Any:
    """The results of all batches of a source, one after the other."""
    unknown = UnknownTally()
    parts = []
    for batch in source.batches_ahead(columns):
        if n_rows_of(batch):
            with tallying(unknown):
                parts.append(method(batch, *args, **options))
    unknown.report()
    if not parts:
        raise ValueError(f"{source.name}: expected at least one row, got none")
    return joined_results(parts)


def joined_results(parts: Sequence[Any]) -> Any:
    """Results of batches as one: arrays, frames of a library, or tuples of them."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, tuple):
        columns = [np.concatenate(cells) for cells in zip(*parts, strict=True)]
        return first._make(columns) if hasattr(first, "_make") else tuple(columns)
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if sparse.issparse(first):
        return sparse.vstack(parts, format="csr")
    return join_batches(parts, list(first) if isinstance(first, Mapping) else first.column_names)


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
    """The columns to read: those of fit, and those to keep."""
    fitted = fitted_names(embedder)
    names = source.choose(columns) if fitted is None else fitted
    return source.choose(list(dict.fromkeys([*names, *keep])))


def _target(path: Path, format: str | None, overwrite: bool) -> tuple[Path, str]:
    """Where to write, and in which format; what cannot be is refused before any work is done."""
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


def _opened(path: Path, form: str, batch: Any) -> Any:
    if form == "csv" and not has_arrow():
        return CsvFile(path, list(batch))
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
    return parquet.ParquetWriter(path, batch.schema, use_dictionary=_repeating(batch))


def _repeating(batch: Any) -> list[str]:
    """The columns of whose first cells a dictionary would save half.

    Vectors that are looked up repeat, and a dictionary keeps the file small; those that are sums
    do not, and to look for one takes longer than all else.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    names = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        cells, suffix = column.slice(0, 1 << 12), ""
        if pa.types.is_fixed_size_list(column.type):
            cells, suffix = cells.flatten(), ".list.element"
        elif pa.types.is_nested(column.type):  # kept from the rows, and not counted by Arrow
            continue
        if 2 * pc.count_distinct(cells).as_py() <= len(cells):
            names.append(f"{name}{suffix}")
    return names


class CsvFile:
    """A CSV file written without pyarrow."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.file = open(path, "w", newline="", encoding="utf-8")
        self.rows = csv.writer(self.file)
        self.rows.writerow(names)

    def write(self, batch: Any) -> None:
        """Add the rows of a mapping of columns."""
        self.rows.writerows(zip(*(np.asarray(c).tolist() for c in batch.values()), strict=True))

    def close(self) -> None:
        """Write what is buffered."""
        self.file.close()
