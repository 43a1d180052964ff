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
from _gbc_data import Task, sources
from _gbc_graphs import FAMILIES, LABELS, draw
from _gbc_runs import ROUNDS, TREES, split
from _report import Report
from tabweave.sources import gbc
from tabweave.sources.gbc import folds_of, with_joined
from tabweave.sources.team import (
    SHRUNKEN,
    Binned,
    ClassSmoother,
    Fusion,
    Logistic,
    Team,
    _scaled,
    beliefs,
    better,
    informative,
    mean_losses,
    row_losses,
)

FIRST = 300  # seeds from here on choose; the report of members has those from 0
NOISE, ONE = ", one table of noise", "one table decides"
TRIED = (ONE, *FAMILIES, *(family + NOISE for family in FAMILIES))
LOSS, CLASSES = Logistic(), ClassSmoother()
SIZES = np.array([0.40, 0.30, 0.14, 0.10, 0.04, 0.02])  # of the classes where one table decides


def one_table(seed: int, n: int = 800, width: int = 80) -> Task:
    """Draw six classes of unequal size, a sparse table of them, and the same with noise on it."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(6, n, p=SIZES)
    odds = np.full((6, width), np.log(0.03 / 0.97)) + rng.normal(0, 0.5, width)
    for own in odds:
        own[rng.choice(width, 6, replace=False)] += rng.uniform(2.5, 5.0, 6)
    table = (rng.random((n, width)) < 1 / (1 + np.exp(-odds[kind]))) * 1.0
    y = np.where(rng.random(n) < 0.1, rng.choice(6, n, p=SIZES), kind)
    noisy = table + rng.normal(size=table.shape)
    return Task({"t0": table, "t1": noisy}, {}, y.astype(str), ())


class Drawn(NamedTuple):
    """Scores by every member, the last of which has all columns: of held-out and of test rows."""

    start: np.ndarray
    targets: np.ndarray
    held: np.ndarray
    test: np.ndarray
    right: np.ndarray

    def judge(self, scores: np.ndarray) -> np.ndarray:
        return CLASSES.losses(CLASSES.plain(scores), self.targets)

    def scaled(self, weights: np.ndarray) -> tuple[Fusion, np.ndarray]:
        return _scaled(self.judge, self.start, self.held, weights)

    def error(self, fusion: Fusion) -> float:
        found = fusion(self.start, self.test).argmax(axis=1)
        return float(100 * (found != self.right).mean())


class Before(Drawn):
    """The same, where a score that is too sure of itself is only drawn towards the constant."""

    def scaled(self, weights: np.ndarray) -> tuple[Fusion, np.ndarray]:
        trials = [Fusion(weights, s) for s in (1.0, 1.5, 2.0, 3.0) if s <= (weights > 0).sum()]
        trials += [Fusion(weights, s) for s in SHRUNKEN]
        losses = [self.judge(trial(self.start, self.held)) for trial in trials]
        at = int(np.argmin([values.mean() for values in losses]))
        return trials[at], losses[at]


def task_of(family: str, seed: int) -> Task:
    if family == ONE:
        return one_table(seed)
    task = draw(family.removesuffix(NOISE), "random", 0.0, seed)._replace(graphs={})
    if family.endswith(NOISE):  # rows of the second table in another order say nothing
        order = np.random.default_rng(seed).permutation(len(task.y))
        task = task._replace(tables={"t0": task.tables["t0"], "t1": task.tables["t1"][order]})
    return task


def run(family: str, seed: int) -> dict[str, Any]:
    """Train members on folds (dealt twice) and on all labels, as GBC does; try every rule."""
    task = task_of(family, seed)
    train, test = split(task, 0.16 if family == ONE else LABELS, seed)
    whole = sources(task, np.ones((len(task.y), len(task.tables)), bool))
    members = with_joined(whole, whole)
    codes = np.unique(task.y, return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    trees = {**gbc.PARAMS, **TREES, **gbc.FIXED, "seed": int(rng.integers(2**31))}
    binned = Binned(members, trees, codes.max() + 1)
    targets = np.eye(codes.max() + 1)[codes[train]]
    held, by_folds = zip(
        *(of_folds(binned, targets, train, test, rng) for _ in (0, 1)), strict=True
    )
    full = watched(binned, targets, train, np.ones(len(train), bool), test)
    one = Drawn(LOSS.start(targets), targets, held[0], full, codes[test])
    committee = one._replace(test=(full + 3 * by_folds[0]) / 4)
    twice = {"held": np.hstack(held), "targets": np.vstack([targets, targets])}
    tested = {
        "": one,
        AND_FOLDS: committee,
        "split": one._replace(**twice),
        "split and folds": one._replace(**twice, test=(full + 3 * sum(by_folds)) / 7),
    }
    out = {"joined": plain_error(task, train, test, codes, seed)}
    out |= {name: one.error(Fusion(np.array(weights))) for name, weights in MEMBERS.items()}
    for name, (kind, data, rule) in RULES.items():
        out[name] = tested[data].error(rule(kind(*tested[data])))
    return out


def of_folds(
    binned: Binned, targets: np.ndarray, train: np.ndarray, test: np.ndarray, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores of held-out rows, and what the folds' boosters say of test rows on average."""
    folds = folds_of(targets.argmax(axis=1), len(train), 3, rng)
    held, said = np.empty((len(binned.rows), *targets.shape)), []
    for k in range(3):
        out = folds == k
        scores = watched(binned, targets, train, ~out, np.concatenate([train[out], test]))
        held[:, out] = scores[:, : out.sum()]
        said.append(scores[:, out.sum() :])
    return held, np.mean(said, axis=0)


