from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import davies_bouldin_score

from tabweave.evaluate import (
    davies_bouldin,
    dunn,
    inter_coupling_heterogeneity,
    intra_coupling_heterogeneity,
    relative_distance,
    sd_index,
)

ON_DISTANCES = [relative_distance, dunn, sd_index]


def example(seed=0, n=18):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    points = rng.normal(size=(n, 2)) + 4 * labels[:, None]
    return points, np.linalg.norm(points[:, None] - points, axis=2), labels


def loop_pairs(distances, labels):
    within, between = [], []
    for i, j in combinations(range(len(labels)), 2):
        (within if labels[i] == labels[j] else between).append(distances[i, j])
    return within, between


def test_indices_are_their_definitions():
    _, distances, labels = example()
    within, between = loop_pairs(distances, labels)
    assert relative_distance(distances, labels) == pytest.approx(np.mean(between) / np.mean(within))
    assert dunn(distances, labels) == pytest.approx(min(between) / max(within))
    assert sd_index(distances, labels) == pytest.approx(sum(within))


@pytest.mark.parametrize("seed", range(3))
def test_davies_bouldin_agrees_with_sklearn(seed):
    points, _, labels = example(seed)
    assert davies_bouldin(points, labels) == pytest.approx(davies_bouldin_score(points, labels))


def test_davies_bouldin_with_a_single_point_and_with_equal_centres():
    points = np.array([[0.0], [2.0], [5.0]])
    assert davies_bouldin(points, ["a", "a", "b"]) == pytest.approx(1 / 4)
    assert davies_bouldin([[-1.0], [1.0], [-2.0], [2.0]], [0, 0, 1, 1]) == np.inf


def test_clusters_further_apart_are_better():
    points, _, labels = example()
    apart = points + 10 * labels[:, None]
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    further = np.linalg.norm(apart[:, None] - apart, axis=2)
    assert relative_distance(further, labels) > relative_distance(distances, labels)
    assert dunn(further, labels) > dunn(distances, labels)
    assert davies_bouldin(apart, labels) < davies_bouldin(points, labels)
    assert sd_index(further, labels) == pytest.approx(sd_index(distances, labels))


def test_row_order_and_names_change_nothing():
    points, distances, labels = example()
    order = np.random.default_rng(1).permutation(len(labels))
    names = np.array(["x", "y", "z"], dtype=object)[[2, 0, 1]]
    for index in ON_DISTANCES:
        moved = index(distances[np.ix_(order, order)], names[labels][order])
        assert moved == pytest.approx(index(distances, labels))
    moved = davies_bouldin(points[order], names[labels][order])
    assert moved == pytest.approx(davies_bouldin(points, labels))


def test_coinciding_objects():
    distances = np.array([[0.0, 0, 3], [0, 0, 3], [3, 3, 0]])
    assert relative_distance(distances, [0, 0, 1]) == np.inf
    assert dunn(distances, [0, 0, 1]) == np.inf
    assert sd_index(distances, [0, 0, 1]) == 0
    with pytest.raises(ValueError, match="no structure"):
        dunn(np.zeros((3, 3)), [0, 0, 1])


@pytest.mark.parametrize("index", ON_DISTANCES)
def test_bad_distances(index):
    square = np.ones((3, 3))
    with pytest.raises(ValueError, match=r"labels ask for \(2, 2\)"):
        index(square, [0, 1])
    with pytest.raises(ValueError, match="single cluster 0"):
        index(square, [0, 0, 0])
    with pytest.raises(ValueError, match="single object"):
        index(square, [0, 1, 2])
    with pytest.raises(ValueError, match="symmetric"):
        index(np.arange(9.0).reshape(3, 3), [0, 0, 1])
    with pytest.raises(ValueError, match="symmetric and free of NaN"):
        index(np.full((3, 3), np.nan), [0, 0, 1])


def test_bad_points():
    with pytest.raises(ValueError, match=r"shape \(2, n_dimensions\)"):
        davies_bouldin([0.0, 1.0], [0, 1])
    with pytest.raises(ValueError, match="finite"):
        davies_bouldin([[0.0], [np.nan]], [0, 1])


def test_intra_heterogeneity_is_equation_7_25():
    rng = np.random.default_rng(0)
    counts = [rng.integers(1, 9, size=(n_values, 4)) for n_values in (2, 5, 3)]
    total = 0.0
    for table in counts:
        attribute = 0.0
        for row in table:
            x = np.sqrt(sum((c / row.sum()) ** 2 for c in row))
            attribute += 1 - (1 - x) / (1 - np.sqrt(4 * (1 / 4) ** 2))
        total += attribute / len(table)
    assert intra_coupling_heterogeneity(counts) == pytest.approx(total / 3)


def test_intra_heterogeneity_reaches_the_extremes_of_the_text():
    apart, alike = [[4, 0, 0], [0, 1, 0], [0, 0, 7]], [[2, 2, 2], [5, 5, 5]]
    assert intra_coupling_heterogeneity([apart, apart]) == pytest.approx(1)
    assert intra_coupling_heterogeneity([alike]) == pytest.approx(0, abs=1e-12)
    assert intra_coupling_heterogeneity([[*apart, [0, 0, 0]]]) == pytest.approx(1)  # never occurs


def test_inter_heterogeneity_is_equation_7_27():
    rng = np.random.default_rng(1)
    couplings = [[rng.random((n, n)) for _ in range(n_m)] for n, n_m in ((2, 3), (4, 2))]
    per_attribute = []
    for matrices in couplings:
        n = len(matrices[0])
        squares = sum(
            (matrices[k][i, j] - matrices[m][i, j]) ** 2 / n**2
            for k in range(len(matrices))
            for m in range(len(matrices))
            for i in range(n)
            for j in range(n)
        )
        per_attribute.append(np.sqrt(squares))
    assert inter_coupling_heterogeneity(couplings) == pytest.approx(np.mean(per_attribute))
    same = [[couplings[0][0]] * 3]
    assert inter_coupling_heterogeneity(same) == pytest.approx(0, abs=1e-12)


def test_bad_couplings():
    with pytest.raises(ValueError, match="attribute 1 must be a table"):
        intra_coupling_heterogeneity([[[1, 2]], [[1], [2]]])
    with pytest.raises(ValueError, match="attribute 0"):
        intra_coupling_heterogeneity([[[1, -2]]])
    with pytest.raises(ValueError, match="no attribute"):
        intra_coupling_heterogeneity([])
    with pytest.raises(ValueError, match="attribute 0 must be square"):
        inter_coupling_heterogeneity([[np.ones((2, 2)), np.ones((3, 3))]])
    with pytest.raises(ValueError, match="attribute 0 must be square"):
        inter_coupling_heterogeneity([[np.ones((2, 3))]])
    with pytest.raises(ValueError, match="no attribute"):
        inter_coupling_heterogeneity([])
