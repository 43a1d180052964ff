"""Datetime columns: dates, times and periods, typed or written as text, and their cycles."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tabweave._compat import warn_caller
from tabweave.columns.cells import Bins, MomentsOf, Part, kind, named_error
from tabweave.columns.decision import DATE_NAMES, DURATION_NAMES, MONTH_NAMES, NO_AMOUNT, Decision
from tabweave.columns.frames import (
    CLOCK_TIMES,
    DATETIMES,
    categories,
    holds_long_periods,
    infer_kind,
    is_period,
    object_array,
    objects,
    times_held,
)
from tabweave.columns.numeric import (
    DURATIONS,
    Knots,
    Numbers,
    numbers,
    seconds_of,
    sql_unless_missing,
)
from tabweave.columns.texts import (
    FIRST_TEXTS,
    MISSING_WORDS,
    SAMPLED_TEXTS,
    CellError,
    cells_in_words,
    matching_texts,
    present_texts,
)
from tabweave.columns.vocabulary import canonical, positions
from tabweave.io.dialects import Dialect, sql_text

if TYPE_CHECKING:
    from tabweave.columns.column import Column, Schema
    from tabweave.columns.kinds import TextColumn


@kind("datetime", "dates, datetimes and times of day")
@dataclass(frozen=True, eq=False)
class Datetimes(Numbers):
    """A datetime column: seconds since 1970 by the clock of its time zone, NaN where missing.

    Times of day are seconds since midnight.
    """

    holds = "dates or times"
    is_dated = True

    @classmethod
    def read(cls, cells: Any, column: Column, schema: Schema) -> Self:
        """Datetimes by the clock of the column's zone, or in the order of its dates."""
        seconds, _ = datetimes(cells, column.zone, first=False, order=column.date_order)
        return cls.checked(seconds, schema)

    @classmethod
    def completed(cls, column: Column, cells: Any) -> Column:
        """The column with the time zone of its cells, or the order of their parts."""
        if column.format is not None:
            return column
        cells = readable_cells(cells, column)
        try:
            zone = format_of_dates(cells) or datetimes(cells, None, first=True)[1]
        except (TypeError, ValueError) as error:
            raise named_error(error, column) from error
        return replace(column, format=zone)

    @classmethod
    def detailed(cls, column: Column, detail: str, cells: Any) -> Column:
        """The column with the order of day, month and year, as in ``datetime:dmy``."""
        if detail not in (*DATE_ORDERS, PERIODS):
            raise ValueError(
                "expected datetime:dmy (day first) or datetime:mdy (month first), got "
                f"{column.kind}:{detail}"
            )
        return replace(column, format=detail)

    @classmethod
    def parts(cls, column: Column) -> dict[str, Bins | None]:
        """The datetimes in buckets, and the bins of the cycles that they may have."""
        cycles = {Part(column.name, cycle.title): cycle for cycle in cycles_of(column)}
        return super().parts(column) | cycles

    def numbers(self, part: str) -> np.ndarray:
        """The datetimes, or how far into a cycle they are."""
        return cycle_of(part).phase(self.values) if isinstance(part, Part) else self.values

    @classmethod
    def shown_parts(cls, column: Column, counts: Any) -> list[str]:
        """The trend, unless the column has times of day, and the cycles that its rows last."""
        find = cycle_of_clock if column.is_clock else lasting_cycles
        cycles: list[str] = [Part(column.name, cycle.title) for cycle in find(counts, column.name)]
        return cycles if column.is_clock and cycles else [column.name, *cycles]

    @classmethod
    def sql(cls, part: str, column: Column, cell: str, dialect: Dialect) -> str:
        """Seconds since 1970 or midnight, or how far into a cycle they are."""
        text = f"CAST({cell} AS {dialect.text_type})"
        if column.is_clock:
            x = _sql_clock(f"TRIM({text})", dialect.number_type)
        else:
            seconds = _sqlite_seconds if dialect.name == "sqlite" else sql_seconds
            x = _sql_of_one_clock(seconds(cell, column, dialect), cell, column, dialect)
        x = sql_unless_missing(text, x)
        if not isinstance(part, Part):
            return x
        length = dialect.number(cycle_of(part).seconds)
        return f"({x}) - {length} * FLOOR(({x}) / {length})"

    @classmethod
    def period(cls, part: str) -> float | None:
        """Seconds since 1970 are what they are; of a cycle its length."""
        return cycle_of(part).seconds if isinstance(part, Part) else 0.0

    @classmethod
    def curve(cls, part: str, knots: Knots, moments: MomentsOf) -> np.ndarray:
        """The trend as numbers have it; a cycle on a ring."""
        if isinstance(part, Part):
            return ring(knots, cycle_of(part))
        return super().curve(part, knots, moments)

    def cell(self, row: int) -> str | None:
        """A datetime as ISO text; None if missing."""
        return self.text(self.values[row])

    def to_numpy(self) -> np.ndarray:
        """NumPy's datetimes."""
        return stamps(self.values)

    def text(self, seconds: float) -> str | None:
        """A datetime as ISO text, without a time if all are dates, without a date if all are times.

        What lies within the first day of 1970 is a time of day.
        """
        if np.isnan(seconds):
            return None
        moment = str(np.datetime64(round(seconds * 1e6), "us"))[self._shown].replace("T", " ")
        return moment.removesuffix(":00") if self._shown.start else moment

    def nearest(self, seconds: np.ndarray) -> np.ndarray:
        """Other datetimes rounded to the days, hours, minutes or seconds that all of these are."""
        present = self.values[~np.isnan(self.values)]
        step = next((s for s in (86_400, 3600, 60, 1) if not (present % s).any()), None)
        if step is None or not len(present):
            return np.asarray(seconds)
        rounded = np.round(np.asarray(seconds) / step) * step
        return np.mod(rounded, 86_400) if self._shown.start else rounded

    @cached_property
    def _shown(self) -> slice:
        """The part of an ISO text that tells them apart: of a whole column looked for once."""
        if np.nanmin(self.values) >= 0 and np.nanmax(self.values) < 86_400:
            return slice(11, 19)
        return slice(0, 19 if (self.values % 86_400 > 0).any() else 10)


