"""Learning without reading a table into memory, where the method and the table allow it.

A saved model learns nothing; methods that learn from counts get them batch by batch. What needs
rows (``auto``, whose numbers are binned, ``helic``, ``nonbend``, trees and maps) is read whole.
"""

from __future__ import annotations

from typing import Any

from weft.cli import _methods
from weft.cli._job import Job, check_columns, load_model, warn_of_keys
from weft.cli._show import progress

_COUNTED = {"weave", "onehot", "untie", "ckml", "cde", "unicorn", *_methods.MEASURES}


def learned(job: Job) -> Any:
    """Return a fitted embedder without reading all rows at a time, or None if rows are needed."""
    from weft.engines import open_source

    types = open_source(job.source).types
    if job.model is not None:
        embedder = load_model(job.model)
        beside = [*job.keep, *filter(None, [job.target])]
        check_columns([*embedder.schema_.names, *beside], types)
        return embedder
    names = job.chosen(types)
    if job.method not in _COUNTED or job.kinds or not _all_values([types[n] for n in names]):
        return None
    return _from_counts(job, names)


def _all_values(types: list[str]) -> bool:
    """Say whether columns of these types hold single values, and no numbers."""
    from weft.engines import family

    return all(family(kind) in ("text", "truth") for kind in types)


def _from_counts(job: Job, names: list[str]) -> Any:
    import weft

    embedder = _methods.build(job.method, mixed=False, kinds=None, seed=job.seed)
    with progress("counting") as advance:
        classes = job.target if embedder._uses_classes else None
        counts = weft.count(job.source, columns=names, y=classes, progress=advance)
    warn_of_keys(counts)
    return embedder.fit_counts(counts)
