"""From path to path: the vectors of transform, in batches, whole or not at all."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tabweave import HELIC, UNICORN, UNTIE, NonBEND, OneHot, Table, ValueMetric, Weave
from tabweave.engines import batches, read, transform

pyarrow = pytest.importorskip("pyarrow", reason="the tests write Arrow files")
_transform = sys.modules["tabweave.engines.transform"]  # the function has its name


@pytest.fixture(scope="module")
def plain(rows):
    return rows.drop_columns(["class"])


@pytest.fixture(scope="module")
def untie(plain):
    return UNTIE(n_clusters=3).fit(plain)


def matrix(table, names):
    return np.column_stack([table[name].to_numpy() for name in names])


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".feather"])
def test_the_file_holds_the_vectors(files, rows, plain, untie, tmp_path, suffix):
    target = tmp_path / f"vectors{suffix}"
    n = transform(untie, f"{files}/part-*.parquet", target, keep=["class"], batch_rows=250)
    assert n == rows.num_rows and [p.name for p in tmp_path.iterdir()] == [target.name]
    found = read(target)
    names = list(untie.get_feature_names_out())
    assert found.column_names == ["class", *names]
    assert found["class"].to_pylist() == rows["class"].to_pylist()
    np.testing.assert_array_equal(matrix(found, names), untie.transform(plain))


@pytest.mark.parametrize("source", ["all.csv", "all.jsonl", "all.arrow"])
def test_every_kind_of_file_is_read(files, plain, untie, tmp_path, source):
    transform(untie, files / source, tmp_path / "out.arrow")
    names = list(untie.get_feature_names_out())
    found = matrix(read(tmp_path / "out.arrow"), names)
    np.testing.assert_array_equal(found, untie.transform(plain))


def test_lists_that_csv_cannot_hold_are_named(tmp_path):
    import pyarrow as pa

    rows = pa.table({"g": ["u", "v"] * 20, "tags": [["x", "y"], ["x"]] * 20})
    model = Weave().fit(rows)
    with pytest.raises(TypeError, match="column 'tags' holds lists or records, which"):
        transform(model, rows, tmp_path / "rows.csv", keep=["tags"])
    assert transform(model, rows, tmp_path / "rows.parquet", keep=["tags"]) == 40
    assert read(tmp_path / "rows.parquet")["tags"].to_pylist() == rows["tags"].to_pylist()


def test_a_file_is_not_replaced_unless_asked(files, untie, tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        transform(untie, files / "all.csv", target)
    assert target.read_text() == "mine"
    assert transform(untie, files / "all.csv", target, overwrite=True) == 3000
    with pytest.raises(ValueError, match="one of the input files"):
        transform(untie, files / "all.csv", files / "all.csv", overwrite=True)
    with pytest.raises(ValueError, match="expected a name that ends in"):
        transform(untie, files / "all.csv", tmp_path / "out.xlsx")
    with pytest.raises(FileNotFoundError, match="no folder"):
        transform(untie, files / "all.csv", tmp_path / "nowhere" / "out.csv")
    with pytest.raises(ValueError, match="CSV file cannot hold a column of vectors"):
        transform(untie, files / "all.csv", tmp_path / "new.csv", vector="vector")


def test_an_interrupted_run_leaves_the_old_file(files, untie, tmp_path):
    target = tmp_path / "out.parquet"
    target.write_text("old")

    def interrupt(progress):
        assert (progress.step, progress.total, progress.unit) == ("transforming", 3000, "rows")
        if progress.done >= 1000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        transform(
            untie, f"{files}/part-*.parquet", target,
            batch_rows=250, overwrite=True, progress=interrupt,
        )  # fmt: skip
    assert [p.name for p in tmp_path.iterdir()] == ["out.parquet"]
    assert target.read_text() == "old"


def test_text_that_looks_like_numbers_keeps_the_type_of_fit(tmp_path):
    """A file alone cannot say whether 1 is a number; what was fitted can."""
    fitted = tmp_path / "fit.csv"
    fitted.write_text("code,size\n1,S\n2,L\nx,S\n")
    later = tmp_path / "later.csv"
    later.write_text("code,size\n1,S\n2,L\n")
    embedder = OneHot(unknown="error", schema="nominal").fit(fitted)
    assert embedder.counts_.labels[0] == ("1", "2", "x")
    transform(embedder, later, tmp_path / "out.csv")
    np.testing.assert_array_equal(embedder.transform(later), np.eye(5)[[0, 1]] + np.eye(5)[[4, 3]])
    embedder.partial_fit(later)
    assert embedder.counts_.labels[0] == ("1", "2", "x") and embedder.counts_.n == 5
    numbers = OneHot(schema="nominal").fit(later)
    assert numbers.counts_.labels[0] == (1, 2)
    with pytest.raises(ValueError, match=r"fit\.csv.*Line: 4.*'?x'?"):
        transform(numbers, fitted, tmp_path / "bad.csv")
    assert not (tmp_path / "bad.csv").exists()


CODES = {"grade": "nominal", "price": "nominal"}  # else its bins are those of the first batch


@pytest.mark.parametrize(
    "embedder",
    [
        *(
            OneHot(),
            Weave(schema=CODES),
            UNTIE(n_clusters=3),
            ValueMetric("vdm"),
            UNICORN(n_clusters=3),
        ),
        HELIC(max_iter=3, random_state=0),
        NonBEND(n_fits=1, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_every_embedder_fits_a_source(files, rows, plain, embedder):
    from sklearn.base import clone

    classes = np.array(rows["class"].to_pylist(), dtype=object)
    memory = clone(embedder).fit(plain, classes)
    source = clone(embedder).fit(f"{files}/part-*.parquet", "class")
    assert source.counts_ == memory.counts_
    found, wanted = (e.pairwise_distances(plain[:20]) for e in (source, memory))
    np.testing.assert_array_equal(found, wanted)
    half = clone(embedder).partial_fit(files / "part-0.parquet", "class")
    half.partial_fit(files / "part-1.parquet", "class")
    assert half.counts_ == memory.counts_


def test_batches_come_in_order_and_read_is_all_of_them(files, rows):
    parts = list(batches(files / "all.csv", columns=["grade"], batch_rows=1000))
    grades = [grade for part in parts for grade in part["grade"].to_pylist()]
    assert grades == rows["grade"].to_pylist()
    assert read(f"{files}/part-*.parquet").to_pylist() == rows.to_pylist()
    assert read(rows) is rows


@pytest.mark.parametrize("n", [0, -1])
def test_batches_of_no_rows_are_refused(untie, plain, n):
    with pytest.raises(ValueError, match=f"batch_rows: expected at least 1, got {n}"):
        batches(plain, batch_rows=n)
    with pytest.raises(ValueError, match=f"batch_rows: expected at least 1, got {n}"):
        transform(untie, plain, batch_rows=n)


SHIRTS = {"color": ["red", "blue", "red", "pink"] * 3, "size": list("SLSLSL") * 2}


def as_dask(frame):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=1)


def as_arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


@pytest.mark.parametrize(
    "given",
    [
        lambda frame: frame,
        lambda frame: frame.to_dict("list"),
        lambda frame: dict(frame.items()),
        lambda frame: frame.to_dict("records"),
        lambda frame: iter([frame]),
        lambda frame: as_arrow(frame),
        lambda frame: as_arrow(frame).to_reader(),
        lambda frame: as_dask(frame),
    ],
)
def test_frames_come_in_batches_of_at_most_so_many_rows(given, tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(SHIRTS, index=range(7, 19))
    found = [Table.of(batch) for batch in batches(given(frame), batch_rows=5)]
    assert [table.n_rows for table in found] == [4, 4, 4]
    joined = [t["color"].labels[code] for t in found for code in t["color"].codes]
    assert joined == SHIRTS["color"]
    model, seen = OneHot().fit(SHIRTS), []
    done = lambda progress: seen.append(progress.done)  # noqa: E731
    assert transform(model, given(frame), tmp_path / "v.csv", batch_rows=5, progress=done) == 12
    assert seen == [4, 8, 12]


def test_rows_without_names_are_transformed(tmp_path):
    rows = np.array(list(SHIRTS.values()), object).T
    model = OneHot().fit(rows)
    assert transform(model, rows, tmp_path / "v.csv", batch_rows=5) == 12
    found = np.loadtxt(tmp_path / "v.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(found, model.transform(rows))


def test_wide_vectors_come_in_batches_of_fewer_rows(files, plain, untie, monkeypatch):
    """Memory is bounded by bytes, not by rows: a batch of them takes no more than so many."""
    row_bytes = 8 * len(untie.get_feature_names_out())
    monkeypatch.setattr(_transform, "MAX_VECTOR_BYTES", 100 * row_bytes)
    stream = list(transform(untie, files / "all.arrow"))
    assert max(batch.num_rows for batch in stream) == 100
    names = list(untie.get_feature_names_out())
    found = np.vstack([matrix(batch, names) for batch in stream])
    np.testing.assert_array_equal(found, untie.transform(plain))
    monkeypatch.setattr(_transform, "MAX_VECTOR_BYTES", 1)
    assert next(iter(transform(untie, files / "all.arrow"))).num_rows == 1


CORE = """
import sys
for name in ("pyarrow", "pandas", "polars"):
    sys.modules[name] = None
