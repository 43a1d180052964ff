"""Formats: what text writes numbers, durations, ranges and dates; what it says; how to write it."""

import datetime as dt
import re

import numpy as np
import pytest

from tabweave import Table
from tabweave.columns.datetime import (
    PERIODS,
    _year,
    date_format,
    date_order,
    date_orders,
    digits_of,
    is_clock,
    is_compact_dates,
    is_compact_months,
    is_iso,
    parse_clock,
    parse_date,
    parse_period,
    periods_written,
    write_datetime,
)
from tabweave.columns.decision import Finding
from tabweave.columns.numeric import has_thousands, number_of, numbers_written
from tabweave.columns.ordinal import range_of, ranges_in_order


@pytest.mark.parametrize(
    ("text", "decimal", "number"),
    [
        ("$1,200.50", ".", 1200.5),
        ("-$3", ".", -3),
        ("−3 €", ",", -3),
        ("1.200,50 €", ",", 1200.5),
        ("€ 3.000", ",", 3000),
        ("12%", ".", 12),
        (" 4 ", ".", 4),
        ("1e-3", ".", 1e-3),
        ("USD 7", ".", 7),
    ],
)
def test_numbers(text, decimal, number):
    assert number_of(text, decimal) == number
    assert numbers_written([text, text])[1] == decimal or "." not in text + ","


def test_a_decimal_mark_is_that_of_the_whole_column():
    assert numbers_written(["1,200", "3,500"]) == ("numbers", ".")
    assert numbers_written(["1,20", "3,5"]) == ("numbers", ",")
    assert numbers_written(["3.000 €", "1.200,50 €"]) == ("money", ",")
    assert numbers_written(["3.00 €", "1200 €"]) == ("money", ".")
    assert numbers_written(["1.2.3", "4"]) is None


@pytest.mark.parametrize(
    ("texts", "what", "numbers"),
    [
        (["(1,200)", "300", "-5"], "numbers", [-1200, 300, -5]),
        (["($1,200.50)", "$80", "$(7)"], "money", [-1200.5, 80, -7]),
        (["(1.200,50) €", "7 €"], "money", [-1200.5, 7]),
        (["(5%)", "3%", "(7)%"], "percents", [-5, 3, -7]),
        (["(12 km)", "3 km"], "numbers in km", [-12, 3]),
        (["(5 min)", "3 h"], "durations", [-300, 10_800]),
    ],
)
def test_brackets_are_the_minus_of_accountants(texts, what, numbers):
    found, form = numbers_written(texts)
    assert found == what
    assert [number_of(text, form) for text in texts] == numbers
    [kind] = Table.of({"x": [f"{t} " for t in texts] * 20}).kinds()
    assert kind == Finding("x", "numeric", f"{what} written as text, negative in brackets")


@pytest.mark.parametrize(
    "texts",
    [
        ["(1999)", "(2001)"],
        ["(5", "6"],
        ["((5))", "6"],
        ["(a)", "6"],
        ["1 (2)", "3"],
        ["()", "3"],
    ],
)
def test_other_brackets_make_no_numbers(texts):
    assert numbers_written(texts) is None


@pytest.mark.parametrize(
    ("texts", "form", "numbers"),
    [
        (["12 km", "3.5 KM", "1,200 km"], ".km", [12, 3.5, 1200]),
        (["1 day", "10 days"], ".day", [1, 10]),
        (["16GB", "8GB"], ".gb", [16, 8]),
        (["20.1°C", "−3 °C"], ".°c", [20.1, -3]),
        (["1,5 kg", "2 kg"], ",kg", [1.5, 2]),
        (["5'", "6'"], ".'", [5, 6]),
        (["100 ms", "5 ms"], ".ms", [100, 5]),
        (["1h 20m", "5 min", "2 hours, 3 seconds"], ":", [4800, 300, 7203]),
        (["36:10:05", "1:02:03.5", "59:10"], ":", [130_205, 3723.5, 3550]),
        (["1 days 02:03:04", "0 days 00:00:01.5"], ":", [93_784, 1.5]),
        (["PT5M", "P1DT2H", "-PT0.5S"], ":", [300, 93_600, -0.5]),
        (["90 s", "2 min", "1500ms"], ":", [90, 120, 1.5]),
    ],
)
def test_quantities(texts, form, numbers):
    assert numbers_written(texts)[1] == form
    assert [number_of(text, form) for text in texts] == numbers
    assert np.isnan(number_of("n/a", form))
    with pytest.raises(TypeError, match=r"expected a (number of|duration).*, got '7 furlongs'"):
        number_of("7 furlongs", form)


