"""Numeric columns: numbers, durations and amounts, typed or written as text."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from tabweave.columns.cells import Bins, Cells, MomentsOf, all_equal, kind
from tabweave.columns.decision import (
    CAMEL_BOUNDARY,
    IDENTIFIER,
    INDEX_NAMES,
    MEASURE_NAMES,
    MIN_ROWS_TO_INFER,
    NAMES_OF_ROWS,
    NO_AMOUNT,
    PANDAS_INDEX,
    ROW_NAMES,
    TIMESTAMP_NAMES,
    Decision,
    first_decision,
)
from tabweave.columns.frames import (
    ARROW_INTERVAL,
    MAX_EXACT_INT,
    categories,
    encode,
    infer_kind,
    object_array,
    objects,
)
from tabweave.columns.nominal import check_no_gaps
from tabweave.columns.texts import (
    FIRST_TEXTS,
    MISSING_WORDS,
    CellError,
    matching_texts,
    present_texts,
)
from tabweave.columns.vocabulary import canonical
from tabweave.io.dialects import Dialect, sql_text

if TYPE_CHECKING:
    from tabweave.columns.column import Column, Schema
    from tabweave.columns.kinds import TextColumn


@kind("numeric", "numbers")
@dataclass(frozen=True, eq=False)
class Numbers(Cells):
    """A numeric column: float64, NaN where missing."""

    values: np.ndarray

    holds = "numbers"
    is_continuous = True

    @classmethod
    def read(cls, cells: Any, column: Column, schema: Schema) -> Self:
        """Numbers, or text that is written as the column's format says."""
        empty = schema.empty_is_missing
        values = numbers(cells, empty_is_missing=empty, format=column.format)
        return cls.checked(values, schema)

    @classmethod
    def checked(cls, values: np.ndarray, schema: Schema) -> Self:
        """Numbers none of which is infinite, or missing if the schema forbids that."""
        infinite = np.flatnonzero(np.isinf(values))
        if len(infinite):
            raise ValueError(
                f"row {infinite[0]} holds {values[infinite[0]]}; replace infinity by a number or "
                "NaN"
            )
        if schema.missing == "error":
            check_no_gaps(np.isnan(values))
        return cls(values)

    @classmethod
    def completed(cls, column: Column, cells: Any) -> Column:
        """The column with the decimal mark of numbers in text."""
        if column.decimal is not None or infer_kind(cells) != "nominal":
            return column
        try:
            labels: Iterable[Any] = categories(cells)[1]
        except (TypeError, ValueError):  # some cell is no value: reading the column says which
            labels = dict.fromkeys(cell for cell in objects(cells) if isinstance(cell, str))
        written = numbers_written([label for label in labels if isinstance(label, str)])
        return column if written is None else replace(column, format=written[1])

    @classmethod
    def remedy(cls, column: Column, error: CellError) -> str:
        """Cells are mended, or the column is read as values."""
        return "; mend it, leave it empty, or declare the column as kind 'nominal' and fit anew"

    @classmethod
    def parts(cls, column: Column) -> dict[str, Bins | None]:
        """The numbers, in buckets."""
        return {column.name: Bins()}

    def numbers(self, part: str) -> np.ndarray:
        """The numbers."""
        return self.values

    @classmethod
    def sql(cls, part: str, column: Column, cell: str, dialect: Dialect) -> str:
        """A number as it is, or what a text says."""
        if column.decimal is None:
            return sql_number(cell, dialect)
        text = f"CAST({cell} AS {dialect.text_type})"
        return sql_unless_missing(text, _sql_written_number(text, column, dialect))

    @classmethod
    def period(cls, part: str) -> float | None:
        """Numbers are what they are."""
        return 0.0

    @classmethod
    def curve(cls, part: str, knots: Knots, moments: MomentsOf) -> np.ndarray:
        """Coordinates in which numbers differ by their difference, absolute and in ranks."""
        n, mean, variance = moments(part)
        return ladder(knots, mean, variance) if n else np.zeros((0, 1))

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: np.ndarray) -> Self:
        """The numbers of some rows."""
        return replace(self, values=self.values[rows])

    def joined(self, more: Self) -> Self:
        """The numbers of both."""
        return replace(self, values=np.concatenate([self.values, more.values]))

    def cell(self, row: int) -> Any:
        """A number; None if missing."""
        return None if np.isnan(self.values[row]) else float(self.values[row])

    def to_numpy(self) -> np.ndarray:
        """The numbers; NaN where missing."""
        return self.values

    @property
    def missing(self) -> np.ndarray:
        """Which cells are missing."""
        return np.isnan(self.values)

    def is_constant(self) -> bool:
        """Whether there are rows, and all hold the same."""
        return len(self.values) > 0 and all_equal(self.values[0], self.values)

    def ranks(self) -> np.ndarray:
        """The rank of each number; missing ones are equal, and come last."""
        return np.unique(self.values, return_inverse=True)[1]


