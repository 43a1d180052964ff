"""Pushdown: a database counts where the rows are, and only counts travel."""

import sqlite3
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from tabweave import Counts, Table, Weave, count
from tabweave.engines import open_source, pushdown

pa = pytest.importorskip("pyarrow", reason="the tests make Arrow tables")
duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
_spec = spec_from_file_location("frames_of_tests", Path(__file__).with_name("test_frames.py"))
frames = module_from_spec(_spec)
_spec.loader.exec_module(frames)
PLAIN = ["Color", "grade", "price", "ratio", "class"]  # what SQLite has types for
ASKED = [{}, {"numbers": "nominal"}, {"numbers": "nominal", "max_values": 3}]


@pytest.fixture(scope="module")
def rows():
    """Every kind of label, a column of many numbers, and classes."""
    rng = np.random.default_rng(1)
    kinds = frames.every_kind(2000)
    kinds = kinds.append_column("ratio", pa.array(rng.integers(0, 50, len(kinds)) / 7))
    return kinds.append_column("class", pa.array([f"k{i}" for i in rng.integers(0, 3, len(kinds))]))


@pytest.fixture
def connection(rows):
    with duckdb.connect() as own:
        own.register("t", rows)
        yield own


def check(source, rows, schema=frames.SCHEMA):
    for asked in ASKED:
        wanted = count(rows, y="class", schema=schema, **asked)
        assert count(source, y="class", schema=schema, engine="pushdown", **asked) == wanted, asked


def test_duckdb_counts_where_the_rows_are(connection, rows, tmp_path):
    from pyarrow import parquet

    check((connection, "SELECT * FROM t -- all"), rows)
    check(connection.sql("FROM t"), rows)
    parquet.write_table(rows, tmp_path / "rows.parquet")
    check(tmp_path / "rows.parquet", rows)
    check(f"SELECT * FROM '{tmp_path}/rows.parquet'", rows)


@pytest.mark.parametrize("columns", [["ratio"], ["ratio", "price"]])
def test_numbers_alone_are_counted_where_they_are(connection, rows, columns):
    found = count((connection, "SELECT * FROM t"), columns=columns, engine="pushdown")
    assert found == count(rows, columns=columns) and found.n == len(rows)


ODD = ["it''s", "", " ", "é", "a,b", "NULL", "1", "⟨other⟩", "%s %% {key}", "x" * 5000]


@pytest.mark.parametrize("numbered", [4, 1 << 13])
def test_numbers_stand_for_odd_texts_and_many_values_stay_text(numbered, monkeypatch):
    """And what was kept for this while is gone, also when counting fails."""
    few = replace(pushdown.DIALECTS["duckdb"], max_positions=numbered)
    monkeypatch.setitem(pushdown.DIALECTS, "duckdb", few)
    rng = np.random.default_rng(2)
    words = {f"c{i}": np.array([*ODD[: 3 + i], None], object) for i in range(6)}
    words |= {"empty": np.array([None]), "many": np.array([f"w{i}" for i in range(300)])}
    rows = pa.table({n: pa.array(w[rng.integers(0, len(w), 2000)]) for n, w in words.items()})
    with duckdb.connect() as own:
        own.register("frame", rows)
        own.execute("CREATE TABLE t AS SELECT * FROM frame")
        source = (own, "SELECT * FROM t")
        for asked in ({}, {"max_values": 3}, {"max_values": 3, "other": "hash"}):
            assert count(source, engine="pushdown", **asked) == count(source, **asked)
        monkeypatch.setattr(pushdown, "pair_queries", lambda *_: ["SELECT nonsense"])
        with pytest.raises(ValueError, match="nonsense"):
            count(source, engine="pushdown")
        tables = {table for _, _, table, *_ in own.execute("SHOW ALL TABLES").fetchall()}
        assert tables == {"frame", "t"}


