"""Profiles in a vocabulary that grows."""

import numpy as np

from tabweave.cluster.stream import Vocabulary, empty
from tabweave.rows.table import Table


def test_vocabulary_grows_and_carries():
    first, second = Table.of({"a": ["x", "y"]}), Table.of({"a": ["z", "x"]})
    small = empty(first).grown(first)
    large = small.grown(second)
    assert large.labels == (("x", "y", "z"),)
    np.testing.assert_array_equal(large.spread(np.array([[2.0, 3, 0]]), small), [[2, 3, 0, 0]])
    assert small.places(second).tolist() == [[2], [0]]  # z is unknown to it
    assert isinstance(large, Vocabulary)
