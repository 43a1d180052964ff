"""Counting: the same matrix by every way to count it, and none that would not fit."""

import io
from dataclasses import replace
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import tabweave
from tabweave import Counts, _compat
from tabweave.columns.nominal import Codes
from tabweave.columns.sets import Sets
from tabweave.counts import counting

LIMITS = {  # what decides how pairs are counted, from what it is down to almost nothing
    "DENSE_VALUES": (2048, 0),
    "MIN_ROWS_FOR_THREADS": (1 << 16, 1),
    "GROUP_CODES": (128, 6),
    "BLOCK_ENTRIES": (1 << 22, 1),
    "HISTOGRAM_ENTRIES": (1 << 24, 1),
}


@st.composite
def columns(draw):
    """Columns of codes and of sets, some values of which no row has."""
    n = draw(st.integers(1, 12))
    out = []
    for _ in range(draw(st.integers(1, 5))):
        size = draw(st.sampled_from([1, 2, 3, 7, 20]))
        values = st.integers(0, size - 1)
        if draw(st.integers(0, 3)):
            codes = draw(st.lists(values, min_size=n, max_size=n))
            out.append(Codes(np.array(codes, np.uint8), list(range(size))))
        else:
            cells = draw(st.lists(st.sets(values, max_size=3), min_size=n, max_size=n))
            starts = np.cumsum([0, *map(len, cells)])
            codes = [value for cell in cells for value in sorted(cell)]
            out.append(Sets(starts, np.array(codes, np.uint8), list(range(size))))
    return out, n


def cells_of(column, row):
    """Return the values that a row has in a column."""
    if isinstance(column, Codes):
        return [int(column.codes[row])]
    return column.codes[column.starts[row] : column.starts[row + 1]].tolist()


def pairs_by_hand(columns, weight):
    """Count the pairs of values of each row, one by one."""
    sizes = [len(column.labels) for column in columns]
    out = np.zeros((sum(sizes), sum(sizes)))
    for row, w in enumerate(weight):
        met = [sum(sizes[:a]) + v for a, c in enumerate(columns) for v in cells_of(c, row)]
        for left, right in product(met, met):
            out[left, right] += w
    return out


@given(columns(), st.sampled_from([None, np.int64, np.float64]), st.data())
def test_pairs_are_those_of_rows_by_every_way_to_count_them(drawn, kind, data):
    given, n = drawn
    weight = None if kind is None else np.arange(n).astype(kind) % 4 + kind(1)
    with_last = len(given) > 1 and isinstance(given[-1], Codes)
    limits = {name: data.draw(st.sampled_from(of)) for name, of in LIMITS.items()}
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(counting, name, limit)
        if data.draw(st.booleans()):
            patch.setattr(counting, "_is_product_cheap", lambda *_: False)
        found = counting.tidy(counting.count_pairs(given, weight))
        alone = counting.count_alone(given, weight, with_last=False)
        beside = counting.count_alone(given, weight, with_last=with_last)
    wanted = pairs_by_hand(given, np.ones(n) if weight is None else weight)
    for each in (found, alone, beside):
        assert sparse.issparse(each) == (len(wanted) > limits["DENSE_VALUES"])
        assert each.dtype == (np.int64 if kind is None else kind)
    dense = [each.toarray() if sparse.issparse(each) else each for each in (found, alone, beside)]
    np.testing.assert_array_equal(dense[0], wanted)
    np.testing.assert_array_equal(dense[1], np.diag(np.diag(wanted)))
    last = len(wanted) - len(given[-1].labels) if with_last else len(wanted)
    expected = np.diag(np.diag(wanted))
    expected[:last, last:], expected[last:, :last] = wanted[:last, last:], wanted[last:, :last]
    np.testing.assert_array_equal(dense[2], expected)
    if sparse.issparse(found):  # one form: sorted, nothing twice, no zeros
        assert found.has_sorted_indices and found.nnz == np.count_nonzero(wanted)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 30))
def test_most_pairs_are_counted_by_hand(sizes, n_rows):
    """Of two columns, all pairs of their values or one a row; and each value with itself."""
    both = sum(2 * min(a * b, n_rows) for a, b in combinations(sizes, 2))
    assert counting.most_pairs(np.array(sizes), n_rows) == both + sum(sizes)


def test_what_a_wide_table_takes():
    """Eight bytes a cell of a full matrix, 48 one of a thin one, and 12 to tidy it."""
    assert counting.wide_bytes(2048, 5) == 8 * 2048**2 + 12 * 5  # few values
    assert counting.wide_bytes(3000, 3_000_001) == 8 * 3000**2 + 12 * 3_000_001  # a third is full
    assert counting.wide_bytes(3000, 3_000_000) == 60 * 3_000_000


