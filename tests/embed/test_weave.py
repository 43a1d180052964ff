"""Weave against its recipe, written out with loops and n × n matrices."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import xlogy
from scipy.stats import entropy as scipy_entropy
from scipy.stats import hypergeom, rankdata, spearmanr
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    mutual_info_score,
)
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from tabweave import (
    FAMD,
    HELIC,
    UNICORN,
    UNTIE,
    Column,
    Counts,
    OneHot,
    SimilarityIndex,
    SupervisedWeave,
    Table,
    Weave,
    load,
)
from tabweave.columns.numeric import Knots
from tabweave.columns.spelling import Spelling
from tabweave.columns.table import take_rows
from tabweave.counts import counting as _counting
from tabweave.counts import couplings
from tabweave.datasets import led24, make_coupled, three_of_9
from tabweave.embed.weave import (
    ColumnCouplings,
    check_clusters,
    checked_weights,
    coupling_gram,
    spelled_factors,
    tie_weights,
    ties,
    told_by_spelling,
)
from tabweave.engines import transform
from tabweave.engines.reading import count_table, read_fitted
from tabweave.evaluate import precision_at_k
from tabweave.space.curves import Curve, two_knots


def table(seed=0, n=80, columns=4):
    return make_coupled(n, columns, n_values=5, coupling=0.6, random_state=seed).X


def squared(x):
    return ((x[:, None] - x[None]) ** 2).sum(axis=2)


def entropy(items):
    share = np.array([items.count(v) for v in set(items)]) / len(items)
    return -(share * np.log(share)).sum()


def coupling_distances(codes, column, s=5.0):
    """The d_a of the docstring: every kernel of every space at unit inertia, their mean scaled."""
    n = len(codes[column])
    own = np.eye(codes[column].max() + 1)[codes[column]]
    others = np.hstack([np.eye(c.max() + 1)[c] for i, c in enumerate(codes) if i != column])
    f, g, pairs = own.mean(axis=0), others.mean(axis=0), own.T @ others
    spaces = [
        f[:, None],
        (pairs + s * f[:, None]) / (n * g + s),
        (pairs + s * g) / (n * f[:, None] + s),
    ]
    found = []
    for x in spaces:
        grams = [np.exp(-squared(x) / (2 * w * w)) for w in couplings.WIDTHS]
        for gram in (*grams, *((x @ x.T) ** d for d in couplings.DEGREES)):
            inertia = f @ np.diag(gram) - f @ gram @ f
            if inertia > 1e-8:
                found.append((np.diag(gram)[:, None] + np.diag(gram) - 2 * gram) / inertia)
    mean = np.mean(found, axis=0)
    return mean * (1 - f @ f) / (f @ mean @ f)


def chance_of(x, y):
    """Mean and variance of the mutual information of shuffled columns, from laws of scipy's."""
    n, counts = len(x), [np.unique(z, return_counts=True)[1] for z in (x, y)]
    mean = expected_mutual_information(contingency_matrix(x, y, sparse=True), n)
    variance = 0.0
    for a in counts[0]:
        for b in counts[1]:
            k = np.arange(max(a + b - n, 0), min(a, b) + 1)
            p, term = hypergeom(n, a, b).pmf(k), xlogy(k, k * n / (a * b))
            (v, c), (_, w) = np.cov(np.stack([term, k]), aweights=p, ddof=0).reshape(2, 2)
            if w > 0:
                variance += (v - c * c / w) / ((1 - a / n) * (1 - b / n)) / n**2
    return mean, variance


def ties_and_trust(codes):
    """``s_a``, the trust in it and ``c_a``, by counting."""
    shared, alike, above = np.zeros((3, len(codes), len(codes)))
    for a, x in enumerate(codes):
        for b, y in enumerate(codes):
            if a != b:
                x, y = list(x), list(y)
                mutual = entropy(x) + entropy(y) - entropy(list(zip(x, y, strict=True)))
                mean, variance = chance_of(x, y)
                more = max(0, mutual - mean)
                shared[a, b] = 2 * more / (entropy(x) + entropy(y))
                alike[a, b] = (more / (max(entropy(x), entropy(y)) - mean)) ** 16
                above[a, b] = (mutual - mean) / np.sqrt(variance * (len(codes) - 1))
    trusted = np.clip((above.sum(axis=1) - 2) / 2, 0, 1)
    trusted *= min(max(8 * shared.sum(axis=1).max() - 1, 100 * shared.max() - 5, 0), 1)
    copied = alike.sum(axis=1)
    return (shared * (1 - alike) / (1 + copied)).sum(axis=1), trusted, copied


def column_weights(codes):
    """``max(√(t_a s_a), 0.1)^¼ / (1 + c_a)``, mean 1."""
    tied, trusted, copied = ties_and_trust(codes)
    raw = np.maximum(np.sqrt(tied * trusted), 0.1) ** 0.25 / (1 + copied)
    return raw / raw.mean()


def value_differences(codes, a):
    """Couplings as far as they are trusted, half of them at most; the rest is mismatch."""
    times = np.bincount(codes[a])
    known = (times**2 / (times + 5)).sum() / times.sum()
    share = ties_and_trust(codes)[1][a] / 2 * known
    d = coupling_distances(codes, a)
    return share * d + (1 - share) * (1 - np.eye(len(d)))


def coded(columns):
    return [np.unique(np.asarray(c, dtype=str), return_inverse=True)[1] for c in columns]


@pytest.mark.parametrize("seed", range(2))
def test_distances_are_those_of_the_recipe(seed):
    """Compaction from 42 V features to one axis a value leaves distances unchanged."""
    X = table(seed)
    weave, codes = Weave().fit(X), coded(X.T)
    weights, expected = column_weights(codes), 0
    np.testing.assert_allclose(list(weave.weights_.values()), weights)
    for a, name in enumerate(weave.counts_.names):
        values = weights[a] * value_differences(codes, a)
        np.testing.assert_allclose(weave.value_distances(name) ** 2, values, atol=1e-8)
        assert weave.tables_.widths[a] <= weave.counts_.sizes[a]
        expected = expected + values[np.ix_(codes[a], codes[a])]
    np.testing.assert_allclose(weave.pairwise_distances(X) ** 2, expected, atol=1e-8)
    E = weave.transform(X)
    np.testing.assert_allclose(squared(E), expected, atol=1e-8)


def test_columns_are_scaled_as_mismatches_are():
    X = table(5, n=300)
    weave, one_hot = Weave().fit(X), OneHot().fit(X)
    for a, name in enumerate(weave.counts_.names):
        f = weave.counts_.frequencies[a]
        ours = weave.value_distances(name).to_numpy() ** 2 / weave.weights_[name]
        plain = one_hot.value_distances(name).to_numpy() ** 2 / 2
        assert f @ ours @ f == pytest.approx(f @ plain @ f)


# -- numbers ------------------------------------------------------------------------------------


def bins_of(x, n_bins=16):
    """Quantile bins by hand; -1 is missing."""
    present = x[~np.isnan(x)]
    edges = np.unique(np.quantile(present, np.arange(1, n_bins) / n_bins))
    found = np.searchsorted(edges[edges > present.min()], x, side="right")
    return np.where(np.isnan(x), -1, found)


def mixed(n=400, seed=0, gaps=0.1):
    rng = np.random.default_rng(seed)
    job = rng.choice(["cook", "clerk", "judge"], n)
    pay = np.where(job == "judge", 3.0, 1.0) * rng.lognormal(size=n)
    age = np.where(rng.random(n) < gaps, np.nan, rng.normal(40, 10, n))
    return {"job": job, "pay": pay, "town": rng.choice(["u", "v"], n), "age": age}


