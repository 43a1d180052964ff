"""The command line: thin, no arithmetic lives here.

``tabweave COMMAND --help`` says what each command takes. Commands load what they need when they
run, so that help and tab completion are immediate.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tabweave.apps.cli.app import Group, stop_on_terminate
from tabweave.apps.cli.cluster import cluster
from tabweave.apps.cli.demo import bench, demo
from tabweave.apps.cli.embed import embed, export, methods
from tabweave.apps.cli.map import map_
from tabweave.apps.cli.neighbors import explain, neighbors
from tabweave.apps.cli.tables import associate, drift, fill, odd, report, studio

app = typer.Typer(
    cls=Group,
    help="Representation and similarity learning on complex tables.",
    no_args_is_help=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_ROWS, _TABLES, _MODELS, _MORE = "Rows", "Tables", "Models", "More"
app.command(rich_help_panel=_ROWS)(embed)
app.command("map", rich_help_panel=_ROWS)(map_)
app.command(rich_help_panel=_ROWS)(neighbors)
app.command(rich_help_panel=_ROWS)(cluster)
app.command(rich_help_panel=_ROWS)(explain)
app.command(rich_help_panel=_TABLES)(report)
app.command(rich_help_panel=_TABLES)(associate)
app.command(rich_help_panel=_TABLES)(fill)
app.command(rich_help_panel=_TABLES)(odd)
app.command(rich_help_panel=_TABLES)(drift)
app.command(rich_help_panel=_TABLES)(studio)
app.command(rich_help_panel=_MODELS)(export)
app.command(rich_help_panel=_MODELS)(methods)
app.command(rich_help_panel=_MORE)(demo)
app.command(rich_help_panel=_MORE)(bench)


def _show_version(wanted: bool) -> None:
    if wanted:
        from tabweave import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def tabweave(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from; goes anywhere.")
    ] = False,
) -> None:
    """Representation and similarity learning on complex tables."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(2)


def main() -> None:
    """Run the command line."""
    stop_on_terminate()
    app(prog_name="tabweave")
