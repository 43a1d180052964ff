"""The map: where the drawn rows lie, and what each of them holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft._labels import Label
from weft.report._columns import by_frequency
from weft.report._reading import Reading, take
from weft.report._rows import Axes, Rows, layouts
from weft.report._text import cell, rounded, shown
from weft.table import Codes, Numbers, Sets, Table

MOST_COLUMNS = 100
MOST_LABELS = 200
OTHERS = "other values"


def describe_map(
    reading: Reading,
    seen: Rows,
    places: np.ndarray,
    axes: Axes,
    clusters: np.ndarray,
    random_state: int,
) -> dict[str, Any]:
    """Return the coordinates of the drawn rows, and the cells they can be coloured by."""
    rows = seen.first[seen.drawn]
    drawn = take(reading.table, rows)
    names = reading.kept[:MOST_COLUMNS]
    names = ([reading.target] if reading.target else []) + names
    return {
        "layouts": [
            layout | {"points": rounded(layout["points"])}
            for layout in layouts(places, axes, random_state)
        ],
        "rows": rows.tolist(),
        "copies": seen.copies[seen.drawn].tolist(),
        "clusters": clusters.tolist(),
        "columns": [{"name": name} | _cells(drawn, name) for name in names],
        "of": len(seen.first),
    }


def _cells(drawn: Table, name: str) -> dict[str, Any]:
    data = drawn[name]
    if isinstance(data, Numbers):
        return {"numbers": rounded(data.values, 6)}
    if isinstance(data, Sets):
        data = _joined(data, drawn.n_rows)
    first = by_frequency(data)
    kept = first[:MOST_LABELS]
    place = np.full(len(data.labels), len(kept))
    place[kept] = np.arange(len(kept))
    labels: list[Label] = [shown(data.labels[i]) for i in kept]
    if len(first) > len(kept):
        labels.append(OTHERS)
    if None in data.labels:
        place[data.labels.index(None)] = -1
    return {"labels": labels, "codes": place[data.codes].tolist()}


def _joined(data: Sets, n_rows: int) -> Codes:
    """Return sets as text, each different one a value."""
    texts = np.array([str(cell(data, row)) for row in range(n_rows)], dtype=object)
    labels, codes = np.unique(texts, return_inverse=True)
    return Codes(codes, labels.tolist())
