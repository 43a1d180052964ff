"""Formats: numbers, durations, ranges and datetimes that are written as text.

Each is told (all texts of a column fit, but for words such as ``NA``), read and, as the column
writes it, written again. A format is a short text that says how to read a column: the decimal mark
of its numbers and their unit (``"."``, ``",km"``), :data:`DURATIONS`, the order of day, month and
year (``"dmy"``), or :data:`PERIODS`.
"""

from __future__ import annotations

import ast
import datetime as dt
import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

FEW_TEXTS = 20  # from which most that are something else are told
SOME_TEXTS = 1000  # that are read to see whether all can be
_MOST_UNITS = 6
_MANY = 10_000  # texts in which one that is no date is looked for
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


def list_in_text(text: str) -> list[Any] | None:
    """Return a list that is written as JSON or as Python writes one; None if a text is no list."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            out = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return out if isinstance(out, list) else None
    return None


def present_texts(labels: Sequence[str]) -> list[str]:
    """Return labels without the blanks around them, but for words that stand for missing."""
    return [text for label in labels if (text := label.strip()).lower() not in MISSING_WORDS]


def looks_missing(label: Any) -> bool:
    """Tell whether a category may be a word, or a code, for missing: it counts as a value."""
    plain = label.strip().lower() if isinstance(label, str) else None
    return plain in MISSING_WORDS or plain in _MISSING_CODES


def is_unreadable(text: str) -> bool:
    """Tell whether a text beside numbers or dates is neither: a word, or a day that does not exist.

    >>> is_unreadable("TBD"), is_unreadable("2024-02-30"), is_unreadable("12 apples")
    (True, True, False)
    """
    plain = text.strip()
    if not any(map(str.isdigit, plain)):
        return plain.lower() not in MISSING_WORDS
    return is_date(plain) and not (_zones([plain]) or any(_is_date(plain, o) for o in DATE_ORDERS))


def cells_in_words(cells: Iterable[tuple[str, int]]) -> str:
    """Return values and in how many cells they are, the first two of them.

    >>> cells_in_words([("TBD", 3), ("soon", 1), ("?!", 1)])
    "'TBD' (3 cells), 'soon' (1 cell) and 1 more"
    """
    shown = [f"{value!r} ({n:,} cell{'s' * (n != 1)})" for value, n in cells]
    return ", ".join(shown[:2]) + (f" and {len(shown) - 2:,} more" if len(shown) > 2 else "")


def _matching(labels: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    """Return the texts that are not missing if all of them match, and else none."""
    if not all(map(pattern.fullmatch, present_texts(labels[:FEW_TEXTS]))):
        return []
    texts = present_texts(labels)
    return texts if all(map(pattern.fullmatch, texts)) else []


# -- numbers --------------------------------------------------------------------------------------

CURRENCIES = (  # those that end with another one first
    "US$", "A$", "C$", "R$", "$", "€", "£", "¥", "₹", "₩", "₺", "₽", "₪", "₫", "zł", "kr",
    "USD", "EUR", "GBP", "CHF", "JPY", "CAD", "AUD", "CNY", "INR", "BRL", "SEK", "NOK", "DKK",
    "PLN",
)  # fmt: skip
_UNIT = "(?:" + "|".join(map(re.escape, CURRENCIES)) + ")"
_SIGN = r"[+\-−]?"
BLANKS = " \u00a0\u2009\u202f"  # that separate thousands, as apostrophes do
APOSTROPHES = "'’"
_GROUPS = rf"(?:[{BLANKS}]\d{{3}})+|(?:[{APOSTROPHES}]\d{{3}})+"
_NUMBER = {  # by decimal mark; thousands first, those of India (12,34,567) among them
    ".": rf"(?:[1-9]\d{{0,2}}(?:(?:,\d{{3}})+|{_GROUPS})(?:\.\d*)?"
    r"|[1-9]\d?(?:,\d\d)+,\d{3}(?:\.\d*)?"
    r"|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)",
    ",": rf"(?:[1-9]\d{{0,2}}(?:(?:\.\d{{3}})+|{_GROUPS})(?:,\d*)?|\d+,?\d*|,\d+)",
}
_WRITTEN = {
    mark: {
        "numbers": re.compile(rf"{_SIGN}{digits}"),
        "percents": re.compile(rf"{_SIGN}{digits}\s?%"),
        "money": re.compile(
            rf"{_SIGN}{_UNIT}\s?{_SIGN}{digits}|{_SIGN}{digits}\s?{_UNIT}|{_SIGN}{digits}"
        ),
    }
    for mark, digits in _NUMBER.items()
}
_MINUS_BEHIND = re.compile(r"([^\-−]*\d[.,]\d[^\-−]*)[-−]")  # of accounts; 3- is a grade
_BLANK_GROUPS = re.compile(rf"\d[{BLANKS}]\d")
_IN_BRACKETS = re.compile(r"([^\d()+\-−]{0,4})\(([^()+\-−]+)\)([^\d()]{0,4})")
_WITH_UNIT = {
    mark: re.compile(rf"(?P<number>{_SIGN}{digits})\s?(?P<unit>(?:[^\W\d_]|[°\"'])[^\d,;]{{0,14}})")
    for mark, digits in _NUMBER.items()
}
# Numbers whose points may separate thousands; SQL searches by it, too.
THOUSANDS = re.compile(rf"{_SIGN}(?:[1-9]\d{{0,2}}(?:\.\d{{3}})*|0)")
_LEADING_ZERO = re.compile(r"[+-]?0\d+")
_CURRENCY = re.compile(_UNIT)
_NO_DIGITS = re.compile(rf"{_UNIT}|[%\s{APOSTROPHES}]")


def numbers_written(labels: Sequence[str]) -> tuple[str, str] | None:
    """Return how text writes numbers ("numbers", "money", "percents", ...) and its format.

    The format is the decimal mark, then the unit if all have the same one; that of durations is
    ``:``. None if some text is neither a number nor a word for missing, or digits lead with a zero.
    A mark with exactly three digits behind it separates thousands if it is a comma, or the text is
    money; otherwise a point is a decimal one, unless another column has decimal commas. Blanks
    separate thousands if some numbers are longer than others, or have decimals.
    """
    few = list(map(_with_minus_first, present_texts(labels[:FEW_TEXTS])))
    if few and _written_as(few) is None:  # most text is told from a few
        return None
    texts = present_texts(labels)
    negative = any(all(map(p.fullmatch, texts)) for p in (_IN_BRACKETS, _MINUS_BEHIND))
    if not texts or negative or has_leading_zeros(texts) or _are_grouped_codes(texts):
        return None
    return _written_as(list(map(_with_minus_first, texts)))


def _are_grouped_codes(texts: Sequence[str]) -> bool:
    """Tell codes and telephone numbers, such as 123 456 789, from amounts: all look alike."""
    if not any(map(_BLANK_GROUPS.search, texts)):
        return False
    shapes = {re.sub(r"\d", "0", text) for text in texts}
    return len(shapes) == 1 and re.search(r"[.,]\d", texts[0]) is None


def _written_as(texts: Sequence[str]) -> tuple[str, str] | None:
    for what in ("numbers", "percents", "money"):
        for mark in (".", ",") if what != "money" else _money_marks(texts):
            pattern = _WRITTEN[mark][what]
            if all(map(pattern.fullmatch, texts)):
                return what, mark
    for mark in (".", ","):
        found = [_WITH_UNIT[mark].fullmatch(text) for text in texts]
        units = {_unit_of(match) for match in found}
        if len(units) == 1 and None not in units:
            return f"numbers in {found[0]['unit'].strip()}", f"{mark}{units.pop()}"  # type: ignore[index]
    return ("durations", DURATIONS) if all(map(is_duration, texts)) else None


def _unit_of(match: re.Match[str] | None) -> str | None:
    """Return the unit behind a number, in small letters and for one: 3 Days and 1 day are alike."""
    if match is None:
        return None
    unit = match["unit"].strip().lower()
    return unit.removesuffix("s") if len(unit) > 3 or unit in ("yrs", "hrs") else unit


def _money_marks(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the decimal marks to try: money has cents of two digits, or thousands of three."""
    points = [text.rpartition(".")[2] for text in texts if "." in text]
    thousands = points and all(re.match(r"\d{3}(?!\d)", after) for after in points)
    return (",", ".") if thousands else (".", ",")


