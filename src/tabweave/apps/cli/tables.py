"""Commands about a whole table: a page, clusters, two tables, pairs of columns, gaps, odd cells."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from tabweave.apps.cli.app import (
    Columns,
    Drop,
    Encoding,
    Force,
    Format,
    From,
    Json,
    Kind,
    Misuse,
    Seed,
    Target,
    note,
)
from tabweave.apps.cli.files import (
    check_output,
    is_stdout,
    located,
    output_format,
    write_columns,
    write_rows,
)
from tabweave.apps.cli.job import (
    Job,
    Rows,
    Then,
    cell_of,
    check_columns,
    labels_of,
    listed,
    meant,
    takes_job,
    tell_aside,
    tell_doubts,
    tell_kinds,
    tell_words,
)
from tabweave.apps.cli.neighbors import Id, Ids, with_ids
from tabweave.apps.cli.show import as_json, cell, emit, plural, progress, say, width, working
from tabweave.apps.cli.show import table as show_table
from tabweave.io.files import replacing

CHANGED = 3  # exit code under --check
_ALL_FIGURES = 75  # characters of a line from which on every figure of a pair is shown


@takes_job("model")
def report(
    job: Job,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="HTML file to write; - is standard output.")
    ] = Path("report.html"),
    force: Force = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the content of the page as JSON.")
    ] = False,
) -> None:
    """Write a page about a table: columns, dependences, map, clusters, neighbours, warnings."""
    if not json:
        if not is_stdout(output) and output.suffix.lower() not in (".html", ".htm"):
            raise Misuse(f"--output: expected a file that ends in .html, got {output.name!r}")
        check_output(output, force)
    from tabweave.apps.report import describe, page

    with job.opened() as job:
        table = job.table(job.rows(), with_target=True, rules="all")
        with progress() as show:
            found = describe(
                table, target=job.target, method=job.method, random_state=job.seed, progress=show
            )
    if json:
        as_json(found)
        return
    text = page(found, title=job.title)
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


@takes_job()
def cluster(
    job: Job,
    clusters: Annotated[
        str,
        typer.Option(
            "--clusters", "-k", help="Number of clusters; auto estimates it, as in reports."
        ),
    ] = "auto",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write every row and its cluster to; - is standard output.",
        ),
    ] = None,
    form: Format = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Cluster the rows (k-means on their vectors) and describe each cluster."""
    piped = output is not None and is_stdout(output)
    if json and piped:
        raise Misuse("--json prints a summary instead of rows; add --output FILE for the rows")
    output_format(output, form)
    check_output(output, force)
    asked = _cluster_number(clusters)
    with job.opened() as job:
        n_clusters = asked or _number_found(job)
        job = replace(job, n_clusters=n_clusters)
        embedder, rows, table = job.learned(keep_map=True)
        with working("grouping"):
            group = _grouping(embedder.transform(table), n_clusters, job.seed)
        if output is not None:
            labelled = Then(embedder, lambda v: group(v)[:, None], [_unused("cluster", rows)])
            write_rows(labelled, job.to_write(), output, keep=list(rows.columns), form=form)
        if not piped:
            found = _clusters_described(job, rows, group(embedder.transform(table)), n_clusters)
    if json:
        as_json({"rows": rows.n_rows, "output": output and str(output), "clusters": found})
    elif not piped:
        _print_clusters(found, rows.n_rows, job.target)
        if output is not None:
            say("Every row with its cluster is in [bold]{output}[/]", output=str(output))


def _cluster_number(text: str) -> int | None:
    """Return the number that was asked for; None is to be found out."""
    if text == "auto":
        return None
    if not text.isdigit() or int(text) < 2:
        raise Misuse(f"--clusters: expected auto or a whole number of at least 2, got {text!r}")
    return int(text)


def _number_found(job: Job) -> int:
    """Return how many clusters the rows have, as a report would find them."""
    from tabweave.apps.report.clusters import how_many
    from tabweave.apps.report.reading import read

    table = job.table(job.rows(), with_target=True, rules="all")
    if table.n_rows < 2:
        raise ValueError(f"{job.title!r}: expected at least 2 rows to cluster, got {table.n_rows}")
    with working("estimating the number of clusters"):
        return how_many(read(table, job.target).features(), job.seed)


