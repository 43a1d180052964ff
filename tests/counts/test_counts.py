"""Counts against counting by hand, from every library."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tabweave import Column, Counts, Schema, Table
from tabweave.columns.table import take_rows
from tabweave.columns.vocabulary import Vocabulary
from tabweave.counts import counting as _counting
from tabweave.counts.counts import append
from tabweave.counts.merging import equal, expand

NAMES = ("a", "b", "s")
cell = st.sampled_from(["u", "v", "w", 1, True, None, 2.5])
elements = st.lists(st.sampled_from(["p", "q", 3]), max_size=3)
table_rows = st.lists(
    st.tuples(cell, cell, elements, st.sampled_from("xyz")), min_size=1, max_size=15
)


def key(value):
    return type(value).__name__, value


def reference(rows, weights):
    """Count pairs of (column, value) with a dictionary, rows one by one."""
    pairs, classes = {}, {}
    for (a, b, s, y), w in zip(rows, weights, strict=True):
        values = {("a", key(a)), ("b", key(b)), *(("s", key(e)) for e in s)}
        for left, right in product(values, values):
            # Values of one column meet only in a set.
            if left[0] != right[0] or left == right or left[0] == "s":
                pairs[left, right] = pairs.get((left, right), 0) + w
        for value in values:
            classes[value, y] = classes.get((value, y), 0) + w
    return pairs, classes


@settings(max_examples=80)
@given(table_rows, st.data())
@pytest.mark.parametrize("limit", [2048, 0], ids=["dense", "sparse"])
def test_equals_counting_by_hand(limit, rows, data):
    weights = data.draw(
        st.one_of(st.none(), st.lists(st.integers(1, 9), min_size=len(rows), max_size=len(rows)))
    )
    schema = {"a": "nominal", "b": "nominal", "s": "set"}
    records = [dict(zip(NAMES, row[:3], strict=True)) for row in rows]
    before, _counting.DENSE_VALUES = _counting.DENSE_VALUES, limit
    try:
        counts = Counts.of(
            Table.of(records, schema), [row[3] for row in rows], sample_weight=weights
        )
    finally:
        _counting.DENSE_VALUES = before
    pairs, classes = reference(rows, weights or [1] * len(rows))
    flat = [(n, key(v)) for n, own in zip(NAMES, counts.labels, strict=True) for v in own]
    matrix = counts.pairs.toarray() if sparse.issparse(counts.pairs) else counts.pairs
    assert matrix.tolist() == [[pairs.get((left, right), 0) for right in flat] for left in flat]
    assert counts.class_pairs.tolist() == [
        [classes.get((value, y), 0) for y in counts.classes] for value in flat
    ]
    assert counts.n == sum(weights or [1] * len(rows))
    assert counts.classes == tuple(sorted({row[3] for row in rows}))


@pytest.mark.parametrize("values", [3, 40, 300, 5000])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_size_of_column(values, weighted):
    """Small columns are packed, large ones counted in pairs, huge ones sparsely."""
    rng = np.random.default_rng(values)
    codes = rng.integers(0, values, (4000, 3))
    weight = rng.integers(0, 5, 4000) if weighted else None
    counts = Counts.of(Table.of(codes, numbers="nominal"), sample_weight=weight)
    for i, j in [(0, 1), (1, 2), (0, 2)]:
        expected = np.zeros((values, values))
        np.add.at(expected, (codes[:, i], codes[:, j]), 1 if weight is None else weight)
        left, right = (np.array(counts.labels[k]) for k in (i, j))
        np.testing.assert_array_equal(counts.block(i, j), expected[np.ix_(left, right)])
        assert expected.sum() == counts.block(i, j).sum()
    assert sparse.issparse(counts.pairs) == (values == 5000)


def test_many_rows_use_all_threads():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (200_000, 4)).astype(np.uint8)
    counts = Counts.of(Table.of(codes, numbers="nominal"))
    expected = np.zeros((4, 4), int)
    np.add.at(expected, (codes[:, 1], codes[:, 3]), 1)
    np.testing.assert_array_equal(counts.block("x1", "x3"), expected)


DATA = {
    "color": ["red", "blue", "red", None, "green"],
    "code": [1, 2, 1, 3, 2],
    "ok": [True, False, True, True, False],
    "x": [0.5, None, 1.25, -3.0, 2.0],
    "tags": [["a", "b"], [], ["b"], ["c", "a"], ["a"]],
}
KINDS = {"color": "nominal", "code": "nominal", "ok": "nominal", "x": "numeric", "tags": "set"}
FORMS = {
    "dict": lambda: DATA,
    "records": lambda: [
        dict(zip(DATA, row, strict=True)) for row in zip(*DATA.values(), strict=True)
    ],
    "pandas": lambda: pd.DataFrame(DATA),
    "pandas objects": lambda: pd.DataFrame(DATA, dtype=object),
    "pandas nullable": lambda: pd.DataFrame(DATA).convert_dtypes(),
    "pandas arrow": lambda: pa.table(DATA).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.DataFrame(DATA),
    "pyarrow": lambda: pa.table(DATA),
    "pyarrow chunks": lambda: pa.concat_tables(
        [pa.table(DATA).slice(0, 2), pa.table(DATA).slice(2)]
    ),
    "dict of series": lambda: {k: pl.Series(v) for k, v in DATA.items()},
    "dict of arrow": lambda: {k: pa.array(v) for k, v in DATA.items()},
    "shuffled index": lambda: pd.DataFrame(DATA, index=[3, 3, 0, 9, 1]),
}


class TestLibraries:
    @pytest.mark.parametrize("form", FORMS)
    def test_same_data_same_counts(self, form):
        y = ["n", "y", "n", "n", "y"]
        expected = Counts.of(Table.of(DATA, KINDS), y)
        assert expected.labels[0] == ("blue", "green", "red", None)
        assert Counts.of(Table.of(FORMS[form](), KINDS), y) == expected

    @pytest.mark.parametrize("form", [f for f in FORMS if f != "pandas objects"])
    def test_same_kinds_are_inferred(self, form):
        kinds = {c.name: c.kind for c in Table.of(FORMS[form]()).schema.columns}
        assert kinds == {**KINDS, "code": "numeric"}

    def test_numpy_arrays(self):
        rows = [["u", "1"], ["v", "2"], ["u", "2"]]
        expected = Counts.of([{"x0": a, "x1": b} for a, b in rows])
        assert Counts.of(np.array(rows)) == expected
        assert Counts.of(np.array(rows, dtype=object)) == expected
        assert Counts.of(np.array(rows, dtype=np.dtypes.StringDType())) == expected
        assert Counts.of(rows) == expected
        assert Counts.of(tuple(map(tuple, rows))) == expected
        assert Counts.of(np.asfortranarray(np.array(rows))) == expected

    @pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i8", "u8", ">i4", "f4", "f8", "O"])
    def test_integers_of_any_type(self, dtype):
        array = np.array([[3, 7], [0, 7], [3, 1]])
        expected = Counts.of(Table.of({"x0": [3, 0, 3], "x1": [7, 7, 1]}, numbers="nominal"))
        assert Counts.of(Table.of(array.astype(dtype), numbers="nominal")) == expected


COLORS = ["red", "blue", None, "red", "green"]
PLAIN = Counts.of({"c": COLORS, "d": ["p", "q", "p", "q", "p"]})
OTHER = ["p", "q", "p", "q", "p"]


def arrow_dictionaries():
    first = pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int8()), ["blue", "red"])
    second = pa.DictionaryArray.from_arrays(pa.array([0, 2], pa.int8()), ["red", "?", "green"])
    return pa.table({"c": pa.chunked_array([first, second]), "d": OTHER})


class TestCategoricals:
    @pytest.mark.parametrize(
        "frame",
        [
            pd.DataFrame({"c": pd.Categorical(COLORS), "d": OTHER}),
            pd.DataFrame(
                {"c": pd.Categorical(COLORS, ["zebra", "red", "green", "blue"]), "d": OTHER}
            ),
            pl.DataFrame({"c": COLORS, "d": OTHER}, schema_overrides={"c": pl.Categorical}),
            pl.DataFrame(
                {"c": COLORS, "d": OTHER},
                schema_overrides={"c": pl.Enum(["zebra", "red", "green", "blue"])},
            ),
            arrow_dictionaries(),
            pa.table({"c": pa.array(COLORS).dictionary_encode(), "d": OTHER}),
            {"c": pd.Categorical(COLORS), "d": pd.CategoricalIndex(OTHER)},
        ],
        ids=["pandas", "pandas unused", "polars", "polars enum", "arrow chunks", "arrow", "dict"],
    )
    def test_equal_the_plain_text(self, frame):
        assert Counts.of(Table.of(frame, {"c": "nominal"})) == PLAIN

    def test_numbers_as_categories(self):
        frame = pd.DataFrame({"c": pd.Categorical([1, 2, None], [3, 2, 1])})
        assert Counts.of(frame).labels == ((1, 2, None),)

    def test_ordered_categories_bring_their_levels(self):
        frame = pd.DataFrame({"c": pd.Categorical(["S", "L"], ["S", "M", "L"], ordered=True)})
        counts = Counts.of(frame)
        assert counts.schema["c"] == Column("c", "ordinal", levels=("S", "M", "L"))
        assert counts.labels == (("S", "L"),)

    def test_polars_enum_brings_its_levels(self):
        frame = pl.DataFrame({"c": pl.Series(["S", "L"], dtype=pl.Enum(["S", "M", "L"]))})
        assert Counts.of(frame).schema["c"].levels == ("S", "M", "L")

    def test_binned_numbers_keep_their_order(self):
        counts = Counts.of(pd.DataFrame({"c": pd.cut([1.0, 20.0, 3.0], [0, 2, 10, 100])}))
        assert counts.labels == (("(0, 2]", "(2, 10]", "(10, 100]"),)


COUNTS = Counts.of(
    {"a": ["u", "v", "u"], "x": [1.0, 2.0, 6.0], "b": ["p", "p", "q"]}, ["y", "n", "y"]
)


class TestReading:
    def test_parts(self):
        assert COUNTS.names == ["a", "x", "b"]
        assert COUNTS.sizes.tolist() == [2, 3, 2]
        assert COUNTS.offsets.tolist() == [0, 2, 5, 7]
        assert COUNTS.value_counts.tolist() == [2, 1, 1, 1, 1, 2, 1]
        assert COUNTS.span("b") == COUNTS.span(2) == COUNTS.span(np.int8(2)) == slice(5, 7)
        assert COUNTS.span(-1) == slice(5, 7)
        assert repr(COUNTS) == "Counts(3 rows, 3 columns, 7 values, 2 classes)"
        assert repr(Counts()) == "Counts()"

    def test_block(self):
        assert COUNTS.block("a", "b").tolist() == [[1, 1], [1, 0]]
        assert COUNTS.block("b", "a").tolist() == [[1, 1], [1, 0]]
        assert COUNTS.block("a", "a").tolist() == [[2, 0], [0, 1]]

    def test_select(self):
        chosen = COUNTS.select(["b", "a"])
        expected = Counts.of({"b": ["p", "p", "q"], "a": ["u", "v", "u"]}, ["y", "n", "y"])
        assert chosen == expected
        assert chosen.labels == expected.labels
        assert COUNTS.select("x").moments("x") == (3, 3.0, 14 / 3)
        assert COUNTS.select([]).offsets.tolist() == [0]
        assert COUNTS.select(COUNTS.schema.names) is COUNTS

    def test_select_sparse(self):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_counting, "DENSE_VALUES", 0)
            thin = Counts.of({"a": ["u", "v"], "b": ["p", "q"], "c": ["m", "m"]})
            assert thin.select(["c", "a"]) == Counts.of({"c": ["m", "m"], "a": ["u", "v"]})

    def test_unknown_names(self):
        for call in (COUNTS.span, COUNTS.select, lambda n: COUNTS.block(n, "a")):
            with pytest.raises(KeyError, match="'z'"):
                call("z")
        with pytest.raises(IndexError):
            COUNTS.span(3)

    def test_zero(self):
        assert Counts().names == []
        assert Counts.of({"a": []}) == Counts()
        assert Counts.of({"a": ["u"]}, sample_weight=[0]) == Counts()

    def test_is_not_hashable(self):
        with pytest.raises(TypeError):
            hash(COUNTS)

    def test_compares_to_others(self):
        assert COUNTS != "counts"
        assert COUNTS != Counts()
        with pytest.raises(TypeError):
            COUNTS + 1
        with pytest.raises(TypeError):
            COUNTS - 1


class TestOneOrNone:
    def test_one_row(self):
        counts = Counts.of({"a": ["u"], "b": [None]})
        assert counts.labels == (("u",), (None,))
        assert counts.pairs.tolist() == [[1, 1], [1, 1]]

    def test_all_missing(self):
        counts = Counts.of({"a": [None, None], "b": [math.nan, math.nan]})
        assert counts.labels == ((None,), (None,))
        assert counts.moments("b")[0] == 0

    def test_only_empty_sets(self):
        counts = Counts.of({"s": [[], []], "a": ["u", "v"]})
        assert counts.labels == ((), ("u", "v"))
        assert counts.pairs.tolist() == [[1, 0], [0, 1]]

    def test_missing_and_empty_text_in_one_set_count_once(self):
        schema = Schema({"s": "set"}, empty_is_missing=True)
        counts = Counts.of(Table.of({"s": [["", None, "x"], ["x"]]}, schema))
        assert counts.labels == (("x", None),)
        assert counts.pairs.tolist() == [[2, 1], [1, 1]]


class TestForgetting:
    def test_names_what_was_not_there(self):
        with pytest.raises(ValueError, match=r"column 'a', value 'w'.*more rows"):
            COUNTS.select(["a"]) - Counts.of({"a": ["w"]}, ["y"])

    def test_notices_pairs_that_never_met(self):
        whole = Counts.of({"a": ["u", "u", "u", "v", "v"], "b": ["p", "q", "q", "p", "p"]})
        with pytest.raises(ValueError, match="'u' with column 'b', value 'p'"):
            whole - Counts.of({"a": ["u", "u"], "b": ["p", "p"]})

    def test_notices_numbers_that_were_never_there(self):
        with pytest.raises(ValueError, match="column 'x'"):
            Counts.of({"x": [1.0, 2.0]}) - Counts.of({"x": [3.0, 4.0]})
        with pytest.raises(ValueError, match="column 'x'"):
            Counts.of({"x": [1.0, None, None]}) - Counts.of({"x": [1.0, 2.0]})

    def test_more_rows_than_there_are(self):
        with pytest.raises(ValueError, match="more rows"):
            Counts.of({"s": [[]]}) - Counts.of({"s": [[], []]})
        with pytest.raises(ValueError, match="from empty counts"):
            Counts() - COUNTS


class TestScaled:
    COUNTS = Counts.of(Table.of({"a": ["u", "v", "u"], "b": ["x", "y", "y"]}), ["p", "q", "q"])

    @pytest.mark.parametrize("factor", [-1, -0.1, math.nan, math.inf])
    def test_factors_that_are_none(self, factor):
        with pytest.raises(ValueError, match=f"expected factor to be a number >= 0, got {factor}"):
            self.COUNTS.scaled(factor)

    def test_nothing_is_left_of_nothing(self):
        assert self.COUNTS.scaled(0) == Counts()
        assert self.COUNTS.scaled(1) is self.COUNTS
        assert Counts().scaled(0.5) == Counts()

    def test_values_that_fade_are_dropped(self):
        old = Counts.of(Table.of({"a": ["gone"] * 2, "b": ["x"] * 2}), ["p", "q"]).scaled(1e-10)
        both = (self.COUNTS + old).scaled(0.5)
        assert both.labels == (("u", "v"), ("x", "y"))
        half = self.COUNTS.scaled(0.5)
        np.testing.assert_allclose(both.pairs, half.pairs, atol=1e-9)
        np.testing.assert_allclose(both.class_pairs, half.class_pairs, atol=1e-9)
        assert both.class_pairs.shape == (4, 2)


class TestAppended:
    """A window of rows is counted into what was there: the same as adding counts."""

    ROWS: ClassVar = {"a": ["u", "v", "u", "w"], "b": ["x", "y", "y", "x"]}

    def both(self, before, after, schema=None, **how):
        old = Table.of(before, schema)
        new = Table.of(after, old.schema)
        start = Counts.of(old, how.pop("old_y", None))
        found = append(start, new, **how)
        assert found == start + Counts.of(new, **how)
        return found

    def test_plain_rows(self):
        found = self.both(self.ROWS, {"a": ["u", "z"], "b": ["x", "x"]})
        assert found.labels == (("u", "v", "w", "z"), ("x", "y"))
        assert found.n == 6
        known = self.both(self.ROWS, {"a": ["v", "w"], "b": ["y", "y"]})
        assert known.labels == (("u", "v", "w"), ("x", "y"))

    def test_one_row_and_none(self):
        assert self.both(self.ROWS, {"a": ["u"], "b": ["y"]}).n == 5
        empty = append(Counts.of(Table.of(self.ROWS)), take_rows(Table.of(self.ROWS), np.arange(0)))
        assert empty == Counts.of(Table.of(self.ROWS))

    def test_a_label_that_no_row_has_is_not_added(self):
        new = take_rows(Table.of({"a": ["z", "u"], "b": ["x", "y"]}), np.array([1]))
        found = append(Counts.of(Table.of(self.ROWS)), new)
        assert found.labels == (("u", "v", "w"), ("x", "y")) and found.n == 5

    def test_what_goes_the_general_way(self):
        more = {"a": ["u", "z"], "b": ["x", "x"]}
        self.both(self.ROWS, more, sample_weight=[2, 3])
        self.both(self.ROWS, more, old_y=list("pqpq"), y=["p", "q"])
        numbers = {**self.ROWS, "n": [1.0, 2.0, 3.0, 4.0]}
        assert self.both(numbers, {**more, "n": [5.0, 6.0]}).moments("n")[0] == 6
        sets = {**self.ROWS, "s": [["p"], [], ["q", "p"], ["q"]]}
        self.both(sets, {**more, "s": [["p", "r"], []]})
        assert append(Counts(), Table.of(self.ROWS)) == Counts.of(Table.of(self.ROWS))

    def test_what_cannot_be_added_cannot_be_appended(self):
        start, more = Counts.of(self.ROWS), {"a": ["u"], "b": ["x"]}
        for counts, rows, schema in (
            (start, {"a": ["u"], "c": ["x"]}, None),
            (start, {"a": ["u"]}, None),
            (start, more, {"a": Column("a", "ordinal", levels=("u", "v", "w"))}),
            (Counts.of(self.ROWS, list("pqpq")), more, None),
        ):
            table = Table.of(rows, schema)
            with pytest.raises(ValueError, match=r"one of the counts|declare it in") as added:
                counts + Counts.of(table)
            with pytest.raises(ValueError, match=r"one of the counts|declare it in") as appended:
                append(counts, table)
            assert str(added.value) == str(appended.value)

    def test_levels(self):
        schema = {"a": Column("a", "ordinal", levels=("u", "v", "w")), "b": "nominal"}
        self.both({"a": ["u", "u"], "b": ["x", "y"]}, {"a": ["w", "v"], "b": ["x", "z"]}, schema)

    def test_grown_too_large_for_a_dense_matrix(self, monkeypatch):
        monkeypatch.setattr("tabweave.counts.merging.DENSE_VALUES", 6)
        monkeypatch.setattr(_counting, "DENSE_VALUES", 6, raising=False)
        found = self.both(self.ROWS, {"a": ["s", "t"], "b": ["x", "z"]})
        assert found.n == 6 and sparse.issparse(found.pairs)


def test_a_page_lists_the_most_frequent_values():
    cells = ["u"] * 5 + ["v"] * 9 + [None] * 3 + list("abcd")
    page = Counts.of(Table.of({"a": cells, "b": ["x"] * 21}))._repr_html_()
    assert "Counts of 21 rows" in page
    assert ">v 9, u 5, missing 3, a 1, b 1, …<" in page and ">x 21<" in page
    assert ">7<" in page and ">1<" in page


def test_counts_that_do_not_fit_are_refused():
    counts = Counts.of(Table.of({"a": ["u", "v"]}), ["p", "q"])
    Counts()._check_loaded()
    counts._check_loaded()
    with pytest.raises(ValueError, match="the class counts do not fit 2 values"):
        replace(counts, class_pairs=counts.class_pairs[:1])._check_loaded()
    with pytest.raises(ValueError, match="the pair counts do not fit 2 values"):
        replace(counts, pairs=counts.pairs[:1])._check_loaded()


def test_matrices_are_equal_in_storage_shape_and_entries():
    a = np.array([[1, 0], [0, 2]])
    assert equal(a, a.copy()) and equal(sparse.csr_array(a), sparse.csr_array(a))
    assert not equal(a, sparse.csr_array(a))
    assert not equal(a, a[:1]) and not equal(sparse.csr_array(a), sparse.csr_array(a[:1]))
    assert not equal(a, a + 1) and not equal(sparse.csr_array(a), sparse.csr_array(2 * a))


@pytest.mark.parametrize(
    ("weight", "fits"),
    [
        (2**61, True),
        (2**62, False),
        (2.0**900, False),
        (1e249, True),
        (4e249, True),
        (6e249, False),
    ],
)
def test_weights_that_would_wrap_around_are_refused(weight, fits):
    table = Table.of({"a": ["u", "v"]})
    if fits:
        assert Counts.of(table, sample_weight=[weight, weight]).n == 2 * weight
    else:
        with pytest.raises(ValueError, match=r"sample_weight adds up to .*; scale it down"):
            Counts.of(table, sample_weight=[weight, weight])


def test_what_weights_are_stays(tmp_path):
    table = Table.of({"a": ["u", "v"]})
    assert Counts.of(table, sample_weight=[True, False]).pairs.dtype == np.int64
    assert Counts.of(table, sample_weight=np.array([2, 3], np.uint8)).pairs.dtype == np.int64
    assert Counts.of(table, sample_weight=[0.5, 1]).pairs.dtype == np.float64


def test_counts_come_back_from_a_file(tmp_path):
    path = tmp_path / "counts"
    for counts in (Counts(), Counts.of(Table.of({"a": ["u", "v"], "n": [1.5, 2.5]}), ["p", "q"])):
        counts.save(path)
        assert Counts.load(path) == counts and Counts.load(path).schema == counts.schema


# -- merging ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("swap", [False, True])
def test_columns_of_one_of_the_counts_only_are_named(swap):
    both, one = Counts.of({"a": ["u"], "b": ["x"]}), Counts.of({"a": ["u"]})
    for work in (lambda p, q: p + q, lambda p, q: p - q):
        with pytest.raises(ValueError, match="column 'b' is in only one of the counts"):
            work(one, both) if swap else work(both, one)


def test_columns_that_differ_in_kind_or_levels_are_named():
    ordered = [Column("a", "ordinal", levels=levels) for levels in (["u", "v"], ["v", "u"])]
    first, second = (Counts.of(Table.of({"a": ["u", "v"]}, {"a": column})) for column in ordered)
    with pytest.raises(
        ValueError, match=r"'a' is ordinal in one and ordinal in the other \(or has"
    ):
        first + second
    with pytest.raises(ValueError, match="only one of the counts has classes"):
        Counts.of({"a": ["u"]}) + Counts.of({"a": ["u"]}, ["p"])


def test_few_values_grow_into_very_many_without_a_full_matrix():
    few = Counts.of({"a": ["v3", "v5", "v3"]})
    wide = Vocabulary(("a",), (tuple(f"v{i}" for i in range(300_000)),))
    grown = expand(few, wide)  # 720 GB if it were full
    assert sparse.issparse(grown) and grown.nnz == 2
    assert grown[3, 3] == 2 and grown[5, 5] == 1


@pytest.mark.parametrize("limit", [2048, 0])
def test_merging_is_counting_all_rows_with_pandas(limit, monkeypatch):
    """Cross tables of rows that came in two parts, one of which has values of its own."""
    monkeypatch.setattr(_counting, "DENSE_VALUES", limit)
    rng = np.random.default_rng(limit)
    frame = pd.DataFrame(rng.integers(0, 5, (80, 3)).astype(str), columns=list("abc"))
    frame.loc[40:, "a"] += "'"
    y = rng.choice(["p", "q", "r"], 80)
    parts = [Counts.of(frame[:40], y[:40]), Counts.of(frame[40:], y[40:])]
    total = parts[0] + parts[1]
    for left, right in product("abc", "abc"):
        if left != right:
            table = pd.crosstab(frame[left], frame[right])
            np.testing.assert_array_equal(total.block(left, right), table)
    for name in "abc":
        table = pd.crosstab(frame[name], y)
        np.testing.assert_array_equal(total.class_pairs[total.span(name)], table)
    assert total.n == 80 and total.class_n.tolist() == [int((y == c).sum()) for c in "pqr"]
    assert total - parts[0] == parts[1] and total - parts[1] == parts[0]


def test_equal_counts_are_stored_alike(monkeypatch):
    """Counted whole or in parts; four bytes an index, of which large counts mostly are."""
    monkeypatch.setattr(_counting, "DENSE_VALUES", 4)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 300, (500, 3)).astype(str), columns=list("abc"))
    whole = Counts.of(frame)
    for found in (Counts.of(frame[:200]) + Counts.of(frame[200:]), whole.select(list("abc"))):
        assert found == whole
        for part in ("data", "indices", "indptr"):
            mine, theirs = (getattr(counts.pairs, part) for counts in (whole, found))
            assert mine.dtype == theirs.dtype and (mine == theirs).all()
    assert whole.pairs.indices.dtype == np.int32


def test_rounding_is_zero_after_a_subtraction_of_weights():
    """A billionth of the weight of all rows, of whichever of the two is heavier."""
    rows = {"a": ["u", "v"]}
    whole = Counts.of(rows, sample_weight=[1.0, 1.0])
    left = whole - Counts.of({"a": ["v"]}, sample_weight=[1 - 1e-9])
    assert left.labels == (("u",),)
    left = whole - Counts.of({"a": ["v"]}, sample_weight=[1 - 3e-9])
    assert left.labels == (("u", "v"),) and left.value_counts[1] == pytest.approx(3e-9)
    slightly = Counts.of({"a": ["v"]}, sample_weight=[1 + 1e-9])
    assert (whole - slightly).labels == (("u",),)
    with pytest.raises(ValueError, match="'v': cannot subtract more rows"):
        whole - Counts.of({"a": ["v"]}, sample_weight=[1 + 3e-9])
    assert whole - Counts.of(rows, sample_weight=[1 - 0.9e-9, 1 - 0.9e-9]) == Counts()


def test_sets_that_were_not_counted_are_not_taken_away():
    """One row less one row is none; but the value that it had would be left."""
    one, empty = (Counts.of({"a": [cell], "b": ["x"]}) for cell in (["u"], []))
    with pytest.raises(ValueError, match="column 'a', value 'u': cannot subtract rows"):
        one - empty
    two = Counts.of({"a": [["u"], []], "b": ["x", "x"]})
    assert two - empty == one and two - one == empty


def test_counts_do_not_wrap_around():
    rows = {"a": ["u", "v"]}
    many = Counts.of(rows, sample_weight=[2**61, 2**61 - 1])
    assert (many + many).n == 2**63 - 2
    with pytest.raises(OverflowError, match=r"at most 9,223,372,036,854,775,807 rows.*; scale"):
        many + many + many


def test_what_is_no_class_is_named_by_its_row():
    with pytest.raises(ValueError, match="y of row 2 is missing; drop the row"):
        Counts.of({"a": list("uvuv")}, ["p", "q", None, "q"])
    with pytest.raises(ValueError, match="y of row 0 is missing; drop the row"):
        Counts.of({"a": list("uv")}, [None, None])
    with pytest.raises(ValueError, match="expected 4 labels in y, one a row, got 3"):
        Counts.of({"a": list("uvuv")}, ["p", "q", "q"])


def test_what_are_no_weights_is_named():
    rows = {"a": ["u", "v", "w"]}
    masked = np.ma.MaskedArray([1.0, 2.0, 3.0], [False, True, False])
    for odd, kind in ((["a", "b", "c"], "<U1"), (masked, "float64"), ([1j, 1, 1], "complex128")):
        with pytest.raises(TypeError, match=f"expected a number for each row, got {kind}"):
            Counts.of(rows, sample_weight=odd)
    for odd in ([1, 2, -1], [1, 1, np.nan], [1, 1, np.inf]):
        with pytest.raises(ValueError, match="sample_weight of row 2: expected a number >= 0, got"):
            Counts.of(rows, sample_weight=odd)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(2,\), expected \(3,\)"):
        Counts.of(rows, sample_weight=[1, 2])
    assert Counts.of(rows, sample_weight=[0, 1, 2]).labels == (("v", "w"),)
    assert Counts.of(rows, sample_weight=2).n == 6
    given = np.array([1, 2.5, 3], object)
    assert Counts.of(rows, sample_weight=given).n == 6.5


def test_heavy_integer_weights_are_exact_in_pieces():
    """Weights of many bits, in blocks that never fill 64 of them, against Python's integers."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=50)
    for bits in (1, 20, 29, 30, 31, 45, 55):
        weight = rng.integers(1 << (bits - 1), 1 << bits, 50)
        found = Counts.of({"x": values}, sample_weight=weight).moments("x")
        exact = [Fraction(v) for v in values]
        total = sum(int(w) for w in weight)
        mean = sum(int(w) * v for w, v in zip(weight, exact, strict=True)) / total
        assert found[0] == total and found[1] == float(mean)
        squares = sum(int(w) * v * v for w, v in zip(weight, exact, strict=True)) / total
        assert found[2] == float(squares - mean * mean)


