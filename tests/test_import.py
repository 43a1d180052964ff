"""``import tabweave`` is light: optional and slow packages wait until they are used."""

import statistics
import subprocess
import sys
import time

import pytest

HEAVY = ["numba", "pandas", "polars", "pyarrow", "duckdb", "matplotlib", "typer", "rich"]


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    ).stdout


def loaded_by(module):
    return set(
        run(f"import sys, {module}; print(*{{m.partition('.')[0] for m in sys.modules}})").split()
    )


def test_loads_no_heavy_package():
    # scikit-learn itself may load pandas and pyarrow, where they are installed: not our doing.
    ours = loaded_by("tabweave") - loaded_by("sklearn.base")
    assert "tabweave" in ours
    assert not set(HEAVY) & ours


def test_needs_no_heavy_package():
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in HEAVY)
    assert (
        run(f"import sys; {blocked}; import tabweave; print(tabweave.OneHot())").strip()
        == "OneHot()"
    )


def test_public_names_are_there():
    assert (
        run("import tabweave; print(all(hasattr(tabweave, n) for n in tabweave.__all__))").strip()
        == "True"
    )


@pytest.mark.slow
def test_takes_about_as_long_as_scikit_learn():
    def seconds(module):
        start = time.perf_counter()
        run(f"import {module}")
        return time.perf_counter() - start

    run("import tabweave")  # compile and warm the disk
    times = [(seconds("tabweave"), seconds("sklearn.base")) for _ in range(5)]
    ours, theirs = (statistics.median(column) for column in zip(*times, strict=True))
    assert ours <= 1.35 * theirs
