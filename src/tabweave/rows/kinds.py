"""Kinds: what a column is, by rules that look at its name and at its values.

A type says too little: text may hold dates, money or digits that are codes, and whole numbers may
count rows. The rules below are asked where a table may be of any kind (:class:`~tabweave.Weave`,
reports, the command line); what a schema declares is never asked. In words:

- Datetimes, and text all of whose values are dates or times, are ``datetime``: ISO text, to the day
  or finer (2013-01-01, 2013-01-01T05, 2013-01-01 05:30), dates such as 7/21/2016, 21.07.2016 and
  6-Aug-09, if only one order of day and month fits all of them, and times of day, typed or as text
  such as ``8:30`` or ``8:30 PM``: they go round.
- Text all of whose values are numbers is ``numeric``: plain, with separated thousands, in percent,
  with a currency, below zero in brackets as accountants have it (``(1,200)``; not if all are), or
  with one and the same unit (``12 km``, ``16GB``, ``36 months``). So are
  durations, typed or as text: ``36:10:05``, ``1h 20m``, ``2 days 04:00:00``, ``PT5M``; those below
  a day (``00:03:12``) if their name says so (``duration``, ``elapsed``). Words such as ``NA``
  beside numbers or dates are missing. Digits are codes, and ``nominal``, if one has a leading zero,
  or if there are at most 20 of them, all whole.
- Whole numbers stay ``numeric``, also years and counts of few values. Codes are ``nominal``: those
  whose name says so (``zip``, ``code``, ``id``, ``PRODID``), two values only, or a few values of
  three digits or more that are neither round nor near each other (200, 301, 404).
- Whole numbers beyond 2**53 are ``nominal`` where two of them would be one and the same float.
- Identifiers are set aside: text of one word in which at least 95 of 100 values are distinct, whole
  numbers that rise from row to row with few gaps, unless their name says what they measure
  (``year``, ``day``, ``age``), an ``id`` whose values hardly repeat, the index of pandas. A table
  of less than 20 rows has none; of a stream, the first 200 rows must not repeat one.
- A constant column is set aside, too, if all rows are there to see it; of a stream it counts for
  nothing as long as it is constant.
- Text of more than 129 values stays ``nominal``, and counts by its spelling, too; with five words
  on average it is called sentences (:mod:`tabweave.rows.spelling`).
- Of more than 524,288 rows as many are looked at, drawn by row number, the same from every source.
- Three or more ranges that follow on one another (``<18``, ``18-24``, ``65+``) are ``ordinal``,
  if all rows are there to see them.
- Lists are ``set``, ordered categories ``ordinal``, records are flattened to ``record.field``.
  Vectors (lists of equal length, most of whose numbers occur once, not all whole) are set aside:
  each number means something by its position.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

# Whether all rows are at hand, a sample of them (which proves no constant) or the first of a
# stream; "texts" sets only text aside, "all" nothing.
Rules = Literal["whole", "sample", "first", "texts", "all"]
FEW_ROWS = 20  # tables with fewer have neither identifiers nor codes
_FIRST_ROWS = 200  # of a stream, in which not one value of an identifier repeats
_MANY_ROWS = 10_000  # that are as good as all
_DISTINCT = 0.95
_MOST_CODES = 20
_SAMPLE = 1000
BUT_FOR = ", but for "
MISSING_WORDS = frozenset(  # beside numbers and dates; among categories they are values
    ("", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "nil", "missing", "unknown",
     "not available", "-", "--", "?", "??", ".")
)  # fmt: skip
_MISSING_CODES = ("-9", "-99", "-999", "-9999")  # which are numbers beside numbers
CODE_NAMES = re.compile(
    r"(?i:(?:^|[\W_])(?:zip|zips|zipcode|postal|postcode|plz|codes?|ids?|uuid|guid|keys?|fips|sic"
    r"|naics|isbn|ean|upc|sku|phone|ssn)\d*(?:$|[\W_]))"
    r"|(?<=[a-z0-9])(?:Id|ID|Code|Zip|Key)(?:$|[\W_])"
    r"|(?i:(?:^|[\W_])(?:prod|product|item|order|cust|customer|client|user|member|emp|employee|person"
    r"|patient|subject|student|pupil|school|class|store|shop|vendor|site|device|account|acct|session"
    r"|dept|house|household|family|state|county|country|region)(?:id|nr|no|code)\d*(?:$|[\W_]))"
)
_MEASURE_NAMES = re.compile(
    r"(?i:(?:^|[\W_])(?:t|times?|years?|yr|quarters?|months?|weeks?|days?|dates?|hours?|minutes?"
    r"|seconds?|periods?|ages?|rank|distance|dist|depth|height|size)\d*(?:$|[\W_]))"
    r"|(?<=[a-z0-9])(?:Time|Year|Month|Week|Day|Date|Hour|Age|Rank)(?:$|[\W_])"
)
_INDEX_NAMES = re.compile(r"__index_level_\d+__|Unnamed: 0(?:\.\d+)?|index|level_0|column0|")
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d"
    r"(?:[T ]\d\d(?::\d\d(?::\d\d(?:[.,]\d{1,9})?)? ?(?:Z|[+-]\d\d(?::?\d\d)?)?)?)?"
)
ISO_TEXT = "ISO text"
_CLOCK = re.compile(
    r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?"
    r"|(?i:(?:0?[1-9]|1[0-2]):[0-5]\d(?::[0-5]\d)? ?[ap]m)"
)
CURRENCIES = ("$", "€", "£", "¥", "₹", "USD", "EUR", "GBP", "CHF", "JPY")
_UNIT = "(?:" + "|".join(map(re.escape, CURRENCIES)) + ")"
_SIGN = r"[+\-−]?"
_NUMBER = {  # by decimal mark
    ".": r"(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)",
    ",": r"(?:\d{1,3}(?:\.\d{3})+(?:,\d*)?|\d+,?\d*|,\d+)",
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
_IN_BRACKETS = re.compile(r"([^\d()+\-−]{0,4})\(([^()+\-−]+)\)([^\d()]{0,4})")
_IDENTIFIER = "an identifier: its values hardly repeat"
_VECTORS = "vectors, not sets: split them into columns of numbers"
_WITH_UNIT = {
    mark: re.compile(rf"(?P<number>{_SIGN}{digits})\s?(?P<unit>(?:[^\W\d_]|[°\"'])[^\d,;]{{0,14}})")
    for mark, digits in _NUMBER.items()
}
_THOUSANDS = re.compile(rf"{_SIGN}\d{{1,3}}(?:\.\d{{3}})*")
_LEADING_ZERO = re.compile(r"[+-]?0\d+")


class Finding(NamedTuple):
    """What one column was found to be."""

    column: str
    kind: str
    why: str
    kept: bool = True


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
        rows += [(f.column, f.kind, "yes" if f.kept else "no", f.why) for f in self]
        wide = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = ("  ".join([*map(str.ljust, row, wide), row[3]]).rstrip() for row in rows)
        return "\n".join(lines)


def aside_line(aside: dict[str, str]) -> str:
    """Return one line that says what was set aside; empty if nothing was."""
    shown = [f"{name} ({why})" for name, why in list(aside.items())[:6]]
    more = [f"and {len(aside) - 6} more"] if len(aside) > 6 else []
    return f"set aside: {', '.join([*shown, *more])}" if aside else ""


class Verdict(NamedTuple):
    """What the rules say of a column."""

    kind: str
    why: str
    aside: bool = False
    decimal: str | None = None  # of numbers written as text; of dates, their order
    levels: tuple[str, ...] | None = None  # of ranges


def judge(name: str, data: Any, n_rows: int, rules: Rules) -> Verdict | None:
    """Return what a column of numbers or values is; None if it is what its type says."""
    enough = n_rows >= (_FIRST_ROWS if rules == "first" else FEW_ROWS)
    least = 1.0 if rules == "first" and n_rows < _MANY_ROWS else _DISTINCT
    if hasattr(data, "values"):
        return _judge_numbers(name, data.values, least, n_rows) if enough else None
    if hasattr(data, "starts"):
        return Verdict("set", _VECTORS, aside=True) if enough and _are_vectors(data) else None
    labels = [label for label in data.labels if label is not None]
    types = set(map(type, labels))
    least = least if enough else 2.0
    if types == {int} and max(map(abs, labels)) > 2**53 and _hardly_repeats(data, least):
        return Verdict("nominal", _IDENTIFIER, aside=True)
    complete = rules not in ("first", "sample")
    return _judge_text(name, labels, data, least, complete) if types == {str} else None


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


def _judge_text(
    name: str, labels: list[str], data: Any, least: float, complete: bool
) -> Verdict | None:
    if is_iso(labels):
        return Verdict("datetime", ISO_TEXT)
    if _may_all(labels, _CLOCK) and is_clock(labels):
        if _DURATION_NAMES.search(name):
            return Verdict("numeric", "durations written as text", decimal=DURATIONS)
        return Verdict("datetime", "times of day")
    if order := date_order(labels):
        return Verdict("datetime", f"dates as text, {DATE_ORDERS[order]} first", decimal=order)
    written = numbers_written(labels)
    if written is not None and not (CODE_NAMES.search(name) or _is_few_digits(labels)):
        why = f"{written[0]} written as text{_remarks(labels, written[0])}"
        return Verdict("numeric", why, decimal=written[1])
    if complete and (levels := ranges_in_order(labels)):
        return Verdict("ordinal", "ranges in order", levels=tuple(levels))
    doubt = _doubt(labels)
    if is_one_word(labels) and _hardly_repeats(data, least):
        return Verdict("nominal", doubt or _IDENTIFIER, aside=True)
    if doubt:
        return Verdict("nominal", doubt)
    if written is not None or has_leading_zeros(labels):
        return Verdict("nominal", "digits that are codes")
    return None


def _remarks(labels: Sequence[str], what: str) -> str:
    """Return what else is to be said of numbers in text: brackets, several currencies."""
    texts = present_texts(labels)
    brackets = ", negative in brackets" if any(map(_IN_BRACKETS.fullmatch, texts)) else ""
    used = {sign for text in texts for sign in _CURRENCY.findall(text)} if what == "money" else ()
    alike = f", {', '.join(sorted(used))} taken as one currency" if len(used) > 1 else ""
    return brackets + alike


def _doubt(labels: Sequence[str]) -> str:
    """Return what text would be but for one or two of its values, or what is not sure about it."""
    if len(date_orders(labels)) > 1:
        return "dates, day or month first? declare format 'dmy' or 'mdy'"
    for what, fits in (("numbers", _is_number), ("dates", _ISO.fullmatch), ("ranges", _range_of)):
        if sum(not fits(text) for text in present_texts(labels[:20])) > 2:  # a few tell
            continue
        texts = list(map(str.strip, labels)) if what == "ranges" else present_texts(labels)
        odd = [text for text in texts if not fits(text)]
        few = 0 < len(odd) <= 2 and len(texts) >= 3 + 2 * len(odd)
        if few and (what != "ranges" or ranges_in_order([t for t in texts if t not in odd])):
            return f"{what}{BUT_FOR}{', '.join(map(repr, odd))}"
    mark = _joined_by(labels)
    return f"lists? declare kind 'set' with delimiter {mark!r}" if mark else ""


def _joined_by(labels: Sequence[str]) -> str:
    """Return what joins the elements of lists written as text, few of which make up all of them."""
    for mark in (";", "|", ", "):
        joined = sum(mark in label for label in labels[:_SAMPLE])
        if joined >= 5 and 2 * joined >= len(labels[:_SAMPLE]):
            elements = {part.strip() for label in labels for part in label.split(mark)}
            if 2 * len(elements) <= len(labels):
                return mark.strip()
    return ""


def _is_number(text: str) -> bool:
    plain = _without_brackets(text)
    return any(
        pattern.fullmatch(plain) for marked in _WRITTEN.values() for pattern in marked.values()
    )


def _without_brackets(text: str) -> str:
    """Return a number in brackets, as accountants write those below zero, with a minus."""
    found = _IN_BRACKETS.fullmatch(text)
    return "-" + "".join(found.groups()) if found else text


def _is_few_digits(labels: Sequence[str]) -> bool:
    """Tell whether texts are a few whole numbers, as those of codes are; gaps do not count."""
    texts = present_texts(labels)
    return len(texts) <= _MOST_CODES and all(map(str.isdecimal, texts))


def present_texts(labels: Sequence[str]) -> list[str]:
    """Return labels without the blanks around them, but for words that stand for missing."""
    return [text for label in labels if (text := label.strip()).lower() not in MISSING_WORDS]


def looks_missing(label: Any) -> bool:
    """Tell whether a category may be a word, or a code, for missing: it counts as a value."""
    plain = label.strip().lower() if isinstance(label, str) else None
    return plain in MISSING_WORDS or plain in _MISSING_CODES


def is_one_word(labels: Sequence[str]) -> bool:
    """Tell whether most labels have no blank in them: names and sentences are no identifiers."""
    return sum(" " in label.strip() for label in labels) < 0.5 * len(labels)


def _judge_numbers(name: str, values: np.ndarray, least: float, n_rows: int) -> Verdict | None:
    present = values[~np.isnan(values)]
    if len(present) < FEW_ROWS or (present != np.floor(present)).any():
        return None
    distinct = np.unique(present)
    named = CODE_NAMES.search(name)
    if _INDEX_NAMES.fullmatch(name) and name.startswith("__"):
        return Verdict("numeric", "the index of pandas", aside=True)
    if distinct[0] >= 1500 and distinct[-1] <= 2100 and not named:
        return Verdict("numeric", "years, or numbers like them")
    if len(present) == len(values) == len(distinct) and np.ptp(values) < 10 * n_rows:
        if _INDEX_NAMES.fullmatch(name):
            return Verdict("numeric", "the index of pandas", aside=True)
        if np.array_equal(values, distinct) and not _MEASURE_NAMES.search(name):
            return Verdict("numeric", "counts the rows", aside=True)
    if named and len(distinct) >= least * len(present):
        return Verdict("nominal", _IDENTIFIER, aside=True)
    if named:
        return Verdict("nominal", "whole numbers whose name says that they are codes")
    if len(distinct) == 2:
        return Verdict("nominal", "two whole numbers only")
    if _look_like_codes(distinct, len(present)):
        return Verdict("nominal", "whole numbers that look like codes")
    return None


def _look_like_codes(distinct: np.ndarray, n: int) -> bool:
    """Tell 200, 301, 404 from counts and measurements: equally long, far apart, not round."""
    if not 3 <= len(distinct) <= _MOST_CODES or n < 10 * len(distinct) or distinct[0] < 100:
        return False
    digits = np.floor(np.log10(distinct))
    apart = np.ptp(distinct) >= 4 * len(distinct)
    return bool(digits[0] == digits[-1] and apart and (distinct % 5 != 0).any())


# -- text that holds numbers ----------------------------------------------------------------------


def numbers_written(labels: Sequence[str]) -> tuple[str, str] | None:
    """Return how text writes numbers ("numbers", "money", "percents", ...) and its format.

    The format is the decimal mark, then the unit if all have the same one; that of durations is
    ``:``. None if some text is neither a number nor a word for missing, or digits lead with a zero.
    A mark with exactly three digits behind it separates thousands if it is a comma, or the text is
    money; otherwise a point is a decimal one, unless another column has decimal commas.
    """
    few = list(map(_without_brackets, present_texts(labels[:20])))
    if few and _written_as(few) is None:  # most text is told from a few
        return None
    texts = present_texts(labels)
    if not texts or has_leading_zeros(texts) or all(map(_IN_BRACKETS.fullmatch, texts)):
        return None
    return _written_as(list(map(_without_brackets, texts)))


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


def _may_all(labels: Sequence[str], pattern: re.Pattern[str]) -> bool:
    """Tell from a few labels whether a pattern may be found in all that are not missing."""
    few = (label.strip() for label in labels[:20])
    return all(pattern.search(text) for text in few if text.lower() not in MISSING_WORDS)


def _money_marks(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the decimal marks to try: money has cents of two digits, or thousands of three."""
    points = [text.rpartition(".")[2] for text in texts if "." in text]
    thousands = points and all(re.match(r"\d{3}(?!\d)", after) for after in points)
    return (",", ".") if thousands else (".", ",")