import numpy as np
from tabweave import Counts, OneHot, count
from tabweave.engines import read, transform
folder = sys.argv[1]
rows = read(folder + "/all.csv")
y = rows.pop("class")
for source in (folder + "/all.csv", folder + "/part-*.parquet", "FROM '" + folder + "/all.csv'"):
    assert count(source, y="class") == Counts.of(rows, y), source
    assert count(source, y="class", numbers="nominal").labels[2][0] == 0
embedder = OneHot().fit(folder + "/part-*.parquet", y="class")
n = transform(embedder, folder + "/all.csv", sys.argv[2], keep=["class"])
table = read(sys.argv[2])
vectors = np.column_stack([table[name] for name in embedder.get_feature_names_out()])
assert n == 3000 and np.array_equal(vectors, embedder.transform(rows))
try:
    transform(embedder, folder + "/all.csv", "out.parquet")
except ImportError as error:
    assert "pip install -e '.[frames]'" in str(error)
else:
    raise AssertionError
print("done")
"""


def test_the_core_alone_reads_files(files, tmp_path):
    """Without pyarrow, pandas and polars DuckDB reads Parquet, too."""
    done = subprocess.run(
        [sys.executable, "-c", CORE, str(files), str(tmp_path / "out.csv")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    assert done.stdout.strip() == "done", done.stderr


@pytest.mark.parametrize("vector", [None, "vector"])
def test_without_a_file_vectors_are_a_stream_of_arrow_batches(rows, untie, vector):
    """Any library that knows Arrow's protocol takes it; here pyarrow and polars."""
    polars = pytest.importorskip("polars", reason="polars is not installed")
    import pyarrow as pa

    plain = rows.drop_columns(["class"])
    stream = transform(untie, plain, vector=vector, batch_rows=700)
    assert isinstance(stream, pa.RecordBatchReader)
    wanted = untie.transform(plain)
    frame = polars.from_arrow(stream)
    found = frame["vector"].to_numpy() if vector else frame.to_numpy()
    np.testing.assert_array_equal(np.stack(list(found)), wanted)
    with pytest.raises(ValueError, match="expected at least one row"):
        transform(untie, plain.slice(0, 0))