def test_a_value_that_comes_up_between_two_queries_is_said(connection, monkeypatch):
    connection.execute("CREATE TABLE grows AS SELECT * FROM (VALUES ('a', 'b', 'c')) v(a, b, c)")
    source = (connection, "SELECT * FROM grows")
    assert count(source, engine="pushdown").n == 1
    for way in ("_count_numbers", "_count_texts"):
        real = getattr(pushdown, way)

        def late(*args, real=real):
            connection.execute("INSERT INTO grows VALUES (NULL, 'new', 'c')")
            return real(*args)

        monkeypatch.setattr(pushdown, way, late)
        with pytest.raises(ValueError, match=r"'[abc]': rows changed while they were counted"):
            count(source, engine="pushdown")
        connection.execute("DELETE FROM grows WHERE a IS NULL")
        monkeypatch.setattr(pushdown, way, real)


def test_no_row_travels_and_at_most_as_many_counts_as_pairs_of_values(
    connection, rows, monkeypatch
):
    moved = []
    source = open_source((connection, "SELECT * FROM t"))
    sql_table = source.sql_table()

    def run(query):
        for batch in sql_table.run(query):
            moved.append(len(batch))
            yield batch

    monkeypatch.setattr(type(source), "sql_table", lambda self: replace(sql_table, run=run))
    found = count(source, y="class", numbers="nominal", schema=frames.SCHEMA, engine="pushdown")
    assert sum(moved) <= (len(found.pairs) + len(found.classes)) ** 2


def test_sqlite_tells_whole_numbers_from_text_and_floats_apart(rows):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (Color TEXT, grade, price REAL, ratio REAL, class TEXT)")
    cells = zip(*(column.to_pylist() for column in rows.select(PLAIN).columns), strict=True)
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", list(cells))
    check((connection, "SELECT * FROM t"), rows.select(PLAIN), None)
    connection.execute("CREATE TABLE odd (a, b)")
    odd = [(1, 0.1 + 0.2), ("1", 0.3), (None, 0.1 + 0.2), (1.0, 1e300), (b"1", -0.0)]
    connection.executemany("INSERT INTO odd VALUES (?, ?)", odd)
    source = (connection, "SELECT * FROM odd")
    assert count(source, numbers="nominal", engine="pushdown") == count(source, numbers="nominal")
    connection.close()


def test_postgresql_counts_where_the_rows_are(postgres, rows):
    driver = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="no ADBC driver")
    plain = rows.drop_columns(["cost"])  # of numeric, which the driver does not take in
    with driver.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("pushed", plain, mode="create")
        check((connection, "SELECT * FROM pushed"), plain)
        connection.commit()
        cursor.execute("SET TRANSACTION READ ONLY")  # no temporary table can be made
        assert open_source((connection, "SELECT * FROM pushed")).sql_table().keep is None
        check((connection, "SELECT * FROM pushed"), plain)
        connection.rollback()
    assert open_source((postgres, "SELECT * FROM pushed")).sql_table().keep is not None
    check((postgres, "SELECT * FROM pushed"), plain)


def test_datafusion_and_chdb_count_where_the_rows_are(rows, tmp_path):
    from pyarrow import parquet

    datafusion = pytest.importorskip("datafusion", reason="datafusion is not installed")
    session = datafusion.SessionContext()
    session.register_record_batches("t", [rows.to_batches()])
    check((session, "SELECT * FROM t"), rows)
    check(session.from_arrow(rows), rows)
    chdb = pytest.importorskip("chdb", reason="chdb is not installed")
    parquet.write_table(rows, tmp_path / "rows.parquet")
    source = (chdb.connect(":memory:"), f"SELECT * FROM file('{tmp_path}/rows.parquet')")
    # It has no bytes, and its times have a zone: so labels are those that reading gives.
    check(source, open_source(source))
    plain = ["Color", "grade", "price", "flag", "day", "cost"]
    day = {"day": "nominal"}
    wanted = Counts.of(Table.of(rows.select(plain), day, numbers="nominal"))
    assert count(source, columns=plain, schema=day, numbers="nominal", engine="pushdown") == wanted


