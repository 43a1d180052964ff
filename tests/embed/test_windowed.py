"""Streams of any embedder: laws of memory, forgetting, checkpoints, and windows that are odd."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.utils.estimator_checks import parametrize_with_checks

from tabweave import (
    CDE,
    HELIC,
    UNICORN,
    Counts,
    NonBEND,
    OneHot,
    Schema,
    SupervisedWeave,
    Table,
    ValueMetric,
    Weave,
    Windowed,
    papers,
)
from tabweave.cluster import StreamClusterer
from tabweave.counts.counts import append

CELL = st.sampled_from(["a", "b", "c", None])
ROWS = st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=12)
WINDOWS = st.lists(ROWS, min_size=1, max_size=5)


def rows(n=60, seed=0, values=4):
    rng = np.random.default_rng(seed)
    z = rng.integers(values, size=n)
    noisy = (z + (rng.random(n) < 0.2)) % values
    return pd.DataFrame(
        {"a": [f"v{v}" for v in z], "b": [f"w{v}" for v in noisy], "c": rng.choice(list("xyz"), n)}
    )


def nominal(frame):
    return Counts.of(Table.of(frame, numbers="nominal"))


EMBEDDERS = [OneHot(), Weave(), Weave(2), ValueMetric("cos"), CDE(random_state=0)]


# -- laws ---------------------------------------------------------------------------------------


@given(WINDOWS)
def test_windows_add_up_to_all_rows(windows):
    stream = Windowed(OneHot())
    for window in windows:
        stream.partial_fit(window)
    assert stream.counts_ == Counts.of([row for window in windows for row in window])
    assert (stream.n_windows_, stream.n_rows_) == (len(windows), sum(map(len, windows)))


@given(WINDOWS, st.integers(1, 3))
def test_a_sliding_window_is_its_rows(windows, width):
    stream = Windowed(OneHot(), window=width)
    for window in windows:
        stream.partial_fit(window)
    assert stream.counts_ == Counts.of([row for window in windows[-width:] for row in window])


@given(ROWS, ROWS)
def test_subtracting_a_window_undoes_it(first, second):
    stream = Windowed(OneHot()).partial_fit(first)
    before = stream.counts_
    stream.partial_fit(second)
    assert stream.counts_ - Counts.of(second) == before


@given(WINDOWS)
def test_appending_is_adding(windows):
    total = Counts()
    for window in windows:
        table = Table.of(window)
        added = append(total, table)
        assert added == total + Counts.of(table)
        assert added.pairs.dtype == (total + Counts.of(table)).pairs.dtype
        total = added


def test_appending_with_weights_classes_and_sets():
    first = Table.of({"a": ["x", "y"], "s": [["p", "q"], ["q"]]}, {"s": "set", "a": "nominal"})
    for extra in ({"y": [0, 1]}, {"sample_weight": [1.0, 2.5]}, {}):
        base = Counts.of(first, **extra)
        assert append(base, first, **extra) == base + Counts.of(first, **extra)


def test_decay_is_weighting():
    stream = Windowed(OneHot(), decay=0.5)
    frames = [rows(seed=s) for s in range(3)]
    for frame in frames:
        stream.partial_fit(frame)
    weights = np.repeat([0.25, 0.5, 1.0], len(frames[0]))
    expected = Counts.of(pd.concat(frames), sample_weight=weights)
    assert stream.counts_.labels == expected.labels
    np.testing.assert_allclose(stream.counts_.pairs, expected.pairs)


def test_decay_zero_is_the_last_window():
    stream = Windowed(OneHot(), decay=0.0).partial_fit(rows(seed=0)).partial_fit(rows(seed=1))
    assert stream.counts_ == nominal(rows(seed=1))


def test_faded_values_are_dropped():
    stream = Windowed(OneHot(), decay=0.1).partial_fit({"a": ["old"], "b": ["x"]})
    for _ in range(12):
        stream.partial_fit({"a": ["new"], "b": ["x"]})
    assert stream.counts_.labels == (("new",), ("x",))


def test_scaled():
    counts = Counts.of(rows(), y=[0, 1] * 30)
    half = counts.scaled(0.5)
    np.testing.assert_array_equal(half.pairs, counts.pairs / 2)
    np.testing.assert_array_equal(half.class_pairs, counts.class_pairs / 2)
    assert half.n == 30.0 and counts.scaled(1) is counts and counts.scaled(0) == Counts()
    assert Counts().scaled(0.5) == Counts()
    numbers = Counts.of({"x": [1.0, 2.0, 4.0]})
    assert numbers.scaled(0.5).moments("x")[1:] == pytest.approx(numbers.moments("x")[1:])
    with pytest.raises(ValueError, match="factor"):
        counts.scaled(-1)


def test_scaled_keeps_classes_in_step_when_values_fade():
    counts = Counts.of({"a": ["x"] * 10**4 + ["y"]}, y=[0] * 10**4 + [1])
    faded = counts.scaled(1e-12) + Counts.of({"a": ["x"] * 5}, y=[0] * 5)
    again = faded.scaled(0.5)
    assert again.labels == (("x",),) and again.class_pairs.shape == (1, 2)


# -- every embedder -----------------------------------------------------------------------------


@pytest.mark.parametrize("embedder", EMBEDDERS, ids=lambda e: repr(e)[:20])
def test_same_as_all_rows_at_once(embedder):
    stream = Windowed(embedder)
    for start in (0, 20, 40):
        stream.partial_fit(rows()[start : start + 20])
    from sklearn.base import clone

    whole = clone(embedder).fit(rows())
    np.testing.assert_array_equal(
        stream.pairwise_distances(rows()), whole.pairwise_distances(rows())
    )


@pytest.mark.parametrize("embedder", EMBEDDERS, ids=lambda e: repr(e)[:20])
@pytest.mark.parametrize("options", [{"decay": 0.7}, {"window": 2}, {"refresh": 2}])
def test_resume_is_bit_identical(embedder, options, tmp_path):
    path = tmp_path / "stream.tabweave"
    stream = Windowed(embedder, **options)
    for seed in range(3):
        stream.partial_fit(rows(seed=seed))
    stream.save(path)
    again = Windowed(embedder, **options).resume(path)
    assert (again.n_windows_, again.n_rows_) == (3, 180)
    for seed in (3, 4):
        np.testing.assert_array_equal(stream.transform(rows()), again.transform(rows()))
        stream.partial_fit(rows(seed=seed))
        again.partial_fit(rows(seed=seed))
    assert stream.counts_ == again.counts_
    np.testing.assert_array_equal(stream.transform(rows()), again.transform(rows()))


def test_supervised_embedders_stream_too():
    frame, y = rows(), np.arange(60) % 2
    stream = Windowed(ValueMetric("vdm"), decay=0.9)
    stream.partial_fit(frame[:30], y[:30]).partial_fit(frame[30:], y[30:])
    assert stream.counts_.classes == (0, 1)
    own = Windowed(ValueMetric(lambda counts: [1 - np.eye(n) for n in counts.sizes]))
    own.partial_fit(frame[:30], y[:30]).partial_fit(frame[30:], y[30:])
    assert own.counts_.classes == (0, 1)
    with pytest.raises(ValueError, match="requires y"):
        Windowed(ValueMetric("vdm")).fit(frame)


def test_refresh_learns_now_and_then():
    stream = Windowed(OneHot(), refresh=2).fit({"a": ["x"]})
    stream.partial_fit({"a": ["y"]})
    assert stream.transform({"a": ["x"]}).shape == (1, 2)
    stream.partial_fit({"a": ["z"]})
    assert stream.transform({"a": ["x"]}).shape == (1, 2)
    assert stream.counts_.n == 3 and stream.embedder_.counts_.n == 2


@pytest.mark.parametrize(
    "embedder",
    [Weave(), UNICORN(), HELIC(random_state=0), NonBEND(random_state=0), papers.CKML()],
)
def test_learning_waits_until_it_is_asked_for(embedder):
    X = rows()
    y = X["a"].str[-1]
    stream, alone = Windowed(embedder).partial_fit(X, y), clone(embedder).partial_fit(X, y)
    for model in (stream, alone):
        model.partial_fit(X, y)
        assert not hasattr(model, "tables_")
        with pytest.raises(AttributeError, match=r"call learn\(\) first"):
            _ = model.tables_
        assert model.learn() is model and hasattr(model, "tables_")
    np.testing.assert_array_equal(stream.transform(X), alone.transform(X))


def test_reading_once_is_enough():
    stream = Windowed(OneHot()).fit(rows())
    table = stream.read(rows(seed=1))
    vectors = stream.partial_fit(table).transform(table)
    np.testing.assert_array_equal(vectors, stream.transform(rows(seed=1)))


# -- windows that are odd -----------------------------------------------------------------------

STREAMS = [
    Windowed(OneHot()),
    Windowed(Weave(), window=2),
    Windowed(decay=0.5),
    UNICORN(2),
    papers.UNICORN(kernels={}),
    StreamClusterer(2, random_state=0),
]


def fitted(stream):
    from sklearn.base import clone

    from tabweave.counts.couplings import kernel_family

    model = clone(stream)
    if getattr(model, "kernels", None) == {}:
        model.set_params(kernels=kernel_family([1.0], [1]))
    return model.fit(rows())


def state(model):
    embedder = vars(model).get("embedder_", model)
    counts = embedder.counts_
    return counts, model.n_windows_, embedder.transform(rows())


@pytest.mark.parametrize("stream", STREAMS, ids=lambda e: repr(e)[:30])
@pytest.mark.parametrize(
    ("window", "named"),
    [
        (rows().assign(extra="new"), "extra"),
        (rows().drop(columns="b"), "b"),
        ({**rows().to_dict("list"), "extra": ["new"] * 60}, "extra"),
        (rows().assign(c=[["x", "y"]] * 60), "c"),
        (rows().to_numpy()[:, :2], "3 features"),
    ],
    ids=["new", "missing", "new in a dict", "sets", "narrow array"],
)
def test_other_columns_are_refused_and_nothing_changes(stream, window, named):
    model = fitted(stream)
    counts, n_windows, vectors = state(model)
    with pytest.raises((ValueError, TypeError), match=named):
        model.partial_fit(window)
    after = state(model)
    assert after[0] == counts and after[1] == n_windows
    np.testing.assert_array_equal(after[2], vectors)


def test_every_kind_of_frame_is_refused_alike():
    import polars as pl
    import pyarrow as pa

    more = rows().assign(extra="new")
    records = np.array([("v0", "w0", "x", "new")], dtype=[(n, "U9") for n in more])
    for window in (pl.DataFrame(more.to_dict("list")), pa.Table.from_pandas(more), records):
        with pytest.raises(ValueError, match="extra"):
            Windowed(OneHot()).fit(rows()).partial_fit(window)


@pytest.mark.parametrize("stream", STREAMS, ids=lambda e: repr(e)[:30])
def test_a_window_without_rows_moves_only_the_position(stream):
    model = fitted(stream)
    counts, n_windows, vectors = state(model)
    model.partial_fit(rows()[:0])
    after = state(model)
    assert after[0] == counts and after[1] == n_windows + 1
    np.testing.assert_array_equal(after[2], vectors)


@pytest.mark.parametrize("stream", STREAMS, ids=lambda e: repr(e)[:30])
def test_new_values_and_all_missing(stream):
    model = fitted(stream)
    model.partial_fit(rows().assign(a="never seen"))
    gone = pd.DataFrame({name: [None] * 5 for name in "abc"}, dtype=object)
    model.partial_fit(gone)
    embedder = vars(model).get("embedder_", model)
    assert None in embedder.counts_.labels[0] and "never seen" in embedder.counts_.labels[0]
    assert np.isfinite(embedder.transform(gone)).all()


def test_a_stream_cannot_begin_without_rows():
    with pytest.raises(ValueError, match="0 sample"):
        Windowed(OneHot()).partial_fit(rows()[:0])


def test_missing_can_be_refused():
    schema = Schema({}, missing="error")
    stream = Windowed(OneHot(schema=schema)).fit(rows())
    with pytest.raises(ValueError, match=r"column 'a'.*missing"):
        stream.partial_fit(rows().assign(a=None))
    assert stream.n_windows_ == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decay": 1.5}, "'decay' parameter of Windowed"),
        ({"decay": float("nan")}, "'decay' parameter of Windowed"),
        ({"window": 0}, "'window' parameter of Windowed"),
        ({"window": 2.5}, "'window' parameter of Windowed"),
        ({"decay": 0.5, "window": 2}, "two ways to forget"),
        ({"refresh": 0}, "'refresh' parameter of Windowed"),
        ({"embedder": "weave"}, "'embedder' parameter of Windowed"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Windowed(**options).fit(rows())


# -- checkpoints --------------------------------------------------------------------------------


def test_resume_refuses_other_models(tmp_path):
    path = tmp_path / "stream.tabweave"
    Windowed(OneHot(), decay=0.5).fit(rows()).save(path)
    with pytest.raises(ValueError, match=r"decay=0\.5"):
        Windowed(OneHot(), decay=0.6).resume(path)
    with pytest.raises(ValueError, match="embedder"):
        Windowed(Weave(), decay=0.5).resume(path)
    with pytest.raises(ValueError, match="expected a UNICORN, got a Windowed"):
        UNICORN().resume(path)
    nominal(rows()).save(path)
    with pytest.raises(ValueError, match="expected a Windowed, got a Counts"):
        Windowed(OneHot(), decay=0.5).resume(path)
    path.write_bytes(b"PK half a file")
    with pytest.raises(ValueError, match="damaged"):
        Windowed(OneHot()).resume(path)


def test_leftovers_of_a_killed_writer_are_cleared(tmp_path):
    left = tmp_path / "stream.tabweave.0123.part"
    left.write_bytes(b"half")
    other = tmp_path / "other.tabweave.0123.part"
    other.write_bytes(b"half")
    Windowed(OneHot()).fit(rows()).save(tmp_path / "stream.tabweave")
    assert not left.exists() and other.exists()


WORKER = """
import sys
from pathlib import Path
import pandas as pd
from tabweave import OneHot, Windowed
path = Path(sys.argv[1])
Windowed(OneHot()).fit({"a": ["x"]}).partial_fit({"a": ["x"]})  # load what is compiled first
stream = Windowed(OneHot())
if path.exists():
    stream.resume(path)
