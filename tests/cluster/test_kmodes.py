import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tabweave import OneHot, Schema, Table
from tabweave.cluster import KModes
from tabweave.embed.value_metric import ValueMetric, read_categories, value_lookups


def nominal(codes):
    return Table.of(codes, "nominal")


def draw(n=300, m=5, k=3, noise=0.4, seed=0):
    rng = np.random.default_rng(seed)
    centers = rng.integers(0, 4, (k, m))
    rows = centers[rng.integers(0, k, n)]
    return np.where(rng.random((n, m)) < noise, rng.integers(0, 4, (n, m)), rows)


def brute_cost(X, labels, centers):
    return sum(
        sum(cell != value for cell, value in zip(row, centers[label], strict=True))
        for row, label in zip(X.tolist(), labels, strict=True)
    )


def brute_kmodes(X, centers):
    """K-modes by explicit loops: nearest centre, first of equals; mode, lowest of equals."""
    centers = [list(c) for c in centers]
    while True:
        labels = []
        for row in X.tolist():
            d = [sum(a != b for a, b in zip(row, c, strict=True)) for c in centers]
            labels.append(d.index(min(d)))
        new = []
        for c in range(len(centers)):
            members = [row for row, label in zip(X.tolist(), labels, strict=True) if label == c]
            new.append([])
            for a in range(X.shape[1]):
                column = [row[a] for row in members]
                new[-1].append(min(set(column), key=lambda v, col=column: (-col.count(v), v)))
        if new == centers:
            return labels, centers
        centers = new


@pytest.mark.parametrize("seed", range(4))
def test_equals_explicit_loops_from_given_centers(seed):
    X = draw(seed=seed)
    start = np.unique(X, axis=0)[:: 11 + seed][:3]
    labels, centers = brute_kmodes(X, start.tolist())
    model = KModes(3, init=start).fit(nominal(X))
    assert model.labels_.tolist() == labels
    assert model.cluster_centers_.tolist() == centers
    assert model.cost_ == brute_cost(X, labels, centers)
    assert np.array_equal(model.predict(X), model.labels_)


def ng(X, labels, row, c):
    """Eq. (2.3): 1 a column where a row misses the mode, else the share of members without it."""
    members = [r for r, label in zip(X.tolist(), labels, strict=True) if label == c]
    total = 0.0
    for a, value in enumerate(row):
        column = [r[a] for r in members]
        mode = min(set(column), key=lambda v, col=column: (-col.count(v), v))
        total += 1 - column.count(mode) / len(column) if value == mode else 1
    return total


def test_shares_of_modes_worked_by_hand():
    model = KModes(1, centers="mode_share").fit([["a"], ["a"], ["a"], ["b"]])
    assert model.transform([["a"], ["b"]]).tolist() == [[0.25], [1.0]]
    assert model.cost_ == 4 - 3**2 / 4
    assert model.cluster_centers_.tolist() == [["a"]]


@pytest.mark.parametrize("seed", range(3))
def test_shares_of_modes_are_those_of_ng(seed):
    X = draw(n=80, seed=seed)
    start = np.unique(X, axis=0)[::9][:3]
    first = (X[:, None] != start).sum(axis=2).argmin(axis=1)  # where the first centres send rows
    model = KModes(3, centers="mode_share", init=start, max_iter=1).fit(nominal(X))
    want = np.array([[ng(X, first, row, c) for c in range(3)] for row in X.tolist()])
    np.testing.assert_allclose(model.transform(X), want)
    assert np.array_equal(model.labels_, want.argmin(axis=1))
    assert model.cost_ == pytest.approx(want.min(axis=1).sum())


def test_columns_weighted_by_entropy():
    X = draw(n=60)
    plain = KModes(3, metric="cheung", random_state=0).fit(nominal(X))
    weighted = KModes(3, feature_weights="entropy", random_state=0).fit(nominal(X))
    assert np.array_equal(plain.labels_, weighted.labels_)
    assert plain.cost_ == pytest.approx(weighted.cost_)


@pytest.mark.parametrize("metric", ["hamming", "of", "goodall3", "eskin", OneHot()])
@pytest.mark.parametrize("centers", ["mode", "medoid", "distribution", "mode_share"])
def test_cost_never_increases_with_steps(metric, centers):
    X = draw(seed=3, noise=0.7)
    costs = [
        KModes(4, metric=metric, centers=centers, n_init=1, max_iter=i, random_state=1)
        .fit(nominal(X))
        .cost_
        for i in range(1, 12)
    ]
    assert all(b <= a + 1e-9 for a, b in pairwise(costs))


