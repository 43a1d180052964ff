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
  (``2024-02-30``), are read as missing; :meth:`~tabweave.Table.kinds` and a warning list them. Few
  are up to a fifth of the cells, and of the distinct values if more than two of these are odd.
- Whole numbers stay ``numeric``, also years and counts of few values. Codes are ``nominal``: those
  whose name says so (``zip``, ``code``, ``id``, ``PRODID``) or is that of a thing without an order
  (``state``, ``subject``, ``race``; not ``state_income``), two values only, or a few values of
  three digits or more that are neither round nor near each other (200, 301, 404), unless their
  name says what they measure.
- Of numbers, nines such as -999 that lie farther from all others than those from each other may
  stand for missing: the reason says so, and they stay numbers.
- Whole numbers are ``nominal`` if one of them, beyond 2**53, is no float (2**53 + 1).
- Identifiers are set aside: text of one word, or bytes, 95 of 100 of which are distinct, whole
  numbers that rise from row to row with few gaps, unless their name says what they measure
  (``year``, ``day``, ``age``), an ``id`` whose values hardly repeat, the index of pandas, the row
  names of R (``rownames``), whatever their order. A table of less than 20 rows has none; of a
  stream, the first 200 rows must not repeat one.
- A constant column is set aside, too, if all rows are there to see it; of a stream it counts for
  nothing as long as it is constant.
- Text of more than 129 values stays ``nominal``, and counts by its spelling, too; with five words
  on average it is called sentences (:mod:`tabweave.columns.spelling`).
- Of more than 524,288 rows as many are looked at, drawn by row number, the same from every source.
- Two numbers in a cell (``120/80``) stay ``nominal``: split them into columns to have them compared
  as numbers.
- Three or more ranges that follow on one another (``<18``, ``18-24``, ``65+``; ``1960-64``) are
  ``ordinal``, if all rows are there to see them.
- Where up to a fifth of its values keep text from being numbers, dates or times of day, the reason
  names two of them; so it does with values that differ only in case, blanks or type.
- Lists are ``set``, ordered categories ``ordinal``, records are flattened to ``record.field``.
  Vectors (lists of equal length, most of whose numbers occur once, not all whole) are set aside:
  each number means something by its position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from tabweave.columns.formats import (
    DATE_ORDERS,
    DURATIONS,
    FEW_TEXTS,
    PERIODS,
    SOME_TEXTS,
    are_mixed_dates,
    are_pairs,
    are_short_months,
    are_terms,
    cells_in_words,
    currencies,
    date_order,
    date_orders,
    digits_of,
    has_both_zones,
    has_brackets,
    has_leading_zeros,
    has_no_year,
    impossible_dates,
    is_clock,
    is_compact_dates,
    is_compact_months,
    is_date,
    is_iso,
    is_number,
    is_time,
    is_unreadable,
    list_in_text,
    number_of,
    numbers_written,
    periods_written,
    present_texts,
    range_of,
    ranges_in_order,
    units_written,
)
from tabweave.columns.frames import code_for_missing