@pytest.mark.parametrize(
    "texts",
    [
        *(["5 MB", "3 GB"], ["12A", "13B"], ["1st", "2nd"], ["12 Main", "3 High"], ["P", "PT"]),
        *(["1.2.3", "1.2.4"], ["1:2", "3:1"], ["007 km", "1:60:00"], ["5 m 5 x", "3 m"]),
    ],
)
def test_what_is_no_quantity(texts):
    assert numbers_written(texts) is None


@pytest.mark.parametrize(
    "texts",
    [
        *(["3-1", "2-2", "0-1"], ["1-3", "2-4", "3-5"], ["120-80", "90-60", "80-50"]),
        *(["2019-20", "2020-21", "2021-22"], ["555-1234", "555-1235", "555-1236"]),
        *(["18-24", "25+"], ["18-24", "25-34", "none"], ["10-12-2020", "1-1-20", "3-4-20"]),
        *(["1", "2", "3"], ["a-b", "b-c", "c-d"], [f"{i}-{i + 1}" for i in range(41)]),
    ],
)
def test_what_is_no_order_of_ranges(texts):
    assert ranges_in_order(texts) is None


def test_what_is_no_date():
    assert is_iso(["2024-02-29"]) and not is_iso(["2023-02-29"])
    assert not is_iso(["2024-01-01", "yesterday"]) and not is_iso(["NA"])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("08:30", 30600), (" 23:59:59,5 ", 86399.5), ("00:00:01", 1), ("NA", None), (None, None)],
)
def test_times_of_day_are_seconds(text, seconds):
    found = parse_clock(text)
    assert np.isnan(found) if seconds is None else found == seconds


@pytest.mark.parametrize(("text", "year"), [("69", 1969), ("68", 2068), ("00", 2000), ("99", 1999),
                                            ("099", 99), ("2016", 2016)])  # fmt: skip
def test_years_of_two_digits_are_those_of_posix(text, year):
    assert _year(text) == year


def test_text_that_begins_with_digits_is_no_number():
    assert numbers_written(["1x", "2y"]) is None


def test_a_word_behind_many_numbers_makes_them_text():
    numbers = [f"{i},5" for i in range(20)]
    assert numbers_written(numbers) == ("numbers", ",")
    assert numbers_written([*numbers, "some"]) is None


@pytest.mark.parametrize("at", [0, 19, 20, 24])
def test_one_text_of_another_kind_anywhere_tells(at):
    """Also behind the first twenty, which are looked at first."""
    for told, good, bad in (
        (lambda t: date_order(t) is not None, "31/12/2020", "31/12/2020x"),
        (lambda t: date_order(t) is not None, "31/12/2020", "32/12/2020"),
        (lambda t: numbers_written(t) is not None, "1.5", "1.5x"),
        (lambda t: numbers_written(t) is not None, "15", "015"),
        (is_iso, "2024-01-31", "2024-01-31x"),
        (is_iso, "2024-01-31", "2024-01-31T10:00Z"),
        (is_clock, "10:00", "10:60"),
    ):
        texts = [good] * 25
        assert told(texts) and told([*texts[:at], " NA ", *texts[at:]])
        texts[at] = bad
        assert not told(texts), (good, bad)
    for words in ([], ["NA"] * 25):
        assert date_order(words) is None and numbers_written(words) is None
        assert not is_iso(words) and not is_clock(words)


def test_dates_of_many_writings_are_those_of_python():
    for text, order, written in (
        ("7/21/2016 1:05 am", "mdy", "%m/%d/%Y %I:%M %p"),
        ("7/21/16 12:00 AM", "mdy", "%m/%d/%y %I:%M %p"),
        ("21.07.2016 12:30 pm", "dmy", "%d.%m.%Y %I:%M %p"),
        ("2016/7/21 23:59:58", "ymd", "%Y/%m/%d %H:%M:%S"),
        ("6-Aug-09", "dmy", "%d-%b-%y"),
        ("August 6, 2009", "mdy", "%B %d, %Y"),
        ("Dec 31 1999, 11:59:59 pm", "mdy", "%b %d %Y, %I:%M:%S %p"),
        ("1 jan 70", "dmy", "%d %b %y"),
        ("06/Aug/2009:23:59:58", "dmy", "%d/%b/%Y:%H:%M:%S"),
    ):
        assert parse_date(f" {text} ", order) == dt.datetime.strptime(text, written)
    for text in ("7/21", "21/7/2016", "7/21/2016 25:00", "16/7/21 x"):
        with pytest.raises(ValueError, match="expected a date, month first as in fit, got"):
            parse_date(text, "mdy")
    with pytest.raises(ValueError, match="year first"):
        parse_date("16/07/21", "ymd")


