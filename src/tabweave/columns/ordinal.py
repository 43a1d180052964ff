"""Ordinal columns: grades, categories with an order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tabweave._compat import warn_caller
from tabweave.columns.cells import MomentsOf, kind
from tabweave.columns.datetime import is_season
from tabweave.columns.decision import Decision
from tabweave.columns.frames import infer_kind, levels_of
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Knots, Numbers, number_of
from tabweave.columns.vocabulary import Label, canonical, identity

if TYPE_CHECKING:
    from tabweave.columns.column import Column
    from tabweave.columns.kinds import TextColumn
    from tabweave.columns.table import Table


@kind("ordinal", "categories with an order, lowest first")
@dataclass(frozen=True, eq=False)
class Grades(Codes):
    """An ordinal column: one code a row, and the label of each code; its levels are declared."""

    options = ("levels",)
    is_ordered = True

    @classmethod
    def completed(cls, column: Column, cells: Any) -> Column:
        """The column with the order that the type of its cells carries."""
        if column.levels is not None:
            return column
        return replace(column, levels=declared_levels(column.name, cells))

    @classmethod
    def detailed(cls, column: Column, detail: str, cells: Any) -> Column:
        """The column with its levels, as in ``ordinal:S<M<L``."""
        levels: list[Any] = [level.strip() for level in detail.split("<")]
        if infer_kind(cells) == "numeric":
            levels = [number_of(level) for level in levels]
        return replace(column, levels=tuple(levels))

    @classmethod
    def curve(cls, part: str, knots: Knots, moments: MomentsOf) -> np.ndarray:
        """Coordinates of the ranks of grades, as numbers have them."""
        return Numbers.curve(part, knots, moments)


_BOUND = r"[$€£¥]?\s?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?[kKM]?(?![^\W\d_]*\d)"

_OF_UNIT = r"(?:\s?(?:[^\W\d_]|%)[^\d,;+]{0,14}?)?"

_RANGES = [  # patterns of ranges with two ends, open ones, and single numbers among them
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?P<low>{_BOUND})\s?(?:-|–|~|to)\s?(?P<high>{_BOUND}){_OF_UNIT}",
        rf"(?P<low>{_BOUND}){_OF_UNIT}\s?[-–]",
        rf"[\[(]\s?(?:-inf|(?P<low>{_BOUND}))\s?,\s?(?:inf|(?P<high>{_BOUND}))\s?[\])]",
        rf"(?P<low>{_BOUND}){_OF_UNIT}\s?\+{_OF_UNIT}",
        rf"(?P<low>{_BOUND}){_OF_UNIT} (?:and|or) (?:over|more|above|older|up){_OF_UNIT}",
        rf"(?:>=?|≥|over|above|more than|at least|gt)\s?(?P<low>{_BOUND}){_OF_UNIT}",
        rf"(?:<=?|≤|under|below|less than|up to|lt)\s?(?P<high>{_BOUND}){_OF_UNIT}",
        rf"(?P<high>{_BOUND}){_OF_UNIT} (?:and|or) (?:under|less|fewer|below|younger){_OF_UNIT}",
        rf"(?P<low>{_BOUND}){_OF_UNIT}",
    )
]

_LARGE = {"k": 1e3, "m": 1e6}


def ranges_in_order(labels: Sequence[str]) -> list[str] | None:
    """Texts such as 18-24, <$20k, 65+ or 5 or more in order; None if they are no ranges.

    There are three or more, and each begins where another ends, or later; single numbers may stand
    among them.
    """
    if not 3 <= len(labels) <= 40:
        return None
    ranges = [(*ends, label) for label in labels if (ends := range_of(label))]
    spans = sum(low < high for low, high, _ in ranges)
    if len(ranges) < len(labels) or not spans:
        return None
    ranges.sort()
    if any(after[0] < before[1] for before, after in pairwise(ranges)):
        return None
    return [label for *_, label in ranges]


def range_of(text: str) -> tuple[float, float] | None:
    """The ends of a range, of a single number twice; None if a text is neither."""
    stripped = text.strip()
    for pattern in _RANGES:
        if match := pattern.fullmatch(stripped):
            ends = match.groupdict()
            low = _end_of(ends["low"]) if ends.get("low") else -np.inf
            high = _end_of(ends["high"]) if ends.get("high") else np.inf
            high = low if pattern is _RANGES[-1] else high
            if 1000 <= low < 10_000 and 10 <= high < 100 and not is_season(stripped):  # 1960-64
                high += low // 100 * 100
            return (low, high) if low < high or pattern is _RANGES[-1] else None
    return None


def _end_of(text: str) -> float:
    digits = text.strip(" $€£¥").replace(",", "").lower()
    times = _LARGE.get(digits[-1], 1.0)
    return times * float(digits.rstrip("km"))


def ordered_ranges(texts: TextColumn) -> Decision | None:
    """Ranges, if no other may come that does not follow on these."""
    levels = ranges_in_order(texts.labels) if texts.complete else None
    return Decision("ordinal", "ranges in order", levels=tuple(levels)) if levels else None


def warn_of_alphabetical(table: Table) -> None:
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


def declared_levels(name: str, cells: Any) -> tuple[Label, ...] | None:
    """The order that the type of a column carries; an error names the column."""
    try:
        return levels_of(cells)
    except TypeError as error:
        raise TypeError(f"column {name!r}: {error}") from error


def checked_levels(name: str, levels: Any) -> tuple[Label, ...]:
    """Levels in canonical form; an error says which one is none, or stands twice."""
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
