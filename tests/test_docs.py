"""The docs show every method and every public name, and their links lead somewhere."""

import ast
import builtins
import doctest
import importlib.util
import inspect
import re
import shutil
import sys
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

import tabweave
from tabweave import _compat
from tabweave._compat import page_of_class
from tabweave.embed import EMBEDDERS
from tabweave.measures import MEASURES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MADE = ("api", "gallery", "reports")  # by docs/_pages.py, before each build
ROLE = re.compile(r":(?:meth|class|func|mod|attr|data|obj|ref):`")


@pytest.fixture(scope="module")
def pages():
    spec = importlib.util.spec_from_file_location("_pages", DOCS / "_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written():
    """Return the pages that are written by hand."""
    folders = [DOCS, *(p for p in DOCS.iterdir() if p.is_dir() and p.name not in MADE)]
    return sorted(p for f in folders for p in f.glob("*.md") if p.name != "contributing.md")


@pytest.mark.parametrize("name", EMBEDDERS)
def test_every_embedder_has_a_page_that_names_it(name):
    page = DOCS / "systems" / f"{EMBEDDERS[name].page}.md"
    assert page.exists(), f"write {page.relative_to(ROOT)}, or say page=... in @embedder"
    assert EMBEDDERS[name].cls.__name__ in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_has_its_formula(name):
    """On the page of measures, or in its docstring: a new measure need not touch the page."""
    page = (DOCS / "systems" / "measures.md").read_text(encoding="utf-8")
    listed = re.search(rf"^\| .*`{name}`.* \| .*\S.* \|$", page, flags=re.M)
    assert listed or re.search(r"``.* = .*``", MEASURES[name].function.__doc__)


def test_every_page_is_in_the_navigation():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"```\{toctree\}\n(?::.*\n)*\n((?:[\w/*-]+\n)+)```", index)
    entries = {entry for block in listed for entry in block.split()}
    for page in written():
        name = page.relative_to(DOCS).with_suffix("").as_posix()
        assert name in ("index", *entries) or f"{name.partition('/')[0]}/*" in entries, name


def test_every_public_name_has_a_page(pages, tmp_path):
    pages.reference(tmp_path / "api")
    made = {p.stem for p in (tmp_path / "api").glob("tabweave.*.md")}
    for name in tabweave.__all__:
        thing = getattr(tabweave, name)
        if not isinstance(thing, type(sys)):
            assert f"tabweave.{name}" in made, name
    for room in ("cluster", "datasets", "evaluate", "papers", "neighbors", "plots", "report"):
        module = getattr(tabweave, room)
        for name in module.__all__:
            assert {f"tabweave.{room}.{name}", f"tabweave.{name}"} & made, f"{room}.{name}"
    index = (tmp_path / "api" / "index.md").read_text(encoding="utf-8")
    assert "../systems/weave.md" in (tmp_path / "api" / "tabweave.Weave.md").read_text("utf-8")
    assert not ROLE.search(index)
    assert re.findall(r"^\| .*\.md\) \| +\|$", index, flags=re.M) == []  # what each is for


def test_examples_can_be_copied(pages):
    """They import what they use: on the site nothing is imported before them."""
    for name, thing in pages.public().items():
        examples = doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")
        nodes = list(ast.walk(ast.parse("".join(example.source for example in examples))))
        known = {node.arg for node in nodes if isinstance(node, ast.arg)} | set(dir(builtins))
        known |= {(node.asname or node.name) for node in nodes if isinstance(node, ast.alias)}
        named = [node for node in nodes if isinstance(node, ast.Name)]
        known |= {node.id for node in named if isinstance(node.ctx, ast.Store)}
        known |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        assert {node.id for node in named} <= known, name


def test_scikit_learns_diagram_links_to_our_pages(pages, monkeypatch):
    monkeypatch.setenv("TABWEAVE_DOCS", "https://docs.example/tabweave/")
    public = {name: thing for name, thing in pages.public().items() if is_estimator(thing)}
    assert len(public) > 40
    for name, cls in public.items():
        assert page_of_class(cls) == f"https://docs.example/tabweave/api/{name}.html"
    shown = estimator_html_repr(make_pipeline(tabweave.Weave(), LogisticRegression()))
    assert 'href="https://docs.example/tabweave/api/tabweave.Weave.html"' in shown
    own = type("Own", (tabweave.Weave,), {"__module__": "elsewhere"})
    assert own()._get_doc_link() == ""