@pytest.mark.parametrize("shape", [(7, 60, 2), (300, 40, 5), (5, 900, 3), (2500, 3, 4)])
def test_few_rows_of_many_columns_are_counted_as_one_product(shape, monkeypatch):
    """Against the definition, and against histograms; dense and, above 2048 values, sparse."""
    n, n_columns, n_values = shape
    rows = np.random.default_rng(0).integers(0, n_values, (n, n_columns)).astype(str)
    found = Counts.of(rows)
    onehot = np.hstack(
        [rows[:, [a]] == np.array(labels) for a, labels in enumerate(found.labels)]
    ).astype(np.int64)
    pairs = found.pairs.toarray() if sparse.issparse(found.pairs) else found.pairs
    assert sparse.issparse(found.pairs) == (onehot.shape[1] > 2048)
    assert pairs.dtype == np.int64
    np.testing.assert_array_equal(pairs, onehot.T @ onehot)
    monkeypatch.setattr(counting, "_is_product_cheap", lambda *_: False)
    assert Counts.of(rows) == found


def test_a_table_too_wide_is_refused_with_the_figure_and_the_remedy(monkeypatch):
    rows = np.random.default_rng(0).integers(0, 2, (20, 3000)).astype(str)
    monkeypatch.setattr(counting, "available_memory", lambda: 4 * 10**9)
    monkeypatch.setattr(counting, "_product", None)  # nothing may be counted
    monkeypatch.setattr(counting, "_blocks", None)
    why = r"3,000 columns with 6,000 values would take about 0\.7 GB.*4\.0 GB.*choose the columns"
    for work in (Counts.of, tabweave.UNTIE().fit, tabweave.count):
        with pytest.raises(MemoryError, match=why):
            work(rows)
    assert tabweave.Weave().fit(rows).transform(rows).shape == (20, 3000)  # counts no pairs


@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_of_small_columns_are_counted_as_numpy_counts_them(weighted):
    """More rows than 16 bits hold, a value that nearly all have, and two slabs of blocks."""
    rng, n = np.random.default_rng(1), 200_000
    sizes = [1, 2, 3, 5, 8, 13, 21, 127, 128, 2, 2, 16]
    codes = [np.where(rng.random(n) < 0.9, 0, rng.integers(0, size, n)) for size in sizes]
    weight = rng.integers(0, 4, n) if weighted else None
    found = Counts.of(np.stack(codes, axis=1).astype("U3"), sample_weight=weight)
    for a, left in enumerate(codes):
        for b, right in enumerate(codes[:a]):
            plain = np.zeros((sizes[a], sizes[b]), np.int64)
            np.add.at(plain, (left, right), 1 if weight is None else weight)
            rows, columns = (list(map(int, found.labels[c])) for c in (a, b))
            np.testing.assert_array_equal(found.block(a, b), plain[np.ix_(rows, columns)])
    assert found.value_counts[0] > 1 << 16


def test_columns_are_packed_into_few_groups_that_fit():
    sizes = list(range(4, 24))
    groups = counting.pack_columns(sizes, 256)
    assert sorted(column for group in groups for column in group) == list(range(20))
    joint = [np.prod([sizes[c] for c in group]) for group in groups]
    assert max(joint) <= 256 and len(groups) == 10 < len(counting.group_columns(sizes))


def test_sums_of_floats_do_not_depend_on_how_many_rows_are_many(monkeypatch):
    """Columns are grouped in one way, in which order the weights of rows are added."""
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 5, (300, 6)).astype(str)
    weight = rng.random(300) * 10.0 ** rng.integers(-9, 9, 300)
    monkeypatch.setattr(counting, "_is_product_cheap", lambda *_: False)
    before = Counts.of(rows, sample_weight=weight)
    monkeypatch.setattr(counting, "MIN_ROWS_FOR_THREADS", 1)
    assert Counts.of(rows, sample_weight=weight) == before


def test_what_to_divide_by_is_never_zero():
    np.testing.assert_array_equal(counting.divisor(np.array([0.0, 0.25, 3.0])), [1, 0.25, 3])
    assert counting.divisor(np.array([0, 2])).tolist() == [1, 2]


def test_groups_hold_as_many_joint_codes_as_fit():
    assert counting.group_columns([4, 2, 3, 1], 24) == [[3, 1, 2, 0]]
    assert counting.group_columns([4, 2, 3, 1], 23) == [[3, 1, 2], [0]]
    assert counting.group_columns([9, 2], 4) == [[1], [0]]
    assert counting.pack_columns([4, 2, 3], 12) == [[0, 2], [1]]
    assert counting.pack_columns([4, 2, 3], 11) == [[0, 1], [2]]


