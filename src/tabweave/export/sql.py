"""sql: value tables as CREATE and INSERT, and a SELECT that looks rows up in them."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any

import numpy as np

from tabweave.columns.datetime import ISO_TEXT, OWN_CLOCK, PERIODS
from tabweave.columns.numeric import APOSTROPHES, BLANKS, CURRENCIES, DURATIONS
from tabweave.columns.texts import MISSING_WORDS
from tabweave.columns.vocabulary import Label
from tabweave.export.plan import Plan, plan_of
from tabweave.io.files import sql_name, sql_text
from tabweave.space.block import Line, Lookup, Step, Sum

_AT_ONCE = 500  # rows of an INSERT
MAX_POSTGRES_KEY_BYTES = 2704  # PostgreSQL indexes no longer values.
MAX_POSTGRES_WIDTH = 1000  # A row of more numbers does not fit into a page of PostgreSQL.
# What a SELECT of each system holds: columns, joined tables.
_LIMITS = {"postgres": (1600, 1000), "sqlite": (2000, 64), "bigquery": (10_000, 1000)}


class Script(str):
    """SQL text, and its two parts.

    Attributes
    ----------
    tables : str
        The CREATE and INSERT statements, to be run once.
    select : str
        The SELECT over them, without a semicolon, so that it can be a view or a subquery.

    Examples
    --------
    >>> from tabweave import OneHot, export
    >>> script = export.sql(OneHot().fit({"color": ["red", "blue"]}))
    >>> print(script.tables)
    CREATE TABLE "tabweave_color" ("value" VARCHAR PRIMARY KEY, "v0" DOUBLE, "v1" DOUBLE);
    INSERT INTO "tabweave_color" VALUES
    ('blue', 1.0e0, 0.0e0),
    ('red', 0.0e0, 1.0e0);
    """

    tables: str
    select: str

    def __new__(cls, tables: str, select: str) -> Script:
        """Join the two parts."""
        out = super().__new__(cls, f"{tables}\n{select};\n")
        out.tables, out.select = tables, select
        return out


def sql(
    embedder: Any,
    dialect: str = "duckdb",
    *,
    table: str | Sequence[str] = "rows",
    prefix: str | Sequence[str] = "tabweave",
    keep: Iterable[str] = (),
    types: Mapping[str, str] | None = None,
    replace: bool = False,
) -> Script:
    """Return SQL that embeds the rows of a table as ``transform`` does.

    Parameters
    ----------
    embedder : Embedder or Windowed
        A fitted embedder. Set-valued columns and numbers that a transformer has mixed are refused.
    dialect : {"duckdb", "postgres", "sqlite", "bigquery"}, default="duckdb"
        The system that will run it.
    table : str or sequence of str, default="rows"
        The table with the rows; ``("schema", "table")`` for a qualified name. Its columns have the
        names that the embedder was fitted with.
    prefix : str or sequence of str, default="tabweave"
        What the names of the value tables begin with; ``("schema", "prefix")`` puts them into a
        schema.
    keep : iterable of str, optional
        Columns of the table to pass through, such as a key: rows of SQL have no order.
    types : mapping of column to kind, optional
        What columns are in the database, where it does not follow from the values: "text",
        "number", "integer", "boolean", "bytes", "date", "timestamp" or "timestamptz".
    replace : bool, default=False
        Whether to drop value tables that are there already.

    Returns
    -------
    Script
        Text; its ``tables`` and ``select`` are the two parts.

    Notes
    -----
    A value not seen in fit gets the unknown row, NULL the row of missing values, as in
    ``transform``. In a column that is compared by spelling an unknown string makes the vector NULL:
    where it lies depends on all the others. Where the embedder would raise (``unknown="error"``,
    ``missing="error"``) the dimensions are NULL. Columns of datetimes hold dates or timestamps, or
    ISO text (of dates that were other text in fit, ``types`` must say so), with a time zone if they
    had one in fit; SQLite has no names of time zones, only UTC
    and offsets. Text that is read as numbers may be text or numbers.

    Examples
    --------
    >>> import tabweave
    >>> rows = {"color": ["red", "blue"]}
    >>> model = tabweave.OneHot().fit(rows)
    >>> print(tabweave.export.sql(model, "sqlite", table="paints", keep=["id"]))
    CREATE TABLE "tabweave_color" ("value" PRIMARY KEY, "v0" REAL, "v1" REAL);
    INSERT INTO "tabweave_color" VALUES
    ('blue', 1.0, 0.0),
    ('red', 0.0, 1.0);
    SELECT
      t."id",
      COALESCE(w0."v0", 0.5) AS "color_blue",
      COALESCE(w0."v1", 0.5) AS "color_red"
    FROM "paints" AS t
    LEFT JOIN "tabweave_color" AS w0 ON w0."value" = +t."color";
    <BLANKLINE>
    """
    if dialect not in DIALECTS:
        raise ValueError(f"expected dialect to be one of {', '.join(DIALECTS)}, got {dialect!r}")
    plan = plan_of(embedder)
    kept = [keep] if isinstance(keep, str) else list(keep)
    kinds = _checked_types(types or {}, plan)
    writer = _Writer(dialect, plan, kinds, prefix)
    _check_limits(plan, len(kept), dialect)
    _check_case(plan, dialect)
    return Script(writer.tables(replace), writer.select(table, kept))


class _Writer:
    """Writes the statements of one plan in one dialect."""

    def __init__(self, dialect: str, plan: Plan, kinds: Mapping[str, str], prefix: Any) -> None:
        self.dialect = dialect
        self.plan = plan
        self.lookups = [part for part in plan.lookups if part.width]
        self.aliases = {id(part): f"w{i}" for i, part in enumerate(self.lookups)}
        self.kinds = {
            p.column: kinds.get(p.column) or kind_of(p.labels, p.column, dialect)
            for p in self.lookups
        }
        self.names = table_names(prefix, [p.column for p in self.lookups])
        # Numbers that take more than a cast are computed once a row, in a subquery.
        lines = dict.fromkeys((p.column, p.cycle) for p in plan.lines if self._is_computed(p))
        taken = {p.column.lower() for p in plan.lookups} | {p.column.lower() for p in plan.lines}
        free = (n for i in count() if (n := f"tabweave number {i}") not in taken)
        self.computed = dict(zip(lines, free, strict=False))

    # -- tables ----------------------------------------------------------------------------

    def tables(self, replace: bool) -> str:
        """Return the statements that make the value tables."""
        pairs = zip(self.lookups, self.names, strict=True)
        return "\n".join(self._table(part, self._quoted(name), replace) for part, name in pairs)

    def _table(self, part: Lookup, name: str, replace: bool) -> str:
        types, kind = TYPES[self.dialect], self.kinds[part.column]
        vector = "REAL" if self.dialect == "sqlite" else types["number"]
        # A key makes a second run of the INSERT fail, which would multiply rows.
        key = "" if self.dialect == "bigquery" else "PRIMARY KEY"
        columns = [" ".join(filter(None, (self._quoted("value"), types[kind], key)))]
        columns += [f"{self._quoted(f'v{i}')} {vector}" for i in range(part.width)]
        out = [f"DROP TABLE IF EXISTS {name};"] if replace else []
        out.append(f"CREATE TABLE {name} ({', '.join(columns)});")
        lines = [
            f"({', '.join([key, *(number(v, self.dialect) for v in row)])})"
            for key, row in zip(self._keys(part, kind), part.rows.tolist(), strict=True)
        ]
        for start in range(0, len(lines), _AT_ONCE):
            rows = ",\n".join(lines[start : start + _AT_ONCE])
            out.append(f"INSERT INTO {name} VALUES\n{rows};")
        return "\n".join(out)

    def _keys(self, part: Lookup, kind: str) -> list[str]:
        keys = [literal(label, kind, self.dialect, part.column) for label in part.labels]
        if len(set(keys)) < len(keys):
            raise ValueError(f"column {part.column!r}: as {kind} two of its values are equal")
        if self.dialect == "postgres":
            _check_fits_postgres(part)
        return keys

    # -- select ----------------------------------------------------------------------------

    def select(self, table: Any, keep: list[str]) -> str:
        """Return the query that embeds rows."""
        dimensions = [term for step in self.plan.steps for term in self._terms(step)]
        names = output_names(self.plan.names, keep, self.dialect)
        columns = [f"  {self._cell(name)}" for name in keep]
        columns += [
            f"  {term} AS {self._quoted(name)}"
            for term, name in zip(dimensions, names, strict=True)
        ]
        joins = [
            f"LEFT JOIN {self._quoted(name)} AS w{i} "
            f"ON w{i}.{self._quoted('value')} = {self._key(part)}"
            for i, (part, name) in enumerate(zip(self.lookups, self.names, strict=True))
        ]
        source = f"FROM {self._quoted(table)} AS t"
        if self.computed:
            extra = (
                f"{self._computed(*line)} AS {self._quoted(name)}"
                for line, name in self.computed.items()
            )
            source = f"FROM (SELECT t.*, {', '.join(extra)} {source}) AS t"
        return "\n".join(["SELECT", ",\n".join(columns), source, *joins])

    def _terms(self, step: Step) -> list[str]:
        """Return the dimensions of a step."""
        if isinstance(step, Line):
            return self._line(step)
        if isinstance(step, Sum):
            parts = [self._terms(part) for part in step.steps]
            return [" + ".join(terms) for terms in zip(*parts, strict=True)]
        return [self._looked_up(step, d) for d in range(step.width)]

    def _looked_up(self, part: Lookup, d: int) -> str:
        """Return one dimension of a value, of a missing one, or of an unknown one."""
        found = f"{self.aliases[id(part)]}.{self._quoted(f'v{d}')}"
        missing, unknown = (
            None if row is None else number(row[d], self.dialect)
            for row in (part.missing, part.unknown)
        )
        if missing == unknown:
            return found if missing is None else f"COALESCE({found}, {missing})"
        other = f"CASE WHEN {self._is_missing(part)} THEN {missing or 'NULL'}"
        return f"COALESCE({found}, {other} ELSE {unknown or 'NULL'} END)"

    def _line(self, part: Line) -> list[str]:
        """Return the dimensions of a number."""
        x = self._without_nan(self._cell(part.column))
        if self._is_computed(part):
            x = self._cell(self.computed[part.column, part.cycle])
        if part.knots is None or part.rows is None:
            mean, factor = number(part.mean, self.dialect), number(part.factor, self.dialect)
            found = [f"({x} - ({mean})) * ({factor})"]
        else:
            found = [self._pieces(x, part.knots, curve) for curve in part.rows.T]
        if part.missing is None:
            return found
        filled = (number(value, self.dialect) for value in part.missing.tolist())
        return [f"COALESCE({term}, {value})" for term, value in zip(found, filled, strict=True)]

    def _pieces(self, x: str, knots: np.ndarray, curve: np.ndarray) -> str:
        """Return one coordinate of a curve: the piece that a number is in; NULL of NULL.

        Each piece counts from its first knot, so that no digit is lost however far they lie apart.
        """
        slopes = (np.diff(curve) / np.diff(knots)).tolist()
        start, value, slope = (
            [f"({number(n, self.dialect)})" for n in part]
            for part in (knots[:-1].tolist(), curve[:-1].tolist(), slopes)
        )
        pieces = [f"{v} + ({x} - {k}) * {s}" for k, v, s in zip(start, value, slope, strict=True)]
        if len(pieces) == 1:
            return pieces[0]
        cases = [
            f"WHEN {x} < {k} THEN {piece}" for k, piece in zip(start[1:], pieces, strict=False)
        ]
        return f"CASE {' '.join(cases)} ELSE {pieces[-1]} END"

    # -- datetimes, and numbers that are written as text -------------------------------------

    def _is_computed(self, part: Line) -> bool:
        column = self.plan.columns.get(part.column)
        written = column is not None and (column.kind == "datetime" or column.decimal is not None)
        return written or part.knots is not None

    def _computed(self, name: str, cycle: float) -> str:
        """Return the number of a cell: seconds since 1970, or what a text says."""
        column, cell = self.plan.columns[name], self._cell(name)
        if column.kind != "datetime" and column.decimal is None:
            return self._without_nan(cell)
        text = "TEXT" if self.dialect == "sqlite" else TYPES[self.dialect]["text"]
        words = ", ".join(sql_text(word) for word in sorted(MISSING_WORDS))
        if column.is_clock:
            x = _clock_seconds(cell, text, self.dialect)
        elif column.kind == "datetime":
            x = _SECONDS[self.dialect](cell, column)
        else:
            x = _written_number(f"CAST({cell} AS {text})", column, self.dialect)
        x = f"CASE WHEN LOWER(TRIM(CAST({cell} AS {text}))) IN ({words}) THEN NULL ELSE {x} END"
        if not cycle:
            return x
        length = number(cycle, self.dialect)
        return f"({x}) - {length} * FLOOR(({x}) / {length})"

    def _key(self, part: Lookup) -> str:
        """Return the cell in the type of the value table."""
        cell, kind = self._cell(part.column), self.kinds[part.column]
        if self.dialect == "sqlite":
            return f"+{cell}"  # the sign takes the column's own type away: nothing is converted
        if kind == "number":
            return self._without_nan(cell)
        if kind in ("text", "date", "timestamp", "timestamptz"):
            # Enums, dates and identifiers are text in tabweave; datetimes often are in databases.
            return f"CAST({cell} AS {TYPES[self.dialect][kind]})"
        return cell

    def _is_missing(self, part: Lookup) -> str:
        cell, kind = self._cell(part.column), self.kinds[part.column]
        if kind == "number":
            cell = self._without_nan(cell)
        if self.plan.empty_is_missing and kind in ("text", "any"):
            cell = f"NULLIF({cell}, '')"
        return f"{cell} IS NULL"

    def _without_nan(self, cell: str) -> str:
        """Return a cell as a number, NULL where it is not a number."""
        if self.dialect == "sqlite":
            return cell  # has no NaN
        as_float = f"CAST({cell} AS {TYPES[self.dialect]['number']})"
        if self.dialect == "bigquery":
            return f"IF(IS_NAN({as_float}), NULL, {as_float})"
        return f"NULLIF({as_float}, CAST('NaN' AS {TYPES[self.dialect]['number']}))"

    def _cell(self, column: str) -> str:
        return f"t.{self._quoted(column)}"

    def _quoted(self, name: Any) -> str:
        return quoted(name, self.dialect)


def _written_number(text: str, column: Any, dialect: str) -> str:
    """Return the number that a text writes, without its unit, percent sign and thousands."""
    if column.decimal == DURATIONS:
        raise ValueError(
            f"column {column.name!r} holds durations as text, such as 1h 20m, which SQL does not "
            "read; convert it to a number of seconds, before fit and in the database"
        )
    for unit in (f"{column.unit}s", column.unit) if column.unit else ():
        text = f"REPLACE(LOWER({text}), {_text(unit, dialect)}, '')"
    read = _sqlite_number if dialect == "sqlite" else _signed_number
    return read(text, "," if column.decimal == "." else ".", dialect)


def _signed_number(text: str, thousands: str, dialect: str) -> str:
    """Return the number of a text that may have a currency and a sign anywhere around it."""
    signs = "|".join(re.sub(r"\$", "[$]", sign) for sign in CURRENCIES)
    everywhere = "" if dialect == "bigquery" else ", 'g'"
    text = f"REGEXP_REPLACE({text}, {_text(signs, dialect)}, ''{everywhere})"
    text = _without_groups(text, thousands, dialect)
    for written, read in (("−", "-"), ("(", "-"), (")", ""), ("%", "")):  # (5) is -5
        text = f"REPLACE({text}, {_text(written, dialect)}, {_text(read, dialect)})"
    first = f"'-' || REPLACE({text}, '-', '')"  # 5.00- is -5
    text = f"CASE WHEN {text} LIKE '%-' THEN {first} ELSE {text} END"
    return f"CAST({text} AS {TYPES[dialect]['number']})"


def _sqlite_number(text: str, thousands: str, dialect: str) -> str:
    """Return the same in SQLite, which has no patterns and nests but some thirty functions."""
    around = "".join(sorted({*"".join(CURRENCIES), *"()+-−%", *BLANKS}))
    sign = f"CASE WHEN REPLACE(LOWER({text}), 'e-', '') GLOB '*[-−(]*' THEN -1 ELSE 1 END"
    text = _without_groups(f"TRIM({text}, {_text(around, dialect)})", thousands, dialect)
    # SQLite takes any text for a number, 0 if need be.
    wrong = f"{text} = '' OR {text} GLOB '*[^0-9.eE+-]*'"
    return f"CASE WHEN {wrong} THEN NULL ELSE ({sign}) * CAST({text} AS REAL) END"


def _without_groups(text: str, thousands: str, dialect: str) -> str:
    """Return a number without what separates its thousands, and with a decimal point."""
    for sign in (*BLANKS, *APOSTROPHES, thousands):
        text = f"REPLACE({text}, {_text(sign, dialect)}, '')"
    return f"REPLACE({text}, ',', '.')"


_WITHOUT_OFFSET = "'^[0-9-]{10}([T ][0-9:.]*)?'"  # of ISO text


def _to_minutes(cell: str, column: Any, text: str) -> str:
    """Return ISO text that ends with the hour with minutes, too, which databases ask for."""
    if column.why not in (ISO_TEXT, "declared"):
        return cell
    written = f"CAST({cell} AS {text})"
    return f"CASE WHEN LENGTH({written}) = 13 THEN {written} || ':00' ELSE {written} END"


def _duckdb_seconds(cell: str, column: Any) -> str:
    if column.zone is None:
        wall = f"CAST({_to_minutes(cell, column, 'VARCHAR')} AS TIMESTAMP)"
    elif column.zone == OWN_CLOCK:
        wall = f"CAST(regexp_extract(CAST({cell} AS VARCHAR), {_WITHOUT_OFFSET}) AS TIMESTAMP)"
    else:
        wall = f"timezone({_zone(column)}, CAST({cell} AS TIMESTAMPTZ))"
    return f"epoch_us({wall}) / 1e6"


def _postgres_seconds(cell: str, column: Any) -> str:
    if column.zone is None:
        wall = f"CAST({_to_minutes(cell, column, 'TEXT')} AS TIMESTAMP)"
    elif column.zone == OWN_CLOCK:
        pattern = _WITHOUT_OFFSET.replace("([T", "(?:[T")
        wall = f"CAST(substring(CAST({cell} AS TEXT) from {pattern}) AS TIMESTAMP)"
    else:
        wall = f"(CAST({cell} AS TIMESTAMPTZ) AT TIME ZONE {_zone(column)})"
    return f"CAST(EXTRACT(EPOCH FROM {wall}) AS DOUBLE PRECISION)"


def _sqlite_seconds(cell: str, column: Any) -> str:
    """Return whole seconds and the fraction behind them; a number is seconds already."""
    whole = f"substr({cell}, 1, 19) || CASE WHEN length({cell}) = 13 THEN ':00' ELSE '' END"
    if column.zone not in (None, OWN_CLOCK):
        _check_utc(column)
        whole += f" || CASE WHEN substr({cell}, -6, 1) IN ('+', '-') AND length({cell}) > 16"
        whole += f" THEN substr({cell}, -6) ELSE '' END"
    part = f"CASE WHEN substr({cell}, 20, 1) = '.' THEN CAST('0' || substr({cell}, 20) AS REAL)"
    seconds = f"CAST(strftime('%s', {whole}) AS REAL) + {part} ELSE 0 END"
    return f"CASE WHEN typeof({cell}) IN ('integer', 'real') THEN {cell} ELSE {seconds} END"


def _bigquery_seconds(cell: str, column: Any) -> str:
    if column.zone is None:
        wall = f"CAST({_to_minutes(cell, column, 'STRING')} AS DATETIME)"
    elif column.zone == OWN_CLOCK:
        wall = f"CAST(REGEXP_EXTRACT(CAST({cell} AS STRING), r{_WITHOUT_OFFSET}) AS DATETIME)"
        wall = wall.replace("([T", "(?:[T")
    else:
        wall = f"DATETIME(CAST({cell} AS TIMESTAMP), {_zone(column)})"
    return f"UNIX_MICROS(TIMESTAMP({wall})) / 1e6"


def _clock_seconds(cell: str, text: str, dialect: str) -> str:
    """Return the seconds since midnight of a time of day, as a type of its own or as text."""
    cell = f"TRIM(CAST({cell} AS {text}))"
    kind = "REAL" if dialect == "sqlite" else TYPES[dialect]["number"]
    cell = f"CASE WHEN SUBSTR({cell}, 2, 1) = ':' THEN '0' || {cell} ELSE {cell} END"
    hour, minute = (f"CAST(SUBSTR({cell}, {at}, 2) AS {kind})" for at in (1, 4))
    half = f"CASE WHEN UPPER({cell}) LIKE '%PM' THEN 12 ELSE 0 END"
    halved = f"CASE WHEN {hour} = 12 THEN 0 ELSE {hour} END + {half}"
    hour = f"(CASE WHEN UPPER({cell}) LIKE '%M' THEN {halved} ELSE {hour} END)"
    tail = f"REPLACE(REPLACE(UPPER(SUBSTR({cell}, 7)), 'AM', ''), 'PM', '')"
    seconds = f"TRIM(REPLACE({tail}, ',', '.'))"
    last = f"CASE WHEN SUBSTR({cell}, 6, 1) = ':' THEN CAST({seconds} AS {kind}) ELSE 0 END"
    return f"3600 * {hour} + 60 * {minute} + {last}"


_SECONDS = {
    "duckdb": _duckdb_seconds,
    "postgres": _postgres_seconds,
    "sqlite": _sqlite_seconds,
    "bigquery": _bigquery_seconds,
}


def _zone(column: Any) -> str:
    return sql_text(column.zone)


def _check_utc(column: Any) -> None:
    if column.zone != "UTC":
        raise ValueError(
            f"column {column.name!r} has the time zone {column.zone!r}, but SQLite does not know "
            f"time zones; convert it to UTC before fit, or use another dialect"
        )


def _written_dates(column: Any) -> str:
    """Return in words how the text of a column writes its dates."""
    if column.date_order == PERIODS:
        return "months, quarters or weeks such as 2024-03, 2024Q1 or 2024-W05"
    return {"ymd": "dates such as 2016/7/21 or 20160721", "dmy": "dates such as 21.07.2016"}.get(
        column.date_order, "dates such as 7/21/2016"
    )


def _checked_types(types: Mapping[str, str], plan: Plan) -> Mapping[str, str]:
    dated = [c.name for c in plan.columns.values() if c.date_order is not None]
    for name in dated:
        if types.get(name) not in ("date", "timestamp"):
            raise ValueError(
                f"column {name!r} was fitted on {_written_dates(plan.columns[name])}, which "
                f"databases read in different ways; make it a date column in the database, and "
                f"pass types={{{name!r}: 'date'}} (in the shell, --type {name}=date)"
            )
    columns = {*(part.column for part in plan.lookups), *dated}
    for column, kind in types.items():
        if column not in columns:
            raise ValueError(f"types: expected a column of {sorted(columns)}, got {column!r}")
        if kind not in KINDS:
            raise ValueError(f"types[{column!r}]: expected one of {', '.join(KINDS)}, got {kind!r}")
    return types


def _check_limits(plan: Plan, n_kept: int, dialect: str) -> None:
    width = len(plan.names) + n_kept
    tables = 1 + len(plan.lookups)
    if not plan.names:
        raise ValueError("the vectors have no dimension: no column has two values")
    most_columns, most_tables = _LIMITS.get(dialect, (np.inf, np.inf))
    for found, most, what in ((width, most_columns, "columns"), (tables, most_tables, "tables")):
        if found > most:
            raise ValueError(
                f"the query has {found} {what}, {dialect} takes {most}; use dialect='duckdb' or "
                "tabweave.export.parquet, or an embedder with fewer dimensions"
            )


def _check_fits_postgres(part: Lookup) -> None:
    """Refuse values that PostgreSQL cannot index, and vectors that it cannot store in a row."""
    longest = max((v for v in part.labels if isinstance(v, str | bytes)), key=len, default="")
    n_bytes = len(longest.encode() if isinstance(longest, str) else longest)
    if n_bytes > MAX_POSTGRES_KEY_BYTES:
        raise ValueError(
            f"column {part.column!r}: expected values of up to {MAX_POSTGRES_KEY_BYTES:,} bytes, "
            f"which PostgreSQL can index, got {longest[:20]!r}... of {n_bytes:,}; shorten it, or "
            "leave the column out"
        )
    if part.width > MAX_POSTGRES_WIDTH:
        raise ValueError(
            f"column {part.column!r}: expected at most {MAX_POSTGRES_WIDTH:,} dimensions, which a "
            f"row of PostgreSQL can hold, got {part.width:,}; use Weave, which has 128 for a "
            "column, or n_components"
        )


def _check_case(plan: Plan, dialect: str) -> None:
    """Refuse columns that are one column to a system: each would get the other's values."""
    if dialect == "postgres":  # names in quotes keep their case
        return
    seen: dict[str, str] = {}
    names = [*(part.column for part in plan.lookups), *(part.column for part in plan.lines)]
    for column in dict.fromkeys(names):
        ascii_only = re.sub("[A-Z]+", lambda letters: letters[0].lower(), column)
        other = seen.setdefault(column.lower() if dialect == "bigquery" else ascii_only, column)
        if other != column:
            raise ValueError(
                f"columns {other!r} and {column!r} are one name to {dialect}, which ignores case; "
                "rename one and fit again, or use dialect='postgres'"
            )


