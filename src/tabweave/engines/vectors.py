"""Vectors of one batch, beside the columns that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tabweave._compat import require
from tabweave.columns.frames import named_columns
from tabweave.columns.vocabulary import slices
from tabweave.engines.source import as_arrow, has_arrow, text_of_cells


def vector_batch(
    embedder: Any,
    batch: Any,
    keep: Sequence[str],
    names: Sequence[str],
    vector: str | None = None,
    texts: Sequence[str] = (),
) -> Any:
    """The kept columns and the vectors of a batch: as Arrow, or else as a mapping.

    Those of the kept columns that are in ``texts`` hold cells of several types, and become text.
    """
    by_name, _ = named_columns(batch)
    columns_read = fitted_names(embedder) or [n for n in by_name if n not in keep]
    vectors = np.asarray(embedder.transform({name: by_name[name] for name in columns_read}))
    out = {n: text_of_cells(by_name[n]) if n in texts else by_name[n] for n in keep}
    if vector is None:
        out |= dict(zip(names, _by_dimension(vectors), strict=True))
    else:
        arrow = require("pyarrow", "frames")
        flat = arrow.array(np.ascontiguousarray(vectors).reshape(-1))
        out[vector] = arrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    if not has_arrow():
        return out
    import pyarrow as pa

    columns = map(_arrow_column, out.values())
    return pa.Table.from_arrays(list(columns), names=list(out)).combine_chunks().to_batches()[0]


def _by_dimension(vectors: np.ndarray) -> np.ndarray:
    """Vectors with the numbers of each dimension side by side, as columns have them.

    Blocks of rows stay in the cache while they are turned.
    """
    out = np.empty(vectors.shape[::-1], vectors.dtype)
    for rows in slices(len(vectors), 1, 512):
        out[:, rows] = vectors[rows].T
    return out


def _arrow_column(column: Any) -> Any:
    """A column as Arrow has it, text spelled out: dictionaries differ between batches."""
    import pyarrow as pa

    if not type(column).__module__.startswith("pyarrow"):
        return as_arrow(column)
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def fitted_names(embedder: Any) -> list[str] | None:
    """The columns that an embedder reads, None if they have no names; none that was dropped."""
    names = getattr(embedder, "feature_names_in_", None)
    unused = {column.name for column in getattr(getattr(embedder, "schema_", None), "dropped", ())}
    return None if names is None else [str(name) for name in names if name not in unused]
