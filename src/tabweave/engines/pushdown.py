"""Pushdown: counting where the rows are, by SQL; only counts travel, at most V² of them.

A query per column asks for its values, how often each occurs, and a text that stands for it. Then
the texts of all pairs of columns are counted, small columns several at a time: one pass of the
database over the rows gives the joint values of two groups of columns, and the pairs of their
columns are summed from that. DuckDB and PostgreSQL first put the rows into a temporary table of
their own, in which a small number stands for the texts of a whole group. What a label is, is
decided here, from typed values, as when rows are read: so labels and counts are the same, bit for
bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any
from uuid import uuid4

import numpy as np
from scipy import sparse

from tabweave.columns.column import Column, Schema
from tabweave.columns.datetime import Cycle, cycles_of
from tabweave.columns.frames import columns_of
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers, is_inexact
from tabweave.columns.table import Table
from tabweave.columns.vocabulary import Label, Vocabulary, bucket, identity
from tabweave.counts.counting import (
    DIGITS,
    Grid,
    Histogram,
    add_up,
    canonical,
    check_wide,
    coded_bins,
    group_columns,
    pack_columns,
)
from tabweave.counts.counts import Counts, NumberCounts
from tabweave.io.dialects import DIALECTS, Dialect

NAME = "tabweave_source"
_OTHER = "⟨other: tabweave⟩"  # stands for all values that are not kept
_MANY_ROWS = 1 << 19  # a pass over them takes longer than to sum tens of thousands of joint values
Tally = dict[str, Counter[tuple[float, Label]]]


@dataclass(frozen=True)
class SqlTable:
    """Rows as SQL sees them: its dialect, what it calls them, and how a query is run.

    ``keep`` puts the result of a query into a table, for a while, and gives its name.
    """

    dialect: str
    rows: str
    run: Callable[[str], Iterable[Any]]
    keep: Callable[[str], AbstractContextManager[str]] | None = None

    @property
    def sql(self) -> Dialect:
        """How it writes SQL."""
        return DIALECTS[self.dialect]

    def fetch(self, query: str) -> list[Any]:
        """Return the columns of a result: one sequence of cells each."""
        parts = [columns_of(batch)[1] for batch in self.run(query)]
        return [_joined(cells) for cells in zip(*parts, strict=True)]


@contextmanager
def kept(execute: Callable[[str], Any], query: str, kind: str = "TEMP TABLE") -> Iterator[str]:
    """Put the result of a query into a table that is there for this while."""
    name = f"tabweave_{uuid4().hex}"
    execute(f"CREATE {kind} {name} AS {query}")
    try:
        yield name
    except BaseException:
        with suppress(Exception):  # the first error is the one to show
            execute(f"DROP TABLE {name}")
        raise
    execute(f"DROP TABLE {name}")


def _joined(parts: Sequence[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if type(parts[0]).__module__.startswith("pyarrow"):
        import pyarrow as pa

        return pa.chunked_array([chunk for part in parts for chunk in part.chunks])
    return np.concatenate(parts)


@dataclass(frozen=True)
class Values:
    """The values of a column: its data, one row a value, how often each occurs, and its text."""

    column: Any
    data: Any  # Codes or Numbers
    times: np.ndarray
    keys: list[Any]


def count_there(
    sql_table: SqlTable,
    names: Sequence[str],
    y: str | None,
    schema: Schema,
    numbers: str,
    typed: Set[str],
    rules_of: Callable[[Tally], Mapping[str, Any]],
) -> Counts:
    """Return the counts of rows that stay where they are.

    ``rules_of`` says, from how often values occur, which of them fall into buckets. The columns
    that are ``typed`` are numbers by their type alone, and values if floats do not hold them.
    """
    found = {
        name: values_of(sql_table, name, schema, numbers, typed=name in typed)
        for name in names
        if name != y
    }
    valued = {name: own for name, own in found.items() if isinstance(own.data, Codes)}
    rules = rules_of({name: _tally(own) for name, own in valued.items()})
    if y is not None:
        valued[y] = _classes(sql_table, y)
    n = next((int(own.times.sum()) for own in (*valued.values(), *found.values())), 0)
    if not n:
        return Counts()
    columns = tuple(own.column for own in found.values())
    complete = replace(schema, columns=columns, complete=True)
    coded: dict[str, CodedColumn] = {}
    histograms: dict[str, Histogram] = {}
    grids: dict[str, Grid] = {}
    n_numbers = len(complete.numeric) if complete.coupled else 1
    for name, own in found.items():
        if name in valued:
            coded[name] = _coded(sql_table, name, own, rules.get(name))
        else:
            histograms[name] = Histogram.of(own.data.values, own.times)
            few = histograms[name].paired(n_numbers)
            grids[name] = few.grid
            coded[name] = _bucketed(sql_table, name, own, few)
            for cycle in cycles_of(own.column):
                phase = cycle.phase(own.data.values)
                histograms[cycle.name(name)] = Histogram.of(phase, own.times)
                coded[cycle.name(name)] = _phased(sql_table, name, own, cycle)
    if y is not None:
        coded[y] = _coded(sql_table, y, valued[y], None)
    labels = [tuple(own.labels) for own in coded.values()]
    sizes = np.array([len(own) for own in labels], np.int64)
    check_wide(len(sizes), int(sizes.sum()), 60 * int(sizes.sum()) ** 2)
    pairs = _pairs(sql_table, coded, sizes)
    levels = [valued[name].column.levels if name in valued else None for name in coded]
    vocabulary, pairs = canonical(Vocabulary(tuple(coded), tuple(labels)), pairs, levels)
    numeric = [own for own in found.values() if isinstance(own.data, Numbers)]
    exact = np.zeros((len(numeric), 3, DIGITS), np.int64)
    for i, own in enumerate(numeric):
        exact[i] = add_up(own.data.values, own.times)
    numbers_counted = NumberCounts(exact, histograms, grids)
    return Counts.from_pairs(complete, n, vocabulary, pairs, numbers_counted, y is not None)


def values_of(
    sql_table: SqlTable, name: str, schema: Schema, numbers: str, *, typed: bool = False
) -> Values:
    """Ask for the values of a column, typed, and read them as rows are read."""
    cells, keys, times = sql_table.fetch(values_query(sql_table, name)) or ([], [], [])
    if typed and is_inexact(cells):
        schema = replace(schema, columns=(Column(name, "nominal"),))
    own = replace(
        schema, columns=tuple(c for c in schema.columns if c.name == name), complete=False
    )
    table = Table.of({name: cells}, own, numbers=numbers)  # type: ignore[arg-type]
    data = table.columns[0]
    if not isinstance(data, Codes | Numbers):
        raise ValueError(
            f"column {name!r} holds sets, which cannot be counted in the database: use "
            f"engine='auto'"
        )
    texts = keys.to_pylist() if hasattr(keys, "to_pylist") else list(keys)
    return Values(table.schema.columns[0], data, np.asarray(times).astype(np.int64), texts)


def values_query(sql_table: SqlTable, name: str) -> str:
    """Return the query for the values of a column."""
    column, rows = sql_table.sql.identifier(name), sql_table.rows
    texts = f"(SELECT {column} AS v, {sql_table.sql.text_of(column)} AS k FROM {rows}) AS texts"
    return f"SELECT v, k, COUNT(*) AS n FROM {texts} GROUP BY v, k"


def _classes(sql_table: SqlTable, y: str) -> Values:
    own = values_of(sql_table, y, Schema.of({y: "nominal"}), "nominal")
    gaps = [t for c, t in zip(own.data.codes, own.times, strict=True) if own.data.labels[c] is None]
    if sum(gaps):
        raise ValueError(f"y is missing in {sum(gaps)} rows; leave them out in the query")
    return own


def _tally(own: Values) -> Counter[tuple[float, Label]]:
    out: Counter[tuple[float, Label]] = Counter()
    if own.column.levels is None:
        for code, times in zip(own.data.codes.tolist(), own.times.tolist(), strict=True):
            out[identity(own.data.labels[code])] += times
    return out


@dataclass(frozen=True)
class CodedColumn:
    """What is counted of a column: its labels, and the texts that stand for them.

    Attributes
    ----------
    labels : list
        The values.
    codes : dict
        The code of each text.
    times : ndarray
        How often each value occurs.
    key : str
        The expression for the text.
    """

    labels: list[Label]
    codes: dict[Any, int]
    times: np.ndarray
    key: str


def _coded(sql_table: SqlTable, name: str, own: Values, rule: Any) -> CodedColumn:
    """Return the labels of a column, the code of each text that stands for one, and the counts."""
    codes: dict[tuple[float, Label], int] = {}
    by_key: dict[Any, int] = {}
    times = np.zeros(len(own.times) + 1, np.int64)
    for key, code, n in zip(own.keys, own.data.codes.tolist(), own.times.tolist(), strict=True):
        if key == _OTHER:
            raise ValueError(f"column {name!r} holds {key!r}, which is reserved; use engine='auto'")
        label = own.data.labels[code]
        folded = label if rule is None else bucket(label, rule)
        found = codes.setdefault(identity(folded), len(codes))
        if by_key.setdefault(key, found) != found:
            raise ValueError(
                f"column {name!r}: {label!r} and another value are both {key!r} as text in this "
                "database; count by reading the rows: engine='auto'"
            )
        if isinstance(rule, frozenset) and folded is not label:
            by_key[_OTHER] = found
        times[found] += n
    key = _key(sql_table, name, by_key, rule)
    return CodedColumn([label for _, label in codes], by_key, times[: len(codes)], key)


def _bucketed(sql_table: SqlTable, name: str, own: Values, few: Histogram) -> CodedColumn:
    """Return a column of numbers as its buckets, which SQL finds by their edges."""
    values = own.data.values
    if len(values) <= len(few.edges) + 1 or not all(map(_is_number, own.keys[:100])):
        return _by_text(sql_table, name, own, few.edges, few.starts.tolist(), values)
    sql = sql_table.sql
    column, gone = sql.identifier(name), own.times[np.isnan(values)].sum()
    number = f"CAST({column} AS {sql.float_type})"
    nans = [k for k, x in zip(own.keys, values, strict=True) if np.isnan(x) and k is not None]
    missing = f"{column} IS NULL"
    if nans:
        missing += f" OR {sql.text_of(column)} IN ({', '.join(map(sql.text, nans))})"
    steps = " ".join(
        f"WHEN {number} < CAST('{edge!r}' AS {sql.float_type}) THEN '{i}'"
        for i, edge in enumerate(few.edges.tolist())
    )
    key = f"CASE WHEN {missing} THEN NULL {steps} ELSE '{len(few.edges)}' END"
    codes: dict[Any, int] = {str(i): i for i in range(len(few.starts))}
    labels: list[Label] = few.starts.tolist()
    if gone:
        codes[None], labels = len(labels), [*labels, None]
    times = np.append(few.times, [gone] if gone else []).astype(np.int64)
    return CodedColumn(labels, codes, times, key)


def _is_number(text: Any) -> bool:
    """Tell whether a text that stands for a value is a number: SQL then compares it to edges."""
    try:
        return text is None or isinstance(float(text), float)
    except ValueError:
        return False


def _phased(sql_table: SqlTable, name: str, own: Values, cycle: Cycle) -> CodedColumn:
    """Return a cycle of datetimes as its bins."""
    phase = cycle.phase(own.data.values)
    return _by_text(sql_table, name, own, cycle.edges, range(cycle.n_bins), phase)


def _by_text(
    sql_table: SqlTable,
    name: str,
    own: Values,
    edges: np.ndarray,
    labels: Sequence[Label],
    values: np.ndarray,
) -> CodedColumn:
    """Return numbers in bins, found by the texts of all of them."""
    return _coded(sql_table, name, replace(own, data=coded_bins(values, edges, labels)), None)


def _pairs(sql_table: SqlTable, coded: Mapping[str, CodedColumn], sizes: Any) -> Any:
    """Return the V×V pair counts, from the answers to all queries."""
    if not coded:
        return np.zeros((0, 0), np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    names = list(coded)
    diagonal = np.concatenate([own.times for own in coded.values()])
    values = np.arange(len(diagonal))
    parts = [(diagonal, values, values)]
    keyed = {name: own.key for name, own in coded.items()}
    codes = [own.codes for own in coded.values()]
    n_rows = int(next(iter(coded.values())).times.sum())
    with ExitStack() as stack:
        layout = _texts(sql_table, keyed, codes)
        if sql_table.keep is not None and sql_table.sql.position and len(names) > 2:
            layout = _numbers(sql_table, keyed, codes, n_rows, stack)
        for query in pair_queries(sql_table, layout):
            number, left, right, times = sql_table.fetch(query)
            which = np.asarray(number).astype(np.int64)
            counts = np.asarray(times).astype(np.int64)
            texts = [c.to_pylist() if hasattr(c, "to_pylist") else list(c) for c in (left, right)]
            for pair in np.unique(which).tolist():
                rows = np.flatnonzero(which == pair)
                row, col = (
                    offsets[i] + _codes_of(names[i], layout.codes[i], [own[r] for r in rows])
                    for i, own in zip(divmod(pair, len(names)), texts, strict=True)
                )
                parts += [(counts[rows], row, col), (counts[rows], col, row)]
    data, row, col = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    shape = (len(diagonal), len(diagonal))
    return sparse.coo_array((data, (row, col)), shape=shape).tocsr()


def _codes_of(name: str, codes: Mapping[Any, int], texts: Sequence[Any]) -> np.ndarray:
    try:
        return np.array([codes[text] for text in texts], np.int64)
    except KeyError as error:
        raise ValueError(
            f"column {name!r}: rows changed while they were counted; count again, or within your "
            f"own transaction"
        ) from error


@dataclass(frozen=True)
class Layout:
    """How rows are counted: groups of columns, and what stands for them.

    Attributes
    ----------
    groups : list of list of int
        The columns of each group.
    fields : list of list of str
        The fields of a row that tell the joint values of each group.
    texts : list of str
        Of each column, the text that stands for a value, from the fields of its group.
    codes : list of mapping
        Of each column, from that text to a code.
    source : callable
        From fields to what gives them for every row.
    """

    groups: list[list[int]]
    fields: list[list[str]]
    texts: list[str]
    codes: list[Mapping[Any, int]]
    source: Callable[[Sequence[str]], str]


def _texts(sql_table: SqlTable, keyed: Mapping[str, str], codes: Sequence[Any]) -> Layout:
    """Count texts, which are made from the rows in every query."""
    texts = [f"c{c}" for c in range(len(keyed))]
    keys = dict(zip(texts, keyed.values(), strict=True))

    def source(fields: Sequence[str]) -> str:
        chosen = ", ".join(f"{keys[field]} AS {field}" for field in fields)
        return f"(SELECT {chosen} FROM {sql_table.rows}) AS texts"

    groups = group_columns([len(_slots(own)) for own in codes])
    return Layout(groups, [[texts[c] for c in g] for g in groups], texts, list(codes), source)


def _numbers(
    sql_table: SqlTable,
    keyed: Mapping[str, str],
    codes: Sequence[Mapping[Any, int]],
    n_rows: int,
    stack: ExitStack,
) -> Layout:
    """Count small numbers, one for a group of columns, which a table holds for this while.

    In a group the number of the first column's value counts most, as digits do. Columns of very
    many values are groups of one, and stay text.
    """
    sql, keys, codes = sql_table.sql, list(keyed.values()), list(codes)
    slots = [_slots(own) for own in codes]
    sizes = [len(own) for own in slots]
    small = [c for c, own in enumerate(slots) if _is_numbered(sql, own)]
    most = sql.max_joint if n_rows >= _MANY_ROWS else 128
    packed = pack_columns([sizes[c] for c in small], most) if small else []
    groups = [[small[i] for i in group] for group in packed]
    columns = [_packed(sql, group, keys, slots) for group in groups]
    texts = [""] * len(keys)
    for g, group in enumerate(groups):
        below = 1
        for c in reversed(group):
            digit = f"MOD(f{g} {sql.divide} {below}, {sizes[c]})"
            texts[c], below = f"CAST({digit} AS {sql.key})", below * sizes[c]
            codes[c] = {str(i): codes[c][key] for i, key in enumerate(slots[c])}
    for c in sorted({*range(len(keys))} - {*small}):
        groups.append([c])
        columns.append(keys[c])
        texts[c] = f"f{len(groups) - 1}"
    chosen = ", ".join(f"{column} AS f{g}" for g, column in enumerate(columns))
    table = stack.enter_context(sql_table.keep(f"SELECT {chosen} FROM {sql_table.rows}"))  # type: ignore[misc]
    return Layout(groups, [[f"f{g}"] for g in range(len(groups))], texts, codes, lambda _: table)


def _slots(codes: Mapping[Any, int]) -> list[Any]:
    """Return what the numbers of a column stand for: texts, then missing, then all other texts."""
    other = codes.get(_OTHER)
    texts = [key for key, code in codes.items() if key not in (None, _OTHER) and code != other]
    return [*texts, *(key for key in (None, _OTHER) if key in codes)]


def _is_numbered(sql: Dialect, slots: Sequence[Any]) -> bool:
    """Tell whether a column's texts can be listed in a query, and are few enough."""
    return len(slots) <= sql.max_positions and not any("\0" in text for text in slots if text)


