"""Distributed: frames of Dask and Spark; partitions are counted by the workers that hold them.

Rows stay where they are: only counts travel, merged in a tree on the way.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tabweave._compat import require
from tabweave.counts.unknown import UnknownTally, tallying
from tabweave.engines.frames import FrameSource, gathered
from tabweave.engines.progress import progress_reporter
from tabweave.engines.source import Source
from tabweave.io.dialects import sql_name

_DASK_BRANCHES = 8  # results that are merged at a time
_SPARK_BRANCHES = 16
_RESULT = "part int, result binary"  # a row of what a partition gives


class DaskSource(Source):
    """A Dask frame; work is done by the workers of its scheduler."""

    def __init__(self, frame: Any) -> None:
        super().__init__("Dask frame", dict.fromkeys(frame.columns, ""))
        self.frame = frame

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        for part in self.frame[list(columns)].to_delayed():
            yield part.compute()

    def collect(self, columns: Sequence[str]) -> Any:
        """Return all rows as a pandas frame or a mapping of columns."""
        return FrameSource(self.frame[list(columns)].compute()).collect(columns)

    def _run(self, work: Any, columns: Sequence[str], progress: Any, step: str) -> Any:
        """Do the work on each partition, merge in a tree, and bring back the one result."""
        dask = require("dask", "dask")
        report = progress_reporter(progress, "partitions", self.frame.npartitions)
        start = dask.delayed(work, pure=False, traverse=False)
        merge = dask.delayed(work.merge, pure=False, traverse=False)
        parts = [start([part]) for part in self.frame[list(columns)].to_delayed()]
        while len(parts) > 1:
            parts = [
                merge(parts[i : i + _DASK_BRANCHES]) for i in range(0, len(parts), _DASK_BRANCHES)
            ]
        report(step, 0)
        result = dask.compute(parts[0])[0]
        report(step, self.frame.npartitions)
        return result

    def vectors(
        self, embedder: Any, keep: Sequence[str], names: Sequence[str], vector: str | None
    ) -> Any:
        """Return the vectors of the rows as another frame, partition by partition."""
        pandas = require("pandas", "frames")
        kept = self.frame._meta[list(keep)]
        types = dict.fromkeys(names, embedder.dtype) if vector is None else {vector: object}
        empty = pandas.DataFrame({n: pandas.Series([], dtype=kind) for n, kind in types.items()})
        meta = pandas.concat([kept, empty.set_index(kept.index[:0])], axis=1)
        work = _PandasVectors(embedder, tuple(keep), tuple(names), vector)
        return self.frame.map_partitions(work, meta=meta)


@dataclass(frozen=True)
class _PandasVectors:
    """The vectors of one partition, beside the columns that are kept."""

    embedder: Any
    keep: tuple[str, ...]
    names: tuple[str, ...]
    vector: str | None

    def __call__(self, part: Any) -> Any:
        import pandas

        from tabweave.engines.transform import fitted_names

        keep, fitted = list(self.keep), fitted_names(self.embedder)
        rows = part.drop(columns=keep) if fitted is None else part[fitted]
        with tallying(UnknownTally()):
            vectors = self.embedder.transform(rows)
        if self.vector is None:
            frame = pandas.DataFrame(vectors, columns=self.names, index=part.index)
        else:
            cells = pandas.Series(list(vectors), index=part.index, dtype=object)
            frame = cells.to_frame(self.vector)
        return pandas.concat([part[keep], frame], axis=1)


class SparkSource(Source):
    """A Spark frame; work is done by the executors of its session."""

    def __init__(self, frame: Any) -> None:
        super().__init__("Spark frame", dict.fromkeys(frame.columns, ""))
        self.frame = frame

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        yield self._select(columns).toArrow()

    def _select(self, columns: Sequence[str]) -> Any:
        return self.frame.select(*(sql_name(name, "`") for name in columns))

    def collect(self, columns: Sequence[str]) -> Any:
        """Return all rows as an Arrow table, a pandas frame or a mapping of columns."""
        frame = self._select(columns)
        rows = frame.toArrow() if hasattr(frame, "toArrow") else frame.toPandas()
        return FrameSource(rows).collect(columns)

    def _run(self, work: Any, columns: Sequence[str], progress: Any, step: str) -> Any:
        """Do the work on each partition, merge groups of results there, and the rest here.

        It is one action, so Spark runs all partitions side by side, and what the frame is computed
        from once. Results are merged in the order of their partitions: sums keep their bits.
        """
        report = progress_reporter(progress, "rows", None)
        report(step, 0)
        results = self._select(columns).mapInArrow(_Partition(work), _RESULT)
        groups = results.repartition(_SPARK_BRANCHES, "part").mapInArrow(_Merge(work), _RESULT)
        parts = sorted(groups.collect(), key=lambda row: row.part)
        return work.merge([pickle.loads(row.result) for row in parts])  # noqa: S301

    def vectors(
        self, embedder: Any, keep: Sequence[str], names: Sequence[str], vector: str | None
    ) -> Any:
        """Return the vectors of the rows as another frame, computed by the executors."""
        types = require("pyspark.sql.types", "spark")
        number = types.FloatType() if embedder.dtype == "float32" else types.DoubleType()
        if vector is None:
            fields = [types.StructField(name, number) for name in names]
        else:
            fields = [types.StructField(vector, types.ArrayType(number))]
        schema = types.StructType([*(self.frame.schema[name] for name in keep), *fields])
        work = _ArrowVectors(embedder, tuple(keep), tuple(names), vector)
        return self.frame.mapInArrow(work, schema)


@dataclass(frozen=True)
class _Partition:
    """The work on the Arrow batches of one partition; its result as one row of bytes."""

    work: Any

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        yield _row(TaskContext.get().partitionId(), self.work(gathered(batches)))


@dataclass(frozen=True)
class _Merge:
    """The merging of the results that one partition holds."""

    work: Any

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        rows = (row for batch in batches for row in batch.to_pylist())
        parts = sorted(rows, key=lambda row: row["part"])
        if parts:
            results = [pickle.loads(row["result"]) for row in parts]  # noqa: S301
            yield _row(parts[0]["part"], self.work.merge(results))


def _row(part: int, result: Any) -> Any:
    import pyarrow as pa

    cells = pa.array([part], pa.int32()), pa.array([pickle.dumps(result)], pa.binary())
    return pa.RecordBatch.from_arrays(list(cells), ["part", "result"])


@dataclass(frozen=True)
class _ArrowVectors:
    """The vectors of Arrow batches, beside the columns that are kept."""

    embedder: Any
    keep: tuple[str, ...]
    names: tuple[str, ...]
    vector: str | None

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from tabweave.engines.transform import vector_batch

        for batch in batches:
            if len(batch):
                with tallying(UnknownTally()):
                    part = vector_batch(self.embedder, batch, self.keep, self.names, self.vector)
                yield part if self.vector is None else _with_lists(part, self.vector)


def _with_lists(batch: Any, name: str) -> Any:
    """Return a batch whose lists of a fixed size are plain ones, which Spark reads."""
    import pyarrow as pa

    i = batch.schema.get_field_index(name)
    vectors = batch.column(i)
    return batch.set_column(i, name, vectors.cast(pa.list_(vectors.type.value_type)))
