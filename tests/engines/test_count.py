"""One table, many places: the same counts, bit for bit, and the same vectors."""

import sqlite3

import duckdb
import pytest

from tabweave import Counts, Table, count

pytest.importorskip("pyarrow", reason="the tests write Arrow files")


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


PLACES = {
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


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("numbers", ["numeric", "nominal"])
def test_every_place_gives_the_same_counts(rows, files, name, numbers):
    if "adbc" in name:
        pytest.importorskip("adbc_driver_sqlite", reason="the ADBC driver is not installed")
    table = Table.of(rows.drop_columns(["class"]), numbers=numbers)
    wanted = Counts.of(table, rows["class"])
    same(count(PLACES[name](rows, files), y="class", numbers=numbers), wanted)


def test_words_for_truth_stay_words(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("a,b,c\nyes,t,true\nno,f,false\n")
    assert count(path).labels == (("no", "yes"), ("f", "t"), ("false", "true"))