# -- names, types and literals, as four systems write them ----------------------------------------

DIALECTS = ("duckdb", "postgres", "sqlite", "bigquery")
KINDS = ("text", "number", "integer", "boolean", "bytes", "date", "timestamp", "timestamptz")
_NAMES = {
    "duckdb": "VARCHAR, DOUBLE, BIGINT, BOOLEAN, BLOB, DATE, TIMESTAMP, TIMESTAMPTZ",
    "postgres": "TEXT, DOUBLE PRECISION, BIGINT, BOOLEAN, BYTEA, DATE, TIMESTAMP, TIMESTAMPTZ",
    "bigquery": "STRING, FLOAT64, INT64, BOOL, BYTES, DATE, DATETIME, TIMESTAMP",
}
TYPES = {d: dict(zip(KINDS, names.split(", "), strict=True)) for d, names in _NAMES.items()}
# Without a declared type SQLite converts nothing: 1 and '1' stay two values.
TYPES["sqlite"] = dict.fromkeys((*KINDS, "any"), "")
_DATETIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)?")
_EXACT = 2**53  # whole numbers below are their own float64


def quoted(name: str | Sequence[str], dialect: str) -> str:
    """Return a name, or the parts of a qualified one, as an identifier."""
    parts = [name] if isinstance(name, str) else list(name)
    for part in parts:
        if not part or "\0" in part or (dialect == "bigquery" and "`" in part):
            raise ValueError(f"{dialect} has no way to write the name {part!r}; rename it")
        check_text(part)
    if dialect == "bigquery":
        return ".".join("`" + part.replace("\\", "\\\\") + "`" for part in parts)
    return ".".join(map(sql_name, parts))


