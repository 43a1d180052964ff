"""Frequency measures against loops over rows, written from the published definitions."""

from math import log

import numpy as np
import pytest

from tabweave import Counts, Schema, Table
from tabweave.embed.value_metric import ValueMetric
from tabweave.measures import frequency


def random_column(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 25)), int(rng.integers(1, 6))
    return [["p", "q", None, 7, "r", "s"][i] for i in (k * rng.random(n) ** 2).astype(int)]


def f(column, v):
    """How many rows have value v."""
    return sum(1 for cell in column if cell == v)


def p2(column, v):
    n = len(column)
    return f(column, v) * (f(column, v) - 1) / (n * (n - 1)) if n > 1 else 1.0


def eskin(column, v, w):
    k = len(set(column))
    return 1.0 if v == w else k * k / (k * k + 2)


def iof(column, v, w):
    return 1.0 if v == w else 1 / (1 + log(f(column, v)) * log(f(column, w)))


def of(column, v, w):
    n = len(column)
    return 1.0 if v == w else 1 / (1 + log(n / f(column, v)) * log(n / f(column, w)))


def goodall1(column, v, w):
    rarer = [q for q in set(column) if f(column, q) <= f(column, v)]
    return 1 - sum(p2(column, q) for q in rarer) if v == w else 0.0


def goodall2(column, v, w):
    commoner = [q for q in set(column) if f(column, q) >= f(column, v)]
    return 1 - sum(p2(column, q) for q in commoner) if v == w else 0.0


def goodall3(column, v, w):
    return 1 - p2(column, v) if v == w else 0.0


def goodall4(column, v, w):
    return p2(column, v) if v == w else 0.0


def rough(column, v, w):
    return 1 / f(column, v) if v == w else 0.0


def smirnov(column, v, w):
    n = len(column)
    others = sum(f(column, q) / (n - f(column, q)) for q in set(column) if q not in (v, w))
    return 2 + (n - f(column, v)) / f(column, v) + others if v == w else others


REFERENCES = [
    eskin, iof, of, goodall1, goodall2, goodall3, goodall4, rough, smirnov,
]  # fmt: skip
COMPLEMENTS = {"eskin", "iof", "of"}


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("reference", REFERENCES, ids=lambda r: r.__name__)
def test_matches_the_published_similarity(reference, seed):
    column = random_column(seed)
    counts = Counts.of(Table.of({"a": column}))
    values = counts.labels[0]
    want = np.array([[reference(column, v, w) for w in values] for v in values])
    name = reference.__name__
    (similarity,) = getattr(frequency, f"{name}_similarity")(counts)
    np.testing.assert_allclose(similarity, want, rtol=1e-10, atol=1e-12)
    (distance,) = getattr(frequency, name)(counts)
    worth = np.diag(want)
    expected = 1 - want if name in COMPLEMENTS else (worth[:, None] + worth) / 2 - want
    np.testing.assert_allclose(distance, expected, rtol=1e-10, atol=1e-10)


def test_of_by_hand():
    """Eq. (2.4), natural logarithm: 8 rows, frequencies 4, 2 and 2."""
    counts = Counts.of(Table.of({"a": list("xxxxyyzz")}))
    (similarity,) = frequency.of_similarity(counts)
    assert similarity[0, 1] == pytest.approx(1 / (1 + log(2) * log(4)))
    assert similarity[1, 2] == pytest.approx(1 / (1 + log(4) ** 2))


def test_smirnov_by_its_closed_form():
    """The sum over other values cancels, so nothing is negative."""
    counts = Counts.of(Table.of({"a": list("xxxxyyz")}))
    f = counts.value_counts
    arm = 0.5 + counts.n / f / 2 + f / (counts.n - f) / 2
    want = arm[:, None] + arm
    np.fill_diagonal(want, 0)
    np.testing.assert_allclose(frequency.smirnov(counts)[0], want)


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda r: r.__name__)
def test_weights_below_one_stay_finite(reference):
    table = Table.of({"a": list("xyz"), "b": list("xxx")})
    for weight in ([0.2, 0.3, 0.1], [0.5, 2.5, 0.25], [1, 1e-20, 1e-18]):
        counts = Counts.of(table, sample_weight=np.array(weight))
        for d in getattr(frequency, reference.__name__)(counts):
            assert np.isfinite(d).all()
            assert (d >= 0).all()


def test_hamming_counts_the_columns_that_differ():
    rows = [["a", "x", None], ["b", "x", None], ["b", "y", "m"], ["a", "x", "m"]]
    want = [[sum(p != q for p, q in zip(r, s, strict=True)) for s in rows] for r in rows]
    metric = ValueMetric("hamming", schema=Schema(missing="value")).fit(rows)
    np.testing.assert_array_equal(metric.pairwise_distances(rows), want)