def has_brackets(labels: Sequence[str]) -> bool:
    """Tell whether some number is in brackets, as accountants write those below zero."""
    return any(map(_IN_BRACKETS.fullmatch, present_texts(labels)))


def currencies(labels: Sequence[str]) -> list[str]:
    """Return the signs of the currencies that amounts of money are written with, sorted."""
    return sorted({sign for text in present_texts(labels) for sign in _CURRENCY.findall(text)})


def has_thousands(labels: Iterable[Any]) -> bool:
    """Tell whether all points in numbers written as text may separate thousands, as in 12.345."""
    texts = present_texts([label for label in labels if isinstance(label, str)])
    return all(THOUSANDS.fullmatch(_with_minus_first(text)) for text in texts)


def has_leading_zeros(labels: Iterable[str]) -> bool:
    """Tell whether some text is digits that begin with a zero: a code, not a number."""
    return any(map(_LEADING_ZERO.fullmatch, labels))


def is_number(text: str) -> bool:
    """Tell whether a text is a number: plain, with separated thousands, in percent or money."""
    plain = _with_minus_first(text)
    return any(
        pattern.fullmatch(plain) for marked in _WRITTEN.values() for pattern in marked.values()
    )


def _with_minus_first(text: str) -> str:
    """Return a number in brackets, or with a minus behind it, with the minus before it."""
    found = _IN_BRACKETS.fullmatch(text) or _MINUS_BEHIND.fullmatch(text)
    return "-" + "".join(found.groups()) if found else text