# -- numbers --------------------------------------------------------------------------------------

MAX_CODES = 20  # Digits of so few distinct values are codes rather than amounts.

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
    """How text writes numbers ("numbers", "money", "percents", ...) and its format.

    The format is the decimal mark, then the unit if all have the same one; that of durations is
    ``:``. None if some text is neither a number nor a word for missing, or digits lead with a zero.
    A mark with exactly three digits behind it separates thousands if it is a comma, or the text is
    money; otherwise a point is a decimal one, unless another column has decimal commas. Blanks
    separate thousands if some numbers are longer than others, or have decimals.
    """
    few = list(map(_with_minus_first, present_texts(labels[:FIRST_TEXTS])))
    if few and _written_as(few) is None:  # most text is told from a few
        return None
    texts = present_texts(labels)
    negative = any(all(map(p.fullmatch, texts)) for p in (_IN_BRACKETS, _MINUS_BEHIND))
    if not texts or negative or has_leading_zeros(texts) or _are_grouped_codes(texts):
        return None
    return _written_as(list(map(_with_minus_first, texts)))


def _are_grouped_codes(texts: Sequence[str]) -> bool:
    """Whether texts are codes or telephone numbers, such as 123 456 789: all look alike."""
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
        matches = [_WITH_UNIT[mark].fullmatch(text) for text in texts]
        units = {_unit_of(match) for match in matches}
        if len(units) == 1 and None not in units:
            return f"numbers in {matches[0]['unit'].strip()}", f"{mark}{units.pop()}"  # type: ignore[index]
    return ("durations", DURATIONS) if all(map(is_duration, texts)) else None


def _unit_of(match: re.Match[str] | None) -> str | None:
    """The unit behind a number, in small letters and for one: 3 Days and 1 day are alike."""
    if match is None:
        return None
    unit = match["unit"].strip().lower()
    return unit.removesuffix("s") if len(unit) > 3 or unit in ("yrs", "hrs") else unit


def _money_marks(texts: Sequence[str]) -> tuple[str, ...]:
    """The decimal marks to try: money has cents of two digits, or thousands of three."""
    points = [text.rpartition(".")[2] for text in texts if "." in text]
    thousands = points and all(re.match(r"\d{3}(?!\d)", after) for after in points)
    return (",", ".") if thousands else (".", ",")


def has_brackets(labels: Sequence[str]) -> bool:
    """Whether some number is in brackets, as accountants write those below zero."""
    return any(map(_IN_BRACKETS.fullmatch, present_texts(labels)))


def currencies(labels: Sequence[str]) -> list[str]:
    """The signs of the currencies that amounts of money are written with, sorted."""
    return sorted({sign for text in present_texts(labels) for sign in _CURRENCY.findall(text)})


def has_thousands(labels: Iterable[Any]) -> bool:
    """Whether all points in numbers written as text may separate thousands, as in 12.345."""
    texts = present_texts([label for label in labels if isinstance(label, str)])
    return all(THOUSANDS.fullmatch(_with_minus_first(text)) for text in texts)


def has_leading_zeros(labels: Iterable[str]) -> bool:
    """Whether some text is digits that begin with a zero: a code, not a number."""
    return any(map(_LEADING_ZERO.fullmatch, labels))


def is_number(text: str) -> bool:
    """Whether a text is a number: plain, with separated thousands, in percent or money."""
    signed = _with_minus_first(text)
    return any(
        pattern.fullmatch(signed) for marked in _WRITTEN.values() for pattern in marked.values()
    )


def _with_minus_first(text: str) -> str:
    """A number in brackets, or with a minus behind it, with the minus before it."""
    match = _IN_BRACKETS.fullmatch(text) or _MINUS_BEHIND.fullmatch(text)
    return "-" + "".join(match.groups()) if match else text


def have_minus_behind(texts: Sequence[str]) -> bool:
    """Whether some amount has its minus behind it, as in 1,200.50-."""
    return any(map(_MINUS_BEHIND.fullmatch, texts))


