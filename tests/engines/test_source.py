"""Source: what types hold, reading ahead, and errors that name it."""

import threading

import pytest

from tabweave import count
from tabweave._compat import prefetched
from tabweave.engines.source import Source, errors_naming, family


@pytest.mark.parametrize(
    ("kind", "held"),
    [
        ("VARCHAR", "text"), ("string", "text"),
        ("dictionary<values=string, indices=int32>", "text"),
        ("BIGINT", "number"), ("double", "number"), ("DECIMAL(18,3)", "number"),
        ("dictionary<values=int64, indices=int32>", "number"),
        ("BOOLEAN", "bool"), ("timestamp[us, tz=UTC]", "datetime"), ("DATE", "datetime"),
        ("list<item: string>", "set"), ("VARCHAR[]", "set"), ('"NULL"', "null"), ("BLOB", "blob"),
        ("DATE[]", "set"), ("TIMESTAMP[3]", "set"), ("TIMESTAMP WITH TIME ZONE[]", "set"),
        ("date32[day]", "datetime"), ("time64[us]", "datetime"), ("duration[ns]", "datetime"),
    ],
)  # fmt: skip
def test_types_of_every_library_fall_into_families(kind, held):
    assert family(kind) == held


def test_items_are_fetched_one_ahead_and_errors_come_through():
    def items():
        yield 1
        yield 2
        raise OSError("gone")

    stream = prefetched(items())
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(OSError, match="gone"):
        next(stream)


def test_a_reader_that_stops_early_ends_the_thread():
    closed = threading.Event()

    def items():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    stream = prefetched(items())
    next(stream)
    stream.close()
    assert closed.is_set()


def test_errors_of_libraries_name_the_source_and_others_pass():
    import duckdb

    with pytest.raises(ValueError, match=r"^rows\.csv: .*nope"), errors_naming("rows.csv"):
        duckdb.sql("SELECT nope")
    with pytest.raises(KeyError), errors_naming("rows.csv"):
        raise KeyError("mine")


def test_columns_are_chosen_by_name():
    source = Source("rows", {"a": "", "b": "", "c": ""})
    assert source.choose() == ["a", "b", "c"] and source.choose(["c", "a"], "c") == ["a", "c"]
    with pytest.raises(
        ValueError, match="rows: column not found: 'd'; the columns are 'a', 'b', 'c'"
    ):
        source.choose(["d"])
    with pytest.raises(ValueError, match="gives 'a' a type, which works for text files only"):
        source.retyped({"a": "VARCHAR"})


def test_a_column_named_as_a_field_of_another_is_read():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"s": [{"p": "x"}, {"p": "y"}], "a": ["u", "v"], "a.b": ["k", "l"]})
    assert count(frame.lazy()).labels == (("x", "y"), ("u", "v"), ("k", "l"))


def test_dates_in_lists_are_sets():
    pytest.importorskip("duckdb")
    counts = count("SELECT [DATE '2024-01-01', DATE '2024-01-02'] AS days, 'x' AS b")
    assert counts.labels == (("2024-01-01", "2024-01-02"), ("x",))