def _grouping(vectors: Any, n_clusters: int, seed: int) -> Any:
    """Return a function from vectors to clusters, the largest cluster first."""
    import numpy as np
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    from tabweave._compat import one_thread

    if not vectors.shape[1]:
        raise ValueError("expected rows that differ, got the same values in every row")
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # too few points: said below
        model = KMeans(n_clusters, n_init=10, random_state=seed).fit(vectors)
    sizes = np.bincount(model.labels_, minlength=n_clusters)
    if not sizes.all():
        raise ValueError(
            f"--clusters: expected at most one cluster per different row, got {n_clusters} "
            f"clusters for {plural(int((sizes > 0).sum()), 'different row')}"
        )
    rank = np.empty(n_clusters, dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(n_clusters)
    return lambda v: rank[model.predict(np.asarray(v, dtype=vectors.dtype, order="C"))]


def _clusters_described(job: Job, rows: Rows, labels: Any, n_clusters: int) -> list[dict[str, Any]]:
    """Return the size of each cluster, and what its rows have more often than others."""
    from tabweave.apps.report.clusters import describe_clusters
    from tabweave.apps.report.reading import read

    target = job.target
    values = read(job.table(rows, with_target=True, rules="all"), target).values()
    found = describe_clusters(values, labels, n_clusters, target)
    return [{"cluster": k, **about} for k, about in enumerate(found)]


def _print_clusters(found: list[dict[str, Any]], n_rows: int, target: str | None) -> None:
    heads = ["cluster", "rows", "share", "stands out by"] + ([target] if target else [])
    cells = []
    for about in found:
        values = [
            f"{v['column']}: {_cluster_value(v)} ({_cluster_percent(v)})"
            for v in about["values"][:4]
        ]
        row = [
            str(about["cluster"]),
            f"{about['size']:,}",
            f"{about['share']:.0%}",
            ", ".join(values),
        ]
        if target:
            row.append(
                ", ".join(f"{_cluster_value(v)} {_cluster_percent(v)}" for v in about["target"][:3])
            )
        cells.append(row)
    title = f"{plural(n_rows, 'row')} in {plural(len(found), 'cluster')}"
    emit(show_table(heads, cells, right=heads[:3], title=title, long=True))


def _cluster_value(about: dict[str, Any]) -> str:
    return cell(about["value"], 24)


def _cluster_percent(about: dict[str, Any]) -> str:
    return f"{about['share']:.0%}"


def _unused(name: str, rows: Rows) -> str:
    """Return a name that no column has yet."""
    while name in rows.columns:
        name += "_"
    return name


@takes_job("model", "method", "target", "seed")
def kinds(job: Job, json: Json = False) -> None:
    """Show how each column is read, and why."""
    with job.opened() as job:
        table = job.table(job.rows(), rules="whole")
    found = table.kinds()
    tell_words(labels_of(table))
    if json:
        as_json({"rows": table.n_rows, "columns": [f._asdict() for f in found]})
        return
    rows = [[f.column, f.kind if f.kept else "set aside", f.why] for f in found]
    title = f"{plural(table.n_rows, 'row')} × {plural(len(found), 'column')}"
    emit(show_table(["column", "read as", "why"], rows, title=title, long=True))
    say("To read a column differently, add [bold]--kind COLUMN=KIND[/] to any command.")


@takes_job("model", "method", "target", "seed")
def associate(
    job: Job,
    level: Annotated[
        float, typer.Option(help="Show pairs whose adjusted p-value is at most this.")
    ] = 1.0,
    most: Annotated[int, typer.Option(min=1, help="Maximum number of pairs to show.")] = 30,
    json: Json = False,
) -> None:
    """Measure how strongly each pair of columns is associated, strongest first."""
    from tabweave import associations

    if not 0 < level <= 1:
        raise Misuse(f"--level: expected a number above 0 and at most 1, got {level:g}")
    with job.opened() as job:
        table = job.table(job.rows(), rules="whole")
        with working("comparing columns"):
            found = associations(table).frame(level)
    tell_kinds(table)
    if json:
        as_json({"pairs": found.to_dict("records")})
        return
    figures = {"strength": "strength"}
    if width() >= _ALL_FIGURES:
        figures |= {"Cramér's V": "cramers_v", "η": "correlation_ratio", "Spearman": "spearman"}
    heads = ["left", "right", *figures, "p, adjusted"]
    rows = [
        [
            pair["left"],
            pair["right"],
            *(_figure(pair[name]) for name in figures.values()),
            _p_value(pair["adjusted_p_value"]),
        ]
        for pair in found[:most].to_dict("records")
    ]
    title = f"{min(most, len(found))} of {plural(len(found), 'pair')} of columns"
    emit(show_table(heads, rows, right=heads[2:], title=title))


def _figure(value: float) -> str:
    return "" if isnan(value) else f"{value:.3f}"


def _p_value(value: float) -> str:
    """Return a p-value; the least is below what a float can hold, and some pairs have none."""
    return "–" if isnan(value) else f"{value:.2g}" if value > 0 else "< 1e-300"


@takes_job("model", "method", "target")
def fill(
    job: Job,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write the filled table to; - is standard output."
        ),
    ] = None,
    form: Format = None,
    force: Force = False,
    most: Annotated[
        int, typer.Option(min=0, help="Maximum number of filled cells to explain.")
    ] = 20,
    json: Json = False,
) -> None:
    """Fill in missing cells from the other cells of their rows, and explain each guess."""
    from tabweave import Imputer

    piped = output is not None and is_stdout(output)
    if json and piped:
        raise Misuse("--json prints the filled cells; add --output FILE for the filled table")
    kind = output_format(output, form)
    check_output(output, force)
    with job.opened() as job:
        rows = job.rows()
        cells = {name: rows.columns[name] for name in job.names}
        with working("learning"):
            model = Imputer(schema=job.declared(rows), random_state=job.seed).fit(cells)
        with working("filling"):
            filled, notes = model.transform(cells), model.explain(cells)
            # A guess as it is written: a whole number, an amount of money.
            notes = [n._replace(value=cell_of(filled[n.column], n.row)) for n in notes]
        if output is not None:
            as_text = job.source.guessed and kind in ("csv", "tsv")
            every = _filled_text(job, notes) if as_text else _filled_cells(rows, filled, notes)
            write_columns(every, output, kind, job.source.types)
    tell_aside({c.name: c.why for c in model.schema_.aside}, "their missing cells are not filled")
    tell_doubts(column.finding() for column in model.schema_.columns)
    values = {name: model.categories(name) for name in _valued(model.schema_)}
    tell_words(values)
    if empty := [name for name, own in values.items() if not own]:
        names = ", ".join(map(repr, empty))
        note(f"all cells are missing in {names}; there is nothing to fill them from")
    done = f"{plural(len(notes), 'cell')} of {plural(rows.n_rows, 'row')} filled"
    if json:
        as_json({"rows": rows.n_rows, "filled": [n._asdict() for n in notes]})
    elif piped:
        note(done)
    else:
        _print_filled(notes, rows.n_rows, most)
        where = ", written to [bold]{output}[/]" if output is not None else ""
        say("{done}" + where, done=done, output=str(output))


