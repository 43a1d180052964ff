"""The template of every embedder, seen through OneHot and a subclass that keeps a diary."""

import pickle
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tabweave import (
    CA,
    CDE,
    CKML,
    FAMD,
    HELIC,
    KSVD,
    MCA,
    UNTIE,
    CoCA,
    Counts,
    DistanceHierarchy,
    GBCClassifier,
    GBCRegressor,
    HeMap,
    KModes,
    NonBEND,
    OneHot,
    Schema,
    SupervisedWeave,
    Table,
    ValueMetric,
    Weave,
    WeaveClassifier,
    WeaveRegressor,
    WeightedKNN,
)
from tabweave._compat import seed_of
from tabweave.apps.methods import embedder_title
from tabweave.apps.report.describe import column_weights
from tabweave.columns import table as table_module
from tabweave.columns.inputs import numbers_only, read_with_fitted_schema, target_array
from tabweave.embed.base import ValueEmbedder
from tabweave.embed.value_metric import value_lookups
from tabweave.space.curves import turned_towards
from tabweave.space.space import Explanation
from tabweave.space.value_tables import ValueTables

ROWS = pd.DataFrame(
    {"color": ["red", "blue", "red", None], "size": ["S", "M", "L", "S"], "n": [1, 2, 2, 1]}
)


NOTES = []  # the number of rows, each time a Diary learns


@pytest.fixture(autouse=True)
def blank():
    NOTES.clear()


class Diary(ValueEmbedder):
    """Embeds values by their frequency, and notes every time it learns."""

    def __init__(self, *, schema=None, unknown="centroid", dtype="float64", combine="concat"):
        super().__init__(schema=schema, unknown=unknown, dtype=dtype)
        self.combine = combine

    def _learn(self, counts):
        NOTES.append(counts.n)
        self.shares_ = counts.value_counts / counts.n
        features = [self.shares_[counts.span(a), None] for a in range(len(counts.names))]
        return ValueTables.from_features(features, counts, combine=self.combine, compact=False)


class Supervised(Diary):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class TestFit:
    @settings(max_examples=30)
    @given(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=2, max_size=12), st.data())
    def test_partial_fit_over_chunks_is_fit(self, values, data):
        cut = data.draw(st.integers(1, len(values)))
        frame = pd.DataFrame({"v": pd.Series(values, dtype=object), "w": values[::-1]})
        whole = OneHot().fit(frame)
        chunked = OneHot().partial_fit(frame[:cut]).partial_fit(frame[cut:])
        assert chunked.counts_ == whole.counts_
        np.testing.assert_array_equal(chunked.transform(frame), whole.transform(frame))
        assert [*chunked.get_feature_names_out()] == [*whole.get_feature_names_out()]

    def test_learning_waits_for_use(self):
        embedder = Diary().partial_fit(ROWS)
        for _ in range(5):
            embedder.partial_fit(ROWS)
        assert NOTES == []
        embedder.transform(ROWS)
        embedder.pairwise_distances(ROWS)
        embedder.explain(ROWS[:1], ROWS[1:2])
        assert NOTES == [24]  # once for six batches, and once is enough

    def test_looking_at_attributes_never_learns(self):
        embedder = Diary().fit(ROWS[:2]).partial_fit(ROWS[2:])
        assert not hasattr(embedder, "shares_") and NOTES == [2]
        with pytest.raises(AttributeError, match=r"'shares_'; rows were added.*call learn\(\)"):
            embedder.shares_  # noqa: B018
        assert embedder.learn().shares_[-1] == 0.5
        assert embedder.learn() is embedder and NOTES == [2, 4]
        with pytest.raises(AttributeError, match="nothing_"):
            embedder.nothing_  # noqa: B018
        with pytest.raises(AttributeError, match="odd"):
            Diary().odd  # noqa: B018

    def test_what_was_learned_by_half_is_learned_anew(self, monkeypatch):
        """Ctrl-C, or too little memory, leaves no estimator that thinks it has learned."""

        def stopped(*_, **named):
            raise KeyboardInterrupt

        embedder = Diary().partial_fit(ROWS)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(ValueTables, "from_features", stopped)
            embedder.transform(ROWS)
        assert not hasattr(embedder, "shares_")
        np.testing.assert_array_equal(embedder.transform(ROWS), Diary().fit(ROWS).transform(ROWS))

    def test_fit_forgets(self):
        embedder = Diary().fit(ROWS)
        embedder.fit(ROWS[:2])
        assert embedder.counts_.n == 2
        assert NOTES == [4, 2]

    def test_fit_counts(self):
        counts = Counts.of(Table.of(ROWS[:2], numbers="nominal"))
        counts = counts + Counts.of(Table.of(ROWS[2:], counts.schema))
        embedder = OneHot(schema="nominal").fit_counts(counts)
        np.testing.assert_array_equal(
            embedder.transform(ROWS), OneHot(schema="nominal").fit(ROWS).transform(ROWS)
        )
        assert embedder.n_features_in_ == 3
        with pytest.raises(ValueError, match="expected counts of at least one row"):
            OneHot(schema="nominal").fit_counts(Counts())

    @pytest.mark.parametrize("combine", ["concat", "sum"])
    def test_weight_is_repetition(self, combine):
        weight = np.array([3, 0, 1, 2])
        repeated = ROWS.iloc[np.repeat(np.arange(4), weight)]
        weighted = Diary(combine=combine).fit(ROWS, sample_weight=weight)
        assert weighted.counts_ == Diary().fit(repeated).counts_
        np.testing.assert_array_equal(
            weighted.transform(ROWS), Diary(combine=combine).fit(repeated).transform(ROWS)
        )

    def test_classes(self):
        embedder = Supervised().fit(ROWS, [1, 0, 1, 0])
        assert embedder.counts_.classes == (0, 1)
        assert Diary().fit(ROWS, [1, 0, 1, 0]).counts_.classes is None
        with pytest.raises(ValueError, match="requires y"):
            Supervised().fit(ROWS)
        embedder.partial_fit(ROWS, [2, 0, 1, 0])
        assert embedder.counts_.classes == (0, 1, 2)

    def test_the_template_learns_nothing(self):
        with pytest.raises(NotImplementedError, match="_learn"):
            ValueEmbedder().fit(ROWS)


