"""Commands about a whole table: a page, kinds and pairs of columns, missing and odd cells."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any

import typer
from rich.markup import escape

import tabweave
from tabweave.apps.cli.files import Output, check_output, is_stdout
from tabweave.apps.cli.job import (
    Ids,
    OpenJob,
    Rows,
    cell_of,
    labels_of,
    open_job,
    tell_doubts,
    tell_dropped,
    tell_kinds,
    tell_words,
)
from tabweave.apps.cli.options import Job, Misuse
from tabweave.apps.cli.show import as_json, bold, emit, note, plural, progress, say, width, working
from tabweave.apps.cli.show import table as show_table
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
            description = tabweave.report.describe(
                table,
                target=opened.target,
                method=job.method,
                random_state=job.seed,
                progress=show,
            )
    if json:
        as_json(description)
        return
    text = tabweave.report.page(description, title=opened.title)
    if is_stdout(output):
        typer.echo(text)
        return
    with replacing(output) as part:
        part.write_text(text, encoding="utf-8")
    size = f"{plural(table.n_rows, 'row')} × {plural(len(table.schema), 'column')}"
    say(f"{size} described in {bold(output)}")


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


def associate(job: Job, level: float, limit: int, json: bool) -> None:
    """Measure how strongly each pair of columns is associated."""
    if not 0 < level <= 1:
        raise Misuse(f"--level: expected a number above 0 and at most 1, got {level:g}")
    with open_job(job) as opened:
        table = opened.table(opened.rows(), rules="whole")
        with working("comparing columns"):
            pairs = tabweave.associations(table).frame(level)
    tell_kinds(table)
    if json:
        as_json({"pairs": pairs.to_dict("records")})
        return
    figures = {"strength": "strength"}
    if width() >= MIN_WIDTH_FOR_FIGURES:
        figures |= {"Cramér's V": "cramers_v", "η": "correlation_ratio", "Spearman": "spearman"}
        if not pairs["shared_gaps"].isna().all():
            figures |= {"shared gaps": "shared_gaps"}
    heads = ["left", "right", *figures, "p, adjusted"]
    rows = [
        [
            pair["left"],
            pair["right"],
            *("" if isnan(pair[name]) else f"{pair[name]:.3f}" for name in figures.values()),
            p_value(pair["adjusted_p_value"]),
        ]
        for pair in pairs[:limit].to_dict("records")
    ]
    title = f"{min(limit, len(pairs))} of {plural(len(pairs), 'pair')} of columns"
    emit(show_table(heads, rows, right=heads[2:], title=title))


def p_value(value: float) -> str:
    """A p-value; the least is below what a float can hold, and some pairs have none."""
    return "–" if isnan(value) else f"{value:.2g}" if value > 0 else "< 1e-300"


# -- Cells


def fill(job: Job, out: Output, limit: int) -> None:
    """Fill in missing cells and explain each guess."""
    with open_job(job) as opened:
        rows = opened.rows()
        cells = {name: rows.columns[name] for name in opened.names}
        with working("learning"):
            model = tabweave.Imputer(schema=opened.declared(rows), random_state=job.seed).fit(cells)
        with working("filling"):
            filled, notes = model.transform(cells), model.explain(cells)
            # A guess as it is written: a whole number, an amount of money.
            notes = [n._replace(value=cell_of(filled[n.column], n.row)) for n in notes]
        if out.path is not None:
            as_text = opened.source.guessed and out.kind in ("csv", "tsv")
            columns = _as_text(opened, notes) if as_text else _filled(rows, filled, notes)
            out.write_columns(columns, opened.source.types)
    _tell_of_columns(model)
    summary = f"{plural(len(notes), 'cell')} of {plural(rows.n_rows, 'row')} filled"
    if out.json:
        as_json({"rows": rows.n_rows, "filled": [n._asdict() for n in notes]})
    elif out.is_piped:
        note(summary)
    else:
        _print_filled(notes, rows.n_rows, limit)
        say(summary + ("" if out.path is None else f", written to {bold(out.path)}"))


def _filled(rows: Rows, filled: Any, notes: list[Any]) -> dict[str, Any]:
    """The columns, those without gaps as they are."""
    gaps = {n.column for n in notes}
    return {n: filled[n] if n in gaps else cells for n, cells in rows.columns.items()}


def _as_text(job: OpenJob, notes: list[Any]) -> dict[str, Any]:
    """The columns of a file of text, the cells that are there as they are written: 2.50."""
    written = Rows.read(job.source.retyped(dict.fromkeys(job.source.types, "VARCHAR")))
    columns = dict(written.columns)
    columns |= {name: written.column(name) for name in {n.column for n in notes}}
    for n in notes:
        columns[n.column][n.row] = str(n.value)
    return columns


def _tell_of_columns(model: Any) -> None:
    """Tell how columns were read, and which cannot be filled."""
    schema = model.schema_
    tell_dropped({c.name: c.why for c in schema.dropped}, "their missing cells are not filled")
    tell_doubts(column.finding() for column in schema.columns)
    valued = [column.name for column in schema.categorical]
    values = {name: model.categories(name) for name in valued}
    tell_words(values)
    if empty := [name for name in valued if not values[name]]:
        names = ", ".join(map(repr, empty))
        note(f"all cells are missing in {names}; there is nothing to fill them from")


def _print_filled(notes: list[Any], n_rows: int, limit: int) -> None:
    """Explain some cells of each column, then say how many were filled, and how surely."""
    by_column: dict[str, list[Any]] = {}
    for one in notes:
        by_column.setdefault(one.column, []).append(one)
    each = -(-limit // max(len(by_column), 1))
    for one in [n for notes_of in by_column.values() for n in notes_of[:each]][:limit]:
        say(escape(str(one)))
    if notes:
        cells = [
            [
                name,
                f"{len(filled):,}",
                f"{len(filled) / n_rows:.1%}",
                f"{fmean(n.probability for n in filled):.0%}",
            ]
            for name, filled in by_column.items()
        ]
        heads = ["column", "filled", "% of rows", "mean probability"]
        emit(show_table(heads, cells, right=heads[1:]))


def odd(job: Job, level: float, limit: int, json: bool) -> None:
    """Find cells that do not fit the rest of their row."""
    if not 0 < level < 0.5:
        raise Misuse(f"--level: expected a number between 0 and 0.5, got {level:g}")
    with open_job(job) as opened:
        rows = opened.rows()
        ids = Ids.of(rows, job.id)
        cells = opened.table(rows, rules="texts")
        model = tabweave.OutlierCells(level, random_state=job.seed)
        with progress() as show:
            outliers, is_odd = model._fit_and_judge(cells, limit, show)
    outliers, n_odd = [c for c in outliers if c.p_value <= level], int(is_odd.sum())
    if job.id is not None:
        outliers = [c._replace(row=ids.name(c.position)) for c in outliers]
    tell_kinds(cells)
    n_learned = min(model.max_rows, cells.n_rows)
    if n_learned < cells.n_rows:
        drawn = f"{n_learned:,} of {plural(cells.n_rows, 'row')}, drawn evenly"
        note(f"what goes together is learned from {drawn}; all rows are judged")
    if 3 < cells.n_rows < 1 / level:  # p is at least one in all rows
        few = f"{cells.n_rows} rows are too few to find odd cells at level {level:g}"
        note(f"{few}; try --level {1.5 / cells.n_rows:.1g}")
    if json:
        figures = {"rows": cells.n_rows, "learned_from": n_learned, "odd": n_odd}
        as_json(figures | {"cells": [c._asdict() for c in outliers]})
        return
    for one in outliers:
        say(escape(str(one)))
    chance = round(level * cells.n_rows)  # p is the share of other rows that are as odd
    by_chance = f"; about {chance:,} expected by chance alone" if chance else ""
    say(f"Odd at level {level:g}: {n_odd:,} of {plural(cells.n_rows, 'row')}{by_chance}")
