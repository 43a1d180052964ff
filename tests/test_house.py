"""The house, in numbers: what a reader of the listing is promised."""

import importlib.util
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tabweave

SOURCE = Path(tabweave.__file__).parent
TOOLS = Path(__file__).parents[1] / "tools"


def is_room(path):
    """Tell whether a path is a folder of sources; one of compiled files alone was a room once."""
    return path.is_dir() and any(path.glob("*.py"))


def public_classes():
    """Return the classes among the public names of the package and its rooms."""
    modules = [m for m in (getattr(tabweave, n) for n in tabweave.__all__) if inspect.ismodule(m)]
    found = {}
    for module in (tabweave, *modules):
        for name in getattr(module, "__all__", ()):
            if inspect.isclass(value := getattr(module, name)):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


def test_the_top_level_fits_on_one_screen():
    entries = {path.name for path in SOURCE.iterdir() if path.suffix == ".py" or is_room(path)}
    assert len(entries) <= 23
    assert {name for name in entries if name.startswith("_")} == {"__init__.py", "_compat.py"}


def test_every_room_says_what_it_is():
    for room in filter(is_room, SOURCE.iterdir()):
        assert import_module(f"tabweave.{room.name}").__doc__


def test_there_are_few_files():
    assert len(list(SOURCE.rglob("*.py"))) <= 170  # three more follow CONTRIBUTING, in a test


def test_columns_are_asked_and_not_their_kinds():
    """What differs by kind of column is said in its file; a few readers of types name kinds."""
    spec = importlib.util.spec_from_file_location("house", TOOLS / "house.py")
    house = importlib.util.module_from_spec(spec)
    sys.modules["house"] = house
    spec.loader.exec_module(house)
    places = house.tests_of_kinds(house.modules(SOURCE))
    assert len(places) <= 12, "\n".join(places)
    assert house.asks_of_kind(house.ast.parse("c.kind == 'set'").body[0].value, set(), {"set"})


def test_no_six_lines_stand_twice():
    """Lines with a word in them, imports and comments aside; runs of six, wherever they begin."""
    first = {}
    for path in sorted(SOURCE.rglob("*.py")):
        lines = [
            (number, " ".join(line.split()))
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
            if re.search(r"\w", line) and not re.match(r"\s*(#|import |from )", line)
        ]
        for start in range(len(lines) - 5):
            run = tuple(text for _, text in lines[start : start + 6])
            here = f"{path.relative_to(SOURCE)}:{lines[start][0]}"
            assert first.setdefault(run, here) == here, f"{here} repeats {first[run]}"


@pytest.mark.parametrize("name", public_classes())
def test_constructors_take_few_parameters(name):
    cls = public_classes()[name]
    assert len(inspect.signature(cls).parameters) <= 8
