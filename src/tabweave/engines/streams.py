"""Streams: batches that arrive under a number, each counted once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabweave.counts.counts import Counts
from tabweave.engines.counting import count
from tabweave.io.register import storable
from tabweave.io.store import load, save


@storable
@dataclass(frozen=True, eq=False)
class CountedBatches:
    """What was counted of a stream: the counts, and the number of the last batch."""

    counts: Counts
    last_batch: int


class StreamCounts:
    """Counts of a stream, each batch once, also of one that is sent again.

    Pass it to ``writeStream.foreachBatch`` of Spark, which repeats a batch after a failure, under
    the same number; one that was counted is passed over. With a ``path``, the counts and the number
    of the last batch are in one file that is replaced as a whole, so that a program that starts
    again goes on where it was.

    Parameters
    ----------
    path : path, optional
        The file.
    **options
        What :func:`tabweave.count` takes: ``columns``, ``y``, ``schema``, ``numbers`` ...
        All batches are read under the schema of the first that has rows.

    Attributes
    ----------
    counts : Counts
        Of all batches so far.
    last_batch : int
        The number of the last one, -1 before the first.

    Examples
    --------
    >>> from tabweave.engines import StreamCounts
    >>> seen = StreamCounts(columns=["color"])
    >>> for number, colors in [(0, ["red", "blue"]), (1, ["red"]), (1, ["red"])]:
    ...     seen({"color": colors}, number)
    >>> seen.counts, seen.last_batch
    (Counts(3 rows, 1 columns, 2 values), 1)
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, **options: Any) -> None:
        self.path = None if path is None else Path(path)
        self.options = options
        self.counts, self.last_batch = Counts(), -1
        if self.path is not None and self.path.exists():
            saved = load(self.path)
            if not isinstance(saved, CountedBatches):
                raise ValueError(f"{self.path}: expected counts of a stream, got {saved!r}")
            self.counts, self.last_batch = saved.counts, saved.last_batch

    def __call__(self, frame: Any, batch_id: int) -> None:
        """Count a batch, unless it was counted before."""
        if batch_id <= self.last_batch:
            return
        schema = self.counts.schema
        options = self.options if schema is None else {**self.options, "schema": schema}
        total = self.counts + count(frame, **options)
        if self.path is not None:
            save(CountedBatches(total, batch_id), self.path)
        self.counts, self.last_batch = total, batch_id
