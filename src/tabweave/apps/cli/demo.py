"""``tabweave demo``: what Weave does with generated data, beside one-hot."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as TextTable
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from tabweave import OneHot, Weave
from tabweave._compat import require
from tabweave.apps.cli.files import check_output
from tabweave.apps.cli.options import Misuse
from tabweave.datasets import led24
from tabweave.evaluate import clustering_f
from tabweave.io.files import replacing
from tabweave.plots import scatter_map


def demo(output: Path, rows: int, seed: int, force: bool) -> None:
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
