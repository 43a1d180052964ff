"""cKML as published: its numbers everywhere, and none where it has none."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import tabweave
from tabweave import Table
from tabweave.papers import CKML


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
    tables, root = model.lookups()
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
    for (a, _), (b, _) in zip([plain.lookups()], [as_published.lookups()], strict=True):
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
def test_sklearn(estimator, check):
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
