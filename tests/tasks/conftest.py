"""A table whose rules are known, whole and with holes."""

import numpy as np
import pandas as pd
import pytest

RNG = np.random.default_rng(0)
N = 240


@pytest.fixture(scope="module")
def whole():
    """Country follows from city, sea from country, x from city, and luck from nothing."""
    city = RNG.choice(["Lima", "Oslo", "Rome"], N)
    country = pd.Series(city).map({"Lima": "Peru", "Oslo": "Norway", "Rome": "Italy"})
    x = pd.Series(city).map({"Lima": 20.0, "Oslo": 5.0, "Rome": 15.0}) + RNG.normal(0, 0.5, N)
    sea = np.where(country == "Norway", "cold", "warm")
    frame = pd.DataFrame({"city": city, "country": country, "sea": sea, "x": x, "y": 2 * x + 1})
    frame["luck"] = RNG.choice(["heads", "tails"], N)
    return frame.astype(dict.fromkeys(("city", "country", "sea", "luck"), object))


@pytest.fixture(scope="module")
def holes(whole):
    out = whole.copy()
    for j, name in enumerate(whole):
        rows = np.arange(j, N, 7)
        out.loc[rows, name] = np.nan if whole[name].dtype == float else None
    return out
