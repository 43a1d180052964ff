"""Warnings: what to look at in a table before trusting anything learned from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tabweave.apps.report.columns import by_frequency, missing_rows, near_and_far, value_counts
from tabweave.apps.report.html import percent, quoted, rounded, row_count, shown, written
from tabweave.apps.report.reading import Reading, as_values, is_doubtful
from tabweave.columns.column import Column, Schema
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets
from tabweave.columns.table import Table, distinct_rows, sampled_rows, take_rows
from tabweave.columns.texts import looks_missing
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import chance_information, information
from tabweave.tasks.associations import measured
from tabweave.tasks.outliers import OutlierCell, OutlierCells, oddest

Note = dict[str, Any]


def describe_warnings(reading: Reading, couplings: dict[str, Any] | None) -> list[Note]:
    """What is odd about the columns, the rows and the target, gravest first."""
    notes = [note for column, data in reading.table for note in _of_column(reading, column, data)]
    notes += _of_rows(reading)
    if couplings is not None:
        notes += _of_pairs(couplings, reading.target)
    if reading.target is not None:
        notes += _of_target(reading, reading.target)
    return sorted(notes, key=lambda note: note["level"] != "warning")


def _note(level: str, code: str, column: str | None, text: str) -> Note:
    return {"level": level, "code": code, "column": column, "text": text}


# -- columns ------------------------------------------------------------------------------------


def _of_column(reading: Reading, column: Column, data: Any) -> Iterator[Note]:
    name, n_rows = column.name, reading.table.n_rows
    finding, is_left_out = reading.findings[name], name in reading.left_out
    if is_doubtful(finding):
        text = f"holds {finding.why}"
        if is_left_out:
            text += "; it is not used below"
        elif finding.question == "exceptions" and finding.kind == "nominal":
            text += "; it is read as categories"
        yield _note("warning" if is_left_out else "note", "doubt", name, text)
    elif is_left_out:
        text = "it tells rows apart, not what they are like, and is not used below"
        yield _note("warning", "identifier", name, f"{reading.left_out[name]}; {text}")
    n_missing = missing_rows(data)
    if n_missing == n_rows:
        yield _note("warning", "empty", name, "is empty: every cell is missing")
        return
    if n_missing > 0.2 * n_rows:
        level = "warning" if n_missing > 0.5 * n_rows else "note"
        text = f"is missing in {percent(n_missing / n_rows)} of the rows"
        yield _note(level, "missing", name, text)
    if column.kind == "datetime":
        return
    if isinstance(data, Numbers):
        yield from _of_few_numbers(name, data, name == reading.target)
        yield from _of_far_numbers(name, data)
    else:
        yield from _of_values(name, as_values(data), n_rows, is_left_out)


def _of_few_numbers(name: str, data: Numbers, is_target: bool) -> Iterator[Note]:
    numbers, max_codes = np.unique(data.values[~np.isnan(data.values)]), 6
    if len(numbers) == 1:
        yield _note("warning", "constant", name, f"is {written(numbers[0])} in every row")
    elif len(numbers) <= max_codes and (numbers % 1 == 0).all() and not is_target:
        text = f"is read as numbers, but has only {len(numbers)} values; declare it nominal if "
        yield _note("note", "codes", name, text + "they are codes")


def _of_far_numbers(name: str, data: Numbers) -> Iterator[Note]:
    near, under, over = near_and_far(data.values[~np.isnan(data.values)])
    for far, text, bound in (
        (under, "below all others, which are at least", near.min),
        (over, "above all others, which are at most", near.max),
    ):
        if len(far):
            values = list(dict.fromkeys(far.tolist()))
            texts = ", ".join(map(written, values[:3]))
            texts += f" and {len(values) - 3} more" if len(values) > 3 else ""
            text = f"holds {texts}, far {text} {written(bound())}; a typo?"
            yield _note("note", "far", name, text)


def _of_values(name: str, data: Codes | Sets, n_rows: int, is_left_out: bool) -> Iterator[Note]:
    order, counts = by_frequency(data), value_counts(data)
    labels = [data.labels[i] for i in order]
    if len(order) == 1 and counts[order[0]] == n_rows:
        yield _note("warning", "constant", name, f"is {quoted(labels[0])} in every row")
    n_rare = int((counts[order] < 5).sum())
    if not is_left_out and n_rare > 20 and n_rare > 0.5 * len(order):
        text = f"{n_rare:,} of its {len(order):,} values occur fewer than five times; group them"
        yield _note("note", "rare", name, text)
    if is_left_out:  # of identifiers, only what occurs again can mean anything
        labels = labels[: int((counts[order] > 1).sum())]
    for label, i in zip(labels, order, strict=False):
        if looks_missing(label):
            text = f"{quoted(label)} ({row_count(int(counts[i]))}) looks like a missing value"
            yield _note("note", "disguised", name, text + " written as text")
    yield from _of_spelling(name, [label for label in labels if isinstance(label, str)])


def _of_spelling(name: str, labels: list[str]) -> Iterator[Note]:
    first: dict[str, str] = {}
    for label in labels:
        other = first.setdefault(" ".join(label.split()).casefold(), label)
        if other is not label:
            text = f"{quoted(other)} and {quoted(label)} differ only in case or spaces"
            yield _note("note", "spelling", name, text)
            return  # one example is enough


# -- rows ---------------------------------------------------------------------------------------


def _of_rows(reading: Reading) -> Iterator[Note]:
    n_rows = reading.table.n_rows
    n_copies = n_rows - len(distinct_rows(list(reading.codes.values()))[0])
    if n_copies:
        n_values = [_n_values(data) for _, data in reading.table]
        is_chance = np.log(np.maximum(n_values, 1)).sum() <= np.log(10 * n_rows)
        are = "is a copy of another" if n_copies == 1 else "are copies of others"
        text = f"{row_count(n_copies)} ({percent(n_copies / n_rows, 1)}) {are}"
        if not is_chance:
            text += "; a random split would put copies on both sides"
        level = "note" if is_chance or n_copies <= 0.1 * n_rows else "warning"
        yield _note(level, "duplicates", None, text)


def _n_values(data: Any) -> float:
    """How many values a column can have; measurements, any number."""
    if not isinstance(data, Numbers):
        return len(by_frequency(data))
    n_values = len(np.unique(data.values))
    return np.inf if n_values > 0.1 * len(data.values) else n_values


def _of_pairs(couplings: dict[str, Any], target: str | None) -> Iterator[Note]:
    for pair in couplings["pairs"]:
        if pair["strength"] >= 0.99 and target not in (pair["a"], pair["b"]):
            text = f"is redundant with “{pair['b']}”: their values correspond one to one"
            yield _note("note", "twins", pair["a"], text)


# -- target -------------------------------------------------------------------------------------


def _of_target(reading: Reading, target: str) -> Iterator[Note]:
    data, n_rows = as_values(reading.table[target], 10), reading.table.n_rows
    if isinstance(data, Sets):
        return
    counts, order = value_counts(data), by_frequency(data)
    if not isinstance(reading.table[target], Numbers) and len(order):
        rarest = order[-1]
        if counts[rarest] < 0.01 * n_rows and len(order) <= 50:
            rows = row_count(int(counts[rarest]))
            text = f"its value {quoted(data.labels[rarest])} has only {rows}"
            yield _note("note", "imbalance", target, text)
    yield from _leaks(reading, target, data)
    yield from _conflicts(reading, target, data)


def _leaks(reading: Reading, target: str, classes: Codes) -> Iterator[Note]:
    """Warn of columns that nearly determine the target, beyond what chance would."""
    for name in reading.kept:
        values = as_values(reading.table[name], 32)
        if isinstance(values, Sets):
            continue
        schema = Schema((Column("x"), Column("y")), complete=True)
        counts = Counts.of(Table(schema, (values, classes), reading.table.n_rows))
        mutual, marginal, _ = information(counts)
        chance = chance_information(counts)[0][0, 1]
        entropy = marginal[1, 0]
        # As in adjusted mutual information: 0 is what chance would show, 1 is all there is to know.
        share = (mutual[0, 1] - chance) / (entropy - chance) if entropy > chance else 0.0
        if share >= 0.9:  # one column alone gives the target away
            text = f"nearly determines “{target}” ({percent(share)} of what there is to know); "
            text += "is it known before the target is?"
            yield _note("warning", "leakage", name, text)


def _conflicts(reading: Reading, target: str, classes: Codes) -> Iterator[Note]:
    """Note rows that agree in everything but the target: no model can separate them."""
    if not reading.kept:
        return
    first, group = distinct_rows([reading.codes[name] for name in reading.kept])
    width, n_rows = len(classes.labels), reading.table.n_rows
    keys, count = np.unique(group * width + classes.codes, return_counts=True)
    largest = np.zeros(len(first), int)
    np.maximum.at(largest, keys // width, count)
    best = int(largest.sum()) / n_rows
    if n_rows - int(largest.sum()) > 0.01 * n_rows:
        text = "rows that agree in all other columns differ in it: no model can be right in more"
        yield _note("note", "conflicts", target, text + f" than {percent(best, 1)} of these rows")


# -- associations and odd cells --------------------------------------------------------------------


def describe_associations(reading: Reading, max_rows: int = 20_000) -> dict[str, Any] | None:
    """The strongest pairs of columns, with their tests; None if there are no two columns."""
    table = reading.table.select(reading.compared)
    if len(table.schema) < 2:
        return None
    if table.n_rows > max_rows:
        table = take_rows(table, np.linspace(0, table.n_rows - 1, max_rows).astype(int))
    tested = measured(table, with_phi=False)
    strength, rho = tested.values["strength"], tested.values["spearman"]
    other = np.where(np.isnan(rho), tested.values["correlation_ratio"], rho)
    columns = {"strength": strength, "other": other, "p": tested.values["adjusted_p_value"]}
    pairs = [
        {"a": tested.pairs[i][0], "b": tested.pairs[i][1]}
        | {name: rounded(values[i]) for name, values in columns.items()}
        for i in np.argsort(-strength, kind="stable")[:30].tolist()
    ]
    return {"of": table.n_rows, "found": len(tested.pairs), "pairs": pairs}


def learn_outliers(reading: Reading, random_state: int) -> OutlierCells | None:
    """What says which cells are odd, learned from some rows; None for a table too small to say."""
    names = [name for name in reading.compared if _may_be_odd(reading.table[name])]
    table = reading.table.select(names)
    if len(names) < 2 or table.n_rows < 20:
        return None
    # Counts alone: a page is to be there soon.
    return OutlierCells(engine="counts", max_rows=2_000, random_state=random_state).fit(table)


def describe_outliers(reading: Reading, model: OutlierCells | None) -> dict[str, Any] | None:
    """The cells that fit their rows worst, if any is odd at one in a hundred."""
    if model is None:
        return None
    max_rows, max_cells = 20_000, 15
    rows = sampled_rows(reading.table.n_rows, max_rows)
    rows = np.arange(reading.table.n_rows) if rows is None else rows
    table = take_rows(reading.table.select(list(model.schema_.names)), rows)
    cells, _ = model._cells_of_fit(table, max_cells, rows)
    return {
        "of": len(rows),
        "cells": [
            reading.row_and_id(cell.row) | _describe_cell(cell)
            for cell in cells
            if cell.p_value <= model.level
        ],
    }


def odd_columns(reading: Reading, model: OutlierCells | None, rows: np.ndarray) -> dict[str, Any]:
    """In which column each of some rows is odd, as the map takes it; -1: in none."""
    if model is None:
        return {}
    names, max_colours = list(model.schema_.names), 8
    table = take_rows(reading.table.select(names), rows)
    judged = model._judged_of_fit(table, rows)
    worst = oddest(judged.scores)
    worst[judged.p_values[np.arange(len(worst)), worst] > model.level] = -1
    counts = np.bincount(worst[worst >= 0], minlength=len(names))
    columns = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
    labels = [names[i] for i in columns]
    if len(columns) > max_colours:
        columns = columns[: max_colours - 1]
        labels = [*labels[: len(columns)], "another column"]
    codes = np.full(len(names) + 1, len(columns))
    codes[columns], codes[-1] = np.arange(len(columns)), -1
    return {"odd": {"labels": labels, "codes": codes[worst].tolist()}}


def _may_be_odd(data: Any) -> bool:
    """Whether cells are values, sets, or numbers whose squares are numbers, too."""
    if isinstance(data, Numbers):
        return bool(np.nanmax(np.abs(data.values), initial=0.0) < 1e150)
    return isinstance(data, Codes | Sets)


def _describe_cell(cell: OutlierCell) -> dict[str, Any]:
    against = "any value seen before" if cell.is_new else "nothing in particular"
    if cell.against is not None:
        column, value, n_both, n = cell.against
        against = f"{column} = {shown(value)}: {n_both:,} of {n:,} rows"
    value = written(cell.value) if isinstance(cell.value, float) else shown(cell.value)
    p_value = rounded(cell.p_value)
    return {"column": cell.column, "value": value, "against": against, "p": p_value}