def _filled_cells(rows: Rows, filled: Any, notes: list[Any]) -> dict[str, Any]:
    """Return the columns, those without gaps as they are."""
    gaps = {one.column for one in notes}
    return {n: filled[n] if n in gaps else cells for n, cells in rows.columns.items()}


def _filled_text(job: Job, notes: list[Any]) -> dict[str, Any]:
    """Return the columns of a file of text, the cells that are there as they are written: 2.50."""
    written = Rows.read(job.source.retyped(dict.fromkeys(job.source.types, "VARCHAR")))
    columns = dict(written.columns)
    columns |= {name: written.column(name) for name in {one.column for one in notes}}
    for one in notes:
        columns[one.column][one.row] = str(one.value)
    return columns


def _print_filled(notes: list[Any], n_rows: int, most: int) -> None:
    """Explain some cells of each column, then say how many were filled, and how surely."""
    of: dict[str, list[Any]] = {}
    for one in notes:
        of.setdefault(one.column, []).append(one)
    each = -(-most // max(len(of), 1))
    for one in [one for own in of.values() for one in own[:each]][:most]:
        say("{note}", note=str(one))
    if of:
        cells = [
            [
                name,
                f"{len(own):,}",
                f"{len(own) / n_rows:.1%}",
                f"{fmean(p.probability for p in own):.0%}",
            ]
            for name, own in of.items()
        ]
        heads = ["column", "filled", "% of rows", "mean probability"]
        emit(show_table(heads, cells, right=heads[1:]))


@takes_job("model", "method", "target")
def odd(
    job: Job,
    level: Annotated[
        float,
        typer.Option(
            help="Significance level: expected share of rows, and of cells in a column, that are "
            "flagged by chance."
        ),
    ] = 0.01,
    most: Annotated[int, typer.Option(min=1, help="Maximum number of cells to show.")] = 20,
    id: Id = None,
    json: Json = False,
) -> None:
    """Find cells that do not fit the rest of their row, most unusual first."""
    from tabweave import OutlierCells

    if not 0 < level < 0.5:
        raise Misuse(f"--level: expected a number between 0 and 0.5, got {level:g}")
    with with_ids(job, id).opened() as job:
        rows = job.rows()
        ids = Ids.of(rows, id and meant(id, rows.columns))
        table = job.table(rows, rules="texts")
        model = OutlierCells(level, random_state=job.seed)
        with working("looking for cells that do not fit"):
            cells, is_odd = model.fit(table)._cells_of_fit(model._read(table), most)
        found, n_odd = [c for c in cells if c.p_value <= level], int(is_odd.sum())
    if id is not None:
        found = [c._replace(row=ids.name(c.position)) for c in found]
    tell_kinds(table)
    if 3 < table.n_rows < 1 / level:  # p is at least one in all rows
        few = f"{table.n_rows} rows are too few to find odd cells at level {level:g}"
        note(f"{few}; try --level {1.5 / table.n_rows:.1g}")
    if json:
        as_json({"rows": table.n_rows, "odd": n_odd, "cells": [c._asdict() for c in found]})
        return
    for one in found:
        say("{cell}", cell=str(one))
    chance = round(level * table.n_rows)  # p is the share of other rows that are as odd
    by_chance = f"; about {chance:,} expected by chance alone" if chance else ""
    say(f"Odd at level {level:g}: {n_odd:,} of {plural(table.n_rows, 'row')}{by_chance}")


def predict(
    train: Annotated[
        str,
        typer.Argument(
            metavar="TRAIN", help="Rows with the target; takes what IN of other commands takes."
        ),
    ],
    test: Annotated[str, typer.Argument(metavar="TEST", help="Rows to predict the target of.")],
    target: Target = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write TEST with predictions to; - is standard output."
        ),
    ] = None,
    columns: Columns = None,
    drop: Drop = None,
    kind: Kind = None,
    from_: From = None,
    encoding: Encoding = None,
    seed: Seed = 0,
    form: Format = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Predict a column of one table from another that has it, with probabilities of classes."""
    if target is None:
        raise Misuse("expected the column to predict, as in --target churned")
    if train == test == "-":
        raise Misuse("expected at most one of TRAIN and TEST to be - (standard input), got both")
    written = output_format(output, form)
    check_output(output, force)
    job = Job(
        train, from_, target=target, method="supervised", columns=listed(columns),
        drop=listed(drop), kinds=kind or (), seed=seed, encoding=encoding,
    )  # fmt: skip
    with job.opened(output) as job, located(test, from_) as path:
        model, cells = _predictor(job)
        after = _as_in_training(path, job, cells, encoding)
    with working("predicting"):
        found = _predictions(model, {name: after.columns[name] for name in cells}, job.target)
    for name in found:
        if name in after.columns and name != job.target:
            raise ValueError(f"TEST already has a column {name!r}; rename it")
    result = {**{n: c for n, c in after.columns.items() if n != job.target}, **found}
    if output is not None or not json:
        write_columns(result, output, written, {})
    if json:
        as_json({"rows": after.n_rows, "predictions": found})


def _predictor(job: Job) -> tuple[Any, dict[str, Any]]:
    """Return a model of the target of the training rows, and their other columns."""
    from tabweave import WeaveClassifier, WeaveRegressor
    from tabweave.embed.supervised import Target as Targets

    rows = job.rows()
    cells = {name: rows.columns[name] for name in job.names}
    y = rows.targets(str(job.target))
    gaps = [i for i, value in enumerate(y) if value is None or value != value]
    if gaps:
        raise ValueError(
            f"column {job.target!r}: expected a target in every row of {job.title!r}, got none in "
            f"row {gaps[0]}; leave such rows out"
        )
    kind = WeaveRegressor if Targets.of(y, 10).numeric else WeaveClassifier
    with working("learning"):
        return kind(schema=job.declared(rows) or None, random_state=job.seed).fit(cells, y), cells


def _as_in_training(path: str, job: Job, cells: Any, encoding: str | None) -> Rows:
    """Read rows whose text is text where it was in training."""
    from tabweave.engines import family, open_source

    source = open_source(path, encoding=encoding)
    check_columns(list(cells), list(source.types))
    types = job.source.types
    texts = {n: "VARCHAR" for n in cells if family(types.get(n, "")) == "text"}
    texts = {n: t for n, t in texts.items() if family(source.types[n]) != "text"}
    return Rows.read(source.retyped(texts) if texts and source.guessed else source)


def _predictions(model: Any, cells: Any, target: str | None) -> dict[str, Any]:
    """Return the columns that predictions add: the target, and the probability of each class."""
    found = {f"predicted {target}": model.predict(cells).tolist()}
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(cells)
        names = [f"probability of {label}" for label in model.classes_]
        found |= {n: shares[:, i].round(6).tolist() for i, n in enumerate(names)}
    return found


def _valued(schema: Any) -> list[str]:
    return [c.name for c in schema.columns if c.kind in ("nominal", "ordinal", "set")]


def drift(
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD", help="Reference table; takes what IN of other commands takes."
        ),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Table to compare with it.")],
    columns: Columns = None,
    drop: Drop = None,
    kind: Kind = None,
    from_: From = None,
    level: Annotated[
        float, typer.Option(help="Significance level: chance of a false alarm over all tests.")
    ] = 0.05,
    min_size: Annotated[
        float, typer.Option(help="Smallest effect size (KS, Cramér's V) that counts as a change.")
    ] = 0.0,
    check: Annotated[
        bool, typer.Option("--check", help=f"Exit with code {CHANGED} if anything changed.")
    ] = False,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compare two tables: which columns, and which dependences between columns, changed."""
    from tabweave.tasks.drift import drift_report

    if old == new == "-":
        raise Misuse("expected at most one of OLD and NEW to be - (standard input), got both")
    if not 0 < level < 1:
        raise Misuse(f"--level: expected a number between 0 and 1, got {level:g}")
    if min_size < 0:
        raise Misuse(f"--min-size: expected a number of at least 0, got {min_size:g}")
    job = Job(old, from_, columns=listed(columns), drop=listed(drop), kinds=kind or ())
    with job.opened() as job, located(new, from_) as path:
        before, after = _tables(job, path)
    with working("comparing"):
        report = drift_report(
            before, after.columns, level=level, min_size=min_size, random_state=seed
        )
    if json:
        as_json(_as_dict(report))
    else:
        _print_drift(report, before, after)
    if check and (report.changed or report.changed_couplings or report.gone):
        raise typer.Exit(CHANGED)


