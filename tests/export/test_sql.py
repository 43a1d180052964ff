"""SQL, run: DuckDB, SQLite and PostgreSQL give the vectors of ``transform``."""

import contextlib
import datetime as dt
import math
import sqlite3
import string

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tabweave
from tabweave import (
    Column,
    CoupledNumeric,
    DistanceHierarchy,
    OneHot,
    Schema,
    ValueMetric,
    Weave,
)
from tabweave.columns.datetime import OWN_CLOCK, sql_seconds
from tabweave.embed.onehot import OneHotAutoencoder
from tabweave.export.sql import (
    is_float,
    kind_of,
    literal,
)
from tabweave.io.dialects import DIALECTS

KEY = "row number"


def sorted_rows(rows):
    """Drop the key from the rows of a result, after sorting by it."""
    out = np.array([row[1:] for row in sorted(rows)], dtype=float)
    assert len(out)
    return out


def in_duckdb(embedder, rows, types=None, **options):
    pyarrow = pytest.importorskip("pyarrow", reason="typed columns of Python values")
    arrow = pyarrow.table({KEY: range(len(next(iter(rows.values())))), **rows})
    with duckdb.connect() as connection:
        connection.register("arrow", arrow)
        casts = [f'CAST("{n}" AS {t}) AS "{n}"' for n, t in (types or {}).items()]
        change = f"REPLACE ({', '.join(casts)})" if casts else ""
        connection.execute(f"CREATE TABLE rows AS SELECT * {change} FROM arrow")
        script = tabweave.export.sql(embedder, "duckdb", keep=[KEY], **options)
        return sorted_rows(connection.execute(script).fetchall())


def in_sqlite(embedder, rows, declared=None, **options):
    names = ", ".join(
        '"' + name.replace('"', '""') + f'" {(declared or {}).get(name, "")}' for name in rows
    )
    cells = zip(*([as_sqlite(v) for v in column] for column in rows.values()), strict=True)
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f'CREATE TABLE rows ("{KEY}", {names})')
        marks = ", ".join("?" * (len(rows) + 1))
        numbered = [(i, *row) for i, row in enumerate(cells)]
        connection.executemany(f"INSERT INTO rows VALUES ({marks})", numbered)
        script = tabweave.export.sql(embedder, "sqlite", keep=[KEY], **options)
        connection.executescript(script.tables)
        return sorted_rows(connection.execute(script.select).fetchall())
    finally:
        connection.close()


def as_text(cells):
    return [None if cell is None else str(cell) for cell in cells]


def as_sqlite(value):
    return value.isoformat() if isinstance(value, dt.date | dt.time) else value


