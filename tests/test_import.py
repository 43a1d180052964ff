"""``import tabweave`` is light: optional and slow packages wait until they are used."""

import subprocess
import sys

HEAVY = ["numba", "pandas", "polars", "pyarrow", "duckdb", "matplotlib", "typer", "rich"]


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    ).stdout


def modules_of(module):
    return run(f"import sys, {module}; print(*sys.modules)").split()


def loaded_by(module):
    return {name.partition(".")[0] for name in modules_of(module)}


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


def test_loads_about_as_much_as_scikit_learn():
    assert len(modules_of("tabweave")) <= 1.35 * len(modules_of("sklearn.base"))
