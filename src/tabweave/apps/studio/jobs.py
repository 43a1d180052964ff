"""Jobs: long work in a process of its own, with progress, that can be cancelled.

The work reads a table, describes it, learns, and keeps what can be asked for.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tabweave.apps.methods import learns_from_classes
from tabweave.apps.studio.files import Refused, Source
from tabweave.engines import Progress, progress_reporter

AT_ONCE = 2
KEPT = 12  # finished jobs; the oldest goes first
MOST_NUMBERS = 1 << 28  # in all vectors: 2 GB
_BLOCK = 1 << 22
_PREVIEW_MEMORY = 2 << 30  # bytes that the first rows of a file may take
_PATIENCE = 60.0  # seconds they may take


@dataclass
class Job:
    """One method on one table."""

    source: Source
    method: str
    target: str | None
    folder: Path
    process: Any
    pipe: Any
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    state: str = "running"  # then done, failed or cancelled
    progress: Progress = field(default_factory=lambda: Progress("starting", 0.0, 1.0, ""))
    error: str = ""
    started: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    lock: Any = field(default_factory=threading.Lock)
    making: Any = field(default_factory=threading.RLock)  # of downloads: one at a time

    def look(self) -> None:
        """Take in what the process has said so far."""
        with self.lock:
            try:
                while self.state == "running" and self.pipe.poll():
                    self._hear(self.pipe.recv())
            except (EOFError, OSError):
                self._end("failed", "the work ended without a result; was there too little memory?")

    def _hear(self, said: tuple[Any, ...]) -> None:
        if said[0] == "progress":
            self.progress = said[1]
        else:
            self._end("done" if said[0] == "done" else "failed", *said[1:])

    def _end(self, state: str, error: str = "") -> None:
        error = error.replace(str(self.source.path), self.source.name)
        self.state, self.error = state, error
        self.progress = replace(self.progress, done=1.0)
        self.ended = time.monotonic()
        self.pipe.close()
        self.process.join(5)

    def cancel(self) -> None:
        """Stop the process; what it had written goes."""
        self.look()
        with self.lock:
            if self.state != "running":
                return
            self.process.kill()  # it holds nothing that is not thrown away
            self._end("cancelled")
        shutil.rmtree(self.folder, ignore_errors=True)

    def shown(self) -> dict[str, Any]:
        """Return what the page shows of it."""
        self.look()
        return {
            "job": self.name,
            "state": self.state,
            "step": self.progress.step,
            "done": round(self.progress.done, 3),
            "error": self.error,
            "method": self.method,
            "target": self.target,
            "file": self.source.name,
            "seconds": round((self.ended or time.monotonic()) - self.started, 1),
        }


class Jobs:
    """All jobs of one studio."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._context = multiprocessing.get_context("spawn")

    def start(self, source: Source, method: str, target: str | None) -> Job:
        """Start a job, if not too many run."""
        with self._lock:
            for job in self._jobs.values():
                job.look()
            if sum(job.state == "running" for job in self._jobs.values()) >= AT_ONCE:
                raise Refused(f"{AT_ONCE} jobs are running; wait for one, or cancel it")
            self._forget_oldest()
            folder = self._folder / secrets.token_hex(8)
            folder.mkdir()
            ours, theirs = self._context.Pipe(duplex=False)
            process = self._context.Process(
                target=run,
                args=(theirs, str(source.path), method, target, str(folder)),
                daemon=True,
            )
            process.start()
            theirs.close()
            job = Job(source, method, target, folder, process, ours)
            self._jobs[job.name] = job
            return job

    def _forget_oldest(self) -> None:
        ended = [job for job in self._jobs.values() if job.state != "running"]
        for job in ended[: max(0, len(self._jobs) - KEPT + 1)]:
            shutil.rmtree(job.folder, ignore_errors=True)
            del self._jobs[job.name]

    def __getitem__(self, name: str) -> Job:
        if name not in self._jobs:
            raise KeyError(f"there is no job {name!r}; it may have been forgotten: run it again")
        return self._jobs[name]

    def close(self) -> None:
        """Stop everything that runs."""
        for job in self._jobs.values():
            job.cancel()


# -- processes of limited memory ----------------------------------------------------------------


