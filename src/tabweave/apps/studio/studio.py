"""What the server holds: the start folder, the files that were let in, and the jobs."""

from __future__ import annotations

import csv
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

from tabweave import datasets
from tabweave.apps.studio.files import (
    Holding,
    OpenFile,
    Refused,
    TooLarge,
    first_rows,
    stamp_of,
    suffix_of,
)
from tabweave.apps.studio.jobs import Jobs, Question, StudioJob
from tabweave.apps.studio.processes import file_reader

# Tables that come with the library, and what their classes are called.
BUILT_IN = {"titanic": "survived", "car": "rating", "nursery": "advice", "krkopt": "moves",
            "tictactoe": "x wins"}  # fmt: skip


class Studio:
    """The start folder, the files let in, and the jobs."""

    def __init__(self, start: Path, limit: int) -> None:
        self.root = start if start.is_dir() else start.parent
        self.first = None if start.is_dir() else start.name
        self.limit = limit
        self._holding = Holding.begin()
        self.folder = self._holding.folder
        self.jobs = Jobs(self.folder)
        self._files: dict[str, OpenFile] = {}
        self._previews: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._preview_lock = threading.Lock()
        self._uploaded_bytes = 0
        self._slow_threads: Any = None

    def close(self) -> None:
        """End all jobs, and leave nothing behind."""
        self.jobs.close()
        self._holding.end()

    async def run_slow(self, work: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Do what may take long in one of few threads; the others wait for short answers."""
        from anyio import CapacityLimiter, to_thread

        if self._slow_threads is None:
            self._slow_threads = CapacityLimiter(8)
        call = partial(work, *args, **named)
        return await to_thread.run_sync(call, limiter=self._slow_threads)

    def slow(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        """Mark an answer that may take long."""

        @wraps(answer)
        async def slow_answer(**named: Any) -> Any:
            return await self.run_slow(answer, **named)

        return slow_answer

    def let_in(
        self, path: Path, name: str, encoding: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Check a table, remember it, and return its columns and first rows."""
        stamp = stamp_of(path)
        try:
            preview = self._preview(path, stamp, encoding)
        except ValueError as error:
            text = str(error) if stamp else "it is no longer there; was it moved or deleted?"
            text = text.replace(str(path), name).strip().removeprefix(f"{name}: ")
            raise Refused(f"{name!r} cannot be opened: {text[:600]}") from None
        key = key or secrets.token_hex(8)
        self._files[key] = OpenFile(path, name, stamp, encoding)
        return preview | {"source": key, "name": name}

    def _preview(self, path: Path, stamp: tuple[int, ...], encoding: str | None) -> dict[str, Any]:
        """The first rows of a file as it is now, read once for all who open it."""
        key = path, stamp, encoding
        with self._preview_lock:
            if key not in self._previews:
                with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                    self._previews[key] = file_reader().call(
                        first_rows, path, encoding, Path(folder), self.limit
                    )
            return self._previews[key]

    def again(self, key: str, encoding: str | None = None) -> dict[str, Any]:
        """A table that was let in as its file is now, read in another encoding if asked."""
        file = self.file(key)
        return self.let_in(file.path, file.name, encoding or file.encoding, key)

    def built_in(self, name: str) -> dict[str, Any]:
        """Let in a table that comes with the library."""
        if name not in BUILT_IN:
            raise Refused(f"expected a table, one of {', '.join(BUILT_IN)}, got {name!r}")
        path = self.folder / f"{name}.csv"
        if not path.exists():
            data = getattr(datasets, name)()
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow([*data.columns, BUILT_IN[name]])
                writer.writerows(zip(*data.columns.values(), data.y, strict=True))
        return self.let_in(path, f"{name}.csv") | {"target": BUILT_IN[name]}

    async def take(self, request: Any, name: str) -> dict[str, Any]:
        """Write an upload to a separate file, and stop when it gets too large."""
        name = (Path(name.replace("\\", "/")).name or "upload")[-200:]
        suffix = suffix_of(name) + (".gz" if name.lower().endswith(".gz") else "")
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > self.limit:
            raise TooLarge(self.limit)
        if self._uploaded_bytes > 4 * self.limit:
            raise Refused("the limit of uploads is reached; stop the studio and start it again")
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir()
        path = folder / f"table{suffix}"
        try:
            await self._receive(request, path)
            return await self.run_slow(self.let_in, path, name)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    async def _receive(self, request: Any, path: Path) -> None:
        size = 0
        with path.open("wb") as file:
            async for block in request.stream():
                size += len(block)
                if size > self.limit:
                    raise TooLarge(self.limit)
                file.write(block)
        self._uploaded_bytes += size

    def file(self, key: str) -> OpenFile:
        """A file that was let in."""
        if key not in self._files:
            raise KeyError("this file is no longer open; open it again")
        return self._files[key]

    def start(self, key: str, question: Question) -> StudioJob:
        """Start a job on a file as it is now."""
        self.again(key)
        return self.jobs.start(self.file(key), question, self.limit)

    def finished(self, name: str) -> StudioJob:
        """A job that has something to show."""
        job = self.jobs[name]
        job.look()
        if job.state != "done":
            raise Refused(f"this job is {job.state}; there is nothing to show")
        job.source.check_current()
        return job