def is_unreadable(text: str) -> bool:
    """Whether a text beside numbers or dates is neither: a word, or a day that does not exist.

    >>> is_unreadable("TBD"), is_unreadable("2024-02-30"), is_unreadable("12 apples")
    (True, True, False)
    """
    stripped = text.strip()
    if not any(map(str.isdigit, stripped)):
        return stripped.lower() not in MISSING_WORDS
    return is_date(stripped) and not (
        _zones([stripped]) or any(_is_date(stripped, o) for o in DATE_ORDERS)
    )


def is_no_day(text: str) -> bool:
    """Whether digits as many as a date has name no day.

    >>> is_no_day("20240230"), is_no_day("20240229"), is_no_day("202402")
    (True, False, False)
    """
    stripped = text.strip()
    return len(stripped) == 8 and stripped.isdecimal() and not _is_date(stripped, "ymd")


def unreadable_cells(
    codes: np.ndarray, labels: Sequence[Any], *, of_days: bool = False
) -> dict[str, int]:
    """The texts that are neither numbers nor dates, and in how many cells, most first.

    Where digits are days, such as 20240131, those that name none are among them.
    """
    texts = [(i, v) for i, v in enumerate(labels) if isinstance(v, str)]
    unreadable = [i for i, v in texts if is_unreadable(v) or (of_days and is_no_day(v))]
    if not unreadable:
        return {}
    cells = np.bincount(codes, minlength=len(labels)).tolist()
    by_count = sorted((-cells[i], labels[i]) for i in unreadable if cells[i])
    return {label: -count for count, label in by_count}


def readable_cells(cells: Any, column: Column) -> Any:
    """The cells of a column found to hold numbers or dates, missing where a word is.

    Those of a column that was declared, or most of which are words, stay as they are.
    """
    if not column.inferred:
        return cells
    codes, labels = categories(cells)
    words = unreadable_cells(codes, labels, of_days=column.date_order == "ymd")
    if sum(words.values()) > max(len(codes) / 2, 1):
        return cells
    if new := [pair for pair in words.items() if pair[0] not in dict(column.origin.unreadable)]:
        warn_caller(
            f"column {column.name!r}: expected {column.cells_type.holds}, got "
            f"{cells_in_words(new)}, read as missing; mend them, or leave them empty"
        )
    return object_array([None if label in words else label for label in labels])[codes]


# -- datetimes ------------------------------------------------------------------------------------

ISO = re.compile(
    r"\d{4}-\d\d-\d\d"
    r"(?:[T ]\d\d(?::\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
    r" ?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?(?: UTC)?)?)?)?"
)

_NAMED_UTC = re.compile(r" ?(?:Z|UTC|GMT)")

_OFFSET_AND_UTC = re.compile(r"[+-]\d\d:?\d\d UTC")

_CLOCK = re.compile(
    r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?"
    r"|(?i:(?:0?[1-9]|1[0-2]):[0-5]\d(?::[0-5]\d)? ?[ap]m)"
)


def is_iso(labels: Sequence[str]) -> bool:
    """Whether texts are ISO dates or datetimes, all of them with a time zone or none."""
    return (
        len(_zones(matching_texts(labels, ISO)[:SAMPLED_TEXTS])) == 1
    )  # reading finds a bad one beyond


def has_both_zones(labels: Sequence[str]) -> bool:
    """Whether texts are ISO datetimes, some of them with a time zone and some without."""
    return len(_zones(matching_texts(labels, ISO)[:SAMPLED_TEXTS])) == 2


def _zones(texts: Sequence[str]) -> set[bool]:
    """Whether ISO texts lack a time zone: one answer or both; none if one is no date."""
    try:
        return {parse_iso(text).tzinfo is None for text in texts}
    except ValueError:
        return set()


def is_clock(labels: Sequence[str]) -> bool:
    """Whether texts are times of day, such as 8:30, 8:30 PM or 23:59:59.5, all of them."""
    return bool(matching_texts(labels, _CLOCK))


def parse_clock(text: str | None) -> float:
    """The seconds since midnight of a time of day, NaN for a word for missing."""
    if text is None or text.strip().lower() in MISSING_WORDS:
        return float("nan")
    clock = text.strip().lower().replace(",", ".")
    half = clock[-2:] if clock.endswith("m") else ""
    hours, minutes, *seconds = clock.removesuffix(half).split(":")
    hour = int(hours) % 12 + 12 * (half == "pm") if half else int(hours)
    return 3600.0 * hour + 60.0 * int(minutes) + (float(seconds[0]) if seconds else 0.0)


def parse_iso(text: str) -> dt.datetime:
    """The datetime of an ISO text."""
    stripped = text.strip()
    if not ISO.fullmatch(stripped):
        raise CellError("a date or time such as 2024-01-31 23:50:00", text)
    try:
        stripped = stripped.removesuffix(" UTC") if _OFFSET_AND_UTC.search(stripped) else stripped
        return dt.datetime.fromisoformat(_NAMED_UTC.sub("Z", stripped).replace(" +", "+"))
    except ValueError as error:
        raise CellError("a date or time that exists", text, f": {error}") from error


DATE_ORDERS = {"mdy": "month", "dmy": "day", "ymd": "year"}

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()

_NAMED_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]*\.?"

_WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday".split()

_WEEKDAYS = [name[:3] for name in _WEEKDAY_NAMES]

_WEEKDAY = rf"(?:{'|'.join(_WEEKDAYS)})[a-z]*"

_ZONE = r"(?:[+-]\d{4}|gmt|utc?|[ecmp][sd]t)"

_SECONDS = r"\d{1,2}:\d\d:\d\d"

