"""The raw arena: our defaults beside peers on tables with gaps, names, strings and dates.

    python benchmarks/raw.py             # measure what is not in the cache yet, write raw.md
    python benchmarks/raw.py --report    # write raw.md from known cells
    python benchmarks/raw.py --again --method Weave OutlierCells Imputer

Tables come from packages of the index, which are never committed; a missing one is named with the
line that installs it. Halves are fixed by hashes (``_raw_sets.py``): defaults are chosen on the
choosing half, claims are about the reporting half. Tasks: the ten nearest rows (share of the row's
class), as many clusters as classes, odd cells planted in 5 % of the rows, 10 % of the cells hidden
and filled, duplicates of people with typing errors. A cell that takes longer than its limit, or
fails, is a result. Interrupt it at any time: what was measured is kept.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from _cells import THREADS, Cells, Key, measure_cells

ROWS = 1000
FILL_ROWS = 400  # of each table in the task of fills: forests are slow
LIMIT = 120  # seconds a cell may take; beyond, it failed
PLANTED_ROWS = 0.05  # of the rows of a table get an odd cell
HIDDEN_CELLS = 0.1
MISSING = {"people, 0 %": 0.0, "people, 15 %": 0.15, "people, 35 %": 0.35}
FEBRL = {"febrl1": 1, "febrl3": 3}
Scores = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", nargs="+", choices=list(PROTOCOLS), help="only these tasks")
    parser.add_argument("--table", nargs="+", help="only these tables")
    parser.add_argument("--method", nargs="+", help="only these methods")
    parser.add_argument("--half", choices=("choosing", "reporting", "all"), default="all")
    parser.add_argument("--workers", type=int, default=1, help="processes, a thread each")
    parser.add_argument("--again", action="store_true", help="measure what is known once more")
    parser.add_argument("--report", action="store_true", help="write the report from known cells")
    parser.add_argument("--no-report", action="store_true", help="measure only")
    parser.add_argument("--cache", default="raw", help="name of the cache file")
    options = parser.parse_args()
    os.environ.update(dict.fromkeys(THREADS, "1"))
    if not options.report:
        measure(options)
    if not options.no_report:
        import _raw_report

        _raw_report.write(Cells(options.cache))


# -- measuring ------------------------------------------------------------------------------------


def measure(options: Any) -> None:
    from _raw_sets import check_packages

    check_packages()
    measure_cells(options.cache, plan(options), run, options, LIMIT)


def plan(options: Any) -> list[Key]:
    """Return all cells asked for, task by task."""
    from _raw_sets import TABLES, half

    tables = [name for name in TABLES if options.half in ("all", half(name))]
    names = {"duplicates": [*MISSING, *FEBRL]}
    return [
        (task, name, method)
        for task in options.task or PROTOCOLS
        for name in names.get(task, tables)
        if name in (options.table or [name])
        for method in methods_of(task)
        if method in (options.method or [method])
    ]


def methods_of(task: str) -> dict[str, Callable[..., Any]]:
    """Return the methods of a task."""
    import _raw_methods as methods

    if task.startswith("odd"):
        return methods.ODD
    return {"clusters": methods.CLUSTERS, "fills": methods.FILLS}.get(task, methods.DISTANCES)


def run(key: Key) -> Scores:
    task, name, method = key
    scores = PROTOCOLS[task](name, methods_of(task)[method])
    return {what: float(score) for what, score in scores.items()}


# -- tasks ----------------------------------------------------------------------------------------


def neighbors(name: str, distances: Callable[..., np.ndarray]) -> Scores:
    """Precision of the ten nearest rows for a class that the method has not seen."""
    from _raw_sets import read
    from tabweave.evaluate import precision_at_k

    table = read(name, ROWS)
    return {"precision": 100 * precision_at_k(distances(table.X.copy()), table.y, k=10)}


def clusters(name: str, cluster: Callable[..., np.ndarray]) -> Scores:
    """As many clusters as classes, beside the classes."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    from _raw_sets import read

    table = read(name, ROWS)
    labels = cluster(table.X.copy(), len(set(table.y)))
    return {
        "ARI": 100 * adjusted_rand_score(table.y, labels),
        "NMI": 100 * normalized_mutual_info_score(table.y, labels),
    }


def odd(kind: str) -> Callable[..., Scores]:
    """Return the task of finding rows with one kind of odd cells."""

    def task(name: str, row_scores: Callable[..., np.ndarray]) -> Scores:
        from sklearn.metrics import roc_auc_score

        from _raw_sets import read

        broken, rows = planted(read(name, ROWS).X, kind)
        return {"AUC": roc_auc_score(rows, row_scores(broken))} if rows.any() else {"skipped": 1}

    return task


