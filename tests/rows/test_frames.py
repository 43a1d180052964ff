"""Frames: columns of any library as codes and labels."""

import numpy as np
import pandas as pd
import pytest

from tabweave import Table, Weave
from tabweave.rows.frames import categories


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_arrow_dictionaries_are_read_where_they_lie(kind):
    """Codes of one chunk are Arrow's own indices, of whatever width: nothing is copied."""
    pa = pytest.importorskip("pyarrow")
    indices = pa.array(np.arange(500) % 3, kind)
    column = pa.DictionaryArray.from_arrays(indices, ["a", "b", "c"])
    for cells in (column, pa.chunked_array([column])):
        codes, labels = categories(cells)
        assert labels == ["a", "b", "c"] and codes.dtype.kind == "u"
        assert np.shares_memory(codes, indices.to_numpy())
    np.testing.assert_array_equal(categories(column.slice(100))[0], np.arange(100, 500) % 3)


def test_gaps_in_arrow_dictionaries_are_a_value_even_where_codes_are_full():
    pa = pytest.importorskip("pyarrow")
    words = [f"w{i}" for i in range(128)]
    column = pa.DictionaryArray.from_arrays(pa.array([*range(128), None], pa.int8()), words)
    codes, labels = categories(column)
    assert [labels[c] for c in codes] == [*words, None]


def test_codes_have_at_most_four_bytes_whatever_numbered_them():
    """Of eight bytes, unsigned and signed numbers together would become floats."""
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    cells = ["x", "y", "x", "z"] * 10
    frame = pd.DataFrame({"text": cells, "object": np.array(cells, object)})
    frame["few"] = frame["text"].astype("category")
    for source in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        for column, data in Table.of(source):
            assert data.codes.dtype.kind == "u" and data.codes.itemsize <= 4, column.name


def test_names_of_several_levels_are_joined():
    frame = pd.DataFrame({"k": [0, 0, 1], "x": [1.0, 2.0, 4.0], "c": ["u", "v", "u"]})
    grouped = frame.groupby("k").agg({"x": ["mean", "max"], "c": ["first"]}).reset_index()
    assert Table.of(grouped).schema.names == ["k", "x.mean", "x.max", "c.first"]
    model = Weave().fit(grouped)
    assert list(model.feature_names_in_) == ["k", "x.mean", "x.max", "c.first"]
    assert model.transform(grouped).shape[0] == 2
    twice = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b.c"), ("a.b", "c")]))
    with pytest.raises(ValueError, match=r"column 'a.b.c' appears twice"):
        Table.of(twice)


def test_periods_are_dates():
    months = pd.DataFrame({"month": pd.period_range("2020-01", periods=40, freq="M")})
    months["pay"] = np.arange(40) ** 0.5
    kinds = {finding.column: finding.kind for finding in Weave().fit(months).kinds()}
    assert kinds == {"month": "datetime", "pay": "numeric"}
    stamps = months.assign(month=months["month"].dt.to_timestamp())
    np.testing.assert_array_equal(Weave().fit_transform(months), Weave().fit_transform(stamps))