Kind = Literal["nominal", "ordinal", "numeric", "datetime", "set"]
# Whether all rows are at hand, a sample of them (which proves no constant) or the first of a
# stream; "texts" sets only text aside, "all" nothing.
Rules = Literal["whole", "sample", "first", "texts", "all"]
FEW_ROWS = 20  # tables with fewer have neither identifiers nor codes
_FIRST_ROWS = 200  # of a stream, in which not one value of an identifier repeats
_MANY_ROWS = 10_000  # that are as good as all
_DISTINCT = 0.95
_MOST_CODES = 20
_ENOUGH_DATES = 10  # that are digits alone: the chance of as many codes to be dates is nil
_MOST_ODD = 0.2  # of texts, up to which the others tell what a column would be
_MOST_ODD_OF_FIRST = 4  # of the first values, so that most columns are told from these
# What only the user knows of a column: whether a few values that keep it from being read are
# missing, the order of day and month, what joins lists, whether values that are spelled alike are
# the same, or, of all else, what is meant by it.
Asks = Literal["", "exceptions", "order", "lists", "spelling", "meaning"]
CODE_NAMES = re.compile(
    r"(?i:(?:^|[\W_])(?:zip|zips|zipcode|postal|postcode|plz|codes?|ids?|uuid|guid|keys?|fips|sic"
    r"|naics|isbn|ean|upc|sku|phone|ssn)\d*(?:$|[\W_]))"
    r"|(?<=[a-z0-9])(?:Id|ID|Code|Zip|Key)(?:$|[\W_])"
    r"|(?i:(?:^|[\W_])(?:prod|product|item|order|cust|customer|client|user|member|emp|employee|person"
    r"|patient|subject|student|pupil|school|class|store|shop|vendor|site|device|account|acct|session"
    r"|dept|house|household|family|state|county|country|region|case|seq|doc|obs"
    r"|rec|record|resp|respondent|pat|pt|subj|fam|hh|ind|firm|company|team|player|plot|unit|dist"
    r"|district|hospital|sample|invoice|card|cc|bank|policy|contract|ticket|serial|tracking|passport"
    r"|licen[cs]e|telephone|mobile|fax|part|flight|vehicle|driver|supplier|machine)"
    r"[\W_]?(?:id|nr|no|num|number|code?)\d*(?:$|[\W_])|(?:^|[\W_])[psu]id(?:$|[\W_]))"
)
_MEASURE_NAMES = re.compile(
    r"(?i:(?:^|[\W_])(?:t|times?|years?|yr|quarters?|months?|weeks?|days?|dates?|hours?|minutes?"
    r"|seconds?|periods?|ages?|rank(?:ing)?|position|place|distance|dist|depth|height|size)\d*"
    r"(?:$|[\W_]))"
)
# Of what has no order, if the whole name is one of these: state_income is an income.
_THING_NAMES = re.compile(
    r"(?i:(?:subject|patient|person|respondent|participant|household|firm|company|store"
    r"|customer|client|user|student|pupil|vendor|supplier"
    r"|state|county|country|province|district|municipality|region|site|station|plot|team|player"
    r"|race|ethnic(?:ity)?|religion|nationality|language|occupation|industry|sector|species|brand"
    r"|marital(?:[_. ]?status)?|sex|gender|type)\d*)"
)
NO_AMOUNT = re.compile(rf"{CODE_NAMES.pattern}|\A{_THING_NAMES.pattern}\Z")
# What pandas and others call an index that became a column, the empty name among them.
_INDEX_NAMES = re.compile(r"__index_level_\d+__|Unnamed: 0(?:\.\d+)?|index|level_0|column0|")
_ROW_NAMES = re.compile(r"(?i:row[ ._]?(?:names?|index|numbers?|nums?|nrs?|ids?))")
_DURATION_NAMES = re.compile(
    r"(?i:durat|elapsed|runtime|length|(?:^|[\W_])(?:lap|took|pace)s?(?:$|[\W_]))"
)
_DATE_NAMES = re.compile(
    r"(?i:date|datum|fecha|(?:^|[\W_])(?:days?|dt|dob|born|birth(?:day)?|yyyymmdd)(?:$|[\W_]))"
    r"|(?<=[a-z0-9])(?:Day|Dt)(?:$|[\W_])"
)
_MONTH_NAMES = re.compile(
    r"(?i:month|period|(?:^|[\W_])(?:ym|yyyymm|date|year_?mon)(?:$|[\W_]))|(?<=[a-z0-9])YM$"
)
_STAMP_NAMES = re.compile(
    r"(?i:time|date|stamp|epoch"
    r"|(?:^|[\W_])(?:ts|at|on|since|seen|created|updated|modified)(?:$|[\W_]))"
)
_FROM, _TO = 978_307_200, 4_102_444_800  # 2001 and 2100, in seconds since 1970
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # where a word begins, as in dayOfWeek
ISO_TEXT = "ISO text"
_IDENTIFIER = "an identifier: its values hardly repeat"
_INDEX = "the index of pandas"
_NAMES_OF_ROWS = "names of rows"
_Column = TypeVar("_Column")
_VECTORS = "vectors, not sets: split them into columns of numbers"


