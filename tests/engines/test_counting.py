"""Counting: the same counts from every source, bit for bit; many values in buckets."""

import sqlite3
from collections import Counter
from weakref import ref

import duckdb
import numpy as np
import pandas as pd
import pytest

from tabweave import Counts, OneHot, Schema, SimilarityIndex, Table, Weave, count
from tabweave.columns import vocabulary as _buckets

OTHER = _buckets.Bucket()


def same(found, wanted):
    """Counts hold equal what they hold; here the dtype and the storage must be equal, too."""
    assert found == wanted
    assert found.schema == wanted.schema
    assert found.pairs.dtype == wanted.pairs.dtype
    assert [[type(v) for v in column] for column in found.labels] == [
        [type(v) for v in column] for column in wanted.labels
    ]


def sqlite_of(files):
    return sqlite3.connect(files / "all.db")


SOURCES = {
    "pandas": lambda rows, files: rows.to_pandas(),
    "pandas objects": lambda rows, files: rows.to_pandas().astype({"color": object}),
    "pandas categories": lambda rows, files: rows.to_pandas().astype({"color": "category"}),
    "polars": lambda rows, files: polars().from_arrow(rows),
    "polars lazy": lambda rows, files: polars().from_arrow(rows).lazy(),
    "polars scan": lambda rows, files: polars().scan_parquet(f"{files}/part-*.parquet"),
    "arrow": lambda rows, files: rows,
    "arrow dataset": lambda rows, files: dataset(sorted(files.glob("*.parquet"))),
    "arrow reader": lambda rows, files: rows.to_reader(max_chunksize=700),
    "frames one by one": lambda rows, files: iter([rows.slice(0, 10), rows.slice(10).to_pandas()]),
    "columns": lambda rows, files: rows.to_pydict(),
    "parquet glob": lambda rows, files: f"{files}/part-*.parquet",
    "parquet list": lambda rows, files: [f"{files}/part-0.parquet", files / "part-1.parquet"],
    "csv": lambda rows, files: files / "all.csv",
    "csv.gz": lambda rows, files: str(files / "packed.csv.gz"),
    "jsonl": lambda rows, files: files / "all.jsonl",
    "arrow file": lambda rows, files: files / "all.arrow",
    "sql": lambda rows, files: f"SELECT * FROM read_parquet('{files}/part-*.parquet')",
    "relation": lambda rows, files: duckdb.connect().sql(f"FROM read_csv('{files}/all.csv')"),
    "duckdb connection": lambda rows, files: (duckdb.connect(), f"FROM '{files}/all.csv'"),
    "sqlite over adbc": lambda rows, files: (f"sqlite:///{files}/all.db", "SELECT * FROM shirts"),
    "sqlite of python": lambda rows, files: (sqlite_of(files), "SELECT * FROM shirts;"),
}


def polars():
    return pytest.importorskip("polars", reason="polars is not installed")


def dataset(paths):
    import pyarrow.dataset

    return pyarrow.dataset.dataset([str(path) for path in paths])


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("numbers", ["numeric", "nominal"])
def test_every_source_gives_the_same_counts(rows, files, name, numbers):
    if "adbc" in name:
        pytest.importorskip("adbc_driver_sqlite", reason="the ADBC driver is not installed")
    table = Table.of(rows.drop_columns(["class"]), numbers=numbers)
    wanted = Counts.of(table, rows["class"])
    same(count(SOURCES[name](rows, files), y="class", numbers=numbers), wanted)


