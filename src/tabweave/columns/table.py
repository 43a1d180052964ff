"""Table: rows of any library in, small integer codes out.

The first room of the house. Whatever a user has (pandas, polars, pyarrow, NumPy, dicts of columns,
lists of dicts) becomes a :class:`Table`: per column the codes of its values, its numbers or its
sets, under a :class:`Schema` that says what each column is. Nothing is learned here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from sklearn.utils.validation import _check_feature_names

from tabweave._compat import html_table, warn_caller
from tabweave.columns.formats import (
    DATE_ORDERS,
    MISSING_WORDS,
    PANDAS_MISSING_WORDS,
    PERIODS,
    CellError,
    cells_in_words,
    date_format,
    digits_of,
    has_thousands,
    numbers_written,
)
from tabweave.columns.frames import (
    CLOCK,
    CLOCK_TIMES,
    DATETIMES,
    TIME_SPANS,
    categories,
    code_for_missing,
    columns_of,
    datetimes,
    holds_long_periods,
    holds_records,
    infer_kind,
    is_declared_categorical,
    is_inexact,
    is_missing,
    is_ordered,
    levels_of,
    named_columns,
    object_array,
    objects,
    sets,
    take_sets,
    times_held,
)
from tabweave.columns.frames import numbers as cells_numbers
from tabweave.columns.kinds import (
    FEW_ROWS,
    NO_AMOUNT,
    Asks,
    Finding,
    Kind,
    Kinds,
    Rules,
    Verdict,
    is_index,
    joined_by,
    judge,
    unreadable_cells,
)
from tabweave.columns.spelling import is_spelled, is_text
from tabweave.columns.vocabulary import Label, canonical, code_type, identity, order, positions
from tabweave.io.register import storable

__all__ = ["KINDS", "Codes", "Column", "Datetimes", "Kind", "Numbers", "Schema", "Sets", "Table"]


@storable
@dataclass(frozen=True, eq=False)
class Codes:
    """A nominal or ordinal column: one code a row, and the label of each code."""

    codes: np.ndarray
    labels: list[Label]

    def _check_loaded(self) -> None:
        check_codes(self.codes, len(self.labels))


@storable
@dataclass(frozen=True, eq=False)
class Numbers:
    """A numeric column: float64, NaN where missing."""

    values: np.ndarray


@storable
@dataclass(frozen=True, eq=False)
class Datetimes(Numbers):
    """A datetime column: seconds since 1970 by the clock of its time zone, NaN where missing.

    Times of day are seconds since midnight.
    """

    def text(self, seconds: float) -> str | None:
        """Return one as ISO text, without a time if all are dates, without a date if all are times.

        What lies within the first day of 1970 is a time of day.
        """
        if np.isnan(seconds):
            return None
        moment = str(np.datetime64(round(seconds * 1e6), "us"))[self._shown].replace("T", " ")
        return moment.removesuffix(":00") if self._shown.start else moment

    def nearest(self, seconds: np.ndarray) -> np.ndarray:
        """Return others rounded to the days, hours, minutes or seconds that all of these are."""
        present = self.values[~np.isnan(self.values)]
        step = next((s for s in (86_400, 3600, 60, 1) if not (present % s).any()), None)
        if step is None or not len(present):
            return np.asarray(seconds)
        rounded = np.round(np.asarray(seconds) / step) * step
        return np.mod(rounded, 86_400) if self._shown.start else rounded

    @cached_property
    def _shown(self) -> slice:
        """The part of an ISO text that tells them apart: of a whole column looked for once."""
        if np.nanmin(self.values) >= 0 and np.nanmax(self.values) < 86_400:
            return slice(11, 19)
        return slice(0, 19 if (self.values % 86_400 > 0).any() else 10)


@storable
@dataclass(frozen=True, eq=False)
class Sets:
    """A set-valued column: row i has the elements ``codes[starts[i]:starts[i + 1]]``."""

    starts: np.ndarray
    codes: np.ndarray
    labels: list[Label]

    def any_element(self, passing: np.ndarray) -> np.ndarray:
        """Return which rows have an element that passes, given which of all elements do."""
        passed = np.concatenate([[0], np.cumsum(passing)])
        return passed[self.starts[1:]] > passed[self.starts[:-1]]

    def _check_loaded(self) -> None:
        check_codes(self.codes, len(self.labels))
        check_offsets(self.starts, len(self.codes))


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
    columns: tuple[Codes | Numbers | Sets, ...]
    n_rows: int

    @classmethod
    def of(
        cls,
        X: Any,
        schema: Schema | Mapping[Any, Any] | None = None,
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
        schema : Schema or mapping, optional
            Kinds of some or all columns. A complete schema (that of another table) is matched by
            name: other columns are ignored, a missing one is an error (a key that records lack is
            a missing cell).
        numbers : {"numeric", "nominal"}, default="numeric"
            What an undeclared column of numbers or datetimes is.
        rules : {"whole", "sample", "first", "texts", "all"}, optional
            Whether to look at the values of undeclared columns, too, and to set identifiers aside:
            :mod:`tabweave.columns.kinds` has the rules, :meth:`kinds` says what they found. "first"
            are the first rows of a stream, from which less follows, "sample" some of ``n_rows``
            rows; "texts" sets only text aside, "all" nothing.
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
        open_columns = [name for name in by_name if name not in schema]
        found = _completed(by_name, schema, numbers, named, rules)
        leave_out = () if rules is None else open_columns
        table = _readable_columns(by_name, found, n_here, leave_out)
        _tell_alphabetical(table)
        if rules is None:
            return table
        return _apply_rules(table, by_name, open_columns, rules, n_rows or n_here)

    def kinds(self) -> Kinds:
        """Return what each column is, why, and whether it is set aside.

        Of a table that was read by its types alone, this is what the rules of
        :mod:`tabweave.columns.kinds` make of it where any table may come: in
        :class:`~tabweave.Weave`, reports and the command line.
        """
        found = [_finding(column, data, self.n_rows) for column, data in self]
        for column in self.schema.aside:
            at = min(column.position or 0, len(found))
            found.insert(at, column.finding(kept=False))
        return Kinds(found)

    def select(self, columns: Sequence[str]) -> Table:
        """Return the table of some columns, in the order given."""
        parts = tuple(self[name] for name in columns)
        return Table(self.schema.select(columns), parts, self.n_rows)

    def _check_loaded(self) -> None:
        for column, data in self:
            length = _length(data)
            if _KIND_TYPES[column.kind] is not type(data) or length != self.n_rows:
                raise ValueError(
                    f"column {column.name!r}: expected {self.n_rows} {column.kind} cells, got "
                    f"{length} as {type(data).__name__}"
                )

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: str) -> Any:
        return self.columns[self.schema.index(name)]

    def __iter__(self) -> Iterator[tuple[Column, Codes | Numbers | Sets]]:
        return iter(zip(self.schema.columns, self.columns, strict=True))

    def __repr__(self) -> str:
        kinds = ", ".join(f"{c.name}: {c.kind}" for c in self.schema.columns[:8])
        more = ", ..." if len(self.schema) > 8 else ""
        return f"Table({self.n_rows} rows; {kinds}{more})"

    def _repr_html_(self) -> str:
        found = take_rows(self, np.arange(min(self.n_rows, 6)))
        names = self.schema.names[:20]
        cells = [[_shown(found[name], row) for name in names] for row in range(found.n_rows)]
        kinds = [self.schema[name].kind for name in names]
        more = "" if len(names) == len(self.schema) else f", {len(names)} of them shown"
        caption = f"{self.n_rows:,} rows, {len(self.schema):,} columns{more}"
        return html_table(caption, names, [kinds, *cells])


def _shown(data: Codes | Numbers | Sets, row: int) -> Any:
    """Return a cell as a notebook shows it."""
    cell = cell_of(data, row)
    return ", ".join(map(str, cell)) if isinstance(cell, list) else cell


def cell_of(data: Codes | Numbers | Sets, row: int) -> Any:
    """Return a cell: a label, a number, a datetime as text, a list of elements; None if missing."""
    if isinstance(data, Datetimes):
        return data.text(data.values[row])
    if isinstance(data, Numbers):
        return None if np.isnan(data.values[row]) else float(data.values[row])
    if isinstance(data, Codes):
        return data.labels[data.codes[row]]
    return [data.labels[c] for c in data.codes[data.starts[row] : data.starts[row + 1]]]


def _finding(column: Column, data: Any, n_rows: int) -> Finding:
    """Return what a column is, as the rules see it unless it was declared or judged before."""
    if n_rows >= FEW_ROWS and is_constant(data):
        return Finding(column.name, column.kind, "constant", column.why == "declared")
    decided = column.judged or column.why in _DECIDED
    data = _only(data, sampled_rows(n_rows))
    if column.why in (DATETIMES, CLOCK_TIMES):
        return Finding(column.name, "datetime", column.why)
    verdict = None if decided else judge(column.name, data, n_rows, "whole")
    if verdict is None:
        labels = [] if isinstance(data, Numbers) else data.labels
        if spelled := said_of_strings(column, labels):
            return Finding(column.name, column.kind, spelled)
        return _with_twins(column, labels).finding()
    return _with_verdict(column, verdict, None).finding(kept=not verdict.aside)


def said_of_strings(column: Column, labels: Sequence[Label]) -> str:
    """Return what is to be said of a column of many strings; nothing of others."""
    spelled = column.kind in ("nominal", "set") and column.spelling is not False
    if not spelled or not is_spelled(labels):
        return ""
    return "sentences: compared by spelling" if is_text(labels) else "many strings: spelling counts"


def is_constant(data: Codes | Numbers | Sets) -> bool:
    """Tell whether all rows of a column hold the same."""
    if isinstance(data, Numbers):
        x = data.values
        if not len(x):
            return False
        return _all_rows(np.isnan, x) if np.isnan(x[0]) else _all_rows(x[0].__eq__, x)
    if isinstance(data, Sets):
        sizes = np.diff(data.starts)
        if not len(sizes) or (sizes != sizes[0]).any():
            return False
        cells = np.sort(data.codes.reshape(len(sizes), -1), axis=1)
        return bool((cells == cells[0]).all())
    return bool(len(data.codes)) and _all_rows(data.codes[0].__eq__, data.codes)


def _all_rows(test: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> bool:
    """Tell whether all rows pass a test; mostly some of the first do not."""
    return bool(test(rows[:1000]).all() and test(rows).all())


def _readable_columns(
    by_name: Mapping[str, Any], schema: Schema, n_rows: int, leave_out: Sequence[str]
) -> Table:
    """Return a table of the columns that can be read, those of ``leave_out`` set aside if not.

    They hold lists of records, nested lists or other objects; a warning names each.
    """
    kept, parts, aside = [], [], []
    for position, column in enumerate(schema.columns):
        try:
            parts.append(_column(by_name[column.name], column, schema))
            kept.append(_with_words(column, by_name[column.name], schema))
        except TypeError as error:
            only = position == len(schema) - 1 and not kept
            if column.name not in leave_out or only:
                raise
            aside.append(replace(column, origin=Origin(UNREADABLE, True, position)))
            warn_caller(f"{_shortened(error)}; the column is set aside")
    return Table(replace(schema, columns=tuple(kept), aside=tuple(aside)), tuple(parts), n_rows)


UNREADABLE = "holds what is neither a category, a number nor a set of them"


def _shortened(error: Exception) -> str:
    """Return the message of an error, a long cell cut."""
    cell = repr(getattr(error, "cell", ""))
    return str(error) if len(cell) < 80 else str(error).replace(cell, f"{cell[:76]} ...")


def _apply_rules(
    table: Table, by_name: Mapping[str, Any], undeclared: Sequence[str], rules: Rules, n_rows: int
) -> Table:
    """Return a table whose columns are what the rules say, identifiers set aside."""
    kept, parts, aside = [], [], list(table.schema.aside)
    asked = frozenset(undeclared)
    some = sampled_rows(table.n_rows)
    verdicts = _with_commas(
        table,
        {
            column.name: judge(column.name, _only(data, some), n_rows, rules)
            for column, data in table
            if column.name in asked and not _is_plain(column, data, by_name[column.name])
        },
    )
    given = table.schema.given
    for column, data in table:
        position = given.index(column.name)
        verdict = verdicts.get(column.name)
        if verdict is not None and verdict.aside and _stays(verdict, rules):
            verdict = None
        elif column.name in asked:
            labels = data.labels if isinstance(data, Codes) else []
            column = _with_twins(column, labels)
            column = replace(column, origin=column.origin._replace(judged=True))
            if rules == "whole" and table.n_rows >= FEW_ROWS and is_constant(data):
                verdict = Verdict(column.kind, "constant", aside=True, format=column.decimal)
        if verdict is not None:
            judged = _with_verdict(column, verdict, position)
            if verdict.aside:
                aside.append(judged)
                continue
            try:
                column, data = _as_judged(judged, by_name[column.name], table.schema)
            except (TypeError, ValueError) as error:  # one of many dates does not exist
                why = f"dates, but for one: {error}"
                column = replace(column, origin=Origin(why, judged=True, asks="exceptions"))
            if column.asks == "exceptions":
                _tell_exceptions(column)
        kept.append(column)
        parts.append(data)
    if not kept and all(column.why == "constant" for column in aside):
        return table  # there is nothing to tell, and nothing else
    if not kept:
        raise ValueError(_nothing_kept(aside))
    aside.sort(key=lambda column: column.position or 0)
    schema = replace(table.schema, columns=tuple(kept), aside=tuple(aside))
    return Table(schema, tuple(parts), table.n_rows)


def _tell_exceptions(column: Column) -> None:
    """Warn of the few values that keep a column from being read, or that are read as missing."""
    if column.origin.unreadable:
        declared = f"schema={{{column.name!r}: 'nominal'}}"
        remedy = f"mend them, leave them empty, or keep all values by {declared}"
    else:
        read_as = "categories" if column.kind == "nominal" else "numbers"
        remedy = f"it is read as {read_as}: mend these values, or leave them empty"
    warn_caller(f"column {column.name!r} holds {column.why}; {remedy}")


def _with_verdict(column: Column, verdict: Verdict, position: int | None) -> Column:
    """Return a column that is what the rules say, and where it was if it is set aside."""
    where = position if verdict.aside else None
    origin = Origin(verdict.why, True, where, verdict.asks, verdict.delimiter, verdict.unreadable)
    return replace(
        column, kind=verdict.kind, format=verdict.format, levels=verdict.levels, origin=origin
    )


def _nothing_kept(aside: Sequence[Column]) -> str:
    """Return what was set aside, and how to keep the column most worth it."""
    named = ", ".join(f"{column.name!r} ({column.why})" for column in aside)
    keep = max(aside, key=lambda column: column.kind == "nominal" and not is_index(column.name))
    return (
        f"every column would be set aside: {named}; declare what to keep, as in "
        f"schema={{{keep.name!r}: {keep.kind!r}}}, or --kind {keep.name}={keep.kind} in a shell"
    )


def _with_twins(column: Column, labels: Sequence[Any]) -> Column:
    """Return a column that says of plain values whether some are written alike."""
    if column.why != "values":
        return column
    alike, asks = twins(labels)
    return replace(column, origin=column.origin._replace(why=column.why + alike, asks=asks))


def twins(labels: Sequence[Any]) -> tuple[str, Asks]:
    """Return a remark on values that differ only in case, blanks or type, and what it asks.

    >>> twins(["Yes", "no", "yes "])
    (", of which 'Yes' and 'yes ' differ only in case or blanks", 'spelling')
    >>> twins([1, 2, "2"])
    (", of which '2' and 2 differ only in type", 'meaning')
    """
    alike: dict[str, list[Any]] = {}
    for label in labels[:_MOST_TWINS]:
        if isinstance(label, str | int | float):
            alike.setdefault(str(label).strip().casefold(), []).append(label)
    key = min((key for key, found in alike.items() if len(found) > 1), default=None)
    if key is None:
        return "", ""
    one, other = sorted(alike[key], key=repr)[:2]
    remark = f", of which {one!r} and {other!r} differ only in "
    if type(one) is type(other):
        return f"{remark}case or blanks", "spelling"
    return f"{remark}type", "meaning"


def _with_commas(
    table: Table, verdicts: Mapping[str, Verdict | None]
) -> Mapping[str, Verdict | None]:
    """Return verdicts for a table in which, if one column has decimal commas, the others do, too.

    Points then separate thousands wherever all of a column's may.
    """
    if not any(
        v is not None and v.kind == "numeric" and v.format == "," for v in verdicts.values()
    ):
        return verdicts
    out = dict(verdicts)
    for name, verdict in verdicts.items():
        data = table[name]
        if verdict is not None and verdict.format == "." and isinstance(data, Codes):
            out[name] = verdict._replace(format="," if has_thousands(data.labels) else ".")
    return out


def _stays(verdict: Verdict, rules: Rules) -> bool:
    """Tell whether a column that tells rows apart is kept: numbers of rows may tell of time."""
    return rules == "all" or (rules == "texts" and verdict.kind == "numeric")


def _only(data: Any, rows: np.ndarray | None) -> Any:
    """Return some rows of a column of numbers or values, with all of its labels."""
    if rows is None or isinstance(data, Sets):
        return data
    if isinstance(data, Numbers):
        return replace(data, values=data.values[rows])
    return Codes(data.codes[rows], data.labels)


def _as_judged(column: Column, cells: Any, schema: Schema) -> tuple[Column, Any]:
    """Read a column as the rules say; raise if one of its dates does not exist."""
    if column.kind != "datetime":
        return column, _column(cells, column, schema)
    try:
        seconds, zone = datetimes(cells, None, first=True, order=column.date_order)
    except CellError:
        if not unreadable_cells(*categories(cells)):
            raise
        column = _with_unreadable(column, cells)
        cells = _readable_cells(cells, column)
        seconds, zone = datetimes(cells, None, first=True, order=column.date_order)
    _check_gaps(seconds, schema)
    return replace(column, format=column.date_order or zone), Datetimes(seconds)


_MOST_TWINS = 10_000  # values among which those that are written alike are looked for
_SEEN = 1000  # cells that are looked at to see whether there is anything to ask
INEXACT = "whole numbers that floats do not hold"
_DECIDED = ("declared", "categories", "ordered categories", TIME_SPANS)
_WORD = re.compile(r"[^\W\d_]\D*").fullmatch  # dates and money have digits, Jan 5, 2020 too
_LIST = re.compile(r"[;|]|, ").search


def _is_plain(column: Column, data: Any, cells: Any) -> bool:
    """Tell at a glance that a column is what its type says, so that no rule need be asked."""
    if isinstance(data, Sets):
        return not any(isinstance(label, float) for label in data.labels[:_SEEN])
    if column.kind in ("ordinal", "datetime") or column.why == TIME_SPANS:
        return True
    if column.name.startswith("__index"):
        return False
    if isinstance(data, Numbers):
        seen = data.values[:_SEEN]
        x = np.unique(seen)
        few = 2 < len(x) < len(seen)
        fractions = (x % 1 != 0) & ~np.isnan(x)
        amounts = few and x[-1] < 100 and not NO_AMOUNT.search(column.name)
        return bool(fractions.any() or amounts) and code_for_missing(data.values) is None
    if is_declared_categorical(cells):
        return True
    labels = data.labels[:_SEEN]
    repeats = len(data.labels) < max(0.5 * len(data.codes), FEW_ROWS)
    words = [label for label in labels if isinstance(label, str)]
    if not repeats or 2 * sum(_LIST(word) is not None for word in words) >= max(len(words), 1):
        return False
    plain = sum(_WORD(w) is not None and w.strip().lower() not in MISSING_WORDS for w in words)
    return 4 * plain > len(labels)  # one or two words may stand among ranges or numbers


def _with_format(column: Column, cells: Any) -> Column:
    """Return a column of datetimes with the time zone of its cells, or the order of their parts."""
    if column.kind != "datetime" or column.format is not None:
        return column
    cells = _readable_cells(cells, column)
    try:
        zone = _date_format(cells) or datetimes(cells, None, first=True)[1]
    except (TypeError, ValueError) as error:
        raise _named_error(error, column) from error
    return replace(column, format=zone)


def _date_format(cells: Any) -> str | None:
    """Return how text or whole numbers write dates; None if they are days, or ISO text."""
    if holds_long_periods(cells):
        return PERIODS
    if times_held(cells) in (DATETIMES, CLOCK_TIMES):
        return None
    if infer_kind(cells) == "numeric":
        return date_format(digits_of(cells_numbers(cells)))
    return date_format([label for label in categories(cells)[1] if isinstance(label, str)])


def _conforming(table: Table, schema: Schema) -> Table:
    """Return a table that was read before, if it was read as a schema now asks."""
    for column in schema.columns:
        if column.name not in table.schema.names:
            raise ValueError(
                f"column {column.name!r} is missing; the columns are "
                f"{', '.join(map(repr, table.schema.names))}"
            )
        found = table.schema[column.name].kind
        if found != column.kind and {found, column.kind} & {"numeric", "datetime", "set"}:
            raise ValueError(
                f"column {column.name!r}: expected {column.kind}, got {found}; give the schema to "
                "Table.of"
            )
    return table


def _matched(by_name: dict[str, Any], schema: Schema, named: bool) -> dict[str, Any]:
    """Find the columns of a complete schema: by name if both have names, else by position."""
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
    given = schema.given
    if len(by_name) == len(given):
        return dict(zip(given, by_name.values(), strict=True))
    if len(by_name) != len(schema):
        raise ValueError(
            f"X has {len(by_name)} features, but tabweave is expecting {len(schema)} features "
            "as input"
        )
    return dict(zip(schema.names, by_name.values(), strict=True))


def _with_optional_keys(by_name: dict[str, Any], schema: Schema, n_rows: int) -> dict[str, Any]:
    """Return columns of records with those of keys that no record has: they are missing."""
    if schema.complete and not any(name in schema for name in by_name):
        return by_name
    absent = [name for name in schema.names if name not in by_name]
    return by_name | dict.fromkeys(absent, np.full(n_rows, None))


def check_keys(X: Any, schema: Schema) -> None:
    """Raise for a key of records that are to be learned from which those before them lacked."""
    if not holds_records(X) or not schema.named:
        return
    known = set(schema.given)
    for name in named_columns(X)[0]:
        if name not in known:
            raise ValueError(
                f"column {name!r} is new: no record so far has this key; declare it before the "
                f"first ones, as in schema={{{name!r}: 'nominal'}}, or leave it out"
            )


def _with_fields(by_name: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Return columns with the fields of records of which none is there: they are missing, too."""
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
    declared = {column.name: column for column in schema.columns}
    columns = []
    for name, cells in by_name.items():
        column = declared.get(name)
        if column is None:
            kind = infer_kind(cells)
            why = _in_words(kind, cells)
            if why == "numbers" and is_inexact(cells):
                kind, why = "nominal", INEXACT
            if rules is not None and why in (DATETIMES, CLOCK_TIMES):
                kind = "datetime"
            read_as: Any = numbers if kind == "numeric" else kind
            column = Column(name, read_as, origin=Origin(why))
        else:
            column = _with_delimiter(_with_decimal(column, cells), cells)
            if not column.judged:
                column = replace(column, origin=Origin("declared"))
        if column.kind == "ordinal" and column.levels is None:
            column = replace(column, levels=_own_levels(name, cells))
        columns.append(_with_format(column, cells))
    return replace(schema, columns=tuple(columns), complete=True, named=named)