@pytest.mark.parametrize(
    ("written", "order"),
    [
        ("%d.%m.%Y %H:%M:%S", "dmy"),
        ("%d-%b-%y", "dmy"),
        ("%B %d, %Y", "mdy"),
        ("%m/%d/%Y %I:%M %p", "mdy"),
        ("%Y/%m/%d", "ymd"),
        ("%d/%b/%Y:%H:%M:%S -0700", "dmy"),
        ("%Y-%m-%dT%H:%M:%SZ", None),
        ("%Y-%m-%d %H:%M:%S.%f", None),
    ],
)
def test_moments_are_written_as_python_writes_them(written, order):
    """Like texts with zeros in front, and like texts without."""
    moments = [dt.datetime(2016, 7, 4, 15, 5, 9, 250), dt.datetime(1969, 12, 31, 0, 59, 0)]
    like = [dt.datetime(2008, 3, 5, 1, 2, 3).strftime(written)]
    for moment in moments:
        assert write_datetime(moment, like, order) == moment.strftime(written)
    assert write_datetime(moments[0], ["3/5/2008 1:02 AM"], "mdy") == "7/4/2016 3:05 PM"


@pytest.mark.parametrize(
    ("texts", "unit", "days"),
    [
        (["2024-03", "2023-12"], "month", ["2024-03-01", "2023-12-01"]),
        (["2024/3", "2023/12"], "month", ["2024-03-01", "2023-12-01"]),
        (["03/2024", "12/2023"], "month", ["2024-03-01", "2023-12-01"]),
        (["Mar 2024", "dec. 2023", "May-2024"], "month", ["2024-03-01", "2023-12-01"]),
        (["2024Q1", "2023-q4", "2023 Q2"], "quarter", ["2024-01-01", "2023-10-01"]),
        (["Q1 2024", "Q4/2023", "Q2-2023"], "quarter", ["2024-01-01", "2023-10-01"]),
        (["2024-W05", "2020W53", "n/a"], "week", ["2024-01-29", "2020-12-28"]),
        (["2024 W05", "2020 W53"], "week", ["2024-01-29", "2020-12-28"]),
        (["2002 Jan", "2003-Feb"], "month", ["2002-01-01", "2003-02-01"]),
    ],
)
def test_periods(texts, unit, days):
    assert periods_written(texts) == unit
    read = [parse_period(f" {text} ") for text in texts[:2]]
    assert [f"{day:%Y-%m-%d}" for day in read] == days
    assert [parse_period(write_datetime(day, texts[1:2], PERIODS)) for day in read] == read


@pytest.mark.parametrize(
    "texts",
    [
        *(["2024-03", "2024Q1"], ["2024-13"], ["2021-W53"], ["1850-03"], ["na"], []),
        *(["2009-10", "2010-11", "2011-12"], ["202403", "202404"], ["2024-03"] * 20 + ["none yet"]),
    ],
)
def test_what_is_no_period(texts):
    assert periods_written(texts) is None


def test_years_that_end_in_the_next_one_are_no_months_but_others_are():
    assert periods_written(["2009-10", "2010-11", "2010-12"]) == "month"
    with pytest.raises(ValueError, match="expected a month, quarter or week as in fit, got 'May'"):
        parse_period("May")


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("Tue, 05 Mar 2024 10:11:12 +0000", "dmy"),
        ("Tue, 05 Mar 2024 10:11:12 GMT", "dmy"),
        ("05/Mar/2024:10:11:12 -0500", "dmy"),
        ("Tuesday, March 5, 2024 10:11:12", "mdy"),
        ("Tue Mar  5 10:11:12 2024", "mdy"),
        ("Tue Mar 5 10:11:12 +0000 2024", "mdy"),
        ("20240305101112", "ymd"),
    ],
)
def test_dates_of_mails_and_logs_are_by_the_clock_they_show(text, order):
    moment = dt.datetime(2024, 3, 5, 10, 11, 12)
    assert date_format([text]) == order
    assert parse_date(text, order) == moment
    later = dt.datetime(2025, 11, 23, 10, 11, 12)
    written = write_datetime(later, [text], order)
    assert parse_date(written, order) == later
    assert ("Sun" in written) == ("Tue" in text)


