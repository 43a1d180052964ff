"""Places: where work is done; here, on the workers of Dask, or on those of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from weft.engines._open import kind_of, open_source, read, refuse_engine
from weft.engines._progress import Progress, batches_of, counted, telling
from weft.engines._source import BATCH_ROWS, Source


class Place(Protocol):
    """Somewhere rows are, and work can be done on them."""

    @property
    def source(self) -> Source:
        """The rows."""

    def run(self, work: Any, columns: Sequence[str], progress: Progress, what: str) -> Any:
        """Do the work on all rows and return its merged result."""


@dataclass(frozen=True)
class Here:
    """In this process: batches come one by one, the next being read meanwhile."""

    source: Source

    def run(self, work: Any, columns: Sequence[str], progress: Progress, what: str) -> Any:
        """Do the work on the batches, in order."""
        stream = batches_of(self.source, columns, BATCH_ROWS)
        with telling(progress, what, self.source.n_rows) as tell:
            return work(counted(stream, tell))


def place_of(source: Any, columns: Any, engine: str) -> Place:
    """Return where the work on a source is done."""
    kind = kind_of(source)
    refuse_engine(kind, engine)
    if engine == "memory" and kind in ("dask", "spark"):
        source = read(source)
    elif kind == "dask":
        from weft.engines.dask import OnDask

        return OnDask.of(source)
    elif kind == "spark":
        from weft.engines.spark import OnSpark

        return OnSpark.of(source)
    return Here(open_source(source, columns, engine))