def test_windows_of_plain_rows_are_counted_straight_into_the_matrix(monkeypatch):
    rows = {"a": ["u", "v", "u"], "b": ["x", "y", "y"]}
    start = Counts.of(Table.of(rows))
    more = {"a": ["v", "w"], "b": ["x", "x"]}
    wanted = start + Counts.of(Table.of(more))
    one = Counts.of(Table.of({"a": ["u"], "b": ["y"]}))
    monkeypatch.setattr(Counts, "of", None)  # nothing is counted apart, and merged
    found = append(start, Table.of(more))
    assert found == wanted and found.n == 5
    assert (
        append(start, Table.of({"a": ["u"], "b": ["y"]})).pairs.tolist()
        == (start + one).pairs.tolist()
    )
    assert start.n == 3  # what was there stays


def test_numbers_alone_are_taken_away_up_to_rounding():
    """Without a category only the number of rows says whether weights were whole."""
    left = Counts.of({"x": [1.0, 2.0, 3.0]}, sample_weight=[0.1, 0.2, 0.3])
    for value, weight in ((1.0, 0.1), (2.0, 0.2), (3.0, 0.3)):
        left = left - Counts.of({"x": [value]}, sample_weight=[weight])
    assert left == Counts()


@pytest.mark.parametrize("limit", [2048, 0])
def test_pairs_that_only_rounding_left_are_gone(limit, monkeypatch):
    monkeypatch.setattr(_counting, "DENSE_VALUES", limit)
    rows = {"a": ["u", "u", "u", "v"], "b": ["x", "x", "y", "x"]}
    whole = Counts.of(rows, sample_weight=[0.1, 0.2, 1.0, 1.0])
    left = whole - Counts.of({"a": ["u"], "b": ["x"]}, sample_weight=[0.3])
    assert left.block("a", "b")[0, 0] == 0 != whole.block("a", "b")[0, 0] - 0.3
    assert left.labels == whole.labels


