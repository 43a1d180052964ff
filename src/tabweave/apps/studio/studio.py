"""What the server holds: the start folder, the files that were let in, and the jobs."""

from __future__ import annotations

import csv
import itertools
import secrets
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial, wraps
from pathlib import Path
from typing import Any

from tabweave.apps.studio.files import (
    Holding,
    Refused,
    Source,
    TooLarge,
    check,
    check_width,
    own_copy,
    stamp_of,
    suffix_of,
)
from tabweave.apps.studio.jobs import Job, Jobs, PreviewProcess

N_PREVIEW = 6
# Tables that come with the library, and what their classes are called.
BUILT_IN = {"titanic": "survived", "car": "rating", "nursery": "advice", "krkopt": "moves",
            "tictactoe": "x wins"}  # fmt: skip
_UPLOADS = 4  # times the limit, all uploads together
_SLOW = 8  # answers at a time that may take long: other threads are left for short ones
_previewer = PreviewProcess()  # for the first rows of all studios of a process


class Studio:
    """The start folder, the files let in, and the jobs."""

    def __init__(self, start: Path, limit: int) -> None:
        self.root = start if start.is_dir() else start.parent
        self.first = None if start.is_dir() else start.name
        self.limit = limit
        self._holding = Holding.begin()
        self.folder = self._holding.folder
        self.jobs = Jobs(self.folder)
        self.sources: dict[str, Source] = {}
        self._copies: dict[tuple[Any, ...], tuple[Path, str]] = {}
        self._copying = threading.Lock()
        self._previews: dict[tuple[Any, ...], Future[dict[str, Any]]] = {}
        self._opened: dict[str, dict[str, Any]] = {}  # columns and first rows of each
        self._taken = 0
        self._slow: Any = None

    def close(self) -> None:
        """End all jobs, and leave nothing behind."""
        self.jobs.close()
        self._holding.end()

    async def patiently(self, work: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Do what may take long in one of few threads; the others wait for short answers."""
        from anyio import CapacityLimiter, to_thread

        if self._slow is None:
            self._slow = CapacityLimiter(_SLOW)
        return await to_thread.run_sync(partial(work, *args, **named), limiter=self._slow)

    def slow(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        """Mark an answer that may take long."""

        @wraps(answer)
        async def patient(**named: Any) -> Any:
            return await self.patiently(answer, **named)

        return patient

    def let_in(
        self, path: Path, name: str, encoding: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Check a table, remember it, and return its columns and first rows."""
        own, stamp = path, stamp_of(path)
        try:
            own, seen = self._own_copy(path, encoding)
            check(own)
            found = self._first_rows(own)
        except Exception as error:
            self._drop(own, path)
            gone = "it is no longer there; was it moved or deleted?"
            text = str(error) if path.exists() else gone
            text = text.replace(str(own), name).replace(str(path), name).strip()
            text = text.removeprefix(f"{name}: ")
            raise Refused(f"{name!r} cannot be opened: {text[:600]}") from None
        key = key or secrets.token_hex(8)
        self.sources[key] = Source(own, name, path, stamp, encoding)
        self._opened[key] = found | {"source": key, "name": name, "encoding": seen}
        return self._opened[key]

    def _first_rows(self, path: Path) -> dict[str, Any]:
        """Return the first rows of a file as it is now, read once for all who open it."""
        key, mine = (path, stamp_of(path)), Future[dict[str, Any]]()
        found = self._previews.setdefault(key, mine)
        if found is mine:
            try:
                mine.set_result(_previewer.call(first_rows, path))
            except BaseException as error:
                del self._previews[key]
                mine.set_exception(error)
        return found.result()

    def again(self, key: str, encoding: str | None = None) -> dict[str, Any]:
        """Return a table that was let in as its file is now, read in another encoding if asked."""
        source = self.source(key)
        encoding = encoding or source.encoding
        if not source.is_current or encoding != source.encoding:
            self.let_in(source.origin, source.name, encoding, key)
        return self._opened[key]

    def built_in(self, name: str) -> dict[str, Any]:
        """Let in a table that comes with the library."""
        from tabweave import datasets

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

    def _own_copy(self, path: Path, encoding: str | None) -> tuple[Path, str]:
        """Return the copy of a packed or otherwise odd file, made once for all who open it."""
        key = path, stamp_of(path), encoding
        with self._copying:
            if key not in self._copies:
                self._copies[key] = own_copy(path, self.folder, self.limit, encoding)
            return self._copies[key]

    def _drop(self, own: Path, path: Path) -> None:
        """Remove the copy of a file that is refused, unless it was let in before."""
        with self._copying:
            let_in = {source.path for source in self.sources.values()}
            if own in let_in:
                return
            self._copies = {key: copy for key, copy in self._copies.items() if copy[0] != own}
            if own != path:
                shutil.rmtree(own.parent, ignore_errors=True)

    async def take(self, request: Any, name: str) -> dict[str, Any]:
        """Write an upload to a separate file, and stop when it gets too large."""
        name = (Path(name.replace("\\", "/")).name or "upload")[-200:]
        suffix = suffix_of(name) + (".gz" if name.lower().endswith(".gz") else "")
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > self.limit:
            raise TooLarge(self.limit)
        if self._taken > _UPLOADS * self.limit:
            raise Refused("the limit of uploads is reached; stop the studio and start it again")
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir()
        path = folder / f"table{suffix}"
        try:
            await self._receive(request, path)
            return await self.patiently(self.let_in, path, name)
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
        self._taken += size

    def source(self, key: str) -> Source:
        """Return a file that was let in."""
        if key not in self.sources:
            raise KeyError("this file is no longer open; open it again")
        return self.sources[key]

    def finished(self, name: str) -> Job:
        """Return a job that has something to show."""
        job = self.jobs[name]
        job.look()
        if job.state != "done":
            raise Refused(f"this job is {job.state}; there is nothing to show")
        job.source.check_current()
        return job


def first_rows(path: Path) -> dict[str, Any]:
    """Return the columns of a table and its first rows as text."""
    from tabweave import Table, engines
    from tabweave.apps.report.html import cell

    first = next(iter(engines.batches(str(path), batch_rows=N_PREVIEW)), None)
    if first is None:
        raise Refused("it has columns but no rows")
    table = Table.of(first)
    check_width(len(table.schema))
    shown = range(min(N_PREVIEW, table.n_rows))
    return {
        "columns": list(table.schema.names),
        "kinds": [column.kind for column in table.schema.columns],
        "preview": [[cell(data, row) for _, data in itertools.islice(table, 40)] for row in shown],
    }