UNORDERED = "categories whose order differs from part to part: declare their levels"


def _in_words(kind: str, cells: Any) -> str:
    """Return in words what the type of a column says."""
    held = times_held(cells) if kind in ("numeric", "nominal") else ""
    if held in (DATETIMES, CLOCK_TIMES) or (held and kind == "numeric"):
        return held
    if is_declared_categorical(cells):
        if kind != "ordinal" and is_ordered(cells):
            return UNORDERED
        return "ordered categories" if kind == "ordinal" else "categories"
    return {"nominal": "values", "numeric": "numbers", "set": "lists"}.get(kind, kind)


def _with_decimal(column: Column, cells: Any) -> Column:
    """Return a column that was declared numeric, with the decimal mark of numbers in text."""
    if column.kind != "numeric" or column.decimal is not None or infer_kind(cells) != "nominal":
        return column
    try:
        labels: Iterable[Any] = categories(cells)[1]
    except (TypeError, ValueError):  # some cell is no value: reading the column says which
        labels = dict.fromkeys(cell for cell in objects(cells) if isinstance(cell, str))
    written = numbers_written([label for label in labels if isinstance(label, str)])
    return column if written is None else replace(column, format=written[1])


def _tell_alphabetical(table: Table) -> None:
    """Warn of words that are declared ordinal without an order: that of letters is seldom it."""
    for column, data in table:
        if column.kind != "ordinal" or column.levels is not None or not isinstance(data, Codes):
            continue
        words = [label for label in data.labels if isinstance(label, str)]
        if len(words) > 2 and max(map(len, words)) > 1:
            shown = " < ".join(map(repr, sorted(words)[:4])) + " < ..." * (len(words) > 4)
            warn_caller(
                f"column {column.name!r} is ordinal without levels, so its values are sorted "
                f"alphabetically: {shown}; declare their order, lowest first: "
                f"Column({column.name!r}, 'ordinal', levels=[...])"
            )


