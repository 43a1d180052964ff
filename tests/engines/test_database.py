"""Databases: SQLite and PostgreSQL give what memory gives, and say so when they fail."""

import contextlib
import sqlite3
import threading

import numpy as np
import pytest

from tabweave import UNTIE, Counts, Table, count
from tabweave.engines import batches, opening, transform

pytest.importorskip("pyarrow", reason="the tests write Arrow files")


@pytest.fixture(scope="module")
def filled(postgres, rows):
    """The address of a PostgreSQL server that has the rows."""
    driver = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="no ADBC driver")
    with driver.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("shirts", rows, mode="create")
        cursor.execute("CREATE TABLE odd AS SELECT 1.50::numeric AS price, 'a'::char(3) AS letter")
        cursor.execute("CREATE TYPE mood AS ENUM ('low', 'high')")
        cursor.execute("CREATE TABLE moods AS SELECT 'high'::mood AS mood, true AS flag")
        connection.commit()
    return postgres


def test_postgresql_gives_the_same_counts_and_vectors(filled, rows):
    plain = rows.drop_columns(["class"])
    source = (filled, "SELECT * FROM shirts")
    wanted = Counts.of(Table.of(plain, numbers="nominal"), rows["class"])
    assert count(source, y="class", numbers="nominal") == wanted
    assert count(source, y="class") == Counts.of(plain, rows["class"])
    untie = UNTIE(n_clusters=3).fit(source, y="class")
    memory = UNTIE(n_clusters=3).fit(plain)
    np.testing.assert_array_equal(untie.transform(plain), memory.transform(plain))
    np.testing.assert_array_equal(untie.transform(source), memory.transform(plain))


def test_types_of_postgresql_become_labels(filled):
    assert count((filled, "SELECT * FROM odd"), numbers="nominal").labels == ((1.5,), ("a  ",))
    assert count((filled, "SELECT * FROM moods")).labels == (("high",), (True,))


def test_a_password_is_never_shown(filled):
    with pytest.raises(ValueError, match="nothing_here") as caught:
        count((filled, "SELECT * FROM nothing_here"))
    assert "secret" not in str(caught.value) and "tabweave:***@" in str(caught.value)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:a@secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://host/db?password=secret&user=me", "postgresql://host/db?password=***&user=me"),
        ("postgresql://host/db", "postgresql://host/db"),
    ],
)  # fmt: skip
def test_passwords_are_hidden_wherever_they_stand(address, shown):
    assert opening._without_password(address) == shown


def test_a_server_that_goes_away_in_the_middle(filled, tmp_path):
    """Another connection ends ours between two batches, as a restart of the server would."""
    import adbc_driver_postgresql.dbapi as driver

    query = (
        "SELECT 'v' || (i % 3) AS a, repeat('x', 200 + i % 7) AS b "
        "FROM generate_series(1, 2000000) i"
    )
    stream = batches((filled, query), batch_rows=1000)
    next(stream)

    def kill():
        with driver.connect(filled) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND query LIKE '%generate_series%'"
            )
            cursor.fetchall()

    killer = threading.Thread(target=kill)
    killer.start()
    killer.join()
    with pytest.raises(ValueError, match=r"tabweave:\*\*\*@.*after \d+ rows; nothing is kept"):
        for _ in stream:
            pass


def test_a_transform_that_fails_in_the_middle_leaves_no_file(filled, tmp_path):
    embedder = UNTIE(n_clusters=2).fit({"a": ["v0", "v1", "v2"], "b": ["x", "y", "y"]})
    query = (
        "SELECT 'v' || (i % 3) AS a, CASE WHEN i = 190000 THEN (1 / (i - 190000))::text "
        "ELSE 'x' END AS b FROM generate_series(1, 200000) i"
    )
    with pytest.raises(ValueError, match="division by zero"):
        transform(embedder, (filled, query), tmp_path / "out.parquet", batch_rows=1000)
    assert list(tmp_path.iterdir()) == []


def test_sqlite_says_when_a_column_has_two_types(tmp_path):
    pytest.importorskip("adbc_driver_sqlite", reason="no ADBC driver")
    path = tmp_path / "mixed.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(1,)] * 70_000 + [("x",)])
    connection.close()
    with pytest.raises(ValueError, match=r"mixed\.db.*CAST it to one type"):
        count((f"sqlite:///{path}", "SELECT a FROM t"))
    connection = sqlite3.connect(path)
    mixed = count((connection, "SELECT a FROM t"), numbers="nominal")
    connection.close()
    assert mixed.labels == ((1, "x"),)


def test_addresses_that_are_none(tmp_path):
    with pytest.raises(ValueError, match="expected sqlite://"):
        count(("oracle://me:secret@host/db", "SELECT 1"))
    with pytest.raises(ValueError, match=r"shop\.db: expected sqlite://"):
        count(("shop.db", "SELECT * FROM sold"))
    pytest.importorskip("adbc_driver_sqlite", reason="no ADBC driver")
    sqlite_file(tmp_path / "new.db")
    with pytest.raises(ValueError, match="no such table: nowhere"):
        count((f"sqlite:///{tmp_path}/new.db", "SELECT * FROM nowhere"))


def sqlite_file(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a TEXT, b INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [("x", 1), ("y", 2), ("x", 2)])
    connection.close()
    return Counts.of(Table.of({"a": ["x", "y", "x"], "b": [1, 2, 2]}, numbers="nominal"))


