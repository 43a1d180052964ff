"""Frames: columns of any library as codes and labels."""

import numpy as np
import pytest

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