def agrees(found, embedder, rows):
    np.testing.assert_allclose(found, embedder.transform(rows), rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*were not seen in fit")  # which is what is tested
class TestRoundTrip:
    def test_duckdb(self, weave, asked):
        agrees(in_duckdb(weave, asked), weave, asked)

    def test_sqlite(self, weave, asked):
        agrees(in_sqlite(weave, asked), weave, asked)

    @pytest.mark.slow
    def test_postgres(self, weave, asked, request):
        dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="reads PostgreSQL")
        pyarrow = pytest.importorskip("pyarrow", reason="typed columns of Python values")
        server = request.getfixturevalue("postgres")
        script = tabweave.export.sql(weave, "postgres", keep=[KEY], replace=True)
        with dbapi.connect(server) as connection, connection.cursor() as cursor:
            table = pyarrow.table({KEY: range(len(asked["plain"])), **asked})
            cursor.adbc_ingest("rows", table, mode="replace")
            for statement in script.statements:
                cursor.execute(statement)
            cursor.execute(script.select)
            agrees(sorted_rows(cursor.fetchall()), weave, asked)

    def test_statements_are_those_of_the_tables(self, weave):
        script = tabweave.export.sql(weave, replace=True)
        assert "\n".join(script.statements) == script.tables
        starts = ("DROP TABLE ", "CREATE TABLE ", "INSERT INTO ")
        assert all(s.startswith(starts) and s.endswith(";") for s in script.statements)

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:columns 'a' are compared by spelling")
    def test_a_long_export_over_adbc(self, request):
        """One statement at a time; values may hold what ends one."""
        dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="reads PostgreSQL")
        pyarrow = pytest.importorskip("pyarrow", reason="typed columns of Python values")
        server = request.getfixturevalue("postgres")
        rows = {"a": [f"v{i};\n{'é' * 1000}" for i in range(700)] * 2, "b": ["x", "y"] * 700}
        model = Weave().fit(rows)
        script = tabweave.export.sql(model, "postgres", keep=[KEY], replace=True)
        with dbapi.connect(server) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("rows", pyarrow.table({KEY: range(1400), **rows}), mode="replace")
            for statement in script.statements:
                cursor.execute(statement)
            cursor.execute(script.select)
            agrees(sorted_rows(cursor.fetchall()), model, rows)

    def test_every_embedder(self, fitted):
        embedder, rows = fitted
        for found in (in_duckdb(embedder, rows), in_sqlite(embedder, rows)):
            np.testing.assert_allclose(found, embedder.transform(rows), rtol=1e-6, atol=1e-6)

    def test_hierarchies(self, hierarchy):
        model, rows = hierarchy
        for found in (in_duckdb(model, rows), in_sqlite(model, rows)):
            agrees(found, model, rows)

    def test_tables_and_curves(self, woven):
        model, rows = woven
        for found in (in_duckdb(model, rows), in_sqlite(model, rows)):
            np.testing.assert_allclose(found, model.transform(rows), rtol=1e-9, atol=1e-9)

    def test_every_kind(self, kinds):
        model, rows = kinds
        texts = {name: cells if name != "when" else as_text(cells) for name, cells in rows.items()}
        for found in (in_duckdb(model, rows), in_duckdb(model, texts), in_sqlite(model, rows)):
            np.testing.assert_allclose(found, model.transform(rows), rtol=1e-9, atol=1e-9)

    @pytest.mark.slow
    def test_every_kind_in_postgres(self, kinds, request):
        dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="reads PostgreSQL")
        pyarrow = pytest.importorskip("pyarrow", reason="typed columns of Python values")
        model, rows = kinds
        server = request.getfixturevalue("postgres")
        script = tabweave.export.sql(model, "postgres", keep=[KEY], replace=True)
        with dbapi.connect(server) as connection, connection.cursor() as cursor:
            table = pyarrow.table({KEY: range(len(rows["row"])), **rows})
            cursor.adbc_ingest("rows", table, mode="replace")
            for statement in script.statements:
                cursor.execute(statement)
            cursor.execute(script.select)
            found = sorted_rows(cursor.fetchall())
        np.testing.assert_allclose(found, model.transform(rows), rtol=1e-9, atol=1e-9)

    def test_time_zones(self):
        pandas = pytest.importorskip("pandas", reason="columns with a time zone")
        times = pandas.date_range("2024-03-20", periods=90, freq="5h", tz="Europe/Berlin")
        rows = {"t": pandas.Series(times)}
        model = Weave().fit(rows)
        found = in_duckdb(model, rows)
        np.testing.assert_allclose(found, model.transform(rows), rtol=1e-9, atol=1e-9)
        with pytest.raises(ValueError, match="'Europe/Berlin', but SQLite does not know time"):
            tabweave.export.sql(model, "sqlite")
        utc = Weave().fit({"t": rows["t"].dt.tz_convert("UTC")})
        written = {"t": [str(time) for time in times]}  # with an offset
        np.testing.assert_allclose(in_sqlite(utc, written), utc.transform(rows), atol=1e-9)
        assert "AT TIME ZONE 'Europe/Berlin'" in tabweave.export.sql(model, "postgres")
        assert "DATETIME(CAST(" in tabweave.export.sql(model, "bigquery")

    def test_mixed_tables(self, mixed):
        model, new = mixed("float64")
        for found in (in_duckdb(model, new), in_sqlite(model, new)):
            agrees(found, model, new)

    def test_tables_of_numbers(self):
        rng = np.random.default_rng(0)
        rows = {"age": [*rng.normal(40, 10, 49), None], "pay": rng.exponential(size=50).tolist()}
        model = Weave().fit(rows)
        asked = {**rows, "age": [-1e6, 1e6, 40.0, *rows["age"][3:]]}
        for found in (in_duckdb(model, asked), in_sqlite(model, asked)):
            np.testing.assert_allclose(found, model.transform(asked), rtol=1e-6, atol=1e-6)
        strict = Weave(schema=Schema({}, missing="error")).fit({"pay": rows["pay"]})
        found = in_duckdb(strict, {"pay": [1.0, None]})
        np.testing.assert_array_equal(np.isnan(found), [[False] * 4, [True] * 4])

    def test_whole_tables(self, whole_tables):
        for X in whole_tables:
            half = {c: cells[::2] for c, cells in X.items()}
            model = Weave().fit(half)
            rest = {c: cells[:300] for c, cells in X.items()}
            for found in (in_duckdb(model, rest), in_sqlite(model, rest)):
                agrees(found, model, rest)


# -- any name, any value ------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
COLUMNS = st.one_of(
    st.lists(TEXT | st.none(), min_size=1, max_size=6),
    st.lists(st.integers(-(2**63) + 1, 2**63 - 1) | st.none(), min_size=1, max_size=6),
    st.lists(st.floats(allow_nan=False) | st.none(), min_size=1, max_size=6),
    st.lists(st.booleans() | st.none(), min_size=1, max_size=4),
    st.lists(st.binary(max_size=4) | st.none(), min_size=1, max_size=6),
    st.lists(st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)), min_size=1, max_size=4),
    st.lists(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)), min_size=1),
)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@st.composite
def tables(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique_by=str.lower))
    assume(KEY not in {name.lower() for name in names})
    pools = {name: draw(COLUMNS) for name in names}
    n = draw(st.integers(2, 8))
    rows = [{k: draw(st.sampled_from(pool)) for k, pool in pools.items()} for _ in range(2 * n)]
    return [{name: [row[name] for row in part] for name in names} for part in (rows[:n], rows[n:])]


