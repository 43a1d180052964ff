"""Counting any source: what ``weft.count`` does, whatever engine the rows are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from weft._buckets import rules_of
from weft.counts import Counts
from weft.engines._open import known_columns
from weft.engines._places import Place, place_of
from weft.engines._progress import Progress
from weft.engines._source import IN_MEMORY, Source, chosen, family
from weft.engines._work import CountRows, Reading, TallyValues, bucket_rules
from weft.table import Column, Schema

_KINDS = {"text": "nominal", "truth": "nominal", "number": "numeric", "moment": "numeric"}
_KINDS |= {"set": "set"}


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
    progress: Progress = False,
) -> Counts:
    """Count rows where they are, however many there are.

    Rows are read once, in batches; memory holds a few batches and the counts. The same typed data
    gives the same counts from every engine, bit for bit.

    Parameters
    ----------
    source : frame, array, path, glob, list of paths, SQL text, relation or (connection, query)
        A pandas, polars or Arrow frame, a NumPy array, a lazy polars frame, a DuckDB relation, a
        Dask or Spark frame; files that end in ``.parquet``, ``.csv``, ``.tsv``, ``.json``,
        ``.jsonl`` (also with ``.gz``) or ``.arrow``; SQL over files, run by DuckDB; or a query on
        a database: ``("postgresql://...", query)``, ``("sqlite:///file.db", query)``, or a
        connection of ADBC, DuckDB or Python's DB-API in place of the address.
    columns : list of names, or mapping of name to type, optional
        What to count; all columns by default. In files of text a DuckDB type such as
        ``"VARCHAR"`` says how to read a column (None: as its cells look).
    y : str or array-like, optional
        The column with the classes; for rows in memory also the classes themselves.
    engine : {"auto", "memory", "arrow", "duckdb", "database", "dask", "spark"}
        What reads the rows; ``"memory"`` reads all of them first.
    schema : Schema or mapping, optional
        Kinds of some columns, as in :meth:`weft.Table.of`.
    numbers : {"numeric", "nominal"}
        What an undeclared column of numbers is.
    max_values : int or mapping of column to int, optional
        Most values a column may have; rows are then read twice.
    other : {"frequency", "hash"}
        What becomes of a column with more: its most frequent values stay and the others share
        the value ``⟨other⟩``, or all are hashed to ``max_values`` buckets.
    progress : bool or callable, default=False
        Show how far it is, or call ``progress(rows, of)`` after each batch.

    Returns
    -------
    counts : Counts
        The same as ``Counts.of`` of all rows in memory.

    Raises
    ------
    MemoryError
        If the counts would not fit; see :func:`weft.engines.estimate`.

    Notes
    -----
    A label is a whole number, number, text, truth or bytes; ``1`` and ``1.0`` are one label,
    ``"1"`` another. Parquet, Arrow, databases and frames have types and keep them. A column of a
    CSV file is of truths, whole numbers, numbers or text as all of its cells allow; an empty cell
    is missing. Times and dates become ISO text. SQLite has no truths: they are 0 and 1 there.

    Examples
    --------
    >>> import weft
    >>> weft.count("SELECT range % 2 AS a, 'x' || (range % 3) AS b FROM range(600)")
    Counts(600 rows, 2 columns, 3 values)
    >>> shirts = {"color": ["red", "blue", "red"], "size": ["S", "S", "L"]}
    >>> weft.count(shirts, y="size").classes
    ('L', 'S')
    """
    if other not in ("frequency", "hash"):
        raise ValueError(f"other={other!r}: use 'frequency' or 'hash'")
    place = place_of(source, columns, engine)
    reading, names = reading_of(place.source, columns, y, schema, numbers)
    if max_values is not None:
        limits = limits_of(max_values, reading.columns or names)
        rules = _rules(place, reading, names, limits, other, progress)
        reading = replace(reading, rules=rules)
    work = CountRows(reading, place.source.n_rows)
    return place.run(work, names, progress, "counting")


def reading_of(
    source: Source, columns: Any, y: Any, schema: Any, numbers: str
) -> tuple[Reading, list[str]]:
    """Return how batches are to be read, and which columns they need."""
    name = y if isinstance(y, str) else None
    names = chosen(source, columns, name)
    if y is not None and name is None and source.place != IN_MEMORY:
        raise TypeError(f"{source.place}: y must be the name of a column, not {type(y).__name__}")
    wanted = [n for n in names if n != name]
    if not wanted:
        raise ValueError(f"{source.place}: there is no column left to count beside y")
    whole = name is None and names == list(source.types)
    completed = _completed(schema, source.types, wanted, numbers)
    classes = None if name is not None else y
    return Reading(completed, numbers, None if whole else tuple(wanted), name, classes), names


def _completed(schema: Any, types: Mapping[str, str], names: list[str], numbers: str) -> Schema:
    """Declare what the types of a source say, so that no batch is taken for something else."""
    schema = Schema.of(schema)
    if schema.complete:
        return schema
    kinds = {name: _KINDS.get(family(types[name])) for name in names}
    found = [
        Column(name, numbers if kind == "numeric" else kind)  # type: ignore[arg-type]
        for name, kind in kinds.items()
        if kind is not None and name not in schema.names
    ]
    return replace(schema, columns=(*schema.columns, *found))


def limits_of(max_values: Any, names: Sequence[str]) -> dict[str, int]:
    """Return the most values of each column that has a limit."""
    given = max_values if isinstance(max_values, Mapping) else dict.fromkeys(names, max_values)
    for name, most in given.items():
        if name not in names:
            raise ValueError(f"max_values names column {name!r}, which is not counted")
        if isinstance(most, bool) or not isinstance(most, int) or most < 2:
            raise ValueError(f"max_values={most!r} of column {name!r} must be a number >= 2")
    return dict(given)


def _rules(
    place: Place,
    reading: Reading,
    names: list[str],
    limits: dict[str, int],
    other: str,
    progress: Progress,
) -> dict[str, Any]:
    """Read the rows once to see which values stay."""
    if not place.source.repeats:
        raise ValueError(
            f"{place.source.place} can be read once only; max_values needs to read it twice"
        )
    # To hash a column it is enough to know that it has too many values.
    caps = limits if other == "hash" else {}
    tally = place.run(TallyValues(reading, caps), names, progress, "finding frequent values")
    return bucket_rules(tally, limits, other)


def count_for(source: Any, y: str | None, schema: Schema, known: Counts) -> Counts:
    """Count a source as an embedder reads it: numbers are categories, known buckets are used."""
    place = place_of(source, known_columns(source, known, [y] if y else []), "auto")
    columns = None if known.schema is None or not known.schema.named else known.schema.names
    reading, names = reading_of(place.source, columns, y, schema, "nominal")
    reading = replace(reading, rules=rules_of(known.names, known.labels))
    counts = place.run(CountRows(reading, place.source.n_rows), names, False, "counting")
    if counts.schema is None:
        raise ValueError(
            f"{place.source.place}: Found array with 0 sample(s) while a minimum of 1 is required."
        )
    return counts