def test_missing_cells_differ_as_two_random_values_do():
    rows = [["a"], ["a"], ["b"], [None], [None]]
    metric = ValueMetric("hamming").fit(rows)
    want = [[0, 0, 1, 1 / 3, 1 / 3], [0, 0, 1, 1 / 3, 1 / 3], [1, 1, 0, 2 / 3, 2 / 3]]
    want += [[1 / 3, 1 / 3, 2 / 3, 0, 4 / 9], [1 / 3, 1 / 3, 2 / 3, 4 / 9, 0]]
    np.testing.assert_allclose(metric.pairwise_distances(rows), want)
    again = metric.pairwise_distances(rows, [*rows])  # other rows
    np.testing.assert_allclose(again, want + np.diag([0, 0, 0, 4 / 9, 4 / 9]))


def test_hamming_of_a_single_value_is_zero():
    (table,) = frequency.hamming(Counts.of(Table.of({"a": ["x", "x"]})))
    np.testing.assert_array_equal(table, [[0.0]])


def test_hamming_vectors_are_exact():
    rows = [["a", "x"], ["b", "y"], ["c", "x"], ["c", "z"]]
    metric = ValueMetric("hamming").fit(rows)
    assert metric.total_distortion_ == 0
    vectors = metric.transform(rows)
    squared = ((vectors[:, None] - vectors) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared, metric.pairwise_distances(rows), atol=1e-12)


# entropies log 2, log 2 and 0.562: the first two columns contribute more than the mean
GROUPED = [["x", "p", "u"], ["x", "q", "u"], ["y", "p", "u"], ["y", "q", "w"]]


def test_akusok_worked_by_hand():
    found = ValueMetric("akusok").fit(GROUPED).pairwise_distances(GROUPED)
    want = [[0, 2, 2, 6], [2, 0, 3, 5], [2, 3, 0, 5], [6, 5, 5, 0]]  # sixths: 1/3 + 1, 0 + 1, 1/3
    np.testing.assert_allclose(found, np.array(want) / 6, atol=1e-15)
    assert (np.diagonal(found) == 0).all()


def test_akusok_takes_groups_and_holds_an_unknown_value_for_another():
    counts = Counts.of(Table.of(dict(zip("abc", zip(*GROUPED, strict=True), strict=True))))
    codes = [np.array(c) for c in ([0, 1], [0, 1], [0, 2])]  # 2 is one past the values of c
    found = frequency.akusok(counts, codes, codes, groups=[[0, 1, 2]])
    np.testing.assert_allclose(found, [[0, 1], [1, 0]])
    half = frequency.akusok(counts, codes, [np.array([c[0]]) for c in codes], groups=[[0], [1, 2]])
    np.testing.assert_allclose(half, [[0], [1]])


def test_cheung_weighs_columns_by_entropy_for_each_value():
    entropy = np.array([log(2), log(2), 0.75 * log(4 / 3) + 0.25 * log(4)])
    weight = entropy / 2 / (entropy / 2).sum()
    metric = ValueMetric("cheung").fit(GROUPED)
    np.testing.assert_allclose(metric.pairwise_distances(GROUPED)[0, 3], 1)
    np.testing.assert_allclose(metric.pairwise_distances(GROUPED)[0, 1], weight[1])
    three = frequency.entropy_weights(Counts.of(Table.of({"a": list("xyz"), "b": list("ppq")})))
    b = log(3) - 2 / 3 * log(2)
    np.testing.assert_allclose(three[0], (log(3) / 3) / (log(3) / 3 + b / 2))


def test_columns_that_do_not_vary_weigh_the_same():
    counts = Counts.of(Table.of({"a": ["x", "x"], "b": ["y", "y"]}))
    np.testing.assert_array_equal(frequency.entropy_weights(counts), [0.5, 0.5])


@pytest.mark.parametrize("rows", ["uv", "uu", "uuv", "uuvvvw", "u"])
def test_shares_of_pairs_are_counted_by_hand(rows):
    """The chance that two different rows both have a value; of one row, that of two draws."""
    found = frequency._pair_shares(Counts.of(Table.of({"a": list(rows)})))[0]
    pairs = [(p, q) for i, p in enumerate(rows) for j, q in enumerate(rows) if i != j] or [rows * 2]
    wanted = [sum(p == q == v for p, q in pairs) / len(pairs) for v in sorted(set(rows))]
    np.testing.assert_allclose(found, wanted)


def test_shares_of_pairs_of_less_than_one_row():
    counts = Counts.of(Table.of({"a": ["u", "v"]}), sample_weight=[0.1, 0.3])
    np.testing.assert_allclose(frequency._pair_shares(counts)[0], [1 / 16, 9 / 16])


def test_weights_of_columns_are_entropies_a_value():
    from scipy.stats import entropy

    rows = {"a": list("uuvvww"), "b": list("xxxxxy"), "c": list("zzzzzz")}
    found = frequency.entropy_weights(Counts.of(Table.of(rows)))
    worth = np.array([entropy([2, 2, 2]) / 3, entropy([5, 1]) / 2, 0])
    np.testing.assert_allclose(found, worth / worth.sum())
    flat = frequency.entropy_weights(Counts.of(Table.of({"c": list("zz"), "d": list("yy")})))
    np.testing.assert_allclose(flat, [0.5, 0.5])
