"""Every example of the gallery runs as it stands, in an empty folder, and draws its picture."""

import os
import re
import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

FOLDER = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(FOLDER.glob("[0-9]*.py"))
NEEDS = {"11": "openTSNE"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_runs_and_draws(script, tmp_path, monkeypatch):
    if script.name[:2] in NEEDS:
        pytest.importorskip(NEEDS[script.name[:2]], reason="an extra that is not installed")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    plt.close("all")
    picture = re.search(r'savefig\("(.+?)"', script.read_text(encoding="utf-8")).group(1)
    assert picture == f"{script.stem[3:]}.png"
    assert os.path.getsize(tmp_path / picture) > 5_000


def test_there_are_enough():
    assert len(SCRIPTS) >= 12
