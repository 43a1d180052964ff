"""sql: value tables as CREATE and INSERT, and a SELECT that looks rows up in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from weft._absolute import BENDS
from weft.export._literals import DIALECTS, KINDS, TYPES, kind_of, literal, number, quoted
from weft.export._names import output_names, table_names
from weft.export._plan import Line, Lookup, Plan, plan_of

_AT_ONCE = 500  # rows of an INSERT
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
    prefix: str | Sequence[str] = "weft",
    keep: Iterable[str] = (),
    types: Mapping[str, str] | None = None,
    replace: bool = False,
) -> Script:
    """Return SQL that embeds the rows of a table as ``transform`` does.

    Parameters
    ----------
    embedder : ValueEmbedder, Windowed or MixedEmbedder
        A fitted embedder. Set-valued columns and numbers that a transformer has mixed are refused.
    dialect : {"duckdb", "postgres", "sqlite", "bigquery"}, default="duckdb"
        The system that will run it.
    table : str or sequence of str, default="rows"
        The table with the rows; ``("schema", "table")`` for a qualified name. Its columns have the
        names that the embedder was fitted with.
    prefix : str or sequence of str, default="weft"
        What the names of the value tables begin with; ``("schema", "prefix")`` puts them into a
        schema.
    keep : iterable of str
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
    ``transform``. Where the embedder would raise (``unknown="error"``, ``missing="error"``) the
    dimensions are NULL.

    Examples
    --------
    >>> import weft
    >>> rows = {"color": ["red", "blue"]}
    >>> print(weft.export.sql(weft.OneHot().fit(rows), "sqlite", table="paints", keep=["id"]))
    CREATE TABLE "weft_color" ("value" PRIMARY KEY, "v0" REAL, "v1" REAL);
    INSERT INTO "weft_color" VALUES
    ('blue', 1.0, 0.0),
    ('red', 0.0, 1.0);
    SELECT
      t."id",
      COALESCE(w0."v0", 0.5) AS "color_blue",
      COALESCE(w0."v1", 0.5) AS "color_red"
    FROM "paints" AS t
    LEFT JOIN "weft_color" AS w0 ON w0."value" = +t."color";
    <BLANKLINE>
    """
    if dialect not in DIALECTS:
        raise ValueError(f"dialect={dialect!r}: use one of {', '.join(map(repr, DIALECTS))}")
    plan = plan_of(embedder)
    kept = [keep] if isinstance(keep, str) else list(keep)
    kinds = _checked_types(types or {}, plan)
    writer = _Writer(dialect, plan, kinds, prefix)
    _check_limits(plan, len(kept), dialect)
    return Script(writer.tables(replace), writer.select(table, kept))


class _Writer:
    """Writes the statements of one plan in one dialect."""

    def __init__(self, dialect: str, plan: Plan, kinds: Mapping[str, str], prefix: Any) -> None:
        self.dialect = dialect
        self.plan = plan
        parts = [*plan.values, *plan.numbers]
        self.lookups = [p for p in parts if isinstance(p, Lookup) and p.width]
        self.kinds = {
            p.column: kinds.get(p.column) or kind_of(p.labels, p.column, dialect)
            for p in self.lookups
        }
        self.names = table_names(prefix, [p.column for p in self.lookups])

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
            raise ValueError(f"column {part.column!r}: as {kind} two of its values are one")
        return keys

    # -- select ----------------------------------------------------------------------------

    def select(self, table: Any, keep: list[str]) -> str:
        """Return the query that embeds rows."""
        alias = {id(part): f"w{i}" for i, part in enumerate(self.lookups)}
        values = [
            [self._looked_up(part, d, alias[id(part)]) for d in range(part.width)]
            for part in self.plan.values
            if part.width
        ]
        if self.plan.combine == "sum":
            dimensions = [" + ".join(terms) for terms in zip(*values, strict=True)]
        else:
            dimensions = [term for terms in values for term in terms]
        for part in self.plan.numbers:
            if isinstance(part, Line):
                dimensions += self._line(part)
            else:
                found = alias[id(part)]
                dimensions += [self._looked_up(part, d, found) for d in range(part.width)]
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
        return "\n".join(["SELECT", ",\n".join(columns), source, *joins])

    def _looked_up(self, part: Lookup, d: int, alias: str) -> str:
        """Return one dimension of a value, of a missing one, or of an unknown one."""
        found = f"{alias}.{self._quoted(f'v{d}')}"
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
        mean, factor = number(part.mean, self.dialect), number(part.factor, self.dialect)
        z = f"({x} - ({mean})) * ({factor})"
        found = [z]
        if part.curves is not None:
            bends = (f"ABS({z} - ({number(bend, self.dialect)}))" for bend in BENDS)
            parts = [*bends, z, "1"]
            found = [
                " + ".join(
                    f"({number(often, self.dialect)}) * {what}"
                    for often, what in zip(curve, parts, strict=True)
                )
                for curve in part.curves.T.tolist()
            ]
        if part.refuses_missing:
            return found
        filled = (number(value, self.dialect) for value in part.missing.tolist())
        return [f"COALESCE({term}, {value})" for term, value in zip(found, filled, strict=True)]

    def _key(self, part: Lookup) -> str:
        """Return the cell in the type of the value table."""
        cell, kind = self._cell(part.column), self.kinds[part.column]
        if self.dialect == "sqlite":
            return f"+{cell}"  # the sign takes the column's own type away: nothing is converted
        if kind == "number":
            return self._without_nan(cell)
        if kind in ("text", "date", "timestamp", "timestamptz"):
            # Enums, dates and identifiers are text in weft; moments are often text in databases.
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


def _checked_types(types: Mapping[str, str], plan: Plan) -> Mapping[str, str]:
    known = {p.column for p in (*plan.values, *plan.numbers) if isinstance(p, Lookup)}
    for column, kind in types.items():
        if column not in known:
            raise ValueError(f"types names column {column!r}; there are {sorted(known)}")
        if kind not in KINDS:
            raise ValueError(f"types[{column!r}]={kind!r}: use one of {', '.join(KINDS)}")
    return types


def _check_limits(plan: Plan, n_kept: int, dialect: str) -> None:
    width = len(plan.names) + n_kept
    tables = 1 + sum(isinstance(p, Lookup) for p in (*plan.values, *plan.numbers))
    if not plan.names:
        raise ValueError("the vectors have no dimension: no column has two values")
    most_columns, most_tables = _LIMITS.get(dialect, (np.inf, np.inf))
    for found, most, what in ((width, most_columns, "columns"), (tables, most_tables, "tables")):
        if found > most:
            raise ValueError(
                f"the query has {found} {what}, {dialect} takes {most}; use dialect='duckdb' or "
                "weft.export.parquet, or an embedder with fewer dimensions"
            )
