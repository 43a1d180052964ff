"""Warnings: what to look at in a table before trusting anything learned from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tabweave.apps.report.columns import by_frequency, missing_rows, near_and_far, value_counts
from tabweave.apps.report.html import percent, quoted, rounded, row_count, shown, written
from tabweave.apps.report.reading import Reading, as_values, is_doubtful
from tabweave.columns.column import Column, Schema
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets
from tabweave.columns.table import Table, distinct_rows, row_keys, take_rows
from tabweave.columns.texts import looks_missing
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import chance_information, information

if TYPE_CHECKING:
    from tabweave.tasks.outliers import OutlierCells

_CODES = 6  # whole numbers of so few values may be codes

Note = dict[str, Any]


def describe_warnings(reading: Reading, couplings: dict[str, Any] | None) -> list[Note]:
    """Return what is odd about the columns, the rows and the target, gravest first."""
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
    name, n = column.name, reading.table.n_rows
    read = reading.findings[name]
    if is_doubtful(read):
        left_out = name in reading.left_out
        text = f"holds {read.why}" + ("; it is not used below" if left_out else "")
        text += "; it is read as categories" * (
            read.asks == "exceptions" and read.kind == "nominal" and not left_out
        )
        yield _note("warning" if left_out else "note", "doubt", name, text)
    elif name in reading.left_out:
        why = reading.left_out[name]
        text = f"{why}; it tells rows apart, not what they are like, and is not used below"
        yield _note("warning", "identifier", name, text)
    gaps = missing_rows(data)
    if gaps == n:
        yield _note("warning", "empty", name, "is empty: every cell is missing")
        return
    if gaps > 0.2 * n:
        level = "warning" if gaps > 0.5 * n else "note"
        yield _note(level, "missing", name, f"is missing in {percent(gaps / n)} of the rows")
    if column.kind == "datetime":
        return
    if isinstance(data, Numbers):
        many = reading.codes[name].max(initial=0) > _CODES  # gaps are one more
        if not many:
            yield from _of_few(column, data, name == reading.target)
        yield from _of_far(column, data)
    else:
        yield from _of_values(column, data, n, name in reading.left_out)


def _of_few(column: Column, data: Numbers, is_target: bool) -> Iterator[Note]:
    present = np.unique(data.values[~np.isnan(data.values)])
    if len(present) == 1:
        yield _note("warning", "constant", column.name, f"is {written(present[0])} in every row")
    elif len(present) <= _CODES and (present == np.floor(present)).all() and not is_target:
        text = f"is read as numbers, but has only {len(present)} values; declare it nominal if "
        yield _note("note", "codes", column.name, text + "they are codes")


def _of_far(column: Column, data: Numbers) -> Iterator[Note]:
    near, under, over = near_and_far(data.values[~np.isnan(data.values)])
    for far, text in ((under, "below all others, which are at least"),
                      (over, "above all others, which are at most")):  # fmt: skip
        if len(far):
            bound = near.min() if far is under else near.max()
            values = list(dict.fromkeys(far.tolist()))
            shown_as = ", ".join(written(value) for value in values[:3])
            more = f" and {len(values) - 3} more" if len(values) > 3 else ""
            text = f"holds {shown_as}{more}, far {text} {written(bound)}; a typo?"
            yield _note("note", "far", column.name, text)


def _of_values(column: Column, data: Codes | Sets, n: int, left_out: bool) -> Iterator[Note]:
    name, first, counts = column.name, by_frequency(data), value_counts(data)
    texts = [data.labels[i] for i in first]
    if len(first) == 1 and counts[first[0]] == n:
        yield _note("warning", "constant", name, f"is {quoted(texts[0])} in every row")
    rare = int((counts[first] < 5).sum())
    if not left_out and rare > 20 and rare > 0.5 * len(first):
        text = f"{rare:,} of its {len(first):,} values occur fewer than five times; group them"
        yield _note("note", "rare", name, text)
    if left_out:  # of identifiers, only what occurs again can mean anything
        texts = texts[: int((counts[first] > 1).sum())]
    for label, i in zip(texts, first, strict=False):
        if looks_missing(label):
            text = f"{quoted(label)} ({row_count(int(counts[i]))}) looks like a missing value"
            yield _note("note", "disguised", name, text + " written as text")
    yield from _of_spelling(name, [label for label in texts if isinstance(label, str)])


def _of_spelling(name: str, labels: list[str]) -> Iterator[Note]:
    seen: dict[str, str] = {}
    for label in labels:
        plain = " ".join(label.split()).casefold()
        if plain in seen:
            text = f"{quoted(seen[plain])} and {quoted(label)} differ only in case or spaces"
            yield _note("note", "spelling", name, text)
            return  # one example is enough
        seen[plain] = label


# -- rows ---------------------------------------------------------------------------------------


def _of_rows(reading: Reading) -> Iterator[Note]:
    table = reading.table
    distinct = len(distinct_rows(list(reading.codes.values()))[0])
    again = table.n_rows - distinct
    if again:
        sizes = [_n_values(data) for _, data in table]
        room = np.log(np.maximum(sizes, 1)).sum() > np.log(10 * table.n_rows)
        are = "is a copy of another" if again == 1 else "are copies of others"
        text = f"{row_count(again)} ({percent(again / table.n_rows, 1)}) {are}"
        if room:  # chance alone would not make them
            text += "; a random split would put copies on both sides"
        grave = room and again > 0.1 * table.n_rows
        yield _note("warning" if grave else "note", "duplicates", None, text)


def _n_values(data: Any) -> float:
    """Return how many values a column can have; measurements, any number."""
    if not isinstance(data, Numbers):
        return len(by_frequency(data))
    met = len(np.unique(data.values))
    return np.inf if met > 0.1 * len(data.values) else met


def _of_pairs(couplings: dict[str, Any], target: str | None) -> Iterator[Note]:
    for pair in couplings["pairs"]:
        if pair["strength"] >= 0.99 and target not in (pair["a"], pair["b"]):
            text = f"is redundant with “{pair['b']}”: their values correspond one to one"
            yield _note("note", "twins", pair["a"], text)


# -- target -------------------------------------------------------------------------------------


def _of_target(reading: Reading, target: str) -> Iterator[Note]:
    data = as_values(reading.table[target], 10)
    if isinstance(data, Sets):
        return
    counts = value_counts(data)
    first = by_frequency(data)
    if not isinstance(reading.table[target], Numbers) and len(first):
        least = first[-1]
        if counts[least] < 0.01 * reading.table.n_rows and len(first) <= 50:
            few = row_count(int(counts[least]))
            text = f"its value {quoted(data.labels[least])} has only {few}"
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
    width = len(classes.labels)
    keys, count = np.unique(group * width + classes.codes, return_counts=True)
    most = np.zeros(len(first), int)
    np.maximum.at(most, keys // width, count)
    lost = reading.table.n_rows - int(most.sum())
    if lost > 0.01 * reading.table.n_rows:
        best = 1 - lost / reading.table.n_rows
        text = "rows that agree in all other columns differ in it: no model can be right in more"
        yield _note("note", "conflicts", target, text + f" than {percent(best, 1)} of these rows")


# -- associations and odd cells --------------------------------------------------------------------

_COMPARED = 20_000  # rows that they are found from
_ODD = 15  # cells on a page
_LEARNED = 2_000  # rows that odd cells are learned from, drawn from all
_JUDGED = 20_000  # rows that are looked at, drawn from all
_COLOURS = 8  # of unordered groups on the map


def describe_associations(reading: Reading) -> dict[str, Any] | None:
    """Return the strongest pairs of columns, with their tests; None if there are no two columns."""
    from tabweave.tasks.associations import measured

    names = reading.kept + ([reading.target] if reading.target else [])
    if len(names) < 2:
        return None
    table = reading.table.select(names)
    if table.n_rows > _COMPARED:
        table = take_rows(table, np.linspace(0, table.n_rows - 1, _COMPARED).astype(int))
    found = measured(table, with_phi=False)
    order = np.argsort(-found.values["strength"], kind="stable")[:30]
    other = np.where(
        np.isnan(found.values["spearman"]),
        found.values["correlation_ratio"],
        found.values["spearman"],
    )
    pairs = [
        {
            "a": found.pairs[i][0],
            "b": found.pairs[i][1],
            "strength": rounded(found.values["strength"][i]),
            "other": rounded(other[i]),
            "p": rounded(found.values["adjusted_p_value"][i]),
        }
        for i in order.tolist()
    ]
    return {"of": table.n_rows, "found": len(found.pairs), "pairs": pairs}


def learn_outliers(reading: Reading, random_state: int) -> OutlierCells | None:
    """Return what says which cells are odd, or None for a table too small to say."""
    from tabweave.tasks.outliers import OutlierCells

    names = reading.kept + ([reading.target] if reading.target else [])
    names = [name for name in names if _squares_fit(reading.table[name])]
    table = reading.table.select(names)
    if len(names) < 2 or table.n_rows < 20:
        return None
    # Counts alone: a page is to be there soon.
    return OutlierCells(engine="counts", max_rows=_LEARNED, random_state=random_state).fit(table)


def describe_outliers(reading: Reading, model: OutlierCells | None) -> dict[str, Any] | None:
    """Return the cells that fit their rows worst, if any is odd at one in a hundred."""
    if model is None:
        return None
    rows = _drawn_evenly(reading.table.n_rows, _JUDGED)
    table = take_rows(reading.table.select(list(model.schema_.names)), rows)
    cells, _ = model._cells_of_fit(table, _ODD, rows)
    cells = [cell for cell in cells if cell.p_value <= model.level]
    return {"of": len(rows), "cells": [reading.row_and_id(cell.row) | _odd(cell) for cell in cells]}


def _drawn_evenly(n_rows: int, most: int) -> np.ndarray:
    """Return the rows of a large table that stand for all: those whose hashes are lowest."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.argpartition(row_keys(0, n_rows), most)[:most])


