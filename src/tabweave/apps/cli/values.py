"""Values that people type after ``--like`` and ``--where``, and what they mean in a column."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from tabweave import between
from tabweave.apps.cli.job import Learned
from tabweave.apps.cli.options import Misuse
from tabweave.apps.cli.rows import check_columns
from tabweave.apps.cli.show import note
from tabweave.columns.numeric import Numbers
from tabweave.columns.spelling import is_spelled


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """The columns and values of color=red,size=big."""
    out: dict[str, str] = {}
    for part in (part for line in csv.reader(texts, skipinitialspace=True) for part in line):
        name, equals, value = (side.strip() for side in part.partition("="))
        if not equals and out:  # a value with a comma in it?
            quoted = shlex.quote(f'"{"=".join(list(out.items())[-1])},{part}"')
            hint = f"put a value with a comma in quotes, as in {option} {quoted}"
            raise Misuse(f"{option}: expected COLUMN=VALUE, got {part!r}; {hint}")
        if not equals:
            raise Misuse(f"{option}: expected COLUMN=VALUE, such as color=red, got {part!r}")
        if name in out:
            raise Misuse(f"{option}: expected each column once, got {name!r} twice")
        out[name] = value
    return out


def described_row(texts: dict[str, str], learned: Learned) -> dict[str, Any]:
    """The row that ``--like`` describes, each value as its column has it."""
    schema = learned.embedder.schema_
    check_columns(texts, learned.rows.columns)
    for name in texts:
        if name not in schema.names:
            raise ValueError(
                f"--like: expected a column that the method compares, got {name!r}; "
                f"it compares {list(schema.names)}"
            )
    row = {name: _value(text, name, learned) for name, text in texts.items()}
    delimiters = {name: schema[name].delimiter for name in row}
    return {n: v if delimiters[n] is None else delimiters[n].join(v) for n, v in row.items()}


def conditions(texts: dict[str, str], learned: Learned) -> dict[str, Any]:
    """The conditions of ``--where``: values as their columns have them, or ranges."""
    check_columns(texts, learned.rows.columns)
    out = {}
    for name, text in texts.items():
        read: Callable[..., Any] = _range if ".." in text else _value
        out[name] = read(text, name, learned)
    return out


def _range(text: str, name: str, learned: Learned) -> Any:
    """The condition that 30..40, 30.. or ..40 means in a column."""
    ((column, cells),) = learned.column(name)
    labels = () if isinstance(cells, Numbers) else cells.labels
    if text in labels:
        return text
    ends: list[Any] = [end.strip() or None for end in text.split("..", 1)]
    if ends == [None, None]:
        raise Misuse(f"--where {name}={text}: expected a lower or an upper bound, got neither")
    is_written = column.kind == "datetime" or column.decimal is not None
    if is_written or any(isinstance(label, str) for label in labels):
        return between(*ends)
    ends = [None if end is None else _number(end, name) for end in ends]
    if None not in ends and ends[0] > ends[1]:
        raise Misuse(f"--where {name}={text}: expected the lower bound first")
    return between(*ends)


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"column {name!r}: expected a number, got {text!r}") from None


def _value(text: str, name: str, learned: Learned) -> Any:
    """The value that a text means in a column."""
    ((column, cells),) = learned.column(name)
    if column.kind == "datetime" or column.decimal is not None:
        return text  # the embedder reads it as it read the others
    if isinstance(cells, Numbers):
        return _number(text, name)
    if column.kind == "set":  # a|b, or a set as the cells of its column are written
        parts = text.replace(column.delimiter or "|", "|").split("|")
        return list(dict.fromkeys(part.strip() for part in parts if part.strip()))
    present = [label for label in cells.labels if label is not None]
    labels = {str(v).lower() if isinstance(v, bool) else str(v): v for v in present}
    folded = text.strip().casefold()
    matches = [label for written, label in labels.items() if written.strip().casefold() == folded]
    value = labels.get(text, matches[0] if len(matches) == 1 else None)
    if value is None and is_spelled(cells.labels) and (near := _nearest_spelled(text, labels)):
        note(f"no row has {name}={text!r}; taken for the nearest spelled, {near!r}")
        return labels[near]
    if value is None:
        examples = ", ".join(map(repr, list(labels)[:12]))
        close = get_close_matches(text, labels, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"its values are {examples}"
        raise ValueError(f"column {name!r} has no value {text!r}; {hint}")
    return value


def _nearest_spelled(text: str, values: Iterable[str]) -> str | None:
    """The value that holds a text, the shortest of them, or is spelled most like it."""
    folded = {value.casefold(): value for value in values}
    if holding := [value for value in folded if text.casefold() in value]:
        return folded[min(holding, key=lambda value: (len(value), value))]
    close = get_close_matches(text.casefold(), folded, 1)
    return folded[close[0]] if close else None