def has_thousands(labels: Iterable[Any]) -> bool:
    """Tell whether all points in numbers written as text may separate thousands, as in 12.345."""
    texts = present_texts([label for label in labels if isinstance(label, str)])
    return all(_THOUSANDS.fullmatch(_without_brackets(text)) for text in texts)


def has_leading_zeros(labels: Iterable[str]) -> bool:
    """Tell whether some text is digits that begin with a zero: a code, not a number."""
    return any(map(_LEADING_ZERO.fullmatch, labels))


_UNITS = re.compile(_UNIT + r"|[%\s]")
_CURRENCY = re.compile(_UNIT)


def number_of(text: str, decimal: str = ".") -> float:
    """Return the number that a text writes, NaN for a word for missing; raise if it is neither."""
    plain = text.strip()
    if plain.lower() in MISSING_WORDS:
        return float("nan")
    plain = _without_brackets(plain)
    if decimal == DURATIONS:
        return parse_duration(plain)
    mark, unit = decimal[:1], decimal[1:]
    known = _WRITTEN[mark]
    if unit and _unit_of(found := _WITH_UNIT[mark].fullmatch(plain)) == unit:
        plain = found["number"]  # type: ignore[index]
    if not (known["money"].fullmatch(plain) or known["percents"].fullmatch(plain)):
        raise TypeError(f"{text!r} is not a number" + f" of {unit}" * bool(unit))
    plain = _UNITS.sub("", plain).replace("−", "-").replace("," if mark == "." else ".", "")
    return float(plain.replace(",", "."))


