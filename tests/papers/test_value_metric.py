"""Measures as published: 1 − S written out once more, and what vectors make of it."""

import numpy as np
import pytest

import tabweave
from tabweave import KModes, ValueMetric, WeightedKNN, papers

ROWS = [["a", "x"], ["a", "y"], ["b", "y"], ["a", "y"], ["c", "y"]]
N = len(ROWS)


def count(a, v):
    return sum(row[a] == v for row in ROWS)


def pairs(a, v):
    return count(a, v) * (count(a, v) - 1) / (N * (N - 1))


def goodall1(a, v):
    return 1 - sum(pairs(a, q) for q in {r[a] for r in ROWS} if count(a, q) <= count(a, v))


def goodall2(a, v):
    return 1 - sum(pairs(a, q) for q in {r[a] for r in ROWS} if count(a, q) >= count(a, v))


def gambaryan(a, v):
    p = count(a, v) / N
    return -sum(x * np.log2(x) for x in (p, 1 - p) if x)


MATCHES = {  # what a match on v is worth; a mismatch is worth nothing
    "rough": lambda a, v: 1 / count(a, v),
    "goodall1": goodall1,
    "goodall2": goodall2,
    "goodall3": lambda a, v: 1 - pairs(a, v),
    "goodall4": pairs,
    "gambaryan": gambaryan,
}


@pytest.mark.parametrize("name", MATCHES)
def test_matches_below_one_leave_a_distance(name):
    worth = MATCHES[name]
    slow = [
        [sum(1 - (worth(a, v[a]) if v[a] == w[a] else 0) for a in (0, 1)) for w in ROWS]
        for v in ROWS
    ]
    metric = papers.ValueMetric(name).fit(ROWS)
    np.testing.assert_allclose(metric.pairwise_distances(ROWS), slow)
    shares = metric.explain(ROWS[0], ROWS[0])
    assert sum(shares.values()) == pytest.approx(slow[0][0]) and slow[0][0] > 0


def test_smirnov_falls_below_zero():
    def similarity(a, v, w):
        odds = {q: count(a, q) / (N - count(a, q)) for q in {r[a] for r in ROWS}}
        others = sum(o for q, o in odds.items() if q not in (v, w))
        return 2 + (N - count(a, v)) / count(a, v) + others if v == w else others

    slow = [[sum(1 - similarity(a, v[a], w[a]) for a in (0, 1)) for w in ROWS] for v in ROWS]
    found = papers.ValueMetric("smirnov").fit(ROWS).pairwise_distances(ROWS)
    np.testing.assert_allclose(found, slow)
    assert found.min() < 0


@pytest.mark.parametrize("name", ["hamming", "of", "dilca", "cos", "lin"])
def test_what_was_published_as_a_distance_stays(name):
    ours, theirs = (
        cls(name).fit(ROWS).pairwise_distances(ROWS) for cls in (ValueMetric, papers.ValueMetric)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_vectors_are_those_without_the_diagonal(tmp_path):
    metric = papers.ValueMetric("rough").fit(ROWS)
    vectors = metric.transform(ROWS)
    found = ((vectors[:, None] - vectors) ** 2).sum(axis=-1)
    differ = [[sum(x != y for x, y in zip(v, w, strict=True)) for w in ROWS] for v in ROWS]
    np.testing.assert_allclose(found, differ, atol=1e-12)
    metric.save(tmp_path / "model")
    again = tabweave.load(tmp_path / "model")
    assert type(again) is papers.ValueMetric
    np.testing.assert_array_equal(again.transform(ROWS), vectors)
    np.testing.assert_array_equal(again.pairwise_distances(ROWS), metric.pairwise_distances(ROWS))


def test_tasks_take_it():
    metric = papers.ValueMetric("rough")
    assert len(KModes(2, metric=metric, random_state=0).fit(ROWS).labels_) == N
    assert len(WeightedKNN(1, metric=metric).fit(ROWS, list("pqqpp")).predict(ROWS)) == N
