"""Targets: what NumPy would make of mixed ones, and errors with an example."""

import numpy as np
import pytest

from tabweave.columns.inputs import target_array, target_numbers


def test_targets_of_several_types_stay_what_they_are():
    assert target_array(["a", 1, True]).tolist() == ["a", 1, True]
    assert target_array([True, 1, 0]).tolist() == [True, 1, 0]
    assert target_array([1, 2.5]).dtype == np.float64
    assert target_array([1, 2]).dtype == np.int64
    assert target_array([True, False]).dtype == bool
    assert target_array(["a", "b"]).dtype.kind in "OU"


def test_an_error_names_the_first_target():
    with pytest.raises(ValueError, match="got 'one'; use A for classes"):
        target_numbers(np.array(["one", "two"], object), "A")