@settings(max_examples=25)
@given(parts=tables(), n_clusters=st.sampled_from([None, 2]))
def test_any_table(parts, n_clusters):
    seen, asked = parts
    embedder = Weave(n_clusters, schema=dict.fromkeys(seen, "nominal"))
    try:
        embedder.fit(seen)
        width = len(embedder.get_feature_names_out())
    except ValueError:  # fewer distinct rows than clusters
        assume(False)
    assume(width)
    for run in (in_duckdb, in_sqlite):
        np.testing.assert_allclose(run(embedder, asked), embedder.transform(asked), atol=1e-9)


# -- types --------------------------------------------------------------------------------------


def test_many_values_and_strings_that_fit_has_not_seen():
    names = [f"name {i}" for i in range(200)]
    rows = {"name": names * 2, "x": list("abcd") * 100}
    model = Weave(schema={"name": "nominal"}).fit(rows)
    asked = {"name": [*names[::20], None], "x": ["a"] * 11}
    for run in (in_duckdb, in_sqlite):
        with pytest.warns(UserWarning, match=r"'name' are compared by spelling.*spelling=False"):
            agrees(run(model, asked), model, asked)
            new = run(model, {"name": ["Name 7", "name 7"], "x": ["a", "a"]})
        assert np.isnan(new[0, :128]).all() and not np.isnan(new[0, 128:]).any()
        assert not np.isnan(new[1]).any()


@pytest.mark.parametrize("run", [in_duckdb, in_sqlite])
def test_numbers_of_any_size_keep_their_digits(run):
    rows = {"x": (2.0 ** np.random.default_rng(0).uniform(-40, 40, 500)).tolist()}
    rows["x"][7] = None
    model = Weave().fit(rows)
    agrees(run(model, rows), model, rows)


def test_enums_and_identifiers_are_text():
    rows = {"mood": ["ok", "bad", "ok", None]}
    model = Weave().fit(rows)
    agrees(in_duckdb(model, rows, {"mood": "ENUM('bad', 'ok')"}), model, rows)
    names = ["0000007b-0000-0000-0000-000000000001", "0000007b-0000-0000-0000-000000000002"]
    model = Weave().fit({"id": names})
    agrees(in_duckdb(model, {"id": names[::-1]}, {"id": "UUID"}), model, {"id": names[::-1]})


def test_moments_as_text_or_timestamp():
    rows = {"at": ["2024-01-01T10:00:00", "2024-01-01T10:00:00.500000", None]}
    model = OneHot(schema={"at": "nominal"}).fit(rows)
    agrees(in_duckdb(model, rows), model, rows)
    agrees(in_duckdb(model, rows, {"at": "TIMESTAMP"}), model, rows)
    agrees(in_duckdb(model, rows, types={"at": "VARCHAR"}), model, rows)
    zoned = {"at": ["2024-01-01T10:00:00+00:00", "2024-01-01T11:30:00+01:00"]}
    model = OneHot(schema={"at": "nominal"}).fit(zoned)
    agrees(in_duckdb(model, zoned, {"at": "TIMESTAMPTZ"}), model, zoned)


@pytest.mark.parametrize("run", [in_duckdb, in_sqlite])
def test_units_and_times_of_day_as_people_write_them(run):
    rng = np.random.default_rng(0)
    hours = range(60)
    rows = {
        "far": [f"{x:,.1f} {'km' if x > 900 else 'KM'}" for x in rng.normal(1000, 300, 60)],
        "term": [f"{k} month{'s' if k > 1 else ''}" for k in rng.integers(1, 9, 60)],
        "warm": [f"{x:.1f}°C" for x in rng.normal(3, 9, 60)],
        "at": [f"{h * 7 % 24}:{h:02}{':30' if h % 3 else ''}" for h in hours],
        "met": [f"{1 + h % 12}:{h:02}{':05' if h % 5 else ''} {'aApP'[h % 4]}m" for h in hours],
    }
    for column in rows.values():
        column[3], column[4] = None, "n/a"
    model = Weave().fit(rows)
    np.testing.assert_allclose(run(model, rows), model.transform(rows), atol=1e-9)
    took = {"took": [f"{h}h {h}m" for h in hours], "x": rng.normal(size=60)}
    with pytest.raises(ValueError, match="column 'took' holds durations as text"):
        tabweave.export.sql(Weave().fit(took))


