"""Compiled loops: little work is done without them, all of it where no cache can be kept."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Barrier, Event, Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import tabweave
from tabweave import _compat
from tabweave._compat import eigh
from tabweave.counts import counting, spectra
from tabweave.counts.counting import DIGITS
from tabweave.space import kernels, numbers, points
from tabweave.space.scan import Copies, Nodes

SEEDS = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def ways(name, module):
    """Return a function as numba compiles it, and as NumPy does it."""
    found = getattr(module, name)
    if isinstance(found, _compat._Compiled):
        found._load()
        found = found.compiled
    return found, getattr(module, f"_{name.lstrip('_')}_plain")


def both(name, module, *args, out):
    """Run a function in both ways; return what each leaves behind."""
    results = []
    for function in ways(name, module):
        results.append(out.copy())
        function(*args, results[-1])
    return results


def searched(name, *args, shape):
    """Search in both ways, which must agree; return distances and row numbers."""
    results = []
    for function in ways(name, kernels):
        results.append((np.empty(shape), np.empty(shape, np.int64)))
        function(*args, *results[-1])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    return results[0]


def codes(rng, n, size):
    return rng.integers(0, size, n).astype(rng.choice([np.uint8, np.uint16, np.uint32]))


@given(SEEDS, st.sampled_from([np.uint32, np.int64, np.float64]))
def test_counting_is_the_same_to_the_last_bit(rng, kind):
    n, sizes = int(rng.integers(0, 50)), (int(rng.integers(1, 9)), int(rng.integers(1, 9)))
    left, right = codes(rng, n, sizes[0]), codes(rng, n, sizes[1])
    weight = (rng.random(n) * 10.0 ** rng.integers(-9, 9)).astype(kind)
    out = (rng.random(sizes[0] * sizes[1]) * 5).astype(kind)
    if kind == np.uint32:
        pair = both("_count", counting, left, right, sizes[1], out=out)
    else:
        pair = both("_count_weighted", counting, left, right, sizes[1], weight, out=out)
    np.testing.assert_array_equal(*pair)
    packed = codes(rng, n, 40).astype(np.uint16)
    np.testing.assert_array_equal(*both("_pack", counting, left, sizes[0], out=packed))


@given(SEEDS, st.sampled_from([None, np.int64, np.float64]))
def test_counting_groups_is_the_same_to_the_last_bit(rng, kind):
    sizes = rng.integers(1, 9, 3)
    n = int(rng.integers(0, 50))
    packed = np.stack([rng.integers(0, size, n) for size in sizes]).astype(np.uint16)
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    starts = np.concatenate([[0], np.cumsum(sizes[pairs[:, 0]] * sizes[pairs[:, 1]])])
    out = (rng.random(starts[-1]) * 5).astype(kind or np.uint32)
    more = () if kind is None else ((rng.random(n) * 7).astype(kind),)
    name = "_count_groups" if kind is None else "_count_groups_weighted"
    np.testing.assert_array_equal(
        *both(name, counting, packed, sizes, pairs, starts, *more, out=out)
    )
    edges = np.concatenate([[0], np.cumsum(sizes)])
    places = (packed + edges[:-1, None]).astype(np.int32)
    square = np.zeros((edges[-1], edges[-1]), np.int64)
    np.testing.assert_array_equal(*both("add_pairs", counting, places, out=square))


@given(SEEDS)
def test_sums_of_groups_are_the_same_to_the_last_bit(rng):
    sizes = [rng.integers(1, 5, rng.integers(0, 4)) for _ in range(3)]
    first = iter(np.cumsum([0, *np.concatenate(sizes)]).tolist())
    grid = counting._padded([[(next(first), int(w)) for w in own] for own in sizes])
    joint = np.array([own.prod(dtype=np.int64) for own in sizes])
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    starts = np.concatenate([[0], np.cumsum(joint[pairs[:, 0]] * joint[pairs[:, 1]])])
    histograms = rng.integers(0, 9, starts[-1]).astype(np.uint32)
    out = np.zeros((grid[:, :, 1].sum(),) * 2, np.int64)
    found = both("_add_up_groups", counting, histograms, starts, pairs, joint, grid, out=out)
    np.testing.assert_array_equal(*found)
    assert found[0].sum() == 2 * sum(
        len(sizes[g]) * len(sizes[h]) * histograms[a:b].sum()
        for (g, h), a, b in zip(pairs, starts, starts[1:], strict=False)
    )


@given(
    arrays(np.float64, st.integers(0, 30), elements=st.floats(allow_infinity=False)),
    st.sampled_from([None, np.int64, np.float64]),
)
def test_exact_moments_are_the_same_to_the_last_bit(values, kind):
    weight = (
        np.empty(0, np.int64) if kind is None else (np.arange(len(values)) % 5 / 2).astype(kind)
    )
    out = np.zeros((3, DIGITS), kind or np.int64)
    np.testing.assert_array_equal(*both("accumulate", counting, values, weight, out=out))


@given(SEEDS)
def test_sums_by_value_are_the_same_to_the_last_bit(rng):
    n, size, width = (int(rng.integers(1, most)) for most in (200, 30, 30))
    x, out = rng.normal(size=(width, n)), rng.normal(size=(3 * size, width + int(rng.integers(3))))
    passes = rng.integers(0, size, (3, n)) + size * np.arange(3)[:, None]  # each its own rows
    pair = both("_add_by_value", spectra, passes.astype(np.int32), x, out=out)
    np.testing.assert_array_equal(*pair)


@given(SEEDS, st.sampled_from([np.float32, np.float64]), st.sampled_from([np.float32, np.float64]))
def test_looking_up_is_the_same_to_the_last_bit(rng, kind, wide):
    n, width = int(rng.integers(0, 40)), int(rng.integers(1, 5))
    table, out = rng.normal(size=(7, width)).astype(wide), rng.normal(size=(n, width)).astype(kind)
    for name in ("put_rows", "add_rows"):
        np.testing.assert_array_equal(*both(name, points, codes(rng, n, 7), table, out=out))
    values = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n) * 9).round(
        int(rng.integers(4))
    )
    table = table.astype(np.float64)
    knots = np.sort(rng.normal(size=7).round(3)) + np.arange(7)
    pieces = both("put_pieces", numbers, values, knots, table, rng.normal(size=width), out=out)
    np.testing.assert_array_equal(*pieces)


@given(SEEDS, st.sampled_from([(1, False), (2, False), (2, True)]))
def test_searching_is_the_same_to_the_last_bit(rng, sums):
    n, k, n_queries = (int(rng.integers(1, most)) for most in (60, 9, 5))
    widths = rng.integers(1, 9, rng.integers(0, 5)).tolist()
    codes = [rng.integers(0, width, n) for width in widths]
    line = rng.normal(size=(int(rng.integers(0, 7)), n)).round(int(rng.integers(3)))
    nodes = Nodes.of(codes, widths, line, power=sums[0], root=sums[1], max_joint=40)
    asked = rng.random((n_queries, sum(widths))).round(1), rng.normal(size=(n_queries, len(line)))
    node_of = np.concatenate([rng.permutation(n), rng.integers(0, n, 2 * n)])
    allowed = rng.random(3 * n) < rng.choice([0.05, 0.5, 1])
    copies = Copies.of(node_of, np.unique(node_of, return_index=True)[1])
    first, plain = both("first_allowed", kernels, node_of, allowed, out=np.full(n, -1))
    np.testing.assert_array_equal(first, plain)
    out = np.empty((n_queries, n))
    np.testing.assert_array_equal(*both("all_distances", kernels, asked, nodes.arrays(), out=out))
    found = searched("scan", asked, nodes.arrays(), first, shape=(n_queries, k))
    owned = node_of, copies.starts, copies.members, allowed
    searched("expand", *found, *owned, shape=(n_queries, k))


FIT = """
import sys
import numpy as np
from tabweave import Weave
rng = np.random.default_rng(0)
rows = {f"c{i}": rng.integers(0, 4 + i, N).astype(str) for i in range(3)}
rows |= {"x": rng.normal(size=N) + rows["c0"].astype(int), "y": rng.normal(size=N)}
vectors = Weave().fit(rows).transform(rows)
print("numba" in sys.modules, float(np.abs(vectors).sum()))
"""


def fitted(n_rows, where=None, **environment):
    """Fit in a fresh process; return whether numba was loaded, a sum of the vectors, and stderr."""
    env = {**os.environ, **environment}
    if where is not None:
        env["PYTHONPATH"] = str(where)
    done = subprocess.run(
        [sys.executable, "-c", FIT.replace("N)", f"{n_rows})").replace("=N", f"={n_rows}")],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert not done.returncode, done.stderr
    return *done.stdout.split(), done.stderr


QUERY = """
import sys
from tabweave import SimilarityIndex
rows = {"a": [f"v{i % 7}" for i in range(200)], "b": [i % 13 / 2 for i in range(200)]}
index = SimilarityIndex().fit(rows)
index.query({"a": "v1", "b": 3.0}, k=5)
index.query({"a": "v1", "b": 3.0}, k=5, where={"a": "v2"})
print("numba" in sys.modules)
"""


def test_a_small_table_is_searched_without_numba():
    done = subprocess.run([sys.executable, "-c", QUERY], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_a_small_table_is_fitted_without_numba():
    assert fitted(1000)[0] == "False"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package with a cache of its own, and what it gives."""
    folder = tmp_path_factory.mktemp("package")
    source = Path(tabweave.__file__).parent
    shutil.copytree(source, folder / "tabweave", ignore=shutil.ignore_patterns("__pycache__"))
    loaded, total, errors = fitted(300_000, folder)
    assert loaded == "True" and not errors
    return folder, total