def units_written(labels: Sequence[str]) -> list[str]:
    """The units of numbers in text that differ, if all have one and units are few."""
    texts = present_texts(labels)
    for mark in (".", ","):
        if not all(map(_WITH_UNIT[mark].fullmatch, texts[:FIRST_TEXTS])):
            continue
        units = {_unit_of(_WITH_UNIT[mark].fullmatch(text)) for text in texts}
        few = 1 < len(units) <= min(6, len(texts) / 4)
        words = [unit for unit in units if unit and " " not in unit]  # a street has more
        if few and len(words) == len(units):
            return sorted(words)
    return []


def number_of(text: str, format: str = ".") -> float:
    """The number that a text writes, NaN for a word for missing; raise if it is neither."""
    written = text.strip()
    if written.lower() in MISSING_WORDS:
        return float("nan")
    written = _with_minus_first(written)
    if format == DURATIONS:
        return parse_duration(written)
    mark, unit = format[:1], format[1:]
    patterns = _WRITTEN[mark]
    if unit and _unit_of(match := _WITH_UNIT[mark].fullmatch(written)) == unit:
        written = match["number"]  # type: ignore[index]
    if not (patterns["money"].fullmatch(written) or patterns["percents"].fullmatch(written)):
        expected = f"a number of {unit}" if unit else "a number"
        raise CellError(expected, text, remark_on_mark(text, mark))
    written = _NO_DIGITS.sub("", written).replace("−", "-").replace("," if mark == "." else ".", "")
    return float(written.replace(",", "."))


def remark_on_mark(text: Any, mark: str = ".") -> str:
    """What is to be said of a number that is written with the other decimal mark."""
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
    """Whether a text is a duration, such as 1h 20m, 36:10:05, 2 days 04:00:00 or PT5M."""
    try:
        parse_duration(text)
    except TypeError:
        return False
    return True


def parse_duration(text: str) -> float:
    """The seconds of a duration; 3:20 are minutes and seconds."""
    unsigned = text.strip()
    sign, unsigned = (-1.0, unsigned[1:]) if unsigned[:1] in "-−" and unsigned else (1.0, unsigned)
    if clock := _LONG_CLOCK.fullmatch(unsigned) or _iso_duration(unsigned):
        days, hours, minutes, seconds = (_plain_float(part) for part in clock.groups())
        return sign * (86_400 * days + 3600 * hours + 60 * minutes + seconds)
    spans = list(_SPANS.finditer(unsigned))
    if not spans or sum(len(span.group()) for span in spans) != len(unsigned):
        raise CellError("a duration", text)
    return sign * sum(_plain_float(span[1]) * _SECONDS_OF[_short(span[2])] for span in spans)


def _iso_duration(text: str) -> re.Match[str] | None:
    match = _ISO_DURATION.fullmatch(text)
    return match if match and any(match.groups()) else None


def _plain_float(text: str | None) -> float:
    return float(text.replace(",", ".")) if text else 0.0


def _short(unit: str) -> str:
    return "ms" if unit.lower() == "ms" else unit[0].lower()


# -- numbers written as others of their column -----------------------------------------------------

_GROUPED = rf"\d{{1,3}}(?:[{BLANKS}{APOSTROPHES}]\d{{3}})+[\d.,]*"  # digits in groups of thousands
_UNIT_AND_NUMBER = re.compile(rf"(\D*?)({_GROUPED}|[\d.,]*\d[\d.,]*)(\D*)")  # unit, number, unit
_SIGN_MARKS = re.compile(r"[-+−()]")


def written_like(texts: Sequence[str], values: Iterable[float], decimal: str) -> list[str]:
    """Numbers as other texts of their column write them: unit, thousands, decimals, sign.

    >>> written_like(["-$1,250.00", "$80.50"], [1234.567, -2], ".")
    ['$1,234.57', '-$2.00']
    >>> written_like(["7,5 %"], [12.25], ",")
    ['12,2 %']
    >>> written_like(["(300)", "200"], [-100, 50], ".")
    ['(100)', '50']
    >>> written_like(["1 250,50", "80,00", "1,50-"], [1234.5, -2], ",")
    ['1 234,50', '2,00-']
    """
    parts = [_UNIT_AND_NUMBER.fullmatch(_SIGN_MARKS.sub("", text)) for text in texts]
    prefix, _, suffix = next((p.groups() for p in parts if p), ("", "", ""))
    numbers = [p.group(2) for p in parts if p]
    places = max((len(n.partition(decimal)[2]) for n in numbers), default=0)
    other = "." if decimal == "," else ","
    group = next((m for m in (other, *BLANKS, *APOSTROPHES) if any(m in n for n in numbers)), "")
    marks = str.maketrans({",": group, ".": decimal})
    minus = next((sign for sign in "(−" if any(sign in text for text in texts)), "-")
    behind = have_minus_behind(texts)
    out = []
    for value in values:
        digits = f"{abs(value):{',' if group else ''}.{places}f}".translate(marks)
        negative = value < 0 and digits.strip("0,.")
        sign, end = (minus, ")" * (minus == "(")) if negative else ("", "")
        sign, end = (end, sign) if behind else (sign, end)
        out.append(f"{sign}{prefix}{digits}{suffix}{end}")
    return out


