"""Growing trees: from what people write, and from dissimilarities by linkage [004, 3.1]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from weft._labels import Label, canonical, identity
from weft.hierarchy.nodes import Tree

LINKAGES = ("single", "average", "complete")
Edge = tuple[Label, int, float]  # name, number of the parent, weight


# -- written by hand ----------------------------------------------------------------------------


def read_tree(tree: Any, separator: str, root: Label) -> Tree:
    """Return a tree from a nested mapping, a table of parents, or paths."""
    if isinstance(tree, Mapping):
        edges = _from_parents(_parent_rows(tree)) if _is_parents(tree) else _from_nested(tree, root)
    elif isinstance(tree, str) or not isinstance(tree, Iterable):
        raise TypeError(f"tree {tree!r}: give a nested mapping, a table of parents, or paths")
    else:
        rows = list(tree)
        if rows and all(isinstance(row, str) for row in rows):
            edges = _from_paths(rows, separator, root)
        else:
            edges = _from_parents(rows)
    if len(edges) < 2:
        raise ValueError(f"tree {tree!r} has no edge; a tree needs a root and a leaf")
    names, parents, weights = zip(*edges, strict=True)
    return Tree(np.array(parents), np.array(weights, float), tuple(names), separator)


def _weight(weight: Any, name: Any) -> float:
    if not isinstance(weight, Real) or isinstance(weight, bool) or not isfinite(weight):
        raise TypeError(f"node {name!r}: the weight of its edge is {weight!r}, not a number")
    if weight < 0:
        raise ValueError(
            f"node {name!r}: the weight of its edge is {weight}; distances need weights >= 0"
        )
    return float(weight)


def _is_parents(tree: Mapping[Any, Any]) -> bool:
    """Tell a table of parents from a nested mapping: its values name nodes."""
    return any(
        isinstance(v, str) or (isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], str))
        for v in tree.values()
    )


def _parent_rows(tree: Mapping[Any, Any]) -> list[tuple[Any, ...]]:
    return [(c, *p) if isinstance(p, tuple) else (c, p) for c, p in tree.items()]


def _from_nested(tree: Any, root: Label) -> list[Edge]:
    if len(tree) == 1:
        name, below = next(iter(tree.items()))
        if isinstance(below, Mapping) or (isinstance(below, Sequence) and not _weighted(below)):
            root, tree = canonical(name), below
    edges: list[Edge] = [(root, -1, 0.0)]
    waiting: list[tuple[Any, int]] = [(tree, 0)]
    while waiting:
        below, parent = waiting.pop(0)
        items = below.items() if isinstance(below, Mapping) else ((leaf, None) for leaf in below)
        met: set[Any] = set()
        for name, rest in items:
            label = canonical(name)
            if identity(label) in met:
                raise ValueError(f"node {label!r} hangs twice from {edges[parent][0]!r}")
            met.add(identity(label))
            weight, children = _nested_value(rest, label)
            edges.append((label, parent, weight))
            if children is not None:
                waiting.append((children, len(edges) - 1))
    return edges


def _weighted(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], Real)


def _nested_value(value: Any, name: Label) -> tuple[float, Any]:
    """Return (weight of the edge, what hangs below or None) of one entry of a nested mapping."""
    if value is None:
        return 1.0, None
    if _weighted(value):
        return _weight(value[0], name), value[1]
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return 1.0, sorted(value, key=str) if isinstance(value, set | frozenset) else value
    return _weight(value, name), None


def _from_paths(paths: Sequence[str], separator: str, root: Label) -> list[Edge]:
    split = [path.split(separator) for path in paths]
    for path, parts in zip(paths, split, strict=True):
        if not all(parts):
            raise ValueError(f"path {path!r} has an empty part; write it as A{separator}B")
    if len({parts[0] for parts in split}) == 1 and all(len(parts) > 1 for parts in split):
        root, split = split[0][0], [parts[1:] for parts in split]
    edges: list[Edge] = [(root, -1, 0.0)]
    place: dict[tuple[str, ...], int] = {(): 0}
    for depth in range(1, max(map(len, split)) + 1):  # parents before their children
        for parts in split:
            key = tuple(parts[:depth])
            if len(key) == depth and key not in place:
                place[key] = len(edges)
                edges.append((key[-1], place[key[:-1]], 1.0))
    return edges


def _from_parents(rows: Sequence[Any]) -> list[Edge]:
    """Read rows (child, parent[, weight]); the root has no parent, or is nobody's child."""
    parent: dict[Any, Any] = {}
    weight: dict[Any, float] = {}
    name: dict[Any, Label] = {}
    for row in rows:
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) not in (2, 3):
            raise TypeError(f"row {row!r}: write (child, parent) or (child, parent, weight)")
        child, above = canonical(row[0]), canonical(row[1])
        key, up = identity(child), identity(above)
        if key in parent and parent[key] != up:
            raise ValueError(f"node {child!r} has two parents, {parent[key][1]!r} and {above!r}")
        name[key] = child
        if above is not None:
            name.setdefault(up, above)
            parent[key] = up
            weight[key] = _weight(row[2] if len(row) == 3 else 1.0, child)
    roots = [key for key in name if key not in parent]
    if len(roots) > 1:
        shown = ", ".join(repr(name[key]) for key in roots[:5])
        raise ValueError(f"the tree has {len(roots)} roots, {shown}; give them one parent")
    _refuse_cycles(parent, name)
    edges: list[Edge] = [(name[roots[0]], -1, 0.0)]
    below: dict[Any, list[Any]] = {}
    for key, up in parent.items():
        below.setdefault(up, []).append(key)
    waiting = [(roots[0], 0)]
    while waiting:
        up, number = waiting.pop(0)
        for key in below.get(up, []):
            edges.append((name[key], number, weight[key]))
            waiting.append((key, len(edges) - 1))
    return edges


