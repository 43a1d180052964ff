"""Rows in groups, for the tests of clusters on streams."""

import numpy as np
import pandas as pd


def groups(n=90, seed=0, k=3, noise=0.1, columns=5):
    """Rows of k groups that each prefer a value of their own in every column."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    rng.shuffle(y)
    cells = np.where(
        rng.random((n, columns)) < noise, rng.integers(k, size=(n, columns)), y[:, None]
    )
    return pd.DataFrame(cells.astype(str), columns=[f"c{j}" for j in range(columns)]), y
