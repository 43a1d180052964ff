"""Spark: the same counts and vectors as in memory."""

import numpy as np
import pytest

from tabweave import UNTIE, Counts, Table, count
from tabweave.engines import transform

pytest.importorskip("pyarrow", reason="the tests write Arrow files")


@pytest.fixture(scope="module")
def plain(rows):
    return rows.drop_columns(["class"])


@pytest.fixture(scope="module")
def wanted(rows, plain):
    return Counts.of(Table.of(plain, numbers="nominal"), rows["class"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_same(spark, rows, plain, wanted):
    frame = spark.createDataFrame(rows).repartition(40)  # more than are merged at once
    assert count(frame, y="class", numbers="nominal") == wanted
    untie = UNTIE(n_clusters=3).fit(frame, y="class")
    expected = UNTIE(n_clusters=3).fit(plain).transform(plain)
    np.testing.assert_array_equal(untie.transform(plain), expected)
    vectors = transform(untie, spark.createDataFrame(rows), keep=["class"]).toArrow()
    assert vectors["class"].to_pylist() == rows["class"].to_pylist()
    found = np.column_stack([vectors[n].to_numpy() for n in untie.get_feature_names_out()])
    np.testing.assert_array_equal(found, expected)
    assert count(frame, columns=["size"], max_values=3) == count(
        rows, columns=["size"], max_values=3
    )
    whole = transform(untie, spark.createDataFrame(rows), keep=["class"], vector="v").toArrow()
    np.testing.assert_array_equal(np.stack(whole["v"].to_pylist()), expected)
