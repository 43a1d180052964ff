"""Scores that add up, as SQL and ONNX: DuckDB, SQLite, PostgreSQL and onnxruntime give Python's."""

import contextlib
import datetime as dt
import sqlite3

import duckdb
import numpy as np
import pytest
from sklearn.base import BaseEstimator

import tabweave
from tabweave import BoostedWeave, Column, Schema, WeaveClassifier
from tabweave.io.dialects import DIALECTS

pa = pytest.importorskip("pyarrow", reason="typed columns of Python values")
N = 300
KEY = "row number"


def rows_of(n=N, seed=0):
    """Values, numbers, dates and gaps, in columns with names that SQL must quote."""
    rng = np.random.default_rng(seed)
    days = [dt.date(2020, 1, 1) + dt.timedelta(int(d)) for d in rng.integers(0, 900, n)]
    age = [None if rng.random() < 0.1 else round(float(x), 2) for x in rng.normal(40, 10, n)]
    return {
        "it's": rng.choice(["cook", "clerk", 'say "hi"', None], n).tolist(),
        "age": age,
        "tabweave code 0": rng.integers(0, 5, n).tolist(),
        "day": days,
        "flag": (rng.random(n) < 0.3).tolist(),
    }


def target_of(rows, kind):
    job, age = np.array(rows["it's"]) == "cook", np.nan_to_num(np.array(rows["age"], float))
    rooms = np.array(rows["tabweave code 0"])
    score = 2.0 * job * (rooms > 2) + (age > 40) + np.random.default_rng(1).normal(0, 0.3, len(age))
    if kind == "numbers":
        return score
    return np.array(["no", "it's so", "maybe"])[np.digitize(score, [0.5, 1.5][: int(kind) - 1])]


@pytest.fixture(scope="module", params=["2", "3", "numbers"])
def boosted(request):
    """An additive model of two classes, of three, and of numbers; and rows with new values."""
    rows = rows_of()
    model = BoostedWeave(max_cycles=20).fit(rows, target_of(rows, request.param))
    assert any(len(term.axes) > 1 for term in model.terms_)
    new = rows_of(60, seed=2)
    new["it's"][:3], new["age"][:4] = ["new", "clerk ", "Cook"], [1e300, -1e300, None, 0.0]
    new["tabweave code 0"][:3] = [-7, 99, 3]
    new["day"][0] = dt.date(1999, 12, 31)
    return model, new


def expected(model, rows):
    """What the scores of a model say: the prediction, and probabilities, computed here."""
    score = model.additive_score(rows)
    if model.classes_ is None:
        return score[:, 0], np.zeros((len(score), 0))
    full = np.hstack([np.zeros((len(score), 1)), score]) if score.shape[1] == 1 else score
    shares = np.exp(full - full.max(axis=1, keepdims=True))
    return np.array(model.classes_)[full.argmax(axis=1)], shares / shares.sum(axis=1, keepdims=True)


def agrees(result, model, rows):
    """Compare rows of a query, by their keys, with what the model says."""
    assert len(result) == len(rows["age"])
    predictions, shares = expected(model, rows)
    columns = list(zip(*sorted(result), strict=True))
    if model.classes_ is None:
        np.testing.assert_allclose(np.array(columns[1], float), predictions, rtol=1e-9, atol=1e-9)
        return
    assert list(columns[1]) == predictions.tolist()
    np.testing.assert_allclose(np.array(columns[2:], float).T, shares, rtol=1e-9, atol=1e-9)


def as_arrow(rows):
    return pa.table({KEY: range(len(rows["age"])), **rows})


def in_duckdb(script, rows):
    with duckdb.connect() as connection:
        connection.register("arrow", as_arrow(rows))
        connection.execute("CREATE TABLE rows AS SELECT * FROM arrow")
        for statement in script.statements:
            connection.execute(statement)
        return connection.execute(f"SELECT * FROM ({script.select})").fetchall()


def in_sqlite(script, rows):
    cells = [[str(v) if isinstance(v, dt.date) else v for v in column] for column in rows.values()]
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in rows)
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f'CREATE TABLE rows ("{KEY}", {names})')
        marks = ", ".join("?" * (len(rows) + 1))
        numbered = enumerate(zip(*cells, strict=True))
        connection.executemany(f"INSERT INTO rows VALUES ({marks})", [(i, *r) for i, r in numbered])
        connection.executescript(script.tables)
        return connection.execute(f"SELECT * FROM ({script.select})").fetchall()


def test_duckdb(boosted):
    model, rows = boosted
    agrees(in_duckdb(tabweave.export.sql(model, keep=[KEY]), rows), model, rows)


def test_sqlite(boosted):
    model, rows = boosted
    agrees(in_sqlite(tabweave.export.sql(model, "sqlite", keep=[KEY]), rows), model, rows)


@pytest.mark.slow
def test_postgres(boosted, request):
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="reads PostgreSQL")
    server = request.getfixturevalue("postgres")
    model, rows = boosted
    script = tabweave.export.sql(model, "postgres", keep=[KEY], replace=True)
    with dbapi.connect(server) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("rows", as_arrow(rows), mode="replace")
        for statement in script.statements:
            cursor.execute(statement)
        cursor.execute(script.select)
        agrees(cursor.fetchall(), model, rows)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite", "bigquery"])
