"""Thousands of classes: votes are sparse, and what classes teach takes few coordinates.

Compared with tables of rows × classes, as they are written in the definitions.
"""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from tabweave import SupervisedWeave, WeaveClassifier
from tabweave.embed import supervised
from tabweave.neighbors import predictors
from tabweave.neighbors.votes import log_losses, winners


def many(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    words = rng.integers(0, 9, size=(n_classes, 3))
    X = {f"w{j}": np.array(list("abcdefghi"))[words[y, j]] for j in range(3)}
    X["x"] = rng.normal(size=n_classes)[y] + rng.normal(scale=0.1, size=n)
    return X, np.array([f"C{i:03}" for i in range(n_classes)])[y]


def dense_probabilities(votes, floor, exponent):
    out = (votes + floor) ** exponent
    return out / out.sum(axis=1, keepdims=True)


def test_votes_are_sparse_and_those_of_the_definition():
    X, y = many(900, 300)
    model = WeaveClassifier().fit(X, y)
    rows, view, targets, *_ = model._search_state()
    table = model._read(X)
    votes = np.zeros((900, 300))
    for asked, weights, nodes in model._votes(table):
        for i, line, weight in zip(asked, nodes, weights, strict=True):
            for node, w in zip(line, weight, strict=True):
                members = np.flatnonzero(view.copies.node_of == node)
                np.add.at(votes[i], model._targets[rows[members]], w / len(members))
        (shares,) = targets.class_votes([(weights, nodes)], 300)
        np.testing.assert_allclose(shares.toarray(), votes[asked], atol=1e-12)
        assert shares.nnz < shares.shape[0] * 100
    expected = dense_probabilities(votes, *model.calibration_)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[expected.argmax(axis=1)])
    labels = np.searchsorted(model.classes_, y)
    for pair in [(0.001, 0.5), (0.1, 2.0)]:
        loss = -np.log(dense_probabilities(votes, *pair)[np.arange(900), labels])
        found = log_losses(sparse.csr_array(votes), labels, *pair)
        np.testing.assert_allclose(found, loss, rtol=1e-9)


def test_the_first_of_equal_classes_wins():
    votes = np.array([[0, 0.5, 0.5, 0], [0.4, 0.2, 0, 0.4], [0, 0, 0, 1.0]])
    found = winners(sparse.csr_array(votes))
    assert found.tolist() == votes.argmax(axis=1).tolist() == [1, 0, 3]


@pytest.mark.parametrize("n_classes", [20, 150])
def test_fewer_coordinates_change_no_distance(n_classes, monkeypatch):
    """As many as values, where classes are more: distances, penalty and weights stay."""
    X, y = many(600, n_classes)
    found = []
    for many_classes in (10_000, 8):
        monkeypatch.setattr(supervised, "MANY_CLASSES", many_classes)
        model = SupervisedWeave().fit(X, y)
        cross = SupervisedWeave().fit_transform(X, y)
        apart = ((cross[:50, None] - cross[None, :50]) ** 2).sum(axis=2)
        found.append((model.pairwise_distances(X), apart, model.penalty_, model.transform(X).shape))
    (wide, cross_wide, penalty, shape), (narrow, cross_narrow, same, fewer) = found
    np.testing.assert_allclose(narrow, wide, atol=1e-8)
    assert penalty == same and fewer[1] <= shape[1]
    if n_classes > 100:
        assert fewer[1] < shape[1] / 2
    np.testing.assert_allclose(np.diag(cross_narrow), 0)
    same_fold = np.abs(cross_narrow - cross_wide) < 1e-8  # axes are those of each part of the rows
    assert same_fold.mean() > 0.15


def test_classes_that_would_not_fit_are_refused_before_learning(monkeypatch):
    X, y = many(900, 300)
    monkeypatch.setattr(predictors, "available_memory", lambda: 1_000_000)
    with pytest.raises(MemoryError, match=r"300 classes from .* would take about 0\.0 GB.*'x' has"):
        WeaveClassifier().fit(X, y)
    monkeypatch.setattr(predictors, "available_memory", lambda: None)
    WeaveClassifier().fit(X, y)


@pytest.mark.slow
def test_two_thousand_classes_take_less_than_a_gigabyte():
    """4,000 rows of 2,177 classes: 3.6 GB by tables of rows × classes × members."""
    resource = pytest.importorskip("resource")
    assert resource
    code = """
import resource, warnings
from test_many_classes import many
from tabweave import WeaveClassifier
warnings.simplefilter("ignore")
X, y = many(4000, 2177)
WeaveClassifier().fit(X, y).predict(X)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""
    folder = __file__.rpartition("/")[0]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=True
    )
    assert float(done.stdout) < 1.0
