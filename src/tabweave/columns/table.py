"""Table: rows of any library in, small integer codes out.

The first room of the house. Whatever a user has (pandas, polars, pyarrow, NumPy, dicts of columns,
lists of dicts) becomes a :class:`Table`: per column the codes of its values, its numbers or its
sets, under a :class:`Schema` that says what each column is. Nothing is learned here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tabweave._compat import html_table, in_threads, row_slabs, warn_caller
from tabweave.columns.cells import Cells, kind_of, named_error
from tabweave.columns.column import Column, Origin, Schema, check_distinct
from tabweave.columns.datetime import (
    Datetimes,
    datetimes,
    farthest_date,
    readable_cells,
    unreadable_cells,
)
from tabweave.columns.decision import (
    MIN_ROWS_TO_INFER,
    NO_AMOUNT,
    Decision,
    Finding,
    Rules,
    is_index,
)
from tabweave.columns.frames import (
    CLOCK_TIMES,
    DATETIMES,
    TIME_SPANS,
    categories,
    columns_of,
    holds_records,
    infer_kind,
    is_declared_categorical,
    is_missing,
    is_ordered,
    named_columns,
    objects,
    times_held,
)
from tabweave.columns.kinds import Kinds, decide_kind
from tabweave.columns.nominal import Codes, near_duplicates, spelling_note
from tabweave.columns.numeric import (
    Numbers,
    code_for_missing,
    has_thousands,
    is_inexact,
)
from tabweave.columns.ordinal import warn_of_alphabetical
from tabweave.columns.sets import Sets, sets
from tabweave.columns.texts import MISSING_WORDS, CellError, cells_in_words
from tabweave.columns.vocabulary import BLOCK_CODES, slices
from tabweave.io.register import storable


@storable
@dataclass(frozen=True, eq=False)
class Table:
    """A table that was read: a code for each category, numbers, and sets.

    Build one with :meth:`Table.of`; :meth:`kinds` says how each column was read, and why. Codes
    refer to the table's own labels, which need not be sorted and may include values that no row
    has; :class:`~tabweave.Counts` makes them canonical.

    Attributes
    ----------
    schema : Schema
        How each column was read.
    columns : tuple of Codes, Numbers or Sets
        The columns, in the order of the schema; ``table["name"]`` is one of them.
    n_rows : int
        Number of rows.

    Examples
    --------
    >>> from tabweave import Table
    >>> table = Table.of({"color": ["red", "blue", "red"], "weight": [1.5, 2.0, None]})
    >>> table.schema.columns[1].kind
    'numeric'
    >>> table["color"].codes.dtype
    dtype('uint8')
    """

    schema: Schema
    columns: tuple[Any, ...]
    n_rows: int

    @classmethod
    def of(
        cls,
        X: Any,
        schema: Schema | Mapping[Any, Any] | str | None = None,
        *,
        numbers: Literal["numeric", "nominal"] = "numeric",
        rules: Rules | None = None,
        n_rows: int | None = None,
    ) -> Table:
        """Read rows.

        Parameters
        ----------
        X : frame, array, mapping of columns, list of dicts, or Table
            The rows.
        schema : Schema, mapping of column to kind, or kind, optional
            Kinds of some or all columns; ``"nominal"`` reads all as categories. A complete schema
            (that of another table) is matched by name: other columns are ignored, a missing one is
            an error (a key that records lack is a missing cell).
        numbers : {"numeric", "nominal"}, default="numeric"
            What an undeclared column of numbers or datetimes is.
        rules : {"whole", "sample", "first", "texts", "all"}, optional
            Whether to look at the values of undeclared columns, too, and to drop identifiers:
            :mod:`tabweave.columns.kinds` has the rules, :meth:`kinds` says what they found. "first"
            are the first rows of a stream, from which less follows, "sample" some of ``n_rows``
            rows; "texts" drops only text, "all" nothing.
        n_rows : int, optional
            How many rows there are in all.
        """
        schema = Schema.of(schema)
        if isinstance(X, Table):
            return _conforming(X, schema)
        names, cells, n_here = columns_of(X, strict=rules is None and not schema.complete)
        named = names is not None
        if names is None:
            names = [f"x{i}" for i in range(len(cells))]
        check_distinct(names)
        by_name = dict(zip(names, cells, strict=True))
        if holds_records(X):
            by_name = _with_optional_keys(by_name, schema, n_here)
        if schema.complete:
            by_name = _matched(by_name, schema, named)
            columns = tuple(_column(by_name[c.name], c, schema) for c in schema.columns)
            return cls(schema, columns, n_here)
        open_columns = [name for name in by_name if not schema.declares(name)]
        completed = _completed(by_name, schema, numbers, named, rules)
        leave_out = () if rules is None else open_columns
        table = _readable_columns(by_name, completed, n_here, leave_out)
        warn_of_alphabetical(table)
        if rules is None:
            return table
        return _apply_rules(table, by_name, open_columns, rules, n_rows or n_here)

    def kinds(self) -> Kinds:
        """What each column is, why, and whether it is dropped.

        Of a table that was read by its types alone, this is what the rules of
        :mod:`tabweave.columns.kinds` make of it where any table may come: in
        :class:`~tabweave.Weave`, reports and the command line.
        """
        findings = [_finding(column, data, self.n_rows) for column, data in self]
        for column in self.schema.dropped:
            position = min(column.position or 0, len(findings))
            findings.insert(position, column.finding(kept=False))
        return Kinds(findings)

    def select(self, columns: Sequence[str]) -> Table:
        """The table of some columns, in the order given."""
        parts = tuple(self[name] for name in columns)
        return Table(self.schema.select(columns), parts, self.n_rows)

    def _check_loaded(self) -> None:
        for column, data in self:
            if not isinstance(data, column.cells_type) or len(data) != self.n_rows:
                raise ValueError(
                    f"column {column.name!r}: expected {self.n_rows} {column.kind} cells, got "
                    f"{len(data)} as {type(data).__name__}"
                )

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: str) -> Any:
        return self.columns[self.schema.index(name)]

    def __iter__(self) -> Iterator[tuple[Column, Any]]:
        return iter(zip(self.schema.columns, self.columns, strict=True))

    def __repr__(self) -> str:
        kinds = ", ".join(f"{c.name}: {c.kind}" for c in self.schema.columns[:8])
        more = ", ..." if len(self.schema) > 8 else ""
        return f"Table({self.n_rows} rows; {kinds}{more})"

    def _repr_html_(self) -> str:
        first_rows = take_rows(self, np.arange(min(self.n_rows, 6)))
        names = self.schema.names[:20]
        rows = range(first_rows.n_rows)
        cells = [[shown_cell(first_rows[name], row) for name in names] for row in rows]
        kinds = [self.schema[name].kind for name in names]
        more = "" if len(names) == len(self.schema) else f", {len(names)} of them shown"
        caption = f"{self.n_rows:,} rows, {len(self.schema):,} columns{more}"
        return html_table(caption, names, [kinds, *cells])


def shown_cell(data: Cells, row: int) -> Any:
    """A cell as a notebook shows it."""
    cell = data.cell(row)
    return ", ".join(map(str, cell)) if isinstance(cell, list) else cell


def _finding(column: Column, data: Any, n_rows: int) -> Finding:
    """What a column is, as the rules see it unless it was declared or inferred before."""
    if n_rows >= MIN_ROWS_TO_INFER and data.is_constant():
        return Finding(column.name, column.kind, "constant", column.why == "declared")
    decided = column.inferred or column.why in _DECIDED
    data = _sampled(data, sampled_rows(n_rows))
    if column.why in (DATETIMES, CLOCK_TIMES):
        return Finding(column.name, "datetime", column.why)
    decision = None if decided else decide_kind(column.name, data, n_rows, "whole")
    if decision is None:
        labels = data.labels if isinstance(data, Codes | Sets) else []
        if spelled := spelling_note(column, labels):
            return column.finding()._replace(why=spelled)
        if column.why == "values":
            column = _with_near_duplicates(column, labels)
        return column.finding()
    return _with_decision(column, decision).finding(kept=not decision.dropped)


def _readable_columns(
    by_name: Mapping[str, Any], schema: Schema, n_rows: int, leave_out: Sequence[str]
) -> Table:
    """A table of the columns that can be read, those of ``leave_out`` dropped if not.

    They hold lists of records, nested lists or other objects; a warning names each.
    """

    def read(column: Column) -> Cells | None:
        try:
            return column.cells_type.read(by_name[column.name], column, schema)
        except Exception:  # it is read again below, where errors and warnings are told
            return None

    readable, parts, dropped = [], [], []
    for position, cells in enumerate(in_threads(read, schema.columns)):
        column = schema.columns[position]
        try:
            if cells is None:
                cells = _column(by_name[column.name], column, schema)
            parts.append(cells)
            if schema.missing_words and column.kind in ("nominal", "ordinal", "set"):
                column = _with_words(column, by_name[column.name], schema)
            readable.append(column)
        except TypeError as error:
            only = position == len(schema) - 1 and not readable
            if column.name not in leave_out or only:
                raise
            dropped.append(replace(column, origin=Origin(UNREADABLE, True, position)))
            warn_caller(f"{_shortened(error)}; the column is dropped")
    return Table(
        replace(schema, columns=tuple(readable), dropped=tuple(dropped)), tuple(parts), n_rows
    )


UNREADABLE = "holds what is neither a category, a number nor a set of them"


def _shortened(error: Exception) -> str:
    """The message of an error, a long cell cut."""
    cell = repr(getattr(error, "cell", ""))
    return str(error) if len(cell) < 80 else str(error).replace(cell, f"{cell[:76]} ...")


def _apply_rules(
    table: Table, by_name: Mapping[str, Any], undeclared: Sequence[str], rules: Rules, n_rows: int
) -> Table:
    """A table whose columns are what the rules say, identifiers dropped."""
    remaining, parts, dropped = [], [], list(table.schema.dropped)
    to_infer = frozenset(undeclared)
    sample = sampled_rows(table.n_rows)

    def decided(named: tuple[Column, Cells]) -> Decision | None:
        column, data = named
        is_plain = column.name not in to_infer or _is_plain(column, data, by_name[column.name])
        return None if is_plain else decide_kind(column.name, _sampled(data, sample), n_rows, rules)

    of_columns = zip(table.schema.names, in_threads(decided, list(table)), strict=True)
    decisions = _with_commas(table, dict(of_columns))
    names = table.schema.given
    for column, data in table:
        decision = decisions.get(column.name)
        if decision is not None and decision.dropped and _stays(decision, rules):
            decision = None
        elif column.name in to_infer:
            if column.origin.why == "values" and isinstance(data, Codes):
                column = _with_near_duplicates(column, data.labels)
            column = replace(column, origin=column.origin._replace(inferred=True))
            if rules == "whole" and table.n_rows >= MIN_ROWS_TO_INFER and data.is_constant():
                decision = Decision(column.kind, "constant", dropped=True, format=column.decimal)
        if decision is not None and decision.dropped:
            dropped.append(_with_decision(column, decision, names.index(column.name)))
            continue
        if decision is not None:
            cells = by_name[column.name]
            column, data = _as_decided(column, data, decision, cells, table.schema)
        remaining.append(column)
        parts.append(data)
    if not remaining and all(column.why == "constant" for column in dropped):
        return table  # there is nothing to tell, and nothing else
    if not remaining:
        raise ValueError(_nothing_kept(dropped))
    dropped.sort(key=lambda column: column.position or 0)
    schema = replace(table.schema, columns=tuple(remaining), dropped=tuple(dropped))
    return Table(schema, tuple(parts), table.n_rows)


def _as_decided(
    column: Column, data: Any, decision: Decision, cells: Any, schema: Schema
) -> tuple[Column, Any]:
    """The column and its cells as the rules say; as they were if one of many is no date or list."""
    try:
        column, data = _read_as_decided(_with_decision(column, decision), cells, schema)
    except (TypeError, ValueError) as error:
        content = {"set": "lists"}.get(decision.kind, "dates")
        why = f"{content}, but for one: {error}"
        column = replace(column, origin=Origin(why, inferred=True, question="exceptions"))
    if column.question == "exceptions":
        _warn_of_exceptions(column)
    return column, data


def _warn_of_exceptions(column: Column) -> None:
    """Warn of the few values that keep a column from being read, or that are read as missing."""
    if column.origin.unreadable:
        declared = f"schema={{{column.name!r}: 'nominal'}}"
        remedy = f"mend them, leave them empty, or keep all values by {declared}"
    else:
        read_as = "categories" if column.kind == "nominal" else "numbers"
        remedy = f"it is read as {read_as}: mend these values, or leave them empty"
    warn_caller(f"column {column.name!r} holds {column.why}; {remedy}")


def _with_decision(column: Column, decision: Decision, position: int | None = None) -> Column:
    """A column that is what the rules say, and where it was if it is dropped."""
    kind, why, _, format, levels, question, delimiter, unreadable = decision
    origin = Origin(why, True, position, question, delimiter, unreadable)
    mark = delimiter if kind_of(kind).is_set and delimiter else None  # else it is only named
    return replace(column, kind=kind, format=format, levels=levels, delimiter=mark, origin=origin)


def _nothing_kept(dropped: Sequence[Column]) -> str:
    """What was dropped, and how to keep the column most worth it."""
    named = ", ".join(f"{column.name!r} ({column.why})" for column in dropped)
    keep = max(dropped, key=lambda column: column.kind == "nominal" and not is_index(column.name))
    return (
        f"every column would be dropped: {named}; declare what to keep, as in "
        f"schema={{{keep.name!r}: {keep.kind!r}}}"
    )


def _with_near_duplicates(column: Column, labels: Sequence[Any]) -> Column:
    """A column that says whether some of its plain values are written alike."""
    remark, question = near_duplicates(labels)
    origin = column.origin._replace(why=column.origin.why + remark, question=question)
    return replace(column, origin=origin)


def _with_commas(
    table: Table, decisions: Mapping[str, Decision | None]
) -> Mapping[str, Decision | None]:
    """The decisions for a table in which, if one column has decimal commas, the others do, too.

    Points then separate thousands wherever all of a column's may.
    """
    if not any(
        v is not None and v.kind == "numeric" and v.format == "," for v in decisions.values()
    ):
        return decisions
    out = dict(decisions)
    for name, decision in decisions.items():
        data = table[name]
        if decision is not None and decision.format == "." and isinstance(data, Codes):
            out[name] = decision._replace(format="," if has_thousands(data.labels) else ".")
    return out


def _stays(decision: Decision, rules: Rules) -> bool:
    """Whether a column that tells rows apart is kept: numbers of rows may tell of time."""
    return rules == "all" or (rules == "texts" and decision.kind == "numeric")


def _sampled(data: Cells, rows: np.ndarray | None) -> Cells:
    return data if rows is None else data.take(rows)


def _read_as_decided(column: Column, cells: Any, schema: Schema) -> tuple[Column, Any]:
    """Read a column as the rules say; raise if one of its dates does not exist."""
    if column.kind != "datetime":
        return column, _column(cells, column, schema)
    try:
        seconds, zone = datetimes(cells, None, first=True, order=column.date_order)
    except CellError:
        of_days = column.date_order == "ymd"
        if not unreadable_cells(*categories(cells), of_days=of_days):
            raise
        column = _with_unreadable(column, cells)
        cells = readable_cells(cells, column)
        seconds, zone = datetimes(cells, None, first=True, order=column.date_order)
    return replace(column, format=column.date_order or zone), Datetimes.checked(seconds, schema)


INEXACT = "whole numbers that floats do not hold"

_DECIDED = ("declared", "categories", "ordered categories", TIME_SPANS)

_WORD = re.compile(r"[^\W\d_]\D*").fullmatch  # dates and money have digits, Jan 5, 2020 too

_LIST = re.compile(r"[;|,]|\A\s*[\[({]").search


def _is_plain(column: Column, data: Any, cells: Any) -> bool:
    """Whether a column is plainly what its type says, so that no rule need be asked."""
    n_first = 1000
    if isinstance(data, Sets):
        return not any(isinstance(label, float) for label in data.labels[:n_first])
    if column.kind in ("ordinal", "datetime") or column.origin.why == TIME_SPANS:
        return True
    if column.name.startswith("__index"):
        return False
    if isinstance(data, Numbers):
        seen = data.values[:n_first]
        x = np.unique(seen)
        few = 2 < len(x) < len(seen)
        fractions = (x % 1 != 0) & ~np.isnan(x)
        amounts = few and x[-1] < 100 and not NO_AMOUNT.search(column.name)
        return bool(fractions.any() or amounts) and code_for_missing(data.values) is None
    if is_declared_categorical(cells):
        return True
    labels = data.labels[:n_first]
    repeats = len(data.labels) < max(0.5 * len(data.codes), MIN_ROWS_TO_INFER)
    words = [label for label in labels if isinstance(label, str)]
    if not repeats or 2 * sum(_LIST(word) is not None for word in words) >= max(len(words), 1):
        return False
    n_plain = sum(_WORD(w) is not None and w.strip().lower() not in MISSING_WORDS for w in words)
    return 4 * n_plain > len(labels)  # one or two words may stand among ranges or numbers


def _conforming(table: Table, schema: Schema) -> Table:
    """A table that was read before, if it was read as a schema now says."""
    for column in schema.columns:
        if column.name not in table.schema.names:
            raise ValueError(
                f"column {column.name!r} is missing; the columns are "
                f"{', '.join(map(repr, table.schema.names))}"
            )
        other = table.schema[column.name]
        if other.kind != column.kind and other.cells_type.holds != column.cells_type.holds:
            raise ValueError(
                f"column {column.name!r}: expected {column.kind}, got {other.kind}; give the "
                "schema to Table.of"
            )
    return table


def _matched(by_name: dict[str, Any], schema: Schema, named: bool) -> dict[str, Any]:
    """The columns of a complete schema: by name if both have names, else by position."""
    if named and schema.named:
        if not all(name in by_name for name in schema.names):
            by_name = _with_fields(by_name, schema)
        absent = [name for name in schema.names if name not in by_name]
        if absent:
            raise ValueError(
                f"column {absent[0]!r} is missing ({len(absent)} of {len(schema)} are); the "
                f"columns are {', '.join(map(repr, by_name))}"
            )
        return by_name
    names = schema.given
    if len(by_name) == len(names):
        return dict(zip(names, by_name.values(), strict=True))
    if len(by_name) != len(schema):
        raise ValueError(
            f"X has {len(by_name)} features, but tabweave is expecting {len(schema)} features "
            "as input"
        )
    return dict(zip(schema.names, by_name.values(), strict=True))


def _with_optional_keys(by_name: dict[str, Any], schema: Schema, n_rows: int) -> dict[str, Any]:
    """Columns of records with those of keys that no record has: they are missing."""
    if schema.complete and not any(name in schema for name in by_name):
        return by_name
    absent = [name for name in schema.names if name not in by_name]
    return by_name | dict.fromkeys(absent, np.full(n_rows, None))


def check_keys(X: Any, schema: Schema) -> None:
    """Raise for a key of records that are to be learned from which those before them lacked."""
    if not holds_records(X) or not schema.named:
        return
    fitted_names = set(schema.given)
    for name in named_columns(X)[0]:
        if name not in fitted_names:
            raise ValueError(
                f"column {name!r} is new: no record so far has this key; declare it before the "
                f"first ones, as in schema={{{name!r}: 'nominal'}}, or leave it out"
            )


def _with_fields(by_name: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Columns with the fields of records of which none is there: they are missing, too."""
    out = dict(by_name)
    for name, cells in by_name.items():
        fields = schema.fields(name)
        if fields != [name] and all(map(is_missing, objects(cells).tolist())):
            out |= dict.fromkeys(fields, np.full(len(cells), None))
    return out


