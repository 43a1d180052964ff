"""Jobs: long work in a separate process, with progress, that can be cancelled.

The work reads a table, shows a sample at once, then learns from all of it and keeps what can be
asked for. The next process is started before it is needed, since loading takes longer than most
tables do.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import tabweave
from tabweave._compat import one_thread
from tabweave.apps.methods import learns_from_classes
from tabweave.apps.report.describe import Look, ReportOptions, look_at
from tabweave.apps.report.reading import Reading, without_unused_labels
from tabweave.apps.report.reading import read as read_rows
from tabweave.apps.report.rows import near_layout
from tabweave.apps.studio.files import OpenFile, Refused, open_table
from tabweave.columns.kinds import dropped_line
from tabweave.columns.table import Table, take_rows
from tabweave.engines.opening import read
from tabweave.engines.progress import Progress, progress_reporter
from tabweave.engines.source import Source
from tabweave.io.files import replacing
from tabweave.io.register import KINDS
from tabweave.io.store import save

# -- Child processes: what reads a file that nobody vouches for, or works for long, runs in one.
#
# A child runs one function after another and says on a pipe how each ended. It may take a limited
# part of the machine's memory and can be killed at any time: it holds nothing that is not thrown
# away.


class ChildProcess:
    """A process that waits for work; ``pipe`` brings what it says.

    Work is a function, which is passed what sends a message, and its other arguments. What it
    returns or raises arrives as ("done", result) or ("failed", reason), after its messages.

    Parameters
    ----------
    prepare : callable, optional
        What it does while nobody waits for it, such as loading what its work needs.
    """

    def __init__(self, prepare: Callable[[], Any] | None = None) -> None:
        context = process_context()
        self.pipe, other_end = context.Pipe()
        self.process = context.Process(target=_serve, args=(other_end, prepare), daemon=True)
        self.process.start()
        other_end.close()

    def start(self, work: Callable[..., Any], *args: Any) -> None:
        """Let it begin with work; raise OSError if it is gone."""
        self.pipe.send((work, args))

    def release(self) -> None:
        """Let it end when its work is done."""
        self.pipe.close()
        self.process.join(5)

    def kill(self) -> None:
        """End it now."""
        self.process.kill()
        self.process.join(5)

    def resident_bytes(self) -> int:
        """How much of the machine's memory it uses; 0 if the system hides it."""
        try:
            pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@lru_cache(maxsize=1)