# What a text may be, by itself: the others of its column may show that it is an exception.
_TOLD_BY_MOST: tuple[tuple[str, Callable[[str], Any]], ...] = (
    ("numbers", is_number),
    ("dates", is_date),
    ("times of day", is_time),
    ("ranges", range_of),
)


class Finding(NamedTuple):
    """What one column was found to be."""

    column: str
    kind: Kind
    why: str
    kept: bool = True
    asks: Asks = ""  # what the user is to look at
    delimiter: str = ""  # of what may be lists
    unreadable: tuple[tuple[str, int], ...] = ()  # values read as missing, and their cells


class Kinds(tuple[Finding, ...]):
    """What each column of a table is, why, and whether it is kept or set aside.

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
    >>> kinds.aside
    {'row': 'counts the rows'}
    """

    @property
    def aside(self) -> dict[str, str]:
        """The columns that are set aside, and why."""
        return {found.column: found.why for found in self if not found.kept}

    def __repr__(self) -> str:
        rows = [("column", "kind", "kept", "why")]
        rows += [(one_line(f.column), f.kind, "yes" if f.kept else "no", f.why) for f in self]
        wide = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = ("  ".join([*map(str.ljust, row, wide), row[3]]).rstrip() for row in rows)
        return "\n".join(lines)


def one_line(name: str) -> str:
    """Return a name as a line of a table shows it: line breaks and an empty one are quoted."""
    return name if name.strip() and name.isprintable() else repr(name)


def aside_line(aside: dict[str, str]) -> str:
    """Return one line that says what was set aside; empty if nothing was."""
    shown = [f"{one_line(name)} ({why})" for name, why in list(aside.items())[:6]]
    more = [f"and {len(aside) - 6} more"] if len(aside) > 6 else []
    return f"set aside: {', '.join([*shown, *more])}" if aside else ""


class Verdict(NamedTuple):
    """What the rules say of a column."""

    kind: Kind
    why: str
    aside: bool = False
    format: str | None = None  # of what is written as text
    levels: tuple[str, ...] | None = None  # of ranges
    asks: Asks = ""
    delimiter: str = ""
    unreadable: tuple[tuple[str, int], ...] = ()  # values to read as missing, and their cells


def judge(name: str, data: Any, n_rows: int, rules: Rules) -> Verdict | None:
    """Return what a column of numbers or values is; None if it is what its type says."""
    enough = n_rows >= (_FIRST_ROWS if rules == "first" else FEW_ROWS)
    least = 1.0 if rules == "first" and n_rows < _MANY_ROWS else _DISTINCT
    if hasattr(data, "values"):
        dated = _dates_of_digits(name, digits_of(data.values), "whole numbers")
        return dated or (_judge_numbers(name, data.values, least, n_rows) if enough else None)
    if hasattr(data, "starts"):
        return Verdict("set", _VECTORS, aside=True) if enough and _are_vectors(data) else None
    least = least if enough else 2.0  # which no column has
    return _judge_labels(name, data, least, n_rows if enough else 0, rules)


def _judge_labels(name: str, data: Any, least: float, n_rows: int, rules: Rules) -> Verdict | None:
    """Return what labels are: text, numbers beside words, or what only tells rows apart."""
    labels = [label for label in data.labels if label is not None]
    types = set(map(type, labels))
    long = int in types and any(isinstance(v, int) and abs(v) > 2**53 for v in labels)
    if types == {bytes} or (long and types <= {int, str}):
        aside = _hardly_repeats(data, least)
        return Verdict("nominal", _IDENTIFIER, aside=True) if aside else None
    if long or str not in types or not types <= {str, int, float}:
        return None
    texts = [label if isinstance(label, str) else f"{label:.15g}" for label in labels]
    complete = rules not in ("first", "sample")
    if types != {str} and (unreadable := few_unreadable(data)):
        return _judge_numbers_and_words(name, data, least, n_rows, unreadable)
    verdict = _first(_TEXT_RULES, _Texts(name, texts, data, least, complete))
    if types == {str} or (verdict is not None and verdict.kind == "datetime"):
        return verdict
    if numbers_written(texts) == ("numbers", "."):
        return _judge_numbers_and_words(name, data, least, n_rows)
    sure = verdict is None or not (verdict.kind == "numeric" or verdict.asks)
    return None if sure else verdict


