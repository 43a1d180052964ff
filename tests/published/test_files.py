"""Files from before the published algorithms had classes of their own: what a switch became."""

from pathlib import Path

import pytest
from sklearn.base import clone

import tabweave
from tabweave import published
from tabweave.embed.nonbend import VI, Gibbs
from tabweave.io.codec import Outdated, restored

FILES = Path(__file__).parents[1] / "fixtures" / "house" / "files"
NAMES = ("CKML", "HELIC", "NonBEND", "UNICORN", "UNTIE")


@pytest.mark.parametrize("name", NAMES)
def test_a_switch_in_a_file_chooses_the_class(name):
    ours, theirs = (tabweave.load(FILES / f"{name}{end}.weft") for end in ("", "-published"))
    assert type(ours) is getattr(tabweave, name)
    assert type(theirs) is getattr(published, name)
    for model in (ours, theirs):  # no parameter of before is left
        public = {n for n in vars(model) if not n.startswith("_") and not n.endswith("_")}
        assert public - {"n_fits"} == set(model.get_params(deep=False)) - {"n_fits"}
        assert vars(clone(model)).keys() <= vars(model).keys()


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_today_comes_back(name, tmp_path):
    for room in (tabweave, published):
        model = getattr(room, name)()
        model.save(tmp_path / "model")
        again = tabweave.load(tmp_path / "model")
        assert type(again) is type(model) and again.get_params() == model.get_params()


def state(name, **changes):
    return vars(tabweave.load(FILES / f"{name}.weft")) | changes


def test_settings_of_non_bend_move_to_its_method():
    before = {"truncation": 12, "max_iter": 7, "verbose": True, "column_weights": "none"}
    for method, engine in (("vi", VI), ("gibbs", Gibbs)):
        model = restored(tabweave.NonBEND, state("NonBEND", method=method, **before))
        assert model.method == engine(truncation=12, max_iter=7)


def test_a_start_of_helic_becomes_a_variant():
    before = {"solver": "full", "kernels": None, "start": "balanced", "max_iter": None}
    model = restored(tabweave.HELIC, state("HELIC", **before))
    assert (model.variant, model.max_iter) == ("balanced", 200)
    model = restored(tabweave.HELIC, state("HELIC", **(before | {"solver": "paper"})))
    assert type(model) is published.HELIC
    assert (model.variant, model.max_iter) == ("helic", 1000)


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("NonBEND", {"column_weights": "shrunk"}),
        ("NonBEND", {"column_weights": "printed", "n_fits": 8}),
        ("HELIC", {"kernels": {}}),
        ("UNTIE", {"objective": "best"}),
        ("CKML", {"repair": "some"}),
    ],
)
def test_what_no_class_has_is_named(name, gone):
    with pytest.raises(Outdated, match=f"{name} was saved with {list(gone)[-1]}="):
        restored(getattr(tabweave, name), state(name, **gone))
