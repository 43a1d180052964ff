import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

import tabweave
from tabweave import HELIC, Counts, NonBEND, OneHot, Table, ValueMetric, Weave
from tabweave.columns.column import Column
from tabweave.embed.coupled_numeric import CoupledNumeric
from tabweave.embed.mixed import MixedEmbedder
from tabweave.space.numbers import Numbering, binned, quantile_edges

LEVELS = ("low", "mid", "high")
SCHEMA = {"grade": Column("grade", "ordinal", levels=LEVELS)}


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    n = 200
    job = rng.choice(["cook", "clerk", "judge"], n)
    pay = np.where(job == "judge", 90.0, 30.0) + rng.normal(size=n)
    pay[:5] = np.nan
    return {
        "job": job,
        "pay": pay,
        "age": rng.normal(40, 10, n),
        "grade": rng.choice(LEVELS, n),
        "tags": [["a"], ["a", "b"], [], ["c"]] * (n // 4),
    }


def one(rows, i, **changes):
    return {**{name: column[i] for name, column in rows.items()}, **changes}


@parametrize_with_checks([MixedEmbedder()])
def test_sklearn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"categorical": OneHot()},
        {"categorical": Weave(n_clusters=3)},
        {"numeric": "absolute"},
        {"numeric": "coupled"},
        {"numeric": PolynomialFeatures(2)},
        {"weights": {"numeric": 3.0}},
        {"n_bins": 1},
    ],
    ids=str,
)
def test_explain_adds_up_to_the_squared_distance(rows, options):
    model = MixedEmbedder(schema=SCHEMA, **options).fit(rows)
    a, b = one(rows, 10), one(rows, 33)
    shares = model.explain(a, b)
    D = model.pairwise_distances([a], [b])
    assert sum(shares.values()) == pytest.approx(D[0, 0] ** 2)
    E = model.transform(rows)
    gaps = np.zeros(len(E)) + sum(model.blocks_.gaps(model._read_fitted(rows)).values())
    expected = cdist(E, E, "sqeuclidean") + gaps[:, None] + gaps
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(np.sqrt(expected), model.pairwise_distances(rows), atol=1e-9)
    assert E.shape[1] == len(model.get_feature_names_out())


def test_blocks_have_as_much_inertia_as_columns(rows):
    single = {name: rows[name] for name in ("job", "pay", "age", "grade")}
    single["pay"] = np.nan_to_num(single["pay"])
    model = MixedEmbedder(numeric="standard", schema=SCHEMA).fit(single)
    variance = model.transform(single).var(axis=0)
    width = model.tables_.width
    assert variance[:width].sum() == pytest.approx(1)
    assert variance[width:].sum() == pytest.approx(3)
    for categorical in (OneHot(), Weave(n_clusters=2)):
        given = {"categorical": 2.0, "numeric": 0.5}
        model = MixedEmbedder(categorical, "standard", weights=given, schema=SCHEMA).fit(single)
        variance = model.transform(single).var(axis=0)
        width = model.tables_.width
        assert variance[:width].sum() == pytest.approx(2)
        assert variance[width:].sum() == pytest.approx(1.5)


def test_bins_let_categories_know_about_numbers():
    """Cook and clerk are paid alike, judges are not: only the bins of pay can tell."""
    rng = np.random.default_rng(0)
    job = np.repeat(["cook", "clerk", "judge"], 100)
    pay = np.where(job == "judge", 90.0, 30.0) + rng.normal(size=300)
    rows = {"job": job, "pay": pay}

    def ratio(n_bins):
        model = MixedEmbedder(n_bins=n_bins).fit(rows)
        base = {"job": "cook", "pay": 30.0}
        near = model.explain(base, {**base, "job": "clerk"})["job"]
        return model.explain(base, {**base, "job": "judge"})["job"] / near

    assert ratio(1) == pytest.approx(1)
    assert ratio(4) > 1.5


def test_grades_are_ordered(rows):
    low, mid, high = (one(rows, 9, grade=grade) for grade in LEVELS)
    for numeric, times in (("standard", 4), ("auto", 2)):  # squares, and absolute differences
        model = MixedEmbedder(numeric=numeric, schema=SCHEMA).fit(rows)
        step, all_the_way = (model.explain(low, other)["grade"] for other in (mid, high))
        assert all_the_way == pytest.approx(times * step, rel=0.3) and step > 0


def test_missing_and_unknown(rows):
    model = MixedEmbedder(schema=SCHEMA).fit(rows)
    E = model.transform([one(rows, 9, pay=None, grade=None, job="pilot", tags=["zzz"])])
    assert np.isfinite(E).all()
    mean = np.nanmean(rows["pay"])
    filled = MixedEmbedder(numeric="standard", schema=SCHEMA).fit(rows)
    gap = filled.explain(one(rows, 9, pay=None), one(rows, 9, pay=mean))
    assert gap["pay"] == pytest.approx(filled.numeric_scale_**2)  # the variance of a column
    assert model.explain(one(rows, 9, pay=None), one(rows, 9, pay=mean))["pay"] > 0.1
    strict = MixedEmbedder(schema=SCHEMA, unknown="error").fit(rows)
    with pytest.raises(ValueError, match="column 'job': value 'pilot' was not seen in fit"):
        strict.transform([one(rows, 9, job="pilot")])
    with pytest.raises(ValueError, match=r"column 'grade': expected one of its levels.*'top'"):
        strict.transform([one(rows, 9, grade="top")])