def number(value: float, dialect: str) -> str:
    """Return a float64 literal that is read back as the same number."""
    value = float(value)
    if math.isinf(value):
        if dialect == "sqlite":
            return "9e999" if value > 0 else "-9e999"
        text = str(value) if dialect == "bigquery" else f"{value}inity"
        return f"CAST('{text}' AS {TYPES[dialect]['number']})"
    text = repr(value)
    # Without an exponent DuckDB reads a decimal, and rounds once more.
    return text if "e" in text or dialect != "duckdb" else f"{text}e0"


def kind_of(labels: Sequence[Label], column: str, dialect: str) -> str:
    """Return what type of column holds labels; raise for a mixture that no column holds."""
    types = {float if type(label) is int else type(label) for label in labels}
    if types <= {float}:
        if not types:
            return "text"
        return number_kind(labels, column)
    if len(types) == 1:
        found = {str: "text", bool: "boolean", bytes: "bytes"}[types.pop()]
        return _datetimes(labels, dialect) if found == "text" else found
    if dialect == "sqlite" and not {bool, float} <= types:
        return "any"
    names = ", ".join(sorted({type(label).__name__ for label in labels}))
    raise ValueError(
        f"column {column!r} has values of several types ({names}), and a column of {dialect} has "
        "one; make it text before fit"
    )


