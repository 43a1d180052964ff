"""The report of the raw arena: each half apart, with means, medians, wins and losses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import raw
from _cells import Cells
from _raw_sets import HALVES, PACKAGES, TABLES, half

PATH = Path(__file__).parent / "reports" / "raw.md"
TIE = 1e-9


TRIED = """## What was tried, on the choosing half

Ten nearest rows, mean of the 33 tables: 61.1 at first; 61.2 with dependence corrected for chance
at any number of values; 62.1 with one weight for columns that say the same under other names
(`nba_players`: team and abbreviation, 38 to 57; `ev_charging`: 78 to 86; `flights`: 38 to 40).
The power of adjusted information by which such columns are told was chosen there: 16 and 8 are
level (50.2 on the twelve tables that change), 4 is .15 below 8 on all 33. On the choosing halves of
the arena a first version (power 8, sums of dependence not shared) changed 50 of 150 tables of R and
12 of 39 others: .17 and .02 in the mean of all. Its reporting halves were not run. The reporting
half was seen table by table once before, as it was at first; nothing was chosen by it.

The figures below are gains over the version of the day, of 600 rows a table unless said
otherwise, and were not taken:

- All weights alike: .16. Weights by dependence to other powers: within .25 either way. Sharing a
  weight by symmetric uncertainty, which is below 1 for copies of many values: .24.
- Dates at half their weight: .4 on the 16 tables that have some (all rows), 10 better, 3 worse; the
  only ground for it is the score.
- Columns of strings at twice or three times their weight: .1. Numbers at .3, .5, .7, 1.5 times:
  -.7, -.4, -.2, .1. Columns of at most twelve values at half or twice: -.2, -.3.
- The root of each column's squared distance: .5 on top of one weight for copies (both: 18
  better, 9 worse). It needs other tables and curves, and stays to be tried.
- Missing as a value in columns whose gaps others explain (adjusted information of at least .1, .2,
  .35 or .5): .1 to .2 on 17 tables with gaps (all rows).

Misses: on the reporting half the ten nearest rows are .3 above one-hot and .3 above gower, where a
point was the aim; duplicates of febrl1 and febrl3, which have few gaps, are found better by one-hot
and TF-IDF, and Weave itself found them better at first (febrl1 .998, febrl3 .988): couplings of
names are trusted now, whose values hardly repeat. So couplings count as far as values occur,
c / (c + s). Tried: s = 0 (all alike), 5, 20, 100: febrl1 .991, .996 (5), febrl3 .963, .984, .987,
.988; ten nearest rows of the choosing half 62.1, 62.2, 62.2 (0, 5, 20), and of the choosing half of
the present arena 70.84, 70.81, 70.78. Taken: 5, the pseudo-counts that couplings have anyway.

Since then codes of digits that are text are compared by spelling as other strings are, and text of
digits named as dates is read as dates though a few cells name no day: people with 15 and 35 % of
their cells blanked .968 to .973 and .757 to .762, febrl1 .996 to 1 and febrl3 .984 to .991; no
table of the ten nearest rows changes. The people with 35 % are found as TF-IDF finds them or
better, but short of .85. Tried there, on distances of each column, and on the ten nearest rows of
the choosing half (62.2); only the first was taken:

- Spelling of codes, birthdays among them: .757 to .764; three tables change by .01 to .08.
- A missing cell at .95, .9, .85 of its expected distance (two missing ones at .9, .8, .7): .807,
  .808, .786; ten nearest rows 0, -.01, -.02. It would no longer be the expected distance.
- The same for two missing cells as for one: .810, .830, .842 at .95, .9, .85, and .816 at .7.
- Columns by the information of an agreement, -log of the sum of squared shares, to the power ¼, ½
  and 1: .816, .827, .829; ten nearest rows +.1, +.3, +.5 in the mean, but by one table (`mlb_teams`
  +5, +14, +35; `health_breaches` -4, -8, -15): 15 better and 10 worse, 13 and 14, 12 and 17.
- Within a column, rare values farther from all (by the root of -log f, by it, by its square): .720,
  .647, .531.
- What can be had: log-odds of agreement of each column, as learned from the true pairs, .912.

And for the ten nearest rows alone:

