"""Commands about a whole table: a page, kinds of columns, pairs of columns."""

from __future__ import annotations

from math import isnan
from pathlib import Path

import typer

from tabweave import associations
from tabweave.apps.cli.files import check_output, is_stdout
from tabweave.apps.cli.job import open_job
from tabweave.apps.cli.notes import labels_of, tell_kinds, tell_words
from tabweave.apps.cli.options import Job, Misuse
from tabweave.apps.cli.show import as_json, emit, plural, progress, say, width, working
from tabweave.apps.cli.show import table as show_table
from tabweave.apps.report import describe, page
from tabweave.io.files import replacing

MIN_WIDTH_FOR_FIGURES = 75  # Characters of a line from which on every figure of a pair is shown.


def report(job: Job, output: Path, force: bool, json: bool) -> None:
    """Write a page about a table."""
    if not json:
        if not is_stdout(output) and output.suffix.lower() not in (".html", ".htm"):
            raise Misuse(f"--output: expected a file that ends in .html, got {output.name!r}")
        check_output(output, force)
    with open_job(job) as opened:
        table = opened.table(opened.rows(), with_target=True, rules="all")
        with progress() as show:
            description = describe(
                table,
                target=opened.target,
                method=job.method,
                random_state=job.seed,
                progress=show,
            )
    if json:
        as_json(description)
        return
    text = page(description, title=opened.title)
    if is_stdout(output):
        typer.echo(text)
        return
    with replacing(output) as part:
        part.write_text(text, encoding="utf-8")
    say(
        "{rows} × {columns} described in [bold]{output}[/]",
        rows=plural(table.n_rows, "row"),
        columns=plural(len(table.schema), "column"),
        output=str(output),
    )


def kinds(job: Job, json: bool) -> None:
    """Show how each column is read."""
    with open_job(job) as opened:
        table = opened.table(opened.rows(), rules="whole")
    findings = table.kinds()
    tell_words(labels_of(table))
    if json:
        as_json({"rows": table.n_rows, "columns": [f._asdict() for f in findings]})
        return
    rows = [[f.column, f.kind if f.kept else "dropped", f.why] for f in findings]
    title = f"{plural(table.n_rows, 'row')} × {plural(len(findings), 'column')}"
    emit(show_table(["column", "read as", "why"], rows, title=title, long=True))
    say("To read a column differently, add [bold]--kind COLUMN=KIND[/] to any command.")


def associate(job: Job, level: float, most: int, json: bool) -> None:
    """Measure how strongly each pair of columns is associated."""
    if not 0 < level <= 1:
        raise Misuse(f"--level: expected a number above 0 and at most 1, got {level:g}")
    with open_job(job) as opened:
        table = opened.table(opened.rows(), rules="whole")
        with working("comparing columns"):
            pairs = associations(table).frame(level)
    tell_kinds(table)
    if json:
        as_json({"pairs": pairs.to_dict("records")})
        return
    figures = {"strength": "strength"}
    if width() >= MIN_WIDTH_FOR_FIGURES:
        figures |= {"Cramér's V": "cramers_v", "η": "correlation_ratio", "Spearman": "spearman"}
    heads = ["left", "right", *figures, "p, adjusted"]
    rows = [
        [
            pair["left"],
            pair["right"],
            *("" if isnan(pair[name]) else f"{pair[name]:.3f}" for name in figures.values()),
            p_value(pair["adjusted_p_value"]),
        ]
        for pair in pairs[:most].to_dict("records")
    ]
    title = f"{min(most, len(pairs))} of {plural(len(pairs), 'pair')} of columns"
    emit(show_table(heads, rows, right=heads[2:], title=title))


def p_value(value: float) -> str:
    """A p-value; the least is below what a float can hold, and some pairs have none."""
    return "–" if isnan(value) else f"{value:.2g}" if value > 0 else "< 1e-300"
