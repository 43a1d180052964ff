"""Counting any source: what ``tabweave.count`` does, whatever engine the rows are in.

``BatchReader`` says how batches become tables; ``CountRows`` and ``TallyValues`` are the work that
is done on the batches of one worker, and how the results of many add up.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from numbers import Integral
from operator import add
from typing import Any, Literal, NamedTuple

import numpy as np

from tabweave.columns.column import Column, Schema
from tabweave.columns.decision import Rules
from tabweave.columns.frames import named_columns, objects
from tabweave.columns.numeric import is_inexact
from tabweave.columns.table import (
    INEXACT,
    MAX_SAMPLED_ROWS,
    Table,
    append_rows,
    drop_columns,
    row_keys,
    take_rows,
)
from tabweave.columns.vocabulary import Label, Rule, code_type, fold, identity
from tabweave.counts.counting import most_paired
from tabweave.counts.counts import Counts
from tabweave.engines.opening import open_fitted, open_source
from tabweave.engines.progress import Estimate, ProgressCallback, check_counts_fit, estimated
from tabweave.engines.pushdown import count_by_sql
from tabweave.engines.source import (
    RereadError,
    Source,
    Work,
    family,
    join_batches,
    n_rows_of,
    some_rows,
)
from tabweave.gpu import arrays as gpu

Expand = Callable[[Table, Any], tuple[Table, Any]]


class InexactNumbersError(RereadError):
    """Whole numbers that no float equals, in a column that was taken for one of numbers."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"column {self.name!r} holds whole numbers beyond 2**53 that no float equals, and "
            f"rows before them were counted as numbers; declare it, as in "
            f"schema={{{self.name!r}: 'nominal'}} (or 'numeric', which rounds them)"
        )


GATHERED_BYTES = 1 << 28  # Rows that are gathered before they are counted.


def count(
    source: Any,
    *,
    columns: Any = None,
    y: Any = None,
    engine: str = "auto",
    schema: Any = None,
    numbers: Literal["numeric", "nominal"] = "numeric",
    max_values: int | Mapping[str, int] | None = None,
    other: Literal["frequency", "hash"] = "frequency",
    progress: ProgressCallback | None = None,
) -> Counts:
    """Count the rows of a frame, file, query or database, of any size.

    Rows are read once, in batches; memory holds a few batches and the counts. The same typed data
    gives the same counts from every engine, bit for bit.

    Parameters
    ----------
    source : frame, array, path, glob, list of paths, SQL text, relation or (connection, query)
        A pandas, polars or Arrow frame, a NumPy array, a lazy polars frame, a DuckDB relation, a
        Dask or Spark frame, anything that speaks Arrow's stream protocol (Ibis, DataFusion, Daft,
        LanceDB ...); files that end in ``.parquet``, ``.csv``, ``.tsv``, ``.json``,
        ``.jsonl`` (also with ``.gz``) or ``.arrow``; SQL over files, run by DuckDB; or a query on
        a database: ``("postgresql://...", query)``, ``("sqlite:///file.db", query)``, or a
        connection of ADBC, DuckDB or Python's DB-API in place of the address.
    columns : list of names, or mapping of name to type, optional
        What to count; all columns by default. In files of text a DuckDB type such as
        ``"VARCHAR"`` says how to read a column (None: as its cells look).
    y : str or array-like, optional
        The column with the classes; for rows in memory also the classes themselves.
    engine : str, default="auto"
        What reads the rows: "auto", "memory", "arrow", "duckdb", "database", "pushdown", "dask"
        or "spark". ``"memory"`` reads all of them first. ``"pushdown"`` reads none: a
        database, DuckDB, Ibis or DataFusion counts where the rows are, by SQL, and only counts
        travel (of a column of numbers, its distinct numbers).
    schema : Schema or mapping, optional
        Kinds of some columns, as in :meth:`tabweave.Table.of`.
    numbers : {"numeric", "nominal"}, default="numeric"
        What an undeclared column of numbers is.
    max_values : int or mapping of column to int, optional
        Most values a column may have; rows are then read twice.
    other : {"frequency", "hash"}, default="frequency"
        What becomes of a column with more: its most frequent values stay and the others share
        the value ``⟨other⟩``, or all are hashed to ``max_values`` buckets.
    progress : callable, optional
        Called with a :class:`tabweave.engines.Progress` after each batch;
        :func:`tabweave.engines.progress_bar` gives one that draws.

    Returns
    -------
    counts : Counts
        The same as ``Counts.of`` of all rows in memory.

    Raises
    ------
    MemoryError
        If the counts would not fit; see :func:`tabweave.engines.estimate`.

    Notes
    -----
    A label is a whole number, number, text, bool or bytes; ``1`` and ``1.0`` are one label,
    ``"1"`` another. Parquet, Arrow, databases and frames have types and keep them. A column of a
    CSV file is of whole numbers, numbers or text as all of its cells allow; an empty cell is
    missing. Times and dates become ISO text. SQLite has no bools: they are 0 and 1 there.

    Examples
    --------
    >>> import tabweave
    >>> tabweave.count("SELECT range % 2 AS a, 'x' || (range % 3) AS b FROM range(600)")
    Counts(600 rows, 2 columns, 5 values)
    >>> shirts = {"color": ["red", "blue", "red"], "size": ["S", "S", "L"]}
    >>> tabweave.count(shirts, y="size").classes
    ('L', 'S')
    """
    if other not in ("frequency", "hash"):
        raise ValueError(f"expected other to be 'frequency' or 'hash', got {other!r}")
    opened = open_source(source, columns, engine)
    reading, names = reading_of(opened, columns, y, schema, numbers)
    limits = limits_of(max_values, reading.columns or names)
    if engine == "pushdown":
        return count_by_sql(
            opened.sql_table(),
            names,
            reading.y,
            reading.schema,
            numbers,
            reading.typed,
            lambda tally: bucket_rules(tally, limits, other),
        )
    if limits:
        rules = _rules(opened, reading, names, limits, other, progress)
        reading = replace(reading, buckets=rules)
    return run_exactly(
        opened, reading, lambda r: opened.run(CountRows(r, opened.n_rows), names, progress)
    )


