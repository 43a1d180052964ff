"""Values of a column: how far apart they are, and the tree they form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from weft._labels import positions
from weft._squares import cdist_squared
from weft.counts import Counts
from weft.hierarchy import _blocks, _grow
from weft.plots.trees import leaves_in_order
from weft.report._text import rounded, shown
from weft.tables import ValueTables

MOST_VALUES = 30
MOST_COLUMNS = 40


def describe_values(
    tables: ValueTables | None, counts: Counts, weights: dict[str, float]
) -> dict[str, Any]:
    """Return, per categorical column of two values or more, distances and tree of its values.

    Columns that count more come first; of a column the most frequent values are taken, in the
    order of the tree, so that what is alike stands together.
    """
    names = [] if tables is None else [n for n in tables.names if counts.sizes[_at(counts, n)] > 1]
    names.sort(key=lambda name: -weights.get(name, 0.0))
    chosen = names[:MOST_COLUMNS]
    assert tables is not None or not chosen
    columns = [_column(tables, counts, name) for name in chosen]
    return {"columns": columns, "of": len(names), "most": MOST_VALUES}


def _at(counts: Counts, name: str) -> int:
    return counts.names.index(name)


def _column(tables: Any, counts: Counts, name: str) -> dict[str, Any]:
    own = trimmed(counts, name, MOST_VALUES)
    labels = own.labels[_at(own, name)]
    tree = _grow.from_linkage(_blocks.dissimilarity(own, name), labels, "average")
    order, merges = unrolled(tree)
    labels = tuple(labels[i] for i in order)
    a = tables.names.index(name)
    rows = tables.tables[a][positions(tables.labels[a], labels)]
    return {
        "column": name,
        "labels": [shown(label) for label in labels],
        "counts": own.value_counts[own.span(name)][order].tolist(),
        "distances": rounded(np.sqrt(cdist_squared(rows, rows)), 3),
        "merges": merges,
        "of": int(counts.sizes[_at(counts, name)]),
    }


def trimmed(counts: Counts, name: str, at_most: int) -> Counts:
    """Return counts in which one column has its most frequent values only."""
    span = counts.span(name)
    own = counts.value_counts[span]
    if len(own) <= at_most:
        return counts
    best = np.sort(np.argsort(-own, kind="stable")[:at_most])
    everything = np.arange(counts.offsets[-1])
    keep = np.concatenate([everything[: span.start], span.start + best, everything[span.stop :]])
    labels = list(counts.labels)
    labels[_at(counts, name)] = tuple(labels[_at(counts, name)][i] for i in best)
    return replace(counts, labels=tuple(labels), pairs=counts.pairs[keep][:, keep])


def unrolled(tree: Any) -> tuple[list[int], list[list[float]]]:
    """Return a grown tree's values from top to bottom, and the joins: (upper, lower, height).

    ``upper`` and ``lower`` are places in that order, or numbers of earlier joins counted on from
    it.
    """
    leaves = leaves_in_order(tree)
    number = {node: i for i, node in enumerate(leaves)}
    top = tree.depths.max(initial=0.0)
    merges: list[list[float]] = []
    for node in reversed(range(len(tree))):  # children come after their parents
        below = tree.children[node]
        if below:
            number[node] = len(leaves) + len(merges)
            first, second = sorted(number[child] for child in below)
            merges.append([first, second, rounded(top - tree.depths[node])])
    # Linkage numbers values from 0, the tree from the last node down.
    return [len(tree) - 1 - leaf for leaf in leaves], merges