def have_minus_behind(texts: Sequence[str]) -> bool:
    """Tell whether some amount has its minus behind it, as in 1,200.50-."""
    return any(map(_MINUS_BEHIND.fullmatch, texts))


def units_written(labels: Sequence[str]) -> list[str]:
    """Return the units of numbers in text that differ, if all have one and units are few."""
    texts = present_texts(labels)
    for mark in (".", ","):
        if not all(map(_WITH_UNIT[mark].fullmatch, texts[:FEW_TEXTS])):
            continue
        units = {_unit_of(_WITH_UNIT[mark].fullmatch(text)) for text in texts}
        few = 1 < len(units) <= min(_MOST_UNITS, len(texts) / 4)
        words = [unit for unit in units if unit and " " not in unit]  # a street has more
        if few and len(words) == len(units):
            return sorted(words)
    return []


def number_of(text: str, format: str = ".") -> float:
    """Return the number that a text writes, NaN for a word for missing; raise if it is neither."""
    plain = text.strip()
    if plain.lower() in MISSING_WORDS:
        return float("nan")
    plain = _with_minus_first(plain)
    if format == DURATIONS:
        return parse_duration(plain)
    mark, unit = format[:1], format[1:]
    known = _WRITTEN[mark]
    if unit and _unit_of(found := _WITH_UNIT[mark].fullmatch(plain)) == unit:
        plain = found["number"]  # type: ignore[index]
    if not (known["money"].fullmatch(plain) or known["percents"].fullmatch(plain)):
        expected = f"a number of {unit}" if unit else "a number"
        raise CellError(expected, text, remark_on_mark(text, mark))
    plain = _NO_DIGITS.sub("", plain).replace("−", "-").replace("," if mark == "." else ".", "")
    return float(plain.replace(",", "."))


