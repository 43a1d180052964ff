"""``tabweave report``: one page that shows how a table hangs together."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from tabweave.apps.cli.app import Columns, Drop, Force, From, Kind, Method, Seed, Source, Target
from tabweave.apps.cli.files import check_output, opened, written
from tabweave.apps.cli.job import Job, listed
from tabweave.apps.cli.show import as_json, progress, say


def report(
    source: Source,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to put the page; - is standard output.")
    ] = Path("report.html"),
    method: Method = "auto",
    target: Target = None,
    columns: Columns = None,
    drop: Drop = None,
    kind: Kind = None,
    from_: From = None,
    seed: Seed = 0,
    force: Force = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print what the page shows as JSON.")
    ] = False,
) -> None:
    """Describe a table: columns, couplings, map, clusters, neighbours, warnings."""
    from tabweave.apps.report import describe, page

    if not json:
        check_output(output, force)
    with opened(source, from_) as name:
        job = Job(name, method, target, listed(columns), listed(drop), kinds=kind or (), seed=seed)
        table = job.table(job.rows(), with_target=True)
        with progress("describing") as advance:
            found = describe(
                table, target=target, method=method, random_state=seed, progress=advance
            )
    if json:
        as_json(found)
        return
    text = page(found)
    if str(output) == "-":
        typer.echo(text)
        return
    with written(output) as part:
        part.write_text(text, encoding="utf-8")
    say(
        "{rows:,} rows × {columns} columns described in [bold]{output}[/]",
        rows=table.n_rows,
        columns=len(table.schema),
        output=str(output),
    )


# -- ``tabweave studio``: the same things in a browser, on this machine


def studio(
    path: Annotated[
        Path, typer.Argument(metavar="[PATH]", help="A file to open, or the folder to look in.")
    ] = Path(),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open a local page: look at a table, compare methods, download what you see."""
    if not path.exists():
        raise ValueError(f"there is no file or folder {str(path)!r}")
    from tabweave.apps.studio import serve

    with suppress(KeyboardInterrupt):  # the way to end it
        serve(path, host=host, port=port, open_browser=browser)
