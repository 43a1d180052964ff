"""Commands that make vectors of rows: embed, cluster, map, and the demo."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table as TextTable
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import tabweave
from tabweave import OneHot, Weave
from tabweave._compat import require
from tabweave.apps.cli.files import Output, check_output
from tabweave.apps.cli.job import KnownVectors, Learned, OpenJob, check_columns, full_name, open_job
from tabweave.apps.cli.options import FORMATS, Job, Misuse, listed
from tabweave.apps.cli.show import (
    as_json,
    bold,
    cell,
    emit,
    fitting,
    note,
    number,
    plural,
    say,
    table,
    working,
)
from tabweave.apps.cli.show import table as show_table
from tabweave.apps.methods import embedder_title
from tabweave.apps.report import page
from tabweave.apps.report.clusters import assign, describe_clusters, group, how_many
from tabweave.apps.report.html import rounded
from tabweave.apps.report.reading import Reading, read
from tabweave.apps.report.rows import Axes, DistinctRows, joined, map_cells
from tabweave.columns.table import take_rows
from tabweave.datasets import led24
from tabweave.evaluate import clustering_f
from tabweave.io.files import replacing
from tabweave.plots import PLAIN, scatter_map

# -- ``tabweave embed``: a table in, its vectors out ----------------------------------------------

PREVIEW_ROWS = 8  # Rows, and at most as many dimensions, that a terminal shows.


def embed(
    job: Job,
    out: Output,
    keep: list[str] | None,
    save: Path | None,
    components: int | None,
    vector: str | None,
) -> None:
    """Write one vector per row."""
    if out.json and out.path is None:
        raise Misuse(
            "--json prints a summary instead of vectors; add --output FILE for the vectors"
        )
    if vector is not None and out.kind in ("csv", "tsv"):
        raise Misuse("--vector needs a format with lists: .parquet, .arrow, .json or .jsonl")
    check_output(save, out.force)
    if save is not None and save == out.path:
        raise Misuse(f"expected two files, got {str(save)!r} as --output and as --save")
    with open_job(job, out.path, save, keep=listed(keep), n_components=components) as opened:
        if out.path is None and sys.stdout.isatty():
            embedder, n_rows = _previewed(opened)
        else:
            embedder, n_rows = _written(opened, out, vector)
        if save is not None:
            embedder.save(save)
    if not out.is_stdout:
        summary = _summary(opened, embedder, n_rows, out.path, save)
        (as_json if out.json else _tell)(summary)


def _written(job: OpenJob, out: Output, vector: str | None) -> tuple[Any, int]:
    """The embedder, learned, and the number of rows, whose vectors are written."""
    embedder, source = job.learned_from_counts(), job.to_write()
    writer = embedder
    if embedder is None:
        learned = job.learned(cross_fit=True)
        writer = embedder = learned.embedder
        if learned.fitted_vectors is not None:
            names = embedder.get_feature_names_out()
            writer = KnownVectors(learned.fitted_vectors, names, next(iter(source.types)))
    _warn_of_few_axes(job, embedder)
    keep = dict.fromkeys([*job.keep, *filter(None, [job.target])])
    return embedder, out.write_vectors(writer, source, list(keep), vector)


def _previewed(job: OpenJob) -> tuple[Any, int]:
    """The embedder, learned, and the number of rows, of which the first are shown."""
    learned = job.learned(cross_fit=True)
    embedder, n_rows = learned.embedder, learned.rows.n_rows
    _warn_of_few_axes(job, embedder)
    names = list(embedder.get_feature_names_out())
    vectors = learned.vectors[:PREVIEW_ROWS]
    heads = ["row", *names[:PREVIEW_ROWS]]
    cells = [[str(i), *map(number, row[:PREVIEW_ROWS])] for i, row in enumerate(vectors)]
    n_shown = max(2, fitting(heads, cells))
    emit(table(heads[:n_shown], [row[:n_shown] for row in cells], right=heads))
    n_columns = min(n_shown, len(heads)) - 1
    say(
        f"{len(vectors)} of {n_rows:,} rows, {n_columns} of {len(names)} dimensions. Write all "
        f"with {bold('-o vectors.parquet')}, or pipe them on."
    )
    return embedder, n_rows


def _warn_of_few_axes(job: OpenJob, embedder: Any) -> None:
    n_dims = len(embedder.get_feature_names_out())
    if job.n_components is not None and n_dims < job.n_components:
        note(
            f"warning: the vectors have only {n_dims} dimensions, fewer than the "
            f"{job.n_components} of --components"
        )


def _summary(
    job: OpenJob, embedder: Any, n_rows: int, output: Path | None, save: Path | None
) -> dict[str, Any]:
    """What was embedded, by what, and where it is."""
    dropped = {column.name: column.why for column in embedder.schema_.dropped}
    return {
        "rows": n_rows,
        "columns": len(embedder.schema_),
        "dimensions": len(embedder.get_feature_names_out()),
        "method": job.title_of(embedder),
        "output": str(output),
        "model": None if save is None else str(save),
    } | ({"dropped": dropped} if dropped else {})


def _tell(summary: dict[str, Any]) -> None:
    """Say in one line what was embedded, and where it is."""
    size = f"{plural(summary['rows'], 'row')} × {plural(summary['columns'], 'column')}"
    dims = plural(summary["dimensions"], "dimension")
    model = f"; model in {bold(summary['model'])}" if summary["model"] else ""
    method, output = escape(summary["method"]), bold(summary["output"])
    say(f"{size} → {dims} by {method}, written to {output}{model}")


# -- ``tabweave cluster``: groups of similar rows, and what stands out in each --------------------


def cluster(job: Job, clusters: str, out: Output) -> None:
    """Cluster the rows and describe each cluster."""
    if clusters != "auto" and (not clusters.isdigit() or int(clusters) < 2):
        raise Misuse(f"--clusters: expected auto or a whole number of at least 2, got {clusters!r}")
    with open_job(job) as opened:
        reading, n_clusters = _reading(opened), 0 if clusters == "auto" else int(clusters)
        with working("estimating the number of clusters"):
            n_clusters = n_clusters or how_many(reading.features(), job.seed)
        learned = opened.learned(n_clusters=n_clusters)
        rows = learned.rows
        with working("grouping"):
            labels, found, _ = _clusters(learned, reading, n_clusters, job.seed)
        if clusters != "auto" and found < n_clusters:
            n_rows = plural(len(np.unique(learned.vectors, axis=0)), "different row")
            raise ValueError(f"--clusters: expected fewer than the {n_rows}, got {n_clusters}")
        if out.path is not None:
            name = "cluster"
            while name in rows.columns:
                name += "_"
            names = list(rows.columns)
            labelled = KnownVectors(labels[:, None], [name], names[0])
            out.write_vectors(labelled, opened.to_write(), names)
        if out.is_piped:
            return
    groups = describe_clusters(reading.values(), labels, found, opened.target)
    if out.json:
        numbered = [{"cluster": k, **about} for k, about in enumerate(groups)]
        path = out.path and str(out.path)
        as_json({"rows": rows.n_rows, "output": path, "clusters": numbered})
        return
    _print_clusters(groups, rows.n_rows, opened.target)
    if out.path is not None:
        say(f"Every row with its cluster is in {bold(out.path)}")


def _reading(job: OpenJob) -> Reading:
    """The rows as a report reads them."""
    table = job.table(job.rows(), with_target=True, rules="all")
    if table.n_rows < 2:
        raise ValueError(f"{job.title!r}: expected at least 2 rows to cluster, got {table.n_rows}")
    return read(table, job.target)


def _clusters(
    learned: Learned, reading: Reading, n_clusters: int, seed: int
) -> tuple[np.ndarray, int, float]:
    """The cluster of each row as reports have it, how many there are, and their silhouette."""
    if not learned.vectors.shape[1]:
        raise ValueError("expected rows that differ, got the same values in every row")
    distinct = DistinctRows.of(reading, seed)
    vectors, copies = learned.vectors[distinct.first], distinct.copies[distinct.drawn]
    axes, _, centers, silhouette = group(vectors[distinct.drawn], copies, n_clusters, seed)
    return assign(axes.project(vectors), centers)[distinct.of_row], len(centers), silhouette


def _print_clusters(clusters: list[dict[str, Any]], n_rows: int, target: str | None) -> None:
    heads = ["cluster", "rows", "share", "stands out by"] + ([target] if target else [])
    cells = []
    for label, about in enumerate(clusters):
        values = [
            f"{v['column']}: {cell(v['value'], 24)} ({v['share']:.0%})" for v in about["values"][:4]
        ]
        row = [str(label), f"{about['size']:,}", f"{about['share']:.0%}", ", ".join(values)]
        if target:
            targets = about["target"][:3]
            row.append(", ".join(f"{cell(v['value'], 24)} {v['share']:.0%}" for v in targets))
        cells.append(row)
    title = f"{plural(n_rows, 'row')} in {plural(len(clusters), 'cluster')}"
    emit(show_table(heads, cells, right=heads[:3], title=title, long=True))


# -- ``tabweave map``: the rows in two dimensions, as a picture, a page or a table ----------------

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
        color = color or opened.target or _column_to_colour_by(learned)
        if form in FORMATS:
            _write_table(learned, opened.to_write(), Output(output, form, force))
        else:
            with working("drawing"):
                points = _points(learned, layout, job.seed)
            title = f"{opened.title} by {opened.title_of(learned.embedder)}"
            with replacing(output) as part:
                if form == "html":
                    table_read = opened.table(learned.rows, with_target=True, rules="all")
                    reading = read(table_read, opened.target)
                    clusters = _page_clusters(learned, reading, job.seed)
                    _draw_page(part, points, learned, color, title, clusters)
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
    axes = scatter_map(points, _cells(learned, color), title=color)
    axes.set_title(title, fontsize="medium", **PLAIN)
    # Without a date, and with names that are no chance, two runs give equal files.
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with require("matplotlib", "plots").rc_context({"svg.hashsalt": "tabweave"}):
        axes.figure.savefig(path, dpi=150, format=form, metadata=undated)


def _draw_page(
    path: Path, points: Any, learned: Learned, color: str, title: str, clusters: tuple[Any, Any]
) -> None:
    """Write the map of reports as a separate page, which needs no network."""
    names = list(dict.fromkeys([color, *learned.rows.columns]))[:30]
    max_points = min(100_000, 3_000_000 // len(names))  # 3 million cells are a large page
    drawn = np.arange(len(points))
    if len(drawn) > max_points:
        drawn = np.linspace(0, len(points) - 1, max_points).astype(int)
    columns = [
        {"name": name} | map_cells(take_rows(learned.column(name), drawn), name) for name in names
    ]
    described, of_row = clusters
    content = {
        "only": ["map"],
        "tabweave": tabweave.__version__,
        "method": embedder_title(learned.embedder),
        "rows": len(points),
        "target": color,
        "clusters": described,
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


def _page_clusters(
    learned: Learned, reading: Reading, seed: int
) -> tuple[dict[str, Any] | None, Any]:
    """Clusters of the rows as reports have them, and that of each row; none of equal rows."""
    if len(np.unique(learned.vectors, axis=0)) < 3:
        return None, None
    number = how_many(reading.features(), seed)
    labels, found, silhouette = _clusters(learned, reading, number, seed)
    groups = describe_clusters(reading.values(), labels, found, reading.target)
    return {"silhouette": round(silhouette, 3), "groups": groups}, labels


def _column_to_colour_by(learned: Learned) -> str:
    """The first column of a few values, or of numbers, or the first."""
    columns, max_values = list(learned.table), 8
    few = [c.name for c, d in columns if c.has_values and 1 < len(d.labels) <= max_values]
    numbers = [c.name for c, _ in columns if c.is_continuous]
    return [*few, *numbers, columns[0][0].name][0]


def _cells(learned: Learned, name: str) -> Any:
    """What dots are coloured by: numbers and dates as they are, of values their labels."""
    ((_, data),) = learned.column(name)
    if data.is_continuous:
        return data.to_numpy()
    values: Any = joined(data) if data.is_set else data.as_values()
    return np.array([None if v is None else cell(v) for v in values.labels], object)[values.codes]


# -- ``tabweave demo``: what Weave does with generated data, beside one-hot -----------------------


def demo(output: Path, rows: int, seed: int, force: bool, studio: bool) -> None:
    """Compare one-hot with Weave on the LED digits, print the result and draw it."""
    if output.suffix.lower() != ".png":
        raise Misuse(f"--output: expected a file that ends in .png, got {output.name!r}")
    check_output(output, force)
    console = Console()
    digits = led24(rows, random_state=seed)
    console.print(
        f"[bold]led24[/]: {rows} faulty seven-segment displays showing 10 digits; 7 columns are "
        "segments (10 % wrong), 17 are coin flips. The labels are used only for scoring."
    )
    embedders = {"one-hot": OneHot(), "Weave": Weave()}
    scores, maps = {}, {}
    with console.status("embedding, clustering, searching neighbours ..."):
        for name, embedder in embedders.items():
            scores[name], maps[name] = _scores(embedder, digits.X, digits.y, seed)
    text_table = TextTable("representation", *scores["Weave"])
    for name, row in scores.items():
        text_table.add_row(name, *row.values())
    console.print(text_table)
    _draw(output, maps, digits.y, embedders["Weave"].weights_)
    console.print(
        "Weave gives the seven segments more weight than the coin flips, because they depend on "
        f"each other.\nImage: [bold]{output.resolve()}[/]"
    )
    if studio:
        tabweave.studio.serve(output.parent, table="titanic")
    else:
        console.print(
            "A table to look into: [bold]tabweave demo --studio[/], or tabweave studio FILE"
        )


def _scores(embedder: Any, X: Any, y: Any, seed: int) -> tuple[dict[str, str], Any]:
    """The scores of one representation, as text, and its vectors."""
    start = time.perf_counter()
    vectors = embedder.fit_transform(X)
    seconds = time.perf_counter() - start
    labels = KMeans(10, n_init=10, random_state=seed).fit_predict(vectors)
    accuracy = cross_val_score(KNeighborsClassifier(5), vectors, y, cv=5).mean()
    scores = {
        "dimensions": f"{vectors.shape[1]}",
        "cluster F": f"{100 * clustering_f(y, labels):.1f}",
        "cluster NMI": f"{100 * normalized_mutual_info_score(y, labels):.1f}",
        "5-NN %": f"{100 * accuracy:.1f}",
        "seconds": f"{seconds:.2f}",
    }
    return scores, vectors


def _draw(output: Path, maps: dict[str, Any], y: Any, weights: dict[str, float]) -> None:
    """Draw the two maps and the weights of the columns."""
    figure = require("matplotlib.figure", "plots").Figure(figsize=(13, 4.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for axes, (name, vectors) in zip((left, middle), maps.items(), strict=True):
        scatter_map(PCA(2, random_state=0).fit_transform(vectors), y, ax=axes)
        axes.set_title(f"{name}: first two principal axes")
    right.bar(range(len(weights)), list(weights.values()), color="0.35")
    right.set(title="Weave: weight of each column", xlabel="column (0-6 are segments)")
    with replacing(output) as part:
        figure.savefig(part, dpi=110, format="png")