class TestSmall:
    def test_no_rows(self):
        with pytest.raises(ValueError, match="0 sample"):
            OneHot().fit(ROWS[:0])
        embedder = OneHot().fit(ROWS)
        assert embedder.transform(ROWS[:0]).shape == (0, 7)  # missing has no dimension
        before = embedder.counts_
        assert embedder.partial_fit(ROWS[:0]).counts_ == before

    def test_one_row(self):
        embedder = OneHot(schema="nominal").fit(ROWS[:1])
        assert embedder.transform(ROWS[:1]).tolist() == [[1.0, 1.0, 1.0]]
        assert embedder.pairwise_distances(ROWS[:1]).tolist() == [[0.0]]

    def test_one_value(self):
        frame = pd.DataFrame({"a": ["u", "u"], "b": ["p", "q"]})
        assert OneHot().fit(frame).transform(frame).tolist() == [[1, 1, 0], [1, 0, 1]]

    def test_all_missing(self):
        frame = pd.DataFrame({"a": [None, None], "b": [float("nan")] * 2})
        embedder = OneHot(schema="nominal").fit(frame)
        assert embedder.counts_.labels == ((None,), (None,))
        assert embedder.transform(frame).tolist() == [[1, 1], [1, 1]]

    def test_weight_of_zero(self):
        with pytest.raises(ValueError, match="only rows of weight zero"):
            OneHot().fit(ROWS, sample_weight=[0, 0, 0, 0])


class TestColumns:
    def test_reordered_frames_raise(self):
        embedder = OneHot().fit(ROWS)
        with pytest.raises(ValueError, match="same order"):
            embedder.transform(ROWS[["size", "color", "n"]])

    def test_missing_and_extra_ones_raise(self):
        embedder = OneHot().fit(ROWS)
        with pytest.raises(ValueError, match="missing:\n- n"):
            embedder.transform(ROWS[["color", "size"]])
        with pytest.raises(ValueError, match="unseen at fit time:\n- more"):
            embedder.transform(ROWS.assign(more=1))
        with pytest.raises(ValueError, match="2 features"):
            OneHot().fit(ROWS.to_numpy()).transform(ROWS.to_numpy()[:, :2])

    def test_dicts_are_matched_by_name(self):
        embedder = OneHot().fit(ROWS)
        rows = {"n": [2], "more": ["?"], "size": ["S"], "color": ["red"]}
        expected = embedder.transform(pd.DataFrame({"color": ["red"], "size": ["S"], "n": [2]}))
        np.testing.assert_array_equal(embedder.transform(rows), expected)
        with pytest.raises(ValueError, match="column 'n' is missing"):
            embedder.transform({"size": ["S"], "color": ["red"]})

    def test_tables_must_have_the_same_columns(self):
        embedder = OneHot(schema="nominal").fit(ROWS)
        table = Table.of(ROWS, numbers="nominal")
        np.testing.assert_array_equal(embedder.transform(table), embedder.transform(ROWS))
        with pytest.raises(ValueError, match="n"):
            embedder.transform(Table.of(ROWS[["color", "size"]]))
        with pytest.raises(ValueError, match=r"'n': expected .*, got numeric"):
            embedder.transform(Table.of(ROWS))

    def test_fitted_attributes(self):
        embedder = OneHot().fit(ROWS)
        assert embedder.n_features_in_ == 3
        assert [*embedder.feature_names_in_] == ["color", "size", "n"]
        assert embedder.schema_.names == ["color", "size", "n"]

    @pytest.mark.parametrize(
        "rows",
        [ROWS.to_dict("list"), ROWS.to_dict("records"), Table.of(ROWS, numbers="nominal")],
        ids=["dict", "records", "table"],
    )
    def test_names_are_remembered_without_a_frame(self, rows):
        assert [*OneHot().fit(rows).feature_names_in_] == ["color", "size", "n"]

    def test_unnamed_columns(self):
        embedder = OneHot().fit(ROWS.to_numpy())
        assert not hasattr(embedder, "feature_names_in_")
        assert embedder.schema_.names == ["x0", "x1", "x2"]

    @pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas], ids=["pl", "pa"])
    def test_frames_of_another_library(self, convert):
        embedder = OneHot().fit(ROWS)
        np.testing.assert_array_equal(embedder.transform(convert(ROWS)), embedder.transform(ROWS))
        other = OneHot().fit(convert(ROWS))
        assert other.counts_ == embedder.counts_