- Columns scaled by the median of their distances in place of the mean: 0; 16 better, 15 worse.
- Distances of a column capped at 1.25 or twice their mean: 0, 0; 17 better and 12 worse, 16 and 7.
- Strings judged by their spelling: what a string's neighbours by spelling tell of other columns,
  itself left out, over the entropy of those. Where that is above 1/20, the column at 1.5, 2, 3
  times its weight: .07, .1, .2 on the 22 tables with such columns, 6 better and 5 worse, 5 and 5, 4
  and 7. Where it is not, at 1/1.5, 1/2, 1/3: -.2, -.5, -.7. No factor is taken, but what follows.

Since these figures, what strings spelled alike tell of other columns counts in the learned weights:
the string itself left out, corrected for chance, without a factor, so that names that tell a group
by a part of them are not weighed as random strings are. On the choosing half three ways were tried,
on the 24 tables with such columns: in the place of what equal strings tell (.07 in the mean, 11
better by more than .05 and 5 worse), the mean of both (.04, 12 and 4), and added to it (.11, 11 and
3), which is taken. The reporting half, seen once, gains nothing: -.04 on 22 tables, 5 better and 7
worse (`airports_state` -1.7, `fast_food` .6, `rick_steves` .4), -.03 in the mean of all 29.
Clusters, which took no part: ARI -.2 on the choosing half and .2 on the reporting one, 15 better
than one-hot and 13 worse where it was 17 and 11 (three tables move by more than 10 either way).
Duplicates stay as they are: 1, .973 and .762 of people, febrl1 1, febrl3 .991. A fit of 100,000
rows with 43,000 strings takes 1.15 s of processor time in place of .93.

