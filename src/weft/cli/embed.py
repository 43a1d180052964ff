"""``weft embed``: a table in, its vectors out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli import _complete, _options, _show
from weft.cli._app import Misuse, note
from weft.cli._files import check_output, format_of, known_format, opened
from weft.cli._job import Job, listed

_PREVIEW = 8  # rows and dimensions shown where nothing was asked to be written


def embed(
    source: _options.Source,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to put the vectors; - is standard output."),
    ] = None,
    method: _options.Method = "auto",
    target: _options.Target = None,
    columns: _options.Columns = None,
    drop: _options.Drop = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Copy these columns beside the vectors, and do not embed them.",
            autocompletion=_complete.columns,
            rich_help_panel=_options.ROWS,
        ),
    ] = None,
    kind: _options.Kind = None,
    from_: _options.From = None,
    model: _options.Model = None,
    save: Annotated[
        Path | None, typer.Option(help="Save what was learned, for --model and 'weft export'.")
    ] = None,
    dims: Annotated[int | None, typer.Option(min=1, help="Keep this many principal axes.")] = None,
    form: _options.Format = None,
    seed: _options.Seed = 0,
    force: _options.Force = False,
    json: _options.Json = False,
) -> None:
    """Turn rows into vectors."""
    piped = output is None or str(output) == "-"
    if json and piped:
        raise Misuse("--json prints a summary; give the vectors a file with --output")
    _ = known_format(form or "csv") if piped else format_of(Path(str(output)), form)
    check_output(output, force)
    check_output(save, force)
    with opened(source, from_) as name:
        job = Job(
            name, method, target, listed(columns), listed(drop), listed(keep), kind or (), model,
            seed,
        )  # fmt: skip
        embedder, n_rows, n_dims = _embedded(job, output, form, dims)
        if save is not None:
            embedder.save(save)
    result = {
        "rows": n_rows,
        "columns": len(embedder.schema_),
        "dimensions": n_dims,
        "method": method if model is None else str(model),
        "output": None if piped else str(output),
        "model": None if save is None else str(save),
    }
    if json:
        _show.as_json(result)
    elif not piped:
        _show.say(
            "{rows:,} rows × {columns} columns → {dimensions} dimensions by {method}, written to "
            "[bold]{output}[/]" + ("; model in [bold]{model}[/]" if save else ""),
            **result,
        )


def _embedded(
    job: Job, output: Path | None, form: str | None, dims: int | None
) -> tuple[Any, int, int]:
    """Learn and write; return the embedder, and how many rows and dimensions there are."""
    from weft.cli import _stream
    from weft.cli._steps import projected, write_rows

    shown = output is None and sys.stdout.isatty()
    embedder = None if shown or dims is not None else _stream.learned(job)
    whole: Any = embedder
    if embedder is None:
        embedder, _, table = job.placed()
        whole = embedder if dims is None else projected(embedder, table, dims, "axis")
    n_dims = len(whole.get_feature_names_out())
    if dims is not None and n_dims < dims:
        note(f"warning: the rows vary along {n_dims} axes only, fewer than {dims}")
    if shown:
        _preview(whole, table)
        return embedder, table.n_rows, n_dims
    beside = dict.fromkeys([*job.keep, *filter(None, [job.target])])
    n_rows = write_rows(whole, job.source, output, keep=list(beside), form=form)
    return embedder, n_rows, n_dims


def _preview(embedder: Any, table: Any) -> None:
    """Show the first rows, where a terminal would be flooded by all of them."""
    import numpy as np

    from weft._distinct import take_rows

    names = list(embedder.get_feature_names_out())
    vectors = embedder.transform(take_rows(table, np.arange(min(_PREVIEW, table.n_rows))))
    heads = ["row", *names[:_PREVIEW]]
    cells = [[str(i), *map(_show.number, row[:_PREVIEW])] for i, row in enumerate(vectors)]
    _show.emit(_show.table(heads, cells, right=heads))
    _show.say(
        "{shown} of {rows:,} rows, {few} of {all} dimensions. Write all with "
        "[bold]-o vectors.parquet[/], or pipe them on.",
        shown=len(vectors),
        rows=table.n_rows,
        few=len(heads) - 1,
        all=len(names),
    )
