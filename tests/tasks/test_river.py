"""The adapter for river: without it by itself, with it in its pipelines."""

import numpy as np
import pandas as pd
import pytest

from tabweave import UNICORN, Counts, OneHot, Weave, Windowed
from tabweave.tasks.river import RiverEmbedder


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return [{"a": "xy"[v], "b": "uvw"[rng.integers(3)]} for v in y], y


@pytest.mark.parametrize("embedder", [None, OneHot(), UNICORN(), Windowed(Weave(), window=3)])
def test_one_by_one_is_many_at_once(embedder):
    records, _ = rows()
    single, many = RiverEmbedder(embedder, window_size=50), RiverEmbedder(embedder)
    for record in records:
        single.learn_one(record)
    for start in range(0, 200, 50):
        many.learn_many(pd.DataFrame(records[start : start + 50]))
    assert single.model.counts_ == many.model.counts_
    frame = many.transform_many(pd.DataFrame(records[:5], index=list("pqrst")))
    assert list(frame.index) == list("pqrst")
    for i in range(5):
        assert single.transform_one(records[i]) == pytest.approx(frame.iloc[i].to_dict())


def test_before_anything_is_learned():
    stream = RiverEmbedder(OneHot())
    assert stream.transform_one({"a": "x"}) == {}
    assert stream.transform_many(pd.DataFrame({"a": ["x"]})).shape == (1, 0)
    stream.learn_many(pd.DataFrame({"a": []}))
    stream.learn_one({"a": "x"})
    assert stream.transform_one({"a": "x"}) == {"a_x": 1.0}


def test_rows_wait_for_their_window():
    stream = RiverEmbedder(OneHot(), window_size=3)
    for value in "xyz":
        stream.learn_one({"a": value})
    stream.learn_one({"a": "w"})
    assert stream.model.counts_ == Counts.of({"a": ["x", "y", "z"]})
    stream.flush()
    assert stream.model.counts_.n == 4


def test_a_window_that_raises_loses_only_the_rows_that_cannot_be_read():
    stream = RiverEmbedder(Weave(), window_size=3)
    for value in (0.5, 1.5, 2.5, 3.5, "3 km"):
        stream.learn_one({"x": value, "a": "u"})
    with pytest.raises(TypeError, match="column 'x': expected a number, got '3 km'"):
        stream.learn_one({"x": 4.5, "a": "v"})
    stream.learn_one({"x": 5.5, "a": "v"})
    assert stream.model.counts_.n == 6


def test_a_first_window_that_raises_waits_on_without_what_no_stream_can_hold():
    """A row that stayed would keep every later window from being learned."""
    stream = RiverEmbedder(OneHot(schema={"a": "nominal"}), window_size=2)
    stream.learn_one({"a": "x"})
    with pytest.raises(TypeError, match="column 'a': expected a category"):
        stream.learn_one({"a": object()})
    assert stream._waiting == [{"a": "x"}]
    stream.learn_one({"a": "y"})
    assert stream.model.counts_ == Counts.of({"a": ["x", "y"]})


def test_another_column_is_refused_and_nothing_is_lost():
    stream = RiverEmbedder(OneHot(), window_size=2)
    for value in "xyz":
        stream.learn_one({"a": value})
    with pytest.raises(ValueError, match="column 'b' is new"):
        stream.learn_one({"a": "x", "b": "u"})
    stream.flush()
    assert stream.model.counts_.n == 3


def test_a_key_that_is_absent_is_missing():
    stream = RiverEmbedder(OneHot(), window_size=1)
    stream.learn_one({"a": "x", "b": "u"})
    stream.learn_one({"a": "x"})
    assert stream.model.counts_ == Counts.of({"a": ["x", "x"], "b": ["u", None]})
    assert stream.transform_one({"b": "u"})["b_u"] == 1


def test_fields_of_records_are_read_in_every_window():
    stream = RiverEmbedder(OneHot(), window_size=1)
    for value in "xyx":
        stream.learn_one({"a": "u", "of": {"b": value}})
    assert stream.model.counts_ == Counts.of({"a": ["u"] * 3, "of.b": ["x", "y", "x"]})


def test_bad_parameters():
    with pytest.raises(ValueError, match="window_size"):
        RiverEmbedder(window_size=0)


def test_in_a_pipeline_of_river():
    river = pytest.importorskip("river", reason="river is not installed: pip install river")
    from river import base, compose, linear_model, metrics

    assert river
    assert issubclass(RiverEmbedder, base.MiniBatchTransformer)
    model = compose.Pipeline(RiverEmbedder(OneHot(), 20), linear_model.LogisticRegression())
    accuracy = metrics.Accuracy()
    records, y = rows(400)
    for x, target in zip(records, y, strict=True):
        accuracy.update(bool(target), bool(model.predict_one(x)))
        model.learn_one(x, bool(target))
    assert accuracy.get() > 0.9
    again = model.clone()
    assert again.predict_one(records[0]) in (True, False)
    model.learn_many(pd.DataFrame(records), pd.Series(y.astype(bool)))
    assert len(model.predict_many(pd.DataFrame(records))) == 400


def test_a_row_is_a_dict():
    with pytest.raises(TypeError, match="expected a row as a dict of its cells, got \\['red'\\]"):
        RiverEmbedder().learn_one(["red"])
