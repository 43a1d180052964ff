"""The command line with the core dependencies alone: no pandas, no polars, no pyarrow."""

import doctest
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from .conftest import PLAIN

EXTRA = ("pandas", "polars", "_polars", "pyarrow", "uvicorn", "fastapi")
README = Path(__file__).parents[3] / "README.md"


@pytest.fixture
def bare(tmp_path_factory):
    """A folder with every installed package but the extras, and a way to run tabweave from it."""
    room = tmp_path_factory.mktemp("bare")
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not path.name.startswith(EXTRA) and path.suffix != ".pth":
            (room / path.name).symlink_to(path)
    source = Path(__import__("tabweave").__file__).parents[1]
    start = f"import sys; sys.path[:0] = [{str(source)!r}, {str(room)!r}]; "
    command_line = "from tabweave.apps.cli import main; main()"

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
    assert refused.stderr == "tabweave: this needs pyarrow: pip install 'tabweave[frames]'\n"


@pytest.mark.slow
def test_the_lines_of_the_readme_work_or_name_the_extra(bare, folder):
    text = README.read_text(encoding="utf-8")
    (folder / "people.csv").write_text("job,age\ncook,30\nclerk,41\ncook,35\njudge,60\n")
    shell = [line.partition("#")[0].split() for line in text.splitlines()]
    lines = [words[1:] for words in shell if words[:1] == ["tabweave"] and len(words) > 1]
    assert len(lines) == 4
    for words in lines:
        done = bare(*words, cwd=folder)
        extra = "pip install 'tabweave[" in done.stderr
        assert extra if words[0] == "studio" else done.returncode == 0, (words, done.stderr)
    examples = [e.source for e in doctest.DocTestParser().get_examples(text)]
    done = bare(cwd=folder, code="\n" + "".join(examples))
    assert "needs pandas: pip install 'tabweave[frames]'" in done.stderr.splitlines()[-1]
    plain = "".join(e.replace(".frame()", ".columns") for e in examples[: examples_with(examples)])
    assert bare(cwd=folder, code="\n" + plain).returncode == 0


def examples_with(examples):
    """How many come before the first that shows a frame, or cuts one."""
    return next(i for i, e in enumerate(examples) if "value_distances" in e)