def nearest_written(texts: Sequence[str], values: np.ndarray) -> np.ndarray:
    """Durations as the nearest ones of their column are written.

    >>> nearest_written(["1h 20m", "36h"], np.array([4000.0, 1e6])).tolist()
    ['1h 20m', '36h']
    """
    seconds, first = np.unique(list(map(parse_duration, texts)), return_index=True)
    near = np.searchsorted((seconds[1:] + seconds[:-1]) / 2, values)
    return object_array(texts)[first[near]]


# -- pairs ----------------------------------------------------------------------------------------

_PAIR = re.compile(r"\d{1,5}(?:\.\d+)?\s?[/x×]\s?\d{1,5}(?:\.\d+)?")


def are_pairs(labels: Sequence[str]) -> bool:
    """Whether texts hold two numbers each, such as 120/80 or 1920x1080."""
    return bool(matching_texts(labels, _PAIR))


# -- text: the first rule that fits says what a column is ---------------------------------------


def amounts_in_text(texts: TextColumn) -> Decision | None:
    """Numbers, unless they may be codes: by their name, or because they are a few short ones."""
    if texts.numbers is None or NO_AMOUNT.search(texts.name) or _is_few_digits(texts.labels):
        return None
    return _numbers_as_text(texts.labels, *texts.numbers)


def codes_of_digits(texts: TextColumn) -> Decision | None:
    """Codes: digits that no other rule takes for numbers."""
    are_codes = texts.numbers is not None or has_leading_zeros(texts.labels)
    return Decision("nominal", "digits that are codes") if are_codes else None


def _numbers_as_text(labels: Sequence[str], what: str, format: str) -> Decision:
    """Numbers written as text, and what else is to be said of them."""
    used = currencies(labels) if what == "money" else []
    brackets = ", negative in brackets" * has_brackets(labels)
    merged = f", {', '.join(used)} taken as one currency" if len(used) > 1 else ""
    why = f"{what} written as text{brackets}{merged}"
    return Decision("numeric", why, format=format, question="meaning" if merged else "")


def _is_few_digits(labels: Sequence[str]) -> bool:
    """Whether texts are a few whole numbers, as those of codes are; gaps do not count."""
    texts = present_texts(labels)
    return len(texts) <= MAX_CODES and all(map(str.isdecimal, texts))


# -- whole numbers: likewise ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WholeNumberColumn:
    """A column of whole numbers as the rules see it: its cells, missing as NaN."""

    name: str
    values: np.ndarray
    distinct: np.ndarray
    n_present: int
    min_distinct: float  # share of rows with distinct values that an identifier has
    n_rows: int

    @property
    def named_as_codes(self) -> bool:
        """Whether the name says that the numbers are no amounts."""
        return NO_AMOUNT.search(self.name) is not None

    @property
    def named_as_measure(self) -> bool:
        """Whether the name says what the numbers measure."""
        return MEASURE_NAMES.search(CAMEL_BOUNDARY.sub("_", self.name)) is not None

    @property
    def all_differ(self) -> bool:
        """Whether every row has a number of its own."""
        return len(self.values) == self.n_present == len(self.distinct)

    @property
    def dense(self) -> bool:
        """Whether every row has a number of its own and few are left out between them."""
        return self.all_differ and bool(np.ptp(self.values) < 10 * self.n_rows)


def _pandas_level(numbers: WholeNumberColumn) -> Decision | None:
    level = numbers.name.startswith("__") and INDEX_NAMES.fullmatch(numbers.name)
    return Decision("numeric", PANDAS_INDEX, dropped=True) if level else None


def _years(numbers: WholeNumberColumn) -> Decision | None:
    first, last = numbers.distinct[0], numbers.distinct[-1]
    are_years = first >= 1500 and last <= 2100 and not numbers.named_as_codes
    return Decision("numeric", "years, or numbers like them") if are_years else None