class TestFitTransform:
    """Rows are read once, and vectors are those of ``fit`` and ``transform``."""

    @pytest.fixture
    def readings(self, monkeypatch):
        """Note what columns are taken from, each time."""
        noted, read = [], table_module.columns_of
        monkeypatch.setattr(
            table_module, "columns_of", lambda X, **how: noted.append(X) or read(X, **how)
        )
        return noted

    @pytest.mark.parametrize("method", [OneHot, Weave])
    @pytest.mark.parametrize("rows", [ROWS, ROWS.to_dict("list"), ROWS.to_dict("records")])
    def test_rows_are_read_once(self, method, rows, readings):
        found = method().fit_transform(rows)
        assert [X is rows for X in readings] == [True]
        np.testing.assert_array_equal(found, method().fit(rows).transform(rows))

    def test_rows_with_a_target_are_read_once(self, readings):
        rows, y = pd.concat([ROWS] * 5), [0, 1, 1, 0] * 5
        table = Table.of(rows, numbers="numeric", rules="whole")
        expected = SupervisedWeave().fit_transform(table, y)
        readings.clear()
        found = SupervisedWeave().fit_transform(rows, y)
        assert sum(X is rows for X in readings) == 1  # besides the classes
        np.testing.assert_array_equal(found, expected)

    def test_what_is_read_by_values_and_zones(self):
        rows = pd.concat([ROWS] * 10, ignore_index=True)
        rows["id"], rows["alike"] = np.arange(40), "a"
        rows["day"] = [f"{1 + i % 28:02d}.03.2024" for i in range(40)]
        rows["at"] = pd.Timestamp("2024-03-30", tz="Europe/Berlin") + pd.to_timedelta(
            np.arange(40), "h"
        )
        rows["size"] = pd.Categorical(rows["size"], ["S", "M", "L"], ordered=True)
        model = Weave()
        found = model.fit_transform(rows)
        assert set(model.kinds().dropped) == {"id", "alike"}
        np.testing.assert_array_equal(found, Weave().fit(rows).transform(rows))
        np.testing.assert_array_equal(found, model.transform(rows))

    def test_frames_keep_their_index(self):
        rows = ROWS.set_index([[4, 5, 6, 7]])
        frame = OneHot().set_output(transform="pandas").fit_transform(rows)
        assert [*frame.index] == [4, 5, 6, 7]

    def test_a_transform_of_a_subclass_counts(self):
        class Doubled(OneHot):
            def transform(self, X):
                return 2 * super().transform(X)

        np.testing.assert_array_equal(
            Doubled().fit_transform(ROWS), 2 * OneHot().fit_transform(ROWS)
        )


class TestOutput:
    def test_type(self):
        assert OneHot().fit_transform(ROWS).dtype == np.float64
        assert OneHot(dtype="float32").fit_transform(ROWS).dtype == np.float32

    def test_frames(self):
        embedder = OneHot(schema="nominal").fit(ROWS)
        names = [*embedder.get_feature_names_out()]
        assert names == [
            *("color_blue", "color_red"),
            *("size_L", "size_M", "size_S", "n_1", "n_2"),
        ]
        frame = embedder.set_output(transform="pandas").transform(ROWS.set_index([[4, 5, 6, 7]]))
        assert [*frame.columns] == names
        assert [*frame.index] == [4, 5, 6, 7]
        frame = embedder.set_output(transform="polars").transform(ROWS)
        assert isinstance(frame, pl.DataFrame)
        assert frame.columns == names

    def test_names(self):
        embedder = Diary(schema="nominal").fit(ROWS)
        assert [*embedder.get_feature_names_out()] == ["color_0", "size_0", "n_0"]
        assert [*embedder.get_feature_names_out(["color", "size", "n"])] == [
            *("color_0", "size_0", "n_0")
        ]
        with pytest.raises(ValueError, match="not equal to feature_names_in_"):
            embedder.get_feature_names_out(["a", "b", "c"])
        with pytest.raises(ValueError, match="length equal"):
            Diary(schema="nominal").fit(ROWS.to_numpy()).get_feature_names_out(["a"])
        assert [*Diary(combine="sum", schema="nominal").fit(ROWS).get_feature_names_out()] == [
            "dim0"
        ]

    def test_before_fit(self):
        for call in ("transform", "pairwise_distances", "pairwise_kernel"):
            with pytest.raises((NotFittedError, AttributeError)):
                getattr(OneHot(), call)(ROWS)
        for call in (OneHot().get_feature_names_out, OneHot().learn):
            with pytest.raises(NotFittedError):
                call()
        with pytest.raises(NotFittedError):
            OneHot().value_distances("color")

    def test_pipeline(self):
        from sklearn.neighbors import KNeighborsClassifier

        model = make_pipeline(OneHot(), KNeighborsClassifier(1)).fit(ROWS, [0, 1, 2, 3])
        assert model.predict(ROWS).tolist() == [0, 1, 2, 3]


