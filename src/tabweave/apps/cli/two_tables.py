"""``tabweave predict`` and ``drift``: one table learned from, another compared with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from math import isnan
from typing import Any

import typer

from tabweave import WeaveClassifier, WeaveRegressor
from tabweave.apps.cli import show
from tabweave.apps.cli.files import Output
from tabweave.apps.cli.job import OpenJob, check_columns, open_job
from tabweave.apps.cli.options import ExitCode, Job, Misuse
from tabweave.apps.cli.tables import MIN_WIDTH_FOR_FIGURES, p_value
from tabweave.columns.kinds import dropped_line
from tabweave.embed.supervised import Target
from tabweave.engines import family
from tabweave.tasks.drift import drift_report


@contextmanager
def _opened_alike(first: OpenJob, source: str, names: Iterable[str]) -> Iterator[OpenJob]:
    """Open a second table; of the named columns, those that are text in the first are text."""
    types = first.as_written(names).types
    texts = [name for name in names if family(types.get(name, "")) == "text"]
    options = replace(first.options, source=source)
    with open_job(options, text_columns=texts) as second:
        yield second


def _refuse_two_pipes(first: str, second: str, names: str) -> None:
    if first == second == "-":
        raise Misuse(f"expected at most one of {names} to be - (standard input), got both")


# -- predict


def predict(job: Job, test: str, out: Output) -> None:
    """Predict a column of one table from another that has it."""
    if job.target is None:
        raise Misuse("expected the column to predict, as in --target churned")
    _refuse_two_pipes(job.source, test, "TRAIN and TEST")
    with open_job(job, out.path) as train:
        model, names = _predictor(train)
        with _opened_alike(train, test, names) as opened:
            check_columns(names, opened.source.types)
            rows = opened.rows()
    with show.working("predicting"):
        predictions = _predictions(model, {n: rows.columns[n] for n in names}, train.target)
    for name in predictions:
        if name in rows.columns and name != train.target:
            raise ValueError(f"TEST already has a column {name!r}; rename it")
    if out.path is not None or not out.json:
        columns = {n: cells for n, cells in rows.columns.items() if n != train.target}
        out.write_columns(columns | predictions, {})
    if out.json:
        show.as_json({"rows": rows.n_rows, "predictions": predictions})
    elif not out.is_stdout:
        show.say(f"{show.plural(rows.n_rows, 'row')} predicted, written to {show.bold(out.path)}")


def _predictor(job: OpenJob) -> tuple[Any, list[str]]:
    """A model of the target of the training rows, and the columns that it reads."""
    rows = job.rows()
    cells = {name: rows.columns[name] for name in job.names}
    y = rows.targets(str(job.target))
    gaps = [i for i, value in enumerate(y) if value is None or value != value]
    if gaps:
        raise ValueError(
            f"column {job.target!r}: expected a target in every row of {job.title!r}, got none in "
            f"row {gaps[0]}; leave such rows out"
        )
    kind = WeaveRegressor if Target.of(y, 10).numeric else WeaveClassifier
    model = kind(schema=job.declared(rows) or None, random_state=job.options.seed)
    with show.working("learning"):
        return model.fit(cells, y), list(cells)


def _predictions(model: Any, cells: Any, target: str | None) -> dict[str, Any]:
    """The columns that predictions add: the target, and the probability of each class."""
    columns = {f"predicted {target}": model.predict(cells).tolist()}
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(cells)
        names = [f"probability of {label}" for label in model.classes_]
        columns |= {n: shares[:, i].round(6).tolist() for i, n in enumerate(names)}
    return columns


# -- drift


def drift(job: Job, new: str, level: float, min_size: float, check: bool, json: bool) -> None:
    """Compare two tables."""
    _refuse_two_pipes(job.source, new, "OLD and NEW")
    if not 0 < level < 1:
        raise Misuse(f"--level: expected a number between 0 and 1, got {level:g}")
    if min_size < 0:
        raise Misuse(f"--min-size: expected a number of at least 0, got {min_size:g}")
    with open_job(job) as old:
        rows = old.rows()
        before = old.table(rows, rules="sample")
        # What was numbers may be text now, which is a change to report.
        valued = [column.name for column in before.schema.categorical]
        with _opened_alike(old, new, valued) as opened:
            after = opened.rows()
    ignored = set(after.columns if job.columns else rows.columns) - set(before.schema.given)
    columns = {name: cells for name, cells in after.columns.items() if name not in ignored}
    with show.working("comparing"):
        report = drift_report(
            before, columns, level=level, min_size=min_size, random_state=job.seed
        )
    if json:
        show.as_json(_as_dict(report))
    else:
        _print_drift(report, before, after.n_rows)
    if check and (report.changed or report.changed_couplings or report.gone):
        raise typer.Exit(ExitCode.CHANGED)


def _as_dict(report: Any) -> dict[str, Any]:
    """A report of drift as JSON has it."""
    return {
        "level": report.level,
        "min_size": report.min_size,
        "changed": report.changed,
        "changed_couplings": report.changed_couplings,
        "kinds": dict(report.kinds),
        "dropped": dict(report.dropped),
        "gone": list(report.gone),
        "new": list(report.new),
        "columns": [_finding_as_dict(f, report) for f in report.columns],
        "couplings": [_finding_as_dict(f, report) for f in report.couplings],
    }


def _finding_as_dict(finding: Any, report: Any) -> dict[str, Any]:
    comparison = [{"what": what, "before": b, "after": a} for what, b, a in finding.comparison]
    return {
        "name": finding.name,
        "changed": report.is_changed(finding),
        "effect": finding.effect,
        "sizes": dict(finding.sizes),
        "p": finding.p_value,
        "adjusted": finding.adjusted,
        "moved": list(finding.values),
        "comparison": comparison,
    }


def _print_drift(report: Any, before: Any, n_after: int) -> None:
    dated = {c.name for c in before.schema.columns if c.is_dated}
    changed = [f for f in report.couplings if f.name in report.changed_couplings]
    for title, findings in (("Columns", report.columns), ("Couplings that changed", changed[:10])):
        if findings:
            show.emit(_as_table(title, findings, report, dated))
    n_pairs = len(report.couplings)
    n_columns = len(report.columns) + len(report.kinds)
    couplings = f", and {len(changed)} of {n_pairs} couplings," if n_pairs else ""
    show.say(
        f"{len(report.changed)} of {n_columns} columns changed{couplings} from {before.n_rows:,} "
        f"to {n_after:,} rows (level {report.level:g}, adjusted for the number of tests)."
    )
    for name, change in report.kinds.items():
        show.note(f"{name!r} changed in kind: {change}; not compared further")
    for whose, names in (("OLD", report.gone), ("NEW", report.new)):
        if names:
            show.note(f"only {whose} has {', '.join(map(repr, names))}; not compared")
    if report.dropped:
        show.note(dropped_line(dict(report.dropped)))


def _as_table(title: str, findings: Any, report: Any, dated: set[str]) -> Any:
    heads = ["", "what", "effect size", "p", "adjusted p", "before → after"]
    rows = [
        [
            "changed" if report.is_changed(f) else "",
            f.name,
            f"{next(iter(f.sizes), '')} {f.size:.2f}",
            p_value(f.p_value),
            p_value(f.adjusted),
            _before_after(f, f.name in dated),
        ]
        for f in findings
    ]
    if show.width() < MIN_WIDTH_FOR_FIGURES:  # what was found, without how
        heads, rows = [*heads[:2], heads[5]], [[*row[:2], row[5]] for row in rows]
    return show.table(heads, rows, right=["effect size", "p", "adjusted p"], title=title, long=True)


def _before_after(finding: Any, dated: bool) -> str:
    """What moved, shares as percentages, numbers as they are, seconds as dates and days."""
    numeric = any(what == "mean" for what, _, _ in finding.comparison) and not finding.values
    parts = []
    for what, before, after in finding.comparison:
        as_share = not numeric or what == "missing"
        of_number = (_moment if what == "mean" else _days) if dated else _number
        sides = map("{:.1%}".format if as_share else of_number, (before, after))
        parts.append(f"{show.cell(what) or repr('')} {' → '.join(sides)}")
    return ", ".join(parts)


def _number(number: float) -> str:
    if 1e3 <= abs(number) < 1e15:  # 1983 may be a year
        return f"{number:.0f}" if abs(number) < 1e4 else f"{number:,.0f}"
    return f"{number:.3g}"


def _moment(seconds: float) -> str:
    if isnan(seconds):
        return "–"
    moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    return f"{moment:%H:%M}" if 0 <= seconds < 86_400 else f"{moment:%Y-%m-%d}"


def _days(seconds: float) -> str:
    return f"{_number(seconds / 86_400)} days"
