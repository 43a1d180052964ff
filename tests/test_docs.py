"""The docs show every method: what they list comes from the register, and each has its page."""

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tabweave.embed import EMBEDDERS
from tabweave.measures import MEASURES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("_hooks", DOCS / "_hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", EMBEDDERS)
def test_every_embedder_has_a_page_that_names_it(name):
    page = DOCS / "systems" / f"{EMBEDDERS[name].page}.md"
    assert page.exists(), f"write {page.relative_to(ROOT)}, or say page=... in @embedder"
    assert EMBEDDERS[name].cls.__name__ in page.read_text(encoding="utf-8")


def test_every_page_of_a_system_is_in_the_navigation(hooks):
    pages = hooks.systems()
    assert sorted(pages) == sorted(f"systems/{p.name}" for p in (DOCS / "systems").glob("*.md"))
    of_embedders = [page in {hooks.page_of(e) for e in EMBEDDERS.values()} for page in pages]
    assert of_embedders == sorted(of_embedders, reverse=True)

    config = SimpleNamespace(nav=[{"Start": ["index.md"]}, {"Systems": []}, "api.md"])
    assert hooks.on_config(config).nav[1] == {"Systems": pages}


def test_the_pages_of_the_navigation_are_there():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    made = {"gallery/index.md", "contributing.md"}  # by docs/_hooks.py
    listed = set(re.findall(r"[\w/-]+\.md", nav)) - made
    assert listed and all((DOCS / page).exists() for page in listed)
    assert {p.name for p in DOCS.glob("*.md")} - made <= listed


def test_the_lists_of_methods_are_filled_in(hooks):
    page = SimpleNamespace(file=SimpleNamespace(src_uri="choose.md"))

    def shown(name):
        text = (DOCS / name).read_text(encoding="utf-8")
        return hooks.on_page_markdown(text, page, None, None)

    table, reference = shown("choose.md"), shown("api.md")
    for name, entry in EMBEDDERS.items():
        assert f"[`{entry.cls.__name__}`](systems/{entry.page}.md)" in table
        assert reference.count(f"::: {entry.cls.__module__}.{entry.cls.__name__}") == 1, name
    for name, entry in MEASURES.items():
        assert f'| `ValueMetric("{name}")` | {entry.summary} |' in table