def test_a_missing_sqlite_file_is_an_error_and_is_not_created(tmp_path):
    path = tmp_path / "typo.db"
    with pytest.raises(FileNotFoundError, match=r"SQLite file not found: .*typo\.db"):
        count((f"sqlite:///{path}", "SELECT 1 AS a"))
    assert not path.exists()


def test_what_sqlalchemy_connects_to_is_read(tmp_path):
    alchemy = pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed")
    from sqlalchemy.orm import Session

    path = tmp_path / "rows.db"
    wanted, query = sqlite_file(path), "SELECT a, b FROM t"
    address = f"sqlite+pysqlite:///{path}"
    engine = alchemy.create_engine(address)
    with engine.connect() as connection, Session(engine) as session:
        for where in (address, alchemy.make_url(address), engine, connection, session):
            assert count((where, query), numbers="nominal") == wanted
        assert connection.execute(alchemy.text("SELECT count(*) FROM t")).scalar() == 3
    with pytest.raises(ValueError, match=r"rows\.db.*no_such"):
        count((engine, "SELECT * FROM no_such"))
    engine.dispose()
    for where in (f"sqlite+pysqlite:///{path}x", alchemy.create_engine(f"sqlite:///{path}x")):
        with pytest.raises(FileNotFoundError, match=r"rows\.dbx"):
            count((where, query))
    assert not (tmp_path / "rows.dbx").exists()


def test_an_address_nobody_knows_names_sqlalchemy(monkeypatch):
    from tabweave.engines import opening

    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    with pytest.raises(
        ValueError, match=r"mysql://me:\*\*\*@host/db: expected .*install sqlalchemy"
    ):
        count(("mysql://me:secret@host/db", "SELECT 1"))


def duckdb_session():
    """A connection with what no other session sees."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    import pyarrow as pa

    connection = duckdb.connect()
    connection.execute(
        "CREATE TEMP TABLE short AS SELECT * FROM (VALUES ('x', 1), ('y', 2)) t(a, b)"
    )
    connection.register("frame", pa.table({"a": ["x", "y"], "b": [1, 2]}))
    connection.execute("CREATE TABLE kept (a VARCHAR, b INTEGER)")
    connection.execute("BEGIN; INSERT INTO kept VALUES ('x', 1), ('y', 2)")
    return connection


@pytest.mark.parametrize("table", ["short", "frame", "kept"])
@pytest.mark.parametrize("arrow", [True, False])
def test_a_query_on_a_connection_sees_what_its_session_sees(table, arrow, monkeypatch):
    """Temporary tables, registered frames, rows that are not committed yet."""
    from tabweave.engines import duck

    monkeypatch.setattr(duck, "has_arrow", lambda: arrow)
    connection = duckdb_session()
    source = (connection, f"SELECT * FROM {table} -- of this session")
    wanted = Counts.of(Table.of({"a": ["x", "y"], "b": [1, 2]}, numbers="nominal"))
    assert count(source, numbers="nominal") == wanted
    assert UNTIE(n_clusters=2, schema="nominal").fit(source).counts_ == wanted
    assert connection.execute("SELECT count(*) FROM kept").fetchone() == (2,)  # still its own
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    connection.close()


def test_rows_that_are_not_committed_count_on_every_connection(tmp_path, postgres):
    driver = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="no ADBC driver")
    wanted = Counts.of(Table.of({"a": ["x"]}))
    with driver.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE mine AS SELECT 'x'::text AS a")
        assert count((connection, "SELECT * FROM mine")) == wanted
        connection.rollback()
    light = sqlite3.connect(tmp_path / "t.db")
    light.execute("CREATE TABLE t (a TEXT)")
    light.execute("INSERT INTO t VALUES ('x')")
    assert light.in_transaction and count((light, "SELECT * FROM t")) == wanted
    light.rollback()
    light.close()


class TextQuotes:
    """SQLite behind a driver nobody knows, where double quotes stand around text, as in MySQL."""

    def __init__(self, connection):
        self.connection = connection

    def cursor(self):
        cursor = self.connection.cursor()

        class Cursor:
            description = property(lambda self: cursor.description)
            fetchall, fetchmany, close = cursor.fetchall, cursor.fetchmany, cursor.close

            def execute(self, query):
                cursor.execute(query.replace('"', "'"))

        return Cursor()


def test_names_are_not_read_as_text_where_double_quotes_mean_that(tmp_path):
    expected = sqlite_file(tmp_path / "t.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        quoting = TextQuotes(connection)
        assert count((quoting, "SELECT * FROM t"), numbers="nominal") == expected
        part = count((quoting, "SELECT b, a FROM t"), columns=["a"])
        assert part.labels == (("x", "y"),)
        with pytest.raises(ValueError, match="expected a database whose SQL is known"):
            count((quoting, "SELECT * FROM t"), engine="pushdown")


def test_drivers_of_spark_write_names_in_backticks():
    class Connection:
        pass

    for module in ("databricks.sql.client", "pyhive.hive", "google.cloud.bigquery.dbapi"):
        Connection.__module__ = module
        assert opening._selected(Connection(), ["a b", "c"]) == "`a b`, `c`"
    Connection.__module__ = "pymysql.connections"
    assert opening._selected(Connection(), ["a b", "c"]) == "*"
