"""Measures of the user's own, and what is checked about them."""

import numpy as np
import pytest

from tabweave.embed.value_metric import ValueMetric

ROWS = [["a", "x", None], ["a", "y", "m"], ["b", "x", "m"], ["c", "z", "n"]]
Y = [0, 1, 1, 2]


def test_a_callable_is_a_measure():
    def doubled(counts):
        return [2 * (1 - np.eye(size)) for size in counts.sizes]

    metric = ValueMetric(doubled).fit(ROWS)
    np.testing.assert_allclose(
        metric.pairwise_distances(ROWS),
        2 * ValueMetric("hamming").fit(ROWS).pairwise_distances(ROWS),
    )
    assert metric.measure_.name == "doubled"


def test_a_callable_sees_the_classes():
    seen = []

    def spy(counts):
        seen.append(counts.classes)
        return [np.zeros((size, size)) for size in counts.sizes]

    ValueMetric(spy).fit(ROWS, Y)
    ValueMetric(spy).fit(ROWS)
    assert seen == [(0, 1, 2), None]


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda d: d[:-1], r"the shape \(2, 3\), not \(3, 3\)"),
        (lambda d: np.triu(d), "not symmetric"),
        (lambda d: d + np.eye(3), "a diagonal that is not zero"),
        (lambda d: -d, "negative entries"),
        (lambda d: np.where(d > 0, np.nan, d), "not finite"),
    ],
)
def test_a_callable_is_checked(spoil, fault):
    def own(counts):
        tables = [1 - np.eye(size) for size in counts.sizes]
        return [tables[0], spoil(tables[1]), tables[2]]

    with pytest.raises(ValueError, match=f"measure 'own', column 'x1': its table has.*{fault}"):
        ValueMetric(own).fit(ROWS)


@pytest.mark.parametrize("result", [None, [], [np.zeros((3, 3))]])
def test_a_callable_returns_one_table_per_column(result):
    with pytest.raises(ValueError, match="must return a list of 3 arrays"):
        ValueMetric(lambda counts: result).fit(ROWS)
