"""Counts are an Abelian group: zero, order, chunks, forgetting. Rows are mixed in every way."""

import itertools
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tabweave import Column, Counts, Schema, Table
from tabweave.counts import counting as _counting

SCHEMA = Schema(
    (
        Column("any", "nominal"),
        Column("size", "ordinal", levels=("S", "M", "L")),
        Column("x", "numeric"),
        Column("tags", "set"),
        Column("flag", "nominal"),
    )
)
LABELS = [None, True, False, 0, 1, 2, -7, 1.5, "1", "a", "b", "", "é", b"x", 10**30, float("inf")]
EXTREME = [0.0, -0.0, 5e-324, -3e-312, 2.0**-1030 * 1.2345, 1e-200, 1.7e308, -1.7e308, 0.1, 1e16]

cells = {
    "any": st.sampled_from(LABELS),
    "size": st.sampled_from(["S", "M", "L", None]),
    "x": st.one_of(
        st.none(), st.sampled_from(EXTREME), st.floats(allow_nan=False, allow_infinity=False)
    ),
    "tags": st.one_of(st.none(), st.lists(st.sampled_from(["p", "q", 1, None, True]), max_size=4)),
    "flag": st.booleans(),
}
rows = st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=9)
tame = st.lists(
    st.fixed_dictionaries({**cells, "x": st.one_of(st.none(), st.floats(-1e3, 1e3))}),
    min_size=1,
    max_size=9,
)
classes = st.sampled_from(["yes", "no", 1, True])
with_y = st.booleans()
limits = st.sampled_from([2048, 6, 0])  # dense, either, sparse
few = settings(max_examples=60)


@contextmanager
def storage(limit):
    with patch.object(_counting, "DENSE_VALUES", limit):
        yield


