"""Frames: whatever hands over Arrow is read in batches, and counts what memory counts."""

import datetime as dt
import decimal

import numpy as np
import pytest

from tabweave import Counts, OneHot, Schema, Table, count
from tabweave.engines import batches, is_source, open_source

pa = pytest.importorskip("pyarrow", reason="the tests make Arrow tables")
SCHEMA = {"day": "nominal", "time": "nominal"}


def every_kind(n=3000, seed=0):
    """A table with every kind of label: text, numbers, bools, dates, times, decimals, bytes."""
    rng = np.random.default_rng(seed)
    values = {
        "Color": (["red", "blü", "", "a'b\"c"], pa.string()),
        "grade": ([1, -2, 3], pa.int64()),
        "price": ([0.5, 2.0, 0.1 + 0.2], pa.float64()),
        "flag": ([True, False], pa.bool_()),
        "day": ([dt.date(2020, 1, 2), dt.date(1969, 12, 31)], pa.date32()),
        "time": (
            [dt.datetime(2020, 1, 2, 3, 4, 5, 6), dt.datetime(2021, 1, 1)],
            pa.timestamp("us"),
        ),
        "cost": ([decimal.Decimal("1.50"), decimal.Decimal("2.00")], pa.decimal128(9, 2)),
        "raw": ([b"a", b"\x00b"], pa.binary()),
    }
    cells = {}
    for name, (distinct, kind) in values.items():
        chosen = [distinct[i] for i in rng.integers(0, len(distinct), n)]
        gaps = rng.random(n) < 0.1
        cells[name] = pa.array([None if g else v for g, v in zip(gaps, chosen, strict=True)], kind)
    return pa.table(cells)


@pytest.fixture(scope="module")
def kinds():
    return every_kind()


@pytest.fixture(scope="module")
def wanted(kinds):
    return Counts.of(Table.of(kinds, SCHEMA, numbers="nominal"))


def counted(source, **more):
    return count(source, numbers="nominal", schema=SCHEMA, **more)


class Stream:
    """An object of a library nobody has heard of, which speaks the stream protocol."""

    def __init__(self, rows):
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema=None):
        return self.rows.__arrow_c_stream__(requested_schema)


class Whole:
    """One that speaks the array protocol only."""

    def __init__(self, rows):
        self.rows = rows

    def __arrow_c_array__(self, requested_schema=None):
        return self.rows.combine_chunks().to_batches()[0].__arrow_c_array__(requested_schema)


class Interchange:
    """One that speaks the older interchange protocol only."""

    def __init__(self, rows):
        self.rows = rows

    def __dataframe__(self, *args, **options):
        return self.rows.__dataframe__(*args, **options)


def test_what_speaks_the_stream_protocol_is_a_source(kinds, wanted):
    rows = Stream(kinds)
    assert is_source(rows) and counted(rows) == counted(rows) == wanted
    assert count(rows, columns=["flag", "raw"]) == count(kinds, columns=["flag", "raw"])
    model = OneHot(schema=Schema(SCHEMA, undeclared="nominal")).fit(rows)
    assert model.counts_ == wanted
    np.testing.assert_array_equal(model.transform(rows), model.transform(kinds))
    assert Counts.of(Table.of(rows, SCHEMA, numbers="nominal")) == wanted


def test_arrays_and_interchange_frames_are_sources_too(kinds, wanted):
    assert counted(Whole(kinds)) == wanted
    plain = kinds.select(["Color", "grade", "price", "flag"])
    assert count(Interchange(plain), numbers="nominal") == count(plain, numbers="nominal")


def test_batches_are_taken_as_they_lie_and_small_ones_gathered(kinds):
    rows = kinds.combine_chunks()
    (batch,) = batches(Stream(rows), columns=["grade"])
    ours, theirs = (t["grade"].chunk(0).buffers()[1].address for t in (batch, rows))
    assert ours == theirs
    many = Stream(pa.Table.from_batches(kinds.to_batches(max_chunksize=7)))
    assert [len(b) for b in batches(many, batch_rows=1000)] == [501, 500, 501, 500, 998]


def test_what_can_be_read_once_is_not_taken_for_less(kinds, wanted):
    reader = kinds.to_reader(100)
    assert not open_source(reader).repeats and counted(reader) == wanted
    hidden = Stream(kinds.to_reader(100))  # does not look like a reader
    with pytest.raises(ValueError, match="3000 rows, this one 0: it can be read only once"):
        counted(hidden, max_values=2)


def test_a_column_alone_is_not_rows(kinds):
    with pytest.raises(ValueError, match=r"Stream: .*struct"):
        count(Stream(kinds["flag"]))


def lancedb(rows, folder):
    return pytest.importorskip("lancedb").connect(folder).create_table("t", rows)


def ibis(rows, folder, backend):
    module = pytest.importorskip("ibis")
    try:
        return getattr(module, backend).connect().create_table("t", rows)
    except Exception as error:  # it writes SQL by sqlglot, and not every pair of versions agrees
        pytest.skip(f"ibis itself does not run on {backend} here: {error}")