def _first(rules: Sequence[Callable[[_Column], Verdict | None]], column: _Column) -> Verdict | None:
    """Return the verdict of the first rule that has one."""
    return next((verdict for rule in rules if (verdict := rule(column)) is not None), None)


def few_unreadable(data: Any) -> tuple[tuple[str, int], ...]:
    """Return the texts beside numbers or dates that are neither, and in how many cells they are.

    Nothing if they are many: more than a fifth of the cells, or of the distinct values if there are
    more than two of them.
    """
    first = [label for label in data.labels[:FEW_TEXTS] if label is not None]
    if sum(isinstance(text, str) and is_unreadable(text) for text in first) > _MOST_ODD_OF_FIRST:
        return ()
    odd = unreadable_cells(data.codes, data.labels)
    cells = np.bincount(data.codes, minlength=len(data.labels)).tolist()
    met = [n for v, n in zip(data.labels, cells, strict=True) if n and not _is_missing(v)]
    most = _MOST_ODD * len(met) if len(odd) > 2 else (len(met) - 3) / 2
    few = len(odd) <= most and sum(odd.values()) <= _MOST_ODD * sum(met)
    return tuple(odd.items()) if few else ()


def unreadable_cells(codes: np.ndarray, labels: Sequence[Any]) -> dict[str, int]:
    """Return the texts that are neither numbers nor dates, and in how many cells, most first."""
    odd = [i for i, v in enumerate(labels) if isinstance(v, str) and is_unreadable(v)]
    if not odd:
        return {}
    cells = np.bincount(codes, minlength=len(labels)).tolist()
    found = sorted((-cells[i], labels[i]) for i in odd if cells[i])
    return {label: -count for count, label in found}


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, str) and not present_texts([label]))


def _but_for(verdict: Verdict, unreadable: tuple[tuple[str, int], ...]) -> Verdict:
    """Return what a column is but for some values, which are read as missing."""
    why = f"{verdict.why}, except {cells_in_words(unreadable)}, read as missing"
    return verdict._replace(why=why, asks="exceptions", unreadable=unreadable)


def _judge_numbers_and_words(
    name: str,
    data: Any,
    least: float,
    n_rows: int,
    unreadable: tuple[tuple[str, int], ...] = (),
) -> Verdict | None:
    """Return what numbers are, some of which are text or words for missing, as of a worksheet."""
    words = dict(unreadable)
    labels = [None if label in words else label for label in data.labels]
    texts = [
        label if isinstance(label, str) else f"{label:.15g}"
        for label in labels
        if label is not None
    ]
    if words and numbers_written(texts) != ("numbers", "."):
        return None
    found = [_plain_number(label) for label in labels]
    verdict = _judge_numbers(name, np.array(found)[data.codes], least, n_rows) if n_rows else None
    if verdict is not None and verdict.kind == "nominal":
        return verdict
    written = present_texts([label for label in labels if isinstance(label, str)])
    why = "numbers, some written as text" if written else "numbers"
    why, aside = (why, False) if verdict is None else (verdict.why, verdict.aside)
    numbers = Verdict("numeric", why, aside, format=".")
    return _but_for(numbers, unreadable) if unreadable and not aside else numbers


def _plain_number(label: Any) -> float:
    if label is None:
        return float("nan")
    return number_of(label) if isinstance(label, str) else float(label)


def _are_vectors(data: Any) -> bool:
    """Tell vectors, such as those of a model of text or pairs of coordinates, from sets.

    They are equally long, and most of their numbers occur once; some are not whole.
    """
    labels = [label for label in data.labels if label is not None]
    lengths = np.unique(np.diff(data.starts))
    if len(lengths[lengths > 1]) != 1 or 2 * len(labels) < len(data.codes):
        return False
    if not all(isinstance(label, int | float) for label in labels):
        return False
    return any(label != int(label) for label in labels if np.isfinite(label))