def run_exactly(source: Source, reading: BatchReader, run: Callable[[BatchReader], Any]) -> Any:
    """Run with what says how rows are read; again, if numbers turn out to be no floats.

    Which columns those are does not depend on how the rows arrive: one such cell makes its column
    nominal, as in memory.
    """
    while True:
        try:
            return run(reading)
        except InexactNumbersError as error:
            if not source.repeats:
                raise
            reading = reading.with_nominal(error.name)


def count_for(
    source: Any,
    y: str | None,
    schema: Schema,
    fitted: Counts,
    expand: Expand,
) -> Counts:
    """Count a source as an embedder reads it; buckets are those of fit.

    ``expand`` turns rows and classes into those that are counted. It and the rules for columns that
    no schema names see first, in this process, the rows that stand for all, and what is learned
    from these holds for all: a file that is sorted gives what the same rows in memory give. What
    can be read only once is known by its first rows.
    """
    opened, reading, names = _as_fitted(source, y, schema, fitted)
    counts = _counted(opened, replace(reading, expand=expand), names, fitted, lambda work: work)
    return _require_rows(counts, opened)


def count_with(
    source: Any, schema: Schema, fitted: Counts, of: Callable[..., Any]
) -> tuple[Counts, Any]:
    """Count a source as an embedder of numbers reads it, with all it needs, in one pass.

    ``of(table, total)`` gives what a batch adds, ``total`` being what was added up before it, None
    at first; two of them add by ``+``.
    """
    opened, reading, names = _as_fitted(source, None, schema, fitted)
    counts, total = _counted(opened, reading, names, fitted, lambda work: CountWith(work, of))
    return _require_rows(counts, opened), total


def _as_fitted(
    source: Any, y: str | None, schema: Schema, fitted: Counts
) -> tuple[Source, BatchReader, list[str]]:
    """Open a source and say how it is read: columns and buckets are those of fit, if there are."""
    opened, _ = open_fitted(source, fitted, [y] if y else [])
    columns = None if fitted.schema is None or not fitted.schema.named else fitted.schema.names
    reading, names = reading_of(opened, columns, y, schema, rules="whole")
    return opened, replace(reading, buckets=fitted.vocabulary.buckets), names


