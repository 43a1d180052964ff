"""From a rule to a data set: enumerate codes, spell them out, put the columns together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from weft.datasets._dataset import Dataset

BITS = ("0", "1")


def grid(values: Mapping[str, Sequence[str]]) -> np.ndarray:
    """Codes of all combinations of values, one row per column name, first name slowest."""
    return np.indices([len(v) for v in values.values()]).reshape(len(values), -1)


def pick(values: Sequence[str], codes: np.ndarray) -> np.ndarray:
    return np.array(list(values), dtype=object)[codes.astype(np.intp)]


def nominal(
    name: str,
    values: Mapping[str, Sequence[str]],
    codes: np.ndarray,
    y: np.ndarray,
    description: str,
) -> Dataset:
    columns = {
        column: pick(spelling, row)
        for (column, spelling), row in zip(values.items(), codes, strict=True)
    }
    return Dataset(name, columns, y, dict.fromkeys(columns, "nominal"), description)