def _packed(
    sql: Dialect, group: Sequence[int], keys: Sequence[str], slots: Sequence[Sequence[Any]]
) -> str:
    """Return an expression for the joint number of a group of columns."""
    number = "0"
    for c in group:
        number = f"({number}) * {len(slots[c])} + {_number(sql, keys[c], slots[c])}"
    return f"CAST({number} AS SMALLINT)"


def _number(sql: Dialect, key: str, slots: Sequence[Any]) -> str:
    """Return an expression for the number of a value among the slots of its column.

    It is NULL for a value that was not there when values were asked for.
    """
    texts = [text for text in slots if text not in (None, _OTHER)]
    number = "NULL"
    if texts:
        number = sql.position.format(key=key, texts=", ".join(map(sql.text, texts)))
    if _OTHER in slots:
        number = f"COALESCE({number}, {slots.index(_OTHER)})"
    gap = slots.index(None) if None in slots else "NULL"
    return f"CASE WHEN {key} IS NULL THEN {gap} ELSE {number} END"


def _key(sql_table: SqlTable, name: str, codes: Mapping[Any, int], rule: Any) -> str:
    """Return the text that stands for a value; those that are not kept share one."""
    key = sql_table.sql.text_of(sql_table.sql.identifier(name))
    if not isinstance(rule, frozenset):
        return key
    other = codes[_OTHER]
    kept = [k for k, code in codes.items() if k not in (None, _OTHER) and code != other]
    listed = ", ".join(map(sql_table.sql.text, kept))
    return f"CASE WHEN {key} IS NULL OR {key} IN ({listed}) THEN {key} ELSE '{_OTHER}' END"