def _tables(job: Job, new: str) -> tuple[Any, Any]:
    """Read the first table, and the columns of the second that are to be compared with it."""
    from tabweave import Counts
    from tabweave.engines import fitted_columns, open_source
    from tabweave.engines.source import declared_types

    rows = job.rows()
    table = job.table(rows, rules="sample")
    source = open_source(new)
    # What was text stays text; what was numbers may be text now, which is a change to report.
    types = declared_types(fitted_columns(source, Counts.of(table)))
    texts = {name: kind for name, kind in types.items() if kind == "VARCHAR"}
    after = Rows.read(open_source(source, texts))
    left_out = set(after.columns) if job.columns else set(rows.columns)
    left_out -= set(table.schema.given)
    columns = {n: cells for n, cells in after.columns.items() if n not in left_out}
    return table, Rows(columns, after.n_rows)


def _as_dict(report: Any) -> dict[str, Any]:
    def listed_(findings: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": f.name,
                "changed": report.is_changed(f),
                "effect": f.effect,
                "sizes": dict(f.sizes),
                "p": f.p_value,
                "adjusted": f.adjusted,
                "moved": list(f.values),
                "comparison": [
                    {"what": what, "before": b, "after": a} for what, b, a in f.comparison
                ],
            }
            for f in findings
        ]

    return {
        "level": report.level,
        "min_size": report.min_size,
        "changed": report.changed,
        "changed_couplings": report.changed_couplings,
        "kinds": dict(report.kinds),
        "aside": dict(report.aside),
        "gone": list(report.gone),
        "new": list(report.new),
        "columns": listed_(report.columns),
        "couplings": listed_(report.couplings),
    }