def test_the_site_is_that_of_the_package_or_the_one_that_was_built(monkeypatch, tmp_path):
    monkeypatch.delenv("TABWEAVE_DOCS", raising=False)
    monkeypatch.setattr(_compat, "__file__", str(tmp_path / "src" / "tabweave" / "_compat.py"))
    assert tabweave.Weave()._get_doc_link() == ""  # nowhere, so no link
    (tmp_path / "site" / "api").mkdir(parents=True)
    (tmp_path / "site" / "api" / "index.html").touch()
    built = (tmp_path / "site" / "api" / "tabweave.Weave.html").as_uri()
    assert tabweave.Weave()._get_doc_link() == built
    monkeypatch.setattr(_compat, "_published_site", lambda: "https://docs.example")
    assert tabweave.Weave()._get_doc_link() == "https://docs.example/api/tabweave.Weave.html"


def is_estimator(thing):
    return isinstance(thing, type) and issubclass(thing, BaseEstimator)


def test_the_lists_of_methods_are_filled_in(pages):
    table = pages.filled((DOCS / "choose.md").read_text(encoding="utf-8"), "choose")
    for entry in EMBEDDERS.values():
        assert f"[`{entry.cls.__name__}`](systems/{entry.page}.md)" in table
    for name, entry in MEASURES.items():
        assert f'| `ValueMetric("{name}")` | {entry.summary} |' in table


@pytest.mark.parametrize("page", written(), ids=lambda p: p.relative_to(DOCS).as_posix())
def test_links_lead_to_pages_and_headings(page):
    text = page.read_text(encoding="utf-8")
    assert not ROLE.search(text), "a role of reStructuredText stands in Markdown"
    for address in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.S)):
        if re.match(r"[a-z]+:", address):
            continue
        path, _, anchor = address.partition("#")
        found = (page.parent / path).resolve() if path else page
        if any(part in MADE for part in Path(path).parts[:2]) and "benchmarks" not in path:
            continue  # made before each build, which checks them
        assert found.exists() or found.name == "contributing.md", f"{address} is not there"
        assert not anchor or anchor in anchors(found), f"{address}: no such heading"


def test_times_beside_peers_are_those_of_the_reports():
    text = (DOCS / "compare.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|(.+)\| \[\w+\]\((\S+\.md)\) \|$", text, flags=re.M)
    assert len(rows) > 6
    for cells, address in rows:
        report = (DOCS / address).read_text(encoding="utf-8")
        times = re.findall(r"([\d.]+) (?:s|GB)\b", cells)
        assert len(times) >= 2
        assert [t for t in times if not re.search(rf"(?<![\d.]){t}(?!\d)", report)] == [], address


def test_every_cell_of_a_published_table_is_measured_or_says_why():
    reports = sorted((ROOT / "benchmarks" / "reports").glob("table-[4-7].[0-9].md"))
    assert len(reports) > 10
    assert [r.name for r in reports if "not measured" in r.read_text(encoding="utf-8")] == []
    assert "not run yet" not in (DOCS / "papers.md").read_text(encoding="utf-8")


def formulas(page):
    """Return the mathematics of a page, in lines and between them."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)
    found = re.findall(r"\$\$(.+?)\$\$|\$([^$]+?)\$", text, flags=re.S)
    return [f"{page.name}: {shown or inline}" for shown, inline in found]


def test_katex_can_typeset_every_formula():
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(switch)
    service = webdriver.chrome.service.Service(shutil.which("chromedriver"))
    written_formulas = [formula for page in written() for formula in formulas(page)]
    assert len(written_formulas) > 300
    with webdriver.Chrome(options=options, service=service) as browser:
        browser.get("about:blank")
        browser.execute_script((DOCS / "_static/katex/katex.min.js").read_text(encoding="utf-8"))
        bad = browser.execute_script(
            "return arguments[0].filter((formula) => { try {"
            " katex.renderToString(formula.slice(formula.indexOf(': ') + 2)); return false;"
            " } catch { return true; } })",
            [*written_formulas, "planted: \\nosuchthing"],
        )
    assert bad == ["planted: \\nosuchthing"]


def anchors(page):
    """Return the addresses of the headings of a page, as the site makes them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.M)
    plain = (re.sub(r"\[(.*?)\]\(.*?\)", r"\1", head) for head in heads)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in plain}
