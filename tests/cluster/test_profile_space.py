"""Profiles in a vocabulary that grows."""

import numpy as np

from tabweave.cluster.stream import ProfileSpace
from tabweave.columns.table import Table


def test_a_space_grows_and_keeps_its_entries():
    first, second = Table.of({"a": ["x", "y"]}), Table.of({"a": ["z", "x"]})
    small = ProfileSpace.of(first)
    large = small.grown(second)
    assert large.vocabulary.labels == (("x", "y", "z"),)
    np.testing.assert_array_equal(large.reindex(np.array([[2.0, 3, 0]]), small), [[2, 3, 0, 0]])
    assert small.entries(second).tolist() == [[2], [0]]  # z is unknown to it