def _print_drift(report: Any, before: Any, after: Any, most: int = 10) -> None:
    dated = {c.name for c in before.schema.columns if c.kind == "datetime"}
    moved, of = report.changed_couplings, len(report.couplings)
    shown = [f for f in report.couplings if f.name in moved][:most]
    for title, findings in (("Columns", report.columns), ("Couplings that changed", shown)):
        if findings:
            emit(_as_table(title, findings, report, dated))
    say(
        "{n} of {all} columns changed{pairs} from {before:,} to {after:,} rows "
        "(level {level:g}, adjusted for the number of tests).",
        n=len(report.changed),
        all=len(report.columns) + len(report.kinds),
        pairs=f", and {len(moved)} of {of} couplings," if of else "",
        before=before.n_rows,
        after=after.n_rows,
        level=report.level,
    )
    for name, said in report.kinds.items():
        note(f"{name!r} changed in kind: {said}; not compared further")
    for whose, names in (("OLD", report.gone), ("NEW", report.new)):
        if names:
            note(f"only {whose} has {', '.join(map(repr, names))}; not compared")
    if report.aside:
        from tabweave.columns.kinds import aside_line

        note(aside_line(dict(report.aside)))


def _as_table(title: str, findings: Any, report: Any, dated: set[str]) -> Any:
    heads = ["", "what", "effect size", "p", "adjusted p", "before → after"]
    rows = [
        [
            "changed" if report.is_changed(f) else "",
            f.name,
            _size(f),
            _p_value(f.p_value),
            _p_value(f.adjusted),
            _before_after(f, f.name in dated),
        ]
        for f in findings
    ]
    if width() < _ALL_FIGURES:  # what was found, without how
        heads, rows = [*heads[:2], heads[5]], [[*row[:2], row[5]] for row in rows]
    return show_table(heads, rows, right=["effect size", "p", "adjusted p"], title=title, long=True)


