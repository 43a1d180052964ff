"""A source is opened once, however much is asked of it; its types can be declared afterwards."""

import numpy as np
import pytest

from tabweave import OneHot, Table, Weave, count
from tabweave.engines import duck, open_source, opening, read, transform
from tabweave.engines import files as engine

pytest.importorskip("pyarrow", reason="the tests write Arrow files")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("price,size\n1.50,S\n2.0,L\n1.5,S\n")
    return path


@pytest.fixture
def openings(monkeypatch):
    """Count how often a file is opened."""
    seen = []
    open_file = engine.open_file
    monkeypatch.setattr(
        engine, "open_file", lambda path, *more: seen.append(path.name) or open_file(path, *more)
    )
    return seen


def test_an_opened_source_serves_everything(path, openings, tmp_path):
    source = open_source(path)
    assert source.types == {"price": "DOUBLE", "size": "VARCHAR"} and source.guessed
    embedder = OneHot(schema="nominal").fit(source)
    assert embedder.counts_ == count(source, numbers="nominal")
    assert transform(embedder, source, tmp_path / "v.csv", keep=["price"]) == 3
    assert read(source).num_rows == read(source, columns=["size"]).num_rows == 3
    np.testing.assert_array_equal(embedder.transform(source), embedder.transform(read(path)))
    assert openings == ["rows.csv"] * 2  # the second by read(path)


def test_what_is_asked_of_a_path_opens_it_once(path, openings, tmp_path):
    embedder = OneHot()
    for ask in (
        lambda: embedder.fit(path),
        lambda: embedder.partial_fit(path),
        lambda: embedder.transform(path),
        lambda: transform(embedder, path, tmp_path / "v.parquet"),
        lambda: count(path, columns={"price": "VARCHAR"}, max_values=2),
    ):
        openings.clear()
        ask()
        assert openings == ["rows.csv"]


def test_types_are_declared_without_opening_again(path, openings):
    source = open_source(path)
    text = open_source(source, {"price": "VARCHAR", "size": None})
    assert text.types == {"price": "VARCHAR", "size": "VARCHAR"}
    assert read(text)["price"].to_pylist() == ["1.50", "2.0", "1.5"]
    assert read(source)["price"].to_pylist() == [1.5, 2.0, 1.5]
    assert openings == ["rows.csv"]


def test_types_of_many_files_and_of_json(tmp_path):
    for i in (1, 2):
        (tmp_path / f"{i}.csv").write_text(f"a,b\n{i}.50,x\n")
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    many = open_source(f"{tmp_path}/*.csv")
    assert many.guessed
    assert read(many.retyped({"a": "VARCHAR"}))["a"].to_pylist() == ["1.50", "2.50"]
    lines = open_source(tmp_path / "rows.jsonl")
    assert lines.is_text and not lines.guessed
    assert read(lines.retyped({"a": "DOUBLE"}))["a"].to_pylist() == [1.0, 2.0]


def test_parquet_is_cast_by_duckdb_and_arrow_is_not(files, tmp_path):
    source = open_source(files / "part-0.parquet")
    cast = source.retyped({"grade": "VARCHAR"})
    assert cast.types["grade"] == "VARCHAR" and not cast.is_text
    assert set(read(cast, columns=["grade"])["grade"].to_pylist()) == set("012345")
    with pytest.raises(ValueError, match="works for text files only"):
        open_source(files / "all.arrow").retyped({"grade": "VARCHAR"})


def test_a_source_says_what_it_is(path):
    assert repr(open_source(path)) == f"CsvSource({str(path)!r}, 2 columns)"
    assert duck.open_sql("SELECT 1 AS a").choose(y="a") == ["a"]


def test_rows_in_memory_never_enter_the_engines(rows, monkeypatch):
    """Rows in memory are told at once; what a source is, is looked at for all else."""
    polars = pytest.importorskip("polars", reason="polars is not installed")
    plain = rows.drop_columns(["class"]).slice(0, 50)
    columns = plain.to_pydict()
    frames = [plain, plain.to_pandas(), polars.from_arrow(plain), columns, plain.to_pylist()]
    frames += [list(zip(*columns.values(), strict=True)), np.column_stack(list(columns.values()))]
    frames += [Table.of(plain, numbers="nominal")]
    monkeypatch.setattr(opening, "kind_of", None)
    for frame in frames:
        weave = Weave().fit(frame)
        weave.partial_fit(frame)
        assert weave.transform(frame).shape[0] == 50
