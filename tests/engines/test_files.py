"""Bad sources: a clear error that names file and place, and nothing half-written."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest

from tabweave import Counts, OneHot, Table, Weave, count
from tabweave.engines import batches, duck, open_source, read, transform

pa = pytest.importorskip("pyarrow", reason="the tests write Arrow files")
parquet = pytest.importorskip("pyarrow.parquet")


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_column_without_a_name_gets_one(tmp_path):
    path = write(tmp_path / "index.csv", ",a\n0,x\n1,y\n")  # as pandas writes its index
    assert list(read(path).column_names) == ["column0", "a"]


def test_a_csv_name_of_several_lines(tmp_path):
    path = write(tmp_path / "names.csv", '"a ""b""\n\nc",d\nx,1\ny,2\n')
    assert read(path).to_pylist() == [{'a "b"\n\nc': "x", "d": 1}, {'a "b"\n\nc': "y", "d": 2}]


@pytest.mark.parametrize("names", ["a,b,a", "a,b,A", "column2,b,"])
def test_two_csv_columns_of_one_name_are_refused(tmp_path, names):
    path = write(tmp_path / "twice.csv", f"{names}\n1,2,3\n")
    with pytest.raises(ValueError, match=r"twice\.csv: columns 0 and 2 are named"):
        count(path)


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_json_keys_equal_but_for_case_are_refused(tmp_path, suffix):
    """DuckDB calls the second C_1, and finds no cell of that name."""
    lines = ['{"c": "x", "b": 1}', '{"C": "y", "b": 2}']
    text = f"[{','.join(lines)}]" if suffix == "json" else "\n".join(lines)
    path = write(tmp_path / f"twice.{suffix}", text)
    with pytest.raises(
        ValueError, match="are named 'C' and 'c', which DuckDB reads as the same name"
    ):
        count(path)
    write(path, text.replace('"C"', '"C_1"'))
    assert read(path).to_pylist()[1] == {"c": None, "b": 2, "C_1": "y"}


@pytest.mark.parametrize("content", [b"caf\xe9,b\nx,1\n", b"a,b\ncaf\xe9,1\n"])
def test_a_csv_that_is_no_utf8_is_named(tmp_path, content):
    (tmp_path / "latin.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"latin\.csv: expected UTF-8, got byte 0x..; write"):
        open_source(tmp_path / "latin.csv", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"latin\.csv: its text is not UTF-8 and was"):
        assert "caf\u00e9" in str(read(tmp_path / "latin.csv"))


def test_vectors_without_a_dimension_make_no_file(tmp_path):
    path = write(tmp_path / "same.csv", "a\nx\nx\n")
    with pytest.raises(ValueError, match="expected a column that varies"):
        transform(Weave().fit(path), path, tmp_path / "out.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["same.csv"]


@pytest.mark.parametrize("row", ["5,6,7", "5"])
def test_a_ragged_csv_names_its_line(tmp_path, row):
    path = write(tmp_path / "ragged.csv", f"a,b\n1,2\n3,4\n{row}\n8,9\n")
    with pytest.raises(ValueError, match=r"ragged\.csv: expected 2 cells, .* in line 4: "):
        count(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'a,b\n1,2\n3,"x" y\n4,5\n', "two for one inside it, got line 3: '3,\"x\" y'; mend"),
        (b"a,b\n" + b"1,x\n" * 5000 + b"2,\xfc\n", "other bytes in line 5002; .* iconv -f cp1252"),
        (b'a,"b,c\n' + b"1,2,3\n" * 9, "does a quote in the first line lack its end"),
    ],
)
def test_a_csv_that_cannot_be_parted_says_where(tmp_path, text, said):
    (tmp_path / "bad.csv").write_bytes(text)
    with pytest.raises(ValueError, match=rf"bad\.csv: .*{said}"):
        count(tmp_path / "bad.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,red,12.4\n2,blue,13.1\n3,red,10.2\n", "its first line (1, red, 12.4) looks like a row"),
        ("a,x\n" + "a,y\nb,x\n" * 5, "looks like a row"),
        ("2024-01-03,8\n2024-02-01,9\n2024-02-02,7\n", "looks like a row"),
        ("Sales of 2024,,\nid,color,kg\n1,red,2.5\n", "holds one name for 3 columns, 'Sales of"),
        ("id color kg\n1 red 2.5\n2 blue 3\n", "it has one column, 'id color kg'; separate"),
    ],
)
def test_a_first_line_that_holds_no_names_is_told(tmp_path, text, said):
    path = write(tmp_path / "first.csv", text)
    with pytest.warns(UserWarning, match=re.escape(said)):
        read(path)


@pytest.mark.parametrize(
    "text",
    [
        "country,1990,1991\nA,1980,2000\nB,1995,2010\n",  # years
        "1990,1991\n1980,2000\n1995,2010\n",
        "0,1,2\n0,1,2\n3,0,0\n",  # columns without names, by their number
        "400,402,404\n0.1,0.2,0.3\n",  # wavelengths
        "401.5,x\n0.1,0.2\n0.2,0.1\n",
        "time,inf,nan,-Infinity,1e400\n1,2,3,4,5\n2,3,4,5,6\n",
        "red,blue\nx,y\nx,z\nx,y\n",
        "a title of words\nsome text\nand more of it\n",
        "name\nx\n",
        "a,b\n",
    ],
)
def test_a_first_line_of_names_is_not_doubted(tmp_path, text):
    assert read(write(tmp_path / "first.csv", text)).num_rows == text.count("\n") - 1


def test_names_again_among_the_rows_are_refused(tmp_path):
    path = write(tmp_path / "pasted.csv", "id,kg\n1,2\n3,4\n id,kg\n5,6\nid,kg\n")
    with pytest.raises(
        ValueError, match=r"pasted\.csv: expected column names .* \(2 times\); remove"
    ):
        read(path)


def test_excel_may_say_what_separates(tmp_path):
    path = write(tmp_path / "excel.csv", "\ufeffsep=;\na;b\n1;x,y\n2;z\n")
    assert read(path).to_pylist() == [{"a": 1, "b": "x,y"}, {"a": 2, "b": "z"}]
    with pytest.raises(ValueError, match=r"rows\.txt: expected the names of columns, got JSON"):
        read(write(tmp_path / "rows.txt", '{"a":1,"b":2}\n{"a":2,"b":3}\n'))


@pytest.mark.parametrize(
    ("price", "sold"), [("1,5", [950, 1200, 12_345]), ("1.5", [950, 1.2, 12.345])]
)
def test_points_are_thousands_where_commas_are_decimal_marks(tmp_path, price, sold):
    lines = [f"{text};{price};{i / 8 + 0.125}" for i, text in enumerate(["950", "1.200", "12.345"])]
    path = write(tmp_path / "excel.csv", "sold;price;x\n" + "\n".join(lines) + "\n")
    table = Table.of(read(path), rules="whole")
    assert table["sold"].values.tolist() == sold and table["price"].values[0] == 1.5
    assert read(path)["x"].type == "double"  # it has fractions of three digits, and others


def test_a_ragged_row_far_down_is_found(tmp_path):
    path = write(tmp_path / "far.csv", "a,b\n" + "1,x\n" * 60_000 + "1,y,3\n" + "1,z\n")
    with pytest.raises(ValueError, match=r"far\.csv: .* in line 60002"):
        Weave().fit(path)


def test_a_line_that_looks_like_a_comment_is_a_row(tmp_path):
    path = write(tmp_path / "hash.csv", "a,b\n#1,x\n2,y\n")
    assert count(path, numbers="nominal").labels == (("#1", "2"), ("x", "y"))


def test_types_are_those_of_all_cells(tmp_path):
    path = write(tmp_path / "late.csv", "a,b\n" + "1,x\n" * 30_000 + "q,y\n")
    assert count(path).labels == (("1", "q"), ("x", "y"))
    zips = write(tmp_path / "zip.csv", "zip,n\n01234,1\n98765,2\n")
    assert count(zips, columns={"zip": "VARCHAR"}).labels == (("01234", "98765"),)


def test_dates_stay_the_text_they_are(tmp_path):
    path = write(tmp_path / "dates.csv", "day;hour\n31/01/2020;08:00\n01/02/2020;09:00\n")
    assert count(path).labels == (("01/02/2020", "31/01/2020"), ("08:00", "09:00"))


def test_a_parquet_file_cut_in_half(tmp_path):
    path = tmp_path / "half.parquet"
    parquet.write_table(pa.table({"a": [f"v{i % 9}" for i in range(5000)]}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    for engine in ("arrow", "duckdb"):
        with pytest.raises(ValueError, match=r"half\.parquet"):
            count(path, engine=engine)


def test_a_parquet_file_with_a_damaged_page(tmp_path):
    path = tmp_path / "page.parquet"
    parquet.write_table(pa.table({"a": [f"value {i}" for i in range(50_000)]}), path)
    damaged = bytearray(path.read_bytes())
    damaged[2000:3000] = b"\xff" * 1000
    path.write_bytes(bytes(damaged))
    embedder = OneHot().fit({"a": ["value 1"]})
    with pytest.raises(ValueError, match=r"page\.parquet"):
        transform(embedder, path, tmp_path / "out.parquet")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["page.parquet"]


def test_a_type_that_changes_between_files(tmp_path):
    parquet.write_table(pa.table({"a": [1, 2]}), tmp_path / "one.parquet")
    parquet.write_table(pa.table({"a": ["x", "y"]}), tmp_path / "two.parquet")
    with pytest.raises(ValueError, match=r"two\.parquet: column 'a' is string, but int64 in .*one"):
        count(str(tmp_path / "*.parquet"))
    write(tmp_path / "one.csv", "a,b\n1,2\n")
    write(tmp_path / "two.csv", "a,b\nx,2\n")
    with pytest.raises(ValueError, match=r"two\.csv: column 'a' is VARCHAR, but BIGINT in .*one"):
        count(str(tmp_path / "*.csv"))
    assert count(str(tmp_path / "*.csv"), columns=["b"], numbers="nominal").labels == ((2,),)
    text = count(str(tmp_path / "*.csv"), columns={"a": "VARCHAR"})
    assert text.labels == (("1", "x"),)


def test_whole_and_broken_numbers_are_both_numbers(tmp_path):
    write(tmp_path / "1.csv", "a\n1\n2\n")
    write(tmp_path / "2.csv", "a\n1.5\n2.0\n")
    assert count(str(tmp_path / "*.csv"), numbers="nominal").labels == ((1, 1.5, 2),)


@pytest.mark.parametrize("order", [("1", "2"), ("2", "1")])
def test_a_column_that_is_empty_in_one_file_has_the_type_of_the_other(tmp_path, order):
    write(tmp_path / f"{order[0]}.csv", "a,b\n,x\n,y\n")
    write(tmp_path / f"{order[1]}.csv", "a,b\n1,x\n2,y\n")
    counts = count(str(tmp_path / "*.csv"))
    assert counts.schema["a"].kind == "numeric" and counts.moments("a")[:2] == (2, 1.5)


def test_files_with_other_columns(tmp_path):
    write(tmp_path / "1.csv", "a,b\n1,2\n")
    write(tmp_path / "2.csv", "a,c\n1,2\n")
    with pytest.raises(ValueError, match=r"2\.csv: column 'b' is missing, which .*1\.csv has"):
        count(str(tmp_path / "*.csv"))


def test_paths_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        count(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match="the name of a file, got an empty text"):
        count("")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        Weave().fit(f"{tmp_path}/*.parquet")
    with pytest.raises(
        ValueError, match=r"expected a file, got sqlite://...: .*\(address, query\)"
    ):
        count("sqlite:///rows.db")
    with pytest.raises(ValueError, match="expected a file that ends in"):
        count(write(tmp_path / "rows.data", "a,b\n1,2\n"))
    with pytest.raises(ValueError, match=r"; unpack it first$"):
        count(write(tmp_path / "rows.csv.7z", "a,b\n1,2\n"))
    with pytest.raises(
        ValueError, match=r"; read it by pandas\.read_stata\('rows\.dta'\) and pass"
    ):
        count(write(tmp_path / "rows.dta", "a,b\n1,2\n"))
    with pytest.raises(ValueError, match="got an empty line"):
        count(write(tmp_path / "empty.csv", ""))


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may read anything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = write(tmp_path / "secret.csv", "a\n1\n")
    path.chmod(0)
    with pytest.raises(PermissionError, match=r"secret\.csv"):
        count(path)


def test_a_folder_in_place_of_a_file(tmp_path):
    (tmp_path / "odd.csv").mkdir()
    with pytest.raises(FileNotFoundError, match=r"odd\.csv is a folder without"):
        count(tmp_path / "odd.csv")


def test_sql_that_fails():
    with pytest.raises(ValueError, match=r"SQL 'SELECT nope FROM range.*nope"):
        count("SELECT nope FROM range(3)")
    with pytest.raises(ValueError, match=r"SQL .*CAST.*Could not convert string"):
        count("SELECT CAST('a' || range AS INTEGER) AS x FROM range(3)")


def test_rows_that_are_none(tmp_path):
    empty = write(tmp_path / "none.csv", "a,b\n")
    assert count(empty).schema is None
    with pytest.raises(ValueError, match=r"none\.csv.*0 sample"):
        Weave().fit(empty)
    with pytest.raises(ValueError, match=r"none\.csv: expected at least one row, got none"):
        transform(OneHot().fit({"a": ["x"], "b": ["y"]}), empty, tmp_path / "o.csv")
    assert not (tmp_path / "o.csv").exists()


def test_arguments_that_make_no_sense(tmp_path):
    path = write(tmp_path / "few.csv", "a,b\n1,2\n")
    with pytest.raises(ValueError, match="column not found: 'z'; the columns are 'a', 'b'"):
        count(path, columns=["z"])
    with pytest.raises(ValueError, match="column not found: 'z'"):
        count(path, y="z")
    with pytest.raises(TypeError, match=r"expected columns to be a list of names, as in \['a'\]"):
        count(path, columns="a")
    with pytest.raises(ValueError, match="engine='spark' does not read files"):
        count(path, engine="spark")
    with pytest.raises(ValueError, match=r"engine: expected one of .*, got 'fast'"):
        count(path, engine="fast")
    with pytest.raises(TypeError, match="expected the name of a column as y, got list"):
        count(path, y=[1])
    with pytest.raises(ValueError, match="sample_weight needs rows in memory"):
        Weave().fit(path, sample_weight=[1])
    with pytest.raises(ValueError, match="batch_rows"):
        batches(path, batch_rows=0)
    with pytest.raises(ValueError, match="expected a column to count besides y"):
        count(path, columns=["a"], y="a")
    with pytest.raises(ValueError, match="which works for text files only"):
        read("SELECT 1 AS a", columns={"a": "VARCHAR"})


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
@pytest.mark.parametrize("name", ["a[1]", "a*", "a?"])
def test_a_name_that_looks_like_a_pattern_is_that_file(tmp_path, name, ending):
    """DuckDB would read what matches instead."""
    for stem, cell in ((name, "right"), ("a1", "wrong")):
        path = tmp_path / f"{stem}.{ending}"
        if ending == "parquet":
            parquet.write_table(pa.table({"k": [cell]}), path)
        else:
            path.write_text(f"k\n{cell}\n" if ending == "csv" else f'{{"k": "{cell}"}}\n')
    path = tmp_path / f"{name}.{ending}"
    assert count(path, engine="duckdb").labels == count(str(path)).labels == (("right",),)


# -- partitioned folders --------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("engine", ["auto", "duckdb"])
def test_folders_that_name_values_are_columns(tmp_path, ending, engine):
    import duckdb

    root = tmp_path / "flights"
    expected = []
    none = "__HIVE_DEFAULT_PARTITION__"
    for year, place in ((2013, "JFK"), (2013, "New%20York"), (2014, none)):
        folder = root / f"year={year}" / f"origin={place}" / "month=01"
        folder.mkdir(parents=True)
        query = "SELECT 'c' || range % 3 AS carrier FROM range(6)"
        duckdb.sql(f"COPY ({query}) TO '{folder / f'rows.{ending}'}'")
        name = {"New%20York": "New York", none: None}.get(place, place)
        expected += [(f"c{i % 3}", year, name, "01") for i in range(6)]
    names = ("carrier", "year", "origin", "month")
    rows = {name: list(cells) for name, *cells in zip(names, *expected, strict=True)}
    wanted = Counts.of(Table.of(rows, numbers="nominal"))
    assert count(root, engine=engine, numbers="nominal") == wanted
    some = count(root, columns=["year"], engine=engine, numbers="nominal")
    assert some == wanted.select(["year"])
    as_text = {"year": "VARCHAR", "carrier": None}
    labels = count(root, columns=as_text, engine=engine).labels
    assert labels[0] == ("2013", "2014")
    model = OneHot().fit(str(root))
    np.testing.assert_array_equal(model.transform(str(root)), OneHot().fit_transform(rows))


def test_a_glob_says_which_columns_it_leaves_out(tmp_path):
    for year in (2023, 2024):
        (tmp_path / "h" / f"year={year}").mkdir(parents=True)
        write(tmp_path / "h" / f"year={year}" / "a.csv", "a,b\n1,2\n")
    with pytest.warns(
        UserWarning, match=r"year=2023: the names .* folder above them is given, '.*h'"
    ):
        assert list(open_source(f"{tmp_path}/h/*/*.csv").types) == ["a", "b"]
    assert list(open_source(f"{tmp_path}/h").types) == ["a", "b", "year"]
    assert list(open_source(f"{tmp_path}/h/year=2023/*.csv").types) == ["a", "b"]


def test_folders_that_are_no_partitions_are_refused(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "rows.csv").write_text("x\n1\n")
    with pytest.raises(ValueError, match=r"has folders in it \(b\).*glob"):
        count(tmp_path / "a")
    (tmp_path / "k" / "year=1").mkdir(parents=True)
    (tmp_path / "k" / "rows.csv").write_text("x\n1\n")
    with pytest.raises(ValueError, match="files beside them"):
        count(tmp_path / "k")


# -- one rule for labels, from every door --------------------------------------------------------


def labels_of(source, kinds=None):
    """Return the labels of the column of a source, each with its type."""
    column = Table.of(source, kinds)["a"]
    return [(type(label), label) for label in sorted(column.labels, key=repr)]


@pytest.mark.parametrize(
    "cells",
    [
        ["12345678901234567890", "12345678901234567891"],
        ["9007199254740993", "0.5", "9007199254740992"],
        ["0x1F", "31"],
        ["0b1", "1"],
        [" 1", "1"],
        ["1.5", " 1.5"],
        ["-0", "0"],
        ["0x1p4", "16.0"],
    ],
)
def test_cells_that_differ_are_never_one_label_in_csv(tmp_path, cells):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "".join(f"{cell},x\n" for cell in cells))
    assert labels_of(read(path), {"a": "nominal"}) == [(str, c) for c in sorted(cells)]
    assert count(path).n == len(cells)


def test_blanks_around_all_numbers_of_a_column_are_no_part_of_them(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("b, a\nx, 10\ny, 2\nz, 1\n")
    table = Table.of(read(path))
    assert table.schema[" a"].kind == "numeric"
    assert table[" a"].values.tolist() == [10, 2, 1]


@pytest.mark.parametrize(
    "cells",
    [
        [12345678901234567890, 12345678901234567891],
        [9007199254740993, 0.5, 9007199254740992],
        [-(10**30), 10**30 + 1, 10**30],
        [1, "1", "x"],
        [True, 1, "true", None],
        ["12:30:00", "12:30:00.000", "12:30"],
        ["2020-01-01", "2020-01-02"],
        ["2020-01-01T00:00:00", "2020-01-01 00:00:00", "2020-01-01T00:00:00Z"],
        ["6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"],
        [[1, "1"], ["x"], []],
        [["2020-01-01"], ["2020-01-02", "2020-1-2"]],
        [1, 2.5, 1.0],
        ["a", None, ""],
    ],
)
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_json_says_what_memory_says(tmp_path, cells, suffix):
    path, lines = tmp_path / f"a.{suffix}", [json.dumps({"a": cell, "b": 1}) for cell in cells]
    path.write_text("[" + ",".join(lines) + "]" if suffix == "json" else "\n".join(lines))
    kind = "set" if isinstance(cells[0], list) else "nominal"
    in_memory = {"a": cells, "b": [1] * len(cells)}
    assert labels_of(read(path), {"a": kind}) == labels_of(in_memory, {"a": kind})
    from_file, kept = Table.of(read(path)), Table.of(in_memory)
    assert from_file.schema["a"].kind == kept.schema["a"].kind
    assert count(path, schema={"a": kind}) == Counts.of(Table.of(in_memory, {"a": kind}))


def test_sql_counts_json_unless_cells_are_of_several_types(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[{"a": "x", "d": "2020-01-01"}, {"a": "y", "d": "2020-01-02"}]')
    assert count(path, engine="pushdown") == count(path)
    path.write_text('[{"a": "x"}, {"a": 1}]')
    with pytest.raises(ValueError, match="column 'a' holds values of several types"):
        count(path, engine="pushdown")


def test_a_parquet_file_is_not_kept_while_it_is_read(tmp_path):
    rows = {"x": np.random.default_rng(0).normal(size=1 << 18)}
    path = tmp_path / "many_groups.parquet"
    parquet.write_table(pa.table(rows), path, row_group_size=1 << 12)
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in batches(path, batch_rows=1 << 12)]
    assert len(held) == 64 and max(held) < path.stat().st_size / 4


@pytest.mark.parametrize("gap", ["", "NA", "n/a", "null", "NaN", "<NA>"])
def test_a_csv_file_has_the_gaps_that_pandas_sees(tmp_path, gap):
    pd = pytest.importorskip("pandas")
    path = tmp_path / "a.csv"
    path.write_text("grade,price,word\n" + f"1,2.5,u\n{gap},{gap},NA\n3,0.5,v\n2,1.25,u\n" * 10)
    ours, theirs = read(path), pd.read_csv(path)
    assert [str(kind) for kind in ours.schema.types] == ["int64", "double", "string"]
    for name in ("grade", "price"):
        np.testing.assert_array_equal(ours[name].to_numpy().astype(float), theirs[name])
    assert "NA" in ours["word"].to_pylist()  # a word beside words
    kinds = {found.column: found.kind for found in Weave().fit(path).kinds()}
    assert kinds == {found.column: found.kind for found in Weave().fit(theirs).kinds()}
    assert count(path, engine="pushdown") == count(path)


def test_a_word_beside_numbers_that_pandas_knows_not_leaves_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n1,007,NA\n?,NA,NA\n")
    assert read(path).to_pylist() == [
        {"a": "1", "b": "007", "c": "NA"},
        {"a": "?", "b": "NA", "c": "NA"},
    ]
    path.write_text("a,b\n1,u\nNA,v\n")
    assert read(path, columns={"a": "VARCHAR"})["a"].to_pylist() == ["1", "NA"]


SIZES = ["S", "M", "L", "XL"]


def sizes(pd, ordered=True, cells=("M", "S", "L")):
    return pd.DataFrame({"size": pd.Categorical(cells * 10, SIZES, ordered=ordered)})


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_ordered_categories_of_a_file_are_ordinal(tmp_path, suffix):
    pd = pytest.importorskip("pandas")
    frame = sizes(pd).assign(day=pd.Series(["1", "2", "3"] * 10).astype("category"))
    path = tmp_path / f"a.{suffix}"
    getattr(frame, f"to_{suffix}")(path, **({"row_group_size": 7} if suffix == "parquet" else {}))
    for rows in (frame, path, read(path)):
        size, day = Weave().fit(rows).kinds()
        assert (size.kind, size.why) == ("ordinal", "ordered categories")
        assert day.kind == "nominal"
        if "int32" not in open_source(path).types["day"]:
            assert day.why == "categories"  # pyarrow below 18 forgets it of text in Parquet
        assert Weave().fit(rows).schema_["size"].levels == tuple(SIZES)
    assert Weave().fit([path, path]).kinds()[0].kind == "ordinal"


def test_ordered_categories_of_polars_are_ordinal_from_its_files(tmp_path):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"size": pl.Series(["M", "S", "L"] * 10, dtype=pl.Enum(SIZES))})
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_ipc(tmp_path / "a.arrow")
    assert Weave().fit(frame).schema_["size"].levels == tuple(SIZES)
    if not frame.to_arrow().schema.field("size").type.ordered:
        pytest.skip("polars below 2 does not tell Arrow of an order")
    for rows in (frame.to_arrow(), tmp_path / "a.parquet", tmp_path / "a.arrow"):
        assert Weave().fit(rows).schema_["size"].levels == tuple(SIZES)


def test_an_order_that_a_file_does_not_keep_is_not_made_up(tmp_path):
    pd = pytest.importorskip("pandas")
    path = tmp_path / "a.parquet"
    sizes(pd).to_parquet(path, use_dictionary=False)
    with pytest.warns(UserWarning, match="column 'size' holds ordered categories, but the file"):
        (size,) = Weave().fit(path).kinds()
    assert size.kind == "nominal"


def test_files_of_which_only_some_have_an_order(tmp_path):
    pd = pytest.importorskip("pandas")
    for i, frame in enumerate([sizes(pd), sizes(pd, ordered=False), sizes(pd).astype(str)]):
        frame.to_parquet(tmp_path / f"{i}.parquet")
    (size,) = Weave().fit(tmp_path).kinds()
    assert size.kind == "nominal"


@pytest.mark.parametrize("orient", ["columns", "split", "index", "table", "list"])
def test_a_frame_in_one_object_of_json_is_no_row(tmp_path, orient):
    frame, path = pd.DataFrame({"job": ["cook", "clerk", "cook"], "age": [1.5, 2.5, 3.5]}), "a.json"
    if orient == "list":
        (tmp_path / path).write_text(json.dumps(frame.to_dict("list")))
    else:
        frame.to_json(tmp_path / path, orient=orient)
    with pytest.raises(ValueError, match=r"a\.json: expected a list of records.*orient='records'"):
        Weave().fit(tmp_path / path)
    frame.to_json(tmp_path / path, orient="records")
    assert Weave().fit(tmp_path / path).schema_.names == ["job", "age"]


@pytest.mark.parametrize(
    "record", [{"tags": ["a", "b"], "on": ["c"]}, {"data": 5, "x": 1}, {"o": {"p": 1}, "tags": []}]
)
def test_one_record_of_json_is_a_row(tmp_path, record):
    (tmp_path / "a.json").write_text(json.dumps(record))
    assert count(tmp_path / "a.json").n == 1


def test_numbers_in_place_of_names_may_be_a_row(tmp_path):
    with pytest.raises(ValueError, match="rename one; if the first line is a row, write names"):
        count(write(tmp_path / "a.csv", "0,0,5\n1,2,5\n"))
    with pytest.raises(ValueError, match=r"rename one$"):
        count(write(tmp_path / "a.csv", "a,A,5\n1,2,5\n"))


def test_a_wide_file_is_asked_about_in_parts(tmp_path, monkeypatch):
    # One query about all columns takes DuckDB time that grows with the square of their number.
    names = [f"c{i}" for i in range(120)]
    cells = [["NA" if (i + j) % 7 == 0 else str(i * j / 4) for i in range(120)] for j in range(6)]
    cells[0][110] = "word"
    path = write(tmp_path / "a.csv", "\n".join(map(",".join, [names, *cells])))
    queries = []

    class Told:
        def __init__(self, connection):
            self.connection = connection

        def cursor(self):
            return Told(self.connection.cursor())

        def execute(self, query):
            queries.append(query)
            return self.connection.execute(query)

        def __getattr__(self, name):
            return getattr(self.connection, name)

    connect = duck.connect
    monkeypatch.setattr(duck, "connect", lambda: Told(connect()))
    source = open_source(path)
    assert max(query.count("bool_and") for query in queries) == 50
    assert sum(query.count("bool_and") for query in queries) == 119
    assert [name for name, kind in source.types.items() if kind == "VARCHAR"] == ["c110"]
    (batch,) = source.batches(names)
    gap = batch["c7"].to_pylist()
    assert gap[0] is None and gap[1:] == [7 * j / 4 for j in range(1, 6)]


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize(("n_keys", "n_each"), [(300, 300), (100, 4)])
def test_records_of_many_keys_or_few_of_them_are_rows(tmp_path, n_keys, n_each, within):
    """DuckDB would take them for maps, whose keys are no columns."""
    rng = np.random.default_rng(0)
    rows = [
        {f"k{key}": "abc"[rng.integers(3)] for key in rng.permutation(n_keys)[:n_each]}
        for _ in range(60)
    ]
    rows = [{"g": "xy"[i % 2], "r": row} for i, row in enumerate(rows)] if within else rows
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert Counts.of(rows).vocabulary.n_values == count(path).vocabulary.n_values > 200
    model = OneHot().fit(path)
    np.testing.assert_allclose(
        model.pairwise_distances(rows), OneHot().fit(rows).pairwise_distances(rows), atol=1e-12
    )


@pytest.mark.parametrize(
    ("log", "data", "name"),
    [
        ("t/_delta_log/0.json", "t", "Delta"),
        ("t/_delta_log/0.json", "t/day=1", "Delta"),
        ("t/metadata/v1.metadata.json", "t/data", "Iceberg"),
        ("t/.hoodie/hoodie.properties", "t", "Hudi"),
    ],
)
def test_files_of_a_table_with_deleted_rows_are_not_counted(tmp_path, log, data, name):
    folder = tmp_path / data
    for path in (tmp_path / log, folder / "rows.csv"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a\nx\n")
    for source in (folder, folder / "rows.csv", folder / "*.csv"):
        with pytest.raises(ValueError, match=rf"t(/data)? belongs to a table of {name}"):
            count(source)


def test_a_folder_of_files_may_be_called_data(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows.csv").write_text("a\nx\n")
    assert count(tmp_path / "data").n == 1


@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_columns_of_one_name_are_refused(tmp_path, form):
    arrow = pytest.importorskip("pyarrow")
    package = pytest.importorskip(f"pyarrow.{form}")
    table = arrow.Table.from_arrays([[1, 2], ["u", "v"], [3, 4]], names=["a", "b", "a"])
    path = tmp_path / f"rows.{form}"
    getattr(package, {"parquet": "write_table", "feather": "write_feather"}[form])(table, path)
    with pytest.raises(ValueError, match=rf"rows.{form}: expected columns of different names"):
        read(path)