class TestDistances:
    def test_pairwise(self):
        embedder = Diary().fit(ROWS)
        vectors = embedder.transform(ROWS)
        gaps = embedder.space_.gaps(Table.of(ROWS, embedder.schema_))["color"]
        assert (gaps > 0).tolist() == ROWS["color"].isna().tolist()
        squared = ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2) + gaps[:, None] + gaps
        other = np.sqrt(squared)  # to rows that are equal, and other rows
        np.testing.assert_allclose(embedder.pairwise_distances(ROWS, ROWS[2:]), other[:, 2:])
        np.testing.assert_allclose(embedder.pairwise_kernel(ROWS, ROWS[:]), vectors @ vectors.T)
        np.fill_diagonal(other, 0)
        for same in (embedder.pairwise_distances(ROWS), embedder.pairwise_distances(ROWS, ROWS)):
            np.testing.assert_allclose(same, other)
        kernel = vectors @ vectors.T + np.diag(gaps)
        np.testing.assert_allclose(embedder.pairwise_kernel(ROWS), kernel)

    def test_unknown_policy(self):
        other = ROWS.assign(color="?")
        embedder = OneHot(unknown="error").fit(ROWS)
        for call in (
            embedder.transform,
            embedder.pairwise_distances,
            lambda X: embedder.pairwise_kernel(ROWS, X),
        ):
            with pytest.raises(ValueError, match=r"column 'color': value '\?' was not seen in fit"):
                call(other)

    def test_value_distances_are_labelled(self):
        frame = OneHot(schema="nominal").fit(ROWS).value_distances("color")
        assert [*frame.index] == ["blue", "red", None]
        assert frame.index.name == "color"
        assert [*frame.columns] == ["blue", "red", None]
        f = np.array([1, 2]) / 3
        squares = 2 * (1 - np.eye(2))
        expected = np.block([[squares, (squares @ f)[:, None]], [f @ squares, f @ squares @ f]])
        np.testing.assert_allclose(frame.to_numpy(), np.sqrt(expected))
        with pytest.raises(KeyError, match=r"expected a categorical column, .* got 'colour'"):
            OneHot(schema="nominal").fit(ROWS).value_distances("colour")

    def test_lookups_add_up(self):
        embedder = Diary(schema="nominal").fit(ROWS)
        tables, root = value_lookups(embedder)
        codes = embedder.tables_.codes(Table.of(ROWS, embedder.schema_))
        total = sum(t[c][:, c] for t, c in zip(tables, codes, strict=True))
        assert root
        np.testing.assert_allclose(np.sqrt(total), embedder.pairwise_distances(ROWS, ROWS.copy()))
        with pytest.raises(ValueError, match="do not add up"):
            value_lookups(Diary(combine="sum", schema="nominal").fit(ROWS))


class TestExplain:
    @pytest.mark.parametrize(
        ("a", "b"),
        [
            ({"color": "red", "size": "S", "n": 1}, {"n": 2, "size": "S", "color": "blue"}),
            (["red", "S", 1], ("blue", "S", 2)),
            (ROWS[:1], pd.DataFrame({"color": ["blue"], "size": ["S"], "n": [2]})),
            (ROWS.iloc[0], pd.Series({"color": "blue", "size": "S", "n": 2})),
            ([["red", "S", 1]], [["blue", "S", 2]]),
            ([{"color": "red", "size": "S", "n": 1}], {"color": "blue", "size": "S", "n": 2}),
            (lambda: pl.from_pandas(ROWS[:1]), ["blue", "S", 2]),
            (
                {"color": ["red"], "size": ["S"], "n": [1]},
                {"color": ["blue"], "size": ["S"], "n": [2]},
            ),
        ],
        ids=["dict", "list", "frame", "series", "rows", "records", "polars", "columns"],
    )
    def test_one_row_in_any_form(self, a, b):
        shares = OneHot(schema="nominal").fit(ROWS).explain(a() if callable(a) else a, b)
        assert shares == {"color": 2.0, "size": 0.0, "n": 2.0}

    def test_array_row(self):
        embedder = OneHot(schema="nominal").fit(ROWS.to_numpy())
        assert embedder.explain(
            np.array(["red", "S", 1], dtype=object), np.array(["red", "L", 1], dtype=object)
        ) == {"x0": 0.0, "x1": 2.0, "x2": 0.0}

    @pytest.mark.parametrize("combine", ["concat", "sum"])
    def test_adds_up(self, combine):
        embedder = Diary(combine=combine).fit(ROWS)
        shares = embedder.explain(ROWS[:1], ROWS[1:2])
        squared = embedder.pairwise_distances(ROWS[:1], ROWS[1:2])[0, 0] ** 2
        assert sum(shares.values()) == pytest.approx(squared)

    def test_more_than_one_row(self):
        with pytest.raises(ValueError, match="expected one row, got 4"):
            OneHot().fit(ROWS).explain(ROWS, ROWS[:1])

    def test_refuses_unknown_values_if_asked(self):
        embedder = OneHot(unknown="error").fit(ROWS)
        with pytest.raises(ValueError, match="'color'"):
            embedder.explain(["?", "S", 1], ["red", "S", 1])


class TestEstimator:
    def test_clone(self):
        schema = Schema({"n": "nominal"})
        embedder = OneHot(schema=schema, unknown="error", dtype="float32").fit(ROWS)
        twin = clone(embedder)
        assert twin.get_params() == {"schema": schema, "unknown": "error", "dtype": "float32"}
        assert not hasattr(twin, "counts_")

    @pytest.mark.parametrize("waiting", [False, True])
    def test_pickle(self, waiting):
        embedder = OneHot().fit(ROWS)
        if waiting:  # for learning
            embedder.partial_fit(ROWS.assign(color="new"))
        twin = pickle.loads(pickle.dumps(embedder))
        assert twin.counts_ == embedder.counts_
        np.testing.assert_array_equal(twin.transform(ROWS), embedder.transform(ROWS))
        assert twin.partial_fit(ROWS).counts_ == embedder.partial_fit(ROWS).counts_

    def test_parameters_are_left_alone(self):
        schema = {"n": "nominal"}
        embedder = OneHot(schema=schema).fit(ROWS)
        assert embedder.schema is schema
        assert schema == {"n": "nominal"}