def process_context() -> Any:
    """How processes are started: as copies of one that has loaded the library, where that works.

    Loading takes seconds, a copy milliseconds. The one that is copied runs nothing else.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods() or sys.platform == "darwin":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tabweave.apps.studio.jobs", "tabweave.apps.studio.rows"])
    return context


class FileReader:
    """Reads files that nobody vouches for: in a child with limits, one file at a time.

    Parameters
    ----------
    max_bytes : int, optional
        Memory that the child may use.
    max_seconds : float, optional
        Time that a file may take.
    """

    def __init__(self, max_bytes: int = 2 << 30, max_seconds: float = 60.0) -> None:
        self.max_bytes = max_bytes
        self.max_seconds = max_seconds
        self._child: ChildProcess | None = None
        self._lock = threading.Lock()

    def call(self, work: Callable[..., Any], *args: Any) -> Any:
        """What the work returns; Refused if it fails, or needs too much memory or time."""
        with self._lock:
            if self._child is None or not self._child.process.is_alive():
                self._child = ChildProcess()
            is_reusable = False
            try:
                state, answer = self._answer(self._child, work, args)
                is_reusable = self._child.resident_bytes() < self.max_bytes / 4
            except (EOFError, OSError):
                raise Refused(
                    "the process that read it ended: it is damaged, or takes too much memory"
                ) from None
            finally:
                if not is_reusable:
                    self._child.kill()
        if state == "failed":
            raise Refused(answer)
        return answer

    def _answer(self, child: ChildProcess, work: Callable[..., Any], args: Any) -> Any:
        child.start(_without_telling, work, *args)
        end = time.monotonic() + self.max_seconds
        while not child.pipe.poll(0.05):
            if child.resident_bytes() > self.max_bytes:
                raise Refused("it takes too much memory to read")
            if time.monotonic() > end:
                raise Refused("it takes too long to read")
        return child.pipe.recv()


@lru_cache(maxsize=1)
def file_reader() -> FileReader:
    """The reader of first rows that all studios of a process share."""
    return FileReader()


@lru_cache(maxsize=1)
def table_reader() -> FileReader:
    """The reader of all rows: it may take as long, and as much memory, as a job."""
    return FileReader(_usable_bytes(), max_seconds=3600.0)


# -- in the child -------------------------------------------------------------------------------


def _serve(pipe: Any, prepare: Callable[[], Any] | None) -> None:
    _limit()
    if prepare is not None and not pipe.poll():  # nobody waits yet
        prepare()
    while True:
        try:
            work, args = pipe.recv()
        except EOFError:  # no more is needed
            return
        try:
            answer = ("done", work(pipe.send, *args))
        except MemoryError:
            answer = ("failed", "there is too little memory for this; try fewer columns or rows")
        except BaseException as error:  # a panic of compiled code is no Exception
            text = error.args[0] if isinstance(error, KeyError) and error.args else error
            answer = ("failed", str(text) or type(error).__name__)
        try:
            pipe.send(answer)
        except OSError:  # nobody listens any more
            return


def _without_telling(send: Callable[[Any], None], work: Callable[..., Any], *args: Any) -> Any:
    return work(*args)


def _limit() -> None:
    """Leave Ctrl-C to the server, end with it, and leave memory to the machine."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        import resource
    except ImportError:  # Windows has none
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    # The limit counts what libraries reserve and do not use, too: some 4 GB.
    n_bytes = _usable_bytes() + (4 << 30)
    n_bytes = n_bytes if hard == resource.RLIM_INFINITY else min(n_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (n_bytes, hard))


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _usable_bytes() -> int:
    """Three quarters of the machine's memory: a job may fail, the machine may not."""
    try:
        return 3 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, ValueError, OSError):
        return 4 << 30


# -- finished jobs, kept for the next time ---------------------------------------------------------
#
# What a job has found depends on the bytes of its file, the question and this version alone. It is
# kept in the cache folder of the user, so that a table that was looked at before opens at once.

CACHE_BYTES = 2 * 2**30  # Bytes that finished jobs may take; those that were used first go first.
_KEPT_FILES = ("*.json", "*.npy", "*.npz", "*.tabweave", "*.duckdb")


def cache_folder() -> Path | None:
    """Where finished jobs are kept: ``TABWEAVE_CACHE`` (empty: nowhere), or as usual here."""
    chosen = os.environ.get("TABWEAVE_CACHE")
    if chosen is not None:
        return Path(chosen) / "studio" if chosen else None
    usual = {"win32": "LOCALAPPDATA", "darwin": ""}.get(sys.platform, "XDG_CACHE_HOME")
    by_default = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get(usual) or by_default) / "tabweave" / "studio"


def job_key(source: OpenFile, question: Any) -> str:
    """The name under which a finished job, or all rows of a file, are kept."""
    digest = hashlib.blake2b(digest_size=16)
    with source.path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    digest.update(
        repr((question, source.encoding, source.path.suffix, tabweave.__version__)).encode()
    )
    return digest.hexdigest()


def keep_finished(folder: Path, cache: Path | None, key: str) -> None:
    """Keep what a job has found; a cache that cannot be written is none."""
    if cache is None:
        return
    with suppress(OSError):
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=cache))
        try:
            _copy_kept(folder, part)
            part.rename(cache / key)
        except OSError:  # it is there already, or there is no room
            shutil.rmtree(part, ignore_errors=True)
        _discard_unused(cache)


def restore_finished(folder: Path, key: str, last: str = "layouts.json") -> bool:
    """Whether a job was kept, up to its last file; its files are then in the folder."""
    cache = cache_folder()
    kept = cache / key if cache is not None else None
    if kept is None or not (kept / last).exists():
        return False
    try:
        _copy_kept(kept, folder)
        os.utime(kept)
    except OSError:
        return False
    return True


def _copy_kept(origin: Path, folder: Path) -> None:
    for pattern in _KEPT_FILES:
        for path in origin.glob(pattern):
            shutil.copyfile(path, folder / path.name)