def _refuse_cycles(parent: dict[Any, Any], name: dict[Any, Label]) -> None:
    safe: set[Any] = set()
    for start in name:
        trail: dict[Any, None] = {}
        key = start
        while key in parent and key not in safe:
            if key in trail:
                loop = [*list(trail)[list(trail).index(key) :], key]
                shown = " -> ".join(str(name[k]) for k in loop)
                raise ValueError(f"the tree has a cycle: {shown}; every node needs a way to a root")
            trail[key] = None
            key = parent[key]
        safe.update(trail)


# -- learned ------------------------------------------------------------------------------------


def from_linkage(dissimilarity: np.ndarray, labels: Sequence[Label], method: str) -> Tree:
    """Return the dendrogram of values: a node is as far above its leaves as its height.

    An edge is the difference of the heights of its ends, so two leaves are twice the height apart
    at which they join.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    n = len(labels)
    if n == 1:
        return Tree(np.array([-1]), np.zeros(1), (labels[0],), "")
    steps = linkage(squareform(dissimilarity, checks=False), method)
    total = 2 * n - 1
    height = np.concatenate([np.zeros(n), np.maximum.accumulate(steps[:, 2])])
    above = np.full(total, -1)
    for i, (left, right) in enumerate(steps[:, :2].astype(int)):
        above[left] = above[right] = n + i
    # From the root down: scipy numbers the last merge highest, the tree wants parents first.
    number = total - 1 - np.arange(total)
    parents, weights = np.full(total, -1), np.zeros(total)
    names: list[Label] = [""] * total
    mark = "#"
    while any(isinstance(label, str) and label.startswith(mark) for label in labels):
        mark += "#"  # the names of inner nodes are nobody's value
    for node in range(total):
        if above[node] >= 0:
            parents[number[node]] = number[above[node]]
            weights[number[node]] = height[above[node]] - height[node]
        names[number[node]] = labels[node] if node < n else f"{mark}{number[node]}"
    return Tree(parents, weights, tuple(names), "")
