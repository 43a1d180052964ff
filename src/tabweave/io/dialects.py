"""Dialects: how each database writes names, texts, numbers and types in SQL; one table of them.

Counting where rows are (:mod:`tabweave.engines.pushdown`) and exported models
(:mod:`tabweave.export.sql`) read it.
"""

from __future__ import annotations

import glob
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

KINDS = ("text", "number", "integer", "boolean", "bytes", "date", "timestamp", "timestamptz")


def sql_name(name: str, mark: str = '"') -> str:
    """A name as SQL writes it."""
    return mark + name.replace(mark, 2 * mark) + mark


def sql_text(text: str) -> str:
    """A text as SQL writes it."""
    return sql_name(text, "'")


def sql_path(path: Path) -> str:
    """A file's name for SQL: DuckDB takes ``*``, ``?`` and ``[`` in it for a pattern."""
    return sql_text(glob.escape(str(path)))


def check_text(value: object) -> None:
    """Raise for text that is not valid Unicode."""
    try:
        _ = value.encode() if isinstance(value, str) else None
    except UnicodeEncodeError:
        raise ValueError(f"expected valid Unicode, got {value!r}; databases need it") from None


def _types(names: str) -> dict[str, str]:
    return dict(zip(KINDS, names.split(", "), strict=True))


@dataclass(frozen=True)
class Dialect:
    """How a database writes SQL.

    Attributes
    ----------
    name : str
        What users call it.
    key : str
        The type of text, or, with braces, an expression that turns a value into distinct text.
    float_type : str
        The type of floating-point numbers of 64 bits.
    quote : str
        What stands around names.
    escapes : bool
        Whether a backslash is special in texts.
    materialized : str
        What makes the database compute a named part of a query once.
    position : str
        An expression for which of some texts, from 0 on, a value is, if there is a fast one; NULL
        for none of them.
    divide : str
        How a whole number is divided by another.
    max_positions : int
        Most values of a column whose positions are asked for.
    max_joint : int
        Most joint values of a group of columns where rows are many; the more, the fewer passes.
    types : mapping of str to str
        The type of each of ``KINDS``; empty where no model is exported to.
    max_columns, max_tables : float
        What a SELECT holds at most.
    array_type, array, concat : str
        The type of arrays of a type, an expression for one of some items, and what joins two of
        them; empty where there are none.
    has_keys : bool
        Whether tables have primary keys.
    wall_clock, zoned, seconds : str
        Expressions for the date and time of a text without its offset, for the clock of a zone, and
        for the seconds since 1970 of a date and time.
    has_zone, error : str
        Expressions for whether a cell is of a type that keeps instants, not the offsets that they
        were written with, and for a number that cannot be computed, with a text that says why.
    """

    name: str
    key: str = "VARCHAR"
    float_type: str = "DOUBLE PRECISION"
    quote: str = '"'
    escapes: bool = False
    materialized: str = ""
    position: str = ""
    divide: str = "//"
    max_positions: int = 0
    max_joint: int = 128
    types: Mapping[str, str] = field(default_factory=dict)
    max_columns: float = math.inf
    max_tables: float = math.inf
    array_type: str = ""
    array: str = ""
    concat: str = " || "
    has_keys: bool = True
    wall_clock: str = ""
    zoned: str = ""
    seconds: str = ""
    has_zone: str = ""
    error: str = ""

    @property
    def text_type(self) -> str:
        """The type of text; SQLite, whose columns need no types, asks for one in a cast."""
        return self.types["text"] or "TEXT"

    @property
    def number_type(self) -> str:
        """The type of numbers."""
        return self.types["number"] or "REAL"

    def vector(self, items: Sequence[str]) -> str:
        """An array of numbers, from expressions."""
        if not self.array:
            raise ValueError(f"{self.name} has no arrays; leave vector out")
        listed = self.array.format(", ".join(items))
        return f"CAST({listed} AS {self.array_type.format(self.number_type)})"

    def concatenated(self, arrays: Sequence[str]) -> str:
        """Arrays as one."""
        if self.concat.endswith("("):
            return f"{self.concat}{', '.join(arrays)})"
        return self.concat.join(arrays)

    def identifier(self, name: str | Sequence[str]) -> str:
        """A name, or the parts of a qualified one, as an identifier."""
        parts = [name] if isinstance(name, str) else list(name)
        for part in parts:
            if not part or "\0" in part or (self.name == "bigquery" and "`" in part):
                raise ValueError(f"{self.name} has no way to write the name {part!r}; rename it")
            check_text(part)
        if self.name == "bigquery":
            parts = [part.replace("\\", "\\\\") for part in parts]
        return ".".join(sql_name(part, self.quote) for part in parts)

    def text_of(self, expression: str) -> str:
        """An expression whose text differs where values do; NULL stays NULL."""
        if "{}" in self.key:
            return self.key.format(expression)
        return f"CAST({expression} AS {self.key})"

    def text(self, text: str) -> str:
        """A text as a literal."""
        if self.escapes:
            escaped = text.replace("\\", "\\\\").replace("'", "\\'")
            if self.name == "bigquery":
                escaped = re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\x{ord(m[0]):02x}", escaped)
            return f"'{escaped}'"
        if "\0" not in text:
            return sql_text(text)
        if self.name == "postgres":
            raise ValueError("text in postgres cannot hold NUL characters")
        if self.name == "sqlite":
            return f"CAST(X'{text.encode().hex()}' AS TEXT)"
        return "(" + " || chr(0) || ".join(map(sql_text, text.split("\0"))) + ")"

    def number(self, value: object) -> str:
        """A literal that is read back as the same float64."""
        number = float(value)  # type: ignore[arg-type]
        if math.isinf(number):
            if self.name == "sqlite":
                return "9e999" if number > 0 else "-9e999"
            infinity = str(number) if self.name == "bigquery" else f"{number}inity"
            return f"CAST('{infinity}' AS {self.types['number']})"
        text = repr(number)
        # Without an exponent these read a decimal, and round once more.
        is_decimal = self.name in ("duckdb", "spark", "databricks", "trino")
        return f"{text}e0" if is_decimal and "e" not in text else text


