"""Counting: the same matrix by every way to count it, and none that would not fit."""

import io

import numpy as np
import pytest
from scipy import sparse

import tabweave
from tabweave import Counts
from tabweave.counts import counting


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
    monkeypatch.setattr(counting, "n_threads", lambda: 3)
    for n_rows in (5, 1 << 16, (1 << 16) + 1):
        slabs = []

        def count(rows, slabs=slabs):
            slabs.append(rows)
            return np.array([sum(rows), len(rows)])

        total = counting._in_threads(count, n_rows, exact=exact)
        assert total.tolist() == [n_rows * (n_rows - 1) // 2, n_rows]
        assert len(slabs) == (3 if exact and n_rows >= 1 << 16 else 1)
    with pytest.raises(OverflowError, match="count them in chunks and add"):
        counting._in_threads(count, 1 << 34, exact=exact)
