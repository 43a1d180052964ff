"""The data of the GBC experiments: views, word groups, graphs, noise, and a drawn film library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import kneighbors_graph

from tabweave import Sources
from tabweave.datasets import load

NOISE_COLUMNS = 50


class Task(NamedTuple):
    """Tables and graphs over ids 0..n-1, and the label of each."""

    tables: Mapping[str, Any]
    graphs: Mapping[str, sp.csr_array]
    y: np.ndarray
    noise: tuple[str, ...]  # the tables and graphs that tell nothing


def mfeat() -> Task:
    """Six views of digits; neighbours by morphology; the same with noise on the morphology."""
    views = {name: load(f"mfeat_{name}") for name in ("fou", "fac", "kar", "pix", "zer", "mor")}
    tables = {name: np.column_stack(list(view.columns.values())) for name, view in views.items()}
    shape = tables["mor"] / tables["mor"].std(axis=0)
    noisy = shape + np.random.default_rng(0).normal(0, 3, shape.shape)
    graphs = {"shape": _nearest(shape), "noisy": _nearest(noisy)}
    return Task(tables, graphs, np.asarray(views["fou"].y, dtype=str), ())


def _nearest(points: np.ndarray, k: int = 10) -> sp.csr_array:
    return sp.csr_array(kneighbors_graph(points, k))


def terrorist() -> Task:
    """Attributes of attacks, the same with Gaussian noise, two graphs of places and groups."""
    data = load("terrorist_attack_content")
    ids = data.columns["attack_id"]
    matrix = np.column_stack(
        [np.asarray(v, dtype=float) for name, v in data.columns.items() if name != "attack_id"]
    )
    noisy = matrix + np.random.default_rng(0).normal(0, 1, matrix.shape)
    graphs = {
        "place": _edges("terrorist_attack_colocated", ids),
        "group": _edges("terrorist_attack_colocated_same_org", ids),
    }
    tables = {"attributes": matrix, "noisy attributes": noisy}
    return Task(tables, graphs, np.asarray(data.y, dtype=str), ())


def _edges(name: str, ids: np.ndarray) -> sp.csr_array:
    index = {v: i for i, v in enumerate(ids)}
    a, b = load(name).columns.values()
    pairs = [(index[x], index[y]) for x, y in zip(a, b, strict=True) if x in index and y in index]
    rows, columns = np.array(pairs).T
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(ids), len(ids)))


def papers(name: str, n_groups: int = 4, n_noise: int = 2) -> Task:
    """Papers: their words in random groups, tables of pure noise, and citations."""
    data = load(f"{name}_content")
    words = [list(map(int, cell.split())) if cell else [] for cell in data.columns["words"]]
    lengths = [len(w) for w in words]
    columns = np.concatenate([np.array(w, dtype=int) for w in words])
    matrix = sp.csc_array(
        (np.ones(len(columns)), (np.repeat(np.arange(len(words)), lengths), columns))
    )
    rng = np.random.default_rng(0)
    groups = np.array_split(rng.permutation(matrix.shape[1]), n_groups)
    tables: dict[str, Any] = {
        f"words {i}": sp.csr_array(matrix[:, np.sort(group)]) for i, group in enumerate(groups)
    }
    noise = tuple(f"noise {i}" for i in range(n_noise))
    tables |= {noisy: rng.normal(size=(len(words), NOISE_COLUMNS)) for noisy in noise}
    graphs = {"cites": _edges(f"{name}_cites", data.columns["paper_id"])}
    return Task(tables, graphs, np.asarray(data.y, dtype=str), noise)


def movies(n: int = 1500, seed: int = 0) -> Task:
    """Draw films: six tables and four graphs around hidden qualities; the rating is a number."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 4))
    rating = hidden @ [1.0, 0.7, 0.5, 0.3] + 0.8 * np.tanh(hidden[:, 0] * hidden[:, 1])
    rating = 6.5 + rating + rng.normal(0, 0.3, n)

    def words(facets: list[int], width: int, noise: float) -> np.ndarray:
        loadings = rng.normal(size=(len(facets), width))
        score = hidden[:, facets] @ loadings + rng.normal(0, noise, (n, width))
        return (score > np.quantile(score, 0.9, axis=0)).astype(float)

    tables: dict[str, Any] = {
        "genre": words([0], 20, 1.0),
        "plot": words([0, 1], 120, 2.0),
        "technology": words([2], 12, 1.0),
        "sound": words([2, 3], 12, 1.5),
        "running times": hidden[:, [1]] @ rng.normal(size=(1, 3)) + rng.normal(0, 1, (n, 3)),
        "certificates": rng.normal(size=(n, 30)),
    }
    graphs = {}
    for name, facet, people in (("director", 0, 300), ("actor", 1, 400), ("producer", 3, 300)):
        taste = rng.normal(size=people)
        near = np.abs(hidden[:, facet][:, None] - taste + rng.normal(0, 0.4, (n, people)))
        member = sp.csr_array((np.ones(n), (np.arange(n), near.argmin(axis=1))))
        graphs[name] = sp.csr_array(member @ member.T)
    member = sp.csr_array((np.ones(n), (np.arange(n), rng.integers(0, 300, n))))
    graphs["editor"] = sp.csr_array(member @ member.T)
    return Task(tables, graphs, rating, ("certificates", "editor"))


TASKS = {
    "mfeat": mfeat,
    "terrorist": terrorist,
    "citeseer": lambda: papers("citeseer"),
    "cora": lambda: papers("cora"),
    "movies": movies,
}


def present(task: Task, incomplete: bool, rng: np.random.Generator) -> np.ndarray:
    """Say which source knows which id: all of them, or for 30 % of the ids a random half."""
    n, p = len(task.y), len(task.tables) + len(task.graphs)
    known = np.ones((n, p), dtype=bool)
    if incomplete:
        for i in rng.choice(n, int(0.3 * n), replace=False):
            known[i, rng.choice(p, p // 2, replace=False)] = False
    return known


def sources(task: Task, known: np.ndarray) -> Sources:
    """Return the sources of all ids with the rows and edges that are known."""
    ids = np.arange(len(task.y))
    tables = {
        name: (ids[known[:, i]], matrix[known[:, i]])
        for i, (name, matrix) in enumerate(task.tables.items())
    }
    graphs = {}
    for i, (name, weights) in enumerate(task.graphs.items(), start=len(task.tables)):
        keep = sp.diags_array(known[:, i].astype(float))
        graphs[name] = (ids, sp.csr_array(keep @ weights @ keep))
    return Sources(tables, graphs)


def joined(task: Task, known: np.ndarray) -> Any:
    """Eq. (3.20): all columns and the adjacency of every graph beside each other, gaps as NaN."""
    blocks = []
    for i, matrix in enumerate(task.tables.values()):
        dense = matrix.toarray() if sp.issparse(matrix) else np.array(matrix, dtype=float)
        dense[~known[:, i]] = np.nan
        blocks.append(dense)
    graph = [sources(task, known).graph(name) for name in task.graphs]
    # Cells that are zero are left out of the sparse matrix; those that are missing stay in it.
    return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks] + graph))