_DATE = re.compile(
    rf"(?i:(?:{_WEEKDAY},? )?"
    r"(?:\d{1,2}([/.-])\d{1,2}\1\d{4}|\d{1,2}/\d{1,2}/\d\d|\d\d\.\d\d\.\d\d|\d{4}([/.])\d{1,2}\2\d{1,2}"
    rf"|\d{{1,2}}([ -]){_NAMED_MONTH}\3(?:\d{{4}}|\d\d)|{_NAMED_MONTH} \d{{1,2}},? \d{{4}})"
    rf"(?:,? (?:{_SECONDS} {_ZONE}|\d{{1,2}}:\d\d(?::\d\d)?(?: ?[ap]m)?))?"
    rf"|\d\d/{_NAMED_MONTH}/\d{{4}}:{_SECONDS}(?: [+-]\d{{4}})?)"  # of a web server's log
)

_YEAR_LAST = re.compile(  # as C and Unix write it: Tue Mar  5 10:11:12 2024
    rf"(?i:({_WEEKDAY} )?({_NAMED_MONTH})  ?(\d{{1,2}}) ({_SECONDS})( {_ZONE})? (\d{{4}}))"
)

_COMPACT = re.compile(r"(?i:(\d{4})(\d\d)(\d\d)(?:T?(\d\d)(\d\d)(\d\d)?Z?)?)")

_TOKENS = re.compile(r"(?<!\d)(?<! [+-])\d+|[a-z]+")  # all but offsets

_NO_TOKENS = re.compile(rf"{_WEEKDAY}|{_ZONE}")


def date_order(labels: Sequence[str]) -> str | None:
    """The one order of day, month and year in which texts are dates; None if in doubt."""
    fits = date_orders(labels)
    return fits[0] if len(fits) == 1 else None


def date_orders(labels: Sequence[str]) -> list[str]:
    """The orders of day, month and year in which texts are dates."""
    texts = matching_texts(labels, _DATE) or matching_texts(labels, _YEAR_LAST)
    return [o for o in DATE_ORDERS if texts and all(_is_date(text, o) for text in texts)]


def is_date(text: str) -> bool:
    """Whether a text is written as dates are, ISO or not; there may be no such day."""
    return any(way.fullmatch(text) for way in (ISO, _DATE, _YEAR_LAST))


def is_time(text: str) -> bool:
    """Whether a text is a time of day."""
    return _CLOCK.fullmatch(text) is not None


def impossible_dates(texts: Sequence[str]) -> list[str]:
    """The texts, written as dates, that are none in the order that fits most of them."""
    first_texts = texts[:10_000]
    bad = [
        [text for text in first_texts if not (_is_date(text, order) or _zones([text]))]
        for order in DATE_ORDERS
    ]
    return min(bad, key=len)


def _is_date(text: str, order: str) -> bool:
    try:
        parse_date(text, order)
    except ValueError:
        return False
    return True


def parse_date(text: str, order: str) -> dt.datetime:
    """The datetime of a text whose day, month and year stand in an order such as "dmy"."""
    if order == PERIODS:
        return parse_period(text)
    lowered = _YEAR_LAST.sub(r"\2 \3, \6 \4", text.strip().lower())
    compact = _COMPACT.fullmatch(lowered) if order == "ymd" else None
    tokens = [token for token in _TOKENS.findall(lowered) if not _NO_TOKENS.fullmatch(token)]
    if compact:
        tokens = [part for part in compact.groups() if part]
    part = dict(zip(order, tokens, strict=False))
    try:
        if not (compact or _DATE.fullmatch(lowered)) or (order == "ymd" and len(tokens[0]) < 4):
            raise ValueError
        half = tokens.pop() if tokens[-1] in ("am", "pm") else ""
        hour, minute, second = [*map(int, tokens[3:]), 0, 0, 0][:3]
        hour = hour % 12 + 12 * (half == "pm") if half else hour
        day = (_year(part["y"]), _month(part["m"]), int(part["d"]))
        return dt.datetime(*day, hour, minute, second)
    except ValueError:
        raise CellError(f"a date, {DATE_ORDERS[order]} first as in fit", text) from None


def _month(text: str) -> int:
    return _MONTHS.index(text[:3]) + 1 if text.isalpha() else int(text)


def _year(text: str) -> int:
    """A year; of two digits it is the one from 1969 to 2068, as in POSIX."""
    return int(text) + (0 if len(text) > 2 else 1900 if text >= "69" else 2000)


def is_compact_dates(texts: Sequence[str]) -> bool:
    """Whether texts are dates of digits alone, such as 20240131, from 1900 to 2099."""
    return bool(texts) and all(
        _PLAUSIBLE.match(text) and _COMPACT.fullmatch(text) and _is_date(text, "ymd")
        for text in texts
    )


_PLAUSIBLE = re.compile("19|20")

_DATE_LENGTHS = {6, 8, 12, 14}  # 202403, 20240305, 202403051011, 20240305101112


def digits_of(values: np.ndarray) -> list[str]:
    """The distinct digits of numbers as long as dates are; none if there are others."""
    present = values[~np.isnan(values)]
    ends = (present.min(), present.max()) if len(present) else ()
    lengths = {len(f"{end:.0f}") for end in ends}
    if not lengths or not lengths <= _DATE_LENGTHS or (present % 1 != 0).any():
        return []
    return [f"{value:.0f}" for value in np.unique(present).tolist()]


_WITHOUT_YEAR = re.compile(rf"(?i:{_NAMED_MONTH}  ?\d{{1,2}} {_SECONDS})")  # of the log of a system


def has_no_year(labels: Sequence[str]) -> bool:
    """Whether texts are datetimes that lack the year, such as Mar  5 10:11:12."""
    return bool(matching_texts(labels, _WITHOUT_YEAR))


_SHORT_MONTH = re.compile(rf"(?i:{_NAMED_MONTH}[ -]\d\d|\d\d[ -]{_NAMED_MONTH})")


def are_short_months(labels: Sequence[str]) -> bool:
    """Whether texts are months with two digits, such as Mar-23: of a year, or a day."""
    return bool(matching_texts(labels, _SHORT_MONTH))


def are_mixed_dates(labels: Sequence[str]) -> bool:
    """Whether texts are dates, but written in several ways."""
    if not all(map(_way_of, present_texts(labels[:FIRST_TEXTS]))):
        return False
    ways = set(map(_way_of, present_texts(labels)))
    return len(ways) > 1 and None not in ways


