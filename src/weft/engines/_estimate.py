"""Estimating any source: the first batch says how many values and pairs there will be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from weft.engines._count import limits_of, reading_of
from weft.engines._places import place_of
from weft.engines._sizes import Estimate, estimated
from weft.engines._source import BATCH_ROWS


def estimate(
    source: Any,
    *,
    columns: Any = None,
    y: Any = None,
    schema: Any = None,
    numbers: Literal["numeric", "nominal"] = "numeric",
    max_values: int | Mapping[str, int] | None = None,
) -> Estimate:
    """Say what memory counting will take, from the first batch of rows.

    Parameters
    ----------
    source, columns, y, schema, numbers, max_values
        As in :func:`weft.count`, which refuses to start when the estimate is above what is free.

    Returns
    -------
    estimate : Estimate
        Rows, values, pairs and bytes.

    Examples
    --------
    >>> from weft.engines import estimate
    >>> found = estimate("SELECT range AS id, range % 10 AS digit FROM range(1000)",
    ...                  numbers="nominal")
    >>> found.values, found.fits
    ({'id': 1000, 'digit': 10}, True)
    """
    place = place_of(source, columns, "auto").source
    reading, names = reading_of(place, columns, y, schema, numbers)
    for batch in place.stream(names, BATCH_ROWS):
        table, _ = reading.table(batch)
        limits = {} if max_values is None else limits_of(max_values, table.schema.names)
        return estimated(table, place.n_rows, limits)
    raise ValueError(f"{place.place}: there are no rows")