def number_kind(labels: Sequence[Any], column: str) -> str:
    """Return "number" for what float64 holds exactly, "integer" for what only int64 does."""
    whole = all(type(label) is int and abs(label) < 2**63 for label in labels)
    if whole and any(abs(label) >= _EXACT for label in labels):
        return "integer"
    for label in labels:
        if type(label) is int and abs(label) >= _EXACT and not is_float(label):
            raise ValueError(
                f"column {column!r}: {label} is neither a 64-bit integer nor a float64; make the "
                "column text before fit"
            )
    return "number"


def _datetimes(labels: Sequence[Any], dialect: str) -> str:
    """Return "timestamp" for texts that are all datetimes: a database writes those differently."""
    found = [_DATETIME.fullmatch(label) for label in labels]
    if dialect == "sqlite" or not all(found):
        return "text"
    zones = {match[2] is not None for match in found if match}
    if len(zones) > 1 or len(set(map(_datetime, labels))) < len(labels):
        return "text"
    return "timestamptz" if zones.pop() else "timestamp"


def literal(label: Any, kind: str, dialect: str, column: str) -> str:
    """Return a label as a literal of a kind."""
    if kind == "any":
        kind = kind_of([label], column, dialect)
    try:
        return _LITERALS[kind](label, dialect)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"column {column!r}: expected a {kind}, got {label!r} ({error})"
        ) from error