print("ready", flush=True)
while True:
    i = stream.n_windows_ if "embedder_" in vars(stream) else 0
    stream.partial_fit({"a": [f"v{i}", f"v{i % 7}"], "b": ["x", "y"]})
    stream.save(path)
"""


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on(tmp_path):
    path = tmp_path / "stream.tabweave"
    rng = np.random.default_rng(0)
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path)], stdout=subprocess.PIPE, text=True
        )
        with process, pytest.raises(subprocess.TimeoutExpired):
            assert process.stdout.readline() == "ready\n"
            try:
                process.wait(rng.random())
            finally:
                process.kill()
    stream = Windowed(OneHot()).resume(path)
    expected = [
        {"a": v, "b": b}
        for i in range(stream.n_windows_)
        for v, b in ((f"v{i}", "x"), (f"v{i % 7}", "y"))
    ]
    assert stream.counts_ == Counts.of(expected)


# -- scikit-learn -------------------------------------------------------------------------------


@parametrize_with_checks([Windowed(OneHot())])
def test_sklearn(estimator, check):
    check(estimator)


# -- embedders that need whole rows ----------------------------------------------------------------


@pytest.mark.parametrize("embedder", [HELIC(random_state=0), NonBEND(random_state=0)])
def test_whole_rows_reach_the_embedders_that_need_them(embedder):
    X = rows(120)
    y = X["a"].str[-1]
    stream = Windowed(embedder)
    for start in range(0, 120, 40):
        stream.partial_fit(X[start : start + 40], y[start : start + 40])
    stream.partial_fit(X[:0], y[:0])
    assert (stream.n_windows_, stream.n_rows_) == (4, 120)
    whole = clone(embedder).fit(X, y)
    assert stream.counts_ == whole.counts_
    np.testing.assert_array_equal(stream.transform(X), whole.transform(X))


@pytest.mark.parametrize("how", [{"decay": 0.5}, {"window": 2}, {"refresh": 3}])
def test_embedders_of_whole_rows_cannot_forget(how):
    with pytest.raises(ValueError, match="NonBEND learns from whole rows"):
        Windowed(NonBEND(), **how).partial_fit(rows())


# -- numbers ------------------------------------------------------------------------------------


def mixed_windows(n=4, size=60):
    rng = np.random.default_rng(0)
    rows = [
        {"job": rng.choice(["cook", "judge"], size), "pay": rng.lognormal(i, 1, size)}
        for i in range(n)
    ]
    return rows, [rng.choice(["u", "v"], size) for _ in range(n)]


@pytest.mark.parametrize("embedder", [Weave(), SupervisedWeave()], ids=str)
@pytest.mark.parametrize("window", [None, 2])
def test_numbers_are_seen_through_the_bins_of_all_windows(embedder, window):
    rows, classes = mixed_windows()
    stream = Windowed(embedder, window=window)
    for part, y in zip(rows, classes, strict=True):
        stream.partial_fit(part, y)
    plain = clone(embedder).partial_fit(rows[0], classes[0])
    first = plain.counts_
    for part, y in zip(rows[1:], classes[1:], strict=True):
        plain.partial_fit(part, y)
    if window:
        early = clone(embedder).partial_fit(rows[0], classes[0]).partial_fit(rows[1], classes[1])
        assert stream.counts_ == plain.counts_ - early.counts_
    else:
        assert stream.counts_ == plain.counts_
        np.testing.assert_array_equal(stream.transform(rows[2]), plain.transform(rows[2]))
    assert stream.counts_.names == first.names
    assert np.isfinite(stream.transform(rows[3])).all()


def drawn_windows(n=4):
    """Return windows of one kind of rows; in each, a column brings one more value."""
    rng = np.random.default_rng(0)
    out = []
    for i in range(n):
        hidden = rng.integers(0, 4, 400)
        likely = rng.random((2, 400)) < 0.8
        out.append(
            {
                "a": np.where(likely[0], hidden, rng.integers(0, 4, 400)).astype(str),
                "b": np.where(likely[1], hidden % 3, rng.integers(0, 3, 400)).astype(str),
                "c": rng.integers(0, 5 + i, 400).astype(str),
                "n": hidden + rng.normal(size=400),
            }
        )
    return out


STREAMS = {
    "weave": lambda **options: Windowed(Weave(schema={"c": "nominal"}), window=2, **options),
    "components": lambda **options: Windowed(Weave(n_components=6), window=2, **options),
    "onehot": lambda **options: Windowed(OneHot(), window=2, **options),
    "unicorn": lambda **options: UNICORN(4, decay=0.3, **options),
}


def by_name(stream, rows):
    return dict(zip(stream.get_feature_names_out(), stream.transform(rows).T, strict=True))


def likeness(one, two):
    """Return the cosine of vectors whose dimensions have names, each about its mean."""
    empty = np.zeros(len(next(iter(one.values()))))
    both = [np.stack([vectors.get(n, empty) for n in one | two]) for vectors in (one, two)]
    both = [vectors - vectors.mean(axis=1, keepdims=True) for vectors in both]
    return (both[0] * both[1]).sum() / np.prod([np.linalg.norm(v) for v in both])


@pytest.mark.parametrize("name", STREAMS)
def test_vectors_of_different_windows_can_be_compared(name, tmp_path):
    windows = drawn_windows()
    if name in ("onehot", "unicorn"):
        windows = [{k: v for k, v in w.items() if k != "n"} for w in windows]
    aligned, plain = STREAMS[name](), STREAMS[name](align=False)
    before = None
    for window in windows:
        aligned.partial_fit(window), plain.partial_fit(window)
        if before is None:
            np.testing.assert_array_equal(aligned.transform(window), plain.transform(window))
        else:
            aligned.save(tmp_path / "m")  # what is to be aligned to is in the file
            resumed = STREAMS[name]().resume(tmp_path / "m")
            np.testing.assert_array_equal(resumed.transform(window), aligned.transform(window))
            assert likeness(before, by_name(aligned, windows[0])) > 0.85
        before = by_name(aligned, windows[0])
        d = pairwise_distances(plain.transform(window)[:50])
        np.testing.assert_allclose(pairwise_distances(aligned.transform(window)[:50]), d, atol=1e-6)


def readings(day, n=100):
    """Return a window of a sensor: the clock goes on, ids never repeat, one cell is a record."""
    rng = np.random.default_rng(day)
    minute = np.datetime64("2024-01-01") + np.timedelta64(day, "D") + np.arange(n).astype("m8[m]")
    return {
        "at": minute,
        "sensor": rng.choice(["a", "b"], n).tolist(),
        "message": [f"{day}-{i}" for i in range(n)],
        "load": [{"cpu": float(x)} for x in rng.normal(size=n)],
    }


def test_columns_dropped_and_records_are_none_that_are_new():
    windows = [readings(day, 200) for day in range(3)]
    stream = Windowed(Weave(), window=2)
    for window in windows:
        stream.partial_fit(window)
    assert stream.kinds().dropped == {"message": "an identifier: its values hardly repeat"}
    assert stream.counts_.n == 400
    with pytest.raises(ValueError, match=r"'new' is new: expected 'at', .*'message', 'load.cpu'"):
        stream.partial_fit(windows[0] | {"new": [1] * 200})


def test_numbers_move_on_when_old_ones_are_forgotten():
    """A stream gives what its last windows alone give."""
    stream, days = Windowed(Weave(), window=2, align=False), []
    for day in range(6):
        meter = 10.0 * day + np.random.default_rng(day).random(100)
        days.append({"meter": meter, "sensor": readings(day)["sensor"]})
        stream.partial_fit(days[-1]).learn()
    near, far, farther = (
        stream.explain({"meter": 50.0, "sensor": "a"}, {"meter": x, "sensor": "a"})["meter"]
        for x in (50.1, 51.0, 40.0)
    )
    assert 0 < near < far < farther
    last = Weave().partial_fit(days[-2]).partial_fit(days[-1])
    assert (
        stream.counts_ == last.counts_
        and stream.counts_.numbers.grids == last.counts_.numbers.grids
    )
    np.testing.assert_array_equal(stream.transform(days[0]), last.transform(days[0]))


@pytest.mark.parametrize("centre", [0.01, 0.0, -0.674, 2.0])  # within a bin, at an edge, outside
@pytest.mark.parametrize("n_columns", [1, 300])  # of many columns, bins are counted several as one
def test_a_window_within_a_bin_of_the_first_is_not_flat(centre, n_columns):
    rng = np.random.default_rng(0)
    stream = Windowed(Weave(), window=1)
    for mean, deviation in ((0, 1), (centre, 1e-3)):
        rows = {f"x{i}": rng.normal(mean, deviation, 400) for i in range(n_columns)}
        stream.partial_fit(rows)
    square = stream.pairwise_distances(rows) ** 2
    assert square[~np.eye(400, dtype=bool)].mean() == pytest.approx(n_columns, rel=0.05)
    whole = Weave().fit(rows).pairwise_distances(rows) ** 2
    np.testing.assert_allclose(square, whole, atol=1e-9)  # as if there had been no other window


@pytest.mark.parametrize("first", [[0.5], [0.5, 0.5], [np.nan], [np.nan, 0.5]])
@pytest.mark.parametrize("cls", [Weave, Windowed])
def test_numbers_count_though_the_first_window_had_one_of_them_or_none(cls, first):
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(5, 3, 400), "a": ["u"] * 400}
    stream = cls().partial_fit({"x": first, "a": ["u"] * len(first)}).partial_fit(rows)
    square = stream.pairwise_distances(rows) ** 2
    assert square[~np.eye(400, dtype=bool)].mean() == pytest.approx(1, rel=0.05)
    points = stream.transform({"x": [-1.0, 5.0, 11.0, 50.0], "a": ["u"] * 4})
    apart = np.linalg.norm(points - points[0], axis=1)
    assert (np.diff(apart) > 0.5).all()  # in their order, those beyond the others too


@pytest.mark.parametrize("options", [{"decay": 0.0}, {"decay": 0.5}, {"window": 1}])
def test_a_window_that_weighs_nothing_only_moves_the_position(options):
    first, second = rows(), rows(seed=1)
    stream = Windowed(OneHot(), **options).fit(first)
    before = stream.counts_
    stream.partial_fit(second, sample_weight=np.zeros(len(second)))
    assert stream.counts_ is before
    assert (stream.n_windows_, stream.n_rows_) == (2, 120)
