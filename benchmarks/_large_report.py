"""The report of the arena of large tables, written from known cells only."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd

from _cells import Cells
from _large_methods import METHODS
from _large_sets import HALVES, PACKAGES, TABLES, half
from _report import Report

BEFORE = "tabweave before"  # Its cells are those of our default at 2780a878, without boosting.
MEASURES = {"AUC": 4, "R2": 4, "accuracy": 4, "F": 4, "log-loss": 4}  # and their digits
COSTS = {"fit seconds": 1, "predict seconds": 1, "fit MB": 0, "predict MB": 0}


def write(cache: str, publish: bool) -> None:
    cells = Cells(cache)
    if publish:
        cells.publish()
    frame = as_frame(cells)
    report = Report("Large tables", "python benchmarks/large.py --report")
    report.line(f"\n{INTRODUCTION}")
    for name in reversed(HALVES):
        report.section(f"{name.capitalize()} half")
        of_half = frame[frame.half == name]
        for setting in sorted(of_half.setting.unique(), key=_order):
            write_setting(report, of_half[of_half.setting == setting], setting)
    report.line(f"\n{TRIED}")
    write_failures(report, frame)
    write_tables(report)
    report.finish("large.md" if cache == "large" else None)


def as_frame(cells: Cells) -> pd.DataFrame:
    """Return a line for each cell: table, method, setting, half, and its scores."""
    lines = []
    for (name, method, rows, search), scores in cells.known.items():
        drawn = "" if search == "defaults" else f", {search} of random search"
        size = "all rows" if rows == "rows 0" else f"{int(rows.split()[1]):,} rows"
        shown = method if search == "defaults" else f"{method}, tuned"
        line = {"table": name, "method": shown, "setting": size, "half": half(name)}
        lines.append(line | {"drawn": drawn} | scores)
    return pd.DataFrame(lines).reindex(
        columns=[*"table method setting half drawn error columns train".split(), *MEASURES, *COSTS]
    )


def _order(setting: str) -> float:
    return np.inf if setting.startswith("all") else int(setting.split()[0].replace(",", ""))


# -- one half and size -----------------------------------------------------------------------------


def write_setting(report: Report, cells: pd.DataFrame, setting: str) -> None:
    """Write scores by table, and a summary over the tables that all methods of a line have."""
    methods = [m for m in _methods(cells) if cells[cells.method == m].error.isna().any()]
    report.line(f"\n### {setting.capitalize()}\n")
    report.line("AUC, or R² of numbers (in italics); bold: the best.\n")
    report.line(f"| table | rows × columns | {' | '.join(methods)} |")
    report.line(f"|---|---|{'---|' * len(methods)}")
    shown = cells.assign(score=cells.AUC.fillna(cells.R2))
    for name in [name for name in TABLES if name in set(cells.table)]:
        report.line(_line_of(shown[shown.table == name], name, methods))
    write_summary(report, shown, methods)


def _methods(cells: pd.DataFrame) -> list[str]:
    order = [name + suffix for name in (BEFORE, *METHODS) for suffix in ("", ", tuned")]
    there = set(cells.method)
    return [*[m for m in order if m in there], *sorted(there - set(order))]


def _line_of(cells: pd.DataFrame, name: str, methods: Sequence[str]) -> str:
    scores = cells.set_index("method").score
    best = scores.max()
    texts = []
    for method in methods:
        value = scores.get(method, np.nan)
        text = "–" if np.isnan(value) else f"{value:.4f}"
        text = f"*{text}*" if TABLES[name].is_number and text != "–" else text
        texts.append(f"**{text}**" if value == best else text)
    first = cells[cells.train.notna()].iloc[:1]
    sizes = first[["train", "columns"]].astype(int).to_numpy().tolist()
    size = "".join(f"{rows:,} × {columns}" for rows, columns in sizes)
    return f"| {name} | {size} | {' | '.join(texts)} |"


def write_summary(report: Report, cells: pd.DataFrame, methods: Sequence[str]) -> None:
    """Write means over the tables that all of the methods have; methods with few are left out."""
    counts = cells[cells.score.notna()].groupby("method").table.nunique()
    most = counts.reindex(list(methods)).max()
    full = [m for m in methods if counts.get(m, 0) >= most / 2]
    of_full = cells[cells.method.isin(full)]
    scores = of_full.pivot_table(index="table", columns="method", values="score").dropna()
    if scores.empty:
        return
    common = cells[cells.table.isin(scores.index) & cells.method.isin(full)]
    n_numbers = sum(TABLES[name].is_number for name in scores.index)
    report.line(
        f"\nMeans over the {len(scores)} tables ({n_numbers} of numbers) that all of these have; "
        "an R² below 0 counts as 0; seconds of the processor and MB are medians.\n"
    )
    ranks = scores.rank(axis=1, ascending=False).mean()
    rated = _ratings(common)
    heads = ["average rank", "Elo", "improvability", *MEASURES, *COSTS]
    report.line(f"| method | {' | '.join(heads)} | wins–losses against LightGBM |")
    report.line(f"|---|{'---|' * (len(heads) + 1)}")
    for method in ranks.sort_values().index:
        of_method = common[common.method == method]
        texts = [f"{ranks[method]:.2f}"]
        texts += [_shown(rated, method, column) for column in ("elo", "improvability")]
        texts += [
            f"{of_method[name].clip(lower=0).mean():.{digits}f}"
            for name, digits in MEASURES.items()
        ]
        texts += [f"{of_method[c].median():,.{digits}f}" for c, digits in COSTS.items()]
        texts.append(_wins(scores, method))
        report.line(f"| {method} | {' | '.join(texts)} |")


def _wins(scores: pd.DataFrame, method: str) -> str:
    if method == "LightGBM" or "LightGBM" not in scores:
        return ""
    more = scores[method] - scores["LightGBM"]
    return f"{int((more > 0).sum())}–{int((more < 0).sum())}"


def _ratings(cells: pd.DataFrame) -> pd.DataFrame:
    """Return Elo and improvability by bencheval; nothing without it."""
    try:
        from bencheval.evaluator import BenchmarkEvaluator
    except ImportError:
        return pd.DataFrame()
    if cells.method.nunique() < 2:
        return pd.DataFrame()
    data = cells[["table", "method"]].assign(metric_error=1 - cells.score)
    evaluator = BenchmarkEvaluator(task_col="table", columns_to_agg_extra=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluator.leaderboard(data.reset_index(drop=True), include_winrate=False)


def _shown(rated: pd.DataFrame, method: str, column: str) -> str:
    if column not in rated or method not in rated.index:
        return ""
    value = float(rated.loc[method, column])
    return f"{value:.0f}" if column == "elo" else f"{100 * value:.1f} %"


# -- the rest --------------------------------------------------------------------------------------


def write_failures(report: Report, cells: pd.DataFrame) -> None:
    report.section("Failures, as the packages report them")
    failed = cells[cells.error.notna()]
    for line in failed.itertuples():
        report.line(f"- {line.table}, {line.method}, {line.setting}: {line.error}")
    if failed.empty:
        report.line("None.")


def write_tables(report: Report) -> None:
    report.section("The tables")
    report.line("| table | half | package | target | licence of the data |\n|---|---|---|---|---|")
    for name, origin in TABLES.items():
        package = PACKAGES.get(origin.package, "the data beside the checkout")
        target = origin.target or "its class"
        report.line(f"| {name} | {half(name)} | {package} | {target} | {origin.licence} |")


INTRODUCTION = """\
Tables of 10,000 rows and more, as they lie inside packages of the index, with gaps, names, dates
and strings; only columns that give the target away are left out (`_large_sets.py`). A fifth of the
rows, at most 10,000, is the test, one split with seed 0. A table is drawn by hash to as many rows
as a heading says, test included. The halves are fixed by a rule that was written down before the
first score; defaults may be chosen on the choosing half only. Peers see dates as days and strings
as declared categories; tabweave sees the table as it comes. Every cell has a process of its own
with one thread; MB are what fit and predict add to it at their peaks. The machine was shared by
many processes, so seconds are those of the processor, after a warm-up. Error of Elo and
improvability (bencheval): 1 − AUC, or 1 − R²."""

TRIED = """\
## What was tried, on choosing tables