def _text(label: str, dialect: str) -> str:
    if not isinstance(label, str):
        raise TypeError("give types={column: ...} as the values are")
    check_text(label)
    if dialect == "bigquery":
        escaped = label.replace("\\", "\\\\").replace("'", "\\'")
        return "'" + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\x{ord(m[0]):02x}", escaped) + "'"
    if "\0" in label:
        if dialect == "postgres":
            raise ValueError("text in postgres cannot hold NUL characters")
        if dialect == "sqlite":
            return f"CAST(X'{label.encode().hex()}' AS TEXT)"
        return "(" + " || chr(0) || ".join(_text(p, dialect) for p in label.split("\0")) + ")"
    return sql_text(label)


def _number(label: Any, dialect: str) -> str:
    if isinstance(label, str | bytes | bool):
        raise TypeError("the model was fitted on other values")
    if dialect == "sqlite" and isinstance(label, float) and math.isfinite(label):
        # SQLite may round a decimal by a bit, and then the value is not found: a fraction is exact.
        above, below = label.as_integer_ratio()
        steps = below.bit_length() - 1
        halved = "".join(f"/{1 << min(62, steps - i)}.0" for i in range(0, steps, 62))
        return f"({above}.0{halved})"
    return number(label, dialect)


def _integer(label: Any, dialect: str) -> str:
    if type(label) is not int or not -(2**63) < label < 2**63:
        raise ValueError("expected an integer of at most 64 bits")
    return str(label)