def _numbers_of_rows(numbers: WholeNumberColumn) -> Decision | None:
    named = numbers.all_differ and ROW_NAMES.fullmatch(numbers.name)
    return Decision("numeric", NAMES_OF_ROWS, dropped=True) if named else None


def _pandas_index(numbers: WholeNumberColumn) -> Decision | None:
    index = numbers.dense and INDEX_NAMES.fullmatch(numbers.name)
    return Decision("numeric", PANDAS_INDEX, dropped=True) if index else None


def _row_counts(numbers: WholeNumberColumn) -> Decision | None:
    """Numbers that rise from row to row, unless days or ages do."""
    rise = numbers.dense and np.array_equal(numbers.values, numbers.distinct)
    counts = rise and not numbers.named_as_measure
    return Decision("numeric", "counts the rows", dropped=True) if counts else None


def _numeric_identifiers(numbers: WholeNumberColumn) -> Decision | None:
    hardly_repeat = len(numbers.distinct) >= numbers.min_distinct * numbers.n_present
    named = numbers.named_as_codes and hardly_repeat
    return Decision("numeric", IDENTIFIER, dropped=True) if named else None


def _yes_or_no(numbers: WholeNumberColumn) -> Decision | None:
    return Decision("nominal", "two whole numbers only") if len(numbers.distinct) == 2 else None


def _named_codes(numbers: WholeNumberColumn) -> Decision | None:
    why = "whole numbers whose name says that they are codes"
    return Decision("nominal", why) if numbers.named_as_codes else None


def _apparent_codes(numbers: WholeNumberColumn) -> Decision | None:
    codes = _look_like_codes(numbers.distinct, numbers.n_present) and not numbers.named_as_measure
    return Decision("nominal", "whole numbers that look like codes") if codes else None


def _time_stamps(numbers: WholeNumberColumn) -> Decision | None:
    unit = _since_1970(numbers.name, numbers.distinct)
    why = f"numbers; {unit} since 1970? give datetimes to have hours and weekdays count"
    return Decision("numeric", why, question="meaning") if unit else None


def _codes_for_missing(numbers: WholeNumberColumn) -> Decision | None:
    return _tell_missing(numbers.values)