def _discard_unused(cache: Path) -> None:
    """Remove jobs until the others fit, and what an interrupted process left an hour ago."""
    hour = 3600.0
    for part in cache.glob(".part-*"):
        if time.time() - part.stat().st_mtime > hour:
            shutil.rmtree(part, ignore_errors=True)
    total = 0
    kept = (path for path in cache.iterdir() if not path.name.startswith("."))
    for path in sorted(kept, key=lambda path: -path.stat().st_mtime):
        total += sum(file.stat().st_size for file in path.iterdir())
        if total > CACHE_BYTES:
            shutil.rmtree(path, ignore_errors=True)


# -- jobs -----------------------------------------------------------------------------------------

SAMPLE_ROWS = 1_500  # Rows of the first picture.
MAX_MARKS = 1_000_000  # Marks of the map of all rows.


@dataclass(frozen=True)
class Question:
    """What is asked of a table: the method, the target, and what its columns are taken for."""

    method: str = "auto"
    target: str | None = None
    included: tuple[str, ...] = ()  # columns that take part whatever they look like
    left_out: tuple[str, ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()
    weights: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, method: str, target: str | None, columns: Mapping[str, Any]) -> Question:
        """Read the choices of the page: ``{column: {"keep": bool, "kind": str, "weight": x}}``."""
        kinds: dict[str, str] = {}
        weights: dict[str, float] = {}
        for name, choice in columns.items():
            kind, weight = choice.get("kind"), choice.get("weight")
            if kind is not None and kind not in KINDS:
                kinds_text = ", ".join(map(repr, KINDS))
                raise Refused(
                    f"column {name!r}: expected a kind, one of {kinds_text}, got {kind!r}"
                )
            if weight is not None and not (isinstance(weight, int | float) and 0 < weight <= 1e6):
                raise Refused(
                    f"column {name!r}: expected a weight above 0, got {weight!r}; to leave the "
                    "column out, do not keep it"
                )
            kinds |= {name: kind} if kind else {}
            weights |= {name: float(weight)} if weight not in (None, 1) else {}
        included = tuple(n for n, c in columns.items() if c.get("keep") is True)
        left_out = tuple(n for n, c in columns.items() if c.get("keep") is False and n != target)
        return cls(method, target, included, left_out, tuple(kinds.items()), tuple(weights.items()))


@dataclass
class StudioJob:
    """One method on one table."""

    source: OpenFile
    question: Question
    folder: Path
    child: ChildProcess | None  # None: it was finished before
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    state: str = "running"  # then done, failed or cancelled
    progress: Progress = field(default_factory=lambda: Progress("starting", 0.0, 1.0, ""))
    parts: set[str] = field(default_factory=set)  # what can be asked for: sample, layouts
    error: str = ""
    started: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    lock: Any = field(default_factory=threading.Lock)
    download_lock: Any = field(default_factory=threading.RLock)

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.question.method

    def look(self) -> None:
        """Take in what the process has said so far."""
        with self.lock:
            try:
                while self.child and not self.child.pipe.closed and self.child.pipe.poll():
                    self._handle_message(*self.child.pipe.recv())
            except (EOFError, OSError):
                self._handle_message(
                    "failed", "the work ended without a result; was there too little memory?"
                )

    def _handle_message(self, topic: str, content: Any) -> None:
        if topic == "progress":
            self.progress = content
        elif topic == "part":
            self.parts.add(content)
            if content == "description":  # a map by neighbourhoods follows
                self._end("done")
        else:
            if topic == "failed" and self.state == "running":
                self._end("failed", content)
            self._release()

    def _end(self, state: str, error: str = "") -> None:
        self.state = state
        self.error = error.replace(str(self.source.path), self.source.name)
        self.progress = replace(self.progress, done=1.0)
        self.ended = time.monotonic()

    def _release(self) -> None:
        self.parts.add("layouts")  # or there will be none
        if self.child is not None:
            self.child.release()

    def finish(self) -> None:
        """Take it as done: what it had found was kept."""
        self._end("done")
        self._release()

    def cancel(self) -> None:
        """Stop the process; what it had written goes."""
        self.look()
        with self.lock:
            if self.child is not None and not self.child.pipe.closed:
                self.child.kill()
            if self.state != "running":
                return
            self._end("cancelled")
            self._release()
        shutil.rmtree(self.folder, ignore_errors=True)

    def summary(self) -> dict[str, Any]:
        """What the page shows of it."""
        self.look()
        return {
            "job": self.name,
            "state": self.state,
            "step": self.progress.step,
            "done": round(self.progress.done, 3),
            "parts": sorted(self.parts),
            "error": self.error,
            "method": self.method,
            "target": self.question.target,
            "file": self.source.name,
            "seconds": round((self.ended or time.monotonic()) - self.started, 1),
        }


