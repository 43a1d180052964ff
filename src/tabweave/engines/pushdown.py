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
from tabweave.columns.frames import columns_of
from tabweave.columns.numeric import is_inexact
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
from tabweave.engines.source import BATCH_ROWS, as_list
from tabweave.io.dialects import DIALECTS, Dialect

NAME = "tabweave_source"
_OTHER = "⟨other: tabweave⟩"  # stands for all values that are not kept
ValueCounts = dict[str, Counter[tuple[float, Label]]]


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
        """The columns of a result: one sequence of cells each."""
        parts = [columns_of(batch)[1] for batch in self.run(query)]
        return [_joined(cells) for cells in zip(*parts, strict=True)]


@contextmanager
def temporary_table(
    execute: Callable[[str], Any], query: str, kind: str = "TEMP TABLE"
) -> Iterator[str]:
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


def count_by_sql(
    sql_table: SqlTable,
    names: Sequence[str],
    y: str | None,
    schema: Schema,
    numbers: str,
    typed: Set[str],
    rules_of: Callable[[ValueCounts], Mapping[str, Any]],
) -> Counts:
    """Counts of rows that stay where they are.

    ``rules_of`` says, from how often values occur, which of them fall into buckets. The columns
    that are ``typed`` are numbers by their type alone, and values if floats do not hold them.
    """
    columns = {
        name: values_of(sql_table, name, schema, numbers, typed=name in typed)
        for name in names
        if name != y
    }
    classes = {} if y is None else {y: _classes(sql_table, y)}
    categories = {name: v for name, v in columns.items() if v.column.has_values} | classes
    n = next((int(values.times.sum()) for values in (*categories.values(), *columns.values())), 0)
    if not n:
        return Counts()
    rules = rules_of({name: _tally(v) for name, v in categories.items() if name != y})
    counted = tuple(values.column for values in columns.values())
    complete = replace(schema, columns=counted, undeclared="ignored")
    coded: dict[str, CodedColumn] = {}
    histograms: dict[str, Histogram] = {}
    grids: dict[str, Grid] = {}
    n_numbers = len(complete.bucketed) if complete.coupled else 1
    for name, values in (columns | classes).items():
        if name in categories:
            coded[name] = _coded(sql_table, name, values, rules.get(name))
            continue
        for part, bins in values.column.parts.items():
            x = values.data.numbers(part)
            histograms[part] = Histogram.of(x, values.times)
            edges = None if bins is None else bins.edges
            if edges is None:
                paired = histograms[part].paired(n_numbers)
                grids[part] = paired.grid
                coded[part] = _bucketed(sql_table, name, values, paired)
            else:
                codes = coded_bins(x, edges, range(len(edges) + 1))
                coded[part] = _coded(sql_table, name, replace(values, data=codes), None)
    vocabulary, pairs = _counted_pairs(sql_table, coded, categories)
    numeric = [values for values in columns.values() if values.column.is_continuous]
    exact = [add_up(values.data.values, values.times) for values in numeric]
    moments = np.array(exact, np.int64).reshape(-1, 3, DIGITS)
    numbers_counted = NumberCounts(moments, histograms, grids)
    return Counts.from_pairs(complete, n, vocabulary, pairs, numbers_counted, y is not None)


def _counted_pairs(
    sql_table: SqlTable, coded: Mapping[str, CodedColumn], categories: Mapping[str, Values]
) -> tuple[Vocabulary, Any]:
    """The values of all columns in their canonical order, and how often each pair occurs."""
    labels = [tuple(column.labels) for column in coded.values()]
    sizes = np.array([len(values) for values in labels], np.int64)
    check_wide(len(sizes), int(sizes.sum()), 60 * int(sizes.sum()) ** 2)
    pairs = _pairs(sql_table, coded, sizes)
    levels = [categories[name].column.levels if name in categories else None for name in coded]
    return canonical(Vocabulary(tuple(coded), tuple(labels)), pairs, levels)


