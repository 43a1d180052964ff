"""Kinds: what a column is, by rules that look at its name and at its values.

A type says too little: text may hold dates, money or digits that are codes, and whole numbers may
count rows. The rules below are asked where a table may be of any kind (:class:`~tabweave.Weave`,
reports, the command line); what a schema declares is never asked. In words:

- Datetimes, and text all of whose values are dates or times, are ``datetime``: ISO text, to the day
  or finer (2013-01-01, 2013-01-01T05, 2013-01-01 05:30), dates such as 7/21/2016, 21.07.2016 and
  6-Aug-09, if only one order of day and month fits all of them (those of mails and logs, such as
  Tue, 05 Mar 2024 10:11:12 +0000, by the clock they show), and times of day, typed or as text such
  as ``8:30`` or ``8:30 PM``: they go round.
- Months, quarters and ISO weeks (2024-03, 03/2024, Mar 2024, 2024 Mar, 2024Q1, Q1 2024, 2024-W05)
  are ``datetime``, too: their first day; not 2024-1, 2024-2, 2025-1, which may be terms. So are
  whole numbers and digits in text such as 20240305 or 20240305101112, if all are dates from 1900
  to 2099, and ten or more of them differ or their name says so (``date``, ``day``, ``dob``);
  months such as 202403 only if it does (``month``, ``period``).
- Text all of whose values are numbers is ``numeric``: plain, with separated thousands (``1,200``,
  ``1 200``, ``1'200``; not ``123 456``, ``123 789``, which are codes), in percent, with a currency,
  below zero in brackets (``(1,200)``) or with a minus behind (``12.50-``; not if all are), or
  with one and the same unit (``12 km``, ``16GB``, ``36 months``). So are
  durations, typed or as text: ``36:10:05``, ``1h 20m``, ``2 days 04:00:00``, ``PT5M``; those below
  a day (``00:03:12``) if their name says so (``duration``, ``elapsed``). Words such as ``NA``
  beside numbers or dates are missing. Digits are codes, and ``nominal``, if one has a leading zero,
  or if there are at most 20 of them, all whole.
- A few cells among numbers or dates that hold a word (``TBD``), or a day that does not exist
  (``2024-02-30``; ``20240230`` in text, if the name says that digits are dates), are read as
  missing; :meth:`~tabweave.Table.kinds` and a warning list them. Few are up to a fifth of the
  cells, and of the distinct values if more than two of these are odd.
- Whole numbers stay ``numeric``, also years and counts of few values. Codes are ``nominal``: those
  whose name says so (``zip``, ``code``, ``id``, ``PRODID``) or is that of a thing without an order
  (``state``, ``subject``, ``race``; not ``state_income``), two values only, or a few values of
  three digits or more that are neither round nor near each other (200, 301, 404), unless their
  name says what they measure.
- Of numbers, nines such as -999 that lie farther from all others than those from each other may
  stand for missing: the reason says so, and they stay numbers.
- Whole numbers are ``nominal`` if one of them, beyond 2**53, is no float (2**53 + 1).
- Identifiers are dropped: text of one word, or bytes, 95 of 100 of which are distinct, whole
  numbers that rise from row to row with few gaps, unless their name says what they measure
  (``year``, ``day``, ``age``), an ``id`` whose values hardly repeat, the index of pandas, the row
  names of R (``rownames``), whatever their order. A table of less than 20 rows has none; of a
  stream, the first 200 rows must not repeat one.
- A constant column is dropped, too, if all rows are there to see it; of a stream it counts for
  nothing as long as it is constant.
- Text of more than 129 values stays ``nominal``, and counts by its spelling, too; with five words
  on average it is called sentences (:mod:`tabweave.columns.spelling`).
- Of more than 131,072 rows as many are looked at, drawn by row number, the same from every source.
- Two numbers in a cell (``120/80``) stay ``nominal``: split them into columns to have them compared
  as numbers.
- Three or more ranges that follow on one another (``<18``, ``18-24``, ``65+``; ``1960-64``) are
  ``ordinal``, if all rows are there to see them.
- Where up to a fifth of its values keep text from being numbers, dates or times of day, the reason
  names two of them; so it does with values that differ only in case, blanks or type.
- Lists are ``set``, ordered categories ``ordinal``, records are flattened to ``record.field``.
  So is text that holds lists of several lengths: all of it in brackets, as JSON, Python and
  PostgreSQL write them (``['a', 'b']``, ``{a,b}``), or half of it or more parted at ``;``, ``|`` or
  a comma, if there are at most half as many different elements as texts (``Fire; Water``).
  Vectors (lists of equal length, most of whose numbers occur once, not all whole) are dropped:
  each number means something by its position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tabweave.columns.datetime import (
    are_mixed_dates,
    are_short_months,
    are_terms,
    clock_times,
    compact_dates,
    date_orders,
    dates_of_digits,
    dates_of_one_order,
    digits_of,
    has_both_zones,
    has_no_year,
    impossible_dates,
    is_date,
    is_no_day,
    is_time,
    is_unreadable,
    iso_datetimes,
    periods,
    unreadable_cells,
)
from tabweave.columns.decision import (
    DATE_NAMES,
    IDENTIFIER,
    MIN_ROWS_TO_INFER,
    NO_AMOUNT,
    Decision,
    Finding,
    Rules,
    first_decision,
)
from tabweave.columns.nominal import hardly_repeats, identifiers, names_of_rows
from tabweave.columns.numeric import (
    amounts_in_text,
    are_pairs,
    codes_of_digits,
    decide_whole_numbers,
    has_leading_zeros,
    is_number,
    number_of,
    numbers_written,
    units_written,
)
from tabweave.columns.ordinal import ordered_ranges, range_of, ranges_in_order
from tabweave.columns.sets import VECTORS, are_lists, are_vectors, joined_by, lists_in_text
from tabweave.columns.texts import FIRST_TEXTS, cells_in_words, present_texts

MAX_EXCEPTION_SHARE = 0.2  # More exceptions among texts leave open what a column would be.
MAX_FIRST_EXCEPTIONS = 4  # Columns with more exceptions among the first texts need no other look.

# What a text may be, by itself: the others of its column may show that it is an exception.
_TOLD_BY_MOST: tuple[tuple[str, Callable[[str], Any]], ...] = (
    ("numbers", is_number),
    ("dates", is_date),
    ("times of day", is_time),
    ("ranges", range_of),
)


class Kinds(tuple[Finding, ...]):
    """What each column of a table is, why, and whether it is kept or dropped.

    Examples
    --------
    >>> from tabweave import Table
    >>> days = [f"2024-03-{day:02}" for day in range(1, 25)]
    >>> rows = {"row": range(24), "day": days, "price": ["$1,200.50", "$80"] * 12}
    >>> kinds = Table.of(rows).kinds()
    >>> kinds
    column  kind      kept  why
    row     numeric   no    counts the rows
    day     datetime  yes   ISO text
    price   numeric   yes   money written as text
    >>> kinds.dropped
    {'row': 'counts the rows'}
    """

    @property
    def dropped(self) -> dict[str, str]:
        """The columns that are dropped, and why."""
        return {finding.column: finding.why for finding in self if not finding.kept}

    def __repr__(self) -> str:
        rows = [("column", "kind", "kept", "why")]
        rows += [(one_line(f.column), f.kind, "yes" if f.kept else "no", f.why) for f in self]
        wide = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = ("  ".join([*map(str.ljust, row, wide), row[3]]).rstrip() for row in rows)
        return "\n".join(lines)


def one_line(name: str) -> str:
    """A name as a line of a table shows it: line breaks and an empty one are quoted."""
    return name if name.strip() and name.isprintable() else repr(name)


def dropped_line(dropped: dict[str, str]) -> str:
    """One line that says what was dropped; empty if nothing was."""
    shown = [f"{one_line(name)} ({why})" for name, why in list(dropped.items())[:6]]
    more = [f"and {len(dropped) - 6} more"] if len(dropped) > 6 else []
    return f"dropped: {', '.join([*shown, *more])}" if dropped else ""


def decide_kind(name: str, data: Any, n_rows: int, rules: Rules) -> Decision | None:
    """What a column of numbers or values is; None if it is what its type says."""
    enough = n_rows >= (200 if rules == "first" else MIN_ROWS_TO_INFER)
    # Among the first rows of a stream not one value of an identifier repeats.
    min_distinct = 1.0 if rules == "first" and n_rows < 10_000 else 0.95
    if data.is_continuous:
        days = digits_of(data.values)
        if DATE_NAMES.search(name):  # a few that name no day are told when all are read
            names_day = [text for text in days if not is_no_day(text)]
            few = len(days) - len(names_day) <= MAX_EXCEPTION_SHARE * len(days)
            days = names_day if few else days
        dated = dates_of_digits(name, days, "whole numbers")
        return dated or (
            decide_whole_numbers(name, data.values, min_distinct, n_rows) if enough else None
        )
    if data.is_set:
        return Decision("set", VECTORS, dropped=True) if enough and are_vectors(data) else None
    min_distinct = min_distinct if enough else 2.0  # which no column has
    return _decide_labels(name, data, min_distinct, n_rows if enough else 0, rules)


def _decide_labels(
    name: str, data: Any, min_distinct: float, n_rows: int, rules: Rules
) -> Decision | None:
    """What labels are: text, numbers beside words, or what only tells rows apart."""
    labels = [label for label in data.labels if label is not None]
    types = set(map(type, labels))
    long = int in types and any(isinstance(v, int) and abs(v) > 2**53 for v in labels)
    if types == {bytes} or (long and types <= {int, str}):
        is_identifier = hardly_repeats(data, min_distinct)
        return Decision("nominal", IDENTIFIER, dropped=True) if is_identifier else None
    if long or str not in types or not types <= {str, int, float}:
        return None
    texts = [label if isinstance(label, str) else f"{label:.15g}" for label in labels]
    complete = rules not in ("first", "sample")
    if types != {str} and (unreadable := few_unreadable(data)):
        return _decide_numbers_and_words(name, data, min_distinct, n_rows, unreadable)
    decision = first_decision(_TEXT_RULES, TextColumn(name, texts, data, min_distinct, complete))
    if types == {str} or (decision is not None and decision.kind == "datetime"):
        return decision
    if numbers_written(texts) == ("numbers", "."):
        return _decide_numbers_and_words(name, data, min_distinct, n_rows)
    sure = decision is None or not (decision.kind == "numeric" or decision.question)
    return None if sure else decision


def few_unreadable(data: Any, *, of_days: bool = False) -> tuple[tuple[str, int], ...]:
    """The texts beside numbers or dates that are neither, and in how many cells they are.

    Nothing if they are many: more than a fifth of the cells, or of the distinct values if there are
    more than two of them. ``of_days`` is as in :func:`unreadable_cells`.
    """
    first = [label for label in data.labels[:FIRST_TEXTS] if label is not None]
    if sum(isinstance(text, str) and is_unreadable(text) for text in first) > MAX_FIRST_EXCEPTIONS:
        return ()
    unreadable = unreadable_cells(data.codes, data.labels, of_days=of_days)
    cells = np.bincount(data.codes, minlength=len(data.labels)).tolist()
    counts = [n for v, n in zip(data.labels, cells, strict=True) if n and not _is_missing(v)]
    n_values, n_unreadable = len(counts), len(unreadable)
    max_unreadable = MAX_EXCEPTION_SHARE * n_values if n_unreadable > 2 else (n_values - 3) / 2
    few = n_unreadable <= max_unreadable
    few = few and sum(unreadable.values()) <= MAX_EXCEPTION_SHARE * sum(counts)
    return tuple(unreadable.items()) if few else ()


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, str) and not present_texts([label]))


def _but_for(decision: Decision, unreadable: tuple[tuple[str, int], ...]) -> Decision:
    """What a column is but for some values, which are read as missing."""
    why = f"{decision.why}, except {cells_in_words(unreadable)}, read as missing"
    return decision._replace(why=why, question="exceptions", unreadable=unreadable)


def _decide_numbers_and_words(
    name: str,
    data: Any,
    min_distinct: float,
    n_rows: int,
    unreadable: tuple[tuple[str, int], ...] = (),
) -> Decision | None:
    """What numbers are, some of which are text or words for missing, as of a worksheet."""
    words = dict(unreadable)
    labels = [None if label in words else label for label in data.labels]
    texts = [
        label if isinstance(label, str) else f"{label:.15g}"
        for label in labels
        if label is not None
    ]
    if words and numbers_written(texts) != ("numbers", "."):
        return None
    values = [_plain_number(label) for label in labels]
    decision = (
        decide_whole_numbers(name, np.array(values)[data.codes], min_distinct, n_rows)
        if n_rows
        else None
    )
    if decision is not None and decision.kind == "nominal":
        return decision
    written = present_texts([label for label in labels if isinstance(label, str)])
    why = "numbers, some written as text" if written else "numbers"
    why, is_dropped = (why, False) if decision is None else (decision.why, decision.dropped)
    numbers = Decision("numeric", why, is_dropped, format=".")
    return _but_for(numbers, unreadable) if unreadable and not is_dropped else numbers


def _plain_number(label: Any) -> float:
    if label is None:
        return float("nan")
    return number_of(label) if isinstance(label, str) else float(label)


# -- text: the first rule that fits says what a column is ---------------------------------------


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of text as the rules see it: its labels, missing apart, and its rows."""

    name: str
    labels: list[str]
    data: Any
    min_distinct: float  # share of rows with distinct values that an identifier has
    complete: bool  # whether all values are there

    @cached_property
    def numbers(self) -> tuple[str, str] | None:
        """What numbers the texts are, and how they are written."""
        return numbers_written(self.labels)

    @cached_property
    def doubt(self) -> Decision | None:
        """What the texts would be but for some of them, or what is not sure about them."""
        return _doubt(self.name, self.labels)

    @property
    def hardly_repeat(self) -> bool:
        """Whether the values are distinct in most rows."""
        return hardly_repeats(self.data, self.min_distinct)


