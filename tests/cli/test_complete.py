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
    done = process(cwd=folder, _WEFT_COMPLETE="complete_bash", **env)
    assert done.code == 0, done.err
    return done.out.split()


@pytest.fixture
def complete(folder, monkeypatch):
    """Ask in this process."""

    def ask(words):
        given = words.split(" ")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(given) - 1))
        monkeypatch.setenv("_WEFT_COMPLETE", "complete_bash")
        return called(cwd=folder).out.split()

    return ask


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("weft ne", ["neighbors"]),
        ("weft embed titanic.csv --tar", ["--target"]),
        ("weft embed titanic.csv --method goodall", [f"goodall{i}" for i in range(1, 5)]),
        ("weft embed titanic.csv -m un", ["untie", "unicorn"]),
        ("weft embed titanic.csv --target s", ["status", "sex"]),
        ("weft embed titanic.parquet --target s", ["status", "sex"]),
        ("weft embed titanic.jsonl -t f", ["fate"]),
        ("weft embed titanic.tsv --columns age,s", ["age,status", "age,sex"]),
        ("weft embed titanic.csv --columns sex,s", ["sex,status"]),
        ("weft embed titanic.csv --kind sex=n", ["sex=nominal", "sex=numeric"]),
        ("weft neighbors shop.csv --like dr", ["drink="]),
        ("weft drift even.csv odd.csv --drop f", ["fate"]),
        ("weft embed titanic.csv --format js", ["json", "jsonl"]),
        ("weft map titanic.csv --layout t", ["tsne"]),
        ("weft embed no-such-file.csv --target s", []),
        ("weft embed ", []),  # the shell offers files
    ],
)
def test_words_are_completed(words, found, complete):
    assert complete(words) == found


def test_three_shells_ask_in_their_own_way(folder):
    assert asked("weft embed titanic.csv --target f", folder) == ["fate"]
    env = {"_TYPER_COMPLETE_ARGS": "weft embed titanic.csv --method weav"}
    zsh = process(cwd=folder, _WEFT_COMPLETE="complete_zsh", **env)
    assert '"weave":"couplings of the columns at all scales"' in zsh.out
    fish = process(
        cwd=folder, _WEFT_COMPLETE="complete_fish", _TYPER_COMPLETE_FISH_ACTION="get-args", **env
    )
    assert fish.out.split("\t")[0] == "weave"


def test_nothing_heavy_loads_before_a_command_runs():
    code = (
        "import sys, weft.cli; print({'numpy', 'pandas', 'duckdb', 'matplotlib'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "set()", done.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_real_bash_completes_a_column(folder):
    weft = Path(sys.executable).with_name("weft")
    if not weft.exists():
        pytest.skip("the command weft is not installed beside this Python")
    script = """
        eval "$(_WEFT_COMPLETE=source_bash weft)"
        complete -p weft
        COMP_WORDS=(weft embed titanic.csv --target st) COMP_CWORD=4
        _weft_completion weft
        printf 'found %s\\n' "${COMPREPLY[@]}"
    """
    path = f"{weft.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-ic", script], cwd=folder, capture_output=True,
        text=True, env=os.environ | PLAIN | {"PATH": path}, timeout=120, stdin=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    assert "complete -o default -F _weft_completion weft" in done.stdout
    assert done.stdout.splitlines()[-1] == "found status"