def test_constant_and_empty_columns(rows):
    rows = {**rows, "one": np.ones(200), "none": [None] * 200, "same": ["x"] * 200}
    model = MixedEmbedder(schema={**SCHEMA, "none": "numeric"}).fit(rows)
    assert np.isfinite(model.transform(rows)).all()
    with pytest.raises(ValueError, match="column 'pay': row 3 holds inf"):
        MixedEmbedder().fit({"pay": [1.0, 2.0, 3.0, np.inf]})


@pytest.mark.parametrize("names", [["job", "tags"], ["pay", "age"]])
def test_tables_of_one_kind(rows, names):
    part = {name: rows[name] for name in names}
    E = MixedEmbedder().fit_transform(part)
    assert len(E) == 200 and np.isfinite(E).all()


def test_numbers_through_coupled_analysis(rows):
    model = MixedEmbedder(numeric=CoupledNumeric(2)).fit(
        {k: rows[k] for k in ("job", "pay", "age")}
    )
    assert model.get_feature_names_out().tolist()[-4:] == ["pay", "pay^2", "age", "age^2"]


def test_batches(rows):
    halves = [{name: column[i::2] for name, column in rows.items()} for i in range(2)]
    model = MixedEmbedder(numeric="standard", schema=SCHEMA).partial_fit(halves[0])
    model.partial_fit(halves[1])
    assert model.counts_.n == 200
    assert not hasattr(model, "numeric_")  # nothing is learned yet
    mean, scale = model.learn().numeric_.mean, model.numeric_.factor
    whole = MixedEmbedder(numeric="standard", schema=SCHEMA).fit(rows)
    np.testing.assert_allclose(mean, whole.numeric_.mean, rtol=1e-15)
    np.testing.assert_allclose(scale, whole.numeric_.factor, rtol=1e-14)
    with pytest.raises(ValueError, match="numeric='coupled' learns from all rows at once"):
        MixedEmbedder(numeric="coupled").fit(rows).partial_fit(rows)


@pytest.mark.parametrize(
    "bad",
    [
        {"categorical": "x"},
        {"numeric": "x"},
        {"numeric": 3},
        {"weights": "x"},
        {"weights": {"blue": 1}},
        {"weights": {"numeric": -1}},
        {"n_bins": 0},
        {"unknown": "x"},
    ],
    ids=str,
)
def test_bad_parameters(bad, rows):
    (name,) = bad
    with pytest.raises((TypeError, ValueError), match=name):
        MixedEmbedder(**bad).fit(rows)


def test_quantile_bins():
    assert quantile_edges(np.array([np.nan, np.nan]), 4).tolist() == []
    assert quantile_edges(np.ones(9), 4).tolist() == []
    assert quantile_edges(np.array([0.0] * 90 + [5, 3, 7]), 4).tolist() == [3]
    codes = binned(np.array([0.0, 3.0, np.nan, 99.0]), np.array([1.0, 5.0]))
    assert [codes.labels[c] for c in codes.codes] == [0, 1, None, 2]


def test_levels_are_found_if_not_given():
    table = Table.of({"x": [3, 1, 2, None]}, {"x": "ordinal"})
    assert Numbering.of(Counts.of(table), 3).levels["x"] == (1, 2, 3)


def test_float32(rows):
    E = MixedEmbedder(schema=SCHEMA, dtype="float32").fit_transform(rows)
    assert E.dtype == np.float32
    np.testing.assert_allclose(E, MixedEmbedder(schema=SCHEMA).fit_transform(rows), atol=1e-5)


def test_embedders_that_need_rows_get_them():
    """HELIC learns from pairs of rows and Non-BEND from whole rows; alone they say the same."""
    rng = np.random.default_rng(0)
    rows = {f"c{i}": rng.choice(list("abc"), 60) for i in range(3)}
    y = np.where(rows["c0"] == "a", "yes", "no")
    for embedder in (HELIC(random_state=0), NonBEND(random_state=0)):
        alone = clone(embedder).fit(rows, y)
        mixed = MixedEmbedder(embedder).fit(rows, y)
        D, own = mixed.pairwise_distances(rows), alone.pairwise_distances(rows)
        ratio = D[own > 1e-9] / own[own > 1e-9]  # a block is scaled as a whole
        assert np.allclose(ratio, ratio[0])
        halves = MixedEmbedder(embedder)
        for part in (slice(0, 30), slice(30, 60)):
            halves.partial_fit({c: v[part] for c, v in rows.items()}, y[part])
        assert np.allclose(halves.pairwise_distances(rows), D)


