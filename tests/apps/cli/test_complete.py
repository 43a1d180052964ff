"""Tab completion, as the shells ask for it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import PLAIN, called, process


def asked(words, folder):
    """Ask as bash does: the words so far, and the number of the one being typed."""
    given = words.split(" ")
    env = {"COMP_WORDS": words, "COMP_CWORD": str(len(given) - 1)}
    done = process(cwd=folder, _TABWEAVE_COMPLETE="complete_bash", **env)
    assert done.code == 0, done.err
    return done.out.split()


@pytest.fixture
def complete(folder, monkeypatch):
    """Ask in this process."""

    def ask(words):
        given = words.split(" ")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(given) - 1))
        monkeypatch.setenv("_TABWEAVE_COMPLETE", "complete_bash")
        return called(cwd=folder).out.split()

    return ask


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("tabweave ne", ["neighbors"]),
        ("tabweave embed titanic.csv --tar", ["--target"]),
        ("tabweave embed titanic.csv --method goodall", [f"goodall{i}" for i in range(1, 5)]),
        ("tabweave embed titanic.csv -m un", ["unicorn", "untie"]),
        ("tabweave embed titanic.csv --target s", ["status", "sex"]),
        ("tabweave embed titanic.parquet --target s", ["status", "sex"]),
        ("tabweave embed titanic.jsonl -t f", ["fate"]),
        ("tabweave embed titanic.tsv --columns age,s", ["age,status", "age,sex"]),
        ("tabweave embed titanic.csv --columns sex,s", ["sex,status"]),
        ("tabweave embed titanic.csv --kind sex=n", ["sex=nominal", "sex=numeric"]),
        ("tabweave neighbors shop.csv --like dr", ["drink="]),
        ("tabweave drift even.csv odd.csv --drop f", ["fate"]),
        ("tabweave embed titanic.csv --format js", ["json", "jsonl"]),
        ("tabweave map titanic.csv --layout t", ["tsne"]),
        ("tabweave embed no-such-file.csv --target s", []),
        ("tabweave embed ", []),  # the shell offers files
    ],
)
def test_words_are_completed(words, found, complete):
    assert complete(words) == found


def test_three_shells_ask_in_their_own_way(folder):
    assert asked("tabweave embed titanic.csv --target f", folder) == ["fate"]
    env = {"_TYPER_COMPLETE_ARGS": "tabweave embed titanic.csv --method weav"}
    zsh = process(cwd=folder, _TABWEAVE_COMPLETE="complete_zsh", **env)
    assert '"weave":"couplings between columns; numbers by' in zsh.out
    fish = process(
        cwd=folder,
        _TABWEAVE_COMPLETE="complete_fish",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
        **env,
    )
    assert fish.out.split("\t")[0] == "weave"


HEAVY = "{'numpy', 'pandas', 'duckdb', 'matplotlib'} & {*sys.modules}"


@pytest.mark.parametrize(
    "code",
    [
        "import tabweave.apps.cli",
        "from tabweave.apps.cli.options import complete_method as c; assert c('weav')[0][0]",
        "from tabweave.apps.cli.models import methods; methods(json=True)",
    ],
    ids=["before a command", "completing a method", "listing the methods"],
)
def test_nothing_heavy_loads(code):
    code = f"import sys; {code}; print({HEAVY})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout.splitlines()[-1] == "set()", done.stderr


def test_a_command_that_only_reads_loads_no_scikit_learn(folder):
    code = "from tabweave.apps.cli import app, tables; import sys; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_real_bash_completes_a_column(folder):
    tabweave = Path(sys.executable).with_name("tabweave")
    if not tabweave.exists():
        pytest.skip("the command tabweave is not installed beside this Python")
    script = """
        eval "$(_TABWEAVE_COMPLETE=source_bash tabweave)"
        complete -p tabweave
        COMP_WORDS=(tabweave embed titanic.csv --target st) COMP_CWORD=4
        _tabweave_completion tabweave
        printf 'found %s\\n' "${COMPREPLY[@]}"
    """
    path = f"{tabweave.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-ic", script], cwd=folder, capture_output=True,
        text=True, env=os.environ | PLAIN | {"PATH": path}, timeout=600, stdin=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    assert "complete -o default -F _tabweave_completion tabweave" in done.stdout
    assert done.stdout.splitlines()[-1] == "found status"