# -- text that holds durations --------------------------------------------------------------------

DURATIONS = ":"  # stands for the format of a column of durations
_SECONDS_OF = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_SPAN = r"(\d+(?:[.,]\d+)?) ?(weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|ms)"
_SPANS = re.compile(rf"(?i:{_SPAN}(?![^\W\d_])(?:,? (?:and )?)?)")
_LONG_CLOCK = re.compile(
    r"(?i:(?:(\d+) days?,? \+?)?(?:(\d+):(?=[0-5]\d:))?(\d+):([0-5]\d(?:[.,]\d{1,9})?))"
)
_ISO_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?)?")
_DURATION_NAMES = re.compile(
    r"(?i:durat|elapsed|runtime|length|(?:^|[\W_])(?:lap|took|pace)s?(?:$|[\W_]))"
)


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
        raise TypeError(f"{text!r} is not a duration")
    return sign * sum(_plain_float(span[1]) * _SECONDS_OF[_short(span[2])] for span in spans)


def _iso_duration(text: str) -> re.Match[str] | None:
    found = _ISO_DURATION.fullmatch(text)
    return found if found and any(found.groups()) else None


def _plain_float(text: str | None) -> float:
    return float(text.replace(",", ".")) if text else 0.0


def _short(unit: str) -> str:
    return "ms" if unit.lower() == "ms" else unit[0].lower()


