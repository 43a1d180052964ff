"""Decision: what rules say of a column: its kind, why, and whether it is dropped."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeVar

# -- Names: what the name of a column says of its values: codes, measures, dates, an index --------

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

MEASURE_NAMES = re.compile(
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
INDEX_NAMES = re.compile(r"__index_level_\d+__|Unnamed: 0(?:\.\d+)?|index|level_0|column0|")

ROW_NAMES = re.compile(r"(?i:row[ ._]?(?:names?|index|numbers?|nums?|nrs?|ids?))")

DURATION_NAMES = re.compile(
    r"(?i:durat|elapsed|runtime|length|(?:^|[\W_])(?:lap|took|pace)s?(?:$|[\W_]))"
)

DATE_NAMES = re.compile(
    r"(?i:date|datum|fecha|(?:^|[\W_])(?:days?|dt|dob|born|birth(?:day)?|yyyymmdd)(?:$|[\W_]))"
    r"|(?<=[a-z0-9])(?:Day|Dt)(?:$|[\W_])"
)

MONTH_NAMES = re.compile(
    r"(?i:month|period|(?:^|[\W_])(?:ym|yyyymm|date|year_?mon)(?:$|[\W_]))|(?<=[a-z0-9])YM$"
)

TIMESTAMP_NAMES = re.compile(
    r"(?i:time|date|stamp|epoch"
    r"|(?:^|[\W_])(?:ts|at|on|since|seen|created|updated|modified)(?:$|[\W_]))"
)

CAMEL_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # where a word begins, as in dayOfWeek


def is_index(name: str) -> bool:
    """Whether the name of a column is one that libraries give to the names of rows."""
    return bool(ROW_NAMES.fullmatch(name) or INDEX_NAMES.fullmatch(name))


# -- what rules decide ----------------------------------------------------------------------------

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