def _with_delimiter(column: Column, cells: Any) -> Column:
    """Return a column that was declared a set, with what joins the elements where it is plain."""
    if column.kind != "set" or column.delimiter is not None or infer_kind(cells) != "nominal":
        return column
    try:
        texts = [label for label in categories(cells)[1] if isinstance(label, str)]
    except (TypeError, ValueError) as error:
        raise _named_error(error, column) from error
    return replace(column, delimiter=joined_by(texts) or None)


def _own_levels(name: str, cells: Any) -> tuple[Label, ...] | None:
    try:
        return levels_of(cells)
    except TypeError as error:
        raise TypeError(f"column {name!r}: {error}") from error


def _column(cells: Any, column: Column, schema: Schema) -> Codes | Numbers | Sets:
    """Read one column as its kind says, and say which column it was if that fails."""
    empty = schema.empty_is_missing
    try:
        if column.kind in ("numeric", "datetime"):
            try:
                return _read_numbers(cells, column, schema)
            except CellError:
                return _read_numbers(_readable_cells(cells, column), column, schema)
        if column.kind == "set":
            starts, codes, labels = sets(cells, column.delimiter, empty_is_missing=empty)
            _check_missing(codes, labels, schema, starts)
            return Sets(starts, codes, labels)
        codes, labels = _without_words(*categories(cells, empty_is_missing=empty), schema)
        _check_missing(codes, labels, schema)
        return Codes(codes, labels)
    except (TypeError, ValueError) as error:
        raise _named_error(error, column) from error
    except OverflowError as error:
        raise ValueError(
            f"column {column.name!r}: expected dates of the years 1 to 9999 as values, got "
            f"{_farthest_date(cells)}; mend it, or declare the column as kind 'datetime'"
        ) from error