def odd_columns(reading: Reading, model: OutlierCells | None, rows: np.ndarray) -> dict[str, Any]:
    """Return in which column each of some rows is odd, as the map takes it; -1: in none."""
    if model is None:
        return {}
    from tabweave.tasks.outliers import oddest

    names = list(model.schema_.names)
    table = take_rows(reading.table.select(names), rows)
    judged = model._judged_of_fit(table, rows)
    worst = oddest(judged.scores)
    worst[judged.p_values[np.arange(len(worst)), worst] > model.level] = -1
    counts = np.bincount(worst[worst >= 0], minlength=len(names))
    order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
    kept = order[: _COLOURS - (len(order) > _COLOURS)]
    codes = np.full(len(names) + 1, len(kept))
    codes[kept], codes[-1] = np.arange(len(kept)), -1
    labels = [names[i] for i in kept] + ["another column"] * (len(order) > len(kept))
    return {"odd": {"labels": labels, "codes": codes[worst].tolist()}}


def _squares_fit(data: Any) -> bool:
    """Say whether the squares of a column's numbers are numbers, too."""
    values = getattr(data, "values", None)
    return values is None or bool(np.nanmax(np.abs(values), initial=0.0) < 1e150)


def _odd(cell: Any) -> dict[str, Any]:
    against = "any value seen before" if cell.is_new else "nothing in particular"
    if cell.against is not None:
        column, value, both, n = cell.against
        against = f"{column} = {shown(value)}: {both:,} of {n:,} rows"
    number = isinstance(cell.value, float)
    value = written(cell.value) if number else shown(cell.value)
    return {
        "column": cell.column,
        "value": value,
        "against": against,
        "p": rounded(cell.p_value),
    }