def _counted(
    source: Source,
    reading: BatchReader,
    names: list[str],
    fitted: Counts,
    work_of: Callable[[CountRows], Any],
) -> Any:
    """What work on batches makes of a source, whose columns are those of fit if there are."""
    if fitted.schema is not None:
        return source.run(work_of(CountRows(reading, source.n_rows)), names)
    return run_exactly(source, reading, lambda r: _count_unseen(source, r, names, work_of))


def _require_rows(counts: Counts, source: Source) -> Counts:
    """Counts, which must be of at least one row."""
    if counts.schema is None:
        raise ValueError(
            f"{source.name}: Found array with 0 sample(s) while a minimum of 1 is required."
        )
    return counts


def _count_unseen(
    source: Source, reading: BatchReader, names: list[str], work_of: Callable[[CountRows], Any]
) -> Any:
    """Count a source of which nothing is known yet: a sample first says what its columns are."""
    if not source.repeats:
        first, following = _first_rows(source.batches(names))
        if following is not None:
            rows = chain([join_batches(first, names)], following)
            return work_of(CountRows(replace(reading, rules="first")))(rows)
        n_rows = sum(map(n_rows_of, first))
    else:
        first, n_rows = sample(source, names)
    if not n_rows:
        return work_of(CountRows(reading)).of_tables([])
    is_complete = n_rows <= MAX_SAMPLED_ROWS
    sampled = reading if is_complete else replace(reading, rules="sample")
    table, classes = sampled.table(join_batches(first, names), n_rows=n_rows)
    first.clear()  # the rows are in the table now
    if is_complete:
        return work_of(CountRows(reading, source.n_rows)).of_tables([(table, classes)])
    table = drop_columns(table, constants(source, table), "constant")
    reading = replace(reading, schema=table.schema)
    if reading.expand is not None:
        reading.expand(table, classes)
    del table, classes
    return source.run(work_of(CountRows(reading, n_rows)), names)


def _first_rows(batches: Iterator[Any]) -> tuple[list[Any], Iterator[Any] | None]:
    """The first batches of a stream, and what follows them; None if they are all."""
    first: list[Any] = []
    n_rows = 0
    for batch in batches:
        first.append(batch)
        n_rows += n_rows_of(batch)
        if n_rows > MAX_SAMPLED_ROWS:
            return first, batches
    return first, None


def sample(source: Source, names: Sequence[str]) -> tuple[list[Any], int]:
    """The rows that stand for all, as :func:`sampled_rows` says, and how many all are.

    Of a source in parts these are counted first: then each sends its share of the rows, and their
    number does not grow with that of all rows.
    """
    sizes = source.part_sizes()
    starts = tuple(np.cumsum([0, *sizes]).tolist())
    spare = 8 * MAX_SAMPLED_ROWS**0.5  # of so many rows, keys as drawn leave surely enough
    share = (MAX_SAMPLED_ROWS + spare) / max(starts[-1], 1)
    limit = min(int(share * LAST_KEY), LAST_KEY) if sizes else LAST_KEY
    rows = source.run(SampleRows(starts, limit), names)
    return [part.rows for part in rows.parts], rows.n_rows


LAST_KEY = 2**64 - 1  # No row has a higher one.


class SampledPart(NamedTuple):
    """Some of the rows of a batch: the number of its first row, their keys, and they."""

    start: int
    keys: np.ndarray
    rows: Any


class SampledRows(NamedTuple):
    """Rows of the lowest keys, in the order of the rows, and of how many rows they are."""

    parts: list[SampledPart]
    n_rows: int