@pytest.mark.parametrize("metric", ["of", "iof", OneHot()])
def test_cost_and_transform_equal_distances_to_centers(metric):
    X = draw(seed=5)
    model = KModes(3, metric=metric, random_state=0).fit(nominal(X))
    D = model.metric_.pairwise_distances(X, model.cluster_centers_.astype(X.dtype))
    np.testing.assert_allclose(model.transform(X), D, atol=1e-12)
    root = isinstance(model.metric_, OneHot)
    assert model.cost_ == pytest.approx(((D**2 if root else D).min(axis=1)).sum())
    assert np.array_equal(model.labels_, np.argmin(model.transform(X), axis=1))


@pytest.mark.parametrize("noise", [0.1, 0.4])
def test_distribution_is_the_mean_distance_to_its_values(noise):
    X = draw(seed=6, noise=noise)
    model = KModes(3, metric="of", centers="distribution", random_state=0).fit(nominal(X))
    tables, _ = value_lookups(model.metric_)
    wanted = np.zeros((len(X), 3))
    for c, center in enumerate(model.cluster_centers_):
        for a, labels in enumerate(model.metric_.counts_.labels):
            share = np.array([center[f"x{a}"].get(v, 0.0) for v in labels])
            codes = [labels.index(v) for v in X[:, a].tolist()]
            wanted[:, c] += (share @ tables[a][:-1, :-1])[codes]
    np.testing.assert_allclose(model.transform(X), wanted)
    assert model.cost_ == pytest.approx(wanted.min(axis=1).sum())


def test_medoid_is_the_best_value():
    X = draw(seed=7)
    model = KModes(2, metric="eskin", centers="medoid", random_state=0).fit(nominal(X))
    tables, _ = value_lookups(model.metric_)
    labels = model.metric_.counts_.labels
    for c in range(2):
        for a in range(X.shape[1]):
            rows = [labels[a].index(v) for v in X[model.labels_ == c, a].tolist()]
            sums = tables[a][:-1, rows].sum(axis=1)
            chosen = labels[a].index(model.cluster_centers_[c, a])
            assert sums[chosen] == pytest.approx(sums.min())


def test_best_of_starts():
    X = draw(seed=8, noise=0.7)
    rng = np.random.RandomState(0)
    single = [KModes(5, n_init=1, random_state=rng).fit(nominal(X)).cost_ for _ in range(20)]
    assert KModes(5, n_init=20, random_state=0).fit(nominal(X)).cost_ == min(single)
    assert len(set(single)) > 1


@pytest.mark.parametrize("init", ["random", "huang", "cao"])
def test_weights_are_repeated_rows_and_order_does_not_matter(init):
    X = draw(n=120, seed=9)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    args = {"init": init, "random_state": 4}
    weighted = KModes(3, **args).fit(nominal(X), sample_weight=weight)
    repeated = KModes(3, **args).fit(nominal(np.repeat(X, weight, axis=0)))
    shuffled = np.random.default_rng(1).permutation(np.repeat(X, weight, axis=0))
    other = KModes(3, **args).fit(nominal(shuffled))
    assert weighted.cost_ == repeated.cost_ == other.cost_
    assert weighted.cluster_centers_.tolist() == repeated.cluster_centers_.tolist()
    assert other.cluster_centers_.tolist() == repeated.cluster_centers_.tolist()
    assert np.array_equal(np.repeat(weighted.labels_, weight), repeated.labels_)


def brute_cao(X, k):
    distinct = np.unique(X, axis=0).tolist()
    density = [
        sum(sum(a == b for a, b in zip(row, r, strict=True)) for r in X.tolist())
        for row in distinct
    ]
    chosen = [density.index(max(density))]
    while len(chosen) < k:
        scores = [
            min(sum(a != b for a, b in zip(row, distinct[c], strict=True)) for c in chosen) * dense
            for row, dense in zip(distinct, density, strict=True)
        ]
        chosen.append(scores.index(max(scores)))
    return [distinct[c] for c in chosen]


def test_cao_equals_explicit_loops_and_ignores_the_seed():
    X = draw(seed=2)
    given = KModes(4, init=brute_cao(X, 4)).fit(nominal(X))
    for seed in range(2):
        model = KModes(4, init="cao", random_state=seed).fit(nominal(X))
        assert model.labels_.tolist() == given.labels_.tolist()


def test_empty_clusters_are_filled():
    X = np.array([[0, 0]] * 5 + [[0, 1], [5, 5], [9, 9]])
    model = KModes(3, init=[[0, 0], [0, 0], [0, 0]]).fit(nominal(X))
    assert sorted(set(model.labels_)) == [0, 1, 2]
    assert model.cost_ == 1