_NUMBER_RULES: tuple[Callable[[WholeNumberColumn], Decision | None], ...] = (
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


def decide_whole_numbers(
    name: str, values: np.ndarray, min_distinct: float, n_rows: int
) -> Decision | None:
    """What numbers are; of few ones, or of some that are not whole, nothing can be said."""
    present = values[~np.isnan(values)]
    if len(present) < MIN_ROWS_TO_INFER:
        return None
    if (present != np.floor(present)).any():
        return _tell_missing(present)
    distinct = np.unique(present)
    column = WholeNumberColumn(name, values, distinct, len(present), min_distinct, n_rows)
    return first_decision(_NUMBER_RULES, column)


def _tell_missing(values: np.ndarray) -> Decision | None:
    """Numbers, of which one may stand for missing; None if none does."""
    code = code_for_missing(values)
    if code is None:
        return None
    why = f"numbers; {code:.15g} for missing? leave such cells empty"
    return Decision("numeric", why, question="meaning")


def _since_1970(name: str, distinct: np.ndarray) -> str:
    """The unit, "seconds" or "milliseconds", if whole numbers may be so many since 1970."""
    start_of_2001, start_of_2100 = 978_307_200, 4_102_444_800
    for unit, times in (("seconds", 1), ("milliseconds", 1000)):
        if start_of_2001 * times <= distinct[0] and distinct[-1] < start_of_2100 * times:
            return unit if TIMESTAMP_NAMES.search(CAMEL_BOUNDARY.sub("_", name)) else ""
    return ""


def _look_like_codes(distinct: np.ndarray, n: int) -> bool:
    """Whether numbers are codes such as 200, 301, 404: equally long, far apart, not round."""
    if not 3 <= len(distinct) <= MAX_CODES or n < 10 * len(distinct) or distinct[0] < 100:
        return False
    digits = np.floor(np.log10(distinct))
    are_spread = np.ptp(distinct) >= 4 * len(distinct)
    return bool(digits[0] == digits[-1] and are_spread and (distinct % 5 != 0).any())


def code_for_missing(values: np.ndarray) -> float | None:
    """The number that may stand for missing: nines, such as -999, far from all others.

    They are farther from them than those are from each other; a 9 may be a count.

    >>> code_for_missing(np.array([21.5, -999, 36.6, np.nan]))
    -999.0
    >>> code_for_missing(np.array([0, 1, 2, 9.0])), code_for_missing(np.array([98, 101, 99.0]))
    (None, None)
    """
    for end in (np.fmin, np.fmax):
        code = end.reduce(values, initial=np.nan)
        digits = f"{abs(code):.15g}".replace(".", "")
        if set(digits) != {"9"} or code == 9:
            continue
        others = values[values != code]
        low, high = (f.reduce(others, initial=np.nan) for f in (np.fmin, np.fmax))
        if max(low - code, code - high) > high - low > 0:
            return float(code)
    return None


def is_inexact(column: Any) -> bool:
    """Whether a column holds a whole number that no float equals, beyond 2**53.

    That is a property of single cells: however rows are cut, some part of them has it, or none.
    """
    import narwhals as nw

    if isinstance(column, np.ndarray):
        if column.dtype.kind not in "iuO" or column.itemsize < 8:
            return False
        if column.dtype.kind == "O":
            large = {c for c in column.tolist() if type(c) is int and abs(c) > MAX_EXACT_INT}
            return any(c.bit_length() < 1024 and int(float(c)) != c for c in large)
    else:
        series = nw.from_native(column, series_only=True, pass_through=True)
        if isinstance(series, list):
            return is_inexact(object_array(series))
        if getattr(series, "dtype", None) == nw.Object:
            return is_inexact(objects(column))
        if not isinstance(series, nw.Series) or series.dtype not in (nw.Int64, nw.UInt64):
            return False
        column = series.drop_nulls().to_numpy()
    if not len(column) or (
        -MAX_EXACT_INT <= int(column.min()) and int(column.max()) <= MAX_EXACT_INT
    ):
        return False
    # Shifted to the right until they fit in 53 bits, exact numbers lose no bit that is set.
    size = np.where(column < 0, 0 - column.astype(np.uint64), column.astype(np.uint64))
    lost = np.zeros(len(size), np.uint64)
    for bits in range(54, 65):
        lost[size >> np.uint64(bits - 1) > 0] = (1 << (bits - 53)) - 1
    return bool((size & lost).any())


# -- Numbers: one numeric column of any library in, float64 with NaN for missing out


def numbers(
    column: Any, *, empty_is_missing: bool = False, format: str | None = None
) -> np.ndarray:
    """A column as float64 with NaN for missing; say which value is no number.

    ``format`` says how numbers are written as text (:func:`number_of`).
    """
    if format is not None and infer_kind(column) == "nominal":
        return _numbers_of_text(column, format)
    if str(getattr(column, "type", "")) == "month_day_nano_interval":
        column = objects(column)  # NumPy would have offsets of pandas in their place
    if type(column).__module__.startswith("pyarrow"):
        import pyarrow as pa

        if pa.types.is_integer(column.type):
            column = column.cast(pa.float64(), safe=False)  # NumPy has no integers with gaps
        elif not (pa.types.is_floating(column.type) or pa.types.is_temporal(column.type)):
            codes, raw = encode(column)  # decimals and the like: each distinct value is read once
            return numbers(object_array(raw), empty_is_missing=empty_is_missing)[codes]
    elif hasattr(column, "to_numpy"):
        column = objects(column) if "128" in str(column.dtype) else column.to_numpy()
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return values.astype(np.float64, copy=False)
    if values.dtype.kind == "m" and np.datetime_data(values.dtype)[0] in ("Y", "M"):
        raise TypeError(f"{values.dtype} counts months or years, which have no fixed length")
    if values.dtype.kind in "Mm":
        return seconds_of(values)
    cells = values.tolist()
    if empty_is_missing:
        cells = [None if isinstance(cell, str) and cell == "" else cell for cell in cells]
    return np.fromiter(map(_number, cells), np.float64, len(cells))


# -- Datetimes: one column of any library in, seconds since 1970 by the clock on the wall out


def seconds_of(times: np.ndarray) -> np.ndarray:
    """NumPy's datetimes (since 1970) or durations as seconds, NaN where missing."""
    seconds = times.astype(f"{times.dtype.kind}8[us]").astype(np.int64) / 1e6
    seconds[np.isnat(times)] = np.nan
    return seconds


def _numbers_of_text(column: Any, format: str) -> np.ndarray:
    """Read each distinct text once."""
    codes, labels = categories(column)
    if not len(codes):
        return np.zeros(0)
    values = [number_of(v, format) if isinstance(v, str) else _number(v) for v in labels]
    return np.array(values, np.float64)[codes]


def _number(value: Any) -> float:
    if type(value).__name__ == ARROW_INTERVAL:
        return _interval(value)
    label = canonical(value)
    if label is None:
        return float("nan")
    if isinstance(value, np.datetime64):
        return float(seconds_of(np.atleast_1d(value))[0])
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        return _seconds(value)
    try:
        return float(label)
    except ValueError:
        raise CellError("a number", value, remark_on_mark(value)) from None
    except OverflowError:
        shown = f"{value:.3e}" if isinstance(value, decimal.Decimal) else f"{str(value)[:12]}..."
        raise ValueError(f"{shown} is beyond the range of float64") from None


def _interval(value: Any) -> float:
    """The seconds of an interval of a database."""
    if value.months:
        raise CellError("a duration", value, ": months have no fixed length")
    return float(86_400 * value.days + value.nanoseconds / 1e9)


def _seconds(value: dt.date | dt.time | dt.timedelta) -> float:
    """Seconds since 1970 (without a zone: UTC) or midnight, as NumPy's columns count."""
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, dt.time):
        return (value.hour * 60 + value.minute) * 60 + value.second + value.microsecond / 1e6
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).timestamp()