def _without_words(
    codes: np.ndarray, labels: list[Label], schema: Schema
) -> tuple[np.ndarray, list[Label]]:
    """Return codes and labels of a column, the words of a schema being missing."""
    words = set(schema.missing_words).intersection(labels)
    if not words:
        return codes, labels
    kept = [None if label in words else label for label in labels]
    distinct = list(dict.fromkeys(map(identity, kept)))
    index = {key: i for i, key in enumerate(distinct)}
    table = np.array([index[identity(label)] for label in kept], code_type(len(distinct)))
    return table[codes], [label for _, label in distinct]


def _with_words(column: Column, cells: Any, schema: Schema) -> Column:
    """Return a column of values that says which words of a schema were read as missing."""
    if not schema.missing_words or column.kind not in ("nominal", "ordinal"):
        return column
    codes, labels = categories(cells)
    counts = np.bincount(codes, minlength=len(labels)).tolist()
    met = [(v, n) for v, n in zip(labels, counts, strict=True) if v in schema.missing_words and n]
    if not met:
        return column
    words = tuple(sorted(((str(v), n) for v, n in met), key=lambda pair: (-pair[1], pair[0])))
    why = f"{column.why}, except {cells_in_words(words)}, read as missing"
    return replace(column, origin=column.origin._replace(why=why, unreadable=words))


def _farthest_date(cells: Any) -> str:
    """Return the date farthest from today in a column of another library, as ISO text."""
    seconds = datetimes(cells, None, first=True)[0]
    return str(np.datetime64(int(seconds[np.nanargmax(np.abs(seconds))]), "s"))


def _readable_cells(cells: Any, column: Column) -> Any:
    """Return the cells of a column found to hold numbers or dates, missing where a word is.

    Those of a column that was declared, or most of which are words, stay as they are.
    """
    if not column.judged:
        return cells
    codes, labels = categories(cells)
    words = unreadable_cells(codes, labels)
    if sum(words.values()) > max(len(codes) / 2, 1):
        return cells
    if new := [pair for pair in words.items() if pair[0] not in dict(column.origin.unreadable)]:
        warn_caller(
            f"column {column.name!r}: expected {_CELLS_OF[column.kind]}, got "
            f"{cells_in_words(new)}, read as missing; mend them, or leave them empty"
        )
    return object_array([None if label in words else label for label in labels])[codes]