def remark_on_mark(text: Any, mark: str = ".") -> str:
    """Return what is to be said of a number that is written with the other decimal mark."""
    other = {".": ",", ",": "."}[mark]
    if not isinstance(text, str) or not _WRITTEN[other]["money"].fullmatch(text.strip()):
        return ""
    names = {".": "point", ",": "comma"}
    return f" with a decimal {names[other]}; write it with a {names[mark]}, or fit anew"


# -- durations ------------------------------------------------------------------------------------

DURATIONS = ":"  # stands for the format of a column of durations
_SECONDS_OF = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_SPAN = r"(\d+(?:[.,]\d+)?) ?(weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|ms)"
_SPANS = re.compile(rf"(?i:{_SPAN}(?![^\W\d_])(?:,? (?:and )?)?)")
_LONG_CLOCK = re.compile(
    r"(?i:(?:(\d+) days?,? \+?)?(?:(\d+):(?=[0-5]\d:))?(\d+):([0-5]\d(?:[.,]\d{1,9})?))"
)
_ISO_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?)?")


def is_duration(text: str) -> bool:
    """Tell whether a text is a duration, such as 1h 20m, 36:10:05, 2 days 04:00:00 or PT5M."""
    try:
        parse_duration(text)
    except TypeError:
        return False
    return True


def parse_duration(text: str) -> float:
    """Return the seconds of a duration; 3:20 are minutes and seconds."""
    plain = text.strip()
    sign, plain = (-1.0, plain[1:]) if plain[:1] in "-−" and plain else (1.0, plain)
    if clock := _LONG_CLOCK.fullmatch(plain) or _iso_duration(plain):
        days, hours, minutes, seconds = (_plain_float(part) for part in clock.groups())
        return sign * (86_400 * days + 3600 * hours + 60 * minutes + seconds)
    spans = list(_SPANS.finditer(plain))
    if not spans or sum(len(span.group()) for span in spans) != len(plain):
        raise CellError("a duration", text)
    return sign * sum(_plain_float(span[1]) * _SECONDS_OF[_short(span[2])] for span in spans)


def _iso_duration(text: str) -> re.Match[str] | None:
    found = _ISO_DURATION.fullmatch(text)
    return found if found and any(found.groups()) else None


def _plain_float(text: str | None) -> float:
    return float(text.replace(",", ".")) if text else 0.0


def _short(unit: str) -> str:
    return "ms" if unit.lower() == "ms" else unit[0].lower()


# -- pairs ----------------------------------------------------------------------------------------

_PAIR = re.compile(r"\d{1,5}(?:\.\d+)?\s?[/x×]\s?\d{1,5}(?:\.\d+)?")


def are_pairs(labels: Sequence[str]) -> bool:
    """Tell whether texts hold two numbers each, such as 120/80 or 1920x1080."""
    return bool(_matching(labels, _PAIR))


# -- ranges ---------------------------------------------------------------------------------------

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
_MOST_RANGES = 40
_LARGE = {"k": 1e3, "m": 1e6}


def ranges_in_order(labels: Sequence[str]) -> list[str] | None:
    """Return texts such as 18-24, <$20k, 65+ or 5 or more in order; None if they are no ranges.

    There are three or more, and each begins where another ends, or later; single numbers may stand
    among them.
    """
    if not 3 <= len(labels) <= _MOST_RANGES:
        return None
    found = [(*ends, label) for label in labels if (ends := range_of(label))]
    spans = sum(low < high for low, high, _ in found)
    if len(found) < len(labels) or not spans:
        return None
    found.sort()
    if any(after[0] < before[1] for before, after in pairwise(found)):
        return None
    return [label for *_, label in found]


