"""Answers about a finished job: marks of its map, rows like a row, groups, values, columns.

A job left its rows, its model and arrays about its map in a folder; filters come as a boolean for
each row. Nothing is learned here.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tabweave.apps.report.columns import by_frequency
from tabweave.apps.report.html import shown
from tabweave.apps.report.reading import Reading, as_values
from tabweave.apps.report.rows import column_shares, joined
from tabweave.apps.studio.jobs import StudioJob
from tabweave.apps.studio.rows import Rows, round_end
from tabweave.columns.table import Table, take_rows
from tabweave.counts.counts import Counts
from tabweave.io.store import load
from tabweave.neighbors.index import SimilarityIndex
from tabweave.neighbors.stored import asked_rows
from tabweave.space.numbers import quantile_edges

MAX_LABELS = 20_000  # Values that marks can be coloured by; the others share a colour.
N_CROSSED_BINS = 10  # Bins of numbers in a cross-table.
MAX_CROSSED_VALUES = 20  # Values of a column in a cross-table; the others share a line.
MAX_NEIGHBORS = 200  # Rows of a list of neighbours.
PAIRS_BETWEEN_GROUPS = 2_000  # Pairs of rows from which the distance of two groups is estimated.
MAX_LISTED_COPIES = 20  # Equal rows of a neighbour that are listed by number.


@lru_cache(maxsize=2)
def _reading(folder: Path) -> Reading:
    choices = json.loads((folder / "reading.json").read_text(encoding="utf-8"))
    return Reading(load(folder / "rows.tabweave"), choices["target"], choices["left_out"])


@lru_cache(maxsize=4)
def _model(folder: Path) -> Any:
    return load(folder / "model.tabweave")


@lru_cache(maxsize=2)
def _index(folder: Path) -> SimilarityIndex:
    return SimilarityIndex(_model(folder), backend="exact").fit(_reading(folder).features())


_INDEX_LOCK = threading.Lock()  # Who asks for an index that is being made waits for it.


@lru_cache(maxsize=2)
def _counts(folder: Path) -> Counts:
    return Counts.of(_reading(folder).values())


def opened(job: StudioJob) -> tuple[Reading, Any]:
    """The rows of a job as they were read, and its model, unless the file was written again."""
    job.source.check_current()
    return _reading(job.folder), _model(job.folder)


def index_of(job: StudioJob) -> SimilarityIndex:
    """The rows of a job, to find those that are near."""
    with _INDEX_LOCK:
        return _index(job.folder)


def check_row(row: int, n: int) -> None:
    """Refuse a row that is not there."""
    if not 0 <= row < n:
        raise ValueError(f"expected a row number from 0 to {n - 1:,}, got {row}")


# -- marks of the map -----------------------------------------------------------------------------


def _array(job: StudioJob, name: str) -> np.ndarray:
    return np.load(job.folder / f"{name}.npy", mmap_mode="r")


def rows_of_marks(job: StudioJob, marks: list[int]) -> np.ndarray:
    """Which rows marks of the map stand for."""
    n_marks = len(_array(job, "rows"))
    is_chosen = np.zeros(n_marks + 1, bool)  # the last one for rows that are not on the map
    for mark in marks:
        if not 0 <= mark < n_marks:
            raise ValueError(f"expected a mark from 0 to {n_marks - 1:,}, got {mark}")
    is_chosen[marks] = True
    return np.asarray(is_chosen[_array(job, "row_marks")])


def rows_by_mark(job: StudioJob, mask: np.ndarray) -> np.ndarray:
    """How many rows of a mask each mark stands for."""
    marks = _array(job, "row_marks")[mask]
    n_marks = len(_array(job, "rows"))
    return np.bincount(marks[marks >= 0], minlength=n_marks).astype("<u4")


def mark_of_row(job: StudioJob, row: int) -> int | None:
    """The mark that stands for a row; None if it is not drawn."""
    marks = _array(job, "row_marks")
    check_row(row, len(marks))
    return int(marks[row]) if marks[row] >= 0 else None


def names_of_marks(job: StudioJob, rows: Rows, marks: list[int]) -> dict[str, Any]:
    """The first row of each mark, and what it is called."""
    if len(marks) > 1000:
        raise ValueError(f"expected at most 1,000 marks, got {len(marks):,}")
    rows_of_marks(job, marks)  # which refuses others
    numbers = np.asarray(_array(job, "rows")[marks], np.int64)
    return {"names": rows.names_of(numbers), "rows": numbers.tolist()}


def groups_of_marks(job: StudioJob, rows: Rows) -> np.ndarray:
    """The last group that half of the rows of each mark are in, -1 if none."""
    copies, out = _array(job, "copies"), np.full(len(_array(job, "rows")), -1, "<i2")
    for i, group in enumerate(rows.groups.values()):
        out[2 * rows_by_mark(job, group.mask) >= copies] = i
    return out


def colours(job: StudioJob, name: str) -> dict[str, Any]:
    """The cells of any column by mark: of several rows the most frequent value, or the mean.

    ``mixed`` says for each mark which share of its rows, in percent, has that value.
    """
    reading, _ = opened(job)
    if name not in reading.table.schema.names:
        raise KeyError(f"expected a column of the table, got {name!r}")
    data, column = reading.table[name], reading.table.schema[name]
    marks = np.asarray(_array(job, "row_marks"))
    n_marks = len(_array(job, "rows"))
    if data.is_continuous:
        values, majority, share = _by_majority(data.values, marks, n_marks)
        if not column.is_dated:
            values = _means(data.values, marks, n_marks, values[majority])
        else:
            values = 1000 * values[majority]
        return {"name": name, "form": "numbers", "date": bool(column.is_dated),
                "numbers": _encoded(values, "<f8"), "mixed": _encoded(share, "u1")}  # fmt: skip
    data = joined(data) if data.is_set else data.as_values()
    order = by_frequency(data)[:MAX_LABELS]
    index = np.full(len(data.labels), len(order))
    index[order] = np.arange(len(order))
    if None in data.labels:
        index[data.labels.index(None)] = -1
    values, majority, share = _by_majority(index[data.codes], marks, n_marks)
    labels = [shown(data.labels[i]) for i in order]
    has_others = bool((index == len(order)).any())
    labels += ["other values"] * has_others
    return {"name": name, "form": "labels", "labels": labels, "others": has_others,
            "codes": _encoded(values[majority], "<i4"), "mixed": _encoded(share, "u1")}  # fmt: skip


def _by_majority(
    cells: np.ndarray, marks: np.ndarray, n_marks: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values of cells, the most frequent one of each mark, and its share in percent."""
    values, codes = np.unique(cells, return_inverse=True)
    drawn = marks >= 0
    pairs, counts = np.unique(
        marks[drawn].astype(np.int64) * len(values) + codes[drawn], return_counts=True
    )
    owner = pairs // len(values)
    order = np.lexsort((-counts, owner))  # of equal counts the smaller value
    first = order[np.searchsorted(owner[order], np.arange(n_marks))]
    total = np.bincount(owner, counts, minlength=n_marks)
    return values, pairs[first] % len(values), np.floor(100 * counts[first] / total)


