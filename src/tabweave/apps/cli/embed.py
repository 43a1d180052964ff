"""``tabweave embed``: a table in, its vectors out."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tabweave.apps.cli.app import ROWS, Force, Format, Json, Misuse, note
from tabweave.apps.cli.app import columns as app_columns
from tabweave.apps.cli.files import check_output, is_stdout, output_format, write_rows
from tabweave.apps.cli.job import Job, listed, projected, takes_job
from tabweave.apps.cli.show import as_json, emit, number, say
from tabweave.apps.cli.show import table as show_table

_PREVIEW = 8  # rows and dimensions shown where nothing was asked to be written


@takes_job()
def embed(
    job: Job,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to put the vectors; - is standard output."),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Copy these columns beside the vectors, and do not embed them.",
            autocompletion=app_columns,
            rich_help_panel=ROWS,
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Save what was learned, for --model and 'tabweave export'.")
    ] = None,
    dims: Annotated[int | None, typer.Option(min=1, help="Keep this many principal axes.")] = None,
    form: Format = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Turn rows into vectors."""
    piped = is_stdout(output)
    if json and piped:
        raise Misuse("--json prints a summary; give the vectors a file with --output")
    output_format(output, form)
    check_output(output, force)
    check_output(save, force)
    with replace(job, keep=listed(keep)).opened() as job:
        embedder, n_rows, n_dims = _embedded(job, output, form, dims)
        if save is not None:
            embedder.save(save)
    result = {
        "rows": n_rows,
        "columns": len(embedder.schema_),
        "dimensions": n_dims,
        "method": job.method if job.model is None else str(job.model),
        "output": None if piped else str(output),
        "model": None if save is None else str(save),
    }
    if json:
        as_json(result)
    elif not piped:
        say(
            "{rows:,} rows × {columns} columns → {dimensions} dimensions by {method}, written to "
            "[bold]{output}[/]" + ("; model in [bold]{model}[/]" if save else ""),
            **result,
        )


def _embedded(
    job: Job, output: Path | None, form: str | None, dims: int | None
) -> tuple[Any, int, int]:
    """Learn and write; return the embedder, and how many rows and dimensions there are."""
    shown = output is None and sys.stdout.isatty()
    embedder = None if shown or dims is not None else job.learned_from_counts()
    whole: Any = embedder
    if embedder is None:
        embedder, _, table = job.learned(keep_map=True)
        whole = embedder if dims is None else projected(embedder, table, dims, "axis")
    n_dims = len(whole.get_feature_names_out())
    if dims is not None and n_dims < dims:
        note(f"warning: the rows vary along {n_dims} axes only, fewer than {dims}")
    if shown:
        _preview(whole, table)
        return embedder, table.n_rows, n_dims
    beside = dict.fromkeys([*job.keep, *filter(None, [job.target])])
    n_rows = write_rows(whole, job.to_write(), output, keep=list(beside), form=form)
    return embedder, n_rows, n_dims


def _preview(embedder: Any, table: Any) -> None:
    """Show the first rows, where a terminal would be flooded by all of them."""
    import numpy as np

    from tabweave.rows.table import take_rows

    names = list(embedder.get_feature_names_out())
    vectors = embedder.transform(take_rows(table, np.arange(min(_PREVIEW, table.n_rows))))
    heads = ["row", *names[:_PREVIEW]]
    cells = [[str(i), *map(number, row[:_PREVIEW])] for i, row in enumerate(vectors)]
    emit(show_table(heads, cells, right=heads))
    say(
        "{shown} of {rows:,} rows, {few} of {all} dimensions. Write all with "
        "[bold]-o vectors.parquet[/], or pipe them on.",
        shown=len(vectors),
        rows=table.n_rows,
        few=len(heads) - 1,
        all=len(names),
    )