@dataclass(frozen=True)
class SampleRows(Work):
    """Draw rows by the keys of their numbers.

    Attributes
    ----------
    starts : tuple of int
        The number of the first row of each part.
    limit : int
        A key above which none is needed.
    part : int
        The part that is read.
    """

    starts: tuple[int, ...] = (0,)
    limit: int = LAST_KEY
    part: int = 0

    def at(self, part: int) -> SampleRows:
        """The same for the part of that number."""
        return replace(self, part=part)

    def __call__(self, batches: Iterable[Any]) -> SampledRows:
        """The rows of one part. Parts that changed since they were counted are drawn from, too."""
        known = self.part < len(self.starts)
        first = row = self.starts[self.part] if known else self.part << 40
        sampled: list[SampledPart] = []
        limit = np.uint64(self.limit)
        for batch in batches:
            keys = row_keys(row, row + n_rows_of(batch))
            sampled.append(_below(limit, SampledPart(row, keys, batch)))
            row += len(keys)
            if sum(len(part.keys) for part in sampled) > 2 * MAX_SAMPLED_ROWS:
                sampled, limit = _lowest(sampled)
        return SampledRows(_lowest(sampled)[0], row - first)

    def merge(self, results: Sequence[SampledRows]) -> SampledRows:
        """The rows of the lowest keys of all parts."""
        parts = sorted((part for result in results for part in result.parts), key=_start_of)
        return SampledRows(_lowest(parts)[0], sum(result.n_rows for result in results))


def _start_of(part: SampledPart) -> int:
    return part.start


def _lowest(sampled: list[SampledPart]) -> tuple[list[SampledPart], Any]:
    """The rows of the lowest keys, and the first key that is too high."""
    keys = np.concatenate([np.zeros(0, np.uint64), *(part.keys for part in sampled)])
    if len(keys) <= MAX_SAMPLED_ROWS:
        return sampled, np.uint64(LAST_KEY)
    limit = np.partition(keys, MAX_SAMPLED_ROWS)[MAX_SAMPLED_ROWS]
    return [_below(limit, part) for part in sampled], limit


def _below(limit: Any, part: SampledPart) -> SampledPart:
    """The rows of lower keys."""
    index = np.flatnonzero(part.keys < limit)
    if len(index) == len(part.keys):
        return part
    return SampledPart(part.start, part.keys[index], some_rows(part.rows, index))


def constants(source: Source, table: Table) -> list[str]:
    """The columns that are constant in all rows, of those that are in a sample of them."""
    one = take_rows(table, np.arange(1))
    names = [column.name for column, data in table if column.inferred and data.is_constant()]
    return source.run(FindConstants(one.select(names)), names) if names else []


@dataclass(frozen=True)
class FindConstants(Work):
    """Find the columns that hold in all rows what they hold in one."""

    row: Table

    def __call__(self, batches: Iterable[Any]) -> list[str]:
        """The columns that are constant in some batches."""
        names = self.row.schema.names
        for batch in batches:
            rows = Table.of(batch, self.row.schema)
            names = [name for name in names if self.row[name].joined(rows[name]).is_constant()]
            if not names:
                break
        return names

    def merge(self, results: Sequence[list[str]]) -> list[str]:
        """The columns that are constant in all parts."""
        return [name for name in self.row.schema.names if all(name in part for part in results)]


def estimate(
    source: Any,
    *,
    columns: Any = None,
    y: Any = None,
    schema: Any = None,
    numbers: Literal["numeric", "nominal"] = "numeric",
    max_values: int | Mapping[str, int] | None = None,
) -> Estimate:
    """Estimate the time and memory that counting will take, from the first batch of rows.

    Parameters
    ----------
    source, columns, y, schema, numbers, max_values
        As in :func:`tabweave.count`, which does not start when the estimate is above what is
        free.

    Returns
    -------
    estimate : Estimate
        Rows, values, pairs, bytes and seconds.

    Examples
    --------
    >>> from tabweave.engines import estimate
    >>> found = estimate("SELECT range AS id, range % 10 AS digit FROM range(1000)",
    ...                  numbers="nominal")
    >>> found.values, found.fits
    ({'id': 1000, 'digit': 10}, True)
    """
    opened = open_source(source, columns)
    reading, names = reading_of(opened, columns, y, schema, numbers)
    start = time.perf_counter()
    for batch in opened.batches(names):
        table, _ = reading.table(batch)
        rows = opened.about_rows()
        first = estimated(table, rows, limits_of(max_values, table.schema.names))
        growth = max((rows or 0) / max(table.n_rows, 1), 1.0)
        n_bytes = int(growth * _held_bytes(batch, table))
        return replace(first, seconds=growth * (time.perf_counter() - start), rows_bytes=n_bytes)
    raise ValueError(f"{opened.name}: expected at least one row, got none")


