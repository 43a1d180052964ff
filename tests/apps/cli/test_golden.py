"""What every command prints, word for word, on files.

``TABWEAVE_GOLDEN=write pytest tests/apps/cli/test_golden.py`` writes the outputs anew; read the
difference.
"""

import os
import shlex
from pathlib import Path

import pytest

from .conftest import called, process

GOLDEN = Path(__file__).parent / "golden"
# name → command lines, run one after the other in one folder
COMMANDS = {
    "embed": ["embed shop.csv -m onehot --keep sku --drop price"],
    "embed-json": ["embed titanic.parquet -t fate -o vectors.parquet --save m.tabweave --json"],
    "embed-file": [
        "embed titanic.csv -t fate -m weave -o vectors.arrow --save m.tabweave",
        "embed titanic.jsonl --model m.tabweave --keep fate -o again.tsv",
    ],
    "map": ["map titanic.csv -t fate -o map.svg", "map titanic.csv -o map.html --color sex"],
    "neighbors": ["neighbors shop.csv --row 17 -k 3 --drop sku"],
    "neighbors-like": ["neighbors titanic.json --like status=crew,sex=female -k 2"],
    "neighbors-json": ["neighbors titanic.csv --row 2000 -k 1 --where sex=female --json"],
    "cluster": ["cluster titanic.csv -k 3 -t fate -o clusters.csv"],
    "explain": ["explain titanic.csv --a 0 --b 2000"],
    "explain-json": ["explain titanic.arrow -a 0 -b 2000 -m dilca --json"],
    "drift": ["drift even.csv odd.csv"],
    "report": ["report titanic.csv -t fate -o report.html"],
    "export": [
        "embed shop.csv -m onehot --columns drink,served -o v.csv --save m.tabweave",
        "export m.tabweave --sql",
    ],
    "errors": [
        "embed titanic.csv -o titanic.tsv",
        "embed titanik.csv",
        "embed titanic.csv -m weeve",
        "embed titanic.csv -m helic",
        "embed titanic.csv -t fat",
        "embed titanic.csv -o out.xls",
        "embed titanic.csv -o nowhere/out.csv",
        "embed titanic.csv --bogus",
        "embed titanic.csv --json",
        "embed",
        "neighbors titanic.csv",
        "neighbors titanic.csv --row 5000",
        "neighbors titanic.csv --like status=crw",
        "neighbors titanic.csv --like crew",
        "explain titanic.csv -a 1 -b 2 -m drdh --kind status=colour",
        "cluster shop.csv -k 99",
        "export nothing.tabweave --sql",
        "export titanic.csv",
        "drift titanic.csv shop.csv",
        "bogus",
    ],
}  # fmt: skip
IN_A_SHELL = ("embed",)  # at every change; the others are slow


def transcript(commands, run, folder):
    """Run commands and write down what a person would see, and the exit codes."""
    lines = []
    for command in commands:
        done = run(*shlex.split(command), cwd=folder)
        lines.append(f"$ tabweave {command}\n{done.out}{done.err}[{done.code}]\n")
    return "\n".join(lines)


def check(name, run, folder):
    found = transcript(COMMANDS[name], run, folder)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("TABWEAVE_GOLDEN") == "write":
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")
    assert not [p.name for p in folder.iterdir() if p.name.startswith(".") or ".part" in p.name]


@pytest.mark.parametrize("name", COMMANDS)
def test_output(name, folder):
    check(name, called, folder)


@pytest.mark.parametrize("name", IN_A_SHELL)
def test_output_in_a_shell(name, folder):
    check(name, process, folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in IN_A_SHELL])
def test_every_output_in_a_shell(name, folder):
    check(name, process, folder)


def test_every_golden_file_is_compared():
    assert {p.stem for p in GOLDEN.iterdir()} == set(COMMANDS)