_SPARK = Dialect(
    "spark",
    "STRING",
    "DOUBLE",
    "`",
    escapes=True,
    types=_types("STRING, DOUBLE, BIGINT, BOOLEAN, BINARY, DATE, TIMESTAMP_NTZ, TIMESTAMP"),
    array_type="ARRAY<{}>",
    array="ARRAY({})",
    has_keys=False,
    wall_clock="regexp_extract({text}, '^[0-9-]{{10}}([T ][0-9:.]*)?', 0)",
    zoned="from_utc_timestamp({time}, {zone})",
    seconds="unix_micros(CAST({time} AS TIMESTAMP)) / 1e6",
)
_ALL = (
    Dialect(
        "duckdb",
        materialized="MATERIALIZED ",
        position="CAST(enum_code(TRY_CAST({key} AS ENUM({texts}))) AS INTEGER)",
        max_positions=1 << 13,
        types=_types("VARCHAR, DOUBLE, BIGINT, BOOLEAN, BLOB, DATE, TIMESTAMP, TIMESTAMPTZ"),
        array_type="{}[]",
        array="[{}]",
        wall_clock="regexp_extract({text}, '^[0-9-]{{10}}([T ][0-9:.]*)?')",
        zoned="timezone({zone}, {time})",
        seconds="epoch_us({time}) / 1e6",
        has_zone="typeof({cell}) = 'TIMESTAMP WITH TIME ZONE'",
        error="error({text})",
    ),
    Dialect(
        "postgres",
        "TEXT",
        materialized="MATERIALIZED ",
        position="(array_position(ARRAY[{texts}], {key}) - 1)",
        divide="/",
        max_positions=128,  # it looks at one after the other
        max_joint=256,
        types=_types(
            "TEXT, DOUBLE PRECISION, BIGINT, BOOLEAN, BYTEA, DATE, TIMESTAMP, TIMESTAMPTZ"
        ),
        max_columns=1600,
        max_tables=1000,
        array_type="{}[]",
        array="ARRAY[{}]",
        wall_clock="substring({text} from '^[0-9-]{{10}}(?:[T ][0-9:.]*)?')",
        zoned="({time} AT TIME ZONE {zone})",
        seconds="CAST(EXTRACT(EPOCH FROM {time}) AS DOUBLE PRECISION)",
        has_zone="CAST(pg_typeof({cell}) AS TEXT) = 'timestamp with time zone'",
        error="CAST({text} AS DOUBLE PRECISION)",
    ),
    Dialect(
        "sqlite",
        "quote({})",  # tells 1 from '1', and every float
        materialized="MATERIALIZED ",
        types=dict.fromkeys((*KINDS, "any"), ""),  # so it converts nothing: 1 and '1' differ
        max_columns=2000,
        max_tables=64,
        error="json({text})",
    ),
    Dialect("clickhouse", "toString({})", "Float64", escapes=True),
    Dialect("datafusion", float_type="DOUBLE"),
    Dialect("snowflake"),
    Dialect(
        "trino",
        float_type="DOUBLE",
        types=_types(
            "VARCHAR, DOUBLE, BIGINT, BOOLEAN, VARBINARY, DATE, TIMESTAMP(6), "
            "TIMESTAMP(6) WITH TIME ZONE"
        ),
        array_type="ARRAY({})",
        array="ARRAY[{}]",
        has_keys=False,
        wall_clock="regexp_extract({text}, '^[0-9-]{{10}}([T ][0-9:.]*)?')",
        zoned="({time} AT TIME ZONE {zone})",
        seconds="to_unixtime({time})",
    ),
    Dialect(
        "bigquery",
        "STRING",
        "FLOAT64",
        "`",
        escapes=True,
        types=_types("STRING, FLOAT64, INT64, BOOL, BYTES, DATE, DATETIME, TIMESTAMP"),
        max_columns=10_000,
        max_tables=1000,
        array_type="ARRAY<{}>",
        array="[{}]",
        concat="ARRAY_CONCAT(",
        has_keys=False,
        wall_clock="REGEXP_EXTRACT({text}, r'^[0-9-]{{10}}(?:[T ][0-9:.]*)?')",
        zoned="DATETIME({time}, {zone})",
        seconds="UNIX_MICROS(TIMESTAMP({time})) / 1e6",
        has_zone="STARTS_WITH(FORMAT('%T', {cell}), 'TIMESTAMP')",
        error="ERROR({text})",
    ),
    _SPARK,
    replace(_SPARK, name="databricks"),
)
DIALECTS = {dialect.name: dialect for dialect in _ALL}
EXPORTED = tuple(name for name, dialect in DIALECTS.items() if dialect.types)
