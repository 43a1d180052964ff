"""``tabweave cluster``: groups of rows, and what each is made of."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tabweave.apps.cli.app import Force, Format, Json, Misuse
from tabweave.apps.cli.files import check_output, is_stdout, output_format, write_rows
from tabweave.apps.cli.job import Job, Rows, Then, takes_job
from tabweave.apps.cli.show import as_json, cell, emit, plural, say, working
from tabweave.apps.cli.show import table as show_table


@takes_job()
def cluster(
    job: Job,
    clusters: Annotated[
        str,
        typer.Option(
            "--clusters", "-k", help="Number of clusters; auto estimates it, as in reports."
        ),
    ] = "auto",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write every row and its cluster to; - is standard output.",
        ),
    ] = None,
    form: Format = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Cluster the rows (k-means on their vectors) and describe each cluster."""
    piped = output is not None and is_stdout(output)
    if json and piped:
        raise Misuse("--json prints a summary instead of rows; add --output FILE for the rows")
    output_format(output, form)
    check_output(output, force)
    asked = _number(clusters)
    with job.opened() as job:
        n_clusters = asked or _found(job)
        job = replace(job, n_clusters=n_clusters)
        embedder, rows, table = job.learned(keep_map=True)
        with working("grouping"):
            group = _grouping(embedder.transform(table), n_clusters, job.seed)
        if output is not None:
            labelled = Then(embedder, lambda v: group(v)[:, None], [_unused("cluster", rows)])
            write_rows(labelled, job.to_write(), output, keep=list(rows.columns), form=form)
        if not piped:
            found = _described(job, rows, group(embedder.transform(table)), n_clusters)
    if json:
        as_json({"rows": rows.n_rows, "output": output and str(output), "clusters": found})
    elif not piped:
        _print(found, rows.n_rows, job.target)
        if output is not None:
            say("Every row with its cluster is in [bold]{output}[/]", output=str(output))


def _number(text: str) -> int | None:
    """Return the number that was asked for; None is to be found out."""
    if text == "auto":
        return None
    if not text.isdigit() or int(text) < 2:
        raise Misuse(f"--clusters: expected auto or a whole number of at least 2, got {text!r}")
    return int(text)


def _found(job: Job) -> int:
    """Return how many clusters the rows have, as a report would find them."""
    from tabweave.apps.report.clusters import how_many
    from tabweave.apps.report.reading import read

    table = job.table(job.rows(), with_target=True, rules="all")
    if table.n_rows < 2:
        raise ValueError(f"{job.title!r}: expected at least 2 rows to cluster, got {table.n_rows}")
    with working("estimating the number of clusters"):
        return how_many(read(table, job.target).features(), job.seed)


def _grouping(vectors: Any, n_clusters: int, seed: int) -> Any:
    """Return a function from vectors to clusters, the largest cluster first."""
    import numpy as np
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    from tabweave._compat import one_thread

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
    return lambda v: rank[model.predict(np.asarray(v, dtype=vectors.dtype, order="C"))]


def _described(job: Job, rows: Rows, labels: Any, n_clusters: int) -> list[dict[str, Any]]:
    """Return the size of each cluster, and what its rows have more often than others."""
    from tabweave.apps.report.clusters import describe_clusters
    from tabweave.apps.report.reading import read

    target = job.target
    values = read(job.table(rows, with_target=True, rules="all"), target).values()
    found = describe_clusters(values, labels, n_clusters, target)
    return [{"cluster": k, **about} for k, about in enumerate(found)]


def _print(found: list[dict[str, Any]], n_rows: int, target: str | None) -> None:
    heads = ["cluster", "rows", "share", "stands out by"] + ([target] if target else [])
    cells = []
    for about in found:
        values = [f"{v['column']}: {_value(v)} ({_percent(v)})" for v in about["values"][:4]]
        row = [
            str(about["cluster"]),
            f"{about['size']:,}",
            f"{about['share']:.0%}",
            ", ".join(values),
        ]
        if target:
            row.append(", ".join(f"{_value(v)} {_percent(v)}" for v in about["target"][:3]))
        cells.append(row)
    title = f"{plural(n_rows, 'row')} in {plural(len(found), 'cluster')}"
    emit(show_table(heads, cells, right=heads[:3], title=title, long=True))


def _value(about: dict[str, Any]) -> str:
    return cell(about["value"], 24)


def _percent(about: dict[str, Any]) -> str:
    return f"{about['share']:.0%}"


def _unused(name: str, rows: Rows) -> str:
    """Return a name that no column has yet."""
    while name in rows.columns:
        name += "_"
    return name
