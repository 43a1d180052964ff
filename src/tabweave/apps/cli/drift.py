"""``tabweave drift``: what changed from one table to another."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tabweave.apps.cli.app import Columns, Drop, From, Json, Kind, Misuse, Seed, note
from tabweave.apps.cli.files import opened
from tabweave.apps.cli.job import Job, Rows, listed
from tabweave.apps.cli.show import as_json, cell, emit, say
from tabweave.apps.cli.show import table as show_table

CHANGED = 3  # exit code under --check


def drift(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The table before.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The table after.")],
    columns: Columns = None,
    drop: Drop = None,
    kind: Kind = None,
    from_: From = None,
    level: Annotated[
        float, typer.Option(help="Chance of a false alarm, all columns taken together.")
    ] = 0.05,
    check: Annotated[
        bool, typer.Option("--check", help=f"Exit with {CHANGED} if anything changed.")
    ] = False,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Say which columns, and which couplings of columns, changed."""
    from tabweave.tasks.drift import drift_report

    if old == new == "-":
        raise Misuse("only one of OLD and NEW can be standard input")
    if not 0 < level < 1:
        raise Misuse(f"--level {level}: use a share between 0 and 1")
    with opened(old, from_) as first, opened(new, from_) as second:
        job = Job(first, columns=listed(columns), drop=listed(drop), kinds=kind or ())
        before, after = _counted(job, second)
    report = drift_report(before, after, level=level, random_state=seed)
    if json:
        as_json(_as_dict(report))
    else:
        _print(report, before.n, after.n)
    if check and (report.changed or report.changed_couplings):
        raise typer.Exit(CHANGED)


def _counted(job: Job, new: str) -> tuple[Any, Any]:
    """Count both tables; what the columns of the first are holds for the second, too."""
    from tabweave import Counts, Table

    rows = job.rows()
    table = job.table(rows)
    before, names = Counts.of(table), table.schema.names
    after = Rows.read(new, counts=before)
    for name in names:
        if name not in after.columns:
            raise ValueError(f"only OLD has column {name!r}; compare others by --columns or --drop")
    more = [n for n in after.columns if n not in rows.columns]
    if more and not job.columns:
        note(f"warning: only NEW has {', '.join(map(repr, more))}; not compared")
    return before, Counts.of(Table.of({n: after.columns[n] for n in names}, table.schema))


def _as_dict(report: Any) -> dict[str, Any]:
    def told(findings: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": f.name,
                "changed": f.adjusted <= report.level,
                "effect": f.effect,
                "p": f.p_value,
                "adjusted": f.adjusted,
                "moved": list(f.values),
            }
            for f in findings
        ]

    return {
        "level": report.level,
        "changed": report.changed,
        "changed_couplings": report.changed_couplings,
        "columns": told(report.columns),
        "couplings": told(report.couplings),
    }


def _print(report: Any, before: int, after: int, most: int = 10) -> None:
    for title, findings in (("Columns", report.columns), ("Couplings", report.couplings[:most])):
        if findings:
            emit(_as_table(title, findings, report.level))
    say(
        "{n} of {all} columns changed from {before:,} to {after:,} rows "
        "(level {level:g}, adjusted for the number of tests).",
        n=len(report.changed),
        all=len(report.columns),
        before=before,
        after=after,
        level=report.level,
    )


def _as_table(title: str, findings: Any, level: float) -> Any:
    heads = ["", "what", "effect", "p", "adjusted p"]
    rows = [
        [
            "changed" if f.adjusted <= level else "",
            f.name,
            f"{f.effect:.1f}",
            f"{f.p_value:.2g}",
            f"{f.adjusted:.2g}",
        ]
        for f in findings
    ]
    if any(f.values for f in findings):
        heads.append("moved most")
        for row, f in zip(rows, findings, strict=True):
            row.append(", ".join(map(cell, f.values)))
    return show_table(heads, rows, right=heads[2:5], title=title)
