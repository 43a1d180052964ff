"""Frames on a cluster: a contract that Dask shows by threads, and Spark in the slow tests."""

import numpy as np
import pytest

from tabweave import (
    HELIC,
    Imputer,
    KModes,
    OutlierCells,
    SupervisedWeave,
    Weave,
    WeaveClassifier,
    associations,
    count,
)
from tabweave.columns import table as tables
from tabweave.engines import StreamCounts, counting, transform
from tabweave.tasks.drift import drift_report

pandas = pytest.importorskip("pandas", reason="the tests make frames of pandas")
pytest.importorskip("pyarrow", reason="the tests write Arrow files")


def made_rows(n=600):
    """Two categories that depend on a group, numbers with gaps, dates."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, n)
    price = (rng.normal(size=n) + group).round(2)
    price[rng.random(n) < 0.1] = np.nan
    return pandas.DataFrame(
        {
            "color": np.array(list("abc"))[(group + rng.integers(0, 2, n)) % 3],
            "size": np.array(list("xyz"))[(group + (rng.random(n) < 0.2)) % 3],
            "price": price,
            "day": pandas.Timestamp("2024-01-01")
            + pandas.to_timedelta(rng.integers(0, 10**5, n), unit="min"),
            "class": np.array(["u", "v", "w"])[group],
        }
    )


@pytest.fixture(scope="module")
def table():
    return made_rows()


@pytest.fixture(scope="module", params=["dask", pytest.param("spark", marks=pytest.mark.slow)])
def cluster(request, table, tmp_path_factory):
    """What makes a distributed frame of rows, and one of pandas of a distributed frame."""
    if request.param == "dask":
        frames = pytest.importorskip("dask.dataframe", reason="dask is not installed")
        return lambda rows: frames.from_pandas(rows, npartitions=4), lambda frame: frame.compute()
    session = request.getfixturevalue("spark")
    folder = tmp_path_factory.mktemp("spark")

    def distributed(rows):
        path = folder / f"{id(rows)}-{len(rows)}.parquet"
        rows.to_parquet(path, row_group_size=150)  # whose times have no zone there, either
        return session.read.parquet(str(path))

    return distributed, lambda frame: frame.toPandas()


def same(found, wanted):
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(wanted, float), rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_fit_learns_there_from_a_sample_of_flat_size(cluster, table, monkeypatch):
    """Kinds follow from the same rows as in memory, whatever the partitions are."""
    for module in (tables, counting):
        monkeypatch.setattr(module, "MAX_SAMPLED_ROWS", 100)
    rows = table.assign(constant="x")
    model = Weave().fit(cluster[0](rows))
    wanted = Weave().fit(rows)
    assert model.counts_ == wanted.counts_
    assert model.kinds() == wanted.kinds()
    assert "constant" in model.kinds().dropped


def test_a_sample_is_that_of_the_rows_in_memory(table, monkeypatch):
    frames = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    for module in (tables, counting):
        monkeypatch.setattr(module, "MAX_SAMPLED_ROWS", 100)
    source = counting.open_source(frames.from_pandas(table, npartitions=7))
    parts, n_rows = counting.sample(source, ["price"])
    sampled = pandas.concat(parts)
    assert n_rows == len(table)
    pandas.testing.assert_index_equal(sampled.index, table.index[tables.sampled_rows(len(table))])


@pytest.mark.filterwarnings("ignore")
def test_workers_transform_predict_and_fill(cluster, table):
    distributed, collected = cluster
    features, y = table.drop(columns="class"), table["class"]
    frame = distributed(features)
    model = Weave().fit(features)
    same(collected(model.transform(frame)), model.transform(features))
    classifier = WeaveClassifier().fit(features, y)
    assert collected(classifier.predict(frame))["prediction"].tolist() == list(
        classifier.predict(features)
    )
    same(collected(classifier.predict_proba(frame)), classifier.predict_proba(features))
    nearest = collected(classifier.kneighbors(frame))
    same(np.stack(nearest["distances"]), classifier.kneighbors(features).distances)
    values = features.drop(columns="day")
    imputer = Imputer().fit(distributed(values))
    filled = collected(imputer.transform(distributed(values)))
    assert not filled["price"].isna().any()
    same(filled["price"], Imputer().fit(values).transform(values)["price"])
    outliers = OutlierCells().fit(values)
    same(
        collected(outliers.score_samples(distributed(values)))["score"],
        outliers.score_samples(values),
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("centers", ["mode", "distribution"])
def test_clusters_are_those_of_memory_for_the_same_start(cluster, table, centers):
    distributed, collected = cluster
    rows = table[["color", "size", "class"]]
    init = rows.iloc[[0, 0, 9]].to_numpy()  # one of them is empty at first
    there = KModes(3, init=init, centers=centers).fit(distributed(rows))
    wanted = KModes(3, init=init, centers=centers).fit(rows)
    assert collected(there.predict(distributed(rows)))["cluster"].tolist() == list(wanted.labels_)
    np.testing.assert_array_equal(there._members, wanted._members)
    assert there.cost_ == pytest.approx(wanted.cost_)
    assert there.n_iter_ == wanted.n_iter_


@pytest.mark.filterwarnings("ignore")
def test_workers_write_vectors(cluster, table, tmp_path):
    rows = table.drop(columns="class")
    model = Weave().fit(rows)
    frame = cluster[0](rows)
    assert transform(model, frame, tmp_path / "v.parquet", keep=["color"], vector="v") == len(rows)
    found = pandas.read_parquet(tmp_path / "v.parquet")
    assert found["color"].tolist() == rows["color"].tolist()
    same(np.stack(found["v"]), model.transform(rows))
    with pytest.raises(FileExistsError, match="overwrite=True"):
        transform(model, frame, tmp_path / "v.parquet")


def test_an_error_names_partition_and_column(cluster, table):
    rows = table.assign(day=table["day"].astype(str))
    rows.loc[len(rows) - 1, "day"] = "nonsense"
    with pytest.raises(ValueError, match=r"partition \d: column 'day': .*'nonsense'"):
        count(cluster[0](rows), schema={"day": "datetime"})


@pytest.mark.filterwarnings("ignore")
def test_what_needs_all_rows_is_refused_with_a_remedy(cluster, table):
    rows = table[["color", "size", "class"]]
    with pytest.raises(TypeError, match="HELIC learns from pairs of rows"):
        HELIC().fit(cluster[0](rows), y="class")
    with pytest.raises(TypeError, match="pass some of them, as in frame"):
        WeaveClassifier().fit(cluster[0](rows), y="class")
    with pytest.raises(TypeError, match="got a frame on a cluster"):
        SupervisedWeave().fit_transform(cluster[0](rows), y="class")


@pytest.mark.filterwarnings("ignore")
def test_associations_and_drift_of_frames_elsewhere(cluster, table):
    rows = table[["color", "size", "price"]]
    frame = cluster[0](rows)
    wanted = associations(rows).frame()
    pandas.testing.assert_frame_equal(associations(frame).frame(), wanted)
    wide = rows.assign(price=3 * rows["price"])
    assert drift_report(frame, cluster[0](wide)).changed == drift_report(rows, wide).changed


def test_object_columns_may_have_a_partition_of_nothing(table):
    dask = pytest.importorskip("dask", reason="dask is not installed")
    frames = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    rows = table[["size"]].astype(object)
    rows["grade"] = pandas.Series([1, 2] * 300, dtype=object)
    rows.loc[:149] = None
    with dask.config.set({"dataframe.convert-string": False}):
        parts = (lambda i: rows.iloc[150 * i : 150 * i + 150], range(4))
        frame = frames.from_map(*parts, meta=rows[:0])
        assert count(frame) == count(rows)


def test_whole_numbers_beyond_floats_in_one_partition_are_values_in_all():
    frames = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    rows = pandas.DataFrame({"n": [1, 2, 3, 2**53 + 1], "a": list("xyxy")})
    assert count(frames.from_pandas(rows, npartitions=2)) == count(rows)


def test_a_batch_that_is_sent_again_counts_once(tmp_path):
    seen = StreamCounts(tmp_path / "counts.tabweave", columns=["color"])
    seen({"color": ["red", "blue"], "size": [1, 2]}, 0)
    seen({"color": []}, 1)
    again = StreamCounts(tmp_path / "counts.tabweave", columns=["color"])
    again({"color": ["red", "blue"]}, 0)
    again({"color": ["red"]}, 2)
    assert again.counts == count({"color": ["red", "blue", "red"]})
    assert again.last_batch == 2
    with pytest.raises(ValueError, match="column not found: 'color'"):
        again({"colour": ["red"]}, 3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_spark_names_columns_that_are_no_kind_and_reads_fields(spark, table):
    functions = pytest.importorskip("pyspark.sql.functions")
    frame = spark.createDataFrame(table[["color", "size"]]).select(
        functions.struct("color", "size").alias("of.shirt"),
        functions.create_map("color", "size").alias("all"),
    )
    found = count(frame, columns=["of.shirt.color"])
    assert found.labels == (("a", "b", "c"),)
    with pytest.raises(ValueError, match="column 'all' holds map<string,string>"):
        count(frame)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_stage_of_a_pipeline_of_spark(spark, table, tmp_path):
    ml = pytest.importorskip("pyspark.ml", reason="pyspark is not installed")
    from pyspark.ml.clustering import KMeans

    from tabweave.engines.spark import TabweaveEstimator

    rows = table[["color", "size", "price"]]
    rows.to_parquet(tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    stages = [TabweaveEstimator(embedder=Weave()), KMeans(k=3, seed=1)]
    model = ml.Pipeline(stages=stages).fit(frame)
    wanted = Weave().fit(rows).transform(rows)
    model.write().overwrite().save(str(tmp_path / "model"))
    for pipeline in (model, ml.PipelineModel.load(str(tmp_path / "model"))):
        found = pipeline.transform(frame).select("features", "prediction").collect()
        same(np.stack([row.features.toArray() for row in found]), wanted)