@pytest.mark.slow
def test_a_damaged_cache_is_dropped_and_reported_once(copy):
    folder, total = copy
    files = [*folder.rglob("*.nbi"), *folder.rglob("*.nbc")]
    assert files
    for damage in (lambda b: b[: len(b) // 2], lambda b: b[:5], lambda b: b""):
        for kind in (".nbi", ".nbc"):
            for file in (file for file in folder.rglob(f"*{kind}")):
                file.write_bytes(damage(file.read_bytes()))
            loaded, again, errors = fitted(300_000, folder)
            assert (loaded, again) == ("True", total)
            assert errors.count("RuntimeWarning: numba's cache in") == 1, errors
            assert fitted(300_000, folder)[2] == ""  # mended


@pytest.mark.slow
def test_a_read_only_copy_without_a_home_works(copy, tmp_path):
    """Root may write anywhere, so the folders of a cache are files here."""
    folder, total = copy
    shutil.copytree(folder, tmp_path / "p", ignore=shutil.ignore_patterns("__pycache__"))
    for room in [tmp_path / "p" / "tabweave", *(tmp_path / "p").rglob("*/")]:
        if room.is_dir() and not (room / "__pycache__").exists():
            (room / "__pycache__").write_text("in the way")
    home = tmp_path / "home"
    home.write_text("not a folder")
    nowhere = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    assert fitted(300_000, tmp_path / "p", **nowhere) == ("True", total, "")


def blas_threads():
    pools = (pool for pool in _compat._blas().info() if pool["user_api"] == "blas")
    return [pool["num_threads"] for pool in pools]


def test_blas_has_one_thread_until_the_last_one_leaves():
    before = blas_threads()
    first, second = _compat.one_blas_thread(), _compat.one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)  # threads of Python come and go in any order
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_few_products_use_one_thread_of_blas():
    before = blas_threads()
    with _compat.blas_threads(1e6):
        assert set(blas_threads()) == {1}
    with _compat.blas_threads(1e12):
        assert blas_threads() == before


def threads_of_all():
    import sklearn.cluster  # noqa: F401  has an OpenMP of its own
    from threadpoolctl import threadpool_info

    return [pool["num_threads"] for pool in threadpool_info()]


def test_two_threads_that_overlap_leave_all_their_threads_behind():
    """With threadpoolctl alone the second would save, and restore, what the first had set."""
    before = threads_of_all()
    inside, leave = Barrier(2), Event()

    def second():
        with _compat.one_thread():
            inside.wait(10)
            leave.wait(10)

    other = Thread(target=second)
    with _compat.one_thread():
        assert set(threads_of_all()) == {1}
        other.start()
        inside.wait(10)
    leave.set()
    other.join()
    assert threads_of_all() == before


def test_blas_has_its_threads_back_after_an_error():
    before = blas_threads()
    with pytest.raises(np.linalg.LinAlgError), _compat.one_blas_thread():
        np.linalg.inv(np.zeros((2, 2)))
    assert blas_threads() == before


def test_signs_are_fixed_by_the_largest_entry():
    axes = np.array([[-0.8, 0.6, 0.0, 0.5], [0.6, 0.8, 0.0, -0.5]])
    np.testing.assert_array_equal(_compat.fix_signs(axes), axes * [-1, 1, 1, 1])
    np.testing.assert_array_equal(_compat.fix_signs(-axes), axes * [-1, 1, 0, 1])
    assert _compat.fix_signs(np.zeros((0, 2))).shape == (0, 2)


def test_signs_do_not_hang_on_the_last_bit():
    """The two values of a column are equally far from their mean, but for rounding."""
    root = np.sqrt(0.5)
    for more in (-1e-15, 0, 1e-15):
        axes = np.array([[root], [-root - more]])
        assert _compat.fix_signs(axes)[0, 0] > 0 and _compat.fix_signs(-axes)[0, 0] > 0


@pytest.mark.parametrize("size", [3, 50, 100, 259, 500])
@pytest.mark.parametrize("k", [1, 2, 20])
def test_the_largest_of_equal_eigenvalues_are_found(size, k):
    k = min(k, size - 1)
    matrix = np.eye(size) - 1 / size
    values, vectors = eigh(matrix, k)
    np.testing.assert_allclose(values, np.ones(k))
    np.testing.assert_allclose(matrix @ vectors, vectors, atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-9)


LOWER = """
@njit()
def third(x):
    return x + 1

@njit()
def second(x):
    return 2 * third(x)
"""
UPPER = """
@njit()
def first(x):
    return second(x) - 1
"""


def two_modules():
    """A compiled function that calls one of another module, which calls a third there."""
    lower, upper = {"njit": _compat.njit}, {"njit": _compat.njit}
    exec(LOWER, lower)
    upper["second"] = lower["second"]
    exec(UPPER, upper)
    return upper, lower


def test_what_is_called_in_other_modules_is_compiled_with_what_it_calls():
    pytest.importorskip("numba", reason="without numba nothing is compiled")
    upper, lower = two_modules()
    assert upper["first"](3) == 7
    assert not isinstance(lower["third"], _compat._Compiled)


def test_no_thread_sees_a_function_before_all_that_it_calls(monkeypatch):
    """A function that is seen too early is compiled with names that stand for nothing yet."""
    pytest.importorskip("numba", reason="without numba nothing is compiled")
    upper, lower = two_modules()
    functions = [upper["first"], lower["second"], lower["third"]]
    compile_one = _compat._compiled

    def compiled(function, options):
        assert [f.compiled for f in functions] == [None] * 3
        return compile_one(function, options)

    monkeypatch.setattr(_compat, "_compiled", compiled)
    assert upper["first"](3) == 7
    assert all(f.compiled is not None for f in functions)