def _hardly_repeats(data: Any, least: float) -> bool:
    """Tell whether the values of a column, but for missing, are distinct in most rows."""
    seen = np.bincount(data.codes, minlength=len(data.labels))
    if None in data.labels:
        seen[data.labels.index(None)] = 0
    return bool(np.count_nonzero(seen) >= least * max(seen.sum(), FEW_ROWS))


# -- text: the first rule that fits says what a column is ---------------------------------------


@dataclass(frozen=True, eq=False)
class _Texts:
    """A column of text as the rules see it: its labels, missing apart, and its rows."""

    name: str
    labels: list[str]
    data: Any
    least: float  # share of rows with distinct values that an identifier has
    complete: bool  # whether all values are there

    @cached_property
    def numbers(self) -> tuple[str, str] | None:
        """What numbers the texts are, and how they are written."""
        return numbers_written(self.labels)

    @cached_property
    def doubt(self) -> Verdict | None:
        """What the texts would be but for some of them, or what is not sure about them."""
        return _doubt(self.name, self.labels)

    @property
    def hardly_repeat(self) -> bool:
        """Whether the values are distinct in most rows."""
        return _hardly_repeats(self.data, self.least)


def _iso_datetimes(texts: _Texts) -> Verdict | None:
    return Verdict("datetime", ISO_TEXT) if is_iso(texts.labels) else None


def _clock_times(texts: _Texts) -> Verdict | None:
    """8:30 is a time of day, unless the name of its column says that it is how long it took."""
    if not is_clock(texts.labels):
        return None
    if _DURATION_NAMES.search(texts.name):
        return Verdict("numeric", "durations written as text", format=DURATIONS)
    return Verdict("datetime", "times of day")


def _dates_of_one_order(texts: _Texts) -> Verdict | None:
    order = date_order(texts.labels)
    why = f"dates as text, {DATE_ORDERS[order]} first" if order else ""
    return Verdict("datetime", why, format=order) if order else None


def _periods(texts: _Texts) -> Verdict | None:
    unit = periods_written(texts.labels)
    why = f"{unit}s as text, taken as their first day"
    return Verdict("datetime", why, format=PERIODS) if unit else None


def _compact_dates(texts: _Texts) -> Verdict | None:
    return _dates_of_digits(texts.name, present_texts(texts.labels), "text")


def _names_of_rows(texts: _Texts) -> Verdict | None:
    named = is_index(texts.name) and texts.hardly_repeat
    return Verdict("nominal", _NAMES_OF_ROWS, aside=True) if named else None


def _amounts(texts: _Texts) -> Verdict | None:
    """Numbers, unless they may be codes: by their name, or because they are a few short ones."""
    if texts.numbers is None or NO_AMOUNT.search(texts.name) or _is_few_digits(texts.labels):
        return None
    return _numbers_as_text(texts.labels, *texts.numbers)


def _ranges(texts: _Texts) -> Verdict | None:
    """Ranges, if no other may come that does not follow on these."""
    levels = ranges_in_order(texts.labels) if texts.complete else None
    return Verdict("ordinal", "ranges in order", levels=tuple(levels)) if levels else None


def _readable_but_for_few(texts: _Texts) -> Verdict | None:
    """Numbers or dates, a few cells of which hold words, or days that do not exist."""
    unreadable = few_unreadable(texts.data)
    if not unreadable:
        return None
    odd = dict(unreadable)
    rest = replace(texts, labels=[label for label in texts.labels if label not in odd])
    verdict = _first(_READABLE_RULES, rest)
    return None if verdict is None or verdict.asks else _but_for(verdict, unreadable)


def _identifiers(texts: _Texts) -> Verdict | None:
    """Words that hardly repeat are set aside, whatever else they may be."""
    if not (is_one_word(texts.labels) and texts.hardly_repeat):
        return None
    return (texts.doubt or Verdict("nominal", _IDENTIFIER))._replace(aside=True)


def _doubtful(texts: _Texts) -> Verdict | None:
    return texts.doubt


