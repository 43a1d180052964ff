"""Frames: columns of any library as codes and labels."""

import numpy as np
import pandas as pd
import pytest

from tabweave import Table
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