def _boolean(label: Any, dialect: str) -> str:
    if type(label) is not bool:
        raise TypeError("the model was fitted on other values")
    return str(int(label)) if dialect == "sqlite" else str(label).upper()


def _bytes(label: Any, dialect: str) -> str:
    text = label.hex()
    if dialect == "duckdb":
        return f"from_hex('{text}')"
    return {
        "postgres": f"decode('{text}', 'hex')",
        "sqlite": f"X'{text}'",
        "bigquery": f"FROM_HEX('{text}')",
    }[dialect]


def _date(label: Any, dialect: str) -> str:
    return f"DATE '{dt.date.fromisoformat(label).isoformat()}'"


def _timestamp(label: Any, dialect: str) -> str:
    name = "DATETIME" if dialect == "bigquery" else "TIMESTAMP"
    return f"{name} '{_datetime(label).isoformat(' ')}'"


def _timestamptz(label: Any, dialect: str) -> str:
    name = "TIMESTAMP" if dialect == "bigquery" else "TIMESTAMPTZ"
    return f"{name} '{_datetime(label).isoformat(' ')}'"


_LITERALS = {
    "text": _text,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "bytes": _bytes,
    "date": _date,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
}


def _datetime(label: Any) -> dt.datetime:
    return dt.datetime.fromisoformat(label)