# -- text that holds ranges -----------------------------------------------------------------------

_BOUND = r"[$€£¥]?\s?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?[kKM]?(?![^\W\d_]*\d)"
_OF_UNIT = r"(?:\s?(?:[^\W\d_]|%)[^\d,;+]{0,14}?)?"
_RANGES = [  # patterns of ranges with two ends, open ones, and single numbers among them
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?P<low>{_BOUND})\s?(?:-|–|~|to)\s?(?P<high>{_BOUND}){_OF_UNIT}",
        rf"[\[(]\s?(?:-inf|(?P<low>{_BOUND}))\s?,\s?(?:inf|(?P<high>{_BOUND}))\s?[\])]",
        rf"(?P<low>{_BOUND}){_OF_UNIT}\s?\+{_OF_UNIT}",
        rf"(?P<low>{_BOUND}){_OF_UNIT} (?:and|or) (?:over|more|above|older|up)",
        rf"(?:>=?|≥|over|above|more than|at least)\s?(?P<low>{_BOUND}){_OF_UNIT}",
        rf"(?:<=?|≤|under|below|less than|up to)\s?(?P<high>{_BOUND}){_OF_UNIT}",
        rf"(?P<high>{_BOUND}){_OF_UNIT} (?:and|or) (?:under|less|below|younger)",
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
    found = [(*ends, label) for label in labels if (ends := _range_of(label))]
    spans = sum(low < high for low, high, _ in found)
    if len(found) < len(labels) or not spans:
        return None
    found.sort()
    if any(after[0] < before[1] for before, after in pairwise(found)):
        return None
    return [label for *_, label in found]