def _way_of(text: str) -> re.Pattern[str] | None:
    ways = (ISO, _DATE, _YEAR_LAST, _COMPACT, *_PERIODS)
    return next((way for way in ways if way.fullmatch(text)), None)


# -- periods --------------------------------------------------------------------------------------

PERIODS = "period"  # stands for the format of a column of months, quarters or weeks

DIGIT_FORMATS = ("ymd", PERIODS)  # of dates that may be whole numbers, such as 20240131

_OF_YEAR = r"(?P<year>(?:19|20)\d\d)"

_PERIODS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_OF_YEAR}[-/](?P<month>0?[1-9]|1[0-2])",
        rf"{_OF_YEAR}(?P<month>0[1-9]|1[0-2])",
        rf"(?P<month>0?[1-9]|1[0-2])/{_OF_YEAR}",
        rf"(?P<month>(?:{'|'.join(_MONTHS)})[a-z]*)\.?[ -]{_OF_YEAR}",
        rf"{_OF_YEAR}[ -](?P<month>(?:{'|'.join(_MONTHS)})[a-z]*)\.?",
        rf"{_OF_YEAR}[- ]?Q(?P<quarter>[1-4])",
        rf"Q(?P<quarter>[1-4])[-/ ]?{_OF_YEAR}",
        rf"{_OF_YEAR}[- ]?W(?P<week>0[1-9]|[1-4]\d|5[0-3])",
    )
]

_COMPACT_MONTH = _PERIODS[1]

_TERM = re.compile(r"((?:19|20)\d\d)[-/][1-4]")


def periods_written(labels: Sequence[str]) -> str | None:
    """The unit "month", "quarter" or "week" of texts such as 2024-03, Q1 2024 or 2024-W05.

    2009-10, 2010-11, 2011-12 are no months but years that end in the next one; nor are 2009-1,
    2009-2, 2010-1, in which nothing is above 4: terms or quarters, for all one knows. 202403 is a
    number.
    """
    if not all(map(_period, present_texts(labels[:FIRST_TEXTS]))):
        return None
    texts = present_texts(labels)
    matches = [None if _COMPACT_MONTH.fullmatch(text) else _period(text) for text in texts]
    units = {match and _unit_of_period(match) for match in matches}
    others = all(map(is_season, texts)) or are_terms(texts)
    return None if len(units) != 1 or others else units.pop()


def are_terms(labels: Sequence[str]) -> bool:
    """Whether texts are parts of several years, such as 2009-1, of which there are few."""
    matches = list(map(_TERM.fullmatch, present_texts(labels)))
    return len({match and match[1] for match in matches} - {None}) > 1 and all(matches)


def _unit_of_period(match: re.Match[str]) -> str:
    return next(name for name in match.groupdict() if name != "year")


def is_compact_months(texts: Sequence[str]) -> bool:
    """Whether texts are months of digits alone, such as 202403, from 1900 to 2099."""
    return bool(texts) and all(map(_COMPACT_MONTH.fullmatch, texts))


def date_format(texts: Sequence[str]) -> str | None:
    """The format of dates, if they are no ISO text; raise if two orders fit."""
    orders = date_orders(texts)
    if len(orders) > 1:
        raise ValueError(
            "expected dates that show whether day or month comes first, got "
            f"{min(texts)!r}, for example: declare format 'dmy' or 'mdy', as in "
            "Column(name, 'datetime', format='dmy')"
        )
    if orders:
        return orders[0]
    present = present_texts(texts)
    if is_compact_dates(present):
        return "ymd"
    return PERIODS if periods_written(texts) or is_compact_months(present) else None


def is_season(text: str) -> bool:
    """Whether a text is a year and the next one, as 2009-10: a season, no month."""
    year, mark, after = text.partition("-")
    return mark == "-" and year.isdecimal() and f"{int(year) + 1}"[-2:] == after


def _period(text: str) -> re.Match[str] | None:
    match = next(filter(None, (pattern.fullmatch(text) for pattern in _PERIODS)), None)
    return match if match and _first_day(match) else None


def _first_day(match: re.Match[str]) -> dt.datetime | None:
    """The first day of a period; None if its year has no such week."""
    unit, year = _unit_of_period(match), int(match["year"])
    if unit == "week":
        try:
            return dt.datetime.fromisocalendar(year, int(match["week"]), 1)
        except ValueError:
            return None
    month = _month(match["month"].lower()) if unit == "month" else 3 * int(match["quarter"]) - 2
    return dt.datetime(year, month, 1)


def parse_period(text: str) -> dt.datetime:
    """The first day of a month, a quarter or a week."""
    match = _period(text.strip())
    if match is None:
        raise CellError("a month, quarter or week as in fit", text)
    return _first_day(match)  # type: ignore[return-value]


def _write_period(moment: dt.datetime, texts: Sequence[str]) -> str:
    """The period of a datetime as the texts of a column are written."""
    matches = [match for match in map(_period, texts) if match]
    like = max(matches, key=lambda match: len(match.group()))
    unit = _unit_of_period(like)
    if unit == "week":
        year, number, _ = moment.isocalendar()
    else:
        year, number = moment.year, moment.month if unit == "month" else (moment.month + 2) // 3
    written = f"{number:02}" if all(len(match[unit]) > 1 for match in matches) else str(number)
    if like[unit].isalpha():
        written = _named_month(moment, like[unit])
    parts = sorted([(like.span("year"), str(year)), (like.span(unit), written)], reverse=True)
    out = like.group()
    for (start, end), part in parts:
        out = out[:start] + part + out[end:]
    return out


# -- datetimes, written again ---------------------------------------------------------------------

_PARTS = re.compile(_TOKENS.pattern, re.IGNORECASE)

_ISO_PARTS = re.compile(r"(\d{4}-\d\d-\d\d(?:[T ][\d:.,]+)?)(.*)")

_MONTH_NAMES = (
    "january february march april may june july august september october november december".split()
)


