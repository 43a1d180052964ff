from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import silhouette_score

import tabweave
from tabweave import papers

ON_DISTANCES = [papers.relative_distance, papers.dunn, papers.sd_index]


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
    assert papers.relative_distance(distances, labels) == pytest.approx(
        np.mean(between) / np.mean(within)
    )
    assert papers.dunn(distances, labels) == pytest.approx(min(between) / max(within))
    assert papers.sd_index(distances, labels) == pytest.approx(sum(within))


def test_clusters_further_apart_are_better():
    points, _, labels = example()
    apart = points + 10 * labels[:, None]
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    further = np.linalg.norm(apart[:, None] - apart, axis=2)
    assert papers.relative_distance(further, labels) > papers.relative_distance(distances, labels)
    assert papers.dunn(further, labels) > papers.dunn(distances, labels)
    assert papers.sd_index(further, labels) == pytest.approx(papers.sd_index(distances, labels))


def test_row_order_and_names_change_nothing():
    _, distances, labels = example()
    order = np.random.default_rng(1).permutation(len(labels))
    names = np.array(["x", "y", "z"], dtype=object)[[2, 0, 1]]
    for index in ON_DISTANCES:
        moved = index(distances[np.ix_(order, order)], names[labels][order])
        assert moved == pytest.approx(index(distances, labels))


def test_coinciding_objects():
    distances = np.array([[0.0, 0, 3], [0, 0, 3], [3, 3, 0]])
    assert papers.relative_distance(distances, [0, 0, 1]) == np.inf
    assert papers.dunn(distances, [0, 0, 1]) == np.inf
    assert papers.sd_index(distances, [0, 0, 1]) == 0
    with pytest.raises(ValueError, match="no structure"):
        papers.dunn(np.zeros((3, 3)), [0, 0, 1])


@pytest.mark.parametrize("index", ON_DISTANCES)
def test_bad_distances(index):
    square = np.ones((3, 3))
    with pytest.raises(ValueError, match=r"expected shape \(2, 2\), got \(3, 3\)"):
        index(square, [0, 1])
    with pytest.raises(ValueError, match="expected at least two clusters, got the single 0"):
        index(square, [0, 0, 0])
    with pytest.raises(ValueError, match="single object"):
        index(square, [0, 1, 2])
    with pytest.raises(ValueError, match="symmetric"):
        index(np.arange(9.0).reshape(3, 3), [0, 0, 1])
    with pytest.raises(ValueError, match="expected symmetric distances without NaN"):
        index(np.full((3, 3), np.nan), [0, 0, 1])


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
    assert papers.intra_coupling_heterogeneity(counts) == pytest.approx(total / 3)


def test_intra_heterogeneity_reaches_the_extremes_of_the_text():
    apart, alike = [[4, 0, 0], [0, 1, 0], [0, 0, 7]], [[2, 2, 2], [5, 5, 5]]
    assert papers.intra_coupling_heterogeneity([apart, apart]) == pytest.approx(1)
    assert papers.intra_coupling_heterogeneity([alike]) == pytest.approx(0, abs=1e-12)
    assert papers.intra_coupling_heterogeneity([[*apart, [0, 0, 0]]]) == pytest.approx(
        1
    )  # never occurs


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
    assert papers.inter_coupling_heterogeneity(couplings) == pytest.approx(np.mean(per_attribute))
    same = [[couplings[0][0]] * 3]
    assert papers.inter_coupling_heterogeneity(same) == pytest.approx(0, abs=1e-12)


def test_bad_couplings():
    with pytest.raises(ValueError, match="attribute 1: expected values × at least 2 clusters"):
        papers.intra_coupling_heterogeneity([[[1, 2]], [[1], [2]]])
    with pytest.raises(ValueError, match="attribute 0"):
        papers.intra_coupling_heterogeneity([[[1, -2]]])
    with pytest.raises(ValueError, match="no attribute"):
        papers.intra_coupling_heterogeneity([])
    with pytest.raises(ValueError, match="attribute 0: expected square matrices"):
        papers.inter_coupling_heterogeneity([[np.ones((2, 2)), np.ones((3, 3))]])
    with pytest.raises(ValueError, match="attribute 0: expected square matrices"):
        papers.inter_coupling_heterogeneity([[np.ones((2, 3))]])
    with pytest.raises(ValueError, match="no attribute"):
        papers.inter_coupling_heterogeneity([])


# -- the (ε, γ)-curve -------------------------------------------------------------------------


def similarities(seed=0, n=17):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    similarity = rng.normal(size=(n, n)) + (y[:, None] == y)
    return similarity, y