def is_float(whole: int) -> bool:
    """Tell whether float64 holds a whole number exactly."""
    try:
        return int(float(whole)) == whole
    except OverflowError:
        return False


def check_text(value: Any) -> None:
    """Raise for text that is not valid Unicode."""
    try:
        _ = value.encode() if isinstance(value, str) else None
    except UnicodeEncodeError:
        raise ValueError(f"expected valid Unicode, got {value!r}; databases need it") from None


# -- names of tables and dimensions --------------------------------------------------------------


def table_names(prefix: str | Sequence[str], columns: Sequence[str]) -> list[list[str]]:
    """Return the names of the value tables: short, plain, and no two alike."""
    *schema, stem = [prefix] if isinstance(prefix, str) else list(prefix)
    taken: set[str] = set()
    plain = [re.sub(r"[^a-z0-9]+", "_", c.lower()).strip("_")[:30] or "column" for c in columns]
    return [[*schema, _free(f"{stem}_{name}", taken)] for name in plain]


def output_names(names: Sequence[str], keep: Sequence[str], dialect: str) -> list[str]:
    """Return a name for each dimension that the system takes; most ignore case."""
    taken = {name.lower() for name in keep}
    names = [re.sub("[\0\ud800-\udfff]", "_", name) for name in names]  # of values, here
    if dialect == "bigquery":
        names = [re.sub(r"\W", "_", name)[:250] for name in names]
    elif dialect == "postgres":  # cuts names at 63 bytes, and two may then be one
        names = [name.encode()[:55].decode(errors="ignore") for name in names]
    return [_free(name, taken) for name in names]


def _free(name: str, taken: set[str]) -> str:
    """Return a name, or the first with a number behind it that is not taken; and take it."""
    found = next(
        n for n in chain([name], (f"{name}_{i}" for i in count(2))) if n.lower() not in taken
    )
    taken.add(found.lower())
    return found