def write_datetime(moment: dt.datetime, texts: Sequence[str], order: str | None = None) -> str:
    """A datetime as the texts of a column are written: order, signs, zeros, month names.

    >>> write_datetime(dt.datetime(2016, 7, 4, 15, 5), ["7/21/2016 9:30 AM"], "mdy")
    '7/4/2016 3:05 PM'
    >>> write_datetime(dt.datetime(2016, 7, 4, 15, 5), ["2016-07-21T09:30:00Z"])
    '2016-07-04T15:05:00Z'
    """
    longest = max(texts, key=len)
    if order == PERIODS:
        return _write_period(moment, texts)
    if _COMPACT.fullmatch(longest):
        digits = iter(f"{moment.year:04}{moment:%m%d%H%M%S}")
        return "".join(next(digits) if sign.isdecimal() else sign for sign in longest)
    iso = _ISO_PARTS.fullmatch(longest)
    head, tail = iso.groups() if iso else (longest, "")
    fields = iter((order or ("ymd" if iso else "")) + "HMSf")
    if _YEAR_LAST.fullmatch(longest):
        fields = iter("mdHMSy")
    slots = [_TOKENS.findall(text.lower()) for text in texts]
    half = any(slot[-1] in ("am", "pm") for slot in slots if slot)
    slot_numbers = iter(range(len(head)))

    def written(match: re.Match[str]) -> str:
        i, text = next(slot_numbers), match.group()
        same = [s[i] for s in slots if len(s) > i]
        zeros = any(t.startswith("0") for t in same) if order else all(len(t) > 1 for t in same)
        if text.isalpha():
            return _letters(text, moment, fields)
        return _digits(next(fields), text, moment, zeros, half)

    return _PARTS.sub(written, head) + tail


def _letters(text: str, moment: dt.datetime, fields: Any) -> str:
    """The name of a month, or the half of a day, in the case of another; T stays T."""
    if text.lower() in ("am", "pm"):
        return _cased("pm" if moment.hour >= 12 else "am", text)
    if text[:3].lower() in _WEEKDAYS:
        name = _WEEKDAY_NAMES[moment.weekday()]
        return _cased(name if len(text) > 3 else name[:3], text)
    if text[:3].lower() not in _MONTHS:
        return text
    next(fields)
    return _named_month(moment, text)


def _named_month(moment: dt.datetime, like: str) -> str:
    name = _MONTH_NAMES[moment.month - 1]
    return _cased(name if len(like) > 3 else name[:3], like)


def _cased(name: str, like: str) -> str:
    return name.upper() if like.isupper() else name.title() if like[0].isupper() else name


def _digits(field: str, text: str, moment: dt.datetime, zeros: bool, half: bool) -> str:
    """One field of a datetime, as long as a text is or as its zeros make it."""
    if field == "y":
        return f"{moment.year:04}"[-len(text) :]
    if field == "f":
        return f"{moment.microsecond:06}".ljust(len(text), "0")[: len(text)]
    hour = (moment.hour % 12 or 12) if half else moment.hour
    numbers = {"m": moment.month, "d": moment.day, "H": hour, "M": moment.minute}
    number = numbers.get(field, moment.second)
    return f"{number:02}" if zeros or field in "MS" else str(number)


ISO_TEXT = "ISO text"

# -- text: the first rule that fits says what a column is ---------------------------------------


def iso_datetimes(texts: TextColumn) -> Decision | None:
    """Datetimes, if all texts are ISO."""
    return Decision("datetime", ISO_TEXT) if is_iso(texts.labels) else None


def clock_times(texts: TextColumn) -> Decision | None:
    """8:30 is a time of day, unless the name of its column says that it is how long it took."""
    if not is_clock(texts.labels):
        return None
    if DURATION_NAMES.search(texts.name):
        return Decision("numeric", "durations written as text", format=DURATIONS)
    return Decision("datetime", "times of day")


def dates_of_one_order(texts: TextColumn) -> Decision | None:
    """Dates of the one order of day, month and year that fits all texts."""
    order = date_order(texts.labels)
    why = f"dates as text, {DATE_ORDERS[order]} first" if order else ""
    return Decision("datetime", why, format=order) if order else None


def periods(texts: TextColumn) -> Decision | None:
    """Months, quarters or weeks: their first days."""
    unit = periods_written(texts.labels)
    why = f"{unit}s as text, taken as their first day"
    return Decision("datetime", why, format=PERIODS) if unit else None


def compact_dates(texts: TextColumn) -> Decision | None:
    """Dates of digits alone."""
    return dates_of_digits(texts.name, present_texts(texts.labels), "text")


def dates_of_digits(name: str, texts: Sequence[str], what: str) -> Decision | None:
    """Dates, if digits such as 20240131 are, and are enough or their name says so."""
    named = DATE_NAMES.search(name)
    enough = len(texts) >= 10 and not NO_AMOUNT.search(name)
    if (named or enough) and is_compact_dates(texts):
        return Decision("datetime", f"dates as {what}, such as {min(texts)}", format="ymd")
    if MONTH_NAMES.search(name) and is_compact_months(texts):
        why = f"months as {what}, such as {min(texts)}, taken as their first day"
        return Decision("datetime", why, format=PERIODS)
    return None


# -- Datetimes: one column of any library in, seconds since 1970 by the clock on the wall out

OWN_CLOCK = "local"  # the zone of datetimes that have offsets of their own

CLOCK = "clock"  # stands for the zone of times of day, which have no date