def test_numbers_are_coupled_through_their_bins():
    X = mixed(gaps=0)
    X["pay"], X["age"] = X["pay"].round(1), X["age"].round()
    assert max(len(np.unique(X[name])) for name in ("pay", "age")) <= 126  # a bucket for each
    weave = Weave().fit(X)
    codes = coded([X["job"], bins_of(X["pay"]), X["town"], bins_of(X["age"])])
    weights = column_weights(codes)
    np.testing.assert_allclose(list(weave.weights_.values()), weights)
    expected = weights[0] * value_differences(codes, 0)
    np.testing.assert_allclose(weave.value_distances("job") ** 2, expected, atol=1e-8)


def shares_of(weave, X, name, pairs):
    """Return one column's share in the squared distances of some pairs of rows."""
    left, right = (take_rows(Table.of(X, weave.schema_), np.asarray(rows)) for rows in pairs)
    return weave.space_.only([name]).shares(left, right)[name]


@pytest.mark.parametrize("draw", ["normal", "uniform", "lognormal", "exponential"])
def test_numbers_differ_by_their_difference_and_their_ranks(draw):
    rng = np.random.default_rng(0)
    X = {**mixed(1000), "x": getattr(rng, draw)(size=1000)}
    weave, x = Weave().fit(X), X["x"]
    rank = rankdata(x) / len(x)
    g = (x / x.std() / (2 / np.sqrt(np.pi)) + 3 * rank) / 2
    pairs = rng.integers(0, 1000, (2, 4000))
    expected = np.abs(g[pairs[0]] - g[pairs[1]])
    found = shares_of(weave, X, "x", pairs) / weave.weights_["x"]
    assert np.corrcoef(found, expected)[0, 1] > 0.95
    assert spearmanr(found, expected).statistic > 0.95
    assert found.mean() == pytest.approx(1, abs=0.1)
    assert np.abs(found - expected / expected.mean()).mean() < 0.2


def test_ranks_and_grades_follow_the_same_formula():
    """On the values of a grade, three curves and g hold the whole ladder of up to five steps."""
    rng = np.random.default_rng(1)
    rows = {"grade": rng.integers(1, 5, 500), "job": rng.choice(["a", "b"], 500)}
    weave = Weave(schema={"grade": "ordinal"}).fit(rows)
    x = rows["grade"]
    f = np.bincount(x)[1:] / 500
    below = np.cumsum(f) - f / 2
    g = (np.arange(4) / x.std() / (2 / np.sqrt(np.pi)) + 3 * below) / 2
    expected = np.abs(g[:, None] - g)
    expected *= weave.weights_["grade"] / (f @ expected @ f)
    found = weave.value_distances("grade").to_numpy() ** 2
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_missing_number_is_as_far_from_others_as_they_are_from_each_other():
    X = mixed(1000)
    weave, rng = Weave().fit(X), np.random.default_rng(0)
    here, gone = np.flatnonzero(~np.isnan(X["age"])), np.flatnonzero(np.isnan(X["age"]))
    among = shares_of(weave, X, "age", rng.choice(here, (2, 4000))).mean()
    between = shares_of(weave, X, "age", (rng.choice(here, 4000), rng.choice(gone, 4000))).mean()
    assert between == pytest.approx(among, rel=0.05)
    np.testing.assert_allclose(shares_of(weave, X, "age", (gone[:5], gone[5:10])), among, rtol=0.05)
    never = {**{name: column[:1] for name, column in X.items()}, "pay": [None]}
    assert np.isfinite(weave.transform(never)).all()  # pay has no gap in fit: the mean


def test_numbers_beyond_those_of_fit_stay_apart():
    X = mixed()
    weave = Weave().fit(X)
    row = {name: column[0] for name, column in X.items()}
    shares = [weave.explain({**row, "pay": 1e3}, {**row, "pay": v})["pay"] for v in (2e3, 3e3)]
    assert 0 < shares[0] < shares[1]


def test_a_number_below_a_heap_of_equal_ones_is_not_cast_away():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.zeros(700), rng.exponential(size=300)])
    weave = Weave().fit({"x": x})
    below, above = weave.pairwise_distances({"x": [0.0]}, {"x": [-1.0, 20.0]})[0] ** 2
    assert 0 < below < above


def test_few_bins_of_numbers_do_not_depend_on_the_order_of_rows():
    """Most numbers in one bin: directions without length are arbitrary, and count for nothing."""
    x = np.repeat([4, 4.1, 4.2, 4.5, 5.1, 6.3, 8.4], [222, 1, 3, 25, 17, 4, 1])
    asked = {"x": [3.9, 4.0, 4.1, 5.0, 6.3, 8.4, 9.0]}
    order = [np.random.default_rng(seed).permutation(len(x)) for seed in range(20)]
    found = [Weave().fit({"x": x[rows]}).pairwise_distances(asked) for rows in order]
    np.testing.assert_allclose(found, [found[0]] * len(found), atol=1e-9)
    assert (found[0][~np.eye(7, dtype=bool)] > 0).all()


def test_numbers_are_categories_where_the_schema_says_so():
    rng = np.random.default_rng(0)
    X = {"group": rng.choice([1, 2, 7], 100), "job": rng.choice(["a", "b"], 100)}
    declared = Weave(schema={"group": "nominal"}).fit(X)
    text = Weave().fit({**X, "group": X["group"].astype(str)})
    np.testing.assert_allclose(
        declared.pairwise_distances(X),
        text.pairwise_distances({**X, "group": X["group"].astype(str)}),
        atol=1e-9,
    )
    assert declared.numbers_ is None and Weave().fit(X).numbers_.names == ["group"]


