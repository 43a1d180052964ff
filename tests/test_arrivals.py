"""The same rows are the same to Weave however they arrive: kinds, weights, distances, reasons.

Random small tables, each handed over by every library and file format that can hold its columns.
What differs for a reason is in docs/guarantees.md, and below.
"""

import datetime as dt
import json
import sqlite3

import numpy as np
import pytest

from tabweave import Table, Weave

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
pytest.importorskip("pyarrow.feather")
pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

LEVELS = ["S", "M", "L", "XL"]
NEW_YEAR = dt.datetime(2024, 1, 1)


def day(number):
    return NEW_YEAR + dt.timedelta(days=int(number))


# What a column may hold: a cell from a number below 300.
PLAIN = {  # that text has, too
    "word": lambda v: ["red", "blue", "a b"][v % 3],
    "grade": lambda v: v % 5 + 1,
    "sold": lambda v: v,
    "below": lambda v: v % 9 - 4,
    "status_code": lambda v: [200, 301, 404][v % 3],
    "weight": lambda v: v / 8,
    "whole": lambda v: float(v % 9),
    "iso": lambda v: str(day(v))[:10],
    "german": lambda v: f"{day(v):%d.%m.%Y}",
    "clock": lambda v: f"{v % 11}:{v % 60:02}",
    "price": lambda v: f"${v * 7.25:,.2f}",
    "part": lambda v: f"{v % 40:03}",
    "month": lambda v: f"2023-{v % 12 + 1:02}",
    "took": lambda v: f"{v % 50}h {v % 60}m",
    "share": lambda v: f"{v % 101}%",
    "note": lambda v: f"name{v} of x{v % 7}",
    "large": lambda v: 2**60 + v,
}
TYPED = {
    "flag": lambda v: v % 3 == 0,
    "tags": lambda v: ["p", "q", "r"][: v % 3],
    "date": lambda v: day(v).date(),
    "moment": lambda v: day(v) + dt.timedelta(minutes=v * 7 % 1440),
    "zoned": lambda v: day(v).replace(tzinfo=dt.UTC),
    "time": lambda v: dt.time(v % 24, v % 60),
    "elapsed": lambda v: dt.timedelta(minutes=v * 13),
    "record": lambda v: {"a": v % 50, "b": str(v % 3)},
}
WITHOUT_GAPS = ("tags", "record", "large")  # pandas makes floats of whole numbers with gaps
SEEDS = range(8)


def random_rows(seed, kinds, n_rows):
    rng = np.random.default_rng(seed)
    order = np.random.default_rng(seed // 5).permutation(sorted(kinds))
    rows = {}  # five columns; in five seeds, all there are
    for name in order.take(np.arange(5 * seed, 5 * seed + 5), mode="wrap").tolist():
        cells = [kinds[name](v) for v in rng.integers(300, size=n_rows).tolist()]
        gap = 0.2 * (rng.random() < 0.5 and name not in WITHOUT_GAPS)
        rows[name] = [None if rng.random() < gap else cell for cell in cells]
    return rows


def records_of(rows):
    return [dict(zip(rows, cells, strict=True)) for cells in zip(*rows.values(), strict=True)]


def in_memory(rows):
    yield "records", records_of(rows)
    yield "pandas", pd.DataFrame(rows)
    yield "objects", pd.DataFrame(rows, dtype=object)
    yield "nullable", pd.DataFrame(rows).convert_dtypes()
    yield "polars", pl.DataFrame(rows)
    yield "arrow", pa.table(rows)
    yield "arrow in pandas", pa.table(rows).to_pandas(types_mapper=pd.ArrowDtype)
    connection = duckdb.connect()
    connection.register("given", pa.table(rows))
    yield "relation", connection.sql("SELECT * FROM given")


def binary_files(rows, folder):
    pa.parquet.write_table(pa.table(rows), folder / "a.parquet", row_group_size=17)
    pa.feather.write_feather(pa.table(rows), folder / "a.feather", chunksize=13)
    pl.DataFrame(rows).write_parquet(folder / "b.parquet")
    pl.DataFrame(rows).write_ipc(folder / "b.arrow")
    return [(path.name, path) for path in sorted(folder.iterdir())]


def files_of_text(rows, folder):
    frame = pd.DataFrame(rows, dtype=object)
    frame.to_csv(folder / "a.csv", index=False)
    yield "CSV", folder / "a.csv"
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, records_of(rows))))
    yield "JSON", folder / "a.jsonl"
    with sqlite3.connect(folder / "a.db") as connection:
        connection.execute(f"CREATE TABLE held ({', '.join(rows)})")
        marks = ", ".join("?" * len(rows))
        cells = zip(*rows.values(), strict=True)
        connection.executemany(f"INSERT INTO held VALUES ({marks})", cells)
    connection.close()
    yield "SQLite", (f"sqlite:///{(folder / 'a.db').as_posix()}", "SELECT * FROM held")