def _held_bytes(batch: Any, table: Table) -> int:
    """What a batch takes as it was read and as codes."""
    read_bytes = getattr(batch, "nbytes", 64 * table.n_rows * len(table.columns))
    arrays = ("codes", "values", "starts")
    coded_bytes = sum(getattr(d, a).nbytes for d in table.columns for a in arrays if hasattr(d, a))
    return int(read_bytes + coded_bytes)


@dataclass(frozen=True)
class BatchReader:
    """How rows become a table: which columns, as what, and which of them is the class."""

    schema: Schema = field(default_factory=Schema)
    numbers: str = "numeric"
    columns: tuple[str, ...] | None = None
    y: str | None = None
    classes: Any = None
    buckets: Mapping[str, Any] = field(default_factory=dict)
    expand: Expand | None = None
    rules: Rules | None = None
    typed: frozenset[str] = frozenset()  # columns that are numbers by the type of the source alone
    parted: bool = False  # whether parts are read apart from each other, and may be read again

    def table(
        self, batch: Any, schema: Schema | None = None, n_rows: int | None = None
    ) -> tuple[Table, Any]:
        """The rows of a batch, or of a sample of n_rows, and their classes."""
        y = self.classes
        if self.columns is not None:
            by_name, _ = named_columns(batch)
            y = self.classes if self.y is None else by_name[self.y]
            batch = {name: by_name[name] for name in self.columns}
        options: Any = {"numbers": self.numbers, "rules": self.rules, "n_rows": n_rows}
        table = Table.of(batch, schema or self.schema, **options)
        self._check_exact(batch, table)
        return fold(table, self.buckets), y

    def _check_exact(self, batch: Any, table: Table) -> None:
        """Raise for whole numbers that floats do not hold, unless they were declared as numbers."""
        for column in table.schema.columns:
            if self.parted and column.why == INEXACT:
                raise InexactNumbersError(column.name)
        undeclared = [
            column.name
            for column in table.schema.columns
            if column.is_continuous and (column.name in self.typed or column.why == "numbers")
        ]
        cells = named_columns(batch)[0] if undeclared and not isinstance(batch, Table) else {}
        for name in undeclared:
            if name in cells and is_inexact(cells[name]):
                raise InexactNumbersError(name)

    def with_nominal(self, name: str) -> BatchReader:
        """The same, but for a column that is read as values."""
        others = [column for column in self.schema.columns if column.name != name]
        schema = replace(self.schema, columns=(*others, Column(name, "nominal")))
        return replace(self, schema=schema, typed=self.typed - {name})


def reading_of(
    source: Source,
    columns: Any,
    y: Any,
    schema: Any,
    numbers: str = "numeric",
    rules: Rules | None = None,
) -> tuple[BatchReader, list[str]]:
    """How batches are to be read, and which columns they need."""
    name = y if isinstance(y, str) else None
    names = source.choose(columns, name)
    if y is not None and name is None and not source.in_memory:
        raise TypeError(
            f"{source.name}: expected the name of a column as y, got {type(y).__name__}"
        )
    counted = [n for n in names if n != name]
    if not counted:
        raise ValueError(f"{source.name}: expected a column to count besides y, got none")
    is_whole = name is None and names == list(source.types)
    # Rules read the first rows themselves, whose types are those of all.
    declared = Schema.of(schema)
    types = {} if rules is not None or declared.complete else source.known_types(counted)
    completed = _completed(declared, types, counted, numbers) if rules is None else declared
    numeric = frozenset(column.name for column in completed.columns if column.is_continuous)
    reading = BatchReader(
        schema=completed,
        numbers=numbers,
        columns=None if is_whole else tuple(counted),
        y=name,
        classes=None if name is not None else y,
        rules=rules,
        typed=numeric.difference(declared.names),
        parted=source.repeats and not source.in_memory,
    )
    return reading, names


