"""Texts: what cells that are text have in common, and words that stand for missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

FIRST_TEXTS = 20  # From so many texts it mostly shows that a column is something else.
SAMPLED_TEXTS = 1000  # So many texts are read to see whether all can be.

MISSING_WORDS = frozenset(  # beside numbers and dates; among categories they are values
    ("", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "nil", "missing", "unknown",
     "not available", "-", "--", "?", "??", ".", "..", "n.a.", "#div/0!", "#value!", "#ref!",
     "#num!", "#name?", "#null!")
)  # fmt: skip

# Words that pandas.read_csv takes for missing in every column.
PANDAS_MISSING_WORDS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip

_MISSING_CODES = ("-9", "-99", "-999", "-9999")  # which are numbers beside numbers


class CellError(TypeError, ValueError):
    """A cell that is not what its column holds.

    Parameters
    ----------
    expected : str
        What the column holds, as in "a number".
    cell : object
        The cell.
    remark : str
        What else is to be said of the cell, and what to do about it, after a "; ".
    column : str, optional
        The name of the column, where it is known.
    """

    def __init__(
        self, expected: str, cell: Any, remark: str = "", column: str | None = None
    ) -> None:
        super().__init__(expected, cell, remark, column)
        self.expected, self.cell, self.remark, self.column = expected, cell, remark, column

    def __str__(self) -> str:
        where = "" if self.column is None else f"column {self.column!r}: "
        return f"{where}expected {self.expected}, got {self.cell!r}{self.remark}"


def present_texts(labels: Sequence[str]) -> list[str]:
    """Labels without the blanks around them, but for words that stand for missing."""
    return [text for label in labels if (text := label.strip()).lower() not in MISSING_WORDS]


def looks_missing(label: Any) -> bool:
    """Whether a category may be a word, or a code, for missing: it counts as a value."""
    word = label.strip().lower() if isinstance(label, str) else None
    return word in MISSING_WORDS or word in _MISSING_CODES


def cells_in_words(cells: Iterable[tuple[str, int]]) -> str:
    """Values and in how many cells they are, the first two of them.

    >>> cells_in_words([("TBD", 3), ("soon", 1), ("?!", 1)])
    "'TBD' (3 cells), 'soon' (1 cell) and 1 more"
    """
    shown = [f"{value!r} ({n:,} cell{'s' * (n != 1)})" for value, n in cells]
    return ", ".join(shown[:2]) + (f" and {len(shown) - 2:,} more" if len(shown) > 2 else "")


def matching_texts(labels: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    """The texts that are not missing if all of them match, and else none."""
    if not all(map(pattern.fullmatch, present_texts(labels[:FIRST_TEXTS]))):
        return []
    texts = present_texts(labels)
    return texts if all(map(pattern.fullmatch, texts)) else []