def test_as_many_clusters_as_distinct_rows():
    X = np.array([["a", "x"], ["a", "y"], ["b", "y"], ["a", "x"]])
    for centers in ("mode", "medoid", "distribution", "mode_share"):
        model = KModes(3, centers=centers, random_state=0).fit(nominal(X))
        assert model.cost_ == 0
        assert model.labels_[0] == model.labels_[3]
        assert len(set(model.labels_)) == 3


def test_missing_may_be_a_value_and_unknown_is_as_far_as_the_metric_says():
    rows = [["a", None], ["a", None], ["b", "x"], ["b", "x"], ["b", "y"]]
    centers = KModes(2, random_state=0).fit([*rows, ["a", "y"]]).cluster_centers_
    assert sorted(centers.tolist()) == [["a", "y"], ["b", "x"]]  # a mode is a value
    metric = ValueMetric(schema=Schema(missing="value"))
    model = KModes(2, metric=metric, random_state=0).fit(rows)
    assert sorted(map(str, model.cluster_centers_[:, 1])) == ["None", "x"]
    assert model.predict([["new", None]])[0] == model.labels_[0]
    assert model.predict([["b", "new"]])[0] == model.labels_[2]


def test_feature_weights():
    X = draw(seed=11)
    weighted = KModes(3, feature_weights=[1, 0, 0, 0, 0], random_state=0).fit(nominal(X))
    named = KModes(3, feature_weights={f"x{i}": 0 for i in range(1, 5)}, random_state=0).fit(
        nominal(X)
    )
    assert (
        weighted.cost_
        == named.cost_
        == (X[:, 0] != weighted.cluster_centers_[:, 0][weighted.labels_]).sum()
    )
    doubled = KModes(3, feature_weights=[2] * 5, random_state=0).fit(nominal(X))
    assert doubled.cost_ == 2 * KModes(3, random_state=0).fit(nominal(X)).cost_


def test_fitted_metric_is_used_as_it_is():
    X = draw(seed=12)
    metric = ValueMetric("of").fit(nominal(X))
    model = KModes(2, metric=metric, random_state=0).fit(nominal(X[:50]))
    assert model.metric_ is metric and metric.counts_.n == len(X)
    model.partial_fit(X[50:])
    assert metric.counts_.n == len(X)
    unfitted = ValueMetric("of")
    assert KModes(2, metric=unfitted).fit(nominal(X)).metric_ is not unfitted
    lone = KModes(1, metric=metric).fit([["?"] * 5] * 3)
    assert lone.cluster_centers_.tolist() == [["<unknown>"] * 5]


def test_partial_fit_counts_all_batches():
    X = draw(n=900, k=3, noise=0.2, seed=13)
    model = KModes(3, metric=NOMINAL, random_state=0)
    labels = []
    for part in np.array_split(X, 6):
        labels.append(model.partial_fit(part).labels_)
    labels = np.concatenate(labels)
    assert model.n_iter_ >= 6
    assert model.metric_.counts_.n == len(X)
    for c in range(3):
        for a in range(X.shape[1]):
            counts = np.bincount(X[labels == c, a])
            assert model.cluster_centers_[c, a] == np.argmax(counts)
    whole = KModes(3, random_state=0).fit(nominal(X))
    assert brute_cost(X, model.predict(X), model.cluster_centers_) <= 1.05 * whole.cost_


def test_partial_fit_meets_new_values():
    model = KModes(2, random_state=0).fit([["b", "x"], ["d", "y"]])
    own = model.predict([["b", "x"]])[0]
    for _ in range(2):
        model.partial_fit([["a", "x"], ["a", "x"], ["d", "y"]])
    assert model.cluster_centers_[own].tolist() == ["a", "x"]
    assert model.cluster_centers_[1 - own].tolist() == ["d", "y"]


