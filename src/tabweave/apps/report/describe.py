"""What users call: describe a table, make a page of the description, or both."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import clone

import tabweave
from tabweave._compat import one_thread, require
from tabweave.apps.methods import build, embedder_title, find, naming_target
from tabweave.apps.report.clusters import assign, describe_clusters, find_centers, how_many
from tabweave.apps.report.columns import (
    describe_columns,
    describe_couplings,
    describe_gaps,
    describe_rows,
    describe_values,
    missing_rows,
)
from tabweave.apps.report.html import page, widget_script
from tabweave.apps.report.notes import (
    describe_associations,
    describe_outliers,
    describe_warnings,
    learn_outliers,
    odd_columns,
)
from tabweave.apps.report.reading import Reading, read
from tabweave.apps.report.rows import (
    Axes,
    DistinctRows,
    axes_layout,
    choose_rows,
    describe_map,
    describe_neighbors,
    near_layout,
)
from tabweave.base import Embedder
from tabweave.columns.kinds import dropped_line
from tabweave.columns.table import Table, take_rows
from tabweave.counts.counts import Counts
from tabweave.embed.value_metric import ValueMetric
from tabweave.engines.progress import ProgressCallback, progress_reporter
from tabweave.engines.reading import needs_classes
from tabweave.io.files import replacing
from tabweave.measures import MEASURES
from tabweave.space.scan import Nearest

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
    return look_at(read(X, target), method, ReportOptions(n_neighbors, rows, random_state), tell)[0]


@one_thread()  # t-SNE makes much of the last bit
def look_at(
    reading: Reading, method: Any, options: ReportOptions, tell: Tell = lambda *_: None
) -> tuple[dict[str, Any], Any, np.ndarray | None]:
    """The description of rows that were read, the embedder, and the map's coordinates.

    The coordinates are those along the principal axes, of the rows on the map.
    """
    out: dict[str, Any] = {
        "format": 1,
        **_facts(reading),
        "columns": describe_columns(reading),
        "some": describe_rows(reading),
        "gaps": describe_gaps(reading),
    }
    tell("counting", 0.1)
    counts = Counts.of(reading.values())
    out["couplings"] = describe_couplings(counts, reading.target)
    tell("looking for odd cells", 0.2)
    out["warnings"] = describe_warnings(reading, out["couplings"])
    out["associations"] = outliers = None
    if not options.first_picture:
        out["associations"] = describe_associations(reading)
        outliers = learn_outliers(reading, options.random_state)
    out["outliers"] = describe_outliers(reading, outliers)
    if not reading.kept:
        empty = dict.fromkeys(("method", "values", "map", "clusters", "neighbors"))
        return out | empty, None, None
    tell("learning", 0.3)
    model = fitted(reading, method, options)
    weights = column_weights(model)
    out["method"] = embedder_title(model)
    out["weights"] = {name: round(weight, 4) for name, weight in weights.items()}
    tell("comparing values", 0.5)
    features = counts.select([name for name in counts.names if name != reading.target])
    out["values"] = describe_values(model, features, weights)
    distinct = DistinctRows.of(reading, options.random_state, options.max_map_rows)
    described, points = _look_at_rows(reading, model, distinct, options, tell)
    described["map"] |= odd_columns(reading, outliers, distinct.first[distinct.shown])
    return out | described, model, points


def _look_at_rows(
    reading: Reading, model: Any, distinct: DistinctRows, options: ReportOptions, tell: Tell
) -> tuple[dict[str, Any], np.ndarray]:
    """Map, clusters and neighbours, in one pass over the distinct rows; and the points."""
    tell("drawing the map", 0.6)
    vectors, copies = distinct.vectors(model, distinct.drawn), distinct.copies[distinct.drawn]
    axes = Axes.of(vectors, copies)
    points = axes.project(vectors)
    tell("finding clusters", 0.7)
    n_clusters = how_many(_rows_to_count(reading, options), options.random_state)
    centers, silhouette = find_centers(points, copies, n_clusters, options.random_state)
    requested = [0] if options.first_picture else options.rows
    chosen = choose_rows(distinct, requested, points, assign(points, centers), centers)
    queries = distinct.of_row[[row for row, _ in chosen]]
    query_vectors = distinct.vectors(model, queries)
    nearest = Nearest(query_vectors, queries, options.n_neighbors, power=model.blocks_.power)
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
    tell("done", 1.0)
    return {
        "map": describe_map(reading, distinct, layouts, labels),
        "clusters": {"silhouette": round(silhouette, 3), "groups": groups},
        "neighbors": {"columns": reading.kept, "rows": neighbors},
    }, shown


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

    Works in Jupyter, marimo, Colab and VS Code; needs the extra ``tabweave[notebook]``.

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
    description, _, _ = look_at(read(X, target), method, options)
    traits = {
        "_esm": widget_script(),
        "description": traitlets.Dict().tag(sync=True),
        "selection": traitlets.List(traitlets.Int()).tag(sync=True),
        "picked": traitlets.Int(None, allow_none=True).tag(sync=True),
    }
    drawn = {name: description[name] for name in ("map", "clusters", "target")}
    return type("Map", (anywidget.AnyWidget,), traits)(description=drawn)


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