def watched(
    binned: Binned, targets: np.ndarray, ids: np.ndarray, seen: np.ndarray, asked: np.ndarray
) -> np.ndarray:
    team = Team(binned, LOSS, ids[seen], targets[seen], asked).begin()
    for _ in range(ROUNDS):
        team.step()
    return team.watched_scores()


def plain_error(
    task: Task, train: np.ndarray, test: np.ndarray, codes: np.ndarray, seed: int
) -> float:
    """Return the error (%) of plain LightGBM on joined columns."""
    X = np.hstack(list(task.tables.values()))
    trees = {**TREES, "verbosity": -1, "seed": seed, "objective": "multiclass"}
    trees["num_class"] = codes.max() + 1
    model = lgb.train(trees, lgb.Dataset(X[train], codes[train]), ROUNDS)
    return float(100 * np.mean(model.predict(X[test]).argmax(axis=1) != codes[test]))


# -- rules ----------------------------------------------------------------------------------------


def tried(one: Drawn) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return ways to believe, and the held-out losses of each; the plain mean if none is useful."""
    losses = mean_losses(row_losses(LOSS, one.start, one.held, one.targets))
    useful = informative(LOSS, one.start, one.held, one.targets)
    ways = beliefs(losses, useful, joined=True) or [np.array([0.5, 0.5, 0.0])]
    return [(weights, one.scaled(weights)[1]) for weights in ways]


def least(one: Drawn) -> Fusion:
    return one.scaled(min(tried(one), key=lambda trial: trial[1].mean())[0])[0]


def averaged(errors: float) -> Callable[[Drawn], Fusion]:
    """Return the rule that averages ways within some standard errors of the best one."""

    def rule(one: Drawn) -> Fusion:
        trials = tried(one)
        best = min((found for _, found in trials), key=np.mean)
        near = [w for w, found in trials if not better(best, found, errors)]
        return one.scaled(np.mean(near, axis=0))[0]

    return rule


def by_evidence(one: Drawn) -> Fusion:
    """Average ways in proportion to the likelihood of held-out rows."""
    trials = tried(one)
    total = np.array([found.sum() for _, found in trials])
    shares = np.exp(total.min() - total)
    return one.scaled(shares / shares.sum() @ np.array([w for w, _ in trials]))[0]


def by_bootstrap(one: Drawn, draws: int = 100) -> Fusion:
    """Average ways by how often each is best among held-out rows drawn again."""
    trials = tried(one)
    losses = np.array([found for _, found in trials])
    n = losses.shape[1]
    counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=draws)
    shares = np.bincount((counts @ losses.T).argmin(axis=1), minlength=len(trials)) / draws
    return one.scaled(shares @ np.array([w for w, _ in trials]))[0]


def simplest(one: Drawn) -> Fusion:
    """Believe one source alone if no way is better by a standard error; else average."""
    trials = tried(one)
    best = min((found for _, found in trials), key=np.mean)
    alone = [t for t in trials if t[0][:-1].max() == 1 and not better(best, t[1])]
    if not alone:
        return averaged(1.0)(one)
    return one.scaled(min(alone, key=lambda trial: trial[1].mean())[0])[0]


ALONE, MEAN = "the first table alone", "averaged"
MEMBERS = {ALONE: [1.0, 0.0, 0.0], MEAN: [0.5, 0.5, 0.0]}
AND_FOLDS = "and the folds' boosters"
RULES: dict[str, tuple[type, str, Callable[[Drawn], Fusion]]] = {
    "before: averaged within one standard error": (Before, "", averaged(1.0)),
    "certainty": (Drawn, "", averaged(1.0)),
    "folds' boosters": (Before, AND_FOLDS, averaged(1.0)),
    "certainty and folds' boosters (now)": (Drawn, AND_FOLDS, averaged(1.0)),
    "now, but within half a standard error": (Drawn, AND_FOLDS, averaged(0.5)),
    "now, but within two": (Drawn, AND_FOLDS, averaged(2.0)),
    "now, but the smallest held-out loss": (Drawn, AND_FOLDS, least),
    "now, but by likelihood": (Drawn, AND_FOLDS, by_evidence),
    "now, but by bootstrap": (Drawn, AND_FOLDS, by_bootstrap),
    "now, but one source unless beaten": (Drawn, AND_FOLDS, simplest),
    "before, folds dealt twice": (Before, "split", averaged(1.0)),
    "now, folds dealt twice": (Drawn, "split and folds", averaged(1.0)),
}


def write_choice(seeds: int) -> None:
    report = Report("GBC: the rule of fusion", f"python benchmarks/sources_gbc.py --choice {seeds}")
    report.line(
        f"Error in %, {seeds} drawn tasks of each family (seeds from {FIRST}; the report of "
        "members has others); no graph, 20 % labels, all rounds. Two tables of four classes; where "
        "one is noise, its rows are in another order; where one table decides, it is sparse, the "
        "second one is the same with noise on it, there are six classes of unequal size and 128 "
        "labels. ± is the standard error of the paired difference from the best member: joined "
        "LightGBM, averaged, the first table alone.\n"
    )
    cells = Cells("gbc-choice-2")
    found = {
        family: [
            cells.get((family, str(FIRST + i)), lambda a=(family, FIRST + i): run(*a))
            for i in range(seeds)
        ]
        for family in TRIED
    }
    report.line("| rule | " + " | ".join(TRIED) + " |")
    report.line("| --- |" + " --- |" * len(TRIED))
    for name in ("joined", *MEMBERS, *RULES):
        report.line(f"| {name} | " + " | ".join(compared(name, r) for r in found.values()) + " |")
    report.finish("sources-gbc-choice.md")


def compared(name: str, runs: list[dict[str, Any]]) -> str:
    """Return the mean error of a rule, and its difference from the best member."""
    errors = {m: np.array([r[m] for r in runs]) for m in ("joined", *MEMBERS, name)}
    best = min(("joined", *MEMBERS), key=lambda m: errors[m].mean())
    gap = errors[name] - errors[best]
    return (
        f"{errors[name].mean():.2f} ({gap.mean():+.2f} ± {gap.std(ddof=1) / len(gap) ** 0.5:.2f})"
    )
