"""Graphs that nobody tuned GBC to: drawn families of them, and real ones, against every member.

Two families of tables (words, numbers), three kinds of graphs (neighbours alike, neighbours that
differ, random) at five strengths. GBC is compared with each source alone, with all of them
averaged, and with LightGBM on joined columns: the same trees and rounds for all.
"""

from __future__ import annotations

import ast
import hashlib
import time
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import scipy.sparse as sp

from _cells import Cells
from _gbc_data import TASKS, Task, present, sources
from _gbc_runs import METHODS, ROUNDS, TREES, split
from tabweave import GBCClassifier
from tabweave.sources import gbc
from tabweave.sources.gbc import JOINED

KINDS = ("alike", "differ", "random")
STRENGTHS = (0.2, 0.4, 0.6, 0.8, 1.0)  # share of edges that follow the classes
FAMILIES = ("words", "numbers")
LABELS = 0.2
FORMER = "before"  # one booster a source, and no certainty
WEAK, MORE = 0.2, 4  # graphs up to this strength are drawn so many times as often


def draw(family: str, kind: str, strength: float, seed: int, n: int = 500) -> Task:
    """Draw four classes, two tables about them, and a graph of four edges an id."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    if family == "words":
        odds = rng.normal(-1.5, 0.6, (2, 4, 60))
        tables = {
            f"t{i}": (rng.random((n, 60)) < 1 / (1 + np.exp(-odds[i][y]))) * 1.0 for i in (0, 1)
        }
    else:
        centers = rng.normal(0, 0.6, (2, 4, 8))
        tables = {f"t{i}": centers[i][y] + rng.normal(size=(n, 8)) for i in (0, 1)}
    a = rng.integers(0, n, 2 * n)
    partner = {"alike": np.arange(4), "differ": np.array([1, 0, 3, 2]), "random": None}[kind]
    b = rng.integers(0, n, 2 * n)
    if partner is not None:
        follows = rng.random(2 * n) < strength
        for c in range(4):
            rows = np.flatnonzero(follows & (y[a] == c))
            b[rows] = rng.choice(np.flatnonzero(y == partner[c]), len(rows))
    graph = sp.csr_array((np.ones(2 * n), (a, b)), shape=(n, n))
    return Task(tables, {"g": graph}, y.astype(str), ())


def members(task: Task, share: float, gaps: bool, seed: int) -> dict[str, float]:
    """Return the error (%) of each source alone, of all averaged, and of joined columns."""
    train, test = split(task, share, seed)
    known = present(task, gaps, np.random.default_rng(seed))
    data = sources(task, known)
    classes, codes = np.unique(task.y, return_inverse=True)
    labels = {int(i): task.y[i] for i in train}

    def wrong(predicted: np.ndarray) -> float:
        return float(100 * (predicted != task.y[test]).mean())

    out: dict[str, float] = {}
    mean = GBCClassifier(ROUNDS, params=TREES, random_state=seed, **METHODS["averaged"])
    mean.fit(data, labels)
    at = data.index(test)
    out["averaged"] = wrong(mean.predict(data)[at])
    for name, scores in mean.source_scores(data).items():
        own = np.where(np.isnan(scores), mean._start, scores)[at]  # a row it has not: the constant
        chosen = own.argmax(axis=1) if own.shape[1] > 1 else (own[:, 0] > 0).astype(int)
        out[f"alone: {name}"] = wrong(classes[chosen])
    blocks = []
    for i, matrix in enumerate(task.tables.values()):
        dense = matrix.toarray() if sp.issparse(matrix) else np.array(matrix, dtype=float)
        dense[~known[:, i]] = np.nan
        blocks.append(sp.csr_matrix(dense))
    joined = sp.csr_matrix(sp.hstack(blocks))
    params = {**TREES, "verbosity": -1, "force_col_wise": True, "seed": seed}
    params |= {"objective": "multiclass", "num_class": len(classes)}
    model = lgb.train(params, lgb.Dataset(joined[train], codes[train]), ROUNDS)
    out["joined"] = wrong(classes[model.predict(joined[test]).argmax(axis=1)])
    return out


def consensus(task: Task, share: float, gaps: bool, seed: int) -> dict[str, Any]:
    """Return the error (%) of GBC on the split that its members have, and what it chose."""
    train, test = split(task, share, seed)
    data = sources(task, present(task, gaps, np.random.default_rng(seed)))
    ours = GBCClassifier(ROUNDS, params=TREES, random_state=seed)
    ours.fit(data, {int(i): task.y[i] for i in train})
    found = ours.predict(data)[data.index(test)]
    return {
        "GBC": float(100 * (found != task.y[test]).mean()),
        "smoothing": dict(ours.graph_smoothing_),
        "refused": sorted(ours.refused_),
        "self_trained": ours.self_trained_,
        "rounds": ours.n_rounds_,
        "weights": {**ours.source_weights_, JOINED: ours.joined_weight_},
    }


def version() -> str:
    """Return a short name of GBC's code (not of its text): cells of other code are not reported."""
    digest = hashlib.sha256()
    for path in (Path(gbc.__file__), Path(gbc.__file__).with_name("team.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                node.value = ast.Constant("")  # a docstring
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:8]


def compare(cells: Cells, key: tuple[str, ...], task: Task, share: float, gaps: bool) -> None:
    """Measure a split of a setting: members once, GBC once for each version of its code."""
    seed = int(key[3])
    cells.get((*key, "members"), lambda: members(task, share, gaps, seed))
    cells.get((*key, "GBC", version()), lambda: consensus(task, share, gaps, seed))


def compared(cells: Cells, code: str) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Return what is known of members and of a version of GBC, seed by seed for each setting."""
    ours = {k[:4]: v for k, v in cells.known.items() if k[4:] == ("GBC", code)}
    out: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for key, one in ours.items():
        out.setdefault(key[:3], []).append(cells.known[*key, "members"] | one)
    return out


def measure_drawn(cells: Cells, seeds: int) -> None:
    """Measure every family; where a graph tells little, with more seeds: there members decide."""
    for seed in range(MORE * seeds):
        for family in FAMILIES:
            for kind in KINDS:
                for strength in STRENGTHS if kind != "random" else (0.0,):
                    if seed >= seeds and strength > WEAK:
                        continue
                    key = (family, kind, str(strength), str(seed))
                    compare(cells, key, draw(family, kind, strength, seed), LABELS, False)
        print("drawn", seed, flush=True)


def measure_real(cells: Cells, name: str, seeds: int, shares: tuple[float, ...]) -> None:
    task = TASKS[name]()
    for seed in range(seeds):
        for share in shares:
            for gaps in (False, True):
                key = (name, str(share), "incomplete" if gaps else "complete", str(seed))
                compare(cells, key, task, share, gaps)
                print(key, time.strftime("%H:%M:%S"), flush=True)


def report_members(cells: Cells, former: bool = False) -> list[str]:
    """Return the table of settings, and how far GBC is above the best member in any of them.

    Of today's version, or (``former``) of the one before where there is none of today's.
    """
    groups = compared(cells, version())
    if former:
        known = compared(cells, FORMER)
        groups = {key: known[key] for key in known if key not in groups}
    if not groups:
        return ["none"]
    lines = [
        "| setting | seeds | best alone | averaged | joined | GBC | above the best | in s.e. |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    worst, below, settings = [], 0, 0
    for key, runs in sorted(groups.items()):
        names = [n for n in runs[0] if n.startswith("alone") or n in ("averaged", "joined")]
        means = {n: float(np.mean([r[n] for r in runs])) for n in (*names, "GBC")}
        best = min(names, key=means.__getitem__)
        gaps = np.array([r["GBC"] - r[best] for r in runs])
        error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
        # Of one seed, or of equal differences, there is no standard error.
        sure = 0.0 if gaps.mean() == 0 else float(np.copysign(np.inf, gaps.mean()))
        above = gaps.mean() / error if error > 0 else sure
        alone = min(means[n] for n in names if n.startswith("alone"))
        lines.append(
            f"| {', '.join(key)} | {len(runs)} | {alone:.1f} | {means['averaged']:.1f} | "
            f"{means['joined']:.1f} | {means['GBC']:.1f} | {gaps.mean():+.1f} | {above:+.1f} |"
        )
        worst.append((above, gaps.mean(), key))
        below += means["GBC"] < means["joined"]
        settings += 1
    over = [entry for entry in worst if entry[0] > 0.5]
    lines += [
        "",
        f"- GBC at most half a standard error above the best member: **{settings - len(over)} of "
        f"{settings}** settings (bar: all; {'passed' if not over else 'MISSED'})",
        f"- GBC below joined LightGBM with the same trees in **{below} of {settings}** settings "
        f"({100 * below / settings:.0f} %; bar: 80 %; "
        f"{'passed' if below >= 0.8 * settings else 'MISSED'})",
    ]
    for above, gap, key in sorted(over, reverse=True):
        lines.append(f"  - above: {', '.join(key)} by {gap:.2f} points ({above:.1f} s.e.)")
    return lines