def values_of(
    sql_table: SqlTable, name: str, schema: Schema, numbers: str, *, typed: bool = False
) -> Values:
    """Ask for the values of a column, typed, and read them as rows are read."""
    cells, keys, times = sql_table.fetch(values_query(sql_table, name)) or ([], [], [])
    if typed and is_inexact(cells):
        schema = replace(schema, columns=(Column(name, "nominal"),))
    declared = tuple(column for column in schema.columns if column.name == name)
    schema = replace(schema, columns=declared, undeclared="inferred")
    table = Table.of({name: cells}, schema, numbers=numbers)  # type: ignore[arg-type]
    data = table.columns[0]
    if table.schema.columns[0].is_set:
        raise ValueError(
            f"column {name!r} holds sets, which cannot be counted in the database: use "
            f"engine='auto'"
        )
    times = np.asarray(times).astype(np.int64)
    return Values(table.schema.columns[0], data, times, as_list(keys))


def values_query(sql_table: SqlTable, name: str) -> str:
    """The query for the values of a column."""
    column, rows = sql_table.sql.identifier(name), sql_table.rows
    texts = f"(SELECT {column} AS v, {sql_table.sql.text_of(column)} AS k FROM {rows}) AS texts"
    return f"SELECT v, k, COUNT(*) AS n FROM {texts} GROUP BY v, k"


def _classes(sql_table: SqlTable, y: str) -> Values:
    classes = values_of(sql_table, y, Schema.of({y: "nominal"}), "nominal")
    is_missing = np.array([label is None for label in classes.data.labels], bool)
    if n_missing := int(classes.times[is_missing[classes.data.codes]].sum()):
        raise ValueError(f"y is missing in {n_missing} rows; leave them out in the query")
    return classes


def _tally(values: Values) -> Counter[tuple[float, Label]]:
    """How often each value occurs; of declared levels nothing, as all of them stay."""
    tally: Counter[tuple[float, Label]] = Counter()
    if values.column.levels is None:
        for code, times in zip(values.data.codes.tolist(), values.times.tolist(), strict=True):
            tally[identity(values.data.labels[code])] += times
    return tally


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


def _coded(sql_table: SqlTable, name: str, values: Values, rule: Any) -> CodedColumn:
    """The labels of a column, the code of each text that stands for one, and the counts."""
    codes: dict[tuple[float, Label], int] = {}
    by_text: dict[Any, int] = {}
    times = np.zeros(len(values.times) + 1, np.int64)
    cells = zip(values.keys, values.data.codes.tolist(), values.times.tolist(), strict=True)
    for text, value, n in cells:
        if text == _OTHER:
            raise ValueError(
                f"column {name!r} holds {text!r}, which is reserved; use engine='auto'"
            )
        label = values.data.labels[value]
        folded = label if rule is None else bucket(label, rule)
        code = codes.setdefault(identity(folded), len(codes))
        if by_text.setdefault(text, code) != code:
            raise ValueError(
                f"column {name!r}: {label!r} and another value are both {text!r} as text in this "
                "database; count by reading the rows: engine='auto'"
            )
        if isinstance(rule, frozenset) and folded is not label:
            by_text[_OTHER] = code
        times[code] += n
    key = _key(sql_table, name, by_text, rule)
    return CodedColumn([label for _, label in codes], by_text, times[: len(codes)], key)


def _bucketed(sql_table: SqlTable, name: str, values: Values, paired: Histogram) -> CodedColumn:
    """A column of numbers as its buckets, which SQL finds by their edges."""
    numbers, starts, edges = values.data.values, paired.starts.tolist(), paired.edges.tolist()
    if len(numbers) <= len(edges) + 1 or not all(map(_is_number, values.keys[:100])):
        bins = coded_bins(numbers, paired.edges, starts)
        return _coded(sql_table, name, replace(values, data=bins), None)
    sql = sql_table.sql
    column = sql.identifier(name)
    number = f"CAST({column} AS {sql.float_type})"
    is_missing = np.isnan(numbers)
    nans = [values.keys[i] for i in np.flatnonzero(is_missing) if values.keys[i] is not None]
    missing = f"{column} IS NULL"
    if nans:
        missing += f" OR {sql.text_of(column)} IN ({', '.join(map(sql.text, nans))})"
    steps = " ".join(
        f"WHEN {number} < CAST('{edge!r}' AS {sql.float_type}) THEN '{i}'"
        for i, edge in enumerate(edges)
    )
    key = f"CASE WHEN {missing} THEN NULL {steps} ELSE '{len(edges)}' END"
    codes: dict[Any, int] = {str(i): i for i in range(len(starts))}
    labels, times = starts, paired.times.astype(np.int64)
    if n_missing := values.times[is_missing].sum():
        codes[None], labels, times = len(starts), [*starts, None], np.append(times, n_missing)
    return CodedColumn(labels, codes, times, key)


