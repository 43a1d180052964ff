"""``weft report``: one page that shows how a table hangs together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import _options, _show
from weft.cli._files import check_output, opened, written
from weft.cli._job import Job, listed


def report(
    source: _options.Source,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to put the page; - is standard output.")
    ] = Path("report.html"),
    method: _options.Method = "auto",
    target: _options.Target = None,
    columns: _options.Columns = None,
    drop: _options.Drop = None,
    kind: _options.Kind = None,
    from_: _options.From = None,
    seed: _options.Seed = 0,
    force: _options.Force = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print what the page shows as JSON.")
    ] = False,
) -> None:
    """Describe a table: columns, couplings, map, clusters, neighbours, warnings."""
    from weft.report import describe, page

    if not json:
        check_output(output, force)
    with opened(source, from_) as name:
        job = Job(name, method, target, listed(columns), listed(drop), kinds=kind or (), seed=seed)
        table = job.table(job.rows(), with_target=True)
        with _show.progress("describing") as advance:
            found = describe(
                table, target=target, method=method, random_state=seed, progress=advance
            )
    if json:
        _show.as_json(found)
        return
    text = page(found)
    if str(output) == "-":
        typer.echo(text)
        return
    with written(output) as part:
        part.write_text(text, encoding="utf-8")
    _show.say(
        "{rows:,} rows × {columns} columns described in [bold]{output}[/]",
        rows=table.n_rows,
        columns=len(table.schema),
        output=str(output),
    )
