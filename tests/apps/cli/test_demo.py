"""The command line as a new user meets it: a shell, an empty folder."""

import subprocess
import sys

import pytest

import tabweave


def run(*arguments, cwd):
    command = [sys.executable, "-m", "tabweave.apps.cli", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600)


def test_demo_prints_a_table_and_draws_a_picture(tmp_path):
    done = run("demo", "--rows", "400", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = {line.split()[1]: line.split() for line in done.stdout.splitlines() if "│" in line}
    one_hot, weave = float(lines["one-hot"][5]), float(lines["Weave"][5])
    assert weave > one_hot + 5  # F of the clusters
    picture = tmp_path / "tabweave-demo.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "tabweave-demo.png" in done.stdout.replace("\n", "")
    assert [p.name for p in tmp_path.iterdir()] == ["tabweave-demo.png"]


def test_demo_says_that_the_folder_is_missing(tmp_path):
    done = run("demo", "--rows", "200", "--output", "nowhere/picture.png", cwd=tmp_path)
    assert done.returncode != 0
    assert "folder not found: 'nowhere'" in done.stderr
    assert not list(tmp_path.iterdir())


def test_demo_ends_in_the_studio_if_one_wants(tmp_path):
    pytest.importorskip("fastapi", reason="the studio needs tabweave[studio]")
    command = [sys.executable, "-m", "tabweave.apps.cli", "demo", "--rows", "200", "--studio"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as demo:
        address = next(line for line in demo.stdout if line.startswith("tabweave studio: "))
        demo.terminate()
    assert address.rstrip().endswith("#table=titanic")


def test_version(tmp_path):
    done = run("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, tabweave.__version__)


def test_demo_draws_no_other_picture_than_it_says(tmp_path):
    done = run("demo", "-o", "picture.jpg", cwd=tmp_path)
    assert done.returncode == 2 and "a file that ends in .png" in done.stderr