def _completed(schema: Schema, types: Mapping[str, str], names: list[str], numbers: str) -> Schema:
    """Declare what the types of a source say, so that no batch is taken for something else."""
    if schema.complete:
        return schema
    schema = schema.over(names)
    kinds: Any = {"text": "nominal", "bool": "nominal", "set": "set"}
    kinds |= {"number": numbers, "datetime": numbers}
    families = {name: family(types[name]) for name in names if name not in schema.names}
    typed = [Column(name, kinds[of]) for name, of in families.items() if of in kinds]
    return replace(schema, columns=(*schema.columns, *typed))


@dataclass(frozen=True)
class CountRows(Work):
    """Count the rows of some batches."""

    reading: BatchReader
    n_rows: int | None = None

    def __call__(self, batches: Iterable[Any]) -> Counts:
        """The counts of all batches."""
        return self.of_tables(self.tables(batches))

    def of_tables(self, tables: Iterable[tuple[Table, Any]]) -> Counts:
        """The counts of tables, and their classes."""
        # Sums of equally many batches are added, so that a large vocabulary is merged seldom.
        sums: list[tuple[int, Counts]] = []
        for table, y in self._gathered(tables):
            counts, level = Counts.of(table, y), 0
            while sums and sums[-1][0] == level:
                counts, level = sums.pop()[1] + counts, level + 1
            check_counts_fit(counts)
            sums.append((level, counts))
        return self.merge([counts for _, counts in sums])

    def tables(self, batches: Iterable[Any]) -> Iterator[tuple[Table, Any]]:
        """The batches that have rows as tables, with the schema of the first."""
        schema: Schema | None = None
        for batch in batches:
            table, y = self.reading.table(batch, schema)
            if table.n_rows:
                schema = table.schema
                yield table, y

    def _gathered(self, tables: Iterable[tuple[Table, Any]]) -> Iterator[tuple[Table, Any]]:
        """Tables of as many rows as it takes to be worth a matrix of their own."""
        gathered: Table | None = None
        classes: list[Any] = []
        for i, (table, y) in enumerate(tables):
            before_expansion = table
            if self.reading.expand is not None:
                table, y = self.reading.expand(table, y)
            if i == 0 and table.schema.coupled:
                estimated(before_expansion, self.n_rows).check()
            gathered = table if gathered is None else append_rows(gathered, table)
            classes.append(y)
            if gathered.n_rows >= _enough(gathered):
                yield gathered, _joined_classes(classes)
                gathered, classes = None, []
        if gathered is not None:
            yield gathered, _joined_classes(classes)

    def merge(self, results: Sequence[Counts]) -> Counts:
        """Add counts."""
        return reduce(lambda total, part: part + total, reversed(results), Counts())


@dataclass(frozen=True)
class CountWith(Work):
    """Count the rows of some batches, and add up what else is made of each."""

    counting: CountRows
    of: Callable[..., Any]

    def __call__(self, batches: Iterable[Any]) -> tuple[Counts, Any]:
        """The counts of all batches, and the other sum; None if there are no rows."""
        return self.of_tables(self.counting.tables(batches))

    def of_tables(self, tables: Iterable[tuple[Table, Any]]) -> tuple[Counts, Any]:
        """The same of tables, and their classes."""
        total = None
        with ThreadPoolExecutor(1) as second_thread:

            def seen() -> Iterator[tuple[Table, Any]]:
                nonlocal total
                for table, y in tables:
                    added = second_thread.submit(self.of, table, total)  # while it is counted
                    yield table, y
                    total = added.result() if total is None else total + added.result()

            return self.counting.of_tables(seen()), total

    def merge(self, results: Sequence[tuple[Counts, Any]]) -> tuple[Counts, Any]:
        """Add counts, and the other sums."""
        sums = [total for _, total in results if total is not None]
        counts = self.counting.merge([counts for counts, _ in results])
        return counts, reduce(add, sums) if sums else None