def _readable_but_for_few(texts: TextColumn) -> Decision | None:
    """Numbers or dates, a few cells of which hold words, or days that do not exist."""
    unreadable = few_unreadable(texts.data)
    if not unreadable:
        return None
    words = dict(unreadable)
    readable = replace(texts, labels=[label for label in texts.labels if label not in words])
    decision = first_decision(_READABLE_RULES, readable)
    return None if decision is None or decision.question else _but_for(decision, unreadable)


def _days_but_for_few(texts: TextColumn) -> Decision | None:
    """Dates of digits alone, as the name says, a few cells of which hold words, or name no day."""
    if not DATE_NAMES.search(texts.name):
        return None
    unreadable = few_unreadable(texts.data, of_days=True)
    words = dict(unreadable)
    decision = compact_dates(replace(texts, labels=[v for v in texts.labels if v not in words]))
    return _but_for(decision, unreadable) if decision is not None and unreadable else None


def _doubtful(texts: TextColumn) -> Decision | None:
    return texts.doubt


# Dates come before numbers, since 20240131 is both; whatever can be read, before identifiers.
_READABLE_RULES: tuple[Callable[[TextColumn], Decision | None], ...] = (
    iso_datetimes,
    clock_times,
    dates_of_one_order,
    periods,
    compact_dates,
    amounts_in_text,
)