def test_types_say_what_the_values_do_not():
    model = OneHot(schema={"day": "nominal"}).fit({"day": ["2024-01-01", "2024-01-02"]})
    script = tabweave.export.sql(model, types={"day": "date"})
    assert '"value" DATE PRIMARY KEY' in script and "DATE '2024-01-02'" in script
    with pytest.raises(ValueError, match=r"column 'day': expected a number, got '2024-01-01'"):
        tabweave.export.sql(model, types={"day": "number"})
    with pytest.raises(ValueError, match="expected one of text"):
        tabweave.export.sql(model, types={"day": "varchar"})
    with pytest.raises(ValueError, match=r"types: expected a column of \['day'\], got 'days'"):
        tabweave.export.sql(model, types={"days": "date"})


def test_numbers_that_are_not_a_number_are_missing():
    rows = {"x": [0.5, 1.5, float("nan"), 2.0, None]}
    model = Weave(schema={"x": "nominal"}).fit(rows)
    agrees(in_duckdb(model, rows, {"x": "DOUBLE"}), model, rows)


def test_whole_numbers_of_any_size():
    for pool in ([2**62, 2**62 + 1, 5], [2**53, 1], [1e300, 0.5]):
        model = OneHot(schema={"n": "nominal"}).fit({"n": pool})
        agrees(in_sqlite(model, {"n": pool}), model, {"n": pool})
        agrees(in_duckdb(model, {"n": pool}), model, {"n": pool})
    model = OneHot(schema={"n": "nominal"}).fit({"n": [2**70 + 1, 3]})
    with pytest.raises(ValueError, match=r"column 'n': \d+ is neither a 64-bit integer nor"):
        tabweave.export.sql(model)


def test_sqlite_tells_text_from_numbers():
    rows = {"v": ["1", 1, 2.5, "2.5", b"1", None]}
    model = OneHot(schema={"v": "nominal"}).fit(rows)
    agrees(in_sqlite(model, rows), model, rows)
    for dialect in ("duckdb", "postgres", "bigquery"):
        with pytest.raises(ValueError, match=r"column 'v' has values of several types \(bytes, "):
            tabweave.export.sql(model, dialect)
    text = OneHot().fit({"v": ["1", "2"]})
    asked = {"v": [1, 2]}  # whole numbers are not the text they were fitted with
    with pytest.raises(ValueError, match="expected text as in fit"):
        text.transform(asked)
    unknown = np.tile(text.tables_.tables[0][-1], (2, 1))
    np.testing.assert_allclose(in_sqlite(text, asked, {"v": "INTEGER"}), unknown)


def test_empty_text_may_be_missing():
    schema = Schema({"a": "nominal"}, empty_is_missing=True)
    rows = {"a": ["x", "", "y", None, "z"]}
    model = Weave(schema=schema).fit({"a": ["x", "y", "y", ""]})
    agrees(in_duckdb(model, rows), model, rows)
    agrees(in_sqlite(model, rows), model, rows)


def test_words_may_be_missing():
    schema = Schema({"a": "nominal"}, missing="value", missing_words=("NA", "it's"))
    rows = {"a": ["x", "NA", "y", None, "it's", "new", ""]}
    model = OneHot(schema=schema).fit({"a": ["x", "y", "y", "NA"]})
    agrees(in_duckdb(model, rows), model, rows)
    agrees(in_sqlite(model, rows), model, rows)


# -- what has no vector -------------------------------------------------------------------------


@pytest.mark.parametrize("run", [in_duckdb, in_sqlite])
def test_values_that_are_refused_are_null(run):
    schema = Schema({"a": "nominal"}, missing="error")
    rows = {"a": ["x", "new", None]}
    found = run(OneHot(schema=schema, unknown="error").fit({"a": ["x", "y"]}), rows)
    np.testing.assert_array_equal(np.isnan(found), [[False] * 2, [True] * 2, [True] * 2])
    found = run(OneHot(unknown="error").fit({"a": ["x", "y", None]}), rows)
    np.testing.assert_array_equal(found, [[1, 0], [np.nan] * 2, [0.5, 0.5]])
    found = run(OneHot(schema=schema).fit({"a": ["x", "y"]}), rows)
    np.testing.assert_array_equal(found, [[1, 0], [0.5, 0.5], [np.nan, np.nan]])