def _range_of(text: str) -> tuple[float, float] | None:
    """Return the ends of a range, of a single number twice; None if a text is neither."""
    plain = text.strip()
    for pattern in _RANGES:
        if match := pattern.fullmatch(plain):
            ends = match.groupdict()
            low = _end_of(ends["low"]) if ends.get("low") else -np.inf
            high = _end_of(ends["high"]) if ends.get("high") else np.inf
            high = low if pattern is _RANGES[-1] else high
            return (low, high) if low < high or pattern is _RANGES[-1] else None
    return None


def _end_of(text: str) -> float:
    plain = text.strip(" $€£¥").replace(",", "").lower()
    times = _LARGE.get(plain[-1], 1.0)
    return times * float(plain.rstrip("km"))


# -- text that holds datetimes --------------------------------------------------------------------


def is_iso(labels: Sequence[str]) -> bool:
    """Tell whether texts are ISO dates or datetimes, all of them with a time zone or none."""
    if not _may_all(labels, _ISO):
        return False
    texts = present_texts(labels)
    if not texts or not all(map(_ISO.fullmatch, texts)):
        return False
    try:
        found = [parse_iso(text) for text in texts[:_SAMPLE]]  # reading finds a bad one beyond
    except ValueError:
        return False
    return len({moment.tzinfo is None for moment in found}) == 1