def _with_unreadable(column: Column, cells: Any) -> Column:
    """Return a column that lists all values that are read as missing, also those not sampled."""
    unreadable = tuple(unreadable_cells(*categories(cells)).items())
    why = f"{column.why.partition(', except ')[0]}, except {cells_in_words(unreadable)}"
    origin = column.origin._replace(why=f"{why}, read as missing", unreadable=unreadable)
    return replace(column, origin=origin._replace(asks="exceptions"))


_CELLS_OF = {"numeric": "numbers", "datetime": "dates or times"}


def _named_error(error: Exception, column: Column) -> Exception:
    """Return an error that says of which column it speaks, and what to do about a cell."""
    if not isinstance(error, CellError):
        kind = TypeError if isinstance(error, TypeError) else ValueError
        return kind(f"column {column.name!r}: {error}")
    remedy = "" if "; " in error.remark else _remedy(column, error)
    return CellError(error.expected, error.cell, error.remark + remedy, column.name)


def _remedy(column: Column, error: CellError) -> str:
    """Return what to do about a cell that a column cannot hold."""
    if column.kind in ("numeric", "datetime"):
        return "; mend it, leave it empty, or declare the column as kind 'nominal' and fit anew"
    if column.kind == "set" and error.expected == "a set":
        declared = f"Column({column.name!r}, 'set', delimiter=',')"
        return f"; give lists, or declare what parts a text: {declared}"
    if column.kind == "set":
        return " as an element; turn such elements into text, or give them columns"
    collection = isinstance(error.cell, list | tuple | Set | np.ndarray)
    as_set = ", or declare the column as kind 'set'" * (column.kind == "nominal" and collection)
    return f"; turn it into text or a number{as_set}"


def _read_numbers(cells: Any, column: Column, schema: Schema) -> Numbers:
    """Read a numeric or datetime column; raise for infinite numbers, and for gaps if asked to."""
    if column.kind == "datetime":
        values = datetimes(cells, column.zone, first=False, order=column.date_order)[0]
    else:
        empty = schema.empty_is_missing
        values = cells_numbers(cells, empty_is_missing=empty, format=column.format)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise ValueError(
            f"row {infinite[0]} holds {values[infinite[0]]}; replace infinity by a number or NaN"
        )
    _check_gaps(values, schema)
    return Datetimes(values) if column.kind == "datetime" else Numbers(values)


def _check_gaps(values: np.ndarray, schema: Schema) -> None:
    """Raise for a missing number if the schema asks for that."""
    if schema.missing == "error" and (gaps := np.isnan(values)).any():
        raise ValueError(
            f"row {gaps.argmax()} is missing; fill it or use Schema(missing='expected')"
        )


def _check_missing(
    codes: np.ndarray, labels: list[Label], schema: Schema, starts: np.ndarray | None = None
) -> None:
    """Refuse missing if the schema asks for that; ``starts`` are those of a set-valued column."""
    if schema.missing == "error" and None in labels:
        gaps = np.flatnonzero(codes == labels.index(None))
        if len(gaps):
            row = gaps[0] if starts is None else np.searchsorted(starts, gaps[0], "right") - 1
            raise ValueError(f"row {row} is missing; fill it or use Schema(missing='expected')")


# -- Schema: what the columns of a table are -----------------------------------------------------

KINDS: tuple[Kind, ...] = get_args(Kind)
_KIND_TYPES: dict[str, type] = {"nominal": Codes, "ordinal": Codes, "set": Sets}
_KIND_TYPES |= {"numeric": Numbers, "datetime": Datetimes}


@storable
class Origin(NamedTuple):
    """What made a column what it is."""

    why: str = ""  # in words
    judged: bool = False  # whether rules were asked
    position: int | None = None  # where the column was before it was set aside
    asks: Asks = ""  # what only the user knows of it
    delimiter: str = ""  # of what may be lists
    unreadable: tuple[tuple[str, int], ...] = ()  # values read as missing, and their cells


@storable
@dataclass(frozen=True)
class Column:
    """The kind of one column, and how its cells are written.

    Parameters
    ----------
    name : str
        Its name; arrays have ``x0``, ``x1``, ...
    kind : {"nominal", "ordinal", "numeric", "datetime", "set"}, default="nominal"
        How its cells are read. Numbers of a datetime column are seconds since 1970, unless all
        are dates such as 20240131.
    levels : sequence, optional
        The order of an ordinal column's values, lowest first.
    delimiter : str, optional
        What separates the elements of a set written as text; by default the one of ``; | ,`` that
        most of its values have, if few elements make them up. Lists in brackets, as JSON and Python
        write them, need none.
    format : str, optional
        How cells are written. Of a datetime column: the time zone by whose clock it is read, such
        as "Europe/Berlin"; "local" takes each cell by its own offset; "clock" says that cells are
        times of day without a date; the order of day, month and year in text that is no ISO text:
        "mdy", "dmy" or "ymd", which also reads digits such as 20240131; or "period" for months,
        quarters and weeks such as 2024-03, Q1 2024 or 2024-W05. Of a numeric column: the decimal
        mark of numbers in text, and their unit behind it, as in ".km"; ":" says that they are
        durations, such as 36:10:05. What is left open is found from the cells.
    spelling : bool, callable or object with ``transform``, optional
        Whether :class:`~tabweave.Weave` also compares values by how they are spelled; by default
        if there are more than 129, at least half of them strings with a letter. An encoder of your
        own (a list of strings in, an array with a row for each out) replaces the n-grams, e.g. for
        sentences.
    missing : {"expected", "value"}, optional
        What a missing cell is to a distance: "expected" puts it at its expected distance from every
        cell of the column, another missing one included; for "value", it is one more value, and two
        missing cells agree. If not given, the schema says.
    origin : Origin
        What was found when the column was read: see :attr:`why`, :attr:`judged`,
        :attr:`position`, :attr:`asks`.

    Examples
    --------
    >>> from tabweave import Column, Table
    >>> rows = {"size": ["L", "S", "L"], "tags": ["new; red", "old", ""]}
    >>> size = Column("size", "ordinal", levels=["S", "M", "L"])
    >>> table = Table.of(rows, {"size": size, "tags": Column("tags", "set", delimiter=";")})
    >>> table.schema["size"].levels, table["tags"].labels
    (('S', 'M', 'L'), ['new', 'old', 'red'])
    """

    name: str
    kind: Kind = "nominal"
    levels: tuple[Label, ...] | None = None
    delimiter: str | None = None
    format: str | None = None
    spelling: Any = None
    missing: Literal["expected", "value"] | None = None
    origin: Origin = field(default=Origin(), compare=False, repr=False)

    @property
    def zone(self) -> str | None:
        """The time zone of datetimes."""
        return self.format if self.kind == "datetime" and self.date_order is None else None

    @property
    def date_order(self) -> str | None:
        """The order of day, month and year in dates that are not ISO text, such as "mdy".

        Of months, quarters and weeks it is "period".
        """
        dated = self.kind == "datetime" and self.format in (*DATE_ORDERS, PERIODS)
        return self.format if dated else None

    @property
    def is_clock(self) -> bool:
        """Whether it holds times of day, without a date."""
        return self.zone == CLOCK

    @property
    def decimal(self) -> str | None:
        """The decimal mark of numbers that are written as text; ":" of durations."""
        return self.format[:1] if self.kind == "numeric" and self.format else None

    @property
    def unit(self) -> str:
        """The unit that follows each number that is written as text."""
        return self.format[1:] if self.kind == "numeric" and self.format else ""

    @property
    def why(self) -> str:
        """Why the column is read as it is; see :meth:`Table.kinds`."""
        return self.origin.why

    @property
    def judged(self) -> bool:
        """Whether the kind was inferred."""
        return self.origin.judged

    @property
    def position(self) -> int | None:
        """Where the column was before it was set aside."""
        return self.origin.position

    @property
    def asks(self) -> Asks:
        """What the user should check about the column; empty if nothing."""
        return self.origin.asks

    def finding(self, *, kept: bool = True) -> Finding:
        """Return what the column was found to be; see :meth:`Table.kinds`."""
        why, _, _, asks, delimiter, unreadable = self.origin
        return Finding(self.name, self.kind, why or self.kind, kept, asks, delimiter, unreadable)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(
                f"column {self.name!r}: expected one of {', '.join(KINDS)}, got {self.kind!r}"
            )
        if self.delimiter is not None:
            if self.kind != "set":
                raise ValueError(f"column {self.name!r}: delimiter is for columns of kind 'set'")
            if not isinstance(self.delimiter, str) or not self.delimiter:
                raise ValueError(
                    f"column {self.name!r}: expected a text as delimiter, got {self.delimiter!r}"
                )
        check_spelling(self.name, self.kind, self.spelling)
        if self.missing not in (None, "expected", "value"):
            raise ValueError(
                f"column {self.name!r}: expected missing to be 'expected' or 'value', got "
                f"{self.missing!r}"
            )
        if self.levels is not None:
            if self.kind != "ordinal":
                raise ValueError(f"column {self.name!r}: levels are for columns of kind 'ordinal'")
            object.__setattr__(self, "levels", _checked_levels(self.name, self.levels))