def _completed(
    by_name: dict[str, Any], schema: Schema, numbers: str, named: bool, rules: Rules | None
) -> Schema:
    """Infer the columns that a schema leaves open."""
    for name in schema.names:
        if name not in by_name:
            raise ValueError(
                f"schema: column not found: {name!r}; the columns are "
                f"{', '.join(map(repr, by_name))}"
            )
    declared = {column.name: column for column in schema.over(by_name).columns}
    columns = []
    for name, cells in by_name.items():
        column = declared.get(name)
        if column is None:
            column = _undeclared(name, cells, numbers, rules)
        column = column.cells_type.completed(column, cells)
        if name in declared and not column.inferred:
            column = replace(column, origin=Origin("declared"))
        columns.append(column)
    return replace(schema, columns=tuple(columns), undeclared="ignored", named=named)


def _undeclared(name: str, cells: Any, numbers: str, rules: Rules | None) -> Column:
    """A column that is what the type of its cells says."""
    kind: Any = infer_kind(cells)
    why = _in_words(kind, cells)
    if why == "numbers" and is_inexact(cells):
        kind, why = "nominal", INEXACT
    if rules is not None and why in (DATETIMES, CLOCK_TIMES):
        kind = "datetime"
    return Column(name, numbers if kind == "numeric" else kind, origin=Origin(why))


