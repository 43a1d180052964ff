"""What users call: describe a table, make a page of the description, or both."""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import clone

import tabweave
from tabweave._compat import one_thread, require
from tabweave.apps.methods import build, embedder_title, find, naming_target
from tabweave.apps.report.clusters import assign, describe_clusters, group, how_many
from tabweave.apps.report.columns import (
    by_frequency,
    describe_columns,
    describe_couplings,
    describe_gaps,
    describe_rows,
    describe_values,
    missing_rows,
    near_and_far,
    value_counts,
)
from tabweave.apps.report.html import (
    page,
    percent,
    quoted,
    rounded,
    row_count,
    shown,
    widget_script,
    written,
)
from tabweave.apps.report.reading import FREE_TEXT, Reading, as_values, is_doubtful, read
from tabweave.apps.report.rows import (
    Axes,
    DistinctRows,
    axes_layout,
    choose_rows,
    describe_map,
    describe_neighbors,
    near_layout,
)
from tabweave.columns.column import Column, Schema
from tabweave.columns.kinds import dropped_line
from tabweave.columns.nominal import Codes
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets
from tabweave.columns.table import Table, distinct_rows, sampled_rows, take_rows
from tabweave.columns.texts import looks_missing
from tabweave.counts.counts import Counts
from tabweave.counts.couplings import chance_information, information
from tabweave.embed.base import Embedder
from tabweave.embed.value_metric import ValueMetric
from tabweave.engines.progress import ProgressCallback, progress_reporter
from tabweave.engines.reading import needs_classes
from tabweave.io.files import replacing
from tabweave.measures import MEASURES
from tabweave.plots import as_png, scatter_map
from tabweave.space.scan import Nearest
from tabweave.tasks.associations import Associations, measured
from tabweave.tasks.outliers import OutlierCell, OutlierCells, oddest

# -- Warnings: what to look at in a table before trusting anything learned from it ----------------

Note = dict[str, Any]


def describe_warnings(reading: Reading, tested: Associations | None) -> list[Note]:
    """What is odd about the columns, the rows and the target, gravest first."""
    notes = [note for column, data in reading.table for note in _of_column(reading, column, data)]
    notes += _of_rows(reading)
    if tested is not None:
        notes += _of_pairs(tested, reading.target)
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
        elif finding.question == "exceptions" and not column.is_continuous:
            text += "; it is read as categories"
        yield _note("warning" if is_left_out else "note", "doubt", name, text)
    elif is_left_out:
        code, text = "identifier", "it tells rows apart, not what they are like, and"
        if reading.left_out[name] == FREE_TEXT:
            code, text = "text", "a page counts values, of which it has none to count: it"
        text = f"{reading.left_out[name]}; {text} is not used below"
        if code == "text":
            text += (
                "; tabweave neighbors, embed and cluster compare it by spelling; for a page, make "
                "categories of it, such as a topic"
            )
        yield _note("warning", code, name, text)
    n_missing = missing_rows(data)
    if n_missing == n_rows:
        yield _note("warning", "empty", name, "is empty: every cell is missing")
        return
    if n_missing > 0.2 * n_rows:
        level = "warning" if n_missing > 0.5 * n_rows else "note"
        text = f"is missing in {percent(n_missing / n_rows)} of the rows"
        yield _note(level, "missing", name, text)
    if column.is_dated:
        return
    if column.is_continuous:
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
    if not data.is_continuous:
        return len(by_frequency(data))
    n_values = len(np.unique(data.values))
    return np.inf if n_values > 0.1 * len(data.values) else n_values


def _of_pairs(tested: Associations, target: str | None) -> Iterator[Note]:
    # A column that determines another has a strength of 1; both ways, a symmetric uncertainty, too.
    both_ways = np.fmin(tested.values["strength"], tested.values["symmetric_uncertainty"])
    for i in np.flatnonzero(both_ways >= 0.99).tolist():
        a, b = tested.pairs[i]
        if target not in (a, b):
            text = f"is redundant with “{b}”: their values correspond one to one"
            yield _note("note", "twins", a, text)


# -- target -------------------------------------------------------------------------------------