def test_a_measure_without_vectors_is_refused():
    rows = {"job": ["cook", "clerk", "cook"], "town": ["u", "u", "v"], "age": [1.0, 2.0, 3.0]}
    with pytest.raises(ValueError, match=r"jia.*no vectors"):
        MixedEmbedder(ValueMetric("jia")).fit(rows)


# -- what every embedder can do -----------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"categorical": Weave(2)}, {"numeric": "coupled"}], ids=str
)
def test_kernels_are_inner_products(rows, options):
    model = MixedEmbedder(schema=SCHEMA, **options).fit(rows)
    E = model.transform(rows)
    gaps = np.zeros(len(E)) + sum(model.blocks_.gaps(model._read_fitted(rows)).values())
    np.testing.assert_allclose(model.pairwise_kernel(rows), E @ E.T + np.diag(gaps), atol=1e-9)


def test_distances_of_values(rows):
    model = MixedEmbedder(schema=SCHEMA).fit(rows)
    base = one(rows, 9)
    for column, a, b in (("job", "cook", "judge"), ("grade", "low", "high"), ("tags", "a", "c")):
        left, right = ({**base, column: [v] if column == "tags" else v} for v in (a, b))
        expected = np.sqrt(model.explain(left, right)[column])
        assert model.value_distances(column).loc[a, b] == pytest.approx(expected)
    assert list(model.value_distances("grade").index) == list(LEVELS)
    for name in ("pay", "nobody"):
        with pytest.raises(KeyError, match=f"expected a categorical column, .* got '{name}'"):
            model.value_distances(name)


def test_unknown_values_are_refused_by_every_method(rows):
    strict = MixedEmbedder(schema=SCHEMA, unknown="error").fit(rows)
    odd = one(rows, 9, job="pilot")
    for method in (strict.pairwise_distances, strict.pairwise_kernel):
        with pytest.raises(ValueError, match="'job': value 'pilot' was not seen"):
            method([odd])
    with pytest.raises(ValueError, match="'job': value 'pilot' was not seen"):
        strict.explain(odd, odd)


def test_learning_waits_and_survives_a_file(rows, tmp_path):
    halves = [{name: column[i::2] for name, column in rows.items()} for i in range(2)]
    model = MixedEmbedder(schema=SCHEMA).fit(halves[0]).partial_fit(halves[1])
    assert not hasattr(model, "tables_") and not hasattr(model, "blocks_")
    with pytest.raises(AttributeError, match="call learn"):
        model.blocks_  # noqa: B018
    model.save(tmp_path / "waiting")
    again = tabweave.load(tmp_path / "waiting")
    np.testing.assert_array_equal(again.transform(rows), model.transform(rows))


def test_counts_of_batches_add_up(rows):
    first, second = ({n: c[i::2] for n, c in rows.items()} for i in range(2))
    one_batch = MixedEmbedder(schema=SCHEMA).partial_fit(first)
    both = MixedEmbedder(schema=SCHEMA).partial_fit(first).partial_fit(second)
    late = both.counts_ - one_batch.counts_
    merged = one_batch.fit_counts(late + one_batch.counts_)
    np.testing.assert_array_equal(merged.transform(rows), both.transform(rows))


@pytest.mark.parametrize("numeric", ["auto", "absolute"])
def test_counts_of_plain_rows_suffice_without_bins(rows, numeric):
    plain = MixedEmbedder(numeric=numeric, n_bins=1, schema=SCHEMA)
    fitted = clone(plain).fit(rows)
    table = Table.of(rows, SCHEMA)
    counted = clone(plain).fit_counts(Counts.of(table))
    np.testing.assert_allclose(counted.transform(rows), fitted.transform(rows), atol=1e-12)
    more, twice = counted.partial_fit(rows), fitted.partial_fit(rows)
    assert more.counts_.n == 400
    np.testing.assert_allclose(more.transform(rows), twice.transform(rows), atol=1e-12)


def test_counts_that_are_too_little(rows):
    counts = Counts.of(Table.of(rows, SCHEMA))
    with pytest.raises(ValueError, match="numeric='coupled' learns from all rows at once"):
        MixedEmbedder(numeric="coupled", n_bins=1).fit_counts(counts)
    with pytest.raises(ValueError, match="NonBEND learns from whole rows"):
        MixedEmbedder(NonBEND(), n_bins=1).fit_counts(counts)
    with pytest.raises(ValueError, match="counts of at least one row"):
        MixedEmbedder().fit_counts(Counts())


def test_rows_in_files(rows, tmp_path):
    pandas = pytest.importorskip("pandas")
    names = ["job", "pay", "age"]
    frame = pandas.DataFrame({name: rows[name] for name in names})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = MixedEmbedder().fit(tmp_path / "rows.csv")
    np.testing.assert_allclose(model.transform(frame), MixedEmbedder().fit_transform(frame))
    np.testing.assert_allclose(model.transform(tmp_path / "rows.csv"), model.transform(frame))
