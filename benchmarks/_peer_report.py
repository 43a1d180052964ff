"""The report on peers: average ranks with their tests, wins and losses, every cell."""

from __future__ import annotations

import numpy as np

from _cells import Cells
from _peer_methods import METHODS
from _report import FOLDER, Report
from tabweave import plots
from tabweave.evaluate import average_ranks, bonferroni_dunn, friedman

TASKS = {
    "clustering": ("alone", "tabweave", "clusters: macro F under the best matching"),
    "retrieval": ("alone", "tabweave", "retrieval: precision of the ten nearest rows"),
    "kNN": ("taught", "tabweave supervised", "k nearest neighbours: macro F"),
    "linear": ("taught", "tabweave supervised", "logistic regression on the vectors: macro F"),
    "tree": ("taught", "tabweave supervised", "random forest on the vectors: macro F"),
}
# other readings of tabweave are shown, but do not compete: they would crowd out the peers
BARRED = ("clustering", "retrieval", "kNN")  # where tabweave's default is to be first
ASIDE = ("tabweave, k known", "UMAP on tabweave")


def write(cells: Cells) -> None:
    """Write benchmarks/reports/peers.md and one diagram per task."""
    import peers

    report = Report("tabweave and its peers", "python benchmarks/peers.py")
    report.line(
        f"\nSets above {peers.ROWS:,} rows are cut to {peers.ROWS:,} at random; classes with fewer "
        "than six rows and constant columns are left out. Clusters: as many as classes, k-means "
        "with 20 starts on vectors, average linkage on distances. kNN, linear and forest: "
        f"{peers.SPLITS} splits 80/20, k by leave-one-out, all tied neighbours vote. Every package "
        "with its defaults. A method that fails on a set takes the last place there."
    )
    measured = {key[1] for key in cells.known}
    names = [name for name in peers.data_sets() if name in measured]
    report.line(f"\n{len(names)} data sets. Not among them: " + skipped() + ".")
    for task, (group, control, title) in TASKS.items():
        section(report, cells, names, task, group, control, title)
    failures(report, cells, names)
    speed(report, cells, names)
    report.finish("peers.md")


def skipped() -> str:
    import peers

    return "; ".join(f"{name} ({why})" for name, why in peers.SKIPPED.items())


def scores_of(cells: Cells, names: list[str], methods: list[str], group: str, task: str):
    """Return scores (data sets × methods), NaN where a method failed."""
    table = np.full((len(names), len(methods)), np.nan)
    for i, name in enumerate(names):
        for j, method in enumerate(methods):
            table[i, j] = cells.known.get((group, name, method), {}).get(task, np.nan)
    return table


def section(report, cells, names, task, group, control, title) -> None:
    methods = [m for m, method in METHODS.items() if task in method.tasks]
    table = scores_of(cells, names, methods, group, task)
    main = [m for m in methods if m not in ASIDE]
    ranked = np.nan_to_num(table[:, [methods.index(m) for m in main]], nan=-1.0).round(6)
    test = friedman(ranked)
    compared = bonferroni_dunn(ranked, main.index(control))
    report.section(title[0].upper() + title[1:])
    order = np.argsort(test.average_ranks)
    report.line("| method | average rank | mean | beats " + control + " | loses | differs |")
    report.line("|---|---|---|---|---|---|")
    own = table[:, methods.index(control)]
    for i in order:
        line(
            report,
            main[i],
            table[:, methods.index(main[i])],
            own,
            test.average_ranks[i],
            bool(compared.significant[i]),
        )
    for name in (m for m in methods if m in ASIDE):
        line(report, name, table[:, methods.index(name)], own, None, False)
    report.line(
        f"\nFriedman χ² = {test.chi2:.1f}, p = {test.p_value:.2g} over {test.n_datasets} sets; "
        f"Bonferroni–Dunn critical difference {compared.critical_difference:.2f} (α = 0.05)."
    )
    first = main[order[0]]
    verdict = f"bar: {control}; {'passed' if first == control else 'MISSED'}"
    report.line(
        f"\n- first in average rank: **{first}** ({verdict if task in BARRED else 'no bar'})"
    )
    with_categories(report, names, main, ranked, control)
    best(report, names, methods, table, control)
    figure(task, main, test.average_ranks, compared.critical_difference, control)
    report.line(f"\n![average ranks](peers-{task}.png)\n")
    grid(report, names, methods, table)