def refused(name):
    if name == "sets":
        return OneHot(schema={"t": "set"}).fit({"t": [["a"], ["b"]]}), ValueError, "holds sets"
    if name == "jia":
        rows = {"a": list("xyx"), "b": list("uvv")}
        return ValueMetric("jia").fit(rows), ValueError, "expected a measure with a value table"
    if name == "paths":
        model = DistanceHierarchy({"a": ["x/y", "x/z"]}).fit({"a": ["x/y"]})
        return (
            model,
            ValueError,
            "accepts any path below its nodes, which a lookup table cannot list",
        )
    if name == "numeric":
        return (
            CoupledNumeric().fit([[1.0, 2], [2, 1], [5, 2]]),
            TypeError,
            r"tabweave\.export\.save",
        )
    if name == "network":
        model = OneHotAutoencoder(2, max_iter=2, random_state=0).fit([["a"], ["b"]])
        return model, TypeError, "OneHotAutoencoder does more"
    if name == "constant":
        return Weave().fit({"a": ["x", "x"]}), ValueError, "no dimension"
    return OneHot().fit({"a": ["\ud800", "x"]}), ValueError, "expected valid Unicode"


@pytest.mark.parametrize(
    "name", ["sets", "jia", "coupled", "paths", "numeric", "network", "constant", "surrogates"]
)
def test_what_is_no_lookup_is_refused(name):
    model, kind, message = refused(name)
    with pytest.raises(kind, match=message):
        tabweave.export.sql(model)


def test_unfitted_and_odd_arguments():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        tabweave.export.sql(Weave())
    with pytest.raises(ValueError, match=r"expected dialect to be one of duckdb.*, got 'mysql'"):
        tabweave.export.sql(OneHot().fit({"a": ["x"]}), "mysql")
    with pytest.raises(ValueError, match="cannot hold NUL characters"):
        tabweave.export.sql(OneHot().fit({"a": ["x\0", "y"]}), "postgres")
    with pytest.raises(ValueError, match="no way to write the name"):
        tabweave.export.sql(OneHot().fit({"a`b": ["x", "y"]}), "bigquery")


def test_limits_of_the_systems():
    wide = OneHot().fit([[f"v{i}{j}" for i in range(70)] for j in range(2)])
    with pytest.raises(ValueError, match=r"the query has 71 tables, sqlite takes 64"):
        tabweave.export.sql(wide, "sqlite")
    deep = OneHot(schema={"a": "nominal"}).fit({"a": [str(i) for i in range(1700)]})
    with pytest.raises(ValueError, match=r"has 1700 columns, postgres takes 1600"):
        tabweave.export.sql(deep, "postgres")


# -- text ---------------------------------------------------------------------------------------


def test_parts_names_and_replacing():
    model = OneHot().fit({"a b": ["x", "y"], "A_B": ["u", "v"], "A-B": ["u", "v"]})
    script = tabweave.export.sql(
        model, table=("main", "my rows"), prefix=("main", "m"), keep="id", replace=True
    )
    assert str(script) == f"{script.tables}\n{script.select};\n"
    assert 'FROM "main"."my rows" AS t' in script.select
    for name in ("m_a_b", "m_a_b_2", "m_a_b_3"):
        assert f'"main"."{name}"' in script
    with duckdb.connect() as connection:
        columns = """1 AS id, 'x' AS "a b", 'u' AS "A_B", 'v' AS "A-B" """
        connection.execute(f'CREATE TABLE "my rows" AS SELECT {columns}')
        for _ in range(2):  # tables of a first run are replaced
            found = connection.execute(script).fetchall()
        assert found == [(1, 1, 0, 1, 0, 0, 1)]
        connection.execute(f"CREATE VIEW vectors AS {script.select}")
        with pytest.raises(duckdb.CatalogException):
            connection.execute(tabweave.export.sql(model, prefix=("main", "m")))


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "bigquery"])
def test_columns_equal_but_for_case_are_refused_where_case_is_ignored(dialect):
    model = OneHot().fit({"Size": ["a", "b"], "size": ["c", "d"], "other": ["e", "f"]})
    with pytest.raises(ValueError, match=f"'Size' and 'size' are one name to {dialect}"):
        tabweave.export.sql(model, dialect)
    assert tabweave.export.sql(model, "postgres")
    tabweave.export.sql(
        OneHot().fit({"Ä": ["a", "b"], "ä": ["c", "d"]}), "sqlite"
    )  # ASCII is ignored only


def test_output_names_do_not_meet():
    model = OneHot().fit({"a": ["X", "x"], "A": ["x", "X"]})
    script = tabweave.export.sql(model, "postgres", keep=["a_x"])
    names = [line.rpartition(" AS ")[2].strip(',"') for line in script.select.splitlines()[2:6]]
    assert len({name.lower() for name in [*names, "a_x"]}) == 5


