"""Parquet: the tables hold every value's row, and joining them by hand gives the vectors."""

import json

import duckdb
import numpy as np
import pytest

import tabweave
from tabweave import (
    UNTIE,
    OneHot,
    Schema,
    SupervisedWeave,
    ValueMetric,
    Weave,
)
from tabweave.export.parquet import _about
from tabweave.export.plan import plan_of
from tabweave.space.space import Sum


def read(path):
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT * FROM '{path}'").fetchall()
        names = [column[0] for column in connection.description]
        (about,) = connection.execute(
            f"SELECT decode(value) FROM parquet_kv_metadata('{path}') "
            "WHERE decode(key) = 'tabweave'"
        ).fetchone()
    return rows, names, json.loads(about)


def by_hand(path, columns):
    """Embed rows with nothing but the file, as a user in another language would."""
    rows, _, about = read(path)
    tables = {}
    for column, kind, type_, value, *vector in rows:
        tables.setdefault(column, {})[kind, type_, value] = np.array(vector, dtype=float)
    parts = []
    for name, table in tables.items():
        vectors = []
        for cell in columns[name]:
            shown = cell.hex() if isinstance(cell, bytes) else str(cell)
            found = table.get(("value", type(cell).__name__, shown))
            if cell is None:
                found = table.get(("missing", None, None))
            vectors.append(table["unknown", None, None] if found is None else found)
        parts.append(np.array(vectors))
    if about["combine"] == "sum":
        return np.sum(parts, axis=0)
    return np.hstack([part[:, ~np.isnan(part).all(axis=0)] for part in parts])


@pytest.mark.parametrize("n_clusters", [None, 2], ids=["concat", "sum"])
def test_joins_give_the_vectors(tmp_path, n_clusters):
    rows = {
        "it's": ["a", "b", "ü'\n", None, "a", "b"],
        "n": [1, 2, 2, 3, 1, None],
        "f": [0.1, 1 / 3, 0.1, 0.1, 1e300, None],
        "mixed": ["1", 1, True, b"\x00", None, 2.5],
        "constant": ["x"] * 6,
    }
    model = Weave(n_clusters, schema=dict.fromkeys(rows, "nominal")).fit(rows)
    tabweave.export.parquet(model, tmp_path / "t.parquet")
    asked = {name: [*cells[:4], "never", None] for name, cells in rows.items()}
    np.testing.assert_array_equal(by_hand(tmp_path / "t.parquet", asked), model.transform(asked))


def test_columns_types_and_names(tmp_path):
    path = tmp_path / "it's.parquet"
    model = OneHot(schema={"a": "nominal"}).fit({"a": ["x", 2, None]})
    tabweave.export.parquet(model, path)
    rows, names, about = read(str(path).replace("'", "''"))
    assert names == ["column", "kind", "type", "value", "v0", "v1"]
    assert [row[:4] for row in rows] == [
        ("a", "value", "int", "2"),
        ("a", "value", "str", "x"),
        ("a", "missing", None, None),
        ("a", "unknown", None, None),
    ]
    assert about == {"combine": "concat", "names": ["a_2", "a_x"], "numbers": []}


def curves_by_hand(about, name, cells):
    """Return the dimensions of a column of numbers, as the file describes them."""
    x = np.array(cells, dtype=float)
    knots, curves = np.array(about["knots"][name]), np.array(about["curves"][name])
    inside = np.clip(np.searchsorted(knots, x, "right") - 1, 0, len(knots) - 2)
    slopes = np.diff(curves, axis=0) / np.diff(knots)[:, None]
    out = curves[inside] + (x - knots[inside])[:, None] * slopes[inside]
    return np.where(np.isnan(x)[:, None], about["missing"][name], out)


@pytest.mark.parametrize("n_clusters", [None, 2], ids=["concat", "sum"])
def test_curves_of_numbers(tmp_path, n_clusters):
    rng = np.random.default_rng(0)
    rows = {"job": rng.choice(["cook", "judge"], 60).tolist(), "pay": rng.lognormal(size=60)}
    rows["age"] = np.where(rng.random(60) < 0.2, np.nan, rng.normal(size=60))
    model = Weave(n_clusters).fit(rows)
    tabweave.export.parquet(model, tmp_path / "t.parquet")
    about = read(tmp_path / "t.parquet")[2]
    jobs = by_hand(tmp_path / "t.parquet", {"job": rows["job"]})
    numbers = [curves_by_hand(about, name, rows[name]) for name in ("pay", "age")]
    if n_clusters:
        assert about["summed"] == ["pay", "age"]
        found = jobs + sum(numbers)
    else:
        found = np.hstack([jobs, *numbers])
    np.testing.assert_allclose(found, model.transform(rows), atol=1e-9)


