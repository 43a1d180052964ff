"""How GBC's rule of fusion was chosen: variants on drawn tables that its report does not use.

Boosters are trained once for each seed; every rule then chooses weights by the same held-out scores
and is judged by the same test rows, without a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np

from _cells import Cells
from _gbc_data import sources
from _gbc_graphs import FAMILIES, LABELS, draw
from _gbc_runs import ROUNDS, TREES, split
from _report import Report
from tabweave.sources.gbc import gbc
from tabweave.sources.gbc.gbc import with_joined
from tabweave.sources.gbc.prediction import (
    ClassSmoother,
    Fusion,
    _scaled,
    beliefs,
    better,
    informative,
    mean_losses,
    row_losses,
)
from tabweave.sources.gbc.team import Binned, Logistic, Team
from tabweave.sources.gbc.training import folds_of

FIRST = 100  # seeds from here on choose; the report of members has those from 0
NOISE, ALONE = ", one table of noise", "the first table alone"
TRIED = (*FAMILIES, *(family + NOISE for family in FAMILIES))
LOSS, CLASSES = Logistic(), ClassSmoother()


class Drawn(NamedTuple):
    """Scores of held-out and of test rows by every member; the last member has all columns."""

    start: np.ndarray
    targets: np.ndarray
    held: np.ndarray
    test: np.ndarray
    right: np.ndarray
    joined: float  # the error of plain LightGBM on joined columns, %

    def judge(self, scores: np.ndarray) -> np.ndarray:
        return CLASSES.losses(CLASSES.plain(scores), self.targets)

    def scaled(self, weights: np.ndarray) -> tuple[Fusion, np.ndarray]:
        return _scaled(self.judge, self.start, self.held, weights)

    def error(self, fusion: Fusion) -> float:
        found = fusion(self.start, self.test).argmax(axis=1)
        return float(100 * (found != self.right).mean())


def drawn(family: str, seed: int) -> Drawn:
    """Train members on folds and on all labels of a drawn task, as GBC does."""
    task = draw(family.removesuffix(NOISE), "random", 0.0, seed)._replace(graphs={})
    if family.endswith(NOISE):  # rows of the second table in another order say nothing
        order = np.random.default_rng(seed).permutation(len(task.y))
        task = task._replace(tables={"t0": task.tables["t0"], "t1": task.tables["t1"][order]})
    train, test = split(task, LABELS, seed)
    members = with_joined(sources(task, np.ones((len(task.y), len(task.tables)), bool)))
    codes = np.unique(task.y, return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    seed_of_trees = int(rng.integers(2**31))
    binned = Binned(members, {**gbc.PARAMS, **TREES, **gbc.FIXED, "seed": seed_of_trees}, 4)
    targets, folds = np.eye(4)[codes[train]], folds_of(codes[train], len(train), 3, rng)
    held = np.empty((len(binned.rows), *targets.shape))
    for k in range(3):
        held[:, folds == k] = watched(binned, targets, train, folds != k, train[folds == k])
    own = watched(binned, targets, train, np.ones(len(train), bool), test)
    X = np.hstack(list(task.tables.values()))
    trees = {**TREES, "verbosity": -1, "seed": seed, "objective": "multiclass", "num_class": 4}
    model = lgb.train(trees, lgb.Dataset(X[train], codes[train]), ROUNDS)
    joined = 100 * np.mean(model.predict(X[test]).argmax(axis=1) != codes[test])
    return Drawn(LOSS.start(targets), targets, held, own, codes[test], float(joined))


def watched(
    binned: Binned, targets: np.ndarray, ids: np.ndarray, seen: np.ndarray, asked: np.ndarray
) -> np.ndarray:
    team = Team(binned, LOSS, ids[seen], targets[seen], asked).begin()
    for _ in range(ROUNDS):
        team.step()
    return team.watched_scores()


# -- rules ----------------------------------------------------------------------------------------


def ways(one: Drawn) -> list[np.ndarray]:
    losses = mean_losses(row_losses(LOSS, one.start, one.held, one.targets))
    useful = informative(LOSS, one.start, one.held, one.targets)
    return beliefs(losses, useful, joined=True)


def unless_beaten(first: int) -> Callable[[Drawn], Fusion]:
    """Return the rule that keeps one way, unless another is better by a standard error."""

    def rule(one: Drawn) -> Fusion:
        trials = [one.scaled(weights) for weights in ways(one)]
        kept = trials[first]
        if any(better(found, kept[1]) for _, found in trials):
            kept = min(trials, key=lambda trial: trial[1].mean())
        return kept[0]

    return rule


def least(one: Drawn) -> Fusion:
    return min((one.scaled(w) for w in ways(one)), key=lambda trial: trial[1].mean())[0]


def averaged(errors: float) -> Callable[[Drawn], Fusion]:
    """Return the rule that averages ways within some standard errors of the best one."""

    def rule(one: Drawn) -> Fusion:
        trials = [(w, one.scaled(w)[1]) for w in ways(one)]
        best = min((found for _, found in trials), key=np.mean)
        near = [w for w, found in trials if not better(best, found, errors)]
        return one.scaled(np.mean(near, axis=0))[0]

    return rule


def one_unless_beaten(one: Drawn) -> Fusion:
    """Average within a standard error; but one useful source is believed alone unless beaten."""
    useful = informative(LOSS, one.start, one.held, one.targets)
    return unless_beaten(0)(one) if useful[:-1].sum() == 1 else averaged(1.0)(one)


RULES: dict[str, Callable[[Drawn], Fusion]] = {
    "averaged (a member of its own)": lambda one: Fusion(np.array([0.5, 0.5, 0.0])),
    "smallest held-out loss": least,
    "plain mean of sources unless beaten": unless_beaten(0),
    "half of all columns unless beaten": unless_beaten(4),
    "averaged within one standard error (now)": averaged(1.0),
    "the same, but one useful source alone unless beaten": one_unless_beaten,
    "averaged within two standard errors": averaged(2.0),
}


def run(family: str, seed: int) -> dict[str, Any]:
    one = drawn(family, seed)
    alone = {ALONE: one.error(Fusion(np.array([1.0, 0.0, 0.0])))}
    found = {name: one.error(rule(one)) for name, rule in RULES.items()}
    return {"joined": one.joined} | alone | found


def write_choice(seeds: int) -> None:
    report = Report("GBC: the rule of fusion", f"python benchmarks/sources_gbc.py --choice {seeds}")
    report.line(
        f"Error in %, {seeds} drawn tasks of each family (seeds from {FIRST}; the report of "
        "members has others), half as many where one table is noise (rows of the second table in "
        "another order); no graph, 20 % labels, all rounds. ± is the standard error of the paired "
        "difference from the best of joined, averaged and, where the other is noise, the first "
        "table alone. In brackets: of fewer tasks.\n"
    )
    cells = Cells("gbc-choice")
    found = {
        family: [
            cells.get((family, str(FIRST + i)), lambda a=(family, FIRST + i): run(*a))
            for i in range(seeds // (2 if family.endswith(NOISE) else 1))
        ]
        for family in TRIED
    }
    report.line("| rule | " + " | ".join(f"{f} ({len(r)})" for f, r in found.items()) + " |")
    report.line("| --- |" + " --- |" * len(TRIED))
    for name in ("joined", ALONE, *RULES):
        line = [compared(name, family, runs) for family, runs in found.items()]
        report.line(f"| {name} | " + " | ".join(line) + " |")
    report.finish("sources-gbc-choice.md")


def compared(name: str, family: str, runs: list[dict[str, Any]]) -> str:
    """Return the mean error of a rule, and its difference from the best member."""
    members = ["joined", next(iter(RULES)), *([ALONE] if family.endswith(NOISE) else [])]
    known = [r for r in runs if name in r]
    errors = {m: np.array([r[m] for r in known]) for m in (*members, name)}
    gap = errors[name] - errors[min(members, key=lambda m: errors[m].mean())]
    deviation = gap.std(ddof=1) / np.sqrt(len(gap))
    fewer = "" if len(known) == len(runs) else f" [{len(known)}]"
    return f"{errors[name].mean():.2f} ({gap.mean():+.2f} ± {deviation:.2f}){fewer}"