def test_bigquery_text():
    rows = {"Größe": ["it's", "a\\b\n", None], "n": [1, 2, 3], "b": [True, False, True]}
    rows |= {"at": ["2024-01-01T10:00:00", "2024-01-02T10:00:00", None], "raw": [b"a", b"b", b"c"]}
    kinds = dict.fromkeys(rows, "nominal")
    script = tabweave.export.sql(
        OneHot(schema=kinds).fit(rows), "bigquery", table="p.d.rows", prefix="d.tabweave"
    )
    assert "CREATE TABLE `d.tabweave_gr_e` (`value` STRING, `v0` FLOAT64, `v1` FLOAT64" in script
    assert "('it\\'s', 0.0, 1.0)" in script and "('a\\\\b\\x0a', 1.0" in script
    assert "FROM `p.d.rows` AS t" in script
    assert "ON w0.`value` = CAST(t.`Größe` AS STRING)" in script
    assert "IF(IS_NAN(CAST(t.`n` AS FLOAT64)), NULL, CAST(t.`n` AS FLOAT64))" in script
    assert "(TRUE, 0.0, 1.0)" in script and "FROM_HEX('61')" in script
    assert "DATETIME '2024-01-01 10:00:00'" in script
    plain = set(string.ascii_letters + string.digits + "_")
    lines = [line for line in script.select.splitlines() if " AS `" in line]
    outputs = [line.rpartition(" AS `")[2].rstrip(",").rstrip("`") for line in lines]
    assert len(outputs) == 12
    assert all(set(name) <= plain | set("öß") for name in outputs)


def test_infinite_values():
    rows = {"x": [float("inf"), float("-inf"), 0.5]}
    model = OneHot(schema={"x": "nominal"}).fit(rows)
    agrees(in_duckdb(model, rows), model, rows)
    agrees(in_sqlite(model, rows), model, rows)
    assert "CAST('-inf' AS FLOAT64)" in tabweave.export.sql(model, "bigquery")
    assert "CAST('-infinity' AS DOUBLE PRECISION)" in tabweave.export.sql(model, "postgres")


@pytest.mark.parametrize("run", [in_duckdb, in_sqlite])
def test_values_in_a_bucket_are_where_transform_puts_them(run):
    rows = {"a": [f"v{min(i % 11, 8)}" for i in range(60)], "b": ["x", "y"] * 30}
    model = Weave().fit_counts(tabweave.count(rows, max_values={"a": 4}))
    asked = {"a": ["v8", "v2", "never", None], "b": ["x", "y", "x", "y"]}
    assert not np.allclose(model.transform(asked)[2], model.transform(asked)[3])
    agrees(run(model, asked), model, asked)
    hashed = Weave().fit_counts(tabweave.count(rows, max_values={"a": 4}, other="hash"))
    with pytest.raises(ValueError, match="hashed buckets"):
        tabweave.export.sql(hashed)


# -- literals, by the systems themselves ---------------------------------------------------------


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("a\0b", "text"),
        ("\0", "text"),
        ("it's", "text"),
        (2**62 + 1, "integer"),
        (-3, "integer"),
        (0.1, "number"),
        (-1e-300, "number"),
        (math.inf, "number"),
        (True, "boolean"),
        (False, "boolean"),
        (b"\x00'", "bytes"),
    ],
)
def test_a_literal_is_read_back_as_the_label(dialect, label, kind):
    text = literal(label, kind, DIALECTS[dialect], "a")
    connect = sqlite3.connect if dialect == "sqlite" else duckdb.connect
    with contextlib.closing(connect(":memory:")) as connection:
        (found,) = connection.execute(f"SELECT {text}").fetchone()
    assert found == label


@pytest.mark.parametrize(
    ("label", "kind", "why"),
    [
        (5, "text", "give types={column: ...} as the values are"),
        ("5", "number", "the model was fitted on other values"),
        (True, "number", "the model was fitted on other values"),
        (1, "boolean", "the model was fitted on other values"),
        (2**63, "integer", "expected an integer of at most 64 bits"),
        (1.0, "integer", "expected an integer of at most 64 bits"),
        ("x", "date", "Invalid isoformat"),
        (5, "bytes", "has no attribute 'hex'"),
    ],
)
def test_labels_of_another_kind_are_named(label, kind, why):
    with pytest.raises(ValueError, match=f"column 'a': expected a {kind}, got") as error:
        literal(label, kind, DIALECTS["duckdb"], "a")
    assert why in str(error.value)


def test_no_postgres_text_holds_a_zero_character():
    with pytest.raises(ValueError, match="text in postgres cannot hold NUL characters"):
        literal("a\0", "text", DIALECTS["postgres"], "a")


def test_what_kind_of_column_holds_labels():
    assert kind_of([], "a", "duckdb") == "text"
    assert kind_of([1, 2.5], "a", "duckdb") == "number"
    assert kind_of([1, 2**60], "a", "duckdb") == "integer"
    assert kind_of(["2020-01-01T00:00:00"], "a", "duckdb") == "timestamp"
    assert kind_of(["2020-01-01T00:00:00Z"], "a", "duckdb") == "timestamptz"
    both = ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00"]
    assert kind_of(both, "a", "duckdb") == "text"
    assert kind_of(["2020-01-01T00:00:00Z", "2020-01-01T00:00:00+00:00"], "a", "duckdb") == "text"
    assert kind_of(["2020-01-01T00:00:00"], "a", "sqlite") == "text"
    assert kind_of(["a", 1], "a", "sqlite") == "any"
    with pytest.raises(ValueError, match=r"several types \(int, str\), and a column of duckdb has"):
        kind_of(["a", 1], "a", "duckdb")


