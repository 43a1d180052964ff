"""Runs of HeMap for its report: one fit with every answer's error, and how runs are summed up."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

from _hemap_data import Task
from _report import FOLDER, Report
from tabweave import HeMap
from tabweave.papers.sources import at_random
from tabweave.sources.hemap import Align, TargetRows


class AtRandom(HeMap):
    """Rows aligned at random as published, but guarded: what the guard makes of them."""

    def _alignment(self, target: TargetRows) -> tuple[str, Align, int]:
        return "random", at_random, 0


class Run:
    """One fit on some labeled rows, with the errors of every answer on the test rows."""

    def __init__(
        self,
        task: Task,
        labeled: np.ndarray,
        rows: np.ndarray,
        test: np.ndarray,
        seed: int,
        **options,
    ) -> None:
        rng = np.random.default_rng(1000 + seed)
        y = task.y.astype(object)
        y[np.setdiff1d(np.arange(len(y)), labeled)] = None
        y = y[rows].astype(float) if task.numeric else y[rows]
        # Views know the same things; their rows come in another order, as in two real tables.
        theirs = rng.permutation(rows if task.paired else len(task.source_X))
        pairs = None
        if options.get("alignment") == "pairs":
            row_of = np.full(len(task.y), -1)
            row_of[theirs] = np.arange(len(theirs))
            pairs = row_of[rows]
        options.setdefault("estimator", Ridge() if task.numeric else None)
        self.task, self.test = task, test
        make = HeMap
        if options.get("alignment") == "random":
            make = AtRandom
            del options["alignment"]
        self.model = make(random_state=seed, scale=task.scale, **options).fit(
            task.X[rows], y, source=(task.source_X[theirs], task.source_y[theirs]), pairs=pairs
        )
        model, asked = self.model, task.X[test]
        self.target = self.loss(model.target_estimator_.predict(asked))
        self.transfer = self.loss(model.transfer_.predict(asked))
        self.projected = self.loss(model.transfer_.target_learner.predict(model.project(asked)))
        self.guarded = self.target if model.refused_ else self.transfer
        self.refused = model.refused_
        self.share = len(model.selected_) / len(theirs)

    def loss(self, guess: np.ndarray) -> float:
        """Return the error in percent, or the RMSE of numbers."""
        right = self.task.y[self.test]
        if self.task.numeric:
            return float(np.sqrt(np.mean((guess - right) ** 2)))
        return 100 * float(np.mean(guess != right))


def new_rows(task: Task, share: float, seed: int, **options) -> Run:
    """Test on a third of the things, which neither table knows: nothing comes back by a pair."""
    order = np.random.default_rng(seed).permutation(len(task.y))
    test, rows = order[: len(order) // 3], order[len(order) // 3 :]
    return Run(task, rows[: round(share * len(order))], rows, test, seed, **options)


def own_rows(task: Task, share: float, seed: int, **options) -> Run:
    """Test on the target's unlabeled rows, as in the thesis."""
    order = np.random.default_rng(seed).permutation(len(task.y))
    n = round(share * len(order))
    return Run(task, order[:n], np.arange(len(order)), order[n:], seed, **options)


def mean(runs: list[Run], what: str) -> float:
    return float(np.mean([getattr(run, what) for run in runs]))


def table(report: Report, head: Iterable[str]) -> None:
    head = list(head)
    report.line("\n| " + " | ".join(head) + " |")
    report.line("|---|" + "---|" * (len(head) - 1))


def row(runs: list[Run]) -> str:
    deviation = np.std([run.transfer for run in runs], ddof=1)
    return (
        f"{mean(runs, 'transfer'):.1f} ± {deviation:.1f} | {mean(runs, 'target'):.1f} | "
        f"{mean(runs, 'projected'):.1f} | "
        f"{mean(runs, 'guarded'):.1f} | {100 * mean(runs, 'refused'):.0f} % | "
        f"{100 * mean(runs, 'share'):.0f} %"
    )


def excess(runs: list[Run]) -> float:
    """Return by how many standard errors the guarded estimator is worse, over seeds."""
    worse = np.array([run.guarded - run.target for run in runs])
    error = worse.std(ddof=1) / np.sqrt(len(worse))
    return float(worse.mean() / error) if error > 0 else 0.0


def carried(task: Task, seeds: range) -> float:
    errors = []
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(task.y))
        test, rows = order[: len(order) // 3], order[len(order) // 3 :]
        learner = KNeighborsClassifier(10).fit(task.X[rows], task.y[rows])
        errors.append(100 * np.mean(learner.predict(task.X[test]) != task.y[test]))
    return float(np.mean(errors))


def plot(curves: dict[str, dict[str, list[float]]], shares: tuple[float, ...]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    for axis, (name, found) in zip(axes.flat, curves.items(), strict=True):
        for label, values in found.items():
            style = "k-" if label == "target only" else "--" if "published" in label else "-"
            axis.plot([100 * s for s in shares], values, style, marker="o", label=label)
        axis.set(
            title=name,
            xlabel="labeled target rows (%)",
            ylabel="RMSE" if name.startswith("concrete") else "error (%)",
        )
    axes.flat[0].legend(fontsize=8)
    FOLDER.mkdir(exist_ok=True)
    figure.savefig(FOLDER / "sources-hemap-figure19.png", dpi=110)