@pytest.mark.parametrize("k", [None, 3])
def test_batches_of_numbers_give_what_all_rows_give(k):
    X = mixed()

    def part(start, stop):
        return {name: column[start:stop] for name, column in X.items()}

    whole = Weave(k).fit(X)
    three = (
        Weave(k).partial_fit(part(250, 400)).partial_fit(part(0, 200)).partial_fit(part(200, 250))
    )
    assert three.counts_ == whole.counts_
    np.testing.assert_array_equal(three.transform(X), whole.transform(X))
    first = Weave(k).partial_fit(part(0, 200))
    late = whole.counts_ - first.counts_
    np.testing.assert_array_equal(
        first.fit_counts(first.counts_ + late).transform(X), whole.transform(X)
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("k", [None, 3])
def test_rows_in_files(tmp_path, suffix, k):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(mixed())
    path = tmp_path / f"rows.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    whole, read = Weave(k).fit(frame), Weave(k).fit(path)
    assert read.counts_ == whole.counts_
    np.testing.assert_allclose(read.transform(path), whole.transform(frame), atol=1e-9)
    more = Weave(k).fit(frame).partial_fit(path)
    np.testing.assert_allclose(
        more.transform(frame), Weave(k).fit(frame).partial_fit(frame).transform(frame), atol=1e-9
    )


@pytest.mark.parametrize("k", [None, 2, 4])
def test_explain_adds_up_to_the_squared_distance(k):
    X = mixed()
    weave = Weave(k).fit(X)
    a, b = ({name: column[i] for name, column in X.items()} for i in (3, 71))
    shares = weave.explain(a, b)
    assert list(shares) == list(X)
    assert sum(shares.values()) == pytest.approx(weave.pairwise_distances([a], [b])[0, 0] ** 2)


@pytest.mark.parametrize("k", [2, 4])
def test_the_projection_holds_nearly_as_much_as_pca(k):
    """The axes are those of the bins, not of each number."""
    X = mixed(1000)
    E, short = Weave().fit_transform(X), Weave(k).fit_transform(X)
    assert short.shape == (1000, 2 * k)
    most = PCA(2 * k).fit(E).explained_variance_.sum()
    assert 0.97 * most < short.var(axis=0).sum() < 1.01 * most


def test_a_value_that_is_none_of_its_levels_is_refused_in_fit():
    rows = {"size": ["S", "M", "L", "XL"] * 9, "c": ["u", "v"] * 18}
    sizes = Column("size", "ordinal", levels=("S", "M", "L"))
    with pytest.raises(ValueError, match=r"column 'size': expected one of .*'L'\], got 'XL'"):
        Weave(schema={"size": sizes}).fit(rows)


def test_counts_of_plain_rows():
    """Counts of grades suffice, and those of numbers, which hold their buckets."""
    rng = np.random.default_rng(0)
    levels = ("low", "mid", "high")
    kinds = {"grade": Column("grade", "ordinal", levels=levels)}
    X = {"grade": rng.choice(levels, 60), "job": rng.choice(["a", "b", "c"], 60)}
    for k in (None, 2):
        counted = Weave(k, schema=kinds).fit_counts(Counts.of(Table.of(X, kinds)))
        fitted = Weave(k, schema=kinds).fit(X)
        np.testing.assert_allclose(counted.transform(X), fitted.transform(X), atol=1e-9)
        assert list(counted.weights_) == ["grade", "job"]
        more, twice = counted.partial_fit(X), fitted.partial_fit(X)
        np.testing.assert_allclose(more.transform(X), twice.transform(X), atol=1e-9)
    numbers = {**X, "age": rng.normal(size=60)}
    fitted = Weave(schema=kinds).fit(numbers)
    halves = ({name: column[i::2] for name, column in numbers.items()} for i in range(2))
    counts = sum((Counts.of(Table.of(rows, kinds)) for rows in halves), Counts())
    assert counts == fitted.counts_
    found = Weave(schema=kinds).fit_counts(counts)
    np.testing.assert_array_equal(found.transform(numbers), fitted.transform(numbers))


def test_the_class_column_of_a_source_is_left_out(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = mixed(50)
    pandas.DataFrame({**X, "y": list("pq") * 25}).to_csv(tmp_path / "rows.csv", index=False)
    weave = Weave().fit(tmp_path / "rows.csv", "y")
    assert weave.schema_.names == list(X) and weave.counts_.classes is None


def test_weak_dependence_leaves_the_ties_of_one_hot():
    """Boards of noughts and crosses depend on each other beyond chance, by a hundredth each."""
    rng = np.random.default_rng(0)
    marks = np.array(list("xxxxxoooo"))
    boards = np.array([rng.permutation(marks) for _ in range(600)])
    tied, trusted, _ = ties(Counts.of(Table.of(boards)))
    assert tied.max() < 0.125
    assert (trusted == 0).all()
    mismatches = (boards[:, None] != boards).sum(axis=2)
    ours = Weave().fit(boards).pairwise_distances(boards) ** 2
    np.testing.assert_allclose(ours, mismatches, atol=1e-9)


def test_a_full_grid_has_the_distances_of_one_hot():
    """Where every combination occurs once nothing is coupled: a mismatch is a mismatch."""
    grid = np.array(list(product("abc", "de", "fghi", "jkl")))
    weave = Weave().fit(grid)
    assert set(weave.weights_.values()) == {1.0}
    mismatches = (grid[:, None] != grid).sum(axis=2)
    np.testing.assert_allclose(weave.pairwise_distances(grid) ** 2, mismatches, atol=1e-9)


# -- projection, weights, edges -----------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3])
def test_the_projection_is_pca_of_the_embedding(k):
    X = table(3)
    scores = PCA(2 * k, svd_solver="full").fit_transform(Weave().fit_transform(X))
    short = Weave(n_clusters=k).fit_transform(X)
    short = short - short.mean(axis=0)
    assert short.shape == scores.shape
    assert np.allclose(np.abs(short), np.abs(scores), atol=1e-8)


def test_columns_without_dependence_weigh_alike():
    assert np.allclose(list(Weave().fit(three_of_9().X.astype(str)).weights_.values()), 1)


@pytest.mark.parametrize("k", [None, 2, 5])
def test_three_of_9_does_not_collapse(k):
    data = three_of_9()
    vectors = Weave(n_clusters=k).fit_transform(data.X.astype(str))
    assert len(np.unique(vectors.round(6), axis=0)) == len(vectors) == 512


def test_a_column_with_one_value_is_kept_and_adds_nothing():
    X = {"same": ["x"] * 6, "a": list("uvuvww"), "b": list("ppqqpp")}
    with_it, without = Weave().fit(X), Weave().fit({k: X[k] for k in "ab"})
    assert with_it.counts_.names == ["same", "a", "b"]
    assert with_it.weights_["same"] == min(with_it.weights_.values())
    assert with_it.tables_.widths[0] == 0
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
    for parameters in ({"n_components": 0}, {"max_landmarks": 1}, {"weights": ["a"]}):
        ((name, _),) = parameters.items()
        with pytest.raises(ValueError, match=f"'{name}' parameter of Weave"):
            Weave(**parameters).fit(table())


@pytest.mark.parametrize("k", [None, 3])
def test_however_the_rows_arrive(k):
    X = led24(90, random_state=1).X.astype(str)
    whole = Weave(k).fit(X)
    parts = Weave(k).partial_fit(X[:30]).partial_fit(X[30:50]).partial_fit(X[50:])
    assert np.array_equal(parts.transform(X), whole.transform(X))
    weight = np.random.default_rng(0).integers(0, 3, 90)
    weighted = Weave(k).fit(X, sample_weight=weight)
    repeated = Weave(k).fit(np.repeat(X, weight, axis=0))
    assert np.allclose(weighted.pairwise_distances(X), repeated.pairwise_distances(X), atol=1e-8)
    tiny = Weave(k).fit(X, sample_weight=np.full(90, 1 / 90))  # adds up to 1, still 90 rows
    assert np.isfinite(tiny.transform(X)).all()


@pytest.mark.parametrize("filled", [0.05, 2.0])
@pytest.mark.parametrize("k", [None, 3])
def test_sparse_counts_give_the_same(k, filled, monkeypatch):
    X = table(2)
    dense = Weave(k).fit(X)
    monkeypatch.setattr(_counting, "DENSE_VALUES", 0)
    monkeypatch.setattr("tabweave.counts.couplings.MIN_DENSE_SHARE", filled)  # 2: never
    thin = Weave(k).fit(X)
    assert not isinstance(thin.counts_.pairs, np.ndarray)
    assert np.allclose(thin.pairwise_distances(X), dense.pairwise_distances(X), atol=1e-8)


def test_sets():
    X = {"tags": [{"a", "b"}, {"a"}, {"b", "c"}, {"c"}], "x": list("uvuv")}
    for k in (None, 2):
        weave = Weave(k, schema={"tags": "set"}).fit(X)
        assert np.isfinite(weave.transform(X)).all()
        assert len(weave.explain(*({c: X[c][i] for c in X} for i in (0, 1)))) == 2


def test_sets_that_are_all_empty_say_nothing():
    rows = {"s": [[], [], []], "c": ["u", "u", "v"]}
    found = Weave().fit(rows).pairwise_distances(rows)
    np.testing.assert_allclose(found, Weave().fit({"c": rows["c"]}).pairwise_distances(rows))


@pytest.mark.parametrize("parameters", [{}, {"n_clusters": 2}, {"n_components": 3}])
def test_a_set_of_unknown_elements_is_neither_empty_nor_the_mean(parameters):
    X = {"tags": [{"a", "b"}, {"a"}, {"b", "c"}, {"c"}, set()] * 4, "x": list("uvuvu") * 4}
    weave = Weave(schema={"tags": "set"}, **parameters).fit(X)
    asked = {"tags": [{"new"}, set(), {"a", "new"}, {"a"}], "x": ["u"] * 4}
    apart = weave.pairwise_distances(asked)
    vectors = weave.transform(asked)
    assert apart[~np.eye(4, dtype=bool)].min() > 0.01
    np.testing.assert_allclose(((vectors[0] - vectors[1:]) ** 2).sum(axis=1), apart[0, 1:] ** 2)
    assert apart[0, 2] < apart[0, 3]


def test_landmarks_say_so_and_are_close():
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 3, 3000)
    big = np.minimum(rng.geometric(0.2, 3000), 12) + 20 * hidden
    X = {
        "big": np.char.add("v", big.astype(str)),
        "a": hidden.astype(str),
        "b": (hidden % 2).astype(str),
    }
    exact, all_marks = Weave().fit(X), Weave(max_landmarks=36).fit(X)
    near, nearer = Weave(max_landmarks=8).fit(X), Weave(max_landmarks=30).fit(X)
    assert exact.landmarks_ == {} and all_marks.landmarks_ == {}
    assert near.landmarks_ == {"big": 8} and nearer.landmarks_ == {"big": 30}
    d = exact.pairwise_distances(X)[:200]
    assert np.array_equal(all_marks.pairwise_distances(X)[:200], d)
    errors = [np.abs(e.pairwise_distances(X)[:200] - d).mean() / d.mean() for e in (near, nearer)]
    assert errors[1] < 0.05 and errors[0] < 0.5 and errors[1] < errors[0]


def many_values(n_values, n=None, seed=0):
    """Rows of a column of many values, each of which occurs, tied to two others."""
    rng = np.random.default_rng(seed)
    values = np.concatenate([np.arange(n_values), rng.integers(n_values, size=n or n_values)])
    group = values % 7
    other = np.where(rng.random(len(values)) < 0.2, rng.integers(7, size=len(values)), group)
    tail = np.array([f"N{v:05}" for v in values], dtype=object)
    return {"tail": tail, "group": group.astype(str), "other": other.astype(str)}


@pytest.mark.parametrize(("n_values", "tied"), [(600, True), (2000, False), (5000, False)])
def test_no_two_values_collapse_however_many_there_are(n_values, tied):
    """Beyond 512 values, most had the vector of the next best or of the origin."""
    X = many_values(n_values, 20 * n_values if tied else None)
    weave = Weave().fit(X)
    assert weave.landmarks_ == {"tail": 512}
    rows = weave.tables_.tables[0]
    assert rows.shape == (n_values + 1, 128)
    assert len(np.unique(rows.round(9), axis=0)) == n_values + 1
    some = {name: column[: n_values : n_values // 40] for name, column in X.items()}
    d = weave.pairwise_distances(some)
    assert d[~np.eye(len(d), dtype=bool)].min() > 0.3
    a, b = ({name: column[i] for name, column in some.items()} for i in (3, 11))
    assert sum(weave.explain(a, b).values()) == pytest.approx(d[3, 11] ** 2)


@pytest.mark.parametrize("k", [None, 3])
def test_the_others_that_see_through_landmarks_keep_values_apart_too(k, monkeypatch):
    monkeypatch.setattr(couplings, "MAX_LANDMARKS", 150)
    X = many_values(300)
    y = (np.arange(600) % 3).astype(str)
    few = {"max_landmarks": 150}
    models = [Weave(k, **few), UNICORN(k), UNTIE(3)]
    if k is None:
        models = [UNICORN(), SupervisedWeave(**few), HELIC(n_pairs=500, random_state=0)]
    for model in models:
        vectors = model.fit(X, y).transform({name: column[:300] for name, column in X.items()})
        assert len(np.unique(vectors.round(9), axis=0)) == 300, model


def test_dimensions_never_shrink_as_rows_are_added():
    X = many_values(900, 4000)
    widths = []
    for n in (60, 120, 200, 700, 4900):
        some = {name: column[:n] for name, column in X.items()}
        model = Weave(schema={"tail": "nominal"}).fit(some)
        widths.append(model.tables_.widths[0])
    assert widths[0] == 60 and widths == sorted(widths) and widths[-1] == 128


def test_many_values_are_compared_as_few_are():
    """Of 150 values, 64 directions and what is left: within 2 % of the formula, written out."""
    rng = np.random.default_rng(0)
    codes = [rng.permuted(np.repeat(np.arange(150), 40)), rng.integers(4, size=6000)]
    codes.append((codes[0] // 15 + (rng.random(6000) < 0.1)) % 10)
    X = {name: [f"{i}." for i in code] for name, code in zip("abc", codes, strict=True)}
    weave = Weave(schema={"a": Column("a", spelling=False)}).fit(X)
    order = np.array([int(label[:-1]) for label in weave.counts_.labels[0]])
    share = 40 / 45 / 2  # each value occurs 40 times
    coupled = coupling_distances(codes, 0)[np.ix_(order, order)]
    expected = share * coupled + (1 - share) * (1 - np.eye(150))
    found = weave.value_distances("a").to_numpy() ** 2 / weave.weights_["a"]
    assert weave.landmarks_ == {} and weave.tables_.widths[0] == 128
    assert np.abs(found - expected).max() < 0.02 * expected.max()


def test_an_index_finds_the_distances_of_many_values(tmp_path):
    X = many_values(600, 2000)
    weave = Weave().fit(X)
    some = {name: column[700:720] for name, column in X.items()}
    expected = np.sort(weave.pairwise_distances(some, X), axis=1)[:, :5]
    index = SimilarityIndex(weave).fit(X)
    np.testing.assert_allclose(index.query(some, k=5).distances, expected, atol=1e-6)
    weave.save(tmp_path / "many.tabweave")
    again = load(tmp_path / "many.tabweave")
    np.testing.assert_array_equal(again.transform(some), weave.transform(some))
    np.testing.assert_array_equal(again.pairwise_distances(some), weave.pairwise_distances(some))


def test_principal_components_are_those_of_the_rows():
    X = table(4)
    E = Weave().fit_transform(X)
    model = Weave(n_components=3).fit(X)
    centred = E - E.mean(axis=0)
    values = np.linalg.svd(centred, compute_uv=False)[:3]
    found = model.transform(X)
    np.testing.assert_allclose(np.linalg.norm(found - found.mean(axis=0), axis=0), values)
    assert model.transform(X[:2]).shape == (2, 3)  # nothing is learned from new rows
    shares = model.explain(X[0], X[1])
    assert sum(shares.values()) == pytest.approx(((found[0] - found[1]) ** 2).sum())
    assert Weave(n_components=10_000).fit_transform(X).shape[1] < E.shape[1] + 1
    assert np.array_equal(Weave(2, n_components=3).fit_transform(X), found)


def test_principal_components_with_numbers_keep_the_most():
    rows = {"n": np.linspace(0, 9, 50), "m": np.linspace(0, 9, 50) ** 2, "c": ["u", "v"] * 25}
    found = Weave(n_components=2).fit(rows)
    assert found.transform(rows).shape == (50, 2)
    E, P = Weave().fit_transform(rows), found.transform(rows)
    least = np.sort(np.linalg.eigvalsh(np.cov(E.T)))[::-1][:2].sum()
    assert 0.98 * least < np.trace(np.cov(P.T)) <= least + 1e-9


def test_weights_of_columns_multiply_what_is_learned():
    X = {"a": list("uvuv") * 5, "b": list("xxyz") * 5, "n": np.arange(20.0) ** 2}
    plain, weighed = Weave().fit(X), Weave(weights={"a": 4, "n": 0}).fit(X)
    one, two = ({name: X[name][i] for name in X} for i in (0, 3))
    before, after = plain.explain(one, two), weighed.explain(one, two)
    assert after["a"] == pytest.approx(4 * before["a"])
    assert after["b"] == pytest.approx(before["b"]) and after["n"] == 0
    assert weighed.weights_["a"] == pytest.approx(4 * plain.weights_["a"])
    with pytest.raises(ValueError, match=r"columns \['a', 'b', 'n'\], got one of 'q'"):
        Weave(weights={"q": 1}).fit(X)
    with pytest.raises(ValueError, match="numbers >= 0, got 'a': -1"):
        Weave(weights={"a": -1}).fit(X)


def test_a_column_that_depends_on_nothing_still_tells_rows_apart():
    """Bias-corrected dependence may be exactly 0; a weight of 0 would make such rows equal."""
    rng = np.random.default_rng(0)
    a, noise = rng.integers(3, size=300), rng.integers(2, size=300)
    X = {"a": a.astype(str), "b": ((a + (rng.random(300) < 0.1)) % 3).astype(str)}
    X["noise"] = noise.astype(str)
    weave = Weave().fit(X)
    assert 0 < weave.weights_["noise"] < 0.6 * weave.weights_["a"]
    rows = weave.transform({"a": ["0", "0"], "b": ["0", "0"], "noise": ["0", "1"]})
    assert np.linalg.norm(rows[0] - rows[1]) > 1e-3


def test_grades_and_numbers_of_a_file_of_text_are_read_as_in_fit(tmp_path):
    pandas = pytest.importorskip("pandas")
    kinds = {"grade": Column("grade", "ordinal", levels=("low", "mid", "high"))}
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({**mixed(80), "grade": rng.choice(["low", "mid", "high"], 80)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    weave = Weave(schema=kinds).fit(frame)
    np.testing.assert_allclose(weave.transform(tmp_path / "rows.csv"), weave.transform(frame))
    transform(weave, tmp_path / "rows.csv", tmp_path / "vectors.csv")
    found = pandas.read_csv(tmp_path / "vectors.csv").to_numpy()
    np.testing.assert_allclose(found, weave.transform(frame), atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_columns_that_say_the_same_share_one_weight(seed):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, 500)
    noisy = [np.where(rng.random(500) < 0.7, group, rng.integers(0, 4, 500)) for _ in range(3)]
    frame = pd.DataFrame({f"c{i}": cells.astype(str) for i, cells in enumerate(noisy)})
    frame["coin"] = rng.integers(0, 2, 500).astype(str)
    alone = Weave().fit(frame).weights_
    names = {value: f"name of {value}" for value in "0123"}
    both = Weave().fit(frame.assign(code=frame["c0"].map(names))).weights_
    assert both["code"] == pytest.approx(both["c0"])
    for column in ("c1", "c2", "coin"):
        ratio = (both["c0"] + both["code"]) / both[column]
        assert ratio == pytest.approx(alone["c0"] / alone[column], rel=0.02)


def test_a_copy_of_few_cells_takes_little_weight_from_the_column():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 1000).astype(str)
    noisy = np.where(rng.random(1000) < 0.7, a, "0")
    few = np.where(np.arange(1000) % 20 == 0, a, None)
    weights = Weave().fit(pd.DataFrame({"a": a, "noisy": noisy, "few": few})).weights_
    assert weights["few"] < 0.65 * weights["a"] and weights["a"] > 0.9 * weights["noisy"]


def test_weights_are_one_in_the_mean_where_a_column_has_parts():
    """A column of dates has a trend and rings; what they weigh together is one weight."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + np.arange(800) * np.timedelta64(31, "h")
    season = np.array(list("wsuf"))[(np.arange(800) * 31 // 24 // 91) % 4]
    rows = {"t": days, "season": season, "warm": np.where(season == "u", "yes", "no"),
            "noise": rng.choice(list("abc"), 800)}  # fmt: skip
    model = Weave().fit(rows)
    assert len(model._counted.owners) > len(model.weights_) == 4
    weights = np.array(list(model.weights_.values()))
    np.testing.assert_allclose(weights.mean(), 1)
    assert np.ptp(weights) > 0.1
    weighed = Weave(weights={"t": 3.0}).fit(rows).weights_
    for name, weight in model.weights_.items():
        np.testing.assert_allclose(weighed[name], weight * (3 if name == "t" else 1))


def test_spelled_values_lie_as_far_apart_as_mismatches_however_often_they_are_counted():
    spelling = Spelling(("apple", "apples", "pear", "plum"))
    f = np.array([0.4, 0.3, 0.2, 0.1])
    rows = spelled_factors(spelling, spelling.labels, f).common
    squares = ((rows[:, None] - rows) ** 2).sum(axis=2)
    np.testing.assert_allclose(f @ squares @ f, 1 - f @ f)
    again = spelled_factors(spelling, spelling.labels, 3 * f)  # elements of sets
    np.testing.assert_allclose(again.common, rows)


class TestWideTables:
    """More columns than all pairs of bins, or of values, can be counted of."""

    @staticmethod
    def rows(n, d, seed=0):
        rng = np.random.default_rng(seed)
        return rng.normal(size=(n, 5)) @ rng.normal(size=(5, d)) + rng.normal(size=(n, d))

    @pytest.mark.parametrize(
        ("columns", "buckets"), [(1, 126), (16, 126), (32, 64), (128, 16), (600, 4), (2100, 4)]
    )
    def test_buckets_are_as_many_as_can_be_counted(self, columns, buckets):
        assert _counting.most_paired(columns) == buckets

    def test_fewer_buckets_change_weights_only(self, monkeypatch):
        X = self.rows(120, 12)
        full = Weave().fit(X)
        assert repr(full) == "Weave()"
        monkeypatch.setattr(_counting, "MAX_PAIRED_BUCKETS", 96)
        few = Weave().fit(X)
        assert max(few.counts_.sizes) == 8
        factor = np.array(list(few.weights_.values())) / list(full.weights_.values())
        both = zip(full.numbers_.rows, few.numbers_.rows, factor, strict=True)
        for before, after, weight in both:
            np.testing.assert_allclose(after, before * np.sqrt(weight), atol=1e-9)
        assert repr(few) == "Weave()\ncoupled in at most 8 bins each: 12 numbers"

    def test_parts_of_rows_add_up_to_all(self, monkeypatch):
        monkeypatch.setattr(_counting, "MAX_PAIRED_BUCKETS", 96)
        X = self.rows(120, 12)
        X[::7, 3] = np.nan
        model = Weave().fit(X)
        parts = [
            count_table(model, read_fitted(model, rows), None, None) for rows in (X[:50], X[50:])
        ]
        assert parts[0] + parts[1] == model.counts_
        assert model.counts_ - parts[1] == parts[0]

    def test_components_of_fewer_bins_are_those_of_the_rows(self, monkeypatch):
        X = self.rows(400, 12)
        monkeypatch.setattr(_counting, "MAX_PAIRED_BUCKETS", 192)
        vectors = Weave().fit_transform(X)
        centred = vectors - vectors.mean(axis=0)
        exact = np.linalg.svd(centred, compute_uv=False)[:5] ** 2
        found = Weave(n_components=5).fit_transform(X)
        kept = ((found - found.mean(axis=0)) ** 2).sum()
        assert kept > 0.97 * exact.sum()

    def test_wide_tables_are_not_coupled(self, tmp_path):
        X = pd.DataFrame(self.rows(30, 2100)).add_prefix("g")
        X["kind"] = ["a", "b", "c"] * 10
        model = Weave().fit(X)
        vectors = model.transform(X)
        assert "not coupled: 2,101 columns, more than 2,048" in repr(model)
        assert len(set(model.weights_.values())) == 1
        assert model.counts_.pairs.nnz == model.counts_.offsets[-1]
        shares = model.explain(X.iloc[0], X.iloc[1])
        np.testing.assert_allclose(sum(shares.values()), ((vectors[0] - vectors[1]) ** 2).sum())
        narrow = Weave().fit(X[["g0", "g1", "kind"]])
        np.testing.assert_allclose(shares["kind"], 1.0)
        np.testing.assert_allclose(
            shares["g0"] / shares["g1"],
            np.divide(*(narrow.explain(X.iloc[0], X.iloc[1])[n] for n in ("g0", "g1")))
            / np.divide(*(narrow.weights_[n] for n in ("g0", "g1"))),
        )
        model.save(tmp_path / "wide.tw")
        np.testing.assert_array_equal(load(tmp_path / "wide.tw").transform(X), vectors)
        np.testing.assert_array_equal(
            Weave().partial_fit(X).partial_fit(X).counts_.value_counts,
            2 * model.counts_.value_counts,
        )
        with pytest.raises(
            ValueError, match="at most 2,048 columns with n_clusters or n_components"
        ):
            Weave(n_components=3).fit(X)

    def test_wide_tables_with_a_target(self):
        X = self.rows(60, 2100)
        y = np.where(X[:, 7] > 0, "up", "down")
        model = SupervisedWeave().fit(X, y)
        assert max(model.weights_, key=model.weights_.get) == "x7"
        assert np.isfinite(model.transform(X)).all()
        assert model.counts_.class_pairs.sum() == 60 * 2100


@pytest.mark.parametrize("n_empty", [0, 300])
def test_kernels_of_a_column_of_sets_have_the_mean_distance_of_its_mismatches(n_empty):
    """Elements occur more or less than once a row: their frequencies do not add up to 1."""
    rng = np.random.default_rng(0)
    sets = [sorted({*rng.choice(list("pqrs"), 3)}) for _ in range(60)] + [[]] * n_empty
    other = rng.choice(list("uv"), len(sets))
    counts = Counts.of(Table.of({"s": sets, "a": other}, {"s": "set"}))
    f = counts.frequencies[0]
    share = f / f.sum()
    assert f.sum() < 0.5 if n_empty else f.sum() > 1.5
    kernels = couplings.kernel_family()
    gram, diagonal, alone = coupling_gram(counts, 0, np.arange(4), kernels, 5.0)
    square = np.diag(gram)[:, None] + np.diag(gram) - 2 * gram
    assert share @ square @ share == pytest.approx(1 - share @ share)
    np.testing.assert_allclose(diagonal, np.diag(gram))
    assert alone == 0 and (square >= -1e-12).all()


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("spelled", [False, True])
def test_a_column_is_as_far_as_its_mismatches_whatever_it_is_compared_by(share, spelled):
    """Couplings, mismatch and spelling are parts of one mean squared distance of two rows."""
    rng = np.random.default_rng(0)
    words = np.array(["alpha", "alpha two", "beta", "beta two", "gamma", "delta"])
    codes = rng.integers(0, 6, 200)
    other = np.where(rng.random(200) < 0.3, codes % 2, rng.integers(0, 2, 200)).astype(str)
    counts = Counts.of(Table.of({"a": words[codes], "b": other}))
    spelling = {"a": Spelling(counts.labels[0])} if spelled else {}
    found = ColumnCouplings(counts, 512, spelling).factors("a", share)
    assert not found.own.any()
    f = counts.frequencies[0]
    square = ((found.common[:, None] - found.common) ** 2).sum(axis=2)
    assert f @ square @ f == pytest.approx(1 - f @ f)
    assert square[~np.eye(6, dtype=bool)].min() > 0.1 * (share < 1)
    if share == 0 and not spelled:
        np.testing.assert_allclose(square, 1 - np.eye(6), atol=1e-12)


@pytest.mark.parametrize("n", [60, 200, 800, 5000])
def test_trust_grows_from_two_to_four_standard_deviations(n):
    """Of scipy's G statistic above its mean under independence, for columns that are tied."""
    from scipy.stats import chi2_contingency
    from scipy.stats.contingency import crosstab

    rng = np.random.default_rng(n)
    codes = rng.integers(0, 4, (n, 3))
    codes[:, 1] = np.where(rng.random(n) < 0.25, codes[:, 0], codes[:, 1])
    _, trust, _ = ties(Counts.of(Table.of(codes.astype(str))))
    tables = {(a, b): crosstab(codes[:, a], codes[:, b]).count for a, b in [(0, 1), (0, 2), (1, 2)]}
    g = {pair: chi2_contingency(t, lambda_="log-likelihood", correction=False).statistic / (2 * n)
         for pair, t in tables.items()}  # fmt: skip
    by_chance = {pair: chance_of(*(codes[:, c] for c in pair)) for pair in tables}
    shared = {
        pair: 2
        * max(g[pair] - by_chance[pair][0], 0)
        / sum(scipy_entropy(t.sum(i)) for i in (0, 1))
        for pair, t in tables.items()
    }
    sums = [sum(shared[pair] for pair in tables if a in pair) for a in range(3)]
    strong = max(5 * (max(shared.values()) / 0.05 - 1), max(sums) / 0.125 - 1)
    for a in range(3):
        deviations = [(g[pair] - m) / np.sqrt(v) for pair, (m, v) in by_chance.items() if a in pair]
        wanted = np.clip(sum(deviations) / np.sqrt(2) / 2 - 1, 0, 1) * np.clip(strong, 0, 1)
        assert trust[a] == pytest.approx(wanted, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("copied", [0.05, 0.2, 0.35, 0.6])
@pytest.mark.parametrize("groups", [(), ("u", "v", "w", "v", "u")])
def test_ties_are_those_of_scikit_learn(copied, groups):
    """Mutual information and entropies by another library, and the docstring's bounds of trust."""
    rng = np.random.default_rng(int(100 * copied))
    n, sizes = 150, [2, 3, 4, 2, 5]
    x = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    x[:, 3] = np.where(rng.random(n) < copied, x[:, 0], x[:, 3])
    x[:, 4] = np.where(rng.random(n) < copied, x[:, 2], x[:, 4])
    own = groups or range(5)
    mutual, shared, expected, variance, alike = np.zeros((5, 5, 5))
    for a in range(5):
        for b in range(5):
            if own[a] == own[b]:
                continue
            expected[a, b], variance[a, b] = chance_of(x[:, a], x[:, b])
            mutual[a, b] = mutual_info_score(x[:, a], x[:, b])
            h = sum(entropy(x[:, c].tolist()) for c in (a, b))
            shared[a, b] = 2 * max(mutual[a, b] - expected[a, b], 0) / h
            adjusted = adjusted_mutual_info_score(x[:, a], x[:, b], average_method="max")
            alike[a, b] = max(adjusted, 0) ** 16
    sums = shared.sum(axis=1)
    compared = np.array([[own[a] != own[b] for b in range(5)] for a in range(5)]).sum(axis=1)
    each = (mutual - expected) / np.sqrt(np.where(variance > 0, variance, 1))
    deviations = each.sum(axis=1) / np.sqrt(compared)
    trust = np.interp(deviations, [2, 4], [0, 1])
    largest, sum_of_most = shared.max(), sums.max()
    trust *= max(np.clip(100 * largest - 5, 0, 1), np.clip(8 * sum_of_most - 1, 0, 1))
    ours = ties(Counts.of(Table.of(x.astype(str))), groups)
    tied, copies = (shared * (1 - alike) / (1 + alike.sum(axis=1))).sum(axis=1), alike.sum(axis=1)
    for mine, theirs in zip(ours, (tied, trust, copies), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)
    weights = np.maximum(np.sqrt(trust * tied), 0.1) ** 0.25 / (1 + copies)
    np.testing.assert_allclose(tie_weights(*ours), weights / weights.mean())


@pytest.mark.parametrize("share", [0.03, 0.1, 1.0])
def test_sets_that_few_rows_have_do_not_seem_to_depend_on_others(share):
    """What independent columns share by chance is the more, the less often their values meet."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, 400)
    sets = [sorted({*rng.choice(list("pqrstu"), 3)}) * (rng.random() < share) for _ in kind]
    other = {f"x{i}": np.where(rng.random(400) < 0.7, kind, i).astype(str) for i in range(2)}
    X = {"tags": sets, **other, "coin": rng.choice(list("abcdef"), 400)}
    counts = Weave(schema={"tags": "set"}).fit(X).counts_
    tied, trust, _ = ties(counts)
    assert tied[[0, 3]].max() < 0.1 < 0.2 < tied[1:3].min()
    assert trust.tolist() == [0, 1, 1, 0]


def test_nothing_is_tied_to_a_column_alone():
    for rows in ({"a": ["x", "y"]}, {"a": ["x"], "b": ["u"]}):
        tied, trusted, copied = ties(Counts.of(rows))
        assert not tied.any() and not trusted.any() and not copied.any() and len(tied) == len(rows)


@pytest.mark.parametrize("number", [2.0**53, 1e17, -1.7e18, 1e300])
@pytest.mark.parametrize("model", [Weave, OneHot, FAMD])
def test_one_large_number_says_nothing(model, number):
    """As of nanoseconds since 1970: beyond 2**53 a number and 1 more than it are the same."""
    rows = {"x": [number] * 3, "c": ["u", "v", "u"]}
    wanted = model().fit({"x": [1.0] * 3, "c": rows["c"]}).transform({**rows, "x": [1.0] * 3})
    np.testing.assert_allclose(model().fit(rows).transform(rows), wanted, atol=1e-12)


def test_a_line_through_large_numbers_that_differ_by_little():
    x = np.array([1e17, 1e17 + 16, 1e17 + 16, 1e17, 1e17 + 32])
    found, wanted = (FAMD().fit_transform({"x": own}) for own in (x, x - 1e17))
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], atol=1e-9)


def test_a_curve_has_two_knots_at_least():
    flat = Knots(np.array([3.0]), np.arange(1), np.ones(1), None)
    x, rows = two_knots(Curve("a", flat, np.array([[0.5, 1]]), np.zeros(2)))
    assert x.tolist() == [3, 4] and rows.tolist() == [[0.5, 1]] * 2
    none = Knots(np.zeros(0), np.arange(0), np.zeros(0), None)
    x, rows = two_knots(Curve("a", none, np.zeros((0, 2)), np.zeros(2)))
    assert x.tolist() == [0, 1] and rows.tolist() == [[0, 0]] * 2
    two = Curve("a", Knots(np.array([3.0, 5]), np.arange(2), np.ones(2), None), np.eye(2), rows[0])
    assert two_knots(two) == (two.knots.x, two.rows)


def test_weights_and_clusters_are_checked():
    assert checked_weights({"a": 0, "b": 2.5}, ["a", "b"]) == {"a": 0.0, "b": 2.5}
    assert checked_weights(None, ["a"]) == {}
    for weight in (-1e-9, np.inf, np.nan, "1"):
        with pytest.raises(ValueError, match="expected weights to be numbers >= 0, got 'a'"):
            checked_weights({"a": weight}, ["a"])
    with pytest.raises(ValueError, match=r"expected weights of columns \['a'\], got one of 'c'"):
        checked_weights({"c": 1}, ["a"])
    counts = Counts.of({"a": ["x", "y", "y"]})
    check_clusters(3, counts)
    check_clusters(None, counts)
    check_clusters(4, Counts.of({"a": ["x", "y"]}, sample_weight=[0.5, 0.5]))
    with pytest.raises(ValueError, match="4"):
        check_clusters(4, counts)


def test_a_model_says_if_its_columns_are_not_coupled(monkeypatch):
    rows = {name: ["x", "y", "y"] for name in "abcd"}
    counted = Weave().fit_counts(Counts.of(rows))
    assert "coupled" not in repr(Weave().fit(rows)) + repr(counted)
    monkeypatch.setattr("tabweave.embed.weave.MOST_COUPLED", 3)
    assert "not coupled: 4 columns, more than 3; all weigh alike" in repr(Weave().fit(rows))
    del rows["d"]
    assert "coupled" not in repr(Weave().fit(rows))


@pytest.mark.parametrize("n", [129, 130])
def test_columns_of_more_than_129_strings_are_spelled(n):
    words = [f"{'aeiou'[i % 5]}{'bcdfg'[i // 5 % 5]}{'klmnp'[i // 25 % 5]}{i}x" for i in range(n)]
    rows = {"word": words, "few": ["u", "v"] * (n // 2) + ["u"] * (n % 2), "code": range(n)}
    kinds = {"word": "nominal", "few": "nominal", "code": "nominal"}
    model = Weave(schema=kinds).fit(rows)
    assert list(model.tables_.spelling) == (["word"] if n > 129 else [])
    asked = {**kinds, "few": Column("few", spelling=True), "word": Column("word", spelling=False)}
    model = Weave(schema=asked).fit(rows)
    assert list(model.tables_.spelling) == ["few"]


def rows_with_strings(seed, telling, n=400):
    """Rows of three groups, on which three columns depend and two coins do not, and strings."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    stems = np.array(["kar", "bol", "mun"])[group if telling else rng.integers(0, 3, n)]
    strings = [stem + "".join(rng.choice(list("abcdefghijklmnop"), 6)) for stem in stems]
    noisy = [np.where(rng.random(n) < 0.6, group, rng.integers(0, 3, n)) for _ in range(3)]
    columns = {f"x{i}": codes.astype(str) for i, codes in enumerate(noisy)}
    coins = {f"coin{i}": rng.integers(0, 2, n).astype(str) for i in range(2)}
    return {"text": strings, **columns, **coins}, group


KINDS_WITH_STRINGS = {"text": "nominal"}


def test_strings_that_tell_by_their_spelling_weigh_more_and_random_ones_nothing():
    """Though none occurs twice; 20 seeds."""
    deviations, precisions = [], []
    for seed in range(20):
        rows, _ = rows_with_strings(seed, telling=False)
        random = Weave(schema=KINDS_WITH_STRINGS).fit(rows)
        others = {name: column for name, column in rows.items() if name != "text"}
        alone = Weave().fit(others).weights_
        assert random.weights_["text"] < 1.05 * min(random.weights_.values())
        # Random strings switch no other column off, nor on.
        ratios = [random.weights_[name] / alone[name] for name in others]
        assert max(ratios) / min(ratios) < 1.1
        told, variance = told_by_spelling(random.counts_, random.tables_.spelling)
        deviations.append(told[0, 1:] / np.sqrt(variance[0, 1:]))
        rows, group = rows_with_strings(seed, telling=True)
        telling = Weave(schema=KINDS_WITH_STRINGS).fit(rows)
        weights = telling.weights_
        assert weights["text"] > 1.3 * max(weights["coin0"], weights["coin1"])
        floor = {"text": weights["coin0"] / weights["text"]}
        level = Weave(schema=KINDS_WITH_STRINGS, weights=floor).fit(rows)
        precisions.append(
            [precision_at_k(m.pairwise_distances(rows), group, k=10) for m in (telling, level)]
        )
    assert abs(np.mean(deviations)) < 0.3 and 0.8 < np.std(deviations) < 1.2
    ours, at_the_floor = np.mean(precisions, axis=0)
    assert ours > at_the_floor


def test_two_columns_of_strings_tell_each_other_alike_in_any_order():
    rows, _ = rows_with_strings(0, telling=True, n=200)
    rows["name"] = [text[:3] + str(i) for i, text in enumerate(rows["text"])]
    kinds = {"text": "nominal", "name": "nominal"}
    weights = Weave(schema=kinds).fit(rows).weights_
    turned = Weave(schema=kinds).fit({name: rows[name] for name in reversed(rows)}).weights_
    assert weights == pytest.approx({name: turned[name] for name in weights})


def test_values_that_are_spelled_alike_do_not_differ_by_spelling():
    names = ("new york", "New-York", "NEW YORK")
    factors = spelled_factors(Spelling(names), names, np.array([0.5, 0.25, 0.25]))
    assert factors.common.shape[0] == 3 and not factors.common.any() and not factors.own.any()


def test_where_no_kernel_tells_values_apart_a_mismatch_is_all():
    grid = np.array(list(product("uvw", "xy")), object)
    counts = Counts.of({"a": grid[:, 0], "b": grid[:, 1]})
    for share in (0.0, 0.4, 1.0):
        factors = ColumnCouplings(counts, 512, {}).factors("a", share)
        apart = squared(factors.common) + np.add.outer(factors.own, factors.own)
        np.testing.assert_allclose(apart[~np.eye(3, dtype=bool)], 1.0)


@pytest.mark.parametrize("parameters", [{"n_components": 4}, {"n_clusters": 2}])
def test_sets_are_projected_on_the_directions_in_which_rows_differ(parameters):
    """However many elements they have: a first axis was their number, in which vectors are one."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 300)
    sets = [sorted({f"t{3 * k + i}" for i in rng.integers(0, 3, 4)}) for k in kind]
    X = {"tags": sets, "a": [f"a{k}" for k in np.where(rng.random(300) < 0.6, kind, 3)]}
    plain = Weave(schema={"tags": "set"}).fit_transform(X)
    wanted = PCA(4).fit(plain).explained_variance_
    found = Weave(**parameters, schema={"tags": "set"}).fit_transform(X).var(axis=0)
    np.testing.assert_allclose(found[:4], wanted, rtol=0.05)


def test_no_digit_depends_on_the_order_of_the_elements_of_a_set():
    """Python's sets come in another order in each process."""
    rng = np.random.default_rng(0)
    sets = [[f"t{i}" for i in rng.choice(150, 6, replace=False)] for _ in range(80)]
    X = {"tags": sets, "a": rng.choice(list("uvw"), 80)}
    shuffled = {**X, "tags": [rng.permutation(cell).tolist() for cell in sets]}
    one, two = (Weave(schema={"tags": "set"}).fit_transform(rows) for rows in (X, shuffled))
    np.testing.assert_array_equal(one, two)


def test_sets_that_are_all_empty_are_all_alike():
    rows = {"tags": [[]] * 20, "job": ["cook", "clerk"] * 10}
    model = Weave(schema={"tags": "set"}).fit(rows)
    assert model.explain({"tags": [], "job": "cook"}, {"tags": [], "job": "clerk"})["tags"] == 0


# -- what chance explains --------------------------------------------------------------------------


def grouped(seed, n=400):
    """An island and two measurements that depend on a group, and six coin flips."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    rows = {
        "island": np.where(rng.random(n) < 0.8, group, rng.integers(0, 3, n)).astype(str),
        "length": 2.0 * group + rng.normal(size=n),
        "mass": 2.5 * (group == 1) + rng.normal(size=n),
        **{f"coin{i}": rng.choice(["heads", "tails"], n) for i in range(6)},
    }
    return rows, group, [f"name {i}" for i in rng.integers(0, 250, n)]


def with_names(seeds):
    """The agreement of clusters with the groups, without and with a column of names."""
    found = []
    for seed in seeds:
        rows, group, names = grouped(seed)
        weaves = [Weave().fit(X) for X in (rows, rows | {"name": names})]
        vectors = [
            w.transform(X) for w, X in zip(weaves, (rows, rows | {"name": names}), strict=True)
        ]
        means = KMeans(3, n_init=5, random_state=seed)
        found.append([adjusted_rand_score(group, means.fit_predict(v)) for v in vectors])
        weights = weaves[1].weights_
        others = [weights[name] for name in weights if name.startswith("coin")]
        assert min(weights[c] for c in ("island", "length", "mass")) > 1.1
        assert max(weights["name"], *others) < 1
    return np.mean(found, axis=0)


def noise_beside_segments(n_values, seed):
    """The least weight of a segment, the largest of a coin, that of noise of so many values."""
    X = np.asarray(led24(2000, random_state=seed).X).astype(str)
    rows = {f"x{i}": X[:, i] for i in range(24)}
    rows["noise"] = np.random.default_rng(1000 + seed).integers(0, n_values, 2000).astype(str)
    weights = Weave(schema=dict.fromkeys(rows, "nominal")).fit(rows).weights_
    values = [weights[f"x{i}"] for i in range(24)]
    return min(values[:7]), max(values[7:]), weights["noise"]


def test_a_column_of_names_switches_nothing_off():
    without, beside = with_names(range(3))
    assert beside == pytest.approx(without, abs=0.02) and without > 0.75


@pytest.mark.slow
def test_a_column_of_names_switches_nothing_off_in_50_tables():
    without, beside = with_names(range(50))
    assert beside == pytest.approx(without, abs=0.02) and without > 0.8


@pytest.mark.parametrize("n_values", [50, 1000, 2000])
def test_noise_of_any_number_of_values_weighs_less_than_segments(n_values):
    segment, coin, noise = noise_beside_segments(n_values, 0)
    assert max(noise, coin) < 0.95 < 1.1 < segment


@pytest.mark.slow
@pytest.mark.parametrize("n_values", [50, 100, 200, 500, 1000, 2000])
def test_noise_weighs_less_than_segments_in_50_tables(n_values):
    for seed in range(50):
        segment, coin, noise = noise_beside_segments(n_values, seed)
        assert max(noise, coin) < segment


@pytest.mark.parametrize("tells", [False, True])
def test_what_near_identifiers_tell_counts_and_their_being_unique_does_not(tells):
    """A town tells its state, also where most towns are met once; names tell nothing."""
    rng = np.random.default_rng(0)
    town = rng.integers(0, 3000, 2000)
    state = (town if tells else rng.permutation(town)) % 20
    rows = {"town": town.astype(str), "state": state.astype(str)}
    rows["coin"] = rng.choice(["h", "t"], 2000)
    rows["key"] = rng.permutation(2000).astype(str)
    weave = Weave(schema=dict.fromkeys(rows, "nominal")).fit(rows)
    tied, trusted, _ = ties(weave.counts_)
    assert trusted.tolist() == ([1, 1, 0, 0] if tells else [0, 0, 0, 0])
    assert tied[3] == 0
    assert tied[:2].min() > 0.07 if tells else tied.max() < 0.01


def coins(n, columns=4):
    return np.random.default_rng(0).integers(0, 2, (n, columns)).astype(str)


def test_where_nothing_was_learned_fit_says_so_and_why():
    weave = Weave()
    with pytest.warns(UserWarning, match="learned no couplings from these rows: no column tells"):
        weave.fit(coins(300))
    assert weave.level_.startswith("no column tells another")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            Weave().fit(coins(300))
    assert len(said) == 1  # as Python shows what is said again from one line
    assert set(weave.weights_.values()) == {1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few = Weave().fit(coins(50))  # few rows are no surprise
        alone = Weave().fit(coins(300, 1))
        learned = Weave().fit(grouped(0)[0])
    assert few.level_ == weave.level_
    assert alone.level_ == "there is one column" and learned.level_ is None