def _codes_of_digits(texts: _Texts) -> Verdict | None:
    are_codes = texts.numbers is not None or has_leading_zeros(texts.labels)
    return Verdict("nominal", "digits that are codes") if are_codes else None


# Dates come before numbers, since 20240131 is both; whatever can be read, before identifiers.
_READABLE_RULES: tuple[Callable[[_Texts], Verdict | None], ...] = (
    _iso_datetimes,
    _clock_times,
    _dates_of_one_order,
    _periods,
    _compact_dates,
    _amounts,
)
_TEXT_RULES: tuple[Callable[[_Texts], Verdict | None], ...] = (
    *_READABLE_RULES[:-1],
    _names_of_rows,
    _amounts,
    _ranges,
    _readable_but_for_few,
    _identifiers,
    _doubtful,
    _codes_of_digits,
)


def _numbers_as_text(labels: Sequence[str], what: str, format: str) -> Verdict:
    """Return that texts are numbers, and what else is to be said of them."""
    used = currencies(labels) if what == "money" else []
    brackets = ", negative in brackets" * has_brackets(labels)
    alike = f", {', '.join(used)} taken as one currency" if len(used) > 1 else ""
    why = f"{what} written as text{brackets}{alike}"
    return Verdict("numeric", why, format=format, asks="meaning" if alike else "")


def _dates_of_digits(name: str, texts: Sequence[str], what: str) -> Verdict | None:
    """Return that digits such as 20240131 are dates, if there are enough or their name says so."""
    named = _DATE_NAMES.search(name)
    enough = len(texts) >= _ENOUGH_DATES and not NO_AMOUNT.search(name)
    if (named or enough) and is_compact_dates(texts):
        return Verdict("datetime", f"dates as {what}, such as {min(texts)}", format="ymd")
    if _MONTH_NAMES.search(name) and is_compact_months(texts):
        why = f"months as {what}, such as {min(texts)}, taken as their first day"
        return Verdict("datetime", why, format=PERIODS)
    return None


def _doubt(name: str, labels: Sequence[str]) -> Verdict | None:
    """Return what text would be but for some of its values, or what is not sure about it."""
    if len(date_orders(labels)) > 1:
        why = "dates, day or month first? declare format 'dmy' or 'mdy'"
        return Verdict("nominal", why, asks="order")
    if why := _unclear_text(name, labels):
        return Verdict("nominal", why, asks="meaning")
    if why := _exceptions(name, labels):
        return Verdict("nominal", why, asks="exceptions")
    if are_lists(labels):
        return Verdict("nominal", "lists? declare kind 'set'", asks="lists")
    if mark := joined_by(labels):
        why = f"lists? declare kind 'set' with delimiter {mark!r}"
        return Verdict("nominal", why, asks="lists", delimiter=mark)
    return None


def _unclear_text(name: str, labels: Sequence[str]) -> str:
    """Return what text may be that only its user can tell, or write so that it can be read."""
    if are_mixed_dates(labels):
        return "dates written in several ways: write all as 2024-01-31 to have them read as dates"
    if has_both_zones(labels):
        return "datetimes, some with a time zone and some without: give all of them one, or none"
    if are_terms(labels):
        return "months, or parts of a year? write 2024-01 to have them read as months"
    if are_short_months(labels):
        return "months, or days of a month? write 2024-03 to have them read as months"
    pairs = are_pairs(labels)
    if has_no_year(labels) or (pairs and _DATE_NAMES.search(name)):
        return "dates without a year: add it to have them read as datetimes"
    if units := units_written(labels):
        shown = f"{', '.join(map(repr, units[:-1]))} and {units[-1]!r}"
        return f"numbers in several units, {shown}: write all in one"
    return "two numbers in a cell? split them into two columns" if pairs else ""