def _means(
    numbers: np.ndarray, marks: np.ndarray, n_marks: int, majority: np.ndarray
) -> np.ndarray:
    """The mean of the numbers of each mark; what its majority has where that is no number."""
    is_number = np.isfinite(numbers) & (marks >= 0)
    n = np.bincount(marks[is_number], minlength=n_marks)
    total = np.bincount(marks[is_number], numbers[is_number], minlength=n_marks)
    return np.where(n > 0, total / np.maximum(n, 1), majority)


def _encoded(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, np.dtype(kind)).tobytes()).decode()


# -- rows like this one, but ----------------------------------------------------------------------


def card(job: StudioJob, rows: Rows, row: int) -> dict[str, Any]:
    """A row as cells to edit, those that are compared first."""
    reading, _ = opened(job)
    check_row(row, rows.n_rows)
    names = [column["name"] for column in rows.columns]
    (line,) = rows.cells(np.array([row]), names)
    cells = dict(zip(names, line["cells"], strict=True))
    described = [
        {"column": c["name"], "value": cells[c["name"]], "type": c["type"],
         "compared": c["name"] in reading.kept} for c in rows.columns
    ]  # fmt: skip
    described.sort(key=lambda one: not one["compared"])
    return {"row": row, "name": line["name"], "cells": described, "mark": mark_of_row(job, row)}