class Jobs:
    """All jobs of one studio: so many run at once, and so many that have ended are kept."""

    def __init__(self, folder: Path, max_running: int = 2, max_kept: int = 12) -> None:
        self._folder, self._max_running, self._max_kept = folder, max_running, max_kept
        self._jobs: dict[str, StudioJob] = {}
        self._lock = threading.Lock()
        self._spare: ChildProcess | None = None

    def warm(self) -> None:
        """Start a process that loads the library and waits for work."""
        with self._lock:
            self._spare = self._spare or ChildProcess(prepare)

    def start(self, source: OpenFile, question: Question, max_bytes: int) -> StudioJob:
        """Start a job, if not too many run; one that was finished before is not done again."""
        key = job_key(source, question)
        with self._lock:
            for job in self._jobs.values():
                job.look()
                if job.state == "done" and (job.source, job.question) == (source, question):
                    return job
            self._discard_oldest()
            folder = self._folder / secrets.token_hex(8)
            folder.mkdir()
            if restore_finished(folder, key):
                job = StudioJob(source, question, folder, None)
                job.finish()
                self._jobs[job.name] = job
                return job
            if sum(job.state == "running" for job in self._jobs.values()) >= self._max_running:
                folder.rmdir()
                raise Refused(f"{self._max_running} jobs are running; wait for one, or cancel it")
            child, self._spare = self._spare, None
            if child is None or not child.process.is_alive():
                child = ChildProcess(prepare)
            child.start(run, source, question, folder, max_bytes, cache_folder(), key)
            job = StudioJob(source, question, folder, child)
            self._jobs[job.name] = job
            return job

    def _discard_oldest(self) -> None:
        ended = [job for job in self._jobs.values() if job.state != "running"]
        for job in ended[: max(0, len(self._jobs) - self._max_kept + 1)]:
            job.cancel()
            shutil.rmtree(job.folder, ignore_errors=True)
            del self._jobs[job.name]

    def __getitem__(self, name: str) -> StudioJob:
        if name not in self._jobs:
            raise KeyError(f"job not found: {name!r}; it may have been discarded: run it again")
        return self._jobs[name]

    def close(self) -> None:
        """Stop everything that runs."""
        for job in self._jobs.values():
            job.cancel()
        with self._lock:
            if self._spare is not None:
                self._spare.kill()
                self._spare = None


# -- in the process of a job --------------------------------------------------------------------

Send = Callable[[tuple[str, Any]], None]


def prepare() -> None:
    """Load what a job needs, by doing one."""
    rows = {"a": list("xyzz") * 12, "b": [float(i % 7) for i in range(48)], "c": list("pqr") * 16}
    look_at(read_rows(rows, None), "auto", ReportOptions(by_neighborhood=False))


def run(
    send: Send,
    source: OpenFile,
    question: Question,
    folder: Path,
    max_bytes: int,
    cache: Path | None,
    key: str,
) -> None:
    """Do a job: keep rows, model, map and descriptions in its folder, and say how it goes.

    Sent are ("progress", Progress) and ("part", name).
    """
    report = progress_reporter(lambda progress: send(("progress", progress)), "", 1.0)
    report("reading", 0.0)
    reading = read_for(question, open_table(source.path, source.encoding, folder, max_bytes))
    if learns_from_classes(question.method) and reading.target:
        _check_classes(reading.table[reading.target], reading.target)
    options = ReportOptions(weights=dict(question.weights), by_neighborhood=False)
    if reading.table.n_rows > 4 * SAMPLE_ROWS:
        report("looking at a sample", 0.1)
        _keep(folder, "sample", _describe_sample(reading, question, options))
        send(("part", "sample"))
    look = look_at(
        reading,
        question.method,
        options,
        lambda step, share: report(step, 0.15 + 0.8 * share),
    )
    if look.model is None:
        raise ValueError(f"no column is left to compare rows by; {dropped_line(reading.left_out)}")
    report("keeping the model", 0.96)
    look.model.save(folder / "model.tabweave")
    save(reading.table, folder / "rows.tabweave")
    _keep(folder, "reading", {"target": reading.target, "left_out": reading.left_out})
    marks = choose_marks(look)
    _keep_marks(folder, look, marks)
    _keep(folder, "description", look.description)
    send(("part", "description"))
    with one_thread():
        drawn = np.flatnonzero(np.isin(marks, look.distinct.shown))
        layout, reason = near_layout(look.points[marks], 0)
    if layout is not None:
        np.save(folder / "layout-1.npy", np.asarray(layout["points"], np.float32))
        layout["points"] = [layout["points"][i] for i in drawn]
    _keep(folder, "layouts", {"layouts": [layout] if layout else [], "without": reason})
    keep_finished(folder, cache, key)


