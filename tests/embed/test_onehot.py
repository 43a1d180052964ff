"""OneHot against scikit-learn's encoder and by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

from tabweave import Column, OneHot, Schema

ROWS = pd.DataFrame({"color": ["red", "blue", "red", "green"], "size": ["S", "S", "L", "M"]})


def test_equals_scikit_learn():
    expected = OneHotEncoder(sparse_output=False).fit(ROWS)
    ours = OneHot().fit(ROWS)
    np.testing.assert_array_equal(ours.transform(ROWS), expected.transform(ROWS))
    assert [*ours.get_feature_names_out()] == [*expected.get_feature_names_out()]


def test_order_of_levels():
    schema = Schema({"size": Column("size", "ordinal", levels=("S", "M", "L"))})
    assert [*OneHot(schema=schema).fit(ROWS).get_feature_names_out()[3:]] == [
        *("size_S", "size_M", "size_L")
    ]


def test_unknown_gets_the_frequencies():
    assert OneHot().fit(ROWS).transform(pd.DataFrame({"color": ["?"], "size": ["S"]})).tolist() == [
        [0.25, 0.25, 0.5, 0, 0, 1]
    ]


def test_sets_get_the_mean():
    embedder = OneHot().fit({"s": [["a", "b"], ["b"], ["c"]]})
    assert embedder.transform({"s": [["a", "b"], ["c", "c"]]}).tolist() == [
        [0.5, 0.5, 0],
        [0, 0, 1],
    ]


def test_distances_count_mismatches():
    distances = OneHot().fit(ROWS).pairwise_distances(ROWS)
    cells = ROWS.to_numpy()
    mismatches = (cells[:, None] != cells[None]).sum(axis=2)
    np.testing.assert_allclose(distances, np.sqrt(2 * mismatches))


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ({"a": [1, "1", None]}, ["a_1", "a_'1'"]),
        ({"a": [None, "<missing>"]}, ["a_<missing>"]),
        ({"a": ["b_c"], "a_b": ["c"]}, ["a_b_c", "a_b_'c'"]),
        ({"a": ["b_c"] * 2, "a_b": ["c", "'c'"]}, ["a_b_c", "a_b_'c'", "a_b_'c'_2"]),
    ],
)
def test_names_are_unique(rows, names):
    embedder = OneHot().fit(rows)
    assert [*embedder.get_feature_names_out()] == names
    assert embedder.set_output(transform="polars").transform(rows).columns == names


def test_too_many_values_for_one_dimension_each():
    ids = {"id": [f"u{i}" for i in range(25_000)], "k": ["a"] * 25_000}
    with pytest.raises(ValueError, match="column 'id' has 25000 values, and OneHot"):
        OneHot().fit(ids)
