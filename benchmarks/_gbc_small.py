"""GBC on parts of 265 ids: how much a prior counts that few labels cannot tell from what they say.

Each set in turn is left out; the others choose between priors, and the one left out judges.
"""

from __future__ import annotations

from functools import partial, partialmethod
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

from _cells import Cells
from _gbc_data import TASKS, Task
from _gbc_graphs import consensus, draw, members
from _report import Report
from tabweave.sources import gbc

IDS = 265
SHARES = (0.1, 0.3, 0.5)
DRAWN = {
    "drawn, alike": ("words", "alike", 0.4),
    "drawn, differ": ("numbers", "differ", 0.6),
    "drawn, one table of noise": ("words", "random", 0.0),
}
SETS = {"terrorist": True, "citeseer": True, "mfeat": True} | dict.fromkeys(DRAWN, False)
BEST = "best single member"
BEFORE = "before"  # all rounds unless they lose by more than 1 + 50 / n standard errors
PRIORS = {  # labels that the prior of weights counts as; loss that all rounds may cost
    "no prior": (0, 0.0),
    "rounds only": (0, 3.0),
    "weights only, 30 labels": (30, 0.0),
    "rounds; weights, 10 labels": (10, 3.0),
    "rounds; weights, 30 labels": (30, 3.0),
    "rounds; weights, 100 labels": (100, 3.0),
}


def grown(task: Task, rng: np.random.Generator) -> np.ndarray:
    """Return ids that hang together: those met first from a random one along the graphs."""
    graph = sum(sp.csr_array(one) for one in task.graphs.values())
    graph = sp.csr_array(graph + graph.T)
    seen: list[int] = []
    queue: list[int] = []
    met = np.zeros(len(task.y), dtype=bool)
    while len(seen) < IDS:
        if not queue:
            queue = [int(rng.choice(np.flatnonzero(~met)))]
            met[queue[0]] = True
        node = queue.pop(0)
        seen.append(node)
        near = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
        near = rng.permutation(near[~met[near]])
        met[near] = True
        queue += near.tolist()
    return np.sort(seen)


