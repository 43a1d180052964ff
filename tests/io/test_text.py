"""The first line of a CSV file, and names and text in SQL."""

import gzip

import duckdb
import pytest

from tabweave.io.text import csv_header, sql_name, sql_text


@pytest.mark.parametrize(
    ("text", "names", "delimiter"),
    [
        ("a,b\n1,2\n", ["a", "b"], ","),
        ("\ufeffa;b,c;d\r\n", ["a", "b,c", "d"], ";"),
        ("a\tb\tc", ["a", "b", "c"], "\t"),
        ('"a,x,y"|b|c\n', ["a,x,y", "b", "c"], "|"),
        ('"a ""b""\n\nc",d\nx,1\n', ['a "b"\n\nc', "d"], ","),
        (",a\n", ["", "a"], ","),
        ("one", ["one"], ","),
    ],
)
def test_names_and_what_separates_them(tmp_path, text, names, delimiter):
    plain, packed = tmp_path / "t.csv", tmp_path / "t.csv.gz"
    plain.write_text(text, encoding="utf-8", newline="")
    packed.write_bytes(gzip.compress(text.encode()))
    assert csv_header(plain) == csv_header(packed) == (names, delimiter)


def test_a_delimiter_may_be_given(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b;c,d\n")
    assert csv_header(path, ",") == (["a;b;c", "d"], ",")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("t.csv", b"\n1\n", "the first line is empty"),
        ("t.csv", b"caf\xe9\n", "expected UTF-8, got byte 0xe9"),
        ("t.csv", b"a\0b\n", "got NUL characters"),
        ("t.csv", b"a" * 200, "longer than 100 characters"),
        ("t.csv", b'"' + b"a\n" * 100, "longer than 100 characters"),
        ("t.csv.gz", b"a,b\n", "expected a gzip file"),
        ("t.csv.gz", gzip.compress(b"a,b\n" * 999)[:-20], "expected a gzip file"),
    ],
)
def test_what_is_no_first_line_is_refused_by_name(tmp_path, name, content, why):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"t\.csv.*{why}"):
        csv_header(path, longest=100)


@pytest.mark.parametrize("text", ["plain", "it's", 'a "b"', "';--", "''"])
def test_sql_reads_back_what_was_quoted(text):
    with duckdb.connect() as connection:
        found = connection.sql(f"SELECT {sql_text(text)} AS {sql_name(text)}")
        assert found.columns == [text] and found.fetchall() == [(text,)]


def test_spark_has_a_mark_of_its_own():
    assert sql_name("a`b", "`") == "`a``b`"
