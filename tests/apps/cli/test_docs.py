"""Every block of code on the pages runs: Python as doctests, the shell's lines here."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from .conftest import called

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs").glob("[chs]*/*.md"))  # concepts, howto, systems
# Lines that are not run here, and why.
NOT_RUN = {
    "make": "makes an environment; continuous integration runs it",
    "git": "needs the repository's address",
    "pip": "needs an index of packages; the installation is tried by hand",
    ".venv/bin/towncrier": "makes a release",
    "tabweave studio": "serves until it is stopped; tests/apps/studio starts it",
    "tabweave demo --studio": "serves until it is stopped",
    "tabweave --install-completion": "writes into the user's own shell",
}
# Blocks that are no commands, and what they are.
NOT_CODE = {
    "text": "a drawing",
    "markdown": "a page, written by tests/test_contributing.py",
    "python": "doctests, or files of the guide that tests/test_contributing.py writes",
}


def blocks(page):
    """Return the blocks of code of a page: their language and text."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^ *```([\w{}-]*)[^\n]*\n(.*?)^ *```$", text, flags=re.M | re.S)


def commands():
    """Return the page, number and lines of each block of the shell's commands."""
    for page in PAGES:
        if page.name != "contributing.md":
            for i, (language, text) in enumerate(blocks(page)):
                if language == "sh":
                    lines = [line.partition(" #")[0].strip() for line in text.splitlines()]
                    yield pytest.param(lines, id=f"{page.name}-{i}")


def why_not(line):
    return next((why for start, why in NOT_RUN.items() if line.startswith(start)), "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the pages speak of."""
    pandas = pytest.importorskip("pandas", reason="the files are written with pandas")
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(0)
    job = rng.choice(["cook", "clerk", "judge"], 200)
    pay = np.select([job == "cook", job == "clerk"], [2.0, 3.0], 6.0) + rng.normal(0, 0.4, 200)
    goes = np.where(pay > 4, "car", rng.choice(["bus", "bike"], 200)).astype(object)
    goes[::17] = None
    people = pandas.DataFrame({"job": job, "age": rng.integers(20, 65, 200), "pay": pay.round(2)})
    people["goes by"] = goes
    people.to_csv(folder / "people.csv", index=False)
    customers = people.assign(churned=pay > 4, key=[f"C{i:03}" for i in range(200)])
    customers.to_csv(folder / "customers.csv", index=False)
    people[:100].to_csv(folder / "monday.csv", index=False)
    people[100:].to_csv(folder / "tuesday.csv", index=False)
    people[:100].to_parquet(folder / "last-week.parquet")
    people[100:].assign(job="judge").to_parquet(folder / "this-week.parquet")
    classes = people.assign(y=np.where(pay > 4, "rich", "poor")).drop(columns=["age", "pay"])
    classes[:150].to_csv(folder / "train.csv", index=False)
    classes[150:].to_csv(folder / "test.csv", index=False)
    return folder


@pytest.mark.parametrize("lines", list(commands()))
def test_commands_of_the_pages_run(lines, folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    ran = [line for line in lines if line and not why_not(line)]
    if not ran:
        pytest.skip("; ".join(sorted({why_not(line) for line in lines if line})))
    for line in ran:
        piped = line.startswith("curl ")
        own = next(part.strip() for part in re.split(r" \|\|? ", line) if "tabweave" in part)
        given = (tmp_path / "people.csv").read_text() if piped else None
        done = called(*shlex.split(own)[1:], cwd=tmp_path, stdin=given)
        expected = 3 if "--check" in own else 0  # 3: drift was found, as the echo says
        assert done.code == expected, f"{line}\n{done.out}{done.err}"
        if "jq ." in line:
            assert line.rpartition("jq .")[2] in json.loads(done.out.splitlines()[0])


def test_lines_that_help_says_to_try_run(folder, tmp_path):
    from tabweave.apps.cli import app

    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    shown = [app.info.epilog, *(command.epilog for command in app.registered_commands)]
    lines = dict.fromkeys(line.strip() for text in shown for line in text.splitlines()[1:])
    assert len(lines) > len(app.registered_commands)
    for line in lines:
        if not why_not(line):
            done = called(*shlex.split(line)[1:], cwd=tmp_path)
            assert done.code in ((0, 3) if "--check" in line else (0,)), f"{line}\n{done.err}"


def test_output_that_is_shown_is_what_is_printed(tables, tmp_path):
    """Blocks that begin with a prompt show a command and its output, word for word."""
    shown = [text for page in PAGES for language, text in blocks(page) if language == "console"]
    assert shown
    for text in shown:
        line, _, output = text.partition("\n")
        (tmp_path / "titanic.csv").write_bytes((tables / "titanic.csv").read_bytes())
        done = called(*shlex.split(line)[2:], cwd=tmp_path)
        assert done.out.split() == output.split()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_block_is_of_a_kind_that_is_run(page):
    for language, text in blocks(page):
        run = language in ("sh", "console") or language.startswith("{")
        assert run or language in NOT_CODE, f"what is a block of {language!r}? {text[:80]}"
        if language == "python" and page.name.lower() != "contributing.md":
            assert ">>>" in text, f"no doctest, so nothing runs it: {text[:80]}"