def count(records, labelled=False, weight=None, schema=SCHEMA):
    """Count rows; the class of a row hangs on its content, so that chunks bring new classes."""
    if not records:
        return Counts()
    y = [repr(r["any"])[:2] for r in records] if labelled else None
    if schema is not None:
        records = [{name: record[name] for name in schema.names} for record in records]
    return Counts.of(Table.of(records, schema), y, sample_weight=weight)


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def assert_close(a, b):
    """Hold weighted counts equal up to rounding."""
    assert a.labels == b.labels
    assert a.classes == b.classes
    assert a.n == pytest.approx(b.n)
    np.testing.assert_allclose(dense(a.pairs), dense(b.pairs), rtol=1e-9, atol=1e-9)
    if a.classes is not None:
        np.testing.assert_allclose(a.class_pairs, b.class_pairs, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(a.class_n, b.class_n, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(a.moments("x"), b.moments("x"), rtol=1e-6, atol=1e-6)


class TestGroup:
    @few
    @given(rows, with_y, limits)
    def test_zero(self, a, labelled, limit):
        with storage(limit):
            counted = count(a, labelled)
            assert counted + Counts() == counted
            assert Counts() + counted == counted
            assert counted - Counts() == counted
            assert counted - counted == Counts()

    @few
    @given(rows, rows, with_y, limits)
    def test_commutative(self, a, b, labelled, limit):
        with storage(limit):
            assert count(a, labelled) + count(b, labelled) == count(b, labelled) + count(
                a, labelled
            )

    @few
    @given(rows, rows, rows, with_y, limits)
    def test_associative(self, a, b, c, labelled, limit):
        with storage(limit):
            x, y, z = (count(part, labelled) for part in (a, b, c))
            assert (x + y) + z == x + (y + z)

    @few
    @given(rows, rows, with_y, limits)
    def test_subtracting_undoes_adding(self, a, b, labelled, limit):
        with storage(limit):
            x, y = count(a, labelled), count(b, labelled)
            assert (x + y) - y == x
            assert (x + y) - x == y

    def test_a_different_label_is_a_different_count(self):
        assert count([{"any": 1}], schema=None) != count([{"any": "1"}], schema=None)
        left, right = (Counts.of({"any": ["a"]}, [label]) for label in (1, True))
        assert left != right
        assert Counts.of({"any": [1]}, [0]) != Counts.of({"any": [True]}, [0])


class TestArrival:
    @few
    @given(rows, st.lists(st.integers(0, 9), max_size=4), with_y, limits)
    def test_chunked_is_whole(self, a, cuts, labelled, limit):
        edges = sorted({0, len(a), *(min(c, len(a)) for c in cuts)})
        with storage(limit):
            total = Counts()
            for start, stop in itertools.pairwise(edges):
                total = total + count(a[start:stop], labelled)
            assert total == count(a, labelled)

    @few
    @given(rows, st.randoms(use_true_random=False), with_y, limits)
    def test_row_order(self, a, random, labelled, limit):
        shuffled = random.sample(a, len(a))
        with storage(limit):
            left, right = count(a, labelled), count(shuffled, labelled)
            assert left == right
        assert left.labels == right.labels  # the vocabulary never depends on the order of arrival

    @few
    @given(rows, st.permutations(SCHEMA.names), with_y)
    def test_column_order(self, a, names, labelled):
        permuted = count(a, labelled, schema=SCHEMA.select(names))
        whole = count(a, labelled)
        assert permuted == whole
        assert whole + permuted == permuted + whole

    @given(rows)
    def test_vocabulary_is_in_canonical_order(self, a):
        ranks = {bool: 0, int: 1, float: 1, str: 2, bytes: 3, type(None): 9}
        any_, size, x, tags, flag = count(a).labels
        for labels in (any_, x, tags, flag):
            assert list(labels) == sorted(labels, key=lambda v: (ranks[type(v)], v))
        assert list(size) == [v for v in ("S", "M", "L", None) if v in {r["size"] for r in a}]

    def test_new_values_and_classes_in_later_chunks(self):
        first = Counts.of({"a": ["m", "z"]}, ["no", "no"])
        later = Counts.of({"a": ["b", "z"]}, ["yes", "maybe"])
        both = first + later
        assert both.labels == (("b", "m", "z"),)
        assert both.classes == ("maybe", "no", "yes")
        np.testing.assert_array_equal(both.class_pairs, [[0, 0, 1], [0, 1, 0], [1, 1, 0]])
        np.testing.assert_array_equal(both.class_n, [1, 2, 1])
        assert (both - later).classes == ("no",)


class TestWeights:
    @few
    @given(st.lists(st.tuples(st.fixed_dictionaries(cells), st.integers(0, 4)), min_size=1), with_y)
    def test_integers_repeat_rows(self, pairs, labelled):
        pairs = pairs[:8]
        a, weight = [r for r, _ in pairs], [w for _, w in pairs]
        repeated = [row for row, times in pairs for _ in range(times)]
        assert count(a, labelled, weight) == count(repeated, labelled)

    @few
    @given(rows, st.integers(1, 2**50), with_y, limits)
    def test_integers_are_exact_however_large(self, a, w, labelled, limit):
        with storage(limit):
            x = count(a, labelled, [w] * len(a))
            y = count(a, labelled, [1] * len(a))
            assert x + y == count(a, labelled, [w + 1] * len(a))
            assert (x + y) - x == y

    @few
    @given(tame, tame, st.lists(st.floats(1e-3, 1e3), min_size=18, max_size=18), with_y, limits)
    def test_floats_up_to_rounding(self, a, b, weight, labelled, limit):
        v, w = weight[: len(a)], weight[9 : 9 + len(b)]
        with storage(limit):
            x, y = count(a, labelled, v), count(b, labelled, w)
            assert_close(x + y, count([*a, *b], labelled, [*v, *w]))
            assert_close(x + y, y + x)
            assert_close((x + y) - y, x)
            assert x - x == Counts()

    def test_rare_values_survive_in_chunks_as_in_the_whole(self):
        frame = {"a": ["rare", "common"]}
        weight = [1e-12, 1.0]
        chunked = Counts()
        for _ in range(3):
            chunked = chunked + Counts.of(frame, sample_weight=weight)
        whole = Counts.of({"a": frame["a"] * 3}, sample_weight=weight * 3)
        assert chunked.labels == whole.labels == (("common", "rare"),)
        np.testing.assert_allclose(chunked.value_counts, [3.0, 3e-12])


class TestStorage:
    @few
    @given(rows, rows, with_y)
    def test_sparse_equals_dense(self, a, b, labelled):
        with storage(2048):
            full = count(a, labelled) + count(b, labelled)
            assert not sparse.issparse(full.pairs)
        with storage(0):
            thin = count(a, labelled) + count(b, labelled)
            assert sparse.issparse(thin.pairs) or not thin.pairs.shape[0]
            left = thin - count(b, labelled)
        assert full.labels == thin.labels
        np.testing.assert_array_equal(dense(full.pairs), dense(thin.pairs))
        np.testing.assert_array_equal(full.numbers.moments, thin.numbers.moments)
        np.testing.assert_array_equal(dense(left.pairs), dense(count(a, labelled).pairs))

    def test_growing_past_the_limit_and_back(self):
        with storage(4):
            small = Counts.of({"a": ["a", "b"], "b": ["u", "v"]})
            other = Counts.of({"a": ["c", "d"], "b": ["u", "w"]})
            assert not sparse.issparse(small.pairs)
            assert sparse.issparse((small + other).pairs)
            back = (small + other) - other
            assert not sparse.issparse(back.pairs)
            assert back == small