def _exceptions(name: str, labels: Sequence[str]) -> str:
    """Return what text would be but for a few of its values, and two of these."""
    codes = NO_AMOUNT.search(name) or has_leading_zeros(labels)
    for what, fits in _TOLD_BY_MOST:
        if sum(not fits(text) for text in present_texts(labels[:FEW_TEXTS])) > _MOST_ODD_OF_FIRST:
            continue
        texts = list(map(str.strip, labels)) if what == "ranges" else present_texts(labels)
        odd = [text for text in texts if not fits(text)]
        if what == "dates" and not odd:
            odd = impossible_dates(texts)
        few = 0 < len(odd) <= 2 and len(texts) >= 3 + 2 * len(odd)
        if what == "ranges":
            few = few and ranges_in_order([t for t in texts if t not in odd]) is not None
        elif len(odd) > 2:
            few = len(odd) <= _MOST_ODD * len(texts) and not codes
        if few:
            more = f" and {len(odd) - 2:,} more" if len(odd) > 2 else ""
            return f"{what}, except {', '.join(map(repr, sorted(odd)[:2]))}{more}"
    return ""


def are_lists(labels: Sequence[str]) -> bool:
    """Tell whether texts are lists in brackets, as JSON and Python write them."""
    some = [label for label in labels[:SOME_TEXTS] if label.strip()]
    return bool(some) and all(list_in_text(label) is not None for label in some)


def joined_by(labels: Sequence[str]) -> str:
    """Return what joins the elements of lists written as text, few of which make up all of them."""
    if are_lists(labels):  # their commas are part of how they are written
        return ""
    for mark in (";", "|", ", "):
        joined = sum(mark in label for label in labels[:SOME_TEXTS])
        if joined >= 5 and 2 * joined >= len(labels[:SOME_TEXTS]):
            elements = {part.strip() for label in labels for part in label.split(mark)}
            if 2 * len(elements) <= len(labels):
                return mark.strip()
    return ""


def _is_few_digits(labels: Sequence[str]) -> bool:
    """Tell whether texts are a few whole numbers, as those of codes are; gaps do not count."""
    texts = present_texts(labels)
    return len(texts) <= _MOST_CODES and all(map(str.isdecimal, texts))


def is_one_word(labels: Sequence[str]) -> bool:
    """Tell whether most labels have no blank in them: names and sentences are no identifiers."""
    return sum(" " in label.strip() for label in labels) < 0.5 * len(labels)


# -- whole numbers: likewise ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _WholeNumbers:
    """A column of whole numbers as the rules see it: its cells, missing as NaN."""

    name: str
    values: np.ndarray
    distinct: np.ndarray
    n_present: int
    least: float  # share of rows with distinct values that an identifier has
    n_rows: int

    @property
    def named_as_codes(self) -> bool:
        """Whether the name says that the numbers are no amounts."""
        return NO_AMOUNT.search(self.name) is not None

    @property
    def named_as_measure(self) -> bool:
        """Whether the name says what the numbers measure."""
        return _MEASURE_NAMES.search(_CAMEL.sub("_", self.name)) is not None

    @property
    def all_differ(self) -> bool:
        """Whether every row has a number of its own."""
        return len(self.values) == self.n_present == len(self.distinct)

    @property
    def dense(self) -> bool:
        """Whether every row has a number of its own and few are left out between them."""
        return self.all_differ and bool(np.ptp(self.values) < 10 * self.n_rows)


def _pandas_level(numbers: _WholeNumbers) -> Verdict | None:
    level = numbers.name.startswith("__") and _INDEX_NAMES.fullmatch(numbers.name)
    return Verdict("numeric", _INDEX, aside=True) if level else None


def _years(numbers: _WholeNumbers) -> Verdict | None:
    first, last = numbers.distinct[0], numbers.distinct[-1]
    alike = first >= 1500 and last <= 2100 and not numbers.named_as_codes
    return Verdict("numeric", "years, or numbers like them") if alike else None


def _numbers_of_rows(numbers: _WholeNumbers) -> Verdict | None:
    named = numbers.all_differ and _ROW_NAMES.fullmatch(numbers.name)
    return Verdict("numeric", _NAMES_OF_ROWS, aside=True) if named else None


def _pandas_index(numbers: _WholeNumbers) -> Verdict | None:
    index = numbers.dense and _INDEX_NAMES.fullmatch(numbers.name)
    return Verdict("numeric", _INDEX, aside=True) if index else None


