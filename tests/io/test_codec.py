"""Objects as parts and back: parameters of others, parts that are shared again and again."""

import numpy as np
import pytest

import tabweave
from tabweave import OneHot
from tabweave.io import store


def test_classes_of_others_keep_what_they_set(tmp_path):
    from sklearn.neural_network import MLPClassifier

    assert store.restored(MLPClassifier, {"loss": "log_loss"}).loss == "log_loss"


# -- parts that are shared again and again -------------------------------------------------------


def nested(kind, depth):
    """Return JSON of a few hundred bytes that stands for 2 ** depth parts."""
    tree = {kind: [1, 2]} if kind != "list" else [1, 2]
    for level in range(depth):
        both = [tree, {"same": depth - level + 1}]
        tree = both if kind == "list" else {kind: both}
    return tree


@pytest.mark.parametrize("wrap", ["dict", "set", "frozenset", "list"])
@pytest.mark.parametrize("kind", ["tuple", "list"])
def test_shared_parts_are_bounded(wrap, kind):
    tree = {"dict": [[nested(kind, 60), 1]]} if wrap == "dict" else {wrap: [nested(kind, 60)]}
    decoder = store.Decoder({}, lambda name: None)
    with pytest.raises(ValueError, match="the same parts again and again"):
        decoder.decode(tree[wrap] if wrap == "list" else tree)


def test_a_saved_model_of_shared_tuples_does_not_hang(tmp_path):
    model = OneHot().fit([["a"], ["b"]])
    own = (1, 2)
    for _ in range(60):
        own = (own, own)
    model.schema = {"x": own}
    model.save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 4000
    with pytest.raises(ValueError, match="damaged: it holds the same parts again and again"):
        tabweave.load(tmp_path / "model")


def test_what_is_shared_as_models_share_comes_back_shared():
    labels = tuple(f"v{i}" for i in range(5000))
    encoder = store.Encoder(lambda value: None)
    tree = encoder.encode([[labels, i] for i in range(2000)], "")
    back = store.Decoder(encoder.arrays, lambda name: None).decode(tree)
    assert back[0][0] == labels and all(pair[0] is back[0][0] for pair in back)


def encoded(value):
    return store.Encoder(lambda _: None).encode(value, "x")


def test_what_no_file_holds_is_named():
    import datetime as dt
    from zoneinfo import ZoneInfo

    with pytest.raises(TypeError, match=r"cannot save x: .* has a zone; convert it to UTC"):
        encoded(dt.datetime(2020, 1, 1, tzinfo=ZoneInfo("Europe/Rome")))
    assert encoded(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    with pytest.raises(TypeError, match="cannot save x: an array of"):
        encoded(np.zeros(2, [("a", "i4"), ("b", "O")]))
    with pytest.raises(TypeError, match="cannot save x: an array of"):
        encoded(np.zeros(2, "V3"))


def test_keys_that_hold_the_same_parts_again_and_again_are_refused(monkeypatch):
    monkeypatch.setattr(store, "MAX_KEY_PARTS", 3)
    encoder = store.Encoder(lambda _: None)
    small, large = encoder.encode({(1, 2): 0}, "x"), encoder.encode({(1, 2, 3, 4): 0}, "x")
    assert store.Decoder({}, lambda _: None).decode(small) == {(1, 2): 0}
    with pytest.raises(ValueError, match="a key holds the same parts again and again"):
        store.Decoder({}, lambda _: None).decode(large)


def test_neighbours_without_a_tree_need_none():
    from sklearn.neighbors import NearestNeighbors

    rows = np.arange(8.0).reshape(4, 2)
    for how, has_tree in (("brute", False), ("kd_tree", True), ("ball_tree", True)):
        model = NearestNeighbors(algorithm=how).fit(rows)
        model._tree = None
        store._rebuild_tree(model)
        assert (model._tree is not None) == has_tree
        assert model.kneighbors(rows, 1)[1].ravel().tolist() == [0, 1, 2, 3]


def test_parts_are_counted_as_if_nothing_were_shared():
    """By which what is refused is known: a list counts itself and what is in it."""

    def parts(value):
        return 1 + sum(map(parts, value)) if isinstance(value, list) else 1

    own = [1, "a", None]
    value = [own, own, [own, 2.5, [own]], own]
    encoder = store.Encoder(lambda _: None)
    decoder = store.Decoder(encoder.arrays, lambda name: None)
    assert decoder.decode(encoder.encode(value, "")) == value
    assert decoder._parts == parts(value)


@pytest.mark.parametrize("text", ["O", "V8", "f8,i4", "O,i4"])
def test_types_that_are_no_numbers_or_text_are_refused(text):
    with pytest.raises(ValueError, match="expected the type of a number or text, got"):
        store._simple(text)
