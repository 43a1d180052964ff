"""Jobs: long work in a process of its own, with progress, that can be cancelled."""

from __future__ import annotations

import multiprocessing
import secrets
import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.studio import _work
from weft.studio._files import Refused, Source

AT_ONCE = 2
KEPT = 12  # finished jobs; the oldest goes first


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
    step: str = "starting"
    share: float = 0.0
    error: str = ""
    started: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    lock: Any = field(default_factory=threading.Lock)

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
            self.step, self.share = said[1], float(said[2])
        else:
            self._end("done" if said[0] == "done" else "failed", *said[1:])

    def _end(self, state: str, error: str = "") -> None:
        error = error.replace(str(self.source.path), self.source.name)
        self.state, self.error, self.share = state, error, 1.0
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
            "step": self.step,
            "done": round(self.share, 3),
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
                target=_work.run,
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
