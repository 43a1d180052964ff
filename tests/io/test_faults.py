"""Writing that fails anywhere leaves the old file whole, nothing beside it, and names the file."""

import errno
import faulthandler
import os
import signal
import warnings
from contextlib import contextmanager

import pytest

import tabweave
from tabweave import Counts, OneHot, SimilarityIndex, Table
from tabweave.apps.studio import jobs
from tabweave.engines.transform import transform

resource = pytest.importorskip("resource", reason="limits of processes are those of POSIX")

ROWS = {"color": ["red", "blue", "red", None] * 8, "size": [1.5, 2.0, 4.0, 8.0] * 8}
MODEL = OneHot(schema={"color": "nominal"}).fit(ROWS)
INDEX = SimilarityIndex(OneHot()).fit(ROWS)


def onnx(path):
    pytest.importorskip("onnx", reason="the export extra is not installed")
    tabweave.export.onnx(MODEL, path)


WRITERS = {
    "model": MODEL.save,
    "index": INDEX.save,
    "counts": Counts.of(Table.of(ROWS)).save,
    "parquet": lambda path: tabweave.export.parquet(MODEL, path),
    "onnx": onnx,
    **{
        f"vectors as {form}": lambda path, form=form: transform(
            MODEL, ROWS, path, format=form, overwrite=True
        )
        for form in ("csv", "arrow", "parquet")
    },
    "answer of a job": lambda path: jobs._keep(path.parent, path.stem, {"rows": [0.5] * 4000}),
}


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    """Writes a file that is there; gives it, and how, once what that compiles is compiled."""
    path = tmp_path / "rows.json"
    WRITERS[request.param](path)
    return path, WRITERS[request.param]


@contextmanager
def full_after(n_bytes):
    """No file grows beyond so many bytes, as on a full disk, whoever writes it."""
    _, hard = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def is_whole(path):
    return path.read_bytes() == b"old" and os.listdir(path.parent) == [path.name]


def test_a_disk_that_is_full_after_any_byte(write):
    path, save = write
    size = path.stat().st_size
    path.write_bytes(b"old")
    for n_bytes in {*range(0, size, max(1, size // 40)), 1, size - 1}:
        with pytest.raises(OSError, match=f"cannot write.*{path.name}"), full_after(n_bytes):
            save(path)
        assert is_whole(path), n_bytes
    save(path)
    assert path.stat().st_size >= size - 64  # names and times within may differ in length


@pytest.mark.parametrize("function", ["fsync", "replace", "chmod"])
def test_the_nth_call_of_the_system_fails(write, function, monkeypatch):
    path, save = write
    n_failed = 0
    while True:
        path.write_bytes(b"old")
        with monkeypatch.context() as patch:
            fail_at(patch, function, n_failed)
            try:
                save(path)
                break
            except OSError as error:
                assert error.filename == str(path) and "cannot write" in str(error)
        assert is_whole(path)
        n_failed += 1
    assert n_failed == {"fsync": 1, "replace": 1, "chmod": 2}[function]
    assert os.listdir(path.parent) == [path.name]


def fail_at(monkeypatch, name, n):
    """The nth call of a function of ``os`` fails as that of a broken disk does."""
    function, calls = getattr(os, name), iter(range(n + 1))

    def broken(*args, **options):
        if next(calls, None) == n:
            file = () if isinstance(args[0], int) else (str(args[0]),)
            raise OSError(errno.EIO, os.strerror(errno.EIO), *file)
        return function(*args, **options)

    monkeypatch.setattr(os, name, broken)


@pytest.mark.parametrize("n_before", [0, 7, 30, 90, 200, 420, 900, 2_000, 6_000, 20_000])
def test_an_allocation_that_fails(write, n_before):
    testcapi = pytest.importorskip("_testcapi", reason="only CPython can plant such an error")
    path, save = write
    size = path.stat().st_size
    path.write_bytes(b"old")

    def without_memory():
        testcapi.set_nomemory(n_before, n_before + 1)
        try:
            save(path)
        except Exception:  # MemoryError, or what compiled code of others makes of it
            return 1
        finally:
            testcapi.remove_mem_hooks()
        return 0

    status = in_a_fork(without_memory)
    assert path.read_bytes() == b"old" or abs(path.stat().st_size - size) <= 64
    if status != -signal.SIGSEGV:  # protobuf below ONNX does not survive it; the file does
        assert status in (0, 1) and os.listdir(path.parent) == [path.name]


def in_a_fork(work):
    """What a function says in a process of its own; less than zero if a signal ended it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads: those of the child are gone
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 2
    try:
        signal.alarm(30)
        faulthandler.disable()  # what ends such a process is expected
        warnings.simplefilter("ignore")
        status = work()
    finally:
        os._exit(status)
