"""Names, paths and texts in SQL are read back as they were."""

import duckdb
import pytest

from tabweave.io.dialects import sql_name, sql_path, sql_text


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