_TEXT_RULES: tuple[Callable[[TextColumn], Decision | None], ...] = (
    *_READABLE_RULES[:-1],
    _days_but_for_few,
    names_of_rows,
    amounts_in_text,
    ordered_ranges,
    _readable_but_for_few,
    lists_in_text,
    identifiers,
    _doubtful,
    codes_of_digits,
)


def _doubt(name: str, labels: Sequence[str]) -> Decision | None:
    """What text would be but for some of its values, or what is not sure about it."""
    if len(date_orders(labels)) > 1:
        why = "dates, day or month first? declare format 'dmy' or 'mdy'"
        return Decision("nominal", why, question="order")
    if why := _unclear_text(name, labels):
        return Decision("nominal", why, question="meaning")
    if why := _exceptions(name, labels):
        return Decision("nominal", why, question="exceptions")
    if are_lists(labels):
        return Decision("nominal", "lists? declare kind 'set'", question="lists")
    if mark := joined_by(labels):
        why = f"lists? declare kind 'set' with delimiter {mark!r}"
        return Decision("nominal", why, question="lists", delimiter=mark)
    return None


def _unclear_text(name: str, labels: Sequence[str]) -> str:
    """What text may be that only its user can tell, or write so that it can be read."""
    if are_mixed_dates(labels):
        return "dates written in several ways: write all as 2024-01-31 to have them read as dates"
    if has_both_zones(labels):
        return "datetimes, some with a time zone and some without: give all of them one, or none"
    if are_terms(labels):
        return "months, or parts of a year? write 2024-01 to have them read as months"
    if are_short_months(labels):
        return "months, or days of a month? write 2024-03 to have them read as months"
    pairs = are_pairs(labels)
    if has_no_year(labels) or (pairs and DATE_NAMES.search(name)):
        return "dates without a year: add it to have them read as datetimes"
    if units := units_written(labels):
        shown = f"{', '.join(map(repr, units[:-1]))} and {units[-1]!r}"
        return f"numbers in several units, {shown}: write all in one"
    return "two numbers in a cell? split them into two columns" if pairs else ""


def _exceptions(name: str, labels: Sequence[str]) -> str:
    """What text would be but for a few of its values, and two of these."""
    codes = NO_AMOUNT.search(name) or has_leading_zeros(labels)
    for what, fits in _TOLD_BY_MOST:
        first_texts = present_texts(labels[:FIRST_TEXTS])
        if sum(not fits(text) for text in first_texts) > MAX_FIRST_EXCEPTIONS:
            continue
        texts = list(map(str.strip, labels)) if what == "ranges" else present_texts(labels)
        exceptions = [text for text in texts if not fits(text)]
        if what == "dates" and not exceptions:
            exceptions = impossible_dates(texts)
        few = 0 < len(exceptions) <= 2 and len(texts) >= 3 + 2 * len(exceptions)
        if what == "ranges":
            few = few and ranges_in_order([t for t in texts if t not in exceptions]) is not None
        elif len(exceptions) > 2:
            few = len(exceptions) <= MAX_EXCEPTION_SHARE * len(texts) and not codes
        if few:
            more = f" and {len(exceptions) - 2:,} more" if len(exceptions) > 2 else ""
            return f"{what}, except {', '.join(map(repr, sorted(exceptions)[:2]))}{more}"
    return ""
