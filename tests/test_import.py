"""``import tabweave`` is light: nothing slow or optional loads before it is used."""

import ast
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import tabweave

SLOW = ["numpy", "scipy", "sklearn", "numba"]
OPTIONAL = ["pandas", "polars", "pyarrow", "duckdb", "matplotlib", "typer", "rich"]
ROOMS = (
    "columns counts space measures embed papers neighbors cluster sources tasks engines io "
    "evaluate datasets export plots apps"
).split()
SHORT = {"report": "apps.report", "studio": "apps.studio"}


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    ).stdout


def loaded_by(code):
    return set(run(f"import sys; {code}; print(*sys.modules)").split())


def packages(modules):
    return {module.partition(".")[0] for module in modules}


def test_the_names_are_known_before_anything_slow_loads():
    code = "import tabweave; tabweave.__all__, dir(tabweave), tabweave.__version__"
    assert not packages(loaded_by(code)) & {*SLOW, *OPTIONAL}


def test_a_first_use_loads_little_more_than_scikit_learn():
    ours, theirs = loaded_by("import tabweave; tabweave.OneHot"), loaded_by("import sklearn.base")
    # scikit-learn itself may load pandas and pyarrow, where they are installed: not our doing.
    assert not packages(ours - theirs) & {"numba", *OPTIONAL}
    assert len(ours) <= 1.35 * len(theirs)


def test_no_task_loads_numba_before_it_is_used():
    rooms = "from tabweave.tasks import drift, river; from tabweave.papers import recommend"
    assert not packages(loaded_by(rooms)) & {"numba", "rich"}


def test_needs_no_optional_package():
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in ["numba", *OPTIONAL])
    made = run(f"import sys; {blocked}; import tabweave; print(tabweave.OneHot())")
    assert made.strip() == "OneHot()"


def test_every_name_is_there():
    assert set(tabweave.__all__) == {name for name in dir(tabweave) if not name.startswith("_")}
    for name in tabweave.__all__:
        assert getattr(tabweave, name).__name__.rpartition(".")[2] == name
    assert not hasattr(tabweave, "Nothing")
    assert not hasattr(tabweave, "_nothing")


def test_every_room_is_reached():
    for room in ROOMS:
        assert getattr(tabweave, room) is import_module(f"tabweave.{room}")
    for short, room in SHORT.items():
        assert getattr(tabweave, short) is import_module(f"tabweave.{room}")
    assert {*ROOMS, *SHORT} <= set(tabweave.__all__)


def test_rooms_list_what_users_need():
    for room in ROOMS:
        module = import_module(f"tabweave.{room}")
        for name in getattr(module, "__all__", ()):
            assert getattr(module, name) is not None
        assert not hasattr(module, "Nothing")
    assert {"drift_report", "RiverEmbedder"} <= set(tabweave.tasks.__all__)
    assert not {"is_source", "count_for", "family"} & set(tabweave.engines.__all__)


def test_a_star_gives_every_name():
    assert run("from tabweave import *; print(Weave.__name__, datasets.__name__)").split() == [
        "Weave",
        "tabweave.datasets",
    ]


def test_the_version_is_that_of_the_distribution():
    assert tabweave.__version__ == version("tabweave")


def test_type_checkers_see_what_there_is():
    body = ast.parse(Path(tabweave.__file__).read_text(encoding="utf-8")).body
    (block,) = (node for node in body if isinstance(node, ast.If))
    typed = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name  # exported, in the eyes of a type checker
            typed[alias.name] = getattr(__import__(node.module, fromlist=[alias.name]), alias.name)
    assert all(typed[name] is getattr(tabweave, name) for name in typed)