def is_clock(labels: Sequence[str]) -> bool:
    """Tell whether texts are times of day, such as 8:30, 8:30 PM or 23:59:59.5, all of them."""
    texts = present_texts(labels)
    return bool(texts) and all(map(_CLOCK.fullmatch, texts))


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
    if not _ISO.fullmatch(plain):
        raise ValueError(f"expected a date or time such as 2024-01-31 23:50:00, got {text!r}")
    return dt.datetime.fromisoformat(plain.replace(" +", "+").replace(" Z", "Z"))


DATE_ORDERS = {"mdy": "month", "dmy": "day", "ymd": "year"}
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_NAMED_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]*\.?"
_DATE = re.compile(
    r"(?i:(?:\d{1,2}([/.-])\d{1,2}\1\d{4}|\d{1,2}/\d{1,2}/\d\d|\d{4}([/.])\d{1,2}\2\d{1,2}"
    rf"|\d{{1,2}}([ -]){_NAMED_MONTH}\3(?:\d{{4}}|\d\d)|{_NAMED_MONTH} \d{{1,2}},? \d{{4}})"
    r"(?:,? \d{1,2}:\d\d(?::\d\d)?(?: ?[ap]m)?)?"
    rf"|\d\d/{_NAMED_MONTH}/\d{{4}}:\d\d:\d\d:\d\d(?: [+-]\d{{4}})?)"  # of a web server's log
)
_TOKENS = re.compile(r"\d+|[a-z]+")