def with_categories(report, names, main, ranked, control) -> None:
    """Say the ranks without the tables of numbers alone, where all encoders are one and the same.

    There every encoder leaves standardised numbers and shares a middle rank, so that they only
    tell tabweave's vectors and gower's range-scaled L1 from the Euclidean distance of those.
    """
    from tabweave.datasets import load

    kept = [i for i, name in enumerate(names) if set(load(name).kinds.values()) != {"numeric"}]
    ranks = average_ranks(ranked[kept])
    order = np.argsort(ranks)[:4]
    shown = ", ".join(f"{main[i]} {ranks[i]:.2f}" for i in order)
    report.line(
        f"- first among the {len(kept)} sets with categories: {shown} (the other "
        f"{len(names) - len(kept)} are numbers alone: the encoders give the same standardised "
        f"vectors there and share a middle rank; tabweave and gower have distances of their own)"
    )


def line(report, name, scores, own, rank, differs) -> None:
    shown = "–" if rank is None else f"{rank:.2f}"
    wins, losses = int((scores > own + 0.05).sum()), int((own > scores + 0.05).sum())
    mean = f"{np.nanmean(scores):.1f}" if np.isfinite(scores).any() else "–"
    report.line(f"| {name} | {shown} | {mean} | {wins} | {losses} | {'yes' if differs else ''} |")


def best(report, names, methods, table, control) -> None:
    """Say where the control wins and loses most, and against whom."""
    peers = [j for j, m in enumerate(methods) if not m.startswith("tabweave") and m not in ASIDE]
    top = np.nanmax(table[:, peers], axis=1)
    who = [methods[peers[j]] for j in np.nanargmax(np.nan_to_num(table[:, peers], nan=-1), axis=1)]
    gap = table[:, methods.index(control)] - top
    for word, places in (("ahead", np.argsort(-gap)[:5]), ("behind", np.argsort(gap)[:5])):
        shown = [f"{names[i]} {gap[i]:+.1f} ({who[i]})" for i in places]
        report.line(f"- furthest {word} of the best peer of each set: {', '.join(shown)}")


def figure(task, methods, ranks, cd, control) -> None:
    import matplotlib

    matplotlib.use("Agg")
    ax = plots.cd_diagram(ranks, methods, cd=cd, control=methods.index(control))
    ax.figure.savefig(FOLDER / f"peers-{task}.png", dpi=110, bbox_inches="tight")


def grid(report, names, methods, table) -> None:
    report.line("| data set | " + " | ".join(methods) + " |")
    report.line("|---" * (len(methods) + 1) + "|")
    for name, row in zip(names, table, strict=True):
        cells = ["failed" if np.isnan(v) else f"{v:.1f}" for v in row]
        report.line(f"| {name} | " + " | ".join(cells) + " |")


def failures(report, cells, names) -> None:
    report.section("Failures, as the packages report them")
    found: dict[tuple[str, str], list[str]] = {}
    for (_, name, method), scores in cells.known.items():
        if "error" in scores and name in names:
            found.setdefault((method, scores["error"][:120].replace("\n", " ")), []).append(name)
    for (method, error), sets in sorted(found.items()):
        report.line(f"- {method}: {error} ({', '.join(dict.fromkeys(sets))})")
    if not found:
        report.line("None.")


def speed(report, cells, names) -> None:
    report.section("Seconds to learn and apply the representation, all sets together")
    for method in METHODS:
        known = [cells.known.get(("alone", name, method), {}) for name in names]
        spent = [scores["fit"] for scores in known if "fit" in scores]
        if spent:
            report.line(f"- {method}: {sum(spent):.1f} s on {len(spent)} sets")
