"""Weave against its recipe, written out with loops and n × n matrices."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from tabweave import Counts, OneHot, Table, Weave
from tabweave.counts import counting as _counting
from tabweave.counts import couplings
from tabweave.datasets import led24, make_coupled, three_of_9
from tabweave.embed.weave import column_weights, mean_kernel


def table(seed=0, n=80, columns=4):
    return make_coupled(n, columns, n_values=5, coupling=0.6, random_state=seed).X


def squared(x):
    return ((x[:, None] - x[None]) ** 2).sum(axis=2)


def explicit_gram(counts, column, s=5.0):
    """Centre, scale to unit inertia and average every kernel of every space, one by one."""
    f, n = counts.frequencies[column], counts.n
    span = counts.span(column)
    C, c = counts.pairs.astype(float), counts.value_counts.astype(float)
    others = [w for w in range(len(c)) if not span.start <= w < span.stop]
    block, own, theirs = C[span][:, others], c[span], c[others]
    spaces = [
        f[:, None],
        (block + s * f[:, None]) / (theirs + s),
        (block + s * theirs / n) / (own[:, None] + s),
    ]
    centre = np.eye(len(f)) - np.outer(np.ones(len(f)), f)
    grams = [np.eye(len(f))]
    for x in spaces:
        grams += [np.exp(-squared(x) / (2 * w * w)) for w in couplings.WIDTHS]
        grams += [(x @ x.T) ** d for d in couplings.DEGREES]
    centred = [centre @ g @ centre.T for g in grams]
    inertia = [np.diag(g) @ f for g in centred]
    return np.mean([g / t for g, t in zip(centred, inertia, strict=True) if t > 1e-8], axis=0)


@pytest.mark.parametrize("seed", range(2))
def test_distances_are_those_of_all_kernels_side_by_side(seed):
    """Compaction from 43 V features to V - 1 dimensions leaves distances unchanged."""
    X = table(seed)
    weave = Weave().fit(X)
    counts = weave.counts_
    for a, name in enumerate(counts.names):
        G = weave.weights_[name] * explicit_gram(counts, a)
        expected = np.diag(G)[:, None] + np.diag(G) - 2 * G
        assert np.allclose(weave.value_distances(name) ** 2, expected, atol=1e-8)
        assert weave.tables_.widths[a] <= counts.sizes[a] - 1
    Z, V = OneHot().fit_transform(X), counts.offsets[-1]
    whole = np.zeros((V, V))
    for a, name in enumerate(counts.names):
        whole[counts.span(a), counts.span(a)] = weave.weights_[name] * explicit_gram(counts, a)
    S = Z @ whole @ Z.T
    expected = np.diag(S)[:, None] + np.diag(S) - 2 * S
    assert np.allclose(weave.pairwise_distances(X) ** 2, expected, atol=1e-8)


@pytest.mark.parametrize("k", [2, 3])
def test_the_projection_is_pca_of_the_embedding(k):
    X = table(3)
    scores = PCA(2 * k, svd_solver="full").fit_transform(Weave().fit_transform(X))
    short = Weave(n_clusters=k).fit_transform(X)
    short = short - short.mean(axis=0)
    assert short.shape == scores.shape
    assert np.allclose(np.abs(short), np.abs(scores), atol=1e-8)


def test_column_weights_by_hand():
    X = table(1, n=40, columns=3)
    counts = Counts.of(Table.of(X))
    n, names = 40, counts.names
    columns = list(X.T)

    def entropy(items):
        share = np.array([items.count(v) for v in set(items)]) / n
        return -(share * np.log(share)).sum()

    raw = []
    for a in range(3):
        x, tied = list(columns[a]), 0.0
        for b in set(range(3)) - {a}:
            y = list(columns[b])
            mutual = entropy(x) + entropy(y) - entropy(list(zip(x, y, strict=True)))
            mutual -= (len(set(x)) - 1) * (len(set(y)) - 1) / (2 * n)
            tied += 2 * max(0, mutual) / (entropy(x) + entropy(y))
        raw.append(np.sqrt(entropy(x) * np.sqrt(tied)))
    assert np.allclose(column_weights(counts), np.array(raw) / np.mean(raw))
    assert dict(zip(names, column_weights(counts), strict=True)) == Weave().fit(X).weights_


def test_columns_without_dependence_weigh_by_entropy():
    counts = Counts.of(Table.of(three_of_9().X))
    assert np.allclose(column_weights(counts), 1)


@pytest.mark.parametrize("k", [None, 2, 5])
def test_three_of_9_does_not_collapse(k):
    data = three_of_9()
    vectors = Weave(n_clusters=k).fit_transform(data.X)
    assert len(np.unique(vectors.round(6), axis=0)) == len(vectors) == 512


def test_a_column_with_one_value_is_kept_and_adds_nothing():
    X = {"same": ["x"] * 6, "a": list("uvuvww"), "b": list("ppqqpp")}
    with_it, without = Weave().fit(X), Weave().fit({k: X[k] for k in "ab"})
    assert with_it.counts_.names == ["same", "a", "b"]
    assert with_it.weights_["same"] == 0 and with_it.tables_.widths[0] == 0
    # The constant changes the mean weight and adds a constant to each space, no more.
    assert with_it.explain(["x", "u", "p"], ["x", "v", "q"])["same"] == 0
    assert with_it.transform(X).shape == without.transform({k: X[k] for k in "ab"}).shape
    for k in (None, 2):
        assert Weave(k).fit_transform({"same": ["x"] * 6}).shape == (6, 0)


@pytest.mark.parametrize("k", [None, 2])
def test_one_column_and_two_rows(k):
    lone = Weave(k).fit_transform({"a": list("uvw")})
    assert len(np.unique(lone.round(8), axis=0)) == 3
    two = Weave(k).fit_transform({"a": list("uv"), "b": list("xy")})
    assert two.shape[0] == 2 and np.linalg.norm(two[0] - two[1]) > 0.1


@pytest.mark.parametrize("k", [1, 0, -2, 2.0])
def test_impossible_numbers_of_clusters(k):
    with pytest.raises(ValueError, match=r"'n_clusters' .* int in the range \[2, inf\) or None"):
        Weave(n_clusters=k).fit(table())


def test_more_clusters_than_rows():
    with pytest.raises(ValueError, match="n_clusters of at most n_samples=80, got 81"):
        Weave(n_clusters=81).fit(table())


def test_bad_parameters():
    for parameters in ({"smoothing": -1}, {"max_landmarks": 1}, {"kernels": ["gauss1"]}):
        ((name, _),) = parameters.items()
        with pytest.raises(ValueError, match=f"'{name}' parameter of Weave"):
            Weave(**parameters).fit(table())


@pytest.mark.parametrize("k", [None, 3])
def test_however_the_rows_arrive(k):
    X = led24(90, random_state=1).X
    whole = Weave(k).fit(X)
    parts = Weave(k).partial_fit(X[:30]).partial_fit(X[30:50]).partial_fit(X[50:])
    assert np.array_equal(parts.transform(X), whole.transform(X))
    weight = np.random.default_rng(0).integers(0, 3, 90)
    weighted = Weave(k).fit(X, sample_weight=weight)
    repeated = Weave(k).fit(np.repeat(X, weight, axis=0))
    assert np.allclose(weighted.pairwise_distances(X), repeated.pairwise_distances(X), atol=1e-8)
    tiny = Weave(k).fit(X, sample_weight=np.full(90, 1 / 90))  # adds up to 1, still 90 rows
    assert np.isfinite(tiny.transform(X)).all()


@pytest.mark.parametrize("k", [None, 3])
def test_sparse_counts_give_the_same(k, monkeypatch):
    X = table(2)
    dense = Weave(k).fit(X)
    monkeypatch.setattr(_counting, "DENSE_VALUES", 0)
    thin = Weave(k).fit(X)
    assert not isinstance(thin.counts_.pairs, np.ndarray)
    assert np.allclose(thin.pairwise_distances(X), dense.pairwise_distances(X), atol=1e-8)


def test_sets():
    X = {"tags": [{"a", "b"}, {"a"}, {"b", "c"}, {"c"}], "x": list("uvuv")}
    for k in (None, 2):
        weave = Weave(k, schema={"tags": "set"}).fit(X)
        assert np.isfinite(weave.transform(X)).all()
        assert len(weave.explain(*({c: X[c][i] for c in X} for i in (0, 1)))) == 2


def test_landmarks_say_so_and_are_close():
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 3, 3000)
    big = np.minimum(rng.geometric(0.2, 3000), 12) + 20 * hidden
    X = {"big": big.astype(str), "a": hidden.astype(str), "b": (hidden % 2).astype(str)}
    exact, all_marks = Weave().fit(X), Weave(max_landmarks=36).fit(X)
    near, nearer = Weave(max_landmarks=8).fit(X), Weave(max_landmarks=30).fit(X)
    assert exact.landmarks_ == {} and all_marks.landmarks_ == {}
    assert near.landmarks_ == {"big": 8} and nearer.landmarks_ == {"big": 30}
    d = exact.pairwise_distances(X)[:200]
    assert np.array_equal(all_marks.pairwise_distances(X)[:200], d)
    errors = [np.abs(e.pairwise_distances(X)[:200] - d).mean() / d.mean() for e in (near, nearer)]
    assert errors[1] < 0.05 and errors[0] < 0.5 and errors[1] < errors[0]


def test_kernels_can_be_chosen():
    X = table(4)
    linear = Weave(kernels=couplings.kernel_family((), (1,))).fit(X)
    gram = mean_kernel(linear.counts_, 0, np.arange(len(linear.counts_.labels[0])),
                       couplings.kernel_family((), (1,)), 5.0)  # fmt: skip
    assert np.allclose(gram, gram.T)
    assert not np.allclose(linear.pairwise_distances(X), Weave().fit(X).pairwise_distances(X))


def test_a_column_that_depends_on_nothing_still_tells_rows_apart():
    """Bias-corrected dependence may be exactly 0; a weight of 0 would make such rows equal."""
    rng = np.random.default_rng(0)
    a, noise = rng.integers(3, size=300), rng.integers(2, size=300)
    X = {"a": a.astype(str), "b": ((a + (rng.random(300) < 0.1)) % 3).astype(str)}
    X["noise"] = noise.astype(str)
    weave = Weave().fit(X)
    assert 0 < weave.weights_["noise"] < 0.1 * weave.weights_["a"]
    rows = weave.transform({"a": ["0", "0"], "b": ["0", "0"], "noise": ["0", "1"]})
    assert np.linalg.norm(rows[0] - rows[1]) > 1e-3
