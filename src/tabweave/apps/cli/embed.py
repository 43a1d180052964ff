"""``tabweave embed``: a table in, its vectors out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from tabweave.apps.cli.files import Output, check_output
from tabweave.apps.cli.job import OpenJob, open_job
from tabweave.apps.cli.options import Job, Misuse, Names, listed
from tabweave.apps.cli.show import as_json, emit, fitting, note, number, plural, say, table
from tabweave.columns.table import take_rows

PREVIEW_ROWS = 8  # Rows, and at most as many dimensions, that a terminal shows.


def embed(
    job: Job,
    output: Path | None,
    keep: Names,
    save: Path | None,
    components: int | None,
    vector: str | None,
    form: str | None,
    force: bool,
    json: bool,
) -> None:
    """Write one vector per row."""
    out = Output.checked(output, form, force, json=json and output is not None, content="vectors")
    if json and output is None:
        raise Misuse(
            "--json prints a summary instead of vectors; add --output FILE for the vectors"
        )
    if vector is not None and out.form in ("csv", "tsv"):
        raise Misuse("--vector needs a format with lists: .parquet, .arrow, .json or .jsonl")
    check_output(save, force)
    if save is not None and save == output:
        raise Misuse(f"expected two files, got {str(save)!r} as --output and as --save")
    with open_job(job, output, save, keep=listed(keep), n_components=components) as opened:
        if output is None and sys.stdout.isatty():
            embedder, n_rows = _previewed(opened)
        else:
            embedder, n_rows = _written(opened, out, vector)
        if save is not None:
            embedder.save(save)
    if not out.is_stdout:
        summary = _summary(opened, embedder, n_rows, output, save)
        (as_json if json else _tell)(summary)


def _written(job: OpenJob, output: Output, vector: str | None) -> tuple[Any, int]:
    """The embedder, learned, and the number of rows, whose vectors are written."""
    embedder = job.learned_from_counts()
    if embedder is None:
        embedder = job.learned(keep_map=True, cross_fit=True).embedder
    _warn_of_few_axes(job, embedder)
    keep = dict.fromkeys([*job.keep, *filter(None, [job.target])])
    return embedder, output.write_vectors(embedder, job.to_write(), list(keep), vector)


def _previewed(job: OpenJob) -> tuple[Any, int]:
    """The embedder, learned, and the number of rows, of which the first are shown."""
    embedder, _, rows = job.learned(keep_map=True, cross_fit=True)
    _warn_of_few_axes(job, embedder)
    names = list(embedder.get_feature_names_out())
    vectors = embedder.transform(take_rows(rows, np.arange(min(PREVIEW_ROWS, rows.n_rows))))
    heads = ["row", *names[:PREVIEW_ROWS]]
    cells = [[str(i), *map(number, row[:PREVIEW_ROWS])] for i, row in enumerate(vectors)]
    n_shown = max(2, fitting(heads, cells))
    emit(table(heads[:n_shown], [row[:n_shown] for row in cells], right=heads))
    say(
        "{n} of {rows:,} rows, {few} of {all} dimensions. Write all with "
        "[bold]-o vectors.parquet[/], or pipe them on.",
        n=len(vectors),
        rows=rows.n_rows,
        few=min(n_shown, len(heads)) - 1,
        all=len(names),
    )
    return embedder, rows.n_rows


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
    dropped = {column.name: column.why for column in embedder.schema_.aside}
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
    say(
        "{n} × {wide} → {dims} by {method}, written to "
        "[bold]{output}[/]" + ("; model in [bold]{model}[/]" if summary["model"] else ""),
        n=plural(summary["rows"], "row"),
        wide=plural(summary["columns"], "column"),
        dims=plural(summary["dimensions"], "dimension"),
        **summary,
    )
