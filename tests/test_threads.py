"""Threads: no update is lost, and a reader meets the state before or after one."""

import copy
import inspect
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

import tabweave
from tabweave import (
    DistanceHierarchy,
    KModes,
    OneHot,
    SimilarityIndex,
    Weave,
    WeaveClassifier,
    Windowed,
)
from tabweave.base import Estimator
from tabweave.cluster import StreamClusterer
from tabweave.neighbors import index as index_module
from tabweave.tasks.river import RiverEmbedder
from tabweave.updates import lock_of

N_THREADS, N_EACH = 8, 12


@pytest.fixture(autouse=True)
def impatient():
    """Let threads take turns as often as they can."""
    import sys

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def in_threads(work, n=N_THREADS):
    """Run work(0), work(1), ... at once; raise what one of them raised."""
    gate = threading.Barrier(n)

    def begin(i):
        gate.wait()
        return work(i)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(begin, range(n)))


def batch(i, j, n=3):
    """Return some rows, each batch with a value of its own."""
    return {"color": [f"c{(i + j + r) % 5}" for r in range(n)], "who": [f"{i}/{j}"] * n}


def test_no_row_added_to_an_index_is_lost():
    index = SimilarityIndex(OneHot().fit(batch(0, 0))).fit(batch(0, 0), ids=["a", "b", "c"])

    def add(i):
        for j in range(N_EACH):
            index.add(batch(i, j), ids=[f"{i} {j} {r}" for r in range(3)])
            if j % 4 == 3:
                index.remove([f"{i} {j} 0"])

    in_threads(add)
    assert len(index) == 3 + N_THREADS * (3 * N_EACH - N_EACH // 4)
    assert len(set(index.ids_.tolist())) == len(index)


@pytest.mark.parametrize(
    "make",
    [
        Weave,
        OneHot,
        lambda: Weave(schema={"color": "nominal", "who": "nominal"}),
        DistanceHierarchy,
        lambda: Windowed(OneHot()),
    ],
)
def test_no_batch_given_to_partial_fit_is_lost(make):
    model = make()  # the first batch is a race, too

    def learn(i):
        for j in range(N_EACH):
            model.partial_fit(batch(i, j))

    in_threads(learn)
    assert model.counts_.n == 3 * N_THREADS * N_EACH
    if isinstance(model, Windowed):
        assert model.n_windows_ == N_THREADS * N_EACH and model.n_rows_ == model.counts_.n


def test_no_batch_of_clusters_or_neighbours_is_lost():
    modes, votes = KModes(2, random_state=0), WeaveClassifier(3, n_validation=20)
    streams = StreamClusterer(2, embedder=Windowed(OneHot()), n_init=1, random_state=0)
    river = RiverEmbedder(OneHot(), window_size=4)
    modes.fit(batch(0, 0))

    def learn(i):
        for j in range(4):
            modes.partial_fit(batch(i, j))
            votes.partial_fit(batch(i, j), ["a", "b", "a"], ids=[f"{i} {j} {r}" for r in range(3)])
            streams.partial_fit(batch(i, j))
            for row in range(3):
                river.learn_one({"color": f"c{row}"})

    in_threads(learn)
    river.flush()
    assert modes._members.sum() == 2 * 3 * (4 * N_THREADS + 1)  # columns, rows, batches
    assert len(votes._stored.ids) == len(votes._targets) == votes.embedder_.counts_.n == 96
    assert streams.n_windows_ == 4 * N_THREADS and streams.embedder_.counts_.n == 96
    assert river.model.counts_.n == 96


def test_every_update_of_every_estimator_waits_for_the_others():
    """What an estimator of ours has of these methods is under its lock."""
    updates = ("fit", "partial_fit", "fit_counts", "learn", "add", "remove", "forget")
    kinds = [getattr(tabweave, name) for name in tabweave.__all__] + [StreamClusterer]
    ours = [kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, Estimator)]
    found = [
        f"{kind.__name__}.{name}"
        for kind in ours
        for name in updates
        if hasattr(kind, name) and not hasattr(getattr(kind, name), "__wrapped__")
    ]
    assert len(ours) > 20
    assert not found


def test_readers_meet_the_rows_before_or_after_an_update(monkeypatch):
    monkeypatch.setattr(index_module, "FEW_CHANGES", 0)  # tombstones are swept again and again
    colors = [f"c{i % 5}" for i in range(60)]
    index = SimilarityIndex(OneHot()).fit(
        {"color": colors}, ids=[f"{c} {i}" for i, c in enumerate(colors)]
    )
    done = threading.Event()

    def change():
        for i in range(60, 160):
            index.add({"color": [f"c{i % 5}"]}, ids=[f"c{i % 5} {i}"])
            index.remove([f"c{(i - 60) % 5} {i - 60}"])

    def ask():
        n = 0
        while not done.is_set() or not n:
            ids, distances, _ = index.query({"color": ["c0", "c3"]}, 5)
            assert (distances == 0).all()
            assert [{i.split()[0] for i in line} for line in ids.tolist()] == [{"c0"}, {"c3"}]
            only = index.query({"color": "c0"}, 5, where={"color": "c2"})
            assert {i.split()[0] for i in only.ids[0].tolist()} == {"c2"}
            n += 1
        return n

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(ask) for _ in range(3)]
        try:
            change()
        finally:
            done.set()
        assert all(reader.result() for reader in readers)
    assert len(index) == 60


def test_a_model_learns_from_all_rows_and_reads_while_others_come():
    model, rows = Weave(), batch(0, 0)
    model.fit(rows)
    done = threading.Event()

    def read():
        n = 0
        while not done.is_set() or not n:
            vectors, names = model.transform(rows), model.get_feature_names_out()
            assert np.isfinite(vectors).all() and len(names)
            model.explain(["c0", "0/0"], ["c1", "0/0"])
            n += 1
        return n

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for j in range(1, 40):
                model.partial_fit(batch(1, j))
        finally:
            done.set()
        assert all(reader.result() for reader in readers)
    again = Weave().fit_counts(model.counts_)
    np.testing.assert_array_equal(model.transform(rows), again.transform(rows))


def test_filters_of_other_threads_do_not_mix_with_ours():
    rows = {"a": [str(i % 7) for i in range(700)], "b": [str(i // 100) for i in range(700)]}
    index = SimilarityIndex(OneHot(), backend="graph").fit(rows)

    def ask(i):
        some = {"a": [str(i % 7), str((i + 1) % 7), str((i + 2) % 7)]}
        for _ in range(20):
            ids = index.query({"a": "0", "b": "0"}, 5, where=some).ids[0]
            assert {rows["a"][j] for j in ids.tolist()} <= set(some["a"])

    in_threads(ask)


def test_a_lock_is_no_part_of_a_model(tmp_path):
    model = Weave().fit(batch(0, 0))
    with lock_of(model):
        model.save(tmp_path / "model")
        copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), clone(model)]
        copies.append(tabweave.load(tmp_path / "model"))
    assert not any("lock" in name for name in vars(model))
    assert len({id(lock_of(one)) for one in [model, *copies]}) == 5
