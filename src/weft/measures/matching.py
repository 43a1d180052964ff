"""Matching: values are the same or they are not."""

from __future__ import annotations

import numpy as np

from weft.counts import Counts
from weft.measures.registry import measure


@measure(
    "hamming",
    "1 for every column in which two rows differ",
    "Zhu 2019, Eq. (2.1); 'overlap' in Boriah, Chandola, Kumar 2008, Table 2",
    metric=True,
)
def hamming(counts: Counts) -> list[np.ndarray]:
    """Eq. (2.1): d(v, w) = 0 if v = w, else 1."""
    return [1 - np.eye(len(labels)) for labels in counts.labels]