def rows_like(
    job: StudioJob,
    rows: Rows,
    row: int | None,
    cells: Mapping[str, Mapping[str, Any]],
    k: int,
    filters: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """The rows most like one, some of whose cells are others, must be equal, or count otherwise."""
    reading, model = opened(job)
    if not 1 <= k <= MAX_NEIGHBORS:
        raise ValueError(f"expected 1 to {MAX_NEIGHBORS} neighbours, got {k}")
    query, equal = _edited(reading, rows, row, cells)
    mask = rows.mask([*filters, *equal])
    answer = {"compared": list(query), "passing": int(mask.sum())}
    if not mask.any():
        return answer | {"near": []}
    weights = {name: float(c["weight"]) for name, c in cells.items() if c.get("weight") is not None}
    weights = {name: w for name, w in weights.items() if name in query and w != 1}
    index = index_of(job)
    query_table, _ = asked_rows(model, query, index._stored.schema)
    if weights:
        distances, positions = _weighted(job, query_table, weights, k, mask)
    else:
        found = index.query(query, k, mask, distinct=True)
        distances, positions = found.distances[0], found.positions[0]
    near = _described_rows(job, rows, positions, list(query), mask)
    shares = _shares(model, reading.features(), query_table, positions, weights)
    for j, one in enumerate(near):
        one["distance"] = float(distances[j])
        one["shares"] = {name: float(share[j]) for name, share in shares.items()}
        one["is_anchor"] = row is not None and row in one["copy_rows"]
        one["copy_rows"] = one["copy_rows"][:MAX_LISTED_COPIES]
    return answer | {"near": near}


def _described_rows(
    job: StudioJob, rows: Rows, positions: np.ndarray, compared: list[str], mask: np.ndarray
) -> list[dict[str, Any]]:
    """Rows with their cells, their marks, and the rows that are equal to them."""
    names = [column["name"] for column in rows.columns]
    out = []
    for line, position in zip(rows.cells(positions, names), positions.tolist(), strict=True):
        copies = index_of(job).equal_rows(position, compared, mask).tolist()
        out.append(
            {
                "row": position,
                "name": line["name"],
                "cells": dict(zip(names, line["cells"], strict=True)),
                "mark": mark_of_row(job, position),
                "copies": len(copies),
                "copy_rows": copies,
            }
        )
    return out


def _edited(
    reading: Reading, rows: Rows, row: int | None, cells: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row that is looked for, cell by cell, and filters for the cells that must be equal."""
    query: dict[str, Any] = {}
    stored: dict[str, Any] = {}
    if row is not None:
        check_row(row, rows.n_rows)
        names = [column["name"] for column in rows.columns]
        stored = dict(zip(names, rows.cells(np.array([row]), names)[0]["cells"], strict=True))
        query = {name: reading.table[name].cell(row) for name in reading.kept}
    equal = []
    for name, cell_ in cells.items():
        i, rule = rows.number_of(name), cell_.get("rule", "like")
        if rule not in ("like", "equal", "ignore"):
            raise ValueError(f"column {name!r}: expected like, equal or ignore, got {rule!r}")
        if not 0 <= float(cell_.get("weight") or 1) <= 1000:
            raise ValueError(f"column {name!r}: expected a weight from 0 to 1,000, got {cell_!r}")
        value = cell_["value"] if "value" in cell_ else stored.get(name)
        if rule == "equal":
            is_several = rows.columns[i]["type"] == "set" and isinstance(value, list)
            values = list(value or []) if is_several else [value]
            equal += [{"column": name, "in": [one]} for one in values]
        if rule == "ignore":
            query.pop(name, None)
        elif name in reading.kept and "value" in cell_:
            query[name] = _as_read(reading, name, value)
        elif "value" in cell_ and rule == "like":
            raise ValueError(f"column {name!r} is not compared; it can be filtered by rule 'equal'")
    if not query:
        raise ValueError("no column is left to compare rows by; ignore fewer")
    return query, equal


def _as_read(reading: Reading, name: str, value: Any) -> Any:
    """A value of the page as the column has its cells."""
    data = reading.table[name]
    if data.is_continuous or value is None or data.is_set:
        if data.is_continuous and not data.is_dated and isinstance(value, str):
            try:
                return float(value)
            except ValueError:
                raise ValueError(f"column {name!r}: expected a number, got {value!r}") from None
        return value
    return next((label for label in data.labels if label == value or str(label) == value), value)


def _weighted(
    job: StudioJob, query: Table, weights: Mapping[str, float], k: int, mask: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Distances and numbers of the nearest rows by what columns add up to, some times a weight."""
    model, index = _model(job.folder), index_of(job)
    rows = np.flatnonzero(mask)
    features = index._stored.take(rows)
    space = model.learn().space_.only(query.schema.names)
    total = np.zeros(len(rows))
    for part in space.parts():
        total += _weight_of(part, weights) * part.summands(query, features, model.unknown)[0]
    positions: list[int] = []
    order, is_listed = np.argsort(total, kind="stable"), np.zeros(len(mask), bool)
    for j in order.tolist():
        if len(positions) == k:
            break
        if not is_listed[rows[j]]:
            positions.append(j)
            is_listed[index.equal_rows(int(rows[j]), list(query.schema.names), mask)] = True
    return space.rooted(total[positions]), rows[positions]


def _weight_of(part: Any, weights: Mapping[str, float]) -> float:
    named = {weights.get(name, 1.0) for name in part.names}
    if len(named) > 1:
        names = ", ".join(map(repr, list(part.names)[:5]))
        raise ValueError(
            f"this method compares the columns {names} together, so that one of them cannot be "
            "weighed alone; choose the method 'auto'"
        )
    return named.pop()


def _shares(
    model: Any, features: Table, query: Table, positions: np.ndarray, weights: Mapping[str, float]
) -> dict[str, np.ndarray]:
    """Each column's share in the distance of a row and each of others; they add up to 1."""
    space = model.learn().space_.only(query.schema.names)
    repeated = take_rows(query, np.zeros(len(positions), int))
    others = take_rows(features.select(query.schema.names), positions)
    parts = space.shares(repeated, others, unknown=model.unknown)
    parts = {name: weights.get(name, 1.0) * part for name, part in parts.items()}
    total = np.abs(sum(np.abs(part) for part in parts.values()))
    return {name: part / np.where(total > 0, total, 1) for name, part in parts.items()}


# -- groups ---------------------------------------------------------------------------------------


def between_groups(job: StudioJob, a: np.ndarray, b: np.ndarray) -> dict[str, Any]:
    """The mean distance between rows of two groups, and each column's share in it.

    What rows of one group differ by among themselves is subtracted, as in the energy distance:
    what is left is the distance of their means.
    """
    reading, model = opened(job)
    rng = np.random.default_rng(0)
    rows = [np.flatnonzero(a), np.flatnonzero(b)]
    if not len(rows[0]) or not len(rows[1]):
        raise ValueError("expected two groups with rows in each, got an empty one")
    drawn = [rng.choice(side, (2, PAIRS_BETWEEN_GROUPS)) for side in rows]
    features = reading.features()
    across = column_shares(model, features, drawn[0][0], drawn[1][0])
    within = [column_shares(model, features, *pair) for pair in drawn]
    mean = {name: float(part.mean()) for name, part in across.items()}
    gap = {n: max(0.0, mean[n] - sum(float(w[n].mean()) for w in within) / 2) for n in mean}
    total = sum(gap.values())
    shares = {name: part / total if total else 0.0 for name, part in gap.items()}
    order = sorted(shares, key=lambda name: -shares[name])
    columns = [{"column": name, "share": shares[name]} for name in order]
    space = model.learn().space_
    return {
        "distance": float(space.rooted(np.array([total]))[0]),
        "between_rows": float(space.rooted(np.array([sum(mean.values())]))[0]),
        "columns": columns,
    }


# -- columns and values ---------------------------------------------------------------------------


def crossed(job: StudioJob, a: str, b: str, mask: np.ndarray) -> dict[str, Any]:
    """How many rows have each pair of values of two columns, and how many chance would give."""
    reading, _ = opened(job)
    rows, columns = (_few_values(reading, name) for name in (a, b))
    width = len(columns["labels"])
    pairs = rows.pop("codes")[mask] * width + columns.pop("codes")[mask]
    counts = np.bincount(pairs, minlength=len(rows["labels"]) * width).reshape(-1, width)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(counts.sum(), 1)
    return {
        "a": rows,
        "b": columns,
        "counts": counts.tolist(),
        "expected": np.round(expected, 3).tolist(),
        "of": int(counts.sum()),
    }


def _few_values(reading: Reading, name: str) -> dict[str, Any]:
    """The values of a column, the most frequent of many, their filters, and each row's code."""
    if name not in reading.table.schema.names:
        raise KeyError(f"expected a column of the table, got {name!r}")
    column = reading.table.schema[name]
    cells = reading.table[name]
    data: Any = as_values(cells, N_CROSSED_BINS)
    data = joined(data) if data.is_set else data
    order = by_frequency(data)
    if column.is_continuous or column.is_ordered:
        order = np.sort(order)
    top = order[:MAX_CROSSED_VALUES]
    labels = [shown(data.labels[i]) for i in top]
    index = np.full(len(data.labels), len(top))
    index[top] = np.arange(len(top))
    filters: list[Any] = [{"column": name, "in": [data.labels[i]]} for i in top]
    if column.is_continuous:
        bins = _bin_filters(column, cells)
        filters = bins if len(bins) == len(top) else []
    elif column.is_set:
        filters = []
    if len(order) > len(top):
        labels.append(f"{len(order) - len(top):,} others")
    filters += [None] * (len(labels) - len(filters))
    if None in data.labels:
        index[data.labels.index(None)] = len(labels)
        labels.append(None)
        filters.append({"column": name, "in": [None]})
    return {"column": name, "labels": labels, "filters": filters, "codes": index[data.codes]}


def _bin_filters(column: Any, cells: Any) -> list[dict[str, Any]]:
    """The bins of numbers as filters."""
    edges = quantile_edges(cells.values, N_CROSSED_BINS).tolist()
    ends = [None, *(round_end(column, edge) for edge in edges), None]
    return [{"column": column.name} | {"min": low, "below": high} for low, high in pairwise(ends)]


def values_alike(job: StudioJob, name: str, a: str, b: str) -> dict[str, Any]:
    """In which columns two values of a column go with the same values, the most telling first.

    The overlap of a column is the share of the rows of both that would still match if each went
    with its values; ``usual`` is that of the first with all other values, weighted by their rows.
    """
    opened(job)
    counts = _counts(job.folder)
    if name not in counts.names:
        raise KeyError(f"expected a column that is compared, got {name!r}")
    texts = list(map(shown, counts.labels[counts.vocabulary.index(name)]))
    for value in (a, b):
        if value not in texts:
            raise ValueError(f"column {name!r}: expected one of its values, got {value!r}")
    i, j = texts.index(a), texts.index(b)
    n_rows = counts.value_counts[counts.span(name)].astype(float)
    columns: list[dict[str, Any]] = []
    for other in counts.names:
        if other == name:
            continue
        block = np.asarray(counts.block(name, other), float)
        shares = block / np.maximum(block.sum(axis=1, keepdims=True), 1)
        overlaps = np.minimum(shares, shares[i]).sum(axis=1)
        weights = n_rows.copy()
        weights[i] = 0
        usual = float(overlaps @ weights / max(weights.sum(), 1))
        labels = counts.labels[counts.vocabulary.index(other)]
        top = np.argsort(-np.minimum(shares[i], shares[j]), kind="stable")[:6]
        values = [
            {"value": shown(labels[v]), "a": float(shares[i, v]), "b": float(shares[j, v])}
            for v in top.tolist()
            if shares[i, v] or shares[j, v]
        ]
        overlap = float(overlaps[j])
        columns.append({"column": other, "overlap": overlap, "usual": usual, "values": values})
    columns.sort(key=lambda one: one["usual"] - one["overlap"])
    rows = {"a": int(n_rows[i]), "b": int(n_rows[j])}
    return {"column": name, "a": a, "b": b, "rows": rows, "columns": columns}
