"""Decision: what rules say of a column: its kind, why, and whether it is dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeVar

Kind = str  # the name of one

# Whether all rows are at hand, a sample of them (which proves no constant) or the first of a
# stream; "texts" drops only text, "all" nothing.
Rules = Literal["whole", "sample", "first", "texts", "all"]

MIN_ROWS_TO_INFER = 20  # In fewer rows it says little that values do not repeat.

# What only the user knows of a column: whether a few values that keep it from being read are
# missing, the order of day and month, what joins lists, whether values that are spelled alike are
# the same, or, of all else, what is meant by it.
Question = Literal["", "exceptions", "order", "lists", "spelling", "meaning"]

IDENTIFIER = "an identifier: its values hardly repeat"

PANDAS_INDEX = "the index of pandas"

NAMES_OF_ROWS = "names of rows"

_Column = TypeVar("_Column")


class Finding(NamedTuple):
    """What one column was found to be."""

    column: str
    kind: Kind
    why: str
    kept: bool = True
    question: Question = ""  # what the user is to look at
    delimiter: str = ""  # of what may be lists
    unreadable: tuple[tuple[str, int], ...] = ()  # values read as missing, and their cells


class Decision(NamedTuple):
    """What the rules say of a column."""

    kind: Kind
    why: str
    dropped: bool = False
    format: str | None = None  # of what is written as text
    levels: tuple[str, ...] | None = None  # of ranges
    question: Question = ""
    delimiter: str = ""
    unreadable: tuple[tuple[str, int], ...] = ()  # values to read as missing, and their cells


def first_decision(
    rules: Sequence[Callable[[_Column], Decision | None]], column: _Column
) -> Decision | None:
    """The decision of the first rule that has one."""
    return next((decision for rule in rules if (decision := rule(column)) is not None), None)