def range_of(text: str) -> tuple[float, float] | None:
    """Return the ends of a range, of a single number twice; None if a text is neither."""
    plain = text.strip()
    for pattern in _RANGES:
        if match := pattern.fullmatch(plain):
            ends = match.groupdict()
            low = _end_of(ends["low"]) if ends.get("low") else -np.inf
            high = _end_of(ends["high"]) if ends.get("high") else np.inf
            high = low if pattern is _RANGES[-1] else high
            if 1000 <= low < 10_000 and 10 <= high < 100 and not _is_season(plain):  # 1960-64
                high += low // 100 * 100
            return (low, high) if low < high or pattern is _RANGES[-1] else None
    return None


def _end_of(text: str) -> float:
    plain = text.strip(" $€£¥").replace(",", "").lower()
    times = _LARGE.get(plain[-1], 1.0)
    return times * float(plain.rstrip("km"))


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
    """Tell whether texts are ISO dates or datetimes, all of them with a time zone or none."""
    return len(_zones(_matching(labels, ISO)[:SOME_TEXTS])) == 1  # reading finds a bad one beyond


def has_both_zones(labels: Sequence[str]) -> bool:
    """Tell whether texts are ISO datetimes, some of them with a time zone and some without."""
    return len(_zones(_matching(labels, ISO)[:SOME_TEXTS])) == 2


def _zones(texts: Sequence[str]) -> set[bool]:
    """Return whether ISO texts lack a time zone: one answer or both; none if one is no date."""
    try:
        return {parse_iso(text).tzinfo is None for text in texts}
    except ValueError:
        return set()


def is_clock(labels: Sequence[str]) -> bool:
    """Tell whether texts are times of day, such as 8:30, 8:30 PM or 23:59:59.5, all of them."""
    return bool(_matching(labels, _CLOCK))


def parse_clock(text: str | None) -> float:
    """Return the seconds since midnight of a time of day, NaN for a word for missing."""
    if text is None or text.strip().lower() in MISSING_WORDS:
        return float("nan")
    plain = text.strip().lower().replace(",", ".")
    half = plain[-2:] if plain.endswith("m") else ""
    hours, minutes, *seconds = plain.removesuffix(half).split(":")
    hour = int(hours) % 12 + 12 * (half == "pm") if half else int(hours)
    return 3600.0 * hour + 60.0 * int(minutes) + (float(seconds[0]) if seconds else 0.0)


def parse_iso(text: str) -> dt.datetime:
    """Return the datetime of an ISO text."""
    plain = text.strip()
    if not ISO.fullmatch(plain):
        raise CellError("a date or time such as 2024-01-31 23:50:00", text)
    try:
        plain = plain.removesuffix(" UTC") if _OFFSET_AND_UTC.search(plain) else plain
        return dt.datetime.fromisoformat(_NAMED_UTC.sub("Z", plain).replace(" +", "+"))
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
    """Return the one order of day, month and year in which texts are dates; None if in doubt."""
    fits = date_orders(labels)
    return fits[0] if len(fits) == 1 else None


def date_orders(labels: Sequence[str]) -> list[str]:
    """Return the orders of day, month and year in which texts are dates."""
    texts = _matching(labels, _DATE) or _matching(labels, _YEAR_LAST)
    return [o for o in DATE_ORDERS if texts and all(_is_date(text, o) for text in texts)]


def is_date(text: str) -> bool:
    """Tell whether a text is written as dates are, ISO or not; there may be no such day."""
    return any(way.fullmatch(text) for way in (ISO, _DATE, _YEAR_LAST))


def is_time(text: str) -> bool:
    """Tell whether a text is a time of day."""
    return _CLOCK.fullmatch(text) is not None


