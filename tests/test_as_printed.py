"""docs/published.md says what its reports say."""

import runpy
from pathlib import Path

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def test_the_page_of_published_figures_is_that_of_the_reports(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    script = runpy.run_path(str(BENCHMARKS / "as_printed.py"))
    page = script["PAGE"].read_text(encoding="utf-8")
    section = page.split(script["MARKS"][0])[1].split(script["MARKS"][1])[0]
    assert section.strip().splitlines() == script["lines"](), "run python benchmarks/as_printed.py"
    assert len(script["SYSTEMS"]) == 11
