"""Columns: what each holds, how much is missing, and what it looks like."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from tabweave.apps.report.html import cell, rounded, shown
from tabweave.apps.report.reading import Reading, as_values
from tabweave.columns.cells import Cells
from tabweave.columns.nominal import Codes, label_ranks
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets
from tabweave.columns.vocabulary import Vocabulary
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import corrected_uncertainty, information
from tabweave.embed.base import Embedder
from tabweave.embed.hierarchy import dissimilarity
from tabweave.plots import circle_order
from tabweave.space.points import summed_differences
from tabweave.space.space import Space, label_column
from tabweave.tasks.associations import Associations


def describe_columns(reading: Reading) -> list[dict[str, Any]]:
    """The kind of each column, its missing and distinct values, and the most frequent ones.

    Where the cells are not plainly what the kind says, ``read`` says how they were read.
    """
    descriptions = []
    for column, data in reading.table:
        entry = {"name": column.name, "kind": column.kind, "role": "column"}
        if column.name == reading.target:
            entry["role"] = "target"
        reason = reading.findings[column.name].why
        if reason not in ("values", "numbers", "constant"):  # which say no more than the kind
            entry["read"] = reason
        if column.name in reading.left_out:
            why = reading.left_out[column.name]
            entry |= {"role": "left out", "why": why, "read": why}
        if column.is_continuous:
            descriptions.append(entry | _describe_numbers(data, reading.codes[column.name]))
        else:
            descriptions.append(entry | _describe_values(as_values(data)))
    return descriptions


def value_counts(data: Codes | Sets) -> np.ndarray:
    """In how many rows each label of a column occurs; a set counts an element once."""
    return np.bincount(data.codes, minlength=len(data.labels))


def by_frequency(data: Codes | Sets) -> np.ndarray:
    """The labels that occur, but for missing, most frequent first, ties in their order."""
    counts = value_counts(data)
    order = np.lexsort((label_ranks(data.labels), -counts))
    return np.array([i for i in order if counts[i] and data.labels[i] is not None], int)


def missing_rows(data: Cells) -> int:
    """How many cells of a column are missing."""
    return int(data.missing.sum())


def _describe_values(data: Codes | Sets) -> dict[str, Any]:
    counts, values, n_top = value_counts(data), by_frequency(data), 5
    return {
        "missing": missing_rows(data),
        "distinct": len(values),
        "once": int((counts[values] == 1).sum()),
        "top": [[shown(data.labels[i]), int(counts[i])] for i in values[:n_top]],
        "rest": int(counts[values[n_top:]].sum()),
    }


def _describe_numbers(data: Numbers, codes: np.ndarray) -> dict[str, Any]:
    n_missing = missing_rows(data)
    present = data.values[~np.isnan(data.values)] if n_missing else data.values
    n_distinct = int(codes.max(initial=-1)) + 1 - bool(n_missing)
    out: dict[str, Any] = {"missing": n_missing, "distinct": n_distinct}
    if not len(present):
        return out
    names = ("min", "q1", "median", "q3", "max", "mean", "deviation")
    with np.errstate(over="ignore", invalid="ignore"):  # numbers may span all of float64
        figures = [*np.quantile(present, [0, 0.25, 0.5, 0.75, 1]), present.mean(), present.std()]
        span = np.ptp(present)
    if data.is_dated:  # a deviation is no date
        figures = figures[:-1]
    out["summary"] = dict(zip(names, _as_shown(data, figures), strict=False))
    if np.isfinite(span) and span > 0:
        drawn, *_ = near_and_far(present)
        if len(drawn) < len(present):
            out["drawn"] = _as_shown(data, [drawn.min(), drawn.max()])
            out["beyond"] = len(present) - len(drawn)
        max_bars_of_one_number = 60
        is_whole = (drawn == np.floor(drawn)).all()
        out["whole"] = bool(np.ptp(drawn) < max_bars_of_one_number and is_whole)
        bars = np.arange(drawn.min(), drawn.max() + 2) - 0.5 if out["whole"] else 24
        out["bars"] = np.histogram(drawn, bars)[0].tolist()
    return out


def _as_shown(data: Any, figures: list[float]) -> list[Any]:
    """Figures of a column as the page shows them: numbers, or dates as text."""
    return list(map(data.text, figures)) if data.is_dated else rounded(figures, 6)


def near_and_far(present: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers without those far out, those far below them, and those far above.

    Few are far out, one in a thousand at most, behind a gap wider than twice all others together.
    """
    n, nothing = len(present), np.zeros(0)
    max_far = max(1, n // 1000)
    if n < 20:
        return present, nothing, nothing
    ends = np.partition(present, [max_far, n - 1 - max_far])
    low, high = np.sort(ends[: max_far + 1]), np.sort(ends[n - 1 - max_far :])
    with np.errstate(over="ignore", invalid="ignore"):  # numbers may span all of float64
        gap = 2 * (high[0] - low[-1])
        below, above = (np.flatnonzero(np.diff(side) > gap) for side in (low, high))
    if not gap > 0 or not (len(below) or len(above)):
        return present, nothing, nothing
    under = low[: below[-1] + 1] if len(below) else nothing
    over = high[above[0] + 1 :] if len(above) else nothing
    is_near = (present > under.max(initial=-np.inf)) & (present < over.min(initial=np.inf))
    return present[is_near], under, over


def describe_rows(reading: Reading) -> dict[str, Any]:
    """Some rows as they are, evenly from the whole table."""
    n_rows, max_rows, max_columns = reading.table.n_rows, 8, 40
    rows = np.unique(np.linspace(0, n_rows - 1, min(max_rows, n_rows)).astype(int))
    columns = list(reading.table)[:max_columns]
    return {
        "rows": rows.tolist(),
        **reading.ids_of(rows),
        "columns": [column.name for column, _ in columns],
        "cells": [[cell(data, row) for _, data in columns] for row in rows.tolist()],
    }


def describe_gaps(reading: Reading) -> dict[str, Any] | None:
    """Which cells are missing together: the most frequent patterns; None without gaps."""
    gaps = {column.name: data.missing for column, data in reading.table}
    n_gaps = {name: int(missing.sum()) for name, missing in gaps.items()}
    names = sorted((name for name in gaps if n_gaps[name]), key=lambda name: -n_gaps[name])[:63]
    if not names:
        return None
    pattern_of_row = np.zeros(reading.table.n_rows, np.int64)
    for i, name in enumerate(names):
        pattern_of_row |= gaps[name].astype(np.int64) << i
    patterns, counts = np.unique(pattern_of_row, return_counts=True)
    n_patterns = 10
    most_frequent = np.argsort(-counts, kind="stable")[:n_patterns]
    return {
        "columns": names,
        "patterns": [
            {
                "missing": [name for i, name in enumerate(names) if int(patterns[k]) >> i & 1],
                "rows": int(counts[k]),
            }
            for k in most_frequent
        ],
        "of": len(patterns),
    }


# -- values of a column: their distances, and the tree they form ---------------------------------

MAX_SHOWN_VALUES = 30  # Values of a column in a tree.


def describe_values(model: Embedder, counts: Counts, weights: dict[str, float]) -> dict[str, Any]:
    """Distances and tree of the values of each categorical column that has two or more.

    Columns that say much come first: with values enough to compare and few enough to read, and
    coupled with others. Of a column the most frequent values are taken, in the order of the tree,
    so that what is alike stands together.
    """
    nominal = [c.name for c in model.schema_.columns if c.has_values and not c.is_ordered]
    sizes = {name: int(counts.sizes[counts.vocabulary.index(name)]) for name in nominal}
    names = [name for name in nominal if sizes[name] > 1]
    strength = coupled(counts)
    np.fill_diagonal(strength, 0.0)
    ties = dict(zip(counts.names, strength.sum(axis=1), strict=True))
    readable = {name: 3 <= sizes[name] <= MAX_SHOWN_VALUES for name in names}
    names.sort(key=lambda name: (not readable[name], -ties[name], -weights.get(name, 0.0)))
    max_columns = 40
    blocks = {name: model.space_.only([name]) for name in names[:max_columns]}
    columns = [_tree(block.parts()[0], counts, name) for name, block in blocks.items() if block]
    return {"columns": columns, "of": len(names), "most": MAX_SHOWN_VALUES}


def _tree(block: Space, counts: Counts, name: str) -> dict[str, Any]:
    """Values in the order of their tree, their distances, and the joins: (upper, lower, height).

    ``upper`` and ``lower`` are indices in that order, or numbers of earlier joins counted on from
    it.
    """
    few = trimmed(counts, name, MAX_SHOWN_VALUES)
    steps = linkage(squareform(dissimilarity(few, name), checks=False), "average")
    order = leaves_list(steps)[::-1]
    number = np.append(np.argsort(order), len(order) + np.arange(len(steps)))
    heights = rounded(np.maximum.accumulate(steps[:, 2]))
    pairs = np.sort(number[steps[:, :2].astype(int)], axis=1).tolist()
    labels = [few.labels[few.vocabulary.index(name)][i] for i in order]
    points = block.points(label_column(labels))[:-1]
    distances = summed_differences(points, points, block.power)
    return {
        "column": name,
        "labels": [shown(label) for label in labels],
        "counts": few.value_counts[few.span(name)][order].tolist(),
        "distances": rounded(distances if block.power == 1 else np.sqrt(distances), 3),
        "merges": [[*pair, height] for pair, height in zip(pairs, heights, strict=True)],
        "of": int(counts.sizes[counts.vocabulary.index(name)]),
    }


def trimmed(counts: Counts, name: str, max_values: int) -> Counts:
    """Counts in which one column has its most frequent values only."""
    span, column = counts.span(name), counts.vocabulary.index(name)
    if counts.sizes[column] <= max_values:
        return counts
    frequent = np.sort(np.argsort(-counts.value_counts[span], kind="stable")[:max_values])
    keep = np.r_[: span.start, span.start + frequent, span.stop : counts.offsets[-1]]
    labels = list(counts.labels)
    labels[column] = tuple(labels[column][i] for i in frequent)
    vocabulary = Vocabulary(counts.vocabulary.names, tuple(labels))
    return replace(counts, vocabulary=vocabulary, pairs=counts.pairs[keep][:, keep])


# -- couplings of columns, as a graph on a circle -------------------------------------------------


def coupled(counts: Counts) -> np.ndarray:
    """How much every two columns know of each other, less what chance would show."""
    mutual, marginal, _ = information(counts)
    return corrected_uncertainty(counts, mutual, marginal)


def describe_couplings(tested: Associations, target: str | None) -> dict[str, Any]:
    """The strongest pairs of columns, and an order that puts tied columns side by side."""
    names, min_strength, n_pairs = tested.names, 0.005, 100
    a, b = np.triu_indices(len(names), 1)  # the order of pairs
    strength = np.zeros((len(names), len(names)))
    strength[a, b] = strength[b, a] = tested.values["strength"]
    strongest = np.argsort(-strength[a, b], kind="stable")[:n_pairs]
    pairs = [
        {"a": names[i], "b": names[j], "strength": rounded(strength[i, j])}
        for i, j in zip(a[strongest], b[strongest], strict=True)
        if strength[i, j] >= min_strength
    ]
    total = strength.sum(axis=1)
    is_matrix = len(strength) > 30  # lines between more could not be told apart
    n_shown = 80 if is_matrix else 40
    columns = np.sort(np.argsort(-total, kind="stable")[:n_shown])
    if target is not None and names.index(target) not in columns:
        columns = np.append(columns[:-1], names.index(target))
    columns = columns[circle_order(strength[np.ix_(columns, columns)])]
    out = {
        "nodes": [{"name": names[i], "total": rounded(total[i])} for i in columns],
        "pairs": pairs,
        "of": len(names),
        "found": int((strength[a, b] >= min_strength).sum()),
    }
    matrix = {"matrix": rounded(strength[np.ix_(columns, columns)], 2)}
    return out | matrix if is_matrix else out
