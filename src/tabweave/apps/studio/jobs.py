"""Jobs: long work in a separate process, with progress, that can be cancelled.

The work reads a table, shows a sample at once, then learns from all of it and keeps what can be
asked for. The next process is started before it is needed, since loading takes longer than most
tables do.
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
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tabweave._compat import one_thread
from tabweave.apps.methods import learns_from_classes
from tabweave.apps.studio.files import Refused, Source
from tabweave.columns.kinds import aside_line
from tabweave.engines import Progress, progress_reporter
from tabweave.io.files import replacing

AT_ONCE = 2
KEPT = 12  # finished jobs; the oldest goes first
_PREVIEW_MEMORY = 2 << 30  # bytes that the first rows of a file may take
_PATIENCE = 60.0  # seconds they may take
_GLANCE = 0.05  # seconds between two looks at what they take
_RESERVED = 4 << 30  # bytes that libraries reserve and do not use
MOST_SHOWN = 100_000  # marks on a map
N_SAMPLE = 1_500  # rows of the first picture


@dataclass(frozen=True)
class Question:
    """What is asked of a table: the method, the target, and what its columns are taken for."""

    method: str = "auto"
    target: str | None = None
    kept: tuple[str, ...] = ()  # columns that take part whatever they look like
    left_out: tuple[str, ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()
    weights: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, method: str, target: str | None, columns: Mapping[str, Any]) -> Question:
        """Read the choices of the page: ``{column: {"keep": bool, "kind": str, "weight": x}}``."""
        kinds: dict[str, str] = {}
        weights: dict[str, float] = {}
        for name, chosen in columns.items():
            kind, weight = chosen.get("kind"), chosen.get("weight")
            if kind is not None and kind not in ("nominal", "ordinal", "numeric", "set"):
                raise Refused(f"column {name!r}: expected a kind of column, got {kind!r}")
            if weight is not None and not (isinstance(weight, int | float) and 0 < weight <= 1e6):
                raise Refused(
                    f"column {name!r}: expected a weight above 0, got {weight!r}; to leave the "
                    "column out, do not keep it"
                )
            kinds |= {name: kind} if kind else {}
            weights |= {name: float(weight)} if weight not in (None, 1) else {}
        kept = tuple(n for n, c in columns.items() if c.get("keep") is True)
        left_out = tuple(n for n, c in columns.items() if c.get("keep") is False and n != target)
        return cls(
            method, target, kept, left_out, tuple(kinds.items()), tuple(weights.items())
        )  # fmt: skip

    @property
    def rows(self) -> Question:
        """The part that decides how rows are read: the same for most methods."""
        return replace(self, method=self.method if learns_from_classes(self.method) else "")


@dataclass
class Job:
    """One method on one table."""

    source: Source
    question: Question
    folder: Path
    process: Any
    pipe: Any
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    state: str = "running"  # then done, failed or cancelled
    progress: Progress = field(default_factory=lambda: Progress("starting", 0.0, 1.0, ""))
    parts: set[str] = field(default_factory=set)  # what can be asked for: sample, layouts
    error: str = ""
    started: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    lock: Any = field(default_factory=threading.Lock)
    making: Any = field(default_factory=threading.RLock)  # of downloads: one at a time

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.question.method

    @property
    def target(self) -> str | None:
        """The target, if there is one."""
        return self.question.target

    def look(self) -> None:
        """Take in what the process has said so far."""
        with self.lock:
            try:
                while not self.pipe.closed and self.pipe.poll():
                    self._hear(self.pipe.recv())
            except (EOFError, OSError):
                if self.state == "running":
                    why = "the work ended without a result; was there too little memory?"
                    self._end("failed", why)
                self._leave()

    def _hear(self, said: tuple[Any, ...]) -> None:
        if said[0] == "progress":
            self.progress = said[1]
        elif said[0] == "part":
            self.parts.add(said[1])
        elif self.state == "running":
            self._end("done" if said[0] == "done" else "failed", *said[1:])

    def _end(self, state: str, error: str = "") -> None:
        error = error.replace(str(self.source.path), self.source.name)
        self.state, self.error = state, error
        self.progress = replace(self.progress, done=1.0)
        self.ended = time.monotonic()
        if state != "done":  # a map by neighbourhoods may follow what is done
            self._leave()

    def _leave(self) -> None:
        self.parts.add("layouts")  # or there will be none
        self.pipe.close()
        self.process.join(5)

    def cancel(self) -> None:
        """Stop the process; what it had written goes."""
        self.look()
        with self.lock:
            if not self.pipe.closed:
                self.process.kill()  # it holds nothing that is not thrown away
            if self.state != "running":
                return
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
            "parts": sorted(self.parts),
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
        self._spare: tuple[Any, Any] | None = None

    def warm(self) -> None:
        """Start a process that loads the library and waits for work."""
        with self._lock:
            if self._spare is None:
                self._spare = self._process()

    def _process(self) -> tuple[Any, Any]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=run, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        return process, ours

    def start(self, source: Source, question: Question) -> Job:
        """Start a job, if not too many run."""
        with self._lock:
            for job in self._jobs.values():
                job.look()
            if sum(job.state == "running" for job in self._jobs.values()) >= AT_ONCE:
                raise Refused(f"{AT_ONCE} jobs are running; wait for one, or cancel it")
            self._forget_oldest()
            folder = self._folder / secrets.token_hex(8)
            folder.mkdir()
            (process, pipe), self._spare = self._spare or self._process(), None
            try:
                pipe.send((str(source.path), question, str(folder)))
            except OSError:  # the one that waited was ended by somebody
                process, pipe = self._process()
                pipe.send((str(source.path), question, str(folder)))
            job = Job(source, question, folder, process, pipe)
            self._jobs[job.name] = job
            return job

    def _forget_oldest(self) -> None:
        ended = [job for job in self._jobs.values() if job.state != "running"]
        for job in ended[: max(0, len(self._jobs) - KEPT + 1)]:
            job.cancel()
            shutil.rmtree(job.folder, ignore_errors=True)
            del self._jobs[job.name]

    def __getitem__(self, name: str) -> Job:
        if name not in self._jobs:
            raise KeyError(f"job not found: {name!r}; it may have been discarded: run it again")
        return self._jobs[name]

    def close(self) -> None:
        """Stop everything that runs."""
        for job in self._jobs.values():
            job.cancel()
        with self._lock:
            if self._spare is not None:
                self._spare[1].close()
                self._spare[0].kill()
                self._spare[0].join(5)
                self._spare = None


# -- processes of limited memory ----------------------------------------------------------------


def begin_worker() -> None:
    """Let a process leave Ctrl-C to the server, end with it, and leave memory to the machine."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        import resource
    except ImportError:  # Windows has none
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    memory = _most_memory() + _RESERVED  # the limit counts what is reserved, used or not
    memory = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, hard))


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _most_memory() -> int:
    """Return three quarters of the machine's memory: a job may fail, the machine may not."""
    try:
        return 3 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, ValueError, OSError):
        return 4 << 30