def date_order(labels: Sequence[str]) -> str | None:
    """Return the one order of day, month and year in which texts are dates; None if in doubt."""
    fits = date_orders(labels)
    return fits[0] if len(fits) == 1 else None


def date_orders(labels: Sequence[str]) -> list[str]:
    """Return the orders of day, month and year in which texts are dates."""
    if not all(map(_DATE.fullmatch, present_texts(labels[:20]))):  # most text is told from a few
        return []
    texts = present_texts(labels)
    if not texts or not all(map(_DATE.fullmatch, texts)):
        return []
    return [order for order in DATE_ORDERS if all(_is_date(text, order) for text in texts)]


def _is_date(text: str, order: str) -> bool:
    try:
        parse_date(text, order)
    except ValueError:
        return False
    return True


def parse_date(text: str, order: str) -> dt.datetime:
    """Return the datetime of a text whose day, month and year stand in an order such as "dmy"."""
    plain = text.strip().lower()
    found = _TOKENS.findall(plain)
    part = dict(zip(order, found, strict=False))
    try:
        if not _DATE.fullmatch(plain) or (order == "ymd" and len(found[0]) < 4):
            raise ValueError
        half = found.pop() if found[-1] in ("am", "pm") else ""
        hour, minute, second = [*map(int, found[3:]), 0, 0, 0][:3]
        hour = hour % 12 + 12 * (half == "pm") if half else hour
        day = (_year(part["y"]), _month(part["m"]), int(part["d"]))
        return dt.datetime(*day, hour, minute, second)
    except ValueError:
        raise ValueError(
            f"expected a date, {DATE_ORDERS[order]} first as in fit, got {text!r}"
        ) from None


def _month(text: str) -> int:
    return _MONTHS.index(text[:3]) + 1 if text.isalpha() else int(text)


def _year(text: str) -> int:
    """Return a year; of two digits it is the one from 1969 to 2068, as in POSIX."""
    return int(text) + (0 if len(text) > 2 else 1900 if text >= "69" else 2000)


_OFFSET = re.compile(r" [+-]\d{4}$")
_ISO_PARTS = re.compile(r"(\d{4}-\d\d-\d\d(?:[T ][\d:.,]+)?)(.*)")
_MONTH_NAMES = (
    "january february march april may june july august september october november december".split()
)


def write_moment(moment: dt.datetime, texts: Sequence[str], order: str | None = None) -> str:
    """Return a datetime as the texts of a column are written: order, signs, zeros, month names.

    >>> write_moment(dt.datetime(2016, 7, 4, 15, 5), ["7/21/2016 9:30 AM"], "mdy")
    '7/4/2016 3:05 PM'
    >>> write_moment(dt.datetime(2016, 7, 4, 15, 5), ["2016-07-21T09:30:00Z"])
    '2016-07-04T15:05:00Z'
    """
    longest = max(texts, key=len)
    iso = _ISO_PARTS.fullmatch(longest)
    offset = _OFFSET.search(longest)
    head, tail = iso.groups() if iso else (longest, "")
    if offset and not iso:
        head, tail = longest[: offset.start()], offset.group()
    fields = iter((order or ("ymd" if iso else "")) + "HMSf")
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

    return re.sub(r"\d+|[A-Za-z]+", written, head) + tail


def _letters(text: str, moment: dt.datetime, fields: Any) -> str:
    """Return the name of a month, or the half of a day, in the case of another; T stays T."""
    if text.lower() in ("am", "pm"):
        return _cased("pm" if moment.hour >= 12 else "am", text)
    if text[:3].lower() not in _MONTHS:
        return text
    next(fields)
    name = _MONTH_NAMES[moment.month - 1]
    return _cased(name if len(text) > 3 else name[:3], text)


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
