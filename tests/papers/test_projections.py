"""CoCA against Eq. (4.8) written out; HeMap: rows aligned at random, one dimension, untested."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

import tabweave
from tabweave import Sources, papers
from tabweave.papers.sources import at_random
from tabweave.sources.hemap import Scaled

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
    model = papers.CoCA(3, alpha=alpha).fit(sources, y)
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


def test_to_the_letter_directions_are_those_of_raw_tables_and_graphs():
    """Eqs. (4.8), (4.14), (4.2) written out: α = 60, units as they are, neighbours left out."""
    rng = np.random.default_rng(0)
    tables = {name: 3**k * X for k, (name, X) in enumerate(drawn().items())}
    ends = rng.integers(0, N, (2, 90))
    a, b = ends[:, ends[0] != ends[1]]
    sources = Sources({n: (range(N), X) for n, X in tables.items()}, {"g": {"a": a, "b": b}})
    M = sources.graph("g").toarray()
    model = papers.CoCA(3, alpha=60, literal=True).fit(sources, np.arange(N) % 2)
    matrix = np.block(
        [
            [
                X.T @ (model.weights_[i] * np.eye(N) + M) @ X / N if i == j else 60 * X.T @ Z / N
                for j, Z in tables.items()
            ]
            for i, X in tables.items()
        ]
    )
    values, vectors = np.linalg.eigh(matrix)
    assert_allclose(model.eigenvalues_, values[::-1][:3], rtol=1e-9)
    coordinates = np.hstack(list(tables.values())) @ vectors[:, ::-1][:, :3] / 3
    assert_allclose(np.abs(model.transform(sources)), np.abs(coordinates), atol=1e-7)
    scaled = papers.CoCA(3, alpha=60).fit(sources, np.arange(N) % 2)
    ours = np.vstack([scaled.components_[name].T for name in tables])
    cosines = np.linalg.svd(ours.T @ vectors[:, ::-1][:, :3], compute_uv=False)
    assert cosines.min() < 0.95  # scaled tables miss it


def test_to_the_letter_graphs_alone_are_their_adjacency():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, N, (2, 200))
    sources = Sources({}, {"g": {"a": a, "b": b}})
    model = papers.CoCA(2, literal=True).fit(sources)
    n = len(sources)
    H = np.eye(n) - 1 / n
    values = np.linalg.eigvalsh(H @ sources.graph("g").toarray() @ H)
    assert_allclose(model.eigenvalues_, values[::-1][:2], rtol=1e-8)


def test_a_large_alpha_drowns_the_weights():
    tables = drawn()
    tables["b"] = np.random.default_rng(1).normal(size=(N, 9))
    sources, y = Sources({name: (range(N), X) for name, X in tables.items()}), np.arange(N) % 2

    def change(make):
        learned, equal = (make().fit(sources, labels).transform(sources) for labels in (y, None))
        return np.abs(learned @ learned.T - equal @ equal.T).max() / np.abs(equal @ equal.T).max()

    as_published = change(lambda: papers.CoCA(2, alpha=60.0))
    assert as_published < 0.1 * change(lambda: tabweave.CoCA(2, alpha=60.0))


def test_divergence_of_clusters_by_hand():
    """(5.17), (5.18): clusters of 3 + 1 and 1 + 4 rows, target first."""
    target, source = [0, 0, 0, 1], [0, 1, 1, 1, 1]
    within = 9 / 4 * np.log(3 / 1) + 1 / 5 * np.log(1 / 4)
    expected = 2 / 4 * within + np.log(5 / 4)
    assert papers.clustering_divergence(target, source) == pytest.approx(expected)
    assert papers.clustering_divergence(["a"] * 9, ["a"] * 9) == 0
    assert papers.clustering_divergence([0, 1], [0, 0]) == np.inf
    with pytest.raises(ValueError, match="expected clusters of rows, got none"):
        papers.clustering_divergence([], [1])


def test_every_row_of_both_tables_is_aligned():
    T, S = np.zeros((5, 1)), np.zeros((7, 1))
    i, j = at_random(Scaled(None, None, None, T, S, np.random.RandomState(0)))
    assert len(i) == len(j) == 7 and set(j) == set(range(7)) and set(i) == set(range(5))


def test_erratum_rows_in_random_order_carry_nothing_over():
    """Two views of the same digits: pairs help, the published alignment does not."""
    data = load_digits()
    rows = np.random.default_rng(0).permutation(len(data.target))[:700]
    even, odd = (data.images[rows, i::2].reshape(700, -1) for i in (0, 1))
    y = data.target[rows].astype(str)
    labels = y[:500].astype(object)
    labels[50:] = None
    source = odd[:500], y[:500]
    paired = tabweave.HeMap(random_state=0).fit(
        even[:500], labels, source=source, pairs=np.arange(500)
    )
    model = papers.HeMap(random_state=0).fit(even[:500], labels, source=source)
    assert not model.refused_ and model.project(even[:3]).shape == (3, 1)
    errors = [1 - m.score(even[500:], y[500:]) for m in (paired, model, model.target_estimator_)]
    assert errors[0] < errors[2] < errors[1]


def test_the_source_is_never_tested():
    rng = np.random.default_rng(0)
    X, kind = rng.normal(size=(60, 3)), np.repeat(["a", "b"], 30)
    model = papers.HeMap(random_state=0)
    model.fit(X, kind, source=(rng.normal(size=(90, 5)), rng.choice(["a", "b"], 90)))
    assert not model.refused_ and model.alignment_ == "random" and model.losses_ == {}
    assert papers.HeMap().fit(X, kind).refused_  # there is no source