def test_structured_arrays_have_names():
    X = np.array([(1, "x"), (2, "y")], dtype=[("a", "i4"), ("b", "U1")])
    model = OneHot().fit(X)
    assert list(model.feature_names_in_) == ["a", "b"]
    expected = model.transform({"a": [1, 2], "b": ["x", "y"]})
    assert np.array_equal(model.transform(X), expected)
    assert np.array_equal(model.transform(X[["b", "a"]]), expected)


# -- unknown values ------------------------------------------------------------------------------


def colours(n=60, names=("red", "blue", "green")):
    return {"color": [names[i % len(names)] for i in range(n)], "size": ["S", "L"] * (n // 2)}


def test_a_column_of_another_type_is_refused():
    model = OneHot(schema="nominal").fit({"zip": ["10115", "80331"] * 5, "code": [1, 2] * 5})
    for rows, message in (
        ({"zip": [10115], "code": [1]}, "'zip': expected text as in fit .*got numbers .*10115"),
        ({"zip": ["10115"], "code": ["1"]}, "'code': expected numbers .*got text .*'1'"),
        ({"zip": ["10115"], "code": [True]}, "'code': expected numbers .*got booleans"),
    ):
        for ask in (model.transform, model.pairwise_distances, model.unknown_counts):
            if ask == model.unknown_counts:
                assert len(ask(rows)) == 1
                continue
            with pytest.raises(ValueError, match=message):
                ask(rows)
    model.transform({"zip": [None], "code": [None]})  # missing is of every type


def test_a_column_wholly_unknown_is_refused():
    model = OneHot().fit(colours())
    strange = colours(names=("rouge", "bleu"))
    with pytest.raises(ValueError, match=r"'color': none of its 60 .* leave the column out"):
        model.transform(strange)
    assert model.unknown_counts(strange) == {"color": {"rouge": 30, "bleu": 30}}
    few = {name: cells[:5] for name, cells in strange.items()}
    assert len(model.transform(few)) == 5  # a new value or two is no mistake


def test_new_values_are_expected_of_identifiers_and_of_constants():
    shops = {"id": [f"a{i}" for i in range(60)], "year": ["2013"] * 60, "shop_id": [1, 2, 3] * 20}
    rows = {**shops, **colours()}
    more = {
        "id": [f"b{i}" for i in range(60)], "year": ["2014"] * 60, "shop_id": [4, 5, 6] * 20,
        **colours(),
    }  # fmt: skip
    model = OneHot(schema="nominal").fit(rows)
    with pytest.warns(UserWarning) as told:
        model.transform(more)
    found = [str(one.message) for one in told]
    assert [text[:12] for text in found] == ["column 'id':", "column 'year", "column 'shop"]
    assert all("60 of 60 values were not seen in fit" in text for text in found)


def test_gaps_do_not_close_a_column_of_values_that_occur_once():
    notes = [f"note {i}" if i % 3 == 0 else None for i in range(120)]
    rows = {"note": notes, "color": colours(120)["color"]}
    model = OneHot().fit(rows)
    with pytest.warns(UserWarning, match="'note': 40 of 40 values were not seen in fit"):
        model.transform({**rows, "note": [n and n.upper() for n in notes]})


def test_many_unknown_values_are_warned_of_once():
    model = OneHot().fit(colours())
    rows = colours(names=("red", "mauve", "ocre"))
    with pytest.warns(UserWarning, match="'color': 40 of 60 .*'mauve', 'ocre'.*unknown_counts"):
        first = model.transform(rows)
    np.testing.assert_array_equal(model.transform(rows), first)  # warnings are errors here
    model.fit(colours())
    with pytest.warns(UserWarning, match="'color'"):
        model.pairwise_distances(rows)


@pytest.mark.parametrize("method", ["transform", "pairwise_distances"])
def test_warnings_name_the_line_of_the_user(method):
    model = OneHot(schema="nominal").fit(colours())
    with pytest.warns(UserWarning, match="were not seen") as told:
        getattr(model, method)(colours(names=("red", "mauve", "ocre")))
    assert told[0].filename == __file__


def test_warnings_of_unknown_values_follow_every_fit():
    model, rows = OneHot(), colours(names=("red", "mauve", "ocre"))
    for _ in range(200):  # counts of one fit may lie in memory where those of another lay
        model.fit(colours())
        with pytest.warns(UserWarning, match="'color': 40 of 60"):
            model.transform(rows)


def test_a_fit_that_raises_leaves_any_estimator_as_it_was():
    rows = {"a": list("xyz") * 10, "b": list("pq") * 15}
    model = WeightedKNN().fit(rows, list("uv") * 15)
    before, attributes = model.predict(rows), set(vars(model))
    with pytest.raises(ValueError, match="got one class"):
        model.fit({"c": list("xyz")}, list("uuu"))
    np.testing.assert_array_equal(model.predict(rows), before)
    assert set(vars(model)) == attributes
    unfitted = WeightedKNN()
    with pytest.raises(ValueError, match="got one class"):
        unfitted.fit({"c": list("xyz")}, list("uuu"))
    assert vars(unfitted) == vars(WeightedKNN())


def test_some_unknown_values_are_warned_of_where_none_are_to_be_expected():
    fitted = {"color": ["red", "blue"] * 40}
    few = ["mauve", *["red", "blue"] * 10] * 20  # less than a twentieth
    assert len(OneHot().fit(fitted).transform({"color": few})) == 420
    with pytest.warns(UserWarning, match="'color': 50 of 450 .*'mauve', 'ocre'"):
        OneHot().fit(fitted).transform({"color": [*few, *["ocre"] * 30]})
    once = {"color": ["red", "blue"] * 40 + [f"shade {i}" for i in range(30)]}  # new ones will come
    new = {"color": ["red", "blue"] * 40 + [f"tint {i}" for i in range(30)]}
    assert len(OneHot().fit(once).transform(new)) == 110


def test_unknown_values_are_counted_where_learning_goes_on():
    model = OneHot().fit(colours())
    model.partial_fit(colours(names=("rouge", "bleu")))  # fit sees them: nothing is unknown
    assert model.unknown_counts(colours(names=("rouge", "red", "new"))) == {"color": {"new": 20}}


def test_elements_of_sets_are_counted():
    model = OneHot(schema={"tags": "set"}).fit({"tags": [{"a"}, {"a", "b"}, set()]})
    assert model.unknown_counts({"tags": [{"a", "z"}, {"z"}, set()]}) == {"tags": {"z": 2}}


class TestOddCalls:
    def test_tables_of_other_columns(self):
        embedder = OneHot().fit(Table.of({"a": list("xy"), "b": list("pq")}))
        for names in ("abc", "ba"):
            table = Table.of({name: ["x"] for name in names})
            with pytest.raises(ValueError, match=r"expected columns \['a', 'b'\], got \['[ab]'"):
                embedder.transform(table)
            with pytest.raises(ValueError, match=r"expected columns \['a', 'b'\], got"):
                read_with_fitted_schema(embedder, table)

    def test_a_policy_changed_after_fit_is_checked(self):
        embedder = OneHot().fit(ROWS)
        embedder.unknown = "guess"
        with pytest.raises(ValueError, match="expected unknown to be 'centroid' or 'error', got"):
            embedder.transform(ROWS)

    def test_the_policy_holds_for_both_sides(self):
        embedder = OneHot(unknown="error").fit(ROWS)
        assert embedder.pairwise_distances(ROWS).shape == (4, 4)
        odd = ROWS.assign(color="green")
        with pytest.raises(ValueError, match="green"):
            embedder.pairwise_distances(ROWS, odd)

    def test_a_flag_is_no_number(self):
        with pytest.raises(ValueError, match="must be"):
            Weave(n_components=True).fit(ROWS)

    def test_seeds_of_everything_that_draws(self):
        assert seed_of(3) == seed_of(3) == seed_of(np.random.RandomState(3))
        drawn = seed_of(np.random.default_rng(3))
        assert drawn == seed_of(np.random.default_rng(3)) != seed_of(np.random.default_rng(4))
        assert 0 <= drawn < 2**31 - 1 and isinstance(drawn, int)

    def test_rows_that_are_no_rows(self):
        embedder = OneHot().fit({"a": list("xy"), "b": list("pq")})
        with pytest.raises(TypeError, match=r"expected a row .*, got 5"):
            embedder.explain(5, ["x", "p"])

    def test_what_a_page_says(self, monkeypatch):
        monkeypatch.setenv("TABWEAVE_DOCS", "https://docs.example")
        embedder = OneHot().fit({"a": list("xy"), "b": list("pq")})
        assert embedder_title(embedder) == "OneHot" and column_weights(embedder) == {}
        assert embedder._get_doc_link() == "https://docs.example/api/tabweave.OneHot.html"
        embedder.weights_ = {"a": 1.0, "b": 0.5}
        assert column_weights(embedder) == {"a": 1.0, "b": 0.5}
        embedder.weights_ = np.ones(2)
        assert column_weights(embedder) == {}

    def test_a_child_process_has_locks_of_its_own(self):
        model = OneHot().fit(ROWS)
        from tabweave import updates

        before = updates.lock_of(model)
        assert updates.lock_of(model) is before
        updates._after_fork()
        assert updates.lock_of(model) is not before


class TestSources:
    @pytest.fixture
    def path(self, tmp_path):
        ROWS[["color", "size"]].to_csv(tmp_path / "rows.csv", index=False)
        return tmp_path / "rows.csv"

    def test_rows_of_a_file_are_added(self, path):
        twice = OneHot().fit(path).partial_fit(path)
        assert twice.counts_ == OneHot().fit(pd.read_csv(path)).counts_.scaled(1) + (
            OneHot().fit(path).counts_
        )
        assert twice.counts_.n == 8

    def test_weights_are_of_rows_in_memory(self, path):
        with pytest.raises(ValueError, match="sample_weight needs rows in memory; read"):
            OneHot().fit(path, sample_weight=[1] * 4)

    def test_classes_are_kept_where_they_are_used(self, path):
        assert OneHot().fit(path, "size").counts_.classes is None
        assert Supervised().fit(path, "size").counts_.classes == ("L", "M", "S")


class TestNotebooks:
    def test_an_explanation_is_sorted_and_shaded(self):
        page = Explanation({"a": 1.0, "b": 3.0, "c": -1.0})._repr_html_()
        assert "What each column adds; together 3<" in page
        assert page.index(">b<") < page.index(">a<") < page.index(">c<")
        for share in ("60%", "20%", "-20%"):
            assert f">{share}<" in page
        assert "#2d5f8f 60%" in page and "#2d5f8f 0%" in page
        assert "NaN" not in Explanation({"a": 0.0})._repr_html_()

    def test_distances_of_values_are_shaded_up_to_thirty(self):
        few = OneHot(schema="nominal").fit({"a": list("xyz")}).value_distances("a")._repr_html_()
        assert few.count("#2d5f8f 100%") == 6 and few.count("#2d5f8f 0%") == 3
        assert "the first" not in few
        many = (
            OneHot(schema="nominal")
            .fit({"a": [f"v{i:02}" for i in range(31)]})
            .value_distances("a")
        )
        page = many._repr_html_()
        assert "of a, the first 30; dark is far" in page and "v29" in page and "v30" not in page


def align(after, before):
    learned = (before.tables_, before.numbers_)
    turned = turned_towards((after.tables_, after.numbers_), learned, after.counts_)
    after.tables_, after.numbers_ = turned


class TestAligned:
    """Vectors of a later fit are turned to those of an earlier one, and distances stay."""

    @pytest.mark.parametrize("combine", ["concat", "sum"])
    def test_turned(self, combine):
        rows = {"a": list("xyzxyz"), "b": list("ppqqrr")}
        before, after = (Diary(combine=combine).fit(rows) for _ in range(2))
        far = after.pairwise_distances(rows)
        after.tables_ = replace(after.tables_, tables=[-t for t in after.tables_.tables])
        align(after, before)
        np.testing.assert_allclose(after.transform(rows), before.transform(rows), atol=1e-12)
        np.testing.assert_allclose(after.pairwise_distances(rows), far, atol=1e-12)

    def test_other_combinations_are_left(self):
        rows = {"a": list("xyz")}
        before, after = Diary(combine="sum").fit(rows), Diary().fit(rows)
        before.learn(), after.learn()
        tables = after.tables_
        align(after, before)
        assert after.tables_ is tables

    def test_curves_are_turned_too(self):
        rng = np.random.default_rng(0)
        rows = {"a": rng.choice(list("xyz"), 80), "n": rng.normal(size=80), "m": rng.random(80)}
        before, after = (Weave().fit(rows) for _ in range(2))
        after.numbers_ = replace(after.numbers_, rows=[-r for r in after.numbers_.rows],
                                 missing=[-m for m in after.numbers_.missing])  # fmt: skip
        align(after, before)
        np.testing.assert_allclose(after.transform(rows), before.transform(rows), atol=1e-9)


def test_kinds_of_what_was_fitted_say_what_is_left_out():
    rows = {"id": [f"u{i:03}" for i in range(60)], "same": ["x"] * 60, "g": list("abc") * 20}
    found = Weave().fit(rows).kinds()
    assert [(f.column, f.kept) for f in found] == [("id", False), ("same", False), ("g", True)]
    assert found.dropped["same"] == "constant" and found[2].kind == "nominal"
    assert found[2].why
    some = Weave().fit({"g": list("abc") * 20, "few": ["x"] * 59 + ["y"]}).kinds()
    assert [f.kept for f in some] == [True, True]
    so_far = Weave().partial_fit({name: rows[name] for name in ("same", "g")}).kinds()
    assert next((f.column, f.why, f.kept) for f in so_far) == ("same", "constant", False)


@pytest.mark.parametrize("cell", [[], ["p"], ["p", "q"]])
def test_sets_that_are_all_equal_are_constant(cell):
    rows = {"tags": [cell] * 30, "g": list("abc") * 10}
    for model in (Weave().fit(rows), Weave().partial_fit(rows)):
        assert model.kinds().dropped == {"tags": "constant"}
    some = Weave().partial_fit({"tags": [["p", "q"], ["p"]] * 15})
    assert not some.kinds().dropped


def test_text_where_numbers_are_read_is_named_by_its_column():
    rows = pd.DataFrame({"n": [1.0, 2.0], "city": ["Köln", "Rom"]})
    for X, which in ((rows, "X, column 'city'"), (rows.to_numpy(), "X")):
        with pytest.raises(ValueError, match=f"^{which}: could not convert .*'Köln'; drop it"):
            with numbers_only(X, "drop it"):
                np.asarray(X, np.float64)
    with pytest.raises(ValueError, match="other"), numbers_only(rows, "drop it"):
        raise ValueError("other")


@pytest.mark.parametrize(
    ("model", "remedy"), [(CA(), "crosstab"), (KSVD(), "SetTfidf"), (CoCA(), "Sources")]
)
def test_estimators_of_numbers_say_what_to_do_with_text(model, remedy):
    rows = pd.DataFrame({"n": [1.0, 2.0] * 5, "city": ["Köln", "Rom"] * 5})
    with pytest.raises(ValueError, match=f"column 'city': could not convert .*{remedy}"):
        model.fit(rows)
    tagged = rows.assign(city=[["a", "b"], ["a"]] * 5)
    with pytest.raises(ValueError, match=f"column 'city': setting an array .*{remedy}"):
        model.fit(tagged)
    with pytest.raises(TypeError, match=r"expected .*, got a mapping|frame of numbers, got dict"):
        model.fit(dict(rows))


EVERY_EMBEDDER = [
    *(OneHot(), ValueMetric("cos"), CKML(), CDE(), UNTIE(2), HELIC(), NonBEND(n_fits=1)),
    *(MCA(), FAMD(), DistanceHierarchy(), SupervisedWeave()),
]


@pytest.mark.parametrize("model", EVERY_EMBEDDER, ids=str)
def test_every_embedder_reads_columns_as_weave_does(model):
    rows = {
        "pay": np.arange(40) + 0.5,
        "when": pd.date_range("2026-01-01", periods=40),
        "paid": ["$1,200.50", "$80"] * 20,
        "yes": [0, 1, 1, 0] * 10,
        "stars": [1, 2, 3, 4] * 10,
        "color": ["red", "blue", "red", "green", "green"] * 8,
        "name": [f"n{i}" for i in range(40)],
    }
    y = ["u", "v"] * 20
    found = clone(model).fit(rows, y).kinds()
    assert found == Weave().fit(rows).kinds()
    assert [f.kind for f in found] == [
        *("numeric", "datetime", "numeric", "nominal", "numeric", "nominal", "nominal")
    ]
    assert found.dropped == {"name": "an identifier: its values hardly repeat"}
    declared = clone(model).set_params(schema="nominal").fit(rows, y).kinds()
    assert {(f.kind, f.why, f.kept) for f in declared} == {("nominal", "declared", True)}


def _numbers_as_objects():
    y = np.linspace(0, 5, 60)
    decimals = [Decimal(f"{value:.3f}") for value in y]
    return y, {
        "objects": y.astype(object),
        "decimals": decimals,
        "a series of objects": pd.Series(y, dtype=object),
        "decimals of polars": pl.Series(decimals),
        "decimals of Arrow": pa.array(decimals),
        "numbers of Arrow": pa.array(y),
    }


@pytest.mark.parametrize("how", _numbers_as_objects()[1])
def test_numbers_are_a_target_of_numbers_however_they_are_held(how):
    y, held = _numbers_as_objects()
    rows = {"a": list("pqr") * 20, "b": np.sin(y)}
    np.testing.assert_allclose(target_array(held[how]), y, atol=1e-3)
    assert SupervisedWeave().fit(rows, held[how]).target_.numeric
    with pytest.raises(ValueError, match=r"HELIC: expected classes in y, got numbers such as"):
        HELIC().fit({"a": rows["a"]}, held[how])


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "int64[pyarrow]", "bool[pyarrow]", object])
@pytest.mark.parametrize(
    "model", [WeaveClassifier(), GBCClassifier(4), HeMap(LogisticRegression())], ids=str
)
def test_classes_stay_what_they_are(model, dtype):
    rows = pd.DataFrame({"x": [0.0, 1.0] * 20, "z": np.arange(40) / 3})
    y = pd.Series([0, 1] * 20).astype("Int64").astype(dtype)
    expected = [False, True] if "bool" in str(dtype) else [0, 1]
    source = {"source": (rows.to_numpy(), y.to_numpy(type(expected[0])))}
    model = clone(model).fit(rows, y, **(source if isinstance(model, HeMap) else {}))
    assert model.classes_.dtype == np.array(expected).dtype
    assert model.classes_.tolist() == expected
    if dtype is not object and not isinstance(model, HeMap):
        y[3] = pd.NA
        with pytest.raises(ValueError, match=r"y of row 3 is missing; drop the row"):
            clone(model).fit(rows, y)


