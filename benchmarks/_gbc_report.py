"""The report of the GBC experiments, from the cells that were measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from _cells import Cells
from _gbc_data import TASKS
from _gbc_runs import (
    ABLATION_SHARE,
    ABLATION_SPLITS,
    ABLATIONS,
    COUNTS,
    JOINED_ROUNDS,
    METHODS,
    PEERS,
    ROUNDS,
    SHARES,
    SPLITS,
    TREES,
)
from _report import FOLDER, Report

BARS = ("mfeat", "terrorist", "citeseer", "cora")


def values(cells: Cells, name: str, share: float, gaps: bool, method: str, what: str) -> np.ndarray:
    state = "incomplete" if gaps else "complete"
    keys = [(name, str(share), state, str(seed), method) for seed in range(SPLITS)]
    return np.array([cells.known[k][what] for k in keys if what in cells.known.get(k, {})])


def table(report: Report, cells: Cells, names: tuple[str, ...]) -> list[dict[str, Any]]:
    report.line(
        "| task | rows | labels | splits | joined | joined, defaults | averaged | GBC | "
        "GBC, last smoothing off |"
    )
    report.line("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    out = []
    for name in names:
        for gaps in (False, True):
            for share in SHARES:
                found = {
                    m: values(cells, name, share, gaps, m, "error") for m in (*PEERS, *METHODS)
                }
                if not len(found["GBC"]):
                    continue
                found["plain"] = values(cells, name, share, gaps, "GBC", "unsmoothed")
                state = "30 % incomplete" if gaps else "complete"
                digits = 3 if name == "movies" else 1
                cells_ = [
                    f"{v.mean():.{digits}f} ± {v.std():.{digits}f}" if len(v) else ""
                    for v in found.values()
                ]
                head = f"| {name} | {state} | {share:.0%} | {len(found['GBC'])} | "
                report.line(head + " | ".join(cells_) + " |")
                out.append({"name": name, "gaps": gaps, "share": share, **found})
    return out


def bars(report: Report, rows: list[dict[str, Any]], films: list[dict[str, Any]]) -> None:
    report.section("Bars")
    won = [row["GBC"].mean() < row["joined"].mean() for row in rows]
    passed = "passed" if np.mean(won) >= 0.9 else "MISSED"
    report.line(
        f"- error below LightGBM on joined features in **{sum(won)} of {len(won)}** settings "
        f"({np.mean(won):.0%}; bar: 90 %; {passed})"
    )
    for row, win in zip(rows, won, strict=True):
        if not win:
            report.line(f"  - not on {row['name']}, {row['share']:.0%}, incomplete: {row['gaps']}")
    lost = [row for row in films if row["GBC"].mean() >= row["joined"].mean()]
    if films:
        settings = ", ".join(
            f"{row['share']:.0%} {'incomplete' if row['gaps'] else 'complete'} "
            f"{row['GBC'].mean():.3f} against {row['joined'].mean():.3f}"
            for row in lost
        )
        report.line(
            f"- films, which no bar is stated for: below it in **{len(films) - len(lost)} of "
            f"{len(films)}** settings; above it at {settings or 'none'}"
        )
    over = [  # of one split there is no deviation
        (row["GBC"].mean() - row["averaged"].mean()) / max(row["averaged"].std(), 1e-12)
        for row in rows
        if len(row["averaged"]) > 1
    ]
    report.at_most(
        "largest excess over averaged boosters, in standard deviations of their splits",
        max(over),
        1.0,
    )
    for row in rows:
        if row["share"] == 0.1 and row["name"] in ("cora", "citeseer"):
            state = "incomplete" if row["gaps"] else "complete"
            for peer in PEERS:
                ratio = row["GBC"].mean() / row[peer].mean()
                report.at_most(
                    f"{row['name']}, 10 %, {state}: share of the error of LightGBM {peer}",
                    ratio,
                    0.6,
                )


def weights(report: Report, cells: Cells) -> None:
    report.section("Weights, λ and smoothing chosen")
    report.line(
        "Weights of the sources, mean over all settings; λ: share of fits that turned it on; "
        "self-trained: share of fits that trained again on smoothed predictions; smoothing: mean "
        "strength, for self-trained boosters on top of what they learned."
    )
    report.line(
        "\n| task | source weights | graph weights | λ0 on | λ1 on | self-trained | smoothing |"
    )
    report.line("| --- | --- | --- | --- | --- | --- | --- |")
    for name in TASKS:
        found = [
            s for k, s in cells.known.items() if k[0] == name and k[4] == "GBC" and "rounds" in s
        ]
        if not found:
            continue
        parts = []
        for what in ("weights", "graph_weights"):
            mean = {n: np.mean([s[what][n] for s in found]) for n in found[0][what]}
            parts.append(", ".join(f"{n} {v:.3f}" for n, v in mean.items()))
        on = np.mean([[v > 0 for v in s["lambdas"]] for s in found], axis=0)
        smooth = {n: np.mean([s["smoothing"][n] for s in found]) for n in found[0]["smoothing"]}
        text = ", ".join(f"{n} {v:.2f}" for n, v in smooth.items())
        # A fit that leans on no graph has no pseudo-labels.
        again = np.mean([s.get("self_trained", False) for s in found])
        shares = f"{on[0]:.0%} | {on[1]:.0%} | {again:.0%}"
        report.line(f"| {name} | {parts[0]} | {parts[1]} | {shares} | {text} |")
    ratios = noise_ratios(cells)
    if ratios:
        share = np.mean([r <= 0.2 for r in ratios])
        report.line(
            f"\nWeight of an injected noise table over the median of the others, over "
            f"{len(ratios)} fits and tables: largest **{max(ratios):.3f}**, at most 1/5 in "
            f"**{share:.1%}** (bar: at least 5× below)."
        )


def noise_ratios(cells: Cells) -> list[float]:
    out = []
    for key, scores in cells.known.items():
        if key[4] == "GBC" and key[0] in ("cora", "citeseer") and "weights" in scores:
            noisy = [v for n, v in scores["weights"].items() if n.startswith("noise")]
            rest = [v for n, v in scores["weights"].items() if not n.startswith("noise")]
            out += [v / np.median(rest) for v in noisy]
    return out


EVERY = (*PEERS, *METHODS, *ABLATIONS)


def ablations(
    report: Report, cells: Cells, tasks: Iterable[str] = TASKS, methods: tuple[str, ...] = EVERY
) -> None:
    report.section(
        f"Ablations: {ABLATION_SHARE:.0%} labels, complete rows, first {ABLATION_SPLITS} splits"
    )
    report.line(
        "Boosters may be self-trained in GBC and without weights; where λ1 is a number, never. As "
        "published, each tree takes the whole step of the line search (3.8); 'steps × 0.2' takes "
        "the part of it that the trees of the others take.\n"
    )
    # Every variant of a task is measured on the same splits.
    counted = {}
    for name in tasks:
        of = [len(values(cells, name, ABLATION_SHARE, False, m, "error")) for m in methods]
        counted[name] = min(*of, ABLATION_SPLITS)
    counted = {name: n for name, n in counted.items() if n}
    heads = [f"{name} ({n} {'split' if n == 1 else 'splits'})" for name, n in counted.items()]
    report.line("| variant | " + " | ".join(heads) + " |")
    report.line("| --- |" + " --- |" * len(counted))
    for method in methods:
        line = []
        for name in counted:
            found = values(cells, name, ABLATION_SHARE, False, method, "error")[: counted[name]]
            line.append(f"{found.mean():.{3 if name == 'movies' else 1}f}")
        report.line(f"| {method} | " + " | ".join(line) + " |")


def counts(report: Report, cells: Cells) -> None:
    report.section("Films by the number of sources (Table IV)")
    report.line(
        "Random choices of the ten sources, one for each split; root mean squared error. Graphs "
        "are sources of smoothing and, by their adjacency, of columns.\n"
    )
    report.line("| sources | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |")
    report.line("| --- |" + " --- |" * len(SHARES))
    for count in COUNTS:
        found = [values(cells, "movies", s, False, f"{count} sources", "error") for s in SHARES]
        text = [f"{v.mean():.3f} ± {v.std():.3f}" if len(v) else "" for v in found]
        report.line(f"| {count} | " + " | ".join(text) + " |")


def plot(rows: list[dict[str, Any]]) -> None:
    from matplotlib.figure import Figure

    from tabweave.plots import draw_series

    names = list(dict.fromkeys(row["name"] for row in rows))
    figure = Figure(figsize=(3.2 * len(names), 5.6), layout="constrained")
    axes = figure.subplots(2, len(names), squeeze=False)
    for i, gaps in enumerate((False, True)):
        for j, name in enumerate(names):
            chosen = [r for r in rows if r["name"] == name and r["gaps"] == gaps]
            x = [100 * r["share"] for r in chosen]
            series = {
                label: (x, [r[m].mean() for r in chosen])
                for label, m in (("joined", "joined"), ("averaged", "averaged"), ("GBC", "GBC"))
            }
            draw_series(axes[i, j], series)
            axes[i, j].set_title(f"{name}, {'30 % incomplete' if gaps else 'complete'}", fontsize=9)
            axes[i, j].set_ylim(bottom=0)
            axes[i, j].set_xlabel("labels, %")
    axes[0, 0].set_ylabel("error")
    axes[1, 0].set_ylabel("error")
    figure.savefig(FOLDER / "sources-gbc.png", dpi=110)


def write_report(cells: Cells) -> None:
    report = Report("GBC on many sources", "python benchmarks/sources_gbc.py")
    import lightgbm

    report.line(
        f"LightGBM {lightgbm.__version__}. Error in percent (movies: root mean squared error), "
        f"mean ± standard deviation over splits, classes in proportion. All methods have "
        f"the same trees: {', '.join(f'{k} {v}' for k, v in TREES.items())}. Boosters of averaged "
        f"and GBC have at most {ROUNDS} rounds, the joined one {JOINED_ROUNDS} of half the "
        "learning rate (softmax), which suits it better; at 10 % it is also run with LightGBM's "
        "own defaults and 100 rounds. Joined "
        "features hold the adjacency of the graphs, too, as in Eq. (3.20). Incomplete: 30 % of "
        "the ids are unknown to a random half of the sources, graphs among them."
    )
    report.section("Errors")
    rows = table(report, cells, BARS)
    if any(k[0] == "movies" for k in cells.known):
        report.section("Films: ten drawn sources, one table and one graph of them noise")
        films = table(report, cells, ("movies",))
        counts(report, cells)
    else:
        films = []
    bars(report, rows, films)
    weights(report, cells)
    ablations(report, cells)
    plot(rows + films)
    report.line("\n![errors by share of labels](sources-gbc.png)")
    large = Cells("sources-gbc-large").known
    for scores in large.values():
        report.section("500,000 rows of 20 sources")
        report.line(scores["text"])
    report.finish("sources-gbc.md")


def write_published(cells: Cells, task: str = "terrorist") -> None:
    """Write what one task shows of GBC as published, and all that is known of GBC today."""
    command = f"python benchmarks/sources_gbc.py --measure {task} --splits 3; --published"
    report = Report("GBC as published, beside GBC", command)
    report.section("Errors in %")
    report.line("Settings that were measured with this version, of how many splits.\n")
    rows = table(report, cells, BARS)
    won = sum(row["GBC"].mean() < row["joined"].mean() for row in rows)
    report.line(f"\n- GBC below LightGBM on joined features in **{won} of {len(rows)}** settings")
    published = tuple(method for method in ABLATIONS if method.startswith("as published"))
    ablations(report, cells, (task,), (*PEERS, *METHODS, *published))
    report.finish("sources-gbc-published.md")
