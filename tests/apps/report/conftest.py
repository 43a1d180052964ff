"""Shared by the tests of reports: a small table with three groups in it."""

import numpy as np
import pytest


def _mixed(n=300, seed=0):
    """Three groups that agree in a colour, a shape and a size, and a column of noise."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    return {
        "colour": np.array(["red", "green", "blue"], object)[group],
        "shape": np.where(rng.random(n) < 0.9, np.array(list("osx"), object)[group], "o"),
        "size": 10.0 * group + rng.normal(size=n),
        "noise": rng.choice(list("abcdefghijkl"), n).astype(object),
        "group": np.array(["one", "two", "three"], object)[group],
    }


@pytest.fixture(scope="session")
def mixed():
    return _mixed
