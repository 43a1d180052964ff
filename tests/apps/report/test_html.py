import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from tabweave.apps import report as room
from tabweave.apps.report import describe, page, report
from tabweave.apps.report import html as _page
from tabweave.apps.report.html import (
    MAX_CHARACTERS,
    bin_names,
    cell,
    quoted,
    rounded,
    shown,
    written,
)
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets

NASTY = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "<!--",
    "]]>",
    "@@DATA@@",
    "\u2028&lt;",
]
ROWS = {
    NASTY[0]: [NASTY[i % len(NASTY)] for i in range(60)],
    NASTY[1]: list("abc") * 20,
    "n": [float(i % 7) for i in range(60)],
}


class Reader(HTMLParser):
    """Collects the elements of a page, and the text of scripts and styles."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.inside = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = (tag, dict(attrs).get("type"))

    def handle_data(self, data):
        self.texts[self.inside] = self.texts.get(self.inside, "") + data

    def handle_endtag(self, tag):
        self.inside = None


@pytest.fixture(scope="module")
def description():
    return describe(ROWS, target=NASTY[1])


def test_nothing_a_cell_holds_becomes_html(description):
    read = Reader(page(description, title=NASTY[1]))
    tags = [tag for tag, _ in read.elements]
    assert tags.count("script") == 2 and tags.count("img") == 0
    assert json.loads(read.texts["script", "application/json"]) == description
    assert read.texts["title", None] == NASTY[1] and read.texts["h1", None] == NASTY[1]


def test_loads_nothing(description):
    text = page(description)
    read = Reader(text)
    for tag, attributes in read.elements:
        assert "src" not in attributes and tag not in ("link", "iframe", "img", "object", "base")
        assert attributes.get("href", "#").startswith("#")
    code = read.texts["script", None] + read.texts["style", None]
    assert set(re.findall(r"https?://[^\s\"']+", code)) == {"http://www.w3.org/2000/svg"}
    for word in ("fetch(", "XMLHttpRequest", "import(", "url(", "@import", "eval(", "innerHTML"):
        assert word not in code


def test_policy_allows_just_what_is_on_the_page(description):
    read = Reader(page(description))
    (policy,) = [a["content"] for tag, a in read.elements if a.get("http-equiv")]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for kind in ("script", "style"):
        digest = hashlib.sha256(read.texts[kind, None].encode()).digest()
        assert f"{kind}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy


def test_every_static_file_is_used():
    folder = {p.name for p in (_page.files("tabweave.apps.report") / "static").iterdir()}
    assert folder == {*_page.SCRIPTS, *_page.STYLES, "page.html", "widget.js"}


@pytest.mark.parametrize("room", ["report", "studio"])
def test_scripts_use_what_they_define(room):
    """A name that no script defines stops the page; seen without a browser."""
    folders = [_page.files(f"tabweave.apps.{name}") / "static" for name in {"report", room}]
    code = "\n".join(
        p.read_text("utf-8") for folder in folders for p in folder.iterdir() if p.suffix == ".js"
    )
    for owner in {"tabweave", room} & {"tabweave", "studio"}:
        first = re.search(rf"const {owner} = \{{(.*?)\}};", code, re.S).group(1)
        known = set(re.findall(r"^\s*(\w+):|[ {,](\w+): ", first, re.M))
        known = {a or b for a, b in known} | set(re.findall(rf"\b{owner}\.(\w+) = ", code))
        known |= set(re.findall(r"Object\.assign\(studio, \{ ([\w, :\[\]]+) \}", code)) and set(
            re.findall(r"\w+", " ".join(re.findall(r"Object\.assign\(studio, \{([^}]*)\}", code)))
        )
        used = set(re.findall(rf"\b{owner}\.(\w+)", code))
        assert used <= known, used - known


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    lin = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * lin[0] + 0.7152 * lin[1] + 0.0722 * lin[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_text_stands_out_in_both_themes(theme):
    style = _page._read("style.css")
    blocks = [
        dict(re.findall(r"--(\w[\w-]*): (#[0-9a-f]{6})", b))
        for b in re.findall(r":root, :host \{(.*?)\}", style, re.S)
    ]
    colours = blocks[theme]
    for text in ("ink", "quiet", "accent", "alert"):
        for back in ("page", "surface"):
            assert contrast(colours[text], colours[back]) >= 4.5, (text, back)
    assert contrast(colours["on-accent"], colours["accent"]) >= 4.5
    for i in range(8):  # marks are larger than text
        assert contrast(colours[f"c{i}"], colours["surface"]) >= 3, i
    shades = [luminance(colours[f"s{i}"]) for i in range(5)]
    assert shades == sorted(shades, reverse=theme == 0)  # a number's ranges are told by lightness


def test_report_returns_or_writes_the_page(tmp_path):
    text = report(ROWS, title="mine")
    assert "<title>mine</title>" in text
    assert report(ROWS, tmp_path / "r.html", title="mine") is None
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == text


def test_no_file_is_left_half_written(tmp_path, monkeypatch):
    (tmp_path / "r.html").write_text("old")

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        report(ROWS, tmp_path / "r.html")
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    assert (tmp_path / "r.html").read_text() == "old"


def test_text_no_encoding_knows_is_still_written(tmp_path):
    report({"a": ["\ud800", "b"] * 3}, tmp_path / "r.html")
    assert "\\ud800" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_room_has_four_doors():
    assert room.__all__ == ["describe", "map_widget", "page", "report"]


# -- values as people read them ------------------------------------------------------------------


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
    assert len(shown("x" * 500)) == MAX_CHARACTERS
    assert quoted("red ") == "“red ”"


def test_cells_as_text():
    assert cell(Numbers(np.array([1234567.0, np.nan, 0.1 + 0.2])), 0) == "1234567"
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
    assert [written(v) for v in (12_345_678.0, -1234567.8, 2e9)] == [
        "12345678", "-1234568", "2000000000",
    ]  # fmt: skip
    assert rounded(12_345_678.9) == 12_345_679 and rounded(12_345_678) == 12_345_678
    assert rounded(np.pi, 3) == 3.14 and rounded(np.nan) is None
    assert rounded([[1.23456, np.inf]], 2) == [[1.2, None]]


def test_bins_are_named_with_as_few_digits_as_tell_them_apart():
    assert bin_names(np.array([12.0, 30.0])) == ["< 12", "12 to 30", "≥ 30"]
    assert bin_names(np.array([1.0001, 1.0002])) == ["< 1.0001", "1.0001 to 1.0002", "≥ 1.0002"]
    years = bin_names(np.array([1985.4, 1992, 1993, 2003]), whole=True)
    assert years == ["< 1986", "1986 to 1991", "1992", "1993 to 2002", "≥ 2003"]
    assert bin_names(np.array([1822.25, 2017.3])) == ["< 1822", "1822 to 2017", "≥ 2017"]
    assert bin_names(np.array([2003.5])) == ["< 2003.5", "≥ 2003.5"]
    assert bin_names(np.array([26.2, 26.6, 30]), whole=True)[1] == "26.2 to 26.6"  # holds no number
    assert bin_names(np.zeros(0)) == ["any number"]
