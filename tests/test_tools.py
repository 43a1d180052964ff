"""The tools: the bill of materials, planted errors, and what fuzzers once found."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "tests" / "corpus"


def tool(name):
    """Load a script of ours as a module."""
    spec = importlib.util.spec_from_file_location(f"tool_{name}", ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# -- the bill of materials -----------------------------------------------------------------------


def test_the_bill_lists_what_is_needed_and_what_is_shipped():
    bill = tool("sbom").bill(version="1.2.3")
    assert json.dumps(bill, sort_keys=True) == json.dumps(
        tool("sbom").bill(version="1.2.3"), sort_keys=True
    )
    names = [part["name"] for part in bill["components"]]
    assert {"numpy", "duckdb", "lightgbm", "tabweave/apps/studio/static/studio.js"} <= set(names)
    assert len(names) == len(set(names))
    nameless = [part["name"] for part in bill["components"] if not part["licenses"]]
    assert not nameless, "add their licences to tools/sbom.py and docs/policy.md"
    shipped = [part for part in bill["components"] if part["type"] == "file"]
    found = [p for p in (ROOT / "src").rglob("*") if p.suffix in (".js", ".css", ".html")]
    assert len(shipped) == len(found) > 10
    assert all(len(part["hashes"][0]["content"]) == 64 for part in shipped)
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/tabweave@1.2.3"


def test_licences_are_those_that_packages_declare():
    said = {"BSD-2-Clause": "BSD", "BSD-3-Clause": "BSD", "PSF-2.0": "Python Software Foundation"}
    checked = 0
    for name, licence in tool("sbom").LICENCES.items():
        try:
            about = metadata(name)
        except PackageNotFoundError:
            continue
        classified = [c for c in about.get_all("Classifier") or [] if c.startswith("License ::")]
        declared = [about.get("License-Expression"), about.get("License"), *classified]
        word = said.get(licence, licence.partition("-")[0])
        assert any(word in (text or "") for text in declared), (name, licence, declared)
        checked += 1
    assert checked > 8


def test_no_script_that_is_shipped_is_somebody_elses_or_fetched():
    for path in (ROOT / "src").rglob("*"):
        if path.suffix in (".js", ".css", ".html"):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"""(src|href|import|url)\s*[=(]\s*["']?https?:""", text), path
            assert "@license" not in text and "Copyright" not in text, path


# -- planted errors ------------------------------------------------------------------------------


def test_errors_are_planted_one_at_a_time():
    tools = tool("mutants")
    found = tools.mutants("io/files.py")
    source = (ROOT / "src" / "tabweave" / "io" / "files.py").read_text(encoding="utf-8")
    plain = tools.ast.unparse(tools.ast.parse(source))
    assert len(found) > 20 and len({m.what for m in found}) > 5
    for mutant in found:
        planted = tools.planted(mutant)
        compile(planted, mutant.file, "exec")
        differing = [
            a for a, b in zip(planted.splitlines(), plain.splitlines(), strict=True) if a != b
        ]
        assert len(differing) == 1, mutant


def test_every_file_of_the_list_is_there_with_its_tests():
    tools = tool("mutants")
    for file in tools.FILES:
        assert (ROOT / "src" / "tabweave" / file).is_file()
        assert all((ROOT / path).exists() for path in tools.tests_of(file)), file


# -- what fuzzers found --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", sorted(CORPUS.glob("*/*")), ids=lambda p: f"{p.parent.name}/{p.name}"
)
def test_what_once_broke_a_promise(path):
    for package in ("pandas", "polars", "pyarrow", "fastapi", "httpx"):
        pytest.importorskip(package)
    tool("fuzz").DOORS[path.parent.name][1](path.read_bytes())


@pytest.mark.parametrize("door", ["tables", "files", "text", "requests"])
def test_a_few_throws_at_every_door(door):
    for package in ("pandas", "polars", "pyarrow", "fastapi", "httpx"):
        pytest.importorskip(package)
    throw, last = tool("fuzz").thrower(door, most=10)
    throw(0)
    assert last[0]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="files are read in forked processes")
def test_damaged_files_are_thrown_by_a_process_without_threads():
    pytest.importorskip("adbc_driver_sqlite", reason="reads SQLite")
    words = ["--doors", "damaged", "--most", "1", "--seed", "7"]
    command = [sys.executable, str(ROOT / "tools" / "fuzz.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "nothing broke" in done.stdout, done.stdout + done.stderr


def test_what_breaks_a_promise_is_made_small(monkeypatch):
    tools = tool("fuzz")

    def check(data):
        assert "whole" not in json.loads(data)["c0"]

    monkeypatch.setitem(tools.DOORS, "tables", (tools.tables, check))
    throw, last = tools.thrower("tables", most=50)
    with pytest.raises(AssertionError):
        throw(0)
    assert json.loads(last[0]) == {"c0": {"whole": [0]}}


def test_survivors_that_are_explained_are_still_there():
    tools = tool("mutants")
    known = tools.explained()
    files = {name.split(" | ")[0] for name in known}
    assert known <= {tools.name_of(mutant) for file in files for mutant in tools.mutants(file)}
