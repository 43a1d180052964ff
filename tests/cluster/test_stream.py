"""Clusters on streams: ids that stay, and centres that move with the representation."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tabweave import UNICORN, OneHot, Weave, Windowed
from tabweave.cluster import StreamClusterer
from tabweave.cluster.stream import match
from tabweave.datasets import led24
from tabweave.evaluate import clustering_f
from tabweave.papers import CCDSDC, CCTED, DCD, stream_windows

from .conftest import groups

BASELINES = [CCDSDC, CCTED, DCD]
ALL = [StreamClusterer, *BASELINES]


# -- ids that stay ------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", ALL)
def test_groups_are_found_and_keep_their_ids(cls):
    stream = cls(3, random_state=0)
    names = None
    for seed in range(6):
        X, y = groups(seed=seed)
        labels = stream.partial_fit(X).labels_
        assert clustering_f(y, labels) > 0.9
        found = [int(np.bincount(labels[y == c]).argmax()) for c in range(3)]
        if cls is StreamClusterer:
            names = names or found
            assert found == names
    assert stream.n_windows_ == 6


@pytest.mark.parametrize("method", ["kmeans", "kmodes"])
@pytest.mark.parametrize(
    "embedder", [None, Windowed(Weave(), decay=0.5), Windowed(OneHot(), window=2), OneHot()]
)
def test_any_embedder_and_method(method, embedder):
    stream = StreamClusterer(3, embedder=embedder, method=method, random_state=0)
    for seed in range(3):
        X, y = groups(seed=seed)
        assert clustering_f(y, stream.partial_fit(X).labels_) > 0.9
    X, y = groups(seed=9)
    assert clustering_f(y, stream.predict(X)) > 0.9
    np.testing.assert_array_equal(stream.predict(X), stream.predict(X))


def test_ids_survive_a_window_without_one_of_the_clusters():
    X, y = groups()
    stream = StreamClusterer(3, random_state=0).fit(X)
    names = [int(np.bincount(stream.labels_[y == c]).argmax()) for c in range(3)]
    stream.partial_fit(X[y != 2].reset_index(drop=True).iloc[:2])
    stream.partial_fit(X)
    assert [int(np.bincount(stream.labels_[y == c]).argmax()) for c in range(3)] == names


def test_ids_follow_groups_that_drift():
    """Every window one more column goes over to new values; ids must not notice."""
    stream, names = StreamClusterer(3, random_state=0), None
    for step in range(5):
        X, y = groups(seed=step)
        for j in range(step):
            X[f"c{j}"] = "new" + X[f"c{j}"]
        labels = stream.partial_fit(X).labels_
        found = [int(np.bincount(labels[y == c]).argmax()) for c in range(3)]
        names = names or found
        assert found == names


def test_centres_are_means_of_the_last_window():
    X, _ = groups()
    for embedder in (Windowed(OneHot()), UNICORN(3)):
        stream = StreamClusterer(3, embedder=embedder, random_state=0).fit(X)
        vectors = stream.embedder_.transform(X)
        for i in range(3):
            np.testing.assert_allclose(
                stream.cluster_centers_[i], vectors[stream.labels_ == i].mean(axis=0), atol=1e-10
            )
        assert stream.inertia_ == pytest.approx(
            ((vectors - stream.cluster_centers_[stream.labels_]) ** 2).sum()
        )


def test_recent_rows_are_clustered_along_and_forgotten_in_order():
    """The centres of a window are those of its rows and the latest ones before, as one window."""
    windows = [groups(seed=seed, noise=0.3)[0] for seed in range(3)]
    stream = StreamClusterer(3, embedder=OneHot(), recent=100, random_state=0)
    for X in windows:
        stream.partial_fit(X)
    pool = pd.concat(windows, ignore_index=True)[-190:]
    alone = StreamClusterer(3, embedder=OneHot().fit(pool), n_init=50, random_state=1).fit(pool)
    together = stream.predict(pool)
    assert clustering_f(alone.labels_, together) > 0.95
    vectors = stream.embedder_.transform(pool)
    for i in range(3):
        np.testing.assert_allclose(
            stream.cluster_centers_[i], vectors[together == i].mean(axis=0), atol=1e-10
        )
    np.testing.assert_array_equal(together[-90:], stream.labels_)


def test_a_value_that_comes_late_does_not_move_the_rows_remembered():
    X, y = groups()
    late = X.assign(c0="new " + X["c0"])
    stream = StreamClusterer(3, random_state=0).fit(X).partial_fit(late)
    assert clustering_f(y, stream.labels_) > 0.9
    kept = stream._space.table(stream.embedder_.schema_, stream._rows)
    cells = [[column.labels[code] for code in column.codes] for _, column in kept]
    assert pd.DataFrame(dict(zip(X.columns, cells, strict=True))).equals(
        pd.concat([X, late], ignore_index=True)
    )


@pytest.mark.parametrize("recent", [-1, 1.5, True, None])
def test_recent_must_be_a_number_of_rows(recent):
    with pytest.raises(ValueError, match="recent"):
        StreamClusterer(3, recent=recent).fit(groups()[0])


def test_matching_is_one_to_one():
    found, old = np.array([0, 0, 1, 1, 2, 2]), np.array([4, 4, 4, 0, 2, 2])
    assert match(found, 3, old, 5).tolist() == [4, 4, 0, 0, 2, 2]
    assert match(np.array([0, 1, 1]), 2, None, 2).tolist() == [1, 0, 0]


def test_fewer_rows_than_clusters():
    stream = StreamClusterer(5, random_state=0).fit(groups()[0])
    assert len(stream.partial_fit(groups()[0][:2]).labels_) == 2
    assert np.isfinite(stream.predict(groups()[0])).all()


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_stream_may_begin_with_fewer_rows_than_clusters(cls, n):
    X, _ = groups()
    stream = cls(5, random_state=0).partial_fit(X[:n])
    assert len(stream.labels_) == n and stream.labels_.max() < n
    assert len(np.unique(stream.partial_fit(X).labels_)) > 2


def test_kmodes_needs_distances_that_add_up():
    with pytest.raises(ValueError, match="do not add up"):
        StreamClusterer(3, embedder=UNICORN(3), method="kmodes").fit(groups()[0])


@pytest.mark.parametrize("embedder", [None, Windowed(Weave(), decay=0.5), UNICORN()])
def test_resume_is_bit_identical(embedder, tmp_path):
    stream = StreamClusterer(3, embedder=embedder, random_state=0)
    for seed in range(2):
        stream.partial_fit(groups(seed=seed)[0])
    stream.save(tmp_path / "s")
    again = StreamClusterer(3, embedder=embedder, random_state=0).resume(tmp_path / "s")
    for seed in (2, 3):
        X = groups(seed=seed, noise=0.4)[0]
        np.testing.assert_array_equal(stream.partial_fit(X).labels_, again.partial_fit(X).labels_)
        np.testing.assert_array_equal(stream.cluster_centers_, again.cluster_centers_)
    assert again.n_windows_ == 4


def test_an_embedder_without_a_memory_resumes_too(tmp_path):
    stream = StreamClusterer(3, embedder=OneHot(), random_state=0).fit(groups()[0])
    stream.save(tmp_path / "s")
    again = StreamClusterer(3, embedder=OneHot(), random_state=0).resume(tmp_path / "s")
    X = groups(seed=1)[0]
    np.testing.assert_array_equal(stream.partial_fit(X).labels_, again.partial_fit(X).labels_)


@pytest.mark.parametrize("cls", ALL)
def test_odd_windows(cls):
    X, _ = groups()
    stream = cls(3, random_state=0).fit(X)
    assert len(stream.partial_fit(X[:0]).labels_) == 0
    before = stream.predict(X)
    for bad, named in ((X.assign(more="1"), "more"), (X.drop(columns="c1"), "c1")):
        with pytest.raises(ValueError, match=named):
            stream.partial_fit(bad)
    np.testing.assert_array_equal(stream.predict(X), before)
    assert stream.n_windows_ == 2
    gone = pd.DataFrame({name: [None] * 4 for name in X}, dtype=object)
    assert len(stream.partial_fit(gone).labels_) == 4
    assert len(stream.partial_fit("new" + X).labels_) == len(X)


@pytest.mark.parametrize("cls", ALL)
def test_bad_parameters(cls):
    with pytest.raises(ValueError, match="n_clusters"):
        cls(0).fit(groups()[0])
    with pytest.raises(ValueError, match=r"column 's'.* (sets|'set')"):
        cls(2).fit({"s": [["a", "b"], ["c"]]})
    with pytest.raises(ValueError, match="0 sample"):
        cls(2).fit(groups()[0][:0])


@pytest.mark.slow
def test_led24_as_published():
    data = led24(3200, random_state=0)
    stream, scores = StreamClusterer(10, random_state=0), []
    for window in stream_windows(data.y, window_size=250, mix="plain", random_state=0):
        scores.append(clustering_f(data.y[window], stream.partial_fit(data.X[window]).labels_))
    assert np.mean(scores) > 0.55


FLOATS = "clusters blobs of floats, where no two values are equal"


def expected_failures(estimator):
    return {"check_clustering": FLOATS}


# The numbers of the checks, declared to be categories.
NOMINAL = {"StreamClusterer": {"embedder": UNICORN(schema="nominal")}}


@parametrize_with_checks(
    [cls(2, random_state=0, **NOMINAL.get(cls.__name__, {})) for cls in ALL],
    expected_failed_checks=expected_failures,
)
def test_sklearn(estimator, check):
    check(estimator)