def test_words_for_bools_stay_words(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("a,b,c\nyes,t,true\nno,f,false\n")
    assert count(path).labels == (("no", "yes"), ("f", "t"), ("false", "true"))


@pytest.mark.parametrize("words", [("True", "False"), ("TRUE", "FALSE"), ("true", "")])
def test_bools_are_the_words_that_a_file_had_for_them(words, tmp_path):
    path = tmp_path / "paid.csv"
    path.write_text("paid,n\n" + "".join(f"{words[i % 3 % 2]},{i % 5}.5\n" for i in range(60)))
    model, rows = Weave().fit(path), pd.read_csv(path)
    assert bool in set(map(type, rows["paid"].tolist()))
    np.testing.assert_array_equal(model.transform(rows), model.transform(path))
    assert not model.unknown_counts(rows)
    shares = model.explain({"paid": True, "n": 0.5}, {"paid": words[0], "n": 0.5})
    assert shares["paid"] == 0
    index = SimilarityIndex(model).fit(rows)
    assert index.query(rows[:5], k=1).distances.max() == 0
    assert model.partial_fit(rows).counts_.labels == Weave().fit(path).counts_.labels


def test_bools_beside_other_words_are_not_taken_for_them(tmp_path):
    path = tmp_path / "paid.csv"
    path.write_text("paid,n\n" + "true,1.5\nTRUE,2.5\nfalse,3.5\n" * 20)
    with pytest.raises(ValueError, match="column 'paid': expected text as in fit"):
        Weave().fit(path).transform({"paid": [True], "n": [1.5]})


# -- many values


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


def test_tallies_of_batches_are_added_one_by_one():
    """Memory holds the sum and one tally, however many batches there are."""
    from tabweave.engines.counting import BatchReader, TallyValues

    seen = []

    class Watched(TallyValues):
        def _one(self, batch):
            assert not any(tally() for tally in seen[:-1])
            out = super()._one(batch)
            seen.append(ref(out["a"]))
            return out

    batches = [{"a": [f"v{i}", "v"]} for i in range(9)]
    found = Watched(BatchReader(), {})(batches)["a"]
    assert len(found) == 10 and sum(found.values()) == 18 and len(seen) == 9
    assert len(Watched(BatchReader(), {"a": 3})(batches)["a"]) == 5  # enough to know of more


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
    with pytest.raises(ValueError, match="column 'word': expected a whole number >= 2, got 1"):
        count(words(), max_values=1)
    with pytest.raises(ValueError, match=r"expected other to be .*, got 'some'"):
        count(words(), max_values=5, other="some")
    with pytest.raises(ValueError, match="can be read only once"):
        count(iter([words()]), max_values=5)


def test_batches_are_held_until_they_are_worth_a_matrix(monkeypatch):
    """A matrix of all pairs for every few rows would cost more than counting them."""
    from tabweave.engines import counting as _work
    from tabweave.engines import source as _source

    names = ", ".join(f"'c' || (hash(range * {i + 1}) % 100) AS c{i}" for i in range(5))
    query = f"SELECT {names}, 'k' || (range % 3) AS k FROM range(20000)"
    whole = count(query, y="k")
    made = []
    monkeypatch.setattr(_source, "BATCH_ROWS", 2048)
    monkeypatch.setattr(_work, "GATHERED_BYTES", 40_000)  # of five columns: 8,000 rows
    real = Counts.of
    monkeypatch.setattr(Counts, "of", lambda t, y: made.append(t.n_rows) or real(t, y))
    assert count(query, y="k") == whole
    assert len(made) == 3 and sum(made) == 20_000


def test_a_limit_may_be_an_integer_of_numpy():
    rows = {"a": list("abcabc")}
    assert count(rows, max_values=np.int64(2)) == count(rows, max_values=2)


def _late_large_number():
    """Ninety rows of which only the last ones hold a whole number that no float equals."""
    x = np.array([1, 2, 3] * 20 + [2**53 + 1, 2**53, 5] * 10, np.int64)
    return {"a": x, "c": np.array(list("uvw") * 30)}


@pytest.mark.parametrize("source", ["parquet", "csv", "sql", "pushdown", "dask"])
def test_whole_numbers_that_are_no_floats_are_values_in_every_engine(source, tmp_path):
    frame = pd.DataFrame(_late_large_number())
    wanted = count(frame)
    assert wanted.schema["a"].kind == "nominal" and 2**53 + 1 in wanted.labels[0]
    path = tmp_path / ("rows.csv" if source == "csv" else "rows.parquet")
    if source == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, row_group_size=30)
    if source == "dask":
        rows = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
    else:
        rows = f"SELECT * FROM '{path}'" if source in ("sql", "pushdown") else path
    engine = "pushdown" if source == "pushdown" else "auto"
    assert count(rows, engine=engine) == wanted


def test_a_stream_that_cannot_be_read_again_says_which_numbers_are_no_floats():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table(_late_large_number())
    stream = arrow.RecordBatchReader.from_batches(table.schema, table.to_batches(30))
    with pytest.raises(ValueError, match=r"column 'a' holds whole numbers beyond 2\*\*53.*nominal"):
        count(stream)
    stream = arrow.RecordBatchReader.from_batches(table.schema, table.to_batches(30))
    assert count(stream, schema={"a": "numeric"}).moments("a")[0] == 90


def test_more_rows_than_are_sampled_have_the_same_counts_in_any_order_and_engine(tmp_path):
    """Above 2**19 mixed rows, bins depended on the position of rows."""
    rng = np.random.default_rng(0)
    n = 600_000
    group = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "group": np.array(list("abc"))[group],
            "pay": np.exp(rng.normal(group, 1)),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n)),
        }
    )
    wanted = Weave().fit(frame)
    shuffled = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    shuffled.to_parquet(tmp_path / "rows.parquet", row_group_size=70_000)
    assert count(tmp_path / "rows.parquet") == Counts.of(frame)
    asked = frame[:100]
    for rows in (shuffled, tmp_path / "rows.parquet", frame.sort_values("pay")):
        found = Weave().fit(rows)
        assert (
            found.counts_ == wanted.counts_
            and found.counts_.numbers.grids == wanted.counts_.numbers.grids
        )
        np.testing.assert_array_equal(found.transform(asked), wanted.transform(asked))
    dask = pytest.importorskip("dask.dataframe")
    assert count(dask.from_pandas(shuffled, npartitions=7)) == wanted.counts_


@pytest.mark.parametrize(("coupled", "checked"), [(True, [18]), (False, [])])
def test_whether_counts_fit_into_memory_is_checked_once_by_the_first_rows(
    monkeypatch, coupled, checked
):
    n_rows = []

    class Recorded:
        def __init__(self, table, _):
            self.table = table

        def check(self):
            n_rows.append(self.table.n_rows)

    monkeypatch.setattr("tabweave.engines.counting.estimated", Recorded)
    frames = (pd.DataFrame({"a": list("pq") * n, "b": list("rs") * n}) for n in (9, 12, 15))
    schema = Schema({"a": "nominal", "b": "nominal"}, coupled=coupled)
    assert count(frames, schema=schema).n == 72
    assert n_rows == checked