def looked_at(X):
    model = Weave().fit(X)
    kinds = [(found.column, found.kind, found.kept) for found in model.kinds()]
    vectors = np.asarray(model.transform(X))
    return model, kinds, ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)


def check_same(rows, arrivals):
    model, kinds, distances = looked_at(rows)
    for name, X in arrivals:
        found, its_kinds, its_distances = looked_at(X)
        assert its_kinds == kinds, name
        np.testing.assert_allclose(its_distances, distances, atol=1e-9, err_msg=name)
        assert found.weights_ == pytest.approx(model.weights_, abs=1e-9), name
        first, second = records_of(rows)[:2]
        assert found.explain(first, second) == pytest.approx(model.explain(first, second)), name


@pytest.mark.parametrize("n_rows", [2, 20, 80])
@pytest.mark.parametrize("seed", SEEDS)
def test_libraries_and_files_with_types(seed, n_rows, tmp_path):
    rows = random_rows(seed, PLAIN | TYPED, n_rows)
    check_same(rows, [*in_memory(rows), *binary_files(rows, tmp_path)])


@pytest.mark.parametrize("n_rows", [20, 80])
@pytest.mark.parametrize("seed", SEEDS)
def test_files_of_text(seed, n_rows, tmp_path):
    rows = random_rows(seed, PLAIN, n_rows)
    check_same(rows, files_of_text(rows, tmp_path))


@pytest.mark.parametrize("seed", SEEDS)
def test_ordered_categories_and_plain_ones(seed, tmp_path):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(random_rows(seed, PLAIN, 40))
    rows["size"] = pd.Categorical(rng.choice([*LEVELS[:3], None], 40), LEVELS, ordered=True)
    rows["due"] = pd.Series(rng.choice(["2024-01-01", "2024-03-01"], 40)).astype("category")
    rows.to_parquet(tmp_path / "a.parquet", row_group_size=11)
    rows.to_feather(tmp_path / "a.feather")
    paths = [(path.name, path) for path in sorted(tmp_path.iterdir())]
    _, kinds, distances = looked_at(rows)
    assert {("size", "ordinal", True), ("due", "nominal", True)} <= set(kinds)
    for name, X in [("arrow", pa.Table.from_pandas(rows)), *paths]:
        found, its_kinds, its_distances = looked_at(X)
        assert its_kinds == kinds and found.schema_["size"].levels == tuple(LEVELS), name
        np.testing.assert_allclose(its_distances, distances, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("seed", SEEDS)
def test_other_orders_of_rows(seed):
    rows = random_rows(seed, PLAIN | TYPED, 60)
    order = np.random.default_rng(seed).permutation(60)
    _, kinds, distances = looked_at(rows)
    mixed = {name: [cells[i] for i in order] for name, cells in rows.items()}
    _, its_kinds, its_distances = looked_at(mixed)
    assert its_kinds == kinds
    np.testing.assert_allclose(its_distances, distances[np.ix_(order, order)], atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_chunks_of_values(seed):
    """Numbers keep the bins of the first chunk; all else is as if the rows had come at once."""
    values = ("word", "status_code", "part", "note", "large", "flag", "tags")
    rows = random_rows(seed, {name: (PLAIN | TYPED)[name] for name in values}, 60)
    whole = Weave().fit(rows)
    chunked = Weave(schema=whole.schema_)
    for start in range(0, 60, 7):
        chunked.partial_fit({name: cells[start : start + 7] for name, cells in rows.items()})
    kept = Table.of(rows, whole.schema_)
    np.testing.assert_allclose(
        chunked.pairwise_distances(kept), whole.pairwise_distances(kept), atol=1e-9
    )
    assert chunked.weights_ == pytest.approx(whole.weights_, abs=1e-9)
