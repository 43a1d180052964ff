import numpy as np

from tabweave.apps.report.html import LONGEST, bin_names, cell, quoted, rounded, shown, written
from tabweave.rows.table import Codes, Numbers, Sets


def test_labels_as_text():
    assert [shown(v) for v in ("a", 1, 2.5, True, b"x", None)] == [
        "a",
        "1",
        "2.5",
        "True",
        "b'x'",
        None,
    ]
    assert shown("two\n lines") == "two lines"
    assert shown(" ") == "' '"
    assert len(shown("x" * 500)) == LONGEST
    assert quoted("red ") == "“red ”"


def test_cells_as_text():
    assert cell(Numbers(np.array([1234567.0, np.nan, 0.1 + 0.2])), 0) == "1234570"
    assert cell(Numbers(np.array([np.nan])), 0) is None
    assert cell(Codes(np.array([1]), ["a", None]), 0) is None
    assert cell(Sets(np.array([0, 2, 2]), np.array([1, 0]), ["a", "b"]), 0) == "a, b"
    assert cell(Sets(np.array([0, 1]), np.array([0]), [None]), 0) is None
    assert cell(Sets(np.array([0, 0]), np.array([], int), []), 0) == "{}"


def test_numbers_as_text():
    assert [written(v, 3) for v in (3550.0, 0.5, 1e12, -2e-7, 0)] == [
        "3550",
        "0.5",
        "1e+12",
        "-2e-07",
        "0",
    ]
    assert rounded(np.pi, 3) == 3.14 and rounded(np.nan) is None
    assert rounded([[1.23456, np.inf]], 2) == [[1.2, None]]


def test_bins_are_named_with_as_few_digits_as_tell_them_apart():
    assert bin_names(np.array([12.0, 30.0])) == ["< 12", "12 to 30", "≥ 30"]
    assert bin_names(np.array([1.0001, 1.0002])) == ["< 1.0001", "1.0001 to 1.0002", "≥ 1.0002"]
    assert bin_names(np.zeros(0)) == ["any number"]
