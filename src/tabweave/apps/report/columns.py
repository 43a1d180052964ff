"""Columns: what each holds, how much is missing, and what it looks like."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tabweave.apps.report.html import cell, rounded, shown
from tabweave.apps.report.reading import Reading
from tabweave.base import Embedder
from tabweave.columns.datetime import Datetimes
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets
from tabweave.columns.vocabulary import Vocabulary, order
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import corrected_uncertainty, information
from tabweave.embed.hierarchy.tree import dissimilarity, from_linkage
from tabweave.plots.structure import circle_order, leaves_in_order
from tabweave.space.block import Block, label_column, summed_differences

TOP = 5
PLAIN = ("values", "numbers", "constant")  # reasons that say no more than the kind does


def describe_columns(reading: Reading) -> list[dict[str, Any]]:
    """Return, per column, its kind, missing and distinct values, and the most frequent ones.

    Where the cells are not plainly what the kind says, ``read`` says how they were read.
    """
    out = []
    for column, data in reading.table:
        role = "target" if column.name == reading.target else "column"
        entry = {"name": column.name, "kind": column.kind, "role": role}
        if (why := reading.findings[column.name].why) not in PLAIN:
            entry["read"] = why
        if column.name in reading.left_out:
            entry |= {"role": "left out", "why": reading.left_out[column.name]}
        if isinstance(data, Numbers):
            look = _numbers(data, reading.codes[column.name])
        else:
            look = _values(data)
        out.append(entry | look)
    return out


def value_counts(data: Codes | Sets) -> np.ndarray:
    """Return in how many rows each label of a column occurs; a set counts an element once."""
    return np.bincount(data.codes, minlength=len(data.labels))


def by_frequency(data: Codes | Sets) -> np.ndarray:
    """Return the labels that occur, missing left out, most frequent first, ties in their order."""
    counts = value_counts(data)
    rank = np.empty(len(data.labels), int)
    rank[order(data.labels)] = np.arange(len(data.labels))
    sorted_ = np.lexsort((rank, -counts))
    return np.array([i for i in sorted_ if counts[i] and data.labels[i] is not None], int)


def missing_rows(data: Codes | Numbers | Sets) -> int:
    """Return how many cells of a column are missing."""
    if isinstance(data, Numbers):
        return int(np.isnan(data.values).sum())
    return int(value_counts(data)[data.labels.index(None)]) if None in data.labels else 0


def _values(data: Codes | Sets) -> dict[str, Any]:
    counts, first = value_counts(data), by_frequency(data)
    return {
        "missing": missing_rows(data),
        "distinct": len(first),
        "once": int((counts[first] == 1).sum()),
        "top": [[shown(data.labels[i]), int(counts[i])] for i in first[:TOP]],
        "rest": int(counts[first[TOP:]].sum()),
    }


def _numbers(data: Numbers, codes: np.ndarray) -> dict[str, Any]:
    missing = missing_rows(data)
    present = data.values[~np.isnan(data.values)] if missing else data.values
    out: dict[str, Any] = {
        "missing": missing,
        "distinct": int(codes.max(initial=-1)) + 1 - bool(missing),
    }
    if not len(present):
        return out
    names = ("min", "q1", "median", "q3", "max", "mean", "deviation")
    with np.errstate(over="ignore", invalid="ignore"):  # numbers may span all of float64
        figures = [*np.quantile(present, [0, 0.25, 0.5, 0.75, 1]), present.mean(), present.std()]
        span = np.ptp(present)
    shown_as = list(map(data.text, figures[:-1])) if isinstance(data, Datetimes) else None
    out["summary"] = dict(zip(names, shown_as or rounded(figures, 6), strict=shown_as is None))
    if np.isfinite(span) and span > 0:
        drawn, *_ = near_and_far(present)
        if len(drawn) < len(present):
            ends = [drawn.min(), drawn.max()]
            shown_as = list(map(data.text, ends)) if isinstance(data, Datetimes) else None
            out["drawn"] = shown_as or rounded(ends, 6)
            out["beyond"] = len(present) - len(drawn)
        span = np.ptp(drawn)
        max_bars_of_one_number = 60
        is_whole = (drawn == np.floor(drawn)).all()
        out["whole"] = bool(span < max_bars_of_one_number and is_whole)
        bars = np.arange(drawn.min(), drawn.max() + 2) - 0.5 if out["whole"] else 24
        out["bars"] = np.histogram(drawn, bars)[0].tolist()
    return out


def near_and_far(present: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return numbers without those far out, and these: the ones below, and the ones above.

    Few are far out, one in a thousand at most, behind a gap wider than twice all others together.
    """
    n, none = len(present), np.zeros(0)
    most = max(1, n // 1000)
    if n < 20:
        return present, none, none
    ends = np.partition(present, [most, n - 1 - most])
    low, high = np.sort(ends[: most + 1]), np.sort(ends[n - 1 - most :])
    with np.errstate(over="ignore", invalid="ignore"):  # numbers may span all of float64
        gap = 2 * (high[0] - low[-1])
        below, above = (np.flatnonzero(np.diff(own) > gap) for own in (low, high))
    if not gap > 0 or not (len(below) or len(above)):
        return present, none, none
    under = low[: below[-1] + 1] if len(below) else none
    over = high[above[0] + 1 :] if len(above) else none
    kept = (present > under.max(initial=-np.inf)) & (present < over.min(initial=np.inf))
    return present[kept], under, over


def describe_rows(reading: Reading, most_columns: int = 40) -> dict[str, Any]:
    """Return some rows as they are, evenly from the whole table."""
    n_rows = reading.table.n_rows
    n_shown = min(8, n_rows)
    rows = np.unique(np.linspace(0, n_rows - 1, n_shown).astype(int))
    shown = list(reading.table)[:most_columns]
    return {
        "rows": rows.tolist(),
        **reading.ids_of(rows),
        "columns": [column.name for column, _ in shown],
        "cells": [[cell(data, row) for _, data in shown] for row in rows.tolist()],
    }


def describe_gaps(reading: Reading) -> dict[str, Any] | None:
    """Return which cells are missing together: the most frequent patterns; None without gaps."""
    found = {c.name: _is_missing(data) for c, data in reading.table}
    gaps = {name: missing for name, missing in found.items() if missing is not None}
    names = sorted(gaps, key=lambda name: -int(gaps[name].sum()))[:63]
    if not names:
        return None
    pattern = np.zeros(reading.table.n_rows, np.int64)
    for i, name in enumerate(names):
        pattern |= gaps[name].astype(np.int64) << i
    kinds, counts = np.unique(pattern, return_counts=True)
    n_patterns = 10
    order = np.argsort(-counts, kind="stable")[:n_patterns]
    return {
        "columns": names,
        "patterns": [
            {"missing": [n for i, n in enumerate(names) if int(kinds[k]) >> i & 1],
             "rows": int(counts[k])}
            for k in order
        ],
        "of": len(kinds),
    }  # fmt: skip


def _is_missing(data: Codes | Numbers | Sets) -> np.ndarray | None:
    """Return which cells of a column are missing; None if none is."""
    if isinstance(data, Numbers):
        missing = np.isnan(data.values)
        return missing if missing.any() else None
    if None not in data.labels:
        return None
    gap = data.codes == data.labels.index(None)
    gap = data.any_element(gap) if isinstance(data, Sets) else gap
    return gap if gap.any() else None


# -- values of a column: their distances, and the tree they form ---------------------------------

MOST_VALUES = 30
MOST_COLUMNS = 40


def describe_values(model: Embedder, counts: Counts, weights: dict[str, float]) -> dict[str, Any]:
    """Return, per categorical column of two values or more, distances and tree of its values.

    Columns that say much come first: with values enough to compare and few enough to read, and
    coupled with others. Of a column the most frequent values are taken, in the order of the tree,
    so that what is alike stands together.
    """
    nominal = [c.name for c in model.schema_.columns if c.kind in ("nominal", "set")]
    sizes = {name: int(counts.sizes[counts.vocabulary.index(name)]) for name in nominal}
    names = [name for name in nominal if sizes[name] > 1]
    strength = coupled(counts)
    np.fill_diagonal(strength, 0.0)
    ties = dict(zip(counts.names, strength.sum(axis=1), strict=True))
    readable = {name: 3 <= sizes[name] <= MOST_VALUES for name in names}
    names.sort(key=lambda name: (not readable[name], -ties[name], -weights.get(name, 0.0)))
    blocks = {name: model.blocks_.only([name]) for name in names[:MOST_COLUMNS]}
    columns = [_column(block.parts()[0], counts, name) for name, block in blocks.items() if block]
    return {"columns": columns, "of": len(names), "most": MOST_VALUES}


def _column(block: Block, counts: Counts, name: str) -> dict[str, Any]:
    own = trimmed(counts, name, MOST_VALUES)
    labels = own.labels[own.vocabulary.index(name)]
    tree = from_linkage(dissimilarity(own, name), labels, "average")
    order, merges = unrolled(tree)
    labels = tuple(labels[i] for i in order)
    points = block.points(label_column(labels))[:-1]
    distances = summed_differences(points, points, block.power)
    return {
        "column": name,
        "labels": [shown(label) for label in labels],
        "counts": own.value_counts[own.span(name)][order].tolist(),
        "distances": rounded(distances if block.power == 1 else np.sqrt(distances), 3),
        "merges": merges,
        "of": int(counts.sizes[counts.vocabulary.index(name)]),
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
    labels, a = list(counts.labels), counts.vocabulary.index(name)
    labels[a] = tuple(labels[a][i] for i in best)
    vocabulary = Vocabulary(counts.vocabulary.names, tuple(labels))
    return replace(counts, vocabulary=vocabulary, pairs=counts.pairs[keep][:, keep])


def unrolled(tree: Any) -> tuple[list[int], list[list[float]]]:
    """Return a grown tree's values from top to bottom, and the joins: (upper, lower, height).

    ``upper`` and ``lower`` are indices in that order, or numbers of earlier joins counted on from
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


# -- couplings of columns, as a graph on a circle -------------------------------------------------

MAX_MATRIX_COLUMNS = 80  # columns of a matrix
FAINT = 0.005  # couplings below are not worth a line


def coupled(counts: Counts) -> np.ndarray:
    """Return how much every two columns know of each other, less what chance would show."""
    mutual, marginal, _ = information(counts)
    return corrected_uncertainty(counts, mutual, marginal)


def describe_couplings(counts: Counts, target: str | None) -> dict[str, Any] | None:
    """Return the strongest pairs of columns, and an order that puts tied columns side by side."""
    if len(counts.names) < 2:
        return None
    strength = coupled(counts)
    a, b = np.triu_indices(len(strength), 1)
    n_pairs = 100
    worth = np.argsort(-strength[a, b], kind="stable")[:n_pairs]
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
    many = len(strength) > 30  # then a matrix: lines between more could not be told apart
    n_shown = MAX_MATRIX_COLUMNS if many else 40
    chosen = np.sort(np.argsort(-total, kind="stable")[:n_shown])
    if target is not None and counts.names.index(target) not in chosen:
        chosen = np.append(chosen[:-1], counts.names.index(target))
    chosen = chosen[circle_order(strength[np.ix_(chosen, chosen)])]
    out = {
        "nodes": [{"name": counts.names[i], "total": rounded(total[i])} for i in chosen],
        "pairs": pairs,
        "of": len(counts.names),
        "found": int((strength[a, b] >= FAINT).sum()),
    }
    # A circle of many columns would be a ball of yarn.
    return out | {"matrix": rounded(strength[np.ix_(chosen, chosen)], 2)} if many else out
