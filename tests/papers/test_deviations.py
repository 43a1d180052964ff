"""The deviations of the published readings from print: each is named, and all are in the docs."""

import runpy
from pathlib import Path

import pytest

from tabweave import papers

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "deviations.py"))


@pytest.mark.parametrize("name", TOOL["NAMES"])
def test_a_published_reading_says_what_it_does_otherwise(name):
    assert len(TOOL["deviations"](name)) > 40


def test_no_reading_is_forgotten():
    readings = {
        name
        for name in papers.__all__
        if name in ("CoCA", "HeMap")
        or papers._HOMES[name] == "categories"
        or name.startswith("GBC")
    }
    assert readings == {*TOOL["NAMES"], "GBCRegressor"}  # which has those of the classifier


def test_the_page_has_them_all():
    assert TOOL["PAGE"].read_text(encoding="utf-8") == TOOL["page"](), (
        "run python tools/deviations.py"
    )
