"""sql: value tables as CREATE and INSERT, and a SELECT that looks rows up in them."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any

import numpy as np

from tabweave.columns.cells import column_of
from tabweave.columns.datetime import PERIODS
from tabweave.columns.numeric import sql_number
from tabweave.columns.vocabulary import Label
from tabweave.export.plan import Cuts, JointTable, Plan, ScorePlan, plan_of, scores_of
from tabweave.io.dialects import DIALECTS, EXPORTED, KINDS, Dialect, check_text
from tabweave.space.space import Line, Lookup, Step, Sum

Named = list[tuple[str, str]]  # names of columns, and what computes them


class Script(str):
    """SQL text, and its two parts.

    Attributes
    ----------
    tables : str
        The CREATE and INSERT statements, to be run once.
    statements : tuple of str
        The same one by one, for drivers that take one at a time, such as ADBC's of PostgreSQL.
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
    statements: tuple[str, ...]
    select: str

    def __new__(cls, statements: Iterable[str], select: str) -> Script:
        """Join the two parts."""
        statements = tuple(statements)
        tables = "\n".join(statements)
        out = super().__new__(cls, f"{tables}\n{select};\n")
        out.tables, out.statements, out.select = tables, statements, select
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
    vector: str | None = None,
) -> Script:
    """SQL that embeds the rows of a table as ``transform`` does.

    Parameters
    ----------
    embedder : Embedder or Windowed
        A fitted embedder. Set-valued columns and numbers that a transformer has mixed are refused.
        Of a :class:`~tabweave.BoostedWeave` the SQL gives what it predicts: the number, or the
        class and the probability of each class.
    dialect : {"duckdb", "postgres", "sqlite", "bigquery", "trino", "spark", "databricks"}, \
            default="duckdb"
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
    vector : str, optional
        Name of one column of arrays that hold whole vectors, as pgvector takes them; tables of
        values then hold arrays, too, and many dimensions cost little more than few. By default each
        dimension is a column.

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
    had one in fit; SQLite has no names of time zones, only UTC and offsets. A timestamp with time
    zone where fit saw none, or text with several offsets, is an error of the database. Text that is
    read as numbers may be text or numbers.

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
    if dialect not in EXPORTED:
        raise ValueError(f"expected dialect to be one of {', '.join(EXPORTED)}, got {dialect!r}")
    passed = [keep] if isinstance(keep, str) else list(keep)
    scores = scores_of(embedder)
    plan = plan_of(embedder) if scores is None else scores.cells
    _check_types(types or {}, plan)
    of_dialect = DIALECTS[dialect], types or {}, prefix
    if scores is None:
        writer = SqlWriter(plan, *of_dialect, vector)
        _check_limits(plan, len(passed), DIALECTS[dialect], vector)
    elif vector is not None:
        raise ValueError("vector: expected an embedder, got a model that predicts; leave it out")
    else:
        writer = ScoreWriter(scores, *of_dialect)
    _check_case(plan, dialect)
    return Script(writer.tables(replace), writer.select(table, passed))


class SqlWriter:
    """Writes the statements of one plan in one dialect."""

    def __init__(
        self,
        plan: Plan,
        dialect: Dialect,
        kinds: Mapping[str, str],
        prefix: Any,
        vector: str | None = None,
    ) -> None:
        self.dialect, self.vector = dialect, vector
        # Tables of values that are not summed hold arrays, where vectors are arrays.
        self.arrays = {id(step) for step in plan.steps if vector and isinstance(step, Lookup)}
        self.quoted = dialect.identifier
        self.plan = plan
        self.lookups = [part for part in plan.lookups if part.width]
        self.aliases = {id(part): f"w{i}" for i, part in enumerate(self.lookups)}
        self.kinds = {
            p.column: kinds.get(p.column) or kind_of(p.labels, p.column, dialect.name)
            for p in self.lookups
        }
        self.names = table_names(prefix, [p.column for p in self.lookups])
        # Numbers that take more than a cast are computed once a row, in a subquery.
        lines = dict.fromkeys(p.part for p in plan.lines if self._is_computed(p))
        parts: list[Lookup | Line] = [*plan.lookups, *plan.lines]
        taken = {part.column.lower() for part in parts}
        free = (n for i in count() if (n := f"tabweave number {i}") not in taken)
        self.computed = dict(zip(lines, free, strict=False))

    # -- tables ----------------------------------------------------------------------------

    def tables(self, replace: bool) -> list[str]:
        """The statements that make the value tables."""
        pairs = zip(self.lookups, self.names, strict=True)
        tables = (self._table(part, self.quoted(name), replace) for part, name in pairs)
        return list(chain.from_iterable(tables))

    def _table(self, part: Lookup, name: str, replace: bool) -> list[str]:
        kind = self.kinds[part.column]
        is_array, keys = id(part) in self.arrays, self._keys(part, kind)
        return self._filled(name, kind, keys, part.rows, replace, is_array=is_array)

    def _filled(
        self,
        name: str,
        kind: str,
        keys: Iterable[str],
        rows: np.ndarray,
        replace: bool,
        *,
        is_array: bool = False,
    ) -> list[str]:
        """The statements that make a table of numbers under keys."""
        number, of = self.dialect.number, self.dialect.number_type
        # A key makes a second run of the INSERT fail, which would multiply rows.
        key = "PRIMARY KEY" if self.dialect.has_keys else ""
        columns = [" ".join(filter(None, (self.quoted("value"), self.dialect.types[kind], key)))]
        cells = [list(map(number, row)) for row in rows.tolist()]
        if is_array:
            columns.append(f"{self.quoted('v')} {self.dialect.array_type.format(of)}")
            cells = [[self.dialect.vector(row)] for row in cells]
        else:
            columns += [f"{self.quoted(f'v{i}')} {of}" for i in range(rows.shape[1])]
        out = [f"DROP TABLE IF EXISTS {name};"] if replace else []
        out.append(f"CREATE TABLE {name} ({', '.join(columns)});")
        lines = [f"({', '.join([key, *row])})" for key, row in zip(keys, cells, strict=True)]
        rows_of_insert = 500
        for start in range(0, len(lines), rows_of_insert):
            listed = ",\n".join(lines[start : start + rows_of_insert])
            out.append(f"INSERT INTO {name} VALUES\n{listed};")
        return out

    def _keys(self, part: Lookup, kind: str) -> list[str]:
        keys = [literal(label, kind, self.dialect, part.column) for label in part.labels]
        if len(set(keys)) < len(keys):
            raise ValueError(f"column {part.column!r}: as {kind} two of its values are equal")
        if self.dialect.name == "postgres":
            _check_fits_postgres(part)
        return keys

    # -- select ----------------------------------------------------------------------------

    def select(self, table: Any, keep: list[str]) -> str:
        """The query that embeds rows."""
        if self.vector is None:
            dimensions = [term for step in self.plan.steps for term in self._terms(step)]
            names = output_names(self.plan.names, keep, self.dialect.name)
        else:
            parts = [part for step in self.plan.steps if (part := self._part(step))]
            dimensions, names = [self.dialect.concatenated(parts)], [self.vector]
        columns = [f"  {self._cell(name)}" for name in keep]
        columns += [
            f"  {term} AS {self.quoted(name)}" for term, name in zip(dimensions, names, strict=True)
        ]
        joins = [
            f"LEFT JOIN {self.quoted(name)} AS w{i} "
            f"ON w{i}.{self.quoted('value')} = {self._key(part)}"
            for i, (part, name) in enumerate(zip(self.lookups, self.names, strict=True))
        ]
        source = f"FROM {self.quoted(table)} AS t"
        if self.computed:
            numbers = (
                f"{self._computed(line)} AS {self.quoted(name)}"
                for line, name in self.computed.items()
            )
            source = f"FROM (SELECT t.*, {', '.join(numbers)} {source}) AS t"
        return "\n".join(["SELECT", ",\n".join(columns), source, *joins])

    def _terms(self, step: Step) -> list[str]:
        """The dimensions of a step."""
        if isinstance(step, Line):
            return self._line(step)
        if isinstance(step, Sum):
            parts = [self._terms(part) for part in step.steps]
            return [" + ".join(terms) for terms in zip(*parts, strict=True)]
        return [self._looked_up(step, d) for d in range(step.width)]

    def _part(self, step: Step) -> str:
        """The dimensions of a step as an array; of a curve, all of a piece at once."""
        if isinstance(step, Lookup):
            return self._looked_up(step) if step.width else ""
        if isinstance(step, Line) and step.knots is not None and step.rows is not None:
            curve = self._pieces(self._cell(self.computed[step.part]), step.knots, step.rows)
            if step.missing is None:
                return curve
            return f"COALESCE({curve}, {self._row(step.missing, None)})"
        terms = self._terms(step)
        return self.dialect.vector(terms) if terms else ""

    def _looked_up(self, part: Lookup, d: int | None = None) -> str:
        """One dimension, or the array of all, of a value, of a missing or of an unknown one."""
        value = f"{self.aliases[id(part)]}.{self.quoted('v' if d is None else f'v{d}')}"
        missing, unknown = (
            None if row is None else self._row(row, d) for row in (part.missing, part.unknown)
        )
        if missing == unknown:
            return value if missing is None else f"COALESCE({value}, {missing})"
        other = f"CASE WHEN {self._is_missing(part)} THEN {missing or 'NULL'}"
        return f"COALESCE({value}, {other} ELSE {unknown or 'NULL'} END)"

    def _row(self, row: np.ndarray, d: int | None) -> str:
        """One dimension of a vector, or all of them as an array."""
        if d is not None:
            return self.dialect.number(row[d])
        return self.dialect.vector(list(map(self.dialect.number, row.tolist())))

    def _line(self, part: Line) -> list[str]:
        """The dimensions of a number."""
        number, x = self.dialect.number, self._without_nan(self._cell(part.column))
        if self._is_computed(part):
            x = self._cell(self.computed[part.part])
        if part.knots is None or part.rows is None:
            terms = [f"({x} - ({number(part.mean)})) * ({number(part.factor)})"]
        else:
            terms = [self._pieces(x, part.knots, curve) for curve in part.rows.T]
        if part.missing is None:
            return terms
        missing = map(number, part.missing.tolist())
        return [f"COALESCE({term}, {value})" for term, value in zip(terms, missing, strict=True)]

    def _pieces(self, x: str, knots: np.ndarray, curve: np.ndarray) -> str:
        """One coordinate of a curve, or all as an array: the piece a number is in; NULL of NULL.

        Each piece counts from its first knot, so that no digit is lost however far they lie apart.
        """
        curves = curve.reshape(len(knots), -1)
        slopes = np.diff(curves, axis=0) / np.diff(knots)[:, None]
        start = [f"({self.dialect.number(knot)})" for knot in knots[:-1].tolist()]
        pieces = []
        for k, values, slope in zip(start, curves.tolist(), slopes.tolist(), strict=False):
            numbers = zip(
                *(map(self.dialect.number, part) for part in (values, slope)), strict=True
            )
            terms = [f"({v}) + ({x} - {k}) * ({s})" for v, s in numbers]
            pieces.append(terms[0] if curve.ndim == 1 else self.dialect.vector(terms))
        cases = [
            f"WHEN {x} < {k} THEN {piece}" for k, piece in zip(start[1:], pieces, strict=False)
        ]
        if curve.ndim > 1:
            cases = [f"WHEN {x} IS NULL THEN NULL", *cases]
        return f"CASE {' '.join(cases)} ELSE {pieces[-1]} END" if cases else pieces[0]

    # -- datetimes, and numbers that are written as text -------------------------------------

    def _is_computed(self, part: Line) -> bool:
        column = self.plan.columns.get(part.column)
        return part.knots is not None or (column is not None and column.is_read)

    def _computed(self, part: str) -> str:
        """The number of a part of a column."""
        column = self.plan.columns[column_of(part)]
        return column.cells_type.sql(part, column, self._cell(column.name), self.dialect)

    def _key(self, part: Lookup) -> str:
        """The cell in the type of the value table."""
        cell, kind = self._cell(part.column), self.kinds[part.column]
        if self.dialect.name == "sqlite":
            return f"+{cell}"  # the sign takes the column's own type away: nothing is converted
        if kind == "number":
            return self._without_nan(cell)
        if kind in ("text", "date", "timestamp", "timestamptz"):
            # Enums, dates and identifiers are text in tabweave; datetimes often are in databases.
            return f"CAST({cell} AS {self.dialect.types[kind]})"
        return cell

    def _is_missing(self, part: Lookup) -> str:
        cell, kind = self._cell(part.column), self.kinds[part.column]
        if kind == "number":
            cell = self._without_nan(cell)
        texts = self.plan.missing_texts if kind in ("text", "any") else ()
        for text in dict.fromkeys(texts):
            cell = f"NULLIF({cell}, {self.dialect.text(text)})"
        return f"{cell} IS NULL"

    def _without_nan(self, cell: str) -> str:
        return sql_number(cell, self.dialect)

    def _cell(self, column: str) -> str:
        return f"t.{self.quoted(column)}"


class ScoreWriter(SqlWriter):
    """Writes the statements of a plan of scores: codes of cells, what they add, probabilities.

    Each step is a query over the one before it, which joins no more tables than a database takes.
    """

    def __init__(
        self, scores: ScorePlan, dialect: Dialect, kinds: Mapping[str, str], prefix: Any
    ) -> None:
        super().__init__(scores.cells, dialect, kinds, prefix)
        self.scores = scores
        codes = [f"{part.column} code" for part in self.lookups]
        names = table_names(prefix, [*codes, *(term.title for term in scores.terms)])
        self.names, self.term_names = names[: len(codes)], names[len(codes) :]
        taken = [part.column.lower() for part in scores.axes]
        stems = (f"tabweave{'_' * i} " for i in count())
        self.stem = next(s for s in stems if not any(name.startswith(s) for name in taken))
        parts = dict.fromkeys(axis.part for axis in scores.axes if isinstance(axis, Cuts))
        self.computed = {part: f"{self.stem}number {i}" for i, part in enumerate(parts)}

    def tables(self, replace: bool) -> list[str]:
        """The statements that make the tables of codes, and of what they add."""
        out = super().tables(replace)
        for term, name in zip(self.scores.terms, self.term_names, strict=True):
            codes = map(str, range(len(term.rows)))
            out += self._filled(self.quoted(name), "integer", codes, term.rows, replace)
        return out

    def select(self, table: Any, keep: list[str]) -> str:
        """The query that scores rows."""
        source, queries = f"{self.quoted(table)} AS t", []
        for i, (columns, joins) in enumerate(self._queries()):
            listed = ",\n".join(f"  {term} AS {self._inner(name)}" for name, term in columns)
            query = "\n".join(["SELECT t.*,", listed, f"FROM {source}", *joins])
            name = self._inner(f"step {i}")
            queries.append(f"{name} AS {self.dialect.materialized}(\n{query}\n)")
            source = f"{name} AS t"
        names = output_names(self.scores.names, keep, self.dialect.name)
        outputs = [f"  {self._cell(name)}" for name in keep]
        outputs += [
            f"  {term} AS {self.quoted(name)}"
            for term, name in zip(self._answers(), names, strict=True)
        ]
        steps = ",\n".join(queries)
        return "\n".join([f"WITH {steps}", "SELECT", ",\n".join(outputs), f"FROM {source}"])

    def _queries(self) -> Iterator[tuple[Named, list[str]]]:
        """The columns that each step adds, and what it joins."""
        joins_of_step = 40
        axes, terms = list(enumerate(self.scores.axes)), list(enumerate(self.scores.terms))
        if self.computed:
            numbers = enumerate(map(self._computed, self.computed))
            yield [(f"number {i}", number) for i, number in numbers], []
        for start in range(0, len(axes), joins_of_step):
            coded = axes[start : start + joins_of_step]
            joins = [self._code_join(axis) for _, axis in coded if isinstance(axis, Lookup)]
            yield [(f"code {i}", self._code(axis)) for i, axis in coded], joins
        sums = list(map(self.dialect.number, self.scores.intercept.tolist()))
        for start in range(0, max(len(terms), 1), joins_of_step):
            part = terms[start : start + joins_of_step]
            added = [
                " + ".join([total, *(f"w{t}.{self.quoted(f'v{k}')}" for t, _ in part)])
                for k, total in enumerate(sums)
            ]
            columns = [(f"score {start} {k}", total) for k, total in enumerate(added)]
            yield columns, [self._term_join(t, term) for t, term in part]
            sums = [self._of(name) for name, _ in columns]
        self.sums = sums
        if len(sums) > 1:
            greatest = "MAX" if self.dialect.name == "sqlite" else "GREATEST"
            yield [("largest", f"{greatest}({', '.join(sums)})")], []
            largest = self._of("largest")
            yield [(f"share {k}", self._exp(f"({s} - {largest})")) for k, s in enumerate(sums)], []

    # -- codes and joint codes -------------------------------------------------------------

    def _code(self, axis: Lookup | Cuts) -> str:
        """The code of a cell."""
        if isinstance(axis, Cuts):
            return self._cut(axis)
        whole = "INTEGER" if self.dialect.name == "sqlite" else self.dialect.types["integer"]
        return f"CAST({self._looked_up(axis, 0)} AS {whole})"

    def _code_join(self, axis: Lookup) -> str:
        i = next(i for i, part in enumerate(self.lookups) if part is axis)
        value = f"w{i}.{self.quoted('value')}"
        return f"LEFT JOIN {self.quoted(self.names[i])} AS w{i} ON {value} = {self._key(axis)}"

    def _cut(self, axis: Cuts) -> str:
        """How many edges are at most a number: half of them are ruled out at a time."""
        x = self._cell(self.computed[axis.part])

        def code(start: int, stop: int) -> str:
            if start == stop:
                return str(start)
            middle = (start + stop) // 2
            edge = self.dialect.number(axis.edges[middle])
            low, high = code(start, middle), code(middle + 1, stop)
            return f"CASE WHEN {x} < {edge} THEN {low} ELSE {high} END"

        missing = "NULL" if axis.missing is None else str(axis.missing)
        return f"CASE WHEN {x} IS NULL THEN {missing} ELSE {code(0, len(axis.edges))} END"

    def _term_join(self, t: int, term: JointTable) -> str:
        codes = (
            self._of(f"code {axis}") + (f" * {stride}" if stride > 1 else "")
            for axis, stride in zip(term.axes, term.strides, strict=True)
        )
        value = f"w{t}.{self.quoted('value')}"
        return (
            f"LEFT JOIN {self.quoted(self.term_names[t])} AS w{t} ON {value} = {' + '.join(codes)}"
        )

    # -- probabilities ---------------------------------------------------------------------

    def _answers(self) -> list[str]:
        """The prediction, and the probability of each class."""
        sums, classes = self.sums, self.scores.classes
        if classes is None:
            return sums
        kind = kind_of(classes, "class", self.dialect.name)
        labels = [literal(label, kind, self.dialect, "class") for label in classes]
        if len(sums) == 1:
            (score,) = sums
            falls, rises = self._exp(f"(-{score})"), self._exp(score)
            cases = [(f"{score} <= 0", labels[0]), (f"{score} > 0", labels[1])]
            less, more = f"{rises} / (1 + {rises})", f"1 / (1 + {falls})"
            first, second = f"{falls} / (1 + {falls})", f"1 / (1 + {rises})"
            shares = [
                f"CASE WHEN {score} > 0 THEN {first} ELSE {second} END",
                f"CASE WHEN {score} > 0 THEN {more} ELSE {less} END",
            ]
        else:
            parts = [self._of(f"share {k}") for k in range(len(sums))]
            shares = [f"{part} / ({' + '.join(parts)})" for part in parts]
            largest = self._of("largest")
            cases = [(f"{s} = {largest}", label) for s, label in zip(sums, labels, strict=True)]
        chosen = " ".join(f"WHEN {test} THEN {label}" for test, label in cases)
        return [f"CASE {chosen} END", *shares]

    def _exp(self, x: str) -> str:
        """The exponential of what is not above 1; some databases refuse those below floats."""
        return f"CASE WHEN {x} < -700 THEN 0.0 ELSE EXP({x}) END"

    def _inner(self, name: str) -> str:
        return self.quoted(self.stem + name)

    def _of(self, name: str) -> str:
        return f"t.{self._inner(name)}"


# -- checks ---------------------------------------------------------------------------------------


def _written_dates(column: Any) -> str:
    """In words how the text of a column writes its dates."""
    if column.date_order == PERIODS:
        return "months, quarters or weeks such as 2024-03, 2024Q1 or 2024-W05"
    return {"ymd": "dates such as 2016/7/21 or 20160721", "dmy": "dates such as 21.07.2016"}.get(
        column.date_order, "dates such as 7/21/2016"
    )


def _check_types(types: Mapping[str, str], plan: Plan) -> None:
    """Raise for columns and types that are none, and for dates that databases do not read."""
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


def _check_limits(plan: Plan, n_passed: int, dialect: Dialect, vector: str | None) -> None:
    """Raise for a query of more columns or tables than a database takes."""
    if not plan.names:
        raise ValueError("the vectors have no dimension: no column has two values")
    n_columns = len(plan.names) if vector is None else 1
    sizes = {"columns": n_columns + n_passed, "tables": 1 + len(plan.lookups)}
    for part, limit in (("columns", dialect.max_columns), ("tables", dialect.max_tables)):
        if sizes[part] > limit:
            raise ValueError(
                f"the query has {sizes[part]} {part}, {dialect.name} takes {limit}; use "
                "dialect='duckdb' or tabweave.export.parquet, or an embedder with fewer dimensions"
            )


def _check_fits_postgres(part: Lookup) -> None:
    """Raise for values that PostgreSQL cannot index, and vectors that no page of it can hold."""
    max_key_bytes, max_dimensions = 2704, 1000
    for value in part.labels:
        if not isinstance(value, str | bytes):
            continue
        n_bytes = len(value.encode() if isinstance(value, str) else value)
        if n_bytes > max_key_bytes:
            raise ValueError(
                f"column {part.column!r}: expected values of up to {max_key_bytes:,} bytes, which "
                f"PostgreSQL can index, got {value[:20]!r}... of {n_bytes:,}; shorten it, or leave "
                "the column out"
            )
    if part.width > max_dimensions:
        raise ValueError(
            f"column {part.column!r}: expected at most {max_dimensions:,} dimensions, which a "
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


# -- kinds and literals of labels -----------------------------------------------------------------

_DATETIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)?")


def kind_of(labels: Sequence[Label], column: str, dialect: str) -> str:
    """The type of a column that holds labels; raises for a mixture that no column holds."""
    types = {float if type(label) is int else type(label) for label in labels}
    if types == {float}:
        return _number_kind(labels, column)
    if types <= {str}:
        return _text_kind(labels, dialect)
    if len(types) == 1:
        return "boolean" if bool in types else "bytes"
    if dialect == "sqlite" and not {bool, float} <= types:
        return "any"
    names = ", ".join(sorted({type(label).__name__ for label in labels}))
    raise ValueError(
        f"column {column!r} has values of several types ({names}), and a column of {dialect} has "
        "one; make it text before fit"
    )


def _number_kind(labels: Sequence[Any], column: str) -> str:
    """The kind "number" for what float64 holds exactly, "integer" for what only int64 does."""
    large = [label for label in labels if type(label) is int and abs(label) >= 2**53]
    if large and all(type(label) is int and abs(label) < 2**63 for label in labels):
        return "integer"
    for label in large:
        if not is_float(label):
            raise ValueError(
                f"column {column!r}: {label} is neither a 64-bit integer nor a float64; make the "
                "column text before fit"
            )
    return "number"


def _text_kind(labels: Sequence[Any], dialect: str) -> str:
    """The kind "timestamp" for texts that are all datetimes: databases write those differently."""
    matches = [_DATETIME.fullmatch(label) for label in labels]
    if dialect == "sqlite" or not labels or not all(matches):
        return "text"
    zoned = {match[2] is not None for match in matches if match}
    if len(zoned) > 1 or len(set(map(dt.datetime.fromisoformat, labels))) < len(labels):
        return "text"
    return "timestamptz" if zoned.pop() else "timestamp"


def literal(label: Any, kind: str, dialect: Dialect, column: str) -> str:
    """A label as a literal of a kind."""
    if kind == "any":
        kind = kind_of([label], column, dialect.name)
    try:
        return _literal(label, kind, dialect)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"column {column!r}: expected a {kind}, got {label!r} ({error})"
        ) from error


def _literal(label: Any, kind: str, dialect: Dialect) -> str:
    if kind == "text":
        if not isinstance(label, str):
            raise TypeError("give types={column: ...} as the values are")
        check_text(label)
        return dialect.text(label)
    if kind == "integer":
        if type(label) is not int or not -(2**63) < label < 2**63:
            raise ValueError("expected an integer of at most 64 bits")
        return str(label)
    if kind == "bytes":
        template = {
            "postgres": "decode('{}', 'hex')",
            "sqlite": "X'{}'",
            "duckdb": "from_hex('{}')",
        }
        return template.get(dialect.name, "FROM_HEX('{}')").format(label.hex())
    if kind in ("date", "timestamp", "timestamptz"):
        moment = dt.date if kind == "date" else dt.datetime
        written = str(moment.fromisoformat(label))
        return f"{dialect.types[kind] or kind.upper()} '{written}'"
    if isinstance(label, bool) != (kind == "boolean") or isinstance(label, str | bytes):
        raise TypeError("the model was fitted on other values")
    if kind == "boolean":
        return str(int(label)) if dialect.name == "sqlite" else str(label).upper()
    if dialect.name == "sqlite" and isinstance(label, float) and math.isfinite(label):
        # SQLite may round a decimal by a bit, and then the value is not found: a fraction is exact.
        above, below = label.as_integer_ratio()
        steps = below.bit_length() - 1
        halved = "".join(f"/{1 << min(62, steps - i)}.0" for i in range(0, steps, 62))
        return f"({above}.0{halved})"
    return dialect.number(label)


def is_float(whole: int) -> bool:
    """Whether float64 holds a whole number exactly."""
    try:
        return int(float(whole)) == whole
    except OverflowError:
        return False


# -- names of tables and dimensions --------------------------------------------------------------


def table_names(prefix: str | Sequence[str], columns: Sequence[str]) -> list[list[str]]:
    """The names of the value tables: short, plain, and no two alike."""
    *schema, stem = [prefix] if isinstance(prefix, str) else list(prefix)
    taken: set[str] = set()
    words = [re.sub(r"[^a-z0-9]+", "_", c.lower()).strip("_")[:30] or "column" for c in columns]
    return [[*schema, _free(f"{stem}_{word}", taken)] for word in words]


def output_names(names: Sequence[str], keep: Sequence[str], dialect: str) -> list[str]:
    """A name for each dimension that the system takes; most ignore case."""
    taken = {name.lower() for name in keep}
    names = [re.sub("[\0\ud800-\udfff]", "_", name) for name in names]  # of values, here
    if dialect == "bigquery":
        names = [re.sub(r"\W", "_", name)[:250] for name in names]
    elif dialect == "postgres":  # cuts names at 63 bytes, and two may then be one
        names = [name.encode()[:55].decode(errors="ignore") for name in names]
    return [_free(name, taken) for name in names]


def _free(name: str, taken: set[str]) -> str:
    """A name, or the first with a number behind it that is not taken; it then is."""
    names = chain([name], (f"{name}_{i}" for i in count(2)))
    free = next(n for n in names if n.lower() not in taken)
    taken.add(free.lower())
    return free
