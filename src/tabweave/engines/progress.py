"""Long runs: read ahead while the last batch is counted, and say how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from queue import Full, Queue
from threading import Event, Thread
from typing import Any

from tabweave.engines.source import Source

Progress = bool | Callable[[int, int | None], None]
_END = object()


def batches_of(source: Source, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
    """Stream a source, reading ahead where another thread may."""
    stream = source.stream(columns, batch_rows)
    return stream if source.shared else prefetched(stream)


def prefetched(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items that a second thread fetches, one ahead; its errors are raised here."""
    queue: Queue[tuple[Any, BaseException | None]] = Queue(1)
    stop = Event()

    def put(item: Any, error: BaseException | None = None) -> None:
        while not stop.is_set():
            try:
                return queue.put((item, error), timeout=0.1)
            except Full:
                continue

    def fetch() -> None:
        iterator = iter(items)
        try:
            for item in iterator:
                put(item)
                if stop.is_set():
                    break
            put(_END)
        except BaseException as error:
            put(_END, error)
        finally:
            if hasattr(iterator, "close"):
                iterator.close()

    thread = Thread(target=fetch, daemon=True)
    thread.start()
    try:
        while True:
            item, error = queue.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        stop.set()
        thread.join()


def counted(batches: Iterable[Any], tell: Callable[[int], None]) -> Iterator[Any]:
    """Pass batches on and tell how many rows have been dealt with."""
    done = 0
    for batch in batches:
        yield batch
        done += n_rows_of(batch)
        tell(done)


def n_rows_of(batch: Any) -> int:
    """Return the number of rows of a batch."""
    return len(next(iter(batch.values()), ())) if isinstance(batch, dict) else len(batch)


@contextmanager
def telling(progress: Progress, what: str, of: int | None) -> Iterator[Callable[[int], None]]:
    """Give a function that takes the number of rows done and shows it, if that is wanted."""
    if callable(progress):
        yield lambda done: progress(done, of)
        return
    if not progress:
        yield lambda done: None
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn(what),
        bars.BarColumn(),
        bars.TextColumn("{task.completed:,.0f} rows"),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=of)
        yield lambda done: bar.update(task, completed=done)
