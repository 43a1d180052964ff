"""Couplings: which columns depend on each other, as a graph on a circle."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.counts import Counts
from weft.plots.graphs import circle_order
from weft.report._text import rounded
from weft.spaces import corrected_uncertainty, information

MOST_NODES = 40
MOST_PAIRS = 100
FAINT = 0.005  # couplings below are not worth a line


def describe_couplings(counts: Counts, target: str | None) -> dict[str, Any] | None:
    """Return the strongest pairs of columns, and an order that puts tied columns side by side."""
    if len(counts.names) < 2:
        return None
    mutual, marginal, _ = information(counts)
    strength = corrected_uncertainty(counts, mutual, marginal)
    a, b = np.triu_indices(len(strength), 1)
    worth = np.argsort(-strength[a, b], kind="stable")[:MOST_PAIRS]
    pairs = [
        {
            "a": counts.names[a[i]],
            "b": counts.names[b[i]],
            "strength": rounded(strength[a[i], b[i]]),
        }
        for i in worth
        if strength[a[i], b[i]] >= FAINT
    ]
    total = strength.sum(axis=1)
    chosen = np.sort(np.argsort(-total, kind="stable")[:MOST_NODES])
    if target is not None and counts.names.index(target) not in chosen:
        chosen = np.append(chosen[:-1], counts.names.index(target))
    chosen = chosen[circle_order(strength[np.ix_(chosen, chosen)])]
    return {
        "nodes": [{"name": counts.names[i], "total": rounded(total[i])} for i in chosen],
        "pairs": pairs,
        "of": len(counts.names),
    }
