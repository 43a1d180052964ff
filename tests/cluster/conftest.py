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


def planted(k, n=600, columns=10, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(k, size=n)
    values = rng.integers(5, size=(k, columns))[group]
    kept = rng.random((n, columns)) < 0.75
    cells = np.where(kept, values, rng.integers(5, size=(n, columns)))
    return pd.DataFrame(cells.astype(str), columns=[f"c{j}" for j in range(columns)])