@pytest.mark.parametrize("model", [WeaveClassifier(), WeightedKNN(), GBCClassifier(4)], ids=str)
def test_classes_of_several_types_are_refused(model):
    rows = pd.DataFrame({"x": list("ab") * 20})
    for y in ([1, "no"] * 20, pd.Series([1, "no"] * 20, dtype=object)):
        with pytest.raises(ValueError, match=r"one type in y, got 1 of type int and 'no' of type"):
            clone(model).fit(rows, y)


@pytest.mark.parametrize("model", [WeaveRegressor(), GBCRegressor(4), SupervisedWeave()], ids=str)
def test_a_target_of_times_wants_a_unit(model):
    rows = {"x": np.arange(40) % 7}
    for y in (np.arange(40).astype("m8[s]"), np.arange(40).astype("M8[D]")):
        with pytest.raises(ValueError, match=r"numbers, got .*; convert them to a unit"):
            clone(model).fit(rows, y)


@pytest.mark.parametrize(
    "model", [WeaveClassifier(), WeaveRegressor(), SupervisedWeave(), HELIC()], ids=str
)
def test_a_name_is_no_target_of_rows_in_memory(model):
    with pytest.raises(TypeError, match=r"one per row, got the string 'b'; pass the col"):
        clone(model).fit({"a": list("pqr") * 10, "b": list("xyz") * 10}, "b")