UNORDERED = "categories whose order differs from part to part: declare their levels"


def _in_words(kind: str, cells: Any) -> str:
    """What the type of a column says, in words."""
    if is_declared_categorical(cells):
        if kind != "ordinal" and is_ordered(cells):
            return UNORDERED
        return "ordered categories" if kind == "ordinal" else "categories"
    held = times_held(cells) if kind in ("numeric", "nominal") else ""
    if held in (DATETIMES, CLOCK_TIMES) or (held and kind == "numeric"):
        return held
    return {"nominal": "values", "numeric": "numbers", "set": "lists"}.get(kind, kind)


def _column(cells: Any, column: Column, schema: Schema) -> Cells:
    """One column read as its kind says; an error says which column it was."""
    read = column.cells_type.read
    try:
        try:
            return read(cells, column, schema)
        except CellError:
            if not (column.inferred and column.is_continuous):
                raise
            return read(readable_cells(cells, column), column, schema)
    except (TypeError, ValueError) as error:
        raise named_error(error, column) from error
    except OverflowError as error:
        raise ValueError(
            f"column {column.name!r}: expected dates of the years 1 to 9999 as values, got "
            f"{farthest_date(cells)}; mend it, or declare the column as kind 'datetime'"
        ) from error


def _with_words(column: Column, cells: Any, schema: Schema) -> Column:
    """A column of values or sets that says which words of a schema were read as missing."""
    is_set = column.kind == "set"
    codes, labels = sets(cells, column.delimiter)[1:] if is_set else categories(cells)
    counts = np.bincount(codes, minlength=len(labels)).tolist()
    pairs = [(v, n) for v, n in zip(labels, counts, strict=True) if v in schema.missing_words and n]
    if not pairs:
        return column
    words = tuple(sorted(((str(v), n) for v, n in pairs), key=lambda pair: (-pair[1], pair[0])))
    why = f"{column.why}, except {cells_in_words(words)}, read as missing"
    return replace(column, origin=column.origin._replace(why=why, unreadable=words))


