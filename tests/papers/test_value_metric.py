"""Measures as published: 1 − S written out once more, and what vectors make of it."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import tabweave
from tabweave import KModes, Table, ValueMetric, WeightedKNN, papers
from tabweave.embed.value_metric import value_lookups
from tabweave.papers import CKML

ROWS = [["a", "x"], ["a", "y"], ["b", "y"], ["a", "y"], ["c", "y"]]
N = len(ROWS)


def count(a, v):
    return sum(row[a] == v for row in ROWS)


def pairs(a, v):
    return count(a, v) * (count(a, v) - 1) / (N * (N - 1))


def goodall1(a, v):
    return 1 - sum(pairs(a, q) for q in {r[a] for r in ROWS} if count(a, q) <= count(a, v))


def goodall2(a, v):
    return 1 - sum(pairs(a, q) for q in {r[a] for r in ROWS} if count(a, q) >= count(a, v))


def gambaryan(a, v):
    p = count(a, v) / N
    return -sum(x * np.log2(x) for x in (p, 1 - p) if x)


MATCHES = {  # what a match on v is worth; a mismatch is worth nothing
    "rough": lambda a, v: 1 / count(a, v),
    "goodall1": goodall1,
    "goodall2": goodall2,
    "goodall3": lambda a, v: 1 - pairs(a, v),
    "goodall4": pairs,
    "gambaryan": gambaryan,
}


@pytest.mark.parametrize("name", MATCHES)
def test_matches_below_one_leave_a_distance(name):
    worth = MATCHES[name]
    slow = [
        [sum(1 - (worth(a, v[a]) if v[a] == w[a] else 0) for a in (0, 1)) for w in ROWS]
        for v in ROWS
    ]
    metric = papers.ValueMetric(name).fit(ROWS)
    np.testing.assert_allclose(metric.pairwise_distances(ROWS), slow)
    shares = metric.explain(ROWS[0], ROWS[0])
    assert sum(shares.values()) == pytest.approx(slow[0][0]) and slow[0][0] > 0


def test_smirnov_falls_below_zero():
    def similarity(a, v, w):
        odds = {q: count(a, q) / (N - count(a, q)) for q in {r[a] for r in ROWS}}
        others = sum(o for q, o in odds.items() if q not in (v, w))
        return 2 + (N - count(a, v)) / count(a, v) + others if v == w else others

    slow = [[sum(1 - similarity(a, v[a], w[a]) for a in (0, 1)) for w in ROWS] for v in ROWS]
    found = papers.ValueMetric("smirnov").fit(ROWS).pairwise_distances(ROWS)
    np.testing.assert_allclose(found, slow)
    assert found.min() < 0


@pytest.mark.parametrize("name", ["hamming", "of", "dilca", "cos", "lin"])
def test_what_was_published_as_a_distance_stays(name):
    ours, theirs = (
        cls(name).fit(ROWS).pairwise_distances(ROWS) for cls in (ValueMetric, papers.ValueMetric)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_vectors_are_those_without_the_diagonal(tmp_path):
    metric = papers.ValueMetric("rough").fit(ROWS)
    vectors = metric.transform(ROWS)
    found = ((vectors[:, None] - vectors) ** 2).sum(axis=-1)
    differ = [[sum(x != y for x, y in zip(v, w, strict=True)) for w in ROWS] for v in ROWS]
    np.testing.assert_allclose(found, differ, atol=1e-12)
    metric.save(tmp_path / "model")
    again = tabweave.load(tmp_path / "model")
    assert type(again) is papers.ValueMetric
    np.testing.assert_array_equal(again.transform(ROWS), vectors)
    np.testing.assert_array_equal(again.pairwise_distances(ROWS), metric.pairwise_distances(ROWS))


def test_tasks_take_it():
    metric = papers.ValueMetric("rough")
    assert len(KModes(2, metric=metric, random_state=0).fit(ROWS).labels_) == N
    assert len(WeightedKNN(1, metric=metric).fit(ROWS, list("pqqpp")).predict(ROWS)) == N


# -- cKML: its numbers everywhere, and none where it has none -------------------------------------


def random_rows(seed, n=25, n_columns=4, n_values=4):
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, n_values, n)
    mixed = [
        np.where(rng.random(n) < 0.4, hidden, rng.integers(n_values, size=n))
        for _ in range(n_columns)
    ]
    return {f"c{a}": [f"v{v}" for v in column] for a, column in enumerate(mixed)}


def test_the_published_numbers_are_everywhere():
    rows = random_rows(0, n=50, n_values=6)
    model = CKML("inter").fit(rows)
    d = model.pairwise_distances(rows)
    codes = model.tables_.codes(Table.of(rows))
    square = sum(s[np.ix_(c, c)] for s, c in zip(model.squares_, codes, strict=True))
    assert np.allclose(d, np.sqrt(square)) and (d.diagonal() == 0).all()
    first, second = ([c[i] for c in rows.values()] for i in (2, 9))
    shares = model.explain(first, second)
    assert list(shares) == list(rows) and sum(shares.values()) == pytest.approx(d[2, 9] ** 2)
    tables, root = value_lookups(model)
    assert root and np.array_equal(tables[1], model.squares_[1])
    assert np.allclose(model.value_distances("c1").to_numpy() ** 2, tables[1][:-1, :-1])
    x = model.transform(rows)
    gap = np.abs(((x[:, None] - x) ** 2).sum(axis=2) - d**2).max()
    assert 0 < gap <= model.distortion_.sum() + 1e-12
    half = {name: column[:20] for name, column in rows.items()}
    assert np.allclose(model.pairwise_distances(rows, half), d[:, :20])


def test_with_nothing_to_clip_both_agree():
    rows = {"x": list("aabbcc"), "y": list("ppqqpq")}
    plain, as_published = tabweave.CKML("intra").fit(rows), CKML("intra").fit(rows)
    assert np.allclose(plain.pairwise_distances(rows), as_published.pairwise_distances(rows))
    assert np.allclose(plain.distortion_, 0) and not plain.psd_clip_.any()
    for (a, _), (b, _) in zip([value_lookups(plain)], [value_lookups(as_published)], strict=True):
        assert all(np.allclose(x, y) for x, y in zip(a, b, strict=True))  # unknown row too


def test_unknown_values_are_the_frequency_weighted_mean():
    rows = random_rows(1)
    new = {name: ["never"] for name in rows}
    model = CKML().fit(rows)
    f = [model.counts_.value_counts[model.counts_.span(a)] / 25 for a in range(4)]
    expected = 0
    for square, share in zip(model.squares_, f, strict=True):
        s = square[:-1, :-1]
        expected += share @ s @ share / 2
    d = model.pairwise_distances(rows, new)[:, 0] ** 2
    assert d.mean() == pytest.approx(expected)
    with pytest.raises(ValueError, match="'never' was not seen in fit"):
        CKML(unknown="error").fit(rows).pairwise_distances(new)


def test_set_valued_columns_are_an_error():
    rows = {"tags": [{"a", "b"}, {"a"}, {"c"}], "x": ["u", "u", "w"]}
    with pytest.raises(ValueError, match="'tags' is set-valued"):
        CKML(schema={"tags": "set"}).fit(rows)


def test_rows_that_come_later_count():
    rows = random_rows(5, n=40)
    first, second = ({n: c[a:b] for n, c in rows.items()} for a, b in ((0, 13), (13, 40)))
    parts = CKML().partial_fit(first).partial_fit(second)
    assert np.array_equal(parts.pairwise_distances(rows), CKML().fit(rows).pairwise_distances(rows))


@parametrize_with_checks([CKML("inter")])
def test_scikit_learn_checks_of_ckml(estimator, check):
    check(estimator)


def test_without_couplings_the_inter_kernel_is_a_constant():
    """Section 4.2.3: 1/e for all pairs, so that values differ by their frequency alone."""
    rows = {"x": list("aab") * 4, "y": list("uvwuvwuvwuvw"), "lone": list("ppppqqqqrrrs")}
    for column in (rows["x"], rows["lone"]):
        lone = {"x": column}
        f = {v: column.count(v) / 12 for v in column}
        assert not CKML("inter").fit(lone).pairwise_distances(lone).any()
        found = CKML().fit(lone).value_distances("x")
        for v in f:
            for w in f:
                square = 2 * np.exp(-1) * (1 - np.exp(-((f[v] - f[w]) ** 2)))
                assert found.loc[v, w] == pytest.approx(np.sqrt(square), abs=1e-9)
    assert tabweave.CKML("inter").fit(lone).value_distances("x").to_numpy()[0, 1] > 0
