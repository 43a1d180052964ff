"""``tabweave embed``, ``export`` and ``methods``: a table in, its vectors or their recipe out."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from tabweave.apps.cli.app import ROWS, Force, Format, Json, Misuse, note
from tabweave.apps.cli.app import columns as app_columns
from tabweave.apps.cli.files import check_output, is_stdout, output_format, write_rows
from tabweave.apps.cli.job import Job, listed, load_model, takes_job
from tabweave.apps.cli.show import as_json, emit, fitting, number, plural, say
from tabweave.apps.cli.show import table as show_table
from tabweave.apps.methods import offered
from tabweave.io.files import replacing

_PREVIEW = 8  # rows and dimensions shown where nothing was asked to be written


@takes_job()
def embed(
    job: Job,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write the vectors to; - is standard output."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,...",
            help="Copy these columns to the output without embedding them.",
            autocompletion=app_columns,
            rich_help_panel=ROWS,
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Save the fitted model, for --model and 'tabweave export'.")
    ] = None,
    dims: Annotated[
        int | None,
        typer.Option(min=1, help="Reduce the vectors to this many principal components."),
    ] = None,
    vector: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Write each vector as a list, in a column of this name."),
    ] = None,
    form: Format = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Embed rows: write one vector per row."""
    out = Output(output, form, vector)
    if json and out.is_stdout:
        raise Misuse(
            "--json prints a summary instead of vectors; add --output FILE for the vectors"
        )
    out.check(force)
    check_output(save, force)
    if save is not None and save == output:
        raise Misuse(f"expected two files, got {str(save)!r} as --output and as --save")
    with replace(job, keep=listed(keep), n_components=dims).opened(output, save) as job:
        embedder, n_rows = _previewed(job) if out.is_terminal else _written(job, out)
        if save is not None:
            embedder.save(save)
    if not out.is_stdout:
        summary = _summary(job, embedder, n_rows, output, save)
        (as_json if json else _tell)(summary)


class Output(NamedTuple):
    """Where vectors go, and in which form."""

    path: Path | None
    form: str | None
    vector: str | None

    @property
    def is_stdout(self) -> bool:
        """Whether they go to standard output."""
        return is_stdout(self.path)

    @property
    def is_terminal(self) -> bool:
        """Whether they would flood a terminal."""
        return self.path is None and sys.stdout.isatty()

    def check(self, force: bool) -> None:
        """Refuse what cannot be written, before any work is done."""
        if output_format(self.path, self.form) in ("csv", "tsv") and self.vector is not None:
            raise Misuse("--vector needs a format with lists: .parquet, .arrow, .json or .jsonl")
        check_output(self.path, force)


def _written(job: Job, out: Output) -> tuple[Any, int]:
    """Learn, write all vectors, and return the embedder and the number of rows."""
    embedder = job.learned_from_counts()
    if embedder is None:
        embedder = job.learned(keep_map=True, cross_fit=True).embedder
    _warn_of_few_axes(job, embedder)
    beside = dict.fromkeys([*job.keep, *filter(None, [job.target])])
    n_rows = write_rows(
        embedder, job.to_write(), out.path, keep=list(beside), form=out.form, vector=out.vector
    )
    return embedder, n_rows


def _previewed(job: Job) -> tuple[Any, int]:
    """Learn, show the first vectors, and return the embedder and the number of rows."""
    embedder, _, table = job.learned(keep_map=True, cross_fit=True)
    _warn_of_few_axes(job, embedder)
    _preview(embedder, table)
    return embedder, table.n_rows


def _warn_of_few_axes(job: Job, embedder: Any) -> None:
    n_dims = len(embedder.get_feature_names_out())
    if job.n_components is not None and n_dims < job.n_components:
        note(
            f"warning: the vectors have only {n_dims} dimensions, fewer than the "
            f"{job.n_components} of --dims"
        )


def _preview(embedder: Any, table: Any) -> None:
    """Show the first rows, and as many of their dimensions as fit on a line."""
    import numpy as np

    from tabweave.columns.table import take_rows

    names = list(embedder.get_feature_names_out())
    vectors = embedder.transform(take_rows(table, np.arange(min(_PREVIEW, table.n_rows))))
    heads = ["row", *names[:_PREVIEW]]
    cells = [[str(i), *map(number, row[:_PREVIEW])] for i, row in enumerate(vectors)]
    shown = max(2, fitting(heads, cells))
    emit(show_table(heads[:shown], [row[:shown] for row in cells], right=heads))
    say(
        "{shown} of {rows:,} rows, {few} of {all} dimensions. Write all with "
        "[bold]-o vectors.parquet[/], or pipe them on.",
        shown=len(vectors),
        rows=table.n_rows,
        few=min(shown, len(heads)) - 1,
        all=len(names),
    )


def _summary(
    job: Job, embedder: Any, n_rows: int, output: Path | None, save: Path | None
) -> dict[str, Any]:
    """Return what was embedded, by what, and where it is."""
    aside = {column.name: column.why for column in embedder.schema_.aside}
    return {
        "rows": n_rows,
        "columns": len(embedder.schema_),
        "dimensions": len(embedder.get_feature_names_out()),
        "method": job.title_of(embedder),
        "output": str(output),
        "model": None if save is None else str(save),
    } | ({"aside": aside} if aside else {})


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


def export(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file written by 'tabweave embed --save'.")
    ],
    sql: Annotated[bool, typer.Option("--sql", help="Write a SQL query.")] = False,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Write an ONNX graph (needs tabweave\\[export]).")
    ] = False,
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Write the value tables as Parquet.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write; SQL goes to standard output by default."
        ),
    ] = None,
    dialect: Annotated[
        str, typer.Option(help="SQL dialect: duckdb, postgres, sqlite or bigquery.")
    ] = "duckdb",
    table: Annotated[
        str, typer.Option(help="SQL: name of the table that holds the rows.")
    ] = "rows",
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,...", help="SQL: columns to copy to the result."),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="COLUMN=TYPE",
            help="SQL: type of a column in the database, such as day=date.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Export a saved model to SQL, ONNX or Parquet, to run it without tabweave."""
    kind = _kind(sql, onnx, parquet, output)
    if output is None and kind != "sql":
        raise Misuse(f"--{kind} needs an output file; add --output FILE")
    check_output(output, force)
    from tabweave import export as forms

    embedder = load_model(model)
    if kind == "sql":
        text = forms.sql(embedder, dialect, table=table, keep=listed(keep), types=_types(types))
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


def _types(given: list[str] | None) -> dict[str, str]:
    """Return what columns are in a database."""
    pairs = [text.rpartition("=") for text in given or ()]
    for text, (name, *_) in zip(given or (), pairs, strict=True):
        if not name:
            raise Misuse(f"--type {text!r}: write COLUMN=TYPE, e.g. day=date")
    return {name: kind for name, _, kind in pairs}


def _kind(sql: bool, onnx: bool, parquet: bool, output: Path | None) -> str:
    """Return what is wanted: as said, or as the name of the file says."""
    asked = [
        name for name, wanted in (("sql", sql), ("onnx", onnx), ("parquet", parquet)) if wanted
    ]
    if not asked and output is not None and output.suffix[1:] in ("sql", "onnx", "parquet"):
        asked = [output.suffix[1:]]
    if len(asked) != 1:
        raise Misuse("expected one of --sql, --onnx and --parquet")
    return asked[0]


def methods(json: Json = False) -> None:
    """List the methods that --method accepts."""
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
        emit(show_table([title, ""], lines, long=True))
