"""``tabweave map``: the rows in two dimensions, as a picture, a page or a table."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tabweave.apps.cli.app import FORMATS, Force, Json, Misuse, column
from tabweave.apps.cli.files import check_output, write_rows
from tabweave.apps.cli.job import Job, Learned, check_columns, meant, projected, takes_job
from tabweave.apps.cli.show import as_json, cell, plural, say, working
from tabweave.io.files import replacing

PICTURES = (".png", ".svg", ".pdf")
_MOST_POINTS = 100_000  # drawn in a page
_MOST_CELLS = 3_000_000  # held by a page
_MOST_COLUMNS = 30  # that a page can colour by
_MOST_COLOURS = 8  # kinds of points that can be told apart


class Layout(StrEnum):
    """How vectors are brought down to two dimensions."""

    pca = "pca"
    tsne = "tsne"


@takes_job()
def map_(
    job: Job,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o",
            help="File to write: a page (.html), an image (.png, .svg, .pdf), or a table of "
            "coordinates (.csv, .parquet, ...).",
        ),
    ] = Path("map.html"),
    color: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Colour by this column; by default the target, or the first.",
            autocompletion=column,
        ),
    ] = None,
    layout: Annotated[
        Layout,
        typer.Option(help="Projection: principal components, or t-SNE (needs tabweave\\[map])."),
    ] = Layout.pca,
    force: Force = False,
    json: Json = False,
) -> None:  # fmt: skip
    """Draw a two-dimensional map, in which similar rows lie close together."""
    ending = output.suffix.lower()
    if ending != ".html" and ending not in PICTURES and ending[1:] not in FORMATS:
        known = ", ".join([".html", *PICTURES, *(f".{form}" for form in FORMATS)])
        raise Misuse(f"--output {output.name!r}: expected a file that ends in {known}")
    if layout is Layout.tsne and ending[1:] in FORMATS:
        raise Misuse("--layout tsne can write images and pages, but not tables; use --layout pca")
    check_output(output, force)
    with job.opened() as job:
        color = color and meant(color, job.source.types)
        check_columns(filter(None, [color]), job.source.types)
        learned = job.learned(keep_map=True)
        shown = color or job.target or learned.table.schema.names[0]
        if ending[1:] in FORMATS:
            _write_table(learned, job.to_write(), output)
        else:
            with working("drawing"):
                points = _points(learned, layout, job.seed)
            title = f"{job.title} by {job.title_of(learned.embedder)}"
            with replacing(output) as part:
                if ending == ".html":
                    _draw_page(part, points, learned, shown, title)
                else:
                    _draw_picture(part, ending[1:], _jittered(points), learned, shown, title)
    result = {"rows": learned.rows.n_rows, "output": str(output), "color": shown}
    if json:
        as_json(result)
    else:
        result["rows"] = plural(learned.rows.n_rows, "row")
        say("{rows} mapped in [bold]{output}[/], coloured by {color}", **result)


def _points(learned: Learned, layout: Layout, seed: int) -> Any:
    """Return two coordinates for each row."""
    import numpy as np

    if layout is Layout.tsne:
        from tabweave._compat import require

        vectors = projected(learned.embedder, learned.table, 50, "axis").transform(learned.table)
        perplexity = min(30, max(1, (len(vectors) - 1) // 3))
        tsne = require("openTSNE", "map").TSNE
        return np.asarray(tsne(perplexity=perplexity, random_state=seed, n_jobs=1).fit(vectors))
    flat = np.zeros((learned.rows.n_rows, 2))
    found = projected(learned.embedder, learned.table, 2, "axis").transform(learned.table)
    flat[:, : found.shape[1]] = found
    return flat


def _jittered(points: Any) -> Any:
    """Lay equal points around each other, as sunflowers do, so that many look like many."""
    import numpy as np

    _, group, sizes = np.unique(points.round(9), axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    rank = np.empty(len(points))
    rank[order] = np.arange(len(points)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    reach = 0.07 * np.ptp(points, axis=0).max() * np.sqrt(rank / max(sizes.max(), 20))
    turn = rank * np.pi * (3 - np.sqrt(5))
    return points + reach[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])


def _write_table(learned: Learned, source: Any, output: Path) -> None:
    """Write the coordinates beside the columns; t-SNE projects no new rows, so axes only."""
    keep, name = list(learned.rows.columns), "map"
    while {f"{name}0", f"{name}1"}.intersection(keep):
        name += "_"
    plane = projected(learned.embedder, learned.table, 2, name)
    write_rows(plane, source, output, keep=keep, form=None)


def _draw_picture(
    path: Path, form: str, points: Any, learned: Learned, color: str, title: str
) -> None:
    """Draw a picture with Matplotlib."""
    from tabweave.plots import scatter_map
    from tabweave.plots.style import PLAIN, make_room

    names, codes = _colours(learned, color)
    axes = scatter_map(points, codes)
    for text, name in zip(axes.get_legend().get_texts(), names, strict=True):
        text.set_text(name)
    for dots in axes.collections:
        dots.set_sizes([22 if len(points) < 500 else 7])
    axes.set_title(title, fontsize="medium", **PLAIN)
    axes.get_legend().set_title(color)
    make_room(axes)
    # Without a date two runs give equal files.
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    axes.figure.savefig(path, dpi=150, format=form, metadata=undated)


def _draw_page(path: Path, points: Any, learned: Learned, color: str, title: str) -> None:
    """Write the map of reports as a separate page, which needs no network."""
    import numpy as np

    from tabweave import __version__
    from tabweave.apps.report import page
    from tabweave.apps.report.html import rounded
    from tabweave.apps.report.rows import map_cells
    from tabweave.columns.table import take_rows

    names = list(dict.fromkeys([color, *learned.rows.columns]))[:_MOST_COLUMNS]
    some = np.arange(len(points))
    most = min(_MOST_POINTS, _MOST_CELLS // len(names))
    if len(some) > most:
        some = np.linspace(0, len(points) - 1, most).astype(int)
    cells = [take_rows(learned.column(name), some) for name in names]
    content = {
        "only": ["map"],
        "tabweave": __version__,
        "method": learned.embedder._title(),
        "rows": len(points),
        "target": color,
        "clusters": _clusters(learned, some),
        "map": {
            "layouts": [{"name": "the rows", "points": rounded(points[some])}],
            "rows": some.tolist(),
            "copies": [1] * len(some),
            "columns": [
                {"name": name} | map_cells(drawn, name)
                for name, drawn in zip(names, cells, strict=True)
            ],
            "of": len(points),
        },
    }
    if content["clusters"]:
        content["map"]["clusters"] = content["clusters"].pop("of_row")
    path.write_text(page(content, title=title), encoding="utf-8")


def _clusters(learned: Learned, some: Any) -> dict[str, Any] | None:
    """Return clusters of the rows as reports have them, and that of each of some rows."""
    import numpy as np

    from tabweave.apps.report.clusters import assign, describe_clusters, find_centers, how_many
    from tabweave.apps.report.reading import Reading
    from tabweave.apps.report.rows import MOST_DRAWN, N_AXES

    flat = projected(learned.embedder, learned.table, N_AXES, "axis").transform(learned.table)
    drawn = np.unique(np.linspace(0, len(flat) - 1, MOST_DRAWN).astype(int))
    if len(np.unique(flat[drawn], axis=0)) < 3:
        return None
    number = how_many(learned.table, 0)  # as `tabweave cluster` and reports have it
    centers, silhouette = find_centers(flat[drawn], np.ones(len(drawn)), number, 0)
    labels = assign(flat, centers)
    values = Reading(learned.table, None, {}).values()
    groups = describe_clusters(values, labels, len(centers), None)
    return {
        "silhouette": round(silhouette, 3), "groups": groups, "of_row": labels[some].tolist(),
    }  # fmt: skip


def _colours(learned: Learned, name: str) -> tuple[list[str], Any]:
    """Return names and codes of the values of a column, numbers in bins.

    Of many values the most frequent have a colour, and all others share the last one.
    """
    import numpy as np

    from tabweave.apps.report.reading import as_values
    from tabweave.apps.report.rows import joined
    from tabweave.columns.numeric import Numbers
    from tabweave.columns.sets import Sets

    ((_, data),) = learned.column(name)
    values: Any = joined(data, learned.rows.n_rows) if isinstance(data, Sets) else as_values(data)
    met = np.bincount(values.codes, minlength=len(values.labels))
    order = np.arange(len(met)) if isinstance(data, Numbers) else np.argsort(-met, kind="stable")
    order = order[met[order] > 0]
    fits = len(order) <= _MOST_COLOURS
    kept = order if fits else order[: _MOST_COLOURS - 1]
    colour = np.full(len(met), len(kept))
    colour[kept] = np.arange(len(kept))
    named = ["missing" if values.labels[i] is None else cell(values.labels[i]) for i in kept]
    labels = named if fits else [*named, "others"]
    return labels, colour[values.codes]