def loop_margins(similarity, y, include_self):
    margins = []
    for i in range(len(y)):
        same = [
            similarity[i, j] for j in range(len(y)) if y[j] == y[i] and (include_self or j != i)
        ]
        other = [similarity[i, j] for j in range(len(y)) if y[j] != y[i]]
        margins.append(np.mean(same) - np.mean(other))
    return np.array(margins)


@pytest.mark.parametrize("include_self", [False, True])
def test_margins_are_the_definition(include_self):
    similarity, y = similarities()
    margins = papers.class_margins(similarity, y, include_self=include_self)
    np.testing.assert_allclose(margins, loop_margins(similarity, y, include_self))


def test_gamma_is_the_largest_margin_that_enough_objects_reach():
    similarity, y = similarities()
    margins = loop_margins(similarity, y, False)
    epsilon, gamma = papers.epsilon_gamma(similarity, y)
    np.testing.assert_allclose(epsilon, np.arange(17) / 17)
    for e, g in zip(epsilon, gamma, strict=True):
        assert (margins >= g - 1e-12).mean() >= 1 - e - 1e-12
        assert (margins >= g + 1e-9).mean() < 1 - e - 1e-12  # and no larger margin does
    assert (np.diff(gamma) >= 0).all()


def test_chosen_shares_lie_on_the_curve():
    similarity, y = similarities(n=100)
    _, gamma = papers.epsilon_gamma(similarity, y)
    shares, chosen = papers.epsilon_gamma(similarity, y, epsilon=[0, 0.29, 0.295, 0.99])
    np.testing.assert_array_equal(chosen, gamma[[0, 29, 29, 99]])
    np.testing.assert_array_equal(shares, [0, 0.29, 0.295, 0.99])


def test_only_the_nonnegative_part():
    similarity, y = similarities()
    similarity = similarity - 0.8 * (y[:, None] == y)
    epsilon, gamma = papers.epsilon_gamma(similarity, y)
    kept, positive = papers.epsilon_gamma(similarity, y, nonnegative=True)
    assert 0 < positive.size < gamma.size
    np.testing.assert_array_equal(positive, gamma[gamma >= 0])
    np.testing.assert_array_equal(kept, epsilon[gamma >= 0])


def test_row_order_and_names_do_not_change_the_curve():
    similarity, y = similarities()
    order = np.random.default_rng(1).permutation(len(y))
    names = np.array(["u", "v", "w"])
    _, gamma = papers.epsilon_gamma(similarity, y)
    _, again = papers.epsilon_gamma(similarity[np.ix_(order, order)], names[y][order])
    np.testing.assert_allclose(again, gamma)


def test_a_better_similarity_has_the_higher_curve():
    similarity, y = similarities()
    better = similarity + (y[:, None] == y)
    np.testing.assert_allclose(
        papers.epsilon_gamma(better, y)[1], papers.epsilon_gamma(similarity, y)[1] + 1
    )


def test_objects_alone_in_their_class_have_no_margin():
    similarity = np.eye(3)
    assert np.isnan(papers.class_margins(similarity, ["a", "a", "b"])).tolist() == [
        False,
        False,
        True,
    ]
    epsilon, _ = papers.epsilon_gamma(similarity, ["a", "a", "b"])
    assert epsilon.tolist() == [0, 0.5]
    assert papers.class_margins(similarity, ["a", "a", "b"], include_self=True)[2] == 1
    with pytest.raises(ValueError, match="alone in its class"):
        papers.epsilon_gamma(np.eye(2), ["a", "b"])


def test_bad_similarities():
    with pytest.raises(ValueError, match="expected at least two classes in y, got the single 'a'"):
        papers.epsilon_gamma(np.eye(2), ["a", "a"])
    with pytest.raises(ValueError, match=r"expected shape \(3, 3\), got \(2, 2\)"):
        papers.epsilon_gamma(np.eye(2), ["a", "a", "b"])
    with pytest.raises(ValueError, match="NaN"):
        papers.epsilon_gamma(np.full((3, 3), np.nan), ["a", "a", "b"])
    with pytest.raises(ValueError, match=r"shares in \[0, 1\)"):
        papers.epsilon_gamma(np.eye(3), ["a", "a", "b"], epsilon=[1.0])


def test_as_published_heterogeneity_is_a_sum_over_values():
    counts = [[[3, 0], [0, 5], [1, 0]], [[2, 2], [2, 2]]]
    assert papers.intra_coupling_heterogeneity(counts) == pytest.approx((1 + 0) / 2)
    assert papers.intra_coupling_heterogeneity(counts, published=True) == pytest.approx((3 + 0) / 2)