def _row_counts(numbers: _WholeNumbers) -> Verdict | None:
    """Numbers that rise from row to row, unless days or ages do."""
    rise = numbers.dense and np.array_equal(numbers.values, numbers.distinct)
    counts = rise and not numbers.named_as_measure
    return Verdict("numeric", "counts the rows", aside=True) if counts else None


def _numeric_identifiers(numbers: _WholeNumbers) -> Verdict | None:
    hardly_repeat = len(numbers.distinct) >= numbers.least * numbers.n_present
    named = numbers.named_as_codes and hardly_repeat
    return Verdict("numeric", _IDENTIFIER, aside=True) if named else None


def _yes_or_no(numbers: _WholeNumbers) -> Verdict | None:
    return Verdict("nominal", "two whole numbers only") if len(numbers.distinct) == 2 else None


def _named_codes(numbers: _WholeNumbers) -> Verdict | None:
    why = "whole numbers whose name says that they are codes"
    return Verdict("nominal", why) if numbers.named_as_codes else None


def _apparent_codes(numbers: _WholeNumbers) -> Verdict | None:
    codes = _look_like_codes(numbers.distinct, numbers.n_present) and not numbers.named_as_measure
    return Verdict("nominal", "whole numbers that look like codes") if codes else None


def _time_stamps(numbers: _WholeNumbers) -> Verdict | None:
    unit = _since_1970(numbers.name, numbers.distinct)
    why = f"numbers; {unit} since 1970? give datetimes to have hours and weekdays count"
    return Verdict("numeric", why, asks="meaning") if unit else None


def _codes_for_missing(numbers: _WholeNumbers) -> Verdict | None:
    return _tell_missing(numbers.values)


_NUMBER_RULES: tuple[Callable[[_WholeNumbers], Verdict | None], ...] = (
    _pandas_level,
    _years,
    _numbers_of_rows,
    _pandas_index,
    _row_counts,
    _numeric_identifiers,
    _yes_or_no,
    _named_codes,
    _apparent_codes,
    _time_stamps,
    _codes_for_missing,
)


def _judge_numbers(name: str, values: np.ndarray, least: float, n_rows: int) -> Verdict | None:
    """Return what numbers are; of few ones, or of some that are not whole, nothing can be said."""
    present = values[~np.isnan(values)]
    if len(present) < FEW_ROWS:
        return None
    if (present != np.floor(present)).any():
        return _tell_missing(present)
    distinct = np.unique(present)
    whole = _WholeNumbers(name, values, distinct, len(present), least, n_rows)
    return _first(_NUMBER_RULES, whole)


def _tell_missing(values: np.ndarray) -> Verdict | None:
    """Return that one of the numbers may stand for missing, if one does."""
    code = code_for_missing(values)
    if code is None:
        return None
    why = f"numbers; {code:.15g} for missing? leave such cells empty"
    return Verdict("numeric", why, asks="meaning")


def is_index(name: str) -> bool:
    """Tell whether the name of a column is one that libraries give to the names of rows."""
    return bool(_ROW_NAMES.fullmatch(name) or _INDEX_NAMES.fullmatch(name))


def _since_1970(name: str, distinct: np.ndarray) -> str:
    """Return "seconds" or "milliseconds" if whole numbers may be so many since 1970."""
    for unit, times in (("seconds", 1), ("milliseconds", 1000)):
        if _FROM * times <= distinct[0] and distinct[-1] < _TO * times:
            return unit if _STAMP_NAMES.search(_CAMEL.sub("_", name)) else ""
    return ""


def _look_like_codes(distinct: np.ndarray, n: int) -> bool:
    """Tell 200, 301, 404 from counts and measurements: equally long, far apart, not round."""
    if not 3 <= len(distinct) <= _MOST_CODES or n < 10 * len(distinct) or distinct[0] < 100:
        return False
    digits = np.floor(np.log10(distinct))
    apart = np.ptp(distinct) >= 4 * len(distinct)
    return bool(digits[0] == digits[-1] and apart and (distinct % 5 != 0).any())
