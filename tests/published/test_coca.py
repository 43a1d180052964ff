"""CoCA as published, against Eq. (4.8) written out."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tabweave
from tabweave import Sources, published

FILES = Path(__file__).parents[1] / "fixtures" / "house" / "files"
N = 60


def drawn():
    """Draw three tables, each centred and of unit trace as they are compared."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(N, 3))
    tables = {}
    for name, width in (("a", 5), ("b", 9), ("c", 7)):
        X = hidden @ rng.normal(size=(3, width)) + rng.normal(size=(N, width))
        X = X - X.mean(axis=0)
        tables[name] = X / np.sqrt((X**2).sum() / N)
    return tables


@pytest.mark.parametrize("alpha", ["auto", 2.0])
def test_weights_stay_on_the_diagonal_blocks(alpha):
    tables = drawn()
    sources, y = Sources({name: (range(N), X) for name, X in tables.items()}), np.arange(N) % 2
    model = published.CoCA(3, alpha=alpha).fit(sources, y)
    assert model.weights_ == tabweave.CoCA(3).fit(sources, y).weights_
    beside = 1 / 3 if alpha == "auto" else alpha
    matrix = np.block(
        [
            [(model.weights_[i] if i == j else beside) * X.T @ Z / N for j, Z in tables.items()]
            for i, X in tables.items()
        ]
    )
    values, vectors = np.linalg.eigh(matrix)
    assert_allclose(model.eigenvalues_, values[::-1][:3], atol=1e-10)
    coordinates = np.hstack(list(tables.values())) @ vectors[:, ::-1][:, :3] / 3  # Eq. (4.2)
    assert_allclose(np.abs(model.transform(sources)), np.abs(coordinates), atol=1e-8)


def test_a_large_alpha_drowns_the_weights():
    tables = drawn()
    tables["b"] = np.random.default_rng(1).normal(size=(N, 9))
    sources, y = Sources({name: (range(N), X) for name, X in tables.items()}), np.arange(N) % 2

    def change(make):
        learned, equal = (make().fit(sources, labels).transform(sources) for labels in (y, None))
        return np.abs(learned @ learned.T - equal @ equal.T).max() / np.abs(equal @ equal.T).max()

    as_published = change(lambda: published.CoCA(2, alpha=60.0))
    assert as_published < 0.1 * change(lambda: tabweave.CoCA(2, alpha=60.0))