What still misleads: many numbers beside two informative strings (`mlb_teams`: 50, TF-IDF 90),
names of which one word matters (`cars`: 71, TF-IDF 91), and gaps that tell the class
(`epa2021`: 39.5 before missing cells stopped agreeing, 36.6 now).
"""


class Measure(NamedTuple):
    """A score of a task, what it is called, and whether more is better."""

    task: str
    score: str
    title: str
    more_is_better: bool = True
    digits: int = 1


MEASURES = (
    Measure("neighbors", "precision", "Ten nearest rows: % of the row's class"),
    Measure("clusters", "NMI", "As many clusters as classes: 100 NMI"),
    Measure("clusters", "ARI", "As many clusters as classes: 100 ARI"),
    Measure("odd ×10", "AUC", "Odd cells, ten times too large: AUC of rows", digits=3),
    Measure("odd shifted", "AUC", "Odd cells, four deviations off: AUC of rows", digits=3),
    Measure("odd swapped", "AUC", "Odd cells, swapped between rows: AUC of rows", digits=3),
    Measure("fills", "categories", "Fills of categories: share wrong", False, 3),
    Measure("fills", "numbers", "Fills of numbers: error over that of the median", False, 3),
    Measure("fills", "dates", "Fills of dates: error over that of the median", False, 3),
)


def write(cells: Cells) -> None:
    """Write the report from known cells."""
    PATH.write_text("\n".join(lines(cells)) + "\n", encoding="utf-8")
    print(f"written to benchmarks/reports/{PATH.name}")


def lines(cells: Cells) -> Iterator[str]:
    """Yield the lines of the report."""
    sizes = {name: sum(half(other) == name for other in TABLES) for name in HALVES}
    yield "# Raw tables\n"
    yield "    " + f"pip install --no-deps --target FOLDER {' '.join(PACKAGES.values())} skrub"
    yield "    PYTHONPATH=FOLDER python benchmarks/raw.py\n"
    yield (
        "Weave was measured with this commit, Imputer at 6c3594da, OutlierCells on the reporting "
        "half only, in a draft of 578022f1 that differs in the lower tail of skewed numbers (at "
        "98d52e2c, its mean was .543 on all 29 tables; those that took too long are below). "
        "The machine was busy: seconds mean little.\n"
    )
    yield (
        f"{len(TABLES)} tables of {len(PACKAGES) - 1} packages of the index as they come: with "
        "gaps, names, strings and dates. Only columns that give the target away are left out "
        f"(`_raw_sets.py` lists them). {sizes['choosing']} tables choose, {sizes['reporting']} "
        "report, by hashes of their names; list and rule were written down before the first score. "
        f"At most {raw.ROWS} rows a table ({raw.FILL_ROWS} for fills), drawn by hash. Peers see "
        "dates as days. one-hot: missing is a category, missing numbers are the mean and flagged. "
        "gower leaves gaps out. TF-IDF: triples of letters of the joined row. Wins–losses are "
        "of the first method against the one of the line. A table counts where all methods of the "
        "task have a score.\n"
    )
    for title, which in (("Reporting half", "reporting"), ("Choosing half", "choosing")):
        yield f"## {title}\n"
        for measure in MEASURES:
            yield from summary(cells, measure, which)
    yield from of_duplicates(cells)
    yield from failures(cells)
    yield TRIED
    yield "## Every table\n"
    for measure in MEASURES:
        yield from every_table(cells, measure)


def board(cells: Cells, measure: Measure, which: str) -> tuple[list[str], list[str], np.ndarray]:
    """Return tables, methods and scores; tables without a score of each method are left out."""
    methods = list(raw.methods_of(measure.task))
    tables = [name for name in TABLES if half(name) == which]
    scores = [
        [
            cells.known.get((measure.task, name, method), {}).get(measure.score, np.nan)
            for method in methods
        ]
        for name in tables
    ]
    table = np.array(scores, dtype=float)
    complete = ~np.isnan(table).any(axis=1)
    return [n for n, ok in zip(tables, complete, strict=True) if ok], methods, table[complete]


def summary(cells: Cells, measure: Measure, which: str) -> Iterator[str]:
    """Yield a table of means, medians, wins and losses."""
    tables, methods, scores = board(cells, measure, which)
    if not tables:
        return
    yield f"### {measure.title} ({len(tables)} tables)\n"
    yield "| method | mean | median | wins–losses of " + methods[0] + " |"
    yield "|---|---|---|---|"
    better = 1 if measure.more_is_better else -1
    for j, method in enumerate(methods):
        gaps = better * (scores[:, 0] - scores[:, j])
        counts = f"{(gaps > TIE).sum()}–{(gaps < -TIE).sum()}" if j else ""
        mean, median = scores[:, j].mean(), np.median(scores[:, j])
        yield f"| {method} | {mean:.{measure.digits}f} | {median:.{measure.digits}f} | {counts} |"
    yield ""


def of_duplicates(cells: Cells) -> Iterator[str]:
    names, methods = [*raw.MISSING, *raw.FEBRL], list(raw.methods_of("duplicates"))
    yield "## Duplicates\n"
    yield (
        "2,500 people of febrl4 and copies of 300 of them with typing errors in one to three "
        "cells, then 0, 15 or 35 % of all cells blanked; febrl1 and febrl3 as they come. The best "
        "F of a threshold on the distances of all pairs.\n"
    )
    yield f"| method | {' | '.join(names)} |"
    yield "|---|" + "---|" * len(names)
    for method in methods:
        found = [cells.known.get(("duplicates", name, method), {}).get("F") for name in names]
        shown = ["–" if score is None else f"{score:.3f}" for score in found]
        yield f"| {method} | {' | '.join(shown)} |"
    yield ""


def failures(cells: Cells) -> Iterator[str]:
    failed = {key: scores["error"] for key, scores in cells.known.items() if "error" in scores}
    if failed:
        yield "## What failed\n"
        for (task, name, method), error in sorted(failed.items()):
            yield f"- {method} on {name} ({task}): {error}"
        yield ""


def every_table(cells: Cells, measure: Measure) -> Iterator[str]:
    """Yield the scores of every table."""
    methods = list(raw.methods_of(measure.task))
    if not any(board(cells, measure, which)[0] for which in HALVES):
        return
    yield f"### {measure.title}\n"
    yield f"| table | half | {' | '.join(methods)} |"
    yield "|---|---|" + "---|" * len(methods)
    for which in reversed(HALVES):
        tables, _, scores = board(cells, measure, which)
        for name, row in zip(tables, scores, strict=True):
            shown = " | ".join(f"{score:.{measure.digits}f}" for score in row)
            yield f"| {name} | {which} | {shown} |"
    yield ""