# -- coordinates: ladders, on which numbers differ by their difference, absolute and in ranks ------

MAX_RUNGS = 3  # Leading directions of a ladder that are kept besides the straight one.


class Knots(NamedTuple):
    """A column's bins in counts, as points of a line.

    Attributes
    ----------
    x : ndarray
        Numbers in increasing order: the lowest, one of each bin, the highest.
    value : ndarray
        Which of the column's values in counts stands at each; the outer bins stand twice.
    share : ndarray
        The share of the numbers at each; none at the ends.
    missing : int or None
        Which value stands for missing numbers.
    """

    x: np.ndarray
    value: np.ndarray
    share: np.ndarray
    missing: int | None


def ladder(knots: Knots, mean: float, variance: float) -> np.ndarray:
    """Coordinates at the knots whose squared distances follow differences of numbers.

    The distance of two numbers is ``|g(x) - g(y)|``, where g is the mean of x in standard
    deviations and of its share of smaller numbers F(x), each scaled to a mean difference of 1 (of
    normal numbers, and of ranks). Absolute differences are squared distances on a ladder with a
    rung between any two knots; the leading directions of the ladder are kept, and g itself stands
    for the others, so that numbers beyond all knots stay apart. Where there are no others, g
    beyond the inner knots does. Inertia is ½: the mean squared distance of two numbers is 1.

    Of two numbers only, or in one bin, x itself, in standard deviations, is the one coordinate.
    """
    normal_difference, uniform_difference = 2 / np.sqrt(np.pi), 1 / 3  # mean absolute ones
    g = smaller_share(knots) / uniform_difference / 2
    varies = variance > 0 and np.isfinite(variance)
    z = (knots.x - mean) / np.sqrt(variance) if varies else np.zeros(len(g))
    g = g + z / normal_difference / 2
    if len(g) < 2 or not g[-1] > g[0]:
        return np.zeros((len(g), 1))
    if varies and knots.share.max() == 1:
        return (z / np.sqrt(2))[:, None]
    rungs = np.tril(np.ones((len(g), len(g) - 1)), -1) * np.sqrt(np.maximum(np.diff(g), 0))
    rungs = rungs - knots.share @ rungs
    root = np.sqrt(knots.share)[:, None]
    _, length, axes = np.linalg.svd(root * rungs, full_matrices=False)
    length = np.where(length > 1e-9 * length[0], length, 0.0)  # the axes of others are arbitrary
    leading = rungs @ axes[:MAX_RUNGS].T * (length[:MAX_RUNGS] > 0)
    leading = leading * np.copysign(1.0, leading[-1])  # high numbers are on one side
    beyond = g - np.clip(g, *g[knots.share > 0][[0, -1]])
    g = g - knots.share @ g
    other_inertia = (length[MAX_RUNGS:] ** 2).sum()
    straight = np.sqrt(other_inertia / (knots.share @ g**2)) * g if other_inertia > 0 else beyond
    rows = np.column_stack([leading, straight])
    inertia = knots.share @ (rows**2).sum(axis=1)
    return rows / np.sqrt(2 * inertia) if inertia > 0 else rows


def step_from(x: Any, step: Any = 1.0) -> Any:
    """A step that leads to another number, however large x is; so wide, if that is enough.

    Beyond 2**53 the next float is more than 1 away, and no line goes through two equal knots.
    """
    return np.maximum(step, 2 * np.spacing(np.abs(x)))


