"""Names, paths and texts in SQL are read back as they were."""

import duckdb
import pytest

from tabweave.io.dialects import DIALECTS, sql_name, sql_path, sql_text


@pytest.mark.parametrize("text", ["plain", "it's", 'a "b"', "';--", "''"])
def test_sql_reads_back_what_was_quoted(text):
    with duckdb.connect() as connection:
        found = connection.sql(f"SELECT {sql_text(text)} AS {sql_name(text)}")
        assert found.columns == [text] and found.fetchall() == [(text,)]


def test_spark_has_a_mark_of_its_own():
    assert sql_name("a`b", "`") == "`a``b`"


def test_a_path_is_no_pattern_to_sql(tmp_path):
    path = tmp_path / "it's [1]*.csv"
    assert sql_path(path).endswith("/it''s [[]1][*].csv'")


def test_texts_and_numbers_of_each_dialect():
    """As the documentation of each engine writes them."""
    bigquery, duck, postgres = (DIALECTS[name] for name in ("bigquery", "duckdb", "postgres"))
    assert bigquery.text("it's \\ so\n") == r"'it\'s \\ so\x0a'"
    assert duck.text("it's \\ so") == r"'it''s \ so'"
    assert bigquery.number(float("inf")) == f"CAST('inf' AS {bigquery.types['number']})"
    assert postgres.number(-float("inf")) == f"CAST('-infinity' AS {postgres.types['number']})"
    with pytest.raises(ValueError, match="bigquery has no way"):
        bigquery.identifier("a`b")
    assert duck.identifier("a`b") == '"a`b"'
    for dialect in (bigquery, duck):
        with pytest.raises(ValueError, match="no way to write the name"):
            dialect.identifier("")
        with pytest.raises(ValueError, match="no way to write the name"):
            dialect.identifier("a\0b")