def planted(frame: pd.DataFrame, kind: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with an odd cell in 5 % of its rows, and which rows have one.

    ×10: a number that is not 0, times ten. Shifted: a number or a date, four deviations up or down.
    Swapped: a cell changes places with another of its column that differs, in columns whose values
    repeat.
    """
    from _raw_methods import typed

    rng = np.random.default_rng(0)
    table, out = typed(frame), frame.copy()
    numbers = [c for c in table if table[c].dtype == float and table[c].nunique() > 2]
    repeating = [c for c in table if 1 < table[c].nunique() < 0.3 * table[c].notna().sum()]
    columns = repeating if kind == "swapped" else numbers
    if kind == "×10":
        columns = [c for c in numbers if pd.api.types.is_numeric_dtype(frame[c])]
    rows = np.zeros(len(frame), bool)
    cells = {c: frame[c].to_numpy(dtype=object).copy() for c in columns}
    for row in rng.permutation(len(frame)) if columns else ():
        column = columns[rng.integers(len(columns))]
        if rows.sum() < PLANTED_ROWS * len(frame) and not rows[row]:
            changed = PLANT[kind](cells[column], table[column], row, rng)
            rows[changed] = True
    for c in columns:
        as_before = pd.api.types.is_numeric_dtype(frame[c]) and frame[c].dtype != bool
        out[c] = pd.Series(cells[c], index=frame.index, dtype=float if as_before else object)
    return out, rows


def times_ten(cells: np.ndarray, values: pd.Series, row: int, rng: Any) -> list[int]:
    if pd.isna(cells[row]) or cells[row] == 0:
        return []
    cells[row] = cells[row] * 10
    return [row]


def shifted(cells: np.ndarray, values: pd.Series, row: int, rng: Any) -> list[int]:
    if pd.isna(cells[row]):
        return []
    moved = values[row] + 4 * values.std(ddof=0) * rng.choice([-1, 1])
    if isinstance(cells[row], (int, float, np.number)):
        cells[row] = moved
        return [row]
    try:
        cells[row] = (pd.Timestamp(0) + pd.Timedelta(days=moved)).strftime("%Y-%m-%d")
    except (ValueError, OverflowError):  # a date that cannot be written
        return []
    return [row]


def swapped(cells: np.ndarray, values: pd.Series, row: int, rng: Any) -> list[int]:
    differ = np.flatnonzero((values != values[row]) & values.notna())
    if pd.isna(cells[row]) or not len(differ):
        return []
    other = rng.choice(differ)
    cells[row], cells[other] = cells[other], cells[row]
    return [row, other]


PLANT: dict[str, Callable[..., list[int]]] = {
    "×10": times_ten,
    "shifted": shifted,
    "swapped": swapped,
}


def fills(name: str, fill: Callable[[pd.DataFrame], pd.DataFrame]) -> Scores:
    """Errors of hidden cells, the mean over columns, strings that hardly repeat left out.

    Categories: the share that is wrong. Numbers and dates: the mean distance from the truth over
    that of the median, at most 2. A cell that stays empty is wrong, or at 2.
    """
    from _raw_methods import days, hardly_repeats, typed
    from _raw_sets import read

    frame = read(name, FILL_ROWS).X
    truth = typed(frame)
    hidden = np.random.default_rng(0).random(frame.shape) < HIDDEN_CELLS
    hidden &= truth.notna().to_numpy()
    filled = fill(frame.mask(hidden))
    errors: dict[str, list[float]] = {"categories": [], "numbers": [], "dates": []}
    for j, c in enumerate(truth):
        rows, seen = hidden[:, j], truth[c][~hidden[:, j]].dropna()
        if rows.any() and seen.nunique() > 1 and not hardly_repeats(truth[c]):
            kind = "categories" if truth[c].dtype != float else "numbers"
            kind = "dates" if days(frame[c]) is not None else kind
            errors[kind].append(column_error(truth[c][rows], filled[c][rows], seen))
    return {kind: np.mean(found) for kind, found in errors.items() if found}


def column_error(truth: pd.Series, guess: pd.Series, seen: pd.Series) -> float:
    """Return the error of a column's fills."""
    if truth.dtype != float:
        return float(np.mean(truth.to_numpy() != guess.astype(object).to_numpy()))
    apart = (pd.to_numeric(guess, errors="coerce") - truth).abs().fillna(np.inf)
    typical = (truth - seen.median()).abs().mean()
    return min(float(apart.mean() / typical), 2.0) if typical > 0 else float((apart > 0).mean())


def duplicates(name: str, distances: Callable[..., np.ndarray]) -> Scores:
    """Return the best F of a threshold on the distances of all pairs."""
    from _raw_sets import febrl, people

    frame, pairs = people(MISSING[name]) if name in MISSING else febrl(FEBRL[name])
    D = distances(frame)
    one, other = np.triu_indices(len(frame), 1)
    apart = D[one, other]
    truth = np.zeros(len(frame) ** 2, bool)
    truth[[a * len(frame) + b for a, b in pairs]] = True
    return {"F": best_f(apart, truth[one * len(frame) + other])}


def best_f(apart: np.ndarray, same: np.ndarray) -> float:
    """Return the best F over thresholds; pairs at one distance are found together."""
    reach = np.partition(apart, 10 * same.sum())[10 * same.sum()]
    near = apart <= reach  # thresholds beyond find ten pairs for every true one
    order = np.argsort(apart[near])
    hits = np.cumsum(same[near][order])
    last = np.append(np.diff(apart[near][order]) > 0, True)
    found = np.arange(1, len(order) + 1)
    return float((2 * hits / (found + same.sum()))[last].max())


PROTOCOLS: dict[str, Callable[..., Scores]] = {
    "neighbors": neighbors,
    "clusters": clusters,
    "odd ×10": odd("×10"),
    "odd shifted": odd("shifted"),
    "odd swapped": odd("swapped"),
    "duplicates": duplicates,
    "fills": fills,
}


if __name__ == "__main__":
    main()