@given(st.lists(st.integers(1, 9), min_size=2, max_size=7), st.integers(1, 60))
def test_batches_of_histograms_are_as_large_as_fits(sizes, limit):
    pairs, joint = list(combinations(range(len(sizes)), 2)), np.array(sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "HISTOGRAM_ENTRIES", limit)
        batches = [
            [tuple(pair) for pair in batch.tolist()]
            for batch in counting._batches(np.array(pairs), joint)
        ]
    assert [pair for batch in batches for pair in batch] == pairs
    cells = [[sizes[g] * sizes[h] for g, h in batch] for batch in batches]
    assert all(sum(own) <= limit or len(own) == 1 for own in cells)
    assert all(sum(a) + b[0] > limit for a, b in pairwise(cells))


def test_two_large_columns_are_counted_in_a_full_table_if_it_is_no_larger_than_rows(monkeypatch):
    monkeypatch.setattr(counting, "BLOCK_ENTRIES", 12)
    left, right = np.array([0, 2, 2], np.uint16), np.array([1, 0, 3], np.uint16)
    full, thin = (counting._one_pair(left, right, (3, n), None) for n in (4, 5))
    assert isinstance(full, np.ndarray) and sparse.issparse(thin)
    assert thin.toarray()[:, :4].tolist() == full.tolist() == [[0, 1, 0, 0], [0] * 4, [1, 0, 0, 1]]
    many = np.zeros(15, np.uint16)
    assert isinstance(counting._one_pair(many, many, (3, 5), None), np.ndarray)


def test_sets_of_wide_tables_are_counted_with_the_weight_of_their_row():
    """Where values are not counted in pairs, because there are too many columns."""
    table = tabweave.Table.of({"a": ["x", "y", "x"], "s": [["p", "q"], [], ["q"]]})
    uncoupled = replace(table, schema=replace(table.schema, coupled=False))
    found = Counts.of(uncoupled, list("mno"), sample_weight=[2, 3, 5])
    assert found.labels == (("x", "y"), ("p", "q"))
    assert found.value_counts.tolist() == [7, 3, 2, 7]
    assert found.class_pairs.tolist() == [[2, 0, 5], [0, 3, 0], [2, 0, 0], [2, 0, 5]]


# -- memory and threads --------------------------------------------------------------------------


def test_free_memory_is_asked_of_the_system(monkeypatch, tmp_path):
    found = counting.available_memory()
    assert found is None or found > 1 << 20
    facts = tmp_path / "meminfo"
    facts.write_text("MemTotal: 9 kB\nMemAvailable: 7 kB\n")
    monkeypatch.setattr(counting, "open", lambda *_, **__: open(facts), raising=False)
    assert counting.available_memory() == 7 * 1024

    def absent(*_, **__):
        raise FileNotFoundError

    for opened in (lambda *_, **__: io.StringIO("MemTotal: 9 kB\n"), absent):
        monkeypatch.setattr(counting, "open", opened, raising=False)
        monkeypatch.setattr(
            counting.os, "sysconf", {"SC_PAGE_SIZE": 4, "SC_AVPHYS_PAGES": 5}.__getitem__
        )
        assert counting.available_memory() == 20

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(counting.os, "sysconf", unknown)
    assert counting.available_memory() is None