def datetimes(
    column: Any, zone: str | None, *, first: bool, order: str | None = None
) -> tuple[np.ndarray, str | None]:
    """Seconds since 1970 as a clock on the wall shows them, and the column's own time zone.

    With ``first``, the clock is that of the column's own zone. Otherwise datetimes of another zone
    are moved to ``zone``, and those without one are taken for its clock. Times of day are seconds
    since midnight. ``order`` is that of dates in text.
    """
    if is_period(column):
        column = column.dt.to_timestamp()
    held = times_held(column)
    if held == CLOCK_TIMES:
        _check_clock(zone, first)
        return numbers(column), CLOCK
    if zone == CLOCK and not first:
        return np.mod(datetimes(column, None, first=True)[0], 86_400.0), CLOCK
    if held != DATETIMES:
        if infer_kind(column) == "numeric":
            values = numbers(column)
            if order in DIGIT_FORMATS:
                return _dates_of_digits(values, order), None
            return _as_seconds(values), None
        return _datetimes_of_text(column, zone, first, order)
    library = type(column).__module__.partition(".")[0]
    if str(getattr(column, "dtype", "")).lower().startswith("object"):
        return _datetimes_of_objects(list(map(_as_datetime, objects(column).tolist())), zone, first)
    zone_of, walls_of = _READERS.get(library, (lambda _: None, lambda cells, *_: cells))
    column_zone = _ZONE_NAMES.get(zone_of(column), zone_of(column))
    walls = walls_of(column, column_zone, _target_zone(column_zone, zone, first))
    return seconds_of(np.asarray(walls)), column_zone


def _as_seconds(values: np.ndarray) -> np.ndarray:
    """Numbers as seconds since 1970; raise for those that count smaller units."""
    end_of_9999 = 253_402_300_800  # in seconds since 1970
    beyond = np.flatnonzero(np.abs(values) > end_of_9999)
    if len(beyond):
        raise ValueError(
            f"expected seconds since 1970, got {values[beyond[0]]:.0f}, beyond the year 9999; if "
            "they are milliseconds divide them by 1000, or give datetimes"
        )
    return values


def _dates_of_digits(values: np.ndarray, order: str | None) -> np.ndarray:
    """Read whole numbers such as 20240131 by their digits, each distinct one once."""
    distinct, index = np.unique(values, return_inverse=True)
    texts = [None if np.isnan(v) else f"{v:.15g}" for v in distinct.tolist()]
    return _datetimes_of_text(object_array(texts), None, True, order)[0][index]


def _check_clock(zone: str | None, first: bool) -> None:
    if not first and zone != CLOCK:
        raise ValueError(
            "expected dates or datetimes, as in fit, got times of day without a date; add their "
            "dates, or fit again"
        )


_ZONE_NAMES = dict.fromkeys(("Etc/UTC", "Z", "GMT", "Etc/GMT", "+00:00", "UTC+00:00"), "UTC")


def _target_zone(column_zone: str | None, zone: str | None, first: bool) -> str | None:
    """The zone to move datetimes to, None if they are to stay; raise if there is none."""
    if first or column_zone is None or column_zone == zone or zone == OWN_CLOCK:
        return None
    if zone is None:
        raise ValueError(
            f"expected datetimes without a time zone, as in fit, got some with {column_zone}; "
            f"convert them to the time zone of fit and drop the zone"
        )
    return zone


def _zone_of_pandas(column: Any) -> str | None:
    dtype = getattr(column.dtype, "pyarrow_dtype", column.dtype)
    zone = getattr(dtype, "tz", None)
    return None if zone is None else str(zone).removeprefix("UTC") or "UTC"


def _walls_of_pandas(column: Any, column_zone: str | None, target_zone: str | None) -> np.ndarray:
    if hasattr(column.dtype, "pyarrow_dtype"):
        import pyarrow as pa

        return _walls_of_arrow(pa.chunked_array([pa.array(column)]), column_zone, target_zone)
    if target_zone is not None:
        column = column.dt.tz_convert(zone_info(target_zone))
    if column_zone is not None:
        column = column.dt.tz_localize(None)
    return np.asarray(column.to_numpy("datetime64[us]"))


def _zone_of_polars(column: Any) -> str | None:
    return getattr(column.dtype, "time_zone", None)


def _walls_of_polars(column: Any, column_zone: str | None, target_zone: str | None) -> np.ndarray:
    if column_zone is not None:
        column = column.dt.convert_time_zone(target_zone or column_zone).dt.replace_time_zone(None)
    return np.asarray(column.to_numpy())


def _zone_of_arrow(column: Any) -> str | None:
    return getattr(column.type, "tz", None)


def _walls_of_arrow(column: Any, column_zone: str | None, target_zone: str | None) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.compute as pc

    if column_zone is not None:
        column = pc.local_timestamp(
            column.cast(pa.timestamp("us", target_zone or column_zone), safe=False)
        )
    return np.asarray(column)


_READERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "pandas": (_zone_of_pandas, _walls_of_pandas),
    "polars": (_zone_of_polars, _walls_of_polars),
    "pyarrow": (_zone_of_arrow, _walls_of_arrow),
}


def _datetimes_of_text(
    column: Any, zone: str | None, first: bool, order: str | None
) -> tuple[np.ndarray, str | None]:
    """Read each distinct text once."""
    codes, labels = categories(column)
    texts = [label for label in labels if isinstance(label, str) or label is None]
    if len(texts) == len(labels) and is_clock([text for text in texts if text is not None]):
        _check_clock(zone, first)
        return np.array([parse_clock(text) for text in texts])[codes], CLOCK
    _check_all_clock(labels)
    naive = _plain_datetimes(labels)
    if naive is not None:
        return seconds_of(naive)[codes], None
    moments = [_as_datetime(label, order) for label in labels]
    seconds, column_zone = _datetimes_of_objects(moments, zone, first)
    return seconds[codes], column_zone


def _check_all_clock(labels: Sequence[Any]) -> None:
    """Raise for the first cell that is no time of day, if others are."""
    times = {text for text in labels if isinstance(text, str) and is_time(text.strip())}
    if times:
        gaps = {text for text in labels if isinstance(text, str) and not present_texts([text])}
        other = next(label for label in labels if label not in times | gaps | {None})
        raise CellError(f"times of day, such as {min(times)!r}", other)


def _plain_datetimes(labels: Sequence[Any]) -> np.ndarray | None:
    """ISO texts without a time zone as NumPy reads them, ten times faster; else None."""
    texts = ["NaT" if label is None else label for label in labels]
    if not all(type(text) is str and _WITHOUT_ZONE(text) for text in texts):
        return None
    try:
        return np.array(texts, "M8[us]")
    except ValueError:
        return None


_WITHOUT_ZONE = re.compile(r"NaT|.{10}(?:[ T][0-9:.]*)?").fullmatch


