"""Dask: each partition is counted where it is; counts are added up in a tree, on the workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tabweave._compat import require
from tabweave.engines.progress import Progress, telling
from tabweave.engines.source import Source

_BRANCHES = 8


@dataclass(frozen=True)
class OnDask:
    """The workers that a Dask frame's scheduler has."""

    source: Source
    frame: Any

    @classmethod
    def of(cls, frame: Any) -> OnDask:
        """Return where a Dask frame is."""

        def stream(columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
            for part in frame[list(columns)].to_delayed():
                yield part.compute()

        return cls(Source("Dask frame", dict.fromkeys(frame.columns, ""), stream), frame)

    def run(self, work: Any, columns: Sequence[str], progress: Progress, what: str) -> Any:
        """Do the work on each partition, merge in a tree, and bring back the one result."""
        dask = require("dask", "dask")
        start = dask.delayed(work, pure=False, traverse=False)
        merge = dask.delayed(work.merge, pure=False, traverse=False)
        parts = [start([part]) for part in self.frame[list(columns)].to_delayed()]
        while len(parts) > 1:
            parts = [merge(parts[i : i + _BRANCHES]) for i in range(0, len(parts), _BRANCHES)]
        with telling(progress, what, None):
            return dask.compute(parts[0])[0]


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

    known = getattr(embedder, "feature_names_in_", None)
    rows = part.drop(columns=keep) if known is None else part[list(known)]
    vectors = embedder.transform(rows)
    frame = pandas.DataFrame(vectors, columns=names, index=part.index)
    return pandas.concat([part[keep], frame], axis=1)
