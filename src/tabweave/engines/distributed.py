"""Distributed: frames of Dask and Spark; partitions are worked on by the workers that hold them.

Rows stay where they are: results travel, merged in a tree on the way. What a worker cannot read is
a result, too: it comes back as an error that names the partition, and is not tried again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tabweave._compat import require
from tabweave.columns.frames import is_missing, named_columns
from tabweave.engines.frames import gathered
from tabweave.engines.progress import progress_reporter
from tabweave.engines.source import RereadError, Source, Work, as_arrow, as_list, family
from tabweave.io.dialects import sql_name

MERGED_PARTS = 8  # So many results are merged at a time.

# What columns of the result of a method hold, and the types of Spark for it.
RESULT_TYPES = {
    "float64": "double",
    "float32": "float",
    "int64": "bigint",
    "bool": "boolean",
    "text": "string",
    "float64[]": "array<double>",
    "float32[]": "array<float>",
    "int64[]": "array<bigint>",
    "text[]": "array<string>",
}

SAME_TYPE = ""  # of a result that holds what the column of its name does

Cells = Mapping[str, Any]
Method = Callable[[Cells], Cells]  # columns of a batch to columns of results


class DistributedSource(Source):
    """A frame on a cluster, in parts: work is done where they are."""

    def part_sizes(self) -> list[int]:
        """How many rows each part has."""
        raise NotImplementedError(f"{type(self).__name__} must count the rows of its parts")

    def mapped(
        self, method: Method, columns: Sequence[str], keep: Sequence[str], types: Mapping[str, str]
    ) -> Any:
        """What a method makes of each batch as another frame, beside the columns that are kept.

        Nothing is computed yet. ``types`` says what the results are, in ``RESULT_TYPES``.
        """
        raise NotImplementedError(f"{type(self).__name__} must map its parts")

    def write(self, frame: Any, path: str, *, overwrite: bool) -> int:
        """Write a frame of vectors as a folder of Parquet files, by its own writer."""
        raise NotImplementedError(f"{type(self).__name__} must write its parts")

    def collect(self, columns: Sequence[str]) -> Any:
        """Refuse to bring all rows here."""
        raise TypeError(
            f"{self.name}: its rows stay where they are, and this needs them in memory; pass "
            f"some of them, as in {self.remedy}"
        )

    remedy = ""

    def _result(self, result: Any) -> Any:
        """The result of a work, or the error of the first part that has one."""
        if isinstance(result, PartError):
            raise result.named(self.name)
        return result


@dataclass(frozen=True)
class PartError:
    """What was wrong with the rows of a part: the result of a work that could not be done."""

    part: int
    error: Exception

    def named(self, source: str) -> Exception:
        """The error, which names the part."""
        if isinstance(self.error, RereadError):
            return self.error
        return ValueError(f"{source}, partition {self.part}: {self.error}")


def result_of_part(work: Work, part: int, batches: Iterable[Any]) -> Any:
    """The result of the work on one part."""
    try:
        return work.at(part)(batches)
    except (KeyError, TypeError, ValueError) as error:
        return PartError(part, error)


def merged(work: Work, results: Sequence[Any]) -> Any:
    """The results of parts as one, or the error of the first of them."""
    errors = [result for result in results if isinstance(result, PartError)]
    return min(errors, key=lambda error: error.part) if errors else work.merge(results)


# -- Dask -----------------------------------------------------------------------------------------


class DaskSource(DistributedSource):
    """A Dask frame; work is done by the workers of its scheduler."""

    remedy = "frame.sample(frac=0.1).compute()"

    def __init__(self, frame: Any) -> None:
        types = {name: _type_of(kind) for name, kind in frame.dtypes.items()}
        super().__init__("Dask frame", types)
        self.frame = frame

    def known_types(self, names: Sequence[str]) -> dict[str, str]:
        """The types of columns; of objects, what all their cells are."""
        of_objects = [n for n in names if str(self.frame.dtypes[n]) == "object"]
        cells = self.run(CellTypes(), of_objects) if of_objects else {}
        types = {name: str(as_arrow(list(of.values())).type) for name, of in cells.items()}
        return super().known_types(names) | types

    def part_sizes(self) -> list[int]:
        """How many rows each partition has."""
        return list(self.frame.map_partitions(len).compute())

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        for part in self.frame[list(columns)].to_delayed():
            yield part.compute()

    def run(
        self, work: Work, columns: Sequence[str], progress: Any = None, step: str = "counting"
    ) -> Any:
        """Do the work on each partition, merge in a tree, and bring back the one result."""
        dask = require("dask", "dask")
        report = progress_reporter(progress, "partitions", self.frame.npartitions)
        start = dask.delayed(result_of_part, pure=False, traverse=False)
        merge = dask.delayed(merged, pure=False, traverse=False)
        shared = dask.delayed(work, pure=False, traverse=False)
        frames = enumerate(self.frame[list(columns)].to_delayed())
        parts = [start(shared, i, [part]) for i, part in frames]
        while True:
            groups = range(0, len(parts), MERGED_PARTS)
            parts = [merge(shared, parts[i : i + MERGED_PARTS]) for i in groups]
            if len(parts) == 1:
                break
        report(step, 0)
        result = dask.compute(parts[0])[0]
        report(step, self.frame.npartitions)
        return self._result(result)

    def mapped(
        self, method: Method, columns: Sequence[str], keep: Sequence[str], types: Mapping[str, str]
    ) -> Any:
        """The results as another frame, partition by partition."""
        pandas = require("pandas", "frames")
        kept = self.frame._meta[list(keep)]
        dtypes = {n: t if t in ("float64", "float32", "int64", "bool") else object
                  for n, t in types.items()}  # fmt: skip
        dtypes |= {n: self.frame.dtypes[n] for n, kind in types.items() if kind == SAME_TYPE}
        empty = pandas.DataFrame({n: pandas.Series([], dtype=kind) for n, kind in dtypes.items()})
        meta = pandas.concat([kept, empty.set_index(kept.index[:0])], axis=1)
        work = partial(pandas_results, method, list(columns), list(keep), dtypes)
        return self.frame.map_partitions(work, meta=meta)

    def write(self, frame: Any, path: str, *, overwrite: bool) -> int:
        """Write a frame as a folder of Parquet files."""
        first_rows = frame.head(1000, npartitions=-1)  # what objects are, rows say
        schema = require("pyarrow", "frames").Schema.from_pandas(first_rows, preserve_index=False)
        frame.to_parquet(path, overwrite=overwrite, write_index=False, schema=schema)
        return int(require("dask.dataframe", "dask").read_parquet(path).shape[0].compute())


def _type_of(dtype: Any) -> str:
    """What Dask calls the type of a column, if cells of it are alike; "" of objects."""
    name = "string" if str(dtype).startswith("string") else str(dtype).lower()
    name = name.removesuffix("[pyarrow]")
    return name if family(name) in ("number", "text", "bool", "datetime") else ""


@dataclass(frozen=True)
class CellTypes(Work):
    """A cell of each type that columns of objects hold, which tells what the columns are."""

    def __call__(self, batches: Iterable[Any]) -> dict[str, dict[type, Any]]:
        """A cell of each type of each column; those of sets as lists."""
        parts = []
        for batch in batches:
            columns = {name: as_list(cells) for name, cells in named_columns(batch)[0].items()}
            parts.append({n: {_type_of_cell(c): c for c in cells} for n, cells in columns.items()})
        return self.merge(parts)

    def merge(self, results: Sequence[dict[str, dict[type, Any]]]) -> dict[str, dict[type, Any]]:
        """A cell of each type of all rows."""
        total: dict[str, dict[type, Any]] = {}
        for result in results:
            for name, cells in result.items():
                lists = {t: list(c) if isinstance(c, Set) else c for t, c in cells.items()}
                present = {t: cell for t, cell in lists.items() if not is_missing(cell)}
                total[name] = total.get(name, {}) | present
        return total


def _type_of_cell(cell: Any) -> type:
    """The type of a cell; of NaN, which is a float elsewhere, that of nothing."""
    return type(None) if isinstance(cell, float) and np.isnan(cell) else type(cell)


def pandas_results(
    method: Method, columns: list[str], keep: list[str], dtypes: Mapping[str, Any], part: Any
) -> Any:
    """The results of one partition, beside the columns that are kept."""
    import pandas

    results = method({name: part[name] for name in columns}) if len(part) else {}
    made = {
        name: pandas.Series(_listed(results.get(name, ())), part.index, dtype=dtype)
        for name, dtype in dtypes.items()
    }
    return pandas.concat([part[keep], pandas.DataFrame(made, part.index)], axis=1)


def _listed(cells: Any) -> Any:
    """Cells of a column; the rows of a matrix as a list of them."""
    return list(cells) if getattr(cells, "ndim", 1) > 1 else cells


# -- Spark ----------------------------------------------------------------------------------------


class SparkSource(DistributedSource):
    """A Spark frame; work is done by the executors of its session.

    The fields of records are columns; what no kind of column is, such as a map, is refused here,
    before an executor looks at it.
    """

    remedy = "frame.sample(0.1).toPandas()"

    def __init__(self, frame: Any) -> None:
        self.frame = _flat(frame)
        types = {field.name: _type_name(field.dataType) for field in self.frame.schema}
        super().__init__("Spark frame", types)

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        arrow, names = require("pyarrow", "frames"), list(columns)
        rows = self._select(columns).mapInArrow(in_bytes, "batch binary")
        for row in rows.toLocalIterator(prefetchPartitions=True):
            yield arrow.ipc.open_stream(row.batch).read_all().rename_columns(names)

    def choose(self, columns: Any = None, y: str | None = None) -> list[str]:
        """The columns to read; raise for those that hold what no kind of column is."""
        names = super().choose(columns, y)
        for name in names:
            if self.types[name].startswith(_UNREADABLE):
                raise ValueError(
                    f"{self.name}: column {name!r} holds {self.types[name]}, which is no kind of "
                    "column; select its parts, or leave it out by columns=[...]"
                )
        return names

    def part_sizes(self) -> list[int]:
        """How many rows each partition has."""
        functions = require("pyspark.sql.functions", "spark")
        part = functions.spark_partition_id().alias("part")
        sizes = {row["part"]: row["count"] for row in self.frame.groupBy(part).count().collect()}
        return [sizes.get(part, 0) for part in range(max(sizes, default=-1) + 1)]

    def _select(self, columns: Sequence[str]) -> Any:
        """Some columns, under names that are safe everywhere: a column may have any name."""
        col = require("pyspark.sql.functions", "spark").col
        named = ((col(sql_name(name, "`")), f"c{i}") for i, name in enumerate(columns))
        return self.frame.select(*(column.alias(name) for column, name in named))

    def run(
        self, work: Work, columns: Sequence[str], progress: Any = None, step: str = "counting"
    ) -> Any:
        """Do the work on each partition, merge the results there, and bring back the one.

        It is one action, so Spark runs all partitions side by side, and what the frame is computed
        from once. Results are merged in the order of their partitions: sums keep their bits.
        """
        report = progress_reporter(progress, "rows", None)
        report(step, 0)
        row = "part int, result binary"  # what a partition gives
        of_part = partial(partition_result, work, list(columns))
        results = self._select(columns).mapInArrow(of_part, row)
        for n_groups in (MERGED_PARTS, 1):  # only one result travels to the driver
            groups = results.repartition(n_groups, "part")
            results = groups.mapInArrow(partial(merged_results, work), row)
        parts = [pickle.loads(row.result) for row in results.collect()]  # noqa: S301
        return self._result(merged(work, parts))

    def mapped(
        self, method: Method, columns: Sequence[str], keep: Sequence[str], types: Mapping[str, str]
    ) -> Any:
        """The results as another frame, computed by the executors."""
        spark = require("pyspark.sql.types", "spark")
        made = [
            self.frame.schema[name]
            if kind == SAME_TYPE
            else spark.StructField(name, spark.DataType.fromDDL(RESULT_TYPES[kind]))
            for name, kind in types.items()
        ]
        schema = spark.StructType([*(self.frame.schema[name] for name in keep), *made])
        names = list(dict.fromkeys([*columns, *keep]))
        work = partial(arrow_results, method, names, list(columns), list(keep), dict(types))
        return self._select(names).mapInArrow(work, schema)

    def write(self, frame: Any, path: str, *, overwrite: bool) -> int:
        """Write a frame as a folder of Parquet files."""
        frame.write.mode("overwrite" if overwrite else "error").parquet(path)
        return int(frame.sparkSession.read.parquet(path).count())


_UNREADABLE = ("map<", "variant", "udt", "interval")


def _flat(frame: Any) -> Any:
    """A frame in which the fields of records are columns of their own."""
    while any(field.dataType.typeName() == "struct" for field in frame.schema):
        names: dict[str, str] = {}
        for field in frame.schema:
            path = sql_name(field.name, "`")
            if field.dataType.typeName() != "struct":
                names[path] = field.name
            for part in field.dataType if field.dataType.typeName() == "struct" else ():
                names[f"{path}.{sql_name(part.name, '`')}"] = f"{field.name}.{part.name}"
        functions = require("pyspark.sql.functions", "spark")
        frame = frame.select(*(functions.col(path).alias(name) for path, name in names.items()))
    return frame


def _type_name(kind: Any) -> str:
    """What Spark calls a type; lists as Arrow calls them."""
    return str(kind.simpleString()).replace("array<", "list<")


def partition_result(work: Work, names: list[str], batches: Iterator[Any]) -> Iterator[Any]:
    """The work on the Arrow batches of one partition; its result as one row of bytes."""
    part = _partition_id()
    named = (batch.rename_columns(names) for batch in batches)
    yield _row(part, result_of_part(work, part, gathered(named)))


def in_bytes(batches: Iterator[Any]) -> Iterator[Any]:
    """The batches of one partition, each as one row of bytes."""
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()])], ["batch"])


def _partition_id() -> int:
    from pyspark import TaskContext

    return int(TaskContext.get().partitionId())


def merged_results(work: Work, batches: Iterator[Any]) -> Iterator[Any]:
    """The results that one partition holds, merged to one."""
    rows = (row for batch in batches for row in batch.to_pylist())
    if parts := sorted(rows, key=lambda row: row["part"]):
        results = [pickle.loads(row["result"]) for row in parts]  # noqa: S301
        yield _row(parts[0]["part"], merged(work, results))


def _row(part: int, result: Any) -> Any:
    import pyarrow as pa

    cells = pa.array([part], pa.int32()), pa.array([pickle.dumps(result)], pa.binary())
    return pa.RecordBatch.from_arrays(list(cells), ["part", "result"])


def arrow_results(
    method: Method,
    names: list[str],
    columns: list[str],
    keep: list[str],
    types: Mapping[str, str],
    batches: Iterator[Any],
) -> Iterator[Any]:
    """The results of Arrow batches, beside the columns that are kept."""
    import pyarrow as pa

    part = _partition_id()
    for unnamed in batches:
        batch = unnamed.rename_columns(names)
        if len(batch):
            try:
                results = method({name: batch.column(name) for name in columns})
            except (TypeError, ValueError) as error:
                raise PartError(part, error).named("Spark frame") from error
            cells = {n: batch.column(n) for n in keep}
            kinds = {n: kind or batch.schema.field(n).type for n, kind in types.items()}
            cells |= {n: _arrow_cells(results[n], kind) for n, kind in kinds.items()}
            yield pa.RecordBatch.from_arrays(list(cells.values()), names=list(cells))


def _arrow_cells(cells: Any, kind: Any) -> Any:
    """Results as Arrow has them; the rows of a matrix as lists."""
    import pyarrow as pa

    if not str(kind).endswith("[]"):
        return pa.array(cells, "string" if kind == "text" else kind, from_pandas=True)
    matrix = np.ascontiguousarray(cells)
    starts = np.arange(0, matrix.size + 1, max(matrix.shape[1], 1), dtype=np.int32)
    return pa.ListArray.from_arrays(starts, matrix.reshape(-1))