@pytest.mark.parametrize(
    "model",
    [
        KModes(2, metric=ValueMetric(schema="nominal")),
        *(WeightedKNN(), WeightedKNN(metric="euclidean"), GBCClassifier(4)),
    ],
    ids=str,
)
def test_records_and_names_of_several_levels_come_back(model):
    """What fit took, predict takes, without a word about the names of columns."""
    number = np.tile([0.0, 1.0, 3.0], 10)
    records = [{"x": x, "z": {"w": -x}} for x in number]
    levels = pd.DataFrame({("r", "x"): number, ("r", "w"): -number})
    for rows in (pd.DataFrame({"r": records}), levels):
        fitted = clone(model).fit(rows, ["u", "v"] * 15)
        assert len(fitted.predict(rows)) == 30
        with pytest.raises(ValueError, match="feature names"):
            fitted.predict(pd.DataFrame({"other": number}))


class TestIterators:
    frames = tuple(
        pd.DataFrame({"a": ["x", "y"] * 40, "b": ["u", "v", "w", "u"] * 20}) for _ in range(3)
    )

    @pytest.mark.parametrize("embedder", [OneHot(), Weave()])
    def test_fit_reads_what_can_be_read_once(self, embedder):
        whole = pd.concat(self.frames)
        expected = clone(embedder).fit(whole)
        assert clone(embedder).fit(iter(self.frames)).counts_ == expected.counts_
        parts = clone(embedder).partial_fit(self.frames[0]).partial_fit(iter(self.frames[1:]))
        assert parts.counts_ == expected.counts_
        with pytest.raises(TypeError, match="partial_fit with each part"):
            expected.transform(iter(self.frames))
