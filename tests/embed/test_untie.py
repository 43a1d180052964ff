"""UNTIE in count space against UNTIE on n × n kernels."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from tabweave import UNTIE, Counts, OneHot, Table
from tabweave.counts import counting as _counting
from tabweave.counts import couplings
from tabweave.datasets import led24, make_coupled, three_of_9
from tabweave.embed.untie import (
    alignments,
    column_kernels,
    column_weights,
    entropic,
    mixed_tables,
    mixture,
)

SMALL = couplings.kernel_family((0.25, 1.0, 4.0), (1, 2))
TABLE_7_3 = {
    "F1": couplings.kernel_family([2.0**e for e in range(-3, 4)], ()),
    "F2": couplings.kernel_family(couplings.WIDTHS, ()),
    "F3": couplings.kernel_family((), (1, 2)),
    "F4": couplings.kernel_family((), (1, 2, 3)),
    "F5": couplings.kernel_family([2.0**e for e in range(-3, 4)], (1, 2)),
    "F6": couplings.kernel_family(couplings.WIDTHS, (1, 2, 3)),
}


def table(seed=0, n=50, columns=3):
    return make_coupled(n, columns, n_values=4, coupling=0.6, random_state=seed).X


def prepared(seed, kernels=SMALL):
    X = table(seed)
    counts = Counts.of(Table.of(X))
    Z = OneHot().fit_transform(X)
    parts = [Z[:, counts.span(a)] for a in range(len(counts.names))]
    mixtures = [mixture(column) for column in column_kernels(counts, kernels, 5.0)]
    return X, counts, Z, parts, mixtures


def top(S, k):
    return np.linalg.eigh(S)[1][:, ::-1][:, :k]


def dense_alignments(parts, mixtures, share, betas, k):
    """tr(HᵀS_pH)/n with all n × n kernels formed; S and H too."""
    n = len(parts[0])
    J = np.eye(n) - 1 / n
    kernels = [[J @ z @ g @ z.T @ J for g in m.stack] for z, m in zip(parts, mixtures, strict=True)]
    S = sum(w * b * K for w, bs, Ks in zip(share, betas, kernels, strict=True)
            for b, K in zip(bs, Ks, strict=True))  # fmt: skip
    H = top(S, k)
    return [np.array([np.trace(H.T @ K @ H) / n for K in Ks]) for Ks in kernels], kernels, H


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("seed", range(2))
def test_alignments_are_projections_of_the_object_kernels(seed, k):
    _, counts, _, parts, mixtures = prepared(seed)
    share = column_weights(counts)
    rng = np.random.default_rng(seed)
    betas = [rng.dirichlet(np.ones(len(m.names))) for m in mixtures]
    ours = alignments(counts, mixtures, mixed_tables(mixtures, share, betas), k)
    theirs, kernels, _ = dense_alignments(parts, mixtures, share, betas, k)
    for a, b in zip(ours, theirs, strict=True):
        assert np.allclose(a, b, atol=1e-8)
        assert (a >= 0).all() and (a <= 1 + 1e-9).all()
    for Ks in kernels:  # centred, unit inertia
        assert np.allclose([np.trace(K) / len(K) for K in Ks], 1, atol=1e-8)


@pytest.mark.parametrize("seed", range(2))
def test_the_objective_is_that_of_the_object_kernels(seed):
    """The whole alternation repeated on n × n matrices, step by step."""
    _, counts, _, parts, mixtures = prepared(seed)
    share, k, tau, n = column_weights(counts), 3, 0.1, counts.n
    betas, trace = entropic(counts, mixtures, share, k, tau, 6)
    current = [np.full(len(m.names), 1 / len(m.names)) for m in mixtures]
    for expected in trace:
        explained, kernels, H = dense_alignments(parts, mixtures, share, current, k)
        current = [np.exp(a / tau) / np.exp(a / tau).sum() for a in explained]
        S = sum(w * b * K for w, bs, Ks in zip(share, current, kernels, strict=True)
                for b, K in zip(bs, Ks, strict=True))  # fmt: skip
        value = np.trace(S @ (np.eye(len(S)) - H @ H.T)) / n
        value += tau * sum(w * (b @ np.log(b)) for w, b in zip(share, current, strict=True))
        assert expected == pytest.approx(value, abs=1e-8)
    for ours, theirs in zip(betas, current, strict=True):
        assert np.allclose(ours, theirs, atol=1e-8)


def test_both_steps_are_minima():
    """No other H and no other weights on the simplex give less."""
    _, counts, _, parts, mixtures = prepared(1)
    share, k, tau = column_weights(counts), 2, 0.1
    betas, trace = entropic(counts, mixtures, share, k, tau, 1)
    uniform = [np.full(len(m.names), 1 / len(m.names)) for m in mixtures]
    explained, _, _ = dense_alignments(parts, mixtures, share, uniform, k)

    def objective(bs):
        parts = [b @ (1 - a + tau * np.log(b)) for a, b in zip(explained, bs, strict=True)]
        return share @ parts

    rng = np.random.default_rng(0)
    for _ in range(50):
        other = [0.9 * b + 0.1 * rng.dirichlet(np.ones(len(b))) for b in betas]
        assert objective(other) >= trace[0] - 1e-12


# -- the estimator ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_never_rises(seed):
    untie = UNTIE(3, max_iter=15).fit(table(seed, n=120, columns=6))
    steps = np.diff(untie.objective_)
    assert (steps <= 1e-9 * np.abs(untie.objective_[0])).all()
    assert untie.n_iter_ == len(untie.objective_) > 1


@pytest.mark.parametrize("seed", [3, 6, 7])
def test_the_objective_never_rises_with_landmarks(seed, monkeypatch):
    """Leaving out what H explains of a column with landmarks made it rise by up to 0.004."""
    X = make_coupled(300, 5, n_values=12, heterogeneity=0.8, random_state=seed).X
    monkeypatch.setattr(couplings, "MAX_LANDMARKS", 10)
    untie = UNTIE(3, temperature=0.05).fit(X)
    assert 0 < len(untie.landmarks_) < 5 and set(untie.landmarks_.values()) == {10}
    assert all(list(untie.weights_[name]) == ["mean"] for name in untie.landmarks_)
    assert (np.diff(untie.objective_) <= 1e-9).all()


def test_landmarks_are_close(monkeypatch):
    """Kernels of columns with landmarks weigh equally: compare where all do."""
    X = make_coupled(300, 5, n_values=12, coupling=0.5, random_state=0).X
    exact = UNTIE(3, temperature=1e3).fit(X)
    assert exact.landmarks_ == {}
    d = exact.pairwise_distances(X)
    errors = []
    for marks in (9, 11):
        monkeypatch.setattr(couplings, "MAX_LANDMARKS", marks)
        near = UNTIE(3, temperature=1e3).fit(X)
        assert set(near.landmarks_.values()) == {marks}
        errors.append(np.abs(near.pairwise_distances(X) - d).mean() / d.mean())
    assert errors[1] < 0.1


def test_weights_are_readable_and_add_up_to_the_columns():
    untie = UNTIE(10).fit(led24(300, random_state=0).X)
    counts = untie.counts_
    assert list(untie.weights_) == counts.names
    share = column_weights(counts)
    for name, w in zip(counts.names, share, strict=True):
        assert sum(untie.weights_[name].values()) == pytest.approx(w)
        assert {key.split("/")[0] for key in untie.weights_[name]} <= {
            "intra", "inter", "reverse", "identity",
        }  # fmt: skip
    hot = UNTIE(10, temperature=1e6).fit(led24(300, random_state=0).X)
    assert np.ptp(list(hot.weights_[counts.names[0]].values())) < 1e-5


@pytest.mark.parametrize("name", TABLE_7_3)
def test_the_kernel_sets_of_table_7_3(name):
    X = table(1, n=80)
    untie = UNTIE(3, kernels=TABLE_7_3[name], max_iter=3).fit(X)
    assert np.isfinite(untie.transform(X)).all()
    used = {key.split("/")[1] for column in untie.weights_.values() for key in column}
    assert used - {"match"} <= set(TABLE_7_3[name]) and used - {"match"}


@pytest.mark.parametrize("k", [2, 4])
def test_three_of_9_does_not_collapse(k):
    vectors = UNTIE(k).fit_transform(three_of_9().X)
    assert len(np.unique(vectors.round(6), axis=0)) == 512


def test_a_column_with_one_value_is_kept_and_adds_nothing():
    X = {"same": ["x"] * 6, "a": list("uvuvww"), "b": list("ppqqpp")}
    untie = UNTIE(2, max_iter=3).fit(X)
    assert list(untie.weights_) == ["same", "a", "b"]
    assert not np.abs(untie.tables_.tables[0]).max(initial=0) > 1e-7
    assert UNTIE(2).fit_transform({"same": ["x"] * 6}).shape == (6, 0)


def test_one_column_and_two_rows():
    lone = UNTIE(2, max_iter=3).fit_transform({"a": list("uvvwww")})
    assert len(np.unique(lone.round(8), axis=0)) == 3
    two = UNTIE(2, max_iter=3).fit_transform({"a": list("uv"), "b": list("xy")})
    assert len(two) == 2 and np.isfinite(two).all()


@pytest.mark.parametrize("k", [1, 0, -1, 2.5])
def test_impossible_numbers_of_clusters(k):
    with pytest.raises(ValueError, match=r"'n_clusters' .* int in the range \[2, inf\)"):
        UNTIE(n_clusters=k).fit(table())


def test_more_clusters_than_rows():
    with pytest.raises(ValueError, match="n_clusters of at most n_samples=50, got 51"):
        UNTIE(n_clusters=51).fit(table())


def test_bad_parameters():
    for parameters in ({"temperature": 0}, {"smoothing": -1}, {"max_iter": 0}, {"kernels": "all"}):
        ((name, value),) = parameters.items()
        with pytest.raises(ValueError, match=f"'{name}' parameter of UNTIE .* Got {value!r}"):
            UNTIE(2, **parameters).fit(table())


def test_however_the_rows_arrive():
    X = led24(90, random_state=1).X
    whole = UNTIE(3).fit(X)
    parts = UNTIE(3).partial_fit(X[:30]).partial_fit(X[30:])
    assert np.array_equal(parts.transform(X), whole.transform(X))
    assert parts.weights_ == whole.weights_
    weight = np.random.default_rng(0).integers(0, 3, 90)
    weighted = UNTIE(3).fit(X, sample_weight=weight)
    repeated = UNTIE(3).fit(np.repeat(X, weight, axis=0))
    assert np.allclose(weighted.pairwise_distances(X), repeated.pairwise_distances(X), atol=1e-7)
    tiny = UNTIE(3).fit(X, sample_weight=np.full(90, 1 / 90))
    assert np.isfinite(tiny.transform(X)).all()


def test_sparse_counts_give_the_same(monkeypatch):
    X = table(2)
    dense = UNTIE(3, max_iter=5).fit(X)
    monkeypatch.setattr(_counting, "DENSE_VALUES", 0)
    thin = UNTIE(3, max_iter=5).fit(X)
    assert not isinstance(thin.counts_.pairs, np.ndarray)
    assert np.allclose(thin.objective_, dense.objective_, atol=1e-8)
    assert np.allclose(thin.pairwise_distances(X), dense.pairwise_distances(X), atol=1e-7)


@pytest.mark.parametrize("k", [2, None])
def test_no_kernel_of_sets_is_a_number_of_elements(k):
    """Of a kernel in which all values are alike nothing is left once it is centred."""
    rng = np.random.default_rng(0)
    sets = [sorted(set(rng.choice(list("pqrs"), 3))) for _ in range(80)]
    X = {"tags": sets, "x": [cell[0] + "uv"[i % 2] for i, cell in enumerate(sets)]}
    untie = UNTIE(k, schema={"tags": "set"}).fit(X)
    weights = list(untie.weights_["tags"].values())
    assert max(weights) < 0.5 * sum(weights)
    assert untie.value_distances("tags").to_numpy()[~np.eye(4, dtype=bool)].min() > 0.01


def test_sets():
    X = {"tags": [{"a", "b"}, {"a"}, {"b", "c"}, {"c"}], "x": list("uvuv")}
    untie = UNTIE(2, schema={"tags": "set"}).fit(X)
    assert np.isfinite(untie.transform(X)).all()
    assert (np.diff(untie.objective_) <= 1e-9).all()


def test_explains_and_compares():
    X = table(0)
    untie = UNTIE(3).fit(X)
    d = untie.pairwise_distances(X)[0, 1]
    assert sum(untie.explain(X[0], X[1]).values()) == pytest.approx(d**2)
    assert untie.value_distances(untie.counts_.names[0]).shape[0] == untie.counts_.sizes[0]


def test_scikit_learn_accepts_it():
    why = "the check sets n_clusters to 1, which is refused"
    names = ("check_dont_overwrite_parameters", "check_methods_subset_invariance",
             "check_fit2d_1feature", "check_fit2d_1sample", "check_fit2d_predict1d")  # fmt: skip
    check_estimator(UNTIE(n_clusters=2), expected_failed_checks=dict.fromkeys(names, why),
                    on_skip=None)  # fmt: skip


def test_without_clusters_the_vectors_are_not_projected():
    """Eq. (7.23): distances are the weighted sums over kernels, column by column."""
    X = make_coupled(80, 4, n_values=4, coupling=0.6, random_state=0).X
    free, eight = UNTIE(None).fit(X), UNTIE(8).fit(X)
    assert free.weights_ == eight.weights_
    shares = free.explain(X[0], X[5])
    assert sum(shares.values()) == pytest.approx(free.pairwise_distances(X[:1], X[5:6])[0, 0] ** 2)
    counts = free.counts_
    mixtures = [mixture(c) for c in column_kernels(counts, couplings.kernel_family(), 5.0)]
    square = np.zeros((80, 80))
    for a, (m, name) in enumerate(zip(mixtures, counts.names, strict=True)):
        weights = np.array(list(free.weights_[name].values()))
        gram = np.tensordot(weights, m.stack, 1)
        codes = np.array([counts.labels[a].index(v) for v in X[:, a]])
        own = gram.diagonal()[codes]
        square += own[:, None] + own - 2 * gram[np.ix_(codes, codes)]
    np.testing.assert_allclose(free.pairwise_distances(X) ** 2, square, atol=1e-9)
    assert free.transform(X).shape[1] > eight.n_clusters // 2
    one = UNTIE(None).fit({"a": list("uv"), "b": list("xy")})
    assert one.transform({"a": list("uv"), "b": list("xy")}).shape[0] == 2


@pytest.mark.parametrize(
    ("kernel", "error", "said"),
    [
        ("rbf", TypeError, "'rbf' .*not callable"),
        (lambda x: x @ x.T, TypeError, "takes 1 positional argument"),
        (lambda xy, xx, yy: xx, ValueError, "one that gives"),
        (lambda xy, xx, yy: xy * np.nan, ValueError, "one that gives .*nan"),
    ],
)
def test_what_is_no_kernel_is_refused_by_name(kernel, error, said):
    rows = {"a": list("xxyy"), "b": list("ppqq")}
    what = r"kernels\['own'\]: expected a function of x·y, \|x\|² and \|y\|² .*"
    with pytest.raises(error, match=what + said):
        UNTIE(2, kernels={"own": kernel}).fit(rows)