def _with_unreadable(column: Column, cells: Any) -> Column:
    """A column that lists all values that are read as missing, also those not sampled."""
    of_days = column.date_order == "ymd"
    unreadable = tuple(unreadable_cells(*categories(cells), of_days=of_days).items())
    why = f"{column.why.partition(', except ')[0]}, except {cells_in_words(unreadable)}"
    origin = column.origin._replace(why=f"{why}, read as missing", unreadable=unreadable)
    return replace(column, origin=origin._replace(question="exceptions"))


# -- Schema: what the columns of a table are -----------------------------------------------------


def as_values_or_numbers(table: Table) -> Table:
    """A table of values, sets and numbers: grades as values, and cells of other kinds likewise."""
    columns = tuple(
        replace(column, kind="nominal", levels=None) if column.is_ordered else column
        for column in table.schema.columns
    )
    return other_kinds_as_values(replace(table, schema=replace(table.schema, columns=columns)))


def other_kinds_as_values(table: Table) -> Table:
    """A table of values, grades, sets and numbers; cells of other kinds are values."""
    columns, parts = [], []
    for column, data in table:
        if not (column.is_continuous or column.has_values):
            column, data = Column(column.name, origin=column.origin), data.as_values()
        columns.append(column)
        parts.append(data)
    return Table(replace(table.schema, columns=tuple(columns)), tuple(parts), table.n_rows)