def check_spelling(name: str, kind: str, spelling: Any) -> None:
    """Raise for a spelling that says nothing, or of a column that has none."""
    if spelling is None or spelling is False:
        return
    if kind not in ("nominal", "set"):
        raise ValueError(f"column {name!r}: spelling is for columns of kind 'nominal' or 'set'")
    if spelling is not True and not callable(spelling) and not hasattr(spelling, "transform"):
        raise TypeError(
            f"column {name!r}: expected spelling to be True, False or an encoder of strings (a "
            f"callable, or an object with transform), got {spelling!r}"
        )


def _checked_levels(name: str, levels: Any) -> tuple[Label, ...]:
    if isinstance(levels, str | bytes | Set | Mapping) or not isinstance(levels, Iterable):
        raise TypeError(
            f"column {name!r}: expected levels in a sequence, lowest first, got {levels!r}"
        )
    try:
        out = tuple(canonical(level) for level in levels)
    except TypeError as error:
        raise TypeError(f"column {name!r}: level {error}") from error
    seen: set[Any] = set()
    for level in out:
        if level is None:
            raise ValueError(
                f"column {name!r}: expected levels, got a missing value, which always comes last"
            )
        if identity(level) in seen:
            raise ValueError(f"column {name!r}: expected each level once, got {level!r} twice")
        seen.add(identity(level))
    return out


