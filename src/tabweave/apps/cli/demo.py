"""``tabweave demo``: the main job on built-in data, in a table and a picture."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as TextTable

from tabweave import OneHot, Weave, plots
from tabweave.datasets import led24
from tabweave.evaluate import clustering_f, nmi


def run(output: Path, rows: int, seed: int) -> None:
    """Compare one-hot with Weave on the LED digits, print the result and draw it."""
    console = Console()
    digits = led24(rows, random_state=seed)
    console.print(
        f"[bold]led24[/]: {rows} faulty seven-segment displays showing 10 digits; 7 columns are "
        "segments (10 % wrong), 17 are coin flips. Nothing below sees a label before scoring."
    )
    embedders = {"one-hot": OneHot(), "Weave": Weave(n_clusters=10)}
    scores, maps = {}, {}
    with console.status("embedding, clustering, searching neighbours ..."):
        for name, embedder in embedders.items():
            scores[name], maps[name] = judge(embedder, digits.X, digits.y, seed)
    console.print(_text_table(scores))
    draw(output, maps, digits.y, embedders["Weave"].weights_)
    console.print(
        "Weave weighs the seven segments two to three times the coin flips, because they depend on "
        f"each other.\nPicture: [bold]{output.resolve()}[/]"
    )


def judge(embedder: Any, X: np.ndarray, y: Any, seed: int) -> tuple[dict[str, float], np.ndarray]:
    """Return the scores of one representation, and its vectors."""
    from sklearn.cluster import KMeans
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    start = time.perf_counter()
    vectors = embedder.fit_transform(X)
    seconds = time.perf_counter() - start
    labels = KMeans(10, n_init=10, random_state=seed).fit_predict(vectors)
    neighbours = cross_val_score(KNeighborsClassifier(5), vectors, y, cv=5)
    scores = {
        "dimensions": vectors.shape[1],
        "cluster F": 100 * clustering_f(y, labels),
        "cluster NMI": 100 * nmi(y, labels),
        "5-NN %": 100 * float(neighbours.mean()),
        "seconds": seconds,
    }
    return scores, vectors


def _text_table(scores: dict[str, dict[str, float]]) -> TextTable:
    table = TextTable("representation", *next(iter(scores.values())))
    for name, row in scores.items():
        cells = [f"{v:d}" if isinstance(v, int) else f"{v:.1f}" for v in row.values()]
        cells[-1] = f"{row['seconds']:.2f}"
        table.add_row(name, *cells)
    return table


def draw(output: Path, maps: dict[str, np.ndarray], y: Any, weights: dict[str, float]) -> None:
    """Draw the two maps and the weights of the columns."""
    from matplotlib.figure import Figure
    from sklearn.decomposition import PCA

    figure = Figure(figsize=(13, 4.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for axes, (name, vectors) in zip((left, middle), maps.items(), strict=True):
        plots.scatter_map(PCA(2, random_state=0).fit_transform(vectors), y, ax=axes)
        axes.set_title(f"{name}: first two principal axes")
    right.bar(range(len(weights)), list(weights.values()), color="0.35")
    right.set(title="Weave: weight of each column", xlabel="column (0-6 are segments)")
    temporary = output.with_name(output.name + ".part")
    figure.savefig(temporary, dpi=110, format="png")
    temporary.replace(output)


# -- ``tabweave bench``: how fast tabweave is on this machine
