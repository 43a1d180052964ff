"""Child processes: what reads a file that nobody vouches for, or works for long, runs in one.

A child runs one function after another and says on a pipe how each ended. It may take a limited
part of the machine's memory and can be killed at any time: it holds nothing that is not thrown
away.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from tabweave.apps.studio.files import Refused


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
        context = multiprocessing.get_context("spawn")
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
    """The reader that all studios of a process share."""
    return FileReader()


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