def _of_target(reading: Reading, target: str) -> Iterator[Note]:
    data: Any = as_values(reading.table[target], 10)
    n_rows = reading.table.n_rows
    if data.is_set:
        return
    counts, order = value_counts(data), by_frequency(data)
    if not reading.table[target].is_continuous and len(order):
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
        if values.is_set:
            continue
        schema = Schema((Column("x"), Column("y")), undeclared="ignored")
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


MAX_TESTED_ROWS = 20_000  # Rows that pairs of columns are compared on.


def measure_pairs(reading: Reading) -> Associations | None:
    """The pairs of columns, tested on an even sample; None if there are no two columns."""
    table = reading.table.select(reading.compared)
    if len(table.schema) < 2:
        return None
    rows = sampled_rows(table.n_rows, MAX_TESTED_ROWS)
    return measured(table if rows is None else take_rows(table, rows), with_phi=False)


def describe_associations(tested: Associations, n_rows: int) -> dict[str, Any]:
    """The strongest pairs of columns, with their tests."""
    rho = tested.values["spearman"]
    other = np.where(np.isnan(rho), tested.values["correlation_ratio"], rho)
    columns = {
        "strength": tested.values["strength"],
        "other": other,
        "gaps": tested.values["shared_gaps"],
        "p": tested.values["adjusted_p_value"],
    }
    pairs = [
        {"a": tested.pairs[i][0], "b": tested.pairs[i][1]}
        | {name: rounded(values[i]) for name, values in columns.items()}
        for i in np.argsort(-columns["strength"], kind="stable")[:30].tolist()
    ]
    return {"of": min(n_rows, MAX_TESTED_ROWS), "found": len(tested.pairs), "pairs": pairs}


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
    cells, _ = model._cells_of_fit(model._read(table), max_cells, rows)
    return {
        "of": len(rows),
        "learned": model._rows.n_rows,
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
    judged = model._judged_of_fit(model._read(table), rows)
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
    return not data.is_continuous or bool(np.nanmax(np.abs(data.values), initial=0.0) < 1e150)


def _describe_cell(cell: OutlierCell) -> dict[str, Any]:
    against = "any value seen before" if cell.is_new else "nothing in particular"
    if cell.against is not None:
        column, value, n_both, n = cell.against
        against = f"{column} = {shown(value)}: {n_both:,} of {n:,} rows"
    value = written(cell.value) if isinstance(cell.value, float) else shown(cell.value)
    p_value = rounded(cell.p_value)
    return {"column": cell.column, "value": value, "against": against, "p": p_value}


# -- the description ------------------------------------------------------------------------------

__all__ = ["describe", "map_widget", "page", "report"]
Tell = Callable[..., None]


@dataclass(frozen=True)
class ReportOptions:
    """What a description is to show."""

    n_neighbors: int = 5
    rows: Any = None  # whose neighbours are shown
    random_state: int = 0
    max_map_rows: int = 0  # 0: as many as axes and clusters are found from
    by_neighborhood: bool = True  # whether to lay the map out by t-SNE, too
    first_picture: bool = False  # clusters counted on few rows, nothing odd looked for
    weights: Mapping[str, float] | None = None  # what single columns count


def describe(
    X: Any,
    *,
    target: Any = None,
    method: Any = "auto",
    n_neighbors: int = 5,
    rows: Any = None,
    random_state: int = 0,
    progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Describe a table as plain numbers and text that JSON can hold; the content of a report.

    Parameters
    ----------
    X : frame, array, mapping of columns, list of dicts, or Table
        The rows.
    target : str or array-like, optional
        The column to be explained, by name, or its value for each row. The embedding does not see
        it (unless the method learns from classes); colours, clusters and warnings do.
    method : str or embedder, default="auto"
        What rows are compared by: "auto" (:class:`~tabweave.Weave`), the name of an
        embedder in lower case, the name of a measure, or an embedder, fitted anew on X.
    n_neighbors : int, default=5
        How many neighbours of a row are shown.
    rows : int or sequence of int, optional
        Rows whose neighbours are shown, counted from 0; by default a typical one of each cluster
        and an odd one.
    random_state : int, default=0
        Where chance enters: which rows are drawn, and where clusters start.
    progress : callable, optional
        Called with a :class:`tabweave.engines.Progress`: the step, and the share done so far.

    Returns
    -------
    dict
        ``columns``, ``some`` rows, ``gaps``, ``warnings``, ``associations``, ``outliers``,
        ``couplings``, ``values``, ``map``, ``clusters``, ``neighbors`` and the facts about how
        they were made.

    Examples
    --------
    >>> from tabweave.datasets import titanic
    >>> from tabweave.apps.report import describe
    >>> found = describe(titanic().frame(), target=titanic().y)
    >>> [column["name"] for column in found["columns"]]
    ['status', 'age', 'sex', 'target']
    >>> found["couplings"]["pairs"][0]["a"], found["couplings"]["pairs"][0]["b"]
    ('sex', 'target')
    """
    if n_neighbors < 1:
        raise ValueError(f"expected n_neighbors to be a whole number >= 1, got {n_neighbors!r}")
    tell = progress_reporter(progress, "", 1.0)
    tell("reading", 0.0)
    options = ReportOptions(n_neighbors, rows, random_state)
    return look_at(read(X, target), method, options, tell).description


@dataclass(frozen=True, eq=False)
class Look:
    """A description, what it was made by, and what it says of every row."""

    description: dict[str, Any]
    model: Any = None  # the fitted embedder, unless no column is left to compare rows by
    distinct: Any = None  # the distinct rows
    clusters: Any = None  # of each distinct row
    points: Any = None  # of each distinct row, along the principal axes


@one_thread()  # t-SNE makes much of the last bit
def look_at(
    reading: Reading, method: Any, options: ReportOptions, tell: Tell = lambda *_: None
) -> Look:
    """The description of rows that were read, and what it was made by."""
    out: dict[str, Any] = {
        "format": 1,
        **_facts(reading),
        "columns": describe_columns(reading),
        "some": describe_rows(reading),
        "gaps": describe_gaps(reading),
    }
    tell("counting", 0.1)
    counts = Counts.of(reading.values())
    tested = measure_pairs(reading)
    out["couplings"] = None if tested is None else describe_couplings(tested, reading.target)
    tell("looking for odd cells", 0.2)
    out["warnings"] = describe_warnings(reading, tested)
    out["associations"] = outliers = None
    if not options.first_picture:
        if tested is not None:
            out["associations"] = describe_associations(tested, reading.table.n_rows)
        outliers = learn_outliers(reading, options.random_state)
    out["outliers"] = describe_outliers(reading, outliers)
    if not reading.kept:
        empty = dict.fromkeys(("method", "values", "map", "clusters", "neighbors"))
        return Look(out | empty)
    tell("learning", 0.3)
    model = fitted(reading, method, options)
    weights = column_weights(model)
    out["method"] = embedder_title(model)
    out["weights"] = {name: round(weight, 4) for name, weight in weights.items()}
    tell("comparing values", 0.5)
    features = counts.select([name for name in counts.names if name != reading.target])
    out["values"] = describe_values(model, features, weights)
    distinct = DistinctRows.of(reading, options.random_state, options.max_map_rows)
    described, clusters, points = _look_at_rows(reading, model, distinct, options, tell)
    described["map"] |= odd_columns(reading, outliers, distinct.first[distinct.shown])
    return Look(out | described, model, distinct, clusters, points)


def _look_at_rows(
    reading: Reading, model: Any, distinct: DistinctRows, options: ReportOptions, tell: Tell
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Map, clusters and neighbours, in one pass over the distinct rows; clusters and points."""
    tell("drawing the map", 0.6)
    vectors, copies = distinct.vectors(model, distinct.drawn), distinct.copies[distinct.drawn]
    tell("finding clusters", 0.7)
    n_clusters = how_many(_rows_to_count(reading, options), options.random_state)
    axes, points, centers, silhouette = group(vectors, copies, n_clusters, options.random_state)
    requested = [0] if options.first_picture else options.rows
    chosen = choose_rows(distinct, requested, points, assign(points, centers), centers)
    queries = distinct.of_row[[row for row, _ in chosen]]
    query_vectors = distinct.vectors(model, queries)
    nearest = Nearest(query_vectors, queries, options.n_neighbors, power=model.space_.power)
    labels = np.zeros(len(distinct.first), int)
    all_points = np.zeros((len(distinct.first), points.shape[1]))
    for numbers, block in distinct.blocks(model, vectors.shape[1]):
        all_points[numbers] = axes.project(block)
        labels[numbers] = assign(all_points[numbers], centers)
        nearest.see(numbers, block)
        tell("finding neighbours", 0.8 + 0.1 * numbers[-1] / len(labels))
    tell("describing clusters", 0.9)
    row_labels = labels[distinct.of_row]
    groups = describe_clusters(reading.values(), row_labels, len(centers), reading.target)
    tell("explaining neighbours", 0.95)
    neighbors = describe_neighbors(reading, model, distinct, chosen, nearest)
    shown = points if distinct.shown is distinct.drawn else all_points[distinct.shown]
    layouts = _layouts(shown, axes, options)
    described = {
        "map": describe_map(reading, distinct, layouts, labels),
        "clusters": {"silhouette": round(silhouette, 3), "groups": groups},
        "neighbors": {"columns": reading.kept, "rows": neighbors},
    }
    tell("done", 1.0)
    return described, labels, all_points


def _rows_to_count(reading: Reading, options: ReportOptions) -> Table:
    """The rows that the number of clusters is found from."""
    features = reading.features()
    if not options.first_picture:
        return features
    max_rows = 400
    return take_rows(features, np.arange(0, features.n_rows, -(-features.n_rows // max_rows)))


def _layouts(
    points: np.ndarray, axes: Axes, options: ReportOptions
) -> tuple[list[dict[str, Any]], str]:
    """The layouts of a map, and why one of them is not there."""
    layout, reason = None, ""
    if options.by_neighborhood:
        layout, reason = near_layout(points, options.random_state)
    return [axes_layout(points, axes)] + ([layout] if layout else []), reason


def _facts(reading: Reading) -> dict[str, Any]:
    table = reading.table
    return {
        "tabweave": tabweave.__version__,
        "rows": table.n_rows,
        "cells": table.n_rows * len(table.schema),
        "missing": sum(missing_rows(data) for _, data in table),
        "target": reading.target,
        "id": reading.id_name,
        "dropped": dropped_line(reading.left_out),
    }


def report(
    X: Any, path: str | PathLike[str] | None = None, *, title: str | None = None, **options: Any
) -> Report | None:
    """Describe a table on one self-contained HTML page.

    Parameters
    ----------
    X : frame, array, mapping of columns, list of dicts, or Table
        The rows.
    path : str or path, optional
        Where to write the page; without it the page is returned.
    title : str, optional
        What the page is called.
    **options
        ``target``, ``method``, ``n_neighbors``, ``rows``, ``random_state`` and ``progress``, as in
        :func:`describe`.

    Returns
    -------
    Report or None
        The page, if no path is given: text that notebooks show in a separate frame.

    Examples
    --------
    >>> from tabweave.apps.report import report
    >>> html = report({"color": ["red", "blue", "red"], "size": ["S", "L", "S"]})
    >>> html.startswith("<!doctype html>")
    True
    """
    text = page(describe(X, **options), title=title)
    if path is None:
        return Report(text)
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")
    return None


class Report(str):
    """A page as text, which a notebook shows in a separate frame.

    Examples
    --------
    >>> from tabweave.apps.report import report
    >>> report({"a": ["x", "y"]})._repr_html_()[:8]
    '<iframe '
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        # A frame without the notebook's origin: what runs in it cannot reach the notebook.
        style = "width:100%;height:40rem;border:1px solid #87857d;border-radius:6px"
        return (
            f'<iframe title="Table report" sandbox="allow-scripts allow-downloads" '
            f'style="{style}" srcdoc="{html.escape(self)}"></iframe>'
        )


def map_widget(X: Any, *, target: Any = None, method: Any = "auto", random_state: int = 0) -> Any:
    """An interactive map of rows for a notebook; selected rows can be read from Python.

    Works in Jupyter, marimo, Colab and VS Code; needs the extra ``tabweave[notebook]``. A page that
    runs no widgets, such as that of a repository, shows a picture, by the target or by clusters.

    Parameters
    ----------
    X : frame, array, mapping of columns, list of dicts, or Table
        The rows.
    target, method, random_state
        As in :func:`describe`.

    Returns
    -------
    anywidget.AnyWidget
        With ``selection``, the numbers of the rows that were drawn around, rows that are equal to
        them left out, and ``picked``, the number of the row that was chosen last. Both can be
        observed.

    Examples
    --------
    >>> from tabweave.apps.report import map_widget
    >>> map_widget({"a": list("xyz") * 20}).selection  # doctest: +SKIP
    []
    """
    anywidget, traitlets = require("anywidget", "notebook"), require("traitlets", "notebook")
    options = ReportOptions(random_state=random_state, max_map_rows=20_000)
    description = look_at(read(X, target), method, options).description
    traits = {
        "_esm": widget_script(),
        "description": traitlets.Dict().tag(sync=True),
        "selection": traitlets.List(traitlets.Int()).tag(sync=True),
        "picked": traitlets.Int(None, allow_none=True).tag(sync=True),
    }
    drawn = {name: description[name] for name in ("map", "clusters", "target")}

    def with_picture(widget: Any, **asked: Any) -> Any:
        bundle = anywidget.AnyWidget._repr_mimebundle_(widget, **asked)
        if bundle is None or find_spec("matplotlib") is None:
            return bundle
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return data | {"image/png": b64encode(map_picture(drawn)).decode()}, metadata

    traits["_repr_mimebundle_"] = with_picture
    return type("Map", (anywidget.AnyWidget,), traits)(description=drawn)


def map_picture(description: Mapping[str, Any]) -> bytes:
    """The map as a PNG picture, by the target or by clusters, for what runs no widgets."""
    drawn, name = description["map"], description["target"]
    labels, title = [f"cluster {cluster}" for cluster in drawn["clusters"]], ""
    if name:
        cells, title = drawn["columns"][0], name
        labels = cells.get("numbers") or [
            None if code < 0 else cells["labels"][code] for code in cells["codes"]
        ]
    return as_png(scatter_map(drawn["layouts"][0]["points"], labels, title=title))


# -- the embedder of a report --------------------------------------------------------------------


def fitted(reading: Reading, method: Any, options: ReportOptions) -> Any:
    """The embedder of a report, fitted on the columns it keeps."""
    features, classes = reading.features(), None
    model = embedder_for(method, options.random_state)
    weights = {n: w for n, w in (options.weights or {}).items() if n in features.schema.names}
    if weights:
        if "weights" not in model.get_params():
            raise ValueError(
                f"expected a method whose columns can be weighed, got {embedder_title(model)}; use "
                "'auto', or leave the weights out"
            )
        model.set_params(weights=weights)
    if needs_classes(model):
        if reading.target is None:
            raise ValueError(f"{embedder_title(model)} is supervised and needs a target")
        data: Any = reading.values()[reading.target]
        classes = [data.labels[code] for code in data.codes.tolist()]
    with naming_target(reading.target):
        return model.fit(features, classes)


def column_weights(model: Any) -> dict[str, float]:
    """How much each column counts, where the embedder has learned that."""
    weights: Any = getattr(model, "weights_", None)
    by_column = isinstance(weights, dict) and all(isinstance(w, float) for w in weights.values())
    return dict(weights) if by_column else {}


def embedder_for(method: Any, random_state: int) -> Embedder:
    """The embedder of a name, or a clone of one."""
    if isinstance(method, str):
        name = method if method in MEASURES else method.lower()
        find(name, "pages")
        return build(name, kinds=None, seed=random_state)
    if not isinstance(method, Embedder):
        raise TypeError(f"expected method to be a name or an embedder of tabweave, got {method!r}")
    if isinstance(method, ValueMetric) and not method.has_vectors:
        raise ValueError(f"{method!r} gives no vectors for rows; use another embedder")
    return clone(method)