def test_frames_and_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"c": ["a", "a", "b"], "d": ["x", "y", "y"]})
    model = KModes(2, random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == ["c", "d"]
    assert np.array_equal(model.predict(frame[["c", "d"]]), model.labels_)
    assert model.get_feature_names_out().tolist() == ["kmodes0", "kmodes1"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"n_clusters": 0}, "n_clusters.* must be an int in the range .1, inf.*Got 0"),
        ({"n_clusters": 2.5}, "n_clusters.* must be an int"),
        (
            {"n_clusters": 9},
            "expected n_clusters of at most 4, the number of distinct rows .*got 9",
        ),
        ({"metric": "hmming"}, "got 'hmming' .did you mean 'hamming'"),
        ({"metric": "lin"}, "one table of values per column.*ratios"),
        ({"centers": "mean"}, "centers.* must be a str among .*Got 'mean'"),
        ({"init": "kmeans++"}, "init.* must be a str among .*Got 'kmeans"),
        ({"init": [["a", "x"]]}, "init: expected 2 rows, one per cluster, got 1"),
        (
            {"feature_weights": [1, np.nan]},
            "feature_weights: expected numbers >= 0, got nan for column 'x1'",
        ),
        ({"feature_weights": [1, -1]}, "got -1.0 for column 'x1'"),
        ({"feature_weights": [0, 0]}, "expected at least one above 0, got zeros"),
        ({"feature_weights": [1]}, "one per column, 2, got shape"),
        ({"feature_weights": {"z": 1}}, "expected columns 'x0', 'x1', got 'z'"),
        ({"n_init": 0}, "n_init.* must be an int"),
    ],
)
def test_bad_parameters(args, message):
    rows = [["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"], ["b", "y"]]
    with pytest.raises(ValueError, match=message):
        KModes(**{"n_clusters": 2} | args).fit(rows)


def test_bad_rows():
    rows = [["a", "x"], ["a", "y"], ["b", "x"]]
    with pytest.raises(ValueError, match="sample_weight of row 1: expected a number >= 0, got nan"):
        KModes(2).fit(rows, sample_weight=[1, np.nan, 1])
    with pytest.raises(ValueError, match="expected \\(3,\\)"):
        KModes(2).fit(rows, sample_weight=[1, 1])
    with pytest.raises(TypeError, match=r"metric.* must be .*str.* or .*ValueEmbedder.*Got 3"):
        KModes(2, metric=3).fit(rows)
    with pytest.raises(ValueError, match="column 'tags' holds sets"):
        KModes(1, metric=OneHot()).fit({"tags": [["a"], ["a", "b"]]})
    strict = KModes(2, metric=ValueMetric(unknown="error")).fit(rows)
    with pytest.raises(ValueError, match="column 'x1': value 'z' was not seen"):
        strict.predict([["a", "z"]])


def test_numba_stays_out_of_the_import():
    code = "import sys, tabweave, tabweave.cluster; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Numbers, declared to be categories: blobs of floats have no two equal values, so no clusters.
NOMINAL = ValueMetric(schema="nominal")
CONTINUOUS = {"check_clustering": "blobs of floats have no two equal values, hence no clusters"}


@parametrize_with_checks(
    [KModes(2, metric=NOMINAL), KModes(2, metric=NOMINAL, init="huang", centers="distribution")],
    expected_failed_checks=lambda estimator: CONTINUOUS,
)
def test_sklearn(estimator, check):
    check(estimator)


def test_numbers_need_a_word():
    X = draw(n=60)
    with pytest.raises(ValueError, match=r"column 'x0' is numeric .*Table\.of\(X, 'nominal'\)"):
        KModes(2).fit(X)


def test_unknown_values_of_centers_are_carried_over():
    rows = [["a", "x"], ["b", "y"], ["b", "x"]]
    model = KModes(2, init=[["zebra", "x"], ["b", "y"]], centers="distribution").fit(rows)
    layout = model._layout
    histogram = layout.histogram(
        layout.indices(read_categories(model.metric_, [["zebra", "x"]], model.metric_.schema_))
    )
    assert histogram[0].tolist() == [0, 0, 1, 1, 0, 0]
    model.partial_fit([["c", "x"]])  # one more value in the first column
    carried = model._layout.reindex(histogram, layout.labels)
    assert carried[0].tolist() == [0, 0, 0, 1, 1, 0, 0]
    assert carried.sum() == histogram.sum()


def test_values_that_fit_has_not_seen_are_reported():
    rows = {"a": list("pqr") * 20, "b": list("uvw") * 20}
    model = KModes(3, random_state=0).fit(rows)
    with pytest.raises(ValueError, match="column 'a': none of its 60 values was seen in fit"):
        model.predict(rows | {"a": ["new"] * 60})
    with pytest.warns(UserWarning, match="column 'a': 30 of 60 values were not seen in fit"):
        model.transform(rows | {"a": ["new", "p"] * 30})


def test_steps_end_when_no_centre_moves():
    rows = [["a", "x"]] * 10 + [["b", "y"]] * 10
    for measure in ("hamming", "ckml"):
        model = KModes(2, metric=measure, random_state=0, max_iter=100).fit(rows)
        assert model.n_iter_ <= 2
