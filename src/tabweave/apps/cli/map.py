"""``tabweave map``: the rows in two dimensions, as a picture, a page or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

import tabweave
from tabweave._compat import require
from tabweave.apps.cli.files import Output, check_output
from tabweave.apps.cli.job import KnownVectors, Learned, open_job
from tabweave.apps.cli.options import FORMATS, Job, Misuse
from tabweave.apps.cli.rows import check_columns, full_name
from tabweave.apps.cli.show import as_json, bold, cell, plural, say, working
from tabweave.apps.methods import embedder_title
from tabweave.apps.report import page
from tabweave.apps.report.clusters import assign, describe_clusters, find_centers, how_many
from tabweave.apps.report.html import rounded
from tabweave.apps.report.reading import Reading, as_values
from tabweave.apps.report.rows import MAX_DRAWN_ROWS, N_AXES, Axes, joined, map_cells
from tabweave.columns.numeric import Numbers
from tabweave.columns.sets import Sets
from tabweave.columns.table import take_rows
from tabweave.io.files import replacing
from tabweave.plots import scatter_map
from tabweave.plots.style import PLAIN, make_room

PICTURES = ("png", "svg", "pdf")


def map_(job: Job, output: Path, color: str | None, layout: str, force: bool, json: bool) -> None:
    """Draw a two-dimensional map, in which similar rows lie close together."""
    form = output.suffix.lower()[1:]
    if form not in ("html", *PICTURES, *FORMATS):
        endings = ", ".join(f".{form}" for form in ("html", *PICTURES, *FORMATS))
        raise Misuse(f"--output {output.name!r}: expected a file that ends in {endings}")
    if layout == "tsne" and form in FORMATS:
        raise Misuse("--layout tsne can write images and pages, but not tables; use --layout pca")
    check_output(output, force)
    with open_job(job) as opened:
        color = color and full_name(color, opened.source.types)
        check_columns(filter(None, [color]), opened.source.types)
        learned = opened.learned()
        color = color or opened.target or learned.table.schema.names[0]
        if form in FORMATS:
            _write_table(learned, opened.to_write(), Output(output, form, force))
        else:
            with working("drawing"):
                points = _points(learned, layout, job.seed)
            title = f"{opened.title} by {opened.title_of(learned.embedder)}"
            with replacing(output) as part:
                if form == "html":
                    _draw_page(part, points, learned, color, title)
                else:
                    _draw_picture(part, form, _jittered(points), learned, color, title)
    n_rows = learned.rows.n_rows
    if json:
        as_json({"rows": n_rows, "output": str(output), "color": color})
    else:
        say(f"{plural(n_rows, 'row')} mapped in {bold(output)}, coloured by {escape(color)}")


def _on_axes(learned: Learned, n_axes: int) -> Any:
    """The coordinates of the rows along the first principal axes; fewer if fewer vary."""
    vectors = learned.vectors
    return Axes.of(vectors, np.ones(len(vectors)), n_axes).project(vectors)


def _points(learned: Learned, layout: str, seed: int) -> Any:
    """Two coordinates for each row."""
    if layout == "tsne":
        vectors = _on_axes(learned, 50)
        perplexity = min(30, max(1, (len(vectors) - 1) // 3))
        tsne = require("openTSNE", "map").TSNE
        return np.asarray(tsne(perplexity=perplexity, random_state=seed, n_jobs=1).fit(vectors))
    plane = np.zeros((learned.rows.n_rows, 2))
    points = _on_axes(learned, 2)
    plane[:, : points.shape[1]] = points
    return plane


def _jittered(points: Any) -> Any:
    """Equal points laid around each other, as seeds of sunflowers are: many look like many."""
    _, group, sizes = np.unique(points.round(9), axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    rank = np.empty(len(points))
    rank[order] = np.arange(len(points)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    reach = 0.07 * np.ptp(points, axis=0).max() * np.sqrt(rank / max(sizes.max(), 20))
    turn = rank * np.pi * (3 - np.sqrt(5))
    return points + reach[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])


def _write_table(learned: Learned, source: Any, output: Output) -> None:
    """Write the coordinates beside the columns; t-SNE projects no new rows, so axes only."""
    keep, name = list(learned.rows.columns), "map"
    while {f"{name}0", f"{name}1"}.intersection(keep):
        name += "_"
    plane = _on_axes(learned, 2)
    names = [f"{name}{i}" for i in range(plane.shape[1])]
    output.write_vectors(KnownVectors(plane, names, keep[0]), source, keep)


def _draw_picture(
    path: Path, form: str, points: Any, learned: Learned, color: str, title: str
) -> None:
    """Draw a picture with Matplotlib."""
    names, codes = _colours(learned, color)
    axes = scatter_map(points, codes)
    for text, name in zip(axes.get_legend().get_texts(), names, strict=True):
        text.set_text(name)
    for dots in axes.collections:
        dots.set_sizes([22 if len(points) < 500 else 7])
    axes.set_title(title, fontsize="medium", **PLAIN)
    axes.get_legend().set_title(color)
    make_room(axes)
    # Without a date, and with names that are no chance, two runs give equal files.
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with require("matplotlib", "plots").rc_context({"svg.hashsalt": "tabweave"}):
        axes.figure.savefig(path, dpi=150, format=form, metadata=undated)


def _draw_page(path: Path, points: Any, learned: Learned, color: str, title: str) -> None:
    """Write the map of reports as a separate page, which needs no network."""
    names = list(dict.fromkeys([color, *learned.rows.columns]))[:30]
    max_points = min(100_000, 3_000_000 // len(names))  # 3 million cells are a large page
    drawn = np.arange(len(points))
    if len(drawn) > max_points:
        drawn = np.linspace(0, len(points) - 1, max_points).astype(int)
    columns = [
        {"name": name} | map_cells(take_rows(learned.column(name), drawn), name) for name in names
    ]
    clusters, of_row = _clusters(learned)
    content = {
        "only": ["map"],
        "tabweave": tabweave.__version__,
        "method": embedder_title(learned.embedder),
        "rows": len(points),
        "target": color,
        "clusters": clusters,
        "map": {
            "layouts": [{"name": "the rows", "points": rounded(points[drawn])}],
            "rows": drawn.tolist(),
            "copies": [1] * len(drawn),
            "columns": columns,
            "of": len(points),
        }
        | ({} if of_row is None else {"clusters": of_row[drawn].tolist()}),
    }
    path.write_text(page(content, title=title), encoding="utf-8")


def _clusters(learned: Learned) -> tuple[dict[str, Any] | None, Any]:
    """Clusters of the rows as reports have them, and that of each row; none of equal rows."""
    points = _on_axes(learned, N_AXES)
    drawn = np.unique(np.linspace(0, len(points) - 1, MAX_DRAWN_ROWS).astype(int))
    if len(np.unique(points[drawn], axis=0)) < 3:
        return None, None
    number = how_many(learned.table, 0)  # as `tabweave cluster` and reports have it
    centers, silhouette = find_centers(points[drawn], np.ones(len(drawn)), number, 0)
    labels = assign(points, centers)
    values = Reading(learned.table, None, {}).values()
    groups = describe_clusters(values, labels, len(centers), None)
    return {"silhouette": round(silhouette, 3), "groups": groups}, labels


def _colours(learned: Learned, name: str, max_colours: int = 8) -> tuple[list[str], Any]:
    """Names and codes of the values of a column, numbers in bins.

    Of many values the most frequent have a colour, and all others share the last one.
    """
    ((_, data),) = learned.column(name)
    values: Any = joined(data) if isinstance(data, Sets) else as_values(data)
    counts = np.bincount(values.codes, minlength=len(values.labels))
    in_order = isinstance(data, Numbers)
    order = np.arange(len(counts)) if in_order else np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    named = order if len(order) <= max_colours else order[: max_colours - 1]
    colour = np.full(len(counts), len(named))
    colour[named] = np.arange(len(named))
    names = ["missing" if values.labels[i] is None else cell(values.labels[i]) for i in named]
    return names if len(named) == len(order) else [*names, "others"], colour[values.codes]