def _is_number(text: Any) -> bool:
    """Whether a text that stands for a value is a number: SQL then compares it to edges."""
    try:
        return text is None or isinstance(float(text), float)
    except ValueError:
        return False


def _pairs(sql_table: SqlTable, coded: Mapping[str, CodedColumn], sizes: Any) -> Any:
    """The V×V pair counts, from the answers to all queries."""
    if not coded:
        return np.zeros((0, 0), np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    names, columns = list(coded), list(coded.values())
    diagonal = np.concatenate([column.times for column in columns])
    values = np.arange(len(diagonal))
    parts = [(diagonal, values, values)]
    with ExitStack() as stack:
        plan = _count_texts(sql_table, columns)
        if sql_table.keep is not None and sql_table.sql.position and len(names) > 2:
            plan = _count_numbers(sql_table, columns, stack)
        for query in pair_queries(sql_table, plan):
            number, left, right, times = sql_table.fetch(query)
            pair_of_row = np.asarray(number).astype(np.int64)
            counts = np.asarray(times).astype(np.int64)
            texts = as_list(left), as_list(right)
            for pair in np.unique(pair_of_row).tolist():
                rows = np.flatnonzero(pair_of_row == pair)
                row, col = (
                    offsets[i] + _codes_of(names[i], plan.codes[i], [cells[r] for r in rows])
                    for i, cells in zip(divmod(pair, len(names)), texts, strict=True)
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
class PairPlan:
    """How pairs are counted: groups of columns, and what stands for their values.

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


def _count_texts(sql_table: SqlTable, columns: Sequence[CodedColumn]) -> PairPlan:
    """Count texts, which are made from the rows in every query."""
    keys = {f"c{c}": column.key for c, column in enumerate(columns)}
    texts, codes = list(keys), [column.codes for column in columns]

    def source(fields: Sequence[str]) -> str:
        selected = ", ".join(f"{keys[field]} AS {field}" for field in fields)
        return f"(SELECT {selected} FROM {sql_table.rows}) AS texts"

    groups = group_columns([len(_slots(column)) for column in codes])
    return PairPlan(groups, [[texts[c] for c in g] for g in groups], texts, list(codes), source)


def _count_numbers(
    sql_table: SqlTable, columns: Sequence[CodedColumn], stack: ExitStack
) -> PairPlan:
    """Count small numbers, one for a group of columns, which a table holds for this while.

    In a group the number of the first column's value counts most, as digits do. Columns of very
    many values are groups of one, and stay text.
    """
    sql, keys = sql_table.sql, [column.key for column in columns]
    codes: list[Mapping[Any, int]] = [column.codes for column in columns]
    slots = [_slots(column) for column in codes]
    sizes = [len(column) for column in slots]
    small = [c for c, column in enumerate(slots) if _is_numbered(sql, column)]
    # A pass over many rows takes longer than to sum tens of thousands of joint values.
    has_many_rows = columns[0].times.sum() >= BATCH_ROWS
    max_joint = sql.max_joint if has_many_rows else 128
    packed = pack_columns([sizes[c] for c in small], max_joint) if small else []
    groups = [[small[i] for i in group] for group in packed]
    expressions = [_packed(sql, group, keys, slots) for group in groups]
    texts = [""] * len(keys)
    for g, group in enumerate(groups):
        below = 1
        for c in reversed(group):
            digit = f"MOD(f{g} {sql.divide} {below}, {sizes[c]})"
            texts[c], below = f"CAST({digit} AS {sql.key})", below * sizes[c]
            codes[c] = {str(i): codes[c][key] for i, key in enumerate(slots[c])}
    for c in sorted({*range(len(keys))} - {*small}):
        groups.append([c])
        expressions.append(keys[c])
        texts[c] = f"f{len(groups) - 1}"
    fields = ", ".join(f"{expression} AS f{g}" for g, expression in enumerate(expressions))
    table = stack.enter_context(sql_table.keep(f"SELECT {fields} FROM {sql_table.rows}"))  # type: ignore[misc]
    return PairPlan(groups, [[f"f{g}"] for g in range(len(groups))], texts, codes, lambda _: table)


def _slots(codes: Mapping[Any, int]) -> list[Any]:
    """What the numbers of a column stand for: texts, then missing, then all other texts."""
    other = codes.get(_OTHER)
    texts = [key for key, code in codes.items() if key not in (None, _OTHER) and code != other]
    return [*texts, *(key for key in (None, _OTHER) if key in codes)]


def _is_numbered(sql: Dialect, slots: Sequence[Any]) -> bool:
    """Whether a column's texts can be listed in a query, and are few enough."""
    return len(slots) <= sql.max_positions and not any("\0" in text for text in slots if text)


def _packed(
    sql: Dialect, group: Sequence[int], keys: Sequence[str], slots: Sequence[Sequence[Any]]
) -> str:
    """An expression for the joint number of a group of columns."""
    number = "0"
    for c in group:
        number = f"({number}) * {len(slots[c])} + {_number(sql, keys[c], slots[c])}"
    return f"CAST({number} AS SMALLINT)"


def _number(sql: Dialect, key: str, slots: Sequence[Any]) -> str:
    """An expression for the number of a value among the slots of its column.

    It is NULL for a value that was not there when values were asked for.
    """
    texts = [text for text in slots if text not in (None, _OTHER)]
    number = "NULL"
    if texts:
        number = sql.position.format(key=key, texts=", ".join(map(sql.text, texts)))
    if _OTHER in slots:
        number = f"COALESCE({number}, {slots.index(_OTHER)})"
    missing = slots.index(None) if None in slots else "NULL"
    return f"CASE WHEN {key} IS NULL THEN {missing} ELSE {number} END"


def _key(sql_table: SqlTable, name: str, codes: Mapping[Any, int], rule: Any) -> str:
    """The text that stands for a value; those that are not kept share one."""
    key = sql_table.sql.text_of(sql_table.sql.identifier(name))
    if not isinstance(rule, frozenset):
        return key
    texts = [text for text in _slots(codes) if text not in (None, _OTHER)]
    listed = ", ".join(map(sql_table.sql.text, texts))
    return f"CASE WHEN {key} IS NULL OR {key} IN ({listed}) THEN {key} ELSE '{_OTHER}' END"


def pair_queries(sql_table: SqlTable, plan: PairPlan) -> Iterator[str]:
    """Queries that count each pair of columns once: number of the pair, text, text, times."""
    groups = plan.groups
    uncounted = {*range(len(groups))}  # groups whose own pairs are still to be counted
    for g, h in list(combinations(range(len(groups)), 2)) or [(0, 0)]:
        pairs = [] if g == h else list(product(groups[g], groups[h]))
        for group in {g, h} & uncounted:
            pairs += combinations(groups[group], 2)
        uncounted -= {g, h}
        if pairs:
            fields = sorted({*plan.fields[g], *plan.fields[h]})
            yield _one_query(sql_table, plan, fields, pairs)


def _one_query(
    sql_table: SqlTable, plan: PairPlan, fields: Sequence[str], pairs: Sequence[tuple[int, int]]
) -> str:
    """The query for some pairs: joint values first, in one pass, and sums of them."""
    listed, texts = ", ".join(fields), plan.texts
    sums = " UNION ALL ".join(
        f"SELECT {a * len(texts) + b} AS p, {texts[a]} AS l, {texts[b]} AS r, "
        f"CAST(SUM(n) AS BIGINT) AS n FROM joint_values GROUP BY {texts[a]}, {texts[b]}"
        for a, b in pairs
    )
    return (
        f"WITH joint_values AS {sql_table.sql.materialized}(SELECT {listed}, COUNT(*) AS n FROM "
        f"{plan.source(fields)} GROUP BY {listed}) {sums}"
    )
