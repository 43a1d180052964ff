"""The clusterers of the literature: their formulas by hand, and drift that is detected."""

import numpy as np
import pytest
from scipy.special import xlogy
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import rbf_kernel

from tabweave import CKML
from tabweave.cluster import KModes
from tabweave.evaluate import clustering_f
from tabweave.papers import CCDSDC, CCTED, DCD, KernelKMeans
from tabweave.papers.clusterers import importance, uncertainty, window_difference

from ..cluster.conftest import groups

BASELINES = [CCDSDC, CCTED, DCD]


def test_importance_by_hand():
    profiles, sizes = np.array([[4.0, 0, 2], [0, 3, 3]]), np.array([4.0, 3])
    found = importance(profiles, sizes)
    p = np.array([2 / 5, 3 / 5])
    shared = 1 + xlogy(p, p).sum() / np.log(2)
    np.testing.assert_allclose(found, [[1, 0, 0.5 * shared], [0, 1, 1 * shared]])


def test_window_difference_is_the_mean_of_rough_memberships():
    rng = np.random.default_rng(0)
    one, two = rng.integers(3, size=(40, 2)), rng.integers(1, 4, size=(40, 2))
    both = np.vstack([one, two])
    terms = []
    for a in range(2):
        for x in both[:, a]:
            members = [(one[:, a] == x).sum(), (two[:, a] == x).sum()]
            terms.append(abs(members[0] - members[1]) / sum(members))
    shifted = [np.bincount((part + np.array([0, 4])).ravel(), minlength=8) for part in (one, two)]
    assert window_difference(*shifted, 2, 40, 40) == pytest.approx(np.mean(terms))


def test_uncertainty_is_zero_for_clusters_of_one_mind():
    places = np.array([[0, 2], [0, 2], [1, 3]])
    assert uncertainty(places, np.array([0, 0, 1]), 2, 4) == pytest.approx(0)
    assert uncertainty(places, np.zeros(3, int), 1, 4) > 0


@pytest.mark.parametrize("cls", BASELINES)
def test_a_new_concept_is_detected(cls):
    stream = cls(3, random_state=0)
    for seed in range(3):
        stream.partial_fit(groups(seed=seed)[0])
        assert not stream.drifted_
    other, y = groups(seed=7)
    stream.partial_fit("other " + other)
    assert stream.drifted_
    assert clustering_f(y, stream.labels_) > 0.9


def test_one_window_of_a_baseline_is_k_modes():
    X, _ = groups()
    stream = DCD(3, random_state=0).fit(X)
    labels = KModes(3, random_state=0).fit(X).labels_
    assert clustering_f(labels, stream.labels_) == 1


@pytest.mark.parametrize("cls", BASELINES)
def test_all_columns_are_categories_unless_a_schema_says_otherwise(cls):
    amounts = {"amount": np.arange(100) + 0.5, "b": ["u", "v"] * 50}
    assert cls(2, random_state=0).fit(amounts).schema_["amount"].kind == "nominal"
    with pytest.raises(ValueError, match=r"column 'amount' is numeric; .*schema='nominal'"):
        cls(2, schema=None, random_state=0).fit(amounts)


@pytest.mark.parametrize("continuity", [0.0, 1.0, 50.0])
def test_continued_clusters_by_hand(continuity):
    """A cluster is the mean of its rows and, ``continuity`` times, of what it was."""
    rng = np.random.default_rng(3)
    X = rng.integers(3, size=(60, 4)).astype(str)
    stream = CCDSDC(3, continuity=continuity, threshold=9.0, random_state=0).fit(X)
    before = {
        (c, a, v): np.mean(X[stream.labels_ == c, a] == v)
        for c in range(3)
        for a in range(4)
        for v in "012"
    }
    Y, model, labels = rng.integers(3, size=(40, 4)).astype(str), dict(before), None
    for _ in range(50):
        found = [
            int(np.argmax([sum(model[c, a, row[a]] for a in range(4)) for c in range(3)]))
            for row in Y
        ]
        if found == labels:
            break
        labels = found
        for (c, a, v), was in before.items():
            own = Y[np.equal(labels, c), a]
            if len(own):
                model[c, a, v] = (np.mean(own == v) + continuity * was) / (1 + continuity)
    assert stream.partial_fit(Y).labels_.tolist() == labels
    assert not stream.drifted_


def test_rows_that_resemble_no_cluster_are_a_drift():
    rows = [["a", "x"]] * 10 + [["b", "y"]] * 10
    odd = rows[:9] + rows[10:19] + [["a", "new"], ["b", "new"]]  # 2 of 20 below their thresholds
    for allowed, drifted in ((0.05, True), (0.2, False)):
        stream = DCD(2, outliers=allowed, variation=1.0, random_state=0).fit(rows)
        assert stream.partial_fit(odd).drifted_ is drifted


@pytest.mark.parametrize("model", [CCDSDC, CCTED, DCD])
def test_a_new_stream_begins_anew(model):
    rows = [["a", "x"]] * 5 + [["b", "y"]] * 5
    again = model(2, random_state=0).fit(rows).partial_fit(rows).fit(rows)
    fresh = model(2, random_state=0).fit(rows)
    assert vars(again).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(again._profiles, fresh._profiles)


def test_kernel_k_means_finds_what_k_means_finds_on_vectors():
    X, _ = groups()
    model = CKML().fit(X)
    vectors = model.transform(X)
    found = KernelKMeans(3, kernel=CKML(), random_state=0).fit(X)
    k_means = KMeans(3, n_init=20, random_state=0).fit(vectors)
    assert found.inertia_ == pytest.approx(k_means.inertia_)
    assert clustering_f(k_means.labels_, found.labels_) == 1
    K = model.pairwise_kernel(X)
    given = KernelKMeans(3, kernel="precomputed", random_state=0).fit(K)
    assert given.inertia_ == pytest.approx(found.inertia_)


def test_the_objective_of_kernel_k_means_is_equation_7_18():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    found = KernelKMeans(4, random_state=0).fit(X)
    K, Z = rbf_kernel(X), np.eye(4)[found.labels_]
    H = Z / np.sqrt(Z.sum(axis=0))
    assert found.inertia_ == pytest.approx(np.trace(K) - np.trace(H.T @ K @ H))


def test_kernel_k_means_parts_what_no_line_parts():
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    X, y = np.vstack([ring, 4 * ring]), np.repeat([0, 1], 60)
    K = np.exp(-((np.linalg.norm(X, axis=1)[:, None] - np.linalg.norm(X, axis=1)) ** 2))
    assert (
        clustering_f(y, KernelKMeans(2, kernel="precomputed", random_state=0).fit_predict(K)) == 1
    )
    with pytest.raises(ValueError, match="expected a square kernel matrix"):
        KernelKMeans(2, kernel="precomputed").fit(X)