def _plain(number: float) -> str:
    if 1e3 <= abs(number) < 1e15:  # 1983 may be a year
        return f"{number:.0f}" if abs(number) < 1e4 else f"{number:,.0f}"
    return f"{number:.3g}"


def _moment(seconds: float) -> str:
    if isnan(seconds):
        return "–"
    found = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    return f"{found:%H:%M}" if 0 <= seconds < 86_400 else f"{found:%Y-%m-%d}"


def _days(seconds: float) -> str:
    return f"{_plain(seconds / 86_400)} days"


def _size(finding: Any) -> str:
    return f"{next(iter(finding.sizes), '')} {finding.size:.2f}"


def _before_after(finding: Any, dated: bool) -> str:
    """Return what moved, shares as percentages, numbers as they are, seconds as dates and days."""
    numeric = any(what == "mean" for what, _, _ in finding.comparison) and not finding.values
    parts = []
    for what, before, after in finding.comparison:
        as_share = not numeric or what == "missing"
        of_number = (_moment if what == "mean" else _days) if dated else _plain
        sides = map("{:.1%}".format if as_share else of_number, (before, after))
        parts.append(f"{cell(what) or repr('')} {' → '.join(sides)}")
    return ", ".join(parts)


def studio(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="File to open, or folder whose files to list.")
    ] = Path(),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Open a local web page to explore a table, compare methods and download results."""
    if not path.exists():
        raise ValueError(f"file or folder not found: {str(path)!r}")
    from tabweave.apps.studio import serve
    from tabweave.apps.studio.files import suffix_of

    if path.is_file():
        suffix_of(path.name)

    with suppress(KeyboardInterrupt):  # the way to end it
        serve(path, host=host, port=port, open_browser=browser)
