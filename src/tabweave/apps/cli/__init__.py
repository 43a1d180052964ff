"""The command line: a thin layer without arithmetic.

``tabweave COMMAND --help`` lists the options of a command. Commands load what they need when they
run, so that help and tab completion are immediate.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from tabweave.apps.cli.app import STOPPED, Command, Group, examples, stop_on_terminate
from tabweave.apps.cli.demo import bench, demo
from tabweave.apps.cli.embed import embed, export, methods
from tabweave.apps.cli.map import map_
from tabweave.apps.cli.neighbors import duplicates, explain, neighbors
from tabweave.apps.cli.tables import (
    associate,
    cluster,
    drift,
    fill,
    kinds,
    odd,
    predict,
    report,
    studio,
)

app = typer.Typer(
    cls=Group,
    help="Representation and similarity learning on complex tables.",
    epilog=examples(
        "report people.csv", "neighbors people.csv --row 17", "embed people.csv -o vectors.parquet"
    ),
    no_args_is_help=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _add(panel: str, command: Callable[..., None], *lines: str, name: str | None = None) -> None:
    """Add a command to a panel of the help, with examples."""
    app.command(name, cls=Command, rich_help_panel=panel, epilog=examples(*lines))(command)


_ROWS, _TABLES, _MODELS, _MORE = "Rows", "Tables", "Models", "More"
_add(
    _ROWS, embed,
    "embed people.csv -o vectors.parquet",
    "embed people.csv --target job --save people.tabweave -o vectors.csv",
    "embed \"SELECT * FROM 'people.csv' WHERE age > 30\" --dims 5 -o -",
)  # fmt: skip
_add(
    _ROWS, map_,
    "map people.csv",
    "map people.csv --color job -o map.png",
    name="map",
)  # fmt: skip
_add(
    _ROWS, neighbors,
    "neighbors people.csv --row 17",
    "neighbors people.csv --like job=cook,age=30 -k 3",
    "neighbors people.csv --row 17 --where age=30..40",
)  # fmt: skip
_add(_ROWS, cluster, "cluster people.csv", "cluster people.csv -k 4 -o clusters.csv")
_add(_ROWS, explain, "explain people.csv --a 3 --b 9")
_add(_ROWS, duplicates, "duplicates people.csv", "duplicates people.csv --radius 0.5 -o pairs.csv")
_add(_TABLES, report, "report people.csv", "report people.csv --target job -o people.html")
_add(_TABLES, kinds, "kinds people.csv", "kinds people.csv --kind age=nominal")
_add(_TABLES, associate, "associate people.csv --most 10")
_add(_TABLES, fill, "fill people.csv", "fill people.csv -o filled.csv")
_add(_TABLES, odd, "odd people.csv --most 5")
_add(_TABLES, predict, "predict train.csv test.csv --target y -o predicted.csv")
_add(_TABLES, drift, "drift monday.csv tuesday.csv", "drift monday.csv tuesday.csv --check")
_add(_TABLES, studio, "studio", "studio people.csv")
_add(
    _MODELS, export,
    "export people.tabweave --sql --dialect postgres",
    "export people.tabweave -o people.onnx",
)  # fmt: skip
_add(_MODELS, methods, "methods")
_add(_MORE, demo, "demo")
_add(_MORE, bench, "bench")


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
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error; accepted by every command."),
    ] = False,
) -> None:
    """Representation and similarity learning on complex tables."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(2)


def main() -> None:
    """Run the command line."""
    stop_on_terminate()
    try:
        app(prog_name="tabweave")
    except KeyboardInterrupt:  # before a command begins, or after it has ended
        sys.exit(STOPPED)