def test_light_values_stay_when_counts_are_added():
    """What is taken for rounding after a subtraction is data after an addition."""
    rows, weight = {"a": ["x", "y", "x"], "b": ["u", "v", "v"]}, np.array([1.0, 1e-12, 2.0])
    parts = [({n: cells[some] for n, cells in rows.items()}, weight[some])
             for some in (slice(0, 2), slice(2, 3))]  # fmt: skip
    both = sum((Counts.of(own, sample_weight=w) for own, w in parts), Counts())
    assert both == Counts.of(rows, sample_weight=weight)
    assert both.labels == (("x", "y"), ("u", "v")) and both.value_counts[1] == 1e-12


def test_frequencies_of_columns_with_gaps_are_shares_of_the_rows_that_have_a_value():
    counts = Counts.of({"a": ["x", "x", "y", None, None], "b": ["u", "v", "u", "v", "u"]})
    a, b = counts.present(["a"]).frequencies
    np.testing.assert_allclose(a, [2 / 3, 1 / 3])
    np.testing.assert_allclose(b, [3 / 5, 2 / 5])


@pytest.mark.parametrize("weight", [np.ma.masked_array([1, 2], [0, 1]), np.array([1, 2j])])
def test_weights_that_are_masked_or_complex_are_refused(weight):
    with pytest.raises(TypeError, match="expected a number for each row"):
        Counts.of({"a": ["x", "y"]}, sample_weight=weight)


def test_numbers_that_were_not_counted_cannot_be_subtracted():
    schema = {"a": "nominal", "n": "numeric"}
    counts = Counts.of(Table.of({"a": ["x"] * 3, "n": [1.0, 2.0, 4.0]}, schema))
    more = Counts.of(Table.of({"a": ["x"], "n": [3.0]}, schema))
    with pytest.raises(ValueError, match="subtract"):
        counts - more