@storable
@dataclass(frozen=True)
class Schema:
    """The kinds of the columns of a table, and what counts as missing.

    A schema given by a user may declare only some of the columns; the others are inferred. The
    schema of a :class:`Table` is complete.

    Parameters
    ----------
    columns : mapping of name to kind or Column, or sequence of Column, optional
        The columns that are declared.
    missing : {"expected", "value", "error"}, default="expected"
        What a missing cell is to a distance, unless its column says so: see :class:`Column`; or
        "error", and missing cells are refused.
    empty_is_missing : bool, default=False
        Whether empty text counts as missing.
    missing_words : "pandas" or sequence of str, default=()
        Words that count as missing among categories: those that ``pandas.read_csv`` takes for
        missing, or others. Beside numbers and dates such words are missing without it.

    Attributes
    ----------
    complete : bool
        Whether all columns are declared, as in the schema of a table: others are then ignored.
    named : bool
        Whether columns have names; those of an array are found by position.
    aside : tuple of Column
        Columns that were set aside, and why.
    coupled : bool
        Whether values are counted in pairs; not where there are too many columns for that.

    Examples
    --------
    >>> from tabweave import Column, Schema
    >>> Schema({"size": Column("size", "ordinal", levels=("S", "M", "L"))}).columns[0].levels
    ('S', 'M', 'L')
    """

    columns: tuple[Column, ...] = ()
    missing: Literal["expected", "value", "error"] = "expected"
    empty_is_missing: bool = False
    missing_words: Any = ()
    complete: bool = field(default=False, kw_only=True)
    named: bool = field(default=True, kw_only=True)
    aside: tuple[Column, ...] = field(default=(), kw_only=True, compare=False)
    coupled: bool = field(default=True, kw_only=True)

    def _repr_html_(self) -> str:
        rows = [[c.name, c.kind, ", ".join(map(str, c.levels or ()))] for c in self.columns]
        return html_table(f"{len(self.columns):,} columns", ["column", "kind", "levels"], rows)

    def __post_init__(self) -> None:
        given: Any = self.columns
        if isinstance(given, Mapping):
            given = [_declared(name, kind) for name, kind in given.items()]
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise TypeError(f"schema: expected a mapping of column name to kind, got {given!r}")
        object.__setattr__(self, "columns", tuple(given))
        for column in self.columns:
            if not isinstance(column, Column):
                raise TypeError(
                    f"schema: expected {{{column!r}: kind}}, got {column!r} without a kind"
                )
        if self.missing_words == "pandas":
            object.__setattr__(self, "missing_words", PANDAS_MISSING_WORDS)
        if isinstance(self.missing_words, str):
            raise ValueError(
                f"expected missing_words to be 'pandas' or a sequence of words, got "
                f"{self.missing_words!r}"
            )
        object.__setattr__(self, "missing_words", tuple(self.missing_words))
        if self.missing not in ("expected", "value", "error"):
            raise ValueError(
                f"expected missing to be 'expected', 'value' or 'error', got {self.missing!r}"
            )
        check_distinct(self.names)

    @classmethod
    def of(cls, schema: Schema | Mapping[Any, Any] | None) -> Schema:
        """Return a schema from None, a mapping of column to kind, or a schema."""
        if schema is None:
            return cls()
        return schema if isinstance(schema, Schema) else cls(schema)  # type: ignore[arg-type]

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    @property
    def categorical(self) -> list[Column]:
        """The columns that have values: nominal, ordinal and set."""
        return [column for column in self.columns if column.kind not in ("numeric", "datetime")]

    @property
    def numeric(self) -> list[Column]:
        """The columns that have numbers: numeric and datetime."""
        return [column for column in self.columns if column.kind in ("numeric", "datetime")]

    @property
    def given(self) -> list[str]:
        """The names of all columns given, including those that are set aside."""
        names = self.names
        for column in self.aside:
            names.insert(column.position or 0, column.name)
        return names

    def fields(self, name: str) -> list[str]:
        """Return the columns that a name stands for: the fields of a record, or just itself."""
        given = self.given
        within = [field for field in given if field.startswith(f"{name}.")]
        return [name] if name in given or not within else within

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {column.name: i for i, column in enumerate(self.columns)}

    def index(self, name: str) -> int:
        """Return the index of a column."""
        try:
            return self._index[name]
        except KeyError:
            named = ", ".join(map(repr, self.names))
            raise KeyError(f"no column {name!r}; there are {named}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.index(name)]

    def select(self, names: Sequence[str]) -> Schema:
        """Return the schema of some columns, in the order given."""
        return replace(self, columns=tuple(self[name] for name in names), aside=())


def ordinal_as_nominal(table: Table) -> Table:
    """Return a table whose ordinal columns are nominal."""
    columns = (
        replace(c, kind="nominal", levels=None) if c.kind == "ordinal" else c
        for c in table.schema.columns
    )
    return replace(table, schema=replace(table.schema, columns=tuple(columns)))


def datetime_as_numeric(table: Table) -> Table:
    """Return a table whose datetime columns are numeric."""
    columns = tuple(
        Column(c.name, "numeric") if c.kind == "datetime" else c for c in table.schema.columns
    )
    cells = tuple(Numbers(d.values) if isinstance(d, Datetimes) else d for d in table.columns)
    return Table(replace(table.schema, columns=columns), cells, table.n_rows)


def _declared(name: Any, kind: Any) -> Column:
    name = f"x{name}" if isinstance(name, int) else name
    return replace(kind, name=name) if isinstance(kind, Column) else Column(name, kind)


def check_distinct(names: Sequence[str]) -> None:
    """Refuse two columns of the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(
                f"expected columns of different names, got {name!r} twice; rename or drop one"
            )
        seen.add(name)


def check_codes(codes: np.ndarray, n_labels: int) -> None:
    """Raise for codes, as read from a file, that no label has: compiled loops trust them."""
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise ValueError(f"expected a column of whole codes, got {codes.shape} {codes.dtype}")
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < n_labels:
        raise ValueError(f"expected codes of {n_labels} labels, got {codes.min()} to {codes.max()}")


def check_offsets(offsets: np.ndarray, end: int) -> None:
    """Raise for offsets, as read from a file, that do not rise from 0 to ``end``."""
    fits = offsets.ndim == 1 and offsets.dtype.kind in "iu" and len(offsets) > 0
    if not (fits and offsets[0] == 0 and offsets[-1] == end and (np.diff(offsets) >= 0).all()):
        raise ValueError(f"expected offsets that rise from 0 to {end}, got others")


def _length(column: Codes | Numbers | Sets) -> int:
    """Return the number of rows of a column."""
    if isinstance(column, Sets):
        return len(column.starts) - 1
    return len(column.values if isinstance(column, Numbers) else column.codes)


def canonical_codes(table: Table) -> list[np.ndarray]:
    """Return, per column, codes that follow the canonical order of values, not that of arrival."""
    return [ranks_of_cells(column) for _, column in table]


def ranks_of_cells(column: Any) -> np.ndarray:
    """Return the rank of each cell among the distinct cells of a column, in canonical order."""
    if isinstance(column, Numbers):  # missing numbers are equal, and come last
        return np.unique(column.values, return_inverse=True)[1]
    rank = np.empty(len(column.labels), np.int64)
    rank[order(column.labels)] = np.arange(len(column.labels))
    if isinstance(column, Codes):
        return rank[column.codes]
    row = np.repeat(np.arange(len(column.starts) - 1), np.diff(column.starts))
    elements = (np.sort(row * len(rank) + rank[column.codes]) - row * len(rank)).tolist()
    cells = [tuple(elements[a:b]) for a, b in pairwise(column.starts.tolist())]
    ranks = {cell: i for i, cell in enumerate(sorted(set(cells)))}
    return np.array([ranks[cell] for cell in cells], np.int64)


def distinct_rows(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return where each distinct row first occurs, in the order of codes, and each row's number.

    Codes are folded into one integer per row; when that would overflow, it is replaced by its
    rank, which keeps the order.
    """
    key = np.zeros(len(columns[0]), np.int64)
    size = 1
    for codes in columns:
        width = int(codes.max()) + 1 if len(codes) else 1
        if size * width >= 1 << 62:
            present, key = np.unique(key, return_inverse=True)
            size = len(present)
        key = key * width + codes
        size *= width
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return first, inverse


SAMPLED = 1 << 19  # rows from which kinds and bins are known, however many there are


def row_keys(start: int, stop: int) -> np.ndarray:
    """Return a key for each row number, as if drawn, and no two alike [Steele et al. 2014]."""
    key = np.arange(start + 1, stop + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


def sampled_rows(n_rows: int) -> np.ndarray | None:
    """Return the rows that stand for very many: those of the lowest keys; None for all.

    A stream gives the same ones, however it is cut.
    """
    if n_rows <= SAMPLED:
        return None
    keys = row_keys(0, n_rows)
    return np.flatnonzero(keys < np.partition(keys, SAMPLED)[SAMPLED])


def as_rows(X: Any, schema: Schema) -> Any:
    """Return one row (a dict of cells, a sequence of cells, a pandas row) as a list of rows.

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
    """Say whether each list is a set, a cell of a column of lists, and no column of such cells."""
    listed = {c.name for c in schema.columns if c.kind == "set" and c.delimiter is None}
    return all(
        name in listed and not any(c is None or isinstance(c, Set) or _is_column(c) for c in cells)
        for name, cells in X.items()
    )


def _is_column(cells: Any) -> bool:
    listed = hasattr(cells, "__array__") and not isinstance(cells, np.generic)
    return listed or isinstance(cells, list | tuple)


def take_rows(table: Table, index: np.ndarray) -> Table:
    """Return some rows of a table."""
    columns: list[Any] = []
    for _, column in table:
        if isinstance(column, Codes):
            columns.append(Codes(column.codes[index], column.labels))
        elif isinstance(column, Sets):
            columns.append(Sets(*take_sets(column.starts, column.codes, index), column.labels))
        else:
            columns.append(replace(column, values=column.values[index]))
    return Table(table.schema, tuple(columns), len(index))


def append_rows(table: Table, more: Table) -> Table:
    """Return the rows of two tables of the same columns; codes of the first stay what they are."""
    columns = tuple(map(joined_column, table.columns, more.columns))
    return Table(table.schema, columns, table.n_rows + more.n_rows)


def set_aside(table: Table, names: Sequence[str], why: str) -> Table:
    """Return a table some of whose columns are set aside, unless no other is left."""
    kept = [column.name for column in table.schema.columns if column.name not in names]
    if not names or not kept:
        return table
    given = table.schema.given
    gone = [replace(table.schema[n], origin=Origin(why, True, given.index(n))) for n in names]
    aside = sorted([*table.schema.aside, *gone], key=lambda column: column.position or 0)
    out = table.select(kept)
    return replace(out, schema=replace(out.schema, aside=tuple(aside)))


def joined_column(old: Any, new: Any) -> Codes | Numbers | Sets:
    """Return two columns as one; codes of the old one stay what they are."""
    if isinstance(old, Numbers):
        return replace(old, values=np.concatenate([old.values, new.values]))
    index = positions(old.labels, new.labels)
    absent = np.flatnonzero(index == len(old.labels))
    index[absent] = len(old.labels) + np.arange(len(absent))
    labels = [*old.labels, *(new.labels[i] for i in absent)]
    kind = code_type(len(labels))
    codes = np.concatenate([old.codes.astype(kind), index.astype(kind)[new.codes]])
    if isinstance(old, Codes):
        return Codes(codes, labels)
    starts = np.concatenate([old.starts, new.starts[1:] + old.starts[-1]])
    return Sets(starts, codes, labels)


# -- what is counted of a column ----------------------------------------------------------------
#
# Its values, or the buckets of its numbers, and of datetimes also the bins of cycles: the time of
# day, the weekday and the time of year.

DAY = 86_400.0


@dataclass(frozen=True)
class Cycle:
    """Something that comes back: what it is called, how many seconds it takes, and its bins."""

    title: str
    seconds: float
    n_bins: int

    def name(self, column: str) -> str:
        """Return the name under which a column's bins of this cycle are counted."""
        return f"{column} ({self.title})"

    @property
    def edges(self) -> np.ndarray:
        """The inner edges of the bins."""
        return self.seconds * np.arange(1, self.n_bins) / self.n_bins

    def phase(self, seconds: np.ndarray) -> np.ndarray:
        """Return how far into the cycle datetimes are, in seconds."""
        return np.mod(seconds, self.seconds)


CYCLES = (
    Cycle("time of day", DAY, 24),
    Cycle("weekday", 7 * DAY, 7),
    Cycle("time of year", 365.2425 * DAY, 12),
)


def cycles_of(column: Column) -> Sequence[Cycle]:
    """Return the cycles that are counted of a column: of datetimes, those that they may have."""
    if column.kind != "datetime":
        return ()
    if column.is_clock:
        return CYCLES[:1]
    return CYCLES[2:] if column.date_order == PERIODS else CYCLES  # a month has no weekday


def cycle_of(name: str) -> tuple[str, Cycle]:
    """Return the column and the cycle of which a counted column has the bins."""
    return next(
        (name.removesuffix(f" ({cycle.title})"), cycle)
        for cycle in CYCLES
        if name.endswith(f" ({cycle.title})")
    )


def parts_of(column: Column) -> list[str]:
    """Return the names under which a column is counted."""
    return [column.name, *(cycle.name(column.name) for cycle in cycles_of(column))]


def counted_parts(schema: Schema) -> dict[str, Column]:
    """Return the name of each part that is counted, and whose it is."""
    return {part: column for column in schema.columns for part in parts_of(column)}


def numbers_counted(schema: Schema) -> list[str]:
    """Return the parts that have histograms: numbers, and the phases of cycles."""
    return [part for column in schema.numeric for part in parts_of(column)]


def values_schema(schema: Schema) -> Schema:
    """Return a schema of all that is counted, each part as a column of values."""
    parts = counted_parts(schema).items()
    columns = [c if c.kind in ("nominal", "set") else Column(part) for part, c in parts]
    return replace(schema, columns=tuple(columns))


# -- Identifiers that predict: columns set aside whose order tells the target --------------------

# Numbers that hardly repeat are mostly given out in order: by date, by place, by class. Such a
# column tells nothing by its values, and may tell much by its order.
_BINS = 10  # of equally many rows, in which targets are compared
_MIN_ROWS_OF_BIN = 10
_MAX_P_VALUE = 1e-6
_MIN_STRENGTH = 0.2  # Cramér's V above chance, from which a column is worth keeping


def predictive_identifiers(X: Any, schema: Schema, y: Any) -> dict[str, float]:
    """Return the columns set aside that predict a target, and how strongly (Cramér's V).

    Parameters
    ----------
    X : frame, array, mapping of columns or list of dicts
        The rows.
    schema : Schema
        How they were read.
    y : array-like
        The target of each row.

    Examples
    --------
    >>> from tabweave import Table
    >>> rows = {"id": range(1000), "color": ["red", "blue"] * 500}
    >>> schema = Table.of(rows, rules="whole").schema
    >>> predictive_identifiers(rows, schema, ["old"] * 600 + ["new"] * 400)
    {'id': 1.0}
    """
    names = [column.name for column in schema.aside if column.why != "constant"]
    if isinstance(X, Table) or not names:
        return {}
    cells, n_rows = named_columns(X)
    if not schema.named and len(cells) == len(schema.given):
        cells = dict(zip(schema.given, cells.values(), strict=True))
    classes = _classes(np.asarray(y))
    if n_rows != len(classes):
        return {}
    strengths = {n: _strength(_tenths(_ranks(cells[n])), classes) for n in names if n in cells}
    return {name: value for name, value in strengths.items() if value >= _MIN_STRENGTH}


def warn_of_predictive(X: Any, schema: Schema, y: Any) -> None:
    """Warn of columns that were set aside although they predict the target."""
    found = predictive_identifiers(X, schema, y)
    for column in schema.aside:
        if column.name in found:
            warn_caller(
                f"column {column.name!r} was set aside ({column.why}), but its order predicts the "
                f"target (Cramér's V {found[column.name]:.2f}); if new rows have it, too, keep it "
                f"by schema={{{column.name!r}: {column.kind!r}}}, if not, drop it"
            )


def _ranks(cells: Any) -> np.ndarray:
    kind: Any = "numeric" if infer_kind(cells) == "numeric" else "nominal"
    return ranks_of_cells(Table.of({"cells": cells}, {"cells": kind})["cells"])


def _classes(values: np.ndarray) -> np.ndarray:
    """Return the class of each row as a small integer; of many numbers, its tenth of the rows."""
    if values.dtype.kind in "iuf" and len(np.unique(values)) > 2 * _BINS:
        return _tenths(values)
    ranks = ranks_of_cells(Table.of({"target": values}, {"target": "nominal"})["target"])
    return np.unique(ranks, return_inverse=True)[1]


def _tenths(values: np.ndarray) -> np.ndarray:
    """Return in which tenth of the rows each value lies; equal ones lie in one."""
    n_bins = min(_BINS, len(values) // _MIN_ROWS_OF_BIN)
    below = np.searchsorted(np.sort(values), values)
    return np.unique(below * n_bins // max(len(values), 1), return_inverse=True)[1]


def _strength(bins: np.ndarray, classes: np.ndarray) -> float:
    """Return Cramér's V of bins and classes, corrected for chance; 0 if chance explains it."""
    from scipy.stats import chi2

    n, n_bins, n_classes = len(bins), bins.max(initial=0) + 1, classes.max(initial=0) + 1
    freedom = (n_bins - 1) * (n_classes - 1)
    most = n * (min(n_bins, n_classes) - 1)
    if freedom == 0 or most <= freedom:
        return 0.0
    joint = np.bincount(bins * n_classes + classes, minlength=n_bins * n_classes)
    joint = joint.reshape(n_bins, n_classes).astype(np.float64)
    expected = np.outer(joint.sum(1), joint.sum(0)) / n
    statistic = float(((joint - expected) ** 2 / expected).sum())
    if chi2.sf(statistic, freedom) > _MAX_P_VALUE:
        return 0.0
    return float(np.sqrt((statistic - freedom) / (most - freedom)))


def remember_names(estimator: Any, schema: Schema) -> None:
    """Set what scikit-learn wants to know of the input: how many columns, and their names."""
    estimator.n_features_in_ = len(schema.given)
    vars(estimator).pop("feature_names_in_", None)
    if schema.named:
        estimator.feature_names_in_ = np.asarray(schema.given, dtype=object)


def require_rows(table: Table) -> None:
    """Refuse a table without rows."""
    if not table.n_rows:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {len(table.schema)})) while a minimum "
            "of 1 is required."
        )


def check_feature_names(estimator: Any, X: Any, schema: Schema) -> None:
    """Check the names of columns as scikit-learn does; what was set aside may be there or not."""
    names = list(getattr(X, "columns", ()))
    if names in (schema.names, schema.given) and schema.named:
        return
    if schema.named:
        flat = [field for name in columns_of(X)[0] or () for field in schema.fields(name)]
    if not schema.named or flat not in (schema.names, schema.given):
        _check_feature_names(estimator, X, reset=False)