@pytest.mark.parametrize("n_clusters", [None, 2], ids=["concat", "sum"])
def test_cycles_of_datetimes(tmp_path, n_clusters):
    rng = np.random.default_rng(0)
    seconds = np.where(rng.random(200) < 0.1, np.nan, rng.uniform(0, 10**8, 200))
    model = Weave(n_clusters, schema={"t": "datetime"}).fit({"t": seconds})
    tabweave.export.parquet(model, tmp_path / "t.parquet")
    about = read(tmp_path / "t.parquet")[2]
    cells = {"t": seconds}
    cells |= {name: cells[own] % length for name, (own, length) in about["cycles"].items()}
    numbers = [curves_by_hand(about, name, x) for name, x in cells.items()]
    found = sum(numbers) if n_clusters else np.hstack(numbers)
    assert len(cells) == 4
    np.testing.assert_allclose(found, model.transform({"t": seconds}), atol=1e-9)


def test_two_tables_for_a_column_are_refused(tmp_path):
    rows, y = {"a": list("xyxy"), "n": [1.5, 2.5, 3.0, 4.0]}, list("uvuv")
    with pytest.raises(ValueError, match=r"column 'a' has .*export\.sql or .*discriminant=0"):
        tabweave.export.parquet(SupervisedWeave().fit(rows, y), tmp_path / "t.parquet")
    plain = SupervisedWeave(discriminant=0).fit(rows, y)
    tabweave.export.parquet(plain, tmp_path / "t.parquet")
    about = read(tmp_path / "t.parquet")[2]
    jobs = by_hand(tmp_path / "t.parquet", {"a": rows["a"]})
    found = np.hstack([jobs, curves_by_hand(about, "n", rows["n"])])
    np.testing.assert_allclose(found, plain.transform(rows), atol=1e-9)


def test_policies_leave_rows_out(tmp_path):
    schema = Schema({"a": "nominal"}, missing="error")
    tabweave.export.parquet(
        OneHot(schema=schema, unknown="error").fit({"a": ["x", "y"]}), tmp_path / "t.parquet"
    )
    assert {row[1] for row in read(tmp_path / "t.parquet")[0]} == {"value"}


def test_refusal_leaves_the_old_file(tmp_path):
    path = tmp_path / "t.parquet"
    tabweave.export.parquet(OneHot().fit({"a": ["x", "y"]}), path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="expected a measure with a value table"):
        tabweave.export.parquet(ValueMetric("jia").fit({"a": list("xyx"), "b": list("uvv")}), path)
    with pytest.raises(ValueError, match="Unicode"):
        tabweave.export.parquet(OneHot().fit({"a": ["\ud800", "y"]}), path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1
    with pytest.raises(OSError, match="cannot write"):
        tabweave.export.parquet(OneHot().fit({"a": ["x", "y"]}), tmp_path / "none" / "t.parquet")


def test_hierarchies(tmp_path, hierarchy):
    model, rows = hierarchy
    tabweave.export.parquet(model, tmp_path / "t.parquet")
    _, _, about = read(tmp_path / "t.parquet")
    ((name, low, factor),) = about["numbers"]
    ages = np.array(rows[name])
    ages = np.where(np.isnan(ages), about["missing"][name], (ages - low) * factor)
    valued = {name: cells for name, cells in rows.items() if name != "age"}
    found = np.column_stack([by_hand(tmp_path / "t.parquet", valued), ages])
    np.testing.assert_allclose(found, model.transform(rows), atol=1e-12)


def test_zones_of_datetimes_are_told(tmp_path):
    pandas = pytest.importorskip("pandas")
    moments = pandas.date_range("2020-01-01", periods=60, freq="37h", tz="Europe/Rome")
    model = Weave().fit(pandas.DataFrame({"t": moments, "g": list("abc") * 20}))
    tabweave.export.parquet(model, tmp_path / "m.parquet")
    assert _about(plan_of(model))["zones"] == {"t": "Europe/Rome"}


def test_missing_values_may_be_refused_in_sums_too():
    rows = {"a": list("uvwuvw"), "b": list("xyxyxx")}
    schema = Schema({}, missing="error")
    strict = plan_of(UNTIE(n_clusters=2, schema=schema).fit(rows))
    loose = plan_of(UNTIE(n_clusters=2).fit(rows))
    assert any(isinstance(step, Sum) for step in strict.steps)
    assert all(part.missing is None for part in strict.lookups)
    assert [p.labels for p in strict.lookups] == [p.labels for p in loose.lookups]