@pytest.mark.parametrize(
    "text", ["Foo, 05 Mar 2024", "Tue, 05 Mar 2024 10:11 +0000", "5 Mar 10:00:00"]
)
def test_other_text_is_no_date_of_a_mail(text):
    assert date_orders([text]) == []


def test_dates_of_digits():
    assert is_compact_dates(["20240131", "19991231"])
    for texts in (["20240231"], ["18991231"], ["2024013"], []):
        assert not is_compact_dates(texts)
    assert parse_date("202403051011", "ymd") == dt.datetime(2024, 3, 5, 10, 11)
    assert write_datetime(dt.datetime(2024, 3, 5), ["20250101"], "ymd") == "20240305"
    assert is_compact_months(["202403", "199912"])
    assert not is_compact_months(["202413"])
    assert not is_compact_months([])


@pytest.mark.parametrize(
    ("values", "digits"),
    [
        ([20240131.0, np.nan, 20240131.0], ["20240131"]),
        ([202401.0, 199912.0], ["199912", "202401"]),
        *(([values], []) for values in (5.0, 20240131.5, np.nan, 123456789.0)),
    ],
)
def test_digits_as_long_as_dates(values, digits):
    assert digits_of(np.array(values)) == digits


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["2024-01-31"], None),
        (["31.1.2024", "-"], "dmy"),
        (["20240131"], "ymd"),
        (["202401"], PERIODS),
        (["Q1 2024"], PERIODS),
        (["soon"], None),
    ],
)
def test_the_format_of_dates(texts, form):
    assert date_format(texts) == form


def test_a_format_in_doubt_is_asked_for():
    with pytest.raises(ValueError, match=r"got '1/2/2024', for example: declare format 'dmy' or"):
        date_format(["1/2/2024", "3/4/2024"])


def test_thousands_in_brackets_follow_the_commas_of_other_columns():
    """(1.200) is minus 1200 beside 3,5, and minus 1.2 without it."""
    rows = {"profit": ["(1.200)", "3.400", "(800)"] * 10}
    assert Table.of(rows, rules="whole")["profit"].values[:3].tolist() == [-1.2, 3.4, -800]
    rows["share"] = ["3,5", "4,25", "5"] * 10
    assert Table.of(rows, rules="whole")["profit"].values[:3].tolist() == [-1200, 3400, -800]


def test_a_zero_before_the_mark_separates_no_thousands():
    assert numbers_written(["0,498", "1,234"]) == ("numbers", ",")
    assert numbers_written(["1,498", "1,234"]) == ("numbers", ".")
    assert numbers_written(["$0.125", "$0.250"]) == ("money", ".")
    assert not has_thousands(["0.498"]) and has_thousands(["0", "1.234"])


@pytest.mark.parametrize(
    ("text", "format", "said"),
    [
        ("1,5", ".", "got '1,5' with a decimal comma; write it with a point, or fit anew"),
        ("1.5", ",", "got '1.5' with a decimal point; write it with a comma, or fit anew"),
        ("five", ".", "got 'five'"),
    ],
)
def test_the_other_decimal_mark_is_named(text, format, said):
    with pytest.raises(TypeError, match=re.escape(said) + "$"):
        number_of(text, format)


@pytest.mark.parametrize(
    ("texts", "what", "numbers"),
    [
        (["1 727,92", "-12,50", "1 234 567,00"], "numbers", [1727.92, -12.5, 1_234_567]),
        (["1\u202f727,92", "12,50"], "numbers", [1727.92, 12.5]),
        (["1\u00a0727.92", "12.50"], "numbers", [1727.92, 12.5]),
        (["1'727.92", "12.5", "-3’400.00"], "numbers", [1727.92, 12.5, -3400]),
        (["12 345", "678", "1 000"], "numbers", [12345, 678, 1000]),
        (["CHF 1'200.50", "CHF 80"], "money", [1200.5, 80]),
        (["1 200,50 €", "80 €"], "money", [1200.5, 80]),
        (["1 200 km", "80 km"], "numbers in km", [1200, 80]),
        (["₹12,34,567.50", "₹1,23,456", "₹99,999"], "money", [1_234_567.5, 123_456, 99_999]),
        (["R$ 1.234,56", "-R$ 80,00"], "money", [1234.56, -80]),
        (["US$1,200.50", "US$80"], "money", [1200.5, 80]),
    ],
)
def test_thousands_are_separated_in_many_countries(texts, what, numbers):
    found, form = numbers_written(texts)
    assert found == what
    assert [number_of(text, form) for text in texts] == numbers


