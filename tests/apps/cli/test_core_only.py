"""The command line with the core dependencies alone: no pandas, no polars, no pyarrow."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from .conftest import PLAIN

EXTRA = ("pandas", "polars", "_polars", "pyarrow")


@pytest.fixture
def bare(tmp_path_factory):
    """A folder with every installed package but the extras, and a way to run tabweave from it."""
    room = tmp_path_factory.mktemp("bare")
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not path.name.startswith(EXTRA) and path.suffix != ".pth":
            (room / path.name).symlink_to(path)
    source = Path(__import__("tabweave").__file__).parents[1]
    start = f"import sys; sys.path[:0] = [{str(source)!r}, {str(room)!r}]; "
    start += "from tabweave.apps.cli import main; main()"

    def run(*words, cwd):
        return subprocess.run(
            [sys.executable, "-S", "-c", start, *words],
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