def _datetimes_of_objects(
    moments: Sequence[dt.datetime | None], zone: str | None, first: bool
) -> tuple[np.ndarray, str | None]:
    present = [moment for moment in moments if moment is not None]
    offsets = {moment.utcoffset() for moment in present}
    if len({offset is None for offset in offsets}) > 1:
        raise ValueError(
            "expected datetimes that all have a time zone, or none; got both, e.g. "
            f"{next(m for m in present if m.utcoffset() is None)} without one"
        )
    column_zone = None
    if offsets and None not in offsets:
        column_zone = "UTC" if offsets == {dt.timedelta(0)} else OWN_CLOCK
    target_zone = _target_zone(column_zone, zone, first)
    target = zone_info(target_zone) if target_zone else None
    seconds = [
        np.nan if m is None else _wall_seconds(m if target is None else m.astimezone(target))
        for m in moments
    ]
    return np.array(seconds, np.float64), column_zone


def _as_datetime(value: Any, order: str | None = None) -> dt.datetime | None:
    """A cell as a datetime, None where missing."""
    label = canonical(value)
    if label is None:
        return None
    if isinstance(value, dt.datetime):
        return value
    if order in DIGIT_FORMATS and isinstance(label, int | float):
        label = f"{label:.15g}"
    if isinstance(label, str):
        if label.strip().lower() in MISSING_WORDS:
            return None
        return parse_iso(label) if order is None or is_iso([label]) else parse_date(label, order)
    raise CellError("a date or time", value)


