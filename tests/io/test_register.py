"""The register: what the text of our files says is what their decorators do."""

import pkgutil
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

import tabweave
from tabweave.embed import EMBEDDERS, embedder, list_embedders
from tabweave.io import register
from tabweave.measures import MEASURES, list_measures, measure

SOURCE = Path(tabweave.__file__).parent


def ours():
    """Every module but those of the applications, which declare nothing."""
    found = pkgutil.walk_packages(tabweave.__path__, "tabweave.")
    return [info.name for info in found if not info.name.startswith("tabweave.apps")]


@pytest.mark.parametrize("name", ours())
def test_text_and_decorators_agree(name):
    if name == "tabweave.engines.spark":
        pytest.importorskip("pyspark", reason="the extra spark is not installed")
    module = import_module(name)
    read = {entry.attribute: entry for entry in register.module(name)}
    made = {
        attribute: entry
        for attribute, value in vars(module).items()
        if (entry := register.declaration(value)) is not None and entry.module == name
    }
    assert set(read) == set(made)
    for attribute, entry in read.items():
        run = made[attribute]
        assert (entry.decorator, entry.given[:2]) == (run.decorator, run.given[:2])
        assert entry.flags.keys() - run.flags.keys() <= {"metric"}  # of which no list asks
        assert all(run.flags[k] == v for k, v in entry.flags.items() if k in run.flags)


def test_applications_declare_nothing():
    assert register.room("tabweave.apps") == ()


def test_looking_up_a_method_gives_what_was_declared():
    assert MEASURES["of"].function is import_module("tabweave.measures.frequency").of
    assert EMBEDDERS["weave"].cls is tabweave.Weave
    assert list(MEASURES) == sorted(MEASURES) == list(list_measures())
    assert list(EMBEDDERS) == sorted(EMBEDDERS) == list(list_embedders())
    assert "nothing of the kind" not in MEASURES
    with pytest.raises(KeyError):
        MEASURES["nothing of the kind"]


def test_rooms_give_modules_and_what_they_declare():
    assert tabweave.embed.Weave is tabweave.Weave
    assert tabweave.measures.frequency.of is MEASURES["of"].function
    for room in (tabweave.embed, tabweave.measures):
        with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
            _ = room.Nothing


@pytest.fixture
def forgotten():
    before = dict(register._DECLARED)
    yield
    register._DECLARED.clear()
    register._DECLARED.update(before)


def test_a_measure_of_your_own_joins(forgotten):
    @measure("mine", "a first try", "me")
    def mine(counts):
        """Nothing yet."""

    assert MEASURES["mine"].function is mine
    assert list_measures()["mine"] == "a first try"

    def again(counts):
        """A cell of a notebook that is run once more."""

    again.__qualname__, again.__name__ = mine.__qualname__, "mine"
    measure("mine", "a second try", "me")(again)
    assert MEASURES["mine"].function is again
    assert list_measures()["mine"] == "a second try"


def test_a_name_is_taken_once(forgotten):
    with pytest.raises(ValueError, match=r"expected one embedder named 'weave', got two: .*Weave"):
        embedder("weave", "another", "me")(type("Other", (), {}))


def test_names_and_summaries_are_written_out():
    text = '@measure(NAME, "what it does", "me")\ndef gap(counts):\n'
    (found,) = register._DECLARATION.findall(text)
    with pytest.raises(TypeError, match=r"@measure of m\.gap to begin with a name and a summary"):
        list(register._read("m", found))


@pytest.mark.parametrize(
    "name",
    ["os", "tabweave", "tabweave.no_such", "tabweave.base.more", "tabweave..io", "tabweave.io/"],
)
def test_what_is_no_module_of_ours_declares_nothing(name):
    assert register.module(name) == ()


def run(code, path):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(path)!r}); {code}"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_names_are_found_in_a_zip(tmp_path):
    shutil.copytree(SOURCE, tmp_path / "src/tabweave", ignore=shutil.ignore_patterns("__pycache__"))
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "src")
    assert run("import tabweave; print(tabweave.__file__, *tabweave.__all__)", packed) == [
        f"{packed}/tabweave/__init__.py",
        *tabweave.__all__,
    ]


def test_without_text_modules_are_imported():
    blind = (
        "from importlib.machinery import SourceFileLoader as L; L.get_source = lambda *_: None;"
        "import tabweave, tabweave.io.store as s;"
        "print(*tabweave.__all__, *tabweave.measures.list_measures(),"
        "s._named('tabweave.space.trees.Tree').__name__)"
    )
    expected = [*tabweave.__all__, *list_measures(), "Tree"]
    assert run(blind, SOURCE.parent) == expected


def test_one_name_for_two_is_noticed_when_names_are_listed(forgotten):
    mine = register.Declared("embedder", "mine", "Mine", ("weave", "another"))
    register._DECLARED[mine.home] = object(), mine
    with pytest.raises(ValueError, match="expected one embedder named 'weave', got two"):
        EMBEDDERS.declared()


def test_applications_without_text_are_not_run(monkeypatch):
    class Blind:
        loader = SimpleNamespace(get_source=lambda name: None)

    monkeypatch.setattr(register, "_spec", lambda name: Blind)
    assert register.module.__wrapped__("tabweave.apps.nothing") == ()


def test_a_room_gives_its_modules_and_classes_but_nothing_private():
    assert register.attribute("tabweave.embed", "weave") is import_module("tabweave.embed.weave")
    assert register.attribute("tabweave.embed", "Weave") is tabweave.Weave
    for name in ("_compat", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"'tabweave' has no attribute '{name}'"):
            register.attribute("tabweave", name)


def test_what_a_decorator_was_given_instead_of_a_name_is_told():
    text = '@measure(NAME, OTHER, "me")\ndef gap(counts):\n'
    (found,) = register._DECLARATION.findall(text)
    with pytest.raises(TypeError, match=r"written out, got \(None, None\)"):
        list(register._read("m", found))


def test_a_name_of_ours_is_taken_before_its_file_is_imported(forgotten, monkeypatch):
    register._DECLARED.clear()  # as if no file of ours had been imported yet
    own = register.Register("measure", MEASURES._room)

    def mine(counts):
        """Nothing."""

    with pytest.raises(ValueError, match=r"expected one measure named 'hamming', got two"):
        own.add(mine, None, "hamming", "another", "me")
    monkeypatch.setattr(register, "room", None)  # a file of ours looks at no other
    mine.__module__ = "tabweave.measures.frequency"
    assert own.add(mine, None, "hamming", "ours", "us") is mine
