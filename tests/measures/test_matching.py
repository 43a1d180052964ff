"""Hamming against the count of differing cells."""

import numpy as np

from tabweave import Counts, Table
from tabweave.embed.value_metric import ValueMetric
from tabweave.measures.frequency import hamming


def test_hamming_counts_the_columns_that_differ():
    rows = [["a", "x", None], ["b", "x", None], ["b", "y", "m"], ["a", "x", "m"]]
    want = [[sum(p != q for p, q in zip(r, s, strict=True)) for s in rows] for r in rows]
    np.testing.assert_array_equal(ValueMetric("hamming").fit(rows).pairwise_distances(rows), want)


def test_hamming_of_a_single_value_is_zero():
    (table,) = hamming(Counts.of(Table.of({"a": ["x", "x"]})))
    np.testing.assert_array_equal(table, [[0.0]])


def test_hamming_vectors_are_exact():
    rows = [["a", "x"], ["b", "y"], ["c", "x"], ["c", "z"]]
    metric = ValueMetric("hamming").fit(rows)
    assert metric.total_distortion_ == 0
    vectors = metric.transform(rows)
    squared = ((vectors[:, None] - vectors) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared, metric.pairwise_distances(rows), atol=1e-12)
