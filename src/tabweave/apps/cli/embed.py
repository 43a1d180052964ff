"""``tabweave embed``: a table in, its vectors out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.markup import escape

from tabweave.apps.cli.files import Output, check_output
from tabweave.apps.cli.job import KnownVectors, OpenJob, open_job
from tabweave.apps.cli.options import Job, Misuse, listed
from tabweave.apps.cli.show import as_json, bold, emit, fitting, note, number, plural, say, table

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
