"""The command line: thin, no arithmetic lives here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Representation and similarity learning on complex tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from weft import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def weft(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Representation and similarity learning on complex tables."""


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to put the picture.")
    ] = Path("weft-demo.png"),
    rows: Annotated[int, typer.Option(min=200, help="How many rows to draw.")] = 2000,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
) -> None:
    """Embed a built-in table, compare with one-hot, and draw what happened."""
    from weft.cli.demo import run

    run(output, rows, seed)


def main() -> None:
    """Run the command line."""
    app()
