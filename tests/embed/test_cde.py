"""CDE against its recipe: influences by loops, clusters of planted values."""

import numpy as np
import pytest

from tabweave import CDE, Counts, Table
from tabweave.counts import counting as _counting
from tabweave.counts.couplings import symmetric_uncertainty
from tabweave.datasets import led24, make_coupled, three_of_9
from tabweave.embed.cde import co_occurrence, components, occurrence, value_clusters


def table(seed=0, n=60, columns=3):
    return make_coupled(n, columns, n_values=4, coupling=0.6, random_state=seed).X


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_influences_are_the_formulas(storage, monkeypatch):
    if storage == "sparse":
        monkeypatch.setattr(_counting, "DENSE_VALUES", 0)
    X = table(0)
    counts = Counts.of(Table.of(X))
    nmi = symmetric_uncertainty(counts)
    places = [(a, v) for a, labels in enumerate(counts.labels) for v in labels]
    by_frequency, by_company = occurrence(counts), co_occurrence(counts)
    for i, (a, v) in enumerate(places):
        has_v = X[:, a] == v
        for j, (b, w) in enumerate(places):
            has_w = X[:, b] == w
            ratio = nmi[a, b] * has_w.sum() / has_v.sum()
            assert by_frequency[i, j] == pytest.approx(ratio, abs=1e-12)
            assert by_company[i, j] == pytest.approx((has_v & has_w).sum() / has_w.sum())


def test_value_clusters_find_planted_groups():
    rng = np.random.default_rng(0)
    points = np.repeat(10 * np.eye(3), 20, axis=0) + 0.1 * rng.normal(size=(60, 3))
    found = value_clusters(points, 0.1, 50, np.random.RandomState(0))
    assert [m.shape[1] for m in found] == list(range(2, len(found) + 2))
    assert all(np.array_equal(m.sum(axis=1), np.ones(60)) for m in found)
    three = found[1]
    assert all(len(np.unique(three[i : i + 20], axis=0)) == 1 for i in (0, 20, 40))
    for m in found[:-1]:  # it stops at the first with too many singletons
        assert (m.sum(axis=0) == 1).sum() <= 0.1 * m.shape[1]
    assert (found[-1].sum(axis=0) == 1).sum() > 0.1 * found[-1].shape[1]


def test_the_number_of_clusters_is_capped():
    points = np.random.default_rng(0).normal(size=(60, 3))
    assert len(value_clusters(points, 1.0, 7, np.random.RandomState(0))) == 6
    same = np.repeat(np.eye(2), 5, axis=0)
    assert len(value_clusters(same, 1.0, 7, np.random.RandomState(0))) == 1  # two distinct rows
    assert value_clusters(np.ones((4, 4)), 0.1, 7, np.random.RandomState(0)) == []


def test_components_keep_distances_and_drop_the_flat():
    memberships = [np.eye(2)[[0, 0, 1, 1, 1]], np.eye(3)[[0, 1, 2, 2, 2]]]
    wide = np.hstack(memberships)
    kept = components(memberships, 5, 1e-10)
    assert kept.shape == (5, 2)  # three kinds of values
    expected = ((wide[:, None] - wide[None]) ** 2).sum(axis=2)
    assert np.allclose(((kept[:, None] - kept[None]) ** 2).sum(axis=2), expected)
    assert np.allclose(kept.T @ kept, np.diag(np.diag(kept.T @ kept)))  # uncorrelated
    assert components(memberships, 5, 1e9).shape == (5, 0)


def test_objects_are_their_values_side_by_side():
    X = table(1)
    cde = CDE(random_state=0).fit(X)
    counts, vectors = cde.counts_, cde.value_vectors_
    assert vectors.shape[0] == counts.offsets[-1]
    side = np.hstack([
        vectors[counts.span(a)][[counts.labels[a].index(v) for v in X[:, a]]]
        for a in range(X.shape[1])
    ])  # fmt: skip
    expected = ((side[:, None] - side[None]) ** 2).sum(axis=2)
    assert np.allclose(cde.pairwise_distances(X) ** 2, expected, atol=1e-8)
    assert set(cde.n_value_clusters_) == {"occurrence", "co-occurrence"}
    assert sum(cde.explain(X[0], X[1]).values()) == pytest.approx(expected[0, 1])


def test_it_repeats_and_streams():
    X = led24(80, random_state=0).X
    whole = CDE(random_state=3).fit(X)
    assert np.array_equal(CDE(random_state=3).fit_transform(X), whole.transform(X))
    parts = CDE(random_state=3).partial_fit(X[:30]).partial_fit(X[30:])
    assert np.array_equal(parts.transform(X), whole.transform(X))


def test_coupled_values_come_close():
    """Two hidden kinds: values of the same kind share clusters."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 400)
    X = np.array([2 * kind + rng.integers(0, 2, 400) for _ in range(5)]).T.astype(str)
    d = CDE(random_state=0).fit(X).value_distances("x0").to_numpy()
    assert max(d[0, 1], d[2, 3]) < min(d[0, 2], d[0, 3], d[1, 2], d[1, 3])


def test_odd_tables():
    for X in (
        {"same": ["x"] * 4},
        {"same": ["x"] * 4, "a": list("uvuw")},
        {"a": list("uv")},
        {"a": list("uv"), "b": list("xy")},
        {"tags": [{"a", "b"}, {"b"}, {"c"}], "x": list("uvu")},
    ):
        kinds = {"tags": "set"} if "tags" in X else None
        cde = CDE(random_state=0, schema=kinds).fit(X)
        assert np.isfinite(cde.transform(X)).all()
    assert CDE(random_state=0).fit_transform({"same": ["x"] * 4}).shape == (4, 0)
    assert np.isfinite(CDE(random_state=0).fit_transform(three_of_9().X)).all()
    weighted = CDE(random_state=0).fit(table(), sample_weight=np.full(60, 0.1))
    assert np.isfinite(weighted.transform(table())).all()


def test_many_values_are_refused_by_name():
    X = {"id": [str(i) for i in range(40)], "a": ["x", "y"] * 20}
    with pytest.raises(
        ValueError, match=r"max_values=20 values, got 42, of which 40 in column 'id'"
    ):
        CDE(max_values=20, schema="nominal").fit(X)


def test_bad_parameters():
    for parameters in ({"max_singletons": 2}, {"min_range": -1}, {"max_clusters": 1}):
        with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter of CDE"):
            CDE(**parameters).fit(table())
