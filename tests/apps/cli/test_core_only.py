"""The core dependencies alone; and the command line with its own: no pandas, polars, pyarrow."""

import doctest
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from .conftest import PLAIN

EXTRA = ("pandas", "polars", "_polars", "pyarrow", "uvicorn", "fastapi")
CLI = ("duckdb", "_duckdb", "matplotlib", "typer", "rich")
README = Path(__file__).parents[3] / "README.md"


@pytest.fixture
def bare(tmp_path_factory):
    """A way to run tabweave with what is installed but the extras, the command line aside."""
    return without(EXTRA, tmp_path_factory.mktemp("bare"))


@pytest.fixture
def core(tmp_path_factory):
    """The same without what the command line needs."""
    return without(EXTRA + CLI, tmp_path_factory.mktemp("core"))


def without(packages, room):
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not path.name.startswith(packages) and path.suffix != ".pth":
            (room / path.name).symlink_to(path)
    source = Path(__import__("tabweave").__file__).parents[1]
    start = f"import sys; sys.path[:0] = [{str(source)!r}, {str(room)!r}]; "
    command_line = "from tabweave.apps import main; main()"

    def run(*words, cwd, code=command_line):
        return subprocess.run(
            [sys.executable, "-S", "-c", start + code, *words],
            cwd=cwd, capture_output=True, text=True, timeout=600, env=os.environ | PLAIN,
        )  # fmt: skip

    return run


@pytest.mark.slow
def test_files_in_and_out_without_the_extras(bare, folder):
    for words in (
        ["embed", "titanic.csv", "-t", "fate", "-o", "v.parquet", "--save", "m.tabweave"],
        ["embed", "titanic.parquet", "--model", "m.tabweave", "-o", "v.json"],
        ["cluster", "titanic.csv", "-k", "3", "-o", "c.tsv"],
        ["neighbors", "titanic.csv", "--row", "3", "-k", "2"],
        ["explain", "titanic.parquet", "-a", "1", "-b", "2"],
        ["drift", "even.csv", "odd.csv"],
        ["report", "titanic.csv"],
    ):
        done = bare(*words, cwd=folder)
        assert done.returncode == 0, (words, done.stderr)
    refused = bare("embed", "titanic.csv", "-o", "v.arrow", cwd=folder)
    assert refused.returncode == 1
    assert refused.stderr == "tabweave: " + needs("pyarrow", "frames")


@pytest.mark.slow
def test_the_lines_of_the_readme_work_or_name_the_extra(bare, folder):
    text = README.read_text(encoding="utf-8")
    (folder / "people.csv").write_text("job,age\ncook,30\nclerk,41\ncook,35\njudge,60\n")
    shell = [line.partition("#")[0].split() for line in text.splitlines()]
    lines = [words[1:] for words in shell if words[:1] == ["tabweave"] and len(words) > 1]
    assert len(lines) == 4
    for words in lines:
        done = bare(*words, cwd=folder)
        extra = "pip install -e '.[" in done.stderr
        assert extra if words[0] == "studio" else done.returncode == 0, (words, done.stderr)
    examples = [e.source for e in doctest.DocTestParser().get_examples(text)]
    done = bare(cwd=folder, code="\n" + "".join(examples))
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'pandas'"
    assert "'.[studio,frames]'" in text  # the example imports pandas itself; this brings it


def needs(package, extra):
    """Return what is said of a package that is missing."""
    return (
        f"this needs {package}: pip install {package}, or in a checkout of tabweave all that the "
        f"extra brings: pip install -e '.[{extra}]'\n"
    )


CORE = """
import numpy as np, tabweave
from tabweave import Counts, SimilarityIndex, Weave, WeaveClassifier
from tabweave.datasets import titanic
rows = {name: list(cells) for name, cells in titanic().columns.items()}
weave = Weave().fit(rows)
vectors = weave.transform(rows)
assert weave.explain([c[0] for c in rows.values()], [c[-1] for c in rows.values()])
assert WeaveClassifier().fit(rows, titanic().y).predict(rows).shape == (len(vectors),)
print(vectors.shape)
"""
NEEDS = {
    "tabweave.count('rows.csv')": ("duckdb", "files"),
    "tabweave.count('SELECT 1 AS a')": ("duckdb", "files"),
    "tabweave.plots.scatter_map([[0, 1]], [0])": ("matplotlib", "plots"),
    "tabweave.engines.progress_bar().__enter__()": ("rich", "cli"),
    "tabweave.count('rows.arrow')": ("pyarrow", "frames"),
}


def test_the_core_alone_learns_and_names_what_is_missing(core, tmp_path):
    done = core(cwd=tmp_path, code=CORE)
    assert done.returncode == 0 and done.stdout.startswith("(2201, "), done.stderr
    (tmp_path / "rows.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "rows.arrow").write_text("")
    tries = "".join(
        f"try:\n    {line}\nexcept ImportError as error:\n    print(error)\n" for line in NEEDS
    )
    done = core(cwd=tmp_path, code=f"\nimport tabweave\n{tries}")
    assert done.stdout == "".join(needs(*what) for what in NEEDS.values()), done.stderr
    done = core("embed", "rows.csv", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "tabweave: " + needs("typer", "cli")