def smaller_share(knots: Knots) -> np.ndarray:
    """F(x) at the knots: the share of smaller numbers.

    Numbers of an outer bin that are heaped up at its end have their mean there: the end is no
    farther from the mean in F than in x, and numbers beyond it are not cast away.
    """
    x, share = knots.x, knots.share
    out = np.cumsum(share) - share / 2
    for end, outer, inner in ((0, 1, 2), (-1, -2, -3)) if len(x) > 2 else ():
        if share[end] == 0:
            edge = (x[outer] + x[inner]) / 2 if share[inner] else x[inner]
            step = share[outer] * (x[end] - x[outer]) / abs(edge - x[end])
            out[end] = np.clip(out[outer] + step, 0, 1)
    return out


# -- SQL: the number of a cell, and what a text says ----------------------------------------------


def sql_number(cell: str, dialect: Dialect) -> str:
    """A cell as a number, NULL where it is not a number; SQLite has none that is not."""
    number_type = dialect.number_type
    if dialect.name == "sqlite":
        return cell
    number = f"CAST({cell} AS {number_type})"
    if dialect.name == "bigquery":
        return f"IF(IS_NAN({number}), NULL, {number})"
    return f"NULLIF({number}, CAST('NaN' AS {number_type}))"


def sql_unless_missing(text: str, number: str) -> str:
    """A number, NULL where the text that it is read from stands for missing."""
    words = ", ".join(sql_text(word) for word in sorted(MISSING_WORDS))
    return f"CASE WHEN LOWER(TRIM({text})) IN ({words}) THEN NULL ELSE {number} END"


def _sql_written_number(text: str, column: Column, dialect: Dialect) -> str:
    """The number that a text writes, without its unit, percent sign and thousands."""
    if column.decimal == DURATIONS:
        raise ValueError(
            f"column {column.name!r} holds durations as text, such as 1h 20m, which SQL does not "
            "read; convert it to a number of seconds, before fit and in the database"
        )
    for unit in (f"{column.unit}s", column.unit) if column.unit else ():
        text = f"REPLACE(LOWER({text}), {dialect.text(unit)}, '')"
    read = _sqlite_number if dialect.name == "sqlite" else _sql_signed_number
    return read(text, "," if column.decimal == "." else ".", dialect)


def _sql_signed_number(text: str, thousands: str, dialect: Dialect) -> str:
    """The number of a text that may have a currency and a sign anywhere around it."""
    signs = "|".join(re.sub(r"\$", "[$]", sign) for sign in CURRENCIES)
    everywhere = "" if dialect.name == "bigquery" else ", 'g'"
    text = f"REGEXP_REPLACE({text}, {dialect.text(signs)}, ''{everywhere})"
    text = _sql_without_groups(text, thousands, dialect)
    for written, read in (("−", "-"), ("(", "-"), (")", ""), ("%", "")):  # (5) is -5
        text = f"REPLACE({text}, {dialect.text(written)}, {dialect.text(read)})"
    first = f"'-' || REPLACE({text}, '-', '')"  # 5.00- is -5
    text = f"CASE WHEN {text} LIKE '%-' THEN {first} ELSE {text} END"
    return f"CAST({text} AS {dialect.number_type})"


def _sqlite_number(text: str, thousands: str, dialect: Dialect) -> str:
    """The same in SQLite, which has no patterns and nests but some thirty functions."""
    around = "".join(sorted({*"".join(CURRENCIES), *"()+-−%", *BLANKS}))
    sign = f"CASE WHEN REPLACE(LOWER({text}), 'e-', '') GLOB '*[-−(]*' THEN -1 ELSE 1 END"
    text = _sql_without_groups(f"TRIM({text}, {dialect.text(around)})", thousands, dialect)
    # SQLite takes any text for a number, 0 if need be.
    is_no_number = f"{text} = '' OR {text} GLOB '*[^0-9.eE+-]*'"
    return f"CASE WHEN {is_no_number} THEN NULL ELSE ({sign}) * CAST({text} AS REAL) END"


def _sql_without_groups(text: str, thousands: str, dialect: Dialect) -> str:
    """A number without what separates its thousands, and with a decimal point."""
    for sign in (*BLANKS, *APOSTROPHES, thousands):
        text = f"REPLACE({text}, {dialect.text(sign)}, '')"
    return f"REPLACE({text}, ',', '.')"