@pytest.mark.parametrize("backend", ["duckdb", "datafusion"])
def test_ibis_counts_on_its_backend(backend, rows, tmp_path):
    check(frames.ibis(rows, tmp_path, backend), rows)


@pytest.mark.parametrize("dialect", pushdown.DIALECTS)
def test_every_dialect_is_valid_and_means_the_same(dialect, connection, rows, monkeypatch):
    """Parsed in its own dialect, and run by DuckDB after translation."""
    sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    source = open_source((connection, "SELECT * FROM t"))
    sql_table = source.sql_table()
    parsed = {"datafusion": "postgres"}.get(dialect, dialect)

    def run(query):
        strict = {"error_level": sqlglot.ErrorLevel.RAISE}
        sqlglot.parse_one(query, read=parsed, **strict)
        query = query.replace("quote(", "quote_text(").replace("toString(", "quote_text(")
        return sql_table.run(sqlglot.transpile(query, read=parsed, write="duckdb", **strict)[0])

    connection.execute("CREATE MACRO quote_text(x) AS CAST(x AS VARCHAR)")
    monkeypatch.setattr(
        type(source),
        "sql_table",
        lambda self: pushdown.SqlTable(dialect, "t AS tabweave_source", run),
    )
    plain = rows.drop_columns(["raw"])
    for asked in ASKED:
        wanted = count(plain, y="class", schema=frames.SCHEMA, **asked)
        names = plain.column_names[:-1]
        found = count(
            source, columns=names, y="class", schema=frames.SCHEMA, engine="pushdown", **asked
        )
        assert found == wanted


def test_what_cannot_be_pushed_down_is_said(connection, rows):
    with pytest.raises(ValueError, match=r"'tags' holds sets.*engine='auto'"):
        count((connection, "SELECT ['a', 'b'] AS tags, 1 AS b"), engine="pushdown")
    with pytest.raises(ValueError, match="its rows can only be read"):
        count(frames.Stream(rows), engine="pushdown")
    with pytest.raises(ValueError, match="engine='pushdown' does not read memory"):
        count(rows, engine="pushdown")
    with pytest.raises(ValueError, match="y is missing in 1 rows"):
        count((connection, "SELECT 'a' AS a, NULL AS c"), y="c", engine="pushdown")
    query = "SELECT * FROM (VALUES (CAST(0.1 AS FLOAT), 'x'), (0.2, 'y')) v(a, b) WHERE a > 5"
    assert count((connection, query), engine="pushdown") == Counts()


def test_two_values_with_one_text_are_refused(connection, monkeypatch):
    rounded = replace(pushdown.DIALECTS["duckdb"], key="CAST(round({}) AS VARCHAR)")
    monkeypatch.setitem(pushdown.DIALECTS, "duckdb", rounded)
    with pytest.raises(ValueError, match=r"column 'a': .* are both '1.0' as text"):
        count(
            (connection, "SELECT * FROM (VALUES (1.0::DOUBLE), (1.25)) v(a)"),
            numbers="nominal", engine="pushdown",
        )  # fmt: skip


def test_an_embedder_learns_from_counts_that_were_made_there(connection, rows):
    found = count(
        (connection, "SELECT Color, grade, flag FROM t"), engine="pushdown", numbers="nominal"
    )
    plain = rows.select(["Color", "grade", "flag"])
    read = count(plain, numbers="nominal")
    np.testing.assert_array_equal(
        Weave().fit_counts(found).transform(plain), Weave().fit_counts(read).transform(plain)
    )


def test_the_first_error_is_the_one_to_show():
    def execute(statement):
        if statement.startswith("DROP"):  # as PostgreSQL does in a transaction that has failed
            raise RuntimeError("commands ignored until end of transaction block")

    with pytest.raises(ValueError, match="what went wrong"):
        with pushdown.temporary_table(execute, "SELECT 1"):
            raise ValueError("what went wrong")