def test_whole_numbers_that_float_holds():
    assert is_float(2**80) and is_float(-3)
    assert not is_float(2**53 + 1) and not is_float(10**400)


OFFSETS = ["2024-01-01T10:00:00+02:00", "2024-01-01T11:30:00-05:00", "2024-06-01T23:30:00Z"] * 9
CLOCKS = [text[:19] for text in OFFSETS]


def test_an_instant_is_refused_where_fit_saw_offsets_or_no_zone():
    mixed, naive = Weave().fit({"at": OFFSETS}), Weave().fit({"at": CLOCKS})
    for types in (None, {"at": "TIMESTAMP"}):
        agrees(in_duckdb(mixed, {"at": CLOCKS}, types), mixed, {"at": OFFSETS})
    agrees(in_duckdb(mixed, {"at": OFFSETS}), mixed, {"at": OFFSETS})
    for model, said in [(mixed, "offsets of their own"), (naive, "fitted without a time zone")]:
        with pytest.raises(duckdb.Error, match=f"column at: .*{said}"):
            in_duckdb(model, {"at": OFFSETS}, {"at": "TIMESTAMPTZ"})
    with pytest.raises(duckdb.Error, match="fitted without a time zone"):
        in_duckdb(naive, {"at": OFFSETS})
    with pytest.raises(sqlite3.Error, match="JSON"):
        in_sqlite(naive, {"at": OFFSETS})


@pytest.mark.slow
def test_postgres_refuses_an_instant_where_fit_saw_offsets(request):
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="reads PostgreSQL")
    mixed, naive = Weave().fit({"at": OFFSETS}), Weave().fit({"at": CLOCKS})
    server = request.getfixturevalue("postgres")
    for model, cells, said in [
        (mixed, "at", None),
        (mixed, "CAST(at AS TIMESTAMPTZ) AS at", "offsets of their own"),
        (naive, "CAST(at AS TIMESTAMPTZ) AS at", "fitted without a time zone"),
    ]:
        script = tabweave.export.sql(model, "postgres", table="times")
        with dbapi.connect(server) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("written", pa.table({"at": OFFSETS}), mode="replace")
            cursor.execute(f"CREATE TABLE times AS SELECT {cells} FROM written")
            refused = pytest.raises(dbapi.Error, match=said) if said else contextlib.nullcontext()
            with refused:
                cursor.execute(script.select)
                found = np.array(sorted(cursor.fetchall()), dtype=float)
    expected = sorted(map(tuple, mixed.transform({"at": OFFSETS})))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_times_without_an_offset_are_by_the_clock_of_fit_in_any_session():
    pandas = pytest.importorskip("pandas", reason="columns with a time zone")
    model = Weave().fit({"at": pandas.to_datetime(OFFSETS, utc=True).tz_convert("Asia/Tokyo")})
    agrees(in_duckdb(model, {"at": CLOCKS}, {"at": "TIMESTAMP"}), model, {"at": CLOCKS})
    agrees(in_duckdb(model, {"at": OFFSETS}), model, {"at": OFFSETS})


def test_two_labels_that_a_kind_makes_one_are_refused():
    rows = {"a": ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00+00:00"]}
    model = OneHot(schema={"a": "nominal"}).fit(rows)
    with pytest.raises(ValueError, match="column 'a': as timestamptz two of its values are equal"):
        tabweave.export.sql(model, dialect="duckdb", types={"a": "timestamptz"})


@pytest.mark.parametrize(
    ("dialect", "zone", "part"),
    [
        ("postgres", None, 'CAST("t" AS TIMESTAMP)'),
        ("postgres", "UTC", "AT TIME ZONE 'UTC'"),
        ("postgres", OWN_CLOCK, "from '"),
        ("bigquery", None, "CAST(`t` AS DATETIME)"),
        ("bigquery", "UTC", "DATETIME(CAST(`t` AS TIMESTAMP), 'UTC')"),
        ("bigquery", OWN_CLOCK, "REGEXP_EXTRACT(CAST(`t` AS STRING), r'"),
    ],
)
def test_datetimes_are_seconds_in_every_dialect(dialect, zone, part):
    column = Column("t", "datetime", format=zone)
    assert column.zone == zone
    text = sql_seconds(DIALECTS[dialect].identifier("t"), column, DIALECTS[dialect])
    assert part in text and "([T" not in text


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["2024Q1", "2024Q2", "2023Q4"], "months, quarters or weeks such as 2024-03"),
        (["21.07.2016", "22.07.2016", "1.08.2016"], "dates such as 21.07.2016, which"),
        (["7/21/2016", "7/22/2016", "8/1/2016"], "dates such as 7/21/2016, which"),
    ],
)
def test_written_dates_are_named_as_they_are_written(texts, said):
    model = Weave().fit({"when": texts * 20, "x": ["a", "b"] * 30})
    with pytest.raises(ValueError, match=f"column 'when' was fitted on {said}"):
        tabweave.export.sql(model, "duckdb")


