"""Mixtures of pair counts: their steps against plain loops, their rows against the counts."""

from itertools import combinations

import numpy as np
import pytest

import tabweave
from tabweave import Counts, Table
from tabweave.counts.private import spans_of
from tabweave.tasks import PairMixture, sampling


def rows(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    columns = {}
    for name, size in (("a", 3), ("b", 4), ("c", 2)):
        shares = rng.dirichlet(np.full(size, 0.4), 3)
        codes = [rng.choice(size, p=shares[g]) for g in group]
        columns[name] = [f"{name}{v}" for v in codes]
    columns["c"][0] = None
    return columns


def total_variation(counts, other):
    """The mean over pairs of columns of half the L1 distance of their tables."""
    other = other.select(counts.names)
    out = []
    for a, b in combinations(counts.names, 2):
        p, q = (
            {
                (v, w): c.block(a, b)[i, j] / c.n
                for i, v in enumerate(c.labels[c.names.index(a)])
                for j, w in enumerate(c.labels[c.names.index(b)])
            }
            for c in (counts, other)
        )
        out.append(sum(abs(p.get(k, 0) - q.get(k, 0)) for k in {*p, *q}) / 2)
    return np.mean(out)


def test_sampled_rows_have_the_pairs_of_the_counts():
    counts = Counts.of(rows())
    frame = PairMixture.of(counts, random_state=0).sample(3000, random_state=1)
    assert total_variation(counts, Counts.of(frame)) < 0.02
    shuffled = {
        k: np.random.default_rng(i).permutation(v) for i, (k, v) in enumerate(rows().items())
    }
    assert total_variation(counts, Counts.of(shuffled)) > 0.1
    assert frame["c"].isna().sum() < 20


def test_a_step_is_that_of_plain_loops(monkeypatch):
    """EM of the composite likelihood, by loops over pairs of columns, values and components."""
    counts = Counts.of(rows(200))
    spans, n_components = spans_of(counts.labels), 3
    monkeypatch.setattr(sampling, "N_ITERATIONS", 1)
    first = sampling.fit_mixture(np.asarray(counts.pairs, float), spans, n_components, 0)
    monkeypatch.setattr(sampling, "N_ITERATIONS", 2)
    second = sampling.fit_mixture(np.asarray(counts.pairs, float), spans, n_components, 0)
    weights, shares = first
    expected = np.zeros_like(shares)
    for a, b in combinations(range(len(spans)), 2):
        for v in range(spans[a].start, spans[a].stop):
            for w in range(spans[b].start, spans[b].stop):
                joint = weights * shares[v] * shares[w]
                gained = counts.pairs[v, w] / counts.n * joint / joint.sum()
                expected[v] += gained
                expected[w] += gained
    np.testing.assert_allclose(second[0], expected.sum(0) / expected.sum())
    for span in spans:
        np.testing.assert_allclose(second[1][span], expected[span] / expected[span].sum(0))


def test_values_are_drawn_as_often_as_expected():
    rng = np.random.RandomState(0)
    shares = np.array([0.5, 0.0, 0.3, 0.2])
    for n in (0, 1, 7, 1000):
        times = np.bincount(sampling.drawn(shares, n, rng), minlength=4)
        assert (abs(times - n * shares) < 1).all() and times.sum() == n
    firsts = [sampling.drawn(shares, 5, rng)[0] for _ in range(2000)]
    np.testing.assert_allclose(np.bincount(firsts, minlength=4) / 2000, shares, atol=0.04)


def test_a_single_column_has_its_margin():
    counts = Counts.of({"a": ["x"] * 30 + ["y"] * 10})
    mixture = PairMixture.of(counts, n_components=3)
    np.testing.assert_allclose(mixture.shares @ mixture.weights, [0.75, 0.25])


def test_classes_are_sampled_too():
    cells = rows()
    counts = Counts.of(cells, ["u" if v == "a0" else "v" for v in cells["a"]])
    frame = PairMixture.of(counts, random_state=0).sample(2000, random_state=0)
    assert ((frame["a"] == "a0") == (frame["y"] == "u")).mean() > 0.99


def test_the_same_seed_gives_the_same_rows():
    counts = Counts.of(rows(500))
    first, second = (PairMixture.of(counts, random_state=3).sample(50, 4) for _ in range(2))
    assert first.equals(second)


def test_numbers_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"column 'n'.*public_bins"):
        PairMixture.of(Counts.of({"n": [0.5, 1.25, 2.5] * 20}))
    with pytest.raises(ValueError, match="at least one row"):
        PairMixture.of(Counts())
    binned = tabweave.public_bins({"n": [0.5, 1.25, 2.5] * 20}, {"n": [1, 2]})
    frame = PairMixture.of(Counts.of(Table.of(binned))).sample(10, 0)
    assert set(frame["n"]) <= {"< 1", "1 to 2", ">= 2"}


def test_private_counts_give_rows_to_share():
    pytest.importorskip("opendp", reason="the extra private is not installed")
    counts = Counts.of(rows())
    public = {
        name: [v for v in labels if v] for name, labels in zip("abc", counts.labels, strict=True)
    }
    shared = counts.private(2.0, values=public)
    frame = PairMixture.of(shared, random_state=0).sample(3000, random_state=0)
    assert total_variation(counts, Counts.of(frame)) < 0.08
