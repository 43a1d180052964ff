"""Dask: the same counts and vectors as in memory, whatever happens to a worker."""

import os
import signal
import threading
import time
import uuid

import numpy as np
import pytest

from tabweave import UNTIE, Counts, OneHot, Table, count
from tabweave.engines import transform

pytest.importorskip("pyarrow", reason="the tests write Arrow files")


@pytest.fixture(scope="module")
def plain(rows):
    return rows.drop_columns(["class"])


@pytest.fixture(scope="module")
def wanted(rows, plain):
    return Counts.of(Table.of(plain, numbers="nominal"), rows["class"])


@pytest.fixture
def frame(rows):
    frames = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    return frames.from_pandas(rows.to_pandas(), npartitions=20)


def test_dask_counts_by_threads(frame, wanted):
    assert count(frame, y="class", numbers="nominal") == wanted
    few = count(frame, columns=["size", "color"], max_values=3)
    assert few == count(frame.compute(), columns=["size", "color"], max_values=3)


def test_dask_vectors_are_those_of_the_rows(frame, rows, plain):
    untie = UNTIE(n_clusters=3).fit(frame, y="class")
    expected = UNTIE(n_clusters=3).fit(plain).transform(plain)
    np.testing.assert_array_equal(untie.transform(plain), expected)
    vectors = untie.transform(frame)
    assert list(vectors.columns) == list(untie.get_feature_names_out())
    np.testing.assert_array_equal(vectors.compute().to_numpy(), expected)
    kept = transform(untie, frame, keep=["class"]).compute()
    assert kept["class"].tolist() == rows["class"].to_pylist()
    np.testing.assert_array_equal(kept.drop(columns="class").to_numpy(), expected)


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_of_two_workers_gives_the_same(cluster, frame, wanted, plain):
    assert count(frame, y="class", numbers="nominal") == wanted
    one = UNTIE(n_clusters=3).fit(frame, y="class")
    two = UNTIE(n_clusters=3).fit(plain)
    assert one.counts_ == two.counts_
    np.testing.assert_array_equal(one.transform(plain), two.transform(plain))


class Gate:
    """Lets some partitions pass; the others wait until it is opened."""

    def __init__(self, folder, passing):
        self.folder, self.passing = folder, passing

    def __call__(self, part):
        """Pass a partition on; runs in a worker."""
        (self.folder / f"arrived-{uuid.uuid4()}").touch()
        while len(self.arrived) > self.passing and not (self.folder / "open").exists():
            time.sleep(0.01)
        return part

    @property
    def arrived(self):
        return list(self.folder.glob("arrived-*"))

    def open(self):
        (self.folder / "open").touch()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_killed_in_the_middle_changes_nothing(cluster, frame, wanted, tmp_path):
    """Half of the partitions are done when one of the two processes is killed outright."""
    found, gate = [], Gate(tmp_path, passing=10)
    held = frame.map_partitions(gate, meta=frame._meta)
    run = threading.Thread(target=lambda: found.append(count(held, y="class", numbers="nominal")))
    before = {w["pid"] for w in _workers(cluster)}
    run.start()
    while len(gate.arrived) <= gate.passing:
        assert run.is_alive(), "the run was over before a worker could be killed"
        time.sleep(0.01)
    os.kill(min(before), signal.SIGKILL)
    gate.open()
    run.join(600)
    assert found == [wanted]
    assert min(before) not in {w["pid"] for w in _workers(cluster)}


def _workers(client):
    return [{"pid": pid} for pid in client.run(os.getpid).values()]


def test_dask_vectors_in_one_column(frame, plain):
    untie = UNTIE(n_clusters=3).fit(plain)
    found = transform(untie, frame, keep=["class"], vector="v").compute()
    assert list(found.columns) == ["class", "v"]
    np.testing.assert_array_equal(np.stack(found["v"]), untie.transform(plain))


def test_a_column_that_is_not_there_is_refused_before_workers_look_for_it(frame, plain):
    untie = UNTIE(n_clusters=3).fit(plain)
    with pytest.raises(ValueError, match="column not found: 'size'"):
        transform(untie, frame.drop(columns="size"))


def test_rows_sorted_by_a_column_with_new_values_are_transformed(tmp_path):
    frames = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    fitted = pandas.DataFrame({"city": ["a", "b"] * 50, "size": list("xxyy") * 25})
    rows = pandas.DataFrame({"city": ["a"] * 60 + ["c"] * 30, "size": ["x", "y"] * 45})
    model = OneHot().fit(fitted)
    with pytest.warns(UserWarning, match="column 'city': 30 of 90 values were not seen in fit"):
        expected = model.transform(rows)
    found = transform(model, frames.from_pandas(rows, npartitions=3)).compute()
    np.testing.assert_array_equal(found.to_numpy(), expected)
