"""``tabweave export`` and ``methods``: a saved model in other forms, and what --method knows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tabweave.apps.cli.app import Force, Json, Misuse
from tabweave.apps.cli.files import check_output, is_stdout
from tabweave.apps.cli.job import listed, load_model
from tabweave.apps.cli.show import as_json, emit, say, table
from tabweave.apps.methods import offered
from tabweave.io.atomic import replacing


def export(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="What 'tabweave embed --save' wrote.")
    ],
    sql: Annotated[bool, typer.Option("--sql", help="As a query.")] = False,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="As an ONNX graph (needs tabweave\\[export]).")
    ] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="As value tables.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to put it.")] = None,
    dialect: Annotated[
        str, typer.Option(help="Of SQL: duckdb, postgres, sqlite or bigquery.")
    ] = "duckdb",
    table: Annotated[str, typer.Option(help="Of SQL: the table that holds the rows.")] = "rows",
    keep: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Of SQL: columns to pass through.")
    ] = None,
    force: Force = False,
) -> None:
    """Write a saved model in a form that runs without tabweave."""
    kind = _kind(sql, onnx, parquet, output)
    if output is None and kind != "sql":
        raise Misuse(f"--{kind} is written to a file; name it with --output")
    check_output(output, force)
    from tabweave.io import export as forms

    embedder = load_model(model)
    if kind == "sql":
        text = forms.sql(embedder, dialect, table=table, keep=listed(keep))
        if is_stdout(output):
            typer.echo(text, nl=False)
            return
    assert output is not None
    with replacing(output) as part:
        if kind == "sql":
            part.write_text(text, encoding="utf-8")
        else:
            (forms.onnx if kind == "onnx" else forms.parquet)(embedder, part)
    say("{model} as {kind} in [bold]{output}[/]", model=str(model), kind=kind, output=str(output))


def _kind(sql: bool, onnx: bool, parquet: bool, output: Path | None) -> str:
    """Return what is wanted: as said, or as the name of the file says."""
    asked = [
        name for name, wanted in (("sql", sql), ("onnx", onnx), ("parquet", parquet)) if wanted
    ]
    if not asked and output is not None and output.suffix[1:] in ("sql", "onnx", "parquet"):
        asked = [output.suffix[1:]]
    if len(asked) != 1:
        raise Misuse("say one of --sql, --onnx and --parquet")
    return asked[0]


def methods(json: Json = False) -> None:
    """List the names that --method knows."""
    known = offered("shell")
    if json:
        as_json([{"name": n, "kind": m.decorator, "summary": m.summary} for n, m in known.items()])
        return
    for kind, title in (("embedder", "embedder"), ("measure", "value measure")):
        lines = [
            [name, m.summary + ("; needs --target" if m.flags.get("needs_y") else "")]
            for name, m in known.items()
            if m.decorator == kind
        ]
        emit(table([title, ""], lines, long=True))
