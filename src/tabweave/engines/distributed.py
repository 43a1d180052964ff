"""Distributed: frames of Dask and Spark; partitions are counted by the workers that hold them.

Rows stay where they are: only counts travel, merged in a tree on the way.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from tabweave._compat import require
from tabweave.counts.unknown import UnknownTally, tallying
from tabweave.engines.frames import FrameSource, gathered
from tabweave.engines.progress import progress_reporter
from tabweave.engines.source import Source
from tabweave.engines.vectors import fitted_names, vector_batch
from tabweave.io.dialects import sql_name


class DaskSource(Source):
    """A Dask frame; work is done by the workers of its scheduler."""

    def __init__(self, frame: Any) -> None:
        super().__init__("Dask frame", dict.fromkeys(frame.columns, ""))
        self.frame = frame

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        for part in self.frame[list(columns)].to_delayed():
            yield part.compute()

    def collect(self, columns: Sequence[str]) -> Any:
        """All rows as a pandas frame or a mapping of columns."""
        return FrameSource(self.frame[list(columns)].compute()).collect(columns)

    def run(
        self, work: Any, columns: Sequence[str], progress: Any = None, step: str = "counting"
    ) -> Any:
        """Do the work on each partition, merge in a tree, and bring back the one result."""
        dask = require("dask", "dask")
        report = progress_reporter(progress, "partitions", self.frame.npartitions)
        start = dask.delayed(work, pure=False, traverse=False)
        merge = dask.delayed(work.merge, pure=False, traverse=False)
        parts = [start([part]) for part in self.frame[list(columns)].to_delayed()]
        while len(parts) > 1:  # eight results are merged at a time
            parts = [merge(parts[i : i + 8]) for i in range(0, len(parts), 8)]
        report(step, 0)
        result = dask.compute(parts[0])[0]
        report(step, self.frame.npartitions)
        return result

    def vectors(
        self, embedder: Any, keep: Sequence[str], names: Sequence[str], vector: str | None
    ) -> Any:
        """The vectors of the rows as another frame, partition by partition."""
        pandas = require("pandas", "frames")
        passed = self.frame._meta[list(keep)]
        types = dict.fromkeys(names, embedder.dtype) if vector is None else {vector: object}
        empty = pandas.DataFrame({n: pandas.Series([], dtype=kind) for n, kind in types.items()})
        meta = pandas.concat([passed, empty.set_index(passed.index[:0])], axis=1)
        work = partial(pandas_vectors, embedder, list(keep), list(names), vector)
        return self.frame.map_partitions(work, meta=meta)


def pandas_vectors(
    embedder: Any, keep: list[str], names: list[str], vector: str | None, part: Any
) -> Any:
    """The vectors of one partition, beside the columns that are kept."""
    import pandas

    fitted = fitted_names(embedder)
    with tallying(UnknownTally()):
        vectors = embedder.transform(part.drop(columns=keep) if fitted is None else part[fitted])
    if vector is None:
        frame = pandas.DataFrame(vectors, columns=names, index=part.index)
    else:
        frame = pandas.Series(list(vectors), index=part.index, dtype=object).to_frame(vector)
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
        """All rows as an Arrow table, a pandas frame or a mapping of columns."""
        frame = self._select(columns)
        rows = frame.toArrow() if hasattr(frame, "toArrow") else frame.toPandas()
        return FrameSource(rows).collect(columns)

    def run(
        self, work: Any, columns: Sequence[str], progress: Any = None, step: str = "counting"
    ) -> Any:
        """Do the work on each partition, merge groups of results there, and the rest here.

        It is one action, so Spark runs all partitions side by side, and what the frame is computed
        from once. Results are merged in the order of their partitions: sums keep their bits.
        """
        report = progress_reporter(progress, "rows", None)
        report(step, 0)
        row = "part int, result binary"  # what a partition gives
        results = self._select(columns).mapInArrow(partial(partition_result, work), row)
        groups = results.repartition(16, "part").mapInArrow(partial(merged_results, work), row)
        parts = sorted(groups.collect(), key=lambda row: row.part)
        return work.merge([pickle.loads(row.result) for row in parts])  # noqa: S301

    def vectors(
        self, embedder: Any, keep: Sequence[str], names: Sequence[str], vector: str | None
    ) -> Any:
        """The vectors of the rows as another frame, computed by the executors."""
        types = require("pyspark.sql.types", "spark")
        number = types.FloatType() if embedder.dtype == "float32" else types.DoubleType()
        if vector is None:
            fields = [types.StructField(name, number) for name in names]
        else:
            fields = [types.StructField(vector, types.ArrayType(number))]
        schema = types.StructType([*(self.frame.schema[name] for name in keep), *fields])
        work = partial(arrow_vectors, embedder, list(keep), list(names), vector)
        return self.frame.mapInArrow(work, schema)


def partition_result(work: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """The work on the Arrow batches of one partition; its result as one row of bytes."""
    from pyspark import TaskContext

    yield _row(TaskContext.get().partitionId(), work(gathered(batches)))


def merged_results(work: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """The results that one partition holds, merged to one."""
    rows = (row for batch in batches for row in batch.to_pylist())
    if parts := sorted(rows, key=lambda row: row["part"]):
        results = [pickle.loads(row["result"]) for row in parts]  # noqa: S301
        yield _row(parts[0]["part"], work.merge(results))


def _row(part: int, result: Any) -> Any:
    import pyarrow as pa

    cells = pa.array([part], pa.int32()), pa.array([pickle.dumps(result)], pa.binary())
    return pa.RecordBatch.from_arrays(list(cells), ["part", "result"])


def arrow_vectors(
    embedder: Any, keep: list[str], names: list[str], vector: str | None, batches: Iterator[Any]
) -> Iterator[Any]:
    """The vectors of Arrow batches, beside the columns that are kept."""
    for batch in batches:
        if len(batch):
            with tallying(UnknownTally()):
                part = vector_batch(embedder, batch, keep, names, vector)
            yield part if vector is None else _with_lists(part, vector)


def _with_lists(batch: Any, name: str) -> Any:
    """A batch whose lists of a fixed size are plain ones, which Spark reads."""
    import pyarrow as pa

    i = batch.schema.get_field_index(name)
    vectors = batch.column(i)
    return batch.set_column(i, name, vectors.cast(pa.list_(vectors.type.value_type)))