def test_data_factors_of_a_small_table():
    X = [["a", "x", None], ["b", "x", "u"], ["c", "x", float("nan")], ["a", "x", "w"]]
    found = papers.data_factors(X, [1, 1, 1, 0])
    assert found == {"n_o": 4, "n_a": 3, "n_c": 2, "n_av": 7 / 3, "n_mv": 3, "r_CI": 3.0}
    with pytest.raises(ValueError, match="expected 4 classes in y"):
        papers.data_factors(X, [1, 0])
    with pytest.raises(ValueError, match="expected X of shape"):
        papers.data_factors([], [])


def test_all_ways_to_say_missing_are_one_value():
    rows = np.array([["a", pd.NA], ["b", None], ["a", float("nan")]], object)
    assert papers.data_factors(rows, ["p", "q", "p"])["n_av"] == 1.5


def test_the_bound_of_theorem_6_2_follows_from_its_proof():
    """Eq. (6.34) with the complexity of (6.39) and kernels of 1 at most."""
    rng = np.random.default_rng(0)
    for n, k in rng.integers(10, 5000, size=(20, 2)):
        sparsity, delta = rng.uniform(0.001, 1), rng.uniform(0.01, 0.5)
        R = 4 * np.sqrt(np.e * np.log(n * k) / n)
        expected = 4 * R / np.sqrt(sparsity) + 4 * (3 + 2 / np.sqrt(sparsity)) / np.sqrt(n)
        expected += 2 * (1 + 1 / np.sqrt(sparsity)) * np.sqrt(2 * np.log(1 / delta) / n)
        assert papers.helic_bound(n, k, sparsity, delta=delta) == pytest.approx(expected)


def test_helic_stays_below_the_bound_of_theorem_6_2():
    data = tabweave.datasets.monks(3)
    train = np.random.default_rng(0).random(data.n_rows) < 0.5
    model = papers.HELIC(random_state=0).fit(data.X[train], data.y[train])

    def loss(rows):
        square = model.pairwise_distances(data.X[rows]) ** 2
        relation = np.where(data.y[rows][:, None] == data.y[rows], 1, -1)
        return np.maximum(1 + relation * (square - model.threshold_), 0).mean()

    n_kernels = sum(map(len, model.weights_.values()))
    bound = papers.helic_bound(int(train.sum()), n_kernels, 1 / n_kernels)
    assert loss(~train) - loss(train) < bound
    assert loss(~train) < 5 < 50 < bound  # which so says nothing


def test_the_bound_of_gbc_holds_where_losses_are_below_1_alone():
    """Theorem 1: sources weighted as its proof does, the loss being linear in the weights."""
    rng = np.random.default_rng(0)
    for first, second in rng.uniform(0, 1, size=(50, 2)):
        weighted = (second * first + first * second) / (first + second)
        assert weighted <= papers.gbc_bound((first, second)) + 1e-12
    assert (2 * 2 + 2 * 2) / 4 > papers.gbc_bound((2.0, 2.0))  # ε = 2: an excess of 2, not √2
    assert papers.gbc_bound((0.0, 0.0), best=0.1, bayes=0.2) == pytest.approx(0.3)


def test_the_bound_of_gbc_with_labels_falls_to_that_without():
    without = papers.gbc_bound((0.1, 0.3))
    bounds = [papers.gbc_bound((0.1, 0.3), n_labeled=n) for n in (10, 1000, 10**9)]
    assert bounds[0] > bounds[1] > bounds[2] == pytest.approx(without, abs=1e-3)
    luck = (2 + 3 * np.sqrt(np.log(2 / 0.05) / 2)) / np.sqrt(10)
    assert bounds[0] == pytest.approx(without + luck)
    assert papers.gbc_bound((0.1, 0.3), complexity=0.2) == pytest.approx(without + 0.4)


@pytest.mark.parametrize("layout", ["mds", "tsne"])
def test_maps_keep_groups_apart(layout):
    rows = np.repeat([["a", "x", "m"], ["b", "y", "n"], ["c", "z", "o"]], 10, axis=0)
    rows[::10, 2] = "p"
    points = papers.distance_map(tabweave.OneHot(), rows, layout=layout, random_state=0)
    assert points.shape == (30, 2)
    assert silhouette_score(points, np.repeat([0, 1, 2], 10)) > 0.5


def test_mds_keeps_distances_that_fit_in_two_dimensions():
    rows = [["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]]
    points = papers.distance_map(tabweave.OneHot(), rows, random_state=0)
    expected = tabweave.OneHot().fit(rows).pairwise_distances(rows)
    np.testing.assert_allclose(
        np.linalg.norm(points[:, None] - points, axis=2), expected, atol=0.01
    )
    with pytest.raises(ValueError, match='expected layout "mds" or "tsne"'):
        papers.distance_map(tabweave.OneHot(), rows, layout="umap")