def test_sqlglot_reads_every_dialect(boosted, dialect):
    sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    script = tabweave.export.sql(boosted[0], dialect, keep=[KEY])
    for statement in (*script.statements, script.select):
        assert sqlglot.parse_one(statement, read=dialect, error_level=sqlglot.ErrorLevel.RAISE)


def test_no_step_joins_more_tables_than_sqlite_takes(boosted):
    model, _ = boosted
    select = tabweave.export.sql(model, "sqlite").select
    steps = select.split("MATERIALIZED (")
    assert max(step.count("LEFT JOIN") for step in steps) < DIALECTS["sqlite"].max_tables


def test_onnx(boosted):
    pytest.importorskip("onnx", reason="the export extra is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="the export extra is not installed")
    model, rows = boosted
    exported = tabweave.export.onnx(model)
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    feeds = {}
    for entry in session.get_inputs():
        cells = rows[entry.name]
        if entry.name == "day":
            cells = [(day - dt.date(1970, 1, 1)).total_seconds() for day in cells]
        if entry.type == "tensor(string)":
            feeds[entry.name] = np.array([v or "" for v in cells], object)
        else:
            kind = bool if entry.type == "tensor(bool)" else float
            feeds[entry.name] = np.array([np.nan if v is None else v for v in cells], kind)
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(names, feeds), strict=True))
    np.testing.assert_allclose(outputs["scores"], model.additive_score(rows), rtol=1e-9, atol=1e-9)
    predictions, shares = expected(model, rows)
    if model.classes_ is None:
        np.testing.assert_allclose(outputs["prediction"], predictions, rtol=1e-9)
    else:
        assert outputs["prediction"].tolist() == predictions.tolist()
        np.testing.assert_allclose(outputs["probabilities"], shares, rtol=1e-9, atol=1e-12)


def test_a_planted_error_is_seen(boosted):
    """Entries that are off by a millionth change what comes out."""
    model, rows = boosted
    script = tabweave.export.sql(model, "sqlite", keep=[KEY])
    first = model.terms_[0].rows[:, :1]
    first += 1e-6
    off = tabweave.export.sql(model, "sqlite", keep=[KEY])
    first -= 1e-6
    with pytest.raises(AssertionError):
        agrees(in_sqlite(off, rows), model, rows)
    agrees(in_sqlite(script, rows), model, rows)


def test_what_is_refused_has_no_score():
    rows = rows_of()
    schema = Schema.of({"flag": "nominal"})
    y = target_of(rows, "2")
    model = BoostedWeave(max_cycles=5, schema=schema, unknown="error").fit(rows, y)
    new = {**rows, "it's": ["new", *rows["it's"][1:]]}
    result = sorted(in_sqlite(tabweave.export.sql(model, "sqlite", keep=[KEY]), new))
    assert result[0][1:] == (None, None, None)
    assert None not in result[1]


def test_sets_are_refused_with_a_remedy():
    rng = np.random.default_rng(0)
    tags = [list(rng.choice(["a", "b", "c"], rng.integers(1, 3))) for _ in range(100)]
    rows = {"tags": tags, "age": rng.normal(size=100).tolist()}
    model = BoostedWeave(max_cycles=5).fit(rows, ["yes" if "a" in t else "no" for t in tags])
    with pytest.raises(ValueError, match=r"column 'tags' holds sets.*declare it 'nominal'"):
        tabweave.export.sql(model)


def test_words_are_refused_with_a_remedy():
    rng = np.random.default_rng(0)
    note = [f"order {i} came {'late' if i % 3 else 'soon'}" for i in range(200)]
    rows = {"note": note, "age": rng.normal(size=200).tolist()}
    y = [i % 3 > 0 for i in range(200)]
    with pytest.raises(ValueError, match=r"column 'note': words of its strings count"):
        tabweave.export.sql(BoostedWeave(max_cycles=5).fit(rows, y))
    whole = BoostedWeave(max_cycles=5, schema={"note": Column("note", spelling=False)})
    assert tabweave.export.sql(whole.fit(rows, y)).select


class Predictor(BaseEstimator):
    """A predictor of which neighbours have this share."""

    classes_ = np.array(["u", "v"])

    def __init__(self, additive, share):
        self.additive_, self.additive_weight_ = additive, 1 - share

    def kneighbors(self):
        raise NotImplementedError

    def fit(self):
        raise NotImplementedError


@pytest.mark.parametrize("write", [tabweave.export.sql, tabweave.export.onnx])
def test_votes_are_refused_with_a_remedy(write):
    rows = {"a": ["x", "y"] * 30, "b": [float(i) for i in range(60)]}
    with pytest.raises(TypeError, match=r"100% of its answers; fit BoostedWeave to these rows"):
        write(WeaveClassifier().fit(rows, ["u", "v"] * 30))
    numbered = BoostedWeave(max_cycles=5).fit(rows, [0, 1] * 30)
    with pytest.raises(TypeError, match=r"25% of its answers; export its additive_"):
        write(Predictor(numbered, 0.25))


def test_a_predictor_without_votes_says_its_classes():
    rows = {"a": ["x", "y"] * 30, "age": [float(i) for i in range(60)]}
    model = BoostedWeave(max_cycles=5).fit(rows, [0, 1] * 30)
    result = in_sqlite(tabweave.export.sql(Predictor(model, 0.0), "sqlite", keep=[KEY]), rows)
    assert [row[1] for row in sorted(result)] == ["u", "v"] * 30
