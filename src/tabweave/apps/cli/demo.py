"""``tabweave demo`` and ``bench``: what it does, and how fast, on generated data."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from tabweave._compat import require
from tabweave.apps.cli.app import Force, Json, Misuse, Seed
from tabweave.apps.cli.files import check_output
from tabweave.apps.cli.show import as_json, emit
from tabweave.apps.cli.show import table as show_table
from tabweave.io.files import replacing


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Image file to write (.png).")
    ] = Path("tabweave-demo.png"),
    rows: Annotated[int, typer.Option(min=200, help="Number of rows to generate.")] = 2000,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Embed generated data with Weave and one-hot, and compare the results in an image."""
    if output.suffix.lower() != ".png":
        raise Misuse(f"--output: expected a file that ends in .png, got {output.name!r}")
    check_output(output, force)
    run(output, rows, seed)


def run(output: Path, rows: int, seed: int) -> None:
    """Compare one-hot with Weave on the LED digits, print the result and draw it."""
    from rich.console import Console

    from tabweave import OneHot, Weave
    from tabweave.datasets import led24

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
            scores[name], maps[name] = judge(embedder, digits.X, digits.y, seed)
    console.print(_text_table(scores))
    draw(output, maps, digits.y, embedders["Weave"].weights_)
    console.print(
        "Weave gives the seven segments more weight than the coin flips, because they depend on "
        f"each other.\nImage: [bold]{output.resolve()}[/]"
    )


def judge(embedder: Any, X: Any, y: Any, seed: int) -> tuple[dict[str, float], Any]:
    """Return the scores of one representation, and its vectors."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import normalized_mutual_info_score
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    from tabweave.evaluate import clustering_f

    start = time.perf_counter()
    vectors = embedder.fit_transform(X)
    seconds = time.perf_counter() - start
    labels = KMeans(10, n_init=10, random_state=seed).fit_predict(vectors)
    neighbours = cross_val_score(KNeighborsClassifier(5), vectors, y, cv=5)
    scores = {
        "dimensions": vectors.shape[1],
        "cluster F": 100 * clustering_f(y, labels),
        "cluster NMI": 100 * normalized_mutual_info_score(y, labels),
        "5-NN %": 100 * float(neighbours.mean()),
        "seconds": seconds,
    }
    return scores, vectors


def _text_table(scores: dict[str, dict[str, float]]) -> Any:
    from rich.table import Table as TextTable

    table = TextTable("representation", *next(iter(scores.values())))
    for name, row in scores.items():
        cells = [f"{v:d}" if isinstance(v, int) else f"{v:.1f}" for v in row.values()]
        cells[-1] = f"{row['seconds']:.2f}"
        table.add_row(name, *cells)
    return table


def draw(output: Path, maps: dict[str, Any], y: Any, weights: dict[str, float]) -> None:
    """Draw the two maps and the weights of the columns."""
    from sklearn.decomposition import PCA

    from tabweave.plots import scatter_map

    figure = require("matplotlib.figure", "plots").Figure(figsize=(13, 4.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for axes, (name, vectors) in zip((left, middle), maps.items(), strict=True):
        scatter_map(PCA(2, random_state=0).fit_transform(vectors), y, ax=axes)
        axes.set_title(f"{name}: first two principal axes")
    right.bar(range(len(weights)), list(weights.values()), color="0.35")
    right.set(title="Weave: weight of each column", xlabel="column (0-6 are segments)")
    with replacing(output) as part:
        figure.savefig(part, dpi=110, format="png")


def bench(
    rows: Annotated[int, typer.Option(min=1000, help="Number of rows to generate.")] = 200_000,
    json: Json = False,
) -> None:
    """Measure the speed of counting, fitting and transforming on this machine."""
    found = _timed(rows)
    if json:
        as_json({"rows": rows, "columns": 10, "seconds": found})
        return
    cells = [[name, f"{1000 * s:,.0f}", f"{rows / s / 1e6:.1f}"] for name, s in found.items()]
    heads = ["task", "ms", "million rows/s"]
    title = f"{rows:,} rows × 10 columns of 20 values"
    emit(show_table(heads, cells, right=heads[1:], title=title))


def _timed(rows: int) -> dict[str, float]:
    """Return the best time of three of each task; the first use compiles and does not count."""
    from tabweave import Counts, OneHot, Table, Weave
    from tabweave.datasets import make_codes

    table = Table.of(make_codes(rows, 10, 20, random_state=0), numbers="nominal")
    counts = Counts.of(table)
    weave, onehot = Weave().fit_counts(counts), OneHot().fit_counts(counts)
    tasks: dict[str, Callable[[], Any]] = {
        "count all pairs of values": lambda: Counts.of(table),
        "learn Weave from counts": lambda: Weave().fit_counts(counts),
        "look up Weave vectors": lambda: weave.transform(table),
        "look up one-hot vectors": lambda: onehot.transform(table),
    }
    return {name: min(_seconds(task) for _ in range(3)) for name, task in tasks.items()}


def _seconds(task: Callable[[], Any]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start
