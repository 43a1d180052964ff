"""Dask: each partition is counted where it is; counts are added up in a tree, on the workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tabweave._compat import require
from tabweave.engines.frames import FrameSource
from tabweave.engines.progress import progress_reporter
from tabweave.engines.source import Source

_BRANCHES = 8


class DaskSource(Source):
    """A Dask frame; work is done by the workers of its scheduler."""

    def __init__(self, frame: Any) -> None:
        super().__init__("Dask frame", dict.fromkeys(frame.columns, ""))
        self.frame = frame

    def _stream(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        for part in self.frame[list(columns)].to_delayed():
            yield part.compute()

    def collect(self, columns: Sequence[str]) -> Any:
        """Return all rows as a pandas frame or a mapping of columns."""
        return FrameSource(self.frame.compute()).collect(columns)

    def _run(self, work: Any, columns: Sequence[str], progress: Any, step: str) -> Any:
        """Do the work on each partition, merge in a tree, and bring back the one result."""
        dask = require("dask", "dask")
        report = progress_reporter(progress, "partitions", self.frame.npartitions)
        start = dask.delayed(work, pure=False, traverse=False)
        merge = dask.delayed(work.merge, pure=False, traverse=False)
        parts = [start([part]) for part in self.frame[list(columns)].to_delayed()]
        while len(parts) > 1:
            parts = [merge(parts[i : i + _BRANCHES]) for i in range(0, len(parts), _BRANCHES)]
        report(step, 0)
        result = dask.compute(parts[0])[0]
        report(step, self.frame.npartitions)
        return result


def transformed(embedder: Any, frame: Any, keep: Sequence[str]) -> Any:
    """Return the vectors of a Dask frame as another, partition by partition."""
    pandas = require("pandas", "frames")
    names = embedder.get_feature_names_out()
    kept = frame._meta[list(keep)]
    vectors = pandas.DataFrame({name: pandas.Series([], dtype=embedder.dtype) for name in names})
    meta = pandas.concat([kept, vectors.set_index(kept.index[:0])], axis=1)
    return frame.map_partitions(_vectors, embedder, list(keep), list(names), meta=meta)


def _vectors(part: Any, embedder: Any, keep: list[str], names: list[str]) -> Any:
    import pandas

    from tabweave.engines.transform import fitted_names

    fitted = fitted_names(embedder)
    rows = part.drop(columns=keep) if fitted is None else part[fitted]
    vectors = embedder.transform(rows)
    frame = pandas.DataFrame(vectors, columns=names, index=part.index)
    return pandas.concat([part[keep], frame], axis=1)
