"""Graphs that CoCA should refuse, and graphs that it should use."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from _gbc_data import TASKS, present, sources
from _gbc_graphs import KINDS, STRENGTHS, draw
from _report import Report
from tabweave import CoCA, Sources

CHOICES = {"without": 0, "with": 1, "auto": "auto"}


def accuracies(data: Sources, y: np.ndarray, share: float, seed: int) -> dict[str, float]:
    """Return the accuracy (%) of five neighbours, whose labels also judge sources and graphs."""
    rng = np.random.default_rng(seed)
    train = rng.permutation(len(y))[: int(share * len(y))]
    seen = np.isin(data.ids, train)
    labels = {int(i): str(y[i]) for i in train}
    own, out = y[data.ids], {}
    for name, asked in CHOICES.items():
        model = CoCA(10, graph_share=asked).fit(data, labels)
        Z = model.transform(data)
        knn = KNeighborsClassifier(5).fit(Z[seen], own[seen])
        out[name] = 100 * knn.score(Z[~seen], own[~seen])
        out["kept"] = float(sum(model.graph_weights_.values()) > 0)
    return out


def report_graphs(seeds: int, real: tuple[str, ...]) -> None:
    report = Report("CoCA and graphs", f"python benchmarks/sources_coca.py --graphs {seeds}")
    report.line(
        f"Accuracy (%) of five neighbours in ten coordinates, {seeds} seeds; 30 % labels. 'kept': "
        "the share of fits whose graph was used.\n"
    )
    report.line("| sources | graph | share of edges | without | with | auto | kept |")
    report.line("|---|---|---|---|---|---|---|")
    lost = []
    for family in ("words", "numbers"):
        for kind in KINDS:
            for strength in STRENGTHS if kind != "random" else (0.0,):
                tasks = [draw(family, kind, strength, seed) for seed in range(seeds)]
                found = [
                    accuracies(sources(t, present(t, False, np.random.default_rng(0))), t.y, 0.3, s)
                    for s, t in enumerate(tasks)
                ]
                mean = _row(report, family, kind, strength, found)
                if kind != "alike":
                    lost.append(mean["without"] - mean["auto"])
    for name in real:
        task = TASKS[name]()
        data = sources(task, present(task, False, np.random.default_rng(0)))
        found = [accuracies(data, task.y, 0.3, seed) for seed in range(seeds)]
        _row(report, name, "cites", float("nan"), found)
    passed = "passed" if max(lost) <= 1 else "MISSED"
    report.line(
        f"\n- random graphs, or neighbours that differ: at most **{max(lost):.2f}** points "
        f"below CoCA without them (bar: 1; {passed})"
    )
    report.finish("sources-coca-graphs.md")


def _row(report: Report, family: str, kind: str, strength: float, found: list) -> dict[str, float]:
    mean = {name: float(np.mean([one[name] for one in found])) for name in (*CHOICES, "kept")}
    share = "" if np.isnan(strength) else f"{strength:.1f}"
    cells = " | ".join(f"{mean[name]:.1f}" for name in CHOICES)
    report.line(f"| {family} | {kind} | {share} | {cells} | {mean['kept']:.0%} |")
    return mean
