"""Many values: buckets by frequency or by hash, the same everywhere; refusal before it is late."""

from collections import Counter

import numpy as np
import pytest

from tabweave import Counts, OneHot, Weave, count
from tabweave.engines import estimate
from tabweave.engines import sizes as _sizes
from tabweave.rows import vocabulary as _buckets

OTHER = _buckets.Bucket()


def words(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "word": [f"w{v}" for v in rng.zipf(1.5, n) % 400],
        "size": [f"s{v}" for v in rng.integers(0, 3, n)],
    }


def test_the_frequent_values_stay_and_the_others_share_one():
    rows = words()
    rows["word"][:7] = [None] * 7
    counts = count(rows, max_values=10)
    seen = Counter(w for w in rows["word"] if w is not None)
    stay = sorted(seen, key=lambda w: (-seen[w], w))[:9]
    folded = [w if w in stay or w is None else OTHER for w in rows["word"]]
    assert counts == Counts.of({"word": folded, "size": rows["size"]})
    assert len(counts.labels[0]) == 11  # nine, the bucket, and missing


def test_equal_counts_are_settled_by_value_not_by_order():
    forward = {"a": ["x", "y", "z", "x", "y", "z"], "b": list("pqpqpq")}
    backward = {name: cells[::-1] for name, cells in forward.items()}
    assert count(forward, max_values=2) == count(backward, max_values=2)
    assert count(forward, max_values=2).labels[0] == ("x", OTHER)


def test_hashing_puts_every_value_in_a_bucket_and_a_small_column_in_none():
    counts = count(words(), max_values=16, other="hash")
    assert len(counts.labels[0]) == 16 and counts.labels[0][0].endswith("/16⟩")
    assert counts.labels[1] == ("s0", "s1", "s2")
    whole = Counts.of(words())
    bucket = [_buckets.bucket(label, 16) for label in whole.labels[0]]
    for label in counts.labels[0]:
        mine = counts.block("word", "size")[counts.labels[0].index(label)]
        theirs = whole.block("word", "size")[[b == label for b in bucket]].sum(axis=0)
        np.testing.assert_array_equal(mine, theirs)


def test_a_hash_is_the_same_in_every_process():
    assert str(_buckets.bucket("red", 1000)) == "⟨other 590/1000⟩"
    assert _buckets.bucket(1, 1000) != _buckets.bucket("1", 1000)
    assert _buckets.bucket(None, 8) is None


@pytest.mark.parametrize("other", ["frequency", "hash"])
def test_files_in_batches_give_what_memory_gives(tmp_path, other, monkeypatch):
    pytest.importorskip("pyarrow", reason="writes a file with it")
    from pyarrow import parquet, table

    from tabweave.engines import source as _source

    monkeypatch.setattr(_source, "BATCH_ROWS", 300)
    parquet.write_table(table(words()), tmp_path / "words.parquet", row_group_size=300)
    limits = {"word": 12}
    found = count(tmp_path / "words.parquet", max_values=limits, other=other)
    assert found == count(words(), max_values=limits, other=other)


def test_a_set_counts_a_bucket_once():
    rows = {"tags": [["a", "b", "c"], ["a", "d"], ["a"], ["a", "b"]], "n": list("xxyy")}
    counts = count(rows, max_values=2)
    wanted = {"tags": [["a", OTHER], ["a", OTHER], ["a"], ["a", OTHER]], "n": list("xxyy")}
    assert counts == Counts.of(wanted)


@pytest.mark.parametrize("other", ["frequency", "hash"])
def test_embedders_put_what_they_do_not_know_into_the_bucket(other):
    rows = words()
    weave = Weave().fit_counts(count(rows, max_values=10, other=other))
    counts = weave.counts_
    rare = next(w for w in rows["word"] if w not in counts.labels[0])
    label = _buckets.bucket(rare, counts.vocabulary.buckets["word"])
    given = weave.transform({"word": [rare, label], "size": ["s0", "s0"]})
    np.testing.assert_array_equal(given[0], given[1])
    weave.partial_fit({"word": [rare], "size": ["s0"]})
    assert weave.counts_.labels == counts.labels and weave.counts_.n == counts.n + 1
    strict = OneHot(unknown="error").fit_counts(counts)
    assert strict.transform({"word": [rare], "size": ["s0"]}).shape[0] == 1


def test_limits_that_are_none():
    with pytest.raises(ValueError, match="'nope', which is not counted"):
        count(words(), max_values={"nope": 5})
    with pytest.raises(ValueError, match="max_values=1 of column 'word'"):
        count(words(), max_values=1)
    with pytest.raises(ValueError, match="other='some'"):
        count(words(), max_values=5, other="some")
    with pytest.raises(ValueError, match="can be read once only"):
        count(iter([words()]), max_values=5)


def test_what_would_not_fit_is_refused_before_it_starts(monkeypatch):
    numbers = np.arange(40_000)
    rows = {"id": numbers, "code": numbers % 5000, "size": numbers % 3}
    free = count(rows, numbers="nominal")
    monkeypatch.setattr(_sizes, "available_memory", lambda: 5_000_000)
    monkeypatch.setattr(Counts, "of", None)  # nothing may be counted
    with pytest.raises(MemoryError, match=r"'id' has about 40,000 values.*max_values"):
        count(rows, numbers="nominal")
    found = estimate(rows, numbers="nominal")
    assert not found.fits and found.values == {"id": 40_000, "code": 5000, "size": 3}
    assert found.pairs >= free.pairs.nnz
    assert estimate(rows, numbers="nominal", max_values=50).fits


def test_the_estimate_grows_with_the_rows_that_are_not_read(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="writes a file with it")
    from pyarrow import parquet, table

    from tabweave.engines import source as _source

    monkeypatch.setattr(_source, "BATCH_ROWS", 1000)
    n = 20_000
    rows = table({"id": [f"i{i}" for i in range(n)], "digit": [str(i % 10) for i in range(n)]})
    parquet.write_table(rows, tmp_path / "r.parquet", row_group_size=1000)
    found = estimate(tmp_path / "r.parquet")
    assert found.rows == n and found.values == {"id": n, "digit": 10}


def test_batches_are_held_until_they_are_worth_a_matrix(monkeypatch):
    """A matrix of all pairs for every few rows would cost more than counting them."""
    from tabweave.engines import counting as _work
    from tabweave.engines import source as _source

    names = ", ".join(f"'c' || (hash(range * {i + 1}) % 100) AS c{i}" for i in range(5))
    query = f"SELECT {names}, 'k' || (range % 3) AS k FROM range(20000)"
    whole = count(query, y="k")
    made = []
    monkeypatch.setattr(_source, "BATCH_ROWS", 2048)
    monkeypatch.setattr(_work, "_HELD_BYTES", 40_000)  # of five columns: 8,000 rows
    real = Counts.of
    monkeypatch.setattr(Counts, "of", lambda t, y: made.append(t.n_rows) or real(t, y))
    assert count(query, y="k") == whole
    assert len(made) == 3 and sum(made) == 20_000


def test_counts_that_grow_beyond_memory_stop_the_run(tmp_path, monkeypatch):
    """SQL does not say how many rows come, so only the growing counts can tell."""
    from tabweave.engines import source as _source

    monkeypatch.setattr(_source, "BATCH_ROWS", 20_000)
    free = iter([10**12] * 3 + [0] * 100)
    monkeypatch.setattr(_sizes, "available_memory", lambda: next(free))
    with pytest.raises(MemoryError, match="'a' has about"):
        count("SELECT 'x' || range AS a, 'y' || range AS b FROM range(200000)")