**Lists in text read as sets** (`Fire; Water`), `WeaveClassifier` and `WeaveRegressor` before
boosting, mean of three folds, sets against whole texts: health breaches of `_raw_sets.py` (types
and places of breaches) macro F .7729, .7720; weather of mosaicData (events) .9847, .9850;
wine_prices (raters) R² .7325, .7388. They are level; sets are taken since their elements can be
asked for and explained. Of movielens, which reports: R² .1922, .1802.

**Words of strings**, `BoostedWeave` alone (5d491997), test AUC or R² of 8,000 training rows:
us_accidents_text .7580 with whole descriptions as values, .8156 with those of two rows or more,
.8498 with the 64 most frequent words beside all values, .8848 beside values of two rows or more,
.9075 with words alone (with 256 of them .9034); wine_prices .7332, with words alone .7801;
vivino_prices .8267, with words beside all values .8332, and .8267 with words for sentences only (of
five words on average). Taken: 64 words of any column that is compared by spelling, beside its
values of two rows or more.

## What was not run

100,000 rows and all rows; random search (`--draws`), EBM, RealMLP, forests and neighbours but for
two trial tables; CatBoost beyond the tables that show it. The machine had two cores for some thirty
processes. The cells of tabweave are those of 5d491997, of "tabweave before" 2780a878.
"""