def pair_queries(sql_table: SqlTable, layout: Layout) -> Iterator[str]:
    """Yield queries that count each pair of columns once: number of the pair, text, text, times."""
    groups = layout.groups
    within = dict.fromkeys(range(len(groups)), True)
    for g, h in list(combinations(range(len(groups)), 2)) or [(0, 0)]:
        pairs = [] if g == h else list(product(groups[g], groups[h]))
        for own in {g, h}:
            if within.pop(own, False):
                pairs += combinations(groups[own], 2)
        if pairs:
            fields = sorted({*layout.fields[g], *layout.fields[h]})
            yield _one_query(sql_table, layout, fields, pairs)


def _one_query(
    sql_table: SqlTable, layout: Layout, fields: Sequence[str], pairs: Sequence[tuple[int, int]]
) -> str:
    """Return the query for some pairs: joint values first, in one pass, and sums of them."""
    listed, texts = ", ".join(fields), layout.texts
    asked = " UNION ALL ".join(
        f"SELECT {a * len(texts) + b} AS p, {texts[a]} AS l, {texts[b]} AS r, "
        f"CAST(SUM(n) AS BIGINT) AS n FROM joint_values GROUP BY {texts[a]}, {texts[b]}"
        for a, b in pairs
    )
    return (
        f"WITH joint_values AS {sql_table.sql.materialized}(SELECT {listed}, COUNT(*) AS n FROM "
        f"{layout.source(fields)} GROUP BY {listed}) {asked}"
    )