@pytest.mark.parametrize(
    "texts",
    [
        ["1 727,92", "-12,50", "1 234 567,00", "3\u202f000,25"],
        ["1'727.92", "12.50", "-3’400.00", "7"],
        ["1,727.92-", "12.50", "0.40-", "7"],
        ["R$ 1.234,56", "-R$ 80,00", "R$ 7,00", "R$ 3.000,10"],
        ["₹12,34,567.50", "₹80", "₹1,23,456", "#DIV/0!"],
    ],
)
def test_numbers_as_countries_write_them(texts):
    rows = {"x": texts * 10, "a": ["u", "v"] * 20}
    model = Weave().fit(rows)
    assert model.schema_["x"].kind == "numeric"
    np.testing.assert_allclose(in_duckdb(model, rows), model.transform(rows), atol=1e-9)
    np.testing.assert_allclose(in_sqlite(model, rows), model.transform(rows), atol=1e-9)


def test_iso_text_that_names_utc():
    rows = {"t": [f"2024-03-{i % 28 + 1:02} {i % 24:02}:11:12 UTC" for i in range(60)]}
    rows["a"] = ["u", "v", "w"] * 20
    model = Weave().fit(rows)
    assert model.schema_["t"].kind == "datetime"
    np.testing.assert_allclose(in_duckdb(model, rows), model.transform(rows), atol=1e-9)
    np.testing.assert_allclose(in_sqlite(model, rows), model.transform(rows), atol=1e-9)


def test_what_postgres_cannot_hold_is_refused():
    long = tabweave.OneHot().fit({"a": ["x" * 3000, "y"], "b": ["p", "q"]})
    with pytest.raises(ValueError, match="column 'a': expected values of up to 2,704 bytes"):
        tabweave.export.sql(long, "postgres")
    assert tabweave.export.sql(long, "duckdb")
    signs = tabweave.OneHot().fit({"a": ["x" * 2000, "é" * 1400], "b": ["p", "q"]})
    with pytest.raises(ValueError, match=r"'éééé.*'\.\.\. of 2,800"):  # in bytes the longest
        tabweave.export.sql(signs, "postgres")
    rows = {"a": [f"v{i}" for i in range(1100)]}
    wide = OneHot(schema={"a": "nominal"}).fit(rows)
    with pytest.raises(ValueError, match="column 'a': expected at most 1,000 dimensions"):
        tabweave.export.sql(wide, "postgres")


def test_a_column_may_be_named_as_a_computed_one_would_be():
    rng = np.random.default_rng(0)
    times = [f"{i % 24}:{i % 60:02}" for i in range(40)]
    rows = {"Tabweave Number 0": rng.choice(list("abc"), 40).tolist(), "t": times}
    model = Weave().fit(rows)
    script = tabweave.export.sql(model, dialect="duckdb", table="rows", keep="id")
    with duckdb.connect() as connection:
        connection.register("rows", pa.table(rows | {"id": range(40)}))
        connection.execute(script.tables)
        found = connection.execute(script.select).df().sort_values("id").to_numpy()
    np.testing.assert_allclose(found[:, 1:], model.transform(rows), atol=1e-12)


@pytest.mark.parametrize("model", [Weave(), Weave(n_components=3)])
def test_vectors_come_as_one_array(model):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 200)
    rows = {
        "color": np.array(list("abc"))[(group + rng.integers(0, 2, 200)) % 3].tolist(),
        "size": [None if i % 9 == 0 else "xyz"[g] for i, g in enumerate(group)],
        "price": [None if i % 7 == 0 else float(g) + i / 200 for i, g in enumerate(group)],
    }
    model.fit(rows)
    asked = {**rows, "color": ["unseen", *rows["color"][1:]]}
    arrow = pytest.importorskip("pyarrow").table({KEY: range(200), **asked})
    with duckdb.connect() as connection:
        connection.register("rows", arrow)
        script = tabweave.export.sql(model, "duckdb", keep=[KEY], vector="v")
        for statement in script.statements:
            connection.execute(statement)
        found = sorted(connection.execute(script.select).fetchall())
    wanted = model.transform(asked)
    np.testing.assert_allclose([vector for _, vector in found], wanted, atol=1e-12)


def test_a_system_without_arrays_says_so():
    model = OneHot().fit({"color": ["red", "blue"]})
    with pytest.raises(ValueError, match="sqlite has no arrays; leave vector out"):
        tabweave.export.sql(model, "sqlite", vector="v")