def _wall_seconds(moment: dt.datetime) -> float:
    return (moment.replace(tzinfo=dt.UTC) - _EPOCH) / dt.timedelta(seconds=1)


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def zone_info(zone: str) -> dt.tzinfo:
    """A time zone by its name, or by its offset as in +01:00."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if zone[:1] in ("+", "-"):
        return dt.datetime.fromisoformat(f"2000-01-01T00:00:00{zone}").tzinfo or dt.UTC
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"expected the name of a time zone, got {zone!r}") from None


def format_of_dates(cells: Any) -> str | None:
    """How text or whole numbers write dates; None if they are days, or ISO text."""
    if holds_long_periods(cells):
        return PERIODS
    if times_held(cells) in (DATETIMES, CLOCK_TIMES):
        return None
    if infer_kind(cells) == "numeric":
        return date_format(digits_of(numbers(cells)))
    return date_format([label for label in categories(cells)[1] if isinstance(label, str)])


def farthest_date(cells: Any) -> str:
    """The date farthest from today in a column of another library, as ISO text."""
    seconds = datetimes(cells, None, first=True)[0]
    return str(np.datetime64(int(seconds[np.nanargmax(np.abs(seconds))]), "s"))


def stamps(seconds: np.ndarray) -> np.ndarray:
    """Datetimes from seconds since 1970."""
    microseconds = np.nan_to_num(np.round(seconds * 1e6)).astype("datetime64[us]")
    return np.where(np.isnan(seconds), np.datetime64("NaT", "us"), microseconds)


# -- what is counted of a column ----------------------------------------------------------------

DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class Cycle(Bins):
    """Something that comes back: what it is called, how many seconds it takes, and its bins."""

    title: str
    seconds: float
    n_bins: int

    @property
    def edges(self) -> np.ndarray:
        """The inner edges of the bins."""
        return self.seconds * np.arange(1, self.n_bins) / self.n_bins

    def phase(self, seconds: np.ndarray) -> np.ndarray:
        """How far into the cycle datetimes are, in seconds."""
        return np.mod(seconds, self.seconds)


CYCLES = (
    Cycle("time of day", DAY_SECONDS, 24),
    Cycle("weekday", 7 * DAY_SECONDS, 7),
    Cycle("time of year", 365.2425 * DAY_SECONDS, 12),
)


def cycles_of(column: Column) -> Sequence[Cycle]:
    """The cycles that the datetimes of a column may have."""
    if column.is_clock:
        return CYCLES[:1]
    return CYCLES[2:] if column.date_order == PERIODS else CYCLES  # a month has no weekday


def cycle_of(part: Any) -> Cycle:
    """The cycle of which a part of datetimes has the bins."""
    return next(cycle for cycle in CYCLES if cycle.title == part.aspect)


# -- coordinates: a trend, and cycles as rings of bins, on which 23:50 lies beside 00:10 -----------


def lasting_cycles(counts: Any, column: str) -> list[Cycle]:
    """The cycles that a column of datetimes shows, from its counts.

    Rows last ``√12`` standard deviations, as long as datetimes that come evenly: that must be 0.9
    of a cycle, so that three weeks have no time of year. Dates without times have no time of day,
    as they all lie in one bin of it.
    """
    n, _, variance = counts.moments(column)
    lasting = np.sqrt(12 * variance) if n else 0.0
    return [
        cycle
        for cycle in CYCLES
        if lasting >= 0.9 * cycle.seconds and _n_bins_met(counts, Part(column, cycle.title)) > 1
    ]


def cycle_of_clock(counts: Any, column: str) -> list[Cycle]:
    """The cycle of times of day, if they lie in more than one of its bins."""
    return [CYCLES[0]] if _n_bins_met(counts, Part(column, CYCLES[0].title)) > 1 else []


def _n_bins_met(counts: Any, name: str) -> int:
    if name not in counts.names:
        return 0
    labels = counts.labels[counts.vocabulary.index(name)]
    return sum(label is not None for label in labels)


def ring_knots(counts: Any, name: str, phases: np.ndarray, cycle: Cycle) -> Knots:
    """The bins of a cycle as points of a closed line; bins not met stand for the nearest.

    Parameters
    ----------
    counts : Counts
        What was counted.
    name : str
        The counted column of the bins.
    phases : ndarray
        The mean phase of each bin.
    cycle : Cycle
        The cycle.
    """
    column = counts.vocabulary.index(name)
    labels, mass = counts.labels[column], counts.value_counts[counts.span(column)].astype(float)
    missing = labels.index(None) if None in labels else None
    bin_value = positions(labels, range(cycle.n_bins))
    present_bins = np.flatnonzero(bin_value < len(labels))
    if not len(present_bins):
        return Knots(np.zeros(0), np.zeros(0, np.intp), np.zeros(0), missing)
    gap = np.abs(np.arange(cycle.n_bins)[:, None] - present_bins)
    nearest = present_bins[np.minimum(gap, cycle.n_bins - gap).argmin(axis=1)]
    share = np.zeros(cycle.n_bins)
    share[present_bins] = mass[bin_value[present_bins]] / mass[bin_value[present_bins]].sum()
    x = np.concatenate([phases[-1:] - cycle.seconds, phases, phases[:1] + cycle.seconds])
    around = np.r_[cycle.n_bins - 1, : cycle.n_bins, 0]
    value, share = bin_value[nearest][around], share[around]
    share[[0, -1]] = 0
    return Knots(x, value, share, missing)


def ring(knots: Knots, cycle: Cycle) -> np.ndarray:
    """Cosine and sine at the knots; the mean squared distance of two rows is 1."""
    angle = 2 * np.pi * knots.x / cycle.seconds
    rows = np.column_stack([np.cos(angle), np.sin(angle)])
    rows = rows - knots.share @ rows
    inertia = float(knots.share @ (rows**2).sum(axis=1)) if len(rows) else 0.0
    return rows / np.sqrt(2 * inertia) if inertia > 0 else np.zeros((len(rows), 2))


# -- SQL: seconds since 1970, or since midnight ----------------------------------------------------


def sql_seconds(cell: str, column: Column, dialect: Dialect) -> str:
    """The seconds since 1970 of a date and time, by the clock of its column."""
    types = dialect.types
    text = f"CAST({cell} AS {types['text']})"
    if column.zone is None:
        if column.why in (ISO_TEXT, "declared"):  # databases ask for minutes behind the hour
            cell = f"CASE WHEN LENGTH({text}) = 13 THEN {text} || ':00' ELSE {text} END"
        time = f"CAST({cell} AS {types['timestamp']})"
    elif column.zone == OWN_CLOCK:
        time = f"CAST({dialect.wall_clock.format(text=text)} AS {types['timestamp']})"
    else:
        time = f"CAST({cell} AS {types['timestamptz']})"
        time = dialect.zoned.format(zone=sql_text(column.zone), time=time)
        wall = f"CAST({cell} AS {types['timestamp']})"  # without an offset it is by this clock
        time = f"CASE WHEN {_sql_has_offset(text)} THEN {time} ELSE {wall} END"
    return dialect.seconds.format(time=time)


def _sql_has_offset(text: str) -> str:
    """Whether the text of a date and time ends in an offset or Z."""
    time = f"SUBSTR({text}, 12)"
    return " OR ".join(f"{time} LIKE '{sign}'" for sign in ("%+%", "%-%", "%Z"))


def _sql_of_one_clock(seconds: str, cell: str, column: Column, dialect: Dialect) -> str:
    """The seconds, or an error of the database for cells whose clock is not the one of fit."""
    text = f"CAST({cell} AS {dialect.text_type})"
    if column.zone is None:
        differs = _sql_has_offset(text)
        message = "fitted without a time zone; convert to the clock of fit and drop the zone, not "
    elif column.zone == OWN_CLOCK and dialect.has_zone:
        differs = dialect.has_zone.format(cell=cell)
        message = (
            "fitted on times with offsets of their own, which a timestamp with time zone does not "
            "keep; give the text, or fit on datetimes of one time zone, not "
        )
    else:
        return seconds
    words = dialect.text(f"column {column.name}: {message}")
    error = dialect.error.format(text=f"{words} || {text}")
    return f"CASE WHEN {differs} THEN {error} ELSE {seconds} END"


def _sqlite_seconds(cell: str, column: Column, dialect: Dialect) -> str:
    """Whole seconds and the fraction behind them; a number is seconds already."""
    seconds_text = f"substr({cell}, 1, 19) || CASE WHEN length({cell}) = 13 THEN ':00' ELSE '' END"
    if column.zone not in (None, OWN_CLOCK):
        if column.zone != "UTC":
            raise ValueError(
                f"column {column.name!r} has the time zone {column.zone!r}, but SQLite does not "
                "know time zones; convert it to UTC before fit, or use another dialect"
            )
        seconds_text += f" || CASE WHEN substr({cell}, -6, 1) IN ('+', '-') AND length({cell}) > 16"
        seconds_text += f" THEN substr({cell}, -6) ELSE '' END"
    part = f"CASE WHEN substr({cell}, 20, 1) = '.' THEN CAST('0' || substr({cell}, 20) AS REAL)"
    seconds = f"CAST(strftime('%s', {seconds_text}) AS REAL) + {part} ELSE 0 END"
    return f"CASE WHEN typeof({cell}) IN ('integer', 'real') THEN {cell} ELSE {seconds} END"


def _sql_clock(cell: str, number_type: str) -> str:
    """The seconds since midnight of a time of day, as a type of its own or as text."""
    cell = f"CASE WHEN SUBSTR({cell}, 2, 1) = ':' THEN '0' || {cell} ELSE {cell} END"
    hour, minute = (f"CAST(SUBSTR({cell}, {start}, 2) AS {number_type})" for start in (1, 4))
    half = f"CASE WHEN UPPER({cell}) LIKE '%PM' THEN 12 ELSE 0 END"
    halved = f"CASE WHEN {hour} = 12 THEN 0 ELSE {hour} END + {half}"
    hour = f"(CASE WHEN UPPER({cell}) LIKE '%M' THEN {halved} ELSE {hour} END)"
    tail = f"REPLACE(REPLACE(UPPER(SUBSTR({cell}, 7)), 'AM', ''), 'PM', '')"
    seconds = f"CAST(TRIM(REPLACE({tail}, ',', '.')) AS {number_type})"
    last = f"CASE WHEN SUBSTR({cell}, 6, 1) = ':' THEN {seconds} ELSE 0 END"
    return f"3600 * {hour} + 60 * {minute} + {last}"