def part(name: str, form: str, seed: int, least_of_a_class: int = 12) -> Task:
    """Return a part of a set, its columns in one table or in two."""
    rng = np.random.default_rng(seed)
    if name in DRAWN:
        task = draw(*DRAWN[name], seed + 900, n=IDS)
        if name.endswith("noise"):  # rows of the second table in another order say nothing
            order = rng.permutation(len(task.y))
            task = task._replace(tables={"t0": task.tables["t0"], "t1": task.tables["t1"][order]})
        return task
    task = TASKS[name]()
    rows = grown(task, rng)
    if name == "mfeat":
        rows = np.sort(np.random.default_rng(seed).choice(len(task.y), IDS, replace=False))
        tables = {view: task.tables[view][rows] for view in ("mor", "zer")}
        if form == "one":
            tables = {"columns": np.hstack(list(tables.values()))}
        graphs = {key: sp.csr_array(graph[rows][:, rows]) for key, graph in task.graphs.items()}
        return Task(tables, graphs, task.y[rows], ())
    classes, sizes = np.unique(task.y[rows], return_counts=True)
    used = [sp.csr_array(t)[rows] for name, t in task.tables.items() if name not in task.noise]
    whole = sp.csr_array(sp.hstack(used))
    whole = sp.csc_array(whole[:, np.asarray(whole.astype(bool).sum(axis=0)).ravel() > 1])
    kept = np.isin(task.y[rows], classes[sizes >= least_of_a_class])
    graphs = {key: sp.csr_array(g)[rows][:, rows][kept][:, kept] for key, g in task.graphs.items()}
    halves = [np.arange(whole.shape[1])]
    if form == "two":
        order = np.random.default_rng(seed).permutation(whole.shape[1])
        halves = [np.sort(half) for half in np.split(order, [whole.shape[1] // 2])]
    tables = {f"columns {i}": sp.csr_array(whole[:, half])[kept] for i, half in enumerate(halves)}
    return Task(tables, graphs, task.y[rows][kept], ())


def with_prior(task: Task, share: float, seed: int, prior: tuple[int, float]) -> dict[str, Any]:
    """Return what GBC gets and chooses under a prior."""
    labels, loss = prior
    rule = partial(gbc.choose_fusion, prior_labels=labels)
    looks = partialmethod(gbc.Training._best_look, min_loss=loss)
    with patch.object(gbc, "choose_fusion", rule), patch.object(gbc.Training, "_best_look", looks):
        return {"error": consensus(task, share, False, seed)["GBC"]}


def measure_small(cells: Cells, seeds: int) -> None:
    for seed in range(seeds):
        for name, is_real in SETS.items():
            for form in ("one", "two") if is_real else ("two",):
                task = part(name, form, seed)
                for share in SHARES:
                    key = (name, form, str(share), str(seed))
                    cells.get((*key, "members"), lambda a=(task, share, False, seed): members(*a))
                    for prior, values in PRIORS.items():
                        arguments = task, share, seed, values
                        cells.get((*key, prior), lambda a=arguments: with_prior(*a))
        print("small", seed, flush=True)


def errors_of(cells: Cells, name: str) -> dict[str, float]:
    """Return the mean error of every prior, and that of the best single member of each setting."""
    found: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for key, one in cells.known.items():
        if key[0] == name and key[4] == "members":
            row = {prior: cells.known[*key[:4], prior]["error"] for prior in (BEFORE, *PRIORS)}
            row |= {n: v for n, v in one.items() if n == "joined" or n.startswith("alone")}
            found.setdefault(key[:3], []).append(row)
    rules = (BEFORE, *PRIORS)
    settings = [
        {n: float(np.mean([row[n] for row in rows])) for n in rows[0]} for rows in found.values()
    ]
    out = {rule: float(np.mean([setting[rule] for setting in settings])) for rule in rules}
    best = [min(v for n, v in setting.items() if n not in rules) for setting in settings]
    return out | {BEST: float(np.mean(best))}


def write_small(seeds: int) -> None:
    """Measure what is missing, and write the table and what the other sets choose."""
    cells = Cells("gbc-small")
    measure_small(cells, seeds)
    cells.publish()
    report = Report(
        "GBC of few labels: a prior", f"python benchmarks/sources_gbc.py --small {seeds}"
    )
    report.line(
        f"Error in %, parts of {IDS} ids, mean of {seeds} seeds and of 10, 30 and 50 % labels; "
        "columns of real sets once in one table and once in two. The best single member of each "
        "setting is known afterwards only. Rounds: all are taken unless held-out rows together "
        "lose 3 by it. Weights: those of held-out rows and, as so many labels, sources alike and "
        "the booster of all columns as much as all of them; a source must beat the constant by "
        "fewer standard errors. Before: all rounds unless they lose by more than 1 + 50 / n "
        "standard errors.\n"
    )
    table = {name: errors_of(cells, name) for name in SETS}
    rules = [BEST, BEFORE, *PRIORS]
    report.line("| set | " + " | ".join(rules) + " |")
    report.line("| --- |" + " --- |" * len(rules))
    for name, row in table.items():
        report.line(f"| {name} | " + " | ".join(f"{row[rule]:.1f}" for rule in rules) + " |")
    report.section("One set left out")
    report.line(
        "| left out | the others choose | its error | best single member | before | no prior |"
    )
    report.line("| --- | --- | --- | --- | --- | --- |")
    for name, row in table.items():
        others = [other for other in SETS if other != name]
        chosen = min(rules[1:], key=lambda rule: sum(table[other][rule] for other in others))
        shown = (row[rule] for rule in (chosen, rules[0], BEFORE, "no prior"))
        report.line(f"| {name} | {chosen} | " + " | ".join(f"{v:.1f}" for v in shown) + " |")
    report.finish("sources-gbc-small.md")