@pytest.mark.parametrize("exact", [True, False])
def test_slabs_of_rows_add_up_whatever_the_threads(monkeypatch, exact):
    monkeypatch.setattr(_compat, "n_threads", lambda: 3)
    for n_rows in (5, 1 << 16, (1 << 16) + 1):
        slabs = []

        def count(rows, slabs=slabs):
            slabs.append(rows)
            return np.array([sum(rows), len(rows)])

        total = counting._sum_of_slabs(count, n_rows, exact=exact)
        assert total.tolist() == [n_rows * (n_rows - 1) // 2, n_rows]
        assert len(slabs) == (3 if exact and n_rows >= 1 << 16 else 1)
    with pytest.raises(OverflowError, match="count them in chunks and add"):
        counting._sum_of_slabs(count, 1 << 34, exact=exact)


def test_an_eighth_of_the_free_memory_may_be_taken(monkeypatch):
    monkeypatch.setattr(counting, "available_memory", lambda: 8007)
    wide = counting.WIDE_TABLE_COLUMNS + 1
    counting.check_wide(wide, 2 * wide, 1000)
    counting.check_wide(counting.WIDE_TABLE_COLUMNS, 2 * wide, 1001)
    with pytest.raises(MemoryError, match="more than an eighth"):
        counting.check_wide(wide, 2 * wide, 1001)
    monkeypatch.setattr(counting, "available_memory", lambda: None)
    counting.check_wide(wide, 2 * wide, 1001)
    monkeypatch.setattr(counting, "available_memory", lambda: 80 * 10**9)
    why = r"3,000 columns with 7,000 values .*36\.0 GB.* the 80\.0 GB .*thousand take 4\.00 GB"
    with pytest.raises(MemoryError, match=why):
        counting.check_wide(3000, 7000, 36 * 10**9)


def _is_cheap(n, n_columns, n_values, weight=None):
    labels = list(range(n_values))
    codes = np.broadcast_to(np.uint8(0), n)  # of which only the length is asked
    columns = [Codes(codes, labels)] * n_columns
    return counting._is_product_cheap(columns, np.full(n_columns, n_values), weight)


def test_a_product_is_chosen_where_it_takes_fewer_nanoseconds():
    """Of 40 columns of 3 values: ten groups of 81 joint codes, 55 pairs of groups.

    A product takes ``120² n / 50``, histograms ``55 (30,000 + n) + 2 · 810²``: up to 12,713 rows.
    """
    assert _is_cheap(12_713, 40, 3) and not _is_cheap(12_714, 40, 3)
    assert not _is_cheap(12_713, 40, 3, np.ones(12_713))
    # One column of 3 values is always cheap, below 2**24 rows that single precision counts.
    assert _is_cheap((1 << 24) - 1, 1, 3) and not _is_cheap(1 << 24, 1, 3)
    assert _is_cheap(1, 2, 128) and not _is_cheap(1, 2, 129) and not _is_cheap(0, 2, 3)


@pytest.mark.parametrize(("limit", "thin"), [(5, False), (4, True)])
def test_pairs_are_stored_in_the_one_form_that_their_size_asks_for(limit, thin, monkeypatch):
    monkeypatch.setattr(counting, "DENSE_VALUES", limit)
    codes = [np.array([0, 1, 1]), np.array([2, 0, 2])]
    columns = [Codes(codes[0], ["a", "b"]), Codes(codes[1], ["x", "y", "z"])]
    wanted = np.zeros((5, 5), np.int64)
    for a, b in zip(*codes, strict=True):
        for v in (a, 2 + b):
            for w in (a, 2 + b):
                wanted[v, w] += 1
    product = counting.tidy(counting._product(columns, np.array([0, 2, 5])))
    counted = counting.tidy(counting.count_pairs(columns, None))
    for found in (product, counted, counting.tidy(wanted),
                  counting.tidy(sparse.csr_array(wanted))):  # fmt: skip
        assert sparse.issparse(found) == thin and found.dtype == np.int64
        np.testing.assert_array_equal(found.toarray() if thin else found, wanted)


def test_slabs_have_less_than_two_to_the_32_rows(monkeypatch):
    monkeypatch.setattr(_compat, "n_threads", lambda: 1)
    assert counting._sum_of_slabs(lambda rows: np.array([len(rows)]), (1 << 32) - 1, exact=True)
    with pytest.raises(OverflowError, match=r"expected at most 2\*\*32 rows at once"):
        counting._sum_of_slabs(len, 1 << 32, exact=True)


@pytest.mark.parametrize("weighted", ["", "whole", "parts"])
def test_counts_are_the_same_for_any_number_of_threads(monkeypatch, tmp_path, weighted):
    """Rows are cut into as many slabs as there are threads, each of at least 40 rows here."""
    rng = np.random.default_rng(0)
    n = 3000
    numbers = rng.normal(size=n) * 10.0 ** rng.integers(-30, 30, n)
    numbers[rng.random(n) < 0.1] = np.nan
    few = rng.choice([0.0, -0.0, 1.5, -3.0, np.nan], n)
    days = np.datetime64("2024-01-01") + rng.integers(0, 999, n)
    rows = {"a": rng.choice(list("xyz"), n), "many": rng.integers(0, 900, n).astype(str)}
    rows |= {"numbers": numbers, "few": few, "days": days}
    weight = {"": None, "whole": rng.integers(0, 99, n), "parts": rng.random(n)}[weighted]
    monkeypatch.setattr(_compat, "MIN_ROWS_FOR_THREADS", 40)
    monkeypatch.setattr(counting, "MIN_ROWS_FOR_THREADS", 40)
    files = []
    for n_threads in (1, 2, 5):
        monkeypatch.setattr(_compat, "n_threads", lambda n_threads=n_threads: n_threads)
        Counts.of(rows, sample_weight=weight).save(tmp_path / "counts")
        files.append((tmp_path / "counts").read_bytes())
    assert files[0] == files[1] == files[2]