def _resident(process: Any) -> int:
    """Return how many bytes of the machine's memory a process uses; 0 if the system hides it."""
    try:
        pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class PreviewProcess:
    """Runs short work on files in a separate process, which is kept for the next."""

    def __init__(self, memory: int = _PREVIEW_MEMORY) -> None:
        self.memory = memory
        self._pool: ProcessPoolExecutor | None = None
        self._lock = threading.Lock()

    def call(self, work: Callable[..., Any], *args: Any) -> Any:
        """Return what the work returns; refuse it if it needs too much memory or time."""
        with self._lock:
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(1, context, initializer=begin_worker)
            pool = self._pool
        late = time.monotonic() + _PATIENCE
        try:
            answer = pool.submit(work, *args)
            while not wait([answer], _GLANCE).done:
                if any(_resident(process) > self.memory for process in _processes_of(pool)):
                    self._end(pool)
                    raise MemoryError
                if time.monotonic() > late:
                    self._end(pool)
                    raise Refused("its first rows take too long to read")
            return answer.result()
        except (MemoryError, BrokenProcessPool) as error:
            if isinstance(error, BrokenProcessPool):
                self._end(pool)
            raise Refused("its first rows take too much memory for a page") from None

    def _end(self, pool: ProcessPoolExecutor) -> None:
        with self._lock:
            if self._pool is pool:
                self._pool = None
        for process in _processes_of(pool):
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)


def _processes_of(pool: ProcessPoolExecutor) -> list[Any]:
    return list((getattr(pool, "_processes", None) or {}).values())


# -- the work -----------------------------------------------------------------------------------