def choose_marks(look: Look) -> np.ndarray:
    """The distinct rows that the map draws: all, or as many at random as it can hold."""
    n_distinct = len(look.distinct.first)
    if n_distinct <= MAX_MARKS:
        return np.arange(n_distinct)
    rng = np.random.default_rng(0)
    others = np.setdiff1d(np.arange(n_distinct), look.distinct.shown)
    others = rng.choice(others, MAX_MARKS - len(look.distinct.shown), replace=False)
    return np.sort(np.append(look.distinct.shown, others))


def _keep_marks(folder: Path, look: Look, marks: np.ndarray) -> None:
    """Keep what the map draws as arrays, and which mark and cluster each row has."""
    distinct = look.distinct
    places = np.zeros((len(marks), 2), np.float32)
    places[:, : look.points.shape[1]] = look.points[marks, :2]
    mark_of = np.full(len(distinct.first), -1, np.int32)
    mark_of[marks] = np.arange(len(marks))
    arrays = {
        "rows": distinct.first[marks].astype(np.int32),
        "copies": distinct.copies[marks].astype(np.uint32),
        "clusters": look.clusters[marks].astype(np.uint8),
        "layout-0": places,
        "row_marks": mark_of[distinct.of_row],
        "row_clusters": look.clusters[distinct.of_row].astype(np.int16),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def read_for(question: Question, source: Source) -> Reading:
    """The rows of a file as a report sees them; classes to learn from are values."""
    kinds = dict(question.kinds)
    if learns_from_classes(question.method) and question.target:
        kinds[question.target] = "nominal"
    table = Table.of(read(source), kinds or None, rules="all")
    reading = read_rows(table, question.target)
    unknown = {*question.left_out, *question.included} - set(reading.table.schema.names)
    if unknown:
        raise KeyError(f"expected columns of the table, got {sorted(unknown)}")
    left_out = {n: why for n, why in reading.left_out.items() if n not in question.included}
    left_out |= dict.fromkeys(question.left_out, "is left out as you asked")
    return replace(reading, left_out=left_out)


def _keep(folder: Path, name: str, content: dict[str, Any]) -> None:
    with replacing(folder / f"{name}.json") as part:
        part.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")


def _describe_sample(
    reading: Reading, question: Question, options: ReportOptions
) -> dict[str, Any]:
    """The description of some rows, under their numbers in the whole table."""
    n_rows = reading.table.n_rows
    rows = np.sort(np.random.default_rng(0).choice(n_rows, SAMPLE_ROWS, replace=False))
    sample = replace(reading, table=without_unused_labels(take_rows(reading.table, rows)))
    picture = replace(options, first_picture=True)
    description = look_at(sample, question.method, picture).description
    if description["map"]:
        description["map"]["rows"] = rows[description["map"]["rows"]].tolist()
    description["neighbors"] = None  # of the sample only: not to be taken for the table's
    return description | {"sample": {"rows": SAMPLE_ROWS, "of": n_rows}}


def _check_classes(data: Any, target: str) -> None:
    n_classes, n_rows = len(data.labels), len(data.codes)
    if n_classes > 100 and n_classes > n_rows / 10:
        raise ValueError(
            f"{target!r} has {n_classes:,} values in {n_rows:,} rows, too many for classes"
        )
