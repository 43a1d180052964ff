"""ValueMetric: exact sums, honest vectors, clear refusals."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import tabweave
from tabweave import Counts, Table
from tabweave.cluster import KModes
from tabweave.embed.ckml import CKML
from tabweave.embed.onehot import OneHot
from tabweave.embed.value_metric import ValueMetric, value_lookups
from tabweave.engines.reading import needs_classes
from tabweave.measures import MEASURES
from tabweave.neighbors.knn import WeightedKNN

TABLED = [name for name, entry in MEASURES.items() if entry.form == "table"]
RATIOS = [name for name, entry in MEASURES.items() if entry.form == "ratio"]
PAIRWISE = [name for name, entry in MEASURES.items() if entry.form == "pairwise"]
EXACT = (
    "hamming eskin goodall1 goodall2 goodall3 goodall4 rough smirnov gambaryan anderberg"
).split()

ROWS = [
    ["a", "x", None], ["a", "y", "m"], ["b", "x", "m"], ["c", "z", "n"],
    ["a", "z", None], ["c", "x", "m"], ["b", "y", "n"], ["a", "x", "n"],
]  # fmt: skip
Y = [0, 1, 1, 2, 0, 2, 1, 0]


def fitted(name, **parameters):
    return ValueMetric(name, **parameters).fit(ROWS, Y)


def entry_of(metric, a, v, w):
    labels = metric.counts_.labels[a]
    return metric.dissimilarities_[a][labels.index(v), labels.index(w)]


# -- distances ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLED)
def test_distances_are_sums_over_columns(name):
    metric = fitted(name)
    want = [
        [sum(entry_of(metric, a, r[a], s[a]) for a in range(3)) for s in ROWS[:3]] for r in ROWS
    ]
    np.testing.assert_allclose(metric.pairwise_distances(ROWS, ROWS[:3]), want, rtol=1e-12)


@pytest.mark.parametrize("name", TABLED + RATIOS)
def test_explanations_add_up(name):
    metric = fitted(name)
    d = metric.pairwise_distances(ROWS)
    for i in range(1, 5):
        shares = metric.explain(ROWS[0], ROWS[i])
        assert list(shares) == ["x0", "x1", "x2"]
        assert min(shares.values()) >= 0
        assert sum(shares.values()) == pytest.approx(d[0, i])


@pytest.mark.parametrize("name", TABLED)
def test_lookups_hold_the_unknown_value_last(name):
    metric = fitted(name)
    tables, rooted = value_lookups(metric)
    assert rooted is False
    for a, (table, d) in enumerate(zip(tables, metric.dissimilarities_, strict=True)):
        f = metric.counts_.value_counts[metric.counts_.span(a)]
        np.testing.assert_array_equal(table[:-1, :-1], d)
        np.testing.assert_allclose(table[-1, :-1], f @ d / len(ROWS))
        np.testing.assert_array_equal(table, table.T)
        assert table[-1, -1] == 0


@pytest.mark.parametrize("name", TABLED + RATIOS)
def test_unknown_values_are_at_the_mean(name):
    metric = fitted(name)
    strange = [["?", "?", "?"], ["a", "?", "m"]]
    d = metric.pairwise_distances(strange, [*ROWS, *strange])
    assert np.isfinite(d).all()
    assert (d >= 0).all()
    assert d[0, -2] == d[1, -1] == 0
    if name in TABLED:
        among = metric.pairwise_distances(ROWS, [*ROWS])
        np.testing.assert_allclose(d[0, :-2], among.mean(axis=0))


def test_unknown_values_can_be_refused():
    metric = fitted("of", unknown="error")
    for use in (
        metric.transform,
        metric.pairwise_distances,
        lambda X: metric.explain(X[0], ROWS[0]),
    ):
        with pytest.raises(ValueError, match="column 'x1': value '\\?' was not seen in fit"):
            use([["a", "?", "m"]])


def test_value_distances_are_labelled():
    frame = fitted("of").value_distances("x2")
    assert list(frame.index) == list(frame.columns) == ["m", "n", None]
    assert frame.index.name == "x2"
    np.testing.assert_array_equal(frame, fitted("of").dissimilarities_[2])


def test_value_distances_of_a_ratio_are_those_of_one_column():
    alone = ValueMetric("lin").fit([[row[1]] for row in ROWS])
    values = [[v] for v in alone.counts_.labels[0]]
    np.testing.assert_allclose(
        fitted("lin").value_distances("x1"), alone.pairwise_distances(values)
    )


# -- vectors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLED)
def test_vectors_are_as_good_as_they_say(name):
    metric, rows = fitted(name), [row for row in ROWS if None not in row]
    vectors = metric.transform(rows)
    squared = ((vectors[:, None] - vectors) ** 2).sum(axis=2)
    d = metric.pairwise_distances(rows)
    allowed = metric.total_distortion_ * sum(t.max() for t in metric.dissimilarities_)
    assert np.abs(squared - d).max() <= allowed + 1e-9 * (1 + d.max())
    assert metric.distortion_.shape == (3,)
    exact = metric.tables_.repair == 0
    assert (metric.distortion_[exact] == 0).all()
    assert (metric.distortion_[~exact] > 0).all()


@pytest.mark.parametrize("name", EXACT)
def test_stars_embed_exactly(name):
    rng = np.random.default_rng(5)
    metric = ValueMetric(name).fit((6 * rng.random((40, 4)) ** 2).astype(int))
    assert metric.total_distortion_ == 0
    assert not metric.distortion_.any()


def test_a_measure_that_is_not_euclidean_says_so():
    def far(counts):
        # the middle value is near to both others, which are far from each other
        return [np.array([[0, 1, 9], [1, 0, 1], [9, 1, 0.0]])]

    metric = ValueMetric(far).fit([["a"], ["b"], ["c"]])
    assert metric.distortion_[0] > 0.1
    assert metric.tables_.repair[0] > 0
    assert metric.pairwise_distances([["a"]], [["c"]])[0, 0] == 9


def test_vectors_in_frames():
    frame = pd.DataFrame(ROWS, columns=["p", "q", "r"])
    out = ValueMetric("of").set_output(transform="pandas").fit(frame).transform(frame)
    assert list(out.columns) == list(ValueMetric("of").fit(frame).get_feature_names_out())
    assert out.shape[0] == len(ROWS)


# -- learning ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in TABLED + RATIOS if not MEASURES[name].needs_y])
def test_chunks_give_the_same_as_the_whole(name):
    chunked = ValueMetric(name).partial_fit(ROWS[:3]).partial_fit(ROWS[3:])
    whole = ValueMetric(name).fit(ROWS)
    np.testing.assert_array_equal(chunked.pairwise_distances(ROWS), whole.pairwise_distances(ROWS))
    np.testing.assert_array_equal(
        value_lookups(ValueMetric(name).fit_counts(Counts.of(ROWS)))[0][0]
        if name in TABLED
        else whole.numerators_[0],
        value_lookups(whole)[0][0] if name in TABLED else chunked.numerators_[0],
    )


@pytest.mark.parametrize("name", ["hamming", "goodall1", "lin", "lin1", "anderberg", "burnaby"])
def test_scikit_learn_accepts_it(name):
    check_estimator(ValueMetric(name), on_skip=None)


def test_clones_and_pickles():
    metric = pickle.loads(pickle.dumps(fitted("lin")))
    np.testing.assert_array_equal(
        metric.pairwise_distances(ROWS), fitted("lin").pairwise_distances(ROWS)
    )
    assert clone(ValueMetric("of")).measure == "of"


def test_a_later_change_of_parameter_waits_for_fit():
    metric = fitted("of")
    before = metric.pairwise_distances(ROWS)
    metric.set_params(measure="lin")
    np.testing.assert_array_equal(metric.pairwise_distances(ROWS), before)


# -- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        (
            "hamingg",
            r"expected a measure, one of ahmad, .*, got 'hamingg' \(did you mean 'hamming'",
        ),
        (None, "'measure' parameter of ValueMetric must be an instance of 'str' or a callable"),
        (["of"], r"or a callable. Got \['of'\] instead"),
    ],
)
def test_unknown_measures_are_refused_in_fit(name, refusal):
    metric = ValueMetric(name)
    assert needs_classes(metric) is False
    for fit in (lambda: metric.fit(ROWS), lambda: metric.fit_counts(Counts.of(ROWS))):
        with pytest.raises(ValueError, match=refusal):
            fit()


@pytest.mark.parametrize("name", ["hamming", "lin"])
def test_set_valued_columns_are_refused_by_name(name):
    rows = {"a": ["x", "y"], "tags": [["p", "q"], ["q"]]}
    metric = ValueMetric(name, schema={"tags": "set"})
    with pytest.raises(ValueError, match="column 'tags' is set-valued"):
        metric.fit(Table.of(rows, metric.schema) if name == "lin" else rows)
    with pytest.raises(NotFittedError):
        metric.transform(rows)


@pytest.mark.parametrize("name", [name for name, entry in MEASURES.items() if entry.needs_y])
def test_measures_of_classes_need_classes(name):
    with pytest.raises(ValueError, match=f"'{name}'.*requires y to be passed"):
        ValueMetric(name).fit(ROWS)
    with pytest.raises(ValueError, match=f"'{name}' expected counts with classes, got none"):
        ValueMetric(name).fit_counts(Counts.of(ROWS))
    with pytest.raises(
        ValueError, match=f"'{name}' expected at least two classes in y, got one: 1"
    ):
        ValueMetric(name).fit(ROWS, [1] * 8)
    with pytest.raises(ValueError, match="expected 8 labels in y, one a row, got 7"):
        ValueMetric(name).fit(ROWS, Y[:-1])
    assert ValueMetric(name).__sklearn_tags__().target_tags.required


def test_other_measures_ignore_y():
    assert fitted("of").counts_.classes is None
    assert not ValueMetric("of").__sklearn_tags__().target_tags.required


@pytest.mark.parametrize("name", RATIOS)
def test_ratios_have_no_lookups(name):
    with pytest.raises(ValueError, match=f"'{name}' are ratios.*use pairwise_distances"):
        value_lookups(fitted(name))


@pytest.mark.parametrize("name", PAIRWISE)
def test_pairwise_measures_offer_distances_only(name):
    metric = fitted(name)
    assert metric.pairwise_distances(ROWS, ROWS[:2]).shape == (8, 2)
    assert np.isfinite(metric.pairwise_distances([["?", "x", "m"]], ROWS)).all()
    uses = {
        "transform": lambda: metric.transform(ROWS),
        "pairwise_kernel": lambda: metric.pairwise_kernel(ROWS),
        "explain": lambda: metric.explain(ROWS[0], ROWS[1]),
        "value_distances": lambda: metric.value_distances("x0"),
        "lookups": lambda: value_lookups(metric),
        "get_feature_names_out": metric.get_feature_names_out,
    }
    for use in uses.values():
        with pytest.raises(
            ValueError, match=f"a value table, got '{name}', which looks at several columns"
        ):
            use()


def test_nothing_works_before_fit():
    for use in (ValueMetric().transform, ValueMetric().pairwise_distances):
        with pytest.raises(NotFittedError):
            use(ROWS)
    with pytest.raises(NotFittedError):
        value_lookups(ValueMetric())


def test_empty_counts_are_refused():
    with pytest.raises(ValueError, match="counts of at least one row"):
        ValueMetric("vdm").fit_counts(Counts())


def test_rows_are_compared_without_vectors(monkeypatch):
    def refused(*args):
        raise AssertionError("vectors of values take time for V³ and are not needed here")

    X = np.random.default_rng(0).integers(0, 4, (40, 3)).astype(str)
    expected = ValueMetric("of").fit(X)
    assert expected.tables_.width == expected.transform(X).shape[1]
    with monkeypatch.context() as patch:
        patch.setattr("tabweave.space.value_tables.gram_factor", refused)
        metric = ValueMetric("of").fit(X)
        assert np.array_equal(metric.pairwise_distances(X), expected.pairwise_distances(X))
        assert metric.explain(X[0], X[1]) == expected.explain(X[0], X[1])
        metric.value_distances("x0")
        WeightedKNN(3, metric="of").fit(X, X[:, 0]).predict(X)
        KModes(2, metric="of", random_state=0).fit(X).predict(X)
        with pytest.raises(AssertionError, match="V³"):
            metric.transform(X)
    assert np.array_equal(metric.transform(X), expected.transform(X))


def test_vectors_follow_new_rows():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 5, (60, 3)).astype(str)
    metric = ValueMetric("of").fit(X[:30])
    metric.transform(X[:30])
    metric.partial_fit(X[30:])
    whole = ValueMetric("of").fit(X)
    assert np.array_equal(metric.transform(X), whole.transform(X))
    assert np.array_equal(metric.distortion_, whole.distortion_)


def test_vectors_of_a_metric_from_a_file(tmp_path):
    X = np.random.default_rng(2).integers(0, 4, (40, 3)).astype(str)
    metric = ValueMetric("ahmad").fit(X)
    path = tmp_path / "metric.tabweave"
    metric.save(path)
    before = path.read_bytes()
    vectors = metric.transform(X)
    metric.save(path)
    assert path.read_bytes() == before  # whether vectors were asked for or not
    loaded = tabweave.load(path)
    assert np.array_equal(loaded.transform(X), vectors)
    assert loaded.total_distortion_ == metric.total_distortion_


def test_too_many_values_for_a_table_of_pairs():
    X = {"id": [f"u{i}" for i in range(20_000)], "k": ["a", "b"] * 10_000}
    with pytest.raises(ValueError, match=r"column 'id' has 20000 values.*leave the column out"):
        ValueMetric("hamming", schema="nominal").fit(X)
    with pytest.raises(ValueError, match="column 'id' has 20000 values, and CKML"):
        CKML(schema="nominal").fit(X)


# -- measures of the user's own --------------------------------------------------------------------


def test_a_callable_is_a_measure():
    def doubled(counts):
        return [2 * (1 - np.eye(size)) for size in counts.sizes]

    metric = ValueMetric(doubled).fit(ROWS)
    np.testing.assert_allclose(
        metric.pairwise_distances(ROWS),
        2 * ValueMetric("hamming").fit(ROWS).pairwise_distances(ROWS),
    )
    assert metric.measure_.name == "doubled"


def test_a_callable_sees_the_classes():
    seen = []

    def spy(counts):
        seen.append(counts.classes)
        return [np.zeros((size, size)) for size in counts.sizes]

    ValueMetric(spy).fit(ROWS, Y)
    ValueMetric(spy).fit(ROWS)
    assert seen == [(0, 1, 2), None]


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda d: d[:-1], r"the shape \(2, 3\), not \(3, 3\)"),
        (lambda d: np.triu(d), "not symmetric"),
        (lambda d: d + np.eye(3), "a diagonal that is not zero"),
        (lambda d: -d, "negative entries"),
        (lambda d: np.where(d > 0, np.nan, d), "not finite"),
    ],
)
def test_a_callable_is_checked(spoil, fault):
    def own(counts):
        tables = [1 - np.eye(size) for size in counts.sizes]
        return [tables[0], spoil(tables[1]), tables[2]]

    with pytest.raises(ValueError, match=f"from measure 'own' for column 'x1', got .*{fault}"):
        ValueMetric(own).fit(ROWS)


@pytest.mark.parametrize("result", [None, [], [np.zeros((3, 3))]])
def test_a_callable_returns_one_table_per_column(result):
    with pytest.raises(
        ValueError, match="expected a list of 3 arrays, one per column, from measure"
    ):
        ValueMetric(lambda counts: result).fit(ROWS)


@pytest.mark.parametrize("measure", ["ahmad", "cos", "dilca", "le_ho"])
def test_a_single_column_that_needs_others_is_warned_of(measure):
    with pytest.warns(UserWarning, match=f"{measure!r} tells no two values of column 'a' apart"):
        metric = ValueMetric(measure).fit({"a": list("abcab")})
    assert not metric.pairwise_distances({"a": list("abc")}).any()


@pytest.mark.parametrize(
    "model",
    [
        ValueMetric(schema="nominal"),
        ValueMetric("dilca", schema="nominal"),
        CKML(schema="nominal"),
        OneHot(schema="nominal"),
        KModes(2, metric=ValueMetric(schema="nominal")),
    ],
)
def test_too_many_values_are_refused_before_pairs_are_counted(model, monkeypatch):
    rows = {name: [f"{name}{i}" for i in range(30_000)] for name in "ab"}
    monkeypatch.setattr(Counts, "of", lambda *a, **k: pytest.fail("counted"))
    with pytest.raises(ValueError, match=r"column 'a' has 30000 values, and .* leave the column"):
        model.fit(rows)
