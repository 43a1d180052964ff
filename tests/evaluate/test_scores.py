from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import metrics

from tabweave import evaluate

CLUSTER_SCORES = [
    evaluate.clustering_f,
    evaluate.clustering_accuracy,
]
ALL_SCORES = [*CLUSTER_SCORES, evaluate.macro_f]


def test_class_rates_are_scikit_learn_s():
    """Specificity is the recall of "not this class"."""
    for seed in range(5):
        y, predicted = random_labels(seed, 3, 4)
        labels = np.unique(y)
        precision, recall, _, _ = metrics.precision_recall_fscore_support(
            y, predicted, labels=labels, zero_division=0
        )
        others = [metrics.recall_score(y != c, predicted != c) for c in labels]
        expected = [precision.mean(), recall.mean(), np.mean(others)]
        np.testing.assert_allclose(evaluate.class_rates(y, predicted), expected)
    assert evaluate.class_rates(["a", "a"], ["a", "b"]) == (1.0, 0.5, 1.0)


def random_labels(seed, n_classes, n_clusters, n=40):
    rng = np.random.default_rng(seed)
    return rng.integers(n_classes, size=n), rng.integers(n_clusters, size=n)


def brute_force(y, labels):
    """Accuracy and macro F of the best one-to-one naming, tried one after another."""
    classes, clusters = sorted(set(y)), sorted(set(labels))
    padded = classes + [None] * max(0, len(clusters) - len(classes))
    best = (-1.0, -1.0)
    for naming in permutations(padded, len(clusters)):
        name = dict(zip(clusters, naming, strict=True))
        predicted = [name[c] for c in labels]
        accuracy = sum(p == t for p, t in zip(predicted, y, strict=True)) / len(y)
        fs = []
        for c in classes:
            hit = sum(p == c == t for p, t in zip(predicted, y, strict=True))
            precision = hit / max(1, predicted.count(c))
            recall = hit / list(y).count(c)
            fs.append(2 * precision * recall / (precision + recall) if hit else 0.0)
        best = max(best, (round(accuracy, 12), np.mean(fs)))
    return best


@pytest.mark.parametrize(("n_classes", "n_clusters"), [(3, 3), (4, 4), (2, 5), (5, 2), (3, 1)])
@pytest.mark.parametrize("seed", range(4))
def test_matching_is_the_best_of_all_namings(seed, n_classes, n_clusters):
    # 12 objects make equal overlaps common, so the rule for ties is tried as well.
    y, labels = random_labels(seed, n_classes, n_clusters, n=12)
    accuracy, f = brute_force(y.tolist(), labels.tolist())
    assert evaluate.clustering_accuracy(y, labels) == pytest.approx(accuracy)
    assert evaluate.clustering_f(y, labels) == pytest.approx(f)


def test_f_decides_between_matchings_of_equal_overlap():
    # Overlaps [[1, 3], [0, 2]]: both matchings hold 3 objects, with F (2/5 + 4/7) / 2 or 1/3.
    y, labels = np.array(list("aaaabb")), np.array([0, 1, 1, 1, 1, 1])
    assert evaluate.clustering_f(y, labels) == pytest.approx(17 / 35)
    assert evaluate.clustering_f(y, 1 - labels) == pytest.approx(17 / 35)
    assert evaluate.matched_labels(y, labels).tolist() == list("abbbbb")


@pytest.mark.parametrize("score", CLUSTER_SCORES)
@pytest.mark.parametrize("seed", range(5))
def test_renaming_and_reordering_change_nothing(score, seed):
    y, labels = random_labels(seed, 3, 4, n=15)
    expected = score(y, labels)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    class_names = np.array(["cat", "dog", "cow"], dtype=object)[rng.permutation(3)]
    cluster_names = np.array([10, -3, 7, 0])[rng.permutation(4)]
    assert score(class_names[y][order], cluster_names[labels][order]) == pytest.approx(expected)
    assert 0 < abs(expected) < 1


def test_trivial_partitions():
    constant, single = [0] * 4, [0, 1, 2, 3]
    assert evaluate.clustering_f(constant, constant) == evaluate.clustering_f(single, single) == 1
    assert evaluate.clustering_f(["a", "b"], [0, 0]) == pytest.approx((2 / 3) / 2)