def test_vectors_can_be_one_column_of_lists_of_a_fixed_size(files, rows, untie, tmp_path):
    import duckdb
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "vectors.parquet"
    assert transform(untie, files / "all.csv", path, keep=["class"], vector="vector") == 3000
    found = parquet.read_table(path)
    wanted = untie.transform(rows.drop_columns(["class"]))
    assert found.column_names == ["class", "vector"]
    assert found.schema.field("vector").type == pa.list_(pa.float64(), wanted.shape[1])
    np.testing.assert_array_equal(np.array(found["vector"].to_pylist()), wanted)
    nearest = duckdb.sql(
        f"SELECT list_distance(vector, (SELECT vector FROM '{path}' LIMIT 1)) FROM '{path}'"
    )
    plain = np.linalg.norm(wanted - wanted[0], axis=1)
    np.testing.assert_allclose(np.ravel(nearest.fetchall()), plain, atol=1e-7)
    with pytest.raises(ValueError, match="keep names 'class'"):
        transform(untie, files / "all.csv", tmp_path / "x.parquet", keep=["class"], vector="class")


def test_only_columns_that_repeat_are_written_as_dictionaries(tmp_path):
    """Vectors that are looked up repeat; sums do not, and a dictionary would only cost."""
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    rows = {f"c{i}": rng.integers(0, 23, 5000).astype(str) for i in range(9)}
    rows |= {"id": np.arange(5000).astype(str), "few": rng.integers(0, 3, 5000).astype(str)}
    fitted = {name: cells for name, cells in rows.items() if name.startswith("c")}
    for model, repeats in (
        (OneHot(schema="nominal"), True),
        (UNTIE(n_clusters=3, schema="nominal"), False),
    ):
        vectors = model.fit(fitted).transform(fitted)
        names = list(model.get_feature_names_out())
        for vector in (None, "vector"):
            path = tmp_path / f"{repeats}-{vector}.parquet"
            transform(model, rows, path, keep=["id", "few"], vector=vector)
            group = parquet.ParquetFile(path).metadata.row_group(0)
            found = [group.column(i).has_dictionary_page for i in range(group.num_columns)]
            assert found == [False, True] + [repeats] * (len(names) if vector is None else 1)
            table = parquet.read_table(path)
            columns = [table[n].to_numpy() for n in names] if vector is None else table["vector"]
            written = np.stack(columns, axis=1) if vector is None else np.array(columns.to_pylist())
            np.testing.assert_array_equal(written, vectors)


def sorted_by_city(tmp_path, n_new):
    parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow")
    path = tmp_path / "sorted.parquet"
    city = ["a"] * 60 + ["c"] * n_new
    size = (["x", "y"] * len(city))[: len(city)]
    parquet.write_table(pyarrow.table({"city": city, "size": size}), path)
    return OneHot().fit({"city": ["a", "b"] * 50, "size": list("xxyy") * 25}), path


def test_new_values_are_judged_when_all_batches_were_read(tmp_path):
    model, path = sorted_by_city(tmp_path, 30)
    with pytest.warns(UserWarning, match="column 'city': 30 of 90 values were not seen in fit"):
        assert transform(model, path, tmp_path / "out.parquet", batch_rows=30) == 90


def test_values_all_of_which_are_new_are_refused_and_nothing_is_written(tmp_path):
    _, path = sorted_by_city(tmp_path, 30)
    model = OneHot().fit({"city": ["p", "q"] * 50, "size": list("xxyy") * 25})
    with pytest.raises(ValueError, match="column 'city': none of its 90 values was seen in fit"):
        transform(model, path, tmp_path / "out.parquet", batch_rows=25)
    assert not (tmp_path / "out.parquet").exists()