def datetime_as_numeric(table: Table) -> Table:
    """A table whose datetime columns are numeric."""
    columns = tuple(Column(c.name, "numeric") if c.is_dated else c for c in table.schema.columns)
    cells = tuple(Numbers(d.values) if d.is_dated else d for d in table.columns)
    return Table(replace(table.schema, columns=columns), cells, table.n_rows)


def canonical_codes(table: Table) -> list[np.ndarray]:
    """Codes of each column that follow the canonical order of values, not that of arrival."""
    return [column.ranks() for column in table.columns]


def distinct_rows(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Where each distinct row first occurs, in the order of codes, and each row's number.

    Codes are folded into one integer per row; when that would overflow, it is replaced by its
    rank, which keeps the order.
    """
    key = np.zeros(len(columns[0]), np.int64)
    widths = in_threads(lambda codes: int(codes.max(initial=0)) + 1, columns)
    size, packed = 1, list[tuple[np.ndarray, int]]()
    for codes, width in zip(columns, widths, strict=True):
        if size * width >= 1 << 62:
            _append_digits(key, packed)
            first, key = _distinct(key)
            size, packed = len(first), []
        packed.append((codes, width))
        size *= width
    _append_digits(key, packed)
    return _distinct(key)


def _append_digits(key: np.ndarray, columns: Sequence[tuple[np.ndarray, int]]) -> None:
    """Append codes to the integer of each row, as digits of these many values."""

    def append(rows: slice) -> None:
        for block in slices(rows.stop - rows.start, 1, BLOCK_CODES):
            part = key[rows][block]
            for codes, width in columns:
                part *= width
                np.add(part, codes[rows][block], out=part, casting="unsafe")

    in_threads(append, row_slabs(len(key)))


def _distinct(key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each distinct integer is first, in increasing order, and the rank of each."""
    order = _sorting(key)
    key = key[order]
    is_new = np.concatenate([np.ones(min(len(key), 1), bool), key[1:] != key[:-1]])
    rank = np.empty(len(key), np.intp)
    rank[order] = np.cumsum(is_new) - 1
    return order[is_new], rank


def _sorting(key: np.ndarray) -> np.ndarray:
    """What sorts integers, the first of equals first: a range of them on each thread."""
    n_ranges = len(row_slabs(len(key)))
    some = np.sort(key[:: max(len(key) // 1024, 1)])
    edges = some[[len(some) * i // n_ranges for i in range(1, n_ranges)]]
    slabs = in_threads(
        lambda rows: np.searchsorted(edges, key[rows], side="right"), row_slabs(len(key))
    )
    range_of_row = np.concatenate([np.zeros(0, np.intp), *slabs]).astype(np.uint16)

    def sort(i: int) -> np.ndarray:
        rows = np.flatnonzero(range_of_row == i)
        return rows[np.argsort(key[rows], kind="stable")]

    return np.concatenate(in_threads(sort, range(n_ranges)))


MAX_SAMPLED_ROWS = 1 << 17  # Kinds follow from so many rows, however many there are.


def row_keys(start: int, stop: int) -> np.ndarray:
    """A key for each row number, as if drawn, and no two alike [Steele et al. 2014]."""
    key = np.arange(start + 1, stop + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


def sampled_rows(n_rows: int, max_rows: int | None = None) -> np.ndarray | None:
    """The rows that stand for very many: those of the lowest keys; None for all.

    A stream gives the same ones, however it is cut.
    """
    max_rows = MAX_SAMPLED_ROWS if max_rows is None else max_rows
    if n_rows <= max_rows:
        return None
    keys = row_keys(0, n_rows)
    return np.flatnonzero(keys < np.partition(keys, max_rows)[max_rows])


def as_rows(X: Any, schema: Schema) -> Any:
    """One row (a dict of cells, a sequence of cells, a pandas row) as a list of rows.

    Anything else is returned as it is; a dict of lists is a table of columns.
    """
    if isinstance(X, Mapping):
        columns = all(_is_column(v) for v in X.values())
        return X if columns and X and not _are_sets(X, schema) else [dict(X)]
    if hasattr(X, "iloc") and X.ndim == 1:
        return [X.to_dict()]
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.names is None:
        return X.reshape(1, -1)
    if isinstance(X, list | tuple) and len(X):
        cells = not isinstance(X[0], list | tuple | Mapping | np.ndarray)
        return [list(X)] if cells and not isinstance(X[0], Set) else X
    return X


def _are_sets(X: Mapping[str, Any], schema: Schema) -> bool:
    """Whether each list is a set, a cell of a column of lists, and no column of such cells."""
    listed = {c.name for c in schema.columns if c.kind == "set" and c.delimiter is None}
    return all(
        name in listed and not any(c is None or isinstance(c, Set) or _is_column(c) for c in cells)
        for name, cells in X.items()
    )


def _is_column(cells: Any) -> bool:
    listed = hasattr(cells, "__array__") and not isinstance(cells, np.generic)
    return listed or isinstance(cells, list | tuple)


def take_rows(table: Table, index: np.ndarray) -> Table:
    """Some rows of a table."""
    columns = tuple(column.take(index) for column in table.columns)
    return Table(table.schema, columns, len(index))


def append_rows(table: Table, more: Table) -> Table:
    """The rows of two tables of the same columns; codes of the first stay what they are."""
    columns = tuple(a.joined(b) for a, b in zip(table.columns, more.columns, strict=True))
    return Table(table.schema, columns, table.n_rows + more.n_rows)


def drop_columns(table: Table, names: Sequence[str], why: str) -> Table:
    """A table some of whose columns are dropped, unless no other is left."""
    remaining = [column.name for column in table.schema.columns if column.name not in names]
    if not names or not remaining:
        return table
    order = table.schema.given
    columns = [replace(table.schema[n], origin=Origin(why, True, order.index(n))) for n in names]
    dropped = sorted([*table.schema.dropped, *columns], key=lambda column: column.position or 0)
    out = table.select(remaining)
    return replace(out, schema=replace(out.schema, dropped=tuple(dropped)))


# -- what is counted of a column ----------------------------------------------------------------


def values_schema(schema: Schema) -> Schema:
    """A schema of all that is counted, each part as a column of values."""
    columns = [
        Column(part) if part in schema.bins or c.kind == "ordinal" else c
        for part, c in schema.parts.items()
    ]
    return replace(schema, columns=tuple(columns))


# -- Identifiers that predict: columns dropped whose order tells the target --------------------


def remember_names(estimator: Any, schema: Schema) -> None:
    """Set what scikit-learn wants to know of the input: how many columns, and their names."""
    estimator.n_features_in_ = len(schema.given)
    if schema.named:
        estimator.feature_names_in_ = np.asarray(schema.given, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def require_rows(table: Table) -> None:
    """Refuse a table without rows."""
    if not table.n_rows:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {len(table.schema)})) while a minimum "
            "of 1 is required."
        )


def check_feature_names(estimator: Any, X: Any, schema: Schema) -> None:
    """Check the names of columns as scikit-learn does; what was dropped may be there or not."""
    names = list(getattr(X, "columns", ()))
    if names in (schema.names, schema.given) and schema.named:
        return
    if schema.named:
        flat = [field for name in columns_of(X)[0] or () for field in schema.fields(name)]
    if not schema.named or flat not in (schema.names, schema.given):
        from sklearn.utils.validation import _check_feature_names  # a table needs no scikit-learn

        _check_feature_names(estimator, X, reset=False)