def _enough(table: Table) -> int:
    """How many rows make counting them dearer than the matrix it ends in.

    A cell of a pair's table costs about as much as 256 rows; on a device, rows cost nothing.
    Columns of very many values end in sparse tables, which grow with the rows: nothing is gained
    by waiting.
    """
    data = [table[column.name] for column in table.schema.categorical]
    n_numbers = len(table.columns) - len(data)
    buckets = [most_paired(n_numbers)] * n_numbers
    sizes = np.array([*(len(d.labels) for d in data), *buckets], np.int64)
    if len(sizes) < 2 or sizes.max() > 1 << 14:
        return 0
    cells = (sizes.sum() ** 2 - (sizes**2).sum()) // (len(sizes) * (len(sizes) - 1))
    coded = sum(np.dtype(code_type(len(d.labels))).itemsize for d in data)  # once joined
    width = coded + 8 * n_numbers
    most = GATHERED_BYTES // width
    return most if gpu.device() is not None else min(256 * int(cells), most)


def _joined_classes(parts: Sequence[Any]) -> Any:
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    return np.concatenate([p if isinstance(p, np.ndarray) else objects(p) for p in parts])


Tally = dict[str, Counter]


@dataclass(frozen=True)
class TallyValues(Work):
    """Count the values of each column alone; beyond a limit, only that there are more."""

    reading: BatchReader
    limits: Mapping[str, int | None]

    def __call__(self, batches: Iterable[Any]) -> Tally:
        """How often each value occurs, by column; of those over their limit, some values."""
        return self.merge(map(self._one, batches))

    def _one(self, batch: Any) -> Tally:
        table, _ = self.reading.table(batch)
        out = {}
        for column in table.schema.categorical:
            if column.levels is None:
                data = table[column.name]
                seen = np.bincount(data.codes, minlength=len(data.labels)).tolist()
                values = map(identity, data.labels)
                out[column.name] = +Counter(dict(zip(values, seen, strict=True)))
        return out

    def merge(self, results: Iterable[Tally]) -> Tally:
        """Add tallies."""
        total: Tally = {}
        for part in results:
            for name, tally in part.items():
                total.setdefault(name, Counter()).update(tally)
                limit = self.limits.get(name)
                if limit is not None and len(total[name]) > limit + 2:
                    for value in list(total[name])[limit + 2 :]:
                        del total[name][value]
        return total


def bucket_rules(tally: Tally, max_values: Mapping[str, int], other: str) -> dict[str, Rule]:
    """Return, for the columns with more values than allowed, which values stay."""
    rules: dict[str, Rule] = {}
    for name, seen in tally.items():
        limit = max_values.get(name)
        values: list[tuple[int, Label]] = [v for v in seen if v[1] is not None]
        if limit is None or len(values) <= limit:
            continue
        if other == "hash":
            rules[name] = limit
        else:
            # Of equal counts the first by value stays, never the first to arrive.
            values.sort(key=lambda v: (-seen[v], v))
            rules[name] = frozenset(values[: limit - 1])
    return rules


def _rules(
    source: Source,
    reading: BatchReader,
    names: list[str],
    limits: dict[str, int],
    other: str,
    progress: ProgressCallback | None,
) -> dict[str, Any]:
    """Read the rows once to see which values stay."""
    if not source.repeats:
        raise ValueError(f"{source.name} can be read only once; max_values needs to read it twice")
    # To hash a column it is enough to know that it has too many values.
    caps = limits if other == "hash" else {}
    tally = source.run(TallyValues(reading, caps), names, progress, "finding frequent values")
    return bucket_rules(tally, limits, other)


def limits_of(max_values: Any, names: Sequence[str]) -> dict[str, int]:
    """The most values of each column that has a limit."""
    if max_values is None:
        return {}
    limits = max_values if isinstance(max_values, Mapping) else dict.fromkeys(names, max_values)
    for name, limit in limits.items():
        if name not in names:
            raise ValueError(f"max_values names column {name!r}, which is not counted")
        if isinstance(limit, bool) or not isinstance(limit, Integral) or limit < 2:
            raise ValueError(
                f"max_values of column {name!r}: expected a whole number >= 2, got {limit!r}"
            )
    return {name: int(limit) for name, limit in limits.items()}
