"""``tabweave fill`` and ``odd``: missing cells filled in, and cells that do not fit their row."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

from tabweave import Imputer, OutlierCells
from tabweave.apps.cli.files import Output
from tabweave.apps.cli.job import OpenJob, open_job
from tabweave.apps.cli.notes import tell_doubts, tell_dropped, tell_kinds, tell_words
from tabweave.apps.cli.options import Job, Misuse
from tabweave.apps.cli.rows import Ids, Rows, cell_of
from tabweave.apps.cli.show import as_json, emit, note, plural, say, table, working


def fill(
    job: Job, output: Path | None, form: str | None, force: bool, most: int, json: bool
) -> None:
    """Fill in missing cells and explain each guess."""
    out = Output.checked(output, form, force, json=json)
    with open_job(job) as opened:
        rows = opened.rows()
        cells = {name: rows.columns[name] for name in opened.names}
        with working("learning"):
            model = Imputer(schema=opened.declared(rows), random_state=job.seed).fit(cells)
        with working("filling"):
            filled, notes = model.transform(cells), model.explain(cells)
            # A guess as it is written: a whole number, an amount of money.
            notes = [n._replace(value=cell_of(filled[n.column], n.row)) for n in notes]
        if output is not None:
            as_text = opened.source.guessed and out.form in ("csv", "tsv")
            columns = _as_text(opened, notes) if as_text else _filled(rows, filled, notes)
            out.write_columns(columns, opened.source.types)
    _tell_of_columns(model)
    summary = f"{plural(len(notes), 'cell')} of {plural(rows.n_rows, 'row')} filled"
    if json:
        as_json({"rows": rows.n_rows, "filled": [n._asdict() for n in notes]})
    elif out.is_piped:
        note(summary)
    else:
        _print_filled(notes, rows.n_rows, most)
        where = ", written to [bold]{output}[/]" if output is not None else ""
        say("{summary}" + where, summary=summary, output=str(output))


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
    tell_dropped({c.name: c.why for c in schema.aside}, "their missing cells are not filled")
    tell_doubts(column.finding() for column in schema.columns)
    valued = [c.name for c in schema.columns if c.kind in ("nominal", "ordinal", "set")]
    values = {name: model.categories(name) for name in valued}
    tell_words(values)
    if empty := [name for name in valued if not values[name]]:
        names = ", ".join(map(repr, empty))
        note(f"all cells are missing in {names}; there is nothing to fill them from")


def _print_filled(notes: list[Any], n_rows: int, most: int) -> None:
    """Explain some cells of each column, then say how many were filled, and how surely."""
    by_column: dict[str, list[Any]] = {}
    for one in notes:
        by_column.setdefault(one.column, []).append(one)
    each = -(-most // max(len(by_column), 1))
    for one in [n for notes_of in by_column.values() for n in notes_of[:each]][:most]:
        say("{note}", note=str(one))
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
        emit(table(heads, cells, right=heads[1:]))


def odd(job: Job, level: float, most: int, id: str | None, json: bool) -> None:
    """Find cells that do not fit the rest of their row."""
    if not 0 < level < 0.5:
        raise Misuse(f"--level: expected a number between 0 and 0.5, got {level:g}")
    with open_job(job, keep=[id] if id else []) as opened:
        rows = opened.rows()
        ids = Ids.of(rows, id)
        cells = opened.table(rows, rules="texts")
        model = OutlierCells(level, random_state=job.seed)
        with working("looking for cells that do not fit"):
            found, is_odd = model.fit(cells)._cells_of_fit(model._read(cells), most)
    outliers, n_odd = [c for c in found if c.p_value <= level], int(is_odd.sum())
    if id is not None:
        outliers = [c._replace(row=ids.name(c.position)) for c in outliers]
    tell_kinds(cells)
    if 3 < cells.n_rows < 1 / level:  # p is at least one in all rows
        few = f"{cells.n_rows} rows are too few to find odd cells at level {level:g}"
        note(f"{few}; try --level {1.5 / cells.n_rows:.1g}")
    if json:
        as_json({"rows": cells.n_rows, "odd": n_odd, "cells": [c._asdict() for c in outliers]})
        return
    for one in outliers:
        say("{cell}", cell=str(one))
    chance = round(level * cells.n_rows)  # p is the share of other rows that are as odd
    by_chance = f"; about {chance:,} expected by chance alone" if chance else ""
    say(f"Odd at level {level:g}: {n_odd:,} of {plural(cells.n_rows, 'row')}{by_chance}")