def impossible_dates(texts: Sequence[str]) -> list[str]:
    """Return the texts, written as dates, that are none in the order that fits most of them."""
    bad = [
        [text for text in texts[:_MANY] if not (_is_date(text, order) or _zones([text]))]
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
    """Return the datetime of a text whose day, month and year stand in an order such as "dmy"."""
    if order == PERIODS:
        return parse_period(text)
    plain = _YEAR_LAST.sub(r"\2 \3, \6 \4", text.strip().lower())
    compact = _COMPACT.fullmatch(plain) if order == "ymd" else None
    found = [token for token in _TOKENS.findall(plain) if not _NO_TOKENS.fullmatch(token)]
    if compact:
        found = [part for part in compact.groups() if part]
    part = dict(zip(order, found, strict=False))
    try:
        if not (compact or _DATE.fullmatch(plain)) or (order == "ymd" and len(found[0]) < 4):
            raise ValueError
        half = found.pop() if found[-1] in ("am", "pm") else ""
        hour, minute, second = [*map(int, found[3:]), 0, 0, 0][:3]
        hour = hour % 12 + 12 * (half == "pm") if half else hour
        day = (_year(part["y"]), _month(part["m"]), int(part["d"]))
        return dt.datetime(*day, hour, minute, second)
    except ValueError:
        raise CellError(f"a date, {DATE_ORDERS[order]} first as in fit", text) from None


def _month(text: str) -> int:
    return _MONTHS.index(text[:3]) + 1 if text.isalpha() else int(text)


def _year(text: str) -> int:
    """Return a year; of two digits it is the one from 1969 to 2068, as in POSIX."""
    return int(text) + (0 if len(text) > 2 else 1900 if text >= "69" else 2000)


def is_compact_dates(texts: Sequence[str]) -> bool:
    """Tell whether texts are dates of digits alone, such as 20240131, from 1900 to 2099."""
    return bool(texts) and all(
        _PLAUSIBLE.match(text) and _COMPACT.fullmatch(text) and _is_date(text, "ymd")
        for text in texts
    )


_PLAUSIBLE = re.compile("19|20")
_DATE_LENGTHS = {6, 8, 12, 14}  # 202403, 20240305, 202403051011, 20240305101112


def digits_of(values: np.ndarray) -> list[str]:
    """Return the distinct digits of numbers as long as dates are; none if there are others."""
    present = values[~np.isnan(values)]
    ends = (present.min(), present.max()) if len(present) else ()
    lengths = {len(f"{end:.0f}") for end in ends}
    if not lengths or not lengths <= _DATE_LENGTHS or (present % 1 != 0).any():
        return []
    return [f"{value:.0f}" for value in np.unique(present).tolist()]


_WITHOUT_YEAR = re.compile(rf"(?i:{_NAMED_MONTH}  ?\d{{1,2}} {_SECONDS})")  # of the log of a system


def has_no_year(labels: Sequence[str]) -> bool:
    """Tell whether texts are datetimes that lack the year, such as Mar  5 10:11:12."""
    return bool(_matching(labels, _WITHOUT_YEAR))


_SHORT_MONTH = re.compile(rf"(?i:{_NAMED_MONTH}[ -]\d\d|\d\d[ -]{_NAMED_MONTH})")


def are_short_months(labels: Sequence[str]) -> bool:
    """Tell whether texts are months with two digits, such as Mar-23: of a year, or a day."""
    return bool(_matching(labels, _SHORT_MONTH))


def are_mixed_dates(labels: Sequence[str]) -> bool:
    """Tell whether texts are dates, but written in several ways."""
    if not all(map(_way_of, present_texts(labels[:FEW_TEXTS]))):
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
    """Return "month", "quarter" or "week" if all texts are such, as 2024-03, Q1 2024 or 2024-W05.

    2009-10, 2010-11, 2011-12 are no months but years that end in the next one; nor are 2009-1,
    2009-2, 2010-1, in which nothing is above 4: terms or quarters, for all one knows. 202403 is a
    number.
    """
    if not all(map(_period, present_texts(labels[:FEW_TEXTS]))):
        return None
    texts = present_texts(labels)
    found = [None if _COMPACT_MONTH.fullmatch(text) else _period(text) for text in texts]
    units = {match and _unit_of_period(match) for match in found}
    others = all(map(_is_season, texts)) or are_terms(texts)
    return None if len(units) != 1 or others else units.pop()


def are_terms(labels: Sequence[str]) -> bool:
    """Tell whether texts are parts of several years, such as 2009-1, of which there are few."""
    found = list(map(_TERM.fullmatch, present_texts(labels)))
    return len({match and match[1] for match in found} - {None}) > 1 and all(found)


def _unit_of_period(match: re.Match[str]) -> str:
    return next(name for name in match.groupdict() if name != "year")


def is_compact_months(texts: Sequence[str]) -> bool:
    """Tell whether texts are months of digits alone, such as 202403, from 1900 to 2099."""
    return bool(texts) and all(map(_COMPACT_MONTH.fullmatch, texts))


def date_format(texts: Sequence[str]) -> str | None:
    """Return the format of dates, if they are no ISO text; raise if two orders fit."""
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


def _is_season(text: str) -> bool:
    year, mark, after = text.partition("-")
    return mark == "-" and year.isdecimal() and f"{int(year) + 1}"[-2:] == after


def _period(text: str) -> re.Match[str] | None:
    match = next(filter(None, (pattern.fullmatch(text) for pattern in _PERIODS)), None)
    return match if match and _first_day(match) else None


def _first_day(match: re.Match[str]) -> dt.datetime | None:
    """Return the first day of a period; None if its year has no such week."""
    unit, year = _unit_of_period(match), int(match["year"])
    if unit == "week":
        try:
            return dt.datetime.fromisocalendar(year, int(match["week"]), 1)
        except ValueError:
            return None
    month = _month(match["month"].lower()) if unit == "month" else 3 * int(match["quarter"]) - 2
    return dt.datetime(year, month, 1)


def parse_period(text: str) -> dt.datetime:
    """Return the first day of a month, a quarter or a week."""
    found = _period(text.strip())
    if found is None:
        raise CellError("a month, quarter or week as in fit", text)
    return _first_day(found)  # type: ignore[return-value]


def _write_period(moment: dt.datetime, texts: Sequence[str]) -> str:
    """Return the period of a datetime as the texts of a column are written."""
    found = [match for match in map(_period, texts) if match]
    like = max(found, key=lambda match: len(match.group()))
    unit = _unit_of_period(like)
    if unit == "week":
        year, number, _ = moment.isocalendar()
    else:
        year, number = moment.year, moment.month if unit == "month" else (moment.month + 2) // 3
    written = f"{number:02}" if all(len(match[unit]) > 1 for match in found) else str(number)
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
    """Return a datetime as the texts of a column are written: order, signs, zeros, month names.

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
    at = iter(range(len(head)))

    def written(match: re.Match[str]) -> str:
        i, text = next(at), match.group()
        same = [s[i] for s in slots if len(s) > i]
        zeros = any(t.startswith("0") for t in same) if order else all(len(t) > 1 for t in same)
        if text.isalpha():
            return _letters(text, moment, fields)
        return _digits(next(fields), text, moment, zeros, half)

    return _PARTS.sub(written, head) + tail


def _letters(text: str, moment: dt.datetime, fields: Any) -> str:
    """Return the name of a month, or the half of a day, in the case of another; T stays T."""
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
    """Return one field of a datetime, as long as a text is or as its zeros make it."""
    if field == "y":
        return f"{moment.year:04}"[-len(text) :]
    if field == "f":
        return f"{moment.microsecond:06}".ljust(len(text), "0")[: len(text)]
    hour = (moment.hour % 12 or 12) if half else moment.hour
    numbers = {"m": moment.month, "d": moment.day, "H": hour, "M": moment.minute}
    number = numbers.get(field, moment.second)
    return f"{number:02}" if zeros or field in "MS" else str(number)
