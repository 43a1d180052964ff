"""One value, one label: whatever library, type or chunk it came from."""

import datetime as dt
import enum
import pickle
import uuid
import zlib
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabweave import OneHot, Table
from tabweave.columns import vocabulary as labels_
from tabweave.columns.vocabulary import Bucket, Vocabulary, canonical
from tabweave.io.store import restored, state_of

plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=4),
    st.binary(max_size=4),
)


class Color(enum.StrEnum):
    RED = "red"


class TestCanonical:
    @pytest.mark.parametrize(
        ("value", "label"),
        [
            (np.int8(1), 1),
            (1.0, 1),
            (np.float32(2.5), 2.5),
            (np.longdouble(2.5), 2.5),
            (-0.0, 0),
            (2.0**70, 2**70),
            (Decimal("3.00"), 3),
            (Decimal("9007199254740993"), 9007199254740993),
            (Decimal("0.5"), 0.5),
            (True, True),
            (np.bool_(False), False),
            ("1", "1"),
            (np.str_("x"), "x"),
            (Color.RED, "red"),
            (np.bytes_(b"x"), b"x"),
            (10**40, 10**40),
            (float("inf"), float("inf")),
            (dt.date(2020, 1, 2), "2020-01-02"),
            (np.datetime64("2020-01-02"), "2020-01-02"),
            (dt.datetime(2020, 1, 2, 3), "2020-01-02T03:00:00"),
            (np.datetime64("2020-01-02T03", "ns"), "2020-01-02T03:00:00"),
            (pd.Timestamp("2020-01-02T03"), "2020-01-02T03:00:00"),
            (np.datetime64(1, "ns"), "1970-01-01T00:00:00.000000001"),
            (pd.Timestamp(1), "1970-01-01T00:00:00.000000001"),
            (np.datetime64("2020-01"), "2020-01"),
            (dt.time(1, 2), "01:02:00"),
            (dt.timedelta(days=1), "1 day, 0:00:00"),
            (np.timedelta64(24, "h"), "1 day, 0:00:00"),
            (pd.Timedelta(days=1), "1 day, 0:00:00"),
            (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
            (pd.Period("2020-01", "M"), "2020-01"),
            (pd.Interval(0, 1), "(0, 1]"),
        ],
        ids=repr,
    )
    def test_values(self, value, label):
        found = canonical(value)
        assert (type(found), found) == (type(label), label)

    @pytest.mark.parametrize(
        "value",
        [
            None,
            float("nan"),
            np.nan,
            np.float32("nan"),
            pd.NA,
            pd.NaT,
            Decimal("NaN"),
            np.datetime64("NaT", "s"),
            np.timedelta64("NaT", "s"),
            Decimal("sNaN"),
        ],
        ids=repr,
    )
    def test_missing(self, value):
        assert canonical(value) is None

    @pytest.mark.parametrize(
        "value",
        [1j, [1], (1,), {1}, {"a": 1}, object(), np.array([1]), bytearray(b"x"), int],
        ids=lambda v: type(v).__name__,
    )
    def test_no_category(self, value):
        with pytest.raises(TypeError, match="expected a category, got"):
            canonical(value)

    def test_a_decimal_does_not_turn_into_infinity(self):
        with pytest.raises(ValueError, match="1E\\+400"):
            canonical(Decimal("1E400"))

    @given(plain)
    def test_is_idempotent(self, value):
        label = canonical(value)
        assert labels_.identity(canonical(label)) == labels_.identity(label)


class TestOrder:
    def test_by_type_then_value_then_missing(self):
        labels = ["b", None, 2, b"a", True, 1.5, "a", False, -1]
        sorted_ = [labels[i] for i in labels_.order(labels)]
        assert [*map(repr, sorted_)] == [
            *map(repr, [False, True, -1, 1.5, 2, "a", "b", b"a", None])
        ]

    def test_by_level(self):
        labels = ["L", None, "S", "M"]
        assert [labels[i] for i in labels_.order(labels, ("S", "M", "L"))] == ["S", "M", "L", None]

    @given(st.lists(plain), st.randoms(use_true_random=False))
    def test_ignores_arrival(self, labels, random):
        labels = labels_.union([canonical(v) for v in labels])
        shuffled = random.sample(labels, len(labels))
        assert [labels[i] for i in labels_.order(labels)] == [
            shuffled[i] for i in labels_.order(shuffled)
        ]


class TestSets:
    def test_positions_tell_true_from_one(self):
        assert labels_.positions([True, 1, "1"], [1, "1", True, 0]).tolist() == [1, 2, 0, 3]

    def test_union_keeps_first_appearance(self):
        assert [*map(repr, labels_.union([1, "a"], [True, "a", None]))] == [
            *("1", "'a'", "True", "None")
        ]


@pytest.mark.parametrize(
    ("n", "name"),
    [
        (0, "uint8"),
        (256, "uint8"),
        (257, "uint16"),
        (65536, "uint16"),
        (65537, "uint32"),
        (2**32 + 1, "uint64"),
    ],
)
def test_code_type_is_the_smallest(n, name):
    assert labels_.code_type(n) == name


# -- vocabularies -------------------------------------------------------------------------------

WORDS = st.lists(st.sampled_from(["a", "b", 1, True, None, 2.5, b"a", "⟨other⟩"]), min_size=1)


def vocabulary(*columns):
    names = tuple(f"c{i}" for i in range(len(columns)))
    return Vocabulary(names, tuple(tuple(labels_.union(column)) for column in columns))


@given(WORDS, WORDS)
def test_a_union_has_every_value_once_and_in_one_order(left, right):
    a, b = vocabulary(left, "xy"), vocabulary(right, "yz")
    both = a.union(b)
    assert both == b.union(a) == both.union(a)
    for part in (a, b):
        index = part.reindex(both)
        flat = [v for column in both.labels for v in column]
        own = [v for column in part.labels for v in column]
        assert [labels_.identity(flat[i]) for i in index] == [labels_.identity(v) for v in own]


@given(WORDS, WORDS)
def test_codes_are_positions_and_unknown_comes_last(known, rows):
    table = Table.of({"c0": rows}, numbers="nominal")
    words = vocabulary(known)
    ids = [labels_.identity(v) for v in words.labels[0]]
    wanted = [
        ids.index(labels_.identity(v)) if labels_.identity(v) in ids else len(ids) for v in rows
    ]
    assert words.codes(table)[0].tolist() == wanted


def test_offsets_spans_and_names():
    words = vocabulary("ab", "xyz")
    assert words.offsets.tolist() == [0, 2, 5] and words.n_values == 5
    assert words.span("c1") == words.span(1) == words.span(-1) == slice(2, 5)
    assert words.select(["c1"]).names == ("c1",) and len(words) == 2
    assert words.describe(3) == "column 'c1', value 'y'"
    with pytest.raises(KeyError, match=r"expected a categorical column, .* got 'c9'"):
        words.index("c9")


def test_a_value_that_reads_like_a_bucket_is_none():
    rows = {"a": ["x", "⟨other⟩", "y"], "b": ["p", "q", "p"]}
    embedder = OneHot(unknown="error").fit(rows)
    with pytest.raises(ValueError, match="'z' was not seen in fit"):
        embedder.transform({"a": ["z"], "b": ["p"]})
    assert not embedder.counts_.vocabulary.buckets
    assert Bucket() != "⟨other⟩" and hash(Bucket()) != hash("⟨other⟩")
    assert pickle.loads(pickle.dumps(Bucket(2, 8))) == Bucket(2, 8) != Bucket(3, 8)
    assert restored(Bucket, state_of(Bucket(2, 8))) == Bucket(2, 8)


def test_sets_whose_elements_all_fall_into_one_bucket():
    table = Table.of({"tags": [["a", "b"], [], ["c"], ["d", "e"]]}, {"tags": "set"})
    folded = labels_.fold(table, {"tags": 1})["tags"]
    assert folded.labels == [Bucket()] and folded.codes.tolist() == [0, 0, 0]
    assert folded.starts.tolist() == [0, 1, 1, 2, 3]
    empty = Table.of({"tags": [[], []]}, {"tags": "set"})
    assert labels_.fold(empty, {"tags": 1})["tags"].starts.tolist() == [0, 0, 0]


def test_a_vocabulary_equals_no_other_thing():
    vocabulary = Vocabulary(("a",), (("u", "v"),))
    assert vocabulary == Vocabulary(("a",), (("u", "v"),))
    assert vocabulary != Vocabulary(("a",), (("u", "w"),))
    assert vocabulary != "a" and vocabulary != ("a",)


def test_a_label_that_no_row_has_is_not_unknown():
    from tabweave.columns.nominal import Codes

    unseen = np.array([False, True])
    labels_.check_seen("a", unseen, Codes(np.array([0, 0], np.uint8), ["u", "z"]))
    with pytest.raises(ValueError, match=r"column 'a'.*'z'"):
        labels_.check_seen("a", unseen, Codes(np.array([0, 1], np.uint8), ["u", "z"]))


def test_rows_are_cut_into_runs_of_some_cells():
    assert labels_.slices(5, 3, 7) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert labels_.slices(2, 9, 7) == [slice(0, 1), slice(1, 2)]  # one row at least
    assert labels_.slices(3, 0, 2) == [slice(0, 2), slice(2, 3)] and labels_.slices(0, 3, 7) == []


def test_buckets_are_numbered_by_a_checksum():
    """Files hold the numbers of buckets: they must not change. Checksums are those of zlib."""
    for label in ("é", 7, 1.5, True, b"x"):
        key = zlib.crc32(repr(labels_.identity(label)).encode())
        assert labels_.bucket(label, 13) == Bucket(key % 13, 13)
    known = frozenset(map(labels_.identity, ["a", 1]))
    for label, kept in (("a", True), (1, True), ("1", False), (True, False), ("b", False)):
        assert labels_.bucket(label, known) == (label if kept else Bucket())
    assert labels_.bucket(None, known) is None
    assert labels_.bucket(None, 13) is None and labels_.bucket(Bucket(3, 9), 13) == Bucket(3, 9)
    assert len({labels_.bucket(i, 13) for i in range(500)}) == 13


@given(st.lists(st.sets(st.integers(0, 30), max_size=5), min_size=1, max_size=6))
def test_sets_in_buckets_are_sets_of_buckets(cells):
    table = Table.of({"s": [sorted(cell) for cell in cells]}, {"s": "set"})
    found = labels_.fold(table, {"s": 4})["s"]
    edges = zip(found.starts[:-1], found.starts[1:], strict=True)
    rows = [[found.labels[c] for c in found.codes[a:b]] for a, b in edges]
    assert [len(row) for row in rows] == [len(set(row)) for row in rows]
    assert [set(row) for row in rows] == [{labels_.bucket(v, 4) for v in cell} for cell in cells]


def test_columns_are_found_by_name_in_any_order():
    words = Vocabulary(("b", "a"), (("x", "y"), ("u",)))
    table = Table.of({"a": ["u", "w"], "c": ["k", "k"], "b": ["y", "x"]})
    assert [column.labels for column in words.find(table)] == [["y", "x"], ["u", "w"]]
    assert [codes.tolist() for codes in words.codes(table)] == [[1, 0], [0, 1]]
    with pytest.raises(KeyError, match="no column 'b'"):
        words.find(table.select(["a", "c"]))


def test_looking_up_in_blocks_is_looking_up(monkeypatch):
    monkeypatch.setattr(labels_, "BLOCK_CODES", 3)
    table, codes = np.array([5, 7, 9], np.uint8), np.array([2, 0, 1, 1, 2, 0, 2], np.uint8)
    found = labels_.take(table, codes)
    assert found.tolist() == table[codes].tolist() and found.dtype == np.uint8


def test_how_buckets_read():
    assert list(map(str, (Bucket(), Bucket(0, 2), Bucket(3, 64)))) == [
        "⟨other⟩", "⟨other 0/2⟩", "⟨other 3/64⟩"
    ]  # fmt: skip