def begin_worker(memory: int) -> None:
    """Let a process leave Ctrl-C to the server, end with it, and take no more than some bytes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        import resource
    except ImportError:  # Windows has none
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    memory = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, hard))


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _job_memory() -> int:
    """Return three quarters of the machine's memory: a job may fail, the machine may not."""
    try:
        return 3 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, ValueError, OSError):
        return 4 << 30


class Apart:
    """Runs short work on files in a process of its own, which is kept for the next."""

    def __init__(self, memory: int = _PREVIEW_MEMORY) -> None:
        self.memory = memory
        self._pool: ProcessPoolExecutor | None = None
        self._lock = threading.Lock()

    def call(self, work: Callable[..., Any], *args: Any) -> Any:
        """Return what the work returns; refuse it if it needs too much memory or time."""
        with self._lock:
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(
                    1, context, initializer=begin_worker, initargs=(self.memory,)
                )
            pool = self._pool
        try:
            return pool.submit(work, *args).result(_PATIENCE)
        except (MemoryError, BrokenProcessPool) as error:
            if isinstance(error, BrokenProcessPool):
                self._end(pool)
            raise Refused("its first rows take too much memory for a page") from None
        except TimeoutError:
            self._end(pool)
            raise Refused("its first rows take too long to read") from None

    def _end(self, pool: ProcessPoolExecutor) -> None:
        with self._lock:
            if self._pool is pool:
                self._pool = None
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)


# -- the work -----------------------------------------------------------------------------------


def read(path: str, method: str, target: str | None) -> Any:
    """Return the rows of a file as a report sees them; classes to learn from are values."""
    from tabweave import Table, engines
    from tabweave.apps.report.reading import read as read_rows

    classes = {target: "nominal"} if learns_from_classes(method) and target else None
    return read_rows(Table.of(engines.read(path), classes), target)


def run(pipe: Any, path: str, method: str, target: str | None, folder: str) -> None:
    """Do a job and say how it goes: ("progress", Progress), then ("done",) or ("failed", why).

    Ctrl-C reaches every process of the terminal; this one ends when the server says so.
    """
    begin_worker(_job_memory())
    try:
        _run(pipe, path, method, target, Path(folder))
        said: tuple[str, ...] = ("done",)
    except MemoryError:
        said = ("failed", "there is too little memory for this; try fewer columns or rows")
    except Exception as error:
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        said = ("failed", str(text) or type(error).__name__)
    try:
        pipe.send(said)
    except OSError:  # the server is gone; nobody listens
        pass


def _run(pipe: Any, path: str, method: str, target: str | None, folder: Path) -> None:
    from tabweave.apps.report.describe import look_at

    report = progress_reporter(lambda progress: pipe.send(("progress", progress)), "", 1.0)
    report("reading", 0.0)
    reading = read(path, method, target)
    if learns_from_classes(method) and reading.target:
        _check_classes(reading.table[reading.target], reading.target)
    description, model = look_at(
        reading, method, (5, None, 0), lambda step, share: report(step, 0.9 * share)
    )
    if model is None:
        raise ValueError(
            "no column is left to compare rows by: "
            + "; ".join(f"{name!r} {why}" for name, why in reading.left_out.items())
        )
    report("keeping the vectors", 0.92)
    _keep_vectors(model, reading.features(), folder)
    model.save(folder / "model.tabweave")
    text = json.dumps(description, allow_nan=False)
    (folder / "description.json").write_text(text, encoding="utf-8")


def _check_classes(data: Any, target: str) -> None:
    n_classes, n_rows = len(data.labels), len(data.codes)
    if n_classes > 100 and n_classes > n_rows / 10:
        raise ValueError(
            f"{target!r} has {n_classes:,} values in {n_rows:,} rows, too many for classes"
        )


def _keep_vectors(model: Any, features: Any, folder: Path) -> None:
    """Write the vectors block by block, so that they are never in memory at once."""
    from tabweave.rows.table import take_rows

    n, width = features.n_rows, len(model.get_feature_names_out())
    if n * width > MOST_NUMBERS:
        raise ValueError(
            f"{n:,} rows of {width:,} dimensions are too many for a page; use the library"
        )
    out = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float64, (n, width))
    step = max(1024, _BLOCK // max(width, 1))
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        out[rows] = model.transform(take_rows(features, rows))
    out.flush()