def read(path: str, question: Question) -> Any:
    """Return the rows of a file as a report sees them; classes to learn from are values."""
    from tabweave import Table, engines
    from tabweave.apps.report.reading import read as read_rows

    kinds = dict(question.kinds)
    if learns_from_classes(question.method) and question.target:
        kinds[question.target] = "nominal"
    table = Table.of(engines.read(path), kinds or None, rules="all")
    reading = read_rows(table, question.target)
    unknown = {*question.left_out, *question.kept} - set(reading.table.schema.names)
    if unknown:
        raise KeyError(f"expected columns of the table, got {sorted(unknown)}")
    left_out = {n: why for n, why in reading.left_out.items() if n not in question.kept}
    left_out |= dict.fromkeys(question.left_out, "is left out as you asked")
    return replace(reading, left_out=left_out)


# -- the process --------------------------------------------------------------------------------


def run(pipe: Any) -> None:
    """Wait for a job, do it and say how it goes.

    Said are ("progress", Progress), ("part", name), and once ("done",) or ("failed", why).
    """
    begin_worker()
    if not pipe.poll():  # nobody waits yet
        _load()
    try:
        path, question, folder = pipe.recv()
    except EOFError:  # never needed
        return
    try:
        _run(pipe, path, question, Path(folder))
        return
    except MemoryError:
        said = ("failed", "there is too little memory for this; try fewer columns or rows")
    except Exception as error:
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        said = ("failed", str(text) or type(error).__name__)
    try:
        pipe.send(said)
    except OSError:  # the server is gone; nobody listens
        pass


def _load() -> None:
    """Load what a job needs, by doing one."""
    from tabweave.apps.report.describe import Wishes, look_at
    from tabweave.apps.report.reading import read as read_rows

    rows = {"a": list("xyzz") * 12, "b": [float(i % 7) for i in range(48)], "c": list("pqr") * 16}
    look_at(read_rows(rows, None), "auto", Wishes(by_neighborhood=False), lambda *_: None)


def _run(pipe: Any, path: str, question: Question, folder: Path) -> None:
    from tabweave.apps.report.describe import Wishes, look_at

    report = progress_reporter(lambda progress: pipe.send(("progress", progress)), "", 1.0)
    report("reading", 0.0)
    reading = read(path, question)
    if learns_from_classes(question.method) and reading.target:
        _check_classes(reading.table[reading.target], reading.target)
    wishes = Wishes(weights=dict(question.weights), by_neighborhood=False)
    if reading.table.n_rows > 4 * N_SAMPLE:
        report("looking at a sample", 0.1)
        _keep(folder, "sample", _of_sample(reading, question, wishes))
        pipe.send(("part", "sample"))
    description, model, points = look_at(
        reading,
        question.method,
        replace(wishes, most_shown=MOST_SHOWN),
        lambda step, share: report(step, 0.15 + 0.8 * share),
    )
    if model is None:
        raise ValueError(f"no column is left to compare rows by; {aside_line(reading.left_out)}")
    report("keeping the model", 0.96)
    model.save(folder / "model.tabweave")
    _keep(folder, "description", description)
    pipe.send(("done",))
    _keep(folder, "layouts", _by_neighborhood(points))
    pipe.send(("part", "layouts"))


def _keep(folder: Path, name: str, found: dict[str, Any]) -> None:
    with replacing(folder / f"{name}.json") as part:
        part.write_text(json.dumps(found, allow_nan=False), encoding="utf-8")


def _of_sample(reading: Any, question: Question, wishes: Any) -> dict[str, Any]:
    """Return the description of some rows, under their numbers in the whole table."""
    from tabweave.apps.report.describe import look_at
    from tabweave.apps.report.reading import only_met
    from tabweave.columns.table import take_rows

    n_rows = reading.table.n_rows
    rows = np.sort(np.random.default_rng(0).choice(n_rows, N_SAMPLE, replace=False))
    some = replace(reading, table=only_met(take_rows(reading.table, rows)))
    found, _, _ = look_at(some, question.method, replace(wishes, at_once=True), lambda *_: None)
    if found["map"]:
        found["map"]["rows"] = rows[found["map"]["rows"]].tolist()
    found["neighbors"] = None  # of the sample only: not to be taken for those of the table
    return found | {"sample": {"rows": N_SAMPLE, "of": n_rows}}


def _by_neighborhood(points: Any) -> dict[str, Any]:
    from tabweave.apps.report.rows import near_layout

    with one_thread():
        found, without = near_layout(points, 0)
    return {"layouts": [found] if found else [], "without": without}


def _check_classes(data: Any, target: str) -> None:
    n_classes, n_rows = len(data.labels), len(data.codes)
    if n_classes > 100 and n_classes > n_rows / 10:
        raise ValueError(
            f"{target!r} has {n_classes:,} values in {n_rows:,} rows, too many for classes"
        )
