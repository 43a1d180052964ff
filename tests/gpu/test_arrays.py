"""The device's searches and counts: with its kernels where a device is, else with their twins."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans, kmeans_plusplus

import tabweave
from tabweave.cluster.kmeans import fitted_kmeans
from tabweave.gpu import arrays
from tabweave.space import near_pairs, scan


def has_device():
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:
        return False


needs_device = pytest.mark.skipif(not has_device(), reason="needs CuPy and a CUDA device")


@pytest.fixture(params=["stand-in", pytest.param("device", marks=needs_device)])
def device(request, monkeypatch, stand_in):
    """What stands for the device, and is asked however small the search is."""
    if request.param == "device":
        out = arrays._cuda()
    else:
        out = stand_in
        monkeypatch.setattr(arrays, "_cuda", lambda: out)
    monkeypatch.setattr(arrays, "MIN_DEVICE_PAIRS", 1)
    return out


@pytest.fixture
def cuda_array(device):
    """What makes an array on the device, or on what stands for it."""
    return type(device).array if hasattr(type(device), "array") else device.xp.asarray


def made(rng, n_nodes, widths, n_coordinates, *, power=2, root=False, copies=False):
    """Nodes with ties, and queries for all of them."""
    codes = [rng.integers(0, w, n_nodes) for w in widths]
    line = rng.normal(size=(n_coordinates, n_nodes)) * 10.0 ** rng.integers(
        -2, 3, (n_coordinates, 1)
    )
    if copies:
        line = np.round(line)
    nodes = scan.Nodes.of(codes, widths, line, power=power, root=root)
    tables = []
    for w in widths:
        table = np.round(rng.random((w, w)), 1)
        tables.append((table + table.T) * (1 - np.eye(w)))
    asked = rng.integers(0, n_nodes, 40)
    points = line[:, asked].T + (0 if copies else rng.normal(size=(40, n_coordinates)) * 0.1)
    return nodes, scan.Queries.of([c[asked] for c in codes], tables, points)


CASES = {
    "categories": ([10] * 8, 0, {}),
    "numbers": ([], 7, {}),
    "mixed": ([3, 2, 40, 7], 5, {}),
    "many values": ([3, 5000, 2], 2, {}),
    "many axes": ([3, 8], 41, {}),
    "Manhattan": ([4, 4], 9, {"power": 1}),
    "Manhattan, many axes": ([], 30, {"power": 1}),
    "roots": ([5, 6], 12, {"root": True}),
    "ties": ([2, 2, 3], 1, {"copies": True}),
    "offset": ([2, 9], 3, {"copies": True, "power": 1}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("k", [1, 10, 200])
def test_nearest_nodes_are_those_of_the_cpu(device, case, k):
    widths, n_coordinates, options = CASES[case]
    rng = np.random.default_rng(7)
    nodes, queries = made(rng, 9000, widths, n_coordinates, **options)
    expected = scan.nearest_nodes(nodes, queries, k)
    with tabweave.config_context(device="gpu"):
        distances, rows = scan.nearest_nodes(nodes, queries, k)
    np.testing.assert_array_equal(rows, expected[1])
    np.testing.assert_array_equal(distances, expected[0])


def test_rows_that_may_not_be_found_are_not(device):
    rng = np.random.default_rng(1)
    nodes, queries = made(rng, 5000, [6, 7], 3)
    first = rng.permutation(5000)
    first[rng.random(5000) < 0.3] = -1
    expected = scan.nearest_nodes(nodes, queries, 12, first)
    few = np.where(np.arange(5000) < 8, first, -1)
    expected_few = scan.nearest_nodes(nodes, queries, 12, few)
    with tabweave.config_context(device="gpu"):
        for names, (distances, rows) in ((first, expected), (few, expected_few)):
            out = scan.nearest_nodes(nodes, queries, 12, names)
            np.testing.assert_array_equal(out[1], rows)
            np.testing.assert_array_equal(out[0], distances)


@pytest.mark.parametrize("n_axes", [3, 33])
@pytest.mark.parametrize("spread", [1, 1e6])
def test_numbers_far_from_zero_lose_nothing_to_float32(device, n_axes, spread):
    rng = np.random.default_rng(3)
    line = 1.7e9 + rng.normal(size=(n_axes, 6000))  # seconds since 1970, and a second apart
    line[0] *= 1 + spread * (rng.random(6000) < 0.01)  # and some far away
    nodes = scan.Nodes.of([], [], line)
    queries = scan.Queries.of([], [], np.ascontiguousarray(line[:, :70].T))
    expected = scan.nearest_nodes(nodes, queries, 5)
    with tabweave.config_context(device="gpu"):
        out = scan.nearest_nodes(nodes, queries, 5)
    np.testing.assert_array_equal(out[1], expected[1])


@pytest.mark.parametrize("n_axes", [3, 33])
def test_queries_beyond_float32_are_left_to_the_cpu(device, n_axes):
    rng = np.random.default_rng(8)
    nodes = scan.Nodes.of([], [], rng.normal(size=(n_axes, 6000)))
    points = rng.normal(size=(70, n_axes))
    points[::7, 0] = [1e20, -1e20, 1e40, 1e100, 1e16, -1e40, 1e20, 1e20, 1e30, 1e30]
    queries = scan.Queries.of([], [], points)
    expected = scan.nearest_nodes(nodes, queries, 5)
    with tabweave.config_context(device="gpu"):
        out = scan.nearest_nodes(nodes, queries, 5)
    np.testing.assert_array_equal(out[1], expected[1])


def test_columns_of_more_values_than_two_bytes_are_searched_on_the_cpu(stand_in):
    codes = [np.arange(70_000), np.arange(70_000) % 3]
    nodes = scan.Nodes.of(codes, [70_000, 3], np.zeros((0, 70_000)))
    assert arrays.DeviceNodes.of(stand_in, nodes) is None


def test_a_search_narrows_down_and_ranks_few(stand_in):
    device, rng = stand_in, np.random.default_rng(0)
    nodes, queries = made(rng, 1 << 17, [10] * 6, 2)
    on_device = arrays.DeviceNodes.of(device, nodes)
    *_, unfinished = arrays.nearest(device, on_device, queries.values, queries.points, 10, None)
    steps = [launch[1] for launch in device.launched if launch[0] == "scan"]
    assert steps == [1024, 32, 1] or steps == [64, 2, 1] or steps[-1] == 1
    assert len(steps) <= 3
    assert not unfinished.any()


def test_too_many_at_one_distance_are_left_to_the_cpu(device, monkeypatch):
    nodes = scan.Nodes.of([np.zeros(9000, np.int64)], [2], np.zeros((0, 9000)))
    tables = [np.array([[0.0, 1.0], [1.0, 0.0]])]
    queries = scan.Queries.of([np.array([0, 1])], tables, np.zeros((2, 0)))
    with tabweave.config_context(device="gpu"):
        distances, rows = scan.nearest_nodes(nodes, queries, 3)
    np.testing.assert_array_equal(rows, [[0, 1, 2]] * 2)
    np.testing.assert_array_equal(distances, [[0.0] * 3, [1.0] * 3])


def test_an_index_answers_as_on_the_cpu(device):
    rng = np.random.default_rng(5)
    n = 600
    rows = {
        "color": rng.choice(["red", "blue", "green"], n).tolist(),
        "size": rng.choice(["S", "M", "L", None], n).tolist(),
        "price": np.round(rng.normal(50, 20, n), 1).tolist(),
    }
    index = tabweave.SimilarityIndex(tabweave.Weave()).fit(rows)
    expected = index.query(rows, k=7)
    with tabweave.config_context(device="gpu"):
        answer = tabweave.SimilarityIndex(tabweave.Weave()).fit(rows).query(rows, k=7)
    np.testing.assert_array_equal(answer.ids, expected.ids)
    np.testing.assert_array_equal(answer.distances, expected.distances)


@pytest.mark.parametrize("metric", ["Weave", "OneHot"])
def test_duplicates_are_those_of_the_cpu(device, metric, monkeypatch):
    rng = np.random.default_rng(6)
    n = 900
    names = np.array([f"{a}{b}" for a in ["smith", "jones", "brown"] for b in range(40)])
    rows = {
        "name": np.where(rng.random(n) < 0.9, rng.choice(names, n), None).tolist(),
        "city": rng.choice(["Rome", "Oslo", "Lima"], n).tolist(),
        "age": rng.integers(20, 30, n).astype(float).tolist(),
    }
    schema = {"name": "nominal", "age": "numeric"} if metric == "Weave" else "nominal"
    embedder = getattr(tabweave, metric)(schema=schema)
    limit = 1.0
    expected = tabweave.SimilarityIndex(embedder).fit(rows).duplicates(limit)
    used, near = [], near_pairs.LowerBound.near
    monkeypatch.setattr(
        near_pairs.LowerBound, "near", lambda self, *args: used.append(self.xp) or near(self, *args)
    )
    with tabweave.config_context(device="gpu"):
        pairs = tabweave.SimilarityIndex(embedder).fit(rows).duplicates(limit)
    assert len(expected[0]) > 20 and id(device.xp) in map(id, used)
    for part, expected_part in zip(pairs, expected, strict=True):
        np.testing.assert_array_equal(part, expected_part)


def test_imputed_cells_are_those_of_the_cpu(device):
    rng = np.random.default_rng(7)
    group = rng.integers(0, 4, 400)
    rows = {
        "shop": np.array(list("abcd"))[group].astype(object),
        "price": group + rng.normal(size=400),
        "month": (group + rng.integers(0, 3, 400)).astype(float),
    }
    rows["shop"][rng.random(400) < 0.2] = None
    rows["price"][rng.random(400) < 0.2] = np.nan
    expected = tabweave.Imputer().fit(rows).transform(rows)
    with tabweave.config_context(device="gpu"):
        out = tabweave.Imputer().fit(rows).transform(rows)
    for name in rows:
        np.testing.assert_array_equal(np.asarray(out[name]), np.asarray(expected[name]))


def test_predictions_are_those_of_the_cpu(device):
    rng = np.random.default_rng(8)
    group = rng.integers(0, 3, 600)
    rows = {"a": (group + rng.integers(0, 3, 600)).astype(str), "x": group + rng.normal(size=600)}
    targets = {"WeaveClassifier": np.array(list("uvw"))[group], "WeaveRegressor": rows["x"] ** 2}
    for name, y in targets.items():
        expected = getattr(tabweave, name)(random_state=0).fit(rows, y)
        with tabweave.config_context(device="gpu"):
            model = getattr(tabweave, name)(random_state=0).fit(rows, y)
            np.testing.assert_array_equal(model.predict(rows), expected.predict(rows))
            if name == "WeaveClassifier":
                found = model.predict_proba(rows), expected.predict_proba(rows)
                np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("n_rows", [1, 16, 1003])
def test_pair_tables_are_those_of_a_loop(device, n_rows):
    rng = np.random.default_rng(2)
    joint = np.array([200, 3, 224, 17, 90])
    codes = np.zeros((5, -(-n_rows // 16) * 16), np.uint8)
    for g, size in enumerate(joint):
        codes[g, :n_rows] = rng.integers(0, size, n_rows) * (rng.random(n_rows) < 0.3)
    pairs = np.stack(np.triu_indices(5, 1), axis=1)
    tables, starts = arrays.pair_tables(device, device.xp.asarray(codes), n_rows, joint, pairs)
    for (g, h), start, stop in zip(pairs, starts, starts[1:], strict=False):
        expected = np.zeros((joint[g], joint[h]), np.int64)
        np.add.at(expected, (codes[g, :n_rows], codes[h, :n_rows]), 1)
        np.testing.assert_array_equal(tables[start:stop].reshape(expected.shape), expected)


def test_counts_are_those_of_the_cpu(device):
    rng = np.random.default_rng(4)
    n = 300_000
    table = {f"c{i}": rng.integers(0, size, n) for i, size in enumerate([10, 3, 200, 250, 12, 2])}
    schema = dict.fromkeys(table, "nominal")
    expected = tabweave.count(table, schema=schema)
    with tabweave.config_context(device="gpu"):
        counts = tabweave.count(table, schema=schema)
    assert counts == expected


@pytest.mark.parametrize("k", [1, 30])
def test_nodes_that_do_not_fit_are_searched_in_blocks(stand_in, monkeypatch, k):
    monkeypatch.setattr(arrays, "_cuda", lambda: stand_in)
    monkeypatch.setattr(arrays, "MIN_DEVICE_PAIRS", 1)
    rng = np.random.default_rng(9)
    nodes, queries = made(rng, 9000, [3, 40], 4, copies=True)
    names = rng.permutation(9000)
    names[rng.random(9000) < 0.1] = -1
    expected = [scan.nearest_nodes(nodes, queries, k, first) for first in (None, names)]
    stand_in.memory = 3000 * 100
    with tabweave.config_context(device="gpu"):
        out = [scan.nearest_nodes(nodes, queries, k, first) for first in (None, names)]
    assert len(nodes.device_blocks) > 3 and "on_device" not in nodes.__dict__
    assert sum(launch == ("scan", 1) for launch in stand_in.launched) >= 8
    for (distances, rows), (expected_distances, expected_rows) in zip(out, expected, strict=True):
        np.testing.assert_array_equal(rows, expected_rows)
        np.testing.assert_array_equal(distances, expected_distances)


# -- rows that lie on a device --------------------------------------------------------------------


def resident(n=70_000, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, n)
    return {
        "shop": (group + rng.integers(0, 2, n)).astype(np.uint8),
        "month": (1 + rng.integers(0, 12, n)).astype(np.int16),
        "code": (-5 * group).astype(np.int64),
        "is_new": rng.random(n) < 0.3,
    }


def test_columns_on_a_device_are_counted_there(device, cuda_array, monkeypatch):
    rows = resident()
    expected = tabweave.count(rows, schema="nominal")
    copied = cuda_columns_copied(monkeypatch)
    with tabweave.config_context(device="gpu"):
        table = {name: cuda_array(cells) for name, cells in rows.items()}
        assert tabweave.count(table, schema="nominal") == expected
        together = np.stack([cells.astype(np.int64) for cells in rows.values()], axis=1)
        expected = tabweave.Counts.of(tabweave.Table.of(together, "nominal"))
        counts = tabweave.Counts.of(tabweave.Table.of(cuda_array(together), "nominal"))
    assert counts == expected
    assert not copied


def cuda_columns_copied(monkeypatch):
    copied, read = [], arrays.DeviceColumn.copy_on_host.func
    counted = property(lambda self: copied.append(self) or read(self))
    monkeypatch.setattr(arrays.DeviceColumn, "copy_on_host", counted)
    return copied


def test_columns_on_a_device_are_read_as_those_in_memory(device, cuda_array):
    rng = np.random.default_rng(1)
    rows = resident(500) | {"price": rng.normal(size=500), "far": rng.integers(0, 1 << 40, 500)}
    for schema in (None, {"shop": "nominal", "code": "nominal"}):
        expected = tabweave.count(rows, schema=schema)
        with tabweave.config_context(device="gpu"):
            table = {name: cuda_array(cells) for name, cells in rows.items()}
            assert tabweave.count(table, schema=schema) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["Weave", "OneHot", "CDE", "UNICORN"])
def test_rows_on_a_device_become_vectors_there(device, cuda_array, name, dtype):
    rng = np.random.default_rng(2)
    rows = resident(800) | {"price": rng.normal(size=800)}
    schema = {"shop": "nominal", "month": "nominal", "code": "nominal"}
    model = getattr(tabweave, name)(schema=schema, dtype=dtype).fit(rows)
    asked = {key: cells[::3] for key, cells in rows.items()}
    asked["month"][5] = 27  # which fit has not seen
    expected = model.transform(asked)
    with tabweave.config_context(device="gpu"):
        vectors = model.transform({key: cuda_array(cells) for key, cells in asked.items()})
    assert type(vectors) is type(device.xp.zeros(0)) and vectors.dtype == dtype
    np.testing.assert_array_equal(arrays.on_host(vectors), expected)


def test_rows_on_a_device_need_one(stand_in):
    cuda_array = stand_in.array
    with pytest.raises(TypeError, match=r"set_config\(device='gpu'\), or copy it"):
        tabweave.count({"a": cuda_array(np.arange(9))})


def test_batches_of_files_are_counted_on_the_device(device, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(3)
    group = rng.integers(0, 5, 200_000)
    letters = np.array(list("abcdefgh"))
    table = {f"c{i}": letters[(group + rng.integers(0, 3, len(group))) % 8] for i in range(4)}
    parquet.write_table(pa.table(table), tmp_path / "rows.parquet", row_group_size=50_000)
    expected = tabweave.count(tmp_path / "rows.parquet")
    counted, count = [], arrays.pair_tables
    monkeypatch.setattr(
        arrays, "pair_tables", lambda *args: counted.append(args[2]) or count(*args)
    )
    with tabweave.config_context(device="gpu"):
        assert tabweave.count(tmp_path / "rows.parquet") == expected
    assert sum(counted) == 200_000


# -- clusters ------------------------------------------------------------------------------------


def shirts(n, rng):
    group = rng.integers(0, 5, n)
    shift = (rng.random((6, n)) < 0.4) * rng.integers(0, 5, (6, n))
    table = {f"c{i}": np.array(list("abcdefg"))[(group + shift[i]) % 7] for i in range(6)}
    return table | {"size": rng.choice(["S", "M", "L"], n)}


@pytest.mark.parametrize("centers", ["mode", "medoid", "distribution", "mode_share"])
@pytest.mark.parametrize("options", [{}, {"metric": "goodall3"}, {"n_clusters": 40}])
def test_k_modes_are_those_of_the_cpu(device, centers, options):
    rows = shirts(3000, np.random.default_rng(0))
    options = {"n_clusters": 6, "n_init": 3, "centers": centers, "random_state": 0} | options
    weight = np.random.default_rng(1).integers(1, 4, 3000)
    expected = tabweave.KModes(**options).fit(rows, sample_weight=weight)
    with tabweave.config_context(device="gpu"):
        model = tabweave.KModes(**options).fit(rows, sample_weight=weight)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    assert (model.cost_, model.n_iter_) == (expected.cost_, expected.n_iter_)
    np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)


def test_k_modes_run_where_they_should(stand_in, monkeypatch):
    monkeypatch.setattr(arrays, "_cuda", lambda: stand_in)
    monkeypatch.setattr(arrays, "MIN_DEVICE_PAIRS", 1)
    rows = shirts(500, np.random.default_rng(0))
    with tabweave.config_context(device="gpu"):
        tabweave.KModes(6, n_init=2, random_state=0).fit(rows)
        assert stand_in.launched.count("assign") > 2
        stand_in.launched.clear()
        weight = np.full(500, 0.5)  # of which sums depend on the order
        tabweave.KModes(6, n_init=2, random_state=0).fit(rows, sample_weight=weight)
        assert not stand_in.launched


def test_empty_clusters_take_the_row_that_the_cpu_gives_them(device):
    rng = np.random.default_rng(2)
    rows = {"a": rng.choice(list("xy"), 400, p=[0.9, 0.1]), "b": rng.choice(list("uvw"), 400)}
    first = [["x", "u"], ["x", "u"], ["x", "u"], ["y", "w"]]
    expected = tabweave.KModes(4, init=first).fit(rows)
    with tabweave.config_context(device="gpu"):
        model = tabweave.KModes(4, init=first).fit(rows)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    assert model.cost_ == expected.cost_


@pytest.mark.parametrize("n_clusters", [2, 9])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_k_means_are_those_of_the_cpu(device, monkeypatch, n_clusters, is_weighted):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(4000, 7)) + 3 * rng.integers(0, 5, (4000, 1))
    weight = rng.integers(1, 5, 4000) if is_weighted else None
    model = KMeans(n_clusters, n_init=4, random_state=0)
    expected = clone(model).fit(points, sample_weight=weight)
    steps, settled = [], arrays.DevicePoints.settled
    monkeypatch.setattr(
        arrays.DevicePoints, "settled", lambda *args: steps.append(1) or settled(*args)
    )
    with tabweave.config_context(device="gpu"):
        out = fitted_kmeans(clone(model), points, weight)
    assert len(steps) == 4 and out.get_params() == model.get_params()
    np.testing.assert_array_equal(out.labels_, expected.labels_)
    np.testing.assert_allclose(out.cluster_centers_, expected.cluster_centers_, rtol=1e-12)
    np.testing.assert_allclose(out.inertia_, expected.inertia_, rtol=1e-12)
    np.testing.assert_array_equal(out.predict(points), expected.labels_)


def test_k_means_draw_the_starts_of_scikit_learn(device):
    rng = np.random.default_rng(4)
    points, weight = rng.normal(size=(5000, 3)), rng.random(5000)
    on_device = arrays.DevicePoints(device, points, weight)
    for seed in range(5):
        expected, _ = kmeans_plusplus(points, 12, sample_weight=weight, random_state=seed)
        out = on_device.first_centers(12, np.random.RandomState(seed))
        np.testing.assert_array_equal(arrays.on_host(out), expected)


# -- the switch ----------------------------------------------------------------------------------


def test_the_switch_is_checked_and_restored(device):
    assert tabweave.get_config() == {"device": "cpu"}
    with pytest.raises(ValueError, match="expected device to be 'cpu' or 'gpu', got 'tpu'"):
        tabweave.set_config(device="tpu")
    with tabweave.config_context(device="gpu"):
        assert tabweave.get_config() == {"device": "gpu"}
        with tabweave.config_context(device="cpu"):
            assert arrays.device() is None
    tabweave.set_config(device="gpu")
    try:
        assert tabweave.get_config() == {"device": "gpu"}
    finally:
        tabweave.set_config(device="cpu")


@pytest.mark.skipif(has_device(), reason="there is a device")
def test_without_a_device_the_error_names_the_remedy():
    expected = pytest.raises((ImportError, RuntimeError), match=r"\[gpu\]|CUDA device")
    with expected:
        tabweave.set_config(device="gpu")
    with expected, tabweave.config_context(device="gpu"):
        pass
    assert tabweave.get_config() == {"device": "cpu"}


def test_the_environment_sets_the_device():
    code = "import tabweave; print(tabweave.get_config())"
    environment = {**os.environ, "TABWEAVE_DEVICE": "gpu"}
    out = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "{'device': 'gpu'}"