@pytest.mark.parametrize("seed", range(3))
def test_macro_f_agrees_with_sklearn_over_the_true_classes(seed):
    y, predicted = random_labels(seed, 3, 3)
    assert evaluate.macro_f(y, predicted) == pytest.approx(
        metrics.f1_score(y, predicted, average="macro")
    )
    predicted[:5] = 9  # no true class: sklearn is told to average over the true ones only
    expected = metrics.f1_score(y, predicted, average="macro", labels=[0, 1, 2])
    assert evaluate.macro_f(y, predicted) == pytest.approx(expected)


def test_macro_f_of_a_class_never_predicted_is_zero():
    assert evaluate.macro_f(["a", "b"], ["a", "a"]) == pytest.approx((2 / 3) / 2)


def test_macro_f_after_matching_is_clustering_f():
    y, labels = random_labels(1, 3, 3)
    assert evaluate.macro_f(y, evaluate.matched_labels(y, labels)) == pytest.approx(
        evaluate.clustering_f(y, labels)
    )


def test_matched_labels_keep_the_type_of_the_classes():
    y = np.array([3, 3, 8, 8])
    matched = evaluate.matched_labels(y, list("ppqq"))
    assert matched.dtype == y.dtype
    assert matched.tolist() == [3, 3, 8, 8]


def test_clusters_beyond_the_classes_keep_no_class():
    matched = evaluate.matched_labels(np.array(["x", "x", "x", "y"]), [0, 0, 1, 2])
    assert matched.tolist() == ["x", "x", None, "y"]


def test_fewer_clusters_than_classes():
    assert evaluate.matched_labels(["x", "y", "y", "z"], [0, 0, 0, 0]).tolist() == ["y"] * 4
    assert evaluate.clustering_accuracy(["x", "y", "y", "z"], [0, 0, 0, 0]) == 0.5


@pytest.mark.parametrize("container", [list, np.array, pd.Series, pl.Series, pd.Categorical])
def test_any_container_of_labels(container):
    y = container(["a", "a", "b", "b", "c"])
    assert evaluate.clustering_f(y, container([2, 2, 1, 1, 1])) == pytest.approx((1 + 0.8) / 3)
    assert evaluate.macro_f(y, container(["a", "a", "b", "b", "c"])) == 1


def test_lists_of_mixed_types_are_not_turned_into_text():
    assert evaluate.clustering_accuracy([1, "1", 1, "1"], ["p", "q", "p", "q"]) == 1
    assert evaluate.macro_f([1, "1"], ["1", "1"]) == pytest.approx((2 / 3) / 2)


@pytest.mark.parametrize("score", [*ALL_SCORES, evaluate.matched_labels])
class TestBadInput:
    def test_lengths(self, score):
        with pytest.raises(ValueError, match=r"same order, got 3 in y_true and 2 in"):
            score(["a", "b", "c"], ["a", "b"])

    def test_empty(self, score):
        with pytest.raises(ValueError, match="y_true: expected at least one label"):
            score([], [])

    @pytest.mark.parametrize(
        "bad",
        [
            ["a", None],
            np.array([1.0, np.nan]),
            pd.Series(["a", pd.NA]),
            pd.Series([1, pd.NA], dtype="Int64"),
            np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        ],
    )
    def test_missing(self, score, bad):
        with pytest.raises(
            ValueError, match=r"expected a label for every object, got .* for object 1"
        ):
            score(bad, ["a", "b"])
        with pytest.raises(
            ValueError, match=r"expected a label for every object, got .* for object 1"
        ):
            score(["a", "b"], bad)

    @pytest.mark.parametrize("bad", [np.zeros((2, 1)), [["a"], ["b"]]])
    def test_two_dimensions(self, score, bad):
        with pytest.raises(ValueError, match=r"one label per object"):
            score(bad, ["a", "b"])


def test_text_and_numbers_are_never_compared():
    with pytest.raises(ValueError, match="text never equals a number"):
        evaluate.macro_f(np.array(["0", "1"]), np.array([0, 1]))