PEERS = {
    "pandas": lambda rows, _: rows.to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype),
    "polars": lambda rows, _: pytest.importorskip("polars").from_arrow(rows),
    "polars lazy": lambda rows, _: pytest.importorskip("polars").from_arrow(rows).lazy(),
    "duckdb": lambda rows, _: pytest.importorskip("duckdb").from_arrow(rows),
    "datafusion": lambda r, _: pytest.importorskip("datafusion").SessionContext().from_arrow(r),
    "daft": lambda rows, _: pytest.importorskip("daft").from_arrow(rows),
    "lancedb": lancedb,
    "lancedb query": lambda rows, folder: lancedb(rows, folder).search().where("true"),
    "ibis on duckdb": lambda rows, folder: ibis(rows, folder, "duckdb"),
    "ibis on datafusion": lambda rows, folder: ibis(rows, folder, "datafusion"),
}


@pytest.mark.parametrize("peer", PEERS)
def test_every_library_gives_the_same_counts_and_vectors(peer, kinds, wanted, tmp_path):
    rows = PEERS[peer](kinds, tmp_path)
    assert counted(rows) == wanted
    assert count(rows, columns=["Color", "cost"]) == count(kinds, columns=["Color", "cost"])
    model = OneHot(schema=Schema(SCHEMA, undeclared="nominal")).fit(rows)
    np.testing.assert_array_equal(model.transform(rows), model.transform(kinds))


def scan(library, path):
    module = pytest.importorskip(library)
    return (module.scan_parquet if library == "polars" else module.read_parquet)(str(path))


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    """A file of what every library reads alike, gaps and dictionaries too, and the same rows."""
    rows = every_kind().select(["Color", "grade", "price", "flag"])
    coded = rows["Color"].cast(pa.large_string()).dictionary_encode()
    rows = rows.append_column("coded", coded)
    path = tmp_path_factory.mktemp("scan") / "rows.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(rows, path, row_group_size=700)
    return path, rows


@pytest.mark.parametrize("library", ["polars", "duckdb", "daft"])
def test_a_plan_that_only_reads_a_file_is_that_file(library, parquet):
    path, rows = parquet
    plan = scan(library, path)
    assert open_source(plan).paths == (path,)
    assert count(plan, numbers="nominal") == count(rows, numbers="nominal")
    assert count(plan, columns=["Color", "flag"]) == count(rows, columns=["Color", "flag"])


ASKED = {
    "polars": ["head(5)", "select('Color', 'flag')", "with_row_index()", "reverse()"],
    "duckdb": ["limit(5)", "project('Color, flag')", "filter('grade = 1')", "distinct()"],
    "daft": ["limit(5)", "select('Color', 'flag')", "where('grade = 1')", "distinct()"],
}  # fmt: skip


@pytest.mark.parametrize("library, asked", [(m, a) for m, own in ASKED.items() for a in own])
def test_a_plan_that_asks_for_more_is_carried_out(library, asked, parquet):
    path, _ = parquet
    plan = eval(f"plan.{asked}", {"plan": scan(library, path)})
    opened = open_source(plan)
    assert not opened.paths
    table = pa.table(plan) if library == "duckdb" else plan.collect()
    table = table.to_arrow() if library == "daft" else table
    assert count(opened, numbers="nominal") == count(table, numbers="nominal")


def test_options_of_a_scan_and_other_types_leave_it_to_its_library(kinds, parquet, tmp_path):
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    path, _ = parquet
    few = polars.scan_parquet(path, n_rows=7)
    assert not open_source(few).paths and count(few).n == 7
    numbered = duckdb.read_parquet(str(path), file_row_number=True)
    assert "file_row_number" in open_source(numbered).types
    many = polars.scan_parquet([path, path])
    assert not open_source(many).paths and count(many, columns=["Color"]).n == 6000
    assert not open_source(polars.scan_parquet(f"{path.parent}/*.parquet")).paths
    whole = tmp_path / "kinds.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(kinds, whole)
    for plan in (polars.scan_parquet(whole), duckdb.read_parquet(str(whole))):
        assert not open_source(plan).paths  # it has dates, decimals and bytes
    assert not open_source(duckdb.read_parquet(str(path)), engine="duckdb").paths


def test_tables_with_a_log_say_which_rows_are_there(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset", reason="no pyarrow")
    alive = pyarrow.table({"a": ["x", "y", "x"], "b": ["1", "2", "2"]})

    class DeltaTable:
        def to_pyarrow_dataset(self):
            return dataset.dataset(alive)

    class Scan:
        def __init__(self, rows=alive):
            self.rows = rows

        def projection(self):
            return self

        def as_arrow(self):
            return self.rows.schema

        def select(self, *names):
            return Scan(self.rows.select(names))

        def to_arrow_batch_reader(self):
            return self.rows.to_reader()

    Scan.__module__, DeltaTable.__module__ = "pyiceberg.table", "deltalake.table"
    for source in (DeltaTable(), Scan()):
        assert count(source) == count(alive)
        assert count(source, columns=["b"]) == count(alive, columns=["b"])
        np.testing.assert_array_equal(
            OneHot().fit(source).transform(alive), OneHot().fit(alive).transform(alive)
        )