def test_digits_in_groups_of_one_length_are_codes():
    phones = [f"{i} {i + 100} {i + 200}" for i in range(100, 160)]
    assert numbers_written(phones) is None
    assert numbers_written(["5'10", "6'02"]) is None  # feet and inches
    assert numbers_written(["12 34", "1 23"]) is None
    assert numbers_written(["1,23,45", "2,34,56"]) is None


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1,727.92-", "12.50", "0.40-"], [-1727.92, 12.5, -0.4]),
        (["1.727,92-", "12,50"], [-1727.92, 12.5]),
        (["$5.00-", "$7.00"], [-5, 7]),
    ],
)
def test_a_minus_may_stand_behind_an_amount(texts, numbers):
    _, form = numbers_written(texts)
    assert [number_of(text, form) for text in texts] == numbers
    [kind] = Table.of({"x": texts * 20}).kinds()
    assert (kind.kind, kind.kept) == ("numeric", True)


def test_a_minus_behind_whole_numbers_is_that_of_grades():
    assert numbers_written(["3-", "2", "1-"]) is None
    assert numbers_written(["1.5-", "2.5-"]) is None  # all of them: no sign that tells anything


@pytest.mark.parametrize("word", ["#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?", "..", "n.a."])
def test_errors_of_worksheets_beside_numbers_are_missing(word):
    assert numbers_written(["1.5", word, "2.5"]) == ("numbers", ".")
    assert np.isnan(number_of(word))


@pytest.mark.parametrize("zone", [" UTC", " GMT", " +0000 UTC"])
def test_iso_text_may_name_utc(zone):
    texts = [f"2024-03-05 10:11:12{zone}", f"2024-03-06 10:11:12.5{zone}"]
    assert is_iso(texts)
    plain = [f"{text.removesuffix(zone)}Z" for text in texts]
    read = [Table.of({"x": rows * 20}, rules="whole")["x"] for rows in (texts, plain)]
    one, other = (column.values for column in read)
    np.testing.assert_array_equal(one, other)


def test_basic_iso_text_is_a_date():
    texts = [f"202403{day:02}T1011{day:02}Z" for day in range(1, 29)]
    [kind] = Table.of({"x": texts}).kinds()
    assert (kind.kind, kind.kept) == ("datetime", True)
    when = parse_date("20240305T101112Z", "ymd")
    assert when == dt.datetime(2024, 3, 5, 10, 11, 12)
    assert write_datetime(when, texts, "ymd") == "20240305T101112Z"


def test_years_of_two_digits_may_follow_points():
    assert date_order(["08.03.23", "21.12.22"]) == "dmy"
    assert parse_date("08.03.23", "dmy") == dt.datetime(2023, 3, 8)
    assert date_order(["1.2.10", "21.2.3"]) is None  # versions


def test_numbers_in_several_units_are_pointed_out():
    weights = [f"{i}.5 kg" if i % 3 else f"{i}00 g" for i in range(1, 61)]
    [kind] = Table.of({"x": weights}).kinds()
    assert kind.why == "numbers in several units, 'g' and 'kg': write all in one"
    assert kind.question == "meaning"
    streets = [f"{i} {name} Street" for i in range(1, 9) for name in ("Main", "High", "Mill")]
    assert Table.of({"x": streets}).kinds()[0].why == "values"


def test_months_with_a_year_of_two_digits_are_pointed_out():
    [kind] = Table.of({"x": ["Mar-23", "Apr-23", "Mar-24"] * 20}).kinds()
    assert kind.why == "months, or days of a month? write 2024-03 to have them read as months"


def test_ranges_of_years_end_in_the_century_of_their_begin():
    assert range_of("1960-64") == (1960, 1964)
    assert range_of("2000-05") is None or range_of("2000-05") == (2000, 2005)
    assert range_of("2010-15") == (2010, 2015)
