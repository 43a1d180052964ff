"""SQL, piece by piece: names, types and literals as four systems write them."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from typing import Any

from weft._labels import Label

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
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)?")
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
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


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
    """Return what type of column holds labels; refuse a mixture that no column holds."""
    types = {float if type(label) is int else type(label) for label in labels}
    if types <= {float}:
        if not types:
            return "text"
        return number_kind(labels, column)
    if len(types) == 1:
        found = {str: "text", bool: "boolean", bytes: "bytes"}[types.pop()]
        return _moments(labels, dialect) if found == "text" else found
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


def _moments(labels: Sequence[Any], dialect: str) -> str:
    """Return "timestamp" for texts that are all moments: a database writes those differently."""
    found = [_MOMENT.fullmatch(label) for label in labels]
    if dialect == "sqlite" or not all(found):
        return "text"
    zones = {match[2] is not None for match in found if match}
    if len(zones) > 1 or len(set(map(_moment, labels))) < len(labels):
        return "text"
    return "timestamptz" if zones.pop() else "timestamp"


def literal(label: Any, kind: str, dialect: str, column: str) -> str:
    """Return a label as a literal of a kind."""
    if kind == "any":
        kind = kind_of([label], column, dialect)
    try:
        return _LITERALS[kind](label, dialect)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"column {column!r}: value {label!r} is no {kind} ({error})") from error


def _text(label: str, dialect: str) -> str:
    if not isinstance(label, str):
        raise TypeError("give types={column: ...} as the values are")
    check_text(label)
    if dialect == "bigquery":
        escaped = label.replace("\\", "\\\\").replace("'", "\\'")
        return "'" + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\x{ord(m[0]):02x}", escaped) + "'"
    if "\0" in label:
        if dialect == "postgres":
            raise ValueError("postgres keeps no text with a zero character")
        if dialect == "sqlite":
            return f"CAST(X'{label.encode().hex()}' AS TEXT)"
        return "(" + " || chr(0) || ".join(_text(p, dialect) for p in label.split("\0")) + ")"
    return "'" + label.replace("'", "''") + "'"


def _number(label: Any, dialect: str) -> str:
    if isinstance(label, str | bytes | bool):
        raise TypeError("it is none in the model")
    if dialect == "sqlite" and isinstance(label, float) and math.isfinite(label):
        # SQLite may round a decimal by a bit, and then the value is not found: a fraction is exact.
        above, below = label.as_integer_ratio()
        steps = below.bit_length() - 1
        halved = "".join(f"/{1 << min(62, steps - i)}.0" for i in range(0, steps, 62))
        return f"({above}.0{halved})"
    return number(label, dialect)


def _integer(label: Any, dialect: str) -> str:
    if type(label) is not int or not -(2**63) < label < 2**63:
        raise ValueError("whole numbers have 64 bits")
    return str(label)


def _boolean(label: Any, dialect: str) -> str:
    if type(label) is not bool:
        raise TypeError("it is none in the model")
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
    return f"{name} '{_moment(label).isoformat(' ')}'"


def _timestamptz(label: Any, dialect: str) -> str:
    name = "TIMESTAMP" if dialect == "bigquery" else "TIMESTAMPTZ"
    return f"{name} '{_moment(label).isoformat(' ')}'"


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


def _moment(label: Any) -> dt.datetime:
    return dt.datetime.fromisoformat(label)


def is_float(whole: int) -> bool:
    """Tell whether float64 holds a whole number exactly."""
    try:
        return int(float(whole)) == whole
    except OverflowError:
        return False


def check_text(value: Any) -> None:
    """Refuse text that is no valid Unicode."""
    try:
        _ = value.encode() if isinstance(value, str) else None
    except UnicodeEncodeError:
        raise ValueError(f"{value!r} is no valid Unicode, which databases need") from None
