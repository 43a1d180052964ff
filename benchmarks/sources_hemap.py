"""HeMap: where a source with other columns helps, and whether the guard knows where it does not.

Run ``python benchmarks/sources_hemap.py``. Credit, concrete and mfeat are read from the data
directory (TABWEAVE_DATA) and left out if it has none; the rest comes with scikit-learn.
``--noise 200`` measures instead how often sources without anything to tell are let in, over so
many seeds, whether true pairs still are, and the time by rows.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from _cells import Cells
from _hemap_data import Task, digit_views, published_tasks, unrelated_tasks
from _hemap_runs import Run, carried, excess, mean, new_rows, own_rows, plot, row, table
from _report import Report
from tabweave import HeMap

COMMAND = "python benchmarks/sources_hemap.py"
ALIGNMENTS = ("pairs", "pc", "random", "score", "cluster")


# -- sections ---------------------------------------------------------------------------------


def digits(report: Report, most: int, alignments: tuple[str, ...] = ALIGNMENTS) -> None:
    report.section("Two views of digits, 5 % of the target labeled")
    report.line(
        "Error in % on new rows (a third of the things, in neither table). Source rows all have "
        "labels and come in another order. 10 nearest neighbours. 'labels over pairs': the learner "
        "on the target's own rows with the labels of their partners, which needs no projection "
        "and is the best that pairs can give. 'projected': the target's labels only, in the "
        "common space. 'refused' by the guard; the last three "
        "alignments have at most 10 seeds. Columns are brought to "
        "variance 1 except where Karhunen-Loeve coefficients (kar) take part: those are in one "
        "unit, and how much each varies is what they say."
    )
    ratios: dict[str, list[float]] = {how: [] for how in ("pairs", "pc") if how in alignments}
    worst = []
    for i, task in enumerate(digit_views()):
        seeds = range(most if i == 0 else min(most, 4))
        asked = [how for how in alignments if i == 0 or how in ALIGNMENTS[:3]]
        for how, runs in one_view(report, task, seeds, tuple(asked)):
            worst.append(excess(runs))
            if how in ratios:
                ratios[how].append(mean(runs, "guarded") / mean(runs, "target"))
    report.line("")
    bars = {"pairs": 0.5, "pc": 0.9}
    for how, found in ratios.items():
        text = f"guarded error / target only, {how}, the worst view"
        report.at_most(text, max(found), bars[how])
        report.line(f"  - each view: {', '.join(f'{r:.2f}' for r in found)}")
    report.at_most(
        "guarded minus target only, in standard errors, the worst row above", max(worst), 1
    )


def one_view(
    report: Report, task: Task, seeds: range, alignments: tuple[str, ...]
) -> list[tuple[str, list[Run]]]:
    head = ("with the source", "target only", "projected", "guarded", "refused", "rows selected")
    table(report, [f"{task.name} ({len(seeds)} seeds)", *head])
    out = []
    for how in alignments:
        few = seeds if how in ("pairs", "pc") else seeds[:10]
        out.append((how, [new_rows(task, 0.05, s, alignment=how) for s in few]))
        report.line(f"| {how} | {row(out[-1][1])} |")
    report.line(f"| labels over pairs | {carried(task, seeds):.1f} | | | | | |")
    return out


VARIANTS = {
    "linear, pc": {},
    "nonlinear, pc": {"linearity": 0.5},
    "linear, as published": {"alignment": "random", "n_components": 1},
    "nonlinear, as published": {"alignment": "random", "n_components": 1, "linearity": 0.5},
}


def guard(report: Report, most: int) -> None:
    # Not the seeds on which the guard's rules were chosen (those from 0 on).
    seeds = range(100, 100 + most)
    report.section("The guard, where the source does not help")
    report.line(
        f"{len(seeds)} seeds each. Error in %, RMSE for concrete; on the target's unlabeled rows. "
        "'as published': random rows, one dimension. Standard errors are of the paired difference "
        "of guarded and target only over seeds; 0 where every run was refused. 'worst run': the "
        "largest difference of a single run. The rules of "
        "the guard were chosen on other seeds."
    )
    head = ("target only", "projected, target only", "with the source, unguarded", "guarded")
    tail = ("refused", "worse by (s.e.)", "worst run")
    table(report, ["source", "labeled", "variant", *head, *tail])
    refused, worst, total, harmed = [], [], [], 0
    for make, share, variant in guard_cases(report):
        runs = [own_rows(make(s), share, s, **VARIANTS[variant]) for s in seeds]
        name = runs[0].task.name
        last = max(run.guarded - run.target for run in runs)
        report.line(
            f"| {name} | {100 * share:.0f} % | {variant} | {mean(runs, 'target'):.2f} | "
            f"{mean(runs, 'projected'):.2f} | {mean(runs, 'transfer'):.2f} | "
            f"{mean(runs, 'guarded'):.2f} | {100 * mean(runs, 'refused'):.0f} % | "
            f"{excess(runs):.2f} | {last:.2f} |"
        )
        refused.append(100 * mean(runs, "refused"))
        worst.append(excess(runs))
        total += [run.refused for run in runs]
        harmed += sum(run.guarded > run.target for run in runs)
    report.line("")
    report.at_most("runs let in, the worst row, %", 100 - min(refused), 10)
    report.at_most("runs let in, all rows, %", 100 - 100 * float(np.mean(total)), 10)
    report.at_most("runs worse than target only, of all rows", harmed, 0)
    report.at_most("guarded minus target only, in standard errors, the worst row", max(worst), 1)


def guard_cases(report: Report) -> list[tuple[Callable[[int], Task], float, str]]:
    cases: list[tuple[Callable[[int], Task], float, str]] = []
    for task in published_or_none(report):
        low, high = (0.2, 0.4) if task.name.startswith("concrete_slump") else (0.1, 0.3)
        for share, variants in ((low, list(VARIANTS)), (high, ["linear, pc"])):
            cases += [(lambda s, task=task: task, share, variant) for variant in variants]
    for k in range(6):
        cases.append((lambda s, k=k: unrelated_tasks(s)[k], 0.1, "linear, pc"))
    return cases


def published_or_none(report: Report) -> list[Task]:
    try:
        return published_tasks()
    except FileNotFoundError as error:
        report.line(f"\nCredit and concrete are left out: {error}")
        return []


def figure_19(report: Report, most: int, drawn: bool) -> None:
    tasks = published_or_none(report)
    if not tasks:
        return
    report.section("Figure 19: credit and concrete, unguarded, by share of labels")
    runs_each = min(most, 10)  # ten, as in the thesis
    report.line(f"Mean of {runs_each} runs. Error in %, RMSE for concrete.")
    shares = (0.05, 0.1, 0.2, 0.3)
    curves: dict[str, dict[str, list[float]]] = {}
    for task in tasks:
        table(report, [task.name, *(f"{100 * s:.0f} %" for s in shares)])
        found: dict[str, list[float]] = {"target only": []} | {v: [] for v in VARIANTS}
        for share in shares:
            for name, options in VARIANTS.items():
                runs = [own_rows(task, share, s, guard=None, **options) for s in range(runs_each)]
                found[name].append(mean(runs, "transfer"))
            found["target only"].append(mean(runs, "target"))
        for name, values in found.items():
            report.line(f"| {name} | " + " | ".join(f"{v:.1f}" for v in values) + " |")
        curves[task.name] = found
    if drawn:
        report.line("\n![Figure 19](sources-hemap-figure19.png)")
        plot(curves, shares)


def sensitivity(report: Report, most: int) -> None:
    task, seeds = digit_views()[0], range(min(most, 3))
    report.section("Figure 25 and Table X on the digits: parameters and learners")
    report.line(f"Unguarded error in %, {len(seeds)} seeds, 5 % labeled.")
    for name, values in (
        ("similarity", (0.25, 0.5, 1, 2, 4)),
        ("linearity", (0.25, 0.5, 0.75, 1)),
        ("n_components", (1, 5, 10, 20, 40)),
    ):
        table(report, [name, *map(str, values)])
        for how in ("pairs", "pc"):
            cells = [
                mean(
                    [
                        new_rows(task, 0.05, s, alignment=how, guard=None, **{name: value})
                        for s in seeds
                    ],
                    "transfer",
                )
                for value in values
            ]
            report.line(f"| {how} | " + " | ".join(f"{c:.1f}" for c in cells) + " |")
    by_learner(report, task, seeds)


def by_learner(report: Report, task: Task, seeds: range) -> None:
    learners = {
        "10 neighbours": None,
        "logistic regression": LogisticRegression(max_iter=2000),
        "SVM": SVC(),
        "tree": DecisionTreeClassifier(random_state=0),
    }
    table(report, ["learner", "target only", "pairs", "pc", "nonlinear, pairs"])
    for name, learner in learners.items():
        cells = []
        for options in (
            {"alignment": "pairs"},
            {"alignment": "pc"},
            {"alignment": "pairs", "linearity": 0.5},
        ):
            runs = [
                new_rows(task, 0.05, s, estimator=learner, guard=None, **options) for s in seeds
            ]
            cells.append(mean(runs, "transfer"))
        report.line(
            f"| {name} | {mean(runs, 'target'):.1f} | "
            + " | ".join(f"{c:.1f}" for c in cells)
            + " |"
        )


def low_rank(report: Report) -> None:
    from tabweave.sources.hemap import Factor, embed

    report.section("The low-rank solution against the dense one")
    rng = np.random.default_rng(0)
    for theta in (1.0, 0.5):
        T, S = rng.normal(size=(800, 30)), rng.normal(size=(800, 40))
        C_T, C_S = np.eye(3)[rng.integers(3, size=800)], np.eye(4)[rng.integers(4, size=800)]
        start = time.perf_counter()
        found = embed(Factor.of(T, S, C_T, C_S, 1.0, theta), 10)
        middle = time.perf_counter()
        g = (1 - theta) * (1 + 2 * theta)
        A = np.block(
            [
                [
                    2 * theta**2 * T @ T.T + S @ S.T / 2 + g * C_T @ C_T.T,
                    theta * (T @ T.T + S @ S.T),
                ],
                [
                    theta * (T @ T.T + S @ S.T),
                    2 * theta**2 * S @ S.T + T @ T.T / 2 + g * C_S @ C_S.T,
                ],
            ]
        )
        values, vectors = np.linalg.eigh(A)
        dense = time.perf_counter() - middle
        B, U = np.vstack([found.B_T, found.B_S]), vectors[:, ::-1][:, :10]
        difference = max(
            np.abs(B @ B.T - U @ U.T).max(), np.abs(found.eigenvalues / values[::-1][:10] - 1).max()
        )
        passed = "passed" if difference <= 1e-8 else "MISSED"
        report.line(
            f"- θ = {theta}: largest difference of projectors and relative eigenvalues "
            f"**{difference:.1e}** (bar: 1e-8; {passed}); {middle - start:.3f} s against "
            f"{dense:.2f} s"
        )


LABELS = (10, 15, 20, 40, 80)
LEARNERS: dict[str, Callable[[], object]] = {
    "10 neighbours": lambda: None,
    "logistic regression": lambda: LogisticRegression(max_iter=300),
    "SVM": lambda: SVC(),
    "tree": lambda: DecisionTreeClassifier(random_state=0),
}


def drawn_pair(kind: str, seed: int, n: int = 120) -> tuple:
    """Draw a target of two classes and a source: noise, labels or pairs permuted, true pairs."""
    rng = np.random.default_rng(seed)
    things = rng.normal(size=(n, 3))
    y = (things[:, 0] * things[:, 1] > 0).astype(int)
    ours = things @ rng.normal(size=(3, 6)) + 0.1 * rng.normal(size=(n, 6))
    theirs = things @ rng.normal(size=(3, 8)) + 0.1 * rng.normal(size=(n, 8))
    if kind == "noise":
        return ours, y, rng.normal(size=(n, 8)), rng.integers(0, 2, n), None
    if kind == "permuted labels":
        return ours, y, theirs, rng.permutation(y), None
    return ours, y, theirs, y, rng.permutation(n) if kind == "permuted pairs" else np.arange(n)


KINDS = ("noise", "permuted labels", "permuted pairs", "true pairs")


def admission(report: Report, seeds: int, paired: int, learners: list[str]) -> None:
    report.section("How often a source is let in")
    report.line(
        f"{seeds} seeds each, {paired} of permuted pairs, a fifth of these for true pairs; 120 "
        "target and 120 source rows, two classes that no column tells alone. Runs let in, of how "
        "many; the guard states 5 % for the first three kinds.\n"
    )
    report.line("| source | learner | " + " | ".join(f"{n} labels" for n in LABELS) + " |")
    report.line("|---|---|" + "---|" * len(LABELS))
    cells = Cells("hemap-noise")
    counts = {kind: np.zeros((len(learners), len(LABELS)), int) for kind in KINDS}
    runs = dict(zip(KINDS, (seeds, seeds, paired, max(paired // 5, 1)), strict=True))
    for seed in range(seeds):
        for kind in [kind for kind in KINDS if seed < runs[kind]]:
            for i, name in enumerate(learners):
                counts[kind][i] += [admitted(cells, kind, name, n, seed) for n in LABELS]
        print("seed", seed, flush=True)
    for kind, found in counts.items():
        for name, own in zip(learners, found, strict=True):
            report.line(
                f"| {kind} | {name} | " + " | ".join(f"{k}/{runs[kind]}" for k in own) + " |"
            )
        rates = [interval(int(k), len(learners) * runs[kind]) for k in found.sum(axis=0)]
        report.line(f"| {kind} | all, % (95 % interval) | " + " | ".join(rates) + " |")
    null = sum(counts[kind] for kind in KINDS[:3])
    # Of as many runs as there are, 5 % are exceeded by chance: two standard errors are allowed.
    n = len(learners) * sum(runs[kind] for kind in KINDS[:3])
    worst = float(100 * np.max(null.sum(axis=0)))
    bar = 5 + 200 * np.sqrt(0.05 * 0.95 / n)
    passed = "passed" if worst / n <= bar else "MISSED"
    total = interval(int(null.sum()), n * len(LABELS))
    report.line(
        f"\n- the first three kinds, all learners, the worst number of labels: **{worst / n:.1f}** "
        f"% of {n} runs (bar: {bar:.1f}; {passed})"
        f"\n- all runs of the first three kinds: **{total}** % of {n * len(LABELS)}"
    )


def admitted(cells: Cells, kind: str, learner: str, n: int, seed: int) -> int:
    key = (kind, learner, str(n), str(seed))
    found = cells.get(key, lambda: let_in(kind, LEARNERS[learner], n, seed))
    return int(found["let in"])


def interval(k: int, n: int) -> str:
    """Return a share in percent with its exact 95 % interval (Clopper and Pearson 1934)."""
    found = binomtest(k, n).proportion_ci()
    return f"{100 * k / n:.1f} ({100 * found.low:.1f}–{100 * found.high:.1f})"


def let_in(kind: str, make: Callable[[], object], n: int, seed: int) -> dict[str, float]:
    X, y, S, v, pairs = drawn_pair(kind, seed)
    labels = y.astype(object)
    labels[n:] = None
    model = HeMap(make(), random_state=seed).fit(X, labels, source=(S, v), pairs=pairs)
    return {"let in": float(not model.refused_)}


def growth(report: Report) -> None:
    report.section("Time by rows, the guard included, 80 labels, no pairs; seconds of CPU")
    for n in (1000, 4000, 16000):
        X, y, S, v, _ = drawn_pair("true pairs", 0, n)
        labels = y.astype(object)
        labels[80:] = None
        start = time.process_time()
        HeMap(random_state=0).fit(X, labels, source=(S, v))
        report.line(f"- {n:,} rows of either table: {time.process_time() - start:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", type=int, help="number of seeds")
    parser.add_argument("--paired", type=int, help="number of seeds with pairs, if fewer")
    parser.add_argument("--learner", choices=list(LEARNERS), nargs="+", default=list(LEARNERS))
    parser.add_argument("--seeds", type=int, default=30, help="of each source, at most")
    parser.add_argument("--digits", action="store_true", help="the views of digits alone")
    parser.add_argument("--alignment", choices=ALIGNMENTS, nargs="+", default=list(ALIGNMENTS))
    parser.add_argument("--quick", action="store_true", help="two seeds, no report")
    options = parser.parse_args()
    if options.noise:
        named = "" if len(options.learner) > 1 else f" --learner '{options.learner[0]}'"
        paired = options.paired or options.noise
        fewer = "" if paired == options.noise else f" --paired {paired}"
        command = f"{COMMAND} --noise {options.noise}{fewer}{named}"
        report = Report("HeMap: the rate of its guard", command)
        admission(report, options.noise, paired, options.learner)
        growth(report)
        report.finish("sources-hemap-noise.md")
        return
    most = 2 if options.quick else options.seeds
    asked = COMMAND + ("" if most == 30 else f" --seeds {most}")
    if options.digits:
        how = "" if len(options.alignment) == 5 else f" --alignment {' '.join(options.alignment)}"
        report = Report("HeMap: gains that its guard lets through", f"{asked} --digits{how}")
        digits(report, most, tuple(options.alignment))
        report.finish("sources-hemap-digits.md")
        return
    report = Report("HeMap", asked)
    low_rank(report)
    digits(report, most)
    guard(report, most)
    figure_19(report, most, not options.quick)
    sensitivity(report, most)
    report.line(f"\nThe run took {time.process_time() / 60:.1f} minutes of processor time.")
    report.finish(None if options.quick else "sources-hemap.md")


if __name__ == "__main__":
    main()
