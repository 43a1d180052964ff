"""The data of section 4.5 of Shi (2013): columns in groups, graphs, noise."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tabweave import Sources

Data = tuple[dict[str, object], dict[str, object], np.ndarray]


def mfeat() -> Data:
    from tabweave.datasets import load

    tables: dict[str, object] = {}
    for view in ("fou", "fac", "kar", "pix", "zer", "mor"):
        data = load(f"mfeat_{view}")
        tables[view] = np.column_stack(list(data.columns.values()))
    return tables, {}, data.y


def citeseer() -> Data:
    from tabweave.datasets import load

    content, cites = load("citeseer_content"), load("citeseer_cites")
    words = [[int(w) for w in (cell or "").split()] for cell in content.columns["words"]]
    ends = np.cumsum([0, *map(len, words)])
    indices = np.concatenate([np.array(w, dtype=int) for w in words])
    X = sp.csr_array((np.ones(len(indices)), indices, ends))
    ids = content.columns["paper_id"]
    return {"words": X}, {"citations": adjacency(ids, cites)}, content.y


def terrorist() -> Data:
    from tabweave.datasets import load

    content = load("terrorist_attack_content")
    ids = content.columns.pop("attack_id")
    X = sp.csr_array(np.column_stack([np.asarray(c, float) for c in content.columns.values()]))
    graphs = {
        name: adjacency(ids, load(f"terrorist_attack_{file}"))
        for name, file in (
            ("location", "colocated"),
            ("organisation", "colocated_same_org"),
        )
    }
    return {"attributes": X}, graphs, content.y


def adjacency(ids: np.ndarray, links: object) -> sp.csr_array:
    index = {value: i for i, value in enumerate(ids)}
    left, right = list(links.columns.values())[:2]
    edges = np.array(
        [
            (index[a], index[b])
            for a, b in zip(left, right, strict=True)
            if a in index and b in index
        ]
    )
    edges = edges[edges[:, 0] != edges[:, 1]]
    M = sp.csr_array((np.ones(len(edges)), edges.T), shape=(len(ids), len(ids)))
    return sp.csr_array(((M + M.T) > 0).astype(float))


def information(X: sp.csr_array, y: np.ndarray) -> np.ndarray:
    """Mutual information of binary columns and classes."""
    classes, code = np.unique(y, return_inverse=True)
    member = np.eye(len(classes))[code]
    n, having, of_class = len(y), np.asarray(X.sum(axis=0)).ravel(), member.sum(axis=0)
    there = np.asarray(X.T @ member)
    out = np.zeros(X.shape[1])
    for joint, margin in ((there, having), (of_class - there, n - having)):
        expected = np.outer(margin, of_class) / n
        ratio = np.divide(joint, expected, out=np.ones_like(joint), where=joint > 0)
        out += (joint / n * np.log(ratio)).sum(axis=1)
    return out


def with_groups_and_noise(data: Data, seed: int) -> Data:
    """Sections 4.5.4, 4.5.5: columns in five groups by information; one noise table and graph."""
    tables, graphs, y = data
    (X,) = tables.values()
    rng = np.random.default_rng(seed)
    order = np.argsort(-information(X, y), kind="stable")
    groups = np.array_split(order, 5)
    out = {f"group {i + 1}": sp.csr_array(X[:, at]) for i, at in enumerate(groups)}
    n = len(y)
    out["noise"] = rng.integers(0, 2, (n, len(groups[0]))).astype(float)
    upper = np.triu(rng.integers(0, 2, (n, n)), 1).astype(float)
    return out, {**graphs, "noise graph": sp.csr_array(upper + upper.T)}, y


def draw(name: str, seed: int) -> Data:
    if name == "mfeat":
        return mfeat()
    return with_groups_and_noise(citeseer() if name == "citeseer" else terrorist(), seed)


def sources_of(tables: dict, graphs: dict, n: int) -> Sources:
    ids = np.arange(n)
    return Sources(
        {name: (ids, X) for name, X in tables.items()},
        {name: (ids, M) for name, M in graphs.items()},
    )
