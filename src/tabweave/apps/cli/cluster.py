"""``tabweave cluster``: groups of similar rows, and what stands out in each."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from tabweave._compat import one_thread
from tabweave.apps.cli.files import Output
from tabweave.apps.cli.job import KnownVectors, OpenJob, open_job
from tabweave.apps.cli.options import Job, Misuse
from tabweave.apps.cli.show import as_json, bold, cell, emit, plural, say, working
from tabweave.apps.cli.show import table as show_table
from tabweave.apps.report.clusters import describe_clusters, how_many
from tabweave.apps.report.reading import read


def cluster(job: Job, clusters: str, out: Output) -> None:
    """Cluster the rows and describe each cluster."""
    if clusters != "auto" and (not clusters.isdigit() or int(clusters) < 2):
        raise Misuse(f"--clusters: expected auto or a whole number of at least 2, got {clusters!r}")
    with open_job(job) as opened:
        n_clusters = _number_of_clusters(opened) if clusters == "auto" else int(clusters)
        learned = opened.learned(n_clusters=n_clusters)
        rows = learned.rows
        with working("grouping"):
            labels = _labels(learned.vectors, n_clusters, job.seed)
        if out.path is not None:
            name = "cluster"
            while name in rows.columns:
                name += "_"
            names = list(rows.columns)
            labelled = KnownVectors(labels[:, None], [name], names[0])
            out.write_vectors(labelled, opened.to_write(), names)
        if out.is_piped:
            return
        reading = read(opened.table(rows, with_target=True, rules="all"), opened.target)
    groups = describe_clusters(reading.values(), labels, n_clusters, opened.target)
    if out.json:
        numbered = [{"cluster": k, **about} for k, about in enumerate(groups)]
        path = out.path and str(out.path)
        as_json({"rows": rows.n_rows, "output": path, "clusters": numbered})
        return
    _print_clusters(groups, rows.n_rows, opened.target)
    if out.path is not None:
        say(f"Every row with its cluster is in {bold(out.path)}")


def _number_of_clusters(job: OpenJob) -> int:
    """How many clusters the rows have, as a report would find them."""
    table = job.table(job.rows(), with_target=True, rules="all")
    if table.n_rows < 2:
        raise ValueError(f"{job.title!r}: expected at least 2 rows to cluster, got {table.n_rows}")
    with working("estimating the number of clusters"):
        return how_many(read(table, job.target).features(), job.options.seed)


def _labels(vectors: Any, n_clusters: int, seed: int) -> Any:
    """The cluster of each vector, the largest cluster first."""
    if not vectors.shape[1]:
        raise ValueError("expected rows that differ, got the same values in every row")
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # too few points: said below
        model = KMeans(n_clusters, n_init=10, random_state=seed).fit(vectors)
    sizes = np.bincount(model.labels_, minlength=n_clusters)
    if not sizes.all():
        raise ValueError(
            f"--clusters: expected at most one cluster per different row, got {n_clusters} "
            f"clusters for {plural(int((sizes > 0).sum()), 'different row')}"
        )
    rank = np.empty(n_clusters, dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(n_clusters)
    return rank[model.predict(np.ascontiguousarray(vectors))]


def _print_clusters(clusters: list[dict[str, Any]], n_rows: int, target: str | None) -> None:
    heads = ["cluster", "rows", "share", "stands out by"] + ([target] if target else [])
    cells = []
    for number, about in enumerate(clusters):
        values = [
            f"{v['column']}: {cell(v['value'], 24)} ({v['share']:.0%})" for v in about["values"][:4]
        ]
        row = [str(number), f"{about['size']:,}", f"{about['share']:.0%}", ", ".join(values)]
        if target:
            targets = about["target"][:3]
            row.append(", ".join(f"{cell(v['value'], 24)} {v['share']:.0%}" for v in targets))
        cells.append(row)
    title = f"{plural(n_rows, 'row')} in {plural(len(clusters), 'cluster')}"
    emit(show_table(heads, cells, right=heads[:3], title=title, long=True))
